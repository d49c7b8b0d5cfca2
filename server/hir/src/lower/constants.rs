//! Integer constants.

use warplens_syntax::Node;

use super::{Lowering, Source};
use warplens_ir::functions::Function;
use warplens_ir::{BinaryOp, Expr, ExprKind, UnaryOp};
use warplens_ir::{Type, wrapped};

impl Lowering<'_> {
    /// The value of an expression, where its text decides it.
    pub fn constant_node(&mut self, node: Node, source: Source) -> Option<i64> {
        self.unevaluated(|lowering| {
            let expression = lowering.expr(node, source);
            let expression = lowering.converted_to_number(expression);
            lowering.evaluated(&expression)
        })
    }
}

/// The value of an expression of floating point made of numbers alone.
pub(super) fn real(expression: &Expr) -> Option<f64> {
    let value = match &expression.kind {
        ExprKind::Float(value) => value.as_ref()?.value(),
        ExprKind::Int(value) => *value as f64,
        ExprKind::Cast(_, inner) if expression.ty.is_float() => real(inner)?,
        ExprKind::List(parts) if parts.len() == 1 => real(&parts[0])?,
        ExprKind::Unary(UnaryOp::Neg, inner) if expression.ty.is_float() => -real(inner)?,
        ExprKind::Binary(op, a, b) if expression.ty.is_float() => {
            let (a, b) = (real(a)?, real(b)?);
            match op {
                BinaryOp::Add => a + b,
                BinaryOp::Sub => a - b,
                BinaryOp::Mul => a * b,
                BinaryOp::Div => a / b,
                _ => return None,
            }
        }
        _ => constant(expression)? as f64,
    };
    Some(rounded(value, &expression.ty))
}

/// A number as a type holds it.
pub(super) fn rounded(value: f64, ty: &Type) -> f64 {
    match ty {
        Type::Float { bits: 32, .. } => f64::from(value as f32),
        _ => value,
    }
}

/// The value of an expression made of numbers alone.
pub(crate) fn constant(expression: &Expr) -> Option<i64> {
    match &expression.kind {
        ExprKind::Int(value) => Some(*value),
        ExprKind::Cast(_, inner) if inner.ty.is_int() => match expression.ty {
            Type::Int { bits, signed } => Some(wrapped(constant(inner)?, bits, signed)),
            _ => None,
        },
        ExprKind::Cast(_, inner) if expression.ty.is_int() => constant(inner),
        ExprKind::List(parts) if parts.len() == 1 => constant(&parts[0]),
        ExprKind::Unary(op, inner) => {
            let value = constant(inner)?;
            Some(match op {
                UnaryOp::Neg => value.wrapping_neg(),
                UnaryOp::Not => i64::from(value == 0),
                UnaryOp::BitNot => !value,
            })
        }
        ExprKind::Select(c, a, b) => constant(if constant(c)? != 0 { a } else { b }),
        ExprKind::Call(Function::Min, arguments) if arguments.len() == 2 => {
            Some(constant(&arguments[0])?.min(constant(&arguments[1])?))
        }
        ExprKind::Call(Function::Max, arguments) if arguments.len() == 2 => {
            Some(constant(&arguments[0])?.max(constant(&arguments[1])?))
        }
        ExprKind::Binary(op, left, right) => {
            let (mut a, mut b) = (constant(left)?, constant(right)?);
            // Numbers meet in their common type: -1 beside an unsigned one is a big number.
            let shift = matches!(op, BinaryOp::Shl | BinaryOp::Shr);
            let operands = match op {
                BinaryOp::Shl | BinaryOp::Shr => left.ty.common(&Type::INT),
                _ => left.ty.common(&right.ty),
            };
            if !matches!(op, BinaryOp::LogicalAnd | BinaryOp::LogicalOr)
                && let Type::Int { bits, signed } = operands
            {
                a = wrapped(a, bits, signed);
                if !shift {
                    b = wrapped(b, bits, signed);
                }
            }
            let past_the_width = shift
                && matches!(expression.ty, Type::Int { bits, .. } if b >= i64::from(bits.max(32)));
            let value = (!past_the_width)
                .then(|| applied(*op, &operands, a, b))
                .flatten()?;
            // An unsigned number that leaves its type comes back at the other end.
            Some(match expression.ty {
                Type::Int {
                    bits,
                    signed: false,
                } => wrapped(value, bits, false),
                _ => value,
            })
        }
        _ => None,
    }
}

/// An operator on two numbers of a type; nothing where C++ leaves it undefined.
pub(super) fn applied(op: BinaryOp, ty: &Type, a: i64, b: i64) -> Option<i64> {
    // 64 bits without a sign are kept as the signed number of the same bits.
    let (x, y) = (a as u64, b as u64);
    let full = matches!(
        ty,
        Type::Int {
            bits: 64,
            signed: false
        }
    );
    Some(match op {
        BinaryOp::Div if full => x.checked_div(y)? as i64,
        BinaryOp::Rem if full => x.checked_rem(y)? as i64,
        BinaryOp::Shr if full => x.checked_shr(u32::try_from(b).ok()?)? as i64,
        BinaryOp::Lt if full => i64::from(x < y),
        BinaryOp::Le if full => i64::from(x <= y),
        BinaryOp::Gt if full => i64::from(x > y),
        BinaryOp::Ge if full => i64::from(x >= y),
        BinaryOp::Add => a.wrapping_add(b),
        BinaryOp::Sub => a.wrapping_sub(b),
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::Div => a.checked_div(b)?,
        BinaryOp::Rem => a.checked_rem(b)?,
        BinaryOp::Shl => a.checked_shl(u32::try_from(b).ok()?)?,
        BinaryOp::Shr => a.checked_shr(u32::try_from(b).ok()?)?,
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
        BinaryOp::Xor => a ^ b,
        BinaryOp::Lt => i64::from(a < b),
        BinaryOp::Le => i64::from(a <= b),
        BinaryOp::Gt => i64::from(a > b),
        BinaryOp::Ge => i64::from(a >= b),
        BinaryOp::Eq => i64::from(a == b),
        BinaryOp::Ne => i64::from(a != b),
        BinaryOp::LogicalAnd => i64::from(a != 0 && b != 0),
        BinaryOp::LogicalOr => i64::from(a != 0 || b != 0),
    })
}
