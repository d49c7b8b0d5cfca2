//! Polynomials in names, coordinates or counters, and piecewise quasi-polynomials: how often something runs, as a function of
//! a kernel's parameters.
//!
//! A [`Polynomial`] is one in whatever an [`Indeterminate`] is.
//!
//! A quasi-polynomial is a polynomial with rational coefficients in parameters and in `floor(p / d)` for a
//! number d; pieces are told apart by `min`, `max` and by factors that are 1 where `p >= 0` and else 0
//! (S. Verdoolaege et al., "Counting Integer Points in Parametric Polytopes Using Barvinok's Rational
//! Functions", Algorithmica 48, 2007, section 2). All arithmetic is checked: what grows out of reach is
//! `None`, never a wrong number.

mod bounds;
mod print;
mod ratio;
mod sum;
#[cfg(test)]
mod tests;

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

pub use bounds::{Bound, Bounds};
pub use ratio::Ratio;
pub(crate) use ratio::gcd;

/// Terms of one polynomial, at most.
const MOST_TERMS: usize = 64;
/// Powers of one atom, at most.
const HIGHEST_POWER: u32 = 12;

/// A parameter or a variable that is summed over: a number that [`Bounds`] and the caller's names share.
pub type Name = u32;

/// What powers are taken of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Atom {
    /// A parameter or a variable.
    Name(Name),
    /// `floor(p / d)`, d > 1.
    Floor(Arc<Polynomial>, i128),
    /// The least of two or more.
    Min(Arc<[Polynomial]>),
    /// The greatest of two or more.
    Max(Arc<[Polynomial]>),
    /// 1 where the polynomial is not negative, else 0.
    Holds(Arc<Polynomial>),
}

/// What a polynomial is one in.
pub trait Indeterminate: Ord + Clone {
    /// True for what is 0 or 1, and so its own square.
    fn is_its_square(&self) -> bool {
        false
    }
}

impl Indeterminate for Atom {
    fn is_its_square(&self) -> bool {
        matches!(self, Atom::Holds(_))
    }
}

impl Indeterminate for String {}

/// A product of powers, sorted; empty for 1.
pub type Monomial<A = Atom> = Vec<(A, u32)>;

/// A sum of monomials, each with its coefficient; whole numbers for whole numbers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Polynomial<A: Ord = Atom> {
    terms: BTreeMap<Monomial<A>, Ratio>,
}

impl<A: Ord> Default for Polynomial<A> {
    fn default() -> Polynomial<A> {
        Polynomial {
            terms: BTreeMap::new(),
        }
    }
}

impl Polynomial {
    /// A parameter or variable.
    pub fn name(name: Name) -> Polynomial {
        Polynomial::atom(Atom::Name(name))
    }

    /// The coefficient of the name by itself.
    pub fn coefficient(&self, name: Name) -> Ratio {
        self.terms
            .get(&vec![(Atom::Name(name), 1)])
            .copied()
            .unwrap_or(Ratio::ZERO)
    }
}

impl<A: Indeterminate> Polynomial<A> {
    /// 0.
    pub fn zero() -> Polynomial<A> {
        Polynomial::default()
    }

    /// A number.
    pub fn constant(value: i128) -> Polynomial<A> {
        Polynomial::of(Vec::new(), Ratio::whole(value))
    }

    /// An indeterminate by itself.
    pub fn atom(atom: A) -> Polynomial<A> {
        Polynomial::of(vec![(atom, 1)], Ratio::ONE)
    }

    fn of(monomial: Monomial<A>, coefficient: Ratio) -> Polynomial<A> {
        let mut terms = BTreeMap::new();
        if coefficient != Ratio::ZERO {
            terms.insert(monomial, coefficient);
        }
        Polynomial { terms }
    }

    /// The sum of terms; `None` where there are too many or a number is out of reach.
    pub fn sum(terms: impl IntoIterator<Item = (Monomial<A>, Ratio)>) -> Option<Polynomial<A>> {
        let mut sum = Polynomial::zero();
        for (monomial, coefficient) in terms {
            sum.add_term(monomial, coefficient)?;
        }
        Some(sum)
    }

    /// Monomials and their coefficients, none of them 0.
    pub fn terms(&self) -> impl Iterator<Item = (&Monomial<A>, Ratio)> {
        self.terms
            .iter()
            .map(|(monomial, &coefficient)| (monomial, coefficient))
    }

    /// The number, where it is one.
    pub fn as_constant(&self) -> Option<Ratio> {
        match self.terms.len() {
            0 => Some(Ratio::ZERO),
            1 => self.terms.get(&Vec::new()).copied(),
            _ => None,
        }
    }

    /// The whole number, where it is one.
    pub fn as_whole(&self) -> Option<i128> {
        self.as_constant()?.as_whole()
    }

    /// The term without any atom.
    pub fn constant_term(&self) -> Ratio {
        self.terms.get(&Vec::new()).copied().unwrap_or(Ratio::ZERO)
    }

    /// The coefficient of an indeterminate by itself.
    pub fn coefficient_of<Q: Eq + ?Sized>(&self, atom: &Q) -> Ratio
    where
        A: Borrow<Q>,
    {
        let by_itself = |monomial: &Monomial<A>| matches!(monomial.as_slice(), [(own, 1)] if own.borrow() == atom);
        let mut terms = self.terms();
        terms
            .find(|(monomial, _)| by_itself(monomial))
            .map_or(Ratio::ZERO, |(_, coefficient)| coefficient)
    }

    /// True where it has the indeterminate in some term.
    pub fn has<Q: Eq + ?Sized>(&self, atom: &Q) -> bool
    where
        A: Borrow<Q>,
    {
        let mut powers = self.terms.keys().flatten();
        powers.any(|(own, _)| own.borrow() == atom)
    }

    /// The products that it is the sum of: what each is made of, powers as repetitions, and how often it counts. `None` where
    /// some coefficient is no whole number of 64 bits.
    pub fn products(&self) -> Option<Vec<(Vec<&A>, i64)>> {
        self.terms()
            .map(|(monomial, coefficient)| {
                let factors = monomial
                    .iter()
                    .flat_map(|(atom, power)| std::iter::repeat_n(atom, *power as usize));
                let whole = i64::try_from(coefficient.as_whole()?).ok()?;
                Some((factors.collect(), whole))
            })
            .collect()
    }

    fn add_term(&mut self, monomial: Monomial<A>, coefficient: Ratio) -> Option<()> {
        match self.terms.entry(monomial) {
            Entry::Vacant(place) if coefficient != Ratio::ZERO => {
                place.insert(coefficient);
            }
            Entry::Vacant(_) => {}
            Entry::Occupied(mut term) => {
                let sum = term.get().plus(coefficient)?;
                if sum == Ratio::ZERO {
                    term.remove();
                } else {
                    *term.get_mut() = sum;
                }
            }
        }
        (self.terms.len() <= MOST_TERMS).then_some(())
    }

    /// `self + other`.
    pub fn add(&self, other: &Polynomial<A>) -> Option<Polynomial<A>> {
        self.plus(other, Ratio::ONE)
    }

    /// `self - other`.
    pub fn sub(&self, other: &Polynomial<A>) -> Option<Polynomial<A>> {
        self.plus(other, Ratio::whole(-1))
    }

    /// `self + factor · other`.
    pub fn plus(&self, other: &Polynomial<A>, factor: Ratio) -> Option<Polynomial<A>> {
        let mut sum = self.clone();
        for (monomial, &coefficient) in &other.terms {
            sum.add_term(monomial.clone(), coefficient.times(factor)?)?;
        }
        Some(sum)
    }

    /// The terms of `self - other`, without building it; `None` for one that is out of reach.
    pub fn differences<'a>(
        &'a self,
        other: &'a Polynomial<A>,
    ) -> impl Iterator<Item = Option<(&'a Monomial<A>, Ratio)>> {
        let mut left = self.terms.iter().peekable();
        let mut right = other.terms.iter().peekable();
        std::iter::from_fn(move || {
            loop {
                let order = match (left.peek(), right.peek()) {
                    (None, None) => return None,
                    (Some(_), None) => Ordering::Less,
                    (None, Some(_)) => Ordering::Greater,
                    (Some((own, _)), Some((theirs, _))) => own.cmp(theirs),
                };
                let own = (order != Ordering::Greater).then(|| left.next()).flatten();
                let theirs = (order != Ordering::Less).then(|| right.next()).flatten();
                let monomial = own.or(theirs)?.0;
                let negated = theirs.map_or(Some(Ratio::ZERO), |(_, &theirs)| theirs.negated());
                let own = own.map_or(Ratio::ZERO, |(_, &own)| own);
                match negated.and_then(|negated| own.plus(negated)) {
                    Some(Ratio::ZERO) => {}
                    difference => return Some(difference.map(|by| (monomial, by))),
                }
            }
        })
    }

    /// `self + value`.
    pub fn offset(&self, value: i128) -> Option<Polynomial<A>> {
        let mut sum = self.clone();
        sum.add_term(Vec::new(), Ratio::whole(value))?;
        Some(sum)
    }

    /// `self · factor`.
    pub fn scale(&self, factor: Ratio) -> Option<Polynomial<A>> {
        Polynomial::zero().plus(self, factor)
    }

    /// `-self`.
    pub fn neg(&self) -> Option<Polynomial<A>> {
        self.scale(Ratio::whole(-1))
    }

    /// `self · other`.
    pub fn mul(&self, other: &Polynomial<A>) -> Option<Polynomial<A>> {
        let mut product = Polynomial::zero();
        for (left, &a) in &self.terms {
            for (right, &b) in &other.terms {
                product.add_term(multiply(left, right)?, a.times(b)?)?;
            }
        }
        Some(product)
    }

    /// `self` to a power.
    pub fn power(&self, exponent: u32) -> Option<Polynomial<A>> {
        let mut product = Polynomial::constant(1);
        for _ in 0..exponent {
            product = product.mul(self)?;
        }
        Some(product)
    }
}

impl Polynomial {
    /// The one name, where the polynomial is `coefficient · name + number`.
    pub(crate) fn only_name(&self) -> Option<Name> {
        let mut moving = self.terms.keys().filter(|monomial| !monomial.is_empty());
        let (Some(monomial), None) = (moving.next(), moving.next()) else {
            return None;
        };
        match monomial.as_slice() {
            [(Atom::Name(name), 1)] => Some(*name),
            _ => None,
        }
    }

    /// `(p, r)` with `self = by · p + r`, where r has the terms whose coefficients `by` does not divide.
    pub(crate) fn multiples_of(&self, by: i128) -> Option<(Polynomial, Polynomial)> {
        let (mut multiples, mut rest) = (Polynomial::zero(), Polynomial::zero());
        for (monomial, &coefficient) in &self.terms {
            match coefficient.as_whole() {
                Some(whole) if whole % by == 0 => {
                    multiples.add_term(monomial.clone(), Ratio::whole(whole / by))?;
                }
                _ => rest.add_term(monomial.clone(), coefficient)?,
            }
        }
        Some((multiples, rest))
    }

    /// True where the name occurs anywhere.
    pub fn depends_on(&self, name: Name) -> bool {
        self.terms
            .keys()
            .flatten()
            .any(|(atom, _)| atom.depends_on(name))
    }

    /// `floor(self / by)`, `by` positive. Whole multiples of `by` come out of it.
    pub fn floor_div(&self, by: i128, bounds: &Bounds) -> Option<Polynomial> {
        // To whole coefficients: floor((p / k) / d) = floor(p / (k · d)).
        let (whole, denominator) = self.whole_coefficients()?;
        let mut by = by.checked_mul(denominator)?;
        let (mut outside, mut inside) = (Polynomial::zero(), Polynomial::zero());
        for (monomial, coefficient) in whole {
            let (out, rest) = if monomial.is_empty() {
                (coefficient.div_euclid(by), coefficient.rem_euclid(by))
            } else {
                (coefficient / by, coefficient % by)
            };
            outside.add_term(monomial.clone(), Ratio::whole(out))?;
            inside.add_term(monomial, Ratio::whole(rest))?;
        }
        // floor((g·p + c) / (g·d)) = floor((p + floor(c / g)) / d).
        let constant = inside.constant_term().numerator();
        let mut common = by;
        for (monomial, coefficient) in &inside.terms {
            if !monomial.is_empty() {
                common = gcd(common, coefficient.numerator())?;
            }
        }
        if common > 1 {
            let moving = inside.offset(constant.checked_neg()?)?;
            inside = moving
                .scale(Ratio::new(1, common)?)?
                .offset(constant.div_euclid(common))?;
            by /= common;
        }
        if by == 1 {
            return outside.add(&inside);
        }
        let range = bounds.range(&inside);
        if let (Some(least), Some(most)) = (range.lo, range.hi)
            && !least.is_negative()
            && most.plus(Ratio::whole(by.checked_neg()?))?.is_negative()
        {
            return Some(outside);
        }
        if inside.as_constant().is_some() {
            return Some(outside);
        }
        // floor(-p / d) = -floor((p + d - 1) / d).
        let leads = inside
            .terms
            .iter()
            .find(|(monomial, _)| !monomial.is_empty());
        if leads.is_some_and(|(_, coefficient)| coefficient.is_negative()) {
            let turned = inside.neg()?.offset(by - 1)?;
            let constant = turned.constant_term().numerator();
            let (out, rest) = (constant.div_euclid(by), constant.rem_euclid(by));
            let turned = turned.offset(rest.checked_sub(constant)?)?;
            let floor = Polynomial::atom(Atom::Floor(Arc::new(turned), by));
            return outside.sub(&floor)?.offset(out.checked_neg()?);
        }
        outside.add(&Polynomial::atom(Atom::Floor(Arc::new(inside), by)))
    }

    /// The terms with whole coefficients over one denominator.
    fn whole_coefficients(&self) -> Option<(Vec<(Monomial, i128)>, i128)> {
        let mut denominator: i128 = 1;
        for coefficient in self.terms.values() {
            let own = coefficient.denominator();
            denominator = denominator.checked_mul(own / gcd(denominator, own)?)?;
        }
        let terms = self
            .terms
            .iter()
            .map(|(monomial, coefficient)| {
                let factor = denominator / coefficient.denominator();
                Some((
                    monomial.clone(),
                    coefficient.numerator().checked_mul(factor)?,
                ))
            })
            .collect::<Option<Vec<_>>>()?;
        Some((terms, denominator))
    }

    /// The least of some polynomials; `None` for none.
    pub fn least(of: &[Polynomial], bounds: &Bounds) -> Option<Polynomial> {
        Self::extreme(of, bounds, true)
    }

    /// The greatest of some polynomials; `None` for none.
    pub fn greatest(of: &[Polynomial], bounds: &Bounds) -> Option<Polynomial> {
        Self::extreme(of, bounds, false)
    }

    fn extreme(of: &[Polynomial], bounds: &Bounds, least: bool) -> Option<Polynomial> {
        let mut kept: Vec<Polynomial> = Vec::new();
        // `a` is never the answer where `b` is among them.
        let beaten = |a: &Polynomial, b: &Polynomial| {
            let ahead = if least { a.sub(b) } else { b.sub(a) };
            ahead.is_some_and(|ahead| bounds.never_negative(&ahead))
        };
        for candidate in of {
            if kept.iter().any(|other| beaten(candidate, other)) {
                continue;
            }
            kept.retain(|other| !beaten(other, candidate));
            kept.push(candidate.clone());
        }
        if kept.len() <= 1 {
            return kept.pop();
        }
        // min(n - 1, 9) is min(n, 10) - 1; max(n - 1, 0) stays.
        let moving = kept.iter().find(|one| one.as_constant().is_none());
        let fixed = kept.iter().find_map(Polynomial::as_constant);
        let shift = match (fixed, moving) {
            (Some(fixed), _) if !least => fixed,
            (_, Some(moving)) => moving.constant_term(),
            _ => Ratio::ZERO,
        };
        let shift = Polynomial::of(Vec::new(), shift);
        let mut parts = Vec::with_capacity(kept.len());
        for one in &kept {
            parts.push(one.sub(&shift)?);
        }
        parts.sort_unstable();
        let atom = if least {
            Atom::Min(parts.into())
        } else {
            Atom::Max(parts.into())
        };
        Polynomial::atom(atom).add(&shift)
    }

    /// 1 where the polynomial is not negative, else 0.
    pub fn holds(&self, bounds: &Bounds) -> Option<Polynomial> {
        if bounds.never_negative(self) {
            return Some(Polynomial::constant(1));
        }
        if bounds.never_negative(&self.neg()?.offset(-1)?) {
            return Some(Polynomial::zero());
        }
        let tight = self.tightened()?;
        Some(Polynomial::atom(Atom::Holds(Arc::new(tight))))
    }

    /// The same condition `self >= 0` with coprime whole coefficients.
    pub(crate) fn tightened(&self) -> Option<Polynomial> {
        let (whole, _) = self.whole_coefficients()?;
        let mut common = 0;
        for (monomial, coefficient) in &whole {
            if !monomial.is_empty() {
                common = if common == 0 {
                    coefficient.checked_abs()?
                } else {
                    gcd(common, *coefficient)?
                };
            }
        }
        let common = common.max(1);
        let mut tight = Polynomial::zero();
        for (monomial, coefficient) in whole {
            let part = coefficient.div_euclid(common);
            tight.add_term(monomial, Ratio::whole(part))?;
        }
        Some(tight)
    }

    /// The polynomial with an expression in place of a name.
    pub fn substitute(&self, name: Name, by: &Polynomial, bounds: &Bounds) -> Option<Polynomial> {
        if !self.depends_on(name) {
            return Some(self.clone());
        }
        let mut sum = Polynomial::zero();
        for (monomial, &coefficient) in &self.terms {
            let mut product = Polynomial::of(Vec::new(), coefficient);
            for (atom, exponent) in monomial {
                let atom = atom.substitute(name, by, bounds)?;
                product = product.mul(&atom.power(*exponent)?)?;
            }
            sum = sum.add(&product)?;
        }
        Some(sum)
    }

    /// Its value; `None` where a name has none or a number is out of reach.
    pub fn evaluate(&self, value: &dyn Fn(Name) -> Option<i128>) -> Option<Ratio> {
        let mut sum = Ratio::ZERO;
        for (monomial, &coefficient) in &self.terms {
            let mut product = coefficient;
            for (atom, exponent) in monomial {
                let factor = atom.evaluate(value)?;
                for _ in 0..*exponent {
                    product = product.times(factor)?;
                }
            }
            sum = sum.plus(product)?;
        }
        Some(sum)
    }
}

impl Atom {
    fn depends_on(&self, name: Name) -> bool {
        match self {
            Atom::Name(own) => *own == name,
            Atom::Floor(inner, _) | Atom::Holds(inner) => inner.depends_on(name),
            Atom::Min(parts) | Atom::Max(parts) => parts.iter().any(|part| part.depends_on(name)),
        }
    }

    fn substitute(&self, name: Name, by: &Polynomial, bounds: &Bounds) -> Option<Polynomial> {
        let all = |parts: &[Polynomial]| {
            parts
                .iter()
                .map(|part| part.substitute(name, by, bounds))
                .collect::<Option<Vec<_>>>()
        };
        match self {
            Atom::Name(own) if *own == name => Some(by.clone()),
            Atom::Name(own) => Some(Polynomial::name(*own)),
            Atom::Floor(inner, divisor) => inner
                .substitute(name, by, bounds)?
                .floor_div(*divisor, bounds),
            Atom::Holds(inner) => inner.substitute(name, by, bounds)?.holds(bounds),
            Atom::Min(parts) => Polynomial::least(&all(parts)?, bounds),
            Atom::Max(parts) => Polynomial::greatest(&all(parts)?, bounds),
        }
    }

    fn evaluate(&self, value: &dyn Fn(Name) -> Option<i128>) -> Option<Ratio> {
        match self {
            Atom::Name(name) => Some(Ratio::whole(value(*name)?)),
            Atom::Floor(inner, divisor) => {
                let inner = inner.evaluate(value)?;
                let whole = inner.denominator().checked_mul(*divisor)?;
                Some(Ratio::whole(inner.numerator().div_euclid(whole)))
            }
            Atom::Holds(inner) => {
                let negative = inner.evaluate(value)?.is_negative();
                Some(Ratio::whole(i128::from(!negative)))
            }
            Atom::Min(parts) | Atom::Max(parts) => {
                let least = matches!(self, Atom::Min(_));
                let mut best: Option<Ratio> = None;
                for part in parts.iter() {
                    let value = part.evaluate(value)?;
                    let better = match best {
                        Some(best) => {
                            let order = value.compare(best)?;
                            if least { order.is_lt() } else { order.is_gt() }
                        }
                        None => true,
                    };
                    if better {
                        best = Some(value);
                    }
                }
                best
            }
        }
    }
}

fn multiply<A: Indeterminate>(left: &Monomial<A>, right: &Monomial<A>) -> Option<Monomial<A>> {
    let mut product = left.clone();
    for (atom, exponent) in right {
        match product.binary_search_by(|(own, _)| own.cmp(atom)) {
            // What is 0 or 1 is its own square.
            Ok(_) if atom.is_its_square() => {}
            Ok(at) => {
                product[at].1 += exponent;
                if product[at].1 > HIGHEST_POWER {
                    return None;
                }
            }
            Err(at) => product.insert(at, (atom.clone(), *exponent)),
        }
    }
    Some(product)
}
