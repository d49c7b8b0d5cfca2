//! Linear: run time as a weighted sum of what the source counts.
//!
//! James Stevens and Andreas Klöckner, "A unified, hardware-fitted, cross-GPU performance model", 2016, and "A
//! mechanism for balancing accuracy and scope in cross-machine black-box GPU performance modeling", 2020:
//!
//! `T(n) ≈ Σ α_i p_i(n)`
//!
//! The properties `p_i` are [`Property`]; a kernel's are in `properties`, their prices `α_i` in `weights`, how
//! prices come of measurements in [`fit`], and T as a formula in [`function`]. The overlap of loads and stores,
//! which is not linear in either, is a property of its own: the lesser of both, at a negative price.

pub mod fit;
mod formula;
mod properties;
mod weights;

use std::collections::BTreeMap;

pub use formula::function;
use warplens_machine::{Arithmetic, Direction, Memory, Property};

use crate::entry::{Answers, ModelEntry};
use crate::work::Work;
use crate::{Breakdown, Estimate, Question};
use properties::{Item, items};
use weights::Price;

/// Its line of the registry.
pub(crate) const MODEL: ModelEntry = ModelEntry {
    name: "linear",
    summary: "Weighted counts, after Stevens and Klöckner, 2016 and 2020",
    answers: Answers::Counts,
    estimate: estimate_work,
    cycles: |work| estimate_work(work).cycles,
};

/// Picoseconds of a second.
const PICOSECONDS: f64 = 1e12;

/// The properties of a kernel under its launch: how many units of each. [`Property::Launch`] is 1.
pub fn properties(question: &Question) -> BTreeMap<Property, f64> {
    let work = Work::new(question);
    totals(&items(&work))
}

/// What a weight of the profile is, or what the rule gives where it was not fitted: picoseconds a unit.
///
/// # Errors
///
/// The name of the profile's figure that the rule needs and that is missing.
pub fn weight(
    profile: &warplens_machine::Profile,
    property: Property,
) -> Result<f64, &'static str> {
    weights::price(profile, property).map(|price| price.ps)
}

fn totals(items: &[Item]) -> BTreeMap<Property, f64> {
    let mut totals = BTreeMap::from([(Property::Launch, 1.0)]);
    let (mut loaded, mut stored) = (0.0, 0.0);
    for item in items {
        *totals.entry(item.property).or_insert(0.0) += item.count;
        match global_bytes(item.property) {
            Some((Direction::Load, bytes)) => loaded += bytes * item.count,
            Some((Direction::Store, bytes)) => stored += bytes * item.count,
            _ => {}
        }
    }
    let both = f64::min(loaded, stored);
    if both > 0.0 {
        totals.insert(Property::Overlap, both);
    }
    totals
}

/// Bytes of one access of device memory, and its direction.
fn global_bytes(property: Property) -> Option<(Direction, f64)> {
    match property {
        Property::Access {
            memory: Memory::Global(_),
            direction,
            bits,
        } => Some((direction, f64::from(bits) / 8.0)),
        _ => None,
    }
}

/// What a kernel costs, in picoseconds.
struct Bill {
    totals: BTreeMap<Property, f64>,
    prices: BTreeMap<Property, Price>,
    /// What loads and stores save by moving at the same time, at most the lesser of both; 0 or less.
    overlap: f64,
    /// Global loads and stores before that.
    global: f64,
}

impl Bill {
    /// The error says which figure of the profile is missing.
    fn new(work: &Work, items: &[Item]) -> Result<Bill, &'static str> {
        let totals = totals(items);
        let mut prices = BTreeMap::new();
        for &property in totals.keys() {
            prices.insert(property, weights::price(work.profile(), property)?);
        }
        let mut bill = Bill {
            totals,
            prices,
            overlap: 0.0,
            global: 0.0,
        };
        let (mut loads, mut stores) = (0.0, 0.0);
        for (&property, count) in &bill.totals {
            let cost = bill.price(property) * count;
            match global_bytes(property) {
                Some((Direction::Load, _)) => loads += cost,
                Some((Direction::Store, _)) => stores += cost,
                _ => {}
            }
        }
        let both = bill.totals.get(&Property::Overlap).copied().unwrap_or(0.0);
        let most = f64::min(loads, stores);
        bill.overlap = (bill.price(Property::Overlap) * both).max(-most).min(0.0);
        bill.global = loads + stores;
        Ok(bill)
    }

    /// Picoseconds a unit.
    fn price(&self, property: Property) -> f64 {
        self.prices.get(&property).map_or(0.0, |price| price.ps)
    }

    /// What is left of the cost of global loads and stores once they overlap.
    fn left_of_global(&self) -> f64 {
        if self.global > 0.0 {
            1.0 + self.overlap / self.global
        } else {
            1.0
        }
    }

    /// What one item costs, and what lanes that are switched off cost beside it.
    fn cost(&self, item: &Item) -> (f64, f64) {
        let price = self.price(item.property);
        let price = match global_bytes(item.property) {
            Some((Direction::Load | Direction::Store, _)) => price * self.left_of_global(),
            _ => price,
        };
        (price * item.count, price * item.idle)
    }
}

pub(crate) fn estimate_work(work: &Work) -> Estimate {
    let items = items(work);
    let bill = match Bill::new(work, &items) {
        Ok(bill) => bill,
        Err(figure) => {
            return Estimate {
                why: Some(format!("the profile has no `{figure}`")),
                ..Estimate::default()
            };
        }
    };
    let clock = work.profile().cycles_per_second() / PICOSECONDS;
    let mut breakdown = Breakdown::default();
    let mut lines: BTreeMap<u32, f64> = BTreeMap::new();
    for item in &items {
        let (cost, idle) = bill.cost(item);
        let (cycles, idle) = (cost * clock, idle * clock);
        *part(&mut breakdown, item.property) += cycles;
        breakdown.divergence += idle;
        if cycles + idle > 0.0 {
            *lines.entry(item.line).or_insert(0.0) += cycles + idle;
        }
    }
    let cycles = breakdown.compute
        + breakdown.memory_bandwidth
        + breakdown.shared
        + breakdown.divergence
        + breakdown.synchronisation;
    if !cycles.is_finite() {
        return Estimate {
            why: Some("the kernel's counts are too large to add up".to_owned()),
            ..Estimate::default()
        };
    }
    let launch_ps = bill.price(Property::Launch);
    let detail = details(&bill, &items, clock);
    let mut estimate = work.finish(cycles, breakdown, detail, &[]);
    estimate.time_ms = Some(cycles / clock * 1e-9);
    estimate.launch_overhead_ms = launch_ps * 1e-9;
    estimate.lines = lines.into_iter().collect();
    estimate
}

/// The part of the breakdown that a property belongs to. Starting blocks is issuing.
fn part(breakdown: &mut Breakdown, property: Property) -> &mut f64 {
    match property {
        // The launch's price is no part of the cycles: no item has it.
        Property::Arithmetic(_) | Property::Block | Property::Launch => &mut breakdown.compute,
        Property::Access {
            memory: Memory::Shared,
            ..
        }
        | Property::BankConflict => &mut breakdown.shared,
        Property::Access { .. } | Property::AtomicConflict | Property::Overlap => {
            &mut breakdown.memory_bandwidth
        }
        Property::Barrier => &mut breakdown.synchronisation,
    }
}

/// Each property under its name with how many units there are, its cycles under `NAME.cycles`.
fn details(bill: &Bill, items: &[Item], clock: f64) -> BTreeMap<String, f64> {
    let mut detail = BTreeMap::new();
    for (&property, &count) in &bill.totals {
        let cost = match property {
            Property::Overlap => bill.overlap,
            _ => bill.price(property) * count,
        };
        detail.insert(property.to_string(), count);
        detail.insert(format!("{property}.cycles"), cost * clock);
    }
    let fitted = bill.prices.values().filter(|price| price.fitted).count();
    let unknown = items.iter().filter(|item| !item.known).count();
    detail.insert(
        "idle_lanes".to_owned(),
        items.iter().map(|item| item.idle).sum(),
    );
    detail.insert("weights_fitted".to_owned(), fitted as f64);
    detail.insert(
        "weights_by_rule".to_owned(),
        (bill.prices.len() - fitted) as f64,
    );
    detail.insert("unknown_accesses".to_owned(), unknown as f64);
    detail.retain(|_, value| value.is_finite());
    detail
}

/// True for arithmetic of which a warp pays for the lanes that are switched off.
fn pays_for_idle_lanes(arithmetic: Arithmetic) -> bool {
    // A matrix instruction is the whole warp's.
    arithmetic != Arithmetic::Matrix
}
