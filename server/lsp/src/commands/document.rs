//! The document that a command names.

use std::str::FromStr;
use std::sync::Arc;

use tower_lsp_server::jsonrpc::Result;
use tower_lsp_server::ls_types::Uri;

use crate::documents::Analysed;
use crate::requests::invalid;
use crate::session::Session;

/// The analysis of an open document's current text.
pub async fn analysed(session: &Arc<Session>, uri: &str) -> Result<Arc<Analysed>> {
    let snapshot = session.snapshot(&self::uri(uri)?);
    let snapshot = snapshot.ok_or_else(|| invalid(format!("{uri} is not open")))?;
    let analysed = session.analysed(snapshot).await;
    analysed.ok_or_else(|| invalid(format!("{uri} has no kernels to analyse")))
}

/// Parses a document's URI.
pub fn uri(text: &str) -> Result<Uri> {
    Uri::from_str(text).map_err(|error| invalid(format!("`{text}` is not a URI: {error}")))
}
