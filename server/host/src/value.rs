//! What host variables hold, as far as it is known.

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use warplens_syntax::{BinaryOperator as Op, Expanded};

use super::data::DataRef;
use super::kinds::wrapped;
use super::library_types::LibraryType;
use super::linked::Linked;
use super::random::Generator;
use warplens_hir::{Lowering, Space};
use warplens_ir::Type;
use warplens_ir::{Bindings, Bound};

/// Arrays are followed up to this many elements.
pub(super) const MOST_ELEMENTS: usize = 64;
/// Bytes of an array that is copied where one element changes.
const MOST_COPIED: usize = 4096;
/// Kernels that one variable may stand for.
const MOST_KERNELS: usize = 16;
/// The class of a record whose fields are the entries of a map, each a record of its key and value.
pub(super) const MAP: &str = "map";
/// In a text, what is not known of it.
pub(super) const GAP: char = '\u{1}';

/// Bytes of a text that are followed.
const LONGEST: usize = 4096;

/// A value; what is not known of it is [`Value::Unknown`].
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Unknown,
    /// An integer of a width, signed or not.
    Int(i64, u8, bool),
    /// Floating point of a width.
    Float(f64, u8),
    /// An integer or a quotient that depends on one that is not known.
    Linked(Linked),
    Text(Rc<str>),
    /// `dim3`, `cl::NDRange`.
    Dims([Extent; 3]),
    /// An array, a list in braces, a vector of the standard library.
    Array(Rc<Vec<Value>>),
    Record(Rc<Record>),
    /// One of these kernels, or something that is not known.
    Kernels(Rc<Vec<KernelName>>),
    /// A kernel object of OpenCL: its arguments are an array in that slot.
    Object(Rc<str>, usize),
    /// A pointer.
    Address(Place),
    /// A reference that is a member or a value, `std::ref`: what it names.
    Reference(Place),
    /// A container that is a member of a structure or the value of a call: the variable that has its elements.
    Container(usize),
    Lambda(LambdaRef),
    /// `std::bind`.
    Bound(Rc<BoundCall>),
    /// A host function.
    Function(Rc<FunctionName>),
    /// The variables of a parameter pack.
    Pack(Rc<Vec<usize>>),
    /// Numbers in memory, more than a list holds.
    Data(DataRef),
    /// A generator of random numbers.
    Generator(Generator),
}

impl Value {
    /// Its value, where it is an integer that is known.
    pub(super) fn integer(&self) -> Option<i64> {
        match self {
            Value::Int(value, ..) => Some(*value),
            _ => None,
        }
    }
}

/// How far a launch or a block reaches along one axis.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) enum Extent {
    #[default]
    Unknown,
    Known(u64),
    Linked(Linked),
}

impl Extent {
    pub(super) const ONE: Extent = Extent::Known(1);
    pub(super) const ONES: [Extent; 3] = [const { Extent::ONE }; 3];
    /// Of a launch of which nothing is known.
    pub(super) const UNKNOWN: [Extent; 3] = [const { Extent::Unknown }; 3];

    pub(super) fn known(&self) -> Option<u64> {
        match self {
            Extent::Known(extent) => Some(*extent),
            _ => None,
        }
    }

    /// As an integer of that many bits.
    pub(super) fn value(&self, bits: u8) -> Value {
        match self {
            Extent::Unknown => Value::Unknown,
            Extent::Known(extent) => Value::Int(*extent as i64, bits, false),
            Extent::Linked(linked) => Value::Linked(linked.clone()),
        }
    }
}

/// A structure: the fields that are known.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Record {
    /// Plain name of its class; empty where it has none.
    pub(super) class: String,
    pub(super) fields: Vec<(String, Value)>,
    /// What the template parameters of its class represent, and of those that it is derived from; without classes that
    /// have none.
    pub(super) bindings: Rc<Vec<(String, Bindings)>>,
    /// The types of its fields that are numbers, as far as its class was read: a bit-field has its own width.
    pub(super) numbers: Rc<Vec<(String, FieldNumber)>>,
    /// Of an object of the standard library: what its type holds.
    pub(super) kept: Option<Rc<LibraryType>>,
}

/// What a field holds that is a number.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FieldNumber {
    pub(super) ty: Type,
    /// Of a bit-field: how many it has.
    pub(super) width: Option<u8>,
}

impl FieldNumber {
    /// A value as the field holds it.
    pub(super) fn held(&self, value: Value) -> Value {
        match (value.converted(&self.ty), self.width) {
            // One bit is no `bool`.
            (Value::Int(value, _, signed), Some(width)) if self.ty != Type::BOOL => {
                Value::Int(wrapped(value, width, signed), width.max(2), signed)
            }
            (value, _) => value,
        }
    }
}

impl Record {
    /// Of a class that is no template.
    pub(super) fn new(class: &str, fields: Vec<(String, Value)>) -> Record {
        Record {
            class: class.to_owned(),
            fields,
            bindings: Rc::default(),
            numbers: Rc::default(),
            kept: None,
        }
    }

    /// True where both have the same fields.
    fn has_fields_of(&self, other: &Record) -> bool {
        let has = |(name, _): &(String, Value)| self.fields.iter().any(|(own, _)| own == name);
        self.fields.len() == other.fields.len() && other.fields.iter().all(has)
    }

    /// A value as that field holds it.
    pub(super) fn held(&self, field: &str, value: Value) -> Value {
        match self.numbers.iter().find(|(name, _)| name == field) {
            Some((_, number)) => number.held(value),
            None => value,
        }
    }

    /// Gives a field that value; one that it does not have yet is added.
    pub(super) fn set(&mut self, field: &str, value: Value) {
        let value = self.held(field, value);
        match self.fields.iter_mut().find(|(name, _)| name == field) {
            Some((_, held)) => *held = value,
            None => self.fields.push((field.to_owned(), value)),
        }
    }

    /// What the template parameters represent in a member function of that class.
    pub(super) fn bindings_in(&self, class: &str) -> Bindings {
        let mut all = self.bindings.iter();
        let own = all.find(|(of, _)| of == class);
        own.map_or_else(Bindings::new, |(_, bindings)| bindings.clone())
    }
}

/// A kernel as an expression names it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct KernelName {
    pub(super) name: String,
    /// The namespaces around it, where kernels of that name are in several.
    pub(super) space: Option<Space>,
    pub(super) template_args: Vec<Option<Bound>>,
}

/// A function as an expression names it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FunctionName {
    pub(super) name: String,
    /// The class that it is a member of, where it was named with that: `&Solver::step`.
    pub(super) class: Option<String>,
    pub(super) template_args: Vec<Option<Bound>>,
}

/// Where a value is kept.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Place {
    pub(super) slot: usize,
    pub(super) path: Vec<Step>,
}

impl Place {
    /// Which element of an array it is; the array itself is its first.
    pub(super) fn element(&self) -> Option<usize> {
        match self.path.as_slice() {
            [] => Some(0),
            [Step::Index(Some(at))] => Some(*at),
            _ => None,
        }
    }
}

/// Into a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    Field(String),
    /// `None`: some element.
    Index(Option<usize>),
}

/// What a name means.
#[derive(Debug, Clone)]
pub(super) enum Meaning {
    Slot(usize),
    /// A reference to a part of a variable.
    Place(Place),
    Type(Type),
}

/// The names of one block.
pub(super) type Scope = FxHashMap<String, Meaning>;

/// A lambda expression and what it sees.
#[derive(Debug)]
pub(super) struct Lambda {
    pub(super) text: Arc<Expanded>,
    pub(super) header: bool,
    pub(super) range: Range<usize>,
    pub(super) scopes: Vec<Scope>,
    pub(super) bindings: Bindings,
    pub(super) this: Option<Place>,
    pub(super) class: Option<String>,
}

/// A call of which some arguments are kept until it is made.
#[derive(Debug, PartialEq)]
pub(super) struct BoundCall {
    /// A function or a lambda.
    pub(super) called: Value,
    pub(super) arguments: Vec<BoundArgument>,
}

/// An argument of such a call.
#[derive(Debug, PartialEq)]
pub(super) enum BoundArgument {
    /// What is there when the call is made: a copy, or a variable that is bound by reference.
    At(Place),
    /// An argument that the call is made with, by number.
    Placeholder(usize),
}

/// A lambda by identity.
#[derive(Debug, Clone)]
pub(super) struct LambdaRef(pub(super) Rc<Lambda>);

impl PartialEq for LambdaRef {
    fn eq(&self, other: &LambdaRef) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

impl Value {
    pub(super) const TRUE: Value = Value::Int(1, 1, false);
    pub(super) const FALSE: Value = Value::Int(0, 1, false);

    pub(super) fn int(value: i64) -> Value {
        Value::Int(value, 32, true)
    }

    pub(super) fn of(value: i64, ty: &Type) -> Value {
        match ty {
            Type::Int { bits, signed } => Value::Int(value, *bits, *signed),
            _ => Value::Int(value, 64, true),
        }
    }

    pub(super) fn truth(value: bool) -> Value {
        if value { Value::TRUE } else { Value::FALSE }
    }

    pub(super) fn list(values: Vec<Value>) -> Value {
        Value::Array(Rc::new(values))
    }

    /// A structure with these fields.
    pub(super) fn record(class: &str, fields: Vec<(String, Value)>) -> Value {
        Value::Record(Rc::new(Record::new(class, fields)))
    }

    pub(super) fn kernel(name: &str, template_args: Vec<Option<Bound>>) -> Value {
        Value::Kernels(Rc::new(vec![KernelName {
            name: name.to_owned(),
            space: None,
            template_args,
        }]))
    }

    pub(super) fn as_int(&self) -> Option<i64> {
        match self {
            Value::Int(value, ..) => Some(*value),
            Value::Array(values) if values.len() == 1 => values[0].as_int(),
            _ => None,
        }
    }

    /// True or false, where it is known.
    pub(super) fn decided(&self) -> Option<bool> {
        match self {
            Value::Int(value, ..) => Some(*value != 0),
            Value::Float(value, _) => Some(*value != 0.0),
            Value::Text(_)
            | Value::Address(_)
            | Value::Lambda(_)
            | Value::Bound(_)
            | Value::Function(_)
            | Value::Data(_) => Some(true),
            _ => None,
        }
    }

    /// True where nothing is known of it but, at most, how it hangs together with others.
    pub(super) fn is_open(&self) -> bool {
        matches!(self, Value::Unknown | Value::Linked(_))
    }

    /// Three extents: `n`, `dim3`, `{x, y}`, a structure with x, y and z.
    pub(super) fn extents(&self) -> [Extent; 3] {
        let positive = |value: &Value| {
            if let Value::Linked(linked) = value {
                return Extent::Linked(linked.clone().truncated());
            }
            let whole = match value {
                // Extents are unsigned integers, whatever is given.
                Value::Float(..) => value.clone().converted(&Type::UINT).as_int(),
                value => value.as_int(),
            };
            // A negative number is a large one.
            whole.map_or(Extent::Unknown, |value| match u64::try_from(value) {
                Ok(value) => Extent::Known(value),
                Err(_) => Extent::Known(u64::from(value as u32)),
            })
        };
        match self {
            Value::Int(..) | Value::Float(..) | Value::Linked(_) => {
                [positive(self), Extent::ONE, Extent::ONE]
            }
            Value::Dims(extents) => extents.clone(),
            Value::Array(values) if values.len() <= 3 => {
                let mut extents = Extent::ONES;
                for (extent, value) in extents.iter_mut().zip(values.iter()) {
                    *extent = positive(value);
                }
                extents
            }
            Value::Record(record) => {
                let lane = |name: &str| {
                    record
                        .fields
                        .iter()
                        .find(|(of, _)| of == name)
                        .map_or(Extent::Unknown, |(_, value)| positive(value))
                };
                [lane("x"), lane("y"), lane("z")]
            }
            _ => Extent::UNKNOWN,
        }
    }

    /// The same where every extent is known.
    pub(super) fn dimensions(&self) -> Option<[u64; 3]> {
        let [x, y, z] = self.extents().each_ref().map(Extent::known);
        Some([x?, y?, z?])
    }

    /// The extents that are known, where some are not; of one that is at most a number, `min(n, 512)`, what it is for large ones.
    pub(super) fn sides(&self) -> [Option<u64>; 3] {
        let extents = self.extents();
        if extents.iter().all(|extent| extent.known().is_some()) {
            return [None; 3];
        }
        extents.each_ref().map(|extent| match extent {
            Extent::Linked(linked) => linked.limit(),
            extent => extent.known(),
        })
    }

    /// What a step leads to.
    pub(super) fn at(&self, step: &Step) -> Value {
        match (self, step) {
            (Value::Dims(extents), Step::Field(name)) => {
                lane(name).map_or(Value::Unknown, |at| extents[at].value(32))
            }
            (Value::Dims(extents), Step::Index(Some(at))) => extents
                .get(*at)
                .map_or(Value::Unknown, |extent| extent.value(64)),
            (Value::Array(values), Step::Index(Some(at))) => {
                values.get(*at).cloned().unwrap_or(Value::Unknown)
            }
            (Value::Data(data), Step::Index(Some(at))) => data.0.element(*at),
            (Value::Text(text), Step::Index(Some(at))) if !text.contains(GAP) => {
                // The text ends with a character that is 0.
                match text.as_bytes().get(*at) {
                    Some(byte) => Value::Int(i64::from(*byte as i8), 8, true),
                    None if *at == text.len() => Value::Int(0, 8, true),
                    None => Value::Unknown,
                }
            }
            // Some element of a table of kernels.
            (Value::Array(values), Step::Index(None)) => {
                let mut all = values.iter().cloned();
                let Some(first @ Value::Kernels(_)) = all.next() else {
                    return Value::Unknown;
                };
                all.fold(first, |joined, next| joined.join(&next))
            }
            (Value::Record(record), Step::Field(name)) => record
                .fields
                .iter()
                .find(|(of, _)| of == name)
                .map_or(Value::Unknown, |(_, value)| value.clone()),
            _ => Value::Unknown,
        }
    }

    pub(super) fn read(&self, path: &[Step]) -> Value {
        match path {
            [] => self.clone(),
            [step, rest @ ..] => self.at(step).read(rest),
        }
    }

    /// The value with another one at the end of the path.
    pub(super) fn with(&self, path: &[Step], new: Value) -> Value {
        let [step, rest @ ..] = path else {
            return new;
        };
        match (self, step) {
            (Value::Dims(extents), Step::Field(name)) if rest.is_empty() => {
                let mut extents = extents.clone();
                let [first, ..] = new.extents();
                match lane(name) {
                    Some(at) => extents[at] = first,
                    None => return Value::Unknown,
                }
                Value::Dims(extents)
            }
            (Value::Dims(extents), Step::Index(Some(at))) if rest.is_empty() && *at < 3 => {
                let mut extents = extents.clone();
                let [first, ..] = new.extents();
                extents[*at] = first;
                Value::Dims(extents)
            }
            (Value::Array(values), Step::Index(Some(at))) if *at < values.len() => {
                let mut values = (**values).clone();
                values[*at] = values[*at].with(rest, new);
                Value::list(values)
            }
            // A large array is not copied for each element that is written.
            (Value::Data(data), Step::Index(Some(at)))
                if rest.is_empty() && data.0.len() <= MOST_COPIED =>
            {
                let changed = data.0.with_element(*at, &new);
                changed.map_or(Value::Unknown, |data| Value::Data(DataRef::new(data)))
            }
            // Of what is not known one element is known now.
            (Value::Unknown | Value::Array(_), Step::Index(Some(at))) if *at < MOST_ELEMENTS => {
                let mut values = match self {
                    Value::Array(values) => (**values).clone(),
                    _ => Vec::new(),
                };
                values.resize(*at + 1, Value::Unknown);
                values[*at] = Value::Unknown.with(rest, new);
                Value::list(values)
            }
            // A list in braces of which the class was not read: its fields are not known by name.
            (Value::Unknown | Value::Record(_) | Value::Array(_), Step::Field(name)) => {
                let mut record = match self {
                    Value::Record(record) => (**record).clone(),
                    _ => Record::default(),
                };
                let before = self.at(step);
                record.set(name, before.with(rest, new));
                Value::Record(Rc::new(record))
            }
            _ => Value::Unknown,
        }
    }

    /// What is known where either may be.
    pub(super) fn join(&self, other: &Value) -> Value {
        if self == other {
            return self.clone();
        }
        match (self, other) {
            (Value::Dims(a), Value::Dims(b)) => Value::Dims(std::array::from_fn(|at| {
                if a[at] == b[at] {
                    a[at].clone()
                } else {
                    Extent::Unknown
                }
            })),
            (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
                Value::list(a.iter().zip(b.iter()).map(|(a, b)| a.join(b)).collect())
            }
            // Which entries there are.
            (Value::Record(a), Value::Record(b))
                if (a.class == MAP || a.kept.is_some()) && !a.has_fields_of(b) =>
            {
                Value::Unknown
            }
            (Value::Record(a), Value::Record(b))
                if a.class == b.class && a.bindings == b.bindings =>
            {
                let fields = a
                    .fields
                    .iter()
                    .map(|(name, value)| {
                        let other = other.at(&Step::Field(name.clone()));
                        (name.clone(), value.join(&other))
                    })
                    .collect();
                Value::Record(Rc::new(Record {
                    class: a.class.clone(),
                    fields,
                    bindings: Rc::clone(&a.bindings),
                    numbers: Rc::clone(&a.numbers),
                    kept: a.kept.clone(),
                }))
            }
            (Value::Text(a), Value::Text(b)) => common(a, b),
            (kernels @ Value::Kernels(_), Value::Unknown)
            | (Value::Unknown, kernels @ Value::Kernels(_)) => kernels.clone(),
            (Value::Kernels(a), Value::Kernels(b)) => {
                let mut all = (**a).clone();
                for kernel in b.iter() {
                    if !all.contains(kernel) {
                        all.push(kernel.clone());
                    }
                }
                if all.len() > MOST_KERNELS {
                    return Value::Unknown;
                }
                Value::Kernels(Rc::new(all))
            }
            _ => Value::Unknown,
        }
    }

    /// What is left of a value that may have changed again: of a structure the fields in which both agree.
    pub(super) fn loosened(&self, now: &Value) -> Value {
        match (self, now) {
            (a, b) if a == b => a.clone(),
            (Value::Record(a), Value::Record(b))
                if (a.class == MAP || a.kept.is_some()) && !a.has_fields_of(b) =>
            {
                Value::Unknown
            }
            (Value::Record(a), Value::Record(b)) => {
                let fields = b.fields.iter().map(|(name, value)| {
                    let old = self.at(&Step::Field(name.clone()));
                    (name.clone(), old.loosened(value))
                });
                let known = |field: &(String, Value)| {
                    a.fields.iter().any(|(name, _)| *name == field.0) || !a.class.is_empty()
                };
                Value::Record(Rc::new(Record {
                    class: b.class.clone(),
                    fields: fields.filter(known).collect(),
                    bindings: Rc::clone(&b.bindings),
                    numbers: Rc::clone(&b.numbers),
                    kept: b.kept.clone(),
                }))
            }
            _ => Value::Unknown,
        }
    }

    /// The value as a variable of that type holds it.
    pub(super) fn converted(self, ty: &Type) -> Value {
        match (ty, self) {
            (&Type::BOOL, Value::Float(value, _)) => Value::Int(i64::from(value != 0.0), 1, false),
            (Type::Int { bits, signed }, Value::Float(value, _)) => {
                if value.is_finite() && value.abs() < 9e18 {
                    Value::Int(
                        Lowering::host_wrapped(value.trunc() as i64, *bits, *signed),
                        *bits,
                        *signed,
                    )
                } else {
                    Value::Unknown
                }
            }
            (Type::Int { bits, signed }, Value::Int(value, ..)) => Value::Int(
                Lowering::host_wrapped(value, *bits, *signed),
                *bits,
                *signed,
            ),
            (Type::Float { bits, .. }, Value::Int(value, from, signed)) => {
                let value = if from == 64 && !signed {
                    value as u64 as f64
                } else {
                    value as f64
                };
                Value::Float(rounded(value, *bits), *bits)
            }
            (Type::Float { bits, .. }, Value::Float(value, _)) => {
                Value::Float(rounded(value, *bits), *bits)
            }
            (Type::Int { bits: 32.., .. }, Value::Linked(linked)) => {
                Value::Linked(linked.truncated())
            }
            (Type::Float { .. }, Value::Linked(linked)) => {
                linked.real().map_or(Value::Unknown, Value::Linked)
            }
            (Type::Int { .. }, Value::Linked(_)) => Value::Unknown,
            (Type::Int { .. } | Type::Float { .. }, Value::Array(values)) if values.len() == 1 => {
                values[0].clone().converted(ty)
            }
            (_, value) => value,
        }
    }
}

/// In the width of `float` or `double`; narrower types are not followed.
pub(super) fn rounded(value: f64, bits: u8) -> f64 {
    if bits <= 32 {
        f64::from(value as f32)
    } else {
        value
    }
}

pub(super) fn lane(name: &str) -> Option<usize> {
    match name {
        "x" | "width" => Some(0),
        "y" | "height" => Some(1),
        "z" | "depth" => Some(2),
        _ => None,
    }
}

/// An operator with two operands on known values; C's conversions.
pub(super) fn binary(operator: Op, a: &Value, b: &Value) -> Value {
    match (a, b) {
        (&Value::Int(a, a_bits, a_signed), &Value::Int(b, b_bits, b_signed)) => {
            let shift = matches!(operator, Op::ShiftLeft | Op::ShiftRight);
            let ty = |bits: u8, signed: bool| Type::Int { bits, signed };
            // The left operand alone decides the type of a shift.
            let other = if shift {
                ty(32, true)
            } else {
                ty(b_bits, b_signed)
            };
            let Type::Int { bits, signed } = ty(a_bits, a_signed).common(&other) else {
                return Value::Unknown;
            };
            integers(
                operator,
                Lowering::host_wrapped(a, bits, signed),
                if shift {
                    b
                } else {
                    Lowering::host_wrapped(b, bits, signed)
                },
                bits,
                signed,
            )
        }
        (Value::Float(..) | Value::Int(..), Value::Float(..) | Value::Int(..)) => {
            let width = |value: &Value| match value {
                Value::Float(_, bits) => *bits,
                _ => 0,
            };
            let bits = width(a).max(width(b));
            let ty = Type::float(bits);
            let (Value::Float(a, _), Value::Float(b, _)) =
                (a.clone().converted(&ty), b.clone().converted(&ty))
            else {
                return Value::Unknown;
            };
            let number = |value: f64| Value::Float(rounded(value, bits), bits);
            match operator {
                Op::Add => number(a + b),
                Op::Subtract => number(a - b),
                Op::Multiply => number(a * b),
                Op::Divide => number(a / b),
                Op::Less => Value::truth(a < b),
                Op::LessEqual => Value::truth(a <= b),
                Op::Greater => Value::truth(a > b),
                Op::GreaterEqual => Value::truth(a >= b),
                Op::Equal => Value::truth(a == b),
                Op::NotEqual => Value::truth(a != b),
                _ => Value::Unknown,
            }
        }
        (Value::Text(a), Value::Text(b)) => match operator {
            Op::Add => joined(a, b),
            _ if a.contains(GAP) || b.contains(GAP) => Value::Unknown,
            Op::Equal => Value::truth(a == b),
            Op::NotEqual => Value::truth(a != b),
            _ => Value::Unknown,
        },
        // A character, or what is not known, behind a text or before it.
        (Value::Text(_), Value::Unknown | Value::Linked(_) | Value::Int(_, 8, true))
        | (Value::Unknown, Value::Text(_))
            if operator == Op::Add =>
        {
            joined(&spelled(a, false), &spelled(b, false))
        }
        // A pointer that leads somewhere is not null.
        (Value::Address(_) | Value::Function(_) | Value::Text(_), Value::Int(0, ..))
        | (Value::Int(0, ..), Value::Address(_) | Value::Function(_) | Value::Text(_)) => {
            match operator {
                Op::Equal => Value::FALSE,
                Op::NotEqual => Value::TRUE,
                _ => Value::Unknown,
            }
        }
        // Elements of one array.
        (Value::Address(a), Value::Address(b)) if a.slot == b.slot => {
            match a.element().zip(b.element()) {
                Some((a, b)) => integers(operator, a as i64, b as i64, 64, true),
                None => Value::Unknown,
            }
        }
        // Two variables.
        (Value::Address(a), Value::Address(b)) if a.slot != b.slot => match operator {
            Op::Equal => Value::FALSE,
            Op::NotEqual => Value::TRUE,
            _ => Value::Unknown,
        },
        (Value::Linked(_), _) | (_, Value::Linked(_)) => with_linked(operator, a, b),
        _ => Value::Unknown,
    }
}

fn integers(operator: Op, a: i64, b: i64, bits: u8, signed: bool) -> Value {
    let wide = |value: i64| {
        if signed {
            i128::from(value)
        } else {
            i128::from(value as u64)
        }
    };
    let (x, y) = (wide(a), wide(b));
    let exact = match operator {
        Op::Add => x.checked_add(y),
        Op::Subtract => x.checked_sub(y),
        Op::Multiply => x.checked_mul(y),
        Op::Divide => x.checked_div(y),
        Op::Remainder => x.checked_rem(y),
        Op::BitAnd => Some(x & y),
        Op::BitOr => Some(x | y),
        Op::BitXor => Some(x ^ y),
        Op::ShiftLeft if (0..i128::from(bits)).contains(&i128::from(b)) => x.checked_shl(b as u32),
        Op::ShiftRight if (0..i128::from(bits)).contains(&i128::from(b)) => x.checked_shr(b as u32),
        Op::Less => return Value::truth(x < y),
        Op::LessEqual => return Value::truth(x <= y),
        Op::Greater => return Value::truth(x > y),
        Op::GreaterEqual => return Value::truth(x >= y),
        Op::Equal => return Value::truth(x == y),
        Op::NotEqual => return Value::truth(x != y),
        _ => None,
    };
    let Some(exact) = exact else {
        return Value::Unknown;
    };
    let value = Lowering::host_wrapped(exact as i64, bits, signed);
    // What overflows has no value where it is signed.
    if signed && i128::from(value) != exact {
        return Value::Unknown;
    }
    Value::Int(value, bits, signed)
}

/// A function of the C library or the toolkit on known values.
pub(super) fn library(name: &str, arguments: &[Value]) -> Option<Value> {
    let number = |at: usize| -> Option<(f64, u8)> {
        match arguments.get(at)? {
            Value::Float(value, bits) => Some((*value, *bits)),
            value @ Value::Int(..) => match value.clone().converted(&Type::DOUBLE) {
                Value::Float(value, _) => Some((value, 64)),
                _ => None,
            },
            _ => None,
        }
    };
    let unary = |of: fn(f64) -> f64| {
        let (value, bits) = number(0)?;
        let bits = if name.ends_with('f') && name != "erf" {
            32
        } else {
            bits
        };
        Some(Value::Float(rounded(of(rounded(value, bits)), bits), bits))
    };
    let pick = |less: bool| {
        let mut best = arguments.first()?.clone();
        for next in &arguments[1..] {
            let first = binary(
                if less {
                    Op::LessEqual
                } else {
                    Op::GreaterEqual
                },
                &best,
                next,
            )
            .decided()?;
            let sum = binary(Op::Add, &best, next);
            if !first {
                best = next.clone();
            }
            // The result has the type that both convert to.
            best = match (sum, best) {
                (Value::Int(_, bits, signed), best) => best.converted(&Type::Int { bits, signed }),
                (Value::Float(_, bits), best) => best.converted(&Type::float(bits)),
                (_, best) => best,
            };
        }
        Some(best)
    };
    if let ([Value::Linked(linked)], "ceil" | "ceilf" | "floor" | "floorf" | "trunc" | "truncf") =
        (arguments, name)
    {
        return Some(if name.starts_with("ceil") {
            let whole = linked.clone().ceiling();
            whole.map_or(Value::Unknown, Value::Linked)
        } else {
            Value::Linked(linked.clone().truncated())
        });
    }
    if let (
        "min" | "umin" | "imin",
        [Value::Linked(linked), other] | [other, Value::Linked(linked)],
    ) = (name, arguments)
    {
        let limited = other.as_int();
        let limited = limited.and_then(|most| linked.clone().at_most(most));
        return Some(limited.map_or(Value::Unknown, Value::Linked));
    }
    match name {
        "ceil" | "ceilf" => unary(f64::ceil),
        "floor" | "floorf" => unary(f64::floor),
        "round" | "roundf" => unary(f64::round),
        "trunc" | "truncf" => unary(f64::trunc),
        "rint" | "rintf" | "nearbyint" => unary(f64::round_ties_even),
        "sqrt" | "sqrtf" => unary(f64::sqrt),
        "cbrt" | "cbrtf" => unary(f64::cbrt),
        "exp" | "expf" => unary(f64::exp),
        "exp2" | "exp2f" => unary(f64::exp2),
        "log" | "logf" => unary(f64::ln),
        "log10" | "log10f" => unary(f64::log10),
        "sin" | "sinf" => unary(f64::sin),
        "cos" | "cosf" => unary(f64::cos),
        "tan" | "tanf" => unary(f64::tan),
        "atan" | "atanf" => unary(f64::atan),
        "log2" | "log2f" => unary(f64::log2),
        "fabs" | "fabsf" => unary(f64::abs),
        "abs" | "labs" | "llabs" => match arguments.first()? {
            Value::Int(value, bits, signed) => {
                Some(Value::Int(value.checked_abs()?, *bits, *signed))
            }
            _ => unary(f64::abs),
        },
        "pow" | "powf" | "powi" => {
            let ((a, a_bits), (b, b_bits)) = (number(0)?, number(1)?);
            let bits = if name == "powf" {
                32
            } else {
                a_bits.max(b_bits)
            };
            Some(Value::Float(rounded(a.powf(b), bits), bits))
        }
        "min" | "fmin" | "fminf" | "umin" | "imin" => match arguments {
            [_, _] => pick(true),
            [Value::Array(all)] => among(name, all),
            _ => None,
        },
        "max" | "fmax" | "fmaxf" | "umax" | "imax" => match arguments {
            [_, _] => pick(false),
            [Value::Array(all)] => among(name, all),
            _ => None,
        },
        "clamp" => match arguments {
            [value, low, high] => {
                let raised = library("max", &[value.clone(), low.clone()])?;
                library("min", &[raised, high.clone()])
            }
            _ => None,
        },
        "fmod" | "fmodf" => {
            let ((a, a_bits), (b, b_bits)) = (number(0)?, number(1)?);
            let bits = a_bits.max(b_bits);
            Some(Value::Float(rounded(a % b, bits), bits))
        }
        "gcd" | "__gcd" | "lcm" => {
            let (Value::Int(a, a_bits, a_signed), Value::Int(b, b_bits, b_signed)) =
                (arguments.first()?, arguments.get(1)?)
            else {
                return None;
            };
            let ty = |bits: &u8, signed: &bool| Type::Int {
                bits: *bits,
                signed: *signed,
            };
            let common = ty(a_bits, a_signed).common(&ty(b_bits, b_signed));
            let (a, b) = (a.checked_abs()?, b.checked_abs()?);
            let divisor = common_divisor(a, b);
            let value = match name {
                "lcm" if divisor != 0 => (a / divisor).checked_mul(b)?,
                _ => divisor,
            };
            Some(Value::Int(value, 64, true).converted(&common))
        }
        "lround" | "llround" | "lrint" => {
            let (value, _) = number(0)?;
            Some(Value::Float(value.round(), 64).converted(&Type::LONG))
        }
        // The toolkit's: `cuda::ceil_div`, `make_uint3`; `make_dim3` is how programs name the one that the toolkit lacks.
        "ceil_div" | "__builtin_expect" | "move" | "forward" | "as_const" | "make_dim3"
        | "make_uint3" | "make_int3" | "make_uint2" | "make_int2" => match name {
            "ceil_div" => {
                let [a, b] = arguments else { return None };
                let less = binary(Op::Subtract, b, &Value::int(1));
                Some(binary(Op::Divide, &binary(Op::Add, a, &less), b))
            }
            name if name.starts_with("make_") => {
                let extents = Value::list(arguments.to_vec()).extents();
                Some(Value::Dims(extents))
            }
            _ => arguments.first().cloned(),
        },
        // `ATen/cuda/detail/KernelUtils.h`.
        "GET_BLOCKS" => {
            let threads = arguments.get(1).cloned();
            let threads = threads.unwrap_or(Value::int(TORCH_THREADS));
            library("ceil_div", &[arguments.first()?.clone(), threads])
        }
        _ => bits_call(name, arguments),
    }
}

/// Threads of a block as kernels of `PyTorch` have them: `at::cuda::detail::CUDA_NUM_THREADS`.
pub(super) const TORCH_THREADS: i64 = 1024;

/// The least or the largest of a list.
fn among(name: &str, all: &[Value]) -> Option<Value> {
    let (first, rest) = all.split_first()?;
    rest.iter().try_fold(first.clone(), |best, next| {
        library(name, &[best, next.clone()])
    })
}

/// The largest number that divides both.
fn common_divisor(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// A function that counts bits, of the compiler's own or of the standard library.
fn bits_call(name: &str, arguments: &[Value]) -> Option<Value> {
    let [Value::Int(value, own_bits, _)] = arguments else {
        return None;
    };
    let (operation, bits) = match name.strip_prefix("__builtin_") {
        Some(rest) => match rest.strip_suffix("ll").or(rest.strip_suffix('l')) {
            Some(operation) => (operation, 64),
            None => (rest, 32),
        },
        None => (name, (*own_bits).max(8)),
    };
    let word = Lowering::host_wrapped(*value, bits, false) as u64;
    let zeros = i64::from(word.leading_zeros()) - (64 - i64::from(bits));
    let own = |word: Option<u64>| match word {
        Some(word) => Value::Int(word as i64, 64, false).converted(&Type::Int {
            bits,
            signed: false,
        }),
        None => Value::Unknown,
    };
    let builtin = name.starts_with("__builtin_");
    Some(match (operation, builtin) {
        ("popcount", _) => Value::int(i64::from(word.count_ones())),
        // Of 0 these are not defined.
        ("clz" | "ctz", true) if word == 0 => Value::Unknown,
        ("clz", true) | ("countl_zero", false) => Value::int(zeros),
        ("countr_zero", false) if word == 0 => Value::int(i64::from(bits)),
        ("ctz", true) | ("countr_zero", false) => Value::int(i64::from(word.trailing_zeros())),
        ("ffs", true) if word == 0 => Value::int(0),
        ("ffs", true) => Value::int(i64::from(word.trailing_zeros()) + 1),
        ("bit_width", false) => Value::int(i64::from(bits) - zeros),
        ("has_single_bit", false) => Value::truth(word.is_power_of_two()),
        ("bit_ceil", false) => own(word.checked_next_power_of_two()),
        ("bit_floor", false) if word == 0 => own(Some(0)),
        ("bit_floor", false) => own(1u64.checked_shl(word.ilog2())),
        _ => return None,
    })
}

/// An operator of which a side depends on a number that is not known.
pub(super) fn with_linked(operator: Op, a: &Value, b: &Value) -> Value {
    let number = |value: &Value| match value {
        Value::Int(value, ..) => Some((*value, false)),
        Value::Float(value, _) if value.fract() == 0.0 && value.abs() < 1e15 => {
            Some((*value as i64, true))
        }
        _ => None,
    };
    let result = match (a, b) {
        (Value::Linked(a), Value::Linked(b)) => a.with(operator, b),
        (Value::Linked(linked), known) => {
            number(known).and_then(|(by, real)| linked.clone().before(operator, by, real))
        }
        (known, Value::Linked(linked)) => {
            number(known).and_then(|(by, real)| linked.clone().behind(operator, by, real))
        }
        _ => None,
    };
    result.map_or(Value::Unknown, Value::Linked)
}

/// The place of an element, this many elements behind another one.
pub(super) fn moved(place: &Place, by: i64) -> Option<Place> {
    let mut place = place.clone();
    match place.path.last_mut() {
        Some(Step::Index(Some(at))) => {
            *at = usize::try_from(i64::try_from(*at).ok()?.checked_add(by)?).ok()?;
        }
        Some(Step::Index(None)) => {}
        _ => place
            .path
            .push(Step::Index(Some(usize::try_from(by).ok()?))),
    }
    Some(place)
}

impl Value {
    /// A text, gaps and all.
    pub(super) fn text(&self) -> Option<Rc<str>> {
        match self {
            Value::Text(text) => Some(Rc::clone(text)),
            _ => None,
        }
    }
}

/// One text behind another.
pub(super) fn joined(first: &str, second: &str) -> Value {
    if first.len() + second.len() > LONGEST {
        return Value::Unknown;
    }
    Value::Text(format!("{first}{second}").into())
}

/// A value as a stream or a string takes it. `fixed`: with six digits behind the point.
pub(super) fn spelled(value: &Value, fixed: bool) -> String {
    match value {
        Value::Text(text) => text.to_string(),
        // A character: of a number in eight bits nothing else is made.
        Value::Int(value, 8, true) if !fixed => {
            u8::try_from(*value).map_or(GAP, char::from).to_string()
        }
        Value::Int(value, ..) => value.to_string(),
        Value::Float(value, _) if fixed => format!("{value:.6}"),
        Value::Float(value, _) if value.fract() == 0.0 && value.abs() < 1e6 => {
            format!("{value:.0}")
        }
        _ => GAP.to_string(),
    }
}

/// What two texts begin with in common, up to a word's end; a gap represents the rest.
pub(super) fn common(a: &str, b: &str) -> Value {
    let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let ends = |text: &str, at: usize| {
        text.is_char_boundary(at) && text[at..].chars().next().is_none_or(char::is_whitespace)
    };
    let at = (0..=same).rev().find(|&at| {
        (ends(a, at) && ends(b, at))
            || (at > 0 && a.is_char_boundary(at) && a[..at].ends_with(char::is_whitespace))
    });
    Value::Text(format!("{} {GAP}", &a[..at.unwrap_or(0)]).into())
}
