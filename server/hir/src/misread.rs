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

/// What a name begins with that takes the place of another text.
const HIDING: &str = "W__";

/// `a * lib::Table<3>::size` reads as two comparisons, `(a * lib::Table) < 3` and `> ::size`, and `i < Table<3>::size / 2` as the type
/// `i<Table<3>::size`. The text with such a name replaced by one identifier as long as it is; where it is called, by one without
/// the scopes before the template. Every byte keeps its place.
pub fn without_templates(text: &str) -> Option<String> {
    if !text.contains(">::") {
        return None;
    }
    let bytes = text.as_bytes();
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut out = bytes.to_vec();
    let mut at = 0;
    while let Some(open) = text[at..].find('<').map(|found| at + found) {
        at = open + 1;
        let path = bytes[..open]
            .iter()
            .rposition(|&byte| !is_word(byte) && byte != b':')
            .map_or(0, |before| before + 1);
        let Some(close) = closing(bytes, open) else {
            continue;
        };
        let inner = text[open + 1..close].trim();
        let mut end = close + 1;
        while bytes[end..].starts_with(b"::") && bytes.get(end + 2).is_some_and(|&b| is_word(b)) {
            end += 2;
            end += bytes[end..]
                .iter()
                .take_while(|&&byte| is_word(byte))
                .count();
        }
        let is_name = |text: &str| {
            let first = text.bytes().next();
            first.is_some_and(|first| !first.is_ascii_digit())
                && text.bytes().all(|byte| is_word(byte) || byte == b':')
                && !matches!(text, "true" | "false")
        };
        let before = text[..path].trim_end();
        let compared = before.ends_with('<') && before.len() < path;
        let is_qualified = text[path..open].contains("::");
        let next = text[end..].trim_start().bytes().next();
        if path == open
            || end == close + 1
            || inner.is_empty()
            || is_name(inner)
            || inner.contains(',')
            || !(is_qualified || compared)
        {
            continue;
        }
        if matches!(next, Some(b'(' | b'<' | b'{')) {
            for place in &mut out[path..open] {
                if *place == b':' {
                    *place = b'_';
                }
            }
        } else {
            out[path..end].fill(b'_');
            out[path..path + HIDING.len()].copy_from_slice(HIDING.as_bytes());
            at = end;
        }
    }
    (out != bytes)
        .then(|| String::from_utf8(out).ok())
        .flatten()
}

/// The bracket that closes a list of template arguments: no list is longer.
fn closing(bytes: &[u8], open: usize) -> Option<usize> {
    const LONGEST: usize = 256;
    let mut depth = 0;
    for (at, &byte) in bytes.iter().enumerate().skip(open).take(LONGEST) {
        match byte {
            b'<' | b'(' => depth += 1,
            b'>' | b')' => depth -= 1,
            b';' | b'{' | b'}' | b'"' => return None,
            _ => {}
        }
        if depth == 0 {
            return (byte == b'>').then_some(at);
        }
    }
    None
}

/// True for a name that takes the place of another text.
pub fn hides(name: &str) -> bool {
    name.starts_with(HIDING) && name[HIDING.len()..].bytes().all(|byte| byte == b'_')
}

/// Such a text with its template's scopes as one name, which is read as nothing else.
pub fn as_one_name(text: &str) -> String {
    let (scopes, rest) = text.split_at(text.find('<').unwrap_or(0));
    format!("{}{rest}", scopes.replace(':', "_"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_with_a_number_for_its_argument_is_one_name() {
        let of = |text: &str| without_templates(text).unwrap_or_else(|| text.to_owned());
        assert_eq!(
            of("i * lib::Table<3>::size + 1"),
            "i * W__________________ + 1"
        );
        assert_eq!(of("i < Table<3>::size / 2"), "i < W_____________ / 2");
        assert_eq!(
            of("i * a::b::T<(N + 1)>::In::x"),
            "i * W______________________"
        );
        // Called, it has its arguments behind it.
        assert_eq!(of("i * lib::Table<3>::at(i)"), "i * lib__Table<3>::at(i)");
        // What the grammar reads right stays.
        for right in [
            "i * Table<3>::size",
            "i * lib::Table<N>::size",
            "i * lib::Table<3, 4>::size",
            "a < b && c > ::d",
            "lib::f<3>(i) < 4",
            "(a < 3) > ::b",
        ] {
            assert_eq!(of(right), right);
        }
    }
}
