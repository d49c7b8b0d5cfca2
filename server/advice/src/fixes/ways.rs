//! How a kernel comes to a statement: the conditions on the way there, what leaves before it, what ends or joins threads.

use warplens_hir::Semantics;
use warplens_hir::semantics::children;
use warplens_syntax::{Field, Kind, Node};

use crate::fixes::source::squeezed;

/// The way to an element.
pub(crate) struct Way<'t> {
    /// The statement that it is in.
    pub statement: Node<'t>,
    /// The kernel's own statement that this is a part of.
    pub top: Node<'t>,
    /// The conditions in between, outer ones first.
    pub guards: Vec<Node<'t>>,
}

/// The way from a kernel's body to an element, through conditions without an `else` and the loops that may be gone through;
/// `None` where something else is between.
pub(crate) fn way_to<'t>(
    code: Semantics,
    body: Node<'t>,
    element: Node<'t>,
    mut through: impl FnMut(Node<'t>) -> Option<()>,
) -> Option<Way<'t>> {
    let mut statement = element;
    while !matches!(
        statement.kind(),
        Kind::ExpressionStatement | Kind::Declaration | Kind::ReturnStatement
    ) {
        statement = statement.parent()?;
    }
    let mut guards = Vec::new();
    let mut top = statement;
    loop {
        let parent = top.parent()?;
        if parent == body {
            break;
        }
        match parent.kind() {
            Kind::CompoundStatement => {}
            Kind::IfStatement => {
                if parent.field(Field::Alternative).is_some()
                    || parent.field(Field::Consequence) != Some(top)
                {
                    return None;
                }
                guards.push(condition(code, parent)?);
            }
            Kind::ForStatement if parent.field(Field::Body) == Some(top) => through(parent)?,
            _ => return None,
        }
        top = parent;
    }
    guards.reverse();
    Some(Way {
        statement,
        top,
        guards,
    })
}

/// The expression that an `if` asks for.
pub(crate) fn condition<'t>(code: Semantics, of: Node<'t>) -> Option<Node<'t>> {
    let clause = of.field(Field::Condition)?;
    let inner = children(clause);
    let [one] = inner[..] else { return None };
    (code.text(clause).starts_with('(') && !code.text(of).starts_with("if constexpr"))
        .then_some(one)
}

/// True for `return;`, in braces too.
pub(crate) fn leaves(code: Semantics, then: Node) -> bool {
    matches!(squeezed(code.text(then)).as_str(), "return;" | "{return;}")
}

/// The kernel's own `if (…) return;` in front of a statement.
pub(crate) fn exits<'t>(
    code: Semantics,
    body: Node<'t>,
    top: Node<'t>,
) -> Option<Vec<(Node<'t>, Node<'t>)>> {
    let mut found = Vec::new();
    for statement in children(body) {
        if statement.start_byte() >= top.start_byte() {
            break;
        }
        if statement.kind() != Kind::IfStatement {
            continue;
        }
        let then = statement.field(Field::Consequence)?;
        if leaves(code, then) && statement.field(Field::Alternative).is_none() {
            found.push((statement, condition(code, statement)?));
        }
    }
    Some(found)
}

/// True where nothing else ends a thread or brings threads together.
pub(crate) fn is_plain(code: Semantics, body: Node, exits: &[(Node, Node)]) -> bool {
    let returns = body
        .descendants()
        .into_iter()
        .filter(|node| {
            matches!(
                node.kind(),
                Kind::ReturnStatement
                    | Kind::GotoStatement
                    | Kind::LambdaExpression
                    | Kind::LabeledStatement
                    | Kind::GnuAsmExpression
            )
        })
        .count();
    let written = code.text(body);
    let together = [
        "__sync",
        "barrier",
        "__shfl",
        "__ballot",
        "__any",
        "__all",
        "__trap",
        "asm",
        "volatile",
        "cooperative_groups",
        "work_group_",
        "sub_group_",
        "async",
        "atomic",
        "__threadfence",
        "mem_fence",
    ];
    returns == exits.len() && !together.iter().any(|word| written.contains(word))
}

/// True for what changes something through a subscript or a pointer.
pub(crate) fn is_store(node: Node) -> bool {
    let target = match node.kind() {
        Kind::AssignmentExpression => node.field(Field::Left),
        Kind::UpdateExpression => node.field(Field::Argument),
        _ => None,
    };
    target.is_some_and(|target| target.kind() != Kind::Identifier)
}

/// True where a statement begins a line and the kernel's body began on an earlier one.
pub(crate) fn is_own_line(code: Semantics, body: Node, statement: Node) -> bool {
    let at = statement.start_byte();
    let line = code.source[..at].rfind('\n').map_or(0, |end| end + 1);
    code.source[line..at].trim().is_empty() && line > body.start_byte()
}
