//! What executes an instruction, how often one may issue, and how long its result takes.

use std::ops::{Index, IndexMut};

use crate::Profile;

/// A kind of unit of an SM that executes instructions. Memory has figures of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pipe {
    /// Single-precision additions, multiply-adds, and multiplications where they have no more units.
    Fp32,
    /// Single-precision multiplications alone, where the compiled kernel tells them apart.
    Fp32Multiply,
    /// Double precision.
    Fp64,
    /// Half precision, two results an instruction.
    Fp16,
    /// Matrix products.
    Tensor,
    /// Integer additions, logic, shifts, comparisons, moves.
    Int,
    /// Integer multiplications and multiply-adds.
    IntMul,
    /// Special functions.
    Sfu,
    /// Conversions from floating point, and between its formats.
    Conversion,
    /// Conversions from integers.
    ToFloat,
    /// Exchanges between the lanes of a warp.
    Shuffle,
    /// Branches.
    Branch,
}

/// What one warp instruction costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timing {
    /// Cycles of the SM until its next warp instruction of this kind may issue, all its units taken together.
    pub issue: f64,
    /// Cycles until an instruction that needs the result may issue.
    pub latency: f64,
}

impl Pipe {
    /// Every kind, in the order in which they are declared.
    pub const ALL: [Pipe; 12] = [
        Pipe::Fp32,
        Pipe::Fp32Multiply,
        Pipe::Fp64,
        Pipe::Fp16,
        Pipe::Tensor,
        Pipe::Int,
        Pipe::IntMul,
        Pipe::Sfu,
        Pipe::Conversion,
        Pipe::ToFloat,
        Pipe::Shuffle,
        Pipe::Branch,
    ];
}

/// Instructions that one warp issues, by what executes them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Mix([f64; Pipe::ALL.len()]);

impl Mix {
    /// All instructions.
    pub fn total(&self) -> f64 {
        let [first, rest @ ..] = &self.0;
        rest.iter().fold(*first, |sum, count| sum + count)
    }

    /// Adds `other`, `times` over.
    pub fn add(&mut self, other: &Mix, times: f64) {
        for (count, more) in self.0.iter_mut().zip(other.0) {
            *count += more * times;
        }
    }
}

impl<const N: usize> From<[(Pipe, f64); N]> for Mix {
    fn from(counts: [(Pipe, f64); N]) -> Mix {
        let mut mix = Mix::default();
        for (pipe, count) in counts {
            mix[pipe] = count;
        }
        mix
    }
}

impl Index<Pipe> for Mix {
    type Output = f64;

    fn index(&self, pipe: Pipe) -> &f64 {
        &self.0[pipe as usize]
    }
}

impl IndexMut<Pipe> for Mix {
    fn index_mut(&mut self, pipe: Pipe) -> &mut f64 {
        &mut self.0[pipe as usize]
    }
}

impl Profile {
    /// What one warp instruction of that kind costs on this GPU.
    ///
    /// The issue time is a warp over the lanes of the profile; half precision goes two results an instruction. Where
    /// the profile has no figure of its own: double precision runs at a 32nd of single precision and takes four times
    /// as long, half precision and integer products take as long as single precision, conversions as long as special
    /// functions, shuffles as long as an access to shared memory and at the rate of the load-store units, and a matrix
    /// product is as many multiply-adds in half precision, eight dependent ones long.
    pub fn timing(&self, pipe: Pipe) -> Timing {
        let plain = self.arithmetic_latency;
        let half = self.fp16_lanes.unwrap_or(self.fp32_lanes);
        let (lanes, latency) = match pipe {
            Pipe::Fp32 => (self.fp32_lanes, plain),
            Pipe::Fp32Multiply => (self.fp32_multiply_lanes.unwrap_or(self.fp32_lanes), plain),
            Pipe::Fp64 => (
                self.fp64_lanes.unwrap_or(self.fp32_lanes / 32.0),
                self.fp64_latency.unwrap_or(plain * 4.0),
            ),
            Pipe::Fp16 => (half / 2.0, self.fp16_latency.unwrap_or(plain)),
            Pipe::Tensor => {
                let products = self.tensor_fp16_fma.unwrap_or(half);
                let each = self.tensor_instruction_fma.unwrap_or(2048.0);
                return Timing {
                    issue: each / products,
                    latency: self.tensor_latency.unwrap_or(plain * 8.0),
                };
            }
            Pipe::Int | Pipe::Branch => (self.int_lanes, plain),
            Pipe::IntMul => (self.int_mul_lanes, self.int_mul_latency.unwrap_or(plain)),
            Pipe::Sfu => (self.sfu_lanes, self.sfu_latency),
            Pipe::Conversion => (
                self.conversion_lanes,
                self.conversion_latency.unwrap_or(self.sfu_latency),
            ),
            Pipe::ToFloat => (
                self.conversion_to_float_lanes,
                self.conversion_latency.unwrap_or(self.sfu_latency),
            ),
            Pipe::Shuffle => (
                self.shuffle_lanes.unwrap_or(self.load_store_lanes),
                self.shuffle_latency.unwrap_or(self.shared_latency),
            ),
        };
        Timing {
            issue: f64::from(self.warp_size) / lanes,
            latency,
        }
    }
}
