//! tensor/idle: a product of matrices in half precision that the matrix units could compute.

use warplens_facts::facts::{Access, OpClass, Space};
use warplens_ir::Type;

use crate::rule::{Look, Rule, State, When};
use crate::wording::number;
use crate::{Context, Finding, Place, Severity};

pub(crate) const RULE: Rule = Rule {
    id: "tensor/idle",
    title: "a matrix product in half precision that leaves the matrix units idle",
    severity: "information",
    state: State::Preview,
    explain: include_str!("page.md"),
    look: Look::At(When::Trial, check),
    actions: &[],
};

/// Operations for each byte of global memory from which a kernel is a product of tiles, not of a matrix and a vector.
const INTENSITY: f64 = 8.0;
/// Operations below which nothing is worth rewriting.
const FEW: f64 = 1e7;
/// Arithmetic of other types beside it, at most this share.
const BESIDE: f64 = 0.25;

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    finding(ctx).into_iter().collect()
}

fn finding(ctx: &Context<'_>) -> Option<Finding> {
    ctx.profile.tensor_fp16_fma?;
    let operations = |class: OpClass| -> f64 {
        let all = ctx.facts.operations.iter();
        let all = all.filter(|operation| operation.operator.class() == class);
        all.map(|operation| operation.threads).sum()
    };
    let (half, single) = (operations(OpClass::Fp16), operations(OpClass::Fp32));
    let others = operations(OpClass::Fp64) + operations(OpClass::Sfu);
    if operations(OpClass::Tensor) > 0.0 {
        return None;
    }
    let factors = shared_factors(ctx);
    let [first, second, ..] = factors.as_slice() else {
        return None;
    };
    // The matrix units add up in single precision what they multiply in half precision.
    let converted = single > half && [first, second].into_iter().all(|of| holds_halves(ctx, of));
    let (half, beside, what) = if converted {
        (
            single,
            half + others,
            "operations on half-precision factors",
        )
    } else {
        (half, single + others, "half-precision operations")
    };
    if half < FEW || beside > half * BESIDE {
        return None;
    }
    let bytes = global_bytes(ctx)?;
    let intensity = half / bytes.max(1.0);
    if intensity < INTENSITY {
        return None;
    }
    Some(Finding {
        rule: RULE.id,
        severity: Severity::Information,
        place: Place::Site(first.site),
        message: format!(
            "use the matrix units for this product ({} {what} per global byte)\n\
             {} {what} per byte of global memory, of factors in shared memory, and no `wmma` or \
             `mma`: the matrix units of {} do {} multiply-adds per cycle and SM in half precision",
            number(intensity),
            number(intensity),
            ctx.profile.name,
            number(ctx.profile.tensor_fp16_fma?)
        ),
        gain: 1.0,
        related: vec![(second.site, "the other factor".to_owned())],
        access: None,
        shared_array: None,
        cure: None,
    })
}

/// Loads of two shared arrays in the innermost loops.
fn shared_factors<'a>(ctx: &Context<'a>) -> Vec<&'a Access> {
    let mut found: Vec<&Access> = Vec::new();
    for access in &ctx.facts.accesses {
        let factor = access.space == Space::Shared
            && access.op == warplens_facts::facts::Op::Load
            && access.loop_depth > 0;
        if factor && !found.iter().any(|known| known.array == access.array) {
            found.push(access);
        }
    }
    found
}

/// True where an access reads an array of halves.
fn holds_halves(ctx: &Context<'_>, access: &Access) -> bool {
    let mut vars = ctx.kernel.vars.iter();
    vars.find(|var| *var.name == *access.array)
        .is_some_and(|var| {
            let mut ty = &var.ty;
            while let Type::Array(inner, _) | Type::Vector(inner, _) = ty {
                ty = inner;
            }
            matches!(ty, Type::Float { bits: 16, .. })
        })
}

/// Bytes that the kernel moves from and to global memory, in sectors.
fn global_bytes(ctx: &Context<'_>) -> Option<f64> {
    let accesses = ctx.facts.accesses.iter();
    let accesses = accesses.filter(|access| access.space == Space::Global);
    accesses
        .map(|access| {
            let sectors = access.transactions_per_request? * access.requests?;
            Some(sectors * f64::from(access.transaction_bytes))
        })
        .sum()
}
