//! What a host function does with the memory that it hands to a launch: copies from memory that may be paged out, memory
//! that both sides share.

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use warplens_syntax::nodes::CallExpression;
use warplens_syntax::{Field, Kind, Node, is_word_part};

use super::state::{Handled, Host};
use warplens_hir::Source;

/// Launches of a file that this is asked of: each looks through the function around it.
const MOST_LAUNCHES: usize = 64;
/// Nodes of a host function that are looked at.
const MOST_NODES: usize = 20_000;

/// What the host does with one argument of a launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostMemory {
    /// Position among the launch's arguments.
    pub argument: usize,
    /// The host's name of it.
    pub name: String,
    /// The call that says so, in the source of the file.
    pub range: Range<usize>,
    /// What is done.
    pub kind: HostMemoryKind,
    /// How many bytes, where that is known.
    pub bytes: Option<u64>,
}

/// What the host may do with an argument's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HostMemoryKind {
    /// Each turn of the loop around the launch copies it, from or to memory that may be paged out.
    Pageable,
    /// Each turn copies it to the GPU again, from memory that the loop does not change.
    Repeated,
    /// `cudaMallocManaged`, and nothing in the file moves it ahead of its use.
    Managed,
    /// Memory of the host: each access goes over the bus.
    Mapped,
}

impl Host<'_> {
    /// What the function around a launch does with its arguments. `place`: the launch from its name to `>>>`.
    pub(super) fn memory(&mut self, place: &Range<usize>, source: Source) -> Vec<HostMemory> {
        let text = &source.parsed.text;
        if self.sites.len() >= MOST_LAUNCHES {
            return Vec::new();
        }
        if !["Memcpy", "MallocManaged", "HostGetDevicePointer"]
            .iter()
            .any(|word| text.contains(word))
        {
            return Vec::new();
        }
        // A launch in a loop is met often, and what is around it stays.
        let key = (Arc::as_ptr(source.parsed) as usize, place.start);
        let handled = match self.handled.get(&key) {
            Some(known) => Rc::clone(known),
            None => {
                let found = Rc::new(self.handled_by(place, source));
                self.handled.insert(key, Rc::clone(&found));
                found
            }
        };
        let tree = source.parsed.tree.root_node();
        let memory = handled.iter().map(|one| {
            let size = one.size.clone();
            let size = size.and_then(|size| tree.descendant_for_byte_range(size.start, size.end));
            HostMemory {
                bytes: size
                    .and_then(|size| self.eval(size, source).as_int())
                    .and_then(|bytes| u64::try_from(bytes).ok()),
                ..one.memory.clone()
            }
        });
        memory.collect()
    }

    /// The same, without the numbers of bytes.
    fn handled_by(&mut self, place: &Range<usize>, source: Source) -> Vec<Handled> {
        let text = &source.parsed.text;
        let tree = source.parsed.tree.root_node();
        let Some(launch) = launch(tree, place) else {
            return Vec::new();
        };
        let Some(function) = around(launch, &[Kind::FunctionDefinition, Kind::LambdaExpression])
        else {
            return Vec::new();
        };
        let mut calls = Vec::new();
        within(function, &[Kind::CallExpression], &mut calls);
        calls.retain(|call| handles_memory(*call, source));
        let turns =
            around(launch, LOOPS).filter(|turns| turns.start_byte() > function.start_byte());
        let ahead = text.contains("MemPrefetchAsync") || text.contains("MemAdvise");
        let mut found = Vec::new();
        let arguments = launch.field(Field::Arguments).map(named);
        for (argument, node) in arguments.into_iter().flatten().enumerate() {
            let Some(name) = root(node, source) else {
                continue;
            };
            for &call in &calls {
                let pageable = &mut |host: &str| {
                    let key = (function.id(), host.to_owned());
                    let known = self.pageable.entry(key);
                    *known.or_insert_with(|| is_pageable(function, host, source))
                };
                let repeated = turns
                    .filter(|turns| is_repeated(call, launch, name, source, *turns))
                    .map(|_| HostMemoryKind::Repeated);
                let kinds = [kind(call, name, source, pageable, turns, ahead), repeated];
                for kind in kinds.into_iter().flatten() {
                    let size = match kind {
                        HostMemoryKind::Pageable | HostMemoryKind::Repeated => {
                            arguments_of(call).get(2).copied()
                        }
                        HostMemoryKind::Managed => arguments_of(call).get(1).copied(),
                        HostMemoryKind::Mapped => None,
                    };
                    found.push(Handled {
                        memory: HostMemory {
                            argument,
                            name: name.to_owned(),
                            range: source.parsed.place(call.byte_range()).range,
                            kind,
                            bytes: None,
                        },
                        size: size.map(|size| size.byte_range()),
                    });
                }
            }
        }
        found
    }
}

/// Whether a call is one of those that [`kind`] and [`is_repeated`] look at.
fn handles_memory(call: Node, source: Source) -> bool {
    let function = call.field(Field::Function);
    let callee = function.map_or("", |function| text_at(function, source));
    let callee = callee
        .strip_prefix("cuda")
        .or_else(|| callee.strip_prefix("hip"));
    matches!(
        callee,
        Some("MallocManaged" | "HostGetDevicePointer" | "Memcpy" | "MemcpyAsync")
    )
}

pub(super) const LOOPS: &[Kind] = &[
    Kind::ForStatement,
    Kind::WhileStatement,
    Kind::DoStatement,
    Kind::ForRangeLoop,
];

fn launch<'t>(root: Node<'t>, place: &Range<usize>) -> Option<Node<'t>> {
    let mut node = root.descendant_for_byte_range(place.start, place.end)?;
    loop {
        let call = CallExpression::cast(node);
        if call.and_then(CallExpression::launch).is_some() {
            return Some(node);
        }
        node = node.parent()?;
    }
}

pub(super) fn around<'t>(node: Node<'t>, kinds: &[Kind]) -> Option<Node<'t>> {
    let mut at = node.parent()?;
    while !kinds.contains(&at.kind()) {
        at = at.parent()?;
    }
    Some(at)
}

/// The nodes of some kinds below one, within the bound; false where that left some out.
pub(super) fn within<'t>(node: Node<'t>, kinds: &[Kind], found: &mut Vec<Node<'t>>) -> bool {
    let mut open = vec![node];
    for _ in 0..MOST_NODES {
        let Some(node) = open.pop() else {
            return true;
        };
        if kinds.contains(&node.kind()) {
            found.push(node);
        }
        open.extend(named(node));
    }
    open.is_empty()
}

fn named(node: Node) -> Vec<Node> {
    node.named_children()
        .filter(|child| child.kind() != Kind::Comment)
        .collect()
}

fn arguments_of(call: Node) -> Vec<Node> {
    call.field(Field::Arguments).map(named).unwrap_or_default()
}

pub(super) fn text_at<'t>(node: Node, source: Source<'t>) -> &'t str {
    source.parsed.text.get(node.byte_range()).unwrap_or("")
}

/// The variable that a pointer is: through casts, `&`, `.data()`.
fn root<'t>(node: Node, source: Source<'t>) -> Option<&'t str> {
    let mut at = node;
    for _ in 0..8 {
        at = match at.kind() {
            Kind::Identifier => return Some(text_at(at, source)),
            Kind::CastExpression => at.field(Field::Value)?,
            Kind::PointerExpression | Kind::SubscriptExpression | Kind::FieldExpression => {
                at.field(Field::Argument)?
            }
            Kind::ParenthesizedExpression => at.named_child(0)?,
            Kind::CallExpression => at.field(Field::Function)?,
            _ => return None,
        };
    }
    None
}

/// What a call does with the memory of that name.
fn kind(
    call: Node,
    name: &str,
    source: Source,
    pageable: &mut dyn FnMut(&str) -> bool,
    turns: Option<Node>,
    ahead: bool,
) -> Option<HostMemoryKind> {
    let callee = text_at(call.field(Field::Function)?, source);
    let callee = callee
        .strip_prefix("cuda")
        .or_else(|| callee.strip_prefix("hip"))?;
    let arguments = arguments_of(call);
    let names = |at: usize| arguments.get(at).and_then(|node| root(*node, source));
    match callee {
        "MallocManaged" if !ahead && names(0) == Some(name) => Some(HostMemoryKind::Managed),
        "HostGetDevicePointer" if names(0) == Some(name) => Some(HostMemoryKind::Mapped),
        "Memcpy" | "MemcpyAsync" => {
            let turns = turns?;
            if call.start_byte() < turns.start_byte() || call.end_byte() > turns.end_byte() {
                return None;
            }
            let way = arguments.get(3).map(|way| text_at(*way, source))?;
            let host = if way.ends_with("HostToDevice") && names(0) == Some(name) {
                names(1)
            } else if way.ends_with("DeviceToHost") && names(1) == Some(name) {
                names(0)
            } else {
                None
            }?;
            pageable(host).then_some(HostMemoryKind::Pageable)
        }
        _ => None,
    }
}

/// True where a call in the loop copies the same memory of the host to `name` in each turn: the loop names the one in the copy alone,
/// the other in the copy and in the launch.
fn is_repeated(call: Node, launch: Node, name: &str, source: Source, turns: Node) -> bool {
    let inside = call.start_byte() >= turns.start_byte() && call.end_byte() <= turns.end_byte();
    let callee = call
        .field(Field::Function)
        .map_or("", |callee| text_at(callee, source));
    let arguments = arguments_of(call);
    let copies = matches!(
        callee,
        "cudaMemcpy" | "cudaMemcpyAsync" | "hipMemcpy" | "hipMemcpyAsync"
    ) && arguments
        .get(3)
        .is_some_and(|way| text_at(*way, source).ends_with("HostToDevice"))
        && arguments.first().and_then(|to| root(*to, source)) == Some(name);
    let Some(from) = arguments.get(1).filter(|_| copies && inside) else {
        return false;
    };
    // The whole of it: what begins somewhere else in each turn is another piece.
    let whole = matches!(from.kind(), Kind::Identifier | Kind::CallExpression)
        && matches!(arguments[0].kind(), Kind::Identifier);
    let Some(host) = root(*from, source).filter(|_| whole) else {
        return false;
    };
    let mut names = Vec::new();
    if !within(turns, &[Kind::Identifier], &mut names) {
        return false;
    }
    let inside = |whole: Node, node: &Node| whole.byte_range().contains(&node.start_byte());
    names.iter().all(|node| match text_at(*node, source) {
        text if text == host => inside(call, node),
        text if text == name => inside(call, node) || inside(launch, node),
        _ => true,
    })
}

/// True where the function shows that the host's memory of that name comes from the heap, and nothing in it pins that.
fn is_pageable(function: Node, name: &str, source: Source) -> bool {
    const HEAP: [&str; 4] = ["malloc(", "calloc(", "new ", "vector<"];
    const PINNED: [&str; 4] = ["MallocHost", "HostAlloc", "HostMalloc", "HostRegister"];
    let body = text_at(function, source);
    if PINNED.iter().any(|word| body.contains(word)) {
        return false;
    }
    let mut declared = Vec::new();
    let kinds = [Kind::Declaration, Kind::AssignmentExpression];
    within(function, &kinds, &mut declared);
    declared.into_iter().any(|node| {
        let holder = match node.kind() {
            Kind::AssignmentExpression => node.field(Field::Left).map(|left| text_at(left, source)),
            _ => declares(node, name, source).then_some(name),
        };
        let text = text_at(node, source);
        // A `cudaMalloc(` is no `malloc(`.
        holder == Some(name)
            && HEAP.iter().any(|word| {
                text.match_indices(word)
                    .any(|(at, _)| !text[..at].ends_with(is_word_part))
            })
    })
}

/// True where one of a declaration's declarators has that name.
fn declares(declaration: Node, name: &str, source: Source) -> bool {
    declaration.fields(Field::Declarator).any(|declarator| {
        let mut at = Some(declarator);
        for _ in 0..8 {
            let Some(node) = at else {
                return false;
            };
            if node.kind() == Kind::Identifier {
                return text_at(node, source) == name;
            }
            at = node
                .field(Field::Declarator)
                .or_else(|| node.named_child(0));
        }
        false
    })
}
