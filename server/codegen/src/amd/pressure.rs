//! How many registers of each file live at the same time, in the order in which LLVM issues the instructions.

use rustc_hash::FxHashMap;

use super::code::{BlockCode, Code, Order, Reach, Step};
use crate::graph::{B, Graph};
use crate::thresholds::amdgcn;

/// Accesses that one is held against: those before are taken to be far enough away.
const FAR: usize = 64;

/// Blocks of more instructions are not scheduled.
const LONG: usize = 3000;

/// The most words of each file that live at a time in each block: VGPRs, SGPRs.
pub(super) fn most(graph: &Graph, code: &Code) -> Vec<[u32; 2]> {
    let live = Live::of(graph, code);
    let mut all = Vec::new();
    for (number, block) in code.blocks.iter().enumerate() {
        let mut entered = live.before[number].clone();
        for v in &block.entered {
            set(&mut entered, *v);
        }
        all.push(issue(code, block, entered, &live.behind[number]));
    }
    all
}

fn set(bits: &mut [u64], v: u32) {
    bits[v as usize / 64] |= 1 << (v % 64);
}

fn unset(bits: &mut [u64], v: u32) {
    bits[v as usize / 64] &= !(1 << (v % 64));
}

fn is(bits: &[u64], v: u32) -> bool {
    bits[v as usize / 64] >> (v % 64) & 1 == 1
}

/// What lives where blocks begin and end.
struct Live {
    before: Vec<Vec<u64>>,
    behind: Vec<Vec<u64>>,
}

impl Live {
    fn of(graph: &Graph, code: &Code) -> Live {
        let blocks = code.blocks.len();
        let chunks = code.registers.len().div_ceil(64);
        let mut before: Vec<Vec<u64>> = vec![vec![0; chunks]; blocks];
        let mut behind = before.clone();
        let mut changed = true;
        while changed {
            changed = false;
            for (number, block) in code.blocks.iter().enumerate().rev() {
                let mut live = vec![0u64; chunks];
                for to in graph.to(B(number as u32)) {
                    for (mine, theirs) in live.iter_mut().zip(&before[to.0 as usize]) {
                        *mine |= theirs;
                    }
                }
                for v in &block.given {
                    set(&mut live, *v);
                }
                behind[number].clone_from(&live);
                for step in block.steps.iter().rev() {
                    for v in &step.made {
                        unset(&mut live, *v);
                    }
                    for v in &step.read {
                        set(&mut live, *v);
                    }
                }
                for v in &block.entered {
                    unset(&mut live, *v);
                }
                if live != before[number] {
                    before[number] = live;
                    changed = true;
                }
            }
        }
        Live { before, behind }
    }
}

/// A count of words by file.
struct Words<'a> {
    code: &'a Code,
    now: [u32; 2],
    most: [u32; 2],
}

impl Words<'_> {
    fn file(&self, v: u32) -> (usize, u32) {
        let register = self.code.registers[v as usize];
        (usize::from(!register.vector), register.words)
    }

    fn add(&mut self, v: u32) {
        let (file, words) = self.file(v);
        self.now[file] += words;
        self.most[file] = self.most[file].max(self.now[file]);
    }

    fn take(&mut self, v: u32) {
        let (file, words) = self.file(v);
        self.now[file] -= words;
    }
}

/// Issues a block's instructions: what others wait for longest comes first while VGPRs are enough, then what frees
/// some.
fn issue(code: &Code, block: &BlockCode, entered: Vec<u64>, leaves: &[u64]) -> [u32; 2] {
    let steps = &block.steps;
    let count = steps.len();
    let behind = dependences(steps);
    let mut waits = vec![0usize; count];
    for others in &behind {
        for &other in others {
            waits[other] += 1;
        }
    }
    let mut height = vec![0u32; count];
    for number in (0..count).rev() {
        let rest = behind[number].iter().map(|other| height[*other]).max();
        height[number] = rest.unwrap_or(0) + steps[number].latency;
    }
    let mut uses: FxHashMap<u32, u32> = FxHashMap::default();
    for step in steps {
        for &v in &step.read {
            *uses.entry(v).or_default() += 1;
        }
    }
    let mut words = Words {
        code,
        now: [0; 2],
        most: [0; 2],
    };
    let mut live = entered;
    for v in 0..code.registers.len() as u32 {
        if is(&live, v) {
            words.add(v);
        }
    }
    // A value that enters the block and is not read there holds its register until here.
    for &v in &block.entered {
        if !is(leaves, v) && !uses.contains_key(&v) && is(&live, v) {
            unset(&mut live, v);
            words.take(v);
        }
    }
    let is_load = |number: usize| code.is_vector_load(&steps[number]);
    let feeds = feeders(code, steps, &behind);
    let mut since = vec![0u32; count];
    let mut now = 0u32;
    let mut open: Vec<usize> = (0..count).filter(|number| waits[*number] == 0).collect();
    // The loads issued one behind the other, and the words of their addresses.
    let mut clause = 0;
    let mut held = 0;
    while !open.is_empty() {
        let growth = |number: usize| -> i64 {
            let step = &steps[number];
            let vector = |v: u32| match words.file(v) {
                (0, words) => i64::from(words),
                _ => 0,
            };
            let made: i64 = step
                .made
                .iter()
                .filter(|v| !is(&live, **v))
                .map(|v| vector(*v))
                .sum();
            let freed: i64 = step
                .read
                .iter()
                .filter(|v| uses.get(v) == Some(&1) && !is(leaves, **v))
                .map(|v| vector(*v))
                .sum();
            made - freed
        };
        let loads = open.iter().filter(|number| is_load(**number)).count();
        let first = |which: &dyn Fn(usize) -> bool| {
            (0..open.len())
                .filter(|at| which(open[*at]))
                .min_by_key(|at| open[*at])
        };
        let chosen = if count > LONG {
            first(&|_| true)
        } else if words.now[0] >= amdgcn().schedule.relaxed {
            (0..open.len()).min_by_key(|at| (growth(open[*at]), open[*at]))
        } else {
            let full = loads >= amdgcn().schedule.cluster || clause > 0 && loads > 0;
            None.or_else(|| first(&|number| full && is_load(number)))
                .or_else(|| first(&|number| feeds[number] && since[number] <= now))
                .or_else(|| first(&is_load))
                .or_else(|| {
                    (0..open.len())
                        .filter(|at| since[open[*at]] <= now)
                        .max_by_key(|at| (height[open[*at]], std::cmp::Reverse(open[*at])))
                })
        };
        let Some(at) = chosen else {
            now = open
                .iter()
                .map(|number| since[*number])
                .min()
                .unwrap_or(now);
            continue;
        };
        let number = open.swap_remove(at);
        let step = &steps[number];
        let in_clause = is_load(number) && (clause > 0 || loads > 1);
        if !in_clause || clause == amdgcn().schedule.clause {
            words.now[0] -= std::mem::take(&mut held);
            clause = 0;
        }
        clause += u32::from(in_clause);
        for file in 0..2 {
            words.most[file] = words.most[file].max(words.now[file] + step.extra[file]);
        }
        for &v in &step.read {
            let left = uses.get_mut(&v).expect("counted above");
            *left -= 1;
            if *left == 0 && !is(leaves, v) && is(&live, v) {
                unset(&mut live, v);
                let (file, size) = words.file(v);
                if in_clause && file == 0 {
                    held += size;
                } else {
                    words.take(v);
                }
            }
        }
        for &v in &step.made {
            if !is(&live, v) {
                set(&mut live, v);
                words.add(v);
            }
        }
        for &v in &step.made {
            if !is(leaves, v) && uses.get(&v).copied().unwrap_or(0) == 0 {
                unset(&mut live, v);
                words.take(v);
            }
        }
        now = now.max(since[number]) + 1;
        for &other in &behind[number] {
            waits[other] -= 1;
            since[other] = since[other].max(now + step.latency - 1);
            if waits[other] == 0 {
                open.push(other);
            }
        }
    }
    words.most
}

/// What only leads to loads of memory: it is issued before them, so that they stand together.
fn feeders(code: &Code, steps: &[Step], behind: &[Vec<usize>]) -> Vec<bool> {
    let mut feeds = vec![false; steps.len()];
    for number in (0..steps.len()).rev() {
        let step = &steps[number];
        let plain = step.order == Order::Free && step.latency <= amdgcn().schedule.quick;
        feeds[number] = plain
            && behind[number]
                .iter()
                .any(|other| feeds[*other] || code.is_vector_load(&steps[*other]));
    }
    feeds
}

/// Which instructions must follow which: values, the order of memory, barriers.
fn dependences(steps: &[Step]) -> Vec<Vec<usize>> {
    let count = steps.len();
    let mut behind: Vec<Vec<usize>> = vec![Vec::new(); count];
    let mut made: FxHashMap<u32, usize> = FxHashMap::default();
    let mut barrier: Option<usize> = None;
    // Accesses since the last barrier: the loads, and the stores.
    let mut seen: [Vec<(usize, Reach)>; 2] = Default::default();
    for (number, step) in steps.iter().enumerate() {
        let mut on: Vec<usize> = step
            .read
            .iter()
            .filter_map(|v| made.get(v).copied())
            .collect();
        let held_by = |seen: &[(usize, Reach)], reach: Reach, on: &mut Vec<usize>| {
            let late = &seen[seen.len().saturating_sub(FAR)..];
            on.extend(
                late.iter()
                    .filter(|(_, other)| other.overlaps(&reach))
                    .map(|(number, _)| *number),
            );
        };
        match step.order {
            Order::Free => {}
            Order::Load(reach) => {
                on.extend(barrier);
                held_by(&seen[1], reach, &mut on);
                seen[0].push((number, reach));
            }
            Order::Store(reach) => {
                on.extend(barrier);
                held_by(&seen[0], reach, &mut on);
                held_by(&seen[1], reach, &mut on);
                seen[1].push((number, reach));
            }
            Order::Barrier => {
                on.extend(seen.iter().flatten().map(|(number, _)| *number));
                on.extend(barrier);
                seen = Default::default();
                barrier = Some(number);
            }
            Order::Last => on.extend(0..number),
        }
        on.sort_unstable();
        on.dedup();
        for other in on {
            behind[other].push(number);
        }
        for v in &step.made {
            made.insert(*v, number);
        }
    }
    behind
}
