//! `textDocument/inlayHint`

use std::sync::Arc;

use tower_lsp_server::jsonrpc::Result;
use tower_lsp_server::ls_types::{
    InlayHint, InlayHintLabel, InlayHintParams, InlayHintTooltip, MarkupContent, MarkupKind,
};

use crate::render;
use crate::session::Session;

pub async fn handle(
    session: &Arc<Session>,
    params: InlayHintParams,
) -> Result<Option<Vec<InlayHint>>> {
    let Some(snapshot) = session.snapshot(&params.text_document.uri) else {
        return Ok(None);
    };
    let Some(newest) = session.newest(snapshot).await else {
        return Ok(None);
    };
    let encoding = session.peer().encoding;
    let range = params.range;
    let hints = session
        .ask(move |_| {
            let wanted = &newest.analysed.effective.settings.inlay_hints;
            if !wanted.enable {
                return Vec::new();
            }
            render::hint::all(&newest.analysed, wanted)
                .into_iter()
                .filter_map(|hint| {
                    let line = newest
                        .moved
                        .iter()
                        .try_fold(hint.line, |line, moved| moved.line(line))?;
                    let position = encoding.line_end(&newest.rope, line);
                    // A hint belongs to its line: it is shown wherever a part of the line is asked for.
                    let asked = range.start.line <= line
                        && (line < range.end.line || position <= range.end);
                    asked.then(|| InlayHint {
                        position,
                        label: InlayHintLabel::String(hint.label),
                        kind: None,
                        text_edits: None,
                        tooltip: Some(InlayHintTooltip::MarkupContent(MarkupContent {
                            kind: MarkupKind::Markdown,
                            value: hint.tooltip,
                        })),
                        padding_left: Some(true),
                        padding_right: None,
                        data: None,
                    })
                })
                .collect()
        })
        .await?;
    Ok(Some(hints))
}
