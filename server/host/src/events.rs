//! What a program does besides launching: copies, memory that it fills, takes and gives back, where it waits.
//!
//! In: calls of the toolkits' functions as a walk meets them. Out: [`HostEvent`]s in the order of the first of each, launches among
//! them, each with how often. What holds: bytes are known or absent; a number of times that a condition decides names that condition.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use warplens_syntax::{Field, Kind, Node};

use super::calls::Argument;
use super::state::Host;
use super::value::{Value, binary};
use super::walk::text;
use warplens_hir::Source;
use warplens_ir::Type;

/// Events of one walk, before the same ones become one.
const MOST_EVENTS: usize = 100_000;
/// Events that are told apart.
const MOST_APART: usize = 8_192;
/// Conditions around one event that are named.
const MOST_DECIDING: usize = 4;
/// Letters of a condition or of a size that are quoted.
const LONGEST_TEXT: usize = 60;

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
    walked: (u32, u64),
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
    fn other(&self) -> Option<Side> {
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
    turn: u32,
    /// Iterations that are certain.
    certain: u64,
    /// Iterations that were walked to their end one by one.
    walked: u64,
    /// What decides whether this iteration came past its `continue`s.
    past: Past,
}

/// What decides whether an iteration came past its `continue`s.
#[derive(Debug, Clone, Default)]
struct Past {
    /// Sides of conditions.
    sides: Vec<Arc<Decides>>,
    /// They are not all: where several conditions together lead to a `continue`, no product says the rest.
    is_cut: bool,
}

impl Past {
    fn is_open(&self) -> bool {
        self.is_cut || !self.sides.is_empty()
    }
}

impl Host<'_> {
    /// The walk comes into a loop or a side of a condition.
    pub(super) fn enter(&mut self, node: Option<Node>, side: Side, is_open: bool, source: Source) {
        if self.running.is_none() {
            return;
        }
        let text = node.and_then(|node| source.parsed.text.get(condition_in(node)));
        let place = node.map(|node| place(node.byte_range(), source));
        let place = place.or_else(|| {
            self.around
                .last()
                .map(|around| around.decides.place.clone())
        });
        self.around.push(Around {
            decides: Arc::new(Decides {
                side,
                text: quoted(text.unwrap_or_default()),
                place: place.unwrap_or_else(|| self::place(0..0, source)),
            }),
            is_open,
            turn: 0,
            certain: 0,
            walked: 0,
            past: Past::default(),
        });
    }

    /// The walk leaves it.
    pub(super) fn leave(&mut self) {
        self.around.pop();
    }

    /// The loop that the walk is in ended an iteration: that many were walked.
    pub(super) fn iterated(&mut self, walked: u64) {
        if let Some(around) = self.around.last_mut() {
            around.walked = walked;
        }
    }

    /// The `continue`s of the loop that the walk is in meet here, or its iteration begins.
    pub(super) fn continues_meet(&mut self) {
        if let Some(around) = self.around.last_mut() {
            around.past = Past::default();
        }
    }

    /// The loop that the walk is in may have ended before the iteration that follows; that many are certain.
    pub(super) fn may_have_ended(&mut self, certain: u64) {
        if let Some(around) = self.around.last_mut() {
            if around.turn == 0 {
                around.is_open = true;
                around.certain = certain;
            }
            around.turn += 1;
        }
    }

    /// A way out of that many loops, the innermost, which some runs take: what follows in this iteration is no longer certain.
    pub(super) fn may_end_here(&mut self, loops: usize) {
        let around = self.around.iter_mut().rev();
        let around = around.filter(|around| around.decides.is_loop());
        for around in around.take(loops) {
            if !around.is_open {
                around.is_open = true;
                around.certain = around.walked;
            }
        }
    }

    /// A `continue` of the innermost loop, which some iterations come to: what follows in them others do.
    pub(super) fn may_skip(&mut self) {
        let all = &mut self.around;
        let Some(at) = all.iter().rposition(|around| around.decides.is_loop()) else {
            return;
        };
        let (outer, inner) = all.split_at_mut(at + 1);
        let Some(turns) = outer.last_mut() else {
            return;
        };
        let mut open = inner.iter().filter(|around| around.is_open);
        match (open.next(), open.next()) {
            (None, _) => {}
            (Some(only), None) => match only.decides.side.other() {
                Some(side) => turns.past.sides.push(Arc::new(Decides {
                    side,
                    ..(*only.decides).clone()
                })),
                None => turns.past.is_cut = true,
            },
            _ => turns.past.is_cut = true,
        }
    }

    /// Whether a condition that is not known decides if the program comes here.
    pub(super) fn is_doubtful(&self) -> bool {
        let mut around = self.around.iter();
        around.any(|around| around.is_open || around.past.is_open())
    }

    /// Notes what happens here.
    pub(super) fn happens(
        &mut self,
        kind: HostEventKind,
        call: &str,
        range: Range<usize>,
        source: Source,
    ) {
        if self.beside > 0 || self.running.is_none() {
            return;
        }
        if self.events.len() >= MOST_EVENTS {
            self.lost_events = true;
            return;
        }
        let around = self.around.iter().rev();
        let mut around = around.filter(|around| around.decides.is_loop());
        self.events.push(HostEvent {
            kind,
            call: call.to_owned(),
            place: place(range, source),
            often: self.often(),
            around: around.next().map(|around| Arc::clone(&around.decides)),
        });
    }

    /// How often what is walked now is done.
    fn often(&self) -> Often {
        let times = self.running.as_ref().map_or(1, |running| running.times);
        if !self.is_doubtful() {
            return Often {
                known: times,
                open: Vec::new(),
            };
        }
        let mut deciding: Vec<(&Arc<Decides>, u64)> = Vec::new();
        let mut is_cut = false;
        for around in &self.around {
            let own = around.is_open.then_some((&around.decides, around.certain));
            let past = around.past.sides.iter().map(|side| (side, 0));
            for one in own.into_iter().chain(past) {
                // The side that does not lead to a `continue`, and what is past it.
                let known = deciding.iter().any(|(known, _)| *known == one.0);
                if !known && deciding.len() < MOST_DECIDING {
                    deciding.push(one);
                } else {
                    is_cut |= !known;
                }
            }
            is_cut |= around.past.is_cut;
        }
        let turn = self.around.iter().map(|around| around.turn).sum();
        let open = OpenTimes {
            times,
            before: deciding.iter().map(|(_, certain)| *certain).collect(),
            deciding: deciding
                .into_iter()
                .map(|(one, _)| Arc::clone(one))
                .collect(),
            is_cut,
            walked: (turn, times),
        };
        Often {
            known: 0,
            open: vec![open],
        }
    }

    /// Notes a call of a toolkit's function that moves, takes or gives back memory, or waits.
    pub(super) fn call_happens(
        &mut self,
        node: Node,
        name: &str,
        arguments: &[Argument],
        source: Source,
    ) {
        if self.running.is_none() || self.index.by_name.contains_key(name) {
            return;
        }
        if let Some(kind) = self.event_of(name, arguments, source) {
            self.happens(kind, name, node.byte_range(), source);
        }
    }

    fn event_of(
        &self,
        name: &str,
        arguments: &[Argument],
        source: Source,
    ) -> Option<HostEventKind> {
        use warplens_syntax::BinaryOperator::Multiply;
        let value = |at: usize| {
            arguments
                .get(at)
                .map_or(&Value::Unknown, |argument| &argument.value)
        };
        let written = |at: usize| {
            let node = arguments.get(at).and_then(|argument| argument.node);
            node.map_or("", |node| text(node, source))
        };
        let size = |at: usize| size(value(at), written(at));
        let area = |width: usize, height: usize| HostSize {
            bytes: bytes(&binary(Multiply, value(width), value(height))),
            text: quoted(&format!("{} * {}", written(width), written(height))),
        };
        let copy = |direction: Option<Direction>,
                    host: Option<usize>,
                    size: HostSize,
                    asynchronous: bool| {
            let host = host.and_then(|at| self.kept_in(value(at)));
            HostEventKind::Copy(HostCopy {
                direction,
                size,
                host,
                asynchronous,
            })
        };
        // The direction that an argument names, and which of the two pointers is the host's.
        let named = |at: usize, to: usize, from: usize| {
            let direction = direction(written(at)).or_else(|| self.between(value(to), value(from)));
            let host = match direction {
                Some(Direction::HostToDevice) => Some(from),
                Some(Direction::DeviceToHost) => Some(to),
                _ => None,
            };
            (direction, host)
        };
        let plain = name.trim_end_matches("_v2").trim_end_matches("_ptsz");
        let (plain, asynchronous) = match plain.strip_suffix("Async") {
            Some(plain) => (plain, true),
            None => (plain, false),
        };
        let behind = |prefix: &str| {
            plain
                .strip_prefix(prefix)
                .filter(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
        };
        let runtime = behind("cuda").or_else(|| behind("hip"));
        if let Some(function) = runtime {
            let allocates = |kind: MemoryKind| Some(HostEventKind::Allocate(kind, size(1)));
            return match function {
                "Memcpy" | "MemcpyWithStream" => {
                    let (direction, host) = named(3, 0, 1);
                    Some(copy(direction, host, size(2), asynchronous))
                }
                "MemcpyHtoD" => Some(copy(
                    Some(Direction::HostToDevice),
                    Some(1),
                    size(2),
                    asynchronous,
                )),
                "MemcpyDtoH" => Some(copy(
                    Some(Direction::DeviceToHost),
                    Some(0),
                    size(2),
                    asynchronous,
                )),
                "MemcpyDtoD" => Some(copy(
                    Some(Direction::DeviceToDevice),
                    None,
                    size(2),
                    asynchronous,
                )),
                "MemcpyPeer" => Some(copy(
                    Some(Direction::DeviceToDevice),
                    None,
                    size(4),
                    asynchronous,
                )),
                "Memcpy2D" => {
                    let (direction, host) = named(6, 0, 2);
                    Some(copy(direction, host, area(4, 5), asynchronous))
                }
                "Memcpy3D" => Some(copy(None, None, unsaid(written(0)), asynchronous)),
                "MemcpyToSymbol" => Some(copy(
                    direction(written(4)).or(Some(Direction::HostToDevice)),
                    Some(1),
                    size(2),
                    asynchronous,
                )),
                "MemcpyFromSymbol" => Some(copy(
                    direction(written(4)).or(Some(Direction::DeviceToHost)),
                    Some(0),
                    size(2),
                    asynchronous,
                )),
                "MemcpyToArray" => {
                    let (direction, host) = named(5, 0, 3);
                    Some(copy(
                        direction.or(Some(Direction::HostToDevice)),
                        host,
                        size(4),
                        asynchronous,
                    ))
                }
                "MemPrefetch" => {
                    let to = written(2);
                    let direction = if to.contains("CpuDeviceId") {
                        Direction::DeviceToHost
                    } else {
                        Direction::HostToDevice
                    };
                    Some(copy(Some(direction), Some(0), size(1), true))
                }
                "Memset" | "MemsetD8" => Some(HostEventKind::Fill(size(2))),
                "Memset2D" => Some(HostEventKind::Fill(area(3, 4))),
                "Malloc" | "MallocPitch" | "Malloc3D" | "MallocArray" | "ExtMallocWithFlags" => {
                    let of = match function {
                        "Malloc" | "ExtMallocWithFlags" => size(1),
                        "MallocPitch" => area(2, 3),
                        _ => unsaid(""),
                    };
                    Some(HostEventKind::Allocate(MemoryKind::Device, of))
                }
                "MallocManaged" => allocates(MemoryKind::Managed),
                "MallocHost" | "HostAlloc" | "HostMalloc" => allocates(MemoryKind::Pinned),
                "Free" | "FreeHost" | "HostFree" | "FreeArray" => Some(HostEventKind::Free),
                "DeviceSynchronize" | "ThreadSynchronize" => {
                    Some(HostEventKind::Synchronise(Wait::Device))
                }
                "StreamSynchronize" => Some(HostEventKind::Synchronise(Wait::Stream)),
                "EventSynchronize" => Some(HostEventKind::Synchronise(Wait::Event)),
                _ => None,
            };
        }
        let waits = |at: usize| !matches!(written(at), "CL_FALSE" | "false" | "0");
        match plain {
            "cuMemcpyHtoD" => Some(copy(
                Some(Direction::HostToDevice),
                Some(1),
                size(2),
                asynchronous,
            )),
            "cuMemcpyDtoH" => Some(copy(
                Some(Direction::DeviceToHost),
                Some(0),
                size(2),
                asynchronous,
            )),
            "cuMemcpyDtoD" => Some(copy(
                Some(Direction::DeviceToDevice),
                None,
                size(2),
                asynchronous,
            )),
            "cuMemAlloc" => Some(HostEventKind::Allocate(MemoryKind::Device, size(1))),
            "cuMemAllocManaged" => Some(HostEventKind::Allocate(MemoryKind::Managed, size(1))),
            "cuMemAllocHost" | "cuMemHostAlloc" => {
                Some(HostEventKind::Allocate(MemoryKind::Pinned, size(1)))
            }
            "cuMemFree" | "cuMemFreeHost" | "clReleaseMemObject" => Some(HostEventKind::Free),
            "cuCtxSynchronize" => Some(HostEventKind::Synchronise(Wait::Device)),
            "cuStreamSynchronize" | "clFinish" => Some(HostEventKind::Synchronise(Wait::Stream)),
            "cuEventSynchronize" | "clWaitForEvents" => {
                Some(HostEventKind::Synchronise(Wait::Event))
            }
            "clEnqueueWriteBuffer" => Some(copy(
                Some(Direction::HostToDevice),
                Some(5),
                size(4),
                !waits(2),
            )),
            "clEnqueueReadBuffer" => Some(copy(
                Some(Direction::DeviceToHost),
                Some(5),
                size(4),
                !waits(2),
            )),
            "clEnqueueCopyBuffer" => {
                Some(copy(Some(Direction::DeviceToDevice), None, size(5), true))
            }
            "clEnqueueFillBuffer" => Some(HostEventKind::Fill(size(5))),
            "clCreateBuffer" if written(1).contains("COPY_HOST_PTR") => {
                Some(copy(Some(Direction::HostToDevice), Some(3), size(2), false))
            }
            "clCreateBuffer" => Some(HostEventKind::Allocate(MemoryKind::Device, size(2))),
            // OpenCL's C++ bindings.
            "enqueueWriteBuffer" => Some(copy(
                Some(Direction::HostToDevice),
                Some(4),
                size(3),
                !waits(1),
            )),
            "enqueueReadBuffer" => Some(copy(
                Some(Direction::DeviceToHost),
                Some(4),
                size(3),
                !waits(1),
            )),
            _ => None,
        }
    }

    /// Which way a copy goes whose direction follows from its pointers.
    fn between(&self, to: &Value, from: &Value) -> Option<Direction> {
        let on_device = |value: &Value| match self.kept_in(value)? {
            MemoryKind::Device => Some(true),
            MemoryKind::Pageable | MemoryKind::Pinned => Some(false),
            MemoryKind::Managed => None,
        };
        match (on_device(to)?, on_device(from)?) {
            (true, false) => Some(Direction::HostToDevice),
            (false, true) => Some(Direction::DeviceToHost),
            (true, true) => Some(Direction::DeviceToDevice),
            (false, false) => None,
        }
    }

    /// What the memory is that a pointer leads to.
    pub(super) fn kept_in(&self, pointer: &Value) -> Option<MemoryKind> {
        match pointer {
            Value::Address(place) => {
                let slot = self.slots.get(place.slot)?;
                if slot.may_be_pinned {
                    return None;
                }
                slot.memory.or(match &slot.ty {
                    // A variable or a container of the host.
                    Type::Int { .. } | Type::Float { .. } | Type::Struct(_) | Type::Array(..) => {
                        Some(MemoryKind::Pageable)
                    }
                    _ => None,
                })
            }
            Value::Array(_) => Some(MemoryKind::Pageable),
            _ => None,
        }
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

fn place(range: Range<usize>, source: Source) -> HostPlace {
    let place = source.parsed.place(range);
    HostPlace {
        file: Arc::clone(&source.parsed.path),
        range: place.range,
        line: place.line,
    }
}

/// A copy's direction by the name of the enumerator.
fn direction(kind: &str) -> Option<Direction> {
    if kind.ends_with("HostToDevice") {
        Some(Direction::HostToDevice)
    } else if kind.ends_with("DeviceToHost") {
        Some(Direction::DeviceToHost)
    } else if kind.ends_with("DeviceToDevice") {
        Some(Direction::DeviceToDevice)
    } else {
        None
    }
}

fn bytes(value: &Value) -> Option<u64> {
    value.as_int().and_then(|bytes| u64::try_from(bytes).ok())
}

fn size(value: &Value, written: &str) -> HostSize {
    HostSize {
        bytes: bytes(value),
        text: quoted(written),
    }
}

fn unsaid(written: &str) -> HostSize {
    HostSize {
        bytes: None,
        text: quoted(written),
    }
}

/// The beginning of a piece of source, on one line.
pub(super) fn quoted(text: &str) -> Arc<str> {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= LONGEST_TEXT {
        return line.into();
    }
    let cut: String = line.chars().take(LONGEST_TEXT - 1).collect();
    format!("{cut}…").into()
}

/// The bytes that say a condition: `n > 0` of `(n > 0)`, `x : all` of a loop over a range.
fn condition_in(node: Node) -> Range<usize> {
    let whole = node.byte_range();
    match node.kind() {
        Kind::ConditionClause | Kind::ParenthesizedExpression if whole.len() > 2 => {
            whole.start + 1..whole.end - 1
        }
        Kind::ForRangeLoop => {
            let begin = node.field(Field::Type).or(node.field(Field::Declarator));
            match (begin, node.field(Field::Right)) {
                (Some(begin), Some(end)) => begin.start_byte()..end.end_byte(),
                _ => whole,
            }
        }
        _ => whole,
    }
}

/// The condition of a loop, or the loop itself where it has none.
pub(super) fn condition_of<'t>(
    condition: Option<Node<'t>>,
    body: Option<Node<'t>>,
) -> Option<Node<'t>> {
    let unwrapped = condition.map(|condition| match condition.kind() {
        Kind::ConditionClause => condition.field(Field::Value).unwrap_or(condition),
        _ => condition,
    });
    unwrapped.or(body)
}
