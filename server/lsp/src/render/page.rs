//! Everything about one kernel, as Markdown.

use std::collections::BTreeMap;

use warplens_db::wire::KernelResult;
use warplens_db::{Cancel, Engine};
use warplens_models::ModelId;
use warplens_report::estimate::missing_headers;
use warplens_report::markdown;

use crate::documents::Analysed;

/// The kernel's page: the launch that is shown, its other launches in a table, and which headers of the file
/// were not found. Several kernels may share a name: each gets a section. Runs every model, simulating ones too, unless
/// `cancel` trips. The error is one line.
pub fn of(
    engine: &Engine,
    analysed: &Analysed,
    kernel: &str,
    lay_out: fn(&KernelResult) -> String,
    cancel: &Cancel,
) -> Result<String, String> {
    analysed.simulate(Some(kernel), &ModelId::ALL, cancel);
    let mut document = engine.estimate(
        &analysed.document,
        &analysed.path,
        &analysed.effective.settings,
        &analysed.effective.overrides,
        &[],
        &[],
        &[kernel.to_owned()],
    )?;
    engine.add_help(
        &analysed.document,
        &analysed.path,
        &analysed.effective.settings,
        &analysed.effective.overrides,
        &mut document,
    );
    let mut kernels: BTreeMap<u32, Vec<&KernelResult>> = BTreeMap::new();
    for result in &document.results {
        kernels.entry(result.line).or_default().push(result);
    }
    let parts: Vec<String> = kernels
        .values()
        .flat_map(|launches| {
            launches
                .iter()
                .filter(|one| is_shown(analysed, one))
                .map(|result| {
                    let others = markdown::launches(launches, result.variant.number);
                    format!("{}{others}", lay_out(result))
                })
        })
        .collect();
    if parts.is_empty() {
        return Err(format!("there is no kernel `{kernel}` in this file"));
    }
    let mut page = parts.join("\n---\n\n");
    if !document.missing_includes.is_empty() {
        page.push_str("\n---\n\n");
        page.push_str(&missing_headers(&document.missing_includes));
        page.push('\n');
    }
    Ok(page)
}

/// True for the launch of a kernel that its hints, lens and diagnostics are about.
pub fn is_shown(analysed: &Analysed, result: &KernelResult) -> bool {
    let rope = analysed.document.rope();
    analysed.file.kernels.iter().any(|placed| {
        let name = placed.place(placed.analysis.name_site.span).start;
        placed.analysis.facts.name == result.kernel
            && rope.byte_to_line(name.min(rope.len_bytes())) as u32 + 1 == result.line
            && (placed.set.is_some() || placed.variant == result.variant.at)
    })
}
