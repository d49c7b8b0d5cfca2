//! Reuse distances: how much else was touched since a line was last touched, which says whether a cache that replaces
//! the least recently used line still has it.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The recency stack of an unbounded cache, each line weighing as many lines as it represents.
#[derive(Debug, Default)]
pub struct Stack {
    last: HashMap<u64, usize, BuildHasherDefault<Mixed>>,
    weights: Vec<f64>,
    /// Sums of `weights` over ranges (a Fenwick tree).
    sums: Vec<f64>,
}

impl Stack {
    /// Touches a line that represents `weight` lines: lines touched since it was last, itself among them; `None` where
    /// it never was.
    pub fn touch(&mut self, line: u64, weight: f64) -> Option<f64> {
        let now = self.weights.len();
        let before = self.last.insert(line, now);
        self.push(weight);
        let before = before?;
        let distance = self.sum(now + 1) - self.sum(before + 1);
        self.add(before, -self.weights[before]);
        self.weights[before] = 0.0;
        // Its own weight is at the top already.
        Some(distance)
    }

    /// Touches this many lines that nothing will touch again.
    pub fn pass(&mut self, weight: f64) {
        self.push(weight);
    }

    fn push(&mut self, weight: f64) {
        self.weights.push(weight);
        let at = self.weights.len();
        // The new element's range ends here and begins behind what its lowest bit takes away.
        let lowest = at & at.wrapping_neg();
        let within = self.sum(at - 1) - self.sum(at - lowest);
        self.sums.push(within + weight);
    }

    fn add(&mut self, index: usize, weight: f64) {
        let mut at = index + 1;
        while at <= self.sums.len() {
            self.sums[at - 1] += weight;
            at += at & at.wrapping_neg();
        }
    }

    fn sum(&self, end: usize) -> f64 {
        let mut at = end;
        let mut sum = 0.0;
        while at > 0 {
            sum += self.sums[at - 1];
            at &= at - 1;
        }
        sum
    }
}

/// Lines are numbers already: one multiplication spreads them.
#[derive(Debug, Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let spread = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = spread ^ (spread >> 32);
    }
}
