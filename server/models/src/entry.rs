//! What each model says of itself to the registry.

use crate::Estimate;
use crate::work::Work;

/// What a model says of itself.
pub(crate) struct ModelEntry {
    /// The name on the command line, in the settings and in the JSON.
    pub(crate) name: &'static str,
    /// What it is and whom it is after, in a few words.
    pub(crate) summary: &'static str,
    /// How it answers.
    pub(crate) answers: Answers,
    /// The estimate of a kernel that runs at all.
    pub(crate) estimate: fn(&Work) -> Estimate,
    /// The cycles of that estimate, where they are cheaper to have alone.
    pub(crate) cycles: fn(&Work) -> Option<f64>,
}

/// How a model answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answers {
    /// By equations of the trip counts, within a keystroke.
    Equations,
    /// By equations of counts that are the launch's, within a keystroke: trip counts of the flow do not change them.
    Counts,
    /// By simulating warps, which takes tens of milliseconds.
    Simulation,
}
