//! The time of a launch by how many warps an SM runs at a time.

use warplens_models::{ModelId, Question};

use crate::KernelAnalysis;
use crate::panics::unless_it_panics;

/// A curve: the launch unchanged, each SM running at most that many warps.
#[derive(Debug, Clone, PartialEq)]
pub struct Scaling {
    /// The model that was asked.
    pub model: &'static str,
    /// Warps that an SM has resident under this launch: where the curve ends.
    pub resident: u32,
    /// Warps on an SM and predicted cycles, in order; warps without a prediction are left out.
    pub points: Vec<(u32, f64)>,
}

impl Scaling {
    pub(crate) fn of(analysis: &KernelAnalysis) -> Scaling {
        // A model that simulates would be run once for each point.
        let model = if analysis.model.simulates() {
            ModelId::Auto
        } else {
            analysis.model
        };
        let resident = analysis.input.occupancy.active_warps_per_sm;
        let at = |warps: u32| {
            let input = Question {
                warps_per_sm: Some(warps),
                ..analysis.question()
            };
            let made = unless_it_panics(|| warplens_models::estimate(model, &input));
            let cycles = made?.cycles?;
            cycles.is_finite().then_some((warps, cycles))
        };
        Scaling {
            model: model.name(),
            resident,
            points: (1..=resident).filter_map(at).collect(),
        }
    }
}
