//! The sum over a piece, one variable after the other.

use super::{Defined, Division, Extreme, Piece, Points};
use crate::polynomial::{Bound, Bounds, Name, Polynomial, Ratio, gcd};

/// The most cases that splitting a variable by its remainders may give.
const MOST_REMAINDERS: i128 = 32;

/// What became of a piece's conditions.
enum State {
    /// Some can never hold: nothing to count.
    Empty,
    Changed,
    Settled,
}

impl Points<'_> {
    /// The piece's factor summed over its variables.
    pub(super) fn sum(&mut self, mut piece: Piece) -> Option<Polynomial> {
        self.another_piece()?;
        while let Some(defined) = piece.defined.pop() {
            match defined {
                Defined::Division(division) => self.use_division(&mut piece, &division)?,
                Defined::Extreme(extreme) => {
                    if !self.only_bounds(&mut piece, &extreme)? {
                        return self.either(&piece, &extreme);
                    }
                }
            }
        }
        // Equalities are used up last: what they tell apart cannot be joined any more.
        while self.fuse(&mut piece)? {}
        loop {
            match self.simplify(&mut piece)? {
                State::Empty => return Some(Polynomial::zero()),
                State::Changed => {}
                State::Settled if self.fuse(&mut piece)? => {}
                State::Settled => break,
            }
        }
        if piece.variables.is_empty() {
            return Some(piece.factor);
        }
        if let Some(parts) = apart(&piece) {
            let mut product = piece.factor;
            for part in parts {
                product = product.mul(&self.sum(part)?)?;
            }
            return Some(product);
        }
        match self.easiest(&piece) {
            Some(name) => self.eliminate(&piece, name),
            None => self.by_remainders(&piece),
        }
    }

    // ---- variables with definitions ---------------------------------------------------------------------------------------

    /// Defines a quotient by its dividend. A quotient that only bounds something needs no
    /// variable: `floor(p / d) >= q` is `p >= d·q`.
    fn use_division(&mut self, piece: &mut Piece, division: &Division) -> Option<()> {
        let Division {
            value,
            divisor,
            floor,
            rest,
        } = division;
        let bounds_only = piece.least.iter().all(|condition| {
            !condition.depends_on(*rest)
                && (!condition.depends_on(*floor)
                    || condition
                        .coefficient(*floor)
                        .as_whole()
                        .is_some_and(|coefficient| coefficient.abs() == 1))
        });
        let by = Ratio::whole(*divisor);
        if !bounds_only || elsewhere(piece, *floor) || elsewhere(piece, *rest) {
            if !varies(piece, value) {
                let quotient = value.floor_div(*divisor, &self.bounds)?;
                let remainder = value.sub(&quotient.scale(by)?)?;
                self.stand_in(piece, *floor, &quotient)?;
                return self.stand_in(piece, *rest, &remainder);
            }
            let floor = Polynomial::name(*floor).scale(by)?;
            let again = floor.add(&Polynomial::name(*rest))?;
            piece.equal.push(value.sub(&again)?);
            return Some(());
        }
        piece.variables.retain(|name| name != floor && name != rest);
        let own = Polynomial::name(*floor);
        for condition in &mut piece.least {
            let coefficient = condition.coefficient(*floor);
            if coefficient == Ratio::ONE {
                *condition = condition.sub(&own)?.scale(by)?.add(value)?;
            } else if coefficient != Ratio::ZERO {
                let others = condition.add(&own)?.scale(by)?;
                *condition = others.offset(divisor - 1)?.sub(value)?;
            }
            if condition.depends_on(*floor) {
                return None;
            }
        }
        Some(())
    }

    /// `min(a, b) >= p` is `a >= p` and `b >= p`; false where the extreme says something else as well.
    fn only_bounds(&self, piece: &mut Piece, extreme: &Extreme) -> Option<bool> {
        let name = extreme.name;
        if elsewhere(piece, name) {
            return Some(false);
        }
        let mut conditions = Vec::with_capacity(piece.least.len() + 1);
        for condition in &piece.least {
            if !condition.depends_on(name) {
                conditions.push(condition.clone());
                continue;
            }
            let factor = condition.coefficient(name);
            let own = Polynomial::name(name).scale(factor)?;
            let others = condition.sub(&own)?;
            if factor == Ratio::ZERO || others.depends_on(name) {
                return None;
            }
            let [a, b] =
                [&extreme.of[0], &extreme.of[1]].map(|side| others.add(&side.scale(factor)?));
            let (a, b) = (a?, b?);
            let never = |side: &Polynomial| {
                let below = side.neg().and_then(|side| side.offset(-1));
                below.is_some_and(|below| self.bounds.never_negative(&below))
            };
            if factor.is_negative() != extreme.least {
                conditions.extend([a, b]);
            } else if never(&a) {
                conditions.push(b);
            } else if never(&b) {
                conditions.push(a);
            } else {
                return Some(false);
            }
        }
        piece.variables.retain(|&own| own != name);
        piece.least = conditions;
        Some(true)
    }

    /// Replaces a name by its definition.
    fn stand_in(&self, piece: &mut Piece, name: Name, value: &Polynomial) -> Option<()> {
        self.replace(piece, name, value)?;
        for defined in &mut piece.defined {
            defined.replace(name, value, &self.bounds)?;
        }
        Some(())
    }

    /// The sum where the one side is the extreme, and where the other one is.
    fn either(&mut self, piece: &Piece, extreme: &Extreme) -> Option<Polynomial> {
        let [a, b] = &extreme.of;
        if !varies(piece, a) && !varies(piece, b) {
            let value = if extreme.least {
                Polynomial::least(&extreme.of, &self.bounds)?
            } else {
                Polynomial::greatest(&extreme.of, &self.bounds)?
            };
            let mut piece = piece.clone();
            self.stand_in(&mut piece, extreme.name, &value)?;
            return self.sum(piece);
        }
        let (small, large) = if extreme.least { (a, b) } else { (b, a) };
        let mut total = Polynomial::zero();
        for (side, condition) in [(a, large.sub(small)?), (b, small.sub(large)?.offset(-1)?)] {
            let mut part = piece.clone();
            self.stand_in(&mut part, extreme.name, side)?;
            part.least.push(condition);
            total = total.add(&self.sum(part)?)?;
        }
        Some(total)
    }

    // ---- conditions ------------------------------------------------------------------------------

    /// Uses equalities up, tightens conditions, drops those that always hold and moves those without
    /// variables into the factor.
    fn simplify(&mut self, piece: &mut Piece) -> Option<State> {
        if let Some(equal) = piece.equal.pop() {
            return self.use_equality(piece, &equal);
        }
        // Before anything is rounded: that may hide which follows from which.
        piece.least = self.without_implied(std::mem::take(&mut piece.least));
        let mut conditions = Vec::with_capacity(piece.least.len());
        for condition in &piece.least {
            let condition = self.tightened(piece, condition)?;
            if self.bounds.never_negative(&condition) {
                continue;
            }
            if self.bounds.never_negative(&condition.neg()?.offset(-1)?) {
                return Some(State::Empty);
            }
            if piece.variables.iter().all(|&v| !condition.depends_on(v)) {
                let holds = condition.holds(&self.bounds)?;
                piece.factor = piece.factor.mul(&holds)?;
                continue;
            }
            conditions.push(condition);
        }
        let single = conditions
            .iter()
            .position(|condition| bound_of(condition).is_some());
        if let Some(at) = single {
            let (name, limit, lower) = bound_of(&conditions.swap_remove(at))?;
            piece.least = conditions;
            return self.narrow(piece, name, limit, lower);
        }
        piece.least = self.without_implied(conditions);
        Some(State::Settled)
    }

    fn without_implied(&self, conditions: Vec<Polynomial>) -> Vec<Polynomial> {
        let mut kept: Vec<Polynomial> = Vec::with_capacity(conditions.len());
        for condition in conditions {
            if kept.iter().any(|other| self.follows(&condition, other)) {
                continue;
            }
            kept.retain(|other| !self.follows(other, &condition));
            kept.push(condition);
        }
        kept
    }

    /// True where `what >= 0` wherever `from >= 0`.
    fn follows(&self, what: &Polynomial, from: &Polynomial) -> bool {
        let more = what.sub(from);
        more.is_some_and(|more| self.bounds.never_negative(&more))
    }

    /// A condition with one variable and numbers only is a bound of it.
    fn narrow(&mut self, piece: &mut Piece, name: Name, limit: i128, lower: bool) -> Option<State> {
        let before = self.bounds.get(name);
        let (mut lo, mut hi) = (
            before.lo.and_then(Ratio::as_whole),
            before.hi.and_then(Ratio::as_whole),
        );
        if lower {
            lo = Some(lo.map_or(limit, |lo| lo.max(limit)));
        } else {
            hi = Some(hi.map_or(limit, |hi| hi.min(limit)));
        }
        if let (Some(lo), Some(hi)) = (lo, hi)
            && lo > hi
        {
            return Some(State::Empty);
        }
        // Other pieces know the variable by its old name.
        let narrowed = self.fresh(None);
        self.bounds.set(narrowed, Bound::new(lo, hi));
        self.replace(piece, name, &Polynomial::name(narrowed))?;
        piece.variables.push(narrowed);
        Some(State::Changed)
    }

    /// Takes the variable out of the piece; its own bounds are the caller's to keep.
    fn replace(&self, piece: &mut Piece, name: Name, by: &Polynomial) -> Option<()> {
        piece.variables.retain(|&own| own != name);
        for condition in piece.equal.iter_mut().chain(&mut piece.least) {
            *condition = condition.substitute(name, by, &self.bounds)?;
        }
        piece.factor = piece.factor.substitute(name, by, &self.bounds)?;
        Some(())
    }

    fn use_equality(&mut self, piece: &mut Piece, equal: &Polynomial) -> Option<State> {
        let coefficients = affine(piece, equal)?;
        if coefficients.is_empty() {
            if let Some(value) = equal.as_constant() {
                let holds = value == Ratio::ZERO;
                return Some(if holds { State::Changed } else { State::Empty });
            }
            let above = equal.holds(&self.bounds)?;
            let below = equal.neg()?.holds(&self.bounds)?;
            piece.factor = piece.factor.mul(&above)?.mul(&below)?;
            return Some(State::Changed);
        }
        let mut common = 0;
        for &(_, coefficient) in &coefficients {
            common = if common == 0 {
                coefficient.checked_abs()?
            } else {
                gcd(common, coefficient)?
            };
        }
        if common > 1 {
            let rest = rest_of(equal, &coefficients)?;
            if rest.as_whole()? % common != 0 {
                return Some(State::Empty);
            }
            piece.equal.push(equal.scale(Ratio::new(1, common)?)?);
            return Some(State::Changed);
        }
        let &(name, sign) = coefficients
            .iter()
            .find(|(_, coefficient)| coefficient.abs() == 1)?;
        // sign · name + others = 0.
        let own = Polynomial::name(name).scale(Ratio::whole(sign))?;
        let value = equal.sub(&own)?.scale(Ratio::whole(-sign))?;
        let bound = self.bounds.get(name);
        self.replace(piece, name, &value)?;
        if let Some(lo) = bound.lo.and_then(Ratio::as_whole) {
            piece.least.push(value.offset(lo.checked_neg()?)?);
        }
        if let Some(hi) = bound.hi.and_then(Ratio::as_whole) {
            piece.least.push(value.neg()?.offset(hi)?);
        }
        Some(State::Changed)
    }

    /// The same condition on whole numbers, as narrow as it goes.
    fn tightened(&self, piece: &Piece, condition: &Polynomial) -> Option<Polynomial> {
        let mut condition = condition.clone();
        loop {
            let coefficients = affine(piece, &condition)?;
            let mut common = 0;
            for &(_, coefficient) in &coefficients {
                common = if common == 0 {
                    coefficient.checked_abs()?
                } else {
                    gcd(common, coefficient)?
                };
            }
            if common > 1 {
                let rest = rest_of(&condition, &coefficients)?;
                let moving = condition.sub(&rest)?.scale(Ratio::new(1, common)?)?;
                condition = moving.add(&rest.floor_div(common, &self.bounds)?)?;
            }
            let before = condition.clone();
            for &(_, divisor) in &coefficients {
                condition = self.without_remainder(&condition, divisor.checked_abs()?)?;
            }
            if condition == before {
                return Some(condition);
            }
        }
    }

    /// `d·p + r >= 0` is `p + t >= 0` where all of r lies in `t·d .. (t + 1)·d`.
    fn without_remainder(&self, condition: &Polynomial, divisor: i128) -> Option<Polynomial> {
        if divisor <= 1 {
            return Some(condition.clone());
        }
        let (multiples, rest) = condition.multiples_of(divisor)?;
        let range = self.bounds.range(&rest);
        let down = |end: Option<Ratio>| {
            let end = end?;
            let by = end.denominator().checked_mul(divisor)?;
            Some(end.numerator().div_euclid(by))
        };
        match (down(range.lo), down(range.hi)) {
            (Some(lo), Some(hi)) if lo == hi && rest != Polynomial::zero() => multiples.offset(lo),
            _ => Some(condition.clone()),
        }
    }

    // ---- variables -------------------------------------------------------------------------------

    /// Joins `block · extent + thread` to one variable where nothing tells the two apart.
    fn fuse(&mut self, piece: &mut Piece) -> Option<bool> {
        for &inner in &piece.variables {
            let bound = self.bounds.get(inner);
            let (Some(0), Some(last)) = (
                bound.lo.and_then(Ratio::as_whole),
                bound.hi.and_then(Ratio::as_whole),
            ) else {
                continue;
            };
            let extent = last.checked_add(1)?;
            for &outer in &piece.variables {
                if outer == inner || self.bounds.get(outer).lo != Some(Ratio::ZERO) {
                    continue;
                }
                let mut together = false;
                let mut apart = piece.factor.depends_on(inner) || piece.factor.depends_on(outer);
                for condition in piece.equal.iter().chain(&piece.least) {
                    let one = condition.coefficient(inner);
                    let step = one.times(Ratio::whole(extent))?;
                    together |= one != Ratio::ZERO;
                    apart |= condition.coefficient(outer) != step;
                }
                if !together || apart {
                    continue;
                }
                let last = match self.bounds.get(outer).hi.and_then(Ratio::as_whole) {
                    Some(last) => Some(last.checked_add(1)?.checked_mul(extent)?.checked_sub(1)?),
                    None => None,
                };
                let joined = self.fresh(last);
                self.replace(piece, outer, &Polynomial::zero())?;
                self.replace(piece, inner, &Polynomial::name(joined))?;
                piece.variables.push(joined);
                return Some(true);
            }
        }
        Some(false)
    }

    /// The variable whose sum splits into the fewest cases; `None` where none can be summed directly.
    fn easiest(&self, piece: &Piece) -> Option<Name> {
        let mut best: Option<(usize, Name)> = None;
        for &name in piece.variables.iter().rev() {
            let Some((lowers, uppers)) = self.limits(piece, name) else {
                continue;
            };
            let count = |limits: &[Polynomial]| {
                let varying = limits.iter().filter(|limit| varies(piece, limit)).count();
                varying + usize::from(varying < limits.len())
            };
            let pieces = count(&lowers) * count(&uppers);
            if pieces > 0 && best.is_none_or(|(least, _)| pieces < least) {
                best = Some((pieces, name));
            }
        }
        best.map(|(_, name)| name)
    }

    /// Every first and last value that some condition sets; `None` where one is no polynomial.
    fn limits(&self, piece: &Piece, name: Name) -> Option<(Vec<Polynomial>, Vec<Polynomial>)> {
        let (mut lowers, mut uppers) = (Vec::new(), Vec::new());
        let bound = self.bounds.get(name);
        let number = |end: Option<Ratio>| Some(Polynomial::constant(end?.as_whole()?));
        lowers.extend(number(bound.lo));
        uppers.extend(number(bound.hi));
        for condition in &piece.least {
            let coefficient = condition.coefficient(name).as_whole()?;
            if coefficient == 0 {
                continue;
            }
            let own = Polynomial::name(name).scale(Ratio::whole(coefficient))?;
            let rest = condition.sub(&own)?;
            let size = coefficient.checked_abs()?;
            if size > 1 && varies(piece, &rest) {
                return None;
            }
            // size · name <= rest, or size · name >= -rest.
            let floor = rest.floor_div(size, &self.bounds)?;
            if coefficient > 0 {
                lowers.push(floor.neg()?);
            } else {
                uppers.push(floor);
            }
        }
        let lowers = self.decisive(piece, name, lowers, false)?;
        let uppers = self.decisive(piece, name, uppers, true)?;
        Some((lowers, uppers))
    }

    /// Limits without those that another one always beats; those without variables are joined to one.
    fn decisive(
        &self,
        piece: &Piece,
        name: Name,
        limits: Vec<Polynomial>,
        least: bool,
    ) -> Option<Vec<Polynomial>> {
        let (varying, fixed): (Vec<_>, Vec<_>) =
            limits.into_iter().partition(|limit| varies(piece, limit));
        let mut all = varying;
        if !fixed.is_empty() {
            all.push(if least {
                Polynomial::least(&fixed, &self.bounds)?
            } else {
                Polynomial::greatest(&fixed, &self.bounds)?
            });
        }
        let mut kept: Vec<Polynomial> = Vec::with_capacity(all.len());
        for limit in all {
            let beaten = |loser: &Polynomial, winner: &Polynomial| {
                let ahead = if least {
                    loser.sub(winner)
                } else {
                    winner.sub(loser)
                };
                ahead.is_some_and(|ahead| self.proved(piece, name, &ahead))
            };
            if kept.iter().any(|other| beaten(&limit, other)) {
                continue;
            }
            kept.retain(|other| !beaten(other, &limit));
            kept.push(limit);
        }
        Some(kept)
    }

    /// True where `what >= 0` follows from the bounds, or from a condition without the name.
    fn proved(&self, piece: &Piece, name: Name, what: &Polynomial) -> bool {
        self.bounds.never_negative(what)
            || piece
                .least
                .iter()
                .any(|condition| !condition.depends_on(name) && self.follows(what, condition))
    }

    fn eliminate(&mut self, piece: &Piece, name: Name) -> Option<Polynomial> {
        let (lowers, uppers) = self.limits(piece, name)?;
        let mut rest = piece.clone();
        rest.variables.retain(|&own| own != name);
        rest.least.retain(|condition| !condition.depends_on(name));
        let mut total = Polynomial::zero();
        for (i, first) in lowers.iter().enumerate() {
            for (j, last) in uppers.iter().enumerate() {
                let mut part = rest.clone();
                // This first value is the greatest, and this last one the least; of equals the first counts.
                for (k, other) in lowers.iter().enumerate().filter(|&(k, _)| k != i) {
                    let ahead = first.sub(other)?;
                    part.least.push(ahead.offset(-i128::from(k < i))?);
                }
                for (k, other) in uppers.iter().enumerate().filter(|&(k, _)| k != j) {
                    let ahead = other.sub(last)?;
                    part.least.push(ahead.offset(-i128::from(k < j))?);
                }
                let length = last.sub(first)?.offset(1)?;
                if piece.factor.depends_on(name) || varies(piece, &length) {
                    part.factor = piece.factor.sum_over(name, first, last, &self.bounds)?;
                    if !self.proved(&rest, name, &length) {
                        part.least.push(length);
                    }
                } else {
                    let both = [length, Polynomial::zero()];
                    let length = Polynomial::greatest(&both, &self.bounds)?;
                    part.factor = piece.factor.mul(&length)?;
                }
                total = total.add(&self.sum(part)?)?;
            }
        }
        Some(total)
    }

    /// Splits a variable that is added to a multiple of another one by its remainders.
    fn by_remainders(&mut self, piece: &Piece) -> Option<Polynomial> {
        let mut split = None;
        for condition in &piece.least {
            let coefficients = affine(piece, condition)?;
            for &(_, divisor) in &coefficients {
                let divisor = divisor.checked_abs()?;
                let other = coefficients.iter().find(|(_, own)| own % divisor != 0);
                if let Some(&(name, _)) = other
                    && divisor <= MOST_REMAINDERS
                    && split.is_none_or(|(_, least)| divisor < least)
                {
                    split = Some((name, divisor));
                }
            }
        }
        let (name, divisor) = split?;
        let bound = self.bounds.get(name);
        let lo = bound.lo.and_then(Ratio::as_whole)?;
        let hi = bound.hi.and_then(Ratio::as_whole);
        let mut total = Polynomial::zero();
        for remainder in 0..divisor {
            let first = lo.checked_sub(remainder)?.checked_add(divisor - 1)?;
            let last = match hi {
                Some(hi) => Some(hi.checked_sub(remainder)?.div_euclid(divisor)),
                None => None,
            };
            let first = first.div_euclid(divisor);
            if last.is_some_and(|last| last < first) {
                continue;
            }
            let quotient = self.fresh(None);
            self.bounds.set(quotient, Bound::new(Some(first), last));
            let value = Polynomial::name(quotient)
                .scale(Ratio::whole(divisor))?
                .offset(remainder)?;
            let mut part = piece.clone();
            self.replace(&mut part, name, &value)?;
            part.variables.push(quotient);
            total = total.add(&self.sum(part)?)?;
        }
        Some(total)
    }
}

impl Defined {
    fn depends_on(&self, name: Name) -> bool {
        match self {
            Defined::Division(division) => division.value.depends_on(name),
            Defined::Extreme(extreme) => extreme.of.iter().any(|side| side.depends_on(name)),
        }
    }

    fn replace(&mut self, name: Name, by: &Polynomial, bounds: &Bounds) -> Option<()> {
        match self {
            Defined::Division(division) => {
                division.value = division.value.substitute(name, by, bounds)?;
            }
            Defined::Extreme(extreme) => {
                for side in &mut extreme.of {
                    *side = side.substitute(name, by, bounds)?;
                }
            }
        }
        Some(())
    }
}

/// True where something but a bound depends on the name.
fn elsewhere(piece: &Piece, name: Name) -> bool {
    piece.equal.iter().any(|equal| equal.depends_on(name))
        || piece.defined.iter().any(|other| other.depends_on(name))
}

fn varies(piece: &Piece, value: &Polynomial) -> bool {
    piece.variables.iter().any(|&name| value.depends_on(name))
}

/// The coefficients of the piece's variables; `None` where the condition is not affine in them.
fn affine(piece: &Piece, condition: &Polynomial) -> Option<Vec<(Name, i128)>> {
    let mut coefficients = Vec::new();
    for &name in &piece.variables {
        if condition.depends_on(name) {
            coefficients.push((name, condition.coefficient(name).as_whole()?));
        }
    }
    let rest = rest_of(condition, &coefficients)?;
    (!varies(piece, &rest)).then_some(coefficients)
}

/// The condition without those variables.
fn rest_of(condition: &Polynomial, coefficients: &[(Name, i128)]) -> Option<Polynomial> {
    let mut rest = condition.clone();
    for &(name, coefficient) in coefficients {
        rest = rest.sub(&Polynomial::name(name).scale(Ratio::whole(coefficient))?)?;
    }
    Some(rest)
}

/// `name >= limit` (true) or `name <= limit`, where the condition says nothing else.
fn bound_of(condition: &Polynomial) -> Option<(Name, i128, bool)> {
    let name = condition.only_name()?;
    let coefficient = condition.coefficient(name).as_whole()?;
    let rest = condition.constant_term().as_whole()?;
    let size = coefficient.checked_abs()?;
    if coefficient > 0 {
        Some((name, rest.div_euclid(size).checked_neg()?, true))
    } else {
        Some((name, rest.div_euclid(size), false))
    }
}

/// Parts of the piece that share no variable, each without the factor; `None` where there is only one.
fn apart(piece: &Piece) -> Option<Vec<Piece>> {
    if varies(piece, &piece.factor) {
        return None;
    }
    let mut groups: Vec<(Vec<Name>, Vec<Polynomial>)> = piece
        .variables
        .iter()
        .map(|&name| (vec![name], Vec::new()))
        .collect();
    for condition in &piece.least {
        let (mut names, mut conditions) = (Vec::new(), vec![condition.clone()]);
        groups.retain_mut(|(own, held)| {
            let touches = own.iter().any(|&name| condition.depends_on(name));
            if touches {
                names.append(own);
                conditions.append(held);
            }
            !touches
        });
        groups.push((names, conditions));
    }
    let part = |(variables, least)| Piece {
        variables,
        defined: Vec::new(),
        equal: Vec::new(),
        least,
        factor: Polynomial::constant(1),
    };
    (groups.len() > 1).then(|| groups.into_iter().map(part).collect())
}
