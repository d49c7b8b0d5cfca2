//! launch/impossible: what cannot run on the target at all.

use std::sync::LazyLock;

use warplens_facts::facts::Source;
use warplens_machine::{Limiter, Profile, Profiles, launch_problem};

use crate::rule::{Look, Rule, State, When};
use crate::wording;
use crate::{Context, Finding, Place, Severity};

pub(crate) const RULE: Rule = Rule {
    id: "launch/impossible",
    title: "a block, shared memory or registers that cannot launch on the target",
    severity: "error; hint where it rests on estimated registers, or where another GPU can run it",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::At(When::Launch, check),
    actions: &[],
};

/// Blocks of one thread: to ask about the grid alone, or about the block alone.
const ONE: [u64; 3] = [1, 1, 1];

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(block(ctx));
    findings.extend(grid(ctx));
    findings.extend(shared(ctx));
    if findings.is_empty() {
        findings.extend(registers(ctx));
    }
    findings
}

fn impossible(severity: Severity, place: Place, message: String) -> Finding {
    Finding {
        rule: RULE.id,
        severity,
        place,
        message,
        gain: 1.0,
        related: Vec::new(),
        access: None,
        shared_array: None,
        cure: None,
    }
}

/// The block's shape against the target and against what the kernel promises. The assumed block is no
/// finding.
fn block(ctx: &Context<'_>) -> Option<Finding> {
    let launch = &ctx.facts.launch;
    if launch.block_source == Source::Assumed {
        return None;
    }
    let threads = launch
        .block
        .iter()
        .fold(1_u64, |all, size| all.saturating_mul(*size));
    let why = launch_problem(ctx.profile, ONE, launch.block).or_else(|| {
        let most = ctx
            .facts
            .max_threads_per_block
            .filter(|most| threads > *most)?;
        Some(format!(
            "a block of {threads} threads; `__launch_bounds__` allows at most {most}"
        ))
    })?;
    Some(impossible(
        Severity::Error,
        Place::Launch,
        format!("the launch fails: {why}"),
    ))
}

fn grid(ctx: &Context<'_>) -> Option<Finding> {
    let refused = ctx.occupancy.limiter == Limiter::Grid;
    let why = ctx.occupancy.why_impossible.as_ref().filter(|_| refused)?;
    Some(impossible(
        Severity::Error,
        Place::Launch,
        format!("the launch fails: {why}"),
    ))
}

/// Static shared memory beyond what compiles, or static and dynamic together beyond what a block can have.
fn shared(ctx: &Context<'_>) -> Option<Finding> {
    let facts = ctx.facts;
    let dynamic = facts.launch.dynamic_shared_bytes;
    let fixed = ctx.input.resources.static_shared_bytes;
    let largest = facts
        .shared_arrays
        .iter()
        .enumerate()
        .filter(|(_, array)| !array.dynamic)
        .max_by_key(|(_, array)| array.bytes);
    let at_array = largest.map_or(Place::Kernel, |(_, array)| Place::Site(array.site));
    let most = u64::from(ctx.profile.shared_per_block);
    let (place, message) = if fixed > most {
        let name = &ctx.profile.name;
        let more = if u64::from(ctx.profile.shared_per_block_max()) > most {
            ", more is to be had as dynamic shared memory only"
        } else {
            ""
        };
        (
            at_array,
            format!(
                "this does not compile: {fixed} bytes of static shared memory, {name} allows {most}\n\
                 {fixed} bytes of static shared memory; {name} has at most {most} per block: this does not \
                 compile{more}"
            ),
        )
    } else if ctx.occupancy.limiter == Limiter::Shared {
        let why = ctx.occupancy.why_impossible.as_ref()?;
        let place = if dynamic > 0 { Place::Launch } else { at_array };
        (place, format!("the launch fails: {why}"))
    } else {
        return None;
    };
    let shared_array = match place {
        Place::Site(_) => largest.map(|(index, _)| index),
        Place::Kernel | Place::Launch | Place::Host(_) | Place::HostLoop(_) => None,
    };
    let (severity, message) = match roomier(ctx, fixed, dynamic) {
        Some(other) => (
            Severity::Information,
            format!("{message}; {other} has room for it"),
        ),
        None => (Severity::Error, message),
    };
    Some(Finding {
        shared_array,
        ..impossible(severity, place, message)
    })
}

/// The GPU of this maker nearest in shared memory that can hold the block's: the kernel is written for another target.
fn roomier(ctx: &Context<'_>, fixed: u64, dynamic: u64) -> Option<String> {
    static PROFILES: LazyLock<Profiles> = LazyLock::new(Profiles::builtin);
    let fits = |profile: &Profile| {
        profile.vendor == ctx.profile.vendor
            && fixed <= u64::from(profile.shared_per_block)
            && fixed + dynamic <= u64::from(profile.shared_per_block_max())
    };
    let roomier = PROFILES.iter().filter(|profile| fits(profile));
    let nearest = roomier.min_by_key(|profile| {
        let architecture = profile.compute_capability;
        (profile.shared_per_block_max(), architecture)
    })?;
    Some(nearest.name.clone())
}

/// A number estimated from the source proves nothing: only the compiler's or the user's is an error.
fn registers(ctx: &Context<'_>) -> Option<Finding> {
    if ctx.occupancy.limiter != Limiter::Registers {
        return None;
    }
    let why = ctx.occupancy.why_impossible.as_ref()?;
    let launch = &ctx.facts.launch;
    let assumed = (launch.block_source == Source::Assumed)
        .then(|| format!("assumes block {}", wording::extents(launch.block)));
    if ctx.registers_known {
        let message = wording::sentence([Some(format!("the launch fails: {why}")), assumed]);
        Some(impossible(Severity::Error, Place::Launch, message))
    } else {
        let message = wording::sentence([
            Some(format!(
                "the launch may fail, or the compiler spills: {why}"
            )),
            Some("registers are estimated".to_owned()),
            assumed,
        ]);
        Some(impossible(Severity::Hint, Place::Launch, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Kernel;

    #[track_caller]
    fn only(kernel: &Kernel) -> Finding {
        let mut findings = kernel.findings(|_| 1.0);
        assert_eq!(findings.len(), 1, "{findings:#?}");
        assert_eq!(findings[0].rule, "launch/impossible");
        findings.remove(0)
    }

    #[test]
    fn a_block_of_two_thousand_threads_is_an_error_at_the_launch() {
        let finding = only(&Kernel::new().block([2000, 1, 1]));
        assert_eq!(finding.severity, Severity::Error);
        assert_eq!(finding.place, Place::Launch);
        assert!(finding.message.contains("2000") && finding.message.contains("1024"));
        assert_eq!(finding.gain, 1.0);
        // Each extent is allowed, the product is not.
        assert_eq!(
            only(&Kernel::new().block([64, 32, 1])).severity,
            Severity::Error
        );
    }

    #[test]
    fn no_threads_are_an_error_and_many_blocks_in_x_are_none() {
        only(&Kernel::new().block([256, 0, 1]));
        let mut kernel = Kernel::new();
        kernel.facts.launch.grid = [70_000, 1, 1];
        assert_eq!(kernel.findings(|_| 1.0), []);
    }

    #[test]
    fn launch_bounds_are_a_promise() {
        let mut kernel = Kernel::new().block([256, 1, 1]);
        kernel.facts.max_threads_per_block = Some(128);
        assert!(
            only(&kernel)
                .message
                .contains("`__launch_bounds__` allows at most 128")
        );
        kernel.facts.max_threads_per_block = Some(256);
        assert_eq!(kernel.findings(|_| 1.0), []);
    }

    #[test]
    fn an_assumed_block_is_not_reported_and_a_configured_one_is() {
        let mut kernel = Kernel::new().block([2000, 1, 1]);
        kernel.facts.launch.block_source = Source::Assumed;
        assert_eq!(kernel.findings(|_| 1.0), []);
        kernel.facts.launch.block_source = Source::Config;
        only(&kernel);
    }

    #[test]
    fn too_much_static_shared_memory_is_an_error_at_the_array() {
        let kernel = Kernel::new().shared(65_536);
        let finding = only(&kernel);
        assert_eq!(
            finding.place,
            Place::Site(kernel.facts.shared_arrays[0].site)
        );
        assert_eq!(finding.shared_array, Some(0));
        assert!(
            finding
                .message
                .contains("65536 bytes of static shared memory")
        );
    }

    #[test]
    fn dynamic_shared_memory_may_go_up_to_the_opt_in_limit() {
        let mut kernel = Kernel::new().block([512, 1, 1]);
        kernel.facts.launch.dynamic_shared_bytes = 80_000;
        let findings = kernel.findings(|_| 1.0);
        assert!(findings.iter().all(|finding| finding.rule != RULE.id));
        kernel.facts.launch.dynamic_shared_bytes = 200_000;
        let finding = only(&kernel);
        assert_eq!(finding.severity, Severity::Information);
        assert!(
            finding.message.contains("has room for it"),
            "{}",
            finding.message
        );
        kernel.facts.launch.dynamic_shared_bytes = 300_000;
        let finding = only(&kernel);
        assert_eq!(
            (finding.severity, finding.place),
            (Severity::Error, Place::Launch)
        );
        assert!(finding.message.contains("300000"));
    }

    #[test]
    fn estimated_registers_are_no_proof() {
        let mut kernel = Kernel::new().block([1024, 1, 1]).registers(128);
        let finding = only(&kernel);
        assert_eq!(finding.severity, Severity::Hint);
        assert!(
            finding.message.contains("registers are estimated"),
            "{}",
            finding.message
        );
        kernel.registers_known = true;
        assert_eq!(only(&kernel).severity, Severity::Error);
    }
}
