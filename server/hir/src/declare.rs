//! A [`Unit`] of what the items of a text declare.

use std::sync::Arc;

use warplens_syntax::{Expanded, Field, Kind, Node};

use crate::definition::{Definition, Within, node_ending};
use crate::lower::Lowering;
use crate::mentioned::Mentioned;
use crate::namespaces::{Leads, Space, Used, joined};
use crate::outline::{Item, ItemKind, function_declarator};
use crate::unit::{Found, Table, Unit};

const DECLARATIONS: &[Kind] = &[
    Kind::StructSpecifier,
    Kind::ClassSpecifier,
    Kind::UnionSpecifier,
    Kind::EnumSpecifier,
    Kind::TypeDefinition,
    Kind::AliasDeclaration,
    Kind::Declaration,
    Kind::TemplateDeclaration,
    Kind::UsingDeclaration,
    Kind::NamespaceAliasDefinition,
];

impl Unit {
    /// Everything that these items of a text declare, in order, behind `earlier` and the libraries that any of the text mentions.
    pub fn new(
        parsed: &Arc<Expanded>,
        items: &[Item],
        earlier: Option<Arc<Unit>>,
        header: bool,
    ) -> Unit {
        let earlier = earlier.or_else(|| crate::standard::library(parsed.language));
        let earlier = earlier.map(|earlier| Mentioned::by(&parsed.text).behind(earlier));
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
                let definition =
                    Definition::new(parsed, item.range.clone(), header, within, &item.space);
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
                unit.declare(node, parsed, header, item);
            }
        }
        unit
    }

    fn declare(&mut self, node: Node, parsed: &Arc<Expanded>, header: bool, item: &Item) {
        let within = Within::item(parsed, item);
        let space = &item.space;
        match node.kind() {
            Kind::StructSpecifier
            | Kind::ClassSpecifier
            | Kind::UnionSpecifier
            | Kind::EnumSpecifier => {
                let found = Lowering::for_unit(self, parsed, header)
                    .inside(within, space)
                    .declared_type(node);
                // `Mode::fast`, also where another enumeration has a `fast`.
                if node.kind() == Kind::EnumSpecifier
                    && let Some(name) = node.field(Field::Name)
                {
                    let own = joined(space, &parsed.text[name.byte_range()]);
                    declare_all(&mut self.constants, found.constants.clone(), &own);
                }
                self.take(found, space);
            }
            Kind::TypeDefinition | Kind::AliasDeclaration => {
                let found = Lowering::for_unit(self, parsed, header)
                    .inside(within, space)
                    .typedefs_at_file_scope(node);
                self.take(found, space);
            }
            Kind::Declaration => {
                let found = Lowering::for_unit(self, parsed, header)
                    .inside(within, space)
                    .file_variables(node);
                self.take(found, space);
                self.declare_prototype(node, parsed, header, item);
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
                            self.declare_guide(node, inner, parsed, header, item);
                            return;
                        };
                        if ty.field(Field::Body).is_none() {
                            self.declare_variable_template(node, inner, parsed, header, item);
                            self.declare_prototype(inner, parsed, header, item);
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
                let definition = Definition::new(parsed, node.byte_range(), header, within, space);
                let all = match inner.kind() {
                    Kind::ConceptDefinition => &mut self.concepts,
                    _ => &mut self.templates,
                };
                all.entry(name).or_default().push(definition);
            }
            Kind::UsingDeclaration | Kind::NamespaceAliasDefinition => {
                let leads = leads(&parsed.text[node.byte_range()]);
                let around = Arc::clone(space);
                self.used.extend(leads.map(|leads| Used { around, leads }));
            }
            _ => {}
        }
    }

    /// `template <class T> Box(T) -> Box<T>;`, a declaration without a type.
    fn declare_guide(
        &mut self,
        node: Node,
        inner: Node,
        parsed: &Arc<Expanded>,
        header: bool,
        item: &Item,
    ) {
        let declarator = inner
            .field(Field::Declarator)
            .filter(|declarator| declarator.kind() == Kind::FunctionDeclarator);
        let Some(name) = declarator.and_then(|declarator| declarator.field(Field::Declarator))
        else {
            return;
        };
        let name = parsed.text[name.byte_range()].to_owned();
        let within = Within::item(parsed, item);
        let definition = Definition::new(parsed, node.byte_range(), header, within, &item.space);
        self.guides.entry(name).or_default().push(definition);
    }

    /// `float f(float x, int n = 3);`: what a call may leave out.
    fn declare_prototype(&mut self, node: Node, parsed: &Arc<Expanded>, header: bool, item: &Item) {
        // Most declarations give none.
        if !parsed.text[node.byte_range()].contains('=') {
            return;
        }
        let Some(declarator) = function_declarator(node) else {
            return;
        };
        let (Some(name), Some(list)) = (
            declarator.field(Field::Declarator),
            declarator.field(Field::Parameters),
        ) else {
            return;
        };
        let gives = |param: Node| param.kind() == Kind::OptionalParameterDeclaration;
        if list.named_children().any(gives) {
            let name: String = parsed.text[name.byte_range()].split_whitespace().collect();
            let within = Within::item(parsed, item);
            let range = node.byte_range();
            let definition = Definition::new(parsed, range, header, within, &item.space);
            self.prototypes.entry(name).or_default().push(definition);
        }
    }

    fn declare_variable_template(
        &mut self,
        node: Node,
        inner: Node,
        parsed: &Arc<Expanded>,
        header: bool,
        item: &Item,
    ) {
        let within = Within::item(parsed, item);
        let mut at = inner.field(Field::Declarator);
        while let Some(declarator) = at {
            match declarator.kind() {
                Kind::FunctionDeclarator => return,
                Kind::Identifier => {
                    let name = parsed.text[declarator.byte_range()].to_owned();
                    let range = node.byte_range();
                    let definition = Definition::new(parsed, range, header, within, &item.space);
                    // The primary template comes first.
                    let all = self.variable_templates.entry(name).or_default();
                    all.push(definition);
                    return;
                }
                _ => at = declarator.field(Field::Declarator),
            }
        }
    }

    fn take(&mut self, found: Found, space: &Space) {
        declare_all(&mut self.types, found.types, space);
        declare_all(&mut self.constants, found.constants, space);
        declare_all(&mut self.globals, found.globals, space);
        declare_all(&mut self.tables, found.tables, space);
        self.assumed.extend(found.assumed);
    }
}

/// A later declaration in the same namespaces takes the place of the earlier one.
fn declare_all<T>(table: &mut Table<T>, found: Vec<(String, T)>, space: &Space) {
    for (name, declared) in found {
        let all = table.entry(name).or_default();
        match all.iter_mut().find(|(of, _)| of == space) {
            Some((_, earlier)) => *earlier = declared,
            None => all.push((Arc::clone(space), declared)),
        }
    }
}

/// Where a `using` declaration or directive, or a namespace's other name, leads.
fn leads(text: &str) -> Option<Leads> {
    let text = text.trim().trim_end_matches(';');
    let plain = |path: &str| -> String { path.split_whitespace().collect() };
    let plain = |path: &str| plain(path).trim_start_matches("::").to_owned();
    if let Some(rest) = text.strip_prefix("namespace") {
        let (alias, path) = rest.split_once('=')?;
        return Some(Leads::Alias {
            alias: plain(alias),
            path: plain(path),
        });
    }
    let rest = text.strip_prefix("using")?.trim_start();
    if let Some(path) = rest.strip_prefix("namespace") {
        return Some(Leads::Namespace(plain(path)));
    }
    let (path, last) = rest.rsplit_once("::")?;
    Some(Leads::Name {
        path: plain(path),
        last: plain(last),
    })
}
