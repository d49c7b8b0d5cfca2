//! Copies of boxes of tensors: which bytes one touches.
//!
//! In: where a box begins along each dimension, and the tensor's map as the host encodes it. Out: an address as if the boxes lay
//! one behind the other, each without a gap. What copies share, and how far apart they are, is that of the tensor where
//! boxes begin at multiples of their sides; the sectors that one fills are where its rows begin and end with sectors.

use warplens_ir::Expr;
use warplens_symbolic::{BinaryOp, Id, Interval, Node};

use crate::context::assumed;
use crate::draft::Unseen;
use crate::executor::Executor;
use crate::facts::{Form, Op, Space};
use crate::value::{Place, Variation};
use crate::{TensorBox, TensorDimension};

/// Bytes that a row must be a multiple of to fill its sectors.
const SECTOR: i64 = 32;
/// Operations within each other that are looked into.
const MOST_DEPTH: u32 = 16;
/// Conditions around a copy that are looked at.
const MOST_GUARDS: usize = 64;
/// Elements along a dimension of a tensor whose size is not known: far more than boxes have.
const UNKNOWN_SIZE: u64 = 1 << 20;

impl TensorBox {
    /// Bytes of all of it.
    fn bytes(&self) -> Option<u32> {
        let mut sides = self.dimensions.iter().map(|dimension| dimension.side);
        let bytes = sides.try_fold(self.element, u64::checked_mul)?;
        u32::try_from(bytes).ok().filter(|bytes| *bytes > 0)
    }

    /// Bytes that one element along each dimension moves the address.
    fn weights(&self) -> Option<Vec<i64>> {
        let dimensions = &self.dimensions;
        let length = |dimension: &TensorDimension| {
            let boxes = dimension
                .size
                .unwrap_or(UNKNOWN_SIZE)
                .div_ceil(dimension.side.max(1));
            boxes.checked_mul(dimension.side)
        };
        let weight = |number: usize| {
            let nearer = dimensions.get(..number)?.iter();
            let farther = dimensions.get(number + 1..)?.iter();
            let before = nearer
                .map(length)
                .try_fold(self.element, |all, one| all.checked_mul(one?))?;
            let all = farther
                .map(|dimension| dimension.side)
                .try_fold(before, u64::checked_mul)?;
            i64::try_from(all).ok()
        };
        (0..dimensions.len()).map(weight).collect()
    }

    /// Whether each row of a box begins and ends with a sector, where it begins with one along the nearest dimension.
    fn has_whole_rows(&self) -> bool {
        let (Some(nearest), Ok(sector)) = (self.dimensions.first(), u64::try_from(SECTOR)) else {
            return false;
        };
        let others = self.dimensions.iter().skip(1);
        (nearest.side * self.element).is_multiple_of(sector)
            && others
                .map(|dimension| dimension.stride)
                .all(|stride| stride.is_some_and(|stride| stride.is_multiple_of(sector)))
    }
}

/// Bytes that a copy loads, or stores in this number of blocks.
pub(crate) fn moved_to(op: Op, bytes: u32, blocks: u32) -> u32 {
    match op {
        Op::Store => bytes.saturating_mul(blocks),
        Op::Load | Op::Atomic => bytes,
    }
}

impl Executor<'_> {
    /// A copy of a box by a tensor's map that one thread starts: a load and a store, whole in one request each.
    pub(crate) fn box_copy(&mut self, multicast: bool, arguments: &[Expr], whole: &Expr) {
        let (arguments, blocks) = self.receivers(multicast, arguments);
        let [to, from, corner @ ..] = arguments else {
            return;
        };
        let corner: Vec<Id> = corner
            .iter()
            .map(|number| {
                let number = self.eval(number);
                self.as_int(&number)
            })
            .collect();
        let places = [from, to].map(|pointer| {
            self.settle();
            self.pointed_at(pointer)
        });
        let boxes = self.request.boxes;
        let of_map = places.iter().find_map(|place| {
            let Place::Memory(array, _) = place else {
                return None;
            };
            let name = &self.arrays[array.0 as usize].name;
            boxes.iter().find(|(map, _)| map == name)
        });
        let of_map = of_map.map(|(_, of_map)| of_map);
        let bytes = of_map.and_then(TensorBox::bytes).unwrap_or(0);
        for (place, op) in places.into_iter().zip([Op::Load, Op::Store]) {
            let Place::Memory(mut array, mut offset) = place else {
                continue;
            };
            let mut unseen = None;
            let moved = moved_to(op, bytes, blocks);
            let of_tensor = self.arrays[array.0 as usize].space != Space::Shared;
            if of_tensor {
                // A tensor's map lies elsewhere than the tensor.
                let name = self.arrays[array.0 as usize].name.clone();
                array = self.array(&name, Space::Global);
                let address = of_map.and_then(|of_map| self.among_boxes(of_map, &corner));
                let fills = of_map.is_some_and(|of_map| self.fills_sectors(of_map, &corner));
                unseen = (address.is_some() && !fills).then_some(Unseen::Box);
                offset = address.unwrap_or_else(|| self.unknown(false, Variation::ANY));
            } else if moved == 0 {
                offset = self.unknown(false, Variation::ANY);
            }
            let draft = self.record(array, offset, moved.max(1), 1, op, whole, &[]);
            self.shape_of(draft, Form::Bulk(moved));
            if self.dry == 0
                && !self.counting_only
                && let Some(draft) = self.accesses.get_mut(draft)
            {
                draft.of_tensor = of_tensor;
                draft.unseen = unseen;
            }
        }
    }

    /// The address of a box among boxes that lie one behind the other.
    fn among_boxes(&mut self, of_map: &TensorBox, corner: &[Id]) -> Option<Id> {
        let weights = of_map.weights()?;
        if weights.len() != corner.len() {
            return None;
        }
        let mut address = self.arena.constant(0);
        for (&number, weight) in corner.iter().zip(weights) {
            let way = self.arena.scale(number, weight);
            address = self.arena.add(address, way);
        }
        Some(address)
    }

    /// True where a box fills the sectors that it touches: it begins with a sector in each row, and lies in the tensor.
    fn fills_sectors(&mut self, of_map: &TensorBox, corner: &[Id]) -> bool {
        let Some(&first) = corner.first() else {
            return false;
        };
        let element = of_map.element as i64;
        let (constant, terms) = self.arena.terms(first);
        let begins_with_one = constant * element % SECTOR == 0
            && terms
                .iter()
                .all(|(_, factor)| factor * element % SECTOR == 0);
        of_map.has_whole_rows()
            && begins_with_one
            && (of_map.dimensions.iter())
                .zip(corner)
                .all(|(dimension, &number)| self.lies_within(dimension, number))
    }

    fn lies_within(&mut self, dimension: &TensorDimension, number: Id) -> bool {
        let last = dimension
            .size
            .and_then(|size| size.checked_sub(dimension.side));
        let bounds = self.bounds();
        let range = self.range_within(number, &bounds, MOST_DEPTH);
        last.and_then(|last| i64::try_from(last).ok())
            .is_some_and(|last| range.lo >= 0 && range.hi <= last && !assumed(&self.arena, number))
    }

    /// What the conditions around say: sums that are at most so much.
    fn bounds(&mut self) -> Vec<Bound> {
        let mut bounds = Vec::new();
        let guards = self.contexts[self.context].guards();
        let mut open: Vec<(Id, bool)> = guards
            .into_iter()
            .map(|guard| (guard.condition, guard.holds))
            .collect();
        while let Some((condition, holds)) = open.pop() {
            let Node::Binary(op, left, right) = *self.arena.node(condition) else {
                continue;
            };
            let (less, more, strict) = match (op, holds) {
                // Both parts hold, or both fail.
                (BinaryOp::LogicalAnd, true) | (BinaryOp::LogicalOr, false)
                    if open.len() < MOST_GUARDS =>
                {
                    open.extend([(left, holds), (right, holds)]);
                    continue;
                }
                (BinaryOp::Lt, true) => (left, right, 1),
                (BinaryOp::Le, true) => (left, right, 0),
                (BinaryOp::Lt, false) => (right, left, 0),
                (BinaryOp::Le, false) => (right, left, 1),
                _ => continue,
            };
            let (constant, terms) = self.arena.terms(less);
            let said = !assumed(&self.arena, condition);
            let most = self.arena.value(more).filter(|_| said);
            let most = most.and_then(|most| most.checked_sub(strict)?.checked_sub(constant));
            bounds.extend(most.map(|most| Bound { terms, most }));
        }
        bounds
    }

    /// What a term of a bounded sum is at most: what the least of the others leaves.
    fn most_beside(&self, id: Id, bound: &Bound) -> Option<i64> {
        let (_, factor) = bound.terms.iter().find(|(term, _)| *term == id)?;
        let others = bound.terms.iter().filter(|(term, _)| *term != id);
        let least = others
            .map(|(term, by)| {
                let of = self.arena.range(*term);
                Some(of.lo.checked_mul(*by)?.min(of.hi.checked_mul(*by)?))
            })
            .try_fold(0_i64, |sum, least| sum.checked_add(least?))?;
        (*factor > 0)
            .then(|| bound.most.checked_sub(least))?
            .map(|left| left.div_euclid(*factor))
    }

    /// The values that an expression can have where these bounds hold.
    fn range_within(&self, id: Id, bounds: &[Bound], depth: u32) -> Interval {
        let range = self.arena.range(id);
        let Some(depth) = depth.checked_sub(1) else {
            return range;
        };
        let (constant, terms) = self.arena.terms(id);
        let mut most = range.hi;
        for bound in bounds {
            if bound.terms == terms {
                most = most.min(bound.most.saturating_add(constant));
            }
            most = most.min(self.most_beside(id, bound).unwrap_or(most));
        }
        let known = match self.arena.node(id) {
            Node::Wrap(_, _, inner) => {
                let inner = self.range_within(*inner, bounds, depth);
                // What fits is not changed.
                (inner.lo >= range.lo && inner.hi <= range.hi).then_some(inner)
            }
            Node::Binary(BinaryOp::Div, of, by) => {
                let by = self.arena.value(*by).filter(|by| *by > 0);
                let of = self.range_within(*of, bounds, depth);
                by.map(|by| Interval::new(of.lo / by, of.hi / by))
            }
            Node::Product(factors) => factors
                .iter()
                .try_fold((1_i64, 1_i64), |(lo, hi), factor| {
                    let of = self.range_within(*factor, bounds, depth);
                    let whole = of.lo >= 0;
                    whole.then_some(())?;
                    Some((lo.checked_mul(of.lo)?, hi.checked_mul(of.hi)?))
                })
                .map(|(lo, hi)| Interval::new(lo, hi)),
            Node::Sum(..) => {
                let sum = terms
                    .iter()
                    .try_fold((constant, constant), |(lo, hi), (term, by)| {
                        let of = self.range_within(*term, bounds, depth);
                        let (a, b) = (of.lo.checked_mul(*by)?, of.hi.checked_mul(*by)?);
                        Some((lo.checked_add(a.min(b))?, hi.checked_add(a.max(b))?))
                    });
                sum.map(|(lo, hi)| Interval::new(lo, hi))
            }
            _ => None,
        };
        let known = known.unwrap_or(range);
        Interval::new(known.lo.max(range.lo), known.hi.min(most).max(range.lo))
    }
}

/// A sum of terms that is at most so much.
struct Bound {
    terms: Vec<(Id, i64)>,
    most: i64,
}
