//! `workspace/executeCommand`

use std::sync::Arc;

use serde_json::Value;
use tower_lsp_server::jsonrpc::Result;
use tower_lsp_server::ls_types::{ExecuteCommandParams, LSPAny};

use crate::commands;
use crate::long_work;
use crate::requests::invalid;
use crate::session::Session;

pub async fn handle(session: &Arc<Session>, params: ExecuteCommandParams) -> Result<LSPAny> {
    let argument = params.arguments.into_iter().next().unwrap_or(Value::Null);
    let token = params.work_done_progress_params.work_done_token;
    let title = commands::title(&params.command);
    long_work::with(
        session,
        title,
        token,
        run(session, &params.command, argument),
    )
    .await
}

async fn run(session: &Arc<Session>, command: &str, argument: Value) -> Result<LSPAny> {
    match command {
        commands::SELECT_GPU => commands::select_gpu::run(session, argument).await,
        commands::SET_LAUNCH => commands::set_launch::run(session, argument),
        commands::SET_RUN => commands::set_run::run(session, argument),
        commands::TRY_LAUNCH => commands::try_launch::run(session, argument).await,
        commands::NEXT_LAUNCH => commands::next_launch::run(session, argument).await,
        commands::PIN => commands::pin::run(session, argument).await,
        commands::ESTIMATE => commands::estimate::run(session, argument).await,
        commands::BREAKDOWN => commands::breakdown::run(session, argument).await,
        commands::COMPARE_GPUS => commands::compare_gpus::run(session, argument).await,
        commands::COMPARE_KERNELS => commands::compare_kernels::run(session, argument).await,
        commands::KERNELS => commands::kernels::run(session).await,
        commands::FIXES => commands::fixes::run(session, argument).await,
        commands::TARGET => commands::target::run(session, argument).await,
        commands::REPORT => commands::report::run(session, argument).await,
        commands::PROGRAM => commands::program::run(session, argument).await,
        commands::GRAPH => commands::graph::run(session, argument).await,
        commands::HEAT => commands::heat::run(session, argument).await,
        commands::LANES => commands::lanes::run(session, argument).await,
        commands::WHAT_WOULD_HELP => commands::what_would_help::run(session, argument).await,
        unknown => Err(invalid(format!(
            "there is no command `{unknown}`; there are {}",
            commands::NAMES.join(", ")
        ))),
    }
}
