//! `textDocument/codeLens`

use std::sync::Arc;

use serde_json::json;
use tower_lsp_server::jsonrpc::Result;
use tower_lsp_server::ls_types::{CodeLens, CodeLensParams, Command, Position, Range};

use crate::commands;
use crate::render;
use crate::session::Session;

/// One above each kernel. Its command is one the client announced to have (`experimental.commands`); for
/// other clients it is text alone.
pub async fn handle(
    session: &Arc<Session>,
    params: CodeLensParams,
) -> Result<Option<Vec<CodeLens>>> {
    let uri = params.text_document.uri;
    let Some(snapshot) = session.snapshot(&uri) else {
        return Ok(None);
    };
    let Some(newest) = session.newest(snapshot).await else {
        return Ok(None);
    };
    let peer = session.peer();
    let command = [commands::BREAKDOWN, commands::SELECT_GPU]
        .into_iter()
        .find(|name| peer.commands.contains(*name))
        .unwrap_or_default();
    let lenses = session
        .ask(move |_| {
            if !newest.analysed.effective.settings.code_lens.enable {
                return Vec::new();
            }
            let lenses = newest.analysed.file.kernels.iter().filter_map(|kernel| {
                let moved = &newest.moved;
                let line = moved
                    .iter()
                    .try_fold(kernel.line, |line, moved| moved.line(line))?;
                let at = Position::new(line, if moved.is_empty() { kernel.column } else { 0 });
                let arguments = json!({"uri": uri.as_str(), "kernel": kernel.analysis.facts.name});
                Some(CodeLens {
                    range: Range::new(at, at),
                    command: Some(Command {
                        title: render::lens::title(kernel),
                        command: command.to_owned(),
                        arguments: (!command.is_empty()).then(|| vec![arguments]),
                    }),
                    data: None,
                })
            });
            lenses.collect()
        })
        .await?;
    Ok(Some(lenses))
}
