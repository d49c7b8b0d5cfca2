//! Reading the syntax tree for what an action must be sure of: where a name is used, and how.

use warplens_facts::facts::Site;
use warplens_hir::Semantics;
use warplens_hir::semantics::{KernelSource, children, is_address, is_assigned};
use warplens_syntax::nodes::{CallExpression, SubscriptExpression};
use warplens_syntax::{Field, Kind, Node, has_word};

use crate::fixes::Edit;

/// A call of an atomic that is a statement of its own.
pub(crate) struct AtomicCall<'t> {
    /// The statement.
    pub statement: Node<'t>,
    /// The call.
    pub call: Node<'t>,
    /// Its name.
    pub callee: Node<'t>,
    /// The address as written.
    pub address: &'t str,
    /// What is combined with it, as written.
    pub value: &'t str,
}

/// The call of an addition that a site is, with two arguments, no macro in sight.
pub(crate) fn atomic_call(source: KernelSource<'_>, site: Site) -> Option<AtomicCall<'_>> {
    let code = source.code;
    let call = source.source_of::<CallExpression>(site)?.node();
    let statement = call
        .parent()
        .filter(|parent| parent.kind() == Kind::ExpressionStatement && !parent.has_error())?;
    let callee = call
        .field(Field::Function)
        .filter(|callee| callee.kind() == Kind::Identifier)?;
    let arguments = children(call.field(Field::Arguments)?);
    let [address, value] = arguments.as_slice() else {
        return None;
    };
    let name = code.text(callee);
    let adds = name.ends_with("Add") || name.ends_with("_add");
    (adds && !code.in_a_macro(name)).then(|| AtomicCall {
        statement,
        call,
        callee,
        address: code.text(*address),
        value: code.text(*value),
    })
}

/// The element of an array that a site is, by a subscript.
pub(crate) fn element(source: KernelSource<'_>, site: Site) -> Option<Node<'_>> {
    let element = source.source_of::<SubscriptExpression>(site)?.node();
    source.ir_of(element).is_some().then_some(element)
}

/// The white space at the beginning of a line.
pub(crate) fn indent(text: &str, at: usize) -> String {
    let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
    text[line..at]
        .chars()
        .take_while(|letter| matches!(letter, ' ' | '\t'))
        .collect()
}

/// The subscript of an element, where there is one.
pub(crate) fn only_subscript(element: Node) -> Option<Node> {
    let index = element
        .field(Field::Indices)
        .or_else(|| element.field(Field::Index))?;
    if index.kind() != Kind::SubscriptArgumentList {
        return Some(index);
    }
    let list = children(index);
    let [one] = list[..] else { return None };
    Some(one)
}

/// True where the value of an element is read whenever its statement is executed.
pub(crate) fn is_always_evaluated(element: Node, statement: Node) -> bool {
    let mut at = element;
    while at != statement {
        let Some(parent) = at.parent() else {
            return false;
        };
        let maybe = match parent.kind() {
            Kind::ConditionalExpression => parent.field(Field::Condition) != Some(at),
            Kind::BinaryExpression => parent
                .field(Field::Operator)
                .is_some_and(|operator| matches!(operator.kind(), Kind::And | Kind::Or)),
            Kind::PointerExpression
            | Kind::SizeofExpression
            | Kind::LambdaExpression
            | Kind::UpdateExpression => true,
            _ => false,
        };
        if maybe {
            return false;
        }
        at = parent;
    }
    true
}

/// `#pragma …` on a line above a loop, indented alike. `None` where the loop does not begin its line, or has one already.
pub(crate) fn pragma(code: Semantics, of: Node, says: &str) -> Option<Edit> {
    let before = code.source.get(..of.start_byte())?;
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let indent = &before[start..];
    let above = before[..start].trim_end();
    let above = &above[above.rfind('\n').map_or(0, |at| at + 1)..];
    let free = indent.chars().all(char::is_whitespace)
        && !above.contains("pragma")
        && !above.ends_with('\\');
    // Where the loop is the body of another statement, the line belongs to the loop all the same.
    let end = if before[..start].ends_with("\r\n") {
        "\r\n"
    } else {
        "\n"
    };
    let at = start..start;
    free.then(|| (at, format!("{indent}#pragma {says}{end}")))
}

/// True where a name is assigned, stepped, declared, or its address is taken.
pub(crate) fn writes(name: Node) -> bool {
    is_assigned(name)
        || name.parent().is_none_or(|parent| match parent.kind() {
            Kind::PointerExpression => is_address(parent),
            Kind::InitDeclarator | Kind::Declaration => {
                parent.field(Field::Declarator) == Some(name)
            }
            _ => false,
        })
}

/// True where an element is what an assignment or a step changes, or its address is taken.
pub(crate) fn is_target(element: Node) -> bool {
    let pointed = |parent: Node| parent.kind() == Kind::PointerExpression;
    is_assigned(element) || element.parent().is_some_and(pointed)
}

/// A name that nothing in the function has yet.
pub(crate) fn new_name(code: Semantics, function: Node<'_>, wanted: &str) -> String {
    let taken = code.text(function);
    let mut name = wanted.to_owned();
    while has_word(taken, &name) {
        name.push('_');
    }
    name
}

/// A text without spaces and line breaks.
pub(crate) fn squeezed(text: &str) -> String {
    text.split_whitespace().collect()
}
