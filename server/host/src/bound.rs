//! Calls that the program keeps with some of their arguments, `std::bind`, and references that it hands on as values, `std::ref`.
//!
//! What holds: what is bound by reference is read where the call is made; a placeholder is the argument of that number of this call.

use std::rc::Rc;

use warplens_hir::Source;
use warplens_ir::Type;
use warplens_syntax::{Field, Kind, Node};

use super::arguments::Argument;
use super::index::plain;
use super::nodes::{parts, text};
use super::state::Host;
use super::value::{BoundArgument, BoundCall, FunctionName, Place, Value};

impl Host<'_> {
    /// `std::ref`, `std::bind`, `std::invoke`; `None` for another function, or where what is bound is not followed.
    pub(super) fn binding_call(
        &mut self,
        node: Node,
        name: &str,
        arguments: &[Argument],
        source: Source,
    ) -> Option<Value> {
        match (name, arguments) {
            ("ref" | "cref", [one]) => Some(Value::Reference(one.place.clone()?)),
            ("bind", [called, given @ ..]) => self.bound(called, given, source),
            ("mem_fn", [called]) if matches!(called.value, Value::Function(_)) => {
                Some(called.value.clone())
            }
            ("invoke", [called, given @ ..]) => self.call_value(&called.value, node, given, source),
            _ => None,
        }
    }

    /// `std::ref(a)` and `reference.get()` as the variable that they name.
    pub(super) fn referred(&mut self, call: Node, source: Source) -> Option<Place> {
        self.running.as_ref()?;
        let function = call.field(Field::Function)?;
        if function.kind() == Kind::FieldExpression {
            let named = text(function.field(Field::Field)?, source);
            let object = function.field(Field::Argument).filter(|_| named == "get")?;
            let place = self.place(object, source)?;
            return match self.read(&place) {
                Value::Reference(named) => Some(named),
                _ => None,
            };
        }
        if !matches!(text(function, source), "std::ref" | "std::cref") {
            return None;
        }
        let of = parts(call.field(Field::Arguments)?).into_iter().next()?;
        self.place(of, source)
    }

    /// The class that a qualified name begins with, where it is one of the program's.
    pub(super) fn class_named(&self, name: Node, source: Source) -> Option<String> {
        let scope = name.field(Field::Scope)?;
        let class = plain(text(scope, source));
        self.index.classes.contains_key(&class).then_some(class)
    }

    /// A function of a class, as a pointer to it names it.
    pub(super) fn member_function(
        &self,
        qualified: Node,
        name: &str,
        source: Source,
    ) -> Option<Value> {
        self.running.as_ref()?;
        let class = self.class_named(qualified, source)?;
        let classes = self.with_bases(&class);
        let functions = self.index.by_name.get(name)?.iter();
        let mut classes_of = functions.filter_map(|&at| self.index.functions[at].class.as_ref());
        classes_of.any(|of| classes.contains(of)).then(|| {
            Value::Function(Rc::new(FunctionName {
                name: name.to_owned(),
                class: Some(class),
                template_args: Vec::new(),
            }))
        })
    }

    /// The object that the first argument of a call by a pointer to a member function is, or points to.
    pub(super) fn object_given(&self, argument: &Argument) -> Option<(Place, String)> {
        let place = match &argument.value {
            Value::Address(place) | Value::Reference(place) => place.clone(),
            _ => argument.place.clone()?,
        };
        match self.read(&place) {
            Value::Record(record) => Some((place, record.class.clone())),
            _ => None,
        }
    }

    fn bound(&mut self, called: &Argument, given: &[Argument], source: Source) -> Option<Value> {
        if !matches!(called.value, Value::Function(_) | Value::Lambda(_)) {
            return None;
        }
        let mut arguments = Vec::new();
        for one in given {
            arguments.push(match (&one.value, one.node) {
                // A bound call among the arguments is made first.
                (Value::Bound(_), _) => return None,
                (Value::Reference(named), _) => BoundArgument::At(named.clone()),
                (Value::Unknown, Some(node)) if let Some(at) = placeholder(node, source) => {
                    BoundArgument::Placeholder(at)
                }
                // It is copied.
                _ => {
                    let ty = match &one.place {
                        Some(place) if place.path.is_empty() => self.slots[place.slot].ty.clone(),
                        _ => Type::Unknown(String::new()),
                    };
                    let value = self.copy_of(one.value.clone());
                    BoundArgument::At(self.temporary(ty, value))
                }
            });
        }
        Some(Value::Bound(Rc::new(BoundCall {
            called: called.value.clone(),
            arguments,
        })))
    }

    /// Makes a bound call with these arguments; `None` where it is not walked.
    pub(super) fn call_bound(
        &mut self,
        bound: &BoundCall,
        node: Node,
        arguments: &[Argument],
        source: Source,
    ) -> Option<Value> {
        let given = bound.arguments.iter().map(|one| match one {
            BoundArgument::At(place) => self.at_place(place),
            BoundArgument::Placeholder(at) => match arguments.get(*at) {
                Some(argument) => Argument {
                    value: argument.value.clone(),
                    place: argument.place.clone(),
                    node: argument.node,
                },
                None => Argument::of(Value::Unknown),
            },
        });
        let given: Vec<Argument> = given.collect();
        self.call_value(&bound.called, node, &given, source)
    }

    /// A variable as an argument.
    pub(super) fn at_place(&self, place: &Place) -> Argument<'static> {
        let value = match self.read(place) {
            Value::Array(_) | Value::Data(_) if !self.is_container(place) => {
                Value::Address(place.clone())
            }
            value => value,
        };
        Argument {
            value,
            place: Some(place.clone()),
            node: None,
        }
    }

    /// A bound call goes where it may be made any number of times: what it is bound to by reference and what it changes is unknown.
    pub(super) fn may_be_called(&mut self, value: &Value, node: Option<Node>, source: Source) {
        let touched = self.touched_mark();
        let known = self.slots.len();
        match value {
            Value::Lambda(lambda) => {
                let lambda = Rc::clone(&lambda.0);
                self.perhaps(|host| host.call_lambda(&lambda, None));
            }
            Value::Bound(bound) => {
                let bound = Rc::clone(bound);
                if let Some(node) = node {
                    self.perhaps(|host| host.call_bound(&bound, node, &[], source));
                }
                for one in &bound.arguments {
                    if let BoundArgument::At(place) = one {
                        self.forget_at(place);
                    }
                }
            }
            _ => return,
        }
        // It may still be called after they are given other values.
        let written = self.touched_since(touched).filter(|slot| *slot < known);
        let written: Vec<usize> = written.collect();
        self.pointees.extend(written);
        self.forget_touched(touched);
    }
}

/// `_1`, `std::placeholders::_2`: which argument of the call, from 0.
fn placeholder(node: Node, source: Source) -> Option<usize> {
    let name = plain(text(node, source));
    let at: usize = name.strip_prefix('_')?.parse().ok()?;
    at.checked_sub(1)
}
