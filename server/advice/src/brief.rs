//! Kernels that are over before their launch is.

use std::fmt::Write as _;

use crate::subjects::launch;
use crate::wording::VISIBLE;
use crate::{Context, Finding, Severity};

/// Findings that promise time of such a kernel are a step less loud, and say why: its launch takes longer. The fact is as true,
/// and costs at other sizes.
pub(crate) fn lower(ctx: &Context<'_>, findings: &mut [Finding]) {
    if !launch::grid_given(ctx) || !launch::brief(ctx) {
        return;
    }
    let Some(cycles) = (ctx.cycles)() else {
        return;
    };
    let microseconds = cycles / ctx.profile.sm_clock_mhz;
    for finding in findings {
        let lowered = match finding.severity {
            Severity::Warning => Severity::Information,
            Severity::Information => Severity::Hint,
            Severity::Hint | Severity::Error => continue,
        };
        if finding.gain >= VISIBLE {
            finding.severity = lowered;
            let _ = write!(
                finding.message,
                "\nthe kernel takes {microseconds:.1} µs under this launch, less than launching it"
            );
        }
    }
}
