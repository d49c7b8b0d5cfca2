//! What is read off the nodes of a host program: texts, names, lists, conditions.

use std::ops::Range;
use std::sync::Arc;

use warplens_hir::{Source, function_declarator, namespaces_around, nearest};
use warplens_syntax::{Field, Kind, Node};

/// Letters of a condition or of a size that are quoted.
const LONGEST_TEXT: usize = 60;

/// The text of a node.
pub(super) fn text<'s>(node: Node, source: Source<'s>) -> &'s str {
    source.parsed.text.get(node.byte_range()).unwrap_or("")
}

/// The named children that are not comments.
pub(super) fn parts(node: Node<'_>) -> Vec<Node<'_>> {
    node.named_children()
        .filter(|child| child.kind() != Kind::Comment)
        .collect()
}

pub(super) fn full_name(class: Option<&str>, name: &str) -> String {
    match class {
        Some(class) => format!("{class}::{name}"),
        None => name.to_owned(),
    }
}

pub(super) fn parameter_list(function: Node<'_>) -> Option<Node<'_>> {
    function_declarator(function)?.field(Field::Parameters)
}

pub(super) fn template_of(function: Node<'_>) -> Option<Node<'_>> {
    function
        .parent()
        .filter(|parent| parent.kind() == Kind::TemplateDeclaration)
}

/// `{.x = 1}`.
pub(super) fn names_fields(node: Node) -> bool {
    node.kind() == Kind::InitializerList
        && node
            .named_child(0)
            .is_some_and(|first| first.kind() == Kind::InitializerPair)
}

/// The node with a function's plain name, and its template arguments.
pub(super) fn name_of_function(node: Node<'_>) -> (Node<'_>, Option<Node<'_>>) {
    let mut at = node;
    let mut arguments = None;
    for _ in 0..12 {
        arguments = at.field(Field::Arguments).or(arguments);
        let inner = match at.kind() {
            Kind::TemplateFunction
            | Kind::TemplateMethod
            | Kind::QualifiedIdentifier
            | Kind::TemplateType => at.field(Field::Name),
            Kind::FieldExpression => at.field(Field::Field),
            Kind::DependentName | Kind::ParenthesizedExpression => parts(at).into_iter().next(),
            _ => None,
        };
        match inner {
            Some(inner) => at = inner,
            None => break,
        }
    }
    (at, arguments)
}

/// The condition of a loop, or the loop itself where it has none.
pub(super) fn condition_of<'t>(
    condition: Option<Node<'t>>,
    body: Option<Node<'t>>,
) -> Option<Node<'t>> {
    let unwrapped = condition.map(|condition| match condition.kind() {
        Kind::ConditionClause => condition.field(Field::Value).unwrap_or(condition),
        _ => condition,
    });
    unwrapped.or(body)
}

/// The bytes that say a condition: `n > 0` of `(n > 0)`, `x : all` of a loop over a range.
pub(super) fn condition_in(node: Node) -> Range<usize> {
    let whole = node.byte_range();
    match node.kind() {
        Kind::ConditionClause | Kind::ParenthesizedExpression if whole.len() > 2 => {
            whole.start + 1..whole.end - 1
        }
        Kind::ForRangeLoop => {
            let begin = node.field(Field::Type).or(node.field(Field::Declarator));
            match (begin, node.field(Field::Right)) {
                (Some(begin), Some(end)) => begin.start_byte()..end.end_byte(),
                _ => whole,
            }
        }
        _ => whole,
    }
}

/// The beginning of a piece of source, on one line.
pub(super) fn quoted(text: &str) -> Arc<str> {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= LONGEST_TEXT {
        return line.into();
    }
    let cut: String = line.chars().take(LONGEST_TEXT - 1).collect();
    format!("{cut}…").into()
}

/// Which of these namespaces a name leads to, as it is written and where it is; nothing where they are one, or where
/// that is not told.
pub(super) fn meant<'s>(name: Node, source: Source, spaces: &[&'s str]) -> Option<&'s str> {
    if spaces.iter().all(|space| *space == spaces[0]) {
        return None;
    }
    let around = namespaces_around(name, &source.parsed.text);
    let written = text(name, source).split('<').next()?;
    nearest(written, &around, spaces)
}

/// Whether an expression is a statement: nothing becomes of its value.
pub(super) fn is_unused(expression: Node) -> bool {
    let around = expression.parent();
    around.is_some_and(|around| around.kind() == Kind::ExpressionStatement)
}
