//! Configurations as lines of JSON.

use std::io::BufRead;

use serde_json::Value;

use crate::Configuration;

/// Reads configurations, one a line: `{"id":…, "defines":{…}, "args":{…}, "grid":[…], "block":[…], "dynamic_shared_bytes":0}`,
/// every key of which may be missing. A line without an id is called by its number, from 1; empty lines are skipped. A line that
/// cannot be read is an error of its own, and the next ones follow.
pub fn lines(input: impl BufRead) -> impl Iterator<Item = Result<Configuration, String>> {
    let numbered = input.lines().zip(1_u64..);
    numbered.filter_map(|(line, number)| {
        let line = match line {
            Ok(line) => line,
            Err(error) => return Some(Err(format!("line {number}: {error}"))),
        };
        if line.trim().is_empty() {
            return None;
        }
        let read = serde_json::from_str::<Configuration>(&line);
        Some(match read {
            Ok(mut configuration) => {
                if configuration.id.is_null() {
                    configuration.id = Value::from(number);
                }
                Ok(configuration)
            }
            Err(error) => Err(format!("line {number}: {error}")),
        })
    })
}
