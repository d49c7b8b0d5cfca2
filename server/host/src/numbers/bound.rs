//! What the names of a compiled loop mean, and how what it computed goes back to the walk.

use std::rc::Rc;

use super::code::place as led_to;
use super::code::{Cell, Code, MOST_MEMORIES, Memory, Register, pointer};
use super::execute::{converted, execute};
use crate::data::{Data, DataRef, LARGEST};
use crate::kinds::{Number, double, real};
use crate::random::Generator;
use crate::state::Host;
use crate::value::{MOST_ELEMENTS, Place, Step, Value};
use warplens_ir::Type;

/// Bytes of memory whose copies need not be counted.
const SMALL: usize = 4096;

/// What an expression is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum What {
    Number(Number),
    /// A pointer to elements of a type.
    Pointer(Type),
    /// A structure in memory, by its address.
    Object(Type),
}

/// A value in a register.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Operand {
    pub(super) register: Register,
    pub(super) what: What,
}

/// Where a value is kept.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kept {
    /// In a register; a variable from outside of the loop by its position.
    Register(Operand, Option<usize>),
    /// In memory, of a type.
    Memory(Register, Type),
    /// A container of such elements.
    Container(u32, Type),
    /// A generator of random numbers.
    Generator(u32),
}

/// A variable from outside of the loop.
#[derive(Debug)]
pub(super) struct Outer {
    pub(super) place: Place,
    pub(super) operand: Operand,
    pub(super) written: bool,
}

/// Names from outside of a loop, once it used them.
#[derive(Debug, Default)]
pub(super) struct Outers {
    pub(super) variables: Vec<Outer>,
    /// The variable whose memory each one is.
    pub(super) slots: Vec<Option<usize>>,
    /// The variable that each generator is.
    pub(super) generators: Vec<usize>,
}

/// A loop with what it begins with and where its results go.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) code: Code,
    pub(super) outers: Outers,
}

impl Outers {
    /// Where a place of the walk is kept in the loop.
    pub(super) fn kept(&mut self, host: &Host, code: &mut Code, place: &Place) -> Option<Kept> {
        let known = self.variables.iter().position(|one| one.place == *place);
        if let Some(at) = known {
            return Some(Kept::Register(self.variables[at].operand.clone(), Some(at)));
        }
        let value = host.read(place);
        let ty = host.type_at(place, &value);
        if let Value::Generator(generator) = value {
            let known = self.generators.iter().position(|slot| *slot == place.slot);
            let at = known.unwrap_or_else(|| {
                self.generators.push(place.slot);
                code.generators.push(Some(generator));
                code.generators.len() - 1
            });
            return (place.path.is_empty()).then_some(Kept::Generator(at as u32));
        }
        let number = Number::of(&ty).or(match &value {
            Value::Int(_, bits, signed) if !matches!(ty, Type::Pointer(..)) => {
                Number::of(&Type::Int {
                    bits: *bits,
                    signed: *signed,
                })
            }
            Value::Float(_, bits) => Number::of(&Type::float(*bits)),
            _ => None,
        });
        let (what, cell) = match (&ty, number) {
            (Type::Array(element, length), _) if place.path.is_empty() => {
                let memory = self.memory(host, code, place.slot, Some(element))?;
                if length.is_none() {
                    return Some(Kept::Container(memory as u32, (**element).clone()));
                }
                let register = constant(code, pointer(memory, 0));
                return Some(Kept::Memory(register, ty.clone()));
            }
            (_, Some(number)) => {
                let cell = match value.converted(&number.ty()) {
                    Value::Int(value, ..) => Cell::known(value),
                    Value::Float(value, _) => Cell::known(double(value)),
                    _ => Cell::UNKNOWN,
                };
                (What::Number(number), cell)
            }
            (Type::Pointer(element, _), None) => {
                let cell = match &value {
                    Value::Address(to) => {
                        let (memory, offset) = self.pointed(host, code, to, element)?;
                        Cell::known(pointer(memory, offset))
                    }
                    Value::Int(0, ..) => Cell::known(0),
                    _ => Cell::UNKNOWN,
                };
                (What::Pointer((**element).clone()), cell)
            }
            _ => return None,
        };
        let register = code.registers.len() as Register;
        code.registers.push(cell);
        let operand = Operand { register, what };
        self.variables.push(Outer {
            place: place.clone(),
            operand: operand.clone(),
            written: false,
        });
        let at = self.variables.len() - 1;
        Some(Kept::Register(operand, Some(at)))
    }

    /// The memory that a pointer leads into, and how far.
    pub(super) fn pointed(
        &mut self,
        host: &Host,
        code: &mut Code,
        to: &Place,
        element: &Type,
    ) -> Option<(usize, i64)> {
        let offset = match to.path.as_slice() {
            [] => 0,
            [Step::Index(Some(at))] => i64::try_from(*at)
                .ok()?
                .checked_mul(element.size() as i64)?,
            _ => return None,
        };
        // A pointer to a single variable would be another name for it.
        let slot = host.slots.get(to.slot)?;
        if Number::of(&slot.ty).is_some() || matches!(slot.ty, Type::Pointer(..) | Type::Struct(_))
        {
            return None;
        }
        let memory = self.memory(host, code, to.slot, Some(element))?;
        Some((memory, offset))
    }

    /// The memory of a variable.
    fn memory(
        &mut self,
        host: &Host,
        code: &mut Code,
        slot: usize,
        element: Option<&Type>,
    ) -> Option<usize> {
        let known = self.slots.iter().position(|of| *of == Some(slot));
        if known.is_some() {
            return known;
        }
        if code.memories.len() >= MOST_MEMORIES {
            return None;
        }
        let data = held(host, slot, element);
        while self.slots.len() < code.memories.len() {
            self.slots.push(None);
        }
        code.memories.push(Memory {
            data,
            written: false,
        });
        self.slots.push(Some(slot));
        Some(code.memories.len() - 1)
    }
}

fn constant(code: &mut Code, bits: i64) -> Register {
    code.registers.push(Cell::known(bits));
    code.registers.len() as Register - 1
}

/// What the memory of a variable holds; `None` where it cannot be followed.
fn held(host: &Host, slot: usize, element: Option<&Type>) -> Option<Rc<Data>> {
    let known = host.slots.get(slot)?;
    match &known.value {
        Value::Data(data) if data.0.element.is_none() && element.is_some() => {
            let mut typed = (*data.0).clone();
            typed.element = element.cloned();
            Some(Rc::new(typed))
        }
        Value::Data(data) => Some(Rc::clone(&data.0)),
        Value::Array(values) => listed(values, element?).map(Rc::new),
        Value::Unknown => {
            let bytes = match (&known.ty, known.bytes) {
                (_, Some(bytes)) => bytes,
                (Type::Array(_, Some(_)), None) => known.ty.size(),
                _ => return None,
            };
            let element = element.filter(|element| element.size() > 0).cloned();
            (bytes > 0 && bytes <= LARGEST).then(|| Rc::new(Data::unknown(element, bytes as usize)))
        }
        _ => None,
    }
}

/// A list of numbers as memory holds them.
pub(crate) fn listed(values: &[Value], element: &Type) -> Option<Data> {
    let kind = Number::of(element)?;
    let mut data = Data::unknown(Some(element.clone()), values.len() * kind.size());
    for (at, value) in values.iter().enumerate() {
        let bits = match value.clone().converted(element) {
            Value::Int(value, ..) => Some(value),
            Value::Float(value, _) => Some(double(value)),
            Value::Unknown | Value::Linked(_) => None,
            _ => return None,
        };
        data.store(at * kind.size(), kind, bits);
    }
    Some(data.settled())
}

impl Compiled {
    /// Executes the loop and writes what it changed; false where it does not come to its end.
    pub(super) fn run(mut self, host: &mut Host) -> bool {
        let Some(running) = &mut host.running else {
            return false;
        };
        let large = |memory: &Memory| {
            let data = memory.data.as_ref();
            data.is_some_and(|data| data.len() > SMALL)
        };
        if running.bytes_left == 0 && self.code.memories.iter().any(large) {
            return false;
        }
        // One loop may take half of what is left.
        let left = running.number_steps;
        let mut allowed = left / 2;
        let share = allowed;
        let mut sequences = std::mem::take(&mut running.sequences);
        let ended = execute(&mut self.code, &mut sequences, &mut allowed);
        running.sequences = sequences;
        running.number_steps = left - (share - allowed);
        if ended.is_err() {
            return false;
        }
        self.write_back(host);
        true
    }

    fn write_back(self, host: &mut Host) {
        let Compiled { code, outers } = self;
        for (at, memory) in code.memories.into_iter().enumerate() {
            let Some(Some(slot)) = outers.slots.get(at) else {
                continue;
            };
            if !memory.written {
                continue;
            }
            let Some(data) = memory.data else {
                host.forget(*slot);
                continue;
            };
            let bytes = data.len() as u64;
            host.makes(bytes);
            let data = Rc::unwrap_or_clone(data).settled();
            let value = short_list(&data).unwrap_or_else(|| Value::Data(DataRef::new(data)));
            let place = Place {
                slot: *slot,
                path: Vec::new(),
            };
            host.write(&place, value);
            if matches!(host.slots[*slot].ty, Type::Array(_, None)) {
                host.set_bytes(*slot, Some(bytes));
            }
        }
        for one in outers.variables {
            if !one.written {
                continue;
            }
            let cell = code.registers[one.operand.register as usize];
            let value = match &one.operand.what {
                _ if !cell.known => Value::Unknown,
                What::Number(number) => value_of(cell.bits, *number),
                What::Pointer(element) => {
                    let size = (element.size() as i64).max(1);
                    let led = led_to(cell.bits).and_then(|(memory, offset)| {
                        let slot = (*outers.slots.get(memory)?)?;
                        (offset >= 0 && offset % size == 0).then_some((slot, offset / size))
                    });
                    match led {
                        Some((slot, 0)) => Value::Address(Place {
                            slot,
                            path: Vec::new(),
                        }),
                        Some((slot, at)) => Value::Address(Place {
                            slot,
                            path: vec![Step::Index(Some(at as usize))],
                        }),
                        None => Value::Unknown,
                    }
                }
                What::Object(_) => continue,
            };
            host.write(&one.place, value);
        }
        for (slot, generator) in outers.generators.into_iter().zip(code.generators) {
            host.set_generator(slot, generator);
        }
    }
}

/// A number of a register.
pub(crate) fn value_of(bits: i64, number: Number) -> Value {
    match number {
        Number::Int {
            bits: width,
            signed,
        } => Value::Int(bits, width, signed),
        Number::F32 => Value::Float(real(bits), 32),
        Number::F64 => Value::Float(real(bits), 64),
    }
}

/// Few numbers as a list, as the walk keeps these.
fn short_list(data: &Data) -> Option<Value> {
    let kind = Number::of(data.element.as_ref()?)?;
    let count = data.len() / kind.size();
    if count > MOST_ELEMENTS || !data.len().is_multiple_of(kind.size()) {
        return None;
    }
    let values = (0..count).map(|at| match data.load(at * kind.size(), kind) {
        Some((bits, true)) => value_of(bits, kind),
        _ => Value::Unknown,
    });
    Some(Value::list(values.collect()))
}

impl Data {
    /// The element there, as the walk holds it.
    pub(crate) fn element(&self, at: usize) -> Value {
        let Some(ty) = &self.element else {
            return Value::Unknown;
        };
        let size = ty.size() as usize;
        let from = at.checked_mul(size);
        match (from, ty) {
            (Some(from), Type::Struct(structure)) => {
                let fields = structure.fields.iter().map(|field| {
                    let value = self.number_at(from + field.offset as usize, &field.ty);
                    (field.name.clone(), value)
                });
                Value::record(&structure.name, fields.collect())
            }
            (Some(from), ty) => self.number_at(from, ty),
            (None, _) => Value::Unknown,
        }
    }

    fn number_at(&self, from: usize, ty: &Type) -> Value {
        let Some(kind) = Number::of(ty) else {
            return Value::Unknown;
        };
        match self.load(from, kind) {
            Some((bits, true)) => value_of(bits, kind),
            _ => Value::Unknown,
        }
    }

    /// The same with another number for an element; `None` where that cannot be.
    pub(crate) fn with_element(&self, at: usize, value: &Value) -> Option<Data> {
        let kind = Number::of(self.element.as_ref()?)?;
        let bits = match value.clone().converted(&kind.ty()) {
            Value::Int(value, ..) => Some(value),
            Value::Float(value, _) => Some(double(value)),
            _ => None,
        };
        let mut data = self.clone();
        data.store(at.checked_mul(kind.size())?, kind, bits)
            .then_some(data)
    }
}

impl Host<'_> {
    /// A generator of the run is there now; `None`: not known.
    pub(crate) fn set_generator(&mut self, slot: usize, generator: Option<Generator>) {
        let place = Place {
            slot,
            path: Vec::new(),
        };
        let value = generator.map_or(Value::Unknown, Value::Generator);
        self.write(&place, value);
    }
}

/// The bits of a number that is known, as a register of that kind holds it.
pub(crate) fn bits_of(value: &Value, into: Number) -> Option<i64> {
    match value {
        Value::Int(value, bits, signed) => {
            let from = Number::of(&Type::Int {
                bits: *bits,
                signed: *signed,
            })?;
            converted(*value, from, into)
        }
        Value::Float(value, _) => converted(double(*value), Number::F64, into),
        _ => None,
    }
}
