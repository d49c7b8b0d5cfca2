//! The memory of a launch: one address space, cut into regions that cannot run into each other.

use crate::races::Races;
use crate::tally::Space;

/// An address is a region's number above this bit and an offset around [`MIDDLE`] below it.
const REGION_BITS: u32 = 40;
/// Offset 0 of a region, so that an index below it stays inside.
const MIDDLE: u64 = 1 << (REGION_BITS - 1);
const LOCAL: usize = 1;
const SHARED: usize = 2;
/// Bytes of locals a thread may have.
const MOST_LOCAL: u64 = 1 << 16;
/// Every array begins at a multiple of this.
const ALIGNED: u64 = 256;

#[derive(Debug)]
enum Region {
    /// Nothing may be read there.
    None,
    Bytes(Vec<u8>, Space),
    /// No end, no contents: what is read depends on the address alone, what is written is lost.
    Endless,
}

#[derive(Debug)]
pub(crate) struct Memory {
    regions: Vec<Region>,
    /// The threads' own variables, one thread after another.
    local: Vec<u8>,
    local_each: u64,
    lanes: usize,
    /// What arrays without end hold.
    contents: u64,
    /// Outside an array: an error, or like [`Region::Endless`].
    pub(crate) checked: bool,
    /// The race detector, where the launch enables it.
    pub(crate) races: Option<Races>,
}

/// Why an access cannot be done.
pub(crate) type Trap = &'static str;

impl Memory {
    pub(crate) fn new(lanes: usize, checked: bool, contents: u64) -> Memory {
        Memory {
            regions: vec![
                Region::None,
                Region::None,
                Region::Bytes(Vec::new(), Space::Shared),
            ],
            local: vec![0; lanes * 1024],
            local_each: 1024,
            lanes,
            checked,
            contents,
            races: None,
        }
    }

    fn start(region: usize) -> u64 {
        (region as u64) << REGION_BITS | MIDDLE
    }

    fn split(address: u64) -> (usize, i64) {
        let offset = (address & ((1 << REGION_BITS) - 1)) as i64 - MIDDLE as i64;
        ((address >> REGION_BITS) as usize, offset)
    }

    /// A new array in device memory.
    pub(crate) fn add(&mut self, contents: Vec<u8>, space: Space) -> u64 {
        self.regions.push(Region::Bytes(contents, space));
        Memory::start(self.regions.len() - 1)
    }

    pub(crate) fn add_endless(&mut self) -> u64 {
        self.regions.push(Region::Endless);
        Memory::start(self.regions.len() - 1)
    }

    pub(crate) fn take(&mut self, address: u64) -> Vec<u8> {
        match self.regions.get_mut(Memory::split(address).0) {
            Some(Region::Bytes(bytes, _)) => std::mem::take(bytes),
            _ => Vec::new(),
        }
    }

    /// Swaps the arrays in device memory with another's.
    pub(crate) fn swap_arrays(&mut self, other: &mut Memory) {
        std::mem::swap(&mut self.regions, &mut other.regions);
    }

    /// The bytes of an array from an address to its end; `None` where there is no array with these.
    pub(crate) fn from(&mut self, address: u64) -> Option<&mut [u8]> {
        let (region, offset) = Memory::split(address);
        match self.regions.get_mut(region) {
            Some(Region::Bytes(bytes, Space::Global | Space::Constant)) => {
                bytes.get_mut(usize::try_from(offset).ok()?..)
            }
            _ => None,
        }
    }

    /// A new block: its shared memory is empty.
    pub(crate) fn begin_block(&mut self) {
        self.regions[SHARED] = Region::Bytes(Vec::new(), Space::Shared);
        if let Some(races) = &mut self.races {
            races.met();
        }
    }

    fn watch(&mut self, lane: usize, address: u64, size: u64, writes: bool) {
        if let Some(races) = &mut self.races
            && Memory::split(address).0 != LOCAL
        {
            races.access(lane, address, size, writes);
        }
    }

    /// Room in shared memory.
    pub(crate) fn add_shared(&mut self, size: u64) -> Result<u64, Trap> {
        let Region::Bytes(bytes, _) = &mut self.regions[SHARED] else {
            return Err("no shared memory");
        };
        let at = (bytes.len() as u64).next_multiple_of(ALIGNED);
        if at + size > 1 << 24 {
            return Err("too much shared memory");
        }
        bytes.resize((at + size) as usize, 0);
        Ok(Memory::start(SHARED) + at)
    }

    /// The address of a place in every thread's own memory.
    pub(crate) fn local(&mut self, offset: u64, size: u64) -> Result<u64, Trap> {
        let end = offset + size;
        if end > MOST_LOCAL {
            return Err("too many local variables");
        }
        if end > self.local_each {
            let each = end.next_power_of_two();
            let mut moved = vec![0; self.lanes * each as usize];
            for lane in 0..self.lanes {
                let from = lane * self.local_each as usize;
                let to = lane * each as usize;
                moved[to..to + self.local_each as usize]
                    .copy_from_slice(&self.local[from..from + self.local_each as usize]);
            }
            self.local = moved;
            self.local_each = each;
        }
        Ok(Memory::start(LOCAL) + offset)
    }

    /// Where an address lies; `None`: in a thread's own memory.
    pub(crate) fn space(&self, address: u64) -> Result<Option<Space>, Trap> {
        match Memory::split(address).0 {
            LOCAL => Ok(None),
            region => match self.regions.get(region) {
                Some(Region::Bytes(_, space)) => Ok(Some(*space)),
                Some(Region::Endless) => Ok(Some(Space::Global)),
                _ => Err("an address where nothing lies"),
            },
        }
    }

    fn slice(&mut self, lane: usize, address: u64, size: u64) -> Result<Option<&mut [u8]>, Trap> {
        let (region, offset) = Memory::split(address);
        let checked = self.checked;
        let (bytes, offset, end) = match region {
            LOCAL => {
                let each = self.local_each as i64;
                let first = lane as i64 * each;
                (&mut self.local, first + offset, first + each)
            }
            _ => match self.regions.get_mut(region) {
                Some(Region::Bytes(bytes, _)) => {
                    let end = bytes.len() as i64;
                    (bytes, offset, end)
                }
                Some(Region::Endless) => return Ok(None),
                _ => return Err("an address where nothing lies"),
            },
        };
        let inside = offset >= 0 && offset + size as i64 <= end;
        match (inside, checked) {
            (true, _) => Ok(bytes.get_mut(offset as usize..(offset as u64 + size) as usize)),
            (false, true) => Err("an access outside its array"),
            (false, false) => Ok(None),
        }
    }

    /// Up to eight bytes, extended by zeros.
    pub(crate) fn read(&mut self, lane: usize, address: u64, size: u64) -> Result<u64, Trap> {
        self.watch(lane, address, size, false);
        match self.slice(lane, address, size)? {
            Some(bytes) => {
                let mut word = [0; 8];
                word[..bytes.len()].copy_from_slice(bytes);
                Ok(u64::from_le_bytes(word))
            }
            // Some number, small as a float of any width, the same each time.
            None => {
                Ok(((address / size) ^ self.contents).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58)
            }
        }
    }

    pub(crate) fn write(
        &mut self,
        lane: usize,
        address: u64,
        size: u64,
        word: u64,
    ) -> Result<(), Trap> {
        self.watch(lane, address, size, true);
        if let Some(bytes) = self.slice(lane, address, size)? {
            bytes.copy_from_slice(&word.to_le_bytes()[..size as usize]);
        }
        Ok(())
    }

    pub(crate) fn read_bytes(
        &mut self,
        lane: usize,
        address: u64,
        out: &mut [u8],
    ) -> Result<(), Trap> {
        self.watch(lane, address, out.len() as u64, false);
        match self.slice(lane, address, out.len() as u64)? {
            Some(bytes) => out.copy_from_slice(bytes),
            None => out.fill((address >> 2) as u8),
        }
        Ok(())
    }

    pub(crate) fn write_bytes(
        &mut self,
        lane: usize,
        address: u64,
        from: &[u8],
    ) -> Result<(), Trap> {
        self.watch(lane, address, from.len() as u64, true);
        if let Some(bytes) = self.slice(lane, address, from.len() as u64)? {
            bytes.copy_from_slice(from);
        }
        Ok(())
    }
}
