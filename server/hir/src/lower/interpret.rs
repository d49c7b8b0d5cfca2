//! What a constant expression is worth where functions are called in it: its statements, run on numbers.

use std::fmt::Write as _;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use warplens_syntax::Node;

use super::candidate::Candidate;
use super::constants::{applied, constant};
use super::forms::has_word;
use super::instances::spell;
use super::shapes::all_numbers;
use super::shapes::is_pure;
use super::{Lowering, Source};
use warplens_ir::Bindings;
use warplens_ir::functions::Function;
use warplens_ir::{BinaryOp, Expr, ExprKind, LoopKind, Stmt, StmtKind, UnaryOp, Var, VarId};
use warplens_ir::{Site, Type};
use warplens_ir::{spell_type, wrapped};

/// Steps that one constant may take.
const MOST_STEPS: u32 = 20_000;

impl Lowering<'_> {
    /// The value of an expression, calls of functions among it, where it depends on nothing but numbers.
    pub(super) fn evaluated(&self, expression: &Expr) -> Option<i64> {
        constant(expression).or_else(|| value(expression, &self.vars))
    }

    /// A call of a `constexpr` function with numbers, as the number that it gives.
    pub(super) fn constant_call(
        &mut self,
        candidate: &Candidate,
        function: Node,
        bindings: &Bindings,
        arguments: &[Expr],
        site: Site,
    ) -> Option<Expr> {
        let definition = &candidate.definition;
        let source = Source::of(definition);
        let object = match &candidate.this {
            None => "",
            Some(this) if matches!(&this.kind, ExprKind::List(parts) if parts.is_empty()) => {
                &spell_type(&this.ty)
            }
            Some(_) => return None,
        };
        if !all_numbers(arguments)
            || !(has_word(function, source, "constexpr") || has_word(function, source, "consteval"))
        {
            return None;
        }
        let mut key = format!(
            "{:x} {} {object}",
            Arc::as_ptr(&definition.text) as usize,
            definition.range.start
        );
        for (name, bound) in bindings {
            let _ = write!(key, " {name}={}", spell(bound));
        }
        for argument in arguments {
            let _ = write!(
                key,
                " {:?}:{}",
                constant(argument),
                spell_type(&argument.ty)
            );
        }
        if let Some(known) = self.constant_calls.get(&key) {
            return known.clone().map(|value| Expr { site, ..value });
        }
        // A call that leads to itself has no value.
        self.constant_calls.insert(key.clone(), None);
        let spent = self.expressions;
        let assumed = self.assumed.len();
        let numbers: Vec<Expr> = arguments.iter().map(as_number).collect();
        let value = self.unevaluated(|lowering| {
            let body = lowering.in_place(candidate, bindings.clone(), &numbers, site);
            lowering.worked_out(&body)
        });
        match &value {
            // What was read for one number is not part of what the kernel expands to.
            Some(_) => self.expressions = spent + (self.expressions - spent) / 8,
            None => self.assumed.truncate(assumed),
        }
        self.constant_calls.insert(key, value.clone());
        value
    }

    /// The number, or the structure of numbers, that an expression comes to.
    pub(super) fn worked_out(&self, expression: &Expr) -> Option<Expr> {
        if let Type::Int { bits, signed } = expression.ty {
            let value = wrapped(self.evaluated(expression)?, bits, signed);
            return Some(Expr {
                kind: ExprKind::Int(value),
                ty: expression.ty.clone(),
                site: expression.site,
            });
        }
        let Type::Struct(structure) = &expression.ty else {
            return None;
        };
        let mut run = Run::new(&self.vars);
        let result = match &expression.kind {
            ExprKind::Inline(statements, Some(result)) => {
                run.all(statements)?;
                *result
            }
            ExprKind::List(values)
                if values.len() == structure.fields.len()
                    && values.iter().all(|value| constant(value).is_some()) =>
            {
                return Some(expression.clone());
            }
            _ => return None,
        };
        let leaves = self.split.get(&result)?;
        let mut fields = Vec::with_capacity(structure.fields.len());
        for field in &structure.fields {
            let (_, leaf) = leaves
                .scalars()
                .iter()
                .find(|(offset, _)| *offset == field.offset)?;
            let value = *run.values.get(&(*leaf, 0))?;
            if !field.ty.is_int() {
                return None;
            }
            fields.push(Expr {
                kind: ExprKind::Int(value),
                ty: field.ty.clone(),
                site: expression.site,
            });
        }
        Some(super::split::list(&expression.ty, fields, expression.site))
    }
}

fn as_number(argument: &Expr) -> Expr {
    Expr {
        kind: constant(argument).map_or(argument.kind.clone(), ExprKind::Int),
        ..argument.clone()
    }
}

/// The value of an expression that reads nothing but numbers and what it computes from them itself.
pub(super) fn value(expression: &Expr, vars: &[Var]) -> Option<i64> {
    // Most expressions are no constants, and most of those show it at once.
    Run::new(vars).value(expression)
}

struct Run<'v> {
    vars: &'v [Var],
    /// Numbers by variable and offset in bytes.
    values: FxHashMap<(VarId, u64), i64>,
    steps: u32,
}

enum Flow {
    Next,
    Break,
    Continue,
    Return,
}

impl<'v> Run<'v> {
    fn new(vars: &'v [Var]) -> Run<'v> {
        Run {
            vars,
            values: FxHashMap::default(),
            steps: 0,
        }
    }

    fn step(&mut self) -> Option<()> {
        self.steps += 1;
        (self.steps <= MOST_STEPS).then_some(())
    }

    fn all(&mut self, statements: &[Stmt]) -> Option<Flow> {
        for statement in statements {
            match self.statement(statement)? {
                Flow::Next => {}
                flow => return Some(flow),
            }
        }
        Some(Flow::Next)
    }

    fn statement(&mut self, statement: &Stmt) -> Option<Flow> {
        self.step()?;
        match &statement.kind {
            StmtKind::Declare(id, init) => {
                if let Some(init) = init {
                    let ty = &self.vars.get(id.0 as usize)?.ty;
                    // What is not known may still not be needed.
                    self.store((*id, 0), ty, init)
                        .or_else(|| is_pure(init).then_some(()))?;
                }
            }
            StmtKind::Expr(expression) => self.effect(expression)?,
            StmtKind::If(condition, then, otherwise) => {
                let side = if self.value(condition)? != 0 {
                    then
                } else {
                    otherwise
                };
                return self.all(side);
            }
            StmtKind::Block(inner) | StmtKind::Switch(_, inner) => return self.all(inner),
            StmtKind::Loop {
                kind,
                init,
                condition,
                step,
                body,
                ..
            } => {
                self.all(init)?;
                let mut first = *kind == LoopKind::Do;
                loop {
                    self.step()?;
                    if !first
                        && let Some(condition) = condition
                        && self.value(condition)? == 0
                    {
                        break;
                    }
                    first = false;
                    match self.all(body)? {
                        Flow::Break => break,
                        Flow::Return => return Some(Flow::Return),
                        Flow::Next | Flow::Continue => {}
                    }
                    if let Some(step) = step {
                        self.effect(step)?;
                    }
                }
            }
            StmtKind::Return(None) => return Some(Flow::Return),
            StmtKind::Break => return Some(Flow::Break),
            StmtKind::Continue => return Some(Flow::Continue),
            _ => return None,
        }
        Some(Flow::Next)
    }

    /// An expression whose value is not used.
    fn effect(&mut self, expression: &Expr) -> Option<()> {
        match &expression.kind {
            ExprKind::List(parts) => parts.iter().try_for_each(|part| self.effect(part)),
            ExprKind::Assign(None, target, value) => {
                let place = self.place(target)?;
                self.store(place, &target.ty, value)
            }
            ExprKind::Inline(statements, _) => self.all(statements).map(|_| ()),
            ExprKind::Call(Function::Ignored(..), _) => Some(()),
            _ => self.value(expression).map(|_| ()),
        }
    }

    /// Puts a value of that type at a place; a list goes element by element.
    fn store(&mut self, place: (VarId, u64), ty: &Type, value: &Expr) -> Option<()> {
        self.step()?;
        self.forget(place, ty);
        if let Type::Int { bits, signed } = ty {
            let number = self.value(value)?;
            self.values.insert(place, wrapped(number, *bits, *signed));
            return Some(());
        }
        let ExprKind::List(parts) = &value.kind else {
            return None;
        };
        match ty {
            Type::Array(element, extent) => {
                let extent = extent.unwrap_or(parts.len() as u64);
                if parts.len() as u64 > extent || extent > u64::from(MOST_STEPS) {
                    return None;
                }
                for at in 0..extent {
                    let place = (place.0, place.1 + at * element.size());
                    match parts.get(usize::try_from(at).ok()?) {
                        Some(part) => self.store(place, element, part)?,
                        None => self.zero(place, element)?,
                    }
                }
            }
            Type::Struct(structure) => {
                for (at, field) in structure.fields.iter().enumerate() {
                    let place = (place.0, place.1 + field.offset);
                    match parts.get(at) {
                        Some(part) => self.store(place, &field.ty, part)?,
                        None => self.zero(place, &field.ty)?,
                    }
                }
            }
            _ => return None,
        }
        Some(())
    }

    fn zero(&mut self, place: (VarId, u64), ty: &Type) -> Option<()> {
        self.step()?;
        if ty.is_int() {
            self.values.insert(place, 0);
            return Some(());
        }
        None
    }

    fn forget(&mut self, place: (VarId, u64), ty: &Type) {
        if ty.is_int() {
            self.values.remove(&place);
        } else {
            let end = place.1.saturating_add(ty.size());
            self.values
                .retain(|(id, at), _| *id != place.0 || !(place.1..end).contains(at));
        }
    }

    fn place(&mut self, expression: &Expr) -> Option<(VarId, u64)> {
        self.step()?;
        match &expression.kind {
            ExprKind::Var(id) => Some((*id, 0)),
            ExprKind::Field(base, offset) => {
                let (id, at) = self.place(base)?;
                Some((id, at.checked_add(*offset)?))
            }
            ExprKind::Index(base, index) => {
                let (element, extent) = match &base.ty {
                    Type::Array(element, extent) => (element, (*extent)?),
                    Type::Vector(element, lanes) => (element, u64::from(*lanes)),
                    _ => return None,
                };
                let index = u64::try_from(self.value(index)?).ok()?;
                if index >= extent {
                    return None;
                }
                let (id, at) = self.place(base)?;
                Some((id, at.checked_add(index.checked_mul(element.size())?)?))
            }
            _ => None,
        }
    }

    fn value(&mut self, expression: &Expr) -> Option<i64> {
        self.step()?;
        let ty = &expression.ty;
        let fitted = |value: i64| match ty {
            Type::Int { bits, signed } => Some(wrapped(value, *bits, *signed)),
            _ => None,
        };
        match &expression.kind {
            ExprKind::Int(value) => Some(*value),
            ExprKind::Var(_) | ExprKind::Field(..) | ExprKind::Index(..) if ty.is_int() => {
                let place = self.place(expression)?;
                self.values.get(&place).copied()
            }
            ExprKind::Cast(_, inner) if inner.ty.is_int() => fitted(self.value(inner)?),
            ExprKind::Unary(op, inner) if inner.ty.is_int() => {
                let value = self.value(inner)?;
                fitted(match op {
                    UnaryOp::Neg => value.wrapping_neg(),
                    UnaryOp::Not => i64::from(value == 0),
                    UnaryOp::BitNot => !value,
                })
            }
            ExprKind::Binary(op, a, b) if a.ty.is_int() && b.ty.is_int() => {
                let left = self.value(a)?;
                // What decides alone spares the other side.
                match op {
                    BinaryOp::LogicalAnd if left == 0 => return Some(0),
                    BinaryOp::LogicalOr if left != 0 => return Some(1),
                    _ => {}
                }
                let right = self.value(b)?;
                let of = match op {
                    BinaryOp::Shl | BinaryOp::Shr => a.ty.common(&Type::INT),
                    _ => a.ty.common(&b.ty),
                };
                let (left, right) = match op {
                    BinaryOp::Shl | BinaryOp::Shr => (left, right),
                    _ => converted(&of, left, right)?,
                };
                fitted(applied(*op, &of, left, right)?)
            }
            ExprKind::Select(c, a, b) => {
                let side = if self.value(c)? != 0 { a } else { b };
                fitted(self.value(side)?)
            }
            ExprKind::Assign(op, target, from) if target.ty.is_int() => {
                let place = self.place(target)?;
                let value = self.value(from)?;
                let value = match op {
                    Some(op) => {
                        let of = match op {
                            BinaryOp::Shl | BinaryOp::Shr => target.ty.common(&Type::INT),
                            _ => target.ty.common(&from.ty),
                        };
                        applied(*op, &of, *self.values.get(&place)?, value)?
                    }
                    None => value,
                };
                let value = fitted(value)?;
                self.values.insert(place, value);
                Some(value)
            }
            ExprKind::Step(by, postfix, target) if target.ty.is_int() => {
                let place = self.place(target)?;
                let before = *self.values.get(&place)?;
                let after = fitted(before.wrapping_add(*by))?;
                self.values.insert(place, after);
                Some(if *postfix { before } else { after })
            }
            ExprKind::Call(Function::Min, arguments) => {
                let [a, b] = arguments.as_slice() else {
                    return None;
                };
                Some(self.value(a)?.min(self.value(b)?))
            }
            ExprKind::Call(Function::Max, arguments) => {
                let [a, b] = arguments.as_slice() else {
                    return None;
                };
                Some(self.value(a)?.max(self.value(b)?))
            }
            ExprKind::List(parts) if ty.is_int() => {
                let (last, before) = parts.split_last()?;
                before.iter().try_for_each(|part| self.effect(part))?;
                self.value(last)
            }
            ExprKind::Inline(statements, Some(result)) if ty.is_int() => {
                self.all(statements)?;
                self.values.get(&(*result, 0)).copied()
            }
            _ => None,
        }
    }
}

/// Both numbers in the type that an operator works in; nothing where 64 bits without a sign hold more than the
/// arithmetic here.
fn converted(ty: &Type, a: i64, b: i64) -> Option<(i64, i64)> {
    let Type::Int { bits, signed } = *ty else {
        return None;
    };
    let (a, b) = (wrapped(a, bits, signed), wrapped(b, bits, signed));
    (signed || (a >= 0 && b >= 0)).then_some((a, b))
}
