//! The walk notes what a program does besides launching, with how often.
//!
//! In: calls of the toolkits' functions as a walk meets them, the loops and conditions around them. Out: [`HostEvent`]s in the order of
//! the first of each.

use std::ops::Range;
use std::sync::Arc;

use warplens_hir::Source;
use warplens_ir::Type;
use warplens_syntax::Node;

use super::arguments::Argument;
use super::containers::whole;
use super::events::{
    Around, Decides, Direction, HostCopy, HostEvent, HostEventKind, HostPlace, HostSize,
    MemoryKind, Often, OpenTimes, Past, Side, Wait,
};
use super::leaving::Leaving;
use super::nodes::{condition_in, quoted, text};
use super::state::Host;
use super::value::{Value, binary};

/// Events of one walk, before the same ones become one.
const MOST_EVENTS: usize = 100_000;

/// Statements and expressions nest this deep at most where a function calls itself.
const DEEPEST_AGAIN: u32 = 300;

/// Conditions around one event that are named.
const MOST_DECIDING: usize = 4;

/// What a side of a condition leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    Function,
    Program,
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

    /// Walks a side of a condition that is not known. Also what the program leaves there behind launches; where it leaves without
    /// one, something failed.
    pub(super) fn alternative(
        &mut self,
        side: impl FnOnce(&mut Self) -> bool,
    ) -> (bool, Option<Left>) {
        let (events, returns) = (self.events.len(), self.returns());
        let mut ended = false;
        let goes_on = self.perhaps(|host| {
            let goes_on = side(host);
            ended = matches!(host.leaving, Some(Leaving::Ended));
            goes_on
        });
        let done = self.events.get(events..).unwrap_or_default();
        let launched = done
            .iter()
            .any(|event| matches!(event.kind, HostEventKind::Launch(_)));
        let left = match (ended, self.returns() > returns) {
            _ if goes_on || !launched => None,
            (true, _) => Some(Left::Program),
            (false, true) => Some(Left::Function),
            (false, false) => None,
        };
        (goes_on, left)
    }

    fn returns(&self) -> usize {
        self.frames.last().map_or(0, |frame| frame.returns.len())
    }

    /// What follows is done where the program took the other side of a condition. Not told where more conditions are around it.
    pub(super) fn past_alternative(
        &mut self,
        left: Option<Left>,
        condition: Node,
        side: Side,
        source: Source,
    ) {
        let frame = match left {
            None => return,
            Some(Left::Program) => 0,
            Some(Left::Function) => self.frames.len().saturating_sub(1),
        };
        let since = self.frames.get(frame).map_or(0, |frame| frame.around);
        let around = self.around.get(since..).unwrap_or_default();
        if around
            .iter()
            .any(|around| around.is_open || around.decides.is_loop())
        {
            return;
        }
        self.enter(Some(condition), side, true, source);
        if let Some(other) = self.around.pop()
            && let Some(frame) = self.frames.get_mut(frame)
        {
            frame.past.push(other.decides);
        }
    }

    /// Whether a condition that is not known decides if the program comes here.
    pub(super) fn is_doubtful(&self) -> bool {
        let mut around = self.around.iter();
        around.any(|around| around.is_open || around.past.is_open())
            || self.frames.iter().any(|frame| !frame.past.is_empty())
    }

    /// Whether a function that is being walked may be called again: in a run, where nothing unknown has decided since the first of
    /// its calls that the walk comes here.
    pub(super) fn may_call_again(&self, identity: (usize, usize)) -> bool {
        let first = self.frames.iter().find(|frame| frame.identity == identity);
        let around = first.map_or(0, |frame| frame.around);
        let since = self.around.get(around..).unwrap_or_default();
        self.running.is_some()
            && self.depth < DEEPEST_AGAIN
            && !since
                .iter()
                .any(|around| around.is_open || around.past.is_open())
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
        let around = self.around.iter().rev();
        let mut around = around.filter(|around| around.decides.is_loop());
        let event = HostEvent {
            kind,
            call: call.to_owned(),
            place: place(range, source),
            often: self.often(),
            around: around.next().map(|around| Arc::clone(&around.decides)),
        };
        self.happened(event);
    }

    /// Notes an event, unless there are too many.
    pub(super) fn happened(&mut self, event: HostEvent) {
        if self.events.len() < MOST_EVENTS {
            self.events.push(event);
        } else {
            self.lost_events = true;
        }
    }

    /// How often is done what is done that often each time that the walk comes here.
    pub(super) fn often_each(&mut self, each: u64) -> Often {
        let Some(running) = &mut self.running else {
            return self.often();
        };
        let times = running.times;
        running.times = times.saturating_mul(each);
        let often = self.often();
        if let Some(running) = &mut self.running {
            running.times = times;
        }
        often
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
        let own = self.around.iter().flat_map(|around| {
            let own = around.is_open.then_some((&around.decides, around.certain));
            let past = around.past.sides.iter().map(|side| (side, 0));
            own.into_iter().chain(past)
        });
        let left = self.frames.iter().flat_map(|frame| &frame.past);
        let mut deciding: Vec<(&Arc<Decides>, u64)> = Vec::new();
        let mut is_cut = self.around.iter().any(|around| around.past.is_cut);
        for one in own.chain(left.map(|side| (side, 0))) {
            // The side that does not lead to a `continue`, and what is past it.
            let known = deciding.iter().any(|(known, _)| *known == one.0);
            if !known && deciding.len() < MOST_DECIDING {
                deciding.push(one);
            } else {
                is_cut |= !known;
            }
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
            // `thrust::copy` of elements from one memory to the other.
            "copy" if arguments.len() == 3 => {
                let direction = self.between(value(2), value(0))?;
                let size = HostSize {
                    bytes: self.bytes_between(value(0), value(1)),
                    text: quoted(&format!("{} to {}", written(0), written(1))),
                };
                let host = match direction {
                    Direction::HostToDevice => Some(0),
                    Direction::DeviceToHost => Some(2),
                    Direction::DeviceToDevice => None,
                };
                Some(copy(Some(direction), host, size, false))
            }
            "copy" if arguments.len() == 4 => {
                let between = |at: usize| self.bytes_between(value(at), value(at + 1));
                let to_device = between(1);
                let (direction, host) = match (to_device, between(2)) {
                    (Some(_), _) => (Direction::HostToDevice, 1),
                    (None, Some(_)) => (Direction::DeviceToHost, 2),
                    (None, None) => return None,
                };
                let size = HostSize {
                    bytes: to_device.or(between(2)),
                    text: quoted(&format!("{} to {}", written(host), written(host + 1))),
                };
                Some(copy(Some(direction), Some(host), size, false))
            }
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

    /// `cl::Buffer`: memory of the device, filled where it is made of iterators or of a pointer to copy from.
    pub(super) fn opencl_buffer(&mut self, given: &[Argument], source: Source) -> Value {
        let values: Vec<&Value> = given.iter().map(|one| &one.value).collect();
        let written = |at: usize| {
            let node = given.get(at).and_then(|argument| argument.node);
            node.map_or("", |node| text(node, source))
        };
        let range = (0..values.len().saturating_sub(1))
            .find_map(|at| Some((at, self.bytes_between(values[at], values[at + 1])?)));
        // With a context before the flags, or without.
        let at = match values.as_slice() {
            [_, Value::Int(..), ..] => 1,
            _ => 2,
        };
        let (host, size) = match range {
            Some((from, bytes)) => {
                let text = format!("{} to {}", written(from), written(from + 1));
                let size = HostSize {
                    bytes: Some(bytes),
                    text: quoted(&text),
                };
                (Some(from), size)
            }
            None => {
                let copies = (0..at).any(|at| written(at).contains("COPY_HOST_PTR"));
                let value = values.get(at).map_or(&Value::Unknown, |value| *value);
                (copies.then_some(at + 1), size(value, written(at)))
            }
        };
        let bytes = size.bytes;
        let event = match host {
            Some(host) => HostEventKind::Copy(HostCopy {
                direction: Some(Direction::HostToDevice),
                size,
                host: values.get(host).and_then(|pointer| self.kept_in(pointer)),
                asynchronous: false,
            }),
            None => HostEventKind::Allocate(MemoryKind::Device, size),
        };
        let nodes = || given.iter().filter_map(|argument| argument.node);
        if let (Some(first), Some(last)) = (nodes().next(), nodes().next_back()) {
            let place = first.start_byte()..last.end_byte();
            self.happens(event, "cl::Buffer", place, source);
        }
        let bytes = bytes.and_then(|bytes| i64::try_from(bytes).ok());
        let bytes = bytes.map_or(Value::Unknown, |bytes| Value::Int(bytes, 64, false));
        let memory = self.memory_of(&bytes, MemoryKind::Device);
        if let Some(from) = host.and_then(|at| values.get(at)) {
            self.copied_bytes(&memory, from, &bytes);
        }
        memory
    }

    /// A vector of the device is made of one of the host or assigned to it, or the other way round: a copy. `node`: where.
    pub(super) fn vector_copied(&mut self, to: usize, from: usize, node: Node, source: Source) {
        if self.running.is_none() {
            return;
        }
        let [to, from] = [to, from].map(|slot| Value::Address(whole(slot)));
        let (call, host) = match self.between(&to, &from) {
            Some(Direction::HostToDevice) => ("thrust::device_vector", &from),
            Some(Direction::DeviceToHost) => ("thrust::host_vector", &to),
            Some(Direction::DeviceToDevice) | None => return,
        };
        let copy = HostCopy {
            direction: self.between(&to, &from),
            size: HostSize {
                bytes: self.bytes_behind(&from),
                text: quoted(text(node, source)),
            },
            host: self.kept_in(host),
            asynchronous: false,
        };
        self.happens(HostEventKind::Copy(copy), call, node.byte_range(), source);
    }

    /// Bytes from one element of an array to another.
    fn bytes_between(&self, first: &Value, last: &Value) -> Option<u64> {
        let (Value::Address(from), Value::Address(to)) = (first, last) else {
            return None;
        };
        if from.slot != to.slot || from == to {
            return None;
        }
        self.bytes_from(first)?.checked_sub(self.bytes_from(last)?)
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
