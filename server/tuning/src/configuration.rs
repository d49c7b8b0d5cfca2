//! One configuration.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// The macros, arguments and launch of one build of a kernel.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(from = "Line")]
pub struct Configuration {
    /// The user's id, repeated in the prediction.
    pub id: Value,
    /// Macros by name: numbers or texts.
    pub defines: BTreeMap<String, String>,
    /// Template parameters by name.
    pub template: BTreeMap<String, String>,
    /// Whole numbers for scalar parameters by name.
    pub args: BTreeMap<String, i64>,
    /// The same of numbers with a fraction.
    pub reals: BTreeMap<String, f64>,
    /// Grid: one to three numbers.
    pub grid: Option<Extents>,
    /// Threads per block: one to three numbers.
    pub block: Option<Extents>,
    /// Bytes of dynamic shared memory per block.
    pub dynamic_shared_bytes: Option<u64>,
    /// Names of unroll factors of 0: their `#pragma unroll NAME` is removed from the text.
    pub without_unroll: Vec<String>,
}

/// A configuration as a line of JSON has it.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Line {
    id: Value,
    #[serde(deserialize_with = "texts")]
    defines: BTreeMap<String, String>,
    #[serde(deserialize_with = "texts")]
    template: BTreeMap<String, String>,
    #[serde(deserialize_with = "numbers")]
    args: BTreeMap<String, Argument>,
    grid: Option<Extents>,
    block: Option<Extents>,
    dynamic_shared_bytes: Option<u64>,
}

/// The value of a scalar parameter.
#[derive(Clone, Copy)]
enum Argument {
    Whole(i64),
    Real(f64),
}

impl From<Line> for Configuration {
    fn from(line: Line) -> Configuration {
        let mut configuration = Configuration {
            id: line.id,
            defines: line.defines,
            template: line.template,
            grid: line.grid,
            block: line.block,
            dynamic_shared_bytes: line.dynamic_shared_bytes,
            ..Configuration::default()
        };
        for (name, value) in line.args {
            match value {
                Argument::Whole(whole) => {
                    configuration.args.insert(name, whole);
                }
                Argument::Real(real) => configuration.give(name, real),
            }
        }
        configuration
    }
}

/// Up to here floating point tells whole numbers apart.
const LARGEST_WHOLE: f64 = 9_007_199_254_740_992.0;

impl Configuration {
    /// Gives a scalar parameter a value: `16.0` is a whole number, whatever it is for.
    pub fn give(&mut self, name: String, value: f64) {
        if value.fract() == 0.0 && value.abs() <= LARGEST_WHOLE {
            self.args.insert(name, value as i64);
        } else {
            self.reals.insert(name, value);
        }
    }

    /// Adds the macros that Kernel Tuner defines besides the parameters, and removes, as it does, the pragmas of unroll
    /// factors of 0. Macros that are already defined stay.
    pub fn as_kernel_tuner_builds(&mut self) {
        let unrolled = self
            .defines
            .iter()
            .filter(|(name, value)| name.contains("loop_unroll_factor") && *value == "0")
            .map(|(name, _)| name.clone());
        self.without_unroll = unrolled.collect();
        let mut define = |name: String, value: String| {
            self.defines.entry(name).or_insert(value);
        };
        define("kernel_tuner".to_owned(), "1".to_owned());
        for (what, extents) in [("block", self.block), ("grid", self.grid)] {
            let Some(Extents(extents)) = extents else {
                continue;
            };
            for (axis, extent) in ["x", "y", "z"].iter().zip(extents) {
                define(format!("{what}_size_{axis}"), extent.to_string());
            }
        }
    }

    /// The kernel's text as built: each `#pragma unroll NAME` with a factor of 0 becomes an empty line.
    pub fn text(&self, text: &str) -> String {
        let names = &self.without_unroll;
        let kept = |line: &str| {
            let mut words = line.split_whitespace().filter(|word| *word != "#");
            let unroll = matches!(words.next(), Some("#pragma" | "pragma"))
                && words.next() == Some("unroll");
            !(unroll
                && words
                    .next()
                    .is_some_and(|factor| names.iter().any(|name| name == factor)))
        };
        let lines = text
            .split('\n')
            .map(|line| if kept(line) { line } else { "" });
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// One to three numbers; missing ones are 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Vec<u64>")]
pub struct Extents(pub [u64; 3]);

impl TryFrom<Vec<u64>> for Extents {
    type Error = String;

    fn try_from(given: Vec<u64>) -> Result<Extents, String> {
        if given.is_empty() || given.len() > 3 {
            return Err(format!("one to three numbers, not {}", given.len()));
        }
        let mut extents = [1; 3];
        extents[..given.len()].copy_from_slice(&given);
        Ok(Extents(extents))
    }
}

/// Numbers as they are written, texts without their quotes.
fn texts<'de, D>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    let values = BTreeMap::<String, Value>::deserialize(deserializer)?;
    let text = |(name, value): (String, Value)| match value {
        Value::String(text) => Ok((name, text)),
        Value::Number(number) => Ok((name, number.to_string())),
        Value::Bool(flag) => Ok((name, u8::from(flag).to_string())),
        other => Err(serde::de::Error::custom(format!(
            "`{name}` is neither a number nor a text: {other}"
        ))),
    };
    values.into_iter().map(text).collect()
}

/// Numbers, and flags as 0 and 1.
fn numbers<'de, D>(deserializer: D) -> Result<BTreeMap<String, Argument>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    let values = BTreeMap::<String, Value>::deserialize(deserializer)?;
    let number = |(name, value): (String, Value)| {
        let found = match &value {
            Value::Bool(flag) => Some(Argument::Whole(i64::from(*flag))),
            Value::Number(number) => (number.as_i64().map(Argument::Whole))
                .or_else(|| number.as_f64().map(Argument::Real)),
            _ => None,
        };
        let wrong = || serde::de::Error::custom(format!("`{name}` is no number: {value}"));
        Ok((name.clone(), found.ok_or_else(wrong)?))
    };
    values.into_iter().map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_numbers_with_and_without_a_fraction() {
        let line = r#"{"args": {"n": 512, "a": 1.5, "m": 16.0, "far": 1e30, "on": true}}"#;
        let read: Configuration = serde_json::from_str(line).expect("a configuration");
        let whole =
            [("m", 16), ("n", 512), ("on", 1)].map(|(name, value)| (name.to_owned(), value));
        assert_eq!(read.args, BTreeMap::from(whole));
        let reals = [("a", 1.5), ("far", 1e30)].map(|(name, value)| (name.to_owned(), value));
        assert_eq!(read.reals, BTreeMap::from(reals));
        let text = serde_json::from_str::<Configuration>(r#"{"args": {"n": "many"}}"#);
        assert!(text.is_err());
        let unknown = serde_json::from_str::<Configuration>(r#"{"argz": {}}"#);
        assert!(unknown.is_err());
    }

    #[test]
    fn pragmas_by_a_factor_of_none_are_taken_out() {
        let configuration = Configuration {
            without_unroll: vec!["factor_x".to_owned()],
            ..Configuration::default()
        };
        let text = "#pragma unroll factor_x\nfor\n  # pragma unroll factor_x\n#pragma unroll factor_y\n#pragma unroll\n";
        let built = "\nfor\n\n#pragma unroll factor_y\n#pragma unroll\n";
        assert_eq!(configuration.text(text), built);
        assert_eq!(Configuration::default().text(text), text);
    }
}
