//! Functions that every kernel may call: `functions.toml`, a row each.
//!
//! In goes a name of the source; out comes what the function does, what it gives, and what a compiler makes of it. The rows
//! are read once; a new function is a new row.

use std::sync::{Arc, LazyLock};

use rustc_hash::FxHashMap;
use serde::Deserialize;

use crate::Type;

/// What arithmetic a function is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MathClass {
    /// That many floating-point operations of its type.
    Float(u8),
    /// A special function.
    Special,
    /// That many integer operations.
    Int(u8),
    /// A conversion.
    Convert,
    /// One matrix instruction of the warp.
    Tensor,
}

/// Integer arithmetic that has no operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bits {
    /// Ones.
    Population,
    /// Zeros above the highest one; the width where there is none.
    LeadingZeros,
    /// Zeros below the lowest one; the width where there is none.
    TrailingZeros,
    /// The place of the lowest one counted from 1; 0 where there is none.
    FirstSet,
    /// All bits in the other order.
    Reverse,
    /// The upper half of a product of two 32-bit numbers.
    MultiplyHigh,
    /// A product of 24-bit numbers and a sum.
    #[serde(rename = "multiply-add-24")]
    MultiplyAdd24,
    /// Between two bounds.
    Clamp,
    /// The first operand; the second is what it is likely to be.
    Expect,
}

/// What an atomic leaves in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Update {
    /// What was there and the operand, combined.
    #[default]
    Combine,
    /// The operand, perhaps on a condition.
    Swap,
}

/// How the lanes of a warp exchange values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Exchange {
    /// All lanes give one result.
    #[default]
    Vote,
    /// A lane reads another's value.
    Shuffle,
}

/// What a function does that makes no access that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// Nothing that is known of.
    #[default]
    Unknown,
    /// Nothing.
    None,
    /// It orders accesses to memory.
    Fence,
    /// A call of the system that reads memory.
    Print,
    /// A call of the system.
    Call,
    /// A call of the system that ends the kernel.
    Fail,
    /// A test of a condition.
    Assert,
}

impl Effect {
    /// True where memory is as it was before, for this thread and for others.
    pub fn leaves_memory(self) -> bool {
        matches!(self, Effect::None | Effect::Fail | Effect::Assert)
    }
}

/// An operation of the machine, or one of the compiler's that is built in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    Fma,
    Abs,
    Neg,
    Add,
    Sub,
    Mul,
    Min,
    Max,
    Div,
    /// Between 0 and 1.
    Clamp,
    /// Sine and cosine of one angle.
    SinCos,
}

/// How large a compiler takes a function of the mathematical library for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cost {
    /// A function of its own.
    #[default]
    Function,
    /// An operation of its own until late.
    Root,
    /// A few operations around an instruction that approximates it.
    Approximate,
    /// It reduces its argument, by a loop of its own where that is large.
    Reduced,
    /// As large, also where it approximates.
    Power,
}

/// A known function.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Function {
    /// Arithmetic on data, with the name that the source has for it, without its namespace; empty where it has none.
    Math(MathClass, Arc<str>),
    /// `min` of integers.
    Min,
    /// `max` of integers.
    Max,
    /// `abs` of an integer.
    Abs,
    /// `__mul24`, `mul24`.
    Mul24,
    /// Integer arithmetic with a name: the operands have the type that the function works in.
    Bits(Bits),
    /// An atomic on the address that its first argument gives, by name.
    Atomic(Update, Arc<str>),
    /// What registers hold, as another type of as many bytes: those of PTX have no type of their own.
    SameBits,
    /// A load through the address that its first argument gives.
    Load,
    /// A store through the address that its first argument gives of its second.
    Store,
    /// The copy that its argument is, from device memory into shared memory without a register in between.
    CopyPastRegisters,
    /// The address in another block of the cluster that its first argument, an address in shared memory, is in this one:
    /// `mapa`, `map_shared_rank`. Its second argument says which block.
    Mapped,
    /// An access through the address that its first argument gives, by the whole warp or block: which lane
    /// touches what is the library's affair.
    Tile {
        /// A store.
        store: bool,
    },
    /// Rows of 16 bytes of shared memory, one through each lane's first argument: `ldmatrix`, `stmatrix`. Each phase serves
    /// the eight rows of one matrix.
    Rows {
        /// A store.
        store: bool,
        /// Matrices, 8 rows each.
        matrices: u8,
    },
    /// A copy that one thread starts: to the first argument, from the second, of as many bytes as the third says; fewer
    /// arguments where the source does not say it.
    Bulk {
        /// To the same place in several blocks of the cluster, which the last argument says by a bit each.
        multicast: bool,
    },
    /// The same of a tensor by its map, which is the one of the two that lies in device memory: the arguments behind them
    /// say where the box begins, in elements along each dimension, the nearest first; none where the source does not say it.
    BulkBox {
        /// As of [`Function::Bulk`].
        multicast: bool,
    },
    /// A function that the source writes as an instruction of PTX, by its mnemonic.
    Instruction(Arc<str>, Box<Function>),
    /// An access through a texture, a surface or an image.
    Texture {
        /// A store.
        store: bool,
    },
    /// A packet that is read from a pipe or written to it; the runtime decides where it lies.
    Pipe {
        /// A store.
        store: bool,
    },
    /// An access to the place that its argument is, in a launch that the kernel makes: not one of this launch.
    Launched {
        /// A store.
        store: bool,
    },
    /// A call of the runtime; what it gives may differ from thread to thread.
    Runtime,
    /// A vote or shuffle among the lanes of a warp, by name.
    WarpExchange(Exchange, Arc<str>),
    /// Makes no access that counts: `__syncwarp`, fences, `printf`, `assert`, by name.
    Ignored(Effect, Arc<str>),
}

impl Function {
    /// True where the value is made of the arguments alone, and nothing else happens.
    pub fn is_arithmetic(&self) -> bool {
        matches!(
            self.plain().0,
            Function::Math(..)
                | Function::Min
                | Function::Max
                | Function::Abs
                | Function::Mul24
                | Function::Bits(_)
                | Function::SameBits
        )
    }

    /// The function itself, however it is written, and its mnemonic where the source writes PTX.
    pub fn plain(&self) -> (&Function, Option<&Arc<str>>) {
        match self {
            Function::Instruction(mnemonic, function) => (function, Some(mnemonic)),
            function => (function, None),
        }
    }
}

/// How the names of a row are spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Spelled {
    /// With everything that says type and rounding.
    Float,
    /// As what such a name is without.
    Intrinsic,
}

/// Where a row's names are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Dialect {
    OpenCl,
    Ptx,
}

/// A row of `functions.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    names: String,
    spelling: Option<Spelled>,
    #[serde(rename = "in")]
    dialect: Option<Dialect>,
    does: String,
    takes: Option<String>,
    gives: Option<String>,
    integers: Option<String>,
    operation: Option<Operation>,
    #[serde(default)]
    cost: Cost,
    effect: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "read by people, and by the tests")
    )]
    source: String,
    functions: Vec<Row>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spelling {
    prefixes: Vec<String>,
    endings: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    spelling: Spelling,
    group: Vec<Group>,
}

/// What a row says a function is, without its name.
#[derive(Debug, Clone, Copy)]
enum Does {
    Math(MathClass),
    Bits(Bits),
    Plain(Plain),
    Atomic(Update),
    Exchange(Exchange),
    Ignored(Effect),
}

/// Functions of one kind.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Plain {
    Min,
    Max,
    Abs,
    Mul24,
    Load,
    Store,
    Barrier,
}

/// A row, read.
#[derive(Debug)]
struct Entry {
    does: Does,
    opencl: bool,
    takes: Option<Operand>,
    gives: Option<Operand>,
    integers: Option<Type>,
    cost: Cost,
}

/// A type of a row.
#[derive(Debug, Clone)]
enum Operand {
    /// This one.
    Fixed(Type),
    /// That of the value.
    Own,
    /// The one that the function is named for.
    Named,
}

/// All rows, by their names.
struct Table {
    spelling: Spelling,
    entries: Vec<Entry>,
    exact: FxHashMap<String, usize>,
    ptx: FxHashMap<String, usize>,
    float: FxHashMap<String, usize>,
    intrinsic: FxHashMap<String, usize>,
    patterns: Patterns,
    operations: FxHashMap<String, Operation>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let file = toml::from_str(include_str!("../functions.toml"));
    Table::new(file.expect("the tests read it"))
});

/// A word of the file by the names that an enumeration's variants have in it.
fn word<'de, T: Deserialize<'de>>(word: &'de str) -> T {
    let word = serde::de::value::StrDeserializer::<serde::de::value::Error>::new(word);
    T::deserialize(word).expect("the tests read every row")
}

impl Spelling {
    fn without<'n>(&self, name: &'n str) -> &'n str {
        let mut base = name.trim_start_matches('_');
        // Every prefix and every ending has an underscore (`Table::new` holds it).
        if !base.contains('_') {
            return base;
        }
        for prefix in &self.prefixes {
            base = base.strip_prefix(prefix.as_str()).unwrap_or(base);
        }
        for ending in &self.endings {
            base = base.strip_suffix(ending.as_str()).unwrap_or(base);
        }
        base
    }
}

impl Does {
    fn of(row: &Row) -> Does {
        let effect = row.effect.as_deref();
        let (kind, number) = row.does.split_once(' ').unwrap_or((&row.does, "1"));
        let number = number.parse().expect("a number of operations");
        match kind {
            "float" => Does::Math(MathClass::Float(number)),
            "int" => Does::Math(MathClass::Int(number)),
            "special" => Does::Math(MathClass::Special),
            "convert" => Does::Math(MathClass::Convert),
            "tensor" => Does::Math(MathClass::Tensor),
            "min" => Does::Plain(Plain::Min),
            "max" => Does::Plain(Plain::Max),
            "abs" => Does::Plain(Plain::Abs),
            "mul24" => Does::Plain(Plain::Mul24),
            "load" => Does::Plain(Plain::Load),
            "store" => Does::Plain(Plain::Store),
            "barrier" => Does::Plain(Plain::Barrier),
            "atomic" => Does::Atomic(effect.map(word).unwrap_or_default()),
            "exchange" => Does::Exchange(effect.map(word).unwrap_or_default()),
            "ignored" => Does::Ignored(effect.map(word).unwrap_or_default()),
            bits => Does::Bits(word(bits)),
        }
    }
}

impl Operand {
    fn of(written: &str) -> Operand {
        match written {
            "T" => Operand::Own,
            "named" => Operand::Named,
            ty => Operand::Fixed(Type::named(ty, true).expect("a type")),
        }
    }

    fn ty(&self, own: &Type) -> Option<Type> {
        match self {
            Operand::Fixed(ty) => Some(ty.clone()),
            Operand::Own => Some(own.clone()),
            Operand::Named => None,
        }
    }
}

/// `a{b,c}` as `ab`, `ac`.
fn alternatives(name: &str, found: &mut Vec<String>) {
    let group = name.split_once('{').and_then(|(before, rest)| {
        let (inner, after) = rest.split_once('}')?;
        Some((before, inner, after))
    });
    let Some((before, inner, after)) = group else {
        found.push(name.to_owned());
        return;
    };
    for one in inner.split(',') {
        alternatives(&format!("{before}{one}{after}"), found);
    }
}

/// True for a name that begins and ends as a pattern does and holds what is between in order.
fn fits(pattern: &[String], name: &str) -> bool {
    let [first, between @ .., last] = pattern else {
        return false;
    };
    let Some(mut rest) = name.strip_prefix(first.as_str()) else {
        return false;
    };
    for part in between {
        match rest.split_once(part.as_str()) {
            Some((_, behind)) => rest = behind,
            None => return false,
        }
    }
    rest.ends_with(last.as_str())
}

/// Names with `*`, split there, each with its entry.
#[derive(Default)]
struct Patterns {
    /// By their first bytes: most names of a program begin like none of them.
    by_start: FxHashMap<[u8; Patterns::START], Vec<(Vec<String>, usize)>>,
    /// Those whose `*` comes sooner.
    short: Vec<(Vec<String>, usize)>,
}

impl Patterns {
    const START: usize = 3;

    fn add(&mut self, name: &str, number: usize) {
        let parts: Vec<String> = name.split('*').map(str::to_owned).collect();
        match parts[0].as_bytes().first_chunk() {
            Some(start) => self
                .by_start
                .entry(*start)
                .or_default()
                .push((parts, number)),
            None => self.short.push((parts, number)),
        }
    }

    /// The first entry with a pattern that a name fits, of those that are `own`.
    fn first(&self, name: &str, own: impl Fn(&usize) -> bool) -> Option<usize> {
        let first_of = |patterns: &[(Vec<String>, usize)]| {
            let mut patterns = patterns.iter();
            let found = patterns.find(|(parts, number)| own(number) && fits(parts, name));
            found.map(|(_, number)| *number)
        };
        let start = name.as_bytes().first_chunk::<{ Patterns::START }>();
        let long = start.and_then(|start| first_of(self.by_start.get(start)?));
        [long, first_of(&self.short)].into_iter().flatten().min()
    }
}

impl Table {
    fn new(file: File) -> Table {
        let mut affixes = file.spelling.prefixes.iter().chain(&file.spelling.endings);
        assert!(
            affixes.all(|affix| affix.contains('_')),
            "prefixes and endings have an underscore"
        );
        let mut table = Table {
            spelling: file.spelling,
            entries: Vec::new(),
            exact: FxHashMap::default(),
            ptx: FxHashMap::default(),
            float: FxHashMap::default(),
            intrinsic: FxHashMap::default(),
            patterns: Patterns::default(),
            operations: FxHashMap::default(),
        };
        for row in file.group.into_iter().flat_map(|group| group.functions) {
            table.add(&row);
        }
        table
    }

    fn add(&mut self, row: &Row) {
        let number = self.entries.len();
        self.entries.push(Entry {
            does: Does::of(row),
            opencl: row.dialect == Some(Dialect::OpenCl),
            takes: row.takes.as_deref().map(Operand::of),
            gives: row.gives.as_deref().map(Operand::of),
            integers: row.integers.as_deref().and_then(|ty| Type::named(ty, true)),
            cost: row.cost,
        });
        let mut names = Vec::new();
        for name in row.names.split_whitespace() {
            alternatives(name, &mut names);
        }
        for name in names {
            if let Some(operation) = row.operation {
                self.operations.insert(name.clone(), operation);
            }
            let by_name = match (row.dialect, row.spelling) {
                (Some(Dialect::Ptx), _) => &mut self.ptx,
                (_, Some(Spelled::Float)) => &mut self.float,
                (_, Some(Spelled::Intrinsic)) => &mut self.intrinsic,
                _ if name.contains('*') => {
                    self.patterns.add(&name, number);
                    continue;
                }
                _ => &mut self.exact,
            };
            by_name.insert(name, number);
        }
    }

    fn find(&self, name: &str, opencl: bool) -> Option<&Entry> {
        let own = |number: &usize| opencl || !self.entries[*number].opencl;
        let of_pattern = || self.patterns.first(name, own);
        let exact = self.exact.get(name).copied().filter(own);
        let number = exact
            .or_else(of_pattern)
            .or_else(|| self.arithmetic(name))?;
        self.entries.get(number)
    }

    /// Floating-point functions, under all their spellings: `__fsqrt_rn`, `native_sqrt`, `sqrtf`, `hsqrt`.
    fn arithmetic(&self, name: &str) -> Option<usize> {
        let float = |name: &str| {
            let plain = name.strip_suffix('f').unwrap_or(name);
            self.float
                .get(name)
                .or_else(|| self.float.get(plain))
                .copied()
        };
        let base = self.spelling.without(name);
        float(base)
            .or_else(|| {
                // __fadd_rn, __dmul_rn, __hsub, __hadd2, hlog.
                let inner = base.strip_prefix(['f', 'd', 'h']).unwrap_or(base);
                let inner = inner.strip_suffix('2').unwrap_or(inner);
                let own = || self.intrinsic.get(inner).copied();
                name.starts_with("__").then(|| float(inner).or_else(own))?
            })
            .or_else(|| {
                // hexp, h2exp.
                float(base.strip_prefix("h2").or(base.strip_prefix('h'))?)
            })
    }
}

/// A name without its namespace.
fn last(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}

fn entry(name: &str, opencl: bool) -> Option<&'static Entry> {
    TABLE.find(last(name), opencl)
}

fn function(does: Does, name: &str) -> Option<Function> {
    Some(match does {
        Does::Math(class) => Function::Math(class, name.into()),
        Does::Bits(bits) => Function::Bits(bits),
        Does::Atomic(update) => Function::Atomic(update, name.into()),
        Does::Exchange(exchange) => Function::WarpExchange(exchange, name.into()),
        Does::Ignored(effect) => Function::Ignored(effect, name.into()),
        Does::Plain(Plain::Min) => Function::Min,
        Does::Plain(Plain::Max) => Function::Max,
        Does::Plain(Plain::Abs) => Function::Abs,
        Does::Plain(Plain::Mul24) => Function::Mul24,
        Does::Plain(Plain::Load) => Function::Load,
        Does::Plain(Plain::Store) => Function::Store,
        Does::Plain(Plain::Barrier) => return None,
    })
}

/// What a name means.
pub fn known(name: &str, opencl: bool) -> Option<Function> {
    function(entry(name, opencl)?.does, last(name))
}

/// What the first word of a PTX instruction means; `None` for integer arithmetic and what has operands of its own.
pub fn of_ptx(word: &str) -> Option<Function> {
    let number = *TABLE.ptx.get(word)?;
    function(TABLE.entries[number].does, word)
}

/// A barrier of the whole block.
pub fn is_barrier(name: &str) -> bool {
    matches!(
        TABLE
            .exact
            .get(name)
            .map(|number| TABLE.entries[*number].does),
        Some(Does::Plain(Plain::Barrier))
    )
}

/// The types that named integer arithmetic works in and gives, by the type of its first operand.
pub fn integers(name: &str, own: &Type) -> Option<(Type, Type)> {
    let entry = entry(name, true)?;
    let ty = |operand: &Option<Operand>| operand.as_ref()?.ty(own);
    Some((ty(&entry.takes)?, ty(&entry.gives)?))
}

/// What an exchange gives, by the type of the value.
pub fn exchanged(name: &str, own: &Type) -> Option<Type> {
    entry(name, true)?.gives.as_ref()?.ty(own)
}

/// Which argument of an exchange is the value: behind the mask of lanes where there is one.
pub fn value_of_exchange(name: &str, arguments: usize) -> usize {
    usize::from(name.ends_with("_sync") && arguments > 1)
}

/// What a function for floating point gives beside an integer, where the standard says so.
pub fn beside_integers(name: &str) -> Option<Type> {
    let number = *TABLE.float.get(name)?;
    TABLE.entries[number].integers.clone()
}

/// True for a function of floating point whose name ends as it does without saying its type: `erf`.
pub fn is_base(name: &str) -> bool {
    TABLE.float.contains_key(name)
}

/// How large a function of the mathematical library is, as it is written.
pub fn cost(name: &str) -> Cost {
    let cost = entry(name, true).map_or(Cost::Function, |entry| entry.cost);
    // Under another spelling it is another function.
    let plain = name.trim_end_matches('f');
    match cost {
        Cost::Reduced | Cost::Power if !is_base(plain) => Cost::Function,
        cost => cost,
    }
}

/// True for a function, or a spelling of it, that is a few operations around an instruction that approximates it.
pub fn is_approximate(name: &str) -> bool {
    let cost = entry(name, true).map_or(Cost::Function, |entry| entry.cost);
    cost == Cost::Approximate || name.starts_with("__") && cost != Cost::Power
}

/// A name without what says whose implementation it is, and how it rounds: `fsqrt` of `__fsqrt_rn`.
pub fn unspelled(name: &str) -> &str {
    TABLE.spelling.without(name)
}

/// What a function is built as in place of a call, by its name without what spells its type and rounding.
pub fn operation(plain: &str) -> Option<Operation> {
    TABLE.operations.get(plain).copied()
}

/// What a conversion gives: `__float2int_rn`, `__float_as_uint`, `convert_int4_sat`, `as_float`.
pub fn converted(name: &str) -> Option<Type> {
    if let Some(Operand::Fixed(ty)) = entry(name, true).and_then(|entry| entry.gives.as_ref()) {
        return Some(ty.clone());
    }
    let name = name.trim_start_matches('_');
    if let Some(target) = name.strip_prefix("convert_").or(name.strip_prefix("as_")) {
        let target = target.split('_').next().unwrap_or(target);
        return Type::named(target, true);
    }
    let target = match name.split_once("_as_") {
        Some((_, target)) => target,
        None => {
            let name = name.split('_').next().unwrap_or(name);
            let mut ends = name.as_bytes().windows(2);
            // `half22float2`: the `2` that a name follows.
            let at = ends.rposition(|pair| pair[0] == b'2' && pair[1].is_ascii_alphabetic());
            at.map_or_else(
                || name.split_once('2').map(|(_, to)| to),
                |at| name.get(at + 1..),
            )?
        }
    };
    let target = target.split('_').next().unwrap_or(target);
    match target {
        "ll" | "longlong" => Some(Type::LONG),
        "ull" | "ulonglong" => Some(Type::SIZE),
        "loint" | "hiint" => Some(Type::INT),
        "bfloat16" => Type::named("__nv_bfloat16", false),
        "bfloat162" => Type::named("__nv_bfloat162", false),
        "highlow" => Type::named("half2", false),
        target => Type::named(target, false),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_row_is_read_and_its_names_mean_what_it_says() {
        let file: File = toml::from_str(include_str!("../functions.toml")).expect("a table");
        let mut seen = BTreeSet::new();
        for group in &file.group {
            assert!(!group.source.is_empty());
            for row in &group.functions {
                let (mut names, does) = (Vec::new(), format!("{:?}", Does::of(row)));
                row.names
                    .split_whitespace()
                    .for_each(|name| alternatives(name, &mut names));
                for name in names {
                    let place = (row.spelling == Some(Spelled::Intrinsic), row.dialect);
                    assert!(
                        seen.insert((name.clone(), format!("{place:?}"))),
                        "{name} twice"
                    );
                    let entry = match (row.dialect, row.spelling) {
                        (Some(Dialect::Ptx), _) => &TABLE.entries[TABLE.ptx[&name]],
                        (_, Some(Spelled::Intrinsic)) => &TABLE.entries[TABLE.intrinsic[&name]],
                        _ => entry(&name.replace('*', "x"), true).expect("it is known"),
                    };
                    assert_eq!(format!("{:?}", entry.does), does, "{name}");
                }
            }
        }
        assert!(seen.len() > 400, "{}", seen.len());
    }

    #[test]
    fn a_pattern_fits_names_with_its_parts_in_order() {
        for (pattern, name, fit) in [
            ("__v*2", "__vadd2", true),
            ("__v*2", "__vadd4", false),
            ("*_as_*", "__int_as_float", true),
            ("a*b*c", "abc", true),
            ("a*b*c", "acb", false),
        ] {
            let pattern: Vec<String> = pattern.split('*').map(str::to_owned).collect();
            assert_eq!(fits(&pattern, name), fit, "{name}");
        }
    }

    #[test]
    fn the_names_of_the_mathematical_interface_are_known() {
        let lost: Vec<&str> = NAMES
            .split_whitespace()
            .filter(|name| known(name, false).is_none())
            .collect();
        assert_eq!(lost, Vec::<&str>::new());
    }

    #[test]
    fn conversions_give_what_is_stored() {
        let vector = Type::Vector(Type::HALF.into(), 2);
        for (name, ty) in [
            ("__nv_cvt_float_to_fp8", Type::BYTE),
            (
                "__nv_cvt_float2_to_fp8x2",
                Type::named("ushort", false).expect("built in"),
            ),
            ("__nv_cvt_fp8x2_to_halfraw2", vector),
            ("__float2int_rn", Type::INT),
            ("__double2float_rd", Type::FLOAT),
            ("__float_as_uint", Type::UINT),
            (
                "__half22float2",
                Type::named("float2", false).expect("built in"),
            ),
            (
                "__float22half2_rn",
                Type::named("half2", false).expect("built in"),
            ),
            (
                "__bfloat1622float2",
                Type::named("float2", false).expect("built in"),
            ),
            ("__high2float", Type::FLOAT),
        ] {
            assert_eq!(converted(name), Some(ty), "{name}");
        }
    }

    const NAMES: &str = "
        acosf acoshf asinf asinhf atan2f atanf atanhf cbrtf ceilf copysignf cosf coshf cospif
        cyl_bessel_i0f cyl_bessel_i1f erfcf erfcinvf erfcxf erff erfinvf exp10f exp2f expf expm1f
        fabsf fdimf fdividef floorf fmaf fmaxf fminf fmodf frexpf hypotf ilogbf isfinite isinf isnan
        j0f j1f jnf ldexpf lgammaf llrintf llroundf log10f log1pf log2f logbf logf lrintf lroundf
        modff nanf nearbyintf nextafterf norm3df norm4df normcdff normcdfinvf normf powf rcbrtf
        remainderf remquof rhypotf rintf rnorm3df rnorm4df rnormf roundf rsqrtf scalblnf scalbnf
        signbit sincosf sincospif sinf sinhf sinpif sqrtf tanf tanhf tgammaf truncf y0f y1f ynf
        __cosf __exp10f __expf __fadd_rd __fadd_rn __fadd_ru __fadd_rz __fdiv_rn __fdividef
        __fmaf_ieee_rn __fmaf_rd __fmaf_rn __fmul_rd __fmul_rn __frcp_rn __frsqrt_rn __fsqrt_rn
        __fsub_rn __log10f __log2f __logf __powf __saturatef __sincosf __sinf __tanf
        __dadd_rn __ddiv_rn __dmul_rn __drcp_rn __dsqrt_rn __dsub_rn __fma_rn
        __brev __brevll __byte_perm __clz __clzll __ffs __ffsll __fns __funnelshift_l
        __funnelshift_lc __funnelshift_r __funnelshift_rc __hadd __mul24 __mul64hi __mulhi
        __nv_bswap16 __nv_bswap32 __nv_bswap64 __popc __popcll __rhadd __sad __uhadd __umul24
        __umul64hi __umulhi __urhadd __usad __dp2a_hi __dp2a_lo __dp4a
        __double2float_rn __double2hiint __double2int_rn __double2ll_rn __double2loint
        __double2uint_rn __double2ull_rn __double_as_longlong __float2half_rn __float2int_rd
        __float2ll_rz __float2uint_rn __float2ull_rn __float_as_int __float_as_uint __half2float
        __hiloint2double __int2double_rn __int2float_rn __int_as_float __ll2double_rn __ll2float_rn
        __longlong_as_double __uint2double_rn __uint2float_rn __uint_as_float __ull2double_rn
        __vabs2 __vabsdiffs4 __vadd2 __vaddss4 __vavgs2 __vcmpeq4 __vhaddu2 __vmaxs2 __vminu4
        __vneg2 __vsads4 __vseteq2 __vsub4 __vibmax_s16x2 __vibmin_u32 __vimax3_s32_relu
        __vimin_s16x2_relu __viaddmax_u16x2 __viaddmin_s32
        __habs __habs2 __hadd __hadd2 __hadd2_rn __hadd_rn __hadd_sat __hadd2_sat __hdiv __h2div
        __hfma __hfma2 __hfma2_relu __hfma_relu __hfma_sat __hmul __hmul2 __hneg __hneg2 __hsub
        __hsub2 __heq __heq2 __hge __hgt2 __hmax __hmax2 __hmax_nan __hmin __hmin2 __hisinf
        __hisnan __hisnan2 __hle __hlt __hne __hbeq2 __hbgt2
        __float2half2_rn __floats2half2_rn __half22float2 __half2half2 __half2int_rn __half2short_rz
        __half2uint_ru __half_as_short __halves2half2 __high2float __high2half __high2half2
        __highs2half2 __int2half_rn __low2float __low2half __low2half2 __lowhigh2highlow
        __lows2half2 __short2half_rn __short_as_half __uint2half_rn __ushort_as_half
        __bfloat1622float2 __bfloat162bfloat162 __bfloat162float __float2bfloat16
        __float2bfloat162_rn __float2bfloat16_rn __floats2bfloat162_rn __bfloat16_as_ushort
        hceil hcos hexp hexp10 hexp2 hfloor hlog hlog10 hlog2 hrcp hrint hrsqrt hsin hsqrt htrunc
        h2ceil h2cos h2exp h2floor h2log h2rcp h2rint h2rsqrt h2sin h2sqrt h2trunc
        __nv_cvt_float_to_fp8 __nv_cvt_double_to_fp8x2 __nv_cvt_fp8_to_halfraw
        __nv_cvt_float2_to_fp4x2 __nv_cvt_halfraw2_to_fp8x2 __float_to_tf32
        __shfl_sync __shfl_xor_sync __reduce_add_sync __match_any_sync __ballot_sync __all_sync
        __ldg __ldcs __stwt atomicAdd atomicCAS_block __threadfence __syncwarp __nanosleep";
}
