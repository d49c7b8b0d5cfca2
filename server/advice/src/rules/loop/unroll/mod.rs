//! loop/unroll: a loop with more iterations than it needs, and that the compiler keeps as it is.

pub(crate) mod unroll_loop;

use warplens_facts::facts::{Branch, BranchKind, Certainty, Op, Space};
use warplens_ir::{Expr, ExprKind, Part, Site, Stmt, StmtKind, parts};

use crate::rule::{Look, Rule, State, When};
use crate::subjects::arith::{self, Executed};
use crate::wording::{self, number};
use crate::{Context, Cure, Finding, Place, Severity};

pub(crate) const RULE: Rule = Rule {
    id: "loop/unroll",
    title: "a loop that the compiler does not unroll, and that would take fewer instructions unrolled",
    severity: "by predicted gain: information",
    state: State::Preview,
    explain: include_str!("page.md"),
    look: Look::At(When::Trial, check),
    actions: &[unroll_loop::fixes],
};

/// Loops that are compiled anew, the hottest.
const TRIED: usize = 2;
/// Fewer iterations are not worth it.
const FEWEST: f64 = 4.0;
/// A body of more parts gains little by it and fills the instruction cache.
const LONGEST: usize = 200;
/// A body of no more parts is tried eight times over where its end is not known, a longer one four times.
const SMALL: usize = 64;
/// The most iterations that are unrolled whole, and the most parts of all of them.
const WHOLE: f64 = 32.0;
const WHOLE_PARTS: usize = 2000;
/// What counts and tests, as a part of all instructions, from which it is worth a try.
const PART: f64 = 0.03;

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let hot = |branch: &&Branch| {
        branch.kind == BranchKind::Loop
            && branch.site.callee == 0
            && branch.certainty != Certainty::Unknown
            && branch.trips.is_some_and(|trips| trips >= FEWEST)
            && branch.evaluations.is_some_and(|warps| warps > 0.0)
    };
    let hot: Vec<&Branch> = ctx.facts.branches.iter().filter(hot).collect();
    if hot.is_empty() {
        return Vec::new();
    }
    let mut candidates = Vec::new();
    let mut number = 0;
    loops(&ctx.kernel.body, &mut |statement| {
        candidates.extend(candidate(&hot, statement, number));
        number += 1;
    });
    candidates.sort_by(|a, b| b.turns().total_cmp(&a.turns()));
    candidates.truncate(TRIED);
    if candidates.is_empty() {
        return Vec::new();
    }
    let Some(executed) = Executed::new(ctx) else {
        return Vec::new();
    };
    let all = executed.at(|_| true).total();
    let found = candidates.iter().filter_map(|candidate| {
        let counts = executed.at(|site| candidate.counts(ctx, site));
        (counts.total() >= PART * all).then(|| finding(ctx, candidate, counts.total() / all))?
    });
    found.collect()
}

/// A loop that may be unrolled further.
struct Candidate<'a> {
    /// How many loops begin before it.
    number: usize,
    branch: &'a Branch,
    trips: f64,
    condition: &'a Expr,
    step: Option<&'a Expr>,
    body: &'a [Stmt],
    /// True where the trip count is constant.
    fixed: bool,
    parts: usize,
}

impl Candidate<'_> {
    /// Iterations over the launch.
    fn turns(&self) -> f64 {
        self.trips * self.branch.evaluations.unwrap_or(0.0)
    }

    /// True for what moves or tests the counter.
    fn counts(&self, ctx: &Context<'_>, site: Site) -> bool {
        let heads = std::iter::once(self.condition).chain(self.step);
        heads
            .into_iter()
            .any(|head| arith::holds(ctx, head.site, site))
    }

    /// Iterations side by side that it is tried with: `None` is all.
    fn times(&self) -> Option<u64> {
        if !self.fixed {
            return Some(if self.parts <= SMALL { 8 } else { 4 });
        }
        if self.trips <= WHOLE && self.parts as f64 * self.trips <= WHOLE_PARTS as f64 {
            return None;
        }
        let divides = |times: &u64| (self.trips as u64).is_multiple_of(*times);
        Some([8, 4, 2].into_iter().find(divides).unwrap_or(4))
    }
}

/// The loop, where nothing in it forbids that.
fn candidate<'a>(hot: &[&'a Branch], statement: &'a Stmt, number: usize) -> Option<Candidate<'a>> {
    let StmtKind::Loop {
        init,
        condition: Some(condition),
        step,
        body,
        unroll: None,
        ..
    } = &statement.kind
    else {
        return None;
    };
    let branch = *hot.iter().find(|branch| branch.site == condition.site)?;
    let trips = branch.trips?;
    let fixed = trips.fract() == 0.0 && constant_bound(condition) && starts_at_constant(init);
    let (mut count, mut barrier, mut left) = (0, false, false);
    parts(body, &mut |part| {
        count += 1;
        if let Part::Statement(statement) = part {
            barrier |= matches!(statement.kind, StmtKind::Barrier);
            // How often iterations side by side would be left in the middle is not known.
            left |= matches!(
                statement.kind,
                StmtKind::Unknown(_) | StmtKind::Break | StmtKind::Return(_)
            );
        }
    });
    // What is left over behind a loop of unknown length would have to meet at a barrier of its own.
    let possible = !left && (fixed || !barrier) && count <= LONGEST;
    possible.then_some(Candidate {
        number,
        branch,
        trips,
        condition,
        step: step.as_ref(),
        body,
        fixed,
        parts: count,
    })
}

/// True where a comparison with a number ends the loop.
fn constant_bound(condition: &Expr) -> bool {
    match &condition.kind {
        ExprKind::Binary(_, a, b) => [a, b].iter().any(|side| arith::constant(side).is_some()),
        _ => false,
    }
}

fn starts_at_constant(init: &[Stmt]) -> bool {
    init.iter().any(|statement| match &statement.kind {
        StmtKind::Declare(_, Some(value)) => arith::constant(value).is_some(),
        StmtKind::Expr(assigned) => match &assigned.kind {
            ExprKind::Assign(None, _, value) => arith::constant(value).is_some(),
            _ => false,
        },
        _ => false,
    })
}

fn finding(ctx: &Context<'_>, candidate: &Candidate, counting: f64) -> Option<Finding> {
    let times = candidate.times();
    let mut kernel = ctx.kernel.clone();
    let asked = times.unwrap_or(0);
    set_unroll(&mut kernel.body, &mut { candidate.number }, asked);
    let again = ctx.recompile(&kernel)?;
    let gain = crate::believed(again.gain);
    let (before, after) = again.instructions;
    if gain < wording::WORTH_KNOWING || after >= before || again.spill_bytes.1 > again.spill_bytes.0
    {
        return None;
    }
    let branch = candidate.branch;
    let pragma = match times {
        Some(times) => format!("#pragma unroll {times}"),
        None => "#pragma unroll".to_owned(),
    };
    Some(Finding {
        rule: RULE.id,
        // That the compiler keeps the loop is a prediction.
        severity: wording::severity(gain, Certainty::Assumed, false).min(Severity::Information),
        place: Place::Site(branch.site),
        message: wording::sentence([
            Some(format!(
                "unroll the loop: `{pragma}` ({} instructions per warp instead of {})",
                number(after),
                number(before)
            )),
            Some(format!(
                "{} instructions per warp, {} with `{pragma}` (predicted): {} of them count and test `{}`, in {} \
                 iterations that the compiler keeps{}",
                number(before),
                number(after),
                wording::percent(counting),
                branch.text,
                number(candidate.trips),
                in_flight(ctx, candidate, times),
            )),
            Some(wording::gain(gain)),
            match branch.certainty {
                Certainty::Exact => None,
                _ => wording::assumes(ctx.facts, &[&branch.text]),
            },
        ]),
        gain,
        related: Vec::new(),
        access: None,
        shared_array: None,
        cure: Some(Cure::Unroll(times)),
    })
}

/// `, and 8 loads could be in flight instead of 2`, where loads of neighbouring iterations wait for nothing.
fn in_flight(ctx: &Context<'_>, candidate: &Candidate, times: Option<u64>) -> String {
    let mut loads = 0;
    let mut waits = false;
    parts(candidate.body, &mut |part| match part {
        Part::Expression(expression) => {
            let accesses = ctx.facts.accesses.iter();
            for access in accesses.filter(|access| access.site == expression.site) {
                let device = access.space == Space::Global;
                waits |= device && access.op != Op::Load;
                loads += usize::from(device && access.op == Op::Load);
            }
        }
        Part::Statement(statement) => {
            let kind = &statement.kind;
            waits |= matches!(kind, StmtKind::Barrier | StmtKind::If(..));
        }
    });
    let times = times.map_or(candidate.trips, |times| times as f64);
    if waits || loads == 0 {
        return String::new();
    }
    format!(
        ", and {} loads could be in flight instead of {loads}",
        number(loads as f64 * times)
    )
}

/// Visits the loops of the kernel's own statements, outer ones first.
fn loops<'a>(statements: &'a [Stmt], visit: &mut dyn FnMut(&'a Stmt)) {
    for statement in statements {
        if matches!(statement.kind, StmtKind::Loop { .. }) {
            visit(statement);
        }
        for (_, inner) in statement.blocks() {
            loops(inner, visit);
        }
    }
}

/// Asks for one of them to be unrolled, by its number in the order of [`loops`].
fn set_unroll(statements: &mut [Stmt], number: &mut usize, times: u64) -> bool {
    statements.iter_mut().any(|statement| {
        if let StmtKind::Loop { unroll, .. } = &mut statement.kind {
            if *number == 0 {
                *unroll = Some(times);
                return true;
            }
            *number -= 1;
        }
        let mut blocks = statement.blocks_mut();
        blocks.any(|(_, inner)| set_unroll(inner, number, times))
    })
}
