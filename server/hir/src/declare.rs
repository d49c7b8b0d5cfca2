//! A [`Unit`] of what the items of a text declare.

use std::sync::Arc;

use warplens_syntax::{Expanded, Field, Kind, Node};

use crate::definition::{Definition, Within, node_ending};
use crate::lower::Lowering;
use crate::outline::{Item, ItemKind};
use crate::unit::{Found, Unit};

const DECLARATIONS: &[Kind] = &[
    Kind::StructSpecifier,
    Kind::ClassSpecifier,
    Kind::UnionSpecifier,
    Kind::EnumSpecifier,
    Kind::TypeDefinition,
    Kind::AliasDeclaration,
    Kind::Declaration,
    Kind::TemplateDeclaration,
];

impl Unit {
    /// Everything that these items of a text declare, in order, behind `earlier`.
    pub fn new(
        parsed: &Arc<Expanded>,
        items: &[Item],
        earlier: Option<Arc<Unit>>,
        header: bool,
    ) -> Unit {
        let earlier = earlier.or_else(|| crate::standard::library(parsed.language));
        let earlier = match earlier {
            Some(earlier) if parsed.text.contains("glm") => Some(crate::glm::behind(earlier)),
            earlier => earlier,
        };
        Unit::behind(parsed, items, earlier, header)
    }

    /// The same with nothing behind it but `earlier`.
    pub(crate) fn behind(
        parsed: &Arc<Expanded>,
        items: &[Item],
        earlier: Option<Arc<Unit>>,
        header: bool,
    ) -> Unit {
        let depth = earlier.as_ref().map_or(0, |unit| unit.depth) + 1;
        let mut unit = Unit {
            earlier,
            depth,
            ..Unit::empty(parsed.language)
        };
        // Functions first: a constant may be the value of one further down in a class.
        for item in items {
            if let ItemKind::Function(name) = &item.kind {
                let within = Within::item(parsed, item);
                let definition = Definition::new(parsed, item.range.clone(), header, within);
                unit.functions
                    .entry(name.clone())
                    .or_default()
                    .push(definition);
            }
        }
        for item in items {
            if item.kind == ItemKind::Declaration
                && let Some(node) = node_ending(parsed, &item.range, DECLARATIONS)
            {
                unit.declare(node, parsed, header, Within::item(parsed, item));
            }
        }
        unit
    }

    fn declare(&mut self, node: Node, parsed: &Arc<Expanded>, header: bool, within: Within) {
        match node.kind() {
            Kind::StructSpecifier
            | Kind::ClassSpecifier
            | Kind::UnionSpecifier
            | Kind::EnumSpecifier => {
                let found = Lowering::for_unit(self, parsed, header)
                    .inside(within)
                    .declared_type(node);
                self.take(found);
            }
            Kind::TypeDefinition | Kind::AliasDeclaration => {
                let found = Lowering::for_unit(self, parsed, header)
                    .inside(within)
                    .typedefs_at_file_scope(node);
                self.take(found);
            }
            Kind::Declaration => {
                let found = Lowering::for_unit(self, parsed, header)
                    .inside(within)
                    .file_variables(node);
                self.take(found);
            }
            Kind::TemplateDeclaration => {
                let inner = node.named_children().find(|child| {
                    matches!(
                        child.kind(),
                        Kind::StructSpecifier
                            | Kind::ClassSpecifier
                            | Kind::UnionSpecifier
                            | Kind::AliasDeclaration
                            | Kind::Declaration
                            | Kind::ConceptDefinition
                    )
                });
                let Some(inner) = inner else { return };
                let name = match inner.kind() {
                    Kind::Declaration => {
                        // A variable template, or a class defined with a declarator: rare; the class counts.
                        let Some(ty) = inner.field(Field::Type) else {
                            return;
                        };
                        if ty.field(Field::Body).is_none() {
                            self.declare_variable_template(node, inner, parsed, header, within);
                            return;
                        }
                        ty.field(Field::Name)
                    }
                    _ => inner.field(Field::Name),
                };
                let Some(name) = name else { return };
                let name = match name.kind() {
                    Kind::TemplateType => name.field(Field::Name).unwrap_or(name),
                    _ => name,
                };
                let name = parsed.text[name.byte_range()].to_owned();
                let definition = Definition::new(parsed, node.byte_range(), header, within);
                let all = match inner.kind() {
                    Kind::ConceptDefinition => &mut self.concepts,
                    _ => &mut self.templates,
                };
                all.entry(name).or_default().push(definition);
            }
            _ => {}
        }
    }

    fn declare_variable_template(
        &mut self,
        node: Node,
        inner: Node,
        parsed: &Arc<Expanded>,
        header: bool,
        within: Within,
    ) {
        let mut at = inner.field(Field::Declarator);
        while let Some(declarator) = at {
            match declarator.kind() {
                Kind::FunctionDeclarator => return,
                Kind::Identifier => {
                    let name = parsed.text[declarator.byte_range()].to_owned();
                    let definition = Definition::new(parsed, node.byte_range(), header, within);
                    // The primary template comes first.
                    self.variable_templates.entry(name).or_insert(definition);
                    return;
                }
                _ => at = declarator.field(Field::Declarator),
            }
        }
    }

    fn take(&mut self, found: Found) {
        self.types.extend(found.types);
        self.constants.extend(found.constants);
        self.globals.extend(found.globals);
        self.assumed.extend(found.assumed);
    }
}
