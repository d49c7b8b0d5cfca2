//! What a warp does together: its matrices, and copies that pass the registers by.
//!
//! Measured with `nvcc` of release 13 for `sm_75`, `sm_80` and `sm_90`: fragments of all shapes, types and layouts.

use smallvec::{SmallVec, smallvec};
use warplens_ir::{Expr, ExprKind, Fragment, Function, MathClass, Matrix, Type, VarId};

use super::place::Place;
use super::{Builder, Value, emulated, machine, scalars};
use crate::Class;
use crate::amd::product_work;
use crate::graph::{Args, Op, Space, Ty, V};

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
        let mut given: Args = smallvec![base];
        let held = others
            .iter()
            .find(|other| Fragment::of(&other.ty).is_some());
        if store {
            given.extend(held.into_iter().flat_map(|held| self.registers_of(held)));
            self.push(Op::Fixed(class, count), Ty::None, given);
            self.changes(object);
            return;
        }
        let all = self.push(Op::Fixed(class, count), Ty::I32, given);
        if let Some(held) = held {
            self.keep_fragment(held, |builder, number, ty| {
                builder.push(Op::Piece(number), ty, smallvec![all])
            });
        }
    }

    /// The registers of a fragment, with the byte at which each is kept; none of one that lies elsewhere.
    fn kept_at(&mut self, held: &Expr) -> Vec<((VarId, u32), Ty)> {
        let (Some(fragment), Type::Struct(_)) = (Fragment::of(&held.ty), &held.ty) else {
            return Vec::new();
        };
        let Place::Own(id, start) = self.place(held) else {
            return Vec::new();
        };
        let (ty, size) = match (fragment.float, fragment.bits) {
            (_, 64) => (Ty::F64, 8),
            (true, 32) => (Ty::F32, 4),
            _ => (Ty::I32, 4),
        };
        let count = fragment.words() * 4 / size;
        (0..count)
            .map(|number| ((id, start + number * size), ty))
            .collect()
    }

    /// What a fragment holds.
    fn registers_of(&mut self, held: &Expr) -> Args {
        let kept = self.kept_at(held);
        kept.into_iter()
            .filter_map(|(key, _)| self.env.get(&key).copied())
            .collect()
    }

    /// Gives a fragment new registers. They are kept where its first elements are; the other elements are those of its
    /// registers, and nothing of their own.
    fn keep_fragment(&mut self, held: &Expr, mut register: impl FnMut(&mut Self, u8, Ty) -> V) {
        let kept = self.kept_at(held);
        let Some(&((id, start), _)) = kept.first() else {
            return;
        };
        for (at, _) in scalars(&held.ty) {
            self.env.remove(&(id, start + at));
        }
        for (number, (key, ty)) in kept.into_iter().enumerate() {
            let v = register(self, number.min(255) as u8, ty);
            self.env.insert(key, v);
        }
    }

    /// `fill_fragment`: each register is given the value, which a constant needs no instruction for.
    pub(super) fn filled(&mut self, arguments: &[Expr]) {
        let [held, value] = arguments else {
            return;
        };
        let value = self.scalar(value);
        let constant = self.graph.op(value).is_operand();
        self.keep_fragment(held, |builder, _, ty| {
            if constant {
                builder.leaf(Op::Int(0), ty)
            } else {
                value
            }
        });
    }

    /// `ldmatrix`, `stmatrix`: one instruction for all matrices.
    pub(super) fn rows(&mut self, store: bool, arguments: &[Expr], ty: &Type) -> Value {
        let mut given: Args = arguments[1.min(arguments.len())..]
            .iter()
            .filter_map(|argument| self.value(argument).first().copied())
            .collect();
        let Some(Place::Memory(pointer, space)) =
            arguments.first().map(|pointer| self.pointed_at(pointer))
        else {
            return self.nothing(ty);
        };
        let object = self.object(pointer, space);
        let (base, _) = self.base(pointer);
        given.insert(0, base);
        if store {
            self.push(Op::Fixed(Class::Sts, 1), Ty::None, given);
            self.changes(object);
            return Value::new();
        }
        self.made_together(Op::Fixed(Class::Lds, 1), given, ty)
    }

    /// Registers that one instruction writes.
    fn made_together(&mut self, op: Op, args: Args, ty: &Type) -> Value {
        let parts = scalars(ty);
        if parts.is_empty() {
            self.push(op, Ty::None, args);
            return Value::new();
        }
        if let [(_, only)] = parts.as_slice() {
            return smallvec![self.push(op, machine(only), args)];
        }
        let all = self.push(op, Ty::I32, args);
        let parts = parts.iter().enumerate();
        parts
            .map(|(number, (_, part))| {
                self.push(Op::Piece(number as u8), machine(part), smallvec![all])
            })
            .collect()
    }

    /// `mma_sync`; `mma` and its like of PTX.
    pub(super) fn product(
        &mut self,
        name: &str,
        arguments: &[Expr],
        values: &[Value],
        ty: &Type,
    ) -> Value {
        let lanes = scalars(ty).len();
        if let Some(work) = product_work(name, self.options.matrices, lanes, WHOLE) {
            let given = values.iter().flatten().copied().collect();
            return self.made_together(Op::Product(1, work), given, ty);
        }
        let machine = self.options.target.machine();
        let usual = machine.products;
        let factor = arguments.get(1).and_then(|a| Fragment::of(&a.ty));
        let count = match factor {
            Some(of) if of.bits == 64 => 1,
            Some(of) if of.bits == 32 => 2 * usual,
            None if name.contains('.') => written(name, usual),
            _ => usual,
        };
        let mut given = Args::new();
        if factor.is_none() {
            given.extend(values.iter().flatten().copied());
            let factors = given.len().saturating_sub(lanes) as u32;
            if let Some(made) = emulated::product(name, machine, factors) {
                for (class, count) in made.beside {
                    let count = count.min(255) as u8;
                    self.push(Op::Fixed(class, count), Ty::None, given.clone());
                }
                let last = match made.product {
                    (Class::Hmma, count) => Op::Product(count, work_of(name, made.bits)),
                    (class, count) => Op::Fixed(class, count),
                };
                return self.made_together(last, given, ty);
            }
            let work = match self.described_shape(name, arguments, values) {
                Some([m, n]) => work_of_sides(name, [m, n, k_of(name)], bits_of(name)),
                None => work(name, count),
            };
            return self.made_together(Op::Product(count, work), given, ty);
        }
        for held in arguments.iter().skip(1) {
            let registers = self.registers_of(held);
            given.extend(registers);
        }
        let work = u32::from(count) * WHOLE;
        let all = self.push(Op::Product(count, work), Ty::I32, given);
        if let Some(sum) = arguments.first() {
            self.keep_fragment(sum, |builder, number, ty| {
                builder.push(Op::Piece(number), ty, smallvec![all])
            });
        }
        Value::new()
    }

    /// Rows and columns of a product whose shape is in a descriptor of the instruction: behind those of its factors (PTX ISA,
    /// "Instruction descriptor").
    fn described_shape(
        &self,
        name: &str,
        arguments: &[Expr],
        values: &[Value],
    ) -> Option<[u32; 2]> {
        if !name.starts_with("tcgen05") {
            return None;
        }
        let is = |ty: &Type, bits: u8| matches!(ty, Type::Int { bits: has, .. } if *has == bits);
        let behind = arguments
            .iter()
            .rposition(|argument| is(&argument.ty, 64))?;
        let at = (behind + 1..arguments.len()).find(|at| is(&arguments[*at].ty, 32))?;
        let described = self.graph.int(*values.get(at)?.first()?)?;
        let field = |from: u32, count: u32| (described >> from & ((1 << count) - 1)) as u32;
        let (rows, columns) = (field(24, 5) * 16, field(17, 6) * 8);
        (rows > 0 && columns > 0).then_some([rows, columns])
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

/// The fragments that a call gives new values.
pub(super) fn given_to<'a>(
    function: &'a Function,
    arguments: &'a [Expr],
) -> impl Iterator<Item = &'a Expr> {
    let fragments = arguments
        .iter()
        .filter(|argument| Fragment::of(&argument.ty).is_some());
    let count = match function {
        Function::Tile { store: false } => usize::MAX,
        Function::Math(MathClass::Tensor, _) => 1,
        Function::Math(_, name) if &**name == "fill_fragment" => 1,
        _ => 0,
    };
    fragments.take(count)
}

/// Words for elements of 8 bits, and of 4.
const EIGHTS: [&str; 9] = [
    "s8",
    "u8",
    "e4m3",
    "e5m2",
    "e3m2",
    "e2m3",
    "kind::i8",
    "kind::f8f6f4",
    "kind::mxf8f6f4",
];
const FOURTHS: [&str; 5] = ["s4", "u4", "e2m1", "kind::mxf4", "kind::mxf4nvf4"];

/// A product of 16 · 8 · 16 in half precision, in its 64ths.
const WHOLE: u32 = 64;

/// What a product of PTX takes of the matrix units, in 64ths of 16 · 8 · 16 in half precision: by its multiply-adds, at the
/// rate of its type. Those of a group of four warps are each warp's part; those that one thread starts are all its own.
fn work(mnemonic: &str, count: u8) -> u32 {
    if !mnemonic.split('.').any(|part| sides(part).is_some()) {
        return u32::from(count) * WHOLE;
    }
    work_of(mnemonic, bits_of(mnemonic))
}

/// Bits of an element of a factor, as they count for the rate.
fn bits_of(mnemonic: &str) -> u64 {
    let has = |word: &str| mnemonic.split('.').any(|part| part == word);
    if has("f64") {
        // Of parts with fast double precision: an eighth of the rate of pairs of single precision.
        128
    } else if has("tf32") || has("kind::tf32") {
        32
    } else if EIGHTS.iter().any(|ty| has(ty)) {
        8
    } else if FOURTHS.iter().any(|ty| has(ty)) {
        4
    } else if has("b1") {
        1
    } else {
        16
    }
}

/// Depth of a product whose shape is in a descriptor: rows of 32 bytes.
fn k_of(mnemonic: &str) -> u32 {
    let dense = if mnemonic.split('.').any(|part| part == "sp") {
        2
    } else {
        1
    };
    256 / bits_of(mnemonic) as u32 * dense
}

/// The same of a product whose elements have that many bits where the machine multiplies them.
fn work_of(mnemonic: &str, bits: u64) -> u32 {
    let sides = mnemonic.split('.').find_map(sides);
    work_of_sides(mnemonic, sides.unwrap_or([16, 8, 16]), bits)
}

/// The same, of these sides.
fn work_of_sides(mnemonic: &str, [m, n, k]: [u32; 3], bits: u64) -> u32 {
    let has = |word: &str| mnemonic.split('.').any(|part| part == word);
    let usual = 16 * 8 * 16;
    // Of a sparse factor every other element is there.
    let dense = if has("sp") { 2 } else { 1 };
    let warps = if mnemonic.starts_with("wgmma") { 4 } else { 1 };
    let products = u64::from(m) * u64::from(n) * u64::from(k);
    let work = products * u64::from(WHOLE) * bits / (usual * 16 * dense * warps);
    u32::try_from(work.max(1)).unwrap_or(u32::MAX)
}

/// `m16n8k16` as its three sides.
fn sides(word: &str) -> Option<[u32; 3]> {
    let (m, rest) = word.strip_prefix('m')?.split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    let side = |text: &str| text.parse().ok().filter(|side| (1..=4096).contains(side));
    Some([side(m)?, side(n)?, side(k)?])
}

/// Instructions that a product of PTX becomes, by its mnemonic: it names the machine's own shapes, of which one is 16 deep
/// in half precision where `usual` of them make 16 · 16 · 16.
fn written(mnemonic: &str, usual: u8) -> u8 {
    let has = |word: &str| mnemonic.split('.').any(|part| part == word);
    if mnemonic.starts_with("wmma") {
        return usual;
    }
    match () {
        () if has("m8n8k4") && has("f16") => {
            if has("f32") {
                4
            } else {
                2
            }
        }
        () if has("m16n8k16") && (has("f16") || has("bf16")) => (usual / 2).max(1),
        () => 1,
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
    let words = fragment.words();
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
