//! Where kernels are launched in a file, and with what.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use warplens_syntax::{Expanded, Node};

use crate::lower::{Lowering, Source};
use crate::types::Bound;
use crate::unit::node_ending;
use crate::{Item, Type, Unit};

/// One `kernel<<<grid, block, shared>>>(arguments)`; what is not a constant is absent.
#[derive(Debug, Clone, PartialEq)]
pub struct LaunchSite {
    /// The kernel's plain name.
    pub kernel: String,
    /// Bytes of the launch in the source, from the kernel's name to `>>>`, counted from the function's first.
    pub range: Range<usize>,
    /// Blocks.
    pub grid: Option<[u64; 3]>,
    /// Threads of a block.
    pub block: Option<[u64; 3]>,
    /// Dynamic shared memory in bytes.
    pub dynamic_shared_bytes: Option<u64>,
    /// Integer arguments by position.
    pub arguments: Vec<Option<i64>>,
    /// Template arguments by position.
    pub template_args: Vec<Option<Bound>>,
    /// Types of the arguments by position.
    pub argument_types: Vec<Option<Type>>,
}

impl LaunchSite {
    /// Stands for a launch that nobody saw.
    pub fn unknown(kernel: &str) -> LaunchSite {
        LaunchSite {
            kernel: kernel.to_owned(),
            range: 0..0,
            grid: None,
            block: None,
            dynamic_shared_bytes: None,
            arguments: Vec::new(),
            template_args: Vec::new(),
            argument_types: Vec::new(),
        }
    }
}

impl LaunchSite {
    /// The same without types that are classes or lambdas of the file: those hold on to its text.
    pub fn without_classes(&self) -> LaunchSite {
        let light = |ty: &Option<Type>| ty.clone().filter(|ty| !ty.holds_text());
        LaunchSite {
            template_args: self
                .template_args
                .iter()
                .map(|bound| {
                    bound
                        .clone()
                        .filter(|bound| !matches!(bound, Bound::Type(ty) if ty.holds_text()))
                })
                .collect(),
            argument_types: self.argument_types.iter().map(light).collect(),
            ..self.clone()
        }
    }
}

/// Every launch in one function of a file; ranges count from the function's first byte.
pub fn launch_sites(parsed: &Arc<Expanded>, item: &Item, unit: &Unit) -> Vec<LaunchSite> {
    let mut found = Vec::new();
    if let Some(node) = node_ending(parsed, &item.range, &["function_definition"]) {
        let mut host = Host {
            parsed,
            lowering: Lowering::for_unit(unit, parsed, false),
            dims: FxHashMap::default(),
        };
        host.walk(node, &mut found);
    }
    for site in &mut found {
        let start = item.source.start;
        site.range = site.range.start.saturating_sub(start)..site.range.end.saturating_sub(start);
    }
    found
}

struct Host<'a> {
    parsed: &'a Arc<Expanded>,
    /// Knows the file's constants and the function's, as far as the walk has come.
    lowering: Lowering<'a>,
    dims: FxHashMap<String, [u64; 3]>,
}

impl<'a> Host<'a> {
    fn text(&self, node: Node) -> &'a str {
        &self.parsed.text[node.byte_range()]
    }

    fn source(&self) -> Source<'a> {
        Source::own(self.parsed)
    }

    fn walk(&mut self, node: Node, out: &mut Vec<LaunchSite>) {
        match node.kind() {
            "declaration" => self.declaration(node),
            "parameter_declaration" => self.parameter(node),
            "assignment_expression" | "update_expression" => self.forget(node),
            "call_expression" => {
                let mut cursor = node.walk();
                let config = node
                    .children(&mut cursor)
                    .find(|child| child.kind() == "kernel_call_syntax");
                if let Some(config) = config {
                    self.launch(node, config, out);
                }
            }
            _ => {}
        }
        let mut cursor = node.walk();
        let children: Vec<Node> = node.named_children(&mut cursor).collect();
        for child in children {
            self.walk(child, out);
        }
    }

    fn number(&mut self, node: Node) -> Option<i64> {
        let source = self.source();
        let node = match node.kind() {
            // `dim3 block(TILE, TILE)` reads as a function of two types.
            "parameter_declaration" => node.child_by_field_name("type")?,
            _ => node,
        };
        self.lowering.constant_node(node, source)
    }

    fn extent(&mut self, node: Node) -> Option<u64> {
        self.number(node)
            .and_then(|value| u64::try_from(value).ok())
    }

    fn parameter(&mut self, node: Node) {
        let source = self.source();
        self.lowering.declare_host(node, source);
    }

    fn declaration(&mut self, node: Node) {
        let source = self.source();
        let dim3 = node
            .child_by_field_name("type")
            .is_some_and(|ty| self.text(ty) == "dim3");
        if !dim3 {
            self.lowering.declare_host(node, source);
            return;
        }
        let mut cursor = node.walk();
        let declarators: Vec<Node> = node
            .children_by_field_name("declarator", &mut cursor)
            .collect();
        for declarator in declarators {
            let Some(name) = declarator.child_by_field_name("declarator") else {
                continue;
            };
            let name = self.text(name).to_owned();
            let value = declarator
                .child_by_field_name("value")
                .or_else(|| declarator.child_by_field_name("parameters"));
            let Some(value) = value else { continue };
            if let Some(extents) = self.dimensions(value) {
                self.dims.insert(name, extents);
            }
        }
    }

    /// A variable that changes is not a constant any more.
    fn forget(&mut self, node: Node) {
        let target = node
            .child_by_field_name("left")
            .or_else(|| node.child_by_field_name("argument"));
        if let Some(target) = target {
            let name = self.text(target).to_owned();
            let name = name.split(['.', '[']).next().unwrap_or(&name).to_owned();
            self.lowering.forget_host(&name);
            self.dims.remove(&name);
        }
    }

    /// `n`, `dim3(x, y)`, `{x, y}`, a variable: three extents.
    fn dimensions(&mut self, node: Node) -> Option<[u64; 3]> {
        match node.kind() {
            "identifier" => {
                if let Some(&extents) = self.dims.get(self.text(node)) {
                    return Some(extents);
                }
            }
            "call_expression" => {
                let function = node.child_by_field_name("function")?;
                if self.text(function) == "dim3" {
                    return self.dimensions(node.child_by_field_name("arguments")?);
                }
            }
            "argument_list" | "initializer_list" | "parameter_list" => {
                let mut cursor = node.walk();
                let parts: Vec<Node> = node.named_children(&mut cursor).collect();
                let mut extents = [1; 3];
                if parts.len() > 3 {
                    return None;
                }
                for (axis, part) in parts.into_iter().enumerate() {
                    extents[axis] = self.extent(part)?;
                }
                return Some(extents);
            }
            _ => {}
        }
        self.extent(node).map(|x| [x, 1, 1])
    }

    fn launch(&mut self, call: Node, config: Node, out: &mut Vec<LaunchSite>) {
        let Some(function) = call.child_by_field_name("function") else {
            return;
        };
        let source = self.source();
        let mut name_node = function;
        let mut template_args = Vec::new();
        loop {
            if let Some(arguments) = name_node.child_by_field_name("arguments") {
                template_args = self
                    .lowering
                    .template_arguments(arguments, source)
                    .into_iter()
                    .map(|bound| match bound {
                        Bound::Type(Type::Unknown(_)) => None,
                        bound => Some(bound),
                    })
                    .collect();
            }
            match name_node.kind() {
                "template_function" | "qualified_identifier" | "dependent_name" => {
                    match name_node.child_by_field_name("name") {
                        Some(inner) => name_node = inner,
                        None => break,
                    }
                }
                _ => break,
            }
        }
        let kernel = self.text(name_node).trim().to_owned();
        let parts = |node: Node<'a>| -> Vec<Node<'a>> {
            let mut cursor = node.walk();
            node.named_children(&mut cursor)
                .filter(|part| part.kind() != "comment")
                .collect()
        };
        let _ = parts;
        let mut cursor = config.walk();
        let config_parts: Vec<Node> = config
            .named_children(&mut cursor)
            .filter(|part| part.kind() != "comment")
            .collect();
        let (mut arguments, mut argument_types) = (Vec::new(), Vec::new());
        if let Some(list) = call.child_by_field_name("arguments") {
            let mut cursor = list.walk();
            let children: Vec<Node> = list
                .named_children(&mut cursor)
                .filter(|part| part.kind() != "comment")
                .collect();
            for argument in children {
                arguments.push(self.number(argument));
                argument_types.push(self.lowering.type_of_host(argument, source));
            }
        }
        let grid = config_parts.first().and_then(|&part| self.dimensions(part));
        let block = config_parts.get(1).and_then(|&part| self.dimensions(part));
        let dynamic_shared_bytes = config_parts.get(2).and_then(|&part| self.extent(part));
        let place = self.parsed.place(call.start_byte()..config.end_byte());
        out.push(LaunchSite {
            kernel,
            range: place.range,
            grid,
            block,
            dynamic_shared_bytes,
            arguments,
            template_args,
            argument_types,
        });
    }
}
