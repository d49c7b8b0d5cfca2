//! The user's compiler, asked in the background about what is saved.
//!
//! One compilation runs at a time, on a thread that lives as long as there is something to ask; no request waits
//! for it. The newest save comes first: one of the same document ends the compilation, one of another sends it
//! back behind. Only the user's own settings name the program; see `configuration`.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use warplens_db::Cancel;
use warplens_syntax::Language;
use warplens_toolchain::Asked;

use crate::Ask;
use crate::configuration::UserCompiler;
use crate::documents::{Analysed, Open};
use crate::session::{Session, Snapshot};

/// How long the end of the session waits for a compiler to be killed.
const LAST_MOMENT: Duration = Duration::from_secs(2);

/// Why a compiler is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occasion {
    /// The document, or a header that it reads, was saved.
    Saved,
    /// It was opened, or settings changed: what was asked already is not asked again.
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

/// Documents that wait for the compiler, and the one that it has.
#[derive(Debug)]
pub struct Compiler {
    ask: Ask,
    waiting: Mutex<Waiting>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    running: Option<Running>,
    /// Whether the thread is there.
    thread: bool,
    stopped: bool,
    /// A hash of what was asked last about each document.
    asked: HashMap<String, u64>,
}

#[derive(Debug)]
struct Running {
    uri: String,
    cancelled: Arc<AtomicBool>,
    /// To be asked again, when what is newer has been.
    again: bool,
}

impl Compiler {
    /// Nothing to do yet.
    pub fn new(ask: Ask) -> Compiler {
        Compiler {
            ask,
            waiting: Mutex::default(),
            ended: Condvar::new(),
        }
    }

    /// Takes a document. `session` hears the answer.
    pub fn submit(&self, session: &Arc<Session>, job: Job) {
        let mut waiting = self.lock();
        if waiting.stopped {
            return;
        }
        waiting.jobs.retain(|other| other.uri() != job.uri());
        match job.occasion {
            Occasion::Saved => {
                if let Some(running) = &mut waiting.running {
                    running.cancelled.store(true, Ordering::Relaxed);
                    running.again = running.uri != job.uri();
                }
                waiting.jobs.push_front(job);
            }
            Occasion::Seen => waiting.jobs.push_back(job),
        }
        if !waiting.thread {
            let session = Arc::downgrade(session);
            let thread = std::thread::Builder::new()
                .name("compiler".to_owned())
                .spawn(move || work(&session));
            match thread {
                Ok(_) => waiting.thread = true,
                Err(error) => tracing::warn!("no thread for the compiler: {error}"),
            }
        }
    }

    /// The document was closed or saved: what is under way about it is of no use.
    pub fn forget(&self, uri: &str) {
        let mut waiting = self.lock();
        waiting.jobs.retain(|job| job.uri() != uri);
        waiting.asked.remove(uri);
        if let Some(running) = &waiting.running
            && running.uri == uri
        {
            running.cancelled.store(true, Ordering::Relaxed);
        }
    }

    /// Ends what is under way; nothing is taken any more.
    pub fn stop(&self) {
        let mut waiting = self.lock();
        waiting.stopped = true;
        waiting.jobs.clear();
        if let Some(running) = &waiting.running {
            running.cancelled.store(true, Ordering::Relaxed);
        }
    }

    /// Waits a moment for what [`Compiler::stop`] ended: no compiler is to outlive the server.
    pub fn wait(&self) {
        let running = |waiting: &mut Waiting| waiting.running.is_some();
        let waited = self
            .ended
            .wait_timeout_while(self.lock(), LAST_MOMENT, running);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// The next document; without one the thread's end is noted.
    fn next(&self) -> Option<(Job, Arc<AtomicBool>)> {
        let mut waiting = self.lock();
        let Some(job) = waiting.jobs.pop_front() else {
            waiting.thread = false;
            return None;
        };
        let cancelled = Arc::new(AtomicBool::new(false));
        waiting.running = Some(Running {
            uri: job.uri().to_owned(),
            cancelled: Arc::clone(&cancelled),
            again: false,
        });
        Some((job, cancelled))
    }

    fn end(&self, job: Job) {
        let mut waiting = self.lock();
        let again = waiting.running.take().is_some_and(|running| running.again);
        let newer = waiting.jobs.iter().any(|other| other.uri() == job.uri());
        if again && !newer && !waiting.stopped {
            waiting.jobs.push_back(job);
        }
        self.ended.notify_all();
    }

    /// False where the same was asked already and nobody saved since.
    fn is_news(&self, job: &Job, asked: &Asked) -> bool {
        let mut hasher = DefaultHasher::new();
        (&asked.file, &asked.arguments, &asked.architecture).hash(&mut hasher);
        job.compiler.path.hash(&mut hasher);
        for chunk in job.analysed.document.rope().chunks() {
            chunk.hash(&mut hasher);
        }
        let asked = hasher.finish();
        let before = self.lock().asked.insert(job.uri().to_owned(), asked);
        job.occasion == Occasion::Saved || before != Some(asked)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Asks about one document after the other. The session is not kept alive over a compilation.
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
        let asking = AssertUnwindSafe(|| compile(session, &compiler, &job, &cancelled));
        if catch_unwind(asking).is_err() {
            tracing::error!("a compiler's answer was not borne; please report it with the log");
        }
        compiler.end(job);
    }
}

fn compile(session: &Weak<Session>, compiler: &Compiler, job: &Job, cancelled: &AtomicBool) {
    let analysed = &job.analysed;
    let Some(asked) = session.upgrade().and_then(|here| asked(&here, job)) else {
        return;
    };
    if !compiler.is_news(job, &asked) {
        return;
    }
    let answer = (compiler.ask)(&job.compiler.path, &asked, cancelled);
    let Some(session) = session.upgrade() else {
        return;
    };
    // A file that was written meanwhile: nobody knows which text was read.
    if cancelled.load(Ordering::Relaxed) || !is_on_disk(analysed) {
        // To be asked again.
        compiler.lock().asked.remove(job.uri());
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
    let heard = session.engine().hear(
        &analysed.document,
        &analysed.path,
        &analysed.effective.settings,
        &analysed.effective.overrides,
        said,
        &Cancel::default(),
    );
    if heard == Some(0) {
        session.log_once(&format!(
            "warplens: {}: {tool} says nothing of its kernels",
            analysed.path.display()
        ));
        return;
    }
    session.heard(job.uri());
}

/// What to ask about a document; `None` where a compiler would see another text, or none of ours.
fn asked(session: &Session, job: &Job) -> Option<Asked> {
    let analysed = &job.analysed;
    // Programs in OpenCL are compiled by the driver, with what the host gives it.
    if analysed.document.language() == Language::OpenCl || !is_on_disk(analysed) {
        return None;
    }
    let settings = &analysed.effective.settings;
    let asked = session
        .engine()
        .asked(&analysed.path, settings, job.compiler.bound);
    Some(Asked {
        // As it was when the document was analysed.
        architecture: analysed.file.profile.architecture.clone(),
        ..asked
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
    /// Has the user's compiler asked about a document, where there is one. Returns at once.
    pub fn ask_compiler(self: &Arc<Self>, uri: &str, occasion: Occasion) {
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
            let reads = |open: &Open| {
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
            self.ask_compiler(other, Occasion::Saved);
        }
        self.ask_compiler(uri, Occasion::Saved);
    }

    /// Settings changed, or files: what is open is compiled where that makes a difference.
    pub fn ask_compiler_about_all(self: &Arc<Self>) {
        let open: Vec<String> = self.state().open.keys().cloned().collect();
        for uri in open {
            self.ask_compiler(&uri, Occasion::Seen);
        }
    }
}
