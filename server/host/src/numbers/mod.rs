//! Loops of a run that only compute: they are compiled and executed on numbers, so that what they count and what they fill is known.
//!
//! In: a loop as a run meets it, with what its variables and arrays hold. Out: the same variables and arrays behind it. What holds: a
//! loop that launches, calls what is not read, or is too long is left to the walk, and nothing of it has happened then; a number that is
//! not known makes what is computed from it unknown, and a condition on it leaves the loop to the walk; steps and bytes are bounded.

mod bound;
mod calls;
mod code;
mod compile;
mod execute;
mod expressions;

pub(crate) use bound::{bits_of, listed, value_of};
pub(crate) use code::Loop;

use std::sync::Arc;

use warplens_hir::Source;
use warplens_syntax::{Field, Node};

use super::state::Host;
use bound::Compiled;
use compile::Compiler;

/// Steps of all such loops of a run.
pub(crate) const MOST_STEPS: u64 = 4_000_000;

impl Host<'_> {
    /// Executes a loop on numbers; false where it is left to the walk.
    pub(crate) fn on_numbers(&mut self, turns: Loop, source: Source) -> bool {
        let Some(body) = turns.body else { return false };
        self.executed(body, source, |compiler| compiler.whole(turns))
    }

    /// The same for a loop over the elements of an array or of a container.
    pub(crate) fn elements_on_numbers(&mut self, over: Node, source: Source) -> bool {
        let Some(body) = over.field(Field::Body) else {
            return false;
        };
        self.executed(body, source, |compiler| compiler.whole_range(over))
    }

    fn executed(
        &mut self,
        body: Node,
        source: Source,
        compile: impl FnOnce(Compiler) -> Option<Compiled>,
    ) -> bool {
        let Some(running) = &self.running else {
            return false;
        };
        let key = (Arc::as_ptr(source.parsed) as usize, body.start_byte());
        if running.number_steps == 0 || running.not_numbers.contains(&key) || self.beside > 0 {
            return false;
        }
        let compiled = compile(Compiler::new(self, source));
        let done = compiled.is_some_and(|compiled| compiled.run(self));
        if !done && let Some(running) = &mut self.running {
            running.not_numbers.insert(key);
        }
        done
    }
}
