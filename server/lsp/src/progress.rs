//! The work that the client shows now, and how its user gives it up.
//!
//! In: what [`crate::long_work`] begins and ends, and the client's cancellations. What holds: a token names work that has not
//! ended.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use tower_lsp_server::ls_types::ProgressToken;

/// The work that is shown now, by the token that the client knows it by.
#[derive(Debug, Default)]
pub struct Progress {
    named: AtomicU64,
    shown: Mutex<HashMap<ProgressToken, oneshot::Sender<()>>>,
}

impl Progress {
    /// `window/workDoneProgress/cancel`: gives work up. A token of work that is over means nothing.
    pub fn cancel(&self, token: &ProgressToken) {
        let cancel = self.shown().remove(token);
        if cancel.is_some_and(|cancel| cancel.send(()).is_err()) {
            tracing::debug!("cancelled work that was over already");
        }
    }

    /// A token that no other work has.
    pub fn new_token(&self) -> ProgressToken {
        let number = self.named.fetch_add(1, Ordering::Relaxed);
        ProgressToken::String(format!("warplens/{number}"))
    }

    /// Work begins; what is returned receives when it is given up.
    pub fn begin(&self, token: ProgressToken) -> oneshot::Receiver<()> {
        let (cancel, cancelled) = oneshot::channel();
        self.shown().insert(token, cancel);
        cancelled
    }

    /// Work ended.
    pub fn end(&self, token: &ProgressToken) {
        self.shown().remove(token);
    }

    fn shown(&self) -> MutexGuard<'_, HashMap<ProgressToken, oneshot::Sender<()>>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
