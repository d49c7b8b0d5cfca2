//! Classes of machine instructions.

use std::fmt;

use warplens_machine::{Pipe, Profile, Timing};

macro_rules! classes {
    ($($variant:ident $name:literal $what:literal,)*) => {
        /// A class of machine instructions, named as the machine code of NVIDIA's GPUs names them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Class {
            $(#[doc = $what] $variant,)*
        }

        impl Class {
            /// All of them.
            pub const ALL: &[Class] = &[$(Class::$variant),*];

            /// The name in the JSON.
            pub fn name(self) -> &'static str {
                match self {
                    $(Class::$variant => $name,)*
                }
            }
        }
    };
}

classes! {
    Ldg "ldg" "A load from device memory.",
    Stg "stg" "A store to device memory.",
    Lds "lds" "A load from shared memory.",
    Sts "sts" "A store to shared memory.",
    Ldl "ldl" "A load from local memory.",
    Stl "stl" "A store to local memory.",
    Ldc "ldc" "A load from constant memory.",
    Atom "atom" "An atomic operation whose value is used.",
    Red "red" "An atomic operation whose value is not used.",
    Bar "bar" "A barrier.",
    Bra "bra" "A branch.",
    Ffma "ffma" "A multiplication and an addition in 32 bits.",
    Fadd "fadd" "An addition in 32 bits.",
    Fmul "fmul" "A multiplication in 32 bits.",
    Dfma "dfma" "A multiplication and an addition in 64 bits.",
    Dadd "dadd" "An addition in 64 bits.",
    Dmul "dmul" "A multiplication in 64 bits.",
    Mufu "mufu" "A special function.",
    Hfma2 "hfma2" "Arithmetic in 16 bits, two at a time.",
    Hmma "hmma" "A matrix product.",
    Imad "imad" "An integer multiplication and addition.",
    Iadd3 "iadd3" "An integer addition of three.",
    Lea "lea" "A shift and an addition.",
    Lop3 "lop3" "Logic on three operands.",
    Shf "shf" "A shift.",
    Isetp "isetp" "A comparison of integers.",
    Fsetp "fsetp" "A comparison in 32 bits.",
    Sel "sel" "A choice by a predicate.",
    I2f "i2f" "A conversion from an integer.",
    F2i "f2i" "A conversion to an integer.",
    F2f "f2f" "A conversion between floating-point types.",
    Shfl "shfl" "A shuffle among lanes.",
    Vote "vote" "A vote among lanes.",
    Tex "tex" "A texture access.",
    Mov "mov" "A move, a constant that is made.",
    Other "other" "Anything else.",
}

impl Class {
    /// The class of that name.
    pub fn named(name: &str) -> Option<Class> {
        Class::ALL
            .iter()
            .copied()
            .find(|class| class.name() == name)
    }

    /// True for arithmetic of floating point, special functions included.
    pub(crate) fn computes(self) -> bool {
        let pipes = [
            Pipe::Fp32,
            Pipe::Fp32Multiply,
            Pipe::Fp64,
            Pipe::Fp16,
            Pipe::Sfu,
        ];
        self.pipe().is_some_and(|pipe| pipes.contains(&pipe))
    }

    /// What executes it: [`warplens_machine::Profile::timing`] says how fast. `None` for memory and barriers.
    pub fn pipe(self) -> Option<Pipe> {
        Some(match self {
            Class::Ffma | Class::Fadd => Pipe::Fp32,
            Class::Fmul => Pipe::Fp32Multiply,
            Class::Dfma | Class::Dadd | Class::Dmul => Pipe::Fp64,
            Class::Hfma2 => Pipe::Fp16,
            Class::Hmma => Pipe::Tensor,
            Class::Imad => Pipe::IntMul,
            Class::Iadd3
            | Class::Lea
            | Class::Lop3
            | Class::Shf
            | Class::Isetp
            | Class::Fsetp
            | Class::Sel
            | Class::Vote
            | Class::Mov
            | Class::Other => Pipe::Int,
            Class::Mufu => Pipe::Sfu,
            Class::F2i | Class::F2f => Pipe::Conversion,
            Class::I2f => Pipe::ToFloat,
            Class::Shfl => Pipe::Shuffle,
            Class::Bra => Pipe::Branch,
            Class::Ldg
            | Class::Stg
            | Class::Lds
            | Class::Sts
            | Class::Ldl
            | Class::Stl
            | Class::Ldc
            | Class::Atom
            | Class::Red
            | Class::Bar
            | Class::Tex => return None,
        })
    }

    /// What one instruction of a warp costs on a GPU; `None` where that depends on the addresses or on other warps: of
    /// shared memory without conflicts, of a barrier that one warp alone reaches.
    pub fn timing(self, profile: &Profile) -> Option<Timing> {
        if let Some(pipe) = self.pipe() {
            return Some(profile.timing(pipe));
        }
        match self {
            Class::Lds => Some(Timing {
                issue: f64::from(profile.warp_size) / profile.load_store_lanes,
                latency: profile.shared_latency,
            }),
            Class::Bar => Some(Timing {
                issue: profile.barrier_warp_cycles,
                latency: profile.barrier_latency,
            }),
            _ => None,
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
