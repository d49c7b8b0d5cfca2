//! Loops: fully unrolled where they are short, by a factor where their trip count is not known, or kept.

use std::rc::Rc;

use rustc_hash::FxHashSet;
use warplens_ir::{Expr, ExprKind, LoopKind, Stmt, Storage, Type, VarId};

use super::Builder;
use super::parts::Parts;
use super::tally::{QUARTERS, Touched};
use super::touched::Walk;
use super::versions::Object;
use crate::Backend;
use crate::thresholds::nvcc;

impl Builder<'_> {
    pub(super) fn looping(
        &mut self,
        statement: &Stmt,
        kind: LoopKind,
        condition: Option<&Expr>,
        step: Option<&Expr>,
        body: &[Stmt],
        unroll: Option<u64>,
    ) {
        let parts = Parts {
            kind,
            control: self.controls.of_loop(statement),
            condition,
            step,
            body,
        };
        self.nesting += 1;
        self.unrolled(statement, parts, unroll);
        self.nesting -= 1;
    }

    /// A loop, unrolled as far as nvcc does.
    fn unrolled(&mut self, statement: &Stmt, parts: Parts, unroll: Option<u64>) {
        let touched = self.touched(statement, parts);
        let trips = self.trips(parts);
        if self.options.backend == Backend::Amdgpu {
            self.looping_on_amdgpu(parts, &touched, trips, unroll);
            return;
        }
        let (limits, assembler) = (&nvcc().unroll, &nvcc().assembler);
        // With the branch back.
        let size = touched.weight + 1;
        let asked = match unroll {
            Some(0) => trips.is_some(),
            Some(times) => trips.is_some_and(|trips| times >= trips && times > 1),
            None => false,
        };
        let most = (limits.partial - 2) / size.saturating_sub(2).max(1);
        if let Some(trips) = trips
            && unroll != Some(1)
        {
            let free = unroll.is_none() && !touched.loops;
            // The counter and its test go.
            let each = touched.weight.saturating_sub(2).max(1);
            let full = if self.subscripts_own(&touched) {
                limits.full_private
            } else {
                limits.full
            };
            if trips <= 1
                || asked && trips <= limits.pragma_trips
                || unroll.is_none() && trips.saturating_mul(each) <= full
            {
                self.fully_unrolled(parts, &touched, (trips, trips));
                return;
            }
            // By the factor that a pragma asks for, and the remainder behind it.
            if let Some(times @ 2..) = unroll {
                let times = times.min(limits.pragma_factor);
                self.kept(parts, &touched, (times, 1), false);
                self.fully_unrolled(parts, &touched, (trips % times, trips));
                return;
            }
            // Partly by the front half, further by the assembler.
            let mut times = 1;
            while free && times * 2 <= most && trips % (times * 2) == 0 && !touched.exits {
                times *= 2;
            }
            let plain = free && !touched.together && !touched.calls && !touched.forks;
            // Many loads that nothing keeps apart would wait for each other's registers.
            let apart = free
                && !touched.calls
                && !touched.forks
                && !touched.exits
                && (touched.together || touched.fetches == 0);
            // An odd number is run in fours that are left in the middle.
            let odd = times == 1
                && free
                && most >= limits.runtime_factor
                && trips % 2 == 1
                && !touched.exits;
            let together = if odd { limits.runtime_factor } else { times };
            let size = touched.quarters(together);
            let all = trips.saturating_mul(touched.machine());
            let turns = trips.div_ceil(together);
            let few = if turns <= assembler.few_turns {
                assembler.full_few_turns
            } else {
                assembler.full
            };
            let small = trips.saturating_mul(touched.untested()) <= few
                || turns.saturating_mul(size.saturating_mul(size)) / (QUARTERS * QUARTERS)
                    <= assembler.full_squares;
            if apart && all <= assembler.full_without_loads || plain && small {
                self.fully_unrolled(parts, &touched, (trips, trips));
                return;
            }
            let further = plain
                && turns >= assembler.counted_turns
                && together <= assembler.factor
                && touched.machine() * together <= assembler.partial
                && touched.loads * together <= assembler.accesses;
            let copies = if further {
                further_counted(trips / together, assembler.counted / size)
            } else {
                1
            };
            self.kept(parts, &touched, (together, copies), false);
            if odd && further {
                self.fully_unrolled(parts, &touched, (trips % together, trips));
            }
            return;
        }
        let plain = !touched.exits && !touched.loops;
        let (times, copies, left) = match unroll {
            Some(1) => (1, 1, 1),
            Some(times) if times > 1 => {
                // Without a trip count each iteration has its own test, and there is no remainder.
                let times = times.min(limits.pragma_factor);
                if !self.is_counted(parts, &touched) {
                    self.kept(parts, &touched, (1, times as u32), false);
                    return;
                }
                (times, 1, 1)
            }
            _ if plain && self.is_counted(parts, &touched) && self.may_wrap(parts) => {
                (1, 1, self.further_alone(parts, &touched))
            }
            _ if plain && self.is_counted(parts, &touched) => {
                let times = if touched.together && !self.steps_evenly(parts) {
                    1
                } else if most >= limits.runtime_factor {
                    limits.runtime_factor
                } else {
                    most.clamp(1, 2)
                };
                let from_constant = self.starts_at_constant(parts, &touched);
                let further = times == limits.runtime_factor
                    && unroll.is_none()
                    && !touched.together
                    && !touched.forks
                    && !touched.fully_unrolled
                    && !touched.calls
                    && !touched.divides
                    && (touched.stepped || !touched.strided)
                    && !(self.counts_wide(parts) && from_constant)
                    && self.steps_evenly(parts)
                    && !self.scatters(parts, &touched)
                    && touched.machine() * times <= assembler.partial
                    && (touched.loads + touched.stores) * times <= assembler.accesses;
                // Barriers keep iterations apart, so that only those follow each other closely that fetch nothing, or
                // that stand alone.
                let apart = touched.together
                    && unroll.is_none()
                    && (times < limits.runtime_factor || touched.fetches == 0)
                    && !touched.forks
                    && !touched.calls
                    && self.steps_evenly(parts)
                    && self.ends_at_parameter(parts, &touched)
                    && !self.starts_by_lane(parts, &touched)
                    && touched.machine() * times <= assembler.partial;
                // The remainder loop is unrolled as well where the trip count has no closed form, and more so within
                // another loop.
                let left = match further {
                    true if !from_constant && self.counts_unsigned(parts) => {
                        assembler.remainder_unsigned
                    }
                    true if self.nesting > 1 => assembler.remainder_nested,
                    _ if apart && times == 1 => assembler.copies,
                    _ if times == 1 && self.ends_after_bound(parts) => 2,
                    _ => 1,
                };
                (
                    times,
                    if further || apart {
                        assembler.copies
                    } else {
                        1
                    },
                    left,
                )
            }
            _ => (1, 1, 1),
        };
        let both = times > 1 && !touched.exits;
        if both {
            self.kept(parts, &touched, (times, copies), true);
            self.remainder = times;
        }
        let number = self.graph.loops.len();
        self.kept(parts, &touched, (1, left), false);
        if let Some(last) = self.graph.loops.get_mut(number) {
            last.remainder = both;
        }
    }

    /// Copies of the body of a loop that only the assembler unrolls: the first iteration, then four, two and one.
    fn further_alone(&self, parts: Parts, touched: &Touched) -> u32 {
        let assembler = &nvcc().assembler;
        let apart = !touched.together
            || !touched.fully_unrolled
                && !touched.forks
                && self.ends_at_parameter(parts, touched)
                && !self.starts_by_lane(parts, touched);
        let further = apart
            && !touched.calls
            && self.steps_evenly(parts)
            && !self.scatters(parts, touched)
            && touched.machine() <= assembler.partial
            && touched.loads + touched.stores <= assembler.accesses;
        match further {
            true if self.counts_unsigned(parts) && !self.counts_down(parts) => {
                assembler.copies_peeled
            }
            true => assembler.copies,
            false if self.ends_after_bound(parts) => 2,
            false => 1,
        }
    }

    /// True where each thread starts or ends elsewhere and computes anew where it stores: the assembler leaves it alone.
    fn scatters(&self, parts: Parts, touched: &Touched) -> bool {
        touched.far_stores > 0
            && (touched.scaled || self.counter_is_unsigned(parts) && !self.ends_at_constant(parts))
            && (self.starts_by_lane(parts, touched) || self.ends_by_lane(parts, touched))
    }

    /// True where a thread's own array is subscripted with what varies.
    fn subscripts_own(&self, touched: &Touched) -> bool {
        let mut subscripted = touched.subscripted.iter();
        subscripted.any(|id| touched.own.contains(id) || self.is_own_array(*id))
    }

    /// True for an array of the thread's own, or a pointer that leads into one.
    pub(super) fn is_own_array(&self, id: VarId) -> bool {
        let var = self.kernel.var(id);
        let array = var.storage == Storage::Local && matches!(var.ty, Type::Array(..));
        array || self.aliases.contains_key(&id)
    }

    /// What statements do, wherever they stand.
    pub(super) fn does(&self, statements: &[Stmt]) -> Touched {
        let mut touched = Touched::default();
        Walk {
            builder: self,
            touched: &mut touched,
            depth: 0,
            functions: 0,
            varies: None,
            changes: None,
            stored: None,
            addressing: false,
        }
        .statements(statements);
        touched
    }

    /// True where what is read of memory may be among what changes.
    pub(super) fn is_changed(&self, expression: &Expr, changes: &FxHashSet<Object>) -> bool {
        let of = |part: &Expr| self.is_changed(part, changes);
        match &expression.kind {
            ExprKind::Index(base, index) => {
                let object = self.object_of(expression);
                changes.iter().any(|changed| changed.meets(object)) || of(base) || of(index)
            }
            ExprKind::Deref(pointer) => {
                let object = self.object_of(expression);
                changes.iter().any(|changed| changed.meets(object)) || of(pointer)
            }
            ExprKind::Inline(statements, _) => {
                let does = self.does(statements);
                does.loads > 0 || !does.changes.is_empty()
            }
            ExprKind::Apply(..) | ExprKind::Opaque(..) => true,
            ExprKind::Unary(_, a) | ExprKind::Cast(_, a) | ExprKind::Field(a, _) => of(a),
            ExprKind::Binary(_, a, b) => of(a) || of(b),
            ExprKind::Select(a, b, c) => of(a) || of(b) || of(c),
            ExprKind::Call(_, parts) | ExprKind::List(parts) => parts.iter().any(of),
            _ => false,
        }
    }

    /// What its parts do, found once.
    fn touched(&mut self, statement: &Stmt, parts: Parts) -> Rc<Touched> {
        let key = std::ptr::from_ref(statement) as usize;
        if let Some(found) = self.assigned.get(&key) {
            return Rc::clone(found);
        }
        let mut touched = Touched::default();
        let mut walk = Walk {
            builder: self,
            touched: &mut touched,
            depth: 0,
            functions: 0,
            varies: None,
            changes: None,
            stored: None,
            addressing: false,
        };
        walk.all(parts);
        // Once more: what the loop does not change is computed before it.
        let Touched {
            assigned: varies,
            changes,
            stored,
            ..
        } = touched;
        let mut touched = Touched::default();
        Walk {
            builder: self,
            touched: &mut touched,
            depth: 0,
            functions: 0,
            varies: Some(&varies),
            changes: Some(&changes),
            stored: Some(&stored),
            addressing: false,
        }
        .all(parts);
        let touched = Rc::new(touched);
        self.assigned.insert(key, Rc::clone(&touched));
        touched
    }
}

/// Copies of the body of a loop with this trip count that the assembler unrolls further: the largest factor whose body and
/// remainder together have at most `most` copies.
fn further_counted(turns: u64, most: u64) -> u32 {
    let fits = |beside: &u64| beside + turns % beside <= most;
    match (2..=most.min(turns)).rev().find(fits) {
        Some(beside) => (beside + turns % beside) as u32,
        None => 1,
    }
}
