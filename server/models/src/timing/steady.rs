//! What need not be simulated: iterations of a loop that has come to a steady state.

use super::warp::Warp;

/// Parts of the breakdown, `launch` excepted.
pub(super) const PARTS: usize = 6;

/// Most iterations that a window has at first: their mean cost is compared with that of as many before.
const WINDOW: u64 = 8;

/// Instructions of all warps that are enough for a window: of long iterations it has fewer.
const ENOUGH_INSTRUCTIONS: f64 = 2048.0;

/// Comparisons after which windows are made twice as long: what goes up and down evens out in longer ones.
const PATIENCE: u32 = 4;

/// Two windows that differ by no more are the loop's steady state.
const STEADY: f64 = 0.005;

/// What is known of a loop's iterations, by one warp's.
#[derive(Debug, Clone)]
struct Watch {
    /// Iterations of a window.
    window: u64,
    /// How many have ended where the next window does.
    due: u64,
    /// Comparisons that failed with windows of this length.
    failed: u32,
    /// Cycles of an iteration in the steady state that was found last: an inner loop is entered again and again.
    known: Option<f64>,
    /// A window before the last mark, where it was watched then.
    before: Option<Ledger>,
    last: Ledger,
}

/// A sum of which most may come of iterations that were skipped: what is added to it then is no less exact.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Sum {
    simulated: f64,
    skipped: f64,
}

impl Sum {
    pub fn add(&mut self, more: f64) {
        self.simulated += more;
    }

    pub fn total(self) -> f64 {
        self.simulated + self.skipped
    }

    fn since(self, then: Sum) -> f64 {
        (self.simulated - then.simulated) + (self.skipped - then.skipped)
    }
}

/// Everything that goes on evenly in a steady state.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ledger {
    pub time: Sum,
    pub parts: [Sum; PARTS],
    pub shares: Vec<Sum>,
    pub instructions: Sum,
}

/// What a warp is at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum State {
    Running,
    /// At a barrier since.
    Waiting(f64),
    Done,
}

/// How far the warps of an SM have come, and at what cost.
pub(super) struct Progress {
    pub warps: Vec<Warp>,
    pub state: Vec<State>,
    pub ledger: Ledger,
    /// By loop.
    watches: Vec<Option<Watch>>,
}

impl Progress {
    /// At the start.
    pub(super) fn new(warps: Vec<Warp>, nodes: usize, loops: usize) -> Progress {
        Progress {
            state: vec![State::Running; warps.len()],
            warps,
            ledger: Ledger {
                time: Sum::default(),
                parts: [Sum::default(); PARTS],
                shares: vec![Sum::default(); nodes],
                instructions: Sum::default(),
            },
            watches: vec![None; loops],
        }
    }

    /// The warp by which steady states are known.
    pub(super) fn leads(&self, warp: usize) -> bool {
        self.state.iter().position(|state| *state != State::Done) == Some(warp)
    }

    /// The leader ends an iteration. Where the last two windows cost the same, or the last one what the loop's steady
    /// state is known to cost, all warps skip what the loop has left but a window: it would go on like that.
    pub(super) fn watch(&mut self, leader: usize, stands_for: usize) {
        let depth = self.warps[leader].frames.len() - 1;
        let frame = &self.warps[leader].frames[depth];
        let (id, ended, left) = (frame.id, frame.ended, frame.left);
        let ledger = &self.ledger;
        if ended == 1 {
            let before = self.watches[id].take();
            // How long an iteration is shows when the second has ended.
            let window = before.as_ref().map_or(0, |watch| watch.window);
            self.watches[id] = Some(Watch {
                window,
                due: ended + window.max(1),
                failed: 0,
                known: before.and_then(|watch| watch.known),
                before: None,
                last: ledger.clone(),
            });
            return;
        }
        let Some(watch) = &mut self.watches[id] else {
            return;
        };
        if ended < watch.due || left <= watch.window as f64 {
            return;
        }
        if watch.window == 0 {
            let issued = ledger.instructions.since(watch.last.instructions).max(1.0);
            watch.window = ((ENOUGH_INSTRUCTIONS / (issued * stands_for as f64)).ceil() as u64)
                .clamp(1, WINDOW);
            watch.due = ended + watch.window;
            watch.last = ledger.clone();
            return;
        }
        let window = watch.window;
        let cycles = ledger.time.since(watch.last.time);
        let same = |then: f64| (cycles - then).abs() <= STEADY * cycles;
        let steady = match &watch.before {
            Some(before) if same(watch.last.time.since(before.time)) => {
                Some((before.clone(), 2.0 * window as f64))
            }
            _ if watch.known.is_some_and(|known| same(known * window as f64)) => {
                Some((watch.last.clone(), window as f64))
            }
            _ => None,
        };
        let last = std::mem::replace(&mut watch.last, ledger.clone());
        watch.before = Some(last);
        watch.due = ended + window;
        if let Some((mark, iterations)) = steady {
            watch.known = Some(ledger.time.since(mark.time) / iterations);
            if self.skip(id, depth, &mark, iterations, window)
                && let Some(watch) = &mut self.watches[id]
            {
                // What is left is not looked at again.
                watch.due = u64::MAX;
            }
            return;
        }
        watch.failed += 1;
        if watch.failed == PATIENCE {
            watch.failed = 0;
            watch.window *= 2;
            watch.due = ended + watch.window;
            watch.before = None;
        }
    }

    /// Adds what went on since the mark, which was this many iterations ago, for all iterations that every warp has left
    /// but the last window's. False where there are none.
    fn skip(
        &mut self,
        id: usize,
        depth: usize,
        mark: &Ledger,
        iterations: f64,
        window: u64,
    ) -> bool {
        let mut left = f64::INFINITY;
        for (warp, state) in self.warps.iter().zip(&self.state) {
            if *state == State::Done {
                continue;
            }
            match warp.frames.get(depth) {
                Some(frame) if frame.id == id => left = left.min(frame.left),
                // Some warp is elsewhere: it has not settled.
                _ => return false,
            }
        }
        let skipped = (left - window as f64).floor();
        if skipped < 1.0 || !skipped.is_finite() {
            return false;
        }
        for (warp, state) in self.warps.iter_mut().zip(&self.state) {
            if *state != State::Done {
                warp.frames[depth].left -= skipped;
            }
        }
        let times = skipped / iterations;
        let ledger = &mut self.ledger;
        let more = |now: &mut Sum, then: Sum| now.skipped += now.since(then) * times;
        more(&mut ledger.time, mark.time);
        more(&mut ledger.instructions, mark.instructions);
        for (now, then) in ledger.parts.iter_mut().zip(mark.parts) {
            more(now, then);
        }
        for (now, then) in ledger.shares.iter_mut().zip(&mark.shares) {
            more(now, *then);
        }
        true
    }
}
