//! How the variables of a loop change from one iteration to the next.

use warplens_ir::VarId;
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
    /// On by this round a ring of that length: `if (++stage == STAGES) stage = 0`.
    Ring(Id, i64),
    /// What it is before each iteration, and behind the last.
    Each(Vec<Id>),
    /// Made anew by each iteration: what that is, as a function of the iteration's number.
    Renewed(Id, Symbol),
    /// Multiplied, divided or shifted by a constant, which may be an assumed one: listed once the trip
    /// count is known.
    Geometric(BinaryOp, i64, bool),
    /// By the same amount in each iteration in which the condition holds, an expression of the stand-ins that fails for good
    /// once it fails; the same for all lanes or not.
    While {
        by: i64,
        going: Id,
        uniform: bool,
    },
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

/// What is known inside of a condition that variables move on under.
#[derive(Debug, Clone)]
pub(crate) struct Advance {
    /// The condition, of values that are not known.
    pub(crate) tested: Id,
    /// It as a function of the iteration.
    pub(crate) holds: Id,
    /// Each variable with its value that is not known, and with what it is where the condition holds.
    pub(crate) values: Vec<(VarId, Id, Id)>,
}
