//! `cargo lab recipes`: what functions of the mathematical library and divisions become, measured with nvcc.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use warplens_codegen::Class;

use crate::machine_code::{Compiler, Function, Scratch};
use xtask::repository;

/// Measure with nvcc what mathematical functions and divisions become: server/codegen/recipes/ARCH.tsv
///
/// Compiles micro-kernels that call a function once, twice and three times, and the same kernels without it. What
/// each further call adds is what the function costs in place; what is left of the first is once in a kernel:
/// slow paths that all calls share, constants. Registers come from one more kernel with one call.
/// Written once plain and once with `-use_fast_math`; of targets other than `sm_80` only what is different there, with
/// the registers of `sm_80`. Needs no GPU.
#[derive(Debug, Args)]
pub struct Recipes {
    /// The nvcc; without it $NVCC, the PATH's, or the one that tests/kernels/compile.sh installed
    #[arg(long, value_name = "PATH")]
    nvcc: Option<PathBuf>,
    /// The targets besides `sm_80`, which is always measured
    #[arg(
        long,
        value_name = "ARCH",
        value_delimiter = ',',
        default_value = "sm_75,sm_86,sm_89,sm_90,sm_100,sm_120"
    )]
    arch: Vec<String>,
    /// The folder that gets the files
    #[arg(long, value_name = "DIR", default_value = "server/codegen/recipes")]
    out: PathBuf,
}

/// One file of micro-kernels may take so long.
const LIMIT: Duration = Duration::from_mins(5);

/// The target whose file has everything.
const WHOLE: &str = "sm_80";

/// Functions in a file: what a compiler that fails loses.
const TOGETHER: usize = 60;

/// How often a kernel calls the function.
const CALLS: [usize; 3] = [1, 2, 3];

const ONE: &str = "sqrt rsqrt exp exp2 exp10 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh \
    acosh atanh sinpi cospi cbrt rcbrt erf erfc erfinv erfcinv erfcx normcdf normcdfinv lgamma tgamma floor ceil rint \
    round trunc nearbyint logb j0 j1 y0 y1 cyl_bessel_i0 cyl_bessel_i1";
/// Those whose result is an integer.
const ONE_TO_INT: &str = "ilogb lround lrint llround llrint isnan isinf isfinite signbit";
const TWO: &str = "pow atan2 fmod remainder hypot rhypot copysign fdim nextafter fmin fmax";
const THREE: &str = "norm3d rnorm3d";
const FOUR: &str = "norm4d rnorm4d";

/// The intrinsics, by the number of their operands.
const FAST_ONE: &str =
    "__expf __exp10f __logf __log2f __log10f __sinf __cosf __tanf __frsqrt_rn __saturatef";
const FAST_TWO: &str = "__fdividef __powf";
/// Those that are written with a rounding behind them.
const ROUNDED: [(&str, &str, usize); 6] = [
    ("__fsqrt", "float", 1),
    ("__frcp", "float", 1),
    ("__fdiv", "float", 2),
    ("__dsqrt", "double", 1),
    ("__drcp", "double", 1),
    ("__ddiv", "double", 2),
];

const HALF: &str =
    "hexp hexp2 hexp10 hlog hlog2 hlog10 hsqrt hrsqrt hrcp hsin hcos hfloor hceil hrint htrunc";

/// Divisors: powers of two, and those whose reciprocals differ in how they are rounded.
const DIVISORS: [u32; 14] = [2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 24, 100, 255, 1000];

/// The kernel of one call whose addresses are the thread's, for the registers; named as a number of calls would be. With
/// constant addresses most of a small function hides below the least number that every kernel has.
const INDEXED: usize = 0;

/// What turns several results into one, so that none is left out; and integers into what can be added.
const HELPERS: &str = r"#include <cuda_fp16.h>
__device__ __forceinline__ float two_results(float a, float b) { return a + b; }
__device__ __forceinline__ double two_results(double a, double b) { return a + b; }
__device__ __forceinline__ float two_results(float a, int b) { return a + __int_as_float(b); }
__device__ __forceinline__ double two_results(double a, int b) { return a + __hiloint2double(b, b); }
__device__ __forceinline__ float both_sincos(float x) { float s, c; sincosf(x, &s, &c); return two_results(s, c); }
__device__ __forceinline__ double both_sincos(double x) { double s, c; sincos(x, &s, &c); return two_results(s, c); }
__device__ __forceinline__ float both_sincospi(float x) { float s, c; sincospif(x, &s, &c); return two_results(s, c); }
__device__ __forceinline__ double both_sincospi(double x) { double s, c; sincospi(x, &s, &c); return two_results(s, c); }
__device__ __forceinline__ float both_fast(float x) { float s, c; __sincosf(x, &s, &c); return two_results(s, c); }
__device__ __forceinline__ float both_frexp(float x) { int e; float m = frexpf(x, &e); return two_results(m, e); }
__device__ __forceinline__ double both_frexp(double x) { int e; double m = frexp(x, &e); return two_results(m, e); }
__device__ __forceinline__ float both_modf(float x) { float i; float f = modff(x, &i); return two_results(f, i); }
__device__ __forceinline__ double both_modf(double x) { double i; double f = modf(x, &i); return two_results(f, i); }
__device__ __forceinline__ float both_remquo(float x, float y) { int q; float r = remquof(x, y, &q); return two_results(r, q); }
__device__ __forceinline__ double both_remquo(double x, double y) { int q; double r = remquo(x, y, &q); return two_results(r, q); }
";

/// What functions work on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    /// Its name in C.
    c: &'static str,
    /// Its name in the file.
    name: &'static str,
    /// The instructions of an addition, which puts operands and results together.
    addition: (Class, i64),
}

const F32: Kind = kind("float", "f32", Class::Fadd, 1);
const F64: Kind = kind("double", "f64", Class::Dadd, 1);
const F16: Kind = kind("__half", "f16", Class::Hfma2, 1);
const INTEGERS: [Kind; 4] = [
    kind("int", "i32", Class::Iadd3, 1),
    kind("unsigned", "u32", Class::Iadd3, 1),
    kind("long long", "i64", Class::Iadd3, 2),
    kind("unsigned long long", "u64", Class::Iadd3, 2),
];

const fn kind(c: &'static str, name: &'static str, class: Class, count: i64) -> Kind {
    Kind {
        c,
        name,
        addition: (class, count),
    }
}

/// A function to measure.
#[derive(Debug, Clone)]
struct Probe {
    name: String,
    kind: Kind,
    operands: usize,
    /// A call with `{0}` for its first operand.
    call: String,
    /// Results beyond the first, which are added to it.
    results: i64,
    /// The result is an integer of its own.
    to_int: bool,
}

/// Counts of instructions by class.
type Counts = BTreeMap<Class, i64>;

/// What a function becomes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Recipe {
    in_place: Counts,
    once: Counts,
    registers: u64,
}

impl Recipes {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let folder = repository::root().join(&self.out);
        std::fs::create_dir_all(&folder)?;
        let probes = probes();
        for (suffix, options) in [("", ""), ("_fast", "-use_fast_math")] {
            let mut whole = None;
            let others = self.arch.iter().filter(|arch| *arch != WHOLE);
            for arch in std::iter::once(WHOLE).chain(others.map(String::as_str)) {
                let compiler = Compiler::of(self.nvcc.as_deref(), arch)?;
                let options: Vec<String> = options.split_whitespace().map(str::to_owned).collect();
                let mut made = Vec::new();
                for some in probes.chunks(TOGETHER) {
                    made.extend(measure(&compiler, some, &options)?);
                }
                // A kernel that loads its parameters has registers to spare for a small function, which would seem to
                // need none: registers are those where parameters are operands.
                for (recipe, whole) in made.iter_mut().zip(whole.iter().flatten()) {
                    let whole: &Recipe = whole;
                    recipe.registers = whole.registers;
                }
                let text = table(&compiler, &options, &probes, &made, whole.as_deref())?;
                let path = folder.join(format!("{arch}{suffix}.tsv"));
                std::fs::write(&path, text)
                    .with_context(|| format!("cannot write {}", path.display()))?;
                println!("wrote {}", path.display());
                whole.get_or_insert(made);
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// A target's file: what was measured, or of it what differs from `whole`.
fn table(
    compiler: &Compiler,
    options: &[String],
    probes: &[Probe],
    made: &[Recipe],
    whole: Option<&[Recipe]>,
) -> anyhow::Result<String> {
    let mut text = format!(
        "# What the functions of the mathematical library and divisions become; `cargo lab recipes` writes it.\n\
         # Measured: nvcc {} {}; kernels with one call, with two and with three.\n",
        compiler.version()?,
        [&[format!("-arch={}", compiler.arch)], options]
            .concat()
            .join(" "),
    );
    if whole.is_some() {
        writeln!(text, "# What is not here is as in {WHOLE}.")?;
    }
    text.push_str("# function\ttype\tin place\tonce a kernel\tregisters\n");
    for (number, (probe, recipe)) in probes.iter().zip(made).enumerate() {
        if whole.is_some_and(|whole| whole[number] == *recipe) {
            continue;
        }
        writeln!(
            text,
            "{}\t{}\t{}\t{}\t{}",
            probe.name,
            probe.kind.name,
            listed(&recipe.in_place),
            listed(&recipe.once),
            recipe.registers
        )?;
    }
    Ok(text)
}

/// All that is measured, in the order of the file.
fn probes() -> Vec<Probe> {
    let mut all = Vec::new();
    let mut add = |name: &str, kind: Kind, operands: usize, call: String| {
        all.push(Probe {
            name: name.to_owned(),
            kind,
            operands,
            call,
            results: 0,
            to_int: false,
        });
    };
    let operands = |count: usize| {
        let all: Vec<String> = (0..count).map(|operand| format!("{{{operand}}}")).collect();
        all.join(",")
    };
    for (kind, letter) in [(F32, "f"), (F64, "")] {
        for (names, count) in [(ONE, 1), (TWO, 2), (THREE, 3), (FOUR, 4)] {
            for name in names.split_whitespace() {
                add(
                    name,
                    kind,
                    count,
                    format!("{name}{letter}({})", operands(count)),
                );
            }
        }
        add("div", kind, 2, "{0}/{1}".to_owned());
        add("recip", kind, 1, "1/{0}".to_owned());
        for name in ["ldexp", "scalbn"] {
            let call = match kind {
                F32 => format!("{name}f({{0}},__float_as_int({{1}}))"),
                _ => format!("{name}({{0}},__double2loint({{1}}))"),
            };
            add(name, kind, 2, call);
        }
    }
    for (names, count) in [(FAST_ONE, 1), (FAST_TWO, 2)] {
        for name in names.split_whitespace() {
            add(name, F32, count, format!("{name}({})", operands(count)));
        }
    }
    for (stem, c, count) in ROUNDED {
        let kind = if c == F32.c { F32 } else { F64 };
        for rounding in ["rn", "rz", "ru", "rd"] {
            let name = format!("{stem}_{rounding}");
            add(&name, kind, count, format!("{name}({})", operands(count)));
        }
    }
    for name in HALF.split_whitespace() {
        add(name, F16, 1, format!("{name}({{0}})"));
    }
    add("div", F16, 2, "{0}/{1}".to_owned());
    for kind in INTEGERS {
        for (name, operator) in [("div", '/'), ("rem", '%')] {
            add(name, kind, 2, format!("{{0}}{operator}{{1}}"));
            for by in DIVISORS {
                add(
                    &format!("{name}{by}"),
                    kind,
                    1,
                    format!("{{0}}{operator}{by}"),
                );
            }
        }
    }
    for (kind, letter) in [(F32, "f"), (F64, "")] {
        for name in ONE_TO_INT.split_whitespace() {
            // Those that tell kinds of numbers apart are the same word for all types.
            let letter = if name.starts_with("is") || name == "signbit" {
                ""
            } else {
                letter
            };
            all.push(Probe {
                name: name.to_owned(),
                kind,
                operands: 1,
                call: format!("{name}{letter}({{0}})"),
                results: 0,
                to_int: true,
            });
        }
        let several = [
            ("sincos", 1),
            ("sincospi", 1),
            ("frexp", 1),
            ("modf", 1),
            ("remquo", 2),
        ];
        for (name, count) in several {
            all.push(Probe {
                name: name.to_owned(),
                kind,
                operands: count,
                call: format!("both_{name}({})", operands(count)),
                results: 1,
                to_int: false,
            });
        }
    }
    all.push(Probe {
        name: "__sincosf".to_owned(),
        kind: F32,
        operands: 1,
        call: "both_fast({0})".to_owned(),
        results: 1,
        to_int: false,
    });
    all
}

/// What each becomes.
fn measure(
    compiler: &Compiler,
    probes: &[Probe],
    options: &[String],
) -> anyhow::Result<Vec<Recipe>> {
    let mut source = HELPERS.to_owned();
    let mut written = BTreeSet::new();
    for (number, probe) in probes.iter().enumerate() {
        for calls in CALLS.into_iter().chain([INDEXED]) {
            source.push_str(&kernel(
                &format!("k{number}_{calls}"),
                probe,
                calls,
                Some(&probe.call),
            ));
            let base = base_name(probe, calls);
            if written.insert(base.clone()) {
                source.push_str(&kernel(&base, probe, calls, None));
            }
        }
    }
    let scratch = Scratch::new("recipes")?;
    let path = scratch.file("kernels.cu");
    std::fs::write(&path, source)?;
    let binary = scratch.file("kernels.cubin");
    let kernels = match compiler.kernels(&path, options, &binary, LIMIT)? {
        Ok(kernels) => kernels,
        Err(why) => bail!("the micro-kernels do not compile: {why}"),
    };
    let find = |name: &str| {
        kernels
            .get(name)
            .with_context(|| format!("no {name} among the compiled kernels"))
    };
    probes
        .iter()
        .enumerate()
        .map(|(number, probe)| {
            let mut pairs = Vec::new();
            for calls in CALLS {
                let with = find(&format!("k{number}_{calls}"))?;
                pairs.push((with, find(&base_name(probe, calls))?));
            }
            let indexed = find(&format!("k{number}_{INDEXED}"))?;
            let registers = indexed
                .registers
                .saturating_sub(find(&base_name(probe, INDEXED))?.registers);
            Ok(Recipe {
                registers,
                ..recipe(probe, &pairs)
            })
        })
        .collect()
}

/// The kernel without the function: of the same type, operands and result.
fn base_name(probe: &Probe, calls: usize) -> String {
    let to = if probe.to_int { "int" } else { "" };
    format!("base_{}{to}_{}_{calls}", probe.kind.name, probe.operands)
}

/// A kernel with this many calls. Addresses are constants: what computing them costs depends on what is beside them. Only
/// the kernel for the registers has addresses of its thread. Without a call the operands are added up.
fn kernel(name: &str, probe: &Probe, calls: usize, call: Option<&str>) -> String {
    let ty = probe.kind.c;
    let to = if probe.to_int { "int" } else { ty };
    let (calls, start, thread) = if calls == INDEXED {
        (1, " int i = threadIdx.x;", "i+")
    } else {
        (calls, "", "")
    };
    let mut body = start.to_owned();
    for number in 0..calls {
        let operands: Vec<String> = (0..probe.operands)
            .map(|operand| format!("a[{thread}{}]", 32 * (number * probe.operands + operand)))
            .collect();
        let value = value(probe, call, &operands);
        let _ = write!(body, " o[{thread}{}] = {value};", 32 * number);
    }
    format!(
        "extern \"C\" __global__ void {name}({to} *__restrict__ o, const {ty} *__restrict__ a) {{{body} }}\n"
    )
}

/// What a kernel stores: the call, or what is in its place.
fn value(probe: &Probe, call: Option<&str>, operands: &[String]) -> String {
    match call {
        Some(call) => operands
            .iter()
            .enumerate()
            .fold(call.to_owned(), |call, (at, operand)| {
                call.replace(&format!("{{{at}}}"), operand)
            }),
        None if probe.to_int && probe.kind == F32 => format!("__float_as_int({})", operands[0]),
        None if probe.to_int => format!("__double2loint({})", operands[0]),
        None => operands.join("+"),
    }
}

/// A function's instructions from the kernels with it and without it, by the number of calls.
fn recipe(probe: &Probe, kernels: &[(&Function, &Function)]) -> Recipe {
    let differences: Vec<Counts> = kernels
        .iter()
        .map(|(with, without)| {
            let mut counts = Counts::new();
            for (class, count) in &with.instructions {
                *counts.entry(*class).or_default() += *count as i64;
            }
            for (class, count) in &without.instructions {
                *counts.entry(*class).or_default() -= *count as i64;
            }
            counts
        })
        .collect();
    let (first, last) = (&differences[0], &differences[differences.len() - 1]);
    let more = differences.len() as i64 - 1;
    // Operands are added where the function is not, results where it is.
    let (class, words) = probe.kind.addition;
    let added = words * (probe.operands as i64 - 1 - probe.results);
    let mut in_place = Counts::new();
    let mut once = Counts::new();
    for class in first.keys().chain(last.keys()).copied().chain([class]) {
        let at = |counts: &Counts| counts.get(&class).copied().unwrap_or(0);
        // Rounded to the next, half a call up.
        let each = (2 * (at(last) - at(first)) + more).div_euclid(2 * more);
        in_place.insert(class, each);
        once.insert(class, at(first) - each);
    }
    *in_place.entry(class).or_default() += added;
    settle(&mut in_place);
    settle(&mut once);
    Recipe {
        in_place,
        once,
        registers: 0,
    }
}

/// Kinds of instructions that are interchangeable: which of them a compiler takes depends on what is beside.
const EXCHANGED: [&[Class]; 2] = [
    &[
        Class::Mov,
        Class::Iadd3,
        Class::Imad,
        Class::Lea,
        Class::Lop3,
        Class::Shf,
        Class::Sel,
        Class::Other,
        Class::Isetp,
        Class::Ldc,
    ],
    &[Class::Ffma, Class::Fadd, Class::Fmul],
];

/// Takes what is negative from what it was exchanged with, so that the sum stays.
fn settle(counts: &mut Counts) {
    for family in EXCHANGED {
        let mut missing = 0;
        for class in family {
            if let Some(count) = counts.get_mut(class)
                && *count < 0
            {
                missing -= *count;
                *count = 0;
            }
        }
        for class in family {
            if let Some(count) = counts.get_mut(class) {
                let taken = missing.min(*count);
                *count -= taken;
                missing -= taken;
            }
        }
    }
    counts.retain(|_, count| *count > 0);
}

fn listed(counts: &Counts) -> String {
    if counts.is_empty() {
        return "-".to_owned();
    }
    let mut parts: Vec<String> = counts
        .iter()
        .map(|(class, count)| format!("{class}:{count}"))
        .collect();
    parts.sort_unstable();
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(registers: u64, opcodes: &str) -> Function {
        let mut instructions = BTreeMap::new();
        for opcode in opcodes.split_whitespace() {
            let class = Class::of_machine(opcode, "", "").expect("no padding");
            *instructions.entry(class).or_default() += 1;
        }
        Function {
            registers,
            spills: 0,
            instructions,
        }
    }

    #[test]
    fn what_calls_share_is_told_from_what_each_costs() {
        let named = |name: &str| {
            let mut all = probes().into_iter();
            all.find(|probe| probe.name == name && probe.kind == F32)
                .unwrap()
        };
        // A quotient: the base adds its two operands, the function does not.
        let with = [
            function(14, "LDG LDG MUFU FMUL MOV BRA STG"),
            function(16, "LDG LDG LDG LDG MUFU FMUL MUFU FMUL MOV BRA STG STG"),
        ];
        let without = [
            function(10, "LDG LDG FADD STG"),
            function(12, "LDG LDG LDG LDG FADD FADD STG STG"),
        ];
        let pairs: Vec<_> = with.iter().zip(&without).collect();
        let made = recipe(&named("div"), &pairs);
        assert_eq!(listed(&made.in_place), "fmul:1,mufu:1");
        assert_eq!(listed(&made.once), "bra:1,mov:1");
        // Two results are added up by the kernel, not by the function.
        let with = [
            function(10, "LDG MUFU MUFU FADD STG"),
            function(10, "LDG LDG MUFU MUFU FADD MUFU MUFU FADD STG STG"),
        ];
        let without = [function(10, "LDG STG"), function(10, "LDG LDG STG STG")];
        let pairs: Vec<_> = with.iter().zip(&without).collect();
        let made = recipe(&named("sincos"), &pairs);
        assert_eq!(
            (listed(&made.in_place), listed(&made.once)),
            ("mufu:2".to_owned(), "-".to_owned())
        );
    }

    #[test]
    fn an_exchange_of_instructions_keeps_their_number() {
        let mut counts = Counts::from([
            (Class::Lea, 2),
            (Class::Imad, -1),
            (Class::Ffma, -1),
            (Class::Shf, 1),
        ]);
        settle(&mut counts);
        assert_eq!(listed(&counts), "lea:1,shf:1");
    }

    #[test]
    fn a_kernel_puts_its_operands_into_the_call() {
        let all = probes();
        let pow = all.iter().find(|probe| probe.name == "pow").unwrap();
        assert_eq!(
            kernel("k", pow, 2, Some(&pow.call)),
            "extern \"C\" __global__ void k(float *__restrict__ o, const float *__restrict__ a) \
             { o[0] = powf(a[0],a[32]); o[32] = powf(a[64],a[96]); }\n"
        );
        assert!(kernel("b", pow, 1, None).contains("o[0] = a[0]+a[32];"));
        let mut names: Vec<_> = all.iter().map(|probe| (&probe.name, probe.kind)).collect();
        names.sort();
        let length = names.len();
        names.dedup();
        assert_eq!(names.len(), length);
    }
}
