//! Functions of the mathematical library whose arguments are numbers: compilers work them out.

use super::constants::{real, rounded};
use warplens_ir::functions::unspelled;
use warplens_ir::{Expr, ExprKind, Type};

/// What a call of `name` gives for these arguments as a constant of that type.
pub(super) fn worked_out(name: &str, arguments: &[Expr], ty: &Type) -> Option<ExprKind> {
    if !ty.is_float() || arguments.is_empty() || arguments.len() > 2 {
        return None;
    }
    let numbers: Option<Vec<f64>> = arguments.iter().map(real).collect();
    let value = match *numbers? {
        [x] => of_one(name, x)?,
        [x, y] => of_two(name, x, y)?,
        _ => return None,
    };
    value
        .is_finite()
        .then(|| ExprKind::Float(Some(rounded(value, ty).into())))
}

fn plain(name: &str) -> &str {
    unspelled(name.rsplit("::").next().unwrap_or(name))
}

fn of_one(name: &str, x: f64) -> Option<f64> {
    Some(match plain(name) {
        "sqrt" | "sqrtf" => x.sqrt(),
        "rsqrt" | "rsqrtf" => x.sqrt().recip(),
        "exp" | "expf" => x.exp(),
        "exp2" | "exp2f" => x.exp2(),
        "log" | "logf" => x.ln(),
        "log2" | "log2f" => x.log2(),
        "log10" | "log10f" => x.log10(),
        "ceil" | "ceilf" => x.ceil(),
        "floor" | "floorf" => x.floor(),
        "trunc" | "truncf" => x.trunc(),
        "round" | "roundf" => x.round(),
        "fabs" | "fabsf" => x.abs(),
        "sin" | "sinf" => x.sin(),
        "cos" | "cosf" => x.cos(),
        _ => return None,
    })
}

fn of_two(name: &str, x: f64, y: f64) -> Option<f64> {
    Some(match plain(name) {
        "pow" | "powf" => x.powf(y),
        "fmin" | "fminf" => x.min(y),
        "fmax" | "fmaxf" => x.max(y),
        "fmod" | "fmodf" if y != 0.0 => x % y,
        _ => return None,
    })
}
