//! Types as declarations write them.

use std::sync::Arc;

use warplens_syntax::{Field, Kind, Node, has_word};

use super::constants::{constant, real, rounded};
use super::forms::space_of;
use super::{Lowering, Named, Source, library, literals, parts, text_of};
use crate::namespaces::{Name, joined};
use crate::types::class_of;
use crate::unit::{Constant, Found};
use warplens_ir::Bound;
use warplens_ir::{AddressSpace, Site, Type};

/// Qualifiers of more bytes are not read.
pub(super) const LONGEST_PATH: usize = 1_000;

/// What a declarator declares.
pub(super) struct Declared {
    pub(super) name: String,
    pub(super) ty: Type,
    /// Sites of array extents, outermost first.
    pub(super) extents: Vec<Site>,
    /// `&` or `&&`.
    pub(super) reference: bool,
}

impl Lowering<'_> {
    /// A type by name: local, a template parameter, a member of the class being read, the unit's, built in.
    pub(super) fn type_named(&mut self, name: &str, space: &str) -> Option<Type> {
        let name = name.trim();
        let name = name.strip_prefix("const ").unwrap_or(name).trim();
        let last = name.rsplit("::").next().unwrap_or(name);
        if let Some(own) = self.of_glm(name, last)
            && let Some(ty) = self.unit.ty(Name::new(&own, ""))
        {
            return Some(ty.clone());
        }
        self.type_meant(Name::new(name, space))
            .or_else(|| library::cub_operator(name))
    }

    /// The same where the name is read already.
    pub(super) fn type_meant(&mut self, written: Name) -> Option<Type> {
        let name = written.last;
        if written.path().is_empty() {
            if let Some(Named::Type(ty)) = self.named(name) {
                return Some(ty.clone());
            }
            if let Some((_, Bound::Type(ty))) = self
                .current()
                .bindings
                .iter()
                .rev()
                .find(|(of, _)| of == name)
            {
                return Some(self.settled(ty));
            }
            if let Some(ty) = self.type_of_this_class(name) {
                return Some(ty);
            }
        }
        if let Some(ty) = self.unit.ty(written) {
            return Some(ty.clone());
        }
        Type::named(name, self.opencl())
            .or_else(|| literals::sized(name))
            .or_else(|| library::type_named(name))
    }

    /// A type that was being laid out when it was named: `struct A : Base<A>`.
    fn settled(&self, ty: &Type) -> Type {
        let Type::Unknown(name) = ty else {
            return ty.clone();
        };
        let laid_out = self.instances.get(name);
        let laid_out = laid_out.or_else(|| self.unit.ty(Name::new(name, "")));
        laid_out.unwrap_or(ty).clone()
    }

    pub(super) fn base_type(&mut self, node: Node, source: Source) -> Type {
        if self.types_open > super::DEEPEST {
            return Type::Unknown(String::new());
        }
        self.types_open += 1;
        let ty = self.read_type(node, source);
        self.types_open -= 1;
        ty
    }

    fn read_type(&mut self, node: Node, source: Source) -> Type {
        match node.kind() {
            Kind::PipeSpecifier => Type::Library("pipe".into()),
            Kind::StructSpecifier | Kind::ClassSpecifier | Kind::UnionSpecifier => {
                if node.field(Field::Body).is_some()
                    && let Some(ty) = self.structure(node, source, None)
                {
                    return ty;
                }
                match node.field(Field::Name) {
                    Some(name) => self.base_type(name, source),
                    None => Type::Unknown(String::new()),
                }
            }
            Kind::EnumSpecifier => {
                if node.field(Field::Body).is_some() {
                    self.bind_enumeration(node, source);
                }
                self.enum_type(node, source)
            }
            Kind::TypeDescriptor => {
                let base = match node.field(Field::Type) {
                    Some(ty) => self.base_type(ty, source),
                    None => Type::Unknown(String::new()),
                };
                let space = space_of(node, source).unwrap_or(self.default_space());
                match node.field(Field::Declarator) {
                    Some(declarator) => self.declarator(declarator, base, space, source).ty,
                    None => base,
                }
            }
            Kind::TemplateType | Kind::TemplateFunction => self.template_type(node, "", source),
            Kind::QualifiedIdentifier => self.qualified_type(node, "", source),
            Kind::DependentType => match node.named_child(0) {
                Some(inner) => self.base_type(inner, source),
                None => Type::Unknown(String::new()),
            },
            Kind::Decltype => match node.named_child(0) {
                Some(inner) if inner.kind() != Kind::Auto => {
                    self.unevaluated(|lowering| lowering.expr(inner, source).ty)
                }
                _ => Type::Unknown("auto".to_owned()),
            },
            Kind::PlaceholderTypeSpecifier | Kind::Auto => Type::Unknown("auto".to_owned()),
            _ => {
                let name = text_of(node, source);
                self.type_named(name, source.space)
                    .or_else(|| self.type_around(node, name, source))
                    .or_else(|| self.type_from_the_build(name))
                    .unwrap_or_else(|| Type::Unknown(name.to_owned()))
            }
        }
    }

    /// The type that a block or a class around the name calls so: of a method that nothing makes an instance of, and of the
    /// function that a lambda is written in.
    pub(super) fn type_around(&mut self, node: Node, name: &str, source: Source) -> Option<Type> {
        // The parent of a node is looked for from the root: only where the text says such a name at all.
        let text = &source.parsed.text;
        if !text.contains(&format!("using {name}")) && !text.contains(&format!(" {name};")) {
            return None;
        }
        let mut around = std::iter::successors(node.parent(), Node::parent);
        around.find_map(|block| {
            let holds = matches!(
                block.kind(),
                Kind::FieldDeclarationList | Kind::CompoundStatement
            );
            let mut members = if holds { parts(block) } else { Vec::new() }.into_iter();
            members.find_map(|member| {
                let is_alias =
                    matches!(member.kind(), Kind::TypeDefinition | Kind::AliasDeclaration);
                if !is_alias
                    || member.end_byte() > node.start_byte()
                    || !has_word(text_of(member, source), name)
                {
                    return None;
                }
                let named = self.typedefs(member, source);
                let found = named.into_iter().find(|(of, _)| of == name);
                found.map(|(_, ty)| ty).filter(|ty| !ty.is_unread())
            })
        })
    }

    /// The type that a class calls so, `Outer::Inner::type` in its classes.
    fn type_within(&mut self, class: &Type, name: Node, source: Source) -> Option<Type> {
        if let Type::Library(of) = class
            && of.starts_with("cub ")
        {
            return Some(Type::Library("cub storage".into()));
        }
        match name.kind() {
            Kind::QualifiedIdentifier => {
                let outer = self.type_within(class, name.field(Field::Scope)?, source)?;
                self.type_within(&outer, name.field(Field::Name)?, source)
            }
            Kind::DependentName => self.type_within(class, name.named_child(0)?, source),
            Kind::TemplateType | Kind::TemplateFunction => {
                let Type::Struct(structure) = class else {
                    return None;
                };
                let class = class_of(structure)?;
                let arguments = self.template_arguments(name.field(Field::Arguments)?, source);
                let name = text_of(name.field(Field::Name)?, source);
                self.instance_in(&class, name, &arguments)
            }
            _ => self.type_of_class(class, text_of(name, source)),
        }
    }

    /// `a::b`, behind the qualifiers `outer`.
    fn qualified_type(&mut self, node: Node, outer: &str, source: Source) -> Type {
        let name = node.field(Field::Name);
        let scope = node.field(Field::Scope);
        if let (Some(name), Some(scope)) = (name, scope) {
            let path = joined(outer, text_of(scope, source));
            let is_class = scope.kind() == Kind::TemplateType || {
                match self.type_named(&path, source.space) {
                    Some(Type::Struct(structure)) => structure.class.is_some(),
                    Some(Type::Library(of)) => of.starts_with("cub "),
                    _ => false,
                }
            };
            if is_class {
                if let Some(ty) = self.trait_type(scope, name, source) {
                    return ty;
                }
                let class = match self.type_named(&path, source.space) {
                    Some(class) => class,
                    None if scope.kind() == Kind::TemplateType => {
                        self.template_type(scope, outer, source)
                    }
                    None => self.base_type(scope, source),
                };
                if let Some(ty) = self.type_within(&class, name, source) {
                    return ty;
                }
            }
            if self.is_of_parameter(node, source) {
                return Type::Unknown(text_of(node, source).to_owned());
            }
            if let Some(operator) = library::cub_operator(text_of(node, source)) {
                return operator;
            }
            if text_of(scope, source) == "glm" {
                return self.type_of_glm(name, source);
            }
            return match name.kind() {
                Kind::QualifiedIdentifier if path.len() <= LONGEST_PATH => {
                    self.qualified_type(name, &path, source)
                }
                Kind::TemplateType | Kind::TemplateFunction => {
                    self.template_type(name, &path, source)
                }
                Kind::Identifier | Kind::TypeIdentifier => {
                    let text = text_of(name, source);
                    let full = joined(&path, text);
                    self.type_named(&full, source.space)
                        .or_else(|| self.type_from_the_build(text))
                        .unwrap_or_else(|| Type::Unknown(full.to_string()))
                }
                _ => self.base_type(name, source),
            };
        }
        match name {
            // `::a`.
            Some(name) if matches!(name.kind(), Kind::Identifier | Kind::TypeIdentifier) => {
                let text = text_of(node, source);
                self.type_named(text, source.space)
                    .unwrap_or_else(|| Type::Unknown(text.to_owned()))
            }
            Some(name) => self.base_type(name, source),
            None => Type::Unknown(text_of(node, source).to_owned()),
        }
    }

    /// `glm::vec3`, `glm::vec<3, float>`.
    fn type_of_glm(&mut self, name: Node, source: Source) -> Type {
        let list = name.field(Field::Arguments);
        let template = name.field(Field::Name).unwrap_or(name);
        let own = crate::glm::declared(text_of(template, source));
        let found = match list {
            Some(list) => {
                let mut arguments = self.template_arguments(list, source);
                // `glm::vec<3, float, glm::highp>`.
                arguments.retain(|argument| {
                    !matches!(argument, Bound::Type(Type::Unknown(_)) | Bound::Template(_))
                });
                self.instance(Name::new(&own, ""), &arguments)
            }
            None => self.unit.ty(Name::new(&own, "")).cloned(),
        };
        found.unwrap_or_else(|| self.base_type(name, source))
    }

    pub(super) fn default_space(&self) -> AddressSpace {
        if self.opencl() {
            AddressSpace::Private
        } else {
            AddressSpace::Global
        }
    }

    /// The declared name and its type.
    pub(super) fn declarator(
        &mut self,
        node: Node,
        base: Type,
        space: AddressSpace,
        source: Source,
    ) -> Declared {
        if self.types_open > super::DEEPEST {
            return Declared {
                name: String::new(),
                ty: Type::Unknown(String::new()),
                extents: Vec::new(),
                reference: false,
            };
        }
        self.types_open += 1;
        let declared = self.read_declarator(node, base, space, source);
        self.types_open -= 1;
        declared
    }

    fn read_declarator(
        &mut self,
        node: Node,
        base: Type,
        space: AddressSpace,
        source: Source,
    ) -> Declared {
        let plain = |ty: Type| Declared {
            name: String::new(),
            ty,
            extents: Vec::new(),
            reference: false,
        };
        match node.kind() {
            Kind::PointerDeclarator
            | Kind::AbstractPointerDeclarator
            | Kind::PointerTypeDeclarator => {
                let ty = Type::Pointer(Arc::new(base), space);
                let next = space_of(node, source).unwrap_or(self.default_space());
                match node.field(Field::Declarator) {
                    Some(inner) => self.declarator(inner, ty, next, source),
                    None => plain(ty),
                }
            }
            Kind::ArrayDeclarator | Kind::AbstractArrayDeclarator => {
                let size = node.field(Field::Size);
                let extent = size
                    .and_then(|size| {
                        let size = self.expr(size, source);
                        constant(&size)
                    })
                    .and_then(|extent| u64::try_from(extent).ok());
                let site = size.map(|size| self.site(size, source));
                let ty = Type::Array(Arc::new(base), extent);
                // The inner declarator is the outer dimension: a[2][3] is (a[2])[3].
                let mut declared = match node.field(Field::Declarator) {
                    Some(inner) => self.declarator(inner, ty, space, source),
                    None => plain(ty),
                };
                declared.extents.extend(site);
                declared
            }
            Kind::ReferenceDeclarator | Kind::AbstractReferenceDeclarator => {
                let inner = parts(node).into_iter().next_back();
                let mut declared = match inner {
                    Some(inner) if inner.kind() != Kind::TypeQualifier => {
                        self.declarator(inner, base, space, source)
                    }
                    _ => plain(base),
                };
                declared.reference = true;
                declared
            }
            Kind::ParenthesizedDeclarator
            | Kind::AttributedDeclarator
            | Kind::VariadicDeclarator
            | Kind::AbstractParenthesizedDeclarator => {
                match parts(node)
                    .into_iter()
                    .find(|part| part.kind().is_declarator() || part.kind().is_identifier())
                {
                    Some(inner) => self.declarator(inner, base, space, source),
                    None => plain(base),
                }
            }
            Kind::InitDeclarator | Kind::BitfieldClause => match node.field(Field::Declarator) {
                Some(inner) => self.declarator(inner, base, space, source),
                None => plain(base),
            },
            Kind::FunctionDeclarator
            | Kind::AbstractFunctionDeclarator
            | Kind::BlockPointerDeclarator => {
                let ty = Type::Unknown("function".to_owned());
                match node.field(Field::Declarator) {
                    Some(inner) => {
                        let function = super::function_types::function_type();
                        let found = self.declarator(inner, function.clone(), space, source);
                        // A pointer to a function, unless it is a function.
                        let ty = if found.ty == function { ty } else { found.ty };
                        Declared { ty, ..found }
                    }
                    None => plain(ty),
                }
            }
            _ => Declared {
                name: text_of(node, source).to_owned(),
                ..plain(base)
            },
        }
    }

    /// `typedef … name;` and `using name = …;`.
    pub(super) fn typedefs(&mut self, node: Node, source: Source) -> Vec<(String, Type)> {
        let Some(ty) = node.field(Field::Type) else {
            return Vec::new();
        };
        let base = self.base_type(ty, source);
        let base = self.short_vector(node, base, source);
        if node.kind() == Kind::AliasDeclaration {
            let name = node
                .field(Field::Name)
                .map_or("", |name| text_of(name, source));
            return vec![(name.to_owned(), base)];
        }
        let space = space_of(node, source).unwrap_or(self.default_space());
        let declarators: Vec<Node> = node.fields(Field::Declarator).collect();
        declarators
            .into_iter()
            .map(|declarator| {
                let declared = self.declarator(declarator, base.clone(), space, source);
                let ty = match declared.ty {
                    Type::Struct(structure) if structure.name.is_empty() => {
                        Type::Struct(Arc::new(warplens_ir::Struct {
                            name: declared.name.clone(),
                            ..(*structure).clone()
                        }))
                    }
                    ty => ty,
                };
                (declared.name, ty)
            })
            .collect()
    }

    /// A vector of the compiler's own: `__attribute__((ext_vector_type(4)))`, `__vector_size__(16)`.
    fn short_vector(&mut self, node: Node, base: Type, source: Source) -> Type {
        if !base.is_int() && !base.is_float() {
            return base;
        }
        let range = node.byte_range();
        let text = text_of(node, source);
        let words = source.parsed.words.iter();
        let words = words.filter(|word| range.contains(&word.range.start));
        let said = words.map(|word| format!("{}{}", word.name, word.argument));
        let said: Vec<String> = said.chain([text.to_owned()]).collect();
        for (attribute, bytes) in [("ext_vector_type", false), ("vector_size", true)] {
            let Some(count) = said.iter().find_map(|text| {
                let (_, rest) = text.split_once(attribute)?;
                let rest = rest.trim_start_matches('_').trim_start();
                let inner = super::classes::enclosed(rest);
                self.constant_text(inner)
            }) else {
                continue;
            };
            let count = if bytes {
                count / base.size().max(1).cast_signed()
            } else {
                count
            };
            return match u8::try_from(count) {
                Ok(lanes @ 1..=64) => Type::Vector(Arc::new(base), lanes),
                _ => base,
            };
        }
        base
    }

    // ---- file scope ----------------------------------------------------------------------------

    fn at_file_scope<T>(&mut self, read: impl FnOnce(&mut Self, Source) -> T) -> Option<T> {
        let (parsed, header) = self.own.clone()?;
        let space = Arc::clone(&self.space);
        let source = Source {
            space: &space,
            ..Source::new(&parsed, header)
        };
        Some(read(self, source))
    }

    /// A structure or enumeration.
    pub(crate) fn declared_type(mut self, node: Node) -> Found {
        let mut found = Found::default();
        self.at_file_scope(|lowering, source| {
            if node.kind() == Kind::EnumSpecifier {
                found.constants = lowering.enumeration(node, source);
                let ty = lowering.enum_type(node, source);
                if let Some(name) = node.field(Field::Name) {
                    let name = text_of(name, source).to_owned();
                    found.types.push((name, ty));
                }
            } else {
                lowering.structure(node, source, None);
            }
        });
        found.types.append(&mut self.declared);
        found.assumed = self.assumed;
        found
    }

    /// `typedef` and `using`.
    pub(crate) fn typedefs_at_file_scope(mut self, node: Node) -> Found {
        let mut found = Found::default();
        self.at_file_scope(|lowering, source| {
            if let Some(ty) = node.field(Field::Type)
                && ty.kind() == Kind::EnumSpecifier
            {
                found.constants = lowering.enumeration(ty, source);
            }
            found.types = lowering.typedefs(node, source);
        });
        let mut declared = std::mem::take(&mut self.declared);
        declared.append(&mut found.types);
        found.types = declared;
        found.assumed = std::mem::take(&mut self.assumed);
        found
    }

    /// Constants and device variables of a declaration.
    pub(crate) fn file_variables(mut self, node: Node) -> Found {
        let mut found = Found::default();
        self.at_file_scope(|lowering, source| {
            let Some(type_node) = node.field(Field::Type) else {
                return;
            };
            if type_node.kind() == Kind::EnumSpecifier {
                found.constants = lowering.enumeration(type_node, source);
            }
            let base = lowering.base_type(type_node, source);
            let head = text_of(node, source);
            let head = &head[..head.find(['=', ';', '[', '{']).unwrap_or(head.len())];
            let words = |word: &str| has_word(head, word);
            let opencl_space = space_of(node, source);
            let constant_data = words("const") || words("constexpr");
            let space = if words("__shared__") {
                Some(AddressSpace::Shared)
            } else if words("__constant__") || opencl_space == Some(AddressSpace::Constant) {
                Some(AddressSpace::Constant)
            } else if words("__device__")
                || words("__managed__")
                || opencl_space == Some(AddressSpace::Global)
            {
                Some(AddressSpace::Global)
            } else {
                None
            };
            let declarators: Vec<Node> = node.fields(Field::Declarator).collect();
            for declarator in declarators {
                if declarator.kind() == Kind::FunctionDeclarator
                    && !super::forms::points_to_function(declarator)
                {
                    // `constexpr int n(a * b);` reads as the declaration of a function.
                    if constant_data
                        && base.is_int()
                        && let Some(list) = declarator.field(Field::Parameters)
                        && let Some(name) = declarator.field(Field::Declarator)
                        && let Some(value) = lowering.constant_text_in(text_of(list, source))
                    {
                        let name = text_of(name, source).to_owned();
                        lowering.bind_constant(&name, value, base.clone());
                        found
                            .constants
                            .push((name, Constant::Int(value, base.clone())));
                    }
                    continue;
                }
                let declared =
                    lowering.declarator(declarator, base.clone(), AddressSpace::Global, source);
                let (name, mut ty) = (declared.name, declared.ty);
                let value = declarator.field(Field::Value);
                if let (Type::Array(element, None), Some(value)) = (&ty, value)
                    && value.kind() == Kind::InitializerList
                {
                    ty = Type::Array(Arc::clone(element), Some(parts(value).len() as u64));
                }
                if constant_data
                    && let Some(value) = value
                    && let Some(table) = lowering.table(&ty, value, source)
                {
                    found.tables.push((name.clone(), table));
                }
                if let Some(value) = value
                    && super::function_types::holds_functions(&ty)
                {
                    let read = lowering.unevaluated(|lowering| lowering.expr(value, source));
                    if let Some(known) = super::function_types::refined(&ty, &[read]) {
                        ty = known;
                    }
                }
                let scalar = ty.is_int() || matches!(&ty, Type::Unknown(name) if name == "auto");
                if constant_data && scalar && value.is_some() {
                    let value = value.and_then(|value| {
                        let read = lowering.unevaluated(|lowering| lowering.expr(value, source));
                        if read.ty.is_float() && !ty.is_int() {
                            ty = read.ty;
                            return None;
                        }
                        let value = constant(&read)?;
                        Some((value, if ty.is_int() { ty.clone() } else { read.ty }))
                    });
                    if let Some((value, ty)) = value {
                        lowering.bind_constant(&name, value, ty.clone());
                        found.constants.push((name, Constant::Int(value, ty)));
                        continue;
                    }
                }
                if constant_data && ty.is_float() && space.is_none() {
                    let value = value.and_then(|value| {
                        let read = lowering.unevaluated(|lowering| lowering.expr(value, source));
                        real(&read)
                    });
                    let value = value.map(|value| rounded(value, &ty).into());
                    lowering.bind_number(&name, warplens_ir::ExprKind::Float(value), ty.clone());
                    found.constants.push((name, Constant::Data(value, ty)));
                } else if let Some(space) = space {
                    found.globals.push((name, (ty, space)));
                } else if constant_data && !matches!(ty, Type::Pointer(..)) {
                    // A table that device code may read: the compiler puts it into constant memory.
                    found.globals.push((name, (ty, AddressSpace::Constant)));
                } else if let Type::Library(_) = ty {
                    // Texture references.
                    found.globals.push((name, (ty, AddressSpace::Global)));
                }
            }
        });
        let mut declared = std::mem::take(&mut self.declared);
        declared.append(&mut found.types);
        found.types = declared;
        found.assumed = std::mem::take(&mut self.assumed);
        found
    }

    /// A name that is a number from here on.
    pub(super) fn bind_constant(&mut self, name: &str, value: i64, ty: Type) {
        self.bind_number(name, warplens_ir::ExprKind::Int(value), ty);
    }

    fn bind_number(&mut self, name: &str, kind: warplens_ir::ExprKind, ty: Type) {
        let expression = warplens_ir::Expr {
            kind,
            ty,
            site: Site::default(),
        };
        self.bind(name, Named::Alias(Box::new(expression)));
    }
}
