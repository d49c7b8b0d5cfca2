//! What the source's own operations issue, where no compiled kernel takes their place: one table.
//!
//! In: an operation and the type of its numbers. Out: instructions by pipe. What holds: these are figures of the source's flow
//! alone. Where the kernel was compiled, its instructions by class take their place, and so they differ where compiled code
//! does: a conversion from an integer has no pipe of its own here, and a matrix product issues on that of half precision.

use warplens_machine::{Mix, Pipe};

use crate::facts::Number;

/// Instructions of half precision that a matrix product issues like.
const MATRIX: f64 = 8.0;

/// Multiply-adds beside the special function that a library function of 32 bits begins with.
const FUNCTION: f64 = 4.0;

/// The same in 64 bits.
const FUNCTION_IN_DOUBLE: f64 = 20.0;

/// The pipe of additions and multiplications.
fn pipe(number: Number) -> Pipe {
    match number {
        Number::Double => Pipe::Fp64,
        Number::Half => Pipe::Fp16,
        Number::Integer => Pipe::Int,
        Number::Single => Pipe::Fp32,
    }
}

/// Arithmetic on numbers of a type.
pub(crate) fn arithmetic(number: Number, instructions: f64) -> Mix {
    let mut issued = Mix::default();
    issued[pipe(number)] = instructions;
    issued
}

/// Integer arithmetic, a choice between values, the address of an array.
pub(crate) fn integer(instructions: f64) -> Mix {
    arithmetic(Number::Integer, instructions)
}

/// The reciprocal of a division.
pub(crate) fn reciprocal() -> Mix {
    Mix::from([(Pipe::Sfu, 1.0)])
}

/// A function of the library.
pub(crate) fn function(double: bool) -> Mix {
    let (number, beside) = if double {
        (Number::Double, FUNCTION_IN_DOUBLE)
    } else {
        (Number::Single, FUNCTION)
    };
    Mix::from([(Pipe::Sfu, 1.0), (pipe(number), beside)])
}

/// A product of matrices.
pub(crate) fn matrix() -> Mix {
    arithmetic(Number::Half, MATRIX)
}

/// A conversion between types.
pub(crate) fn conversion() -> Mix {
    Mix::from([(Pipe::Conversion, 1.0)])
}

/// Branches; fewer than one where the code jumps back once for several iterations.
pub(crate) fn branch(times: f64) -> Mix {
    Mix::from([(Pipe::Branch, times)])
}

/// A jump to one of several cases.
pub(crate) fn jump_table() -> Mix {
    Mix::from([(Pipe::Int, 1.0), (Pipe::Branch, 1.0)])
}
