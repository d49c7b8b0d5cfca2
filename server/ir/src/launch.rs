//! Where kernels are launched in the same file, and with what.

use std::ops::Range;

use rustc_hash::FxHashMap;
use warplens_syntax::{Node, Parsed};

use crate::lower::Lowering;
use crate::{Item, Unit};

/// One `kernel<<<grid, block, shared>>>(arguments)`; what is not a constant is absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchSite {
    /// The kernel's plain name.
    pub kernel: String,
    /// Bytes of the launch, from the kernel's name to `>>>`, counted from the function's first byte.
    pub range: Range<usize>,
    /// Blocks.
    pub grid: Option<[u64; 3]>,
    /// Threads of a block.
    pub block: Option<[u64; 3]>,
    /// Dynamic shared memory in bytes.
    pub dynamic_shared_bytes: Option<u64>,
    /// Integer arguments by position.
    pub arguments: Vec<Option<i64>>,
    /// Template arguments by position, as written.
    pub template_args: Vec<String>,
}

/// Every launch in one function of a file; ranges count from the function's first byte.
pub fn launch_sites(parsed: &Parsed, item: &Item, unit: &Unit) -> Vec<LaunchSite> {
    let mut found = Vec::new();
    let root = parsed.tree.root_node();
    let mut node = root.descendant_for_byte_range(item.range.end - 1, item.range.end);
    while let Some(at) = node
        && at.kind() != "function_definition"
    {
        node = at.parent();
    }
    if let Some(node) = node {
        let mut host = Host {
            parsed,
            unit: unit.clone(),
            dims: FxHashMap::default(),
        };
        host.walk(node, &mut found);
    }
    for site in &mut found {
        let start = item.range.start;
        site.range = site.range.start.saturating_sub(start)..site.range.end.saturating_sub(start);
    }
    found
}

struct Host<'a> {
    parsed: &'a Parsed,
    /// The file's constants and the function's, as far as the walk has come.
    unit: Unit,
    dims: FxHashMap<String, [u64; 3]>,
}

impl Host<'_> {
    fn text(&self, node: Node) -> &str {
        &self.parsed.text[node.byte_range()]
    }

    fn walk(&mut self, node: Node, out: &mut Vec<LaunchSite>) {
        match node.kind() {
            "declaration" => self.declaration(node),
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
        if node.kind() == "parameter_declaration" {
            // `dim3 block(TILE, TILE)` reads as a function of two types.
            let text = self.text(node).to_owned();
            return Lowering::new(&mut self.unit, self.parsed, 0).constant_text(&text);
        }
        Lowering::new(&mut self.unit, self.parsed, 0).constant_node(node)
    }

    fn extent(&mut self, node: Node) -> Option<u64> {
        self.number(node)
            .and_then(|value| u64::try_from(value).ok())
    }

    fn declaration(&mut self, node: Node) {
        let dim3 = node
            .child_by_field_name("type")
            .is_some_and(|ty| self.text(ty) == "dim3");
        let mut cursor = node.walk();
        let declarators: Vec<Node> = node
            .children_by_field_name("declarator", &mut cursor)
            .collect();
        for declarator in declarators {
            if declarator.kind() != "init_declarator" && declarator.kind() != "function_declarator"
            {
                continue;
            }
            let Some(name) = declarator.child_by_field_name("declarator") else {
                continue;
            };
            let name = self.text(name).to_owned();
            let value = declarator
                .child_by_field_name("value")
                .or_else(|| declarator.child_by_field_name("parameters"));
            let Some(value) = value else { continue };
            if dim3 {
                if let Some(extents) = self.dimensions(value) {
                    self.dims.insert(name, extents);
                }
            } else if let Some(number) = self.number(value) {
                self.unit.constants.insert(name, number);
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
            self.unit.constants.remove(&name);
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
        let name_node = match function.kind() {
            "template_function" => function.child_by_field_name("name").unwrap_or(function),
            _ => function,
        };
        let name = self.text(name_node);
        let kernel = name.rsplit("::").next().unwrap_or(name).trim().to_owned();
        let mut template_args = Vec::new();
        if let Some(arguments) = function.child_by_field_name("arguments") {
            let mut cursor = arguments.walk();
            for argument in arguments.named_children(&mut cursor) {
                let text = self.text(argument).to_owned();
                // A constant of the host function is written as its value.
                let value = self.number(argument);
                template_args.push(value.map_or(text, |value| value.to_string()));
            }
        }
        let mut cursor = config.walk();
        let parts: Vec<Node> = config
            .named_children(&mut cursor)
            .filter(|part| part.kind() != "comment")
            .collect();
        let arguments = call
            .child_by_field_name("arguments")
            .map(|list| {
                let mut cursor = list.walk();
                let children: Vec<Node> = list
                    .named_children(&mut cursor)
                    .filter(|c| c.kind() != "comment")
                    .collect();
                children
                    .into_iter()
                    .map(|argument| self.number(argument))
                    .collect()
            })
            .unwrap_or_default();
        let grid = parts.first().and_then(|&part| self.dimensions(part));
        let block = parts.get(1).and_then(|&part| self.dimensions(part));
        let dynamic_shared_bytes = parts.get(2).and_then(|&part| self.extent(part));
        out.push(LaunchSite {
            kernel,
            range: call.start_byte()..config.end_byte(),
            grid,
            block,
            dynamic_shared_bytes,
            arguments,
            template_args,
        });
    }
}
