//! The measurements of Lai and Seznec 2011, tables 2 to 5, from the kernels' source to the timing model's scaling curves.
//!
//! The paper does not say how much each warp has to do. So one factor for each kernel makes the measurement of one warp
//! and the model's cycles the same; the other measurements are held against it.

use std::path::Path;
use std::sync::Arc;

use warplens_engine::settings::Settings;
use warplens_engine::{Cancel, Engine, KernelAnalysis, Overrides};
use warplens_hardware::Profiles;
use warplens_models::{Factor, ModelId};
use warplens_syntax::{Document, Language};

const ABT: &str = include_str!("../../../tests/kernels/matmul_abt16.cu");
const HOPPING: &str = include_str!("../../../tests/kernels/hopping.cu");

fn analysed(
    text: &str,
    name: &str,
    warps_per_sm: Option<u32>,
    without: &[Factor],
) -> Arc<KernelAnalysis> {
    let settings = Settings {
        gpu: Some("gtx-280".to_owned()),
        ..Settings::default()
    };
    let overrides = Overrides {
        warps_per_sm,
        without: without.to_vec(),
        ..Overrides::default()
    };
    let file = Engine::new(Profiles::builtin())
        .analyze(
            &Document::new(text, Language::Cuda),
            Path::new("kernel.cu"),
            &settings,
            &overrides,
            &Cancel::default(),
        )
        .expect("not cancelled");
    let mut kernels = file.kernels.iter();
    let found = kernels.find(|found| found.analysis.facts.name == name);
    Arc::clone(&found.unwrap_or_else(|| panic!("no kernel {name}")).analysis)
}

/// Cycles in which so many warps run together on an SM.
fn wave(text: &str, name: &str, warps: u32, without: &[Factor]) -> f64 {
    let analysis = analysed(text, name, Some(warps), without);
    let estimate = analysis
        .estimate_by(ModelId::Timing, &Cancel::default())
        .expect("not cancelled");
    assert!(estimate.cycles.is_some(), "{name}: {:?}", estimate.why);
    assert_eq!(estimate.detail["active_warps"], f64::from(warps), "{name}");
    assert_eq!(estimate.detail["simulated_to_the_end"], 1.0, "{name}");
    println!("{name} {warps} {:?} {} {:?}", without, estimate.detail["wave_cycles"], estimate.breakdown);
    estimate.detail["wave_cycles"]
}

/// What the model says of each point relative to what was measured, the first point being the scale.
fn curve(text: &str, name: &str, warps: &[u32], measured: &[f64]) -> Vec<f64> {
    let cycles: Vec<f64> = warps
        .iter()
        .map(|warps| wave(text, name, *warps, &[]))
        .collect();
    let scale = measured[0] / cycles[0];
    let ratios: Vec<f64> = cycles.iter().zip(measured).map(|(cycles, measured)| cycles * scale / measured).collect();
    println!("{name} scale {scale} {ratios:.3?}");
    ratios
}

const WARPS: [u32; 5] = [1, 2, 4, 8, 16];
const TABLE_2: [f64; 5] = [55605.0, 55803.0, 71465.0, 107668.0, 186958.0];
const TABLE_3: [f64; 5] = [17511.0, 17291.0, 18330.0, 23228.0, 33227.0];
const TABLE_4: [f64; 3] = [51053.0, 68383.0, 122430.0];
const TABLE_5: [f64; 3] = [37926.0, 47038.0, 73100.0];

#[test]
fn tables() {
    let names: Vec<String> = std::env::var("KERNELS").unwrap_or("matmul_abt16_conflict,matmul_abt16_padded,hopping_aos,hopping_soa".into()).split(',').map(str::to_owned).collect();
    curve(ABT, &names[0], &WARPS, &TABLE_2);
    curve(ABT, &names[1], &WARPS, &TABLE_3);
    let scale = TABLE_2[0] / wave(ABT, &names[0], 1, &[]);
    for (w, m) in WARPS.iter().zip(TABLE_3) {
        println!("without {w}: {}", wave(ABT, &names[0], *w, &[Factor::BankConflicts]) * scale / m);
    }
    curve(HOPPING, &names[2], &WARPS[..3], &TABLE_4);
    curve(HOPPING, &names[3], &WARPS[..3], &TABLE_5);
}
