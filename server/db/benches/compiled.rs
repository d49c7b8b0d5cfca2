//! Measures what compiling a kernel takes beside analysing it, and what is estimated anew after a change. Another
//! constant of floating point compiles nothing anew where it changes no instruction.
//!
//! `cargo bench -p warplens-db --bench compiled`

#![allow(
    clippy::print_stdout,
    reason = "a benchmark's report goes to standard output"
)]

mod kernel;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use warplens_codegen::compile;
use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, LaunchValues, Overrides};
use warplens_facts::facts::{Launch, Source};
use warplens_facts::{Request, analyze};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

const ROUNDS: usize = 200;
/// What issue 5 asks for of a kernel of 100 lines.
const COMPILED: Duration = Duration::from_millis(2);
/// The same after a change of a constant.
const CHANGED: Duration = Duration::from_micros(500);
/// Lines of the largest kernel.
const LINES: usize = 100;

/// A kernel under its launch, and the constant of it that is swept.
struct Case {
    source: String,
    kernel: &'static str,
    grid: [u64; 3],
    block: [u64; 3],
    arguments: &'static [&'static str],
    value: i64,
    /// Where the constant is: before it, itself, behind it.
    constant: [&'static str; 3],
}

impl Case {
    /// With another constant.
    fn changed(&self, round: usize) -> String {
        let [before, constant, behind] = self.constant;
        let written = format!("{before}{constant}{behind}");
        assert!(self.source.contains(&written), "{written}");
        self.source
            .replace(&written, &format!("{before}{}.25f{behind}", round + 2))
    }

    fn overrides(&self, grid: [u64; 3], value: i64) -> Overrides {
        let named = |name: &&str| ((*name).to_owned(), value);
        let values = LaunchValues {
            grid: Some(grid),
            block: Some(self.block),
            args: self.arguments.iter().map(named).collect(),
            ..LaunchValues::default()
        };
        Overrides {
            set_launch: [(self.kernel.to_owned(), values)].into(),
            ..Overrides::default()
        }
    }
}

fn cases() -> Vec<Case> {
    vec![
        Case {
            source: ours("matmul.cu"),
            kernel: "matmul_tiled",
            grid: [64, 64, 1],
            block: [16, 16, 1],
            arguments: &["n"],
            value: 1024,
            constant: ["float sum = ", "0.0f", ";\n  for (int k0"],
        },
        Case {
            source: ours("stencil.cu"),
            kernel: "stencil_tiled",
            grid: [32, 128, 1],
            block: [32, 8, 1],
            arguments: &["nx", "ny"],
            value: 1024,
            constant: ["", "0.2f", " * (tile"],
        },
        Case {
            source: ours("reduction.cu"),
            kernel: "reduce_shuffle",
            grid: [512, 1, 1],
            block: [256, 1, 1],
            arguments: &["n"],
            value: 1 << 20,
            constant: ["partial[lane] : ", "0.0f", ""],
        },
        Case {
            source: generated(),
            kernel: "generated",
            grid: [256, 1, 1],
            block: [256, 1, 1],
            arguments: &["n"],
            value: 1 << 16,
            constant: ["* ", "1.5f", " "],
        },
    ]
}

/// The kernels of a file of `tests/kernels`, without the host's part.
fn ours(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels");
    let source = std::fs::read_to_string(folder.join(name)).expect("our kernel");
    let kernels = source.split("int main").next();
    kernels.expect("a beginning").to_owned()
}

/// A kernel that loads, computes, branches, loops and stores.
fn generated() -> String {
    let mut source =
        "__global__ void generated(const float *a, const float *b, float *out, int n) {\n    \
                      int i = blockIdx.x * blockDim.x + threadIdx.x;\n    \
                      float v0 = a[i];\n"
            .to_owned();
    for group in 1..=(LINES - 4) / 4 {
        let before = group - 1;
        let next = if group % 6 == 0 {
            format!("for (int j = 0; j < 64; ++j) v{group} += b[j * n + i] * 0.5f;")
        } else {
            format!("v{group} = v{group} * b[i + {group} * n] + v{before};")
        };
        let written = write!(
            source,
            "    float v{group} = a[i + {group} * n] * {group}.5f + v{before};\n    {next}\n    \
             if (v{group} > {group}.0f) v{group} -= sqrtf(v{before});\n    \
             out[i + {group} * n] = v{group};\n"
        );
        written.expect("a string");
    }
    source.push_str("}\n");
    assert_eq!(source.lines().count(), LINES);
    source
}

fn main() {
    println!("medians of {ROUNDS}");
    let mut late = false;
    for case in cases() {
        late |= measure(&case);
    }
    if late {
        println!("asked for: {COMPILED:?} to compile, {CHANGED:?} after a change of a constant");
        std::process::exit(1);
    }
}

/// True where it takes longer than asked for.
fn measure(case: &Case) -> bool {
    let profile = Profiles::builtin()
        .get("a100-sxm4-40gb")
        .expect("the default GPU");
    let options = warplens_codegen::Options::default();
    let kernel = kernel::read(&case.source, case.kernel);
    let compiled = compile(&kernel, &options);
    assert!(compiled.complete);
    let compiling = median(|_| compile(&kernel, &options));
    let changed: Vec<warplens_ir::Kernel> = (0..ROUNDS)
        .map(|round| kernel::read(&case.changed(round), case.kernel))
        .collect();
    // As the engine does it: one shape is compiled once.
    let mut made = BTreeMap::from([(kernel.shape(), compiled.clone())]);
    let compiling_changed = median(|round| {
        let kernel = &changed[round];
        let known = made.entry(kernel.shape());
        known.or_insert_with(|| compile(kernel, &options)).total()
    });

    let arguments: Vec<(String, i64, bool)> = case
        .arguments
        .iter()
        .map(|name| ((*name).to_owned(), case.value, false))
        .collect();
    let request = Request {
        kernel: &kernel,
        launch: Launch {
            grid: case.grid,
            block: case.block,
            dynamic_shared_bytes: 0,
            block_source: Source::Directive,
            grid_source: Source::Directive,
            shared_source: Source::Directive,
        },
        profile: &profile,
        arguments: &arguments,
        covers: &[],
        probabilities: &[],
        contents: &[],
        reals: &[],
        extents: &[],
        boxes: &[],
        cluster: None,
    };
    let analysing = median(|_| analyze(&request));

    // As a session asks: the text is there, and what did not change is known.
    let engine = Engine::new(Profiles::builtin());
    let settings = Settings::default();
    let path = Path::new("/code/kernel.cu");
    let estimated = |document: &Document, overrides: &Overrides| {
        let file = engine.analyze(document, path, &settings, overrides, &Cancel::default());
        let kernels = file.expect("not cancelled").kernels;
        let mut found = kernels.iter().map(|kernel| &kernel.analysis);
        let found = found.find(|found| found.facts.name == case.kernel);
        found.expect("the kernel").estimate().cycles
    };
    let document = Document::new(&case.source, Language::Cuda);
    let as_it_is = case.overrides(case.grid, case.value);
    estimated(&document, &as_it_is);
    let constant = {
        let mut edited = document.clone();
        let [before, constant, behind] = case.constant;
        let written = case.source.find(&format!("{before}{constant}{behind}"));
        let start = written.expect("the constant") + before.len();
        let mut end = start + constant.len();
        median(|round| {
            let new = format!("{}.25f", round + 2);
            edited.edit(start..end, &new);
            end = start + new.len();
            estimated(&edited, &as_it_is)
        })
    };
    let launch = median(|round| {
        let [x, y, z] = case.grid;
        let grid = [x + round as u64 + 1, y, z];
        estimated(&document, &case.overrides(grid, case.value))
    });
    let argument = median(|round| {
        let value = case.value - 32 * (round as i64 + 1);
        estimated(&document, &case.overrides(case.grid, value))
    });
    println!(
        "{}: {} instructions compiled in {compiling:?} ({:.2} of its analysis, {analysing:?}), in \
         {compiling_changed:?} with another constant; estimated anew, all in all, after a constant in {constant:?}, \
         after the launch in {launch:?}, after an argument in {argument:?}",
        case.kernel,
        compiled.total(),
        compiling.as_secs_f64() / analysing.as_secs_f64(),
    );
    compiling > COMPILED || compiling_changed > CHANGED
}

fn median<T>(mut work: impl FnMut(usize) -> T) -> Duration {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|round| {
            let started = Instant::now();
            let done = work(round);
            let took = started.elapsed();
            drop(done);
            took
        })
        .collect();
    times.sort_unstable();
    times[ROUNDS / 2]
}
