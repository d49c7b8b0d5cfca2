//! `new` and `delete`: memory that a kernel takes from the device's heap, or is given for an object.

use std::sync::Arc;

use warplens_syntax::{Field, Kind, Node};

use super::construct::after;
use super::split::deref;
use super::{Lowering, Source, parts};
use crate::types::class_of;
use warplens_ir::Reason;
use warplens_ir::functions::{Effect, Function};
use warplens_ir::{AddressSpace, Site, Storage, Type};
use warplens_ir::{Expr, ExprKind, Opaque, Stmt, StmtKind};

impl Lowering<'_> {
    /// `new T`, `new T[n]`, `new (place) T(arguments)`: a pointer to memory of which only the type is known, or
    /// the place that it is given.
    pub(super) fn allocation(&mut self, node: Node, source: Source, site: Site) -> Expr {
        let field = |name: Field| node.field(name);
        let Some(of) = field(Field::Type) else {
            return self.opaque(site, Reason::SyntaxError, Vec::new());
        };
        let mut of = self.base_type(of, source);
        let mut length = None;
        if let Some(declarator) = field(Field::Declarator) {
            if declarator.kind() == Kind::NewDeclarator {
                length = declarator
                    .field(Field::Length)
                    .map(|length| self.expr(length, source));
            } else {
                of = self
                    .declarator(declarator, of, AddressSpace::Global, source)
                    .ty;
            }
        }
        let placed = field(Field::Placement)
            .map(|placement| self.arguments(placement, source))
            .and_then(|all| all.into_iter().next())
            .filter(|place| matches!(place.ty, Type::Pointer(..) | Type::Array(..)));
        let values = field(Field::Arguments).map(|list| match list.kind() {
            Kind::InitializerList => self.initializers(list, source),
            _ => self.arguments(list, source),
        });
        let pointer = match placed {
            Some(place) => {
                let ty = Type::Pointer(Arc::new(of.clone()), AddressSpace::Global);
                self.cast(place, ty, site)
            }
            None => Expr {
                kind: ExprKind::Opaque(Opaque::Unknown, Vec::new()),
                ty: Type::Pointer(Arc::new(of.clone()), AddressSpace::Global),
                site,
            },
        };
        let held = self.fresh("allocated", pointer.ty.clone(), Storage::Local, site);
        let mut statements: Vec<Stmt> = length
            .into_iter()
            .map(|length| Stmt {
                kind: StmtKind::Expr(length),
                site,
            })
            .collect();
        statements.push(Stmt {
            kind: StmtKind::Declare(held, Some(pointer)),
            site,
        });
        let pointer = self.var(held, site);
        let object = deref(pointer, site);
        if let Some(made) = self.constructed_in(&object, values.unwrap_or_default(), site) {
            statements.push(Stmt {
                kind: StmtKind::Expr(made),
                site,
            });
        }
        Expr {
            ty: self.var(held, site).ty,
            kind: ExprKind::Inline(statements, Some(held)),
            site,
        }
    }

    /// What constructing an object at a place does.
    fn constructed_in(&mut self, object: &Expr, values: Vec<Expr>, site: Site) -> Option<Expr> {
        if let Type::Struct(structure) = &object.ty
            && let Some(class) = class_of(structure)
        {
            let constructors = self.constructors(&class);
            if !constructors.is_empty()
                && let Some(call) = self.constructor_call(constructors, object, &values, site)
            {
                return Some(call);
            }
        }
        if values.is_empty() {
            return None;
        }
        let ty = object.ty.clone();
        let value = self.constructed(&ty, values, site);
        Some(self.assigned(object.clone(), value, site))
    }

    /// `delete pointer`: the destructor, where it is read.
    pub(super) fn deletion(&mut self, node: Node, source: Source, site: Site) -> Expr {
        let Some(value) = parts(node).into_iter().next() else {
            return self.opaque(site, Reason::SyntaxError, Vec::new());
        };
        let pointer = self.expr(value, source);
        let freed = |pointer: Expr| Expr {
            kind: ExprKind::Call(
                Function::Ignored(Effect::Call, "free".into()),
                vec![pointer],
            ),
            ty: Type::Void,
            site,
        };
        let class = match pointer.ty.element() {
            Some(Type::Struct(structure)) => class_of(structure),
            _ => None,
        };
        let Some(class) = class else {
            return freed(pointer);
        };
        let mut before = Vec::new();
        let pointer = self.read_once(&pointer, &mut before);
        let object = deref(pointer.clone(), site);
        let name = format!("~{}", class.name);
        let destroyed = self.virtual_call(&object, &name, &[], site);
        if let Some(destroyed) = destroyed {
            before.push(Stmt {
                kind: StmtKind::Expr(destroyed),
                site,
            });
        }
        if before.is_empty() {
            return freed(pointer);
        }
        after(before, freed(pointer))
    }
}
