//! Operators and conversions that classes of the program say themselves.

use warplens_hir::Source;
use warplens_ir::Type;
use warplens_syntax::{BinaryOperator as Op, Field, Kind, Node};

use super::arguments::{Argument, Named};
use super::index::CONVERSION;
use super::nodes::text;
use super::state::Host;
use super::value::{Step, Value, binary};

impl Host<'_> {
    /// An operator with two operands of which one is an object; `None` where its class says nothing of it.
    pub(super) fn operator_on(
        &mut self,
        operator: Op,
        nodes: [Node; 2],
        values: [&Value; 2],
        source: Source,
    ) -> Option<Value> {
        self.running.as_ref()?;
        if !values.iter().any(|value| matches!(value, Value::Record(_))) {
            return None;
        }
        let [left, right] = nodes;
        let operands = [
            self.operand(left, values[0], source),
            self.operand(right, values[1], source),
        ];
        let spelled = spelled(operator)?;
        if let Some(value) = self.operator_call(spelled, &operands, left, source) {
            return Some(value);
        }
        // `a != b` is what `a == b` is not.
        if operator == Op::NotEqual
            && let Some(same) = self.operator_call("==", &operands, left, source)
        {
            return Some(
                same.decided()
                    .map_or(Value::Unknown, |same| Value::truth(!same)),
            );
        }
        let numbers = values.map(|value| self.as_number(value, None));
        let [Some(a), Some(b)] = &numbers else {
            return None;
        };
        Some(binary(operator, a, b))
    }

    /// The function of the program that an operator means for these operands, called; `None` where there is none.
    pub(super) fn operator_call(
        &mut self,
        operator: &str,
        operands: &[Argument],
        node: Node,
        source: Source,
    ) -> Option<Value> {
        self.running.as_ref()?;
        let named = Named {
            name: format!("operator{operator}"),
            template_list: None,
            template_args: Vec::new(),
            scope: None,
        };
        if !self.index.by_name.contains_key(&named.name) {
            return None;
        }
        let (first, rest) = operands.split_first()?;
        if let Value::Record(record) = &first.value {
            let class = record.class.clone();
            let place = match &first.place {
                Some(place) => place.clone(),
                None => self.temporary(Type::Unknown(String::new()), first.value.clone()),
            };
            let own = self.method(&class, &named.name, &place, &named, rest, node, source);
            if own.is_some() {
                return own;
            }
        }
        // A friend, which is written in the class.
        for operand in operands {
            if let Value::Record(record) = &operand.value {
                let class = record.class.clone();
                let place = self.temporary(Type::Unknown(String::new()), operand.value.clone());
                let all = operands;
                let friend = self.method(&class, &named.name, &place, &named, all, node, source);
                if friend.is_some() {
                    return friend;
                }
            }
        }
        self.call_named(node, &named, operands, source)
    }

    /// An operand of an operator, with the variable that it names.
    pub(super) fn operand<'t>(
        &mut self,
        node: Node<'t>,
        value: &Value,
        source: Source,
    ) -> Argument<'t> {
        let names = matches!(node.kind(), Kind::Identifier | Kind::FieldExpression);
        Argument {
            value: value.clone(),
            place: if names {
                self.place(node, source)
            } else {
                None
            },
            node: Some(node),
        }
    }

    /// A number as it is, an object as the number that its class converts it to, of the type that is wanted where it has several
    /// conversions.
    pub(super) fn as_number(&mut self, value: &Value, wanted: Option<&Type>) -> Option<Value> {
        let record = match value {
            Value::Record(record) => record,
            Value::Int(..) | Value::Float(..) | Value::Linked(_) => return Some(value.clone()),
            _ => return None,
        };
        self.running.as_ref()?;
        let classes = self.with_bases(&record.class);
        let all = self.index.by_name.get(CONVERSION)?;
        let functions: Vec<usize> = all
            .iter()
            .copied()
            .filter(|&at| {
                let of = self.index.functions[at].class.as_ref();
                of.is_some_and(|of| classes.contains(of))
            })
            .collect();
        let place = self.temporary(Type::Unknown(String::new()), value.clone());
        let mut converted: Vec<(Type, usize)> = Vec::new();
        for at in functions {
            let function = &self.index.functions[at];
            let own = self.source_in(function);
            let ty = function.node.field(Field::Declarator)?.field(Field::Type)?;
            let bindings = match &function.class {
                Some(class) => self.bindings_in(class, &place),
                None => return None,
            };
            let ty = match Type::named(text(ty, own).trim(), false) {
                Some(ty) => ty,
                None => self.under(bindings, own, |host| {
                    let read = host.lowered(&[ty], own, |lowering| lowering.host_type(ty, own));
                    read.unwrap_or(Type::Unknown(String::new()))
                }),
            };
            converted.push((ty, at));
        }
        let exact = converted
            .iter()
            .find(|(ty, _)| wanted.is_some_and(|wanted| wanted == ty));
        let (ty, at) = match (exact, converted.as_slice()) {
            (Some((ty, at)), _) | (None, [(ty, at)]) => (ty.clone(), *at),
            _ => return None,
        };
        if !matches!(ty, Type::Int { .. } | Type::Float { .. }) {
            return None;
        }
        let function = &self.index.functions[at];
        let (definition, own) = (function.node, self.source_in(function));
        let class = function.class.clone();
        let named = Named {
            name: CONVERSION.to_owned(),
            template_list: None,
            template_args: Vec::new(),
            scope: None,
        };
        let value = self.invoke(
            definition,
            None,
            own,
            class,
            Some(place),
            &named,
            &[],
            definition,
            own,
        );
        let number = matches!(value, Value::Int(..) | Value::Float(..) | Value::Linked(_));
        Some(if number {
            value.converted(&ty)
        } else {
            Value::Unknown
        })
    }

    /// True or false as a condition takes a value, where that is known.
    pub(super) fn truth_of(&mut self, value: &Value) -> Option<bool> {
        match value {
            Value::Record(record) if record.kept.is_some() => {
                value.at(&Step::Field("has".to_owned())).decided()
            }
            Value::Record(_) => self.as_number(value, Some(&Type::BOOL))?.decided(),
            value => value.decided(),
        }
    }
}

/// How an operator is spelled behind `operator`.
pub(super) fn spelled(operator: Op) -> Option<&'static str> {
    Some(match operator {
        Op::Add => "+",
        Op::Subtract => "-",
        Op::Multiply => "*",
        Op::Divide => "/",
        Op::Remainder => "%",
        Op::BitAnd => "&",
        Op::BitOr => "|",
        Op::BitXor => "^",
        Op::ShiftLeft => "<<",
        Op::ShiftRight => ">>",
        Op::Less => "<",
        Op::LessEqual => "<=",
        Op::Greater => ">",
        Op::GreaterEqual => ">=",
        Op::Equal => "==",
        Op::NotEqual => "!=",
        _ => return None,
    })
}
