//! Template parameters: what binds them, and what they bind.

use warplens_syntax::{Field, Kind, Node};

use super::concepts::Constraints;
use super::forms::{Parameter, templated};
use super::instances::{is_open, key_of_instance, spell_instance};
use super::library::library_arguments;
use super::{Lowering, Source, library, parts, text_of};
use crate::definition::Definition;
use crate::namespaces::{Name, joined};
use crate::types::class_of;
use warplens_ir::{Bindings, Bound};
use warplens_ir::{Expr, Struct, Type};

/// How a template or a specialisation fits arguments.
struct Fit {
    /// The larger, the more special.
    score: usize,
    bindings: Bindings,
    /// False where it is not known whether what it asks for is there.
    told: bool,
}

impl Lowering<'_> {
    /// What the arguments of a template stand for.
    pub fn template_arguments(&mut self, list: Node, source: Source) -> Vec<Bound> {
        let mut found = Vec::new();
        for argument in parts(list) {
            if argument.kind() == Kind::ParameterPackExpansion
                && let Some(pattern) = argument.field(Field::Pattern)
                && let Some(all) = self.expanded(pattern, source, |lowering| {
                    lowering.template_argument(pattern, source)
                })
            {
                for bound in all {
                    found.push(bound.unwrap_or_else(|| {
                        Bound::Type(Type::Unknown(text_of(pattern, source).to_owned()))
                    }));
                }
                continue;
            }
            match self.template_argument(argument, source) {
                Some(Bound::Pack(all)) => found.extend(all),
                Some(bound) => found.push(bound),
                None => found.push(Bound::Type(Type::Unknown(
                    text_of(argument, source).to_owned(),
                ))),
            }
        }
        found
    }

    pub(super) fn template_argument(&mut self, argument: Node, source: Source) -> Option<Bound> {
        if argument.kind() == Kind::ParameterPackExpansion {
            let pattern = argument
                .field(Field::Pattern)
                .or_else(|| argument.named_child(0))?;
            return self.template_argument(pattern, source);
        }
        if argument.kind() == Kind::TypeDescriptor {
            let text = text_of(argument, source).trim();
            // A lone name may be a number as well: `Tile<N>` reads as a type.
            if let Some((_, bound)) = self
                .current()
                .bindings
                .iter()
                .rev()
                .find(|(name, _)| name == text)
            {
                return Some(bound.clone());
            }
            let ty = self.base_type(argument, source);
            if let Type::Unknown(_) = ty {
                let inner = argument.field(Field::Type)?;
                // `f()` reads as the type of a function.
                let value = match argument.field(Field::Declarator) {
                    Some(call) if call.kind() == Kind::AbstractFunctionDeclarator => {
                        self.constant_text(text)
                    }
                    Some(_) => None,
                    None => self.constant_node(inner, source),
                };
                if let Some(value) = value {
                    return Some(Bound::Value(value));
                }
                if let Some(bound) = self.named_argument(text, source) {
                    return Some(bound);
                }
            }
            return Some(Bound::Type(ty));
        }
        if let Some(value) = self.constant_node(argument, source) {
            return Some(Bound::Value(value));
        }
        let text = text_of(argument, source).trim_start_matches('&').trim();
        if let Some((_, bound)) = self
            .current()
            .bindings
            .iter()
            .rev()
            .find(|(name, _)| name == text)
        {
            return Some(bound.clone());
        }
        if let Some(bound) = self.named_argument(text, source) {
            return Some(bound);
        }
        // `Op<T>`, `f<std::uint32_t>(…)` where a type is among values.
        match argument.kind() {
            Kind::TemplateFunction | Kind::CallExpression => None,
            Kind::QualifiedIdentifier => match self.base_type(argument, source) {
                Type::Unknown(_) => None,
                ty => Some(Bound::Type(ty)),
            },
            _ => self.type_named(text, source.space).map(Bound::Type),
        }
    }

    /// A class template, a function or a device variable, by name.
    fn named_argument(&self, text: &str, source: Source) -> Option<Bound> {
        let name = Name::new(text, source.space);
        if let Some((space, _)) = self.unit.global(name) {
            return Some(Bound::Template(joined(space, name.last).to_string()));
        }
        let template = self.unit.templates(name).into_iter().next();
        let found = template.or_else(|| self.unit.function_meant(name))?;
        // Where it is used its namespaces may be others.
        Some(Bound::Template(joined(&found.space, name.last).to_string()))
    }

    /// `name<arguments>` as a type, behind the qualifiers `path`.
    pub(super) fn template_type(&mut self, node: Node, path: &str, source: Source) -> Type {
        let unknown = || Type::Unknown(text_of(node, source).to_owned());
        let (Some(name), Some(list)) = (node.field(Field::Name), node.field(Field::Arguments))
        else {
            return unknown();
        };
        let mut name = joined(path, text_of(name, source)).to_string();
        let mut space = source.space;
        if let Some((_, Bound::Template(of))) = self
            .current()
            .bindings
            .iter()
            .rev()
            .find(|(of, _)| *of == name)
        {
            name.clone_from(of);
            space = "";
        }
        let arguments = self.template_arguments(list, source);
        let name = Name::new(&name, space);
        self.member_instance(name.last, &arguments)
            .or_else(|| self.instance(name, &arguments))
            .or_else(|| self.made_sequence(name.last, &arguments))
            .or_else(|| library::template_type(name.last, &arguments))
            .unwrap_or_else(unknown)
    }

    /// An instance of a class template of the unit.
    pub(super) fn instance(&mut self, name: Name, arguments: &[Bound]) -> Option<Type> {
        let space = self.unit.template_space(name)?;
        let given = joined(&space, &key_of_instance(name.last, arguments)).to_string();
        if let Some(known) = self.instances.get(&given) {
            return Some(known.clone());
        }
        if self.depth > super::DEEPEST_CALLS {
            return None;
        }
        let candidates = self.unit.templates(name);
        let arguments = self.with_defaults(&candidates, arguments, &Vec::new());
        let shown = spell_instance(name.last, &arguments);
        let spelled = joined(&space, &key_of_instance(name.last, &arguments)).to_string();
        if let Some(known) = self.instances.get(&spelled).cloned() {
            self.instances.insert(given, known.clone());
            return Some(known);
        }
        // While it is being laid out it may name itself.
        self.instances
            .insert(spelled.clone(), Type::Unknown(spelled.clone()));
        let found = self.best_instance(candidates, &arguments, &shown, None);
        // One of a class that is only being laid out, `struct A : Base<A>`, is laid out anew for others.
        let is_open = |bound: &Bound| match bound {
            Bound::Type(Type::Unknown(name)) => self
                .instances
                .get(name)
                .is_some_and(|ty| matches!(ty, Type::Unknown(_))),
            _ => false,
        };
        match &found {
            Some(ty) if !arguments.iter().any(is_open) => {
                self.instances.insert(spelled, ty.clone());
                self.instances.insert(given, ty.clone());
            }
            _ => {
                self.instances.remove(&spelled);
            }
        }
        found
    }

    /// The instance of whichever template or specialisation fits best. `member`: an object of the class that they
    /// are members of, and what that class binds.
    pub(super) fn best_instance(
        &mut self,
        candidates: Vec<Definition>,
        arguments: &[Bound],
        spelled: &str,
        member: Option<(Expr, &Bindings)>,
    ) -> Option<Type> {
        self.depth += 1;
        let all = match &member {
            Some((_, outer)) => self.with_defaults(&candidates, arguments, outer),
            None => arguments.to_vec(),
        };
        let mut best: Option<(usize, Bindings, Definition)> = None;
        let mut untold = 0;
        for candidate in candidates {
            let Some(fit) = self.matches(&candidate, &all) else {
                continue;
            };
            if !fit.told {
                untold = untold.max(fit.score);
            } else if best.as_ref().is_none_or(|(of, ..)| fit.score > *of) {
                best = Some((fit.score, fit.bindings, candidate));
            }
        }
        // A specialisation that may be the one meant leaves open which it is.
        let best = best.filter(|(score, ..)| *score > untold);
        let found = best.and_then(|(_, mut bindings, definition)| {
            let this = member.map(|(this, outer)| {
                bindings.extend(outer.iter().cloned());
                this
            });
            self.laid_out(&definition, spelled, &bindings, &all, this)
        });
        self.depth -= 1;
        found
    }

    /// The arguments with those that the template itself, defined or only declared, gives; `outer`: what the class binds that it is
    /// a member of.
    fn with_defaults(
        &mut self,
        candidates: &[Definition],
        arguments: &[Bound],
        outer: &Bindings,
    ) -> Vec<Bound> {
        let mut all = arguments.to_vec();
        for candidate in candidates {
            let source = Source::of(candidate);
            let Some(template) = candidate.node(&[Kind::TemplateDeclaration]) else {
                continue;
            };
            if templated(template).is_none_or(|(_, name)| name.kind() == Kind::TemplateType) {
                continue;
            }
            let own = self.parameters(template, source);
            let mut bindings = outer.clone();
            for (at, parameter) in own.iter().enumerate() {
                if parameter.pack {
                    break;
                }
                if at == all.len() {
                    let Some(bound) = self.default(parameter, &bindings, None, source) else {
                        break;
                    };
                    all.push(bound);
                }
                bindings.push((parameter.name.clone(), all[at].clone()));
            }
        }
        all
    }

    /// How well a template or a specialisation fits, and what it binds.
    fn matches(&mut self, candidate: &Definition, arguments: &[Bound]) -> Option<Fit> {
        let template = candidate.node(&[Kind::TemplateDeclaration])?;
        let source = Source::of(candidate);
        let parameters = self.parameters(template, source);
        let (inner, name) = templated(template)?;
        let bare = inner.kind() != Kind::AliasDeclaration && inner.field(Field::Body).is_none();
        if name.kind() != Kind::TemplateType {
            let bindings = self.bind_parameters(&parameters, arguments, source);
            return Some(Fit {
                score: usize::from(!bare),
                bindings,
                told: true,
            });
        }
        if bare {
            return None;
        }
        // A specialisation: its arguments are patterns.
        let patterns = parts(name.field(Field::Arguments)?);
        let rest = patterns
            .last()
            .is_some_and(|last| last.kind() == Kind::ParameterPackExpansion);
        // What a specialisation leaves out is what its template gives.
        if patterns.len() < arguments.len() && !rest {
            let written = text_of(name.field(Field::Name)?, source);
            let primary = self.unit.templates(Name::new(written, source.space));
            let given = &arguments[..patterns.len()];
            if self.with_defaults(&primary, given, &Vec::new()) != arguments {
                return None;
            }
        } else if patterns.len() != arguments.len()
            && !(rest && arguments.len() + 1 >= patterns.len())
        {
            return None;
        }
        let mut bindings: Bindings = Vec::new();
        let mut score = 2;
        let mut told = true;
        for (at, pattern) in patterns.iter().enumerate() {
            if rest && at + 1 == patterns.len() {
                let text = text_of(*pattern, source).trim_end_matches(['.', ' ']);
                let parameter = parameters.iter().find(|of| of.pack && of.name == text)?;
                let taken = Bound::Pack(arguments[at..].to_vec());
                bindings.push((parameter.name.clone(), taken));
                continue;
            }
            let argument = &arguments[at];
            let text = text_of(*pattern, source).trim();
            if let Some(parameter) = parameters.iter().find(|parameter| parameter.name == text) {
                match bindings.iter().find(|(name, _)| *name == parameter.name) {
                    Some((_, bound)) if bound != argument => return None,
                    // `X<T, T>`: the same twice.
                    Some(_) => score += 1,
                    None => bindings.push((parameter.name.clone(), argument.clone())),
                }
                continue;
            }
            if let Bound::Type(ty) = argument
                && self.is_of_other_length(*pattern, ty, source)
            {
                return None;
            }
            if let Bound::Type(ty) = argument
                && let Some(descriptor) =
                    Some(*pattern).filter(|p| p.kind() == Kind::TypeDescriptor)
                && self.deduce(descriptor, ty, &parameters, source, &mut bindings)
            {
                score += 1;
                continue;
            }
            // What earlier arguments bound holds in later ones: `X<T, enable_if_t<c<T>>>`.
            let (valid, bound) = self.under(bindings.clone(), None, |lowering| {
                let valid = lowering.is_formed(*pattern, source);
                (valid, lowering.template_argument(*pattern, source))
            });
            match (valid, bound) {
                // What it asks for is not there.
                (Some(false), _) => return None,
                (None, _) => told = false,
                (_, Some(ref bound)) if bound == argument => {}
                _ => return None,
            }
            score += 2;
        }
        match self.constraints_of(template, source, &bindings, None) {
            Constraints::Fail => return None,
            Constraints::Hold => score += 1,
            Constraints::None | Constraints::Untold => {}
        }
        Some(Fit {
            score,
            bindings,
            told,
        })
    }

    fn laid_out(
        &mut self,
        definition: &Definition,
        name: &str,
        bindings: &Bindings,
        arguments: &[Bound],
        this: Option<Expr>,
    ) -> Option<Type> {
        let template = definition.node(&[Kind::TemplateDeclaration])?;
        let source = Source::of(definition);
        let (inner, _) = templated(template)?;
        self.under(bindings.clone(), this, |lowering| {
            lowering.unevaluated(|lowering| {
                if inner.kind() == Kind::AliasDeclaration {
                    let ty = inner.field(Field::Type)?;
                    Some(lowering.base_type(ty, source))
                } else {
                    lowering.structure(inner, source, Some((name, bindings, arguments)))
                }
            })
        })
    }

    /// Parameters bound by position, then by their defaults.
    pub(super) fn bind_parameters(
        &mut self,
        parameters: &[Parameter],
        arguments: &[Bound],
        source: Source,
    ) -> Bindings {
        let mut bindings: Bindings = Vec::new();
        for (position, parameter) in parameters.iter().enumerate() {
            if parameter.pack {
                let rest = arguments.get(position..).unwrap_or(&[]).to_vec();
                bindings.push((parameter.name.clone(), Bound::Pack(rest)));
                break;
            }
            if let Some(bound) = arguments.get(position) {
                bindings.push((parameter.name.clone(), bound.clone()));
            } else if let Some(bound) = self.default(parameter, &bindings, None, source) {
                bindings.push((parameter.name.clone(), bound));
            }
        }
        bindings
    }

    /// The default of a parameter, which may name those before it and members of the class whose object `this` is.
    pub(super) fn default(
        &mut self,
        parameter: &Parameter,
        before: &Bindings,
        this: Option<Expr>,
        source: Source,
    ) -> Option<Bound> {
        let default = parameter.default?;
        self.under(before.clone(), this, |lowering| {
            if parameter.is_type {
                // `template <class> class Op = Sum`: a template where no type has that name.
                Some(match lowering.base_type(default, source) {
                    unknown @ Type::Unknown(_) => lowering
                        .named_argument(text_of(default, source), source)
                        .unwrap_or(Bound::Type(unknown)),
                    ty => Bound::Type(ty),
                })
            } else {
                lowering.constant_node(default, source).map(Bound::Value)
            }
        })
    }

    /// Binds what a declared type says of an argument's type: `T *`, `const T &`, `Vec<T, N>`, `T[N]`.
    pub(super) fn deduce(
        &mut self,
        declared: Node,
        argument: &Type,
        parameters: &[Parameter],
        source: Source,
        bindings: &mut Bindings,
    ) -> bool {
        let mut ty = argument.clone();
        let mut declarator = declared.field(Field::Declarator);
        while let Some(node) = declarator {
            match node.kind() {
                Kind::PointerDeclarator | Kind::AbstractPointerDeclarator => match ty.element() {
                    Some(element) => ty = element.clone(),
                    None => return false,
                },
                Kind::ArrayDeclarator | Kind::AbstractArrayDeclarator => {
                    if let (Type::Array(_, Some(extent)), Some(size)) =
                        (&ty, node.field(Field::Size))
                    {
                        let name = text_of(size, source);
                        if parameters.iter().any(|parameter| parameter.name == name) {
                            bind(bindings, name, Bound::Value(*extent as i64));
                        }
                    }
                    match ty.element() {
                        Some(element) => ty = element.clone(),
                        None => return false,
                    }
                }
                _ => {}
            }
            declarator = node.field(Field::Declarator).or_else(|| {
                matches!(
                    node.kind(),
                    Kind::ReferenceDeclarator
                        | Kind::AbstractReferenceDeclarator
                        | Kind::ParenthesizedDeclarator
                        | Kind::AbstractParenthesizedDeclarator
                )
                .then(|| node.named_child(0))
                .flatten()
            });
        }
        let Some(base) = declared.field(Field::Type) else {
            return false;
        };
        self.deduce_base(base, &ty, parameters, source, bindings)
    }

    /// What the elements of a container of the standard library say: `const std::vector<T> &`. False where no template is
    /// declared.
    pub(super) fn deduce_elements(
        &mut self,
        declared: Node,
        element: &Type,
        parameters: &[Parameter],
        source: Source,
        bindings: &mut Bindings,
    ) -> bool {
        let mut base = declared.field(Field::Type);
        while let Some(scoped) = base.filter(|base| base.kind() == Kind::QualifiedIdentifier) {
            base = scoped.field(Field::Name);
        }
        let list = base
            .filter(|base| base.kind() == Kind::TemplateType)
            .and_then(|base| base.field(Field::Arguments));
        let Some(list) = list else { return false };
        let Some(pattern) = parts(list).into_iter().next() else {
            return false;
        };
        let text = text_of(pattern, source).trim();
        if parameters.iter().any(|parameter| parameter.name == text) {
            bind(bindings, text, Bound::Type(element.clone()));
            true
        } else {
            self.deduce(pattern, element, parameters, source, bindings)
        }
    }

    fn deduce_base(
        &mut self,
        base: Node,
        ty: &Type,
        parameters: &[Parameter],
        source: Source,
        bindings: &mut Bindings,
    ) -> bool {
        match base.kind() {
            Kind::QualifiedIdentifier => match base.field(Field::Name) {
                // `typename T::type` says nothing of T.
                Some(name) if name.kind() == Kind::TemplateType => {
                    self.deduce_base(name, ty, parameters, source, bindings)
                }
                _ => false,
            },
            Kind::TemplateType => {
                let (Some(list), Type::Struct(structure)) = (base.field(Field::Arguments), ty)
                else {
                    return false;
                };
                let name = base
                    .field(Field::Name)
                    .map_or("", |name| text_of(name, source));
                let Some(given) = self.arguments_as(name, structure) else {
                    return false;
                };
                let mut given = given.into_iter();
                for pattern in parts(list) {
                    let text = text_of(pattern, source).trim();
                    if pattern.kind() == Kind::ParameterPackExpansion {
                        let text = text.trim_end_matches(['.', ' ']);
                        let rest: Vec<Bound> = given
                            .by_ref()
                            .flat_map(|bound| match bound {
                                Bound::Pack(all) => all,
                                one => vec![one],
                            })
                            .collect();
                        if parameters.iter().any(|parameter| parameter.name == text) {
                            bind(bindings, text, Bound::Pack(rest));
                        }
                        break;
                    }
                    let Some(bound) = given.next() else { break };
                    if parameters.iter().any(|parameter| parameter.name == text) {
                        bind(bindings, text, bound.clone());
                    } else if let Bound::Type(inner) = &bound {
                        self.deduce(pattern, inner, parameters, source, bindings);
                    }
                }
                true
            }
            Kind::TypeIdentifier => {
                let name = text_of(base, source);
                if parameters
                    .iter()
                    .any(|parameter| parameter.is_type && parameter.name == name)
                {
                    // An array parameter is a pointer.
                    bind(bindings, name, Bound::Type(ty.clone()));
                    return true;
                }
                false
            }
            _ => false,
        }
    }

    /// The arguments of an instance of the template of that name.
    fn arguments_as(&self, name: &str, structure: &Struct) -> Option<Vec<Bound>> {
        let mut all = match &class_of(structure) {
            Some(class) if !self.names_class(name, class) => return None,
            Some(class) if !class.arguments.is_empty() => class.arguments.clone(),
            Some(class) => {
                let bound = class.bindings.iter().map(|(_, bound)| bound.clone());
                bound.collect()
            }
            None => return library_arguments(structure, name),
        };
        // An alias: the type of its numbers is given.
        if name == "index_sequence" && !all.is_empty() {
            all.remove(0);
        }
        Some(all)
    }

    /// True for a pattern, `extents<I, E0>`, of fewer or more arguments than an instance of the same template has, one that takes any
    /// number of them: what others lack, defaults give.
    fn is_of_other_length(&self, pattern: Node, ty: &Type, source: Source) -> bool {
        let of = match pattern.kind() {
            Kind::TypeDescriptor => pattern.field(Field::Type),
            _ => Some(pattern),
        };
        let (Some(of), Type::Struct(structure)) = (of, ty) else {
            return false;
        };
        let (Some(name), Some(list)) = (of.field(Field::Name), of.field(Field::Arguments)) else {
            return false;
        };
        let takes_any = class_of(structure).is_some_and(|class| {
            let mut bindings = class.bindings.iter();
            bindings.any(|(_, bound)| matches!(bound, Bound::Pack(_)))
        });
        let patterns = parts(list);
        let is_pack = |pattern: &Node| pattern.kind() == Kind::ParameterPackExpansion;
        if !takes_any || patterns.iter().any(is_pack) {
            return false;
        }
        let given = self.arguments_as(text_of(name, source), structure);
        let length = |bound: &Bound| match bound {
            Bound::Pack(all) => all.len(),
            _ => 1,
        };
        given.is_some_and(|given| given.iter().map(length).sum::<usize>() != patterns.len())
    }

    /// True where a template's name, an alias of a template among them, names that class.
    fn names_class(&self, name: &str, class: &crate::types::Class) -> bool {
        class.name == name || name == "index_sequence" && class.name == "integer_sequence"
    }

    /// Types that the standard library computes: `conditional<c, A, B>::type`.
    pub(super) fn trait_type(&mut self, scope: Node, name: Node, source: Source) -> Option<Type> {
        let member = text_of(name, source);
        if !matches!(member, "type" | "value_type") || scope.kind() != Kind::TemplateType {
            return None;
        }
        let of = scope
            .field(Field::Name)
            .map_or("", |of| text_of(of, source));
        if (member == "value_type") != of.ends_with("iterator_traits") {
            return None;
        }
        let arguments = self.template_arguments(scope.field(Field::Arguments)?, source);
        library::trait_type(of, &arguments)
    }
}

fn bind(bindings: &mut Bindings, name: &str, bound: Bound) {
    // A type that was not read binds nothing.
    if matches!(&bound, Bound::Type(ty) if is_open(ty)) {
        return;
    }
    if !bindings.iter().any(|(of, _)| of == name) {
        bindings.push((name.to_owned(), bound));
    }
}
