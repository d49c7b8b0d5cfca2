//! What a file and its headers declare around kernels: types, constants, functions.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use warplens_syntax::Language;

use crate::definition::Definition;
use crate::namespaces::{Name, Space, Used};
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

/// What is declared by name, in whatever namespaces, the latest last.
pub(crate) type Table<T> = FxHashMap<String, Vec<(Space, T)>>;

/// What one text declares, and behind it what was declared before.
#[derive(Debug, Clone)]
pub struct Unit {
    /// The language.
    pub language: Language,
    pub(crate) earlier: Option<Arc<Unit>>,
    pub(crate) types: Table<Type>,
    pub(crate) constants: Table<Constant>,
    pub(crate) globals: Table<(Type, AddressSpace)>,
    /// The elements of constant arrays.
    pub(crate) tables: Table<Arc<[Constant]>>,
    pub(crate) functions: FxHashMap<String, Vec<Definition>>,
    /// Declarations of functions that give default arguments.
    pub(crate) prototypes: FxHashMap<String, Vec<Definition>>,
    pub(crate) templates: FxHashMap<String, Vec<Definition>>,
    pub(crate) variable_templates: FxHashMap<String, Vec<Definition>>,
    /// Deduction guides of class templates.
    pub(crate) guides: FxHashMap<String, Vec<Definition>>,
    pub(crate) concepts: FxHashMap<String, Vec<Definition>>,
    pub(crate) used: Vec<Used>,
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
            tables: FxHashMap::default(),
            functions: FxHashMap::default(),
            prototypes: FxHashMap::default(),
            templates: FxHashMap::default(),
            variable_templates: FxHashMap::default(),
            guides: FxHashMap::default(),
            concepts: FxHashMap::default(),
            used: Vec::new(),
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
            && self.prototypes.is_empty()
            && self.templates.is_empty()
            && self.variable_templates.is_empty()
            && self.guides.is_empty()
            && self.concepts.is_empty()
            && self.used.is_empty()
    }

    fn layers(&self) -> impl Iterator<Item = &Unit> {
        std::iter::successors(Some(self), |unit| unit.earlier.as_deref())
    }

    /// What was assumed to read the declarations.
    pub(crate) fn assumed(&self) -> impl Iterator<Item = &Assumption> {
        self.layers().flat_map(|unit| &unit.assumed)
    }

    pub(crate) fn ty(&self, name: Name) -> Option<&Type> {
        self.meant(|unit| &unit.types, name).map(|(_, ty)| ty)
    }

    pub(crate) fn constant(&self, name: Name) -> Option<&Constant> {
        self.meant(|unit| &unit.constants, name)
            .map(|(_, constant)| constant)
    }

    /// The constant of that name, in whatever namespace.
    pub fn any_constant(&self, name: &str) -> Option<&Constant> {
        self.constant(Name::new(name, ""))
    }

    /// A device variable, and the namespaces around it.
    pub(crate) fn global(&self, name: Name) -> Option<&(Space, (Type, AddressSpace))> {
        self.meant(|unit| &unit.globals, name)
    }

    /// The elements of a constant array.
    pub(crate) fn table(&self, name: Name) -> Option<&Arc<[Constant]>> {
        self.meant(|unit| &unit.tables, name)
            .map(|(_, table)| table)
    }

    /// The declaration that a name means, of several in the same namespaces the latest.
    fn meant<'u, T>(
        &'u self,
        table: impl Fn(&'u Unit) -> &'u Table<T>,
        name: Name,
    ) -> Option<&'u (Space, T)> {
        let declared = || {
            self.layers()
                .flat_map(|unit| table(unit).get(name.last).into_iter().flatten().rev())
        };
        let space = self.space_meant(name, declared().map(|(space, _)| space))?;
        declared().find(|(of, _)| of == space)
    }

    /// Which of these namespaces, of declarations of one name from the latest on, the name means: the nearest. Where none
    /// is near, something was not read that leads there, a `using` in a function or a header that is included in a
    /// namespace: then it is the only one, and for a name with qualifiers file scope. Of several none is guessed.
    pub(crate) fn space_meant<'d>(
        &self,
        name: Name,
        spaces: impl Iterator<Item = &'d Space>,
    ) -> Option<&'d Space> {
        let mut best: Option<(usize, &Space)> = None;
        let (mut several, mut outermost) = (false, None);
        for space in spaces {
            if let Some((_, known)) = best
                && known == space
            {
                continue;
            }
            let nearness = self.nearness(name, space);
            if nearness == name.nearest() {
                return Some(space);
            }
            several |= best.is_some();
            if space.is_empty() {
                outermost = Some(space);
            }
            if best.is_none_or(|(of, _)| nearness > of) {
                best = Some((nearness, space));
            }
        }
        match best? {
            (0, _) if !name.path().is_empty() => outermost.filter(|_| name.is_in_namespaces()),
            (0, _) if several => None,
            (_, space) => Some(space),
        }
    }

    /// How near a declaration in these namespaces is to a name; 0 where nothing leads to it.
    pub(crate) fn nearness(&self, name: Name, space: &str) -> usize {
        match name.nearness(space) {
            0 => {
                let mut used = self.layers().flat_map(|unit| &unit.used);
                usize::from(used.any(|used| used.leads(name, space)))
            }
            nearness => nearness,
        }
    }

    /// Of these those in the namespaces that a name means.
    fn of_meant(&self, name: Name, mut found: Vec<Definition>) -> Vec<Definition> {
        let spaces = found.iter().map(|definition| &definition.space);
        match self.space_meant(name, spaces).cloned() {
            Some(space) => found.retain(|definition| definition.space == space),
            None => found.clear(),
        }
        found
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

    /// Every declaration of a function of that name that gives default arguments, the latest first.
    pub(crate) fn prototypes(&self, name: &str) -> Vec<Definition> {
        let units = self.layers().filter_map(|unit| unit.prototypes.get(name));
        units.flat_map(|some| some.iter().rev().cloned()).collect()
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

    /// True where device variables in several namespaces have that name.
    pub(crate) fn has_several_globals(&self, name: &str) -> bool {
        let mut all = self
            .layers()
            .filter_map(|unit| unit.globals.get(name))
            .flatten();
        let first = all.next();
        first.is_some_and(|(space, _)| all.any(|(other, _)| other != space))
    }

    /// The classes of every text in the order of each text, the file's own first.
    pub(crate) fn classes_in_order(&self) -> impl Iterator<Item = (&str, &Type)> {
        self.layers().flat_map(|unit| {
            let mut all: Vec<(usize, &str, &Type)> = unit
                .types
                .iter()
                .flat_map(|(name, all)| all.iter().map(move |(_, ty)| (name, ty)))
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

    /// The class template that a name means with its specialisations, the latest first.
    pub(crate) fn templates(&self, name: Name) -> Vec<Definition> {
        let mut found: Vec<Definition> = Vec::new();
        for unit in self.layers() {
            if let Some(some) = unit.templates.get(name.last) {
                found.extend(some.iter().rev().cloned());
            }
        }
        self.of_meant(name, found)
    }

    /// The deduction guides of the class template that a name means.
    pub(crate) fn guides(&self, name: Name) -> Vec<Definition> {
        let found = self.layers().filter_map(|unit| unit.guides.get(name.last));
        self.of_meant(name, found.flatten().cloned().collect())
    }

    /// The namespaces around the class template that a name means.
    pub(crate) fn template_space(&self, name: Name) -> Option<Space> {
        let all = self
            .layers()
            .filter_map(|unit| unit.templates.get(name.last))
            .flat_map(|some| some.iter().rev());
        self.space_meant(name, all.map(|definition| &definition.space))
            .cloned()
    }

    /// A function that a name means.
    pub(crate) fn function_meant(&self, name: Name) -> Option<Definition> {
        let found = self.of_meant(name, self.functions(name.last));
        found.into_iter().next()
    }

    /// True where a class template has that name, in whatever namespace.
    pub(crate) fn has_template(&self, name: &str) -> bool {
        self.layers().any(|unit| unit.templates.contains_key(name))
    }

    /// True where a function has that name, in whatever namespace.
    pub(crate) fn has_function(&self, name: &str) -> bool {
        self.layers().any(|unit| unit.functions.contains_key(name))
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
            .flat_map(|unit| unit.globals.values().flatten().map(|(_, (ty, _))| ty))
    }

    /// All types that are declared by name.
    pub(crate) fn types(&self) -> impl Iterator<Item = &Type> {
        let tables = self.layers().flat_map(|unit| unit.types.values());
        tables.flatten().map(|(_, ty)| ty)
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

    /// The concepts that a name may mean.
    pub(crate) fn concepts(&self, name: Name) -> Vec<Definition> {
        let found = self
            .layers()
            .filter_map(|unit| unit.concepts.get(name.last));
        self.of_meant(name, found.flatten().cloned().collect())
    }

    /// The primary variable template that a name means.
    pub(crate) fn variable_template(&self, name: Name) -> Option<Definition> {
        let found = self
            .layers()
            .filter_map(|unit| unit.variable_templates.get(name.last));
        let found = self.of_meant(name, found.flatten().cloned().collect());
        found.into_iter().next()
    }
}

/// What a declaration at file scope declares.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) types: Vec<(String, Type)>,
    pub(crate) constants: Vec<(String, Constant)>,
    pub(crate) globals: Vec<(String, (Type, AddressSpace))>,
    pub(crate) tables: Vec<(String, Arc<[Constant]>)>,
    /// What was assumed to read it.
    pub(crate) assumed: Vec<Assumption>,
}
