//! Kernels that the target cannot run are judged on the nearest GPU that can.

use std::path::Path;

use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, FileAnalysis, Overrides, Severity};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

/// A column is stored: worth a finding wherever it runs.
const COLUMN: &str = "int i = threadIdx.x; out[i * 4096 + blockIdx.x] = in[blockIdx.x * 256 + i];";

fn checked(text: &str, gpu: Option<&str>, compare: &[&str]) -> FileAnalysis {
    let engine = Engine::new(Profiles::builtin());
    let document = Document::new(text, Language::Cuda);
    let settings = Settings {
        gpu: gpu.map(str::to_owned),
        compare: compare.iter().map(|id| (*id).to_owned()).collect(),
        ..Settings::default()
    };
    let (overrides, cancel) = (Overrides::default(), Cancel::default());
    engine
        .analyze(&document, Path::new("k.cu"), &settings, &overrides, &cancel)
        .expect("not cancelled")
}

/// The loudest finding of a rule, and whether its details name a GPU.
fn found(file: &FileAnalysis, rule: &str) -> Option<(Severity, bool)> {
    let of_rule = file.findings.iter().filter(|finding| finding.rule == rule);
    of_rule
        .map(|finding| {
            let judged = finding
                .details
                .iter()
                .any(|line| line.starts_with("judged on "));
            (finding.severity, judged)
        })
        .max()
}

fn tile_of_200_kilobytes() -> String {
    format!(
        "// warplens: block=(256) grid=(4096) dynamic_shared=200000\n\
         __global__ void k(float *out, const float *in) {{ extern __shared__ float s[]; {COLUMN} s[i] = 0; }}\n"
    )
}

#[test]
fn shared_memory_that_the_default_target_lacks_is_had_on_a_later_one() {
    let file = checked(&tile_of_200_kilobytes(), None, &[]);
    assert_eq!(
        found(&file, "launch/impossible"),
        Some((Severity::Hint, true))
    );
    let column = found(&file, "mem/column-walk").or_else(|| found(&file, "mem/strided"));
    assert!(matches!(column, Some((_, true))), "{:#?}", file.findings);
    // So is its time, by the GPU that it is of.
    let analysis = &file.kernels[0].analysis;
    assert_eq!(analysis.profile.architecture, "sm_90");
    assert!(analysis.estimate().time_ms.is_some());
    assert_eq!(file.profile.id, "a100-sxm4-40gb");
}

#[test]
fn a_gpu_that_is_named_stays_the_target() {
    let text = tile_of_200_kilobytes();
    let file = checked(&text, Some("a100-sxm4-40gb"), &[]);
    assert_eq!(
        found(&file, "launch/impossible"),
        Some((Severity::Information, false))
    );
    assert_eq!(found(&file, "mem/column-walk"), None);
    assert_eq!(file.kernels[0].analysis.profile.id, "a100-sxm4-40gb");
    // But for one that it is to be compared with.
    let file = checked(&text, Some("a100-sxm4-40gb"), &["h100-sxm5"]);
    assert_eq!(
        found(&file, "launch/impossible"),
        Some((Severity::Hint, true))
    );
}

#[test]
fn what_no_gpu_has_is_an_error() {
    let text = tile_of_200_kilobytes().replace("200000", "300000");
    let file = checked(&text, None, &[]);
    assert_eq!(
        found(&file, "launch/impossible"),
        Some((Severity::Error, false))
    );
}

#[test]
fn instructions_and_bodies_of_a_later_architecture_are_looked_at_on_it() {
    let setmaxnreg = "asm volatile(\"setmaxnreg.inc.sync.aligned.u32 240;\");";
    let text = format!(
        "// warplens: block=(256) grid=(4096)\n\
         __global__ void k(float *out, const float *in) {{ {setmaxnreg} {COLUMN} }}\n\
         // warplens: block=(256) grid=(4096)\n\
         __global__ void l(float *out, const float *in) {{\n\
         #if __CUDA_ARCH__ >= 900\n{COLUMN}\n#endif\n}}\n"
    );
    let file = checked(&text, None, &[]);
    assert_eq!(
        found(&file, "launch/missing-instruction"),
        Some((Severity::Hint, true))
    );
    let judged = |kernel: &str| {
        let mut findings = file.findings.iter();
        findings.any(|one| {
            one.rule.starts_with("mem/")
                && one.kernel.as_deref() == Some(kernel)
                && one.details.iter().any(|line| line.contains("sm_90"))
        })
    };
    assert!(judged("k") && judged("l"), "{:#?}", file.findings);
    // What the target runs says nothing of another.
    let text = text.replace(setmaxnreg, "").replace(">= 900", ">= 800");
    let file = checked(&text, None, &[]);
    let mut findings = file.findings.iter();
    assert!(!findings.any(|one| one.details.iter().any(|line| line.contains("judged on"))));
}
