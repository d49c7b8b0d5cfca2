//! `warplens doctor` and `warplens gpus --detect`, on machines made of scripts.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A machine with these programs on its PATH, nothing else, and a home of its own.
struct Machine {
    folder: tempfile::TempDir,
}

impl Machine {
    fn with(programs: &[(&str, &str)]) -> Machine {
        let machine = Machine {
            folder: tempfile::tempdir().expect("a folder"),
        };
        for folder in ["bin", "home", "work"] {
            fs::create_dir(machine.at(folder)).expect("a folder");
        }
        for (name, script) in programs {
            let path = machine.at("bin").join(name);
            fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a file");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("permissions");
        }
        machine
    }

    fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(path)
    }

    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let Output {
            status,
            stdout,
            stderr,
        } = Command::new(env!("CARGO_BIN_EXE_warplens"))
            .args(arguments)
            .current_dir(self.at("work"))
            .env_clear()
            .env("PATH", self.at("bin"))
            .env("HOME", self.at("home"))
            .output()
            .expect("it runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        (status.code().expect("a status"), text(stdout), text(stderr))
    }
}

#[test]
fn a_machine_with_nothing_is_fine_and_says_what_could_be_there() {
    let machine = Machine::with(&[]);
    let (code, out, err) = machine.run(&["doctor"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    for part in [
        "ok      warplens ",
        "no warplens on the PATH",
        "no warplens.toml",
        "a100-sxm4-40gb, the default",
        "no nvidia-smi, rocminfo or clinfo",
        "registers are estimated",
        "no integration found",
    ] {
        assert!(out.contains(part), "`{part}` in {out}");
    }
    let (code, out, err) = machine.run(&["gpus", "--detect"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains("no nvidia-smi"), "{err}");
}

#[test]
fn gpus_compilers_and_editors_are_found() {
    let machine = Machine::with(&[
        ("nvidia-smi", "echo 'NVIDIA GeForce RTX 3090'"),
        (
            "clinfo",
            "printf 'Platform #0: A\\n `-- Device #0: NVIDIA GeForce RTX 3090\\n `-- Device #1: Voodoo 2\\n'",
        ),
        (
            "nvcc",
            "echo 'nvcc: NVIDIA (R) Cuda compiler driver'; echo 'Cuda compilation tools, release 12.4, V12.4.131'",
        ),
        ("nvim", "echo 'NVIM v0.11.4'; echo 'Build type: Release'"),
    ]);
    fs::write(machine.at("work/warplens.toml"), "gpu = \"rtx-3090\"\n").expect("a file");
    let plugin = machine.at("home/.local/share/nvim/lazy/warplens/lua/warplens");
    fs::create_dir_all(&plugin).expect("folders");
    fs::write(plugin.join("init.lua"), "").expect("a file");
    let extension = machine.at("home/.vscode/extensions/warplens.warplens-0.1.0");
    fs::create_dir_all(extension).expect("folders");
    let (code, out, err) = machine.run(&["doctor"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    for part in [
        "ok      warplens.toml",
        "the target is rtx-3090",
        "this machine has it: NVIDIA GeForce RTX 3090 (nvidia-smi)",
        "no profile for Voodoo 2 (clinfo)",
        "nvcc 12.4: ",
        "Neovim: NVIM v0.11.4, plugin in ",
        "VS Code: extension 0.1.0",
    ] {
        assert!(out.contains(part), "`{part}` in {out}");
    }
    assert_eq!(out.matches("RTX 3090 (").count(), 1, "once: {out}");

    let (code, out, _) = machine.run(&["gpus", "--detect", "--format", "json"]);
    assert_eq!(code, 0);
    let found: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(
        found,
        serde_json::json!({"schema": "warplens.detected/1", "gpus": [
            {"tool": "nvidia-smi", "name": "NVIDIA GeForce RTX 3090", "profile": "rtx-3090"},
            {"tool": "clinfo", "name": "Voodoo 2", "profile": null},
        ]})
    );
}

#[test]
fn a_gpu_without_a_profile_has_a_nearest_one_that_is_said_to_be_that() {
    let machine = Machine::with(&[(
        "nvidia-smi",
        "case \"$1\" in *compute_cap) echo 'NVIDIA A10G, 8.6'; echo 'Tesla T4, 7.5';; *) exit 2;; esac",
    )]);
    let (code, out, _) = machine.run(&["gpus", "--detect"]);
    assert_eq!(code, 0);
    let row = |name: &str| out.lines().find(|line| line.contains(name)).expect("a row");
    assert!(row("A10G").contains("none, nearest: rtx-a6000"), "{out}");
    assert!(row("T4").contains("  t4 "), "{out}");
    let (_, out, _) = machine.run(&["doctor"]);
    assert!(
        out.contains("no profile for NVIDIA A10G (nvidia-smi), the nearest is rtx-a6000"),
        "{out}"
    );
    // A driver that does not tell the capability tells the name.
    let machine = Machine::with(&[(
        "nvidia-smi",
        "case \"$1\" in *compute_cap) exit 2;; *) echo 'NVIDIA H100 NVL';; esac",
    )]);
    let (_, out, _) = machine.run(&["gpus", "--detect"]);
    assert!(out.contains("none, nearest: h100-sxm5"), "{out}");
}

#[test]
fn what_is_wrong_is_named_with_a_cure() {
    let machine = Machine::with(&[
        ("nvim", "echo 'NVIM v0.7.2'"),
        ("nvidia-smi", "echo 'cannot talk to the driver'; exit 9"),
        ("warplens", "exit 1"),
    ]);
    fs::write(
        machine.at("work/warplens.toml"),
        "gpu = \"rtx-3091\"\nmodle = 1\n",
    )
    .expect("a file");
    let (code, out, err) = machine.run(&["doctor"]);
    assert_eq!((code, err.as_str()), (1, ""), "{out}");
    for part in [
        "wrong   Neovim: NVIM v0.7.2 at ",
        "needs 0.11",
        "nvidia-smi does not list GPUs: ",
        "cannot talk to the driver",
        "does not run: ",
        "warplens.toml:1:",
        "\"rtx-3090\"",
        "warplens.toml:2:",
    ] {
        assert!(out.contains(part), "`{part}` in {out}");
    }
    let (code, _, err) = machine.run(&["doctor", "no/such/folder"]);
    assert_eq!(code, 2);
    assert_eq!(err.lines().count(), 1, "{err}");
}
