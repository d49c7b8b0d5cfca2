//! Device functions in place of their calls.

use std::sync::Arc;

use warplens_syntax::{Field, Kind, Node, words_in};

use super::blocks::decayed;
use super::candidate::{Candidate, PlainFunction, affinity};
use super::classes::Method;
use super::concepts::Constraints;
use super::construct::after;
use super::forms::Parameter;
use super::forms::space_of;
use super::forms::{parameter_nodes, plain_parameters, returns_reference, writes};
use super::instances::is_open;
use super::library::NO_TYPE;
use super::shapes::all_numbers;
use super::shapes::is_place;
use super::shapes::is_pure;
use super::shapes::may_return;
use super::split::{address_of, deref};
use super::traits::Wanted;
use super::{Call, DEEPEST_CALLS, Frame, Lowering, Named, Result, Scope, Source, parts, text_of};
use crate::definition::Definition;
use crate::outline::function_declarator;
use crate::types::{Callable, Class, class_of};
use warplens_ir::Reason;
use warplens_ir::{AddressSpace, Site, Type};
use warplens_ir::{Bindings, Bound};
use warplens_ir::{Expr, ExprKind, Real, Runs, StaysCall, Stmt, StmtKind, Storage};

/// What a template parameter that was not deduced takes from how well a function fits.
const UNTOLD: i32 = 16;
/// Instances of one lambda within each other: loops that templates unroll within each other.
const NESTED_LAMBDAS: usize = 6;

/// A function that takes the arguments of a call: how well, its template parameters, and all arguments where a declaration gives some.
type Viable = (i32, Constraints, Bindings, Candidate, Option<Vec<Expr>>);

impl Lowering<'_> {
    /// The call as what the best of the candidates does; `None` where none takes these arguments.
    pub(super) fn call_best(
        &mut self,
        candidates: Vec<Candidate>,
        explicit: &[Bound],
        arguments: &[Expr],
        site: Site,
    ) -> Option<Expr> {
        if let ([only], []) = (candidates.as_slice(), explicit)
            && !all_numbers(arguments)
            && let Some(applied) = self.known_routine(only, arguments, site)
        {
            return Some(applied);
        }
        let several = candidates.len() > 1;
        let mut viable: Vec<Viable> = Vec::new();
        for candidate in candidates {
            let completed = self.completed(&candidate, arguments);
            let given = completed.as_deref().unwrap_or(arguments);
            let Some((mut score, bindings)) = self.fits(&candidate, explicit, given, several)
            else {
                continue;
            };
            let constraints = if several {
                self.constraints(&candidate, &bindings)
            } else {
                Constraints::None
            };
            match constraints {
                Constraints::Fail => continue,
                // Of two that fit alike one that is constrained.
                Constraints::Hold => score += 1,
                Constraints::None | Constraints::Untold => {}
            }
            viable.push((score, constraints, bindings, candidate, completed));
        }
        let best = viable.iter().map(|(score, ..)| *score).max()?;
        viable.retain(|(score, ..)| *score > best - UNTOLD);
        let is = |of: Constraints| move |one: &&Viable| one.1 == of;
        let untold = viable.iter().filter(is(Constraints::Untold)).count();
        viable.retain(|(score, ..)| *score == best || untold > 0);
        // Which of two constraints asks for more is not told either.
        let held = viable.iter().filter(is(Constraints::Hold)).count();
        if viable.len() > 1 && (untold > 0 || held > 1) {
            return None;
        }
        // Of others that fit alike the first.
        let first = viable.iter().position(|(score, ..)| *score == best)?;
        let (.., bindings, candidate, completed) = viable.swap_remove(first);
        let given = completed.as_deref().unwrap_or(arguments);
        Some(self.inline(&candidate, bindings, given, site))
    }

    /// How well a function takes the arguments, and what its template parameters are bound to then.
    fn fits(
        &mut self,
        candidate: &Candidate,
        explicit: &[Bound],
        arguments: &[Expr],
        several: bool,
    ) -> Option<(i32, Bindings)> {
        if several
            && explicit.is_empty()
            && let Some(plain) = self.plain_function(candidate)
        {
            return Some((plain.fits(arguments)?, Bindings::new()));
        }
        let definition = candidate.definition.clone();
        let function = definition.node(&[Kind::FunctionDefinition])?;
        let source = Source::of(&definition);
        function.field(Field::Body)?;
        let params = parameter_nodes(function, source)?;
        let least = params
            .iter()
            .filter(|param| param.kind() == Kind::ParameterDeclaration)
            .count();
        let pack = params
            .iter()
            .any(|param| param.kind() == Kind::VariadicParameterDeclaration);
        if arguments.len() < least || (arguments.len() > params.len() && !pack) {
            return None;
        }
        let template = function
            .parent()
            .filter(|parent| parent.kind() == Kind::TemplateDeclaration);
        let own: Vec<Parameter> = template
            .map(|template| self.parameters(template, source))
            .unwrap_or_default();
        let mut bindings = candidate.bindings.clone();
        // Of two that fit alike one without a pack is the more specialised (C++20 13.7.7.3 [temp.func.order]).
        let mut score = i32::from(template.is_none()) - i32::from(pack);
        // A specialisation, `next<float>`, is for these very arguments.
        if !explicit.is_empty()
            && let Some(list) = specialised(function)
        {
            let own = self.template_arguments(list, source);
            if own.get(..explicit.len()) != Some(explicit) {
                return None;
            }
            score += 16;
        }
        if !explicit.is_empty() && template.is_none() {
            return None;
        }
        if explicit.is_empty()
            && specialised(function).is_some()
            && !self.is_for_these(&params, arguments, source)
        {
            return None;
        }
        for (at, parameter) in own.iter().enumerate() {
            if parameter.pack {
                if explicit.len() > at {
                    bindings.push((parameter.name.clone(), Bound::Pack(explicit[at..].to_vec())));
                }
                break;
            }
            if let Some(bound) = explicit.get(at) {
                // A type where a number is wanted is another function.
                if matches!(bound, Bound::Type(_)) != parameter.is_type
                    && !matches!(bound, Bound::Template(_))
                    && several
                {
                    return None;
                }
                bindings.push((parameter.name.clone(), bound.clone()));
            }
        }
        for (param, argument) in params.iter().zip(arguments) {
            if !own.is_empty() && param.kind() != Kind::VariadicParameterDeclaration {
                let mut ty = argument.ty.clone();
                // By value an array is a pointer.
                if let Type::Array(element, _) = &ty
                    && !text_of(*param, source).contains('&')
                {
                    ty = Type::Pointer(Arc::clone(element), AddressSpace::Global);
                }
                self.deduce(*param, &ty, &own, source, &mut bindings);
            }
        }
        // A pack takes what is left.
        if let Some(parameter) = own.iter().find(|parameter| parameter.pack)
            && !bindings.iter().any(|(name, _)| *name == parameter.name)
        {
            let variadic = params.iter().position(|param| {
                param.kind() == Kind::VariadicParameterDeclaration
                    && words_in(text_of(*param, source)).any(|word| word == parameter.name)
            });
            // It is used where an argument of another shape was given.
            let named =
                |param: &Node| words_in(text_of(*param, source)).any(|word| word == parameter.name);
            if variadic.is_none() && params.iter().any(named) {
                return None;
            }
            let mut rest = Vec::new();
            if let Some(at) = variadic {
                for argument in arguments.get(at..).unwrap_or(&[]) {
                    let mut element: Bindings = Vec::new();
                    self.deduce(
                        params[at],
                        &decayed(&argument.ty),
                        &own,
                        source,
                        &mut element,
                    );
                    let bound = element
                        .into_iter()
                        .find(|(name, _)| *name == parameter.name)
                        .map_or(Bound::Type(argument.ty.clone()), |(_, bound)| bound);
                    rest.push(bound);
                }
            }
            bindings.push((parameter.name.clone(), Bound::Pack(rest)));
        }
        for parameter in &own {
            if !bindings.iter().any(|(name, _)| *name == parameter.name)
                && let Some(bound) =
                    self.default(parameter, &bindings, candidate.this.clone(), source)
            {
                bindings.push((parameter.name.clone(), bound));
            }
        }
        if several {
            // One whose parameters nothing tells is not viable ([temp.deduct]).
            let told = |of: &&Parameter| bindings.iter().any(|(name, _)| *name == of.name);
            let untold = own.iter().filter(|of| !of.pack && !told(of)).count();
            score -= UNTOLD * i32::try_from(untold).unwrap_or(1);
            score += self.under(bindings.clone(), candidate.this.clone(), |lowering| {
                if template.is_some_and(|of| lowering.is_disabled(function, of, source)) {
                    return None;
                }
                let given = params.iter().zip(arguments);
                let each = given.map(|(param, argument)| {
                    let declared =
                        lowering.unevaluated(|lowering| lowering.parameter_type(*param, source));
                    affinity(&declared, &argument.ty)
                });
                Some(each.sum::<i32>())
            })?;
        }
        Some((score, bindings))
    }

    /// Whether a specialisation's parameters are of types that these arguments may have: one of a type that was not read is for
    /// that type alone.
    fn is_for_these(&mut self, params: &[Node], arguments: &[Expr], source: Source) -> bool {
        self.under(Vec::new(), None, |lowering| {
            params.iter().zip(arguments).all(|(param, argument)| {
                let declared =
                    lowering.unevaluated(|lowering| lowering.parameter_type(*param, source));
                !declared.is_unread() || argument.ty.is_unread()
            })
        })
    }

    /// What is known of a function once for all its calls; nothing of one with template parameters.
    fn plain_function(&mut self, candidate: &Candidate) -> Option<Arc<PlainFunction>> {
        // While a type or a member is looked up another lookup may find less.
        let may_find_less = self.types_open > 0 || !self.looking.is_empty();
        if may_find_less || !candidate.bindings.is_empty() || candidate.this.is_some() {
            return None;
        }
        let definition = &candidate.definition;
        let key = (Arc::as_ptr(&definition.text).addr(), definition.range.end);
        if let Some((_, known)) = self.plain_functions.get(&key) {
            return known.clone();
        }
        let made = self.read_plain(definition).map(Arc::new);
        let kept = (Arc::clone(&definition.text), made.clone());
        self.plain_functions.insert(key, kept);
        made
    }

    fn read_plain(&mut self, definition: &Definition) -> Option<PlainFunction> {
        let function = definition.node(&[Kind::FunctionDefinition])?;
        let source = Source::of(definition);
        function.field(Field::Body)?;
        let params = parameter_nodes(function, source)?;
        let around = function.parent();
        if around.is_some_and(|around| around.kind() == Kind::TemplateDeclaration) {
            return None;
        }
        let types = self.under(Vec::new(), None, |lowering| {
            lowering.unevaluated(|lowering| {
                let types = params.iter();
                let types = types.map(|param| lowering.parameter_type(*param, source));
                types.collect()
            })
        });
        Some(PlainFunction::new(&params, types))
    }

    /// True where a function template asks for a type that is none with these arguments, `std::enable_if_t<false>`, or for what
    /// does not hold.
    fn is_disabled(&mut self, function: Node, template: Node, source: Source) -> bool {
        let parameters = template.field(Field::Parameters).map(parts);
        let asked = parameters.into_iter().flatten().filter_map(|parameter| {
            let is_type = parameter.kind().is_type_parameter();
            parameter.field(if is_type {
                Field::DefaultType
            } else {
                Field::Type
            })
        });
        let asked: Vec<Node> = asked.chain(function.field(Field::Type)).collect();
        let computed = asked.into_iter().filter(|node| {
            matches!(
                node.kind(),
                Kind::TemplateType
                    | Kind::QualifiedIdentifier
                    | Kind::DependentType
                    | Kind::TypeDescriptor
            )
        });
        let is_none = |ty: Type| matches!(ty, Type::Unknown(name) if name == NO_TYPE);
        computed
            .into_iter()
            .any(|node| is_none(self.unevaluated(|lowering| lowering.base_type(node, source))))
    }

    pub(super) fn parameter_type(&mut self, param: Node, source: Source) -> Type {
        let space = space_of(param, source).unwrap_or(self.default_space());
        let Some(base) = param.field(Field::Type) else {
            return Type::Unknown(String::new());
        };
        let base = self.base_type(base, source);
        match param.field(Field::Declarator) {
            Some(declarator) => self.declarator(declarator, base, space, source).ty,
            None => base,
        }
    }

    fn inline(
        &mut self,
        candidate: &Candidate,
        bindings: Bindings,
        arguments: &[Expr],
        site: Site,
    ) -> Expr {
        let definition = candidate.definition.clone();
        self.asks_strides |= crate::standard::says_a_stride(&definition);
        let value = definition
            .node(&[Kind::FunctionDefinition])
            .and_then(|of| self.constant_call(candidate, of, &bindings, arguments, site));
        value.unwrap_or_else(|| self.in_place(candidate, bindings, arguments, site))
    }

    /// A function's body in place of its call.
    pub(super) fn in_place(
        &mut self,
        candidate: &Candidate,
        bindings: Bindings,
        arguments: &[Expr],
        site: Site,
    ) -> Expr {
        let definition = candidate.definition.clone();
        let Some(function) = definition.node(&[Kind::FunctionDefinition]) else {
            return self.opaque(site, Reason::Recursive, Vec::new());
        };
        let call = Call {
            site,
            within: definition.within,
        };
        let source = definition.source(call);
        let again = self
            .frames
            .iter()
            .rposition(|frame| frame.function == definition.hash && frame.bindings == bindings)
            // A function that is worked out for numbers may call itself for others.
            .filter(|_| self.unevaluated == 0 || arguments.is_empty() || !all_numbers(arguments));
        if again.is_some() || self.frames.len() as u32 > DEEPEST_CALLS {
            if let Some(frame) = again
                && let Some(call) =
                    self.called_again(frame, candidate, function, source, arguments, site)
            {
                return call;
            }
            let parts = arguments.to_vec();
            return self.opaque(site, Reason::Recursive, parts);
        }
        self.note_noinline(&definition, arguments, site);
        if bindings.is_empty()
            && candidate.this.is_none()
            && let Some(applied) = self.applied(&definition, function, arguments, site)
        {
            return applied;
        }
        let frame = Frame {
            scopes: vec![Scope::new()],
            bindings,
            this: candidate.this.clone(),
            result: Result::None,
            function: definition.hash,
        };
        let Some(params) = parameter_nodes(function, source) else {
            return self.opaque(site, Reason::Recursive, Vec::new());
        };
        let body = function.field(Field::Body);
        let initializers = super::child_of_kind(function, Kind::FieldInitializerList);
        let returned = function.field(Field::Type);
        self.body_in_place(
            frame,
            &params,
            body,
            initializers,
            returned,
            function,
            source,
            arguments,
            site,
        )
    }

    /// What the first conversion operator of an object's class makes of it that makes what is wanted.
    pub(super) fn conversion(
        &mut self,
        class: &Arc<crate::types::Class>,
        object: &Expr,
        wanted: Wanted,
        site: Site,
    ) -> Option<Expr> {
        for method in self.conversions(class) {
            let definition = method.definition.clone();
            let Some(function) = definition.node(&[Kind::FunctionDefinition]) else {
                continue;
            };
            let Some(cast) = super::child_of_kind(function, Kind::OperatorCast) else {
                continue;
            };
            let pointer = super::child_of_kind(cast, Kind::AbstractPointerDeclarator).is_some();
            if !wanted.takes(pointer) {
                continue;
            }
            // `explicit operator bool` is asked for by name.
            if super::child_of_kind(function, Kind::ExplicitFunctionSpecifier).is_some() {
                continue;
            }
            let again = self.frames.iter().any(|frame| {
                frame.function == definition.hash && frame.bindings == method.bindings
            });
            if again || self.frames.len() as u32 > DEEPEST_CALLS {
                return None;
            }
            let mut before = Vec::new();
            let this = if is_place(object) {
                self.frozen(object.clone(), &mut before)
            } else {
                let id = self.temporary("object", object.ty.clone(), site);
                self.assign_to(id, object.clone(), site, &mut before);
                self.var(id, site)
            };
            let call = Call {
                site,
                within: definition.within,
            };
            let frame = Frame {
                scopes: vec![Scope::new()],
                bindings: method.bindings,
                this: Some(this),
                result: Result::None,
                function: definition.hash,
            };
            let value = self.body_in_place(
                frame,
                &[],
                function.field(Field::Body),
                None,
                cast.field(Field::Type),
                function,
                definition.source(call),
                &[],
                site,
            );
            if let ExprKind::List(parts) = &object.kind
                && parts.is_empty()
                && let Some(number) = self.worked_out(&value)
            {
                return Some(number);
            }
            return Some(after(before, value));
        }
        None
    }

    /// A lambda in place of its call.
    pub(super) fn call_lambda(
        &mut self,
        callee: &Arc<Callable>,
        explicit: &[Bound],
        arguments: &[Expr],
        site: Site,
    ) -> Expr {
        let callable = Arc::clone(callee);
        let definition = callable.definition.clone();
        let Some(lambda) = definition.node(&[Kind::LambdaExpression, Kind::BlockLiteral]) else {
            return self.opaque(site, Reason::Lambda, arguments.to_vec());
        };
        let call = Call {
            site,
            within: definition.within,
        };
        let source = definition.source(call);
        let params = if lambda.kind() == Kind::BlockLiteral {
            super::forms::block_parameters(lambda, source)
        } else {
            lambda
                .field(Field::Declarator)
                .and_then(|declarator| declarator.field(Field::Parameters))
                .map(|list| plain_parameters(list, source))
                .unwrap_or_default()
        };
        let mut scopes = callable.scopes.clone();
        scopes.push(Scope::new());
        let mut bindings = callable.bindings.clone();
        // `[&]<size_t... I>(std::index_sequence<I...>) { … }`.
        if lambda.field(Field::TemplateParameters).is_some() {
            let own = super::forms::parameters_of(lambda, Field::TemplateParameters, source);
            let given = own.iter().zip(explicit).filter(|(of, _)| !of.pack);
            let mut deduced: Bindings = given
                .map(|(of, bound)| (of.name.clone(), bound.clone()))
                .collect();
            for (param, argument) in params.iter().zip(arguments) {
                self.deduce(*param, &decayed(&argument.ty), &own, source, &mut deduced);
            }
            bindings.extend(deduced);
        }
        // One of another instance of the function around it is another one.
        let same = self.frames.iter();
        let same = same.filter(|frame| frame.function == definition.hash);
        let is_again = same.clone().any(|frame| frame.bindings == bindings);
        if is_again || same.count() > NESTED_LAMBDAS || self.frames.len() as u32 > DEEPEST_CALLS {
            return self.opaque(site, Reason::Recursive, Vec::new());
        }
        let frame = Frame {
            scopes,
            bindings,
            this: callable.this.clone(),
            result: Result::None,
            function: callee.definition.hash,
        };
        let body = lambda.field(Field::Body);
        self.body_in_place(
            frame, &params, body, None, None, lambda, source, arguments, site,
        )
    }

    #[allow(clippy::too_many_arguments, reason = "all of it is the call")]
    pub(super) fn body_in_place(
        &mut self,
        frame: Frame,
        params: &[Node],
        body: Option<Node>,
        initializers: Option<Node>,
        returned: Option<Node>,
        function: Node,
        source: Source,
        arguments: &[Expr],
        site: Site,
    ) -> Expr {
        let Some(body) = body else {
            return self.opaque(site, Reason::UnreadFunction, arguments.to_vec());
        };
        self.has_layouts |= self.is_of_layouts(body, source);
        if self.has_layouts {
            return self.opaque(site, Reason::Layouts, Vec::new());
        }
        let recursive = super::forms::calls_itself(function, source);
        if recursive {
            self.looped.push((self.frames.len(), false));
        }
        self.frames.push(frame);
        self.depth += 1;
        let mut statements = Vec::new();
        let returns_reference = returns_reference(function);
        let only = only_return(body);
        // `T &at(int i) { return data[i]; }` is the place it names.
        let by_name = returns_reference && only.is_some() && !recursive;
        self.bind_parameters_to(params, arguments, by_name, source, &mut statements);
        if by_name
            && statements.is_empty()
            && let Some(value) = only
        {
            let value = self.expr(value, source);
            if is_place(&value) || matches!(value.ty, Type::Library(_) | Type::Callable(_)) {
                self.depth -= 1;
                self.frames.pop();
                return value;
            }
        }
        let ty = match returned {
            Some(ty) => {
                let mut base = self.base_type(ty, source);
                let mut auto = matches!(&base, Type::Unknown(name) if name == "auto");
                // `auto f() -> T`.
                if auto && let Some(trailing) = super::forms::trailing_type(function) {
                    let ty = self.unevaluated(|lowering| lowering.base_type(trailing, source));
                    if !ty.is_unread() && !matches!(ty, Type::Unknown(_)) {
                        (base, auto) = (ty, false);
                    }
                }
                match function.field(Field::Declarator) {
                    // `auto *f()`: the pointer that it returns.
                    _ if auto => base,
                    Some(outer)
                        if outer.kind() == Kind::PointerDeclarator
                            || outer.kind() == Kind::OperatorCast
                                && super::child_of_kind(outer, Kind::AbstractPointerDeclarator)
                                    .is_some() =>
                    {
                        let space = space_of(function, source).unwrap_or(self.default_space());
                        Type::Pointer(Arc::new(base), space)
                    }
                    _ => base,
                }
            }
            None => Type::Unknown("auto".to_owned()),
        };
        let open = matches!(&ty, Type::Unknown(name) if name == "auto")
            || matches!(ty, Type::Callable(_) | Type::Library(_));
        let constructor = returned.is_none() && function.kind() == Kind::FunctionDefinition;
        self.frame().result = if ty == Type::Void || constructor {
            Result::None
        } else if returns_reference && !open {
            let pointer = Type::Pointer(Arc::new(ty.clone()), AddressSpace::Global);
            let id = self.fresh("reference", pointer, Storage::Local, site);
            Result::Var(id)
        } else if open {
            Result::Open
        } else {
            let id = self.temporary("result", ty.clone(), site);
            Result::Var(id)
        };
        if constructor {
            self.members_of_constructor(initializers, function, source, &mut statements);
        }
        if let Some(list) = initializers {
            self.field_initializers(list, source, &mut statements);
        }
        let mut named = None;
        let mut inner = if returns_reference && !open {
            let (inner, place) = self.reference_body(body, source);
            named = place;
            inner
        } else {
            self.block(body, source)
        };
        structure_returns(&mut inner);
        drop_last_return(&mut inner);
        if recursive && self.looped.pop().is_some_and(|(_, again)| again) {
            let declared = function_declarator(function)
                .and_then(|declarator| declarator.field(Field::Declarator));
            let name = declared.map_or("", |name| super::text_of(name, source));
            self.note_call(name, StaysCall::Recursive, arguments, site);
            inner = super::construct::repeated(inner, site);
        }
        statements.append(&mut inner);
        self.depth -= 1;
        let frame = self.frames.pop().expect("pushed above");
        let (result, ty) = match frame.result {
            Result::Var(id) => (Some(id), self.vars[id.0 as usize].ty.clone()),
            Result::Alias(value) => {
                if statements.is_empty()
                    || statements
                        .iter()
                        .all(|s| matches!(s.kind, StmtKind::Return(None)))
                {
                    return Expr { site, ..*value };
                }
                (None, value.ty.clone())
            }
            _ => (None, Type::Void),
        };
        // `return *this;`: the object itself.
        if let Some((object, ty)) = named {
            return Expr {
                kind: ExprKind::Inline(statements, Some(object)),
                ty,
                site,
            };
        }
        let inlined = Expr {
            kind: ExprKind::Inline(statements, result),
            ty,
            site,
        };
        if returns_reference && !open && result.is_some() {
            return deref(inlined, site);
        }
        inlined
    }

    /// A body whose `return` gives the address of what it names; where it ends by the name of an object, and only there, that object.
    fn reference_body(
        &mut self,
        body: Node,
        source: Source,
    ) -> (Vec<Stmt>, Option<(warplens_ir::VarId, Type)>) {
        let Result::Var(result) = self.current().result else {
            return (self.block(body, source), None);
        };
        if let Some((last, value)) = last_return(body) {
            self.frame().scopes.push(Scope::new());
            let mut statements = Vec::new();
            let all = parts(body);
            self.statements(&all[..all.len() - 1], source, &mut statements);
            let place = self.expr(value, source);
            if let ExprKind::Var(id) = place.kind {
                self.frame().scopes.pop();
                return (statements, Some((id, place.ty)));
            }
            let site = self.site(last, source);
            self.assign_to(result, place, site, &mut statements);
            self.frame().scopes.pop();
            to_addresses(&mut statements, result);
            return (statements, None);
        }
        let mut statements = self.block(body, source);
        to_addresses(&mut statements, result);
        (statements, None)
    }

    /// Declares parameters and gives them their arguments.
    fn bind_parameters_to(
        &mut self,
        params: &[Node],
        arguments: &[Expr],
        by_name: bool,
        source: Source,
        out: &mut Vec<Stmt>,
    ) {
        for (at, &param) in params.iter().enumerate() {
            if param.kind() == Kind::VariadicParameterDeclaration {
                let rest = arguments.get(at..).unwrap_or(&[]);
                self.bind_pack_to(param, rest, by_name, source, out);
                break;
            }
            let argument = match arguments.get(at) {
                Some(argument) => Some(argument.clone()),
                None => param
                    .field(Field::DefaultValue)
                    .map(|default| self.expr(default, source)),
            };
            self.bind_parameter_to(param, argument, by_name, source, out);
        }
    }

    /// `Ts... args`: each element is a parameter of its own.
    fn bind_pack_to(
        &mut self,
        param: Node,
        arguments: &[Expr],
        by_name: bool,
        source: Source,
        out: &mut Vec<Stmt>,
    ) {
        let mut elements: Vec<Named> = Vec::new();
        let mut name = String::new();
        let mut rest = arguments.iter().cloned();
        let types = param.field(Field::Type).unwrap_or(param);
        let mut bind = |lowering: &mut Self, argument: Option<Expr>| {
            lowering.frame().scopes.push(Scope::new());
            lowering.bind_parameter_to(param, argument, by_name, source, out);
            let declared = lowering.frame().scopes.pop().unwrap_or_default();
            for (of, meaning) in declared {
                name = of;
                elements.push(meaning);
            }
        };
        let expanded = self.expanded(types, source, |lowering| {
            let argument = rest.next();
            bind(lowering, argument);
        });
        if expanded.is_none() {
            // `auto... args`.
            for argument in arguments {
                bind(self, Some(argument.clone()));
            }
        }
        if name.is_empty() {
            let declarator = param.field(Field::Declarator);
            let text = declarator.map_or("", |declarator| text_of(declarator, source));
            text.trim_start_matches(['.', '&', '*', ' '])
                .clone_into(&mut name);
        }
        self.bind(&name, Named::Pack(elements));
    }

    fn bind_parameter_to(
        &mut self,
        param: Node,
        argument: Option<Expr>,
        by_name: bool,
        source: Source,
        out: &mut Vec<Stmt>,
    ) {
        let space = space_of(param, source).unwrap_or(self.default_space());
        let Some(base) = param.field(Field::Type) else {
            return;
        };
        let base = self.base_type(base, source);
        let declared = match param.field(Field::Declarator) {
            Some(declarator) => self.declarator(declarator, base, space, source),
            None => return,
        };
        let Some(argument) = argument else { return };
        let mut ty = match declared.ty {
            // An array parameter is a pointer.
            Type::Array(element, _) if !declared.reference => Type::Pointer(element, space),
            ty => ty,
        };
        if is_open(&ty) {
            ty = match (&argument.ty, declared.reference) {
                (Type::Array(element, _), false) => {
                    Type::Pointer(Arc::clone(element), AddressSpace::Global)
                }
                (ty, _) => ty.clone(),
            };
        }
        if super::function_types::holds_functions(&ty)
            && super::function_types::functions_of(&argument.ty).is_some()
        {
            ty = argument.ty.clone();
        }
        if matches!(argument.ty, Type::Callable(_) | Type::Library(_)) {
            let meaning = Expr {
                kind: ExprKind::List(Vec::new()),
                ..argument
            };
            self.bind(&declared.name, Named::Alias(Box::new(meaning)));
            return;
        }
        let mut argument = self.converted_to(argument, &ty);
        if declared.reference && argument.ty == ty {
            argument = self.given_back(argument, out);
        }
        // What a recursive function only reads through a reference is another thing in each call.
        let copied = declared.reference
            && super::forms::has_word(param, source, "const")
            && self
                .looped
                .last()
                .is_some_and(|(frame, _)| frame + 1 == self.frames.len());
        if declared.reference && !copied && is_place(&argument) {
            let place = if by_name && is_pure(&argument) {
                argument
            } else {
                self.frozen(argument, out)
            };
            self.bind(&declared.name, Named::Alias(Box::new(place)));
            return;
        }
        // A pointer to a place of the caller's: what it points to stays that place.
        if let ExprKind::AddressOf(place) = &argument.kind
            && !Self::is_assigned(&declared.name, param, source)
        {
            let place = self.frozen((**place).clone(), out);
            let site = argument.site;
            let pointer = address_of(place, space, site);
            self.bind(&declared.name, Named::Alias(Box::new(pointer)));
            return;
        }
        // A copy of what the launch gives that is only read is that.
        if argument.ty == ty
            && self.is_given_whole(&argument)
            && Self::only_reads_members(&declared.name, param, source)
        {
            self.bind(&declared.name, Named::Alias(Box::new(argument)));
            return;
        }
        let volatile = super::forms::has_word(param, source, "volatile");
        let number = self.unevaluated > 0 && matches!(argument.kind, ExprKind::Int(_));
        if (number || by_name && is_pure(&argument) && !volatile)
            && !Self::is_assigned(&declared.name, param, source)
        {
            let value = if argument.ty == ty || ty.element().is_some() {
                argument
            } else {
                let site = argument.site;
                self.cast(argument, ty, site)
            };
            self.bind(&declared.name, Named::Alias(Box::new(value)));
            return;
        }
        let site = argument.site;
        let id = self.new_var(&declared.name, ty, Storage::Local, site);
        self.vars[id.0 as usize].volatile = volatile;
        self.split_variable(id);
        if self.split.contains_key(&id) {
            self.assign_to(id, argument, site, out);
        } else {
            out.push(Stmt {
                kind: StmtKind::Declare(id, Some(argument)),
                site,
            });
        }
    }

    /// True where the function that a parameter belongs to reads fields of it and does nothing else with it.
    fn only_reads_members(name: &str, param: Node, source: Source) -> bool {
        let constant = super::forms::has_word(param, source, "const");
        let body = body_around(param);
        body.is_some_and(|body| constant || super::forms::only_reads_members(body, name, source))
    }

    /// True where the function that a parameter belongs to may give the parameter another value.
    fn is_assigned(name: &str, param: Node, source: Source) -> bool {
        body_around(param).is_none_or(|body| writes(body, name, source))
    }

    /// `: field(value), …` of a constructor.
    fn field_initializers(&mut self, list: Node, source: Source, out: &mut Vec<Stmt>) {
        let Some(this) = self.current().this.clone() else {
            return;
        };
        for initializer in parts(list) {
            let children = parts(initializer);
            let (Some(name), Some(values)) = (children.first(), children.get(1)) else {
                continue;
            };
            let site = self.site(initializer, source);
            let name = text_of(*name, source).to_owned();
            let mut values = match values.kind() {
                Kind::InitializerList => self.initializers(*values, source),
                _ => self.arguments(*values, source),
            };
            // Not what it refers to already, but the reference itself.
            let references = std::mem::take(&mut self.references);
            let target = self.member(&this, &name, site);
            self.references = references;
            let Some(target) = target else {
                // A base, or another constructor of the class.
                if let Some(class) = self.base_named(&this, &name, Some((list, source))) {
                    let constructors = self.constructors(&class);
                    if let Some(call) = self.constructor_call(constructors, &this, &values, site) {
                        out.push(Stmt {
                            kind: StmtKind::Expr(call),
                            site,
                        });
                    }
                }
                continue;
            };
            let value = if values.len() == 1 && !matches!(target.ty, Type::Struct(_)) {
                values.remove(0)
            } else {
                let ty = target.ty.clone();
                self.constructed(&ty, values, site)
            };
            let value = match target.kind {
                ExprKind::Var(field) => self.bound_reference(field, value, site),
                _ => Some(value),
            };
            let Some(value) = value else { continue };
            let assigned = self.assigned(target, value, site);
            out.push(Stmt {
                kind: StmtKind::Expr(assigned),
                site,
            });
        }
    }

    // ---- objects -------------------------------------------------------------------------------

    /// An object of a type from the arguments of its constructor or its initialiser list.
    pub(super) fn constructed(&mut self, ty: &Type, mut arguments: Vec<Expr>, site: Site) -> Expr {
        match ty {
            Type::Struct(_) => {
                if arguments.len() == 1 && arguments[0].ty == *ty {
                    return arguments.remove(0);
                }
                if let Some(made) = self.user_constructed(ty, &arguments, site) {
                    return made;
                }
                match self.with_member_values(ty, Some(arguments.clone()), site) {
                    Some(made) => made,
                    None => super::split::list(ty, arguments, site),
                }
            }
            Type::Vector(..) => super::split::list(ty, arguments, site),
            Type::Unknown(name) if name == "auto" && arguments.len() == 1 => arguments.remove(0),
            _ if arguments.len() == 1 => {
                let value = arguments.remove(0);
                self.cast(value, ty.clone(), site)
            }
            // `float sum{};` is zero.
            Type::Int { .. } | Type::Float { .. } | Type::Pointer(..) if arguments.is_empty() => {
                let kind = match ty {
                    Type::Float { .. } => ExprKind::Float(Some(Real::from(0.0))),
                    _ => ExprKind::Int(0),
                };
                let ty = ty.clone();
                Expr { kind, ty, site }
            }
            _ => super::split::list(ty, arguments, site),
        }
    }

    /// `T x;` where T has a constructor, or members with values of their own.
    pub(super) fn default_constructed(&mut self, ty: &Type, site: Site) -> Option<Expr> {
        match self.user_constructed(ty, &[], site) {
            Some(made) => Some(made),
            None => self.with_member_values(ty, None, site),
        }
    }

    fn user_constructed(&mut self, ty: &Type, arguments: &[Expr], site: Site) -> Option<Expr> {
        let Type::Struct(structure) = ty else {
            return None;
        };
        let class = class_of(structure)?;
        let constructors = self.constructors(&class);
        if constructors.is_empty() {
            return None;
        }
        let object = self.temporary("object", ty.clone(), site);
        let this = self.var(object, site);
        let call = self.constructor_call(constructors, &this, arguments, site)?;
        let statements = vec![Stmt {
            kind: StmtKind::Expr(call),
            site,
        }];
        Some(Expr {
            kind: ExprKind::Inline(statements, Some(object)),
            ty: ty.clone(),
            site,
        })
    }

    /// The constructors of a class that do something of their own: `T() = default;` does what a class without any does.
    pub(super) fn constructors(&mut self, class: &Arc<Class>) -> Vec<Method> {
        let mut found = self.methods(class, &class.name.clone());
        found.retain(|method| {
            let function = method.definition.node(&[Kind::FunctionDefinition]);
            function.is_none_or(|function| {
                super::child_of_kind(function, Kind::DefaultMethodClause).is_none()
            })
        });
        found
    }

    /// One of them for an object that is there.
    pub(super) fn constructor_call(
        &mut self,
        constructors: Vec<Method>,
        object: &Expr,
        arguments: &[Expr],
        site: Site,
    ) -> Option<Expr> {
        let candidates = Candidate::of_methods(constructors, object);
        self.call_best(candidates, &[], arguments, site)
    }

    /// A call of a member function of a class around the one being read.
    pub(super) fn static_call(
        &mut self,
        name: &str,
        explicit: &[Bound],
        arguments: &[Expr],
        site: Site,
    ) -> Option<Expr> {
        let outer = self.this_class()?.enclosing.clone()?;
        self.in_enclosing(outer, |lowering, class| {
            let methods = lowering.methods(class, name);
            if methods.is_empty() {
                return None;
            }
            let candidates = Candidate::of_methods(methods, &super::classes::object_of(class));
            lowering.call_best(candidates, explicit, arguments, site)
        })
    }

    /// A member function by its object.
    pub(super) fn method_call(
        &mut self,
        object: &Expr,
        name: &str,
        explicit: &[Bound],
        arguments: &[Expr],
        site: Site,
    ) -> Option<Expr> {
        let Type::Struct(structure) = &object.ty else {
            return None;
        };
        let class = class_of(structure)?;
        let methods = self.methods(&class, name);
        if methods.is_empty() {
            return None;
        }
        let mut before = Vec::new();
        let object = &self.given_back(object.clone(), &mut before);
        let this = if is_place(object) {
            if is_pure(object) {
                object.clone()
            } else {
                self.frozen(object.clone(), &mut before)
            }
        } else {
            let id = self.temporary("object", object.ty.clone(), site);
            self.assign_to(id, object.clone(), site, &mut before);
            self.var(id, site)
        };
        let candidates = Candidate::of_methods(methods, &this);
        let call = self.call_best(candidates, explicit, arguments, site)?;
        if before.is_empty() {
            return Some(call);
        }
        Some(after(before, call))
    }

    /// An object that a function gave back is the variable that holds it, behind what the function does: of a reference to an object
    /// that object itself.
    pub(super) fn given_back(&mut self, value: Expr, before: &mut Vec<Stmt>) -> Expr {
        match value.kind {
            ExprKind::Inline(statements, Some(object)) => {
                before.extend(statements);
                self.var(object, value.site)
            }
            _ => value,
        }
    }

    /// An operator that a class or the file defines for it.
    pub(super) fn operator_call(
        &mut self,
        name: &str,
        object: &Expr,
        arguments: &[Expr],
        site: Site,
    ) -> Option<Expr> {
        if let Some(call) = self.method_call(object, name, &[], arguments, site) {
            return Some(call);
        }
        if matches!(
            name,
            "operator[]" | "operator()" | "operator->" | "operator="
        ) {
            return None;
        }
        let free = self.unit.functions(name);
        let mut all = vec![object.clone()];
        all.extend(arguments.iter().cloned());
        let friends = self.friends(name, &all);
        if free.is_empty() && friends.is_empty() {
            return None;
        }
        // Only an operator for these very types: the file may define it for others.
        let fitting: Vec<Candidate> = free
            .into_iter()
            .map(|definition| Candidate {
                definition,
                bindings: Vec::new(),
                this: None,
            })
            .chain(friends)
            .filter(|candidate| self.takes_exactly(candidate, &all))
            .collect();
        if fitting.is_empty() {
            return None;
        }
        self.call_best(fitting, &[], &all, site)
    }

    pub(super) fn takes_exactly(&mut self, candidate: &Candidate, arguments: &[Expr]) -> bool {
        let Some((_, bindings)) = self.fits(candidate, &[], arguments, false) else {
            return false;
        };
        let definition = candidate.definition.clone();
        let Some(function) = definition.node(&[Kind::FunctionDefinition]) else {
            return false;
        };
        let source = Source::of(&definition);
        let Some(params) = parameter_nodes(function, source) else {
            return false;
        };
        if params.len() != arguments.len() {
            return false;
        }
        self.under(bindings, candidate.this.clone(), |lowering| {
            params.iter().zip(arguments).all(|(param, argument)| {
                let declared =
                    lowering.unevaluated(|lowering| lowering.parameter_type(*param, source));
                affinity(&declared, &argument.ty) > 1
            })
        })
    }
}

/// The template arguments that a function's own name is written with.
pub(super) fn specialised(function: Node<'_>) -> Option<Node<'_>> {
    let mut name = function_declarator(function)?.field(Field::Declarator)?;
    while name.kind() == Kind::QualifiedIdentifier {
        name = name.field(Field::Name)?;
    }
    (name.kind() == Kind::TemplateFunction)
        .then(|| name.field(Field::Arguments))
        .flatten()
}

/// The value of a body that is one `return`.
fn only_return(body: Node<'_>) -> Option<Node<'_>> {
    let all = parts(body);
    match all.as_slice() {
        [only] if only.kind() == Kind::ReturnStatement => parts(*only).into_iter().next(),
        _ => None,
    }
}

/// The `return` at a body's end, where it is the only one, and what it gives.
fn last_return(body: Node<'_>) -> Option<(Node<'_>, Node<'_>)> {
    let mut open = vec![body];
    let mut found = None;
    while let Some(node) = open.pop() {
        match node.kind() {
            Kind::ReturnStatement if found.is_some() => return None,
            Kind::ReturnStatement => found = Some(node),
            // A label may be gone to.
            Kind::LabeledStatement => return None,
            Kind::LambdaExpression => {}
            _ => open.extend(node.named_children()),
        }
    }
    let last = found?;
    let is_last = parts(body)
        .last()
        .is_some_and(|at| at.start_byte() == last.start_byte());
    let value = parts(last).into_iter().next()?;
    (is_last && body.kind() == Kind::CompoundStatement).then_some((last, value))
}

/// `result = place` as `result = &place`, for functions that return a reference.
fn to_addresses(statements: &mut [Stmt], result: warplens_ir::VarId) {
    for statement in statements {
        if let StmtKind::Expr(Expr {
            kind: ExprKind::Assign(None, target, value),
            ..
        }) = &mut statement.kind
            && matches!(target.kind, ExprKind::Var(id) if id == result)
        {
            let place = std::mem::replace(
                &mut **value,
                Expr {
                    kind: ExprKind::Float(None),
                    ty: Type::Void,
                    site: Site::default(),
                },
            );
            let site = place.site;
            **value = address_of(place, AddressSpace::Global, site);
        }
        for (_, inner) in statement.blocks_mut() {
            to_addresses(inner, result);
        }
    }
}

/// `if (c) return a; rest` as `if (c) return a; else rest`, so that what is returned is one value.
fn structure_returns(statements: &mut Vec<Stmt>) {
    let mut at = 0;
    while at < statements.len() {
        match &mut statements[at].kind {
            // What follows belongs to the cases that do not return.
            StmtKind::Switch(_, inner) if may_return(inner) => {
                let rest = statements.split_off(at + 1);
                if let StmtKind::Switch(_, inner) = &mut statements[at].kind {
                    inner.extend(rest);
                    structure_returns(inner);
                }
                return;
            }
            StmtKind::If(_, then, otherwise) => {
                structure_returns(then);
                structure_returns(otherwise);
                let (left, other_left) = (returns(then), returns(otherwise));
                if (left || other_left) && at + 1 < statements.len() {
                    let rest = statements.split_off(at + 1);
                    let StmtKind::If(_, then, otherwise) = &mut statements[at].kind else {
                        return;
                    };
                    if left && other_left {
                        // What follows is never reached; it is in the source all the same.
                        otherwise.extend(rest);
                        return;
                    }
                    let side = if left { otherwise } else { then };
                    side.extend(rest);
                    structure_returns(side);
                }
            }
            _ => {
                let blocks = statements[at].blocks_mut();
                let once = blocks.filter(|(runs, _)| *runs == Runs::Once);
                once.for_each(|(_, inner)| structure_returns(inner));
            }
        }
        at += 1;
    }
}

/// A `return` at the very end does nothing any more: the value is where it belongs.
fn drop_last_return(statements: &mut Vec<Stmt>) {
    let Some(last) = statements.last_mut() else {
        return;
    };
    if last.kind == StmtKind::Return(None) {
        statements.pop();
    } else if !last.blocks().any(|(runs, _)| runs == Runs::Repeatedly) {
        last.blocks_mut()
            .for_each(|(_, inner)| drop_last_return(inner));
    }
}

fn returns(statements: &[Stmt]) -> bool {
    statements
        .last()
        .is_some_and(|last| matches!(last.kind, StmtKind::Return(_)) || last.ends_with(returns))
}

/// The body of the function that a parameter belongs to.
fn body_around(param: Node) -> Option<Node> {
    let mut at = param;
    while let Some(parent) = at.parent() {
        at = parent;
        if matches!(
            at.kind(),
            Kind::FunctionDefinition | Kind::LambdaExpression | Kind::BlockLiteral
        ) {
            break;
        }
    }
    at.field(Field::Body)
}
