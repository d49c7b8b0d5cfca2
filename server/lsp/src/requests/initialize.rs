//! `initialize`

use std::borrow::Cow;
use std::sync::Arc;

use tower_lsp_server::ls_types::{
    CodeActionKind, CodeActionOptions, CodeActionProviderCapability, CodeLensOptions,
    DiagnosticOptions, DiagnosticServerCapabilities, ExecuteCommandOptions, FileOperationFilter,
    FileOperationPattern, FileOperationPatternKind, FileOperationRegistrationOptions,
    HoverProviderCapability, InitializeParams, InitializeResult, InlayHintOptions,
    InlayHintServerCapabilities, OneOf, SaveOptions, ServerCapabilities, ServerInfo,
    TextDocumentSyncCapability, TextDocumentSyncKind, TextDocumentSyncOptions,
    TextDocumentSyncSaveOptions, WorkDoneProgressOptions,
    WorkspaceFileOperationsServerCapabilities, WorkspaceFoldersServerCapabilities,
    WorkspaceServerCapabilities,
};

use crate::commands;
use crate::peer::Peer;
use crate::requests::code_action::FIX_ALL;
use crate::session::Session;

pub fn handle(session: &Arc<Session>, params: &InitializeParams) -> InitializeResult {
    let peer = Peer::new(&params.capabilities);
    session.parent.send_replace(params.process_id);
    session.trace.set(params.trace.unwrap_or_default());
    {
        let mut state = session.state();
        state.folders = folders(params);
        state
            .editor
            .set_initial(params.initialization_options.as_ref());
    }
    session.check_editor_settings();
    let capabilities = capabilities(&peer);
    session.set_peer(peer);
    InitializeResult {
        capabilities,
        server_info: Some(ServerInfo {
            name: "warplens".to_owned(),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        }),
        offset_encoding: None,
    }
}

/// The workspace's folders, or what older clients call its root.
fn folders(params: &InitializeParams) -> Vec<std::path::PathBuf> {
    let folders = params.workspace_folders.iter().flatten();
    let folders: Vec<_> = folders
        .filter_map(|folder| folder.uri.to_file_path().map(Cow::into_owned))
        .collect();
    if !folders.is_empty() {
        return folders;
    }
    #[expect(deprecated, reason = "what clients without workspace folders send")]
    let root = params.root_uri.as_ref();
    root.and_then(|uri| uri.to_file_path().map(Cow::into_owned))
        .into_iter()
        .collect()
}

/// Requests whose work is shown where it takes long.
const SHOWN: WorkDoneProgressOptions = WorkDoneProgressOptions {
    work_done_progress: Some(true),
};

/// What we want to know the new names of: sources, headers, settings, and folders that may hold some.
fn renamed() -> Vec<FileOperationFilter> {
    let filter = |glob: &str, matches| FileOperationFilter {
        scheme: Some("file".to_owned()),
        pattern: FileOperationPattern {
            glob: glob.to_owned(),
            matches: Some(matches),
            options: None,
        },
    };
    vec![
        filter(
            "**/*.{cu,cuh,hip,cl,clh,c,cc,cpp,cxx,h,hpp,hh,hxx,inc,inl,ipp,tcc,toml,json}",
            FileOperationPatternKind::File,
        ),
        filter("**", FileOperationPatternKind::Folder),
    ]
}

fn capabilities(peer: &Peer) -> ServerCapabilities {
    ServerCapabilities {
        position_encoding: Some(peer.encoding.kind()),
        text_document_sync: Some(TextDocumentSyncCapability::Options(
            TextDocumentSyncOptions {
                open_close: Some(true),
                change: Some(TextDocumentSyncKind::INCREMENTAL),
                save: Some(TextDocumentSyncSaveOptions::SaveOptions(SaveOptions {
                    include_text: Some(false),
                })),
                ..TextDocumentSyncOptions::default()
            },
        )),
        // Pulled where the client can, else pushed; never both.
        diagnostic_provider: peer.pulls.then(|| {
            DiagnosticServerCapabilities::Options(DiagnosticOptions {
                identifier: Some("warplens".to_owned()),
                // A warplens.toml changes the reports of other documents.
                inter_file_dependencies: true,
                workspace_diagnostics: false,
                ..DiagnosticOptions::default()
            })
        }),
        inlay_hint_provider: Some(OneOf::Right(InlayHintServerCapabilities::Options(
            InlayHintOptions {
                resolve_provider: Some(true),
                ..InlayHintOptions::default()
            },
        ))),
        code_lens_provider: Some(CodeLensOptions {
            resolve_provider: Some(false),
        }),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        code_action_provider: Some(CodeActionProviderCapability::Options(CodeActionOptions {
            code_action_kinds: Some(vec![
                CodeActionKind::QUICKFIX,
                CodeActionKind::REFACTOR_REWRITE,
                CodeActionKind::new(FIX_ALL),
            ]),
            resolve_provider: Some(true),
            work_done_progress_options: SHOWN,
        })),
        execute_command_provider: Some(ExecuteCommandOptions {
            commands: commands::NAMES
                .iter()
                .map(|name| (*name).to_owned())
                .collect(),
            work_done_progress_options: SHOWN,
        }),
        workspace: Some(WorkspaceServerCapabilities {
            workspace_folders: Some(WorkspaceFoldersServerCapabilities {
                supported: Some(true),
                change_notifications: Some(OneOf::Left(true)),
            }),
            file_operations: Some(WorkspaceFileOperationsServerCapabilities {
                did_rename: Some(FileOperationRegistrationOptions { filters: renamed() }),
                ..WorkspaceFileOperationsServerCapabilities::default()
            }),
        }),
        ..ServerCapabilities::default()
    }
}
