//! Queries of occupancy in a run: how many blocks of a kernel an SM holds, and which block holds most.
//!
//! In: the target's limits of threads, blocks and shared memory. Out: the answer of a kernel whose registers and static shared
//! memory leave room, which is not known here: launches whose size may come from it say so
//! ([`LaunchSite::assumes_residency`](crate::LaunchSite::assumes_residency)).
//! Source: CUDA Runtime API, *Occupancy*; CUDA Driver API, *Occupancy*; HIP API, *Occupancy*.

use super::arguments::Argument;
use super::state::Host;
use super::value::Value;

/// Where the function of that name has its results and its arguments.
struct Query {
    /// Blocks that an SM holds; else the block that holds most.
    of_blocks: bool,
    /// Positions among the arguments.
    grid: usize,
    block: usize,
    shared: usize,
    limit: usize,
}

impl Query {
    fn of(name: &str) -> Option<Query> {
        let rest = [
            "cudaOccupancy",
            "hipOccupancy",
            "cuOccupancy",
            "hipModuleOccupancy",
        ]
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix))?;
        let driver = name.starts_with("cuOccupancy") || name.starts_with("hipModule");
        let of_blocks = match rest.strip_suffix("WithFlags").unwrap_or(rest) {
            "MaxActiveBlocksPerMultiprocessor" => true,
            "MaxPotentialBlockSize" => false,
            // Its shared memory follows from the block by a function.
            _ => return None,
        };
        // The driver's has a function of the shared memory before its bytes, HIP's has none.
        let after = usize::from(!of_blocks && driver && !name.starts_with("hip"));
        Some(Query {
            of_blocks,
            grid: 0,
            block: if of_blocks { 2 } else { 1 },
            shared: 3 + after,
            limit: 4 + after,
        })
    }
}

impl Host<'_> {
    /// Answers a query of occupancy; `None` for another function.
    pub(super) fn occupancy_call(&mut self, name: &str, arguments: &[Argument]) -> Option<Value> {
        let query = Query::of(name)?;
        let at = |at: usize| arguments.get(at).map(|argument| &argument.value);
        let shared = at(query.shared).map_or(Some(0), Value::as_int);
        let limit = at(query.limit).map_or(Some(0), Value::as_int);
        let block = at(query.block).and_then(Value::as_int);
        let (grid_at, block_at) = (at(query.grid).cloned()?, at(query.block).cloned()?);
        let answer = |host: &Self| {
            let room = Room::of(host, shared?)?;
            if query.of_blocks {
                return Some((room.blocks(block?), 0));
            }
            let (block, blocks) = room.fullest(limit.filter(|limit| *limit > 0));
            Some((blocks.checked_mul(room.sms)?, block))
        };
        let (first, second) = answer(self).map_or((Value::Unknown, Value::Unknown), |answer| {
            (Value::int(answer.0), Value::int(answer.1))
        });
        if let Some(running) = &mut self.running {
            running.asked_for_residency = true;
        }
        self.write_at(&grid_at, first);
        if !query.of_blocks {
            self.write_at(&block_at, second);
        }
        Some(Value::int(0))
    }

    /// The target's figure of that name in `cudaDeviceProp`.
    fn device_figure(&self, name: &str) -> Option<i64> {
        let device = self.running.as_ref()?.device.as_ref()?;
        let mut figures = device.properties.iter();
        figures.find_map(|(of, value)| (*of == name).then_some(*value))
    }
}

/// What an SM has for blocks of one kernel.
struct Room {
    sms: i64,
    warp: i64,
    most_threads_of_block: i64,
    threads: i64,
    blocks: i64,
    /// Blocks that its shared memory holds.
    by_shared: i64,
}

impl Room {
    fn of(host: &Host<'_>, shared: i64) -> Option<Room> {
        let figure = |name: &str| host.device_figure(name).filter(|value| *value > 0);
        let by_shared = match shared {
            0 => i64::MAX,
            bytes if bytes > 0 => figure("sharedMemPerMultiprocessor")? / bytes,
            _ => return None,
        };
        Some(Room {
            sms: figure("multiProcessorCount")?,
            warp: figure("warpSize")?,
            most_threads_of_block: figure("maxThreadsPerBlock")?,
            threads: figure("maxThreadsPerMultiProcessor")?,
            blocks: figure("maxBlocksPerMultiProcessor")?,
            by_shared,
        })
    }

    /// Resident blocks of that many threads.
    fn blocks(&self, threads: i64) -> i64 {
        if !(1..=self.most_threads_of_block).contains(&threads) {
            return 0;
        }
        let warps = (threads + self.warp - 1) / self.warp;
        (self.threads / (warps * self.warp))
            .min(self.blocks)
            .min(self.by_shared)
    }

    /// The largest block with most resident threads, and how many of it are resident.
    fn fullest(&self, limit: Option<i64>) -> (i64, i64) {
        let most = limit.map_or(self.most_threads_of_block, |limit| {
            limit.min(self.most_threads_of_block)
        });
        let sizes = (1..=most / self.warp).map(|warps| warps * self.warp);
        sizes
            .map(|block| (block, self.blocks(block)))
            .max_by_key(|(block, blocks)| block * blocks)
            .unwrap_or((most, self.blocks(most)))
    }
}
