//! Facts made by hand, for tests of how they look.

use warplens_facts::facts::{
    Access, Alias, Branch, BranchKind, Certainty, Op, Pattern, Site, Space, Uniformity,
};

/// An access that costs `figure` where `ideal` is enough.
pub fn access(space: Space, figure: f64, ideal: f64) -> Access {
    let shared = space == Space::Shared;
    Access {
        site: Site::default(),
        text: "a[i]".to_owned(),
        array: "a".to_owned(),
        space,
        remote: false,
        op: Op::Load,
        bytes_per_lane: 4,
        form: warplens_facts::facts::Form::Lanes,
        instruction: None,
        ahead: None,
        combines: false,
        index: "threadIdx.x".to_owned(),
        index_expression: None,
        in_array: None,
        pattern: Pattern::Strided,
        linear: None,
        linear_in_blocks: None,
        parts: None,
        stride: None,
        field: None,
        transactions_per_request: (!shared).then_some(figure),
        ideal_transactions_per_request: (!shared).then_some(ideal),
        transaction_bytes: if shared { 0 } else { 32 },
        bytes_moved_per_request: None,
        by_width: None,
        by_alignment: Vec::new(),
        passes_per_request: shared.then_some(figure),
        ideal_passes_per_request: shared.then_some(ideal),
        bank_conflict_degree: shared.then_some(figure / ideal),
        requests: Some(1024.0),
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

/// A branch in which this fraction of the warps splits.
pub fn branch(split: Option<f64>) -> Branch {
    Branch {
        site: Site::default(),
        text: "threadIdx.x % 2".to_owned(),
        kind: BranchKind::If,
        uniformity: Uniformity::Divergent,
        divergent_warp_fraction: split,
        taken_warp_fraction: Some(1.0),
        taken_threads: None,
        evaluations: Some(32.0),
        trips: None,
        turns: Vec::new(),
        certainty: Certainty::Exact,
        why: None,
        constraints: Vec::new(),
        taken_operations: 4,
        other_operations: 0,
        guard: false,
        barrier_hazard: None,
    }
}
