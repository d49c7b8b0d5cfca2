//! What of a matrix the lanes of a warp hold: `wmma::fragment`.

use crate::Type;

/// Which matrix of the product `A · B + C` it is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Matrix {
    /// The left factor.
    Left,
    /// The right factor.
    Right,
    /// The sum.
    Sum,
}

/// A fragment, as its template's arguments say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragment {
    /// Which matrix it is of.
    pub matrix: Matrix,
    /// Rows of the sum.
    pub rows: u32,
    /// Columns of the sum.
    pub columns: u32,
    /// Columns of the left factor, rows of the right one.
    pub depth: u32,
    /// Bits of an element.
    pub bits: u32,
    /// The elements are floating point.
    pub float: bool,
    /// A factor's rows are contiguous in memory; of a sum the access says it.
    pub by_rows: bool,
}

impl Fragment {
    /// The fragment that a type is, or an array of them.
    pub fn of(ty: &Type) -> Option<Fragment> {
        match ty {
            Type::Struct(structure) => Fragment::spelled(&structure.name),
            Type::Array(inner, _) => Fragment::of(inner),
            _ => None,
        }
    }

    /// As instances are spelled: what [`Fragment::spelled`] reads.
    pub fn spelling(&self) -> String {
        let matrix = match self.matrix {
            Matrix::Left => "matrix_a",
            Matrix::Right => "matrix_b",
            Matrix::Sum => "accumulator",
        };
        let element = if self.float { 'f' } else { 'i' };
        let layout = if self.by_rows {
            "row_major"
        } else {
            "col_major"
        };
        let Fragment {
            rows,
            columns,
            depth,
            bits,
            ..
        } = self;
        format!("fragment<{matrix}, {rows}, {columns}, {depth}, {element}{bits}, {layout}>")
    }

    /// Reads `fragment<matrix_a, 16, 16, 16, f16, row_major>`, as instances are spelled.
    pub fn spelled(name: &str) -> Option<Fragment> {
        let inner = name.strip_prefix("fragment<")?.strip_suffix('>')?;
        let mut parts = inner
            .split(", ")
            .map(|part| part.rsplit("::").next().unwrap_or(part));
        let matrix = match parts.next()? {
            "matrix_a" => Matrix::Left,
            "matrix_b" => Matrix::Right,
            "accumulator" => Matrix::Sum,
            _ => return None,
        };
        let mut side = || {
            let size = parts.next()?.parse().ok()?;
            (1..=256).contains(&size).then_some(size)
        };
        let (rows, columns, depth) = (side()?, side()?, side()?);
        let (float, bits) = Fragment::element(parts.next()?)?;
        Some(Fragment {
            matrix,
            rows,
            columns,
            depth,
            bits,
            float,
            // A layout reads as a type or as its number.
            by_rows: !matches!(parts.next(), Some("col_major" | "1")),
        })
    }

    /// The type of an element, as C++ or PTX spells it: whether it is a float, and its bits.
    pub fn element(name: &str) -> Option<(bool, u32)> {
        Some(match name {
            "f16" | "bf16" => (true, 16),
            "f32" | "tf32" => (true, 32),
            "f64" => (true, 64),
            "i8" | "s8" | "u8" => (false, 8),
            "i32" | "s32" => (false, 32),
            _ => return None,
        })
    }

    /// Elements of its matrix.
    pub fn elements(&self) -> u32 {
        match self.matrix {
            Matrix::Left => self.rows * self.depth,
            Matrix::Right => self.depth * self.columns,
            Matrix::Sum => self.rows * self.columns,
        }
    }

    /// Registers of 32 bits in which a lane holds it.
    pub fn words(&self) -> u32 {
        (self.elements() * self.bits).div_ceil(32 * 32)
    }

    /// Elements that a lane holds; 16 · 16 of half precision are held twice.
    pub fn held(&self) -> u32 {
        let once = self.elements().div_ceil(32);
        let twice = self.matrix != Matrix::Sum && self.bits == 16;
        if twice { once.max(16) } else { once }
    }
}
