//! `textDocument/codeAction`

use std::ops::Range;
use std::sync::Arc;

use tower_lsp_server::jsonrpc::Result;
use tower_lsp_server::ls_types::{
    CodeAction, CodeActionContext, CodeActionKind, CodeActionOrCommand, CodeActionParams,
    CodeActionResponse, Diagnostic, NumberOrString,
};
use warplens_db::{PlacedFinding, PlacedFix, Severity, first_word};
use warplens_report::style::printable;

use crate::convert;
use crate::directive;
use crate::documents::Analysed;
use crate::long_work;
use crate::peer::Peer;
use crate::requests::code_action_resolve::{FixAllData, edit};
use crate::session::Session;

/// Everything that is offered in a file, at once.
pub const FIX_ALL: &str = "source.fixAll.warplens";

/// Fixes, each proved by the engine on a copy, and for each finding one to silence it.
pub async fn handle(
    session: &Arc<Session>,
    params: CodeActionParams,
) -> Result<Option<CodeActionResponse>> {
    let Some(snapshot) = session.snapshot(&params.text_document.uri) else {
        return Ok(None);
    };
    let RequestedKinds {
        quick,
        rewrite,
        all,
    } = wanted(&params.context);
    if !quick && !rewrite && !all {
        return Ok(Some(Vec::new()));
    }
    let bytes = session
        .peer()
        .encoding
        .to_bytes(snapshot.rope(), params.range);
    let Some(analysed) = session.analysed(snapshot).await else {
        return Ok(None);
    };
    let shared = session.clone();
    let token = params.work_done_progress_params.work_done_token.clone();
    let work = session.run(move |_| {
        let peer = shared.peer();
        let diagnostics = &params.context.diagnostics;
        let kind = if quick {
            CodeActionKind::QUICKFIX
        } else {
            CodeActionKind::REFACTOR_REWRITE
        };
        let fixes = if quick || rewrite {
            shared.engine().fixes(
                &analysed.document,
                &analysed.path,
                &analysed.effective.settings,
                &analysed.effective.overrides,
                bytes.clone(),
            )
        } else {
            Vec::new()
        };
        let mut actions: Vec<CodeAction> = Vec::new();
        for fix in &fixes {
            actions.push(CodeAction {
                title: printable(&fix.title),
                kind: Some(kind.clone()),
                diagnostics: about(diagnostics, fix.rule),
                edit: Some(convert::workspace_edit(&analysed, &fix.edits, peer)),
                is_preferred: fix.preferred.then_some(true),
                ..CodeAction::default()
            });
        }
        actions.extend(everywhere(&shared, &analysed, &fixes, &kind, diagnostics));
        if all {
            let title = "Make every fix of warplens in this file".to_owned();
            let kind = CodeActionKind::new(FIX_ALL);
            actions.extend(in_the_file(&shared, &analysed, title, kind, None));
        }
        if quick {
            actions.extend(silencing(&analysed, &bytes, diagnostics, peer));
            actions.extend(stating(&analysed, &bytes, peer));
        }
        actions
            .into_iter()
            .map(CodeActionOrCommand::CodeAction)
            .collect()
    });
    let actions = long_work::with(session, "warplens: trying edits", token, work).await?;
    Ok(Some(actions))
}

/// For each kind of fix that is offered here and whose rule has findings elsewhere in the file: the same everywhere.
fn everywhere(
    session: &Arc<Session>,
    analysed: &Analysed,
    fixes: &[PlacedFix],
    kind: &CodeActionKind,
    diagnostics: &[Diagnostic],
) -> Vec<CodeAction> {
    let mut actions: Vec<CodeAction> = Vec::new();
    for fix in fixes {
        let findings = analysed.file.findings.iter();
        if findings.filter(|one| one.rule == fix.rule).count() < 2 {
            continue;
        }
        let word = first_word(&fix.title);
        let title = format!("{word} everywhere in this file ({})", fix.rule);
        if actions.iter().any(|known| known.title == title) {
            continue;
        }
        let of = Some((fix.rule.to_owned(), word.to_owned()));
        let action = in_the_file(session, analysed, title, kind.clone(), of);
        actions.extend(action.map(|action| CodeAction {
            diagnostics: about(diagnostics, fix.rule),
            ..action
        }));
    }
    actions
}

/// An action on the whole file. It carries its edit only where the client does not resolve it later.
fn in_the_file(
    session: &Arc<Session>,
    analysed: &Analysed,
    title: String,
    kind: CodeActionKind,
    of: Option<(String, String)>,
) -> Option<CodeAction> {
    let everywhere = FixAllData {
        uri: analysed.uri.clone(),
        version: analysed.version,
        kind: of,
    };
    let (edit, data) = if session.peer().resolves_edits {
        (None, Some(serde_json::to_value(&everywhere).ok()?))
    } else {
        (Some(edit(session, analysed, &everywhere)?), None)
    };
    Some(CodeAction {
        title,
        kind: Some(kind),
        edit,
        data,
        ..CodeAction::default()
    })
}

/// The kinds of actions that the client requests; fixes are offered under the first of them.
struct RequestedKinds {
    quick: bool,
    rewrite: bool,
    /// `source.fixAll`: only where the client requests it by name, as editors do on save.
    all: bool,
}

fn wanted(context: &CodeActionContext) -> RequestedKinds {
    let Some(only) = context.only.as_ref().filter(|only| !only.is_empty()) else {
        return RequestedKinds {
            quick: true,
            rewrite: false,
            all: false,
        };
    };
    let asks = |kind: &str| {
        only.iter().any(|requested| {
            let rest = kind.strip_prefix(requested.as_str());
            rest.is_some_and(|rest| {
                requested.as_str().is_empty() || rest.is_empty() || rest.starts_with('.')
            })
        })
    };
    RequestedKinds {
        quick: asks("quickfix"),
        rewrite: asks("refactor.rewrite"),
        all: asks(FIX_ALL),
    }
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

/// Where a kernel's time depends on sizes that nothing gives: an action that states them above it, for its writer to correct.
fn stating(analysed: &Analysed, bytes: &Range<usize>, peer: &Peer) -> Vec<CodeAction> {
    let rope = analysed.document.rope();
    let mut actions: Vec<CodeAction> = Vec::new();
    for kernel in &analysed.file.kernels {
        let line = rope.byte_to_line(kernel.start.min(rope.len_bytes()));
        let start = rope.line_to_byte(line);
        let head = start..kernel.place(kernel.analysis.name_site.span).end;
        if bytes.end < head.start || head.end < bytes.start {
            continue;
        }
        let values = kernel.analysis.stand_ins();
        if values.is_empty() {
            continue;
        }
        let names = values.iter().map(|(name, _)| format!("`{name}`"));
        let title = printable(&format!(
            "Set {}… of `{}`: write `{}` above it",
            names.collect::<Vec<_>>().join(", "),
            kernel.analysis.facts.name,
            directive::comment(&values)
        ));
        if actions.iter().any(|known| known.title == title) {
            continue;
        }
        let Some(edit) = directive::stating(rope, line, &values) else {
            continue;
        };
        actions.push(CodeAction {
            title,
            kind: Some(CodeActionKind::QUICKFIX),
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
