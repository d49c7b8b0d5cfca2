//! Instructions on integers that addresses are made of: computed as the operators of the source are.

use warplens_ir::functions;
use warplens_ir::{BinaryOp, Expr, ExprKind, Function, Site, Storage, Type, UnaryOp};

use super::super::constants::constant;
use super::super::construct::{known_call, operation};
use super::text::{Instruction, Operand};
use super::{Assembly, type_of};

impl<'t> Assembly<'_, '_, 't> {
    /// What an instruction on integers gives; `None` where it is not one of these.
    pub(super) fn integers(&mut self, instruction: &Instruction<'t>) -> Option<()> {
        let operands = instruction.operands.as_slice();
        let base = instruction.base();
        if base == "setp" {
            return self.comparison(instruction);
        }
        if base == "elect" {
            return self.elected(instruction);
        }
        let (target, sources) = operands.split_first()?;
        let own = instruction.suffixes().rev().find_map(type_of)?;
        if matches!(base, "mov" | "cvta" | "cvt") && sources.len() == 1 {
            return self.moved_value(instruction, target, &sources[0]);
        }
        if base == "selp" {
            let [yes, no, condition] = sources else {
                return None;
            };
            let (yes, no, condition) = (self.read(yes), self.read(no), self.read(condition));
            let ty = if own.is_int() { own } else { yes.ty.clone() };
            let value = Expr {
                kind: ExprKind::Select(
                    Box::new(condition),
                    Box::new(self.cast(yes, &ty)),
                    Box::new(self.cast(no, &ty)),
                ),
                ty,
                site: self.site,
            };
            self.write(target, value);
            return Some(());
        }
        if !matches!(own, Type::Int { .. }) {
            return None;
        }
        let wide = instruction.has("wide");
        let own = match own {
            Type::Int { bits: 32, signed } if wide => Type::Int { bits: 64, signed },
            own => own,
        };
        let values: Vec<Expr> = sources.iter().map(|source| self.read(source)).collect();
        if base == "mapa" && values.len() == 2 {
            let value = self.call(Function::Mapped, values, own);
            self.write(target, value);
            return Some(());
        }
        let value = self.arithmetic(base, instruction, &own, values)?;
        self.write(target, value);
        Some(())
    }

    fn arithmetic(
        &mut self,
        base: &str,
        instruction: &Instruction<'t>,
        own: &Type,
        mut values: Vec<Expr>,
    ) -> Option<Expr> {
        let site = self.site;
        let count = values.len();
        let high = instruction.has("hi");
        let op = match (base, count) {
            ("add", 2) => BinaryOp::Add,
            ("sub", 2) => BinaryOp::Sub,
            ("mul", 2) if !high => BinaryOp::Mul,
            ("mad", 3) if !high => {
                let addend = values.pop()?;
                let product = self.arithmetic("mul", instruction, own, values)?;
                let addend = self.cast(addend, own);
                return Some(operation(BinaryOp::Add, product, addend, site));
            }
            ("div", 2) => BinaryOp::Div,
            ("rem", 2) => BinaryOp::Rem,
            ("and", 2) => BinaryOp::And,
            ("or", 2) => BinaryOp::Or,
            ("xor", 2) => BinaryOp::Xor,
            ("shl", 2) => BinaryOp::Shl,
            ("shr", 2) => BinaryOp::Shr,
            ("not" | "neg", 1) => {
                let op = if base == "not" {
                    UnaryOp::BitNot
                } else {
                    UnaryOp::Neg
                };
                let value = self.cast(values.pop()?, own);
                return Some(Expr {
                    kind: ExprKind::Unary(op, Box::new(value)),
                    ty: own.clone(),
                    site,
                });
            }
            ("min" | "max", 2) => {
                let function = if base == "min" {
                    Function::Min
                } else {
                    Function::Max
                };
                let values = values.into_iter().map(|value| self.cast(value, own));
                let values = values.collect();
                return Some(self.call(function, values, own.clone()));
            }
            ("popc" | "clz" | "brev", 1) => {
                let name = match (base, own.size()) {
                    ("popc", 4) => "__popc",
                    ("popc", 8) => "__popcll",
                    ("clz", 4) => "__clz",
                    ("clz", 8) => "__clzll",
                    ("brev", 4) => "__brev",
                    _ => return None,
                };
                let function = functions::known(name, false)?;
                return Some(known_call(function, name, values, site));
            }
            // Of each factor the lower 24 bits.
            ("mul24" | "mad24", 2 | 3) if !high => {
                let addend = (count == 3).then(|| values.pop()).flatten();
                let low = |assembly: &mut Self, value: Expr| {
                    let value = assembly.cast(value, own);
                    let by = assembly.number(8);
                    let up = operation(BinaryOp::Shl, value, by.clone(), site);
                    operation(BinaryOp::Shr, up, by, site)
                };
                let right = low(self, values.pop()?);
                let left = low(self, values.pop()?);
                let product = operation(BinaryOp::Mul, left, right, site);
                return Some(match addend {
                    Some(addend) => operation(BinaryOp::Add, product, self.cast(addend, own), site),
                    None => product,
                });
            }
            ("lop3", 4) => {
                let table = constant(&values.pop()?)?;
                let values = values.into_iter().map(|value| self.cast(value, own));
                return logic(u8::try_from(table).ok()?, &values.collect::<Vec<_>>(), site);
            }
            ("bfi", 4) => {
                let (length, from) = (constant(&values.pop()?)?, constant(&values.pop()?)?);
                let (into, value) = (values.pop()?, values.pop()?);
                let mask = field(own, from, length)?;
                let (into, value) = (self.cast(into, own), self.cast(value, own));
                let others = self.cast(self.number(!(mask << from)), own);
                let kept = operation(BinaryOp::And, into, others, site);
                let mask = self.cast(self.number(mask), own);
                let value = operation(BinaryOp::And, value, mask, site);
                let value = operation(BinaryOp::Shl, value, self.number(from), site);
                return Some(operation(BinaryOp::Or, kept, value, site));
            }
            ("bfe", 3) if matches!(own, Type::Int { signed: true, .. }) => {
                // To the upper end, and back with the sign.
                let (length, from) = (constant(&values.pop()?)?, constant(&values.pop()?)?);
                field(own, from, length)?;
                let bits = 8 * own.size() as i64;
                let unsigned = Type::Int {
                    bits: bits as u8,
                    signed: false,
                };
                let value = self.cast(values.pop()?, &unsigned);
                let up = self.number(bits - from - length);
                let value = operation(BinaryOp::Shl, value, up, site);
                let value = self.cast(value, own);
                let down = self.number(bits - length);
                return Some(operation(BinaryOp::Shr, value, down, site));
            }
            ("bfe", 3) => {
                // (a >> from) & ((1 << length) - 1), of numbers without sign.
                let (length, from) = (values.pop()?, values.pop()?);
                let value = self.cast(values.pop()?, own);
                let length = constant(&length)?;
                let mask = (1i64.checked_shl(length as u32)?).wrapping_sub(1);
                let moved = operation(BinaryOp::Shr, value, from, site);
                let mask = self.cast(self.number(mask), own);
                return Some(operation(BinaryOp::And, moved, mask, site));
            }
            _ => return None,
        };
        let (right, left) = (values.pop()?, values.pop()?);
        let left = self.cast(left, own);
        let right = match op {
            BinaryOp::Shl | BinaryOp::Shr => right,
            _ => self.cast(right, own),
        };
        Some(operation(op, left, right, site))
    }

    /// `mov`, `cvta`, `cvt` between integers.
    fn moved_value(
        &mut self,
        instruction: &Instruction<'t>,
        target: &Operand<'t>,
        source: &Operand<'t>,
    ) -> Option<()> {
        if let (Operand::Vector(parts), Some(whole)) =
            (target, instruction.suffixes().rev().find_map(type_of))
            && !matches!(source, Operand::Vector(_))
            && whole.is_int()
        {
            return self.taken_apart(parts, source, &whole);
        }
        if let (Operand::Vector(parts), Some(whole)) =
            (source, instruction.suffixes().rev().find_map(type_of))
            && !matches!(target, Operand::Vector(_))
            && whole.is_int()
        {
            return self.put_together(target, parts, &whole);
        }
        if matches!(target, Operand::Vector(_)) || matches!(source, Operand::Vector(_)) {
            // Halves of a register.
            let sources = Self::flat(std::slice::from_ref(source));
            let sources = sources.into_iter().map(|one| self.read(one)).collect();
            let targets = Self::flat(std::slice::from_ref(target));
            let name = instruction.mnemonic.into();
            let function = Function::Math(warplens_ir::MathClass::Int(0), name);
            self.write_all(&targets, function, sources);
            return Some(());
        }
        let types: Vec<Type> = instruction.suffixes().filter_map(type_of).collect();
        if !types.iter().all(|ty| matches!(ty, Type::Int { .. })) {
            if instruction.base() == "mov" {
                let value = self.read(source);
                self.write(target, value);
                return Some(());
            }
            return None;
        }
        let value = self.read(source);
        let ty = types.first()?;
        let value = match value.ty {
            Type::Int { .. } | Type::Pointer(..) | Type::Array(..) => self.cast(value, ty),
            _ => value,
        };
        self.write(target, value);
        Some(())
    }

    /// `mov.b64 {low, high}, x`.
    fn taken_apart(
        &mut self,
        parts: &[Operand<'t>],
        source: &Operand<'t>,
        whole: &Type,
    ) -> Option<()> {
        let site = self.site;
        let part = part_of(whole, parts.len())?;
        let value = self.read(source);
        let value = self.cast(value, whole);
        // A part may be written over the source.
        let kept = self
            .lowering
            .fresh("whole", whole.clone(), Storage::Local, site);
        let kept = self.lowering.var(kept, site);
        let assigned = self.lowering.assigned(kept.clone(), value, site);
        self.done.push(assigned);
        for (number, target) in parts.iter().enumerate() {
            let by = self.number(8 * (number as u64 * part.size()) as i64);
            let moved = operation(BinaryOp::Shr, kept.clone(), by, site);
            let moved = self.cast(moved, &part);
            self.write(target, moved);
        }
        Some(())
    }

    /// `mov.b64 x, {low, high}`.
    fn put_together(
        &mut self,
        target: &Operand<'t>,
        parts: &[Operand<'t>],
        whole: &Type,
    ) -> Option<()> {
        let site = self.site;
        let part = part_of(whole, parts.len())?;
        let mut sum = None;
        for (number, source) in parts.iter().enumerate() {
            let value = self.read(source);
            let value = self.cast(value, &part);
            let value = self.cast(value, whole);
            sum = Some(match sum {
                None => value,
                Some(lower) => {
                    let by = self.number(8 * (number as u64 * part.size()) as i64);
                    let moved = operation(BinaryOp::Shl, value, by, site);
                    operation(BinaryOp::Or, lower, moved, site)
                }
            });
        }
        self.write(target, sum?);
        Some(())
    }

    fn comparison(&mut self, instruction: &Instruction<'t>) -> Option<()> {
        let target = instruction.operands.first()?;
        let site = self.site;
        let value = self.comparison_of(instruction)?;
        if let Operand::Pair(_, second) = target {
            let inverse = Expr {
                kind: ExprKind::Unary(UnaryOp::Not, Box::new(value.clone())),
                ty: Type::INT,
                site,
            };
            self.predicate(second, inverse);
        }
        self.predicate(target, value);
        Some(())
    }

    /// What a predicate says that an instruction has just written, as what is compared.
    pub(super) fn compared(
        &mut self,
        instruction: &Instruction<'t>,
        register: &Operand<'t>,
    ) -> Option<Expr> {
        let writes = instruction.base() == "setp" && instruction.operands.first() == Some(register);
        writes.then(|| self.comparison_of(instruction))?
    }

    fn comparison_of(&mut self, instruction: &Instruction<'t>) -> Option<Expr> {
        let [_, left, right, rest @ ..] = instruction.operands.as_slice() else {
            return None;
        };
        let own = instruction.suffixes().rev().find_map(type_of)?;
        let op = instruction.suffixes().find_map(|word| {
            Some(match word {
                "eq" | "equ" => BinaryOp::Eq,
                "ne" | "neu" => BinaryOp::Ne,
                "lt" | "lo" | "ltu" => BinaryOp::Lt,
                "le" | "ls" | "leu" => BinaryOp::Le,
                "gt" | "hi" | "gtu" => BinaryOp::Gt,
                "ge" | "hs" | "geu" => BinaryOp::Ge,
                _ => return None,
            })
        })?;
        let (left, right) = (self.read(left), self.read(right));
        let (left, right) = if own.is_int() {
            (self.cast(left, &own), self.cast(right, &own))
        } else {
            (self.same_bits(left, &own), self.same_bits(right, &own))
        };
        let site = self.site;
        let mut value = operation(op, left, right, site);
        if let [other] = rest {
            let op = if instruction.has("or") {
                BinaryOp::Or
            } else if instruction.has("xor") {
                BinaryOp::Xor
            } else {
                BinaryOp::And
            };
            let other = self.read(other);
            value = operation(op, value, other, site);
        }
        Some(value)
    }

    /// `elect.sync`: the first lane.
    fn elected(&mut self, instruction: &Instruction<'t>) -> Option<()> {
        let [Operand::Pair(lane, chosen), _] = instruction.operands.as_slice() else {
            return None;
        };
        let site = self.site;
        let own = self.lowering.lane(site);
        let zero = self.number(0);
        let is_first = operation(BinaryOp::Eq, own, zero.clone(), site);
        self.predicate(chosen, is_first);
        if !matches!(**lane, Operand::Blank) {
            self.write(lane, zero);
        }
        Some(())
    }

    fn predicate(&mut self, operand: &Operand<'t>, value: Expr) {
        let name = match operand {
            Operand::Name(name) | Operand::Special(name) => name,
            Operand::Pair(first, _) => return self.predicate(first, value),
            _ => return,
        };
        self.register(name, Type::BOOL);
        self.write(operand, value);
    }
}

/// The mask of a field of a register, where it lies in it as a whole.
fn field(register: &Type, from: i64, length: i64) -> Option<i64> {
    let bits = 8 * register.size() as i64;
    let within = from >= 0 && (1..bits).contains(&length) && from + length <= bits;
    within.then(|| (1 << length) - 1)
}

/// The type of the parts of a register with that number of parts.
fn part_of(whole: &Type, parts: usize) -> Option<Type> {
    let bits = 8 * whole.size() / parts.max(1) as u64;
    let bits = u8::try_from(bits).ok().filter(|bits| *bits >= 8)?;
    Some(Type::Int {
        bits,
        signed: false,
    })
}

/// `lop3` (PTX ISA, "Logic and Shift Instructions"): operands by a table of truth, where one operator or two say it.
fn logic(table: u8, values: &[Expr], site: Site) -> Option<Expr> {
    // What the table is of each operand alone.
    const ALONE: [u8; 3] = [0xf0, 0xcc, 0xaa];
    const OPERATORS: [BinaryOp; 3] = [BinaryOp::And, BinaryOp::Or, BinaryOp::Xor];
    let of = |op: BinaryOp, a: u8, b: u8| match op {
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
        _ => a ^ b,
    };
    // Of two of them, whatever the third.
    for (first, second) in [(0, 1), (0, 2), (1, 2)] {
        for operator in OPERATORS {
            if of(operator, ALONE[first], ALONE[second]) == table {
                let value = |at: usize| values.get(at).cloned();
                return Some(operation(operator, value(first)?, value(second)?, site));
            }
        }
    }
    for (first, own) in ALONE.into_iter().enumerate() {
        let others = [(first + 1) % 3, (first + 2) % 3];
        for outer in OPERATORS {
            for inner in OPERATORS {
                let [a, b] = others;
                if of(outer, own, of(inner, ALONE[a], ALONE[b])) == table {
                    let value = |at: usize| values.get(at).cloned();
                    let inner = operation(inner, value(a)?, value(b)?, site);
                    return Some(operation(outer, value(first)?, inner, site));
                }
            }
        }
    }
    None
}
