//! The calls that the compiled kernel makes: what they execute beside the bodies of the functions.

use warplens_machine::{Mix, Pipe};

use super::{ModelInput, reshape};

/// What nvcc 13 makes of any call for `sm_80`: the return address in two registers, there and back.
const CALL: [(Pipe, f64); 2] = [(Pipe::Int, 2.0), (Pipe::Branch, 2.0)];

/// A call that an average warp makes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExecutedCall {
    /// Its number among the kernel's calls.
    pub call: usize,
    /// The line that it is on.
    pub line: u32,
    /// How often a warp makes it.
    pub times: f64,
}

impl ExecutedCall {
    /// The instructions of each call beside the body.
    pub fn instructions() -> Mix {
        Mix::from(CALL)
    }
}

impl ModelInput {
    /// The same kernel with the instructions of its calls.
    #[must_use]
    pub fn with_calls(mut self, calls: Vec<ExecutedCall>) -> ModelInput {
        for call in &calls {
            let each = ExecutedCall::instructions();
            reshape::add(&mut self.flow.nodes, call.line, &each, call.times);
        }
        self.calls = calls;
        self
    }

    /// Takes the instructions of a call away again.
    pub(super) fn take_call_away(&mut self, call: usize) {
        let Some(at) = self.calls.iter().position(|made| made.call == call) else {
            return;
        };
        let made = self.calls.remove(at);
        let each = ExecutedCall::instructions();
        reshape::add(&mut self.flow.nodes, made.line, &each, -made.times);
    }
}
