//! From a kernel's facts to its properties: what the source counts, by class of access and kind of arithmetic.
//!
//! A unit is one thread doing it once. A warp that splits executes for the lanes that are switched off as well:
//! those are counted apart, so that the statistics stay the source's (the 2020 paper counts such operations for
//! whole sub-groups instead).

use std::collections::BTreeSet;

use warplens_facts::facts::{IndexExpression, Op, Operator, Pattern, Space};
use warplens_machine::{Direction, Memory, Property, Reach};

use super::pays_for_idle_lanes;
use crate::ExecutedAccess;
use crate::Factor;
use crate::wfg::graph::Kind;
use crate::work::{Work, finite};

/// Units of one property on one line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item {
    pub property: Property,
    pub line: u32,
    /// Units.
    pub count: f64,
    /// Lanes that are switched off in the warps that execute it.
    pub idle: f64,
    /// The access it belongs to, an index into the facts' accesses.
    pub access: Option<usize>,
    /// False where the addresses are not known.
    pub known: bool,
}

/// The kernel's properties but the launch and the overlap, which are of all of it.
pub(super) fn items(work: &Work) -> Vec<Item> {
    let input = work.input;
    let executions = executions(work);
    let mut items = Vec::with_capacity(input.facts.operations.len() + input.accesses.len() + 1);
    let mut add = |property, line, count: f64| {
        items.push(Item {
            property,
            line,
            count,
            idle: 0.0,
            access: None,
            known: true,
        });
        items.len() - 1
    };
    add(
        Property::Block,
        input.facts.name_site.line,
        work.residency.blocks.max(0.0),
    );
    let mut idle = Vec::new();
    for operation in &input.facts.operations {
        let threads = positive(operation.threads);
        match operation.operator {
            Operator::Barrier if work.is_without(Factor::Synchronisation) => {}
            Operator::Barrier => {
                add(Property::Barrier, operation.line, threads);
            }
            Operator::Arithmetic(arithmetic) => {
                let at = add(Property::Arithmetic(arithmetic), operation.line, threads);
                if pays_for_idle_lanes(arithmetic) && !work.is_without(Factor::Divergence) {
                    let lanes = positive(operation.warps) * f64::from(input.facts.warp_size);
                    idle.push((at, (lanes - threads).max(0.0)));
                }
            }
        }
    }
    for (at, lanes) in idle {
        items[at].idle = lanes;
    }
    for (at, access) in input.accesses.iter().enumerate() {
        let Some(requests) = executions[at] else {
            continue;
        };
        of_access(work, at, access, requests, &mut items);
    }
    items.retain(|item| item.count > 0.0 || item.idle > 0.0);
    items
}

fn of_access(
    work: &Work,
    at: usize,
    access: &ExecutedAccess,
    requests: f64,
    items: &mut Vec<Item>,
) {
    let request = &work.requests[at];
    let bytes = access.bytes_per_lane.max(1);
    let threads = requests * request.asked_bytes / f64::from(bytes);
    let direction = match access.op {
        _ if access.space == Space::Constant => Direction::Load,
        Op::Load => Direction::Load,
        Op::Store => Direction::Store,
        Op::Atomic => Direction::Atomic,
    };
    let ideal = work.is_ideal(at);
    let memory = match access.space {
        Space::Global | Space::Texture if ideal || work.is_without(Factor::Uncoalesced) => {
            Memory::Global(match access.pattern {
                Pattern::Broadcast => Reach::Uniform,
                _ => Reach::Unit,
            })
        }
        Space::Global | Space::Texture => Memory::Global(reach(access, &work.input.accesses)),
        Space::Shared => Memory::Shared,
        Space::Constant => Memory::Constant,
        Space::Local => Memory::Local,
    };
    let item = Item {
        property: Property::Access {
            memory,
            direction,
            bits: width(bytes),
        },
        line: access.site.line,
        count: threads,
        idle: 0.0,
        access: Some(at),
        known: request.known,
    };
    items.push(item);
    // What the rules of banks and atomics add to a request beyond what its data needs.
    let (extra, property) = match (access.space, access.op) {
        (Space::Shared, _) => {
            let best = work.conflict_free_passes(at);
            (request.passes - best, Property::BankConflict)
        }
        (Space::Global | Space::Texture, Op::Atomic) => {
            (request.passes - 1.0, Property::AtomicConflict)
        }
        _ => return,
    };
    items.push(Item {
        property,
        count: requests * extra.max(0.0),
        access: None,
        known: true,
        ..item
    });
}

/// Requests of each access over the launch; `None` for one that costs nothing: an array kept in registers.
fn executions(work: &Work) -> Vec<Option<f64>> {
    let input = work.input;
    let mut visits = vec![0.0; input.accesses.len()];
    let counted = work.graph.visits(work.branching());
    for (node, times) in work.graph.nodes.iter().zip(counted) {
        if let Kind::Memory(access) | Kind::Scratchpad(access) = node.kind {
            visits[access] += times * work.residency.warps();
        }
    }
    input
        .accesses
        .iter()
        .zip(visits)
        .map(|(access, visits)| match access.space {
            Space::Local if visits <= 0.0 => None,
            _ => Some(positive(finite(access.requests).unwrap_or(visits))),
        })
        .collect()
}

/// The width in bits that has a price, no less than the access's own: wider ones move in pieces.
fn width(bytes: u32) -> u8 {
    let bits = bytes.saturating_mul(8);
    let fits = Property::WIDTHS
        .into_iter()
        .find(|&width| u32::from(width) >= bits);
    fits.unwrap_or(128)
}

/// How the threads of a warp spread over device memory.
fn reach(access: &ExecutedAccess, all: &[ExecutedAccess]) -> Reach {
    let bytes = u64::from(access.bytes_per_lane.max(1));
    let apart = access
        .stride
        .as_ref()
        .map(|stride| stride.bytes.unsigned_abs().div_ceil(bytes));
    let dense = matches!(
        (access.transactions_per_request, access.ideal_transactions_per_request),
        (Some(now), Some(ideal)) if now <= ideal + 1e-9
    );
    match (access.pattern, apart) {
        (Pattern::Broadcast, _) => Reach::Uniform,
        (Pattern::Coalesced, _) => Reach::Unit,
        (Pattern::DataDependent | Pattern::Unknown, _) => Reach::Uncoalesced { quarters: 1 },
        // A block narrower than a warp: rows that lie behind one another, or a value to a row.
        (_, Some(0 | 1)) => Reach::Unit,
        (_, Some(stride)) => {
            let share = used(access, all, stride);
            match u8::try_from(stride) {
                Ok(stride) if stride <= Reach::WIDEST => Reach::Stride {
                    stride,
                    used: (share * f64::from(stride))
                        .round()
                        .clamp(1.0, f64::from(stride)) as u8,
                },
                _ => Reach::Uncoalesced {
                    quarters: (share * 4.0).ceil().clamp(1.0, 4.0) as u8,
                },
            }
        }
        (_, None) if dense => Reach::Unit,
        (_, None) => Reach::Uncoalesced { quarters: 1 },
    }
}

/// The fraction of the elements between neighbours that the kernel touches: by the structure's fields, by what
/// else moves along the gap, or by accesses of the same array and stride with other offsets.
fn used(access: &ExecutedAccess, all: &[ExecutedAccess], stride: u64) -> f64 {
    if let Some(field) = &access.field
        && field.size > 0
    {
        return f64::from(field.touched.min(field.size)) / f64::from(field.size);
    }
    if access
        .stride
        .as_ref()
        .is_some_and(|stride| stride.unit_elsewhere)
    {
        return 1.0;
    }
    let own = access.stride.as_ref().map(|stride| stride.bytes);
    let offsets: BTreeSet<u64> = all
        .iter()
        .filter(|other| {
            other.object == access.object
                && other.space == access.space
                && other.bytes_per_lane == access.bytes_per_lane
                && other.stride.as_ref().map(|stride| stride.bytes) == own
        })
        .map(|other| offset(other).rem_euclid(stride.min(1 << 32) as i64) as u64)
        .collect();
    (offsets.len().max(1) as f64 / stride.max(1) as f64).min(1.0)
}

/// The constant of an index: 3 of `2 * i + 3`, 0 where there is none.
fn offset(access: &ExecutedAccess) -> i64 {
    match access.index.as_deref() {
        Some(IndexExpression::Sum(constant, _)) => *constant,
        _ => 0,
    }
}

fn positive(value: f64) -> f64 {
    if value > 0.0 { value } else { 0.0 }
}
