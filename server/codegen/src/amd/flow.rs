//! Which blocks stand on every way to a block, and which come behind it.

use crate::graph::{B, Graph};

/// What is asked about the order of blocks.
#[derive(Debug)]
pub(super) struct Flow {
    /// The last block on every way to a block; its own number for the first and for what nothing leads to.
    above: Vec<u32>,
    /// Place in an order in which blocks come behind those that lead to them, loops aside.
    place: Vec<u32>,
    reached: Vec<bool>,
}

impl Flow {
    pub(super) fn of(graph: &Graph) -> Flow {
        let ways: Vec<Vec<u32>> = (0..graph.blocks.len() as u32)
            .map(|block| graph.to(B(block)).iter().map(|to| to.0).collect())
            .collect();
        Flow::along(&ways, 0)
    }

    /// Cooper, Harvey and Kennedy's dominators.
    fn along(ways: &[Vec<u32>], first: u32) -> Flow {
        let count = ways.len();
        let mut from: Vec<Vec<u32>> = vec![Vec::new(); count];
        for (block, to) in ways.iter().enumerate() {
            for to in to {
                from[*to as usize].push(block as u32);
            }
        }
        let mut order: Vec<u32> = Vec::new();
        let mut reached = vec![false; count];
        let mut open = vec![(first, 0usize)];
        reached[first as usize] = true;
        while let Some((block, at)) = open.pop() {
            match ways[block as usize].get(at) {
                Some(&to) => {
                    open.push((block, at + 1));
                    if !std::mem::replace(&mut reached[to as usize], true) {
                        open.push((to, 0));
                    }
                }
                None => order.push(block),
            }
        }
        order.reverse();
        let mut place = vec![0u32; count];
        for (at, block) in order.iter().enumerate() {
            place[*block as usize] = at as u32;
        }
        let mut above: Vec<u32> = (0..count as u32).collect();
        let mut set = vec![false; count];
        set[first as usize] = true;
        let mut changed = true;
        while changed {
            changed = false;
            for &block in order.iter().filter(|block| **block != first) {
                let mut all = from[block as usize]
                    .iter()
                    .copied()
                    .filter(|from| set[*from as usize]);
                let Some(mut found) = all.next() else {
                    continue;
                };
                for mut other in all {
                    while found != other {
                        if place[found as usize] > place[other as usize] {
                            found = above[found as usize];
                        } else {
                            other = above[other as usize];
                        }
                    }
                }
                if !std::mem::replace(&mut set[block as usize], true)
                    || above[block as usize] != found
                {
                    above[block as usize] = found;
                    changed = true;
                }
            }
        }
        Flow {
            above,
            place,
            reached,
        }
    }

    pub(super) fn is_reached(&self, block: B) -> bool {
        self.reached[block.0 as usize]
    }

    /// The last block on every way to this one.
    pub(super) fn above(&self, block: B) -> B {
        B(self.above[block.0 as usize])
    }

    /// True where every way to `block` leads through `over`.
    pub(super) fn is_over(&self, over: B, block: B) -> bool {
        self.common(over, block) == over
    }

    /// The last block on every way to both.
    pub(super) fn common(&self, a: B, b: B) -> B {
        let (mut a, mut b) = (a.0, b.0);
        while a != b {
            let (low, high) = if self.place[a as usize] > self.place[b as usize] {
                (&mut a, b)
            } else {
                (&mut b, a)
            };
            let next = self.above[*low as usize];
            if next == *low {
                return B(high);
            }
            *low = next;
        }
        B(a)
    }
}
