//! What requests take whose start is not known: for each place where it may lie within a transaction unit.

use warplens_symbolic::{Id, Node, Query, Symbol, SymbolSet};

use crate::access::{Measure, OTHER_BUDGET, Sums, by_width, cost, shape};
use crate::cases::Cost;
use crate::context::{Context, assumed};
use crate::draft::{AccessDraft, word};
use crate::facts::{AlignedRequests, Space};

/// Alignments that are looked at, at most.
const ALIGNMENTS: i64 = 8;

impl Measure<'_> {
    /// What requests take where the unknown part of the address is a summand that lanes of a warp share: only how it lies
    /// within a transaction's `unit` of bytes matters. Lanes that differ in what it varies with have one of their own each.
    pub(crate) fn by_alignment(
        &mut self,
        draft: &AccessDraft,
        context: &Context,
        unit: i64,
    ) -> Vec<AlignedRequests> {
        if unit == 0 {
            return Vec::new();
        }
        let straight = self.straightened(draft, context);
        let mut step = unit;
        if straight.is_some() {
            // Where it begins, data decides all the same.
            let (_, terms) = self.unwrapped(draft.address);
            let open = terms
                .iter()
                .filter(|term| self.arena.opaque(term.0).is_some());
            let zeros = open.map(|(_, factor)| factor.trailing_zeros());
            step = 1 << zeros.min().unwrap_or(0).min(unit.trailing_zeros());
        }
        let (constant, terms) = self.unwrapped(straight.unwrap_or(draft.address));
        let whole = self.whole_accesses(draft, constant, &terms);
        let mut known = self.arena.constant(constant);
        let mut apart: Vec<Symbol> = Vec::new();
        for (term, factor) in terms {
            if self.arena.opaque(term).is_none() {
                let scaled = self.arena.scale(term, factor);
                known = self.arena.add(known, scaled);
                continue;
            }
            let factor = self.known_factor(term, factor).0;
            let zeros = factor.trailing_zeros().max(whole.trailing_zeros());
            step = 1 << zeros.min(step.trailing_zeros());
            if !self.arena.varies_in_warp(term) {
                continue;
            }
            let with = self.arena.varies_with(term);
            if with == SymbolSet::ALL {
                return Vec::new();
            }
            let threads = self.threads.into_iter();
            apart.extend(threads.filter(|thread| self.arena.is_in(*thread, with)));
        }
        let step = step.max(unit / ALIGNMENTS);
        let mut found = Vec::new();
        for shift in (0..unit).step_by(step as usize) {
            let shift = self.arena.constant(shift);
            let address = self.arena.add(known, shift);
            let (sums, complete) = self.sum_apart(draft, address, context, &apart);
            // Of a guess a sample is as good.
            if sums.requests == 0.0 || !complete && straight.is_none() {
                return Vec::new();
            }
            found.push(sums.aligned());
        }
        found
    }

    /// Sums over requests in which lanes that differ in one of those coordinates go to places of their own.
    fn sum_apart(
        &mut self,
        draft: &AccessDraft,
        address: Id,
        context: &Context,
        apart: &[Symbol],
    ) -> (Sums, bool) {
        if apart.is_empty() {
            return self.sum(draft, address, context, OTHER_BUDGET);
        }
        let guards = context.guards();
        let mut roots = vec![(address, draft.period(self.profile))];
        for symbol in apart {
            roots.push((self.arena.of_symbol(*symbol), 0));
        }
        let query = Query {
            counters: &context.counters,
            guards: &guards,
            roots: &roots,
            budget: OTHER_BUDGET,
        };
        let mut sums = Sums::default();
        let lanes = self.domain.warp_size();
        let (profile, arena) = (self.profile, &*self.arena);
        let complete = self.budget.visit(self.domain, arena, &query, &mut |case| {
            let addresses = &case.values[0][..lanes];
            let mut total: Cost = cost(profile, draft.kind(), addresses, case.active);
            (total[0], total[2]) = (0, 0);
            let mut looked_up = [0; 3];
            let mut left = case.active;
            while left != 0 {
                let first = left.trailing_zeros() as usize;
                let together = (first..lanes).filter(|&lane| {
                    left >> lane & 1 == 1
                        && (case.values[1..].iter()).all(|at| at[lane] == at[first])
                });
                let together = together.fold(0, |mask, lane| mask | 1 << lane);
                left &= !together;
                let own = cost(profile, draft.kind(), addresses, together);
                total[0] += own[0];
                total[2] += own[2];
                for (sum, own) in
                    looked_up
                        .iter_mut()
                        .zip(by_width(profile, draft.kind(), addresses, together))
                {
                    *sum += own;
                }
            }
            sums.add(case.weight, total, looked_up, || {
                shape(addresses, case.active)
            });
        });
        (sums, complete)
    }

    /// The address without what is not known of it, where that moves all lanes of a warp together by whole periods: no figure
    /// depends on it. Of rows as long as an assumed argument says one row is left in it: any number of them begins like one.
    pub(crate) fn without_whole_periods(&mut self, draft: &AccessDraft) -> Option<Id> {
        if draft.space == Space::Local {
            return None;
        }
        let period = match draft.space {
            // Of banks that take turns word by word each word is as good as the first.
            Space::Shared if self.profile.bank_rule.is_of_words() => {
                word(draft.width()).min(draft.period(self.profile))
            }
            _ => draft.period(self.profile),
        };
        let (constant, terms) = self.unwrapped(draft.address);
        let whole = self.whole_accesses(draft, constant, &terms);
        let mut known = self.arena.constant(constant);
        for (term, factor) in terms {
            if self.arena.opaque(term).is_none() {
                let scaled = self.arena.scale(term, factor);
                known = self.arena.add(known, scaled);
                continue;
            }
            let (times, assumed) = self.known_factor(term, factor);
            let row = assumed.iter().try_fold(times, |row, length| {
                row.checked_mul(self.arena.value(*length)?)
            })?;
            if self.arena.varies_in_warp(term) || row % period != 0 && whole % period != 0 {
                return None;
            }
            if !assumed.is_empty() {
                let mut one = self.arena.constant(times);
                for length in assumed {
                    one = self.arena.mul(one, length);
                }
                known = self.arena.add(known, one);
            }
        }
        Some(known)
    }

    /// The address at each place within `unit` bytes where what data decides of it may begin; nothing where lanes of a warp
    /// differ in that.
    pub(crate) fn starts(&mut self, draft: &AccessDraft, unit: i64) -> Option<Vec<Id>> {
        let (constant, terms) = self.unwrapped(draft.address);
        let whole = self.whole_accesses(draft, constant, &terms);
        let mut known = self.arena.constant(constant);
        let mut step = unit;
        for (term, factor) in terms {
            if self.arena.opaque(term).is_none() {
                let scaled = self.arena.scale(term, factor);
                known = self.arena.add(known, scaled);
                continue;
            }
            if self.arena.varies_in_warp(term) {
                return None;
            }
            let factor = self.known_factor(term, factor).0;
            let zeros = factor.trailing_zeros().max(whole.trailing_zeros());
            step = 1 << zeros.min(step.trailing_zeros());
        }
        if unit == 0 || unit / step > ALIGNMENTS {
            return None;
        }
        let shifts = (0..unit).step_by(usize::try_from(step).ok()?);
        let starts = shifts.map(|shift| {
            let shift = self.arena.constant(shift);
            self.arena.add(known, shift)
        });
        Some(starts.collect())
    }

    /// The bytes of which what is not known of an address is a multiple, because the address itself is one of what the instruction
    /// moves (CUDA C++ Programming Guide, Device Memory Accesses: another access is an error); 1 where what is known of it is none.
    fn whole_accesses(&self, draft: &AccessDraft, constant: i64, terms: &[(Id, i64)]) -> i64 {
        let natural = 1 << draft.width().trailing_zeros().min(4);
        let is_whole = |factor: i64| factor % natural == 0;
        let mut known = terms
            .iter()
            .filter(|term| self.arena.opaque(term.0).is_none());
        if draft.is_aligned
            && draft.width() > 0
            && is_whole(constant)
            && known.all(|(_, factor)| is_whole(*factor))
        {
            natural
        } else {
            1
        }
    }

    /// How many times a summand is what is not known of it, as far as the launch says: 64 of `4 * data * n` where `n` is 16. What
    /// an assumption says besides, comes apart.
    fn known_factor(&self, term: Id, factor: i64) -> (i64, Vec<Id>) {
        let Node::Product(parts) = self.arena.node(term) else {
            return (factor, Vec::new());
        };
        let mut times = factor;
        let mut lengths = Vec::new();
        for part in parts.iter() {
            if self.arena.opaque(*part).is_some() {
                continue;
            }
            let Some(value) = self.arena.value(*part) else {
                continue;
            };
            if assumed(self.arena, *part) {
                lengths.push(*part);
            } else {
                times = times.wrapping_mul(value);
            }
        }
        (times, lengths)
    }

    /// An address as a sum as long as nothing in it wraps around: an unsigned summand makes it one that might.
    pub(crate) fn unwrapped(&self, address: Id) -> (i64, Vec<(Id, i64)>) {
        let (mut constant, mut open) = self.arena.terms(address);
        let mut terms = Vec::new();
        while let Some((term, factor)) = open.pop() {
            let Node::Wrap(_, _, inner) = self.arena.node(term) else {
                terms.push((term, factor));
                continue;
            };
            let (more, inner) = self.arena.terms(*inner);
            constant = constant.wrapping_add(more.wrapping_mul(factor));
            let scaled = |(term, own): (Id, i64)| (term, own.wrapping_mul(factor));
            open.extend(inner.into_iter().map(scaled));
        }
        (constant, terms)
    }
}
