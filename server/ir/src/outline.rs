//! The top level of a file: kernels, functions, and what they depend on.

use std::ops::Range;

use warplens_syntax::{Language, Node, Parsed};

/// Something at the top level (namespaces, `extern "C"`, templates and conditionals looked through).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// What it is.
    pub kind: ItemKind,
    /// Its bytes; a kernel's begin at its template header or qualifiers.
    pub range: Range<usize>,
    /// 0-based line of the first byte.
    pub line: u32,
    /// 0-based byte column of the first byte.
    pub column: u32,
}

/// Kinds of items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ItemKind {
    /// A kernel, by name.
    Kernel(String),
    /// Any other function with a body, by name.
    Function(String),
    /// A macro, a type, a constant, a declaration.
    Declaration,
}

/// The items of a file in order.
pub fn outline(parsed: &Parsed, language: Language) -> Vec<Item> {
    let mut items = Vec::new();
    walk(parsed.tree.root_node(), None, parsed, language, &mut items);
    items
}

/// `header` is the template declaration around the node.
fn walk(
    node: Node,
    header: Option<Node>,
    parsed: &Parsed,
    language: Language,
    out: &mut Vec<Item>,
) {
    let mut cursor = node.walk();
    for child in node.children(&mut cursor) {
        match child.kind() {
            "function_definition" => {
                let from = header.unwrap_or(child);
                let Some(name) = function_name(child, parsed) else {
                    continue;
                };
                let start = first_byte(from, parsed);
                let kernel = is_kernel(child, start, parsed, language);
                out.push(Item {
                    kind: if kernel {
                        ItemKind::Kernel(name)
                    } else {
                        ItemKind::Function(name)
                    },
                    range: start..child.end_byte(),
                    line: (from.start_position().row
                        - parsed.text[start..from.start_byte()].matches('\n').count())
                        as u32,
                    column: column_of(&parsed.text, start),
                });
            }
            "template_declaration" => {
                walk(child, Some(header.unwrap_or(child)), parsed, language, out);
            }
            "namespace_definition"
            | "declaration_list"
            | "linkage_specification"
            | "preproc_if"
            | "preproc_ifdef"
            | "preproc_else"
            | "preproc_elif"
            | "ERROR" => {
                walk(child, None, parsed, language, out);
            }
            "preproc_def"
            | "preproc_function_def"
            | "struct_specifier"
            | "class_specifier"
            | "union_specifier"
            | "enum_specifier"
            | "type_definition"
            | "alias_declaration"
            | "declaration"
            | "preproc_include"
            | "expression_statement" => out.push(Item {
                kind: ItemKind::Declaration,
                range: first_byte(child, parsed)..child.end_byte(),
                line: child.start_position().row as u32,
                column: child.start_position().column as u32,
            }),
            _ => {}
        }
    }
}

fn column_of(text: &str, at: usize) -> u32 {
    (at - text[..at].rfind('\n').map_or(0, |newline| newline + 1)) as u32
}

/// Where the item begins, blanked qualifiers before it included.
fn first_byte(node: Node, parsed: &Parsed) -> usize {
    let start = node.start_byte();
    let mut first = start;
    for word in parsed
        .words
        .iter()
        .rev()
        .skip_while(|word| word.range.end > start)
    {
        let between = &parsed.text[word.range.end.min(first)..first];
        if between.chars().all(char::is_whitespace) {
            first = word.range.start;
        } else {
            break;
        }
    }
    first
}

fn is_kernel(node: Node, start: usize, parsed: &Parsed, language: Language) -> bool {
    if language == Language::OpenCl {
        let head = start
            ..node
                .child_by_field_name("body")
                .map_or(node.end_byte(), |b| b.start_byte());
        return parsed
            .words
            .iter()
            .any(|word| word.name == "kernel" && head.contains(&word.range.start));
    }
    let mut cursor = node.walk();
    let global = node
        .children(&mut cursor)
        .any(|child| child.kind() == "__global__");
    global && node.child_by_field_name("body").is_some()
}

/// The declarator that names a function: through pointers, references and parentheses.
pub(crate) fn function_declarator(node: Node<'_>) -> Option<Node<'_>> {
    let mut declarator = node.child_by_field_name("declarator")?;
    for _ in 0..8 {
        if declarator.kind() == "function_declarator" {
            return Some(declarator);
        }
        declarator = declarator
            .child_by_field_name("declarator")
            .or_else(|| declarator.named_child(0))?;
    }
    None
}

fn function_name(node: Node, parsed: &Parsed) -> Option<String> {
    let name = function_declarator(node)?.child_by_field_name("declarator")?;
    let text = &parsed.text[name.byte_range()];
    let text = text.rsplit("::").next().unwrap_or(text);
    let text = text.split('<').next().unwrap_or(text).trim();
    (!text.is_empty()).then(|| text.to_owned())
}
