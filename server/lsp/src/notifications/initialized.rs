//! `initialized`

use std::sync::Arc;

use serde_json::json;
use tower_lsp_server::ls_types::{ConfigurationItem, Registration};

use crate::configuration;
use crate::session::Session;

/// Headers, kernels and host programs, by their extensions.
const SOURCES: &str = "*.{cu,cuh,hip,cl,clh,opencl,c,cc,cpp,cxx,h,hpp,hh,hxx,inc,inl,ipp,tcc}";
/// What says how a program is compiled and started.
const BUILDS: &str = "{compile_commands.json,GNUmakefile,makefile,Makefile,CMakeLists.txt,run.sh,README,README.md,README.txt}";

/// Requests from the client what `initialize` does not carry. Each request is a task of its own: a client
/// that never answers costs nothing but the answer.
pub fn handle(session: &Arc<Session>) {
    let peer = session.peer();
    let mut wanted = Vec::new();
    if peer.registers_watchers {
        let watched = [configuration::FILE_NAME, BUILDS, SOURCES];
        let watchers = watched.map(|name| json!({"globPattern": format!("**/{name}")}));
        wanted.push(Registration {
            id: "watched-files".to_owned(),
            method: "workspace/didChangeWatchedFiles".to_owned(),
            register_options: Some(json!({"watchers": watchers})),
        });
    }
    if peer.registers_configuration {
        wanted.push(Registration {
            id: "settings".to_owned(),
            method: "workspace/didChangeConfiguration".to_owned(),
            register_options: Some(json!({"section": "warplens"})),
        });
    }
    if !wanted.is_empty() {
        session.spawn_with_client(|client, _| async move {
            if let Err(error) = client.register_capability(wanted).await {
                tracing::warn!("the client refused a registration: {error}");
            }
        });
    }
    if peer.configuration {
        pull_configuration(session);
    }
}

/// Requests the settings section and applies the response when it arrives.
pub fn pull_configuration(session: &Arc<Session>) {
    session.spawn_with_client(|client, session| async move {
        let section = ConfigurationItem {
            scope_uri: None,
            section: Some("warplens".to_owned()),
        };
        match client.configuration(vec![section]).await {
            Ok(values) => {
                session.change_editor_settings(|editor| editor.set_answer(values.first()));
            }
            Err(error) => tracing::warn!("the client did not send its settings: {error}"),
        }
    });
}
