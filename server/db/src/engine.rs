//! The engine: what front ends ask. It holds a database and asks it; the queries are in [`crate::queries`].

use std::path::{Path, PathBuf};
use std::sync::Arc;

use warplens_machine::{DEFAULT_GPU, Profile, Profiles};

use crate::clock;
use crate::compilers::CompilerReports;
use crate::contents::{Contents, Room};
use crate::project::Project;
use crate::settings::{BankBytes, Settings, gpu_named};

/// Analyses documents. One engine serves every document and thread of a process.
#[derive(Debug)]
pub struct Engine {
    profiles: Profiles,
    project: Project,
    /// Whether an analysis can say its counts as formulas later.
    pub(crate) formulas: bool,
    /// Whether the kernels of one file are shared out among threads.
    pub(crate) shares: bool,
    /// What compilers said.
    pub(crate) reports: CompilerReports,
}

impl Engine {
    /// An engine with these profiles that reads no files but those it is given.
    pub fn new(profiles: Profiles) -> Engine {
        Engine::with_project(profiles, Project::default())
    }

    /// An engine that finds headers, compile commands and launches in a project.
    pub fn with_project(profiles: Profiles, project: Project) -> Engine {
        Engine {
            profiles,
            project,
            formulas: true,
            shares: true,
            reports: CompilerReports::default(),
        }
    }

    /// The same for looking at many files once each: it keeps next to nothing.
    pub fn for_many_files(profiles: Profiles, project: Project) -> Engine {
        project.stores().contents.set_room(Room::LITTLE);
        Engine {
            formulas: false,
            // Others look at other files meanwhile.
            shares: false,
            ..Engine::with_project(profiles, project)
        }
    }

    /// Lets go of what was computed for documents that were closed some documents ago: one more was.
    pub fn closed(&self) {
        self.contents().closed();
    }

    /// Lets go of everything that was computed: no file is open any more.
    pub fn forget(&self) {
        self.project.forget();
    }

    /// The project.
    pub fn project(&self) -> &Project {
        &self.project
    }

    /// The profiles.
    pub fn profiles(&self) -> &Profiles {
        &self.profiles
    }

    /// What is kept by content.
    pub(crate) fn contents(&self) -> &Contents {
        &self.project.stores().contents
    }

    /// The folders in which what a file lacks is looked for.
    pub(crate) fn around(&self, path: &Path) -> Vec<PathBuf> {
        self.project.look().around(path)
    }

    /// The target that the settings name, or the one that the file is compiled for, or the default; with a
    /// word about what is wrong.
    pub(crate) fn target(&self, settings: &Settings, path: &Path) -> (Arc<Profile>, Vec<String>) {
        let default = || {
            self.project
                .target(path, &self.profiles)
                .or_else(|| self.profiles.get(DEFAULT_GPU))
                .or_else(|| self.profiles.iter().next())
                .expect("profiles are built in")
        };
        let (profile, mut problems) = match &settings.gpu {
            None => (default(), Vec::new()),
            Some(name) => match gpu_named(name, &self.profiles) {
                Ok(profile) => (profile, Vec::new()),
                Err(unknown) => (default(), vec![unknown]),
            },
        };
        let other_mode = (settings.shared_bank_bytes == Some(BankBytes::Eight))
            .then(|| profile.with_eight_byte_banks());
        let profile = other_mode.flatten().map_or(profile, Arc::new);
        let (other_clock, problem) = clock::clocked(&profile, settings);
        problems.extend(problem);
        let profile = other_clock.map_or(profile, Arc::new);
        (profile, problems)
    }
}
