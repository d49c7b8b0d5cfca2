//! What warps execute: the source's flow with the compiled kernel's instructions and accesses in place of its own.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use warplens_codegen::{Class, Code, Frequency};
use warplens_facts::facts::{
    Alias, Form, Node, Op, Pattern, Site, SourceFacts, Space, TripCount, each_stretch,
};
use warplens_machine::{Mix, Pipe};

use super::dynamic::DynamicCounts;
use super::executed::{ExecutedAccess, ExecutedFlow, Object, accesses};

impl DynamicCounts<'_> {
    /// What an average warp executes. The flow has the source's shape: what a line became goes to the stretches of that
    /// line as its operations did, and what is on no such line to all. What waits for what is the compiled kernel's as
    /// well: iterations that it writes out wait together.
    pub(super) fn executed(&self, facts: &SourceFacts) -> (ExecutedFlow, Vec<ExecutedAccess>) {
        let mut flow = facts.flow.clone();
        let mut accesses = accesses(facts);
        if flow.is_empty() && facts.not_understood.is_empty() {
            flow = self.without_operations();
        }
        let idle = self.weigh_accesses(&mut flow, &mut accesses);
        self.spill(&mut flow, &mut accesses, facts.name_site);
        let serial = self.weigh_stretches(&mut flow, idle);
        (
            ExecutedFlow {
                nodes: flow,
                serial,
            },
            accesses,
        )
    }

    /// The flow of a kernel that computes and accesses nothing by itself: the instructions around what it calls, such as `printf`.
    /// There are none in an empty kernel, which takes no time.
    fn without_operations(&self) -> Vec<Node> {
        let all: u32 = self.compiled.code.iter().map(|code| code.count).sum();
        if all <= EMPTY {
            return Vec::new();
        }
        let mut lines: BTreeMap<u32, Line> = BTreeMap::new();
        for code in &self.compiled.code {
            let line = lines.entry(code.site.line).or_default();
            line.add(code, self.executions.of(code.frequency), false);
        }
        let computes = |(line, work): (u32, Line)| Node::Compute {
            mix: work.compiled,
            uses: Vec::new(),
            chain: work.chain,
            line,
        };
        lines.into_iter().map(computes).collect()
    }

    /// Puts the compiled kernel's instructions in place of the source's operations. `idle` has by line how many more a
    /// warp issues than code says. Returns of each line's instructions the part that waits for one another.
    fn weigh_stretches(&self, flow: &mut [Node], idle: Vec<(u32, f64)>) -> Vec<(u32, f64)> {
        let mut serial: Vec<(u32, f64)> = Vec::new();
        let mut lines: FxHashMap<u32, Line> = FxHashMap::default();
        let mut operations = 0.0;
        each_stretch(flow, 1.0, &mut |mix, _, line, visits| {
            let total = mix.total() * visits;
            let line = lines.entry(line).or_default();
            line.operations += total;
            line.visits += visits;
            operations += total;
        });
        if operations <= 0.0 {
            return serial;
        }
        let mut anywhere = Line::default();
        let double = |class: Class| class.pipe() == Some(Pipe::Fp64);
        let doubles = self.compiled.code.iter().any(|code| double(code.class));
        for code in &self.compiled.code {
            let times = self.executions.of(code.frequency);
            let own = match lines.get_mut(&code.site.line) {
                Some(line) if line.operations > 0.0 => {
                    let own = line.own(times);
                    line.add(code, times * own, doubles);
                    own
                }
                _ => 0.0,
            };
            anywhere.add(code, times * (1.0 - own), doubles);
        }
        for (line, count) in idle {
            let own = match lines.get_mut(&line) {
                Some(line) if line.operations > 0.0 => {
                    let own = line.own(count);
                    line.compiled[Pipe::Branch] += count * own;
                    line.chain += count * own;
                    own
                }
                _ => 0.0,
            };
            anywhere.compiled[Pipe::Branch] += count * (1.0 - own);
            anywhere.chain += count * (1.0 - own);
        }
        each_stretch(flow, 1.0, &mut |mix, chain, line, _| {
            let before = mix.total();
            let mut now = Mix::default();
            let mut waits = 0.0;
            if let Some(line) = lines.get(&line)
                && line.operations > 0.0
            {
                now.add(&line.compiled, before / line.operations);
                waits += line.chain * before / line.operations;
            }
            now.add(&anywhere.compiled, before / operations);
            waits += anywhere.chain * before / operations;
            if serial.iter().all(|known| known.0 != line) && now.total() > 0.0 {
                serial.push((line, (waits / now.total()).min(1.0)));
            }
            *chain = chain.min(now.total());
            *mix = now;
        });
        serial.sort_by_key(|known| known.0);
        serial
    }

    /// Takes away what the compiled kernel does not access: values that stay in registers, and those that were loaded
    /// before. Returns by line how many memory instructions a warp issues that access nothing: the predicate of each
    /// is false in all lanes, where a branch of the source would have passed it by.
    fn weigh_accesses(
        &self,
        flow: &mut Vec<Node>,
        accesses: &mut [ExecutedAccess],
    ) -> Vec<(u32, f64)> {
        let mut lines: FxHashMap<Kind, Asked> = FxHashMap::default();
        each_access(flow, 1.0, &mut |access, visits| {
            if let Some(kind) = accesses.get(access).and_then(kind) {
                lines.entry(kind).or_default().source += visits;
            }
        });
        let mut elsewhere: BTreeMap<(Space, Op), f64> = BTreeMap::new();
        for code in self.compiled.code.iter().filter(|code| code.accesses > 0) {
            let Some((space, op)) = accessed(code.class) else {
                continue;
            };
            let count = f64::from(code.accesses) * self.executions.of(code.frequency);
            match lines.get_mut(&(code.site.line, space, op)) {
                Some(line) => {
                    line.compiled += count;
                    let times = self.executions.of(code.frequency);
                    line.instructions += f64::from(code.count) * times;
                }
                None => *elsewhere.entry((space, op)).or_default() += count,
            }
        }
        self.wait_for(&mut lines);
        // What the compiler noted at a line of its own belongs to some of those that have too few.
        for ((space, op), count) in elsewhere {
            let short = |kind: &Kind| (kind.1, kind.2) == (space, op);
            let room: f64 = lines
                .iter()
                .filter(|(kind, _)| short(kind))
                .map(|(_, asked)| asked.room())
                .sum();
            let filled = if room > 0.0 {
                (count / room).min(1.0)
            } else {
                0.0
            };
            for (_, asked) in lines.iter_mut().filter(|(kind, _)| short(kind)) {
                asked.compiled += asked.room() * filled;
            }
        }
        let part = |access: usize| {
            let kind = accesses.get(access).and_then(kind);
            kind.and_then(|kind| lines.get(&kind))
                .map_or(1.0, |asked| asked.part())
        };
        thin(flow, &part);
        for access in accesses.iter_mut() {
            let asked = kind(access).and_then(|kind| lines.get(&kind));
            access.together = asked.map_or(1.0, |asked| asked.together());
            access.merged = asked.map_or(1.0, |asked| asked.merged());
        }
        let mut idle: Vec<(u32, f64)> = lines
            .iter()
            .map(|((line, ..), asked)| (*line, asked.compiled - asked.source))
            .filter(|(_, count)| *count > 0.0)
            .collect();
        idle.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        idle
    }

    /// How many round trips to memory a warp waits for. Loads that go together share theirs; of those whose predicate is
    /// false in all lanes nothing comes back, and the others bear it all.
    fn wait_for(&self, lines: &mut FxHashMap<Kind, Asked>) {
        let mut shared: FxHashMap<(Frequency, Space), (f64, f64)> = FxHashMap::default();
        for code in &self.compiled.code {
            let Some((space, op)) = accessed(code.class) else {
                continue;
            };
            if let Some(line) = lines.get(&(code.site.line, space, op)) {
                let (all, on) = shared.entry((code.frequency, space)).or_default();
                *all += f64::from(code.chain);
                *on += f64::from(code.chain) * line.on();
            }
        }
        for code in &self.compiled.code {
            let Some((space, op)) = accessed(code.class) else {
                continue;
            };
            if let Some(line) = lines.get_mut(&(code.site.line, space, op))
                && let Some((all, on)) = shared.get(&(code.frequency, space))
                && *on > 0.0
            {
                let chain = f64::from(code.chain) * line.on() * all / on;
                line.trips += chain * self.executions.of(code.frequency);
            }
        }
    }

    /// Adds what registers that found no room are written to memory and read again.
    fn spill(&self, flow: &mut Vec<Node>, accesses: &mut Vec<ExecutedAccess>, site: Site) {
        for (class, op) in [(Class::Stl, Op::Store), (Class::Ldl, Op::Load)] {
            let (mut count, mut trips) = (0.0, 0.0);
            for code in &self.compiled.code {
                if code.class == class && code.site == site {
                    let times = self.executions.of(code.frequency);
                    count += f64::from(code.count) * times;
                    trips += f64::from(code.chain) * times;
                }
            }
            if count <= 0.0 {
                continue;
            }
            let number = accesses.len();
            let mut body = vec![Node::Access {
                access: number,
                uses: Vec::new(),
            }];
            if op == Op::Load {
                // What was asked back is needed soon.
                body.push(Node::Compute {
                    mix: Mix::default(),
                    uses: vec![number],
                    chain: 0.0,
                    line: site.line,
                });
            }
            flow.push(Node::Loop {
                trips: count,
                known: true,
                count: TripCount::Number,
                body,
                line: site.line,
            });
            accesses.push(self.spilled(op, site, count, trips));
        }
    }

    /// Accesses to the memory of spilled registers, `count` by a warp.
    fn spilled(&self, op: Op, site: Site, count: f64, trips: f64) -> ExecutedAccess {
        ExecutedAccess {
            source: None,
            site,
            object: Object::SpilledRegisters,
            space: Space::Local,
            remote: false,
            op,
            bytes_per_lane: WORD,
            form: Form::Lanes,
            index: None,
            pattern: Pattern::Coalesced,
            stride: None,
            linear: None,
            linear_in_blocks: None,
            parts: None,
            field: None,
            array_bytes: None,
            alias: Alias::Own,
            transactions_per_request: None,
            ideal_transactions_per_request: None,
            transaction_bytes: SECTOR,
            bytes_moved_per_request: None,
            by_width: None,
            expected: None,
            passes_per_request: None,
            ideal_passes_per_request: None,
            requests: Some(count * self.warps),
            active_lanes_per_request: None,
            ahead: None,
            requests_per_sector: 1.0,
            together: if trips > 0.0 {
                (count / trips).max(1.0)
            } else {
                1.0
            },
            merged: 1.0,
        }
    }
}

/// Instructions of an empty kernel: the stack pointer is read, and the kernel ends.
const EMPTY: u32 = 2;

/// Bytes that a lane moves for a register, and of a sector.
const WORD: u32 = 4;
const SECTOR: u32 = 32;

/// Accesses of one kind on one line.
type Kind = (u32, Space, Op);

/// What some accesses are in the source and in the compiled kernel, by one warp.
#[derive(Debug, Default, Clone, Copy)]
struct Asked {
    source: f64,
    compiled: f64,
    /// Round trips to memory that a warp waits for one behind the other.
    trips: f64,
    instructions: f64,
}

impl Asked {
    /// How many of them an instruction does.
    fn merged(self) -> f64 {
        if self.instructions > 0.0 {
            (self.compiled / self.instructions).max(1.0)
        } else {
            1.0
        }
    }

    /// How many go together.
    fn together(self) -> f64 {
        if self.trips > 0.0 {
            (self.compiled / self.trips).max(1.0)
        } else {
            1.0
        }
    }

    /// The part of the compiled kernel's that any lane takes part in.
    fn on(self) -> f64 {
        if self.compiled > self.source && self.compiled > 0.0 {
            self.source / self.compiled
        } else {
            1.0
        }
    }

    /// The part of the source's that is executed.
    fn part(self) -> f64 {
        if self.source > 0.0 {
            (self.compiled / self.source).min(1.0)
        } else {
            1.0
        }
    }

    fn room(self) -> f64 {
        (self.source - self.compiled).max(0.0)
    }
}

fn kind(access: &ExecutedAccess) -> Option<Kind> {
    // A copy past the registers is one instruction, which is counted as its load.
    let copied = access.ahead.is_some() && access.op == Op::Store;
    // What one thread starts for many bytes, or matrix units read by themselves, is no load or store of the compiled kernel.
    let bulk = matches!(access.form, Form::Bulk(_) | Form::Described { .. });
    let followed = matches!(access.op, Op::Load | Op::Store)
        && access.space != Space::Texture
        && !copied
        && !bulk
        // A pointer into another block's memory is loaded from as any pointer is.
        && !access.remote;
    followed.then_some((access.site.line, access.space, access.op))
}

fn accessed(class: Class) -> Option<(Space, Op)> {
    Some(match class {
        Class::Ldg => (Space::Global, Op::Load),
        Class::Stg => (Space::Global, Op::Store),
        Class::Lds => (Space::Shared, Op::Load),
        Class::Sts => (Space::Shared, Op::Store),
        Class::Ldl => (Space::Local, Op::Load),
        Class::Stl => (Space::Local, Op::Store),
        Class::Ldc => (Space::Constant, Op::Load),
        _ => return None,
    })
}

fn each_access(nodes: &[Node], visits: f64, visit: &mut dyn FnMut(usize, f64)) {
    for node in nodes {
        match node {
            Node::Access { access, .. } => visit(*access, visits),
            Node::Loop { trips, body, .. } => each_access(body, visits * trips, visit),
            Node::Branch {
                taken,
                other,
                then,
                otherwise,
                ..
            } => {
                each_access(then, visits * taken, visit);
                each_access(otherwise, visits * other, visit);
            }
            Node::Compute { .. } | Node::Barrier { .. } => {}
        }
    }
}

/// Leaves of every access the part that is executed: a branch that this part of the warps takes.
fn thin(nodes: &mut Vec<Node>, part: &dyn Fn(usize) -> f64) {
    nodes.retain(|node| !matches!(node, Node::Access { access, .. } if part(*access) <= 0.0));
    for node in nodes {
        match node {
            Node::Access { access, .. } => {
                let taken = part(*access);
                if taken < 1.0 - 1e-9 {
                    *node = Node::Branch {
                        taken,
                        other: 1.0 - taken,
                        then: vec![node.clone()],
                        otherwise: Vec::new(),
                        line: 0,
                    };
                }
            }
            Node::Loop { body, .. } => thin(body, part),
            Node::Branch {
                then, otherwise, ..
            } => {
                thin(then, part);
                thin(otherwise, part);
            }
            Node::Compute { .. } | Node::Barrier { .. } => {}
        }
    }
}

/// What a line has and what it became, by one warp.
#[derive(Debug, Default)]
struct Line {
    operations: f64,
    /// How often a warp comes there.
    visits: f64,
    compiled: Mix,
    /// Of the compiled ones those that wait for one another.
    chain: f64,
}

impl Line {
    /// The part of what a warp issues that often which belongs to those that come there: the compiler has warps issue under a
    /// predicate what a branch of the source leads them past, and then it is none of the branch's.
    fn own(&self, times: f64) -> f64 {
        if times > self.visits {
            self.visits / times
        } else {
            1.0
        }
    }

    fn add(&mut self, code: &Code, times: f64, doubles: bool) {
        if let Some(pipe) = pipe(&mut self.compiled, code.class, doubles) {
            *pipe += f64::from(code.work) * times;
            self.chain += f64::from(code.chain) * times;
        }
    }
}

/// Where instructions of a class are counted; `None` for memory and barriers. Between formats of floating point a kernel
/// that computes in double precision converts to and from that, at its rate (CUDA C++ Best Practices Guide 13,
/// instruction throughput: 2 of both in a cycle from 7.5 on, but for the parts with fast double precision).
fn pipe(mix: &mut Mix, class: Class, doubles: bool) -> Option<&mut f64> {
    if class == Class::F2f && doubles {
        return Some(&mut mix[Pipe::Fp64]);
    }
    Some(&mut mix[class.pipe()?])
}
