//! `$/setTrace` and `$/logTrace`: sends what the server does to a client that enables it.

use std::fmt::Display;
use std::sync::atomic::{AtomicU8, Ordering};

use serde_json::{Value, json};
use tower_lsp_server::ls_types::TraceValue;

use crate::outgoing::Outgoing;

/// How much the client wants to know.
#[derive(Debug, Default)]
pub struct Trace(AtomicU8);

impl Trace {
    /// Sets it.
    pub fn set(&self, value: TraceValue) {
        let level = match value {
            TraceValue::Off => 0,
            TraceValue::Messages => 1,
            TraceValue::Verbose => 2,
        };
        self.0.store(level, Ordering::Relaxed);
    }

    /// Tells a client that wants to know; `details` only one that wants to know more.
    pub fn say(&self, outgoing: &Outgoing, message: impl Display, details: impl Display) {
        let level = self.0.load(Ordering::Relaxed);
        if level == 0 {
            return;
        }
        let mut params = json!({"message": message.to_string()});
        if level > 1 {
            params["verbose"] = Value::String(details.to_string());
        }
        outgoing.send(&json!({"jsonrpc": "2.0", "method": "$/logTrace", "params": params}));
    }
}
