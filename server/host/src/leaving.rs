//! What the program leaves functions, loops and blocks for, where that is no `return`.

use std::rc::Rc;

use super::value::Value;

/// What the program is leaving functions and loops for.
#[derive(Debug, Clone)]
pub(super) enum Leaving {
    /// An exception was thrown.
    Thrown(Thrown),
    /// The program ends.
    Ended,
    /// `goto`: the label that it leads to.
    Jump(Rc<str>),
}

impl Leaving {
    pub(super) fn is_exception(&self) -> bool {
        matches!(self, Leaving::Thrown(_))
    }
}

/// A jump to a label that some runs make.
#[derive(Debug)]
pub(super) struct Jump {
    pub(super) label: Rc<str>,
    /// What was written since then they may not have written.
    pub(super) touched: usize,
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
