//! Instructions that access memory: loads, stores, atomics, rows of matrices, copies past the registers.

use std::sync::Arc;

use warplens_ir::{AddressSpace, Effect, Expr, ExprKind, Function, Type, UnaryOp, Update};

use super::super::constants::constant;
use super::super::split::{address_of, deref};
use super::text::{Instruction, Operand};
use super::{Assembly, space_of, type_of};

impl<'t> Assembly<'_, '_, 't> {
    pub(super) fn memory(&mut self, instruction: &Instruction<'t>) -> Option<()> {
        match instruction.base() {
            "ld" | "ldu" => self.load(instruction),
            "st" => self.store(instruction),
            "atom" | "red" => self.atomic(instruction),
            "ldmatrix" | "stmatrix" => self.rows(instruction),
            _ => self.copy(instruction),
        }
    }

    /// What one access moves: the scalar, and the lanes of a vector.
    fn moved(instruction: &Instruction) -> Option<(Type, u8)> {
        let scalar = instruction.suffixes().rev().find_map(type_of)?;
        let lanes = instruction.suffixes().find_map(|word| match word {
            "v2" => Some(2),
            "v4" => Some(4),
            "v8" => Some(8),
            _ => None,
        });
        Some((scalar, lanes.unwrap_or(1)))
    }

    fn of_lanes(scalar: &Type, lanes: u8) -> Type {
        match lanes {
            1 => scalar.clone(),
            lanes => Type::Vector(Arc::new(scalar.clone()), lanes),
        }
    }

    /// An address in brackets, as a pointer.
    fn pointer(&mut self, operand: &Operand<'t>, to: &Type, space: AddressSpace) -> Option<Expr> {
        let Operand::Memory { base, offset, .. } = operand else {
            return None;
        };
        let site = self.site;
        let value = self.read(base);
        let offset = self.read(offset);
        let offset = constant(&offset)?;
        let pointer = Expr {
            kind: ExprKind::Cast(true, Box::new(value)),
            ty: Type::Pointer(Arc::new(to.clone()), space),
            site,
        };
        if offset == 0 {
            return Some(pointer);
        }
        let place = Expr {
            kind: ExprKind::Field(Box::new(deref(pointer, site)), offset as u64),
            ty: to.clone(),
            site,
        };
        Some(address_of(place, space, site))
    }

    fn load(&mut self, instruction: &Instruction<'t>) -> Option<()> {
        let [target, address] = instruction.but_policy() else {
            return None;
        };
        let (scalar, lanes) = Self::moved(instruction)?;
        let targets = Self::flat(std::slice::from_ref(target));
        if targets.len() != usize::from(lanes) {
            return None;
        }
        let ty = Self::of_lanes(&scalar, lanes);
        let pointer = self.pointer(address, &ty, space_of(instruction))?;
        let function = self.named(instruction, Function::Load);
        self.spread(&targets, &scalar, function, vec![pointer]);
        Some(())
    }

    /// What a load gives, in the types that it loads; bits of a register of the same size are what they are there.
    fn spread(
        &mut self,
        targets: &[&Operand<'t>],
        scalar: &Type,
        function: Function,
        arguments: Vec<Expr>,
    ) {
        let own = self.register_type(targets[0], scalar);
        if own.size() == scalar.size() {
            self.write_all(targets, function, arguments);
            return;
        }
        match targets {
            [one] => {
                let value = self.call(function, arguments, scalar.clone());
                self.write(one, value);
            }
            _ => {
                // Bytes and halves in wider registers.
                let ty = Self::of_lanes(scalar, targets.len() as u8);
                let value = self.call(function, arguments, ty);
                self.done.push(value);
                for target in targets {
                    let unknown = self.nothing(own.clone());
                    self.write(target, unknown);
                }
            }
        }
    }

    fn store(&mut self, instruction: &Instruction<'t>) -> Option<()> {
        // `st.async` names its barrier behind the value.
        let (address, value) = match instruction.but_policy() {
            [address, value] => (address, value),
            [address, value, _] if instruction.has("async") => (address, value),
            _ => return None,
        };
        let (scalar, lanes) = Self::moved(instruction)?;
        let values = Self::flat(std::slice::from_ref(value));
        if values.len() != usize::from(lanes) {
            return None;
        }
        let ty = Self::of_lanes(&scalar, lanes);
        let pointer = self.pointer(address, &ty, space_of(instruction))?;
        let mut parts: Vec<Expr> = values
            .into_iter()
            .map(|one| self.read_as(one, &scalar))
            .collect();
        let value = match parts.len() {
            1 => parts.remove(0),
            _ => Expr {
                kind: ExprKind::List(parts),
                ty,
                site: self.site,
            },
        };
        let function = self.named(instruction, Function::Store);
        let call = self.call(function, vec![pointer, value], Type::Void);
        self.done.push(call);
        Some(())
    }

    fn atomic(&mut self, instruction: &Instruction<'t>) -> Option<()> {
        let returns = instruction.base() == "atom";
        let (target, rest) = match instruction.but_policy() {
            [target, rest @ ..] if returns => (Some(target), rest),
            rest => (None, rest),
        };
        let (address, values) = rest.split_first()?;
        // `red.async` names its barrier behind the value.
        let values = match values {
            [value, _] if instruction.has("async") => std::slice::from_ref(value),
            values => values,
        };
        let (scalar, lanes) = Self::moved(instruction)?;
        let ty = Self::of_lanes(&scalar, lanes);
        let pointer = self.pointer(address, &ty, space_of(instruction))?;
        let mut arguments = vec![pointer];
        for value in Self::flat(values) {
            arguments.push(self.read_as(value, &scalar));
        }
        let update = if instruction.has("cas") || instruction.has("exch") {
            Update::Swap
        } else {
            Update::Combine
        };
        let function = Function::Atomic(update, instruction.mnemonic.into());
        let function = self.named(instruction, function);
        let value = self.call(function, arguments, ty);
        match target {
            Some(target) if lanes == 1 => self.write(target, value),
            _ => self.done.push(value),
        }
        Some(())
    }

    /// `ldmatrix`, `stmatrix`: rows of 16 bytes, eight of them a matrix.
    fn rows(&mut self, instruction: &Instruction<'t>) -> Option<()> {
        let store = instruction.base() == "stmatrix";
        let [first, second] = instruction.operands.as_slice() else {
            return None;
        };
        let number = instruction.suffixes().find_map(|word| match word {
            "x1" => Some(1u8),
            "x2" => Some(2),
            "x4" => Some(4),
            _ => None,
        })?;
        let shape = instruction.suffixes().find(|word| word.starts_with('m'))?;
        // Sixteen rows of bytes are two matrices.
        let matrices = match shape {
            "m8n8" | "m16n8" | "m8n16" => number,
            "m16n16" => 2 * number,
            _ => return None,
        };
        if !instruction.has("trans") && shape == "m16n16" {
            return None;
        }
        let (address, registers) = if store {
            (first, second)
        } else {
            (second, first)
        };
        let registers = Self::flat(std::slice::from_ref(registers));
        if registers.len() != usize::from(matrices) {
            return None;
        }
        let row = Type::Vector(Arc::new(Type::UINT), 4);
        let pointer = self.pointer(address, &row, AddressSpace::Shared)?;
        let function = self.named(instruction, Function::Rows { store, matrices });
        let mut arguments = vec![pointer];
        if store {
            for register in &registers {
                arguments.push(self.read(register));
            }
            let call = self.call(function, arguments, Type::Void);
            self.done.push(call);
            return Some(());
        }
        self.write_all(&registers, function, arguments);
        Some(())
    }

    fn copy(&mut self, instruction: &Instruction<'t>) -> Option<()> {
        if instruction.has("bulk") {
            return self.bulk(instruction);
        }
        if !instruction.has("async") {
            return None;
        }
        let waits = ["commit_group", "wait_group", "wait_all", "mbarrier"];
        if waits.iter().any(|word| instruction.has(word)) {
            self.ignored(instruction, Effect::Unknown);
            return Some(());
        }
        let [to, from, size, rest @ ..] = instruction.but_policy() else {
            return None;
        };
        let size = self.read(size);
        let bytes = constant(&size).filter(|bytes| matches!(bytes, 4 | 8 | 16))?;
        if instruction.has("cg") && bytes != 16 {
            return None;
        }
        let piece = match bytes {
            4 => Type::UINT,
            bytes => Type::Vector(Arc::new(Type::UINT), (bytes / 4) as u8),
        };
        let to = self.pointer(to, &piece, AddressSpace::Shared)?;
        let from = self.pointer(from, &piece, AddressSpace::Global)?;
        let site = self.site;
        let copied = Expr {
            kind: ExprKind::Assign(None, Box::new(deref(to, site)), Box::new(deref(from, site))),
            ty: piece,
            site,
        };
        let mut arguments = vec![copied];
        // Where fewer bytes are read than written the rest are zeros.
        if let Some(read) = rest.first() {
            let is_predicate = self.register_type(read, &Type::UINT) == Type::BOOL;
            let read = self.read(read);
            // A predicate says that the source is ignored.
            let read = if is_predicate {
                Expr {
                    ty: Type::BOOL,
                    kind: ExprKind::Unary(UnaryOp::Not, Box::new(read)),
                    site,
                }
            } else {
                read
            };
            if constant(&read).is_none_or(|read| read == 0) {
                arguments.push(read);
            }
        }
        let function = self.named(instruction, Function::CopyPastRegisters);
        let call = self.call(function, arguments, Type::Void);
        self.done.push(call);
        Some(())
    }

    /// Copies that one thread starts.
    fn bulk(&mut self, instruction: &Instruction<'t>) -> Option<()> {
        if instruction.has("commit_group")
            || instruction.has("wait_group")
            || instruction.has("prefetch")
        {
            self.ignored(instruction, Effect::Unknown);
            return Some(());
        }
        let [to, from, rest @ ..] = instruction.operands.as_slice() else {
            return None;
        };
        // The words in order: where to, where from.
        let mut spaces = instruction.suffixes().filter_map(|word| match word {
            "global" => Some(AddressSpace::Global),
            "shared::cta" | "shared::cluster" => Some(AddressSpace::Shared),
            _ => None,
        });
        let (target, origin) = (spaces.next()?, spaces.next()?);
        let mut arguments = vec![
            self.pointer(to, &Type::BYTE, target)?,
            self.pointer(from, &Type::BYTE, origin)?,
        ];
        let multicast = instruction.has("multicast::cluster");
        let function = if instruction.has("tensor") {
            // In other modes the numbers are no corners of boxes.
            let tiled = instruction
                .suffixes()
                .all(|word| !word.starts_with("im2col") && !word.ends_with('4'));
            for operand in [to, from] {
                if let (true, Operand::Memory { coordinates, .. }) = (tiled, operand) {
                    arguments.extend(
                        Self::flat(coordinates)
                            .into_iter()
                            .map(|one| self.read(one)),
                    );
                }
            }
            Function::BulkBox { multicast }
        } else {
            arguments.push(self.read(rest.first()?));
            Function::Bulk { multicast }
        };
        if multicast {
            let blocks = instruction.but_policy().last()?;
            arguments.push(self.read(blocks));
        }
        let function = self.named(instruction, function);
        let call = self.call(function, arguments, Type::Void);
        self.done.push(call);
        Some(())
    }
}
