//! A block of threads in lock step: their variables, their memory, what is counted.

use std::collections::HashMap;
use std::rc::Rc;

use crate::lexer::Position;
use crate::memory::Memory;
use crate::parse::{File, basic};
use crate::races::Races;
use crate::scalar::Scalar;
use crate::splits::Splits;
use crate::tally::{Access, Class, Counter, Space};
use crate::tree::{Declaration, Expr, Function, Stmt, Storage, Structure, TypeName};
use crate::types::{Fault, Layout, Packing, Type, normal};
use crate::{Argument, Dialect, Error, Launch, Run};

pub(crate) type RunResult<T> = Result<T, Error>;

/// The values of all lanes.
#[derive(Debug, Clone)]
pub(crate) enum Data {
    /// Scalars and pointers, as [`normal`] keeps them.
    Words(Vec<u64>),
    /// Anything else: the lanes' bytes one after another.
    Bytes(Vec<u8>),
}

#[derive(Debug, Clone)]
pub(crate) struct ThreadValues {
    pub(crate) ty: Type,
    pub(crate) data: Data,
}

impl ThreadValues {
    pub(crate) fn words(ty: Type, words: Vec<u64>) -> ThreadValues {
        ThreadValues {
            ty,
            data: Data::Words(words),
        }
    }

    pub(crate) fn scalar(&self) -> Option<Scalar> {
        match self.ty {
            Type::Scalar(scalar) => Some(scalar),
            _ => None,
        }
    }
}

/// Where something lies: for all lanes at one address (which in their own memories is another byte for each).
#[derive(Debug, Clone)]
pub(crate) enum Address {
    Same(u64),
    Each(Rc<Vec<u64>>),
}

impl Address {
    pub(crate) fn lane(&self, lane: usize) -> u64 {
        match self {
            Address::Same(address) => *address,
            Address::Each(addresses) => addresses[lane],
        }
    }

    pub(crate) fn plus(&self, offset: u64) -> Address {
        match self {
            Address::Same(address) => Address::Same(address.wrapping_add(offset)),
            Address::Each(all) => Address::Each(Rc::new(
                all.iter().map(|a| a.wrapping_add(offset)).collect(),
            )),
        }
    }
}

/// Something that has an address.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    pub(crate) ty: Type,
    pub(crate) at: Address,
}

#[derive(Debug, Clone)]
pub(crate) enum Binding {
    Object(Object),
    /// A template's argument.
    Type(Type),
    Constant(Scalar, u64),
}

/// One call that is under way.
#[derive(Debug)]
pub(crate) struct Frame {
    /// Lanes that have returned.
    pub(crate) returned: Vec<bool>,
    pub(crate) result: Option<ThreadValues>,
    pub(crate) result_type: Option<Type>,
}

#[derive(Debug)]
pub(crate) struct Machine<'p> {
    pub(crate) file: &'p File,
    pub(crate) dialect: Dialect,
    pub(crate) launch: &'p Launch,
    pub(crate) lanes: usize,
    pub(crate) block: [u32; 3],
    pub(crate) memory: Memory,
    pub(crate) counter: Counter,
    /// The branches being executed.
    pub(crate) splits: Splits,
    /// Names in force, the innermost last; a call sees those from `base` on.
    pub(crate) scopes: Vec<(Rc<str>, Binding)>,
    pub(crate) base: usize,
    globals: HashMap<Rc<str>, Binding>,
    layouts: HashMap<Rc<str>, Rc<Layout>>,
    /// Shared arrays of the block, by declaration and call.
    shared: HashMap<(usize, Position), u64>,
    dynamic_shared: u64,
    /// Bytes of local memory in use.
    pub(crate) top: u64,
    pub(crate) frames: Vec<Frame>,
    /// Lanes that left the innermost loop or `switch`, and those that continue with its next iteration.
    pub(crate) breaks: Vec<Vec<bool>>,
    pub(crate) continues: Vec<Vec<bool>>,
    pub(crate) calls: Vec<u32>,
    pub(crate) chain: usize,
    /// Above 0: nothing is counted.
    pub(crate) silent: u32,
    pub(crate) exit_test: bool,
    steps: u64,
    pub(crate) depth: usize,
    pub(crate) undefined: Option<Error>,
    /// The first barrier that threads which are still there do not come to.
    pub(crate) missed: Option<Error>,
    pub(crate) parted: bool,
}

impl<'p> Machine<'p> {
    pub(crate) fn new(
        file: &'p File,
        dialect: Dialect,
        launch: &'p Launch,
    ) -> RunResult<Machine<'p>> {
        let threads = launch.block.iter().map(|&n| u64::from(n)).product::<u64>();
        if threads == 0 || threads > 1024 || launch.warp == 0 {
            return Err(Error::new(
                Position::default(),
                "a block has 1 to 1024 threads",
            ));
        }
        let lanes = threads as usize;
        let mut machine = Machine {
            file,
            dialect,
            launch,
            lanes,
            block: [0; 3],
            memory: Memory::new(lanes, launch.checked, launch.contents),
            counter: Counter::default(),
            splits: Splits::default(),
            scopes: Vec::new(),
            base: 0,
            globals: HashMap::new(),
            layouts: HashMap::new(),
            shared: HashMap::new(),
            dynamic_shared: 0,
            top: 0,
            frames: Vec::new(),
            breaks: Vec::new(),
            continues: Vec::new(),
            calls: Vec::new(),
            chain: 0,
            silent: 0,
            exit_test: false,
            steps: 0,
            depth: 0,
            undefined: None,
            missed: None,
            parted: false,
        };
        machine.chain = machine.counter.chain(&[]);
        machine.memory.races = launch.races.then(|| Races::new(lanes, launch.warp));
        machine.file_variables();
        Ok(machine)
    }

    /// Variables outside functions, as far as they can be made: who names another one gets an error there.
    fn file_variables(&mut self) {
        self.silent += 1;
        let all = vec![true; self.lanes];
        for declaration in &self.file.variables {
            let Ok(ty) = self.declared_type(declaration, &all) else {
                continue;
            };
            let constant = matches!(declaration.storage, Storage::Own) && ty.is_word();
            if constant {
                let Some(init) = &declaration.init else {
                    continue;
                };
                let Ok(value) = self.eval(init, &all) else {
                    continue;
                };
                let Ok(value) = self.converted(value, &ty, &all, init.place) else {
                    continue;
                };
                if let (Data::Words(words), Type::Scalar(scalar)) = (value.data, &ty) {
                    let binding = Binding::Constant(*scalar, words[0]);
                    self.globals.insert(declaration.name.clone(), binding);
                }
                continue;
            }
            let space = match declaration.storage {
                Storage::Constant | Storage::Own => Space::Constant,
                _ => Space::Global,
            };
            let at = self.memory.add(vec![0; ty.size() as usize], space);
            let object = Object {
                ty,
                at: Address::Same(at),
            };
            let mut first = vec![false; self.lanes];
            first[0] = true;
            if let Some(init) = &declaration.init
                && self.initialize(&object, init, &first).is_err()
            {
                continue;
            }
            self.globals
                .insert(declaration.name.clone(), Binding::Object(object));
        }
        self.silent -= 1;
        self.top = 0;
    }

    pub(crate) fn run(mut self, kernel: &str, arguments: &[Argument]) -> RunResult<Run> {
        let function = self.kernel(kernel)?;
        if function.parameters.len() != arguments.len() {
            return Err(Error::new(
                Position::default(),
                "another number of arguments",
            ));
        }
        let mut parameters = Vec::new();
        let (mut buffers, mut local_pointers) = (Vec::new(), Vec::new());
        for (parameter, argument) in function.parameters.iter().zip(arguments) {
            let ty = self.resolve(&parameter.ty)?;
            let mut bytes = vec![0; ty.size() as usize];
            self.argument(&ty, argument, &mut bytes, &mut buffers)?;
            if let Argument::Shared(size) = argument {
                local_pointers.push((parameters.len(), *size));
            }
            parameters.push((parameter.name.clone(), ty, bytes));
        }
        self.run_blocks(function, parameters, &local_pointers)?;
        let buffers = buffers.iter().map(|&at| self.memory.take(at)).collect();
        Ok(Run {
            buffers,
            ..self.finish()
        })
    }

    /// The kernel of that name, its template arguments bound.
    pub(crate) fn kernel(&mut self, name: &str) -> RunResult<&'p Rc<Function>> {
        let file = self.file;
        let function: &Rc<Function> = file
            .functions
            .get(name)
            .and_then(|all| all.iter().find(|function| function.kernel))
            .ok_or_else(|| {
                let why = file
                    .unread
                    .first()
                    .map_or(String::new(), |e| format!(" ({e})"));
                Error::new(
                    Position::default(),
                    &format!("no kernel `{name}` was read{why}"),
                )
            })?;
        self.bind_template(function)?;
        Ok(function)
    }

    /// Runs the blocks. `local_pointers`: the parameters that point to shared memory of that many bytes.
    pub(crate) fn run_blocks(
        &mut self,
        function: &Function,
        mut parameters: Vec<(Rc<str>, Type, Vec<u8>)>,
        local_pointers: &[(usize, u64)],
    ) -> RunResult<()> {
        let names = self.scopes.len();
        for block in self.blocks() {
            self.block = block;
            self.counter.blocks += 1;
            self.memory.begin_block();
            self.shared.clear();
            let trap = |what| Error::new(Position::default(), what);
            self.dynamic_shared = self
                .memory
                .add_shared(self.launch.dynamic_shared_bytes)
                .map_err(trap)?;
            for &(which, size) in local_pointers {
                let address = self.memory.add_shared(size).map_err(trap)?;
                parameters[which].2 = address.to_le_bytes().to_vec();
            }
            self.scopes.truncate(names);
            self.top = 0;
            self.run_block(function, &parameters)?;
        }
        Ok(())
    }

    /// What came of it, without the contents of arrays.
    pub(crate) fn finish(self) -> Run {
        Run {
            tally: self.counter.finish(),
            buffers: Vec::new(),
            undefined: self.undefined.or(self.missed),
            parted: self.parted,
            race: self.memory.races.and_then(|races| races.found),
        }
    }

    /// The addresses of the variables outside functions that have one.
    pub(crate) fn variables(&self) -> HashMap<Rc<str>, u64> {
        let globals = self.globals.iter();
        globals
            .filter_map(|(name, binding)| match binding {
                Binding::Object(object) => Some((name.clone(), object.at.lane(0))),
                _ => None,
            })
            .collect()
    }

    /// The blocks that are run: all of them, or as many as are allowed, from the first to the last.
    fn blocks(&self) -> Vec<[u32; 3]> {
        let [x, y, z] = self.launch.grid.map(u64::from);
        let all = x * y * z;
        let some = all.min(self.launch.blocks);
        let spread = |at: u64| u128::from(at) * u128::from(all - 1) / u128::from((some - 1).max(1));
        (0..some)
            .map(|at| {
                let block = spread(at) as u64;
                [block % x, block / x % y, block / x / y].map(|part| part as u32)
            })
            .collect()
    }

    fn run_block(
        &mut self,
        function: &Function,
        parameters: &[(Rc<str>, Type, Vec<u8>)],
    ) -> RunResult<()> {
        for (name, ty, bytes) in parameters {
            let object = self.variable(ty.clone(), Position::default())?;
            for lane in 0..self.lanes {
                self.memory
                    .write_bytes(lane, object.at.lane(lane), bytes)
                    .map_err(|what| Error::new(Position::default(), what))?;
            }
            self.scopes.push((name.clone(), Binding::Object(object)));
        }
        self.frames.push(Frame {
            returned: vec![false; self.lanes],
            result: None,
            result_type: Some(Type::Void),
        });
        let mut active = vec![true; self.lanes];
        self.block_of(&function.body, &mut active)?;
        self.frames.pop();
        Ok(())
    }

    fn bind_template(&mut self, function: &Function) -> RunResult<()> {
        for parameter in &function.template {
            let given = self.launch.template.get(&*parameter.name);
            let Some(text) = given else {
                let what = format!("the template argument `{}` is missing", parameter.name);
                return Err(Error::new(Position::default(), &what));
            };
            let binding = if parameter.is_type {
                let found = basic(text)
                    .or_else(|| {
                        self.file
                            .structures
                            .contains_key(&**text)
                            .then(|| TypeName::Named(text.as_str().into()))
                    })
                    .or_else(|| (text == "unsigned").then_some(TypeName::Scalar(Scalar::U32)));
                let Some(name) = found else {
                    return Err(Error::new(
                        Position::default(),
                        "a template argument that is no type",
                    ));
                };
                Binding::Type(self.resolve(&name)?)
            } else {
                let word = match &**text {
                    "true" => 1,
                    "false" => 0,
                    digits => digits
                        .trim_end_matches(['u', 'U', 'l', 'L'])
                        .parse::<i64>()
                        .map_err(|_| {
                            Error::new(Position::default(), "a template argument that is no number")
                        })? as u64,
                };
                Binding::Constant(Scalar::I32, word)
            };
            self.scopes.push((parameter.name.clone(), binding));
        }
        Ok(())
    }

    fn argument(
        &mut self,
        ty: &Type,
        argument: &Argument,
        out: &mut [u8],
        buffers: &mut Vec<u64>,
    ) -> RunResult<()> {
        let wrong = || {
            Err(Error::new(
                Position::default(),
                "an argument that does not fit its parameter",
            ))
        };
        let word = match (ty, argument) {
            (Type::Pointer(_), Argument::Buffer(bytes)) => {
                let at = self.memory.add(bytes.clone(), Space::Global);
                buffers.push(at);
                at
            }
            (Type::Pointer(_), Argument::Endless) => self.memory.add_endless(),
            (Type::Pointer(_), Argument::Shared(_)) => 0,
            (Type::Scalar(scalar), Argument::Int(value)) if scalar.is_float() => {
                crate::types::word_of(*scalar, *value as f64)
            }
            (Type::Scalar(scalar), Argument::Int(value)) => normal(*scalar, *value as u64),
            (Type::Scalar(scalar), Argument::Float(value)) if scalar.is_float() => {
                crate::types::word_of(*scalar, *value)
            }
            (Type::Struct(layout), Argument::Fields(values)) => {
                if layout.fields.len() != values.len() {
                    return wrong();
                }
                for ((_, ty, offset), value) in layout.fields.iter().zip(values) {
                    let end = (offset + ty.size()) as usize;
                    self.argument(ty, value, &mut out[*offset as usize..end], buffers)?;
                }
                return Ok(());
            }
            _ => return wrong(),
        };
        let size = out.len();
        out.copy_from_slice(&word.to_le_bytes()[..size]);
        Ok(())
    }

    // ---- types and names -----------------------------------------------------------------------

    pub(crate) fn resolve(&mut self, name: &TypeName) -> RunResult<Type> {
        Ok(match name {
            TypeName::Void | TypeName::Auto => Type::Void,
            TypeName::Scalar(scalar) => Type::Scalar(*scalar),
            TypeName::Vector(scalar, 1) => Type::Scalar(*scalar),
            TypeName::Vector(scalar, lanes) => {
                let packing = match self.dialect {
                    Dialect::Cuda => Packing::Cuda,
                    Dialect::OpenCl => Packing::OpenCl,
                };
                Type::Vector(*scalar, *lanes, packing)
            }
            TypeName::Pointer(inner) => Type::Pointer(Rc::new(self.resolve(inner)?)),
            TypeName::Reference(inner) => self.resolve(inner)?,
            TypeName::Array(element, count) => {
                let element = self.resolve(element)?;
                let count = match count {
                    Some(count) => self.number(count)?,
                    None => 0,
                };
                Type::Array(Rc::new(element), count)
            }
            TypeName::Named(name) => {
                let bound = self.scopes[self.base..]
                    .iter()
                    .rev()
                    .find_map(|(known, binding)| match binding {
                        Binding::Type(ty) if known == name => Some(ty.clone()),
                        _ => None,
                    });
                match bound {
                    Some(ty) => ty,
                    None => self.named_type(name)?,
                }
            }
        })
    }

    fn named_type(&mut self, name: &Rc<str>) -> RunResult<Type> {
        if let Some(layout) = self.layouts.get(name) {
            return Ok(Type::Struct(layout.clone()));
        }
        let file = self.file;
        if let Some(alias) = file.aliases.get(name) {
            return self.deeper(Position::default(), |machine| machine.resolve(alias));
        }
        let Some(structure) = file.structures.get(name) else {
            let what = format!("the type `{name}` is not known here");
            return Err(Error::new(Position::default(), &what));
        };
        let layout = self.deeper(Position::default(), |machine| machine.layout(structure))?;
        let layout = Rc::new(layout);
        self.layouts.insert(name.clone(), layout.clone());
        Ok(Type::Struct(layout))
    }

    fn layout(&mut self, structure: &Structure) -> RunResult<Layout> {
        let (mut size, mut align) = (0u64, structure.align.max(1));
        let mut fields = Vec::new();
        for (name, ty) in &structure.fields {
            let ty = match ty {
                // A structure may point at itself.
                TypeName::Pointer(inner) if matches!(&**inner, TypeName::Named(n) if *n == structure.name) => {
                    Type::Pointer(Rc::new(Type::Void))
                }
                ty => self.resolve(ty)?,
            };
            align = align.max(ty.align());
            let offset = if structure.union {
                0
            } else {
                size.next_multiple_of(ty.align())
            };
            size = size.max(offset + ty.size());
            fields.push((name.clone(), ty, offset));
        }
        Ok(Layout {
            name: structure.name.clone(),
            fields,
            methods: structure.methods.clone(),
            size: size.max(1).next_multiple_of(align),
            align,
        })
    }

    /// A constant, such as an array's size.
    pub(crate) fn number(&mut self, expression: &Expr) -> RunResult<u64> {
        self.silent += 1;
        let all = vec![true; self.lanes];
        let value = self.eval(expression, &all);
        self.silent -= 1;
        match value?.data {
            Data::Words(words) if words[0] < 1 << 32 => Ok(words[0]),
            _ => Err(Error::new(expression.place, "a size that is no number")),
        }
    }

    pub(crate) fn lookup(&self, name: &str) -> Option<&Binding> {
        self.scopes[self.base..]
            .iter()
            .rev()
            .find(|(known, binding)| &**known == name && !matches!(binding, Binding::Type(_)))
            .map(|(_, binding)| binding)
            .or_else(|| self.globals.get(name))
    }

    /// Room for a variable in every thread's own memory.
    pub(crate) fn variable(&mut self, ty: Type, place: Position) -> RunResult<Object> {
        let offset = self.top.next_multiple_of(ty.align().max(1));
        let size = ty.size();
        let at = self
            .memory
            .local(offset, size)
            .map_err(|what| Error::new(place, what))?;
        self.top = offset + size;
        Ok(Object {
            ty,
            at: Address::Same(at),
        })
    }

    /// The type of a declaration; an array without size takes that of its list.
    pub(crate) fn declared_type(
        &mut self,
        declaration: &Declaration,
        mask: &[bool],
    ) -> RunResult<Type> {
        if matches!(&declaration.ty, TypeName::Auto)
            || matches!(&declaration.ty, TypeName::Reference(inner) if matches!(**inner, TypeName::Auto))
        {
            let Some(init) = &declaration.init else {
                return Err(Error::new(declaration.place, "`auto` without a value"));
            };
            // For its type alone.
            self.silent += 1;
            let none = vec![false; mask.len()];
            let value = self.eval(init, &none);
            self.silent -= 1;
            return Ok(value?.ty);
        }
        let ty = self.resolve(&declaration.ty)?;
        Ok(match (ty, &declaration.init) {
            (
                Type::Array(element, 0),
                Some(Expr {
                    kind: crate::tree::Kind::List(_, parts),
                    ..
                }),
            ) => Type::Array(element, parts.len() as u64),
            (ty, _) => ty,
        })
    }

    pub(crate) fn declare(&mut self, declaration: &Declaration, mask: &[bool]) -> RunResult<()> {
        let place = declaration.place;
        if let (TypeName::Reference(_), Some(init)) = (&declaration.ty, &declaration.init)
            && self.has_address(init)
        {
            let object = self.object(init, mask)?;
            self.scopes
                .push((declaration.name.clone(), Binding::Object(object)));
            return Ok(());
        }
        let ty = self.declared_type(declaration, mask)?;
        let object = match declaration.storage {
            Storage::Own | Storage::Global => self.variable(ty, place)?,
            // An array that the host fills holds zeros.
            Storage::Constant if declaration.init.is_none() && !matches!(ty, Type::Array(..)) => {
                self.variable(ty, place)?
            }
            Storage::Constant => {
                let address = self
                    .memory
                    .add(vec![0; ty.size() as usize], Space::Constant);
                Object {
                    ty,
                    at: Address::Same(address),
                }
            }
            Storage::DynamicShared => Object {
                ty,
                at: Address::Same(self.dynamic_shared),
            },
            Storage::Shared => {
                let key = (self.chain, place);
                let address = match self.shared.get(&key) {
                    Some(found) => *found,
                    None => {
                        let made = self
                            .memory
                            .add_shared(ty.size())
                            .map_err(|what| Error::new(place, what))?;
                        self.shared.insert(key, made);
                        made
                    }
                };
                Object {
                    ty,
                    at: Address::Same(address),
                }
            }
        };
        if let Some(init) = &declaration.init {
            let counted = declaration.storage == Storage::Constant;
            self.silent += u32::from(counted);
            let outcome = self.initialize(&object, init, mask);
            self.silent -= u32::from(counted);
            outcome?;
        }
        self.scopes
            .push((declaration.name.clone(), Binding::Object(object)));
        Ok(())
    }

    // ---- counting ------------------------------------------------------------------------------

    pub(crate) fn step(&mut self, place: Position, by: usize) -> RunResult<()> {
        self.steps += by as u64 + 1;
        if self.steps > self.launch.steps {
            return Err(Error::new(place, "more steps than allowed"));
        }
        Ok(())
    }

    pub(crate) fn deeper<T>(
        &mut self,
        place: Position,
        run: impl FnOnce(&mut Self) -> RunResult<T>,
    ) -> RunResult<T> {
        if self.depth > 400 {
            return Err(Error::new(place, "nested too deeply"));
        }
        self.depth += 1;
        let result = run(self);
        self.depth -= 1;
        result
    }

    pub(crate) fn count(&mut self, class: Class, mask: &[bool], each: u64) {
        if self.silent == 0 {
            let lanes = mask.iter().filter(|&&here| here).count() as u64;
            let counts = if self.exit_test {
                &mut self.counter.exit_tests
            } else {
                &mut self.counter.counts
            };
            *counts.entry(class).or_default() += lanes * each;
            let issued = self.warps(mask) * each as f64;
            self.counter.issued += issued;
            self.splits.issue(issued);
        }
    }

    /// Warps with a lane.
    pub(crate) fn warps(&self, mask: &[bool]) -> f64 {
        let warps = mask.chunks(self.launch.warp);
        warps.filter(|lanes| lanes.contains(&true)).count() as f64
    }

    pub(crate) fn fault(&mut self, place: Position, fault: Fault) {
        if let Some(what) = fault
            && self.undefined.is_none()
        {
            self.undefined = Some(Error::new(place, what));
        }
    }

    /// Records an access of `bytes` bytes at an offset from `at`.
    pub(crate) fn access(
        &mut self,
        place: Position,
        access: Access,
        at: &Address,
        (offset, bytes): (u64, u64),
        mask: &[bool],
    ) -> RunResult<()> {
        if self.silent > 0 {
            return Ok(());
        }
        let mut warp: Vec<(Space, usize, u64)> = Vec::with_capacity(self.launch.warp);
        let mut from = 0;
        while from < self.lanes {
            let end = (from + self.launch.warp).min(self.lanes);
            warp.clear();
            for lane in (from..end).filter(|&lane| mask[lane]) {
                let address = at.lane(lane);
                let space = self
                    .memory
                    .space(address)
                    .map_err(|what| Error::new(place, what))?;
                if let Some(space) = space {
                    warp.push((space, lane - from, address.wrapping_add(offset)));
                }
            }
            for space in [Space::Global, Space::Shared, Space::Constant] {
                let lanes: Vec<(usize, u64)> = warp
                    .iter()
                    .filter(|found| found.0 == space)
                    .map(|&(_, lane, address)| (lane, address))
                    .collect();
                if lanes.is_empty() {
                    continue;
                }
                self.counter
                    .request((place, self.chain), access, space, bytes, from, &lanes);
                self.counter.issued += 1.0;
                self.splits.issue(1.0);
                let class = match (space, access) {
                    (_, Access::Atomic) => Class::Atomic,
                    (Space::Global, Access::Load) => Class::GlobalLoad,
                    (Space::Global, Access::Store) => Class::GlobalStore,
                    (Space::Shared, Access::Load) => Class::SharedLoad,
                    (Space::Shared, Access::Store) => Class::SharedStore,
                    (Space::Constant, _) => Class::ConstantLoad,
                };
                let counts = if self.exit_test {
                    &mut self.counter.exit_tests
                } else {
                    &mut self.counter.counts
                };
                *counts.entry(class).or_default() += lanes.len() as u64;
            }
            from = end;
        }
        Ok(())
    }

    /// Notes which way the lanes of each warp go.
    pub(crate) fn fork(
        &mut self,
        place: Position,
        fork: crate::tally::BranchKind,
        mask: &[bool],
        ways: &[u64],
        looping: bool,
    ) {
        if self.silent > 0 {
            return;
        }
        for from in (0..self.lanes).step_by(self.launch.warp) {
            let end = (from + self.launch.warp).min(self.lanes);
            let mut first = None;
            let (mut taken, mut missed, mut differ) = (false, false, false);
            for lane in (from..end).filter(|&lane| mask[lane]) {
                taken |= ways[lane] != 0;
                missed |= ways[lane] == 0;
                differ |= *first.get_or_insert(ways[lane]) != ways[lane];
            }
            if first.is_some() {
                let divergent = if looping { differ } else { taken && missed };
                self.counter
                    .branch(place, self.chain, fork, taken, divergent);
            }
        }
    }

    /// Statements with a scope of their own.
    pub(crate) fn block_of(
        &mut self,
        statements: &[Stmt],
        active: &mut Vec<bool>,
    ) -> RunResult<()> {
        let (names, top) = (self.scopes.len(), self.top);
        for statement in statements {
            self.execute(statement, active)?;
        }
        self.scopes.truncate(names);
        self.top = top;
        Ok(())
    }
}
