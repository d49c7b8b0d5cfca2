//! Compiles saved documents in the background with the user's compiler.
//!
//! In: saved documents ([`Job`]). Out: compiler reports, given to the engine. What holds: one compilation runs at a time, on a
//! thread that ends when the queue is empty; no request waits for it. The newest save runs first: saving the same document
//! cancels its compilation, saving another one postpones it. Only the user's own settings name the program; see
//! `configuration`.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use warplens_toolchain::{CompileRequest, CompilerReport};

use crate::CompileFn;
use crate::configuration::UserCompiler;
use crate::documents::Analysed;

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

    /// Queues a document; `client` receives the report.
    pub fn submit(&self, client: &Arc<impl Client>, job: Job) {
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
            let client = Arc::downgrade(client);
            let thread = std::thread::Builder::new()
                .name("compiler".to_owned())
                .spawn(move || work(&client));
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

/// Who has documents compiled.
pub trait Client: Send + Sync + 'static {
    /// The queue.
    fn compiler(&self) -> &Arc<Compiler>;

    /// What to ask about a document; `None` where the file on disk differs or the driver compiles it.
    fn request(&self, job: &Job) -> Option<CompileRequest>;

    /// What came of it, or in one line why nothing did.
    fn answered(self: Arc<Self>, job: &Job, answer: Result<CompilerReport, String>);
}

/// Compiles the queue. Holds no reference to the client while a compiler runs.
fn work(client: &Weak<impl Client>) {
    loop {
        let Some(here) = client.upgrade() else {
            return;
        };
        let Some((job, cancelled)) = here.compiler().next() else {
            return;
        };
        let compiler = Arc::clone(here.compiler());
        drop(here);
        let run = AssertUnwindSafe(|| run_compiler(client, &compiler, &job, &cancelled));
        if catch_unwind(run).is_err() {
            tracing::error!("reading a compiler report panicked; please report it with the log");
        }
        compiler.end(job);
    }
}

fn run_compiler(
    client: &Weak<impl Client>,
    compiler: &Compiler,
    job: &Job,
    cancelled: &AtomicBool,
) {
    let Some(request) = client.upgrade().and_then(|here| here.request(job)) else {
        return;
    };
    if !compiler.is_new(job, &request) {
        return;
    }
    let answer = (compiler.compile)(&job.compiler.path, &request, cancelled);
    let Some(client) = client.upgrade() else {
        return;
    };
    // The file changed meanwhile: the compiler may have read either text.
    if cancelled.load(Ordering::Relaxed) || !job.analysed.is_on_disk() {
        // The next save compiles it again.
        compiler.lock().last_request.remove(job.uri());
        return;
    }
    client.answered(job, answer.map_err(|failure| failure.to_string()));
}
