//! Containers of the standard library and of thrust: a variable of an array type without extent has the elements.
//!
//! A container that is a member of a structure, or the value of a call, is such a variable of its own, which the value
//! names ([`Value::Container`]). What holds: a structure that is copied has copies of its containers.

use std::rc::Rc;

use warplens_hir::Source;
use warplens_ir::Type;
use warplens_syntax::{Kind, Node};

use super::arguments::Argument;
use super::nodes::parts;
use super::state::Host;
use super::value::{Place, Record, Value};

/// References that name one another.
const DEEPEST_REFERENCES: u32 = 8;

impl Host<'_> {
    /// The place itself, or the variable that has the elements of a container there.
    pub(super) fn resolved(&self, place: Place) -> Place {
        let mut place = place;
        // A reference may be made of itself.
        for _ in 0..DEEPEST_REFERENCES {
            if place.path.is_empty() {
                break;
            }
            match self.read(&place) {
                Value::Container(slot) => return whole(slot),
                Value::Reference(named) => place = named,
                _ => break,
            }
        }
        place
    }

    /// The container that an expression names, in a run.
    pub(super) fn container_named(&mut self, node: Node, source: Source) -> Option<usize> {
        self.running.as_ref()?;
        let named = match node.kind() {
            Kind::Identifier | Kind::TypeIdentifier | Kind::FieldExpression => node,
            Kind::ParenthesizedExpression => parts(node).into_iter().next()?,
            _ => return None,
        };
        let place = self.place(named, source)?;
        self.is_container(&place).then_some(place.slot)
    }

    /// The container that an expression names, or that is its value.
    pub(super) fn container_in(
        &mut self,
        node: Node,
        value: &Value,
        source: Source,
    ) -> Option<usize> {
        match value {
            Value::Container(slot) => Some(*slot),
            _ => self.container_named(node, source),
        }
    }

    /// Whether there is a whole container; an array of C has an extent or decays.
    pub(super) fn is_container(&self, place: &Place) -> bool {
        place.path.is_empty() && self.slots[place.slot].is_container()
    }

    /// Gives a place a value; a container gets its own elements.
    pub(super) fn assign(&mut self, place: &Place, value: Value) {
        let (value, bytes) = match value {
            Value::Container(other) => {
                if self.slots[place.slot].kept.is_none() && place.path.is_empty() {
                    let kept = self.slots[other].kept.clone();
                    self.slots[place.slot].kept = kept;
                }
                let other = &self.slots[other];
                (other.value.clone(), other.bytes)
            }
            value => (self.copy_of(value), None),
        };
        let container = self.is_container(place);
        // The elements of a list of numbers have the container's type.
        let bytes = bytes.or(match (&value, &self.slots[place.slot].ty) {
            (Value::Data(data), _) => Some(data.0.len() as u64),
            (Value::Array(values), Type::Array(element, _)) => {
                let size = element.size();
                let all = (values.len() as u64).checked_mul(size);
                all.filter(|_| size > 0 || values.is_empty())
            }
            _ => None,
        });
        self.write(place, value);
        if container {
            self.set_bytes(place.slot, bytes);
        }
    }

    /// Gives a new container what its constructor is given: a number of elements, another container, two iterators.
    pub(super) fn fill_container(&mut self, slot: usize, given: &[Argument]) {
        let place = whole(slot);
        let pointed = |host: &Self, value: &Value| match value {
            Value::Address(other) => {
                let array = matches!(host.slots[other.slot].ty, Type::Array(..));
                (array && other.path.is_empty()).then_some(other.slot)
            }
            Value::Container(other) => Some(*other),
            _ => None,
        };
        match given {
            [] => self.assign(&place, Value::list(Vec::new())),
            [one] => {
                let other = one.place.as_ref().filter(|other| self.is_container(other));
                let other = other.map(|other| other.slot);
                match other.or_else(|| pointed(self, &one.value)) {
                    Some(other) => self.assign(&place, Value::Container(other)),
                    None => match &one.value {
                        value @ (Value::Array(_) | Value::Data(_)) => {
                            self.assign(&place, value.clone());
                        }
                        count => self.sized(slot, count, None),
                    },
                }
            }
            [first, last, ..] => match (&first.value, &last.value) {
                (Value::Address(first), Value::Address(last))
                    if self.elements_from_to(first, last).is_some() =>
                {
                    let elements = self.elements_from_to(first, last);
                    self.assign(&place, elements.unwrap_or(Value::Unknown));
                }
                (Value::Address(first), Value::Address(last)) => {
                    let count = if first.slot == last.slot {
                        elements_between(first, last)
                    } else {
                        None
                    };
                    let count = count.unwrap_or(Value::Unknown);
                    self.sized(slot, &count, Some(&Value::Unknown));
                }
                (count, filling) => {
                    let filling = filling.clone();
                    self.sized(slot, count, Some(&filling));
                }
            },
        }
    }

    /// The elements of an array from one to another, where the array is a list.
    fn elements_from_to(&self, first: &Place, last: &Place) -> Option<Value> {
        let (from, to) = (first.element()?, last.element()?);
        if first.slot != last.slot {
            return None;
        }
        let Value::Array(all) = &self.slots.get(first.slot)?.value else {
            return None;
        };
        Some(Value::list(all.get(from..to)?.to_vec()))
    }

    /// A copy of what a variable holds: not known where its class says itself what that is.
    pub(super) fn copy_of(&mut self, value: Value) -> Value {
        match value {
            Value::Record(record)
                if self.running.is_some() && self.copies_by_itself(&record.class) =>
            {
                Value::Unknown
            }
            value => self.copied_containers(value),
        }
    }

    /// The same structure with containers of its own.
    fn copied_containers(&mut self, value: Value) -> Value {
        match value {
            Value::Record(record) if has_container(&record) => {
                let mut record = (*record).clone();
                for (_, field) in &mut record.fields {
                    let value = std::mem::replace(field, Value::Unknown);
                    *field = self.given_away(value);
                }
                Value::Record(Rc::new(record))
            }
            value => value,
        }
    }

    /// A value in which any number may be another one; its containers are as long as they were.
    pub(super) fn without_numbers(&mut self, value: Value, place: &Place) -> Value {
        match value {
            Value::Record(record) => {
                let mut record = (*record).clone();
                for (_, field) in &mut record.fields {
                    let value = std::mem::replace(field, Value::Unknown);
                    *field = self.without_numbers(value, place);
                }
                Value::Record(Rc::new(record))
            }
            Value::Container(slot) => {
                self.forget_elements(slot);
                Value::Container(slot)
            }
            _ => {
                if self.is_container(place) {
                    self.forget_elements(place.slot);
                }
                Value::Unknown
            }
        }
    }

    /// A container is as long as it was, with other elements.
    fn forget_elements(&mut self, slot: usize) {
        let element = self.slots[slot].ty.element().map_or(0, Type::size);
        let length = self.length_of(&whole(slot));
        let length = length.and_then(|length| u64::try_from(length.as_int()?).ok());
        let bytes = length.and_then(|length| length.checked_mul(element));
        self.write(&whole(slot), Value::Unknown);
        self.set_bytes(slot, bytes.filter(|_| element > 0));
    }

    /// A value as a function gives it by value: it has containers of its own.
    pub(super) fn given_away(&mut self, value: Value) -> Value {
        match value {
            Value::Container(slot) => {
                let copy = self.slot(self.slots[slot].ty.clone(), Value::Unknown, false);
                self.slots[copy].decays = false;
                self.assign(&whole(copy), Value::Container(slot));
                Value::Container(copy)
            }
            value => self.copied_containers(value),
        }
    }

    /// `std::move` and what else leaves its arguments with other contents; `None` for another function.
    pub(super) fn moving_call(&mut self, name: &str, arguments: &[Argument]) -> Option<Value> {
        let holds = |host: &Self, argument: &Argument| {
            let place = argument.place.clone()?;
            let object = host.is_container(&place) || matches!(argument.value, Value::Record(_));
            object.then_some(place)
        };
        match (name, arguments) {
            ("move", [from]) => {
                let place = holds(self, from)?;
                let value = if self.is_container(&place) {
                    Value::Container(place.slot)
                } else {
                    from.value.clone()
                };
                let value = self.given_away(value);
                self.forget_whole(&place);
                Some(value)
            }
            ("swap", [a, b]) if self.exchanged(a, b) => Some(Value::Unknown),
            ("exchange", [object, new]) => {
                let place = object.place.clone()?;
                let holds = self.is_container(&place) || self.is_container_value(&new.value);
                let old = self.read(&place);
                if holds || matches!(old, Value::Unknown) {
                    self.forget_whole(&place);
                    return Some(Value::Unknown);
                }
                self.write(&place, new.value.clone());
                Some(old)
            }
            ("swap" | "exchange" | "back_inserter" | "front_inserter" | "inserter", [..]) => {
                for argument in arguments {
                    match (&argument.place, &argument.value) {
                        (_, Value::Address(to)) => self.forget_whole(to),
                        (Some(place), _) => self.forget_whole(place),
                        (None, _) => {}
                    }
                }
                Some(Value::Unknown)
            }
            _ => None,
        }
    }

    /// Two variables have each the other's value; false where it is not known where both are.
    fn exchanged(&mut self, a: &Argument, b: &Argument) -> bool {
        let (Some(first), Some(second)) = (&a.place, &b.place) else {
            return false;
        };
        let (was, is) = (self.read(first), self.read(second));
        match (self.is_container(first), self.is_container(second)) {
            (true, true) if first.path.is_empty() && second.path.is_empty() => {
                let bytes = [first, second].map(|place| self.slots[place.slot].bytes);
                self.write(first, is);
                self.write(second, was);
                self.set_bytes(first.slot, bytes[1]);
                self.set_bytes(second.slot, bytes[0]);
            }
            (false, false) => {
                self.write(first, is);
                self.write(second, was);
            }
            _ => return false,
        }
        true
    }

    fn is_container_value(&self, value: &Value) -> bool {
        matches!(
            value,
            Value::Container(_) | Value::Array(_) | Value::Data(_)
        )
    }

    /// Nothing is known any more of what is there, not even how long it is.
    fn forget_whole(&mut self, place: &Place) {
        self.forget_at(place);
        self.forget_length(place);
    }

    /// A container that is given away as a whole may grow.
    pub(super) fn forget_length(&mut self, place: &Place) {
        if self.is_container(place) {
            self.set_bytes(place.slot, None);
        }
    }

    /// What is not known any more includes the elements of the containers there.
    pub(super) fn forget_containers(&mut self, place: &Place) {
        let mut open = vec![self.read(place)];
        while let Some(value) = open.pop() {
            match value {
                Value::Container(slot) => {
                    self.set_bytes(slot, None);
                    self.write(&whole(slot), Value::Unknown);
                }
                Value::Reference(named) => self.write(&named, Value::Unknown),
                Value::Record(record) => {
                    let fields = record.fields.iter();
                    let leading = |value: &&Value| {
                        matches!(
                            value,
                            Value::Container(_) | Value::Record(_) | Value::Reference(_)
                        )
                    };
                    open.extend(fields.map(|(_, value)| value).filter(leading).cloned());
                }
                _ => {}
            }
        }
    }
}

/// A whole variable.
pub(super) fn whole(slot: usize) -> Place {
    Place {
        slot,
        path: Vec::new(),
    }
}

/// The number of elements from one place of an array to another.
fn elements_between(first: &Place, last: &Place) -> Option<Value> {
    let count = last.element()?.checked_sub(first.element()?)?;
    Some(Value::Int(i64::try_from(count).ok()?, 64, false))
}

pub(super) fn has_container(record: &Record) -> bool {
    record.fields.iter().any(|(_, value)| match value {
        Value::Container(_) => true,
        Value::Record(inner) => has_container(inner),
        _ => false,
    })
}
