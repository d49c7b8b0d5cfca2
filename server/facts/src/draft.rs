//! What the executor notes while the kernel runs, before it is measured over the launch.
//!
//! In: sites, addresses and conditions as expressions, each with its context. What holds: a draft has no figures; those are
//! made of it when the run is over.

use std::sync::Arc;

use warplens_machine::{Profile, address_period, bank_period};
use warplens_symbolic::Id;

use crate::facts::{Alias, BranchKind, Form, Op, Site, Space, StructField};
use crate::value::{Doubt, PartId};
use crate::why::Why;

/// An access before it is measured.
#[derive(Debug, Clone)]
pub(crate) struct AccessDraft {
    pub(crate) site: Site,
    pub(crate) text: String,
    pub(crate) array: String,
    pub(crate) space: Space,
    pub(crate) shared: Option<usize>,
    /// Of shared memory: that of another block of the cluster.
    pub(crate) remote: bool,
    pub(crate) op: Op,
    pub(crate) bytes: u32,
    /// Its address is a multiple of what it moves: not of a copy of bytes, and of `vload4`.
    pub(crate) is_aligned: bool,
    pub(crate) form: Form,
    /// A box of a tensor: its address is that among boxes side by side.
    pub(crate) of_tensor: bool,
    /// The PTX instruction that it is written as.
    pub(crate) instruction: Option<Arc<str>>,
    pub(crate) ahead: Option<u32>,
    /// The compiler combines the lanes' operands.
    pub(crate) combines: bool,
    pub(crate) element: u32,
    pub(crate) address: Id,
    pub(crate) context: usize,
    pub(crate) field: Option<StructField>,
    pub(crate) alias: Alias,
    pub(crate) extent: Option<u64>,
    pub(crate) doubt: Option<Doubt>,
    /// The expression, and which of its pieces.
    pub(crate) origin: PartId,
    pub(crate) piece: u32,
    /// Why nothing can be said of where it goes, whatever the address.
    pub(crate) unseen: Option<Unseen>,
}

impl AccessDraft {
    /// What decides the cost of one of its requests, with the addresses.
    pub(crate) fn kind(&self) -> RequestKind {
        RequestKind {
            space: self.space,
            op: self.op,
            form: self.form,
            bytes: self.bytes,
        }
    }

    /// Bytes behind one address.
    pub(crate) fn width(&self) -> u32 {
        match self.form {
            Form::Lanes => self.bytes,
            Form::Rows(_) => 16,
            Form::Bulk(bytes) | Form::Described { bytes, .. } => bytes,
        }
    }

    /// A shift of all lanes by this many bytes changes no figure.
    pub(crate) fn period(&self, profile: &Profile) -> i64 {
        match self.space {
            // Its bytes alone decide.
            _ if matches!(self.form, Form::Described { .. }) => 1,
            Space::Shared => bank_period(profile),
            Space::Constant => word(self.bytes),
            _ => address_period(profile),
        }
        .max(1)
    }
}

/// What decides the cost of a request, with the addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RequestKind {
    pub(crate) space: Space,
    pub(crate) op: Op,
    pub(crate) form: Form,
    /// Bytes of each lane.
    pub(crate) bytes: u32,
}

impl RequestKind {
    /// The compiler may make one access of several of these, and what that takes is known: of shared memory with 32 banks of words.
    pub(crate) fn is_joined_in_shared_memory(self, profile: &Profile) -> bool {
        let rule = profile.bank_rule;
        let plain = self.form == Form::Lanes && self.op != Op::Atomic && self.bytes <= 8;
        plain
            && rule.banks == 32
            && profile.warp_size == 32
            && !rule.half_warp
            && rule.is_of_words()
    }
}

/// Accesses of which only the runtime knows more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Unseen {
    /// A packet of a pipe.
    Pipe,
    /// A texel of a texture, a surface or an image.
    Image,
    /// In a launch that the kernel makes.
    Launch,
    /// A box of a tensor that may lie across sectors, or end outside of it.
    Box,
    /// What a descriptor says, which has bits that no field has.
    Reserved,
    /// What a descriptor says, whose address is not in 16 bytes.
    DescribedInBytes,
}

/// Where the probability of a condition is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// A directive of the user.
    Directive,
    /// `__builtin_expect`.
    Expectation,
    /// That two numbers with a fraction are equal by chance.
    Chance,
    /// That a value goes beyond all before it.
    Record,
    /// That one thread draws a number of a counter that all of them add to.
    Ticket,
    /// No statement of either: the default.
    Default,
}

/// A branch before it is measured.
#[derive(Debug, Clone)]
pub(crate) struct BranchDraft {
    pub(crate) site: Site,
    pub(crate) text: String,
    pub(crate) kind: BranchKind,
    /// The condition; a loop's: its trip count, where that is one expression.
    pub(crate) condition: Option<Id>,
    pub(crate) context: usize,
    /// The context of a loop's body.
    pub(crate) inner: Option<usize>,
    pub(crate) taken_operations: u32,
    pub(crate) other_operations: u32,
    pub(crate) probability: f64,
    pub(crate) probability_from: From,
    /// Data decides, or it was not understood.
    pub(crate) why: Option<Why>,
    pub(crate) origin: PartId,
}

/// A barrier and its place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BarrierDraft {
    pub(crate) site: Site,
    pub(crate) context: usize,
}

/// A place where control parted, as it was executed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ControlDraft {
    /// The address of the loop's statement, of the condition, of the first operand.
    pub(crate) place: usize,
    /// Its branch; `usize::MAX` where it is none of the source.
    pub(crate) branch: usize,
    pub(crate) outer: usize,
    pub(crate) taken: usize,
    /// The context of the other side, where there is one.
    pub(crate) other: Option<usize>,
}

/// What a lane reads at a time, in bytes: at least 4.
pub(crate) fn word(bytes: u32) -> i64 {
    i64::from(bytes.clamp(4, 1 << 16).next_power_of_two())
}
