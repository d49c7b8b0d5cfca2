//! Compiles saved documents in the background with the user's compiler.
//!
//! In: saved documents ([`Job`]). Out: compiler reports, given to the engine. What holds: one compilation runs at a time, on a
//! thread that ends when the queue is empty; no request waits for it. The newest save runs first: saving the same document
//! cancels its compilation, saving another one postpones it. Only the user's own settings name the program; see
//! `configuration`.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use warplens_db::Cancel;
use warplens_syntax::Language;
use warplens_toolchain::CompileRequest;

use crate::CompileFn;
use crate::configuration::UserCompiler;
use crate::documents::{Analysed, OpenDocument};
use crate::session::{Session, Snapshot};

/// How long the end of the session waits for a compiler to be killed.
const LAST_MOMENT: Duration = Duration::from_secs(2);

/// Why a document is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occasion {
    /// The document, or a header that it reads, was saved.
    Saved,
    /// It was opened, or settings changed: compiled only if its text, flags or compiler changed.
    Seen,
}

/// A document to be compiled.
#[derive(Debug)]
pub struct Job {
    /// What is in the editor, analysed.
    pub analysed: Arc<Analysed>,
    /// The program.
    pub compiler: UserCompiler,
    /// Why.
    pub occasion: Occasion,
}

impl Job {
    fn uri(&self) -> &str {
        self.analysed.uri.as_str()
    }
}

/// The queue of documents to compile, and the compilation that runs.
#[derive(Debug)]
pub struct Compiler {
    compile: CompileFn,
    queue: Mutex<CompilerQueue>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct CompilerQueue {
    jobs: VecDeque<Job>,
    running: Option<CompilerRun>,
    /// True while the thread runs.
    thread: bool,
    stopped: bool,
    /// A hash of the last request of each document.
    last_request: HashMap<String, u64>,
}

#[derive(Debug)]
struct CompilerRun {
    uri: String,
    cancelled: Arc<AtomicBool>,
    /// Cancelled for a newer save: queued again afterwards.
    again: bool,
}

impl Compiler {
    /// Nothing to do yet.
    pub fn new(compile: CompileFn) -> Compiler {
        Compiler {
            compile,
            queue: Mutex::default(),
            ended: Condvar::new(),
        }
    }

    /// Queues a document; `session` receives the report.
    pub fn submit(&self, session: &Arc<Session>, job: Job) {
        let mut queue = self.lock();
        if queue.stopped {
            return;
        }
        queue.jobs.retain(|other| other.uri() != job.uri());
        match job.occasion {
            Occasion::Saved => {
                if let Some(running) = &mut queue.running {
                    running.cancelled.store(true, Ordering::Relaxed);
                    running.again = running.uri != job.uri();
                }
                queue.jobs.push_front(job);
            }
            Occasion::Seen => queue.jobs.push_back(job),
        }
        if !queue.thread {
            let session = Arc::downgrade(session);
            let thread = std::thread::Builder::new()
                .name("compiler".to_owned())
                .spawn(move || work(&session));
            match thread {
                Ok(_) => queue.thread = true,
                Err(error) => tracing::warn!("no thread for the compiler: {error}"),
            }
        }
    }

    /// The document was closed or saved: what is under way about it is of no use.
    pub fn forget(&self, uri: &str) {
        let mut queue = self.lock();
        queue.jobs.retain(|job| job.uri() != uri);
        queue.last_request.remove(uri);
        if let Some(running) = &queue.running
            && running.uri == uri
        {
            running.cancelled.store(true, Ordering::Relaxed);
        }
    }

    /// Ends what is under way; nothing is taken any more.
    pub fn stop(&self) {
        let mut queue = self.lock();
        queue.stopped = true;
        queue.jobs.clear();
        if let Some(running) = &queue.running {
            running.cancelled.store(true, Ordering::Relaxed);
        }
    }

    /// Waits a moment for what [`Compiler::stop`] ended: no compiler is to outlive the server.
    pub fn wait(&self) {
        let running = |queue: &mut CompilerQueue| queue.running.is_some();
        let waited = self
            .ended
            .wait_timeout_while(self.lock(), LAST_MOMENT, running);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// The next document; without one the thread's end is noted.
    fn next(&self) -> Option<(Job, Arc<AtomicBool>)> {
        let mut queue = self.lock();
        let Some(job) = queue.jobs.pop_front() else {
            queue.thread = false;
            return None;
        };
        let cancelled = Arc::new(AtomicBool::new(false));
        queue.running = Some(CompilerRun {
            uri: job.uri().to_owned(),
            cancelled: Arc::clone(&cancelled),
            again: false,
        });
        Some((job, cancelled))
    }

    fn end(&self, job: Job) {
        let mut queue = self.lock();
        let again = queue.running.take().is_some_and(|running| running.again);
        let newer = queue.jobs.iter().any(|other| other.uri() == job.uri());
        if again && !newer && !queue.stopped {
            queue.jobs.push_back(job);
        }
        self.ended.notify_all();
    }

    /// False where the request repeats the last one and the document was not saved since.
    fn is_new(&self, job: &Job, request: &CompileRequest) -> bool {
        let mut hasher = DefaultHasher::new();
        (&request.file, &request.arguments, &request.architecture).hash(&mut hasher);
        job.compiler.path.hash(&mut hasher);
        for chunk in job.analysed.document.rope().chunks() {
            chunk.hash(&mut hasher);
        }
        let hash = hasher.finish();
        let before = self.lock().last_request.insert(job.uri().to_owned(), hash);
        job.occasion == Occasion::Saved || before != Some(hash)
    }

    fn lock(&self) -> MutexGuard<'_, CompilerQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Compiles the queue. Holds no reference to the session while a compiler runs.
fn work(session: &Weak<Session>) {
    loop {
        let Some(here) = session.upgrade() else {
            return;
        };
        let Some((job, cancelled)) = here.compiler.next() else {
            return;
        };
        let compiler = Arc::clone(&here.compiler);
        drop(here);
        let run = AssertUnwindSafe(|| run_compiler(session, &compiler, &job, &cancelled));
        if catch_unwind(run).is_err() {
            tracing::error!("reading a compiler report panicked; please report it with the log");
        }
        compiler.end(job);
    }
}

fn run_compiler(session: &Weak<Session>, compiler: &Compiler, job: &Job, cancelled: &AtomicBool) {
    let analysed = &job.analysed;
    let Some(request) = session.upgrade().and_then(|here| request_for(&here, job)) else {
        return;
    };
    if !compiler.is_new(job, &request) {
        return;
    }
    let answer = (compiler.compile)(&job.compiler.path, &request, cancelled);
    let Some(session) = session.upgrade() else {
        return;
    };
    // The file changed meanwhile: the compiler may have read either text.
    if cancelled.load(Ordering::Relaxed) || !is_on_disk(analysed) {
        // The next save compiles it again.
        compiler.lock().last_request.remove(job.uri());
        return;
    }
    let said = match answer {
        Ok(said) => said,
        Err(failure) => {
            session.log_once(&format!("warplens: {}: {failure}", analysed.path.display()));
            return;
        }
    };
    let tool = said.tool.clone();
    let matched = session.engine().hear(
        &analysed.document,
        &analysed.path,
        &analysed.effective.settings,
        &analysed.effective.overrides,
        said,
        &Cancel::default(),
    );
    if matched == Some(0) {
        session.log_once(&format!(
            "warplens: {}: {tool} reported none of its kernels",
            analysed.path.display()
        ));
        return;
    }
    session.compiler_reported(job.uri());
}

/// The compile request of a document; `None` where the file on disk differs or the driver compiles it.
fn request_for(session: &Session, job: &Job) -> Option<CompileRequest> {
    let analysed = &job.analysed;
    // Programs in OpenCL are compiled by the driver, with what the host gives it.
    if analysed.document.language() == Language::OpenCl || !is_on_disk(analysed) {
        return None;
    }
    let settings = &analysed.effective.settings;
    let request = session
        .engine()
        .asked(&analysed.path, settings, job.compiler.bound);
    Some(CompileRequest {
        // As it was when the document was analysed.
        architecture: analysed.file.profile.architecture.clone(),
        ..request
    })
}

fn is_on_disk(analysed: &Analysed) -> bool {
    analysed.path.is_absolute()
        && std::fs::read(&analysed.path).is_ok_and(|bytes| {
            let mut rest = &bytes[..];
            analysed.document.rope().chunks().all(|chunk| {
                let same = rest.strip_prefix(chunk.as_bytes());
                rest = same.unwrap_or_default();
                same.is_some()
            }) && rest.is_empty()
        })
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
