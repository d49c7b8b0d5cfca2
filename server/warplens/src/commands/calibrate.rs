//! `warplens calibrate`: measures this machine's GPU and writes a profile.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use clap::{Args, ValueEnum};
use warplens_calibrate::fit::{Counts, linear};
use warplens_calibrate::{Failure, Measurements, Plan, ProfileFit, Progress, compare, profile};
use warplens_db::settings::gpu_named;
use warplens_db::user_profiles;
use warplens_machine::{Profile, Profiles};

use crate::output;

/// Measure this machine's GPU and write its hardware profile
///
/// Compiles micro-benchmarks of warplens' own with your compiler, runs them on the GPU for a few minutes, keeps their raw
/// figures in a measurements file after each of them, and fits a profile to it: every figure says which benchmark it
/// comes from, and what cannot be measured is that of the nearest built-in GPU, marked `estimated`. Run it while
/// nothing else uses the GPU. The profile goes to --output, by default ID.toml. Ctrl-C stops it; the same command goes on where it stopped. With --from a file that was
/// measured anywhere is fitted, without a GPU or a compiler.
#[derive(Debug, Args)]
pub struct Calibrate {
    /// Fit this measurements file; measure nothing
    #[arg(long, value_name = "MEASUREMENTS.json", conflicts_with_all = ["compiler", "interface", "device", "measurements", "fresh", "minutes", "dry_run", "sources"])]
    from: Option<PathBuf>,
    /// Print what changed against a built-in profile, figure by figure
    #[arg(long, value_name = "ID", conflicts_with_all = ["dry_run", "sources"])]
    compare: Option<String>,
    /// The profile's id: lower-case letters, digits, hyphens [default: from the GPU's name]
    #[arg(long, value_name = "ID", value_parser = id)]
    id: Option<String>,
    /// How to reach the GPU [default: the first of cuda, hip, opencl whose compiler is on the PATH]
    #[arg(long, value_enum)]
    interface: Option<Interface>,
    /// The compiler [default: nvcc, hipcc or cc of the PATH]
    #[arg(long, value_name = "PATH", requires = "interface")]
    compiler: Option<PathBuf>,
    /// Which GPU, where there are several
    #[arg(long, value_name = "N", default_value_t = 0)]
    device: u32,
    /// The measurements file; one of the same GPU is gone on with
    #[arg(
        long,
        value_name = "FILE",
        default_value = "warplens-measurements.json"
    )]
    measurements: PathBuf,
    /// Discard the measurements file and start again
    #[arg(long)]
    fresh: bool,
    /// Start no benchmark after this many minutes
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=600))]
    minutes: u64,
    /// Only write the benchmark programs, into the folder of --sources
    #[arg(long)]
    dry_run: bool,
    /// The folder for --dry-run [default: warplens-calibrate]
    #[arg(long, value_name = "DIR")]
    sources: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Interface {
    /// NVIDIA, through nvcc
    Cuda,
    /// AMD, through hipcc
    Hip,
    /// Any, through the installed OpenCL driver and a C compiler; fewer figures
    Opencl,
}

impl Interface {
    fn known(self) -> warplens_calibrate::Interface {
        match self {
            Interface::Cuda => warplens_calibrate::Interface::Cuda,
            Interface::Hip => warplens_calibrate::Interface::Hip,
            Interface::Opencl => warplens_calibrate::Interface::OpenCl,
        }
    }
}

fn id(text: &str) -> Result<String, String> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !text.is_empty() && text.len() <= 100 && text.chars().all(allowed) {
        Ok(text.to_owned())
    } else {
        Err("must be of lower-case letters, digits and hyphens".to_owned())
    }
}

impl Calibrate {
    /// Runs it.
    pub fn run(self, output: Option<PathBuf>) -> anyhow::Result<ExitCode> {
        let profiles = Profiles::builtin();
        let other = match &self.compare {
            Some(name) => Some(gpu_named(name, &profiles).map_err(|line| anyhow!(line))?),
            None => None,
        };
        if self.dry_run || self.sources.is_some() {
            return self.write_sources();
        }
        if let Some(output) = &output {
            writable(output)?;
        }
        let measurements = match &self.from {
            Some(file) => Measurements::read(file)?,
            None => match self.measure()? {
                Some(measurements) => measurements,
                None => return Ok(ExitCode::from(2)),
            },
        };
        self.fit(&measurements, &profiles, other.as_deref(), output)
    }

    fn write_sources(&self) -> anyhow::Result<ExitCode> {
        let folder = self.sources.clone();
        let folder = folder.unwrap_or_else(|| PathBuf::from("warplens-calibrate"));
        let interfaces: Vec<_> = match self.interface {
            Some(interface) => vec![interface.known()],
            // HIP's are CUDA's.
            None => vec![Interface::Cuda.known(), Interface::Opencl.known()],
        };
        let mut text = String::new();
        for interface in interfaces {
            warplens_calibrate::write_sources(interface, &folder)?;
            for (name, _) in interface.sources() {
                let _ = writeln!(text, "{}", folder.join(name).display());
            }
        }
        output::emit(&text)?;
        Ok(ExitCode::SUCCESS)
    }

    /// `None` where the user stopped it.
    fn measure(&self) -> anyhow::Result<Option<Measurements>> {
        let (interface, compiler) = match (self.interface, &self.compiler) {
            (Some(interface), Some(compiler)) => {
                // A name alone is looked for on the PATH, anything else is a file.
                let file = if compiler.components().count() > 1 {
                    std::path::absolute(compiler)?
                } else {
                    compiler.clone()
                };
                (interface.known(), file)
            }
            (interface, _) => warplens_calibrate::find_compiler(interface.map(Interface::known))?,
        };
        let plan = Plan {
            interface,
            compiler,
            device: self.device,
            file: self.measurements.clone(),
            fresh: self.fresh,
            budget: Duration::from_mins(self.minutes),
        };
        let cancelled = Arc::new(AtomicBool::new(false));
        let flag = cancelled.clone();
        ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed))
            .context("cannot listen for Ctrl-C")?;
        let mut bar = Bar::default();
        bar.begin();
        let measured =
            warplens_calibrate::measure(&plan, &cancelled, &mut |progress| bar.show(progress));
        bar.finish();
        match measured {
            Ok(measurements) => Ok(Some(measurements)),
            Err(Failure::Cancelled) => {
                let kept = Measurements::read(&plan.file).map_or(0, |kept| kept.finished.len());
                output::complain(&format!(
                    "stopped; {} has {kept} whole benchmarks, and the same command continues from there",
                    plan.file.display()
                ));
                Ok(None)
            }
            Err(failure) => Err(failure.into()),
        }
    }

    fn fit(
        &self,
        measurements: &Measurements,
        profiles: &Profiles,
        other: Option<&Profile>,
        output: Option<PathBuf>,
    ) -> anyhow::Result<ExitCode> {
        let nearest = profile::nearest(&measurements.device, profiles)
            .ok_or_else(|| anyhow!("there are no built-in profiles"))?;
        let counts = counted(measurements, &nearest.id)?;
        let mut fitted = warplens_calibrate::fit(measurements, &nearest, &counts);
        let id = self.id.clone();
        let id = id.unwrap_or_else(|| profile::slug(&measurements.device.name));
        let (text, loaded) = profile::write(measurements, &mut fitted, &nearest, &id)?;
        let file = output.unwrap_or_else(|| PathBuf::from(format!("{id}.toml")));
        warplens_calibrate::replace(&file, &text)?;
        let mut page = summary(measurements, &fitted, &loaded, &nearest, &file);
        if let Some(other) = other {
            page.push_str(&differences(&loaded, other));
        }
        page.push_str(&in_force(
            &file,
            &loaded.id,
            user_profiles::of_user().as_deref(),
        ));
        output::emit(&page)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// What the linear model counts; in a thread, as the analysis recurses as deep as a source nests.
fn counted(measurements: &Measurements, gpu: &str) -> anyhow::Result<Counts> {
    let (measurements, gpu) = (measurements.clone(), gpu.to_owned());
    std::thread::Builder::new()
        .stack_size(super::STACK)
        .spawn(move || linear::counts(&measurements, &gpu))?
        .join()
        .map_err(|_| anyhow!("no result because of the internal error above"))?
        .map_err(|problem| anyhow!("the measurement kernels were not counted: {problem}"))
}

/// Known before minutes are spent on what could not be written.
fn writable(file: &Path) -> anyhow::Result<()> {
    if file.is_dir() {
        bail!("{} cannot be written: it is a folder", file.display());
    }
    let folder = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    if !folder.is_dir() {
        bail!(
            "{} cannot be written: there is no folder {}",
            file.display(),
            folder.display()
        );
    }
    warplens_calibrate::check_writable(file)?;
    Ok(())
}

fn summary(
    measurements: &Measurements,
    fitted: &ProfileFit,
    loaded: &Profile,
    nearest: &Profile,
    file: &Path,
) -> String {
    let own = |prefix: &str| {
        let figures = loaded.figures().values();
        figures
            .filter(|figure| figure.source.starts_with(prefix))
            .count()
    };
    let mut page = format!(
        "{}: profile {} in {}\n{} figures measured, {} reported by the driver, {} estimated (nearest built-in GPU: {})\n",
        printable(&measurements.device.name),
        loaded.id,
        file.display(),
        own("measured"),
        own("reported"),
        own("estimated"),
        nearest.id,
    );
    for (title, lines) in [("notes", &fitted.notes), ("missing", &fitted.missing)] {
        if !lines.is_empty() {
            let _ = writeln!(page, "{title}:");
            for line in lines {
                let _ = writeln!(page, "  {}", printable(line));
            }
        }
    }
    page
}

/// How the profile in a file comes to be used: as it is in one of the folders that are looked into, or else where it
/// has to go.
fn in_force(file: &Path, id: &str, of_user: Option<&Path>) -> String {
    let folder = file.canonicalize().ok();
    let folder = folder.as_deref().and_then(Path::parent).unwrap_or(file);
    let users = of_user.and_then(|folder| folder.canonicalize().ok());
    if users.as_deref() == Some(folder) || folder.ends_with(user_profiles::OF_WORKSPACE) {
        return format!("to use it: --gpu {id}\n");
    }
    let own = of_user.map_or_else(String::new, |folder| {
        format!(
            "{} (for all workspaces) or to ",
            printable(&folder.display().to_string())
        )
    });
    format!(
        "to use it: move {} to {own}{} (of one workspace), then --gpu {id}\n",
        printable(&file.display().to_string()),
        user_profiles::OF_WORKSPACE
    )
}

fn differences(loaded: &Profile, other: &Profile) -> String {
    let changes = compare::changes(loaded, other);
    let value =
        |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
    let mut page = format!("against {} ({} figures differ):\n", other.id, changes.len());
    let _ = writeln!(
        page,
        "  {:<30} {:>14} {:>14} {:>7}  source",
        "figure", other.id, "this", "ratio"
    );
    for change in &changes {
        let ratio = change
            .ratio()
            .map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
        let _ = writeln!(
            page,
            "  {:<30} {:>14} {:>14} {ratio:>7}  {}",
            format!("{} [{}]", change.key, change.unit),
            value(change.from),
            value(change.to),
            printable(&change.source),
        );
    }
    page
}

fn printable(text: &str) -> String {
    warplens_report::style::printable(text)
}

/// The line on standard error that is written over, on a terminal; elsewhere a line for each benchmark.
#[derive(Debug, Default)]
struct Bar {
    shown: bool,
}

impl Bar {
    const WIDTH: usize = 24;

    /// Until the device has answered; a refusal stays one line elsewhere.
    fn begin(&mut self) {
        let mut out = io::stderr();
        if out.is_terminal() {
            self.shown = true;
            let _ = write!(out, "querying the device");
        }
    }

    fn show(&mut self, progress: &Progress) {
        let Progress {
            doing,
            done,
            total,
            left,
        } = progress;
        let seconds = left.as_secs();
        let left = format!("about {}:{:02} left", seconds / 60, seconds % 60);
        let mut out = io::stderr();
        let _ = if out.is_terminal() {
            self.shown = true;
            let full = Self::WIDTH * done / (*total).max(1);
            let bar = format!(
                "{}{}",
                "#".repeat(full),
                "-".repeat(Self::WIDTH - full.min(Self::WIDTH))
            );
            write!(out, "\r\x1b[K[{bar}] {done}/{total} {doing}, {left}")
        } else {
            writeln!(out, "{done}/{total} {doing}, {left}")
        };
    }

    fn finish(&mut self) {
        if self.shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
