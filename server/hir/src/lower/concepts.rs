//! Concepts: template parameters that they make types of, and whether they hold (C++20 13.7.9 [temp.concept]).

use warplens_ir::{Bindings, Bound};
use warplens_syntax::{Field, Kind, Node};

use super::candidate::Candidate;
use super::forms::{self, Parameter};
use super::instances::is_open;
use super::{Lowering, Source, parts};
use crate::definition::Definition;
use crate::namespaces::Name;

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
        let Some(template) = template else {
            return Constraints::None;
        };
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
            let value = self.under(bindings.clone(), candidate.this.clone(), |lowering| {
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
        let source = Source::of(&definition);
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

    /// True where `requires { typename T::type; }` asks for types alone and each is known.
    pub(super) fn has_required_types(&mut self, requires: Node, source: Source) -> bool {
        let asked = requires.field(Field::Requirements).map(parts);
        asked.into_iter().flatten().all(|requirement| {
            let of_requirement = parts(requirement);
            match requirement.kind() {
                Kind::TypeRequirement => of_requirement
                    .into_iter()
                    .all(|ty| !is_open(&self.base_type(ty, source))),
                // The semicolon behind `typename T::type` is one without an expression.
                _ => of_requirement.is_empty(),
            }
        })
    }
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
