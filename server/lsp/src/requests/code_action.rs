//! `textDocument/codeAction`

use std::ops::Range;
use std::sync::Arc;

use tower_lsp_server::jsonrpc::Result;
use tower_lsp_server::ls_types::{
    CodeAction, CodeActionContext, CodeActionKind, CodeActionOrCommand, CodeActionParams,
    CodeActionResponse, Diagnostic, NumberOrString,
};
use warplens_engine::{PlacedFinding, Severity};

use crate::convert;
use crate::documents::Analysed;
use crate::peer::Peer;
use crate::session::Session;

/// Fixes, each proved by the engine on a copy, and for each finding one to silence it.
pub async fn handle(
    session: &Arc<Session>,
    params: CodeActionParams,
) -> Result<Option<CodeActionResponse>> {
    let Some(snapshot) = session.snapshot(&params.text_document.uri) else {
        return Ok(None);
    };
    let (quick, rewrite) = wanted(&params.context);
    if !quick && !rewrite {
        return Ok(Some(Vec::new()));
    }
    let bytes = session
        .peer()
        .encoding
        .to_bytes(snapshot.rope(), params.range);
    let Some(analysed) = session.analysed(snapshot).await else {
        return Ok(None);
    };
    let asker = session.clone();
    let actions = session
        .ask(move |_| {
            let peer = asker.peer();
            let diagnostics = &params.context.diagnostics;
            let kind = if quick {
                CodeActionKind::QUICKFIX
            } else {
                CodeActionKind::REFACTOR_REWRITE
            };
            let fixes = asker.engine().fixes(
                &analysed.document,
                &analysed.path,
                &analysed.effective.settings,
                &analysed.effective.overrides,
                bytes.clone(),
            );
            let fixes = fixes.into_iter().map(|fix| CodeAction {
                title: fix.title,
                kind: Some(kind.clone()),
                diagnostics: about(diagnostics, fix.rule),
                edit: Some(convert::workspace_edit(&analysed, &fix.edits, peer)),
                is_preferred: fix.preferred.then_some(true),
                ..CodeAction::default()
            });
            let mut actions: Vec<CodeAction> = fixes.collect();
            if quick {
                actions.extend(silencing(&analysed, &bytes, diagnostics, peer));
            }
            actions
                .into_iter()
                .map(CodeActionOrCommand::CodeAction)
                .collect()
        })
        .await?;
    Ok(Some(actions))
}

/// Which kinds are asked for: quick fixes, rewrites. A fix is offered as the one that is wanted.
fn wanted(context: &CodeActionContext) -> (bool, bool) {
    let Some(only) = context.only.as_ref().filter(|only| !only.is_empty()) else {
        return (true, false);
    };
    let asks = |kind: &str| {
        only.iter().any(|asked| {
            let rest = kind.strip_prefix(asked.as_str());
            rest.is_some_and(|rest| {
                asked.as_str().is_empty() || rest.is_empty() || rest.starts_with('.')
            })
        })
    };
    (asks("quickfix"), asks("refactor.rewrite"))
}

/// The client's diagnostics that are about this rule.
fn about(diagnostics: &[Diagnostic], rule: &str) -> Option<Vec<Diagnostic>> {
    let code = Some(NumberOrString::String(rule.to_owned()));
    let about: Vec<_> = diagnostics
        .iter()
        .filter(|one| one.code == code)
        .cloned()
        .collect();
    (!about.is_empty()).then_some(about)
}

/// An action for each rule that found something here: a comment that silences it at this line.
fn silencing(
    analysed: &Analysed,
    bytes: &Range<usize>,
    diagnostics: &[Diagnostic],
    peer: &Peer,
) -> Vec<CodeAction> {
    let mut actions: Vec<CodeAction> = Vec::new();
    let here = |finding: &&PlacedFinding| {
        finding.range.start <= bytes.end
            && bytes.start <= finding.range.end
            // What cannot work is not silenced by a click.
            && finding.severity < Severity::Error
    };
    for finding in analysed.file.findings.iter().filter(here) {
        let title = format!("Silence {} here", finding.rule);
        if actions.iter().any(|known| known.title == title) {
            continue;
        }
        let Some(edit) = silence(analysed, finding) else {
            continue;
        };
        actions.push(CodeAction {
            title,
            kind: Some(CodeActionKind::QUICKFIX),
            diagnostics: about(diagnostics, finding.rule),
            edit: Some(convert::workspace_edit(analysed, &[edit], peer)),
            ..CodeAction::default()
        });
    }
    actions
}

/// The edit: a comment on a line of its own above, indented alike. `None` inside a macro's continued lines,
/// where a comment would end the macro.
fn silence(analysed: &Analysed, finding: &PlacedFinding) -> Option<(Range<usize>, String)> {
    let rope = analysed.document.rope();
    let line = rope.byte_to_line(finding.range.start.min(rope.len_bytes()));
    let start = rope.line_to_byte(line);
    let text = rope.line(line).to_string();
    let above = line
        .checked_sub(1)
        .map(|above| rope.line(above).to_string())
        .unwrap_or_default();
    if above.trim_end().ends_with('\\') {
        return None;
    }
    let comment = format!("// warplens: allow({})", finding.rule);
    let end_mark = if text.ends_with("\r\n") { "\r\n" } else { "\n" };
    if above.contains("warplens: allow(")
        && !text.contains("//")
        && !text.trim_end().ends_with('\\')
    {
        // A second comment above would push the first away from its line.
        let end = start + text.trim_end().len();
        return Some((end..end, format!(" {comment}")));
    }
    let indent: String = text
        .chars()
        .take_while(|c| matches!(c, ' ' | '\t'))
        .collect();
    Some((start..start, format!("{indent}{comment}{end_mark}")))
}
