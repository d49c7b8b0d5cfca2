//! Where pointers may lead that are not known any more: `p = unknown ? &a : &b`, `t[unknown]`.
//!
//! What holds: what is written through a pointer that is not known leaves no variable as it was to which such a pointer may lead.

use super::state::Host;
use super::value::{BoundArgument, Place, Step, Value};

/// Values within values that are looked at.
const DEEPEST: u32 = 4;

impl Host<'_> {
    /// A value takes the place of another one: where a pointer of that led is not known any more, unless it still leads there.
    pub(super) fn loses(&mut self, before: &Value, after: &Value) {
        let mut led = Vec::new();
        leads(before, 0, &mut led);
        if led.is_empty() {
            return;
        }
        let mut still = Vec::new();
        leads(after, 0, &mut still);
        led.retain(|slot| !still.contains(slot));
        self.pointees.extend(led);
    }

    /// The element at an index that is not known is read.
    pub(super) fn loses_element(&mut self, element: &Place) {
        if let [before @ .., Step::Index(None)] = element.path.as_slice() {
            let all = self.read(&Place {
                slot: element.slot,
                path: before.to_vec(),
            });
            self.loses(&all, &Value::Unknown);
        }
    }

    /// Something is written through a pointer that is not known.
    pub(super) fn written_somewhere(&mut self) {
        let mut slots: Vec<usize> = self.pointees.iter().copied().collect();
        slots.sort_unstable();
        for slot in slots {
            if self.slots[slot].value != Value::Unknown {
                self.forget(slot);
            }
        }
    }
}

/// The variables that the pointers in a value lead to.
fn leads(value: &Value, depth: u32, found: &mut Vec<usize>) {
    match value {
        Value::Address(place) | Value::Reference(place) => found.push(place.slot),
        Value::Bound(bound) => {
            for one in &bound.arguments {
                if let BoundArgument::At(place) = one {
                    found.push(place.slot);
                }
            }
        }
        Value::Array(values) if depth < DEEPEST => {
            for value in values.iter() {
                leads(value, depth + 1, found);
            }
        }
        Value::Record(record) if depth < DEEPEST => {
            for (_, value) in &record.fields {
                leads(value, depth + 1, found);
            }
        }
        _ => {}
    }
}
