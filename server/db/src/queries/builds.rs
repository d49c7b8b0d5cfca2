//! Query family: what a host program defines when it builds the OpenCL of a file.
//!
//! In: a document, its settings, the GPU. Out: the options of the build that makes its kernels. What holds: what a run of the program
//! says comes first, for it knows what the text of the build leaves open.

use std::path::Path;
use std::sync::Arc;

use warplens_machine::Profile;
use warplens_syntax::Language;

use crate::database::{file, text};
use crate::kinds::absolute;
use crate::options::{BuildOptions, kernel_names};
use crate::queries::hosts::{HostProgram, ReadAs, host_program};
use crate::queries::near::Kinds;
use crate::queries::runs::runs_near;
use crate::settings::Settings;
use crate::{Document, Engine};

impl Engine {
    /// What a host program near an OpenCL file defines when it builds it.
    pub(crate) fn build_options(
        &self,
        document: &Document,
        path: &Path,
        settings: &Settings,
        profile: &Arc<Profile>,
    ) -> Option<(BuildOptions, Arc<HostProgram>)> {
        if document.language() != Language::OpenCl {
            return None;
        }
        let kernels = kernel_names(document.source());
        let words: Vec<&str> = kernels.iter().map(String::as_str).collect();
        if words.is_empty() {
            return None;
        }
        let how = ReadAs::of(settings, profile);
        let look = self.project().look();
        // What a run of the program says is known where the text of the build leaves it open.
        let own = absolute(path);
        let names: Arc<[String]> = kernels.clone().into();
        let by_run = look.ask(|db| {
            let runs = runs_near(db, &own, &names, &how, &settings.run);
            runs.iter().find_map(|(main, run)| {
                let source = text(db, file(db, main))?;
                let options =
                    BuildOptions::of(&run.builds, &kernels, main, &source.text, settings)?;
                Some((options, host_program(db, file(db, main), how.clone())))
            })
        });
        if by_run.is_some() {
            return by_run;
        }
        let hosts = look.hosts_near(path, &words, Kinds::Hosts);
        hosts.into_iter().find_map(|host| {
            let said = look.ask(|db| host_program(db, file(db, &host.path), how.clone()));
            let options =
                BuildOptions::of(&said.builds, &kernels, &host.path, &host.text, settings);
            options.map(|options| (options, said))
        })
    }
}
