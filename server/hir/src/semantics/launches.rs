//! The launches of a kernel that a file shows.

use std::ops::Range;

use warplens_syntax::nodes::CallExpression;
use warplens_syntax::{Field, Kind, Node};

use super::{Semantics, children};

/// One launch.
#[derive(Debug)]
pub struct Launch<'t> {
    /// The call.
    pub call: Node<'t>,
    /// The block.
    pub block: Option<Node<'t>>,
    /// What the kernel is given, in order.
    pub arguments: Vec<Node<'t>>,
}

/// What a file does with a kernel's name.
#[derive(Debug)]
pub struct Launches<'t> {
    /// Every launch in it.
    pub seen: Vec<Launch<'t>>,
    /// Where the name goes somewhere that is not followed.
    pub elsewhere: Vec<usize>,
}

impl<'t> Semantics<'t> {
    /// Everything the file does with a kernel's name.
    pub fn launches(self, kernel: &str) -> Launches<'t> {
        let mut found = Launches {
            seen: Vec::new(),
            elsewhere: Vec::new(),
        };
        for node in self.root.descendants() {
            if node.kind() != Kind::Identifier || self.text(node) != kernel || is_declared(node) {
                continue;
            }
            match self.launch(node) {
                Some(launch) => found.seen.push(launch),
                None if self.is_only_asked(node) => {}
                None => found.elsewhere.push(node.start_byte()),
            }
        }
        found.elsewhere.extend(self.macro_naming(kernel));
        found
    }

    /// The call that these bytes of a launch are, or the beginning of.
    pub fn launch_at(self, place: &Range<usize>) -> Option<CallExpression<'t>> {
        let mut call = self
            .root
            .descendant_for_byte_range(place.start, place.end)?;
        while call.kind() != Kind::CallExpression || call.start_byte() != place.start {
            call = call.parent()?;
        }
        CallExpression::cast(call)
    }

    /// How many launches `k<<<…>>>` of a kernel the file may hold, whatever its template arguments: those in text that the
    /// parser could not read and those that a macro may make are among them.
    pub fn launches_written(self, kernel: &str) -> usize {
        let tokens = self.root.descendants().into_iter();
        let written = tokens
            .filter(|token| token.kind() == Kind::LaunchOpen)
            .filter_map(|open| {
                let syntax = open
                    .parent()
                    .filter(|parent| parent.kind() == Kind::KernelCallSyntax);
                last_name(syntax.unwrap_or(open).prev_sibling()?)
            })
            .filter(|last| self.text(*last) == kernel);
        written.count() + usize::from(self.in_a_macro(kernel))
    }

    /// The launch that a mention of a kernel's name is.
    fn launch(self, name: Node<'t>) -> Option<Launch<'t>> {
        let function = outermost(name);
        let call = CallExpression::cast(function.parent()?);
        if let Some(call) = call.filter(|call| call.function() == Some(function)) {
            return Some(Launch {
                call: call.node(),
                block: call.launch()?.extents().nth(1),
                arguments: children(call.arguments()?),
            });
        }
        // HIP's macro: kernel, grid, block, shared memory, stream, arguments.
        let outer = CallExpression::cast(call_around(function)?)?;
        let all = children(outer.arguments()?);
        let launches = self.text(outer.function()?) == "hipLaunchKernelGGL" && all.len() >= 5;
        launches.then(|| Launch {
            call: outer.node(),
            block: Some(all[2]),
            arguments: all[5..].to_vec(),
        })
    }

    /// True where the name goes to a function that only asks or sets something about the kernel.
    fn is_only_asked(self, name: Node) -> bool {
        let callee = call_around(outermost(name)).and_then(|call| call.field(Field::Function));
        callee.is_some_and(|callee| {
            let callee = self.text(callee);
            ["Func", "Occupancy"].iter().any(|part| {
                callee.contains(&format!("cuda{part}")) || callee.contains(&format!("hip{part}"))
            })
        })
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use warplens_syntax::{Document, Language};

    /// Launches, and whether the name goes elsewhere.
    fn of(host: &str) -> (usize, bool) {
        let file =
            format!("__global__ void k(float *a, float *b);\nvoid run(float *x) {{ {host} }}\n");
        let document = Document::new(&file, Language::Cuda);
        let found = Semantics::new(&document).launches("k");
        (found.seen.len(), !found.elsewhere.is_empty())
    }

    #[test]
    fn what_is_done_with_a_kernels_name_is_seen() {
        assert_eq!(of("k<<<1, 2>>>(x, x); k<<<3, 4>>>(x, x);"), (2, false));
        assert_eq!(of("hipLaunchKernelGGL(k, 1, 2, 0, 0, x, x);"), (1, false));
        assert_eq!(
            of("cudaFuncSetAttribute(k, 1, 2); k<<<1, 2>>>(x, x);"),
            (1, false)
        );
        assert_eq!(of("go(k, x);"), (0, true));
        assert_eq!(
            of("cudaLaunchKernel((void *)k, 1, 2, args, 0, 0);"),
            (0, true)
        );
    }
}
