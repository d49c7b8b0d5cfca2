//! Instructions that leave memory alone: products of matrices, exchanges among lanes, arithmetic whose values are not
//! followed.

use warplens_ir::functions;
use warplens_ir::{Effect, Expr, Fragment, Function, MathClass, Matrix, Type};

use super::text::{Instruction, Operand};
use super::{Assembly, type_of};

impl<'t> Assembly<'_, '_, 't> {
    pub(super) fn other(&mut self, instruction: &Instruction<'t>) -> Option<()> {
        match instruction.base() {
            "mma" | "wmma" | "wgmma" | "tcgen05" => return self.matrices(instruction),
            _ => {}
        }
        let function = functions::of_ptx(instruction.base())?;
        if let Function::Ignored(effect, _) = function {
            self.waits(instruction);
            self.ignored(instruction, effect);
            return Some(());
        }
        let own = instruction.suffixes().rev().find_map(type_of);
        let own = own.unwrap_or(Type::UINT);
        let (target, sources) = instruction.operands.split_first()?;
        let targets = Self::flat(std::slice::from_ref(target));
        let sources = Self::flat(sources);
        let mut sources: Vec<Expr> = sources
            .into_iter()
            .map(|one| self.read_as(one, &own))
            .collect();
        let first = instruction.suffixes().find_map(type_of);
        let mut gives = match function {
            // The type that a conversion gives comes first.
            Function::Math(MathClass::Convert, _) => first.unwrap_or_else(|| own.clone()),
            _ => own.clone(),
        };
        if instruction.base() == "vote" || instruction.base() == "match" {
            gives = Type::UINT;
        }
        let function = match function {
            // Small floats have no type here, and what is rounded keeps its own: one instruction makes these bits.
            Function::Math(MathClass::Convert, name)
                if instruction.has("pack")
                    || gives == own
                    || instruction.suffixes().any(is_small) =>
            {
                gives = self.register_type(target, &gives);
                Function::Math(MathClass::Int(1), name)
            }
            Function::Math(MathClass::Convert, _) if sources.len() > 1 => {
                // The first source is the upper half.
                sources.reverse();
                function
            }
            // What computes with integers by a name for floating point.
            Function::Math(MathClass::Float(count), name)
                if !gives.is_float() && !matches!(gives, Type::Vector(..)) =>
            {
                Function::Math(MathClass::Int(count), name)
            }
            function => function,
        };
        let function = if instruction.base() == "shfl" {
            Self::shuffle(instruction, function, &mut sources)
        } else {
            function
        };
        let function = self.named(instruction, function);
        if targets.len() > 1 {
            self.write_all(&targets, function, sources);
            return Some(());
        }
        let value = self.call(function, sources, gives);
        if let Operand::Pair(_, predicate) = target {
            let unknown = self.nothing(Type::BOOL);
            self.write(predicate, unknown);
        }
        self.write(target, value);
        Some(())
    }

    /// `shfl.sync.idx.b32 to, value, lane, clamp, mask` as `__shfl_sync(mask, value, lane)`: who has what follows alike.
    fn shuffle(
        instruction: &Instruction<'t>,
        function: Function,
        sources: &mut Vec<Expr>,
    ) -> Function {
        let Function::WarpExchange(exchange, _) = &function else {
            return function;
        };
        let kind = ["idx", "up", "down", "bfly"]
            .into_iter()
            .find(|kind| instruction.has(kind));
        let (Some(kind), [value, lane, clamp, mask]) = (kind, sources.as_slice()) else {
            return function;
        };
        // Segments of the warp are in the upper bits, the last lane in the lower ones; `up` has the first.
        let end = if kind == "up" { 0 } else { 31 };
        let whole = super::super::constants::constant(clamp).is_some_and(|of| of & 0x1f1f == end);
        let name = match kind {
            "up" => "__shfl_up_sync",
            "down" => "__shfl_down_sync",
            "bfly" => "__shfl_xor_sync",
            _ => "__shfl_sync",
        };
        let mut arguments = vec![mask.clone(), value.clone(), lane.clone()];
        arguments.extend((!whole).then(|| clamp.clone()));
        let exchange = *exchange;
        *sources = arguments;
        Function::WarpExchange(exchange, name.into())
    }

    /// What a barrier in memory answers is not known.
    fn waits(&mut self, instruction: &Instruction<'t>) {
        let asks = instruction.has("test_wait") || instruction.has("try_wait");
        if asks && let Some(target @ Operand::Name(_)) = instruction.operands.first() {
            let unknown = self.nothing(Type::BOOL);
            self.write(target, unknown);
        }
    }

    /// Products of matrices, what orders them, and the loads and stores of fragments.
    fn matrices(&mut self, instruction: &Instruction<'t>) -> Option<()> {
        let multiplies = match instruction.base() {
            "mma" => true,
            "wmma" => instruction.has("mma"),
            _ => instruction.has("mma_async") || instruction.has("mma"),
        };
        if !multiplies {
            return self.fragments(instruction);
        }
        let (target, sources) = instruction.operands.split_first()?;
        if sources.len() < 2 {
            return None;
        }
        // The sum of `tcgen05` lies in a memory of its own.
        let in_registers = matches!(target, Operand::Vector(_));
        let targets = if in_registers {
            Self::flat(std::slice::from_ref(target))
        } else {
            Vec::new()
        };
        let mut arguments = Vec::new();
        // It adds to what it writes.
        if instruction.base() == "wgmma" {
            for target in &targets {
                arguments.push(self.read(target));
            }
        }
        for source in Self::flat(sources) {
            if !matches!(source, Operand::Memory { .. } | Operand::Number(_)) {
                arguments.push(self.read(source));
            }
        }
        let function = Function::Math(MathClass::Tensor, instruction.mnemonic.into());
        self.write_all(&targets, function, arguments);
        Some(())
    }

    fn fragments(&mut self, instruction: &Instruction<'t>) -> Option<()> {
        let moves = instruction.base() == "wmma"
            && (instruction.has("load") || instruction.has("store"))
            || instruction.base() == "tcgen05" && instruction.has("ld");
        if !moves {
            self.ignored(instruction, Effect::Unknown);
            return Some(());
        }
        let store = instruction.has("store");
        let [first, second, ..] = instruction.operands.as_slice() else {
            return None;
        };
        let (memory, registers) = if store {
            (first, second)
        } else {
            (second, first)
        };
        let Operand::Memory { base, .. } = memory else {
            return None;
        };
        let registers = Self::flat(std::slice::from_ref(registers));
        if instruction.base() == "wmma" {
            let address = self.read(base);
            let element = instruction.suffixes().rev().find_map(type_of);
            let pointer = Expr {
                ty: Type::Pointer(
                    std::sync::Arc::new(element.unwrap_or(Type::UINT)),
                    super::space_of(instruction),
                ),
                kind: warplens_ir::ExprKind::Cast(true, Box::new(address)),
                site: self.site,
            };
            let mut arguments = vec![pointer];
            if let Some(fragment) = spelled_fragment(instruction) {
                let sum = fragment.matrix == Matrix::Sum;
                let by_rows = fragment.by_rows;
                let along = match (fragment.matrix, by_rows) {
                    (Matrix::Left, true) | (Matrix::Right, false) => fragment.depth,
                    (Matrix::Left, false) => fragment.rows,
                    (Matrix::Right | Matrix::Sum, true) => fragment.columns,
                    (Matrix::Sum, false) => fragment.rows,
                };
                // Lines follow each other where no distance is given.
                let distance = match instruction.operands.get(2) {
                    Some(distance) => self.read_as(distance, &Type::INT),
                    None => self.number(i64::from(along)),
                };
                let ty = Type::Struct(std::sync::Arc::new(warplens_ir::Struct::new(
                    &fragment.spelling(),
                    Vec::new(),
                    false,
                    1,
                )));
                arguments.push(super::super::split::list(&ty, Vec::new(), self.site));
                arguments.push(distance);
                if sum {
                    arguments.push(self.number(i64::from(!by_rows)));
                }
            }
            let function = self.named(instruction, Function::Tile { store });
            let call = self.call(function, arguments, Type::Void);
            self.done.push(call);
        }
        if !store {
            let name = instruction.mnemonic.into();
            let function = Function::Math(MathClass::Int(0), name);
            self.write_all(&registers, function, Vec::new());
        }
        Some(())
    }
}

/// The fragment that a `wmma` loads or stores: `wmma.load.a.sync.aligned.row.m16n16k16.shared.f16`.
fn spelled_fragment(instruction: &Instruction) -> Option<Fragment> {
    let matrix = if instruction.has("a") {
        Matrix::Left
    } else if instruction.has("b") {
        Matrix::Right
    } else {
        Matrix::Sum
    };
    let sides = instruction.suffixes().find_map(|suffix| {
        let (rows, rest) = suffix.strip_prefix('m')?.split_once('n')?;
        let (columns, depth) = rest.split_once('k')?;
        Some([rows, columns, depth].map(|side| side.parse().ok()))
    })?;
    let [Some(rows), Some(columns), Some(depth)] = sides else {
        return None;
    };
    let (float, bits) = instruction.suffixes().rev().find_map(Fragment::element)?;
    Some(Fragment {
        matrix,
        rows,
        columns,
        depth,
        bits,
        float,
        by_rows: instruction.has("row"),
    })
}

/// True for the type of floats of a byte and less, which are converted several at a time: `e4m3x2`.
fn is_small(suffix: &str) -> bool {
    ["e4m3", "e5m2", "e2m3", "e3m2", "e2m1", "ue8m0"]
        .iter()
        .any(|name| suffix.starts_with(name))
}
