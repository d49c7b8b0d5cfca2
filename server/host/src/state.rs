//! The state of a walk: variables, names, what was met.

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use warplens_syntax::{Expanded, Field, Kind, Node, has_word};

use super::captured::Graphs;
use super::changes::is_changed;
use super::data::DataRef;
use super::events::{Around, Decides, HostEvent, MemoryKind};
use super::index::{Function, Index, Variable};
use super::leaving::{Jump, Leaving};
use super::library_types::LibraryType;
use super::linked::Linked;
use super::opt_in::{asks_for_shared, sets_attributes};
use super::random::Sequences;
use super::team::Team;
use super::value::{MOST_ELEMENTS, Meaning, Place, Scope, Step, Value};
use super::{Build, HeaderNames, Met};
use warplens_hir::Constant;
use warplens_hir::HostName;
use warplens_hir::Unit;
use warplens_hir::{Lowering, Source, default_value};
use warplens_ir::Type;
use warplens_ir::{Bindings, Bound};

/// Nodes that are read in a file.
const MOST_WORK: u32 = 150_000;
/// Nodes that are read from one root, so that no other goes without.
const MOST_OF_ROOT: u32 = 100_000;
/// Nodes that are read of a function once the file's share is spent.
const MOST_OF_REST: u32 = 4_000;
/// Statements, expressions and calls nest this deep at most.
pub(super) const DEEPEST: u32 = 120;
/// The same in a run.
const DEEPEST_OF_RUN: u32 = 400;
/// Trees deeper than this are not given to the lowering.
const DEEPEST_LOWERED: u32 = 60;

/// A variable.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) ty: Type,
    pub(super) value: Value,
    /// It never changes.
    pub(super) constant: bool,
    /// Its name is a pointer to its first element.
    pub(super) decays: bool,
    /// Of memory that a pointer leads to, and of a container: its bytes.
    pub(super) bytes: Option<u64>,
    /// Bytes of what pointers into its memory count, where nothing else says it; 0: of different pointers.
    pub(super) unit: Option<u64>,
    /// Whose memory it is, where a function of a toolkit or of the C library gave it.
    pub(super) memory: Option<MemoryKind>,
    /// A condition that is not known decides whether it is pinned.
    pub(super) may_be_pinned: bool,
    /// Of a container: what its elements hold, as its type says it.
    pub(super) kept: Option<Rc<LibraryType>>,
}

/// How many elements a variable has.
enum Elements {
    Counted(usize),
    /// A container of which that is not known.
    Open,
    /// It is no container.
    None,
}

impl Slot {
    /// A container of the standard library has elements, an array of C an extent.
    pub(super) fn is_container(&self) -> bool {
        matches!(self.ty, Type::Array(_, None)) && !self.decays
    }

    fn elements(&self) -> Elements {
        match &self.ty {
            Type::Array(element, None) if !self.decays => match (self.bytes, element.size()) {
                (Some(bytes), size @ 1..) => Elements::Counted((bytes / size) as usize),
                _ => Elements::Open,
            },
            _ => Elements::None,
        }
    }
}

/// The GPU as `cudaGetDeviceProperties` describes it: CUDA's names of the fields, which HIP shares.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Device {
    /// Field, value. Bytes, threads, blocks, kHz, as the guide says.
    pub properties: Vec<(&'static str, i64)>,
    /// `name`.
    pub name: String,
}

/// What a walk knows of the run that it follows.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) device: Option<Device>,
    pub(super) environment: Vec<(String, String)>,
    /// How often what is walked now happens.
    pub(super) times: u64,
    /// A query of occupancy was answered without the kernel's registers.
    pub(super) asked_for_residency: bool,
    /// Greater than 0 in functions that launch nothing.
    pub(super) apart: u32,
    pub(super) options: Options,
    pub(super) graphs: Graphs,
    /// What `strtok` has left of its text.
    pub(super) words_left: Option<Rc<str>>,
    /// By the text and the first byte of a loop's body: whether something may be launched in it.
    pub(super) may_launch: FxHashMap<(usize, usize), bool>,
    /// Names of functions that lead to a launch, of kernels and of what launches.
    pub(super) leading: FxHashSet<String>,
    /// Functions that what they got to spend was not enough for.
    pub(super) too_long: FxHashSet<String>,
    /// Steps that loops may still take which are executed on numbers.
    pub(super) number_steps: u64,
    /// Loops, by their text and the first byte of their bodies, that cannot be.
    pub(super) not_numbers: FxHashSet<(usize, usize)>,
    /// The random numbers that were drawn last.
    pub(super) sequences: Sequences,
    /// Variables that are generators; the first are the C library's.
    pub(super) generators: Vec<usize>,
    /// Contents that launches found, with the memory that held them and the byte that they begin at.
    pub(super) contents: Vec<(DataRef, usize, Arc<[u8]>)>,
    /// Bytes of these that may still be kept.
    pub(super) room: usize,
    /// The threads of OpenMP that the walk is among.
    pub(super) team: Option<Team>,
    /// Threads of a region that says nothing, where the program has set them.
    pub(super) most_threads: Option<Value>,
    /// Bytes of arrays that may still be made: what a variable held before is kept until its branch is left.
    pub(super) bytes_left: u64,
}

/// A variable at file scope: the number of the namespaces around it, `None` where these do not tell which of several it is, and where
/// it is kept.
type Global = (Option<usize>, Option<usize>);

/// Where `getopt` is.
#[derive(Debug)]
pub(super) struct Options {
    /// `optarg`.
    pub(super) argument: Value,
    /// `optind`.
    pub(super) next: i64,
    /// Within a group of letters: `-abc`.
    pub(super) letter: usize,
    /// Places of the words before the next that are no options.
    pub(super) passed: Vec<usize>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            argument: Value::Unknown,
            next: 1,
            letter: 0,
            passed: Vec::new(),
        }
    }
}

/// A function being walked.
#[derive(Debug)]
pub(super) struct Frame {
    /// As [`super::LaunchSite::inside`] names it.
    pub(super) name: String,
    /// The namespaces around it.
    pub(super) space: Rc<str>,
    pub(super) class: Option<String>,
    pub(super) scopes: Vec<Scope>,
    pub(super) bindings: Bindings,
    pub(super) this: Option<Place>,
    /// What it returned so far.
    pub(super) result: Option<Value>,
    /// The state at each `return`.
    pub(super) returns: Vec<Changes>,
    /// Sides of conditions whose other sides returned behind launches.
    pub(super) past: Vec<Arc<Decides>>,
    /// Where its changes begin in the journal.
    pub(super) mark: usize,
    /// How many conditions that do not hold were around its call.
    pub(super) beside: u32,
    /// For a function of a header: the call in the file's own text that leads there.
    pub(super) own_call: Option<std::ops::Range<usize>>,
    /// First byte of the function or lambda in its text, to notice recursion.
    pub(super) identity: (usize, usize),
    /// How many loops and conditions were around its call.
    pub(super) around: usize,
    /// A lambda's, which is written in the function that calls it or hands it on.
    pub(super) is_lambda: bool,
    /// Jumps to its labels that some runs make.
    pub(super) jumps: Vec<Jump>,
    /// Labels of the blocks that the walk is in, each with how many loops and `switch`es are around it.
    pub(super) labels: Vec<(Rc<str>, usize)>,
}

/// A loop or a `switch`.
#[derive(Debug)]
pub(super) struct Breakable {
    pub(super) mark: usize,
    pub(super) beside: u32,
    pub(super) states: Vec<Changes>,
    /// A loop, whose turn began there in the journal.
    pub(super) is_loop: bool,
    pub(super) turn: usize,
    /// The state at each `continue` of the turn.
    pub(super) continues: Vec<Changes>,
    /// How often the walk came to a `return` in it, or to another way out of the function.
    pub(super) leaves: usize,
}

impl Breakable {
    /// How often the walk came to a way out of it.
    pub(super) fn exits(&self) -> usize {
        self.states.len() + self.leaves
    }
}

/// Variables with what they hold, where that differs from the state they are compared with.
pub(super) type Changes = FxHashMap<usize, Held>;

/// What a call around a launch does with the memory of an argument.
#[derive(Debug)]
pub(super) struct Handled {
    /// Without its number of bytes.
    pub(super) memory: super::HostMemory,
    /// The expression of that.
    pub(super) size: Option<std::ops::Range<usize>>,
}

/// What a variable held at some time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Held {
    value: Value,
    /// As of a [`Slot`].
    bytes: Option<u64>,
}

/// A type that the lowering read, and under which names.
struct ReadType {
    names: Vec<(String, HostName)>,
    bindings: Bindings,
    ty: Type,
    value: Option<i64>,
}

pub(super) struct Host<'p> {
    pub(super) parsed: &'p Arc<Expanded>,
    pub(super) unit: &'p Unit,
    pub(super) index: Index<'p>,
    pub(super) lowering: Lowering<'p>,
    /// Types that it read last, by text and by first and last node.
    types: FxHashMap<(usize, Range<usize>, Range<usize>), ReadType>,
    pub(super) slots: Vec<Slot>,
    /// Numbers that are not known, met so far.
    numbers: u32,
    journal: Vec<(usize, Held)>,
    /// Where pointers may lead that are not known any more.
    pub(super) pointees: FxHashSet<usize>,
    /// Every variable written, in order, taken back or not.
    touched: Vec<usize>,
    pub(super) frames: Vec<Frame>,
    /// Variables at file scope met so far, by their names: the namespaces around each, and where it is kept; `None` while it is being
    /// read, and for what is not a variable.
    globals: FxHashMap<String, Vec<Global>>,
    /// Those of them that the file changes somewhere.
    changing: Vec<usize>,
    pub(super) breakables: Vec<Breakable>,
    /// What a run is leaving functions and loops for, other than by `return` and `break`: nothing happens until then.
    pub(super) leaving: Option<Leaving>,
    /// The `try`s that the walk is in, outermost first: whether some runs throw in it.
    pub(super) attempts: Vec<bool>,
    pub(super) sites: Vec<Met>,
    /// What else happens, and the launches among it, as far as a run is followed.
    pub(super) events: Vec<HostEvent>,
    /// There were more of them than are kept.
    pub(super) lost_events: bool,
    /// The loops and conditions that the walk is in, outermost first.
    pub(super) around: Vec<Around>,
    /// Builds met, and whether the program does not come there with the values that are known.
    pub(super) builds: Vec<(Build, bool)>,
    /// Functions that a call or a walk came to, by first byte.
    pub(super) entered: FxHashSet<usize>,
    /// Greater than 0 in what the program does not come to with the values that are known.
    pub(super) beside: u32,
    /// How often something was walked that the program does not come to.
    pub(super) asides: u32,
    /// Loops being walked a second time.
    pub(super) again: u32,
    pub(super) depth: u32,
    /// Reading what an operator works on.
    pub(super) in_operation: bool,
    work: u32,
    limit: u32,
    /// Walking from `main`: globals hold their initial values.
    pub(super) from_main: bool,
    /// Kernels by the handles that are made of them, once a launch asked.
    pub(super) handles: Option<FxHashMap<String, Vec<String>>>,
    /// Which parameters of functions declared elsewhere are references.
    pub(super) references: FxHashMap<String, Option<Vec<bool>>>,
    /// Texts by their addresses, and whether they set attributes of functions: each has many launches.
    attributes: FxHashMap<usize, bool>,
    /// The same with a kernel's name, and whether they ask for much shared memory for it.
    shared_asked: FxHashMap<(usize, String), bool>,
    pub(super) headers: Option<Vec<Arc<Expanded>>>,
    /// Variables of functions that stay from call to call, by their text and place.
    pub(super) statics: FxHashMap<(usize, usize), usize>,
    /// What is done with the memory of launches' arguments, by their text and place.
    pub(super) handled: FxHashMap<(usize, usize), Rc<Vec<Handled>>>,
    /// By a function's node and a variable in it: whether its memory may be paged out.
    pub(super) pageable: FxHashMap<(usize, String), bool>,
    /// The run that is followed; `None` where the text is walked for every run.
    pub(super) running: Option<Running>,
    /// By classes that are defined elsewhere: the fields on which their functions agree.
    pub(super) agreed: FxHashMap<String, Vec<(String, Value)>>,
    /// By a kernel and the position of a parameter: whether it may write to the memory that it is given.
    pub(super) writes: FxHashMap<(String, usize), bool>,
}

impl<'p> Host<'p> {
    pub(super) fn new(
        parsed: &'p Arc<Expanded>,
        items: &'p [warplens_hir::Item],
        unit: &'p Unit,
        words: &[&str],
        headers: &HeaderNames,
    ) -> Host<'p> {
        Host::of_texts(parsed, unit, Index::new(&[(parsed, items)], words, headers))
    }

    /// True where a text sets attributes of functions.
    pub(super) fn sets_attributes(&mut self, text: &Expanded) -> bool {
        let address = std::ptr::from_ref(text) as usize;
        let known = self.attributes.entry(address);
        *known.or_insert_with(|| sets_attributes(&text.text))
    }

    /// True where a text asks for more shared memory for a kernel than a block has without asking.
    pub(super) fn asks_for_shared(&mut self, text: &str, kernel: &str) -> bool {
        let key = (text.as_ptr().addr(), kernel.to_owned());
        let known = self.shared_asked.entry(key);
        *known.or_insert_with(|| asks_for_shared(text, kernel))
    }

    /// The same for a text of several.
    pub(super) fn of_texts(
        parsed: &'p Arc<Expanded>,
        unit: &'p Unit,
        index: Index<'p>,
    ) -> Host<'p> {
        Host {
            parsed,
            unit,
            index,
            lowering: Lowering::for_unit(unit, parsed, false),
            types: FxHashMap::default(),
            slots: Vec::new(),
            numbers: 0,
            journal: Vec::new(),
            pointees: FxHashSet::default(),
            touched: Vec::new(),
            frames: Vec::new(),
            globals: FxHashMap::default(),
            agreed: FxHashMap::default(),
            changing: Vec::new(),
            breakables: Vec::new(),
            leaving: None,
            attempts: Vec::new(),
            sites: Vec::new(),
            events: Vec::new(),
            lost_events: false,
            around: Vec::new(),
            builds: Vec::new(),
            entered: FxHashSet::default(),
            beside: 0,
            asides: 0,
            again: 0,
            depth: 0,
            in_operation: false,
            work: 0,
            limit: MOST_OF_ROOT,
            from_main: false,
            references: FxHashMap::default(),
            attributes: FxHashMap::default(),
            shared_asked: FxHashMap::default(),
            handles: None,
            statics: FxHashMap::default(),
            handled: FxHashMap::default(),
            pageable: FxHashMap::default(),
            headers: None,
            running: None,
            writes: FxHashMap::default(),
        }
    }

    /// Walks every function without a caller, then those that no call came to.
    pub(super) fn run(&mut self) {
        let mut roots: Vec<usize> = (0..self.index.functions.len())
            .filter(|&at| {
                let function = &self.index.functions[at];
                function.leads_to_launch && !function.called
            })
            .collect();
        roots.sort_by_key(|&at| self.index.functions[at].name != "main");
        for at in roots {
            self.limit = MOST_WORK.min(self.work + MOST_OF_ROOT);
            self.root(at);
        }
        for at in 0..self.index.functions.len() {
            let function = &self.index.functions[at];
            let cut = self.work >= self.limit;
            if function.launches && (cut || !self.entered.contains(&function.node.start_byte())) {
                self.limit = MOST_WORK.max(self.work + MOST_OF_REST);
                if self.work > 2 * MOST_WORK {
                    return;
                }
                self.root(at);
            }
        }
    }

    fn root(&mut self, at: usize) {
        self.from_main = self.index.functions[at].name == "main";
        self.globals.clear();
        self.changing.clear();
        self.slots.clear();
        self.pointees.clear();
        self.journal.clear();
        self.touched.clear();
        self.breakables.clear();
        self.walk_root(at);
        self.frames.clear();
    }

    /// True where statements and expressions may not nest any deeper.
    pub(super) fn is_too_deep(&self) -> bool {
        let deepest = match self.running {
            Some(_) => DEEPEST_OF_RUN,
            None => DEEPEST,
        };
        self.depth > deepest
    }

    /// Counts a node; true where there is nothing left to spend.
    pub(super) fn spent(&mut self) -> bool {
        self.work += 1;
        self.work > self.limit
    }

    pub(super) fn is_spent(&self) -> bool {
        self.work > self.limit
    }

    /// How a text is read: what is in another than the file's own is a header's.
    pub(super) fn source_of<'t>(&self, text: &'t Arc<Expanded>) -> Source<'t> {
        Source::new(text, !Arc::ptr_eq(text, self.parsed))
    }

    /// The text that a function is in, where the function is.
    pub(super) fn source_in(&self, function: &Function<'p>) -> Source<'p> {
        self.source_of(function.text).within(function.space)
    }

    /// From now on that many nodes may be read.
    pub(super) fn limit_to(&mut self, nodes: u32) {
        self.limit = self.work.saturating_add(nodes);
    }

    /// The same for a part of the walk, which ends with [`Host::restore_limit`] of what this gives.
    pub(super) fn set_limit(&mut self, nodes: u32) -> u32 {
        let whole = self.limit;
        self.limit = self.work.saturating_add(nodes).min(whole);
        whole
    }

    pub(super) fn restore_limit(&mut self, whole: u32) {
        self.limit = whole;
    }

    /// Nodes that may still be read.
    pub(super) fn work_left(&self) -> u32 {
        self.limit.saturating_sub(self.work)
    }

    /// What a loop or a `switch` that begins here is left by.
    pub(super) fn breakable(&self, is_loop: bool) -> Breakable {
        Breakable {
            mark: self.mark(),
            beside: self.beside,
            states: Vec::new(),
            is_loop,
            turn: self.mark(),
            continues: Vec::new(),
            leaves: 0,
        }
    }

    // ---- variables -----------------------------------------------------------------------------

    pub(super) fn slot(&mut self, ty: Type, value: Value, constant: bool) -> usize {
        let decays = matches!(ty, Type::Array(..));
        self.slots.push(Slot {
            ty,
            value,
            constant,
            decays,
            bytes: None,
            unit: None,
            memory: None,
            may_be_pinned: false,
            kept: None,
        });
        self.slots.len() - 1
    }

    pub(super) fn bind(&mut self, name: &str, meaning: Meaning) {
        if let Some(scope) = self
            .frames
            .last_mut()
            .and_then(|frame| frame.scopes.last_mut())
        {
            scope.insert(name.to_owned(), meaning);
        }
    }

    pub(super) fn read(&self, place: &Place) -> Value {
        self.slots
            .get(place.slot)
            .map_or(Value::Unknown, |slot| slot.value.read(&place.path))
    }

    /// The same; an integer that is not known becomes a number of its own, so that what is computed from it is
    /// known to depend on it.
    pub(super) fn read_number(&mut self, place: &Place) -> Value {
        let value = self.read(place);
        if value != Value::Unknown {
            return value;
        }
        let Type::Int { bits: 32.., .. } = self.type_at(place, &value) else {
            return value;
        };
        let number = Value::Linked(Linked::new(self.numbers));
        self.numbers += 1;
        // Which element it is of, is not known: the others stay what they are.
        if place.path.contains(&Step::Index(None)) {
            return number;
        }
        self.write(place, number);
        self.read(place)
    }

    pub(super) fn write(&mut self, place: &Place, value: Value) {
        let Some(slot) = self.slots.get(place.slot) else {
            return;
        };
        // What a pointer leads to is kept with it where it is not known which variable that is.
        let through = matches!(slot.ty, Type::Pointer(..)) && !place.path.is_empty();
        if through && !matches!(slot.value, Value::Address(_)) {
            self.written_somewhere();
        }
        let Some(slot) = self.slots.get_mut(place.slot) else {
            return;
        };
        // A container is as long as it was, whichever of its elements is known now.
        let as_long = match (&slot.value, place.path.as_slice()) {
            // It may be a container: how long it is does not follow from an element that is written.
            (Value::Unknown, [Step::Index(_), ..])
                if self.running.is_some()
                    && slot.bytes.is_none()
                    && matches!(slot.ty, Type::Unknown(_)) =>
            {
                return;
            }
            (Value::Unknown, [_, ..]) if self.running.is_some() => match slot.elements() {
                Elements::Counted(count) if count <= MOST_ELEMENTS => {
                    Some(Value::list(vec![Value::Unknown; count]))
                }
                Elements::Counted(_) | Elements::Open => return,
                Elements::None => None,
            },
            _ => None,
        };
        let now = as_long.as_ref().unwrap_or(&slot.value);
        let value = match (place.path.as_slice(), &slot.ty) {
            ([], ty) => value.converted(ty),
            ([Step::Index(_)], Type::Array(element, _)) => {
                now.with(&place.path, value.converted(element))
            }
            _ => now.with(&place.path, value),
        };
        let bytes = slot.bytes;
        if let (true, Type::Array(element, None)) = (slot.is_container(), &slot.ty) {
            match &value {
                Value::Array(values) => {
                    let size = element.size();
                    let all = (values.len() as u64).checked_mul(size);
                    slot.bytes = all.filter(|_| size > 0 || values.is_empty());
                }
                Value::Data(data) => slot.bytes = Some(data.0.len() as u64),
                _ => {}
            }
        }
        let value = std::mem::replace(&mut slot.value, value);
        self.journal.push((place.slot, Held { value, bytes }));
        self.touched.push(place.slot);
    }

    /// The memory of a variable has that many bytes now; `None`: not known.
    pub(super) fn set_bytes(&mut self, slot: usize, bytes: Option<u64>) {
        if self.slots[slot].bytes != bytes {
            let old = self.held(slot);
            self.journal.push((slot, old));
            self.touched.push(slot);
            self.slots[slot].bytes = bytes;
        }
    }

    fn held(&self, slot: usize) -> Held {
        let known = &self.slots[slot];
        Held {
            value: known.value.clone(),
            bytes: known.bytes,
        }
    }

    fn holds(&self, slot: usize, held: &Held) -> bool {
        let known = &self.slots[slot];
        known.bytes == held.bytes && known.value == held.value
    }

    pub(super) fn forget(&mut self, slot: usize) {
        let Some(known) = self.slots.get(slot) else {
            return;
        };
        if !known.constant {
            let place = Place {
                slot,
                path: Vec::new(),
            };
            self.forget_containers(&place);
            self.write(&place, Value::Unknown);
        }
    }

    /// The same for what is given away by address or by reference: from there one gets to the other elements of an
    /// array, not to the fields beside it.
    pub(super) fn forget_at(&mut self, place: &Place) {
        let field = |step: &Step| matches!(step, Step::Field(_));
        let Some(last) = place.path.iter().rposition(field) else {
            self.forget(place.slot);
            return;
        };
        if self
            .slots
            .get(place.slot)
            .is_some_and(|slot| !slot.constant)
        {
            let place = Place {
                slot: place.slot,
                path: place.path[..=last].to_vec(),
            };
            self.forget_containers(&place);
            self.write(&place, Value::Unknown);
        }
    }

    /// Something happened that cannot be followed.
    pub(super) fn forget_everything(&mut self) {
        self.work = self.work.saturating_add(self.slots.len() as u32);
        for slot in 0..self.slots.len() {
            if self.slots[slot].value != Value::Unknown {
                self.forget(slot);
            }
        }
    }

    pub(super) fn mark(&self) -> usize {
        self.journal.len()
    }

    pub(super) fn touched_mark(&self) -> usize {
        self.touched.len()
    }

    /// The variables written since then, in order.
    pub(super) fn touched_since(&self, since: usize) -> impl Iterator<Item = usize> + '_ {
        self.touched[since..].iter().copied()
    }

    pub(super) fn forget_touched(&mut self, since: usize) {
        let slots: FxHashSet<usize> = self.touched[since..].iter().copied().collect();
        for slot in slots {
            self.forget(slot);
        }
    }

    /// The variables written since the mark that hold something else than before.
    pub(super) fn varying(&self, mark: usize) -> FxHashSet<usize> {
        let before = self.values_at(mark).into_iter();
        before
            .filter(|(slot, old)| !self.holds(*slot, old))
            .map(|(slot, _)| slot)
            .collect()
    }

    /// Whether such a variable holds something else than before, others than those left aside. Ends at the first.
    pub(super) fn varies(&self, mark: usize, left_aside: impl Fn(usize) -> bool) -> bool {
        // The first entry of a variable has what it held at the mark; an array is long to compare.
        let mut seen: FxHashSet<usize> = FxHashSet::default();
        self.journal[mark..]
            .iter()
            .any(|(slot, old)| !left_aside(*slot) && seen.insert(*slot) && !self.holds(*slot, old))
    }

    /// What is written since then may have changed again: the varying variables are unknown, of a structure the fields that changed.
    pub(super) fn loosen(&mut self, touched: usize, mark: usize, varying: &FxHashSet<usize>) {
        let written: FxHashSet<usize> = self.touched[touched..].iter().copied().collect();
        let mut loosened: Vec<(usize, Value, bool)> = Vec::new();
        {
            let before = self.values_at(mark);
            for slot in written {
                let now = &self.slots[slot];
                if let Some(old) = before.get(&slot)
                    && varying.contains(&slot)
                {
                    let grew = old.bytes != now.bytes;
                    loosened.push((slot, old.value.loosened(&now.value), grew));
                }
            }
        }
        self.work = self.work.saturating_add(loosened.len() as u32);
        for (slot, value, grew) in loosened {
            if grew {
                self.set_bytes(slot, None);
            }
            if self.slots[slot].constant || self.slots[slot].value == value {
                continue;
            }
            let place = Place {
                slot,
                path: Vec::new(),
            };
            let before = self.slots[slot].value.clone();
            self.loses(&before, &value);
            self.write(&place, value);
        }
    }

    /// What the variables held then that were written since.
    fn values_at(&self, mark: usize) -> FxHashMap<usize, &Held> {
        let mut before: FxHashMap<usize, &Held> = FxHashMap::default();
        for (slot, old) in self.journal[mark..].iter().rev() {
            before.insert(*slot, old);
        }
        before
    }

    /// What differs from the state at the mark.
    pub(super) fn changes(&mut self, mark: usize) -> Changes {
        self.work = self
            .work
            .saturating_add((self.journal.len() - mark) as u32 / 8);
        self.journal[mark..]
            .iter()
            .map(|&(slot, _)| (slot, self.held(slot)))
            .collect()
    }

    pub(super) fn take_back(&mut self, mark: usize) {
        while self.journal.len() > mark {
            let Some((slot, old)) = self.journal.pop() else {
                return;
            };
            self.slots[slot].value = old.value;
            self.slots[slot].bytes = old.bytes;
        }
    }

    /// The state is one of these, each told against the state now.
    pub(super) fn join(&mut self, states: &[Changes]) {
        let slots: FxHashSet<usize> = states
            .iter()
            .flat_map(|state| state.keys().copied())
            .collect();
        for slot in slots {
            let now = self.held(slot);
            let mut joined: Option<Held> = None;
            for state in states {
                let held = state.get(&slot).unwrap_or(&now);
                joined = Some(match joined {
                    Some(joined) => Held {
                        value: joined.value.join(&held.value),
                        bytes: joined.bytes.filter(|_| joined.bytes == held.bytes),
                    },
                    None => held.clone(),
                });
            }
            let (value, bytes) = match joined {
                Some(joined) => (joined.value, joined.bytes),
                None => (Value::Unknown, None),
            };
            for state in states {
                let held = state.get(&slot).unwrap_or(&now);
                self.loses(&held.value, &value);
            }
            self.journal.push((slot, now));
            self.touched.push(slot);
            let known = &mut self.slots[slot];
            (known.value, known.bytes) = (value, bytes);
        }
    }

    // ---- names ---------------------------------------------------------------------------------

    pub(super) fn local(&self, name: &str) -> Option<&Meaning> {
        self.frames
            .last()?
            .scopes
            .iter()
            .rev()
            .find_map(|scope| scope.get(name))
    }

    /// Where a variable is: local, a field of the object, at file scope.
    pub(super) fn place_named(&mut self, name: &str) -> Option<Place> {
        if let Some(meaning) = self.local(name) {
            return match meaning {
                Meaning::Slot(slot) => Some(Place {
                    slot: *slot,
                    path: Vec::new(),
                }),
                Meaning::Place(place) => Some(place.clone()),
                Meaning::Type(_) => None,
            };
        }
        if self.binding(name).is_some() {
            return None;
        }
        if let Some(place) = self.field_of_this(name) {
            return Some(place);
        }
        self.global(name).map(|slot| Place {
            slot,
            path: Vec::new(),
        })
    }

    pub(super) fn binding(&self, name: &str) -> Option<&Bound> {
        let bindings = &self.frames.last()?.bindings;
        bindings
            .iter()
            .rev()
            .find(|(of, _)| of == name)
            .map(|(_, bound)| bound)
    }

    /// Where a variable at file scope is.
    pub(super) fn global_place(&mut self, name: &str) -> Option<Place> {
        self.global(name).map(|slot| Place {
            slot,
            path: Vec::new(),
        })
    }

    /// Of the variables of a name the namespaces of those that are meant here: the nearest; `None` where that is not told.
    fn space_of(&self, name: &str, all: &[Variable]) -> Option<usize> {
        let first = all.first()?.space;
        if all.iter().all(|variable| variable.space == first) {
            return Some(first);
        }
        let around = self.frames.last().map_or("", |frame| &frame.space);
        let spaces = all
            .iter()
            .map(|variable| &*self.index.spaces[variable.space]);
        let spaces: Vec<&str> = spaces.collect();
        let nearest = warplens_hir::nearest(name, around, &spaces)?;
        let mut known = self.index.spaces.iter();
        known.position(|space| **space == *nearest)
    }

    fn keep_global(&mut self, name: &str, space: Option<usize>, slot: Option<usize>) {
        let known = self.globals.entry(name.to_owned()).or_default();
        known.retain(|(of, _)| *of != space);
        known.push((space, slot));
    }

    fn global(&mut self, name: &str) -> Option<usize> {
        let all = self.index.variables.get(name)?;
        let space = self.space_of(name, all);
        let known = self.globals.get(name);
        let known = known.and_then(|known| known.iter().find(|(of, _)| *of == space));
        if let Some((_, slot)) = known {
            return *slot;
        }
        let variables: Vec<Variable> = all
            .iter()
            .filter(|variable| space.is_none_or(|space| variable.space == space))
            .copied()
            .collect();
        self.keep_global(name, space, None);
        // Declared more than once: `extern` first, or a member and a variable of one name.
        let variable = *variables
            .iter()
            .find(|variable| variable.declarator.kind() == Kind::InitDeclarator)
            .or_else(|| variables.first())?;
        let several = variables
            .iter()
            .filter(|variable| {
                !variable.text.text[variable.declaration.byte_range()].starts_with("extern")
            })
            .count()
            > 1
            && self.running.is_none();
        if variable.declaration.kind() == Kind::FieldDeclaration {
            let text = &variable.text.text[variable.declaration.byte_range()];
            if several || !text.contains("static") {
                return None;
            }
        }
        let text = &variable.text.text[variable.declaration.byte_range()];
        let head = &text[..text.find(['=', ';', '{', '(']).unwrap_or(text.len())];
        let word = |word: &str| has_word(head, word);
        let constant = (word("const") && !head.contains('*')) || word("constexpr");
        let elsewhere =
            word("extern") || word("__device__") || word("__constant__") || word("__managed__");
        let declaration = self.index.declaration_of(name);
        let fixed = !several
            && (constant
                || (!elsewhere
                    && self.running.is_none()
                    && !is_changed(self.parsed, name, declaration.as_slice())));
        let mut definitions: Vec<String> = variables
            .iter()
            .filter(|one| {
                one.declarator.kind() == Kind::InitDeclarator
                    && one.declaration.kind() != Kind::FieldDeclaration
            })
            .map(|one| one.text.text[one.declaration.byte_range()].to_owned())
            .collect();
        definitions.sort_unstable();
        definitions.dedup();
        // At file scope nothing local is seen.
        let frame = Frame::at_file_scope(&self.index.spaces[variable.space]);
        self.frames.push(frame);
        let source = self.source_of(variable.text);
        let slot = self.declare(variable.declaration, variable.declarator, source);
        self.frames.pop();
        let slot = slot?;
        if self.running.is_some() && !constant {
            // Of several namespaces, or made of what the program has changed meanwhile.
            let changed = |word: &str| {
                let mut others = self.globals.get(word).into_iter().flatten();
                others.any(|(_, other)| other.is_some_and(|other| self.touched.contains(&other)))
            };
            let own = &variable.text.text[variable.declarator.byte_range()];
            let late = definitions.len() == 1
                && warplens_syntax::words_in(own).any(|word| word != name && changed(word));
            if definitions.len() > 1 || late {
                self.slots[slot].value = Value::Unknown;
                self.slots[slot].bytes = None;
            }
        }
        self.slots[slot].constant = constant;
        let initialised = variable.declarator.kind() == Kind::InitDeclarator
            || variable.declarator.field(Field::DefaultValue).is_some()
            || default_value(variable.declaration, variable.declarator, source).is_some();
        let starts_so = self.from_main && initialised && !elsewhere && !several;
        if !fixed && !starts_so {
            let first = std::mem::replace(&mut self.slots[slot].value, Value::Unknown);
            // Any other is zero before it is written, which is a value like the others.
            if matches!(first, Value::Dims(_)) && self.running.is_none() && !elsewhere && !several {
                self.slots[slot].value = self.agreed(name, None, &first, declaration.as_slice());
            }
        }
        if !fixed && (starts_so || self.slots[slot].value == Value::Unknown) {
            self.changing.push(slot);
        }
        self.keep_global(name, space, Some(slot));
        Some(slot)
    }

    /// A call that is not walked may have changed these.
    pub(super) fn forget_globals(&mut self) {
        for slot in self.changing.clone() {
            if self.slots[slot].value != Value::Unknown {
                self.forget(slot);
            }
        }
    }

    /// A constant of the file or of a header.
    pub(super) fn unit_constant(&self, name: &str) -> Option<Value> {
        match self.unit.any_constant(name)? {
            Constant::Int(value, ty) => Some(Value::of(*value, ty)),
            Constant::Data(..) => None,
        }
    }

    // ---- the lowering --------------------------------------------------------------------------

    /// Lets the lowering read a node under the names that it uses; `None` where that would be too much.
    pub(super) fn lowered<T>(
        &mut self,
        nodes: &[Node],
        source: Source,
        read: impl FnOnce(&mut Lowering<'p>) -> T,
    ) -> Option<T> {
        let names = self.names_in(nodes, source)?;
        let bindings = self.bindings_here();
        let result = self.lowering.in_host(names, &bindings, read);
        self.work = self.work.saturating_add(self.lowering.host_work());
        Some(result)
    }

    /// The same for a type, and the value where the text decides it. These are kept: a loop comes to the same text with the same
    /// names again and again.
    pub(super) fn lowered_type(
        &mut self,
        nodes: &[Node],
        source: Source,
        read: impl FnOnce(&mut Lowering<'p>) -> (Type, Option<i64>),
    ) -> Option<(Type, Option<i64>)> {
        let names = self.names_in(nodes, source)?;
        let bindings = self.bindings_here();
        let place = |node: Option<&Node>| node.map_or(0..0, Node::byte_range);
        let key = (
            Arc::as_ptr(source.parsed) as usize,
            place(nodes.first()),
            place(nodes.last()),
        );
        if let Some(known) = self.types.get(&key)
            && known.names == names
            && known.bindings == bindings
        {
            return Some((known.ty.clone(), known.value));
        }
        let (ty, value) = self.lowering.in_host(names.clone(), &bindings, read);
        self.work = self.work.saturating_add(self.lowering.host_work());
        let read = ReadType {
            names,
            bindings,
            ty: ty.clone(),
            value,
        };
        self.types.insert(key, read);
        Some((ty, value))
    }

    /// What the template parameters of the function represent.
    fn bindings_here(&self) -> Bindings {
        let frame = self.frames.last();
        frame
            .map(|frame| frame.bindings.clone())
            .unwrap_or_default()
    }

    /// The names in these nodes that the walk knows.
    fn names_in(&mut self, nodes: &[Node], source: Source) -> Option<Vec<(String, HostName)>> {
        let mut names: Vec<(String, HostName)> = Vec::new();
        let mut seen: FxHashSet<&str> = FxHashSet::default();
        for node in nodes {
            let mut open = vec![(*node, 0)];
            while let Some((node, depth)) = open.pop() {
                if depth > DEEPEST_LOWERED || self.spent() {
                    return None;
                }
                if matches!(
                    node.kind(),
                    Kind::Identifier | Kind::TypeIdentifier | Kind::NamespaceIdentifier
                ) {
                    let name = source.parsed.text.get(node.byte_range()).unwrap_or("");
                    if seen.insert(name)
                        && let Some(meaning) = self.host_name(name)
                    {
                        names.push((name.to_owned(), meaning));
                    }
                    continue;
                }
                open.extend(node.named_children().map(|child| (child, depth + 1)));
            }
        }
        Some(names)
    }

    fn host_name(&mut self, name: &str) -> Option<HostName> {
        if let Some(Meaning::Type(ty)) = self.local(name) {
            return Some(HostName::Type(ty.clone()));
        }
        let place = self.place_named(name)?;
        let value = self.read(&place);
        let ty = self.type_at(&place, &value);
        Some(HostName::Variable(
            ty,
            value.as_int().filter(|_| matches!(value, Value::Int(..))),
        ))
    }

    pub(super) fn type_at(&self, place: &Place, value: &Value) -> Type {
        if place.path.is_empty() {
            return self.slots[place.slot].ty.clone();
        }
        // A field: by the structure's layout, else by what it holds.
        let mut ty = &self.slots[place.slot].ty;
        for step in &place.path {
            let next = match (step, ty) {
                (super::value::Step::Field(name), Type::Struct(structure)) => structure
                    .fields
                    .iter()
                    .find(|field| field.name == *name)
                    .map(|field| &field.ty),
                (super::value::Step::Index(_), ty) => ty.element(),
                _ => None,
            };
            match next {
                Some(next) => ty = next,
                None => {
                    return match value {
                        Value::Int(_, bits, signed) => Type::Int {
                            bits: *bits,
                            signed: *signed,
                        },
                        Value::Float(_, bits) => Type::float(*bits),
                        _ => Type::Unknown(String::new()),
                    };
                }
            }
        }
        ty.clone()
    }
}

impl Frame {
    fn at_file_scope(space: &str) -> Frame {
        Frame {
            name: String::new(),
            space: space.into(),
            class: None,
            scopes: vec![Scope::default()],
            bindings: Bindings::new(),
            this: None,
            result: None,
            returns: Vec::new(),
            past: Vec::new(),
            mark: 0,
            beside: 0,
            own_call: None,
            identity: (0, 0),
            around: 0,
            is_lambda: false,
            jumps: Vec::new(),
            labels: Vec::new(),
        }
    }
}
