//! Loops as LLVM's AMDGPU back end has them unrolled: seldom where their end is not known, far where that takes arrays
//! out of memory.

use warplens_ir::{Storage, Type};

use super::Builder;
use super::parts::Parts;
use super::tally::Touched;
use crate::thresholds::{PERCENT, amdgcn};

impl Builder<'_> {
    pub(super) fn looping_on_amdgpu(
        &mut self,
        parts: Parts,
        touched: &Touched,
        trips: Option<u64>,
        unroll: Option<u64>,
    ) {
        let limits = &amdgcn().unroll;
        let shared = self.loops_around() < limits.lds_depth
            && touched
                .subscripted
                .iter()
                .any(|id| self.kernel.var(*id).storage == Storage::Shared);
        let private = touched.subscripted.iter().any(|id| {
            let var = self.kernel.var(*id);
            var.storage == Storage::Local
                && matches!(var.ty, Type::Array(..))
                && var.ty.size() <= limits.array_bytes
        });
        let most = match (private, shared) {
            (true, _) => limits.full * limits.private_percent / PERCENT,
            (false, true) => limits.full * limits.lds_percent / PERCENT,
            (false, false) => limits.full,
        };
        let each = touched.weight.saturating_sub(2).max(1);
        let side_by_side = (limits.partial - 2) / each;
        if let Some(trips) = trips {
            let asked = match unroll {
                Some(0) => trips <= limits.pragma_trips,
                Some(times) => times >= trips && times > 1,
                None => trips.saturating_mul(each) <= most,
            };
            if trips <= 1 || asked && unroll != Some(1) {
                self.fully_unrolled(parts, touched, (trips, trips));
                return;
            }
            let times = match unroll {
                Some(times) if times > 0 => times,
                _ if touched.exits => 1,
                _ => (1..=side_by_side.min(trips))
                    .rev()
                    .find(|times| trips % times == 0)
                    .unwrap_or(1),
            };
            self.kept(parts, touched, (times.min(limits.pragma_factor), 1), false);
            return;
        }
        let counted = !touched.exits && self.is_counted(parts, touched);
        let times = match unroll {
            Some(times) if times > 1 && counted => times.min(limits.pragma_factor),
            None if shared && counted && !touched.together && !touched.loops => {
                let mut times = limits.runtime_factor;
                while times > 1 && times > side_by_side {
                    times /= 2;
                }
                times
            }
            _ => 1,
        };
        if times > 1 {
            self.kept(parts, touched, (times, 1), true);
            self.remainder = times;
        }
        self.kept(parts, touched, (1, 1), false);
    }

    /// How many loops the code is in.
    fn loops_around(&self) -> u32 {
        let mut count = 0;
        let mut within = self.within;
        while let Some(number) = within {
            count += 1;
            let before = self.graph.loops[number as usize].before;
            within = self.graph.block(before).within;
        }
        count
    }
}
