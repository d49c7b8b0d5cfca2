//! What `Class::name` is as a value: a number, or a static constant whose value is not followed.

use std::sync::Arc;

use warplens_syntax::{Field, Kind, Node};

use super::classes::default_value;
use super::constants::real;
use super::forms::has_word;
use super::{Lowering, Source, parts, text_of};
use crate::types::{Class, class_of};
use warplens_ir::{AddressSpace, Expr, ExprKind, Opaque, Real, Site, Storage, Type};

/// Bases of bases that are looked into.
const DEEPEST_BASE: u32 = 16;

impl Lowering<'_> {
    /// A static constant or an enumerator of a class.
    pub(super) fn value_of_class(
        &mut self,
        class: &Arc<Class>,
        name: &str,
        site: Site,
    ) -> Option<Expr> {
        if let Some((value, ty)) = self.constant_of_class(class, name) {
            let kind = ExprKind::Int(value);
            return Some(Expr { kind, ty, site });
        }
        let Some((value, ty, reason)) = self.scalar_of_class(class, name, 0) else {
            return self.table_of_class(class, name, site, 0);
        };
        let kind = match value {
            Some(value) => ExprKind::Float(Some(Real::from(value))),
            None if ty.is_float() => ExprKind::Float(None),
            None => ExprKind::Opaque(reason, Vec::new()),
        };
        Some(Expr { kind, ty, site })
    }

    /// `static constexpr int values[] = { … }`: an array in constant memory whose elements are known.
    fn table_of_class(
        &mut self,
        class: &Arc<Class>,
        name: &str,
        site: Site,
        depth: u32,
    ) -> Option<Expr> {
        if depth > DEEPEST_BASE || !self.look(class, name) {
            return None;
        }
        let found = self.in_class(class, |lowering, member, source| {
            if !matches!(member.kind(), Kind::FieldDeclaration | Kind::Declaration)
                || !has_word(member, source, "static")
                || !text_of(member, source).contains(name)
            {
                return None;
            }
            let base = lowering.base_type(member.field(Field::Type)?, source);
            let declarators: Vec<Node> = member.fields(Field::Declarator).collect();
            declarators.into_iter().find_map(|declarator| {
                let space = AddressSpace::Constant;
                let declared = lowering.declarator(declarator, base.clone(), space, source);
                if declared.name != name {
                    return None;
                }
                let value = default_value(member, declarator, source)?;
                let ty = match &declared.ty {
                    Type::Array(element, None) => {
                        Type::Array(Arc::clone(element), Some(parts(value).len() as u64))
                    }
                    ty => ty.clone(),
                };
                let is_array = matches!(ty, Type::Array(..));
                let fixed = ["const", "constexpr"]
                    .iter()
                    .any(|word| has_word(member, source, word));
                let table = lowering
                    .table(&ty, value, source)
                    .filter(|_| is_array && fixed);
                table.map(|table| (ty, table))
            })
        });
        self.looking.pop();
        if let Some((ty, table)) = found {
            let own = format!("{}::{name}", class.name);
            let mut vars = self.vars.iter();
            let known = vars.position(|var| {
                var.storage == Storage::Constant && var.name == own && var.ty == ty
            });
            let id = match known {
                Some(at) => warplens_ir::VarId(at as u32),
                None => self.fresh(&own, ty, Storage::Constant, site),
            };
            self.keep_table(id, table);
            return Some(self.var(id, site));
        }
        class.bases.iter().find_map(|(base, _)| match base {
            Type::Struct(structure) => {
                let class = class_of(structure)?;
                self.table_of_class(&class, name, site, depth + 1)
            }
            _ => None,
        })
    }

    /// The type of a static constant that is no array and no object, its value where it is a number of floating point, and why another
    /// is not known.
    fn scalar_of_class(
        &mut self,
        class: &Arc<Class>,
        name: &str,
        depth: u32,
    ) -> Option<(Option<f64>, Type, Opaque)> {
        if depth > DEEPEST_BASE || !self.look(class, name) {
            return None;
        }
        let found = self.in_class(class, |lowering, member, source| {
            let declares = matches!(member.kind(), Kind::FieldDeclaration | Kind::Declaration);
            if enumerates(member, name, source) {
                return Some((None, Type::INT, Opaque::Build));
            }
            if !declares
                || !has_word(member, source, "static") && !has_word(member, source, "constexpr")
                || !text_of(member, source).contains(name)
            {
                return None;
            }
            // What does not change is one number for the whole launch.
            let fixed = ["const", "constexpr"]
                .iter()
                .any(|word| has_word(member, source, word));
            let reason = if fixed {
                Opaque::Build
            } else {
                Opaque::Unknown
            };
            let base = lowering.base_type(member.field(Field::Type)?, source);
            let declarators: Vec<Node> = member.fields(Field::Declarator).collect();
            declarators.into_iter().find_map(|declarator| {
                if declarator.kind() == Kind::FunctionDeclarator {
                    return None;
                }
                let space = AddressSpace::Global;
                let declared = lowering.declarator(declarator, base.clone(), space, source);
                if declared.name != name {
                    return None;
                }
                let read = default_value(member, declarator, source)
                    .map(|value| lowering.unevaluated(|lowering| lowering.expr(value, source)));
                let ty = match (&declared.ty, &read) {
                    (Type::Unknown(auto), Some(read)) if auto == "auto" => read.ty.clone(),
                    (ty, _) => ty.clone(),
                };
                let value = read.filter(|_| ty.is_float()).and_then(|read| real(&read));
                (ty.is_int() || ty.is_float()).then_some((value, ty, reason))
            })
        });
        self.looking.pop();
        found.or_else(|| {
            class.bases.iter().find_map(|(base, _)| match base {
                Type::Struct(structure) => {
                    let class = class_of(structure)?;
                    self.scalar_of_class(&class, name, depth + 1)
                }
                _ => None,
            })
        })
    }
}

/// True for `enum { …, name = …, … };`.
fn enumerates(member: Node, name: &str, source: Source) -> bool {
    let of = match member.kind() {
        Kind::FieldDeclaration | Kind::Declaration => member.field(Field::Type),
        _ => Some(member),
    };
    let enumeration = of.filter(|of| of.kind() == Kind::EnumSpecifier);
    let body = enumeration.and_then(|of| of.field(Field::Body));
    body.is_some_and(|body| {
        parts(body).into_iter().any(|child| {
            let of = child.field(Field::Name);
            of.is_some_and(|of| text_of(of, source) == name)
        })
    })
}
