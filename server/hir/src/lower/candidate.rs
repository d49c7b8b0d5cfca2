//! What a call may mean.

use warplens_syntax::{Kind, Node};

use super::classes::Method;
use super::instances::is_open;
use crate::definition::Definition;
use warplens_ir::{Bindings, Expr, Type};

/// The name of a function where it is called.
#[derive(Debug, Clone, Copy)]
pub(super) struct Callee<'a> {
    /// Without qualifiers and template arguments.
    pub(super) name: &'a str,
    /// As it is written.
    pub(super) full: &'a str,
    /// The namespaces around the call.
    pub(super) space: &'a str,
}

impl<'a> Callee<'a> {
    /// A function by its name with all its namespaces.
    pub(super) fn of(full: &'a str) -> Callee<'a> {
        Callee {
            name: full.rsplit("::").next().unwrap_or(full),
            full,
            space: "",
        }
    }
}

/// A function that a call may mean.
pub(super) struct Candidate {
    pub(super) definition: Definition,
    /// What binds the template parameters of the class it belongs to.
    pub(super) bindings: Bindings,
    /// The object, for a member function.
    pub(super) this: Option<Expr>,
}

impl Candidate {
    /// Member functions that may be called for an object.
    pub(super) fn of_methods(methods: Vec<Method>, this: &Expr) -> Vec<Candidate> {
        let methods = methods.into_iter();
        methods
            .map(|method| Candidate {
                definition: method.definition,
                bindings: method.bindings,
                this: Some(this.clone()),
            })
            .collect()
    }
}

/// A function without template parameters of its own or of a class, as far as a call decides whether it means it: the same for each
/// call.
#[derive(Debug)]
pub(super) struct PlainFunction {
    /// Parameters that have no default.
    least: usize,
    /// Whether arguments may follow those that are declared.
    pack: bool,
    /// The declared types of its parameters.
    types: Vec<Type>,
}

impl PlainFunction {
    pub(super) fn new(parameters: &[Node], types: Vec<Type>) -> PlainFunction {
        let of = |kind: Kind| parameters.iter().filter(move |of| of.kind() == kind);
        PlainFunction {
            least: of(Kind::ParameterDeclaration).count(),
            pack: of(Kind::VariadicParameterDeclaration).next().is_some(),
            types,
        }
    }

    /// How well it takes the arguments.
    pub(super) fn fits(&self, arguments: &[Expr]) -> Option<i32> {
        if arguments.len() < self.least || (arguments.len() > self.types.len() && !self.pack) {
            return None;
        }
        let plain = 1 - i32::from(self.pack);
        let given = self.types.iter().zip(arguments);
        let each = given.map(|(declared, argument)| affinity(declared, &argument.ty));
        Some(plain + each.sum::<i32>())
    }
}

/// How well an argument suits a parameter.
pub(super) fn affinity(declared: &Type, given: &Type) -> i32 {
    if declared == given {
        return 8;
    }
    match (declared, given) {
        (Type::Pointer(a, _), Type::Pointer(b, _) | Type::Array(b, _)) => {
            if a == b {
                7
            } else if matches!(**a, Type::Void) || is_open(a) || is_open(b) {
                3
            } else {
                -4
            }
        }
        (Type::Int { bits: a, .. }, Type::Int { bits: b, .. }) => {
            if a == b {
                5
            } else {
                4
            }
        }
        (Type::Float { .. }, Type::Float { .. }) => 5,
        (Type::Float { .. }, Type::Int { .. }) | (Type::Int { .. }, Type::Float { .. }) => 1,
        (Type::Unknown(_), _) => 1,
        (_, Type::Unknown(_)) => 0,
        _ => -8,
    }
}
