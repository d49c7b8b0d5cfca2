//! Accesses of one array that walk through it side by side although their indices are written in other ways: `a[i]` beside
//! `a[(i + 1) % n]`, `a[min(i + 1, n - 1)]` or `a[(i / w + 1) % h * w + i % w]`. What one of them fetches from DRAM the others find in L2.

use warplens_facts::facts::{AddressPart, LinearAddress};

use super::{Group, Traffic};
use crate::ExecutedAccess;

/// Takes the DRAM traffic from groups that walk beside a group with more of it.
pub(super) fn find_in_l2(
    all: &mut [Traffic],
    groups: &[Group],
    accesses: &[ExecutedAccess],
    executions: &[f64],
) {
    let mut loads: Vec<(f64, Walk, &Group)> = groups
        .iter()
        .filter(|group| group.load)
        .filter_map(|group| {
            let walk = Walk::of(&accesses[*group.members.first()?])?;
            let bytes = group.members.iter();
            let bytes = bytes.map(|&member| all[member].dram * executions[member]);
            Some((bytes.sum::<f64>(), walk, group))
        })
        .collect();
    loads.sort_by(|(one, ..), (other, ..)| other.total_cmp(one));
    for (at, (_, walk, group)) in loads.iter().enumerate() {
        let object = |group: &Group| &accesses[group.members[0]].object;
        let beside = loads[..at].iter().any(|(_, other, earlier)| {
            object(earlier) == object(group)
                && other.moves == walk.moves
                && !(other.linear && walk.linear)
        });
        if beside {
            for &member in &group.members {
                all[member].dram = 0.0;
            }
        }
    }
}

/// How an address moves with the coordinates of threads and blocks.
struct Walk {
    /// In bytes.
    moves: [i64; 6],
    /// It is a sum of these alone: of two such sums it is known how far they are apart.
    linear: bool,
}

impl Walk {
    /// `None` where that is not one sum, or none of blocks.
    fn of(access: &ExecutedAccess) -> Option<Walk> {
        let mut moves = [0i64; 6];
        let linear = access.linear.as_ref();
        if let Some(address) = linear {
            add(&mut moves, 1, &address.thread, &address.block)?;
        } else {
            let mut digits: Vec<Digit> = Vec::new();
            for (step, part) in access.parts.as_ref()? {
                match part {
                    AddressPart::Thread(axis) => moves[*axis] = moves[*axis].checked_add(*step)?,
                    AddressPart::Block(axis) => {
                        moves[3 + axis] = moves[3 + axis].checked_add(*step)?;
                    }
                    AddressPart::Loop(_) => {}
                    AddressPart::Digit {
                        of,
                        divisor,
                        modulus,
                    } => digits.push(Digit {
                        step: *step,
                        of,
                        divisor: *divisor,
                        modulus: *modulus,
                    }),
                    AddressPart::Values { .. } => return None,
                }
            }
            digits.sort_by_key(|digit| digit.divisor);
            if let Some((first, rest)) = digits.split_first() {
                first.is_continued_by(rest)?;
                add(&mut moves, first.step, &first.of.thread, &first.of.block)?;
            }
        }
        let by_block = moves[3..].iter().any(|step| *step != 0);
        by_block.then_some(Walk {
            moves,
            linear: linear.is_some(),
        })
    }
}

/// `of / divisor % modulus`, which moves an address by `step`.
struct Digit<'a> {
    step: i64,
    of: &'a LinearAddress,
    divisor: i64,
    modulus: Option<i64>,
}

impl Digit<'_> {
    /// Where this one and `higher` are the digits of one number, in the places that they have in it: together they are the number,
    /// `i / n * n + i % n`, but for the rows that a constant skips.
    fn is_continued_by(&self, higher: &[Digit]) -> Option<()> {
        let mut place = 1;
        let mut next = (self.divisor == 1).then_some(self.modulus)?;
        for digit in higher {
            place = i64::checked_mul(place, next?)?;
            let same = digit.of.thread == self.of.thread
                && digit.of.block == self.of.block
                && digit.of.loops == self.of.loops;
            let in_place = digit.divisor == place && digit.step == self.step.checked_mul(place)?;
            (same && in_place).then_some(())?;
            next = digit.modulus;
        }
        Some(())
    }
}

fn add(moves: &mut [i64; 6], step: i64, thread: &[i64; 3], block: &[i64; 3]) -> Option<()> {
    for (sum, by) in moves.iter_mut().zip(thread.iter().chain(block)) {
        *sum = sum.checked_add(step.checked_mul(*by)?)?;
    }
    Some(())
}
