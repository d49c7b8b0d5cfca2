//! What this machine has: GPUs as their vendors' tools name them, and compilers with their versions.
//!
//! In: the folders of a search path. Out: what was found there and what it said. What holds: only programs in absolute folders are run,
//! each within a time limit, and only where the caller says so.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::Failure;
use crate::identify::identify;
use crate::process::{self, Limits};

/// A tool that lists GPUs.
struct Lister {
    tool: &'static str,
    /// What it is asked, and what instead where it does not know that.
    questions: &'static [&'static [&'static str]],
    /// Reads what it prints.
    read: fn(&str) -> Vec<NamedGpu>,
}

const LISTERS: [Lister; 3] = [
    Lister {
        tool: "nvidia-smi",
        questions: &[
            &["--query-gpu=name,compute_cap", "--format=csv,noheader"],
            &["--query-gpu=name", "--format=csv,noheader"],
        ],
        read: of_nvidia_smi,
    },
    Lister {
        tool: "rocminfo",
        questions: &[&[]],
        read: of_rocminfo,
    },
    Lister {
        tool: "clinfo",
        questions: &[&["-l"]],
        read: of_clinfo,
    },
];

/// A GPU as a tool names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedGpu {
    /// The name that its vendor sells it under.
    pub name: String,
    /// Its architecture, where the tool says it: `gfx90a`, or as a compute capability `8.6`.
    pub architecture: Option<String>,
}

/// What a tool that lists GPUs said.
#[derive(Debug)]
pub struct GpuList {
    /// `nvidia-smi`, `rocminfo` or `clinfo`.
    pub tool: &'static str,
    /// The program; `None` where there is none.
    pub path: Option<PathBuf>,
    /// The GPUs that it lists, or why it lists none.
    pub gpus: Result<Vec<NamedGpu>, Failure>,
}

/// Runs the tools that list GPUs, each for at most `bound`.
pub fn gpus(search_path: &OsStr, bound: Duration) -> Vec<GpuList> {
    let ask = |lister: Lister| {
        let path = find(lister.tool, search_path);
        let gpus = match &path {
            None => Ok(Vec::new()),
            Some(path) => {
                let ask = |question: &&[&str]| said(path, question, bound);
                let mut answers = lister.questions.iter().map(ask);
                let first = answers.next().unwrap_or_else(|| Ok(String::new()));
                let answer =
                    first.or_else(|failed| answers.find(Result::is_ok).unwrap_or(Err(failed)));
                answer.map(|said| (lister.read)(&said))
            }
        };
        GpuList {
            tool: lister.tool,
            path,
            gpus,
        }
    };
    LISTERS.map(ask).into()
}

/// The version of a compiler as people write it, `nvcc 12.4`; runs it for at most `bound`.
pub fn compiler_version(tool: &Path, bound: Duration) -> Result<String, Failure> {
    let cancelled = AtomicBool::new(false);
    identify(tool, &limits(bound, &cancelled)).map(|compiler| compiler.name())
}

/// What a program prints for `--version`, its first line; runs it for at most `bound`.
pub fn program_version(program: &Path, bound: Duration) -> Result<String, Failure> {
    let said = said(program, &["--version"], bound)?;
    Ok(said.lines().next().unwrap_or_default().trim().to_owned())
}

/// The first program of that name in the folders of a search path; folders that are relative are passed over.
pub fn find(name: &str, search_path: &OsStr) -> Option<PathBuf> {
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    std::env::split_paths(search_path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(&file))
        .find(|path| is_program(path))
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path)
        .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}

fn limits(bound: Duration, cancelled: &AtomicBool) -> Limits<'_> {
    Limits {
        until: Instant::now() + bound,
        bound,
        cancelled,
    }
}

/// The standard output of a program that ends well.
fn said(program: &Path, arguments: &[&str], bound: Duration) -> Result<String, Failure> {
    let folder = process::private_folder()?;
    let arguments: Vec<String> = arguments.iter().map(|one| (*one).to_owned()).collect();
    let cancelled = AtomicBool::new(false);
    let limits = limits(bound, &cancelled);
    let outcome = process::run(program, &arguments, folder.path(), &limits)?;
    if outcome.success {
        return Ok(outcome.output);
    }
    let errors = outcome.errors.lines().chain(outcome.output.lines());
    let line = errors.map(str::trim).find(|line| !line.is_empty());
    Err(Failure::Failed(
        line.unwrap_or("it ended with an error").to_owned(),
    ))
}

fn of_nvidia_smi(said: &str) -> Vec<NamedGpu> {
    let lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_capability = |text: &&str| {
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|c| c.is_ascii_digit());
        let parts = text.split_once('.');
        parts.is_some_and(|(major, minor)| digits(major) && digits(minor))
    };
    lines
        .map(|line| {
            let (name, capability) = line.rsplit_once(", ").unwrap_or((line, ""));
            let capability = Some(capability).filter(is_capability);
            NamedGpu {
                name: if capability.is_some() { name } else { line }.to_owned(),
                architecture: capability.map(str::to_owned),
            }
        })
        .collect()
}

/// Agents are separate blocks of `Key: value`; the last key that counts says what an agent is.
fn of_rocminfo(said: &str) -> Vec<NamedGpu> {
    let mut found = Vec::new();
    let (mut name, mut marketing) = (None, None);
    for line in said.lines() {
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        let value = value.trim();
        match key.trim() {
            "Name" if value.starts_with("gfx") || marketing.is_none() => {
                name = Some(value.to_owned());
            }
            "Marketing Name" => marketing = Some(value.to_owned()),
            "Device Type" => {
                let (name, marketing) = (name.take(), marketing.take());
                if value == "GPU"
                    && let Some(shown) = marketing.filter(|it| !it.is_empty()).or(name.clone())
                {
                    found.push(NamedGpu {
                        name: shown,
                        architecture: name.filter(|name| name.starts_with("gfx")),
                    });
                }
            }
            _ => {}
        }
    }
    found
}

/// `` `-- Device #0: NVIDIA A100``
fn of_clinfo(said: &str) -> Vec<NamedGpu> {
    let devices = said.lines().filter_map(|line| {
        let (_, rest) = line.split_once("Device #")?;
        let (_, name) = rest.split_once(':')?;
        Some(name.trim())
    });
    devices
        .filter(|name| !name.is_empty())
        .map(|name| NamedGpu {
            name: name.to_owned(),
            architecture: None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(gpus: &[NamedGpu]) -> Vec<(&str, Option<&str>)> {
        gpus.iter()
            .map(|gpu| (gpu.name.as_str(), gpu.architecture.as_deref()))
            .collect()
    }

    #[test]
    fn each_tool_is_read() {
        let nvidia = of_nvidia_smi("NVIDIA A100-SXM4-40GB\nNVIDIA GeForce RTX 3090\n\n");
        assert_eq!(
            names(&nvidia),
            [
                ("NVIDIA A100-SXM4-40GB", None),
                ("NVIDIA GeForce RTX 3090", None)
            ]
        );
        let with_capability = of_nvidia_smi("NVIDIA A10G, 8.6\nTesla T4\nA, B\n");
        assert_eq!(
            names(&with_capability),
            [
                ("NVIDIA A10G", Some("8.6")),
                ("Tesla T4", None),
                ("A, B", None)
            ]
        );
        let rocm = "Agent 1\n  Name:                    AMD EPYC 7763\n  Marketing Name:          AMD EPYC 7763\n  \
                    Device Type:             CPU\nAgent 2\n  Name:                    gfx90a\n  Uuid: GPU-1\n  \
                    Marketing Name:          AMD Instinct MI210\n  Device Type:             GPU\n  ISA Info:\n    \
                    Name:                    amdgcn-amd-amdhsa--gfx90a\n";
        assert_eq!(
            names(&of_rocminfo(rocm)),
            [("AMD Instinct MI210", Some("gfx90a"))]
        );
        let opencl = "Platform #0: NVIDIA CUDA\n `-- Device #0: Tesla T4\nPlatform #1: Portable\n";
        assert_eq!(names(&of_clinfo(opencl)), [("Tesla T4", None)]);
        for read in [of_nvidia_smi, of_rocminfo, of_clinfo] {
            assert_eq!(read(""), []);
            assert_eq!(read("\u{0}:\n::\n").len() / 3, 0);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_program_in_a_relative_folder_is_never_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let tool = folder.path().join("nvidia-smi");
        std::fs::write(&tool, "#!/bin/sh\necho Tesla T4\n").expect("a file");
        assert_eq!(
            find("nvidia-smi", folder.path().as_os_str()),
            None,
            "no program yet"
        );
        std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .expect("permissions");
        assert_eq!(find("nvidia-smi", folder.path().as_os_str()), Some(tool));
        assert_eq!(find("nvidia-smi", OsStr::new(".:bin")), None);
        let lists = gpus(folder.path().as_os_str(), Duration::from_secs(20));
        let found = lists[0].gpus.as_ref().expect("it ran");
        assert_eq!(names(found), [("Tesla T4", None)]);
        assert!(lists[1].path.is_none() && lists[1].gpus.as_ref().is_ok_and(Vec::is_empty));
    }
}
