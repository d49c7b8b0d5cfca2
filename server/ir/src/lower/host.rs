//! Host code, as far as launches need it: types of variables, and the numbers they hold.

use std::sync::Arc;

use warplens_syntax::{Expanded, Node};

use super::constants::constant;
use super::{Lowering, Named, Source, parts};
use crate::kernel::{Expr, ExprKind};
use crate::{AddressSpace, Site, Type};

impl<'a> Source<'a> {
    /// The text that is read first.
    pub(crate) fn own(parsed: &'a Arc<Expanded>) -> Source<'a> {
        Source {
            parsed,
            header: false,
            at: None,
        }
    }
}

impl Lowering<'_> {
    /// Declares the variables of a declaration or a parameter: with their value where it is a number.
    pub(crate) fn declare_host(&mut self, node: Node, source: Source) {
        let Some(ty) = node.child_by_field_name("type") else {
            return;
        };
        let base = self.base_type(ty, source);
        let mut cursor = node.walk();
        let declarators: Vec<Node> = node
            .children_by_field_name("declarator", &mut cursor)
            .collect();
        for declarator in declarators {
            if declarator.kind() == "function_declarator" {
                continue;
            }
            let declared = self.declarator(declarator, base.clone(), AddressSpace::Global, source);
            let value = declarator
                .child_by_field_name("value")
                .map(|value| match value.kind() {
                    "argument_list" | "initializer_list" if parts(value).len() == 1 => {
                        parts(value)[0]
                    }
                    _ => value,
                })
                .map(|value| self.unevaluated(|lowering| lowering.expr(value, source)));
            let ty = match (&declared.ty, &value) {
                (Type::Unknown(name), Some(value)) if name == "auto" => value.ty.clone(),
                (ty, _) => ty.clone(),
            };
            let kind = match value.as_ref().and_then(constant) {
                Some(number) => ExprKind::Int(number),
                None => ExprKind::Opaque(String::new(), Vec::new()),
            };
            let meaning = Expr {
                kind,
                ty,
                site: Site::default(),
            };
            self.bind(&declared.name, Named::Alias(Box::new(meaning)));
        }
    }

    /// What a variable holds is not known any more.
    pub(crate) fn forget_host(&mut self, name: &str) {
        for scope in &mut self.frame().scopes {
            if let Some(Named::Alias(meaning)) = scope.get_mut(name) {
                meaning.kind = ExprKind::Opaque(String::new(), Vec::new());
            }
        }
    }

    /// The type of an argument.
    pub(crate) fn type_of_host(&mut self, node: Node, source: Source) -> Option<Type> {
        let ty = self.unevaluated(|lowering| lowering.expr(node, source)).ty;
        (!matches!(ty, Type::Unknown(_) | Type::Void)).then_some(ty)
    }
}
