//! `cargo lab history` over our own kernels, and over a program whose answers depend on what it is given besides.

use std::path::{Path, PathBuf};
use std::process::Command;

use xtask::repository;

fn history(program: &Path, folders: &[PathBuf], options: &[&str]) -> (Option<i32>, String) {
    let run = Command::new(env!("CARGO_BIN_EXE_lab"))
        .arg("history")
        .args(folders)
        .arg("--bin")
        .arg(program)
        .args(options)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&run.stdout).into_owned();
    (
        run.status.code(),
        text + &String::from_utf8_lossy(&run.stderr),
    )
}

fn warplens() -> PathBuf {
    repository::tested_program("warplens", "cli").unwrap()
}

#[test]
fn our_kernels_have_one_answer_whatever_came_before() {
    let ours = ["tests/kernels", "tests/corpus", "server/advice/src/rules"];
    let folders = ours.map(|folder| repository::root().join(folder));
    let options = ["--files", "5", "--edits", "10"];
    let (status, text) = history(&warplens(), &folders, &options);
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("15 files, 0 answers that differ"), "{text}");
}

#[cfg(unix)]
#[test]
fn an_answer_that_depends_on_the_other_files_is_found() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let sources = folder.path().join("sources");
    std::fs::create_dir(&sources).unwrap();
    for name in ["one", "two"] {
        let kernel = format!("__global__ void {name}(float *a) {{ a[2 * threadIdx.x] = 1; }}\n");
        std::fs::write(sources.join(format!("{name}.cu")), kernel).unwrap();
    }
    let program = folder.path().join("program");
    let script = format!(
        "#!/bin/sh\ncase \"$1 $#\" in\ncheck*7) '{0}' \"$@\" | sed 's/lie side by side/lie apart/' ;;\n*) exec '{0}' \"$@\" ;;\nesac\n",
        warplens().display()
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (status, text) = history(&program, &[sources], &["--edits", "0"]);
    assert_eq!(status, Some(1), "{text}");
    for part in [
        "one.cu, with others, 1 threads",
        ".diagnostics[0].message",
        "2 files, 6 answers that differ",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}
