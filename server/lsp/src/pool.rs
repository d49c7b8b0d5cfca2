//! The worker threads on which everything that computes runs.
//!
//! Two kinds of work: what the user waits for while typing (a document's analysis) goes first, and
//! questions (a hover over an older text, a code action's proof) never hold all the threads, so that a
//! keystroke always finds one.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use warplens_engine::Cancel;

/// Never more threads than this: the user's machine has other work.
const MOST_THREADS: usize = 4;

/// How soon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    /// The analysis of a document being edited.
    Typing,
    /// The answer to a question.
    Question,
}

type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Queue {
    typing: VecDeque<Job>,
    questions: VecDeque<Job>,
    answering: usize,
    closed: bool,
}

struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
    most_questions: usize,
}

/// The threads; they end when the pool is dropped, after what they are doing.
pub struct Pool {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}

impl Pool {
    /// As many threads as there are cores, two at least and four at most.
    pub fn new() -> Pool {
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        let threads = cores.clamp(2, MOST_THREADS);
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            wake: Condvar::new(),
            most_questions: threads - 1,
        });
        for number in 0..threads {
            let shared = shared.clone();
            let started = std::thread::Builder::new()
                .name(format!("analysis-{number}"))
                // Deep recursion over deeply nested source must not end the process.
                .stack_size(16 * 1024 * 1024)
                .spawn(move || shared.work());
            if let Err(error) = started {
                tracing::error!("a worker thread could not be started: {error}");
            }
        }
        Pool { shared }
    }

    /// Runs `job` on some thread. A job that panics is logged and lost.
    pub fn submit(&self, priority: Priority, job: impl FnOnce() + Send + 'static) {
        let mut queue = self.shared.lock();
        match priority {
            Priority::Typing => queue.typing.push_back(Box::new(job)),
            Priority::Question => queue.questions.push_back(Box::new(job)),
        }
        drop(queue);
        self.shared.wake.notify_one();
    }

    /// Runs `job` as a question and waits for its answer; `None` when it panicked. When the waiting is
    /// given up (the client cancelled), a job that has not started does not start, and one that has is
    /// told through its [`Cancel`].
    pub async fn ask<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Cancel) -> T + Send + 'static,
    ) -> Option<T> {
        let cancel = CancelOnDrop(Cancel::default());
        let (reply, answer) = tokio::sync::oneshot::channel();
        let token = cancel.0.clone();
        self.submit(Priority::Question, move || {
            if !token.is_cancelled() {
                // Nobody listening any more is no error.
                drop(reply.send(job(&token)));
            }
        });
        answer.await.ok()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.wake.notify_all();
    }
}

struct CancelOnDrop(Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        while let Some((priority, job)) = self.next() {
            if catch_unwind(AssertUnwindSafe(job)).is_err() {
                tracing::error!("a job panicked; please report it with the log");
            }
            if priority == Priority::Question {
                self.lock().answering -= 1;
                self.wake.notify_one();
            }
        }
    }

    fn next(&self) -> Option<(Priority, Job)> {
        let mut queue = self.lock();
        loop {
            if queue.closed {
                return None;
            }
            if let Some(job) = queue.typing.pop_front() {
                return Some((Priority::Typing, job));
            }
            if queue.answering < self.most_questions
                && let Some(job) = queue.questions.pop_front()
            {
                queue.answering += 1;
                return Some((Priority::Question, job));
            }
            queue = self
                .wake
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn questions_leave_a_thread_for_typing() {
        let pool = Pool::new();
        let gate = Arc::new((Mutex::new(false), Condvar::new()));
        for _ in 0..50 {
            let gate = gate.clone();
            pool.submit(Priority::Question, move || {
                let open = gate.0.lock().expect("the gate");
                drop(gate.1.wait_while(open, |open| !*open).expect("the gate"));
            });
        }
        let (done, wait) = mpsc::channel();
        pool.submit(Priority::Typing, move || {
            done.send(()).expect("the test waits");
        });
        assert!(
            wait.recv_timeout(Duration::from_secs(10)).is_ok(),
            "typing waited for questions"
        );
        *gate.0.lock().expect("the gate") = true;
        gate.1.notify_all();
    }

    #[test]
    fn a_panic_costs_one_job() {
        let pool = Pool::new();
        let (done, wait) = mpsc::channel();
        for _ in 0..20 {
            pool.submit(Priority::Question, || panic!("as planned"));
            pool.submit(Priority::Typing, || panic!("as planned"));
        }
        pool.submit(Priority::Question, move || {
            done.send(()).expect("the test waits");
        });
        assert!(wait.recv_timeout(Duration::from_secs(10)).is_ok());
    }

    #[tokio::test]
    async fn who_stops_waiting_stops_the_work() {
        let pool = Pool::new();
        let (started, wait) = mpsc::channel();
        let (stopped, wait_stopped) = mpsc::channel();
        let question = pool.ask(move |cancel| {
            started.send(()).expect("the test waits");
            while !cancel.is_cancelled() {
                std::thread::sleep(Duration::from_millis(1));
            }
            stopped.send(()).expect("the test waits");
        });
        assert!(
            tokio::time::timeout(Duration::from_millis(100), question)
                .await
                .is_err()
        );
        assert!(wait.recv_timeout(Duration::from_secs(10)).is_ok());
        assert!(wait_stopped.recv_timeout(Duration::from_secs(10)).is_ok());
    }
}
