//! Measures what each model takes to answer, its kernel's facts being there.
//!
//! `cargo bench -p warplens-db --bench models` measures our own kernels; with `-- LIST` those that the file LIST
//! names, one a line: `FILE KERNEL GRID BLOCK [-DNAME=VALUE]… [NAME=VALUE]…`, paths from LIST's folder, `#` before a
//! remark. `-- --gpu=NAME` takes another GPU.

#![allow(
    clippy::print_stdout,
    reason = "a benchmark's report goes to standard output"
)]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, LaunchValues, Overrides};
use warplens_machine::Profiles;
use warplens_models::{ModelId, Question, estimate};
use warplens_syntax::{Document, Language};

const ROUNDS: usize = 9;
const GPU: &str = "quadro-k620";

/// A kernel with its launch.
#[derive(Default)]
struct Case {
    file: PathBuf,
    /// Empty: every kernel of the file.
    kernel: String,
    settings: Settings,
    values: LaunchValues,
}

fn main() {
    let list = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with("--"));
    let cases = match list {
        Some(list) => listed(Path::new(&list)),
        None => own(),
    };
    let gpu =
        std::env::args().find_map(|argument| Some(argument.strip_prefix("--gpu=")?.to_owned()));
    let gpu = gpu.as_deref().unwrap_or(GPU);
    Profiles::builtin().get(gpu).expect("a GPU's name");
    let mut totals = [Duration::ZERO; ModelId::ALL.len()];
    let mut kernels = 0;
    for case in &cases {
        kernels += measure(case, gpu, &mut totals);
    }
    let means = totals.map(|total| total / kernels.max(1));
    print_row("mean", &means);
}

fn measure(case: &Case, gpu: &str, totals: &mut [Duration]) -> u32 {
    let source = std::fs::read_to_string(&case.file).expect("a kernel's file");
    let language = match case.file.extension().and_then(|end| end.to_str()) {
        Some("cl") => Language::OpenCl,
        _ => Language::Cuda,
    };
    let overrides = Overrides {
        argument: case.values.clone(),
        ..Overrides::default()
    };
    let settings = Settings {
        gpu: Some(gpu.to_owned()),
        ..case.settings.clone()
    };
    let file = Engine::new(Profiles::builtin())
        .analyze(
            &Document::new(&source, language),
            &case.file,
            &settings,
            &overrides,
            &Cancel::default(),
        )
        .expect("not cancelled");
    let mut kernels = 0;
    for kernel in &file.kernels {
        let analysis = &kernel.analysis;
        let name = &analysis.facts.name;
        if !case.kernel.is_empty() && *name != case.kernel {
            continue;
        }
        kernels += 1;
        let question = Question::of(&analysis.input);
        let mut row = [Duration::ZERO; ModelId::ALL.len()];
        let mut silent = String::new();
        for (at, model) in ModelId::ALL.into_iter().enumerate() {
            let mut times: Vec<Duration> = (0..ROUNDS)
                .map(|_| {
                    let started = Instant::now();
                    std::hint::black_box(estimate(model, &question));
                    started.elapsed()
                })
                .collect();
            times.sort_unstable();
            row[at] = times[ROUNDS / 2];
            totals[at] += row[at];
            if estimate(model, &question).cycles.is_none() {
                silent.push_str(", no answer of ");
                silent.push_str(model.name());
            }
        }
        print_row(&format!("{name}{silent}"), &row);
    }
    if kernels == 0 {
        println!("{}: no kernel {}", case.file.display(), case.kernel);
    }
    kernels
}

fn print_row(name: &str, times: &[Duration]) {
    let figures: Vec<String> = ModelId::ALL
        .into_iter()
        .zip(times)
        .map(|(model, time)| format!("{} {:.3}", model.name(), time.as_secs_f64() * 1e3))
        .collect();
    println!("{} ms  {name}", figures.join("  "));
}

fn own() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels");
    let entries = std::fs::read_dir(folder).expect("our kernels");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|end| end == "cu"))
        .collect();
    files.sort();
    files
        .into_iter()
        .map(|file| Case {
            file,
            ..Case::default()
        })
        .collect()
}

fn listed(list: &Path) -> Vec<Case> {
    let text = std::fs::read_to_string(list).expect("the list");
    let folder = list.parent().unwrap_or(Path::new("."));
    let lines = text.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| {
            let mut words = line.split_whitespace();
            let mut next = || words.next().expect("FILE KERNEL GRID BLOCK");
            let mut case = Case {
                file: folder.join(next()),
                kernel: next().to_owned(),
                ..Case::default()
            };
            case.values.grid = Some(extent(next()));
            case.values.block = Some(extent(next()));
            for word in words {
                let (name, value) = word.split_once('=').expect("NAME=VALUE");
                if let Some(name) = name.strip_prefix("-D") {
                    let defines = &mut case.settings.defines;
                    defines.insert(name.to_owned(), value.to_owned());
                } else {
                    let value = value.parse().expect("a whole number");
                    case.values.args.insert(name.to_owned(), value);
                }
            }
            case
        })
        .collect()
}

/// `X[,Y[,Z]]`.
fn extent(text: &str) -> [u64; 3] {
    let mut extent = [1; 3];
    for (axis, number) in extent.iter_mut().zip(text.split(',')) {
        *axis = number.parse().expect("a whole number");
    }
    extent
}
