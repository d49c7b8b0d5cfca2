//! What an average warp executes: the flow, and the accesses that it names.

use std::fmt;
use std::sync::Arc;

use warplens_facts::facts::{
    Access, AddressPart, Alias, Form, IndexExpression, LinearAddress, Node, Op, Pattern, Site,
    SourceFacts, Space, Stride, StructField,
};

use super::expected::ExpectedRequest;

/// What an average warp executes, in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ExecutedFlow {
    /// Stretches of computation, accesses, barriers, loops and branches.
    pub nodes: Vec<Node>,
    /// Of each line's instructions the part that waits for one another within its block, in the order of lines; empty
    /// where the compiled kernel is not followed.
    pub serial: Vec<(u32, f64)>,
}

/// What an access goes to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Object {
    /// An array or a pointer of the source.
    Array(Arc<str>),
    /// Registers that found no room: a thread's own memory.
    SpilledRegisters,
}

impl Object {
    /// True for an array of that name.
    pub fn is(&self, array: &str) -> bool {
        matches!(self, Object::Array(name) if **name == *array)
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Object::Array(name) => f.write_str(name),
            Object::SpilledRegisters => f.write_str("(registers in memory)"),
        }
    }
}

/// One access as warps execute it. Averages are over requests: one warp executing it once with at least one active lane.
#[derive(Debug, Clone, PartialEq)]
pub struct ExecutedAccess {
    /// The access of the source that it executes, by its number in the facts.
    pub source: Option<usize>,
    /// Where.
    pub site: Site,
    /// What it goes to.
    pub object: Object,
    /// Which memory.
    pub space: Space,
    /// Of shared memory: that of another block of the cluster.
    pub remote: bool,
    /// What it does.
    pub op: Op,
    /// Bytes that each active lane moves.
    pub bytes_per_lane: u32,
    /// How it names the bytes.
    pub form: Form,
    /// The element index; `None` where elements do not divide it, or no reuse is to be known.
    pub index: Option<Arc<IndexExpression>>,
    /// How lanes spread.
    pub pattern: Pattern,
    /// Distance between x-neighbours, where it is one number.
    pub stride: Option<Stride>,
    /// Where a lane goes, if that is a sum of coordinates and loop counters; for memory that is cached.
    pub linear: Option<LinearAddress>,
    /// The same without what the threads of one block have among themselves.
    pub linear_in_blocks: Option<LinearAddress>,
    /// Of an address that is no such sum: bytes that a step of each part moves it by.
    pub parts: Option<Vec<(i64, AddressPart)>>,
    /// Set where the element is a structure's field.
    pub field: Option<StructField>,
    /// Bytes of the array, where they are known.
    pub array_bytes: Option<u64>,
    /// What else may reach the same memory.
    pub alias: Alias,
    /// Distinct transaction units touched.
    pub transactions_per_request: Option<f64>,
    /// ceil(distinct bytes / unit).
    pub ideal_transactions_per_request: Option<f64>,
    /// The unit in bytes, 0 for shared and constant memory.
    pub transaction_bytes: u32,
    /// Bytes that the memory system moves for one request.
    pub bytes_moved_per_request: Option<f64>,
    /// Lines of 128 bytes that L1 looks up, if one instruction moves 4, 8 or 16 bytes per lane.
    pub by_width: Option<[f64; 3]>,
    /// What a request takes on average, where its start is not known.
    pub expected: Option<ExpectedRequest>,
    /// Shared: times the bank array is cycled; constant: distinct words; atomics: most lanes on one address.
    pub passes_per_request: Option<f64>,
    /// The same without conflicts.
    pub ideal_passes_per_request: Option<f64>,
    /// Requests over the whole launch.
    pub requests: Option<f64>,
    /// Active lanes, averaged.
    pub active_lanes_per_request: Option<f64>,
    /// Loads: how many of them a warp issues before it waits for the first, on average; 1 where the compiled kernel is
    /// not followed.
    pub together: f64,
    /// Of a copy past the registers: iterations of its loop from its issue to where it is waited for; 0 where that is the
    /// same one.
    pub ahead: Option<u32>,
    /// Of a copy past the registers: how often L2 is asked for each sector; 1 elsewhere.
    pub requests_per_sector: f64,
    /// How many of them one instruction does, on average: a wide load several.
    pub merged: f64,
}

impl ExecutedAccess {
    /// Words of 32 bits that one instruction moves for each lane.
    pub fn joined_words(&self) -> f64 {
        f64::from(self.bytes_per_lane) * self.merged.max(1.0) / 4.0
    }

    /// Passes of the instruction that the compiler makes of several accesses to shared memory, where what it reads of each lane is
    /// known to lie side by side.
    pub fn joined_passes(&self) -> Option<f64> {
        let [words, pairs, quads] = self.by_width.filter(|_| self.merged > 1.0)?;
        let width = self.joined_words();
        Some(if width <= 2.0 {
            words + (width - 1.0).max(0.0) * (pairs - words)
        } else {
            pairs + (width / 2.0 - 1.0).min(1.0) * (quads - pairs)
        })
    }

    /// Why its figures are a prediction, in words, where the source has no such access.
    pub fn why(&self) -> Option<&'static str> {
        match self.object {
            Object::Array(_) => None,
            Object::SpilledRegisters => Some("the compiler's affair, as predicted"),
        }
    }

    /// An access of the source as it is written: one by one.
    pub fn of(access: &Access, number: usize) -> ExecutedAccess {
        // The compiler sees that the address is one, not that lanes happen to have one.
        let combined = access.combines && access.is_one_for_a_block();
        let by_one_lane =
            |lanes: Option<f64>| lanes.map(|lanes| if combined { 1.0 } else { lanes });
        ExecutedAccess {
            source: Some(number),
            site: access.site,
            object: Object::Array(access.array.as_str().into()),
            space: access.space,
            remote: access.remote,
            op: access.op,
            bytes_per_lane: access.bytes_per_lane,
            form: access.form,
            index: access.index_expression.clone(),
            pattern: access.pattern,
            stride: access.stride.clone(),
            linear: access.linear.clone(),
            linear_in_blocks: access.linear_in_blocks.clone(),
            parts: access.parts.clone(),
            field: access.field.clone(),
            array_bytes: access.array_bytes,
            alias: access.alias,
            transactions_per_request: access.transactions_per_request,
            ideal_transactions_per_request: access.ideal_transactions_per_request,
            transaction_bytes: access.transaction_bytes,
            bytes_moved_per_request: access.bytes_moved_per_request,
            by_width: access.by_width,
            expected: ExpectedRequest::of(access),
            passes_per_request: by_one_lane(access.passes_per_request),
            ideal_passes_per_request: access.ideal_passes_per_request,
            requests: access.requests,
            active_lanes_per_request: by_one_lane(access.active_lanes_per_request),
            ahead: access.ahead,
            requests_per_sector: 1.0,
            together: 1.0,
            merged: 1.0,
        }
    }
}

/// The source's own flow and accesses, for a kernel whose compiled code is not followed.
pub(super) fn as_written(facts: &SourceFacts) -> (ExecutedFlow, Vec<ExecutedAccess>) {
    let flow = ExecutedFlow {
        nodes: facts.flow.clone(),
        serial: Vec::new(),
    };
    (flow, accesses(facts))
}

/// The accesses of the source, by their numbers.
pub(super) fn accesses(facts: &SourceFacts) -> Vec<ExecutedAccess> {
    let accesses = facts.accesses.iter().enumerate();
    accesses
        .map(|(number, access)| ExecutedAccess::of(access, number))
        .collect()
}
