//! Pointers to functions: what they may point to, and calls through them.
//!
//! The type of a pointer says which functions it is known to point to: `function f|g`. A plain `function`
//! says that it is not known.

use warplens_syntax::{Field, Kind, Node};

use super::candidate::{Callee, Candidate};
use super::construct::after;
use super::function_types::{functions_of, holds_functions, refined};
use super::shapes::is_place;
use super::shapes::is_pure;
use super::{Lowering, Source, text_of};
use warplens_ir::Bindings;
use warplens_ir::Reason;
use warplens_ir::{AssumptionKind, Expr, ExprKind, Opaque, StaysCall, Stmt, StmtKind};
use warplens_ir::{Site, Type};

/// A call through a pointer to more functions than this is not followed.
const MOST_TARGETS: usize = 16;

impl Lowering<'_> {
    /// What is known of a local pointer to a function: all that it is given in the function around it.
    pub(super) fn known_targets(
        &mut self,
        ty: &Type,
        name: &str,
        init: Option<&Expr>,
        node: Node,
        source: Source,
    ) -> Option<Type> {
        if !holds_functions(ty) {
            return None;
        }
        let mut values: Vec<Expr> = init.into_iter().cloned().collect();
        let mut around = node;
        while !matches!(
            around.kind(),
            Kind::FunctionDefinition | Kind::LambdaExpression
        ) {
            around = around.parent()?;
        }
        let mut open = vec![around.field(Field::Body)?];
        while let Some(node) = open.pop() {
            if node.kind() == Kind::AssignmentExpression
                && let Some(left) = node.field(Field::Left)
                && let Some(right) = node.field(Field::Right)
            {
                let target = text_of(left, source);
                if target == name
                    || target
                        .strip_prefix(name)
                        .is_some_and(|rest| rest.starts_with('['))
                {
                    values.push(self.unevaluated(|lowering| lowering.expr(right, source)));
                }
            }
            open.extend(node.named_children());
        }
        refined(ty, &values)
    }

    /// A call of a value that is a function or points to one.
    pub(super) fn call_through(
        &mut self,
        callee: &Expr,
        arguments: &[Expr],
        site: Site,
    ) -> Option<Expr> {
        // `(*f)(x)` is `f(x)`.
        let callee = match &callee.kind {
            ExprKind::Deref(pointer) => pointer,
            _ => callee,
        };
        let mut names: Vec<String> = functions_of(&callee.ty)?
            .into_iter()
            .map(str::to_owned)
            .collect();
        if names.is_empty() {
            // One of those that the file lets some pointer point to.
            names = self.stored_functions();
            names.retain(|name| {
                let candidates = self.unit.functions(Callee::of(name).name);
                candidates.into_iter().any(|definition| {
                    let candidate = Candidate {
                        definition,
                        bindings: Bindings::new(),
                        this: None,
                    };
                    self.takes_exactly(&candidate, arguments)
                })
            });
            if names.is_empty() || names.len() > MOST_TARGETS {
                let mut all = vec![callee.clone()];
                all.extend(arguments.iter().cloned());
                return Some(self.opaque(site, Reason::UnreadFunction, all));
            }
            self.assume_targets(callee, &names);
        } else if let ExprKind::Var(id) = callee.kind
            && self.vars[id.0 as usize].storage == warplens_ir::Storage::Global
        {
            // The host may point it elsewhere.
            self.assume_targets(callee, &names);
        }
        if names.len() > 1 {
            let name = names.join(" or ");
            self.note_call(&name, StaysCall::Pointer, arguments, site);
        }
        let mut before = Vec::new();
        let arguments: Vec<Expr> = if names.len() == 1 {
            arguments.to_vec()
        } else {
            arguments
                .iter()
                .map(|argument| self.read_once(argument, &mut before))
                .collect()
        };
        let calls: Vec<Expr> = names
            .iter()
            .map(|name| self.call_by_name(Callee::of(name), &[], arguments.clone(), site))
            .collect();
        let whole = self.one_of(Some(callee.clone()), calls, site);
        Some(if before.is_empty() {
            whole
        } else {
            after(before, whole)
        })
    }

    fn assume_targets(&mut self, callee: &Expr, names: &[String]) {
        let mut at = callee;
        let symbol = loop {
            match &at.kind {
                ExprKind::Index(base, _) | ExprKind::Field(base, _) | ExprKind::Cast(_, base) => {
                    at = base;
                }
                ExprKind::Var(id) => break self.vars[id.0 as usize].name.clone(),
                _ => break "a pointer to a function".to_owned(),
            }
        };
        if self.unevaluated == 0 {
            let value = match names {
                [only] => format!("points to {only}"),
                _ => format!("points to one of {}", names.join(", ")),
            };
            self.assume(&symbol, &value, AssumptionKind::Target);
        }
    }

    /// The functions that some device pointer of the file is initialised with.
    fn stored_functions(&self) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for ty in self.unit.global_types() {
            let mut at = ty;
            while let Type::Array(element, _) = at {
                at = element;
            }
            for name in functions_of(at).unwrap_or_default() {
                if !found.iter().any(|known| known == name) {
                    found.push(name.to_owned());
                }
            }
        }
        found.sort_unstable();
        found
    }

    /// A value that several branches read.
    pub(super) fn read_once(&mut self, value: &Expr, before: &mut Vec<Stmt>) -> Expr {
        if is_pure(value)
            || matches!(
                value.ty,
                Type::Callable(_) | Type::Library(_) | Type::Array(..)
            )
            || matches!(value.kind, ExprKind::AddressOf(_))
        {
            return value.clone();
        }
        if is_place(value) {
            return self.frozen(value.clone(), before);
        }
        let held = self.temporary("argument", value.ty.clone(), value.site);
        self.assign_to(held, value.clone(), value.site, before);
        self.var(held, value.site)
    }

    /// One of several values; which one only the data says. `selector` is evaluated first.
    pub(super) fn one_of(
        &mut self,
        selector: Option<Expr>,
        mut values: Vec<Expr>,
        site: Site,
    ) -> Expr {
        let plain = selector
            .as_ref()
            .is_none_or(|value| matches!(&value.kind, ExprKind::List(all) if all.is_empty()));
        if values.len() == 1 {
            let only = values.remove(0);
            return match selector {
                Some(selector) if !plain => {
                    let statement = Stmt {
                        kind: StmtKind::Expr(selector),
                        site,
                    };
                    after(vec![statement], only)
                }
                _ => only,
            };
        }
        let ty = values.first().map_or(Type::Void, |value| value.ty.clone());
        let kept = !matches!(ty, Type::Void | Type::Library(_) | Type::Callable(_));
        let result = kept.then(|| self.temporary("result", ty.clone(), site));
        let mut chain: Vec<Stmt> = Vec::new();
        let last = values.len().saturating_sub(1);
        for (at, value) in values.into_iter().enumerate().rev() {
            let mut body = Vec::new();
            match result {
                Some(result) => self.assign_to(result, value, site, &mut body),
                None => body.push(Stmt {
                    kind: StmtKind::Expr(value),
                    site,
                }),
            }
            if at == last {
                chain = body;
                continue;
            }
            let parts = if at == 0 {
                selector.iter().cloned().collect()
            } else {
                Vec::new()
            };
            let which = Expr {
                kind: ExprKind::Opaque(Opaque::Unknown, parts),
                ty: Type::INT,
                site,
            };
            chain = vec![Stmt {
                kind: StmtKind::If(which, body, chain),
                site,
            }];
        }
        Expr {
            kind: ExprKind::Inline(chain, result),
            ty: if kept { ty } else { Type::Void },
            site,
        }
    }
}
