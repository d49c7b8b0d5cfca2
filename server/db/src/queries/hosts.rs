//! Query family: what a host program says.
//!
//! In: a file, how files are read. Out: [`HostProgram`]: its launches, its builds of OpenCL programs, the kernels it has itself. What
//! holds: it depends on the file and on each file that it reads; one that cannot be read launches nothing.

#![allow(
    clippy::needless_pass_by_value,
    reason = "a query owns what it is asked under"
)]

use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashSet;
use warplens_hir::ItemKind;
use warplens_host::{Build, LaunchSite, builds};
use warplens_machine::Profile;

use crate::contents::Contents;
use crate::database::{Db, File, text};
use crate::look::Look;
use crate::panics::unless_it_panics;
use crate::program::Program;
use crate::queries::expansion::flatten;
use crate::settings::Settings;

/// What decides how a file other than the kernel's own is read.
#[derive(Debug, Clone)]
pub(crate) struct ReadAs(Arc<(Settings, Arc<Profile>)>);

impl ReadAs {
    pub(crate) fn of(settings: &Settings, profile: &Arc<Profile>) -> ReadAs {
        let settings = Settings {
            include_paths: settings.include_paths.clone(),
            defines: settings.defines.clone(),
            kernel_macros: settings.kernel_macros.clone(),
            ..Settings::default()
        };
        ReadAs(Arc::new((settings, Arc::clone(profile))))
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.0.0
    }

    pub(crate) fn profile(&self) -> &Profile {
        &self.0.1
    }

    fn parts(&self) -> impl Hash + PartialEq + '_ {
        let settings = self.settings();
        let profile = self.profile();
        (
            &settings.include_paths,
            &settings.defines,
            &settings.kernel_macros,
            &profile.id,
            profile.compute_capability,
        )
    }
}

impl PartialEq for ReadAs {
    fn eq(&self, other: &ReadAs) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.parts() == other.parts()
    }
}

impl Eq for ReadAs {}

impl Hash for ReadAs {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parts().hash(state);
    }
}

/// What a host program says.
#[derive(Debug, Default)]
pub(crate) struct HostProgram {
    /// Its launches, without what would hold on to whole texts.
    pub(crate) sites: Vec<LaunchSite>,
    pub(crate) builds: Vec<Build>,
    /// The kernels that it or a header of it defines, and where.
    pub(crate) kernels: Vec<(Arc<Path>, String)>,
    /// The headers that it reads.
    pub(crate) reads: FxHashSet<PathBuf>,
    /// All files that it was made of, in the order of their names, its own among them.
    pub(crate) versions: Vec<PathBuf>,
}

/// What a host program says.
#[salsa::tracked(returns(clone), no_eq, lru = 8192)]
pub(crate) fn host_program(db: &dyn Db, of: File, how: ReadAs) -> Arc<HostProgram> {
    let Some(source) = text(db, of) else {
        return Arc::default();
    };
    let said = unless_it_panics(|| {
        let look = Look::inside(db);
        let contents = &look.stores.contents;
        let text = look.alone(&source, how.settings(), how.profile());
        let headers = flatten(&text.includes);
        let program = contents.program(&text, &headers);
        let mut versions: Vec<PathBuf> =
            text.versions.iter().map(|(path, _)| path.clone()).collect();
        versions.push(of.path(db).clone());
        versions.sort_unstable();
        versions.dedup();
        HostProgram {
            sites: contents.launches_told(&program, &headers),
            builds: builds(&program.text, &program.items, &program.unit),
            kernels: kernels_of(contents, &program),
            reads: text.reads.iter().cloned().collect(),
            versions,
        }
    });
    Arc::new(said.unwrap_or_default())
}

/// The kernels of a text and of its headers, each with its file.
pub(crate) fn kernels_of(contents: &Contents, program: &Program) -> Vec<(Arc<Path>, String)> {
    let mut found = Vec::new();
    let headers = flatten(&program.text.includes);
    let of_headers = headers
        .iter()
        .map(|text| (&text.path, contents.items(text)));
    for (path, items) in of_headers {
        for item in items.iter() {
            if let ItemKind::Kernel(name) = &item.kind {
                found.push((Arc::clone(path), name.clone()));
            }
        }
    }
    for item in &program.items {
        if let ItemKind::Kernel(name) = &item.kind {
            found.push((Arc::clone(&program.text.path), name.clone()));
        }
    }
    found
}
