//! How the variables of a loop change from one iteration to the next.

use warplens_symbolic::{BinaryOp, Id, Symbol};

/// How a variable moves.
#[derive(Debug, Clone)]
pub(crate) enum Motion {
    /// By the same amount each time.
    Linear(Id),
    /// As listed.
    Listed(Vec<i64>),
    /// Through these values, again and again: `stage ^= 1`, `stage = (stage + 1) % 3`.
    Cyclic(Vec<Id>),
    /// What it is before each iteration, and behind the last.
    Each(Vec<Id>),
    /// Made anew by each iteration: what that is, as a function of the iteration's number.
    Renewed(Id, Symbol),
    /// Multiplied, divided or shifted by a constant, which may be an assumed one: listed once the trip
    /// count is known.
    Geometric(BinaryOp, i64, bool),
    Still,
    /// Not followed: data or not understood; the same for all lanes or not.
    Lost(bool, bool),
}

/// What one look at an iteration found.
#[derive(Debug)]
pub(crate) struct Look {
    /// What each variable holds behind it: an integer where it was one, a place in the same array where it led there.
    pub(crate) ends: Vec<Option<Id>>,
    /// What stood for each variable before it.
    pub(crate) stand_ins: Vec<Id>,
}
