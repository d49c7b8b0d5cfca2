//! What packages take from the program: its version, completions and manual pages.

use std::process::Command;

use crate::Folder;

/// The commands that `--help` lists.
fn commands(folder: &Folder) -> Vec<String> {
    let help = folder.run(&["--help"]).out;
    let behind = help.split_once("Commands:\n").expect("a list of commands");
    let list = behind.1.split("\n\n").next().unwrap_or_default();
    list.lines()
        .filter_map(|line| {
            let name = line.strip_prefix("  ")?;
            let name = name.split(' ').next().filter(|name| !name.is_empty())?;
            (name != "help").then(|| name.to_owned())
        })
        .collect()
}

#[test]
fn a_version_names_what_figures_hang_on() {
    let folder = Folder::new();
    let short = folder.run(&["-V"]).out;
    let long = folder.run(&["--version"]).out;
    // Those who only want the first line, such as the editors, get what `-V` says.
    assert_eq!(long.lines().next(), short.lines().next());
    assert_eq!(short.lines().count(), 1, "{short}");
    let said = |name: &str| {
        let line = long.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("no line {name:?} in {long}"))
    };
    assert!(said("grammars: ").contains("tree-sitter-cuda 0."), "{long}");
    assert!(
        said("grammars: ").contains("tree-sitter-opencl 0."),
        "{long}"
    );
    let gpus = folder.run(&["gpus", "--format", "json"]).json();
    let gpus = gpus["gpus"].as_array().expect("a list").len();
    assert!(
        said("profiles: ").starts_with(&format!("schema 1, {gpus} GPUs, ")),
        "{long}"
    );
    assert!(said("target: ").contains(std::env::consts::ARCH), "{long}");
}

#[test]
fn every_shell_gets_completions() {
    let folder = Folder::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let run = folder.run(&["completions", shell]);
        assert_eq!((run.code, run.err.as_str()), (0, ""), "{shell}");
        for command in commands(&folder) {
            assert!(run.out.contains(&command), "{shell} lacks {command}");
        }
    }
    let unknown = folder.run(&["completions", "tcsh"]);
    assert_eq!((unknown.code, unknown.out.as_str()), (2, ""));
    assert!(unknown.err.contains("tcsh"), "{unknown:?}");
}

#[test]
fn bash_completes_commands_options_and_values() {
    let folder = Folder::new();
    folder.write(
        "warplens.bash",
        folder.run(&["completions", "bash"]).out.as_bytes(),
    );
    let completed = |words: &[&str]| {
        let last = words.len() - 1;
        let script = format!(
            "source ./warplens.bash; COMP_WORDS=({}); COMP_CWORD={last}; \
             _warplens warplens {:?} {:?}; echo \"${{COMPREPLY[*]}}\"",
            words.join(" "),
            words[last],
            words[last - 1],
        );
        let bash = Command::new("bash")
            .args(["--norc", "-c", &script])
            .current_dir(folder.path())
            .output()
            .expect("bash runs");
        String::from_utf8_lossy(&bash.stdout).trim().to_owned()
    };
    assert_eq!(completed(&["warplens", "chec"]), "check");
    assert_eq!(completed(&["warplens", "check", "--fail"]), "--fail-on");
    assert_eq!(
        completed(&["warplens", "check", "--format", "sar"]),
        "sarif"
    );
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = Folder::new();
    let run = folder.run(&["man", "share/man1"]);
    assert_eq!((run.code, run.out.as_str(), run.err.as_str()), (0, "", ""));
    let page = |name: &str| {
        let path = folder.path().join("share/man1").join(name);
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(text.contains(".TH "), "no page {name}");
        text.replace("\\-", "-")
    };
    let own = page("warplens.1");
    for command in commands(&folder) {
        assert!(own.contains(&format!("warplens-{command}(1)")), "{command}");
        page(&format!("warplens-{command}.1"));
    }
    assert!(page("warplens-check.1").contains("--fail-on"));
    folder.write("file", "");
    let run = folder.run(&["man", "file"]);
    assert_eq!((run.code, run.out.as_str()), (2, ""));
    assert!(
        run.err.contains("cannot write manual pages to file"),
        "{run:?}"
    );
}
