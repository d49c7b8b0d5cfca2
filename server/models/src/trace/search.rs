//! The loop-based bidirectional branch search: which blocks a warp executes, in order.
//!
//! Algorithms 1 to 3 of the paper. The search goes down both sides of a branch, one after the other, and through every
//! loop as often as its bound says; a mask then takes out the blocks that this warp does not execute. It differs from
//! the algorithms as printed in three ways, all of which the text around them asks for or implies: a back edge that is
//! spent leads on to the other edges; the remaining sides of a branch are kept on the stack also where it is not empty,
//! once each; and of a block's successors those that stay in its loop come first, not only those that end a back edge.

use super::cfg::Cfg;

/// What decides a warp's way.
pub trait Warp {
    /// Iterations of a loop, given the iteration that each loop around it is in (by the loops' numbers).
    fn trips(&self, of: usize, iterations: &[u64]) -> u64;

    /// True where the warp does not execute a block in these iterations: a branch miss.
    fn misses(&self, block: usize, iterations: &[u64]) -> bool;
}

/// The blocks that a warp executes; at most this many steps of the search.
pub fn trace(cfg: &Cfg, warp: &impl Warp, most: usize) -> Vec<usize> {
    let mut blocks = Vec::new();
    walk(cfg, warp, most, &mut |block, _| {
        blocks.push(block);
        true
    });
    blocks
}

/// Algorithm 1: hands each executed block to `visit`, with the iteration of each loop, until that answers `false`.
pub fn walk(
    cfg: &Cfg,
    warp: &impl Warp,
    most: usize,
    visit: &mut dyn FnMut(usize, &[u64]) -> bool,
) {
    let mut search = Search::new(cfg);
    let mut stack = Vec::new();
    let mut at = Some(0);
    for _ in 0..most {
        let Some(block) = at else { return };
        let empty = search.enter(block, warp);
        if !empty && !warp.misses(block, &search.iterations) && !visit(block, &search.iterations) {
            return;
        }
        at = search.next(block, &mut stack);
    }
}

/// One level of loops around a block.
#[derive(Clone, Copy, Default)]
struct Level {
    bound: u64,
    /// Iterations left; at the innermost level the present one is counted off already.
    left: u64,
    /// The bound is 0: the one visit is masked.
    empty: bool,
}

struct Search<'g> {
    cfg: &'g Cfg,
    levels: Vec<Vec<Level>>,
    visited: Vec<bool>,
    iterations: Vec<u64>,
}

impl<'g> Search<'g> {
    fn new(cfg: &'g Cfg) -> Search<'g> {
        Search {
            cfg,
            levels: (0..cfg.blocks())
                .map(|block| vec![Level::default(); cfg.around(block).len()])
                .collect(),
            visited: vec![false; cfg.blocks()],
            iterations: vec![0; cfg.loops().len()],
        }
    }

    /// Algorithm 2: counts a visit off, borrowing from the loop around where a level is spent. True where some loop
    /// around has no iterations, so that the visit is none.
    fn enter(&mut self, block: usize, warp: &impl Warp) -> bool {
        let around = self.cfg.around(block);
        let levels = &mut self.levels[block];
        let spent = if self.visited[block] {
            levels.iter().position(|level| level.left > 0)
        } else {
            None
        };
        let fresh = match spent {
            Some(level) => {
                levels[level].left -= 1;
                level
            }
            None => levels.len(),
        };
        self.visited[block] = true;
        // Bounds may depend on the iterations of the loops around: outermost first.
        for level in (0..levels.len()).rev() {
            if level < fresh {
                let trips = warp.trips(around[level], &self.iterations);
                levels[level] = Level {
                    bound: trips.max(1),
                    left: trips.max(1) - 1,
                    empty: trips == 0,
                };
            }
            let now = levels[level];
            self.iterations[around[level]] = now.bound - 1 - now.left;
        }
        levels.iter().any(|level| level.empty)
    }

    /// Algorithm 3: what comes behind a block.
    fn next(&self, block: usize, stack: &mut Vec<usize>) -> Option<usize> {
        let cfg = self.cfg;
        // Back first: the innermost loop that this block ends and that is not over.
        let open = |header: &usize| self.levels[*header].first().is_some_and(|l| l.left > 0);
        let mut header: Option<usize> = None;
        for &back in cfg.back(block).iter().filter(|to| open(to)) {
            if header.is_none_or(|other| cfg.reaches(other, back)) {
                header = Some(back);
            }
        }
        if header.is_some() {
            return header;
        }
        let next = cfg.closest(block);
        let inside = |to: &&usize| match cfg.around(block).first() {
            Some(of) => cfg.around(**to).contains(of),
            None => true,
        };
        let Some(&first) = next.iter().find(inside).or(next.first()) else {
            return stack.pop();
        };
        if let Some(&top) = stack.last()
            && cfg.reaches(top, first)
        {
            stack.pop();
            return Some(top);
        }
        for &other in next.iter().rev() {
            if other != first && !stack.contains(&other) {
                stack.push(other);
            }
        }
        Some(first)
    }
}
