//! A loop is compiled: its statements and the names in it.

use warplens_syntax::{BinaryOperator, Field, Kind, Node};

use super::bound::{Compiled, Kept, Operand, Outers, What};
use super::code::{Cell, Code, Loop, Memory, Register, Step, pointer};
use crate::index::declared_name;
use crate::kinds::Number;
use crate::nodes::{parts, text};
use crate::regions::makes_team;
use crate::state::Host;
use crate::value::{Place, Value};
use warplens_hir::{Source, following, is_cut_off, lacks_body};
use warplens_ir::Type;

/// Steps of one loop, before it is executed.
const MOST_CODE: usize = 20_000;
/// Statements and expressions nest this deep at most, through the functions that are called.
const DEEPEST: u32 = 150;

/// A loop being compiled.
pub(super) struct Compiler<'h, 'p> {
    pub(super) host: &'h mut Host<'p>,
    pub(super) source: Source<'h>,
    pub(super) code: Code,
    pub(super) outers: Outers,
    /// Names of the functions being compiled: each call begins with one that sees none before it.
    scopes: Vec<Vec<(String, Kept)>>,
    /// Where the names of the function begin that is being compiled; 0: the loop's own.
    pub(super) first_scope: usize,
    loops: Vec<Leaves>,
    pub(super) returns: Vec<Returns>,
    depth: u32,
    /// Registers that the condition of the outermost loop compares: what only these gain needs no computing.
    counter: Option<Register>,
    /// It changes integers that the walk would not know.
    useful: bool,
    /// Pointers to structures whose fields are variables as long as the loop does not move them.
    fixed: Vec<Place>,
}

/// Steps that leave a loop or its iteration, to be told where to.
#[derive(Debug, Default)]
struct Leaves {
    breaks: Vec<usize>,
    continues: Vec<usize>,
}

/// A function that is compiled in place of its call.
#[derive(Debug)]
pub(super) struct Returns {
    pub(super) to: Option<Operand>,
    pub(super) jumps: Vec<usize>,
    pub(super) function: usize,
}

impl<'h, 'p> Compiler<'h, 'p> {
    pub(super) fn new(host: &'h mut Host<'p>, source: Source<'h>) -> Compiler<'h, 'p> {
        let none = Memory {
            data: None,
            written: false,
        };
        Compiler {
            host,
            source,
            code: Code {
                steps: Vec::new(),
                registers: Vec::new(),
                memories: vec![none],
                generators: Vec::new(),
            },
            outers: Outers::default(),
            scopes: vec![Vec::new()],
            first_scope: 0,
            loops: Vec::new(),
            returns: Vec::new(),
            depth: 0,
            counter: None,
            useful: false,
            fixed: Vec::new(),
        }
    }

    /// The whole loop; `None` where it is not one of numbers, or computes nothing that the walk would not know.
    pub(super) fn whole(mut self, turns: Loop) -> Option<Compiled> {
        self.turns(turns, true)?;
        self.compiled()
    }

    /// The same for a loop over elements.
    pub(super) fn whole_range(mut self, node: Node) -> Option<Compiled> {
        self.range(node, true)?;
        self.compiled()
    }

    fn compiled(self) -> Option<Compiled> {
        let mut written = self.outers.variables.iter().filter(|one| one.written);
        if written.any(|one| self.fixed.contains(&one.place)) {
            return None;
        }
        self.useful.then_some(Compiled {
            code: self.code,
            outers: self.outers,
        })
    }

    pub(super) fn emit(&mut self, step: Step) -> Option<()> {
        if self.code.steps.len() >= MOST_CODE || self.host.spent() {
            return None;
        }
        self.code.steps.push(step);
        Some(())
    }

    pub(super) fn register(&mut self) -> Register {
        self.code.registers.push(Cell::UNKNOWN);
        self.code.registers.len() as Register - 1
    }

    pub(super) fn constant(&mut self, bits: i64) -> Register {
        self.code.registers.push(Cell::known(bits));
        self.code.registers.len() as Register - 1
    }

    pub(super) fn here(&self) -> u32 {
        self.code.steps.len() as u32
    }

    /// A jump whose target is said later.
    pub(super) fn jump(&mut self, step: Step) -> Option<usize> {
        self.emit(step)?;
        Some(self.code.steps.len() - 1)
    }

    /// These jumps lead here.
    pub(super) fn lead_here(&mut self, jumps: &[usize]) {
        let here = self.here();
        for &at in jumps {
            match &mut self.code.steps[at] {
                Step::Jump(to) | Step::IfFalse(_, to) | Step::IfTrue(_, to) => *to = here,
                _ => {}
            }
        }
    }

    pub(super) fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.depth > DEEPEST || self.host.spent() {
            return None;
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    // ---- names ---------------------------------------------------------------------------------

    pub(super) fn bind(&mut self, name: &str, kept: Kept) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.push((name.to_owned(), kept));
        }
    }

    pub(super) fn open_scope(&mut self) {
        self.scopes.push(Vec::new());
    }

    pub(super) fn close_scope(&mut self) {
        self.scopes.pop();
    }

    pub(super) fn scope_count(&self) -> usize {
        self.scopes.len()
    }

    /// What a name means.
    pub(super) fn named(&mut self, node: Node) -> Option<Kept> {
        let name = text(node, self.source);
        let own = self.scopes[self.first_scope..].iter().rev();
        let mut own = own.flat_map(|scope| scope.iter().rev());
        if let Some((_, kept)) = own.find(|(of, _)| of == name) {
            return Some(kept.clone());
        }
        let place = if self.first_scope == 0 {
            self.host.place_named(name)
        } else {
            self.host.global_place(name)
        };
        if let Some(place) = place {
            return self.outers.kept(self.host, &mut self.code, &place);
        }
        // A constant of the file, a template argument.
        let value = match self.host.unit_constant(name) {
            Some(value) => value,
            None if self.first_scope == 0 => self.host.eval(node, self.source),
            None => self.host.constant(node, self.source),
        };
        self.kept_value(&value)
    }

    /// A number that is known.
    pub(super) fn kept_value(&mut self, value: &Value) -> Option<Kept> {
        Some(Kept::Register(self.known_value(value)?, None))
    }

    pub(super) fn known_value(&mut self, value: &Value) -> Option<Operand> {
        let number = match value {
            Value::Int(_, bits, signed) => Number::of(&Type::Int {
                bits: *bits,
                signed: *signed,
            })?,
            Value::Float(_, bits) => Number::of(&Type::float(*bits))?,
            _ => return None,
        };
        let bits = super::bound::bits_of(value, number)?;
        Some(Operand {
            register: self.constant(bits),
            what: What::Number(number),
        })
    }

    /// A place of the walk that an expression names: `p.x` of a structure from outside.
    pub(super) fn outer_place(&mut self, node: Node) -> Option<Place> {
        if self.first_scope != 0 {
            return None;
        }
        match node.kind() {
            Kind::Identifier => {
                let name = text(node, self.source);
                let hidden = self.scopes.iter().flatten().any(|(of, _)| of == name);
                if hidden {
                    return None;
                }
                self.host.place_named(name)
            }
            Kind::FieldExpression => {
                let object = node.field(Field::Argument)?;
                let name = text(node.field(Field::Field)?, self.source).to_owned();
                let mut place = if object.kind() == Kind::This {
                    self.host.frames.last()?.this.clone()?
                } else {
                    let object = self.outer_place(object)?;
                    let arrow = node
                        .field(Field::Operator)
                        .is_some_and(|operator| text(operator, self.source) == "->");
                    match (arrow, self.host.read(&object)) {
                        (false, _) => object,
                        (true, Value::Address(to))
                            if matches!(self.host.read(&to), Value::Record(_)) =>
                        {
                            self.fixed.push(object);
                            to
                        }
                        _ => return None,
                    }
                };
                place.path.push(crate::value::Step::Field(name));
                Some(self.host.resolved(place))
            }
            _ => None,
        }
    }

    /// The variable that a pointer from outside of the loop leads to.
    pub(super) fn behind_pointer(&mut self, pointer: Node) -> Option<Place> {
        let pointer = self.outer_place(pointer)?;
        let Value::Address(to) = self.host.read(&pointer) else {
            return None;
        };
        let slot = self.host.slots.get(to.slot)?;
        let variable = Number::of(&slot.ty).is_some() || matches!(slot.ty, Type::Pointer(..));
        if !variable || !to.path.is_empty() {
            return None;
        }
        self.fixed.push(pointer);
        Some(to)
    }

    /// A variable from outside of the loop is written.
    pub(super) fn written(&mut self, outer: usize) {
        let variable = &mut self.outers.variables[outer];
        variable.written = true;
        let integer = matches!(
            variable.operand.what,
            What::Number(Number::Int { .. }) | What::Pointer(_)
        );
        if integer && self.counter != Some(variable.operand.register) {
            self.useful = true;
        }
    }

    /// A number goes to memory.
    pub(super) fn stored(&mut self, kind: Number) {
        self.useful |= !kind.is_float();
    }

    // ---- statements ----------------------------------------------------------------------------

    fn turns(&mut self, turns: Loop, outermost: bool) -> Option<()> {
        self.deeper(|this| {
            this.loops.push(Leaves::default());
            let begin = this.here();
            let mut ends = Vec::new();
            let mut compared = None;
            if let (Some(condition), false) = (turns.condition, turns.body_first) {
                compared = this.compared(condition);
                if outermost {
                    this.counter = compared.map(|[left, _]| left);
                }
                let value = this.condition(condition)?;
                ends.push(this.jump(Step::IfFalse(value, 0))?);
            }
            if outermost {
                this.emit(Step::Iteration(compared))?;
            }
            if let Some(body) = turns.body {
                this.statement(body)?;
            }
            let continues = std::mem::take(&mut this.loops.last_mut()?.continues);
            this.lead_here(&continues);
            if let Some(update) = turns.update {
                this.expression(update)?;
            }
            if let (Some(condition), true) = (turns.condition, turns.body_first) {
                let value = this.condition(condition)?;
                this.emit(Step::IfTrue(value, begin))?;
            } else {
                this.emit(Step::Jump(begin))?;
            }
            ends.extend(this.loops.pop()?.breaks);
            this.lead_here(&ends);
            Some(())
        })
    }

    /// `for (T& each : array)`.
    fn range(&mut self, node: Node, outermost: bool) -> Option<()> {
        let (base, element, length) = match self.kept(node.field(Field::Right)?)? {
            Kept::Container(memory, element) => {
                let length = self.register();
                self.emit(Step::Length(length, memory, element.size() as u32))?;
                let base = self.constant(pointer(memory as usize, 0));
                (base, element, length)
            }
            Kept::Memory(base, Type::Array(element, Some(length))) => {
                let length = self.constant(i64::try_from(length).ok()?);
                (base, (*element).clone(), length)
            }
            _ => return None,
        };
        let (at, zero, one) = (self.register(), self.constant(0), self.constant(1));
        self.emit(Step::Move(at, zero))?;
        self.deeper(|this| {
            this.loops.push(Leaves::default());
            let begin = this.here();
            let more = this.register();
            let (less, add) = (BinaryOperator::Less, BinaryOperator::Add);
            this.emit(Step::Integer(less, 64, true, more, [at, length]))?;
            let end = this.jump(Step::IfFalse(more, 0))?;
            if outermost {
                this.emit(Step::Iteration(Some([at, length])))?;
            }
            this.scoped(|this| {
                let place = this.register();
                let size = u32::try_from(element.size()).ok()?;
                this.emit(Step::Element(place, base, at, size))?;
                this.declare_element(node, Kept::Memory(place, element))?;
                this.statement(node.field(Field::Body)?)
            })?;
            let continues = std::mem::take(&mut this.loops.last_mut()?.continues);
            this.lead_here(&continues);
            this.emit(Step::Integer(add, 64, true, at, [at, one]))?;
            this.emit(Step::Jump(begin))?;
            let breaks = this.loops.pop()?.breaks;
            this.lead_here(&breaks);
            this.lead_here(&[end]);
            Some(())
        })
    }

    /// The variable of such a loop.
    fn declare_element(&mut self, node: Node, element: Kept) -> Option<()> {
        let declarator = node.field(Field::Declarator)?;
        let name = text(declared_name(declarator), self.source).to_owned();
        if declarator.kind() == Kind::ReferenceDeclarator {
            self.bind(&name, element);
            return Some(());
        }
        let value = self.load(&element)?;
        let source = self.source;
        let ty = self
            .host
            .declared_type(node.field(Field::Type), declarator, source);
        let what = match (Number::of(&ty), &ty, &value.what) {
            (Some(number), _, What::Number(_)) => What::Number(number),
            (None, Type::Unknown(name), What::Number(_)) if name == "auto" => value.what.clone(),
            _ => return None,
        };
        let own = Operand {
            register: self.register(),
            what,
        };
        self.assign_register(&own, &value)?;
        self.bind(&name, Kept::Register(own, None));
        Some(())
    }

    /// The registers of the variable and of the bound that a condition compares.
    fn compared(&mut self, condition: Node) -> Option<[Register; 2]> {
        let mut at = condition;
        while matches!(
            at.kind(),
            Kind::ConditionClause | Kind::ParenthesizedExpression
        ) {
            at = parts(at).into_iter().next()?;
        }
        let mut side = |field: Field| {
            let side = at.field(field)?;
            match side.kind() {
                Kind::Identifier => match self.named(side)? {
                    Kept::Register(operand, _) => Some(operand.register),
                    _ => None,
                },
                Kind::NumberLiteral => self.expression(side).map(|operand| operand.register),
                _ => None,
            }
        };
        Some([side(Field::Left)?, side(Field::Right)?])
    }

    pub(super) fn condition(&mut self, node: Node) -> Option<Register> {
        let value = match node.kind() {
            Kind::ConditionClause => {
                if node.field(Field::Initializer).is_some() {
                    return None;
                }
                node.field(Field::Value)?
            }
            _ => node,
        };
        let operand = self.expression(value)?;
        self.truth(&operand)
    }

    /// True where a value is not 0.
    pub(super) fn truth(&mut self, operand: &Operand) -> Option<Register> {
        match &operand.what {
            What::Number(number) if number.is_float() => {
                let to = self.register();
                let truth = Number::Int {
                    bits: 1,
                    signed: false,
                };
                self.emit(Step::Convert(*number, truth, to, operand.register))?;
                Some(to)
            }
            What::Number(_) | What::Pointer(_) => Some(operand.register),
            What::Object(_) => None,
        }
    }

    pub(super) fn statement(&mut self, node: Node) -> Option<()> {
        self.deeper(|this| this.statement_inner(node))
    }

    fn scoped(&mut self, read: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        self.open_scope();
        let done = read(self);
        self.close_scope();
        done
    }

    fn statement_inner(&mut self, node: Node) -> Option<()> {
        let field = |name: Field| node.field(name);
        if node.byte_range().is_empty() && is_cut_off(node) {
            return self.in_order_of(&following(node));
        }
        match node.kind() {
            Kind::CompoundStatement => self.scoped(|this| this.in_order_of(&parts(node))),
            // But for a team of threads, what a pragma asks for changes no number.
            Kind::PreprocCall => (!makes_team(node, self.source)).then_some(()),
            Kind::ExpressionStatement => {
                for part in parts(node) {
                    if !self.is_output(part) {
                        self.expression(part)?;
                    }
                }
                Some(())
            }
            Kind::Declaration => self.declaration(node),
            Kind::IfStatement => self.scoped(|this| {
                let value = this.condition(field(Field::Condition)?)?;
                let otherwise = this.jump(Step::IfFalse(value, 0))?;
                if let Some(then) = field(Field::Consequence) {
                    this.statement(then)?;
                }
                match field(Field::Alternative) {
                    None => this.lead_here(&[otherwise]),
                    Some(alternative) => {
                        let end = this.jump(Step::Jump(0))?;
                        this.lead_here(&[otherwise]);
                        this.statement(alternative)?;
                        this.lead_here(&[end]);
                    }
                }
                Some(())
            }),
            Kind::ElseClause => {
                for part in parts(node) {
                    self.statement(part)?;
                }
                Some(())
            }
            Kind::ForStatement => self.scoped(|this| {
                if let Some(initializer) = field(Field::Initializer) {
                    match initializer.kind() {
                        Kind::Declaration => this.declaration(initializer)?,
                        _ => {
                            this.expression(initializer)?;
                        }
                    }
                }
                let turns = Loop {
                    condition: field(Field::Condition),
                    update: field(Field::Update),
                    body: field(Field::Body),
                    body_first: false,
                };
                this.turns(turns, false)
            }),
            Kind::ForRangeLoop => self.range(node, false),
            Kind::WhileStatement | Kind::DoStatement => {
                let turns = Loop {
                    condition: field(Field::Condition),
                    update: None,
                    body: field(Field::Body),
                    body_first: node.kind() == Kind::DoStatement,
                };
                self.turns(turns, false)
            }
            Kind::BreakStatement => {
                let jump = self.jump(Step::Jump(0))?;
                self.loops.last_mut()?.breaks.push(jump);
                Some(())
            }
            Kind::ContinueStatement => {
                let jump = self.jump(Step::Jump(0))?;
                self.loops.last_mut()?.continues.push(jump);
                Some(())
            }
            Kind::ReturnStatement => {
                let value = match parts(node).into_iter().next() {
                    Some(value) => Some(self.expression(value)?),
                    None => None,
                };
                let to = self.returns.last()?.to.clone();
                if let (Some(value), Some(to)) = (value, to) {
                    self.assign_register(&to, &value)?;
                }
                let jump = self.jump(Step::Jump(0))?;
                self.returns.last_mut()?.jumps.push(jump);
                Some(())
            }
            Kind::Comment | Kind::UsingDeclaration | Kind::StaticAssertDeclaration => Some(()),
            _ => None,
        }
    }

    fn in_order_of(&mut self, all: &[Node]) -> Option<()> {
        let mut rest = all.iter();
        while let Some(part) = rest.next() {
            self.statement(*part)?;
            // What follows was its body.
            let mut last = *part;
            while lacks_body(last) {
                last = *rest.find(|part| part.kind() != Kind::PreprocCall)?;
            }
        }
        Some(())
    }

    /// Loops of a function that is called cannot be left by what it was called from.
    pub(super) fn apart<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let loops = std::mem::take(&mut self.loops);
        let result = read(self);
        self.loops = loops;
        result
    }

    fn declaration(&mut self, node: Node) -> Option<()> {
        if text(node, self.source).starts_with("static ") {
            return None;
        }
        let declarators: Vec<Node> = node.fields(Field::Declarator).collect();
        for declarator in declarators {
            self.declare(node, declarator)?;
        }
        Some(())
    }

    fn declare(&mut self, node: Node, declarator: Node) -> Option<()> {
        let name = text(declared_name(declarator), self.source)
            .trim_start_matches(['&', ' '])
            .to_owned();
        let value = match declarator.kind() {
            Kind::InitDeclarator => Some(declarator.field(Field::Value)?),
            Kind::FunctionDeclarator => return None,
            _ => None,
        };
        let inner = declarator.field(Field::Declarator);
        let reference =
            inner.is_some_and(|inner| inner.kind() == Kind::ReferenceDeclarator) && value.is_some();
        if reference {
            let kept = self.kept(value?)?;
            self.bind(&name, kept);
            return Some(());
        }
        let source = self.source;
        let ty = self
            .host
            .declared_type(node.field(Field::Type), declarator, source);
        let auto = matches!(&ty, Type::Unknown(name) if name == "auto");
        let operand = match value {
            Some(value) if matches!(value.kind(), Kind::ArgumentList | Kind::InitializerList) => {
                let values = parts(value);
                match values.as_slice() {
                    [only] if !matches!(ty, Type::Array(..) | Type::Struct(_)) => {
                        Some(self.expression(*only)?)
                    }
                    _ => return self.declare_list(&name, &ty, &values),
                }
            }
            Some(value) => Some(self.expression(value)?),
            None => None,
        };
        let what = match (&ty, Number::of(&ty)) {
            (_, Some(number)) => What::Number(number),
            (Type::Pointer(element, _), _) => What::Pointer((**element).clone()),
            (Type::Struct(_) | Type::Array(_, Some(_)), _) => {
                let pointer = self.object(&ty)?;
                self.emit(Step::Clear(pointer, ty.size() as u32, false))?;
                if let Some(operand) = operand {
                    let What::Object(of) = &operand.what else {
                        return None;
                    };
                    if of.size() != ty.size() {
                        return None;
                    }
                    self.emit(Step::Copy(pointer, operand.register, ty.size() as u32))?;
                }
                self.bind(&name, Kept::Memory(pointer, ty));
                return Some(());
            }
            _ if auto => operand.as_ref()?.what.clone(),
            _ => return None,
        };
        let kept = Operand {
            register: self.register(),
            what,
        };
        match operand {
            Some(operand) => self.assign_register(&kept, &operand)?,
            None => self.emit(Step::Unknown(kept.register))?,
        }
        self.bind(&name, Kept::Register(kept, None));
        Some(())
    }

    /// `int counts[4] = {0}`, `Box b{1, 2}`.
    fn declare_list(&mut self, name: &str, ty: &Type, values: &[Node]) -> Option<()> {
        let parts_of: Vec<(u64, Type)> = match ty {
            Type::Array(element, Some(length)) if *length <= 4096 => (0..*length)
                .map(|at| (at * element.size(), (**element).clone()))
                .collect(),
            Type::Struct(structure) => structure
                .fields
                .iter()
                .map(|field| (field.offset, field.ty.clone()))
                .collect(),
            _ => return None,
        };
        if values.len() > parts_of.len() {
            return None;
        }
        let pointer = self.object(ty)?;
        self.emit(Step::Clear(pointer, ty.size() as u32, true))?;
        for (value, (offset, ty)) in values.iter().zip(parts_of) {
            let value = self.expression(*value)?;
            let at = self.behind(pointer, offset)?;
            self.assign_memory(at, &ty, &value)?;
        }
        self.bind(name, Kept::Memory(pointer, ty.clone()));
        Some(())
    }

    /// New memory of the loop for a variable of that type; the register with its address.
    fn object(&mut self, ty: &Type) -> Option<Register> {
        let bytes = usize::try_from(ty.size()).ok()?;
        if bytes == 0 || bytes > 1 << 20 {
            return None;
        }
        while self.outers.slots.len() < self.code.memories.len() {
            self.outers.slots.push(None);
        }
        self.code.memories.push(Memory {
            data: Some(std::rc::Rc::new(crate::data::Data::unknown(None, bytes))),
            written: false,
        });
        self.outers.slots.push(None);
        let memory = self.code.memories.len() - 1;
        Some(self.constant(pointer(memory, 0)))
    }

    /// The address of what is that many bytes behind another.
    pub(super) fn behind(&mut self, pointer: Register, bytes: u64) -> Option<Register> {
        if bytes == 0 {
            return Some(pointer);
        }
        let (to, index) = (self.register(), self.constant(bytes as i64));
        self.emit(Step::Element(to, pointer, index, 1))?;
        Some(to)
    }

    /// `std::cout << …`: nothing of it is kept.
    fn is_output(&self, node: Node) -> bool {
        let mut first = node;
        while first.kind() == Kind::BinaryExpression {
            match first.field(Field::Left) {
                Some(left) => first = left,
                None => break,
            }
        }
        let name = text(first, self.source);
        first.id() != node.id() && matches!(name, "cout" | "cerr" | "std::cout" | "std::cerr")
    }
}
