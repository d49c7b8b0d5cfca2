//! What a program does with an object whose type nothing binds: whether it is called, or subscripted like a pointer, in the kernel or in
//! the functions that it is handed to.

use rustc_hash::FxHashSet;
use warplens_syntax::{Field, Kind, Node};

use super::forms::{innermost, parameter_nodes};
use super::{Lowering, Source, parts, text_of};
use crate::definition::Definition;

/// Functions that an object is followed into, one calling the other, and all of them.
const DEEPEST: u32 = 6;
const MOST_FUNCTIONS: usize = 64;

/// How an object is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// With how many arguments.
    Called(usize),
    /// Subscripted or dereferenced.
    Pointer,
}

impl Lowering<'_> {
    /// A use that tells what an object is, of the kernel before that of functions; nothing where it is only handed to what was not read.
    pub(super) fn use_of(&self, object: &str, function: Node, source: Source) -> Option<Use> {
        let mut seen = FxHashSet::default();
        self.use_in(object, function, source, 0, &mut seen)
    }

    fn use_in(
        &self,
        object: &str,
        function: Node,
        source: Source,
        depth: u32,
        seen: &mut FxHashSet<(u64, String)>,
    ) -> Option<Use> {
        let mut open = vec![function.field(Field::Body)?];
        // Where it is handed to a function, that is looked into last.
        let mut handed: Vec<(&str, usize)> = Vec::new();
        while let Some(node) = open.pop() {
            match node.kind() {
                Kind::CallExpression => {
                    let (Some(callee), Some(list)) =
                        (node.field(Field::Function), node.field(Field::Arguments))
                    else {
                        continue;
                    };
                    let arguments = parts(list);
                    if text_of(callee, source) == object {
                        return Some(Use::Called(arguments.len()));
                    }
                    for (at, argument) in arguments.iter().enumerate() {
                        if text_of(first_operand(*argument), source) == object {
                            handed.push((last_name(callee, source), at));
                        }
                    }
                    open.extend(arguments);
                }
                Kind::SubscriptExpression | Kind::PointerExpression => {
                    let of = node.field(Field::Argument).map(first_operand);
                    let reads = node.kind() == Kind::SubscriptExpression
                        || text_of(node, source).starts_with('*');
                    if reads && of.is_some_and(|of| text_of(of, source) == object) {
                        return Some(Use::Pointer);
                    }
                    open.extend(node.named_children());
                }
                _ => open.extend(node.named_children()),
            }
        }
        if depth >= DEEPEST {
            return None;
        }
        handed.into_iter().find_map(|(callee, at)| {
            let candidates = self.unit.functions(callee).into_iter();
            candidates
                .take(MOST_FUNCTIONS)
                .find_map(|candidate| self.use_as_parameter(&candidate, at, depth, seen))
        })
    }

    /// The same of what a function calls its argument at a place.
    fn use_as_parameter(
        &self,
        definition: &Definition,
        at: usize,
        depth: u32,
        seen: &mut FxHashSet<(u64, String)>,
    ) -> Option<Use> {
        let function = definition.node(&[Kind::FunctionDefinition])?;
        let source = Source::of(definition);
        let declarator = parameter_nodes(function, source)?
            .get(at)?
            .field(Field::Declarator)?;
        // What a pointer leads to is another object.
        if declarator.kind() == Kind::PointerDeclarator {
            return Some(Use::Pointer);
        }
        let name = text_of(innermost(declarator), source).to_owned();
        let key = (definition.hash, name.clone());
        if seen.len() >= MOST_FUNCTIONS || !seen.insert(key) {
            return None;
        }
        self.use_in(&name, function, source, depth + 1, seen)
    }
}

/// The name that a call calls, without namespaces and template arguments.
fn last_name<'t>(callee: Node<'t>, source: Source<'t>) -> &'t str {
    let mut at = callee;
    while let Some(name) = at.field(Field::Name) {
        at = name;
    }
    text_of(at, source)
}

/// `first` of `(first + i)`.
fn first_operand(node: Node) -> Node {
    let mut at = node;
    loop {
        let inner = match at.kind() {
            Kind::ParenthesizedExpression => parts(at).into_iter().next(),
            Kind::BinaryExpression => at.field(Field::Left),
            _ => None,
        };
        match inner {
            Some(inner) => at = inner,
            None => return at,
        }
    }
}
