//! Calls of functions that every kernel may call.

use smallvec::smallvec;
use warplens_ir::functions::{self, Operation};
use warplens_ir::{Bits, Effect, Exchange, Expr, Fragment, Function, MathClass, Type};

use super::expressions::{element, is_signed};
use super::place::Place;
use super::{Builder, Value, machine, scalars};
use crate::Class;
use crate::graph::{Args, Op, Ty, Update, V};
use crate::recipes;

impl Builder<'_> {
    pub(super) fn call(&mut self, function: &Function, arguments: &[Expr], whole: &Expr) -> Value {
        let ty = &whole.ty;
        match function {
            Function::Load => {
                let Some(pointer) = arguments.first() else {
                    return self.nothing(ty);
                };
                let place = self.pointed_at(pointer);
                return self.read(place, ty);
            }
            Function::Store => {
                if let [pointer, value, ..] = arguments {
                    let to = pointer.ty.element().cloned().unwrap_or(Type::INT);
                    let found = self.value(value);
                    let found = self.fit(found, &value.ty, &to);
                    let place = self.pointed_at(pointer);
                    self.write(place, &to, &found);
                }
                return Value::new();
            }
            Function::Atomic(update, _) => return self.atomic(*update, arguments, ty),
            Function::Math(_, name)
                if functions::operation(&recipes::plain(name)) == Some(Operation::SinCos) =>
            {
                return self.sine_and_cosine(name, arguments, ty);
            }
            Function::Instruction(mnemonic, function) => {
                if let (Function::Math(..), Some(recipe)) =
                    (&**function, recipes::approximation(mnemonic))
                {
                    return self.approximated(recipe, arguments, ty);
                }
                return self.call(function, arguments, whole);
            }
            Function::CopyPastRegisters => {
                for size in arguments.iter().skip(1) {
                    self.value(size);
                }
                if let Some(copy) = arguments.first() {
                    self.copy(copy);
                }
                return Value::new();
            }
            Function::Mapped => {
                for rank in arguments.iter().skip(1) {
                    self.value(rank);
                }
                let address = arguments.first().map(|address| self.value(address));
                // What is stored in this block is not what is loaded there.
                let Some(own) = address.and_then(|value| value.first().copied()) else {
                    return self.nothing(ty);
                };
                let kind = self.graph.inst(own).ty;
                return smallvec![self.push(Op::Fixed(Class::Other, 1), kind, smallvec![own])];
            }
            Function::Rows { store, .. } => return self.rows(*store, arguments, ty),
            Function::Math(_, name) if &**name == "fill_fragment" => {
                self.filled(arguments);
                return Value::new();
            }
            Function::Bulk { .. } | Function::BulkBox { .. } => {
                for argument in arguments {
                    self.value(argument);
                }
                self.push(Op::Fixed(Class::Other, 1), Ty::None, Args::new());
                self.synchronises();
                return Value::new();
            }
            Function::Tile { store } => {
                let place = arguments.first().map(|pointer| self.pointed_at(pointer));
                let rest = arguments.get(1..).unwrap_or_default();
                let fragment = rest.iter().find_map(|argument| Fragment::of(&argument.ty));
                if let Some(fragment) = fragment {
                    self.matrix_access(*store, fragment, place, rest);
                    return self.nothing(ty);
                }
                for argument in arguments.iter().skip(1) {
                    self.value(argument);
                }
                if let Some(Place::Memory(pointer, space)) = place {
                    let object = self.object(pointer, space);
                    let op = if *store {
                        Op::Store(space, 4, 0)
                    } else {
                        Op::Load(space, 4, 0, self.versions.of(object))
                    };
                    self.push(op, Ty::I32, smallvec![pointer]);
                    if *store {
                        self.changes(object);
                    }
                }
                return self.nothing(ty);
            }
            _ => {}
        }
        let mut values: Vec<Value> = Vec::with_capacity(arguments.len());
        for argument in arguments {
            values.push(self.value(argument));
        }
        let firsts: Args = values
            .iter()
            .filter_map(|value| value.first().copied())
            .collect();
        match function {
            Function::Min | Function::Max if arguments.len() == 2 => {
                let least = *function == Function::Min;
                let to = element(ty);
                let made = machine(to);
                let signed = is_signed(to);
                let op = if least {
                    Op::Min(signed)
                } else {
                    Op::Max(signed)
                };
                let a = self.fit(values[0].clone(), &arguments[0].ty, ty);
                let b = self.fit(values[1].clone(), &arguments[1].ty, ty);
                a.iter()
                    .zip(&b)
                    .map(|(&a, &b)| self.binary(op, made, a, b))
                    .collect()
            }
            Function::Abs => {
                let made = machine(element(ty));
                values
                    .swap_remove(0)
                    .into_iter()
                    .map(|v| self.unary(Op::Abs, made, v))
                    .collect()
            }
            Function::Mul24 if firsts.len() == 2 => {
                smallvec![self.binary(Op::Mul, machine(ty), firsts[0], firsts[1])]
            }
            Function::SameBits => match (values.first(), arguments.first()) {
                (Some(value), Some(argument)) => self.same_bits(value, &argument.ty, ty),
                _ => self.nothing(ty),
            },
            Function::Bits(bits) => self.bits(*bits, &firsts, arguments, ty),
            Function::Math(class, name) => self.math(*class, name, &values, arguments, ty),
            Function::WarpExchange(Exchange::Vote, _) => {
                smallvec![self.push(Op::Vote, machine(ty), firsts)]
            }
            Function::WarpExchange(Exchange::Shuffle, name) => {
                let skip = functions::value_of_exchange(name, arguments.len());
                let moved = values.get(skip).cloned().unwrap_or_default();
                moved
                    .into_iter()
                    .map(|v| {
                        let mut args: Args = smallvec![v];
                        args.extend(firsts.get(skip + 1).copied());
                        let made = self.graph.ty(v);
                        self.push(Op::Shuffle, made, args)
                    })
                    .collect()
            }
            Function::Texture { store } => {
                if *store {
                    let all = values.iter().flatten().copied().collect();
                    self.push(Op::Fixed(Class::Tex, 1), Ty::None, all);
                    return Value::new();
                }
                let loaded = self.push(Op::Texture, Ty::I32, firsts);
                let parts = scalars(ty);
                parts
                    .iter()
                    .enumerate()
                    .map(|(number, (_, part))| {
                        self.push(Op::Piece(number as u8), machine(part), smallvec![loaded])
                    })
                    .collect()
            }
            Function::Ignored(effect, name) => {
                match effect {
                    Effect::Fence if is_named_barrier(name) => {
                        self.push(Op::Barrier, Ty::None, Args::new());
                        self.synchronises();
                    }
                    Effect::Print | Effect::Call | Effect::Fail => {
                        self.push(Op::System, Ty::None, firsts);
                        self.synchronises();
                    }
                    Effect::Assert => {
                        self.push(Op::System, Ty::None, Args::new());
                    }
                    Effect::Fence => {
                        self.synchronises();
                        self.push(Op::Fence, Ty::None, Args::new());
                    }
                    Effect::None | Effect::Unknown => {}
                }
                Value::new()
            }
            _ => {
                let parts = scalars(ty);
                parts
                    .iter()
                    .map(|(_, part)| self.push(Op::Other, machine(part), firsts.clone()))
                    .collect()
            }
        }
    }

    /// A function by its recipe, lane by lane.
    fn approximated(&mut self, recipe: u16, arguments: &[Expr], ty: &Type) -> Value {
        let made = machine(element(ty));
        let values: Vec<Value> = arguments
            .iter()
            .map(|argument| self.value(argument))
            .collect();
        let mut lanes = Value::new();
        for lane in 0..scalars(ty).len() {
            let args = values.iter().filter_map(|value| value.get(lane).copied());
            let args = args.collect();
            lanes.push(self.share(Op::Math(recipe), made, args));
        }
        lanes
    }

    /// `sincos(x, &sine, &cosine)`, of OpenCL `sine = sincos(x, &cosine)`: both come of one call.
    fn sine_and_cosine(&mut self, name: &str, arguments: &[Expr], ty: &Type) -> Value {
        let (Some(angle), Some(last)) = (arguments.first(), arguments.last()) else {
            return self.nothing(ty);
        };
        let to = last.ty.element().cloned().unwrap_or(Type::FLOAT);
        let number = element(&to);
        let made = machine(number);
        let angles = self.value(angle);
        let mut results = [Value::new(), Value::new()];
        for lane in angles {
            let lane = self.convert(lane, element(&angle.ty), number);
            let function =
                recipes::index(&recipes::plain(name), made, name, self.options.fast_math);
            let both = self.share(Op::Math(function), made, smallvec![lane]);
            for (part, result) in results.iter_mut().enumerate() {
                result.push(self.share(Op::Piece(part as u8), made, smallvec![both]));
            }
        }
        let [sine, cosine] = results;
        let stored = match &arguments[1..] {
            [first, second] => vec![(first, &sine), (second, &cosine)],
            [second] => vec![(second, &cosine)],
            _ => Vec::new(),
        };
        let returned = if stored.len() == 1 {
            sine.clone()
        } else {
            Value::new()
        };
        for (pointer, value) in stored {
            let place = self.pointed_at(pointer);
            self.write(place, &to, value);
        }
        returned
    }

    fn atomic(&mut self, does: functions::Update, arguments: &[Expr], ty: &Type) -> Value {
        let Some(pointer) = arguments.first() else {
            return self.nothing(ty);
        };
        let mut args = Args::new();
        let space = match self.pointed_at(pointer) {
            Place::Memory(at, space) => {
                args.push(at);
                space
            }
            place => return self.read(place, ty),
        };
        for argument in &arguments[1..] {
            let value = self.value(argument);
            let value = self.fit(value, &argument.ty, ty);
            args.extend(value.first().copied());
        }
        let update = if does == functions::Update::Swap {
            Update::Swap
        } else if ty.is_float() {
            Update::FloatAdd
        } else {
            Update::Reduction
        };
        let object = self.object(args[0], space);
        self.changes(object);
        self.unread.clear();
        smallvec![self.push(Op::Atomic(space, update), machine(ty), args)]
    }

    fn bits(&mut self, bits: Bits, args: &Args, arguments: &[Expr], ty: &Type) -> Value {
        let made = machine(ty);
        let Some(&first) = args.first() else {
            return self.nothing(ty);
        };
        let signed = is_signed(&arguments[0].ty);
        smallvec![match (bits, args.as_slice()) {
            (Bits::Population, _) => self.share(Op::Popc, made, smallvec![first]),
            (Bits::LeadingZeros | Bits::TrailingZeros | Bits::FirstSet, _) => {
                self.share(Op::FindBit, made, smallvec![first])
            }
            (Bits::Reverse, _) => self.share(Op::Reverse, made, smallvec![first]),
            (Bits::MultiplyHigh, [a, b]) => self.share(Op::MulHigh, made, smallvec![*a, *b]),
            (Bits::MultiplyAdd24, [a, b, c]) => {
                let product = self.binary(Op::Mul, made, *a, *b);
                self.binary(Op::Add, made, product, *c)
            }
            (Bits::Clamp, [value, least, most]) => {
                let raised = self.binary(Op::Max(signed), made, *value, *least);
                self.binary(Op::Min(signed), made, raised, *most)
            }
            _ => first,
        }]
    }

    fn math(
        &mut self,
        class: MathClass,
        name: &str,
        values: &[Value],
        arguments: &[Expr],
        ty: &Type,
    ) -> Value {
        let element_ty = element(ty);
        let made = machine(element_ty);
        let lanes = scalars(ty).len();
        if class == MathClass::Tensor {
            return self.product(name, arguments, values, ty);
        }
        let mut out = Value::new();
        // A vector of scalars: each lane is made of its own.
        let gathered = class == MathClass::Convert && lanes > 1 && values.len() == lanes;
        for lane in 0..lanes.max(1) {
            let mut args = Args::new();
            for (number, (value, argument)) in values.iter().zip(arguments).enumerate() {
                if gathered && number != lane {
                    continue;
                }
                let Some(&v) = value.get(lane).or(value.first()) else {
                    continue;
                };
                let from = element(&argument.ty);
                // Arithmetic works in the type of its result.
                let floats = matches!(class, MathClass::Float(_) | MathClass::Special);
                args.push(
                    if floats && made.is_float() && !matches!(from, Type::Pointer(..)) {
                        self.convert(v, from, element_ty)
                    } else {
                        v
                    },
                );
            }
            let v = self.one_function(class, name, args, arguments, element_ty);
            out.push(v);
            if lanes == 0 {
                return Value::new();
            }
        }
        self.pair(&out);
        out
    }

    fn one_function(
        &mut self,
        class: MathClass,
        name: &str,
        args: Args,
        arguments: &[Expr],
        ty: &Type,
    ) -> V {
        let made = machine(ty);
        if class == MathClass::Convert {
            let (Some(&v), Some(from)) = (args.first(), arguments.first()) else {
                return self.push(Op::Other, made, args);
            };
            let from = element(&from.ty);
            if name.contains("_as_") || name.starts_with("as_") {
                return if self.graph.ty(v) == made {
                    v
                } else {
                    self.unary(Op::Bits, made, v)
                };
            }
            return self.convert(v, from, ty);
        }
        let plain = recipes::plain(name);
        match (functions::operation(&plain), args.as_slice()) {
            (Some(Operation::Fma), &[a, b, c]) => {
                if made.is_float() {
                    self.share(Op::Fma, made, smallvec![a, b, c])
                } else {
                    let product = self.binary(Op::Mul, made, a, b);
                    self.binary(Op::Add, made, product, c)
                }
            }
            (Some(Operation::Abs), &[a]) => self.unary(Op::Abs, made, a),
            (Some(Operation::Neg), &[a]) => self.unary(Op::Neg, made, a),
            (Some(Operation::Add), &[a, b]) => self.binary(Op::Add, made, a, b),
            (Some(Operation::Sub), &[a, b]) => self.binary(Op::Sub, made, a, b),
            (Some(Operation::Mul), &[a, b]) => self.binary(Op::Mul, made, a, b),
            (Some(Operation::Min), &[a, b]) => self.binary(Op::Min(true), made, a, b),
            (Some(Operation::Max), &[a, b]) => self.binary(Op::Max(true), made, a, b),
            (Some(Operation::Div), &[a, b]) => self.binary(Op::Div(true), made, a, b),
            (Some(Operation::Clamp), &[a, ..]) => {
                let low = self.float(Some(0.0), made);
                let raised = self.binary(Op::Max(true), made, a, low);
                let high = self.float(Some(1.0), made);
                self.binary(Op::Min(true), made, raised, high)
            }
            _ if matches!(class, MathClass::Int(_)) => self.push(Op::Other, made, args),
            _ => {
                let number = recipes::index(&plain, made, name, self.options.fast_math);
                self.share(Op::Math(number), made, args)
            }
        }
    }
}

/// A barrier of some of a block's warps, by the mnemonic of PTX: `bar.sync 1, 128`.
fn is_named_barrier(name: &str) -> bool {
    let mut parts = name.split('.');
    matches!(parts.next(), Some("bar" | "barrier"))
        && parts.all(|part| !matches!(part, "cluster" | "warp"))
}
