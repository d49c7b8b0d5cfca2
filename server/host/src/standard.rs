//! Objects of the standard library that hold others: `pair`, `tuple`, `optional`, `map`, `set`, and what smart pointers lead to.
//!
//! Such an object is a [`Record`] that knows what its type holds. What holds: what is put into one is converted as the library
//! converts it; entries whose keys are not known make all of it unknown.

use std::rc::Rc;

use warplens_hir::Source;
use warplens_ir::Type;
use warplens_syntax::{Field, Node};

use super::arguments::{Argument, Named};
use super::index::class_name;
use super::leaving::Thrown;
use super::library_types::LibraryType;
use super::nodes::{name_of_function, parts, text};
use super::objects::arguments_of_type;
use super::state::Host;
use super::value::{FieldNumber, GAP, MAP, Place, Record, Step, Value};

/// Entries of a map or a set that are followed.
const MOST_ENTRIES: usize = 256;
/// Types within types that are read.
const DEEPEST: u32 = 6;
/// The class of sets.
const SET: &str = "set";
/// The class of what may hold a value.
const OPTIONAL: &str = "optional";
/// The class of `std::nullopt`.
const NOTHING: &str = "nullopt";

/// Whether a class is one of the threads of the standard library.
pub(super) fn is_thread(name: &str) -> bool {
    matches!(name, "thread" | "jthread")
}

impl LibraryType {
    /// The number that a field holds, where it is one.
    fn number(&self) -> Option<FieldNumber> {
        match self {
            LibraryType::Number(ty) => Some(FieldNumber {
                ty: ty.clone(),
                width: None,
            }),
            _ => None,
        }
    }
}

impl Host<'_> {
    /// What a type of the standard library holds, in a run; `None` for another type.
    pub(super) fn kept_by(&mut self, ty: Node, source: Source) -> Option<LibraryType> {
        self.running.as_ref()?;
        self.kept_within(ty, source, 0)
    }

    fn kept_within(&mut self, ty: Node, source: Source, depth: u32) -> Option<LibraryType> {
        let name = class_name(ty, &source.parsed.text);
        if depth > DEEPEST || self.index.classes.contains_key(&name) {
            return None;
        }
        if is_thread(&name) {
            return Some(LibraryType::Thread);
        }
        let wanted = matches!(
            name.as_str(),
            "pair" | "tuple" | "optional" | "map" | "unordered_map" | "set" | "unordered_set"
        );
        if !wanted && let Some(alias) = self.index.aliases.get(&name).copied().flatten() {
            let own = self.source_of(alias.text);
            return self.kept_within(alias.ty, own, depth + 1);
        }
        let list = arguments_of_type(ty).filter(|_| wanted)?;
        let mut all: Vec<LibraryType> = parts(list)
            .into_iter()
            .map(|part| self.held_by_type(part, source, depth + 1))
            .collect();
        let ordered = !name.starts_with("unordered");
        // An order of its own comes behind what it holds.
        let own_order = ordered && all.len() > if name == "map" { 2 } else { 1 };
        Some(match name.as_str() {
            "pair" if all.len() == 2 => LibraryType::Tuple("pair", all),
            "tuple" => LibraryType::Tuple("tuple", all),
            "optional" if all.len() == 1 => LibraryType::Optional(Box::new(all.remove(0))),
            "map" | "unordered_map" if all.len() >= 2 => {
                let (key, value) = (all.remove(0), all.remove(0));
                LibraryType::Map(Box::new(key), Box::new(value), ordered && !own_order)
            }
            "set" | "unordered_set" if !all.is_empty() => {
                LibraryType::Set(Box::new(all.remove(0)), ordered && !own_order)
            }
            _ => return None,
        })
    }

    /// What an argument of a template holds as a type.
    pub(super) fn held_by_type(
        &mut self,
        argument: Node,
        source: Source,
        depth: u32,
    ) -> LibraryType {
        if argument.field(Field::Declarator).is_some() {
            return LibraryType::Pointer;
        }
        let ty = argument.field(Field::Type).unwrap_or(argument);
        if let Some(kept) = self.kept_within(ty, source, depth) {
            return kept;
        }
        let name = class_name(ty, &source.parsed.text);
        if name == "string" {
            return LibraryType::Text;
        }
        if matches!(name.as_str(), "unique_ptr" | "shared_ptr" | "function") {
            return LibraryType::Pointer;
        }
        let read = match Type::named(text(ty, source).trim(), false) {
            Some(ty) => Some(ty),
            None => self.lowered(&[ty], source, |lowering| lowering.host_type(ty, source)),
        };
        match read {
            Some(ty @ (Type::Int { .. } | Type::Float { .. })) => LibraryType::Number(ty),
            Some(Type::Pointer(..)) => LibraryType::Pointer,
            _ if self.index.classes.contains_key(&name) => {
                LibraryType::Object(self.instance(Some(ty), source))
            }
            _ => LibraryType::Other,
        }
    }

    /// An object of such a type made of these: of nothing, of another one, of a list, of its parts.
    pub(super) fn standard_object(
        &mut self,
        kept: &LibraryType,
        given: &[Argument],
        braces: bool,
        source: Source,
    ) -> Value {
        let values: Vec<Value> = given.iter().map(|one| one.value.clone()).collect();
        match (kept, values.as_slice()) {
            (LibraryType::Thread, _) => {
                self.started(given, source);
                Value::Unknown
            }
            (LibraryType::Tuple(_, parts), []) => {
                let values = parts.iter().map(|part| self.initial(part, source));
                let values: Vec<Value> = values.collect();
                self.kept_as(kept, Value::list(values), source)
            }
            (LibraryType::Tuple(..), [only @ Value::Record(_)]) => {
                self.kept_as(kept, only.clone(), source)
            }
            (LibraryType::Tuple(..), _) => self.kept_as(kept, Value::list(values), source),
            (LibraryType::Optional(_), []) => {
                self.kept_as(kept, Value::record(NOTHING, Vec::new()), source)
            }
            (LibraryType::Optional(_), [only]) => self.kept_as(kept, only.clone(), source),
            (LibraryType::Map(..) | LibraryType::Set(..), []) => {
                self.kept_as(kept, Value::list(Vec::new()), source)
            }
            (LibraryType::Map(..) | LibraryType::Set(..), [only @ Value::Record(_)]) if !braces => {
                self.kept_as(kept, only.clone(), source)
            }
            (LibraryType::Map(..) | LibraryType::Set(..), values) if braces => {
                self.kept_as(kept, Value::list(values.to_vec()), source)
            }
            (LibraryType::Object(class), _) => {
                let place = self.temporary(Type::Unknown(String::new()), Value::Unknown);
                let class = class.clone();
                let value = self.constructed(&class, given, braces, place.slot, source);
                match value {
                    // A class without constructors is made of its fields.
                    Value::Unknown if !braces => self.by_position(&class, values),
                    value => value,
                }
            }
            (kept, [only]) => self.kept_as(kept, only.clone(), source),
            (kept, []) => self.initial(kept, source),
            _ => Value::Unknown,
        }
    }

    /// A thread or a task begins: what it calls is taken as if it were called here, which launches as much.
    pub(super) fn started(&mut self, given: &[Argument], source: Source) {
        let called = |one: &Argument| {
            matches!(
                one.value,
                Value::Lambda(_) | Value::Bound(_) | Value::Function(_)
            )
        };
        let Some(at) = given.iter().position(called) else {
            return;
        };
        if let (value, Some(node)) = (given[at].value.clone(), given[at].node) {
            self.call_value(&value, node, &given[at + 1..], source);
        }
    }

    /// What an element is that nothing else is said of.
    fn initial(&mut self, kept: &LibraryType, source: Source) -> Value {
        match kept {
            LibraryType::Number(ty) => Value::int(0).converted(ty),
            LibraryType::Text => Value::Text("".into()),
            LibraryType::Pointer => Value::Int(0, 64, true),
            LibraryType::Thread | LibraryType::Other => Value::Unknown,
            kept => self.standard_object(&kept.clone(), &[], true, source),
        }
    }

    /// A value as a type holds it.
    pub(super) fn kept_as(&mut self, kept: &LibraryType, value: Value, source: Source) -> Value {
        match (kept, value) {
            (_, Value::Unknown) => Value::Unknown,
            (LibraryType::Number(ty), value) => match self.as_number(&value, Some(ty)) {
                Some(number) => number.converted(ty),
                None => Value::Unknown,
            },
            (LibraryType::Text, value) => self.text_in(&value).map_or(Value::Unknown, Value::Text),
            (LibraryType::Object(class), Value::Record(record)) if record.class == class.name => {
                self.copy_of(Value::Record(record))
            }
            (LibraryType::Object(_), Value::Array(values)) => {
                let given: Vec<Argument> = values.iter().cloned().map(Argument::of).collect();
                self.standard_object(kept, &given, true, source)
            }
            (LibraryType::Object(_), value) => {
                self.standard_object(kept, &[Argument::of(value)], false, source)
            }
            (LibraryType::Tuple(class, all), Value::Array(values)) if values.len() == all.len() => {
                let values = values.iter().cloned().collect();
                self.tuple(kept, class, all, values, source)
            }
            (LibraryType::Tuple(class, all), Value::Record(record))
                if record.fields.len() == all.len() && is_tuple(&record.class) =>
            {
                let values = record.fields.iter().map(|(_, value)| value.clone());
                let values = values.collect();
                self.tuple(kept, class, all, values, source)
            }
            (LibraryType::Optional(inner), value) => {
                let (has, value) = match &value {
                    Value::Record(record) if record.class == NOTHING => {
                        (Value::FALSE, Value::Unknown)
                    }
                    Value::Record(record) if record.class == OPTIONAL => {
                        (value.at(&field("has")), value.at(&field("value")))
                    }
                    value => (Value::TRUE, value.clone()),
                };
                let value = self.kept_as(inner, value, source);
                let fields = vec![("has".to_owned(), has), ("value".to_owned(), value)];
                let numbers = inner.number().map(|number| ("value".to_owned(), number));
                library_record(OPTIONAL, fields, numbers.into_iter().collect(), kept)
            }
            (LibraryType::Map(..), Value::Record(record)) if record.class == MAP => {
                library_record(MAP, record.fields.clone(), Vec::new(), kept)
            }
            (LibraryType::Map(key, value, _), Value::Array(entries)) => {
                let pair = LibraryType::Tuple("pair", vec![(**key).clone(), (**value).clone()]);
                let mut fields: Vec<(String, Value)> = Vec::new();
                for entry in entries.iter() {
                    let entry = self.kept_as(&pair, entry.clone(), source);
                    let Some(name) = self.key(&entry.at(&field("first"))) else {
                        return Value::Unknown;
                    };
                    // The first of one key stays.
                    if !fields.iter().any(|(known, _)| *known == name) {
                        fields.push((name, entry));
                    }
                }
                library_record(MAP, fields, Vec::new(), kept)
            }
            (LibraryType::Set(..), Value::Record(record)) if record.class == SET => {
                library_record(SET, record.fields.clone(), Vec::new(), kept)
            }
            (LibraryType::Set(key, _), Value::Array(values)) => {
                let mut fields: Vec<(String, Value)> = Vec::new();
                for value in values.iter() {
                    let value = self.kept_as(key, value.clone(), source);
                    let Some(name) = self.key(&value) else {
                        return Value::Unknown;
                    };
                    if !fields.iter().any(|(known, _)| *known == name) {
                        fields.push((name, value));
                    }
                }
                library_record(SET, fields, Vec::new(), kept)
            }
            (
                LibraryType::Pointer,
                value @ (Value::Address(_)
                | Value::Function(_)
                | Value::Lambda(_)
                | Value::Bound(_)
                | Value::Text(_)
                | Value::Int(0, ..)),
            ) => value,
            _ => Value::Unknown,
        }
    }

    /// A pair or a tuple of these values, each as its type holds it.
    fn tuple(
        &mut self,
        kept: &LibraryType,
        class: &str,
        all: &[LibraryType],
        values: Vec<Value>,
        source: Source,
    ) -> Value {
        let mut fields = Vec::new();
        let mut numbers = Vec::new();
        for (at, (part, value)) in all.iter().zip(values).enumerate() {
            let name = part_name(class, at);
            numbers.extend(part.number().map(|number| (name.clone(), number)));
            fields.push((name, self.kept_as(part, value, source)));
        }
        library_record(class, fields, numbers, kept)
    }

    /// A key by which entries are told apart.
    fn key(&self, value: &Value) -> Option<String> {
        match value {
            Value::Int(key, ..) => Some(key.to_string()),
            value => {
                let text = self.text_in(value)?;
                (!text.contains(GAP)).then(|| text.to_string())
            }
        }
    }

    /// Whether a map is there whose type is known.
    pub(super) fn is_map(&self, place: &Place) -> bool {
        match self.read(place) {
            Value::Record(record) => matches!(record.kept.as_deref(), Some(LibraryType::Map(..))),
            _ => false,
        }
    }

    /// The entry of a map that a subscript means: one that is not there yet is put there. `None` where it is not known.
    pub(super) fn entry_of(&mut self, map: &Place, index: &Value, source: Source) -> Option<Place> {
        let Value::Record(record) = self.read(map) else {
            return None;
        };
        let Some(LibraryType::Map(key, value, _)) = record.kept.as_deref().cloned() else {
            return None;
        };
        let index = self.kept_as(&key, index.clone(), source);
        let Some(name) = self
            .key(&index)
            .filter(|_| record.fields.len() < MOST_ENTRIES)
        else {
            self.forget_at(map);
            return None;
        };
        let mut place = map.clone();
        place.path.push(field(&name));
        if !record.fields.iter().any(|(known, _)| *known == name) {
            let first = self.initial(&value, source);
            let pair = LibraryType::Tuple("pair", vec![*key, *value]);
            let entry = self.kept_as(&pair, Value::list(vec![index, first]), source);
            self.write(&place, entry);
        }
        place.path.push(field("second"));
        Some(place)
    }

    /// The entries of a map or of a set with their keys, in the order in which a loop comes to them, where that is known.
    pub(super) fn in_order(&self, value: &Value) -> Option<Vec<(String, Value)>> {
        let Value::Record(record) = value else {
            return None;
        };
        let (LibraryType::Map(_, _, ordered) | LibraryType::Set(_, ordered)) =
            record.kept.as_deref()?
        else {
            return None;
        };
        let mut all: Vec<(Value, &(String, Value))> = record
            .fields
            .iter()
            .map(|entry| match &record.class[..] {
                MAP => (entry.1.at(&field("first")), entry),
                _ => (entry.1.clone(), entry),
            })
            .collect();
        if !ordered && all.len() > 1 {
            return None;
        }
        let numbers = all.iter().all(|(key, _)| matches!(key, Value::Int(..)));
        if numbers {
            all.sort_by_key(|(key, _)| match key {
                Value::Int(key, 64, false) => i128::from(*key as u64),
                key => i128::from(key.as_int().unwrap_or(0)),
            });
        } else {
            all.sort_by_key(|(key, _)| key.text());
        }
        Some(all.into_iter().map(|(_, entry)| entry.clone()).collect())
    }

    /// A method of such an object; `None` for another one, and for one that is not followed.
    pub(super) fn standard_call(
        &mut self,
        place: &Place,
        value: &Value,
        name: &str,
        arguments: &[Argument],
        source: Source,
    ) -> Option<Value> {
        let Value::Record(record) = value else {
            return None;
        };
        let kept = record.kept.clone()?;
        match &*kept {
            LibraryType::Optional(inner) => {
                self.optional_call(place, value, inner, name, arguments, source)
            }
            LibraryType::Map(..) | LibraryType::Set(..) => {
                self.entries_call(place, record, &kept, name, arguments, source)
            }
            _ => None,
        }
    }

    fn optional_call(
        &mut self,
        place: &Place,
        value: &Value,
        inner: &LibraryType,
        name: &str,
        arguments: &[Argument],
        source: Source,
    ) -> Option<Value> {
        let has = value.at(&field("has"));
        let held = value.at(&field("value"));
        Some(match (name, arguments) {
            ("has_value", []) => has,
            ("value", []) => match has.decided() {
                Some(true) => held,
                Some(false) => {
                    self.throw(Thrown::of_library("bad_optional_access"));
                    Value::Unknown
                }
                None => Value::Unknown,
            },
            ("value_or", [otherwise]) => match has.decided() {
                Some(true) => held,
                Some(false) => self.kept_as(inner, otherwise.value.clone(), source),
                None => Value::Unknown,
            },
            ("reset", []) => {
                let mut place = place.clone();
                place.path.push(field("has"));
                self.write(&place, Value::FALSE);
                Value::Unknown
            }
            ("emplace", given) => {
                let value = self.standard_object(inner, given, false, source);
                let kept = LibraryType::Optional(Box::new(inner.clone()));
                let value = match value {
                    Value::Unknown => Value::Unknown,
                    value => self.kept_as(&kept, value, source),
                };
                self.write(place, value);
                Value::Unknown
            }
            _ => return None,
        })
    }

    /// A method of a map or of a set.
    fn entries_call(
        &mut self,
        place: &Place,
        record: &Record,
        kept: &LibraryType,
        name: &str,
        arguments: &[Argument],
        source: Source,
    ) -> Option<Value> {
        let key_kept = match kept {
            LibraryType::Map(key, ..) | LibraryType::Set(key, _) => (**key).clone(),
            _ => return None,
        };
        match (name, arguments) {
            ("size", []) => return Some(Value::Int(record.fields.len() as i64, 64, false)),
            ("empty", []) => return Some(Value::truth(record.fields.is_empty())),
            ("clear", []) => {
                let empty = library_record(&record.class, Vec::new(), Vec::new(), kept);
                self.write(place, empty);
                return Some(Value::Unknown);
            }
            _ => {}
        }
        let put = match (name, kept, arguments) {
            ("insert" | "emplace", LibraryType::Set(key, _), [one]) => {
                Some((self.kept_as(key, one.value.clone(), source), false))
            }
            ("insert", LibraryType::Map(key, value, _), [one]) => {
                let pair = LibraryType::Tuple("pair", vec![(**key).clone(), (**value).clone()]);
                Some((self.kept_as(&pair, one.value.clone(), source), false))
            }
            (
                "emplace" | "insert_or_assign" | "try_emplace",
                LibraryType::Map(key, value, _),
                [first, second],
            ) => {
                let pair = LibraryType::Tuple("pair", vec![(**key).clone(), (**value).clone()]);
                let both = Value::list(vec![first.value.clone(), second.value.clone()]);
                Some((
                    self.kept_as(&pair, both, source),
                    name == "insert_or_assign",
                ))
            }
            _ => None,
        };
        if let Some((entry, replaces)) = put {
            let key = match kept {
                LibraryType::Map(..) => entry.at(&field("first")),
                _ => entry.clone(),
            };
            let Some(key) = self
                .key(&key)
                .filter(|_| record.fields.len() < MOST_ENTRIES)
            else {
                self.forget_at(place);
                return Some(Value::Unknown);
            };
            let has = record.fields.iter().any(|(known, _)| *known == key);
            let mut at = place.clone();
            at.path.push(field(&key));
            if !has || replaces {
                self.write(&at, entry);
            }
            let result = vec![
                ("first".to_owned(), Value::Address(at)),
                ("second".to_owned(), Value::truth(!has)),
            ];
            return Some(Value::record("pair", result));
        }
        let [key] = arguments else { return None };
        let key = self.kept_as(&key_kept, key.value.clone(), source);
        let key = self.key(&key);
        let at = key
            .as_ref()
            .map(|key| record.fields.iter().position(|(known, _)| known == key));
        Some(match (name, at) {
            ("count" | "contains" | "find" | "at", None) => Value::Unknown,
            ("count", Some(at)) => Value::Int(i64::from(at.is_some()), 64, false),
            ("contains", Some(at)) => Value::truth(at.is_some()),
            ("find", Some(at)) => match (at, key) {
                (Some(_), Some(key)) => {
                    let mut entry = place.clone();
                    entry.path.push(field(&key));
                    Value::Address(entry)
                }
                // Behind the last entry there is nothing.
                _ => Value::Int(0, 64, true),
            },
            ("at", Some(Some(at))) => {
                let entry = record.fields.get(at)?;
                entry.1.at(&field("second"))
            }
            ("at", Some(None)) => {
                self.throw(Thrown::of_library("out_of_range"));
                Value::Unknown
            }
            ("erase", Some(at)) => {
                let mut fields = record.fields.clone();
                if let Some(at) = at {
                    fields.remove(at);
                }
                let left = library_record(&record.class, fields, Vec::new(), kept);
                self.write(place, left);
                Value::Int(i64::from(at.is_some()), 64, false)
            }
            _ => return None,
        })
    }

    /// Where an optional that an expression names or is has its value.
    pub(super) fn held_by_optional(&self, place: Place) -> Option<Place> {
        let Value::Record(record) = self.read(&place) else {
            return None;
        };
        if record.class != OPTIONAL || record.kept.is_none() {
            return None;
        }
        let mut place = place;
        place.path.push(field("value"));
        Some(place)
    }

    /// Functions of the standard library that make such objects, or give their parts.
    pub(super) fn making_call(
        &mut self,
        named: &Named,
        arguments: &[Argument],
        source: Source,
    ) -> Option<Value> {
        self.running.as_ref()?;
        let values = || arguments.iter().map(|one| one.value.clone());
        match (named.name.as_str(), arguments) {
            ("make_pair", [_, _]) | ("make_tuple", _) => {
                let class = if named.name == "make_pair" {
                    "pair"
                } else {
                    "tuple"
                };
                let fields = values()
                    .enumerate()
                    .map(|(at, value)| (part_name(class, at), self.copy_of(value)))
                    .collect();
                Some(Value::record(class, fields))
            }
            ("get", [of]) => {
                let list = named.template_list?;
                let at = parts(list).into_iter().next()?;
                let at = usize::try_from(self.eval(at, source).as_int()?).ok()?;
                match &of.value {
                    Value::Record(record) if is_tuple(&record.class) => {
                        Some(record.fields.get(at)?.1.clone())
                    }
                    Value::Array(values) => values.get(at).cloned(),
                    _ => None,
                }
            }
            ("make_unique" | "make_shared", _) => {
                let list = named.template_list?;
                let ty = parts(list).into_iter().next()?;
                // An array.
                if ty.field(Field::Declarator).is_some() {
                    return None;
                }
                let kept = self.held_by_type(ty, source, 0);
                let value = match kept {
                    LibraryType::Other => Value::Unknown,
                    kept => self.standard_object(&kept, arguments, false, source),
                };
                let ty = match &kept_number(&value) {
                    Some(ty) => ty.clone(),
                    None => Type::Unknown(String::new()),
                };
                Some(Value::Address(self.temporary(ty, value)))
            }
            ("async", _) => {
                self.started(arguments, source);
                Some(Value::Unknown)
            }
            ("make_optional", [one]) => {
                let fields = vec![
                    ("has".to_owned(), Value::TRUE),
                    ("value".to_owned(), one.value.clone()),
                ];
                Some(Value::record(OPTIONAL, fields))
            }
            _ => None,
        }
    }

    /// `std::get<1>(tuple)` as a place.
    pub(super) fn part_place(&mut self, call: Node, source: Source) -> Option<Place> {
        self.running.as_ref()?;
        let (name, list) = name_of_function(call.field(Field::Function)?);
        if text(name, source) != "get" || self.index.by_name.contains_key("get") {
            return None;
        }
        let at = parts(list?).into_iter().next()?;
        let at = usize::try_from(self.eval(at, source).as_int()?).ok()?;
        let of = parts(call.field(Field::Arguments)?).into_iter().next()?;
        let mut place = self.place(of, source)?;
        match self.read(&place) {
            Value::Record(record) if is_tuple(&record.class) => {
                place.path.push(field(&record.fields.get(at)?.0));
                Some(place)
            }
            _ => None,
        }
    }

    /// `std::tie(a, b) = value`.
    pub(super) fn tied(&mut self, left: Node, value: &Value, source: Source) -> Option<()> {
        self.running.as_ref()?;
        let function = left.field(Field::Function)?;
        if !matches!(text(function, source), "std::tie" | "tie") {
            return None;
        }
        let all = parts(left.field(Field::Arguments)?);
        for (at, node) in all.into_iter().enumerate() {
            let part = match value {
                Value::Record(record) => record.fields.get(at).map(|(_, value)| value.clone()),
                _ => None,
            };
            if let Some(place) = self.place(node, source) {
                self.assign(&place, part.unwrap_or(Value::Unknown));
            }
        }
        Some(())
    }

    /// What the elements of a container hold that a type names.
    pub(super) fn kept_by_elements(&mut self, ty: Node, source: Source) -> Option<Rc<LibraryType>> {
        self.running.as_ref()?;
        let first = parts(arguments_of_type(ty)?).into_iter().next()?;
        match self.held_by_type(first, source, 0) {
            LibraryType::Pointer | LibraryType::Other => None,
            kept => Some(Rc::new(kept)),
        }
    }

    /// An element as a container holds it, made of these.
    pub(super) fn element_made(
        &mut self,
        slot: usize,
        given: &[Argument],
        in_place: bool,
        source: Source,
    ) -> Option<Value> {
        let kept = self.slots.get(slot)?.kept.clone()?;
        Some(match given {
            [only] if !in_place => self.kept_as(&kept, only.value.clone(), source),
            given => self.standard_object(&kept, given, false, source),
        })
    }
}

/// `std::nullopt`.
pub(super) fn nothing() -> Value {
    Value::record(NOTHING, Vec::new())
}

/// Whether a record is a pair or a tuple.
fn is_tuple(class: &str) -> bool {
    matches!(class, "pair" | "tuple")
}

/// The name of a part of a pair or of a tuple.
fn part_name(class: &str, at: usize) -> String {
    match (class, at) {
        ("pair", 0) => "first".to_owned(),
        ("pair", _) => "second".to_owned(),
        _ => at.to_string(),
    }
}

fn field(name: &str) -> Step {
    Step::Field(name.to_owned())
}

fn kept_number(value: &Value) -> Option<Type> {
    match value {
        Value::Int(_, bits, signed) => Some(Type::Int {
            bits: *bits,
            signed: *signed,
        }),
        Value::Float(_, bits) => Some(Type::float(*bits)),
        _ => None,
    }
}

/// An object of the library with the type that it has.
fn library_record(
    class: &str,
    fields: Vec<(String, Value)>,
    numbers: Vec<(String, FieldNumber)>,
    kept: &LibraryType,
) -> Value {
    Value::Record(Rc::new(Record {
        numbers: Rc::new(numbers),
        kept: Some(Rc::new(kept.clone())),
        ..Record::new(class, fields)
    }))
}
