//! Where kernels are launched in a file, and with what.
//!
//! Host functions are walked as a program would run them, with what their text decides: `walk` has the statements,
//! `evaluate` the expressions, `calls` the functions they call (`parameters` what these are given, `objects` the classes, `agreed` what all functions of one agree on, `operators` theirs,
//! `containers` and `standard` those of the standard library, `algorithms` what fills these, `unread` what is not walked), `apis` the
//! launches, `exceptions` what is thrown and caught, `jumps` where `goto` leads, `regions` what threads of OpenMP do, `pointees` where lost pointers may lead, `handles` what is launched by name, `graphs` what is launched again and again and `captured` what that holds, `events` what else is done with the GPU, `loops` and `memory` what is done
//! around a launch, `value` what a variable holds, `texts` how texts are put together, `builds` what programs are built
//! with. In a run `numbers` executes loops that only compute, `contents` has what memory holds, `random` what generators
//! draw.
//! Where a condition is not known both sides are walked, and what differs afterwards is not known. Work is
//! bounded: what goes beyond is unknown, never guessed.

mod agreed;
mod algorithms;
mod apis;
mod arguments;
mod bound;
mod builds;
mod calls;
mod captured;
mod changes;
mod command_line;
mod containers;
mod contents;
mod data;
mod drawing;
mod evaluate;
mod events;
mod exceptions;
mod graphs;
mod handles;
mod index;
mod instances;
mod jumps;
mod kinds;
mod leaving;
mod library_types;
mod linked;
mod loops;
mod members;
mod memory;
mod nodes;
mod numbers;
mod objects;
mod occupancy;
mod operators;
mod opt_in;
mod parameters;
mod pointees;
mod random;
mod recording;
mod regions;
mod running;
mod standard;
mod state;
mod sweeps;
mod team;
mod texts;
mod toolkit;
mod unread;
mod value;
mod walk;
mod written;

pub use builds::{Build, builds, may_build};
pub use events::{
    Decides, Direction, HostCopy, HostEvent, HostEventKind, HostPlace, HostSize, MemoryKind, Often,
    OpenTimes, Side, Wait,
};
pub use index::WORDS as LAUNCH_WORDS;
pub use loops::{HostLoop, LoopCall, LoopCallKind};
pub use memory::{HostMemory, HostMemoryKind};
pub use running::{Run, RunEvents, UNKNOWN_ARGUMENT, run};
pub use state::Device;
pub use written::may_write_to;

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use memchr::memmem::Finder;
use warplens_syntax::{Expanded, words_in};

use warplens_hir::{Item, ItemKind, Space, Unit, by_name};
use warplens_ir::Bound;
use warplens_ir::Type;

/// One launch of a kernel, or an explicit instantiation of it; what is not a constant is absent.
#[derive(Debug, Clone, PartialEq)]
pub struct LaunchSite {
    /// The kernel's plain name.
    pub kernel: String,
    /// The namespaces around the kernel, where the program has kernels of that name in several.
    pub space: Option<Space>,
    /// Bytes of the launch in the source of the file, from the kernel's name to `>>>`, or the call of the
    /// function that launches. For a launch in a header: the call in this file that leads there.
    pub range: Range<usize>,
    /// The function that holds the launch; empty for an instantiation.
    pub inside: String,
    /// The functions whose calls lead there, outermost first; empty where the function is walked for itself.
    pub through: Vec<String>,
    /// Blocks.
    pub grid: Option<[u64; 3]>,
    /// Where the grid is not known but follows from arguments: how.
    pub follows: Option<[Blocks; 3]>,
    /// Threads of a block.
    pub block: Option<[u64; 3]>,
    /// Those of its extents that are known, where some are not.
    pub block_sides: [Option<u64>; 3],
    /// A loop around it launches with another block in its second turn: a program that tries several.
    pub block_varies: bool,
    /// Threads of the whole launch, where the launch says these (OpenCL).
    pub global: Option<[u64; 3]>,
    /// Dynamic shared memory in bytes.
    pub dynamic_shared_bytes: Option<u64>,
    /// The program asks for more of it than every block is granted.
    pub asks_for_shared: bool,
    /// Its size may come from a query of occupancy that was answered without the kernel's registers.
    pub assumes_residency: bool,
    /// Blocks of a cluster, where an attribute of the launch says them.
    pub cluster: Option<[u64; 3]>,
    /// An attribute lets it begin before the launch ahead of it in its stream has ended.
    pub begins_early: bool,
    /// The program allows clusters of more than eight blocks.
    pub allows_large_clusters: bool,
    /// Integer arguments by position.
    pub arguments: Vec<Option<i64>>,
    /// Integers in arguments that are structures.
    pub members: Vec<Member>,
    /// Numbers of floating point among the arguments and in those that are structures.
    pub reals: Vec<Real>,
    /// Template arguments by position.
    pub template_args: Vec<Option<Bound>>,
    /// Types of the arguments by position.
    pub argument_types: Vec<Option<Type>>,
    /// What the host does with the memory of the arguments.
    pub memory: Vec<HostMemory>,
    /// The loop around it in the function that launches.
    pub around: Option<Arc<HostLoop>>,
    /// Bytes from where an argument points to the end of that memory, by position.
    pub extents: Vec<Option<u64>>,
    /// What that memory holds at each of these launches, by position, where a run knows it.
    pub contents: Vec<Option<Arc<[u8]>>>,
    /// How often a run makes this launch; `None` where that is not known, or where it is no run's.
    pub count: Option<u64>,
    /// It represents launches of a long loop that differ by the loop's counter.
    pub represents: bool,
    /// A run of the program makes it, with these values: how it was started, in words.
    pub of_run: Option<Arc<str>>,
}

/// An integer in an argument that is a structure passed by value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Position of the argument.
    pub argument: usize,
    /// Where in it: `shape.rows`, `strides[1]`.
    pub path: String,
    /// Its value.
    pub value: i64,
}

/// A number of floating point that a launch is given.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Real {
    /// Position of the argument.
    pub argument: usize,
    /// Where in it, as of a [`Member`]; empty where the argument is the number.
    pub path: String,
    /// Its bits.
    bits: u64,
}

impl Real {
    /// Its value.
    pub fn value(&self) -> f64 {
        f64::from_bits(self.bits)
    }
}

/// The member of a tensor map that a launch passes: bytes of an element.
pub const MAP_ELEMENT: &str = "element bytes";
/// Members of a tensor map, by the number of the dimension behind the name: elements of the box that a copy by it brings.
pub const MAP_SIDES: &str = "sides";
/// The same: elements of the tensor.
pub const MAP_SIZES: &str = "sizes";
/// The same: bytes from one element to the next, of all dimensions but the nearest.
pub const MAP_STRIDES: &str = "strides";

/// The blocks of a launch along one axis.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Blocks {
    /// That many.
    Known(u64),
    /// Not known.
    Open,
    /// ⌊(number + add) / divisor⌋ · times, and at most `most`
    Follow {
        /// What they follow.
        number: Followed,
        /// What is added before the division.
        add: i64,
        /// At least 1.
        divisor: i64,
        /// At least 1.
        times: i64,
        /// `i64::MAX` where nothing limits it.
        most: i64,
    },
}

/// The number that blocks follow.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Followed {
    /// An argument of the launch, by its position.
    Argument(usize),
    /// What is made of two others.
    Of(Composed, Arc<[Blocks; 2]>),
}

/// How a number is made of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Composed {
    /// The sum.
    Sum,
    /// The first less the second.
    Difference,
    /// The product.
    Product,
    /// The first by the second, rounded down.
    Quotient,
}

impl LaunchSite {
    /// Represents a launch that was not seen.
    pub fn unknown(kernel: &str) -> LaunchSite {
        LaunchSite {
            kernel: kernel.to_owned(),
            space: None,
            range: 0..0,
            inside: String::new(),
            through: Vec::new(),
            grid: None,
            follows: None,
            block: None,
            block_sides: [None; 3],
            block_varies: false,
            global: None,
            dynamic_shared_bytes: None,
            asks_for_shared: false,
            assumes_residency: false,
            cluster: None,
            allows_large_clusters: false,
            begins_early: false,
            arguments: Vec::new(),
            members: Vec::new(),
            reals: Vec::new(),
            template_args: Vec::new(),
            argument_types: Vec::new(),
            memory: Vec::new(),
            around: None,
            extents: Vec::new(),
            contents: Vec::new(),
            count: None,
            represents: false,
            of_run: None,
        }
    }

    /// The same where the byte `from` of the file is the byte `to`.
    pub fn moved(&self, from: usize, to: usize) -> LaunchSite {
        let byte = |byte: usize| (byte + to).saturating_sub(from);
        let range = |range: &Range<usize>| byte(range.start)..byte(range.end);
        let memory = self.memory.iter().map(|memory| HostMemory {
            range: range(&memory.range),
            ..memory.clone()
        });
        LaunchSite {
            range: range(&self.range),
            memory: memory.collect(),
            around: self
                .around
                .as_ref()
                .map(|around| Arc::new(around.moved(range))),
            ..self.clone()
        }
    }

    /// The same with classes of the file by their names, and without its lambdas: they hold on to its text.
    pub fn without_classes(&self) -> LaunchSite {
        let bound = |bound: &Option<Bound>| match bound {
            Some(Bound::Type(ty)) => by_name(ty).map(Bound::Type),
            bound => bound.clone(),
        };
        let named = |ty: &Option<Type>| by_name(ty.as_ref()?);
        LaunchSite {
            template_args: self.template_args.iter().map(bound).collect(),
            argument_types: self.argument_types.iter().map(named).collect(),
            ..self.clone()
        }
    }

    /// True where the other one launches the same kernel with the same values, wherever it is.
    pub fn same_launch(&self, other: &LaunchSite) -> bool {
        self.same_but_for_reals(other) && self.reals == other.reals
    }

    /// The same whatever the numbers of floating point: a time step differs in each iteration of a program.
    fn same_but_for_reals(&self, other: &LaunchSite) -> bool {
        self.kernel == other.kernel
            && self.space == other.space
            && self.grid == other.grid
            && self.follows == other.follows
            && self.block == other.block
            && self.block_sides == other.block_sides
            && self.global == other.global
            && self.dynamic_shared_bytes == other.dynamic_shared_bytes
            && self.arguments == other.arguments
            && self.members == other.members
            && self.template_args == other.template_args
            && self.argument_types == other.argument_types
    }
}

/// The names that a program's headers define and that its launches depend on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct HeaderNames {
    /// Kernels.
    kernels: BTreeSet<String>,
    /// Functions of the host that lead to a launch.
    launchers: BTreeSet<String>,
}

impl HeaderNames {
    /// Those of a header: it may use what `earlier` ones define.
    pub fn of(parsed: &Arc<Expanded>, items: &[Item], earlier: &HeaderNames) -> HeaderNames {
        let kernels = items.iter().filter_map(|item| match &item.kind {
            ItemKind::Kernel(name) => Some(name.clone()),
            _ => None,
        });
        let mut found = HeaderNames {
            kernels: kernels.collect(),
            launchers: BTreeSet::new(),
        };
        let whole = 0..parsed.text.len();
        if LaunchWords::of(&parsed.text, earlier).within(&whole) {
            let index = index::Index::new(&[(parsed, items)], index::WORDS, earlier);
            let leading = index.functions.into_iter();
            let leading = leading.filter(|function| function.leads_to_launch && !function.kernel);
            found.launchers = leading.map(|function| function.name).collect();
        }
        found
    }

    /// Takes up those of the next header.
    pub fn add(&mut self, next: &HeaderNames) {
        self.kernels.extend(next.kernels.iter().cloned());
        self.launchers.extend(next.launchers.iter().cloned());
    }

    /// The names of launchers in a text.
    fn launchers_in<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> {
        let words = (!self.launchers.is_empty()).then(|| words_in(text));
        let words = words.into_iter().flatten();
        words.filter(|word| self.launchers.contains(*word))
    }

    fn names_launcher(&self, text: &str) -> bool {
        self.launchers_in(text).next().is_some()
    }
}

/// The words of a text without which nothing in it launches a kernel or instantiates one.
#[derive(Debug)]
pub struct LaunchWords {
    /// Places of those that are enough by themselves, in order.
    enough: Vec<Range<usize>>,
    /// Where each that needs the other is.
    together: [Vec<Range<usize>>; 2],
}

impl LaunchWords {
    /// Those of a text, the names of functions that launch among them. It is gone through once, however many pieces of it are asked
    /// about.
    pub fn of(text: &str, headers: &HeaderNames) -> LaunchWords {
        static WORDS: LazyLock<Vec<Finder>> =
            LazyLock::new(|| index::WORDS.iter().map(Finder::new).collect());
        static INSTANTIATES: LazyLock<[Finder; 2]> =
            LazyLock::new(|| ["template", "__global__"].map(Finder::new));
        let places = |word: &Finder| -> Vec<Range<usize>> {
            let length = word.needle().len();
            let found = word.find_iter(text.as_bytes());
            found.map(|at| at..at + length).collect()
        };
        let mut enough: Vec<Range<usize>> = WORDS.iter().flat_map(places).collect();
        enough.extend(headers.launchers_in(text).map(|word| {
            let start = word.as_ptr().addr() - text.as_ptr().addr();
            start..start + word.len()
        }));
        enough.sort_unstable_by_key(|word| word.start);
        let [template, kernel] = &*INSTANTIATES;
        let mut instantiations = places(template);
        instantiations.retain(|word| may_instantiate(text, word));
        LaunchWords {
            enough,
            together: [instantiations, places(kernel)],
        }
    }

    /// Whether this piece of the text may launch a kernel or instantiate one.
    pub fn within(&self, piece: &Range<usize>) -> bool {
        let has = |words: &Vec<Range<usize>>| {
            let next = words.partition_point(|word| word.start < piece.start);
            words.get(next).is_some_and(|word| word.end <= piece.end)
        };
        has(&self.enough) || self.together.iter().all(has)
    }
}

/// False where `template` begins the parameters of a template, or says of a name in one that it is a template.
fn may_instantiate(text: &str, template: &Range<usize>) -> bool {
    let behind = text.get(template.end..).unwrap_or_default();
    let before = text.get(..template.start).unwrap_or_default();
    !behind.trim_start().starts_with('<')
        && !before.trim_end().ends_with(['.', ':'])
        && !before.trim_end().ends_with("->")
}

/// Every launch in a file, in the order of the source; different launches by one statement follow each other.
/// `items` is the outline of `parsed`, `unit` what it and its headers declare, `headers` the kernels and launchers of these.
pub fn launch_sites(
    parsed: &Arc<Expanded>,
    items: &[Item],
    unit: &Unit,
    headers: &HeaderNames,
) -> Vec<LaunchSite> {
    let whole = 0..parsed.text.len();
    if !LaunchWords::of(&parsed.text, headers).within(&whole) {
        return Vec::new();
    }
    let mut host = state::Host::new(parsed, items, unit, index::WORDS, headers);
    host.instantiations();
    host.run();
    finished(host.sites)
}

/// The launches that calls in a file lead to of functions in what `unit` has read besides, by their names.
pub fn launch_sites_through(
    parsed: &Arc<Expanded>,
    items: &[Item],
    unit: &Unit,
    launchers: BTreeSet<String>,
) -> Vec<LaunchSite> {
    let of = HeaderNames {
        launchers,
        ..HeaderNames::default()
    };
    let mut host = state::Host::new(parsed, items, unit, &[], &of);
    host.run();
    finished(host.sites)
}

/// A launch as it was met.
#[derive(Debug)]
struct Met {
    site: LaunchSite,
    /// Where the program does not come with the values that are known: counts only for a kernel that is not
    /// launched anywhere else.
    beside: bool,
}

/// Variants of one statement that are told apart.
const MOST_VARIANTS: usize = 32;

fn finished(met: Vec<Met>) -> Vec<LaunchSite> {
    let mut sites: Vec<LaunchSite> = Vec::new();
    let live: std::collections::HashSet<String> = met
        .iter()
        .filter(|met| !met.beside && !met.site.inside.is_empty())
        .map(|met| met.site.kernel.clone())
        .collect();
    for met in met {
        if met.beside && live.contains(&met.site.kernel) {
            continue;
        }
        let same_place = |site: &&LaunchSite| site.range == met.site.range;
        if let Some(more) = sites
            .iter_mut()
            .find(|site| site.range == met.site.range && says_all_of(site, &met.site))
        {
            more.reals.retain(|real| met.site.reals.contains(real));
            continue;
        }
        if sites.iter().filter(same_place).count() >= MOST_VARIANTS {
            continue;
        }
        let mut all = met.site;
        sites.retain(|site| {
            let is_part = site.range == all.range && says_all_of(&all, site);
            if is_part {
                all.reals.retain(|real| site.reals.contains(real));
            }
            !is_part
        });
        sites.push(all);
    }
    sites.sort_by_key(|site| site.range.start);
    sites
}

/// True where the first says everything that the second does.
fn says_all_of(more: &LaunchSite, less: &LaunchSite) -> bool {
    fn value<T: PartialEq>(more: Option<&T>, less: Option<&T>) -> bool {
        less.is_none() || more == less
    }
    fn values<T: PartialEq>(more: &[Option<T>], less: &[Option<T>]) -> bool {
        less.iter()
            .enumerate()
            .all(|(at, less)| value(more.get(at).and_then(Option::as_ref), less.as_ref()))
    }
    more.kernel == less.kernel
        && more.space == less.space
        && value(more.block.as_ref(), less.block.as_ref())
        && (more.block.is_some() || values(&more.block_sides, &less.block_sides))
        && value(more.grid.as_ref(), less.grid.as_ref())
        && (more.grid.is_some() || value(more.follows.as_ref(), less.follows.as_ref()))
        && value(more.global.as_ref(), less.global.as_ref())
        && value(
            more.dynamic_shared_bytes.as_ref(),
            less.dynamic_shared_bytes.as_ref(),
        )
        && values(&more.arguments, &less.arguments)
        && less
            .members
            .iter()
            .all(|member| more.members.contains(member))
        && less.template_args.iter().enumerate().all(|(at, less)| {
            let more = more.template_args.get(at).and_then(Option::as_ref);
            less.as_ref()
                .is_none_or(|less| more.is_some_and(|more| warplens_hir::says_all_of(more, less)))
        })
        && values(&more.argument_types, &less.argument_types)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may_launch(text: &str) -> bool {
        LaunchWords::of(text, &HeaderNames::default()).within(&(0..text.len()))
    }

    #[test]
    fn a_template_of_a_kernel_is_no_instance_of_one() {
        let definition = "template <int N>\n__global__ void k(float *p) {\n  \
                          p->template at<N>() = T::template value<N> + S::\ntemplate r<N>(); }\n";
        assert!(!may_launch(definition));
        for instance in [
            "template __global__ void k<4>(float *);",
            "extern template __global__ void k<4>(float *);",
            "template void k<4>(float *);",
        ] {
            assert!(
                may_launch(&format!("{definition}{instance}\n")),
                "{instance}"
            );
        }
    }
}
