//! Where a text changes a variable or a field: assigns it, steps it, takes its address or reads a stream into it.
//!
//! In: an expanded text, a name, and bytes that do not count. Out: whether a place of that name is changed outside them. What holds:
//! names are compared, not variables, so that a shadowed variable errs on the side of *changed*; so does code that was not parsed.

use std::ops::Range;

use warplens_syntax::nodes::PointerExpression;
use warplens_syntax::{BinaryOperator, Expanded, Field, Kind, Node, PointerOperator, is_word_part};

/// More places of a name than this count as a change.
const MOST_PLACES: usize = 2_000;

/// True where the text may change what has this name, outside the bytes `skipped`.
pub(super) fn is_changed(parsed: &Expanded, name: &str, skipped: &[Range<usize>]) -> bool {
    let text = &parsed.text;
    let root = parsed.tree.root_node();
    let places = text.match_indices(name).map(|(start, _)| start);
    let places = places.filter(|start| {
        let whole = !text[..*start].ends_with(is_word_part)
            && !text[start + name.len()..].starts_with(is_word_part);
        whole && !skipped.iter().any(|range| range.contains(start))
    });
    places.enumerate().any(|(at, start)| {
        let node = root.descendant_for_byte_range(start, start + name.len());
        at >= MOST_PLACES || node.is_some_and(changes)
    })
}

/// Whether the expression around a name changes what it names, or a part of that.
fn changes(name: Node) -> bool {
    let mut at = name;
    while let Some(parent) = at.parent() {
        let is = |field: Field| parent.field(field).is_some_and(|part| part.id() == at.id());
        match parent.kind() {
            // Through fields and elements: `name.x = …`, `x.name = …`, `name[0] = …`.
            Kind::FieldExpression | Kind::ParenthesizedExpression => {}
            Kind::SubscriptExpression if is(Field::Argument) => {}
            Kind::PointerExpression => {
                let operator = PointerExpression::cast(parent).and_then(PointerExpression::op);
                if operator == Some(PointerOperator::AddressOf) {
                    return true;
                }
            }
            Kind::UpdateExpression | Kind::FieldDesignator | Kind::Error => return true,
            Kind::AssignmentExpression => return is(Field::Left),
            Kind::BinaryExpression => return is(Field::Right) && reads(parent),
            _ => return false,
        }
        at = parent;
    }
    false
}

/// Whether `in >> name` reads from a stream: a number that is shifted is a value for something.
fn reads(shift: Node) -> bool {
    let mut at = shift;
    while warplens_syntax::binary(at) == Some(BinaryOperator::ShiftRight) {
        let Some(parent) = at.parent() else {
            return false;
        };
        at = parent;
    }
    at.id() != shift.id()
        && !matches!(
            at.kind(),
            Kind::AssignmentExpression
                | Kind::InitDeclarator
                | Kind::ArgumentList
                | Kind::SubscriptArgumentList
                | Kind::ReturnStatement
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use warplens_syntax::Language;

    fn changed(body: &str) -> bool {
        let parsed = Expanded::fragment(&format!("void f() {{ {body} }}"), Language::Cuda);
        is_changed(&parsed, "n", &[])
    }

    #[test]
    fn assignments_steps_addresses_and_streams_change_a_variable() {
        for body in [
            "n = 1;",
            "n += 2;",
            "n.x = 1;",
            "n[0] = 1;",
            "p->n = 1;",
            "n[i].x[2] = 1;",
            "*n = 1;",
            "n++;",
            "--n;",
            "g(&n);",
            "std::cin >> m >> n;",
            "S s = {.n = 3};",
            "(n) = 1;",
        ] {
            assert!(changed(body), "{body}");
        }
        for body in [
            "int m = n;",
            "m = n;",
            "a[n] = 1;",
            "if (n == 1) g(n);",
            "m = n & 1;",
            "m & n;",
            "m = 8 >> n;",
            "n.g();",
            "std::cin >> a[n];",
            "nn = 1;",
            "bool b = n <= 1;",
        ] {
            assert!(!changed(body), "{body}");
        }
    }

    #[test]
    fn what_is_left_out_is_no_change() {
        let parsed = Expanded::fragment("void f() { n = 1; }", Language::Cuda);
        assert!(!is_changed(&parsed, "n", std::slice::from_ref(&(11..16))));
    }
}
