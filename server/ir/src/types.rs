//! Types with the sizes and alignments that CUDA, HIP and OpenCL agree on.

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// What a pointer points into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AddressSpace {
    /// Device memory, or whatever the pointer was given.
    Global,
    /// A block's memory.
    Shared,
    /// Constant memory.
    Constant,
    /// A thread's own memory.
    Private,
}

/// A field of a structure.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Field {
    /// Name.
    pub name: String,
    /// Type.
    pub ty: Type,
    /// Bytes from the structure's start.
    pub offset: u64,
}

/// A structure with its layout.
#[derive(Debug, Clone)]
pub struct Struct {
    /// Name; empty where it has none.
    pub name: String,
    /// The namespaces around it, `a::b`.
    pub space: Arc<str>,
    /// Fields in order.
    pub fields: Vec<Field>,
    /// `sizeof`.
    pub size: u64,
    /// Alignment.
    pub align: u64,
    /// What its fields hold in the end, and itself: an array is as much as one of its elements.
    pub parts: u64,
    /// The type of a member was not read: the size is that of the others.
    pub unread: bool,
    /// Its definition with what binds its template parameters; absent where only the layout is known.
    pub class: Option<Origin>,
}

impl PartialEq for Struct {
    fn eq(&self, other: &Struct) -> bool {
        self.name == other.name
            && self.space == other.space
            && self.size == other.size
            && self.fields == other.fields
    }
}

impl Eq for Struct {}

impl Hash for Struct {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.name, &self.space, self.size, self.align, &self.fields).hash(state);
    }
}

/// What a template parameter is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bound {
    /// A type.
    Type(Type),
    /// An integer.
    Value(i64),
    /// A class template, a function or a device variable, by name.
    Template(String),
    /// A parameter pack.
    Pack(Vec<Bound>),
}

/// Template parameters by name.
pub type Bindings = Vec<(String, Bound)>;

/// What a front end can leave in a type.
pub trait Known: Any + fmt::Debug + Send + Sync {}

impl<T: Any + fmt::Debug + Send + Sync> Known for T {}

/// What the front end knows of a type beyond its layout: the definition of a class, what a lambda captures. The IR carries
/// it and looks inside nowhere; two are equal where they are the same.
#[derive(Clone)]
pub struct Origin(Arc<dyn Known>);

impl Origin {
    /// Of what is known.
    pub fn new(known: Arc<dyn Known>) -> Origin {
        Origin(known)
    }

    /// Tells it from every other as long as it lives.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.0).cast::<()>() as usize
    }

    /// What is known, where it is of that type.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let known: Arc<dyn Any + Send + Sync> = Arc::clone(&self.0) as _;
        known.downcast().ok()
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PartialEq for Origin {
    fn eq(&self, other: &Origin) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(&self.0), Arc::as_ptr(&other.0))
    }
}

impl Eq for Origin {}

/// A text that is read again has other lambdas that say the same.
impl Hash for Origin {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl Struct {
    /// Lays fields out one behind the other; a union puts all at 0.
    pub fn new(name: &str, fields: Vec<(String, Type)>, union: bool, min_align: u64) -> Struct {
        let (mut end, mut align) = (0u64, min_align.clamp(1, MOST_ALIGNED));
        let mut laid = Vec::with_capacity(fields.len());
        let mut behind = 0u64;
        for (name, ty) in fields {
            let own = ty.align();
            align = align.max(own);
            let offset = if union {
                0
            } else {
                behind.next_multiple_of(own)
            };
            behind = offset + ty.size();
            end = end.max(behind);
            laid.push(Field { name, ty, offset });
        }
        Struct::placed(name, laid, end, align)
    }

    /// A structure whose fields have their offsets and end there.
    pub fn placed(name: &str, fields: Vec<Field>, end: u64, align: u64) -> Struct {
        let align = align.clamp(1, MOST_ALIGNED);
        let size = end.max(1);
        let parts = fields.iter().map(|field| field.ty.parts());
        Struct {
            name: name.to_owned(),
            space: Arc::from(""),
            size: size.checked_next_multiple_of(align).unwrap_or(size),
            align,
            parts: parts.fold(1, u64::saturating_add),
            unread: fields.iter().any(|field| field.ty.is_unread()),
            fields,
            class: None,
        }
    }
}

/// A type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Type {
    /// `void`, and the type of statements.
    Void,
    /// An integer; `bool` is unsigned with one bit, in a byte of its own.
    Int {
        /// Width.
        bits: u8,
        /// Signed or not.
        signed: bool,
    },
    /// Floating point of 16, 32 or 64 bits.
    Float {
        /// Width.
        bits: u8,
        /// True for bfloat16: the exponent of 32 bits in 16.
        brain: bool,
    },
    /// A pointer.
    Pointer(Arc<Type>, AddressSpace),
    /// An array; `None` for `[]` and for extents that are not known.
    Array(Arc<Type>, Option<u64>),
    /// A structure.
    Struct(Arc<Struct>),
    /// A short vector: `float4`.
    Vector(Arc<Type>, u8),
    /// A lambda.
    Callable(Origin),
    /// A type of the toolkit's own headers of which only the name matters: `thread_block`, `barrier`.
    Library(Arc<str>),
    /// Not known: the name as written.
    Unknown(String),
}

/// No object is aligned to more bytes: a page of the largest kind.
const MOST_ALIGNED: u64 = 1 << 30;

/// No object is larger, in bytes: what a text claims beyond is an address space full.
const LARGEST: u64 = 1 << 47;

impl Type {
    /// `int`.
    pub const INT: Type = Type::Int {
        bits: 32,
        signed: true,
    };
    /// `unsigned int`.
    pub const UINT: Type = Type::Int {
        bits: 32,
        signed: false,
    };
    /// `size_t`.
    pub const SIZE: Type = Type::Int {
        bits: 64,
        signed: false,
    };
    /// `long long`.
    pub const LONG: Type = Type::Int {
        bits: 64,
        signed: true,
    };
    /// `bool`.
    pub const BOOL: Type = Type::Int {
        bits: 1,
        signed: false,
    };
    /// `unsigned char`.
    pub const BYTE: Type = Type::Int {
        bits: 8,
        signed: false,
    };
    /// `char`.
    pub const CHAR: Type = Type::Int {
        bits: 8,
        signed: true,
    };
    /// `float`.
    pub const FLOAT: Type = Type::float(32);
    /// `double`.
    pub const DOUBLE: Type = Type::float(64);
    /// `__half`.
    pub const HALF: Type = Type::float(16);
    /// `__nv_bfloat16`.
    pub const BFLOAT: Type = Type::Float {
        bits: 16,
        brain: true,
    };

    /// Floating point of that width as IEEE 754 lays it out.
    pub const fn float(bits: u8) -> Type {
        Type::Float { bits, brain: false }
    }

    /// `sizeof` in bytes; 0 where it is not known.
    pub fn size(&self) -> u64 {
        match self {
            Type::Void | Type::Unknown(_) | Type::Callable(_) | Type::Library(_) => 0,
            Type::Int { bits, .. } | Type::Float { bits, .. } => u64::from(bits.div_ceil(8)),
            Type::Pointer(..) => 8,
            Type::Array(element, extent) => {
                let bytes = element.size().saturating_mul(extent.unwrap_or(0));
                bytes.min(LARGEST)
            }
            Type::Struct(structure) => structure.size,
            Type::Vector(element, lanes) => element.size() * u64::from(*lanes),
        }
    }

    /// True where its size is not known: it was not read, or it holds what was not.
    pub fn is_unread(&self) -> bool {
        match self {
            Type::Unknown(_) => true,
            Type::Struct(structure) => structure.unread,
            Type::Array(element, _) | Type::Vector(element, _) => element.is_unread(),
            _ => false,
        }
    }

    /// Alignment in bytes.
    pub fn align(&self) -> u64 {
        match self {
            Type::Void | Type::Unknown(_) | Type::Callable(_) | Type::Library(_) => 1,
            // float3 is three floats; float2 and float4 are aligned to their size, up to 16 bytes.
            Type::Array(element, _) | Type::Vector(element, 3) => element.align(),
            Type::Struct(structure) => structure.align,
            _ => self.size().clamp(1, 16),
        }
    }

    /// What it holds in the end, as [`Struct::parts`] counts: what a walk through it has to look at.
    fn parts(&self) -> u64 {
        match self {
            Type::Struct(structure) => structure.parts,
            Type::Array(inner, _) | Type::Vector(inner, _) | Type::Pointer(inner, _) => {
                inner.parts().saturating_add(1)
            }
            _ => 1,
        }
    }

    /// True where it refers to a definition in some text.
    pub fn holds_text(&self) -> bool {
        match self {
            Type::Callable(_) => true,
            Type::Struct(structure) => structure.class.is_some(),
            Type::Pointer(inner, _) | Type::Array(inner, _) | Type::Vector(inner, _) => {
                inner.holds_text()
            }
            _ => false,
        }
    }

    /// True for integers.
    pub fn is_int(&self) -> bool {
        matches!(self, Type::Int { .. })
    }

    /// True for floating point.
    pub fn is_float(&self) -> bool {
        matches!(self, Type::Float { .. })
    }

    /// What a subscript or `*` gives.
    pub fn element(&self) -> Option<&Type> {
        match self {
            Type::Pointer(element, _) | Type::Array(element, _) => Some(element),
            _ => None,
        }
    }

    /// The type of an arithmetic operator on the two (C's usual conversions).
    pub fn common(&self, other: &Type) -> Type {
        match (self, other) {
            (Type::Vector(..), _) => self.clone(),
            (_, Type::Vector(..)) => other.clone(),
            (Type::Float { bits: a, .. }, Type::Float { bits: b, .. }) => {
                if b > a { other } else { self }.clone()
            }
            (Type::Float { .. }, _) => self.clone(),
            (_, Type::Float { .. }) => other.clone(),
            (
                Type::Int {
                    bits: a,
                    signed: sa,
                },
                Type::Int {
                    bits: b,
                    signed: sb,
                },
            ) => {
                let promote = |bits: u8, signed: bool| {
                    if bits < 32 {
                        (32, true)
                    } else {
                        (bits, signed)
                    }
                };
                let ((a, sa), (b, sb)) = (promote(*a, *sa), promote(*b, *sb));
                match a.cmp(&b) {
                    std::cmp::Ordering::Greater => Type::Int {
                        bits: a,
                        signed: sa,
                    },
                    std::cmp::Ordering::Less => Type::Int {
                        bits: b,
                        signed: sb,
                    },
                    std::cmp::Ordering::Equal => Type::Int {
                        bits: a,
                        signed: sa && sb,
                    },
                }
            }
            (Type::Pointer(..) | Type::Array(..), _) => self.clone(),
            (_, Type::Pointer(..) | Type::Array(..)) => other.clone(),
            (Type::Unknown(_), _) => self.clone(),
            _ => other.clone(),
        }
    }

    /// A built-in type by name, short vectors among them.
    pub fn named(name: &str, opencl: bool) -> Option<Type> {
        let int = |bits, signed| Some(Type::Int { bits, signed });
        match name {
            "void" => return Some(Type::Void),
            "bool" | "_Bool" => return Some(Type::BOOL),
            "uchar" | "uint8_t" | "u_char" => return int(8, false),
            "char" | "int8_t" | "schar" => return int(8, true),
            "short" | "int16_t" => return int(16, true),
            "ushort" | "uint16_t" => return int(16, false),
            "int" | "int32_t" | "signed" => return int(32, true),
            "uint" | "unsigned" | "uint32_t" => return int(32, false),
            "int64_t" | "ptrdiff_t" | "ssize_t" | "intptr_t" | "longlong" | "long" => {
                return int(64, true);
            }
            "uint64_t" | "size_t" | "uintptr_t" | "ulonglong" | "ulong" => return int(64, false),
            "float" | "cl_float" => return Some(Type::FLOAT),
            "double" | "cl_double" => return Some(Type::DOUBLE),
            // The last two are PyTorch's; those before them clang's.
            "half" | "__half" | "_Float16" | "__fp16" | "at::Half" | "c10::Half" => {
                return Some(Type::HALF);
            }
            // The last two are PyTorch's; those before them clang's and HIP's.
            "__nv_bfloat16" | "nv_bfloat16" | "bfloat16" | "__bf16" | "hip_bfloat16"
            | "__hip_bfloat16" | "c10::BFloat16" | "at::BFloat16" => return Some(Type::BFLOAT),
            "half2" | "__half2" => return Some(Type::Vector(Arc::new(Type::HALF), 2)),
            "__nv_bfloat162" | "nv_bfloat162" => {
                return Some(Type::Vector(Arc::new(Type::BFLOAT), 2));
            }
            "dim3" => return Some(Type::Vector(Arc::new(Type::UINT), 3)),
            "cufftReal" | "hipfftReal" => return Some(Type::FLOAT),
            "cufftDoubleReal" | "hipfftDoubleReal" => return Some(Type::DOUBLE),
            "cufftComplex" | "cuComplex" | "cuFloatComplex" | "hipComplex" | "hipFloatComplex"
            | "hipfftComplex" => {
                return Some(Type::Vector(Arc::new(Type::FLOAT), 2));
            }
            "cufftDoubleComplex"
            | "cuDoubleComplex"
            | "hipDoubleComplex"
            | "hipfftDoubleComplex" => {
                return Some(Type::Vector(Arc::new(Type::DOUBLE), 2));
            }
            _ => {}
        }
        let digits = name.trim_start_matches(|c: char| c.is_ascii_alphabetic());
        let lanes: u8 = digits.parse().ok()?;
        let base = name.strip_suffix(digits)?;
        let allowed = if opencl {
            matches!(lanes, 2 | 3 | 4 | 8 | 16 | 32)
        } else {
            (1..=4).contains(&lanes)
        };
        if !allowed
            || !matches!(
                base,
                "char"
                    | "uchar"
                    | "short"
                    | "ushort"
                    | "int"
                    | "uint"
                    | "long"
                    | "ulong"
                    | "longlong"
                    | "ulonglong"
                    | "float"
                    | "double"
                    | "half"
            )
        {
            return None;
        }
        Some(Type::Vector(Arc::new(Type::named(base, opencl)?), lanes))
    }
}

impl Bound {
    /// As a user would write it.
    pub fn spelled(&self) -> String {
        match self {
            Bound::Type(ty) => written(ty),
            Bound::Value(value) => value.to_string(),
            Bound::Template(name) => name.clone(),
            Bound::Pack(all) => {
                let all: Vec<String> = all.iter().map(Bound::spelled).collect();
                all.join(", ")
            }
        }
    }
}

/// A number in this many bits; in the one of a `bool` whether it is one at all.
pub fn wrapped(value: i64, bits: u8, signed: bool) -> i64 {
    match (bits, signed) {
        (1, _) => i64::from(value != 0),
        (8, true) => i64::from(value as i8),
        (8, false) => i64::from(value as u8),
        (16, true) => i64::from(value as i16),
        (16, false) => i64::from(value as u16),
        (32, true) => i64::from(value as i32),
        (32, false) => i64::from(value as u32),
        _ => value,
    }
}

/// A type in a form that differs for types that differ: for keys.
pub fn spell_type(ty: &Type) -> String {
    match ty {
        Type::Void => "void".to_owned(),
        Type::Int { bits, signed } => format!("{}{bits}", if *signed { "i" } else { "u" }),
        Type::Float { bits, brain } => format!("{}f{bits}", if *brain { "b" } else { "" }),
        Type::Pointer(inner, space) => {
            let space = match space {
                AddressSpace::Global => "*",
                AddressSpace::Shared => "*s",
                AddressSpace::Constant => "*c",
                AddressSpace::Private => "*p",
            };
            format!("{}{space}", spell_type(inner))
        }
        Type::Array(inner, extent) => format!("{}[{extent:?}]", spell_type(inner)),
        Type::Struct(structure) => structure.name.clone(),
        Type::Vector(inner, lanes) => format!("{}x{lanes}", spell_type(inner)),
        Type::Callable(lambda) => format!("lambda {:x}", lambda.address()),
        Type::Library(name) => name.to_string(),
        Type::Unknown(name) => name.clone(),
    }
}

/// A type as a user would write it.
fn written(ty: &Type) -> String {
    match ty {
        Type::Int { bits, signed } => match (bits, signed) {
            (1, _) => "bool",
            (8, false) => "unsigned char",
            (8, true) => "char",
            (16, true) => "short",
            (16, false) => "unsigned short",
            (32, true) => "int",
            (32, false) => "unsigned int",
            (_, true) => "long long",
            (_, false) => "size_t",
        }
        .to_owned(),
        Type::Float { bits, brain } => match (bits, brain) {
            (32, _) => "float",
            (64, _) => "double",
            (_, true) => "__nv_bfloat16",
            (_, false) => "half",
        }
        .to_owned(),
        Type::Pointer(inner, _) => format!("{} *", written(inner)),
        Type::Vector(inner, lanes) => format!("{}{lanes}", written(inner)),
        // By what it is and not by where it lies: that would be another text each time.
        Type::Callable(_) => "lambda".to_owned(),
        ty => spell_type(ty),
    }
}
