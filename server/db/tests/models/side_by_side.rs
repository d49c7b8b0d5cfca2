//! Every model on our kernels: what holds of any estimate, from any model.

use std::path::{Path, PathBuf};

use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, FileAnalysis, Overrides, PlacedKernel};
use warplens_machine::Profiles;
use warplens_models::{Breakdown, Estimate, Factor, ModelId};
use warplens_syntax::{Document, Language};

const GPUS: [&str; 2] = ["gtx-280", "a100-sxm4-40gb"];

fn kernels() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels");
    let entries = std::fs::read_dir(folder).expect("our kernels");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("readable").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|end| end == "cu" || end == "cl")
        })
        .collect();
    files.sort();
    files
}

/// A file's kernels on a GPU, a model's answer being shown first.
fn analysed(path: &Path, gpu: &str, model: ModelId, without: &[Factor]) -> FileAnalysis {
    let text = std::fs::read_to_string(path).expect("one of our kernels");
    let language = if path.extension().is_some_and(|end| end == "cl") {
        Language::OpenCl
    } else {
        Language::Cuda
    };
    let settings = Settings {
        gpu: Some(gpu.to_owned()),
        model: Some(model.name().to_owned()),
        ..Settings::default()
    };
    Engine::new(Profiles::builtin())
        .analyze(
            &Document::new(&text, language),
            path,
            &settings,
            &Overrides {
                without: without.to_vec(),
                ..Overrides::default()
            },
            &Cancel::default(),
        )
        .expect("not cancelled")
}

/// All parts.
fn sum(parts: &Breakdown) -> f64 {
    let Breakdown {
        compute,
        tensor,
        async_copy,
        memory_bandwidth,
        memory_latency,
        shared,
        divergence,
        synchronisation,
    } = *parts;
    compute
        + tensor
        + async_copy
        + memory_bandwidth
        + memory_latency
        + shared
        + divergence
        + synchronisation
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-6 * one.abs().max(other.abs()).max(1.0)
}

/// What is wrong with an estimate.
fn wrong(estimate: &Estimate, empty: bool) -> Vec<String> {
    let Some(cycles) = estimate.cycles else {
        let silent = estimate.why.as_ref().is_none_or(String::is_empty);
        return silent
            .then(|| "no answer and no reason".to_owned())
            .into_iter()
            .collect();
    };
    let mut wrong = Vec::new();
    if !(cycles.is_finite() && (cycles > 0.0 || (empty && cycles == 0.0))) {
        wrong.push(format!("{cycles} cycles"));
    }
    if estimate
        .time_ms
        .is_none_or(|time| !time.is_finite() || (time > 0.0) != (cycles > 0.0))
    {
        wrong.push(format!("{:?} ms", estimate.time_ms));
    }
    let parts = sum(&estimate.breakdown);
    if !near(parts, cycles) {
        wrong.push(format!("parts are {parts} of {cycles}"));
    }
    let lines: f64 = estimate.lines.iter().map(|(_, cycles)| cycles).sum();
    if !near(lines, cycles) {
        wrong.push(format!("lines are {lines} of {cycles}"));
    }
    if let Some([low, high]) = estimate.interval
        && !(low <= cycles && cycles <= high && low >= 0.0 && high.is_finite())
    {
        wrong.push(format!("{cycles} is not in {low} to {high}"));
    }
    let odd = estimate
        .detail
        .iter()
        .filter(|(_, value)| !value.is_finite());
    wrong.extend(odd.map(|(name, value)| format!("{name} is {value}")));
    wrong
}

#[test]
fn every_estimate_adds_up() {
    let mut wrongs = Vec::new();
    let mut answers = 0;
    for path in kernels() {
        for gpu in GPUS {
            let file = analysed(&path, gpu, ModelId::Auto, &[]);
            for kernel in &file.kernels {
                let analysis = &kernel.analysis;
                let empty = analysis.input.flow.nodes.is_empty();
                for model in ModelId::ALL {
                    let estimate = analysis.estimate_by(model, &Cancel::default());
                    let estimate = estimate.expect("not cancelled");
                    answers += usize::from(estimate.cycles.is_some());
                    let all = wrong(&estimate, empty);
                    let name = &analysis.facts.name;
                    wrongs.extend(
                        all.iter()
                            .map(|wrong| format!("{name} on {gpu} by {}: {wrong}", model.name())),
                    );
                }
                let shares: f64 = analysis.lines().iter().map(|(_, share)| share).sum();
                if !empty && analysis.estimate().cycles.is_some() && (shares - 1.0).abs() > 1e-6 {
                    wrongs.push(format!(
                        "{} on {gpu}: shares are {shares}",
                        analysis.facts.name
                    ));
                }
            }
        }
    }
    assert!(wrongs.is_empty(), "{}", wrongs.join("\n"));
    assert!(answers > 500, "{answers}");
}

/// Less to do is never slower. What a model itself says without a factor may be by a little, as what waits less may come
/// in a worse order; of simulations of a part of a loop a little more.
#[test]
fn what_is_taken_away_never_costs() {
    let files = [
        "images.cu",
        "matmul.cu",
        "reduction.cu",
        "svm.cu",
        "transpose.cu",
    ];
    let mut wrongs = Vec::new();
    for path in kernels() {
        if !files.iter().any(|file| path.ends_with(file)) {
            continue;
        }
        for (gpu, model) in GPUS
            .into_iter()
            .flat_map(|gpu| ModelId::ALL.map(|model| (gpu, model)))
        {
            for kernel in &analysed(&path, gpu, model, &[]).kernels {
                let analysis = &kernel.analysis;
                let now = analysis.estimate_by(model, &Cancel::default());
                let now = now.expect("not cancelled").cycles;
                for (factor, cycles, speedup) in analysis.what_if() {
                    let now = now.expect("what-ifs are of an answer");
                    let finite = speedup.is_finite() && cycles.is_finite();
                    if !finite || *speedup < 1.0 - 1e-9 || *cycles > now {
                        wrongs.push(format!(
                            "{} on {gpu} by {} without {}: {cycles} of {now}, {speedup} times",
                            analysis.facts.name,
                            model.name(),
                            factor.name()
                        ));
                    }
                }
            }
            if !model.simulates() {
                continue;
            }
            let whole = analysed(&path, gpu, model, &[]);
            for factor in Factor::ALL {
                let less = analysed(&path, gpu, model, &[factor]);
                for (whole, less) in whole.kernels.iter().zip(&less.kernels) {
                    let cycles = |kernel: &PlacedKernel| {
                        let estimate = kernel.analysis.estimate_by(model, &Cancel::default());
                        estimate.expect("not cancelled").cycles.unwrap_or(0.0)
                    };
                    let (now, then) = (cycles(whole), cycles(less));
                    if then > now * 1.03 {
                        wrongs.push(format!(
                            "{} on {gpu} by {} without {}: {then} of {now}",
                            whole.analysis.facts.name,
                            model.name(),
                            factor.name()
                        ));
                    }
                }
            }
        }
    }
    assert!(wrongs.is_empty(), "{}", wrongs.join("\n"));
}
