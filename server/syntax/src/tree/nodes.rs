//! A type for each kind of node that has parts by name: `BinaryExpression::cast(node)?.left()`.

use super::{Children, Field, Kind, Node};

/// The type of a kind of node.
pub trait TypedNode<'tree>: Copy {
    /// The node, where it is of this kind.
    fn cast(node: Node<'tree>) -> Option<Self>;
}

/// Makes a type for each kind: the first part of each field, and all parts of a field that may hold several.
macro_rules! nodes {
    ($($kind:ident { $($part:ident $field:ident $($all:ident)?;)* })*) => {
        $(
            #[doc = concat!("A node of the kind [`Kind::", stringify!($kind), "`].")]
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
            pub struct $kind<'tree>(Node<'tree>);

            impl<'tree> $kind<'tree> {
                /// The node, where it is of this kind.
                pub fn cast(node: Node<'tree>) -> Option<Self> {
                    (node.kind() == Kind::$kind).then_some(Self(node))
                }

                /// The node itself.
                pub fn node(self) -> Node<'tree> {
                    self.0
                }

                $(nodes!(part $part $field $($all)?);)*
            }

            impl<'tree> TypedNode<'tree> for $kind<'tree> {
                fn cast(node: Node<'tree>) -> Option<Self> {
                    $kind::cast(node)
                }
            }
        )*
    };
    (part $part:ident $field:ident) => {
        #[doc = concat!("Its part in [`Field::", stringify!($field), "`].")]
        pub fn $part(self) -> Option<Node<'tree>> {
            self.0.field(Field::$field)
        }
    };
    (part $part:ident $field:ident $all:ident) => {
        nodes!(part $part $field);

        #[doc = concat!("Its parts in [`Field::", stringify!($field), "`].")]
        pub fn $all(self) -> Children<'tree> {
            self.0.fields(Field::$field)
        }
    };
}

super::generated::list_nodes!(nodes);

impl<'tree> CallExpression<'tree> {
    /// What is between `<<<` and `>>>`, where the call launches a kernel.
    pub fn launch(self) -> Option<KernelCallSyntax<'tree>> {
        self.node().children().find_map(KernelCallSyntax::cast)
    }
}

impl<'tree> KernelCallSyntax<'tree> {
    /// Grid, block, bytes of shared memory, stream: as many as are written.
    pub fn extents(self) -> impl Iterator<Item = Node<'tree>> {
        parts(self.node())
    }
}

impl<'tree> ArgumentList<'tree> {
    /// The arguments in order.
    pub fn arguments(self) -> impl Iterator<Item = Node<'tree>> {
        parts(self.node())
    }
}

impl<'tree> ParameterList<'tree> {
    /// The parameters in order.
    pub fn parameters(self) -> impl Iterator<Item = Node<'tree>> {
        parts(self.node())
    }
}

/// A label of a `switch` and what is behind it up to the next one.
#[derive(Debug, Clone)]
pub struct Case<'tree> {
    /// Its value, where it is not `default`.
    pub label: Option<Node<'tree>>,
    /// Its statements and directives.
    pub statements: Vec<Node<'tree>>,
}

impl<'tree> SwitchStatement<'tree> {
    /// The cases in order. A directive (`#pragma unroll`) ends the node of its case in the grammar: what follows it lies beside
    /// that node, and is the case's all the same.
    pub fn cases(self) -> Vec<Case<'tree>> {
        let mut cases: Vec<Case> = Vec::new();
        for node in self.body().into_iter().flat_map(parts) {
            if node.kind() == Kind::CaseStatement {
                let label = node.field(Field::Value);
                let statements = parts(node).filter(|part| Some(*part) != label).collect();
                cases.push(Case { label, statements });
            } else if let Some(case) = cases.last_mut() {
                case.statements.push(node);
            }
        }
        cases
    }
}

/// The named children that are no comments.
fn parts(node: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    node.named_children()
        .filter(|child| child.kind() != Kind::Comment)
}
