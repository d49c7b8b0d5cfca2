//! The compiled code by site, class and frequency.
//!
//! In: a graph and its machine instructions. Out: [`Code`], instructions of one site and class that are executed equally
//! often as one entry, with their part of the longest chain of instructions that depend on one another.

use rustc_hash::FxHashMap;
use warplens_ir::Site;

use crate::Class;
use crate::frequency::Frequency;
use crate::graph::{Graph, Op, V};
use crate::select::{self, Instruction, needs_move};

/// Instructions alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Code {
    /// The source that they were made of.
    pub site: Site,
    /// Their class.
    pub class: Class,
    /// How many are executed each time.
    pub count: u32,
    /// How many of the usual size they are as work: products of matrices of other shapes and types take more or less.
    pub work: f32,
    /// Loads and stores of the source that they do: a wide load of shared memory does several. 0 for other classes.
    pub accesses: u32,
    /// Stores of the source that they do, the same for those of neighbours that one instruction does. 0 for other classes.
    pub stores: u32,
    /// Their part of the longest chain of instructions of their blocks that wait for one another: of arithmetic the
    /// instructions on it, of loads the round trips to memory, where those that wait for none of each other go together.
    pub chain: f32,
    /// How often.
    pub frequency: Frequency,
}

/// Instructions of a function's body that do not wait for each other: beside each number there is its error term.
const SIDE_BY_SIDE: f32 = 2.0;

/// The code of a kernel with how often it is executed; slow paths that calls share are not.
pub(crate) fn executed(graph: &Graph, code: &select::Code) -> Vec<Code> {
    let mut gathered = Gathered::default();
    for (number, (instructions, block)) in code.blocks.iter().zip(&graph.blocks).enumerate() {
        let waits = Waits::of(graph, instructions);
        for (at, instruction) in instructions.iter().enumerate() {
            if let Some(&phi) = code.moves.get(&(number, at)) {
                // A constant is moved where control comes from.
                let args = &graph.inst(phi).args;
                for (&arg, from) in args.iter().zip(&block.from) {
                    if needs_move(graph, arg) {
                        let times = (1, 0);
                        gathered.add(instruction, times, 0.0, graph.block(*from).frequency);
                    }
                }
                continue;
            }
            let accesses = accesses(graph, instruction);
            let count = instruction.count - instruction.rare;
            if count == 0 && instruction.rare > 0 {
                continue;
            }
            let times = (count, accesses);
            let chain = waits.part(instruction) * count as f32 / instruction.count.max(1) as f32;
            for frequency in std::iter::once(block.frequency).chain(block.again) {
                gathered.add(instruction, times, chain, frequency);
            }
            let called = code.calls.get(&(number, at)).into_iter();
            for &(class, count) in called.flat_map(|recipe| &recipe.once) {
                let one = Instruction::new(class, count, instruction.site);
                let chain = count as f32 / SIDE_BY_SIDE;
                for frequency in std::iter::once(block.frequency).chain(block.again) {
                    gathered.add(&one, (count, 0), chain, frequency);
                }
            }
        }
    }
    for instruction in &code.once {
        let count = instruction.count;
        gathered.add(instruction, (count, 0), count as f32, Frequency::ONCE);
    }
    gathered.code
}

fn accesses(graph: &Graph, instruction: &Instruction) -> u32 {
    match instruction.class {
        Class::Ldg | Class::Lds | Class::Ldl | Class::Ldc => {
            let is_load = |v: &&V| matches!(graph.op(**v), Op::Load(..));
            let loads = instruction.values.iter().filter(is_load).count() as u32;
            instruction.count * loads.max(1)
        }
        Class::Stg | Class::Sts | Class::Stl => instruction.count,
        _ => 0,
    }
}

#[derive(Default)]
struct Gathered {
    code: Vec<Code>,
    known: FxHashMap<(Frequency, Site, Class), usize>,
}

impl Gathered {
    fn add(
        &mut self,
        instruction: &Instruction,
        (count, accesses): (u32, u32),
        chain: f32,
        frequency: Frequency,
    ) {
        let (site, class) = (instruction.site, instruction.class);
        let key = (frequency, site, class);
        let at = *self.known.entry(key).or_insert_with(|| {
            self.code.push(Code {
                site,
                class,
                count: 0,
                work: 0.0,
                accesses: 0,
                stores: 0,
                chain: 0.0,
                frequency,
            });
            self.code.len() - 1
        });
        self.code[at].count += count;
        self.code[at].work += match instruction.count {
            0 => 0.0,
            all => instruction.work * count as f32 / all as f32,
        };
        self.code[at].accesses += accesses;
        if matches!(class, Class::Stg | Class::Sts | Class::Stl) {
            self.code[at].stores += count * instruction.stores;
        }
        self.code[at].chain += chain;
    }
}

/// Memories whose answers are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Memory {
    Device,
    Shared,
}

fn loaded_from(class: Class) -> Option<Memory> {
    match class {
        Class::Ldg | Class::Ldl | Class::Atom | Class::Tex => Some(Memory::Device),
        Class::Lds => Some(Memory::Shared),
        _ => None,
    }
}

fn stored_to(class: Class) -> Option<Memory> {
    match class {
        Class::Stg | Class::Stl | Class::Red | Class::Atom => Some(Memory::Device),
        Class::Sts => Some(Memory::Shared),
        _ => None,
    }
}

/// How far an instruction is down the chains of its block.
#[derive(Debug, Clone, Copy, Default)]
struct Depth {
    arithmetic: u32,
    /// Round trips by [`Memory`].
    trips: [u32; 2],
}

impl Depth {
    fn behind(&mut self, other: Depth) {
        self.arithmetic = self.arithmetic.max(other.arithmetic);
        for (mine, theirs) in self.trips.iter_mut().zip(other.trips) {
            *mine = (*mine).max(theirs);
        }
    }
}

/// Adds a store to those of a block: of stores that the same loads see only the deepest counts.
fn add(stored: &mut Vec<(u32, Depth)>, from: u32, depth: Depth) {
    let full = stored.len() == MOST_APART;
    match stored.last_mut() {
        Some((last, known)) if *last == from || full => known.behind(depth),
        _ => stored.push((from, depth)),
    }
}

/// Stores of a block that are told apart.
const MOST_APART: usize = 128;

/// How the instructions of a block wait for one another.
#[derive(Debug, Clone, Copy, Default)]
struct Waits {
    longest: Depth,
    arithmetic: u32,
    /// Loads by [`Memory`].
    loads: [u32; 2],
}

impl Waits {
    /// A load goes ahead of everything but what gives its address and stores that may write what it loads: those are
    /// issued when what they store is there, and in order.
    fn of(graph: &Graph, instructions: &[Instruction]) -> Waits {
        let mut waits = Waits::default();
        let mut made: FxHashMap<V, Depth> = FxHashMap::default();
        let mut stored: [Vec<(u32, Depth)>; 2] = [Vec::new(), Vec::new()];
        let mut met = Depth::default();
        for instruction in instructions {
            let mut depth = Depth::default();
            for read in &instruction.uses {
                if let Some(known) = made.get(read) {
                    depth.behind(*known);
                }
            }
            let count = instruction.count;
            if let Some(memory) = loaded_from(instruction.class) {
                let number = |v: &V| match graph.op(*v) {
                    Op::Load(.., number) => Some(number),
                    _ => None,
                };
                let number = instruction.values.iter().filter_map(number).max();
                let mut before = Depth::default();
                for (from, depth) in &stored[memory as usize] {
                    if number.is_none_or(|number| *from <= number) {
                        before.behind(*depth);
                    }
                }
                let trips = depth.trips;
                depth.trips =
                    std::array::from_fn(|of| trips[of].max(before.trips[of]).max(met.trips[of]));
                depth.trips[memory as usize] += 1;
                waits.loads[memory as usize] += count;
            } else if instruction.class == Class::Bar {
                met.trips = waits.longest.trips;
            } else if stored_to(instruction.class).is_none() {
                depth.arithmetic += 1;
                waits.arithmetic += count;
            }
            if let Some(memory) = stored_to(instruction.class) {
                let mut seen = instruction.values.iter();
                let seen = seen.find_map(|store| graph.seen_from.get(store).copied());
                add(&mut stored[memory as usize], seen.unwrap_or(0), depth);
            }
            for value in &instruction.values {
                made.insert(*value, depth);
            }
            waits.longest.behind(depth);
        }
        waits
    }

    /// An instruction's part of the longest chain.
    fn part(&self, instruction: &Instruction) -> f32 {
        let count = instruction.count as f32;
        let (longest, all) = match loaded_from(instruction.class) {
            Some(of) => (self.longest.trips[of as usize], self.loads[of as usize]),
            None if stored_to(instruction.class).is_some() => return 0.0,
            None => (self.longest.arithmetic, self.arithmetic),
        };
        if all > 0 {
            count * (longest as f32 / all as f32).min(1.0)
        } else {
            count
        }
    }
}
