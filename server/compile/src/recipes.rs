//! What the functions of the mathematical library and divisions become, as measured with the compiler.
//!
//! `recipes/*.tsv` hold them by architecture; `cargo xtask recipes` makes them from micro-kernels.

use std::sync::OnceLock;

use crate::Class;
use crate::graph::Ty;

/// Instructions by class.
pub(crate) type Counts = Vec<(Class, u32)>;

/// What a function becomes.
#[derive(Debug, Default)]
pub(crate) struct Recipe {
    name: String,
    ty: String,
    fast: bool,
    /// At each call.
    pub in_place: Counts,
    /// Once in a kernel that has it: the slow path that calls share, constants.
    pub once: Counts,
    /// Registers that it needs besides its operands.
    pub registers: u32,
}

/// All recipes; the first stands for what is not among them.
pub(crate) fn table() -> &'static [Recipe] {
    static TABLE: OnceLock<Vec<Recipe>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut all = vec![Recipe {
            in_place: vec![
                (Class::Ffma, 8),
                (Class::Fmul, 2),
                (Class::Mufu, 1),
                (Class::Other, 4),
            ],
            registers: 4,
            ..Recipe::default()
        }];
        read(include_str!("../recipes/sm_80.tsv"), false, &mut all);
        read(include_str!("../recipes/sm_80_fast.tsv"), true, &mut all);
        all
    })
}

fn read(text: &str, fast: bool, out: &mut Vec<Recipe>) {
    let counts = |field: &str| -> Counts {
        field
            .split(',')
            .filter_map(|part| {
                let (name, count) = part.split_once(':')?;
                Some((Class::named(name)?, count.parse().ok()?))
            })
            .collect()
    };
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let mut fields = line.split('\t');
        let mut next = || fields.next().unwrap_or_default();
        out.push(Recipe {
            name: next().to_owned(),
            ty: next().to_owned(),
            fast,
            in_place: counts(next()),
            once: counts(next()),
            registers: next().parse().unwrap_or(0),
        });
    }
}

/// A function's recipe: its plain name, its type, and the name as written.
pub(crate) fn index(plain: &str, ty: Ty, written: &str, fast: bool) -> u16 {
    let ty = match ty {
        Ty::F64 => "f64",
        Ty::I32 => "i32",
        Ty::I64 => "i64",
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
        .unwrap_or(0) as u16
}

/// A division's or a remainder's recipe.
pub(crate) fn division(rem: bool, ty: Ty, signed: bool, by: Option<i64>, fast: bool) -> u16 {
    let kind = match (ty, signed) {
        (Ty::I64, true) => "i64",
        (Ty::I64, false) => "u64",
        (_, true) => "i32",
        (_, false) => "u32",
    };
    let stem = if rem { "rem" } else { "div" };
    let name = match by {
        Some(by) if by.unsigned_abs().is_power_of_two() => format!("{stem}8"),
        Some(_) => format!("{stem}7"),
        None => stem.to_owned(),
    };
    let _ = fast;
    table()
        .iter()
        .position(|recipe| recipe.name == name && recipe.ty == kind && !recipe.fast)
        .unwrap_or(0) as u16
}

/// A function's name without what spells its type and rounding: `__fsqrt_rn`, `sqrtf` and `native_sqrt` are `sqrt`.
pub(crate) fn plain(written: &str) -> String {
    let mut name = written.trim_start_matches('_');
    for prefix in ["builtin_", "native_", "half_", "fast_", "nv_", "ocml_"] {
        name = name.strip_prefix(prefix).unwrap_or(name);
    }
    for suffix in ["_rn", "_rz", "_ru", "_rd", "_sat", "_f32", "_f64", "_ieee"] {
        name = name.strip_suffix(suffix).unwrap_or(name);
    }
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
    if !known(name)
        && let Some(inner) = name.strip_prefix("h2").or(name.strip_prefix('h'))
        && known(inner)
    {
        return inner.to_owned();
    }
    match name {
        "sincos" => "sin".to_owned(),
        "powr" | "pown" | "powi" => "pow".to_owned(),
        "norm" => "norm3d".to_owned(),
        other => other.to_owned(),
    }
}
