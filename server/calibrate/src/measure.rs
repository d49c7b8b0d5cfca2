//! Runs the benchmarks: compiled when they are needed, one after the other, each kept as soon as it is whole.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::Value;

use crate::catalogue::{Bench, CLOCK, CLOCK_AFTER, Interface, write_sources};
use crate::measurements::{Device, Measurements, Sample};
use crate::process::{self, Outcome};
use crate::{Failure, statistics};

/// Repetitions of each configuration.
const REPETITIONS: u32 = 9;

/// A configuration whose repetitions lie further apart than this fraction is measured again.
const UNSTEADY: f64 = 0.08;

/// How often a benchmark is run for the sake of unsteady figures.
const TRIES: usize = 3;

/// A clock that changed by more than this fraction from the beginning to the end is said.
const CLOCK_MOVED: f64 = 0.03;

/// How the remark on that begins, which each run makes anew.
const CLOCK_WENT: &str = "the clock went";

/// Longest that a compiler or a benchmark may take.
const BOUND: Duration = Duration::from_mins(2);

/// What is under way when the budget ends may go on for so long.
const GRACE: Duration = Duration::from_mins(1);

/// What compiling a program takes, for the time that is left.
const COMPILING: f64 = 6.0;

/// The exit status of a benchmark that finds no device.
const NO_DEVICE: i32 = 3;

/// What is to be measured and with what.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How the device is reached.
    pub interface: Interface,
    /// The compiler.
    pub compiler: PathBuf,
    /// Which of several devices, from 0.
    pub device: u32,
    /// The measurements file: gone on with where it is of the same device.
    pub file: PathBuf,
    /// Begin anew whatever the file has.
    pub fresh: bool,
    /// No benchmark is begun after so long.
    pub budget: Duration,
}

/// How far it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// What is being done.
    pub doing: String,
    /// Benchmarks that are whole.
    pub done: usize,
    /// Benchmarks in all.
    pub total: usize,
    /// What is left, roughly.
    pub left: Duration,
}

/// Measures. The file holds what is whole after each benchmark, also when this ends with an error.
pub fn measure(
    plan: &Plan,
    cancelled: &AtomicBool,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Measurements, Failure> {
    let begun = Instant::now();
    let folder = tempfile::Builder::new()
        .prefix("warplens-calibrate-")
        .tempdir()
        .map_err(|error| Failure::Unwritable {
            file: std::env::temp_dir(),
            problem: error.to_string(),
        })?;
    write_sources(plan.interface, folder.path())?;
    let mut bench = Workbench {
        plan,
        folder: folder.path(),
        cancelled,
        deadline: begun + plan.budget + GRACE,
        architecture: String::new(),
        compiled: BTreeMap::new(),
    };
    let benches: Vec<&Bench> = plan.interface.benches().collect();
    let mut report = |doing: &str, done: usize, left: f64| {
        progress(&Progress {
            doing: doing.to_owned(),
            done,
            total: benches.len(),
            left: Duration::from_secs_f64(left.clamp(0.0, 86_400.0)),
        });
    };
    let expected = expected(plan.interface, &benches);
    let mut device = bench.device()?;
    device.compiler = bench.version()?;
    bench.architecture.clone_from(&device.architecture);
    bench.compiled.clear();
    let mut kept = taken_up(plan, device)?;
    // An unwritable file is known before anything is measured for it.
    kept.write(&plan.file)?;

    // What an earlier run finished takes no time.
    let had: Vec<usize> = (0..benches.len())
        .filter(|&at| kept.has(benches[at].name))
        .collect();
    let mut first_problem = None;
    for (at, of) in benches.iter().enumerate() {
        if kept.has(of.name) {
            continue;
        }
        let unfinished = |range: Range<usize>| -> f64 {
            let of_now = range.filter(|at| !had.contains(at));
            of_now.map(|at| expected[at]).sum()
        };
        // As fast as it went so far.
        let went = unfinished(0..at);
        let pace = if went > 0.0 {
            begun.elapsed().as_secs_f64() / went
        } else {
            1.0
        };
        let left = unfinished(at..benches.len()) * pace.clamp(0.1, 10.0);
        if begun.elapsed() > plan.budget {
            let remark = format!("out of time: {} and what follows was not measured", of.name);
            kept.remarks.push(remark);
            break;
        }
        report(of.about, at, left);
        match bench.samples(of) {
            Ok((samples, remark)) => {
                kept.samples.retain(|sample| sample.bench != of.name);
                kept.samples.extend(samples);
                kept.finished.push(of.name.to_owned());
                kept.remarks.extend(remark);
            }
            Err(
                stop @ (Failure::Cancelled | Failure::Permission(_) | Failure::NoDevice { .. }),
            ) => {
                kept.write(&plan.file)?;
                return Err(stop);
            }
            Err(problem) => {
                kept.remarks.push(format!("{}: {problem}", of.name));
                first_problem.get_or_insert(problem);
            }
        }
        kept.write(&plan.file)?;
    }
    if kept.finished.is_empty()
        && let Some(problem) = first_problem
    {
        return Err(problem);
    }
    kept.remarks.extend(moved(&kept));
    kept.write(&plan.file)?;
    report("done", benches.len(), 0.0);
    Ok(kept)
}

/// Seconds that each benchmark is expected to take, its program's compilation with the first that needs it.
fn expected(interface: Interface, benches: &[&Bench]) -> Vec<f64> {
    let mut compiled = Vec::new();
    let each = benches.iter().map(|bench| {
        let program = interface.program(bench);
        let first = !compiled.contains(&program);
        compiled.push(program);
        bench.seconds + if first { COMPILING } else { 0.0 }
    });
    each.collect()
}

/// What an earlier run of this device left, or nothing yet. Remarks are those of what is measured now.
fn taken_up(plan: &Plan, device: Device) -> Result<Measurements, Failure> {
    if plan.fresh || !plan.file.exists() {
        return Ok(Measurements::new(device));
    }
    let mut kept = Measurements::read(&plan.file).map_err(|failure| match failure {
        Failure::Measurements { file, problem } => Failure::Measurements {
            file,
            problem: format!("{problem}; --fresh begins anew"),
        },
        other => other,
    })?;
    let same = |of: &Device| (of.name.clone(), of.interface.clone(), of.driver.clone());
    if same(&kept.device) != same(&device) {
        return Err(Failure::Measurements {
            file: plan.file.clone(),
            problem: format!(
                "has the measurements of {} ({}, driver {}), not of {} ({}, driver {}); --fresh begins anew",
                kept.device.name,
                kept.device.interface,
                kept.device.driver,
                device.name,
                device.interface,
                device.driver,
            ),
        });
    }
    kept.remarks
        .retain(|remark| !remark.starts_with("out of time") && !remark.starts_with(CLOCK_WENT));
    let unfinished = |remark: &String| {
        let bench = remark.split(':').next().unwrap_or_default();
        plan.interface.benches().any(|of| of.name == bench)
            && !kept.finished.iter().any(|of| of == bench)
    };
    let gone: Vec<String> = kept
        .remarks
        .iter()
        .filter(|remark| unfinished(remark))
        .cloned()
        .collect();
    kept.remarks.retain(|remark| !gone.contains(remark));
    Ok(kept)
}

/// What to say where the clock did not stay.
fn moved(kept: &Measurements) -> Option<String> {
    let clock = |bench| {
        let sample = kept.of(bench).next()?;
        statistics::steady(&sample.repetitions)
    };
    let (before, after) = (clock(CLOCK)?, clock(CLOCK_AFTER)?);
    let change = after / before - 1.0;
    (change.abs() > CLOCK_MOVED).then(|| {
        format!(
            "{CLOCK_WENT} from {before:.0} to {after:.0} MHz: the GPU throttles or was not awake; cycles are \
             those of its own clock, times and bandwidths are of what it held"
        )
    })
}

/// The folder in which programs are made and run.
#[derive(Debug)]
struct Workbench<'a> {
    plan: &'a Plan,
    folder: &'a Path,
    cancelled: &'a AtomicBool,
    /// Everything ends here.
    deadline: Instant,
    architecture: String,
    /// Programs that compile, and why others do not.
    compiled: BTreeMap<&'static str, Result<PathBuf, Failure>>,
}

impl Workbench<'_> {
    /// Runs a compiler or a benchmark.
    fn execute(&self, program: &Path, arguments: &[String]) -> Result<Outcome, Failure> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        process::run(
            program,
            arguments,
            self.folder,
            BOUND.min(left),
            self.cancelled,
        )
    }

    /// The line with which the compiler tells its version.
    fn version(&self) -> Result<String, Failure> {
        let arguments = ["--version".to_owned()];
        let version = self.execute(&self.plan.compiler, &arguments)?;
        let names_version =
            |line: &&str| line.contains("release") || line.contains("ersion") || line.contains('.');
        let line = version
            .output
            .lines()
            .find(names_version)
            .unwrap_or("unknown");
        Ok(line.trim().chars().take(120).collect())
    }

    /// A program, compiled on first use.
    fn program(&mut self, name: &'static str) -> Result<PathBuf, Failure> {
        if let Some(known) = self.compiled.get(name) {
            return known.clone();
        }
        let made = self.compile(name);
        if made.as_ref().err() != Some(&Failure::Cancelled) {
            self.compiled.insert(name, made.clone());
        }
        made
    }

    fn compile(&self, name: &str) -> Result<PathBuf, Failure> {
        let interface = self.plan.interface;
        let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
        let source = interface.source(name);
        let arguments = interface.arguments(&source, &file, &self.architecture);
        let said = self.execute(&self.plan.compiler, &arguments)?;
        let made = self.folder.join(file);
        if said.status == Some(0) && made.is_file() {
            Ok(made)
        } else {
            Err(Failure::Compilation {
                program: source,
                problem: said.problem(),
            })
        }
    }

    fn run(&mut self, program: &'static str, bench: &str) -> Result<Outcome, Failure> {
        let program = self.program(program)?;
        let arguments = [
            bench.to_owned(),
            self.plan.device.to_string(),
            REPETITIONS.to_string(),
        ];
        let said = self.execute(&program, &arguments)?;
        if said.status == Some(0) {
            return Ok(said);
        }
        let problem = said.problem();
        let all = [said.errors.as_str(), said.output.as_str()].concat();
        Err(if said.status == Some(NO_DEVICE) {
            let why = problem.strip_prefix("no GPU: ").unwrap_or(&problem);
            Failure::NoDevice {
                interface: self.plan.interface.name(),
                why: why.to_owned(),
            }
        } else if [
            "ERR_NVGPUCTRPERM",
            "ot permitted",
            "otPermitted",
            "ermission denied",
        ]
        .iter()
        .any(|word| all.contains(word))
        {
            Failure::Permission(problem)
        } else {
            Failure::Program {
                program: bench.to_owned(),
                problem,
            }
        })
    }

    /// What the driver says of the device.
    fn device(&mut self) -> Result<Device, Failure> {
        #[derive(Deserialize)]
        struct Line {
            device: Device,
        }
        let program = match self.plan.interface {
            Interface::Cuda | Interface::Hip => "device",
            Interface::OpenCl => "opencl",
        };
        let said = self.run(program, "device")?;
        let mut lines = said.output.lines();
        let found = lines.find_map(|line| serde_json::from_str::<Line>(line).ok());
        let Some(Line { mut device }) = found else {
            return Err(Failure::Description(said.problem()));
        };
        self.plan.interface.name().clone_into(&mut device.interface);
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if device.name.trim().is_empty() || !device.architecture.chars().all(plain) {
            // The architecture becomes an argument of the compiler.
            return Err(Failure::Description(format!(
                "name `{}`, architecture `{}`",
                device.name, device.architecture
            )));
        }
        Ok(device)
    }

    /// The samples of a benchmark, with a remark where they stayed unsteady.
    fn samples(&mut self, bench: &Bench) -> Result<(Vec<Sample>, Option<String>), Failure> {
        let program = self.plan.interface.program(bench);
        let mut best: Vec<Sample> = Vec::new();
        for _ in 0..TRIES {
            let said = self.run(program, bench.name)?;
            let fresh = samples(&said.output, bench.name);
            if fresh.is_empty() {
                return Err(Failure::Program {
                    program: bench.name.to_owned(),
                    problem: format!("it printed no figures, but {}", quoted(&said)),
                });
            }
            best = if best.is_empty() {
                fresh
            } else {
                steadier(best, fresh)
            };
            if worst(&best) <= UNSTEADY || self.cancelled.load(Ordering::Relaxed) {
                break;
            }
        }
        let worst = worst(&best);
        let remark = (worst > UNSTEADY).then(|| {
            format!(
                "{}: unsteady, up to {:.0} % apart in {TRIES} tries: the GPU is busy or throttles",
                bench.name,
                100.0 * worst
            )
        });
        Ok((best, remark))
    }
}

fn quoted(said: &Outcome) -> String {
    let text = said.output.trim();
    if text.is_empty() {
        return "nothing".to_owned();
    }
    let begin: String = text.chars().take(60).filter(|c| !c.is_control()).collect();
    format!("`{begin}`")
}

/// The samples of a benchmark among the lines that a program printed; anything else is passed over.
fn samples(output: &str, bench: &str) -> Vec<Sample> {
    let lines = output.lines();
    let samples = lines.filter_map(|line| serde_json::from_str::<Sample>(line).ok());
    samples
        .filter(|sample| sample.bench == bench && sample.is_sound())
        .collect()
}

/// Of each configuration the run whose repetitions lie closer together.
fn steadier(kept: Vec<Sample>, fresh: Vec<Sample>) -> Vec<Sample> {
    let mut fresh = fresh;
    let mut of_all: Vec<Sample> = Vec::with_capacity(kept.len());
    let same = |a: &BTreeMap<String, Value>, b: &BTreeMap<String, Value>| a == b;
    for old in kept {
        let again = fresh
            .iter()
            .position(|new| same(&new.parameters, &old.parameters));
        let better = again.map(|at| fresh.swap_remove(at)).filter(|new| {
            statistics::spread(&new.repetitions) < statistics::spread(&old.repetitions)
        });
        of_all.push(better.unwrap_or(old));
    }
    of_all.extend(fresh);
    of_all
}

fn worst(samples: &[Sample]) -> f64 {
    let spreads = samples
        .iter()
        .map(|sample| statistics::spread(&sample.repetitions));
    spreads.fold(0.0, f64::max)
}

/// The default compiler: the first one on the `PATH`, in absolute folders only.
pub fn find_compiler(wanted: Option<Interface>) -> Result<(Interface, PathBuf), Failure> {
    let interfaces: Vec<Interface> = match wanted {
        Some(interface) => vec![interface],
        None => Interface::ALL.to_vec(),
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    for &interface in &interfaces {
        let name = format!("{}{}", interface.compiler(), std::env::consts::EXE_SUFFIX);
        let found = std::env::split_paths(&path)
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join(&name))
            .find(|file| file.is_file());
        if let Some(file) = found {
            return Ok((interface, file));
        }
    }
    let names: Vec<&str> = interfaces.iter().map(|of| of.compiler()).collect();
    Err(Failure::NoCompiler {
        wanted: names.join(" or "),
    })
}
