//! What the lines of a kernel took when it was pinned, held against those of its text now.

use std::collections::BTreeMap;

use ropey::Rope;
use warplens_db::{FileAnalysis, PlacedKernel};

use crate::earlier::ShownLaunch;

/// Lines of two texts that are compared with each other, at most; beyond, only those around the edit are matched.
const MOST_COMPARED: usize = 1 << 18;

/// The lines of one kernel, each with its share of the kernel's time.
#[derive(Debug, Clone, PartialEq)]
pub struct LineShares {
    lines: Vec<(String, f64)>,
    gpu: String,
    launch: ShownLaunch,
}

/// By the kernels' plain names, in their order in the file.
pub type LinesByName = BTreeMap<String, Vec<LineShares>>;

/// The lines of all kernels of a file.
pub fn of_file(file: &FileAnalysis, rope: &Rope) -> LinesByName {
    let mut found = LinesByName::new();
    for kernel in &file.kernels {
        let name = kernel.analysis.facts.name.clone();
        let lines = LineShares::of(kernel, rope);
        found.entry(name).or_default().push(lines);
    }
    found
}

impl LineShares {
    fn of(kernel: &PlacedKernel, rope: &Rope) -> LineShares {
        let mut shares: BTreeMap<u32, f64> = BTreeMap::new();
        for (line, share) in kernel.analysis.lines() {
            *shares.entry(kernel.place_line(line)).or_default() += share;
        }
        let lines = code(kernel, rope).into_iter().map(|(line, text)| {
            let share = shares.get(&line).copied().unwrap_or_default();
            (text, share)
        });
        LineShares {
            lines: lines.collect(),
            gpu: kernel.analysis.profile.id.clone(),
            launch: ShownLaunch::of(kernel),
        }
    }

    /// For the lines of the kernel's text now, what the same line took: by its place in the file, from 0. Empty where the kernel is
    /// predicted for another GPU or under another launch now.
    pub fn before(&self, kernel: &PlacedKernel, rope: &Rope) -> BTreeMap<u32, f64> {
        if self.gpu != kernel.analysis.profile.id || !self.launch.is_of(kernel) {
            return BTreeMap::new();
        }
        let (places, now): (Vec<u32>, Vec<String>) = code(kernel, rope).into_iter().unzip();
        let then: Vec<&str> = self.lines.iter().map(|(text, _)| text.as_str()).collect();
        let pairs = matched(&then, &now).into_iter();
        pairs
            .map(|(then, now)| (places[now], self.lines[then].1))
            .collect()
    }
}

/// The lines of a kernel that are not empty, without the white space around them, by their places in the file.
fn code(kernel: &PlacedKernel, rope: &Rope) -> Vec<(u32, String)> {
    let line = |byte: usize| rope.byte_to_line(byte.min(rope.len_bytes()));
    let lines = (line(kernel.start)..=line(kernel.end)).map(|line| {
        let text = rope.line(line).to_string();
        (line as u32, text.trim().to_owned())
    });
    lines.filter(|(_, text)| !text.is_empty()).collect()
}

/// Pairs of lines that are the same line: those with one text, in order, and between them those that were edited in place.
fn matched(then: &[&str], now: &[String]) -> Vec<(usize, usize)> {
    let same = |a: usize, b: usize| then[a] == now[b];
    let least = then.len().min(now.len());
    let head = (0..least).take_while(|at| same(*at, *at)).count();
    let tail = (0..least - head)
        .take_while(|at| same(then.len() - 1 - at, now.len() - 1 - at))
        .count();
    let mut pairs: Vec<(usize, usize)> = (0..head).map(|at| (at, at)).collect();
    let (a, b) = (head..then.len() - tail, head..now.len() - tail);
    let mut anchors = Vec::new();
    if a.len() * b.len() <= MOST_COMPARED {
        anchors = common(&then[a.clone()], &now[b.clone()]);
    }
    anchors.push((a.len(), b.len()));
    let (mut from, mut to) = (0, 0);
    for (x, y) in anchors {
        // As many lines as there were: edited, not added or removed.
        if x - from == y - to {
            pairs.extend((0..x - from).map(|at| (head + from + at, head + to + at)));
        }
        if x < a.len() {
            pairs.push((head + x, head + y));
        }
        (from, to) = (x + 1, y + 1);
    }
    let shift = |at: usize| (then.len() - tail + at, now.len() - tail + at);
    pairs.extend((0..tail).map(shift));
    pairs
}

/// The longest common subsequence, as pairs.
fn common(then: &[&str], now: &[String]) -> Vec<(usize, usize)> {
    let wide = now.len() + 1;
    let mut length = vec![0_u32; (then.len() + 1) * wide];
    for x in (0..then.len()).rev() {
        for y in (0..now.len()).rev() {
            length[x * wide + y] = if then[x] == now[y] {
                length[(x + 1) * wide + y + 1] + 1
            } else {
                length[(x + 1) * wide + y].max(length[x * wide + y + 1])
            };
        }
    }
    let (mut x, mut y) = (0, 0);
    let mut pairs = Vec::new();
    while x < then.len() && y < now.len() {
        if then[x] == now[y] {
            pairs.push((x, y));
            (x, y) = (x + 1, y + 1);
        } else if length[(x + 1) * wide + y] >= length[x * wide + y + 1] {
            x += 1;
        } else {
            y += 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(then: &str, now: &str, expected: &[(usize, usize)]) {
        let then: Vec<&str> = then.split(' ').collect();
        let now: Vec<String> = now.split(' ').map(str::to_owned).collect();
        assert_eq!(matched(&then, &now), expected);
    }

    #[test]
    fn lines_are_found_again_where_they_moved_and_where_they_were_edited() {
        check("a b c", "a b c", &[(0, 0), (1, 1), (2, 2)]);
        check("a b c", "a x c", &[(0, 0), (1, 1), (2, 2)]);
        check("a b c", "a x b c", &[(0, 0), (1, 2), (2, 3)]);
        check("a b c d", "a d", &[(0, 0), (3, 1)]);
        check("a b c", "b c", &[(1, 0), (2, 1)]);
        check(
            "a b c d e",
            "a x c y e",
            &[(0, 0), (1, 1), (2, 2), (3, 3), (4, 4)],
        );
        check("a", "x", &[(0, 0)]);
        // Two lines became one: neither is it.
        check("a b c d", "a x d", &[(0, 0), (3, 2)]);
    }
}
