//! Floating point whose number is the same for the whole launch: constants, arguments, and what is computed of these alone.
//!
//! In: the numbers of the operands. Out: the number as the type holds it (IEEE 754, to nearest), for conversions to integers, which
//! bounds of loops and subscripts are made of, and for comparisons. What holds: only operations that every compiler rounds alike are
//! followed; a number that rests on an assumed argument is none.

use warplens_ir::{BinaryOp as IrOp, Storage, Type, VarId};

use crate::context::assumed;
use crate::executor::Executor;
use crate::value::{Kind, Value};

impl Executor<'_> {
    /// The number of a value, integers included.
    pub(crate) fn real_of(&self, value: &Value) -> Option<f64> {
        match value.kind {
            Kind::Data => value.real,
            Kind::Int(id) => {
                let known = self.arena.value(id)?;
                (!assumed(&self.arena, id)).then_some(known as f64)
            }
            Kind::Pointer(..) => None,
        }
    }

    /// What a conversion to an integer makes of a number; `None` where the number is not known or the type does not hold it.
    pub(crate) fn whole_of(&self, value: &Value, to: &Type) -> Option<i64> {
        let number = value.real?.trunc();
        let Type::Int { bits, signed } = to else {
            return None;
        };
        let range = warplens_symbolic::Interval::of_type(*bits, *signed);
        let whole = number as i64;
        (number.abs() < 9e15 && (range.lo..=range.hi).contains(&whole)).then_some(whole)
    }

    /// The result of a function of the mathematical library.
    pub(crate) fn known_result(&self, name: &str, arguments: &[Value], ty: &Type) -> Option<Value> {
        let numbers: Option<Vec<f64>> = arguments.iter().map(|of| self.real_of(of)).collect();
        let number = function(name, &numbers?)?;
        Some(Value::real(number, ty))
    }

    /// What the launch gives a parameter of floating point, or a member of one.
    pub(crate) fn given_real(&self, id: VarId, at: u64) -> Option<f64> {
        let var = self.kernel.var(id);
        if !matches!(var.storage, Storage::Param(_)) || self.reals.is_empty() {
            return None;
        }
        let mut name = var.name.clone();
        if let Type::Struct(_) = var.ty {
            name.push_str(&path_to(&var.ty, at)?);
        }
        let mut given = self.reals.iter();
        let (_, bits) = given.find(|(of, _)| *of == name)?;
        Some(f64::from_bits(*bits))
    }
}

/// `.shape.scale` of the number or pointer at that byte.
pub(crate) fn path_to(ty: &Type, at: u64) -> Option<String> {
    match ty {
        Type::Struct(structure) => {
            let mut fields = structure.fields.iter();
            let field = fields
                .find(|field| (field.offset..field.offset + field.ty.size()).contains(&at))?;
            let rest = path_to(&field.ty, at - field.offset)?;
            Some(format!(".{}{rest}", field.name))
        }
        Type::Array(element, _) => {
            let size = element.size().max(1);
            Some(format!("[{}]{}", at / size, path_to(element, at % size)?))
        }
        Type::Vector(element, _) => {
            let lane = usize::try_from(at / element.size().max(1)).ok()?;
            let name = ["x", "y", "z", "w"].get(lane)?;
            at.is_multiple_of(element.size().max(1))
                .then(|| format!(".{name}"))
        }
        Type::Int { .. } | Type::Float { .. } | Type::Pointer(..) => (at == 0).then(String::new),
        _ => None,
    }
}

/// The result of an operator.
pub(crate) fn arithmetic(op: IrOp, a: f64, b: f64) -> Option<f64> {
    match op {
        IrOp::Add => Some(a + b),
        IrOp::Sub => Some(a - b),
        IrOp::Mul => Some(a * b),
        IrOp::Div => Some(a / b),
        _ => None,
    }
}

/// The result of a comparison.
pub(crate) fn comparison(op: IrOp, a: f64, b: f64) -> Option<bool> {
    match op {
        IrOp::Lt => Some(a < b),
        IrOp::Le => Some(a <= b),
        IrOp::Gt => Some(a > b),
        IrOp::Ge => Some(a >= b),
        #[allow(clippy::float_cmp, reason = "as the kernel does")]
        IrOp::Eq => Some(a == b),
        #[allow(clippy::float_cmp, reason = "as the kernel does")]
        IrOp::Ne => Some(a != b),
        _ => None,
    }
}

/// The result of a function of the mathematical library that is rounded as the standard says.
pub(crate) fn function(name: &str, arguments: &[f64]) -> Option<f64> {
    let plain = name.rsplit("::").next().unwrap_or(name);
    let plain = plain
        .strip_suffix('f')
        .filter(|stem| !stem.is_empty())
        .unwrap_or(plain);
    Some(match (plain, arguments) {
        ("sqrt", [x]) => x.sqrt(),
        ("floor", [x]) => x.floor(),
        ("ceil", [x]) => x.ceil(),
        ("trunc", [x]) => x.trunc(),
        ("round", [x]) => x.round(),
        ("rint" | "nearbyint", [x]) => x.round_ties_even(),
        ("fabs" | "abs", [x]) => x.abs(),
        ("fmin" | "min", [x, y]) => x.min(*y),
        ("fmax" | "max", [x, y]) => x.max(*y),
        _ => return None,
    })
}
