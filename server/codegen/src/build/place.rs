//! Where a value of the source lies: in registers, in an array that the compiled code chooses from, or in memory.

use warplens_ir::VarId;

use crate::graph::{Space, V};

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
    /// Which element.
    pub index: V,
    /// Bytes of an element.
    pub size: u32,
    /// Elements.
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

    /// The first byte of the part in an element.
    pub(super) fn of(&self, element: u32) -> u32 {
        (self.offset).wrapping_add(element.wrapping_mul(self.size))
    }
}
