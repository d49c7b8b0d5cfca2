//! The figures of what a loop's parts do.

use rustc_hash::{FxHashMap, FxHashSet};
use warplens_ir::{RoutineId, VarId};

use super::versions::Object;
use crate::thresholds::nvcc;

/// What a loop's parts do.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    /// Variables that they assign.
    pub(super) assigned: FxHashSet<VarId>,
    /// Memory that they may change.
    pub(super) changes: FxHashSet<Object>,
    /// What a warp must reach together: barriers, votes.
    pub(super) together: bool,
    /// They leave the loop before its test does.
    pub(super) exits: bool,
    /// Some iterations end early.
    pub(super) continues: bool,
    /// They hold a loop, and one of a known number of iterations.
    pub(super) loops: bool,
    pub(super) fully_unrolled: bool,
    /// They hold a branch that is more than a choice between values: the assembler sees several blocks.
    pub(super) forks: bool,
    /// They call what the machine has no instruction for.
    pub(super) calls: bool,
    /// Loads, stores, and operations of floating point.
    pub(super) loads: u64,
    /// The loads among them from device memory.
    pub(super) fetches: u64,
    pub(super) stores: u64,
    /// The stores among them to device memory, and whether one goes to a place that stays, or by a product of what
    /// varies.
    pub(super) far_stores: u64,
    pub(super) scaled: bool,
    /// A place is a multiple of what varies by a power of two beside what is another in each thread.
    pub(super) strided: bool,
    /// An address holds a quotient or a remainder of what varies.
    pub(super) divides: bool,
    /// A place moves on otherwise.
    pub(super) stepped: bool,
    /// The addresses that they move on, by the variables that are written.
    pub(super) moved: FxHashSet<Vec<VarId>>,
    /// The places that they store to, by the hash of what is written.
    pub(super) stored: FxHashSet<u64>,
    pub(super) flops: u64,
    /// Accesses and operations that are no part of an address.
    pub(super) work: u64,
    /// The places that they load from, by the hash of what is written.
    pub(super) loaded: FxHashSet<u64>,
    /// Operations of an iteration, roughly as LLVM counts them.
    pub(super) weight: u64,
    /// Functions kept once that they call, and what a call counts.
    pub(super) called: FxHashMap<RoutineId, Counts>,
    /// Pointer variables that they write through.
    pub(super) through: FxHashSet<VarId>,
    /// Pointers into arrays of the thread's own that they declare.
    pub(super) own: FxHashSet<VarId>,
    /// Arrays that they subscript with what varies in the loop.
    pub(super) subscripted: FxHashSet<VarId>,
}

/// What is counted: loads, those from device memory, stores, operations of floating point, work, weight.
pub(super) type Counts = [u64; 6];

/// Parts of an instruction that sizes of unrolled loops are counted in.
pub(super) const QUARTERS: u64 = 4;

impl Touched {
    pub(super) fn counts(&mut self) -> [&mut u64; 6] {
        [
            &mut self.loads,
            &mut self.fetches,
            &mut self.stores,
            &mut self.flops,
            &mut self.work,
            &mut self.weight,
        ]
    }

    /// Adds an inner loop with this trip count.
    pub(super) fn add(&mut self, inner: Touched, turns: u64) {
        self.assigned.extend(inner.assigned);
        self.through.extend(inner.through);
        self.changes.extend(inner.changes);
        self.own.extend(inner.own);
        self.subscripted.extend(inner.subscripted);
        self.together |= inner.together;
        self.exits |= inner.exits;
        self.loops |= inner.loops;
        self.calls |= inner.calls;
        self.forks |= inner.forks;
        self.fully_unrolled |= inner.fully_unrolled;
        let times = |each: u64| each.saturating_mul(turns);
        self.weight = self
            .weight
            .saturating_add(times(inner.weight.saturating_sub(2)));
        self.loads = self.loads.saturating_add(times(inner.loads));
        self.fetches = self.fetches.saturating_add(times(inner.fetches));
        self.stores = self.stores.saturating_add(times(inner.stores));
        self.far_stores = self.far_stores.saturating_add(times(inner.far_stores));
        self.scaled |= inner.scaled;
        self.strided |= inner.strided;
        self.stepped |= inner.stepped;
        self.divides |= inner.divides;
        self.moved.extend(inner.moved);
        self.stored.extend(inner.stored);
        self.flops = self.flops.saturating_add(times(inner.flops));
        self.work = self.work.saturating_add(times(inner.work));
    }

    /// Machine instructions of an iteration, roughly: a product and a sum are one, addresses differ by constants.
    pub(super) fn machine(&self) -> u64 {
        (self.work - self.work.min(self.flops / 2)).max(1)
    }

    /// [`Self::machine`] without the test, of which unrolled iterations share one.
    pub(super) fn untested(&self) -> u64 {
        (self.machine() - 1).max(1)
    }

    /// Size of a body with this unroll factor in quarters of machine instructions, the increments of addresses included.
    pub(super) fn quarters(&self, times: u64) -> u64 {
        let further = (self.moved.len() as u64).saturating_sub(1);
        let size = &nvcc().size;
        let moved = times.saturating_mul(size.address).min(size.address_most);
        let addresses = times / 2 + further * moved;
        (self
            .untested()
            .saturating_mul(times)
            .saturating_mul(QUARTERS))
        .saturating_add(addresses)
    }
}
