//! What a matrix product of AMD's builtins takes of the matrix units: `__builtin_amdgcn_mfma_*` and its like.
//!
//! In: the builtin's name, which holds the sides of the product and its types, and how many numbers of the result a lane has. Out: the
//! work, in units of the profile's half-precision instruction. Source of the rates: AMD's matrix instruction calculator
//! (multiply-adds in a clock cycle of a SIMD, by generation and type).

/// Generations of matrix units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum MatrixUnits {
    /// NVIDIA's, whose products are named by PTX.
    #[default]
    TensorCores,
    /// CDNA 1 and 2.
    Cdna,
    /// CDNA 3 and later.
    Cdna3,
    /// RDNA 3.
    Rdna3,
    /// RDNA 4.
    Rdna4,
}

impl MatrixUnits {
    /// Those of an architecture by LLVM's name: `gfx90a`.
    pub fn of(architecture: &str) -> MatrixUnits {
        match architecture {
            name if name.starts_with("gfx94") || name.starts_with("gfx95") => MatrixUnits::Cdna3,
            name if name.starts_with("gfx11") => MatrixUnits::Rdna3,
            name if name.starts_with("gfx12") => MatrixUnits::Rdna4,
            name if name.starts_with("gfx") => MatrixUnits::Cdna,
            _ => MatrixUnits::TensorCores,
        }
    }

    /// Multiply-adds in a clock cycle of a SIMD; a type's that the generation lacks is its half precision's.
    fn rate(self, of: Number, several_blocks: bool) -> u64 {
        match (self, of) {
            (MatrixUnits::Cdna | MatrixUnits::TensorCores, Number::Single | Number::Double) => 32,
            (MatrixUnits::Cdna | MatrixUnits::TensorCores, Number::EarlyBf16) => 64,
            (MatrixUnits::Cdna | MatrixUnits::TensorCores, _) => 128,
            (MatrixUnits::Cdna3, Number::Single | Number::Double) => 32,
            (MatrixUnits::Cdna3, Number::Xf32) => 128,
            (MatrixUnits::Cdna3, _) if several_blocks => 128,
            (MatrixUnits::Cdna3, Number::Byte | Number::Nibble) => 512,
            (MatrixUnits::Cdna3, _) => 256,
            (MatrixUnits::Rdna3, Number::Nibble) => 256,
            (MatrixUnits::Rdna3, _) => 128,
            (MatrixUnits::Rdna4, Number::Byte | Number::Nibble) => 512,
            (MatrixUnits::Rdna4, _) => 256,
        }
    }

    /// Multiply-adds of the profile's half-precision instruction.
    fn unit(self) -> u64 {
        match self {
            MatrixUnits::Rdna3 | MatrixUnits::Rdna4 => 16 * 16 * 16,
            _ => 16 * 8 * 16,
        }
    }
}

/// What the factors hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Number {
    Double,
    Single,
    Xf32,
    Half,
    /// bfloat16 in the instructions without `_1k` of CDNA 1 and 2, which take factors half as deep.
    EarlyBf16,
    Byte,
    Nibble,
}

/// Work in `parts` of the profile's instruction; `None` where the name is not one of these products.
pub(crate) fn work(name: &str, units: MatrixUnits, lanes: usize, parts: u32) -> Option<u32> {
    let name = name.strip_prefix("__builtin_amdgcn_")?;
    let mut words = name.split('_');
    let kind = words.next()?;
    let sparse = matches!(kind, "smfmac" | "swmmac");
    let wave = match kind {
        "mfma" | "smfmac" => 64,
        "wmma" | "swmmac" => 0,
        _ => return None,
    };
    let rest: Vec<&str> = words.collect();
    let at = rest.iter().position(|word| sides(word).is_some())?;
    let ([m, n, k], attached) = sides(rest.get(at)?)?;
    let kind = if attached.is_empty() {
        rest.get(at + 1).copied().unwrap_or_default()
    } else {
        attached
    };
    let number = match kind {
        "f64" => Number::Double,
        "f32" => Number::Single,
        "xf32" => Number::Xf32,
        "bf16" if units == MatrixUnits::Cdna && !rest.contains(&"1k") => Number::EarlyBf16,
        "i8" | "iu8" | "fp8" | "bf8" | "f8f6f4" => Number::Byte,
        "iu4" => Number::Nibble,
        _ => Number::Half,
    };
    // A lane's numbers say how many products the instruction makes side by side.
    let blocks = (lanes as u64 * wave / (m * n)).max(1);
    let rate = units.rate(number, blocks > 1) * if sparse { 2 } else { 1 };
    let products = m * n * k * blocks;
    let half = units.rate(Number::Half, false);
    let work = products * u64::from(parts) * half / (rate * units.unit());
    Some(u32::try_from(work.max(1)).unwrap_or(u32::MAX))
}

/// `16x16x4f32` as its sides and what follows them.
fn sides(word: &str) -> Option<([u64; 3], &str)> {
    let (m, rest) = word.split_once('x')?;
    let (n, rest) = rest.split_once('x')?;
    let end = rest.find(|c: char| !c.is_ascii_digit());
    let (k, kind) = rest.split_at(end.unwrap_or(rest.len()));
    let side = |text: &str| text.parse().ok().filter(|side| (1..=4096).contains(side));
    Some(([side(m)?, side(n)?, side(k)?], kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clock cycles of a SIMD that an instruction takes, of which the profile's takes `unit / rate` of half precision.
    fn cycles(name: &str, architecture: &str, lanes: usize) -> f64 {
        let units = MatrixUnits::of(architecture);
        let work = work(&format!("__builtin_amdgcn_{name}"), units, lanes, 64).expect("a product");
        f64::from(work) / 64.0 * units.unit() as f64 / units.rate(Number::Half, false) as f64
    }

    /// The calculator's table of passes.
    #[test]
    fn products_take_the_cycles_that_amd_states() {
        for (name, architecture, lanes, expected) in [
            ("mfma_f32_32x32x2f32", "gfx90a", 16, 64.0),
            ("mfma_f32_16x16x4f32", "gfx90a", 4, 32.0),
            ("mfma_f32_4x4x1f32", "gfx90a", 4, 8.0),
            ("mfma_f32_32x32x8f16", "gfx90a", 16, 64.0),
            ("mfma_f32_16x16x16f16", "gfx90a", 4, 32.0),
            ("mfma_f32_16x16x4f16", "gfx90a", 16, 32.0),
            ("mfma_f32_32x32x8bf16_1k", "gfx90a", 16, 64.0),
            ("mfma_f32_16x16x8bf16", "gfx90a", 4, 32.0),
            ("mfma_f64_16x16x4f64", "gfx90a", 4, 32.0),
            ("mfma_f32_16x16x16f16", "gfx942", 4, 16.0),
            ("mfma_f32_32x32x8f16", "gfx942", 16, 32.0),
            ("mfma_i32_16x16x32_i8", "gfx942", 4, 16.0),
            ("mfma_f32_32x32x16_fp8_bf8", "gfx942", 16, 32.0),
            ("mfma_f32_16x16x8_xf32", "gfx942", 4, 16.0),
            ("mfma_f32_16x16x4f32", "gfx942", 4, 32.0),
            ("mfma_f32_4x4x4f16", "gfx942", 4, 8.0),
            ("smfmac_f32_16x16x32_f16", "gfx942", 4, 16.0),
            ("wmma_f32_16x16x16_f16_w32", "gfx1100", 8, 32.0),
            ("wmma_i32_16x16x16_iu4_w32", "gfx1100", 8, 16.0),
            ("wmma_f32_16x16x16_f16_w32_gfx12", "gfx1200", 8, 16.0),
        ] {
            assert_eq!(
                cycles(name, architecture, lanes),
                expected,
                "{name} {architecture}"
            );
        }
        assert_eq!(work("mma.sync", MatrixUnits::Cdna, 4, 64), None);
        assert_eq!(
            work("__builtin_amdgcn_mfma_f32", MatrixUnits::Cdna, 4, 64),
            None
        );
    }
}
