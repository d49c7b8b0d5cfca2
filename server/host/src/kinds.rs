//! The kinds of numbers that registers and memory hold.

use warplens_ir::Type;

/// What a number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    Int { bits: u8, signed: bool },
    F32,
    F64,
}

impl Number {
    /// `long`, in which addresses and subscripts are.
    pub(crate) const LONG: Number = Number::Int {
        bits: 64,
        signed: true,
    };

    /// Of a type; `None` for what is no number.
    pub(crate) fn of(ty: &Type) -> Option<Number> {
        match ty {
            Type::Int {
                bits: bits @ (1 | 8 | 16 | 32 | 64),
                signed,
            } => Some(Number::Int {
                bits: *bits,
                signed: *signed,
            }),
            Type::Float { bits: 32, .. } => Some(Number::F32),
            Type::Float { bits: 64, .. } => Some(Number::F64),
            _ => None,
        }
    }

    pub(crate) fn ty(self) -> Type {
        match self {
            Number::Int { bits, signed } => Type::Int { bits, signed },
            Number::F32 => Type::FLOAT,
            Number::F64 => Type::DOUBLE,
        }
    }

    pub(crate) fn is_float(self) -> bool {
        !matches!(self, Number::Int { .. })
    }

    /// Bytes in memory.
    pub(crate) fn size(self) -> usize {
        match self {
            Number::Int { bits, .. } => usize::from(bits.div_ceil(8)),
            Number::F32 => 4,
            Number::F64 => 8,
        }
    }

    /// Memory's bits as a register holds them: integers in 64 bits, floating point as a double.
    pub(crate) fn widened(self, word: u64) -> i64 {
        match self {
            Number::Int { bits: 1, .. } => i64::from(word & 0xFF != 0),
            Number::Int { bits, signed } => wrapped(word as i64, bits, signed),
            Number::F32 => double(f64::from(f32::from_bits(word as u32))),
            Number::F64 => word as i64,
        }
    }

    /// A register's bits as memory holds them.
    pub(crate) fn narrowed(self, value: i64) -> u64 {
        match self {
            Number::Int { .. } | Number::F64 => value as u64,
            Number::F32 => u64::from((real(value) as f32).to_bits()),
        }
    }
}

/// An integer in that many bits.
pub(crate) fn wrapped(value: i64, bits: u8, signed: bool) -> i64 {
    let unused = 64 - u32::from(bits);
    if unused == 0 {
        value
    } else if signed {
        value << unused >> unused
    } else {
        ((value as u64) << unused >> unused) as i64
    }
}

/// A double as a register holds it.
pub(crate) fn double(value: f64) -> i64 {
    value.to_bits() as i64
}

/// The double that a register holds.
pub(crate) fn real(bits: i64) -> f64 {
    f64::from_bits(bits as u64)
}
