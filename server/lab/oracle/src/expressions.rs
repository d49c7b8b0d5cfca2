//! Expressions, each for the lanes that are there.

use std::rc::Rc;

use crate::Error;
use crate::execute::merge;
use crate::lexer::Position;
use crate::machine::{Address, Binding, Data, Machine, Object, RunResult, ThreadValues};
use crate::scalar::Scalar;
use crate::tally::{Access, BranchKind, Class};
use crate::tree::{Expr, Kind, Op, TypeName};
use crate::types::{Packing, Type, convert, normal, operate, word_of};

/// Bytes that one access moves at most.
const WIDEST: u64 = 16;

impl Machine<'_> {
    fn trap(place: Position) -> impl Fn(&'static str) -> Error {
        move |what| Error::new(place, what)
    }

    fn fail<T>(place: Position, what: &str) -> RunResult<T> {
        Err(Error::new(place, what))
    }

    pub(crate) fn constant(&self, scalar: Scalar, word: u64) -> ThreadValues {
        ThreadValues::words(Type::Scalar(scalar), vec![word; self.lanes])
    }

    /// The value of an expression in the lanes of the mask; the others hold anything of its type.
    pub(crate) fn eval(&mut self, expression: &Expr, mask: &[bool]) -> RunResult<ThreadValues> {
        self.step(expression.place, self.lanes)?;
        // What only constants go into is computed when compiling: the language says so of array sizes and the like.
        let constant = matches!(
            expression.kind,
            Kind::Binary(..) | Kind::Negate(_) | Kind::Invert(_)
        ) && self.is_constant(expression, 0);
        self.silent += u32::from(constant);
        let value = self.deeper(expression.place, |machine| {
            machine.eval_here(expression, mask)
        });
        self.silent -= u32::from(constant);
        value
    }

    fn is_constant(&self, expression: &Expr, depth: usize) -> bool {
        let part = |inner: &Expr| depth < 32 && self.is_constant(inner, depth + 1);
        match &expression.kind {
            Kind::Int(..) | Kind::Float(..) | Kind::SizeOf(_) | Kind::SizeOfType(_) => true,
            Kind::Name(name) => matches!(self.lookup(name), Some(Binding::Constant(..))),
            Kind::Negate(a) | Kind::Plus(a) | Kind::Not(a) | Kind::Invert(a) | Kind::Cast(_, a) => {
                part(a)
            }
            Kind::Binary(_, a, b) | Kind::Logic(_, a, b) => part(a) && part(b),
            Kind::Select(a, b, c) => part(a) && part(b) && part(c),
            _ => false,
        }
    }

    /// Like [`Self::eval`], where a bare `{…}` has the type that is wanted.
    pub(crate) fn eval_as(
        &mut self,
        expression: &Expr,
        ty: &Type,
        mask: &[bool],
    ) -> RunResult<ThreadValues> {
        match &expression.kind {
            Kind::List(None, parts) => {
                let object = self.temporary(ty, expression.place)?;
                self.fill(&object, parts, expression.place, mask)?;
                self.load(&object, mask, expression.place)
            }
            _ => self.eval(expression, mask),
        }
    }

    fn eval_here(&mut self, expression: &Expr, mask: &[bool]) -> RunResult<ThreadValues> {
        let place = expression.place;
        match &expression.kind {
            Kind::Int(value, scalar) => Ok(self.constant(*scalar, normal(*scalar, *value))),
            Kind::Float(number, scalar) => Ok(self.constant(*scalar, word_of(*scalar, *number))),
            Kind::Name(name) => match self.lookup(name) {
                Some(Binding::Constant(scalar, word)) => {
                    let (scalar, word) = (*scalar, *word);
                    Ok(self.constant(scalar, word))
                }
                Some(_) => self.read(expression, mask),
                None if self.has_address(expression) => self.read(expression, mask),
                None => self
                    .named_constant(name)
                    .ok_or_else(|| Error::new(place, &format!("`{name}` is not known here"))),
            },
            Kind::Field(base, name) => {
                if let Kind::Name(base) = &base.kind
                    && self.lookup(base).is_none()
                    && let Some(words) = self.index_word(base, name)
                {
                    return Ok(ThreadValues::words(Type::Scalar(Scalar::U32), words));
                }
                if self.has_address(base) && !self.is_swizzle(base, name, mask)? {
                    return self.read(expression, mask);
                }
                let whole = self.eval(base, mask)?;
                self.part(&whole, name, place)
            }
            Kind::Index(..) | Kind::Deref(_) => self.read(expression, mask),
            Kind::AddressOf(inner) => {
                let object = self.object(inner, mask)?;
                let words = (0..self.lanes).map(|lane| object.at.lane(lane)).collect();
                Ok(ThreadValues::words(
                    Type::Pointer(Rc::new(object.ty)),
                    words,
                ))
            }
            Kind::Plus(inner) => {
                let value = self.eval(inner, mask)?;
                self.promoted(value, mask, place)
            }
            Kind::Negate(inner) => {
                let value = self.eval(inner, mask)?;
                let value = self.promoted(value, mask, place)?;
                self.negated(&value, mask, place)
            }
            Kind::Invert(inner) => {
                let value = self.eval(inner, mask)?;
                let value = self.promoted(value, mask, place)?;
                let ones = self.constant(Scalar::I32, u64::MAX);
                self.binary(Op::Xor, value, ones, mask, (place, true))
            }
            Kind::Not(inner) => {
                let truth = self.truth(inner, mask)?;
                self.count(Class::Int, mask, 1);
                let words = truth.iter().map(|&word| 1 - word).collect();
                Ok(ThreadValues::words(self.truth_type(), words))
            }
            Kind::Binary(op, left, right) => {
                let a = self.eval(left, mask)?;
                let b = self.eval(right, mask)?;
                let a = self.met(a, &b, left, mask)?;
                let b = self.met(b, &a, right, mask)?;
                self.binary(*op, a, b, mask, (place, true))
            }
            Kind::Logic(both, left, right) => {
                let first = self.truth(left, mask)?;
                self.count(Class::Int, mask, 1);
                let open: Vec<bool> = mask
                    .iter()
                    .zip(&first)
                    .map(|(here, truth)| *here && (*truth != 0) == *both)
                    .collect();
                let mut words = first;
                if open.contains(&true) {
                    let second = self.truth(right, &open)?;
                    for (lane, open) in open.iter().enumerate() {
                        if *open {
                            words[lane] = second[lane];
                        }
                    }
                }
                Ok(ThreadValues::words(self.truth_type(), words))
            }
            Kind::Comma(left, right) => {
                self.eval(left, mask)?;
                self.eval(right, mask)
            }
            Kind::Select(condition, yes, no) => self.select(condition, yes, no, mask),
            Kind::Cast(ty, inner) => {
                let to = self.resolve(ty)?;
                if matches!(to, Type::Void) {
                    return self.eval(inner, mask);
                }
                let value = self.eval(inner, mask)?;
                self.converted_counting(value, &to, mask, inner)
            }
            Kind::List(Some(ty), parts) => {
                let ty = self.resolve(ty)?;
                self.build(&ty, parts, mask, place)
            }
            Kind::List(None, _) => Self::fail(place, "a list whose type is not known"),
            Kind::SizeOfType(ty) => {
                let size = self.resolve(ty)?.size();
                Ok(self.constant(Scalar::U64, size))
            }
            Kind::SizeOf(inner) => {
                self.silent += 1;
                let no_lanes = vec![false; self.lanes];
                let size = if self.has_address(inner) {
                    self.object(inner, &no_lanes).map(|object| object.ty.size())
                } else {
                    self.eval(inner, &no_lanes).map(|value| value.ty.size())
                };
                self.silent -= 1;
                let size = size?;
                Ok(self.constant(Scalar::U64, size))
            }
            Kind::Assign(op, target, value) => self.assign(*op, target, value, mask),
            Kind::Step(by, postfix, target) => {
                let object = self.object(target, mask)?;
                let before = self.load(&object, mask, target.place)?;
                let one = self.constant(Scalar::I32, *by as u64);
                let after = self.binary(Op::Add, before.clone(), one, mask, (place, true))?;
                let after = self.converted(after, &object.ty, mask, place)?;
                self.store(&object, &after, mask, target.place)?;
                Ok(if *postfix { before } else { after })
            }
            Kind::Call(name, template, arguments) => {
                self.call(name, template, arguments, mask, place)
            }
            Kind::Method(base, name, arguments) => self.method(base, name, arguments, mask, place),
        }
    }

    /// C++ says `bool`, C says `int`.
    fn truth_type(&self) -> Type {
        match self.dialect {
            crate::Dialect::Cuda => Type::Scalar(Scalar::Bool),
            crate::Dialect::OpenCl => Type::INT,
        }
    }

    // ---- places --------------------------------------------------------------------------------

    /// True for what can be assigned to.
    pub(crate) fn has_address(&self, expression: &Expr) -> bool {
        match &expression.kind {
            Kind::Name(name) => match self.lookup(name) {
                Some(Binding::Object(_)) => true,
                Some(_) => false,
                None => self.this_field(name).is_some(),
            },
            Kind::Index(..) | Kind::Deref(_) => true,
            Kind::Field(base, _) => self.has_address(base),
            _ => false,
        }
    }

    /// A field of the object whose method runs: its type and its offset.
    fn this_field(&self, name: &str) -> Option<(Object, Type, u64)> {
        let Some(Binding::Object(object)) = self.lookup("this") else {
            return None;
        };
        let Type::Struct(layout) = &object.ty else {
            return None;
        };
        let (_, ty, offset) = layout.fields.iter().find(|(known, ..)| &**known == name)?;
        Some((object.clone(), ty.clone(), *offset))
    }

    pub(crate) fn object(&mut self, expression: &Expr, mask: &[bool]) -> RunResult<Object> {
        let place = expression.place;
        self.deeper(place, |machine| machine.object_here(expression, mask))
    }

    fn object_here(&mut self, expression: &Expr, mask: &[bool]) -> RunResult<Object> {
        let place = expression.place;
        match &expression.kind {
            Kind::Name(name) => {
                if let Some(Binding::Object(object)) = self.lookup(name) {
                    return Ok(object.clone());
                }
                if let Some((object, ty, offset)) = self.this_field(name) {
                    return Ok(Object {
                        ty,
                        at: object.at.plus(offset),
                    });
                }
                Self::fail(place, &format!("`{name}` is not known here"))
            }
            Kind::Deref(inner) => {
                if let Kind::Name(name) = &inner.kind
                    && &**name == "this"
                    && let Some(Binding::Object(object)) = self.lookup("this")
                {
                    return Ok(object.clone());
                }
                let pointer = self.eval(inner, mask)?;
                Self::pointed(pointer, place)
            }
            Kind::Index(base, index) => {
                let base_value = self.eval(base, mask)?;
                let index_value = self.eval(index, mask)?;
                // Addressing is no operation.
                let (base_value, index_value) = match base_value.ty {
                    Type::Pointer(_) => (base_value, index_value),
                    _ => (index_value, base_value),
                };
                let pointer = self.moved(&base_value, &index_value, false, place)?;
                Self::pointed(pointer, place)
            }
            Kind::Field(base, name) => {
                let whole = self.object(base, mask)?;
                let (ty, offset) = Self::member(&whole.ty, name, place)?;
                Ok(Object {
                    ty,
                    at: whole.at.plus(offset),
                })
            }
            _ => {
                // A value: it is put somewhere.
                let value = self.eval(expression, mask)?;
                let object = self.temporary(&value.ty.clone(), place)?;
                self.silent += 1;
                let stored = self.store(&object, &value, mask, place);
                self.silent -= 1;
                stored?;
                Ok(object)
            }
        }
    }

    pub(crate) fn temporary(&mut self, ty: &Type, place: Position) -> RunResult<Object> {
        self.variable(ty.clone(), place)
    }

    pub(crate) fn pointed(pointer: ThreadValues, place: Position) -> RunResult<Object> {
        match (pointer.ty, pointer.data) {
            (Type::Pointer(ty), Data::Words(words)) => Ok(Object {
                ty: (*ty).clone(),
                at: Address::Each(Rc::new(words)),
            }),
            _ => Self::fail(place, "an access through no pointer"),
        }
    }

    fn member(ty: &Type, name: &str, place: Position) -> RunResult<(Type, u64)> {
        match ty {
            Type::Struct(layout) => {
                if let Some((_, ty, offset)) =
                    layout.fields.iter().find(|(known, ..)| &**known == name)
                {
                    return Ok((ty.clone(), *offset));
                }
            }
            Type::Vector(scalar, lanes, _) => {
                if let Some(parts) = components(name, *lanes)
                    && let [only] = parts[..]
                {
                    return Ok((Type::Scalar(*scalar), u64::from(only) * scalar.size()));
                }
            }
            _ => {}
        }
        Self::fail(place, &format!("no member `{name}`"))
    }

    /// True for several components of a vector at once.
    fn is_swizzle(&mut self, base: &Expr, name: &str, mask: &[bool]) -> RunResult<bool> {
        if name.len() == 1 || !name.chars().all(|letter| letter.is_ascii_alphanumeric()) {
            return Ok(false);
        }
        self.silent += 1;
        let no_lanes = vec![false; mask.len()];
        let object = self.object(base, &no_lanes);
        self.silent -= 1;
        Ok(match object?.ty {
            Type::Vector(_, lanes, _) => {
                components(name, lanes).is_some_and(|parts| parts.len() > 1)
            }
            _ => false,
        })
    }

    fn read(&mut self, expression: &Expr, mask: &[bool]) -> RunResult<ThreadValues> {
        let object = self.object(expression, mask)?;
        self.load(&object, mask, expression.place)
    }

    /// What lies there; of an array, a pointer to its first element.
    pub(crate) fn load(
        &mut self,
        object: &Object,
        mask: &[bool],
        place: Position,
    ) -> RunResult<ThreadValues> {
        if let Type::Array(element, _) = &object.ty {
            let words = (0..self.lanes).map(|lane| object.at.lane(lane)).collect();
            return Ok(ThreadValues::words(Type::Pointer(element.clone()), words));
        }
        for piece in pieces(&object.ty) {
            self.access(place, Access::Load, &object.at, piece, mask)?;
        }
        let size = object.ty.size();
        if object.ty.is_word() {
            let mut words = vec![0; self.lanes];
            for lane in (0..self.lanes).filter(|&lane| mask[lane]) {
                let word = self
                    .memory
                    .read(lane, object.at.lane(lane), size)
                    .map_err(Self::trap(place))?;
                words[lane] = match object.ty {
                    Type::Scalar(scalar) => normal(scalar, word),
                    _ => word,
                };
            }
            return Ok(ThreadValues::words(object.ty.clone(), words));
        }
        let mut bytes = vec![0; self.lanes * size as usize];
        for lane in (0..self.lanes).filter(|&lane| mask[lane]) {
            self.memory
                .read_bytes(
                    lane,
                    object.at.lane(lane),
                    &mut bytes[lane * size as usize..][..size as usize],
                )
                .map_err(Self::trap(place))?;
        }
        Ok(ThreadValues {
            ty: object.ty.clone(),
            data: Data::Bytes(bytes),
        })
    }

    pub(crate) fn store(
        &mut self,
        object: &Object,
        value: &ThreadValues,
        mask: &[bool],
        place: Position,
    ) -> RunResult<()> {
        for piece in pieces(&object.ty) {
            self.access(place, Access::Store, &object.at, piece, mask)?;
        }
        let size = object.ty.size();
        for lane in (0..self.lanes).filter(|&lane| mask[lane]) {
            let address = object.at.lane(lane);
            match &value.data {
                Data::Words(words) => self.memory.write(lane, address, size.min(8), words[lane]),
                Data::Bytes(bytes) => self.memory.write_bytes(
                    lane,
                    address,
                    &bytes[lane * size as usize..][..size as usize],
                ),
            }
            .map_err(Self::trap(place))?;
        }
        Ok(())
    }

    /// Gives a new variable its first value.
    pub(crate) fn initialize(
        &mut self,
        object: &Object,
        init: &Expr,
        mask: &[bool],
    ) -> RunResult<()> {
        match &init.kind {
            Kind::List(None, parts) => {
                self.silent += 1;
                let zero = self.zero(&object.ty);
                let cleared = self.store(object, &zero, mask, init.place);
                self.silent -= 1;
                cleared?;
                self.fill(object, parts, init.place, mask)
            }
            _ => {
                let value = self.eval(init, mask)?;
                let value = self.converted_counting(value, &object.ty, mask, init)?;
                self.store(object, &value, mask, init.place)
            }
        }
    }

    fn zero(&self, ty: &Type) -> ThreadValues {
        if ty.is_word() {
            return ThreadValues::words(ty.clone(), vec![0; self.lanes]);
        }
        ThreadValues {
            ty: ty.clone(),
            data: Data::Bytes(vec![0; self.lanes * ty.size() as usize]),
        }
    }

    /// The elements or fields of a list, one after another.
    fn fill(
        &mut self,
        object: &Object,
        parts: &[Expr],
        place: Position,
        mask: &[bool],
    ) -> RunResult<()> {
        let members: Vec<(Type, u64)> = match &object.ty {
            Type::Struct(layout) => layout
                .fields
                .iter()
                .map(|(_, ty, offset)| (ty.clone(), *offset))
                .collect(),
            Type::Array(element, _) => (0..parts.len() as u64)
                .map(|which| ((**element).clone(), which * element.size()))
                .collect(),
            Type::Vector(scalar, lanes, _) => (0..u64::from(*lanes))
                .map(|which| (Type::Scalar(*scalar), which * scalar.size()))
                .collect(),
            ty => vec![(ty.clone(), 0)],
        };
        if parts.len() > members.len() {
            return Self::fail(place, "a list that is too long");
        }
        for ((ty, offset), part) in members.into_iter().zip(parts) {
            let member = Object {
                ty,
                at: object.at.plus(offset),
            };
            self.initialize(&member, part, mask)?;
        }
        Ok(())
    }

    /// `float4(a, b, c, d)`, `(float4)(x)`, `Pair{a, b}`.
    fn build(
        &mut self,
        ty: &Type,
        parts: &[Expr],
        mask: &[bool],
        place: Position,
    ) -> RunResult<ThreadValues> {
        let Type::Vector(scalar, lanes, packing) = ty else {
            let object = self.temporary(ty, place)?;
            self.silent += 1;
            let zero = self.zero(ty);
            let cleared = self.store(&object, &zero, mask, place);
            self.silent -= 1;
            cleared?;
            self.fill(&object, parts, place, mask)?;
            return self.load(&object, mask, place);
        };
        let mut words: Vec<Vec<u64>> = Vec::new();
        for part in parts {
            let value = self.eval(part, mask)?;
            match value.ty {
                Type::Vector(from, count, _) => {
                    for which in 0..count {
                        words.push(self.component(&value, from, which));
                    }
                }
                _ => {
                    let value =
                        self.converted_counting(value, &Type::Scalar(*scalar), mask, part)?;
                    match value.data {
                        Data::Words(found) => words.push(found),
                        Data::Bytes(_) => {
                            return Self::fail(place, "a component that is no number");
                        }
                    }
                }
            }
        }
        let default = if *packing == Packing::OpenCl && words.len() == 1 {
            words[0].clone()
        } else {
            // `dim3 d(n)`: the rest is 1.
            vec![u64::from(*scalar == Scalar::U32); self.lanes]
        };
        words.resize(usize::from(*lanes), default);
        Ok(self.vector(ty, &words))
    }

    // ---- vectors -------------------------------------------------------------------------------

    pub(crate) fn component(&self, value: &ThreadValues, scalar: Scalar, which: u8) -> Vec<u64> {
        match &value.data {
            Data::Words(words) => words.clone(),
            Data::Bytes(bytes) => {
                let (whole, size) = (value.ty.size() as usize, scalar.size() as usize);
                (0..self.lanes)
                    .map(|lane| {
                        let from = lane * whole + usize::from(which) * size;
                        let mut word = [0; 8];
                        word[..size].copy_from_slice(&bytes[from..from + size]);
                        normal(scalar, u64::from_le_bytes(word))
                    })
                    .collect()
            }
        }
    }

    pub(crate) fn vector(&self, ty: &Type, words: &[Vec<u64>]) -> ThreadValues {
        let Type::Vector(scalar, ..) = ty else {
            return ThreadValues::words(ty.clone(), words.first().cloned().unwrap_or_default());
        };
        let (whole, size) = (ty.size() as usize, scalar.size() as usize);
        let mut bytes = vec![0; whole * self.lanes];
        for (which, words) in words.iter().enumerate() {
            for (lane, word) in words.iter().enumerate() {
                let from = lane * whole + which * size;
                bytes[from..from + size].copy_from_slice(&word.to_le_bytes()[..size]);
            }
        }
        ThreadValues {
            ty: ty.clone(),
            data: Data::Bytes(bytes),
        }
    }

    /// A member of a value that lies nowhere, or several components of a vector.
    fn part(
        &mut self,
        whole: &ThreadValues,
        name: &str,
        place: Position,
    ) -> RunResult<ThreadValues> {
        if let Type::Vector(scalar, lanes, packing) = whole.ty
            && let Some(parts) = components(name, lanes)
        {
            let words: Vec<Vec<u64>> = parts
                .iter()
                .map(|&which| self.component(whole, scalar, which))
                .collect();
            let ty = if parts.len() == 1 {
                Type::Scalar(scalar)
            } else {
                Type::Vector(scalar, parts.len() as u8, packing)
            };
            return Ok(self.vector(&ty, &words));
        }
        let (ty, offset) = Self::member(&whole.ty, name, place)?;
        let Data::Bytes(bytes) = &whole.data else {
            return Self::fail(place, &format!("no member `{name}`"));
        };
        let (all, size) = (whole.ty.size() as usize, ty.size() as usize);
        let cut = |lane: usize| &bytes[lane * all + offset as usize..][..size];
        let data = if ty.is_word() {
            let words = (0..self.lanes).map(|lane| {
                let mut word = [0; 8];
                word[..size].copy_from_slice(cut(lane));
                let word = u64::from_le_bytes(word);
                match ty {
                    Type::Scalar(scalar) => normal(scalar, word),
                    _ => word,
                }
            });
            Data::Words(words.collect())
        } else {
            Data::Bytes(
                (0..self.lanes)
                    .flat_map(|lane| cut(lane).to_vec())
                    .collect(),
            )
        };
        Ok(ThreadValues { ty, data })
    }

    // ---- conversions ---------------------------------------------------------------------------

    /// As another type; nothing is counted.
    pub(crate) fn converted(
        &mut self,
        value: ThreadValues,
        to: &Type,
        mask: &[bool],
        place: Position,
    ) -> RunResult<ThreadValues> {
        if value.ty.same(to) {
            return Ok(value);
        }
        match (&value.ty, to, &value.data) {
            (Type::Scalar(from), Type::Scalar(to), Data::Words(words)) => {
                let mut fault = None;
                let words = words
                    .iter()
                    .zip(mask)
                    .map(|(&word, &here)| {
                        let mut own = None;
                        let word = convert(*from, *to, word, &mut own);
                        if here && own.is_some() {
                            fault = own;
                        }
                        word
                    })
                    .collect();
                self.fault(place, fault);
                Ok(ThreadValues::words(Type::Scalar(*to), words))
            }
            (Type::Scalar(scalar), Type::Pointer(_), Data::Words(_)) if !scalar.is_float() => {
                Ok(ThreadValues {
                    ty: to.clone(),
                    ..value
                })
            }
            (Type::Pointer(_), Type::Pointer(_), _) => Ok(ThreadValues {
                ty: to.clone(),
                ..value
            }),
            (Type::Pointer(_), Type::Scalar(scalar), Data::Words(words)) if !scalar.is_float() => {
                let words = words.iter().map(|&word| normal(*scalar, word)).collect();
                Ok(ThreadValues::words(to.clone(), words))
            }
            (Type::Scalar(_), Type::Vector(scalar, lanes, _), _) => {
                let one = self.converted(value, &Type::Scalar(*scalar), mask, place)?;
                let words = self.component(&one, *scalar, 0);
                Ok(self.vector(to, &vec![words; usize::from(*lanes)]))
            }
            (Type::Vector(from, n, _), Type::Vector(scalar, m, _), _) if n == m => {
                let mut all = Vec::new();
                for which in 0..*n {
                    let part = ThreadValues::words(
                        Type::Scalar(*from),
                        self.component(&value, *from, which),
                    );
                    let part = self.converted(part, &Type::Scalar(*scalar), mask, place)?;
                    all.push(self.component(&part, *scalar, 0));
                }
                Ok(self.vector(to, &all))
            }
            _ => Self::fail(place, "a conversion that is not known"),
        }
    }

    /// As another type; where the bits of the number change, that is an operation, but not for literals.
    pub(crate) fn converted_counting(
        &mut self,
        value: ThreadValues,
        to: &Type,
        mask: &[bool],
        from: &Expr,
    ) -> RunResult<ThreadValues> {
        if let (Some(a), Type::Scalar(b)) = (value.scalar(), to) {
            let changes = a.is_float() != b.is_float() || (a.is_float() && a != *b);
            if changes && !matches!(from.kind, Kind::Int(..) | Kind::Float(..)) {
                self.count(Class::Conversion, mask, 1);
            }
        }
        self.converted(value, to, mask, from.place)
    }

    fn promoted(
        &mut self,
        value: ThreadValues,
        mask: &[bool],
        place: Position,
    ) -> RunResult<ThreadValues> {
        match value.scalar() {
            Some(scalar) => self.converted(value, &Type::Scalar(scalar.promoted()), mask, place),
            None => Ok(value),
        }
    }

    /// An operand as the usual arithmetic conversions make it, where that is an operation.
    fn met(
        &mut self,
        value: ThreadValues,
        other: &ThreadValues,
        from: &Expr,
        mask: &[bool],
    ) -> RunResult<ThreadValues> {
        match (value.scalar(), other.scalar()) {
            (Some(a), Some(b)) if a.common(b).is_float() && a != a.common(b) => {
                self.converted_counting(value, &Type::Scalar(a.common(b)), mask, from)
            }
            _ => Ok(value),
        }
    }

    // ---- operators -----------------------------------------------------------------------------

    pub(crate) fn class(scalar: Scalar) -> Class {
        match scalar {
            Scalar::F16 => Class::Fp16,
            Scalar::F32 => Class::Fp32,
            Scalar::F64 => Class::Fp64,
            _ => Class::Int,
        }
    }

    fn negated(
        &mut self,
        value: &ThreadValues,
        mask: &[bool],
        place: Position,
    ) -> RunResult<ThreadValues> {
        let negate = |scalar: Scalar, word: u64| match scalar {
            Scalar::F16 => word ^ 0x8000,
            Scalar::F32 => word ^ 0x8000_0000,
            Scalar::F64 => word ^ (1 << 63),
            _ => normal(scalar, (word as i64).wrapping_neg() as u64),
        };
        match (&value.ty, &value.data) {
            (Type::Scalar(scalar), Data::Words(words)) => {
                self.count(Self::class(*scalar), mask, 1);
                let lowest = match scalar {
                    Scalar::I32 => Some(i64::from(i32::MIN) as u64),
                    Scalar::I64 => Some(i64::MIN as u64),
                    _ => None,
                };
                let over = words
                    .iter()
                    .zip(mask)
                    .any(|(word, here)| *here && Some(*word) == lowest);
                let words = words.iter().map(|&word| negate(*scalar, word)).collect();
                self.fault(place, over.then_some("a signed overflow"));
                Ok(ThreadValues::words(value.ty.clone(), words))
            }
            (Type::Vector(scalar, lanes, _), _) => {
                self.count(Self::class(*scalar), mask, u64::from(*lanes));
                let all: Vec<Vec<u64>> = (0..*lanes)
                    .map(|which| {
                        let words = self.component(value, *scalar, which);
                        words.iter().map(|&word| negate(*scalar, word)).collect()
                    })
                    .collect();
                Ok(self.vector(&value.ty, &all))
            }
            _ => Self::fail(place, "no number to negate"),
        }
    }

    /// A pointer moved by a number of elements.
    pub(crate) fn moved(
        &mut self,
        pointer: &ThreadValues,
        by: &ThreadValues,
        back: bool,
        place: Position,
    ) -> RunResult<ThreadValues> {
        let (Type::Pointer(element), Data::Words(words), Type::Scalar(scalar), Data::Words(steps)) =
            (&pointer.ty, &pointer.data, &by.ty, &by.data)
        else {
            return Self::fail(place, "an index into no array");
        };
        if scalar.is_float() {
            return Self::fail(place, "an index that is no integer");
        }
        let size = element.size();
        let words = words
            .iter()
            .zip(steps)
            .map(|(word, step)| {
                let bytes = step.wrapping_mul(size);
                if back {
                    word.wrapping_sub(bytes)
                } else {
                    word.wrapping_add(bytes)
                }
            })
            .collect();
        Ok(ThreadValues::words(pointer.ty.clone(), words))
    }

    /// An operator on two values; counted where `(_, true)`.
    pub(crate) fn binary(
        &mut self,
        op: Op,
        a: ThreadValues,
        b: ThreadValues,
        mask: &[bool],
        (place, counted): (Position, bool),
    ) -> RunResult<ThreadValues> {
        match (&a.ty, &b.ty) {
            (Type::Scalar(x), Type::Scalar(y)) => {
                let ty = match op {
                    Op::Shl | Op::Shr => x.promoted(),
                    _ => x.common(*y),
                };
                let right = match op {
                    Op::Shl | Op::Shr => y.promoted(),
                    _ => ty,
                };
                if ty.is_float()
                    && matches!(op, Op::Rem | Op::And | Op::Or | Op::Xor | Op::Shl | Op::Shr)
                {
                    return Self::fail(place, "an operator that floating point does not have");
                }
                let a = self.converted(a, &Type::Scalar(ty), mask, place)?;
                let b = self.converted(b, &Type::Scalar(right), mask, place)?;
                if counted {
                    self.count(Self::class(ty), mask, 1);
                }
                let (Data::Words(x), Data::Words(y)) = (&a.data, &b.data) else {
                    return Self::fail(place, "operands that are no numbers");
                };
                let mut fault = None;
                let mut words = vec![0; self.lanes];
                for lane in (0..self.lanes).filter(|&lane| mask[lane]) {
                    words[lane] = operate(op, ty, x[lane], y[lane], &mut fault);
                }
                self.fault(place, fault);
                let result = if op.compares() {
                    self.truth_type()
                } else {
                    Type::Scalar(ty)
                };
                Ok(ThreadValues::words(result, words))
            }
            (Type::Pointer(_), Type::Scalar(_)) if matches!(op, Op::Add | Op::Sub) => {
                if counted {
                    self.count(Class::Int, mask, 1);
                }
                self.moved(&a, &b, op == Op::Sub, place)
            }
            (Type::Scalar(_), Type::Pointer(_)) if op == Op::Add => {
                if counted {
                    self.count(Class::Int, mask, 1);
                }
                self.moved(&b, &a, false, place)
            }
            (Type::Pointer(element), Type::Pointer(_)) => {
                if counted {
                    self.count(Class::Int, mask, 1);
                }
                let size = element.size().max(1) as i64;
                let long = Type::Scalar(Scalar::I64);
                let a = self.converted(a, &long, mask, place)?;
                let b = self.converted(b, &long, mask, place)?;
                let found = self.binary(op, a, b, mask, (place, false))?;
                match (op, &found.data) {
                    (Op::Sub, Data::Words(words)) => {
                        let words = words
                            .iter()
                            .map(|&word| (word as i64 / size) as u64)
                            .collect();
                        Ok(ThreadValues::words(long, words))
                    }
                    _ => Ok(found),
                }
            }
            (Type::Pointer(_), Type::Scalar(_)) | (Type::Scalar(_), Type::Pointer(_))
                if op.compares() =>
            {
                let long = Type::Scalar(Scalar::U64);
                let a = self.converted(a, &long, mask, place)?;
                let b = self.converted(b, &long, mask, place)?;
                self.binary(op, a, b, mask, (place, counted))
            }
            (Type::Vector(scalar, lanes, packing), _)
            | (_, Type::Vector(scalar, lanes, packing)) => {
                let (scalar, lanes, packing) = (*scalar, *lanes, *packing);
                if packing == Packing::Cuda {
                    return Self::fail(place, "CUDA's vectors have no operators");
                }
                let ty = Type::Vector(scalar, lanes, packing);
                let a = self.converted(a, &ty, mask, place)?;
                let b = self.converted(b, &ty, mask, place)?;
                if counted {
                    self.count(Self::class(scalar), mask, u64::from(lanes));
                }
                let mut fault = None;
                let mut all = Vec::new();
                for which in 0..lanes {
                    let (x, y) = (
                        self.component(&a, scalar, which),
                        self.component(&b, scalar, which),
                    );
                    let mut words = vec![0; self.lanes];
                    for lane in (0..self.lanes).filter(|&lane| mask[lane]) {
                        let word = operate(op, scalar, x[lane], y[lane], &mut fault);
                        words[lane] = if op.compares() {
                            word.wrapping_neg()
                        } else {
                            word
                        };
                    }
                    all.push(words);
                }
                self.fault(place, fault);
                let result = match (op.compares(), scalar.size()) {
                    (false, _) => scalar,
                    (true, 1) => Scalar::I8,
                    (true, 2) => Scalar::I16,
                    (true, 4) => Scalar::I32,
                    (true, _) => Scalar::I64,
                };
                Ok(self.vector(&Type::Vector(result, lanes, packing), &all))
            }
            _ => Self::fail(place, "an operator that these types do not have"),
        }
    }

    fn assign(
        &mut self,
        op: Option<Op>,
        target: &Expr,
        value: &Expr,
        mask: &[bool],
    ) -> RunResult<ThreadValues> {
        if let Kind::Field(base, name) = &target.kind
            && self.has_address(base)
            && self.is_swizzle(base, name, mask)?
        {
            return Self::fail(target.place, "an assignment to several components");
        }
        if !self.has_address(target) {
            return Self::fail(target.place, "an assignment to what is no place");
        }
        let place = target.place;
        let Some(op) = op else {
            let (wanted, object) = match &value.kind {
                Kind::List(None, _) => {
                    let object = self.object(target, mask)?;
                    (self.eval_as(value, &object.ty, mask)?, object)
                }
                _ => (self.eval(value, mask)?, self.object(target, mask)?),
            };
            let wanted = self.converted_counting(wanted, &object.ty, mask, value)?;
            self.store(&object, &wanted, mask, place)?;
            return Ok(wanted);
        };
        let right = self.eval(value, mask)?;
        let object = self.object(target, mask)?;
        let before = self.load(&object, mask, place)?;
        let right = self.met(right, &before, value, mask)?;
        let before = self.met(before, &right, target, mask)?;
        let after = self.binary(op, before, right, mask, (place, true))?;
        let after = self.converted_counting(after, &object.ty, mask, target)?;
        self.store(&object, &after, mask, place)?;
        Ok(after)
    }

    fn select(
        &mut self,
        condition: &Expr,
        yes: &Expr,
        no: &Expr,
        mask: &[bool],
    ) -> RunResult<ThreadValues> {
        let place = condition.place;
        let truth = self.truth(condition, mask)?;
        self.fork(place, BranchKind::Select, mask, &truth, false);
        let side = |wanted: bool| -> Vec<bool> {
            mask.iter()
                .zip(&truth)
                .map(|(here, t)| *here && (*t != 0) == wanted)
                .collect()
        };
        let (first, second) = (side(true), side(false));
        let a = self.eval(yes, &first)?;
        let b = self.eval(no, &second)?;
        let ty = match (&a.ty, &b.ty) {
            (Type::Scalar(x), Type::Scalar(y)) if x == y => Type::Scalar(*x),
            (Type::Scalar(x), Type::Scalar(y)) => Type::Scalar(x.common(*y)),
            (Type::Pointer(_), _) | (Type::Vector(..), Type::Scalar(_)) => a.ty.clone(),
            (_, ty) => ty.clone(),
        };
        let mut a = self.converted_counting(a, &ty, &first, yes)?;
        let b = self.converted_counting(b, &ty, &second, no)?;
        merge(&mut a, &b, &second)
            .ok_or_else(|| Error::new(place, "a choice between several types"))?;
        Ok(a)
    }

    /// A type as a template's argument may be written.
    pub(crate) fn template_type(&mut self, name: &TypeName) -> RunResult<Type> {
        self.resolve(name)
    }
}

/// The accesses that move a value, offset and bytes: a structure moves in its largest aligned pieces.
fn pieces(ty: &Type) -> Vec<(u64, u64)> {
    let (size, align) = match ty {
        Type::Vector(_, 3, Packing::OpenCl) => (ty.size() / 4 * 3, ty.size()),
        Type::Vector(_, 3, Packing::Cuda) => (ty.size(), ty.align()),
        Type::Scalar(_) | Type::Pointer(_) | Type::Vector(..) => return whole(ty.size()),
        _ => (ty.size(), ty.align()),
    };
    if matches!(ty, Type::Vector(_, 3, Packing::OpenCl)) && size <= WIDEST {
        return vec![(0, size)];
    }
    let mut found = Vec::new();
    let mut at = 0;
    while at < size {
        let mut piece = WIDEST.min(align);
        while piece > 1 && (at % piece != 0 || at + piece > size) {
            piece /= 2;
        }
        found.push((at, piece));
        at += piece;
    }
    found
}

fn whole(size: u64) -> Vec<(u64, u64)> {
    (0..size.div_ceil(WIDEST))
        .map(|which| (which * WIDEST, size.min(WIDEST)))
        .collect()
}

/// `x`, `s0`, `xy`, `lo` …: which components.
fn components(name: &str, lanes: u8) -> Option<Vec<u8>> {
    let half = lanes.div_ceil(2);
    match name {
        "lo" => return Some((0..half).collect()),
        "hi" => return Some((half..half * 2).collect()),
        "even" => return Some((0..lanes).step_by(2).collect()),
        "odd" => return Some((1..lanes).step_by(2).collect()),
        _ => {}
    }
    let numbered = name
        .strip_prefix(['s', 'S'])
        .filter(|rest| !rest.is_empty());
    let parts: Option<Vec<u8>> = match numbered {
        Some(digits) => digits
            .chars()
            .map(|digit| digit.to_digit(16).map(|d| d as u8))
            .collect(),
        None => name
            .chars()
            .map(|letter| {
                "xyzw"
                    .find(letter)
                    .or("rgba".find(letter))
                    .map(|at| at as u8)
            })
            .collect(),
    };
    parts.filter(|parts| parts.iter().all(|&part| part < lanes))
}
