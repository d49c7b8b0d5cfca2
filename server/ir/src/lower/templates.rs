//! Template parameters: what binds them, and what they bind.

use std::sync::Arc;
use warplens_syntax::Fields as _;

use warplens_syntax::Node;

use super::traits::library_arguments;
use super::{Lowering, Source, library, parts, text_of};
use crate::types::{Bindings, Bound};
use crate::unit::Definition;
use crate::{AddressSpace, Expr, Type};

/// One parameter of a template.
pub(super) struct Parameter<'t> {
    pub(super) name: String,
    pub(super) is_type: bool,
    pub(super) pack: bool,
    pub(super) default: Option<Node<'t>>,
}

pub(super) fn parameters<'t>(template: Node<'t>, source: Source<'t>) -> Vec<Parameter<'t>> {
    let Some(list) = template.field("parameters") else {
        return Vec::new();
    };
    parts(list)
        .into_iter()
        .map(|param| {
            let kind = param.kind();
            let is_type = kind.contains("type_parameter") || kind.contains("template_template");
            let name = param
                .field("name")
                .or_else(|| param.field("declarator").map(innermost))
                .or_else(|| {
                    parts(param)
                        .into_iter()
                        .rfind(|part| matches!(part.kind(), "type_identifier" | "identifier"))
                })
                .map_or("", |name| text_of(name, source));
            Parameter {
                name: name.trim_start_matches(['.', ' ', '&', '*']).to_owned(),
                is_type,
                pack: kind.contains("variadic") || name.starts_with("..."),
                default: param
                    .field("default_value")
                    .or_else(|| param.field("default_type")),
            }
        })
        .collect()
}

/// The name in a declarator: `(*f)(int)` declares `f`.
pub(super) fn innermost(declarator: Node<'_>) -> Node<'_> {
    let mut at = declarator;
    while at.kind() != "identifier" {
        let inner = at.field("declarator").or_else(|| {
            parts(at)
                .into_iter()
                .find(|part| part.kind() != "type_qualifier")
        });
        match inner {
            Some(inner) => at = inner,
            None => break,
        }
    }
    at
}

impl Lowering<'_> {
    /// What the arguments of a template stand for.
    pub(crate) fn template_arguments(&mut self, list: Node, source: Source) -> Vec<Bound> {
        let mut found = Vec::new();
        for argument in parts(list) {
            if argument.kind() == "parameter_pack_expansion"
                && let Some(pattern) = argument.field("pattern")
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
        if argument.kind() == "parameter_pack_expansion" {
            let pattern = argument
                .field("pattern")
                .or_else(|| argument.named_child(0))?;
            return self.template_argument(pattern, source);
        }
        if argument.kind() == "type_descriptor" {
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
                let inner = argument.field("type")?;
                // `f()` reads as the type of a function.
                let value = match argument.field("declarator") {
                    Some(call) if call.kind() == "abstract_function_declarator" => {
                        self.constant_text(text)
                    }
                    Some(_) => None,
                    None => self.constant_node(inner, source),
                };
                if let Some(value) = value {
                    return Some(Bound::Value(value));
                }
                if let Some(bound) = self.named_argument(text) {
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
        if let Some(bound) = self.named_argument(text) {
            return Some(bound);
        }
        // `Op<T>` where a type stands among values.
        match argument.kind() {
            "template_function" | "qualified_identifier" | "call_expression" => None,
            _ => self.type_named(text).map(Bound::Type),
        }
    }

    /// A class template or a function, by name.
    fn named_argument(&self, text: &str) -> Option<Bound> {
        let last = text.rsplit("::").next().unwrap_or(text).trim();
        let known = !self.unit.templates(last).is_empty() || !self.unit.functions(last).is_empty();
        known.then(|| Bound::Template(last.to_owned()))
    }

    /// `name<arguments>` as a type.
    pub(super) fn template_type(&mut self, node: Node, source: Source) -> Type {
        let unknown = || Type::Unknown(text_of(node, source).to_owned());
        let (Some(name), Some(list)) = (node.field("name"), node.field("arguments")) else {
            return unknown();
        };
        let mut name = text_of(name, source)
            .rsplit("::")
            .next()
            .unwrap_or_default()
            .to_owned();
        if let Some((_, Bound::Template(of))) = self
            .current()
            .bindings
            .iter()
            .rev()
            .find(|(of, _)| *of == name)
        {
            name.clone_from(of);
        }
        let arguments = self.template_arguments(list, source);
        self.member_instance(&name, &arguments)
            .or_else(|| self.instance(&name, &arguments))
            .or_else(|| self.made_sequence(&name, &arguments))
            .or_else(|| library::template_type(&name, &arguments))
            .unwrap_or_else(unknown)
    }

    /// An instance of a class template of the unit.
    pub(super) fn instance(&mut self, name: &str, arguments: &[Bound]) -> Option<Type> {
        let given = spell_instance(name, arguments);
        if let Some(known) = self.instances.get(&given) {
            return Some(known.clone());
        }
        let candidates = self.unit.templates(name);
        if candidates.is_empty() || self.depth > super::DEEPEST_CALLS {
            return None;
        }
        let arguments = self.with_defaults(&candidates, arguments);
        let spelled = spell_instance(name, &arguments);
        if let Some(known) = self.instances.get(&spelled).cloned() {
            self.instances.insert(given, known.clone());
            return Some(known);
        }
        // While it is being laid out it may name itself.
        self.instances
            .insert(spelled.clone(), Type::Unknown(spelled.clone()));
        let found = self.best_instance(candidates, &arguments, &spelled, None);
        match &found {
            Some(ty) => {
                self.instances.insert(spelled, ty.clone());
                self.instances.insert(given, ty.clone());
            }
            None => {
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
        let all = match member {
            Some(_) => self.with_defaults(&candidates, arguments),
            None => arguments.to_vec(),
        };
        let mut best: Option<(usize, Bindings, Definition)> = None;
        for candidate in candidates {
            if let Some((score, bindings)) = self.matches(&candidate, &all)
                && best.as_ref().is_none_or(|(of, ..)| score > *of)
            {
                best = Some((score, bindings, candidate));
            }
        }
        let found = best.and_then(|(_, mut bindings, definition)| {
            let this = member.map(|(this, outer)| {
                bindings.extend(outer.iter().cloned());
                this
            });
            self.laid_out(&definition, spelled, &bindings, this)
        });
        self.depth -= 1;
        found
    }

    /// The arguments with those that the template itself, defined or only declared, gives.
    fn with_defaults(&mut self, candidates: &[Definition], arguments: &[Bound]) -> Vec<Bound> {
        let mut all = arguments.to_vec();
        for candidate in candidates {
            let source = Source {
                parsed: &candidate.text,
                header: candidate.header,
                at: None,
                fixed: None,
                copied: None,
            };
            let Some(template) = candidate.node(&["template_declaration"]) else {
                continue;
            };
            if templated(template).is_none_or(|(_, name)| name.kind() == "template_type") {
                continue;
            }
            let own = parameters(template, source);
            let mut bindings: Bindings = Vec::new();
            for (at, parameter) in own.iter().enumerate() {
                if parameter.pack {
                    break;
                }
                if at == all.len() {
                    let Some(bound) = self.default(parameter, &bindings, source) else {
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
    fn matches(
        &mut self,
        candidate: &Definition,
        arguments: &[Bound],
    ) -> Option<(usize, Bindings)> {
        let template = candidate.node(&["template_declaration"])?;
        let source = Source {
            parsed: &candidate.text,
            header: candidate.header,
            at: None,
            fixed: None,
            copied: None,
        };
        let parameters = parameters(template, source);
        let (inner, name) = templated(template)?;
        let bare = inner.kind() != "alias_declaration" && inner.field("body").is_none();
        if name.kind() != "template_type" {
            let bindings = self.bind_parameters(&parameters, arguments, source);
            return Some((usize::from(!bare), bindings));
        }
        if bare {
            return None;
        }
        // A specialisation: its arguments are patterns.
        let patterns = parts(name.field("arguments")?);
        let rest = patterns
            .last()
            .is_some_and(|last| last.kind() == "parameter_pack_expansion");
        if patterns.len() != arguments.len() && !(rest && arguments.len() + 1 >= patterns.len()) {
            return None;
        }
        let mut bindings: Bindings = Vec::new();
        let mut score = 2;
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
                && let Some(descriptor) = Some(*pattern).filter(|p| p.kind() == "type_descriptor")
                && self.deduce(descriptor, ty, &parameters, source, &mut bindings)
            {
                score += 1;
                continue;
            }
            // What earlier arguments bound holds in later ones: `X<T, enable_if_t<c<T>>>`.
            self.frames.push(super::Frame {
                scopes: vec![super::Scope::new()],
                bindings: bindings.clone(),
                this: None,
                result: super::Result::None,
                function: 0,
            });
            let bound = self.template_argument(*pattern, source);
            self.frames.pop();
            match bound {
                Some(ref bound) if bound == argument => score += 2,
                _ => return None,
            }
        }
        Some((score, bindings))
    }

    fn laid_out(
        &mut self,
        definition: &Definition,
        name: &str,
        bindings: &Bindings,
        this: Option<Expr>,
    ) -> Option<Type> {
        let template = definition.node(&["template_declaration"])?;
        let source = Source {
            parsed: &definition.text,
            header: definition.header,
            at: None,
            fixed: None,
            copied: None,
        };
        let (inner, _) = templated(template)?;
        self.frames.push(super::Frame {
            scopes: vec![super::Scope::new()],
            bindings: bindings.clone(),
            this,
            result: super::Result::None,
            function: 0,
        });
        self.unevaluated += 1;
        let found = if inner.kind() == "alias_declaration" {
            inner.field("type").map(|ty| self.base_type(ty, source))
        } else {
            self.structure(inner, source, Some((name, bindings)))
        };
        self.unevaluated -= 1;
        self.frames.pop();
        found
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
            } else if let Some(bound) = self.default(parameter, &bindings, source) {
                bindings.push((parameter.name.clone(), bound));
            }
        }
        bindings
    }

    /// The default of a parameter, which may name those before it.
    pub(super) fn default(
        &mut self,
        parameter: &Parameter,
        before: &Bindings,
        source: Source,
    ) -> Option<Bound> {
        let default = parameter.default?;
        self.frames.push(super::Frame {
            scopes: vec![super::Scope::new()],
            bindings: before.clone(),
            this: None,
            result: super::Result::None,
            function: 0,
        });
        let found = if parameter.is_type {
            Some(Bound::Type(self.base_type(default, source)))
        } else {
            self.constant_node(default, source).map(Bound::Value)
        };
        self.frames.pop();
        found
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
        let mut declarator = declared.field("declarator");
        while let Some(node) = declarator {
            match node.kind() {
                "pointer_declarator" | "abstract_pointer_declarator" => match ty.element() {
                    Some(element) => ty = element.clone(),
                    None => return false,
                },
                "array_declarator" | "abstract_array_declarator" => {
                    if let (Type::Array(_, Some(extent)), Some(size)) = (&ty, node.field("size")) {
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
            declarator = node.field("declarator").or_else(|| {
                matches!(
                    node.kind(),
                    "reference_declarator"
                        | "abstract_reference_declarator"
                        | "parenthesized_declarator"
                        | "abstract_parenthesized_declarator"
                )
                .then(|| node.named_child(0))
                .flatten()
            });
        }
        let Some(base) = declared.field("type") else {
            return false;
        };
        self.deduce_base(base, &ty, parameters, source, bindings)
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
            "qualified_identifier" => match base.field("name") {
                // `typename T::type` says nothing of T.
                Some(name) if name.kind() == "template_type" => {
                    self.deduce_base(name, ty, parameters, source, bindings)
                }
                _ => false,
            },
            "template_type" => {
                let (Some(list), Type::Struct(structure)) = (base.field("arguments"), ty) else {
                    return false;
                };
                let name = base.field("name").map_or("", |name| text_of(name, source));
                let mut given = match &structure.class {
                    Some(class) if self.names_class(name, class) => class
                        .bindings
                        .iter()
                        .map(|(_, bound)| bound.clone())
                        .collect(),
                    Some(_) => return false,
                    None => match library_arguments(structure, name) {
                        Some(arguments) => arguments,
                        None => return false,
                    },
                }
                .into_iter();
                if name == "index_sequence" {
                    given.next();
                }
                for pattern in parts(list) {
                    let text = text_of(pattern, source).trim();
                    if pattern.kind() == "parameter_pack_expansion" {
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
            "type_identifier" => {
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

    /// True where a template's name, an alias of a template among them, names that class.
    fn names_class(&self, name: &str, class: &crate::types::Class) -> bool {
        class.name == name || name == "index_sequence" && class.name == "integer_sequence"
    }

    /// Types that the standard library computes: `conditional<c, A, B>::type`.
    pub(super) fn trait_type(&mut self, scope: Node, name: Node, source: Source) -> Option<Type> {
        if text_of(name, source) != "type" || scope.kind() != "template_type" {
            return None;
        }
        let of = scope.field("name").map_or("", |of| text_of(of, source));
        let arguments = self.template_arguments(scope.field("arguments")?, source);
        library::trait_type(of, &arguments)
    }
}

/// The class or alias of a template, and its name.
pub(super) fn templated(template: Node<'_>) -> Option<(Node<'_>, Node<'_>)> {
    let inner = parts(template).into_iter().rfind(|part| {
        matches!(
            part.kind(),
            "struct_specifier"
                | "class_specifier"
                | "union_specifier"
                | "alias_declaration"
                | "declaration"
        )
    })?;
    let inner = match inner.kind() {
        "declaration" => inner.field("type")?,
        _ => inner,
    };
    Some((inner, inner.field("name")?))
}

pub(super) fn spell_instance(name: &str, arguments: &[Bound]) -> String {
    let arguments: Vec<String> = arguments.iter().map(spell).collect();
    format!("{name}<{}>", arguments.join(", "))
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

/// True where a type, or what it points to, is not known.
pub(super) fn is_open(ty: &Type) -> bool {
    match ty {
        Type::Unknown(_) => true,
        Type::Pointer(inner, _) | Type::Array(inner, _) => is_open(inner),
        _ => false,
    }
}

/// A template argument as text, to tell instances apart.
pub(super) fn spell(bound: &Bound) -> String {
    match bound {
        Bound::Type(ty) => spell_type(ty),
        Bound::Value(value) => value.to_string(),
        Bound::Template(name) => name.clone(),
        Bound::Pack(all) => all.iter().map(spell).collect::<Vec<_>>().join(", "),
    }
}

pub(super) fn spell_type(ty: &Type) -> String {
    match ty {
        Type::Void => "void".to_owned(),
        Type::Int { bits, signed } => format!("{}{bits}", if *signed { "i" } else { "u" }),
        Type::Float { bits } => format!("f{bits}"),
        Type::Pointer(inner, space) => {
            let space = match space {
                AddressSpace::Global => "*",
                AddressSpace::Shared => "*s",
                AddressSpace::Constant => "*c",
                AddressSpace::Private => "*p",
            };
            format!("{}{space}", spell_type(inner))
        }
        Type::Array(inner, extent) => format!("{}[{extent:?}]", spell_type(inner)),
        Type::Struct(structure) => structure.name.clone(),
        Type::Vector(inner, lanes) => format!("{}x{lanes}", spell_type(inner)),
        Type::Callable(callee) => format!("lambda {:x}", Arc::as_ptr(&callee.0) as usize),
        Type::Library(name) => name.to_string(),
        Type::Unknown(name) => name.clone(),
    }
}

impl Bound {
    /// As a user would write it.
    pub fn spelled(&self) -> String {
        match self {
            Bound::Type(ty) => written(ty),
            Bound::Value(value) => value.to_string(),
            Bound::Template(name) => name.clone(),
            Bound::Pack(all) => {
                let all: Vec<String> = all.iter().map(Bound::spelled).collect();
                all.join(", ")
            }
        }
    }
}

/// A type as a user would write it.
fn written(ty: &Type) -> String {
    match ty {
        Type::Int { bits, signed } => match (bits, signed) {
            (1, _) => "bool",
            (8, false) => "unsigned char",
            (8, true) => "char",
            (16, true) => "short",
            (16, false) => "unsigned short",
            (32, true) => "int",
            (32, false) => "unsigned int",
            (_, true) => "long long",
            (_, false) => "size_t",
        }
        .to_owned(),
        Type::Float { bits } => match bits {
            32 => "float",
            64 => "double",
            _ => "half",
        }
        .to_owned(),
        Type::Pointer(inner, _) => format!("{} *", written(inner)),
        Type::Vector(inner, lanes) => format!("{}{lanes}", written(inner)),
        // By what it is and not by where it lies: that would be another text each time.
        Type::Callable(_) => "lambda".to_owned(),
        ty => spell_type(ty),
    }
}
