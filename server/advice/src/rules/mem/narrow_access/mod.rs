//! mem/narrow-access: a thread takes words that lie side by side one by one, or leaves them so.

pub(crate) mod widen;

use warplens_facts::facts::{Access, LinearAddress, Op, Space};
use warplens_models::Change;

use crate::rule::{Look, Rule, State, When};
use crate::wording::{self, number};
use crate::{Context, Finding, Place};

pub(crate) const RULE: Rule = Rule {
    id: "mem/narrow-access",
    title: "a thread loads or stores neighbouring words one by one, where one wide access serves all",
    severity: "by predicted gain: hint, information or warning",
    state: State::Preview,
    explain: include_str!("page.md"),
    look: Look::At(When::Trial, check),
    actions: &[widen::fixes],
};

/// The widest access in bytes.
const WIDEST: u32 = 16;
/// More accesses of a kernel than this are not compared with each other.
const MOST: usize = 64;

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let accesses = &ctx.facts.accesses;
    // What is loaded twice from one place is one load.
    let same = |a: usize, b: usize| {
        let (a, b) = (&accesses[a], &accesses[b]);
        a.array == b.array
            && a.op == b.op
            && a.bytes_per_lane == b.bytes_per_lane
            && a.linear == b.linear
    };
    let mut loads: Vec<usize> = Vec::new();
    for (index, access) in accesses.iter().enumerate() {
        let told = is_narrow(access) && !loads.iter().any(|&other| same(other, index));
        if told && loads.len() < MOST {
            loads.push(index);
        }
    }
    let mut taken: Vec<usize> = Vec::new();
    let mut found = Vec::new();
    for &first in &loads {
        if taken.contains(&first) {
            continue;
        }
        let Some(group) = [4, 2]
            .into_iter()
            .find_map(|count| side_by_side(accesses, &loads, first, count))
        else {
            continue;
        };
        let again = |other: usize| group[1..].iter().any(|&own| same(own, other));
        let gone: Vec<Change> = (0..accesses.len())
            .filter(|&other| is_narrow(&accesses[other]) && again(other))
            .map(|access| Change::PartOfAccess { access, part: 0.0 })
            .collect();
        let Some(gain) = ctx.trial(&gone) else {
            break;
        };
        taken.extend(&group);
        if gain < wording::WORTH_KNOWING {
            continue;
        }
        let access = &accesses[first];
        let bytes = access.bytes_per_lane * group.len() as u32;
        let words = match access.op {
            Op::Store => ("stores", "written"),
            _ => ("loads", "taken"),
        };
        let reservation = wording::reservation(ctx.facts, access);
        found.push(Finding {
            rule: RULE.id,
            severity: wording::severity(gain, access.certainty, reservation.is_some()),
            place: Place::Site(access.site),
            message: wording::sentence([
            Some(format!(
                    "access `{}` {bytes} bytes at a time ({} {} of {} bytes)",
                    wording::array_of(access),
                    number(group.len() as f64),
                    words.0,
                    access.bytes_per_lane
                )),
                Some(format!(
                    "{} {} of {} bytes (ideal: one of {bytes}): `{}` and what lies behind it are {} one by one",
                    number(group.len() as f64),
                    words.0,
                    access.bytes_per_lane,
                    access.text,
                    words.1,
                )),
                Some(wording::gain(gain)),
                reservation,
            ]),
            gain,
            related: group[1..]
                .iter()
                .map(|&other| (accesses[other].site, format!("`{}`", accesses[other].text)))
                .collect(),
            access: Some(first),
            shared_array: None,
            cure: None,
        });
    }
    found
}

fn is_narrow(access: &Access) -> bool {
    access.space == Space::Global
        && access.op != Op::Atomic
        && access.field.is_none()
        && access.bytes_per_lane > 0
        && access.bytes_per_lane < WIDEST
        && access.linear.is_some()
}

/// This many accesses that every thread makes together, of words side by side, the first on a boundary of all of them.
fn side_by_side(
    accesses: &[Access],
    loads: &[usize],
    first: usize,
    count: u32,
) -> Option<Vec<usize>> {
    let one = &accesses[first];
    let start = one.linear.as_ref()?;
    let bytes = one.bytes_per_lane * count;
    if bytes > WIDEST || !is_aligned(start, i64::from(bytes)) {
        return None;
    }
    let together = |other: &Access, at: i64| {
        let Some(linear) = &other.linear else {
            return false;
        };
        other.array == one.array
            && other.op == one.op
            && other.bytes_per_lane == one.bytes_per_lane
            && other.requests == one.requests
            && other.active_lanes_per_request == one.active_lanes_per_request
            && linear.constant == start.constant + at
            && (linear.thread, linear.block, &linear.loops)
                == (start.thread, start.block, &start.loops)
    };
    let mut group = vec![first];
    for next in 1..count {
        let at = i64::from(next * one.bytes_per_lane);
        group.push(
            *loads
                .iter()
                .find(|&&other| together(&accesses[other], at))?,
        );
    }
    Some(group)
}

/// True where each thread begins on a boundary of this many bytes, if the array does.
fn is_aligned(address: &LinearAddress, bytes: i64) -> bool {
    let steps = address
        .thread
        .iter()
        .chain(&address.block)
        .chain(&address.loops);
    address.thread[0] != 0
        && address.constant % bytes == 0
        && steps.into_iter().all(|step| step % bytes == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::strided;

    fn word(constant: i64) -> Access {
        Access {
            linear: Some(LinearAddress {
                constant,
                thread: [16, 0, 0],
                block: [4096, 0, 0],
                loops: Vec::new(),
            }),
            ..strided(5, 4)
        }
    }

    #[test]
    fn four_words_from_a_boundary_are_one_load_and_others_are_not() {
        let accesses = [word(0), word(4), word(8), word(12), word(16)];
        let loads = [0, 1, 2, 3, 4];
        assert_eq!(
            side_by_side(&accesses, &loads, 0, 4),
            Some(vec![0, 1, 2, 3])
        );
        assert_eq!(side_by_side(&accesses, &loads, 1, 4), None);
        assert_eq!(side_by_side(&accesses, &loads, 2, 2), Some(vec![2, 3]));
        assert_eq!(side_by_side(&accesses, &loads, 4, 2), None);
    }

    #[test]
    fn threads_that_are_not_on_a_boundary_take_no_wide_load() {
        let mut odd = word(0);
        odd.linear.as_mut().unwrap().thread[0] = 12;
        assert!(!is_aligned(odd.linear.as_ref().unwrap(), 16));
        assert!(!is_aligned(odd.linear.as_ref().unwrap(), 8));
        assert!(is_aligned(word(16).linear.as_ref().unwrap(), 16));
    }
}
