//! What the user does not want to see: `allow` directives and rule levels.

use std::cell::OnceCell;

use warplens_advice::{Severity, State};
use warplens_syntax::{Directive, DirectiveKind};

use crate::settings::{RuleLevel, Scalar, Settings};
use crate::{PlacedFinding, PlacedKernel};

/// The directive's own findings: one that silences nothing, one that is not understood.
const UNUSED: &str = "config/unused-suppression";
const WRONG: &str = "config/invalid";

pub(crate) fn apply(
    findings: &mut Vec<PlacedFinding>,
    directives: &[Directive],
    text: &str,
    settings: &Settings,
    ignored: bool,
) {
    let lines = OnceCell::new();
    let line_of = |byte| lines.get_or_init(|| line_index(text))(byte);
    let mut extra = Vec::new();
    for directive in directives {
        match &directive.kind {
            DirectiveKind::Allow(rules) => {
                let line = directive.line;
                let before = findings.len();
                findings.retain(|finding| {
                    let at = line_of(finding.range.start);
                    let here = at == line || (directive.alone && at == line + 1);
                    !(here && finding.severity != Severity::Error && matches(rules, finding.rule))
                });
                // A rule that is not enabled was not looked for: what would silence it has its use where it is.
                let looked = rules.iter().all(|rule| is_enabled(rule, settings));
                if findings.len() == before && looked && !ignored {
                    extra.push(own(
                        directive,
                        UNUSED,
                        Severity::Hint,
                        format!("nothing to silence here for {}", rules.join(", ")),
                    ));
                }
            }
            DirectiveKind::Wrong(why) => {
                extra.push(own(directive, WRONG, Severity::Warning, why.clone()));
            }
            DirectiveKind::Values(_) | DirectiveKind::IgnoreFile | DirectiveKind::Slower(_) => {}
        }
    }
    findings.append(&mut extra);
    findings.retain(|finding| is_enabled(finding.rule, settings));
    findings.retain_mut(|finding| {
        let category = finding.rule.split('/').next().unwrap_or(finding.rule);
        let level = settings
            .rules
            .get(finding.rule)
            .or_else(|| settings.rules.get(category));
        match level {
            None | Some(RuleLevel::Warning) => true,
            Some(RuleLevel::Off) => finding.severity == Severity::Error,
            Some(RuleLevel::Information) => {
                finding.severity = cap(finding.severity, Severity::Information);
                true
            }
            Some(RuleLevel::Hint) => {
                finding.severity = cap(finding.severity, Severity::Hint);
                true
            }
        }
    });
}

/// False for a rule that is a preview and not enabled by name.
pub(crate) fn is_enabled(rule: &str, settings: &Settings) -> bool {
    settings.preview
        || settings.rules.contains_key(rule)
        || warplens_advice::find(rule).is_none_or(|rule| rule.state == State::Stable)
}

/// The previews that are enabled by name: what is kept of a kernel depends on them.
pub(crate) fn on_trial(settings: &Settings) -> Vec<&'static str> {
    let rules = warplens_advice::catalogue().iter();
    let asked = |rule: &str| settings.preview || settings.rules.contains_key(rule);
    let tried = rules.filter(|rule| rule.state == State::Preview && asked(rule.id));
    tried.map(|rule| rule.id).collect()
}

/// What a directive can say of any kernel.
const OF_LAUNCHES: [&str; 6] = [
    "block",
    "local",
    "grid",
    "global",
    "dynamic_shared",
    "probability",
];

/// Directives that give values to what their kernel does not have: nothing follows from them.
pub(crate) fn misnamed(directives: &[Directive], kernels: &[PlacedKernel]) -> Vec<PlacedFinding> {
    let mut found = Vec::new();
    for directive in directives {
        let DirectiveKind::Values(values) = &directive.kind else {
            continue;
        };
        let behind = kernels
            .iter()
            .filter(|kernel| kernel.start >= directive.range.end);
        let Some(kernel) = behind.min_by_key(|kernel| kernel.start) else {
            continue;
        };
        let analysis = &kernel.analysis;
        let known = |name: &str| {
            let mut scalars = analysis.scalars.iter();
            let mut bound = analysis.template_args.iter();
            let mut assumed = analysis.facts.assumptions.iter();
            OF_LAUNCHES.contains(&name)
                || name.contains('.')
                || scalars.any(|known| known == name)
                || bound.any(|(known, _)| known == name)
                || assumed.any(|known| known.symbol.is_named(name))
        };
        for (name, value) in values {
            let why = if !known(name) {
                let scalars: Vec<String> =
                    analysis.scalars.iter().map(|n| format!("`{n}`")).collect();
                let has = match scalars.len() {
                    0 => "it has no scalar parameters".to_owned(),
                    _ => format!("its scalar parameters are {}", scalars.join(", ")),
                };
                format!("`{}` has no parameter `{name}`; {has}", analysis.facts.name)
            } else if analysis.scalars.contains(name)
                && Scalar::parse(value.trim_end_matches(',')).is_err()
            {
                format!("`{value}` is no number, so `{name}` is not known")
            } else {
                continue;
            };
            found.push(own(directive, WRONG, Severity::Warning, why));
        }
    }
    found
}

fn own(
    directive: &Directive,
    rule: &'static str,
    severity: Severity,
    message: String,
) -> PlacedFinding {
    PlacedFinding {
        rule,
        severity,
        range: directive.range.clone(),
        message,
        details: Vec::new(),
        gain: 1.0,
        related: Vec::new(),
        callee: None,
        kernel: None,
    }
}

fn matches(rules: &[String], rule: &str) -> bool {
    rules.iter().any(|of| {
        rule == of
            || rule
                .strip_prefix(of.as_str())
                .is_some_and(|rest| rest.starts_with('/'))
    })
}

/// The 0-based line of a byte.
fn line_index(text: &str) -> impl Fn(usize) -> u32 {
    let starts: Vec<usize> = std::iter::once(0)
        .chain(text.match_indices('\n').map(|(at, _)| at + 1))
        .collect();
    move |byte| {
        starts
            .partition_point(|&start| start <= byte)
            .saturating_sub(1) as u32
    }
}

/// Severity by its name in settings.
fn cap(severity: Severity, most: Severity) -> Severity {
    if severity == Severity::Error {
        severity
    } else {
        severity.min(most)
    }
}
