//! The fixtures of code actions: `server/advice/src/rules/<category>/<rule>/fixtures/fixed/*.cu` (or `.cl`), what their comments ask for, and what is
//! offered for them.
//!
//! ```text
//! // @fix: smem/bank-conflict         the rule whose actions are made, wherever in the file they are offered
//! // @title: Pad                      part of their titles; without, all
//! // @kernel: transpose               the kernel that runs; without, the file's first
//! // @template: T=float N=4           what its template's parameters are in the runs, where it is one
//! // @run: grid=(3,3) block=(32,8) in=float[4900] out=zero[19600] n=70
//! // @run-after: block=(8,32)         the same launch after the action, where that changes it
//! // @findings: stay                what is found stays, for part of its cure is left to be done by hand
//! // @tolerance: 1e-5                 of floating-point results; without, bytes are equal
//! ```
//!
//! Arguments stand under the kernel's parameter names: numbers, or arrays of random contents: `float[N]`, `double[N]`,
//! `int[N]`, `uint[N]`, `byte[N]`, `below(K)[N]` (integers), `zero[BYTES]`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use warplens_db::settings::Settings;
use warplens_db::{BlockChoices, Cancel, Engine, FileAnalysis, Overrides, PlacedFix, PlacedKernel};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

/// Random numbers, the same in every run.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        // Knuth's MMIX.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// One of that many.
    pub fn below(&mut self, count: usize) -> usize {
        (self.next() % count.max(1) as u64) as usize
    }

    /// Between -4 and 4.
    fn real(&mut self) -> f64 {
        self.next() as f64 / f64::from(1 << 28) - 4.0
    }
}

/// One launch and its arguments by name.
#[derive(Debug, Clone, Default)]
pub struct Run {
    pub values: BTreeMap<String, String>,
}

/// A fixture.
#[derive(Debug, Clone)]
pub struct Fixture {
    pub path: PathBuf,
    pub text: String,
    pub rule: String,
    pub title: String,
    pub kernel: Option<String>,
    /// The GPU, where the action pays on some alone.
    pub gpu: Option<String>,
    /// Types and numbers by the names of template parameters.
    pub template: BTreeMap<String, String>,
    pub runs: Vec<Run>,
    /// Launches after the action, one a run, or none.
    pub after: Vec<Run>,
    pub tolerance: Option<f64>,
    /// The action does not cure what is found by itself.
    pub findings_stay: bool,
}

/// Words outside brackets.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut depth) = (vec![String::new()], 0);
    for letter in line.chars() {
        depth +=
            i32::from(letter == '(' || letter == '[') - i32::from(letter == ')' || letter == ']');
        match words.last_mut() {
            Some(word) if depth > 0 || !letter.is_whitespace() => word.push(letter),
            _ => words.push(String::new()),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

impl Run {
    fn read(line: &str) -> Run {
        let pairs = words(line).into_iter().map(|word| {
            let (name, value) = word
                .split_once('=')
                .unwrap_or_else(|| panic!("`{word}` has no value"));
            (name.to_owned(), value.to_owned())
        });
        Run {
            values: pairs.collect(),
        }
    }

    /// `3`, `(3,3)`.
    pub fn extents(&self, name: &str) -> Option<[u32; 3]> {
        let text = self.values.get(name)?.trim_matches(['(', ')']);
        let mut extents = [1; 3];
        for (slot, part) in extents.iter_mut().zip(text.split(',')) {
            *slot = part
                .trim()
                .parse()
                .unwrap_or_else(|_| panic!("`{text}` is no size"));
        }
        Some(extents)
    }

    /// Bytes of an array, `None` for a number.
    pub fn contents(&self, name: &str, random: &mut Random) -> Option<Vec<u8>> {
        let text = &self.values[name];
        let (kind, count) = text.strip_suffix(']')?.rsplit_once('[')?;
        let count: usize = count
            .parse()
            .unwrap_or_else(|_| panic!("`{text}`: how many?"));
        let each = |make: &mut dyn FnMut() -> Vec<u8>| (0..count).flat_map(|_| make()).collect();
        Some(match kind {
            "zero" => vec![0; count],
            "float" => each(&mut || (random.real() as f32).to_le_bytes().to_vec()),
            "double" => each(&mut || random.real().to_le_bytes().to_vec()),
            "int" => each(&mut || {
                (random.next() as i32 % 100_000 - 50_000)
                    .to_le_bytes()
                    .to_vec()
            }),
            "uint" => each(&mut || (random.next() as u32).to_le_bytes().to_vec()),
            "byte" => each(&mut || vec![random.next() as u8]),
            _ => {
                let below = kind
                    .strip_prefix("below(")
                    .and_then(|rest| rest.strip_suffix(')'));
                let below: usize = below
                    .and_then(|below| below.parse().ok())
                    .unwrap_or_else(|| panic!("`{text}` is no array"));
                each(&mut || (random.below(below) as i32).to_le_bytes().to_vec())
            }
        })
    }
}

impl Fixture {
    fn read(path: &Path) -> Fixture {
        let text =
            fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut fixture = Fixture {
            path: path.to_owned(),
            rule: String::new(),
            title: String::new(),
            kernel: None,
            gpu: None,
            template: BTreeMap::new(),
            runs: Vec::new(),
            after: Vec::new(),
            tolerance: None,
            findings_stay: false,
            text: text.clone(),
        };
        for line in text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("// @"))
        {
            let (name, value) = line
                .split_once(':')
                .unwrap_or_else(|| panic!("`@{line}` has no value"));
            let value = value.trim();
            match name {
                "fix" => value.clone_into(&mut fixture.rule),
                "title" => value.clone_into(&mut fixture.title),
                "gpu" => fixture.gpu = Some(value.to_owned()),
                "kernel" => fixture.kernel = Some(value.to_owned()),
                "template" => fixture.template = Run::read(value).values,
                "run" => fixture.runs.push(Run::read(value)),
                "run-after" => fixture.after.push(Run::read(value)),
                "findings" => fixture.findings_stay = value == "stay",
                "tolerance" => fixture.tolerance = Some(value.parse().expect("a number")),
                _ => panic!("{}: `@{name}` is no option", path.display()),
            }
        }
        assert!(
            !fixture.rule.is_empty() && !fixture.runs.is_empty(),
            "{}: @fix and @run",
            path.display()
        );
        assert!(
            fixture.after.is_empty() || fixture.after.len() == fixture.runs.len(),
            "{}: as many launches after as before",
            path.display()
        );
        fixture
    }

    /// Analysed with every rule on, those that are tried out too.
    pub fn open(&self, text: &str) -> Opened {
        let language = Language::from_path(&self.path).expect("a language of ours");
        Opened {
            engine: Engine::new(Profiles::builtin()),
            document: Document::new(text, language),
            path: self.path.clone(),
            settings: Settings {
                preview: true,
                gpu: self.gpu.clone(),
                ..Settings::default()
            },
        }
    }

    /// True for the actions that the fixture is about.
    pub fn means(&self, fix: &PlacedFix) -> bool {
        fix.rule == self.rule && fix.title.contains(&self.title)
    }
}

/// A text with what analyses it.
pub struct Opened {
    engine: Engine,
    document: Document,
    path: PathBuf,
    settings: Settings,
}

impl Opened {
    pub fn analysis(&self) -> FileAnalysis {
        let (settings, overrides) = (&self.settings, Overrides::default());
        self.engine
            .analyze(
                &self.document,
                &self.path,
                settings,
                &overrides,
                &Cancel::default(),
            )
            .expect("not cancelled")
    }

    /// The blocks that the launch of a kernel could have.
    pub fn block_choices(&self, kernel: &PlacedKernel) -> BlockChoices {
        let (settings, overrides) = (&self.settings, Overrides::default());
        self.engine
            .block_choices(
                &self.document,
                &self.path,
                settings,
                &overrides,
                kernel,
                &Cancel::default(),
            )
            .expect("not cancelled")
    }

    /// Everything that is offered somewhere in the text.
    pub fn fixes(&self) -> Vec<PlacedFix> {
        let all = 0..self.document.len();
        self.engine.fixes(
            &self.document,
            &self.path,
            &self.settings,
            &Overrides::default(),
            all,
        )
    }

    /// Everything that is offered in a part of the text.
    pub fn fixes_in(&self, range: std::ops::Range<usize>) -> Vec<PlacedFix> {
        self.engine.fixes(
            &self.document,
            &self.path,
            &self.settings,
            &Overrides::default(),
            range,
        )
    }

    /// The text with a fix made.
    pub fn with(&self, fix: &PlacedFix) -> String {
        let mut document = self.document.clone();
        let mut last = document.len();
        for (range, text) in fix.edits.iter().rev() {
            assert!(
                range.end <= last,
                "edits in order, not overlapping: {:?}",
                fix.edits
            );
            last = range.start;
            document.edit(range.clone(), text);
        }
        document.rope().to_string()
    }
}

/// Every fixture, in the order of their names; `FIXTURE=part` takes those whose RULE/FILE has it.
pub fn fixtures() -> Vec<Fixture> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../advice/src/rules");
    let only = std::env::var("FIXTURE").unwrap_or_default();
    let mut paths = Vec::new();
    for rule in warplens_advice::catalogue() {
        let folder = root.join(rule.id.replace('-', "_")).join("fixtures/fixed");
        // Not every rule has an action.
        for file in fs::read_dir(&folder).into_iter().flatten() {
            let path = file.expect("readable").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if format!("{}/{name}", rule.id).contains(&only) {
                paths.push(path);
            }
        }
    }
    assert!(!paths.is_empty(), "no fixture below {}", root.display());
    paths.sort();
    paths.iter().map(|path| Fixture::read(path)).collect()
}
