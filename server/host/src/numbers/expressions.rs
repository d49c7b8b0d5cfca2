//! Expressions of a compiled loop.

use warplens_syntax::nodes::{PointerExpression, UnaryExpression, UpdateExpression};
use warplens_syntax::{
    AssignOperator, BinaryOperator as Op, Field, Kind, Node, PointerOperator, UnaryOperator,
    UpdateOperator,
};

use super::bound::{Kept, Operand, What};
use super::code::{Register, Step, pointer};
use super::compile::Compiler;
use crate::kinds::Number;
use crate::nodes::{parts, text};
use warplens_ir::Type;

const INT: Number = Number::Int {
    bits: 32,
    signed: true,
};
const TRUTH: Number = Number::Int {
    bits: 1,
    signed: false,
};

impl Compiler<'_, '_> {
    pub(super) fn expression(&mut self, node: Node) -> Option<Operand> {
        self.deeper(|this| this.expression_inner(node))
    }

    fn expression_inner(&mut self, node: Node) -> Option<Operand> {
        let field = |name: Field| node.field(name);
        match node.kind() {
            Kind::NumberLiteral
            | Kind::True
            | Kind::False
            | Kind::CharLiteral
            | Kind::SizeofExpression
            | Kind::AlignofExpression
            | Kind::QualifiedIdentifier => {
                let source = self.source;
                let value = match node.kind() {
                    Kind::QualifiedIdentifier if self.first_scope > 0 => {
                        self.host.constant(node, source)
                    }
                    Kind::SizeofExpression | Kind::AlignofExpression if self.first_scope > 0 => {
                        return None;
                    }
                    _ => self.host.eval(node, source),
                };
                self.known_value(&value)
            }
            Kind::Null | Kind::Nullptr => Some(Operand {
                register: self.constant(0),
                what: What::Number(INT),
            }),
            Kind::Identifier | Kind::SubscriptExpression | Kind::FieldExpression => {
                let kept = self.kept(node)?;
                self.load(&kept)
            }
            Kind::ParenthesizedExpression => {
                let inner = parts(node);
                match inner.as_slice() {
                    [only] => self.expression(*only),
                    _ => None,
                }
            }
            // Parts between commas may be read as something with an error in it.
            Kind::CommaExpression | Kind::AssignmentExpression if node.has_error() => None,
            Kind::CommaExpression => {
                self.expression(field(Field::Left)?)?;
                self.expression(field(Field::Right)?)
            }
            Kind::BinaryExpression => self.binary_expression(node),
            Kind::UnaryExpression => self.unary(node),
            Kind::PointerExpression => {
                let argument = field(Field::Argument)?;
                match PointerExpression::cast(node)?.op()? {
                    PointerOperator::Dereference => {
                        let kept = self.kept(node)?;
                        self.load(&kept)
                    }
                    PointerOperator::AddressOf => match self.kept(argument)? {
                        Kept::Memory(register, ty) => Some(Operand {
                            register,
                            what: What::Pointer(ty),
                        }),
                        _ => None,
                    },
                }
            }
            Kind::AssignmentExpression => self.assignment(node),
            Kind::UpdateExpression => self.update(node),
            Kind::ConditionalExpression => self.conditional(node),
            Kind::CastExpression => {
                let value = self.expression(field(Field::Value)?)?;
                self.cast(&value, field(Field::Type)?)
            }
            Kind::CallExpression => self.call(node),
            _ => None,
        }
    }

    // ---- places --------------------------------------------------------------------------------

    /// Where the value of an expression is kept.
    pub(super) fn kept(&mut self, node: Node) -> Option<Kept> {
        self.deeper(|this| this.kept_inner(node))
    }

    fn kept_inner(&mut self, node: Node) -> Option<Kept> {
        let field = |name: Field| node.field(name);
        match node.kind() {
            Kind::Identifier => self.named(node),
            Kind::ParenthesizedExpression => {
                let inner = parts(node).into_iter().next()?;
                self.kept(inner)
            }
            Kind::SubscriptExpression => {
                let indices = field(Field::Indices).or_else(|| field(Field::Index))?;
                let index = match indices.kind() {
                    Kind::SubscriptArgumentList => parts(indices).into_iter().next()?,
                    _ => indices,
                };
                let (base, element) = self.array(field(Field::Argument)?)?;
                let index = self.expression(index)?;
                self.element(base, &index, element, false)
            }
            Kind::PointerExpression => {
                if PointerExpression::cast(node)?.op() != Some(PointerOperator::Dereference) {
                    return None;
                }
                let argument = field(Field::Argument)?;
                if let Some(place) = self.behind_pointer(argument) {
                    return self.outers.kept(self.host, &mut self.code, &place);
                }
                let (base, element) = self.array(argument)?;
                Some(Kept::Memory(base, element))
            }
            Kind::FieldExpression => {
                if let Some(place) = self.outer_place(node)
                    && let Some(kept) = self.outers.kept(self.host, &mut self.code, &place)
                {
                    return Some(kept);
                }
                let name = text(field(Field::Field)?, self.source);
                let object = field(Field::Argument)?;
                let arrow = field(Field::Operator)
                    .is_some_and(|operator| text(operator, self.source) == "->");
                let (base, ty) = if arrow {
                    self.array(object)?
                } else {
                    match self.kept(object)? {
                        Kept::Memory(base, ty) => (base, ty),
                        _ => return None,
                    }
                };
                let (offset, ty) = member(&ty, name)?;
                Some(Kept::Memory(self.behind(base, offset)?, ty))
            }
            _ => None,
        }
    }

    /// The address of the first element of what is subscripted, and what an element is.
    fn array(&mut self, node: Node) -> Option<(Register, Type)> {
        let place = matches!(
            node.kind(),
            Kind::Identifier
                | Kind::SubscriptExpression
                | Kind::FieldExpression
                | Kind::ParenthesizedExpression
        );
        if place && let Some(Kept::Container(memory, element)) = self.kept(node) {
            return Some((self.constant(pointer(memory as usize, 0)), element));
        }
        let operand = self.expression(node)?;
        match operand.what {
            What::Pointer(element) => Some((operand.register, element)),
            _ => None,
        }
    }

    fn element(
        &mut self,
        base: Register,
        index: &Operand,
        element: Type,
        back: bool,
    ) -> Option<Kept> {
        let to = self.moved(base, index, &element, back)?;
        Some(Kept::Memory(to, element))
    }

    /// An address that many elements on.
    fn moved(
        &mut self,
        base: Register,
        index: &Operand,
        element: &Type,
        back: bool,
    ) -> Option<Register> {
        let What::Number(number @ Number::Int { .. }) = index.what else {
            return None;
        };
        let mut index = self.converted(index.register, number, Number::LONG)?;
        if back {
            let (zero, negative) = (self.constant(0), self.register());
            self.emit(Step::Integer(
                Op::Subtract,
                64,
                true,
                negative,
                [zero, index],
            ))?;
            index = negative;
        }
        let size = u32::try_from(element.size())
            .ok()
            .filter(|size| *size > 0)?;
        let to = self.register();
        self.emit(Step::Element(to, base, index, size))?;
        Some(to)
    }

    pub(super) fn load(&mut self, kept: &Kept) -> Option<Operand> {
        match kept {
            Kept::Register(operand, _) => Some(operand.clone()),
            Kept::Memory(pointer, ty) => {
                if let Some(number) = Number::of(ty) {
                    let register = self.register();
                    self.emit(Step::Load(number, register, *pointer))?;
                    return Some(Operand {
                        register,
                        what: What::Number(number),
                    });
                }
                let what = match ty {
                    Type::Array(element, _) => What::Pointer((**element).clone()),
                    Type::Struct(_) | Type::Vector(..) => What::Object(ty.clone()),
                    _ => return None,
                };
                Some(Operand {
                    register: *pointer,
                    what,
                })
            }
            // `int a[] = { … }`.
            Kept::Container(memory, element) => Some(Operand {
                register: self.constant(pointer(*memory as usize, 0)),
                what: What::Pointer(element.clone()),
            }),
            Kept::Generator(_) => None,
        }
    }

    // ---- writing -------------------------------------------------------------------------------

    pub(super) fn assign(&mut self, kept: &Kept, value: &Operand) -> Option<()> {
        match kept {
            Kept::Register(to, outer) => {
                if let Some(outer) = outer {
                    self.written(*outer);
                }
                self.assign_register(to, value)
            }
            Kept::Memory(pointer, ty) => self.assign_memory(*pointer, ty, value),
            Kept::Container(..) | Kept::Generator(_) => None,
        }
    }

    pub(super) fn assign_register(&mut self, to: &Operand, value: &Operand) -> Option<()> {
        match (&to.what, &value.what) {
            (What::Number(into), What::Number(from)) => {
                if into == from {
                    self.emit(Step::Move(to.register, value.register))
                } else {
                    self.emit(Step::Convert(*from, *into, to.register, value.register))
                }
            }
            (What::Pointer(_), What::Pointer(_) | What::Number(Number::Int { .. })) => {
                self.emit(Step::Move(to.register, value.register))
            }
            _ => None,
        }
    }

    pub(super) fn assign_memory(
        &mut self,
        pointer: Register,
        ty: &Type,
        value: &Operand,
    ) -> Option<()> {
        match (Number::of(ty), &value.what) {
            (Some(into), What::Number(from)) => {
                let register = self.converted(value.register, *from, into)?;
                self.stored(into);
                self.emit(Step::Store(into, pointer, register))
            }
            (None, What::Object(of)) if of.size() == ty.size() && ty.size() > 0 => {
                self.stored(INT);
                let bytes = u32::try_from(ty.size()).ok()?;
                self.emit(Step::Copy(pointer, value.register, bytes))
            }
            _ => None,
        }
    }

    pub(super) fn converted(
        &mut self,
        register: Register,
        from: Number,
        into: Number,
    ) -> Option<Register> {
        if from == into {
            return Some(register);
        }
        let to = self.register();
        self.emit(Step::Convert(from, into, to, register))?;
        Some(to)
    }

    fn assignment(&mut self, node: Node) -> Option<Operand> {
        let (left, right) = (node.field(Field::Left)?, node.field(Field::Right)?);
        let value = self.expression(right)?;
        let kept = self.kept(left)?;
        let value = match warplens_syntax::assigned(node)? {
            AssignOperator::Plain => value,
            AssignOperator::With(operator) => {
                let before = self.load(&kept)?;
                self.combined(operator, &before, &value)?
            }
        };
        self.assign(&kept, &value)?;
        match &kept {
            Kept::Register(operand, _) => Some(operand.clone()),
            _ => Some(value),
        }
    }

    fn update(&mut self, node: Node) -> Option<Operand> {
        let argument = node.field(Field::Argument)?;
        let postfix = argument.start_byte() == node.start_byte();
        let operator = match UpdateExpression::cast(node)?.op()? {
            UpdateOperator::Increment => Op::Add,
            UpdateOperator::Decrement => Op::Subtract,
        };
        let kept = self.kept(argument)?;
        let now = self.load(&kept)?;
        let before = Operand {
            register: self.register(),
            what: now.what.clone(),
        };
        self.emit(Step::Move(before.register, now.register))?;
        let one = Operand {
            register: self.constant(1),
            what: What::Number(INT),
        };
        let after = self.combined(operator, &before, &one)?;
        self.assign(&kept, &after)?;
        Some(if postfix { before } else { after })
    }

    // ---- operators -----------------------------------------------------------------------------

    fn unary(&mut self, node: Node) -> Option<Operand> {
        let operator = UnaryExpression::cast(node)?.op()?;
        let value = self.expression(node.field(Field::Argument)?)?;
        match operator {
            UnaryOperator::Plus => Some(value),
            UnaryOperator::Minus => {
                let What::Number(number) = value.what else {
                    return None;
                };
                let zero = if number.is_float() {
                    crate::kinds::double(-0.0)
                } else {
                    0
                };
                let zero = Operand {
                    register: self.constant(zero),
                    what: What::Number(if number.is_float() { number } else { INT }),
                };
                self.combined(Op::Subtract, &zero, &value)
            }
            UnaryOperator::Not => {
                let truth = self.truth(&value)?;
                let (zero, to) = (self.constant(0), self.register());
                self.emit(Step::Integer(Op::Equal, 64, true, to, [truth, zero]))?;
                Some(Operand {
                    register: to,
                    what: What::Number(TRUTH),
                })
            }
            UnaryOperator::Complement => {
                let ones = Operand {
                    register: self.constant(-1),
                    what: What::Number(INT),
                };
                self.combined(Op::BitXor, &value, &ones)
            }
        }
    }

    fn binary_expression(&mut self, node: Node) -> Option<Operand> {
        let (left, right) = (node.field(Field::Left)?, node.field(Field::Right)?);
        let operator = warplens_syntax::binary(node)?;
        if matches!(operator, Op::And | Op::Or) {
            let to = self.register();
            let first = self.condition(left)?;
            self.emit(Step::Move(to, first))?;
            let jump = match operator {
                Op::And => Step::IfFalse(to, 0),
                _ => Step::IfTrue(to, 0),
            };
            let end = self.jump(jump)?;
            let second = self.condition(right)?;
            self.emit(Step::Move(to, second))?;
            self.lead_here(&[end]);
            let (zero, truth) = (self.constant(0), self.register());
            self.emit(Step::Integer(Op::NotEqual, 64, true, truth, [to, zero]))?;
            return Some(Operand {
                register: truth,
                what: What::Number(TRUTH),
            });
        }
        let a = self.expression(left)?;
        let b = self.expression(right)?;
        // What the right side changes must not change the left value.
        self.combined(operator, &a, &b)
    }

    /// An operator on two values.
    pub(super) fn combined(&mut self, operator: Op, a: &Operand, b: &Operand) -> Option<Operand> {
        let compares = matches!(
            operator,
            Op::Less | Op::LessEqual | Op::Greater | Op::GreaterEqual | Op::Equal | Op::NotEqual
        );
        let (x, y) = match (&a.what, &b.what) {
            (What::Number(x), What::Number(y)) => (*x, *y),
            (What::Pointer(element), What::Number(_))
                if matches!(operator, Op::Add | Op::Subtract) =>
            {
                let to = self.moved(a.register, b, element, operator == Op::Subtract)?;
                return Some(Operand {
                    register: to,
                    what: a.what.clone(),
                });
            }
            (What::Pointer(element), What::Pointer(_)) if operator == Op::Subtract => {
                let size = i64::try_from(element.size())
                    .ok()
                    .filter(|size| *size > 0)?;
                let (bytes, to, size) = (self.register(), self.register(), self.constant(size));
                let sides = [a.register, b.register];
                self.emit(Step::Integer(Op::Subtract, 64, true, bytes, sides))?;
                self.emit(Step::Integer(Op::Divide, 64, true, to, [bytes, size]))?;
                return Some(Operand {
                    register: to,
                    what: What::Number(Number::LONG),
                });
            }
            (What::Pointer(_), _) | (_, What::Pointer(_)) if compares => {
                let to = self.register();
                let sides = [a.register, b.register];
                self.emit(Step::Integer(operator, 64, false, to, sides))?;
                return Some(Operand {
                    register: to,
                    what: What::Number(TRUTH),
                });
            }
            _ => return None,
        };
        let shift = matches!(operator, Op::ShiftLeft | Op::ShiftRight);
        let other = if shift { INT } else { y };
        let common = Number::of(&x.ty().common(&other.ty()))?;
        let first = self.converted(a.register, x, common)?;
        let second = if shift {
            b.register
        } else {
            self.converted(b.register, y, common)?
        };
        let to = self.register();
        match common {
            Number::Int { bits, signed } => {
                self.emit(Step::Integer(operator, bits, signed, to, [first, second]))?;
            }
            kind => {
                let defined = compares || operator.is_arithmetic() && operator != Op::Remainder;
                if !defined {
                    return None;
                }
                self.emit(Step::Real(operator, kind, to, [first, second]))?;
            }
        }
        Some(Operand {
            register: to,
            what: What::Number(if compares { TRUTH } else { common }),
        })
    }

    fn conditional(&mut self, node: Node) -> Option<Operand> {
        let condition = self.condition(node.field(Field::Condition)?)?;
        let otherwise = self.jump(Step::IfFalse(condition, 0))?;
        let first = self.expression(node.field(Field::Consequence)?)?;
        let to = self.register();
        // How it is converted is known behind the other side.
        let kept = self.jump(Step::Move(to, first.register))?;
        let end = self.jump(Step::Jump(0))?;
        self.lead_here(&[otherwise]);
        let second = self.expression(node.field(Field::Alternative)?)?;
        let what = match (&first.what, &second.what) {
            (What::Number(a), What::Number(b)) if a == b => first.what.clone(),
            (What::Number(a), What::Number(b)) => {
                let common = Number::of(&a.ty().common(&b.ty()))?;
                self.code.steps[kept] = Step::Convert(*a, common, to, first.register);
                What::Number(common)
            }
            (What::Pointer(_), What::Pointer(_)) => first.what.clone(),
            _ => return None,
        };
        let result = Operand { register: to, what };
        self.assign_register(&result, &second)?;
        self.lead_here(&[end]);
        Some(result)
    }

    /// A value as a type that the source writes.
    pub(super) fn cast(&mut self, value: &Operand, ty: Node) -> Option<Operand> {
        let name = text(ty, self.source).trim();
        let source = self.source;
        let ty = match Type::named(name, false) {
            Some(ty) => ty,
            None => {
                (self.host).lowered(&[ty], source, |lowering| lowering.host_type(ty, source))?
            }
        };
        self.cast_to(value, &ty)
    }

    pub(super) fn cast_to(&mut self, value: &Operand, ty: &Type) -> Option<Operand> {
        match (&value.what, Number::of(ty), ty) {
            (What::Number(from), Some(into), _) => Some(Operand {
                register: self.converted(value.register, *from, into)?,
                what: What::Number(into),
            }),
            (What::Pointer(_), None, Type::Pointer(element, _)) => Some(Operand {
                register: value.register,
                what: What::Pointer((**element).clone()),
            }),
            _ => None,
        }
    }
}

/// Where a member of a structure or a short vector is, and what it is.
fn member(ty: &Type, name: &str) -> Option<(u64, Type)> {
    match ty {
        Type::Struct(structure) => {
            let field = structure.fields.iter().find(|field| field.name == name)?;
            Some((field.offset, field.ty.clone()))
        }
        Type::Vector(element, lanes) => {
            let at = ["x", "y", "z", "w"].iter().position(|lane| *lane == name)?;
            (at < usize::from(*lanes)).then(|| (at as u64 * element.size(), (**element).clone()))
        }
        _ => None,
    }
}
