//! Calls in a compiled loop: the C library's functions, and functions of the program, which are compiled in place of their call.

use warplens_syntax::nodes::CallExpression;
use warplens_syntax::{Field, Kind, Node};

use super::bound::{Kept, Operand, What};
use super::code::{Draw, Function, Step, pointer};
use super::compile::{Compiler, Returns};
use crate::drawing::distribution_of;
use crate::index::declared_name;
use crate::kinds::Number;
use crate::nodes::{name_of_function, parameter_list, parts, text};
use crate::random::{Distribution, Family};
use warplens_ir::Type;

/// Calls nest this deep at most.
const DEEPEST_CALLS: usize = 12;

const INT: Number = Number::Int {
    bits: 32,
    signed: true,
};

impl Compiler<'_, '_> {
    pub(super) fn call(&mut self, node: Node) -> Option<Operand> {
        let call = CallExpression::cast(node)?;
        if call.launch().is_some() {
            return None;
        }
        let (function, list) = (call.function()?, call.arguments()?);
        let arguments = parts(list);
        if function.kind() == Kind::FieldExpression {
            return self.method(function, &arguments);
        }
        if matches!(
            function.kind(),
            Kind::PrimitiveType | Kind::SizedTypeSpecifier
        ) {
            let value = self.expression(*arguments.first()?)?;
            return self.cast(&value, function);
        }
        let (name_node, template) = name_of_function(function);
        let name = text(name_node, self.source).trim();
        if function.kind() == Kind::Identifier
            && let Some(Kept::Generator(generator)) = self.generator(function)
        {
            return arguments.is_empty().then(|| {
                // Their word is `uint_fast32_t`.
                let word = Number::Int {
                    bits: 64,
                    signed: false,
                };
                self.drawn(Draw::Word, generator, word)
            })?;
        }
        if let ([given], Some(distribution)) = (arguments.as_slice(), self.distribution(function)) {
            let Some(Kept::Generator(generator)) = self.generator(*given) else {
                return None;
            };
            return self.drawn(Draw::By(distribution), generator, distribution.number());
        }
        if name == "static_cast" {
            let ty = parts(template?).into_iter().next()?;
            let value = self.expression(*arguments.first()?)?;
            return self.cast(&value, ty);
        }
        if self.host.index.by_name.contains_key(name) {
            return self.inlined(name, &arguments);
        }
        self.library(name, &arguments)
    }

    fn generator(&mut self, name: Node) -> Option<Kept> {
        let name_text = text(name, self.source);
        if self.host.index.by_name.contains_key(name_text) {
            return None;
        }
        match self.outer_place(name)? {
            place if matches!(self.host.read(&place), crate::value::Value::Generator(_)) => {
                self.outers.kept(self.host, &mut self.code, &place)
            }
            _ => None,
        }
    }

    /// The distribution from outside of the loop that an expression names. No step of a loop changes one.
    fn distribution(&mut self, name: Node) -> Option<Distribution> {
        if name.kind() != Kind::Identifier
            || self
                .host
                .index
                .by_name
                .contains_key(text(name, self.source))
        {
            return None;
        }
        let place = self.outer_place(name)?;
        match self.host.read(&place) {
            crate::value::Value::Record(record) => distribution_of(&record),
            _ => None,
        }
    }

    fn drawn(&mut self, draw: Draw, generator: u32, number: Number) -> Option<Operand> {
        let register = self.register();
        self.emit(Step::Draw(draw, generator, register))?;
        Some(Operand {
            register,
            what: What::Number(number),
        })
    }

    /// The C library's generator of that family.
    fn c_generator(&mut self, family: Family) -> Option<u32> {
        let slot = self.host.c_generator(family)?;
        let known = self.outers.generators.iter().position(|of| *of == slot);
        let at = known.unwrap_or_else(|| {
            let value = match self.host.slots[slot].value {
                crate::value::Value::Generator(generator) => Some(generator),
                _ => None,
            };
            self.outers.generators.push(slot);
            self.code.generators.push(value);
            self.code.generators.len() - 1
        });
        Some(at as u32)
    }

    fn nothing(&mut self) -> Operand {
        Operand {
            register: self.constant(0),
            what: What::Number(INT),
        }
    }

    fn library(&mut self, name: &str, arguments: &[Node]) -> Option<Operand> {
        match (name, arguments) {
            // What they print is not kept.
            ("printf" | "fprintf" | "puts" | "fflush" | "assert" | "putchar", _) => {
                return Some(self.nothing());
            }
            ("rand" | "random", []) => {
                let generator = self.c_generator(Family::Rand)?;
                return self.drawn(Draw::Word, generator, INT);
            }
            ("drand48", []) => {
                let generator = self.c_generator(Family::Rand48)?;
                return self.drawn(Draw::Unit48, generator, Number::F64);
            }
            ("lrand48", []) => {
                let generator = self.c_generator(Family::Rand48)?;
                return self.drawn(Draw::Long48, generator, Number::LONG);
            }
            ("srand" | "srandom" | "srand48", [seed]) => {
                let family = if name == "srand48" {
                    Family::Rand48
                } else {
                    Family::Rand
                };
                let generator = self.c_generator(family)?;
                let seed = self.expression(*seed)?;
                self.emit(Step::Seed(generator, seed.register))?;
                return Some(self.nothing());
            }
            ("swap", [a, b]) => {
                let (a, b) = (self.kept(*a)?, self.kept(*b)?);
                let (x, y) = (self.load(&a)?, self.load(&b)?);
                let first = Operand {
                    register: self.register(),
                    what: x.what.clone(),
                };
                self.emit(Step::Move(first.register, x.register))?;
                self.assign(&a, &y)?;
                self.assign(&b, &first)?;
                return Some(self.nothing());
            }
            _ => {}
        }
        let values: Vec<Operand> = arguments
            .iter()
            .take(3)
            .map(|argument| self.expression(*argument))
            .collect::<Option<_>>()?;
        let (function, kind) = function(name, &values)?;
        let mut registers = [0, 0];
        for (register, value) in registers.iter_mut().zip(&values) {
            let What::Number(from) = value.what else {
                return None;
            };
            *register = self.converted(value.register, from, kind)?;
        }
        if values.len() == 1 {
            registers[1] = registers[0];
        }
        let to = self.register();
        self.emit(Step::Call(function, kind, to, registers))?;
        Some(Operand {
            register: to,
            what: What::Number(kind),
        })
    }

    /// A method of a container.
    fn method(&mut self, function: Node, arguments: &[Node]) -> Option<Operand> {
        let object = function.field(Field::Argument)?;
        let name = text(function.field(Field::Field)?, self.source);
        let Kept::Container(memory, element) = self.kept(object)? else {
            return None;
        };
        let size = u32::try_from(element.size())
            .ok()
            .filter(|size| *size > 0)?;
        match (name, arguments) {
            ("size" | "length", []) => {
                let register = self.register();
                self.emit(Step::Length(register, memory, size))?;
                Some(Operand {
                    register,
                    what: What::Number(Number::Int {
                        bits: 64,
                        signed: false,
                    }),
                })
            }
            ("data" | "begin", []) => Some(Operand {
                register: self.constant(pointer(memory as usize, 0)),
                what: What::Pointer(element),
            }),
            ("push_back" | "emplace_back", [value]) => {
                let value = self.expression(*value)?;
                let (What::Number(from), into) = (value.what, Number::of(&element)?) else {
                    return None;
                };
                let register = self.converted(value.register, from, into)?;
                // How many there are decides sizes.
                self.stored(INT);
                self.emit(Step::Push(memory, into, register))?;
                Some(self.nothing())
            }
            ("resize", [count]) => {
                let count = self.expression(*count)?;
                self.stored(INT);
                self.emit(Step::Resize(memory, count.register, size))?;
                Some(self.nothing())
            }
            ("clear", []) => {
                let zero = self.constant(0);
                self.stored(INT);
                self.emit(Step::Resize(memory, zero, size))?;
                Some(self.nothing())
            }
            ("reserve", [_]) => Some(self.nothing()),
            _ => None,
        }
    }

    /// A function of the program.
    fn inlined(&mut self, name: &str, arguments: &[Node]) -> Option<Operand> {
        let [at] = self.host.index.by_name.get(name)?.as_slice() else {
            return None;
        };
        let (at, function) = (*at, &self.host.index.functions[*at]);
        let recursive = self.returns.iter().any(|active| active.function == at);
        if function.kernel
            || function.class.is_some()
            || function.template.is_some()
            || function.leads_to_launch
            || recursive
            || self.returns.len() >= DEEPEST_CALLS
        {
            return None;
        }
        let (node, callee) = (function.node, self.host.source_in(function));
        let parameters = parameter_list(node).map(parts).unwrap_or_default();
        let none = matches!(parameters.as_slice(), [only] if text(*only, callee).trim() == "void");
        let parameters = if none { Vec::new() } else { parameters };
        if parameters.len() != arguments.len() {
            return None;
        }
        let mut bound: Vec<(String, Kept)> = Vec::new();
        for (parameter, argument) in parameters.iter().zip(arguments) {
            let declarator = parameter.field(Field::Declarator)?;
            let name = text(declared_name(declarator), callee)
                .trim_start_matches(['&', ' '])
                .to_owned();
            let reference = declarator.kind() == Kind::ReferenceDeclarator;
            if reference && let Some(kept) = self.kept(*argument) {
                bound.push((name, kept));
                continue;
            }
            let ty = self
                .host
                .declared_type(parameter.field(Field::Type), declarator, callee);
            let value = match self.kept_container(*argument) {
                Some(_) => return None,
                None => self.expression(*argument)?,
            };
            let what = match (Number::of(&ty), &ty, &value.what) {
                (Some(number), _, _) => What::Number(number),
                (None, Type::Pointer(element, _) | Type::Array(element, _), _) => {
                    What::Pointer((**element).clone())
                }
                _ => return None,
            };
            let kept = Operand {
                register: self.register(),
                what,
            };
            self.assign_register(&kept, &value)?;
            bound.push((name, Kept::Register(kept, None)));
        }
        let returned = self.host.declared_type(
            node.field(Field::Type),
            node.field(Field::Declarator)?,
            callee,
        );
        let to = match (&returned, node.field(Field::Type)) {
            (_, Some(ty)) => match text(ty, callee).trim() {
                "void" => None,
                _ => {
                    let source = callee;
                    let ty = self
                        .host
                        .lowered(&[ty], source, |lowering| lowering.host_type(ty, source))?;
                    let pointer = text(node.field(Field::Declarator)?, callee).starts_with('*');
                    let what = match (Number::of(&ty), pointer) {
                        (Some(number), false) => What::Number(number),
                        (_, true) => What::Pointer(ty),
                        _ => return None,
                    };
                    Some(Operand {
                        register: self.register(),
                        what,
                    })
                }
            },
            _ => return None,
        };
        if let Some(to) = &to {
            self.emit(Step::Unknown(to.register))?;
        }
        let outer = (self.source, self.first_scope);
        self.open_scope();
        for (name, kept) in bound {
            self.bind(&name, kept);
        }
        self.first_scope = self.scope_count() - 1;
        self.source = callee;
        self.returns.push(Returns {
            to: to.clone(),
            jumps: Vec::new(),
            function: at,
        });
        let body = node.field(Field::Body)?;
        let done = self.apart(|this| this.statement(body));
        let jumps = self.returns.pop().map(|active| active.jumps);
        self.lead_here(&jumps.unwrap_or_default());
        (self.source, self.first_scope) = outer;
        self.close_scope();
        done?;
        Some(to.unwrap_or_else(|| self.nothing()))
    }

    fn kept_container(&mut self, node: Node) -> Option<Kept> {
        if node.kind() != Kind::Identifier {
            return None;
        }
        match self.kept(node)? {
            kept @ Kept::Container(..) => Some(kept),
            _ => None,
        }
    }
}

/// A function of the C library on values of these kinds, and the kind that it works in.
fn function(name: &str, values: &[Operand]) -> Option<(Function, Number)> {
    let kinds: Vec<Number> = values
        .iter()
        .map(|value| match value.what {
            What::Number(number) => Some(number),
            _ => None,
        })
        .collect::<Option<_>>()?;
    let common = match kinds.as_slice() {
        [only] => *only,
        [a, b] => Number::of(&a.ty().common(&b.ty()))?,
        _ => return None,
    };
    let real = match common {
        Number::F32 => Number::F32,
        _ => Number::F64,
    };
    let one = |function: fn(f64) -> f64| Some((Function::Of(function), real));
    match (name, kinds.len()) {
        ("abs" | "labs" | "llabs", 1) => Some((Function::Absolute, common)),
        ("fabs" | "fabsf", 1) => Some((Function::Absolute, real)),
        ("min" | "fmin" | "fminf", 2) => Some((Function::Minimum, common)),
        ("max" | "fmax" | "fmaxf", 2) => Some((Function::Maximum, common)),
        ("pow" | "powf", 2) => Some((Function::Power, real)),
        ("sqrt" | "sqrtf", 1) => one(f64::sqrt),
        ("ceil" | "ceilf", 1) => one(f64::ceil),
        ("floor" | "floorf", 1) => one(f64::floor),
        ("round" | "roundf", 1) => one(f64::round),
        ("trunc" | "truncf", 1) => one(f64::trunc),
        ("exp" | "expf", 1) => one(f64::exp),
        ("log" | "logf", 1) => one(f64::ln),
        ("log2" | "log2f", 1) => one(f64::log2),
        ("log10" | "log10f", 1) => one(f64::log10),
        ("sin" | "sinf", 1) => one(f64::sin),
        ("cos" | "cosf", 1) => one(f64::cos),
        ("tan" | "tanf", 1) => one(f64::tan),
        ("atan" | "atanf", 1) => one(f64::atan),
        _ => None,
    }
}
