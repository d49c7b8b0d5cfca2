//! Threads of `OpenMP`.

/// The threads that the walk is among.
#[derive(Debug, Clone, Copy)]
pub(super) struct Team {
    /// How many; `None` where that is not known.
    pub(super) threads: Option<u64>,
    /// Which of them is walked; `None`: each.
    pub(super) thread: Option<u64>,
    /// What is walked represents all of them: where that is among the loops around, and how often all else happens.
    pub(super) all: Option<(usize, u64)>,
}
