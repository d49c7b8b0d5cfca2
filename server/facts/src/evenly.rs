//! Addresses that data moves evenly: in `p[(int)(x * scale)]` neighbours go to places that lie side by side, however large the
//! factor is, and the array has no room for more than so large a factor.

use warplens_symbolic::{BinaryOp, Guard, Id, Node};

use crate::access::Measure;
use crate::context::Context;
use crate::draft::AccessDraft;

impl Measure<'_> {
    /// The address with each summand that data moves evenly along coordinates moved as far as the array has room for; `None`
    /// where there is no such summand, or nothing says how much room there is.
    pub(crate) fn straightened(&mut self, draft: &AccessDraft, context: &Context) -> Option<Id> {
        let (constant, terms) = self.unwrapped(draft.address);
        let along = |measure: &Self, term: Id| {
            let symbol = measure.arena.as_symbol(term)?;
            measure.evenly.get(&symbol).copied()
        };
        let (even, others): (Vec<_>, Vec<_>) = terms
            .into_iter()
            .partition(|(term, _)| along(self, *term).is_some());
        if even.is_empty() {
            return None;
        }
        let known: Vec<(Id, i64)> = others
            .iter()
            .copied()
            .filter(|(term, _)| self.arena.opaque(*term).is_none())
            .collect();
        let room = self.room(draft, &known, context)?;
        let mut address = self.arena.constant(constant);
        for (term, factor) in others {
            let scaled = self.arena.scale(term, factor);
            address = self.arena.add(address, scaled);
        }
        let share = room / i64::try_from(even.len()).ok()?;
        for (term, factor) in even {
            let line = along(self, term)?;
            let (_, terms) = self.arena.terms(line);
            let length = self.reach(&terms, context)?.max(1);
            let steps = share / factor.checked_abs()?.max(1);
            let moved = if steps >= length {
                self.arena.scale(line, steps / length)
            } else {
                let slower = self.arena.constant(length.div_euclid(steps.max(1)) + 1);
                self.arena.binary(BinaryOp::Div, line, slower)
            };
            let scaled = self.arena.scale(moved, factor);
            address = self.arena.add(address, scaled);
        }
        Some(address)
    }

    /// Bytes of the array that what is known of the address leaves; where that alone passes the end, its longest step.
    fn room(&self, draft: &AccessDraft, known: &[(Id, i64)], context: &Context) -> Option<i64> {
        let reach = self.reach(known, context)?;
        let bytes = draft.extent.and_then(|bytes| i64::try_from(bytes).ok());
        if let Some(bytes) = bytes
            && bytes > reach
        {
            return Some(bytes - reach);
        }
        let moving = known.iter().filter(|(term, _)| {
            let range = self.arena.range(*term);
            range.hi > range.lo
        });
        moving.map(|(_, factor)| factor.saturating_abs()).max()
    }

    /// How far apart the least and the most of a sum are, as far as conditions let threads come there.
    fn reach(&self, terms: &[(Id, i64)], context: &Context) -> Option<i64> {
        let mut reach: i64 = 0;
        for (term, factor) in terms {
            let range = self.arena.range(*term);
            if !range.bounded() {
                return None;
            }
            let span = range.hi.checked_sub(range.lo)?;
            reach = reach.checked_add(span.checked_mul(factor.checked_abs()?)?)?;
        }
        let mut bounded: Vec<Id> = Vec::new();
        for (guard, _) in &context.guards {
            let Some((sum, most)) = self.bound(*guard) else {
                continue;
            };
            let (_, parts) = self.arena.terms(sum);
            let excess = self.arena.range(sum).hi.saturating_sub(most);
            if excess <= 0 || parts.iter().any(|(term, _)| bounded.contains(term)) {
                continue;
            }
            // The same sum is a part of the other one, some times over.
            let ratio = |(term, own): &(Id, i64)| {
                let (_, factor) = terms.iter().find(|(of, _)| of == term)?;
                (*own > 0 && factor % own == 0 && *factor > 0).then(|| factor / own)
            };
            let Some(times) = parts.first().and_then(&ratio) else {
                continue;
            };
            if parts.iter().all(|part| ratio(part) == Some(times)) {
                reach = reach.saturating_sub(excess.saturating_mul(times)).max(0);
                bounded.extend(parts.iter().map(|(term, _)| *term));
            }
        }
        Some(reach)
    }

    /// The sum that a condition bounds, and the most that it lets through.
    fn bound(&self, guard: Guard) -> Option<(Id, i64)> {
        let &Node::Binary(op @ (BinaryOp::Lt | BinaryOp::Le), a, b) =
            self.arena.node(guard.condition)
        else {
            return None;
        };
        let strict = (op == BinaryOp::Lt) == guard.holds;
        let (sum, most) = if guard.holds { (a, b) } else { (b, a) };
        let most = self.arena.value(most)?;
        Some((sum, if strict { most.checked_sub(1)? } else { most }))
    }
}
