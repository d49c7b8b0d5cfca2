//! One client's session: everything the handlers share.
//!
//! One lock guards the state; it is held briefly and never across an `await`. A handler takes what it needs from the
//! state before its first `await`. Computation runs on the [`Pool`] on a snapshot, and its result is dropped when the
//! document has a newer revision.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use ropey::Rope;
use tokio::sync::watch;
use tower_lsp_server::Client;
use tower_lsp_server::jsonrpc::{Error, ErrorCode, Result};
use tower_lsp_server::ls_types::request::WorkDoneProgressCreate;
use tower_lsp_server::ls_types::{
    MessageType, ProgressToken, PublishDiagnosticsParams, Uri, WorkDoneProgressCreateParams,
};
use warplens_base::{DiskFiles, Files as _, OpenFiles};
use warplens_db::{Cancel, Engine, Project, user_profiles};
use warplens_report::estimate::missing_headers;
use warplens_report::style::printable;
use warplens_syntax::Document;

use crate::compiler::Compiler;
use crate::configuration::{self, ConfigFile, Editor, Effective, Files, SessionChoices};
use crate::convert;
use crate::documents::{Analysed, Content, LineShift, OpenDocument};
use crate::earlier::{self, EarlierTimes};
use crate::outgoing::Outgoing;
use crate::peer::Peer;
use crate::pinned::LinesByName;
use crate::pool::{Pool, Priority};
use crate::progress::Progress;
use crate::shown;
use crate::trace::Trace;
use crate::{Options, Slow};

/// How long a request waits for the analysis of the newest text before the previous analysis answers it. Editors keep and
/// move what they show until the response arrives, so an exact response a moment later is better than an approximate one
/// now; this limit is for kernels that take seconds.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long all documents are closed before the caches are dropped.
const CLOSED: Duration = Duration::from_secs(3);

/// How long a request to the client may stay unanswered.
const CLIENT_PATIENCE: Duration = Duration::from_secs(10);

/// Shared by all handlers and workers.
#[derive(Debug)]
pub struct Session {
    /// For requests to the client. Never awaited in a handler: see [`Session::spawn_with_client`].
    client: Client,
    /// For all other outgoing messages.
    pub outgoing: Outgoing,
    /// The worker threads.
    pub pool: Pool,
    /// The queue of the user's compiler.
    pub compiler: Arc<Compiler>,
    engine: OnceLock<Engine>,
    /// Files on disk, overlaid with the documents open in the editor.
    sources: Arc<OpenFiles<DiskFiles>>,
    peer: OnceLock<Peer>,
    files: Files,
    state: Mutex<State>,
    /// Set by `shutdown`.
    pub shut_down: AtomicBool,
    /// The client's process, to end with it.
    pub parent: watch::Sender<Option<u32>>,
    /// Long work that the client shows.
    pub progress: Progress,
    /// The client's trace level.
    pub trace: Trace,
    refreshing: AtomicBool,
    /// Runs requests to the client, also those that workers send.
    runtime: tokio::runtime::Handle,
    slow: Slow,
}

/// The mutable state of a session.
#[derive(Debug, Default)]
pub struct State {
    /// Open documents by URI.
    pub open: HashMap<String, OpenDocument>,
    /// The workspace's folders.
    pub folders: Vec<PathBuf>,
    /// The editor's settings.
    pub editor: Editor,
    /// This session's choices.
    pub chosen: SessionChoices,
    revision: u64,
    /// `warplens.toml` files not open in the editor that have problems published.
    reported: HashMap<PathBuf, Arc<ConfigFile>>,
    told: HashSet<String>,
}

/// What a worker needs to analyse one document at one revision.
#[derive(Debug)]
struct Task {
    uri: Uri,
    path: PathBuf,
    version: i32,
    revision: u64,
    content: Content,
    cancel: Cancel,
}

/// A document at the time of a request about it.
#[derive(Debug)]
pub struct Snapshot {
    task: Task,
    done: watch::Receiver<u64>,
}

impl Snapshot {
    /// Takes a snapshot of an open document.
    pub fn of(open: &OpenDocument) -> Snapshot {
        Snapshot {
            task: Task::of(open),
            done: open.done.subscribe(),
        }
    }

    /// The text of the request.
    pub fn rope(&self) -> &Rope {
        self.task.content.rope()
    }
}

/// The newest analysis available to a request.
#[derive(Debug)]
pub struct LatestAnalysis {
    /// The analysis.
    pub analysed: Arc<Analysed>,
    /// The text now.
    pub rope: Rope,
    /// Line changes between the two; empty when the analysis is of this text.
    pub moved: Vec<LineShift>,
}

impl State {
    fn next_revision(&mut self) -> u64 {
        self.revision += 1;
        self.revision
    }
}

impl Session {
    /// A session with nothing open. To be made inside the runtime.
    pub fn new(client: Client, outgoing: Outgoing, options: &Options) -> Arc<Session> {
        Arc::new(Session {
            client,
            outgoing,
            pool: Pool::new(),
            compiler: Arc::new(Compiler::new(options.compile)),
            engine: OnceLock::new(),
            sources: Arc::new(OpenFiles::new(DiskFiles::new())),
            peer: OnceLock::new(),
            files: Files::default(),
            state: Mutex::default(),
            shut_down: AtomicBool::new(false),
            parent: watch::Sender::new(None),
            progress: Progress::default(),
            trace: Trace::default(),
            refreshing: AtomicBool::new(false),
            runtime: tokio::runtime::Handle::current(),
            slow: options.slow,
        })
    }

    /// The engine. Only workers use it, once the client has named its folders and without holding the state: the
    /// first one builds it, with the profiles of these folders.
    pub fn engine(&self) -> &Engine {
        self.engine.get_or_init(|| {
            let files = self.sources.clone();
            let folders = self.state().folders.clone();
            let (profiles, problems) = user_profiles::in_force(&*files, &folders);
            for problem in problems {
                self.tell(&format!("warplens: ignored a profile: {problem}"));
            }
            Engine::with_project(profiles, Project::new(files, Vec::new()))
        })
    }

    /// The engine, where it is built already: for handlers, which must not wait.
    pub fn engine_if_built(&self) -> Option<&Engine> {
        self.engine.get()
    }

    /// What the client said it can do; a modest client before `initialize`.
    pub fn peer(&self) -> &Peer {
        self.peer.get_or_init(Peer::default)
    }

    /// Sets what the client can do, once.
    pub fn set_peer(&self, peer: Peer) {
        if self.peer.set(peer).is_err() {
            tracing::warn!("a second initialize was ignored");
        }
    }

    /// The state. Held for moments, never over an `await`.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // ----- documents -----

    /// Opens a document.
    pub fn open(self: &Arc<Self>, uri: Uri, language: &str, version: i32, text: &str) {
        let mut state = self.state();
        let revision = state.next_revision();
        let key = uri.as_str().to_owned();
        let Some(mut open) = OpenDocument::new(uri, language, version, text, revision) else {
            return;
        };
        let config = matches!(open.content, Content::Config(_));
        if let Some(before) = state.open.remove(&key) {
            // Opened twice without a close between: the worker that has it finds the new text.
            before.cancel.cancel();
            open.scheduled = before.scheduled;
        }
        let plain = matches!(open.content, Content::Plain(_));
        if plain {
            open.done.send_replace(revision);
        }
        state.open.insert(key.clone(), open);
        if config {
            self.analyse_all(&mut state);
        } else if !plain {
            self.schedule(&mut state, &key);
        }
    }

    /// Applies changes to a document.
    pub fn change(
        self: &Arc<Self>,
        uri: &Uri,
        version: i32,
        changes: Vec<tower_lsp_server::ls_types::TextDocumentContentChangeEvent>,
    ) {
        let encoding = self.peer().encoding;
        let mut state = self.state();
        let revision = state.next_revision();
        let Some(open) = state.open.get_mut(uri.as_str()) else {
            tracing::debug!("a change of a document that is not open: {}", uri.as_str());
            return;
        };
        let was_plain = matches!(open.content, Content::Plain(_));
        open.apply(changes, encoding, revision);
        open.version = version;
        match (&open.content, was_plain) {
            (Content::Config(_), _) => self.analyse_all(&mut state),
            (Content::Plain(_), true) => {
                open.done.send_replace(revision);
            }
            (Content::Plain(_), false) => {
                let path = open.path.clone();
                self.schedule(&mut state, uri.as_str());
                self.no_longer_shared(&mut state, &path);
            }
            (Content::Source(_), _) => self.schedule(&mut state, uri.as_str()),
        }
    }

    /// What is on disk counts again, as it is now.
    fn no_longer_shared(self: &Arc<Self>, state: &mut State, path: &Path) {
        self.sources.inner().forget(path);
        let before = self.sources.shared_text(path);
        if self.sources.close(path) {
            self.analyse_others(state, path, before.as_deref());
        }
    }

    /// Closes a document and takes its diagnostics back.
    pub fn close(self: &Arc<Self>, uri: &Uri) {
        let mut state = self.state();
        let Some(open) = state.open.remove(uri.as_str()) else {
            return;
        };
        open.cancel.cancel();
        self.compiler.forget(uri.as_str());
        if self.peer().pushes() {
            self.outgoing
                .publish(PublishDiagnosticsParams::new(open.uri, Vec::new(), None));
        }
        // Work for threads that have nothing to do otherwise would keep them, and what they have in memory.
        if state.open.is_empty() {
            self.forget_later();
        } else {
            self.let_go();
        }
        if matches!(open.content, Content::Config(_)) {
            self.analyse_all(&mut state);
            return;
        }
        self.no_longer_shared(&mut state, &open.path);
    }

    /// Lets go of what was computed for documents that are closed for long.
    fn let_go(self: &Arc<Self>) {
        let session = Arc::downgrade(self);
        self.pool.submit(Priority::Request, move || {
            if let Some(session) = session.upgrade()
                && let Some(engine) = session.engine_if_built()
            {
                engine.closed();
            }
        });
    }

    /// Lets go of what was computed if no document is opened for a while: one that is closed is often opened again at once.
    fn forget_later(self: &Arc<Self>) {
        let session = Arc::downgrade(self);
        let wait = move || {
            std::thread::sleep(CLOSED);
            if let Some(session) = session.upgrade()
                && session.state().open.is_empty()
            {
                session.engine().forget();
                session.sources.inner().drop_texts();
            }
        };
        // Without a thread everything stays as it is.
        drop(std::thread::Builder::new().spawn(wait));
    }

    /// Analyses all open documents again: settings or files changed.
    pub fn analyse_all(self: &Arc<Self>, state: &mut State) {
        let keys: Vec<String> = state.open.keys().cloned().collect();
        for key in keys {
            self.analyse_again(state, &key);
        }
    }

    /// Analyses a document again for a reason other than its own edit; tells the client to refresh where the result
    /// changes what is shown.
    fn analyse_again(self: &Arc<Self>, state: &mut State, uri: &str) {
        let revision = state.next_revision();
        if let Some(open) = state.open.get_mut(uri) {
            open.revision = revision;
            open.unasked = true;
            self.schedule(state, uri);
        }
    }

    /// Files that the settings come from changed on disk.
    pub fn reload(self: &Arc<Self>) {
        self.files.forget();
        self.settings_changed();
    }

    /// These files changed on disk; `others` where some were made or deleted, so that headers are looked for
    /// again.
    pub fn changed_on_disk(self: &Arc<Self>, paths: &[PathBuf], others: bool) {
        for path in paths {
            self.sources.inner().forget(path);
        }
        if others && let Some(engine) = self.engine_if_built() {
            engine.project().refresh();
        }
        self.reload();
    }

    /// A client that does not tell which files change outside of it was used: any may have changed.
    pub fn look_again(&self) {
        if !self.peer().registers_watchers {
            self.sources.look_again();
        }
    }

    /// Analyses all open documents again and tells the client to refresh what has changed.
    pub fn settings_changed(self: &Arc<Self>) {
        self.analyse_all(&mut self.state());
        self.request_compile_of_all();
    }

    /// A compiler said something about a document: it is analysed again with that, and shown again.
    pub fn compiler_reported(self: &Arc<Self>, uri: &str) {
        self.analyse_again(&mut self.state(), uri);
    }

    // ----- analysis -----

    /// Makes sure that a worker will look at the document, and that one looking at an older text stops.
    fn schedule(self: &Arc<Self>, state: &mut State, uri: &str) {
        let Some(open) = state.open.get_mut(uri) else {
            return;
        };
        open.cancel.cancel();
        if !open.scheduled {
            open.scheduled = true;
            let session = Arc::downgrade(self);
            let uri = uri.to_owned();
            self.pool.submit(Priority::Typing, move || {
                if let Some(session) = session.upgrade() {
                    session.work(&uri);
                }
            });
        }
    }

    /// Analyses a document until its newest revision is done.
    fn work(self: &Arc<Self>, uri: &str) {
        while let Some(task) = self.take(uri) {
            let started = Instant::now();
            idle(self.slow.analysis, &task.cancel);
            self.share(&task);
            let result = catch_unwind(AssertUnwindSafe(|| match &task.content {
                Content::Source(_) => self.analyse(&task).map(Some),
                Content::Config(_) | Content::Plain(_) => Some(None),
            }));
            tracing::debug!(
                "analysed {uri} version {} in {:?}{}",
                task.version,
                started.elapsed(),
                if task.cancel.is_cancelled() {
                    ", too late"
                } else {
                    ""
                },
            );
            if let Ok(Some(Some(analysed))) = &result {
                self.tell_trace(&task, started.elapsed(), analysed);
            }
            match result {
                Ok(Some(Some(analysed))) => {
                    if let Some(analysed) = self.finish(&task, Some(analysed)) {
                        self.refine(&task, analysed);
                    }
                }
                Ok(None) if task.cancel.is_cancelled() => {}
                // A settings file, a text without kernels, or an analysis that panicked.
                Ok(Some(None) | None) => {
                    self.finish(&task, None);
                }
                Err(_) => {
                    self.tell(&format!(
                        "warplens: the analysis of {} failed inside warplens. The file is left alone \
                         until it changes; please report it with the file.",
                        task.path.display()
                    ));
                    self.finish(&task, None);
                }
            }
        }
    }

    /// What is in an open document counts from here on, saved or not: who may have read it is analysed again.
    fn share(self: &Arc<Self>, task: &Task) {
        let Content::Source(document) = &task.content else {
            return;
        };
        if !task.path.is_absolute() {
            return;
        }
        let text = Arc::clone(document.source());
        // With the state in hand: a document that was closed meanwhile must not come back.
        let mut state = self.state();
        let before = self.sources.shared_text(&task.path);
        if state.open.contains_key(task.uri.as_str()) && self.sources.set(&task.path, text) {
            self.analyse_others(&mut state, &task.path, before.as_deref());
        }
    }

    /// Analyses again what may depend on a document, which had the text `before` until now.
    fn analyse_others(self: &Arc<Self>, state: &mut State, changed: &Path, before: Option<&str>) {
        let after = self.sources.shared_text(changed);
        let texts = [before, after.as_deref()];
        let depends = |open: &&OpenDocument| {
            // Who is being analysed may have read the old text.
            *open.done.borrow() < open.revision
                || open.last.as_ref().is_none_or(|last| {
                    let engine = self.engine();
                    engine.may_change(&last.file, &open.path, changed, texts)
                })
        };
        let others = state
            .open
            .iter()
            .filter(|(_, open)| open.path != changed && matches!(open.content, Content::Source(_)))
            .filter(|(_, open)| depends(open));
        let keys: Vec<String> = others.map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.analyse_again(state, &key);
        }
    }

    fn take(&self, uri: &str) -> Option<Task> {
        let mut state = self.state();
        let open = state.open.get_mut(uri)?;
        if *open.done.borrow() >= open.revision {
            open.scheduled = false;
            return None;
        }
        open.cancel = Cancel::default();
        Some(Task::of(open))
    }

    /// The analysis itself; `None` when it was cancelled.
    fn analyse(&self, task: &Task) -> Option<Analysed> {
        let Content::Source(document) = &task.content else {
            return None;
        };
        let document = document.clone();
        let effective = Arc::new(self.effective(task));
        let (folders, confined) = {
            let state = self.state();
            (state.folders.clone(), !state.editor.reads_outside())
        };
        let project = self.engine().project();
        project.set_roots(&folders);
        project.confine(confined.then(Vec::new));
        let file = self.engine().analyze(
            &document,
            &task.path,
            &effective.settings,
            &effective.overrides,
            &task.cancel,
        );
        let Some(file) = file else {
            // The tree is worth keeping all the same: the next parse starts from it.
            self.keep_tree(task, &document);
            return None;
        };
        Some(Analysed {
            revision: task.revision,
            version: task.version,
            uri: task.uri.clone(),
            path: task.path.clone(),
            document,
            file,
            effective,
            shown: OnceLock::new(),
        })
    }

    fn keep_tree(&self, task: &Task, parsed: &Document) {
        let mut state = self.state();
        if let Some(open) = state.open.get_mut(task.uri.as_str())
            && open.revision == task.revision
        {
            open.content = Content::Source(parsed.clone());
        }
    }

    /// The settings in force for a task's document.
    fn effective(&self, task: &Task) -> Effective {
        let (folders, open, editor, chosen) = {
            let state = self.state();
            let open: HashMap<PathBuf, Rope> = state
                .open
                .values()
                .filter_map(|open| match &open.content {
                    Content::Config(rope) => Some((open.path.clone(), rope.clone())),
                    Content::Source(_) | Content::Plain(_) => None,
                })
                .collect();
            (
                state.folders.clone(),
                open,
                state.editor.settings(),
                state.chosen.clone(),
            )
        };
        let profiles = self.engine().profiles();
        let file = self.files.governing(&task.path, &folders, &open, profiles);
        let mut effective =
            configuration::effective(task.uri.as_str(), &editor, &chosen, file, profiles);
        // What the project's file names is absolute by now; what is not is the editor's.
        let root = folders.iter().find(|root| task.path.starts_with(root));
        if let Some(root) = root {
            configuration::relative_to(root, &mut effective.settings);
        }
        effective
    }

    /// Runs the model shown first where it simulates: until then, the analytical estimate is shown. The next edit stops
    /// it.
    fn refine(self: &Arc<Self>, task: &Task, analysed: Arc<Analysed>) {
        let kernels = &analysed.file.kernels;
        let Some(model) = kernels.first().map(|placed| placed.analysis.model) else {
            return;
        };
        if !model.simulates() {
            return;
        }
        let session = Arc::downgrade(self);
        let cancel = task.cancel.clone();
        self.pool.submit(Priority::Request, move || {
            analysed.simulate(None, &[model], &cancel);
            if let (false, Some(session)) = (cancel.is_cancelled(), session.upgrade()) {
                session.refresh();
            }
        });
    }

    /// True where the client knows already what an analysis says that it did not bring about.
    fn is_told(&self, analysed: &Analysed) -> bool {
        let told = {
            let state = self.state();
            let open = state.open.get(analysed.uri.as_str());
            open.filter(|open| open.unasked)
                .and_then(|open| open.told.clone())
        };
        told.is_some_and(|told| {
            told.version == analysed.version
                && shown::fingerprint(&told) == shown::fingerprint(analysed)
        })
    }

    /// Keeps and publishes what was found, unless the document has moved on meanwhile; what was published.
    fn finish(self: &Arc<Self>, task: &Task, analysed: Option<Analysed>) -> Option<Arc<Analysed>> {
        let analysed = analysed.map(Arc::new);
        // Made before the lock is taken: it is the dearest part.
        let told = analysed.as_deref().is_some_and(|found| self.is_told(found));
        let publishes = self.peer().pushes() && !told;
        let published = publishes.then(|| PublishDiagnosticsParams {
            uri: task.uri.clone(),
            version: Some(task.version),
            diagnostics: match (&analysed, &task.content) {
                (Some(analysed), _) => convert::diagnostics(analysed, self.peer()),
                (None, Content::Config(rope)) => {
                    let profiles = self.engine().profiles();
                    let file = ConfigFile::parse(task.path.clone(), &rope.to_string(), profiles);
                    convert::config_problems(&file, self.peer())
                }
                (None, Content::Source(_) | Content::Plain(_)) => Vec::new(),
            },
        });
        let mut state = self.state();
        let open = state.open.get_mut(task.uri.as_str())?;
        if let Some(analysed) = &analysed {
            open.last = Some(analysed.clone());
            open.moved
                .retain(|moved| moved.revision > analysed.revision);
        }
        // Overtaken; or done already, by a worker of the same document before it was closed and opened again.
        let done = *open.done.borrow() >= task.revision;
        if open.revision != task.revision || done {
            return None;
        }
        let mut before = None;
        if let Some(analysed) = &analysed {
            open.content = Content::Source(analysed.document.clone());
            let told = open.told.replace(analysed.clone());
            if std::mem::take(&mut open.unasked) {
                before = told;
            }
        }
        open.done.send_replace(task.revision);
        if let Some(published) = published {
            self.outgoing.publish(published);
        }
        if let Some(analysed) = &analysed {
            // The analysis of this kernel panicked; the others were analysed. Report it.
            for problem in &analysed.file.problems {
                self.tell_once(
                    &mut state,
                    &format!("warplens: {}: {problem}", task.path.display()),
                );
            }
            self.report_missing_headers(&mut state, analysed);
            self.report_config(&mut state, analysed.effective.file.as_ref());
        }
        drop(state);
        if let (Some(before), Some(after)) = (before, &analysed)
            && shown::fingerprint(&before) != shown::fingerprint(after)
        {
            self.refresh();
        }
        analysed
    }

    /// Tells a client that traces us what was analysed.
    fn tell_trace(&self, task: &Task, took: Duration, analysed: &Analysed) {
        let file = &analysed.file;
        self.trace.say(
            &self.outgoing,
            format_args!("analysed {} version {}", task.uri.as_str(), task.version),
            format_args!(
                "{:.3} ms, kernels: {}, findings: {}",
                took.as_secs_f64() * 1e3,
                file.kernels.len(),
                file.findings.len()
            ),
        );
    }

    /// Writes into the client's log, once for each file, which headers were not found. No message box and no
    /// diagnostic: figures that do not depend on them are right all the same.
    fn report_missing_headers(&self, state: &mut State, analysed: &Analysed) {
        let missing = analysed.file.missing_headers();
        let file = format!("{}: headers not found", analysed.path.display());
        if missing.is_empty() {
            return;
        }
        let message = format!(
            "warplens: {}: {}",
            analysed.path.display(),
            missing_headers(&missing)
        );
        self.log_once_with(state, &file, &message);
    }

    /// Publishes what is wrong in a `warplens.toml` that is in use but not open (an open one is a document
    /// like any other), and takes it back when it is right again.
    fn report_config(&self, state: &mut State, file: Option<&Arc<ConfigFile>>) {
        let open: HashSet<PathBuf> = state
            .open
            .values()
            .filter(|open| matches!(open.content, Content::Config(_)))
            .map(|open| open.path.clone())
            .collect();
        // Files that are open now, or gone, no longer have problems of their own.
        let settled: Vec<PathBuf> = state
            .reported
            .keys()
            .filter(|path| open.contains(*path) || !path.exists())
            .cloned()
            .collect();
        for path in settled {
            state.reported.remove(&path);
            if !open.contains(&path) {
                self.publish_config(&path, Vec::new());
            }
        }
        let Some(file) = file.filter(|file| !open.contains(&file.path)) else {
            return;
        };
        match state.reported.get(&file.path) {
            Some(before) if Arc::ptr_eq(before, file) => return,
            None if file.problems.is_empty() => return,
            _ => {}
        }
        if file.problems.is_empty() {
            state.reported.remove(&file.path);
        } else {
            state.reported.insert(file.path.clone(), file.clone());
        }
        self.publish_config(&file.path, convert::config_problems(file, self.peer()));
        if !self.peer().pushes() && !self.peer().related_documents {
            // A client that pulls diagnostics requests them only for open documents: log it instead.
            for problem in &file.problems {
                self.tell_once(
                    state,
                    &format!("{}: {}", file.path.display(), problem.message),
                );
            }
        }
    }

    fn publish_config(
        &self,
        path: &Path,
        diagnostics: Vec<tower_lsp_server::ls_types::Diagnostic>,
    ) {
        if self.peer().pushes()
            && let Some(uri) = Uri::from_file_path(path)
        {
            self.outgoing
                .publish(PublishDiagnosticsParams::new(uri, diagnostics, None));
        }
    }

    // ----- questions -----

    /// A snapshot of the document, unless it holds no kernel. Handlers take it before their first `await`.
    pub fn snapshot(&self, uri: &Uri) -> Option<Snapshot> {
        let state = self.state();
        let open = state.open.get(uri.as_str())?;
        (!matches!(open.content, Content::Plain(_))).then(|| Snapshot::of(open))
    }

    /// Snapshots of all open sources, in the order of their names.
    pub fn source_snapshots(&self) -> Vec<Snapshot> {
        let state = self.state();
        let sources = state.open.values();
        let mut sources: Vec<&OpenDocument> = sources
            .filter(|open| matches!(open.content, Content::Source(_)))
            .collect();
        sources.sort_by_key(|open| open.uri.as_str());
        sources.into_iter().map(Snapshot::of).collect()
    }

    /// Path and text of an open `warplens.toml`.
    pub fn open_config(&self, uri: &Uri) -> Option<(PathBuf, Rope)> {
        let state = self.state();
        let open = state.open.get(uri.as_str())?;
        match &open.content {
            Content::Config(rope) => Some((open.path.clone(), rope.clone())),
            Content::Source(_) | Content::Plain(_) => None,
        }
    }

    /// True where the `warplens.toml` at this path is open in the editor.
    pub fn is_open_config(&self, path: &Path) -> bool {
        let state = self.state();
        state
            .open
            .values()
            .any(|open| open.path == path && matches!(open.content, Content::Config(_)))
    }

    /// The analysis of exactly the text in `snapshot`; `None` for documents without kernels to analyse and
    /// when the document was closed.
    pub async fn analysed(self: &Arc<Self>, snapshot: Snapshot) -> Option<Arc<Analysed>> {
        if !matches!(snapshot.task.content, Content::Source(_)) {
            return None;
        }
        let Snapshot { task, mut done } = snapshot;
        done.wait_for(|done| *done >= task.revision).await.ok()?;
        let last = self
            .state()
            .open
            .get(task.uri.as_str())
            .and_then(|open| open.last.clone());
        if let Some(last) = last
            && last.revision == task.revision
        {
            return Some(last);
        }
        // An edit overtook the request: answer it for its own text, from the caches.
        let session = self.clone();
        self.run(move |cancel| {
            session
                .analyse(&Task {
                    cancel: cancel.clone(),
                    ..task
                })
                .map(Arc::new)
        })
        .await
        .ok()
        .flatten()
    }

    /// The analysis of the text in `snapshot` or a newer one; after [`PATIENCE`] the last there is.
    pub async fn newest(self: &Arc<Self>, snapshot: Snapshot) -> Option<LatestAnalysis> {
        let Snapshot { task, mut done } = snapshot;
        let ready = tokio::time::timeout(PATIENCE, done.wait_for(|done| *done >= task.revision));
        if ready.await.is_err() {
            // The client is told to refresh once the exact answer is ready.
            let session = self.clone();
            tokio::spawn(async move {
                if done.wait_for(|done| *done >= task.revision).await.is_ok() {
                    session.refresh();
                }
            });
        }
        let newest = {
            let state = self.state();
            let open = state.open.get(task.uri.as_str())?;
            LatestAnalysis {
                analysed: open.last.clone()?,
                rope: open.content.rope().clone(),
                moved: open.moved.clone(),
            }
        };
        Some(newest)
    }

    /// The text of a document is what its file says.
    pub fn keep_saved_version(&self, uri: &str) {
        if let Some(open) = self.state().open.get_mut(uri) {
            open.saved_version = open.version;
        }
    }

    /// What the kernels of an analysed document took before: those that were pinned when they were, the others in the text
    /// that was saved last. `formulas`: also by sizes that nothing gives.
    pub fn earlier_times(&self, uri: &str, analysed: &Analysed, formulas: bool) -> EarlierTimes {
        let is_saved = {
            let state = self.state();
            let open = state.open.get(uri);
            open.is_some_and(|open| open.saved_version == analysed.version)
        };
        let saved = is_saved.then(|| Arc::new(earlier::of_file(&analysed.file, formulas)));
        let mut state = self.state();
        let pinned = state.chosen.pins.get(uri).cloned().unwrap_or_default();
        let Some(open) = state.open.get_mut(uri) else {
            return EarlierTimes::default();
        };
        if let Some(saved) = saved {
            open.saved_times = saved;
        }
        EarlierTimes {
            pinned,
            saved: Arc::clone(&open.saved_times),
        }
    }

    /// What the lines of a document's kernels took when these were pinned.
    pub fn pinned_lines(&self, uri: &str) -> Arc<LinesByName> {
        let state = self.state();
        state
            .chosen
            .pinned_lines
            .get(uri)
            .cloned()
            .unwrap_or_default()
    }

    /// Runs the work of a request on the pool. Dropping the future cancels it.
    pub async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Cancel) -> T + Send + 'static,
    ) -> Result<T> {
        let slow = self.slow.question;
        let answer = self.pool.run(move |cancel| {
            idle(slow, cancel);
            work(cancel)
        });
        answer.await.ok_or_else(|| {
            let mut error = Error::new(ErrorCode::InternalError);
            error.message = "internal error, please report it".into();
            error
        })
    }

    // ----- the client -----

    /// Runs a conversation with the client as a task of its own, with a time limit: a handler that awaits the client can
    /// deadlock.
    pub fn spawn_with_client<F>(self: &Arc<Self>, talk: impl FnOnce(Client, Arc<Session>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let talk = talk(self.client.clone(), self.clone());
        self.runtime.spawn(async move {
            if tokio::time::timeout(CLIENT_PATIENCE, talk).await.is_err() {
                tracing::warn!("the client did not answer within {CLIENT_PATIENCE:?}");
            }
        });
    }

    /// Requests a progress bar from the client; false where it refuses.
    pub async fn create_progress(&self, token: ProgressToken) -> bool {
        let params = WorkDoneProgressCreateParams { token };
        let created = self.client.send_request::<WorkDoneProgressCreate>(params);
        matches!(
            tokio::time::timeout(CLIENT_PATIENCE, created).await,
            Ok(Ok(()))
        )
    }

    /// Tells the client to refresh what it shows, once for a burst of changes.
    pub fn refresh(self: &Arc<Self>) {
        if self.refreshing.swap(true, Ordering::AcqRel) {
            return;
        }
        self.spawn_with_client(|client, session| async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            session.refreshing.store(false, Ordering::Release);
            let peer = session.peer();
            // Each is a question of its own: one that stays unanswered must not keep the others back.
            let hints = async {
                if peer.refreshes_hints {
                    drop(client.inlay_hint_refresh().await);
                }
            };
            let lenses = async {
                if peer.refreshes_lenses {
                    drop(client.code_lens_refresh().await);
                }
            };
            let diagnostics = async {
                if peer.pulls && peer.refreshes_diagnostics {
                    drop(client.workspace_diagnostic_refresh().await);
                }
            };
            tokio::join!(hints, lenses, diagnostics);
        });
    }

    /// Runs something as a task of its own.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(task);
    }

    /// Writes a line into the client's log, once: for what the user may want to know and need not.
    pub fn log_once(&self, message: &str) {
        self.log_once_with(&mut self.state(), message, message);
    }

    fn log_once_with(&self, state: &mut State, subject: &str, message: &str) {
        if !state.told.insert(subject.to_owned()) {
            return;
        }
        let message = printable(message);
        tracing::info!("{message}");
        self.outgoing.send(&serde_json::json!({
            "jsonrpc": "2.0",
            "method": "window/logMessage",
            "params": {"type": MessageType::INFO, "message": message},
        }));
    }

    /// Shows the user a message about something that they can do something about.
    pub fn tell(&self, message: &str) {
        self.tell_once(&mut self.state(), message);
    }

    /// The same, with the state in hand. A message is shown once.
    pub fn tell_once(&self, state: &mut State, message: &str) {
        if state.told.insert(message.to_owned()) {
            let message = printable(message);
            tracing::warn!("{message}");
            // The message box goes away; the log keeps what to send to us.
            for method in ["window/logMessage", "window/showMessage"] {
                self.outgoing.send(&serde_json::json!({
                    "jsonrpc": "2.0",
                    "method": method,
                    "params": {"type": MessageType::WARNING, "message": message},
                }));
            }
        }
    }

    /// Applies the editor's settings.
    pub fn change_editor_settings(self: &Arc<Self>, take: impl FnOnce(&mut Editor)) {
        let changed = {
            let mut state = self.state();
            let before = state.editor.settings();
            take(&mut state.editor);
            let after = state.editor.settings();
            if after.get("gpu") != before.get("gpu") {
                // The setting changed after the choice, so it wins.
                state.chosen.gpu = None;
                state.chosen.gpu_of.clear();
            }
            after != before
        };
        if changed {
            self.settings_changed();
            self.check_editor_settings();
        }
    }

    /// Says, on a worker, what is wrong in the editor's settings.
    pub fn check_editor_settings(self: &Arc<Self>) {
        let session = Arc::downgrade(self);
        self.pool.submit(Priority::Typing, move || {
            let Some(session) = session.upgrade() else {
                return;
            };
            let (editor, folders) = {
                let state = session.state();
                (state.editor.clone(), state.folders.clone())
            };
            let compiler = editor.compiler(&folders).and_then(std::result::Result::err);
            let problems = editor.problems(session.engine().profiles());
            for problem in problems.into_iter().chain(compiler) {
                session.tell(&format!("warplens settings: {problem}"));
            }
        });
    }
}

/// Passes time, unless cancelled.
fn idle(time: Duration, cancel: &Cancel) {
    let until = Instant::now() + time;
    while Instant::now() < until && !cancel.is_cancelled() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

impl Task {
    fn of(open: &OpenDocument) -> Task {
        Task {
            uri: open.uri.clone(),
            path: open.path.clone(),
            version: open.version,
            revision: open.revision,
            content: open.content.clone(),
            cancel: open.cancel.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::str::FromStr;
    use tokio::io::AsyncReadExt;
    use tower_lsp_server::LspService;

    use crate::outgoing;
    use crate::server::Server;

    /// No known input makes an analysis panic, so this test injects the engine's report of a panic.
    #[tokio::test]
    async fn a_kernel_that_was_lost_is_told_once_and_costs_nothing_else() {
        let (outgoing, written) = outgoing::channel();
        let (pipe, mut client) = tokio::io::duplex(1 << 20);
        let writer = tokio::spawn(written.write_to(pipe));
        let mut session = None;
        let (_service, _socket) = LspService::new(|client| {
            let new = Session::new(client, outgoing.clone(), &Options::default());
            session = Some(new.clone());
            Server(new)
        });
        let session = session.expect("a session");
        let uri = Uri::from_str("file:///code/copy.cu").expect("a name");
        let text = "__global__ void copy(float *out, const float *in) {\n\
                    out[threadIdx.x] = in[32 * threadIdx.x];\n}\n";
        for revision in 1..=2 {
            let open =
                OpenDocument::new(uri.clone(), "cuda-cpp", 1, text, revision).expect("a kernel");
            session.state().open.insert(uri.as_str().to_owned(), open);
            let task = session.take(uri.as_str()).expect("something to do");
            let mut analysed = session.analyse(&task).expect("not cancelled");
            analysed
                .file
                .problems
                .push("the analysis of `lost` failed".to_owned());
            session.finish(&task, Some(analysed));
        }
        outgoing.close();
        writer.await.expect("no panic").expect("written");
        let mut said = String::new();
        client.read_to_string(&mut said).await.expect("text");
        for method in ["window/showMessage", "window/logMessage"] {
            assert_eq!(said.matches(method).count(), 1, "{said}");
        }
        let told = "warplens: /code/copy.cu: the analysis of `lost` failed";
        assert_eq!(said.matches(told).count(), 2, "{said}");
        assert!(said.contains("mem/strided"), "the other kernel: {said}");
    }
}
