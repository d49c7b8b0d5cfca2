//! Kernels of other people's files, as the analysis says that they are launched, on the interpreter.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use serde_json::Value;
use warplens_oracle::{Argument, Dialect, Launch, ParameterKind, Program, Run};

use super::{json, lines};

/// Blocks of a launch that run, and what they may do.
const BLOCKS: u64 = 3;
const STEPS: u64 = 150_000_000;
/// Headers that are put before a file.
const HEADERS: usize = 40;

/// The default of an integer that is not stated: the analysis did not need it, or the host's code gives it.
const MADE_UP: i64 = 1;
/// Lanes of a request that depend on data: a difference of this many is another case.
const OTHER_LANES: f64 = 0.1;

/// A run.
pub struct Ran {
    pub run: Run,
    /// Lines before the file in what was read.
    pub before: u32,
    /// Some integer argument is [`MADE_UP`].
    pub made_up: bool,
}

type Outcome = Result<Rc<Ran>, String>;

/// A file with its kernels.
pub struct File {
    text: String,
    before: u32,
    program: Result<Program, String>,
    /// What the analysis says of each kernel.
    results: Vec<Value>,
    runs: BTreeMap<usize, Outcome>,
}

impl File {
    /// Reads it and has it analysed.
    pub fn read(bin: &Path, path: &Path) -> File {
        let mut estimate = Command::new(bin);
        estimate
            .arg("estimate")
            .arg(path)
            .args(["--format", "json"]);
        let results = json(&mut estimate).map_or_else(
            |_| Vec::new(),
            |mut told| serde_json::from_value(told["results"].take()).unwrap_or_default(),
        );
        let text = lines::read(path);
        let mut headers = String::new();
        above(path, &text, &mut BTreeSet::new(), &mut headers);
        let before = headers.matches('\n').count() as u32;
        let opencl = path.extension().is_some_and(|kind| kind == "cl");
        let dialect = if opencl {
            Dialect::OpenCl
        } else {
            Dialect::Cuda
        };
        let program = Program::read(&(headers + &text), dialect).map_err(|error| error.what);
        File {
            text,
            before,
            program,
            results,
            runs: BTreeMap::new(),
        }
    }

    /// How many kernels there are.
    pub fn kernels(&self) -> usize {
        self.results.len()
    }

    /// The kernel that a line is in, or above.
    pub fn kernel_at(&self, line: u32) -> Option<usize> {
        let starts = |at: usize| self.results[at]["line"].as_u64().unwrap_or(0) as u32;
        let before = (0..self.results.len()).filter(|&at| starts(at) <= line);
        before.max_by_key(|&at| (starts(at), std::cmp::Reverse(at)))
    }

    /// Whether the analysis says that an access of a line depends on data.
    pub fn by_data(&self, kernel: usize, line: u32) -> bool {
        let accesses = self.results[kernel]["accesses"].as_array();
        accesses.into_iter().flatten().any(|access| {
            access["line"].as_u64() == Some(u64::from(line))
                && access["pattern"].as_str() == Some("data-dependent")
        })
    }

    /// What a run of a kernel counts.
    pub fn run(&mut self, kernel: usize) -> Outcome {
        if let Some(known) = self.runs.get(&kernel) {
            return known.clone();
        }
        let outcome = self.start(kernel, false, None).map(|(run, made_up)| {
            Rc::new(Ran {
                run,
                before: self.before,
                made_up,
            })
        });
        self.runs.insert(kernel, outcome.clone());
        outcome
    }

    /// The same, watched for races, with the barriers of a line only holding warps together.
    pub fn run_for_races(&self, kernel: usize, narrowed: Option<u32>) -> Result<Run, String> {
        let narrowed = narrowed.map(|line| line + self.before);
        Ok(self.start(kernel, true, narrowed)?.0)
    }

    /// True where what the analysis says of a line's accesses holds for other lanes than were there in the run.
    pub fn other_lanes(&self, kernel: usize, line: u32, ran: &Ran) -> bool {
        let accesses = self.results[kernel]["accesses"].as_array();
        let said = accesses.into_iter().flatten().filter(|access| {
            access["line"].as_u64() == Some(u64::from(line)) && access["exact"] != true
        });
        let (mut lanes, mut requests) = (0, 0);
        for (key, found) in &ran.run.tally.accesses {
            if key.place.line == line + self.before {
                lanes += found.lanes;
                requests += found.requests;
            }
        }
        let counted = lanes as f64 / requests.max(1) as f64;
        said.filter_map(|access| access["active_lanes_per_request"].as_f64())
            .any(|said| (said - counted).abs() > said * OTHER_LANES)
    }

    fn start(
        &self,
        kernel: usize,
        races: bool,
        narrowed: Option<u32>,
    ) -> Result<(Run, bool), String> {
        let program = self.program.as_ref().map_err(Clone::clone)?;
        let result = &self.results[kernel];
        let name = result["kernel"].as_str().unwrap_or_default();
        let three = |name: &str| -> [u32; 3] {
            serde_json::from_value(result["launch"][name].clone()).unwrap_or([1; 3])
        };
        let template: BTreeMap<String, String> =
            serde_json::from_value(result["template_args"].clone()).unwrap_or_default();
        let launch = Launch {
            grid: three("grid"),
            block: three("block"),
            dynamic_shared_bytes: result["launch"]["dynamic_shared_bytes"]
                .as_u64()
                .unwrap_or(0),
            template,
            checked: false,
            steps: STEPS,
            races,
            narrowed,
            blocks: BLOCKS,
            ..Launch::default()
        };
        let assumed: BTreeMap<&str, &str> = result["assumptions"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|one| Some((one["symbol"].as_str()?, one["value"].as_str()?)))
            .collect();
        let written = self.written(name);
        let signature = program.signature(name);
        if signature.is_empty() {
            let why = program.unread().first().map(|error| reason(&error.what));
            let why = why.unwrap_or_else(|| "it is not there".to_owned());
            return Err(format!("the kernel is not read: {why}"));
        }
        let (mut arguments, mut made_up) = (Vec::new(), false);
        for (at, (name, takes)) in signature.iter().enumerate() {
            let whole = |text: &str| text.parse::<i64>().ok();
            arguments.push(match takes {
                ParameterKind::Array => Argument::Endless,
                ParameterKind::Real => Argument::Float(0.5),
                ParameterKind::Whole => {
                    let said = assumed.get(&**name).copied().and_then(whole);
                    let given = || written.get(at).map(String::as_str).and_then(whole);
                    let value = said.or_else(given);
                    made_up |= value.is_none();
                    Argument::Int(value.unwrap_or(MADE_UP))
                }
                ParameterKind::Other => return Err("a parameter that is a structure".to_owned()),
            });
        }
        program
            .run(name, &launch, &arguments)
            .map(|run| (run, made_up))
            .map_err(|error| reason(&error.what))
    }

    /// The arguments of the first launch in the file, as they are written.
    fn written(&self, kernel: &str) -> Vec<String> {
        let launches = self.text.match_indices("<<<").filter_map(|(at, _)| {
            let name = self.text[..at].trim_end();
            let template = name.ends_with('>').then(|| name.rfind('<')).flatten();
            let name = name[..template.unwrap_or(name.len())].strip_suffix(kernel)?;
            let whole = !name.ends_with(|c: char| c.is_alphanumeric() || c == '_');
            let rest = self.text[at..].split_once(">>>")?.1.trim_start();
            whole.then_some(rest.strip_prefix('(')?)
        });
        let Some(rest) = launches.into_iter().next() else {
            return Vec::new();
        };
        let (mut words, mut depth) = (vec![String::new()], 0);
        for letter in rest.chars() {
            match letter {
                ')' | ']' if depth == 0 => break,
                '(' | '[' => depth += 1,
                ')' | ']' => depth -= 1,
                ',' if depth == 0 => {
                    words.push(String::new());
                    continue;
                }
                _ => {}
            }
            if let (false, Some(word)) = (letter.is_whitespace(), words.last_mut()) {
                word.push(letter);
            }
        }
        words
    }
}

/// Headers beside a file, each once, what they include before them.
fn above(path: &Path, text: &str, seen: &mut BTreeSet<PathBuf>, out: &mut String) {
    for line in text.lines() {
        let Some(rest) = line.trim_start().strip_prefix('#') else {
            continue;
        };
        let Some(rest) = rest.trim_start().strip_prefix("include") else {
            continue;
        };
        let Some(name) = rest.trim_start().strip_prefix('"') else {
            continue;
        };
        let name = name.split('"').next().unwrap_or_default();
        let header = path.with_file_name(name);
        if !header.is_file() || seen.len() >= HEADERS || !seen.insert(header.clone()) {
            continue;
        }
        let text = lines::read(&header);
        above(&header, &text, seen, out);
        out.push_str(&text);
        out.push('\n');
    }
}

/// Names taken out of an error, so that alike ones are one.
fn reason(what: &str) -> String {
    let mut parts = what.split('`');
    let mut words = parts.next().unwrap_or_default().to_owned();
    while let (Some(_), Some(rest)) = (parts.next(), parts.next()) {
        words.push_str("`…`");
        words.push_str(rest);
    }
    words
}
