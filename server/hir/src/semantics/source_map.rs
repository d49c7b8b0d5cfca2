//! From a kernel's IR to the nodes that it was lowered from, and back.
//!
//! The IR numbers its positions, and `warplens_ir::Places` knows which bytes of the kernel these are now. In: a text with its
//! tree and a kernel's places. Out: for a site the node of the type that is asked for, for a node the positions that a site of
//! it has. A site in a called function is the call's; what a macro puts into the text has no node.

use std::ops::Range;

use warplens_ir::{Places, Site, Span};
use warplens_syntax::nodes::TypedNode;
use warplens_syntax::{Field, Kind, Node};

use super::Semantics;

/// A kernel as it is written.
#[derive(Debug, Clone, Copy)]
pub struct KernelSource<'t> {
    /// The text that it is in.
    pub code: Semantics<'t>,
    /// Its definition.
    pub function: Node<'t>,
    /// Its first byte, which the places are counted from.
    start: usize,
    places: &'t Places,
}

impl<'t> Semantics<'t> {
    /// The kernel of these bytes, its IR being there.
    pub fn kernel_source(
        self,
        bytes: Range<usize>,
        places: &'t Places,
    ) -> Option<KernelSource<'t>> {
        Some(KernelSource {
            code: self,
            function: self.kernel(bytes.clone())?,
            start: bytes.start,
            places,
        })
    }
}

impl<'t> KernelSource<'t> {
    /// What a site of the IR was lowered from.
    pub fn source_of<N: LoweredFrom<'t>>(self, site: Site) -> Option<N> {
        let bytes = self.bytes(site);
        let node = self
            .code
            .root
            .descendant_for_byte_range(bytes.start, bytes.end)?;
        N::at(node, &bytes)
    }

    /// The positions of a site that is lowered from this node; none where the IR has no positions there.
    pub fn ir_of(self, node: Node) -> Option<Span> {
        let inside = |byte: usize| byte.checked_sub(self.start);
        let (start, end) = (inside(node.start_byte())?, inside(node.end_byte())?);
        self.places.span(start..end)
    }

    /// Where a site is in the text.
    pub fn bytes(self, site: Site) -> Range<usize> {
        let bytes = self.places.bytes(site.span);
        self.start + bytes.start..self.start + bytes.end
    }
}

/// What a site can be asked for: a type of node, [`Whole`] or [`Controlled`].
pub trait LoweredFrom<'t>: Sized {
    /// From the smallest node around the site's bytes.
    fn at(node: Node<'t>, bytes: &Range<usize>) -> Option<Self>;
}

/// The innermost node of the type that is no longer than the site, a closing token aside.
impl<'t, N: TypedNode<'t>> LoweredFrom<'t> for N {
    fn at(node: Node<'t>, bytes: &Range<usize>) -> Option<Self> {
        innermost(node, bytes, N::cast)
    }
}

/// The node that is just the site, of whatever type.
#[derive(Debug, Clone, Copy)]
pub struct Whole<'t>(pub Node<'t>);

impl<'t> LoweredFrom<'t> for Whole<'t> {
    fn at(node: Node<'t>, bytes: &Range<usize>) -> Option<Self> {
        (node.byte_range() == *bytes && !node.has_error()).then_some(Whole(node))
    }
}

/// The loop or branch whose condition the site is in: facts name these by their conditions.
#[derive(Debug, Clone, Copy)]
pub struct Controlled<'t>(pub Node<'t>);

impl<'t> Controlled<'t> {
    /// The statement, where it is a loop.
    pub fn as_loop(self) -> Option<Node<'t>> {
        let is_loop = matches!(
            self.0.kind(),
            Kind::ForStatement | Kind::WhileStatement | Kind::DoStatement
        );
        is_loop.then_some(self.0)
    }

    /// The statement, where it is an `if`.
    pub fn as_branch(self) -> Option<Node<'t>> {
        (self.0.kind() == Kind::IfStatement).then_some(self.0)
    }
}

impl<'t> LoweredFrom<'t> for Controlled<'t> {
    fn at(node: Node<'t>, bytes: &Range<usize>) -> Option<Self> {
        let mut at = node;
        while !matches!(
            at.kind(),
            Kind::ForStatement | Kind::WhileStatement | Kind::DoStatement | Kind::IfStatement
        ) {
            at = at
                .parent()
                .filter(|parent| parent.kind() != Kind::FunctionDefinition)?;
        }
        let condition = at.field(Field::Condition)?;
        let holds = condition.start_byte() <= bytes.start && bytes.end <= condition.end_byte();
        holds.then_some(Controlled(at))
    }
}

/// The statement that is an expression and the token that ends it.
#[derive(Debug, Clone, Copy)]
pub struct Statement<'t>(pub Node<'t>);

impl<'t> LoweredFrom<'t> for Statement<'t> {
    fn at(node: Node<'t>, bytes: &Range<usize>) -> Option<Self> {
        innermost(node, bytes, |node| {
            (node.kind() == Kind::ExpressionStatement).then_some(Statement(node))
        })
    }
}

/// The innermost that is no longer than the bytes, a closing token aside.
fn innermost<'t, T>(
    node: Node<'t>,
    bytes: &Range<usize>,
    cast: impl Fn(Node<'t>) -> Option<T>,
) -> Option<T> {
    let mut at = node;
    loop {
        if let Some(found) = cast(at) {
            return Some(found);
        }
        at = at
            .parent()
            .filter(|parent| parent.byte_range().len() <= bytes.len() + 1)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::sync::Arc;

    use crate::{TemplateArguments, Unit, lower, outline};
    use warplens_ir::walk::each_site;
    use warplens_syntax::nodes::{CallExpression, SubscriptExpression};
    use warplens_syntax::preprocess::{Macros, NoIncludes, Options, preprocess};
    use warplens_syntax::{Document, Expanded, Language, words};

    fn expanded(text: &str) -> Arc<Expanded> {
        let options = Options {
            macros: Macros::default(),
            known_absent: &|_| false,
            words: words(Language::Cuda),
            file: "test.cu",
            traced: false,
            earlier: None,
        };
        let done = preprocess(text, options, &mut NoIncludes);
        let path = Arc::from(Path::new("test.cu"));
        Arc::new(Expanded::new(
            path,
            Language::Cuda,
            text.into(),
            done,
            Vec::new(),
            None,
        ))
    }

    #[test]
    fn a_site_has_its_node_and_the_node_has_the_positions_of_the_site() {
        let text = "// é\n__global__ void k(float *a, int n) {\n  \
                    for (int i = 0; i < n; i++) { /* here */ a[i] = 1; }\n  __syncthreads();\n}\n";
        let document = Document::new(text, Language::Cuda);
        let parsed = expanded(text);
        let items = outline(&parsed);
        let unit = Unit::new(&parsed, &items, None, false);
        let mut kernel =
            lower(&parsed, &items[0], &unit, &TemplateArguments::default()).expect("a kernel");
        let places = Arc::clone(&kernel.places);
        let code = Semantics::new(&document);
        let source = code
            .kernel_source(items[0].source.clone(), &places)
            .expect("its source");
        let mut sites = Vec::new();
        each_site(&mut kernel.body, &mut |site| sites.push(*site));
        let text_of = |site: &Site| code.source[source.bytes(*site)].to_owned();
        let site = |written: &str| {
            let site = sites.iter().find(|site| text_of(site) == written);
            *site.unwrap_or_else(|| panic!("no site is {written}"))
        };
        let element = site("a[i]");
        let node: SubscriptExpression = source.source_of(element).expect("an element");
        assert_eq!(code.text(node.node()), "a[i]");
        assert_eq!(source.ir_of(node.node()), Some(element.span));
        let condition = site("i < n");
        let looped = source
            .source_of::<Controlled>(condition)
            .and_then(Controlled::as_loop);
        let looped = looped.expect("a loop");
        assert_eq!(looped.kind(), Kind::ForStatement);
        let head = looped.field(Field::Condition).expect("a condition");
        assert_eq!(source.ir_of(head), Some(condition.span));
        let barrier = sites
            .iter()
            .find(|site| text_of(site).starts_with("__syncthreads"))
            .expect("a barrier");
        assert!(source.source_of::<Statement>(*barrier).is_some());
        // The smallest node around the element is no call, and neither is anything of its length.
        assert!(source.source_of::<CallExpression>(element).is_none());
        // The IR has no position at the comment.
        let mut nodes = code.root.descendants().into_iter();
        let comment = nodes.rfind(|node| node.kind() == Kind::Comment);
        assert_eq!(comment.and_then(|node| source.ir_of(node)), None);
    }
}
