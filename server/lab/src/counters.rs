//! `cargo lab counters`: what a GPU's counters say of each access of our kernels, beside what is predicted.

mod compare;
mod page;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use serde_json::Value;
use warplens_machine::Profiles;

use crate::{corpus, measure};
use compare::{Row, Verdict};
use xtask::{process, repository};

/// No prediction may take longer.
const LIMIT: Duration = Duration::from_mins(1);

/// So large a part of the exact facts has to be what was counted.
const TARGET: f64 = 0.98;

/// Hold sectors and wavefronts per request against what ncu counted on a GPU: docs/accuracy/counters.md
///
/// Reads what `cargo lab measure` wrote and shows both figures of each access side by side. Exit status 1 where a
/// fact that is called exact is not what was counted: that is a bug, and becomes a test. Without measured counters it
/// says so, writes nothing, and all is well.
#[derive(Debug, Args)]
pub struct Counters {
    /// Folders of devices [default: those in tests/measured]
    #[arg(value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// The profile to predict for [default: the built-in one most like the device]
    #[arg(long, value_name = "ID")]
    gpu: Option<String>,
    /// This warplens, instead of building one
    #[arg(long, value_name = "PATH")]
    bin: Option<PathBuf>,
    /// The page that gets the tables
    #[arg(long, value_name = "FILE", default_value = "docs/accuracy/counters.md")]
    out: PathBuf,
}

/// One kernel under one launch.
#[derive(Debug)]
struct Compared {
    /// With its template arguments and its launch: `copy<float> <<<64, 256>>>`.
    kernel: String,
    /// `scan.cu`.
    file: String,
    rows: Vec<Row>,
}

/// What one device says.
#[derive(Debug, Default)]
struct Device {
    name: String,
    /// Where and when: the driver, the compiler, the day.
    provenance: String,
    /// The profile that was predicted for.
    gpu: String,
    kernels: Vec<Compared>,
    /// Entries of the file that could not be compared, and why.
    problems: Vec<String>,
    /// Why there are no counters, or no further ones.
    no_counters: Option<String>,
}

impl Device {
    fn rows(&self) -> impl Iterator<Item = &Row> {
        self.kernels.iter().flat_map(|kernel| &kernel.rows)
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.rows().filter(|row| row.verdict == verdict).count()
    }
}

/// What is predicted of a kernel of a file under a launch, for a profile: a document of `warplens.estimate/1`.
type Predict<'a> = &'a dyn Fn(&Path, &Launch, &str) -> anyhow::Result<Value>;

impl Counters {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let bin = std::cell::OnceCell::new();
        let predict = |file: &Path, launch: &Launch, gpu: &str| {
            // Built when there is something to predict.
            let bin = match (bin.get(), &self.bin) {
                (Some(bin), _) => bin,
                (None, Some(given)) => bin.get_or_init(|| given.clone()),
                (None, None) => {
                    let built = corpus::build()?;
                    bin.get_or_init(|| built)
                }
            };
            estimate(bin, file, launch, gpu)
        };
        self.compare(&predict)
    }

    fn compare(&self, predict: Predict) -> anyhow::Result<ExitCode> {
        let mut devices = Vec::new();
        let mut broken = false;
        for file in self.files()? {
            match device(&file, self.gpu.as_deref(), predict) {
                Ok(device) => devices.push(device),
                Err(error) => {
                    eprintln!("{}: {error:#}", file.display());
                    broken = true;
                }
            }
        }
        for device in &devices {
            println!("{}", page::terminal(device));
            broken |= !device.problems.is_empty();
        }
        let compared = devices.iter().any(|device| !device.kernels.is_empty());
        if compared {
            let path = repository::root().join(&self.out);
            std::fs::write(&path, page::page(&devices))
                .with_context(|| format!("cannot write {}", path.display()))?;
            println!("wrote {}", path.display());
        } else if !broken {
            println!("{NOTHING}");
        }
        let differing = devices.iter().map(|device| device.count(Verdict::Differs));
        Ok(match (differing.sum::<usize>(), broken) {
            (0, false) => ExitCode::SUCCESS,
            (0, true) => ExitCode::from(2),
            _ => ExitCode::FAILURE,
        })
    }

    /// The devices' files.
    fn files(&self) -> anyhow::Result<Vec<PathBuf>> {
        if !self.folders.is_empty() {
            let files = self.folders.iter().map(|folder| {
                let file = if folder.is_file() {
                    folder.clone()
                } else {
                    folder.join(measure::FILE)
                };
                if file.is_file() {
                    Ok(file)
                } else {
                    bail!("there is no {}", file.display())
                }
            });
            return files.collect();
        }
        let all = repository::root().join(measure::FOLDER);
        let entries = std::fs::read_dir(all).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> = entries
            .map(|entry| entry.path().join(measure::FILE))
            .filter(|file| file.is_file())
            .collect();
        files.sort();
        Ok(files)
    }
}

const NOTHING: &str = "no measured counters: nothing to compare. On a machine with an NVIDIA GPU and ncu:\n\
    \x20   cargo lab measure     # writes tests/measured/DEVICE/kernels.json\n\
    \x20   cargo lab counters    # holds the facts against it, and writes docs/accuracy/counters.md";

/// How a measured kernel was launched.
#[derive(Debug, Clone, PartialEq)]
struct Launch {
    kernel: String,
    /// Template arguments, in their order.
    template: Vec<String>,
    grid: [u64; 3],
    block: [u64; 3],
    dynamic_shared: u64,
    /// Integers by the names of the parameters.
    arguments: Vec<(String, i64)>,
}

impl Launch {
    /// As the program of a kernel prints it.
    fn of(value: &Value) -> Option<Launch> {
        let name = value["kernel"].as_str()?;
        let (kernel, template) = match name.split_once('<') {
            Some((kernel, rest)) => {
                let arguments = rest.trim_end_matches('>').split(',');
                (
                    kernel,
                    arguments.map(|text| text.trim().to_owned()).collect(),
                )
            }
            None => (name, Vec::new()),
        };
        let shape = |name: &str| -> Option<[u64; 3]> {
            let axes: Vec<u64> = value[name]
                .as_array()?
                .iter()
                .filter_map(Value::as_u64)
                .collect();
            axes.try_into().ok()
        };
        let arguments = value["args"].as_object().into_iter().flatten();
        Some(Launch {
            kernel: kernel.to_owned(),
            template,
            grid: shape("grid")?,
            block: shape("block")?,
            dynamic_shared: value["dynamic_shared_bytes"].as_u64().unwrap_or(0),
            arguments: arguments
                .filter_map(|(name, value)| Some((name.clone(), value.as_i64()?)))
                .collect(),
        })
    }

    fn name(&self) -> String {
        match &self.template[..] {
            [] => self.kernel.clone(),
            all => format!("{}<{}>", self.kernel, all.join(", ")),
        }
    }

    fn title(&self) -> String {
        let shape = |[x, y, z]: [u64; 3]| match (y, z) {
            (1, 1) => x.to_string(),
            (_, 1) => format!("{x}x{y}"),
            _ => format!("{x}x{y}x{z}"),
        };
        format!(
            "{} <<<{}, {}>>>",
            self.name(),
            shape(self.grid),
            shape(self.block)
        )
    }
}

/// Reads a device's file and compares all that it has.
fn device(file: &Path, gpu: Option<&str>, predict: Predict) -> anyhow::Result<Device> {
    let text = std::fs::read_to_string(file).context("cannot be read")?;
    let measured: Value = serde_json::from_str(&text)
        .context("is no whole file of `cargo lab measure` (was it cut off?)")?;
    if measured["schema"] != measure::SCHEMA {
        bail!(
            "is no file of `cargo lab measure`: its schema is not {}",
            measure::SCHEMA
        );
    }
    let said = |value: &Value| value.as_str().unwrap_or("unknown").to_owned();
    let of = &measured["device"];
    let name = said(&of["name"]);
    let mut device = Device {
        gpu: match gpu {
            Some(id) => id.to_owned(),
            None => like(&name, &said(&of["compute_cap"]))?,
        },
        name,
        provenance: format!(
            "driver {}, {}, {}, {}",
            said(&of["driver_version"]),
            said(&measured["nvcc"]),
            said(&measured["ncu"]),
            said(&measured["date"])
        ),
        no_counters: measured["no_counters"].as_str().map(str::to_owned),
        ..Device::default()
    };
    for entry in measured["counters"].as_array().into_iter().flatten() {
        match kernel(entry, &device.gpu, predict) {
            Ok(compared) => device.kernels.push(compared),
            Err(error) => {
                let name = entry["launch"]["kernel"].as_str().unwrap_or("a kernel");
                device.problems.push(format!("{name}: {error:#}"));
            }
        }
    }
    Ok(device)
}

fn kernel(entry: &Value, gpu: &str, predict: Predict) -> anyhow::Result<Compared> {
    let launch = Launch::of(&entry["launch"]).context("the entry says no launch")?;
    let program = entry["program"].as_str().unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let name = format!("{program}.cu");
    let file = repository::root().join("tests/kernels").join(&name);
    if !program.chars().all(plain) || !file.is_file() {
        bail!("tests/kernels has no program `{program}`");
    }
    let Some(instructions) = entry["instructions"]
        .as_array()
        .filter(|all| !all.is_empty())
    else {
        bail!(
            "no instructions were counted by line: measure again, with programs that have -lineinfo"
        );
    };
    let text = std::fs::read_to_string(&file)?;
    if let Some(line) = changed(&text, entry["lines"].as_array().into_iter().flatten()) {
        bail!("tests/kernels/{name} is not what was measured (line {line}): measure again");
    }
    let document = predict(&file, &launch, gpu)?;
    let results = document["results"].as_array().into_iter().flatten();
    let mut fitting = results.filter(|result| {
        let arguments = result["template_args"].as_object();
        let arguments = arguments.into_iter().flat_map(|all| all.values());
        result["kernel"] == launch.kernel.as_str()
            && arguments
                .filter_map(Value::as_str)
                .eq(launch.template.iter().map(String::as_str))
    });
    let Some(result) = fitting.next() else {
        bail!("tests/kernels/{name} has no such kernel");
    };
    Ok(Compared {
        kernel: launch.title(),
        file: name,
        rows: compare::rows(result, instructions),
    })
}

/// The first measured line whose text is another now; white space does not count.
fn changed<'a>(text: &str, mut lines: impl Iterator<Item = &'a Value>) -> Option<u64> {
    let now: Vec<&str> = text.lines().collect();
    // ncu leaves quotes of a line as they are in its own, so that their places are lost.
    let words = |text: &str| {
        let kept = text.chars().filter(|c| !c.is_whitespace() && *c != '"');
        kept.collect::<String>()
    };
    lines.find_map(|measured| {
        let line = measured["line"].as_u64()?;
        let was = measured["source"]
            .as_str()
            .filter(|text| !text.is_empty())?;
        let at = usize::try_from(line).ok()?.checked_sub(1)?;
        (now.get(at).is_none_or(|now| words(now) != words(was))).then_some(line)
    })
}

/// The built-in GPU that is the device, else one of the same architecture: requests cost the same there.
fn like(name: &str, compute_capability: &str) -> anyhow::Result<String> {
    let architecture = format!("sm_{}", compute_capability.replace('.', ""));
    let profiles = Profiles::builtin();
    profiles
        .named(name)
        .filter(|profile| profile.architecture == architecture)
        .or_else(|| profiles.named(&architecture))
        .map(|profile| profile.id.clone())
        .with_context(|| {
            format!("no built-in GPU has the architecture {architecture} of {name}: give --gpu ID")
        })
}

/// Asks a warplens.
fn estimate(bin: &Path, file: &Path, launch: &Launch, gpu: &str) -> anyhow::Result<Value> {
    let shape = |axes: [u64; 3]| axes.map(|axis| axis.to_string()).join(",");
    let mut command = Command::new(bin);
    command
        .args([
            "estimate",
            "--format",
            "json",
            "--gpu",
            gpu,
            "--kernel",
            &launch.kernel,
        ])
        .args([
            "--grid",
            &shape(launch.grid),
            "--block",
            &shape(launch.block),
        ])
        .args(["--dynamic-shared", &launch.dynamic_shared.to_string()]);
    for (name, value) in &launch.arguments {
        command.args(["--arg", &format!("{name}={value}")]);
    }
    let told = process::captured(command.arg(file), LIMIT)?;
    match serde_json::from_str(&told.out) {
        Ok(document) => Ok(document),
        Err(_) => bail!("no prediction: {}", told.errors.trim()),
    }
}
