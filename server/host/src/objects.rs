//! Objects of classes: how they come about, their methods, structures by position and by name.

use std::rc::Rc;

use warplens_syntax::{Field, Kind, Node, has_word};

use super::arguments::{Argument, Named};
use super::containers::{has_container, whole};
use super::index::{class_name, declared_name, declares_function, plain};
use super::leaving::Thrown;
use super::library_types::Instance;
use super::nodes::{full_name, is_unused, parameter_list, parts, text};
use super::parameters::takes;
use super::state::{DEEPEST, Host};
use super::value::{Extent, FieldNumber, Place, Record, Step, Value};
use super::value::{joined, spelled};
use warplens_hir::Source;
use warplens_ir::{Bindings, Bound, Type};

/// Classes that one is derived from.
const MOST_BASES: usize = 16;

impl Instance {
    /// The class of a structure.
    pub(super) fn of(record: &Record) -> Instance {
        Instance {
            name: record.class.clone(),
            bindings: Rc::clone(&record.bindings),
        }
    }

    /// A class of which no template parameter is known.
    fn any(name: &str) -> Instance {
        Instance {
            name: name.to_owned(),
            bindings: Rc::default(),
        }
    }

    /// What the template parameters of a class represent in it.
    pub(super) fn bindings_of(&self, class: &str) -> Bindings {
        self.record(Vec::new()).bindings_in(class)
    }

    /// An object of it of which nothing is known but its class.
    pub(super) fn without_fields(&self) -> Value {
        Value::Record(Rc::new(self.record(Vec::new())))
    }

    /// A structure of it.
    fn record(&self, fields: Vec<(String, Value)>) -> Record {
        Record {
            class: self.name.clone(),
            fields,
            bindings: Rc::clone(&self.bindings),
            numbers: Rc::default(),
            kept: None,
        }
    }
}

impl<'p> Host<'p> {
    /// The class that a type names.
    pub(super) fn instance(&mut self, ty: Option<Node>, source: Source) -> Instance {
        let Some(ty) = ty else {
            return Instance::default();
        };
        let name = class_name(ty, &source.parsed.text);
        self.instantiated(&name, arguments_of_type(ty), source)
    }

    /// The class of that plain name; `list`: the arguments of its template.
    pub(super) fn instantiated(
        &mut self,
        name: &str,
        list: Option<Node>,
        source: Source,
    ) -> Instance {
        // In itself its name alone is the instance that is walked.
        let itself = self.frames.last().and_then(|frame| {
            let own = frame.class.as_deref() == Some(name);
            frame.this.clone().filter(|_| own && list.is_none())
        });
        if let Some(this) = itself
            && let Value::Record(record) = self.read(&this)
        {
            return Instance {
                name: name.to_owned(),
                bindings: Rc::clone(&record.bindings),
            };
        }
        let mut bindings = Vec::new();
        let explicit = match list {
            Some(list) if self.index.classes.contains_key(name) => {
                self.template_arguments(list, source)
            }
            _ => Vec::new(),
        };
        self.bind_class(name, &explicit, &mut bindings, &mut Vec::new());
        Instance {
            name: name.to_owned(),
            bindings: Rc::new(bindings),
        }
    }

    /// Binds the template parameters of a class and of those that it is derived from. `met`: those looked at so far; a base may have the
    /// plain name of its class in another namespace.
    fn bind_class(
        &mut self,
        name: &str,
        explicit: &[Option<Bound>],
        all: &mut Vec<(String, Bindings)>,
        met: &mut Vec<String>,
    ) {
        met.push(name.to_owned());
        let Some(class) = self.index.classes.get(name).copied() else {
            return;
        };
        let source = self.source_of(class.text);
        let mut own = Bindings::new();
        if let Some(template) = class.template {
            own = self
                .lowering
                .in_host(Vec::new(), &Bindings::new(), |lowering| {
                    lowering.host_bindings(template, explicit, &[], &[], source)
                });
            all.push((name.to_owned(), own.clone()));
        }
        for base in class.bases.map(parts).unwrap_or_default() {
            let name = plain(text(base, source));
            if met.len() >= MOST_BASES || met.contains(&name) {
                continue;
            }
            let explicit = match arguments_of_type(base) {
                Some(list) if self.index.classes.contains_key(&name) => {
                    self.under(own.clone(), source, |host| {
                        host.template_arguments(list, source)
                    })
                }
                _ => Vec::new(),
            };
            self.bind_class(&name, &explicit, all, met);
        }
    }

    /// What the template parameters represent in a member function of that class, called for that object.
    pub(super) fn bindings_in(&self, class: &str, this: &Place) -> Bindings {
        match self.read(this) {
            Value::Record(record) => record.bindings_in(class),
            _ => Bindings::new(),
        }
    }

    /// Does something where template parameters represent these.
    pub(super) fn under<T>(
        &mut self,
        bindings: Bindings,
        source: Source,
        act: impl FnOnce(&mut Self) -> T,
    ) -> T {
        if bindings.is_empty() {
            return act(self);
        }
        let mut frame = self.frame(String::new(), None, 0, source);
        frame.bindings = bindings;
        self.frames.push(frame);
        let result = act(self);
        self.frames.pop();
        result
    }

    /// What an object of a class is made of: where its constructors are read they may take it by reference.
    pub(super) fn given<'t>(
        &mut self,
        class: &Instance,
        list: Node<'t>,
        source: Source,
    ) -> Vec<Argument<'t>> {
        if self.index.classes.contains_key(&class.name) || class.name == "Buffer" {
            return self.arguments(list, source);
        }
        let values = parts(list)
            .into_iter()
            .map(|value| self.eval(value, source));
        values.map(Argument::of).collect()
    }

    pub(super) fn member_call(
        &mut self,
        node: Node,
        function: Node,
        named: &Named,
        arguments: &[Argument],
        source: Source,
    ) -> Value {
        let Some(object) = function.field(Field::Argument) else {
            return Value::Unknown;
        };
        let arrow = function
            .field(Field::Operator)
            .is_some_and(|operator| text(operator, source) == "->");
        let place = if object.kind() == Kind::This {
            self.frames.last().and_then(|frame| frame.this.clone())
        } else if arrow {
            match self.pointed_by(object, source) {
                Value::Address(place) => Some(place),
                _ => None,
            }
        } else {
            match self.place(object, source) {
                Some(place) => Some(place),
                None => Some(match self.eval(object, source) {
                    Value::Container(slot) => whole(slot),
                    value => self.temporary(Type::Unknown(String::new()), value),
                }),
            }
        };
        let value = place
            .as_ref()
            .map_or(Value::Unknown, |place| self.read(place));
        if let (Value::Reference(named), "get", []) = (&value, named.name.as_str(), arguments) {
            return self.read(named);
        }
        if let Some(found) = self.object_call(node, &value, &named.name, arguments, source) {
            return found;
        }
        let class = match &value {
            Value::Record(record) => record.class.clone(),
            _ if object.kind() == Kind::This => self
                .frames
                .last()
                .and_then(|frame| frame.class.clone())
                .unwrap_or_default(),
            _ => String::new(),
        };
        if let Value::Text(known) = &value
            && let Some(value) = self.text_method(known, &named.name, arguments)
        {
            return value;
        }
        if let (Value::Generator(_), Some(place)) = (&value, &place)
            && let Some(value) = self.generator_call(place.slot, &named.name, arguments)
        {
            return value;
        }
        if let Some(place) = &place
            && let Some(value) = self.standard_call(place, &value, &named.name, arguments, source)
        {
            return value;
        }
        if self.running.is_some()
            && let Some(place) = &place
            && let Some(value) = self.container_call(place, &value, &named.name, arguments, source)
        {
            return value;
        }
        // A member that holds what is called.
        if let (Some(place), Value::Record(_)) = (&place, &value) {
            let called = value.at(&Step::Field(named.name.clone()));
            if let Value::Function(_) | Value::Lambda(_) | Value::Bound(_) = called {
                return self
                    .call_value(&called, node, arguments, source)
                    .unwrap_or_else(|| {
                        self.forget_at(place);
                        self.forget_arguments(&named.name, arguments, source);
                        Value::Unknown
                    });
            }
        }
        if let Some(place) = &place {
            match (&value, named.name.as_str(), arguments) {
                (Value::Array(values), "size", []) => {
                    return Value::Int(values.len() as i64, 64, false);
                }
                (Value::Array(_), "data" | "begin", []) => return Value::Address(place.clone()),
                (Value::Array(values), "at", [index]) => {
                    let index = index
                        .value
                        .as_int()
                        .and_then(|index| usize::try_from(index).ok());
                    if index.is_some_and(|index| index >= values.len()) && self.is_container(place)
                    {
                        self.throw(Thrown::of_library("out_of_range"));
                        return Value::Unknown;
                    }
                    return value.at(&Step::Index(index));
                }
                (Value::Array(values), "push_back" | "emplace_back", [argument]) => {
                    let mut values = (**values).clone();
                    values.push(self.copy_of(argument.value.clone()));
                    self.write(place, Value::list(values));
                    return Value::Unknown;
                }
                (Value::Text(_), "c_str" | "data" | "str", []) => return value,
                (Value::Text(before), "append", [more]) => {
                    let more = self
                        .text_in(&more.value)
                        .map_or(Value::Unknown, Value::Text);
                    let after = joined(before, &spelled(&more, false));
                    self.write(place, after.clone());
                    return after;
                }
                (Value::Text(_), "str" | "assign", [text]) => {
                    let text = self
                        .text_in(&text.value)
                        .map_or(Value::Unknown, Value::Text);
                    self.write(place, text);
                    return Value::Unknown;
                }
                _ => {}
            }
            if !class.is_empty()
                && let Some(value) =
                    self.method(&class, &named.name, place, named, arguments, node, source)
            {
                return value;
            }
        }
        // A method that was not read: of an object that is not known any member function of that name.
        if class.is_empty()
            && value == Value::Unknown
            && let Some(value) = self.only_method(named, arguments, node, source)
        {
            return value;
        }
        let constant_method = matches!(
            named.name.as_str(),
            "size" | "data" | "get" | "c_str" | "begin" | "end" | "empty" | "length"
        );
        let reads = constant_method
            || matches!(
                named.name.as_str(),
                "at" | "front"
                    | "back"
                    | "capacity"
                    | "max_size"
                    | "count"
                    | "find"
                    | "contains"
                    | "reserve"
                    | "shrink_to_fit"
                    | "cbegin"
                    | "cend"
                    | "rbegin"
                    | "rend"
            );
        if let Some(place) = place
            && !constant_method
            && (value != Value::Unknown || self.is_container(&place))
        {
            self.forget_at(&place);
            if !reads {
                self.forget_length(&place);
            }
        }
        self.forget_arguments(&named.name, arguments, source);
        if constant_method || is_unused(node) {
            return Value::Unknown;
        }
        self.constant(node, source)
    }

    #[allow(clippy::too_many_arguments, reason = "a call is all of this")]
    pub(super) fn method(
        &mut self,
        class: &str,
        name: &str,
        this: &Place,
        named: &Named,
        arguments: &[Argument],
        node: Node,
        source: Source,
    ) -> Option<Value> {
        let named_so = self.index.by_name.get(name)?;
        let has = |class: &str| {
            let mut all = named_so.iter().map(|&at| &self.index.functions[at]);
            all.any(|function| function.class.as_deref() == Some(class) && !function.kernel)
        };
        // The class's own, or the first of its bases that has one.
        let holder = self
            .with_bases(class)
            .into_iter()
            .find(|class| has(class))?;
        let class = holder.as_str();
        let candidates: Vec<(Node, Option<Node>, Source)> = named_so
            .iter()
            .map(|&at| &self.index.functions[at])
            .filter(|function| function.class.as_deref() == Some(class) && !function.kernel)
            .map(|function| {
                let own = self.source_in(function);
                (function.node, function.template, own)
            })
            .collect();
        let bindings = self.bindings_in(class, this);
        let at = self.best(&candidates, arguments, &bindings, source)?;
        let (definition, template, own) = candidates[at];
        Some(self.invoke(
            definition,
            template,
            own,
            Some(class.to_owned()),
            Some(this.clone()),
            named,
            arguments,
            node,
            source,
        ))
    }

    /// A class and those that it is derived from, the nearest first.
    pub(super) fn with_bases(&self, class: &str) -> Vec<String> {
        let mut all = vec![class.to_owned()];
        let mut at = 0;
        while let Some(class) = all.get(at).filter(|_| all.len() < MOST_BASES) {
            let known = self.index.classes.get(class);
            if let Some(list) = known.and_then(|known| known.bases.map(|list| (known, list))) {
                let (known, list) = list;
                let source = self.source_of(known.text);
                let names = parts(list)
                    .into_iter()
                    .map(|base| plain(text(base, source)));
                let new: Vec<String> = names
                    .filter(|name| self.index.classes.contains_key(name) && !all.contains(name))
                    .collect();
                all.extend(new);
            }
            at += 1;
        }
        all
    }

    /// The member function of that name, where the file has one only and it leads to a launch.
    fn only_method(
        &mut self,
        named: &Named,
        arguments: &[Argument],
        node: Node,
        source: Source,
    ) -> Option<Value> {
        let all = self.index.by_name.get(&named.name)?;
        let [at] = all.as_slice() else { return None };
        let function = &self.index.functions[*at];
        if !function.leads_to_launch || !takes(function.node, arguments.len(), source) {
            return None;
        }
        let class = function.class.clone()?;
        let place = self.temporary(Type::Unknown(String::new()), Value::Unknown);
        let value = self.any_object(&class, place.slot);
        self.slots[place.slot].value = value;
        self.method(&class, &named.name, &place, named, arguments, node, source)
    }

    pub(super) fn field_initializers(&mut self, list: Node, source: Source) {
        let Some(this) = self.frames.last().and_then(|frame| frame.this.clone()) else {
            return;
        };
        for initializer in parts(list) {
            let all = parts(initializer);
            let [name, values, ..] = all.as_slice() else {
                continue;
            };
            let name = text(*name, source).to_owned();
            // A class that this one is derived from, or the class itself for another of its constructors.
            let class = plain(&name);
            if self.running.is_some() && self.index.classes.contains_key(&class) {
                let class = match self.read(&this) {
                    Value::Record(own) => Instance {
                        name: class,
                        ..Instance::of(&own)
                    },
                    _ => Instance::any(&class),
                };
                let given = self.given(&class, *values, source);
                let base = self.temporary(Type::Unknown(String::new()), Value::Unknown);
                let made = self.constructed(&class, &given, false, base.slot, source);
                if let (Value::Record(made), Value::Record(own)) = (made, self.read(&this)) {
                    let mut own = (*own).clone();
                    for (name, value) in &made.fields {
                        own.set(name, value.clone());
                    }
                    self.write(&this, Value::Record(Rc::new(own)));
                }
                continue;
            }
            let mut place = this.clone();
            place.path.push(Step::Field(name.clone()));
            let before = self.read(&place);
            if self.running.is_some() && self.is_reference_member(&this, &name) {
                let given = self.arguments(*values, source).into_iter().next();
                let named = given.and_then(|given| given.place);
                self.write(&place, named.map_or(Value::Unknown, Value::Reference));
                continue;
            }
            if let Value::Container(slot) = before {
                let given = self.arguments(*values, source);
                if values.kind() == Kind::InitializerList {
                    let elements = given.into_iter().map(|one| one.value).collect();
                    self.assign(&whole(slot), Value::list(elements));
                } else {
                    self.fill_container(slot, &given);
                }
                continue;
            }
            if let (Some(_), Value::Record(field)) = (&self.running, &before)
                && self.index.classes.contains_key(&field.class)
            {
                let class = Instance::of(field);
                let given = self.given(&class, *values, source);
                let made = self.temporary(Type::Unknown(String::new()), Value::Unknown);
                let value = self.constructed(&class, &given, false, made.slot, source);
                self.write(&place, value);
                continue;
            }
            let values: Vec<Value> = parts(*values)
                .into_iter()
                .map(|value| self.eval(value, source))
                .collect();
            let value = match (before, values.as_slice()) {
                (Value::Dims(_), values) => Value::Dims(Value::list(values.to_vec()).extents()),
                (_, [value]) => value.clone(),
                _ => Value::Unknown,
            };
            self.write(&place, value);
        }
    }

    /// A new object of a class: fields with their initial values, then what its constructor makes of them.
    pub(super) fn constructed(
        &mut self,
        class: &Instance,
        given: &[Argument],
        braces: bool,
        slot: usize,
        source: Source,
    ) -> Value {
        let values: Vec<Value> = given.iter().map(|one| one.value.clone()).collect();
        match class.name.as_str() {
            "dim3" | "NDRange" => {
                if let [only @ (Value::Dims(_) | Value::Record(_))] = values.as_slice() {
                    return Value::Dims(only.extents());
                }
                return Value::Dims(Value::list(values).extents());
            }
            "EnqueueArgs" => return Host::enqueue_arguments(&values),
            "Buffer" if self.running.is_some() && !self.index.classes.contains_key("Buffer") => {
                return self.opencl_buffer(given, source);
            }
            "Kernel" | "KernelFunctor" | "make_kernel" => {
                if let [_, name, ..] = values.as_slice()
                    && let Some(name) = self.whole_text_in(name)
                {
                    return self.kernel_object(&name);
                }
                return match values.as_slice() {
                    [only] => only.clone(),
                    _ => Value::Unknown,
                };
            }
            // In which order they have what is because of their elements.
            "set" | "unordered_set" | "multiset" | "unordered_multiset" | "priority_queue"
                if self.running.is_some() =>
            {
                return Value::Unknown;
            }
            // What a file holds is not known, and it is no text by its name.
            "ifstream" | "ofstream" | "fstream" if self.running.is_some() => {
                return Value::Unknown;
            }
            "string" | "stringstream" | "ostringstream" | "istringstream" => {
                return self.made_text(&values).unwrap_or(Value::Unknown);
            }
            "cudaLaunchConfig_t" | "hipLaunchConfig_t" => {
                return self.by_position(class, values);
            }
            _ => {}
        }
        if let Some(value) = self.generator_object(&class.name, &values, slot) {
            return value;
        }
        if !self.index.classes.contains_key(&class.name) {
            // A thread, a reader: it may write through the pointers that it is given.
            if self.running.is_some() && !only_holds(&class.name) {
                for value in &values {
                    self.forget_pointed(value, 0);
                }
            }
            return match values.as_slice() {
                [] if matches!(class.name.as_str(), "unique_ptr" | "shared_ptr") => {
                    Value::Int(0, 64, true)
                }
                [] => Value::Unknown,
                // Of a structure that was not read, or of a number.
                [Value::Int(0, ..)] if braces => Value::list(values),
                [only] => only.clone(),
                _ => Value::list(values),
            };
        }
        if self.is_specialised(&class.name) {
            return Value::Unknown;
        }
        if let [copy @ Value::Record(record)] = values.as_slice()
            && record.class == class.name
        {
            return self.copy_of(copy.clone());
        }
        let fields = self.initial_fields(class);
        let place = Place {
            slot,
            path: Vec::new(),
        };
        let constructors: Vec<(Node, Option<Node>, Source)> = self
            .index
            .by_name
            .get(&class.name)
            .into_iter()
            .flatten()
            .map(|&at| &self.index.functions[at])
            .filter(|function| function.class.as_ref() == Some(&class.name))
            .map(|function| {
                let own = self.source_in(function);
                (function.node, function.template, own)
            })
            .collect();
        if constructors.is_empty() {
            if values.is_empty() {
                return fields;
            }
            return if braces {
                self.by_position(class, values)
            } else {
                Value::Unknown
            };
        }
        self.slots[slot].value = fields;
        let bindings = self.bindings_in(&class.name, &place);
        let Some(at) = self.best(&constructors, given, &bindings, source) else {
            // A member that the list of its class's constructor gives its values.
            return if given.is_empty() && self.running.is_some() {
                self.read(&place)
            } else {
                Value::Unknown
            };
        };
        let named = Named {
            name: class.name.clone(),
            template_list: None,
            template_args: Vec::new(),
            scope: None,
        };
        let (definition, template, own) = constructors[at];
        self.invoke(
            definition,
            template,
            own,
            Some(class.name.clone()),
            Some(place.clone()),
            &named,
            given,
            definition,
            own,
        );
        self.read(&place)
    }

    /// An object whose origin is not known: what every constructor leaves alike and no other
    /// function changes.
    pub(super) fn any_object(&mut self, class: &str, slot: usize) -> Value {
        let fields = self.initial_fields(&Instance::any(class));
        let constructors: Vec<(Node<'p>, Source<'p>)> = self
            .index
            .by_name
            .get(class)
            .into_iter()
            .flatten()
            .map(|&at| &self.index.functions[at])
            .filter(|function| function.class.as_deref() == Some(class))
            .map(|function| (function.node, self.source_in(function)))
            .collect();
        let mut joined: Option<Value> = None;
        if constructors.is_empty() {
            joined = Some(fields.clone());
        }
        for (constructor, source) in constructors.iter().take(4) {
            let source = *source;
            self.slots[slot].value = fields.clone();
            let place = Place {
                slot,
                path: Vec::new(),
            };
            let mut frame = self.frame(
                full_name(Some(class), class),
                Some(class.to_owned()),
                constructor.start_byte(),
                source,
            );
            frame.this = Some(place.clone());
            self.frames.push(frame);
            self.beside += 1;
            if let Some(frame) = self.frames.last_mut() {
                frame.beside += 1;
            }
            for parameter in parameter_list(*constructor).map(parts).unwrap_or_default() {
                self.unbound_parameter(parameter, source);
            }
            self.perhaps(|host| host.body_of(*constructor, source));
            self.beside -= 1;
            let value = self.read(&place);
            joined = Some(match joined {
                Some(before) => before.join(&value),
                None => value,
            });
        }
        let Some(Value::Record(record)) = joined else {
            return Value::Unknown;
        };
        let mut record = (*record).clone();
        let numbers = Rc::clone(&record.numbers);
        for (name, value) in &mut record.fields {
            // Of others nothing would be known.
            let number = || numbers.iter().any(|(number, _)| number == name);
            if *value == Value::Unknown && !number() {
                continue;
            }
            // What more than the constructors change. The declaration's `=` is not a change.
            let changed = constructors.iter().map(|(node, _)| node.byte_range());
            let variables = self.index.variables.get(name).into_iter().flatten();
            let declarations = variables.map(|variable| variable.declaration.byte_range());
            let skipped: Vec<_> = changed.chain(declarations).collect();
            *value = self.agreed(name, Some(class), value, &skipped);
        }
        Value::Record(Rc::new(record))
    }

    /// The fields of a class with their default initialisers.
    fn initial_fields(&mut self, class: &Instance) -> Value {
        if matches!(
            class.name.as_str(),
            "cudaLaunchAttribute" | "hipLaunchAttribute"
        ) {
            return launch_attribute(&class.name);
        }
        let Some(known) = self.index.classes.get(&class.name).copied() else {
            return Value::Unknown;
        };
        // Of which definition an object is.
        if self.is_specialised(&class.name) {
            return Value::Unknown;
        }
        let (body, source) = (known.body, self.source_of(known.text));
        let mut record = class.record(Vec::new());
        let bindings = record.bindings_in(&class.name);
        let mut numbers: Vec<(String, FieldNumber)> = Vec::new();
        for base in self.with_bases(&class.name).into_iter().skip(1) {
            let own = if self.running.is_some() && self.depth < DEEPEST / 2 {
                // Classes of one plain name in several namespaces may be bases of each other.
                self.depth += DEEPEST / 8;
                let own = self.initial_fields(&Instance {
                    name: base.clone(),
                    bindings: Rc::clone(&class.bindings),
                });
                self.depth -= DEEPEST / 8;
                own
            } else {
                Value::Unknown
            };
            if let Value::Record(fields) = own {
                numbers.extend(fields.numbers.iter().cloned());
                // What its constructor makes of them is not known, where none is called by name.
                let constructed = self.running.is_some() && self.has_constructor(&base);
                let fields = fields.fields.iter().map(|(name, value)| match value {
                    Value::Container(slot) if constructed => {
                        self.slots[*slot].value = Value::Unknown;
                        (name.clone(), value.clone())
                    }
                    _ if constructed => (name.clone(), Value::Unknown),
                    _ => (name.clone(), value.clone()),
                });
                record.fields.extend(fields);
            }
        }
        for member in parts(body) {
            if member.kind() != Kind::FieldDeclaration || text(member, source).starts_with("static")
            {
                continue;
            }
            let declarators: Vec<Node> = member.fields(Field::Declarator).collect();
            for declarator in declarators {
                if declares_function(declarator) {
                    continue;
                }
                let name = text(declared_name(declarator), source).to_owned();
                let value = if self.depth > DEEPEST / 2 {
                    (None, Value::Unknown)
                } else {
                    self.depth += 8;
                    let slot = self.under(bindings.clone(), source, |host| {
                        host.declare(member, declarator, source)
                    });
                    self.depth -= 8;
                    match slot {
                        Some(slot) if self.running.is_some() && self.is_container(&whole(slot)) => {
                            (None, Value::Container(slot))
                        }
                        Some(slot) => {
                            let slot = &self.slots[slot];
                            (Some(slot.ty.clone()), slot.value.clone())
                        }
                        None => (None, Value::Unknown),
                    }
                };
                // It hides one of that name in a class that this one is derived from.
                record.fields.retain(|(hidden, _)| *hidden != name);
                numbers.retain(|(hidden, _)| *hidden != name);
                let (ty, value) = value;
                if let Some(number) = self.number_of_field(declarator, ty, source) {
                    numbers.push((name.clone(), number));
                }
                record.fields.push((name, value));
            }
        }
        record.numbers = Rc::new(numbers);
        Value::Record(Rc::new(record))
    }

    /// The type of a member that is a number, in the width that a bit-field has.
    fn number_of_field(
        &mut self,
        declarator: Node,
        ty: Option<Type>,
        source: Source,
    ) -> Option<FieldNumber> {
        let ty = ty.filter(|ty| matches!(ty, Type::Int { .. } | Type::Float { .. }))?;
        let clause = declarator.next_named_sibling();
        let clause = clause.filter(|clause| clause.kind() == Kind::BitfieldClause);
        let (Some(clause), Type::Int { bits, .. }) = (clause, &ty) else {
            return Some(FieldNumber { ty, width: None });
        };
        let width = parts(clause).into_iter().next()?;
        let width = u8::try_from(self.eval(width, source).as_int()?).ok()?;
        let width = Some(width.clamp(1, *bits));
        Some(FieldNumber { ty, width })
    }

    /// Whether a class has several definitions, of which its name alone says none.
    fn is_specialised(&self, class: &str) -> bool {
        self.running.is_some() && self.index.specialised.contains_key(class)
    }

    /// Whether a member of an object is declared as a reference.
    fn is_reference_member(&self, this: &Place, name: &str) -> bool {
        let Value::Record(record) = self.read(this) else {
            return false;
        };
        self.with_bases(&record.class).iter().any(|class| {
            let Some(known) = self.index.classes.get(class) else {
                return false;
            };
            let source = self.source_of(known.text);
            let members = parts(known.body).into_iter();
            members
                .filter(|member| member.kind() == Kind::FieldDeclaration)
                .flat_map(|member| member.fields(Field::Declarator).collect::<Vec<_>>())
                .any(|declarator| {
                    declarator.kind() == Kind::ReferenceDeclarator
                        && text(declared_name(declarator), source) == name
                })
        })
    }

    fn has_constructor(&self, class: &str) -> bool {
        let all = self.index.by_name.get(class).into_iter().flatten();
        let mut all = all.map(|&at| &self.index.functions[at]);
        all.any(|function| function.class.as_deref() == Some(class))
    }

    /// Whether a class says itself what a copy of an object is.
    pub(super) fn copies_by_itself(&self, class: &str) -> bool {
        let all = self.index.by_name.get(class).into_iter().flatten();
        let mut all = all.map(|&at| &self.index.functions[at]);
        all.any(|function| {
            let source = self.source_of(function.text);
            let parameters = parameter_list(function.node).map(parts).unwrap_or_default();
            let takes_one = matches!(parameters.as_slice(), [only] if {
                let declared = text(*only, source);
                declared.contains('&') && !declared.contains("&&") && has_word(declared, class)
            });
            function.class.as_deref() == Some(class)
                && takes_one
                && function.node.field(Field::Body).is_some()
        })
    }

    /// A list in braces as a structure: fields by position, the rest 0.
    pub(super) fn by_position(&mut self, class: &Instance, values: Vec<Value>) -> Value {
        let record = match class.name.as_str() {
            "cudaLaunchConfig_t" | "hipLaunchConfig_t" => {
                let extents = Value::Dims(Extent::ONES);
                let zero = Value::Int(0, 64, false);
                let shared = if values.is_empty() {
                    Value::Unknown
                } else {
                    zero
                };
                let fields = [
                    ("gridDim", extents.clone()),
                    ("blockDim", extents),
                    ("dynamicSmemBytes", shared),
                    ("stream", Value::Unknown),
                    ("attrs", Value::Unknown),
                    ("numAttrs", Value::Unknown),
                ];
                class.record(
                    fields
                        .map(|(name, value)| (name.to_owned(), value))
                        .to_vec(),
                )
            }
            _ => match self.initial_fields(class) {
                Value::Record(record) => (*record).clone(),
                _ => return Value::list(values),
            },
        };
        self.positioned(record, values)
    }

    /// The same, from a structure as it is made.
    fn positioned(&mut self, mut record: Record, values: Vec<Value>) -> Value {
        // `= {0}` sets the first field and leaves `dim3` as its constructor makes it.
        let zero = matches!(values.as_slice(), [Value::Int(0, ..)]);
        let numbers = Rc::clone(&record.numbers);
        for ((name, field), value) in record.fields.iter_mut().zip(values) {
            match field {
                Value::Dims(_) if zero => {}
                Value::Dims(_) => *field = Value::Dims(value.extents()),
                Value::Container(slot) => self.assign(&whole(*slot), value),
                Value::Record(inner) => {
                    let class = Instance::of(inner);
                    *field = match value {
                        Value::Array(values) => self.by_position(&class, (*values).clone()),
                        value => value,
                    };
                }
                _ => {
                    let number = numbers.iter().find(|(of, _)| of == name);
                    *field = match number {
                        Some((_, number)) => number.held(value),
                        None => value,
                    };
                }
            }
        }
        Value::Record(Rc::new(record))
    }

    /// A list of lists in braces as an array of structures.
    pub(super) fn elements_by_position(&mut self, class: &Instance, value: Value) -> Value {
        let Value::Array(elements) = value else {
            return value;
        };
        // Each begins alike, but containers are its own.
        let first = match self.initial_fields(class) {
            Value::Record(first) if !has_container(&first) => Some(first),
            _ => None,
        };
        let elements = elements.iter().map(|element| match (element, &first) {
            (Value::Array(values), Some(first)) => {
                self.positioned((**first).clone(), (**values).clone())
            }
            (Value::Array(values), None) => self.by_position(class, (**values).clone()),
            (element, _) => element.clone(),
        });
        Value::list(elements.collect())
    }

    /// `{.gridDim = …}` as a structure: what the list leaves out has its initial value.
    pub(super) fn completed(&mut self, class: &Instance, value: Value) -> Value {
        let Value::Record(named) = &value else {
            return value;
        };
        // What a list leaves out of a structure of C is 0.
        let rest = match class.name.as_str() {
            "cudaLaunchConfig_t" | "hipLaunchConfig_t" => vec![Value::int(0)],
            _ => Vec::new(),
        };
        let all = self.by_position(class, rest);
        let Value::Record(all) = all else {
            return value;
        };
        let mut all = (*all).clone();
        for (name, value) in &named.fields {
            match all.fields.iter_mut().find(|(of, _)| of == name) {
                Some((_, field @ Value::Dims(_))) => *field = Value::Dims(value.extents()),
                Some((_, Value::Container(slot))) => self.assign(&whole(*slot), value.clone()),
                _ => all.set(name, value.clone()),
            }
        }
        Value::Record(Rc::new(all))
    }
}

/// Classes of the standard library whose objects write nothing through pointers that they are made of; a number is none.
fn only_holds(class: &str) -> bool {
    matches!(
        class,
        "" | "string"
            | "string_view"
            | "pair"
            | "tuple"
            | "complex"
            | "bitset"
            | "ofstream"
            | "fstream"
            | "ifstream"
            | "map"
            | "set"
            | "unordered_map"
            | "unordered_set"
            | "vector"
            | "array"
            | "deque"
            | "list"
            | "host_vector"
            | "device_vector"
            | "device_ptr"
            | "runtime_error"
            | "logic_error"
            | "function"
            | "unique_ptr"
            | "shared_ptr"
            | "optional"
            | "time_point"
            | "duration"
    )
}

/// The list of arguments in a type that is an instance of a template.
pub(super) fn arguments_of_type(ty: Node<'_>) -> Option<Node<'_>> {
    let mut node = ty;
    for _ in 0..4 {
        if node.kind() == Kind::TemplateType {
            return node.field(Field::Arguments);
        }
        node = node.field(Field::Name)?;
    }
    None
}

/// Of an attribute's values: whether the launch may begin early (CUDA Runtime API, `cudaLaunchAttributeValue`).
pub(super) const PROGRAMMATIC: &str = "programmaticStreamSerializationAllowed";

/// An attribute of a launch before it is set: of its values the blocks of a cluster are followed, and whether it begins early.
fn launch_attribute(class: &str) -> Value {
    let cluster = ("clusterDim".to_owned(), Value::Dims(Extent::ONES));
    let early = (PROGRAMMATIC.to_owned(), Value::int(0));
    let value = Value::record("", vec![cluster, early]);
    let id = ("id".to_owned(), Value::Unknown);
    Value::record(class, vec![id, ("val".to_owned(), value)])
}
