//! The scores of one table, and of all.

use std::collections::{BTreeMap, BTreeSet};

use warplens_machine::Profiles;

use super::predict::{Counter, Predicted, mechanisms, profile, warps_per_block};
use super::row::Row;
use super::score::{self, Errors};
use super::speedups::{self, Pair};

/// What a table asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Many configurations of one kernel.
    Space,
    /// Several kernels that do the same work.
    Ladder,
    /// What a GPU's memory gives.
    Streams,
}

/// The scores of one table.
#[derive(Debug, Clone, PartialEq)]
pub struct Set {
    /// Its name.
    pub id: String,
    /// What it asks for.
    pub kind: Kind,
    /// The GPUs as profiles.
    pub profiles: BTreeSet<String>,
    /// GPUs without a profile.
    pub unknown: BTreeSet<String>,
    /// Rows with a measured time on a GPU with a profile.
    pub timed: usize,
    /// Predicted and measured milliseconds of those that have both.
    pub points: Vec<Point>,
    /// Why nothing was predicted of the others: the reason and how many.
    pub unpredicted: BTreeMap<String, usize>,
    /// Spearman's rho; of several GPUs the mean.
    pub rho: Option<f64>,
    /// What the choice predicted best takes over the best; of several GPUs the geometric mean.
    pub regret: Option<f64>,
    /// Errors of the time after one scale for each kernel and GPU.
    pub scaled: Option<Errors>,
    /// Errors of the time.
    pub raw: Option<Errors>,
    /// Errors of the cycles where the clock is known.
    pub cycles: Option<Errors>,
    /// Of the rows that did not compile or launch, how many were said not to.
    pub invalid: (usize, usize),
    /// Of the rows that ran, how many were said not to.
    pub refused: (usize, usize),
    /// Errors of what was counted.
    pub counters: BTreeMap<Counter, Errors>,
    /// Streams: the mean error of the bandwidth.
    pub bandwidth: Option<f64>,
    /// The scores without each mechanism; empty where that was not asked for.
    pub without: Vec<Ablated>,
    /// Rows of which one is another with something done that code actions do.
    pub speedups: Vec<Pair>,
    /// Who measured, as the table says it.
    pub origin: String,
    /// How long it took.
    pub seconds: f64,
}

/// Scores where the model does without something.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Ablated {
    /// Spearman's rho.
    pub rho: Option<f64>,
    /// The regret.
    pub regret: Option<f64>,
    /// The median error after one scale.
    pub scaled: Option<f64>,
    /// Streams: the mean error of the bandwidth.
    pub bandwidth: Option<f64>,
}

/// One row of a plot.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The GPU.
    pub gpu: String,
    /// The kernel with its types.
    pub kernel: String,
    /// Predicted milliseconds.
    pub predicted: f64,
    /// Measured milliseconds.
    pub measured: f64,
    /// Predicted and measured cycles.
    pub cycles: Option<(f64, f64)>,
    /// Warps of an SM of the most it holds, where that was set.
    pub occupancy: Option<f64>,
    /// Measured bandwidth in GB/s.
    pub gb_s: Option<f64>,
    /// Cycles without each mechanism over the predicted ones.
    pub without: Vec<Option<f64>>,
}

impl Point {
    /// Predicted and measured milliseconds.
    fn times(&self) -> (f64, f64) {
        (self.predicted, self.measured)
    }

    /// The bandwidth that the prediction makes of the same bytes, in GB/s.
    pub fn predicted_gb_s(&self) -> Option<f64> {
        Some(self.gb_s? * self.measured / self.predicted)
    }

    /// How far that is off, as a share of the measured one.
    fn bandwidth_error(&self) -> Option<f64> {
        Some((self.predicted_gb_s()? / self.gb_s? - 1.0).abs())
    }
}

impl Set {
    /// Scores the rows of a table.
    pub fn new(id: &str, rows: &[&Row], predicted: &[Predicted], profiles: &Profiles) -> Set {
        let mut set = Set {
            id: id.to_owned(),
            kind: kind(rows),
            profiles: BTreeSet::new(),
            unknown: BTreeSet::new(),
            timed: 0,
            points: Vec::new(),
            unpredicted: BTreeMap::new(),
            rho: None,
            regret: None,
            scaled: None,
            raw: None,
            cycles: None,
            invalid: (0, 0),
            refused: (0, 0),
            counters: BTreeMap::new(),
            bandwidth: None,
            without: Vec::new(),
            speedups: speedups::pairs(rows, predicted),
            origin: String::new(),
            seconds: 0.0,
        };
        let mut counted: BTreeMap<Counter, Vec<f64>> = BTreeMap::new();
        for (row, predicted) in rows.iter().zip(predicted) {
            let Some(profile) = profile(profiles, &row.gpu) else {
                set.unknown.insert(row.gpu.clone());
                continue;
            };
            set.profiles.insert(profile.id.clone());
            let told = match row.measured_ms {
                Some(_) => &mut set.refused,
                None => &mut set.invalid,
            };
            told.0 += usize::from(predicted.invalid);
            told.1 += 1;
            let Some(measured) = row.measured_ms else {
                continue;
            };
            set.timed += 1;
            for (counter, value) in &predicted.counted {
                let error = counter
                    .measured(row)
                    .map(|measured| counter.error(*value, measured));
                counted.entry(*counter).or_default().extend(error);
            }
            let Some(ms) = predicted.ms else {
                let why = predicted.why_not.clone().unwrap_or_default();
                *set.unpredicted.entry(why).or_default() += 1;
                continue;
            };
            let most = f64::from(profile.max_warps_per_sm);
            let forced = row.blocks_per_sm.zip(warps_per_block(row, &profile));
            let without = predicted.without.iter();
            set.points.push(Point {
                gpu: row.gpu.clone(),
                kernel: kernel(row),
                predicted: ms,
                measured,
                cycles: predicted.cycles.zip(row.measured_cycles),
                occupancy: forced
                    .map(|(blocks, warps)| f64::from(blocks) * f64::from(warps) / most),
                gb_s: row.counters.get("gbs").copied(),
                without: without
                    .map(|cycles| Some((*cycles)? / predicted.cycles?))
                    .collect(),
            });
        }
        set.counters = counted
            .into_iter()
            .filter_map(|(counter, errors)| Some((counter, Errors::of(&errors)?)))
            .collect();
        set.score();
        set
    }

    /// Streams: the mean error of the bandwidth by GPU.
    pub fn bandwidths(&self) -> Vec<(String, f64)> {
        let by_gpu = groups(&self.points, |point| point.gpu.clone());
        let means = by_gpu.into_iter().filter_map(|(gpu, points)| {
            let off = points.iter().filter_map(|point| point.bandwidth_error());
            Some((gpu, score::mean(&off.collect::<Vec<_>>())?))
        });
        means.collect()
    }

    fn score(&mut self) {
        (self.rho, self.regret) = ranking(&self.points);
        self.scaled = Errors::of(&scaled(&self.points));
        let all: Vec<(f64, f64)> = self.points.iter().map(Point::times).collect();
        self.raw = Errors::of(&score::raw(&all));
        let cycles: Vec<(f64, f64)> = self
            .points
            .iter()
            .filter_map(|point| point.cycles)
            .collect();
        self.cycles = Errors::of(&score::raw(&cycles));
        self.bandwidth = bandwidth(&self.points);
        if self.points.iter().all(|point| point.without.is_empty()) {
            return;
        }
        let imagine = |at: usize| {
            let points = self.points.iter().map(|point| {
                let factor = point.without.get(at).copied().flatten().unwrap_or(1.0);
                Point {
                    predicted: point.predicted * factor,
                    ..point.clone()
                }
            });
            ablated(&points.collect::<Vec<_>>())
        };
        self.without = (0..mechanisms().count()).map(imagine).collect();
    }

    /// The scores with everything, as they are shown beside those without.
    pub fn whole(&self) -> Ablated {
        Ablated {
            rho: self.rho,
            regret: self.regret,
            scaled: self.scaled.map(|errors| errors.median),
            bandwidth: self.bandwidth,
        }
    }
}

fn ablated(points: &[Point]) -> Ablated {
    let (rho, regret) = ranking(points);
    Ablated {
        rho,
        regret,
        scaled: Errors::of(&scaled(points)).map(|errors| errors.median),
        bandwidth: bandwidth(points),
    }
}

/// The mean error of the bandwidth, where that was measured.
fn bandwidth(points: &[Point]) -> Option<f64> {
    let off = points.iter().filter_map(Point::bandwidth_error);
    score::mean(&off.collect::<Vec<_>>())
}

/// What a table asks for, by its rows.
fn kind(rows: &[&Row]) -> Kind {
    if rows.iter().any(|row| row.counters.contains_key("gbs")) {
        return Kind::Streams;
    }
    let kernels: BTreeSet<String> = rows.iter().map(|row| kernel(row)).collect();
    if kernels.len() > 1 {
        Kind::Ladder
    } else {
        Kind::Space
    }
}

fn kernel(row: &Row) -> String {
    if row.types.is_empty() {
        row.kernel.clone()
    } else {
        format!("{}<{}>", row.kernel, row.types.join(", "))
    }
}

/// Groups of points by what `of` says.
fn groups<'p, K: Ord>(
    points: &'p [Point],
    of: impl Fn(&'p Point) -> K,
) -> BTreeMap<K, Vec<&'p Point>> {
    let mut groups: BTreeMap<K, Vec<&Point>> = BTreeMap::new();
    for point in points {
        groups.entry(of(point)).or_default().push(point);
    }
    groups
}

/// Rho and regret, GPU by GPU, and their means.
fn ranking(points: &[Point]) -> (Option<f64>, Option<f64>) {
    let (mut rhos, mut regrets) = (Vec::new(), Vec::new());
    for group in groups(points, |point| &point.gpu).values() {
        let (predicted, measured): (Vec<f64>, Vec<f64>) =
            group.iter().map(|point| point.times()).unzip();
        rhos.extend(score::spearman(&predicted, &measured));
        regrets.extend(score::regret(&predicted, &measured));
    }
    (score::mean(&rhos), score::geometric_mean(&regrets))
}

/// Errors after one scale for each kernel and GPU; where no kernel has two rows on a GPU, for the GPU.
fn scaled(points: &[Point]) -> Vec<f64> {
    let by_kernel = groups(points, |point| (point.gpu.as_str(), point.kernel.as_str()));
    let single = by_kernel.values().all(|group| group.len() < 2);
    let groups = if single {
        groups(points, |point| (point.gpu.as_str(), ""))
    } else {
        by_kernel
    };
    let errors = groups.values().flat_map(|group| {
        let pairs: Vec<(f64, f64)> = group.iter().map(|point| point.times()).collect();
        score::scaled(&pairs)
    });
    errors.collect()
}

/// The scores of all tables together.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The mean of the rhos of spaces and ladders.
    pub rho: Option<f64>,
    /// The geometric mean of their regrets.
    pub regret: Option<f64>,
    /// The median over them of their scaled median errors.
    pub scaled: Option<f64>,
}

impl Summary {
    /// Over those that rank something.
    pub fn of(sets: &[Set]) -> Summary {
        let ranked = || sets.iter().filter(|set| set.kind != Kind::Streams);
        let all = |of: &dyn Fn(&Set) -> Option<f64>| ranked().filter_map(of).collect::<Vec<f64>>();
        Summary {
            rho: score::mean(&all(&|set| set.rho)),
            regret: score::geometric_mean(&all(&|set| set.regret)),
            scaled: score::mean(&all(&|set| set.scaled.map(|errors| errors.median))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(kernel: &str, gpu: &str, predicted: f64, measured: f64) -> Point {
        Point {
            gpu: gpu.to_owned(),
            kernel: kernel.to_owned(),
            predicted,
            measured,
            cycles: None,
            occupancy: None,
            gb_s: Some(100.0),
            without: Vec::new(),
        }
    }

    fn largest(errors: &[f64]) -> f64 {
        errors.iter().copied().fold(0.0, f64::max)
    }

    #[test]
    fn each_kernel_has_its_scale_on_each_gpu() {
        let points = [
            point("f", "a", 2.0, 1.0),
            point("f", "a", 4.0, 2.0),
            point("f", "b", 9.0, 3.0),
            point("f", "b", 3.0, 1.0),
            point("g", "a", 1.0, 5.0),
        ];
        assert!(largest(&scaled(&points)) < 1e-12);
        // Kernels with a row each share the GPU's, else nothing would be left to judge.
        let ladder = [
            point("f", "a", 2.0, 1.0),
            point("g", "a", 2.0, 1.0),
            point("h", "a", 8.0, 1.0),
        ];
        assert!((largest(&scaled(&ladder)) - 4.0_f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn gpus_are_ranked_by_themselves() {
        // In order on each, but not together.
        let points = [
            point("f", "a", 1.0, 1.0),
            point("f", "a", 2.0, 2.0),
            point("f", "a", 3.0, 3.0),
            point("f", "b", 0.1, 10.0),
            point("f", "b", 0.2, 20.0),
            point("f", "b", 0.3, 30.0),
        ];
        let (rho, regret) = ranking(&points);
        assert!((rho.unwrap() - 1.0).abs() < 1e-12);
        assert!((regret.unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(ranking(&[]), (None, None));
    }

    #[test]
    fn half_the_predicted_time_is_twice_the_bandwidth() {
        let points = [point("f", "a", 1.0, 2.0), point("f", "a", 4.0, 2.0)];
        assert_eq!(points[0].predicted_gb_s(), Some(200.0));
        assert_eq!(bandwidth(&points), Some(0.75));
        assert_eq!(bandwidth(&[]), None);
    }
}
