//! How many of the bytes that warps move come from L1, from L2 and from DRAM.
//!
//! An access's address, where it is a sum of products of thread and block coordinates, loop counters and
//! parameters, says which bytes a block, the blocks that run together, a row of blocks and the whole launch touch
//! ([`footprint`]). The distinct bytes of a block are what L2 must deliver to its SM, as far as L1 holds what its
//! resident warps have live. DRAM must deliver the distinct bytes of the blocks that run together, as far as L2
//! holds what all of them have live; and blocks are begun along x, then y, then z, so that what a row of blocks shares
//! with the row before is still there where L2 holds what was touched in between. What is small enough for L1 is
//! fetched once by each SM. No array has more distinct bytes than it is long, where its length is known: an index that
//! cannot be read so touches those of its array at any place, or has no reuse where the length is not known, an upper
//! bound. A thread's own memory is what all resident threads have of it.

mod extents;
mod footprint;
mod index;
mod shared;
mod values;

use std::collections::BTreeMap;

use warplens_facts::facts::{Launch, Node, Op, Pattern, SourceFacts, Space};

use crate::work::{Request, Residency};
use crate::{ExecutedAccess, ModelInput, Object};
use extents::Extents;
use footprint::Footprint;
use index::{Monomial, Polynomial, Symbol, distance, index_of, movement};

/// Bytes of one request at each level of the memory system.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Traffic {
    /// Between L2 and the SM.
    pub l2: f64,
    /// Between DRAM and L2.
    pub dram: f64,
}

impl Traffic {
    /// Where nothing is cached.
    pub fn uncached(request: &Request) -> Traffic {
        Traffic {
            l2: request.moved_bytes,
            dram: request.moved_bytes,
        }
    }
}

/// Who runs where, and with which caches.
struct Setting<'a> {
    launch: &'a Launch,
    residency: &'a Residency,
    /// L1 that shared memory leaves, and L2, in bytes.
    l1: f64,
    l2: f64,
    /// How much of what resident warps have live each of them holds.
    held_l1: f64,
    held_l2: f64,
    /// Bytes that the resident blocks of an SM have live.
    live: f64,
}

/// The traffic of each access; `executions` are the requests of each over the launch.
pub(crate) fn traffic(
    input: &ModelInput,
    requests: &[Request],
    executions: &[f64],
    residency: &Residency,
) -> Vec<Traffic> {
    let ModelInput {
        launch,
        accesses,
        profile,
        ..
    } = input;
    let mut all: Vec<Traffic> = requests.iter().map(Traffic::uncached).collect();
    let Some(l2) = profile.l2_bytes else {
        return all;
    };
    let mut setting = Setting {
        launch,
        residency,
        l1: first_level(input, residency),
        l2: l2 as f64,
        held_l1: 1.0,
        held_l2: 1.0,
        live: 0.0,
    };
    own(&mut all, input, &setting);

    let mut groups = groups(input, executions, &setting);
    groups.extend(scattered(input, requests, executions, &setting));
    let groups = groups;
    let together = Windows::new(&setting);
    // What is live: what one iteration of the loops touches, and of what cannot be read a request of each warp.
    let mut grouped = vec![false; accesses.len()];
    for &member in groups.iter().flat_map(|group| &group.members) {
        grouped[member] = true;
    }
    let unread: f64 = accesses
        .iter()
        .enumerate()
        .filter(|(_, access)| by_place(access) && access.op == Op::Load)
        .filter(|(number, _)| !grouped[*number])
        .map(|(number, _)| requests[number].moved_bytes)
        .sum();
    let unread = unread * residency.caching_blocks * residency.warps_per_block;
    let live = |blocks: [f64; 3]| -> f64 {
        let loads = groups.iter().filter(|group| group.load);
        loads.map(|group| group.live.bytes(blocks)).sum()
    };
    setting.live = live([1.0; 3]) * residency.caching_blocks + unread;
    setting.held_l1 = held(setting.live, setting.l1);
    setting.held_l2 = held(
        live(together.wave) + unread * residency.active_sms,
        setting.l2,
    );
    let setting = setting;
    let touched = |extent: [f64; 3]| -> f64 {
        let each = groups.iter().map(|group| group.touched.bytes(extent));
        each.sum()
    };
    let kept = Kept {
        whole: touched(together.grid) <= setting.l2,
        row: touched(together.row) <= setting.l2,
        wave: touched(together.wave) <= setting.l2,
    };
    for group in &groups {
        group.fill(&mut all, requests, executions, &setting, &together, &kept);
    }
    if kept.wave {
        shared::find_in_l2(&mut all, &groups, accesses, executions);
    }
    for (traffic, access) in all.iter_mut().zip(accesses) {
        traffic.l2 *= access.requests_per_sector;
    }
    all
}

/// The part of what is live that a cache holds.
fn held(live: f64, cache: f64) -> f64 {
    if live <= cache { 1.0 } else { cache / live }
}

/// Bytes of L1 for global memory: where it shares its memory with shared memory, what the resident blocks leave.
fn first_level(input: &ModelInput, residency: &Residency) -> f64 {
    let profile = &input.profile;
    let Some(l1) = profile.l1_bytes.filter(|_| profile.l1_latency.is_some()) else {
        return 0.0;
    };
    let l1 = l1 as f64;
    let most = f64::from(profile.shared_per_sm);
    if l1 <= most {
        return l1;
    }
    let block = (input.resources.static_shared_bytes + input.launch.dynamic_shared_bytes) as f64;
    let taken = block + f64::from(profile.shared_reserved_per_block);
    l1 - (taken * residency.caching_blocks).min(most)
}

/// Threads' own memory: each resident thread's, side by side.
fn own(all: &mut [Traffic], input: &ModelInput, setting: &Setting) {
    let threads = setting.residency.caching_blocks * input.launch.threads_per_block() as f64;
    let resources = &input.resources;
    let bytes =
        (resources.local_bytes_per_thread + resources.spill_bytes_per_thread) as f64 * threads;
    let l1 = held(bytes, setting.l1);
    // Fermi's and Kepler's L1 keeps what threads write of their own; later ones hand every store on to L2.
    let capability = input.profile.compute_capability;
    let writes_back = capability.is_some_and(|(major, _)| (2..5).contains(&major));
    let l2 = held(bytes * setting.residency.active_sms, setting.l2);
    for (traffic, access) in all.iter_mut().zip(&input.accesses) {
        if access.space == Space::Local {
            if access.op == Op::Load || writes_back {
                traffic.l2 *= 1.0 - l1;
            }
            traffic.dram = traffic.l2 * (1.0 - l2);
        }
    }
}

/// Names that no loop moves: those that the user was asked for, and those that multiply a coordinate.
fn parameters(facts: &SourceFacts, indices: &[Option<(Polynomial, f64)>]) -> Vec<String> {
    let mut names: Vec<String> = facts
        .assumptions
        .iter()
        .map(|assumption| assumption.symbol.to_string())
        .collect();
    let terms = indices
        .iter()
        .flatten()
        .flat_map(|(index, _)| index.terms());
    for (monomial, _) in terms {
        if monomial
            .iter()
            .all(|(symbol, _)| matches!(symbol, Symbol::Named(_)))
        {
            continue;
        }
        for (symbol, _) in monomial {
            if let Symbol::Named(name) = symbol
                && !names.contains(name)
            {
                names.push(name.clone());
            }
        }
    }
    names
}

/// Iterations of the loops around each access, outermost first.
fn turns(flow: &[Node], around: &mut Vec<f64>, found: &mut [Vec<f64>]) {
    for node in flow {
        match node {
            Node::Access { access, .. } => {
                if let Some(found) = found.get_mut(*access) {
                    found.clone_from(around);
                }
            }
            Node::Loop { trips, body, .. } => {
                around.push(trips.max(1.0));
                turns(body, around, found);
                around.pop();
            }
            Node::Branch {
                then, otherwise, ..
            } => {
                turns(then, around, found);
                turns(otherwise, around, found);
            }
            Node::Compute { .. } | Node::Barrier { .. } => {}
        }
    }
}

fn off_chip(access: &ExecutedAccess) -> bool {
    matches!(access.space, Space::Global | Space::Texture)
}

/// Where it goes follows from coordinates, counters and parameters, or from data in the order that these give.
fn by_place(access: &ExecutedAccess) -> bool {
    let known = !matches!(access.pattern, Pattern::DataDependent | Pattern::Unknown);
    off_chip(access) && (known || access.linear.is_some() || access.parts.is_some())
}

/// Accesses of one kind may touch the same bytes and share their fate in the caches.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Kind<'a> {
    object: &'a Object,
    space: Space,
    linear: bool,
    load: bool,
    structure_bytes: Option<u32>,
}

impl Kind<'_> {
    fn of(access: &ExecutedAccess) -> Kind<'_> {
        Kind {
            object: &access.object,
            space: access.space,
            linear: access.linear.is_some(),
            load: access.op == Op::Load,
            structure_bytes: access.field.as_ref().map(|field| field.size),
        }
    }
}

/// Accesses of one array that share their fate in the caches: their indices differ by constants, or go anywhere.
struct Group {
    members: Vec<usize>,
    load: bool,
    /// Blocks of which some warp executes one of them.
    blocks: f64,
    touched: Touched,
    /// The same of one iteration of the loops around it.
    live: Touched,
}

/// The distinct bytes that blocks touch: of an array whose length is known, at most that.
struct Touched {
    places: Places,
    most: f64,
}

enum Places {
    Along(Footprint),
    /// Any: the bytes that are moved for a block.
    Any(f64),
}

impl Touched {
    fn new(places: Places, access: &ExecutedAccess) -> Touched {
        let most = access
            .array_bytes
            .map_or(f64::INFINITY, |bytes| bytes as f64);
        Touched { places, most }
    }

    /// With this many blocks along each dimension.
    fn bytes(&self, blocks: [f64; 3]) -> f64 {
        let bytes = match &self.places {
            Places::Along(footprint) => footprint.bytes(blocks),
            Places::Any(each) => each * blocks.iter().product::<f64>(),
        };
        bytes.min(self.most)
    }

    /// The part of an array that a cache of that size holds, of one that is read at any place; of others nothing is there by chance.
    fn held_by_chance(&self, cache: f64) -> f64 {
        let anywhere = match &self.places {
            Places::Along(footprint) => footprint.is_drawn(),
            Places::Any(_) => true,
        };
        if anywhere && self.most > 0.0 {
            (cache / self.most).min(1.0)
        } else {
            0.0
        }
    }

    /// In the sectors that hold them.
    fn sectors(&self, blocks: [f64; 3]) -> f64 {
        match &self.places {
            Places::Along(footprint) => footprint.sectors(blocks),
            Places::Any(_) => self.bytes(blocks),
        }
    }
}

fn groups(input: &ModelInput, executions: &[f64], setting: &Setting) -> Vec<Group> {
    let accesses = &input.accesses;
    let indices: Vec<Option<(Polynomial, f64)>> = accesses
        .iter()
        .map(|access| {
            by_place(access)
                .then(|| index_of(access, setting.launch))
                .flatten()
        })
        .collect();
    let parameters = parameters(&input.facts, &indices);
    let mut loops = vec![Vec::new(); accesses.len()];
    turns(&input.flow.nodes, &mut Vec::new(), &mut loops);
    // Of those whose indices move alike, each is compared with the first alone.
    let mut by_movement: BTreeMap<(Kind<'_>, Vec<_>), Vec<usize>> = BTreeMap::new();
    for (number, index) in indices.iter().enumerate() {
        if let Some((index, _)) = index {
            let kind = Kind::of(&accesses[number]);
            by_movement
                .entry((kind, movement(index)))
                .or_default()
                .push(number);
        }
    }
    let mut done = vec![false; accesses.len()];
    let mut groups = Vec::new();
    for (first, index) in indices.iter().enumerate() {
        let Some((index, bytes)) = index.as_ref().filter(|_| !done[first]) else {
            continue;
        };
        let mut members = Vec::new();
        let mut shifts: Vec<(Monomial, i64)> = Vec::new();
        let alike = by_movement.get_mut(&(Kind::of(&accesses[first]), movement(index)));
        if let Some(alike) = alike {
            alike.retain(|&other| {
                let twin = indices[other].as_ref();
                let Some(shift) = twin.and_then(|(twin, _)| distance(twin, index)) else {
                    return true;
                };
                members.push(other);
                if other != first {
                    shifts.push(shift);
                }
                done[other] = true;
                false
            });
        }
        let access = &accesses[first];
        let unit = f64::from(access.transaction_bytes.max(1));
        let element = match &access.field {
            // A structure's fields share its sectors.
            Some(field) => {
                let touched = unit * members.len() as f64;
                f64::from(field.size).min(touched.max(f64::from(field.touched)))
            }
            None => f64::from(access.bytes_per_lane),
        };
        // Counters are told by their depth: a pipeline's first loads are in a short loop, the rest of them in a long one.
        let most = members.iter().map(|member| executions[*member]);
        let per_warp = most.fold(1.0, f64::max) / setting.residency.warps().max(1.0);
        let deepest = members.iter().map(|member| loops[*member].len()).max();
        let turns: Vec<f64> = (0..deepest.unwrap_or(0))
            .map(|depth| {
                let turns = members
                    .iter()
                    .filter_map(|member| loops[*member].get(depth));
                turns.copied().fold(1.0, f64::max)
            })
            .collect();
        let extents = Extents::new(
            setting.launch,
            index,
            &turns,
            &parameters,
            per_warp,
            access.array_bytes,
        );
        // Bytes are counted as they are, elements are as big as what is moved of each.
        let scale = if *bytes > 1.0 { element } else { 1.0 };
        let size = (scale, element);
        let along = |footprint| Touched::new(Places::Along(footprint), access);
        let warps = |member: &usize| executions[*member] / loops[*member].iter().product::<f64>();
        let warps = members.iter().map(warps).fold(1.0, f64::max);
        groups.push(Group {
            load: access.op == Op::Load,
            blocks: warps.min(setting.residency.blocks),
            touched: along(Footprint::new(index, &shifts, &extents, size, unit)),
            live: along(Footprint::new(index, &shifts, &extents.once(), size, unit)),
            members,
        });
    }
    groups
}

/// Accesses that go anywhere in an array whose length is known: the loads of an array, and the rest.
fn scattered(
    input: &ModelInput,
    requests: &[Request],
    executions: &[f64],
    setting: &Setting,
) -> Vec<Group> {
    let mut groups: Vec<(&ExecutedAccess, Vec<usize>)> = Vec::new();
    for (number, access) in input.accesses.iter().enumerate() {
        let unread = !by_place(access) || index_of(access, setting.launch).is_none();
        if !off_chip(access) || access.array_bytes.is_none() || !unread {
            continue;
        }
        let same = |(first, _): &&mut (&ExecutedAccess, Vec<usize>)| {
            first.object == access.object && (first.op == Op::Load) == (access.op == Op::Load)
        };
        match groups.iter_mut().find(same) {
            Some((_, members)) => members.push(number),
            None => groups.push((access, vec![number])),
        }
    }
    let groups = groups.into_iter().map(|(access, members)| {
        let moved = |times: &dyn Fn(usize) -> f64| -> f64 {
            let each = members.iter();
            each.map(|&member| requests[member].moved_bytes * times(member))
                .sum()
        };
        let blocks = setting.residency.blocks.max(1.0);
        let of_block = moved(&|member| executions[member] / blocks);
        let at_once = moved(&|_| setting.residency.warps_per_block);
        Group {
            load: access.op == Op::Load,
            blocks: setting.residency.blocks,
            touched: Touched::new(Places::Any(of_block), access),
            live: Touched::new(Places::Any(at_once.min(of_block)), access),
            members,
        }
    });
    groups.collect()
}

/// Blocks that are looked at together.
struct Windows {
    grid: [f64; 3],
    /// Those that run at the same time: x first, then y, then z.
    wave: [f64; 3],
    /// All along x.
    row: [f64; 3],
}

impl Windows {
    fn new(setting: &Setting) -> Windows {
        let grid = setting.launch.grid.map(|n| (n as f64).max(1.0));
        let wave = setting.residency.caching_blocks * setting.residency.active_sms.max(1.0);
        let x = grid[0].min(wave.max(1.0));
        let y = grid[1].min((wave / grid[0]).max(1.0));
        let z = grid[2].min((wave / (grid[0] * grid[1])).max(1.0));
        Windows {
            grid,
            wave: [x, y, z],
            row: [grid[0], y, z],
        }
    }
}

/// What L2 holds of: all that the launch touches, all that a row of blocks does, all that a wave does.
struct Kept {
    whole: bool,
    row: bool,
    wave: bool,
}

impl Group {
    fn fill(
        &self,
        all: &mut [Traffic],
        requests: &[Request],
        executions: &[f64],
        setting: &Setting,
        windows: &Windows,
        kept: &Kept,
    ) {
        let moved: f64 = self
            .members
            .iter()
            .map(|&member| requests[member].moved_bytes * executions[member])
            .sum();
        if moved <= 0.0 {
            return;
        }
        let whole = self.touched.bytes(windows.grid);
        // What leaves L2 for the SMs: each block's distinct bytes, where L1 keeps what is live.
        let l2 = if self.load {
            let each_block = self.touched.sectors([1.0; 3]) * self.blocks;
            let least = if whole + setting.live <= setting.l1 {
                each_block.min(whole * setting.residency.active_sms.max(1.0))
            } else {
                each_block
            };
            let missed = (moved - least).max(0.0) * (1.0 - setting.held_l1);
            (least + missed).min(moved)
        } else {
            moved
        };
        let least = if kept.whole {
            whole
        } else {
            let fetched = self.along_rows(windows, kept);
            let missed = 1.0 - self.touched.held_by_chance(setting.l2 * setting.held_l2);
            (fetched * missed).max(whole)
        };
        let dram = least + (l2 - least).max(0.0) * (1.0 - setting.held_l2);
        let dram = dram.min(moved);
        for &member in &self.members {
            let request = requests[member].moved_bytes;
            all[member] = Traffic {
                l2: request * (l2 / moved),
                dram: request * (dram / moved),
            };
        }
    }

    /// Bytes from DRAM where the launch touches more than L2 holds: neighbours that it still holds are not fetched anew.
    fn along_rows(&self, windows: &Windows, kept: &Kept) -> f64 {
        let Windows { grid, wave, row } = windows;
        let count = |of: &[f64; 3], by: &[f64; 3]| -> f64 {
            of.iter()
                .zip(by)
                .map(|(of, by)| (of / by).max(1.0))
                .product()
        };
        if kept.row {
            let planes = grid[2] / row[2].max(1.0);
            let plane = [grid[0], grid[1], row[2]];
            return self.touched.bytes(plane) * planes.max(1.0);
        }
        let along = if kept.wave {
            self.touched.bytes(*row)
        } else {
            self.touched.bytes(*wave) * count(row, wave)
        };
        along * count(grid, row)
    }
}
