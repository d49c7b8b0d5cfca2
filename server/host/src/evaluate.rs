//! Expressions of host functions.

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use warplens_syntax::nodes::{
    FoldExpression, PointerExpression, UnaryExpression, UpdateExpression,
};
use warplens_syntax::{
    AssignOperator, BinaryOperator as Op, Field, Kind, Node, PointerOperator, UnaryOperator,
    UpdateOperator,
};

use super::arguments::Argument;
use super::command_line::NPOS;
use super::containers::whole;
use super::events::MemoryKind;
use super::index::plain;
use super::library_types::Instance;
use super::nodes::{name_of_function, names_fields, parts, text};
use super::operators::spelled as spelled_operator;
use super::standard::nothing;
use super::state::Host;
use super::value::moved;
use super::value::{Extent, FunctionName, Lambda, LambdaRef, Place, Record, Step, Value, binary};
use super::value::{GAP, MAP, Meaning, Scope};
use super::value::{joined, spelled};
use warplens_hir::misread;
use warplens_hir::{Lowering, Source};
use warplens_ir::Bound;
use warplens_ir::{AddressSpace, Type};

impl Host<'_> {
    /// The value of an expression; its effects happen.
    pub(super) fn eval(&mut self, node: Node, source: Source) -> Value {
        if self.is_too_deep() {
            self.forget_everything();
            return Value::Unknown;
        }
        if self.spent() || self.leaving.is_some() {
            return Value::Unknown;
        }
        self.depth += 1;
        let operation = misread::is_operation(&node);
        let within = std::mem::replace(&mut self.in_operation, operation);
        let again = if operation && !within {
            self.misread_casts(node, source)
        } else {
            None
        };
        let value = again.unwrap_or_else(|| self.expression(node, source));
        self.in_operation = within;
        self.depth -= 1;
        value
    }

    /// An expression with casts to what are variables here, read again without them.
    fn misread_casts(&mut self, whole: Node, source: Source) -> Option<Value> {
        let language = self.unit.language;
        let fragment = misread::without_casts(whole, source.parsed, language, |name| {
            match self.binding(name) {
                Some(bound) => matches!(bound, Bound::Value(_)),
                None => self.place_named(name).is_some() || self.unit_constant(name).is_some(),
            }
        })?;
        let again = source.again(&fragment, whole.start_byte());
        Some(match misread::expression(&fragment) {
            Some(value) => self.eval(value, again),
            None => Value::Unknown,
        })
    }

    /// `(a = 1, b)`, which reads with an error behind `a` or behind `1`: its parts, each parsed by itself.
    fn misread_comma(&mut self, whole: Node, source: Source) -> Value {
        let all = text(whole, source);
        let mut value = Value::Unknown;
        for part in between_commas(all) {
            let one = all.get(part.clone()).unwrap_or_default();
            let fragment = misread::parsed(one, self.unit.language);
            let again = source.again(&fragment, whole.start_byte() + part.start);
            value = match misread::expression(&fragment) {
                Some(one) if !fragment.tree.root_node().has_error() => self.eval(one, again),
                _ => {
                    self.forget_everything();
                    Value::Unknown
                }
            };
        }
        value
    }

    fn expression(&mut self, node: Node, source: Source) -> Value {
        let field = |name: Field| node.field(name);
        match node.kind() {
            Kind::NumberLiteral | Kind::UserDefinedLiteral => number(text(node, source)),
            Kind::True => Value::TRUE,
            Kind::False => Value::FALSE,
            Kind::Null | Kind::Nullptr | Kind::NullMacro => Value::Int(0, 64, true),
            Kind::CharLiteral => Value::Int(Lowering::host_character(text(node, source)), 8, true),
            Kind::StringLiteral | Kind::RawStringLiteral => {
                Value::Text(string(node, source).into())
            }
            Kind::ConcatenatedString => {
                let all: String = parts(node)
                    .into_iter()
                    .map(|part| string(part, source))
                    .collect();
                Value::Text(all.into())
            }
            Kind::Identifier | Kind::TypeIdentifier => self.named_value(node, source),
            Kind::This => match self.frames.last().and_then(|frame| frame.this.clone()) {
                Some(this) => Value::Address(this),
                None => Value::Unknown,
            },
            Kind::ConditionClause => {
                if let Some(initializer) = field(Field::Initializer) {
                    self.statement(initializer, source);
                }
                field(Field::Value).map_or(Value::Unknown, |value| self.eval(value, source))
            }
            Kind::ParenthesizedExpression | Kind::ParameterPackExpansion => {
                let mut value = Value::Unknown;
                for part in parts(node) {
                    value = self.eval(part, source);
                }
                value
            }
            Kind::CommaExpression | Kind::AssignmentExpression if misread_as(node, source) => {
                self.misread_comma(node, source)
            }
            Kind::CommaExpression => {
                if let Some(left) = field(Field::Left) {
                    self.eval(left, source);
                }
                field(Field::Right).map_or(Value::Unknown, |right| self.eval(right, source))
            }
            Kind::BinaryExpression => self.binary(node, source),
            Kind::UnaryExpression => {
                let Some(argument) = field(Field::Argument) else {
                    return Value::Unknown;
                };
                let value = self.eval(argument, source);
                if let Value::Record(_) = value {
                    let operand = self.operand(argument, &value, source);
                    let spelled = match UnaryExpression::cast(node).and_then(UnaryExpression::op) {
                        Some(UnaryOperator::Minus) => "-",
                        Some(UnaryOperator::Plus) => "+",
                        Some(UnaryOperator::Not) => "!",
                        Some(UnaryOperator::Complement) => "~",
                        None => return Value::Unknown,
                    };
                    if let Some(own) = self.operator_call(spelled, &[operand], node, source) {
                        return own;
                    }
                    if spelled == "!" {
                        return self
                            .truth_of(&value)
                            .map_or(Value::Unknown, |value| Value::truth(!value));
                    }
                }
                let value = self.as_number(&value, None).unwrap_or(value);
                match UnaryExpression::cast(node).and_then(UnaryExpression::op) {
                    Some(UnaryOperator::Minus) => match value {
                        Value::Float(value, bits) => Value::Float(-value, bits),
                        value => binary(Op::Subtract, &Value::int(0), &value),
                    },
                    Some(UnaryOperator::Plus) => value,
                    Some(UnaryOperator::Not) => value
                        .decided()
                        .map_or(Value::Unknown, |value| Value::truth(!value)),
                    Some(UnaryOperator::Complement) => binary(Op::BitXor, &value, &Value::int(-1)),
                    None => Value::Unknown,
                }
            }
            Kind::PointerExpression => {
                let Some(argument) = field(Field::Argument) else {
                    return Value::Unknown;
                };
                let operator = PointerExpression::cast(node).and_then(PointerExpression::op);
                if operator == Some(PointerOperator::AddressOf) {
                    if let Some(place) = self.place(argument, source) {
                        // Into a text: what is from there on.
                        if let Some((Step::Index(Some(at)), path)) = place.path.split_last()
                            && self.running.is_some()
                            && let Value::Text(text) = self.slots[place.slot].value.read(path)
                        {
                            let rest = text.get(*at..);
                            return rest.map_or(Value::Unknown, |rest| Value::Text(rest.into()));
                        }
                        return match self.read(&place) {
                            // The address of a function is the function.
                            _ if place.path.last() == Some(&Step::Index(Some(0))) => {
                                let mut place = place;
                                place.path.pop();
                                Value::Address(place)
                            }
                            _ => Value::Address(place),
                        };
                    }
                    return match self.eval(argument, source) {
                        value @ (Value::Kernels(_) | Value::Function(_)) => value,
                        _ => Value::Unknown,
                    };
                }
                match self.eval(argument, source) {
                    Value::Address(place) => {
                        let value = self.read(&place);
                        match value {
                            Value::Array(_) | Value::Data(_) => value.at(&Step::Index(Some(0))),
                            value => value,
                        }
                    }
                    value @ (Value::Kernels(_) | Value::Lambda(_) | Value::Function(_)) => value,
                    value @ Value::Record(_) => {
                        let operand = self.operand(argument, &value, source);
                        if let Some(place) = operand.place.clone()
                            && let Some(held) = self.held_by_optional(place)
                        {
                            return self.read(&held);
                        }
                        self.operator_call("*", &[operand], node, source)
                            .unwrap_or(Value::Unknown)
                    }
                    _ => Value::Unknown,
                }
            }
            Kind::AssignmentExpression => self.assignment(node, source),
            Kind::UpdateExpression => {
                let Some(argument) = field(Field::Argument) else {
                    return Value::Unknown;
                };
                let postfix = argument.start_byte() == node.start_byte();
                let step = UpdateExpression::cast(node).and_then(UpdateExpression::op);
                let operator = match step {
                    Some(UpdateOperator::Increment) => Op::Add,
                    _ => Op::Subtract,
                };
                let Some(place) = self.place(argument, source) else {
                    self.eval(argument, source);
                    self.written_somewhere();
                    return Value::Unknown;
                };
                let before = self.read(&place);
                if let Value::Record(_) = before {
                    return self.stepped(&place, before, operator, postfix, node, source);
                }
                let after = match &before {
                    Value::Address(_) | Value::Text(_) if self.running.is_some() => {
                        pointer_moved(&before, operator, &Value::int(1))
                    }
                    before => binary(operator, before, &Value::int(1)),
                };
                self.write(&place, after.clone());
                if postfix { before } else { after }
            }
            Kind::ConditionalExpression => {
                let (Some(condition), Some(otherwise)) =
                    (field(Field::Condition), field(Field::Alternative))
                else {
                    return Value::Unknown;
                };
                let value = self.eval(condition, source);
                let then = field(Field::Consequence);
                let (mut first, mut second) = (value.clone(), Value::Unknown);
                let decided = self.truth_of(&value);
                self.either(
                    decided,
                    condition,
                    source,
                    |host| {
                        if let Some(then) = then {
                            first = host.eval(then, source);
                        }
                        true
                    },
                    |host| {
                        second = host.eval(otherwise, source);
                        true
                    },
                );
                match decided {
                    Some(true) => first,
                    Some(false) => second,
                    None => match (&first, &second) {
                        // `n % d ? n / d + 1 : n / d`
                        (Value::Linked(a), Value::Linked(b))
                            if text(condition, source).contains('%') =>
                        {
                            let both = a.clone().rounded_up(b.clone());
                            both.map_or(Value::Unknown, Value::Linked)
                        }
                        _ => {
                            let joined = first.join(&second);
                            self.loses(&first, &joined);
                            self.loses(&second, &joined);
                            joined
                        }
                    },
                }
            }
            Kind::CastExpression => {
                let Some(value) = field(Field::Value) else {
                    return Value::Unknown;
                };
                let value = self.eval(value, source);
                match field(Field::Type) {
                    Some(ty) => self.cast(value, ty, source),
                    None => Value::Unknown,
                }
            }
            Kind::InitializerList => self.list(node, source),
            // `if (int n = count())`.
            Kind::Declaration => {
                self.statement(node, source);
                let Some(name) = field(Field::Declarator).map(super::index::declared_name) else {
                    return Value::Unknown;
                };
                if let (Some(value), Some(place)) = (field(Field::Value), self.place(name, source))
                {
                    let value = self.eval(value, source);
                    self.assign(&place, value);
                }
                self.eval(name, source)
            }
            Kind::CompoundLiteralExpression => {
                let class = self.instance(field(Field::Type), source);
                let Some(value) = field(Field::Value) else {
                    return Value::Unknown;
                };
                if names_fields(value) {
                    let value = self.list(value, source);
                    return self.completed(&class, value);
                }
                let given = self.given(&class, value, source);
                if let (Some(ty), [only]) = (field(Field::Type), given.as_slice())
                    && matches!(only.value, Value::Int(..) | Value::Float(..))
                    && class.name != "dim3"
                    && !self.index.classes.contains_key(&class.name)
                {
                    return self.cast(only.value.clone(), ty, source);
                }
                let place = self.temporary(Type::Unknown(String::new()), Value::Unknown);
                self.constructed(&class, &given, true, place.slot, source)
            }
            Kind::SubscriptExpression | Kind::FieldExpression => {
                if node.kind() == Kind::SubscriptExpression
                    && let Some(value) = self.subscript_of_object(node, source)
                {
                    return value;
                }
                if let Some(place) = self.place(node, source) {
                    let value = self.read_number(&place);
                    self.loses_element(&place);
                    // A field that is an array is a pointer to it.
                    return match value {
                        Value::Array(_) | Value::Data(_) => Value::Address(place),
                        value => value,
                    };
                }
                if let Some(argument) = field(Field::Argument) {
                    let value = self.eval(argument, source);
                    let value = match value {
                        Value::Address(place) => self.read(&place),
                        value => value,
                    };
                    if let Some(name) = field(Field::Field) {
                        return value.at(&Step::Field(text(name, source).to_owned()));
                    }
                }
                Value::Unknown
            }
            Kind::CallExpression => self.call(node, source),
            Kind::FoldExpression => self.folded(node, source),
            Kind::NewExpression => self.allocation(node, source),
            Kind::LambdaExpression => self.lambda(node, source),
            Kind::TemplateFunction | Kind::QualifiedIdentifier => {
                if let Some(kernel) = self.kernel_named(node, source) {
                    return kernel;
                }
                // `run<float, 4>`, as it is handed on.
                if self.running.is_some()
                    && let (name, Some(list)) = name_of_function(node)
                    && self.index.by_name.contains_key(text(name, source).trim())
                {
                    return Value::Function(Rc::new(FunctionName {
                        name: text(name, source).trim().to_owned(),
                        class: self.class_named(node, source),
                        template_args: self.template_arguments(list, source),
                    }));
                }
                if node.kind() == Kind::QualifiedIdentifier {
                    let name = plain(text(node, source));
                    if let Some(place) = self.static_member(node, &name, source) {
                        return self.read(&place);
                    }
                    if let Some(function) = self.member_function(node, &name, source) {
                        return function;
                    }
                    if name == "npos" {
                        return NPOS;
                    }
                    if name == "nullopt" && self.running.is_some() {
                        return nothing();
                    }
                }
                if let Some(value) = self.member_of_instance(node, source) {
                    return value;
                }
                self.constant(node, source)
            }
            Kind::SizeofExpression if text(node, source).starts_with("sizeof...") => {
                match self.pack(node, source) {
                    Some(pack) => Value::Int(pack.len() as i64, 64, false),
                    None => self.constant(node, source),
                }
            }
            Kind::SizeofExpression | Kind::AlignofExpression => self.constant(node, source),
            Kind::TypeDescriptor => match field(Field::Type) {
                Some(inner) => self.eval(inner, source),
                None => Value::Unknown,
            },
            Kind::Comment | Kind::GnuAsmExpression => Value::Unknown,
            Kind::CompoundStatement => {
                // GNU's statement expression.
                self.statement(node, source);
                Value::Unknown
            }
            _ => {
                for part in parts(node) {
                    match part.kind() {
                        kind if kind.is_statement() || kind == Kind::Declaration => {
                            self.statement(part, source);
                        }
                        _ => {
                            self.eval(part, source);
                        }
                    }
                }
                Value::Unknown
            }
        }
    }

    /// What only the file's declarations decide.
    pub(super) fn constant(&mut self, node: Node, source: Source) -> Value {
        match self.lowered_type(&[node], source, |lowering| {
            lowering.host_expression(node, source)
        }) {
            Some((ty, Some(value))) => Value::of(value, &ty),
            _ => Value::Unknown,
        }
    }

    fn named_value(&mut self, node: Node, source: Source) -> Value {
        let name = text(node, source);
        if let Some(place) = self.place_named(name) {
            let slot = &self.slots[place.slot];
            if slot.decays && place.path.is_empty() {
                return Value::Address(place);
            }
            return self.read_number(&place);
        }
        if let Some(Bound::Value(value)) = self.binding(name) {
            return Value::Int(*value, 32, true);
        }
        if self.binding(name).is_some() || self.local(name).is_some() {
            return Value::Unknown;
        }
        if let Some(value) = self.unit_constant(name) {
            return value;
        }
        if let Some(kernel) = self.kernel_named(node, source) {
            return kernel;
        }
        if self.running.is_some() && self.index.by_name.contains_key(name) {
            return Value::Function(Rc::new(FunctionName {
                name: name.to_owned(),
                class: None,
                template_args: Vec::new(),
            }));
        }
        if let Some(value) = self.library_name(name) {
            return value;
        }
        self.constant(node, source)
    }

    /// A kernel of the file by its name, template arguments and namespaces included.
    pub(super) fn kernel_named(&mut self, node: Node, source: Source) -> Option<Value> {
        let (name, arguments) = name_of_function(node);
        let name = text(name, source).trim();
        if !self.index.kernels.contains(name) {
            return None;
        }
        let arguments = match arguments {
            Some(list) => self.template_arguments(list, source),
            None => Vec::new(),
        };
        Some(Value::kernel(name, arguments))
    }

    /// Template arguments by position; what is not known is absent.
    pub(super) fn template_arguments(&mut self, list: Node, source: Source) -> Vec<Option<Bound>> {
        self.lowered(&[list], source, |lowering| {
            lowering.template_arguments(list, source)
        })
        .unwrap_or_default()
        .into_iter()
        .map(|bound| match bound {
            Bound::Type(Type::Unknown(_)) => None,
            bound => Some(bound),
        })
        .collect()
    }

    fn static_member(&mut self, node: Node, name: &str, source: Source) -> Option<Place> {
        let scope = node.field(Field::Scope)?;
        let class = plain(text(scope, source));
        let known = self.index.variables.get(name)?;
        // The same name in several classes, or a member of what may be an instance of a template: the declarations decide.
        let of_class = self.index.classes.contains_key(&class);
        let is_alias = || {
            matches!(self.local(&class), Some(Meaning::Type(_)))
                || matches!(self.binding(&class), Some(Bound::Type(_)))
        };
        if known.len() != 1 || (of_class && scope.kind() == Kind::TemplateType) || is_alias() {
            return None;
        }
        if !of_class && matches!(self.lowering.host_type_named(&class), Some(Type::Struct(_))) {
            return None;
        }
        self.global_place(name)
    }

    fn binary(&mut self, node: Node, source: Source) -> Value {
        let field = |name: Field| node.field(name);
        let (Some(left), Some(right)) = (field(Field::Left), field(Field::Right)) else {
            return Value::Unknown;
        };
        let operator = warplens_syntax::binary(node);
        let a = self.eval(left, source);
        let Some(operator) = operator else {
            self.eval(right, source);
            return Value::Unknown;
        };
        match operator {
            Op::And | Op::Or => {
                let and = operator == Op::And;
                match self.truth_of(&a) {
                    Some(first) if first != and => {
                        self.aside(|host| {
                            host.eval(right, source);
                        });
                        Value::truth(first)
                    }
                    Some(_) => {
                        let b = self.eval(right, source);
                        self.truth_of(&b).map_or(Value::Unknown, Value::truth)
                    }
                    None => {
                        let touched = self.touched_mark();
                        let b = self.perhaps(|host| {
                            let b = host.eval(right, source);
                            host.truth_of(&b)
                        });
                        self.forget_touched(touched);
                        match b {
                            Some(second) if second != and => Value::truth(second),
                            _ => Value::Unknown,
                        }
                    }
                }
            }
            Op::ShiftRight if self.running.is_some() && matches!(a, Value::Text(_)) => {
                self.read_from_text(&a, left, right, source)
            }
            Op::ShiftRight => {
                let b = self.eval(right, source);
                // Reading from a stream changes what is on the right.
                if a == Value::Unknown && stands_alone(node) {
                    if let Some(place) = self.place(right, source) {
                        self.forget_at(&place);
                    }
                    return Value::Unknown;
                }
                binary(operator, &a, &b)
            }
            // Into a stream of characters.
            Op::ShiftLeft if matches!(a, Value::Text(_)) => {
                let b = self.eval(right, source);
                let b = match self.text_in(&b) {
                    Some(text) => Value::Text(text),
                    None if text(right, source).ends_with("endl") => Value::Text("\n".into()),
                    None => b,
                };
                let after = joined(&spelled(&a, false), &spelled(&b, false));
                let mut stream = left;
                while stream.kind() == Kind::BinaryExpression
                    && let Some(inner) = stream.field(Field::Left)
                {
                    stream = inner;
                }
                if let Some(place) = self.place(stream, source) {
                    self.write(&place, after.clone());
                }
                after
            }
            _ => {
                let b = self.eval(right, source);
                // An array of characters beside a string.
                let pointed = |host: &Self, value: &Value| host.text_in(value).map(Value::Text);
                let (a, b) = match (&a, &b) {
                    (Value::Text(_), Value::Address(_)) => {
                        (a, pointed(self, &b).unwrap_or(Value::Unknown))
                    }
                    (Value::Address(_), Value::Text(_)) => {
                        (pointed(self, &a).unwrap_or(Value::Unknown), b)
                    }
                    _ => (a, b),
                };
                if let Some(value) = self.operator_on(operator, [left, right], [&a, &b], source) {
                    return value;
                }
                match (&a, operator) {
                    // A pointer moves within its array.
                    (Value::Address(_) | Value::Text(_), Op::Add | Op::Subtract)
                        if self.running.is_some() && matches!(b, Value::Int(_, 32.., _)) =>
                    {
                        self.counts(&a, left, source);
                        pointer_moved(&a, operator, &b)
                    }
                    (Value::Address(_), Op::Subtract) if matches!(b, Value::Address(_)) => {
                        binary(operator, &a, &b)
                    }
                    (Value::Address(_), Op::Add | Op::Subtract) if b != Value::int(0) => {
                        Value::Unknown
                    }
                    (Value::Address(_), Op::Add | Op::Subtract) => a,
                    _ => binary(operator, &a, &b),
                }
            }
        }
    }

    fn assignment(&mut self, node: Node, source: Source) -> Value {
        let field = |name: Field| node.field(name);
        let (Some(left), Some(right)) = (field(Field::Left), field(Field::Right)) else {
            return Value::Unknown;
        };
        let operator = warplens_syntax::assigned(node);
        let right_place = self.container_named(right, source);
        let mut value = match right_place {
            Some(slot) => Value::Container(slot),
            None => self.eval(right, source),
        };
        let Some(place) = self.place(left, source) else {
            if self.tied(left, &value, source).is_some() {
                return Value::Unknown;
            }
            let to = left.field(Field::Argument);
            // Where an object of the program leads to.
            if matches!(
                left.kind(),
                Kind::PointerExpression | Kind::SubscriptExpression
            ) && self.running.is_some()
                && to.is_some_and(|to| matches!(self.eval(to, source), Value::Record(_)))
            {
                self.forget_everything();
                return Value::Unknown;
            }
            self.eval(left, source);
            let number = matches!(value, Value::Int(..) | Value::Float(..));
            self.forget_returned(left, number, source);
            self.written_somewhere();
            return Value::Unknown;
        };
        let before = self.read(&place);
        if let Some(own) = self.assigned_by_itself(&place, &before, operator, right, &value, source)
        {
            return own;
        }
        if let Some(AssignOperator::With(operator)) = operator {
            value = self.as_number(&value, None).unwrap_or(value);
            value = binary(operator, &before, &value);
        } else {
            let dims = matches!(before, Value::Dims(_));
            if dims {
                value = match value {
                    value @ (Value::Dims(_)
                    | Value::Linked(_)
                    | Value::Int(..)
                    | Value::Float(..)
                    | Value::Array(_)
                    | Value::Record(_)) => Value::Dims(value.extents()),
                    _ => Value::Dims(Extent::UNKNOWN),
                };
            } else if let Value::Record(record) = &before
                && let Some(kept) = record.kept.clone()
            {
                value = self.kept_as(&kept, value, source);
            } else if let (Value::Record(record), Value::Array(_)) = (&before, &value) {
                let class = Instance::of(record);
                if let Value::Array(values) = &value {
                    value = self.by_position(&class, values.as_ref().clone());
                }
            }
        }
        if let (Some(from), true) = (right_place, place.path.is_empty()) {
            self.vector_copied(place.slot, from, node, source);
        }
        self.assign(&place, value);
        self.read(&place)
    }

    /// An assignment to an object whose class says itself what that does, as an object of its own type or with an operator.
    fn assigned_by_itself(
        &mut self,
        place: &Place,
        before: &Value,
        operator: Option<AssignOperator>,
        right: Node,
        value: &Value,
        source: Source,
    ) -> Option<Value> {
        let Value::Record(record) = before else {
            return None;
        };
        let spelled = match operator {
            Some(AssignOperator::With(operator)) => format!("{}=", spelled_operator(operator)?),
            _ => "=".to_owned(),
        };
        if !self.index.classes.contains_key(&record.class) {
            return None;
        }
        let object = Argument {
            value: before.clone(),
            place: Some(place.clone()),
            node: None,
        };
        let given = self.operand(right, value, source);
        self.operator_call(&spelled, &[object, given], right, source)?;
        Some(self.read(place))
    }

    /// `++` and `--` of an object, as its class says it.
    fn stepped(
        &mut self,
        place: &Place,
        before: Value,
        operator: Op,
        postfix: bool,
        node: Node,
        source: Source,
    ) -> Value {
        let spelled = if operator == Op::Add { "++" } else { "--" };
        let mut operands = vec![Argument {
            value: before,
            place: Some(place.clone()),
            node: None,
        }];
        if postfix {
            operands.push(Argument::of(Value::int(0)));
        }
        let value = self.operator_call(spelled, &operands, node, source);
        value.unwrap_or_else(|| {
            self.forget_at(place);
            Value::Unknown
        })
    }

    /// A pointer that an expression names is counted on from.
    fn counts(&mut self, pointer: &Value, node: Node, source: Source) {
        let Value::Address(place) = pointer else {
            return;
        };
        if matches!(self.slots[place.slot].ty, Type::Array(..)) {
            return;
        }
        let size = match self.type_of(node, pointer, source) {
            Type::Pointer(element, _) => element.size(),
            _ => 0,
        };
        let unit = &mut self.slots[place.slot].unit;
        *unit = Some(if unit.is_none_or(|known| known == size) {
            size
        } else {
            0
        });
    }

    /// Something is written through what a call gives by reference: a part of its object, or of an argument. `number`: it is a
    /// number, which is no container.
    pub(super) fn forget_returned(&mut self, call: Node, number: bool, source: Source) {
        match call.kind() {
            Kind::CallExpression => {}
            Kind::ParenthesizedExpression | Kind::CommaExpression => {
                for part in parts(call) {
                    self.forget_returned(part, number, source);
                }
                return;
            }
            Kind::ConditionalExpression => {
                for field in [Field::Consequence, Field::Alternative] {
                    if let Some(side) = call.field(field) {
                        match self.place(side, source) {
                            Some(place) => self.forget_at(&place),
                            None => self.forget_returned(side, number, source),
                        }
                    }
                }
                return;
            }
            _ => return,
        }
        let function = call.field(Field::Function);
        // What a function of the program or a lambda gives may be any of its arguments, or what it captured.
        let name = function.map_or("", |function| text(function, source));
        let of_program = self.index.by_name.contains_key(name);
        if let Some(place) = function.and_then(|function| self.place(function, source))
            && matches!(self.read(&place), Value::Lambda(_) | Value::Bound(_))
        {
            self.forget_everything();
            return;
        }
        let object = function.and_then(|function| match function.kind() {
            Kind::FieldExpression => function.field(Field::Argument),
            // The object's own operator.
            Kind::Identifier => Some(function),
            _ => None,
        });
        let arguments = call.field(Field::Arguments).map(parts);
        for node in object.into_iter().chain(arguments.into_iter().flatten()) {
            let named = matches!(
                node.kind(),
                Kind::Identifier | Kind::FieldExpression | Kind::SubscriptExpression
            );
            let place = if named {
                self.place(node, source)
            } else {
                None
            };
            match place.map(|place| (self.read(&place), place)) {
                // A number among the arguments is an index.
                Some((Value::Int(..) | Value::Float(..) | Value::Text(_), _)) if !of_program => {}
                None => {}
                Some((Value::Address(to), _)) => self.forget_at(&to),
                Some((value, place)) if number => {
                    let open = self.without_numbers(value, &place);
                    self.write(&place, open);
                }
                Some((_, place)) => self.forget_at(&place),
            }
        }
    }

    pub(super) fn cast(&mut self, value: Value, ty: Node, source: Source) -> Value {
        match &value {
            Value::Int(..) | Value::Float(..) | Value::Linked(_) | Value::Record(_) => {}
            // Pointers, kernels and the like stay what they are.
            _ => return value,
        }
        let name = text(ty, source).trim();
        let ty = match Type::named(name, false) {
            Some(ty) => Some(ty),
            None => self.lowered(&[ty], source, |lowering| lowering.host_type(ty, source)),
        };
        if let Value::Record(_) = value {
            return match ty {
                Some(ty @ (Type::Int { .. } | Type::Float { .. })) => self
                    .as_number(&value, Some(&ty))
                    .map_or(Value::Unknown, |number| number.converted(&ty)),
                _ => value,
            };
        }
        match ty {
            Some(ty @ (Type::Int { .. } | Type::Float { .. })) => value.converted(&ty),
            Some(Type::Pointer(..)) => value,
            Some(Type::Vector(..)) if name == "dim3" => Value::Dims(value.extents()),
            // A type that is not known may round or cut off: an integer that is not negative stays.
            Some(Type::Unknown(_)) if matches!(value, Value::Int(0.., ..) | Value::Linked(_)) => {
                value
            }
            _ => Value::Unknown,
        }
    }

    fn list(&mut self, node: Node, source: Source) -> Value {
        let all = parts(node);
        if names_fields(node) {
            let mut record = Record::default();
            for part in all {
                let (Some(designator), Some(value)) =
                    (part.field(Field::Designator), part.field(Field::Value))
                else {
                    continue;
                };
                let name = text(designator, source).trim_start_matches('.').to_owned();
                let value = self.eval(value, source);
                record.fields.push((name, value));
            }
            return Value::Record(Rc::new(record));
        }
        let values = all
            .into_iter()
            .map(|part| self.eval(part, source))
            .collect();
        Value::list(values)
    }

    fn lambda(&mut self, node: Node, source: Source) -> Value {
        let Some(frame) = self.frames.last() else {
            return Value::Unknown;
        };
        let device = text(node, source);
        let device = &device[..device.find('{').unwrap_or(device.len())];
        if device.contains("__device__") {
            return Value::Unknown;
        }
        let mut scopes = frame.scopes.clone();
        if self.running.is_some() {
            scopes.push(self.captured(text(node, source)));
        }
        let Some(frame) = self.frames.last() else {
            return Value::Unknown;
        };
        let lambda = Rc::new(Lambda {
            text: Arc::clone(source.parsed),
            header: source.is_header(),
            range: node.byte_range(),
            scopes,
            bindings: frame.bindings.clone(),
            this: frame.this.clone(),
            class: frame.class.clone(),
        });
        // No call of it may ever be seen.
        if super::index::WORDS
            .iter()
            .any(|word| text(node, source).contains(word))
        {
            let lambda = Rc::clone(&lambda);
            self.aside(|host| {
                host.call_lambda(&lambda, None);
            });
        }
        Value::Lambda(LambdaRef(lambda))
    }

    /// What a lambda has of its own, by its text: what it captures by value as it is now.
    fn captured(&mut self, lambda: &str) -> Scope {
        let mut own = Scope::default();
        let list = lambda
            .strip_prefix('[')
            .and_then(|rest| rest.split_once(']'));
        let Some((list, body)) = list else {
            return own;
        };
        let items: Vec<&str> = list.split(',').map(str::trim).collect();
        let mut copied: Vec<&str> = Vec::new();
        for item in &items {
            match item.split_once('=') {
                Some((name, of)) if !name.trim().is_empty() => {
                    let name = name.trim();
                    let meant = name
                        .strip_prefix('&')
                        .and_then(|_| self.place_named(of.trim()));
                    let meaning = match meant {
                        Some(place) => Meaning::Place(place),
                        None => {
                            let ty = Type::Unknown(String::new());
                            Meaning::Slot(self.slot(ty, Value::Unknown, false))
                        }
                    };
                    own.insert(name.trim_start_matches('&').trim().to_owned(), meaning);
                }
                _ if item.starts_with(['&', '=', '*']) || *item == "this" => {}
                _ => copied.push(item),
            }
        }
        if items.first() == Some(&"=") {
            let by_reference = |word: &str| {
                items
                    .iter()
                    .any(|item| item.strip_prefix('&') == Some(word))
            };
            for word in warplens_syntax::words_in(body) {
                let local = matches!(self.local(word), Some(Meaning::Slot(_) | Meaning::Place(_)));
                if local && !by_reference(word) && !copied.contains(&word) {
                    copied.push(word);
                }
            }
        }
        for name in copied {
            if own.contains_key(name) || self.local(name).is_none() {
                continue;
            }
            let Some(place) = self.place_named(name) else {
                continue;
            };
            let value = self.read(&place);
            let ty = self.type_at(&place, &value);
            let slot = self.slot(ty, Value::Unknown, false);
            self.slots[slot].decays = place.path.is_empty() && self.slots[place.slot].decays;
            if self.is_container(&place) {
                self.assign(&whole(slot), Value::Container(place.slot));
            } else {
                let value = self.copy_of(value);
                self.slots[slot].value = value;
                self.slots[slot].bytes = self.slots[place.slot]
                    .bytes
                    .filter(|_| place.path.is_empty());
            }
            own.insert(name.to_owned(), Meaning::Slot(slot));
        }
        own
    }

    fn allocation(&mut self, node: Node, source: Source) -> Value {
        let class = self.instance(node.field(Field::Type), source);
        let list = node.field(Field::Arguments);
        let given = list.map_or_else(Vec::new, |list| self.given(&class, list, source));
        let ty = self
            .lowering
            .host_type_named(&class.name)
            .unwrap_or(Type::Unknown(String::new()));
        if node.field(Field::Declarator).is_some() {
            // `new T[n]`.
            let value = match list.map(|list| list.kind()) {
                Some(Kind::InitializerList) => {
                    Value::list(given.into_iter().map(|one| one.value).collect())
                }
                _ => Value::Unknown,
            };
            let bytes = node
                .field(Field::Declarator)
                .and_then(|extents| extents.field(Field::Length))
                .filter(|_| self.running.is_some())
                .and_then(|length| self.eval(length, source).as_int())
                .and_then(|length| u64::try_from(length).ok()?.checked_mul(ty.size()));
            let ty = Type::Array(Arc::new(ty), None);
            let place = self.temporary(ty, value);
            self.slots[place.slot].bytes = bytes;
            self.slots[place.slot].memory = Some(MemoryKind::Pageable);
            return Value::Address(place);
        }
        let place = self.temporary(ty, Value::Unknown);
        let braces = list.is_some_and(|list| list.kind() == Kind::InitializerList);
        let value = self.constructed(&class, &given, braces, place.slot, source);
        self.slots[place.slot].value = value;
        Value::Address(place)
    }

    // ---- places --------------------------------------------------------------------------------

    /// Where the value of an expression is kept.
    pub(super) fn place(&mut self, node: Node, source: Source) -> Option<Place> {
        if self.is_too_deep() || self.spent() || self.leaving.is_some() {
            return None;
        }
        self.depth += 1;
        let place = self.place_inner(node, source);
        self.depth -= 1;
        place.map(|place| self.resolved(place))
    }

    fn place_inner(&mut self, node: Node, source: Source) -> Option<Place> {
        let field = |name: Field| node.field(name);
        match node.kind() {
            Kind::Identifier | Kind::TypeIdentifier => self.place_named(text(node, source)),
            Kind::ParenthesizedExpression => {
                let inner = parts(node).into_iter().next()?;
                self.place(inner, source)
            }
            Kind::QualifiedIdentifier => {
                let name = plain(text(node, source));
                self.static_member(node, &name, source)
            }
            Kind::FieldExpression => {
                let argument = field(Field::Argument)?;
                let name = text(field(Field::Field)?, source).to_owned();
                let arrow =
                    field(Field::Operator).is_some_and(|operator| text(operator, source) == "->");
                let mut place = if arrow {
                    match self.pointed_by(argument, source) {
                        Value::Address(place) => place,
                        _ => return None,
                    }
                } else if argument.kind() == Kind::This {
                    self.frames.last()?.this.clone()?
                } else {
                    self.place(argument, source)?
                };
                place.path.push(Step::Field(name));
                Some(place)
            }
            Kind::SubscriptExpression => {
                let argument = field(Field::Argument)?;
                if self.has_subscript(argument, source) {
                    return None;
                }
                let index = index_of(node)?;
                let index = self.eval(index, source);
                if self.running.is_some()
                    && let Some(map) = self.place(argument, source)
                    && self.is_map(&map)
                {
                    return self.entry_of(&map, &index, source);
                }
                if let Some(key) = self.key_of_map(argument, &index, source) {
                    // See `container_call`.
                    let mut place = self.place(argument, source)?;
                    place.path.push(Step::Field(key));
                    place.path.push(Step::Field("second".to_owned()));
                    return Some(place);
                }
                let index = index.as_int();
                let index = index.and_then(|index| usize::try_from(index).ok());
                let (mut place, pointed_at) = match self.place(argument, source) {
                    Some(place) => match self.read(&place) {
                        Value::Address(pointed) => {
                            let ty = self.type_at(&place, &Value::Unknown);
                            if !self.has_elements(pointed.slot, &ty) {
                                return None;
                            }
                            (pointed, true)
                        }
                        _ => (place, false),
                    },
                    None => match self.eval(argument, source) {
                        Value::Address(place) => (place, true),
                        _ => return None,
                    },
                };
                let pointed = self.read(&place);
                let scalar = matches!(pointed, Value::Int(..) | Value::Float(..) | Value::Dims(_));
                let behind = pointed_at && !place.path.is_empty() && self.running.is_some();
                if scalar && !behind && !self.slots[place.slot].decays {
                    // A pointer to one variable, or an object's own operator.
                    return match pointed {
                        Value::Dims(_) => {
                            place.path.push(Step::Index(index));
                            Some(place)
                        }
                        _ => (index == Some(0)).then_some(place),
                    };
                }
                if self.running.is_some()
                    && let Some(Step::Index(Some(first))) = place.path.last_mut()
                    && pointed_at
                    && !matches!(pointed, Value::Array(_) | Value::Record(_) | Value::Data(_))
                {
                    // Counted from an element behind the first.
                    *first += index?;
                    return Some(place);
                }
                place.path.push(Step::Index(index));
                Some(place)
            }
            Kind::PointerExpression => {
                if PointerExpression::cast(node)?.op() != Some(PointerOperator::Dereference) {
                    return None;
                }
                match self.eval(field(Field::Argument)?, source) {
                    Value::Record(_) => {
                        let optional = self.place(field(Field::Argument)?, source)?;
                        self.held_by_optional(optional)
                    }
                    Value::Address(mut place) => {
                        if matches!(self.read(&place), Value::Array(_) | Value::Data(_)) {
                            place.path.push(Step::Index(Some(0)));
                        }
                        Some(place)
                    }
                    _ => None,
                }
            }
            Kind::CastExpression => self.place(field(Field::Value)?, source),
            Kind::CallExpression => match self.referred(node, source) {
                Some(place) => Some(place),
                None => self.part_place(node, source),
            },
            Kind::UpdateExpression => {
                self.eval(node, source);
                self.place(field(Field::Argument)?, source)
            }
            Kind::AssignmentExpression => {
                self.eval(node, source);
                self.place(field(Field::Left)?, source)
            }
            _ => None,
        }
    }

    /// Whether an expression names an object whose class says what its subscripts are.
    fn has_subscript(&mut self, object: Node, source: Source) -> bool {
        if self.running.is_none() || !self.index.by_name.contains_key("operator[]") {
            return false;
        }
        let named = matches!(object.kind(), Kind::Identifier | Kind::FieldExpression);
        let place = if named {
            self.place(object, source)
        } else {
            None
        };
        let Some(Value::Record(record)) = place.map(|place| self.read(&place)) else {
            return false;
        };
        let classes = self.with_bases(&record.class);
        let all = self.index.by_name.get("operator[]").into_iter().flatten();
        let mut of = all.filter_map(|&at| self.index.functions[at].class.as_ref());
        of.any(|class| classes.contains(class))
    }

    /// `object[index]` as the object's class says it.
    fn subscript_of_object(&mut self, node: Node, source: Source) -> Option<Value> {
        let object = node.field(Field::Argument)?;
        if !self.has_subscript(object, source) {
            return None;
        }
        let index = index_of(node)?;
        let value = self.eval(object, source);
        let object = self.operand(object, &value, source);
        let value = self.eval(index, source);
        let index = self.operand(index, &value, source);
        let value = self.operator_call("[]", &[object, index], node, source);
        Some(value.unwrap_or(Value::Unknown))
    }

    /// The pointer before an arrow: an object's class says what it is.
    pub(super) fn pointed_by(&mut self, argument: Node, source: Source) -> Value {
        let value = self.eval(argument, source);
        if !matches!(value, Value::Record(_)) {
            return value;
        }
        let operand = self.operand(argument, &value, source);
        if let Some(place) = operand.place.clone()
            && let Some(held) = self.held_by_optional(place)
        {
            return Value::Address(held);
        }
        self.operator_call("->", &[operand], argument, source)
            .unwrap_or(Value::Unknown)
    }

    /// `(a + ...)`, `(0 + ... + f(a))`: what an operator makes of what a pattern is for each variable of a pack.
    fn folded(&mut self, node: Node, source: Source) -> Value {
        let side = |field: Field| {
            let side = node.field(field);
            side.filter(|side| text(*side, source) != "...")
        };
        let (left, right) = (side(Field::Left), side(Field::Right));
        let named = |host: &mut Self, side: Option<Node>| {
            let (name, slots) = host.pack_named(side?, source)?;
            Some((name, slots))
        };
        let (first, second) = (named(self, left), named(self, right));
        let Some(fold) = FoldExpression::cast(node) else {
            return Value::Unknown;
        };
        // From the left where the pack is on the right.
        let from_left = second.is_some();
        let (pattern, start, pack) = match (first, second) {
            (Some(pack), None) => (left, right, pack),
            (None, Some(pack)) => (right, left, pack),
            _ => return Value::Unknown,
        };
        let Some(pattern) = pattern else {
            return Value::Unknown;
        };
        let mut values: Vec<Value> = Vec::new();
        values.extend(
            start
                .filter(|_| from_left)
                .map(|start| self.eval(start, source)),
        );
        let (name, slots) = pack;
        for slot in slots.iter().copied() {
            values.push(self.scoped(|host| {
                host.bind(&name, Meaning::Slot(slot));
                host.eval(pattern, source)
            }));
        }
        values.extend(
            start
                .filter(|_| !from_left)
                .map(|start| self.eval(start, source)),
        );
        if !from_left {
            values.reverse();
        }
        let mut values = values.into_iter();
        let Some(mut result) = values.next() else {
            return Value::Unknown;
        };
        for value in values {
            result = match fold.op() {
                _ if fold.is_comma() => value,
                Some(operator @ (Op::And | Op::Or)) => match (result.decided(), value.decided()) {
                    (Some(a), Some(b)) => {
                        Value::truth(if operator == Op::And { a && b } else { a || b })
                    }
                    _ => Value::Unknown,
                },
                Some(operator) if from_left => binary(operator, &result, &value),
                Some(operator) => binary(operator, &value, &result),
                None => Value::Unknown,
            };
        }
        result
    }

    /// The key of a map's entry; `None` where a subscript counts elements.
    fn key_of_map(&mut self, map: Node, index: &Value, source: Source) -> Option<String> {
        self.running.as_ref()?;
        if let Some(key) = index.text() {
            return Some(key.to_string());
        }
        let key = index.as_int()?;
        let place = self.place(map, source)?;
        match self.read(&place) {
            Value::Record(record) if record.class == MAP => Some(key.to_string()),
            _ => None,
        }
    }

    pub(super) fn field_of_this(&mut self, name: &str) -> Option<Place> {
        let frame = self.frames.last()?;
        let this = frame.this.clone()?;
        let known = match self.read(&this) {
            Value::Record(record) => record.fields.iter().any(|(of, _)| of == name),
            _ => false,
        };
        if !known {
            return None;
        }
        let mut place = this;
        place.path.push(Step::Field(name.to_owned()));
        Some(self.resolved(place))
    }

    // ---- types ---------------------------------------------------------------------------------

    /// The type of an expression that has that value; `Unknown` where it is not known.
    pub(super) fn type_of(&mut self, node: Node, value: &Value, source: Source) -> Type {
        match value {
            Value::Float(_, bits) => return Type::float(*bits),
            Value::Int(_, bits, signed) if node.kind() != Kind::Null => {
                // Literals and arithmetic know their types; enumerations and bit-fields are `int` too.
                return match bits {
                    1 | 8 | 16 | 32 | 64 => Type::Int {
                        bits: *bits,
                        signed: *signed,
                    },
                    _ => Type::INT,
                };
            }
            Value::Dims(_) => return Type::Vector(Arc::new(Type::UINT), 3),
            _ => {}
        }
        if node.kind() == Kind::CallExpression
            && let Some(ty) = self.type_of_call(node, source)
        {
            return ty;
        }
        self.lowered_type(&[node], source, |lowering| {
            lowering.host_expression(node, source)
        })
        .map_or(Type::Unknown(String::new()), |(ty, _)| ty)
    }

    /// `raw_pointer_cast(v.data())`, `v.data()`, `static_cast<T>(…)`.
    fn type_of_call(&mut self, node: Node, source: Source) -> Option<Type> {
        let function = node.field(Field::Function)?;
        let arguments = node.field(Field::Arguments)?;
        match function.kind() {
            Kind::FieldExpression => {
                let called = function.field(Field::Field)?;
                // `tensor.data_ptr<float>()`.
                if let (Some(name), Some(list)) =
                    (called.field(Field::Name), called.field(Field::Arguments))
                {
                    if !text(name, source).ends_with("data_ptr") {
                        return None;
                    }
                    let ty = parts(list).into_iter().next()?;
                    let ty =
                        self.lowered(&[ty], source, |lowering| lowering.host_type(ty, source))?;
                    return Some(Type::Pointer(Arc::new(ty), AddressSpace::Global));
                }
                let name = text(called, source);
                if !matches!(name, "data" | "get" | "begin" | "Data") {
                    return None;
                }
                let object = function.field(Field::Argument)?;
                let ty = self.type_of(object, &Value::Unknown, source);
                // `vector->data()` is of what the pointer leads to.
                let operator = function.field(Field::Operator);
                let through = operator.is_some_and(|operator| text(operator, source) == "->");
                let ty = match ty {
                    Type::Pointer(of, _) if through => (*of).clone(),
                    ty => ty,
                };
                match ty {
                    Type::Array(element, _) | Type::Pointer(element, _) => {
                        Some(Type::Pointer(element, AddressSpace::Global))
                    }
                    _ => None,
                }
            }
            Kind::TemplateFunction => {
                let (name, list) = name_of_function(function);
                if !text(name, source).ends_with("_cast") {
                    return None;
                }
                let ty = parts(list?).into_iter().next()?;
                self.lowered(&[ty], source, |lowering| lowering.host_type(ty, source))
            }
            _ => {
                let name = plain(text(function, source));
                if !matches!(
                    name.as_str(),
                    "raw_pointer_cast" | "move" | "forward" | "get"
                ) {
                    return None;
                }
                let argument = parts(arguments).into_iter().next()?;
                Some(self.type_of(argument, &Value::Unknown, source))
            }
        }
    }
}

/// A pointer that many elements on, or back.
fn pointer_moved(pointer: &Value, operator: Op, by: &Value) -> Value {
    let by = by.as_int().and_then(|by| match operator {
        Op::Add => Some(by),
        _ => by.checked_neg(),
    });
    let moved = match (pointer, by) {
        (Value::Address(place), Some(by)) => moved(place, by).map(Value::Address),
        (Value::Text(text), Some(by)) => usize::try_from(by)
            .ok()
            .and_then(|by| text.get(by..))
            .map(|rest| Value::Text(rest.into())),
        _ => None,
    };
    moved.unwrap_or(Value::Unknown)
}

/// What is between the brackets of a subscript.
fn index_of(subscript: Node<'_>) -> Option<Node<'_>> {
    let indices = subscript
        .field(Field::Indices)
        .or_else(|| subscript.field(Field::Index))?;
    match indices.kind() {
        Kind::SubscriptArgumentList => parts(indices).into_iter().next(),
        _ => Some(indices),
    }
}

/// True where the value is not used: a statement, a condition.
fn stands_alone(node: Node) -> bool {
    let mut at = node;
    while let Some(parent) = at.parent() {
        match parent.kind() {
            Kind::BinaryExpression | Kind::ParenthesizedExpression => at = parent,
            Kind::ExpressionStatement | Kind::ConditionClause | Kind::UnaryExpression => {
                return true;
            }
            _ => return false,
        }
    }
    false
}

/// Whether parts between commas were read as something with an error in it.
fn misread_as(node: Node, source: Source) -> bool {
    parts(node).iter().any(|part| part.kind() == Kind::Error)
        && between_commas(text(node, source)).len() > 1
}

/// The parts of a text between its commas; those in brackets and in quotes are inside of one.
fn between_commas(text: &str) -> Vec<Range<usize>> {
    let (mut all, mut from, mut depth) = (Vec::new(), 0, 0u32);
    let mut quote: Option<char> = None;
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match (quote, letter) {
            (Some(_), '\\') => {
                letters.next();
            }
            (Some(open), letter) if open == letter => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(letter),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                all.push(from..at);
                from = at + 1;
            }
            _ => {}
        }
    }
    all.push(from..text.len());
    all
}

fn number(text: &str) -> Value {
    let (value, ty) = Lowering::host_number(text);
    match (value, ty) {
        (Some(value), ty @ Type::Int { .. }) => Value::of(value, &ty),
        (_, Type::Float { bits, .. }) => {
            let digits: String = text.chars().filter(|&c| c != '\'').collect();
            let digits = digits.trim_end_matches(['f', 'F', 'l', 'L', 'h', 'H']);
            digits
                .parse()
                .map_or(Value::Unknown, |value| Value::Float(value, bits.max(32)))
                .converted(&Type::float(bits.max(32)))
        }
        _ => Value::Unknown,
    }
}

fn string(node: Node, source: Source) -> String {
    let whole = text(node, source);
    let whole = whole.trim_start_matches(['u', 'U', 'L', '8', 'R']);
    let inner = whole.strip_prefix('"').unwrap_or(whole);
    let inner = inner.strip_suffix('"').unwrap_or(inner);
    if node.kind() == Kind::RawStringLiteral {
        return inner.to_owned();
    }
    unescaped(inner)
}

/// The characters that a literal's text represents; a gap for one that no text here holds.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            out.push(letter);
            continue;
        }
        out.push(match letters.next() {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some(same @ ('\\' | '"' | '\'' | '?')) => same,
            // A line that goes on in the next one.
            Some('\n') => continue,
            _ => {
                while letters.next_if(char::is_ascii_hexdigit).is_some() {}
                GAP
            }
        });
    }
    out
}
