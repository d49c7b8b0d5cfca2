//! Trees of texts, their nodes by kind and field, and a type for each kind of node that has parts.
//!
//! In: what a grammar's parser made of a text. Out: [`Node`]s whose kinds and fields are enumerations, so that a misspelt
//! one does not compile. Broken text has nodes without the parts that its kind should have: every part is an [`Option`].

mod generated;
mod kind;
pub mod nodes;
mod operators;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::num::NonZeroU16;
use std::ops::Range;

use crate::Language;
use kind::Grammar;
pub use kind::{Field, Kind};
pub use operators::{
    AssignOperator, BinaryOperator, PointerOperator, UnaryOperator, UpdateOperator, assigned,
    binary,
};

/// The tree of a text.
#[derive(Clone)]
pub struct Tree {
    raw: tree_sitter::Tree,
    grammar: &'static Grammar,
}

impl Tree {
    pub(crate) fn new(raw: tree_sitter::Tree, language: Language) -> Tree {
        Tree {
            raw,
            grammar: Grammar::of(language),
        }
    }

    /// The parser's own, to parse a later text from.
    pub(crate) fn raw(&self) -> &tree_sitter::Tree {
        &self.raw
    }

    /// The node of the whole text.
    pub fn root_node(&self) -> Node<'_> {
        Node {
            raw: self.raw.root_node(),
            grammar: self.grammar,
        }
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.raw.fmt(f)
    }
}

/// A node of a [`Tree`].
#[derive(Clone, Copy)]
pub struct Node<'tree> {
    raw: tree_sitter::Node<'tree>,
    grammar: &'static Grammar,
}

impl PartialEq for Node<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw
    }
}

impl Eq for Node<'_> {}

impl Hash for Node<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.raw.hash(state);
    }
}

impl fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.raw.fmt(f)
    }
}

impl<'tree> Node<'tree> {
    fn with(&self, raw: tree_sitter::Node<'tree>) -> Node<'tree> {
        Node {
            raw,
            grammar: self.grammar,
        }
    }

    /// What it is.
    pub fn kind(&self) -> Kind {
        self.grammar.kind(self.raw.kind_id())
    }

    /// The number that the grammar's parser gives its kind, tokens that no code asks for told apart: for hashes.
    pub fn symbol(&self) -> u16 {
        self.raw.kind_id()
    }

    /// Tells it from every other node of its tree.
    pub fn id(&self) -> usize {
        self.raw.id()
    }

    /// False for tokens that the grammar writes out: operators, brackets, most keywords.
    pub fn is_named(&self) -> bool {
        self.raw.is_named()
    }

    /// True where the parser could not read it.
    pub fn is_error(&self) -> bool {
        self.raw.is_error()
    }

    /// True for a token of no length that the parser put in to go on.
    pub fn is_missing(&self) -> bool {
        self.raw.is_missing()
    }

    /// True where something in it could not be read.
    pub fn has_error(&self) -> bool {
        self.raw.has_error()
    }

    /// Its first byte in the text that was parsed.
    pub fn start_byte(&self) -> usize {
        self.raw.start_byte()
    }

    /// One past its last byte.
    pub fn end_byte(&self) -> usize {
        self.raw.end_byte()
    }

    /// Its bytes.
    pub fn byte_range(&self) -> Range<usize> {
        self.raw.byte_range()
    }

    /// The node around it.
    pub fn parent(&self) -> Option<Node<'tree>> {
        Some(self.with(self.raw.parent()?))
    }

    /// How many children it has, tokens among them.
    pub fn child_count(&self) -> usize {
        self.raw.child_count()
    }

    /// How many named children it has.
    pub fn named_child_count(&self) -> usize {
        self.raw.named_child_count()
    }

    /// How many nodes it is made of, itself among them.
    pub fn descendant_count(&self) -> usize {
        self.raw.descendant_count()
    }

    /// The child at this place, tokens among them.
    pub fn child(&self, at: u32) -> Option<Node<'tree>> {
        Some(self.with(self.raw.child(at)?))
    }

    /// The child that this byte is in, tokens among them.
    pub fn child_with_byte(&self, byte: usize) -> Option<Node<'tree>> {
        let child = self.with(self.raw.first_child_for_byte(byte)?);
        (child.start_byte() <= byte).then_some(child)
    }

    /// The named child at this place.
    pub fn named_child(&self, at: u32) -> Option<Node<'tree>> {
        Some(self.with(self.raw.named_child(at)?))
    }

    /// The node before it in its parent.
    pub fn prev_sibling(&self) -> Option<Node<'tree>> {
        Some(self.with(self.raw.prev_sibling()?))
    }

    /// The node behind it in its parent.
    pub fn next_sibling(&self) -> Option<Node<'tree>> {
        Some(self.with(self.raw.next_sibling()?))
    }

    /// The named node behind it in its parent.
    pub fn next_named_sibling(&self) -> Option<Node<'tree>> {
        Some(self.with(self.raw.next_named_sibling()?))
    }

    /// The smallest node that holds these bytes.
    pub fn descendant_for_byte_range(&self, start: usize, end: usize) -> Option<Node<'tree>> {
        Some(self.with(self.raw.descendant_for_byte_range(start, end)?))
    }

    /// The first child in this field.
    pub fn field(&self, field: Field) -> Option<Node<'tree>> {
        let id = self.grammar.field(field)?;
        Some(self.with(self.raw.child_by_field_id(id.get())?))
    }

    /// All children in this field.
    pub fn fields(&self, field: Field) -> Children<'tree> {
        match self.grammar.field(field) {
            Some(id) => self.some_children(Some(Wanted::Field(id))),
            None => self.some_children(None),
        }
    }

    /// Its children in order, tokens among them.
    pub fn children(&self) -> Children<'tree> {
        self.some_children(Some(Wanted::All))
    }

    /// Its named children in order.
    pub fn named_children(&self) -> Children<'tree> {
        self.some_children(Some(Wanted::Named))
    }

    fn some_children(&self, wanted: Option<Wanted>) -> Children<'tree> {
        let mut cursor = self.raw.walk();
        let wanted = wanted.filter(|_| cursor.goto_first_child());
        Children {
            cursor,
            wanted,
            grammar: self.grammar,
        }
    }

    /// Itself and all that it is made of, outer ones before inner ones, in the order of the text.
    pub fn descendants(&self) -> Vec<Node<'tree>> {
        let mut found = Vec::new();
        let mut cursor = self.raw.walk();
        loop {
            found.push(self.with(cursor.node()));
            if cursor.goto_first_child() {
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return found;
                }
            }
        }
    }
}

/// Which children are wanted.
#[derive(Clone, Copy)]
enum Wanted {
    All,
    Named,
    Field(NonZeroU16),
}

/// Some children of a node, in order.
pub struct Children<'tree> {
    cursor: tree_sitter::TreeCursor<'tree>,
    /// Nothing behind the last child.
    wanted: Option<Wanted>,
    grammar: &'static Grammar,
}

impl fmt::Debug for Children<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Children").finish_non_exhaustive()
    }
}

impl<'tree> Iterator for Children<'tree> {
    type Item = Node<'tree>;

    fn next(&mut self) -> Option<Node<'tree>> {
        loop {
            let wanted = self.wanted?;
            let raw = self.cursor.node();
            let taken = match wanted {
                Wanted::All => true,
                Wanted::Named => raw.is_named(),
                Wanted::Field(id) => self.cursor.field_id() == Some(id),
            };
            if !self.cursor.goto_next_sibling() {
                self.wanted = None;
            }
            if taken {
                let grammar = self.grammar;
                return Some(Node { raw, grammar });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parser;

    #[test]
    fn a_part_is_found_by_its_field_in_both_grammars() {
        for language in [Language::Cuda, Language::OpenCl] {
            let tree = parser::parse("int f(int a) { return a + 1; }", language, None);
            let function = tree.root_node().child(0).expect("a function");
            assert_eq!(function.kind(), Kind::FunctionDefinition);
            let body = function.field(Field::Body).expect("a body");
            assert_eq!(body.kind(), Kind::CompoundStatement);
            assert!(function.field(Field::Left).is_none());
            let sum = tree
                .root_node()
                .descendants()
                .into_iter()
                .find_map(nodes::BinaryExpression::cast)
                .expect("a sum");
            assert_eq!(sum.left().map(|left| left.kind()), Some(Kind::Identifier));
            assert_eq!(sum.operator().map(|plus| plus.kind()), Some(Kind::Plus));
            assert_eq!(sum.right().map(|one| one.kind()), Some(Kind::NumberLiteral));
        }
    }

    #[test]
    fn a_launch_is_a_call_with_extents() {
        let text = "void f(int *a) { k<<<4, /* threads */ 64>>>(a); g(a, 1); }";
        let tree = parser::parse(text, Language::Cuda, None);
        let all = tree.root_node().descendants().into_iter();
        let calls: Vec<nodes::CallExpression> =
            all.filter_map(nodes::CallExpression::cast).collect();
        let extents = |call: &nodes::CallExpression| Some(call.launch()?.extents().count());
        let extents: Vec<Option<usize>> = calls.iter().map(extents).collect();
        assert_eq!(extents, [Some(2), None]);
        let arguments = calls[1].arguments().and_then(nodes::ArgumentList::cast);
        assert_eq!(arguments.map(|list| list.arguments().count()), Some(2));
    }

    #[test]
    fn children_are_those_that_the_parser_gives() {
        let text = "void f(int a, float *b) { int c = a, d; g(a, b[c], ); /* c */ }";
        for language in [Language::Cuda, Language::OpenCl] {
            let tree = parser::parse(text, language, None);
            for node in tree.root_node().descendants() {
                let mut cursor = node.raw.walk();
                let all = |found: Children| found.map(|child| child.id()).collect::<Vec<_>>();
                let ids: Vec<usize> = node.raw.children(&mut cursor).map(|c| c.id()).collect();
                assert_eq!(all(node.children()), ids);
                let ids: Vec<usize> = node
                    .raw
                    .named_children(&mut cursor)
                    .map(|c| c.id())
                    .collect();
                assert_eq!(all(node.named_children()), ids);
                let ids: Vec<usize> = node
                    .raw
                    .children_by_field_name("declarator", &mut cursor)
                    .map(|c| c.id())
                    .collect();
                assert_eq!(all(node.fields(Field::Declarator)), ids);
            }
        }
    }
}
