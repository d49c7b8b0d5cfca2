//! Work that takes longer than a moment: shown where the client can show it, and given up when the user has had
//! enough of it.
//!
//! In: a request's work and its title. Out: its answer, or that it was cancelled.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tower_lsp_server::jsonrpc::{Error, Result};
use tower_lsp_server::ls_types::ProgressToken;

use crate::session::Session;

/// What is done by then is not worth showing.
const AFTER: Duration = Duration::from_secs(1);

/// Waits for a request's work. Where it takes longer than a second it is shown under `title`: by the token that came with
/// the request, else a token that the server creates. Cancelling it answers the request at once.
pub async fn with<T>(
    session: &Arc<Session>,
    title: &str,
    token: Option<ProgressToken>,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    tokio::pin!(work);
    // The work is polled first: what it takes from the state it takes before the next message is read.
    tokio::select! {
        biased;
        done = &mut work => return done,
        () = tokio::time::sleep(AFTER) => {}
    }
    let token = if let Some(token) = token {
        token
    } else {
        if !session.peer().shows_progress {
            return work.await;
        }
        let token = session.progress.new_token();
        let taken = tokio::select! {
            biased;
            done = &mut work => return done,
            taken = session.create_progress(token.clone()) => taken,
        };
        if !taken {
            return work.await;
        }
        token
    };
    let cancelled = session.progress.begin(token.clone());
    let _bar = Bar::begin(session.clone(), token, title);
    tokio::select! {
        biased;
        done = work => done,
        Ok(()) = cancelled => Err(Error::request_cancelled()),
    }
}

/// Ends what is shown when the work ends, however it does.
struct Bar {
    session: Arc<Session>,
    token: ProgressToken,
}

impl Bar {
    fn begin(session: Arc<Session>, token: ProgressToken, title: &str) -> Bar {
        let bar = Bar { session, token };
        bar.say(&json!({"kind": "begin", "title": title, "cancellable": true}));
        bar
    }

    fn say(&self, value: &Value) {
        self.session.outgoing.send(&json!({
            "jsonrpc": "2.0",
            "method": "$/progress",
            "params": {"token": self.token, "value": value},
        }));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.session.progress.end(&self.token);
        self.say(&json!({"kind": "end"}));
    }
}
