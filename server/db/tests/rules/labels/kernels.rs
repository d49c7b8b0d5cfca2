//! The labelled kernels: `tests/labels/*.{cu,cl,hip}`, each with its launch and arguments in the directive above it.
//!
//! ```text
//! // warplens: block=(32,8) grid=(64,64) n=2048
//! // @with: rows=below(64)[2048] alpha=0.5        contents where they matter; arrays else have no end and any contents
//! // @instead: arith/pow: powf(x, 2.0f) => x * x  compiled both ways, see `compiler.tsv`
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, FileAnalysis, Overrides};
use warplens_machine::Profiles;
use warplens_oracle::{Argument, Dialect, Launch, ParameterKind, Program, Run};
use warplens_syntax::{Document, Language};

/// Blocks of a launch that are run.
const BLOCKS: u64 = 4;
/// Races are of one block; those at the border may have other ones.
const BLOCKS_WATCHED: u64 = 2;

/// A file of kernels, analysed.
pub struct Labelled {
    pub name: String,
    pub text: String,
    pub program: Program,
    pub analysis: FileAnalysis,
}

/// One kernel of it.
pub struct Kernel<'a> {
    pub file: &'a Labelled,
    pub name: String,
    /// Lines, from 1.
    pub lines: std::ops::RangeInclusive<u32>,
    launch: Launch,
    /// What the directive and `@with` say.
    values: BTreeMap<String, String>,
    /// Which of the analysis.
    pub index: usize,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The labelled files, by name; those of `tests/kernels` that run on any contents with them.
pub fn files() -> Vec<Labelled> {
    let engine = Engine::new(Profiles::builtin());
    let folder = root().join("tests/labels");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder)
        .expect("tests/labels")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|kind| kind == "cu" || kind == "cl" || kind == "hip")
        })
        .collect();
    // Not those that need contents; a pointer to local memory is no array to the interpreter's caller (scan.cl).
    for name in [
        "transpose",
        "reduction",
        "stencil",
        "convolution",
        "spmv",
        "scan",
    ] {
        for kind in ["cu", "cl"] {
            let path = root().join(format!("tests/kernels/{name}.{kind}"));
            let runs = path.exists() && !path.ends_with("scan.cl");
            paths.extend(runs.then_some(path));
        }
    }
    paths.sort();
    paths.iter().map(|path| read(&engine, path)).collect()
}

fn read(engine: &Engine, path: &Path) -> Labelled {
    let name = path
        .strip_prefix(root().join("tests"))
        .expect("a file of tests")
        .display()
        .to_string();
    let text = std::fs::read_to_string(path).expect("readable");
    let language = Language::from_path(path).expect("a language of ours");
    let dialect = match path.extension() {
        Some(kind) if kind == "cl" => Dialect::OpenCl,
        _ => Dialect::Cuda,
    };
    let settings = Settings {
        preview: true,
        ..Settings::default()
    };
    let document = Document::new(&text, language);
    let analysis = engine
        .analyze(
            &document,
            path,
            &settings,
            &Overrides::default(),
            &Cancel::default(),
        )
        .expect("not cancelled");
    let program = Program::read(&text, dialect).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(program.unread(), [], "{name}");
    Labelled {
        name,
        text,
        program,
        analysis,
    }
}

/// `name=value` words, where brackets may hold spaces.
fn pairs(text: &str) -> BTreeMap<String, String> {
    text.split_whitespace()
        .filter_map(|word| word.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// An array's contents: `float[N]`, `below(K)[N]`, `rows(K)[N]` (ascending by about K), `zero[BYTES]`.
fn contents(text: &str, seed: u64) -> Option<Vec<u8>> {
    let (kind, count) = text.strip_suffix(']')?.split_once('[')?;
    let count: usize = count.parse().expect("how many");
    let mut state = 7 + seed;
    let mut next = || {
        // Knuth's MMIX.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let of = |name: &str| -> Option<u64> {
        let number = kind
            .strip_prefix(name)?
            .strip_prefix('(')?
            .strip_suffix(')')?;
        number.parse().ok()
    };
    Some(match (kind, of("below"), of("rows")) {
        ("zero", ..) => vec![0; count],
        ("float", ..) => (0..count)
            .flat_map(|_| (next() as f32 / (1 << 28) as f32 - 4.0).to_le_bytes())
            .collect(),
        (_, Some(most), _) => (0..count)
            .flat_map(|_| ((next() % most.max(1)) as i32).to_le_bytes())
            .collect(),
        (_, _, Some(each)) => {
            let mut at = 0;
            (0..count)
                .flat_map(|_| {
                    let here = at as i32;
                    at += next() % (2 * each);
                    here.to_le_bytes()
                })
                .collect()
        }
        _ => panic!("`{text}` is no array"),
    })
}

impl Labelled {
    /// The kernels that are launched.
    pub fn kernels(&self) -> Vec<Kernel<'_>> {
        let all = self.analysis.kernels.iter().enumerate();
        all.filter(|(_, placed)| placed.analysis.launch_known)
            .map(|(index, placed)| {
                let analysis = &placed.analysis;
                let line = placed.line as usize;
                let above: Vec<&str> = self.text.lines().take(line).collect();
                let comments = above
                    .iter()
                    .rev()
                    .take_while(|line| line.trim_start().starts_with("//"));
                let mut values = BTreeMap::new();
                for comment in comments {
                    let said = comment.trim_start_matches('/').trim_start();
                    for mark in ["warplens:", "@with:"] {
                        if let Some(rest) = said.strip_prefix(mark) {
                            values.extend(pairs(rest));
                        }
                    }
                }
                let text = &self.text[placed.start..placed.end];
                let last = placed.line + 1 + text.matches('\n').count() as u32;
                let launch = &analysis.facts.launch;
                Kernel {
                    file: self,
                    name: analysis.facts.name.clone(),
                    lines: placed.line + 1..=last,
                    launch: Launch {
                        grid: launch.grid.map(|n| n as u32),
                        block: launch.block.map(|n| n as u32),
                        dynamic_shared_bytes: launch.dynamic_shared_bytes,
                        template: analysis.template_args.iter().cloned().collect(),
                        checked: false,
                        steps: 400_000_000,
                        blocks: BLOCKS,
                        ..Launch::default()
                    },
                    values,
                    index,
                }
            })
            .collect()
    }
}

impl Kernel<'_> {
    /// A name for messages and for `compiler.tsv`.
    pub fn id(&self) -> String {
        format!("{} {}", self.file.name, self.name)
    }

    /// Runs some of its blocks on contents of a number.
    pub fn run(&self, seed: u64) -> Result<Run, String> {
        self.launched(&self.launch, seed)
    }

    /// Runs fewer, watched for races, with the barriers of a line only holding warps together.
    pub fn watched(&self, narrowed: Option<u32>) -> Result<Run, String> {
        let launch = Launch {
            races: true,
            narrowed,
            blocks: BLOCKS_WATCHED,
            ..self.launch.clone()
        };
        self.launched(&launch, 0)
    }

    fn launched(&self, launch: &Launch, seed: u64) -> Result<Run, String> {
        let launch = Launch {
            contents: seed,
            ..launch.clone()
        };
        let mut arguments = Vec::new();
        for (name, takes) in self.file.program.signature(&self.name) {
            let given = self.values.get(&name).map(String::as_str);
            arguments.push(match (takes, given) {
                (ParameterKind::Array, None) => Argument::Endless,
                (ParameterKind::Array, Some(text)) => match text.strip_prefix("shared") {
                    Some(bytes) => {
                        Argument::Shared(bytes.trim_matches(['[', ']']).parse().expect("bytes"))
                    }
                    None => Argument::Buffer(contents(text, seed).expect("an array's contents")),
                },
                (ParameterKind::Whole, Some(text)) => {
                    Argument::Int(text.parse().expect("an integer"))
                }
                (ParameterKind::Real, Some(text)) => {
                    Argument::Float(text.parse().expect("a number"))
                }
                (ParameterKind::Real, None) => Argument::Float(0.5),
                (ParameterKind::Whole, None) => {
                    return Err(format!("nothing is given for `{name}`"));
                }
                (ParameterKind::Other, _) => return Err(format!("`{name}` is a structure")),
            });
        }
        self.file
            .program
            .run(&self.name, &launch, &arguments)
            .map_err(|error| error.to_string())
    }

    /// Its lines with their numbers.
    pub fn text(&self) -> impl Iterator<Item = (u32, &str)> {
        (1u32..)
            .zip(self.file.text.lines())
            .filter(|(line, _)| self.lines.contains(line))
    }

    /// Comments above it that begin with a mark.
    pub fn marks(&self, mark: &str) -> Vec<String> {
        let above = *self.lines.start() as usize - 1;
        let lines: Vec<&str> = self.file.text.lines().take(above).collect();
        lines
            .iter()
            .rev()
            .take_while(|line| line.trim_start().starts_with("//"))
            .filter_map(|line| line.trim_start_matches('/').trim_start().strip_prefix(mark))
            .map(|rest| rest.trim().to_owned())
            .collect()
    }
}
