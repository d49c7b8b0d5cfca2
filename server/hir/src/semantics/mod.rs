//! What the names and expressions of a text mean, by the nodes of the tree that its user edits.
//!
//! In: a document's own text and tree, directives and all. Out: for a name its declaration and the declaration's uses, by
//! scope; for an expression its type, by the rules that lowering follows; for a kernel its definition and its launches; and
//! for a site of its IR the node that it was lowered from, and back ([`KernelSource`]). Nothing is guessed: where macros,
//! broken text or what other files declare may decide, the answer is `None`.

mod launches;
mod macros;
mod names;
mod source_map;
mod types;

use std::ops::Range;

use warplens_syntax::{Document, Field, Kind, Language, Node};

use crate::outline::function_declarator;
pub use launches::{Launch, Launches};
pub use names::{Declaration, ElementUse, declared_name, is_address, is_assigned};
pub use source_map::{Controlled, KernelSource, LoweredFrom, Statement, Whole};

/// A text as its user wrote it, with what its nodes mean. A copy is a reference.
#[derive(Debug, Clone, Copy)]
pub struct Semantics<'t> {
    /// The text.
    pub source: &'t str,
    /// The node of the whole text.
    pub root: Node<'t>,
    /// Its language; the tree is that of the CUDA grammar.
    pub language: Language,
}

impl<'t> Semantics<'t> {
    /// That of a document.
    pub fn new(document: &'t Document) -> Semantics<'t> {
        let parsed = document.parsed();
        Semantics {
            source: &parsed.text,
            root: parsed.tree.root_node(),
            language: document.language(),
        }
    }

    /// True for OpenCL C.
    pub fn is_opencl(self) -> bool {
        self.language == Language::OpenCl
    }

    /// The text of a node as the user wrote it.
    pub fn text(self, node: Node) -> &'t str {
        self.source.get(node.byte_range()).unwrap_or("")
    }

    /// The definition of the kernel that ends where a range ends.
    pub fn kernel(self, range: Range<usize>) -> Option<Node<'t>> {
        let end = range.end.min(self.source.len());
        let mut node = self
            .root
            .descendant_for_byte_range(end.checked_sub(1)?, end)?;
        while node.kind() != Kind::FunctionDefinition || node.end_byte() != end {
            node = node.parent()?;
        }
        Some(node)
    }

    /// What is at the top level, namespaces, linkage blocks, templates and conditionals looked through.
    pub fn top_level(self) -> Vec<Node<'t>> {
        let mut found = Vec::new();
        let mut waiting = vec![self.root];
        while let Some(node) = waiting.pop() {
            match node.kind() {
                Kind::TranslationUnit
                | Kind::NamespaceDefinition
                | Kind::DeclarationList
                | Kind::LinkageSpecification
                | Kind::PreprocIf
                | Kind::PreprocIfdef
                | Kind::PreprocElse
                | Kind::PreprocElif
                | Kind::TemplateDeclaration => waiting.extend(children(node).into_iter().rev()),
                _ => found.push(node),
            }
        }
        found
    }

    /// The definition of the only function of that name in the file.
    pub fn function(self, name: &str) -> Option<Node<'t>> {
        let mut definitions = self.top_level().into_iter().filter(|node| {
            node.kind() == Kind::FunctionDefinition && self.function_name(*node) == Some(name)
        });
        let one = definitions.next()?;
        definitions.next().is_none().then_some(one)
    }

    /// The name that a definition or declaration of a function declares, as written.
    pub fn function_name(self, declared: Node) -> Option<&'t str> {
        let name = function_declarator(declared)?.field(Field::Declarator)?;
        Some(self.text(name))
    }
}

/// The function definition around a node.
pub fn function_around(node: Node) -> Option<Node> {
    let mut at = node;
    while at.kind() != Kind::FunctionDefinition {
        at = at.parent()?;
    }
    Some(at)
}

/// The parameters of a definition or declaration of a function.
pub fn parameters(declared: Node) -> Option<Vec<Node>> {
    Some(children(
        function_declarator(declared)?.field(Field::Parameters)?,
    ))
}

/// The named children that are no comments.
pub fn children(node: Node) -> Vec<Node> {
    node.named_children()
        .filter(|child| child.kind() != Kind::Comment)
        .collect()
}

/// An expression without the parentheses around it.
pub fn bare(node: Node) -> Node {
    let mut at = node;
    while at.kind() == Kind::ParenthesizedExpression
        && let Some(inner) = at.named_child(0)
    {
        at = inner;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_found_by_its_end_and_a_function_by_its_name() {
        let text = "namespace n { int f(int a) { return a; } }\n__global__ void k(int *p) { *p = f(1); }\n";
        let document = Document::new(text, Language::Cuda);
        let code = Semantics::new(&document);
        let kernel = code.kernel(0..text.len() - 1).expect("a kernel");
        assert_eq!(code.function_name(kernel), Some("k"));
        let call = text.find("f(1)").expect("a call");
        let node = code.root.descendant_for_byte_range(call, call + 4);
        let node = node.expect("a node");
        assert_eq!(node.kind(), Kind::CallExpression);
        assert_eq!(function_around(node), Some(kernel));
        let function = code.function("f").expect("a function");
        let names: Vec<&str> = parameters(function)
            .expect("parameters")
            .into_iter()
            .map(|one| code.text(one))
            .collect();
        assert_eq!(names, ["int a"]);
        assert!(code.function("g").is_none());
    }
}
