//! Reduction of a weighted graph to one arc (Figures 2 to 4 of the paper).

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use super::graph::{Branching, Graph, Kind, Step};

/// What the reduction of a weighted graph to one arc leaves.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reduction {
    /// Weight of the arc from entry to exit.
    pub entry_to_exit: f64,
    /// Executions of each node by one average warp.
    pub visits: Vec<f64>,
    /// Weight of each node's outgoing transition arc once the data-dependence arcs are collapsed, per visit.
    pub transitions: Vec<f64>,
    /// Uncovered latency that each load causes, over all its visits.
    pub exposed: Vec<f64>,
}

/// A load whose value has not been asked for yet.
#[derive(Debug, Clone, Copy)]
struct Flight {
    access: usize,
    node: usize,
    elapsed: f64,
    /// Fraction of the warps that have not asked for the value yet.
    outstanding: f64,
    /// How many loads the walk had issued with it.
    issued: usize,
}

impl Flight {
    /// What one load that was issued once is known by, whatever ways it was followed on.
    fn issue(&self) -> Issue {
        (self.access, self.issued)
    }
}

/// A load's access, and how many loads the walk had issued with it.
type Issue = (usize, usize);

fn first_of_each(flights: &[Flight]) -> FxHashMap<Issue, &Flight> {
    let mut first = FxHashMap::default();
    for flight in flights {
        first.entry(flight.issue()).or_insert(flight);
    }
    first
}

/// Loops nested deeper than this are walked in their steady state only, which bounds the reduction's cost.
const DEEPEST_FIRST_ITERATION: usize = 3;

/// Nodes walked at most, loops of large graphs being walked in their steady state at a smaller depth already.
const MOST_WALKED: usize = 1 << 12;

/// Iterations walked apart: the first, which waits for what was loaded before the loop; one in which loads
/// carried over from it settle; and one that represents all that follow.
const WALKS: usize = 3;

impl Graph {
    /// Collapses the graph to one arc (Figures 2 to 4 of the paper).
    ///
    /// `transition` holds the weight of each node's outgoing transition arc, `dependence` the weight of the
    /// data-dependence arcs that leave it. Straight paths add up; a loop is its body times its trips, where
    /// the first iteration alone waits for loads issued before the loop; a branch is put together as
    /// `branching` says, and a use inside it weighs as much as its side. A data-dependence arc heavier than
    /// the path from its load to its use adds the difference to the last transition arc of that path; arcs
    /// go in the order of their uses, so that overlapped latency counts once.
    pub fn reduce(
        &self,
        transition: &[f64],
        dependence: &[f64],
        branching: Branching,
    ) -> Reduction {
        let mut walk = Walk {
            graph: self,
            transition,
            dependence,
            branching,
            sums: std::array::from_fn(|_| vec![0.0; self.nodes.len()]),
            undo: Vec::new(),
            trying: 0,
            deepest: (0..DEEPEST_FIRST_ITERATION)
                .take_while(|deep| self.nodes.len() * WALKS.pow(*deep as u32 + 1) <= MOST_WALKED)
                .count(),
            previous: None,
            issued: 0,
            ways: Ways::default(),
        };
        let entry_to_exit = walk.sequence(&self.steps, 1.0, 0, &mut Vec::new());
        let [visits, added, exposed] = walk.sums;
        let transitions = (0..self.nodes.len())
            .map(|node| {
                let each = if visits[node] > 0.0 {
                    added[node] / visits[node]
                } else {
                    0.0
                };
                transition[node] + each
            })
            .collect();
        Reduction {
            entry_to_exit,
            visits,
            transitions,
            exposed,
        }
    }
}

struct Walk<'g> {
    graph: &'g Graph,
    transition: &'g [f64],
    dependence: &'g [f64],
    branching: Branching,
    /// What each node sums up, by [`Sum`].
    sums: [Vec<f64>; 3],
    /// What was written while sides of branches were tried, with the values before.
    undo: Vec<Written>,
    /// How many branches around what is walked have their sides tried.
    trying: usize,
    /// How deep loops nest whose first iterations are walked apart.
    deepest: usize,
    previous: Option<usize>,
    issued: usize,
    /// Reused from branch to branch.
    ways: Ways,
}

/// What is summed up of each node.
#[derive(Debug, Clone, Copy)]
enum Sum {
    Visits,
    /// To its outgoing transition arcs.
    Added,
    Exposed,
}

/// One value of a node.
#[derive(Debug, Clone, Copy)]
struct Written {
    sum: Sum,
    node: usize,
    value: f64,
}

/// What a walk of one side of a branch came to, taken back.
struct Walked {
    time: f64,
    written: Vec<Written>,
    flights: Vec<Flight>,
    previous: Option<usize>,
    issued: usize,
}

impl Walk<'_> {
    fn sequence(
        &mut self,
        steps: &[Step],
        times: f64,
        depth: usize,
        flights: &mut Vec<Flight>,
    ) -> f64 {
        let mut time = 0.0;
        for step in steps {
            time += match step {
                Step::Node(node) => self.node(*node, times, flights),
                Step::Loop { trips, body } => self.repeat(*trips, body, times, depth, flights),
                Step::Branch {
                    taken,
                    other,
                    by_one,
                    then,
                    otherwise,
                } => {
                    if self.branching == Branching::Longest && depth == 0 {
                        let sides = [(*taken, then), (*other, otherwise)];
                        time += self.longer(sides, times, flights);
                        continue;
                    }
                    let empty = (then.is_empty(), otherwise.is_empty());
                    let (on, off) = self.branching.weights((*taken, *other), empty, *by_one);
                    if on <= 0.0 || off <= 0.0 {
                        let (weight, side) = if on > 0.0 {
                            (on, then)
                        } else {
                            (off, otherwise)
                        };
                        if weight <= 0.0 {
                            continue;
                        }
                        time += weight * self.sequence(side, times * weight, depth, flights);
                        continue;
                    }
                    let before = flights.clone();
                    let mut off_flights = flights.clone();
                    let (fork, began) = (self.previous, self.issued);
                    let with = self.sequence(then, times * on, depth, flights);
                    let join = self.previous;
                    self.previous = fork;
                    let without = self.sequence(otherwise, times * off, depth, &mut off_flights);
                    if on >= off {
                        self.previous = join;
                    }
                    let both = on * with + off * without;
                    let weights = (on, off);
                    merge(
                        flights,
                        &off_flights,
                        &before,
                        began,
                        weights,
                        &mut self.ways,
                    );
                    both
                }
            };
        }
        time
    }

    /// The longer side of a branch, of those that a warp takes.
    fn longer(
        &mut self,
        sides: [(f64, &Vec<Step>); 2],
        times: f64,
        flights: &mut Vec<Flight>,
    ) -> f64 {
        let (previous, issued) = (self.previous, self.issued);
        let mut longest: Option<Walked> = None;
        self.trying += 1;
        for (_, side) in sides.into_iter().filter(|(share, _)| *share > 0.0) {
            let began = self.undo.len();
            let mut after = flights.clone();
            let time = self.sequence(side, times, 0, &mut after);
            let walked = Walked {
                time,
                written: self.take_back(began),
                flights: after,
                previous: std::mem::replace(&mut self.previous, previous),
                issued: std::mem::replace(&mut self.issued, issued),
            };
            if longest.as_ref().is_none_or(|known| time > known.time) {
                longest = Some(walked);
            }
        }
        self.trying -= 1;
        let Some(walked) = longest else {
            return 0.0;
        };
        for written in walked.written {
            self.write(written);
        }
        (self.previous, self.issued) = (walked.previous, walked.issued);
        *flights = walked.flights;
        walked.time
    }

    fn add(&mut self, sum: Sum, node: usize, by: f64) {
        let value = self.sums[sum as usize][node] + by;
        self.write(Written { sum, node, value });
    }

    fn write(&mut self, new: Written) {
        let place = &mut self.sums[new.sum as usize][new.node];
        let value = std::mem::replace(place, new.value);
        if self.trying > 0 {
            self.undo.push(Written { value, ..new });
        }
    }

    /// Undoes what was written since `began`; what there was, in its order.
    fn take_back(&mut self, began: usize) -> Vec<Written> {
        let mut written = self.undo.split_off(began);
        for change in written.iter_mut().rev() {
            let place = &mut self.sums[change.sum as usize][change.node];
            std::mem::swap(place, &mut change.value);
        }
        written
    }

    fn node(&mut self, index: usize, times: f64, flights: &mut Vec<Flight>) -> f64 {
        let node = &self.graph.nodes[index];
        let mut time = 0.0;
        for &access in &node.uses {
            let mut wait = 0.0;
            flights.retain(|flight| {
                if flight.access != access {
                    return true;
                }
                let left = (self.dependence[flight.node] - flight.elapsed).max(0.0);
                let part = left * flight.outstanding;
                let last = self.previous.unwrap_or(flight.node);
                self.add(Sum::Exposed, flight.node, part * times);
                self.add(Sum::Added, last, part * times);
                wait += part;
                false
            });
            advance(flights, wait);
            time += wait;
        }
        advance(flights, self.transition[index]);
        if node.loads
            && let Kind::Memory(access) | Kind::Scratchpad(access) = node.kind
        {
            flights.retain(|flight| flight.access != access);
            if flights.len() >= MOST_IN_FLIGHT {
                // The oldest has arrived by now: a warp cannot have that many loads outstanding.
                let oldest = (0..flights.len())
                    .max_by(|&a, &b| flights[a].elapsed.total_cmp(&flights[b].elapsed));
                if let Some(oldest) = oldest {
                    flights.swap_remove(oldest);
                }
            }
            let elapsed = self.transition[index];
            self.issued += 1;
            flights.push(Flight {
                access,
                node: index,
                elapsed,
                outstanding: 1.0,
                issued: self.issued,
            });
        }
        self.add(Sum::Visits, index, times);
        self.previous = Some(index);
        time + self.transition[index]
    }

    fn repeat(
        &mut self,
        trips: f64,
        body: &[Step],
        times: f64,
        depth: usize,
        flights: &mut Vec<Flight>,
    ) -> f64 {
        // Loads from before the loop: what waits for one has done so in the first iteration.
        let mut outside = Vec::new();
        let shallow = depth < self.deepest;
        if !shallow {
            outside.append(flights);
        }
        let mut time = 0.0;
        let mut left = trips;
        for walk in 0..WALKS {
            if left <= 0.0 {
                break;
            }
            // An iteration that carries no load over to the next is like all that follow.
            let carries = walk == 0 || !flights.is_empty();
            let last = walk + 1 == WALKS || !shallow || !carries;
            let repeats = if last { left } else { left.min(1.0) };
            let began = self.issued;
            let once = self.sequence(body, times * repeats, depth + 1, flights);
            time += repeats * once;
            left -= repeats;
            let (mut before, inside): (Vec<Flight>, _) =
                flights.iter().partition(|flight| flight.issued <= began);
            *flights = inside;
            advance(&mut outside, repeats * once);
            advance(&mut before, (repeats - 1.0).max(0.0) * once);
            outside.append(&mut before);
        }
        outside.retain(|old| !flights.iter().any(|new| new.access == old.access));
        flights.append(&mut outside);
        time
    }
}

/// Loads of one warp that are followed at a time.
const MOST_IN_FLIGHT: usize = 64;

fn advance(flights: &mut [Flight], time: f64) {
    for flight in flights {
        flight.elapsed += time;
    }
}

/// The ways of each load that a branch leaves in flight, in the order in which they came.
#[derive(Default)]
struct Ways {
    all: Vec<Flight>,
    /// By load and time behind it, in millionths of a cycle.
    known: FxHashMap<(Issue, i64), usize>,
}

impl Ways {
    fn add(&mut self, flight: &Flight, weight: f64, elapsed: f64) {
        let outstanding = flight.outstanding * weight.clamp(0.0, 1.0);
        if outstanding <= 0.0 {
            return;
        }
        let key = (flight.issue(), (elapsed * 1e6).round() as i64);
        match self.known.entry(key) {
            Entry::Occupied(known) => self.all[*known.get()].outstanding += outstanding,
            Entry::Vacant(place) => {
                place.insert(self.all.len());
                self.all.push(Flight {
                    elapsed,
                    outstanding,
                    ..*flight
                });
            }
        }
    }
}

/// After a branch: the loads still in flight, each once for every way through the branch. `began` is how many loads the walk
/// had issued before it.
///
/// Figure 3 duplicates the nodes before and after a branch whose data-dependence arcs cross it, so that each path has
/// its own. Here a load is in flight once for each path with that path's weight and that path's time behind it. Warps
/// that split (the weights are more than 1) take both paths one behind the other.
fn merge(
    on: &mut Vec<Flight>,
    off: &[Flight],
    before: &[Flight],
    began: usize,
    (on_weight, off_weight): (f64, f64),
    ways: &mut Ways,
) {
    ways.all.clear();
    ways.known.clear();
    for (flights, own, other) in [
        (on.as_slice(), on_weight, off_weight),
        (off, off_weight, on_weight),
    ] {
        for flight in flights {
            let earlier = flight.issued <= began;
            ways.add(
                flight,
                if earlier { 1.0 - other } else { own },
                flight.elapsed,
            );
        }
    }
    let split = (on_weight + off_weight - 1.0).max(0.0);
    if split > 0.0 && !before.is_empty() {
        let (on, off) = (first_of_each(on), first_of_each(off));
        for old in before {
            let issue = old.issue();
            if let (Some(here), Some(there)) = (on.get(&issue), off.get(&issue)) {
                ways.add(here, split, here.elapsed + there.elapsed - old.elapsed);
            }
        }
    }
    std::mem::swap(on, &mut ways.all);
    // Ways through many branches: those of one load stand for their mean.
    let mut first: FxHashMap<usize, usize> = FxHashMap::default();
    if on.len() > MOST_IN_FLIGHT {
        for (at, flight) in on.iter().enumerate() {
            first.entry(flight.access).or_insert(at);
        }
    }
    while on.len() > MOST_IN_FLIGHT {
        let Some(last) = on.pop() else { break };
        let first = first.get(&last.access).filter(|first| **first < on.len());
        match first.map(|first| &mut on[*first]) {
            Some(known) => {
                let both = known.outstanding + last.outstanding;
                known.elapsed =
                    (known.elapsed * known.outstanding + last.elapsed * last.outstanding) / both;
                known.outstanding = both.min(1.0);
            }
            None => {
                // A warp cannot have that many loads outstanding: some have arrived by now.
            }
        }
    }
}
