//! The protocol's methods, each handed to its own file.

use std::future::{Ready, ready};
use std::sync::Arc;

use tower_lsp_server::LanguageServer;
use tower_lsp_server::jsonrpc::Result;
use tower_lsp_server::ls_types::{
    CodeAction, CodeActionParams, CodeActionResponse, CodeLens, CodeLensParams,
    DidChangeConfigurationParams, DidChangeTextDocumentParams, DidChangeWatchedFilesParams,
    DidChangeWorkspaceFoldersParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams,
    DidSaveTextDocumentParams, DocumentDiagnosticParams, DocumentDiagnosticReportResult,
    ExecuteCommandParams, Hover, HoverParams, InitializeParams, InitializeResult,
    InitializedParams, InlayHint, InlayHintParams, LSPAny, RenameFilesParams, SetTraceParams,
    WorkDoneProgressCancelParams,
};

use crate::session::Session;
use crate::{notifications, requests};

/// The server as the framework sees it.
#[derive(Debug)]
pub struct Server(pub Arc<Session>);

impl Server {
    /// `$/setTrace`
    pub fn set_trace(&self, SetTraceParams { value }: SetTraceParams) -> Ready<()> {
        self.0.trace.set(value);
        ready(())
    }

    /// `window/workDoneProgress/cancel`
    pub fn work_done_progress_cancel(
        &self,
        WorkDoneProgressCancelParams { token }: WorkDoneProgressCancelParams,
    ) -> Ready<()> {
        self.0.progress.cancel(&token);
        ready(())
    }
}

impl LanguageServer for Server {
    async fn initialize(&self, params: InitializeParams) -> Result<InitializeResult> {
        Ok(requests::initialize::handle(&self.0, &params))
    }

    async fn initialized(&self, _: InitializedParams) {
        notifications::initialized::handle(&self.0);
    }

    async fn shutdown(&self) -> Result<()> {
        requests::shutdown::handle(&self.0);
        Ok(())
    }

    async fn did_open(&self, params: DidOpenTextDocumentParams) {
        notifications::did_open::handle(&self.0, params);
    }

    async fn did_change(&self, params: DidChangeTextDocumentParams) {
        notifications::did_change::handle(&self.0, params);
    }

    async fn did_save(&self, params: DidSaveTextDocumentParams) {
        notifications::did_save::handle(&self.0, &params);
    }

    async fn did_close(&self, params: DidCloseTextDocumentParams) {
        notifications::did_close::handle(&self.0, &params);
    }

    async fn did_change_configuration(&self, params: DidChangeConfigurationParams) {
        notifications::did_change_configuration::handle(&self.0, &params);
    }

    async fn did_change_watched_files(&self, params: DidChangeWatchedFilesParams) {
        notifications::did_change_watched_files::handle(&self.0, &params);
    }

    async fn did_change_workspace_folders(&self, params: DidChangeWorkspaceFoldersParams) {
        notifications::did_change_workspace_folders::handle(&self.0, &params);
    }

    async fn did_rename_files(&self, params: RenameFilesParams) {
        notifications::did_rename_files::handle(&self.0, &params);
    }

    async fn diagnostic(
        &self,
        params: DocumentDiagnosticParams,
    ) -> Result<DocumentDiagnosticReportResult> {
        requests::diagnostic::handle(&self.0, params).await
    }

    async fn hover(&self, params: HoverParams) -> Result<Option<Hover>> {
        requests::hover::handle(&self.0, params).await
    }

    async fn inlay_hint(&self, params: InlayHintParams) -> Result<Option<Vec<InlayHint>>> {
        requests::inlay_hint::handle(&self.0, params).await
    }

    async fn inlay_hint_resolve(&self, hint: InlayHint) -> Result<InlayHint> {
        requests::inlay_hint_resolve::handle(&self.0, hint).await
    }

    async fn code_lens(&self, params: CodeLensParams) -> Result<Option<Vec<CodeLens>>> {
        requests::code_lens::handle(&self.0, params).await
    }

    async fn code_action(&self, params: CodeActionParams) -> Result<Option<CodeActionResponse>> {
        requests::code_action::handle(&self.0, params).await
    }

    async fn code_action_resolve(&self, action: CodeAction) -> Result<CodeAction> {
        requests::code_action_resolve::handle(&self.0, action).await
    }

    async fn execute_command(&self, params: ExecuteCommandParams) -> Result<Option<LSPAny>> {
        requests::execute_command::handle(&self.0, params)
            .await
            .map(Some)
    }
}
