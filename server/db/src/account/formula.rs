//! Sums whose terms are multiplied by loops and conditions that are not known.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use warplens_host::{Decides, Often, Side};

use crate::wire::{Times, Unknown};

/// The unknowns of a term, in the order of the source.
type Factors = Vec<String>;

/// A sum: what is known, and what multiplies unknowns.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Sum {
    pub(super) known: f64,
    /// What it is at least.
    pub(super) least: f64,
    open: BTreeMap<Factors, f64>,
    /// Terms that are formulas themselves: by their own unknowns, times the sum's.
    formulas: Vec<(String, f64, Factors)>,
    /// A term has neither number nor formula.
    pub(super) is_lost: bool,
}

impl Sum {
    /// A figure as often as that.
    pub(super) fn of(often: &Often, figure: f64) -> Sum {
        let mut sum = Sum {
            known: often.known as f64 * figure,
            least: often.known as f64 * figure,
            ..Sum::default()
        };
        for open in &often.open {
            if open.is_cut {
                sum.is_lost = true;
                continue;
            }
            let each = open.times as f64 * figure;
            for (factors, by) in product(&open.deciding, &open.before) {
                match factors.as_slice() {
                    [] => sum.known += by * each,
                    _ => *sum.open.entry(factors).or_default() += by * each,
                }
            }
        }
        sum.settle();
        sum
    }

    /// A formula as often as that.
    pub(super) fn of_formula(often: &Often, formula: &str) -> Sum {
        let count = Sum::of(often, 1.0);
        let known = (Factors::new(), count.known);
        let terms = std::iter::once(known).chain(count.open);
        let terms = terms.filter(|(_, times)| *times != 0.0);
        Sum {
            formulas: terms
                .map(|(factors, times)| (formula.to_owned(), times, factors))
                .collect(),
            ..Sum::default()
        }
    }

    /// What cancels out is no term.
    fn settle(&mut self) {
        let least = self.known.abs().max(1e-12) * 1e-9;
        self.open.retain(|_, figure| figure.abs() > least);
        let largest = self.open.values().fold(0.0, |a: f64, b| a.max(b.abs()));
        if self.known.abs() < largest * 1e-9 {
            self.known = 0.0;
        }
    }

    /// A figure that is not known.
    pub(super) fn lost() -> Sum {
        Sum {
            is_lost: true,
            ..Sum::default()
        }
    }

    pub(super) fn add(&mut self, other: &Sum) {
        self.known += other.known;
        self.least += other.least;
        for (factors, figure) in &other.open {
            *self.open.entry(factors.clone()).or_default() += figure;
        }
        for (formula, times, factors) in &other.formulas {
            let same =
                |known: &&mut (String, f64, Factors)| known.0 == *formula && known.2 == *factors;
            match self.formulas.iter_mut().find(same) {
                Some((_, known, _)) => *known += times,
                None => self
                    .formulas
                    .push((formula.clone(), *times, factors.clone())),
            }
        }
        self.formulas.retain(|(_, times, _)| *times != 0.0);
        self.is_lost |= other.is_lost;
    }

    /// The number, where nothing is open.
    pub(super) fn number(&self) -> Option<f64> {
        let known = self.open.is_empty() && self.formulas.is_empty() && !self.is_lost;
        known.then_some(self.known)
    }

    /// What it is where each loop runs once and each condition holds; `None` where a term is no number.
    pub(super) fn once(&self) -> Option<f64> {
        let numbers = self.formulas.is_empty() && !self.is_lost;
        numbers.then(|| self.once_at_least())
    }

    /// The same, where terms that are no numbers are left out.
    pub(super) fn once_at_least(&self) -> f64 {
        (self.known + self.open.values().sum::<f64>()).max(0.0)
    }

    /// The sum as text; `None` where it is a number, or a term has no formula.
    pub(super) fn text(&self, figure: &dyn Fn(f64) -> String) -> Option<String> {
        if self.number().is_some() || self.is_lost {
            return None;
        }
        let mut terms = Vec::new();
        if self.known > 0.0 {
            terms.push(figure(self.known));
        }
        let mut less = String::new();
        for (factors, by) in &self.open {
            let number = figure(by.abs());
            let factors = factors.join(" × ");
            let term = if number == "1" {
                factors
            } else {
                format!("{number} × {factors}")
            };
            if *by < 0.0 {
                less.push_str(" − ");
                less.push_str(&term);
            } else {
                terms.push(term);
            }
        }
        if self.known < 0.0 {
            less.push_str(" − ");
            less.push_str(&figure(-self.known));
        }
        for (formula, times, factors) in &self.formulas {
            let count = times.abs();
            let several = count != 1.0 || !factors.is_empty();
            let is_sum = formula.contains(" + ");
            let mut term = if is_sum && (several || *times < 0.0) {
                format!("({formula})")
            } else {
                formula.clone()
            };
            if count != 1.0 {
                let _ = write!(term, " × {count:.0}");
            }
            for factor in factors {
                term.push_str(" × ");
                term.push_str(factor);
            }
            if *times < 0.0 {
                less.push_str(" − ");
                less.push_str(&term);
            } else {
                terms.push(term);
            }
        }
        Some(terms.join(" + ") + &less)
    }
}

/// The product over loops and conditions of what each contributes, less the iterations that are counted elsewhere, as a sum.
fn product(deciding: &[Arc<Decides>], before: &[u64]) -> Vec<(Factors, f64)> {
    let mut terms = vec![(Factors::new(), 1.0)];
    for (decides, before) in deciding.iter().zip(before) {
        let counted = terms.iter().filter(|_| *before > 0);
        let counted: Vec<_> = counted
            .map(|(factors, by)| (factors.clone(), -by * *before as f64))
            .collect();
        for (factors, _) in &mut terms {
            factors.push(symbol(decides));
        }
        terms.extend(counted);
    }
    terms
}

/// As formulas write what a loop or a condition contributes.
pub(super) fn symbol(decides: &Decides) -> String {
    let kind = match &decides.side {
        Side::Loop => "iterations".to_owned(),
        Side::Then => "if".to_owned(),
        Side::Else => "else".to_owned(),
        Side::Case(label) => format!("case {label} "),
        Side::Default => "default".to_owned(),
    };
    kind + &placed(&decides.place.file, decides.place.line)
}

/// A line as formulas write it: `(main.cu:57)`.
pub(super) fn placed(file: &Path, line: u32) -> String {
    let name = file.file_name().unwrap_or_default();
    format!("({}:{})", name.to_string_lossy(), line + 1)
}

/// How often, as JSON.
pub(super) fn times(often: &Often) -> Times {
    let sum = Sum::of(often, 1.0);
    let count = |figure: f64| format!("{figure:.0}");
    Times {
        number: often.number(),
        at_least: often.known,
        formula: sum.text(&count),
    }
}

/// The same of several.
pub(super) fn all_times<'a>(all: impl Iterator<Item = &'a Often>) -> Times {
    let mut sum = Sum::default();
    let mut at_least = 0_u64;
    for often in all {
        sum.add(&Sum::of(often, 1.0));
        at_least = at_least.saturating_add(often.known);
    }
    let count = |figure: f64| format!("{figure:.0}");
    Times {
        number: sum.number().map(|_| at_least),
        at_least,
        formula: sum.text(&count),
    }
}

/// A loop or a condition, as JSON.
pub(super) fn unknown(decides: &Decides, at_least: u64, name: &dyn Fn(&Path) -> String) -> Unknown {
    Unknown {
        symbol: symbol(decides),
        kind: if decides.is_loop() {
            "iterations"
        } else {
            "condition"
        },
        text: match &decides.side {
            Side::Loop | Side::Then => decides.text.to_string(),
            Side::Else => format!("!({})", decides.text),
            Side::Case(label) => format!("{} == {label}", decides.text),
            Side::Default => format!("default of switch ({})", decides.text),
        },
        file: name(&decides.place.file),
        line: decides.place.line + 1,
        at_least,
    }
}

/// Milliseconds in the unit that fits, three significant digits.
pub(super) fn milliseconds(time: f64) -> String {
    let units = [
        (1e-3, "s"),
        (1.0, "ms"),
        (1e3, "µs"),
        (1e6, "ns"),
        (1e9, "ps"),
    ];
    let fits = units.iter().find(|(by, _)| time * by >= 1.0);
    let (by, unit) = fits.unwrap_or(&units[4]);
    let value = time * by;
    let places = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.places$} {unit}")
}

/// Bytes in the unit that fits.
pub(super) fn size(bytes: f64) -> String {
    let (by, unit) = if bytes < 10.0 * 1024.0 {
        (1.0, "B")
    } else if bytes < 10.0 * 1_048_576.0 {
        (1024.0, "KiB")
    } else {
        (1_048_576.0, "MiB")
    };
    let tenths = (bytes / by * 10.0).round() / 10.0;
    format!("{tenths} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_that_are_the_same_are_one_term() {
        let of = |formula: &str, times: f64, factors: &[&str]| Sum {
            formulas: vec![(
                formula.to_owned(),
                times,
                factors.iter().map(|one| (*one).to_owned()).collect(),
            )],
            ..Sum::default()
        };
        let mut sum = of("2 ns × n + 1 µs", 1.0, &[]);
        sum.add(&of("2 ns × n + 1 µs", 1.0, &[]));
        sum.add(&of("3 ns × m", 1.0, &["loop"]));
        sum.add(&of("3 ns × m", -1.0, &[]));
        assert_eq!(
            sum.text(&milliseconds).as_deref(),
            Some("(2 ns × n + 1 µs) × 2 + 3 ns × m × loop − 3 ns × m")
        );
        sum.add(&of("2 ns × n + 1 µs", -2.0, &[]));
        assert_eq!(
            sum.text(&milliseconds).as_deref(),
            Some("3 ns × m × loop − 3 ns × m")
        );
    }
}
