//! T(n): the cycles as a formula in the kernel's parameters, from the closed forms of its counts.

use std::collections::BTreeMap;
use std::fmt::Write;

use warplens_facts::facts::Operator;
use warplens_facts::{Expression, Expressions};
use warplens_machine::{Direction, Property};

use super::properties::items;
use super::{Bill, PICOSECONDS, global_bytes};
use crate::work::Work;
use crate::{ModelInput, Question};

/// How far a closed form may be from what was counted under this launch, by rounding.
const LARGEST_DEPARTURE: f64 = 1e-6;

/// The cycles as a formula in the parameters: a price times a count for each property that has a closed form, and
/// for what has none the cycles of this launch. `None` where a count that depends on a parameter has no closed form,
/// where the formula does not give what was counted, or where nothing depends on a parameter.
pub fn function(question: &Question, counts: &Expressions) -> Option<String> {
    let input = question.input;
    let work = Work::new(question);
    let items = items(&work);
    let bill = Bill::new(&work, &items).ok()?;
    let clock = input.profile.cycles_per_second() / PICOSECONDS;
    let forms = forms(input, &items, counts)?;
    let mut fixed = 0.0;
    // Counts of one price are one term.
    let mut terms: Vec<(f64, Expression)> = Vec::new();
    for (&property, &count) in &bill.totals {
        match forms.get(&property) {
            Some(form) if agrees(form.value, count) => {
                let price = bill.price(property) * clock;
                if form.is_constant() {
                    fixed += price * count;
                } else if let Some((_, sum)) = terms.iter_mut().find(|term| term.0 == price) {
                    *sum = sum.plus(form)?;
                } else if price > 0.0 {
                    terms.push((price, form.clone()));
                }
            }
            Some(_) => return None,
            None if property == Property::Launch || property == Property::Overlap => {}
            None if is_of_launch(property) => fixed += bill.price(property) * count * clock,
            None => return None,
        }
    }
    let idle: f64 = items
        .iter()
        .map(|item| bill.price(item.property) * item.idle)
        .sum();
    fixed += idle * clock;
    if terms.is_empty() {
        return None;
    }
    let mut text = rounded(fixed);
    terms.sort_by(|a, b| (b.0 * b.1.value).total_cmp(&(a.0 * a.1.value)));
    for (price, count) in &terms {
        let _ = write!(text, " + {} * ({})", rounded(*price), count.text);
    }
    if bill.overlap < 0.0 {
        let price = bill.price(Property::Overlap) * clock;
        let both = bill.totals.get(&Property::Overlap)?;
        if !agrees(price * both, bill.overlap * clock) {
            // Loads and stores save less than that: the lesser of both costs no more.
            return None;
        }
        let loads = bytes(&forms, Direction::Load)?;
        let stores = bytes(&forms, Direction::Store)?;
        let _ = write!(text, " - {} * min({loads}, {stores})", rounded(-price));
    }
    Some(text)
}

/// What counts of the launch's warps or blocks, not of threads: no closed form is made of it.
fn is_of_launch(property: Property) -> bool {
    matches!(
        property,
        Property::Block | Property::BankConflict | Property::AtomicConflict
    )
}

fn agrees(formula: f64, count: f64) -> bool {
    (formula - count).abs() <= LARGEST_DEPARTURE * count.abs().max(1.0)
}

/// The closed form of each property's count; `None` where accesses do not match.
fn forms(
    input: &ModelInput,
    items: &[super::Item],
    counts: &Expressions,
) -> Option<BTreeMap<Property, Expression>> {
    let mut forms: BTreeMap<Property, Expression> = BTreeMap::new();
    let mut add = |property: Property, form: &Expression| {
        let sum = match forms.get(&property) {
            Some(known) => known.plus(form)?,
            None => form.clone(),
        };
        forms.insert(property, sum);
        Some(())
    };
    for (operator, form) in &counts.operators {
        let property = match *operator {
            Operator::Arithmetic(arithmetic) => Property::Arithmetic(arithmetic),
            Operator::Barrier => Property::Barrier,
        };
        add(property, form)?;
    }
    for item in items {
        let Some(access) = item.access.and_then(|at| input.accesses.get(at)) else {
            continue;
        };
        let mut same = counts.accesses.iter().filter(|count| {
            count.site == access.site
                && count.op == access.op
                && count.bytes == access.bytes_per_lane
        });
        let found = same.find_map(|count| {
            let form = count.threads.as_ref()?;
            agrees(form.value, item.count).then_some(form)
        });
        add(item.property, found?)?;
    }
    Some(forms)
}

/// Bytes of all loads or stores as text.
fn bytes(forms: &BTreeMap<Property, Expression>, wanted: Direction) -> Option<String> {
    let mut parts = Vec::new();
    for (&property, form) in forms {
        if let Some((direction, bytes)) = global_bytes(property)
            && direction == wanted
        {
            parts.push(format!("{bytes} * ({})", form.text));
        }
    }
    (!parts.is_empty()).then(|| parts.join(" + "))
}

/// Four figures are more than the model is worth.
fn rounded(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    let decimals = 3 - value.abs().log10().floor() as i32;
    format!("{value:.*}", decimals.clamp(0, 12) as usize)
}

#[cfg(test)]
mod tests {
    use super::rounded;

    #[test]
    fn four_figures_are_shown() {
        assert_eq!(rounded(0.0), "0");
        assert_eq!(rounded(0.001_234_56), "0.001235");
        assert_eq!(rounded(12.345_67), "12.35");
        assert_eq!(rounded(123_456.7), "123457");
    }
}
