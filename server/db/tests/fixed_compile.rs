//! What code actions make of the fixtures compiles as the fixtures do: CUDA with nvcc, OpenCL with clang where there is one.
//!
//! `cargo xtask test --group compilers`, which has an nvcc.

#[allow(dead_code, reason = "what runs the fixtures is the other test's")]
#[path = "fixes/actions/mod.rs"]
mod actions;
#[path = "../../toolchain/tests/compiler/mod.rs"]
mod compiler;

use std::fs;
use std::path::Path;
use std::process::Command;

use actions::fixtures;

/// What a compiler complains of; `None` where it is content.
fn complaint(command: &mut Command) -> Option<String> {
    let output = command.output().expect("the compiler can be started");
    (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

fn compile(file: &Path, nvcc: &Path, clang: Option<&str>) -> Option<String> {
    // HIP needs headers that come with no package: its spelling is CUDA's, which the other fixtures show.
    if file.extension().is_some_and(|kind| kind == "hip") {
        return None;
    }
    if file.extension().is_some_and(|kind| kind == "cl") {
        let mut command = Command::new(clang?);
        let options = [
            "-x",
            "cl",
            "-cl-std=CL1.2",
            "-Xclang",
            "-finclude-default-header",
        ];
        return complaint(command.args(options).arg("-fsyntax-only").arg(file));
    }
    let mut command = Command::new(nvcc);
    // To PTX, and nothing kept: the front end and what it lowers are what an edit may break.
    let options = ["-arch=sm_80", "-std=c++17", "-ptx", "-o", "/dev/null"];
    complaint(command.args(options).arg(file))
}

#[test]
fn edited_kernels_compile() {
    let nvcc = compiler::nvcc();
    let clang = ["clang", "clang-19"].into_iter().find(|clang| {
        let version = Command::new(clang).arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    });
    let folder = tempfile::tempdir().expect("a folder");
    let mut faults = Vec::new();
    let mut compiled = 0;
    for fixture in fixtures() {
        let opened = fixture.open(&fixture.text);
        let meant = opened.fixes().into_iter().filter(|fix| fixture.means(fix));
        let texts = meant.map(|fix| (fix.title.clone(), opened.with(&fix)));
        for (title, text) in [("as it is".to_owned(), fixture.text.clone())]
            .into_iter()
            .chain(texts)
        {
            let file = folder
                .path()
                .join(fixture.path.file_name().expect("a file"));
            fs::write(&file, &text).expect("writable");
            compiled += 1;
            if let Some(complaint) = compile(&file, &nvcc, clang) {
                faults.push(format!(
                    "{}: {title}: {complaint}\n{text}",
                    fixture.path.display()
                ));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(compiled > 0, "there are fixtures");
}
