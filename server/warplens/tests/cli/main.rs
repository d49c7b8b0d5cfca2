//! The real binary, run as people and scripts run it.

mod bad_input;
mod baseline;
mod calibrate;
mod command_line;
mod diff;
mod doctor;
mod facts;
mod hostile;
#[cfg(debug_assertions)]
mod lost;
mod packaged;
mod program;
mod report;
mod sarif;
mod schemas;
mod sweep;
mod terminal;
mod understood;
mod work_flow;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// A folder of its own for one test, gone afterwards.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        let folder = tempfile::tempdir().expect("a temporary folder");
        // What marks a project further up would make all the folders of the tests one project.
        for above in folder.path().ancestors() {
            let settings = above.join("warplens.toml");
            assert!(!settings.exists(), "in the way: {}", settings.display());
        }
        Folder(folder)
    }

    /// A folder with one file.
    fn with(name: &str, text: impl AsRef<[u8]>) -> Folder {
        let folder = Folder::new();
        folder.write(name, text);
        folder
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().expect("inside the folder")).expect("a folder");
        std::fs::write(&path, text).expect("a file");
        path
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Where the user's settings would be. There are none: a developer's own profiles are no part of a test.
    fn settings(&self) -> PathBuf {
        self.path().join("no-settings")
    }

    /// Runs `warplens` here.
    #[track_caller]
    fn run(&self, arguments: &[&str]) -> Run {
        let output = Command::new(env!("CARGO_BIN_EXE_warplens"))
            .args(arguments)
            .current_dir(self.path())
            .env("XDG_CONFIG_HOME", self.settings())
            .env("APPDATA", self.settings())
            .env_remove("NO_COLOR")
            .env_remove("RUST_BACKTRACE")
            .output()
            .expect("warplens runs");
        Run::new(&output)
    }

    /// `estimate k.cu --format json` with these options.
    #[track_caller]
    fn estimate(&self, options: &[&str]) -> Value {
        let mut arguments = vec!["estimate", "k.cu", "--format", "json"];
        arguments.extend(options);
        self.run(&arguments).json()
    }
}

/// What a run answered.
#[derive(Debug)]
struct Run {
    code: i32,
    out: String,
    err: String,
}

impl Run {
    #[track_caller]
    fn new(output: &Output) -> Run {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
        let code = output.status.code().expect("ended by itself");
        let run = Run {
            code,
            out: text(&output.stdout),
            err: text(&output.stderr),
        };
        assert!(
            !run.err.contains("panicked") && !run.err.contains("internal error"),
            "{run:?}"
        );
        run
    }

    /// Its standard output as JSON, after a status of 0 or 1.
    #[track_caller]
    fn json(&self) -> Value {
        assert!(self.code < 2, "{self:?}");
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Refused with status 2 and one line that holds each of these.
    #[track_caller]
    fn refused(&self, holds: &[&str]) {
        assert_eq!(self.code, 2, "{self:?}");
        assert_eq!(self.out, "", "{self:?}");
        assert_eq!(self.err.lines().count(), 1, "{self:?}");
        for text in holds {
            assert!(self.err.contains(text), "{text}: {self:?}");
        }
    }
}

/// The findings of one rule.
fn of_rule<'a>(document: &'a Value, rule: &str) -> Vec<&'a Value> {
    let all = document["diagnostics"].as_array().expect("diagnostics");
    all.iter()
        .filter(|finding| finding["rule"] == rule)
        .collect()
}
