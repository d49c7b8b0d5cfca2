//! An access's index as a sum of products, read from the facts.

use warplens_facts::facts::{IndexExpression, IndexSymbol, Launch, LinearAddress};

use crate::ExecutedAccess;

/// Something an index is made of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Symbol {
    Thread(usize),
    /// A thread of a block, counted through.
    AnyThread,
    Block(usize),
    /// The counter of a loop around the access, by its depth.
    Loop(usize),
    /// A loop counter or a parameter.
    Named(String),
}

pub(super) type Monomial = Vec<Symbol>;

/// A sum of products with integer factors.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Polynomial {
    pub(super) terms: Vec<(Monomial, i64)>,
}

impl Polynomial {
    /// Where an access goes, and the bytes of its unit: the address where it is a sum of coordinates and counters under
    /// this launch, else the index as the source says it.
    pub(super) fn of(access: &ExecutedAccess, launch: &Launch) -> Option<(Polynomial, f64)> {
        let Some(linear) = &access.linear else {
            let read = access.index.as_deref();
            if let Some(index) = read.and_then(|index| Polynomial::read(index, launch)) {
                return Some((index, f64::from(access.bytes_per_lane)));
            }
            // What the threads of a block touch, one beside the other.
            let mut index = Polynomial::linear(access.linear_in_blocks.as_ref()?);
            index
                .terms
                .push((vec![Symbol::AnyThread], i64::from(access.bytes_per_lane)));
            return Some((index, 1.0));
        };
        Some((Polynomial::linear(linear), 1.0))
    }

    fn linear(linear: &LinearAddress) -> Polynomial {
        let mut terms = vec![(Vec::new(), linear.constant)];
        let threads = linear.thread.iter().enumerate();
        terms.extend(threads.map(|(axis, factor)| (vec![Symbol::Thread(axis)], *factor)));
        let blocks = linear.block.iter().enumerate();
        terms.extend(blocks.map(|(axis, factor)| (vec![Symbol::Block(axis)], *factor)));
        let loops = linear.loops.iter().enumerate();
        terms.extend(loops.map(|(depth, factor)| (vec![Symbol::Loop(depth)], *factor)));
        terms.retain(|term| term.1 != 0);
        Polynomial { terms }
    }

    fn read(index: &IndexExpression, launch: &Launch) -> Option<Polynomial> {
        match index {
            IndexExpression::Number(value) => {
                Polynomial::default().plus(Polynomial::constant(*value), 1)
            }
            IndexExpression::Symbol(symbol) => {
                let extent = |value: u64| Some(Polynomial::constant(i64::try_from(value).ok()?));
                match symbol {
                    IndexSymbol::Thread(axis) => Some(Polynomial::symbol(Symbol::Thread(*axis))),
                    IndexSymbol::Block(axis) => Some(Polynomial::symbol(Symbol::Block(*axis))),
                    IndexSymbol::BlockDim(axis) => extent(launch.block[*axis]),
                    IndexSymbol::GridDim(axis) => extent(launch.grid[*axis]),
                    IndexSymbol::Named(name) => {
                        Some(Polynomial::symbol(Symbol::Named(name.to_string())))
                    }
                }
            }
            IndexExpression::Sum(constant, terms) => {
                let mut sum = Polynomial::default();
                for (term, factor) in terms {
                    let term = Polynomial::read(term, launch)?;
                    sum = sum.plus(term, *factor)?;
                }
                sum.plus(Polynomial::constant(*constant), 1)
            }
            IndexExpression::Product(factors) => {
                let mut product = Polynomial::constant(1);
                for factor in factors {
                    product = product.times(&Polynomial::read(factor, launch)?)?;
                }
                Some(product)
            }
            IndexExpression::Other => None,
        }
    }

    fn constant(value: i64) -> Polynomial {
        Polynomial {
            terms: vec![(Vec::new(), value)],
        }
    }

    fn symbol(symbol: Symbol) -> Polynomial {
        Polynomial {
            terms: vec![(vec![symbol], 1)],
        }
    }

    fn plus(mut self, other: Polynomial, sign: i64) -> Option<Polynomial> {
        for (monomial, factor) in other.terms {
            let factor = factor.checked_mul(sign)?;
            match self.terms.iter_mut().find(|term| term.0 == monomial) {
                Some(term) => term.1 = term.1.checked_add(factor)?,
                None => self.terms.push((monomial, factor)),
            }
        }
        self.terms.retain(|term| term.1 != 0);
        Some(self)
    }

    fn times(&self, other: &Polynomial) -> Option<Polynomial> {
        let mut product = Polynomial::default();
        for (left, a) in &self.terms {
            for (right, b) in &other.terms {
                let mut monomial = left.clone();
                monomial.extend(right.iter().cloned());
                monomial.sort_unstable();
                let term = Polynomial {
                    terms: vec![(monomial, a.checked_mul(*b)?)],
                };
                product = product.plus(term, 1)?;
                if product.terms.len() > 64 {
                    return None;
                }
            }
        }
        Some(product)
    }

    /// The distance from `other`, where it is one constant product of parameters.
    pub(super) fn shift_from(&self, other: &Polynomial) -> Option<(Monomial, i64)> {
        let mut difference = self.clone().plus(other.clone(), -1)?;
        match difference.terms.len() {
            0 => Some((Vec::new(), 0)),
            1 => {
                let (monomial, factor) = difference.terms.pop()?;
                let fixed = monomial
                    .iter()
                    .all(|symbol| matches!(symbol, Symbol::Named(_)));
                fixed.then_some((monomial, factor))
            }
            _ => None,
        }
    }
}
