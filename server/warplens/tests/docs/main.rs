//! The documentation's commands, run: every ```` ```sh ```` block and every `$` line of a ```` ```console ```` block of a page,
//! one behind the other, in a folder with kernels and a git history.
//!
//! A comment before a block says what is special about it: `<!-- exits N -->` is its status where it is not 0,
//! `<!-- not run: REASON -->` leaves it out. Of what is left out, and of commands within a line, it is checked that
//! subcommands, options and tasks are there. What a `console` block shows is what the command prints, a hundred columns
//! wide; a line `…` matches any lines.

#![cfg(unix)]

mod page;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;

use page::{Block, Page};

const WARPLENS: &str = env!("CARGO_BIN_EXE_warplens");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn pages() -> Vec<PathBuf> {
    fn under(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("a folder of the repository") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                under(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    let root = root();
    let mut found = Vec::new();
    under(&root.join("docs"), &mut found);
    for page in [
        "README.md",
        "CONTRIBUTING.md",
        "ARCHITECTURE.md",
        "hw-profiles/README.md",
    ] {
        found.push(root.join(page));
    }
    found.sort();
    found
}

/// A folder as the documentation's reader might have one, with `warplens` on the `PATH`.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().expect("a temporary folder"));
        let top = folder.0.path();
        for made in ["bin", "home", "project/tests/kernels", "project/kernels"] {
            fs::create_dir_all(top.join(made)).expect("a folder");
        }
        std::os::unix::fs::symlink(WARPLENS, top.join("bin/warplens")).expect("a link");
        let ours = root().join("tests/kernels");
        for entry in fs::read_dir(&ours).expect("our kernels") {
            let path = entry.expect("readable").path();
            let name = path.file_name().expect("a name");
            if path.is_file() {
                fs::copy(&path, top.join("project/tests/kernels").join(name)).expect("a copy");
            }
        }
        let kernel = fs::read_to_string(ours.join("transpose.cu")).expect("our kernel");
        fs::write(top.join("project/kernels/transpose.cu"), &kernel).expect("written");
        let one = "// warplens: grid=(4096) n=1048576\n\
                   __global__ void scale(float* __restrict__ out, const float* __restrict__ in, int n) {\n    \
                   int i = blockIdx.x * blockDim.x + threadIdx.x;\n    \
                   if (i < n) out[i] = 2.0f * in[i];\n}\n";
        fs::write(top.join("project/kernel.cu"), one).expect("written");
        for command in [
            "git init -q -b main && git config user.name 'A Name' && git config user.email name@example.org",
            "git add . && git commit -q -m 'Kernels' && git tag v1.2",
            "sed -i 's/2.0f/3.0f/' kernel.cu && git commit -q -a -m 'Another factor' && git tag v1.3",
        ] {
            let done = folder.bash(command);
            assert!(done.status.success(), "{}", said(&done));
        }
        folder
    }

    fn bash(&self, text: &str) -> Output {
        let top = self.0.path();
        let path = std::env::var("PATH").unwrap_or_default();
        Command::new("bash")
            .args(["--noprofile", "--norc", "-euo", "pipefail", "-c", text])
            .current_dir(top.join("project"))
            .env("PATH", format!("{}:{path}", top.join("bin").display()))
            .env("HOME", top.join("home"))
            .env_remove("XDG_CONFIG_HOME")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .env("COLUMNS", "100")
            .stdin(Stdio::null())
            .output()
            .expect("bash runs")
    }
}

fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

/// What is wrong with a page.
fn problems(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).expect("a page");
    let page = Page::read(&text);
    let shown = path
        .strip_prefix(root())
        .unwrap_or(path)
        .display()
        .to_string();
    let mut found: Vec<String> = page.problems.clone();
    let mut folder: Option<Folder> = None;
    for block in &page.blocks {
        if block.not_run {
            found.extend(block.commands().iter().flat_map(|line| unknown(line)));
            continue;
        }
        let folder = folder.get_or_insert_with(Folder::new);
        found.extend(run(folder, block));
    }
    found.extend(page.spans.iter().flat_map(|line| unknown(line)));
    found
        .into_iter()
        .map(|problem| format!("{shown}: {problem}"))
        .collect()
}

fn run(folder: &Folder, block: &Block) -> Vec<String> {
    let mut wrong = Vec::new();
    for (command, shown) in block.steps() {
        let done = folder.bash(&command);
        let all = said(&done);
        if done.status.code() != Some(block.status) {
            wrong.push(format!(
                "`{command}` gives status {:?}, not {}:\n{all}",
                done.status.code(),
                block.status
            ));
        } else if let Some(shown) = shown
            && !page::matches(&shown, &all)
        {
            wrong.push(format!("`{command}` prints\n{all}and not\n{shown}"));
        }
    }
    wrong
}

/// What a command names that is not there.
fn unknown(command: &str) -> Vec<String> {
    let words: Vec<&str> = command.split_whitespace().collect();
    match words.as_slice() {
        ["warplens", subcommand, rest @ ..] if subcommand.starts_with(char::is_lowercase) => {
            let Some(help) = help(subcommand) else {
                return vec![format!("`{command}`: there is no such command")];
            };
            let options = rest
                .iter()
                .take_while(|word| !matches!(**word, "|" | ">" | "#" | "&&"))
                .filter_map(|word| word.split('=').next().filter(|name| name.starts_with("--")));
            options
                .filter(|name| {
                    **name != *"--" && !help.split([' ', ',', '\n']).any(|known| known == *name)
                })
                .map(|name| format!("`{command}`: `{subcommand}` has no option {name}"))
                .collect()
        }
        ["cargo", program @ ("xtask" | "lab"), task, ..]
            if task.starts_with(char::is_lowercase) =>
        {
            let main = match *program {
                "lab" => include_str!("../../../lab/src/main.rs"),
                _ => include_str!("../../../xtask/src/main.rs"),
            };
            let variant: String = task
                .split('-')
                .map(|word| word[..1].to_uppercase() + &word[1..])
                .collect();
            let known = main.contains(&format!("\n    {variant}("));
            (!known)
                .then(|| format!("`{command}`: there is no such task"))
                .into_iter()
                .collect()
        }
        _ => Vec::new(),
    }
}

/// What a subcommand says of itself; `None` where there is none of that name.
fn help(subcommand: &str) -> Option<String> {
    static KNOWN: Mutex<BTreeMap<String, Option<String>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().expect("no holder panics");
    let ask = || {
        let output = Command::new(WARPLENS).args([subcommand, "--help"]).output();
        let output = output.expect("warplens runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.success().then_some(text)
    };
    known
        .entry(subcommand.to_owned())
        .or_insert_with(ask)
        .clone()
}

/// `PAGE=part-of-path` looks at some pages only.
#[test]
fn every_command_of_the_documentation_does_what_it_says() {
    let wanted = std::env::var("PAGE").unwrap_or_default();
    let pages = pages().into_iter();
    let pages: Vec<PathBuf> = pages
        .filter(|path| path.display().to_string().contains(&wanted))
        .collect();
    let found: Vec<String> = std::thread::scope(|scope| {
        let halves = pages.chunks(pages.len().div_ceil(2).max(1));
        let threads: Vec<_> = halves
            .map(|pages| {
                scope.spawn(move || {
                    pages
                        .iter()
                        .flat_map(|path| problems(path))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        let found = threads.into_iter();
        found
            .flat_map(|thread| thread.join().expect("no panic"))
            .collect()
    });
    assert!(found.is_empty(), "{}", found.join("\n\n"));
}

#[test]
fn a_command_that_is_none_is_found() {
    assert!(unknown("warplens check --baseline FILE | head").is_empty());
    assert!(unknown("warplens explain RULE").is_empty());
    assert!(unknown("cargo xtask new-rule mem/x").is_empty());
    assert!(!unknown("warplens chekc x").is_empty());
    assert!(!unknown("warplens check --no-such-option").is_empty());
    assert!(!unknown("cargo xtask no-such-task").is_empty());
    assert!(unknown("cargo lab corpus DIR").is_empty());
    assert!(!unknown("cargo lab no-such-task").is_empty());
    let folder = Folder::new();
    let block = |text: &str| Page::read(text).blocks.remove(0);
    assert!(run(&folder, &block("```sh\nwarplens gpus >/dev/null\n```\n")).is_empty());
    assert!(!run(&folder, &block("```sh\nwarplens gpus no-such-gpu\n```\n")).is_empty());
    let wrong = "<!-- exits 2 -->\n```sh\nwarplens gpus no-such-gpu\n```\n";
    assert!(run(&folder, &block(wrong)).is_empty());
    assert!(run(&folder, &block("```console\n$ echo a\na\n```\n")).is_empty());
    assert!(!run(&folder, &block("```console\n$ echo a\nb\n```\n")).is_empty());
}
