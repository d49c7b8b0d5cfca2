//! How often a block of the compiled kernel is executed.
//!
//! The compiler knows no launch, so a block's frequency is a chain of shares: of what is around it, a side of a
//! branch, an iteration of a loop. Where a loop was fully unrolled its iterations are blocks of their own, each as
//! frequent as the loop was; an unrolled loop has fewer iterations by its factor, and a remainder loop. Of a
//! loop that is left from within, it is not known in which iteration: those that are executed are shared out evenly over
//! the blocks, so that unrolling changes nothing of what is executed but the loop's own tests.
//! Numbers come from the analysis that counted warps at the kernel's controls ([`WarpsAtControl`]).

use warplens_ir::Control;

use crate::CompiledKernel;

/// How often: an index into [`CompiledKernel::frequencies`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Frequency(pub(crate) u32);

impl Frequency {
    /// Once by every warp.
    pub(crate) const ONCE: Frequency = Frequency(0);
}

/// How often something is executed, against what is around it; that comes before it in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Share {
    /// Once by every warp.
    Once,
    /// A side of a branch: the one where its condition holds, or the other.
    Side(Frequency, Option<Control>, bool),
    /// The turns of a loop with this unroll factor.
    Turns(Frequency, Option<Control>, u64),
    /// The iterations that such a loop leaves over.
    LeftOver(Frequency, Option<Control>, u64),
    /// The first number in the second.
    Part(Frequency, u64, u64),
    /// Where two ways meet again that were left on the way: as often as both, and no more often than before.
    Either(Frequency, Frequency, Frequency),
}

/// Frequencies while the kernel is built.
#[derive(Debug, Clone)]
pub(crate) struct Frequencies {
    pub list: Vec<Share>,
}

impl Default for Frequencies {
    fn default() -> Self {
        Frequencies {
            list: vec![Share::Once],
        }
    }
}

impl Frequencies {
    pub fn add(&mut self, share: Share) -> Frequency {
        // What is asked for again was mostly made just before.
        let recent = self.list.len().saturating_sub(8);
        if let Some(at) = self.list[recent..].iter().rposition(|own| *own == share) {
            return Frequency((recent + at) as u32);
        }
        self.list.push(share);
        Frequency(self.list.len() as u32 - 1)
    }
}

/// How warps go on at a control, over a launch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WarpsAtControl<'a> {
    /// Warps that come there.
    pub reached: f64,
    /// Those that take it; of a loop, the iterations of warps.
    pub taken: f64,
    /// Those that do not.
    pub other: f64,
    /// Loops: numbers of iterations, and how many warps have each; empty where only the average is known.
    pub turns: &'a [(u64, f64)],
}

impl WarpsAtControl<'_> {
    fn side(&self, taken: bool) -> f64 {
        if self.reached <= 0.0 {
            return 0.0;
        }
        (if taken { self.taken } else { self.other } / self.reached).min(1.0)
    }

    fn trips(&self) -> f64 {
        if self.reached > 0.0 {
            self.taken / self.reached
        } else {
            0.0
        }
    }

    /// Iterations that do not fill `times`, on average.
    fn remainder(&self, times: u64) -> f64 {
        let trips = self.trips();
        let warps: f64 = self.turns.iter().map(|(_, warps)| warps).sum();
        if warps > 0.0 {
            let left = |&(turns, warps): &(u64, f64)| (turns % times) as f64 * warps;
            return self.turns.iter().map(left).sum::<f64>() / warps;
        }
        if trips.fract() == 0.0 {
            return trips % times as f64;
        }
        // Any remainder is as likely as another.
        trips.min((times - 1) as f64 / 2.0)
    }

    fn turns(&self, times: u64) -> f64 {
        ((self.trips() - self.remainder(times)) / times as f64).max(0.0)
    }
}

impl CompiledKernel {
    /// Executions of each frequency by one warp, averaged over those of the launch; `ways` says how they go on at a
    /// control, `None` where it was not counted: then every way is gone, and a loop is gone through once.
    pub fn executions<'w>(
        &self,
        ways: &dyn Fn(Control) -> Option<WarpsAtControl<'w>>,
    ) -> Executions {
        let mut times: Vec<f64> = Vec::with_capacity(self.frequencies.len());
        let mut followed = true;
        for share in &self.frequencies {
            let of = |frequency: &Frequency| times[frequency.0 as usize];
            let mut at = |control: &Option<Control>| {
                let found = control.and_then(ways);
                followed &= found.is_some();
                found
            };
            let now = match share {
                Share::Once => 1.0,
                Share::Side(around, control, taken) => {
                    of(around) * at(control).map_or(1.0, |ways| ways.side(*taken))
                }
                Share::Turns(around, control, together) => {
                    of(around) * at(control).map_or(1.0, |ways| ways.turns(*together))
                }
                Share::LeftOver(around, control, together) => {
                    of(around) * at(control).map_or(0.0, |ways| ways.remainder(*together))
                }
                Share::Part(around, part, whole) => {
                    of(around) * (*part as f64 / (*whole).max(1) as f64)
                }
                Share::Either(around, a, b) => of(around).min(of(a) + of(b)),
            };
            times.push(now);
        }
        Executions { times, followed }
    }
}

/// How often each frequency is.
#[derive(Debug, Clone, PartialEq)]
pub struct Executions {
    times: Vec<f64>,
    /// False where a control was not counted.
    pub followed: bool,
}

impl Executions {
    /// Executions by one warp, on average.
    pub fn of(&self, frequency: Frequency) -> f64 {
        self.times[frequency.0 as usize]
    }
}
