//! `textDocument/hover`

use std::ops::Range;
use std::sync::Arc;

use tower_lsp_server::jsonrpc::Result;
use tower_lsp_server::ls_types::{Hover, HoverContents, HoverParams, Range as TextRange};
use warplens_db::{Cancel, Engine};
use warplens_report::markdown;

use crate::documents::Analysed;
use crate::render;
use crate::render::hover::At;
use crate::session::Session;
use crate::trial::Trial;

/// On a kernel's name: the kernel. On a line with accesses or branches: the line. On a launch: the launch and the blocks that it
/// could have. In a `warplens.toml`, on a GPU or a rule: its page in short. Elsewhere nothing: other servers have more to say there.
pub async fn handle(session: &Arc<Session>, params: HoverParams) -> Result<Option<Hover>> {
    let at = params.text_document_position_params;
    let encoding = session.peer().encoding;
    let shared = session.clone();
    if let Some((_, rope)) = session.open_config(&at.text_document.uri) {
        let byte = encoding.to_byte(&rope, at.position);
        let hover = session
            .run(move |_| {
                let profiles = shared.engine().profiles();
                let (bytes, value) = render::config::at(&rope, byte, profiles)?;
                Some((encoding.to_range(&rope, &bytes), value))
            })
            .await?;
        return Ok(hover.map(|hover| shown(session, hover)));
    }
    let Some(snapshot) = session.snapshot(&at.text_document.uri) else {
        return Ok(None);
    };
    let byte = encoding.to_byte(snapshot.rope(), at.position);
    let Some(analysed) = session.analysed(snapshot).await else {
        return Ok(None);
    };
    let hover = session
        .run(move |cancel| {
            let beside = shared.peer().hover_shows_diagnostics;
            let (bytes, value) = launch(shared.engine(), &analysed, byte, beside, cancel)
                .or_else(|| of_text(shared.engine(), &analysed, byte, beside, cancel))?;
            Some((encoding.to_range(analysed.document.rope(), &bytes), value))
        })
        .await?;
    Ok(hover.map(|hover| shown(session, hover)))
}

fn of_text(
    engine: &Engine,
    analysed: &Analysed,
    byte: usize,
    beside: bool,
    cancel: &Cancel,
) -> Option<(Range<usize>, String)> {
    match render::hover::at(analysed, byte, beside)? {
        At::Line(bytes, value) => Some((bytes, value)),
        At::Kernel(bytes, name) => {
            let page = render::page::of(engine, analysed, &name, markdown::summary, cancel);
            Some((bytes, page.ok()?))
        }
    }
}

fn launch(
    engine: &Engine,
    analysed: &Analysed,
    byte: usize,
    beside: bool,
    cancel: &Cancel,
) -> Option<(Range<usize>, String)> {
    if render::hover::is_in_kernel(analysed, byte) {
        return None;
    }
    let found = engine.launch_at(
        &analysed.document,
        &analysed.path,
        &analysed.effective.settings,
        &analysed.effective.overrides,
        byte,
        cancel,
    )?;
    let trial = Trial::of(
        engine,
        analysed,
        &found.kernel,
        Some(found.variant),
        None,
        cancel,
    )?;
    let launch = render::launch::markdown(&trial);
    let value = render::hover::launch(analysed, &found.range, &launch, beside.then_some(byte));
    Some((found.range, value))
}

fn shown(session: &Session, (range, markdown): (TextRange, String)) -> Hover {
    Hover {
        contents: HoverContents::Markup(super::markup(session.peer(), &markdown)),
        range: Some(range),
    }
}
