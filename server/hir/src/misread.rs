//! What the grammar, which knows no types, reads as something else than the language does: expressions that are parsed
//! again, without the doubt, once it is known which names are variables.

use std::sync::Arc;

use warplens_syntax::{Expanded, Field, Kind, Language, Node};

/// The text before an expression that is parsed by itself.
const DECLARED: &str = "int w=(";

/// The text before a declaration that is parsed by itself.
const SPECIFIED: &str = "const  ";

/// Bytes before what is parsed by itself.
pub const BEFORE: usize = DECLARED.len();

const _: () = assert!(SPECIFIED.len() == BEFORE);

/// True for what works on operands and may be, or hold, a cast.
pub fn is_operation(node: &Node) -> bool {
    matches!(
        node.kind(),
        Kind::BinaryExpression
            | Kind::UnaryExpression
            | Kind::PointerExpression
            | Kind::CastExpression
    )
}

/// `x >= (a) && (b) < c` reads as a cast of `&&(b)` to `a`, and so do `(a) - (b) * c` and the other operators that may
/// stand before one operand. What binds tighter, to either side, then goes to the wrong operand. Where some `a` is a
/// variable, the expression parsed again with `a` out of its parentheses, every byte at its place behind [`BEFORE`].
pub fn without_casts(
    whole: Node,
    parsed: &Expanded,
    language: Language,
    mut is_value: impl FnMut(&str) -> bool,
) -> Option<Arc<Expanded>> {
    let mut casts = Vec::new();
    casts_to_names(whole, &parsed.text, &mut casts);
    let start = whole.start_byte();
    let mut text = parsed.text.get(whole.byte_range())?.as_bytes().to_vec();
    let mut changed = false;
    for cast in casts {
        let name = cast.field(Field::Type)?;
        // `(a[i]) & b` reads so too.
        let first = parsed.text.get(name.byte_range())?;
        let end = first.find(|c: char| !c.is_alphanumeric() && c != '_');
        if is_value(&first[..end.unwrap_or(first.len())]) {
            let close = (name.end_byte() - start..text.len()).find(|&at| text[at] == b')')?;
            text[cast.start_byte() - start] = b' ';
            text[close] = b' ';
            changed = true;
        }
    }
    if !changed {
        return None;
    }
    Some(self::parsed(&String::from_utf8(text).ok()?, language))
}

/// An expression's text parsed by itself.
pub fn parsed(text: &str, language: Language) -> Arc<Expanded> {
    Expanded::fragment(&format!("{DECLARED}{text});"), language)
}

/// A declaration's text parsed by itself: behind a specifier it is read as nothing else.
pub fn declared(text: &str, language: Language) -> Arc<Expanded> {
    Expanded::fragment(&format!("{SPECIFIED}{text};"), language)
}

/// The expression in such a text.
pub fn expression(parsed: &Expanded) -> Option<Node<'_>> {
    crate::definition::node_ending(parsed, &(0..parsed.text.len()), &[Kind::Declaration])?
        .field(Field::Declarator)?
        .field(Field::Value)
        .filter(|value| !value.has_error())
}

/// The casts among the operands of an expression that may be operators between two operands.
fn casts_to_names<'t>(node: Node<'t>, text: &str, into: &mut Vec<Node<'t>>) {
    // Long sums lean to the left: those are a loop here, not a recursion.
    let mut next = Some(node);
    while let Some(node) = next.take() {
        let field = |name| node.field(name);
        match node.kind() {
            Kind::BinaryExpression => {
                if let Some(right) = field(Field::Right).filter(is_operation) {
                    casts_to_names(right, text, into);
                }
                next = field(Field::Left);
            }
            Kind::UnaryExpression | Kind::PointerExpression => next = field(Field::Argument),
            Kind::CastExpression => {
                next = field(Field::Value);
                let sign = next
                    .filter(|value| is_operation(value))
                    .and_then(|value| value.field(Field::Operator))
                    .and_then(|sign| text.get(sign.byte_range()));
                if matches!(sign, Some("+" | "-" | "*" | "&")) {
                    into.push(node);
                }
            }
            _ => {}
        }
    }
}
