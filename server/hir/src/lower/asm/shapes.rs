//! What a product of matrices takes: the shapes that PTX has of each type, and the registers of each operand.
//!
//! In goes an instruction of the source, out comes what is wrong with it. (PTX ISA, "Matrix shape", "Matrix fragments for mma",
//! "`wgmma.mma_async`".)

use super::super::constants::constant;
use super::Assembly;
use super::text::{Instruction, Operand};

/// Bits that a lane's registers of a warp hold.
const WARP: u32 = 32 * 32;

/// The types of a product, and the bits of an element.
const TYPES: [(&str, u32); 18] = [
    ("f64", 64),
    ("f32", 32),
    ("s32", 32),
    ("tf32", 32),
    ("f16", 16),
    ("bf16", 16),
    ("s8", 8),
    ("u8", 8),
    ("e4m3", 8),
    ("e5m2", 8),
    ("e3m2", 8),
    ("e2m3", 8),
    ("e2m1", 8),
    ("s4", 4),
    ("u4", 4),
    ("b1", 1),
    ("e0m3", 4),
    ("ue8m0", 8),
];

/// A product as its mnemonic says it.
struct Product<'t> {
    shape: &'t str,
    /// Its three sides.
    sides: [u32; 3],
    /// The type of the left factor, the bits of its elements.
    factor: (&'t str, u32),
    /// Bits of an element of the sum.
    sum: u32,
    /// Of each pair of elements of the left factor one is there.
    sparse: bool,
}

/// `m16n8k16` as its three sides.
fn sides(word: &str) -> Option<[u32; 3]> {
    let (m, rest) = word.strip_prefix('m')?.split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    Some([m.parse().ok()?, n.parse().ok()?, k.parse().ok()?])
}

impl<'t> Product<'t> {
    fn of(instruction: &Instruction<'t>) -> Option<Product<'t>> {
        let mut words = instruction.suffixes();
        let (shape, sides) = words.find_map(|word| Some((word, sides(word)?)))?;
        // Of the sum, the factors, and, of some instructions, what is added to.
        let mut types = words.filter_map(|word| {
            TYPES
                .into_iter()
                .find(|(name, _)| *name == word)
                .map(|(_, bits)| (word, bits))
        });
        let (sum, mut factor) = (types.next()?.1, types.next()?);
        if instruction.has("kind::mxf4") || instruction.has("kind::mxf4nvf4") {
            // Packed; elsewhere each has a byte of its own.
            factor.1 = 4;
        }
        Some(Product {
            shape,
            sides,
            factor,
            sum,
            sparse: instruction.has("sp") || instruction.has("sp::ordered_metadata"),
        })
    }

    /// True where PTX has the shape, for these types.
    fn exists(&self, base: &str) -> bool {
        let [m, n, k] = self.sides;
        let (name, bits) = self.factor;
        // A row of a factor, in bits.
        let row = k.saturating_mul(bits) / if self.sparse { 2 } else { 1 };
        match (base, m, n) {
            ("wgmma", 64, 8..=256) => n.is_multiple_of(8) && row == 256,
            ("mma", 16, 8) if name == "f64" => matches!(k, 4 | 8 | 16),
            ("mma", 16, 8) => matches!(row, 128 | 256),
            ("mma", 8, 8) if name == "f64" || name == "f16" => k == 4,
            ("mma", 8, 8) => bits <= 8 && row == 128,
            _ => false,
        }
    }

    /// Registers of the sum, the left and the right factor; `None` where they are in memory.
    fn registers(&self, base: &str) -> [Option<u32>; 3] {
        let [m, n, k] = self.sides;
        let (name, bits) = self.factor;
        // Four products of quarters of a warp are one; four warps have a part each.
        let quarters = if self.shape == "m8n8k4" && name == "f16" {
            4
        } else {
            1
        };
        let warps = if base == "wgmma" { 4 } else { 1 };
        let of = |elements: u32, bits: u32, warps: u32| {
            let words = elements * bits * quarters / (WARP * warps);
            // An operand of double precision is two of these.
            Some(if bits == 64 { words / 2 } else { words }.max(1))
        };
        let dense = if self.sparse { 2 } else { 1 };
        let right = (base == "mma").then(|| of(n * k, bits, 1)).flatten();
        [
            of(m * n, self.sum, warps),
            of(m * k / dense, bits, warps),
            right,
        ]
    }
}

/// The registers of an operand in braces.
fn registers_of(operand: Option<&Operand>) -> Option<u32> {
    match operand {
        Some(Operand::Vector(registers)) => Some(registers.len() as u32),
        _ => None,
    }
}

/// What is wrong with a product, in words.
pub(super) fn wrong(instruction: &Instruction) -> Option<String> {
    let base = instruction.base();
    if base != "mma" && base != "wgmma" {
        return None;
    }
    let product = Product::of(instruction)?;
    let Product {
        shape,
        factor: (ty, _),
        ..
    } = product;
    if !product.exists(base) {
        return Some(format!("it has no shape `{shape}` for `{ty}`"));
    }
    let operands = [("sum", 0), ("left factor", 1), ("right factor", 2)];
    for ((name, at), takes) in operands.into_iter().zip(product.registers(base)) {
        if let (Some(has), Some(takes)) = (registers_of(instruction.operands.get(at)), takes)
            && has != takes
        {
            let registers = if takes == 1 { "register" } else { "registers" };
            return Some(format!(
                "its {name} takes {takes} {registers} for `{shape}` of `{ty}`, not {has}"
            ));
        }
    }
    None
}

impl<'t> Assembly<'_, '_, 't> {
    /// What is wrong with an instruction's operands, in words.
    pub(super) fn misuse(&self, instruction: &Instruction<'t>) -> Option<String> {
        if let Some(missing) = self.missing(&instruction.operands) {
            return Some(format!("the statement has no operand `%{missing}`"));
        }
        if let Some(message) = wrong(instruction) {
            return Some(message);
        }
        let takes = match instruction.base() {
            "ld" | "ldu" | "ldmatrix" | "stmatrix" => 2..=2,
            "st" if instruction.has("async") => 2..=3,
            "st" if !instruction.has("bulk") => 2..=2,
            "atom" => 3..=4,
            "red" if !instruction.has("async") => 2..=2,
            "cp" => return self.wrong_copy(instruction),
            "mma" => 4..=10,
            _ => return None,
        };
        let has = instruction.but_policy().len();
        if !takes.contains(&has) {
            let takes = if takes.start() == takes.end() {
                takes.start().to_string()
            } else {
                format!("{} to {}", takes.start(), takes.end())
            };
            return Some(format!("it takes {takes} operands, not {has}"));
        }
        self.wrong_vector(instruction)
    }

    /// A copy past the registers of another size than these have.
    fn wrong_copy(&self, instruction: &Instruction<'t>) -> Option<String> {
        let copies = instruction.has("async") && !instruction.has("bulk");
        let size = instruction.operands.get(2).filter(|_| copies)?;
        let bytes = match size {
            Operand::Number(bytes) => *bytes,
            size => constant(self.operands.get(self.index(size)?)?.value.as_ref()?)?,
        };
        let (word, fits) = if instruction.has("cg") {
            ("16 bytes with `.cg`", bytes == 16)
        } else {
            ("4, 8 or 16 bytes", matches!(bytes, 4 | 8 | 16))
        };
        (!fits).then(|| format!("it copies {word}, not {bytes}"))
    }

    /// A vector of other registers than the mnemonic says.
    fn wrong_vector(&self, instruction: &Instruction<'t>) -> Option<String> {
        let registers = match instruction.base() {
            "ld" | "ldu" | "ldmatrix" => instruction.operands.first(),
            "st" | "stmatrix" => instruction.operands.get(1),
            _ => return None,
        };
        let word = instruction
            .suffixes()
            .find(|word| matches!(*word, "v2" | "v4" | "v8" | "x1" | "x2" | "x4"))?;
        let takes: u32 = word[1..].parse().ok()?;
        let takes = if instruction.has("m16n16") {
            2 * takes
        } else {
            takes
        };
        let has = registers_of(registers).unwrap_or(1);
        (has != takes).then(|| format!("with `.{word}` it takes {takes} registers, not {has}"))
    }

    /// An operand that the statement does not have.
    fn missing(&self, operands: &[Operand<'t>]) -> Option<usize> {
        operands.iter().find_map(|operand| match operand {
            Operand::Placeholder(number) => (*number >= self.operands.len()).then_some(*number),
            Operand::Vector(inner) => self.missing(inner),
            Operand::Memory {
                base,
                offset,
                coordinates,
            } => self
                .missing(std::slice::from_ref(base))
                .or_else(|| self.missing(std::slice::from_ref(offset)))
                .or_else(|| self.missing(coordinates)),
            Operand::Pair(value, predicate) => self
                .missing(std::slice::from_ref(value))
                .or_else(|| self.missing(std::slice::from_ref(predicate))),
            Operand::Not(inner) => self.missing(std::slice::from_ref(inner)),
            _ => None,
        })
    }
}
