//! The top level of a file: kernels, functions, and what they depend on.

use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHasher;

use warplens_syntax::{Children, Expanded, Field, Kind, Node};

use crate::namespaces::{Space, joined, namespace_name};

/// Something at the top level (namespaces, `extern "C"` and templates looked through).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// What it is.
    pub kind: ItemKind,
    /// Its bytes in the expanded text; a kernel's begin at its template header or qualifiers.
    pub range: Range<usize>,
    /// Its bytes in the source.
    pub source: Range<usize>,
    /// 0-based line of the first byte in the source.
    pub line: u32,
    /// 0-based byte column of the first byte in the source.
    pub column: u32,
    /// The namespaces around it.
    pub space: Space,
    /// How the parser reads it where it finds it broken, which depends on what was parsed before; 0 where it is sound.
    pub reading: u64,
}

/// Kinds of items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ItemKind {
    /// A kernel, by name.
    Kernel(String),
    /// Any other function with a body, by name; members defined outside their class are `Class::name`.
    Function(String),
    /// A type, a constant, a declaration, a `using`.
    Declaration,
}

/// The items of a text in order.
pub fn outline(parsed: &Expanded) -> Vec<Item> {
    let mut items = Vec::new();
    // Blocks may lie in each other as deep as a file likes: no kernel is lost for that, and the stack does not grow.
    let mut open = vec![Block {
        children: parsed.tree.root_node().children(),
        header: None,
        space: Space::from(""),
    }];
    while let Some(block) = open.last_mut() {
        let inner = match block.children.next() {
            Some(child) => block.enter(child, parsed, &mut items),
            None => {
                open.pop();
                continue;
            }
        };
        open.extend(inner);
    }
    items
}

/// Broken code is told apart by its errors down to here.
const DEEPEST: u32 = 64;
/// Longest name of namespaces, in bytes: what lies deeper counts as in the last of these.
const LONGEST_SPACE: usize = 1 << 10;

/// A file, a namespace, a template or a pair of braces, and where in it the walk is.
struct Block<'t> {
    children: Children<'t>,
    /// The template declaration around.
    header: Option<Node<'t>>,
    space: Space,
}

impl<'t> Block<'t> {
    /// Notes an item, or gives the block that the node is.
    fn enter(&self, node: Node<'t>, parsed: &Expanded, out: &mut Vec<Item>) -> Option<Block<'t>> {
        let inner = |header, space: &Space| {
            Some(Block {
                children: node.children(),
                header,
                space: Arc::clone(space),
            })
        };
        let from = self.header.unwrap_or(node);
        let space = &self.space;
        match node.kind() {
            Kind::FunctionDefinition => {
                let name = function_name(node, parsed)?;
                let start = first_byte(from, parsed);
                let kind = if is_kernel(node, start, parsed) {
                    ItemKind::Kernel(name.rsplit("::").next().unwrap_or(&name).to_owned())
                } else {
                    ItemKind::Function(name)
                };
                let mut found = item(kind, from, start, space, parsed);
                let marker = behind_half_typed(node, parsed);
                if let Some(marker) = marker.filter(|_| self.header.is_none()) {
                    let place = parsed.place(marker..from.end_byte());
                    (found.source, found.line, found.column) =
                        (place.range, place.line, place.column);
                }
                out.push(found);
                None
            }
            Kind::TemplateDeclaration => inner(Some(from), space),
            Kind::NamespaceDefinition => match namespace_name(node, &parsed.text) {
                Some(name) if space.len() + name.len() <= LONGEST_SPACE => {
                    inner(None, &joined(space, &name))
                }
                _ => inner(None, space),
            },
            Kind::DeclarationList | Kind::LinkageSpecification | Kind::Error => inner(None, space),
            Kind::StructSpecifier
            | Kind::ClassSpecifier
            | Kind::UnionSpecifier
            | Kind::EnumSpecifier
            | Kind::TypeDefinition
            | Kind::AliasDeclaration
            | Kind::ConceptDefinition
            | Kind::Declaration
            | Kind::ExpressionStatement
            | Kind::TemplateInstantiation
            | Kind::UsingDeclaration
            | Kind::NamespaceAliasDefinition => {
                let start = first_byte(from, parsed);
                out.push(item(ItemKind::Declaration, from, start, space, parsed));
                None
            }
            _ => None,
        }
    }
}

fn item(kind: ItemKind, node: Node, start: usize, space: &Space, parsed: &Expanded) -> Item {
    let range = start..node.end_byte();
    let place = parsed.place(range.clone());
    let mut reading = FxHasher::default();
    if node.has_error() {
        node.descendant_count().hash(&mut reading);
        errors(node, start, 0, &mut reading);
    }
    Item {
        kind,
        range,
        source: place.range,
        line: place.line,
        column: place.column,
        space: Arc::clone(space),
        reading: reading.finish(),
    }
}

/// Where the parser finds something wrong, from `start` on.
fn errors(node: Node, start: usize, depth: u32, hasher: &mut FxHasher) {
    if node.is_error() || node.is_missing() || depth == DEEPEST {
        let range = node.byte_range();
        (node.symbol(), range.start.wrapping_sub(start), range.len()).hash(hasher);
    }
    if depth < DEEPEST {
        for child in node.children().filter(Node::has_error) {
            errors(child, start, depth + 1, hasher);
        }
    }
}

/// Where the item begins, blanked qualifiers before it included.
fn first_byte(node: Node, parsed: &Expanded) -> usize {
    let start = node.start_byte();
    let mut first = start;
    let after = parsed.words.partition_point(|word| word.range.end <= start);
    for word in parsed.words[..after].iter().rev() {
        let between = &parsed.text[word.range.end.min(first)..first];
        if between.chars().all(char::is_whitespace) {
            first = word.range.start;
        } else {
            break;
        }
    }
    first
}

/// Where a kernel begins whose `__global__` is on a line below its first word: most likely that word is half of what is typed above
/// the kernel, which keeps its place.
fn behind_half_typed(node: Node, parsed: &Expanded) -> Option<usize> {
    let first = node.children().next()?;
    let markers = node
        .children()
        .filter(|child| child.kind() == Kind::CudaGlobal);
    let marker = markers.last()?;
    let between = parsed.text.get(first.end_byte()..marker.start_byte())?;
    between.contains('\n').then(|| marker.start_byte())
}

fn is_kernel(node: Node, start: usize, parsed: &Expanded) -> bool {
    let Some(body) = node.field(Field::Body) else {
        return false;
    };
    let marked = node
        .children()
        .any(|child| matches!(child.kind(), Kind::CudaGlobal | Kind::FunctionQualifier));
    let head = start..body.start_byte();
    let before = parsed
        .words
        .partition_point(|word| word.range.start < head.start);
    marked
        || parsed.words[before..]
            .iter()
            .take_while(|word| word.range.start < head.end)
            .any(|word| word.name == "kernel")
}

/// The declarator that names a function: through pointers, references and parentheses.
pub fn function_declarator(node: Node<'_>) -> Option<Node<'_>> {
    let mut declarator = node.field(Field::Declarator)?;
    for _ in 0..8 {
        if declarator.kind() == Kind::FunctionDeclarator {
            return Some(declarator);
        }
        declarator = declarator
            .field(Field::Declarator)
            .or_else(|| declarator.named_child(0))?;
    }
    None
}

/// `name`, or `Class::name` of a member defined outside its class; template arguments dropped.
fn function_name(node: Node, parsed: &Expanded) -> Option<String> {
    let name = function_declarator(node)?.field(Field::Declarator)?;
    let text = &parsed.text[name.byte_range()];
    let is_word = |at: &usize| {
        let before = text[..*at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
    };
    let mut operators = text.match_indices("operator").map(|(at, _)| at);
    if let Some(at) = operators.find(is_word) {
        let operator: String = text[at..].split_whitespace().collect();
        let scope = without_template_arguments(&text[..at]);
        let class = scope.trim_end_matches("::").rsplit("::").next();
        return Some(match class {
            Some(class) if !class.is_empty() => format!("{class}::{operator}"),
            _ => operator,
        });
    }
    let plain = without_template_arguments(text);
    let mut parts = plain.rsplit("::");
    let last = parts.next()?;
    if last.is_empty() {
        return None;
    }
    Some(match parts.next() {
        Some(class) if !class.is_empty() => format!("{class}::{last}"),
        _ => last.to_owned(),
    })
}

fn without_template_arguments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut depth = 0usize;
    for c in text.chars() {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            c if depth == 0 && !c.is_whitespace() => plain.push(c),
            _ => {}
        }
    }
    plain
}
