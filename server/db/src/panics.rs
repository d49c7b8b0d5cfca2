//! Panics that cost one answer.
//!
//! In: work that may panic. Out: what it makes, or nothing. What holds: a query that salsa cancels and work that is given up
//! ([`warplens_syntax::stop`]) are no panics: they pass.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use warplens_syntax::stop;

/// What `make` makes; nothing where it panics, which is its caller's to say.
pub(crate) fn unless_it_panics<T>(make: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(make)) {
        Ok(made) => Some(made),
        Err(cause) if cause.is::<salsa::Cancelled>() || stop::is_given_up(&*cause) => {
            resume_unwind(cause)
        }
        Err(_) => None,
    }
}
