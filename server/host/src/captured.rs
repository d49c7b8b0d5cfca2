//! What graphs of CUDA and HIP hold: the launches and events that are done where one is launched.

use super::Met;
use super::events::HostEvent;

/// The graphs of a run.
#[derive(Debug, Default)]
pub(super) struct Graphs {
    pub(super) all: Vec<Graph>,
    pub(super) capturing: Option<Mark>,
}

/// What a graph does each time that it is launched.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) sites: Vec<Met>,
    /// Its launches by their place among `sites`.
    pub(super) events: Vec<HostEvent>,
    pub(super) is_launched: bool,
}

/// Where the launches and events of a graph begin.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    pub(super) sites: usize,
    pub(super) events: usize,
    /// How often the program came there.
    pub(super) times: u64,
}
