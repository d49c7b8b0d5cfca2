//! What the language knows of a type beyond its layout, which the IR's types carry closed.

use std::sync::Arc;

use warplens_ir::{Bindings, Bound, Expr, Origin, Struct, Type};

use crate::definition::Definition;
use crate::names::Scope;

/// Arguments of arguments that are named.
const DEEPEST_NAME: u32 = 16;

/// The definition of a class, to find its members.
#[derive(Debug, Clone)]
pub struct Class {
    /// Its plain name.
    pub name: String,
    /// Where it is.
    pub definition: Definition,
    /// Its template parameters.
    pub bindings: Bindings,
    /// The arguments that it is an instance with, which a specialisation's own parameters are not.
    pub arguments: Vec<Bound>,
    /// What it derives from, with the offset of each.
    pub bases: Vec<(Type, u64)>,
    /// The class that it is a member of.
    pub enclosing: Option<Arc<Class>>,
}

/// A lambda expression and what it sees.
#[derive(Debug)]
pub struct Callable {
    /// Where it is.
    pub definition: Definition,
    /// The names in scope where it is written.
    pub scopes: Vec<Scope>,
    /// The template parameters in scope there.
    pub bindings: Bindings,
    /// The object whose member function it is written in.
    pub this: Option<Expr>,
}

/// The class that a structure is laid out from; nothing where only the layout is known.
pub(crate) fn class_of(structure: &Struct) -> Option<Arc<Class>> {
    structure.class.as_ref()?.get()
}

/// A type with classes by their names alone, which hold on to no text: [`crate::lower`] finds them again by these in the text of a
/// kernel. `None` for lambdas and classes without a name.
pub fn by_name(ty: &Type) -> Option<Type> {
    Some(match ty {
        Type::Callable(_) => return None,
        Type::Struct(structure) => {
            let Some(class) = class_of(structure) else {
                return Some(ty.clone());
            };
            let name = format!("{}::{}", structure.space, name_of_class(&class, 0)?);
            Type::Unknown(name)
        }
        Type::Pointer(inner, space) => Type::Pointer(Arc::new(by_name(inner)?), *space),
        Type::Array(inner, length) => Type::Array(Arc::new(by_name(inner)?), *length),
        _ => ty.clone(),
    })
}

/// A class as C++ names it from its namespace: `Outer<int>::Inner<4>`.
fn name_of_class(class: &Class, depth: u32) -> Option<String> {
    if depth > DEEPEST_NAME || class.name.is_empty() {
        return None;
    }
    let mut name = match &class.enclosing {
        Some(outer) => format!("{}::{}", name_of_class(outer, depth + 1)?, class.name),
        None => class.name.clone(),
    };
    if !class.arguments.is_empty() {
        let arguments = class.arguments.iter();
        let arguments: Option<Vec<String>> =
            arguments.map(|of| name_of_bound(of, depth + 1)).collect();
        name = format!("{name}<{}>", arguments?.join(", "));
    }
    Some(name)
}

fn name_of_bound(bound: &Bound, depth: u32) -> Option<String> {
    match bound {
        Bound::Type(ty) => name_of_type(ty, depth),
        Bound::Pack(all) => {
            let all: Option<Vec<String>> = all.iter().map(|of| name_of_bound(of, depth)).collect();
            Some(all?.join(", "))
        }
        Bound::Value(_) | Bound::Template(_) => Some(bound.spelled()),
    }
}

fn name_of_type(ty: &Type, depth: u32) -> Option<String> {
    match ty {
        Type::Pointer(inner, _) => Some(format!("{} *", name_of_type(inner, depth)?)),
        Type::Struct(structure) => match class_of(structure) {
            Some(class) => {
                let name = name_of_class(&class, depth + 1)?;
                Some(format!("{}::{name}", structure.space))
            }
            None => Some(Bound::Type(ty.clone()).spelled()),
        },
        Type::Callable(_) => None,
        ty => Some(Bound::Type(ty.clone()).spelled()),
    }
}

/// True where a template argument is all that another one says: an instance says more than the same with a type that is not known.
pub fn says_all_of(more: &Bound, less: &Bound) -> bool {
    match (more, less) {
        (_, Bound::Type(Type::Unknown(_))) => true,
        (Bound::Type(Type::Pointer(more, of)), Bound::Type(Type::Pointer(less, to))) => {
            of == to
                && says_all_of(
                    &Bound::Type((**more).clone()),
                    &Bound::Type((**less).clone()),
                )
        }
        (Bound::Type(Type::Struct(one)), Bound::Type(Type::Struct(other))) => {
            match (class_of(one), class_of(other)) {
                (Some(one), Some(other)) => {
                    one.definition.hash == other.definition.hash
                        && one.arguments.len() == other.arguments.len()
                        && one
                            .arguments
                            .iter()
                            .zip(&other.arguments)
                            .all(|(more, less)| says_all_of(more, less))
                }
                _ => more == less,
            }
        }
        _ => more == less,
    }
}

/// The lambda of a type.
pub(crate) fn callable_of(ty: &Type) -> Option<Arc<Callable>> {
    match ty {
        Type::Callable(origin) => origin.get(),
        _ => None,
    }
}

/// The type of a lambda.
pub(crate) fn type_of_callable(callable: Callable) -> Type {
    Type::Callable(Origin::new(Arc::new(callable)))
}
