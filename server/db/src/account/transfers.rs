//! The copies of a program, with the least time that the link lets them take.

use warplens_host::{Direction, HostCopy, HostEvent, HostEventKind, MemoryKind};

use super::Making;
use super::formula::{Sum, times};
use crate::wire::Transfer;

/// What the copies of a program come to.
pub(super) struct Moved {
    /// Bytes to the GPU.
    pub(super) to_device: Sum,
    /// Bytes from it.
    pub(super) to_host: Sum,
    /// Time of all of them at least.
    pub(super) time_ms: Option<f64>,
    /// Time of those that are known.
    pub(super) known_ms: Option<f64>,
}

/// Pages that are there already are not moved.
fn is_prefetch(event: &HostEvent) -> bool {
    event.call.contains("Prefetch")
}

impl Making<'_> {
    fn copies(&self) -> impl Iterator<Item = (&HostEvent, &HostCopy)> {
        self.run
            .events
            .iter()
            .filter_map(|event| match &event.kind {
                HostEventKind::Copy(copy) => Some((event, copy)),
                _ => None,
            })
    }

    pub(super) fn transfers(&self) -> Vec<Transfer> {
        let transfer = |(event, copy): (&HostEvent, &HostCopy)| {
            let one_ms = self.copy_ms(copy).filter(|_| !is_prefetch(event));
            let number = event.often.number();
            Transfer {
                call: event.call.clone(),
                file: (self.name)(&event.place.file),
                line: event.place.line + 1,
                direction: copy.direction.map(Direction::name),
                bytes: copy.size.bytes,
                size: copy.size.text.to_string(),
                host_memory: copy.host.map(MemoryKind::name),
                asynchronous: copy.asynchronous,
                copies: times(&event.often),
                total_bytes: number.and_then(|number| copy.size.bytes?.checked_mul(number)),
                at_least_ms: one_ms,
                total_at_least_ms: number.and_then(|number| Some(one_ms? * number as f64)),
            }
        };
        self.copies().map(transfer).collect()
    }

    /// Milliseconds of one copy at the peak bandwidth of what it goes over.
    pub(super) fn copy_ms(&self, copy: &HostCopy) -> Option<f64> {
        let bytes = copy.size.bytes? as f64;
        let gb_s = match copy.direction? {
            Direction::HostToDevice | Direction::DeviceToHost => self.profile.host_link_gb_s?,
            // Each byte is read and written.
            Direction::DeviceToDevice => self.profile.dram_bandwidth_gb_s / 2.0,
        };
        Some(bytes / gb_s / 1e6)
    }

    pub(super) fn moved(&self) -> Moved {
        let mut moved = Moved {
            to_device: Sum::default(),
            to_host: Sum::default(),
            time_ms: Some(0.0),
            known_ms: self.profile.host_link_gb_s.map(|_| 0.0),
        };
        for (event, copy) in self.copies() {
            let number = event.often.number();
            let bytes = match copy.size.bytes {
                Some(bytes) => Sum::of(&event.often, bytes as f64),
                None => Sum::lost(),
            };
            match copy.direction {
                Some(Direction::HostToDevice) => moved.to_device.add(&bytes),
                Some(Direction::DeviceToHost) => moved.to_host.add(&bytes),
                Some(Direction::DeviceToDevice) => {}
                None => {
                    moved.to_device.add(&Sum::lost());
                    moved.to_host.add(&Sum::lost());
                }
            }
            // Within the device nothing goes over the link; a prefetch moves only what is not there yet.
            if copy.direction == Some(Direction::DeviceToDevice) || is_prefetch(event) {
                continue;
            }
            let one_ms = self.copy_ms(copy);
            let all = |number: u64| Some(one_ms? * number as f64);
            moved.time_ms = moved.time_ms.and_then(|sum| Some(sum + all(number?)?));
            if let (Some(known), Some(time)) = (&mut moved.known_ms, all(event.often.known)) {
                *known += time;
            }
        }
        moved
    }
}
