//! Figures as sums of products of unknown sizes, found from samples.
//!
//! In: values of the unknowns and what a figure is there. Out: [`Formula`], the fewest terms that give every sample, those that it
//! was not fitted to as well. What holds: no factor is negative, and where no such sum is near enough there is none.

use std::fmt::Write as _;

/// A formula may be off by this much at the samples that it was made from.
const FITTED: f64 = 0.004;
/// And by this much at those that it was not made from.
const VERIFIED: f64 = 0.01;
/// Two factors that differ by no more are one.
const ALIKE: f64 = 0.05;
/// The highest power of one unknown.
const HIGHEST: u8 = 3;
/// The most unknowns multiplied in a term, each as often as its power says.
const MOST_FACTORS: u8 = 4;
/// The most terms: one of them constant, usually.
const MOST_TERMS: usize = 3;

/// A term: its factor, and the power of each unknown.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Term {
    pub factor: f64,
    pub powers: Vec<u8>,
}

/// A sum of terms.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Formula {
    /// The constant last, the others by what they are at the largest sample.
    pub terms: Vec<Term>,
    /// The least values of the unknowns that it was made from.
    pub from: Vec<f64>,
}

/// A figure where the unknowns have these values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sample {
    pub at: Vec<f64>,
    pub figure: f64,
}

fn product(at: &[f64], powers: &[u8]) -> f64 {
    let each = at.iter().zip(powers);
    each.map(|(value, power)| value.powi(i32::from(*power)))
        .product()
}

impl Formula {
    /// The formula of a figure: made from `samples`, held against `others`. Where the first sample, the smallest, is too small for
    /// what holds of large ones, it is made from the others, in which unknowns are `raised` by that at least.
    pub(crate) fn of(samples: &[Sample], others: &[Sample], raised: f64) -> Option<Formula> {
        let large = || match (samples, others) {
            ([base, rest @ ..], others) if rest.len() > 1 => {
                let formula = Formula::fits(rest, others)?;
                // One unknown was raised in each of the rest, the others were not.
                Some(Formula {
                    from: base.at.iter().map(|at| at * raised).collect(),
                    ..formula
                })
            }
            _ => None,
        };
        Formula::fits(samples, others).or_else(large)
    }

    fn fits(samples: &[Sample], others: &[Sample]) -> Option<Formula> {
        let unknowns = samples.first()?.at.len();
        let monomials = monomials(unknowns);
        let most = MOST_TERMS.min(samples.len() + others.len() - 1);
        for terms in 1..=most {
            let mut best: Option<(f64, Formula)> = None;
            let mut chosen: Vec<usize> = (0..terms).collect();
            loop {
                let powers: Vec<&Vec<u8>> = chosen.iter().map(|&at| &monomials[at]).collect();
                if let Some(formula) = fitted(samples, &powers)
                    && formula.error(samples) <= FITTED
                {
                    let error = formula.error(samples).max(formula.error(others));
                    if error <= VERIFIED && best.as_ref().is_none_or(|(least, _)| error < *least) {
                        best = Some((error, formula));
                    }
                }
                if !next(&mut chosen, monomials.len()) {
                    break;
                }
            }
            if let Some((_, mut formula)) = best {
                let last = samples.iter().chain(others).next_back()?;
                formula.terms.sort_by(|a, b| {
                    let constant = |term: &Term| term.powers.iter().all(|power| *power == 0);
                    let size = |term: &Term| term.factor * product(&last.at, &term.powers);
                    (constant(a).cmp(&constant(b))).then(size(b).total_cmp(&size(a)))
                });
                return Some(formula);
            }
        }
        None
    }

    /// The same where each unknown is the product of others, which have these values at the first sample.
    pub(crate) fn spread(self, together: &[Vec<f64>]) -> Formula {
        let terms = self.terms.into_iter().map(|term| {
            let powers = term.powers.iter().zip(together);
            let powers = powers.flat_map(|(power, group)| group.iter().map(move |_| *power));
            Term {
                factor: term.factor,
                powers: powers.collect(),
            }
        });
        let from = self.from.iter().zip(together).flat_map(|(least, group)| {
            // The first of them is the one that was varied.
            let raised = least / group.iter().product::<f64>();
            let each = group.iter().enumerate();
            each.map(move |(at, value)| if at == 0 { value * raised } else { *value })
        });
        Formula {
            terms: terms.collect(),
            from: from.collect(),
        }
    }

    /// True where it is the same for all values of the unknowns.
    pub(crate) fn is_constant(&self) -> bool {
        let mut powers = self.terms.iter().flat_map(|term| &term.powers);
        powers.all(|power| *power == 0)
    }

    /// The figure for these values of the unknowns.
    pub(crate) fn value(&self, at: &[f64]) -> f64 {
        let terms = self.terms.iter();
        terms
            .map(|term| term.factor * product(at, &term.powers))
            .sum()
    }

    fn error(&self, samples: &[Sample]) -> f64 {
        let error = |sample: &Sample| {
            (self.value(&sample.at) - sample.figure).abs() / sample.figure.abs().max(1e-12)
        };
        samples.iter().map(error).fold(0.0, f64::max)
    }

    /// A time in milliseconds as text: `0.0123 ns × n + 2.1 µs`.
    pub(crate) fn time(&self, names: &[String]) -> String {
        self.text(names, " × ", &milliseconds)
    }

    /// A time that is one of two, as text: `4.3 ps to 27.7 ps × n + 2.1 µs`. `None` where they are no sums of the same terms.
    pub(crate) fn time_between(&self, other: &Formula, names: &[String]) -> Option<String> {
        let powers = |of: &Formula| {
            let mut powers: Vec<Vec<u8>> =
                of.terms.iter().map(|term| term.powers.clone()).collect();
            powers.sort_unstable();
            powers
        };
        if powers(self) != powers(other) {
            return None;
        }
        let same = |term: &Term| {
            let mut terms = other.terms.iter();
            terms
                .find(|other| other.powers == term.powers)
                .map_or(term.factor, |term| term.factor)
        };
        let mut terms = self.terms.iter();
        let number = |factor: f64| {
            // Each factor is asked for once, in the order of the terms.
            let of = terms.next().map_or(factor, same);
            let (least, most) = (factor.min(of), factor.max(of));
            if most - least <= ALIKE * most {
                milliseconds(most)
            } else {
                format!("{} to {}", milliseconds(least), milliseconds(most))
            }
        };
        let number = std::cell::RefCell::new(number);
        Some(self.text(names, " × ", &|factor| (number.borrow_mut())(factor)))
    }

    /// A count as text: `2*n*m + 4`.
    pub(crate) fn count(&self, names: &[String]) -> String {
        self.text(names, "*", &|factor| {
            if (factor - factor.round()).abs() < 1e-6 * factor {
                format!("{:.0}", factor.round())
            } else {
                significant(factor)
            }
        })
    }

    fn text(&self, names: &[String], times: &str, number: &dyn Fn(f64) -> String) -> String {
        let mut out = String::new();
        for (at, term) in self.terms.iter().enumerate() {
            if at > 0 {
                out.push_str(" + ");
            }
            let text = number(term.factor);
            let constant = term.powers.iter().all(|power| *power == 0);
            let mut first = true;
            if constant || text != "1" {
                out.push_str(&text);
                first = false;
            }
            for (name, power) in names.iter().zip(&term.powers) {
                if *power > 0 {
                    out.push_str(if first { "" } else { times });
                    first = false;
                    out.push_str(name);
                    match power {
                        1 => {}
                        2 => out.push('²'),
                        3 => out.push('³'),
                        more => {
                            let _ = write!(out, "^{more}");
                        }
                    }
                }
            }
        }
        out
    }
}

/// Milliseconds in the unit that fits.
pub(crate) fn milliseconds(value: f64) -> String {
    let units = [
        (1.0, "ms"),
        (1e3, "µs"),
        (1e6, "ns"),
        (1e9, "ps"),
        (1e12, "fs"),
    ];
    let fits = units.iter().find(|(by, _)| value * by >= 1.0);
    let (by, unit) = fits.unwrap_or(&units[4]);
    format!("{} {unit}", significant(value * by))
}

/// Three significant digits.
fn significant(value: f64) -> String {
    if value <= 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    let places = (2 - value.log10().floor() as i32).clamp(0, 9) as usize;
    format!("{value:.places$}")
}

/// The powers that a term may have, the constant first, few factors before many.
fn monomials(unknowns: usize) -> Vec<Vec<u8>> {
    let mut found: Vec<Vec<u8>> = vec![Vec::new()];
    for _ in 0..unknowns {
        let longer = found.iter().flat_map(|powers| {
            (0..=HIGHEST).map(move |power| {
                let mut powers = powers.clone();
                powers.push(power);
                powers
            })
        });
        found = longer.collect();
    }
    found.retain(|powers| powers.iter().sum::<u8>() <= MOST_FACTORS);
    found.sort_by_key(|powers| powers.iter().sum::<u8>());
    found
}

/// The next choice of as many of `of`, in order; false behind the last.
fn next(chosen: &mut [usize], of: usize) -> bool {
    let count = chosen.len();
    for at in (0..count).rev() {
        if chosen[at] + (count - at) < of {
            chosen[at] += 1;
            for behind in at + 1..count {
                chosen[behind] = chosen[behind - 1] + 1;
            }
            return true;
        }
    }
    false
}

/// Factors of these terms by least squares of the relative errors; `None` where one is negative or nothing settles it.
#[allow(clippy::needless_range_loop, reason = "rows and columns of a matrix")]
fn fitted(samples: &[Sample], powers: &[&Vec<u8>]) -> Option<Formula> {
    let count = powers.len();
    let rows: Vec<Vec<f64>> = samples
        .iter()
        .map(|sample| {
            let by = sample.figure.abs().max(1e-12);
            powers
                .iter()
                .map(|powers| product(&sample.at, powers) / by)
                .collect()
        })
        .collect();
    // Terms differ by many orders of magnitude.
    let scale: Vec<f64> = (0..count)
        .map(|column| rows.iter().map(|row| row[column]).fold(1e-300, f64::max))
        .collect();
    let mut matrix = vec![vec![0.0; count + 1]; count];
    for row in &rows {
        for i in 0..count {
            for j in 0..count {
                matrix[i][j] += row[i] / scale[i] * row[j] / scale[j];
            }
            matrix[i][count] += row[i] / scale[i];
        }
    }
    for i in 0..count {
        let pivot =
            (i..count).max_by(|&a, &b| matrix[a][i].abs().total_cmp(&matrix[b][i].abs()))?;
        matrix.swap(i, pivot);
        if matrix[i][i].abs() < 1e-10 {
            return None;
        }
        for j in 0..count {
            if j != i {
                let by = matrix[j][i] / matrix[i][i];
                for k in i..=count {
                    matrix[j][k] -= by * matrix[i][k];
                }
            }
        }
    }
    let terms = powers.iter().enumerate().map(|(at, powers)| Term {
        factor: matrix[at][count] / matrix[at][at] / scale[at],
        powers: (*powers).clone(),
    });
    let least = |unknown: usize| {
        let values = samples.iter().map(|sample| sample.at[unknown]);
        values.fold(f64::INFINITY, f64::min)
    };
    let formula = Formula {
        terms: terms.collect(),
        from: (0..samples.first()?.at.len()).map(least).collect(),
    };
    let sound = |term: &Term| term.factor.is_finite() && term.factor > 0.0;
    formula.terms.iter().all(sound).then_some(formula)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(points: &[&[f64]], figure: &dyn Fn(&[f64]) -> f64) -> Vec<Sample> {
        let of = |at: &&[f64]| Sample {
            at: at.to_vec(),
            figure: figure(at),
        };
        points.iter().map(of).collect()
    }

    #[test]
    fn a_line_is_found_and_printed_with_units() {
        let time = |at: &[f64]| 1.23e-8 * at[0] + 2.1e-3;
        let made = samples(&[&[1e6], &[2e6], &[4e6]], &time);
        let formula = Formula::of(&made, &samples(&[&[1.6e7]], &time), 2.0).expect("a line");
        let names = ["n".to_owned()];
        assert_eq!(formula.time(&names), "12.3 ps × n + 2.10 µs");
        assert!((formula.value(&[5e7]) - time(&[5e7])).abs() < 1e-9);
    }

    #[test]
    fn products_of_unknowns_are_found() {
        let count = |at: &[f64]| 2.0 * at[0] * at[1] + at[0] * at[0];
        let points: [&[f64]; 6] = [
            &[32.0, 64.0],
            &[64.0, 64.0],
            &[128.0, 64.0],
            &[32.0, 128.0],
            &[32.0, 256.0],
            &[64.0, 128.0],
        ];
        let made = samples(&points, &count);
        let others = samples(&[&[512.0, 1024.0]], &count);
        let formula = Formula::of(&made, &others, 2.0).expect("a sum of products");
        let names = ["m".to_owned(), "n".to_owned()];
        assert_eq!(formula.count(&names), "2*m*n + m²");
    }

    #[test]
    fn a_product_is_spread_over_its_factors() {
        let time = |at: &[f64]| 2e-6 * at[0] + 1e-3;
        let made = samples(&[&[6e3], &[1.2e4], &[2.4e4]], &time);
        let formula = Formula::of(&made, &samples(&[&[9.6e4]], &time), 2.0).expect("a line");
        let spread = formula.spread(&[vec![6.0, 1e3]]);
        let names = ["b".to_owned(), "h".to_owned()];
        assert_eq!(spread.time(&names), "2.00 ns × b × h + 1.00 µs");
        assert_eq!(spread.from, [6.0, 1e3]);
        assert!((spread.value(&[12.0, 2e3]) - time(&[2.4e4])).abs() < 1e-9);
    }

    #[test]
    fn what_is_no_such_sum_has_no_formula() {
        let steps = |at: &[f64]| if at[0] < 3e6 { 1.0 } else { at[0].sqrt() };
        let made = samples(&[&[1e6], &[2e6], &[4e6]], &steps);
        assert_eq!(Formula::of(&made, &samples(&[&[1.6e7]], &steps), 2.0), None);
    }
}
