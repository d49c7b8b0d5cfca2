//! What kernels took before the edits that the user is making: in the text as it was saved last, or where one was pinned.

use std::collections::BTreeMap;

use warplens_db::{FileAnalysis, PlacedKernel};
use warplens_models::ModelId;

/// The predicted time of a kernel at an earlier moment.
#[derive(Debug, Clone, PartialEq)]
pub struct EarlierTime {
    /// In milliseconds.
    pub time_ms: f64,
    gpu: String,
    model: ModelId,
}

/// Earlier times by the kernels' plain names and their numbers among kernels of one name.
pub type EarlierTimes = BTreeMap<(String, usize), EarlierTime>;

impl EarlierTime {
    /// What a kernel takes now; `None` where that is a formula or not known.
    pub fn of(kernel: &PlacedKernel) -> Option<EarlierTime> {
        let analysis = &kernel.analysis;
        let known =
            analysis.input.occupancy.why_impossible.is_none() && !analysis.has_unknown_sizes();
        let time_ms = known.then(|| analysis.estimate().time_ms).flatten()?;
        Some(EarlierTime {
            time_ms,
            gpu: analysis.profile.id.clone(),
            model: analysis.model,
        })
    }

    /// Whether it is a time on the GPU and by the model that the kernel is predicted for: only edits are compared.
    pub fn is_comparable(&self, kernel: &PlacedKernel) -> bool {
        self.gpu == kernel.analysis.profile.id && self.model == kernel.analysis.model
    }
}

/// The times of all kernels of a file.
pub fn of_file(file: &FileAnalysis) -> EarlierTimes {
    let times = keys(file).zip(&file.kernels);
    times
        .filter_map(|(key, kernel)| Some((key, EarlierTime::of(kernel)?)))
        .collect()
}

/// The keys of a file's kernels, in their order.
pub fn keys(file: &FileAnalysis) -> impl Iterator<Item = (String, usize)> {
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    file.kernels.iter().map(move |kernel| {
        let name = kernel.analysis.facts.name.as_str();
        let number = numbers.entry(name).or_default();
        *number += 1;
        (name.to_owned(), *number - 1)
    })
}
