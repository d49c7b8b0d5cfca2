//! Where the lanes of a warp go when they load or store a fragment of a matrix (`wmma::load_matrix_sync`).
//!
//! In: the fragment, where it begins and the distance of its lines. Out: the accesses that the compiled code makes, since
//! 7.5 in the layout of `mma` (PTX ISA, matrix fragments for `mma.m16n8k16`): a lane has two elements side by side of row
//! `lane / 4` of each 8 · 8 matrix, and of shared memory lines of 16 bytes are loaded whole, as `ldmatrix` does.

use warplens_ir::{Expr, Fragment, Function, Matrix};
use warplens_symbolic::{BinaryOp, Id};

use crate::executor::Executor;
use crate::facts::{Form, Op, Space};
use crate::value::{Kind, Value, Variation};

/// Rows and columns of the matrices that a fragment is made of.
const SIDE: u32 = 8;

/// A fragment in memory: its lines, and how many elements lie side by side on each.
struct InMemory {
    lines: u32,
    along: u32,
    bytes: u32,
    /// The two elements of a lane lie side by side.
    pairs: bool,
}

impl InMemory {
    fn of(fragment: &Fragment, by_rows: bool) -> InMemory {
        let (rows, columns) = match fragment.matrix {
            Matrix::Left => (fragment.rows, fragment.depth),
            Matrix::Right => (fragment.depth, fragment.columns),
            Matrix::Sum => (fragment.rows, fragment.columns),
        };
        let (lines, along) = if by_rows {
            (rows, columns)
        } else {
            (columns, rows)
        };
        // A lane's pairs lie along the depth of a factor, and along the rows of a sum.
        let pairs = match fragment.matrix {
            Matrix::Left | Matrix::Sum => by_rows,
            Matrix::Right => !by_rows,
        };
        InMemory {
            lines,
            along,
            bytes: fragment.bits / 8,
            pairs,
        }
    }
}

impl Executor<'_> {
    /// The accesses of a fragment; `None` where its layout is not known.
    pub(crate) fn fragment(
        &mut self,
        function: &Function,
        arguments: &[Expr],
        whole: &Expr,
    ) -> Option<Value> {
        let Function::Tile { store } = function else {
            return None;
        };
        let (pointer, rest) = arguments.split_first()?;
        let of_pairs = self.profile.compute_capability >= Some((7, 5));
        let fragment = rest
            .iter()
            .find_map(|argument| Fragment::of(&argument.ty))
            .filter(|_| of_pairs)?;
        let numbers: Vec<Id> = rest
            .iter()
            .filter(|argument| argument.ty.is_int())
            .map(|argument| {
                let value = self.eval(argument);
                self.as_int(&value)
            })
            .collect();
        let distance = *numbers.first()?;
        let by_rows = match fragment.matrix {
            Matrix::Sum => numbers
                .get(1)
                .is_none_or(|layout| self.arena.as_const(*layout) != Some(1)),
            _ => fragment.by_rows,
        };
        let memory = InMemory::of(&fragment, by_rows);
        if !memory.lines.is_multiple_of(SIDE) || !memory.along.is_multiple_of(SIDE) {
            return None;
        }
        let pointer = self.eval(pointer);
        let Kind::Pointer(array, start) = pointer.kind else {
            return None;
        };
        self.pending.extend(pointer.loads);
        let shared = self.arrays[array.0 as usize].space == Space::Shared;
        let op = if *store { Op::Store } else { Op::Load };
        let line = self.arena.scale(distance, i64::from(memory.bytes));
        let places = if fragment.matrix != Matrix::Sum && memory.bytes == 2 && shared && !store {
            self.whole_lines(&memory, line)
        } else if memory.pairs && fragment.bits != 64 {
            self.pairs_of_lanes(&memory, line)
        } else if fragment.matrix == Matrix::Sum && fragment.bits == 32 {
            self.elements_of_lanes(&memory, line)
        } else {
            return None;
        };
        let mut loads = Vec::new();
        for (offset, bytes, form) in places {
            let address = self.arena.add(start, offset);
            let draft = self.record(array, address, bytes, bytes, op, whole, &[]);
            self.shape_of(draft, form);
            if self.dry == 0
                && let Some(draft) = self.accesses.get_mut(draft)
            {
                draft.piece = loads.len() as u32;
                // A run on numbers does not follow the layout.
                draft.origin = None;
            }
            loads.push(draft);
        }
        Some(Value {
            loads: if *store { Vec::new() } else { loads },
            ..Value::data(Variation::ANY)
        })
    }

    /// The lane of a thread.
    fn lane(&mut self) -> Id {
        let plane = self.arena.mul(self.thread[2], self.block_dim[1]);
        let rows = self.arena.add(plane, self.thread[1]);
        let before = self.arena.mul(rows, self.block_dim[0]);
        let rank = self.arena.add(before, self.thread[0]);
        let size = self.arena.constant(self.domain.warp_size() as i64);
        self.arena.binary(BinaryOp::Rem, rank, size)
    }

    fn divided(&mut self, value: Id, by: u32) -> Id {
        let by = self.arena.constant(i64::from(by));
        self.arena.binary(BinaryOp::Div, value, by)
    }

    fn rest(&mut self, value: Id, by: u32) -> Id {
        let by = self.arena.constant(i64::from(by));
        self.arena.binary(BinaryOp::Rem, value, by)
    }

    /// Bytes from the start to an element: `row` lines further, `bytes` along one.
    fn place_at(&mut self, row: Id, line: Id, bytes: Id) -> Id {
        let down = self.arena.mul(row, line);
        self.arena.add(down, bytes)
    }

    /// As `ldmatrix` loads it, up to four matrices an instruction.
    fn whole_lines(&mut self, memory: &InMemory, line: Id) -> Vec<(Id, u32, Form)> {
        let down = memory.lines / SIDE;
        let matrices = down * (memory.along / SIDE);
        let lane = self.lane();
        let (of_lane, row) = (self.divided(lane, SIDE), self.rest(lane, SIDE));
        let mut places = Vec::new();
        for first in (0..matrices).step_by(4) {
            let count = (matrices - first).min(4);
            let first = self.arena.constant(i64::from(first));
            let number = self.arena.add(of_lane, first);
            let (piece, block) = (self.divided(number, down), self.rest(number, down));
            let rows = self.arena.scale(block, i64::from(SIDE));
            let rows = self.arena.add(rows, row);
            let bytes = self.arena.scale(piece, i64::from(SIDE * memory.bytes));
            let offset = self.place_at(rows, line, bytes);
            places.push((offset, 4 * count, Form::Rows(count as u8)));
        }
        places
    }

    /// Two elements of each lane together.
    fn pairs_of_lanes(&mut self, memory: &InMemory, line: Id) -> Vec<(Id, u32, Form)> {
        let lane = self.lane();
        let (row, pair) = (self.divided(lane, 4), self.rest(lane, 4));
        let bytes = 2 * memory.bytes;
        let mut places = Vec::new();
        for along in (0..memory.along).step_by(SIDE as usize) {
            for down in (0..memory.lines).step_by(SIDE as usize) {
                let down = self.arena.constant(i64::from(down));
                let rows = self.arena.add(row, down);
                let first = self.arena.constant(i64::from(along * memory.bytes));
                let own = self.arena.scale(pair, i64::from(bytes));
                let own = self.arena.add(own, first);
                places.push((self.place_at(rows, line, own), bytes, Form::Lanes));
            }
        }
        places
    }

    /// One element of each lane, whose pairs lie on different lines.
    fn elements_of_lanes(&mut self, memory: &InMemory, line: Id) -> Vec<(Id, u32, Form)> {
        let lane = self.lane();
        let (column, pair) = (self.divided(lane, 4), self.rest(lane, 4));
        let mut places = Vec::new();
        for along in (0..memory.along).step_by(SIDE as usize) {
            for down in (0..memory.lines).step_by(SIDE as usize) {
                for second in 0..2 {
                    let first = self.arena.constant(i64::from(down + second));
                    let rows = self.arena.scale(pair, 2);
                    let rows = self.arena.add(rows, first);
                    let at = self.arena.constant(i64::from(along));
                    let columns = self.arena.add(column, at);
                    let own = self.arena.scale(columns, i64::from(memory.bytes));
                    places.push((self.place_at(rows, line, own), memory.bytes, Form::Lanes));
                }
            }
        }
        places
    }
}
