//! What the client can do, read once from its `initialize`.

use std::collections::HashSet;

use serde_json::Value;
use tower_lsp_server::ls_types::{ClientCapabilities, MarkupKind};

use crate::position::Encoding;

/// The client's abilities, as far as we use them.
#[derive(Debug, Clone)]
pub struct Peer {
    /// What columns count.
    pub encoding: Encoding,
    /// It pulls diagnostics, so they are never pushed.
    pub pulls: bool,
    /// A pulled report may carry those of other documents.
    pub related_documents: bool,
    /// It answers `workspace/configuration`.
    pub configuration: bool,
    /// It lets us register for changes of settings.
    pub registers_configuration: bool,
    /// It lets us register for changes of files.
    pub registers_watchers: bool,
    /// It supports `workspace/inlayHint/refresh`.
    pub refreshes_hints: bool,
    /// The same for code lenses.
    pub refreshes_lenses: bool,
    /// The same for diagnostics.
    pub refreshes_diagnostics: bool,
    /// It takes edits that name the version they are for.
    pub versioned_edits: bool,
    /// It resolves an action's edit when the user chooses it.
    pub resolves_edits: bool,
    /// It resolves a hint's tooltip when the mouse hovers over it.
    pub resolves_tooltips: bool,
    /// It shows work that the server names.
    pub shows_progress: bool,
    /// It shows Markdown in hovers.
    pub markdown: bool,
    /// Its hovers show the diagnostics under the mouse beside what we say (`experimental.hoverShowsDiagnostics`).
    pub hover_shows_diagnostics: bool,
    /// Commands of the client that a lens may use (`experimental.commands`).
    pub commands: HashSet<String>,
}

impl Default for Peer {
    fn default() -> Peer {
        Peer::new(&ClientCapabilities::default())
    }
}

impl Peer {
    /// Reads the capabilities.
    pub fn new(client: &ClientCapabilities) -> Peer {
        let text = client.text_document.as_ref();
        let workspace = client.workspace.as_ref();
        let pull = text.and_then(|text| text.diagnostic.as_ref());
        let hover = text.and_then(|text| text.hover.as_ref());
        let encodings = client
            .general
            .as_ref()
            .and_then(|all| all.position_encodings.as_deref());
        Peer {
            encoding: Encoding::negotiate(encodings),
            pulls: pull.is_some(),
            related_documents: pull.and_then(|pull| pull.related_document_support) == Some(true),
            configuration: workspace.and_then(|all| all.configuration) == Some(true),
            registers_configuration: workspace
                .and_then(|all| all.did_change_configuration.as_ref()?.dynamic_registration)
                == Some(true),
            registers_watchers: workspace
                .and_then(|all| all.did_change_watched_files.as_ref()?.dynamic_registration)
                == Some(true),
            refreshes_hints: workspace.and_then(|all| all.inlay_hint.as_ref()?.refresh_support)
                == Some(true),
            refreshes_lenses: workspace.and_then(|all| all.code_lens.as_ref()?.refresh_support)
                == Some(true),
            refreshes_diagnostics: workspace
                .and_then(|all| all.diagnostics.as_ref()?.refresh_support)
                == Some(true),
            versioned_edits: workspace
                .and_then(|all| all.workspace_edit.as_ref()?.document_changes)
                == Some(true),
            resolves_edits: resolves_edits(client),
            resolves_tooltips: text
                .and_then(|text| text.inlay_hint.as_ref()?.resolve_support.as_ref())
                .is_some_and(|later| later.properties.iter().any(|one| one == "tooltip")),
            shows_progress: client
                .window
                .as_ref()
                .and_then(|all| all.work_done_progress)
                == Some(true),
            markdown: hover
                .and_then(|hover| hover.content_format.as_ref())
                .is_none_or(|formats| formats.contains(&MarkupKind::Markdown)),
            hover_shows_diagnostics: client
                .experimental
                .as_ref()
                .and_then(|all| all.get("hoverShowsDiagnostics")?.as_bool())
                == Some(true),
            commands: commands(client.experimental.as_ref()),
        }
    }

    /// Diagnostics are pushed to it.
    pub fn pushes(&self) -> bool {
        !self.pulls
    }
}

/// True for a client that resolves the edits of actions from their `data`.
fn resolves_edits(client: &ClientCapabilities) -> bool {
    let action = client
        .text_document
        .as_ref()
        .and_then(|text| text.code_action.as_ref());
    action.is_some_and(|action| {
        let later = action.resolve_support.as_ref();
        action.data_support == Some(true)
            && later.is_some_and(|later| later.properties.iter().any(|one| one == "edit"))
    })
}

/// `experimental.commands`: a list of names, or an object that holds one.
fn commands(experimental: Option<&Value>) -> HashSet<String> {
    let announced = experimental.and_then(|all| all.get("commands"));
    let list = announced
        .and_then(|announced| announced.get("commands"))
        .or(announced);
    list.and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect()
}
