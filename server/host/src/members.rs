//! What a launch's arguments hold that are structures passed by value.

use super::Member;
use super::value::Value;

/// Integers of one argument that are told apart, as the kernel's side follows members of its parameters.
const MOST_MEMBERS: usize = 256;

/// The integers in an argument that is a structure.
pub(super) fn members((argument, value): (usize, &Value)) -> Vec<Member> {
    let mut found = Vec::new();
    if matches!(value, Value::Record(_) | Value::Dims(_)) {
        add_members(argument, value, "", &mut found);
    }
    found
}

fn add_members(argument: usize, value: &Value, path: &str, found: &mut Vec<Member>) {
    if found.len() >= MOST_MEMBERS {
        return;
    }
    let join = |name: &str| {
        if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}.{name}")
        }
    };
    match value {
        Value::Record(record) => {
            for (name, field) in &record.fields {
                add_members(argument, field, &join(name), found);
            }
        }
        Value::Array(elements) => {
            for (at, element) in elements.iter().enumerate() {
                add_members(argument, element, &format!("{path}[{at}]"), found);
            }
        }
        Value::Dims(extents) => {
            for (name, extent) in ["x", "y", "z"].into_iter().zip(extents) {
                add_members(argument, &extent.value(32), &join(name), found);
            }
        }
        value => found.extend(value.integer().map(|value| Member {
            argument,
            path: path.to_owned(),
            value,
        })),
    }
}
