//! Functions that host functions call: those of the file and its headers are walked with the values of the
//! call, what is not known may change whatever it is given to change.

use std::rc::Rc;
use std::sync::Arc;

use warplens_syntax::{Expanded, Node};

use super::evaluate::name_of_function;
use super::index::{declared_name, plain};
use super::state::{DEEPEST, Frame, Host};
use super::value::{Lambda, Meaning, Place, Record, Scope, Step, Value, library};
use super::walk::{parts, text};
use crate::Type;
use crate::lower::Source;
use crate::outline::function_declarator;
use crate::types::{Bindings, Bound};
use crate::unit::node_ending;

/// Calls nest this deep at most.
const DEEPEST_CALLS: usize = 7;
/// Headers that are searched for the declaration of a function.
const MOST_HEADERS: usize = 200;
/// A header larger than this is not searched.
const LARGEST_HEADER: usize = 400_000;

/// An argument of a call.
pub(super) struct Argument<'t> {
    pub(super) value: Value,
    pub(super) place: Option<Place>,
    pub(super) node: Option<Node<'t>>,
}

/// How a call names its function.
struct Named<'t> {
    name: String,
    template_list: Option<Node<'t>>,
    /// `a::b`.
    scope: Option<String>,
}

impl<'p> Host<'p> {
    /// Walks a function for itself: nothing is known of its parameters.
    pub(super) fn walk_root(&mut self, at: usize) {
        let function = &self.index.functions[at];
        let (node, class) = (function.node, function.class.clone());
        let name = full_name(class.as_deref(), &function.name);
        self.entered.insert(node.start_byte());
        let parsed = self.parsed;
        let source = Source::host(parsed, false);
        let mut frame = self.frame(name, class.clone(), node.start_byte(), source);
        frame.mark = 0;
        self.frames.push(frame);
        if let Some(class) = class
            && self.index.classes.contains_key(&class)
        {
            let place = self.temporary(Type::Unknown(String::new()), Value::Unknown);
            let value = self.any_object(&class, place.slot, source);
            self.slots[place.slot].value = value;
            if let Some(frame) = self.frames.last_mut() {
                frame.this = Some(place);
            }
        }
        if let Some(list) = parameter_list(node) {
            for parameter in parts(list) {
                self.unbound_parameter(parameter, source);
            }
        }
        if let Some(body) = node.child_by_field_name("body") {
            self.statement(body, source);
        }
        self.frames.pop();
    }

    fn frame(&self, name: String, class: Option<String>, start: usize, source: Source) -> Frame {
        Frame {
            name,
            class,
            scopes: vec![Scope::default()],
            bindings: Bindings::new(),
            this: None,
            result: None,
            returns: Vec::new(),
            mark: self.mark(),
            beside: self.beside,
            own_call: None,
            identity: (Arc::as_ptr(source.parsed) as usize, start),
        }
    }

    fn unbound_parameter(&mut self, parameter: Node, source: Source) {
        let Some(declarator) = parameter.child_by_field_name("declarator") else {
            return;
        };
        let ty = self.declared_type(parameter.child_by_field_name("type"), declarator, source);
        let slot = self.slot(ty, Value::Unknown, false);
        // By type it is a pointer, not an array.
        self.slots[slot].decays = false;
        self.bind(text(declared_name(declarator), source), Meaning::Slot(slot));
    }

    // ---- calls ---------------------------------------------------------------------------------

    /// A call: a launch, a function that is walked, one that is known, or one that is not.
    pub(super) fn call(&mut self, node: Node, source: Source) -> Value {
        let (Some(function), Some(list)) = (
            node.child_by_field_name("function"),
            node.child_by_field_name("arguments"),
        ) else {
            for part in parts(node) {
                self.eval(part, source);
            }
            return Value::Unknown;
        };
        let mut cursor = node.walk();
        let config = node
            .children(&mut cursor)
            .find(|child| child.kind() == "kernel_call_syntax");
        if let Some(config) = config {
            self.launch(node, function, config, list, source);
            return Value::Unknown;
        }
        let arguments = self.arguments(list, source);
        let (name_node, template_list) = name_of_function(function);
        let named = Named {
            name: text(name_node, source).trim().to_owned(),
            template_list,
            scope: function
                .child_by_field_name("scope")
                .filter(|_| function.kind() == "qualified_identifier")
                .map(|scope| plain(text(scope, source))),
        };
        if function.kind() == "field_expression" {
            return self.member_call(node, function, &named, &arguments, source);
        }
        if function.kind() == "lambda_expression" || function.kind() == "call_expression" {
            if let Value::Lambda(lambda) = self.eval(function, source) {
                return self
                    .call_lambda(&lambda.0, Some(&arguments))
                    .unwrap_or(Value::Unknown);
            }
            self.forget_arguments("", &arguments, source);
            return Value::Unknown;
        }
        // A variable that holds what is called.
        if matches!(
            function.kind(),
            "identifier" | "parenthesized_expression" | "subscript_expression"
        ) && let Some(place) = self.place(function, source)
        {
            match self.read(&place) {
                Value::Lambda(lambda) => {
                    if let Some(value) = self.call_lambda(&lambda.0, Some(&arguments)) {
                        return value;
                    }
                }
                Value::Record(record) => {
                    let class = record.class.clone();
                    if let Some(value) = self.method(
                        &class,
                        "operator()",
                        &place,
                        &named,
                        &arguments,
                        node,
                        source,
                    ) {
                        return value;
                    }
                }
                _ => {}
            }
            self.forget_arguments(&named.name, &arguments, source);
            return Value::Unknown;
        }
        if let Some(value) = self.api_call(node, &named.name, &arguments, source) {
            return value;
        }
        if named.name.ends_with("_cast")
            && let (Some(list), [argument]) = (template_list, arguments.as_slice())
        {
            let value = argument.value.clone();
            return match parts(list).into_iter().next() {
                Some(ty) if named.name == "static_cast" => self.cast(value, ty, source),
                _ => value,
            };
        }
        if let Some(value) = self.conversion(function, &named, &arguments, source) {
            return value;
        }
        if let Some(value) = self.call_named(node, &named, &arguments, source) {
            return value;
        }
        let values: Vec<Value> = arguments
            .iter()
            .map(|argument| argument.value.clone())
            .collect();
        if let Some(value) = library(&named.name, &values) {
            return match (template_list, value) {
                // `std::min<int>(a, b)`.
                (Some(list), value @ (Value::Int(..) | Value::Float(..)))
                    if matches!(named.name.as_str(), "min" | "max") =>
                {
                    match parts(list).into_iter().next() {
                        Some(ty) => self.cast(value, ty, source),
                        None => value,
                    }
                }
                (_, value) => value,
            };
        }
        let value = self.constant(node, source);
        self.forget_arguments(&named.name, &arguments, source);
        value
    }

    pub(super) fn arguments<'t>(&mut self, list: Node<'t>, source: Source) -> Vec<Argument<'t>> {
        let mut all = Vec::new();
        for node in parts(list) {
            if node.kind() == "parameter_pack_expansion"
                && let Some(pack) = self.pack(node, source)
            {
                for slot in pack.iter().copied() {
                    let place = Place {
                        slot,
                        path: Vec::new(),
                    };
                    all.push(Argument {
                        value: self.read(&place),
                        place: Some(place),
                        node: None,
                    });
                }
                continue;
            }
            let place = match node.kind() {
                "identifier" | "field_expression" | "subscript_expression" => {
                    self.place(node, source)
                }
                _ => None,
            };
            let value = self.eval(node, source);
            all.push(Argument {
                value,
                place,
                node: Some(node),
            });
        }
        all
    }

    /// The variables of `args...` and `std::forward<Args>(args)...`.
    fn pack(&mut self, node: Node, source: Source) -> Option<Rc<Vec<usize>>> {
        let mut open = parts(node);
        while let Some(part) = open.pop() {
            if part.kind() == "identifier"
                && let Some(place) = self.place_named(text(part, source))
                && let Value::Pack(slots) = self.read(&place)
            {
                return Some(slots);
            }
            if self.spent() {
                return None;
            }
            open.extend(parts(part));
        }
        None
    }

    /// The type of an argument.
    pub(super) fn argument_type(&mut self, argument: &Argument, source: Source) -> Option<Type> {
        let ty = match (argument.node, &argument.place) {
            (Some(node), _) => self.type_of(node, &argument.value, source),
            (None, Some(place)) => self.slots[place.slot].ty.clone(),
            (None, None) => return None,
        };
        (!matches!(ty, Type::Unknown(_) | Type::Void)).then_some(ty)
    }

    /// `dim3(…)`, `int(…)`, `Config(…)`.
    fn conversion(
        &mut self,
        function: Node,
        named: &Named,
        arguments: &[Argument],
        source: Source,
    ) -> Option<Value> {
        let values = || {
            arguments
                .iter()
                .map(|argument| argument.value.clone())
                .collect()
        };
        if matches!(
            named.name.as_str(),
            "dim3" | "NDRange" | "Kernel" | "string"
        ) || self.index.classes.contains_key(&named.name)
        {
            let place = self.temporary(Type::Unknown(String::new()), Value::Unknown);
            let value = self.constructed(&named.name, values(), false, place.slot, source);
            return Some(value);
        }
        if function.kind() == "primitive_type" || function.kind() == "sized_type_specifier" {
            return match arguments {
                [argument] => Some(self.cast(argument.value.clone(), function, source)),
                _ => Some(Value::Unknown),
            };
        }
        if let [argument] = arguments
            && matches!(function.kind(), "identifier" | "qualified_identifier")
            && !self.index.by_name.contains_key(&named.name)
            && matches!(argument.value, Value::Int(..) | Value::Float(..))
            && let Some(ty @ (Type::Int { .. } | Type::Float { .. })) =
                self.lowering.host_type_named(&named.name)
        {
            return Some(argument.value.clone().converted(&ty));
        }
        None
    }

    /// A function of the file or of a header; `None` where it is not walked.
    fn call_named(
        &mut self,
        node: Node,
        named: &Named,
        arguments: &[Argument],
        source: Source,
    ) -> Option<Value> {
        let class = self.frames.last().and_then(|frame| frame.class.clone());
        let own: Vec<usize> = self
            .index
            .by_name
            .get(&named.name)
            .map(|all| {
                all.iter()
                    .copied()
                    .filter(|&at| {
                        let function = &self.index.functions[at];
                        !function.kernel
                            && match &function.class {
                                None => true,
                                // A namespace that a definition names, or the class it is called in.
                                Some(of) => {
                                    Some(of) == class.as_ref()
                                        || named.scope.as_ref() == Some(of)
                                        || !self.index.classes.contains_key(of)
                                }
                            }
                    })
                    .collect()
            })
            .unwrap_or_default();
        let parsed = self.parsed;
        if !own.is_empty() {
            let at = self.best(
                &own.iter()
                    .map(|&at| {
                        let function = &self.index.functions[at];
                        (
                            function.node,
                            function.template,
                            Source::host(parsed, false),
                        )
                    })
                    .collect::<Vec<_>>(),
                arguments,
                source,
            )?;
            let function = &self.index.functions[own[at]];
            let (definition, template) = (function.node, function.template);
            let callee_class = function.class.clone();
            let this = callee_class
                .as_ref()
                .filter(|of| Some(*of) == class.as_ref())
                .and_then(|_| self.frames.last().and_then(|frame| frame.this.clone()));
            return Some(self.invoke(
                definition,
                template,
                Source::host(parsed, false),
                callee_class,
                this,
                named,
                arguments,
                node,
                source,
            ));
        }
        // Functions of headers.
        let found: Vec<_> = self
            .unit
            .functions(&named.name)
            .into_iter()
            .filter(|definition| definition.header)
            .take(16)
            .collect();
        if found.is_empty() {
            return None;
        }
        let candidates: Vec<(Node, Option<Node>, Source)> = found
            .iter()
            .filter_map(|definition| {
                let node = definition.node(&["function_definition"])?;
                Some((
                    node,
                    template_of(node),
                    Source::host(&definition.text, true),
                ))
            })
            .collect();
        let at = self.best(&candidates, arguments, source)?;
        let (definition, template, callee) = candidates[at];
        Some(self.invoke(
            definition, template, callee, None, None, named, arguments, node, source,
        ))
    }

    /// Which of several functions a call means; `None` where that is not clear.
    fn best(
        &mut self,
        candidates: &[(Node, Option<Node>, Source)],
        arguments: &[Argument],
        source: Source,
    ) -> Option<usize> {
        let mut fitting: Vec<usize> = (0..candidates.len())
            .filter(|&at| takes(candidates[at].0, arguments.len(), candidates[at].2))
            .collect();
        if fitting.len() > 1 {
            let types: Vec<Option<Type>> = arguments
                .iter()
                .map(|argument| self.argument_type(argument, source))
                .collect();
            let mut scored: Vec<(i32, usize)> = Vec::new();
            for &at in &fitting {
                let (node, template, callee) = candidates[at];
                let mut score = 0;
                let parameters = parameter_list(node).map(parts).unwrap_or_default();
                for (parameter, ty) in parameters.into_iter().zip(&types) {
                    let Some(ty) = ty else { continue };
                    let declared = match parameter.child_by_field_name("declarator") {
                        Some(declarator) => self.declared_type(
                            parameter.child_by_field_name("type"),
                            declarator,
                            callee,
                        ),
                        None => Type::Unknown(String::new()),
                    };
                    score += match (&declared, ty) {
                        (declared, ty) if declared == ty => 4,
                        (Type::Int { .. }, Type::Int { .. })
                        | (Type::Float { .. }, Type::Float { .. }) => 2,
                        (Type::Unknown(_), _) => i32::from(template.is_some()),
                        (Type::Pointer(to, _), Type::Pointer(..))
                            if matches!(**to, Type::Unknown(_)) =>
                        {
                            2
                        }
                        (
                            Type::Int { .. } | Type::Float { .. },
                            Type::Int { .. } | Type::Float { .. },
                        ) => 1,
                        _ => -4,
                    };
                }
                scored.push((score, at));
            }
            let most = scored.iter().map(|(score, _)| *score).max()?;
            let winners: Vec<usize> = scored
                .iter()
                .filter(|(score, _)| *score == most)
                .map(|(_, at)| *at)
                .collect();
            fitting = winners;
        }
        match fitting.as_slice() {
            [at] => Some(*at),
            // One function twice: in branches of a conditional, or declared for several targets.
            [first, ..] if candidates[*first].1.is_none() => Some(*first),
            _ => None,
        }
    }

    #[allow(clippy::too_many_arguments, reason = "a call is all of this")]
    fn invoke(
        &mut self,
        function: Node,
        template: Option<Node>,
        callee: Source,
        class: Option<String>,
        this: Option<Place>,
        named: &Named,
        arguments: &[Argument],
        call: Node,
        source: Source,
    ) -> Value {
        let identity = (Arc::as_ptr(callee.parsed) as usize, function.start_byte());
        let active = self.frames.iter().any(|frame| frame.identity == identity);
        if active || self.frames.len() >= DEEPEST_CALLS || self.depth > DEEPEST || self.is_spent() {
            self.forget_globals();
            if let Some(this) = this {
                self.forget(this.slot);
            }
            self.forget_arguments("", arguments, source);
            // Everything it is given by name may be a reference.
            for argument in arguments {
                if let Some(place) = &argument.place {
                    self.forget(place.slot);
                }
            }
            return Value::Unknown;
        }
        let list = parameter_list(function);
        let parameters = list.map(parts).unwrap_or_default();
        let bindings = match template {
            Some(template) => {
                let explicit = match named.template_list {
                    Some(list) => self.template_arguments(list, source),
                    None => Vec::new(),
                };
                let types: Vec<Option<Type>> = arguments
                    .iter()
                    .map(|argument| self.argument_type(argument, source))
                    .collect();
                self.lowering
                    .in_host(Vec::new(), &Bindings::new(), |lowering| {
                        lowering.host_bindings(template, &explicit, &parameters, &types, callee)
                    })
            }
            None => Bindings::new(),
        };
        if !callee.is_header() {
            self.entered.insert(function.start_byte());
        }
        let mut frame = self.frame(
            full_name(class.as_deref(), &named.name),
            class,
            function.start_byte(),
            callee,
        );
        frame.this = this;
        frame.bindings = bindings;
        frame.own_call = match self.frames.last().and_then(|frame| frame.own_call.clone()) {
            Some(outer) => Some(outer),
            None if callee.is_header() && !source.is_header() => {
                Some(source.parsed.place(call.byte_range()).range)
            }
            None => None,
        };
        self.frames.push(frame);
        let back = self.bind_arguments(&parameters, arguments, callee);
        let value = self.body_of(function, callee);
        for (from, to) in back {
            let value = self.read(&from);
            self.write(&to, value);
        }
        value
    }

    /// Walks the body of the function on top and leaves it.
    fn body_of(&mut self, function: Node, source: Source) -> Value {
        let breakables = std::mem::take(&mut self.breakables);
        if let Some(list) = parts(function)
            .into_iter()
            .find(|part| part.kind() == "field_initializer_list")
        {
            self.field_initializers(list, source);
        }
        let goes_on = match function.child_by_field_name("body") {
            Some(body) => self.statement(body, source),
            None => true,
        };
        self.breakables = breakables;
        let Some(frame) = self.frames.pop() else {
            return Value::Unknown;
        };
        if !frame.returns.is_empty() && (goes_on || frame.returns.len() > 1) {
            let mut states = frame.returns;
            if goes_on {
                let changes = self.changes(frame.mark);
                states.push(changes);
            }
            self.take_back(frame.mark);
            self.join(&states);
        } else if let [only] = frame.returns.as_slice() {
            // Nothing was walked after it.
            let only = only.clone();
            self.take_back(frame.mark);
            self.join(&[only]);
        }
        frame.result.unwrap_or(Value::Unknown)
    }

    /// Gives parameters the values of a call; which places are written back when it ends.
    fn bind_arguments(
        &mut self,
        parameters: &[Node],
        arguments: &[Argument],
        callee: Source,
    ) -> Vec<(Place, Place)> {
        let mut back = Vec::new();
        for (at, parameter) in parameters.iter().enumerate() {
            let Some(declarator) = parameter.child_by_field_name("declarator") else {
                continue;
            };
            let name = text(declared_name(declarator), callee)
                .trim_start_matches(['.', '&', ' '])
                .to_owned();
            if parameter.kind().contains("variadic") || text(*parameter, callee).contains("...") {
                let mut slots = Vec::new();
                for argument in arguments.get(at..).unwrap_or(&[]) {
                    let slot = match &argument.place {
                        Some(place) if place.path.is_empty() => place.slot,
                        _ => {
                            let value = argument.value.clone();
                            self.slot(Type::Unknown(String::new()), value, false)
                        }
                    };
                    slots.push(slot);
                }
                let pack = Value::Pack(Rc::new(slots));
                let slot = self.slot(Type::Unknown(String::new()), pack, false);
                self.bind(&name, Meaning::Slot(slot));
                break;
            }
            let reference = declarator.kind() == "reference_declarator";
            let Some(argument) = arguments.get(at) else {
                let ty =
                    self.declared_type(parameter.child_by_field_name("type"), declarator, callee);
                let value = match parameter.child_by_field_name("default_value") {
                    Some(default) => self.eval(default, callee),
                    None => Value::Unknown,
                };
                let value = dims_where(is_dim3(*parameter, callee), value).converted(&ty);
                let slot = self.slot(ty, value, false);
                self.slots[slot].decays = false;
                self.bind(&name, Meaning::Slot(slot));
                continue;
            };
            if reference
                && let Some(place) = &argument.place
                && place.path.is_empty()
                && (!is_dim3(*parameter, callee)
                    || matches!(self.slots[place.slot].value, Value::Dims(_)))
            {
                self.bind(&name, Meaning::Slot(place.slot));
                continue;
            }
            let ty = self.declared_type(parameter.child_by_field_name("type"), declarator, callee);
            let pointer = declarator.kind() == "pointer_declarator"
                || declarator.kind() == "array_declarator";
            let mut value = argument.value.clone();
            if !pointer {
                value = dims_where(is_dim3(*parameter, callee), value).converted(&ty);
                if let (Value::Array(values), Some(class)) = (
                    &value,
                    parameter
                        .child_by_field_name("type")
                        .map(|ty| plain(text(ty, callee))),
                ) && self.index.classes.contains_key(&class)
                {
                    value = self.by_position(&class, values.as_ref().clone(), callee);
                }
            }
            let slot = self.slot(ty, value, false);
            self.slots[slot].decays = false;
            self.bind(&name, Meaning::Slot(slot));
            if reference
                && let Some(place) = &argument.place
                && !text(*parameter, callee).contains("const")
            {
                let from = Place {
                    slot,
                    path: Vec::new(),
                };
                back.push((from, place.clone()));
            }
        }
        back
    }

    /// Calls a lambda; without arguments nothing is known of its parameters. `None` where it is not walked.
    pub(super) fn call_lambda(
        &mut self,
        lambda: &Rc<Lambda>,
        arguments: Option<&[Argument]>,
    ) -> Option<Value> {
        let identity = (Arc::as_ptr(&lambda.text) as usize, lambda.range.start);
        if self.frames.iter().any(|frame| frame.identity == identity)
            || self.frames.len() >= DEEPEST_CALLS + 2
        {
            return None;
        }
        let definition = Arc::clone(&lambda.text);
        let node = node_ending(&definition, &lambda.range, &["lambda_expression"])?;
        let source = Source::host(&definition, lambda.header);
        let outer = self.frames.last()?;
        let mut scopes = lambda.scopes.clone();
        scopes.push(Scope::default());
        let frame = Frame {
            name: outer.name.clone(),
            class: lambda.class.clone(),
            scopes,
            bindings: lambda.bindings.clone(),
            this: lambda.this.clone(),
            result: None,
            returns: Vec::new(),
            mark: self.mark(),
            beside: self.beside,
            own_call: outer.own_call.clone(),
            identity,
        };
        self.frames.push(frame);
        let parameters = node
            .child_by_field_name("declarator")
            .and_then(|declarator| declarator.child_by_field_name("parameters"))
            .map(parts)
            .unwrap_or_default();
        let back = match arguments {
            Some(arguments) => self.bind_arguments(&parameters, arguments, source),
            None => {
                for parameter in parameters {
                    self.unbound_parameter(parameter, source);
                }
                Vec::new()
            }
        };
        let value = self.body_of(node, source);
        for (from, to) in back {
            let value = self.read(&from);
            self.write(&to, value);
        }
        Some(value)
    }

    // ---- what is not walked --------------------------------------------------------------------

    /// A function that nobody reads changes what it is given the address of, or a reference to.
    pub(super) fn forget_arguments(&mut self, name: &str, arguments: &[Argument], source: Source) {
        // These read what the address stands for.
        let reads: &[usize] = match name {
            "cudaMemcpyToSymbol"
            | "hipMemcpyToSymbol"
            | "cudaMemcpyToSymbolAsync"
            | "cudaMemcpy"
            | "hipMemcpy"
            | "cudaMemcpyAsync"
            | "hipMemcpyAsync"
            | "memcpy"
            | "cuMemcpyHtoD" => &[1],
            "fwrite" => &[0],
            "clEnqueueWriteBuffer" => &[5],
            "clCreateBuffer" | "clSetKernelArg" => &[3],
            "printf"
            | "fprintf"
            | "assert"
            | "cudaFuncSetAttribute"
            | "hipFuncSetAttribute"
            | "cudaFree"
            | "free"
            | "clEnqueueNDRangeKernel"
            | "gettimeofday" => return,
            _ => &[],
        };
        let references = if arguments.iter().any(|argument| argument.place.is_some()) {
            self.reference_parameters(name)
        } else {
            None
        };
        // Of a function from a header that was not found nothing is known.
        let unseen = references.is_none()
            && !name.is_empty()
            && !source.parsed.missing.is_empty()
            && !is_library(name);
        for (at, argument) in arguments.iter().enumerate() {
            if reads.contains(&at) {
                continue;
            }
            self.forget_pointed(&argument.value, 0);
            let Some(place) = &argument.place else {
                continue;
            };
            let by_reference = match &references {
                Some(references) => references
                    .get(at)
                    .or(references.last())
                    .copied()
                    .unwrap_or(false),
                // Options are numbers, and a `dim3` to be filled in is made without extents.
                None => {
                    unseen
                        && match self.read(place) {
                            Value::Dims(extents) => extents == [Some(1); 3],
                            _ => true,
                        }
                }
            };
            if by_reference {
                self.forget(place.slot);
            }
        }
        for argument in arguments {
            if let Value::Lambda(lambda) = &argument.value {
                // It may be called, any number of times.
                let touched = self.touched_mark();
                let lambda = Rc::clone(&lambda.0);
                self.call_lambda(&lambda, None);
                self.forget_touched(touched);
            }
        }
    }

    fn forget_pointed(&mut self, value: &Value, depth: u32) {
        match value {
            Value::Address(place) => self.forget(place.slot),
            Value::Array(values) if depth < 3 => {
                for value in values.iter() {
                    self.forget_pointed(value, depth + 1);
                }
            }
            _ => {}
        }
    }

    /// Which parameters of a function are references that it may write through, by its declaration in the file
    /// or a header; `None` where it is not declared there.
    fn reference_parameters(&mut self, name: &str) -> Option<Vec<bool>> {
        if name.is_empty() || is_library(name) {
            return None;
        }
        if let Some(known) = self.references.get(name) {
            return known.clone();
        }
        let headers = self
            .headers
            .get_or_insert_with(|| all_headers(self.parsed))
            .clone();
        let mut found: Option<Vec<bool>> = None;
        let texts = std::iter::once(&self.parsed.text)
            .chain(headers.iter().map(|header| &header.text))
            .filter(|text| text.len() < LARGEST_HEADER);
        'texts: for text in texts {
            for (at, _) in text.match_indices(name).take(64) {
                let Some(references) = declared_references(text, at, name) else {
                    continue;
                };
                let known = found.get_or_insert_with(Vec::new);
                known.resize(known.len().max(references.len()), false);
                for (known, reference) in known.iter_mut().zip(&references) {
                    *known |= reference;
                }
                if known.iter().all(|reference| *reference) && !known.is_empty() {
                    break 'texts;
                }
            }
        }
        self.references.insert(name.to_owned(), found.clone());
        found
    }

    // ---- objects -------------------------------------------------------------------------------

    fn member_call(
        &mut self,
        node: Node,
        function: Node,
        named: &Named,
        arguments: &[Argument],
        source: Source,
    ) -> Value {
        let Some(object) = function.child_by_field_name("argument") else {
            return Value::Unknown;
        };
        let arrow = function
            .child_by_field_name("operator")
            .is_some_and(|operator| text(operator, source) == "->");
        let place = if object.kind() == "this" {
            self.frames.last().and_then(|frame| frame.this.clone())
        } else if arrow {
            match self.eval(object, source) {
                Value::Address(place) => Some(place),
                _ => None,
            }
        } else {
            match self.place(object, source) {
                Some(place) => Some(place),
                None => {
                    let value = self.eval(object, source);
                    Some(self.temporary(Type::Unknown(String::new()), value))
                }
            }
        };
        let value = place
            .as_ref()
            .map_or(Value::Unknown, |place| self.read(place));
        if let Some(found) = self.object_call(node, &value, &named.name, arguments, source) {
            return found;
        }
        let class = match &value {
            Value::Record(record) => record.class.clone(),
            _ if object.kind() == "this" => self
                .frames
                .last()
                .and_then(|frame| frame.class.clone())
                .unwrap_or_default(),
            _ => String::new(),
        };
        if let Some(place) = &place {
            match (&value, named.name.as_str(), arguments) {
                (Value::Array(values), "size", []) => {
                    return Value::Int(values.len() as i64, 64, false);
                }
                (Value::Array(_), "data" | "begin", []) => return Value::Address(place.clone()),
                (Value::Array(_), "at", [index]) => {
                    let index = index
                        .value
                        .as_int()
                        .and_then(|index| usize::try_from(index).ok());
                    return value.at(&Step::Index(index));
                }
                (Value::Array(values), "push_back" | "emplace_back", [argument]) => {
                    let mut values = (**values).clone();
                    values.push(argument.value.clone());
                    self.write(place, Value::list(values));
                    return Value::Unknown;
                }
                (Value::Text(_), "c_str" | "data", []) => return value,
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
        if let Some(place) = place
            && !constant_method
            && value != Value::Unknown
        {
            self.forget(place.slot);
        }
        self.forget_arguments(&named.name, arguments, source);
        if constant_method {
            return Value::Unknown;
        }
        self.constant(node, source)
    }

    #[allow(clippy::too_many_arguments, reason = "a call is all of this")]
    fn method(
        &mut self,
        class: &str,
        name: &str,
        this: &Place,
        named: &Named,
        arguments: &[Argument],
        node: Node,
        source: Source,
    ) -> Option<Value> {
        let parsed = self.parsed;
        let own = Source::host(parsed, false);
        let candidates: Vec<(Node, Option<Node>, Source)> = self
            .index
            .by_name
            .get(name)?
            .iter()
            .map(|&at| &self.index.functions[at])
            .filter(|function| function.class.as_deref() == Some(class) && !function.kernel)
            .map(|function| (function.node, function.template, own))
            .collect();
        let at = self.best(&candidates, arguments, source)?;
        let (definition, template, _) = candidates[at];
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
        let own = Source::host(self.parsed, false);
        let place = self.temporary(Type::Unknown(String::new()), Value::Unknown);
        let value = self.any_object(&class, place.slot, own);
        self.slots[place.slot].value = value;
        self.method(&class, &named.name, &place, named, arguments, node, source)
    }

    fn field_initializers(&mut self, list: Node, source: Source) {
        let Some(this) = self.frames.last().and_then(|frame| frame.this.clone()) else {
            return;
        };
        for initializer in parts(list) {
            let all = parts(initializer);
            let [name, values, ..] = all.as_slice() else {
                continue;
            };
            let name = text(*name, source).to_owned();
            let values: Vec<Value> = parts(*values)
                .into_iter()
                .map(|value| self.eval(value, source))
                .collect();
            let mut place = this.clone();
            place.path.push(Step::Field(name));
            let before = self.read(&place);
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
        class: &str,
        values: Vec<Value>,
        braces: bool,
        slot: usize,
        source: Source,
    ) -> Value {
        match class {
            "dim3" | "NDRange" => {
                if let [only @ (Value::Dims(_) | Value::Record(_))] = values.as_slice() {
                    return Value::Dims(only.extents());
                }
                return Value::Dims(Value::list(values).extents());
            }
            "Kernel" => {
                if let [_, Value::Text(name), ..] = values.as_slice() {
                    return self.kernel_object(&Rc::clone(name));
                }
                return match values.as_slice() {
                    [only] => only.clone(),
                    _ => Value::Unknown,
                };
            }
            "string" => {
                return match values.as_slice() {
                    [text @ Value::Text(_)] => text.clone(),
                    _ => Value::Unknown,
                };
            }
            "cudaLaunchConfig_t" | "hipLaunchConfig_t" => {
                return self.by_position(class, values, source);
            }
            _ => {}
        }
        if !self.index.classes.contains_key(class) {
            return match values.as_slice() {
                [] => Value::Unknown,
                // Of a structure that was not read, or of a number.
                [Value::Int(0, ..)] if braces => Value::list(values),
                [only] => only.clone(),
                _ => Value::list(values),
            };
        }
        if let [copy @ Value::Record(record)] = values.as_slice()
            && record.class == class
        {
            return copy.clone();
        }
        let own = Source::host(self.parsed, false);
        let fields = self.initial_fields(class, own);
        let place = Place {
            slot,
            path: Vec::new(),
        };
        let constructors: Vec<(Node, Option<Node>, Source)> = self
            .index
            .by_name
            .get(class)
            .into_iter()
            .flatten()
            .map(|&at| &self.index.functions[at])
            .filter(|function| function.class.as_deref() == Some(class))
            .map(|function| (function.node, function.template, own))
            .collect();
        if constructors.is_empty() {
            if values.is_empty() {
                return fields;
            }
            return if braces {
                self.by_position(class, values, source)
            } else {
                Value::Unknown
            };
        }
        let arguments: Vec<Argument> = values
            .into_iter()
            .map(|value| Argument {
                value,
                place: None,
                node: None,
            })
            .collect();
        self.slots[slot].value = fields;
        let Some(at) = self.best(&constructors, &arguments, source) else {
            return Value::Unknown;
        };
        let named = Named {
            name: class.to_owned(),
            template_list: None,
            scope: None,
        };
        let (definition, template, _) = constructors[at];
        self.invoke(
            definition,
            template,
            own,
            Some(class.to_owned()),
            Some(place.clone()),
            &named,
            &arguments,
            definition,
            own,
        );
        self.read(&place)
    }

    /// An object of which nobody knows how it came about: what every constructor leaves alike and no other
    /// function changes.
    fn any_object(&mut self, class: &str, slot: usize, source: Source) -> Value {
        let fields = self.initial_fields(class, source);
        let constructors: Vec<Node<'p>> = self
            .index
            .by_name
            .get(class)
            .into_iter()
            .flatten()
            .map(|&at| &self.index.functions[at])
            .filter(|function| function.class.as_deref() == Some(class))
            .map(|function| function.node)
            .collect();
        let mut joined: Option<Value> = None;
        if constructors.is_empty() {
            joined = Some(fields.clone());
        }
        for constructor in constructors.iter().take(4) {
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
            self.body_of(*constructor, source);
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
        for (name, value) in &mut record.fields {
            // A field that more than the constructors change.
            if *value != Value::Unknown && self.is_changed_outside(name, &constructors) {
                *value = Value::Unknown;
            }
        }
        Value::Record(Rc::new(record))
    }

    fn is_changed_outside(&mut self, field: &str, constructors: &[Node]) -> bool {
        let parsed = self.parsed;
        let mut rest = String::new();
        // What is left of the file without the constructors; the declaration's `=` is not a change.
        let mut from = 0;
        let mut skip: Vec<std::ops::Range<usize>> =
            constructors.iter().map(Node::byte_range).collect();
        if let Some(variables) = self.index.variables.get(field) {
            skip.extend(
                variables
                    .iter()
                    .map(|variable| variable.declaration.byte_range()),
            );
        }
        skip.sort_by_key(|range| range.start);
        for range in skip {
            if range.start >= from {
                rest.push_str(&parsed.text[from..range.start]);
                rest.push(';');
                from = range.end;
            }
        }
        rest.push_str(&parsed.text[from..]);
        super::index::is_changed(&rest, field, &(0..0))
    }

    /// The fields of a class with their default initialisers.
    fn initial_fields(&mut self, class: &str, source: Source) -> Value {
        let Some(body) = self.index.classes.get(class).map(|class| class.body) else {
            return Value::Unknown;
        };
        let mut record = Record {
            class: class.to_owned(),
            fields: Vec::new(),
        };
        for member in parts(body) {
            if member.kind() != "field_declaration" || text(member, source).starts_with("static") {
                continue;
            }
            let mut cursor = member.walk();
            let declarators: Vec<Node> = member
                .children_by_field_name("declarator", &mut cursor)
                .collect();
            for declarator in declarators {
                if declarator.kind() == "function_declarator" {
                    continue;
                }
                let name = text(declared_name(declarator), source).to_owned();
                let value = if self.depth > DEEPEST / 2 {
                    Value::Unknown
                } else {
                    self.depth += 8;
                    let slot = self.declare(member, declarator, source);
                    self.depth -= 8;
                    slot.map_or(Value::Unknown, |slot| self.slots[slot].value.clone())
                };
                record.fields.push((name, value));
            }
        }
        Value::Record(Rc::new(record))
    }

    /// A list in braces as a structure: fields by position, the rest 0.
    pub(super) fn by_position(&mut self, class: &str, values: Vec<Value>, source: Source) -> Value {
        let mut record = match class {
            "cudaLaunchConfig_t" | "hipLaunchConfig_t" => {
                let extents = Value::Dims([Some(1); 3]);
                let zero = Value::Int(0, 64, false);
                Record {
                    class: class.to_owned(),
                    fields: [
                        ("gridDim", extents.clone()),
                        ("blockDim", extents),
                        (
                            "dynamicSmemBytes",
                            if values.is_empty() {
                                Value::Unknown
                            } else {
                                zero
                            },
                        ),
                        ("stream", Value::Unknown),
                        ("attrs", Value::Unknown),
                        ("numAttrs", Value::Unknown),
                    ]
                    .map(|(name, value)| (name.to_owned(), value))
                    .to_vec(),
                }
            }
            _ => match self.initial_fields(class, source) {
                Value::Record(record) => (*record).clone(),
                _ => return Value::list(values),
            },
        };
        // `= {0}` sets the first field and leaves `dim3` as its constructor makes it.
        let zero = matches!(values.as_slice(), [Value::Int(0, ..)]);
        for ((_, field), value) in record.fields.iter_mut().zip(values) {
            match field {
                Value::Dims(_) if zero => {}
                Value::Dims(_) => *field = Value::Dims(value.extents()),
                _ => *field = value,
            }
        }
        Value::Record(Rc::new(record))
    }

    /// `{.gridDim = …}` as a structure: what the list leaves out has its initial value.
    pub(super) fn completed(&mut self, class: &str, value: Value, source: Source) -> Value {
        let Value::Record(named) = &value else {
            return value;
        };
        // What a list leaves out of a structure of C is 0.
        let rest = match class {
            "cudaLaunchConfig_t" | "hipLaunchConfig_t" => vec![Value::int(0)],
            _ => Vec::new(),
        };
        let whole = self.by_position(class, rest, source);
        let Value::Record(whole) = whole else {
            return value;
        };
        let mut whole = (*whole).clone();
        for (name, value) in &named.fields {
            match whole.fields.iter_mut().find(|(of, _)| of == name) {
                Some((_, field @ Value::Dims(_))) => *field = Value::Dims(value.extents()),
                Some((_, field)) => *field = value.clone(),
                None => whole.fields.push((name.clone(), value.clone())),
            }
        }
        Value::Record(Rc::new(whole))
    }

    /// Explicit instantiations: of kernels they are sites of their own, host functions are walked with them.
    pub(super) fn instantiations(&mut self) {
        let parsed = self.parsed;
        let source = Source::host(parsed, false);
        for node in self.index.instantiations.clone() {
            let Some(declarator) = function_declarator(node) else {
                continue;
            };
            let Some(name) = declarator.child_by_field_name("declarator") else {
                continue;
            };
            let (plain_name, list) = name_of_function(name);
            let Some(list) = list else { continue };
            let name = text(plain_name, source).to_owned();
            self.frames
                .push(self.frame(String::new(), None, node.start_byte(), source));
            let arguments = self.template_arguments(list, source);
            if self.index.kernels.contains(&name) || text(node, source).contains("__global__") {
                self.instantiation(node, &name, arguments, source);
                self.frames.pop();
                continue;
            }
            let own: Vec<usize> = self
                .index
                .by_name
                .get(&name)
                .map(|all| {
                    all.iter()
                        .copied()
                        .filter(|&at| {
                            let function = &self.index.functions[at];
                            function.leads_to_launch && function.template.is_some()
                        })
                        .collect()
                })
                .unwrap_or_default();
            if let [at] = own.as_slice() {
                let function = &self.index.functions[*at];
                let (definition, template) = (function.node, function.template);
                let class = function.class.clone();
                let unknown: Vec<Argument> = parameter_list(definition)
                    .map(parts)
                    .unwrap_or_default()
                    .into_iter()
                    .map(|_| Argument {
                        value: Value::Unknown,
                        place: None,
                        node: None,
                    })
                    .collect();
                let named = Named {
                    name,
                    template_list: Some(list),
                    scope: None,
                };
                self.invoke(
                    definition, template, source, class, None, &named, &unknown, node, source,
                );
            }
            self.frames.pop();
        }
    }

    /// Names of the functions that are being walked, outermost first, without the one on top.
    pub(super) fn callers(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for frame in self.frames.iter().rev().skip(1).rev() {
            if !frame.name.is_empty() && names.last() != Some(&frame.name) {
                names.push(frame.name.clone());
            }
        }
        let inside = self.frames.last().map(|frame| &frame.name);
        if names.last() == inside {
            names.pop();
        }
        names
    }

    /// Template arguments that a bound name stands for.
    pub(super) fn bound_kernel(&self, name: &str) -> Option<String> {
        match self.binding(name)? {
            Bound::Template(of) => Some(of.clone()),
            _ => None,
        }
    }
}

fn full_name(class: Option<&str>, name: &str) -> String {
    match class {
        Some(class) => format!("{class}::{name}"),
        None => name.to_owned(),
    }
}

fn parameter_list(function: Node<'_>) -> Option<Node<'_>> {
    function_declarator(function)?.child_by_field_name("parameters")
}

fn template_of(function: Node<'_>) -> Option<Node<'_>> {
    function
        .parent()
        .filter(|parent| parent.kind() == "template_declaration")
}

/// True where so many arguments can be given.
fn takes(function: Node, given: usize, source: Source) -> bool {
    let Some(list) = parameter_list(function) else {
        return false;
    };
    let all = parts(list);
    if let [only] = all.as_slice()
        && text(*only, source).trim() == "void"
    {
        return given == 0;
    }
    let variadic = text(list, source).contains("...");
    let optional = all
        .iter()
        .filter(|parameter| {
            parameter.kind() == "optional_parameter_declaration"
                || parameter.kind().contains("variadic")
        })
        .count();
    let packs = usize::from(
        variadic
            && all
                .last()
                .is_some_and(|last| text(*last, source).contains("...")),
    );
    let least = all.len() - optional.max(packs.min(all.len()));
    given >= least && (given <= all.len() || variadic)
}

fn is_dim3(parameter: Node, source: Source) -> bool {
    parameter
        .child_by_field_name("type")
        .is_some_and(|ty| plain(text(ty, source)) == "dim3")
}

fn dims_where(dim3: bool, value: Value) -> Value {
    match value {
        value @ (Value::Int(..) | Value::Float(..) | Value::Array(_) | Value::Record(_))
            if dim3 =>
        {
            Value::Dims(value.extents())
        }
        value => value,
    }
}

/// Functions of the C library and the toolkits: they take nothing by reference.
fn is_library(name: &str) -> bool {
    const PREFIXES: &[&str] = &[
        "cuda",
        "hip",
        "cublas",
        "cufft",
        "curand",
        "cusparse",
        "nccl",
        "mpi",
        "MPI_",
        "omp_",
        "str",
        "mem",
        "clCreate",
        "clEnqueue",
        "clGet",
        "clSet",
        "clRelease",
        "clBuild",
        "clFinish",
        "clWait",
        "std",
        "cu",
    ];
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || matches!(
            name,
            "printf"
                | "fprintf"
                | "sprintf"
                | "snprintf"
                | "puts"
                | "fputs"
                | "malloc"
                | "calloc"
                | "free"
                | "realloc"
                | "exit"
                | "assert"
                | "rand"
                | "srand"
                | "atoi"
                | "atof"
                | "atol"
                | "fopen"
                | "fclose"
                | "fread"
                | "fwrite"
                | "sizeof"
                | "sqrt"
                | "pow"
                | "exp"
                | "log"
                | "sin"
                | "cos"
                | "fabs"
                | "abs"
                | "ceil"
                | "floor"
                | "min"
                | "max"
                | "time"
                | "clock"
                | "usleep"
                | "sleep"
                | "isatty"
                | "getenv"
                | "setenv"
                | "perror"
                | "drand48"
                | "srand48"
                | "make_pair"
                | "fill"
                | "transform"
                | "copy"
                | "sort"
                | "generate"
                | "accumulate"
                | "vector"
                | "log2"
                | "round"
                | "aligned_alloc"
                | "posix_memalign"
                | "numeric_limits"
                | "to_string"
                | "now"
                | "iota"
                | "fill_n"
                | "raw_pointer_cast"
                | "device_pointer_cast"
                | "move"
                | "forward"
        )
}

fn all_headers(parsed: &Arc<Expanded>) -> Vec<Arc<Expanded>> {
    let mut found: Vec<Arc<Expanded>> = Vec::new();
    let mut open: Vec<Arc<Expanded>> = parsed.includes.clone();
    while let Some(header) = open.pop() {
        if found.len() >= MOST_HEADERS {
            break;
        }
        if found.iter().any(|known| Arc::ptr_eq(known, &header)) {
            continue;
        }
        open.extend(header.includes.iter().cloned());
        found.push(header);
    }
    found
}

/// Which parameters are references that may be written through, where `name` at a byte is being declared.
fn declared_references(text: &str, at: usize, name: &str) -> Option<Vec<bool>> {
    let before = text[..at].trim_end_matches([' ', '\t', '\n', '\r']);
    // A type stands before what is declared; before a call there is an operator, a bracket, `return`.
    if before.len() == at
        || !before
            .ends_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '*' | '&' | '>'))
        || before.ends_with("return")
        || before.ends_with("else")
    {
        return None;
    }
    let rest = text[at + name.len()..].trim_start().strip_prefix('(')?;
    let mut references = Vec::new();
    let (mut depth, mut from) = (0i32, 0);
    for (end, c) in rest.char_indices().take(4_000) {
        match c {
            '(' | '[' | '{' | '<' => depth += 1,
            '>' | ']' | '}' => depth -= 1,
            ')' if depth > 0 => depth -= 1,
            ',' | ')' if depth == 0 => {
                let parameter = &rest[from..end];
                references.push(parameter.contains('&') && !parameter.contains("const"));
                from = end + 1;
                if c == ')' {
                    return Some(references);
                }
            }
            _ => {}
        }
    }
    None
}
