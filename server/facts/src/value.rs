//! What an expression of the kernel can be while it is executed symbolically.

use std::sync::Arc;

use warplens_ir::{AddressSpace, Storage, Type, Var};
use warplens_symbolic::{Id, SymbolSet};

use crate::facts::{Alias, Space};
use crate::why::NoValue;

/// Bytes at a multiple of which arrays and what pointers lead to begin.
pub(crate) const ALIGNMENT: i64 = 256;

/// The value of an integer parameter that neither the launch nor the settings give.
pub const DEFAULT_ARGUMENT: i64 = 1024;

/// An operation of the dependence graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct OpId(pub(crate) u32);

/// Where a value comes from: `None` for what is there before the kernel begins.
pub(crate) type Origin = Option<OpId>;

/// A condition under which a value is not defined, and why.
#[derive(Debug, Clone)]
pub(crate) struct Doubt {
    pub(crate) when: Id,
    pub(crate) why: NoValue,
}

/// An array that accesses go through: a pointer parameter, a shared array, a thread's own array.
#[derive(Debug, Clone)]
pub(crate) struct Array {
    pub(crate) name: String,
    pub(crate) space: Space,
    /// Index into the facts' shared arrays.
    pub(crate) shared: Option<usize>,
    pub(crate) alias: Alias,
    /// Bytes, where its declaration or the launch says them.
    pub(crate) extent: Option<u64>,
    /// That of another block of the cluster.
    pub(crate) remote: bool,
}

/// A part of the kernel by its place: its address in memory, and those of the calls of routines that lead there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Part {
    /// The routine's body, executed once for several calls, where the way begins; none: the kernel.
    pub(crate) body: Option<usize>,
    /// The addresses in a row, as the digits of a number: what leads to a body can be put before it.
    scale: u64,
    digits: u64,
}

/// The base of these numbers: odd, so that no digit is lost, and with bits everywhere.
const BASE: u64 = 0x9e37_79b9_7f4a_7c15;

impl Part {
    /// The kernel, or a body that is executed once for several calls.
    pub(crate) fn whole(body: Option<usize>) -> Part {
        Part {
            body,
            scale: 1,
            digits: 0,
        }
    }

    /// What is at an address in it, or behind the call there.
    pub(crate) fn within(self, address: usize) -> Part {
        Part {
            body: self.body,
            scale: self.scale.wrapping_mul(BASE),
            digits: self.digits.wrapping_mul(BASE).wrapping_add(address as u64),
        }
    }

    /// Its number where such a way leads to the body; to the kernel leads 0.
    pub(crate) fn behind(self, way: u64) -> u64 {
        way.wrapping_mul(self.scale).wrapping_add(self.digits)
    }
}

/// A part of the kernel; none for what is in no tree that is kept.
pub(crate) type PartId = Option<Part>;

/// Where something lies in memory.
pub(crate) fn address<T>(part: &T) -> usize {
    std::ptr::from_ref(part) as usize
}

/// An index into the executor's arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ArrayId(pub(crate) u32);

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// An integer, pointer differences among them.
    Int(Id),
    /// An address: bytes into an array.
    Pointer(ArrayId, Id),
    /// Floating point, structures, vectors: not followed.
    Data,
}

/// What a value that is not followed varies with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Variation {
    /// True where all lanes of a warp have the same.
    pub(crate) uniform: bool,
    /// Coordinates and counters: threads, blocks and iterations that agree in them have the same value.
    pub(crate) with: SymbolSet,
    /// A sum of coordinates of which it is some number of times as much, and a number more; what these numbers are data decides.
    pub(crate) along: Option<Id>,
}

impl Variation {
    /// One value for the whole launch.
    pub(crate) const NONE: Variation = Variation {
        uniform: true,
        with: SymbolSet::NONE,
        along: None,
    };
    /// Each lane may have its own each time.
    pub(crate) const ANY: Variation = Variation {
        uniform: false,
        with: SymbolSet::ALL,
        along: None,
    };

    /// Of a value of which no more is known.
    pub(crate) fn unknown(uniform: bool) -> Variation {
        Variation {
            uniform,
            with: SymbolSet::ALL,
            along: None,
        }
    }
}

/// Of what is made of two values.
impl std::ops::BitOr for Variation {
    type Output = Variation;

    fn bitor(self, other: Variation) -> Variation {
        Variation {
            uniform: self.uniform && other.uniform,
            with: self.with | other.with,
            along: None,
        }
    }
}

/// A value and the loads it waits for.
#[derive(Debug, Clone)]
pub(crate) struct Value {
    pub(crate) kind: Kind,
    /// Drafts of loads whose result this is, not yet used by any instruction.
    pub(crate) loads: Vec<usize>,
    /// For values that are not followed.
    pub(crate) variation: Variation,
    /// The operation it comes from.
    pub(crate) origin: Origin,
    /// When it has no value at all.
    pub(crate) doubt: Option<Doubt>,
    /// What is known of the bytes of a structure, a vector, an array, or of a number of floating point.
    pub(crate) parts: Option<Arc<[Piece]>>,
    /// Of floating point the number, where it is the same one for the whole launch.
    pub(crate) real: Option<f64>,
}

/// An integer or a pointer among the bytes of a value.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    /// Bytes into the value.
    pub(crate) at: u64,
    pub(crate) ty: Type,
    pub(crate) value: Value,
}

impl Value {
    /// A number of floating point of that type.
    pub(crate) fn real(number: f64, ty: &Type) -> Value {
        let number = match ty {
            Type::Float { bits: 64, .. } => number,
            Type::Float { bits: 32, .. } => f64::from(number as f32),
            _ => return Value::data(Variation::NONE),
        };
        Value {
            real: number.is_finite().then_some(number),
            ..Value::data(Variation::NONE)
        }
    }

    /// True where two values are the same, wherever each comes from.
    pub(crate) fn is_like(&self, other: &Value) -> bool {
        self.kind == other.kind
            && self.loads == other.loads
            && self.variation == other.variation
            && self.real == other.real
            && match (&self.parts, &other.parts) {
                (None, None) => true,
                (Some(a), Some(b)) => Arc::ptr_eq(a, b),
                _ => false,
            }
    }

    pub(crate) fn int(id: Id) -> Value {
        Value {
            kind: Kind::Int(id),
            loads: Vec::new(),
            variation: Variation::ANY,
            origin: None,
            doubt: None,
            parts: None,
            real: None,
        }
    }

    pub(crate) fn data(variation: Variation) -> Value {
        Value {
            kind: Kind::Data,
            loads: Vec::new(),
            variation,
            origin: None,
            doubt: None,
            parts: None,
            real: None,
        }
    }

    pub(crate) fn pointer(array: ArrayId, offset: Id) -> Value {
        Value {
            kind: Kind::Pointer(array, offset),
            loads: Vec::new(),
            variation: Variation::ANY,
            origin: None,
            doubt: None,
            parts: None,
            real: None,
        }
    }

    /// Another one of its kind: an integer, or that many bytes into the same array.
    pub(crate) fn holding(&self, id: Id) -> Value {
        match self.kind {
            Kind::Pointer(array, _) => Value::pointer(array, id),
            _ => Value::int(id),
        }
    }
}

/// What a thread's own array holds, whichever element it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    /// Some of it is data, or where it was written is.
    Data,
    Integers,
    /// Into one array.
    Pointers(ArrayId),
    /// Now one of these, now another.
    Several,
}

/// A store of an integer into an array of the thread's own.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    /// Bytes into the array.
    pub(crate) offset: Id,
    pub(crate) ty: Type,
    pub(crate) value: Value,
    /// Where it is executed.
    pub(crate) context: usize,
}

/// Where a part of a variable is of which only the run says which it is: a lane of a vector.
pub(crate) const SOMEWHERE: u64 = u64::MAX;

/// Something that can be read and written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Place {
    /// A scalar variable as a whole.
    Variable(warplens_ir::VarId),
    /// A part of a variable that is not followed (a field of a local structure), by its bytes into it.
    Part(warplens_ir::VarId, u64),
    /// Bytes into an array.
    Memory(ArrayId, Id),
    /// Not understood.
    Lost,
}

/// True where a variable is an array or lies outside the thread: it is accessed, not known.
pub(crate) fn is_memory(var: &Var) -> bool {
    matches!(var.ty, Type::Array(..))
        || matches!(
            var.storage,
            Storage::Shared | Storage::Constant | Storage::Global
        )
}

/// The memory that a variable lies in, or that a pointer parameter points into.
pub(crate) fn space_of(var: &Var) -> Space {
    match (var.storage, &var.ty) {
        (Storage::Shared | Storage::DynamicShared, _)
        | (Storage::Param(_), Type::Pointer(_, AddressSpace::Shared)) => Space::Shared,
        (Storage::Constant, _) | (_, Type::Pointer(_, AddressSpace::Constant)) => Space::Constant,
        (Storage::Param(_), Type::Pointer(..)) | (Storage::Global, _) => Space::Global,
        // Arguments themselves lie in constant memory.
        (Storage::Param(_), _) => Space::Constant,
        (Storage::Local, _) => Space::Local,
    }
}
