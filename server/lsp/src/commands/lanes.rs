//! `warplens.lanes {uri, position}`

use std::ops::Range;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp_server::jsonrpc::Result;
use tower_lsp_server::ls_types::Position;
use warplens_db::pictures::LanePicture;

use crate::documents::Analysed;
use crate::session::Session;

/// Accesses of a line that are pictured at once, at most.
const MOST: usize = 8;

#[derive(Debug, Deserialize)]
struct LanesParams {
    uri: String,
    position: Position,
}

/// Returns where the lanes of a warp go at the access under the cursor, or at those of its line:
/// `{accesses, html, text}`, how many there are and a page with a picture of each, also in characters.
pub async fn run(session: &Arc<Session>, argument: Value) -> Result<Value> {
    let LanesParams { uri, position } = super::params(super::LANES, argument)?;
    let analysed = super::document::analysed(session, &uri).await?;
    let encoding = session.peer().encoding;
    session
        .run(move |_| {
            let rope = analysed.document.rope();
            let byte = encoding.to_byte(rope, position);
            let line = rope.byte_to_line(byte.min(rope.len_bytes()));
            let pictures = pictures(&analysed, byte, line);
            let place = format!("Line {}: {}", line + 1, rope.line(line).to_string().trim());
            json!({
                "accesses": pictures.len(),
                "html": warplens_report::lanes_page(&place, &pictures),
                "text": warplens_report::lanes_text(&place, &pictures),
            })
        })
        .await
}

/// Those under the cursor, else those of the line. Several launches of one kernel share its lines: the first one speaks.
fn pictures(analysed: &Analysed, byte: usize, line: usize) -> Vec<LanePicture> {
    let rope = analysed.document.rope();
    let start = rope.line_to_byte(line);
    let end = rope.line_to_byte((line + 1).min(rope.len_lines()));
    let kernels = || {
        let kernels = analysed.file.kernels.iter();
        kernels.filter(move |placed| placed.start <= end && start <= placed.end)
    };
    let within = |bytes: Range<usize>| {
        let found = kernels().map(|placed| placed.lanes_in(&bytes));
        found
            .into_iter()
            .find(|found| !found.is_empty())
            .unwrap_or_default()
    };
    let mut found = within(byte..byte);
    if found.is_empty() {
        found = within(start..end.saturating_sub(1).max(start));
    }
    found.truncate(MOST);
    found
}
