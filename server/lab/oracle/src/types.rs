//! Types, their sizes, and C's arithmetic on them.

use std::rc::Rc;

use crate::scalar::Scalar;
use crate::tree::{Function, Op};

impl Scalar {
    /// Bytes.
    pub fn size(self) -> u64 {
        match self {
            Scalar::Bool | Scalar::I8 | Scalar::U8 => 1,
            Scalar::I16 | Scalar::U16 | Scalar::F16 => 2,
            Scalar::I32 | Scalar::U32 | Scalar::F32 => 4,
            Scalar::I64 | Scalar::U64 | Scalar::F64 => 8,
        }
    }

    /// Floating point.
    pub fn is_float(self) -> bool {
        matches!(self, Scalar::F16 | Scalar::F32 | Scalar::F64)
    }

    pub(crate) fn is_signed(self) -> bool {
        matches!(self, Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64)
    }

    /// C's integer promotion.
    pub(crate) fn promoted(self) -> Scalar {
        match self {
            Scalar::Bool | Scalar::I8 | Scalar::U8 | Scalar::I16 | Scalar::U16 => Scalar::I32,
            other => other,
        }
    }

    /// C's usual arithmetic conversions.
    pub(crate) fn common(self, other: Scalar) -> Scalar {
        let (a, b) = (self.promoted(), other.promoted());
        let rank = |s: Scalar| match s {
            Scalar::I32 => 0,
            Scalar::U32 => 1,
            Scalar::I64 => 2,
            Scalar::U64 => 3,
            Scalar::F16 => 4,
            Scalar::F32 => 5,
            Scalar::F64 => 6,
            _ => 0,
        };
        if rank(a) >= rank(b) { a } else { b }
    }
}

/// A structure's layout.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) name: Rc<str>,
    pub(crate) fields: Vec<(Rc<str>, Type, u64)>,
    pub(crate) methods: Vec<Rc<Function>>,
    pub(crate) size: u64,
    pub(crate) align: u64,
}

#[derive(Debug, Clone)]
pub(crate) enum Type {
    Void,
    Scalar(Scalar),
    /// OpenCL's or CUDA's. CUDA's vectors of three have the size of three elements, and no vector arithmetic.
    Vector(Scalar, u8, Packing),
    Struct(Rc<Layout>),
    Pointer(Rc<Type>),
    Array(Rc<Type>, u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    /// `float3` takes 12 bytes.
    Cuda,
    /// `float3` takes 16 bytes.
    OpenCl,
}

impl Type {
    pub(crate) const INT: Type = Type::Scalar(Scalar::I32);

    pub(crate) fn size(&self) -> u64 {
        match self {
            Type::Void => 1,
            Type::Scalar(scalar) => scalar.size(),
            Type::Vector(scalar, 3, Packing::OpenCl) => 4 * scalar.size(),
            Type::Vector(scalar, lanes, _) => scalar.size() * u64::from(*lanes),
            Type::Struct(layout) => layout.size,
            Type::Pointer(_) => 8,
            Type::Array(element, count) => element.size().saturating_mul(*count),
        }
    }

    pub(crate) fn align(&self) -> u64 {
        match self {
            Type::Void => 1,
            Type::Scalar(scalar) => scalar.size(),
            Type::Vector(scalar, 3, Packing::Cuda) => scalar.size(),
            Type::Vector(_, _, Packing::Cuda) => self.size().min(16),
            Type::Vector(..) => self.size(),
            Type::Struct(layout) => layout.align,
            Type::Pointer(_) => 8,
            Type::Array(element, _) => element.align(),
        }
    }

    /// Fits one word of the machine.
    pub(crate) fn is_word(&self) -> bool {
        matches!(self, Type::Scalar(_) | Type::Pointer(_))
    }

    pub(crate) fn same(&self, other: &Type) -> bool {
        match (self, other) {
            (Type::Void, Type::Void) => true,
            (Type::Scalar(a), Type::Scalar(b)) => a == b,
            (Type::Vector(a, n, p), Type::Vector(b, m, q)) => a == b && n == m && p == q,
            (Type::Struct(a), Type::Struct(b)) => a.name == b.name && a.size == b.size,
            (Type::Pointer(a), Type::Pointer(b)) => a.same(b),
            (Type::Array(a, n), Type::Array(b, m)) => n == m && a.same(b),
            _ => false,
        }
    }
}

/// What C does not define about an operation.
pub(crate) type Fault = Option<&'static str>;

/// A word as its type keeps it: signed ones extended by their sign, others by zeros.
pub(crate) fn normal(scalar: Scalar, word: u64) -> u64 {
    match scalar {
        Scalar::Bool => u64::from(word != 0),
        Scalar::I8 => i64::from(word as i8) as u64,
        Scalar::U8 => u64::from(word as u8),
        Scalar::I16 => i64::from(word as i16) as u64,
        Scalar::U16 | Scalar::F16 => u64::from(word as u16),
        Scalar::I32 => i64::from(word as i32) as u64,
        Scalar::U32 | Scalar::F32 => u64::from(word as u32),
        Scalar::I64 | Scalar::U64 | Scalar::F64 => word,
    }
}

/// The number that a word of a floating-point type encodes.
pub(crate) fn float_of(scalar: Scalar, word: u64) -> f64 {
    match scalar {
        Scalar::F16 => half_to_double(word as u16),
        Scalar::F32 => f64::from(f32::from_bits(word as u32)),
        _ => f64::from_bits(word),
    }
}

/// The word of a floating-point type nearest to a number.
pub(crate) fn word_of(scalar: Scalar, number: f64) -> u64 {
    match scalar {
        Scalar::F16 => u64::from(double_to_half(number)),
        Scalar::F32 => u64::from((number as f32).to_bits()),
        _ => number.to_bits(),
    }
}

fn half_to_double(bits: u16) -> f64 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let exponent = i32::from(bits >> 10 & 0x1f);
    let fraction = f64::from(bits & 0x3ff) / 1024.0;
    sign * match exponent {
        0 => fraction * 2f64.powi(-14),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction) * 2f64.powi(exponent - 15),
    }
}

fn double_to_half(number: f64) -> u16 {
    let sign = if number.is_sign_negative() { 0x8000 } else { 0 };
    let size = number.abs();
    if number.is_nan() {
        return 0x7e00;
    }
    if size >= 65520.0 {
        return sign | 0x7c00;
    }
    // Steps between neighbours here; rounding to even is what the format asks for.
    let exponent = if size < 2f64.powi(-14) {
        -14
    } else {
        size.log2().floor() as i32
    };
    let steps = (size / 2f64.powi(exponent - 10)).round_ties_even() as u32;
    let base = ((exponent + 14).max(0) as u32) << 10;
    sign | (base + steps) as u16
}

/// A conversion between scalars.
pub(crate) fn convert(from: Scalar, to: Scalar, word: u64, fault: &mut Fault) -> u64 {
    match (from.is_float(), to.is_float()) {
        _ if from == to => word,
        (true, true) => word_of(to, float_of(from, word)),
        (false, true) => {
            // One rounding: through a double, a long would be rounded twice.
            match (to, from.is_signed()) {
                (Scalar::F32, true) => u64::from((word as i64 as f32).to_bits()),
                (Scalar::F32, false) => u64::from((word as f32).to_bits()),
                (_, true) => word_of(to, word as i64 as f64),
                (_, false) => word_of(to, word as f64),
            }
        }
        (true, false) => {
            let number = float_of(from, word);
            if to == Scalar::Bool {
                return u64::from(number != 0.0);
            }
            let whole = number.trunc();
            let bits = to.size() * 8;
            let (low, high) = if to.is_signed() {
                (-(2f64.powi(bits as i32 - 1)), 2f64.powi(bits as i32 - 1))
            } else {
                (0.0, 2f64.powi(bits as i32))
            };
            if !(whole >= low && whole < high) {
                *fault = Some("a number that the integer type does not hold");
            }
            let word = if to.is_signed() {
                whole as i64 as u64
            } else {
                whole as u64
            };
            normal(to, word)
        }
        (false, false) => normal(to, word),
    }
}

/// An operation on two words of one promoted type; comparisons give 0 or 1.
pub(crate) fn operate(op: Op, scalar: Scalar, a: u64, b: u64, fault: &mut Fault) -> u64 {
    match scalar {
        Scalar::F32 => {
            let (x, y) = (f32::from_bits(a as u32), f32::from_bits(b as u32));
            let result = match op {
                Op::Add => x + y,
                Op::Sub => x - y,
                Op::Mul => x * y,
                Op::Div => x / y,
                _ => return compare(op, x.partial_cmp(&y), fault),
            };
            u64::from(result.to_bits())
        }
        Scalar::F64 | Scalar::F16 => {
            let (x, y) = (float_of(scalar, a), float_of(scalar, b));
            let result = match op {
                Op::Add => x + y,
                Op::Sub => x - y,
                Op::Mul => x * y,
                Op::Div => x / y,
                _ => return compare(op, x.partial_cmp(&y), fault),
            };
            word_of(scalar, result)
        }
        _ if op.compares() => {
            let order = if scalar.is_signed() {
                (a as i64).cmp(&(b as i64))
            } else {
                a.cmp(&b)
            };
            compare(op, Some(order), fault)
        }
        _ if scalar.is_signed() => signed(op, scalar, a as i64, b as i64, fault),
        _ => {
            let bits = scalar.size() * 8;
            let result = match op {
                Op::Add => a.wrapping_add(b),
                Op::Sub => a.wrapping_sub(b),
                Op::Mul => a.wrapping_mul(b),
                Op::Div | Op::Rem if b == 0 => {
                    *fault = Some("a division by zero");
                    0
                }
                Op::Div => a / b,
                Op::Rem => a % b,
                Op::And => a & b,
                Op::Or => a | b,
                Op::Xor => a ^ b,
                Op::Shl | Op::Shr if b >= bits => {
                    *fault = Some("a shift past the width");
                    0
                }
                Op::Shl => a << b,
                Op::Shr => a >> b,
                _ => 0,
            };
            normal(scalar, result)
        }
    }
}

fn compare(op: Op, order: Option<std::cmp::Ordering>, fault: &mut Fault) -> u64 {
    use std::cmp::Ordering::{Equal, Greater, Less};
    u64::from(match op {
        Op::Lt => order == Some(Less),
        Op::Le => matches!(order, Some(Less | Equal)),
        Op::Gt => order == Some(Greater),
        Op::Ge => matches!(order, Some(Greater | Equal)),
        Op::Eq => order == Some(Equal),
        Op::Ne => order != Some(Equal),
        _ => {
            *fault = Some("an operator that floating point does not have");
            false
        }
    })
}

fn signed(op: Op, scalar: Scalar, a: i64, b: i64, fault: &mut Fault) -> u64 {
    let bits = scalar.size() * 8;
    let (wide, x, y) = (i128::from(a), i128::from(a), i128::from(b));
    let result = match op {
        Op::Add => x + y,
        Op::Sub => x - y,
        Op::Mul => x * y,
        Op::Div | Op::Rem if b == 0 => {
            *fault = Some("a division by zero");
            0
        }
        Op::Div => x / y,
        Op::Rem => {
            if x / y != i128::from((x / y) as i64) || (bits == 32 && x / y > i128::from(i32::MAX)) {
                *fault = Some("a signed overflow");
            }
            x % y
        }
        Op::And => x & y,
        Op::Or => x | y,
        Op::Xor => x ^ y,
        Op::Shl | Op::Shr if b < 0 || b as u64 >= bits => {
            *fault = Some("a shift past the width");
            0
        }
        Op::Shl => {
            if a < 0 {
                *fault = Some("a negative number shifted to the left");
            }
            wide << b
        }
        Op::Shr => x >> b,
        _ => 0,
    };
    let word = normal(scalar, result as u64);
    if i128::from(word as i64) != result {
        *fault = Some("a signed overflow");
    }
    word
}
