//! Integer constants.

use warplens_syntax::Node;

use super::{Lowering, Source};
use crate::functions::Function;
use crate::kernel::{BinaryOp, Expr, ExprKind, UnaryOp};

impl Lowering<'_> {
    /// The value of an expression, where its text decides it.
    pub(crate) fn constant_node(&mut self, node: Node, source: Source) -> Option<i64> {
        let expression = self.unevaluated(|lowering| lowering.expr(node, source));
        constant(&expression)
    }
}

/// The value of an expression made of numbers alone.
pub(crate) fn constant(expression: &Expr) -> Option<i64> {
    match &expression.kind {
        ExprKind::Int(value) => Some(*value),
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
        ExprKind::Binary(op, a, b) => {
            let (a, b) = (constant(a)?, constant(b)?);
            Some(match op {
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
        _ => None,
    }
}

pub(super) fn binary_op(text: &str) -> Option<BinaryOp> {
    Some(match text {
        "+" => BinaryOp::Add,
        "-" => BinaryOp::Sub,
        "*" => BinaryOp::Mul,
        "/" => BinaryOp::Div,
        "%" => BinaryOp::Rem,
        "<<" => BinaryOp::Shl,
        ">>" => BinaryOp::Shr,
        "&" | "bitand" => BinaryOp::And,
        "|" | "bitor" => BinaryOp::Or,
        "^" | "xor" => BinaryOp::Xor,
        "<" => BinaryOp::Lt,
        "<=" => BinaryOp::Le,
        ">" => BinaryOp::Gt,
        ">=" => BinaryOp::Ge,
        "==" => BinaryOp::Eq,
        "!=" | "not_eq" => BinaryOp::Ne,
        "&&" | "and" => BinaryOp::LogicalAnd,
        "||" | "or" => BinaryOp::LogicalOr,
        _ => return None,
    })
}
