//! Concepts: template parameters that they make types of, and whether they hold (C++20 13.7.9 [temp.concept]).

use warplens_ir::{Bindings, Bound};
use warplens_syntax::{Field, Kind, Node};

use super::forms::{self, Parameter};
use super::{Frame, Lowering, Result, Scope, Source, parts, text_of};
use crate::definition::Definition;

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
                let (name, path) = named(*constraint, source);
                let standard = path == ["std"] && STANDARD.contains(&name);
                standard || !self.unit.concepts(name).is_empty()
            });
            parameter.is_type |= parameter.constraint.is_some();
        }
        all
    }

    /// True where a parameter's concept, or a `requires` clause, does not hold in the frame's bindings. What cannot be told holds.
    pub(super) fn is_constrained_away(
        &mut self,
        template: Node,
        parameters: &[Parameter],
        source: Source,
    ) -> bool {
        for parameter in parameters {
            let bound = self.current().bindings.iter().rev();
            let bound = bound.into_iter().find(|(name, _)| *name == parameter.name);
            if let (Some(constraint), Some((_, bound))) = (parameter.constraint, bound) {
                let bound = bound.clone();
                if self.holds(constraint, bound, source) == Some(false) {
                    return true;
                }
            }
        }
        let clause = super::child_of_kind(template, Kind::RequiresClause);
        let clause = clause.and_then(|clause| clause.field(Field::Constraint));
        clause.is_some_and(|clause| self.constant_node(clause, source) == Some(0))
    }

    /// Whether a concept holds for a type, `Number T` or `Like<int> T`; `None` where that is not told.
    fn holds(&mut self, concept: Node, of: Bound, source: Source) -> Option<bool> {
        let (name, path) = named(concept, source);
        let definition = self.concept(name, &path)?;
        let mut arguments = vec![of];
        let last = last_of(concept);
        if let Some(list) = last.field(Field::Arguments) {
            arguments.extend(self.template_arguments(list, source));
        }
        self.satisfied(&definition, &arguments)
    }

    /// `name<arguments>` of a concept as a number.
    pub(super) fn concept_value(&mut self, node: Node, source: Source) -> Option<i64> {
        let (name, path) = named(node, source);
        let definition = self.concept(name, &path)?;
        let list = last_of(node).field(Field::Arguments)?;
        let arguments = self.template_arguments(list, source);
        self.satisfied(&definition, &arguments).map(i64::from)
    }

    /// The only concept that can be meant.
    fn concept(&self, name: &str, path: &[&str]) -> Option<Definition> {
        let mut found = self.unit.concepts(name);
        if found.len() > 1 {
            found.retain(|definition| is_within(definition, path));
        }
        (found.len() == 1).then(|| found.pop()).flatten()
    }

    fn satisfied(&mut self, definition: &Definition, arguments: &[Bound]) -> Option<bool> {
        let template = definition.node(&[Kind::TemplateDeclaration])?;
        let source = Source::new(&definition.text, definition.header);
        let own = self.parameters(template, source);
        let bindings: Bindings = self.bind_parameters(&own, arguments, source);
        let concept = super::child_of_kind(template, Kind::ConceptDefinition)?;
        let value = parts(concept).into_iter().next_back()?;
        if self.frames.len() > super::DEEPEST_CALLS as usize {
            return None;
        }
        self.frames.push(Frame {
            scopes: vec![Scope::new()],
            bindings,
            this: None,
            result: Result::None,
            function: 0,
        });
        let value = self.constant_node(value, source);
        self.frames.pop();
        value.map(|value| value != 0)
    }
}

fn last_of(node: Node) -> Node {
    match node.field(Field::Name) {
        Some(inner) if node.kind() == Kind::QualifiedIdentifier => last_of(inner),
        _ => node,
    }
}

/// The name of a concept and the namespaces before it.
fn named<'t>(node: Node<'t>, source: Source<'t>) -> (&'t str, Vec<&'t str>) {
    let mut path = Vec::new();
    let mut at = node;
    while at.kind() == Kind::QualifiedIdentifier {
        path.extend(at.field(Field::Scope).map(|scope| text_of(scope, source)));
        match at.field(Field::Name) {
            Some(inner) => at = inner,
            None => break,
        }
    }
    let name = at.field(Field::Name).unwrap_or(at);
    (text_of(name, source).trim(), path)
}

/// True where a definition is in these namespaces, the last of those around it.
fn is_within(definition: &Definition, path: &[&str]) -> bool {
    let Some(mut at) = definition.node(&[Kind::TemplateDeclaration]) else {
        return false;
    };
    let mut around = Vec::new();
    while let Some(parent) = at.parent() {
        if parent.kind() == Kind::NamespaceDefinition
            && let Some(name) = parent.field(Field::Name)
        {
            let name = &definition.text.text[name.byte_range()];
            around.extend(name.rsplit("::").map(|part| part.trim().to_owned()));
        }
        at = parent;
    }
    path.iter()
        .rev()
        .zip(around.iter())
        .all(|(one, other)| one == other)
        && path.len() <= around.len()
}
