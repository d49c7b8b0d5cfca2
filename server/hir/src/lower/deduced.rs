//! Class templates that are written without arguments: what an object is made of says them (C++20 12.2.2.9
//! [over.match.class.deduct]).

use std::sync::Arc;

use warplens_ir::{AddressSpace, Bindings, Bound, Expr, Type};
use warplens_syntax::{Field, Kind, Node};

use super::blocks::decayed;
use super::forms::{Parameter, parameter_nodes, plain_parameters, templated};
use super::{Lowering, Source, child_of_kind, library, parts, text_of};
use crate::definition::Definition;
use crate::namespaces::{Name, is_standard};
use crate::outline::function_declarator;
use crate::types::class_of;

/// The ways a class template is deduced, each with what it gives.
type Ways = Vec<Option<Type>>;

impl Lowering<'_> {
    /// The instance that `Box b(x)` means; nothing where no way of making one is told, or several differ.
    pub(super) fn deduced_class(
        &mut self,
        written: &str,
        arguments: &[Expr],
        source: Source,
    ) -> Option<Type> {
        let name = Name::new(written, source.space);
        let candidates = self.unit.templates(name);
        if candidates.is_empty() {
            return deduced_of_library(name, arguments);
        }
        if let [only] = arguments
            && let Type::Struct(structure) = &only.ty
            && let Some(class) = class_of(structure)
            && candidates
                .iter()
                .any(|of| of.range == class.definition.range)
        {
            return Some(only.ty.clone());
        }
        let guides = self.unit.guides(name);
        let guided: Ways = guides
            .iter()
            .filter_map(|guide| self.by_guide(guide, arguments))
            .map(|ty| (!ty.is_unread()).then_some(ty))
            .collect();
        if !guided.is_empty() {
            return agreed(guided);
        }
        let mut ways = Ways::new();
        for candidate in &candidates {
            self.by_members(candidate, name, arguments, &mut ways);
        }
        agreed(ways)
    }

    /// The type of an object that is made of these arguments; of a class template its instance.
    pub(super) fn type_made(
        &mut self,
        ty: Type,
        written: Node,
        arguments: &[Expr],
        source: Source,
    ) -> Type {
        match ty {
            Type::Unknown(_) => self
                .deduced_class(text_of(written, source), arguments, source)
                .unwrap_or(ty),
            _ => ty,
        }
    }

    /// What a deduction guide gives, `template <class T> Box(T) -> Box<T>`; nothing where it does not take these arguments.
    fn by_guide(&mut self, guide: &Definition, arguments: &[Expr]) -> Option<Type> {
        let template = guide.node(&[Kind::TemplateDeclaration])?;
        let source = Source::of(guide);
        let declaration = child_of_kind(template, Kind::Declaration)?;
        let declarator = function_declarator(declaration)?;
        let params = plain_parameters(declarator.field(Field::Parameters)?, source);
        let own = self.parameters(template, source);
        let bindings = self.bound_by(&params, arguments, &own, source)?;
        let given = child_of_kind(declarator, Kind::TrailingReturnType)?;
        let given = parts(given).into_iter().next()?;
        Some(self.under(bindings, None, |lowering| lowering.base_type(given, source)))
    }

    /// What the constructors of a class template give, or its members in their order where it has none.
    fn by_members(
        &mut self,
        candidate: &Definition,
        name: Name,
        arguments: &[Expr],
        ways: &mut Ways,
    ) {
        let source = Source::of(candidate);
        let Some(template) = candidate.node(&[Kind::TemplateDeclaration]) else {
            return;
        };
        let Some((class, written)) = templated(template) else {
            return;
        };
        // Specialisations deduce nothing.
        let Some(body) = class.field(Field::Body) else {
            return;
        };
        if written.kind() == Kind::TemplateType {
            return;
        }
        let own = self.parameters(template, source);
        let constructors = constructors(body, name.last, source);
        if constructors.is_empty() {
            if child_of_kind(class, Kind::BaseClassClause).is_none()
                && let Some(bindings) = self.bound_by_members(body, arguments, &own, source)
            {
                ways.push(self.instance_bound(name, &own, bindings, source));
            }
            return;
        }
        for constructor in constructors {
            let mut all = self.parameters(template, source);
            if let Some(outer) = constructor
                .parent()
                .filter(|outer| outer.kind() == Kind::TemplateDeclaration)
            {
                all.extend(self.parameters(outer, source));
            }
            let Some(params) = parameter_nodes(constructor, source) else {
                continue;
            };
            if let Some(bindings) = self.bound_by(&params, arguments, &all, source) {
                ways.push(self.instance_bound(name, &own, bindings, source));
            }
        }
    }

    /// What parameters bind that take these arguments.
    fn bound_by(
        &mut self,
        params: &[Node],
        arguments: &[Expr],
        own: &[Parameter],
        source: Source,
    ) -> Option<Bindings> {
        let least = params
            .iter()
            .filter(|param| param.kind() == Kind::ParameterDeclaration)
            .count();
        let is_plain = params
            .iter()
            .all(|param| param.kind() != Kind::VariadicParameterDeclaration);
        if !is_plain || arguments.len() < least || arguments.len() > params.len() {
            return None;
        }
        let mut bindings = Bindings::new();
        for (param, argument) in params.iter().zip(arguments) {
            let ty = match &argument.ty {
                // By value an array is a pointer.
                Type::Array(element, _) if !text_of(*param, source).contains('&') => {
                    Type::Pointer(Arc::clone(element), AddressSpace::Global)
                }
                ty => ty.clone(),
            };
            self.deduce(*param, &ty, own, source, &mut bindings);
        }
        Some(bindings)
    }

    /// The same of the members of an aggregate, in their order.
    fn bound_by_members(
        &mut self,
        body: Node,
        arguments: &[Expr],
        own: &[Parameter],
        source: Source,
    ) -> Option<Bindings> {
        let mut bindings = Bindings::new();
        let mut left = arguments.iter();
        for member in parts(body) {
            if member.kind() != Kind::FieldDeclaration
                || super::forms::has_word(member, source, "static")
            {
                continue;
            }
            let declarators: Vec<Node> = member.fields(Field::Declarator).collect();
            for (at, declarator) in declarators.into_iter().enumerate() {
                let Some(argument) = left.next() else {
                    return Some(bindings);
                };
                // Only what the first declares is read with its declarator.
                if at == 0 || declarator.kind() == Kind::FieldIdentifier {
                    self.deduce(member, &argument.ty, own, source, &mut bindings);
                }
            }
        }
        left.next().is_none().then_some(bindings)
    }

    /// An instance whose every parameter is bound, or given by its default.
    fn instance_bound(
        &mut self,
        name: Name,
        own: &[Parameter],
        mut bindings: Bindings,
        source: Source,
    ) -> Option<Type> {
        let mut all = Vec::new();
        for parameter in own {
            let known = bindings.iter().find(|(of, _)| *of == parameter.name);
            let bound = match known {
                Some((_, bound)) => bound.clone(),
                None => {
                    let bound = self.default(parameter, &bindings, None, source)?;
                    bindings.push((parameter.name.clone(), bound.clone()));
                    bound
                }
            };
            all.push(bound);
        }
        self.instance(name, &all)
    }
}

/// What all ways give that give something.
fn agreed(ways: Ways) -> Option<Type> {
    let mut known = ways.into_iter().flatten();
    let first = known.next()?;
    known.all(|other| other == first).then_some(first)
}

/// The constructors in the body of a class.
fn constructors<'t>(body: Node<'t>, name: &str, source: Source<'t>) -> Vec<Node<'t>> {
    let functions = parts(body)
        .into_iter()
        .filter_map(|member| match member.kind() {
            Kind::FunctionDefinition => Some(member),
            Kind::TemplateDeclaration => child_of_kind(member, Kind::FunctionDefinition),
            _ => None,
        });
    functions
        .filter(|function| {
            function_declarator(*function)
                .and_then(|declarator| declarator.field(Field::Declarator))
                .is_some_and(|of| text_of(of, source).trim() == name)
        })
        .collect()
}

/// The standard library's classes that only hold what they are given.
fn deduced_of_library(name: Name, arguments: &[Expr]) -> Option<Type> {
    if !name.path().is_empty() && !is_standard(name.path()) {
        return None;
    }
    let types = arguments.iter().map(|argument| decayed(&argument.ty));
    let mut all: Vec<Bound> = types.map(Bound::Type).collect();
    match (name.last, all.as_slice()) {
        ("pair", [_, _]) | ("tuple", [_, ..]) => {}
        ("array", [first, rest @ ..]) if rest.iter().all(|other| other == first) => {
            let count = i64::try_from(all.len()).ok()?;
            all = vec![first.clone(), Bound::Value(count)];
        }
        _ => return None,
    }
    library::template_type(name.last, &all)
}
