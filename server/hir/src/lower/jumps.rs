//! `goto`, and a `break` in the middle of a switch: jumps as branches and loops.
//!
//! A jump is first left in place as a mark. Where the label is further down, what lies between is put
//! under the condition that the jump was not taken; where it is further up, what lies between is a loop.

use warplens_syntax::{Field, Kind, Node};

use super::construct::operation;
use super::{Lowering, Source, parts, text_of};
use warplens_ir::Reason;
use warplens_ir::{
    BinaryOp, Expr, ExprKind, LoopKind, Runs, Stmt, StmtKind, Storage, Unknown, VarId,
};
use warplens_ir::{Site, Type};

/// Labels of one block that are followed.
const MOST_LABELS: usize = 64;

/// A label that a jump may name from where it is.
pub(super) struct Label {
    name: String,
    /// The function it belongs to, as a depth of calls.
    frame: usize,
}

/// Whether control comes out at the end of statements or jumps.
#[derive(Clone, Copy, PartialEq)]
enum Leaves {
    Never,
    Maybe,
    Always,
}

impl Leaves {
    /// Of a loop, by its body: it may not run.
    fn of_loop(self) -> Leaves {
        match self {
            Leaves::Never => Leaves::Never,
            _ => Leaves::Maybe,
        }
    }
}

impl Lowering<'_> {
    /// `goto label;`
    pub(super) fn jump(&mut self, node: Node, source: Source, out: &mut Vec<Stmt>) {
        let site = self.site(node, source);
        let label = parts(node)
            .first()
            .map_or("", |label| text_of(*label, source));
        let frame = self.frames.len();
        let known = self
            .labels
            .iter()
            .any(|known| known.frame == frame && known.name == label);
        let lost = if known {
            Stmt {
                kind: StmtKind::Unknown(Unknown::Jump(label.into())),
                site,
            }
        } else {
            self.unknown_statement(site, Reason::Goto)
        };
        out.push(lost);
    }

    /// The statements of a block among which labels stand.
    pub(super) fn labelled(&mut self, nodes: &[Node], source: Source, out: &mut Vec<Stmt>) {
        let jumps: Vec<Vec<&str>> = nodes.iter().map(|&node| jumps_in(node, source)).collect();
        self.stretch(nodes, &jumps, false, source, out);
    }

    /// `started` where the first statement's label is that of the loop being read.
    fn stretch(
        &mut self,
        nodes: &[Node],
        jumps: &[Vec<&str>],
        started: bool,
        source: Source,
        out: &mut Vec<Stmt>,
    ) {
        let labels: Vec<(usize, &str)> = nodes
            .iter()
            .enumerate()
            .filter_map(|(at, &node)| Some((at, label_of(node, source)?)))
            .take(MOST_LABELS)
            .collect();
        let loops: Vec<(usize, usize, &str)> = labels
            .iter()
            .filter(|&&(at, _)| at > 0 || !started)
            .filter_map(|&(at, label)| {
                let last = jumps[at..].iter().rposition(|all| all.contains(&label))?;
                Some((at, at + last, label))
            })
            .collect();
        let forward = labels.iter().rev().find_map(|&(at, label)| {
            let mut first = jumps[..at].iter().position(|all| all.contains(&label))?;
            // A jump out of a loop: the loop is skipped whole.
            for &(begins, ends, _) in loops.iter().rev() {
                if begins < first && (first..at).contains(&ends) {
                    first = begins;
                }
            }
            Some((first, at, label))
        });
        let around = |&&(begins, ends, _): &&(usize, usize, &str)| {
            forward.is_none_or(|(first, at, _)| begins <= first && ends >= at)
        };
        if let Some(&(begins, ends, label)) = loops.iter().find(around) {
            self.stretch(&nodes[..begins], &jumps[..begins], started, source, out);
            let all = begins..=ends;
            let body = self.with_label(label, |lowering, body| {
                lowering.stretch(&nodes[all.clone()], &jumps[all], true, source, body);
            });
            let site = self.site(nodes[begins], source);
            self.repeated(body, label, site, out);
            let rest = ends + 1..;
            self.stretch(&nodes[rest.clone()], &jumps[rest], false, source, out);
            return;
        }
        let Some((first, at, label)) = forward else {
            self.plain_statements(nodes, source, out);
            return;
        };
        self.stretch(&nodes[..first], &jumps[..first], started, source, out);
        let started = started && first == 0;
        let mut body = self.with_label(label, |lowering, body| {
            lowering.stretch(&nodes[first..at], &jumps[first..at], started, source, body);
        });
        let site = self.site(nodes[first], source);
        self.skipped(&mut body, label, site, out);
        self.stretch(&nodes[at..], &jumps[at..], false, source, out);
    }

    fn with_label(
        &mut self,
        label: &str,
        read: impl FnOnce(&mut Self, &mut Vec<Stmt>),
    ) -> Vec<Stmt> {
        self.labels.push(Label {
            name: label.to_owned(),
            frame: self.frames.len(),
        });
        let mut body = Vec::new();
        read(self, &mut body);
        self.labels.pop();
        body
    }

    /// Statements of which a jump leaves the rest out.
    fn skipped(&mut self, body: &mut Vec<Stmt>, mark: &str, site: Site, out: &mut Vec<Stmt>) {
        let mut flagged = false;
        leaving(body, mark, false, &mut flagged);
        let flag = flagged.then(|| {
            let flag = self.fresh("jumped", Type::INT, Storage::Local, site);
            out.push(Stmt {
                kind: StmtKind::Declare(flag, Some(number(0, site))),
                site,
            });
            flag
        });
        self.leave(body, mark, flag, false);
        out.append(body);
    }

    /// Statements that a jump at their end, or from their middle, runs again.
    fn repeated(&mut self, mut body: Vec<Stmt>, label: &str, site: Site, out: &mut Vec<Stmt>) {
        if super::shapes::leaves_early(&body) || super::shapes::continues(&body) {
            // They would end this loop, not the one around it.
            drop_marks(&mut body, label);
            out.append(&mut body);
            self.lost(site, Reason::Goto);
            return;
        }
        let (mut init, mut condition) = (Vec::new(), None);
        // `label: …; if (c) goto label;` is `do … while (c)`.
        if let Some(StmtKind::If(_, then, otherwise)) = body.last().map(|last| &last.kind)
            && otherwise.is_empty()
            && matches!(then.as_slice(), [only] if is_mark(only, label))
            && leaving(&body[..body.len() - 1], label, false, &mut false) == Leaves::Never
            && let Some(Stmt {
                kind: StmtKind::If(test, ..),
                ..
            }) = body.pop()
        {
            condition = Some(test);
        }
        if condition.is_none() {
            let flag = self.fresh("again", Type::INT, Storage::Local, site);
            let target = self.var(flag, site);
            init.push(Stmt {
                kind: StmtKind::Declare(flag, Some(number(0, site))),
                site,
            });
            self.leave(&mut body, label, Some(flag), false);
            let mut whole = Vec::new();
            self.assign_to(flag, number(0, site), site, &mut whole);
            whole.append(&mut body);
            body = whole;
            condition = Some(operation(BinaryOp::Ne, target, number(0, site), site));
        }
        out.push(Stmt {
            kind: StmtKind::Loop {
                kind: LoopKind::Do,
                init,
                condition,
                step: None,
                body,
                unroll: None,
            },
            site,
        });
    }

    /// A chain of branches that a `break` leaves: what a switch becomes.
    pub(super) fn broken_off(&mut self, mut chain: Vec<Stmt>, site: Site, out: &mut Vec<Stmt>) {
        mark_breaks(&mut chain, "");
        self.skipped(&mut chain, "", site, out);
    }

    /// Replaces the marks: what follows a jump is executed only where the jump was not taken. Inside a loop
    /// the flag says it, and the loop is left.
    fn leave(
        &mut self,
        list: &mut Vec<Stmt>,
        mark: &str,
        flag: Option<VarId>,
        in_loop: bool,
    ) -> Leaves {
        let mut found = Leaves::Never;
        let mut at = 0;
        while at < list.len() {
            if is_mark(&list[at], mark) {
                let site = list[at].site;
                // What follows is never reached.
                list.truncate(at);
                if let Some(flag) = flag {
                    self.assign_to(flag, number(1, site), site, list);
                }
                if in_loop {
                    list.push(Stmt {
                        kind: StmtKind::Break,
                        site,
                    });
                }
                return Leaves::Always;
            }
            let site = list[at].site;
            let (here, looped) = match &mut list[at].kind {
                StmtKind::If(_, then, otherwise) => {
                    let left = self.leave(then, mark, flag, in_loop);
                    let other = self.leave(otherwise, mark, flag, in_loop);
                    if !in_loop && (left == Leaves::Always) != (other == Leaves::Always) {
                        let mut rest = list.split_off(at + 1);
                        let after = self.leave(&mut rest, mark, flag, false);
                        if let StmtKind::If(_, then, otherwise) = &mut list[at].kind {
                            let (side, side_leaves) = if left == Leaves::Always {
                                (otherwise, other)
                            } else {
                                (then, left)
                            };
                            match (side_leaves, flag) {
                                (Leaves::Maybe, Some(flag)) if !rest.is_empty() => {
                                    let unless = self.unless(flag, rest, site);
                                    side.push(unless);
                                }
                                _ => side.append(&mut rest),
                            }
                        }
                        return if after == Leaves::Always {
                            Leaves::Always
                        } else {
                            Leaves::Maybe
                        };
                    }
                    (joined(left, other), false)
                }
                _ => {
                    let mut found = (Leaves::Never, false);
                    for (runs, inner) in list[at].blocks_mut() {
                        found = match runs {
                            Runs::Repeatedly => {
                                (self.leave(inner, mark, flag, true).of_loop(), true)
                            }
                            _ => (self.leave(inner, mark, flag, in_loop), false),
                        };
                    }
                    found
                }
            };
            match (here, flag) {
                (Leaves::Always, _) => {
                    list.truncate(at + 1);
                    return Leaves::Always;
                }
                // Behind a loop the next one around it is left as well.
                (Leaves::Maybe, Some(flag)) if in_loop && looped => {
                    found = Leaves::Maybe;
                    let out = Stmt {
                        kind: StmtKind::Break,
                        site,
                    };
                    let test = self.flag_is(BinaryOp::Ne, flag, site);
                    list.insert(
                        at + 1,
                        Stmt {
                            kind: StmtKind::If(test, vec![out], Vec::new()),
                            site,
                        },
                    );
                }
                (Leaves::Maybe, Some(flag)) if !in_loop => {
                    let mut rest = list.split_off(at + 1);
                    let after = self.leave(&mut rest, mark, Some(flag), false);
                    if !rest.is_empty() {
                        let unless = self.unless(flag, rest, site);
                        list.push(unless);
                    }
                    return joined(Leaves::Maybe, after);
                }
                (Leaves::Maybe, _) => found = Leaves::Maybe,
                (Leaves::Never, _) => {}
            }
            at += 1;
        }
        found
    }

    fn flag_is(&self, op: BinaryOp, flag: VarId, site: Site) -> Expr {
        operation(op, self.var(flag, site), number(0, site), site)
    }

    fn unless(&self, flag: VarId, rest: Vec<Stmt>, site: Site) -> Stmt {
        Stmt {
            kind: StmtKind::If(self.flag_is(BinaryOp::Eq, flag, site), rest, Vec::new()),
            site,
        }
    }
}

fn is_mark(statement: &Stmt, label: &str) -> bool {
    matches!(&statement.kind, StmtKind::Unknown(Unknown::Jump(to)) if **to == *label)
}

fn number(value: i64, site: Site) -> Expr {
    Expr {
        kind: ExprKind::Int(value),
        ty: Type::INT,
        site,
    }
}

fn joined(a: Leaves, b: Leaves) -> Leaves {
    if a == b { a } else { Leaves::Maybe }
}

/// Whether statements jump, and whether a flag is needed to say so.
fn leaving(list: &[Stmt], mark: &str, in_loop: bool, flagged: &mut bool) -> Leaves {
    let mut found = Leaves::Never;
    for (at, statement) in list.iter().enumerate() {
        // One side jumps and the other does not: the rest belongs to the other.
        let mut one_sided = false;
        let here = match &statement.kind {
            _ if is_mark(statement, mark) => {
                *flagged |= in_loop;
                return Leaves::Always;
            }
            StmtKind::If(_, then, otherwise) => {
                let left = leaving(then, mark, in_loop, flagged);
                let other = leaving(otherwise, mark, in_loop, flagged);
                one_sided = left != other && left != Leaves::Maybe && other != Leaves::Maybe;
                joined(left, other)
            }
            _ => statement
                .blocks()
                .map(|(runs, inner)| match runs {
                    Runs::Repeatedly => leaving(inner, mark, true, flagged).of_loop(),
                    _ => leaving(inner, mark, in_loop, flagged),
                })
                .find(|here| *here != Leaves::Never)
                .unwrap_or(Leaves::Never),
        };
        match here {
            Leaves::Always => return Leaves::Always,
            Leaves::Maybe => {
                *flagged |= !one_sided && at + 1 < list.len();
                found = Leaves::Maybe;
            }
            Leaves::Never => {}
        }
    }
    found
}

fn drop_marks(list: &mut Vec<Stmt>, mark: &str) {
    list.retain(|statement| !is_mark(statement, mark));
    for (_, inner) in list.iter_mut().flat_map(Stmt::blocks_mut) {
        drop_marks(inner, mark);
    }
}

/// The breaks that leave the statements themselves, as marks.
fn mark_breaks(list: &mut [Stmt], mark: &str) {
    for statement in list {
        if statement.kind == StmtKind::Break {
            statement.kind = StmtKind::Unknown(Unknown::Jump(mark.into()));
        }
        for (runs, inner) in statement.blocks_mut() {
            if runs != Runs::Repeatedly {
                mark_breaks(inner, mark);
            }
        }
    }
}

/// The label in front of a statement.
fn label_of<'t>(node: Node, source: Source<'t>) -> Option<&'t str> {
    (node.kind() == Kind::LabeledStatement)
        .then(|| node.field(Field::Label))?
        .map(|label| text_of(label, source))
}

/// The labels that jumps in a statement name.
fn jumps_in<'t>(node: Node, source: Source<'t>) -> Vec<&'t str> {
    let mut found = Vec::new();
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        match node.kind() {
            Kind::GotoStatement => {
                let label = parts(node).first().map(|label| text_of(*label, source));
                found.extend(label);
            }
            // A jump does not leave a lambda.
            Kind::LambdaExpression | Kind::BlockLiteral => {}
            _ => {
                open.extend(node.named_children());
            }
        }
    }
    found
}
