//! An access's index as a sum of products, read from the facts.

use warplens_facts::facts::{AddressPart, IndexExpression, IndexSymbol, Launch, LinearAddress};
use warplens_symbolic::{Indeterminate, Ratio};

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
    /// A quotient or a remainder of coordinates, or what data decides.
    Part(AddressPart),
}

impl Indeterminate for Symbol {}

/// A sum of products of symbols with integer factors.
pub(super) type Polynomial = warplens_symbolic::Polynomial<Symbol>;

/// A product of symbols.
pub(super) type Monomial = warplens_symbolic::Monomial<Symbol>;

/// Where an access goes, and the bytes of its unit: the address where it is a sum of coordinates and counters under
/// this launch, else the index as the source says it, else the sum of its parts.
pub(super) fn index_of(access: &ExecutedAccess, launch: &Launch) -> Option<(Polynomial, f64)> {
    let Some(address) = &access.linear else {
        let read = access.index.as_deref();
        if let Some(index) = read.and_then(|index| self::read(index, launch)) {
            return Some((index, f64::from(access.bytes_per_lane)));
        }
        if let Some(sum) = access.parts.as_deref().and_then(parts) {
            return Some((sum, 1.0));
        }
        // What the threads of a block touch, one beside the other.
        let blocks = linear(access.linear_in_blocks.as_ref()?)?;
        let bytes = Ratio::whole(access.bytes_per_lane.into());
        let threads = Polynomial::atom(Symbol::AnyThread);
        return Some((blocks.plus(&threads, bytes)?, 1.0));
    };
    Some((linear(address)?, 1.0))
}

fn linear(linear: &LinearAddress) -> Option<Polynomial> {
    let threads = linear.thread.iter().enumerate();
    let threads = threads.map(|(axis, factor)| (Symbol::Thread(axis), *factor));
    let blocks = linear.block.iter().enumerate();
    let blocks = blocks.map(|(axis, factor)| (Symbol::Block(axis), *factor));
    let loops = linear.loops.iter().enumerate();
    let loops = loops.map(|(depth, factor)| (Symbol::Loop(depth), *factor));
    let moving = threads.chain(blocks).chain(loops);
    let moving = moving.map(|(symbol, factor)| (vec![(symbol, 1)], factor));
    let terms = [(Vec::new(), linear.constant)].into_iter().chain(moving);
    Polynomial::sum(terms.map(|(monomial, factor)| (monomial, Ratio::whole(factor.into()))))
}

fn parts(parts: &[(i64, AddressPart)]) -> Option<Polynomial> {
    Polynomial::sum(parts.iter().map(|(factor, part)| {
        let symbol = match part {
            AddressPart::Thread(axis) => Symbol::Thread(*axis),
            AddressPart::Block(axis) => Symbol::Block(*axis),
            AddressPart::Loop(depth) => Symbol::Loop(*depth),
            AddressPart::Digit { .. } | AddressPart::Values { .. } => Symbol::Part(part.clone()),
        };
        (vec![(symbol, 1)], Ratio::whole((*factor).into()))
    }))
}

fn read(index: &IndexExpression, launch: &Launch) -> Option<Polynomial> {
    match index {
        IndexExpression::Number(value) => Some(Polynomial::constant((*value).into())),
        IndexExpression::Symbol(symbol) => Some(match symbol {
            IndexSymbol::Thread(axis) => Polynomial::atom(Symbol::Thread(*axis)),
            IndexSymbol::Block(axis) => Polynomial::atom(Symbol::Block(*axis)),
            IndexSymbol::BlockDim(axis) => Polynomial::constant(launch.block[*axis].into()),
            IndexSymbol::GridDim(axis) => Polynomial::constant(launch.grid[*axis].into()),
            IndexSymbol::Named(name) => Polynomial::atom(Symbol::Named(name.to_string())),
        }),
        IndexExpression::Sum(constant, terms) => {
            let mut sum = Polynomial::constant((*constant).into());
            for (term, factor) in terms {
                sum = sum.plus(&read(term, launch)?, Ratio::whole((*factor).into()))?;
            }
            Some(sum)
        }
        IndexExpression::Product(factors) => {
            let mut product = Polynomial::constant(1);
            for factor in factors {
                product = product.mul(&read(factor, launch)?)?;
            }
            Some(product)
        }
        IndexExpression::Other => None,
    }
}

/// What of an index is not made of parameters alone: indices at a distance have it in common.
pub(super) fn movement(index: &Polynomial) -> Vec<(&Monomial, Ratio)> {
    let terms = index.terms();
    terms.filter(|(monomial, _)| !is_fixed(monomial)).collect()
}

fn is_fixed(monomial: &Monomial) -> bool {
    let mut symbols = monomial.iter();
    symbols.all(|(symbol, _)| matches!(symbol, Symbol::Named(_)))
}

/// The distance of an index from another one, where it is one constant product of parameters.
pub(super) fn distance(of: &Polynomial, from: &Polynomial) -> Option<(Monomial, i64)> {
    let mut terms = of.differences(from);
    let Some(only) = terms.next() else {
        return Some((Vec::new(), 0));
    };
    let (monomial, factor) = only?;
    (is_fixed(monomial) && terms.next().is_none())
        .then_some((monomial.clone(), i64::try_from(factor.as_whole()?).ok()?))
}
