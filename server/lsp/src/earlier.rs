//! What kernels took before the edits that the user is making: in the text as it was saved last, or where one was pinned.

use std::collections::BTreeMap;
use std::sync::Arc;

use warplens_db::{FileAnalysis, LaunchValues, PlacedKernel};
use warplens_models::ModelId;
use warplens_report::check;

/// The predicted time of a kernel at an earlier moment.
#[derive(Debug, Clone, PartialEq)]
pub struct EarlierTime {
    /// As it is shown: a number with its unit, or a formula of the sizes that nothing gives.
    pub text: String,
    /// In milliseconds; `None` of a formula.
    pub time_ms: Option<f64>,
    gpu: String,
    model: ModelId,
    launch: ShownLaunch,
}

/// Which launch a kernel was shown under.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownLaunch {
    variant: usize,
    of: usize,
    text: String,
    set: Option<LaunchValues>,
}

impl ShownLaunch {
    /// The launch that a kernel is shown under now.
    pub fn of(kernel: &PlacedKernel) -> ShownLaunch {
        ShownLaunch {
            variant: kernel.variant,
            of: kernel.variants.len(),
            text: kernel.launch_text().to_owned(),
            set: kernel.set.clone(),
        }
    }

    /// Whether that is the same launch, perhaps edited: where launches were added or removed, the one with the same size.
    pub fn is_of(&self, kernel: &PlacedKernel) -> bool {
        let now = ShownLaunch::of(kernel);
        let in_place = (self.variant, self.of) == (now.variant, now.of);
        self.set == now.set && (in_place || self.of != now.of && self.text == now.text)
    }
}

/// Times by the kernels' plain names, in their order in the file.
pub type TimesByName = BTreeMap<String, Vec<Option<EarlierTime>>>;

/// What is shown of a document's kernels as their time before.
#[derive(Debug, Default)]
pub struct EarlierTimes {
    /// Of the kernels that were pinned.
    pub pinned: Arc<TimesByName>,
    /// Of all kernels in the text that was saved last.
    pub saved: Arc<TimesByName>,
}

impl EarlierTimes {
    /// The time of the kernel of that name with that number among the file's kernels of the name, from 0.
    pub fn get(&self, name: &str, number: usize) -> Option<&EarlierTime> {
        let times = self.pinned.get(name).or_else(|| self.saved.get(name))?;
        times.get(number)?.as_ref()
    }
}

impl EarlierTime {
    /// What a kernel takes now; `None` where that is not known. `formulas`: also by sizes that nothing gives.
    pub fn of(kernel: &PlacedKernel, formulas: bool) -> Option<EarlierTime> {
        let analysis = &kernel.analysis;
        if analysis.input.occupancy.why_impossible.is_some()
            || analysis.has_unknown_sizes() && !formulas
        {
            return None;
        }
        let estimate = analysis.estimate();
        let formula = estimate
            .open
            .as_ref()
            .and_then(|open| open.formula.as_ref());
        let known = estimate.time_ms.is_some() || formula.is_some();
        Some(EarlierTime {
            text: known.then(|| check::shown_time(&estimate)).flatten()?,
            time_ms: estimate.time_ms,
            gpu: analysis.profile.id.clone(),
            model: analysis.model,
            launch: ShownLaunch::of(kernel),
        })
    }

    /// Whether it is a time on the GPU, by the model and under the launch that the kernel is predicted for: only edits are compared.
    pub fn is_comparable(&self, kernel: &PlacedKernel) -> bool {
        self.gpu == kernel.analysis.profile.id
            && self.model == kernel.analysis.model
            && self.launch.is_of(kernel)
    }
}

/// The times of all kernels of a file.
pub fn of_file(file: &FileAnalysis, formulas: bool) -> TimesByName {
    let mut times = TimesByName::new();
    for kernel in &file.kernels {
        let name = kernel.analysis.facts.name.clone();
        let time = EarlierTime::of(kernel, formulas);
        times.entry(name).or_default().push(time);
    }
    times
}

/// The kernels of a file, each with its number among those of its name.
pub fn numbered(file: &FileAnalysis) -> impl Iterator<Item = (usize, &PlacedKernel)> {
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    file.kernels.iter().map(move |kernel| {
        let number = numbers
            .entry(kernel.analysis.facts.name.as_str())
            .or_default();
        *number += 1;
        (*number - 1, kernel)
    })
}
