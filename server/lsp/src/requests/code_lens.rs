//! `textDocument/codeLens`

use std::sync::Arc;

use serde_json::json;
use tower_lsp_server::jsonrpc::Result;
use tower_lsp_server::ls_types::{CodeLens, CodeLensParams, Command, Position, Range};

use warplens_report::style::printable;

use crate::commands;
use crate::earlier;
use crate::render;
use crate::session::Session;

/// One above each kernel; beside it one with what a compiler reported, one where something is assumed, one that leads to where sizes are given that the time depends on, one where something was not understood, one where it has
/// several launches, and one that leads to what would help where there are findings. Their commands are those the client announced to have (`experimental.commands`); for other
/// clients they are text alone.
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
    let first_of = |names: &[&'static str]| {
        let known = names.iter().find(|name| peer.commands.contains(**name));
        known.copied().unwrap_or_default()
    };
    let page = first_of(&[commands::BREAKDOWN, commands::SELECT_GPU]);
    let losses = first_of(&[commands::BREAKDOWN]);
    let launch = first_of(&[commands::SET_LAUNCH]);
    let next = first_of(&[commands::NEXT_LAUNCH]);
    let help = first_of(&[commands::WHAT_WOULD_HELP]);
    let shared = session.clone();
    let lenses = session
        .run(move |_| {
            if !newest.analysed.effective.settings.code_lens.enable {
                return Vec::new();
            }
            let formulas = render::lens::formulas_are_shown(&newest.analysed.file);
            let before = shared.earlier_times(uri.as_str(), &newest.analysed, formulas);
            let kernels = earlier::numbered(&newest.analysed.file);
            let lenses = kernels.filter_map(|(number, kernel)| {
                let before = before.get(&kernel.analysis.facts.name, number);
                let moved = &newest.moved;
                let line = moved
                    .iter()
                    .try_fold(kernel.line, |line, moved| moved.line(line))?;
                let at = Position::new(line, if moved.is_empty() { kernel.column } else { 0 });
                let arguments = json!({"uri": uri.as_str(), "kernel": kernel.analysis.facts.name});
                let lens = |(title, command): (String, &str)| CodeLens {
                    range: Range::new(at, at),
                    command: Some(Command {
                        title: printable(&title),
                        command: command.to_owned(),
                        arguments: (!command.is_empty()).then(|| vec![arguments.clone()]),
                    }),
                    data: None,
                };
                let titles = [
                    Some((render::lens::title(kernel, formulas, before), page)),
                    render::lens::registers(kernel).map(|title| (title, page)),
                    render::lens::assumptions(kernel).map(|title| (title, launch)),
                    (!launch.is_empty())
                        .then(|| render::lens::open_sizes(kernel))
                        .flatten()
                        .map(|title| (title, launch)),
                    render::lens::losses(kernel).map(|title| (title, losses)),
                    render::lens::launch(kernel).map(|title| {
                        let is_set = kernel.set.is_some();
                        (title, if is_set { launch } else { next })
                    }),
                    // A click alone leads on: without its command it says nothing.
                    (!help.is_empty())
                        .then(|| render::lens::help(kernel, &newest.analysed.file))
                        .flatten()
                        .map(|title| (title, help)),
                ];
                Some(titles.into_iter().flatten().map(lens).collect::<Vec<_>>())
            });
            lenses.flatten().collect()
        })
        .await?;
    Ok(Some(lenses))
}
