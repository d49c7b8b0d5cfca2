//! The linear model's prices, fitted to the times of its measurement kernels.
//!
//! How many operations a kernel has is what the model itself counts in the kernel's source, so that prices and counts
//! belong together.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use warplens_db::settings::Settings;
use warplens_db::{Engine, LaunchValues, Overrides};
use warplens_machine::{Profiles, Property};
use warplens_models::ModelId;
use warplens_models::linear::fit::{Measurement, fit as prices};
use warplens_syntax::Document;

use super::{Counts, Fitter};
use crate::catalogue::Interface;
use crate::measurements::Measurements;

/// Threads of a block of the measurement kernels.
const BLOCK: u64 = 256;

/// Sizes that are looked at, at most.
const MOST_SIZES: usize = 16;

/// The properties of the measurement kernels at every size that was measured, as the model counts them for the
/// built-in GPU `gpu`.
///
/// # Errors
///
/// Says in words why the kernels could not be counted.
pub fn counts(measurements: &Measurements, gpu: &str) -> Result<Counts, String> {
    // Files that do not say it are of the one that was there first.
    let interface = Interface::named(&measurements.device.interface).unwrap_or(Interface::Cuda);
    let sizes: BTreeSet<u64> = measurements
        .of("linear")
        .filter_map(|sample| sample.number("n"))
        .filter(|n| (1.0..=2e9).contains(n))
        .map(|n| n as u64)
        .take(MOST_SIZES * 64)
        .collect();
    sizes
        .into_iter()
        .take(MOST_SIZES)
        .map(|n| counts_at(interface, n, gpu))
        .try_fold(Counts::new(), |mut all, some| {
            all.extend(some?);
            Ok(all)
        })
}

fn counts_at(interface: Interface, n: u64, gpu: &str) -> Result<Counts, String> {
    let (text, language) = interface.linear_kernels();
    let document = Document::new(text, language);
    let overrides = Overrides {
        argument: LaunchValues {
            grid: Some([n.div_ceil(BLOCK), 1, 1]),
            block: Some([BLOCK, 1, 1]),
            args: BTreeMap::from([("n".to_owned(), n as i64)]),
            ..LaunchValues::default()
        },
        ..Overrides::default()
    };
    let estimated = Engine::new(Profiles::builtin()).estimate(
        &document,
        Path::new("linear_kernels.cu"),
        &Settings::default(),
        &overrides,
        &[gpu.to_owned()],
        &[ModelId::Linear],
        &[],
    )?;
    let of = |detail: &BTreeMap<String, f64>| {
        let named = detail
            .iter()
            .filter_map(|(name, count)| Some((Property::named(name)?, *count)));
        named.filter(|(_, count)| *count > 0.0).collect()
    };
    let kernels = estimated.results.iter().filter_map(|result| {
        let estimate = result.estimates.get(ModelId::Linear.name())?;
        Some(((result.kernel.clone(), n), of(&estimate.detail)))
    });
    Ok(kernels.collect())
}

pub(super) fn fit(fitting: &mut Fitter, counts: &Counts) {
    let samples = fitting.measurements.of("linear");
    let measurements: Vec<Measurement> = samples
        .filter(|sample| sample.unit == "s")
        .filter_map(|sample| {
            let kernel = sample.text("kernel")?.to_owned();
            let n = sample.number("n")?;
            let properties = counts.get(&(kernel.clone(), n as u64))?.clone();
            Some(Measurement {
                kernel: format!("{kernel}, n = {n}"),
                seconds: Fitter::steady(sample)?,
                properties,
            })
        })
        .collect();
    if measurements.is_empty() {
        fitting.without("linear_weights", "linear");
        return;
    }
    match prices(&measurements) {
        Ok(fitted) => {
            fitting.note(format!(
                "linear model: {} weights from {} measurements, relative error: geometric mean {:.1} %, largest {:.1} %",
                fitted.weights.len() - fitted.undetermined.len(),
                fitted.errors.len(),
                100.0 * fitted.mean_error(),
                100.0 * fitted.largest_error(),
            ));
            if !fitted.undetermined.is_empty() {
                let names: Vec<String> = fitted
                    .undetermined
                    .iter()
                    .map(ToString::to_string)
                    .collect();
                fitting.note(format!(
                    "linear model: not told apart, and left to the rule: {}",
                    names.join(", ")
                ));
            }
            fitting.fitted.weights = Some(fitted);
        }
        Err(problem) => fitting.miss(format!("linear_weights: {problem}")),
    }
}
