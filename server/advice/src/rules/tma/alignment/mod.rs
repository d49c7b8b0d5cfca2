//! tma/alignment: a bulk copy whose addresses or size the hardware does not take.

use warplens_facts::facts::{Access, Form, Op, Space};
use warplens_ir::ExprKind;

use crate::rule::{Look, Rule, State, When};
use crate::subjects::instructions::instructions;
use crate::{Context, Finding, Place, Severity};

pub(crate) const RULE: Rule = Rule {
    id: "tma/alignment",
    title: "a bulk copy whose address or size is no multiple of 16 bytes",
    severity: "warning",
    state: State::Preview,
    explain: include_str!("page.md"),
    look: Look::At(When::Trial, check),
    actions: &[],
};

/// Bytes that addresses and sizes are multiples of (PTX ISA, `cp.async.bulk`).
const UNIT: i64 = 16;
/// Values of each counter that an address is looked at for.
const VALUES: i64 = 4;
/// Counters that are followed together, at most.
const MOST_COUNTERS: usize = 5;

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    let mut told = |place: Place, access: Option<usize>, message: String| {
        if findings.iter().all(|known| known.place != place) {
            findings.push(Finding {
                rule: RULE.id,
                severity: Severity::Warning,
                place,
                message,
                gain: 1.0,
                related: Vec::new(),
                access,
                shared_array: None,
                cure: None,
            });
        }
    };
    for instruction in instructions(ctx, "cp.async.bulk") {
        if instruction.has("tensor") {
            continue;
        }
        if let [_, _, size] = instruction.arguments
            && let ExprKind::Int(bytes) = size.without_casts().kind
            && bytes % UNIT != 0
        {
            told(
                Place::Site(instruction.site),
                None,
                format!(
                    "copy a multiple of {UNIT} bytes ({bytes} are none)\n`{}` takes multiples of {UNIT} bytes: {bytes} are \
                     not copied",
                    short(instruction.mnemonic)
                ),
            );
        }
    }
    for (index, access) in ctx.facts.accesses.iter().enumerate() {
        let Form::Bulk(bytes) = access.form else {
            continue;
        };
        if bytes == 0 || access.requests == Some(0.0) {
            continue;
        }
        let Some(rest) = beside(access) else {
            continue;
        };
        let memory = match access.space {
            Space::Shared => "shared memory",
            _ => "device memory",
        };
        let does = if access.op == Op::Store { "to" } else { "from" };
        told(
            Place::Site(access.site),
            Some(index),
            format!(
                "begin the bulk copy at a multiple of {UNIT} bytes ({rest} behind one)\n\
                 the copy {does} {memory} begins {rest} bytes behind a multiple of {UNIT} in `{}`, for some block or \
                 iteration: the instruction takes such multiples alone",
                access.array
            ),
        );
    }
    findings
}

/// Bytes behind a multiple of the unit, for some block or iteration; `None` where there are none or that is not known.
fn beside(access: &Access) -> Option<i64> {
    let address = access.in_array.as_deref()?;
    // Which thread starts the copy is not known here.
    if address.depends_on_thread() {
        return None;
    }
    let extents = address.extents();
    let counters: Vec<usize> = (0..extents.len())
        .filter(|number| address.depends_on(*number))
        .take(MOST_COUNTERS)
        .collect();
    let mut values = vec![0; extents.len()];
    let mut room = Vec::new();
    let cases = counters
        .iter()
        .map(|counter| extents[*counter].clamp(1, VALUES));
    for mut case in 0..cases.product::<i64>() {
        for counter in &counters {
            let extent = extents[*counter].clamp(1, VALUES);
            values[*counter] = case % extent;
            case /= extent;
        }
        let rest = address.at([0; 3], &values, &mut room).rem_euclid(UNIT);
        if rest != 0 {
            return Some(rest);
        }
    }
    None
}

fn short(mnemonic: &str) -> &str {
    mnemonic.split(".shared").next().unwrap_or(mnemonic)
}
