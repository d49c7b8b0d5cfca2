//! What a template parameter is taken for where no launch binds it.
//!
//! Something has to be assumed, and is said with the kernel. What the program itself shows comes first: a
//! specialisation of a template that the kernel asks with the parameter, a function or a functor of the right
//! shape. Otherwise a type is `int` where the kernel uses its values as only integers can be, else `float`, and a number 32.

use std::sync::Arc;

use warplens_syntax::{Field, Kind, Node, is_word_part};

use super::forms::{Parameter, innermost};
use super::integers::shows_integer;
use super::uses::Use;
use super::{Lowering, Source, parts, text_of};
use crate::definition::Definition;
use crate::namespaces::Name;
use crate::outline::function_declarator;
use crate::types::class_of;
use warplens_ir::AddressSpace;
use warplens_ir::AssumptionKind;
use warplens_ir::Bound;
use warplens_ir::Type;

/// The type that an unbound type parameter is taken for.
pub(super) const ASSUMED_TYPE: (&str, Type) = ("float", Type::FLOAT);
/// The type that one is taken for whose values the kernel uses as only integers can be.
pub(super) const ASSUMED_INTEGER: (&str, Type) = ("int", Type::INT);
/// The number that an unbound number is taken for.
pub(super) const ASSUMED_NUMBER: i64 = 32;
/// The number that is taken for one by which something is shifted, `1 << N`: its power of two is the same number.
const ASSUMED_SHIFT: i64 = 5;
/// A type of which only that it is called is known.
const ANY_FUNCTOR: &str = "any functor";

impl Lowering<'_> {
    /// No launch binds it: something has to be assumed, and said.
    pub(super) fn assumed_bound(
        &mut self,
        parameter: &Parameter,
        template: Node,
        kernel: Node,
        source: Source,
        given: &[(String, String)],
    ) -> Bound {
        let declared = template
            .field(Field::Parameters)
            .into_iter()
            .flat_map(parts)
            .find(|param| {
                let name = param.field(Field::Declarator).map_or(*param, innermost);
                text_of(name, source).ends_with(parameter.name.as_str())
            });
        let mut objects = Vec::new();
        if parameter.is_type {
            objects = objects_of(&parameter.name, kernel, source);
        }
        let uses: Vec<Use> = objects
            .iter()
            .filter_map(|object| self.use_of(object, kernel, source))
            .collect();
        let found = if parameter.is_type {
            self.functor(parameter, &objects, &uses, kernel, source)
                .or_else(|| self.class_with_members(parameter, kernel, source, given))
        } else {
            declared.and_then(|declared| {
                self.function_like(declared, source)
                    .or_else(|| any_function(declared))
            })
        };
        let found = found.or_else(|| self.specialised(parameter, kernel, source));
        if let Some((spelled, bound)) = found {
            self.assume(&parameter.name, &spelled, AssumptionKind::Template);
            return bound;
        }
        if parameter.is_type {
            if uses.contains(&Use::Pointer) {
                self.assume(&parameter.name, "float *", AssumptionKind::Template);
                let pointer = Type::Pointer(Arc::new(ASSUMED_TYPE.1), AddressSpace::Global);
                return Bound::Type(pointer);
            }
            let (name, ty) = if shows_integer(&parameter.name, kernel, source) {
                ASSUMED_INTEGER
            } else {
                ASSUMED_TYPE
            };
            self.assume(&parameter.name, name, AssumptionKind::Template);
            return Bound::Type(ty);
        }
        let flag = declared.is_some_and(|param| text_of(param, source).starts_with("bool"));
        let value = if flag {
            1
        } else if shifts(&parameter.name, text_of(kernel, source)) {
            ASSUMED_SHIFT
        } else {
            ASSUMED_NUMBER
        };
        let spelled = value.to_string();
        self.assume(&parameter.name, &spelled, AssumptionKind::Template);
        Bound::Value(value)
    }

    /// For a parameter that is a function: the first function that takes the same types.
    fn function_like(&mut self, declared: Node, source: Source) -> Option<(String, Bound)> {
        let declarator = declared.field(Field::Declarator)?;
        if declarator.kind() != Kind::FunctionDeclarator {
            // `using Load = void (*)(…)`: what it takes shows where it is called.
            let ty = declared.field(Field::Type)?;
            let ty = self.unevaluated(|lowering| lowering.base_type(ty, source));
            return super::function_types::points_to_any(&ty).then(|| {
                let said = "the first function that takes its arguments".to_owned();
                (said, Bound::Template(String::new()))
            });
        }
        let wanted = self.parameter_types(declarator, source)?;
        let unit = self.unit;
        for (name, definition) in unit.functions_in_order() {
            if self.takes(definition, &wanted) {
                let last = name.rsplit("::").next().unwrap_or(name).to_owned();
                return Some((said(&last), Bound::Template(last)));
            }
        }
        None
    }

    /// The first function that takes these arguments, for a parameter of which only that it is a function is
    /// known; listed as what is assumed of it from here on.
    pub(super) fn first_taking(
        &mut self,
        parameter: &str,
        arguments: &[warplens_ir::Expr],
    ) -> Option<String> {
        let unit = self.unit;
        let name = unit.functions_in_order().find_map(|(name, definition)| {
            let candidate = super::candidate::Candidate {
                definition: definition.clone(),
                bindings: Vec::new(),
                this: None,
            };
            let plain = definition
                .node(&[Kind::FunctionDefinition])
                .and_then(|function| function.parent())
                .is_some_and(|parent| parent.kind() != Kind::TemplateDeclaration);
            (plain && !name.contains("::") && self.takes_exactly(&candidate, arguments))
                .then(|| name.to_owned())
        })?;
        for assumption in &mut self.assumed {
            if assumption.name == parameter {
                assumption.value = said(&name);
            }
        }
        for (symbol, bound) in &mut self.frame().bindings {
            if symbol == parameter {
                *bound = Bound::Template(name.clone());
            }
        }
        Some(name)
    }

    fn takes(&mut self, definition: &Definition, wanted: &[Type]) -> bool {
        let Some(function) = definition.node(&[Kind::FunctionDefinition]) else {
            return false;
        };
        let plain = function
            .parent()
            .is_none_or(|parent| parent.kind() != Kind::TemplateDeclaration);
        let source = Source::of(definition);
        plain
            && function_declarator(function)
                .and_then(|declarator| self.parameter_types(declarator, source))
                .is_some_and(|types| types == wanted)
    }

    fn parameter_types(&mut self, declarator: Node, source: Source) -> Option<Vec<Type>> {
        let list = declarator.field(Field::Parameters)?;
        let params: Vec<Node> = parts(list)
            .into_iter()
            .filter(|param| param.kind().is_parameter_declaration())
            .collect();
        Some(
            params
                .into_iter()
                .map(|param| self.unevaluated(|lowering| lowering.parameter_type(param, source)))
                .collect(),
        )
    }

    /// For a type that the kernel calls objects of: the first class that can be called so.
    fn functor(
        &mut self,
        parameter: &Parameter,
        objects: &[&str],
        uses: &[Use],
        kernel: Node,
        source: Source,
    ) -> Option<(String, Bound)> {
        // `Op()(a, b)`.
        let body = kernel.field(Field::Body)?;
        let called = called_with(body, source, |callee| {
            callee
                .strip_prefix(parameter.name.as_str())
                .is_some_and(|rest| matches!(rest.trim(), "()" | "{}"))
        });
        let count = match called.map(Use::Called).or(uses.first().copied()) {
            Some(Use::Called(count)) => count,
            Some(Use::Pointer) => return None,
            None => {
                let handed = is_handed_on(&parameter.name, objects, kernel, source);
                return handed.then(any_functor);
            }
        };
        let unit = self.unit;
        for (name, ty) in unit.classes_in_order() {
            let Type::Struct(structure) = ty else {
                continue;
            };
            let Some(class) = class_of(structure) else {
                continue;
            };
            let fits = self.methods(&class, "operator()").iter().any(|method| {
                let definition = &method.definition;
                let Some(function) = definition.node(&[Kind::FunctionDefinition]) else {
                    return false;
                };
                let list = function_declarator(function)
                    .and_then(|declarator| declarator.field(Field::Parameters));
                is_of_device(function, Source::of(definition))
                    && !super::forms::returns_reference(function)
                    && !self.gives_object(method, function)
                    && list.is_some_and(|list| parts(list).len() == count)
            });
            if fits {
                return Some((said(name), Bound::Type(ty.clone())));
            }
        }
        Some(any_functor())
    }

    /// True for a function that gives an object of a class: what is computed with numbers is none of it.
    fn gives_object(&mut self, method: &super::classes::Method, function: Node) -> bool {
        let Some(given) = function.field(Field::Type) else {
            return false;
        };
        let source = Source::of(&method.definition);
        let ty = self.under(method.bindings.clone(), None, |lowering| {
            lowering.unevaluated(|lowering| lowering.base_type(given, source))
        });
        matches!(ty, Type::Struct(_))
    }

    /// For a parameter that the kernel asks a template with: what the template's first specialisation is for,
    /// where it has no instance for what would be assumed otherwise.
    fn specialised(
        &mut self,
        parameter: &Parameter,
        kernel: Node,
        source: Source,
    ) -> Option<(String, Bound)> {
        let mut asked: Vec<(&str, usize)> = Vec::new();
        let mut open = vec![kernel];
        while let Some(node) = open.pop() {
            if node.kind() == Kind::TemplateType
                && let (Some(name), Some(list)) =
                    (node.field(Field::Name), node.field(Field::Arguments))
                && let Some(at) = parts(list)
                    .into_iter()
                    .position(|argument| text_of(argument, source) == parameter.name)
            {
                let name = text_of(name, source);
                let name = name.rsplit("::").next().unwrap_or(name);
                // What an iterator is, its uses tell.
                if name != "iterator_traits" && !asked.contains(&(name, at)) {
                    asked.push((name, at));
                }
            }
            open.extend(node.named_children());
        }
        let plain = if parameter.is_type {
            Bound::Type(ASSUMED_TYPE.1)
        } else {
            Bound::Value(ASSUMED_NUMBER)
        };
        asked
            .into_iter()
            .rev()
            .find_map(|(name, at)| self.first_specialisation(name, at, &plain))
    }

    fn first_specialisation(
        &mut self,
        name: &str,
        at: usize,
        plain: &Bound,
    ) -> Option<(String, Bound)> {
        let mut first = None;
        // The latest comes first.
        for candidate in self.unit.templates(Name::new(name, "")) {
            let source = Source::of(&candidate);
            let Some(list) = candidate
                .node(&[Kind::TemplateDeclaration])
                .and_then(super::forms::templated)
                .filter(|(_, name)| name.kind() == Kind::TemplateType)
                .and_then(|(_, name)| name.field(Field::Arguments))
            else {
                continue;
            };
            let patterns = parts(list);
            let Some(pattern) = patterns.get(at) else {
                continue;
            };
            let Some(bound) = self.template_argument(*pattern, source) else {
                continue;
            };
            match &bound {
                Bound::Type(ty) if super::instances::is_open(ty) => continue,
                Bound::Template(_) | Bound::Pack(_) => continue,
                _ => {}
            }
            if bound == *plain {
                return None;
            }
            first = Some((text_of(*pattern, source).to_owned(), bound));
        }
        let (text, bound) = first?;
        Some((said(&text), bound))
    }

    /// A function of the compiler or of a library, called with plain values only, of which nothing more is
    /// known: one operation on its arguments, and said.
    pub(super) fn unread_arithmetic(
        &mut self,
        name: &str,
        full: &str,
        arguments: &[warplens_ir::Expr],
        site: warplens_ir::Site,
    ) -> Option<warplens_ir::Expr> {
        let outermost = full.trim_start_matches(':').split_once("::");
        if !name.starts_with("__")
            && !outermost.is_some_and(|(space, _)| LIBRARIES.contains(&space.trim()))
        {
            return None;
        }
        let call = self.unknown_functor(ANY_FUNCTOR, arguments, site)?;
        if self.unevaluated == 0 {
            let value = "not read; taken for one operation on its arguments";
            self.assume(full, value, AssumptionKind::Unread);
        }
        Some(call)
    }

    /// A call of something of which only that it is called is known. It may change what it is given by
    /// reference, so that it must be called for its value.
    pub(super) fn unknown_functor(
        &mut self,
        of: &str,
        arguments: &[warplens_ir::Expr],
        site: warplens_ir::Site,
    ) -> Option<warplens_ir::Expr> {
        let plain = |argument: &&warplens_ir::Expr| {
            matches!(
                argument.ty,
                Type::Int { .. } | Type::Float { .. } | Type::Vector(..)
            )
        };
        // Parameters of the function, given as an object of their own: `f(x, {})`, `f(x, p)`.
        let object = |argument: &warplens_ir::Expr| {
            matches!(argument.ty, Type::Struct(_))
                || matches!(&argument.kind, warplens_ir::ExprKind::List(parts) if parts.is_empty())
        };
        let all = |argument: &warplens_ir::Expr| plain(&argument) || object(argument);
        if of != ANY_FUNCTOR || !arguments.iter().all(all) {
            return None;
        }
        let mut numbers = arguments.iter().filter(plain);
        let first = numbers.next()?.ty.clone();
        let ty = numbers.fold(first, |ty, next| ty.common(&next.ty));
        let class = if ty.is_int() {
            warplens_ir::MathClass::Int(1)
        } else {
            warplens_ir::MathClass::Float(1)
        };
        Some(warplens_ir::Expr {
            kind: warplens_ir::ExprKind::Call(
                warplens_ir::Function::Math(class, "".into()),
                arguments.to_vec(),
            ),
            ty,
            site,
        })
    }
}

/// For a parameter that is a function which nothing of the right shape defines.
fn any_function(declared: Node) -> Option<(String, Bound)> {
    let of = declared.field(Field::Declarator)?;
    (of.kind() == Kind::FunctionDeclarator).then(any_functor)
}

/// Something of which only that it is called is known.
fn any_functor() -> (String, Bound) {
    let said = "a function of its arguments, its cost not known".to_owned();
    (said, Bound::Type(Type::Library(ANY_FUNCTOR.into())))
}

/// True for a function that a kernel can call.
fn is_of_device(function: Node, source: Source) -> bool {
    let end = function.field(Field::Body).map(|body| body.start_byte());
    let head = function.start_byte()..end.unwrap_or(function.end_byte());
    let head = &source.parsed.text[head];
    ["__device__", "constexpr", "consteval"]
        .iter()
        .any(|word| warplens_syntax::has_word(head, word))
}

/// True for a type that a kernel uses for one parameter alone, of which it only hands the object to functions: what is added or
/// stored is of a type that the kernel names again.
fn is_handed_on(parameter: &str, objects: &[&str], kernel: Node, source: Source) -> bool {
    let [object] = objects else {
        return false;
    };
    let mut open = vec![kernel];
    let (mut types, mut handed) = (0, 0);
    while let Some(node) = open.pop() {
        match node.kind() {
            Kind::TypeIdentifier if text_of(node, source) == parameter => types += 1,
            Kind::Identifier if text_of(node, source) == *object => {
                let around = node.parent().map(|around| around.kind());
                match around {
                    Some(Kind::ArgumentList) => handed += 1,
                    Some(Kind::ParameterDeclaration) => {}
                    _ => return false,
                }
            }
            _ => open.extend(node.named_children()),
        }
    }
    types == 1 && handed > 0
}

/// True where a text shifts something by what has this name.
fn shifts(name: &str, text: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let whole = !text[at + name.len()..].starts_with(is_word_part);
        // `1 << (DIMS - 1)` as well.
        let before = text[..at].trim_end().trim_end_matches('(').trim_end();
        // A kernel that launches others: `<<<` is no shift.
        whole && before.ends_with("<<") && !before.ends_with("<<<")
    })
}

/// The parameters of a kernel that are of that type by value.
fn objects_of<'t>(parameter: &str, kernel: Node<'t>, source: Source<'t>) -> Vec<&'t str> {
    let list = function_declarator(kernel).and_then(|of| of.field(Field::Parameters));
    list.map(parts)
        .unwrap_or_default()
        .into_iter()
        .filter(|param| {
            let ty = param.field(Field::Type);
            ty.is_some_and(|ty| text_of(ty, source) == parameter)
        })
        .filter_map(|param| param.field(Field::Declarator))
        .filter(|declarator| {
            !matches!(
                declarator.kind(),
                Kind::PointerDeclarator | Kind::ArrayDeclarator
            )
        })
        .map(|declarator| text_of(innermost(declarator), source))
        .collect()
}

/// Namespaces of libraries whose device functions on plain values are arithmetic.
const LIBRARIES: [&str; 10] = [
    "std", "thrust", "cuda", "cub", "hipcub", "rocprim", "at", "c10", "torch", "sycl",
];

/// A choice among several as it is listed.
pub(super) fn said(choice: &str) -> String {
    format!("{choice} (the first that fits)")
}

/// With how many arguments something is called for its value.
fn called_with(body: Node, source: Source, is_callee: impl Fn(&str) -> bool) -> Option<usize> {
    let mut open = vec![body];
    while let Some(node) = open.pop() {
        if node.kind() == Kind::CallExpression
            && let (Some(function), Some(list)) =
                (node.field(Field::Function), node.field(Field::Arguments))
            && is_callee(text_of(function, source))
        {
            return Some(parts(list).len());
        }
        open.extend(node.named_children());
    }
    None
}
