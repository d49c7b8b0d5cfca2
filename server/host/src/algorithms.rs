//! The algorithms of the standard library and of thrust that give arrays their numbers, in a run: `iota`, `fill`,
//! `accumulate` and the like.
//!
//! What holds: an array that an algorithm writes and of which something is not known is unknown from then on, its
//! number of elements stays.

use std::cmp::Ordering;

use warplens_hir::Source;
use warplens_ir::Type;
use warplens_syntax::{BinaryOperator as Op, Node};

use super::arguments::Argument;
use super::containers::whole;
use super::data::{Data, DataRef, LARGEST};
use super::kinds::{Number, real};
use super::numbers::{bits_of, value_of};
use super::state::Host;
use super::value::{MOST_ELEMENTS, Place, Step, Value, binary};

/// Elements that a function is called for.
const MOST_ASKED: usize = 1_024;

/// Elements from one iterator to another.
#[derive(Clone, Copy)]
struct Elements {
    slot: usize,
    first: usize,
    count: usize,
}

impl Host<'_> {
    /// Such an algorithm; `None` for another function.
    pub(super) fn algorithm_call(
        &mut self,
        name: &str,
        arguments: &[Argument],
        node: Node,
        source: Source,
    ) -> Option<Value> {
        self.running.as_ref()?;
        // An execution policy comes before the iterators.
        let policy = arguments
            .first()
            .is_some_and(|first| !matches!(first.value, Value::Address(_)));
        let arguments = &arguments[usize::from(policy && arguments.len() > 2)..];
        let [first, second, rest @ ..] = arguments else {
            return None;
        };
        let Value::Address(from) = &first.value else {
            return None;
        };
        let given = rest.first().map(|argument| argument.value.clone());
        let between = Elements::between(from, &second.value);
        let asks = matches!(&given, Some(Value::Lambda(_) | Value::Function(_)));
        let last_asks = rest
            .last()
            .is_some_and(|last| matches!(last.value, Value::Lambda(_) | Value::Function(_)));
        if let Some(elements) = between.filter(|_| asks || last_asks) {
            return self.asking(name, elements, rest, node, source);
        }
        if let (Some(elements), Some(wanted)) = (between, &given)
            && let Some(value) = self.searched(name, elements, wanted)
        {
            return Some(value);
        }
        if let ("distance", Some(elements), []) = (name, between, rest) {
            return Some(Value::Int(i64::try_from(elements.count).ok()?, 64, true));
        }
        let written = match (name, rest.len()) {
            ("iota", 1) | ("sequence", 0..=2) => {
                let start = given.unwrap_or(Value::int(0));
                let step = rest.get(1).map_or(Value::int(1), |step| step.value.clone());
                self.each_element(between?, |at, kind| {
                    let by = binary(Op::Multiply, &Value::Int(at as i64, 64, true), &step);
                    bits_of(&binary(Op::Add, &start, &by), kind)
                })
            }
            ("fill", 1) => {
                let value = given?;
                self.each_element(between?, |_, kind| bits_of(&value, kind))
            }
            ("fill_n", 1) => {
                let (count, value) = (second.value.as_int()?, given?);
                let elements = Elements::counted(from, count)?;
                self.each_element(elements, |_, kind| bits_of(&value, kind))
            }
            ("sort" | "stable_sort", 0) => {
                let elements = between?;
                let mut all = self.numbers_of(elements)?;
                let kind = self.kind_of(elements.slot)?;
                all.sort_by(|a, b| compared(kind, *a, *b));
                self.each_element(elements, |at, _| all.get(at).copied())
            }
            ("shuffle", 1) => {
                let elements = between?;
                let mut all = self.numbers_of(elements)?;
                for (at, with) in self.shuffled_by(rest.first()?, elements.count)? {
                    all.swap(at, with);
                }
                self.each_element(elements, |at, _| all.get(at).copied())
            }
            ("reverse", 0) => {
                let elements = between?;
                let all = self.numbers_of(elements)?;
                self.each_element(elements, |at, _| all.get(all.len() - 1 - at).copied())
            }
            ("partial_sum" | "inclusive_scan" | "exclusive_scan", 1 | 2) => {
                return self.sums(name, between?, rest);
            }
            ("accumulate" | "reduce", 0 | 1) => {
                let elements = between?;
                let kind = self.kind_of(elements.slot)?;
                let start = given.unwrap_or(value_of(0, kind));
                let numbers = self.numbers_of(elements)?;
                // A sum of floating point depends on its order.
                if kind.is_float() || !matches!(start, Value::Int(..)) {
                    return None;
                }
                let sum = numbers.into_iter().fold(start.clone(), |sum, one| {
                    let sum = binary(Op::Add, &sum, &value_of(one, kind));
                    match start {
                        Value::Int(_, bits, signed) => sum.converted(&Type::Int { bits, signed }),
                        _ => sum,
                    }
                });
                return Some(sum);
            }
            ("max_element" | "min_element", 0) => {
                let elements = between?;
                let kind = self.kind_of(elements.slot)?;
                let numbers = self.numbers_of(elements)?;
                let mut best = 0;
                for at in 1..numbers.len() {
                    let order = compared(kind, numbers[at], numbers[best]);
                    let wanted = match name {
                        "max_element" => Ordering::Greater,
                        _ => Ordering::Less,
                    };
                    best = if order == wanted { at } else { best };
                }
                return Some(Value::Address(Place {
                    slot: elements.slot,
                    path: vec![Step::Index(Some(elements.first + best))],
                }));
            }
            _ => return None,
        };
        if written.is_none() {
            self.write(&whole(from.slot), Value::Unknown);
        }
        Some(Value::Unknown)
    }

    /// An algorithm that calls a function or a lambda for elements; `None` for one that is not followed.
    fn asking(
        &mut self,
        name: &str,
        elements: Elements,
        rest: &[Argument],
        node: Node,
        source: Source,
    ) -> Option<Value> {
        let called = rest.last()?.value.clone();
        let all = self.values_of(elements)?;
        let place = |at: usize| Place {
            slot: elements.slot,
            path: vec![Step::Index(Some(elements.first + at))],
        };
        let element = |at: usize, value: &Value| Argument {
            value: value.clone(),
            place: Some(place(at)),
            node: None,
        };
        match (name, rest.len()) {
            ("count_if" | "any_of" | "all_of" | "none_of" | "find_if", 1) => {
                let mut count = 0;
                let mut found = None;
                for (at, value) in all.iter().enumerate() {
                    let given = [element(at, value)];
                    let answer = self.call_value(&called, node, &given, source)?;
                    // What is asked of the others may change something.
                    let Some(answer) = self.truth_of(&answer) else {
                        return Some(Value::Unknown);
                    };
                    count += i64::from(answer);
                    let ends = match name {
                        "count_if" => false,
                        "all_of" => !answer,
                        _ => answer,
                    };
                    if ends {
                        found = Some(at);
                        break;
                    }
                }
                Some(match name {
                    "count_if" => Value::Int(count, 64, true),
                    "any_of" => Value::truth(found.is_some()),
                    "all_of" | "none_of" => Value::truth(found.is_none()),
                    _ => Value::Address(place(found.unwrap_or(elements.count))),
                })
            }
            ("for_each", 1) => {
                for (at, value) in all.iter().enumerate() {
                    self.call_value(&called, node, &[element(at, value)], source)?;
                }
                Some(Value::Unknown)
            }
            ("transform", 2) => {
                let Value::Address(to) = &rest.first()?.value else {
                    return None;
                };
                let target = Elements::counted(to, i64::try_from(elements.count).ok()?)?;
                if self.values_of(target).is_none() && self.numbers_of(target).is_none() {
                    return None;
                }
                for (at, value) in all.iter().enumerate() {
                    let made = self.call_value(&called, node, &[element(at, value)], source)?;
                    let place = Place {
                        slot: target.slot,
                        path: vec![Step::Index(Some(target.first + at))],
                    };
                    self.write(&place, made);
                }
                Some(Value::Unknown)
            }
            ("accumulate", 2) => {
                let mut sum = rest.first()?.value.clone();
                for value in all {
                    let both = [Argument::of(sum), Argument::of(value)];
                    sum = self.call_value(&called, node, &both, source)?;
                }
                Some(sum)
            }
            ("sort" | "stable_sort", 1) => {
                let sorted = self.sorted_by(&called, all, node, source);
                let sorted = sorted.unwrap_or_else(|| vec![Value::Unknown; elements.count]);
                for (at, value) in sorted.into_iter().enumerate() {
                    self.write(&place(at), value);
                }
                Some(Value::Unknown)
            }
            ("max_element" | "min_element", 1) => {
                let mut best = 0;
                for at in 1..all.len() {
                    let both = match name {
                        "max_element" => [all.get(best)?, all.get(at)?],
                        _ => [all.get(at)?, all.get(best)?],
                    };
                    let both = both.map(|value| Argument::of(value.clone()));
                    let less = self.call_value(&called, node, &both, source)?;
                    match self.truth_of(&less) {
                        Some(true) => best = at,
                        Some(false) => {}
                        None => return Some(Value::Unknown),
                    }
                }
                Some(Value::Address(place(best)))
            }
            _ => None,
        }
    }

    /// Values in the order that a function says, equal ones as they were; `None` where it does not say it.
    fn sorted_by(
        &mut self,
        less: &Value,
        all: Vec<Value>,
        node: Node,
        source: Source,
    ) -> Option<Vec<Value>> {
        let mut sorted: Vec<Value> = Vec::with_capacity(all.len());
        for value in all {
            let (mut low, mut high) = (0, sorted.len());
            while low < high {
                let middle = low.midpoint(high);
                let other = sorted.get(middle)?.clone();
                let both = [Argument::of(value.clone()), Argument::of(other)];
                let before = self.call_value(less, node, &both, source)?;
                if self.truth_of(&before)? {
                    high = middle;
                } else {
                    low = middle + 1;
                }
            }
            sorted.insert(low, value);
        }
        Some(sorted)
    }

    /// Where a value would be among elements that are sorted, or how often it is among them.
    fn searched(&mut self, name: &str, elements: Elements, wanted: &Value) -> Option<Value> {
        let operator = match name {
            "lower_bound" => Op::Less,
            "upper_bound" => Op::LessEqual,
            "count" => Op::Equal,
            _ => return None,
        };
        let mut count = 0usize;
        for value in self.values_of(elements)? {
            match binary(operator, &value, wanted).decided() {
                Some(holds) => count += usize::from(holds),
                None => return Some(Value::Unknown),
            }
        }
        Some(match name {
            "count" => Value::Int(i64::try_from(count).ok()?, 64, true),
            _ => Value::Address(Place {
                slot: elements.slot,
                path: vec![Step::Index(Some(elements.first + count))],
            }),
        })
    }

    /// The values of elements, where they are not too many.
    fn values_of(&self, elements: Elements) -> Option<Vec<Value>> {
        if elements.count > MOST_ASKED {
            return None;
        }
        let end = elements.first.checked_add(elements.count)?;
        match &self.slots.get(elements.slot)?.value {
            Value::Array(values) => Some(values.get(elements.first..end)?.to_vec()),
            Value::Data(data) => Some((elements.first..end).map(|at| data.0.element(at)).collect()),
            _ => None,
        }
    }

    /// Sums of the elements until each, in an array of the same kind.
    fn sums(&mut self, name: &str, elements: Elements, rest: &[Argument]) -> Option<Value> {
        let [
            Argument {
                value: Value::Address(to),
                ..
            },
            more @ ..,
        ] = rest
        else {
            return None;
        };
        let exclusive = name == "exclusive_scan";
        let kind = self.kind_of(elements.slot)?;
        if more.len() != usize::from(exclusive) && !more.is_empty() {
            return None;
        }
        let start = more
            .first()
            .map_or(value_of(0, kind), |start| start.value.clone());
        let target = Elements::counted(to, i64::try_from(elements.count).ok()?)?;
        let sums = (!kind.is_float() && self.kind_of(target.slot) == Some(kind))
            .then(|| self.numbers_of(elements))
            .flatten()
            .and_then(|numbers| {
                let mut sum = start;
                let sums = numbers.into_iter().map(|one| {
                    let before = sum.clone();
                    sum = binary(Op::Add, &sum, &value_of(one, kind)).converted(&kind.ty());
                    bits_of(if exclusive { &before } else { &sum }, kind)
                });
                sums.collect::<Option<Vec<i64>>>()
            });
        let done = sums.and_then(|sums| self.each_element(target, |at, _| sums.get(at).copied()));
        if done.is_none() {
            self.write(&whole(to.slot), Value::Unknown);
        }
        Some(Value::Unknown)
    }

    /// What the elements of a variable's memory are.
    fn kind_of(&self, slot: usize) -> Option<Number> {
        let known = self.slots.get(slot)?;
        match (&known.value, &known.ty) {
            (Value::Data(data), _) if data.0.element.is_some() => {
                Number::of(data.0.element.as_ref()?)
            }
            (_, Type::Array(element, _)) => Number::of(element),
            _ => None,
        }
    }

    /// The bits of numbers that are all known.
    fn numbers_of(&self, elements: Elements) -> Option<Vec<i64>> {
        let kind = self.kind_of(elements.slot)?;
        let data = self.data_of(elements.slot)?;
        let all = elements.first..elements.first.checked_add(elements.count)?;
        all.map(|at| match data.0.load(at.checked_mul(kind.size())?, kind) {
            Some((bits, true)) => Some(bits),
            _ => None,
        })
        .collect()
    }

    /// Gives each element the number that its place from the first says; `None` where that cannot be.
    fn each_element(
        &mut self,
        elements: Elements,
        number: impl Fn(usize, Number) -> Option<i64>,
    ) -> Option<()> {
        let kind = self.kind_of(elements.slot)?;
        let held = self.bytes_behind(&Value::Address(whole(elements.slot)))?;
        let end = elements
            .first
            .checked_add(elements.count)?
            .checked_mul(kind.size())?;
        if held > LARGEST || end as u64 > held || !self.makes(held) {
            return None;
        }
        let mut data = match self.data_of(elements.slot) {
            Some(data) => (*data.0).clone(),
            None => Data::unknown(Some(kind.ty()), usize::try_from(held).ok()?),
        };
        data.element.get_or_insert(kind.ty());
        for at in 0..elements.count {
            let from = (elements.first + at) * kind.size();
            data.store(from, kind, number(at, kind));
        }
        let data = data.settled();
        let few = data.len() / kind.size();
        let value = if few <= MOST_ELEMENTS {
            Value::list((0..few).map(|at| data.element(at)).collect())
        } else {
            Value::Data(DataRef::new(data))
        };
        self.write(&whole(elements.slot), value);
        Some(())
    }
}

impl Elements {
    fn between(first: &Place, last: &Value) -> Option<Elements> {
        let Value::Address(last) = last else {
            return None;
        };
        let (from, to) = (first.element()?, last.element()?);
        (first.slot == last.slot).then_some(Elements {
            slot: first.slot,
            first: from,
            count: to.checked_sub(from)?,
        })
    }

    fn counted(first: &Place, count: i64) -> Option<Elements> {
        Some(Elements {
            slot: first.slot,
            first: first.element()?,
            count: usize::try_from(count).ok()?,
        })
    }
}

/// The order of two numbers by their bits.
fn compared(kind: Number, a: i64, b: i64) -> Ordering {
    match kind {
        Number::F32 | Number::F64 => real(a).total_cmp(&real(b)),
        Number::Int { signed: false, .. } => (a as u64).cmp(&(b as u64)),
        Number::Int { .. } => a.cmp(&b),
    }
}
