//! Graphs of CUDA and HIP: what is captured, or added node by node, is done where the graph is launched, each time.
//!
//! In: a run that begins and ends captures, adds kernels to graphs and launches them. Out: their launches and events, as often as
//! the graphs are launched. What holds: what a graph holds that no launch of it was seen is kept as if it were launched once.

use super::Met;
use super::captured::{Graph, Mark};
use super::events::{HostEventKind, Often};
use super::state::Host;
use super::value::{Step, Value};

/// The class of a value that is a graph, and its field that says which.
const GRAPH: &str = "graph of the toolkit";
const NUMBER: &str = "number";

impl Host<'_> {
    /// What happens from now on may belong to a graph.
    pub(super) fn graph_mark(&self) -> Mark {
        Mark {
            sites: self.sites.len(),
            events: self.events.len(),
            times: self.running.as_ref().map_or(1, |running| running.times),
        }
    }

    /// A call of a toolkit's function of graphs; false where it is none.
    pub(super) fn graph_call(&mut self, name: &str, values: &[Value]) -> bool {
        let plain = name.trim_end_matches("_v2").trim_end_matches("_ptsz");
        let mut toolkits = ["cuda", "hip", "cu"].iter();
        let Some(call) = toolkits.find_map(|of| plain.strip_prefix(of)) else {
            return false;
        };
        if self.running.is_none() {
            return false;
        }
        let value = |at: usize| values.get(at).unwrap_or(&Value::Unknown);
        match call {
            "StreamBeginCapture" => {
                let mark = self.graph_mark();
                if let Some(running) = &mut self.running {
                    running.graphs.capturing = Some(mark);
                }
            }
            "StreamEndCapture" => {
                let capturing = self.running.as_mut();
                let capturing = capturing.and_then(|running| running.graphs.capturing.take());
                let graph = self.new_graph();
                if let Some(mark) = capturing {
                    self.taken_by_graph(&graph, mark);
                }
                self.written_through(value(1), graph);
            }
            "GraphCreate" => {
                let graph = self.new_graph();
                self.written_through(value(0), graph);
            }
            "GraphInstantiate"
            | "GraphInstantiateWithFlags"
            | "GraphInstantiateWithParams"
            | "GraphClone" => {
                let graph = value(1).clone();
                self.written_through(value(0), graph);
            }
            "GraphExecUpdate" => self.graph_becomes(value(0), value(1)),
            "GraphLaunch" => self.graph_launched(value(0)),
            _ => return false,
        }
        true
    }

    /// What was met since then is a graph's, where that is known.
    pub(super) fn taken_by_graph(&mut self, graph: &Value, since: Mark) {
        let Some(number) = number(graph) else {
            return;
        };
        let Some(running) = &mut self.running else {
            return;
        };
        let Some(graph) = running.graphs.all.get_mut(number) else {
            return;
        };
        let first = graph.sites.len();
        let sites = self.sites.drain(since.sites.min(self.sites.len())..);
        graph.sites.extend(sites.map(|met| {
            let mut met = met;
            met.site.count = met.site.count.map(|count| count / since.times.max(1));
            met
        }));
        let events = self.events.drain(since.events.min(self.events.len())..);
        graph.events.extend(events.filter_map(|event| {
            let mut event = event;
            if let HostEventKind::Launch(at) = &mut event.kind {
                *at = at.checked_sub(since.sites)? + first;
            }
            event.often.known /= since.times.max(1);
            Some(event)
        }));
    }

    /// A graph without anything in it.
    fn new_graph(&mut self) -> Value {
        let Some(running) = &mut self.running else {
            return Value::Unknown;
        };
        running.graphs.all.push(Graph::default());
        let number = Value::int(running.graphs.all.len() as i64 - 1);
        Value::record(GRAPH, vec![(NUMBER.to_owned(), number)])
    }

    /// What is launched as the first graph is the second one from now on.
    fn graph_becomes(&mut self, graph: &Value, other: &Value) {
        let (Some(to), Some(from), Some(running)) =
            (number(graph), number(other), &mut self.running)
        else {
            return;
        };
        let all = &mut running.graphs.all;
        if to != from && to.max(from) < all.len() {
            all[to] = std::mem::take(&mut all[from]);
            all[from].is_launched = true;
        }
    }

    fn written_through(&mut self, pointer: &Value, value: Value) {
        if let Value::Address(to) = pointer {
            self.write(to, value);
        }
    }

    /// A graph is launched; where it is not known which, it is the only one, or what the run does is no longer known.
    fn graph_launched(&mut self, graph: &Value) {
        let Some(running) = &mut self.running else {
            return;
        };
        let graphs = &running.graphs.all;
        let only = (graphs.len() == 1).then_some(0);
        match number(graph).filter(|at| *at < graphs.len()).or(only) {
            Some(at) => {
                let taken = std::mem::take(&mut running.graphs.all[at]);
                self.replay(&taken);
                if let Some(running) = &mut self.running {
                    running.graphs.all[at] = Graph {
                        is_launched: true,
                        ..taken
                    };
                }
            }
            None if graphs.is_empty() => {}
            None => self.lost_events = true,
        }
    }

    /// The graph's launches and events happen here.
    fn replay(&mut self, graph: &Graph) {
        if self.beside > 0 {
            return;
        }
        let first = self.sites.len();
        let doubtful = self.is_doubtful();
        let times = self.running.as_ref().map_or(1, |running| running.times);
        self.sites.extend(graph.sites.iter().map(|met| {
            let mut site = met.site.clone();
            let count = site.count.filter(|_| !doubtful);
            site.count = count.map(|count| count.saturating_mul(times));
            Met { site, ..*met }
        }));
        for event in &graph.events {
            let mut event = event.clone();
            if let HostEventKind::Launch(at) = &mut event.kind {
                *at += first;
            }
            event.often = match event.often.number() {
                Some(each) => self.often_each(each),
                // A condition in the graph, and how often that is launched.
                None => Often {
                    known: 0,
                    open: (event.often.open.iter().cloned())
                        .map(super::events::OpenTimes::cut)
                        .collect(),
                },
            };
            self.happened(event);
        }
    }

    /// At the end of a run: what is in graphs of which no launch was seen.
    pub(super) fn graphs_not_launched(&mut self) {
        let Some(running) = &mut self.running else {
            return;
        };
        let all = std::mem::take(&mut running.graphs.all);
        for graph in all.iter().filter(|graph| !graph.is_launched) {
            self.replay(graph);
        }
    }
}

/// Which graph a value is.
fn number(graph: &Value) -> Option<usize> {
    let Value::Record(record) = graph else {
        return None;
    };
    let number = graph.at(&Step::Field(NUMBER.to_owned())).integer()?;
    let of_toolkit = record.class == GRAPH;
    usize::try_from(number).ok().filter(|_| of_toolkit)
}
