//! Fits the figures of a profile to measurements. Pure: uses no device, no clock and no files.
//!
//! Each figure that was measured says which benchmark it comes from. What a measurements file lacks is named in
//! [`ProfileFit::missing`] and stays what it is on the nearest built-in GPU.

mod departure;
mod latency;
pub mod linear;
mod memory;
mod throughput;

use std::collections::BTreeMap;

use warplens_machine::{Profile, Property};
use warplens_models::linear::fit::Fit;

use crate::measurements::{Measurements, Sample};
use crate::{catalogue, statistics};

/// A figure of the profile, measured on this device.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedFigure {
    /// In the unit of its key.
    pub value: f64,
    /// Its source: a benchmark and its date, the driver, or a rule over such figures.
    pub source: String,
}

/// What the fit makes of the measurements.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProfileFit {
    /// Figures by the profile's keys.
    pub figures: BTreeMap<&'static str, FittedFigure>,
    /// What could not be fitted, and why, one line each.
    pub missing: Vec<String>,
    /// Measured figures without a profile key, and how well the models fit, one line each.
    pub notes: Vec<String>,
    /// The linear model's weights.
    pub weights: Option<Fit>,
}

/// Operations of the linear model's measurement kernels, by kernel and size ([`linear::counts`]).
pub type Counts = BTreeMap<(String, u64), BTreeMap<Property, f64>>;

/// Fits everything that the measurements have. `nearest` is the built-in GPU most like the device: from it come the lanes of
/// a warp where the driver does not say, and where searches begin.
pub fn fit(measurements: &Measurements, nearest: &Profile, counts: &Counts) -> ProfileFit {
    let mut fitting = Fitter {
        measurements,
        nearest,
        fitted: ProfileFit::default(),
    };
    fitting.reported();
    fitting.clock();
    latency::fit(&mut fitting);
    throughput::fit(&mut fitting);
    memory::fit(&mut fitting);
    departure::fit(&mut fitting);
    linear::fit(&mut fitting, counts);
    for remark in &measurements.remarks {
        fitting.fitted.notes.push(remark.clone());
    }
    fitting.fitted
}

/// A fit under way.
struct Fitter<'a> {
    measurements: &'a Measurements,
    nearest: &'a Profile,
    fitted: ProfileFit,
}

/// Keys that the driver reports under the profile's own names.
const REPORTED: [&str; 12] = [
    "sms",
    "warp_size",
    "l2_bytes",
    "max_threads_per_block",
    "shared_per_block",
    "shared_per_block_opt_in",
    "shared_per_sm",
    "shared_reserved_per_block",
    "registers_per_sm",
    "max_blocks_per_sm",
    "max_warps_per_sm",
    "dram_bandwidth_gb_s",
];

impl Fitter<'_> {
    /// `measured by warplens calibrate (BENCH, DATE)`.
    fn source(&self, bench: &str) -> String {
        let (date, version) = (&self.measurements.date, &self.measurements.warplens);
        format!("measured by warplens calibrate {version} ({bench}, {date})")
    }

    fn by_driver(&self) -> String {
        let date = &self.measurements.date;
        format!("reported by the driver (warplens calibrate, {date})")
    }

    /// Keeps a figure unless the profile's schema would refuse it.
    fn keep(&mut self, key: &'static str, value: f64, source: String) {
        let Some(spec) = Profile::keys().iter().find(|spec| spec.name == key) else {
            return;
        };
        let value = if spec.whole {
            value.round()
        } else {
            rounded(value)
        };
        if value.is_finite() && (spec.min..=spec.max).contains(&value) {
            self.fitted
                .figures
                .insert(key, FittedFigure { value, source });
        } else {
            self.miss(format!(
                "{key}: {value} {} cannot be, so it was not taken",
                spec.unit
            ));
        }
    }

    fn measured(&mut self, key: &'static str, value: f64, bench: &str) {
        let source = self.source(bench);
        self.keep(key, value, source);
    }

    fn miss(&mut self, what: String) {
        self.fitted.missing.push(what);
    }

    /// Figures that need a benchmark of which nothing can be used, and why.
    fn without(&mut self, figures: &str, bench: &str) {
        let first = self.measurements.of(bench).next();
        let why = match first.map(|sample| sample.unit.as_str()) {
            None => "is missing",
            Some("ns") if self.clock_mhz().is_none() => {
                "is in nanoseconds, and the clock is not known"
            }
            Some(_) => "has no figures that can be used",
        };
        self.miss(format!("{figures}: the benchmark {bench} {why}"));
    }

    fn note(&mut self, what: String) {
        self.fitted.notes.push(what);
    }

    /// A figure that is known by now, of this device or else of the nearest.
    fn known(&self, key: &str) -> Option<f64> {
        let own = self.fitted.figures.get(key).map(|found| found.value);
        own.or_else(|| self.nearest.figures().get(key).map(|figure| figure.value))
    }

    /// Lanes of a warp.
    fn warp(&self) -> f64 {
        self.known("warp_size").unwrap_or(32.0)
    }

    /// A sample's steady figure, greater than 0.
    fn steady(sample: &Sample) -> Option<f64> {
        statistics::steady(&sample.repetitions).filter(|value| *value > 0.0)
    }

    /// A sample's steady figure in cycles of the SM; nanoseconds need the clock.
    fn cycles(&self, sample: &Sample) -> Option<f64> {
        let figure = Self::steady(sample)?;
        match sample.unit.as_str() {
            "cycles" => Some(figure),
            "ns" => Some(figure * self.clock_mhz()? / 1e3),
            _ => None,
        }
    }

    /// The device's own clock: with another GPU's clock, cycles would be meaningless.
    fn clock_mhz(&self) -> Option<f64> {
        let found = self.fitted.figures.get("sm_clock_mhz");
        found.map(|found| found.value)
    }

    /// What the driver says of itself.
    fn reported(&mut self) {
        let device = &self.measurements.device;
        let mut properties = device.properties.clone();
        // Two transfers a clock cycle, whatever the memory.
        if let (Some(khz), Some(bits)) = (
            device.property("memory_clock_khz"),
            device.property("memory_bus_bits"),
        ) {
            let gb_s = khz * 1e3 * 2.0 * bits / 8.0 / 1e9;
            properties.insert("dram_bandwidth_gb_s".to_owned(), gb_s);
        }
        if let Some(threads) = device.property("max_threads_per_sm") {
            let warp = device.property("warp_size").unwrap_or(self.warp());
            properties.insert("max_warps_per_sm".to_owned(), threads / warp);
        }
        for key in REPORTED {
            // 0 is not known; what cannot be is said.
            match properties.get(key).copied().filter(|value| *value != 0.0) {
                // A simulator's or a processor's are no lanes of a warp that any GPU has.
                Some(lanes) if key == "warp_size" && lanes != 32.0 && lanes != 64.0 => {}
                Some(value) => self.keep(key, value, self.by_driver()),
                None => {}
            }
        }
    }

    fn clock(&mut self) {
        let sample = self.measurements.of(catalogue::CLOCK).next();
        match sample.and_then(Self::steady) {
            // OpenCL has no clock on the device.
            Some(mhz) if self.measurements.device.interface == "opencl" => {
                self.keep("sm_clock_mhz", mhz, self.by_driver());
            }
            Some(mhz) => self.measured("sm_clock_mhz", mhz, catalogue::CLOCK),
            None => match self.measurements.device.property("clock_khz") {
                Some(khz) => self.keep("sm_clock_mhz", khz / 1e3, self.by_driver()),
                None => self.miss("sm_clock_mhz: the benchmark clock is missing".to_owned()),
            },
        }
    }
}

/// Four digits: no benchmark knows more.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let digits = 3 - value.abs().log10().floor() as i32;
    let scale = 10f64.powi(digits.abs());
    if digits >= 0 {
        (value * scale).round() / scale
    } else {
        (value / scale).round() * scale
    }
}
