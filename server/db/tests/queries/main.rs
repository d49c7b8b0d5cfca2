//! What is computed, when it is computed again, and that nothing but its inputs decides an answer.

mod history;
mod targets;
mod unchanged;
