//! `textDocument/inlayHint`

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tower_lsp_server::jsonrpc::Result;
use tower_lsp_server::ls_types::{
    InlayHint, InlayHintLabel, InlayHintParams, InlayHintTooltip, Uri,
};

use warplens_report::style::printable;

use crate::peer::Peer;
use crate::render;
use crate::session::Session;

/// What a hint carries until it is resolved.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Origin {
    /// Its document. The line is the hint's own.
    pub uri: Uri,
}

pub async fn handle(
    session: &Arc<Session>,
    params: InlayHintParams,
) -> Result<Option<Vec<InlayHint>>> {
    let uri = params.text_document.uri;
    let Some(snapshot) = session.snapshot(&uri) else {
        return Ok(None);
    };
    let Some(newest) = session.newest(snapshot).await else {
        return Ok(None);
    };
    let peer = session.peer().clone();
    let encoding = peer.encoding;
    let later = peer.resolves_tooltips;
    let pinned = session.pinned_lines(uri.as_str());
    let origin = later.then(|| serde_json::to_value(Origin { uri }).unwrap_or_default());
    let range = params.range;
    let hints = session
        .run(move |_| {
            let wanted = &newest.analysed.effective.settings.inlay_hints;
            if !wanted.enable {
                return Vec::new();
            }
            // The text may be newer than the analysis: map the requested lines back.
            let lines = if newest.moved.is_empty() {
                range.start.line..range.end.line.saturating_add(1)
            } else {
                0..u32::MAX
            };
            render::hint::within(&newest.analysed, &lines, wanted, &pinned, !later)
                .into_iter()
                .filter_map(|hint| {
                    let line = newest
                        .moved
                        .iter()
                        .try_fold(hint.line, |line, moved| moved.line(line))?;
                    let position = encoding.line_end(&newest.rope, line);
                    // A hint belongs to its line: return it where the range touches the line.
                    let requested = range.start.line <= line
                        && (line < range.end.line || position <= range.end);
                    requested.then(|| InlayHint {
                        position,
                        label: InlayHintLabel::String(printable(&hint.label)),
                        kind: None,
                        text_edits: None,
                        tooltip: hint.tooltip.map(|text| tooltip(&peer, &text)),
                        padding_left: Some(true),
                        padding_right: None,
                        data: origin.clone(),
                    })
                })
                .collect()
        })
        .await?;
    Ok(Some(hints))
}

/// A tooltip as the client shows it.
pub fn tooltip(peer: &Peer, markdown: &str) -> InlayHintTooltip {
    InlayHintTooltip::MarkupContent(super::markup(peer, markdown))
}
