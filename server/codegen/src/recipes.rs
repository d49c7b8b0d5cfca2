//! What the functions of the mathematical library and divisions become, as measured with the compiler.
//!
//! `recipes/*.tsv` hold them by architecture, those of `sm_80` in full and of each other one what is different there;
//! `cargo lab recipes` makes them from micro-kernels.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use warplens_ir::functions;

use crate::graph::Ty;
use crate::target::MEASURED;
use crate::{Class, Target};

/// Instructions by class.
pub(crate) type Counts = Vec<(Class, u32)>;

/// What a function becomes.
#[derive(Debug, Clone)]
pub(crate) struct Recipe {
    /// At each call.
    pub in_place: Counts,
    /// Of these the ones that are executed but for rare arguments.
    pub executed: Counts,
    /// Once in a kernel that has it: the slow path that calls share, constants.
    pub once: Counts,
    /// Registers that it needs besides its operands.
    pub registers: u32,
}

impl Recipe {
    /// True where each call goes on to the shared part: it computes the function, and what is in place could not.
    pub(crate) fn is_called(&self) -> bool {
        let computed = |counts: &Counts| -> u32 {
            let counts = counts.iter();
            counts
                .filter(|(class, _)| class.computes())
                .map(|(_, count)| count)
                .sum()
        };
        let (shared, in_place) = (computed(&self.once), computed(&self.in_place));
        shared > 0 && in_place * 4 < shared
    }
}

/// A line of a file, and its recipe once it was needed: a kernel has few of the hundreds.
#[derive(Debug, Clone)]
struct Line {
    name: &'static str,
    ty: &'static str,
    fast: bool,
    recipe: OnceLock<Recipe>,
    fields: [&'static str; 3],
}

/// What each architecture has a file of: its recipes, and those under `-use_fast_math`.
macro_rules! files {
    ($($name:literal)*) => {
        &[$((
            $name,
            include_str!(concat!("../recipes/", $name, ".tsv")),
            include_str!(concat!("../recipes/", $name, "_fast.tsv")),
        )),*]
    };
}

/// The architecture whose files are complete.
const WHOLE: &str = "sm_80";

const FILES: &[(&str, &str, &str)] =
    files!["sm_75" "sm_80" "sm_86" "sm_89" "sm_90" "sm_100" "sm_120"];

/// The recipe of that number on an architecture.
pub(crate) fn recipe(target: Target, number: u16) -> &'static Recipe {
    let line = &lines(target.index())[usize::from(number)];
    line.recipe.get_or_init(|| line.read())
}

/// The recipes of the architecture that has all: what has a number has it on every other one.
fn table() -> &'static [Line] {
    lines(Target::default().index())
}

/// What is not among the recipes: about a function of a polynomial, by its type; the names and what it executes.
const OTHERS: [(&str, &str); 2] = [
    ("f32", "ffma:8,fmul:2,mufu:1,other:4"),
    ("f64", "dfma:12,dmul:2,mufu:1,other:6"),
];

/// All recipes of an architecture; the first ones are for what is not among them.
fn lines(architecture: usize) -> &'static [Line] {
    static LINES: [OnceLock<Vec<Line>>; MEASURED.len()] =
        [const { OnceLock::new() }; MEASURED.len()];
    LINES[architecture].get_or_init(|| {
        let others = OTHERS.into_iter().map(|(ty, executed)| Line {
            name: "",
            ty,
            fast: false,
            recipe: OnceLock::new(),
            fields: [executed, "-", "4"],
        });
        let mut all: Vec<Line> = others.collect();
        all.extend(of_architecture(WHOLE));
        let name = MEASURED[architecture].name;
        if name != WHOLE {
            let mut own: FxHashMap<_, _> = of_architecture(name)
                .map(|line| (line.key(), line))
                .collect();
            for line in &mut all {
                if let Some(other) = own.remove(&line.key()) {
                    *line = other;
                }
            }
        }
        all
    })
}

fn of_architecture(name: &str) -> impl Iterator<Item = Line> {
    let files = FILES.iter().find(|(of, ..)| *of == name);
    let files = files.map(|(_, plain, fast)| [(*plain, false), (*fast, true)]);
    files.into_iter().flatten().flat_map(|(text, fast)| {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(move |line| Line::new(line, fast))
    })
}

/// Functions of single precision whose argument is reduced in place: in 32 bits up to 105,615, by a product of many words above
/// (CUDA C++ Programming Guide, Mathematical Functions).
const TRIGONOMETRIC: [&str; 4] = ["sin", "cos", "tan", "sincos"];

/// How many instructions of a class these need without the reduction by many words, which has the other integers, conversions and a
/// product in 64 bits.
fn needed(class: Class) -> u32 {
    match class {
        Class::Dmul | Class::F2f | Class::Shf | Class::Lea => 0,
        Class::F2i | Class::I2f | Class::Imad | Class::Isetp => 1,
        Class::Iadd3 | Class::Lop3 | Class::Bra => 2,
        Class::Mov => 6,
        _ => u32::MAX,
    }
}

impl Line {
    fn new(line: &'static str, fast: bool) -> Line {
        let mut fields = line.split('\t');
        let mut next = || fields.next().unwrap_or_default();
        Line {
            name: next(),
            ty: next(),
            fast,
            recipe: OnceLock::new(),
            fields: [next(), next(), next()],
        }
    }

    fn key(&self) -> (&'static str, &'static str, bool) {
        (self.name, self.ty, self.fast)
    }

    fn read(&self) -> Recipe {
        let counts = |field: &str| -> Counts {
            field
                .split(',')
                .filter_map(|part| {
                    let (name, count) = part.split_once(':')?;
                    Some((Class::named(name)?, count.parse().ok()?))
                })
                .collect()
        };
        let [in_place, once, registers] = self.fields;
        let in_place = counts(in_place);
        let reduces = self.ty == "f32" && TRIGONOMETRIC.contains(&self.name);
        let reduces = reduces && !self.fast;
        let executed = in_place.iter().map(|&(class, count)| {
            let most = if reduces { needed(class) } else { count };
            (class, count.min(most))
        });
        Recipe {
            executed: executed.collect(),
            in_place,
            once: counts(once),
            registers: registers.parse().unwrap_or(0),
        }
    }
}

/// The function of a recipe, and whether it is the fast one.
pub(crate) fn named(number: u16) -> (&'static str, bool) {
    let line = &table()[number as usize];
    (line.name, line.fast)
}

/// A function's recipe: its plain name, its type, and the name as written.
pub(crate) fn index(plain: &str, ty: Ty, written: &str, fast: bool) -> u16 {
    let ty = match ty {
        Ty::F64 => "f64",
        Ty::I32 => "i32",
        Ty::I64 => "i64",
        Ty::F16 => "f16",
        _ => "f32",
    };
    let fast = fast || written.starts_with("native_") || written.starts_with("half_");
    let find = |name: &str, ty: &str, fast: bool| {
        table()
            .iter()
            .position(|recipe| recipe.name == name && recipe.ty == ty && recipe.fast == fast)
    };
    let found = if written.starts_with("__") {
        find(written, ty, fast)
    } else {
        None
    };
    found
        .or_else(|| find(plain, ty, fast))
        .or_else(|| find(plain, ty, false))
        // What half precision has no function of its own for is computed in 32 bits.
        .or_else(|| find(plain.strip_prefix('h').unwrap_or(plain), "f32", fast))
        .unwrap_or(usize::from(ty == "f64")) as u16
}

/// The recipe of an instruction of PTX that approximates a function: what the compiler writes for the function where that is all
/// it asks for. `None` for other instructions.
pub(crate) fn approximation(mnemonic: &str) -> Option<u16> {
    let has = |word: &str| mnemonic.split('.').any(|part| part == word);
    if !has("approx") && !has("full") {
        return None;
    }
    // In 32 bits arguments are scaled where subnormal ones count.
    let flushes = has("ftz") || !has("f32");
    let (name, fast) = match (mnemonic.split('.').next()?, flushes) {
        ("ex2", flushes) => ("exp2", flushes),
        ("lg2", true) => ("log2", true),
        ("lg2", false) => ("__log2f", false),
        ("rsqrt", flushes) => ("rsqrt", flushes),
        ("sqrt", true) => ("sqrt", true),
        ("rcp", true) => ("recip", true),
        // Scaled as for the reciprocal of the root.
        ("sqrt" | "rcp", false) => ("rsqrt", false),
        ("sin", _) => ("sin", true),
        ("cos", _) => ("cos", true),
        ("tanh", _) => ("tanh", true),
        ("div", _) => ("div", true),
        _ => return None,
    };
    Some(index(name, Ty::F32, name, fast))
}

/// The instructions in place of a call of a library function on numbers of 16, 32 or 64 bits, without
/// `-use_fast_math`; `None` for what was not measured.
pub fn library(name: &str, bits: u8, target: Target) -> Option<&'static [(Class, u32)]> {
    let ty = match bits {
        64 => Ty::F64,
        32 => Ty::F32,
        16 => Ty::F16,
        _ => return None,
    };
    let number = index(&plain(name), ty, name, false);
    let is_known = usize::from(number) >= OTHERS.len();
    is_known.then(|| recipe(target, number).executed.as_slice())
}

/// A division's or a remainder's recipe.
pub(crate) fn division(rem: bool, ty: Ty, signed: bool, by: Option<i64>) -> u16 {
    let kind = match (ty, signed) {
        (Ty::I64, true) => "i64",
        (Ty::I64, false) => "u64",
        (_, true) => "i32",
        (_, false) => "u32",
    };
    let stem = if rem { "rem" } else { "div" };
    let find = |name: &str| {
        table()
            .iter()
            .position(|recipe| recipe.name == name && recipe.ty == kind && !recipe.fast)
    };
    let found = match by.map(i64::unsigned_abs) {
        None => find(stem),
        // One that was measured, else one of its kind: of the others most take a reciprocal as 10 does.
        Some(by) => find(&format!("{stem}{by}")).or_else(|| {
            find(&format!(
                "{stem}{}",
                if by.is_power_of_two() { 8 } else { 10 }
            ))
        }),
    };
    found.unwrap_or(0) as u16
}

/// A function's name without what spells its type and rounding: `__fsqrt_rn`, `sqrtf` and `native_sqrt` are `sqrt`.
pub(crate) fn plain(written: &str) -> String {
    let name = functions::unspelled(written);
    let basic = [
        "add", "sub", "mul", "fma", "ma", "div", "sqrt", "rcp", "rsqrt", "neg", "abs", "max", "min",
    ];
    if written.starts_with("__")
        && let Some(inner) = name.strip_prefix(['f', 'd', 'h'])
    {
        let inner = inner.trim_end_matches(['2', 'f']);
        if let Some(found) = basic.iter().find(|known| **known == inner) {
            return match *found {
                "ma" => "fma".to_owned(),
                "rcp" => "recip".to_owned(),
                other => other.to_owned(),
            };
        }
    }
    let known = |name: &str| table().iter().any(|recipe| recipe.name == name);
    if let Some(stem) = name.strip_suffix('f')
        && (known(stem) || matches!(stem, "fma" | "fabs" | "fmin" | "fmax" | "fdivide"))
    {
        return if stem == "fdivide" {
            "div".to_owned()
        } else {
            stem.to_owned()
        };
    }
    // The functions of pairs are those of single ones, twice.
    if let Some(inner) = name.strip_prefix("h2")
        && known(&format!("h{inner}"))
    {
        return format!("h{inner}");
    }
    if !known(name)
        && let Some(inner) = name.strip_prefix("h2").or(name.strip_prefix('h'))
        && known(inner)
    {
        return inner.to_owned();
    }
    match name {
        "powr" | "pown" | "powi" => "pow".to_owned(),
        "norm" => "norm3d".to_owned(),
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recipe_is_read_in_full() {
        let lines = FILES
            .iter()
            .flat_map(|(_, plain, fast)| plain.lines().chain(fast.lines()));
        for line in lines {
            let fields: Vec<&str> = line.split('\t').collect();
            if line.starts_with('#') {
                continue;
            }
            assert_eq!(fields.len(), 5, "{line}");
            for part in fields[2..4].iter().flat_map(|field| field.split(',')) {
                let class = part.split(':').next().unwrap_or_default();
                assert!(part == "-" || Class::named(class).is_some(), "{line}");
            }
        }
    }

    #[test]
    fn every_architecture_has_its_files_and_no_function_that_the_whole_one_lacks() {
        let names: Vec<&str> = FILES.iter().map(|(name, ..)| *name).collect();
        assert_eq!(names, MEASURED.map(|code| code.name));
        for (at, code) in MEASURED.iter().enumerate() {
            let all = lines(at);
            assert_eq!(all.len(), table().len());
            for other in of_architecture(code.name) {
                let found = all.iter().find(|line| line.key() == other.key());
                let found = found.unwrap_or_else(|| panic!("{} {}", code.name, other.name));
                assert_eq!(found.fields, other.fields, "{}", code.name);
            }
        }
    }

    #[test]
    fn functions_and_divisions_find_their_recipes() {
        let name = |number: u16| {
            let recipe = &table()[number as usize];
            format!("{} {}", recipe.name, recipe.ty)
        };
        let of = |written: &str, ty: Ty| name(index(&plain(written), ty, written, false));
        assert_eq!(of("sqrtf", Ty::F32), "sqrt f32");
        assert_eq!(of("__fsqrt_rd", Ty::F32), "__fsqrt_rd f32");
        assert_eq!(of("sincos", Ty::F64), "sincos f64");
        assert_eq!(of("h2exp", Ty::F16), "hexp f16");
        assert_eq!(of("hsqrt", Ty::F16), "hsqrt f16");
        let by = |by: Option<i64>| name(division(false, Ty::I32, false, by));
        assert_eq!(by(None), "div u32");
        assert_eq!(by(Some(24)), "div24 u32");
        assert_eq!(by(Some(64)), "div8 u32");
        assert_eq!(by(Some(37)), "div10 u32");
    }
}
