//! What the program leaves functions and loops for, where that is no `return`.

use super::value::Value;

/// What the program is leaving functions and loops for.
#[derive(Debug, Clone)]
pub(super) enum Leaving {
    /// An exception was thrown.
    Thrown(Thrown),
    /// The program ends.
    Ended,
}

impl Leaving {
    pub(super) fn is_exception(&self) -> bool {
        matches!(self, Leaving::Thrown(_))
    }
}

/// An exception.
#[derive(Debug, Clone)]
pub(super) struct Thrown {
    pub(super) value: Value,
    /// The plain name of its class; empty where it is none, or not known.
    pub(super) class: String,
}

impl Thrown {
    /// One of the standard library's.
    pub(super) fn of_library(class: &str) -> Thrown {
        Thrown {
            value: Value::Unknown,
            class: class.to_owned(),
        }
    }
}
