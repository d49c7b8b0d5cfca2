//! What a file and its headers declare around kernels: types, constants, functions.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use warplens_syntax::Language;

use crate::definition::Definition;
use crate::types::class_of;
use warplens_ir::Real;
use warplens_ir::{AddressSpace, Assumption, Type};

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
    pub(crate) earlier: Option<Arc<Unit>>,
    pub(crate) types: FxHashMap<String, Type>,
    pub(crate) constants: FxHashMap<String, Constant>,
    pub(crate) globals: FxHashMap<String, (Type, AddressSpace)>,
    pub(crate) functions: FxHashMap<String, Vec<Definition>>,
    pub(crate) templates: FxHashMap<String, Vec<Definition>>,
    pub(crate) variable_templates: FxHashMap<String, Definition>,
    pub(crate) concepts: FxHashMap<String, Vec<Definition>>,
    pub(crate) assumed: Vec<Assumption>,
    /// Number of texts up to here.
    pub(crate) depth: u32,
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
            concepts: FxHashMap::default(),
            assumed: Vec::new(),
            depth: 0,
        }
    }

    /// True where it declares nothing itself.
    pub fn is_bare(&self) -> bool {
        self.types.is_empty()
            && self.constants.is_empty()
            && self.globals.is_empty()
            && self.functions.is_empty()
            && self.templates.is_empty()
            && self.variable_templates.is_empty()
            && self.concepts.is_empty()
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

    /// The class templates of every text in the order of each text, the file's own first.
    pub(crate) fn templates_in_order(&self) -> impl Iterator<Item = (&str, &Definition)> {
        self.layers().flat_map(|unit| {
            let mut all: Vec<(&str, &Definition)> = unit
                .templates
                .iter()
                .flat_map(|(name, some)| some.iter().map(move |of| (name.as_str(), of)))
                .collect();
            all.sort_by_key(|(_, definition)| definition.range.start);
            all
        })
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

    /// The concepts of that name, in whatever namespaces.
    pub(crate) fn concepts(&self, name: &str) -> Vec<Definition> {
        let found = self.layers().filter_map(|unit| unit.concepts.get(name));
        found.flatten().cloned().collect()
    }

    pub(crate) fn variable_template(&self, name: &str) -> Option<Definition> {
        self.layers()
            .find_map(|unit| unit.variable_templates.get(name))
            .cloned()
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
