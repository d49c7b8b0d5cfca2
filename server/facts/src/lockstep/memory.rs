//! Known contents of memory: those given for array parameters, and what a block stores in shared memory.

use rustc_hash::{FxHashMap, FxHashSet};
use warplens_ir::{Kernel, Storage, Type, VarId};

use super::numbers::{LaneValues, fitted};
use crate::Contents;

/// The given contents of one array parameter.
#[derive(Debug)]
struct Array<'a> {
    id: VarId,
    bytes: &'a [u8],
    /// The first element read past the end.
    past_end: Option<i64>,
    /// The kernel writes to it, so a value read depends on the order of warps.
    written: bool,
    /// Its contents are ignored.
    dropped: bool,
}

/// The given contents of all array parameters.
#[derive(Debug)]
pub(super) struct ArrayContents<'a> {
    arrays: Vec<Array<'a>>,
}

impl<'a> ArrayContents<'a> {
    pub(super) fn new(kernel: &Kernel, contents: &'a [Contents]) -> ArrayContents<'a> {
        let arrays = contents.iter().filter_map(|contents| {
            let at = kernel.vars.iter().position(|var| {
                var.name == contents.parameter && matches!(var.storage, Storage::Param(_))
            })?;
            Some(Array {
                id: VarId(at as u32),
                bytes: &contents.bytes,
                past_end: None,
                written: false,
                dropped: false,
            })
        });
        ArrayContents {
            arrays: arrays.collect(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.arrays.is_empty()
    }

    /// The values that lanes load at these byte offsets of an array.
    pub(super) fn read(
        &mut self,
        id: VarId,
        ty: &Type,
        bytes: &LaneValues,
        active: u64,
    ) -> LaneValues {
        let mut value = LaneValues::UNKNOWN;
        let size = ty.size() as usize;
        let Some(array) = self.arrays.iter_mut().find(|array| array.id == id) else {
            return value;
        };
        if array.dropped || !matches!(size, 1 | 2 | 4 | 8) {
            return value;
        }
        for lane in super::evaluate::lanes_of(active & bytes.known) {
            let at = bytes.lanes[lane];
            let element = usize::try_from(at)
                .ok()
                .and_then(|at| array.bytes.get(at..at.checked_add(size)?));
            match element {
                Some(element) => {
                    let mut whole = [0; 8];
                    whole[..size].copy_from_slice(element);
                    value.lanes[lane] = fitted(i64::from_le_bytes(whole), ty);
                    value.known |= 1 << lane;
                }
                None => {
                    array.past_end.get_or_insert(at.div_euclid(size as i64));
                }
            }
        }
        value
    }

    /// Notes that the kernel writes to an array.
    pub(super) fn write(&mut self, id: VarId) {
        for array in &mut self.arrays {
            array.written |= array.id == id;
        }
    }

    /// False where the kernel writes to an array whose contents were used.
    pub(super) fn contents_hold(&self) -> bool {
        self.arrays
            .iter()
            .all(|array| array.dropped || !array.written)
    }

    pub(super) fn drop_written(&mut self) {
        for array in &mut self.arrays {
            array.dropped |= array.written;
            array.past_end = None;
        }
    }

    pub(super) fn past_end(&self) -> impl Iterator<Item = (VarId, i64)> {
        self.arrays
            .iter()
            .filter_map(|array| Some((array.id, array.past_end?)))
    }

    pub(super) fn written(&self) -> impl Iterator<Item = VarId> {
        let written = self.arrays.iter().filter(|array| array.written);
        written.map(|array| array.id)
    }
}

/// Integers that a block stores in shared memory. A cell is known only where all stores to it agree: then the order of
/// loads and stores does not matter.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// True in the first run of the block, which fills the cells; false in the second, which is recorded.
    pub(super) writing: bool,
    /// By array and byte; `None` where stores disagree or a value is unknown.
    cells: FxHashMap<(VarId, i64), Option<i64>>,
    /// The element size of each array.
    sizes: FxHashMap<VarId, u64>,
    /// Arrays with unknown contents.
    lost: FxHashSet<VarId>,
}

impl Shared {
    pub(super) fn clear(&mut self) {
        self.cells.clear();
        self.sizes.clear();
        self.lost.clear();
    }

    /// Makes an array unknown.
    pub(super) fn lose(&mut self, id: VarId) {
        if self.writing {
            self.lost.insert(id);
        }
    }

    /// Stores for the active lanes; `sure` masks those whose predicate is known.
    pub(super) fn write(
        &mut self,
        id: VarId,
        size: u64,
        bytes: &LaneValues,
        value: &LaneValues,
        (active, sure): (u64, u64),
    ) {
        if !self.writing {
            return;
        }
        if active & !bytes.known != 0 || *self.sizes.entry(id).or_insert(size) != size {
            self.lost.insert(id);
            return;
        }
        for lane in super::evaluate::lanes_of(active) {
            let known = (sure & value.known) >> lane & 1 == 1 && value.array.is_none();
            let now = known.then_some(value.lanes[lane]);
            let cell = self.cells.entry((id, bytes.lanes[lane])).or_insert(now);
            if *cell != now {
                *cell = None;
            }
        }
    }

    /// The values that lanes load.
    pub(super) fn read(&self, id: VarId, size: u64, bytes: &LaneValues, active: u64) -> LaneValues {
        let mut value = LaneValues::UNKNOWN;
        if self.writing || self.lost.contains(&id) || self.sizes.get(&id) != Some(&size) {
            return value;
        }
        for lane in super::evaluate::lanes_of(active & bytes.known) {
            if let Some(Some(number)) = self.cells.get(&(id, bytes.lanes[lane])) {
                value.lanes[lane] = *number;
                value.known |= 1 << lane;
            }
        }
        value
    }
}
