//! The roofs of a GPU and where a kernel is under them (Williams, Waterman and Patterson, 2009).
//!
//! Work is floating-point operations of the source and those of its products of matrices, these as many as the matrix units
//! do in half precision in their time, or, where a kernel has none, the warp instructions that it executes
//! (after Ding and Williams, 2019). Bytes are what the requests to device memory move, before any cache.

use warplens_facts::facts::{OpClass, Space};
use warplens_machine::Profile;

use crate::KernelAnalysis;

/// Multiply-adds of a product of matrices, 16 · 8 · 16, where the profile does not say it.
const PRODUCT: f64 = 2048.0;

/// A roof.
#[derive(Debug, Clone, PartialEq)]
pub struct Ceiling {
    /// What limits: `FP32`, `tensor FP16`, `device memory`.
    pub name: &'static str,
    /// Work a second, or bytes per second.
    pub per_second: f64,
}

/// A kernel's point and the roofs above it.
#[derive(Debug, Clone, PartialEq)]
pub struct Roofline {
    /// What is counted: `FLOP` or `warp instructions`.
    pub work: &'static str,
    /// Flat roofs, work a second.
    pub peaks: Vec<Ceiling>,
    /// Slanting ones, bytes per second.
    pub bandwidths: Vec<Ceiling>,
    /// Work for each byte that the requests move.
    pub intensity: f64,
    /// The same with every request as small as it could be.
    pub ideal_intensity: f64,
    /// Work a second at the predicted time; `None` where none is predicted.
    pub achieved: Option<f64>,
}

impl Roofline {
    pub(crate) fn of(analysis: &KernelAnalysis) -> Result<Roofline, String> {
        let (moved, least) = bytes(analysis)?;
        if moved <= 0.0 {
            return Err("no request to device memory moves a byte".to_owned());
        }
        let profile = &*analysis.profile;
        let clock = profile.cycles_per_second() * f64::from(profile.sms);
        let mut peaks = Vec::new();
        let mut flops = 0.0;
        // A multiply-add is two operations.
        for (class, name, lanes) in [
            (OpClass::Fp64, "FP64", profile.fp64_lanes),
            (OpClass::Fp32, "FP32", Some(profile.fp32_lanes)),
            (OpClass::Fp16, "FP16", profile.fp16_lanes),
        ] {
            let count = count(analysis, class)?;
            flops += count;
            if count > 0.0
                && let Some(lanes) = lanes
            {
                peaks.push(Ceiling {
                    name,
                    per_second: 2.0 * lanes * clock,
                });
            }
        }
        let executed = analysis.input.instructions.as_ref();
        let products = executed.map_or(0.0, |executed| executed.products);
        if let (true, Some(rate)) = (products > 0.0, profile.tensor_fp16_fma) {
            flops += 2.0 * products * profile.tensor_instruction_fma.unwrap_or(PRODUCT);
            peaks.push(Ceiling {
                name: "tensor FP16",
                per_second: 2.0 * rate * clock,
            });
        }
        let mut work = "FLOP";
        if flops <= 0.0 {
            flops = executed
                .map(crate::WarpInstructions::total)
                .filter(|total| *total > 0.0)
                .ok_or("no floating-point operations, and the instructions that it executes are not known")?;
            work = "warp instructions";
            peaks.push(Ceiling {
                name: "issue",
                per_second: profile.issue_per_clock() * clock,
            });
        }
        let time = analysis.estimate().time_ms;
        let time = time.filter(|time| time.is_finite() && *time > 0.0);
        Ok(Roofline {
            work,
            peaks,
            bandwidths: bandwidths(profile),
            intensity: flops / moved,
            ideal_intensity: flops / least,
            achieved: time.map(|time| flops / (time / 1000.0)),
        })
    }
}

fn bandwidths(profile: &Profile) -> Vec<Ceiling> {
    let memory = Ceiling {
        name: "device memory",
        per_second: profile.dram_bandwidth_gb_s * 1e9,
    };
    let cache = profile.l2_bandwidth_gb_s.map(|bandwidth| Ceiling {
        name: "L2",
        per_second: bandwidth * 1e9,
    });
    std::iter::once(memory).chain(cache).collect()
}

fn count(analysis: &KernelAnalysis, class: OpClass) -> Result<f64, String> {
    let mut counts = analysis.facts.counts.iter();
    match counts.find(|count| count.class == class) {
        None => Ok(0.0),
        Some(count) => {
            let (_, value) = analysis.counted(count);
            value.ok_or_else(|| format!("the count of {} operations is not known", class.name()))
        }
    }
}

/// Bytes that the requests to device memory move, and the least that they could.
fn bytes(analysis: &KernelAnalysis) -> Result<(f64, f64), String> {
    let (mut moved, mut least, mut unknown) = (0.0, 0.0, 0);
    for access in &analysis.facts.accesses {
        if !matches!(access.space, Space::Global | Space::Texture) || access.requests == Some(0.0) {
            continue;
        }
        let unit = f64::from(access.transaction_bytes);
        let figures = (
            access.requests,
            access.bytes_moved_per_request,
            access.ideal_transactions_per_request,
        );
        if let (Some(requests), Some(bytes), Some(ideal)) = figures {
            moved += requests * bytes;
            least += requests * (ideal * unit).min(bytes);
        } else {
            unknown += 1;
        }
    }
    if unknown > 0 {
        return Err(format!(
            "what {unknown} of its accesses to device memory move is not known"
        ));
    }
    Ok((moved, least))
}
