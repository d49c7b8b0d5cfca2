//! Variables that a loop changes and changes back: `stage ^= 1` twice in an iteration.
//!
//! The compiler's constant propagation finds them at once. Here a loop is built with every variable that it assigns as a phi;
//! those that turn out to begin each iteration with the constant that they began the loop with are noted, and the kernel is
//! built once more, knowing it.

use rustc_hash::{FxHashMap, FxHashSet};
use warplens_ir::Stmt;

use super::{Builder, Key};
use crate::graph::V;

/// A loop, by where its body is, and a part of a variable.
type Carried = (usize, Key);

/// Parts of variables that keep a constant in a loop.
pub(crate) type Steady = FxHashSet<Carried>;

/// Parts of variables that a loop assigns and begins with a constant; whether each copy of the loop gives it back.
#[derive(Debug, Default)]
pub(crate) struct Found(FxHashMap<Carried, bool>);

impl Found {
    /// Those that are.
    pub(crate) fn steady(&self) -> impl Iterator<Item = Carried> + '_ {
        let all = self.0.iter().filter(|(_, steady)| **steady);
        all.map(|(carried, _)| *carried)
    }
}

fn carried(body: &[Stmt], key: Key) -> Carried {
    (body.as_ptr() as usize, key)
}

impl Builder<'_> {
    /// True for what keeps its constant in a loop.
    pub(super) fn is_steady(&self, body: &[Stmt], key: Key) -> bool {
        self.steady.contains(&carried(body, key))
    }

    /// Notes what a phi of a loop's head gets from its iterations.
    pub(super) fn gives_back(&mut self, body: &[Stmt], key: Key, phi: V, last: V) {
        let first = self.graph.inst(phi).args[0];
        if self.graph.int(first).is_none() {
            return;
        }
        let steady = last == phi || last == first;
        let found = self.found_steady.0.entry(carried(body, key));
        found.and_modify(|all| *all &= steady).or_insert(steady);
    }
}
