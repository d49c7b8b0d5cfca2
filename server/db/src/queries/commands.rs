//! Query family: the command that compiles a file.
//!
//! In: a path. Out: its command in the nearest `compile_commands.json`, or that of the file most like it. What holds: it is looked for
//! again where it may have changed which files there are, as the caller says ([`warplens_base::Files::look_again`]).

use std::path::Path;
use std::sync::Arc;

use warplens_base::Command;

use crate::database::{Db, File, file};
use crate::look::Look;

/// The command that compiles a file, where a `compile_commands.json` has one.
#[salsa::tracked(returns(clone))]
fn command(db: &dyn Db, of: File) -> Option<Arc<Command>> {
    db.files().existence();
    let found = db.stores().commands.command(of.path(db), db.files());
    found.map(|found| found.command)
}

impl Look<'_> {
    /// The command that compiles a file.
    pub(crate) fn command(&self, path: &Path) -> Option<Arc<Command>> {
        let path = std::path::absolute(path).ok()?;
        self.ask(|db| command(db, file(db, &path)))
    }
}
