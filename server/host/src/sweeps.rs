//! Long loops whose turns differ by nothing but their counter: some turns represent all.
//!
//! In: a loop of a run that launches, its counter, how many turns are left. Out: the launches of turns from the first to the last,
//! each as often as there are turns that it represents. What holds: each turn launches as many times as every other, whatever the
//! counter is; else nothing was done. Turns are walked in pairs, for programs exchange two buffers in each.

use super::state::{Breakable, Host};
use super::value::{Place, Value};

/// Pairs of turns that represent a loop.
const SAMPLES: u64 = 32;

/// What is left of a loop.
pub(super) struct Sweep {
    /// Its counter, what it is now, and what each turn adds.
    pub(super) counter: Place,
    pub(super) now: i64,
    pub(super) step: i64,
    pub(super) turns: u64,
    /// Where the loop began, and where the last two turns did.
    pub(super) touched: usize,
    pub(super) began: usize,
    pub(super) slots: usize,
    pub(super) pair: usize,
}

impl Sweep {
    /// The counter in that turn.
    fn at(&self, turn: u64) -> Option<i64> {
        let moved = i64::try_from(turn).ok()?.checked_mul(self.step)?;
        self.now.checked_add(moved)
    }

    /// Whether a variable may change from turn to turn: the counter, what the turns make themselves, what is not known anyway.
    fn leaves_aside(&self, host: &Host, slot: usize) -> bool {
        slot >= self.slots
            || slot == self.counter.slot
            || matches!(
                host.slots[slot].value,
                Value::Unknown | Value::Linked(_) | Value::Float(..)
            )
    }
}

impl Host<'_> {
    /// Walks the turns that are left by some of them; false where that does not tell what all of them do.
    pub(super) fn swept(&mut self, sweep: &Sweep, walk: &dyn Fn(&mut Self)) -> bool {
        let steady = !self.varies(sweep.pair, |slot| sweep.leaves_aside(self, slot));
        if !steady || self.is_doubtful() || sweep.at(sweep.turns).is_none() {
            return false;
        }
        if !self.launches_whatever(sweep, walk) {
            return false;
        }
        let varying = self.varying(sweep.pair);
        self.loosen(sweep.touched, sweep.began, &varying);
        let pairs = sweep.turns / 2;
        let samples = SAMPLES.min(pairs);
        let times = self.running.as_ref().map_or(1, |running| running.times);
        let mut walked = Vec::new();
        for sample in 0..samples {
            let (from, to) = (sample * pairs / samples, (sample + 1) * pairs / samples);
            let first = u64::midpoint(from, to) * 2;
            for turn in [first, first + 1] {
                let begins = self.sites.len();
                self.turn_of(sweep, turn, times.saturating_mul(to - from), walk);
                walked.push(begins..self.sites.len());
            }
        }
        self.represent(&walked);
        if sweep.turns % 2 == 1 {
            self.turn_of(sweep, sweep.turns - 1, times, walk);
        }
        true
    }

    fn turn_of(&mut self, sweep: &Sweep, turn: u64, times: u64, walk: &dyn Fn(&mut Self)) {
        let Some(running) = &mut self.running else {
            return;
        };
        let before = std::mem::replace(&mut running.times, times);
        let counter = sweep.at(turn);
        let value = counter.map_or(Value::Unknown, |value| Value::Int(value, 64, true));
        self.write(&sweep.counter, value);
        walk(self);
        if let Some(running) = &mut self.running {
            running.times = before;
        }
    }

    /// Whether two turns launch, certainly and as often, where the counter is not known. Leaves everything as it is.
    fn launches_whatever(&mut self, sweep: &Sweep, walk: &dyn Fn(&mut Self)) -> bool {
        let mark = self.mark();
        let (sites, events, slots) = (self.sites.len(), self.events.len(), self.slots.len());
        let exits = self.breakables.last().map(Breakable::exits);
        let around = self.around.last().cloned();
        for _ in 0..2 {
            self.write(&sweep.counter, Value::Unknown);
            walk(self);
        }
        let certain = self.events[events.min(self.events.len())..]
            .iter()
            .all(|event| event.often.number().is_some());
        let launched = self.sites.len() > sites;
        let goes_on =
            self.leaving.is_none() && exits == self.breakables.last().map(Breakable::exits);
        let steady = !self.varies(mark, |slot| slot >= slots || sweep.leaves_aside(self, slot));
        self.take_back(mark);
        self.sites.truncate(sites);
        self.events.truncate(events);
        if let (Some(now), Some(before)) = (self.around.last_mut(), around) {
            *now = before;
        }
        if !goes_on {
            self.leaving = None;
            let states = self.breakables.last_mut();
            if let Some(around) = states {
                around.states.truncate(0);
                around.leaves = 0;
            }
        }
        certain && launched && goes_on && steady && !self.is_spent()
    }

    /// Says of launches that differ from turn to turn that they represent others.
    fn represent(&mut self, walked: &[std::ops::Range<usize>]) {
        let Some(first) = walked.first() else { return };
        let alike = walked.iter().all(|range| range.len() == first.len());
        let differs = |at: usize| {
            let one = self.sites.get(first.start + at);
            !alike
                || walked
                    .iter()
                    .any(|range| match (one, self.sites.get(range.start + at)) {
                        (Some(one), Some(other)) => !one.site.same_but_for_reals(&other.site),
                        _ => true,
                    })
        };
        let differs: Vec<bool> = (0..first.len()).map(differs).collect();
        for range in walked {
            let own = self.sites.iter_mut().skip(range.start).take(range.len());
            for (at, met) in own.enumerate() {
                met.site.represents = differs.get(at).copied().unwrap_or(true);
            }
        }
    }
}
