//! Which other access has the compiler go to memory again.

use warplens_facts::facts::{Access, Alias, Op, Space};

/// The store that may change what a load has read before, or the load that may read what a store writes; `None` where no access to
/// another array is seen.
pub(super) fn of<'a>(accesses: &'a [Access], repeated: &Access) -> Option<&'a Access> {
    let others = accesses.iter().filter(|other| {
        other.space == Space::Global
            && other.array != repeated.array
            && matches!(other.alias, Alias::Parameter | Alias::Unknown)
            && (other.op == Op::Load) != (repeated.op == Op::Load)
    });
    let others: Vec<&Access> = others.collect();
    if repeated.op == Op::Load {
        // In straight code: what is stored since the same element was loaded or stored, the last of it.
        let before = accesses
            .iter()
            .filter(|other| other.text == repeated.text && when(other) < when(repeated))
            .map(when)
            .max();
        let since = others
            .iter()
            .filter(|store| before.is_some_and(|before| before < when(store)));
        let since = since.filter(|store| when(store) < when(repeated));
        if let Some(last) = since.max_by_key(|store| when(store)) {
            return Some(last);
        }
    }
    // In a loop any of its stores comes before the next iteration's load: the nearest.
    let near = |other: &&&Access| {
        let outside = other.loop_depth == 0;
        (outside, other.site.line.abs_diff(repeated.site.line))
    };
    others.iter().min_by_key(near).copied()
}

/// The order of accesses in straight code: a statement stores what it has computed of its loads.
fn when(access: &Access) -> (u32, bool) {
    (access.site.line, access.op != Op::Load)
}
