//! `for (T x : range)`: over an array, a list of values, and whatever has a `begin` and an `end`.

use warplens_ir::{
    AddressSpace, BinaryOp, Expr, ExprKind, LoopKind, Reason, Site, Stmt, StmtKind, Storage, Type,
    UnaryOp,
};
use warplens_syntax::{Field, Kind, Node};

use super::construct::{element, operation};
use super::shapes::{is_place, is_pure};
use super::split::deref;
use super::statements::discarded;
use super::{Lowering, Named, Source};

/// The head of a loop over a range, and what one iteration calls its element.
struct Head {
    init: Vec<Stmt>,
    condition: Expr,
    step: Expr,
    item: Expr,
}

impl Lowering<'_> {
    /// `for (T x : range)`, in a block of its own with what comes before, `for (int i = 0; T x : range)`.
    pub(super) fn range_loop(&mut self, node: Node, source: Source, out: &mut Vec<Stmt>) {
        self.frame().scopes.push(super::Scope::new());
        if let Some(before) = node.field(Field::Initializer) {
            self.before_condition(before, source, out);
        }
        self.plain_range_loop(node, source, out);
        self.frame().scopes.pop();
    }

    fn plain_range_loop(&mut self, node: Node, source: Source, out: &mut Vec<Stmt>) {
        let site = self.site(node, source);
        let (Some(ty), Some(declarator), Some(range), Some(body)) = (
            node.field(Field::Type),
            node.field(Field::Declarator),
            node.field(Field::Right),
            node.field(Field::Body),
        ) else {
            self.lose_statement(node, source, Reason::RangeLoop, out);
            return;
        };
        let listed = range.kind() == Kind::InitializerList;
        let head = if listed {
            let all = self.initializers(range, source);
            let values = all.into_iter().map(|value| self.held(value, out)).collect();
            self.over_values(values, site)
        } else {
            let range = self.expr(range, source);
            match (range.ty.clone(), is_place(&range)) {
                (Type::Array(_, Some(extent)), place) => {
                    let range = if place {
                        range
                    } else {
                        self.kept_as("range", range, site, out)
                    };
                    let index = self.counter(site);
                    let item = element(range, index.clone(), site);
                    Some(counted(index, extent, item, site))
                }
                _ => self.over_iterators(range, site, out),
            }
        };
        let Some(head) = head else {
            self.lose_statement(node, source, Reason::RangeLoop, out);
            return;
        };
        self.frame().scopes.push(super::Scope::new());
        let base = self.base_type(ty, source);
        let declared = self.declarator(declarator, base, AddressSpace::Global, source);
        let mut statements = Vec::new();
        let item = head.item;
        if declared.reference && !listed && is_place(&item) {
            let item = if is_pure(&item) {
                item
            } else {
                self.frozen(item, &mut statements)
            };
            self.bind(&declared.name, Named::Alias(Box::new(item)));
        } else {
            let ty = match declared.ty {
                Type::Unknown(_) => item.ty.clone(),
                ty => ty,
            };
            let id = self.new_var(&declared.name, ty, Storage::Local, site);
            self.split_variable(id);
            self.assign_to(id, item, site, &mut statements);
        }
        statements.extend(self.block(body, source));
        self.frame().scopes.pop();
        out.push(Stmt {
            kind: StmtKind::Loop {
                kind: LoopKind::For,
                init: head.init,
                condition: Some(head.condition),
                step: Some(head.step),
                body: statements,
                unroll: None,
            },
            site,
        });
    }

    fn counter(&mut self, site: Site) -> Expr {
        let counter = self.fresh("index", Type::INT, Storage::Local, site);
        self.var(counter, site)
    }

    /// `{a, b, c}`: what the counter says is taken from it.
    fn over_values(&mut self, values: Vec<Expr>, site: Site) -> Option<Head> {
        let index = self.counter(site);
        let extent = values.len() as u64;
        let chosen = values
            .into_iter()
            .enumerate()
            .rev()
            .reduce(|(_, rest), (at, value)| {
                let this = operation(BinaryOp::Eq, index.clone(), int(at as i64, site), site);
                let ty = value.ty.clone();
                let kind = ExprKind::Select(Box::new(this), Box::new(value), Box::new(rest));
                (at, Expr { kind, ty, site })
            });
        let (_, item) = chosen?;
        Some(counted(index, extent, item, site))
    }

    /// A range with `begin` and `end`: pointers, or iterators of a class (C++20 9.5.5 [stmt.ranged]). `None`, and nothing in `out`,
    /// where one of the functions that it takes was not read.
    fn over_iterators(&mut self, range: Expr, site: Site, out: &mut Vec<Stmt>) -> Option<Head> {
        let mut before = Vec::new();
        let range = if !is_place(&range) {
            self.kept_as("range", range, site, &mut before)
        } else if is_pure(&range) {
            range
        } else {
            self.frozen(range, &mut before)
        };
        let mut limit = |lowering: &mut Self, name: &str| {
            let value = lowering
                .method_call(&range, name, &[], &[], site)
                .or_else(|| lowering.library_method(&range, name, &[], &[], site))?;
            Some(lowering.kept_as(name, value, site, &mut before))
        };
        let (at, end) = (limit(self, "begin")?, limit(self, "end")?);
        let (condition, step, item) = match &at.ty {
            Type::Pointer(..) => (
                operation(BinaryOp::Ne, at.clone(), end, site),
                Expr {
                    kind: ExprKind::Step(1, false, Box::new(at.clone())),
                    ty: at.ty.clone(),
                    site,
                },
                deref(at, site),
            ),
            Type::Struct(_) => {
                let end = [end];
                let differs = self.operator_call("operator!=", &at, &end, site);
                let differs = differs.or_else(|| {
                    let same = self.operator_call("operator==", &at, &end, site)?;
                    Some(Expr {
                        kind: ExprKind::Unary(UnaryOp::Not, Box::new(same)),
                        ty: Type::BOOL,
                        site,
                    })
                });
                (
                    differs?,
                    discarded(self.operator_call("operator++", &at, &[], site)?),
                    self.operator_call("operator*", &at, &[], site)?,
                )
            }
            _ => return None,
        };
        out.append(&mut before);
        Some(Head {
            init: Vec::new(),
            condition,
            step,
            item,
        })
    }

    /// The value in a variable of that name.
    pub(super) fn kept_as(
        &mut self,
        name: &str,
        value: Expr,
        site: Site,
        out: &mut Vec<Stmt>,
    ) -> Expr {
        let id = self.temporary(name, value.ty.clone(), site);
        self.assign_to(id, value, site, out);
        self.var(id, site)
    }
}

fn int(value: i64, site: Site) -> Expr {
    Expr {
        kind: ExprKind::Int(value),
        ty: Type::INT,
        site,
    }
}

/// `for (int index = 0; index < extent; ++index)`.
fn counted(index: Expr, extent: u64, item: Expr, site: Site) -> Head {
    let init = match index.kind {
        ExprKind::Var(counter) => vec![Stmt {
            kind: StmtKind::Declare(counter, Some(int(0, site))),
            site,
        }],
        _ => Vec::new(),
    };
    Head {
        init,
        condition: operation(BinaryOp::Lt, index.clone(), int(extent as i64, site), site),
        step: Expr {
            kind: ExprKind::Step(1, false, Box::new(index)),
            ty: Type::INT,
            site,
        },
        item,
    }
}
