//! Where the lanes of one warp go at each access: what a picture of it shows.
//!
//! The kernel is executed once more and each access asked for one of its requests. It is computed when a user
//! looks, not at each keystroke.

use std::collections::BTreeMap;

use warplens_symbolic::Query;

use crate::Request;
use crate::access::cost;
use crate::cases::Cost;
use crate::executor::Executor;
use crate::facts::Site;

/// Cases looked at for the requests of one access, at most.
const MOST_CASES: u32 = 4096;

/// By lane: bytes from the start of the array; `None` for a lane that takes no part.
pub type Lanes = Vec<Option<i64>>;

/// One warp's request: of all that the launch makes at an access, the first of those whose cost is the most frequent.
#[derive(Debug, Clone, PartialEq)]
pub struct LaneRequest {
    /// The access, as the facts number it.
    pub access: usize,
    /// Where it is.
    pub site: Site,
    /// By lane: bytes from the start of the array; `None` for a lane that takes no part.
    pub lanes: Lanes,
    /// Requests that cost as much, of those looked at.
    pub alike: f64,
    /// Requests looked at: all of the launch, or a sample of it.
    pub of: f64,
}

/// One request for each access that is wanted and whose addresses are known, in their order.
pub fn lane_requests(request: &Request, wanted: &dyn Fn(usize) -> bool) -> Vec<LaneRequest> {
    let mut executor = Executor::new(request);
    executor.execute();
    let lanes = executor.domain.warp_size();
    let mut found = Vec::new();
    for (access, draft) in executor.accesses.iter().enumerate() {
        if !wanted(access)
            || draft.unseen.is_some()
            || executor.arena.opaque(draft.address).is_some()
        {
            continue;
        }
        let context = &executor.contexts[draft.context];
        let guards = context.guards();
        let roots = [(draft.address, draft.period(request.profile))];
        let query = Query {
            counters: &context.counters,
            guards: &guards,
            roots: &roots,
            budget: MOST_CASES,
        };
        let mut by_cost: BTreeMap<Cost, (f64, Lanes)> = BTreeMap::new();
        let mut of = 0.0;
        executor.domain.visit(&executor.arena, &query, &mut |case| {
            of += case.weight;
            let addresses = &case.values[0][..lanes];
            let cost = cost(request.profile, draft.kind(), addresses, case.active);
            let known = by_cost.entry(cost).or_insert_with(|| {
                let addresses = addresses.iter().enumerate();
                let there = |lane: usize| case.active >> lane & 1 == 1;
                let lanes = addresses.map(|(lane, &at)| there(lane).then_some(at));
                (0.0, lanes.collect())
            });
            known.0 += case.weight;
        });
        let most = by_cost
            .into_values()
            .reduce(|a, b| if b.0 > a.0 { b } else { a });
        found.extend(most.map(|(alike, lanes)| LaneRequest {
            access,
            site: draft.site,
            lanes,
            alike,
            of,
        }));
    }
    found
}
