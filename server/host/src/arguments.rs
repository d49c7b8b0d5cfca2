//! A call as it is evaluated: the name of its function, and its arguments with their values.

use warplens_ir::Bound;
use warplens_syntax::Node;

use super::value::{Place, Value};

/// An argument of a call.
pub(super) struct Argument<'t> {
    pub(super) value: Value,
    pub(super) place: Option<Place>,
    pub(super) node: Option<Node<'t>>,
}

impl Argument<'_> {
    /// A value that is kept nowhere.
    pub(super) fn of(value: Value) -> Self {
        Argument {
            value,
            place: None,
            node: None,
        }
    }
}

/// How a call names its function.
pub(super) struct Named<'t> {
    pub(super) name: String,
    pub(super) template_list: Option<Node<'t>>,
    /// The arguments of its template, where the name comes from elsewhere.
    pub(super) template_args: Vec<Option<Bound>>,
    /// `a::b`.
    pub(super) scope: Option<String>,
}
