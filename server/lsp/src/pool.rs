//! The worker threads on which everything that computes runs.
//!
//! Two kinds of work: what the user waits for while typing (a document's analysis) goes first, and
//! questions (a hover over an older text, a code action's proof) never hold all the threads, so that a
//! keystroke always finds one.
//!
//! A thread that had nothing to do for a while ends, and another is started when there is work again: with it goes the memory that
//! the allocator kept for it, most of what a large file needed.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use warplens_db::Cancel;

/// Never more threads than this: the user's machine has other work.
const MOST_THREADS: usize = 4;
/// How long a thread without work stays.
const IDLE: Duration = Duration::from_secs(4);

/// How soon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    /// The analysis of a document being edited.
    Typing,
    /// The answer to a question.
    Request,
}

type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Queue {
    typing: VecDeque<Job>,
    questions: VecDeque<Job>,
    answering: usize,
    /// Threads there are, and those of them that wait for work.
    threads: usize,
    waiting: usize,
    closed: bool,
}

struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
    most_threads: usize,
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
    /// At most as many threads as there are cores, two at least and four at most.
    pub fn new() -> Pool {
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        Pool {
            shared: Arc::new(Shared {
                queue: Mutex::default(),
                wake: Condvar::new(),
                most_threads: cores.clamp(2, MOST_THREADS),
            }),
        }
    }

    /// Runs `job` on some thread. A job that panics is logged and lost.
    pub fn submit(&self, priority: Priority, job: impl FnOnce() + Send + 'static) {
        let mut queue = self.shared.lock();
        match priority {
            Priority::Typing => queue.typing.push_back(Box::new(job)),
            Priority::Request => queue.questions.push_back(Box::new(job)),
        }
        let busy = queue.waiting < queue.typing.len() + queue.questions.len();
        let start = busy && queue.threads < self.shared.most_threads;
        queue.threads += usize::from(start);
        let number = queue.threads;
        drop(queue);
        self.shared.wake.notify_one();
        if start {
            self.start(number);
        }
    }

    fn start(&self, number: usize) {
        let shared = self.shared.clone();
        let started = std::thread::Builder::new()
            .name(format!("analysis-{number}"))
            // Deep recursion over deeply nested source must not end the process.
            .stack_size(16 * 1024 * 1024)
            .spawn(move || shared.work());
        if let Err(error) = started {
            self.shared.lock().threads -= 1;
            tracing::error!("a worker thread could not be started: {error}");
        }
    }

    /// Runs `job` with the priority of a request and returns its result; `None` when it panicked. Dropping the future
    /// (the client cancelled) removes a job that has not started and trips the [`Cancel`] of one that has.
    pub async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Cancel) -> T + Send + 'static,
    ) -> Option<T> {
        let cancel = CancelOnDrop(Cancel::default());
        let (reply, answer) = tokio::sync::oneshot::channel();
        let token = cancel.0.clone();
        self.submit(Priority::Request, move || {
            if !token.is_cancelled() {
                // The receiver may be dropped.
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
            if priority == Priority::Request {
                self.lock().answering -= 1;
                self.wake.notify_one();
            }
        }
    }

    fn next(&self) -> Option<(Priority, Job)> {
        let mut queue = self.lock();
        let mut idle = false;
        loop {
            if queue.closed {
                queue.threads -= 1;
                return None;
            }
            if let Some(job) = queue.typing.pop_front() {
                return Some((Priority::Typing, job));
            }
            if queue.answering + 1 < self.most_threads
                && let Some(job) = queue.questions.pop_front()
            {
                queue.answering += 1;
                return Some((Priority::Request, job));
            }
            // What it may not answer now a thread that answers will, when it is done.
            if idle {
                queue.threads -= 1;
                return None;
            }
            queue.waiting += 1;
            let waited = self.wake.wait_timeout(queue, IDLE);
            let outcome;
            (queue, outcome) = waited.unwrap_or_else(PoisonError::into_inner);
            queue.waiting -= 1;
            idle = outcome.timed_out();
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
            pool.submit(Priority::Request, move || {
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
    fn threads_without_work_end_and_others_take_their_place() {
        let pool = Pool::new();
        let run = || {
            let (done, wait) = mpsc::channel();
            pool.submit(Priority::Typing, move || {
                done.send(()).expect("the test waits");
            });
            assert!(wait.recv_timeout(Duration::from_secs(10)).is_ok());
        };
        run();
        assert!(pool.shared.lock().threads > 0);
        let given_up = std::time::Instant::now() + 10 * IDLE;
        while pool.shared.lock().threads > 0 && std::time::Instant::now() < given_up {
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(pool.shared.lock().threads, 0);
        run();
    }

    #[test]
    fn a_panic_costs_one_job() {
        let pool = Pool::new();
        let (done, wait) = mpsc::channel();
        for _ in 0..20 {
            pool.submit(Priority::Request, || panic!("as planned"));
            pool.submit(Priority::Typing, || panic!("as planned"));
        }
        pool.submit(Priority::Request, move || {
            done.send(()).expect("the test waits");
        });
        assert!(wait.recv_timeout(Duration::from_secs(10)).is_ok());
    }

    #[tokio::test]
    async fn who_stops_waiting_stops_the_work() {
        let pool = Pool::new();
        let (started, wait) = mpsc::channel();
        let (stopped, wait_stopped) = mpsc::channel();
        let question = pool.run(move |cancel| {
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
