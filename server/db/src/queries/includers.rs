//! Query family: who includes a file.
//!
//! In: a file, where headers are looked for. Out: the files that include it, the nearest first, and the programs that it is a part of.
//! What holds: the file's own text is no part of that.

#![allow(
    clippy::needless_pass_by_value,
    reason = "a query owns what it is asked under"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use warplens_syntax::Language;

use crate::database::{Db, File, file, world};
use crate::look::Look;
use crate::queries::near;
use crate::settings::Settings;

/// Files that include a file, one including the other, are followed so far.
const DEEPEST_INCLUDERS: usize = 8;
/// Files that include one and are looked at.
const MOST_INCLUDING: usize = 8;

/// The files that include this one, the nearest first, a source before a header.
#[salsa::tracked(returns(clone))]
fn including(db: &dyn Db, of: File, opencl: bool, include_paths: Vec<String>) -> Arc<[PathBuf]> {
    let look = Look::inside(db);
    let path: &Path = of.path(db);
    let settings = Settings {
        include_paths,
        ..Settings::default()
    };
    let includes = |from: &Path, line: &str| {
        // A host program that includes OpenCL as a string does not compile it.
        if opencl && Language::from_path(from) != Some(Language::OpenCl) {
            return false;
        }
        let command = look.command(from);
        let bounds = look.bounds(from);
        let (search, _) = look.search(&settings, command.as_deref(), bounds.as_ref());
        search.resolve(look.files, line, false, from).as_deref() == Some(path)
    };
    let named = near::includers(db, path, world(db).roots(db)).into_iter();
    let named = named.filter(|(from, line)| includes(from, line));
    let mut including: Vec<PathBuf> = named.map(|(from, _)| from).take(MOST_INCLUDING).collect();
    including.dedup();
    including.into()
}

/// The files that include a file, one the other, the outermost first: what it knows is before all the others.
#[salsa::tracked(returns(clone))]
fn chain(db: &dyn Db, of: File, opencl: bool, include_paths: Vec<String>) -> Arc<[PathBuf]> {
    let path = of.path(db);
    let mut chain: Vec<PathBuf> = Vec::new();
    let mut at = path.clone();
    while chain.len() < DEEPEST_INCLUDERS
        && let Some(next) = including(db, file(db, &at), opencl, include_paths.clone()).first()
        && *next != *path
        && !chain.contains(next)
    {
        chain.push(next.clone());
        at.clone_from(next);
    }
    chain.reverse();
    chain.into()
}

impl Look<'_> {
    /// The files that include a file, the outermost first.
    pub(crate) fn includers_of(
        &self,
        path: &Path,
        opencl: bool,
        settings: &Settings,
    ) -> Arc<[PathBuf]> {
        self.ask(|db| chain(db, file(db, path), opencl, settings.include_paths.clone()))
    }
}

/// The programs that a host file is a part of: those that include it, by way of others or not; none where no file
/// does.
pub(crate) fn programs_with(db: &dyn Db, host: &Path, settings: &Settings) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let paths = &settings.include_paths;
    for direct in including(db, file(db, host), false, paths.clone()).iter() {
        let chain = chain(db, file(db, direct), false, paths.clone());
        let outermost = chain.first().unwrap_or(direct);
        if outermost != host && !found.contains(outermost) {
            found.push(outermost.clone());
        }
    }
    found
}
