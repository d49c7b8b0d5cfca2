//! Sums of polynomials over ranges of whole numbers (Faulhaber's formula).

use super::{Atom, Bounds, Monomial, Name, Polynomial, Ratio};

impl Polynomial {
    /// `Σ self` for `name` from `first` to `last`, both included. Holds where `last >= first - 1`; the caller
    /// guards it. `None` where the name occurs other than in powers.
    pub fn sum_over(
        &self,
        name: Name,
        first: &Polynomial,
        last: &Polynomial,
        bounds: &Bounds,
    ) -> Option<Polynomial> {
        let mut total = Polynomial::zero();
        let before = first.offset(-1)?;
        for (exponent, factor) in self.by_power(name)? {
            let partial = power_sum(exponent, name)?;
            let upper = partial.substitute(name, last, bounds)?;
            let lower = partial.substitute(name, &before, bounds)?;
            total = total.add(&upper.sub(&lower)?.mul(&factor)?)?;
        }
        Some(total)
    }

    /// As a polynomial in one name: exponents and their factors.
    fn by_power(&self, name: Name) -> Option<Vec<(u32, Polynomial)>> {
        let mut parts: Vec<(u32, Polynomial)> = Vec::new();
        for (monomial, coefficient) in self.terms() {
            let mut exponent = 0;
            let mut rest: Monomial = Vec::with_capacity(monomial.len());
            for (atom, power) in monomial {
                match atom {
                    Atom::Name(own) if *own == name => exponent = *power,
                    atom if atom.depends_on(name) => return None,
                    atom => rest.push((atom.clone(), *power)),
                }
            }
            let rest = Polynomial::of(rest, coefficient);
            match parts.iter_mut().find(|(own, _)| *own == exponent) {
                Some((_, sum)) => *sum = sum.add(&rest)?,
                None => parts.push((exponent, rest)),
            }
        }
        Some(parts)
    }
}

/// `0^k + 1^k + … + x^k` as a polynomial in x, which also telescopes below 0.
fn power_sum(exponent: u32, name: Name) -> Option<Polynomial> {
    let mut sums: Vec<Polynomial> = Vec::with_capacity(exponent as usize + 1);
    let next = Polynomial::name(name).offset(1)?;
    for k in 0..=exponent {
        // (x + 1)^(k + 1) = Σ over j up to k of binomial(k + 1, j) · (0^j + … + x^j).
        let mut sum = next.power(k + 1)?;
        let mut binomial: i128 = 1;
        for (j, lower) in sums.iter().enumerate() {
            sum = sum.sub(&lower.scale(Ratio::whole(binomial))?)?;
            binomial = binomial * (i128::from(k) + 1 - j as i128) / (j as i128 + 1);
        }
        sums.push(sum.scale(Ratio::new(1, i128::from(k) + 1)?)?);
    }
    sums.pop()
}
