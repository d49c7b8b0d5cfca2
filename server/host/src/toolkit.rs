//! What the toolkits' functions do in a run: memory that they hand out, what they say of the GPU, that they succeed.

use std::rc::Rc;

use warplens_hir::Source;
use warplens_ir::Type;
use warplens_syntax::BinaryOperator as Op;

use super::arguments::Argument;
use super::contents::{TENSOR_MAP, filled};
use super::events::MemoryKind;
use super::index::plain;
use super::kinds::Number;
use super::nodes::text;
use super::state::Host;
use super::value::{MAP, MOST_ELEMENTS, Place, Record, Step, Value, binary};
use super::{MAP_ELEMENT, MAP_SIDES, MAP_SIZES, MAP_STRIDES};

impl Host<'_> {
    /// A function of the C library or of a toolkit that a run follows; `None` for another one.
    pub(super) fn toolkit_call(
        &mut self,
        name: &str,
        arguments: &[Argument],
        source: Source,
    ) -> Option<Value> {
        let value = |at: usize| {
            arguments
                .get(at)
                .map_or(Value::Unknown, |argument| argument.value.clone())
        };
        let success = Value::int(0);
        self.running.as_ref()?;
        let plain = name.trim_end_matches("_v2");
        Some(match plain {
            "malloc" => self.memory_of(&value(0), MemoryKind::Pageable),
            "calloc" => {
                let bytes = binary(Op::Multiply, &value(0), &value(1));
                let memory = self.memory_of(&bytes, MemoryKind::Pageable);
                self.filled_bytes(&memory, &Value::int(0), &bytes);
                memory
            }
            "realloc" | "aligned_alloc" | "_mm_malloc" | "_aligned_malloc" => {
                let at = usize::from(plain != "_mm_malloc" && plain != "_aligned_malloc");
                self.memory_of(&value(at), MemoryKind::Pageable)
            }
            "posix_memalign" => {
                let memory = self.memory_of(&value(2), MemoryKind::Pageable);
                self.write_at(&value(0), memory);
                success
            }
            "cudaMalloc"
            | "hipMalloc"
            | "cudaMallocManaged"
            | "hipMallocManaged"
            | "cudaMallocHost"
            | "cudaHostAlloc"
            | "hipHostMalloc"
            | "hipHostAlloc"
            | "hipMallocHost"
            | "cudaMallocAsync"
            | "hipMallocAsync"
            | "cuMemAlloc"
            | "cuMemAllocManaged"
            | "hipExtMallocWithFlags" => {
                let kind = if plain.contains("Managed") {
                    MemoryKind::Managed
                } else if plain.contains("Host") {
                    MemoryKind::Pinned
                } else {
                    MemoryKind::Device
                };
                let memory = self.memory_of(&value(1), kind);
                self.write_at(&value(0), memory);
                success
            }
            "cudaMallocPitch" | "hipMallocPitch" => {
                // Rows begin at multiples of 512 bytes.
                let width = value(2).as_int();
                let pitch = width.map_or(Value::Unknown, |width| {
                    Value::Int(width.max(0).saturating_add(511) / 512 * 512, 64, false)
                });
                self.write_at(&value(1), pitch.clone());
                let memory =
                    self.memory_of(&binary(Op::Multiply, &pitch, &value(3)), MemoryKind::Device);
                self.write_at(&value(0), memory);
                success
            }
            "clCreateBuffer" => {
                self.write_at(&value(4), success);
                let memory = self.memory_of(&value(2), MemoryKind::Device);
                let flags = arguments.get(1).and_then(|flags| flags.node);
                if flags.is_some_and(|flags| text(flags, source).contains("HOST_PTR")) {
                    self.copied_bytes(&memory, &value(3), &value(2));
                }
                memory
            }
            "clEnqueueWriteBuffer" => {
                self.written_buffer(&value(1), &value(3), &value(5), &value(4));
                success
            }
            "clEnqueueCopyBuffer" => {
                match value(3).as_int() {
                    Some(0) => self.written_buffer(&value(2), &value(4), &value(1), &value(5)),
                    _ => self.written_buffer(&value(2), &Value::Unknown, &value(1), &value(5)),
                }
                success
            }
            "clEnqueueFillBuffer" => {
                self.filled_with(&value(1), &value(2), &value(4), &value(5));
                success
            }
            "clSVMAlloc" => self.memory_of(&value(2), MemoryKind::Managed),
            "memcpy" | "memmove" | "cudaMemcpy" | "hipMemcpy" | "cudaMemcpyAsync"
            | "hipMemcpyAsync" | "cuMemcpyHtoD" | "cuMemcpyDtoH" | "cuMemcpyDtoD"
            | "hipMemcpyHtoD" | "hipMemcpyDtoH" | "hipMemcpyDtoD" | "cuMemcpyHtoDAsync"
            | "cuMemcpyDtoHAsync" => {
                self.copied_bytes(&value(0), &value(1), &value(2));
                success
            }
            "memset" | "cudaMemset" | "hipMemset" | "cudaMemsetAsync" | "hipMemsetAsync"
            | "cuMemsetD8" => {
                self.filled_bytes(&value(0), &value(1), &value(2));
                success
            }
            "cudaHostRegister" | "hipHostRegister" | "cuMemHostRegister" => {
                self.is_kept_now(&value(0), MemoryKind::Pinned);
                success
            }
            "cudaHostUnregister" | "hipHostUnregister" | "cuMemHostUnregister" => {
                self.is_kept_now(&value(0), MemoryKind::Pageable);
                success
            }
            "cudaGetDeviceCount" | "hipGetDeviceCount" => {
                self.write_at(&value(0), Value::int(1));
                success
            }
            "cudaGetDevice" | "hipGetDevice" => {
                self.write_at(&value(0), Value::int(0));
                success
            }
            "cudaGetDeviceProperties" | "hipGetDeviceProperties" => {
                let properties = self.device_properties().unwrap_or(Value::Unknown);
                self.write_at(&value(0), properties);
                success
            }
            "cudaDeviceGetAttribute" | "hipDeviceGetAttribute" | "cuDeviceGetAttribute" => {
                let named = arguments.get(1).and_then(|argument| argument.node);
                let figure = named.and_then(|node| self.device_attribute(text(node, source)));
                self.write_at(&value(0), figure.unwrap_or(Value::Unknown));
                success
            }
            // A process that no launcher started is the only one.
            "MPI_Comm_size" => {
                self.write_at(&value(1), self.ranks());
                success
            }
            "MPI_Comm_rank" => {
                self.write_at(&value(1), Value::int(0));
                success
            }
            "MPI_Init" | "MPI_Init_thread" => success,
            "cudaPeekAtLastError"
            | "cudaGetLastError"
            | "hipGetLastError"
            | "hipPeekAtLastError" => success,
            "printf" | "fprintf" | "puts" | "fflush" | "perror" | "free" | "cudaFree"
            | "hipFree" => success,
            _ => return self.occupancy_call(plain, arguments),
        })
    }

    /// What a function of a toolkit gives that is not followed: most say that they succeeded.
    pub(super) fn succeeds(&self, name: &str) -> bool {
        let behind = |prefix: &str| {
            name.strip_prefix(prefix)
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
        };
        let opencl = ["clEnqueue", "clSet", "clBuild", "clFinish", "clGet"];
        self.running.is_some()
            && (behind("cuda")
                || behind("hip")
                || behind("cu")
                || opencl.iter().any(|prefix| name.starts_with(prefix)))
    }

    /// The number of processes of an MPI program.
    fn ranks(&self) -> Value {
        let set = self.running.iter().flat_map(|running| &running.environment);
        let mut set = set.filter(|(name, _)| name == RANKS);
        match set.next() {
            None => Value::int(1),
            Some((_, count)) => count.parse().map_or(Value::Unknown, Value::int),
        }
    }

    /// A pointer to new memory of that many bytes.
    pub(super) fn memory_of(&mut self, bytes: &Value, kind: MemoryKind) -> Value {
        let memory = self.temporary(Type::Unknown(String::new()), Value::Unknown);
        self.slots[memory.slot].bytes = extent(bytes);
        self.slots[memory.slot].memory = Some(kind);
        Value::Address(memory)
    }

    /// Memory of the host is pinned, or no longer: not known where a condition that is not known decides whether the program comes here.
    fn is_kept_now(&mut self, pointer: &Value, kind: MemoryKind) {
        let doubtful = self.is_doubtful();
        if let Value::Address(place) = pointer
            && let Some(slot) = self.slots.get_mut(place.slot)
        {
            slot.may_be_pinned = doubtful;
            if !doubtful {
                slot.memory = Some(kind);
            }
        }
    }

    /// The bytes of the memory that a pointer leads into, where they are known.
    pub(super) fn bytes_behind(&self, pointer: &Value) -> Option<u64> {
        match pointer {
            Value::Address(place) => {
                let slot = self.slots.get(place.slot)?;
                let whole = place.path.iter().all(|step| matches!(step, Step::Index(_)));
                let array = match &slot.ty {
                    Type::Array(_, Some(_)) => Some(slot.ty.size()),
                    _ => None,
                };
                slot.bytes.or(array).filter(|_| whole)
            }
            _ => None,
        }
    }

    /// Gives a container its number of elements.
    fn resize(&mut self, slot: usize, count: &Value) {
        let element = match &self.slots[slot].ty {
            Type::Array(element, _) => element.size(),
            _ => return,
        };
        let bytes = binary(Op::Multiply, count, &Value::Int(element as i64, 64, false));
        self.set_bytes(slot, extent(&bytes).filter(|_| element > 0));
    }

    /// A method of a container, as far as it tells how large it is and where.
    pub(super) fn container_call(
        &mut self,
        place: &Place,
        value: &Value,
        name: &str,
        arguments: &[Argument],
        source: Source,
    ) -> Option<Value> {
        let whole = place.path.is_empty();
        let ty = self.slots[place.slot].ty.clone();
        let container = whole && matches!(ty, Type::Array(..));
        let key = arguments.first().and_then(|key| match &key.value {
            Value::Int(key, ..) => Some(key.to_string()),
            value => self.text_in(value).map(|key| key.to_string()),
        });
        Some(match (name, arguments) {
            ("size" | "length", []) if !matches!(value, Value::Array(_)) => {
                self.length_of(place)?
            }
            ("empty", []) => match (value, self.length_of(place)) {
                (Value::Array(values), _) => Value::truth(values.is_empty()),
                (_, length) => Value::truth(length?.as_int()? == 0),
            },
            ("back", []) => match value {
                Value::Array(values) => values.last()?.clone(),
                _ => return None,
            },
            ("front", []) => value.at(&Step::Index(Some(0))),
            ("clear", []) if container => {
                self.write(place, Value::list(Vec::new()));
                Value::Unknown
            }
            ("pop_back", []) => match value {
                Value::Array(values) if !values.is_empty() => {
                    let mut values = (**values).clone();
                    values.pop();
                    self.write(place, Value::list(values));
                    Value::Unknown
                }
                _ => return None,
            },
            ("push_back" | "emplace_back", [_, ..]) if container => {
                self.push(place, value, arguments, name == "emplace_back", source);
                Value::Unknown
            }
            ("data" | "begin" | "get", []) if container => Value::Address(place.clone()),
            ("cbegin", []) if container => Value::Address(place.clone()),
            ("end" | "cend", []) if container => {
                let count = usize::try_from(self.length_of(place)?.as_int()?).ok()?;
                let mut end = place.clone();
                end.path.push(Step::Index(Some(count)));
                Value::Address(end)
            }
            // `thrust::device_ptr`, `v.data().get()`.
            ("get", []) if matches!(value, Value::Address(_)) => value.clone(),
            ("resize" | "assign", [count, ..]) if container => {
                let (count, filling) = (count.value.clone(), arguments.get(1));
                let filling = filling.map(|filling| filling.value.clone());
                let empty = matches!(value, Value::Array(values) if values.is_empty());
                if empty || name == "assign" {
                    self.sized(place.slot, &count, filling.as_ref());
                } else {
                    self.resized(place, value, &count, filling.as_ref());
                }
                Value::Unknown
            }
            // Behind the last element, the elements between two iterators of a container.
            ("insert", [_, first, last]) if container => {
                let appended = self.appended(value, &first.value, &last.value);
                match appended {
                    Some(values) => self.write(place, values),
                    None => {
                        self.forget(place.slot);
                        self.set_bytes(place.slot, None);
                    }
                }
                Value::Unknown
            }
            ("insert" | "emplace" | "erase" | "push_front" | "emplace_front" | "pop_front", _)
                if container =>
            {
                return self.spliced(place, value, name, arguments, source);
            }
            ("reserve" | "shrink_to_fit", _) if container => Value::Unknown,
            // A map: its entries by their keys, each with its key and value.
            ("find" | "count" | "contains", [_]) => {
                let Value::Record(record) = value else {
                    return None;
                };
                if record.class != MAP {
                    return None;
                }
                let key = key?;
                let has = record.fields.iter().any(|(of, _)| *of == key);
                if name != "find" {
                    return Some(Value::truth(has));
                }
                // Behind the last entry there is nothing.
                if !has {
                    return Some(Value::Int(0, 64, true));
                }
                let mut entry = place.clone();
                entry.path.push(Step::Field(key));
                Value::Address(entry)
            }
            ("end", []) if matches!(value, Value::Record(_)) => Value::Int(0, 64, true),
            _ => return None,
        })
    }

    /// Puts an element before another one or takes some away; `None` where the elements are not known one by one.
    fn spliced(
        &mut self,
        place: &Place,
        value: &Value,
        name: &str,
        arguments: &[Argument],
        source: Source,
    ) -> Option<Value> {
        let at = |argument: &Argument| match &argument.value {
            Value::Address(to) if to.slot == place.slot => to.element(),
            _ => None,
        };
        let Value::Array(values) = value else {
            return None;
        };
        let mut values = (**values).clone();
        let (from, put) = match (name, arguments) {
            ("erase", [one]) => {
                let from = at(one).filter(|from| *from < values.len())?;
                values.remove(from);
                (from, None)
            }
            ("erase", [first, last]) => {
                let (from, to) = (at(first)?, at(last)?);
                if from > to || to > values.len() {
                    return None;
                }
                values.drain(from..to);
                (from, None)
            }
            ("pop_front", []) if !values.is_empty() => {
                values.remove(0);
                (0, None)
            }
            ("insert", [before, one]) => (at(before)?, Some((std::slice::from_ref(one), false))),
            ("emplace", [before, given @ ..]) => (at(before)?, Some((given, true))),
            ("push_front", [one]) => (0, Some((std::slice::from_ref(one), false))),
            ("emplace_front", given) => (0, Some((given, true))),
            _ => return None,
        };
        if let Some((given, in_place)) = put {
            if from > values.len() || values.len() >= MOST_ELEMENTS {
                return None;
            }
            let made = match (
                self.element_made(place.slot, given, in_place, source),
                given,
            ) {
                (Some(made), _) => made,
                (None, [only]) => self.copy_of(only.value.clone()),
                (None, _) => Value::Unknown,
            };
            values.insert(from, made);
        }
        self.write(place, Value::list(values));
        let mut to = place.clone();
        to.path.push(Step::Index(Some(from)));
        Some(Value::Address(to))
    }

    /// Puts an element behind the last.
    fn push(
        &mut self,
        place: &Place,
        value: &Value,
        arguments: &[Argument],
        in_place: bool,
        source: Source,
    ) {
        let made = match value {
            Value::Array(values) if values.len() < MOST_ELEMENTS => {
                self.element_made(place.slot, arguments, in_place, source)
            }
            _ => None,
        };
        let size = match &self.slots[place.slot].ty {
            Type::Array(element, _) => element.size(),
            _ => 0,
        };
        match (value, arguments) {
            (Value::Array(values), _) if made.is_some() => {
                let mut values = (**values).clone();
                values.extend(made);
                self.write(place, Value::list(values));
            }
            (Value::Array(values), [element]) if values.len() < MOST_ELEMENTS => {
                let mut values = (**values).clone();
                values.push(self.copy_of(element.value.clone()));
                self.write(place, Value::list(values));
            }
            (Value::Array(values), _) => {
                self.set_bytes(place.slot, (values.len() as u64 + 1).checked_mul(size));
                self.write(place, Value::Unknown);
            }
            _ => {
                let bytes = self.slots[place.slot].bytes;
                self.set_bytes(place.slot, bytes.and_then(|bytes| bytes.checked_add(size)));
                self.write(place, Value::Unknown);
            }
        }
    }

    /// A list with the elements of another container behind it; `None` where either is not known or `last` is not its end.
    fn appended(&self, value: &Value, first: &Value, last: &Value) -> Option<Value> {
        let (Value::Array(values), Value::Address(from)) = (value, first) else {
            return None;
        };
        let Value::Array(more) = &self.slots.get(from.slot)?.value else {
            return None;
        };
        let end = Place {
            slot: from.slot,
            path: vec![Step::Index(Some(more.len()))],
        };
        let whole = *last == Value::Address(end) && from.path.is_empty();
        let count = values.len() + more.len();
        (whole && count <= MOST_ELEMENTS)
            .then(|| Value::list(values.iter().chain(more.iter()).cloned().collect()))
    }

    /// Gives a container its number of elements and what each of them is.
    pub(super) fn sized(&mut self, slot: usize, count: &Value, filling: Option<&Value>) {
        let few = count.as_int().and_then(|count| usize::try_from(count).ok());
        let element = self.element_of(slot);
        let one = one_of(element.as_ref(), filling);
        let values = match few.filter(|count| *count <= MOST_ELEMENTS) {
            Some(count) => {
                let each = (0..count).map(|_| self.copy_of(one.clone()));
                Value::list(each.collect())
            }
            None if !self.makes(extent(count).unwrap_or(0).saturating_mul(8)) => Value::Unknown,
            None => (few.zip(element))
                .and_then(|(count, element)| filled(count, &element, &one))
                .unwrap_or(Value::Unknown),
        };
        let place = Place {
            slot,
            path: Vec::new(),
        };
        self.write(&place, values);
        self.resize(slot, count);
    }

    /// The same for a container that has elements, which stay.
    fn resized(&mut self, place: &Place, value: &Value, count: &Value, filling: Option<&Value>) {
        let whole = count.as_int().and_then(|count| usize::try_from(count).ok());
        let one = one_of(self.element_of(place.slot).as_ref(), filling);
        let values = match (value, whole) {
            (Value::Array(values), Some(count)) if count <= MOST_ELEMENTS => {
                let mut values = (**values).clone();
                values.resize(count, one);
                Value::list(values)
            }
            _ => Value::Unknown,
        };
        self.write(place, values);
        self.resize(place.slot, count);
    }

    fn element_of(&self, slot: usize) -> Option<Type> {
        match &self.slots[slot].ty {
            Type::Array(element, _) => Some((**element).clone()),
            _ => None,
        }
    }

    /// The number of elements of a container.
    pub(super) fn length_of(&self, place: &Place) -> Option<Value> {
        if !place.path.is_empty() {
            return None;
        }
        let slot = &self.slots[place.slot];
        if let Value::Array(values) = &slot.value {
            return Some(Value::Int(values.len() as i64, 64, false));
        }
        if let (Value::Data(data), Type::Array(element, None)) = (&slot.value, &slot.ty) {
            let length = data.0.len() as u64 / element.size().max(1);
            return Some(Value::Int(i64::try_from(length).ok()?, 64, false));
        }
        let Type::Array(element, length) = &slot.ty else {
            return None;
        };
        let length = match (slot.bytes, length) {
            (Some(bytes), _) => bytes / element.size().max(1),
            (None, Some(length)) => *length,
            (None, None) => return None,
        };
        Some(Value::Int(i64::try_from(length).ok()?, 64, false))
    }

    /// Writes the value of a property where a pointer leads.
    pub(super) fn write_at(&mut self, pointer: &Value, value: Value) {
        if let Value::Address(place) = pointer {
            self.write(place, value);
        }
    }

    /// A call of `cuTensorMapEncodeTiled`.
    pub(super) fn tensor_map_call(&mut self, arguments: &[Argument], source: Source) -> Value {
        let map = self.tensor_map(arguments, source);
        if let Some(to) = arguments.first() {
            self.write_at(&to.value, map);
        }
        Value::int(0)
    }

    /// What `cuTensorMapEncodeTiled` makes: of it a launch is told what a copy by it brings.
    fn tensor_map(&self, arguments: &[Argument], source: Source) -> Value {
        let element = arguments.get(1).and_then(|argument| argument.node);
        let element = element.and_then(|node| element_bytes(text(node, source)));
        let value = |at: usize| arguments.get(at).map(|argument| &argument.value);
        let rank = value(2).and_then(Value::as_int);
        let rank = rank.and_then(|rank| usize::try_from(rank).ok());
        let mut fields = Vec::new();
        if let (Some(element), Some(rank @ 1..=5)) = (element, rank) {
            fields.push((MAP_ELEMENT.to_owned(), Value::Int(element, 64, false)));
            for (name, at, count) in [
                (MAP_SIZES, 4, rank),
                (MAP_STRIDES, 5, rank - 1),
                (MAP_SIDES, 6, rank),
            ] {
                let mut all = value(at).map_or_else(Vec::new, |all| self.elements(all));
                all.resize(count, Value::Unknown);
                fields.push((name.to_owned(), Value::Array(Rc::new(all))));
            }
        }
        Value::Record(Rc::new(Record::new(TENSOR_MAP, fields)))
    }

    /// The figures of the GPU as a structure.
    pub(super) fn device_properties(&self) -> Option<Value> {
        let device = self.running.as_ref()?.device.as_ref()?;
        let mut fields: Vec<(String, Value)> = device
            .properties
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Value::Int(*value, 64, true)))
            .collect();
        fields.push(("name".to_owned(), Value::Text(device.name.as_str().into())));
        Some(Value::record("", fields))
    }

    /// One figure of the GPU, by the name of an attribute: `cudaDevAttrMultiProcessorCount`.
    pub(super) fn device_attribute(&self, name: &str) -> Option<Value> {
        let device = self.running.as_ref()?.device.as_ref()?;
        let name = name.rsplit("::").next()?;
        let name = name
            .trim_start_matches("cudaDevAttr")
            .trim_start_matches("hipDeviceAttribute")
            .trim_start_matches("CU_DEVICE_ATTRIBUTE_")
            .replace('_', "");
        let name = match name.to_ascii_lowercase().as_str() {
            "maxsharedmemoryperblock" => "sharedmemperblock".to_owned(),
            "maxsharedmemoryperblockoptin" => "sharedmemperblockoptin".to_owned(),
            "maxsharedmemorypermultiprocessor" => "sharedmempermultiprocessor".to_owned(),
            "computecapabilitymajor" => "major".to_owned(),
            "computecapabilityminor" => "minor".to_owned(),
            "maxregistersperblock" => "regsperblock".to_owned(),
            "maxregisterspermultiprocessor" => "regspermultiprocessor".to_owned(),
            other => other.to_owned(),
        };
        let (_, value) = device
            .properties
            .iter()
            .find(|(of, _)| of.to_ascii_lowercase() == name)?;
        Some(Value::int(*value))
    }
}

/// What an element of a container is that is told so, or begins as 0.
fn one_of(element: Option<&Type>, filling: Option<&Value>) -> Value {
    let number = element.filter(|element| Number::of(element).is_some());
    match (filling, number) {
        (Some(filling), _) => filling.clone(),
        (None, Some(number)) => Value::int(0).converted(number),
        (None, None) => match element {
            Some(Type::Unknown(name)) if matches!(plain(name).as_str(), "string") => {
                Value::Text("".into())
            }
            _ => Value::Unknown,
        },
    }
}

/// What Open MPI's launcher tells its processes.
const RANKS: &str = "OMPI_COMM_WORLD_SIZE";

/// A number of bytes.
fn extent(bytes: &Value) -> Option<u64> {
    u64::try_from(bytes.as_int()?).ok()
}

/// Whether a call makes a tensor map: nothing else takes twelve arguments of which one begins like this.
pub(super) fn encodes_a_tensor_map(arguments: &[Argument], source: Source) -> bool {
    const ARGUMENTS: usize = 12;
    let written = |argument: &Argument| argument.node.map(|node| text(node, source));
    let mut written = arguments.iter().filter_map(written);
    arguments.len() == ARGUMENTS && written.any(|text| text.starts_with("CU_TENSOR_MAP_"))
}

/// Bytes of an element, by the name of its type (CUDA Driver API, `CUtensorMapDataType`).
fn element_bytes(name: &str) -> Option<i64> {
    let bits = name.strip_prefix("CU_TENSOR_MAP_DATA_TYPE_")?;
    Some(match bits {
        "UINT8" => 1,
        "UINT16" | "FLOAT16" | "BFLOAT16" => 2,
        "UINT32" | "INT32" | "FLOAT32" | "FLOAT32_FTZ" | "TFLOAT32" | "TFLOAT32_FTZ" => 4,
        "UINT64" | "INT64" | "FLOAT64" => 8,
        _ => return None,
    })
}
