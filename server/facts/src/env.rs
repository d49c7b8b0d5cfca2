//! What each variable holds as far as execution has come.
//!
//! A branch looks at both its sides from the same state, a loop tries an iteration and takes it back: changes
//! are logged, so that going back costs what was changed, not what there is.

use rustc_hash::FxHashMap;
use warplens_ir::VarId;

use crate::value::Value;

/// The variables' values.
#[derive(Debug)]
pub(crate) struct Env {
    values: Vec<Option<Value>>,
    /// Variable and what it held before, since the oldest mark.
    log: Vec<(VarId, Option<Value>)>,
    marks: u32,
}

/// A state to go back to.
#[derive(Debug)]
#[must_use = "a mark is taken back or kept"]
pub(crate) struct Mark(usize);

/// Variables with what they held when a state was left.
pub(crate) type Changes = FxHashMap<VarId, Option<Value>>;

impl Env {
    pub(crate) fn new(variables: usize) -> Env {
        Env {
            values: vec![None; variables],
            log: Vec::new(),
            marks: 0,
        }
    }

    pub(crate) fn get(&self, id: VarId) -> Option<&Value> {
        self.values[id.0 as usize].as_ref()
    }

    pub(crate) fn set(&mut self, id: VarId, mut value: Option<Value>) {
        // `x = x + x` again and again must not double what it waits for.
        if let Some(value) = &mut value
            && value.loads.len() > 1
        {
            value.loads.sort_unstable();
            value.loads.dedup();
        }
        let old = std::mem::replace(&mut self.values[id.0 as usize], value);
        if self.marks > 0 {
            self.log.push((id, old));
        }
    }

    pub(crate) fn mark(&mut self) -> Mark {
        self.marks += 1;
        Mark(self.log.len())
    }

    /// Goes back to a mark; what had changed since comes back.
    pub(crate) fn take_back(&mut self, mark: &Mark) -> Changes {
        self.marks -= 1;
        let mut changes = Changes::default();
        while self.log.len() > mark.0 {
            let Some((id, old)) = self.log.pop() else {
                break;
            };
            let now = std::mem::replace(&mut self.values[id.0 as usize], old);
            // The latest change is met first.
            changes.entry(id).or_insert(now);
        }
        changes
    }

    /// Makes changes that were taken back.
    pub(crate) fn make(&mut self, changes: Changes) {
        for (id, value) in changes {
            self.set(id, value);
        }
    }
}
