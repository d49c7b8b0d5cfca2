//! What a launch's arguments hold that are structures passed by value.

use super::value::Value;
use super::{Member, Real};

/// Numbers of one argument that are told apart, as the kernel's side follows members of its parameters.
const MOST_MEMBERS: usize = 256;

/// The integers in an argument that is a structure.
pub(super) fn members((argument, value): (usize, &Value)) -> Vec<Member> {
    let mut found = Vec::new();
    if matches!(value, Value::Record(_) | Value::Dims(_)) {
        each_number(value, "", &mut |path, number| {
            found.extend(number.integer().map(|value| Member {
                argument,
                path: path.to_owned(),
                value,
            }));
            found.len() < MOST_MEMBERS
        });
    }
    found
}

/// The numbers of floating point that an argument is or has.
pub(super) fn reals((argument, value): (usize, &Value)) -> Vec<Real> {
    let mut found = Vec::new();
    each_number(value, "", &mut |path, number| {
        if let Value::Float(value, _) = number {
            found.push(Real {
                argument,
                path: path.to_owned(),
                bits: value.to_bits(),
            });
        }
        found.len() < MOST_MEMBERS
    });
    found
}

/// Calls `found` with each number in a value and where it is, until it returns false.
fn each_number(value: &Value, path: &str, found: &mut dyn FnMut(&str, &Value) -> bool) -> bool {
    let join = |name: &str| {
        if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}.{name}")
        }
    };
    match value {
        Value::Record(record) => record
            .fields
            .iter()
            .all(|(name, field)| each_number(field, &join(name), found)),
        Value::Array(elements) => elements
            .iter()
            .enumerate()
            .all(|(at, element)| each_number(element, &format!("{path}[{at}]"), found)),
        Value::Dims(extents) => ["x", "y", "z"]
            .into_iter()
            .zip(extents)
            .all(|(name, extent)| found(&join(name), &extent.value(32))),
        value => found(path, value),
    }
}
