//! What is wanted of the scores.

use super::description::described;
use super::predict::Counter;
use super::set::{Kind, Set, Summary};
use super::speedups::{Pair, Speedups};

/// A score and what is wanted of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// Which score.
    pub what: String,
    /// The score; `None` where there is none.
    pub is: Option<f64>,
    /// Its bound.
    pub wanted: f64,
    /// How both are written.
    pub unit: Unit,
    /// True where the score may not be below the bound, false where it may not be above.
    pub at_least: bool,
}

/// How a score is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A number of its own.
    Plain,
    /// A share, in per cent.
    Percent,
    /// Points of per cent.
    Points,
    /// The logarithm of a factor, shown as the factor: 0 is `1.00x`.
    Factor,
}

impl Unit {
    /// A score in this unit.
    pub fn show(self, value: f64) -> String {
        match self {
            Unit::Plain => format!("{value:.2}"),
            Unit::Percent => format!("{:.0} %", value * 100.0),
            Unit::Points => format!("{value:.1} points"),
            Unit::Factor => factor(value),
        }
    }
}

/// A factor by its logarithm: three digits, which is more than anything here is known to.
pub fn factor(log: f64) -> String {
    let factor = log.exp();
    match factor {
        _ if factor < 10.0 => format!("{factor:.2}x"),
        _ if factor < 100.0 => format!("{factor:.0}x"),
        _ => format!("{factor:.1e}x"),
    }
}

impl Target {
    /// True where the score is as wanted; one that is missing is not.
    pub fn met(&self) -> bool {
        self.is.is_some_and(|is| {
            if self.at_least {
                is >= self.wanted
            } else {
                is <= self.wanted
            }
        })
    }

    /// The bound in words.
    pub fn bound(&self) -> String {
        let word = if self.at_least { "at least" } else { "at most" };
        format!("{word} {}", self.unit.show(self.wanted))
    }

    /// The score in words.
    pub fn value(&self) -> String {
        self.is
            .map_or_else(|| "-".to_owned(), |is| self.unit.show(is))
    }
}

/// Every target of these tables.
pub fn targets(sets: &[Set], summary: &Summary) -> Vec<Target> {
    let target = |what: String, is: Option<f64>, at_least: bool, wanted: f64, unit: Unit| Target {
        what,
        is,
        wanted,
        unit,
        at_least,
    };
    let mut targets = Vec::new();
    if sets.iter().any(|set| set.kind != Kind::Streams) {
        targets.extend([
            target("mean rho".to_owned(), summary.rho, true, 0.90, Unit::Plain),
            target(
                "geometric mean of the regrets".to_owned(),
                summary.regret,
                false,
                1.15,
                Unit::Plain,
            ),
        ]);
    }
    let pairs: Vec<Pair> = sets.iter().flat_map(|set| &set.speedups).copied().collect();
    if let Some(speedups) = Speedups::of(&pairs) {
        targets.push(target(
            "mean error of the speedups".to_owned(),
            Some(speedups.mean),
            false,
            0.15,
            Unit::Percent,
        ));
    }
    for set in sets {
        let of = |what: &str| format!("{}: {what}", set.id);
        if set.kind == Kind::Streams {
            let error = of("mean error of the bandwidth");
            targets.push(target(error, set.bandwidth, false, 0.10, Unit::Percent));
            continue;
        }
        let other = described().set(&set.id).and_then(|set| set.rho.as_ref());
        let rho = other.map_or(0.75, |rho| rho.wanted);
        let scaled = set.scaled.map(|errors| errors.median);
        targets.extend([
            target(of("rho"), set.rho, true, rho, Unit::Plain),
            target(of("regret"), set.regret, false, 1.5, Unit::Plain),
            target(of("scaled error"), scaled, false, 0.15, Unit::Factor),
        ]);
        if let Some(cycles) = set.cycles {
            let what = of("error of the cycles");
            targets.push(target(what, Some(cycles.median), false, 0.20, Unit::Factor));
        }
        for (counter, errors) in &set.counters {
            let (wanted, unit) = match counter {
                Counter::L2Sectors | Counter::DramSectors => (0.15, Unit::Factor),
                Counter::Wavefronts => (0.05, Unit::Factor),
                Counter::Occupancy => (5.0, Unit::Points),
                _ => continue,
            };
            let what = of(counter.name());
            targets.push(target(what, Some(errors.median), false, wanted, unit));
        }
    }
    targets
}
