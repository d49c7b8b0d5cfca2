//! `switch` as branches: one after the other for cases that fall into each other, else one or the other.

use warplens_syntax::{Field, Kind, Node};

use super::construct::operation;
use super::shapes::ends_here;
use super::{Lowering, Source, parts};
use warplens_ir::Reason;
use warplens_ir::{BinaryOp, Expr, ExprKind, Runs, Stmt, StmtKind, Storage};
use warplens_ir::{Site, Type};

/// Statements with all the labels in front of them.
#[derive(Default)]
struct Case {
    labels: Vec<Expr>,
    default: bool,
    body: Vec<Stmt>,
}

impl Case {
    fn falls_through(&self) -> bool {
        !ends_here(&self.body)
    }
}

impl Lowering<'_> {
    pub(super) fn switch(&mut self, node: Node, source: Source, out: &mut Vec<Stmt>) {
        let site = self.site(node, source);
        self.frame().scopes.push(super::Scope::new());
        let value = self.condition(node.field(Field::Condition), source, out);
        let (Some(value), Some(body)) = (value, node.field(Field::Body)) else {
            self.frame().scopes.pop();
            self.lose_statement(node, source, Reason::Switch, out);
            return;
        };
        let value = self.held(value, out);
        let cases = self.cases(body, source);
        self.frame().scopes.pop();
        let way = way(&value, &cases);
        let mut chain = self.chain(&value, cases);
        if chain.is_empty() {
            return;
        }
        let mut branches = Vec::new();
        for statement in &mut chain {
            drop_last_break(statement);
        }
        // A break in the middle of a case leaves the switch.
        self.broken_off(chain, site, &mut branches);
        out.push(Stmt {
            site: value.site,
            kind: StmtKind::Switch(way, branches),
        });
    }

    fn cases(&mut self, body: Node, source: Source) -> Vec<Case> {
        let mut cases = Vec::new();
        let mut case = Case::default();
        for node in parts(body) {
            if node.kind() != Kind::CaseStatement {
                continue;
            }
            let label = node.field(Field::Value);
            match label {
                Some(label) => case.labels.push(self.expr(label, source)),
                None => case.default = true,
            }
            let inner: Vec<Node> = parts(node)
                .into_iter()
                .filter(|child| Some(child.id()) != label.map(|label| label.id()))
                .collect();
            self.statements(&inner, source, &mut case.body);
            // Labels without statements of their own share the next one's.
            if !case.body.is_empty() {
                cases.push(std::mem::take(&mut case));
            }
        }
        cases
    }

    /// Stretches of cases that fall into each other exclude one another; the one with `default` comes last.
    fn chain(&mut self, value: &Expr, cases: Vec<Case>) -> Vec<Stmt> {
        let mut stretches: Vec<Vec<Case>> = Vec::new();
        let mut goes_on = false;
        for case in cases {
            let falls = case.falls_through();
            match stretches.last_mut() {
                Some(stretch) if goes_on => stretch.push(case),
                _ => stretches.push(vec![case]),
            }
            goes_on = falls;
        }
        let default = stretches
            .iter()
            .position(|stretch| stretch.iter().any(|case| case.default));
        let mut chain = match default {
            Some(at) => {
                let stretch = stretches.remove(at);
                self.one_after_another(value, stretch)
            }
            None => Vec::new(),
        };
        for stretch in stretches.into_iter().rev() {
            let labels: Vec<&Expr> = stretch.iter().flat_map(|case| &case.labels).collect();
            let Some(test) = is_one_of(value, &labels) else {
                continue;
            };
            let body = self.one_after_another(value, stretch);
            chain = vec![Stmt {
                site: value.site,
                kind: StmtKind::If(test, body, chain),
            }];
        }
        chain
    }

    /// Cases of which each but the last falls into the next.
    fn one_after_another(&mut self, value: &Expr, mut cases: Vec<Case>) -> Vec<Stmt> {
        let site = value.site;
        if cases.len() < 2 {
            return cases.pop().map(|case| case.body).unwrap_or_default();
        }
        let int = |number| Expr {
            kind: ExprKind::Int(number),
            ty: Type::INT,
            site,
        };
        let fell = self.fresh("fell", Type::INT, Storage::Local, site);
        let mut out = vec![Stmt {
            kind: StmtKind::Declare(fell, Some(int(0))),
            site,
        }];
        let fallen = operation(BinaryOp::Ne, self.var(fell, site), int(0), site);
        let tests: Vec<Option<Expr>> = cases
            .iter()
            .map(|case| {
                if case.default {
                    // Of the labels that come to this stretch at all.
                    let others: Vec<&Expr> = cases
                        .iter()
                        .filter(|other| !other.default)
                        .flat_map(|other| &other.labels)
                        .collect();
                    return match is_one_of(value, &others) {
                        Some(other) => Some(operation(BinaryOp::Eq, other, int(0), site)),
                        None => Some(int(1)),
                    };
                }
                is_one_of(value, &case.labels.iter().collect::<Vec<_>>())
            })
            .collect();
        let last = cases.len() - 1;
        for (at, (case, test)) in cases.into_iter().zip(tests).enumerate() {
            let test = match (at, test) {
                (0, Some(test)) => test,
                (_, Some(test)) => operation(BinaryOp::LogicalOr, fallen.clone(), test, site),
                (_, None) => fallen.clone(),
            };
            let mut body = case.body;
            if at < last {
                self.assign_to(fell, int(1), site, &mut body);
            }
            out.push(Stmt {
                kind: StmtKind::If(test, body, Vec::new()),
                site,
            });
        }
        out
    }
}

/// The number of the case, from 1, that a value goes to.
fn way(value: &Expr, cases: &[Case]) -> Expr {
    let site = value.site;
    let int = |number: usize| Expr {
        kind: ExprKind::Int(number as i64),
        ty: Type::INT,
        site,
    };
    let default = cases.iter().position(|case| case.default);
    let mut way = int(default.map_or(0, |at| at + 1));
    for (at, case) in cases.iter().enumerate().rev() {
        if let Some(test) = is_one_of(value, &case.labels.iter().collect::<Vec<_>>()) {
            way = Expr {
                kind: ExprKind::Select(Box::new(test), Box::new(int(at + 1)), Box::new(way)),
                ty: Type::INT,
                site,
            };
        }
    }
    way
}

/// True where the value is one of the labels.
fn is_one_of(value: &Expr, labels: &[&Expr]) -> Option<Expr> {
    let site: Site = value.site;
    labels
        .iter()
        .map(|&label| {
            let mut test = operation(BinaryOp::Eq, value.clone(), label.clone(), site);
            test.site = site;
            test
        })
        .reduce(|a, b| operation(BinaryOp::LogicalOr, a, b, site))
}

/// A `break` at the end of a case says nothing.
fn drop_last_break(statement: &mut Stmt) {
    for (runs, list) in statement.blocks_mut() {
        if runs == Runs::Repeatedly {
            continue;
        }
        if list.pop_if(|last| last.kind == StmtKind::Break).is_none() {
            list.last_mut().into_iter().for_each(drop_last_break);
        }
    }
}
