//! Kernels written down as what warps execute, for tests of the models.
#![allow(dead_code)] // each test file uses its own part

use std::sync::Arc;

use warplens_facts::facts::{
    Alias, Assumption, Branch, Dependence, Form, IndexExpression, IndexSymbol, Launch, Node, Op,
    Operation, Pattern, Site, Source, SourceFacts, Space, TripCount,
};
use warplens_machine::{Mix, Occupancy, Pipe, Profile, Profiles, occupancy};
use warplens_models::{
    Estimate, ExecutedAccess, ExecutedFlow, Factor, ModelId, ModelInput, Object, Question,
    Resources,
};

/// What the warps of a launch execute, on no GPU yet.
#[derive(Debug, Clone)]
pub struct Code {
    pub launch: Launch,
    pub flow: Vec<Node>,
    pub accesses: Vec<ExecutedAccess>,
    pub branches: Vec<Branch>,
    pub operations: Vec<Operation>,
    pub dependence: Dependence,
    pub assumptions: Vec<Assumption>,
    pub resources: Resources,
}

/// A kernel under construction.
#[derive(Clone)]
pub struct Kernel {
    pub code: Code,
}

/// Integer work of `n` instructions in a chain as long.
pub fn int(n: f64, line: u32) -> Node {
    compute(Mix::from([(Pipe::Int, n)]), n, &[], line)
}

/// Single-precision work that needs the values of `uses`.
pub fn fp32(n: f64, uses: &[usize], line: u32) -> Node {
    compute(Mix::from([(Pipe::Fp32, n)]), n, uses, line)
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
        count: TripCount::Number,
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
            shared_source: Source::Argument,
        };
        Kernel {
            code: Code {
                launch,
                flow: Vec::new(),
                accesses: Vec::new(),
                branches: Vec::new(),
                operations: Vec::new(),
                dependence: Dependence::default(),
                assumptions: Vec::new(),
                resources: Resources {
                    registers_per_thread: 16,
                    ..Resources::default()
                },
            },
        }
    }

    pub fn flow(mut self, flow: Vec<Node>) -> Kernel {
        self.code.flow = flow;
        self
    }

    /// A 4-byte global access of `sectors` transactions where `ideal` is enough.
    pub fn global(&mut self, op: Op, sectors: f64, ideal: f64, unit: u32, line: u32) -> usize {
        let pattern = if sectors > ideal {
            Pattern::Scattered
        } else {
            Pattern::Coalesced
        };
        self.code.accesses.push(ExecutedAccess {
            space: Space::Global,
            op,
            pattern,
            transactions_per_request: Some(sectors),
            ideal_transactions_per_request: Some(ideal),
            transaction_bytes: unit,
            bytes_moved_per_request: Some(sectors * f64::from(unit)),
            by_width: None,
            expected: None,
            ..access(line)
        });
        self.code.accesses.len() - 1
    }

    /// A 4-byte access to shared memory.
    pub fn shared(&mut self, op: Op, passes: f64, ideal: f64, line: u32) -> usize {
        self.code.accesses.push(ExecutedAccess {
            space: Space::Shared,
            op,
            passes_per_request: Some(passes),
            ideal_passes_per_request: Some(ideal),
            ..access(line)
        });
        self.code.accesses.len() - 1
    }
}

/// An access about which only the place is known.
pub fn access(line: u32) -> ExecutedAccess {
    ExecutedAccess {
        source: None,
        site: Site {
            line,
            ..Site::default()
        },
        object: Object::Array(format!("a{line}").into()),
        space: Space::Global,
        remote: false,
        op: Op::Load,
        bytes_per_lane: 4,
        form: Form::Lanes,
        // Not readable as an index: no reuse is assumed.
        index: None,
        pattern: Pattern::Coalesced,
        linear: None,
        linear_in_blocks: None,
        parts: None,
        stride: None,
        field: None,
        alias: Alias::Unknown,
        array_bytes: None,
        transactions_per_request: None,
        ideal_transactions_per_request: None,
        transaction_bytes: 0,
        bytes_moved_per_request: None,
        by_width: None,
        expected: None,
        passes_per_request: None,
        ideal_passes_per_request: None,
        requests: None,
        active_lanes_per_request: Some(32.0),
        ahead: None,
        requests_per_sector: 1.0,
        together: 1.0,
        merged: 1.0,
    }
}

/// A coordinate of the block.
pub fn block(axis: usize) -> IndexExpression {
    IndexExpression::Symbol(IndexSymbol::Block(axis))
}

/// A coordinate of the thread.
pub fn thread(axis: usize) -> IndexExpression {
    IndexExpression::Symbol(IndexSymbol::Thread(axis))
}

/// A loop counter or a parameter.
pub fn named(name: &str) -> IndexExpression {
    IndexExpression::Symbol(IndexSymbol::Named(name.into()))
}

pub fn product(factors: &[&IndexExpression]) -> IndexExpression {
    IndexExpression::Product(factors.iter().map(|&factor| factor.clone()).collect())
}

/// A constant, and terms with their factors.
pub fn sum(constant: i64, terms: &[(&IndexExpression, i64)]) -> IndexExpression {
    let terms = terms.iter().map(|&(term, factor)| (term.clone(), factor));
    IndexExpression::Sum(constant, terms.collect())
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

    pub fn occupancy(&self, code: &Code) -> Occupancy {
        occupancy(
            &self.profile,
            code.launch.threads_per_block(),
            code.resources.registers_per_thread,
            code.resources.static_shared_bytes + code.launch.dynamic_shared_bytes,
            code.launch.blocks(),
        )
    }

    pub fn estimate(&self, model: ModelId, code: &Code) -> Estimate {
        self.estimate_without(model, code, &[])
    }

    pub fn estimate_without(&self, model: ModelId, code: &Code, without: &[Factor]) -> Estimate {
        let input = input(code, &self.profile, &self.occupancy(code));
        warplens_models::estimate(model, &question(&input, without))
    }

    /// Asks something else of a kernel on this GPU.
    pub fn with_input<T>(&self, code: &Code, ask: impl Fn(&Question) -> T) -> T {
        let input = input(code, &self.profile, &self.occupancy(code));
        ask(&question(&input, &[]))
    }

    pub fn cycles(&self, model: ModelId, code: &Code) -> f64 {
        self.estimate(model, code)
            .cycles
            .expect("the model answers")
    }
}

/// The code on a GPU.
pub fn input(code: &Code, profile: &Profile, occupancy: &Occupancy) -> ModelInput {
    let facts = SourceFacts {
        copied_lines: Arc::default(),
        name: "kernel".to_owned(),
        name_site: Site::default(),
        launch: code.launch,
        warp_size: 32,
        accesses: Vec::new(),
        branches: code.branches.clone(),
        counts: Vec::new(),
        operations: code.operations.clone(),
        flow: Vec::new(),
        ways: Vec::new(),
        dependence: code.dependence.clone(),
        shared_arrays: Vec::new(),
        static_shared_bytes: 0,
        max_threads_per_block: None,
        assumptions: code.assumptions.clone(),
        constraints: Vec::new(),
        not_understood: Vec::new(),
    };
    ModelInput {
        facts: Arc::new(facts),
        compiled: Arc::default(),
        profile: Arc::new(profile.clone()),
        launch: code.launch,
        resources: code.resources,
        occupancy: occupancy.clone(),
        flow: ExecutedFlow {
            nodes: code.flow.clone(),
            serial: Vec::new(),
        },
        accesses: code.accesses.clone(),
        calls: Vec::new(),
        instructions: None,
    }
}

/// A question about it, some factors imagined away.
pub fn question<'a>(input: &'a ModelInput, without: &'a [Factor]) -> Question<'a> {
    Question {
        without,
        ..Question::of(input)
    }
}
