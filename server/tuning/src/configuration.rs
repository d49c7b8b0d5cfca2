//! One configuration.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// The macros, arguments and launch of one build of a kernel.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Configuration {
    /// The user's id, repeated in the prediction.
    pub id: Value,
    /// Macros by name: numbers or texts.
    #[serde(deserialize_with = "texts")]
    pub defines: BTreeMap<String, String>,
    /// Template parameters by name.
    #[serde(deserialize_with = "texts")]
    pub template: BTreeMap<String, String>,
    /// Values of integer parameters by name.
    pub args: BTreeMap<String, i64>,
    /// Grid: one to three numbers.
    pub grid: Option<Extents>,
    /// Threads per block: one to three numbers.
    pub block: Option<Extents>,
    /// Bytes of dynamic shared memory per block.
    pub dynamic_shared_bytes: Option<u64>,
    /// Names of unroll factors of 0: their `#pragma unroll NAME` is removed from the text.
    #[serde(skip)]
    pub without_unroll: Vec<String>,
}

impl Configuration {
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

#[cfg(test)]
mod tests {
    use super::*;

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
