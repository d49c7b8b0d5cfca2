//! Synthetic facts for the rules' tests: a clean kernel, and one case of each defect.

use std::cell::Cell;
use std::sync::Arc;

use warplens_codegen::CompiledKernel;
use warplens_facts::facts::{
    Access, Alias, Assumed, Assumption, Branch, BranchKind, Certainty, Dependence, Launch, Node,
    Op, Operation, Operator, Pattern, SharedArray, Site, Source, SourceFacts, Space, Span, Stride,
    StructField, Uniformity,
};
use warplens_machine::{Profile, Profiles};
use warplens_models::{ModelInput, Resources};

use crate::{Context, Finding, Removal, run};

/// A kernel with a launch that the user gave, on an A100.
pub(crate) struct Kernel {
    pub facts: SourceFacts,
    /// What a warp executes.
    pub flow: Vec<Node>,
    /// Of a thread.
    pub registers: u32,
    pub registers_known: bool,
    pub compiled: CompiledKernel,
    /// One statement launches it with several blocks.
    pub block_varies: bool,
    pub grid_by_text: bool,
    pub asks_for_shared: Option<bool>,
    pub cluster: Option<[u64; 3]>,
    pub allows_large_clusters: Option<bool>,
    /// Parameters that the launch rounds up to whole blocks.
    pub rounded_up: Vec<String>,
    /// Predicted cycles.
    pub cycles: Option<f64>,
    /// What any change of the facts gains.
    pub trial: f64,
    pub profile: Arc<Profile>,
}

/// The profile of that id.
pub(crate) fn profile(id: &str) -> Arc<Profile> {
    let found = Profiles::builtin().get(id);
    found.unwrap_or_else(|| panic!("{id} has a profile"))
}

impl Kernel {
    pub(crate) fn new() -> Self {
        let facts = SourceFacts {
            name: "kernel".to_owned(),
            name_site: site(0),
            copied_lines: std::sync::Arc::default(),
            launch: Launch {
                grid: [4096, 1, 1],
                block: [256, 1, 1],
                dynamic_shared_bytes: 0,
                block_source: Source::Directive,
                grid_source: Source::Directive,
                shared_source: Source::Directive,
            },
            warp_size: 32,
            accesses: Vec::new(),
            branches: Vec::new(),
            counts: Vec::new(),
            operations: Vec::new(),
            flow: Vec::new(),
            ways: Vec::new(),
            dependence: Dependence::default(),
            shared_arrays: Vec::new(),
            static_shared_bytes: 0,
            max_threads_per_block: None,
            assumptions: Vec::new(),
            constraints: Vec::new(),
            not_understood: Vec::new(),
        };
        Self {
            facts,
            flow: Vec::new(),
            registers: 16,
            registers_known: false,
            compiled: CompiledKernel::default(),
            block_varies: false,
            grid_by_text: false,
            asks_for_shared: None,
            cluster: None,
            allows_large_clusters: None,
            rounded_up: Vec::new(),
            cycles: Some(1e6),
            trial: 1.0,
            profile: profile("a100-sxm4-40gb"),
        }
    }

    pub(crate) fn block(mut self, block: [u64; 3]) -> Self {
        self.facts.launch.block = block;
        self
    }

    pub(crate) fn access(mut self, access: Access) -> Self {
        self.facts.accesses.push(access);
        self
    }

    pub(crate) fn branch(mut self, branch: Branch) -> Self {
        self.facts.branches.push(branch);
        self
    }

    pub(crate) fn operation(mut self, operation: Operation) -> Self {
        self.facts.operations.push(operation);
        self
    }

    pub(crate) fn registers(mut self, registers: u32) -> Self {
        self.registers = registers;
        self
    }

    /// A static shared array of floats.
    pub(crate) fn shared(mut self, bytes: u64) -> Self {
        self.facts.shared_arrays.push(SharedArray {
            name: "tile".to_owned(),
            site: site(2),
            extents: vec![(bytes / 4, site(2))],
            element_bytes: 4,
            bytes,
            dynamic: false,
        });
        self.facts.static_shared_bytes += bytes;
        self
    }

    pub(crate) fn assume(mut self, symbol: &str, value: &str) -> Self {
        self.facts.assumptions.push(Assumption {
            symbol: match symbol {
                "block" => Assumed::Block,
                "grid" => Assumed::Grid,
                "alignment" => Assumed::Alignment,
                name => Assumed::Named(name.to_owned()),
            },
            value: value.to_owned(),
            source: "default".to_owned(),
        });
        self
    }

    pub(crate) fn findings(&self, gain: impl Fn(Removal) -> f64) -> Vec<Finding> {
        self.findings_of(&|_| true, gain)
    }

    /// What is found where these rules are enabled.
    pub(crate) fn findings_of(
        &self,
        enabled: &dyn Fn(&str) -> bool,
        gain: impl Fn(Removal) -> f64,
    ) -> Vec<Finding> {
        let resources = Resources {
            registers_per_thread: self.registers,
            static_shared_bytes: self.facts.static_shared_bytes,
            ..Resources::default()
        };
        let facts = SourceFacts {
            flow: self.flow.clone(),
            ..self.facts.clone()
        };
        let compiled = Arc::new(self.compiled.clone());
        let input = ModelInput::new(
            Arc::new(facts),
            compiled,
            Arc::clone(&self.profile),
            resources,
        );
        run(&Context {
            input: &input,
            facts: &input.facts,
            kernel: &nothing(),
            compiled: &input.compiled,
            profile: &input.profile,
            occupancy: &input.occupancy,
            registers_known: self.registers_known,
            enabled,
            block_varies: self.block_varies,
            grid_by_text: self.grid_by_text,
            asks_for_shared: self.asks_for_shared,
            cluster: self.cluster,
            allows_large_clusters: self.allows_large_clusters,
            rounded_up: &self.rounded_up,
            memory: &[],
            around: None,
            gain: &gain,
            cycles: &|| self.cycles,
            trial: &|_| self.trial,
            trials: &Cell::new(0),
            recompiled: &|_| None,
        })
    }
}

/// A kernel that does nothing: what rules read of the source has tests on sources.
fn nothing() -> warplens_ir::Kernel {
    warplens_ir::Kernel {
        name: "kernel".to_owned(),
        name_site: site(0),
        language: warplens_syntax::Language::Cuda,
        vars: Vec::new(),
        params: 0,
        body: Vec::new(),
        max_threads: None,
        min_blocks: None,
        max_registers: None,
        required_block: None,
        cluster: None,
        template_args: Vec::new(),
        routines: Vec::new(),
        axes: [true, false, false],
        not_understood: Vec::new(),
        places: Arc::default(),
        assumed: Vec::new(),
        undefined: Vec::new(),
        calls: Vec::new(),
    }
}

/// Ten bytes on the given line.
fn site(line: u32) -> Site {
    Site {
        span: Span {
            start: line * 100,
            end: line * 100 + 10,
        },
        line,
        callee: 0,
    }
}

/// `in[i]`: four sectors of four.
pub(crate) fn access(line: u32) -> Access {
    Access {
        site: site(line),
        text: "in[i]".to_owned(),
        array: "in".to_owned(),
        space: Space::Global,
        remote: false,
        op: Op::Load,
        bytes_per_lane: 4,
        form: warplens_facts::facts::Form::Lanes,
        instruction: None,
        ahead: None,
        combines: false,
        index: "blockIdx.x * 256 + threadIdx.x".to_owned(),
        index_expression: None,
        in_array: None,
        pattern: Pattern::Coalesced,
        linear: None,
        linear_in_blocks: None,
        parts: None,
        stride: Some(Stride {
            bytes: 4,
            text: "1".to_owned(),
            symbolic: false,
            in_bytes: false,
            unit_elsewhere: false,
        }),
        field: None,
        transactions_per_request: Some(4.0),
        ideal_transactions_per_request: Some(4.0),
        transaction_bytes: 32,
        bytes_moved_per_request: Some(128.0),
        by_width: None,
        by_alignment: Vec::new(),
        passes_per_request: None,
        ideal_passes_per_request: None,
        bank_conflict_degree: None,
        requests: Some(32_768.0),
        active_lanes_per_request: Some(32.0),
        certainty: Certainty::Exact,
        why: None,
        constraints: Vec::new(),
        other_case: None,
        loop_depth: 0,
        shared_array: None,
        array_bytes: None,
        alias: Alias::Unknown,
        first_use: None,
    }
}

/// `in[k * i]`, k a literal.
pub(crate) fn strided(line: u32, elements: i64) -> Access {
    let sectors = (4.0 * elements as f64).min(32.0);
    Access {
        text: format!("in[{elements} * i]"),
        index: format!("{elements} * (blockIdx.x * 256 + threadIdx.x)"),
        pattern: if elements == 1 {
            Pattern::Coalesced
        } else {
            Pattern::Strided
        },
        stride: Some(Stride {
            bytes: 4 * elements,
            text: elements.to_string(),
            symbolic: false,
            in_bytes: false,
            unit_elsewhere: false,
        }),
        transactions_per_request: Some(sectors),
        bytes_moved_per_request: Some(32.0 * sectors),
        by_width: None,
        by_alignment: Vec::new(),
        ..access(line)
    }
}

/// `in[x * n + y]` with n = 1024.
pub(crate) fn column_walk(line: u32) -> Access {
    Access {
        text: "in[x * n + y]".to_owned(),
        index: "threadIdx.x * n + threadIdx.y".to_owned(),
        stride: Some(Stride {
            bytes: 4096,
            text: "n".to_owned(),
            symbolic: true,
            in_bytes: false,
            unit_elsewhere: true,
        }),
        ..strided(line, 1024)
    }
}

/// `p[i].x` of a structure of `size` bytes.
pub(crate) fn field(line: u32, size: u32, touched: u32) -> Access {
    Access {
        text: "p[i].x".to_owned(),
        array: "p".to_owned(),
        field: Some(StructField {
            structure: "Particle".to_owned(),
            field: "x".to_owned(),
            size,
            touched,
        }),
        ..strided(line, i64::from(size / 4))
    }
}

/// `tile[threadIdx.x][threadIdx.y]` on `[32][32]` floats, block 32x8.
pub(crate) fn bank_conflict(line: u32) -> Access {
    Access {
        text: "tile[threadIdx.x][threadIdx.y]".to_owned(),
        array: "tile".to_owned(),
        space: Space::Shared,
        index: "threadIdx.x * 32 + threadIdx.y".to_owned(),
        transactions_per_request: None,
        ideal_transactions_per_request: None,
        transaction_bytes: 0,
        bytes_moved_per_request: None,
        by_width: None,
        by_alignment: Vec::new(),
        passes_per_request: Some(32.0),
        ideal_passes_per_request: Some(1.0),
        bank_conflict_degree: Some(32.0),
        shared_array: Some(0),
        array_bytes: None,
        alias: Alias::Unknown,
        first_use: None,
        ..strided(line, 32)
    }
}

/// `__syncthreads()`.
pub(crate) fn barrier(line: u32) -> Operation {
    Operation {
        operator: Operator::Barrier,
        line,
        threads: 1_048_576.0,
        warps: 32_768.0,
    }
}

/// `if (threadIdx.x % 2)` with work on both sides.
pub(crate) fn branch(line: u32) -> Branch {
    Branch {
        site: site(line),
        text: "threadIdx.x % 2".to_owned(),
        kind: BranchKind::If,
        uniformity: Uniformity::Divergent,
        divergent_warp_fraction: Some(1.0),
        taken_warp_fraction: Some(1.0),
        taken_threads: Some(16.0 * 32_768.0),
        evaluations: Some(32_768.0),
        trips: None,
        turns: Vec::new(),
        certainty: Certainty::Exact,
        why: None,
        constraints: Vec::new(),
        taken_operations: 20,
        other_operations: 14,
        guard: false,
        barrier_hazard: None,
    }
}
