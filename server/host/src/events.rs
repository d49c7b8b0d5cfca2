//! What a program does besides launching: copies, memory that it fills, takes and gives back, where it waits.
//!
//! In: calls of the toolkits' functions as a walk meets them. Out: [`HostEvent`]s in the order of the first of each, launches among
//! them, each with how often. What holds: bytes are known or absent; a number of times that a condition decides names that condition.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use rustc_hash::FxHashMap;

/// Events that are told apart.
const MOST_APART: usize = 8_192;

/// Something that a host program does with the GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct HostEvent {
    /// What.
    pub kind: HostEventKind,
    /// The function that is called; the kernel that is launched.
    pub call: String,
    /// Where.
    pub place: HostPlace,
    /// How often a run does it.
    pub often: Often,
    /// The innermost loop of the program around it, where there is one.
    pub around: Option<Arc<Decides>>,
}

/// Bytes of a source file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostPlace {
    /// The file.
    pub file: Arc<Path>,
    /// Bytes of its source.
    pub range: Range<usize>,
    /// 0-based line of the first of them.
    pub line: u32,
}

/// What is done.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HostEventKind {
    /// A launch, by its number among those of the run.
    Launch(usize),
    /// Bytes move.
    Copy(HostCopy),
    /// Device memory is set to a value.
    Fill(HostSize),
    /// The host waits.
    Synchronise(Wait),
    /// Memory is taken.
    Allocate(MemoryKind, HostSize),
    /// Memory is given back.
    Free,
}

/// A copy.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostCopy {
    /// From where to where; `None` where that is not known.
    pub direction: Option<Direction>,
    /// How many bytes.
    pub size: HostSize,
    /// What the host's side is; `None` where that is not known, and between devices.
    pub host: Option<MemoryKind>,
    /// The call returns before the copy is made, where the host's side is pinned.
    pub asynchronous: bool,
}

/// A number of bytes, and the expression that says it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostSize {
    /// The number, where it is known.
    pub bytes: Option<u64>,
    /// As the source writes it.
    pub text: Arc<str>,
}

/// Which way a copy goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the host's memory to the GPU's.
    HostToDevice,
    /// From the GPU's memory to the host's.
    DeviceToHost,
    /// Within the GPU's memory, or from one GPU to another.
    DeviceToDevice,
}

impl Direction {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Direction::HostToDevice => "host-to-device",
            Direction::DeviceToHost => "device-to-host",
            Direction::DeviceToDevice => "device-to-device",
        }
    }
}

/// Whose memory it is, and how it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemoryKind {
    /// The host's, which the system may page out.
    Pageable,
    /// The host's, page-locked.
    Pinned,
    /// Both sides', moved on demand.
    Managed,
    /// The GPU's.
    Device,
}

impl MemoryKind {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            MemoryKind::Pageable => "pageable",
            MemoryKind::Pinned => "pinned",
            MemoryKind::Managed => "managed",
            MemoryKind::Device => "device",
        }
    }
}

/// What the host waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wait {
    /// All that the device has to do.
    Device,
    /// A stream or a queue.
    Stream,
    /// An event.
    Event,
}

impl Wait {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Wait::Device => "device",
            Wait::Stream => "stream",
            Wait::Event => "event",
        }
    }
}

/// How often a run does something: a number, and parts that conditions decide.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Often {
    /// As often at least.
    pub known: u64,
    /// Besides, for each of these as many times as its conditions let it.
    pub open: Vec<OpenTimes>,
}

/// Times that conditions decide.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenTimes {
    /// How often each time that the conditions come to it.
    pub times: u64,
    /// The conditions, outermost first.
    pub deciding: Arc<[Arc<Decides>]>,
    /// Of each of them, where it is a loop, the iterations that are counted elsewhere already.
    pub before: Arc<[u64]>,
    /// More decides it than `deciding` names: there is no formula.
    pub is_cut: bool,
    /// The iteration that was walked last, and the times in it.
    pub(super) walked: (u32, u64),
}

impl OpenTimes {
    /// The same where more decides it.
    pub(super) fn cut(self) -> OpenTimes {
        OpenTimes {
            is_cut: true,
            ..self
        }
    }
}

impl Often {
    /// The number, where no condition decides it.
    pub fn number(&self) -> Option<u64> {
        self.open.is_empty().then_some(self.known)
    }

    fn add(&mut self, other: Often) {
        self.known = self.known.saturating_add(other.known);
        for one in other.open {
            let same = |known: &&mut OpenTimes| {
                known.deciding == one.deciding && known.is_cut == one.is_cut
            };
            match self.open.iter_mut().find(same) {
                Some(known) => {
                    let (turn, times) = &mut known.walked;
                    if *turn == one.walked.0 {
                        *times = times.saturating_add(one.times);
                    } else {
                        known.walked = one.walked;
                    }
                    known.times = known.times.max(known.walked.1);
                }
                None => self.open.push(one),
            }
        }
    }
}

/// A loop or a side of a condition of the host program.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Decides {
    /// Which of these.
    pub side: Side,
    /// The condition, as the source writes it.
    pub text: Arc<str>,
    /// Where it is.
    pub place: HostPlace,
}

impl Decides {
    /// A loop, whose iterations count; else a condition that holds or does not.
    pub fn is_loop(&self) -> bool {
        self.side == Side::Loop
    }
}

/// What a condition leads to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Side {
    /// The iterations of a loop.
    Loop,
    /// What is done where it holds.
    Then,
    /// What is done where it does not.
    Else,
    /// A case of a `switch`, by its label as the source writes it.
    Case(Arc<str>),
    /// The `default` of a `switch`.
    Default,
}

impl Side {
    /// The other side of a condition; `None` where there are not two.
    pub(super) fn other(&self) -> Option<Side> {
        match self {
            Side::Then => Some(Side::Else),
            Side::Else => Some(Side::Then),
            Side::Loop | Side::Case(_) | Side::Default => None,
        }
    }
}

/// A loop or a condition that the walk is in.
#[derive(Debug, Clone)]
pub(super) struct Around {
    pub(super) decides: Arc<Decides>,
    /// It is not known whether, or how often, it leads here.
    pub(super) is_open: bool,
    /// The iteration that is walked, where each may be the last.
    pub(super) turn: u32,
    /// Iterations that are certain.
    pub(super) certain: u64,
    /// Iterations that were walked to their end one by one.
    pub(super) walked: u64,
    /// What decides whether this iteration came past its `continue`s.
    pub(super) past: Past,
}

/// What decides whether an iteration came past its `continue`s.
#[derive(Debug, Clone, Default)]
pub(super) struct Past {
    /// Sides of conditions.
    pub(super) sides: Vec<Arc<Decides>>,
    /// They are not all: where several conditions together lead to a `continue`, no product says the rest.
    pub(super) is_cut: bool,
}

impl Past {
    pub(super) fn is_open(&self) -> bool {
        self.is_cut || !self.sides.is_empty()
    }
}

/// The events of a walk, the same ones as one; `sites`: what became of the launches.
pub(super) fn merged(events: Vec<HostEvent>, sites: &[Option<usize>]) -> (Vec<HostEvent>, bool) {
    let mut found: Vec<HostEvent> = Vec::new();
    let mut by_key: FxHashMap<(HostPlace, HostEventKind), usize> = FxHashMap::default();
    let mut cut = false;
    for mut event in events {
        if let HostEventKind::Launch(site) = &mut event.kind {
            match sites.get(*site).copied().flatten() {
                Some(merged) => *site = merged,
                None => {
                    cut = true;
                    continue;
                }
            }
        }
        let key = (event.place.clone(), event.kind.clone());
        match by_key.get(&key) {
            Some(&at) => found[at].often.add(event.often),
            None if found.len() < MOST_APART => {
                by_key.insert(key, found.len());
                found.push(event);
            }
            None => cut = true,
        }
    }
    (found, cut)
}
