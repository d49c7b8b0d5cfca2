//! Polynomials as a person would write them: `2*n*m`, `n*(n - 1)/2`, `ceil(n/16)*min(m, 1024)`.
//!
//! Names are numbers that need not be integers where `/` divides, so that the text means the same in
//! mathematics, in Python and, but for `floor(n/16)`, in C.

use std::fmt::Write as _;

use super::{Atom, Monomial, Name, Polynomial, Ratio, gcd};

/// The longest formula in characters: a longer one is unreadable.
const LONGEST: usize = 240;

impl Polynomial {
    /// The text, with the names spelled by the caller; `None` where it would be too long to read.
    pub fn text(&self, spell: &dyn Fn(Name) -> String) -> Option<String> {
        let text = self.write(spell)?;
        (text.len() <= LONGEST).then_some(text)
    }

    fn write(&self, spell: &dyn Fn(Name) -> String) -> Option<String> {
        let (terms, denominator) = self.whole_coefficients()?;
        let plain = fraction(sum(&terms, spell)?, terms.len() > 1, denominator);
        // n*(n - 1)/2 rather than (n*n - n)/2, where that is no longer.
        if let Some((monomial, coefficient, rest)) = common_factor(&terms)? {
            let outside = product(&monomial, coefficient, spell)?;
            let factored = format!("{outside}*({})", sum(&rest, spell)?);
            let factored = fraction(factored, false, denominator);
            if factored.len() <= plain.len() {
                return Some(factored);
            }
        }
        Some(plain)
    }
}

fn fraction(text: String, is_sum: bool, denominator: i128) -> String {
    match (denominator, is_sum) {
        (1, _) => text,
        (_, true) => format!("({text})/{denominator}"),
        (_, false) => format!("{text}/{denominator}"),
    }
}

/// Terms by falling degree, then in the order of their names.
fn sum(terms: &[(Monomial, i128)], spell: &dyn Fn(Name) -> String) -> Option<String> {
    let mut ordered: Vec<&(Monomial, i128)> = terms.iter().collect();
    let degree = |monomial: &Monomial| monomial.iter().map(|(_, power)| power).sum::<u32>();
    ordered.sort_by_key(|(monomial, coefficient)| {
        let negative_first = ordered_last(*coefficient, monomial);
        (std::cmp::Reverse(degree(monomial)), negative_first)
    });
    let mut out = String::new();
    for (monomial, coefficient) in ordered {
        if out.len() > 2 * LONGEST {
            return None;
        }
        let negative = *coefficient < 0;
        out.push_str(match (out.is_empty(), negative) {
            (true, true) => "-",
            (true, false) => "",
            (false, true) => " - ",
            (false, false) => " + ",
        });
        out.push_str(&product(monomial, coefficient.checked_abs()?, spell)?);
    }
    if out.is_empty() {
        out.push('0');
    }
    Some(out)
}

/// Among terms of one degree, positive ones come before negative ones.
fn ordered_last(coefficient: i128, monomial: &Monomial) -> (bool, Monomial) {
    (coefficient < 0, monomial.clone())
}

fn product(
    monomial: &Monomial,
    coefficient: i128,
    spell: &dyn Fn(Name) -> String,
) -> Option<String> {
    if monomial.is_empty() {
        return Some(coefficient.to_string());
    }
    let mut out = String::new();
    if coefficient != 1 {
        let _ = write!(out, "{coefficient}*");
    }
    // Names before everything else: n*min(m, 64).
    let names = monomial
        .iter()
        .filter(|(atom, _)| matches!(atom, Atom::Name(_)));
    let others = monomial
        .iter()
        .filter(|(atom, _)| !matches!(atom, Atom::Name(_)));
    let mut first = true;
    for (atom, power) in names.chain(others) {
        let text = atom_text(atom, spell)?;
        for _ in 0..*power {
            if !first {
                out.push('*');
            }
            first = false;
            out.push_str(&text);
        }
    }
    Some(out)
}

fn atom_text(atom: &Atom, spell: &dyn Fn(Name) -> String) -> Option<String> {
    match atom {
        Atom::Name(name) => Some(spell(*name)),
        Atom::Floor(inner, divisor) => {
            // floor((p + d - 1)/d) is ceil(p/d).
            let up = inner.constant_term() == Ratio::whole(divisor - 1);
            let (name, inner) = if up {
                ("ceil", inner.offset(1 - divisor)?)
            } else {
                ("floor", inner.as_ref().clone())
            };
            let text = inner.write(spell)?;
            Some(if inner.terms.len() > 1 {
                format!("{name}(({text})/{divisor})")
            } else {
                format!("{name}({text}/{divisor})")
            })
        }
        Atom::Min(parts) => list("min", parts, spell),
        Atom::Max(parts) => list("max", parts, spell),
        Atom::Holds(inner) => {
            let (terms, _) = inner.whole_coefficients()?;
            let side = |positive: bool| {
                terms
                    .iter()
                    .filter(|(_, coefficient)| (*coefficient > 0) == positive)
                    .map(|(monomial, coefficient)| {
                        Some((monomial.clone(), coefficient.checked_abs()?))
                    })
                    .collect::<Option<Vec<_>>>()
            };
            let (left, right) = (side(true)?, side(false)?);
            let number = left.iter().all(|(monomial, _)| monomial.is_empty());
            let (left, right) = (sum(&left, spell)?, sum(&right, spell)?);
            Some(if number {
                format!("({right} <= {left})")
            } else {
                format!("({left} >= {right})")
            })
        }
    }
}

/// Numbers last: `min(n, 64)`.
fn list(name: &str, parts: &[Polynomial], spell: &dyn Fn(Name) -> String) -> Option<String> {
    let (numbers, others): (Vec<_>, Vec<_>) =
        parts.iter().partition(|part| part.as_constant().is_some());
    let texts = others
        .into_iter()
        .chain(numbers)
        .map(|part| part.write(spell))
        .collect::<Option<Vec<_>>>()?;
    Some(format!("{name}({})", texts.join(", ")))
}

/// What every term has in common: atoms and a number; and the terms without it. `None` inside for nothing.
#[allow(clippy::type_complexity, reason = "used once")]
fn common_factor(
    terms: &[(Monomial, i128)],
) -> Option<Option<(Monomial, i128, Vec<(Monomial, i128)>)>> {
    let Some(((first, coefficient), rest)) = terms.split_first() else {
        return Some(None);
    };
    let (mut common, mut number) = (first.clone(), *coefficient);
    for (monomial, coefficient) in rest {
        number = gcd(number, *coefficient)?;
        common.retain_mut(|(atom, power)| {
            let own = monomial.iter().find(|(own, _)| own == atom);
            *power = (*power).min(own.map_or(0, |(_, power)| *power));
            *power > 0
        });
    }
    if common.is_empty() || rest.is_empty() {
        return Some(None);
    }
    let without = terms
        .iter()
        .map(|(monomial, coefficient)| {
            let mut left = monomial.clone();
            left.retain_mut(|(atom, power)| {
                let taken = common.iter().find(|(own, _)| own == atom);
                *power -= taken.map_or(0, |(_, power)| *power);
                *power > 0
            });
            (left, coefficient / number)
        })
        .collect();
    Some(Some((common, number, without)))
}
