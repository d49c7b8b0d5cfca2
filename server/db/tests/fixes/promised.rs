//! What a code action promises is what comes of it: the gain in its title is the ratio of the times that are shown before and after.

use std::path::Path;

use warplens_advice::{State, VISIBLE_GAIN};
use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, FileAnalysis, Overrides, PlacedFix, PlacedKernel};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

use crate::actions::fixtures;

/// How far a promise and what comes of it may be apart.
const APART: f64 = 0.02;

/// The kernels that an edit touches, by name and the order in the file; those of the whole file where it touches none.
fn touched<'a>(file: &'a FileAnalysis, fix: &PlacedFix) -> Vec<(usize, &'a PlacedKernel)> {
    let inside = |kernel: &PlacedKernel| {
        let ends = kernel.start..=kernel.end;
        fix.edits
            .iter()
            .any(|(range, _)| ends.contains(&range.start))
    };
    let all = || file.kernels.iter().enumerate();
    let touched: Vec<_> = all().filter(|(_, kernel)| inside(kernel)).collect();
    if touched.is_empty() {
        return all().collect();
    }
    touched
}

#[test]
fn the_gain_in_a_title_is_that_of_the_times_before_and_after() {
    let mut held = 0;
    let mut broken = Vec::new();
    for fixture in fixtures() {
        let opened = fixture.open(&fixture.text);
        let before = opened.analysis();
        for fix in opened.fixes().iter().filter(|fix| fix.complete) {
            let after = fixture.open(&opened.with(fix)).analysis();
            let ratios = touched(&before, fix)
                .into_iter()
                .filter_map(|(at, kernel)| {
                    let was = kernel.analysis.estimate().time_ms?;
                    let is = after.kernels.get(at)?.analysis.estimate().time_ms?;
                    (is > 0.0).then_some(was / is)
                });
            // The kernel that it is about is the one that it changes most.
            let change = |ratio: &f64| ratio.ln().abs();
            let Some(ratio) = ratios.max_by(|a, b| change(a).total_cmp(&change(b))) else {
                continue;
            };
            if (fix.gain / ratio - 1.0).abs() <= APART {
                held += 1;
            } else {
                let name = fixture.path.file_name().unwrap_or_default();
                broken.push(format!(
                    "{} ({}): {}: promised {:.3}x, comes to {ratio:.3}x",
                    fix.rule,
                    name.to_string_lossy(),
                    fix.title,
                    fix.gain
                ));
            }
        }
    }
    broken.sort_unstable();
    assert!(
        broken.is_empty(),
        "{} of {} promises are broken:\n{}",
        broken.len(),
        held + broken.len(),
        broken.join("\n")
    );
    if std::env::var("FIXTURE").is_err() {
        assert!(held > 100, "{held} promises were looked at");
    }
}

/// How far what a finding says and what the best of its actions promises may be apart where an action pays for it: with a tile
/// that is filled and waited for, with shuffles, with threads that do nothing, with more shared memory.
const PAYS: [(&str, f64); 6] = [
    ("mem/column-walk", 0.14),
    ("mem/redundant-global", 0.14),
    ("atomic/hot-address", 0.06),
    ("launch/not-warp-multiple", 0.06),
    ("mem/aos", 0.025),
    ("smem/bank-conflict", 0.05),
];

#[test]
fn what_a_finding_gains_is_what_its_best_action_gains() {
    let mut held = 0;
    let mut broken = Vec::new();
    for fixture in fixtures() {
        let opened = fixture.open(&fixture.text);
        for finding in &opened.analysis().findings {
            let is_stable =
                warplens_advice::find(finding.rule).is_some_and(|rule| rule.state == State::Stable);
            let fixes = opened.fixes_in(finding.range.clone());
            let own = fixes
                .iter()
                .filter(|fix| fix.complete && fix.rule == finding.rule);
            let Some(best) = own.max_by(|a, b| a.gain.total_cmp(&b.gain)) else {
                continue;
            };
            if !is_stable {
                continue;
            }
            let pays = PAYS.iter().find(|(rule, _)| *rule == finding.rule);
            let apart = pays.map_or(APART, |(_, apart)| *apart);
            // What is not visible is not told apart.
            let told: fn(f64) -> f64 = |gain| if gain < VISIBLE_GAIN { 1.0 } else { gain };
            let by = |of: fn(f64) -> f64| (of(finding.gain) / of(best.gain)).ln().abs();
            if by(told).min(by(|gain| gain)) <= apart {
                held += 1;
            } else {
                let name = fixture.path.file_name().unwrap_or_default();
                broken.push(format!(
                    "{} ({}): {}: {}",
                    finding.rule,
                    name.to_string_lossy(),
                    finding.message.lines().next().unwrap_or_default(),
                    best.title
                ));
            }
        }
    }
    assert!(
        broken.is_empty(),
        "{} of {} findings promise something else:\n{}",
        broken.len(),
        held + broken.len(),
        broken.join("\n")
    );
    if std::env::var("FIXTURE").is_err() {
        assert!(held > 60, "{held} findings were looked at");
    }
}

/// A sum of the block in shared memory; the condition, and what represents the thread behind it.
fn tree(condition: &str, takes: &str) -> String {
    format!(
        "// warplens: block=256 grid=262144 n=67108864\n\
         __global__ void tree(const float *in, float *out, int n) {{\n\
         \x20 __shared__ float s[256];\n\
         \x20 int t = threadIdx.x;\n\
         \x20 int i = blockIdx.x * blockDim.x + t;\n\
         \x20 s[t] = i < n ? in[i] : 0.0f;\n\
         \x20 __syncthreads();\n\
         \x20 for (int k = 1; k < blockDim.x; k *= 2) {{\n\
         \x20   {condition} {takes}\n\
         \x20   __syncthreads();\n\
         \x20 }}\n\
         \x20 if (t == 0) out[blockIdx.x] = s[0];\n\
         }}\n"
    )
}

fn analysis(text: &str) -> FileAnalysis {
    let document = Document::new(text, Language::Cuda);
    let (settings, overrides) = (Settings::default(), Overrides::default());
    Engine::new(Profiles::builtin())
        .analyze(
            &document,
            Path::new("tree.cu"),
            &settings,
            &overrides,
            &Cancel::default(),
        )
        .expect("not cancelled")
}

#[test]
fn a_branch_that_every_mth_thread_takes_gains_what_the_first_threads_take() {
    let time = |file: &FileAnalysis| file.kernels[0].analysis.estimate().time_ms.expect("a time");
    let twin = analysis(&tree(
        "int j = 2 * k * t;",
        "if (j < blockDim.x) s[j] += s[j + k];",
    ));
    for condition in [
        "if (t % (2 * k) == 0)",
        "if (!(t % (2 * k)))",
        "if ((t & (2 * k - 1)) == 0 && t + k < blockDim.x)",
        "if (threadIdx.x % (2 * k) == 0)",
    ] {
        let file = analysis(&tree(condition, "s[t] += s[t + k];"));
        let found = file.findings.iter();
        let gains = found.filter(|finding| finding.rule == "div/tid-branch");
        let gains: Vec<f64> = gains.map(|finding| finding.gain).collect();
        let ratio = time(&file) / time(&twin);
        assert!(ratio > 1.05, "{condition}: {ratio}");
        assert_eq!(gains.len(), 1, "{condition}");
        assert!(
            (gains[0] / ratio - 1.0).abs() <= APART,
            "{condition}: {gains:?}, {ratio}"
        );
    }
    // What else differs between the threads stays with them.
    let own = analysis(&tree("if (t % (2 * k) == 0)", "s[t] += s[t + k] + in[i];"));
    let own: Vec<f64> = own.findings.iter().map(|finding| finding.gain).collect();
    assert!(own.iter().all(|gain| *gain < 1.7), "{own:?}");
}
