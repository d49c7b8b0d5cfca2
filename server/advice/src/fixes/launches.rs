//! The launches of a kernel that a file shows, and whether two of their arguments may be the same array.

use warplens_syntax::nodes::CallExpression;
use warplens_syntax::{Field, Kind, Node, Parsed};

use crate::fixes::source::{children, declared_name, macro_naming, text};

/// One launch.
pub(crate) struct Launch<'t> {
    /// The block.
    pub(crate) block: Option<Node<'t>>,
    /// What the kernel is given, in order.
    pub(crate) arguments: Vec<Node<'t>>,
}

/// What a file does with a kernel's name.
pub(crate) struct Launches<'t> {
    /// Every launch in it.
    pub(crate) seen: Vec<Launch<'t>>,
    /// True where the name goes somewhere that is not followed.
    pub(crate) elsewhere: bool,
}

/// Everything a file does with a kernel's name.
pub(crate) fn launches<'t>(parsed: &'t Parsed, name: &str) -> Launches<'t> {
    let mut found = Launches {
        seen: Vec::new(),
        elsewhere: macro_naming(parsed, name).is_some(),
    };
    for node in parsed.tree.root_node().descendants() {
        if node.kind() != Kind::Identifier || text(parsed, node) != name || is_declared(node) {
            continue;
        }
        match launch(parsed, node) {
            Some(launch) => found.seen.push(launch),
            None if only_asked(parsed, node) => {}
            None => found.elsewhere = true,
        }
    }
    found
}

/// How many launches `k<<<…>>>` of a kernel a file may hold, whatever its template arguments: those in text that the parser
/// could not read and those that a macro may make are among them.
pub(crate) fn launches_written(parsed: &Parsed, name: &str) -> usize {
    let tokens = parsed.tree.root_node().descendants().into_iter();
    let written = tokens
        .filter(|token| token.kind() == Kind::LaunchOpen)
        .filter_map(|open| {
            let syntax = open
                .parent()
                .filter(|parent| parent.kind() == Kind::KernelCallSyntax);
            last_name(syntax.unwrap_or(open).prev_sibling()?)
        })
        .filter(|last| text(parsed, *last) == name);
    written.count() + usize::from(macro_naming(parsed, name).is_some())
}

/// The name itself behind its scopes and before its template arguments.
fn last_name(function: Node) -> Option<Node> {
    let mut at = function;
    while matches!(
        at.kind(),
        Kind::TemplateFunction | Kind::QualifiedIdentifier
    ) {
        at = at.field(Field::Name)?;
    }
    Some(at)
}

/// True where the name is that of a function being declared, defined or instantiated.
fn is_declared(name: Node) -> bool {
    let mut at = name;
    while let Some(parent) = at.parent() {
        match parent.kind() {
            Kind::FunctionDeclarator => {
                return parent.field(Field::Declarator) == Some(at);
            }
            Kind::TemplateFunction | Kind::QualifiedIdentifier => at = parent,
            _ => return false,
        }
    }
    false
}

fn outermost(name: Node) -> Node {
    let mut function = name;
    while let Some(parent) = function.parent().filter(|parent| {
        matches!(
            parent.kind(),
            Kind::TemplateFunction | Kind::QualifiedIdentifier
        )
    }) {
        function = parent;
    }
    function
}

/// The launch that a mention of a kernel's name is.
fn launch<'t>(parsed: &'t Parsed, name: Node<'t>) -> Option<Launch<'t>> {
    let function = outermost(name);
    let call = CallExpression::cast(function.parent()?);
    if let Some(call) = call.filter(|call| call.function() == Some(function)) {
        return Some(Launch {
            block: call.launch()?.extents().nth(1),
            arguments: children(call.arguments()?),
        });
    }
    // HIP's macro: kernel, grid, block, shared memory, stream, arguments.
    let outer = call_around(function)?;
    let callee = outer.field(Field::Function)?;
    let all = children(outer.field(Field::Arguments)?);
    let launches = text(parsed, callee) == "hipLaunchKernelGGL" && all.len() >= 5;
    launches.then(|| Launch {
        block: Some(all[2]),
        arguments: all[5..].to_vec(),
    })
}

/// The call that something is an argument of, casts and parentheses looked through.
fn call_around(node: Node) -> Option<Node> {
    let mut at = node;
    for _ in 0..8 {
        let parent = at.parent()?;
        match parent.kind() {
            Kind::ArgumentList => return parent.parent(),
            Kind::CastExpression | Kind::ParenthesizedExpression | Kind::PointerExpression => {
                at = parent;
            }
            _ => return None,
        }
    }
    None
}

/// True where the name goes to a function that only asks or sets something about the kernel.
fn only_asked(parsed: &Parsed, name: Node) -> bool {
    let callee = call_around(outermost(name)).and_then(|call| call.field(Field::Function));
    callee.is_some_and(|callee| {
        let callee = text(parsed, callee);
        ["Func", "Occupancy"].iter().any(|part| {
            callee.contains(&format!("cuda{part}")) || callee.contains(&format!("hip{part}"))
        })
    })
}

/// True where the file shows that no two of these arguments of a launch lead to one array: they are named otherwise,
/// and none was made of another.
pub(crate) fn are_distinct(parsed: &Parsed, arguments: &[Node]) -> bool {
    let all: Vec<Argument> = arguments
        .iter()
        .map(|node| Argument::new(parsed, *node))
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
    fn new(parsed: &'t Parsed, node: Node) -> Argument<'t> {
        let mut inner = node;
        while let Some(next) = match inner.kind() {
            Kind::ParenthesizedExpression => inner.named_child(0),
            Kind::CastExpression => inner.field(Field::Value),
            _ => None,
        } {
            inner = next;
        }
        let names = variables(parsed, inner);
        let mut from = Vec::new();
        if names.len() == 1 {
            for given in parsed.tree.root_node().descendants() {
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
                if text(parsed, left) == names[0] && !calls {
                    from.extend(variables(parsed, right));
                }
            }
        }
        let written: String = text(parsed, inner).split_whitespace().collect();
        Argument {
            place: is_place(parsed, inner).then_some(written),
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
fn variables<'t>(parsed: &'t Parsed, node: Node) -> Vec<&'t str> {
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
        .map(|node| text(parsed, node))
        .collect();
    names.retain(|name| !matches!(*name, "NULL" | "nullptr"));
    names.sort_unstable();
    names.dedup();
    names
}

/// A variable, a field of one, an element with a literal subscript.
fn is_place(parsed: &Parsed, node: Node) -> bool {
    match node.kind() {
        Kind::Identifier => true,
        Kind::FieldExpression => node
            .field(Field::Argument)
            .is_some_and(|of| is_place(parsed, of)),
        Kind::SubscriptExpression => {
            let indices = node
                .field(Field::Indices)
                .or_else(|| node.field(Field::Index));
            let literal = indices.is_some_and(|indices| {
                text(parsed, indices)
                    .trim_matches(['[', ']', ' '])
                    .parse::<u64>()
                    .is_ok()
            });
            let of = node.field(Field::Argument);
            literal && of.is_some_and(|of| is_place(parsed, of))
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
        let found = launches(document.parsed(), "k");
        let [launch] = &found.seen[..] else {
            return None;
        };
        (!found.elsewhere).then(|| are_distinct(document.parsed(), &launch.arguments))
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
