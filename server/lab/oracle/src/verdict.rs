//! What is customary to say of an access or a branch, from what was counted.

use crate::tally::{BranchCounts, Requests, Reuse};

/// A request that moves this many times its least is wasteful; a stride of two, the guides' first example, moves twice.
const WASTEFUL: f64 = 1.5;
/// One that moves less than this is not; between the two both verdicts are accepted.
const THRIFTY: f64 = 1.2;
/// The same of a start that is shifted: five sectors where four are enough.
const SHIFTED: f64 = 1.2;
/// Passes of shared memory, to the least for the width; under the second there is no conflict.
const CONFLICT: f64 = 1.25;
const STRAY: f64 = 1.05;
/// Lanes of a warp that one address serves one after another.
const HOT: f64 = 8.0;
/// Loads of a word by a block; under the second each word is loaded about once.
const AGAIN: f64 = 2.0;
const ONCE: f64 = 1.5;
/// Of a thread's accesses, those that go where the one before went.
const REPEATED: f64 = 0.5;
/// Of the warps at a branch, those that part.
const PARTED: f64 = 0.1;
/// Of what the kernel's warps issue, what a branch wastes.
const WASTED: f64 = 0.02;

/// What brute force says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It is not so.
    No,
    /// Customary definitions differ, or it was not counted.
    Open,
    /// It is so.
    Yes,
}

impl Verdict {
    /// Yes where it holds.
    pub fn of(holds: bool) -> Verdict {
        if holds { Verdict::Yes } else { Verdict::No }
    }
}

fn ratio(a: u64, b: u64) -> f64 {
    a as f64 / b.max(1) as f64
}

impl Requests {
    /// The sectors that the pattern takes, wherever it begins.
    fn of_pattern(&self) -> u64 {
        self.sectors.min(self.aligned_sectors)
    }

    /// Whether the lanes' addresses lie apart: the sectors are half as many again as the least, the bytes' beginning
    /// aside. The least is that of the distinct bytes, and that of the bytes of all lanes; where only one says so, it is open.
    pub fn uncoalesced(&self) -> Verdict {
        let of_distinct = ratio(self.of_pattern(), self.ideal_sectors);
        let of_all = ratio(self.of_pattern(), self.asked_sectors);
        // A row so short that its shifted beginning costs half of it is neither.
        let shifted = ratio(self.sectors, self.ideal_sectors) >= WASTEFUL;
        if of_distinct < THRIFTY && !shifted {
            Verdict::No
        } else if of_distinct.min(of_all) >= WASTEFUL {
            Verdict::Yes
        } else {
            Verdict::Open
        }
    }

    /// Whether the bytes would take fewer sectors if they began where one does.
    pub fn misaligned(&self) -> Verdict {
        let shifted = ratio(self.sectors, self.of_pattern()) >= SHIFTED;
        Verdict::of(shifted && self.uncoalesced() != Verdict::Yes)
    }

    /// Whether lanes access different words of one bank.
    pub fn conflict(&self) -> Verdict {
        match ratio(self.passes, self.ideal_passes) {
            degree if degree >= CONFLICT => Verdict::Yes,
            degree if degree < STRAY => Verdict::No,
            _ => Verdict::Open,
        }
    }

    /// Whether many lanes of a warp update one address.
    pub fn hot(&self) -> Verdict {
        Verdict::of(ratio(self.serial, self.requests) >= HOT)
    }

    /// Whether a thread goes to one address again and again.
    pub fn repeated(&self) -> Verdict {
        Verdict::of(ratio(self.again, self.lanes) >= REPEATED)
    }

    /// Whether the lanes of a warp access several words at once.
    pub fn several_words(&self) -> Verdict {
        Verdict::of(ratio(self.words, self.requests) >= WASTEFUL)
    }

    /// Whether all active lanes access one word, at least [`HOT`] per request.
    pub fn one_word(&self) -> Verdict {
        Verdict::of(self.words <= self.requests && ratio(self.lanes, self.requests) >= HOT)
    }
}

impl Reuse {
    /// Whether a block loads its words again and again.
    pub fn again(&self) -> Verdict {
        match ratio(self.loads, self.words) {
            times if times >= AGAIN => Verdict::Yes,
            times if times < ONCE => Verdict::No,
            _ => Verdict::Open,
        }
    }
}

impl BranchCounts {
    /// Whether warps diverge here at a cost, relative to `issued`, the operations of all warps.
    pub fn splits(&self, issued: f64) -> Verdict {
        let parted = ratio(self.divergent, self.evaluations) >= PARTED;
        match (self.divergent > 0, parted && self.wasted >= issued * WASTED) {
            (false, _) => Verdict::No,
            (_, true) => Verdict::Yes,
            // A few lanes, a few operations.
            (true, false) if parted && self.wasted > 0.0 => Verdict::Open,
            (true, false) => Verdict::No,
        }
    }
}
