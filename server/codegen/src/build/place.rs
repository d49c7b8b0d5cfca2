//! Where a value of the source lies: in registers, in an array that the compiled code chooses from, or in memory.

use warplens_ir::VarId;

use crate::graph::{Space, V};

/// Bytes that the widest access moves: subscripts are told apart by no larger steps.
pub(crate) const WIDEST: u64 = 16;

/// The greatest common divisor.
pub(crate) fn common(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common(b, a % b) }
}

/// Something that can be read and written.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    /// At a byte offset in a variable that lies in registers.
    Own(VarId, u32),
    /// A part of one of a variable's elements, of which the compiled code chooses.
    Picked(Pick),
    /// Behind a pointer.
    Memory(V, Space),
    /// Not followed.
    Lost,
}

/// A part of one of an array's elements.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pick {
    /// The variable.
    pub id: VarId,
    /// The part in the first element: its first byte.
    pub offset: u32,
    /// Which element, behind the sum of these two.
    pub index: V,
    pub behind: i64,
    /// Bytes of an element.
    pub size: u32,
    /// Elements: from the first on, at a step.
    pub first: u32,
    pub every: u32,
    pub count: u32,
}

impl Pick {
    /// This many times `size` bytes further within the element.
    pub(super) fn at(self, index: i64, size: u32) -> Pick {
        Pick {
            offset: (self.offset).wrapping_add((index as u32).wrapping_mul(size)),
            ..self
        }
    }

    /// The elements that the subscript may name.
    pub(super) fn elements(self) -> impl Iterator<Item = u32> {
        (self.first..self.count).step_by(self.every.max(1) as usize)
    }

    /// The first byte of the part in an element.
    pub(super) fn of(&self, element: u32) -> u32 {
        (self.offset).wrapping_add(element.wrapping_mul(self.size))
    }
}
