//! The facts of one kernel beside what ncu counted of its instructions, by line, memory and operation.
//!
//! A line may hold several accesses and an access may be several instructions (a loop that is unrolled), so both
//! are summed: sectors (device memory) or wavefronts (shared memory) over requests.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::measure::sass::{Space, memory};

/// Further apart than this fraction, two sums of whole numbers are not the same figure.
const SAME: f64 = 1e-4;

/// Accesses that are one row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub line: u64,
    pub space: Space,
    pub op: String,
}

/// How the two sides of a row stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// An exact fact, and not what was counted.
    Differs,
    /// An exact fact, and what was counted.
    Equal,
    /// The fact is not called exact.
    Open,
    /// The compiler's accesses are of another width than the source's: no request of the fact was executed.
    Joined,
    /// No instruction of the line does this: the compiler needs none, or has it at another line.
    NotMeasured,
    /// Instructions of a line without such an access.
    NotPredicted,
}

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub key: Key,
    /// The accesses as they are written.
    pub text: String,
    /// Of the least sure of its accesses.
    pub certainty: String,
    /// Sectors or wavefronts per request.
    pub predicted: Option<f64>,
    pub measured: Option<f64>,
    /// Requests of all warps.
    pub requests: [Option<f64>; 2],
    pub verdict: Verdict,
}

impl Row {
    /// Measured less predicted, a request.
    pub fn difference(&self) -> Option<f64> {
        Some(self.measured? - self.predicted?)
    }
}

/// Sums of one row on one side.
#[derive(Debug, Clone, Default)]
struct Sum {
    requests: f64,
    cost: f64,
    /// Widths of its accesses, in bytes per lane.
    widths: BTreeSet<u64>,
    /// An instruction has a predicate: of the warps that execute it, some have no lane that does.
    predicated: bool,
}

impl Sum {
    fn a_request(&self) -> Option<f64> {
        (self.requests > 0.0).then(|| self.cost / self.requests)
    }
}

/// The facts of one row.
#[derive(Debug, Clone, Default)]
struct Fact {
    sum: Sum,
    texts: Vec<String>,
    certainty: String,
    /// Each access has both figures.
    whole: bool,
    /// The lines of the calls that lead there.
    via: Vec<Vec<u64>>,
}

/// The rows of a kernel: `result` of `warplens.estimate/1`, and the instructions of its entry in the measured file.
pub fn rows(result: &Value, instructions: &[Value]) -> Vec<Row> {
    let facts = facts(result);
    let counted = counted(instructions, &facts);
    let keys: BTreeSet<&Key> = facts.keys().chain(counted.keys()).collect();
    keys.into_iter()
        .map(|key| row(key, facts.get(key), counted.get(key)))
        .collect()
}

fn row(key: &Key, fact: Option<&Fact>, counted: Option<&Sum>) -> Row {
    let predicted = fact
        .filter(|fact| fact.whole)
        .and_then(|fact| fact.sum.a_request());
    // ncu counts a warp's instruction whose lanes are all off, which is no request: what the lanes that are on cost is then
    // held over the requests of the fact.
    let measured = counted.and_then(|counted| match fact {
        Some(fact) if counted.predicated && counted.requests > fact.sum.requests => {
            (fact.sum.requests > 0.0).then(|| counted.cost / fact.sum.requests)
        }
        _ => counted.a_request(),
    });
    let verdict = match (fact, counted) {
        (None, _) => Verdict::NotPredicted,
        (Some(_), None) => Verdict::NotMeasured,
        (Some(fact), Some(_)) if fact.certainty != "exact" => Verdict::Open,
        (Some(fact), Some(counted)) if !counted.widths.is_subset(&fact.sum.widths) => {
            Verdict::Joined
        }
        _ => match (predicted, measured) {
            (Some(a), Some(b)) if (a - b).abs() <= SAME * a.max(b) => Verdict::Equal,
            (None, _) => Verdict::Open,
            _ => Verdict::Differs,
        },
    };
    Row {
        key: key.clone(),
        text: fact.map(|fact| fact.texts.join(", ")).unwrap_or_default(),
        certainty: fact.map(|fact| fact.certainty.clone()).unwrap_or_default(),
        predicted,
        measured,
        requests: [
            fact.filter(|fact| fact.whole).map(|fact| fact.sum.requests),
            counted.map(|sum| sum.requests),
        ],
        verdict,
    }
}

fn facts(result: &Value) -> BTreeMap<Key, Fact> {
    let mut facts: BTreeMap<Key, Fact> = BTreeMap::new();
    for access in result["accesses"].as_array().into_iter().flatten() {
        let text = |name: &str| access[name].as_str().unwrap_or_default().to_owned();
        let (space, cost) = match access["space"].as_str() {
            Some("global" | "texture") => (Space::Global, "transactions_per_request"),
            Some("shared") => (Space::Shared, "passes_per_request"),
            // ncu counts nothing of constant memory by line, and a thread's own arrays may lie in registers.
            _ => continue,
        };
        let key = Key {
            line: access["line"].as_u64().unwrap_or(0),
            space,
            op: text("op"),
        };
        let fact = facts.entry(key).or_insert_with(|| Fact {
            certainty: "exact".to_owned(),
            whole: true,
            ..Fact::default()
        });
        match (access["requests"].as_f64(), access[cost].as_f64()) {
            (Some(requests), Some(cost)) => {
                fact.sum.requests += requests;
                fact.sum.cost += requests * cost;
            }
            // What no warp executes has no cost.
            (Some(0.0), None) => {}
            _ => fact.whole = false,
        }
        fact.sum.widths.extend(access["bytes_per_lane"].as_u64());
        let certainty = text("certainty");
        if certainty == "unknown" || fact.certainty == "exact" {
            fact.certainty = certainty;
        }
        let written = text("text");
        if !fact.texts.contains(&written) {
            fact.texts.push(written);
        }
        let calls = access["via"].as_array().into_iter().flatten();
        fact.via
            .push(calls.filter_map(|call| call["line"].as_u64()).collect());
    }
    facts
}

fn counted(instructions: &[Value], facts: &BTreeMap<Key, Fact>) -> BTreeMap<Key, Sum> {
    let mut sums: BTreeMap<Key, Sum> = BTreeMap::new();
    for instruction in instructions {
        let sass = instruction["sass"].as_str().unwrap_or_default();
        let number = |heading: &str| instruction[heading].as_f64().unwrap_or(0.0);
        let lines: Vec<u64> = instruction["lines"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_u64)
            .collect();
        for (space, op, width) in memory(sass) {
            let Some(line) = line_of(&lines, space, op, facts) else {
                continue;
            };
            let key = Key {
                line,
                space,
                op: op.to_owned(),
            };
            let sum = sums.entry(key).or_default();
            sum.requests += number("Instructions Executed");
            sum.cost += number(space.heading());
            sum.widths.insert(width);
            sum.predicated |= sass.starts_with('@');
        }
    }
    sums
}

/// Of the lines that an instruction belongs to, that of the access: where a call was put in place, the one in the
/// function rather than the one of the call.
fn line_of(lines: &[u64], space: Space, op: &str, facts: &BTreeMap<Key, Fact>) -> Option<u64> {
    let depth = |line: u64| {
        let key = Key {
            line,
            space,
            op: op.to_owned(),
        };
        let via = facts.get(&key)?.via.iter();
        let fitting = via.filter(|calls| calls.iter().all(|call| lines.contains(call)));
        Some(fitting.map(Vec::len).max().unwrap_or(0))
    };
    let fitting = lines.iter().filter_map(|&line| Some((depth(line)?, line)));
    let at_line = fitting.max_by_key(|(depth, _)| *depth);
    // Assembly has the line of the call that leads to its function, and none of its own.
    let called = |(key, fact): (&Key, &Fact)| {
        let calls = fact.via.iter();
        let known = |calls: &Vec<u64>| calls.iter().filter(|call| lines.contains(call)).count();
        let most = calls.map(known).max().unwrap_or(0);
        (key.space == space && key.op == op && most > 0).then_some((most, key.line))
    };
    let by_call = || {
        facts
            .iter()
            .filter_map(called)
            .max_by_key(|(most, _)| *most)
    };
    at_line
        .or_else(by_call)
        .map(|(_, line)| line)
        .or_else(|| lines.first().copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn access(line: u64, via: &[u64], certainty: &str, cost: f64) -> Value {
        let via: Vec<Value> = via.iter().map(|line| json!({"line": line})).collect();
        json!({"line": line, "via": via, "text": "a[i]", "space": "global", "op": "load", "bytes_per_lane": 4,
               "requests": 64.0, "transactions_per_request": cost, "certainty": certainty})
    }

    fn executed(sass: &str, lines: &[u64], requests: f64, cost: f64) -> Value {
        let heading = if sass.contains("DS") {
            Space::Shared
        } else {
            Space::Global
        }
        .heading();
        json!({"sass": sass, "lines": lines, "Instructions Executed": requests, heading: cost})
    }

    fn verdicts(accesses: &[Value], instructions: &[Value]) -> Vec<(u64, Verdict)> {
        let rows = rows(&json!({"accesses": accesses}), instructions);
        rows.into_iter()
            .map(|row| (row.key.line, row.verdict))
            .collect()
    }

    #[test]
    fn sums_of_a_line_are_compared() {
        // A loop that was unrolled: the same figure from more instructions.
        let twice = [
            executed("LDG.E R1, [R2]", &[3], 32.0, 128.0),
            executed("LDG.E R1, [R2]", &[3], 32.0, 128.0),
        ];
        assert_eq!(
            verdicts(&[access(3, &[], "exact", 4.0)], &twice),
            [(3, Verdict::Equal)]
        );
        assert_eq!(
            verdicts(&[access(3, &[], "exact", 5.0)], &twice),
            [(3, Verdict::Differs)]
        );
        assert_eq!(
            verdicts(&[access(3, &[], "assumed", 5.0)], &twice),
            [(3, Verdict::Open)]
        );
        assert_eq!(
            verdicts(&[access(3, &[], "exact", 4.0)], &[]),
            [(3, Verdict::NotMeasured)]
        );
        assert_eq!(verdicts(&[], &twice), [(3, Verdict::NotPredicted)]);
        let wide = [executed("LDG.E.128 R1, [R2]", &[3], 16.0, 256.0)];
        assert_eq!(
            verdicts(&[access(3, &[], "exact", 4.0)], &wide),
            [(3, Verdict::Joined)]
        );
        // Half of the warps execute it with no lane on.
        let off = [executed("@P0 LDG.E R1, [R2]", &[3], 128.0, 256.0)];
        assert_eq!(
            verdicts(&[access(3, &[], "exact", 4.0)], &off),
            [(3, Verdict::Equal)]
        );
        assert_eq!(
            verdicts(&[access(3, &[], "exact", 2.0)], &off),
            [(3, Verdict::Differs)]
        );
        // Of two accesses the less sure speaks.
        let two = [access(3, &[], "unknown", 4.0), access(3, &[], "exact", 4.0)];
        assert_eq!(verdicts(&two, &twice), [(3, Verdict::Open)]);
        let never = json!({"line": 3, "text": "a[i]", "space": "global", "op": "load", "requests": 0.0,
                           "bytes_per_lane": 4, "certainty": "exact"});
        assert_eq!(verdicts(&[never], &[]), [(3, Verdict::NotMeasured)]);
    }

    #[test]
    fn an_access_of_a_function_stands_at_the_function_s_line() {
        let accesses = [access(3, &[9], "exact", 4.0), access(9, &[], "exact", 8.0)];
        let instructions = [
            executed("LDG.E R1, [R2]", &[9, 3], 64.0, 256.0),
            executed("LDG.E R1, [R2]", &[9], 64.0, 512.0),
        ];
        assert_eq!(
            verdicts(&accesses, &instructions),
            [(3, Verdict::Equal), (9, Verdict::Equal)]
        );
    }

    #[test]
    fn assembly_of_a_function_stands_at_the_function_s_line() {
        let accesses = [
            access(3, &[9, 7], "exact", 4.0),
            access(5, &[8], "exact", 8.0),
        ];
        let instructions = [
            executed("LDG.E R1, [R2]", &[7, 2], 64.0, 256.0),
            executed("LDG.E R1, [R2]", &[8], 64.0, 512.0),
        ];
        assert_eq!(
            verdicts(&accesses, &instructions),
            [(3, Verdict::Equal), (5, Verdict::Equal)]
        );
    }

    #[test]
    fn nothing_that_a_file_may_hold_ends_it() {
        let odd = [
            json!(null),
            json!({"sass": 3, "lines": "x"}),
            json!({"sass": "LDG.E R1, [R2]", "lines": []}),
            json!({"sass": "LDG.E R1, [R2]", "lines": [1], "Instructions Executed": "many"}),
        ];
        let rows = rows(&json!({"accesses": [{"space": "global"}, 7]}), &odd);
        assert!(
            rows.iter().all(|row| row.verdict != Verdict::Equal),
            "{rows:?}"
        );
    }
}
