//! Subscripts as polynomials: sums of products of names.

use std::collections::BTreeMap;

/// A sum of products, each of the names in its key (in order, with repetition; none for the constant) and its factor.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Polynomial {
    terms: BTreeMap<Vec<String>, i64>,
}

/// Products of more names, and sums of more terms, are not followed.
const MOST_NAMES: usize = 6;
const MOST_TERMS: usize = 32;

impl Polynomial {
    pub(crate) fn constant(value: i64) -> Polynomial {
        Polynomial::term(Vec::new(), value)
    }

    pub(crate) fn name(name: &str) -> Polynomial {
        Polynomial::term(vec![name.to_owned()], 1)
    }

    fn term(names: Vec<String>, factor: i64) -> Polynomial {
        let mut terms = BTreeMap::new();
        if factor != 0 {
            terms.insert(names, factor);
        }
        Polynomial { terms }
    }

    /// The sum with a multiple of another one.
    pub(crate) fn plus(&self, other: &Polynomial, times: i64) -> Option<Polynomial> {
        let mut sum = self.clone();
        for (names, factor) in &other.terms {
            let to = sum.terms.entry(names.clone()).or_insert(0);
            *to = to.checked_add(factor.checked_mul(times)?)?;
        }
        sum.terms.retain(|_, factor| *factor != 0);
        (sum.terms.len() <= MOST_TERMS).then_some(sum)
    }

    pub(crate) fn times(&self, other: &Polynomial) -> Option<Polynomial> {
        let mut product = Polynomial::default();
        for (a, x) in &self.terms {
            for (b, y) in &other.terms {
                let mut names: Vec<String> = a.iter().chain(b).cloned().collect();
                names.sort();
                if names.len() > MOST_NAMES {
                    return None;
                }
                product = product.plus(&Polynomial::term(names, x.checked_mul(*y)?), 1)?;
            }
        }
        Some(product)
    }

    /// The number that it is.
    pub(crate) fn number(&self) -> Option<i64> {
        match self.terms.len() {
            0 => Some(0),
            1 => self.terms.get(&Vec::new()).copied(),
            _ => None,
        }
    }

    /// The terms: their names and their factor.
    pub(crate) fn terms(&self) -> impl Iterator<Item = (&[String], i64)> {
        self.terms
            .iter()
            .map(|(names, factor)| (names.as_slice(), *factor))
    }

    /// The factor of one product of names.
    pub(crate) fn factor(&self, names: &[&str]) -> i64 {
        let key: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        self.terms.get(&key).copied().unwrap_or(0)
    }

    /// True where one of its products has this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.terms.keys().flatten().any(|one| one == name)
    }

    /// As it is written behind something that it is added to: ` + k - 1`, nothing for 0.
    pub(crate) fn added(&self) -> String {
        let mut written = String::new();
        // The constant comes last.
        let (named, constant): (Vec<_>, Vec<_>) =
            self.terms.iter().partition(|(names, _)| !names.is_empty());
        for (names, factor) in named.into_iter().chain(constant) {
            written.push_str(if *factor < 0 { " - " } else { " + " });
            let size = factor.unsigned_abs();
            if names.is_empty() {
                written.push_str(&size.to_string());
                continue;
            }
            if size != 1 {
                written.push_str(&size.to_string());
                written.push_str(" * ");
            }
            written.push_str(&names.join(" * "));
        }
        written
    }

    /// As it is written by itself.
    pub(crate) fn alone(&self) -> String {
        let added = self.added();
        match added.strip_prefix(" + ") {
            Some(rest) => rest.to_owned(),
            None if added.is_empty() => "0".to_owned(),
            None => format!("0{added}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_sums_are_sums_of_products() {
        let row = Polynomial::name("y")
            .plus(&Polynomial::constant(-1), 1)
            .unwrap();
        let index = row
            .times(&Polynomial::name("w"))
            .and_then(|sum| sum.plus(&Polynomial::name("x"), 1))
            .unwrap();
        assert_eq!(index.factor(&["w", "y"]), 1);
        assert_eq!(index.factor(&["w"]), -1);
        assert_eq!(index.factor(&["x"]), 1);
        assert_eq!(index.number(), None);
        assert_eq!(index.added(), " - w + w * y + x");
        let same = index.plus(&index, -1).unwrap();
        assert_eq!(
            (same.number(), same.added(), same.alone()),
            (Some(0), String::new(), "0".to_owned())
        );
    }

    #[test]
    fn what_becomes_too_large_is_not_followed() {
        let huge = Polynomial::constant(i64::MAX);
        assert_eq!(huge.plus(&huge, 1), None);
        assert_eq!(huge.times(&Polynomial::constant(2)), None);
    }
}
