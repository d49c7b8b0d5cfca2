//! Concepts: template parameters that they make types of, and whether they hold (C++20 13.7.9 [temp.concept]).

use warplens_ir::{Bindings, Bound, Expr, Storage, Type};
use warplens_syntax::{Field, Kind, Node};

use super::candidate::Candidate;
use super::forms::{self, Parameter};
use super::instances::is_open;
use super::{Lowering, Source, parts, text_of};
use crate::definition::Definition;
use crate::namespaces::Name;
use crate::types::class_of;

/// Those of the standard library that a kernel may name.
const STANDARD: [&str; 16] = [
    "integral",
    "signed_integral",
    "unsigned_integral",
    "floating_point",
    "same_as",
    "derived_from",
    "convertible_to",
    "invocable",
    "regular_invocable",
    "predicate",
    "default_initializable",
    "copyable",
    "movable",
    "regular",
    "equality_comparable",
    "totally_ordered",
];

/// What the constraints of a candidate say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Constraints {
    /// There are none.
    None,
    Hold,
    Fail,
    /// Something in them was not read.
    Untold,
}

impl Lowering<'_> {
    /// The parameters of a template; what a concept constrains is a type.
    pub(super) fn parameters<'t>(
        &self,
        template: Node<'t>,
        source: Source<'t>,
    ) -> Vec<Parameter<'t>> {
        let mut all = forms::parameters(template, source);
        for parameter in &mut all {
            parameter.constraint = parameter.constraint.filter(|constraint| {
                let written = written(*constraint, source);
                let name = Name::new(&written, source.space);
                let standard = name.path() == "std" && STANDARD.contains(&name.last);
                standard || !self.unit.concepts(name).is_empty()
            });
            parameter.is_type |= parameter.constraint.is_some();
        }
        all
    }

    /// Whether the concepts of a candidate's parameters, and its `requires` clause, hold with what these are bound to.
    pub(super) fn constraints(
        &mut self,
        candidate: &Candidate,
        bindings: &Bindings,
    ) -> Constraints {
        let definition = candidate.definition.clone();
        let source = Source::of(&definition);
        let template = definition
            .node(&[Kind::FunctionDefinition])
            .and_then(|function| function.parent())
            .filter(|parent| parent.kind() == Kind::TemplateDeclaration);
        match template {
            Some(template) => {
                self.constraints_of(template, source, bindings, candidate.this.clone())
            }
            None => Constraints::None,
        }
    }

    /// The same of a template.
    pub(super) fn constraints_of(
        &mut self,
        template: Node,
        source: Source,
        bindings: &Bindings,
        this: Option<Expr>,
    ) -> Constraints {
        let mut all: Vec<Option<bool>> = Vec::new();
        for parameter in self.parameters(template, source) {
            if let Some(concept) = parameter.constraint {
                let bound = bindings.iter().rev();
                let bound = bound.into_iter().find(|(name, _)| *name == parameter.name);
                all.push(bound.and_then(|(_, of)| self.holds(concept, of.clone(), source)));
            }
        }
        if let Some(clause) = super::child_of_kind(template, Kind::RequiresClause)
            // The parentheses of `requires (…)` are in the field as well.
            && let Some(asked) = clause.fields(Field::Constraint).find(Node::is_named)
        {
            let value = self.under(bindings.clone(), this, |lowering| {
                lowering.constant_node(asked, source)
            });
            all.push(value.map(|value| value != 0));
        }
        if all.is_empty() {
            Constraints::None
        } else if all.contains(&Some(false)) {
            Constraints::Fail
        } else if all.contains(&None) {
            Constraints::Untold
        } else {
            Constraints::Hold
        }
    }

    /// Whether a concept holds for a type, `Number T` or `Like<int> T`; `None` where that is not told.
    fn holds(&mut self, concept: Node, of: Bound, source: Source) -> Option<bool> {
        let definition = self.concept(concept, source)?;
        let mut arguments = vec![of];
        let last = last_of(concept);
        if let Some(list) = last.field(Field::Arguments) {
            arguments.extend(self.template_arguments(list, source));
        }
        self.satisfied(&definition, &arguments)
    }

    /// `name<arguments>` of a concept as a number.
    pub(super) fn concept_value(&mut self, node: Node, source: Source) -> Option<i64> {
        let list = last_of(node).field(Field::Arguments)?;
        let definition = self.concept(node, source)?;
        let arguments = self.template_arguments(list, source);
        self.satisfied(&definition, &arguments).map(i64::from)
    }

    /// The only concept that can be meant.
    fn concept(&self, node: Node, source: Source) -> Option<Definition> {
        let written = written(node, source);
        let mut found = self.unit.concepts(Name::new(&written, source.space));
        (found.len() == 1).then(|| found.pop()).flatten()
    }

    fn satisfied(&mut self, definition: &Definition, arguments: &[Bound]) -> Option<bool> {
        let template = definition.node(&[Kind::TemplateDeclaration])?;
        let source = Source::of(definition);
        let own = self.parameters(template, source);
        let bindings: Bindings = self.bind_parameters(&own, arguments, source);
        let concept = super::child_of_kind(template, Kind::ConceptDefinition)?;
        let value = parts(concept).into_iter().next_back()?;
        if self.frames.len() > super::DEEPEST_CALLS as usize {
            return None;
        }
        let value = self.under(bindings, None, |lowering| {
            lowering.constant_node(value, source)
        });
        value.map(|value| value != 0)
    }

    /// Whether what `requires (T t) { … }` asks for is valid; `None` where that is not told ([expr.prim.req]).
    pub(super) fn required(&mut self, requires: Node, source: Source) -> Option<bool> {
        let asked = requires.field(Field::Requirements).map(parts)?;
        let parameters = requires.field(Field::Parameters).map(parts);
        self.scoped(|lowering| {
            for parameter in parameters.unwrap_or_default() {
                let ty = lowering.parameter_type(parameter, source);
                if let Some(declarator) = parameter.field(Field::Declarator) {
                    let name = text_of(forms::innermost(declarator), source).to_owned();
                    let site = lowering.site(parameter, source);
                    lowering.new_var(&name, ty, Storage::Local, site);
                }
            }
            let mut all = Some(true);
            for requirement in asked {
                match lowering.is_met(requirement, source) {
                    Some(true) => {}
                    Some(false) => return Some(false),
                    None => all = None,
                }
            }
            all
        })
    }

    fn is_met(&mut self, requirement: Node, source: Source) -> Option<bool> {
        let of_requirement = parts(requirement);
        match requirement.kind() {
            Kind::TypeRequirement => {
                let [ty] = of_requirement.as_slice() else {
                    return None;
                };
                if !is_open(&self.base_type(*ty, source)) {
                    return Some(true);
                }
                let scope = text_of(ty.field(Field::Scope)?, source);
                let scope = self.type_named(scope, source.space)?;
                is_closed(&scope).then_some(false)
            }
            Kind::SimpleRequirement => match of_requirement.as_slice() {
                // The semicolon behind `typename T::type` is one without an expression.
                [] => Some(true),
                [expression] => self.is_valid(*expression, source),
                _ => None,
            },
            // `{ t.size() } -> std::integral`.
            Kind::CompoundRequirement => match of_requirement.as_slice() {
                [expression] => self.is_valid(*expression, source),
                [expression, ..] => self
                    .is_valid(*expression, source)
                    .filter(|is_valid| !is_valid),
                [] => None,
            },
            _ => None,
        }
    }

    /// Whether all types and members are there that a pattern of a specialisation names, `std::void_t<typename T::tag>`; `None`
    /// where that is not told ([temp.deduct]).
    pub(super) fn is_formed(&mut self, pattern: Node, source: Source) -> Option<bool> {
        let mut all = Some(true);
        let mut open = vec![pattern];
        while let Some(node) = open.pop() {
            let valid = match node.kind() {
                Kind::Decltype => {
                    let asked = node.named_child(0)?;
                    self.is_valid(asked, source)
                }
                Kind::QualifiedIdentifier if !is_open(&self.base_type(node, source)) => Some(true),
                Kind::QualifiedIdentifier if self.is_of_parameter(node, source) => {
                    let scope = text_of(node.field(Field::Scope)?, source);
                    let scope = self.type_named(scope, source.space)?;
                    is_closed(&scope).then_some(false)
                }
                Kind::TemplateType if names_enable_if(node, source) => {
                    let list = node.field(Field::Arguments)?;
                    match self.template_arguments(list, source).first() {
                        Some(Bound::Value(value)) => Some(*value != 0),
                        _ => None,
                    }
                }
                // An alias that asks for something itself.
                Kind::TemplateType
                    if self.names_template(node, source)
                        && is_open(&self.base_type(node, source)) =>
                {
                    None
                }
                _ => {
                    open.extend(parts(node));
                    continue;
                }
            };
            match valid {
                Some(true) => {}
                Some(false) => return Some(false),
                None => all = None,
            }
            // `std::void_t<…>` is a name with what it is given.
            if node.kind() == Kind::QualifiedIdentifier {
                open.extend(parts(node));
            }
        }
        all
    }

    fn names_template(&self, node: Node, source: Source) -> bool {
        let name = node.field(Field::Name).map(|name| text_of(name, source));
        name.is_some_and(|name| self.unit.has_template(name))
    }

    /// Whether a class has the member that an expression names; `None` for other expressions.
    fn is_valid(&mut self, expression: Node, source: Source) -> Option<bool> {
        let named = match expression.kind() {
            Kind::CallExpression => expression.field(Field::Function)?,
            _ => expression,
        };
        let (object, name) = match named.kind() {
            Kind::FieldExpression => {
                let object = named.field(Field::Argument)?;
                let object = self.unevaluated(|lowering| lowering.expr(object, source));
                (object, named.field(Field::Field)?)
            }
            Kind::QualifiedIdentifier => {
                let ty = self.scope_of(named, source)?;
                let site = self.site(named, source);
                (
                    super::split::list(&ty, Vec::new(), site),
                    named.field(Field::Name)?,
                )
            }
            _ => return None,
        };
        let name = text_of(name, source);
        match &object.ty {
            Type::Struct(structure) => {
                let class = class_of(structure)?;
                let has = self.member(&object, name, object.site).is_some()
                    || !self.methods(&class, name).is_empty()
                    || self.value_of_class(&class, name, object.site).is_some();
                (has || is_closed(&object.ty)).then_some(has)
            }
            ty => is_closed(ty).then_some(false),
        }
    }
}

/// `enable_if<…>`, `enable_if_t<…>`.
fn names_enable_if(node: Node, source: Source) -> bool {
    let name = node.field(Field::Name).map(|name| text_of(name, source));
    name.is_some_and(|name| matches!(name, "enable_if" | "enable_if_t"))
}

fn last_of(node: Node) -> Node {
    match node.field(Field::Name) {
        Some(inner) if node.kind() == Kind::QualifiedIdentifier => last_of(inner),
        _ => node,
    }
}

/// The name of a concept with its qualifiers, without its template arguments.
fn written(node: Node, source: Source) -> String {
    let last = last_of(node);
    let name = last.field(Field::Name).unwrap_or(last);
    let range = node.start_byte()..name.end_byte();
    let text = source.parsed.text.get(range).unwrap_or("");
    text.split_whitespace().collect()
}

/// True where all members of a type are known: a number has none.
fn is_closed(ty: &Type) -> bool {
    match ty {
        Type::Int { .. } | Type::Float { .. } => true,
        Type::Struct(structure) => class_of(structure).is_some_and(|class| {
            !structure.unread && class.bases.iter().all(|(base, _)| is_closed(base))
        }),
        _ => false,
    }
}
