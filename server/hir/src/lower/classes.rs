//! Structures, classes and enumerations: their layout and their members.

use std::ops::Range;
use std::sync::Arc;

use warplens_syntax::{Field, Kind, Node};

use super::constants::constant;
use super::forms::{CLASSES, has_word};
use super::layout::{self, Member};
use super::{Lowering, Source, parts, text_of};
use crate::definition::Definition;
use crate::types::{Class, class_of};
use crate::unit::Constant;
use warplens_ir::{AddressSpace, Type};
use warplens_ir::{Bindings, Bound, Origin, Struct};

/// Classes look for members in this many bases of bases.
const DEEPEST_BASE: u32 = 16;

type Fields = Vec<Member>;

/// A member function and the class it was found in.
pub(super) struct Method {
    pub(super) definition: Definition,
    pub(super) bindings: Bindings,
}

impl Lowering<'_> {
    /// Lays out a structure that is defined here. `bound`: name, parameters and arguments of an instance of a template.
    pub(super) fn structure(
        &mut self,
        node: Node,
        source: Source,
        bound: Option<(&str, &Bindings, &[Bound])>,
    ) -> Option<Type> {
        let body = node.field(Field::Body)?;
        if self.depth > super::DEEPEST_CALLS {
            return None;
        }
        self.depth += 1;
        // A specialisation has its arguments behind its name.
        let plain = node
            .field(Field::Name)
            .map(|name| match name.kind() {
                Kind::TemplateType => name.field(Field::Name).unwrap_or(name),
                _ => name,
            })
            .map(|name| text_of(name, source).to_owned())
            .unwrap_or_default();
        let name = bound.map_or(plain.clone(), |(name, ..)| name.to_owned());
        let head = node.start_byte()..body.start_byte();
        let align = self.alignment_said(&head, source);
        let mut bases = Vec::new();
        let mut fields: Fields = Vec::new();
        let mut placed = Vec::new();
        if let Some(clause) = super::child_of_kind(node, Kind::BaseClassClause) {
            for base in parts(clause) {
                if !matches!(
                    base.kind(),
                    Kind::TypeIdentifier | Kind::TemplateType | Kind::QualifiedIdentifier
                ) {
                    continue;
                }
                let ty = self.base_type(base, source);
                if let Type::Struct(structure) = &ty {
                    let empty = structure.fields.is_empty() && structure.size <= 1;
                    placed.push((!empty).then_some(fields.len()));
                    bases.push((ty.clone(), 0));
                    if !empty {
                        fields.push(Member::base(ty.clone()));
                    }
                }
            }
        }
        // The pointer to the virtual functions is that of the first base, or lies in front of them.
        if layout::declares_virtual(body, source)
            && !bases
                .iter()
                .any(|(base, _)| layout::is_polymorphic(base, 0))
        {
            let table = Type::Pointer(Arc::new(Type::Void), AddressSpace::Global);
            fields.insert(0, Member::new("", table));
            for at in placed.iter_mut().flatten() {
                *at += 1;
            }
        }
        // Members see the class's own types and constants.
        self.frame().scopes.push(super::Scope::new());
        self.fields(body, source, &mut fields);
        self.frame().scopes.pop();
        self.depth -= 1;
        let enclosing = self.this_class().filter(|outer| {
            Arc::ptr_eq(&outer.definition.text, source.parsed)
                && outer.definition.range.contains(&node.start_byte())
                && outer.definition.range.start != node.start_byte()
        });
        let union = node.kind() == Kind::UnionSpecifier;
        let said = layout::Said {
            union,
            align: align.max(1).cast_unsigned(),
            pack: layout::pack_said(node, source),
        };
        let mut structure = layout::laid_out(&name, fields, &said);
        for ((_, offset), at) in bases.iter_mut().zip(placed) {
            *offset = at
                .and_then(|at| structure.fields.get(at))
                .map_or(0, |field| field.offset);
        }
        if structure.parts > MOST_PARTS {
            return None;
        }
        layout::flatten(&mut structure);
        structure.space = source.space.into();
        structure.class = Some(Origin::new(Arc::new(Class {
            name: plain.clone(),
            definition: Definition::new(
                source.parsed,
                node.byte_range(),
                source.header,
                self.within(source),
                &source.space.into(),
            ),
            bindings: bound.map_or_else(
                || self.current().bindings.clone(),
                |(_, bindings, _)| bindings.clone(),
            ),
            arguments: bound.map_or_else(Vec::new, |(.., arguments)| arguments.to_vec()),
            bases,
            enclosing,
        })));
        let ty = Type::Struct(Arc::new(structure));
        if !plain.is_empty() && bound.is_none() {
            self.bind(&plain, super::Named::Type(ty.clone()));
            self.declared.push((plain, ty.clone()));
        }
        Some(ty)
    }

    /// What `alignas`, `__align__` or `aligned` in these bytes says; 1 where nothing does.
    fn alignment_said(&mut self, bytes: &Range<usize>, source: Source) -> i64 {
        let words: Vec<String> = source
            .parsed
            .words
            .iter()
            .filter(|word| {
                bytes.contains(&word.range.start)
                    && (word.name.contains("align") || word.argument.contains("align"))
            })
            .map(|word| {
                // `__attribute__((aligned(16)))`; of `__align__` it is the whole: `(N > 4) ? 16 : 8`.
                match word.argument.split_once("aligned") {
                    Some((_, rest)) => enclosed(rest.trim_start_matches(['_', ' '])).to_owned(),
                    None => word.argument.trim().to_owned(),
                }
            })
            .collect();
        let said = words
            .iter()
            .filter_map(|argument| self.constant_text(argument));
        let align = said.max().unwrap_or(1);
        let text = source.parsed.text.get(bytes.clone()).unwrap_or("");
        if align == 1
            && let Some(at) = text.find("align")
            && let Some(open) = text[at..].find('(')
        {
            let inner = enclosed(&text[at + open..]);
            return match self.constant_text(inner) {
                Some(align) => align,
                None => self
                    .type_text(inner)
                    .map_or(1, |ty| ty.align().cast_signed()),
            };
        }
        align
    }

    fn fields(&mut self, body: Node, source: Source, fields: &mut Fields) {
        for child in parts(body) {
            match child.kind() {
                Kind::TypeDefinition | Kind::AliasDeclaration => {
                    for (name, ty) in self.typedefs(child, source) {
                        self.bind(&name, super::Named::Type(ty));
                    }
                }
                Kind::FieldDeclaration => self.field_declaration(child, source, fields),
                // An anonymous structure or union gives its fields to the outer one.
                Kind::StructSpecifier | Kind::UnionSpecifier | Kind::ClassSpecifier => {
                    if let Some(ty) = self.structure(child, source, None)
                        && child.field(Field::Name).is_none()
                    {
                        fields.push(Member::new("", ty));
                    }
                }
                Kind::EnumSpecifier => {
                    for (name, constant) in self.enumeration(child, source) {
                        if let Constant::Int(value, ty) = constant {
                            self.bind_constant(&name, value, ty);
                        }
                    }
                }
                Kind::Declaration => self.field_declaration(child, source, fields),
                _ => {}
            }
        }
    }

    fn field_declaration(&mut self, child: Node, source: Source, fields: &mut Fields) {
        let Some(ty) = child.field(Field::Type) else {
            return;
        };
        let base = self.base_type(ty, source);
        let is_static = has_word(child, source, "static") || has_word(child, source, "constexpr");
        let space = super::forms::space_of(child, source).unwrap_or(AddressSpace::Global);
        // Words that only compilers read are blank: they may be in front of the node.
        let before = child.prev_sibling().map_or(0, |before| before.end_byte());
        let declarators: Vec<Node> = child.fields(Field::Declarator).collect();
        let head_end = declarators.first().map_or(ty.end_byte(), Node::start_byte);
        let align = self.alignment_said(&(before.min(child.start_byte())..head_end), source);
        if declarators.is_empty()
            && matches!(ty.kind(), Kind::StructSpecifier | Kind::UnionSpecifier)
            && ty.field(Field::Name).is_none()
        {
            fields.push(Member::new("", base));
            return;
        }
        for declarator in declarators {
            if declarator.kind() == Kind::FunctionDeclarator
                && !super::forms::points_to_function(declarator)
            {
                continue;
            }
            let declared = self.declarator(declarator, base.clone(), space, source);
            if is_static {
                let value = default_value(child, declarator, source);
                if let Some(value) = value.and_then(|value| self.constant_node(value, source)) {
                    self.bind_constant(&declared.name, value, declared.ty);
                }
                continue;
            }
            let ty = if declared.reference {
                Type::Pointer(Arc::new(declared.ty), AddressSpace::Global)
            } else {
                declared.ty
            };
            if matches!(&ty, Type::Unknown(name) if name == "function") {
                continue;
            }
            let bits = declarator
                .next_named_sibling()
                .filter(|clause| clause.kind() == Kind::BitfieldClause)
                .and_then(|clause| parts(clause).into_iter().next())
                .map(|width| self.constant_node(width, source))
                .map(|width| {
                    width
                        .and_then(|width| u64::try_from(width).ok())
                        .unwrap_or(0)
                });
            fields.push(Member {
                bits,
                align: align.max(1).cast_unsigned(),
                ..Member::new(&declared.name, ty)
            });
        }
    }

    pub(super) fn enum_type(&mut self, node: Node, source: Source) -> Type {
        node.field(Field::Base)
            .map_or(Type::INT, |base| self.base_type(base, source))
    }

    /// An enumeration's name and enumerators as names of the block: `E::a` and, where it has no scope of its own, `a`.
    pub(super) fn bind_enumeration(&mut self, node: Node, source: Source) {
        // One of them may be the value of the next.
        self.frame().scopes.push(super::Scope::new());
        let all = self.enumeration(node, source);
        let ty = self.enum_type(node, source);
        self.frame().scopes.pop();
        let name = node.field(Field::Name).map(|name| text_of(name, source));
        let scoped = ["class", "struct"]
            .iter()
            .any(|word| has_word(node, source, word));
        for (of, constant) in all {
            let Constant::Int(value, ty) = constant else {
                continue;
            };
            if let Some(name) = name {
                self.bind_constant(&format!("{name}::{of}"), value, ty.clone());
            }
            if !scoped {
                self.bind_constant(&of, value, ty);
            }
        }
        if let Some(name) = name {
            self.bind(name, super::Named::Type(ty));
        }
    }

    pub(super) fn enumeration(&mut self, node: Node, source: Source) -> Vec<(String, Constant)> {
        let mut found = Vec::new();
        let Some(body) = node.field(Field::Body) else {
            return found;
        };
        let mut next = Some(0i64);
        for child in parts(body) {
            if child.kind() != Kind::Enumerator {
                continue;
            }
            if let Some(value) = child.field(Field::Value) {
                next = self.constant_node(value, source);
            }
            // Those behind one whose value is not known count from it.
            let Some(value) = next else { continue };
            if let Some(name) = child.field(Field::Name) {
                let name = text_of(name, source).to_owned();
                self.bind_constant(&name, value, Type::INT);
                found.push((name, Constant::Int(value, Type::INT)));
            }
            next = Some(value.wrapping_add(1));
        }
        found
    }

    // ---- members -------------------------------------------------------------------------------

    /// The class whose member function is being read.
    pub(super) fn this_class(&self) -> Option<Arc<Class>> {
        match &self.current().this {
            Some(this) => match &this.ty {
                Type::Struct(structure) => class_of(structure),
                _ => None,
            },
            None => None,
        }
    }

    /// The class being read or a base of it, where that is its name.
    pub(super) fn class_named_so(&self, name: &str) -> Option<Type> {
        let mut open = vec![self.current().this.as_ref()?.ty.clone()];
        for _ in 0..=DEEPEST_BASE {
            let mut bases = Vec::new();
            for ty in open {
                let Type::Struct(structure) = &ty else {
                    continue;
                };
                let Some(class) = class_of(structure) else {
                    continue;
                };
                if class.name == name {
                    return Some(ty);
                }
                bases.extend(class.bases.iter().map(|(base, _)| base.clone()));
            }
            open = bases;
        }
        None
    }

    pub(super) fn type_of_this_class(&mut self, name: &str) -> Option<Type> {
        let class = self.this_class()?;
        if class.name == name {
            return self.current().this.as_ref().map(|this| this.ty.clone());
        }
        self.in_enclosing(class, |lowering, class| lowering.class_type(class, name, 0))
    }

    /// What a class or one around it gives, the innermost first.
    pub(super) fn in_enclosing<T>(
        &mut self,
        class: Arc<Class>,
        mut find: impl FnMut(&mut Self, &Arc<Class>) -> Option<T>,
    ) -> Option<T> {
        let around = std::iter::successors(Some(class), |class| class.enclosing.clone());
        around
            .take(DEEPEST_BASE as usize)
            .find_map(|class| find(self, &class))
    }

    /// An instance of a class template that is a member of the class being read, or of one around it.
    pub(super) fn member_instance(&mut self, name: &str, arguments: &[Bound]) -> Option<Type> {
        let class = self.this_class()?;
        self.in_enclosing(class, |lowering, class| {
            lowering.instance_in(class, name, arguments)
        })
    }

    pub(super) fn instance_in(
        &mut self,
        class: &Arc<Class>,
        name: &str,
        arguments: &[Bound],
    ) -> Option<Type> {
        let spelled = super::instances::spell_instance(name, arguments);
        let key = (Arc::as_ptr(class) as usize, spelled.clone());
        if let Some((_, known)) = self.member_types.get(&key) {
            return known.clone();
        }
        let definition = class.definition.clone();
        let text = &definition.text;
        let candidates: Vec<Definition> = definition
            .node(CLASSES)
            .and_then(|node| node.field(Field::Body))
            .map(parts)
            .unwrap_or_default()
            .into_iter()
            .filter(|member| member.kind() == Kind::TemplateDeclaration)
            .filter(|member| {
                super::forms::templated(*member).is_some_and(|(_, of)| {
                    let of = of.field(Field::Name).unwrap_or(of);
                    &text.text[of.byte_range()] == name
                })
            })
            .map(|member| {
                Definition::new(
                    text,
                    member.byte_range(),
                    definition.header,
                    definition.within,
                    &definition.space,
                )
            })
            .collect();
        let found = if candidates.is_empty() || self.depth > super::DEEPEST_CALLS {
            None
        } else {
            // While it is being laid out it may name itself.
            let itself = Type::Unknown(spelled.clone());
            self.member_types
                .insert(key.clone(), (Arc::clone(class), Some(itself)));
            let this = object_of(class);
            self.best_instance(
                candidates,
                arguments,
                &spelled,
                Some((this, &class.bindings)),
            )
        };
        self.member_types
            .insert(key, (Arc::clone(class), found.clone()));
        found
    }

    /// `Class::name` as a type.
    pub(super) fn type_of_class(&mut self, class: &Type, name: &str) -> Option<Type> {
        match class {
            Type::Struct(structure) => {
                let class = class_of(structure)?;
                self.class_type(&class, name, 0)
            }
            _ => None,
        }
    }

    fn class_type(&mut self, class: &Arc<Class>, name: &str, depth: u32) -> Option<Type> {
        let key = (Arc::as_ptr(class) as usize, name.to_owned());
        if let Some((_, known)) = self.member_types.get(&key) {
            return known.clone();
        }
        if depth > DEEPEST_BASE || !self.look(class, name) {
            return None;
        }
        let found = self.search_type(class, name, depth);
        self.member_types
            .insert(key, (Arc::clone(class), found.clone()));
        found
    }

    fn search_type(&mut self, class: &Arc<Class>, name: &str, depth: u32) -> Option<Type> {
        let found = self.in_class(class, |lowering, member, source| match member.kind() {
            Kind::TypeDefinition | Kind::AliasDeclaration => {
                // Others are not read, only to be thrown away: they may ask for what is being looked up.
                let named = match member.field(Field::Name) {
                    Some(of) => text_of(of, source) == name,
                    None => text_of(member, source).contains(name),
                };
                if !named {
                    return None;
                }
                lowering
                    .typedefs(member, source)
                    .into_iter()
                    .find(|(of, _)| of == name)
                    .map(|(_, ty)| ty)
            }
            Kind::StructSpecifier | Kind::ClassSpecifier | Kind::UnionSpecifier => member
                .field(Field::Name)
                .filter(|of| text_of(*of, source) == name)
                .and_then(|_| lowering.structure(member, source, None)),
            Kind::FieldDeclaration => member
                .field(Field::Type)
                .filter(|ty| {
                    ty.field(Field::Body).is_some()
                        && ty
                            .field(Field::Name)
                            .is_some_and(|of| text_of(of, source) == name)
                })
                .map(|ty| lowering.base_type(ty, source)),
            Kind::EnumSpecifier => member
                .field(Field::Name)
                .filter(|of| text_of(*of, source) == name)
                .map(|_| lowering.enum_type(member, source)),
            _ => None,
        });
        self.looking.pop();
        found.or_else(|| {
            class.bases.iter().find_map(|(base, _)| match base {
                Type::Struct(structure) => {
                    let class = class_of(structure)?;
                    self.class_type(&class, name, depth + 1)
                }
                _ => None,
            })
        })
    }

    /// `Class::name` as a number: a static constant or an enumerator.
    pub(super) fn constant_of_class(
        &mut self,
        class: &Arc<Class>,
        name: &str,
    ) -> Option<(i64, Type)> {
        self.class_constant(class, name, 0)
    }

    fn class_constant(
        &mut self,
        class: &Arc<Class>,
        name: &str,
        depth: u32,
    ) -> Option<(i64, Type)> {
        let key = (Arc::as_ptr(class) as usize, name.to_owned());
        if let Some((_, known)) = self.member_constants.get(&key) {
            return known.clone();
        }
        if depth > DEEPEST_BASE || !self.look(class, name) {
            return None;
        }
        let found = self.search_constant(class, name, depth);
        self.member_constants
            .insert(key, (Arc::clone(class), found.clone()));
        found
    }

    fn search_constant(
        &mut self,
        class: &Arc<Class>,
        name: &str,
        depth: u32,
    ) -> Option<(i64, Type)> {
        let found = self.in_class(class, |lowering, member, source| {
            if !text_of(member, source).contains(name) {
                return None;
            }
            match member.kind() {
                Kind::FieldDeclaration | Kind::Declaration => {
                    if let Some(ty) = member.field(Field::Type)
                        && ty.kind() == Kind::EnumSpecifier
                        && ty.field(Field::Body).is_some()
                    {
                        return lowering.enumerator(ty, name, source);
                    }
                    if !has_word(member, source, "static") && !has_word(member, source, "constexpr")
                    {
                        return None;
                    }
                    let base = lowering.base_type(member.field(Field::Type)?, source);
                    let declarators: Vec<Node> = member.fields(Field::Declarator).collect();
                    for declarator in declarators {
                        let declared = lowering.declarator(
                            declarator,
                            base.clone(),
                            AddressSpace::Global,
                            source,
                        );
                        if declared.name != name {
                            continue;
                        }
                        let value = default_value(member, declarator, source)?;
                        let read = lowering.unevaluated(|lowering| lowering.expr(value, source));
                        let ty = match declared.ty {
                            Type::Unknown(name) if name == "auto" => read.ty.clone(),
                            ty => ty,
                        };
                        return Some((constant(&read)?, ty));
                    }
                    None
                }
                Kind::EnumSpecifier => lowering.enumerator(member, name, source),
                _ => None,
            }
        });
        self.looking.pop();
        found.or_else(|| {
            class.bases.iter().find_map(|(base, _)| match base {
                Type::Struct(structure) => {
                    let class = class_of(structure)?;
                    self.class_constant(&class, name, depth + 1)
                }
                _ => None,
            })
        })
    }

    fn enumerator(&mut self, node: Node, name: &str, source: Source) -> Option<(i64, Type)> {
        let found = self.enumeration(node, source);
        found.into_iter().find_map(|(of, constant)| match constant {
            Constant::Int(value, ty) if of == name => Some((value, ty)),
            _ => None,
        })
    }

    /// `Class::Enumeration::name`.
    pub(super) fn enumerator_of_class(
        &mut self,
        class: &Arc<Class>,
        enumeration: &str,
        name: &str,
    ) -> Option<(i64, Type)> {
        let found = self.in_class(class, |lowering, member, source| {
            let of = match member.kind() {
                Kind::EnumSpecifier => member,
                Kind::FieldDeclaration | Kind::Declaration => member.field(Field::Type)?,
                _ => return None,
            };
            let called = of.field(Field::Name)?;
            (of.kind() == Kind::EnumSpecifier && text_of(called, source) == enumeration)
                .then(|| lowering.enumerator(of, name, source))?
        });
        found.or_else(|| {
            let mut bases = class.bases.iter().filter_map(|(base, _)| match base {
                Type::Struct(base) => class_of(base),
                _ => None,
            });
            bases.find_map(|base| self.enumerator_of_class(&base, enumeration, name))
        })
    }

    /// The member functions of that name, in the class and then in its bases.
    pub(super) fn methods(&mut self, class: &Arc<Class>, name: &str) -> Vec<Method> {
        let mut found = Vec::new();
        self.collect_methods(class, name, &mut found, 0);
        found
    }

    fn collect_methods(
        &mut self,
        class: &Arc<Class>,
        name: &str,
        found: &mut Vec<Method>,
        depth: u32,
    ) {
        if depth > DEEPEST_BASE {
            return;
        }
        let definition = &class.definition;
        let Some(node) = definition.node(CLASSES) else {
            return;
        };
        let text = &definition.text;
        let (mut own, mut specialised) = (Vec::new(), Vec::new());
        if let Some(body) = node.field(Field::Body) {
            for member in parts(body) {
                let function = match member.kind() {
                    Kind::FunctionDefinition => Some(member),
                    Kind::TemplateDeclaration => {
                        super::child_of_kind(member, Kind::FunctionDefinition)
                    }
                    _ => None,
                };
                let Some(function) = function else { continue };
                let Some(declarator) = crate::outline::function_declarator(function) else {
                    continue;
                };
                let Some(of) = declarator.field(Field::Declarator) else {
                    continue;
                };
                let of: String = text.text[of.byte_range()].split_whitespace().collect();
                if of == name {
                    own.push(Method {
                        definition: Definition::new(
                            text,
                            member.byte_range(),
                            definition.header,
                            definition.within,
                            &definition.space,
                        ),
                        bindings: class.bindings.clone(),
                    });
                }
            }
        }
        for outside in self.unit.functions(&format!("{}::{name}", class.name)) {
            if !is_member_of(&outside, class) {
                continue;
            }
            if let Some(list) = arguments_of_one(&outside, class) {
                if !self.is_for(list, Source::of(&outside), class) {
                    continue;
                }
                specialised.push(Method {
                    definition: outside,
                    bindings: class.bindings.clone(),
                });
                continue;
            }
            own.push(Method {
                definition: outside,
                bindings: class.bindings.clone(),
            });
        }
        // What is said of this instance alone is in the place of what is said of all ([temp.expl.spec]).
        for method in &specialised {
            let count = parameter_count(&method.definition);
            own.retain(|method| parameter_count(&method.definition) != count);
        }
        found.append(&mut own);
        found.append(&mut specialised);
        for (base, _) in &class.bases {
            if let Type::Struct(structure) = base
                && let Some(base) = class_of(structure)
            {
                self.collect_methods(&base, name, found, depth + 1);
            }
        }
    }

    /// Whether these are the arguments that the class is an instance with.
    fn is_for(&mut self, list: Node, source: Source, class: &Class) -> bool {
        let arguments = self.under(Vec::new(), None, |lowering| {
            lowering.unevaluated(|lowering| lowering.template_arguments(list, source))
        });
        arguments == class.arguments
    }

    /// The conversion operators of a class, then of its bases.
    pub(super) fn conversions(&self, class: &Arc<Class>) -> Vec<Method> {
        let mut found = Vec::new();
        let mut open = vec![(Arc::clone(class), 0u32)];
        while let Some((class, depth)) = open.pop() {
            let definition = &class.definition;
            let body = definition
                .node(CLASSES)
                .and_then(|node| node.field(Field::Body));
            for member in body.map(parts).unwrap_or_default() {
                if member.kind() == Kind::FunctionDefinition
                    && super::child_of_kind(member, Kind::OperatorCast).is_some()
                {
                    let text = &definition.text;
                    found.push(Method {
                        definition: Definition::new(
                            text,
                            member.byte_range(),
                            definition.header,
                            definition.within,
                            &definition.space,
                        ),
                        bindings: class.bindings.clone(),
                    });
                }
            }
            if depth < DEEPEST_BASE {
                open.extend(class.bases.iter().filter_map(|(base, _)| match base {
                    Type::Struct(base) => Some((class_of(base)?, depth + 1)),
                    _ => None,
                }));
            }
        }
        found
    }

    /// Notes that a member is being looked up; false where it already is.
    pub(super) fn look(&mut self, class: &Arc<Class>, name: &str) -> bool {
        let key = (class.definition.hash, name.to_owned());
        if self.looking.contains(&key) {
            return false;
        }
        self.looking.push(key);
        true
    }

    /// Reads the members of a class in its own scope until one gives something.
    pub(super) fn in_class<T>(
        &mut self,
        class: &Arc<Class>,
        mut read: impl FnMut(&mut Self, Node, Source) -> Option<T>,
    ) -> Option<T> {
        if self.depth > super::DEEPEST_CALLS {
            return None;
        }
        let definition = class.definition.clone();
        let node = definition.node(CLASSES)?;
        let body = node.field(Field::Body)?;
        let source = Source::of(&definition);
        self.depth += 1;
        self.unevaluated += 1;
        let this = object_of(class);
        let found = self.under(class.bindings.clone(), Some(this), |lowering| {
            let mut members = parts(body).into_iter();
            members.find_map(|member| read(lowering, member, source))
        });
        self.unevaluated -= 1;
        self.depth -= 1;
        found
    }
}

/// What is in the parentheses that a text begins with.
pub(super) fn enclosed(text: &str) -> &str {
    let mut depth = 0;
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return text.get(1..at).unwrap_or("");
        }
    }
    ""
}

/// What a member is given where it is declared: `a = 1` of `static constexpr int a = 1, b = 2;`.
pub fn default_value<'t>(
    member: Node<'t>,
    declarator: Node<'t>,
    source: Source,
) -> Option<Node<'t>> {
    if let Some(value) = declarator.field(Field::Value) {
        return Some(value);
    }
    let mut values = member.fields(Field::DefaultValue);
    let value = values.find(|value| value.start_byte() >= declarator.end_byte())?;
    let between = declarator.end_byte()..value.start_byte();
    let between = source.parsed.text.get(between).unwrap_or("");
    (!between.contains(',')).then_some(value)
}

/// An object of a class where only the class matters.
pub(super) fn object_of(class: &Arc<Class>) -> warplens_ir::Expr {
    warplens_ir::Expr {
        kind: warplens_ir::ExprKind::List(Vec::new()),
        ty: Type::Struct(Arc::new(Struct {
            space: Arc::clone(&class.definition.space),
            class: Some(Origin::new(Arc::clone(class) as _)),
            ..Struct::new(&class.name, Vec::new(), false, 1)
        })),
        site: warplens_ir::Site::default(),
    }
}

/// True where a member that is defined outside its class is one of this class: of a specialisation its own
/// arguments must stand there, `vec<float, 2>::fill`.
fn is_member_of(outside: &Definition, class: &Class) -> bool {
    let spelled = |text: &str| -> String { text.split_whitespace().collect() };
    let own = class
        .definition
        .node(CLASSES)
        .and_then(|node| node.field(Field::Name))
        .map(|name| spelled(&class.definition.text.text[name.byte_range()]))
        .unwrap_or_default();
    let Some(function) = outside.node(&[Kind::FunctionDefinition]) else {
        return false;
    };
    let scope = crate::outline::function_declarator(function)
        .and_then(|declarator| declarator.field(Field::Declarator))
        .and_then(|name| name.field(Field::Scope))
        .map(|scope| spelled(&outside.text.text[scope.byte_range()]));
    let Some(scope) = scope else { return true };
    if own.contains('<') {
        return scope.ends_with(&own);
    }
    // The template itself, or one instance of it that no specialisation of the class is for.
    if arguments_of_one(outside, class).is_some() {
        return true;
    }
    let general = function.parent().is_some_and(|around| {
        around.kind() == Kind::TemplateDeclaration
            && around
                .field(Field::Parameters)
                .is_some_and(|list| list.named_child_count() > 0)
    });
    general || !scope.contains('<')
}

/// A structure of more parts is not laid out: each that holds two of the one before doubles what is to be walked through.
const MOST_PARTS: u64 = 1 << 14;

/// The arguments behind `template <>` of a member that is defined for one instance of its class, `Get<0>::of`.
fn arguments_of_one<'t>(outside: &'t Definition, class: &Class) -> Option<Node<'t>> {
    let function = outside.node(&[Kind::FunctionDefinition])?;
    let mut around = std::iter::successors(function.parent(), Node::parent)
        .take_while(|around| around.kind() == Kind::TemplateDeclaration);
    let is_one = around.any(|around| {
        let list = around.field(Field::Parameters);
        list.is_some_and(|list| list.named_child_count() == 0)
    });
    let mut name = crate::outline::function_declarator(function)?.field(Field::Declarator)?;
    while is_one && name.kind() == Kind::QualifiedIdentifier {
        let scope = name.field(Field::Scope)?;
        let of = scope.field(Field::Name);
        if scope.kind() == Kind::TemplateType
            && of.is_some_and(|of| outside.text.text[of.byte_range()] == class.name)
        {
            return scope.field(Field::Arguments);
        }
        name = name.field(Field::Name)?;
    }
    None
}

fn parameter_count(of: &Definition) -> Option<usize> {
    let function = of.node(&[Kind::FunctionDefinition])?;
    super::forms::parameter_nodes(function, Source::of(of)).map(|params| params.len())
}
