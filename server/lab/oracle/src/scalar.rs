//! What a register holds.

/// What a register holds. `long` has 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scalar {
    /// `bool`
    Bool,
    /// `signed char`, and `char`
    I8,
    /// `unsigned char`
    U8,
    /// `short`
    I16,
    /// `unsigned short`
    U16,
    /// `int`
    I32,
    /// `unsigned`
    U32,
    /// `long`, `long long`
    I64,
    /// `unsigned long`, `size_t`
    U64,
    /// `half`
    F16,
    /// `float`
    F32,
    /// `double`
    F64,
}
