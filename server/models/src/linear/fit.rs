//! Prices from measurements: least squares on relative errors, none below zero where physics says so.
//!
//! One row a measured kernel, one column a property. Rows are divided by the measured times, so that the squares
//! are those of relative errors (as in both papers). A price is not negative, that of the overlap not positive: the
//! active-set method of C. L. Lawson and R. J. Hanson, "Solving Least Squares Problems", 1974, chapter 23, with
//! columns scaled to one length and a QR factorisation by Householder reflections for each set.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde::Deserialize;
use warplens_machine::Property;

use super::PICOSECONDS;

/// The version of the JSON that [`read`] takes.
pub const SCHEMA: &str = "warplens.linear-measurements/1";

/// A column is a sum of others where less than this fraction of its length remains.
const DEPENDENT: f64 = 1e-9;

/// An error smaller than this counts as this in the geometric mean, which no zero would survive.
const SMALLEST_ERROR: f64 = 1e-12;

/// Measurements that are taken, at most.
const MOST_MEASUREMENTS: usize = 1024;

/// One kernel, run.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// What was run, for people.
    pub kernel: String,
    /// Wall time of one launch, the launch itself included.
    pub seconds: f64,
    /// Its properties ([`super::properties`]).
    pub properties: BTreeMap<Property, f64>,
}

/// Prices, and how well they tell the measurements they come from.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// Picoseconds a unit.
    pub weights: BTreeMap<Property, f64>,
    /// Properties that the measurements do not tell from others; their prices stand for sums.
    pub undetermined: Vec<Property>,
    /// Each measurement's relative error |predicted - measured| / measured, in their order.
    pub errors: Vec<f64>,
}

impl Fit {
    /// The geometric mean of the relative errors: the figure that the papers report.
    pub fn mean_error(&self) -> f64 {
        geometric_mean(&self.errors)
    }

    /// The largest relative error.
    pub fn largest_error(&self) -> f64 {
        self.errors.iter().copied().fold(0.0, f64::max)
    }

    /// The profile's table `[linear_weights]`; `source` says what was measured.
    pub fn to_toml(&self, source: &str) -> String {
        let source = source.replace(['"', '\\', '\n', '\r'], " ");
        let mut text = format!(
            "# {} measurements; relative error: geometric mean {:.4}, largest {:.4}\n[linear_weights]\n",
            self.errors.len(),
            self.mean_error(),
            self.largest_error(),
        );
        for (property, ps) in &self.weights {
            if !self.undetermined.contains(property) {
                let _ = writeln!(
                    text,
                    "{property} = {{ value = {ps:e}, source = \"{source}\" }}"
                );
            }
        }
        text
    }
}

/// The time of a kernel by its properties and prices (picoseconds a unit), in seconds.
pub fn predict(weights: &BTreeMap<Property, f64>, properties: &BTreeMap<Property, f64>) -> f64 {
    let costs = properties
        .iter()
        .map(|(property, count)| weights.get(property).copied().unwrap_or(0.0) * count);
    costs.sum::<f64>() / PICOSECONDS
}

/// The geometric mean of relative errors.
pub fn geometric_mean(errors: &[f64]) -> f64 {
    if errors.is_empty() {
        return 0.0;
    }
    let logarithms: f64 = errors
        .iter()
        .map(|error| error.max(SMALLEST_ERROR).ln())
        .sum();
    (logarithms / errors.len() as f64).exp()
}

/// The prices that tell the measured times with the least squares of relative errors.
///
/// # Errors
///
/// Says in words what is wrong with the measurements.
pub fn fit(measurements: &[Measurement]) -> Result<Fit, String> {
    if measurements.is_empty() {
        return Err("there are no measurements".to_owned());
    }
    if measurements.len() > MOST_MEASUREMENTS {
        return Err(format!(
            "there are more than {MOST_MEASUREMENTS} measurements"
        ));
    }
    for measurement in measurements {
        let kernel = &measurement.kernel;
        if !(measurement.seconds.is_finite() && measurement.seconds > 0.0) {
            return Err(format!("{kernel}: the time must be greater than 0"));
        }
        let mut counts = measurement.properties.iter();
        if let Some((property, _)) =
            counts.find(|(_, count)| !(count.is_finite() && **count >= 0.0))
        {
            return Err(format!("{kernel}: {property}: a count must be 0 or more"));
        }
    }
    let used = measurements
        .iter()
        .flat_map(|measurement| &measurement.properties);
    let properties: BTreeSet<Property> = used
        .filter(|(_, count)| **count > 0.0)
        .map(|(property, _)| *property)
        .collect();
    let properties: Vec<Property> = properties.into_iter().collect();

    let mut columns: Vec<Vec<f64>> = properties
        .iter()
        .map(|property| {
            let sign = sign(*property);
            let units = measurements.iter().map(|measurement| {
                let count = measurement.properties.get(property).copied().unwrap_or(0.0);
                sign * count / (measurement.seconds * PICOSECONDS)
            });
            units.collect()
        })
        .collect();
    let lengths: Vec<f64> = columns
        .iter()
        .map(|column| dot(column, column).sqrt())
        .collect();
    if lengths
        .iter()
        .any(|length| !(length.is_finite() && *length > 0.0))
    {
        return Err("the counts are too large or too small beside the times".to_owned());
    }
    for (column, length) in columns.iter_mut().zip(&lengths) {
        for entry in column {
            *entry /= length;
        }
    }
    let target = vec![1.0; measurements.len()];
    let scaled = non_negative_least_squares(&columns, &target);
    let undetermined = dependent(&columns)
        .into_iter()
        .map(|at| properties[at])
        .collect();
    let weights: BTreeMap<Property, f64> = properties
        .iter()
        .zip(scaled.iter().zip(&lengths))
        .map(|(&property, (weight, length))| {
            let ps = sign(property) * weight / length;
            // No zero below zero.
            (property, if ps == 0.0 { 0.0 } else { ps })
        })
        .collect();
    let errors = measurements
        .iter()
        .map(|measurement| {
            let predicted = predict(&weights, &measurement.properties);
            (predicted - measurement.seconds).abs() / measurement.seconds
        })
        .collect();
    Ok(Fit {
        weights,
        undetermined,
        errors,
    })
}

/// The sign of a property's price.
fn sign(property: Property) -> f64 {
    if property == Property::Overlap {
        -1.0
    } else {
        1.0
    }
}

/// The x ≥ 0 with the least |A x - b|; A by its columns. In at most three rounds a column.
fn non_negative_least_squares(columns: &[Vec<f64>], target: &[f64]) -> Vec<f64> {
    let mut solution = vec![0.0; columns.len()];
    let mut passive: Vec<usize> = Vec::new();
    // Columns that the present set makes up already.
    let mut barred: BTreeSet<usize> = BTreeSet::new();
    for _ in 0..3 * columns.len() + 3 {
        let residual = residual(columns, target, &solution);
        let gain = |at: usize| dot(&columns[at], &residual);
        let entering = (0..columns.len())
            .filter(|at| !passive.contains(at) && !barred.contains(at))
            .map(|at| (at, gain(at)))
            .filter(|(_, gain)| *gain > 1e-12)
            .max_by(|a, b| a.1.total_cmp(&b.1));
        let Some((entering, _)) = entering else {
            break;
        };
        passive.push(entering);
        let mut changed = false;
        while !passive.is_empty() {
            let Some(free) = least_squares(columns, &passive, target) else {
                passive.retain(|&at| at != entering);
                break;
            };
            let entered = passive.iter().position(|&at| at == entering);
            if !changed && entered.is_some_and(|at| free[at] <= 0.0) {
                // Rounding alone made it look worth while.
                passive.retain(|&at| at != entering);
                break;
            }
            changed = true;
            // As far towards the free solution as nothing goes below zero.
            let step = passive
                .iter()
                .zip(&free)
                .filter(|(_, free)| **free <= 0.0)
                .map(|(&at, &free)| solution[at] / (solution[at] - free))
                .fold(1.0, f64::min);
            for (&at, &free) in passive.iter().zip(&free) {
                solution[at] += step * (free - solution[at]);
            }
            if free.iter().all(|free| *free > 0.0) {
                break;
            }
            let largest = solution.iter().copied().fold(0.0, f64::max);
            let negative: BTreeSet<usize> = passive
                .iter()
                .zip(&free)
                .filter(|(at, free)| **free <= 0.0 && solution[**at] <= 1e-13 * largest)
                .map(|(&at, _)| at)
                .collect();
            for &at in &negative {
                solution[at] = 0.0;
            }
            passive.retain(|at| !negative.contains(at));
            if negative.is_empty() {
                break;
            }
        }
        if changed {
            barred.clear();
        } else {
            barred.insert(entering);
        }
    }
    solution
}

fn residual(columns: &[Vec<f64>], target: &[f64], solution: &[f64]) -> Vec<f64> {
    let mut residual = target.to_vec();
    for (column, weight) in columns.iter().zip(solution) {
        for (left, entry) in residual.iter_mut().zip(column) {
            *left -= weight * entry;
        }
    }
    residual
}

/// The free least-squares solution over some columns; `None` where one is a sum of the others.
fn least_squares(columns: &[Vec<f64>], of: &[usize], target: &[f64]) -> Option<Vec<f64>> {
    let mut factor = Factor::default();
    for &at in of {
        if !factor.push(&columns[at]) {
            return None;
        }
    }
    Some(factor.solve(target))
}

/// Columns that are sums of those before them, and those that they are sums of are as little told apart: both are
/// found by leaving each out.
fn dependent(columns: &[Vec<f64>]) -> Vec<usize> {
    let mut all = Factor::default();
    if columns.iter().all(|column| all.push(column)) {
        return Vec::new();
    }
    let stands_out = |at: usize| {
        let mut factor = Factor::default();
        for (other, column) in columns.iter().enumerate() {
            if other != at {
                factor.push(column);
            }
        }
        factor.push(&columns[at])
    };
    (0..columns.len()).filter(|&at| !stands_out(at)).collect()
}

/// A matrix as Householder reflections and the triangle that they leave.
#[derive(Debug, Default)]
struct Factor {
    /// Of unit length, each from its own row on.
    reflections: Vec<Vec<f64>>,
    /// Columns of the triangle.
    triangle: Vec<Vec<f64>>,
}

impl Factor {
    /// Takes in a column of about unit length; false where it is a sum of those before it.
    fn push(&mut self, column: &[f64]) -> bool {
        let mut column = column.to_vec();
        self.reflect(&mut column);
        let row = self.reflections.len();
        if row >= column.len() {
            return false;
        }
        let rest = &column[row..];
        let length = dot(rest, rest).sqrt();
        if length <= DEPENDENT {
            return false;
        }
        let mut reflection = rest.to_vec();
        let corner = if rest[0] > 0.0 { -length } else { length };
        reflection[0] -= corner;
        let norm = dot(&reflection, &reflection).sqrt();
        for entry in &mut reflection {
            *entry /= norm;
        }
        column.truncate(row);
        column.push(corner);
        self.reflections.push(reflection);
        self.triangle.push(column);
        true
    }

    fn reflect(&self, column: &mut [f64]) {
        for (row, reflection) in self.reflections.iter().enumerate() {
            let part = &mut column[row..];
            let twice = 2.0 * dot(reflection, part);
            for (entry, of) in part.iter_mut().zip(reflection) {
                *entry -= twice * of;
            }
        }
    }

    fn solve(&self, target: &[f64]) -> Vec<f64> {
        let mut right = target.to_vec();
        self.reflect(&mut right);
        let mut solution = vec![0.0; self.triangle.len()];
        for at in (0..self.triangle.len()).rev() {
            let known: f64 = (at + 1..self.triangle.len())
                .map(|later| self.triangle[later][at] * solution[later])
                .sum();
            solution[at] = (right[at] - known) / self.triangle[at][at];
        }
        solution
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: String,
    #[serde(default)]
    #[allow(dead_code, reason = "for people")]
    device: String,
    measurements: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    kernel: String,
    seconds: f64,
    properties: BTreeMap<String, f64>,
}

/// Measurements from JSON:
///
/// ```json
/// {"schema": "warplens.linear-measurements/1", "device": "what was measured",
///  "measurements": [{"kernel": "copy, n = 1048576", "seconds": 9.1e-6,
///                    "properties": {"global_load_32_stride1": 1048576, "launch": 1}}]}
/// ```
///
/// The names are those of [`Property`]; docs/models/linear.md lists them.
///
/// # Errors
///
/// Says in words what is wrong with the text.
pub fn read(json: &str) -> Result<Vec<Measurement>, String> {
    let file: File = serde_json::from_str(json).map_err(|error| error.to_string())?;
    if file.schema != SCHEMA {
        return Err(format!("schema must be {SCHEMA}, not {}", file.schema));
    }
    let measurement = |row: Row| {
        let properties = row.properties.into_iter().map(|(name, count)| {
            let property = Property::named(&name)
                .ok_or_else(|| format!("{}: {name} is not a property", row.kernel))?;
            Ok((property, count))
        });
        Ok(Measurement {
            properties: properties.collect::<Result<_, String>>()?,
            kernel: row.kernel,
            seconds: row.seconds,
        })
    };
    file.measurements.into_iter().map(measurement).collect()
}
