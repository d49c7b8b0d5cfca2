//! What a variable or a field holds wherever it is used, because everything that writes it writes the same constants.
//!
//! In: a name and what it holds at first. Out: its value, of a `dim3` each extent. What holds: only plain assignments of expressions
//! count that use no local variable and call nothing; any other change makes it unknown. A read before the first assignment would
//! be one of an object that was never set up: it is not looked for.

use std::collections::BTreeSet;
use std::ops::Range;

use warplens_hir::Source;
use warplens_syntax::{Field, Kind, Node};

use super::changes::{Assignment, assignments};
use super::index::declared_name;
use super::nodes::{full_name, text};
use super::state::Host;
use super::value::{Extent, Value, lane};

/// Fields that are told of a class that is defined elsewhere.
const MOST_FIELDS: usize = 64;

impl<'p> Host<'p> {
    /// What a field or a variable holds that is `first` before anything writes it. `class`: the one that it is a member of;
    /// `skipped`: bytes of the file in which writes are known.
    pub(super) fn agreed(
        &mut self,
        name: &str,
        class: Option<&str>,
        first: &Value,
        skipped: &[Range<usize>],
    ) -> Value {
        let parsed = self.parsed;
        let Some(all) = assignments(parsed, name, skipped) else {
            return Value::Unknown;
        };
        let source = self.source_of(parsed);
        // An object that no constructor gave extents has those of its type.
        let is_set = !matches!(first, Value::Unknown) && *first != Value::Dims(Extent::ONES);
        let mut whole = is_set.then(|| first.clone());
        let mut sides: [Option<Value>; 3] = [None, None, None];
        for Assignment { members, value } in all {
            let into = match members.as_slice() {
                [] => &mut whole,
                [member] => match lane(member) {
                    Some(at) => &mut sides[at],
                    None => return Value::Unknown,
                },
                _ => return Value::Unknown,
            };
            let assigned = self.value_in_class(value, class, source);
            *into = Some(match into.take() {
                Some(before) => before.join(&assigned),
                None => assigned,
            });
        }
        if sides.iter().all(Option::is_none) {
            let dims = matches!(first, Value::Dims(_));
            return match whole {
                Some(value) if dims => Value::Dims(value.extents()),
                Some(value) => value,
                None => first.clone(),
            };
        }
        let before = whole.as_ref().map(Value::extents);
        if before.is_none() && sides[0].is_none() && !matches!(first, Value::Dims(_)) {
            return Value::Unknown;
        }
        let mut extents = before.clone().unwrap_or(Extent::ONES);
        for (at, side) in sides.into_iter().enumerate() {
            let Some(side) = side else { continue };
            let [side, ..] = Value::list(vec![side]).extents();
            let differs = before.as_ref().is_some_and(|before| before[at] != side);
            extents[at] = if differs { Extent::Unknown } else { side };
        }
        Value::Dims(extents)
    }

    /// The fields that functions of a class assign which the file does not define, with what they agree on.
    pub(super) fn agreed_fields(&mut self, class: &str) -> Vec<(String, Value)> {
        if let Some(known) = self.agreed.get(class) {
            return known.clone();
        }
        let parsed = self.parsed;
        let functions = self.index.functions.iter();
        let bodies: Vec<Node<'p>> = functions
            .filter(|function| function.class.as_deref() == Some(class))
            .filter_map(|function| function.node.field(Field::Body))
            .collect();
        let mut names: BTreeSet<&str> = BTreeSet::new();
        for body in bodies {
            let locals = declared_in(body, &parsed.text);
            for node in body.descendants() {
                if node.kind() != Kind::AssignmentExpression {
                    continue;
                }
                let Some(mut left) = node.field(Field::Left) else {
                    continue;
                };
                while left.kind() == Kind::FieldExpression
                    && let Some(object) = left.field(Field::Argument)
                {
                    left = match (object.kind(), left.field(Field::Field)) {
                        (Kind::This, Some(field)) => field,
                        _ => object,
                    };
                }
                let name = &parsed.text[left.byte_range()];
                let is_name = matches!(left.kind(), Kind::Identifier | Kind::FieldIdentifier);
                if is_name && !locals.contains(name) && !self.index.variables.contains_key(name) {
                    names.insert(name);
                }
            }
        }
        let mut fields = Vec::new();
        for name in names.into_iter().take(MOST_FIELDS) {
            let value = self.agreed(name, Some(class), &Value::Unknown, &[]);
            if matches!(value, Value::Int(..) | Value::Float(..) | Value::Dims(_)) {
                fields.push((name.to_owned(), value));
            }
        }
        self.agreed.insert(class.to_owned(), fields.clone());
        fields
    }

    /// The value of an expression that is the same in each function of a class.
    fn value_in_class(
        &mut self,
        value: Node<'p>,
        class: Option<&str>,
        source: Source<'p>,
    ) -> Value {
        let around = std::iter::successors(Some(value), Node::parent)
            .find(|node| node.kind() == Kind::FunctionDefinition);
        let all = &source.parsed.text;
        let locals = around.map(|function| declared_in(function, all));
        let differs = value
            .descendants()
            .into_iter()
            .any(|node| match node.kind() {
                Kind::Identifier => locals
                    .as_ref()
                    .is_some_and(|locals| locals.contains(&all[node.byte_range()])),
                Kind::CallExpression => node
                    .field(Field::Function)
                    .is_none_or(|function| text(function, source) != "dim3"),
                Kind::AssignmentExpression | Kind::UpdateExpression | Kind::LambdaExpression => {
                    true
                }
                _ => false,
            });
        if differs {
            return Value::Unknown;
        }
        let name = full_name(class, "");
        let frame = self.frame(name, class.map(str::to_owned), value.start_byte(), source);
        self.frames.push(frame);
        let value = self.eval(value, source);
        self.frames.pop();
        value
    }
}

/// The names that declarations and parameters in a piece of code introduce.
fn declared_in<'t>(code: Node, all: &'t str) -> BTreeSet<&'t str> {
    let mut names = BTreeSet::new();
    for node in code.descendants() {
        if matches!(
            node.kind(),
            Kind::Declaration | Kind::ParameterDeclaration | Kind::ForRangeLoop
        ) {
            for declarator in node.fields(Field::Declarator) {
                names.insert(&all[declared_name(declarator).byte_range()]);
            }
        }
    }
    names
}
