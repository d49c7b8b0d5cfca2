//! Arithmetic on C integers, one value per lane.

use warplens_ir::{BinaryOp, Type, VarId};

/// Most lanes of a warp.
pub(super) const LANES: usize = 64;

/// The value of an expression in each lane of a warp. A lane whose bit in `known` is clear is unknown: it depends on
/// data, or C leaves it undefined.
#[derive(Debug, Clone, Copy)]
pub(super) struct LaneValues {
    pub(super) lanes: [i64; LANES],
    pub(super) known: u64,
    /// For a pointer, the array it points into; its lanes are then byte offsets. `None` for integers.
    pub(super) array: Option<VarId>,
}

impl LaneValues {
    pub(super) const UNKNOWN: LaneValues = LaneValues {
        lanes: [0; LANES],
        known: 0,
        array: None,
    };

    pub(super) fn all(value: i64) -> LaneValues {
        LaneValues {
            lanes: [value; LANES],
            known: u64::MAX,
            array: None,
        }
    }

    pub(super) fn of(each: impl Fn(usize) -> i64) -> LaneValues {
        LaneValues {
            lanes: std::array::from_fn(each),
            known: u64::MAX,
            array: None,
        }
    }

    /// The value as an integer; an address becomes unknown.
    pub(super) fn number(self) -> LaneValues {
        if self.array.is_some() {
            LaneValues::UNKNOWN
        } else {
            self
        }
    }

    /// Mask of lanes known to be nonzero.
    pub(super) fn truth(&self) -> u64 {
        let some = (0..LANES).filter(|&lane| self.lanes[lane] != 0);
        some.fold(0, |mask, lane| mask | 1 << lane) & self.known
    }

    pub(super) fn map(mut self, each: impl Fn(i64) -> i64) -> LaneValues {
        for lane in &mut self.lanes {
            *lane = each(*lane);
        }
        self
    }

    /// Lane by lane; what gives nothing is not known.
    pub(super) fn zip(
        &self,
        other: &LaneValues,
        each: impl Fn(i64, i64) -> Option<i64>,
    ) -> LaneValues {
        let mut known = self.known & other.known;
        let lanes = std::array::from_fn(|lane| {
            let found = each(self.lanes[lane], other.lanes[lane]);
            if found.is_none() {
                known &= !(1 << lane);
            }
            found.unwrap_or(0)
        });
        LaneValues {
            lanes,
            known,
            array: None,
        }
    }

    /// The lanes of the mask from another value.
    pub(super) fn take(&mut self, other: &LaneValues, mask: u64) {
        if self.array != other.array && mask != 0 {
            // Those that stay must not be used as what the others are.
            self.known &= mask;
            self.array = other.array;
        }
        for (lane, value) in self.lanes.iter_mut().enumerate() {
            if mask >> lane & 1 == 1 {
                *value = other.lanes[lane];
            }
        }
        self.known = self.known & !mask | other.known & mask;
    }

    pub(super) fn converted(self, to: &Type) -> LaneValues {
        match to {
            Type::Int { .. } => self.number().fitted(to),
            _ => LaneValues::UNKNOWN,
        }
    }

    /// The numbers as a type holds them; what most kernels count with goes over all lanes at once.
    pub(super) fn fitted(self, ty: &Type) -> LaneValues {
        match ty {
            Type::Int {
                bits: 32,
                signed: true,
            } => self.map(|value| i64::from(value as i32)),
            Type::Int {
                bits: 32,
                signed: false,
            } => self.map(|value| i64::from(value as u32)),
            Type::Int { bits: 64, .. } => self,
            _ => self.map(|value| fitted(value, ty)),
        }
    }

    /// An operation lane by lane; both operands have the type, the result has yet to be fitted.
    pub(super) fn combined(&self, op: BinaryOp, ty: &Type, other: &LaneValues) -> LaneValues {
        match op {
            BinaryOp::Add => self.each(other, i64::wrapping_add),
            BinaryOp::Sub => self.each(other, i64::wrapping_sub),
            BinaryOp::Mul => self.each(other, i64::wrapping_mul),
            BinaryOp::And => self.each(other, |a, b| a & b),
            BinaryOp::Or => self.each(other, |a, b| a | b),
            BinaryOp::Xor => self.each(other, |a, b| a ^ b),
            BinaryOp::Eq => self.each(other, |a, b| i64::from(a == b)),
            BinaryOp::Ne => self.each(other, |a, b| i64::from(a != b)),
            BinaryOp::Lt if !unsigned(ty) => self.each(other, |a, b| i64::from(a < b)),
            BinaryOp::Le if !unsigned(ty) => self.each(other, |a, b| i64::from(a <= b)),
            BinaryOp::Gt if !unsigned(ty) => self.each(other, |a, b| i64::from(a > b)),
            BinaryOp::Ge if !unsigned(ty) => self.each(other, |a, b| i64::from(a >= b)),
            _ => self.zip(other, |a, b| binary(op, ty, a, b)),
        }
    }

    /// Lane by lane, what always gives something.
    fn each(&self, other: &LaneValues, each: impl Fn(i64, i64) -> i64) -> LaneValues {
        LaneValues {
            lanes: std::array::from_fn(|lane| each(self.lanes[lane], other.lanes[lane])),
            known: self.known & other.known,
            array: None,
        }
    }
}

/// The number as a type holds it: sign or zero extended; of 64 bits without a sign the bits.
pub(super) fn fitted(value: i64, ty: &Type) -> i64 {
    match ty {
        Type::Int { bits: 1, .. } => i64::from(value != 0),
        Type::Int { bits, signed } if *bits < 64 => {
            let shift = 64 - u32::from(*bits);
            if *signed {
                value << shift >> shift
            } else {
                ((value as u64) << shift >> shift) as i64
            }
        }
        _ => value,
    }
}

fn unsigned(ty: &Type) -> bool {
    matches!(ty, Type::Int { signed: false, .. })
}

/// What [`LaneValues::combined`] does not do over all lanes at once: what may give nothing, and comparisons without a sign.
fn binary(op: BinaryOp, ty: &Type, a: i64, b: i64) -> Option<i64> {
    let flag = |holds: bool| Some(i64::from(holds));
    let (x, y) = (a as u64, b as u64);
    let bare = unsigned(ty);
    match op {
        BinaryOp::Div if bare => x.checked_div(y).map(|value| value as i64),
        BinaryOp::Rem if bare => x.checked_rem(y).map(|value| value as i64),
        BinaryOp::Div => a.checked_div(b),
        BinaryOp::Rem => a.checked_rem(b),
        BinaryOp::Lt => flag(x < y),
        BinaryOp::Le => flag(x <= y),
        BinaryOp::Gt => flag(x > y),
        BinaryOp::Ge => flag(x >= y),
        BinaryOp::Shl | BinaryOp::Shr => {
            let Type::Int { bits, .. } = ty else {
                return None;
            };
            if !(0..i64::from(*bits)).contains(&b) {
                return None;
            }
            Some(match op {
                BinaryOp::Shl => a << b,
                _ if bare => (x >> b) as i64,
                _ => a >> b,
            })
        }
        _ => None,
    }
}

/// The smaller or the larger of two numbers of a type.
pub(super) fn extreme(ty: &Type, least: bool, a: i64, b: i64) -> i64 {
    let less = if unsigned(ty) {
        (a as u64) < b as u64
    } else {
        a < b
    };
    if less == least { a } else { b }
}
