//! The loop of the host program around a launch: what each of its iterations does besides.

use std::ops::Range;

use warplens_syntax::nodes::CallExpression;
use warplens_syntax::{Field, Kind, Node};

use super::memory::{LOOPS, around, text_at, within};
use super::state::Host;
use super::walk::text;
use warplens_hir::Source;

/// Launches of a file that this is asked of: each looks through the loop around it.
const MOST_LAUNCHES: usize = 64;

/// The innermost loop around a launch, in the function that launches.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostLoop {
    /// Its head, in the source of the file.
    pub range: Range<usize>,
    /// The launch is the first in it.
    pub is_first: bool,
    /// Calls of the toolkit that each iteration makes, in order.
    pub calls: Vec<LoopCall>,
}

/// A call in a loop that launches, made in each iteration.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LoopCall {
    /// What it does.
    pub kind: LoopCallKind,
    /// The function that is called.
    pub name: String,
    /// The call, in the source of the file.
    pub range: Range<usize>,
}

/// What a call in a loop does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LoopCallKind {
    /// The host waits for the GPU.
    Wait,
    /// A copy that the host waits for.
    Copy,
    /// Device memory is taken.
    Allocate,
    /// Device memory is given back, for which the host waits.
    Free,
}

impl HostLoop {
    /// The same where the function around it begins elsewhere.
    pub(crate) fn moved(&self, by: impl Fn(&Range<usize>) -> Range<usize>) -> HostLoop {
        let calls = self.calls.iter().map(|call| LoopCall {
            range: by(&call.range),
            ..call.clone()
        });
        HostLoop {
            range: by(&self.range),
            is_first: self.is_first,
            calls: calls.collect(),
        }
    }
}

impl Host<'_> {
    /// The loop around a launch; `place`: the launch from its name to `>>>`, or the call that launches.
    pub(super) fn loop_around(&self, place: &Range<usize>, source: Source) -> Option<HostLoop> {
        if self.sites.len() >= MOST_LAUNCHES {
            return None;
        }
        let tree = source.parsed.tree.root_node();
        let mut launch = tree.descendant_for_byte_range(place.start, place.end)?;
        while launch.kind() != Kind::CallExpression {
            launch = launch.parent()?;
        }
        let function = around(launch, &[Kind::FunctionDefinition, Kind::LambdaExpression])?;
        let turns = around(launch, LOOPS)?;
        if turns.start_byte() < function.start_byte() {
            return None;
        }
        let body = turns.field(Field::Body)?;
        let mut found = Vec::new();
        within(turns, Kind::CallExpression, &mut found);
        found.sort_by_key(Node::start_byte);
        let mut launches = found.iter().filter(|call| launches(**call, source));
        let is_first = launches
            .next()
            .is_some_and(|first| first.start_byte() == launch.start_byte());
        let calls = found.iter().filter_map(|call| {
            let name = text_at(call.field(Field::Function)?, source);
            let kind = kind(name)?;
            let each = !is_conditional(*call, turns);
            each.then(|| LoopCall {
                kind,
                name: name.to_owned(),
                range: source.parsed.place(call.byte_range()).range,
            })
        });
        let head = match turns.kind() {
            Kind::DoStatement => turns.start_byte()..turns.start_byte() + "do".len(),
            _ => turns.start_byte()..head_end(turns, body, source),
        };
        Some(HostLoop {
            range: source.parsed.place(head).range,
            is_first,
            calls: calls.collect(),
        })
    }
}

/// Where the head of a loop ends, white space before its body left out.
fn head_end(turns: Node, body: Node, source: Source) -> usize {
    let head = source
        .parsed
        .text
        .get(turns.start_byte()..body.start_byte());
    turns.start_byte() + head.map_or(0, |head| head.trim_end().len())
}

fn launches(call: Node, source: Source) -> bool {
    let syntax = CallExpression::cast(call).and_then(CallExpression::launch);
    let name = call
        .field(Field::Function)
        .map_or("", |function| text(function, source));
    syntax.is_some() || name.contains("LaunchKernel") || name.contains("LaunchCooperativeKernel")
}

/// Whether a condition in the loop decides if an iteration comes to the call.
fn is_conditional(call: Node, turns: Node) -> bool {
    let mut at = call;
    while let Some(parent) = at
        .parent()
        .filter(|parent| parent.start_byte() >= turns.start_byte())
    {
        let decides = match parent.kind() {
            Kind::IfStatement | Kind::ConditionalExpression => parent
                .field(Field::Condition)
                .is_none_or(|condition| condition.id() != at.id()),
            Kind::CaseStatement | Kind::CatchClause => true,
            _ => false,
        };
        if decides {
            return true;
        }
        if parent.id() == turns.id() {
            break;
        }
        at = parent;
    }
    false
}

fn kind(name: &str) -> Option<LoopCallKind> {
    let runtime = name
        .strip_prefix("cuda")
        .or_else(|| name.strip_prefix("hip"));
    match runtime? {
        "DeviceSynchronize" | "ThreadSynchronize" | "StreamSynchronize" | "EventSynchronize" => {
            Some(LoopCallKind::Wait)
        }
        "Memcpy" | "Memcpy2D" | "MemcpyToSymbol" | "MemcpyFromSymbol" | "MemcpyDtoH"
        | "MemcpyHtoD" => Some(LoopCallKind::Copy),
        "Malloc" | "MallocPitch" | "MallocManaged" => Some(LoopCallKind::Allocate),
        "Free" => Some(LoopCallKind::Free),
        _ => None,
    }
}
