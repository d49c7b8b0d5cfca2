//! Where the lanes of one warp go in one request.

use std::collections::BTreeMap;
use std::ops::Range;

use warplens_facts::LaneRequest;
use warplens_facts::facts::{Access, Space};
use warplens_machine::bank_of;

use crate::PlacedKernel;

/// A request, lane by lane.
#[derive(Debug, Clone, PartialEq)]
pub struct LanePicture {
    /// The access.
    pub access: Access,
    /// 0-based line in the file: its own, or that of the call that leads there.
    pub line: u32,
    /// By lane: bytes from the start of the array; `None` for a lane that takes no part.
    pub lanes: Vec<Option<i64>>,
    /// What the lanes touch, in order.
    pub touched: Touched,
    /// The part of the access's requests that cost as much as this one, as far as they were looked at.
    pub alike: f64,
}

/// What the lanes of a request touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Touched {
    /// Units of device memory (sectors, lines, segments): first byte and how many bytes of it are asked for.
    Units {
        /// Bytes of a unit.
        bytes: u32,
        /// In order of their addresses.
        units: Vec<(i64, u32)>,
    },
    /// Banks of shared memory: for each the distinct words of it that are asked for, and for each lane its banks.
    Banks {
        /// By bank.
        words: Vec<u32>,
        /// By lane, the bank of its first word.
        first: Vec<Option<u32>>,
    },
    /// Neither: constant memory, which gives one word at a time.
    Words(usize),
}

impl PlacedKernel {
    /// The lanes of the accesses that stand in some bytes of the file, those of constant and local memory left out.
    /// Empty where no addresses are known.
    pub fn lanes_in(&self, bytes: &Range<usize>) -> Vec<LanePicture> {
        let touches = |access: &Access| {
            let at = self.place(access.site.span);
            at.start <= bytes.end && bytes.start <= at.end
        };
        self.lane_pictures(&touches)
    }

    /// Those of the accesses that move the most beyond their ideal.
    pub(crate) fn costliest_lanes(&self, most: usize) -> Vec<LanePicture> {
        let accesses = &self.analysis.facts.accesses;
        let mut order: Vec<(f64, usize)> = accesses
            .iter()
            .enumerate()
            .map(|(index, access)| (waste(access), index))
            .filter(|(waste, _)| *waste > 0.0)
            .collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let mut wanted: Vec<&Access> = Vec::new();
        for (_, index) in order {
            let access = &accesses[index];
            let known = wanted
                .iter()
                .any(|one| one.site.line == access.site.line && one.text == access.text);
            if !known && wanted.len() < most {
                wanted.push(access);
            }
        }
        let mut pictures =
            self.lane_pictures(&|access| wanted.iter().any(|one| std::ptr::eq(*one, access)));
        pictures.sort_by(|a, b| waste(&b.access).total_cmp(&waste(&a.access)));
        pictures
    }

    fn lane_pictures(&self, wanted: &dyn Fn(&Access) -> bool) -> Vec<LanePicture> {
        let accesses = &self.analysis.facts.accesses;
        let pictured = |access: &Access| {
            !matches!(access.space, Space::Local)
                && (access.transactions_per_request.is_some()
                    || access.passes_per_request.is_some())
        };
        let index = |at: usize| {
            accesses
                .get(at)
                .is_some_and(|access| pictured(access) && wanted(access))
        };
        if !(0..accesses.len()).any(index) {
            return Vec::new();
        }
        let requests = self.analysis.lane_requests(&index);
        requests
            .into_iter()
            .map(|request| self.picture(&accesses[request.access], request))
            .collect()
    }

    fn picture(&self, access: &Access, request: LaneRequest) -> LanePicture {
        let profile = &self.analysis.profile;
        let width = i64::from(access.bytes_per_lane.max(1));
        let starts = || request.lanes.iter().flatten().copied();
        let touched = match access.space {
            Space::Shared => {
                let mut words =
                    vec![std::collections::BTreeSet::new(); profile.bank_rule.banks as usize];
                for start in starts() {
                    // Words of 4 bytes: two of them may be one row of a bank.
                    for word in start.div_euclid(4)..=(start + width - 1).div_euclid(4) {
                        let (bank, row) = bank_of(profile, word * 4);
                        if let Some(bank) = words.get_mut(bank as usize) {
                            bank.insert(row);
                        }
                    }
                }
                let first = request
                    .lanes
                    .iter()
                    .map(|lane| lane.map(|at| bank_of(profile, at).0));
                Touched::Banks {
                    words: words.iter().map(|rows| rows.len() as u32).collect(),
                    first: first.collect(),
                }
            }
            Space::Constant => {
                let distinct: std::collections::BTreeSet<i64> = starts().collect();
                Touched::Words(distinct.len())
            }
            _ => {
                let unit = i64::from(access.transaction_bytes.max(1));
                Touched::Units {
                    bytes: unit as u32,
                    units: units(starts(), width, unit),
                }
            }
        };
        let alike = request.alike / request.of;
        LanePicture {
            access: access.clone(),
            line: self.place_line(access.site.line),
            lanes: request.lanes,
            touched,
            alike: if alike.is_finite() { alike } else { 1.0 },
        }
    }
}

/// The units that are touched, and how many distinct bytes of each.
fn units(starts: impl Iterator<Item = i64>, width: i64, unit: i64) -> Vec<(i64, u32)> {
    let mut asked: Vec<i64> = starts.collect();
    asked.sort_unstable();
    let mut units: BTreeMap<i64, u32> = BTreeMap::new();
    let mut counted = i64::MIN;
    for start in asked {
        let mut at = start.max(counted);
        let end = start.saturating_add(width);
        while at < end {
            let first = at.div_euclid(unit) * unit;
            let part = end.min(first + unit) - at;
            *units.entry(first).or_insert(0) += part as u32;
            at += part;
        }
        counted = counted.max(end);
    }
    units.into_iter().collect()
}

/// How much an access moves over the launch beyond its ideal: bytes of device memory, or words of all banks for each pass.
fn waste(access: &Access) -> f64 {
    let requests = access.requests.unwrap_or(0.0);
    let beyond = |cost: Option<f64>, ideal: Option<f64>| Some((cost? - ideal?).max(0.0));
    let memory = beyond(
        access.transactions_per_request,
        access.ideal_transactions_per_request,
    );
    let shared = beyond(access.passes_per_request, access.ideal_passes_per_request);
    match access.space {
        Space::Shared => requests * shared.unwrap_or(0.0) * 128.0,
        Space::Global | Space::Texture => {
            requests * memory.unwrap_or(0.0) * f64::from(access.transaction_bytes)
        }
        Space::Local | Space::Constant => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::units;

    #[test]
    fn bytes_that_two_lanes_share_are_counted_once() {
        assert_eq!(units([0, 0, 4, 28].into_iter(), 4, 32), [(0, 12)]);
        assert_eq!(units([24, 32].into_iter(), 16, 32), [(0, 8), (32, 16)]);
        assert_eq!(units([-4].into_iter(), 8, 32), [(-32, 4), (0, 4)]);
    }
}
