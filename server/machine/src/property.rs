//! What a GPU has a price for: the properties of the linear model (J. D. Stevens and A. Klöckner), and the names
//! under which a profile's table `[linear_weights]` gives what one unit of each costs.

use std::fmt;

/// Numbers by how the GPU computes with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Number {
    /// Half precision.
    Half,
    /// Single precision.
    Single,
    /// Double precision.
    Double,
    /// Integers of any width.
    Integer,
}

impl Number {
    const ALL: [Number; 4] = [
        Number::Half,
        Number::Single,
        Number::Double,
        Number::Integer,
    ];

    fn name(self) -> &'static str {
        match self {
            Number::Half => "f16",
            Number::Single => "f32",
            Number::Double => "f64",
            Number::Integer => "int",
        }
    }
}

/// Kinds of arithmetic that cost differently. One is one operator of the source in one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Arithmetic {
    /// Additions, subtractions, comparisons, minima; of integers also shifts and logic.
    Sum(Number),
    /// Multiplications.
    Product(Number),
    /// Divisions and remainders.
    Quotient(Number),
    /// Special functions: exponentials, roots, sines …
    Special(Number),
    /// Conversions between types.
    Conversion,
    /// Matrix instructions.
    Matrix,
}

impl Arithmetic {
    fn all() -> impl Iterator<Item = Arithmetic> {
        let of_numbers = Number::ALL.into_iter().flat_map(|of| {
            [
                Arithmetic::Sum(of),
                Arithmetic::Product(of),
                Arithmetic::Quotient(of),
                Arithmetic::Special(of),
            ]
        });
        of_numbers.chain([Arithmetic::Conversion, Arithmetic::Matrix])
    }
}

impl fmt::Display for Arithmetic {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Arithmetic::Sum(of) => write!(f, "{}_add", of.name()),
            Arithmetic::Product(of) => write!(f, "{}_mul", of.name()),
            Arithmetic::Quotient(of) => write!(f, "{}_div", of.name()),
            Arithmetic::Special(of) => write!(f, "{}_special", of.name()),
            Arithmetic::Conversion => f.write_str("conversion"),
            Arithmetic::Matrix => f.write_str("matrix"),
        }
    }
}

/// The memory that an access goes to, as far as its price is another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Memory {
    /// Device memory, through textures as well, and how a warp's threads spread over it.
    Global(Reach),
    /// Shared (CUDA) or local (OpenCL) memory of a block.
    Shared,
    /// Constant memory.
    Constant,
    /// A thread's own arrays.
    Local,
}

/// How neighbouring threads spread over device memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reach {
    /// Stride 0: all threads of a warp touch one element.
    Uniform,
    /// Neighbours touch neighbours.
    Unit,
    /// A small constant stride; the kernel touches `used` of `stride` elements.
    Stride {
        /// In elements: 2 to [`Reach::WIDEST`].
        stride: u8,
        /// 1 to `stride`; `stride` where other accesses fill the gaps.
        used: u8,
    },
    /// A wide stride, scattered, or dependent on data; of what lies between, the kernel touches a number of quarters.
    Uncoalesced {
        /// 1 to 4; 4 where other accesses or iterations touch all of it.
        quarters: u8,
    },
}

impl Reach {
    /// The widest stride that has a price of its own.
    pub const WIDEST: u8 = 4;

    fn all() -> impl Iterator<Item = Reach> {
        let strided = (2..=Reach::WIDEST)
            .flat_map(|stride| (1..=stride).map(move |used| Reach::Stride { stride, used }));
        let scattered = (1..=4).map(|quarters| Reach::Uncoalesced { quarters });
        [Reach::Uniform, Reach::Unit]
            .into_iter()
            .chain(strided)
            .chain(scattered)
    }

    /// The fraction of what lies between neighbours' elements, the first included, that the kernel touches.
    pub fn utilisation(self) -> f64 {
        match self {
            Reach::Uniform | Reach::Unit => 1.0,
            Reach::Stride { stride, used } => f64::from(used) / f64::from(stride.max(1)),
            Reach::Uncoalesced { quarters } => f64::from(quarters) / 4.0,
        }
    }
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let percent = (self.utilisation() * 100.0).round();
        match self {
            Reach::Uniform => f.write_str("uniform"),
            Reach::Unit => f.write_str("stride1"),
            Reach::Stride { stride, .. } => write!(f, "stride{stride}_{percent}"),
            Reach::Uncoalesced { .. } => write!(f, "uncoalesced_{percent}"),
        }
    }
}

/// What an access does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// Reads.
    Load,
    /// Writes.
    Store,
    /// Reads, changes and writes.
    Atomic,
}

impl Direction {
    const ALL: [Direction; 3] = [Direction::Load, Direction::Store, Direction::Atomic];

    fn name(self) -> &'static str {
        match self {
            Direction::Load => "load",
            Direction::Store => "store",
            Direction::Atomic => "atomic",
        }
    }
}

/// A property of a kernel that costs so much a unit. Unless its own page says otherwise a unit is one thread doing
/// it once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Property {
    /// Arithmetic.
    Arithmetic(Arithmetic),
    /// An access of `bits` bits.
    Access {
        /// Where to.
        memory: Memory,
        /// What it does.
        direction: Direction,
        /// 8, 16, 32, 64 or 128.
        bits: u8,
    },
    /// A pass of the banks that a warp needs beyond what its data fills.
    BankConflict,
    /// A pass beyond the first of a warp's atomics, because lanes meet on one address.
    AtomicConflict,
    /// A thread at a barrier.
    Barrier,
    /// A block.
    Block,
    /// The launch.
    Launch,
    /// A byte that global loads and stores may move at the same time: the lesser of both. Its price is negative
    /// or 0.
    Overlap,
}

impl Property {
    /// Widths of accesses in bits.
    pub const WIDTHS: [u8; 5] = [8, 16, 32, 64, 128];

    /// Every property.
    pub fn all() -> impl Iterator<Item = Property> {
        let spaces = Reach::all().map(Memory::Global).chain([
            Memory::Shared,
            Memory::Constant,
            Memory::Local,
        ]);
        let accesses = spaces.flat_map(|memory| {
            // Kernels do not write constant memory.
            let directions = match memory {
                Memory::Constant => &Direction::ALL[..1],
                _ => &Direction::ALL,
            };
            directions.iter().flat_map(move |&direction| {
                Property::WIDTHS
                    .into_iter()
                    .map(move |bits| Property::Access {
                        memory,
                        direction,
                        bits,
                    })
            })
        });
        Arithmetic::all()
            .map(Property::Arithmetic)
            .chain(accesses)
            .chain([
                Property::BankConflict,
                Property::AtomicConflict,
                Property::Barrier,
                Property::Block,
                Property::Launch,
                Property::Overlap,
            ])
    }

    /// The property of a name.
    pub fn named(name: &str) -> Option<Property> {
        Property::all().find(|property| property.to_string() == name)
    }
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Property::Arithmetic(arithmetic) => arithmetic.fmt(f),
            Property::Access {
                memory,
                direction,
                bits,
            } => {
                let direction = direction.name();
                match memory {
                    Memory::Global(reach) => write!(f, "global_{direction}_{bits}_{reach}"),
                    Memory::Shared => write!(f, "shared_{direction}_{bits}"),
                    Memory::Constant => write!(f, "constant_{direction}_{bits}"),
                    Memory::Local => write!(f, "local_{direction}_{bits}"),
                }
            }
            Property::BankConflict => f.write_str("bank_conflict"),
            Property::AtomicConflict => f.write_str("atomic_conflict"),
            Property::Barrier => f.write_str("barrier"),
            Property::Block => f.write_str("block"),
            Property::Launch => f.write_str("launch"),
            Property::Overlap => f.write_str("overlap"),
        }
    }
}
