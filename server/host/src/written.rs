//! What a kernel writes of what it is given, by its text: behind a launch that is not known.

use super::index::declared_name;
use super::nodes::{parameter_list, parts, text};
use super::state::Host;
use super::value::{KernelName, Value};
use std::sync::Arc;

use warplens_hir::{Item, ItemKind, Source, node_ending};
use warplens_syntax::nodes::PointerExpression;
use warplens_syntax::{Expanded, Field, Kind, Node, PointerOperator, has_word};

/// Nodes of a kernel that are looked at.
const MOST_NODES: usize = 50_000;

impl Host<'_> {
    /// Behind a launch of one of these kernels: the memory that it may write is not known.
    pub(super) fn forget_written(&mut self, kernels: &[KernelName], arguments: &[Value]) {
        if self.running.is_none() {
            return;
        }
        for (at, argument) in arguments.iter().enumerate() {
            let mut slots = Vec::new();
            pointed(argument, &mut slots);
            slots.retain(|slot| {
                let known = self.slots.get(*slot);
                known.is_some_and(|known| known.value != Value::Unknown)
            });
            if slots.is_empty() {
                continue;
            }
            let plain = matches!(argument, Value::Address(_));
            let written = !plain
                || kernels.is_empty()
                || kernels.iter().any(|one| self.writes(&one.name, at));
            if written {
                for slot in slots {
                    self.forget(slot);
                }
            }
        }
    }

    /// Whether a kernel may write to what its parameter points to.
    fn writes(&mut self, kernel: &str, at: usize) -> bool {
        let key = (kernel.to_owned(), at);
        if let Some(known) = self.writes.get(&key) {
            return *known;
        }
        let functions = self.index.by_name.get(kernel).into_iter().flatten();
        let mut all = functions
            .map(|&of| &self.index.functions[of])
            .filter(|function| function.kernel)
            .peekable();
        let writes = all.peek().is_none()
            || all.any(|function| {
                may_write(function.node, at, self.source_in(function)).unwrap_or(true)
            });
        self.writes.insert(key, writes);
        writes
    }
}

/// Whether a kernel that texts define may write to what its parameter of that number points to; true where none defines it.
pub fn may_write_to(texts: &[(&Arc<Expanded>, &[Item])], kernel: &str, at: usize) -> bool {
    let defined = texts.iter().flat_map(|(text, items)| {
        let named = |item: &&Item| matches!(&item.kind, ItemKind::Kernel(name) if name == kernel);
        items.iter().filter(named).map(move |item| (*text, item))
    });
    let mut all = defined.peekable();
    all.peek().is_none()
        || all.any(|(text, item)| {
            let node = node_ending(text, &item.range, &[Kind::FunctionDefinition]);
            node.and_then(|node| may_write(node, at, Source::new(text, false)))
                .unwrap_or(true)
        })
}

/// The variables that a value leads to.
fn pointed(value: &Value, slots: &mut Vec<usize>) {
    match value {
        Value::Address(place) => slots.push(place.slot),
        Value::Record(record) => {
            for (_, value) in &record.fields {
                pointed(value, slots);
            }
        }
        _ => {}
    }
}

/// Whether a function's parameter may be written through; `None` where its text does not say.
fn may_write(function: Node, at: usize, source: Source) -> Option<bool> {
    let parameter = parts(parameter_list(function)?).into_iter().nth(at)?;
    let declared = text(parameter, source);
    let star = declared.rfind('*')?;
    if has_word(&declared[..star], "const") {
        return Some(false);
    }
    let name = text(declared_name(parameter.field(Field::Declarator)?), source);
    let body = function.field(Field::Body)?;
    let mut open = vec![body];
    let mut seen = 0;
    while let Some(node) = open.pop() {
        seen += 1;
        if seen > MOST_NODES {
            return None;
        }
        if node.kind() == Kind::Identifier && text(node, source) == name && is_written(node) {
            return Some(true);
        }
        open.extend(node.named_children());
    }
    Some(false)
}

/// Whether a use of a pointer is anything but a load.
fn is_written(name: Node) -> bool {
    let mut at = name;
    let mut loaded = false;
    loop {
        let Some(parent) = at.parent() else {
            return true;
        };
        let is = |field: Field| parent.field(field).is_some_and(|part| part.id() == at.id());
        match parent.kind() {
            Kind::SubscriptExpression if is(Field::Argument) => loaded = true,
            Kind::FieldExpression if loaded => {}
            Kind::ParenthesizedExpression => {}
            Kind::PointerExpression => {
                let operator = PointerExpression::cast(parent).and_then(PointerExpression::op);
                if operator != Some(PointerOperator::Dereference) {
                    return true;
                }
                loaded = true;
            }
            Kind::AssignmentExpression => return !loaded || is(Field::Left),
            Kind::UpdateExpression => return true,
            Kind::InitDeclarator => {
                let declared = parent.field(Field::Declarator);
                return !loaded
                    || declared.is_some_and(|of| of.kind() == Kind::ReferenceDeclarator);
            }
            _ => return !loaded,
        }
        at = parent;
    }
}
