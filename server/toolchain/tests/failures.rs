//! Compilers that are none, hang, make noise or fail: scripts that behave so.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use warplens_toolchain::{CompileRequest, CompilerReport, Failure, compile};

const IS_NVCC: &str = "if [ \"$1\" = --version ]; then \
    echo 'nvcc: NVIDIA (R) Cuda compiler driver'; echo 'release 13.0, V13.0.88'; exit; fi\n";

struct Fake {
    folder: tempfile::TempDir,
}

impl Fake {
    fn new(script: &str) -> Fake {
        let folder = tempfile::tempdir().unwrap();
        let fake = Fake { folder };
        fs::write(fake.tool(), format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(fake.tool(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(fake.source(), "__global__ void k() {}\n").unwrap();
        fake
    }

    fn tool(&self) -> PathBuf {
        self.folder.path().join("nvcc")
    }

    fn source(&self) -> PathBuf {
        self.folder.path().join("k.cu")
    }

    fn request(&self, bound: Duration) -> CompileRequest {
        CompileRequest {
            file: self.source(),
            arguments: Vec::new(),
            architecture: "sm_80".to_owned(),
            bound,
        }
    }

    fn compile(&self) -> Result<CompilerReport, Failure> {
        let request = self.request(Duration::from_secs(20));
        compile(&self.tool(), &request, &AtomicBool::new(false))
    }
}

#[test]
fn what_is_not_there_or_no_compiler_is_said_so() {
    let fake = Fake::new("echo something else");
    assert!(matches!(fake.compile(), Err(Failure::Unknown(_))));
    let request = fake.request(Duration::from_secs(5));
    let none = compile(
        Path::new("/nowhere/nvcc"),
        &request,
        &AtomicBool::new(false),
    );
    assert!(matches!(none, Err(Failure::NotFound(_))), "{none:?}");
    let none = compile(
        Path::new("no-such-compiler"),
        &request,
        &AtomicBool::new(false),
    );
    assert!(matches!(none, Err(Failure::NotFound(_))), "{none:?}");
    let source = compile(&fake.source(), &request, &AtomicBool::new(false));
    assert!(
        matches!(source, Err(Failure::NotExecutable { .. })),
        "{source:?}"
    );
}

#[test]
fn an_old_one_is_refused() {
    let fake = Fake::new("echo 'nvcc: NVIDIA'; echo 'release 8.0, V8.0.61'");
    let answer = fake.compile().unwrap_err().to_string();
    assert_eq!(
        answer,
        "nvcc 8.0 is too old: version 10.0 or later is required"
    );
}

#[test]
fn its_first_error_is_said() {
    let script = "echo 'k.cu(1): warning #1: never mind' >&2\n\
                  echo 'k.cu(2): error: no such thing' >&2\nexit 2";
    let answer = Fake::new(&format!("{IS_NVCC}{script}"))
        .compile()
        .unwrap_err();
    let wanted = "compilation failed: k.cu(2): error: no such thing";
    assert_eq!(answer.to_string(), wanted);
}

#[test]
fn success_without_a_cubin_is_not_understood() {
    let fake = Fake::new(&format!("{IS_NVCC}echo fine"));
    assert!(matches!(fake.compile(), Err(Failure::NotUnderstood(_))));
}

#[test]
fn one_that_hangs_is_killed_with_its_children() {
    // The child of the child notes its number, and outlives its parent.
    let fake = Fake::new(&format!(
        "{IS_NVCC}(sleep 60 & echo $! > \"$(dirname \"$0\")/child\"; wait) & wait"
    ));
    let started = Instant::now();
    let request = fake.request(Duration::from_millis(700));
    let answer = compile(&fake.tool(), &request, &AtomicBool::new(false));
    assert_eq!(answer, Err(Failure::TooLong(request.bound)));
    assert!(started.elapsed() < Duration::from_secs(10));
    let child = fs::read_to_string(fake.folder.path().join("child")).unwrap();
    let process = PathBuf::from(format!("/proc/{}/stat", child.trim()));
    let until = Instant::now() + Duration::from_secs(5);
    let gone = || fs::read_to_string(&process).map_or(true, |stat| stat.contains(") Z "));
    while !gone() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(gone(), "a child lives on");
}

#[test]
fn one_that_is_no_longer_awaited_is_killed() {
    let fake = Fake::new(&format!("{IS_NVCC}sleep 60"));
    let cancelled = AtomicBool::new(false);
    let request = fake.request(Duration::from_secs(50));
    let answer = std::thread::scope(|scope| {
        let asking = scope.spawn(|| compile(&fake.tool(), &request, &cancelled));
        std::thread::sleep(Duration::from_millis(300));
        cancelled.store(true, Ordering::Relaxed);
        asking.join().unwrap()
    });
    assert_eq!(answer, Err(Failure::Cancelled));
}

#[test]
fn one_that_never_stops_talking_is_killed() {
    let fake = Fake::new(&format!("{IS_NVCC}exec yes"));
    assert!(matches!(fake.compile(), Err(Failure::TooMuch(_))));
}

#[test]
fn what_it_is_given_is_what_passes() {
    let fake = Fake::new(&format!(
        "{IS_NVCC}for a in \"$@\"; do echo \"$a\"; done > \"$(dirname \"$0\")/given\"; pwd > \
         \"$(dirname \"$0\")/where\"; exit 1"
    ));
    let mut request = fake.request(Duration::from_secs(20));
    request.arguments = ["-DN=4", "-o", "/tmp/x", "-Xcompiler", "-fplugin=x", "@more"]
        .map(str::to_owned)
        .into();
    let _ = compile(&fake.tool(), &request, &AtomicBool::new(false));
    let given = fs::read_to_string(fake.folder.path().join("given")).unwrap();
    let given: Vec<&str> = given.lines().collect();
    assert!(
        given.contains(&"-DN=4") && given.contains(&"-arch=sm_80"),
        "{given:?}"
    );
    for gone in ["/tmp/x", "-Xcompiler", "-fplugin=x", "@more"] {
        assert!(!given.contains(&gone), "{given:?}");
    }
    let folder = fs::read_to_string(fake.folder.path().join("where")).unwrap();
    assert_ne!(Path::new(folder.trim()), fake.folder.path());
    assert!(!Path::new(folder.trim()).exists(), "{folder} is left");
}

#[test]
fn a_path_that_a_shell_would_read_is_refused() {
    let fake = Fake::new(IS_NVCC);
    let mut request = fake.request(Duration::from_secs(20));
    request.file = fake.folder.path().join("a$(touch b).cu");
    let answer = compile(&fake.tool(), &request, &AtomicBool::new(false));
    assert!(matches!(answer, Err(Failure::Refused(_))), "{answer:?}");
}
