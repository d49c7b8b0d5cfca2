//! `--fix` and `--diff`: the edits applied, or shown.

use std::process::ExitCode;

use anyhow::Context;
use warplens_report::figure::counted;
use warplens_report::{Style, patch};

use crate::checked::{CheckRun, FixedFile};
use crate::{input, output};

/// The files that change.
pub(super) struct Fixed {
    files: Vec<FixedFile>,
    /// Standard input as it is, where it is checked.
    piped: Option<String>,
}

impl Fixed {
    pub(super) fn of<T: Sync>(checked: &CheckRun<T>) -> Fixed {
        let mut files = checked.files().map(|(path, _)| path);
        let piped = files.find(|path| input::is_piped(path));
        Fixed {
            files: checked.fixed(),
            piped: piped.and_then(|path| Some(input::read(path).ok()?.text)),
        }
    }

    /// Prints the changes; status 1 where there are some.
    pub(super) fn show(&self, style: Style) -> anyhow::Result<ExitCode> {
        let diffs = self.files.iter().map(|file| {
            let name = file.path.display().to_string();
            patch::unified(&name, &file.before, &file.after, style)
        });
        output::emit(&diffs.collect::<String>())?;
        self.say("would be fixed");
        Ok(ExitCode::from(u8::from(!self.files.is_empty())))
    }

    /// Writes the files. True where that is all there is to do: the edited text of standard input is the output.
    pub(super) fn write(&self) -> anyhow::Result<bool> {
        let mut printed = self.piped.as_deref();
        for file in &self.files {
            if input::is_piped(&file.path) {
                printed = Some(&file.after);
                continue;
            }
            std::fs::write(&file.path, &file.after)
                .with_context(|| format!("cannot write {}", file.path.display()))?;
        }
        if let Some(text) = printed {
            output::emit(text)?;
        }
        self.say("fixed");
        Ok(printed.is_some())
    }

    fn say(&self, what: &str) {
        for file in &self.files {
            for title in &file.applied {
                output::complain(&format!("{}: {title}", file.path.display()));
            }
        }
        let edits = self.files.iter().map(|file| file.applied.len() as u64);
        let findings = counted(edits.sum(), "finding");
        let files = counted(self.files.len() as u64, "file");
        output::complain(&format!("{findings} in {files} {what}"));
    }
}
