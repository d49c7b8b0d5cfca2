//! Moves a condition out of a loop that is the same in every iteration: the loop is written twice.

use warplens_facts::facts::Site;
use warplens_hir::Semantics;
use warplens_hir::semantics::{Controlled, children};
use warplens_syntax::{Field, Kind, Node};

use crate::fixes::proof::{of_findings, prove};
use crate::fixes::source::{indent, writes};
use crate::fixes::{Fix, Kernel, Request};
use crate::wording::{faster, number, occupancy};

const RULE: &str = "loop/uniform-branch";

/// Lines of a loop that is written twice.
const LONGEST: usize = 12;
/// What does not gain so much is not worth a second loop.
const WORTH: f64 = 1.01;

pub(crate) fn fixes(request: &Request<'_>) -> Vec<Fix> {
    of_findings(request, RULE, |_, kernel, _, site| {
        fix(request, kernel, site)
    })
}

fn fix(request: &Request<'_>, kernel: &Kernel, site: Site) -> Option<Fix> {
    let code = request.code();
    let source = kernel.source(code)?;
    let branch = source.source_of::<Controlled>(site)?.as_branch()?;
    let looped = branch
        .parent()
        .filter(|one| one.kind() == Kind::CompoundStatement)?
        .parent()?;
    if !matches!(looped.kind(), Kind::ForStatement | Kind::WhileStatement) {
        return None;
    }
    let condition = branch.field(Field::Condition)?;
    if !movable(code, looped, condition) {
        return None;
    }
    let edits = vec![(looped.byte_range(), twice(code, looped, branch, condition)?)];
    let proof = prove(request, kernel, &edits)?;
    let after = proof.after();
    let speedup = proof.speedup(kernel)?;
    let (before, now) = (kernel.instructions?, after.instructions?);
    if now >= before || speedup < WORTH {
        return None;
    }
    Some(Fix {
        title: format!(
            "Move `{}` out of the loop, which is written twice: {} instructions per warp → {}{}, {}",
            inside(code, condition)?,
            number(before),
            number(now),
            occupancy(kernel.occupancy, after.occupancy),
            faster(speedup)
        ),
        rule: RULE,
        edits,
        gain: speedup,
        complete: true,
    })
}

/// The text between the parentheses of a condition.
fn inside<'t>(code: Semantics<'t>, condition: Node) -> Option<&'t str> {
    let written = code.text(condition);
    Some(written.strip_prefix('(')?.strip_suffix(')')?.trim())
}

/// True for a short loop on lines of its own, and a condition that is arithmetic on names that the loop leaves alone.
fn movable(code: Semantics, looped: Node, condition: Node) -> bool {
    let written = code.text(looped);
    let above = looped.prev_sibling();
    let asked = above.is_some_and(|one| one.kind().is_directive());
    let begins = code.source[..looped.start_byte()]
        .trim_end_matches([' ', '\t'])
        .ends_with('\n');
    let all = looped.descendants();
    let directive = |one: &Node| {
        one.kind().is_directive()
            || matches!(
                one.kind(),
                Kind::LabeledStatement | Kind::GotoStatement | Kind::RawStringLiteral
            )
    };
    let barrier = ["__sync", "barrier", "sync("]
        .iter()
        .any(|word| written.contains(word));
    let plain = condition.descendants().iter().all(|one| {
        matches!(
            one.kind(),
            Kind::ConditionClause
                | Kind::ParenthesizedExpression
                | Kind::BinaryExpression
                | Kind::UnaryExpression
                | Kind::Identifier
                | Kind::NumberLiteral
                | Kind::True
                | Kind::False
        ) || !one.is_named()
    }) && !code.text(condition).contains(['/', '%']);
    let names: Vec<&str> = condition
        .descendants()
        .iter()
        .filter(|one| one.kind() == Kind::Identifier)
        .map(|one| code.text(*one))
        .collect();
    let kept = names.iter().all(|name| {
        let written = |one: &&Node| one.kind() == Kind::Identifier && code.text(**one) == *name;
        !code.in_a_macro(name) && !all.iter().filter(written).any(|one| writes(*one))
    });
    !names.is_empty()
        && kept
        && plain
        && begins
        && !asked
        && !barrier
        && !looped.has_error()
        && !all.iter().any(directive)
        && written.lines().count() <= LONGEST
        && !written.contains('\\')
}

/// The two loops behind the condition.
fn twice(code: Semantics, looped: Node, branch: Node, condition: Node) -> Option<String> {
    let margin = indent(code.source, looped.start_byte());
    let deeper = if margin.contains('\t') { "\t" } else { "    " };
    let end = if code.text(looped).contains("\r\n") {
        "\r\n"
    } else {
        "\n"
    };
    let then = side(code, branch.field(Field::Consequence)?, branch);
    let otherwise = match branch.field(Field::Alternative) {
        Some(other) => {
            let other = children(other).into_iter().next_back().unwrap_or(other);
            side(code, other, branch)
        }
        None => String::new(),
    };
    let whole = |instead: &str| {
        let (start, stop) = (looped.start_byte(), looped.end_byte());
        let mut from = branch.start_byte();
        let mut to = branch.end_byte();
        // Nothing in its place: its line goes too.
        if instead.is_empty() {
            let line = code.source[..from].rfind('\n').map_or(from, |at| at + 1);
            let next = code.source[to..].find('\n').map_or(to, |at| to + at + 1);
            let alone = code.source[line..from].trim().is_empty()
                && code.source[to..next].trim().is_empty();
            if alone && line > start && next < stop {
                (from, to) = (line, next);
            }
        }
        let all = format!(
            "{}{instead}{}",
            &code.source[start..from],
            &code.source[to..stop]
        );
        let lines: Vec<String> = all
            .lines()
            .enumerate()
            .map(|(at, line)| match (at, line.trim().is_empty()) {
                (0, _) => format!("{margin}{deeper}{line}"),
                (_, true) => String::new(),
                _ => format!("{deeper}{line}"),
            })
            .collect();
        lines.join(end)
    };
    Some(format!(
        "if ({}) {{{end}{}{end}{margin}}} else {{{end}{}{end}{margin}}}",
        inside(code, condition)?,
        whole(&then),
        whole(&otherwise),
    ))
}

/// A side of the branch as it is in its place: without its braces, where nothing is declared in them.
fn side(code: Semantics, side: Node, branch: Node) -> String {
    let written = code.text(side);
    let statements = children(side);
    let bare = side.kind() == Kind::CompoundStatement
        && !statements.is_empty()
        && statements.iter().all(|one| one.kind() != Kind::Declaration);
    if !bare {
        return written.to_owned();
    }
    let inner = written
        .trim_start_matches('{')
        .strip_suffix('}')
        .unwrap_or(written);
    let own = indent(code.source, statements[0].start_byte());
    let margin = indent(code.source, branch.start_byte());
    let less = own.strip_prefix(margin.as_str()).unwrap_or_default();
    let lines: Vec<String> = inner
        .trim()
        .lines()
        .map(|line| match line.strip_prefix(own.as_str()) {
            Some(rest) if !less.is_empty() => format!("{margin}{rest}"),
            _ => line.to_owned(),
        })
        .collect();
    lines.join("\n")
}
