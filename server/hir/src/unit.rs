//! What a file and its headers declare around kernels: types, constants, functions.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHasher};
use warplens_syntax::{Expanded, Field, Kind, Language, Node};

use crate::lower::Lowering;
use crate::types::class_of;
use crate::{Item, ItemKind};
use warplens_ir::Real;
use warplens_ir::{AddressSpace, Assumption, Type};

/// Where something is defined.
#[derive(Clone)]
pub struct Definition {
    /// The text.
    pub text: Arc<Expanded>,
    /// Its bytes in the expanded text.
    pub range: Range<usize>,
    /// A hash of those bytes.
    pub hash: u64,
    /// True in a header.
    pub header: bool,
}

impl fmt::Debug for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:?}", self.text.path.display(), self.range)
    }
}

impl Definition {
    pub(crate) fn new(text: &Arc<Expanded>, range: Range<usize>, header: bool) -> Definition {
        let hash = text_hash(&text.text[range.clone()]);
        Definition {
            text: Arc::clone(text),
            range,
            hash,
            header,
        }
    }

    /// The node of one of these kinds that ends where the definition ends.
    pub fn node(&self, kinds: &[Kind]) -> Option<Node<'_>> {
        node_ending(&self.text, &self.range, kinds)
    }
}

/// The hash by which a function is known while it moves about its file.
pub fn text_hash(text: &str) -> u64 {
    let mut hasher = FxHasher::default();
    text.hash(&mut hasher);
    hasher.finish()
}

/// The outermost node of one of these kinds that ends where the range ends and begins in it.
pub fn node_ending<'t>(
    parsed: &'t Expanded,
    range: &Range<usize>,
    kinds: &[Kind],
) -> Option<Node<'t>> {
    let root = parsed.tree.root_node();
    let mut node = root.descendant_for_byte_range(range.end.checked_sub(1)?, range.end)?;
    let mut found = None;
    loop {
        if node.start_byte() < range.start {
            return found;
        }
        if kinds.contains(&node.kind()) && node.end_byte() == range.end {
            found = Some(node);
        }
        match node.parent() {
            Some(parent) => node = parent,
            None => return found,
        }
    }
}

/// A constant at file scope.
#[derive(Debug, Clone, PartialEq)]
pub enum Constant {
    /// An integer.
    Int(i64, Type),
    /// Floating point; its value, where it is followed.
    Data(Option<Real>, Type),
}

/// What one text declares, and behind it what was declared before.
#[derive(Debug, Clone)]
pub struct Unit {
    /// The language.
    pub language: Language,
    earlier: Option<Arc<Unit>>,
    types: FxHashMap<String, Type>,
    constants: FxHashMap<String, Constant>,
    globals: FxHashMap<String, (Type, AddressSpace)>,
    functions: FxHashMap<String, Vec<Definition>>,
    templates: FxHashMap<String, Vec<Definition>>,
    variable_templates: FxHashMap<String, Definition>,
    assumed: Vec<Assumption>,
    /// Number of texts up to here.
    depth: u32,
}

impl Unit {
    /// A unit without declarations.
    pub fn empty(language: Language) -> Unit {
        Unit {
            language,
            earlier: None,
            types: FxHashMap::default(),
            constants: FxHashMap::default(),
            globals: FxHashMap::default(),
            functions: FxHashMap::default(),
            templates: FxHashMap::default(),
            variable_templates: FxHashMap::default(),
            assumed: Vec::new(),
            depth: 0,
        }
    }

    /// Everything that these items of a text declare, in order, behind `earlier`.
    pub fn new(
        parsed: &Arc<Expanded>,
        items: &[Item],
        earlier: Option<Arc<Unit>>,
        header: bool,
    ) -> Unit {
        let earlier = earlier.or_else(|| crate::standard::library(parsed.language));
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
        // Functions first: a constant may be the value of one that stands further down in a class.
        for item in items {
            if let ItemKind::Function(name) = &item.kind {
                let definition = Definition::new(parsed, item.range.clone(), header);
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
                unit.declare(node, parsed, header);
            }
        }
        unit
    }

    /// True where it declares nothing itself.
    pub fn is_bare(&self) -> bool {
        self.types.is_empty()
            && self.constants.is_empty()
            && self.globals.is_empty()
            && self.functions.is_empty()
            && self.templates.is_empty()
            && self.variable_templates.is_empty()
    }

    fn layers(&self) -> impl Iterator<Item = &Unit> {
        std::iter::successors(Some(self), |unit| unit.earlier.as_deref())
    }

    /// What was assumed to read the declarations.
    pub(crate) fn assumed(&self) -> impl Iterator<Item = &Assumption> {
        self.layers().flat_map(|unit| &unit.assumed)
    }

    pub(crate) fn ty(&self, name: &str) -> Option<&Type> {
        self.layers().find_map(|unit| unit.types.get(name))
    }

    pub fn constant(&self, name: &str) -> Option<&Constant> {
        self.layers().find_map(|unit| unit.constants.get(name))
    }

    pub(crate) fn global(&self, name: &str) -> Option<&(Type, AddressSpace)> {
        self.layers().find_map(|unit| unit.globals.get(name))
    }

    /// Every function of that name, the latest first.
    pub fn functions(&self, name: &str) -> Vec<Definition> {
        let mut found: Vec<Definition> = Vec::new();
        for unit in self.layers() {
            if let Some(some) = unit.functions.get(name) {
                found.extend(some.iter().rev().cloned());
            }
        }
        found
    }

    /// The functions of every text in the order of each text, the file's own first.
    pub(crate) fn functions_in_order(&self) -> impl Iterator<Item = (&str, &Definition)> {
        self.layers().flat_map(|unit| {
            let mut all: Vec<(&str, &Definition)> = unit
                .functions
                .iter()
                .flat_map(|(name, some)| some.iter().map(move |of| (name.as_str(), of)))
                .collect();
            all.sort_by_key(|(_, definition)| definition.range.start);
            all
        })
    }

    /// The classes of every text in the order of each text, the file's own first.
    pub(crate) fn classes_in_order(&self) -> impl Iterator<Item = (&str, &Type)> {
        self.layers().flat_map(|unit| {
            let mut all: Vec<(usize, &str, &Type)> = unit
                .types
                .iter()
                .filter_map(|(name, ty)| match ty {
                    Type::Struct(structure) => {
                        let class = class_of(structure)?;
                        Some((class.definition.range.start, name.as_str(), ty))
                    }
                    _ => None,
                })
                .collect();
            all.sort_by_key(|(start, name, _)| (*start, *name));
            all.into_iter().map(|(_, name, ty)| (name, ty))
        })
    }

    /// Every class template of that name with its specialisations, the latest first.
    pub(crate) fn templates(&self, name: &str) -> Vec<Definition> {
        let mut found: Vec<Definition> = Vec::new();
        for unit in self.layers() {
            if let Some(some) = unit.templates.get(name) {
                found.extend(some.iter().rev().cloned());
            }
        }
        found
    }

    /// The types of all device variables.
    pub(crate) fn global_types(&self) -> impl Iterator<Item = &Type> {
        self.layers()
            .flat_map(|unit| unit.globals.values().map(|(ty, _)| ty))
    }

    /// All types that are declared by name.
    pub(crate) fn types(&self) -> impl Iterator<Item = &Type> {
        self.layers().flat_map(|unit| unit.types.values())
    }

    /// The class templates that name a class before their members: those that may derive from it.
    pub(crate) fn templates_naming(&self, class: &str) -> Vec<String> {
        let mut found: Vec<String> = self
            .layers()
            .flat_map(|unit| &unit.templates)
            .filter(|(_, definitions)| {
                definitions.iter().any(|definition| {
                    let text = &definition.text.text[definition.range.clone()];
                    let head = &text[..text.find('{').unwrap_or(text.len())];
                    head.split_once(':')
                        .is_some_and(|(_, bases)| bases.contains(class))
                })
            })
            .map(|(name, _)| name.clone())
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    pub(crate) fn variable_template(&self, name: &str) -> Option<Definition> {
        self.layers()
            .find_map(|unit| unit.variable_templates.get(name))
            .cloned()
    }

    fn declare(&mut self, node: Node, parsed: &Arc<Expanded>, header: bool) {
        match node.kind() {
            Kind::StructSpecifier
            | Kind::ClassSpecifier
            | Kind::UnionSpecifier
            | Kind::EnumSpecifier => {
                let found = Lowering::for_unit(self, parsed, header).declared_type(node);
                self.take(found);
            }
            Kind::TypeDefinition | Kind::AliasDeclaration => {
                let found = Lowering::for_unit(self, parsed, header).typedefs_at_file_scope(node);
                self.take(found);
            }
            Kind::Declaration => {
                let found = Lowering::for_unit(self, parsed, header).file_variables(node);
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
                            self.declare_variable_template(node, inner, parsed, header);
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
                let definition = Definition::new(parsed, node.byte_range(), header);
                self.templates.entry(name).or_default().push(definition);
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
    ) {
        let mut at = inner.field(Field::Declarator);
        while let Some(declarator) = at {
            match declarator.kind() {
                Kind::FunctionDeclarator => return,
                Kind::Identifier => {
                    let name = parsed.text[declarator.byte_range()].to_owned();
                    let definition = Definition::new(parsed, node.byte_range(), header);
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

/// What a declaration at file scope declares.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) types: Vec<(String, Type)>,
    pub(crate) constants: Vec<(String, Constant)>,
    pub(crate) globals: Vec<(String, (Type, AddressSpace))>,
    /// What was assumed to read it.
    pub(crate) assumed: Vec<Assumption>,
}

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
