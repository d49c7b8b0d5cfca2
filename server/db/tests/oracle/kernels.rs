//! Our own kernels (`tests/kernels`): every figure of the analysis against a run of the kernel, and the run's
//! results against the host's.

use std::path::Path;

use crate::problems::{problems, text_of};
use warplens_oracle::{Dialect, Program};

#[test]
fn a_run_computes_what_the_host_does() {
    for problem in problems() {
        let text = text_of(problem.file);
        let run = problem
            .case(&text)
            .run()
            .unwrap_or_else(|error| panic!("{}: {error}", problem.name()));
        assert_eq!(run.undefined, None, "{}", problem.name());
        for (which, want) in &problem.want {
            let found = problem.numbers(&run.buffers[*which]);
            let wrong = found.iter().zip(want).position(|(found, want)| {
                (found - want).abs() > 1e-5 * want.abs() + problem.absolute
            });
            assert_eq!(found.len(), want.len(), "{}", problem.name());
            assert_eq!(wrong, None, "{} array {which}: {found:?}", problem.name());
        }
    }
}

#[test]
fn every_figure_is_exact_and_what_a_run_counts() {
    let mut lines = Vec::new();
    for problem in problems() {
        let text = text_of(problem.file);
        let outcome = problem
            .case(&text)
            .compare()
            .unwrap_or_else(|error| panic!("{}: {error}", problem.name()));
        // What depends on data is open, and has to be called so.
        let open = if problem.on_data {
            assert!(!outcome.open.is_empty(), "{}", problem.name());
            Vec::new()
        } else {
            outcome.open
        };
        let all = outcome
            .wrong
            .into_iter()
            .chain(open)
            .chain(outcome.counts_wrong);
        lines.extend(all.map(|line| format!("{}: {line}", problem.name())));
    }
    assert!(
        lines.is_empty(),
        "{} disagreements\n{}",
        lines.len(),
        lines.join("\n")
    );
}

/// Programs in half precision and assembly, sub-groups, and blocks that read each other's shared memory, which the interpreter has not. Each holds its results against its host's, on a GPU;
/// its accesses are held against a GPU's counters (docs/accuracy/counters.md).
const BEYOND: [&str; 7] = [
    "attention.cu",
    "clusters.cu",
    "hgemm.cu",
    "inference.cu",
    "quantised.cu",
    "subgroups.cl",
    "warp_groups.cu",
];

#[test]
fn every_kernel_of_the_folder_is_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels");
    let known = problems();
    for entry in std::fs::read_dir(folder).expect("the folder") {
        let name = entry
            .expect("an entry")
            .file_name()
            .to_string_lossy()
            .into_owned();
        let dialect = match name.rsplit('.').next() {
            Some("cu") => Dialect::Cuda,
            Some("cl") => Dialect::OpenCl,
            _ => continue,
        };
        let program = Program::read(&text_of(&name), dialect)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        if BEYOND.contains(&name.as_str()) {
            continue;
        }
        assert_eq!(program.unread(), [], "{name}");
        for kernel in program.kernels() {
            let run = known
                .iter()
                .any(|problem| problem.file == name && problem.kernel == kernel);
            assert!(run, "{name}: nothing runs {kernel}");
        }
    }
}
