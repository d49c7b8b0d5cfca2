//! The loop of the host program around a launch: what each of its iterations does besides.

use std::ops::Range;

use warplens_syntax::nodes::CallExpression;
use warplens_syntax::{BinaryOperator, Field, Kind, Node};

use super::memory::{LOOPS, around, text_at, within};
use super::nodes::text;
use super::state::Host;
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
    /// Calls of the toolkit that each iteration makes, and all launches in it, in order.
    pub calls: Vec<LoopCall>,
}

/// A call in a loop that launches.
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
    /// A launch; of the first in the loop how often a run makes it with whatever arguments, where that is known.
    Launch(Option<u64>),
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

    /// The same where a run makes its first launch that often.
    pub(crate) fn made(&self, times: u64) -> HostLoop {
        let mut made = self.clone();
        let launch = |call: &&mut LoopCall| matches!(call.kind, LoopCallKind::Launch(_));
        if let Some(first) = made.calls.iter_mut().find(launch) {
            first.kind = LoopCallKind::Launch(Some(times));
        }
        made
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
        within(turns, &[Kind::CallExpression], &mut found);
        found.sort_by_key(Node::start_byte);
        let jumps = jumps(turns);
        let mut all = found.iter().filter(|call| launches(**call, source));
        let is_first = all
            .next()
            .is_some_and(|first| first.start_byte() == launch.start_byte());
        let calls = found.iter().filter_map(|call| {
            let name = text_at(call.field(Field::Function)?, source);
            let kind = if launches(*call, source) {
                LoopCallKind::Launch(None)
            } else {
                kind(name).filter(|_| !is_conditional(*call, turns, &jumps))?
            };
            Some(LoopCall {
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

/// The `continue`s and `break`s of the loop itself, and where it is left by `goto`.
fn jumps(turns: Node<'_>) -> Vec<Node<'_>> {
    const KINDS: [Kind; 3] = [
        Kind::ContinueStatement,
        Kind::BreakStatement,
        Kind::GotoStatement,
    ];
    let mut found = Vec::new();
    within(turns, &KINDS, &mut found);
    found.retain(|jump| {
        let target = match jump.kind() {
            Kind::GotoStatement => Some(turns),
            Kind::ContinueStatement => around(*jump, LOOPS),
            _ => around(*jump, &[LOOPS, &[Kind::SwitchStatement]].concat()),
        };
        target.is_some_and(|target| target.id() == turns.id())
    });
    found
}

/// Whether an iteration may go by without the call: a condition in the loop decides it, or the trip count of a loop in it, or the
/// call is in a lambda.
fn is_conditional(call: Node, turns: Node, jumps: &[Node]) -> bool {
    if jumps
        .iter()
        .any(|jump| jump.start_byte() < call.start_byte())
    {
        return true;
    }
    let mut at = call;
    while let Some(parent) = at
        .parent()
        .filter(|parent| parent.start_byte() >= turns.start_byte())
    {
        let is = |field: Field| parent.field(field).is_some_and(|part| part.id() == at.id());
        let whole = parent.id() == turns.id();
        let decides = match parent.kind() {
            Kind::IfStatement | Kind::ConditionalExpression => !is(Field::Condition),
            Kind::BinaryExpression => {
                let operator = warplens_syntax::binary(parent);
                let short = matches!(operator, Some(BinaryOperator::And | BinaryOperator::Or));
                short && is(Field::Right)
            }
            Kind::ForStatement | Kind::ForRangeLoop if whole => {
                is(Field::Initializer) || is(Field::Right)
            }
            Kind::ForStatement | Kind::WhileStatement | Kind::ForRangeLoop => {
                is(Field::Body) || is(Field::Update)
            }
            Kind::SwitchStatement => is(Field::Body),
            Kind::CatchClause | Kind::LambdaExpression => true,
            _ => false,
        };
        if decides {
            return true;
        }
        if whole {
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
