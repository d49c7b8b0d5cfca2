//! What a session has its user's compiler say: which documents are compiled, when, and where the answers go.
//!
//! In: documents that were opened or saved. Out: compiler reports, given to the engine, and the documents shown again. The queue
//! itself is in [`crate::compiler`].

use std::path::PathBuf;
use std::sync::Arc;

use warplens_db::Cancel;
use warplens_syntax::Language;
use warplens_toolchain::{CompileRequest, CompilerReport};

use crate::compiler::{Client, Compiler, Job, Occasion};
use crate::documents::OpenDocument;
use crate::session::{Session, Snapshot};

impl Client for Session {
    fn compiler(&self) -> &Arc<Compiler> {
        &self.compiler
    }

    fn request(&self, job: &Job) -> Option<CompileRequest> {
        let analysed = &job.analysed;
        // Programs in OpenCL are compiled by the driver, with what the host gives it.
        if analysed.document.language() == Language::OpenCl || !analysed.is_on_disk() {
            return None;
        }
        let settings = &analysed.effective.settings;
        let request = self
            .engine()
            .asked(&analysed.path, settings, job.compiler.bound);
        Some(CompileRequest {
            // As it was when the document was analysed.
            architecture: analysed.file.profile.architecture.clone(),
            ..request
        })
    }

    fn answered(self: Arc<Self>, job: &Job, answer: Result<CompilerReport, String>) {
        let analysed = &job.analysed;
        let said = match answer {
            Ok(said) => said,
            Err(failure) => {
                self.log_once(&format!("warplens: {}: {failure}", analysed.path.display()));
                return;
            }
        };
        let tool = said.tool.clone();
        let matched = self.engine().take_report(
            &analysed.document,
            &analysed.path,
            &analysed.effective.settings,
            &analysed.effective.overrides,
            said,
            &Cancel::default(),
        );
        if matched == Some(0) {
            self.log_once(&format!(
                "warplens: {}: {tool} reported none of its kernels",
                analysed.path.display()
            ));
            return;
        }
        self.compiler_reported(analysed.uri.as_str());
    }
}

impl Session {
    /// Queues a document for the user's compiler, where one is set. Returns at once.
    pub fn request_compile(self: &Arc<Self>, uri: &str, occasion: Occasion) {
        if occasion == Occasion::Saved {
            self.compiler.forget(uri);
        }
        let (compiler, snapshot) = {
            let state = self.state();
            let Some(Ok(compiler)) = state.editor.compiler(&state.folders) else {
                return;
            };
            let Some(open) = state.open.get(uri) else {
                return;
            };
            (compiler, Snapshot::of(open))
        };
        let session = Arc::clone(self);
        self.spawn(async move {
            // For its target, and for which of its texts this is.
            let Some(analysed) = session.analysed(snapshot).await else {
                return;
            };
            let uri = analysed.uri.as_str();
            if analysed.file.kernels.is_empty() || !session.state().open.contains_key(uri) {
                return;
            }
            let job = Job {
                analysed: Arc::clone(&analysed),
                compiler,
                occasion,
            };
            session.compiler.submit(&session, job);
        });
    }

    /// A file was saved: it is compiled, and those open that read it.
    pub fn saved(self: &Arc<Self>, uri: &str) {
        let reading: Vec<String> = {
            let state = self.state();
            let path: Option<PathBuf> = state.open.get(uri).map(|open| open.path.clone());
            let reads = |open: &OpenDocument| {
                let last = open.last.as_ref();
                last.is_some_and(|last| {
                    last.file
                        .reads
                        .iter()
                        .any(|read| Some(read) == path.as_ref())
                })
            };
            let others = state.open.iter().filter(|(_, open)| reads(open));
            others.map(|(key, _)| key.clone()).collect()
        };
        for other in reading.iter().filter(|other| *other != uri) {
            self.request_compile(other, Occasion::Saved);
        }
        self.request_compile(uri, Occasion::Saved);
    }

    /// Settings changed, or files: what is open is compiled where that makes a difference.
    pub fn request_compile_of_all(self: &Arc<Self>) {
        let open: Vec<String> = self.state().open.keys().cloned().collect();
        for uri in open {
            self.request_compile(&uri, Occasion::Seen);
        }
    }
}
