//! mem/redundant-global: the threads of a block load the same words of device memory again and again.

pub(crate) mod stage_stencil;

use warplens_facts::facts::{Access, Node, Op, Pattern, Space};
use warplens_models::Change;

use crate::rule::{Look, Rule, State, When};
use crate::rules::mem::uncoalesced;
use crate::wording::{self, counted, number};
use crate::{Context, Finding, Place, Removal};

pub(crate) const RULE: Rule = Rule {
    id: "mem/redundant-global",
    title: "the threads of a block load the same words of device memory again and again",
    severity: "by predicted gain: hint, information or warning",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::At(When::Cost, check),
    actions: &[stage_stencil::fixes],
};

/// Fewer loads of a word than this are not worth a tile.
const AGAIN: f64 = 2.0;
/// Less than this is within what caches do by themselves, and not worth a tile.
const WORTH: f64 = 1.10;
/// Words of shared memory that a tile takes at most: larger footprints go through it piece by piece.
const TILE_BYTES: f64 = 8192.0;
/// Accesses of a kernel that are looked at.
const MOST: usize = 64;
/// Runs of words that a footprint is made of; beyond, it is not followed.
const MOST_RUNS: i64 = 512;
/// A table over at most this is a filter, or what else a program sets up in constant memory; larger ones are what kernels work on.
const TABLE_BYTES: i64 = 4096;

/// Loads of one array that differ by constants.
struct Reused {
    accesses: Vec<usize>,
    /// Words that a block reads, each once.
    words: f64,
    /// Words that its warps load, those of one request once.
    loads: f64,
    /// True where all threads of the launch read the same few words.
    table: bool,
}

impl Reused {
    /// Loads of a word, those of one request once.
    fn times(&self) -> f64 {
        self.loads / self.words
    }
}

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    // Which threads share a word is the block's affair.
    if ctx.facts.launch.block_source.is_assumption() {
        return Vec::new();
    }
    let mut waiting = reused(ctx);
    let mut found = Vec::new();
    while let Some(at) = (0..waiting.len()).find(|&at| waiting[at].times() >= AGAIN) {
        let first = waiting.remove(at);
        let line = |of: &Reused| ctx.facts.accesses[of.accesses[0]].site.line;
        // A product reads both of its arrays on one line: they are staged together.
        let (mut together, rest): (Vec<Reused>, Vec<Reused>) = waiting
            .into_iter()
            .partition(|other| line(other) == line(&first) && other.table == first.table);
        waiting = rest;
        together.insert(0, first);
        // Which lanes take which words comes first: a tile is filled by rows, too.
        if !together.iter().any(|of| is_uncoalesced(ctx, of)) {
            found.extend(finding(ctx, &together));
        }
    }
    found
}

/// True where lanes that took neighbouring words would save time by that alone.
fn is_uncoalesced(ctx: &Context<'_>, of: &Reused) -> bool {
    of.accesses.iter().any(|&index| {
        uncoalesced::is_apart(ctx, &ctx.facts.accesses[index])
            && ctx.gain(Removal::Access(index)) >= wording::VISIBLE
    })
}

fn finding(ctx: &Context<'_>, together: &[Reused]) -> Option<Finding> {
    let worst = together
        .iter()
        .max_by(|a, b| a.times().total_cmp(&b.times()))?;
    let access = &ctx.facts.accesses[worst.accesses[0]];
    let bytes = worst.words * f64::from(access.bytes_per_lane);
    let constant = worst.table;
    let changes: Vec<Change> = together
        .iter()
        .map(|of| {
            let accesses = of.accesses.clone();
            if constant {
                Change::FromConstants { accesses }
            } else {
                Change::Staged {
                    accesses,
                    words: of.words,
                    product: together.len() > 1,
                }
            }
        })
        .collect();
    let gain = ctx.trial(&changes)?;
    if gain < WORTH {
        return None;
    }
    let all = worst.accesses.len();
    let cause = if all > 1 {
        format!(
            "`{}` and {} of `{}`",
            access.text,
            counted(all as f64 - 1.0, "more load", "more loads"),
            access.array
        )
    } else {
        format!("`{}`", access.text)
    };
    let cure = if constant {
        "the same for every thread: `__constant__` memory would serve them"
    } else if bytes <= TILE_BYTES {
        "a tile in shared memory would load each once"
    } else {
        "tiles in shared memory would load each once"
    };
    let arrays = names(ctx, together);
    let reservation = wording::reservation(ctx.facts, access);
    let mut related: Vec<_> = together
        .iter()
        .flat_map(|of| &of.accesses)
        .map(|&index| &ctx.facts.accesses[index])
        .filter(|other| other.site != access.site)
        .map(|other| (other.site, format!("`{}`", other.text)))
        .collect();
    related.dedup();
    Some(Finding {
        rule: RULE.id,
        severity: wording::severity(gain, access.certainty, reservation.is_some()),
        place: Place::Site(access.site),
        message: wording::sentence([
            Some(format!(
                "{} ({} loads of each word{}, ideal 1)",
                match (constant, bytes <= TILE_BYTES) {
                    (true, _) => format!("keep {arrays} in constant memory"),
                    (false, true) => format!("stage {arrays} in shared memory"),
                    (false, false) => format!("stage tiles of {arrays} in shared memory"),
                },
                number(worst.times()),
                wording::on_average(worst.times()),
            )),
            Some(format!(
                "{} loads of each word: the {} that a block reads by {cause} are loaded {} times, {cure}",
                number(worst.times()),
                counted(worst.words, "word", "words"),
                number(worst.loads),
            )),
            Some(wording::gain(gain)),
            reservation,
        ]),
        gain,
        related,
        access: Some(worst.accesses[0]),
        shared_array: None,
        cure: None,
    })
}

/// The arrays that are staged together, as a headline names them.
fn names(ctx: &Context<'_>, together: &[Reused]) -> String {
    let accesses = together
        .iter()
        .map(|of| &ctx.facts.accesses[of.accesses[0]]);
    let mut of_places: Vec<_> = accesses
        .map(|access| (access.site, wording::array_of(access)))
        .collect();
    of_places.sort();
    let mut names: Vec<String> = Vec::new();
    for (_, name) in of_places {
        let name = format!("`{name}`");
        if !names.contains(&name) {
            names.push(name);
        }
    }
    match names.as_slice() {
        [one, two] => format!("{one} and {two}"),
        [first, .., last] if names.len() > 2 => format!("{first} to {last}"),
        _ => names.concat(),
    }
}

/// Loads that several threads or iterations of a block make, by array and by how their addresses move.
fn reused(ctx: &Context<'_>) -> Vec<Reused> {
    let facts = ctx.facts;
    let accesses = &facts.accesses;
    // What is loaded ahead of a loop is not loaded as often as what is loaded in it, however alike they move.
    let turns = |index: usize| trips(&ctx.input.flow.nodes, index, &mut Vec::new());
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (index, access) in accesses.iter().enumerate().take(MOST) {
        if !is_load(access) || access.requests.is_none_or(|requests| requests <= 0.0) {
            continue;
        }
        let alike = |group: &&mut Vec<usize>| {
            let first = &accesses[group[0]];
            let (Some(a), Some(b)) = (&first.linear, &access.linear) else {
                return false;
            };
            first.array == access.array
                && first.bytes_per_lane == access.bytes_per_lane
                && (a.thread, a.block, &a.loops) == (b.thread, b.block, &b.loops)
                && turns(group[0]) == turns(index)
        };
        match groups.iter_mut().find(alike) {
            Some(group) => group.push(index),
            None => groups.push(vec![index]),
        }
    }
    let written = |array: &str| {
        accesses
            .iter()
            .any(|access| access.op != Op::Load && access.array == array)
    };
    groups
        .into_iter()
        .filter(|group| !written(&accesses[group[0]].array))
        .filter_map(|group| of_group(ctx, group))
        .collect()
}

fn is_load(access: &Access) -> bool {
    access.space == Space::Global
        && access.op == Op::Load
        && access.field.is_none()
        && access.bytes_per_lane > 0
        && access.linear.is_some()
        && !matches!(access.pattern, Pattern::DataDependent | Pattern::Unknown)
}

fn of_group(ctx: &Context<'_>, group: Vec<usize>) -> Option<Reused> {
    let facts = ctx.facts;
    let accesses = &facts.accesses;
    let linear = accesses[group[0]].linear.as_ref()?;
    let element = i64::from(accesses[group[0]].bytes_per_lane);
    let trips = trips(&ctx.input.flow.nodes, group[0], &mut Vec::new())?;
    if trips.len() != linear.loops.len() {
        return None;
    }
    let mut moves: Vec<(i64, u64)> = linear.thread.into_iter().zip(facts.launch.block).collect();
    let in_block = moves.clone();
    moves.extend(linear.loops.iter().copied().zip(trips));
    if moves.iter().any(|(step, _)| step % element != 0) {
        return None;
    }
    let mut starts: Vec<i64> = Vec::new();
    for &index in &group {
        let constant = accesses[index].linear.as_ref()?.constant;
        (constant % element == 0).then(|| starts.push(constant / element))?;
    }
    let words_of_block = words(&starts, &moves, element)?;
    // What one thread alone loads again belongs in its registers.
    let of_thread = words(&starts, &moves[in_block.len()..], element)?;
    if words_of_block >= of_thread * facts.launch.threads_per_block() as f64 {
        return None;
    }
    let blocks = facts.launch.blocks() as f64;
    let each = in_warp(&in_block, facts.launch.block, u64::from(facts.warp_size));
    let mut loads = 0.0;
    let mut seen: Vec<i64> = Vec::new();
    for &index in &group {
        // What a thread loads twice at once is in its registers the second time.
        let constant = accesses[index].linear.as_ref()?.constant;
        if !seen.contains(&constant) {
            loads += accesses[index].requests? / blocks * each;
            seen.push(constant);
        }
    }
    let still = linear.thread == [0; 3] && linear.block == [0; 3];
    let reach = moves.iter().fold(element, |reach, (step, count)| {
        let turns = i64::try_from(count.saturating_sub(1)).unwrap_or(i64::MAX);
        reach.saturating_add(step.saturating_abs().saturating_mul(turns))
    });
    Some(Reused {
        accesses: group,
        words: words_of_block,
        loads,
        table: still && reach <= TABLE_BYTES,
    })
}

/// Iterations of the loops around an access, outermost first; `None` where one is a guess.
fn trips(flow: &[Node], access: usize, around: &mut Vec<u64>) -> Option<Vec<u64>> {
    for node in flow {
        match node {
            Node::Access { access: of, .. } if *of == access => return Some(around.clone()),
            Node::Loop {
                trips: turns,
                known,
                body,
                ..
            } => {
                let whole = (turns - turns.round()).abs() < 1e-9 && *turns >= 1.0 && *known;
                around.push(if whole { *turns as u64 } else { 0 });
                let found = trips(body, access, around);
                around.pop();
                if found.is_some() {
                    return found.filter(|all| !all.contains(&0));
                }
            }
            Node::Branch {
                then, otherwise, ..
            } => {
                let found = trips(then, access, around);
                let found = found.or_else(|| trips(otherwise, access, around));
                if found.is_some() {
                    return found;
                }
            }
            _ => {}
        }
    }
    None
}

/// Words that the lanes of a block's first warp read, each once.
fn in_warp(moves: &[(i64, u64)], block: [u64; 3], warp: u64) -> f64 {
    let mut addresses: Vec<i64> = (0..warp.min(block.iter().product()))
        .map(|lane| {
            let at = [
                lane % block[0].max(1),
                lane / block[0].max(1) % block[1].max(1),
                lane / (block[0] * block[1]).max(1),
            ];
            let parts = at.iter().zip(moves);
            parts.map(|(at, (step, _))| *at as i64 * step).sum()
        })
        .collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses.len() as f64
}

/// Distinct words of an address that starts at one of several places and moves by steps; `None` where there are too many
/// runs of neighbours to follow.
fn words(starts: &[i64], moves: &[(i64, u64)], element: i64) -> Option<f64> {
    // Runs of neighbours: first word and one past the last.
    let mut runs: Vec<(i64, i64)> = starts.iter().map(|start| (*start, start + 1)).collect();
    merge(&mut runs);
    let mut steps: Vec<(i64, i64)> = moves
        .iter()
        .map(|(step, count)| (step / element, i64::try_from(*count).unwrap_or(i64::MAX)))
        .map(|(step, count)| (step.saturating_abs(), count))
        .filter(|(step, count)| *step != 0 && *count > 1)
        .collect();
    steps.sort_unstable();
    let mut steps = steps.into_iter().peekable();
    while let Some((step, count)) = steps.peek().copied() {
        let far = step.checked_mul(count - 1)?;
        if runs.iter().all(|(first, last)| last - first >= step) {
            // Each run grows into its own next position.
            for run in &mut runs {
                run.1 = run.1.checked_add(far)?;
            }
        } else if count.saturating_mul(runs.len() as i64) <= MOST_RUNS {
            let before = runs.clone();
            for turn in 1..count {
                let by = turn * step;
                runs.extend(before.iter().map(|(a, b)| (a + by, b + by)));
            }
        } else {
            break;
        }
        merge(&mut runs);
        steps.next();
    }
    let mut all: f64 = runs.iter().map(|(first, last)| (last - first) as f64).sum();
    let mut span = runs.last()?.1.checked_sub(runs.first()?.0)?;
    for (step, count) in steps {
        // Further positions, each clear of the ones before.
        if step < span {
            return None;
        }
        all *= count as f64;
        span = span.checked_add(step.checked_mul(count - 1)?)?;
    }
    Some(all)
}

/// Runs in order, those that meet made one.
fn merge(runs: &mut Vec<(i64, i64)>) {
    runs.sort_unstable();
    let mut merged: Vec<(i64, i64)> = Vec::with_capacity(runs.len());
    for &(first, last) in runs.iter() {
        match merged.last_mut() {
            Some(before) if first <= before.1 => before.1 = before.1.max(last),
            _ => merged.push((first, last)),
        }
    }
    *runs = merged;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Kernel, access};
    use warplens_facts::facts::LinearAddress;

    fn plain(starts: &[i64], moves: &[(i64, u64)]) -> f64 {
        let mut all: Vec<i64> = starts.to_vec();
        for (step, count) in moves {
            let before = all.clone();
            for turn in 1..*count as i64 {
                all.extend(before.iter().map(|at| at + turn * step));
            }
            all.sort_unstable();
            all.dedup();
        }
        all.len() as f64
    }

    #[test]
    fn words_are_counted_as_by_a_plain_enumeration() {
        for (starts, moves) in [
            (vec![0, -1, 1], vec![(1, 256)]),
            (vec![0], vec![(1, 16), (1, 9), (100, 16), (100, 9)]),
            (vec![0, -1, 1, 100, -100], vec![(1, 16), (100, 16)]),
            (vec![0, 3], vec![(2, 8), (5, 7), (64, 3)]),
            (vec![0], vec![(7, 9), (-3, 11), (0, 5)]),
            (vec![4, 9, 1000], vec![(1, 3), (17, 20)]),
        ] {
            assert_eq!(words(&starts, &moves, 1), Some(plain(&starts, &moves)));
        }
        // Columns of a matrix: too many runs to list, each clear of the others.
        assert_eq!(words(&[0], &[(4096, 1024), (4, 16)], 4), Some(16384.0));
        assert_eq!(words(&[0], &[(1000, 2000), (1501, 2000)], 1), None);
    }

    fn shifted(by: i64) -> Access {
        let mut load = access(5);
        load.op = Op::Load;
        load.pattern = Pattern::Coalesced;
        load.requests = Some(8.0 * 4096.0);
        load.active_lanes_per_request = Some(32.0);
        load.linear = Some(LinearAddress {
            constant: 4 * by,
            thread: [4, 0, 0],
            block: [1024, 0, 0],
            loops: Vec::new(),
        });
        load
    }

    fn stencil(gain: f64, with: &[i64]) -> Vec<Finding> {
        let mut kernel = Kernel::new();
        kernel.trial = gain;
        for (index, by) in with.iter().enumerate() {
            kernel = kernel.access(shifted(*by));
            kernel.flow.push(Node::Access {
                access: index,
                uses: Vec::new(),
            });
        }
        let mut found = kernel.findings(|_| 1.0);
        found.retain(|finding| finding.rule == RULE.id);
        found
    }

    #[test]
    fn a_stencil_loads_each_word_several_times_and_a_copy_does_not() {
        let found = stencil(1.3, &[-1, 0, 1]);
        assert_eq!(found.len(), 1);
        assert!(
            found[0]
                .message
                .contains("3 loads of each word: the 258 words that a block reads by"),
            "{}",
            found[0].message
        );
        assert_eq!(stencil(1.3, &[0]), []);
        assert_eq!(stencil(1.04, &[-1, 0, 1]), []);
    }
}
