//! Functions that host functions call: those of the file and its headers are walked with the values of the
//! call, what is not known may change whatever it is given to change.

use std::rc::Rc;
use std::sync::Arc;

use warplens_syntax::nodes::CallExpression;
use warplens_syntax::{Field, Kind, Node, is_identifier, words_in};

use super::arguments::{Argument, Named};
use super::containers::whole;
use super::index::{Function, plain};
use super::library_types::LibraryType;
use super::nodes::{
    full_name, is_unused, meant, name_of_function, parameter_list, parts, template_of, text,
};
use super::standard::is_thread;
use super::state::{Frame, Host};
use super::value::{FunctionName, Lambda, Place, Scope, Value, library};
use warplens_hir::Source;
use warplens_hir::function_declarator;
use warplens_hir::node_ending;
use warplens_ir::Type;
use warplens_ir::{Bindings, Bound};

/// Calls nest this deep at most.
const DEEPEST_CALLS: usize = 7;
/// The same in a run.
const DEEPEST_CALLS_OF_RUN: usize = 40;
/// Calls of lambdas, which nest as they are written: a choice of each of many constants takes two.
const DEEPEST_LAMBDAS: usize = 20;

impl Host<'_> {
    /// Walks a function for itself: nothing is known of its parameters.
    pub(super) fn walk_root(&mut self, at: usize) {
        let function = &self.index.functions[at];
        let (node, class) = (function.node, function.class.clone());
        let name = full_name(class.as_deref(), &function.name);
        self.entered.insert(node.start_byte());
        let source = self.source_in(function);
        let mut frame = self.frame(name, class.clone(), node.start_byte(), source);
        frame.mark = 0;
        self.frames.push(frame);
        if let Some(class) = class {
            let place = self.temporary(Type::Unknown(String::new()), Value::Unknown);
            let value = if self.index.classes.contains_key(&class) {
                self.any_object(&class, place.slot)
            } else {
                Value::record(&class, self.agreed_fields(&class))
            };
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
        if let Some(body) = node.field(Field::Body) {
            self.statement(body, source);
        }
        self.frames.pop();
    }

    fn deepest_calls(&self) -> usize {
        match self.running {
            Some(_) => DEEPEST_CALLS_OF_RUN,
            None => DEEPEST_CALLS,
        }
    }

    /// Calls that are being walked, of functions or of lambdas.
    fn open_calls(&self, of_lambdas: bool) -> usize {
        let frames = self.frames.iter();
        frames.filter(|frame| frame.is_lambda == of_lambdas).count()
    }

    pub(super) fn frame(
        &self,
        name: String,
        class: Option<String>,
        start: usize,
        source: Source,
    ) -> Frame {
        Frame {
            name,
            space: source.space().into(),
            class,
            scopes: vec![Scope::default()],
            bindings: Bindings::new(),
            this: None,
            result: None,
            returns: Vec::new(),
            past: Vec::new(),
            mark: self.mark(),
            beside: self.beside,
            own_call: None,
            identity: (Arc::as_ptr(source.parsed) as usize, start),
            around: self.around.len(),
            is_lambda: false,
            jumps: Vec::new(),
            labels: Vec::new(),
        }
    }

    // ---- calls ---------------------------------------------------------------------------------

    /// A call: a launch, a function that is walked, one that is known, or one that is not.
    pub(super) fn call(&mut self, node: Node, source: Source) -> Value {
        let call = CallExpression::cast(node);
        let (Some(function), Some(list)) = (
            call.and_then(CallExpression::function),
            call.and_then(CallExpression::arguments),
        ) else {
            for part in parts(node) {
                self.eval(part, source);
            }
            return Value::Unknown;
        };
        if let Some(launch) = call.and_then(CallExpression::launch) {
            self.launch(node, function, launch, list, source);
            return Value::Unknown;
        }
        let arguments = self.arguments(list, source);
        if self.leaving.is_some() {
            return Value::Unknown;
        }
        let (name_node, template_list) = name_of_function(function);
        let named = Named {
            name: text(name_node, source).trim().to_owned(),
            template_list,
            template_args: Vec::new(),
            scope: function
                .field(Field::Scope)
                .filter(|_| function.kind() == Kind::QualifiedIdentifier)
                .map(|scope| plain(text(scope, source))),
        };
        self.call_happens(node, &named.name, &arguments, source);
        // By its name, or through what the driver gave: a pointer in a variable or a member, or of a call.
        if !self.index.by_name.contains_key(&named.name)
            && super::toolkit::encodes_a_tensor_map(&arguments, source)
        {
            return self.tensor_map_call(&arguments, source);
        }
        if function.kind() == Kind::FieldExpression {
            return self.member_call(node, function, &named, &arguments, source);
        }
        // `([&] { … })()`.
        let mut called = function;
        while called.kind() == Kind::ParenthesizedExpression
            && let Some(inner) = called.named_child(0)
        {
            called = inner;
        }
        if matches!(
            called.kind(),
            Kind::LambdaExpression | Kind::CallExpression | Kind::CompoundLiteralExpression
        ) {
            let value = self.eval(called, source);
            if let Some(value) = self.call_made(node, value, &named, &arguments, source) {
                return value;
            }
            self.forget_arguments("", &arguments, source);
            return Value::Unknown;
        }
        // `(*f)()`.
        if called.kind() == Kind::PointerExpression
            && let value @ (Value::Function(_) | Value::Lambda(_) | Value::Bound(_)) =
                self.eval(called, source)
        {
            return self
                .call_value(&value, node, &arguments, source)
                .unwrap_or(Value::Unknown);
        }
        // A variable that holds what is called.
        if matches!(
            function.kind(),
            Kind::Identifier
                | Kind::ParenthesizedExpression
                | Kind::SubscriptExpression
                | Kind::PointerExpression
        ) && let Some(place) = self.place(function, source)
        {
            match self.read(&place) {
                object @ Value::Object(..) => {
                    if let Some(value) = self.functor_call(node, &object, &arguments, source) {
                        return value;
                    }
                }
                Value::Lambda(lambda) => {
                    if let Some(value) = self.call_lambda(&lambda.0, Some(&arguments)) {
                        return value;
                    }
                }
                called @ (Value::Function(_) | Value::Bound(_)) => {
                    if let Some(value) = self.call_value(&called, node, &arguments, source) {
                        return value;
                    }
                    self.may_be_called(&called, Some(node), source);
                }
                Value::Generator(_) => {
                    return self.drawn_from(&place).unwrap_or(Value::Unknown);
                }
                Value::Record(record) => {
                    let class = record.class.clone();
                    if let Some(value) = self.drawn_by(&record, &arguments) {
                        return value;
                    }
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
                // What is called is not known: it may write to whatever was handed on to be written to.
                Value::Unknown => self.written_somewhere(),
                _ => {}
            }
            self.forget_arguments(&named.name, &arguments, source);
            return Value::Unknown;
        }
        if let Some(value) = self.reading_call(&named.name, &arguments) {
            return value;
        }
        if let Some(value) = self.team_call(&named.name, &arguments) {
            return value;
        }
        if !self.index.by_name.contains_key(&named.name)
            && let Some(value) = self.drawing_call(&named.name, &arguments)
        {
            return value;
        }
        if self.running.is_some()
            && !self.index.by_name.contains_key(&named.name)
            && let Some(value) = self.moving_call(&named.name, &arguments)
        {
            return value;
        }
        if !self.index.by_name.contains_key(&named.name)
            && let Some(value) = self.algorithm_call(&named.name, &arguments, node, source)
        {
            return value;
        }
        if self.running.is_some()
            && !self.index.by_name.contains_key(&named.name)
            && let Some(value) = self.binding_call(node, &named.name, &arguments, source)
        {
            return value;
        }
        if !self.index.by_name.contains_key(&named.name)
            && let Some(value) = self.making_call(&named, &arguments, source)
        {
            return value;
        }
        if let Some(value) = self.toolkit_call(&named.name, &arguments, source) {
            return value;
        }
        if let Some(value) = self.text_call(&named.name, &arguments, source) {
            return value;
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
        if let Some(value) = self.call_of_instance(node, function, &named, &arguments, source) {
            return value;
        }
        let value = match self.call_named(node, &named, &arguments, source) {
            Some(value) => value,
            None => self.unseen_call(node, &named, template_list, &arguments, source),
        };
        match value {
            Value::Unknown => self.kernel_of_its_name(node, &arguments),
            value => value,
        }
    }

    /// A call of what an expression has just made: a lambda, a function, an object: `Launch<T>()(p, n)`.
    fn call_made(
        &mut self,
        node: Node,
        made: Value,
        named: &Named,
        arguments: &[Argument],
        source: Source,
    ) -> Option<Value> {
        match made {
            Value::Lambda(lambda) => self.call_lambda(&lambda.0, Some(arguments)),
            called @ (Value::Function(_) | Value::Bound(_)) => {
                self.call_value(&called, node, arguments, source)
            }
            Value::Record(record) => {
                let class = record.class.clone();
                let place = self.temporary(Type::Unknown(String::new()), Value::Record(record));
                let name = "operator()";
                self.method(&class, name, &place, named, arguments, node, source)
            }
            _ => None,
        }
    }

    /// A call of a function whose body is not in sight.
    fn unseen_call(
        &mut self,
        node: Node,
        named: &Named,
        template_list: Option<Node>,
        arguments: &[Argument],
        source: Source,
    ) -> Value {
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
        if self.succeeds(&named.name) {
            self.forget_arguments(&named.name, arguments, source);
            return Value::int(0);
        }
        let value = if is_unused(node) {
            Value::Unknown
        } else {
            self.constant(node, source)
        };
        self.forget_arguments(&named.name, arguments, source);
        value
    }

    /// What a call gives whose value is not known but which is handed one name as text: `program.find("scale", options)`.
    /// Should it be launched, it is the kernel of that name, since nothing else in the call says which; as any other value it
    /// is as unknown as before.
    fn kernel_of_its_name(&mut self, call: Node, arguments: &[Argument]) -> Value {
        if is_unused(call) {
            return Value::Unknown;
        }
        let mut names = arguments
            .iter()
            .filter_map(|argument| match &argument.value {
                Value::Text(text) => Some(Rc::clone(text)),
                _ => None,
            })
            .filter(|text| is_identifier(text));
        match (names.next(), names.next()) {
            (Some(name), None) => self.kernel_object(&name),
            // None, or which of two names is the kernel's is not clear.
            _ => Value::Unknown,
        }
    }

    pub(super) fn arguments<'t>(&mut self, list: Node<'t>, source: Source) -> Vec<Argument<'t>> {
        let mut all = Vec::new();
        for node in parts(list) {
            if node.kind() == Kind::ParameterPackExpansion
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
                Kind::Identifier | Kind::FieldExpression | Kind::SubscriptExpression => {
                    self.place(node, source)
                }
                _ => None,
            };
            // What is in a subscript happens once.
            let value = match (&place, node.kind()) {
                (Some(place), Kind::FieldExpression | Kind::SubscriptExpression) => {
                    match self.read_number(place) {
                        Value::Array(_) | Value::Data(_) => Value::Address(place.clone()),
                        value => value,
                    }
                }
                _ => self.eval(node, source),
            };
            // The value of a call is kept where that left it.
            let (value, place) = match value {
                Value::Container(slot) => (self.read(&whole(slot)), Some(whole(slot))),
                value => (value, place),
            };
            all.push(Argument {
                value,
                place,
                node: Some(node),
            });
        }
        all
    }

    /// The variables of `args...` and `std::forward<Args>(args)...`.
    pub(super) fn pack(&mut self, node: Node, source: Source) -> Option<Rc<Vec<usize>>> {
        self.pack_named(node, source).map(|(_, slots)| slots)
    }

    /// The same with the name of the pack.
    pub(super) fn pack_named(
        &mut self,
        node: Node,
        source: Source,
    ) -> Option<(String, Rc<Vec<usize>>)> {
        let mut open = vec![node];
        while let Some(part) = open.pop() {
            if part.kind() == Kind::Identifier
                && let Some(place) = self.place_named(text(part, source))
                && let Value::Pack(slots) = self.read(&place)
            {
                return Some((text(part, source).to_owned(), slots));
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
            // A container that a call gives.
            (Some(_), Some(place)) if self.is_container(place) => self.slots[place.slot].ty.clone(),
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
        if matches!(
            named.name.as_str(),
            "dim3"
                | "NDRange"
                | "Kernel"
                | "KernelFunctor"
                | "make_kernel"
                | "EnqueueArgs"
                | "string"
                | "stringstream"
                | "ostringstream"
        ) || self.index.classes.contains_key(&named.name)
        {
            let place = self.temporary(Type::Unknown(String::new()), Value::Unknown);
            let class = self.instantiated(&named.name, named.template_list, source);
            let value = self.constructed(&class, arguments, false, place.slot, source);
            return Some(value);
        }
        if (named.template_list.is_some() || is_thread(&named.name))
            && let Some(kept) = self.kept_by(function, source)
        {
            return Some(self.standard_object(&kept, arguments, false, source));
        }
        if self.running.is_some()
            && named.template_list.is_some()
            && let Some(element) = self.element_of_container(function, source)
        {
            let ty = Type::Array(Arc::new(element), None);
            let slot = self.slot(ty, Value::Unknown, false);
            self.slots[slot].decays = false;
            self.fill_container(slot, arguments);
            return Some(Value::Container(slot));
        }
        if function.kind() == Kind::PrimitiveType || function.kind() == Kind::SizedTypeSpecifier {
            return match arguments {
                [argument] => Some(self.cast(argument.value.clone(), function, source)),
                _ => Some(Value::Unknown),
            };
        }
        if let [argument] = arguments
            && matches!(
                function.kind(),
                Kind::Identifier | Kind::QualifiedIdentifier
            )
            && !self.index.by_name.contains_key(&named.name)
            && matches!(argument.value, Value::Int(..) | Value::Float(..))
            && let Some(ty @ (Type::Int { .. } | Type::Float { .. })) =
                self.lowering.host_type_named(&named.name)
        {
            return Some(argument.value.clone().converted(&ty));
        }
        None
    }

    /// Calls what a value is, a function or a lambda; `None` where it is not walked.
    pub(super) fn call_value(
        &mut self,
        value: &Value,
        node: Node,
        arguments: &[Argument],
        source: Source,
    ) -> Option<Value> {
        match value {
            Value::Function(callee) => self.call_function(callee, node, arguments, source),
            Value::Lambda(lambda) => self.call_lambda(&lambda.0, Some(arguments)),
            Value::Bound(bound) => self.call_bound(bound, node, arguments, source),
            _ => None,
        }
    }

    fn call_function(
        &mut self,
        callee: &FunctionName,
        node: Node,
        arguments: &[Argument],
        source: Source,
    ) -> Option<Value> {
        let named = Named {
            name: callee.name.clone(),
            template_list: None,
            template_args: callee.template_args.clone(),
            scope: callee.class.clone(),
        };
        if callee.class.is_some()
            && let Some((object, rest)) = arguments.split_first()
            && let Some((place, class)) = self.object_given(object)
            && let Some(value) =
                self.method(&class, &callee.name, &place, &named, rest, node, source)
        {
            return Some(value);
        }
        self.call_named(node, &named, arguments, source)
    }

    /// A function of the file or of a header; `None` where it is not walked.
    pub(super) fn call_named(
        &mut self,
        node: Node,
        named: &Named,
        arguments: &[Argument],
        source: Source,
    ) -> Option<Value> {
        let class = self.frames.last().and_then(|frame| frame.class.clone());
        let class = match (&class, &named.scope) {
            (Some(class), None) => self.overriding(class, &named.name).or(Some(class.clone())),
            _ => class,
        };
        let bases = class.as_ref().map(|class| self.with_bases(class));
        let bases = bases.unwrap_or_default();
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
                                    bases.contains(of)
                                        || named.scope.as_ref() == Some(of)
                                        || !self.index.classes.contains_key(of)
                                }
                            }
                    })
                    .collect()
            })
            .unwrap_or_default();
        let mut own = self.in_namespace(own, node, source);
        // A class hides what its bases and the namespaces around it call the same.
        let class_of = |at: usize| self.index.functions[at].class.as_ref();
        let has = |class: &&String| own.iter().any(|&at| class_of(at) == Some(*class));
        if let Some(hiding) = bases.iter().find(has) {
            own.retain(|&at| class_of(at) == Some(hiding));
        }
        if !own.is_empty() {
            let candidates: Vec<_> = own
                .iter()
                .map(|&at| {
                    let function = &self.index.functions[at];
                    (function.node, function.template, self.source_in(function))
                })
                .collect();
            let bindings = match (&class, self.frames.last()) {
                (Some(_), Some(frame)) => frame.bindings.clone(),
                _ => Bindings::new(),
            };
            let at = self.best(&candidates, arguments, &bindings, source)?;
            let function = &self.index.functions[own[at]];
            let (definition, template) = (function.node, function.template);
            let callee = self.source_in(function);
            let callee_class = function.class.clone();
            let this = callee_class
                .as_ref()
                .filter(|of| bases.contains(of))
                .and_then(|_| self.frames.last().and_then(|frame| frame.this.clone()));
            return Some(self.invoke(
                definition,
                template,
                callee,
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
                let node = definition.node(&[Kind::FunctionDefinition])?;
                Some((node, template_of(node), Source::new(&definition.text, true)))
            })
            .collect();
        let at = self.best(&candidates, arguments, &Bindings::new(), source)?;
        let (definition, template, callee) = candidates[at];
        Some(self.invoke(
            definition, template, callee, None, None, named, arguments, node, source,
        ))
    }
    #[allow(clippy::too_many_arguments, reason = "a call is all of this")]
    pub(super) fn invoke(
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
        if (active && !self.may_call_again(identity))
            || self.open_calls(false) >= self.deepest_calls()
            || self.is_too_deep()
            || self.is_spent()
        {
            // What it launches is not counted.
            if self
                .running
                .as_ref()
                .is_some_and(|running| running.leading.contains(&named.name))
            {
                self.lost_events = true;
            }
            self.forget_globals();
            if let Some(this) = this {
                self.forget_at(&this);
            }
            self.forget_arguments("", arguments, source);
            // Everything it is given by name may be a reference.
            for argument in arguments {
                if let Some(place) = &argument.place {
                    self.forget_at(place);
                }
            }
            return Value::Unknown;
        }
        let list = parameter_list(function);
        let parameters = list.map(parts).unwrap_or_default();
        let mut bindings = match (&class, &this) {
            (Some(class), Some(this)) => self.bindings_in(class, this),
            _ => Bindings::new(),
        };
        bindings.extend(match template {
            Some(template) => {
                let explicit = match named.template_list {
                    Some(list) => self.template_arguments(list, source),
                    None => named.template_args.clone(),
                };
                let types: Vec<Option<Type>> = arguments
                    .iter()
                    .map(|argument| self.argument_type(argument, source))
                    .collect();
                self.lowering.in_host(Vec::new(), &bindings, |lowering| {
                    lowering.host_bindings(template, &explicit, &parameters, &types, callee)
                })
            }
            None => Bindings::new(),
        });
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
        let value = self.within_its_share(&named.name, active, |host| {
            host.frames.push(frame);
            let back = host.bind_arguments(&parameters, arguments, callee);
            let value = host.body_of(function, callee);
            for (from, to) in back {
                let value = host.read(&from);
                host.write(&to, value);
            }
            value
        });
        value.unwrap_or_else(|| {
            self.forget_passed(&parameters, arguments, callee);
            Value::Unknown
        })
    }

    /// In a method of `class`: the class of the object that it is called for, where that overrides this virtual function.
    fn overriding(&self, class: &str, name: &str) -> Option<String> {
        let this = self.frames.last()?.this.clone()?;
        let Value::Record(object) = self.read(&this) else {
            return None;
        };
        if object.class == class {
            return None;
        }
        let all = self.with_bases(&object.class);
        let above = all.iter().position(|of| of == class)?;
        let functions = self.index.by_name.get(name)?;
        let of = |class: &String| -> Vec<&Function> {
            let functions = functions.iter().map(|&at| &self.index.functions[at]);
            let own = functions.filter(|function| function.class.as_ref() == Some(class));
            own.collect()
        };
        let is_virtual = |function: &Function| {
            let body = function.node.field(Field::Body);
            let end = body.map_or(function.node.end_byte(), |body| body.start_byte());
            let head = &function.text.text[function.node.start_byte()..end];
            words_in(head).any(|word| matches!(word, "virtual" | "override" | "final"))
        };
        let own = all[..above].iter().find(|class| !of(class).is_empty())?;
        // A function that has no body in the base is virtual, or the call would not compile.
        let base = all[above..].iter().flat_map(of).next();
        let overrides = base.is_none_or(is_virtual) || of(own).into_iter().any(is_virtual);
        overrides.then(|| own.clone())
    }

    /// Those of these functions that the call can mean by its namespaces.
    fn in_namespace(&self, mut own: Vec<usize>, call: Node, source: Source) -> Vec<usize> {
        let functions = &self.index.functions;
        if own.len() < 2 || own.iter().any(|&at| functions[at].class.is_some()) {
            return own;
        }
        let spaces: Vec<&str> = own.iter().map(|&at| functions[at].space).collect();
        let function = call.field(Field::Function).unwrap_or(call);
        if let Some(meant) = meant(function, source, &spaces) {
            let mut each = spaces.iter();
            own.retain(|_| each.next() == Some(&meant));
        }
        own
    }

    /// Walks the body of the function on top and leaves it.
    pub(super) fn body_of(&mut self, function: Node, source: Source) -> Value {
        let breakables = std::mem::take(&mut self.breakables);
        if let Some(list) = parts(function)
            .into_iter()
            .find(|part| part.kind() == Kind::FieldInitializerList)
        {
            self.field_initializers(list, source);
        }
        let goes_on = match function.field(Field::Body) {
            Some(body) => self.statement(body, source),
            None => true,
        };
        self.breakables = breakables;
        let given = self.given_by(function, source);
        let Some(frame) = self.frames.pop() else {
            return Value::Unknown;
        };
        let declarator = function.field(Field::Declarator);
        let by_reference =
            declarator.is_some_and(|declarator| declarator.kind() == Kind::ReferenceDeclarator);

        if !frame.returns.is_empty() {
            self.only_perhaps();
        }
        self.no_jump_is_left();
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
        let result = frame.result.unwrap_or(Value::Unknown);
        let result = match given {
            Some(kept) => self.kept_as(&kept, result, source),
            None => result,
        };
        if self.running.is_some() && !by_reference {
            self.given_away(result)
        } else {
            result
        }
    }
    /// What the function on top gives by its type, in a run, where it has returned a number, a list, or what an object of the
    /// standard library is made of.
    fn given_by(&mut self, function: Node, source: Source) -> Option<LibraryType> {
        self.running.as_ref()?;
        let result = self.frames.last()?.result.as_ref()?;
        let number = matches!(result, Value::Int(..) | Value::Float(..));
        let list = matches!(result, Value::Array(_));
        if matches!(result, Value::Unknown | Value::Address(_)) {
            return None;
        }
        let declarator = function.field(Field::Declarator)?;
        if declarator.kind() != Kind::FunctionDeclarator {
            return None;
        }
        let ty = function.field(Field::Type)?;
        if let Some(kept) = self.kept_by(ty, source) {
            return Some(kept);
        }
        if list {
            let kept = self.held_by_type(ty, source, 0);
            return Some(kept).filter(|kept| matches!(kept, LibraryType::Object(_)));
        }
        if !number {
            return None;
        }
        let ty = match Type::named(text(ty, source).trim(), false) {
            Some(ty) => ty,
            None => self.lowered(&[ty], source, |lowering| lowering.host_type(ty, source))?,
        };
        matches!(ty, Type::Int { .. } | Type::Float { .. }).then_some(LibraryType::Number(ty))
    }

    /// Calls a lambda; without arguments nothing is known of its parameters. `None` where it is not walked.
    pub(super) fn call_lambda(
        &mut self,
        lambda: &Rc<Lambda>,
        arguments: Option<&[Argument]>,
    ) -> Option<Value> {
        let identity = (Arc::as_ptr(&lambda.text) as usize, lambda.range.start);
        let active = self.frames.iter().any(|frame| frame.identity == identity);
        if (active && (arguments.is_none() || !self.may_call_again(identity)))
            || self.open_calls(true) >= DEEPEST_LAMBDAS
        {
            return None;
        }
        let definition = Arc::clone(&lambda.text);
        let node = node_ending(&definition, &lambda.range, &[Kind::LambdaExpression])?;
        let source = Source::new(&definition, lambda.header);
        let outer = self.frames.last()?;
        let mut scopes = lambda.scopes.clone();
        scopes.push(Scope::default());
        let frame = Frame {
            name: outer.name.clone(),
            space: Rc::clone(&outer.space),
            class: lambda.class.clone(),
            scopes,
            bindings: lambda.bindings.clone(),
            this: lambda.this.clone(),
            result: None,
            returns: Vec::new(),
            past: Vec::new(),
            mark: self.mark(),
            beside: self.beside,
            own_call: outer.own_call.clone(),
            identity,
            around: self.around.len(),
            is_lambda: true,
            jumps: Vec::new(),
            labels: Vec::new(),
        };
        self.frames.push(frame);
        let parameters = node
            .field(Field::Declarator)
            .and_then(|declarator| declarator.field(Field::Parameters))
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

    /// Explicit instantiations: of kernels they are sites of their own, host functions are walked with them.
    pub(super) fn instantiations(&mut self) {
        let parsed = self.parsed;
        let source = Source::new(parsed, false);
        for node in self.index.instantiations.clone() {
            let Some(declarator) = function_declarator(node) else {
                continue;
            };
            let Some(name) = declarator.field(Field::Declarator) else {
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
                    template_args: Vec::new(),
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

    /// Template arguments that a bound name represents.
    pub(super) fn bound_kernel(&self, name: &str) -> Option<String> {
        match self.binding(name)? {
            Bound::Template(of) => Some(of.clone()),
            _ => None,
        }
    }
}
