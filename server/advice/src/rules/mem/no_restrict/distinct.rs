//! Whether two arguments of a launch may be the same array.

use warplens_hir::Semantics;
use warplens_hir::semantics::declared_name;
use warplens_syntax::{Field, Kind, Node};

/// True where the file shows that no two of these arguments of a launch lead to one array: they are named otherwise,
/// and none was made of another.
pub(crate) fn are_distinct(code: Semantics, arguments: &[Node]) -> bool {
    let all: Vec<Argument> = arguments
        .iter()
        .map(|node| Argument::new(code, *node))
        .collect();
    all.iter()
        .enumerate()
        .all(|(at, one)| all[at + 1..].iter().all(|other| !one.may_meet(other)))
}

/// What an argument is made of.
struct Argument<'t> {
    /// As written, without white space, where that is a plain place.
    place: Option<String>,
    /// The variables in it.
    names: Vec<&'t str>,
    /// The variables in what those were given.
    from: Vec<&'t str>,
}

impl<'t> Argument<'t> {
    fn new(code: Semantics<'t>, node: Node) -> Argument<'t> {
        let mut inner = node;
        while let Some(next) = match inner.kind() {
            Kind::ParenthesizedExpression => inner.named_child(0),
            Kind::CastExpression => inner.field(Field::Value),
            _ => None,
        } {
            inner = next;
        }
        let names = variables(code, inner);
        let mut from = Vec::new();
        if names.len() == 1 {
            for given in code.root.descendants() {
                let (left, right) = match given.kind() {
                    Kind::InitDeclarator => (
                        given.field(Field::Declarator).and_then(declared_name),
                        given.field(Field::Value),
                    ),
                    Kind::AssignmentExpression => {
                        (given.field(Field::Left), given.field(Field::Right))
                    }
                    _ => continue,
                };
                let (Some(left), Some(right)) = (left, right) else {
                    continue;
                };
                let calls = right
                    .descendants()
                    .iter()
                    .any(|node| matches!(node.kind(), Kind::CallExpression | Kind::NewExpression));
                if code.text(left) == names[0] && !calls {
                    from.extend(variables(code, right));
                }
            }
        }
        let written: String = code.text(inner).split_whitespace().collect();
        Argument {
            place: is_place(code, inner).then_some(written),
            names,
            from,
        }
    }

    fn may_meet(&self, other: &Argument) -> bool {
        let share = |a: &[&str], b: &[&str]| a.iter().any(|name| b.contains(name));
        match (&self.place, &other.place) {
            (Some(a), Some(b)) if a == b => return true,
            (Some(_), Some(_)) => {}
            _ if share(&self.names, &other.names) => return true,
            _ => {}
        }
        share(&self.from, &other.names)
            || share(&self.names, &other.from)
            || share(&self.from, &other.from)
    }
}

/// The variables that an expression reads.
fn variables<'t>(code: Semantics<'t>, node: Node) -> Vec<&'t str> {
    let mut names: Vec<&str> = node
        .descendants()
        .into_iter()
        .filter(|node| {
            let called = node.parent().is_some_and(|parent| {
                parent.kind() == Kind::CallExpression
                    && parent.field(Field::Function) == Some(*node)
            });
            node.kind() == Kind::Identifier && !called
        })
        .map(|node| code.text(node))
        .collect();
    names.retain(|name| !matches!(*name, "NULL" | "nullptr"));
    names.sort_unstable();
    names.dedup();
    names
}

/// A variable, a field of one, an element with a literal subscript.
fn is_place(code: Semantics, node: Node) -> bool {
    match node.kind() {
        Kind::Identifier => true,
        Kind::FieldExpression => node
            .field(Field::Argument)
            .is_some_and(|of| is_place(code, of)),
        Kind::SubscriptExpression => {
            let indices = node
                .field(Field::Indices)
                .or_else(|| node.field(Field::Index));
            let literal = indices.is_some_and(|indices| {
                code.text(indices)
                    .trim_matches(['[', ']', ' '])
                    .parse::<u64>()
                    .is_ok()
            });
            let of = node.field(Field::Argument);
            literal && of.is_some_and(|of| is_place(code, of))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warplens_syntax::{Document, Language};

    fn distinct(host: &str) -> Option<bool> {
        let file = format!(
            "__global__ void k(float *a, float *b);\nvoid run(float *x, float *y, P p) {{ {host} }}\n"
        );
        let document = Document::new(&file, Language::Cuda);
        let found = Semantics::new(&document).launches("k");
        let [launch] = &found.seen[..] else {
            return None;
        };
        (found.elsewhere.is_empty())
            .then(|| are_distinct(Semantics::new(&document), &launch.arguments))
    }

    #[test]
    fn launches_show_whether_their_arrays_are_others() {
        for other in [
            "k<<<1, 2>>>(x, y);",
            "k<<<1, 2>>>((float *)x, y + 1);",
            "k<<<1, 2>>>(p.a, p.b);",
            "k<<<1, 2>>>(p.v[0], p.v[1]);",
            "float *z = alloc(x); k<<<1, 2>>>(x, z);",
            "cudaFuncSetAttribute(k, 1, 2); k<<<1, 2>>>(x, y);",
            "hipLaunchKernelGGL(k, dim3(1), dim3(2), 0, 0, x, y);",
            "k<<<1, 2>>>(x, NULL);",
        ] {
            assert_eq!(distinct(other), Some(true), "{other}");
        }
        for same in [
            "k<<<1, 2>>>(x, x);",
            "k<<<1, 2>>>(x, x + 4);",
            "k<<<1, 2>>>(p.v[i], p.v[1 - i]);",
            "float *z = x; k<<<1, 2>>>(x, z);",
            "float *z; z = y + 4; k<<<1, 2>>>(z, y);",
            "float *u = x, *v = x + 9; k<<<1, 2>>>(u, v);",
        ] {
            assert_eq!(distinct(same), Some(false), "{same}");
        }
        for unseen in [
            "go(k, x, y);",
            "cudaLaunchKernel((void *)k, 1, 2, args, 0, 0);",
        ] {
            assert_eq!(distinct(unseen), None, "{unseen}");
        }
    }
}
