//! How often a block of the compiled kernel is executed.
//!
//! The compiler knows no launch, so a block's frequency is a chain of shares: of what stands around it, a side of a
//! branch, an iteration of a loop. Where a loop was fully unrolled its iterations are blocks of their own, each as
//! frequent as the loop was; an unrolled loop has fewer iterations by its factor, and a remainder loop. Of a
//! loop that is left from within, it is not known in which iteration: those that are executed are shared out evenly over
//! the blocks, so that unrolling changes nothing of what is executed but the loop's own tests.
//! Numbers come from whoever counted warps at the kernel's controls ([`Ways`]).

use rustc_hash::FxHashMap;
use warplens_ir::{Control, Site};

use crate::graph::{Graph, Op, V};
use crate::select::{self, Instruction, needs_move};
use crate::{Class, CompiledKernel};

/// How often: an index into [`CompiledKernel::frequencies`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Frequency(pub(crate) u32);

impl Frequency {
    /// Once by every warp.
    pub(crate) const ONCE: Frequency = Frequency(0);
}

/// How often something is executed, against what stands around it; that comes before it in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Share {
    /// Once by every warp.
    Once,
    /// A side of a branch: the one where its condition holds, or the other.
    Side(Frequency, Option<Control>, bool),
    /// The turns of a loop with this unroll factor.
    Turns(Frequency, Option<Control>, u64),
    /// The iterations that such a loop leaves over.
    LeftOver(Frequency, Option<Control>, u64),
    /// The first number in the second.
    Part(Frequency, u64, u64),
    /// Where two ways meet again that were left on the way: as often as both, and no more often than before.
    Either(Frequency, Frequency, Frequency),
}

/// Frequencies while the kernel is built.
#[derive(Debug, Clone)]
pub(crate) struct Frequencies {
    pub list: Vec<Share>,
}

impl Default for Frequencies {
    fn default() -> Self {
        Frequencies {
            list: vec![Share::Once],
        }
    }
}

impl Frequencies {
    pub fn add(&mut self, share: Share) -> Frequency {
        // What is asked for again was mostly made just before.
        let recent = self.list.len().saturating_sub(8);
        if let Some(at) = self.list[recent..].iter().rposition(|own| *own == share) {
            return Frequency((recent + at) as u32);
        }
        self.list.push(share);
        Frequency(self.list.len() as u32 - 1)
    }
}

/// How warps go on at a control, over a launch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ways<'a> {
    /// Warps that come there.
    pub reached: f64,
    /// Those that take it; of a loop, the iterations of warps.
    pub taken: f64,
    /// Those that do not.
    pub other: f64,
    /// Loops: numbers of iterations, and how many warps have each; empty where only the average is known.
    pub turns: &'a [(u64, f64)],
}

impl Ways<'_> {
    fn side(&self, taken: bool) -> f64 {
        if self.reached <= 0.0 {
            return 0.0;
        }
        (if taken { self.taken } else { self.other } / self.reached).min(1.0)
    }

    fn trips(&self) -> f64 {
        if self.reached > 0.0 {
            self.taken / self.reached
        } else {
            0.0
        }
    }

    /// Iterations that do not fill `times`, on average.
    fn remainder(&self, times: u64) -> f64 {
        let trips = self.trips();
        let warps: f64 = self.turns.iter().map(|(_, warps)| warps).sum();
        if warps > 0.0 {
            let left = |&(turns, warps): &(u64, f64)| (turns % times) as f64 * warps;
            return self.turns.iter().map(left).sum::<f64>() / warps;
        }
        if trips.fract() == 0.0 {
            return trips % times as f64;
        }
        // Any remainder is as likely as another.
        trips.min((times - 1) as f64 / 2.0)
    }

    fn turns(&self, times: u64) -> f64 {
        ((self.trips() - self.remainder(times)) / times as f64).max(0.0)
    }
}

/// Instructions alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Code {
    /// The source that they were made of.
    pub site: Site,
    /// Their class.
    pub class: Class,
    /// How many are executed each time.
    pub count: u32,
    /// Loads and stores of the source that they do: a wide load of shared memory does several. 0 for other classes.
    pub accesses: u32,
    /// Their part of the longest chain of instructions of their blocks that wait for one another: of arithmetic the
    /// instructions on it, of loads the round trips to memory, where those that wait for none of each other go together.
    pub chain: f32,
    /// How often.
    pub frequency: Frequency,
}

/// The code of a kernel with how often it is executed; slow paths that calls share are not.
pub(crate) fn executed(graph: &Graph, code: &select::Code) -> Vec<Code> {
    let mut gathered = Gathered::default();
    for (number, (instructions, block)) in code.blocks.iter().zip(&graph.blocks).enumerate() {
        let waits = Waits::of(instructions);
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
            let times = (instruction.count, accesses);
            let chain = waits.part(instruction);
            for frequency in std::iter::once(block.frequency).chain(block.again) {
                gathered.add(instruction, times, chain, frequency);
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
                accesses: 0,
                chain: 0.0,
                frequency,
            });
            self.code.len() - 1
        });
        self.code[at].count += count;
        self.code[at].accesses += accesses;
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

/// How the instructions of a block wait for one another.
#[derive(Debug, Clone, Copy, Default)]
struct Waits {
    longest: Depth,
    arithmetic: u32,
    /// Loads by [`Memory`].
    loads: [u32; 2],
}

impl Waits {
    /// A load goes ahead of everything but what gives its address and stores to the same memory: those are issued
    /// when what they store is there, and in order.
    fn of(instructions: &[Instruction]) -> Waits {
        let mut waits = Waits::default();
        let mut made: FxHashMap<V, Depth> = FxHashMap::default();
        let mut stored = [Depth::default(); 2];
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
                let (trips, before) = (depth.trips, stored[memory as usize]);
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
                stored[memory as usize].behind(depth);
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

impl CompiledKernel {
    /// Executions of each frequency by one warp, averaged over those of the launch; `ways` says how they go on at a
    /// control, `None` where it was not counted: then every way is gone, and a loop is gone through once.
    pub fn executions<'w>(&self, ways: &dyn Fn(Control) -> Option<Ways<'w>>) -> Executions {
        let mut times: Vec<f64> = Vec::with_capacity(self.frequencies.len());
        let mut followed = true;
        for share in &self.frequencies {
            let of = |frequency: &Frequency| times[frequency.0 as usize];
            let mut at = |control: &Option<Control>| {
                let found = control.and_then(ways);
                followed &= found.is_some();
                found
            };
            let now = match share {
                Share::Once => 1.0,
                Share::Side(around, control, taken) => {
                    of(around) * at(control).map_or(1.0, |ways| ways.side(*taken))
                }
                Share::Turns(around, control, together) => {
                    of(around) * at(control).map_or(1.0, |ways| ways.turns(*together))
                }
                Share::LeftOver(around, control, together) => {
                    of(around) * at(control).map_or(0.0, |ways| ways.remainder(*together))
                }
                Share::Part(around, part, whole) => {
                    of(around) * (*part as f64 / (*whole).max(1) as f64)
                }
                Share::Either(around, a, b) => of(around).min(of(a) + of(b)),
            };
            times.push(now);
        }
        Executions { times, followed }
    }
}

/// How often each frequency is.
#[derive(Debug, Clone, PartialEq)]
pub struct Executions {
    times: Vec<f64>,
    /// False where a control was not counted.
    pub followed: bool,
}

impl Executions {
    /// Executions by one warp, on average.
    pub fn of(&self, frequency: Frequency) -> f64 {
        self.times[frequency.0 as usize]
    }
}
