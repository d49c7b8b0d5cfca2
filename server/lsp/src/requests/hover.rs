//! `textDocument/hover`

use std::sync::Arc;

use tower_lsp_server::jsonrpc::Result;
use tower_lsp_server::ls_types::{Hover, HoverContents, HoverParams, MarkupContent, MarkupKind};
use warplens_report::markdown;

use crate::render;
use crate::render::hover::At;
use crate::session::Session;

/// On a kernel's name: the kernel. On a line with accesses or branches: the line. Elsewhere nothing: other
/// servers have more to say there.
pub async fn handle(session: &Arc<Session>, params: HoverParams) -> Result<Option<Hover>> {
    let at = params.text_document_position_params;
    let Some(snapshot) = session.snapshot(&at.text_document.uri) else {
        return Ok(None);
    };
    let encoding = session.peer().encoding;
    let byte = encoding.to_byte(snapshot.rope(), at.position);
    let Some(analysed) = session.analysed(snapshot).await else {
        return Ok(None);
    };
    let shared = session.clone();
    let hover = session
        .run(move |cancel| {
            let (bytes, value) = match render::hover::at(&analysed, byte)? {
                At::Line(bytes, value) => (bytes, value),
                At::Kernel(bytes, name) => (
                    bytes,
                    render::page::of(shared.engine(), &analysed, &name, markdown::summary, cancel)
                        .ok()?,
                ),
            };
            Some((encoding.to_range(analysed.document.rope(), &bytes), value))
        })
        .await?;
    let shown = |markdown: String| {
        if session.peer().markdown {
            (MarkupKind::Markdown, markdown)
        } else {
            (MarkupKind::PlainText, render::plain::text(&markdown))
        }
    };
    Ok(hover.map(|(range, markdown)| {
        let (kind, value) = shown(markdown);
        Hover {
            contents: HoverContents::Markup(MarkupContent { kind, value }),
            range: Some(range),
        }
    }))
}
