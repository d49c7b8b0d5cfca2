//! A compiler report: in force for the text that was compiled, the last one for a text that was edited since.

use std::collections::BTreeMap;
use std::path::Path;

use warplens_codegen::Class;
use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, FileAnalysis, Overrides, PlacedKernel, wire};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};
use warplens_toolchain::{CompilerReport, KernelReport};

const TWO: &str = "__global__ void twice(float *out) {\n    \
                   out[threadIdx.x] *= 2.0f;\n}\n\
                   __global__ void half(float *out) {\n    \
                   out[threadIdx.x] *= 0.5f;\n}\n";

fn path() -> &'static Path {
    Path::new("/code/two.cu")
}

fn said(name: &str, line: u32) -> KernelReport {
    let counts = BTreeMap::from([(Class::Ldg, 1), (Class::Fmul, 13)]);
    KernelReport {
        name: name.to_owned(),
        registers: 141,
        static_shared_bytes: 256,
        stack_bytes: 16,
        spill_store_bytes: 8,
        spill_load_bytes: 12,
        instructions: counts.clone(),
        lines: vec![("/elsewhere/two.cu".into(), line, counts)],
        ..KernelReport::default()
    }
}

fn taken(engine: &Engine, settings: &Settings) -> Option<usize> {
    engine.take_report(
        &Document::new(TWO, Language::Cuda),
        path(),
        settings,
        &Overrides::default(),
        CompilerReport {
            kernels: vec![said("twice", 2), said("half", 5), said("other", 9)],
            tool: "nvcc 12.4".to_owned(),
        },
        &Cancel::default(),
    )
}

fn analysed(engine: &Engine, text: &str, overrides: &Overrides) -> FileAnalysis {
    let document = Document::new(text, Language::Cuda);
    let never = Cancel::default();
    engine
        .analyze(&document, path(), &Settings::default(), overrides, &never)
        .expect("not cancelled")
}

/// Instructions by line, all classes together.
fn lines(kernel: &PlacedKernel) -> BTreeMap<u32, u64> {
    let lines = kernel.compiled_lines().into_iter();
    lines
        .map(|(line, counts)| (line, counts.values().sum()))
        .collect()
}

fn resources(engine: &Engine, text: &str, gpu: &str) -> Vec<wire::Resources> {
    let document = Document::new(text, Language::Cuda);
    let (settings, overrides) = (Settings::default(), Overrides::default());
    let gpus = [gpu.to_owned()];
    let found = engine.estimate(&document, path(), &settings, &overrides, &gpus, &[], &[]);
    let results = found.expect("a GPU").results;
    results.into_iter().map(|result| result.resources).collect()
}

#[test]
fn a_word_replaces_estimates_until_its_kernel_is_edited() {
    let engine = Engine::new(Profiles::builtin());
    let before = analysed(&engine, TWO, &Overrides::default());
    assert!(
        before
            .kernels
            .iter()
            .all(|kernel| kernel.compiler.is_none())
    );
    assert_eq!(taken(&engine, &Settings::default()), Some(2));
    let after = resources(&engine, TWO, "a100-sxm4-40gb");
    for resources in &after {
        assert_eq!(resources.registers_source, "compiler");
        assert_eq!(resources.registers_per_thread, 141);
        assert_eq!(resources.static_shared_bytes, 256);
        assert_eq!(resources.local_bytes_per_thread, 16);
        assert_eq!(resources.spill_bytes, Some(8));
        let said = resources.compiler.as_ref().expect("said");
        assert!(said.current);
        assert_eq!(said.instructions["fmul"], 13);
    }
    let kernels = analysed(&engine, TWO, &Overrides::default()).kernels;
    assert!(
        kernels[0].analysis.input.occupancy.fraction
            < before.kernels[0].analysis.input.occupancy.fraction
    );
    assert_eq!(lines(&kernels[0]), BTreeMap::from([(1, 14)]));
    assert_eq!(lines(&kernels[1]), BTreeMap::from([(4, 14)]));

    // A comment above: the same kernels, elsewhere. An edit of one kernel: the other one's word stays in force.
    let edited = format!("// more\n{}", TWO.replace("0.5f", "0.25f + out[0]"));
    let edited = analysed(&engine, &edited, &Overrides::default());
    let [twice, half] = &edited.kernels[..] else {
        panic!("two kernels")
    };
    assert_eq!(twice.analysis.registers_source, "compiler");
    assert_eq!(lines(twice), BTreeMap::from([(2, 14)]));
    assert_eq!(half.analysis.registers_source, "estimated");
    assert_ne!(half.analysis.input.resources.registers_per_thread, 141);
    assert!(half.compiled_lines().is_empty());
    let stale = half.compiler.as_ref().expect("the last word");
    assert!(!stale.current && stale.report.kernel.registers == 141);

    // Taken back: it is what was compiled.
    let back = analysed(&engine, TWO, &Overrides::default());
    assert_eq!(back.kernels[1].analysis.registers_source, "compiler");
}

#[test]
fn a_word_is_about_one_architecture() {
    let engine = Engine::new(Profiles::builtin());
    taken(&engine, &Settings::default());
    for (gpu, source) in [
        ("a100-pcie-40gb", "compiler"),
        ("v100-sxm2-16gb", "estimated"),
    ] {
        let resources = resources(&engine, TWO, gpu);
        assert_eq!(resources[0].registers_source, source, "{gpu}");
        assert_eq!(resources[0].compiler.is_some(), source == "compiler");
    }
    // Said for the other one as well: both hold.
    let volta = Settings {
        gpu: Some("v100-sxm2-16gb".to_owned()),
        ..Settings::default()
    };
    taken(&engine, &volta);
    for gpu in ["a100-sxm4-40gb", "v100-sxm2-16gb"] {
        let resources = resources(&engine, TWO, gpu);
        assert_eq!(resources[0].registers_source, "compiler", "{gpu}");
    }
}

#[test]
fn the_user_goes_before_the_compiler_and_comparisons_do_without_it() {
    let engine = Engine::new(Profiles::builtin());
    taken(&engine, &Settings::default());
    let registers = |overrides: &Overrides| {
        let kernel = analysed(&engine, TWO, overrides).kernels.swap_remove(0);
        kernel.analysis.registers_source
    };
    let user = Overrides {
        registers: Some(64),
        ..Overrides::default()
    };
    assert_eq!(registers(&user), "user");
    let estimated = Overrides {
        estimated_only: true,
        ..Overrides::default()
    };
    assert_eq!(registers(&estimated), "estimated");
}
