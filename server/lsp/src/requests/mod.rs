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
use tower_lsp_server::ls_types::{MarkupContent, MarkupKind};
use warplens_report::style::{printable, printable_lines};

use crate::peer::Peer;
use crate::render::plain;

/// An error that the caller caused, with one line that says how.
pub fn invalid(message: impl Into<String>) -> Error {
    Error::invalid_params(printable(&message.into()))
}

/// Markdown as the client shows it. What it quotes of a file does not act on the editor or turn its text around.
pub fn markup(peer: &Peer, markdown: &str) -> MarkupContent {
    let markdown = printable_lines(markdown);
    let (kind, value) = if peer.markdown {
        (MarkupKind::Markdown, markdown)
    } else {
        (MarkupKind::PlainText, plain::text(&markdown))
    };
    MarkupContent { kind, value }
}
