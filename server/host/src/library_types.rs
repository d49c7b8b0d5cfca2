//! Types of values and of what containers of the standard library hold, as the program spells them.

use std::rc::Rc;

use warplens_ir::{Bindings, Type};

/// A type, as far as values are converted to it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum LibraryType {
    Number(Type),
    Text,
    /// An object of a class of the program.
    Object(Instance),
    /// `std::pair`, `std::tuple`: its class and its parts.
    Tuple(&'static str, Vec<LibraryType>),
    Optional(Box<LibraryType>),
    /// Of keys and values, and whether it is in the order of its keys.
    Map(Box<LibraryType>, Box<LibraryType>, bool),
    Set(Box<LibraryType>, bool),
    /// A thread of the host, which calls what it is made of.
    Thread,
    /// Pointers and what else has no value of its own to convert.
    Pointer,
    /// Not known.
    Other,
}

/// A class as a type names it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Instance {
    /// Its plain name.
    pub(super) name: String,
    /// The arguments of its template and of those of its bases, by class.
    pub(super) bindings: Rc<Vec<(String, Bindings)>>,
}
