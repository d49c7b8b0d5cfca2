//! Requests of the client, one a file. Each takes its snapshot before its first `await`; all computing is
//! done on the pool.

pub mod code_action;
pub mod code_action_resolve;
pub mod code_lens;
pub mod diagnostic;
pub mod execute_command;
pub mod hover;
pub mod initialize;
pub mod inlay_hint;
pub mod inlay_hint_resolve;
pub mod shutdown;

use tower_lsp_server::jsonrpc::Error;

/// An error that the caller caused, with one line that says how.
pub fn invalid(message: impl Into<String>) -> Error {
    Error::invalid_params(message.into())
}
