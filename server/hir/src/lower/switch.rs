//! `switch` as branches: one after the other for cases that fall into each other, else one or the other. Many cases are found by
//! halving, as compilers find them: what is asked of each grows with the logarithm of their number.

use warplens_syntax::nodes::SwitchStatement;
use warplens_syntax::{Field, Node, RANGE_OF_LABELS};

use super::constants::constant;
use super::construct::operation;
use super::shapes::ends_here;
use super::{Lowering, Source};
use warplens_ir::Reason;
use warplens_ir::{BinaryOp, Expr, ExprKind, Runs, Stmt, StmtKind, Storage};
use warplens_ir::{Site, Type};

/// Stretches of cases that are asked for one after the other, at most.
const MOST_IN_A_ROW: usize = 32;

/// A number that leads to a case, or the first and the last of several: `case 1 ... 9`.
struct Label {
    first: Expr,
    last: Option<Expr>,
}

/// Statements with all the labels in front of them.
#[derive(Default)]
struct Case {
    labels: Vec<Label>,
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
        let (Some(value), Some(switch)) = (value, SwitchStatement::cast(node)) else {
            self.frame().scopes.pop();
            self.lose_statement(node, source, Reason::Switch, out);
            return;
        };
        let value = self.held(value, out);
        let cases = self.cases(switch, source);
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

    fn cases(&mut self, switch: SwitchStatement, source: Source) -> Vec<Case> {
        let mut cases = Vec::new();
        let mut case = Case::default();
        for written in switch.cases() {
            match written.label {
                Some(label) => {
                    let label = self.label(label, source);
                    case.labels.push(label);
                }
                None => case.default = true,
            }
            self.statements(&written.statements, source, &mut case.body);
            // Labels without statements of their own share the next one's.
            if !case.body.is_empty() {
                cases.push(std::mem::take(&mut case));
            }
        }
        cases
    }

    fn label(&mut self, node: Node, source: Source) -> Label {
        let ends = node
            .field(Field::Operator)
            .filter(|operator| super::text_of(*operator, source) == RANGE_OF_LABELS)
            .and_then(|_| node.field(Field::Left).zip(node.field(Field::Right)));
        match ends {
            Some((first, last)) => Label {
                first: self.expr(first, source),
                last: Some(self.expr(last, source)),
            },
            None => Label {
                first: self.expr(node, source),
                last: None,
            },
        }
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
        let default = match default {
            Some(at) => {
                let stretch = stretches.remove(at);
                self.one_after_another(value, stretch)
            }
            None => Vec::new(),
        };
        if let Some(ranges) = ranges(value, &stretches) {
            return self.halved(value, stretches, &ranges, default);
        }
        let mut chain = default;
        for stretch in stretches.into_iter().rev() {
            let labels: Vec<&Label> = stretch.iter().flat_map(|case| &case.labels).collect();
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

    /// Stretches whose labels lie in these ranges, one behind the other, found by halving the ranges.
    fn halved(
        &mut self,
        value: &Expr,
        stretches: Vec<Vec<Case>>,
        ranges: &[(i64, i64)],
        default: Vec<Stmt>,
    ) -> Vec<Stmt> {
        let mut found: Vec<((i64, i64), Stmt)> = Vec::new();
        let mut labels = Vec::new();
        for (stretch, range) in stretches.into_iter().zip(ranges) {
            let own: Vec<&Label> = stretch.iter().flat_map(|case| &case.labels).collect();
            let Some(test) = is_one_of(value, &own) else {
                continue;
            };
            labels.extend(own.iter().filter_map(|label| number(value, label)));
            let body = self.one_after_another(value, stretch);
            let kind = StmtKind::If(test, body, Vec::new());
            let site = value.site;
            found.push((*range, Stmt { kind, site }));
        }
        found.sort_by_key(|(range, _)| *range);
        let tree = halves(value, found);
        match is_within(value, labels) {
            Some(inside) if !default.is_empty() => vec![Stmt {
                site: value.site,
                kind: StmtKind::If(inside, tree, default),
            }],
            _ => tree,
        }
    }

    /// Cases of which each but the last falls into the next.
    fn one_after_another(&mut self, value: &Expr, mut cases: Vec<Case>) -> Vec<Stmt> {
        let site = value.site;
        if cases.len() < 2 {
            return cases.pop().map(|case| case.body).unwrap_or_default();
        }
        let int = |number| integer(number, site);
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
                    let others: Vec<&Label> = cases
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
    let default = cases.iter().position(|case| case.default);
    let default = integer(default.map_or(0, |at| at as i64 + 1), site);
    let numbers = cases.iter().enumerate().flat_map(|(at, case)| {
        let labels = case.labels.iter();
        labels.map(move |label| Some((number(value, label)?, at as i64 + 1)))
    });
    if cases.len() > MOST_IN_A_ROW
        && let Some(mut numbers) = numbers.collect::<Option<Vec<_>>>()
    {
        // Of equal labels the first counts.
        numbers.sort_by_key(|(label, _)| *label);
        numbers.dedup_by_key(|(label, _)| *label);
        return halved_way(value, &numbers, &default);
    }
    let mut way = default;
    for (at, case) in cases.iter().enumerate().rev() {
        if let Some(test) = is_one_of(value, &case.labels.iter().collect::<Vec<_>>()) {
            way = select(test, integer(at as i64 + 1, site), way);
        }
    }
    way
}

/// The same of sorted labels with the numbers of their cases, by halving.
fn halved_way(value: &Expr, numbers: &[(i64, i64)], default: &Expr) -> Expr {
    let site = value.site;
    match numbers {
        [] => default.clone(),
        [(label, number)] => {
            let test = compared(BinaryOp::Eq, value, *label);
            select(test, integer(*number, site), default.clone())
        }
        _ => {
            let (below, above) = numbers.split_at(numbers.len() / 2);
            let test = compared(BinaryOp::Lt, value, above[0].0);
            let below = halved_way(value, below, default);
            select(test, below, halved_way(value, above, default))
        }
    }
}

/// The ranges of the labels of many stretches, where these are numbers and no range reaches into another.
fn ranges(value: &Expr, stretches: &[Vec<Case>]) -> Option<Vec<(i64, i64)>> {
    if stretches.len() <= MOST_IN_A_ROW {
        return None;
    }
    let ranges = stretches.iter().map(|stretch| {
        let labels = stretch.iter().flat_map(|case| &case.labels);
        let numbers = labels.map(|label| number(value, label));
        let numbers: Vec<i64> = numbers.collect::<Option<_>>()?;
        Some((*numbers.iter().min()?, *numbers.iter().max()?))
    });
    let ranges: Vec<(i64, i64)> = ranges.collect::<Option<_>>()?;
    let mut sorted = ranges.clone();
    sorted.sort_unstable();
    let apart = sorted.windows(2).all(|two| two[0].1 < two[1].0);
    apart.then_some(ranges)
}

/// A label that is ordered as values of the switch are: a number, and of unsigned values no negative one.
fn number(value: &Expr, label: &Label) -> Option<i64> {
    let unsigned = matches!(value.ty, Type::Int { signed: false, .. });
    let only = label.last.is_none().then(|| constant(&label.first))?;
    only.filter(|number| *number >= 0 || !unsigned)
}

/// Sorted statements, each of which asks for the values of a range, by halving.
fn halves(value: &Expr, mut found: Vec<((i64, i64), Stmt)>) -> Vec<Stmt> {
    if found.len() < 2 {
        return found.pop().map(|(_, one)| one).into_iter().collect();
    }
    let above = found.split_off(found.len() / 2);
    let test = compared(BinaryOp::Lt, value, above[0].0.0);
    vec![Stmt {
        site: value.site,
        kind: StmtKind::If(test, halves(value, found), halves(value, above)),
    }]
}

/// True where the value is one of these numbers: by the stretches without a gap.
fn is_within(value: &Expr, mut numbers: Vec<i64>) -> Option<Expr> {
    numbers.sort_unstable();
    let together = numbers.chunk_by(|a, b| b.wrapping_sub(*a) <= 1);
    let tests = together.filter_map(|stretch| {
        let (first, last) = (*stretch.first()?, *stretch.last()?);
        if first == last {
            return Some(compared(BinaryOp::Eq, value, first));
        }
        let from = compared(BinaryOp::Ge, value, first);
        let to = compared(BinaryOp::Le, value, last);
        Some(operation(BinaryOp::LogicalAnd, from, to, value.site))
    });
    tests.reduce(|a, b| operation(BinaryOp::LogicalOr, a, b, value.site))
}

fn compared(op: BinaryOp, value: &Expr, number: i64) -> Expr {
    let number = Expr {
        ty: value.ty.clone(),
        ..integer(number, value.site)
    };
    operation(op, value.clone(), number, value.site)
}

fn select(test: Expr, yes: Expr, no: Expr) -> Expr {
    let site = test.site;
    Expr {
        kind: ExprKind::Select(Box::new(test), Box::new(yes), Box::new(no)),
        ty: Type::INT,
        site,
    }
}

fn integer(number: i64, site: Site) -> Expr {
    Expr {
        kind: ExprKind::Int(number),
        ty: Type::INT,
        site,
    }
}

/// True where the value is one of the labels.
fn is_one_of(value: &Expr, labels: &[&Label]) -> Option<Expr> {
    let site: Site = value.site;
    labels
        .iter()
        .map(|&label| {
            let against = |op, label: &Expr| operation(op, value.clone(), label.clone(), site);
            let mut test = match &label.last {
                None => against(BinaryOp::Eq, &label.first),
                Some(last) => {
                    let from = against(BinaryOp::Ge, &label.first);
                    let to = against(BinaryOp::Le, last);
                    operation(BinaryOp::LogicalAnd, from, to, site)
                }
            };
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
