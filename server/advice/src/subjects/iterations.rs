//! Loops whose iterations other threads could execute.

use warplens_facts::facts::{LinearAddress, Link, LoopCarried, Node, Op, Space};

use warplens_ir::{BinaryOp, Expr, ExprKind, Part, Stmt, StmtKind, VarId, parts};

use crate::Context;

/// A loop and where it is in the flow.
pub(crate) struct Divisible {
    /// An index into each list of nodes from the outermost, and true but for the other side of a branch.
    pub path: Vec<(usize, bool)>,
    /// Its trip count.
    pub iterations: f64,
}

/// The outermost loops of known length, of as many iterations as this or more, that do not need each other's results: counters, and
/// sums that are added up at the end, are all that they carry. With a line those that the condition at it guards.
pub(crate) fn divisible(ctx: &Context<'_>, least: f64, behind: Option<u32>) -> Vec<Divisible> {
    let mut search = Search {
        ctx,
        least,
        behind,
        path: Vec::new(),
        loops: 0,
        found: Vec::new(),
    };
    if ctx.facts.dependence.complete {
        search.look(&ctx.input.flow.nodes, behind.is_none());
    }
    search.found
}

struct Search<'a> {
    ctx: &'a Context<'a>,
    least: f64,
    behind: Option<u32>,
    path: Vec<(usize, bool)>,
    /// Loops around.
    loops: usize,
    found: Vec<Divisible>,
}

impl Search<'_> {
    /// True where iterations have work of their own: not where each loads and stores what the one before has, nor where they hand
    /// on what they know in shared memory or by atomic operations, whose order they may need, or only take their time.
    fn moves(&self, body: &[Node]) -> bool {
        let depth = self.loops;
        let mut moving = false;
        let mut handed_on = false;
        each_access(body, &mut |index| {
            let Some(access) = self.ctx.facts.accesses.get(index) else {
                return;
            };
            let still = |linear: &LinearAddress| linear.loops.get(depth) == Some(&0);
            moving |= !access.linear.as_ref().is_some_and(still);
            handed_on |=
                access.space == Space::Shared && access.op != Op::Load || access.op == Op::Atomic;
        });
        moving && !handed_on
    }

    fn look(&mut self, nodes: &[Node], inside: bool) {
        for (at, node) in nodes.iter().enumerate() {
            match node {
                Node::Loop {
                    trips,
                    known,
                    body,
                    line,
                    ..
                } => {
                    self.path.push((at, true));
                    if !inside {
                        self.loops += 1;
                        self.look(body, false);
                        self.loops -= 1;
                    } else if *known
                        && *trips >= self.least
                        && !carries(self.ctx, *line)
                        && self.moves(body)
                    {
                        self.found.push(Divisible {
                            path: self.path.clone(),
                            iterations: *trips,
                        });
                    }
                    self.path.pop();
                }
                Node::Branch {
                    then,
                    otherwise,
                    line,
                    ..
                } => {
                    self.path.push((at, true));
                    self.look(then, inside || Some(*line) == self.behind);
                    self.path.pop();
                    self.path.push((at, false));
                    self.look(otherwise, inside);
                    self.path.pop();
                }
                _ => {}
            }
        }
    }
}

/// True where an iteration of the loop at a line needs what the one before has found.
fn carries(ctx: &Context<'_>, line: u32) -> bool {
    let mut of_loop = ctx.facts.dependence.carried.iter();
    of_loop.any(|carried| carried.site.line == line && !countable(ctx, carried))
}

/// True for what iterations elsewhere can begin by themselves: the loop's counter, and sums that are added up at the end. Other
/// integers may be the state of a generator, or what a scan stores on its way.
fn countable(ctx: &Context<'_>, carried: &LoopCarried) -> bool {
    let mut links = carried.chain.links();
    let plain = links.all(|(link, _)| matches!(link, Link::Integer | Link::Add | Link::Fma));
    let mut found = false;
    parts(&ctx.kernel.body, &mut |part| {
        if let Part::Statement(statement) = part
            && let StmtKind::Loop {
                condition: Some(condition),
                step,
                body,
                ..
            } = &statement.kind
            && [statement.site.line, condition.site.line].contains(&carried.site.line)
        {
            let is = |id: VarId| ctx.kernel.var(id).name == carried.through;
            let mut counts = false;
            let mut counter = |expression: &Expr| {
                counts |= matches!(expression.kind, ExprKind::Var(id) if is(id));
            };
            condition.expressions(&mut counter);
            if let Some(step) = step {
                step.expressions(&mut counter);
            }
            found |= counts || is_sum(body, &is);
        }
    });
    plain && found
}

/// True where statements do nothing with a variable but add to it.
fn is_sum(body: &[Stmt], is: &dyn Fn(VarId) -> bool) -> bool {
    let names = |expression: &Expr| matches!(expression.kind, ExprKind::Var(id) if is(id));
    let (mut named, mut added) = (0, 0);
    warplens_ir::expressions(body, &mut |expression| {
        named += usize::from(names(expression));
        match &expression.kind {
            ExprKind::Assign(Some(BinaryOp::Add | BinaryOp::Sub), place, _) if names(place) => {
                added += 1;
            }
            // `v = v + e` names it twice.
            ExprKind::Assign(None, place, value) if names(place) => match &value.kind {
                ExprKind::Binary(BinaryOp::Add, a, b) if names(a) || names(b) => added += 2,
                _ => {}
            },
            _ => {}
        }
    });
    added > 0 && named == added
}

/// Visits the accesses of some nodes.
fn each_access(nodes: &[Node], visit: &mut impl FnMut(usize)) {
    for node in nodes {
        match node {
            Node::Access { access, .. } => visit(*access),
            Node::Loop { body, .. } => each_access(body, visit),
            Node::Branch {
                then, otherwise, ..
            } => {
                each_access(then, visit);
                each_access(otherwise, visit);
            }
            _ => {}
        }
    }
}
