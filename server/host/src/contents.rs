//! What memory holds in a run: filled, copied, and found by launches.

use std::rc::Rc;
use std::sync::Arc;

use super::containers::whole;
use super::data::{Data, DataRef, LARGEST};
use super::kinds::Number;
use super::numbers::listed;
use super::state::Host;
use super::value::{Place, Step, Value};
use warplens_ir::Type;

/// The class of what `cuTensorMapEncodeTiled` makes.
pub(super) const TENSOR_MAP: &str = "CUtensorMap";
/// Bytes of contents that the launches of one run keep.
pub(super) const MOST: usize = 64 << 20;
/// Bytes of arrays that one run makes, copies and changes.
pub(super) const MOST_MADE: u64 = 256 << 20;

/// That many equal numbers; `None` where an element is no number.
pub(super) fn filled(count: usize, element: &Type, filling: &Value) -> Option<Value> {
    let kind = Number::of(element)?;
    let bytes = count.checked_mul(kind.size())?;
    if bytes as u64 > LARGEST {
        return None;
    }
    let one = listed(std::slice::from_ref(filling), element)?;
    let element = Some(element.clone());
    let data = match one.bytes_from(0).as_deref() {
        None => Data::unknown(element, bytes),
        Some([first, others @ ..]) if others.iter().all(|byte| byte == first) => {
            Data::filled(element, bytes, Some(*first))
        }
        Some(one) => Data::known(element, one.repeat(count)),
    };
    Some(Value::Data(DataRef::new(data)))
}

impl Host<'_> {
    /// Another array of that many bytes is made; false where there have been too many.
    pub(super) fn makes(&mut self, bytes: u64) -> bool {
        let Some(running) = &mut self.running else {
            return false;
        };
        let left = running.bytes_left.checked_sub(bytes);
        running.bytes_left = left.unwrap_or(0);
        left.is_some()
    }

    /// Where a pointer leads in the memory of a variable, in bytes from its beginning.
    fn offset_in(&self, place: &Place) -> Option<usize> {
        let slot = self.slots.get(place.slot)?;
        match place.path.as_slice() {
            [] | [Step::Index(Some(0))] => Some(0),
            [Step::Index(Some(at))] => {
                let element = match (&slot.value, &slot.ty) {
                    (Value::Data(data), _) if data.0.element.is_some() => {
                        data.0.element.as_ref()?.size()
                    }
                    (_, Type::Array(element, _)) => element.size(),
                    _ => slot.unit.filter(|bytes| *bytes > 0)?,
                };
                at.checked_mul(usize::try_from(element).ok()?)
            }
            _ => None,
        }
    }

    /// The bytes from where a pointer leads to the end of that memory.
    pub(super) fn bytes_from(&self, pointer: &Value) -> Option<u64> {
        let all = self.bytes_behind(pointer)?;
        match pointer {
            Value::Address(place) => all.checked_sub(self.offset_in(place)? as u64),
            _ => None,
        }
    }

    /// A pointer of that type leads into a variable's memory; false where its elements are others than those that are known there.
    pub(super) fn has_elements(&mut self, slot: usize, pointer: &Type) -> bool {
        let Some(Value::Data(data)) = self.slots.get(slot).map(|slot| &slot.value) else {
            return true;
        };
        let Type::Pointer(element, _) = pointer else {
            return data.0.element.is_some();
        };
        match &data.0.element {
            Some(known) => known.size() == element.size(),
            None if element.size() == 0 => false,
            None => {
                let bytes = data.0.len() as u64;
                if !self.makes(bytes) {
                    return false;
                }
                let Value::Data(data) = &self.slots[slot].value else {
                    return false;
                };
                let mut typed = (*data.0).clone();
                typed.element = Some((**element).clone());
                self.write(&whole(slot), Value::Data(DataRef::new(typed)));
                true
            }
        }
    }

    /// What a variable's memory holds.
    pub(super) fn data_of(&self, slot: usize) -> Option<DataRef> {
        let known = self.slots.get(slot)?;
        match (&known.value, &known.ty) {
            (Value::Data(data), _) => Some(data.clone()),
            (Value::Array(values), Type::Array(element, _)) => {
                listed(values, element).map(DataRef::new)
            }
            (value @ (Value::Int(..) | Value::Float(..)), ty) => {
                listed(std::slice::from_ref(value), ty).map(DataRef::new)
            }
            _ => None,
        }
    }

    /// `memcpy`, `cudaMemcpy`: from one pointer's memory to another's.
    pub(super) fn copied_bytes(&mut self, to: &Value, from: &Value, bytes: &Value) {
        let Value::Address(to) = to else {
            self.written_somewhere();
            return;
        };
        if let Some(map) = self.tensor_map_behind(from) {
            self.write(&whole(to.slot), map);
            return;
        }
        let held = self.bytes_behind(&Value::Address(whole(to.slot)));
        let made = self.makes(held.unwrap_or(0));
        let copied = if made {
            self.copied(to, from, bytes)
        } else {
            None
        };
        match copied {
            Some(value) => self.write(&whole(to.slot), value),
            None => self.forget(to.slot),
        }
    }

    /// The tensor map that a pointer leads to.
    pub(super) fn tensor_map_behind(&self, pointer: &Value) -> Option<Value> {
        let Value::Address(place) = pointer else {
            return None;
        };
        let value = self.read(&whole(place.slot));
        let is_map = matches!(&value, Value::Record(record) if record.class == TENSOR_MAP);
        (is_map && place.path.is_empty()).then_some(value)
    }

    fn copied(&self, to: &Place, from: &Value, bytes: &Value) -> Option<Value> {
        let Value::Address(from) = from else {
            return None;
        };
        let source = self.data_of(from.slot)?;
        let bytes = usize::try_from(bytes.as_int()?).ok()?;
        let start = self.offset_in(from)?;
        let slot = self.slots.get(to.slot)?;
        if let Some(kind) = Number::of(&slot.ty)
            && to.path.is_empty()
        {
            let (bits, known) = source.0.load(start, kind)?;
            return (known && bytes == kind.size()).then(|| super::numbers::value_of(bits, kind));
        }
        let at = self.offset_in(to)?;
        let held = self.bytes_behind(&Value::Address(whole(to.slot)));
        if at == 0 && start == 0 && source.0.len() == bytes && held == Some(bytes as u64) {
            return Some(Value::Data(source));
        }
        let mut target = self.target(to.slot, held)?;
        target
            .copy(at, &source.0, start, bytes)
            .then(|| Value::Data(DataRef::new(target.settled())))
    }

    /// What a variable's memory holds, to be changed; unknown bytes where nothing is known of it.
    fn target(&self, slot: usize, held: Option<u64>) -> Option<Data> {
        if let Some(data) = self.data_of(slot) {
            return Some(Rc::unwrap_or_clone(data.0));
        }
        if self.slots.get(slot)?.value != Value::Unknown {
            return None;
        }
        let bytes = held.filter(|bytes| *bytes <= LARGEST)?;
        Some(Data::unknown(None, usize::try_from(bytes).ok()?))
    }

    /// `memset` and its like.
    pub(super) fn filled_bytes(&mut self, to: &Value, value: &Value, bytes: &Value) {
        let Value::Address(to) = to else {
            self.written_somewhere();
            return;
        };
        let held = self.bytes_behind(&Value::Address(whole(to.slot)));
        let made = self.makes(held.unwrap_or(0));
        let filled = (|| {
            if !made {
                return None;
            }
            let slot = self.slots.get(to.slot)?;
            let value = value.as_int()? as u8;
            let count = usize::try_from(bytes.as_int()?).ok()?;
            if let Some(kind) = Number::of(&slot.ty)
                && to.path.is_empty()
            {
                return (value == 0 && count == kind.size())
                    .then(|| super::numbers::value_of(0, kind));
            }
            let at = self.offset_in(to)?;
            let held = self.bytes_behind(&Value::Address(whole(to.slot)));
            if at == 0 && held == Some(count as u64) && count as u64 <= LARGEST {
                let element = match &slot.value {
                    Value::Data(data) => data.0.element.clone(),
                    _ => None,
                };
                let data = Data::filled(element, count, Some(value));
                return Some(Value::Data(DataRef::new(data)));
            }
            let mut target = self.target(to.slot, held)?;
            target
                .fill(at, count, Some(value))
                .then(|| Value::Data(DataRef::new(target)))
        })();
        match filled {
            Some(value) => self.write(&whole(to.slot), value),
            None => self.forget(to.slot),
        }
    }

    /// `clEnqueueWriteBuffer` and its like: a buffer is written from the host's memory.
    pub(super) fn written_buffer(
        &mut self,
        buffer: &Value,
        offset: &Value,
        from: &Value,
        bytes: &Value,
    ) {
        if offset.as_int() == Some(0) {
            self.copied_bytes(buffer, from, bytes);
        } else if let Value::Address(buffer) = buffer {
            self.forget(buffer.slot);
        }
    }

    /// `clEnqueueFillBuffer`: the numbers that `pattern` leads to, again and again.
    pub(super) fn filled_with(
        &mut self,
        buffer: &Value,
        pattern: &Value,
        offset: &Value,
        bytes: &Value,
    ) {
        let Value::Address(to) = buffer else {
            return;
        };
        let pattern = match pattern {
            Value::Address(place) => self
                .data_of(place.slot)
                .and_then(|data| data.0.bytes_from(self.offset_in(place)?)),
            _ => None,
        };
        let count = bytes.as_int().and_then(|count| usize::try_from(count).ok());
        match (pattern.as_deref(), count, offset.as_int()) {
            (Some([byte, others @ ..]), _, Some(0)) if others.iter().all(|one| one == byte) => {
                self.filled_bytes(buffer, &Value::int(i64::from(*byte)), bytes);
            }
            (Some(pattern), Some(count), Some(0))
                if count as u64 <= LARGEST
                    && self.bytes_behind(buffer) == Some(count as u64)
                    && self.makes(count as u64) =>
            {
                let all = pattern.repeat(count.div_ceil(pattern.len().max(1)));
                if all.len() == count {
                    let data = Value::Data(DataRef::new(Data::known(None, all)));
                    self.write(&whole(to.slot), data);
                } else {
                    self.forget(to.slot);
                }
            }
            _ => self.forget(to.slot),
        }
    }

    /// What the memory holds that a launch's arguments point to, where all of it is known.
    pub(super) fn contents_of(&mut self, arguments: &[Value]) -> Vec<Option<Arc<[u8]>>> {
        if self.running.is_none() || self.beside > 0 {
            return Vec::new();
        }
        arguments
            .iter()
            .map(|argument| {
                let Value::Address(place) = argument else {
                    return None;
                };
                // What a kernel writes by one pointer it would read by the other.
                let meets = |other: &Value| match other {
                    Value::Address(other) => other.slot == place.slot && other != place,
                    _ => false,
                };
                if arguments.iter().any(meets) {
                    return None;
                }
                let data = self.data_of(place.slot)?;
                let from = self.offset_in(place)?;
                let rest = data.0.len().checked_sub(from)?;
                // Floating point decides few branches, and no addresses.
                let floats = (data.0.element.as_ref()).and_then(Number::of);
                if floats.is_some_and(Number::is_float) {
                    return None;
                }
                let running = self.running.as_mut()?;
                let mut known = running.contents.iter();
                if let Some((.., bytes)) = known.find(|(of, at, _)| *of == data && *at == from) {
                    return Some(Arc::clone(bytes));
                }
                let bytes = data.0.bytes_from(from)?;
                running.room = running.room.checked_sub(rest)?;
                running.contents.push((data, from, Arc::clone(&bytes)));
                Some(bytes)
            })
            .collect()
    }
}
