//! Inline PTX: its instructions in the IR of the code around them.
//!
//! In go the template's text (`text`) and the operands, which are expressions of the source; out comes one expression, the
//! instructions in their order. Jumps are branches (`jumps`), memory that instructions access is accessed in the IR
//! (`memory`), integers are computed as those of the source are (`integers`), and what leaves registers in other registers
//! alone is an operation with its mnemonic (`others`). Registers that the assembly declares and names are variables
//! (`registers`).

mod integers;
mod jumps;
mod memory;
mod others;
mod registers;
mod shapes;
mod text;

use warplens_ir::{
    AddressSpace, BinaryOp, Builtin, Expr, ExprKind, Function, LoopKind, Opaque, Reason, Site,
    Stmt, StmtKind, Storage, Type, UnaryOp, VarId,
};
use warplens_syntax::{Field, Node};

use super::construct::operation;
use super::shapes::is_place;
use super::{Lowering, Source, beginning, parts, text_of};
use jumps::Step;
use registers::Registers;
use text::{Instruction, Operand, Statement};

/// Instructions of one piece of assembly that are read.
const MOST_INSTRUCTIONS: usize = 512;

/// An operand of the statement.
struct Bound {
    symbol: Option<String>,
    constraint: String,
    value: Option<Expr>,
    output: bool,
    written: bool,
}

/// A piece of assembly while it is read.
struct Assembly<'l, 'k, 't> {
    lowering: &'l mut Lowering<'k>,
    operands: Vec<Bound>,
    registers: Registers<'t>,
    site: Site,
    /// Barriers and branches read so far, and what is done before them.
    statements: Vec<Stmt>,
    /// What the instructions behind these do.
    done: Vec<Expr>,
}

impl Lowering<'_> {
    pub(super) fn inline_assembly(&mut self, node: Node, source: Source, site: Site) -> Expr {
        let code = node
            .field(Field::AssemblyCode)
            .map_or("", |code| text_of(code, source));
        let code = text::without_comments(&text::unquoted(code)).replace("%=", "");
        let mut done = Vec::new();
        let mut operands = Vec::new();
        for (field, output) in [(Field::OutputOperands, true), (Field::InputOperands, false)] {
            let Some(list) = node.field(field) else {
                continue;
            };
            for operand in parts(list) {
                let text = |field| operand.field(field).map(|part| text_of(part, source));
                let symbol = text(Field::Symbol).map(str::to_owned);
                let constraint = text(Field::Constraint).unwrap_or("").replace('"', "");
                let value = operand
                    .field(Field::Value)
                    .map(|value| self.expr(value, source));
                let value = value.map(|value| self.converted_to_number(value));
                operands.push(Bound {
                    symbol,
                    constraint,
                    value,
                    output,
                    written: false,
                });
            }
        }
        self.keep_inputs(&mut operands, &code, &mut done, site);
        let mut assembly = Assembly {
            lowering: self,
            operands,
            registers: Registers::default(),
            site,
            statements: Vec::new(),
            done,
        };
        let statements = text::statements(&code);
        let read = &statements[..statements.len().min(MOST_INSTRUCTIONS)];
        assembly.all(read);
        if statements.len() > read.len() {
            assembly.lose("more assembly than is read".into());
            assembly.distrust();
        }
        assembly.forget_unwritten();
        assembly.finished()
    }

    /// Inputs that cost something to compute are computed before the assembly, once.
    fn keep_inputs(
        &mut self,
        operands: &mut [Bound],
        code: &str,
        done: &mut Vec<Expr>,
        site: Site,
    ) {
        for (number, operand) in operands.iter_mut().enumerate() {
            let Some(value) = &mut operand.value else {
                continue;
            };
            let used = code.matches(&format!("%{number}")).count();
            let simple = matches!(
                value.kind,
                ExprKind::Var(_) | ExprKind::Int(_) | ExprKind::Float(_)
            );
            if operand.output || simple || used == 1 && operand.symbol.is_none() {
                continue;
            }
            if !matches!(
                value.ty,
                Type::Int { .. } | Type::Float { .. } | Type::Pointer(..)
            ) {
                continue;
            }
            let kept = self.fresh("operand", value.ty.clone(), Storage::Local, site);
            let kept = self.var(kept, value.site);
            let value = std::mem::replace(value, kept.clone());
            done.push(self.assigned(kept, value, site));
        }
    }
}

impl<'t> Assembly<'_, '_, 't> {
    fn all(&mut self, statements: &[Statement<'t>]) {
        let lost = match jumps::followed(statements) {
            Ok(steps) => return self.steps(&steps),
            Err(lost) => lost,
        };
        for jump in &lost {
            let text = beginning(jump.instruction.text);
            self.lose(format!("PTX jump not understood: {text}"));
        }
        // Which instructions these jumps skip or repeat is not known of any.
        let mut body = self.block(|assembly| {
            for statement in statements {
                if jumps::jump(statement).is_none() {
                    assembly.statement(statement);
                }
            }
        });
        if lost.iter().any(|jump| !jump.back) {
            let condition = self.nothing(Type::BOOL);
            body = vec![self.stated(StmtKind::If(condition, body, Vec::new()))];
        }
        if lost.iter().any(|jump| jump.back) {
            let condition = self.nothing(Type::BOOL);
            body = vec![self.stated(StmtKind::Loop {
                kind: LoopKind::Do,
                init: Vec::new(),
                condition: Some(condition),
                step: None,
                body,
                unroll: None,
            })];
        }
        self.end_statement();
        self.statements.append(&mut body);
        self.distrust();
    }

    fn steps(&mut self, steps: &[Step<'_, 't>]) {
        for step in steps {
            match step {
                Step::Plain(statement) => self.statement(statement),
                Step::Branch {
                    predicate: (holds, register),
                    taken,
                    passed,
                } => {
                    let condition = self.condition(register, !holds);
                    let passed = self.block(|assembly| assembly.steps(passed));
                    let taken = self.block(|assembly| assembly.steps(taken));
                    self.end_statement();
                    let branch = self.stated(StmtKind::If(condition, passed, taken));
                    self.statements.push(branch);
                }
                Step::Loop { predicate, body } => self.repeat(body, predicate),
            }
        }
    }

    /// A loop that tests behind its body.
    fn repeat(&mut self, body: &[Statement<'t>], predicate: &(bool, Operand<'t>)) {
        let (holds, register) = predicate;
        self.end_statement();
        let mut condition = None;
        let body_statements = self.block(|assembly| {
            for one in body {
                assembly.statement(one);
            }
            // A comparison right in front of the jump is what is tested.
            let compared = match body.last() {
                Some(Statement::Instruction(last)) if last.predicate.is_none() => {
                    assembly.compared(last, register)
                }
                _ => None,
            };
            condition = compared;
        });
        let condition = match condition {
            Some(condition) => self.unless(condition, !holds),
            None => self.condition(register, *holds),
        };
        let repeated = self.stated(StmtKind::Loop {
            kind: LoopKind::Do,
            init: Vec::new(),
            condition: Some(condition),
            step: None,
            body: body_statements,
            unroll: None,
        });
        self.statements.push(repeated);
    }

    /// The statements that something adds.
    fn block(&mut self, add: impl FnOnce(&mut Self)) -> Vec<Stmt> {
        let done = std::mem::take(&mut self.done);
        let before = std::mem::take(&mut self.statements);
        add(self);
        self.end_statement();
        self.done = done;
        std::mem::replace(&mut self.statements, before)
    }

    /// Makes a statement of what is done since the last one.
    fn end_statement(&mut self) {
        if self.done.is_empty() {
            return;
        }
        let all = self.listed();
        let statement = self.stated(StmtKind::Expr(all));
        self.statements.push(statement);
    }

    fn listed(&mut self) -> Expr {
        Expr {
            kind: ExprKind::List(std::mem::take(&mut self.done)),
            ty: Type::Void,
            site: self.site,
        }
    }

    fn stated(&self, kind: StmtKind) -> Stmt {
        Stmt {
            kind,
            site: self.site,
        }
    }

    /// All that is done.
    fn finished(mut self) -> Expr {
        if self.statements.is_empty() {
            return self.listed();
        }
        self.end_statement();
        Expr {
            kind: ExprKind::Inline(self.statements, None),
            ty: Type::Void,
            site: self.site,
        }
    }

    fn statement(&mut self, statement: &Statement<'t>) {
        match statement {
            Statement::Registers(ty, names) => {
                let ty = type_of(ty.trim_start_matches('.')).unwrap_or(Type::UINT);
                for name in names {
                    self.registers.declare(name, ty.clone());
                }
            }
            Statement::Label(_) => {}
            Statement::Opened => self.registers.open(),
            Statement::Closed => self.registers.close(),
            Statement::Instruction(instruction) => self.instruction(instruction),
            Statement::Malformed(text) => {
                let word: String = text.chars().take(40).collect();
                self.lose(format!("PTX not understood: {word}"));
                self.distrust();
            }
        }
    }

    /// The variable that a register is; its type where nothing declares it.
    fn register(&mut self, name: &'t str, otherwise: Type) -> VarId {
        if let Some(variable) = self.registers.variable(name) {
            return variable;
        }
        let ty = self.registers.declared(name).cloned().unwrap_or(otherwise);
        let id = self.lowering.fresh(name, ty, Storage::Local, self.site);
        self.registers.keep(name, id);
        id
    }

    /// True for a register that is declared or was written.
    fn is_register(&self, name: &'t str) -> bool {
        self.registers.declared(name).is_some() || self.registers.variable(name).is_some()
    }

    fn instruction(&mut self, instruction: &Instruction<'t>) {
        let before = self.done.len();
        let misuse = self.misuse(instruction);
        let understood = match misuse {
            Some(_) => None,
            None => self.perform(instruction),
        };
        if understood.is_none() {
            self.done.truncate(before);
            let mnemonic = instruction.mnemonic;
            self.lose(match misuse {
                Some(misuse) => format!("PTX instruction that cannot be: {mnemonic}: {misuse}"),
                None => format!("PTX instruction not understood: {mnemonic}"),
            });
            self.unknown(instruction);
        }
        if let Some((holds, register)) = &instruction.predicate {
            let done = self.done.split_off(before);
            let condition = self.condition(register, *holds);
            self.guard(condition, done);
        }
    }

    /// What an instruction does; `None` where it is not known, or its operands are not those that it takes.
    fn perform(&mut self, instruction: &Instruction<'t>) -> Option<()> {
        match instruction.base() {
            "ld" | "ldu" | "st" | "atom" | "red" | "ldmatrix" | "stmatrix" | "cp" => {
                self.memory(instruction)
            }
            "bar" | "barrier" => {
                self.barrier(instruction);
                Some(())
            }
            "pragma" => Some(()),
            _ => match self.integers(instruction) {
                Some(()) => Some(()),
                None => self.other(instruction),
            },
        }
    }

    /// A barrier of the whole block is a statement, and where it waits for its cluster; others leave memory ordered.
    fn barrier(&mut self, instruction: &Instruction<'t>) {
        let cluster = instruction.has("cluster");
        let whole = instruction.has(if cluster { "wait" } else { "sync" })
            && !instruction.has("warp")
            && instruction.operands.len() <= 1
            && instruction.predicate.is_none();
        let whole = whole
            && instruction.operands.first().is_none_or(|operand| {
                let value = self.read(operand);
                super::constants::constant(&value) == Some(0)
            });
        if whole {
            self.end_statement();
            let barrier = self.stated(StmtKind::Barrier);
            self.statements.push(barrier);
            return;
        }
        self.ignored(instruction, warplens_ir::Effect::Fence);
    }

    /// A predicate, or its inverse where it must not hold.
    fn condition(&mut self, register: &Operand<'t>, holds: bool) -> Expr {
        let condition = self.read(register);
        self.unless(condition, !holds)
    }

    /// The inverse of a condition, where that is asked for.
    fn unless(&self, condition: Expr, inverse: bool) -> Expr {
        if !inverse {
            return condition;
        }
        Expr {
            kind: ExprKind::Unary(UnaryOp::Not, Box::new(condition)),
            ty: Type::INT,
            site: self.site,
        }
    }

    /// Executes under a condition what was read.
    fn guard(&mut self, condition: Expr, done: Vec<Expr>) {
        if done.is_empty() {
            return;
        }
        let site = self.site;
        let mut rest = Vec::new();
        for one in done {
            // A register keeps its value where the predicate does not hold.
            match one.kind {
                ExprKind::Assign(None, target, value) if is_place(&target) => {
                    let ty = target.ty.clone();
                    let value = Expr {
                        kind: ExprKind::Select(
                            Box::new(condition.clone()),
                            value,
                            Box::new((*target).clone()),
                        ),
                        ty: ty.clone(),
                        site,
                    };
                    self.done.push(Expr {
                        kind: ExprKind::Assign(None, target, Box::new(value)),
                        ty,
                        site,
                    });
                }
                _ => rest.push(one),
            }
        }
        if rest.is_empty() {
            return;
        }
        rest.push(self.number(1));
        let list = Expr {
            kind: ExprKind::List(rest),
            ty: Type::INT,
            site,
        };
        self.done.push(Expr {
            kind: ExprKind::Binary(BinaryOp::LogicalAnd, Box::new(condition), Box::new(list)),
            ty: Type::INT,
            site,
        });
    }

    /// An instruction of which nothing is known: its outputs are not either.
    fn unknown(&mut self, instruction: &Instruction<'t>) {
        let mnemonic = instruction.mnemonic;
        // Whatever it does, its inputs are read.
        let inputs: Vec<Expr> = Self::flat(&instruction.operands)
            .into_iter()
            .filter_map(|operand| {
                let bound = self.operands.get(self.index(operand)?)?;
                bound.value.clone().filter(|_| !bound.output)
            })
            .collect();
        let call = self.call(
            Function::Math(warplens_ir::MathClass::Int(1), mnemonic.into()),
            inputs,
            Type::UINT,
        );
        self.done.push(call);
        for target in Self::flat(instruction.operands.get(..1).unwrap_or_default()) {
            self.forget(target);
        }
    }

    /// What a register or an output holds from here on is not known.
    fn forget(&mut self, operand: &Operand<'t>) {
        if let Operand::Pair(value, predicate) = operand {
            self.forget(value);
            self.forget(predicate);
            return;
        }
        let is_written = match (self.index(operand), operand) {
            (Some(number), _) => self.operands.get(number).is_some_and(|bound| bound.output),
            (None, Operand::Name(name) | Operand::Special(name)) => self.is_register(name),
            _ => false,
        };
        if is_written && let Some(place) = self.place(operand) {
            let unknown = self.nothing(place.ty);
            self.write(operand, unknown);
        }
    }

    /// What the outputs hold so far may not be what they hold in the end.
    fn distrust(&mut self) {
        for operand in &mut self.operands {
            operand.written = false;
        }
    }

    /// Outputs that no instruction wrote are not known.
    fn forget_unwritten(&mut self) {
        let site = self.site;
        for operand in &mut self.operands {
            let Some(place) = &operand.value else {
                continue;
            };
            if !operand.output || operand.written || !is_place(place) {
                continue;
            }
            let unknown = Expr {
                kind: ExprKind::Opaque(Opaque::Unknown, Vec::new()),
                ty: place.ty.clone(),
                site,
            };
            let place = place.clone();
            self.done.push(self.lowering.assigned(place, unknown, site));
        }
    }

    fn lose(&mut self, message: String) {
        let site = self.site;
        self.lowering.lost(site, Reason::Assembly(message.into()));
    }

    // ---- operands ------------------------------------------------------------------------------

    fn index(&self, operand: &Operand) -> Option<usize> {
        match operand {
            Operand::Placeholder(number) => Some(*number),
            Operand::Symbol(name) => self
                .operands
                .iter()
                .position(|operand| operand.symbol.as_deref() == Some(*name)),
            _ => None,
        }
    }

    /// The value of an operand.
    fn read(&mut self, operand: &Operand<'t>) -> Expr {
        let site = self.site;
        if let Some(number) = self.index(operand) {
            let value = self
                .operands
                .get(number)
                .and_then(|bound| bound.value.clone());
            return value.unwrap_or_else(|| self.nothing(Type::UINT));
        }
        match operand {
            Operand::Number(value) => self.number(*value),
            Operand::Name(name) | Operand::Special(name) if self.is_register(name) => {
                let id = self.register(name, Type::UINT);
                self.lowering.var(id, site)
            }
            Operand::Name(name) | Operand::Special(name) => self.special(name),
            Operand::Pair(value, _) => self.read(value),
            Operand::Not(inner) => {
                let inner = self.read(inner);
                Expr {
                    kind: ExprKind::Unary(UnaryOp::Not, Box::new(inner)),
                    ty: Type::INT,
                    site,
                }
            }
            _ => self.nothing(Type::UINT),
        }
    }

    /// Operands one by one, those of vectors too.
    fn flat<'o>(operands: &'o [Operand<'t>]) -> Vec<&'o Operand<'t>> {
        let mut found = Vec::new();
        for operand in operands {
            match operand {
                Operand::Vector(inner) => found.extend(Self::flat(inner)),
                operand => found.push(operand),
            }
        }
        found
    }

    /// A register of the launch: `%laneid`, `%tid.x`.
    fn special(&mut self, name: &str) -> Expr {
        let site = self.site;
        let (base, axis) = name.split_once('.').unwrap_or((name, "x"));
        let axis = match axis {
            "x" => 0u8,
            "y" => 1,
            "z" => 2,
            _ => return self.nothing(Type::UINT),
        };
        let kind = match base {
            "tid" => self.lowering.thread(axis),
            "ctaid" => ExprKind::Builtin(Builtin::BlockIdx(axis)),
            "ntid" => ExprKind::Builtin(Builtin::BlockDim(axis)),
            "nctaid" => ExprKind::Builtin(Builtin::GridDim(axis)),
            "laneid" => return self.lowering.lane(site),
            "warpid" => {
                let rank = self.lowering.thread_rank(site);
                let size = Expr {
                    kind: ExprKind::Builtin(Builtin::WarpSize),
                    ty: Type::UINT,
                    site,
                };
                return operation(BinaryOp::Div, rank, size, site);
            }
            "cluster_ctarank" => return self.lowering.cluster_rank(site),
            "cluster_nctarank" => return self.lowering.cluster_size(site),
            "cluster_ctaid" => return self.lowering.of_cluster(BinaryOp::Rem, axis, site),
            "clusterid" => return self.lowering.of_cluster(BinaryOp::Div, axis, site),
            "cluster_nctaid" => ExprKind::Builtin(Builtin::ClusterDim(axis)),
            // One of the block.
            "smid" | "nsmid" | "nwarpid" | "nclusterid" | "gridid" | "dynamic_smem_size"
            | "total_smem_size" => {
                return Expr {
                    kind: ExprKind::Opaque(Opaque::Build, Vec::new()),
                    ty: Type::UINT,
                    site,
                };
            }
            _ => return self.nothing(Type::UINT),
        };
        Expr {
            kind,
            ty: Type::UINT,
            site,
        }
    }

    /// The place that an operand names; nothing where a result goes nowhere.
    fn place(&mut self, operand: &Operand<'t>) -> Option<Expr> {
        let site = self.site;
        if let Some(number) = self.index(operand) {
            let bound = self.operands.get_mut(number)?;
            bound.written = true;
            return bound.value.clone().filter(is_place);
        }
        match operand {
            Operand::Name(name) | Operand::Special(name) => {
                let id = self.register(name, Type::UINT);
                Some(self.lowering.var(id, site))
            }
            Operand::Pair(value, _) => self.place(value),
            _ => None,
        }
    }

    /// The type in which a register holds a result: the place's own where that is a number.
    fn register_type(&mut self, operand: &Operand<'t>, otherwise: &Type) -> Type {
        let own = match self.place(operand) {
            Some(place) => place.ty,
            None => return otherwise.clone(),
        };
        let number = self.index(operand);
        let bound = number.and_then(|number| self.operands.get(number));
        let constraint = bound.map_or("", |bound| bound.constraint.as_str());
        match own {
            Type::Int { .. } | Type::Float { .. } => own,
            _ if constraint.contains('f') => Type::FLOAT,
            _ if constraint.contains('d') => Type::DOUBLE,
            _ if constraint.contains('l') => Type::SIZE,
            _ => otherwise.clone(),
        }
    }

    /// The value of an operand, in the type that an instruction works in.
    fn read_as(&mut self, operand: &Operand<'t>, ty: &Type) -> Expr {
        let value = self.read(operand);
        self.same_bits(value, ty)
    }

    /// `operand = value`.
    fn write(&mut self, operand: &Operand<'t>, value: Expr) {
        let site = self.site;
        match self.place(operand) {
            Some(place) => {
                let value = self.same_bits(value, &place.ty);
                let assigned = self.lowering.assigned(place, value, site);
                self.done.push(assigned);
            }
            None => self.done.push(value),
        }
    }

    /// The results of one instruction, one for each operand.
    fn write_all(&mut self, targets: &[&Operand<'t>], function: Function, arguments: Vec<Expr>) {
        let site = self.site;
        let Some(first) = targets.first() else {
            let call = self.call(function, arguments, Type::Void);
            self.done.push(call);
            return;
        };
        let ty = self.register_type(first, &Type::UINT);
        if targets.len() == 1 {
            let value = self.call(function, arguments, ty);
            self.write(first, value);
            return;
        }
        let whole = Type::Vector(
            std::sync::Arc::new(ty.clone()),
            targets.len().min(255) as u8,
        );
        let kept = self
            .lowering
            .fresh("result", whole.clone(), Storage::Local, site);
        let kept = self.lowering.var(kept, site);
        let value = self.call(function, arguments, whole);
        self.done.push(Expr {
            ty: kept.ty.clone(),
            kind: ExprKind::Assign(None, Box::new(kept.clone()), Box::new(value)),
            site,
        });
        for (number, target) in targets.iter().enumerate() {
            let part = Expr {
                kind: ExprKind::Field(Box::new(kept.clone()), number as u64 * ty.size()),
                ty: ty.clone(),
                site,
            };
            self.write(target, part);
        }
    }

    // ---- expressions ---------------------------------------------------------------------------

    fn number(&self, value: i64) -> Expr {
        Expr {
            kind: ExprKind::Int(value),
            ty: if i32::try_from(value).is_ok() {
                Type::INT
            } else {
                Type::LONG
            },
            site: self.site,
        }
    }

    fn nothing(&self, ty: Type) -> Expr {
        Expr {
            kind: ExprKind::Opaque(Opaque::Unknown, Vec::new()),
            ty,
            site: self.site,
        }
    }

    fn call(&self, function: Function, arguments: Vec<Expr>, ty: Type) -> Expr {
        Expr {
            kind: ExprKind::Call(function, arguments),
            ty,
            site: self.site,
        }
    }

    /// A call of a function that this instruction is.
    fn named(&self, instruction: &Instruction, function: Function) -> Function {
        Function::Instruction(instruction.mnemonic.into(), Box::new(function))
    }

    /// What a register holds, as that type: nothing is converted but by an instruction that says so.
    fn same_bits(&self, value: Expr, ty: &Type) -> Expr {
        let are_numbers = is_number(&value.ty) && is_number(ty);
        let both_integers = value.ty.is_int() && ty.is_int();
        let bytes = value.ty.size();
        if value.ty == *ty || !are_numbers || both_integers || bytes != ty.size() {
            return value;
        }
        self.call(Function::SameBits, vec![value], ty.clone())
    }

    fn cast(&self, value: Expr, ty: &Type) -> Expr {
        let value = self.same_bits(value, ty);
        if value.ty == *ty {
            return value;
        }
        Expr {
            site: value.site,
            ty: ty.clone(),
            kind: ExprKind::Cast(false, Box::new(value)),
        }
    }

    fn ignored(&mut self, instruction: &Instruction<'t>, effect: warplens_ir::Effect) {
        let operands = Self::flat(&instruction.operands);
        let numbers = operands.into_iter().filter_map(|operand| {
            let value = self.read(operand);
            super::constants::constant(&value).map(|value| self.number(value))
        });
        let numbers = numbers.collect();
        let call = self.call(
            Function::Ignored(effect, instruction.mnemonic.into()),
            numbers,
            Type::Void,
        );
        self.done.push(call);
    }
}

/// True for what a register holds as itself: an integer, a number of floating point, several of them side by side.
fn is_number(ty: &Type) -> bool {
    match ty {
        Type::Int { bits, .. } => *bits > 1,
        Type::Float { .. } => true,
        Type::Vector(element, _) => is_number(element),
        _ => false,
    }
}

/// The type that a suffix names.
fn type_of(suffix: &str) -> Option<Type> {
    Some(match suffix {
        "pred" => Type::BOOL,
        "f64" => Type::DOUBLE,
        "f32" | "tf32" => Type::FLOAT,
        "f16" => Type::HALF,
        "bf16" => Type::BFLOAT,
        "f16x2" => Type::Vector(std::sync::Arc::new(Type::HALF), 2),
        "bf16x2" => Type::Vector(std::sync::Arc::new(Type::BFLOAT), 2),
        "f32x2" => Type::Vector(std::sync::Arc::new(Type::FLOAT), 2),
        "u64" | "b64" => Type::SIZE,
        "s64" => Type::LONG,
        "u32" | "b32" => Type::UINT,
        "s32" => Type::INT,
        "u16" | "b16" => Type::Int {
            bits: 16,
            signed: false,
        },
        "s16" => Type::Int {
            bits: 16,
            signed: true,
        },
        "u8" | "b8" => Type::BYTE,
        "s8" => Type::Int {
            bits: 8,
            signed: true,
        },
        "b128" => Type::Vector(std::sync::Arc::new(Type::SIZE), 2),
        _ => return None,
    })
}

/// The memory that suffixes name; without one the address says it.
fn space_of(instruction: &Instruction) -> AddressSpace {
    let named = |start: &str| instruction.suffixes().any(|word| word.starts_with(start));
    if named("shared") {
        AddressSpace::Shared
    } else if instruction.has("const") || named("param") {
        AddressSpace::Constant
    } else if instruction.has("local") {
        AddressSpace::Private
    } else {
        AddressSpace::Global
    }
}
