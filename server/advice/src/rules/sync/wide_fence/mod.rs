//! sync/wide-fence: a fence of a wider scope than who reads what it orders.

pub(crate) mod narrow_fence;

use warplens_facts::facts::{Op, Space};
use warplens_ir::{Effect, Expr, ExprKind, Function, expressions};

use crate::rule::{Look, Rule, State, When};
use crate::{Context, Cure, Finding, Place, Severity};

pub(crate) const RULE: Rule = Rule {
    id: "sync/wide-fence",
    title: "a fence waits until more of the system than the readers sees a thread's stores",
    severity: "hint",
    state: State::Preview,
    explain: include_str!("page.md"),
    look: Look::At(When::Trial, check),
    actions: &[narrow_fence::fixes],
};

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    expressions(&ctx.kernel.body, &mut |expression| {
        found.extend(finding(ctx, expression));
    });
    found
}

fn finding(ctx: &Context<'_>, expression: &Expr) -> Option<Finding> {
    let ExprKind::Call(Function::Ignored(Effect::Fence, name), _) = &expression.kind else {
        return None;
    };
    let system = &**name == "__threadfence_system";
    if !(system || &**name == "__threadfence") || expression.site.callee != 0 {
        return None;
    }
    let facts = ctx.facts;
    let writes = |space| {
        let mut accesses = facts.accesses.iter();
        accesses.any(|access| access.space == space && access.op != Op::Load)
    };
    let understood = facts.not_understood.is_empty();
    let narrow = understood && writes(Space::Shared) && !writes(Space::Global);
    let message = if narrow {
        format!(
            "use `__threadfence_block()` (no store to global memory to order)\n\
             0 stores to global memory are ordered by `{name}()`: `__threadfence_block()` will do"
        )
    } else if system {
        "use `__threadfence()` unless the host or another GPU reads the stores\n\
         every store before `__threadfence_system()` has to be seen by the host and by other GPUs before the thread goes \
         on: where only this GPU reads them, `__threadfence()` will do"
            .to_owned()
    } else {
        return None;
    };
    Some(Finding {
        rule: RULE.id,
        severity: Severity::Hint,
        place: Place::Site(expression.site),
        message,
        gain: 1.0,
        related: Vec::new(),
        access: None,
        shared_array: None,
        cure: narrow.then_some(Cure::WithinBlock),
    })
}
