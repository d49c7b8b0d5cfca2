//! The ways to launch a kernel: `<<<…>>>`, the functions of CUDA and HIP, OpenCL in C and C++.

use std::rc::Rc;
use std::sync::Arc;

use warplens_syntax::nodes::KernelCallSyntax;
use warplens_syntax::{BinaryOperator, Field, Kind, Node, is_word_part};

use super::arguments::Argument;
use super::events::HostEventKind;
use super::linked::{Linked, Number};
use super::members::{members, reals};
use super::nodes::name_of_function;
use super::nodes::{meant, parts, text};
use super::objects::PROGRAMMATIC;
use super::opt_in::allows_large_clusters;
use super::state::Host;
use super::value::{Extent, KernelName, Place, Step, Value, with_linked};
use super::{Blocks, Followed, LaunchSite, Member, Met, Real};
use warplens_hir::{Source, Space};
use warplens_ir::Bound;
use warplens_ir::Type;

/// The class that holds the extents of a launch in OpenCL's C++ bindings.
const ENQUEUE: &str = "EnqueueArgs";

/// Attributes of a launch that are looked at.
const MOST_ATTRIBUTES: usize = 8;

/// What a launch is given, before the kernel is known.
#[derive(Default)]
struct Config {
    grid: [Extent; 3],
    block: Option<[u64; 3]>,
    block_sides: [Option<u64>; 3],
    global: [Extent; 3],
    shared: Option<u64>,
    cluster: Option<[u64; 3]>,
    begins_early: bool,
    arguments: Vec<Value>,
    types: Vec<Option<Type>>,
}

impl Host<'_> {
    /// What the attributes of a launch say: the blocks of a cluster, and whether it may begin before the launch ahead of it in
    /// its stream has ended.
    fn attributes(&self, attributes: &Value, number: &Value, config: &mut Config) {
        let Value::Address(place) = attributes else {
            return;
        };
        let number = number
            .integer()
            .and_then(|number| usize::try_from(number).ok());
        let Some(number) = number.map(|number| number.min(MOST_ATTRIBUTES)) else {
            return;
        };
        let first = match place.path.last() {
            Some(Step::Index(Some(first))) => *first,
            _ => 0,
        };
        let mut all = place.clone();
        if matches!(all.path.last(), Some(Step::Index(_))) {
            all.path.pop();
        }
        let whole = self.read(&all);
        let field = |value: &Value, name: &str| value.at(&Step::Field(name.to_owned()));
        for at in first..first + number {
            let attribute = match &whole {
                Value::Array(_) => whole.at(&Step::Index(Some(at))),
                one => one.clone(),
            };
            let value = field(&attribute, "val");
            let dimensions = field(&value, "clusterDim").dimensions();
            let dimensions = dimensions.filter(|dimensions| *dimensions != [1; 3]);
            config.cluster = config.cluster.or(dimensions);
            let early = field(&value, PROGRAMMATIC).integer();
            config.begins_early |= early.is_some_and(|early| early != 0);
        }
    }

    /// `kernel<<<grid, block, shared, stream>>>(…)`.
    pub(super) fn launch(
        &mut self,
        call: Node,
        function: Node,
        launch: KernelCallSyntax,
        list: Node,
        source: Source,
    ) {
        let values: Vec<Value> = launch
            .extents()
            .map(|part| self.eval(part, source))
            .collect();
        let arguments = self.arguments(list, source);
        if self.leaving.is_some() {
            return;
        }
        let kernels = self.launched(function, source);
        let value = |at: usize| values.get(at).unwrap_or(&Value::Unknown);
        let mut config_known = Config {
            grid: value(0).extents(),
            block: value(1).dimensions(),
            block_sides: value(1).sides(),
            shared: match values.get(2) {
                Some(shared) => bytes(shared),
                None => Some(0),
            },
            ..Config::default()
        };
        self.give(&mut config_known, &arguments, source);
        let place = call.start_byte()..launch.node().end_byte();
        self.met(&kernels, &config_known, place, source);
    }

    /// The namespaces around the kernel that a launch names, where the text has kernels of that name in several.
    fn namespaces_of(&self, name: &str, node: Node, source: Source) -> Option<Space> {
        let named = self.index.by_name.get(name)?.iter();
        let functions = named.map(|at| &self.index.functions[*at]);
        let kernels = functions.filter(|function| function.kernel);
        let spaces: Vec<&str> = kernels.map(|kernel| kernel.space).collect();
        meant(node, source, &spaces).map(Space::from)
    }

    /// The kernels that an expression names where a kernel is wanted.
    fn launched(&mut self, function: Node, source: Source) -> Vec<KernelName> {
        let mut node = function;
        while matches!(
            node.kind(),
            Kind::ParenthesizedExpression | Kind::CastExpression | Kind::PointerExpression
        ) {
            let inner = match node.kind() {
                Kind::ParenthesizedExpression => parts(node).into_iter().next(),
                Kind::CastExpression => node.field(Field::Value),
                _ => node.field(Field::Argument),
            };
            match inner {
                Some(inner) => node = inner,
                None => return Vec::new(),
            }
        }
        let (name_node, list) = name_of_function(node);
        let name = text(name_node, source).trim().to_owned();
        let variable = matches!(
            node.kind(),
            Kind::Identifier
                | Kind::SubscriptExpression
                | Kind::FieldExpression
                | Kind::CallExpression
                | Kind::ConditionalExpression
        );
        if variable {
            let known = node.kind() != Kind::Identifier || self.place_named(&name).is_some();
            if known {
                return match self.eval(node, source) {
                    Value::Kernels(all) => (*all).clone(),
                    _ => Vec::new(),
                };
            }
        }
        if let Some(bound) = self.binding(&name) {
            return match bound {
                // A template parameter that is a kernel.
                Bound::Template(_) => self
                    .bound_kernel(&name)
                    .map(|name| KernelName {
                        name,
                        space: None,
                        template_args: Vec::new(),
                    })
                    .into_iter()
                    .collect(),
                _ => Vec::new(),
            };
        }
        if name.is_empty() || !name.chars().all(is_word_part) {
            return Vec::new();
        }
        let template_args = match list {
            Some(list) => self.template_arguments(list, source),
            None => Vec::new(),
        };
        vec![KernelName {
            space: self.namespaces_of(&name, node, source),
            name,
            template_args,
        }]
    }

    fn give(&mut self, config: &mut Config, arguments: &[Argument], source: Source) {
        for argument in arguments {
            config.arguments.push(argument.value.clone());
            let ty = self.argument_type(argument, source);
            config.types.push(ty);
        }
    }

    /// The same for an array of the arguments' addresses.
    fn give_array(&mut self, config: &mut Config, array: &Value) {
        let array = self.elements(array);
        for element in array {
            match element {
                Value::Address(place) => {
                    let value = self.read_number(&place);
                    config.arguments.push(value);
                    let ty = &self.slots[place.slot].ty;
                    let known =
                        place.path.is_empty() && !matches!(ty, Type::Unknown(_) | Type::Void);
                    config.types.push(known.then(|| ty.clone()));
                }
                _ => {
                    config.arguments.push(Value::Unknown);
                    config.types.push(None);
                }
            }
        }
    }

    /// The elements that a value represents: an array, or a pointer to one or to a single variable.
    pub(super) fn elements(&self, value: &Value) -> Vec<Value> {
        match value {
            Value::Array(values) => (**values).clone(),
            Value::Address(place) => match self.read(place) {
                Value::Array(values) => (*values).clone(),
                Value::Dims(extents) => extents.iter().map(|extent| extent.value(64)).collect(),
                single => vec![single],
            },
            single => vec![single.clone()],
        }
    }

    fn met(
        &mut self,
        kernels: &[KernelName],
        config: &Config,
        place: std::ops::Range<usize>,
        source: Source,
    ) {
        let Some(frame) = self.frames.last() else {
            return;
        };
        let inside = frame.name.clone();
        let own = frame.own_call.is_none();
        let range = match (&frame.own_call, source.is_header()) {
            (Some(call), _) => call.clone(),
            (None, true) => return,
            (None, false) => self.parsed.place(place.clone()).range,
        };
        let (memory, around) = if own {
            (
                self.memory(&place, source),
                self.loop_around(&place, source),
            )
        } else {
            (Vec::new(), None)
        };
        let around = around.map(std::sync::Arc::new);
        let through = self.callers();
        let beside = self.beside > 0;
        // What was computed from a value that does not lead here is not known.
        let all = |extents: &[Extent; 3]| {
            let [x, y, z] = extents.each_ref().map(Extent::known);
            Some([x?, y?, z?]).filter(|_| !beside)
        };
        let follows = if beside { None } else { follows(config) };
        let running = self.running.as_ref();
        let doubtful = self.is_doubtful();
        let count = running.and_then(|running| (!doubtful).then_some(running.times));
        let assumes_residency = running.is_some_and(|running| running.asked_for_residency);
        let extents: Vec<Option<u64>> = if running.is_some() {
            let arguments = config.arguments.iter();
            arguments.map(|value| self.bytes_from(value)).collect()
        } else {
            Vec::new()
        };
        let contents = self.contents_of(&config.arguments);
        // Where a condition around the launch does not hold, nothing is given.
        let given: &[Value] = if beside { &[] } else { &config.arguments };
        // A tensor map is passed by value or lies in memory of the device.
        let structures: Vec<Value> = given
            .iter()
            .map(|value| {
                self.tensor_map_behind(value)
                    .unwrap_or_else(|| value.clone())
            })
            .collect();
        let members: Vec<Member> = structures.iter().enumerate().flat_map(members).collect();
        let reals: Vec<Real> = given.iter().enumerate().flat_map(reals).collect();
        let texts = [source.parsed, self.parsed].map(|parsed| &**parsed);
        let texts = texts.map(|text| self.sets_attributes(text).then_some(&*text.text));
        for kernel in kernels {
            let launch = HostEventKind::Launch(self.sites.len());
            self.happens(launch, &kernel.name, place.clone(), source);
            let mut texts_asking = texts.iter().flatten();
            let asks_for_shared = texts_asking.any(|text| self.asks_for_shared(text, &kernel.name));
            self.sites.push(Met {
                site: LaunchSite {
                    kernel: kernel.name.clone(),
                    space: kernel.space.clone(),
                    range: range.clone(),
                    inside: inside.clone(),
                    through: through.clone(),
                    grid: all(&config.grid),
                    follows: follows.clone(),
                    block: config.block,
                    block_sides: config.block_sides,
                    block_varies: false,
                    global: all(&config.global),
                    dynamic_shared_bytes: config.shared,
                    asks_for_shared,
                    assumes_residency,
                    cluster: config.cluster,
                    begins_early: config.begins_early,
                    allows_large_clusters: texts
                        .iter()
                        .flatten()
                        .any(|text| allows_large_clusters(text)),
                    arguments: given.iter().map(Value::integer).collect(),
                    members: members.clone(),
                    reals: reals.clone(),
                    template_args: kernel.template_args.clone(),
                    argument_types: config.types.clone(),
                    memory: memory.clone(),
                    around: around.clone(),
                    extents: extents.clone(),
                    contents: contents.clone(),
                    count,
                    represents: false,
                    of_run: None,
                },
                beside,
            });
        }
        self.forget_written(kernels, &config.arguments);
    }

    pub(super) fn instantiation(
        &mut self,
        node: Node,
        name: &str,
        template_args: Vec<Option<Bound>>,
        source: Source,
    ) {
        self.sites.push(Met {
            site: LaunchSite {
                range: source.parsed.place(node.byte_range()).range,
                template_args,
                ..LaunchSite::unknown(name)
            },
            beside: false,
        });
    }

    // ---- functions -----------------------------------------------------------------------------

    /// A call of a toolkit's function that launches, or that says something about launches.
    pub(super) fn api_call(
        &mut self,
        node: Node,
        name: &str,
        arguments: &[Argument],
        source: Source,
    ) -> Option<Value> {
        let value = |at: usize| {
            arguments
                .get(at)
                .map_or(Value::Unknown, |argument| argument.value.clone())
        };
        let place = node.byte_range();
        let error = Some(Value::Unknown);
        if name.contains("Graph") || name.contains("Capture") {
            let values: Vec<Value> = (0..arguments.len()).map(value).collect();
            if self.graph_call(name, &values) {
                return error;
            }
        }
        match name {
            "cudaLaunchKernel"
            | "cudaLaunchCooperativeKernel"
            | "hipLaunchCooperativeKernel"
            | "cudaLaunchKernel_ptsz"
            | "hipLaunchKernel"
            | "cudaLaunchCooperativeKernel_ptsz"
                if arguments.len() <= 6 =>
            {
                let kernels = self.kernels_of(arguments.first()?, source);
                let mut config = Config {
                    grid: value(1).extents(),
                    block: value(2).dimensions(),
                    block_sides: value(2).sides(),
                    shared: arguments.get(4).map_or(Some(0), |_| bytes(&value(4))),
                    ..Config::default()
                };
                self.give_array(&mut config, &value(3));
                self.met(&kernels, &config, place, source);
                error
            }
            "hipLaunchKernelGGL" | "hipLaunchKernel" | "hipExtLaunchKernelGGL" => {
                let kernels = self.kernels_of(arguments.first()?, source);
                let mut config = Config {
                    grid: value(1).extents(),
                    block: value(2).dimensions(),
                    block_sides: value(2).sides(),
                    shared: bytes(&value(3)),
                    ..Config::default()
                };
                let first = if name == "hipExtLaunchKernelGGL" {
                    8
                } else {
                    5
                };
                self.give(&mut config, arguments.get(first..).unwrap_or(&[]), source);
                self.met(&kernels, &config, place, source);
                error
            }
            "cudaLaunchKernelEx"
            | "hipLaunchKernelEx"
            | "cudaLaunchKernelExC"
            | "hipLaunchKernelExC" => {
                let kernels = self.kernels_of(arguments.get(1)?, source);
                let record = match value(0) {
                    Value::Address(place) => self.read(&place),
                    other => other,
                };
                let field = |name: &str| record.at(&Step::Field(name.to_owned()));
                let mut config = Config {
                    grid: field("gridDim").extents(),
                    block: field("blockDim").dimensions(),
                    block_sides: field("blockDim").sides(),
                    shared: bytes(&field("dynamicSmemBytes")),
                    ..Config::default()
                };
                self.attributes(&field("attrs"), &field("numAttrs"), &mut config);
                if name.ends_with('C') {
                    self.give_array(&mut config, &value(2));
                } else {
                    self.give(&mut config, arguments.get(2..).unwrap_or(&[]), source);
                }
                self.met(&kernels, &config, place, source);
                error
            }
            "cudaGraphAddKernelNode"
            | "hipGraphAddKernelNode"
            | "cudaGraphAddNode"
            | "hipGraphAddNode" => {
                let record = match value(4) {
                    Value::Address(place) => self.read(&place),
                    other => other,
                };
                let record = match record.at(&Step::Field("kernel".to_owned())) {
                    kernel @ Value::Record(_) => kernel,
                    _ => record,
                };
                let field = |name: &str| record.at(&Step::Field(name.to_owned()));
                let Value::Kernels(kernels) = field("func") else {
                    return None;
                };
                let mut config = Config {
                    grid: field("gridDim").extents(),
                    block: field("blockDim").dimensions(),
                    block_sides: field("blockDim").sides(),
                    shared: bytes(&field("sharedMemBytes")),
                    ..Config::default()
                };
                self.give_array(&mut config, &field("kernelParams"));
                let mark = self.graph_mark();
                self.met(&kernels, &config, place, source);
                self.taken_by_graph(&value(1), mark);
                None
            }
            "cuLaunchKernel"
            | "hipModuleLaunchKernel"
            | "cuLaunchCooperativeKernel"
            | "hipModuleLaunchCooperativeKernel" => {
                let kernels = match value(0) {
                    Value::Kernels(all) => (*all).clone(),
                    _ => self.made_elsewhere(arguments.first()?, source),
                };
                let three =
                    |from: usize| Value::list(vec![value(from), value(from + 1), value(from + 2)]);
                let mut config = Config {
                    grid: three(1).extents(),
                    block: three(4).dimensions(),
                    block_sides: three(4).sides(),
                    shared: bytes(&value(7)),
                    ..Config::default()
                };
                self.give_array(&mut config, &value(9));
                self.met(&kernels, &config, place, source);
                error
            }
            "cuModuleGetFunction" | "hipModuleGetFunction" | "cuLibraryGetKernel" => {
                if let (Value::Address(to), Some(name)) = (value(0), self.whole_text_in(&value(2)))
                {
                    let kernel = Value::kernel(demangled(&name), Vec::new());
                    self.write(&to, kernel);
                    return error;
                }
                None
            }
            "clCreateKernel" => {
                let name = self.whole_text_in(&value(1))?;
                if let Value::Address(code) = value(2) {
                    self.forget(code.slot);
                }
                Some(self.kernel_object(&name))
            }
            "clBuildProgram" | "clCompileProgram" => {
                let program = arguments.first().and_then(|program| program.node);
                self.build(node, program, arguments.get(3)?, source);
                None
            }
            "clSetKernelArg" => {
                if let (Value::Object(_, slot), Some(at)) = (value(0), value(1).as_int()) {
                    let given = match value(3) {
                        Value::Address(place) => self.read_number(&place),
                        // Local memory: its size counts.
                        Value::Int(0, ..) => local_bytes(&value(2)),
                        _ => Value::Unknown,
                    };
                    self.set_argument(slot, at, given);
                } else if let Value::Object(_, slot) = value(0) {
                    self.forget(slot);
                }
                error
            }
            "clEnqueueNDRangeKernel" => {
                let dims = value(2).as_int();
                let global = self.work_size(&value(4), dims);
                let local = all_known(&self.work_size(&value(5), dims));
                self.enqueue_argument(arguments.get(1)?, global, local, place, source);
                error
            }
            "clEnqueueTask" => {
                let (global, local) = (Extent::ONES, Some([1; 3]));
                self.enqueue_argument(arguments.get(1)?, global, local, place, source);
                error
            }
            _ => None,
        }
    }

    /// A method of an object of the toolkit: OpenCL's C++ bindings.
    pub(super) fn object_call(
        &mut self,
        node: Node,
        object: &Value,
        name: &str,
        arguments: &[Argument],
        source: Source,
    ) -> Option<Value> {
        let value = |at: usize| {
            arguments
                .get(at)
                .map_or(Value::Unknown, |argument| argument.value.clone())
        };
        // The options are the text among what is given.
        if matches!(name, "build" | "compile")
            && let Some(options) = arguments
                .iter()
                .take(3)
                .find(|argument| self.text_in(&argument.value).is_some())
        {
            let program = node
                .field(Field::Function)
                .and_then(|function| function.field(Field::Argument));
            self.build(node, program, options, source);
            return Some(Value::Unknown);
        }
        match (name, object) {
            ("setArg", Value::Object(_, slot)) => {
                match value(0).as_int() {
                    Some(at) => {
                        let given = match arguments.len() {
                            3 if value(2).as_int() == Some(0) => local_bytes(&value(1)),
                            2 => value(1),
                            _ => Value::Unknown,
                        };
                        self.set_argument(*slot, at, given);
                    }
                    None => self.forget(*slot),
                }
                Some(Value::Unknown)
            }
            ("setArgs", Value::Object(_, slot)) => {
                for (at, argument) in arguments.iter().enumerate() {
                    self.set_argument(*slot, at as i64, argument.value.clone());
                }
                Some(Value::Unknown)
            }
            ("enqueueWriteBuffer", _) if self.running.is_some() => {
                self.written_buffer(&value(0), &value(2), &value(4), &value(3));
                Some(Value::Unknown)
            }
            ("enqueueNDRangeKernel", _) => {
                let Value::Object(kernel, slot) = value(0) else {
                    return Some(Value::Unknown);
                };
                let (global, local) = (range(&value(2)), all_known(&range(&value(3))));
                self.enqueue(&kernel, slot, global, local, node.byte_range(), source);
                Some(Value::Unknown)
            }
            _ => None,
        }
    }

    /// A kernel object that is called: `kernel(cl::EnqueueArgs(queue, global, local), …)`.
    pub(super) fn functor_call(
        &mut self,
        node: Node,
        object: &Value,
        arguments: &[Argument],
        source: Source,
    ) -> Option<Value> {
        let (Value::Object(name, _), Some(first)) = (object, arguments.first()) else {
            return None;
        };
        let Value::Record(record) = &first.value else {
            return None;
        };
        if record.class != ENQUEUE {
            return None;
        }
        let field = |name: &str| first.value.at(&Step::Field(name.to_owned()));
        let (global, local) = (range(&field("global")), all_known(&range(&field("local"))));
        // What it is called with is what it is launched with.
        let Value::Object(name, slot) = self.kernel_object(name) else {
            return None;
        };
        for (at, argument) in arguments.iter().skip(1).enumerate() {
            self.set_argument(slot, at as i64, argument.value.clone());
        }
        self.enqueue(&name, slot, global, local, node.byte_range(), source);
        Some(Value::Unknown)
    }

    /// `cl::EnqueueArgs(queue, [event,] [offset,] global[, local])`.
    pub(super) fn enqueue_arguments(values: &[Value]) -> Value {
        let extents: Vec<&Value> = values
            .iter()
            .filter(|value| matches!(value, Value::Dims(_)))
            .collect();
        let (global, local) = match (extents.as_slice(), values.len()) {
            ([global], 2) => ((*global).clone(), Value::Unknown),
            ([.., global, local], _) => ((*global).clone(), (*local).clone()),
            // One of them is not known: the last is the block where there are three.
            ([local], 3) if matches!(values.last(), Some(Value::Dims(_))) => {
                (Value::Unknown, (*local).clone())
            }
            _ => (Value::Unknown, Value::Unknown),
        };
        let fields = vec![("global".to_owned(), global), ("local".to_owned(), local)];
        Value::record(ENQUEUE, fields)
    }

    fn enqueue_argument(
        &mut self,
        kernel: &Argument,
        global: [Extent; 3],
        local: Option<[u64; 3]>,
        place: std::ops::Range<usize>,
        source: Source,
    ) {
        if let Value::Object(name, slot) = &kernel.value {
            self.enqueue(&Rc::clone(name), *slot, global, local, place, source);
            return;
        }
        let kernels = self.made_elsewhere(kernel, source);
        let config = Config {
            grid: blocks(&global, local),
            block: local,
            global,
            ..Config::default()
        };
        self.met(&kernels, &config, place, source);
    }

    /// The kernels of a handle that another function makes.
    fn made_elsewhere(&mut self, argument: &Argument, source: Source) -> Vec<KernelName> {
        let Some(handle) = argument
            .node
            .and_then(|node| super::handles::last_name(text(node, source)))
        else {
            return Vec::new();
        };
        let parsed = self.parsed;
        let handles = self
            .handles
            .get_or_insert_with(|| super::handles::handles(&parsed.text));
        handles
            .get(&handle)
            .into_iter()
            .flatten()
            .map(|name| KernelName {
                name: demangled(name).to_owned(),
                space: None,
                template_args: Vec::new(),
            })
            .collect()
    }

    /// A kernel object, its arguments not yet set.
    pub(super) fn kernel_object(&mut self, name: &str) -> Value {
        let slot = self.slot(Type::Unknown(String::new()), Value::list(Vec::new()), false);
        Value::Object(name.into(), slot)
    }

    fn set_argument(&mut self, slot: usize, at: i64, value: Value) {
        let Ok(at) = usize::try_from(at) else { return };
        let place = Place {
            slot,
            path: vec![Step::Index(Some(at))],
        };
        if at < super::value::MOST_ELEMENTS {
            self.write(&place, value);
        }
    }

    fn work_size(&self, value: &Value, dims: Option<i64>) -> [Extent; 3] {
        let dims = dims.and_then(|dims| usize::try_from(dims).ok());
        let (Some(dims @ 1..=3), false) =
            (dims, matches!(value, Value::Int(..)) || value.is_open())
        else {
            return Extent::UNKNOWN;
        };
        let elements = self.elements(value);
        let mut extents = Extent::ONES;
        for (at, extent) in extents.iter_mut().enumerate().take(dims) {
            *extent = elements.get(at).map_or(Extent::Unknown, |element| {
                let [extent, ..] = element.extents();
                extent
            });
        }
        extents
    }

    fn enqueue(
        &mut self,
        name: &Rc<str>,
        slot: usize,
        global: [Extent; 3],
        local: Option<[u64; 3]>,
        place: std::ops::Range<usize>,
        source: Source,
    ) {
        let grid = blocks(&global, local);
        let set = match &self.slots[slot].value {
            Value::Array(values) => Some(Rc::clone(values)),
            _ => None,
        };
        let (mut arguments, mut shared) = (Vec::new(), set.is_some().then_some(0));
        for value in set.iter().flat_map(|values| values.iter()) {
            arguments.push(value.clone());
            if let Value::Array(local) = value {
                let size = local.first().and_then(bytes);
                shared = shared.and_then(|sum: u64| sum.checked_add(size?));
            }
        }
        let config = Config {
            grid,
            block: local,
            block_sides: [None; 3],
            global,
            shared,
            cluster: None,
            begins_early: false,
            arguments,
            types: Vec::new(),
        };
        let kernel = KernelName {
            name: name.to_string(),
            space: None,
            template_args: Vec::new(),
        };
        self.met(&[kernel], &config, place, source);
    }

    /// The kernels that an argument represents: a name, in parentheses, cast, or a variable.
    fn kernels_of(&mut self, argument: &Argument, source: Source) -> Vec<KernelName> {
        if let Value::Kernels(all) = &argument.value {
            return (**all).clone();
        }
        match argument.node {
            Some(node) => self.launched(unwrapped(node, source), source),
            None => Vec::new(),
        }
    }
}

/// The extents of a `cl::NDRange`.
fn range(value: &Value) -> [Extent; 3] {
    match value {
        Value::Dims(extents) => extents.clone(),
        _ => Extent::UNKNOWN,
    }
}

fn all_known(extents: &[Extent; 3]) -> Option<[u64; 3]> {
    let [x, y, z] = extents.each_ref().map(Extent::known);
    Some([x?, y?, z?])
}

/// Blocks of that number of threads that cover the whole launch.
fn blocks(global: &[Extent; 3], local: Option<[u64; 3]>) -> [Extent; 3] {
    let Some(local) = local else {
        return Extent::UNKNOWN;
    };
    std::array::from_fn(|at| match &global[at] {
        Extent::Unknown => Extent::Unknown,
        Extent::Known(global) => Extent::Known(global.div_ceil(local[at].max(1))),
        Extent::Linked(global) => {
            let local = local[at] as i64;
            let padded = with_linked(
                BinaryOperator::Add,
                &Value::Linked(global.clone()),
                &Value::int(local - 1),
            );
            let [blocks, ..] =
                with_linked(BinaryOperator::Divide, &padded, &Value::int(local)).extents();
            blocks
        }
    })
}

/// How a grid that is not known follows from arguments of the launch; `None` where nothing of it is known.
fn follows(config: &Config) -> Option<[Blocks; 3]> {
    let found = config.grid.each_ref().map(|extent| match extent {
        Extent::Unknown => Blocks::Open,
        Extent::Known(extent) => Blocks::Known(*extent),
        Extent::Linked(extent) => followed(extent, &config.arguments).unwrap_or(Blocks::Open),
    });
    let says = |blocks: &Blocks| !matches!(blocks, Blocks::Open | Blocks::Known(1));
    found.iter().any(says).then_some(found)
}

/// How a number follows from arguments.
fn followed(extent: &Linked, arguments: &[Value]) -> Option<Blocks> {
    let given = |value: &Value| match value {
        Value::Linked(given) if given.number == extent.number => given.moved(),
        _ => None,
    };
    let mut all = arguments.iter().enumerate();
    let argument = all.find_map(|(at, value)| Some((Followed::Argument(at), given(value)?)));
    let (number, moved) = match (argument, &extent.number) {
        (Some(argument), _) => argument,
        (None, Number::Of(composed, both)) => {
            let [a, b] = &**both;
            let both = [followed(a, arguments)?, followed(b, arguments)?];
            (Followed::Of(*composed, Arc::new(both)), 0)
        }
        (None, Number::Own(_)) => return None,
    };
    Some(Blocks::Follow {
        number,
        add: extent.add.checked_sub(moved)?,
        divisor: extent.divisor,
        times: extent.times,
        most: extent.most,
    })
}

/// What is inside `reinterpret_cast<…>(…)` and the like.
fn unwrapped<'t>(node: Node<'t>, source: Source) -> Node<'t> {
    let mut at = node;
    for _ in 0..4 {
        let inner = match at.kind() {
            Kind::CallExpression
                if at
                    .field(Field::Function)
                    .is_some_and(|function| text(function, source).contains("_cast<")) =>
            {
                at.field(Field::Arguments)
                    .and_then(|list| parts(list).into_iter().next())
            }
            _ => None,
        };
        match inner {
            Some(inner) => at = inner,
            None => break,
        }
    }
    at
}

/// A size in bytes; a null pointer or a stream in its place is none.
fn bytes(value: &Value) -> Option<u64> {
    value.as_int().and_then(|value| u64::try_from(value).ok())
}

/// Local memory given as an argument: its size, kept apart from an integer that is passed.
fn local_bytes(size: &Value) -> Value {
    Value::list(vec![size.clone()])
}

/// The plain name of a mangled one.
fn demangled(name: &str) -> &str {
    let Some(rest) = name.strip_prefix("_Z") else {
        return name;
    };
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let Ok(length) = rest[..digits].parse::<usize>() else {
        return name;
    };
    rest.get(digits..digits + length).unwrap_or(name)
}
