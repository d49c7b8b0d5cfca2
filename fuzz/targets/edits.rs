//! A session: edits with questions between them, and all of them undone. At the end everything shown must be what a
//! session that opens the text shows. What is shown of a text that stays broken may depend on how it came about: where the
//! grammar takes up again behind an error, the tree before it has a say.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use serde_json::json;
use tokio::runtime::Runtime;
use warplens_fuzz::client::{Client, position};
use warplens_fuzz::{Case, Edit, edit};
use warplens_syntax::Document;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
});

/// Bytes of the script for one edit, and edits of one session.
const STEP: usize = 5;
const MOST_EDITS: usize = 24;

fuzz_target!(|bytes: &[u8]| {
    RUNTIME.block_on(session(&Case::read(bytes)));
});

async fn session(case: &Case) {
    let mut text = case.text.clone();
    let mut client = Client::open(case.name(), &text).await;
    let mut asked = Vec::new();
    let mut undo: Vec<Edit> = Vec::new();
    for step in case.script.chunks(STEP).take(MOST_EDITS) {
        let edit = edit(&text, step);
        client.edit(&text, &edit).await;
        undo.push(Edit {
            start: edit.start,
            end: edit.start + edit.piece.len(),
            piece: text[edit.start..edit.end].to_owned(),
        });
        text.replace_range(edit.start..edit.end, &edit.piece);
        let document = client.document();
        let place = position(&text, edit.start);
        let range = json!({"start": place, "end": place});
        let id = match step[0] >> 4 {
            0 | 1 => {
                client
                    .request(
                        "textDocument/hover",
                        json!({"textDocument": document, "position": place}),
                    )
                    .await
            }
            2 => {
                client
                    .request(
                        "textDocument/inlayHint",
                        json!({"textDocument": document, "range": range}),
                    )
                    .await
            }
            3 => {
                client
                    .request("textDocument/codeLens", json!({"textDocument": document}))
                    .await
            }
            4 => {
                let context = json!({"diagnostics": []});
                let params = json!({"textDocument": document, "range": range, "context": context});
                client.request("textDocument/codeAction", params).await
            }
            5 => {
                client
                    .request("textDocument/diagnostic", json!({"textDocument": document}))
                    .await
            }
            _ => continue,
        };
        asked.push(id);
    }
    for id in asked {
        client.answer(id).await;
    }
    client.shown().await;
    // Where CR and LF have met no editor could undo what parted them.
    let parted = text.contains('\r');
    while let Some(edit) = undo.pop() {
        client.edit(&text, &edit).await;
        text.replace_range(edit.start..edit.end, &edit.piece);
    }
    let edited = client.shown().await;
    client.finish().await;
    let document = Document::new(&text, case.language);
    if parted || document.parsed().tree.root_node().has_error() {
        return;
    }
    let mut fresh = Client::open(case.name(), &text).await;
    assert_eq!(edited, fresh.shown().await, "{text}");
    fresh.finish().await;
}
