//! Everything about one kernel, as Markdown.

use warplens_engine::Engine;
use warplens_engine::wire::KernelResult;

use crate::documents::Analysed;

/// The kernel's page, with one part for each of its launches; the error is one line.
pub fn of(
    engine: &Engine,
    analysed: &Analysed,
    kernel: &str,
    lay_out: fn(&KernelResult) -> String,
) -> Result<String, String> {
    let document = engine.estimate(
        &analysed.document,
        &analysed.path,
        &analysed.effective.settings,
        &analysed.effective.overrides,
        &[],
        &[],
        &[kernel.to_owned()],
    )?;
    let parts: Vec<String> = document.results.iter().map(lay_out).collect();
    if parts.is_empty() {
        return Err(format!("there is no kernel `{kernel}` in this file"));
    }
    Ok(parts.join("\n---\n\n"))
}
