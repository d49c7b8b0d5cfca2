//! Where two JSON values differ.
//!
//! In: two values. Out: each place where they differ, with both values; none where they are equal. Elements of arrays are
//! matched first: equal ones, then those of the same identity, then the rest in order. So a finding that is gone is one
//! difference, however many stand behind it.

use serde_json::Value;

/// One place where two values differ.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The place without indices: `.results[].launch.grid[]`.
    pub path: String,
    /// The place with indices, those of the earlier value where it has one.
    pub place: String,
    /// None where only the later one has something there.
    pub old: Option<Value>,
    /// None where only the earlier one has something there.
    pub new: Option<Value>,
}

impl Difference {
    /// Both values as text.
    pub fn values(&self) -> (String, String) {
        let text = |value: &Option<Value>| {
            let value = value.as_ref();
            value.map_or_else(|| "nothing".to_owned(), ToString::to_string)
        };
        (text(&self.old), text(&self.new))
    }
}

/// What tells an element of an array from its neighbours.
const IDENTITY: [&str; 10] = [
    "file",
    "kernel",
    "template_args",
    "gpu",
    "rule",
    "line",
    "column",
    "name",
    "id",
    "array",
];

/// The differences between two values.
pub fn between(old: &Value, new: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    walk(Place::default(), Some(old), Some(new), &mut found);
    found
}

#[derive(Debug, Clone, Default)]
struct Place {
    path: String,
    place: String,
}

impl Place {
    fn key(&self, key: &str) -> Place {
        Place {
            path: format!("{}.{key}", self.path),
            place: format!("{}.{key}", self.place),
        }
    }

    fn index(&self, index: usize) -> Place {
        Place {
            path: format!("{}[]", self.path),
            place: format!("{}[{index}]", self.place),
        }
    }
}

fn walk(at: Place, old: Option<&Value>, new: Option<&Value>, found: &mut Vec<Difference>) {
    match (old, new) {
        (Some(old), Some(new)) if old == new => {}
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            for (key, value) in one {
                walk(at.key(key), Some(value), other.get(key), found);
            }
            for (key, value) in other {
                if !one.contains_key(key) {
                    walk(at.key(key), None, Some(value), found);
                }
            }
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) => arrays(&at, one, other, found),
        (old, new) => found.push(Difference {
            path: at.path,
            place: at.place,
            old: old.cloned(),
            new: new.cloned(),
        }),
    }
}

fn arrays(at: &Place, old: &[Value], new: &[Value], found: &mut Vec<Difference>) {
    let mut left: Vec<usize> = (0..old.len()).collect();
    let mut right: Vec<usize> = (0..new.len()).collect();
    let same = |one: usize, other: usize| old[one] == new[other];
    let mut moved = 0;
    for (one, other) in pairs(&mut left, &mut right, same) {
        moved += usize::from(one != other);
    }
    // Nothing but the order differs.
    if left.is_empty() && right.is_empty() && moved > 0 {
        found.push(Difference {
            path: format!("{} (order)", at.path),
            place: format!("{} (order)", at.place),
            old: Some(Value::Array(old.to_vec())),
            new: Some(Value::Array(new.to_vec())),
        });
        return;
    }
    let known = |one: usize, other: usize| {
        let one = identity(&old[one]);
        one.is_some() && one == identity(&new[other])
    };
    let mut matched = pairs(&mut left, &mut right, known);
    // Of what is in the same place of a list of the same length it is the value that differs.
    if left.len() == right.len() {
        matched.extend(left.drain(..).zip(right.drain(..)));
    }
    for (one, other) in matched {
        walk(at.index(one), Some(&old[one]), Some(&new[other]), found);
    }
    for one in left {
        walk(at.index(one), Some(&old[one]), None, found);
    }
    for other in right {
        walk(at.index(other), None, Some(&new[other]), found);
    }
}

/// Takes out of both lists what belongs together, in order.
fn pairs(
    left: &mut Vec<usize>,
    right: &mut Vec<usize>,
    together: impl Fn(usize, usize) -> bool,
) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    left.retain(|&one| {
        // What is in the same place is looked at first.
        let same = right.binary_search(&one).ok();
        let mate = same
            .filter(|&at| together(one, right[at]))
            .or_else(|| right.iter().position(|&other| together(one, other)));
        match mate {
            Some(at) => {
                pairs.push((one, right.remove(at)));
                false
            }
            None => true,
        }
    });
    pairs
}

/// What an element is called; none where it is not an object or has no name.
fn identity(value: &Value) -> Option<Vec<(&'static str, &Value)>> {
    let object = value.as_object()?;
    let names: Vec<(&str, &Value)> = IDENTITY
        .iter()
        .filter_map(|&key| Some((key, object.get(key)?)))
        .collect();
    (!names.is_empty()).then_some(names)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(old: &Value, new: &Value) -> Vec<String> {
        let found = between(old, new);
        let lines = found.iter().map(|difference| {
            let (old, new) = difference.values();
            format!("{} {}: {old} {new}", difference.path, difference.place)
        });
        lines.collect()
    }

    #[test]
    fn equal_values_have_no_difference() {
        let value = json!({"a": [1, {"b": null}], "c": "d"});
        assert!(between(&value, &value).is_empty());
    }

    #[test]
    fn a_value_is_named_with_and_without_indices() {
        let old = json!({"results": [{"kernel": "k", "time_ms": 1.5}]});
        let new = json!({"results": [{"kernel": "k", "time_ms": 1.6}]});
        assert_eq!(
            told(&old, &new),
            [".results[].time_ms .results[0].time_ms: 1.5 1.6"]
        );
        assert_eq!(
            told(&json!({"a": 1}), &json!({"b": 1})),
            [".a .a: 1 nothing", ".b .b: nothing 1"]
        );
        // A number is not its text, and an integer is not what it would be as a float.
        assert_eq!(told(&json!(1), &json!("1")).len(), 1);
        assert_eq!(told(&json!(1), &json!(1.0)).len(), 1);
    }

    #[test]
    fn an_element_that_is_gone_is_one_difference() {
        let finding = |line: u32| json!({"rule": "mem/gather", "line": line});
        let old = json!([finding(1), finding(2), finding(3)]);
        let new = json!([finding(1), finding(3)]);
        let found = between(&old, &new);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].place, "[1]");
        assert!(found[0].new.is_none());
    }

    #[test]
    fn another_order_is_a_difference() {
        let found = told(&json!(["a", "b"]), &json!(["b", "a"]));
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with(" (order)"), "{found:?}");
    }

    #[test]
    fn elements_of_one_name_are_compared_with_each_other() {
        let kernel = |name: &str, time: f64| json!({"kernel": name, "time_ms": time});
        let old = json!([kernel("a", 1.0), kernel("b", 2.0)]);
        let new = json!([kernel("c", 4.0), kernel("a", 1.0), kernel("b", 3.0)]);
        assert_eq!(
            told(&old, &new),
            [
                "[].time_ms [1].time_ms: 2.0 3.0",
                "[] [0]: nothing {\"kernel\":\"c\",\"time_ms\":4.0}"
            ]
        );
    }
}
