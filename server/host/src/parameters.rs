//! Which function a call means, and what its parameters then hold.

use std::rc::Rc;

use warplens_syntax::{Field, Kind, Node};

use super::arguments::Argument;
use super::containers::whole;
use super::index::{declared_name, plain};
use super::nodes::{parameter_list, parts, text};
use super::state::Host;
use super::value::{Meaning, Place, Value};
use warplens_hir::Source;
use warplens_ir::{Bindings, Type};

impl Host<'_> {
    /// Which of several functions a call means; `None` where that is not clear.
    pub(super) fn best(
        &mut self,
        candidates: &[(Node, Option<Node>, Source)],
        arguments: &[Argument],
        bindings: &Bindings,
        source: Source,
    ) -> Option<usize> {
        let mut fitting: Vec<usize> = (0..candidates.len())
            .filter(|&at| takes(candidates[at].0, arguments.len(), candidates[at].2))
            .collect();
        if fitting.len() > 1 {
            let types: Vec<Option<Type>> = arguments
                .iter()
                .map(|argument| self.argument_type(argument, source))
                .collect();
            let mut scored: Vec<(i32, usize)> = Vec::new();
            for &at in &fitting {
                let (node, template, callee) = candidates[at];
                let mut score = 0;
                let parameters = parameter_list(node).map(parts).unwrap_or_default();
                for (parameter, ty) in parameters.into_iter().zip(&types) {
                    let Some(ty) = ty else { continue };
                    let declared = match parameter.field(Field::Declarator) {
                        Some(declarator) => self.under(bindings.clone(), callee, |host| {
                            host.declared_type(parameter.field(Field::Type), declarator, callee)
                        }),
                        None => match parameter.field(Field::Type) {
                            Some(ty) => self
                                .lowered(&[ty], callee, |lowering| lowering.host_type(ty, callee))
                                .unwrap_or(Type::Unknown(String::new())),
                            None => Type::Unknown(String::new()),
                        },
                    };
                    score += match (&declared, ty) {
                        (declared, ty) if declared == ty => 4,
                        (Type::Int { .. }, Type::Int { .. })
                        | (Type::Float { .. }, Type::Float { .. }) => 2,
                        (Type::Unknown(_), _) => i32::from(template.is_some()),
                        (Type::Pointer(to, _), Type::Pointer(..))
                            if matches!(**to, Type::Unknown(_)) =>
                        {
                            2
                        }
                        (
                            Type::Int { .. } | Type::Float { .. },
                            Type::Int { .. } | Type::Float { .. },
                        ) => 1,
                        _ => -4,
                    };
                }
                scored.push((score, at));
            }
            let most = scored.iter().map(|(score, _)| *score).max()?;
            let winners: Vec<usize> = scored
                .iter()
                .filter(|(score, _)| *score == most)
                .map(|(_, at)| *at)
                .collect();
            fitting = winners;
            // One that takes just these goes before one that takes any number.
            let of_any = |at: &usize| {
                let (node, _, callee) = candidates[*at];
                parameter_list(node).is_some_and(|list| text(list, callee).contains("..."))
            };
            if !fitting.iter().all(of_any) {
                fitting.retain(|at| !of_any(at));
            }
        }
        match fitting.as_slice() {
            [at] => Some(*at),
            // One function twice: in branches of a conditional, or declared for several targets.
            [first, ..] if candidates[*first].1.is_none() => Some(*first),
            _ => None,
        }
    }

    /// Gives parameters the values of a call; which places are written back when it ends.
    pub(super) fn bind_arguments(
        &mut self,
        parameters: &[Node],
        arguments: &[Argument],
        callee: Source,
    ) -> Vec<(Place, Place)> {
        let named = |argument: &Argument| matches!(argument.value, Value::Reference(_));
        if arguments.iter().any(named) {
            let arguments: Vec<Argument> = arguments
                .iter()
                .map(|argument| match &argument.value {
                    Value::Reference(named) => self.at_place(named),
                    value => Argument {
                        value: value.clone(),
                        place: argument.place.clone(),
                        node: argument.node,
                    },
                })
                .collect();
            return self.bind_arguments(parameters, &arguments, callee);
        }
        let mut back = Vec::new();
        for (at, parameter) in parameters.iter().enumerate() {
            let Some(declarator) = parameter.field(Field::Declarator) else {
                continue;
            };
            let name = text(declared_name(declarator), callee)
                .trim_start_matches(['.', '&', ' '])
                .to_owned();
            if parameter.kind().is_variadic() || text(*parameter, callee).contains("...") {
                let mut slots = Vec::new();
                for argument in arguments.get(at..).unwrap_or(&[]) {
                    let slot = match &argument.place {
                        Some(place) if place.path.is_empty() => place.slot,
                        _ => {
                            let value = argument.value.clone();
                            self.slot(Type::Unknown(String::new()), value, false)
                        }
                    };
                    slots.push(slot);
                }
                let pack = Value::Pack(Rc::new(slots));
                let slot = self.slot(Type::Unknown(String::new()), pack, false);
                self.bind(&name, Meaning::Slot(slot));
                break;
            }
            let reference = declarator.kind() == Kind::ReferenceDeclarator;
            let Some(argument) = arguments.get(at) else {
                let ty = self.declared_type(parameter.field(Field::Type), declarator, callee);
                let value = match parameter.field(Field::DefaultValue) {
                    Some(default) => self.eval(default, callee),
                    None => Value::Unknown,
                };
                let value = dims_where(is_dim3(*parameter, callee), value).converted(&ty);
                let slot = self.slot(ty, value, false);
                self.slots[slot].decays = false;
                self.bind(&name, Meaning::Slot(slot));
                continue;
            };
            if reference
                && let Some(place) = &argument.place
                && place.path.is_empty()
                && (!is_dim3(*parameter, callee)
                    || matches!(self.slots[place.slot].value, Value::Dims(_)))
            {
                self.bind(&name, Meaning::Slot(place.slot));
                continue;
            }
            let ty = self.declared_type(parameter.field(Field::Type), declarator, callee);
            let pointer = declarator.kind() == Kind::PointerDeclarator
                || declarator.kind() == Kind::ArrayDeclarator;
            let mut value = argument.value.clone();
            if !pointer {
                value = dims_where(is_dim3(*parameter, callee), value).converted(&ty);
                if let (Value::Array(values), Some(class)) = (
                    &value,
                    parameter
                        .field(Field::Type)
                        .map(|ty| plain(text(ty, callee))),
                ) && self.index.classes.contains_key(&class)
                {
                    let class = self.instance(parameter.field(Field::Type), callee);
                    value = self.by_position(&class, values.as_ref().clone());
                }
            }
            let given = argument.place.as_ref();
            let container = given.filter(|place| !pointer && self.is_container(place));
            let container = container.map(|place| place.slot);
            let value = match &argument.place {
                Some(_) if !reference => self.copy_of(value),
                _ => value,
            };
            let slot = self.slot(ty, value, false);
            self.slots[slot].decays = false;
            if let Some(container) = container
                && self.running.is_some()
                && self.is_container(&whole(slot))
            {
                self.assign(&whole(slot), Value::Container(container));
            }
            self.bind(&name, Meaning::Slot(slot));
            if reference
                && let Some(place) = &argument.place
                && !text(*parameter, callee).contains("const")
            {
                let from = Place {
                    slot,
                    path: Vec::new(),
                };
                back.push((from, place.clone()));
            }
        }
        back
    }

    pub(super) fn unbound_parameter(&mut self, parameter: Node, source: Source) {
        let Some(declarator) = parameter.field(Field::Declarator) else {
            return;
        };
        let ty = self.declared_type(parameter.field(Field::Type), declarator, source);
        let slot = self.slot(ty, Value::Unknown, false);
        // By type it is a pointer, not an array.
        self.slots[slot].decays = false;
        self.bind(text(declared_name(declarator), source), Meaning::Slot(slot));
    }
}

/// True where that number of arguments can be given.
pub(super) fn takes(function: Node, given: usize, source: Source) -> bool {
    let Some(list) = parameter_list(function) else {
        return false;
    };
    let all = parts(list);
    if let [only] = all.as_slice()
        && text(*only, source).trim() == "void"
    {
        return given == 0;
    }
    let variadic = text(list, source).contains("...");
    let optional = all
        .iter()
        .filter(|parameter| {
            parameter.kind() == Kind::OptionalParameterDeclaration || parameter.kind().is_variadic()
        })
        .count();
    let packs = usize::from(
        variadic
            && all
                .last()
                .is_some_and(|last| text(*last, source).contains("...")),
    );
    let least = all.len() - optional.max(packs.min(all.len()));
    given >= least && (given <= all.len() || variadic)
}

fn is_dim3(parameter: Node, source: Source) -> bool {
    parameter
        .field(Field::Type)
        .is_some_and(|ty| plain(text(ty, source)) == "dim3")
}

fn dims_where(dim3: bool, value: Value) -> Value {
    match value {
        value @ (Value::Int(..)
        | Value::Float(..)
        | Value::Linked(_)
        | Value::Array(_)
        | Value::Record(_))
            if dim3 =>
        {
            Value::Dims(value.extents())
        }
        value => value,
    }
}
