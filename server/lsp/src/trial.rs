//! A kernel under a launch that is looked at, not chosen: one in the text, or values that the user tries.

use warplens_db::{BlockChoices, Cancel, Engine, LaunchValues, Overrides, PlacedKernel, Variants};

use crate::documents::Analysed;

/// A kernel under such a launch.
#[derive(Debug)]
pub struct Trial {
    /// The kernel.
    pub kernel: PlacedKernel,
    /// The blocks that its launch could have.
    pub choices: BlockChoices,
}

impl Trial {
    /// The kernel of that name under one of its launches, else under the one that is shown; with `values` in place of those that it
    /// has. `None` where there is no such kernel, or when cancelled.
    pub fn of(
        engine: &Engine,
        analysed: &Analysed,
        kernel: &str,
        variant: Option<usize>,
        values: Option<LaunchValues>,
        cancel: &Cancel,
    ) -> Option<Trial> {
        let mut overrides = analysed.effective.overrides.clone();
        if let Some(variant) = variant
            && let Variants::Chosen(chosen) = &mut overrides.variants
        {
            chosen.insert(kernel.to_owned(), variant);
        }
        if let Some(values) = values {
            overrides.set_launch.insert(kernel.to_owned(), values);
        }
        let settings = &analysed.effective.settings;
        let placed = {
            let (document, path) = (&analysed.document, &analysed.path);
            let file = engine.analyze(document, path, settings, &overrides, cancel)?;
            let mut kernels = file.kernels.into_iter();
            kernels.find(|placed| placed.analysis.facts.name == kernel)?
        };
        let choices = choices(engine, analysed, &overrides, &placed, cancel)?;
        Some(Trial {
            kernel: placed,
            choices,
        })
    }
}

fn choices(
    engine: &Engine,
    analysed: &Analysed,
    overrides: &Overrides,
    placed: &PlacedKernel,
    cancel: &Cancel,
) -> Option<BlockChoices> {
    engine.block_choices(
        &analysed.document,
        &analysed.path,
        &analysed.effective.settings,
        overrides,
        placed,
        cancel,
    )
}
