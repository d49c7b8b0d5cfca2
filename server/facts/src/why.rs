//! Why a figure is not exact: in goes what the analysis met, out comes the sentence that users read.

use std::fmt;

use rustc_hash::{FxHashMap, FxHashSet};
use warplens_symbolic::{Arena, Id, Node, Symbol};

/// What C does not define a value for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoValue {
    /// Every thread divides by 0.
    DividedByZero,
    /// Every thread shifts so far.
    Shifted {
        /// By this.
        by: i64,
        /// Of this type.
        bits: u8,
    },
    /// Some thread divides by 0.
    MayDivideByZero,
    /// Some thread shifts by more than the bits of the type.
    MayShiftPast(i64),
    /// Some thread leaves the range of `int`.
    MayOverflow,
}

impl fmt::Display for NoValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoValue::DividedByZero => f.write_str("it is divided by 0"),
            NoValue::Shifted { by, bits } => write!(f, "it is shifted by {by} of {bits} bits"),
            NoValue::MayDivideByZero => f.write_str("some thread divides by 0"),
            NoValue::MayShiftPast(bits) => write!(f, "some thread shifts past {bits} bits"),
            NoValue::MayOverflow => f.write_str("it overflows `int` in some thread"),
        }
    }
}

/// Why the trip count of a loop is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unbounded {
    /// It has no condition, or one that always holds.
    Endless,
    /// Data decides.
    ByData,
    /// The condition itself moves what it tests.
    TestMoves,
    /// An unsigned counter passes 0.
    WrapsAround,
    /// It is an expression of what is not known.
    NotKnown,
    /// Its condition is of no known form.
    NotUnderstood,
}

impl fmt::Display for Unbounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unbounded::Endless => "its condition always holds",
            Unbounded::ByData => "the loop's bound depends on data",
            Unbounded::TestMoves => "the condition changes what it tests",
            Unbounded::WrapsAround => {
                "an unsigned counter goes below 0 and begins again at the top"
            }
            Unbounded::NotKnown => "the loop's bound is not known",
            Unbounded::NotUnderstood => "the loop's bound was not understood",
        })
    }
}

/// Two places behind the point, as far as there are any.
fn rounded(figure: f64) -> f64 {
    (figure * 100.0).round() / 100.0
}

/// Why a figure of an access or of a branch is not exact.
#[derive(Debug, Clone, PartialEq)]
pub enum Why {
    /// The runtime places a pipe's packets.
    Pipe,
    /// How the texels of an image lie in memory is not documented.
    Image,
    /// It belongs to a launch that the kernel makes.
    EnqueuedLaunch,
    /// A box of a tensor, of which is not known that it fills its sectors.
    Box,
    /// A descriptor of a factor has bits that no field has.
    ReservedBits,
    /// A descriptor's address is in bytes.
    DescribedInBytes,
    /// The index has no value.
    IndexWithoutValue(NoValue),
    /// The index depends on data.
    IndexByData,
    /// The index begins where data says, and these are the fewest and the most transactions per request.
    StartByData {
        /// Where the start is best for the request.
        least: f64,
        /// Where it is worst.
        most: f64,
    },
    /// Part of the index was not understood.
    IndexNotUnderstood,
    /// Not executed under the assumed launch and arguments.
    NeverExecuted,
    /// Not all distinct cases were looked at.
    ManyCases,
    /// Whether it is memory at all is the compiler's decision.
    InRegisters,
    /// It depends on what was assumed: names, or `block`.
    Assumed(String),
    /// Data decides a condition around it.
    GuardByData,
    /// A condition around it was not understood.
    GuardNotUnderstood,
    /// Calls of the function around it are not counted exactly.
    SomeCall,
    /// The last test of a loop, which fails, is no iteration.
    LastTest,
    /// The trip count is not known.
    Loop(Unbounded),
    /// No statement leaves a loop whose condition always holds.
    NothingEnds,
    /// Data decides when a `break` leaves the loop.
    BreakByData,
    /// Data decides whether a `break` leaves the loop early.
    MayBreakByData,
    /// A `break` may leave the loop early.
    MayBreak,
    /// An assumed value decides the iterations.
    IterationsAssumed,
    /// No expression gives the trip count.
    NoTripCount,
    /// Data decides, lane by lane.
    Chance {
        /// How often it holds.
        probability: f64,
        /// Where that is from.
        from: &'static str,
    },
    /// The condition has no value.
    WithoutValue(NoValue),
    /// Data decides.
    ByData,
    /// The condition was not understood.
    NotUnderstood,
    /// An assumed launch or argument decides.
    LaunchAssumed,
    /// Some blocks were run on the given contents.
    BlocksRun {
        /// This many.
        ran: u64,
        /// Of this many.
        blocks: u64,
    },
    /// It ran on the given contents for an assumed launch or argument.
    RunAssumed,
    /// The given contents of an array end before an element that is read.
    ContentsEnd {
        /// The array.
        array: String,
        /// The element.
        element: i64,
    },
    /// The kernel writes to an array whose contents were given.
    ContentsWritten(String),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = match self {
            Why::IndexWithoutValue(reason) => {
                return write!(f, "the index has no value: {reason}");
            }
            Why::Assumed(names) => return write!(f, "depends on the assumed {names}"),
            Why::Loop(reason) => return reason.fmt(f),
            Why::NothingEnds => return write!(f, "nothing ends the loop: {}", Unbounded::Endless),
            Why::Chance { probability, from } => {
                return write!(
                    f,
                    "depends on data: each lane takes it with probability {probability} ({from})"
                );
            }
            Why::WithoutValue(reason) => return write!(f, "no value: {reason}"),
            Why::BlocksRun { ran, blocks } => {
                return write!(
                    f,
                    "a sample: {ran} of {blocks} blocks run on the given contents"
                );
            }
            Why::ContentsEnd { array, element } => {
                return write!(
                    f,
                    "the given contents of `{array}` end before element {element}, which is read"
                );
            }
            Why::ContentsWritten(array) => {
                return write!(
                    f,
                    "the kernel writes to `{array}`, whose given contents are not used"
                );
            }
            Why::StartByData { least, most } => {
                return write!(
                    f,
                    "where it begins, data in memory decides: {} to {} transactions per request",
                    rounded(*least),
                    rounded(*most)
                );
            }
            Why::Pipe => "where a pipe's packet lies is the runtime's affair",
            Why::Image => "how the texels lie in memory is not documented",
            Why::Box => "how the box lies in the sectors of its tensor is not known",
            Why::ReservedBits => {
                "the descriptor has bits that no field of it has: an offset is too large, or not in 16 bytes"
            }
            Why::DescribedInBytes => {
                "the descriptor's address is in bytes, not in 16 of them (`(address & 0x3FFFF) >> 4`)"
            }
            Why::EnqueuedLaunch => "it runs in the launch that is enqueued here",
            Why::IndexByData => "the index depends on data in memory",
            Why::IndexNotUnderstood => "part of the index was not understood",
            Why::NeverExecuted => "never executed under the assumed launch and arguments",
            Why::ManyCases => "a sample of the launch: too many distinct cases",
            Why::InRegisters => "registers or local memory: the compiler decides",
            Why::GuardByData => "a condition around it depends on data",
            Why::GuardNotUnderstood => "a condition around it was not understood",
            Why::SomeCall => "some call of the function depends on it",
            Why::LastTest => "the loop's last test is not followed",
            Why::BreakByData => "a break that depends on data ends the loop",
            Why::MayBreakByData => "a break that depends on data may end the loop",
            Why::MayBreak => "a break may end the loop before its bound",
            Why::IterationsAssumed => "the iterations depend on an assumed value",
            Why::NoTripCount => "the trip count is not known",
            Why::ByData => "depends on data in memory",
            Why::NotUnderstood => "not understood",
            Why::LaunchAssumed => "depends on an assumed launch or argument",
            Why::RunAssumed => "counted on the given contents for an assumed launch or argument",
        };
        f.write_str(plain)
    }
}

/// Why a part of an expression has no value, where that is said of one.
pub(crate) fn reason_in<'a>(
    arena: &Arena,
    reasons: &'a FxHashMap<Symbol, NoValue>,
    whole: Id,
) -> Option<&'a NoValue> {
    if reasons.is_empty() {
        return None;
    }
    // An expression lists of its opaque symbols one of each kind: which of them stand in it is looked up.
    let (mut left, mut seen) = (vec![whole], FxHashSet::default());
    while let Some(id) = left.pop() {
        if arena.opaque(id).is_none() || !seen.insert(id) {
            continue;
        }
        match arena.node(id) {
            Node::Symbol(symbol) => {
                if let Some(reason) = reasons.get(symbol) {
                    return Some(reason);
                }
            }
            Node::Sum(_, terms) => left.extend(terms.iter().map(|term| term.0)),
            Node::Product(factors) => left.extend(factors.iter().copied()),
            Node::Binary(_, a, b) => left.extend([*a, *b]),
            Node::Select(a, b, c) => left.extend([*a, *b, *c]),
            Node::Table(inner, _) | Node::Wrap(_, _, inner) => left.push(*inner),
            Node::Const(_) => {}
        }
    }
    None
}
