//! Copies past the registers that a thread has issued and not yet waited for.
//!
//! In: their issue, the ends of their groups, waits, the loops around them. Out: which copies a wait is for, and how many
//! iterations lie between the issue of a copy and the wait for it.

/// A copy.
#[derive(Debug, Clone, Copy)]
struct Copy {
    /// Its load's draft.
    draft: usize,
    /// Waits of its loop before it.
    waits: usize,
}

/// A loop whose iteration is executed.
#[derive(Debug, Clone, Default)]
struct Iteration {
    groups: Vec<Vec<Copy>>,
    open: Vec<Copy>,
    /// Groups that each wait leaves.
    waits: Vec<usize>,
}

impl Iteration {
    fn pending(&self) -> usize {
        self.groups.iter().map(Vec::len).sum::<usize>() + self.open.len()
    }
}

/// Copies on their way, by the loops that issue them; the kernel itself is the first.
#[derive(Debug, Clone)]
pub(crate) struct Copies(Vec<Iteration>);

impl Default for Copies {
    fn default() -> Copies {
        Copies(vec![Iteration::default()])
    }
}

impl Copies {
    pub(crate) fn issue(&mut self, draft: usize) {
        let Some(last) = self.0.last_mut() else {
            return;
        };
        let waits = last.waits.len();
        last.open.push(Copy { draft, waits });
    }

    /// Ends a group.
    pub(crate) fn commit(&mut self) {
        if let Some(last) = self.0.last_mut() {
            let group = std::mem::take(&mut last.open);
            last.groups.push(group);
        }
    }

    /// The copies of this iteration that are waited for where the last `left` groups are not.
    pub(crate) fn wait(&mut self, left: usize) -> Vec<usize> {
        let Some(last) = self.0.last_mut() else {
            return Vec::new();
        };
        last.waits.push(left);
        let waited = last.groups.len().saturating_sub(left);
        let mut copies: Vec<Copy> = last.groups.drain(..waited).flatten().collect();
        if left == 0 {
            copies.append(&mut last.open);
        }
        copies.into_iter().map(|copy| copy.draft).collect()
    }

    /// Behind a branch: the side with more copies on their way is the usual one.
    pub(crate) fn meet(&mut self, other: Copies) {
        let count = |copies: &Copies| copies.0.last().map_or(0, Iteration::pending);
        if count(&other) > count(self) {
            *self = other;
        }
    }

    pub(crate) fn enter_loop(&mut self) {
        self.0.push(Iteration::default());
    }

    /// Ends a loop: copies of an iteration that a wait of a later one is for, each with how many iterations later.
    pub(crate) fn leave_loop(&mut self) -> Vec<(usize, u32)> {
        let Some(mut ended) = self.0.pop() else {
            return Vec::new();
        };
        let Some(around) = self.0.last_mut() else {
            return Vec::new();
        };
        let Some(&left) = ended.waits.iter().max() else {
            // A loop that only issues: its copies are those of the iteration around it.
            let waits = around.waits.len();
            let inner = ended.groups.iter_mut().flatten().chain(&mut ended.open);
            inner.for_each(|copy| copy.waits = waits);
            if ended.groups.is_empty() {
                around.open.append(&mut ended.open);
            } else {
                around.groups.append(&mut ended.groups);
                around.open.append(&mut ended.open);
            }
            return Vec::new();
        };
        let pending = ended.groups.into_iter().flatten().chain(ended.open);
        pending
            .map(|copy| {
                let behind = usize::from(copy.waits > 0);
                (copy.draft, (left + behind).clamp(1, 64) as u32)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_is_waited_for_at_once_has_nothing_ahead() {
        let mut copies = Copies::default();
        copies.enter_loop();
        copies.issue(3);
        copies.commit();
        assert_eq!(copies.wait(0), [3]);
        assert_eq!(copies.leave_loop(), []);
    }

    #[test]
    fn groups_that_a_wait_leaves_are_waited_for_in_later_iterations() {
        // Issued before the wait, one group stays on its way.
        let mut copies = Copies::default();
        copies.enter_loop();
        copies.issue(3);
        copies.commit();
        assert_eq!(copies.wait(1), [0; 0]);
        assert_eq!(copies.leave_loop(), [(3, 1)]);
        // Issued behind it: one iteration more.
        copies.enter_loop();
        assert_eq!(copies.wait(1), [0; 0]);
        copies.issue(4);
        copies.commit();
        assert_eq!(copies.leave_loop(), [(4, 2)]);
    }

    #[test]
    fn a_loop_that_only_issues_is_a_part_of_the_iteration_around_it() {
        let mut copies = Copies::default();
        copies.enter_loop();
        copies.enter_loop();
        copies.issue(3);
        assert_eq!(copies.leave_loop(), []);
        copies.commit();
        assert_eq!(copies.wait(0), [3]);
    }
}
