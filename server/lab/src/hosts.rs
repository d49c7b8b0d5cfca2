//! `cargo lab hosts`: programs run from end to end, their host code by this machine and their kernels by the oracle, and
//! what the evaluator of host code says of their launches held against what they launched.

mod compare;
mod device;

use std::io::Seek;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use rayon::prelude::*;
use warplens_base::DiskFiles;
use warplens_db::settings::{RunSettings, RunSource, Settings};
use warplens_db::{Engine, Profile, Profiles, Project};
use warplens_oracle::{Dialect, Program};

use crate::corpus;
use crate::machine_code::{Compiler, Scratch, needed};
use compare::Comparison;
use device::Seen;
use xtask::repository;

/// The runtime that the programs are linked with.
const RUNTIME: &str = include_str!("hosts/runtime.cpp");

/// Our own programs.
const OWN: [&str; 2] = ["tests/kernels", "tests/hosts"];

/// How they are started, by the names of their files: small, as the kernels run on this machine.
const RUNS: [(&str, &[&str]); 14] = [
    (
        "black_scholes.cu",
        &["--n 64 --repeat 0", "--n 100 --block 64 --repeat 3"],
    ),
    ("buffers.cu", &[""]),
    ("containers.cu", &[""]),
    ("fft.cu", &["--n 1024 --repeat 0"]),
    ("hgemm.cu", &["--n 128 --repeat 0"]),
    ("hopping.cu", &["--n 2 --repeat 0"]),
    ("inference.cu", &["--repeat 0"]),
    (
        "matmul_tiles.cu",
        &["--n 384 --repeat 0 --kernel matmul_tile_16"],
    ),
    ("quantised.cu", &["--n 128 --repeat 0"]),
    ("n_body.cu", &["--n 256 --repeat 0"]),
    ("reduction.cu", &["--n 5000 --repeat 2"]),
    ("scan.cu", &["--n 512 --repeat 2 --block 64"]),
    ("tables.cu", &["", "--n 200 --repeat=5 --in-place"]),
    (
        "vector_add.cu",
        &["--n 64 --repeat 0", "--n 100 --block 64 --repeat 3"],
    ),
];

/// The others of them.
const RUN: &str = "--n 64 --repeat 0";

/// Launches of our own programs of which something may not be said: what a thread writes, what is written through the
/// reference that a call gives, the length of what a function returns that is too long to be walked.
const MAY_MISS: usize = 4;

/// No program may take longer, to compile or to run.
const LIMIT: Duration = Duration::from_mins(2);

/// Run programs, their kernels by the oracle, and hold the launches that are predicted against those that they make
///
/// Compiles every source of the folders that has a `main` with nvcc, together with those beside it that have none, and links
/// it with a runtime that has the oracle run the kernels. Needs no GPU. Launches, arguments, extents and contents of arrays are compared with what the evaluator of host code says of them.
/// The programs are executed: only for code that you would run. Exit status 1 where something is said that is not so.
#[derive(Debug, Args)]
pub struct Hosts {
    /// The folders, or files
    #[arg(value_name = "PATH", default_values = OWN)]
    paths: Vec<PathBuf>,
    /// How each is started (repeatable: several runs); without it as a list says for our own, others without arguments
    #[arg(long = "run", value_name = "ARGS", allow_hyphen_values = true)]
    runs: Vec<String>,
    /// The nvcc; without it $NVCC, the PATH's, or the one that tests/kernels/compile.sh installed
    #[arg(long, value_name = "PATH")]
    nvcc: Option<PathBuf>,
    /// The GPU that the programs are told of
    #[arg(long, value_name = "ID", default_value = "a100-sxm4-40gb")]
    gpu: String,
    /// Statements and expressions that the lanes of one launch may evaluate, all together; a kernel that takes more is not run
    #[arg(long, value_name = "N", default_value_t = 100_000_000)]
    steps: u64,
    /// Fail also where more is not said of our own programs than may be
    #[arg(long)]
    check: bool,
    /// A line for each difference and each launch that is not found in full
    #[arg(long)]
    each: bool,
}

/// A program that ran.
struct Ran {
    name: String,
    /// How it ended; `None`: past its limit.
    ended: Option<ExitStatus>,
    /// What it printed last.
    said: String,
    seen: Seen,
    compared: Comparison,
}

impl Hosts {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let compiler = Compiler::of(self.nvcc.as_deref(), "sm_80")?;
        let profiles = Profiles::builtin();
        let profile = profiles.get(&self.gpu).context("no such GPU")?.clone();
        let scratch = Scratch::new("hosts")?;
        let runtime = scratch.file("runtime.o");
        let source = scratch.file("runtime.cpp");
        std::fs::write(&source, RUNTIME)?;
        compiler.object(&source, &runtime, LIMIT)?;
        let programs = self.programs()?;
        let ran: Vec<anyhow::Result<Vec<Ran>>> = programs
            .par_iter()
            .enumerate()
            .map(|(number, path)| {
                let binary = scratch.file(&number.to_string());
                let mut sources = vec![path.clone()];
                sources.extend(linked_with(path)?);
                if let Err(why) = compiler.program(&sources, &runtime, &binary, LIMIT)? {
                    eprintln!("{}: not compiled: {}", path.display(), why.trim());
                    return Ok(Vec::new());
                }
                let runs = self.runs_of(path).into_iter();
                runs.map(|arguments| self.one(path, &binary, &arguments, &profile))
                    .collect()
            })
            .collect();
        let mut all = Comparison::default();
        let (mut wrong, mut programs, mut not_run) = (0, 0, 0);
        for ran in ran
            .into_iter()
            .collect::<anyhow::Result<Vec<_>>>()?
            .iter()
            .flatten()
        {
            programs += 1;
            let fails = ran.fails();
            wrong += usize::from(fails.is_some());
            not_run += ran.seen.not_run.len();
            self.print(ran, fails.as_deref());
            all.add(&ran.compared);
        }
        println!("\n{programs} runs, {not_run} kernels that the oracle does not run\n{all}");
        let mut failed = all.wrong.len() + wrong;
        if self.check {
            println!("not said in full: {} ({MAY_MISS} may)", all.missing.len());
            failed += usize::from(all.missing.len() > MAY_MISS);
        }
        println!("{} passed, {failed} failed", all.right());
        Ok(ExitCode::from(u8::from(failed > 0)))
    }

    fn print(&self, ran: &Ran, fails: Option<&str>) {
        println!("{}: {}", ran.name, ran.compared.in_short());
        if let Some(fails) = fails {
            println!("    {fails}");
            println!("    {}", ran.said.trim().replace('\n', "\n    "));
        }
        for (kernel, why) in &ran.seen.not_run {
            println!("    {kernel} is not run: {why}");
        }
        for what in &ran.seen.refused {
            println!("    refused: {what}");
        }
        for wrong in &ran.compared.wrong {
            println!("    WRONG: {wrong}");
        }
        if self.each || self.check {
            for missing in &ran.compared.missing {
                println!("    missing: {missing}");
            }
        }
    }

    /// How a program is started.
    fn runs_of(&self, path: &Path) -> Vec<String> {
        if !self.runs.is_empty() {
            return self.runs.clone();
        }
        let own = OWN.map(|folder| repository::root().join(folder));
        if !own.iter().any(|folder| path.starts_with(folder)) {
            return vec![String::new()];
        }
        let name = path.file_name().and_then(|name| name.to_str());
        let listed = RUNS.iter().find(|(of, _)| name == Some(of));
        let runs = listed.map_or(&[RUN][..], |(_, runs)| runs);
        runs.iter().map(|run| (*run).to_owned()).collect()
    }

    fn programs(&self) -> anyhow::Result<Vec<PathBuf>> {
        let mut programs = Vec::new();
        for path in &self.paths {
            let path = if path.exists() {
                std::path::absolute(path)?
            } else {
                repository::root().join(path)
            };
            let mut files = Vec::new();
            if path.is_dir() {
                corpus::walk(&path, &mut files)?;
            } else {
                files.push((path, false));
            }
            for (path, _) in files {
                if is_source(&path) && has_main(&path)? && needed(&path).is_none() {
                    programs.push(path);
                }
            }
        }
        programs.sort();
        if programs.is_empty() {
            bail!("no program there");
        }
        Ok(programs)
    }

    /// One run of a program, and what is said of it.
    fn one(
        &self,
        path: &Path,
        binary: &Path,
        arguments: &str,
        profile: &Profile,
    ) -> anyhow::Result<Ran> {
        let words = warplens_base::split_command(arguments);
        let mut text = with_own_headers(path, 0);
        for linked in linked_with(path)? {
            text.push_str(&with_own_headers(&linked, 0));
        }
        let read = Program::read(&text, Dialect::Cuda);
        let program = read.or_else(|error| {
            eprintln!("{}: no kernel of it is run: {error}", path.display());
            Program::read("", Dialect::Cuda)
        })?;
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_read_timeout(Some(LIMIT))?;
        let mut output = tempfile::tempfile()?;
        let mut command = Command::new(binary);
        command
            .args(&words)
            .current_dir(path.parent().unwrap_or(Path::new(".")))
            .stdin(OwnedFd::from(theirs))
            .stdout(output.try_clone()?)
            .stderr(output.try_clone()?);
        let mut child = command.spawn().context("the program does not start")?;
        // The socket's other end is the program's alone.
        drop(command);
        let seen = device::serve(ours, &program, &properties(profile), self.steps);
        let started = Instant::now();
        let ended = loop {
            match child.try_wait()? {
                Some(status) => break Some(status),
                None if seen.is_err() || started.elapsed() > LIMIT => {
                    child.kill()?;
                    child.wait()?;
                    break None;
                }
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        output.rewind()?;
        let mut said = Vec::new();
        std::io::Read::read_to_end(&mut output, &mut said)?;
        let said = String::from_utf8_lossy(&said);
        let tail: Vec<&str> = said.lines().rev().take(8).collect();
        let mut seen = seen.unwrap_or_else(|error| {
            let mut seen = Seen::default();
            seen.refused.push(format!("{error:#}"));
            seen
        });
        let settings = Settings {
            gpu: Some(self.gpu.clone()),
            run: vec![RunSettings {
                arguments: arguments.to_owned(),
                said_by: RunSource::CommandLine,
                ..RunSettings::default()
            }],
            ..Settings::default()
        };
        let folder = path.parent().unwrap_or(Path::new("/")).to_path_buf();
        let project = Project::new(Arc::new(DiskFiles::new()), vec![folder]);
        let engine = Engine::with_project(Profiles::builtin(), project);
        let (sites, is_cut) = engine.launches(path, &settings).unwrap_or_default();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let ended_well = ended.is_some_and(|status| status.code().is_some_and(|code| code < 2));
        // With what memory held at each: it is large.
        let launches = std::mem::take(&mut seen.launches);
        Ok(Ran {
            name: format!("{name} {arguments}"),
            ended,
            said: tail.into_iter().rev().collect::<Vec<_>>().join("\n"),
            compared: compare::compare(&launches, &sites, is_cut, ended_well),
            seen,
        })
    }
}

impl Ran {
    /// Why it did not come to its end as it should, where it did not.
    fn fails(&self) -> Option<String> {
        match self.ended {
            None => Some("it was ended".to_owned()),
            Some(status) if status.success() => None,
            Some(status) => match status.signal() {
                Some(signal) => Some(format!("it ended by signal {signal}")),
                // Its own check of results fails where a kernel was not run.
                None if !self.seen.not_run.is_empty() && status.code() == Some(1) => None,
                None => Some(format!("it ended with {status}")),
            },
        }
    }
}

/// What the runtime tells of a GPU, in its order.
fn properties(profile: &Profile) -> Vec<u64> {
    let (major, minor) = profile.compute_capability.unwrap_or((9, 0));
    let memory = 40 << 30;
    [
        profile.sms,
        profile.max_warps_per_sm * profile.warp_size,
        profile.shared_per_sm,
        profile.shared_per_block,
        profile.registers_per_sm,
        (profile.sm_clock_mhz * 1e3) as u32,
        major,
        minor,
    ]
    .into_iter()
    .map(u64::from)
    .chain([memory])
    .collect()
}

/// The sources beside a program's that have no `main` of their own.
fn linked_with(main: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let folder = main.parent().unwrap_or(Path::new("."));
    let mut linked = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if is_source(&path) && !has_main(&path)? {
            linked.push(path);
        }
    }
    linked.sort();
    Ok(linked)
}

fn is_source(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("cu" | "cpp" | "cc" | "c"))
}

fn has_main(path: &Path) -> anyhow::Result<bool> {
    Ok(String::from_utf8_lossy(&std::fs::read(path)?).contains(" main("))
}

/// A text with the headers beside it that it includes, for the oracle.
fn with_own_headers(path: &Path, depth: usize) -> String {
    let text = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let mut whole = String::new();
    for line in text.lines() {
        let name = line
            .trim()
            .strip_prefix('#')
            .and_then(|rest| rest.trim().strip_prefix("include"))
            .and_then(|rest| rest.trim().strip_prefix('"')?.strip_suffix('"'));
        let header = name.and_then(|name| Some(path.parent()?.join(name)));
        match header.filter(|header| header.is_file() && depth < 8) {
            Some(header) => whole.push_str(&with_own_headers(&header, depth + 1)),
            None => {
                whole.push_str(line);
                whole.push('\n');
            }
        }
    }
    whole
}
