//! Calls: of the file's own functions, and of those that the languages bring.

use std::rc::Rc;

use crate::lexer::Position;
use crate::machine::{Binding, Data, Frame, Machine, Object, RunResult, ThreadValues};
use crate::parse::basic;
use crate::scalar::Scalar;
use crate::tally::{Access, Class};
use crate::tree::{Expr, Function, Kind, Op, TemplateArgument, TypeName};
use crate::types::{Packing, Type, float_of, normal, operate, word_of};
use crate::{Error, Run};

type OfOne = fn(f64) -> f64;
type OfTwo = fn(f64, f64) -> f64;

/// How the lanes of a shuffle find their partner.
#[derive(Clone, Copy)]
enum Shuffle {
    To,
    Up,
    Down,
    Xor,
}

impl Machine<'_> {
    // ---- where a thread is ---------------------------------------------------------------------

    fn coordinates(&self, lane: usize) -> [u64; 3] {
        let [x, y, _] = self.launch.block.map(u64::from);
        let lane = lane as u64;
        [lane % x, lane / x % y, lane / (x * y)]
    }

    /// `threadIdx.x` and its like.
    pub(crate) fn index_word(&self, base: &str, name: &str) -> Option<Vec<u64>> {
        let axis = "xyz".find(name).filter(|_| name.len() == 1)?;
        let same = |value: u32| Some(vec![u64::from(value); self.lanes]);
        match base {
            "threadIdx" => Some(
                (0..self.lanes)
                    .map(|lane| self.coordinates(lane)[axis])
                    .collect(),
            ),
            "blockIdx" => same(self.block[axis]),
            "blockDim" => same(self.launch.block[axis]),
            "gridDim" => same(self.launch.grid[axis]),
            _ => None,
        }
    }

    pub(crate) fn named_constant(&self, name: &str) -> Option<ThreadValues> {
        let (scalar, word) = match name {
            "warpSize" => (Scalar::I32, self.launch.warp as u64),
            "CLK_LOCAL_MEM_FENCE" => (Scalar::U32, 1),
            "CLK_GLOBAL_MEM_FENCE" => (Scalar::U32, 2),
            "INT_MAX" => (Scalar::I32, i32::MAX as u64),
            "FLT_MAX" => (Scalar::F32, u64::from(f32::MAX.to_bits())),
            "INFINITY" => (Scalar::F32, u64::from(f32::INFINITY.to_bits())),
            "M_PI" => (Scalar::F64, std::f64::consts::PI.to_bits()),
            "M_PI_F" => (Scalar::F32, u64::from(std::f32::consts::PI.to_bits())),
            _ => return None,
        };
        Some(self.constant(scalar, word))
    }

    fn work_item(&mut self, name: &str, axis: usize) -> Option<ThreadValues> {
        let [block, grid] = [self.launch.block, self.launch.grid].map(|d| d.map(u64::from));
        let at = |dims: [u64; 3], none: u64| dims.get(axis).copied().unwrap_or(none);
        let group = self.block.map(u64::from);
        let word = |lane: usize| {
            Some(match name {
                "get_local_id" => at(self.coordinates(lane), 0),
                "get_group_id" => at(group, 0),
                "get_global_id" => at(group, 0) * at(block, 1) + at(self.coordinates(lane), 0),
                "get_local_size" => at(block, 1),
                "get_num_groups" => at(grid, 1),
                "get_global_size" => at(grid, 1) * at(block, 1),
                "get_global_offset" => 0,
                _ => return None,
            })
        };
        let words: Option<Vec<u64>> = (0..self.lanes).map(word).collect();
        Some(ThreadValues::words(Type::Scalar(Scalar::U64), words?))
    }

    // ---- the file's own functions --------------------------------------------------------------

    pub(crate) fn call(
        &mut self,
        name: &Rc<str>,
        template: &[TemplateArgument],
        arguments: &[Expr],
        mask: &[bool],
        place: Position,
    ) -> RunResult<ThreadValues> {
        let file = self.file;
        if let Some(Binding::Object(this)) = self.lookup("this").cloned()
            && let Type::Struct(layout) = &this.ty
            && let Some(function) = layout.methods.iter().find(|f| f.name == *name).cloned()
        {
            return self.enter(&function, &[], arguments, Some(this), mask, place);
        }
        if let Some(all) = file.functions.get(name) {
            let Some(function) = all.iter().find(|f| f.parameters.len() == arguments.len()) else {
                return Err(Error::new(
                    place,
                    "no function takes this number of arguments",
                ));
            };
            return self.enter(function, template, arguments, None, mask, place);
        }
        self.built_in(name, arguments, mask, place)
    }

    pub(crate) fn method(
        &mut self,
        base: &Expr,
        name: &str,
        arguments: &[Expr],
        mask: &[bool],
        place: Position,
    ) -> RunResult<ThreadValues> {
        let this = self.object(base, mask)?;
        let function = match &this.ty {
            Type::Struct(layout) => layout.methods.iter().find(|f| &*f.name == name).cloned(),
            _ => None,
        };
        match function {
            Some(function) => self.enter(&function, &[], arguments, Some(this), mask, place),
            None => Err(Error::new(place, &format!("no method `{name}`"))),
        }
    }

    fn enter(
        &mut self,
        function: &Rc<Function>,
        template: &[TemplateArgument],
        arguments: &[Expr],
        this: Option<Object>,
        mask: &[bool],
        place: Position,
    ) -> RunResult<ThreadValues> {
        if !mask.contains(&true) {
            // For its type alone; it may call itself.
            let ty = self.resolve(&function.result).unwrap_or(Type::INT);
            let size = ty.size() as usize;
            return Ok(if ty.is_word() || matches!(ty, Type::Void) {
                ThreadValues::words(ty, vec![0; self.lanes])
            } else {
                ThreadValues {
                    ty,
                    data: Data::Bytes(vec![0; self.lanes * size]),
                }
            });
        }
        let mut bound: Vec<(Rc<str>, Binding)> = Vec::new();
        for (parameter, given) in function.template.iter().zip(template) {
            bound.push((parameter.name.clone(), self.template_binding(given)?));
        }
        // Arguments belong to the caller's names; what they are converted to, to the callee's.
        let mut given = Vec::new();
        for (parameter, argument) in function.parameters.iter().zip(arguments) {
            let reference =
                matches!(parameter.ty, TypeName::Reference(_)) && self.has_address(argument);
            if reference {
                let object = self.object(argument, mask)?;
                deduce(&parameter.ty, &object.ty, function, &mut bound);
                given.push((None, Some(object)));
            } else {
                let value = if let (Kind::List(None, _), false) =
                    (&argument.kind, matches!(parameter.ty, TypeName::Auto))
                {
                    let ty = self.resolve(&parameter.ty)?;
                    self.eval_as(argument, &ty, mask)?
                } else {
                    self.eval(argument, mask)?
                };
                deduce(&parameter.ty, &value.ty, function, &mut bound);
                given.push((Some(value), None));
            }
        }
        let (names, base, top) = (self.scopes.len(), self.base, self.top);
        self.base = names;
        self.scopes.extend(bound);
        for parameter in &function.template {
            if !self.scopes[names..]
                .iter()
                .any(|(name, _)| *name == parameter.name)
            {
                let Some(default) = &parameter.default else {
                    return Err(Error::new(place, "a template argument that is not deduced"));
                };
                let binding = self.template_binding(default)?;
                self.scopes.push((parameter.name.clone(), binding));
            }
        }
        if let Some(this) = this {
            self.scopes.push(("this".into(), Binding::Object(this)));
        }
        for ((parameter, (value, object)), argument) in
            function.parameters.iter().zip(given).zip(arguments)
        {
            let object = match (value, object) {
                (_, Some(object)) => object,
                (Some(value), None) => {
                    let ty = match &parameter.ty {
                        TypeName::Auto => value.ty.clone(),
                        ty => self.resolve(ty)?,
                    };
                    let value = self.converted_counting(value, &ty, mask, argument)?;
                    let object = self.variable(ty, place)?;
                    self.store(&object, &value, mask, place)?;
                    object
                }
                (None, None) => continue,
            };
            self.scopes
                .push((parameter.name.clone(), Binding::Object(object)));
        }
        let result_type = match &function.result {
            TypeName::Auto => None,
            ty => Some(self.resolve(ty)?),
        };
        let (breaks, continues) = (
            std::mem::take(&mut self.breaks),
            std::mem::take(&mut self.continues),
        );
        self.frames.push(Frame {
            returned: vec![false; self.lanes],
            result: None,
            result_type: result_type.clone(),
        });
        self.calls.push(place.line);
        let chain = self.chain;
        self.chain = self.counter.chain(&self.calls);
        let mut active = mask.to_vec();
        let outcome = self.deeper(place, |machine| {
            machine.block_of(&function.body, &mut active)
        });
        self.chain = chain;
        self.calls.pop();
        let frame = self.frames.pop();
        self.breaks = breaks;
        self.continues = continues;
        self.scopes.truncate(names);
        self.base = base;
        self.top = top;
        outcome?;
        match frame.and_then(|frame| frame.result) {
            Some(value) => Ok(value),
            None => Ok(ThreadValues::words(
                result_type.unwrap_or(Type::Void),
                vec![0; self.lanes],
            )),
        }
    }

    fn template_binding(&mut self, given: &TemplateArgument) -> RunResult<Binding> {
        Ok(match given {
            TemplateArgument::Type(name) => Binding::Type(self.template_type(name)?),
            TemplateArgument::ThreadValues(value) => {
                if let Kind::Name(name) = &value.kind
                    && self.lookup(name).is_none()
                    && let Ok(ty) = self.template_type(&TypeName::Named(name.clone()))
                {
                    return Ok(Binding::Type(ty));
                }
                self.silent += 1;
                let all = vec![true; self.lanes];
                let found = self.eval(value, &all);
                self.silent -= 1;
                match found? {
                    ThreadValues {
                        ty: Type::Scalar(scalar),
                        data: Data::Words(words),
                    } => Binding::Constant(scalar, words[0]),
                    _ => {
                        return Err(Error::new(
                            value.place,
                            "a template argument that is no number",
                        ));
                    }
                }
            }
        })
    }

    // ---- what the languages bring --------------------------------------------------------------

    /// OpenCL's `vloadN` and `vstoreN`: the N elements at an offset, in vectors, from a pointer to elements.
    fn vector_at(
        &mut self,
        width: u8,
        offset: &Expr,
        pointer: &Expr,
        mask: &[bool],
    ) -> RunResult<Object> {
        let place = pointer.place;
        let offset = self.eval(offset, mask)?;
        let mut base = self.eval(pointer, mask)?;
        let Type::Pointer(element) = &base.ty else {
            return Err(Error::new(place, "a pointer is expected"));
        };
        let (Type::Scalar(scalar), 2 | 4 | 8 | 16) = (&**element, width) else {
            return Err(Error::new(place, "no vector is known there"));
        };
        base.ty = Type::Pointer(Rc::new(Type::Vector(*scalar, width, Packing::OpenCl)));
        let pointer = self.moved(&base, &offset, false, place)?;
        Self::pointed(pointer, place)
    }

    fn built_in(
        &mut self,
        name: &str,
        arguments: &[Expr],
        mask: &[bool],
        place: Position,
    ) -> RunResult<ThreadValues> {
        let unknown = || Error::new(place, &format!("the function `{name}` is not known here"));
        if name.starts_with("get_") {
            let axis = match arguments {
                [axis] => self.number(axis)? as usize,
                _ => 0,
            };
            return self.work_item(name, axis).ok_or_else(unknown);
        }
        let void = ThreadValues::words(Type::Void, vec![0; self.lanes]);
        let width = |start| name.strip_prefix(start)?.parse().ok();
        if let (Some(width), [offset, pointer]) = (width("vload"), arguments) {
            let object = self.vector_at(width, offset, pointer, mask)?;
            return self.load(&object, mask, place);
        }
        if let (Some(width), [value, offset, pointer]) = (width("vstore"), arguments) {
            let value = self.eval(value, mask)?;
            let object = self.vector_at(width, offset, pointer, mask)?;
            self.store(&object, &value, mask, place)?;
            return Ok(void);
        }
        match name {
            "__syncthreads" | "barrier" | "work_group_barrier" => {
                self.barrier(mask, place);
                return Ok(void);
            }
            "__syncwarp" => {
                if let Some(races) = &mut self.memory.races {
                    races.warps_met(mask);
                }
                return Ok(void);
            }
            "__threadfence"
            | "__threadfence_block"
            | "mem_fence"
            | "printf"
            | "assert"
            | "__builtin_assume"
            | "__threadfence_system"
            | "__pipeline_commit"
            | "__pipeline_wait_prior" => return Ok(void),
            // Here and now: that is among the times at which it may be done.
            "__pipeline_memcpy_async" => {
                if let [to, from, bytes] = arguments {
                    let at = |pointer: &Expr| {
                        Box::new(Expr {
                            kind: Kind::Deref(Box::new(pointer.clone())),
                            place,
                        })
                    };
                    let element = self.object(&at(to), mask)?.ty.size();
                    if self.number(bytes)? != element {
                        return Err(Error::new(place, "a copy of other than one element"));
                    }
                    let copy = Expr {
                        kind: Kind::Assign(None, at(to), at(from)),
                        place,
                    };
                    self.eval(&copy, mask)?;
                    return Ok(void);
                }
            }
            "__ldg" | "__ldcg" | "__ldcs" | "__ldca" => {
                if let [pointer] = arguments {
                    let reading = Expr {
                        kind: Kind::Deref(Box::new(pointer.clone())),
                        place,
                    };
                    return self.eval(&reading, mask);
                }
            }
            _ => {}
        }
        let shuffle = match name.trim_end_matches("_sync") {
            "__shfl" => Some(Shuffle::To),
            "__shfl_up" => Some(Shuffle::Up),
            "__shfl_down" => Some(Shuffle::Down),
            "__shfl_xor" => Some(Shuffle::Xor),
            _ => None,
        };
        let sync = usize::from(name.ends_with("_sync"));
        if let (Some(kind), Some(rest)) = (shuffle, arguments.get(sync..)) {
            return self.shuffle(kind, rest, mask, place);
        }
        if matches!(
            name.trim_end_matches("_sync"),
            "__ballot" | "__any" | "__all" | "__activemask"
        ) {
            return self.vote(name, arguments.get(sync..).unwrap_or(&[]), mask);
        }
        if let ("__match_any", [value]) = (
            name.trim_end_matches("_sync"),
            arguments.get(sync..).unwrap_or(&[]),
        ) {
            return self.matching(value, mask, place);
        }
        if let Some(rest) = ["atomic_", "atom_", "atomic"]
            .iter()
            .find_map(|prefix| name.strip_prefix(prefix))
        {
            return self.atomic(&rest.to_ascii_lowercase(), arguments, mask, place);
        }
        if let Some(rest) = name.strip_prefix("convert_") {
            let rest = rest.split("_sat").next().unwrap_or(rest);
            let rest = rest.split("_rt").next().unwrap_or(rest);
            if let (Some(ty), [value]) = (basic(rest), arguments) {
                let to = self.resolve(&ty)?;
                let found = self.eval(value, mask)?;
                return self.converted_counting(found, &to, mask, value);
            }
        }
        let mut values = Vec::new();
        for argument in arguments {
            values.push(self.eval(argument, mask)?);
        }
        self.math(name, values, mask, place)?.ok_or_else(unknown)
    }

    fn barrier(&mut self, mask: &[bool], place: Position) {
        self.count(Class::Barrier, mask, 1);
        if let Some(races) = &mut self.memory.races {
            if self.launch.narrowed == Some(place.line) {
                races.warps_met(mask);
            } else {
                races.met();
            }
        }
        let missing = self.frames.first().is_some_and(|kernel| {
            mask.iter()
                .zip(&kernel.returned)
                .any(|(here, gone)| !here && !gone)
        });
        if missing && self.missed.is_none() {
            self.missed = Some(Error::new(place, Run::MISSED));
        }
        self.parted |= mask.contains(&true) && mask.contains(&false);
    }

    fn shuffle(
        &mut self,
        kind: Shuffle,
        arguments: &[Expr],
        mask: &[bool],
        place: Position,
    ) -> RunResult<ThreadValues> {
        let (Some(value), Some(by)) = (arguments.first(), arguments.get(1)) else {
            return Err(Error::new(place, "a shuffle without its arguments"));
        };
        let value = self.eval(value, mask)?;
        let by = self.eval(by, mask)?;
        let width = match arguments.get(2) {
            Some(width) => self.number(width)? as usize,
            None => self.launch.warp,
        };
        self.count(Class::Int, mask, 1);
        let (Data::Words(words), Data::Words(by)) = (&value.data, &by.data) else {
            return Err(Error::new(place, "a shuffle of no number"));
        };
        let width = width.clamp(1, self.launch.warp);
        let found = (0..self.lanes).map(|lane| {
            let within = lane % self.launch.warp % width;
            let first = lane - within;
            let step = i64::from(by[lane] as i32);
            let to = match kind {
                Shuffle::To => step.rem_euclid(width as i64),
                Shuffle::Up => within as i64 - step,
                Shuffle::Down => within as i64 + step,
                Shuffle::Xor => within as i64 ^ step,
            };
            let from = if (0..width as i64).contains(&to) {
                first + to as usize
            } else {
                lane
            };
            // What a lane that is not there would give is not defined: its own.
            if from < self.lanes && mask[from] {
                words[from]
            } else {
                words[lane]
            }
        });
        Ok(ThreadValues::words(value.ty.clone(), found.collect()))
    }

    fn vote(&mut self, name: &str, arguments: &[Expr], mask: &[bool]) -> RunResult<ThreadValues> {
        let truth = match arguments.first() {
            Some(condition) if !name.starts_with("__activemask") => self.truth(condition, mask)?,
            _ => vec![1; self.lanes],
        };
        self.count(Class::Int, mask, 1);
        let mut words = vec![0; self.lanes];
        for from in (0..self.lanes).step_by(self.launch.warp) {
            let end = (from + self.launch.warp).min(self.lanes);
            let there: Vec<usize> = (from..end).filter(|&lane| mask[lane]).collect();
            let ballot = there
                .iter()
                .filter(|&&lane| truth[lane] != 0)
                .fold(0u64, |bits, lane| bits | 1 << (lane - from));
            let result = match name {
                "__any" | "__any_sync" => u64::from(ballot != 0),
                "__all" | "__all_sync" => u64::from(there.iter().all(|&lane| truth[lane] != 0)),
                _ => ballot,
            };
            words[from..end].fill(result);
        }
        let ty = if name.contains("ballot") || name.contains("active") {
            Scalar::U32
        } else {
            Scalar::I32
        };
        Ok(ThreadValues::words(Type::Scalar(ty), words))
    }

    /// For each lane those of its warp that have the same value.
    fn matching(
        &mut self,
        value: &Expr,
        mask: &[bool],
        place: Position,
    ) -> RunResult<ThreadValues> {
        let value = self.eval(value, mask)?;
        let Data::Words(of) = &value.data else {
            return Err(Error::new(place, "a match of no number"));
        };
        self.count(Class::Int, mask, 1);
        let warp = self.launch.warp;
        let same = (0..self.lanes).map(|lane| {
            let first = lane / warp * warp;
            let warp = first..(first + warp).min(self.lanes);
            let same = warp.filter(|&other| mask[other] && of[other] == of[lane]);
            same.fold(0u64, |bits, other| bits | 1 << (other - first))
        });
        Ok(ThreadValues::words(
            Type::Scalar(Scalar::U32),
            same.collect(),
        ))
    }

    fn atomic(
        &mut self,
        what: &str,
        arguments: &[Expr],
        mask: &[bool],
        place: Position,
    ) -> RunResult<ThreadValues> {
        let Some((target, rest)) = arguments.split_first() else {
            return Err(Error::new(place, "an atomic without its arguments"));
        };
        let pointer = self.eval(target, mask)?;
        let (Type::Pointer(element), Data::Words(addresses)) = (pointer.ty, pointer.data) else {
            return Err(Error::new(place, "an atomic on no pointer"));
        };
        let Type::Scalar(scalar) = *element else {
            return Err(Error::new(place, "an atomic on no number"));
        };
        let mut operands = Vec::new();
        for operand in rest {
            let value = self.eval(operand, mask)?;
            match self
                .converted_counting(value, &element, mask, operand)?
                .data
            {
                Data::Words(words) => operands.push(words),
                Data::Bytes(_) => return Err(Error::new(place, "an atomic on no number")),
            }
        }
        let at = crate::machine::Address::Each(Rc::new(addresses.clone()));
        // Its position is that of its address.
        self.access(target.place, Access::Atomic, &at, (0, scalar.size()), mask)?;
        let trap = |what| Error::new(place, what);
        let mut before = vec![0; self.lanes];
        if let Some(races) = &mut self.memory.races {
            races.atomic = true;
        }
        for lane in (0..self.lanes).filter(|&lane| mask[lane]) {
            let old = normal(
                scalar,
                self.memory
                    .read(lane, addresses[lane], scalar.size())
                    .map_err(trap)?,
            );
            before[lane] = old;
            let x = operands.first().map_or(1, |words| words[lane]);
            // Atomics wrap around.
            let mut wraps = None;
            let less = operate(Op::Lt, scalar, x, old, &mut wraps) != 0;
            let new = match what {
                "add" => operate(Op::Add, scalar, old, x, &mut wraps),
                "sub" => operate(Op::Sub, scalar, old, x, &mut wraps),
                "and" => old & x,
                "or" => old | x,
                "xor" => old ^ x,
                "min" => {
                    if less {
                        x
                    } else {
                        old
                    }
                }
                "max" => {
                    if less {
                        old
                    } else {
                        x
                    }
                }
                "exch" | "xchg" => x,
                "cas" | "cmpxchg" => match operands.get(1) {
                    Some(words) if old == x => words[lane],
                    _ => old,
                },
                "inc" if operands.is_empty() => operate(Op::Add, scalar, old, 1, &mut wraps),
                "dec" if operands.is_empty() => operate(Op::Sub, scalar, old, 1, &mut wraps),
                "inc" => {
                    if old >= x {
                        0
                    } else {
                        old + 1
                    }
                }
                "dec" => {
                    if old == 0 || old > x {
                        x
                    } else {
                        old - 1
                    }
                }
                _ => return Err(Error::new(place, "an atomic that is not known")),
            };
            self.memory
                .write(lane, addresses[lane], scalar.size(), new)
                .map_err(trap)?;
        }
        if let Some(races) = &mut self.memory.races {
            races.atomic = false;
        }
        Ok(ThreadValues::words(Type::Scalar(scalar), before))
    }

    /// Functions of numbers; `None`: not one of them.
    fn math(
        &mut self,
        name: &str,
        values: Vec<ThreadValues>,
        mask: &[bool],
        place: Position,
    ) -> RunResult<Option<ThreadValues>> {
        let name = name
            .strip_prefix("native_")
            .or_else(|| name.strip_prefix("half_"))
            .unwrap_or(name);
        // Vectors component by component.
        if let Some((ty, lanes, packing)) = values.iter().find_map(|value| match value.ty {
            Type::Vector(scalar, lanes, packing) => Some((scalar, lanes, packing)),
            _ => None,
        }) {
            let whole = Type::Vector(ty, lanes, packing);
            let mut spread = Vec::new();
            for value in values {
                spread.push(self.converted(value, &whole, mask, place)?);
            }
            let mut sum: Option<ThreadValues> = None;
            let (mut all, mut result) = (Vec::new(), ty);
            for which in 0..lanes {
                let parts: Vec<ThreadValues> = spread
                    .iter()
                    .map(|value| {
                        ThreadValues::words(Type::Scalar(ty), self.component(value, ty, which))
                    })
                    .collect();
                if name == "dot" {
                    let [a, b] = &parts[..] else { return Ok(None) };
                    let product =
                        self.binary(Op::Mul, a.clone(), b.clone(), mask, (place, true))?;
                    sum = Some(match sum {
                        None => product,
                        Some(sum) => self.binary(Op::Add, sum, product, mask, (place, true))?,
                    });
                    continue;
                }
                let Some(part) = self.math(name, parts, mask, place)? else {
                    return Ok(None);
                };
                result = part.scalar().unwrap_or(ty);
                all.push(self.component(&part, result, 0));
            }
            return Ok(Some(match sum {
                Some(sum) => sum,
                None => self.vector(&Type::Vector(result, lanes, packing), &all),
            }));
        }
        if let Some(found) = self.integer_function(name, &values, mask, place)? {
            return Ok(Some(found));
        }
        self.float_function(name, values, mask, place)
    }

    fn integer_function(
        &mut self,
        name: &str,
        values: &[ThreadValues],
        mask: &[bool],
        place: Position,
    ) -> RunResult<Option<ThreadValues>> {
        let words = |which: usize| match values.get(which).map(|value| &value.data) {
            Some(Data::Words(words)) => Some(words.as_slice()),
            _ => None,
        };
        let scalar = values.first().and_then(ThreadValues::scalar);
        let (Some(scalar), Some(a)) = (scalar, words(0)) else {
            return Ok(None);
        };
        if scalar.is_float() {
            return Ok(None);
        }
        let int32 = |f: fn(i32) -> i32| {
            Some((
                Scalar::I32,
                a.iter()
                    .map(|&x| i64::from(f(x as i32)) as u64)
                    .collect::<Vec<_>>(),
            ))
        };
        let found = match (name, values.len()) {
            ("__popc", 1) => int32(|x| x.count_ones() as i32),
            ("__clz", 1) => int32(|x| x.leading_zeros() as i32),
            ("__ffs", 1) => int32(|x| {
                if x == 0 {
                    0
                } else {
                    x.trailing_zeros() as i32 + 1
                }
            }),
            ("__brev", 1) => Some((
                Scalar::U32,
                a.iter()
                    .map(|&x| u64::from((x as u32).reverse_bits()))
                    .collect(),
            )),
            ("__popcll", 1) => Some((
                Scalar::I32,
                a.iter().map(|&x| u64::from(x.count_ones())).collect(),
            )),
            ("__clzll", 1) => Some((
                Scalar::I32,
                a.iter().map(|&x| u64::from(x.leading_zeros())).collect(),
            )),
            ("__ffsll", 1) => Some((
                Scalar::I32,
                a.iter()
                    .map(|&x| {
                        if x == 0 {
                            0
                        } else {
                            u64::from(x.trailing_zeros()) + 1
                        }
                    })
                    .collect(),
            )),
            ("popcount", 1) => {
                let keep = |x: u64| {
                    if scalar.size() == 8 {
                        x
                    } else {
                        x & ((1 << (8 * scalar.size())) - 1)
                    }
                };
                Some((
                    scalar,
                    a.iter().map(|&x| u64::from(keep(x).count_ones())).collect(),
                ))
            }
            ("clz", 1) => {
                let bits = 8 * scalar.size() as u32;
                let keep = |x: u64| if bits == 64 { x } else { x & ((1 << bits) - 1) };
                Some((
                    scalar,
                    a.iter()
                        .map(|&x| u64::from(keep(x).leading_zeros() - (64 - bits)))
                        .collect(),
                ))
            }
            ("abs" | "labs" | "llabs", 1) if scalar.is_signed() => Some((
                scalar,
                a.iter()
                    .map(|&x| (x as i64).wrapping_abs() as u64)
                    .collect(),
            )),
            ("abs", 1) => Some((scalar, a.to_vec())),
            ("min" | "max" | "umin" | "umax", 2) => {
                let Some(other) = values[1].scalar().filter(|other| !other.is_float()) else {
                    return Ok(None);
                };
                let ty = scalar.common(other);
                let x = self.converted(values[0].clone(), &Type::Scalar(ty), mask, place)?;
                let y = self.converted(values[1].clone(), &Type::Scalar(ty), mask, place)?;
                let (Data::Words(x), Data::Words(y)) = (x.data, y.data) else {
                    return Ok(None);
                };
                let least = name.ends_with("min");
                let mut fault = None;
                let pick = |(&x, &y): (&u64, &u64)| {
                    let less = operate(Op::Lt, ty, x, y, &mut fault) != 0;
                    if less == least { x } else { y }
                };
                Some((ty, x.iter().zip(&y).map(pick).collect()))
            }
            ("__mul24" | "mul24", 2) if scalar.is_signed() => words(1).map(|b| {
                let low = |x: u64| (x as i32) << 8 >> 8;
                let product =
                    |(&x, &y): (&u64, &u64)| i64::from(low(x).wrapping_mul(low(y))) as u64;
                (Scalar::I32, a.iter().zip(b).map(product).collect())
            }),
            ("__umul24" | "mul24", 2) => words(1).map(|b| {
                let product =
                    |(&x, &y): (&u64, &u64)| ((x & 0xff_ffff) * (y & 0xff_ffff)) & 0xffff_ffff;
                (Scalar::U32, a.iter().zip(b).map(product).collect())
            }),
            ("__umulhi", 2) => words(1).map(|b| {
                let high =
                    |(&x, &y): (&u64, &u64)| (u64::from(x as u32) * u64::from(y as u32)) >> 32;
                (Scalar::U32, a.iter().zip(b).map(high).collect())
            }),
            ("__mulhi", 2) => words(1).map(|b| {
                let high = |(&x, &y): (&u64, &u64)| {
                    ((i64::from(x as i32) * i64::from(y as i32)) >> 32) as u64
                };
                (Scalar::I32, a.iter().zip(b).map(high).collect())
            }),
            ("clamp" | "mad24" | "select", 3) => {
                let (Some(b), Some(c)) = (words(1), words(2)) else {
                    return Ok(None);
                };
                let mut fault = None;
                let less = |x, y, fault: &mut _| operate(Op::Lt, scalar, x, y, fault) != 0;
                let all = (0..self.lanes).map(|lane| match name {
                    "clamp" if less(a[lane], b[lane], &mut fault) => b[lane],
                    "clamp" if less(c[lane], a[lane], &mut fault) => c[lane],
                    "clamp" => a[lane],
                    "select" => {
                        if c[lane] != 0 {
                            b[lane]
                        } else {
                            a[lane]
                        }
                    }
                    _ => normal(scalar, a[lane].wrapping_mul(b[lane]).wrapping_add(c[lane])),
                });
                let all = all.collect();
                if name == "mad24" {
                    self.count(Class::Int, mask, 1);
                }
                Some((scalar, all))
            }
            ("rotate", 2) => words(1).map(|b| {
                let turn = |(&x, &y): (&u64, &u64)| match scalar.size() {
                    8 => x.rotate_left(y as u32 % 64),
                    4 => normal(scalar, u64::from((x as u32).rotate_left(y as u32 % 32))),
                    _ => x,
                };
                (scalar, a.iter().zip(b).map(turn).collect())
            }),
            ("__int_as_float" | "__uint_as_float" | "as_float", 1) => {
                return Ok(Some(ThreadValues::words(
                    Type::Scalar(Scalar::F32),
                    a.iter().map(|&x| u64::from(x as u32)).collect(),
                )));
            }
            _ => None,
        };
        Ok(found.map(|(ty, words)| {
            self.count(Class::Int, mask, 1);
            ThreadValues::words(Type::Scalar(ty), words)
        }))
    }

    fn float_function(
        &mut self,
        name: &str,
        values: Vec<ThreadValues>,
        mask: &[bool],
        place: Position,
    ) -> RunResult<Option<ThreadValues>> {
        if matches!(
            name,
            "__float_as_int" | "__float_as_uint" | "as_int" | "as_uint"
        ) && let Some(Data::Words(words)) = values.first().map(|value| &value.data)
        {
            let ty = if name.ends_with("uint") {
                Scalar::U32
            } else {
                Scalar::I32
            };
            let words = words.iter().map(|&word| normal(ty, word)).collect();
            return Ok(Some(ThreadValues::words(Type::Scalar(ty), words)));
        }
        let single = name.ends_with('f') && !matches!(name, "erf");
        let stem = name.trim_start_matches('_');
        let stem = if single {
            stem.strip_suffix('f').unwrap_or(stem)
        } else {
            stem
        };
        if matches!(stem, "sincos" | "sincospi") {
            return self.sine_and_cosine(stem == "sincospi", values, mask, place);
        }
        let mut ty = values
            .iter()
            .filter_map(ThreadValues::scalar)
            .fold(Scalar::I8, Scalar::common);
        if single {
            ty = Scalar::F32;
        } else if !ty.is_float() {
            ty = Scalar::F64;
        }
        let mut operands: Vec<Vec<u64>> = Vec::new();
        for value in values {
            match self.converted(value, &Type::Scalar(ty), mask, place)?.data {
                Data::Words(words) => operands.push(words),
                Data::Bytes(_) => return Ok(None),
            }
        }
        let arity = operands.len();
        let one: Option<(OfOne, bool)> = match stem {
            "sqrt" => Some((f64::sqrt, true)),
            "rsqrt" => Some((|x| 1.0 / x.sqrt(), true)),
            "exp" => Some((f64::exp, true)),
            "exp2" => Some((f64::exp2, true)),
            "exp10" => Some((|x| 10f64.powf(x), true)),
            "log" => Some((f64::ln, true)),
            "log2" => Some((f64::log2, true)),
            "log10" => Some((f64::log10, true)),
            "sin" => Some((f64::sin, true)),
            "cos" => Some((f64::cos, true)),
            "tan" => Some((f64::tan, true)),
            "sinpi" => Some((|x| half_turns(x).sin(), true)),
            "cospi" => Some((|x| half_turns(x).cos(), true)),
            "cbrt" => Some((f64::cbrt, true)),
            "tanh" => Some((f64::tanh, true)),
            "atan" => Some((f64::atan, true)),
            "fabs" | "abs" => Some((f64::abs, false)),
            "floor" => Some((f64::floor, false)),
            "ceil" => Some((f64::ceil, false)),
            "trunc" => Some((f64::trunc, false)),
            "rint" | "round" => Some((f64::round_ties_even, false)),
            "recip" => Some((|x| 1.0 / x, true)),
            _ => None,
        };
        let two: Option<(OfTwo, bool)> = match stem {
            "min" | "fmin" => Some((f64::min, false)),
            "max" | "fmax" => Some((f64::max, false)),
            "fadd_rn" | "dadd_rn" => Some((|x, y| x + y, false)),
            "fmul_rn" | "dmul_rn" => Some((|x, y| x * y, false)),
            "pow" => Some((f64::powf, true)),
            "fmod" => Some((|x, y| x % y, true)),
            "atan2" => Some((f64::atan2, true)),
            "hypot" => Some((f64::hypot, true)),
            "fdivide" | "divide" => Some((|x, y| x / y, true)),
            _ => None,
        };
        let number = |which: usize, lane: usize| float_of(ty, operands[which][lane]);
        let (words, class, operations): (Vec<u64>, _, _) = match (arity, one, two) {
            (1, Some((f, special)), _) => {
                let words = (0..self.lanes)
                    .map(|lane| word_of(ty, f(number(0, lane))))
                    .collect();
                (words, if special { Class::Sfu } else { Self::class(ty) }, 1)
            }
            (2, _, Some((f, special))) => {
                let words = (0..self.lanes)
                    .map(|lane| word_of(ty, f(number(0, lane), number(1, lane))))
                    .collect();
                (words, if special { Class::Sfu } else { Self::class(ty) }, 1)
            }
            (3, ..) if matches!(stem, "fma" | "fmaf_rn" | "fma_rn" | "mad") => {
                let words = (0..self.lanes).map(|lane| match ty {
                    Scalar::F32 => {
                        let part = |which: usize| f32::from_bits(operands[which][lane] as u32);
                        u64::from(part(0).mul_add(part(1), part(2)).to_bits())
                    }
                    _ => word_of(
                        ty,
                        number(0, lane).mul_add(number(1, lane), number(2, lane)),
                    ),
                });
                (words.collect(), Self::class(ty), 2)
            }
            (3, ..) if stem == "clamp" => {
                let words = (0..self.lanes).map(|lane| {
                    word_of(
                        ty,
                        number(0, lane).max(number(1, lane)).min(number(2, lane)),
                    )
                });
                (words.collect(), Self::class(ty), 2)
            }
            _ => return Ok(None),
        };
        self.count(class, mask, operations);
        Ok(Some(ThreadValues::words(Type::Scalar(ty), words)))
    }

    /// `sincos(x, &sine, &cosine)`, and of OpenCL `sine = sincos(x, &cosine)`.
    fn sine_and_cosine(
        &mut self,
        of_pi: bool,
        values: Vec<ThreadValues>,
        mask: &[bool],
        place: Position,
    ) -> RunResult<Option<ThreadValues>> {
        let mut values = values.into_iter();
        let Some(angle) = values.next() else {
            return Ok(None);
        };
        let mut places = Vec::new();
        let mut ty = None;
        for pointer in values {
            let (Type::Pointer(element), Data::Words(addresses)) = (pointer.ty, pointer.data)
            else {
                return Ok(None);
            };
            let Type::Scalar(scalar) = *element else {
                return Ok(None);
            };
            ty = Some(scalar);
            places.push(addresses);
        }
        let Some(ty) = ty.filter(|_| places.len() <= 2) else {
            return Ok(None);
        };
        let Data::Words(angles) = self.converted(angle, &Type::Scalar(ty), mask, place)?.data
        else {
            return Ok(None);
        };
        let mut sines = vec![0; self.lanes];
        for lane in (0..self.lanes).filter(|&lane| mask[lane]) {
            let x = float_of(ty, angles[lane]);
            let (sine, cosine) = if of_pi { half_turns(x) } else { x }.sin_cos();
            sines[lane] = word_of(ty, sine);
            let results: &[f64] = if places.len() == 2 {
                &[sine, cosine]
            } else {
                &[cosine]
            };
            for (addresses, result) in places.iter().zip(results) {
                self.memory
                    .write(lane, addresses[lane], ty.size(), word_of(ty, *result))
                    .map_err(|what| Error::new(place, what))?;
            }
        }
        self.count(Class::Sfu, mask, 1);
        Ok(Some(ThreadValues::words(Type::Scalar(ty), sines)))
    }
}

/// The angle of `x` π, reduced to one period.
fn half_turns(x: f64) -> f64 {
    (x - 2.0 * (x / 2.0).round()) * std::f64::consts::PI
}

/// Binds the template parameters that a parameter's type shows.
fn deduce(pattern: &TypeName, ty: &Type, function: &Function, bound: &mut Vec<(Rc<str>, Binding)>) {
    match (pattern, ty) {
        (TypeName::Reference(inner), ty) => deduce(inner, ty, function, bound),
        (TypeName::Pointer(inner), Type::Pointer(ty)) => deduce(inner, ty, function, bound),
        (TypeName::Array(inner, _), Type::Array(ty, _)) => deduce(inner, ty, function, bound),
        (TypeName::Named(name), ty)
            if function
                .template
                .iter()
                .any(|p| p.is_type && p.name == *name)
                && !bound.iter().any(|(known, _)| known == name) =>
        {
            bound.push((name.clone(), Binding::Type(ty.clone())));
        }
        _ => {}
    }
}
