//! What a file declares around its kernels: macros, types, constants, functions.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use warplens_syntax::{Language, Node, Parsed};

use crate::lower::Lowering;
use crate::{AddressSpace, Item, ItemKind, Type};

/// A macro.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Macro {
    /// Parameters of a function-like macro.
    pub params: Option<Vec<String>>,
    /// Its text.
    pub body: String,
}

/// A file's declarations.
#[derive(Debug, Clone)]
pub struct Unit {
    /// The language.
    pub language: Language,
    /// Macros by name; those defined from outside win.
    pub macros: FxHashMap<String, Macro>,
    /// Types by name.
    pub types: FxHashMap<String, Type>,
    /// Integer constants by name: `const`, `constexpr`, `enum`, bound template parameters.
    pub constants: FxHashMap<String, i64>,
    /// Arrays and variables at file scope that live on the device.
    pub globals: FxHashMap<String, (Type, AddressSpace)>,
    /// Functions that kernels may call, by name: their bytes in the file, filled in when a kernel is lowered.
    pub functions: FxHashMap<String, Range<usize>>,
}

impl Unit {
    /// A unit without declarations but those from outside.
    pub fn empty(language: Language, defines: &[(String, String)]) -> Unit {
        let macros = defines
            .iter()
            .map(|(name, body)| {
                (
                    name.clone(),
                    Macro {
                        params: None,
                        body: body.clone(),
                    },
                )
            })
            .collect();
        Unit {
            language,
            macros,
            types: FxHashMap::default(),
            constants: FxHashMap::default(),
            globals: FxHashMap::default(),
            functions: FxHashMap::default(),
        }
    }

    /// Everything a file declares, in order. `defines` come from outside the file and win.
    pub fn new(
        parsed: &Parsed,
        language: Language,
        items: &[Item],
        defines: &[(String, String)],
    ) -> Unit {
        let mut unit = Unit::empty(language, defines);
        let root = parsed.tree.root_node();
        for item in items {
            match &item.kind {
                ItemKind::Kernel(_) | ItemKind::Function(_) => {}
                ItemKind::Declaration => {
                    let Some(node) =
                        root.descendant_for_byte_range(item.range.end - 1, item.range.end)
                    else {
                        continue;
                    };
                    // Up to the node that covers the item.
                    let mut node = node;
                    while let Some(parent) = node.parent() {
                        if parent.parent().is_none() || parent.start_byte() < item.range.start {
                            break;
                        }
                        node = parent;
                    }
                    unit.declare(node, parsed);
                }
            }
        }
        unit
    }

    fn declare(&mut self, node: Node, parsed: &Parsed) {
        let text = |node: Node| parsed.text[node.byte_range()].to_owned();
        match node.kind() {
            "preproc_def" | "preproc_function_def" => {
                let Some(name) = node.child_by_field_name("name") else {
                    return;
                };
                let params = node.child_by_field_name("parameters").map(|params| {
                    let mut cursor = params.walk();
                    params.named_children(&mut cursor).map(text).collect()
                });
                let body = node
                    .child_by_field_name("value")
                    .map(text)
                    .unwrap_or_default();
                let body = strip_comment(&body).replace("\\\n", " ").trim().to_owned();
                // What is defined from outside is not defined again.
                self.macros
                    .entry(text(name))
                    .or_insert(Macro { params, body });
            }
            "struct_specifier" | "class_specifier" | "union_specifier" | "enum_specifier" => {
                Lowering::new(self, parsed, 0).declare_type(node);
            }
            "type_definition" | "alias_declaration" => {
                let found = Lowering::new(self, parsed, 0).typedefs(node);
                self.types.extend(found);
            }
            "declaration" => {
                let mut cursor = node.walk();
                let inner: Vec<Node> = node
                    .children(&mut cursor)
                    .filter(|child| child.kind().ends_with("_specifier"))
                    .collect();
                for child in inner {
                    if child.child_by_field_name("body").is_some() {
                        self.declare(child, parsed);
                    }
                }
                let (constants, globals) = Lowering::new(self, parsed, 0).file_variables(node);
                self.constants.extend(constants);
                self.globals.extend(globals);
            }
            _ => {}
        }
    }

    /// A structure, once it is laid out.
    pub(crate) fn add_struct(&mut self, structure: crate::Struct) {
        self.types
            .insert(structure.name.clone(), Type::Struct(Arc::new(structure)));
    }
}

fn strip_comment(text: &str) -> &str {
    let end = text.find("//").unwrap_or(text.len());
    let end = text.find("/*").map_or(end, |block| block.min(end));
    &text[..end]
}
