//! What memory holds that was given: contents of array parameters, and what a block copies of them to shared memory.

use rustc_hash::{FxHashMap, FxHashSet};
use warplens_ir::{Kernel, Storage, Type, VarId};

use super::numbers::{Value, fitted};
use crate::Contents;

/// One array parameter.
#[derive(Debug)]
struct Array<'a> {
    id: VarId,
    bytes: &'a [u8],
    /// The first element behind the end that was read.
    beyond: Option<i64>,
    /// The kernel writes to it: what it holds depends on when that is.
    written: bool,
    /// Not looked at any more.
    dropped: bool,
}

/// Contents of array parameters.
#[derive(Debug)]
pub(super) struct Given<'a> {
    arrays: Vec<Array<'a>>,
}

impl<'a> Given<'a> {
    pub(super) fn new(kernel: &Kernel, contents: &'a [Contents]) -> Given<'a> {
        let arrays = contents.iter().filter_map(|contents| {
            let at = kernel.vars.iter().position(|var| {
                var.name == contents.parameter && matches!(var.storage, Storage::Param(_))
            })?;
            Some(Array {
                id: VarId(at as u32),
                bytes: &contents.bytes,
                beyond: None,
                written: false,
                dropped: false,
            })
        });
        Given {
            arrays: arrays.collect(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.arrays.is_empty()
    }

    /// What lanes read at these bytes of an array.
    pub(super) fn read(&mut self, id: VarId, ty: &Type, bytes: &Value, here: u64) -> Value {
        let mut value = Value::UNKNOWN;
        let size = ty.size() as usize;
        let Some(array) = self.arrays.iter_mut().find(|array| array.id == id) else {
            return value;
        };
        if array.dropped || !matches!(size, 1 | 2 | 4 | 8) {
            return value;
        }
        for lane in super::evaluate::lanes_of(here & bytes.known) {
            let at = bytes.lanes[lane];
            let held = usize::try_from(at)
                .ok()
                .and_then(|at| array.bytes.get(at..at.checked_add(size)?));
            match held {
                Some(held) => {
                    let mut whole = [0; 8];
                    whole[..size].copy_from_slice(held);
                    value.lanes[lane] = fitted(i64::from_le_bytes(whole), ty);
                    value.known |= 1 << lane;
                }
                None => {
                    array.beyond.get_or_insert(at.div_euclid(size as i64));
                }
            }
        }
        value
    }

    /// The kernel writes to an array.
    pub(super) fn write(&mut self, id: VarId) {
        for array in &mut self.arrays {
            array.written |= array.id == id;
        }
    }

    /// False where something was read of an array that the kernel writes to.
    pub(super) fn all_kept(&self) -> bool {
        self.arrays
            .iter()
            .all(|array| array.dropped || !array.written)
    }

    pub(super) fn drop_written(&mut self) {
        for array in &mut self.arrays {
            array.dropped |= array.written;
            array.beyond = None;
        }
    }

    pub(super) fn beyond(&self) -> impl Iterator<Item = (VarId, i64)> {
        self.arrays
            .iter()
            .filter_map(|array| Some((array.id, array.beyond?)))
    }

    pub(super) fn written(&self) -> impl Iterator<Item = VarId> {
        let written = self.arrays.iter().filter(|array| array.written);
        written.map(|array| array.id)
    }
}

/// Integers that a block keeps in shared memory, where it keeps one there and no other: then it does not matter when
/// it is read.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// True while the block runs to write, false while it runs to be recorded.
    pub(super) writing: bool,
    /// By array and byte; none where several are written, or one that is not known.
    cells: FxHashMap<(VarId, i64), Option<i64>>,
    /// The size of an array's cells.
    sizes: FxHashMap<VarId, u64>,
    /// Arrays of which nothing is known.
    lost: FxHashSet<VarId>,
}

impl Shared {
    pub(super) fn clear(&mut self) {
        self.cells.clear();
        self.sizes.clear();
        self.lost.clear();
    }

    /// Nothing of an array is known.
    pub(super) fn lose(&mut self, id: VarId) {
        if self.writing {
            self.lost.insert(id);
        }
    }

    /// Lanes write; those of `sure` are there and their values known.
    pub(super) fn write(
        &mut self,
        id: VarId,
        size: u64,
        bytes: &Value,
        value: &Value,
        (here, sure): (u64, u64),
    ) {
        if !self.writing {
            return;
        }
        if here & !bytes.known != 0 || *self.sizes.entry(id).or_insert(size) != size {
            self.lost.insert(id);
            return;
        }
        for lane in super::evaluate::lanes_of(here) {
            let known = (sure & value.known) >> lane & 1 == 1 && value.array.is_none();
            let now = known.then_some(value.lanes[lane]);
            let cell = self.cells.entry((id, bytes.lanes[lane])).or_insert(now);
            if *cell != now {
                *cell = None;
            }
        }
    }

    /// What lanes read.
    pub(super) fn read(&self, id: VarId, size: u64, bytes: &Value, here: u64) -> Value {
        let mut value = Value::UNKNOWN;
        if self.writing || self.lost.contains(&id) || self.sizes.get(&id) != Some(&size) {
            return value;
        }
        for lane in super::evaluate::lanes_of(here & bytes.known) {
            if let Some(Some(number)) = self.cells.get(&(id, bytes.lanes[lane])) {
                value.lanes[lane] = *number;
                value.known |= 1 << lane;
            }
        }
        value
    }
}
