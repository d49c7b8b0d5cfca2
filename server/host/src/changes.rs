//! Where a text changes a variable or a field: assigns it, steps it, takes its address or reads a stream into it.
//!
//! In: an expanded text, a name, and bytes that do not count. Out: whether a place of that name is changed outside them. What holds:
//! names are compared, not variables, so that a shadowed variable errs on the side of *changed*; so does code that was not parsed.

use std::ops::Range;

use warplens_syntax::nodes::PointerExpression;
use warplens_syntax::{
    AssignOperator, BinaryOperator, Expanded, Field, Kind, Node, PointerOperator, assigned,
    is_word_part,
};

/// More places of a name than this count as a change.
const MOST_PLACES: usize = 2_000;

/// `name = value`, `name.member = value`.
#[derive(Debug)]
pub(super) struct Assignment<'t> {
    /// The members behind the name, outermost first.
    pub(super) members: Vec<&'t str>,
    pub(super) value: Node<'t>,
}

/// True where the text may change what has this name, outside the bytes `skipped`.
pub(super) fn is_changed(parsed: &Expanded, name: &str, skipped: &[Range<usize>]) -> bool {
    let mut places = places(parsed, name, skipped).enumerate();
    places.any(|(at, node)| at >= MOST_PLACES || node.is_some_and(changes))
}

/// Every change of what has this name, outside the bytes `skipped`; `None` where one is no plain assignment.
pub(super) fn assignments<'t>(
    parsed: &'t Expanded,
    name: &str,
    skipped: &[Range<usize>],
) -> Option<Vec<Assignment<'t>>> {
    let mut all = Vec::new();
    for (at, node) in places(parsed, name, skipped).enumerate() {
        if at >= MOST_PLACES {
            return None;
        }
        if let Some(node) = node.filter(|node| changes(*node)) {
            all.push(plain_assignment(node, &parsed.text)?);
        }
    }
    Some(all)
}

/// Where this name is in the text, outside the bytes `skipped`.
fn places<'t>(
    parsed: &'t Expanded,
    name: &str,
    skipped: &[Range<usize>],
) -> impl Iterator<Item = Option<Node<'t>>> {
    let text = &parsed.text;
    let root = parsed.tree.root_node();
    let places = text.match_indices(name).map(|(start, _)| start);
    let places = places.filter(|start| {
        let whole = !text[..*start].ends_with(is_word_part)
            && !text[start + name.len()..].starts_with(is_word_part);
        whole && !skipped.iter().any(|range| range.contains(start))
    });
    places.map(move |start| root.descendant_for_byte_range(start, start + name.len()))
}

/// The assignment that a name begins, which may be the field of another object.
fn plain_assignment<'t>(name: Node<'t>, text: &'t str) -> Option<Assignment<'t>> {
    let mut members = Vec::new();
    let mut at = name;
    loop {
        let parent = at.parent()?;
        match parent.kind() {
            Kind::FieldExpression => {
                let field = parent.field(Field::Field)?;
                if field.id() != at.id() {
                    members.push(&text[field.byte_range()]);
                }
            }
            Kind::ParenthesizedExpression => {}
            Kind::AssignmentExpression if assigned(parent) == Some(AssignOperator::Plain) => {
                let value = parent.field(Field::Right)?;
                return Some(Assignment { members, value });
            }
            _ => return None,
        }
        at = parent;
    }
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
    fn plain_assignments_are_told_with_their_members() {
        let told = |body: &str| {
            let parsed = Expanded::fragment(&format!("void f() {{ {body} }}"), Language::Cuda);
            let all = assignments(&parsed, "n", &[])?;
            let all = all.iter().map(|one| {
                let value = &parsed.text[one.value.byte_range()];
                format!("{}={value}", one.members.join("."))
            });
            Some(all.collect::<Vec<_>>().join(" "))
        };
        assert_eq!(
            told("n = 1; this->n.x = 2; int m = n; (n).y = m;").as_deref(),
            Some("=1 x=2 y=m")
        );
        for other in [
            "n += 1;",
            "n = 1; n++;",
            "g(&n);",
            "n[0] = 1;",
            "n = m = 1; *n = 2;",
        ] {
            assert_eq!(told(other), None, "{other}");
        }
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
