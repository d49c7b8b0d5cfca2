//! Whether an edit only lays out a shared array anew: each of its bytes has moved to one place of its own, and every access
//! finds it there.
//!
//! In: the facts of a kernel before and after. Each access to the array is followed for the threads of a block and the
//! iterations around it, before and after, in the same order. What was at one place and is then looked for at two, or
//! what is put where something else already is, refuses the edit.

use rustc_hash::FxHashMap;
use warplens_facts::facts::{Access, Form, SourceFacts, Space};

/// Points at which one access is followed, at most: threads times iterations.
const MOST_POINTS: usize = 1 << 16;
/// Of a counter with more values than can be followed, this many from its start and as many from its end.
const EDGE: i64 = 8;
/// Bytes that an access may want to be aligned to.
const WIDEST: i64 = 16;

/// True where every access to the array is known before and after, and finds its bytes where they moved to; all other accesses
/// are what they were.
pub(crate) fn only_moved(before: &SourceFacts, after: &SourceFacts, array: usize) -> bool {
    moved(before, after, array).is_some()
}

fn moved(before: &SourceFacts, after: &SourceFacts, array: usize) -> Option<()> {
    // For a block of another size nothing is shown.
    let threads = before.launch.threads_per_block();
    if before.launch.block_source.is_assumption() && before.max_threads_per_block != Some(threads)
        || before.accesses.len() != after.accesses.len()
        || before.launch.block != after.launch.block
        || before.branches.len() != after.branches.len()
        || before.not_understood.len() != after.not_understood.len()
    {
        return None;
    }
    let pairs: Vec<(&Access, &Access)> = before.accesses.iter().zip(&after.accesses).collect();
    let mut granule = WIDEST;
    let mut own = Vec::new();
    for (old, new) in pairs {
        let same = old.array == new.array
            && old.space == new.space
            && old.op == new.op
            && old.bytes_per_lane == new.bytes_per_lane
            && old.form == new.form
            && old.requests == new.requests
            && old.shared_array == new.shared_array;
        if !same {
            return None;
        }
        if old.shared_array != Some(array) {
            // Shared memory through a pointer that may be into the array.
            let unplaced = old.space == Space::Shared && old.shared_array.is_none();
            if old.index != new.index || unplaced {
                return None;
            }
            continue;
        }
        let (from, to) = (old.in_array.as_deref()?, new.in_array.as_deref()?);
        let width = width(old)?;
        if from.extents() != to.extents() {
            return None;
        }
        granule = granule.min(width);
        own.push((old, from, to, width));
    }
    if own.is_empty() || granule < 1 {
        return None;
    }
    let mut places: FxHashMap<i64, i64> = FxHashMap::default();
    let mut taken: FxHashMap<i64, i64> = FxHashMap::default();
    let bytes = |facts: &SourceFacts| facts.shared_arrays.get(array).map(|one| one.bytes as i64);
    let (old_bytes, new_bytes) = (bytes(before)?, bytes(after)?);
    let dynamic = before.shared_arrays[array].dynamic;
    let block = before.launch.block.map(|extent| extent as i64);
    let mut room = (Vec::new(), Vec::new());
    for (old, from, to, width) in own {
        let counters: Vec<usize> = (0..from.extents().len())
            .filter(|number| from.depends_on(*number) || to.depends_on(*number))
            .collect();
        let threads = (block[0] * block[1] * block[2]) as usize;
        let values = values(from.extents(), &counters, MOST_POINTS / threads.max(1))?;
        for counters in &values {
            for thread in 0..threads as i64 {
                if let Form::Rows(matrices) = old.form
                    && thread % 32 >= 8 * i64::from(matrices)
                {
                    continue;
                }
                let at = [
                    thread % block[0],
                    thread / block[0] % block[1],
                    thread / (block[0] * block[1]),
                ];
                let start = from.at(at, counters, &mut room.0);
                // What a condition keeps from being executed may point anywhere.
                if start < 0 || !dynamic && start + width > old_bytes {
                    continue;
                }
                let end = to.at(at, counters, &mut room.1);
                let aligned = start % width != 0 || end % width == 0;
                let inside = end >= 0 && (dynamic || end + width <= new_bytes);
                if !aligned || !inside || start % granule != 0 || end % granule != 0 {
                    return None;
                }
                for piece in (0..width).step_by(granule as usize) {
                    let (start, end) = (start + piece, end + piece);
                    if *places.entry(start).or_insert(end) != end
                        || *taken.entry(end).or_insert(start) != start
                    {
                        return None;
                    }
                }
            }
        }
    }
    Some(())
}

/// Bytes behind one address; `None` of copies whose layout the hardware knows.
fn width(access: &Access) -> Option<i64> {
    match access.form {
        Form::Lanes => Some(i64::from(access.bytes_per_lane)),
        Form::Rows(_) => Some(WIDEST),
        Form::Bulk(_) | Form::Described { .. } => None,
    }
    .filter(|width| *width > 0 && width.count_ones() == 1)
}

/// The values that counters take together, all or those at the edges; `None` where even these are too many.
fn values(extents: &[i64], counters: &[usize], most: usize) -> Option<Vec<Vec<i64>>> {
    let all: i64 = counters.iter().fold(1i64, |product, counter| {
        product.saturating_mul(extents[*counter].max(1))
    });
    let some = all > most as i64;
    let mut found = vec![vec![0; extents.len()]];
    for counter in counters {
        let extent = extents[*counter].max(1);
        let own: Vec<i64> = if some && extent > 2 * EDGE {
            (0..EDGE).chain(extent - EDGE..extent).collect()
        } else {
            (0..extent).collect()
        };
        if found.len().saturating_mul(own.len()) > most.max(1) * 4 {
            return None;
        }
        found = found
            .iter()
            .flat_map(|known| {
                own.iter().map(move |value| {
                    let mut next = known.clone();
                    next[*counter] = *value;
                    next
                })
            })
            .collect();
    }
    Some(found)
}
