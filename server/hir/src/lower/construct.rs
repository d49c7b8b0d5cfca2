//! Expressions of the IR, built of their parts.
//!
//! What holds: what is known to be a number is one, and an element of an object of the toolkit is no access of memory.

use std::sync::Arc;

use warplens_syntax::BinaryOperator;

use super::constants::constant;
use super::split::deref;
use warplens_ir::functions::{self, Bits, Function, MathClass};
use warplens_ir::{
    AddressSpace, BinaryOp, Expr, ExprKind, LoopKind, Opaque, Site, Stmt, StmtKind, Type, wrapped,
};

/// `value` after some statements.
pub(super) fn after(mut before: Vec<Stmt>, value: Expr) -> Expr {
    let (ty, site) = (value.ty.clone(), value.site);
    match value.kind {
        ExprKind::Inline(statements, result) => {
            before.extend(statements);
            Expr {
                kind: ExprKind::Inline(before, result),
                ty,
                site,
            }
        }
        ExprKind::Deref(pointer) => Expr {
            kind: ExprKind::Deref(Box::new(after(before, *pointer))),
            ty,
            site,
        },
        kind => {
            let first = Expr {
                kind: ExprKind::Inline(before, None),
                ty: Type::Void,
                site,
            };
            let value = Expr {
                kind,
                ty: ty.clone(),
                site,
            };
            Expr {
                kind: ExprKind::List(vec![first, value]),
                ty,
                site,
            }
        }
    }
}

/// A place behind what must be executed before it, as [`after`] puts them together: the statements, and the place alone.
pub(super) fn hoisted(place: Expr) -> (Vec<Stmt>, Expr) {
    let Expr { kind, ty, site } = place;
    let whole = |kind| Expr {
        kind,
        ty: ty.clone(),
        site,
    };
    match kind {
        ExprKind::List(mut parts) if is_preceded(&parts) => {
            let last = parts.pop().expect("two parts");
            let Some(ExprKind::Inline(mut before, None)) = parts.pop().map(|first| first.kind)
            else {
                unreachable!("the first is what comes before");
            };
            let (more, last) = hoisted(last);
            before.extend(more);
            (before, last)
        }
        // What a function gives back as a reference to an object is that object.
        ExprKind::Inline(before, Some(object)) => (before, whole(ExprKind::Var(object))),
        ExprKind::Field(base, offset) => {
            let (before, base) = hoisted(*base);
            (before, whole(ExprKind::Field(Box::new(base), offset)))
        }
        ExprKind::Index(base, index) if !matches!(base.ty, Type::Pointer(..)) => {
            let (before, base) = hoisted(*base);
            (before, whole(ExprKind::Index(Box::new(base), index)))
        }
        kind => (Vec::new(), whole(kind)),
    }
}

/// True for statements and the value behind them, and not for the parts of a value.
pub(super) fn is_preceded(parts: &[Expr]) -> bool {
    let [first, _] = parts else { return false };
    matches!(first.kind, ExprKind::Inline(_, None)) && first.ty == Type::Void
}

/// `base[index]`.
pub(super) fn element(base: Expr, index: Expr, site: Site) -> Expr {
    let ty = match &base.ty {
        Type::Vector(element, _) => (**element).clone(),
        ty => ty
            .element()
            .cloned()
            .unwrap_or(Type::Unknown(String::new())),
    };
    // Objects of the toolkit are not memory.
    if let Type::Library(_) | Type::Callable(_) = ty {
        return Expr {
            kind: ExprKind::List(vec![index]),
            ty,
            site,
        };
    }
    // `(&a)[0]` is `a`.
    if let (ExprKind::AddressOf(_), Some(0)) = (&base.kind, constant(&index)) {
        return deref(base, site);
    }
    Expr {
        kind: ExprKind::Index(Box::new(base), Box::new(index)),
        ty,
        site,
    }
}

/// An operator on numbers, folded where both are known.
pub(super) fn operation(op: BinaryOp, left: Expr, right: Expr, site: Site) -> Expr {
    let ty = match op {
        BinaryOp::Lt
        | BinaryOp::Le
        | BinaryOp::Gt
        | BinaryOp::Ge
        | BinaryOp::Eq
        | BinaryOp::Ne
        | BinaryOp::LogicalAnd
        | BinaryOp::LogicalOr => Type::INT,
        BinaryOp::Shl | BinaryOp::Shr => left.ty.common(&Type::INT),
        // The distance of two pointers.
        BinaryOp::Sub if left.ty.element().is_some() && right.ty.element().is_some() => Type::LONG,
        _ => left.ty.common(&right.ty),
    };
    let ty = match ty {
        Type::Array(element, _) => Type::Pointer(element, AddressSpace::Global),
        ty => ty,
    };
    folded(Expr {
        kind: ExprKind::Binary(op, Box::new(left), Box::new(right)),
        ty,
        site,
    })
}

/// An integer expression as the number it is, where it is one.
pub(super) fn folded(whole: Expr) -> Expr {
    match (&whole.ty, constant(&whole)) {
        (Type::Int { bits, signed }, Some(value)) => Expr {
            kind: ExprKind::Int(wrapped(value, *bits, *signed)),
            ..whole
        },
        _ => whole,
    }
}

/// A call to a function that every kernel may call.
pub(super) fn known_call(function: Function, name: &str, arguments: Vec<Expr>, site: Site) -> Expr {
    let make = |kind, ty| Expr { kind, ty, site };
    let first = arguments
        .first()
        .map_or(Type::Void, |first| first.ty.clone());
    let common = arguments
        .iter()
        .skip(1)
        .fold(first.clone(), |ty, next| ty.common(&next.ty));
    let (function, ty) = match function {
        Function::Min | Function::Max | Function::Abs if !common.is_int() => {
            (Function::Math(MathClass::Float(1), name.into()), common)
        }
        Function::Min | Function::Max | Function::Abs => (function, common),
        Function::Mul24 => (function, first),
        Function::Bits(bits) if common.is_int() => {
            return integer_call(bits, name, arguments, site);
        }
        // `clamp` of floating point, parts of vectors.
        Function::Bits(Bits::Clamp | Bits::MultiplyAdd24) => {
            (Function::Math(MathClass::Float(2), name.into()), common)
        }
        Function::Bits(_) => (Function::Math(MathClass::Int(1), name.into()), Type::INT),
        Function::Load | Function::Atomic(..) => {
            let ty = first.element().cloned().unwrap_or(Type::INT);
            (function, ty)
        }
        Function::Store | Function::Ignored(..) => (function, Type::Void),
        Function::Texture { store } => (
            function,
            if store {
                Type::Void
            } else {
                Type::Vector(Arc::new(Type::FLOAT), 4)
            },
        ),
        Function::Mapped | Function::SameBits => {
            let own = arguments.first().map(|first| first.ty.clone());
            (function, own.unwrap_or(Type::INT))
        }
        Function::Tile { .. }
        | Function::CopyPastRegisters
        | Function::Rows { .. }
        | Function::Bulk { .. }
        | Function::BulkBox { .. }
        | Function::Instruction(..) => (function, Type::Void),
        Function::Pipe { .. } | Function::Launched { .. } | Function::Runtime => {
            (function, Type::INT)
        }
        Function::WarpExchange(..) => {
            let value = functions::value_of_exchange(name, arguments.len());
            let own = arguments
                .get(value)
                .map_or(Type::INT, |value| value.ty.clone());
            let ty = functions::exchanged(name, &own).unwrap_or(own);
            (function, ty)
        }
        Function::Math(class, _) => {
            let ty = match class {
                MathClass::Int(_) => match common {
                    Type::Int { .. } => common,
                    _ => Type::INT,
                },
                MathClass::Convert => functions::converted(name).unwrap_or(Type::INT),
                MathClass::Tensor => sum_of(&arguments),
                // Those for float convert what they are given.
                _ if name.ends_with('f') && common == Type::DOUBLE && !functions::is_base(name) => {
                    Type::FLOAT
                }
                _ if name.ends_with('f') || name.starts_with("__") => match &common {
                    Type::Float { .. } | Type::Vector(..) => common,
                    _ => Type::FLOAT,
                },
                // Beside an integer the overload for `double` is taken.
                _ if arguments.iter().any(|argument| argument.ty.is_int())
                    && functions::beside_integers(name).is_some() =>
                {
                    functions::beside_integers(name).unwrap_or(common)
                }
                _ if common.is_float() || matches!(common, Type::Vector(..)) => common,
                _ => Type::DOUBLE,
            };
            if let Some(number) = super::folds::worked_out(name, &arguments, &ty) {
                return make(number, ty);
            }
            (function, ty)
        }
    };
    make(ExprKind::Call(function, arguments), ty)
}

/// What a matrix product gives: the type of the sum that it adds to, which is the last vector. In double precision the smallest
/// products add to a number, the third argument.
fn sum_of(arguments: &[Expr]) -> Type {
    let mut types = arguments.iter().rev().map(|argument| &argument.ty);
    let vector = types.find(|ty| matches!(ty, Type::Vector(..)));
    let sum = vector.or(arguments.get(2).map(|argument| &argument.ty));
    sum.cloned().unwrap_or(Type::Void)
}

/// A call of named integer arithmetic, its operands converted to the types that its name says.
fn integer_call(bits: Bits, name: &str, arguments: Vec<Expr>, site: Site) -> Expr {
    let first = arguments
        .first()
        .map_or(Type::INT, |first| first.ty.clone());
    let (operand, result) = functions::integers(name, &first).unwrap_or((Type::UINT, Type::INT));
    let arguments = arguments
        .into_iter()
        .map(|argument| Expr {
            site: argument.site,
            ty: operand.clone(),
            kind: ExprKind::Cast(false, Box::new(argument)),
        })
        .collect();
    Expr {
        kind: ExprKind::Call(Function::Bits(bits), arguments),
        ty: result,
        site,
    }
}

/// What only the runtime answers, one answer for each thread.
pub(super) fn asked(operands: Vec<Expr>, ty: Type, site: Site) -> Expr {
    Expr {
        kind: ExprKind::Call(Function::Runtime, operands),
        ty,
        site,
    }
}

/// `body` as a loop of unknown trip count.
pub(super) fn repeated(body: Vec<Stmt>, site: Site) -> Vec<Stmt> {
    let again = Expr {
        kind: ExprKind::Opaque(Opaque::Unknown, Vec::new()),
        ty: Type::INT,
        site,
    };
    vec![Stmt {
        kind: StmtKind::Loop {
            kind: LoopKind::Do,
            init: Vec::new(),
            condition: Some(again),
            step: None,
            body,
            unroll: None,
        },
        site,
    }]
}

/// What an operator of the language is in the IR.
pub(super) fn binary_op(operator: BinaryOperator) -> BinaryOp {
    match operator {
        BinaryOperator::Add => BinaryOp::Add,
        BinaryOperator::Subtract => BinaryOp::Sub,
        BinaryOperator::Multiply => BinaryOp::Mul,
        BinaryOperator::Divide => BinaryOp::Div,
        BinaryOperator::Remainder => BinaryOp::Rem,
        BinaryOperator::ShiftLeft => BinaryOp::Shl,
        BinaryOperator::ShiftRight => BinaryOp::Shr,
        BinaryOperator::BitAnd => BinaryOp::And,
        BinaryOperator::BitOr => BinaryOp::Or,
        BinaryOperator::BitXor => BinaryOp::Xor,
        BinaryOperator::Less => BinaryOp::Lt,
        BinaryOperator::LessEqual => BinaryOp::Le,
        BinaryOperator::Greater => BinaryOp::Gt,
        BinaryOperator::GreaterEqual => BinaryOp::Ge,
        BinaryOperator::Equal => BinaryOp::Eq,
        BinaryOperator::NotEqual => BinaryOp::Ne,
        BinaryOperator::And => BinaryOp::LogicalAnd,
        BinaryOperator::Or => BinaryOp::LogicalOr,
    }
}
