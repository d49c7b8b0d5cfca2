//! What a warp does together: its matrices, and copies that pass the registers by.
//!
//! Measured with `nvcc` of release 13 for `sm_75`, `sm_80` and `sm_90`: fragments of all shapes, types and layouts.

use smallvec::{SmallVec, smallvec};
use warplens_ir::{Expr, ExprKind, Fragment, Matrix};

use super::Builder;
use super::place::Place;
use crate::Class;
use crate::graph::{Args, Op, Space, Ty};

impl Builder<'_> {
    /// `load_matrix_sync`, `store_matrix_sync`.
    pub(super) fn matrix_access(
        &mut self,
        store: bool,
        fragment: Fragment,
        place: Option<Place>,
        others: &[Expr],
    ) {
        let mut layout = None;
        for other in others.iter().filter(|other| other.ty.is_int()) {
            let value = self.value(other);
            layout = value.first().and_then(|v| self.graph.int(*v));
        }
        let by_rows = match fragment.matrix {
            // The layout is the last number; without one it is the distance of rows.
            Matrix::Sum => layout != Some(1),
            _ => fragment.by_rows,
        };
        let Some(Place::Memory(pointer, space)) = place else {
            return;
        };
        let shared = space == Space::Shared && !is_generic(fragment);
        let class = match (store, shared) {
            (false, false) => Class::Ldg,
            (false, true) => Class::Lds,
            (true, false) => Class::Stg,
            (true, true) => Class::Sts,
        };
        let machine = self.options.target.machine();
        let count = accesses(fragment, by_rows, shared, machine.matrices);
        let object = self.object(pointer, space);
        let (base, _) = self.base(pointer);
        self.push(Op::Fixed(class, count), Ty::None, smallvec![base]);
        if store {
            self.changes(object);
        }
    }

    /// `mma_sync`; `mma` and its like of PTX.
    pub(super) fn product(&mut self, name: &str, arguments: &[Expr]) {
        let usual = self.options.target.machine().products;
        let factor = arguments.get(1).and_then(|a| Fragment::of(&a.ty));
        let count = match factor {
            Some(of) if of.bits == 64 => 1,
            Some(of) if of.bits == 32 => 2 * usual,
            // PTX names the machine's own shapes, half as wide.
            None if name == "mma" => usual / 2,
            _ => usual,
        };
        self.push(Op::Fixed(Class::Hmma, count), Ty::None, Args::new());
    }

    /// A copy into shared memory: one instruction, which the machine code counts among the loads.
    pub(super) fn copy(&mut self, copy: &Expr) {
        let ExprKind::Assign(None, to, from) = &copy.kind else {
            self.value(copy);
            return;
        };
        let (from, to) = (self.place(from), self.place(to));
        let (Place::Memory(from, source), Place::Memory(to, space)) = (from, to) else {
            return;
        };
        let object = self.object(to, space);
        let ((from, _), (to, _)) = (self.base(from), self.base(to));
        let straight = self.options.target.machine().copies
            && space == Space::Shared
            && source == Space::Global;
        let classes: SmallVec<[Class; 2]> = match (straight, space) {
            (true, _) => smallvec![Class::Ldg],
            (false, Space::Shared) => smallvec![Class::Ldg, Class::Sts],
            (false, _) => smallvec![Class::Ldg, Class::Stg],
        };
        for class in classes {
            self.push(Op::Fixed(class, 1), Ty::None, smallvec![from, to]);
        }
        self.changes(object);
    }
}

/// The toolkit's functions for these do not say which memory they access.
fn is_generic(fragment: Fragment) -> bool {
    fragment.bits == 64 || fragment.bits == 32 && fragment.depth == 8
}

/// Instructions that load or store a fragment, `matrices` of 8 · 8 an instruction where shared memory loads such.
fn accesses(fragment: Fragment, by_rows: bool, shared: bool, matrices: u32) -> u8 {
    let Fragment {
        matrix,
        rows,
        columns,
        bits,
        float,
        ..
    } = fragment;
    // Registers of 32 bits that a lane holds of it.
    let words = (fragment.elements() * bits).div_ceil(32 * 32);
    // A lane's elements lie side by side along the depth of a factor.
    let along = (matrix == Matrix::Left) == by_rows;
    let count = match (matrix, bits) {
        // Of a sum along its rows; the flat one is computed the other way about.
        (Matrix::Sum, 16) => words,
        (Matrix::Sum, _) => {
            let along = by_rows != (rows == 8 && columns == 32);
            let elements = fragment.elements().div_ceil(32);
            if along {
                elements.div_ceil(2)
            } else {
                elements
            }
        }
        (_, 64) => words / 2,
        (_, 8) if !along => words * 4,
        (_, 8) if shared => words.div_ceil(2),
        (_, 16) if shared && float => words.div_ceil(matrices),
        _ => words,
    };
    count.clamp(1, 255) as u8
}
