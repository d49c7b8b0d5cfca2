//! A program as it runs: `main` is walked with the arguments that it is started with.
//!
//! In: the file with `main`, what it is linked with, its arguments, the GPU's figures. Out: the launches that it makes, in order, each
//! with how often. What holds: nothing is executed; what the arguments do not decide is unknown; work is bounded.

use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use warplens_syntax::{Expanded, Field, Kind, Node};

use super::builds::{self, Build};
use super::captured::Graphs;
use super::containers::whole;
use super::contents;
use super::events::{self, HostEvent, Side};
use super::index::{self, Index};
use super::nodes::{condition_of, parameter_list, parts};
use super::numbers::{self, Loop};
use super::random::{Generator, Sequences};
use super::state::{Device, Host, Options, Running};
use super::sweeps::Sweep;
use super::value::{Meaning, Place, Step, Value};
use super::walk::Element;
use super::{HeaderNames, LaunchSite};
use warplens_hir::{Item, Source, Unit};
use warplens_ir::Type;

/// Nodes that are read of one run.
const MOST_WORK: u32 = 1_000_000;
/// Of what is left to spend one loop may take this part, before what its turns change is taken as unknown.
const LOOP_WITH_LAUNCHES: u32 = 4;
/// The same for a loop in which nothing is launched.
const LOOP: u32 = 100;
/// The same for a call of a function that launches nothing.
const CALL: u32 = 32;
/// The same for a call within such a call.
const CALL_WITHIN: u32 = 3;
/// Nodes of a loop in such a function.
const LOOP_OF_CALL: u32 = 1_000;
/// Turns, and nodes where their number is not known, of a loop that is walked turn by turn whatever it does.
const FEW_TURNS: u64 = 64;
const LITTLE_WORK: u32 = 2_000;
/// Bytes of stack: calls and expressions nest deeper in a run than a thread of a pool has room for.
const STACK: usize = 64 << 20;
/// Turns that a loop has had, and those that it has left, before some of them represent all.
const TURNS_BEFORE_SWEEP: u32 = 16;
const TURNS_OF_SWEEP: u64 = 512;
/// The same where more launches were met than this.
const LAUNCHES_BEFORE_SWEEP: usize = 2_048;
const TURNS_OF_SWEEP_THEN: u64 = 32;
/// Ways out of a loop, each under a condition that is not known.
const MOST_EXITS: usize = 8;
/// Walks of a turn that represents all that are left, until it changes nothing more.
const MOST_PASSES: usize = 4;
/// Launches that are told apart.
const MOST_LAUNCHES: usize = 4_096;

/// In an argument that nothing says: no argument has it.
pub const UNKNOWN_ARGUMENT: char = '\0';

/// How a program is started.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Run {
    /// `argv[0]`.
    pub name: String,
    /// `argv[1]` and so on, [`UNKNOWN_ARGUMENT`] in one that is not known; `None` where nothing says them.
    pub arguments: Option<Vec<String>>,
    /// What `getenv` finds.
    pub environment: Vec<(String, String)>,
    /// What the toolkit says of the GPU; `None`: its answers are unknown.
    pub device: Option<Device>,
}

/// What a run does with the GPU.
#[derive(Debug, Clone, Default)]
pub struct RunEvents {
    /// Its launches, different ones, in the order of the first of each.
    pub sites: Vec<LaunchSite>,
    /// All that it does, launches among it.
    pub events: Vec<HostEvent>,
    /// Its builds of OpenCL programs, different ones.
    pub builds: Vec<Build>,
    /// The walk ended early, or there is more than is kept.
    pub is_cut: bool,
    /// Parameters of kernels by number of which it mattered whether the kernel may write to what they point to, in order.
    pub asked: Vec<(String, usize)>,
}

/// What a program does where it is started like this, in its order. `texts`: the file with `main` first, then all that it
/// includes and is linked with, each with its items; `None` where the first has no `main`.
pub fn run(texts: &[(&Arc<Expanded>, &[Item])], unit: &Unit, run: &Run) -> Option<RunEvents> {
    let (parsed, _) = texts.first()?;
    let walk = || {
        let index = Index::new(texts, index::WORDS, &HeaderNames::default());
        let mut host = Host::of_texts(parsed, unit, index);
        let main = host.index.by_name.get("main")?;
        let main = *main.iter().find(|&&at| {
            let function = &host.index.functions[at];
            function.class.is_none() && Arc::ptr_eq(function.text, parsed)
        })?;
        host.limit_to(MOST_WORK);
        host.running = Some(Running {
            device: run.device.clone(),
            environment: run.environment.clone(),
            times: 1,
            asked_for_residency: false,
            apart: 0,
            options: Options::default(),
            graphs: Graphs::default(),
            words_left: None,
            may_launch: FxHashMap::default(),
            leading: leading(&host.index),
            too_long: FxHashSet::default(),
            number_steps: numbers::MOST_STEPS,
            not_numbers: FxHashSet::default(),
            sequences: Sequences::default(),
            generators: Vec::new(),
            contents: Vec::new(),
            room: contents::MOST,
            team: None,
            most_threads: None,
            bytes_left: contents::MOST_MADE,
        });
        host.begin_generators();
        host.run_main(main, run);
        host.graphs_not_launched();
        let cut = host.is_spent() || host.lost_events;
        let (sites, became) = merged(std::mem::take(&mut host.sites));
        let (events, more) = events::merged(std::mem::take(&mut host.events), &became);
        let mut asked: Vec<(String, usize)> = host.writes.keys().cloned().collect();
        asked.sort_unstable();
        Some(RunEvents {
            sites,
            events,
            builds: builds::different(std::mem::take(&mut host.builds)),
            is_cut: cut || more,
            asked,
        })
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK);
        let walking = thread.spawn_scoped(scope, walk).ok()?;
        match walking.join() {
            Ok(found) => found,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// The same launches as one, in the order of the first of each; and which of these each became.
fn merged(met: Vec<super::Met>) -> (Vec<LaunchSite>, Vec<Option<usize>>) {
    let mut sites: Vec<LaunchSite> = Vec::new();
    let mut became = Vec::with_capacity(met.len());
    for met in met {
        let same =
            |site: &LaunchSite| site.range == met.site.range && site.same_but_for_reals(&met.site);
        match sites.iter().position(same) {
            Some(at) => {
                let known = &mut sites[at];
                // What only some of these launches find in memory.
                for (known, other) in known.contents.iter_mut().zip(&met.site.contents) {
                    let same = match (&known, other) {
                        (Some(known), Some(other)) => Arc::ptr_eq(known, other) || known == other,
                        _ => false,
                    };
                    if !same {
                        *known = None;
                    }
                }
                // Pointers that move from turn to turn.
                for (known, other) in known.extents.iter_mut().zip(&met.site.extents) {
                    if known != other {
                        *known = None;
                    }
                }
                known.represents |= met.site.represents;
                // A time step that differs from turn to turn.
                known.reals.retain(|real| met.site.reals.contains(real));
                known.count = match (known.count, met.site.count) {
                    (Some(a), Some(b)) => Some(a.saturating_add(b)),
                    _ => None,
                };
                became.push(Some(at));
            }
            None if sites.len() < MOST_LAUNCHES => {
                became.push(Some(sites.len()));
                sites.push(met.site);
            }
            None => became.push(None),
        }
    }
    made_in_loops(&mut sites);
    // How often others like it are made is not how often it is.
    for site in sites.iter_mut().filter(|site| site.represents) {
        site.count = None;
    }
    (sites, became)
}

/// Tells the loops around launches how often these are made, with whatever arguments.
fn made_in_loops(sites: &mut [LaunchSite]) {
    let mut made: FxHashMap<(std::ops::Range<usize>, String), Option<u64>> = FxHashMap::default();
    for site in sites.iter() {
        let key = (site.range.clone(), site.kernel.clone());
        let sum = made.entry(key).or_insert(Some(0));
        *sum = (|| sum.as_ref()?.checked_add(site.count?))();
    }
    for site in sites {
        let key = (site.range.clone(), site.kernel.clone());
        if let (Some(around), Some(Some(times))) = (&site.around, made.get(&key))
            && around.is_first
        {
            site.around = Some(Arc::new(around.made(*times)));
        }
    }
}

impl Host<'_> {
    /// Walks `main` with its arguments.
    fn run_main(&mut self, main: usize, run: &Run) {
        let function = &self.index.functions[main];
        let node = function.node;
        let parsed = self.parsed;
        let source = Source::new(parsed, false);
        self.from_main = true;
        self.entered.insert(node.start_byte());
        let frame = self.frame("main".to_owned(), None, node.start_byte(), source);
        self.frames.push(frame);
        let given = match &run.arguments {
            Some(arguments) => {
                let mut texts: Vec<Value> = vec![Value::Text(run.name.as_str().into())];
                let arguments = arguments.iter();
                texts.extend(arguments.map(|argument| {
                    if argument.contains(UNKNOWN_ARGUMENT) {
                        Value::Unknown
                    } else {
                        Value::Text(argument.as_str().into())
                    }
                }));
                let count = Value::int(texts.len() as i64);
                texts.push(Value::Int(0, 64, true));
                let vector = self.temporary(Type::Unknown(String::new()), Value::list(texts));
                self.slots[vector.slot].decays = true;
                [count, Value::Address(vector)]
            }
            None => [Value::Unknown, Value::Unknown],
        };
        for (parameter, value) in parameter_list(node)
            .map(parts)
            .unwrap_or_default()
            .into_iter()
            .zip(given)
        {
            if let Some(declarator) = parameter.field(Field::Declarator) {
                let name = super::nodes::text(index::declared_name(declarator), source).to_owned();
                let slot = self.slot(Type::Unknown(String::new()), value, false);
                self.slots[slot].decays = false;
                self.bind(&name, Meaning::Slot(slot));
            }
        }
        if let Some(body) = node.field(Field::Body) {
            self.statement(body, source);
        }
        self.frames.clear();
    }

    /// A loop of a run: turn by turn as long as its condition is known and a turn finds out something, then all turns that are left
    /// as one.
    pub(super) fn run_loop(
        &mut self,
        condition: Option<Node>,
        update: Option<Node>,
        body: Option<Node>,
        source: Source,
        body_first: bool,
    ) -> bool {
        let launches = body.is_some_and(|body| self.may_launch(body, source));
        let whole = Loop {
            condition,
            update,
            body,
            body_first,
        };
        if !launches && self.on_numbers(whole, source) {
            return true;
        }
        let before = self.before();
        self.breakables.push(self.breakable(true));
        self.enter(condition_of(condition, body), Side::Loop, false, source);
        let part = if launches { LOOP_WITH_LAUNCHES } else { LOOP };
        let apart = self
            .running
            .as_ref()
            .is_some_and(|running| running.apart > 0);
        let allowed = if apart {
            LOOP_OF_CALL
        } else {
            (before.work / part).max(LITTLE_WORK)
        };
        let grows = body.is_some_and(|body| {
            let text = super::nodes::text(body, source);
            text.contains("push_back") || text.contains("emplace_back")
        });
        let mut counter = Counter::default();
        let mut turn = Turn::default();
        let mut turns = 0u32;
        let ended = loop {
            let value = match condition {
                Some(condition) if turns > 0 || !body_first => self.condition(condition, source),
                _ => Some(true),
            };
            match value {
                _ if self.leaving.is_some() => break Ended::Left,
                Some(false) => break Ended::Past,
                None => break Ended::Open(None),
                Some(true) => {}
            }
            counter.look(self, condition, source);
            if turns >= 2 {
                let spent = before.work - self.work_left();
                let left = counter.turns_left(self, condition, source);
                // A few turns are taken one by one, for what they read may differ: arguments, options.
                let few = left.map_or(spent < LITTLE_WORK, |left| left < FEW_TURNS);
                if let (true, Some(left)) = (launches, left)
                    && turns >= TURNS_BEFORE_SWEEP
                    && turns.is_power_of_two()
                    && self.swept_by(&counter, left, &before, &turn, &|host| {
                        host.one_turn(update, body, source);
                    })
                {
                    counter.finish(self, left);
                    break Ended::Past;
                }
                let allowed = if few && launches && !apart {
                    before.work / 4 * 3
                } else {
                    allowed
                };
                if spent > allowed || !few && self.is_idle(&turn, &before, &counter) {
                    break Ended::Open(left);
                }
            }
            if self.is_spent() {
                break Ended::Open(None);
            }
            turn = Turn {
                mark: self.mark(),
                mark_before: turn.mark,
                sites: self.sites.len(),
                sites_before: turn.sites,
                generators: self.generators_now(),
                lengths: self.lengths(before.touched, grows),
            };
            if !self.turn(body, source) {
                break Ended::Left;
            }
            // Where the program may have left it again and again, how it goes on is not known.
            let exits = self.exits();
            if let Some(update) = update {
                self.eval(update, source);
            }
            turns += 1;
            self.iterated(u64::from(turns));
            if exits > 0 {
                self.may_have_ended(u64::from(turns));
            }
            if exits > MOST_EXITS {
                break Ended::Open(None);
            }
        };
        let goes_on = match ended {
            Ended::Left => false,
            Ended::Past => true,
            Ended::Open(left) => {
                let drawn = self.generators_now();
                let lengths = self.lengths(before.touched, grows);
                // Where it may be left before, its condition does not say how many there are.
                let counted = left.filter(|_| self.exits() == 0);
                self.rest_of_turns(&before, &turn, counted, u64::from(turns), |host| {
                    host.one_turn(update, body, source);
                });
                if let Some(turns) = left {
                    counter.finish(self, turns);
                }
                if let Some(turns) = counted {
                    self.finish_containers(&turn.lengths, &lengths, turns);
                    self.finish_generators(&turn.generators, &drawn, turns);
                }
                true
            }
        };
        self.leave();
        self.left(before.mark, goes_on)
    }

    /// One turn of a loop that represents others.
    fn one_turn(&mut self, update: Option<Node>, body: Option<Node>, source: Source) {
        if let Some(body) = body {
            self.statement(body, source);
        }
        self.continues_meet();
        if let Some(update) = update {
            self.eval(update, source);
        }
    }

    /// Whether what is left of a loop was walked by some of its turns: there are many, and they differ by the counter alone.
    fn swept_by(
        &mut self,
        counter: &Counter,
        left: u64,
        before: &Before,
        turn: &Turn,
        walk: &dyn Fn(&mut Self),
    ) -> bool {
        let many = if self.sites.len() > LAUNCHES_BEFORE_SWEEP {
            TURNS_OF_SWEEP_THEN
        } else {
            TURNS_OF_SWEEP
        };
        let (Some(place), Some(now), Some(step)) = (&counter.place, counter.now, counter.step)
        else {
            return false;
        };
        if left < many || step == 0 || self.exits() > 0 {
            return false;
        }
        let sweep = Sweep {
            counter: place.clone(),
            now,
            step,
            turns: left,
            touched: before.touched,
            began: before.mark,
            slots: before.slots,
            pair: turn.mark_before,
        };
        self.swept(&sweep, walk)
    }

    /// Where a loop begins.
    fn before(&self) -> Before {
        Before {
            touched: self.touched_mark(),
            mark: self.mark(),
            slots: self.slots.len(),
            work: self.work_left(),
        }
    }

    /// One turn of a loop, until its `continue`s have met; false where the program leaves the loop in it.
    fn turn(&mut self, body: Option<Node>, source: Source) -> bool {
        let mark = self.mark();
        if let Some(around) = self.breakables.last_mut() {
            around.turn = mark;
        }
        self.continues_meet();
        let goes_on = body.is_none_or(|body| self.statement(body, source));
        self.continues_meet();
        let around = self.breakables.last_mut();
        let mut ends = around.map_or_else(Vec::new, |around| std::mem::take(&mut around.continues));
        if ends.is_empty() {
            return goes_on;
        }
        self.only_perhaps();
        if goes_on {
            ends.push(self.changes(mark));
        }
        self.take_back(mark);
        self.join(&ends);
        true
    }

    /// How often the walk came to a way out of the loop that it is in.
    fn exits(&self) -> usize {
        self.breakables
            .last()
            .map_or(0, super::state::Breakable::exits)
    }

    /// Leaves a loop that began there, by its end where the walk goes on, or by its `break`s; false where neither is.
    fn left(&mut self, began: usize, goes_on: bool) -> bool {
        let states = self.breakables.pop().map(|around| around.states);
        let mut states = states.unwrap_or_default();
        if states.is_empty() {
            return goes_on;
        }
        self.only_perhaps();
        if goes_on {
            states.push(self.changes(began));
        }
        self.take_back(began);
        self.join(&states);
        true
    }

    /// Whether further turns find out nothing: the last one launched what the one before did, and but for the counter it changed no
    /// integer, text or structure that was known before the loop, or the last two did not.
    fn is_idle(&self, turn: &Turn, before: &Before, counter: &Counter) -> bool {
        let sites = &self.sites;
        let (last, earlier) = (
            sites.get(turn.sites..).unwrap_or_default(),
            sites.get(turn.sites_before..turn.sites).unwrap_or_default(),
        );
        let same = last.len() == earlier.len()
            && last
                .iter()
                .zip(earlier)
                .all(|(a, b)| a.site.same_but_for_reals(&b.site));
        // Variables that may change from turn to turn without another launch.
        let may_change = |slot: usize| {
            let known = &self.slots[slot];
            let counts = counter.place.as_ref();
            slot >= before.slots
                || counts.is_some_and(|place| place.slot == slot)
                || known.bytes.is_some()
                || matches!(
                    known.value,
                    Value::Unknown
                        | Value::Linked(_)
                        | Value::Float(..)
                        | Value::Generator(_)
                        | Value::Data(_)
                )
        };
        // Two buffers that each turn exchanges are back after two.
        same && (!self.varies(turn.mark, may_change) || !self.varies(turn.mark_before, may_change))
    }

    /// The turns that are left of a loop, at once: what its turns change is unknown. A turn is walked again while it changes what the
    /// one before left as it was, for a later turn may see that changed.
    fn rest_of_turns(
        &mut self,
        before: &Before,
        turn: &Turn,
        turns: Option<u64>,
        certain: u64,
        walk: impl Fn(&mut Self),
    ) {
        let mut varying = self.varying(turn.mark);
        self.loosen(before.touched, before.mark, &varying);
        let Some(running) = &mut self.running else {
            return;
        };
        let times = running.times;
        if let Some(turns) = turns {
            running.times = times.saturating_mul(turns);
        }
        if turns.is_none() {
            self.may_have_ended(certain);
        }
        let mut counted = turns.is_some();
        let exits = self.exits();
        let mut pass = 1;
        loop {
            let mark = self.mark();
            let (slots, sites) = (self.slots.len(), self.sites.len());
            let events = self.events.len();
            self.continues_meet();
            self.perhaps(&walk);
            let again = self.varying(mark);
            let known = varying.len();
            varying.extend(again.into_iter().filter(|slot| *slot < slots));
            let settled = varying.len() == known;
            // A way out that the turns before did not come to: their number is not that of the turns that are left.
            let leaves = counted && self.exits() > exits;
            if leaves {
                counted = false;
                if let Some(running) = &mut self.running {
                    running.times = times;
                }
                self.may_have_ended(certain);
            }
            if (settled || pass == MOST_PASSES) && !leaves {
                self.loosen(before.touched, before.mark, &varying);
                break;
            }
            // The launches are those of the last walk.
            self.sites.truncate(sites);
            self.events.truncate(events);
            if pass + 1 == MOST_PASSES {
                self.forget_touched(before.touched);
            } else {
                self.loosen(before.touched, before.mark, &varying);
            }
            pass += usize::from(!leaves);
        }
        if let Some(running) = &mut self.running {
            running.times = times;
        }
    }

    /// A loop over the elements of an array that is known, or over the entries of a map. `written`: where that is and the map's keys,
    /// where the loop may change its elements.
    pub(super) fn run_over(
        &mut self,
        values: &[Value],
        element: Option<&Element>,
        written: Option<(&Place, Option<&[String]>)>,
        node: Node,
        source: Source,
    ) -> bool {
        let began = self.mark();
        let body = node.field(Field::Body);
        self.breakables.push(self.breakable(true));
        self.enter(Some(node), Side::Loop, false, source);
        let mut turns = 0;
        let goes_on = values.iter().enumerate().all(|(at, value)| {
            self.set_element(element, value);
            let mark = self.touched_mark();
            let goes_on = self.turn(body, source);
            if let (Some((array, keys)), true) = (written, self.has_written(element, mark)) {
                let mut place = array.clone();
                place.path.push(match keys {
                    Some(keys) => Step::Field(keys.get(at).cloned().unwrap_or_default()),
                    None => Step::Index(Some(at)),
                });
                let value = self.element_now(element, value);
                self.write(&place, value);
            }
            turns += 1;
            self.iterated(turns);
            if self.exits() > 0 {
                self.may_have_ended(turns);
            }
            goes_on
        });
        self.leave();
        self.left(began, goes_on)
    }

    /// The same for an array of which only the number of elements is known.
    pub(super) fn run_over_unknown(
        &mut self,
        length: u64,
        element: Option<&Element>,
        written: Option<&Place>,
        body: Node,
        node: Node,
        source: Source,
    ) -> bool {
        if length == 0 {
            return true;
        }
        let before = self.before();
        self.breakables.push(self.breakable(true));
        self.enter(Some(node), Side::Loop, false, source);
        let turn = Turn {
            mark: self.mark(),
            sites: self.sites.len(),
            ..Turn::default()
        };
        self.rest_of_turns(&before, &turn, Some(length), 0, |host| {
            host.set_element(element, &Value::Unknown);
            let mark = host.touched_mark();
            host.statement(body, source);
            host.continues_meet();
            if let (Some(array), true) = (written, host.has_written(element, mark)) {
                host.write(array, Value::Unknown);
            }
        });
        self.leave();
        self.left(before.mark, true)
    }

    fn set_element(&mut self, element: Option<&Element>, value: &Value) {
        match element {
            Some(Element::Whole(slot)) => self.write(&whole(*slot), value.clone()),
            Some(Element::Parts(slots)) => {
                for (at, slot) in slots.iter().enumerate() {
                    let part = match value {
                        Value::Record(record) => {
                            record.fields.get(at).map(|(_, value)| value.clone())
                        }
                        Value::Array(values) => values.get(at).cloned(),
                        _ => None,
                    };
                    self.write(&whole(*slot), part.unwrap_or(Value::Unknown));
                }
            }
            None => {}
        }
    }

    /// Whether the variable of such a loop was written since then.
    fn has_written(&self, element: Option<&Element>, since: usize) -> bool {
        let mut touched = self.touched_since(since);
        match element {
            Some(Element::Whole(slot)) => touched.any(|one| one == *slot),
            Some(Element::Parts(slots)) => touched.any(|one| slots.contains(&one)),
            None => false,
        }
    }

    /// What the element is now that was `before`.
    fn element_now(&self, element: Option<&Element>, before: &Value) -> Value {
        match (element, before) {
            (Some(Element::Whole(slot)), _) => self.slots[*slot].value.clone(),
            (Some(Element::Parts(slots)), Value::Record(record)) => {
                let mut record = (**record).clone();
                for ((_, field), slot) in record.fields.iter_mut().zip(slots) {
                    *field = self.slots[*slot].value.clone();
                }
                Value::Record(Rc::new(record))
            }
            _ => Value::Unknown,
        }
    }

    /// The containers that were written since then, with their numbers of elements.
    fn lengths(&self, touched: usize, grows: bool) -> Vec<(usize, i64)> {
        if !grows {
            return Vec::new();
        }
        let written: FxHashSet<usize> = self.touched_since(touched).collect();
        let length = |slot: usize| {
            let container = matches!(self.slots[slot].ty, Type::Array(_, None));
            let place = Place {
                slot,
                path: Vec::new(),
            };
            let length = self.length_of(&place).filter(|_| container)?;
            Some((slot, length.as_int()?))
        };
        written.into_iter().filter_map(length).collect()
    }

    /// Behind a loop whose last iteration that was walked made containers grow from these lengths to those, and of which `turns` are
    /// left.
    fn finish_containers(&mut self, began: &[(usize, i64)], ended: &[(usize, i64)], turns: u64) {
        for (slot, before) in began {
            let after = ended.iter().find(|(of, _)| of == slot);
            let (Some((_, after)), Type::Array(element, _)) = (after, &self.slots[*slot].ty) else {
                continue;
            };
            let size = element.size();
            let length = (|| {
                let more = (after - before).checked_mul(i64::try_from(turns).ok()?)?;
                u64::try_from(after.checked_add(more)?)
                    .ok()?
                    .checked_mul(size)
            })();
            if after > before && size > 0 {
                self.forget(*slot);
                self.set_bytes(*slot, length);
            }
        }
    }

    /// `continue`: the loop's turn ends here.
    pub(super) fn continued(&mut self) {
        let Some(at) = self.breakables.iter().rposition(|around| around.is_loop) else {
            return;
        };
        let changes = self.changes(self.breakables[at].turn);
        self.breakables[at].continues.push(changes);
        self.may_skip();
    }

    /// Whether something may be launched in a part of the program, by its words: launches, names of functions that lead to one, and of
    /// tables of such functions.
    fn may_launch(&mut self, node: Node, source: Source) -> bool {
        let key = (Arc::as_ptr(source.parsed) as usize, node.start_byte());
        let Some(running) = &mut self.running else {
            return false;
        };
        let leading = &running.leading;
        *running.may_launch.entry(key).or_insert_with(|| {
            let text = super::nodes::text(node, source);
            index::WORDS.iter().any(|word| text.contains(word))
                || warplens_syntax::words_in(text).any(|word| leading.contains(word))
        })
    }

    fn step_apart(&mut self, by: i32) {
        if let Some(running) = &mut self.running {
            running.apart = running.apart.saturating_add_signed(by);
        }
    }

    /// Walks a call of a function of the program; `None` where it was not walked to its end. One that launches nothing gets a part of
    /// what is left to spend, and one that this was not enough for gets little the next time; what it wrote until then is unknown:
    /// what a program checks its kernels against costs it more than them. `again`: it calls itself, and its first call has its share.
    pub(super) fn within_its_share(
        &mut self,
        name: &str,
        again: bool,
        walk: impl FnOnce(&mut Self) -> Value,
    ) -> Option<Value> {
        let Some(running) = &self.running else {
            return Some(walk(self));
        };
        if again || running.leading.contains(name) || self.is_spent() {
            return Some(walk(self));
        }
        let part = match running.apart {
            0 => CALL,
            // A call within such a call shares what that one got.
            _ => CALL_WITHIN,
        };
        let share = if running.too_long.contains(name) {
            LITTLE_WORK
        } else {
            (self.work_left() / part).max(LITTLE_WORK)
        };
        let touched = self.touched_mark();
        let whole = self.set_limit(share);
        self.step_apart(1);
        let value = walk(self);
        self.step_apart(-1);
        let cut = self.is_spent();
        self.restore_limit(whole);
        if !cut {
            return Some(value);
        }
        self.forget_touched(touched);
        if let Some(running) = &mut self.running {
            running.too_long.insert(name.to_owned());
        }
        None
    }
}

/// Names whose words in a function's body say that it may come to a launch.
fn leading(index: &Index) -> FxHashSet<String> {
    let functions = index.functions.iter();
    let mut names: FxHashSet<String> = functions
        .filter(|function| function.leads_to_launch && !function.kernel)
        .map(|function| function.name.clone())
        .collect();
    let tables: Vec<String> = index
        .variables
        .iter()
        .filter(|(_, all)| {
            all.iter().any(|variable| {
                let text = &variable.text.text[variable.declarator.byte_range()];
                warplens_syntax::words_in(text).any(|word| names.contains(word))
            })
        })
        .map(|(name, _)| name.clone())
        .collect();
    names.extend(tables);
    names
}

/// Where a loop began.
struct Before {
    touched: usize,
    mark: usize,
    /// Variables that there were.
    slots: usize,
    work: u32,
}

/// Where its last turn began, and the one before it.
#[derive(Default)]
struct Turn {
    mark: usize,
    mark_before: usize,
    sites: usize,
    sites_before: usize,
    /// Where the generators were.
    generators: Vec<Option<Generator>>,
    /// The containers that the loop made grow, with their numbers of elements.
    lengths: Vec<(usize, i64)>,
}

/// How a loop ended.
enum Ended {
    /// Its condition is false.
    Past,
    /// By `break` or `return`.
    Left,
    /// It is not known how it goes on; the turns that are left, where that is known.
    Open(Option<u64>),
}

/// The variable that a loop's condition compares.
#[derive(Debug, Default)]
struct Counter {
    place: Option<Place>,
    before: Option<i64>,
    now: Option<i64>,
    step: Option<i64>,
    /// What each turn multiplies it by; 0 where that differs.
    factor: Option<i64>,
}

impl Counter {
    fn look(&mut self, host: &mut Host, condition: Option<Node>, source: Source) {
        let Some(condition) = condition.map(unwrapped) else {
            return;
        };
        if self.place.is_none() {
            // What a condition assigns happens when it is evaluated, and only then.
            let names =
                |side: &Node| matches!(side.kind(), Kind::Identifier | Kind::FieldExpression);
            let side = condition.field(Field::Left).filter(names);
            self.place = side.and_then(|side| host.place(side, source));
        }
        let Some(place) = &self.place else { return };
        self.before = self.now;
        self.now = match host.read(place) {
            Value::Int(value, ..) => Some(value),
            _ => None,
        };
        let factor = (|| {
            let (now, before) = (self.now?, self.before?);
            (before != 0 && now % before == 0).then(|| now / before)
        })();
        self.factor = match (self.before, self.factor, factor) {
            (None, known, _) => known,
            (_, Some(known), factor) if factor != Some(known) => Some(0),
            (_, known, factor) => known.or(factor).or(Some(0)),
        };
        let step = (|| self.now?.checked_sub(self.before?))();
        self.step = match (self.step, step) {
            (Some(known), Some(step)) if known != step => Some(0),
            (known, step) => known.or(step),
        };
    }

    /// Turns from now on, where the counter moves by a constant towards a bound.
    fn turns_left(&self, host: &mut Host, condition: Option<Node>, source: Source) -> Option<u64> {
        use warplens_syntax::BinaryOperator as Op;
        let condition = condition.map(unwrapped)?;
        let bound = host.eval(condition.field(Field::Right)?, source).as_int()?;
        let (now, step) = (i128::from(self.now?), i128::from(self.step?));
        let bound = i128::from(bound);
        if let (0, Some(factor @ 2..)) = (step, self.factor) {
            return multiplied(
                now,
                bound,
                i128::from(factor),
                warplens_syntax::binary(condition)?,
            );
        }
        let (distance, step) = match warplens_syntax::binary(condition)? {
            Op::Less | Op::NotEqual if step > 0 => (bound - now, step),
            Op::LessEqual if step > 0 => (bound - now + 1, step),
            Op::Greater | Op::NotEqual if step < 0 => (now - bound, -step),
            Op::GreaterEqual if step < 0 => (now - bound + 1, -step),
            _ => return None,
        };
        let turns = distance.max(0) / step + i128::from(distance.max(0) % step != 0);
        u64::try_from(turns).ok()
    }

    /// The counter behind the loop.
    fn finish(&self, host: &mut Host, turns: u64) {
        let value = (|| {
            let turns = i64::try_from(turns).ok()?;
            if let (Some(0), Some(factor @ 2..)) = (self.step, self.factor) {
                let power = factor.checked_pow(u32::try_from(turns).ok()?)?;
                return self.now?.checked_mul(power);
            }
            self.now?.checked_add(self.step?.checked_mul(turns)?)
        })();
        if let (Some(place), Some(value)) = (&self.place, value) {
            host.write(place, Value::Int(value, 64, true));
        }
    }
}

/// Turns of a counter that each of them multiplies, until it is past its bound.
fn multiplied(
    now: i128,
    bound: i128,
    factor: i128,
    compares: warplens_syntax::BinaryOperator,
) -> Option<u64> {
    use warplens_syntax::BinaryOperator as Op;
    if now < 1 {
        return None;
    }
    let goes_on = |value: i128| match compares {
        Op::Less => Some(value < bound),
        Op::LessEqual => Some(value <= bound),
        _ => None,
    };
    let (mut value, mut turns) = (now, 0);
    // A bound of 64 bits is passed before that.
    while turns < 64 && goes_on(value)? {
        value = value.checked_mul(factor)?;
        turns += 1;
    }
    Some(turns)
}

fn unwrapped(condition: Node) -> Node {
    let mut at = condition;
    for _ in 0..4 {
        let inner = match at.kind() {
            Kind::ConditionClause => at.field(Field::Value),
            Kind::ParenthesizedExpression => parts(at).into_iter().next(),
            _ => None,
        };
        match inner {
            Some(inner) => at = inner,
            None => break,
        }
    }
    at
}
