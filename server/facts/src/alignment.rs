//! What requests take whose start is not known: for each place where it may lie within a transaction unit.

use warplens_symbolic::{Id, Node, Query, Symbol, SymbolSet};

use crate::access::{Measure, OTHER_BUDGET, Sums, by_width, cost, shape};
use crate::cases::Cost;
use crate::context::Context;
use crate::draft::AccessDraft;
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
        let mut known = self.arena.constant(constant);
        let mut apart: Vec<Symbol> = Vec::new();
        for (term, factor) in terms {
            if self.arena.opaque(term).is_none() {
                let scaled = self.arena.scale(term, factor);
                known = self.arena.add(known, scaled);
                continue;
            }
            step = 1 << factor.trailing_zeros().min(step.trailing_zeros());
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
    /// depends on it.
    pub(crate) fn without_whole_periods(&mut self, draft: &AccessDraft) -> Option<Id> {
        if draft.space == Space::Local {
            return None;
        }
        let period = draft.period(self.profile);
        let (constant, terms) = self.unwrapped(draft.address);
        let mut known = self.arena.constant(constant);
        for (term, factor) in terms {
            if self.arena.opaque(term).is_none() {
                let scaled = self.arena.scale(term, factor);
                known = self.arena.add(known, scaled);
            } else if self.arena.varies_in_warp(term) || factor % period != 0 {
                return None;
            }
        }
        Some(known)
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
