//! An access's index as a sum of products, read from the facts.

use warplens_facts::facts::{Access, Launch, LinearAddress};

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
    pub(super) fn of(access: &Access, launch: &Launch) -> Option<(Polynomial, f64)> {
        let Some(linear) = &access.linear else {
            if let Some(index) = Polynomial::read(&access.index, launch) {
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

    fn read(text: &str, launch: &Launch) -> Option<Polynomial> {
        let mut reader = Reader {
            rest: text.trim(),
            launch,
            depth: 0,
        };
        let polynomial = reader.sum()?;
        reader.rest.trim_start().is_empty().then_some(polynomial)
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

/// Reads sums of products in parentheses.
struct Reader<'t> {
    rest: &'t str,
    launch: &'t Launch,
    depth: usize,
}

impl Reader<'_> {
    fn take(&mut self, symbol: char) -> bool {
        let rest = self.rest.trim_start();
        let found = rest.strip_prefix(symbol);
        self.rest = found.unwrap_or(rest);
        found.is_some()
    }

    /// A conversion of width does not move an element.
    fn skip_cast(&mut self) {
        let rest = self.rest.trim_start();
        if (rest.starts_with("(int") || rest.starts_with("(uint"))
            && let Some((_, after)) = rest.split_once("_t)")
            && rest.find(')') == rest.find("_t)").map(|at| at + 2)
        {
            self.rest = after;
        }
    }

    fn sum(&mut self) -> Option<Polynomial> {
        let negative = self.take('-');
        let first = self.product()?;
        let mut sum = Polynomial::default().plus(first, if negative { -1 } else { 1 })?;
        loop {
            let sign = if self.take('+') {
                1
            } else if self.take('-') {
                -1
            } else {
                return Some(sum);
            };
            sum = sum.plus(self.product()?, sign)?;
        }
    }

    fn product(&mut self) -> Option<Polynomial> {
        let mut product = self.factor()?;
        while self.take('*') {
            product = product.times(&self.factor()?)?;
        }
        Some(product)
    }

    fn factor(&mut self) -> Option<Polynomial> {
        self.skip_cast();
        if self.take('(') {
            self.depth += 1;
            let inner = if self.depth < 32 { self.sum() } else { None };
            self.depth -= 1;
            return inner.filter(|_| self.take(')'));
        }
        let rest = self.rest.trim_start();
        let word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        let end = rest.find(|c: char| !word(c)).unwrap_or(rest.len());
        let (token, after) = rest.split_at(end);
        self.rest = after;
        if token.starts_with(|c: char| c.is_ascii_digit()) {
            let digits = token.trim_end_matches(['u', 'U', 'l', 'L']);
            return digits.parse().ok().map(Polynomial::constant);
        }
        if token.is_empty() {
            return None;
        }
        if let Some((name, axis)) = token.split_once('.')
            && let Some(axis) = ["x", "y", "z"].iter().position(|known| *known == axis)
        {
            return Some(match name {
                "threadIdx" => Polynomial::symbol(Symbol::Thread(axis)),
                "blockIdx" => Polynomial::symbol(Symbol::Block(axis)),
                "blockDim" => Polynomial::constant(i64::try_from(self.launch.block[axis]).ok()?),
                "gridDim" => Polynomial::constant(i64::try_from(self.launch.grid[axis]).ok()?),
                _ => Polynomial::symbol(Symbol::Named(token.to_owned())),
            });
        }
        if self.take('(') {
            let axis: usize = self.factor()?.as_axis()?;
            if !self.take(')') {
                return None;
            }
            return self.work_item(token, axis);
        }
        Some(Polynomial::symbol(Symbol::Named(token.to_owned())))
    }

    /// The work-item functions of `OpenCL`.
    fn work_item(&self, name: &str, axis: usize) -> Option<Polynomial> {
        let size = i64::try_from(*self.launch.block.get(axis)?).ok()?;
        let count = i64::try_from(*self.launch.grid.get(axis)?).ok()?;
        match name {
            "get_local_id" => Some(Polynomial::symbol(Symbol::Thread(axis))),
            "get_group_id" => Some(Polynomial::symbol(Symbol::Block(axis))),
            "get_local_size" => Some(Polynomial::constant(size)),
            "get_num_groups" => Some(Polynomial::constant(count)),
            "get_global_size" => Some(Polynomial::constant(size.checked_mul(count)?)),
            "get_global_id" => Polynomial::symbol(Symbol::Block(axis))
                .times(&Polynomial::constant(size))?
                .plus(Polynomial::symbol(Symbol::Thread(axis)), 1),
            _ => None,
        }
    }
}

impl Polynomial {
    fn as_axis(&self) -> Option<usize> {
        match self.terms.as_slice() {
            [] => Some(0),
            [(monomial, axis)] if monomial.is_empty() => usize::try_from(*axis).ok(),
            _ => None,
        }
    }
}
