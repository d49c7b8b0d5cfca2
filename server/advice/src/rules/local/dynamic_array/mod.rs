//! local/dynamic-array and local/large-frame: a thread's own array that the compiler keeps in memory.

pub(crate) mod unroll_local;

use warplens_codegen::Class;
use warplens_facts::facts::{Access, Certainty, Site, Space};
use warplens_ir::{
    ExprKind, Fold, Stmt, StmtKind, Storage, Type, Var, VarId, expressions, fold_block,
    fold_statement,
};
use warplens_models::Change;

use crate::rule::{Look, Rule, State, When};
use crate::wording;
use crate::{Context, Finding, Place};

pub(crate) const RULE: Rule = Rule {
    id: "local/dynamic-array",
    title: "a thread's own array lies in memory because of how it is subscripted",
    severity: "by predicted gain: hint, information or warning",
    state: State::Preview,
    explain: include_str!("page.md"),
    look: Look::At(When::Cost, check),
    actions: &[unroll_local::fixes],
};

/// An array of this many bytes finds no registers, however it is subscripted.
const NO_ROOM: u64 = 4 * 255;

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let kept: u64 = ctx.compiled.local_bytes;
    if kept == 0 {
        return Vec::new();
    }
    let subscripted: Vec<(&Var, Vec<usize>)> = ctx
        .kernel
        .vars
        .iter()
        .filter(|var| var.storage == Storage::Local && matches!(var.ty, Type::Array(..)))
        .filter_map(|var| {
            let accesses: Vec<usize> = (0..ctx.facts.accesses.len())
                .filter(|at| {
                    let access = &ctx.facts.accesses[*at];
                    access.space == Space::Local
                        && access.array == var.name
                        && access.requests != Some(0.0)
                })
                .collect();
            (!accesses.is_empty()).then_some((var, accesses))
        })
        .collect();
    // The compiled kernel says how many bytes, not of which arrays: all of them, or the one of that size.
    let all: u64 = subscripted.iter().map(|(var, _)| var.ty.size()).sum();
    let in_memory: Vec<_> = if all <= kept {
        subscripted
    } else {
        let mut alike = subscripted
            .into_iter()
            .filter(|(var, _)| var.ty.size() == kept);
        match (alike.next(), alike.next()) {
            (Some(one), None) => vec![one],
            _ => Vec::new(),
        }
    };
    in_memory
        .iter()
        .filter_map(|(var, accesses)| finding(ctx, var, accesses))
        .collect()
}

/// What the kernel gains with every loop unrolled whose counter is in a subscript of the array; `None` where the array
/// stays in memory, or the changed kernel cannot be followed.
fn unrolled(ctx: &Context<'_>, accesses: &[usize]) -> Option<f64> {
    let sites = accesses.iter().map(|at| ctx.facts.accesses[*at].site);
    let sites: Vec<Site> = sites.collect();
    let mut counters = Vec::new();
    expressions(&ctx.kernel.body, &mut |expression| {
        if sites.contains(&expression.site)
            && let ExprKind::Index(_, index) = &expression.kind
        {
            index.expressions(&mut |part| {
                if let ExprKind::Var(var) = part.kind {
                    counters.push(var);
                }
            });
        }
    });
    let mut kernel = ctx.kernel.clone();
    let mut unrolled = Unrolled {
        counters: &counters,
        loops: 0,
    };
    fold_block(&mut unrolled, &mut kernel.body);
    if unrolled.loops == 0 {
        return None;
    }
    let again = ctx.recompile(&kernel)?;
    let of_array = |(site, _, times): &(Site, Class, f64)| *times > 0.0 && sites.contains(site);
    (!again.after.iter().any(of_array)).then(|| crate::believed(again.gain))
}

/// Asks for the loops to be unrolled that step one of these.
struct Unrolled<'a> {
    counters: &'a [VarId],
    /// How many there are.
    loops: usize,
}

impl Fold for Unrolled<'_> {
    fn statement(&mut self, statement: &mut Stmt) {
        if let StmtKind::Loop {
            step: Some(step),
            unroll: unroll @ None,
            ..
        } = &mut statement.kind
            && step.reads(self.counters)
        {
            *unroll = Some(0);
            self.loops += 1;
        }
        fold_statement(self, statement);
    }
}

fn finding(ctx: &Context<'_>, var: &Var, accesses: &[usize]) -> Option<Finding> {
    let bytes = var.ty.size();
    let gain = match unrolled(ctx, accesses) {
        Some(gain) => gain,
        None => ctx.trial(&[Change::WithoutAccesses(accesses.to_vec())])?,
    };
    let requests = |access: &Access| access.requests.unwrap_or(0.0);
    let worst = accesses
        .iter()
        .map(|at| &ctx.facts.accesses[*at])
        .max_by(|a, b| requests(a).total_cmp(&requests(b)));
    let name = &var.name;
    let (rule, place, why) = match worst {
        Some(worst) if bytes <= NO_ROOM => (
            RULE.id,
            Place::Site(worst.site),
            format!(
                "the subscript of `{}` is not known when it is compiled, so `{name}` gets no registers",
                worst.text
            ),
        ),
        _ => (
            crate::rules::local::large_frame::RULE.id,
            Place::Site(var.site),
            format!(
                "`{name}` is too big for registers; share it among threads, or work on it in parts"
            ),
        ),
    };
    let (certainty, predicted) = if ctx.registers_known {
        (Certainty::Exact, "")
    } else {
        (Certainty::Assumed, " (predicted)")
    };
    Some(Finding {
        rule,
        // Memory that is predicted is no ground for a warning.
        severity: wording::severity(gain, certainty, false),
        place,
        message: wording::sentence([
            Some(format!(
                "{} ({bytes} bytes per thread in local memory{})",
                match worst {
                    Some(_) if bytes <= NO_ROOM => {
                        format!("make the subscripts of `{}` constant", wording::short(name))
                    }
                    _ => format!("shrink `{}`", wording::short(name)),
                },
                if ctx.registers_known {
                    ""
                } else {
                    ", predicted"
                }
            )),
            Some(format!(
                "{bytes} bytes of local memory a thread{predicted}: {why}"
            )),
            Some(wording::gain(gain)),
        ]),
        gain,
        related: Vec::new(),
        access: None,
        shared_array: None,
        cure: None,
    })
}
