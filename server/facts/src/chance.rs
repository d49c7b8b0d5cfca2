//! How probable a condition is where data decides it, as far as its text says so.

use warplens_ir::{BinaryOp, Bits, Expr, ExprKind, Function, Stmt, StmtKind, Type, UnaryOp, VarId};

use crate::draft::From;

/// The probability that a lane takes a branch of which nothing is known.
pub(crate) const UNKNOWN: f64 = 0.5;
/// The probability that `__builtin_expect` is right: what GCC takes (parameter `builtin-expect-probability`).
const EXPECTED: f64 = 0.9;
/// The probability that it is wrong.
const UNEXPECTED: f64 = 0.1;
/// The probability that a number of floating point is just this one: of as many as a `float` tells apart between two
/// powers of two. That compilers take equal numbers of floating point for rare is as old as Ball and Larus (1993), who
/// do not say how rare.
const EQUAL: f64 = 1.0 / 8_388_608.0;

/// The probability of a condition, and who says so; `argument` knows what integer parameters were given.
pub(crate) fn of(condition: &Expr, argument: &dyn Fn(VarId) -> Option<i64>) -> (f64, From) {
    match expected(condition) {
        Some(true) => (EXPECTED, From::Expectation),
        Some(false) => (UNEXPECTED, From::Expectation),
        None => match equal(condition, argument) {
            Some(probability) => (probability, From::Chance),
            None => (UNKNOWN, From::Default),
        },
    }
}

/// The probability that a value goes beyond all of the turns before it, over a loop of that many: of n values in any order the k-th is
/// the greatest so far with probability 1/k, so that ln n + 0.577 of them are (Knuth, The Art of Computer Programming, 1.2.10).
pub(crate) fn record(turns: f64) -> f64 {
    const EULER: f64 = 0.577_215_664_901_532_9;
    let turns = turns.max(1.0);
    ((turns.ln() + EULER) / turns).min(1.0)
}

/// A probability as it is shown, to two digits: `0.5`, `0.0073`, `1.2e-7`.
pub(crate) fn text(probability: f64) -> String {
    let digits = format!("{probability:.1e}");
    match digits.parse::<f64>() {
        Ok(rounded) if rounded >= 1e-4 || rounded == 0.0 => rounded.to_string(),
        _ => digits,
    }
}

/// Whether a condition compares a value with the greatest or least so far: where it holds, that becomes the value.
pub(crate) fn is_record(condition: &Expr, then: &[Stmt]) -> bool {
    let ExprKind::Binary(BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge, a, b) =
        &condition.without_casts().kind
    else {
        return false;
    };
    [(a, b), (b, a)].into_iter().any(|(value, extremum)| {
        let ExprKind::Var(extremum) = extremum.without_casts().kind else {
            return false;
        };
        then.iter().any(|statement| {
            let StmtKind::Expr(expression) = &statement.kind else {
                return false;
            };
            matches!(
                &expression.kind,
                ExprKind::Assign(None, target, new)
                    if matches!(target.kind, ExprKind::Var(of) if of == extremum)
                        && new.without_casts().is_alike(value.without_casts())
            )
        })
    })
}

/// What `__builtin_expect` says of a condition, where the condition is one.
fn expected(condition: &Expr) -> Option<bool> {
    match &condition.kind {
        ExprKind::Call(Function::Bits(Bits::Expect), arguments) => {
            let mut value = arguments.get(1)?;
            while let ExprKind::Cast(_, inner) = &value.kind {
                value = inner;
            }
            match value.kind {
                ExprKind::Int(value) => Some(value != 0),
                _ => None,
            }
        }
        ExprKind::Cast(_, inner) => expected(inner),
        ExprKind::List(parts) if parts.len() == 1 => expected(&parts[0]),
        _ => None,
    }
}

/// The probability that a number is equal to one that is written there, and of what is made of that.
fn equal(condition: &Expr, argument: &dyn Fn(VarId) -> Option<i64>) -> Option<f64> {
    match &condition.kind {
        ExprKind::Cast(_, inner) => equal(inner, argument),
        ExprKind::List(parts) if parts.len() == 1 => equal(&parts[0], argument),
        ExprKind::Unary(UnaryOp::Not, inner) => Some(1.0 - equal(inner, argument)?),
        ExprKind::Binary(BinaryOp::Eq, a, b) => is_by_chance(a, b).then_some(EQUAL),
        ExprKind::Binary(BinaryOp::Ne, a, b) => is_by_chance(a, b).then_some(1.0 - EQUAL),
        // A switch that the launch sets to neither decides it nor adds to it.
        ExprKind::Binary(BinaryOp::LogicalOr, a, b) => {
            let side = |side: &Expr| match given(side, argument) {
                Some(value) => Some(f64::from(u8::from(value))),
                None => equal(side, argument),
            };
            Some(1.0 - (1.0 - side(a)?) * (1.0 - side(b)?))
        }
        _ => None,
    }
}

/// Whether a parameter that is a condition by itself was given as true.
fn given(side: &Expr, argument: &dyn Fn(VarId) -> Option<i64>) -> Option<bool> {
    match &side.kind {
        ExprKind::Cast(_, inner) => given(inner, argument),
        ExprKind::List(parts) if parts.len() == 1 => given(&parts[0], argument),
        ExprKind::Var(id) => argument(*id).map(|value| value != 0),
        _ => None,
    }
}

/// True for a number of floating point and a literal that is no flag: data is often 0, 1 and -1 on purpose.
fn is_by_chance(a: &Expr, b: &Expr) -> bool {
    let rare = |side: &Expr| {
        literal(side).is_some_and(|value| !value.is_nan() && ![0.0, 1.0].contains(&value.abs()))
    };
    let computed = |side: &Expr| matches!(side.ty, Type::Float { .. }) && literal(side).is_none();
    rare(a) && computed(b) || rare(b) && computed(a)
}

fn literal(side: &Expr) -> Option<f64> {
    match &side.kind {
        ExprKind::Float(value) => value.map(warplens_ir::Real::value),
        ExprKind::Int(value) => Some(*value as f64),
        ExprKind::Cast(_, inner) => literal(inner),
        ExprKind::Unary(UnaryOp::Neg, inner) => literal(inner).map(|value| -value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_probability_is_shown_to_two_digits() {
        let shown = [0.5, 1.0, 0.0, 0.007_332_702_6, 0.999_9, super::EQUAL].map(super::text);
        assert_eq!(shown, ["0.5", "1", "0", "0.0073", "1", "1.2e-7"]);
    }
}
