//! Kernels written down as facts, for tests of the models.
#![allow(dead_code)] // each test file uses its own part

use std::sync::Arc;

use warplens_facts::facts::{
    Access, Alias, Certainty, Dependence, KernelFacts, Launch, Mix, Node, Op, Pattern, Site,
    Source, Space,
};
use warplens_machine::{Occupancy, Profile, Profiles, occupancy};
use warplens_models::{Estimate, Factor, Input, ModelId};

/// A kernel under construction.
#[derive(Clone)]
pub struct Kernel {
    pub facts: KernelFacts,
}

/// Integer work of `n` instructions in a chain as long.
pub fn int(n: f64, line: u32) -> Node {
    compute(
        Mix {
            int: n,
            ..Mix::default()
        },
        n,
        &[],
        line,
    )
}

/// Single-precision work that needs the values of `uses`.
pub fn fp32(n: f64, uses: &[usize], line: u32) -> Node {
    compute(
        Mix {
            fp32: n,
            ..Mix::default()
        },
        n,
        uses,
        line,
    )
}

pub fn compute(mix: Mix, chain: f64, uses: &[usize], line: u32) -> Node {
    Node::Compute {
        mix,
        uses: uses.to_vec(),
        chain,
        line,
    }
}

pub fn touch(access: usize, uses: &[usize]) -> Node {
    Node::Access {
        access,
        uses: uses.to_vec(),
    }
}

pub fn repeat(trips: f64, body: Vec<Node>, line: u32) -> Node {
    Node::Loop {
        trips,
        known: true,
        text: trips.to_string(),
        body,
        line,
    }
}

pub fn branch(taken: f64, other: f64, then: Vec<Node>, otherwise: Vec<Node>, line: u32) -> Node {
    Node::Branch {
        taken,
        other,
        then,
        otherwise,
        line,
    }
}

impl Kernel {
    pub fn new(grid: [u64; 3], block: [u64; 3]) -> Kernel {
        let launch = Launch {
            grid,
            block,
            dynamic_shared_bytes: 0,
            block_source: Source::Argument,
            grid_source: Source::Argument,
        };
        Kernel {
            facts: KernelFacts {
                copied_lines: std::sync::Arc::default(),
                name: "kernel".to_owned(),
                name_site: Site::default(),
                launch,
                warp_size: 32,
                accesses: Vec::new(),
                branches: Vec::new(),
                counts: Vec::new(),
                operations: Vec::new(),
                flow: Vec::new(),
                ways: Vec::new(),
                dependence: Dependence::default(),
                serial: Vec::new(),
                shared_arrays: Vec::new(),
                static_shared_bytes: 0,
                local_bytes_per_thread: 0,
                spill_bytes_per_thread: 0,
                registers_per_thread: 16,
                max_threads_per_block: None,
                assumptions: Vec::new(),
                constraints: Vec::new(),
                not_understood: Vec::new(),
            },
        }
    }

    pub fn flow(mut self, flow: Vec<Node>) -> Kernel {
        self.facts.flow = flow;
        self
    }

    /// A 4-byte global access of `sectors` transactions where `ideal` would do.
    pub fn global(&mut self, op: Op, sectors: f64, ideal: f64, unit: u32, line: u32) -> usize {
        let pattern = if sectors > ideal {
            Pattern::Scattered
        } else {
            Pattern::Coalesced
        };
        self.facts.accesses.push(Access {
            space: Space::Global,
            op,
            pattern,
            transactions_per_request: Some(sectors),
            ideal_transactions_per_request: Some(ideal),
            transaction_bytes: unit,
            bytes_moved_per_request: Some(sectors * f64::from(unit)),
            lines_per_request: None,
            expected: None,
            ..access(line)
        });
        self.facts.accesses.len() - 1
    }

    /// A 4-byte access to shared memory.
    pub fn shared(&mut self, op: Op, passes: f64, ideal: f64, line: u32) -> usize {
        self.facts.accesses.push(Access {
            space: Space::Shared,
            op,
            passes_per_request: Some(passes),
            ideal_passes_per_request: Some(ideal),
            bank_conflict_degree: Some(passes / ideal),
            ..access(line)
        });
        self.facts.accesses.len() - 1
    }
}

/// An access about which only the place is known.
pub fn access(line: u32) -> Access {
    Access {
        site: Site {
            line,
            ..Site::default()
        },
        text: "a[i]".to_owned(),
        array: format!("a{line}"),
        space: Space::Global,
        op: Op::Load,
        bytes_per_lane: 4,
        // Not readable as an index: no reuse is assumed.
        index: "?".to_owned(),
        pattern: Pattern::Coalesced,
        linear: None,
        linear_in_blocks: None,
        stride: None,
        field: None,
        transactions_per_request: None,
        ideal_transactions_per_request: None,
        transaction_bytes: 0,
        bytes_moved_per_request: None,
        lines_per_request: None,
        expected: None,
        passes_per_request: None,
        ideal_passes_per_request: None,
        bank_conflict_degree: None,
        requests: None,
        active_lanes_per_request: Some(32.0),
        certainty: Certainty::Exact,
        why: None,
        constraints: Vec::new(),
        other_case: None,
        loop_depth: 0,
        shared_array: None,
        alias: Alias::Unknown,
        first_use: None,
        together: 1.0,
        merged: 1.0,
    }
}

/// A GPU with the occupancy of a kernel on it.
pub struct Target {
    pub profile: Arc<Profile>,
}

impl Target {
    pub fn new(gpu: &str) -> Target {
        Target {
            profile: Profiles::builtin().get(gpu).expect("a built-in profile"),
        }
    }

    pub fn occupancy(&self, facts: &KernelFacts) -> Occupancy {
        occupancy(
            &self.profile,
            facts.launch.threads_per_block(),
            facts.registers_per_thread,
            facts.static_shared_bytes + facts.launch.dynamic_shared_bytes,
            facts.launch.blocks(),
        )
    }

    pub fn estimate(&self, model: ModelId, facts: &KernelFacts) -> Estimate {
        self.estimate_without(model, facts, &[])
    }

    pub fn estimate_without(
        &self,
        model: ModelId,
        facts: &KernelFacts,
        without: &[Factor],
    ) -> Estimate {
        let occupancy = self.occupancy(facts);
        warplens_models::estimate(model, &input(facts, &self.profile, &occupancy, without))
    }

    /// Asks something else of a kernel on this GPU.
    pub fn with_input<T>(&self, facts: &KernelFacts, ask: impl Fn(&Input) -> T) -> T {
        ask(&input(facts, &self.profile, &self.occupancy(facts), &[]))
    }

    pub fn cycles(&self, model: ModelId, facts: &KernelFacts) -> f64 {
        self.estimate(model, facts)
            .cycles
            .expect("the model answers")
    }
}

pub fn input<'a>(
    facts: &'a KernelFacts,
    profile: &'a Profile,
    occupancy: &'a Occupancy,
    without: &'a [Factor],
) -> Input<'a> {
    Input {
        facts,
        profile,
        occupancy,
        without,
        warps_per_sm: None,
        ideal_access: None,
        cancel: None,
    }
}
