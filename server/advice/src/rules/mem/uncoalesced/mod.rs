//! mem/uncoalesced: more transactions than the bytes need, for no more specific reason.

use std::cell::OnceCell;

use warplens_facts::facts::{Access, Pattern, Space};
use warplens_machine::GlobalRule;
use warplens_models::Factor;

use crate::rule::{Look, Rule, State, When};
use crate::rules::mem::{aos, column_walk, misaligned, strided};
use crate::subjects::access::{self, Candidate, Costly, Loudness};
use crate::subjects::{flow, siblings};
use crate::wording::{array_of, number, on_average};
use crate::{Context, Finding, Removal};

pub(crate) const RULE: Rule = Rule {
    id: "mem/uncoalesced",
    title: "a warp's global access moves more transactions than its bytes need",
    severity: "by predicted gain: hint, information or warning",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::At(When::Traffic, check),
    actions: &[],
};

/// Transactions above this multiple of the ideal are worth a finding.
const EXCESS: f64 = 1.25;
/// The same of what only begins in the wrong place: one sector more than four.
const SHIFTED: f64 = 1.2;
/// An access with less than this part of the kernel's transactions cannot matter.
const NEGLIGIBLE: f64 = 0.001;

/// A rule about one global access: whether the access is its case, and the cause in words.
struct MemoryRule {
    id: &'static str,
    claims: fn(&Costly<'_>) -> bool,
    /// What to do with the array of this name.
    cure: fn(&str) -> String,
    cause: fn(&Costly<'_>) -> String,
}

/// The most specific first: one access, one rule.
const SPECIFIC: [MemoryRule; 5] = [
    MemoryRule {
        id: column_walk::RULE.id,
        claims: column_walk::claims,
        cure: |array| format!("let a warp walk along rows of `{array}`"),
        cause: column_walk::cause,
    },
    MemoryRule {
        id: aos::RULE.id,
        claims: aos::claims,
        cure: |array| format!("store each field of `{array}` as an array of its own"),
        cause: aos::cause,
    },
    MemoryRule {
        id: strided::RULE.id,
        claims: strided::claims,
        cure: |array| format!("take elements of `{array}` that lie side by side"),
        cause: strided::cause,
    },
    MemoryRule {
        id: misaligned::RULE.id,
        claims: misaligned::claims,
        cure: |array| format!("begin rows of `{array}` on a sector"),
        cause: misaligned::cause,
    },
    MemoryRule {
        id: RULE.id,
        claims,
        cure: |array| format!("coalesce the accesses to `{array}`"),
        cause,
    },
];

/// The findings of the global-memory rules.
pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let moved: f64 = ctx
        .facts
        .accesses
        .iter()
        .filter_map(|a| Some(a.transactions_per_request? * a.requests.unwrap_or(1.0)))
        .sum();
    let loops = OnceCell::new();
    let innermost = |access: usize| {
        let loops = loops.get_or_init(|| flow::innermost(&ctx.input.flow.nodes));
        loops.get(&access).copied()
    };
    let mut whole = Whole::default();
    let joined = siblings::Joined::of(ctx);
    let library = siblings::States::of(ctx);
    let turns = siblings::Turns::new(ctx);
    let candidates = ctx
        .facts
        .accesses
        .iter()
        .enumerate()
        .filter(|(_, access)| !joined.hold(access))
        .filter_map(|(index, access)| {
            if column_walk::rows::is_walked(ctx, index, innermost) {
                return Some(row_by_data(ctx, index, access));
            }
            let costly = costly(ctx, access, moved)?;
            let rule = SPECIFIC.iter().find(|rule| (rule.claims)(&costly))?;
            // Of a structure that is copied whole no byte is left out, whatever distance its pieces have.
            if rule.id == strided::RULE.id && siblings::is_piece(ctx, index) {
                return None;
            }
            // How a library lays out its states is not the user's to change.
            if [aos::RULE.id, strided::RULE.id].contains(&rule.id) && library.holds(access) {
                return None;
            }
            let whole = whole.of(ctx, rule.id, access);
            Some(Candidate {
                rule: rule.id,
                index,
                number: format!(
                    "{} per request{} (ideal {})",
                    units(ctx, access, access.transactions_per_request?),
                    on_average(access.transactions_per_request?),
                    number(access.ideal_transactions_per_request?)
                ),
                cure: match whole {
                    Some(_) => format!("load each structure of `{}` whole", array_of(access)),
                    None if rule.id == column_walk::RULE.id
                        && column_walk::transposes(ctx, index) =>
                    {
                        format!("transpose tiles of `{}` in shared memory", array_of(access))
                    }
                    None if siblings::stores_the_rest(ctx, index, &turns) => {
                        format!("store each element of `{}` at once", array_of(access))
                    }
                    None => (rule.cure)(&array_of(access)),
                },
                cause: (rule.cause)(&costly),
                loudness: loudness(ctx, rule.id, index, &turns),
                gain: whole,
            })
        })
        .collect();
    access::findings(ctx, candidates, Factor::Uncoalesced)
}

/// What is known of loading whole structures, by array.
#[derive(Default)]
struct Whole<'a> {
    tried: Vec<(&'a str, Option<f64>)>,
}

impl<'a> Whole<'a> {
    /// What that gains, where it is the better cure of what a rule has found: more than this, which arrays of their own
    /// would gain.
    fn of(&mut self, ctx: &Context<'_>, rule: &str, access: &'a Access) -> Option<f64> {
        if rule != aos::RULE.id {
            return None;
        }
        let known = self.tried.iter().find(|(array, _)| *array == access.array);
        if let Some((_, gain)) = known {
            return *gain;
        }
        let apart = ctx.gain(Removal::Factor(Factor::Uncoalesced));
        let gain = aos::loaded_whole(ctx, access).filter(|gain| *gain >= apart);
        self.tried.push((&access.array, gain));
        gain
    }
}

/// Whether a cache catches what an access moves too much.
fn loudness(ctx: &Context<'_>, rule: &str, index: usize, turns: &siblings::Turns<'_>) -> Loudness {
    let caught = if rule == misaligned::RULE.id {
        misaligned::is_caught(ctx)
    } else {
        siblings::use_the_rest(ctx, index, turns) || siblings::is_piece(ctx, index)
    };
    match caught {
        false => Loudness::ByGain,
        true if rule == aos::RULE.id => Loudness::HintAlone,
        true => Loudness::Hint,
    }
}

/// True where lanes take elements that lie apart: the finding about it comes before others about the same access.
pub(crate) fn is_apart(ctx: &Context<'_>, access: &Access) -> bool {
    costly(ctx, access, 0.0).is_some_and(|costly| !costly.only_misaligned)
}

/// A row that data places, walked along by one thread.
fn row_by_data(ctx: &Context<'_>, index: usize, access: &Access) -> Candidate {
    let lanes = f64::from(ctx.facts.warp_size);
    let unit = f64::from(access.transaction_bytes.max(1));
    let ideal = (lanes * f64::from(access.bytes_per_lane) / unit).max(1.0);
    Candidate {
        rule: column_walk::RULE.id,
        index,
        number: format!(
            "up to {} per request (ideal {})",
            units(ctx, access, lanes),
            number(ideal)
        ),
        cure: format!("let a warp walk along each row of `{}`", array_of(access)),
        cause: column_walk::rows::cause(access),
        loudness: Loudness::ByGain,
        gain: None,
    }
}

/// The access with its surroundings, where it moves more than it should; `moved` is what all accesses move.
fn costly<'a>(ctx: &Context<'_>, access: &'a Access, moved: f64) -> Option<Costly<'a>> {
    if access.space != Space::Global
        || matches!(access.pattern, Pattern::DataDependent | Pattern::Unknown)
    {
        return None;
    }
    let transactions = access.transactions_per_request?;
    let ideal = access.ideal_transactions_per_request?;
    let requests = access.requests.unwrap_or(1.0);
    let excess = (transactions - ideal) * requests;
    if transactions < ideal * SHIFTED - 1e-6 || excess <= moved * NEGLIGIBLE {
        return None;
    }
    let block = ctx.facts.launch.block;
    let warp = u64::from(ctx.facts.warp_size).max(1);
    let flat = block[1] * block[2] <= 1;
    let width = block[0].max(1);
    let (rows, row_lanes) = if flat || width.is_multiple_of(warp) {
        (1, warp)
    } else if width < warp {
        (warp.div_ceil(width), width)
    } else {
        (2, warp)
    };
    let mut costly = Costly {
        access,
        block_width: width,
        rows,
        row_lanes,
        only_misaligned: false,
    };
    costly.only_misaligned = only_misaligned(&costly, transactions, ideal);
    let told = if costly.only_misaligned {
        misaligned::claims(&costly) && misaligned::matters(ctx, access)
    } else {
        // Gaps in a row are those of lanes that sit out, which often take them on the other side of the branch.
        transactions > ideal * EXCESS + 1e-6
            && !rows_of_one_word(&costly, transactions)
            && !(costly.is_row() && costly.sits_out())
    };
    told.then_some(costly)
}

/// True where every row of the warp is contiguous and touches at most one unit more than it would if it
/// began on a boundary: that is a misaligned start, not a bad pattern.
fn only_misaligned(costly: &Costly<'_>, transactions: f64, ideal: f64) -> bool {
    let unit = u64::from(costly.access.transaction_bytes);
    let contiguous = costly.access.pattern == Pattern::Coalesced
        || costly
            .distance()
            .is_some_and(|d| 0 < d && d <= costly.element())
        // No constant distance, but hardly more than aligned rows: an index clamped at the borders.
        || (costly.access.pattern == Pattern::Scattered && costly.access.stride.is_none());
    if unit == 0 || !contiguous {
        return false;
    }
    let aligned = costly.rows * (costly.row_lanes * costly.element()).div_ceil(unit);
    aligned as f64 <= ideal * EXCESS + 1e-6 && transactions <= (aligned + costly.rows) as f64 + 1e-6
}

/// True where x-neighbours share one word and only the few rows of the warp differ: the shape of every
/// tiled product, served by a broadcast a row.
fn rows_of_one_word(costly: &Costly<'_>, transactions: f64) -> bool {
    costly.distance() == Some(0)
        && costly.block_width >= 8
        && transactions <= costly.rows as f64 + 1e-6
}

/// `32 sectors`, by the words of the target's documentation.
fn units(ctx: &Context<'_>, access: &Access, count: f64) -> String {
    let word = match ctx.profile.global_rule {
        GlobalRule::HalfWarpStrict | GlobalRule::HalfWarpSegments => "segment",
        _ if access.transaction_bytes == 32 => "sector",
        _ => "line",
    };
    access::plural(count, word)
}

/// Whatever the more specific rules have left.
fn claims(_: &Costly<'_>) -> bool {
    true
}

fn cause(costly: &Costly<'_>) -> String {
    let text = &costly.access.text;
    let contiguous = costly.distance().is_some_and(|d| d <= costly.element());
    if costly.rows > 2 && contiguous {
        return format!(
            "the block is {} threads wide, so a warp takes {} short rows of `{text}`",
            costly.block_width, costly.rows
        );
    }
    match costly.access.pattern {
        // Each lane the same word: where the distinct bytes are one unit's.
        Pattern::Broadcast
            if costly
                .access
                .ideal_transactions_per_request
                .is_some_and(|ideal| ideal <= 1.0) =>
        {
            format!("all lanes read one word of `{text}`, which this GPU serves lane by lane")
        }
        _ => format!("the lanes of a warp scatter over `{text}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Kernel, access, column_walk};
    use crate::{Removal, Severity};
    use warplens_facts::facts::{Certainty, LinearAddress, Op, Stride};

    fn stride(bytes: i64, text: &str) -> Stride {
        Stride {
            bytes,
            text: text.to_owned(),
            symbolic: false,
            in_bytes: false,
            unit_elsewhere: false,
        }
    }

    #[test]
    fn a_misaligned_start_is_not_a_bad_pattern() {
        let rules = |kernel: Kernel| -> Vec<&str> {
            let findings = kernel.findings(|_| 1.2);
            findings.iter().map(|finding| finding.rule).collect()
        };
        let mut shifted = access(5);
        shifted.transactions_per_request = Some(5.0);
        shifted.linear = Some(LinearAddress {
            constant: 7,
            thread: [4, 0, 0],
            block: [1024, 0, 0],
            loops: Vec::new(),
        });
        assert_eq!(
            rules(Kernel::new().access(shifted.clone())),
            ["mem/misaligned"]
        );

        // One byte a lane: two sectors where one is enough, still only a shifted start.
        shifted.bytes_per_lane = 1;
        shifted.stride = Some(stride(1, "1"));
        shifted.transactions_per_request = Some(2.0);
        shifted.ideal_transactions_per_request = Some(1.0);
        assert_eq!(rules(Kernel::new().access(shifted)), ["mem/misaligned"]);

        // Rows of 16 floats, each shifted: six sectors where four are enough.
        let mut rows = access(5);
        rows.pattern = Pattern::Scattered;
        rows.transactions_per_request = Some(6.0);
        assert!(!rules(Kernel::new().block([16, 16, 1]).access(rows)).contains(&"mem/uncoalesced"));
    }

    #[test]
    fn one_word_a_row_is_a_broadcast() {
        let mut a = access(5);
        a.pattern = Pattern::Scattered;
        a.stride = Some(stride(0, "0"));
        a.transactions_per_request = Some(2.0);
        a.ideal_transactions_per_request = Some(1.0);
        assert_eq!(
            Kernel::new().block([16, 16, 1]).access(a).findings(|_| 1.2),
            []
        );
    }

    #[test]
    fn one_word_a_row_in_a_narrow_block_is_not() {
        let mut a = access(5);
        a.pattern = Pattern::Scattered;
        a.stride = Some(stride(0, "0"));
        a.transactions_per_request = Some(8.0);
        a.ideal_transactions_per_request = Some(1.0);
        let findings = Kernel::new().block([4, 64, 1]).access(a).findings(|_| 1.2);
        assert_eq!(findings[0].rule, "mem/uncoalesced");
    }

    #[test]
    fn a_quarter_more_is_let_pass_and_more_is_not() {
        for (sectors, told) in [(5.0, false), (5.2, true)] {
            let mut a = access(5);
            a.pattern = Pattern::Scattered;
            a.stride = None;
            a.transactions_per_request = Some(sectors);
            assert_eq!(
                !Kernel::new().access(a).findings(|_| 1.2).is_empty(),
                told,
                "{sectors}"
            );
        }
    }

    #[test]
    fn data_dependent_and_unknown_addresses_have_no_finding() {
        for pattern in [Pattern::DataDependent, Pattern::Unknown] {
            let mut gather = column_walk(5);
            gather.pattern = pattern;
            assert_eq!(Kernel::new().access(gather).findings(|_| 2.0), []);
        }
        let mut unknown = column_walk(5);
        unknown.transactions_per_request = None;
        assert_eq!(Kernel::new().access(unknown).findings(|_| 2.0), []);
    }

    #[test]
    fn an_access_that_is_hardly_ever_executed_has_no_finding() {
        let mut rare = column_walk(5);
        rare.requests = Some(1.0);
        assert_eq!(
            Kernel::new()
                .access(rare)
                .access(access(9))
                .findings(|_| 2.0),
            []
        );
    }

    #[test]
    fn load_and_store_of_one_subscript_are_one_finding() {
        let mut load = column_walk(5);
        load.op = Op::Load;
        let mut store = column_walk(5);
        store.op = Op::Store;
        let findings = Kernel::new()
            .access(load)
            .access(store)
            .findings(|removal| match removal {
                Removal::Access(_) => 1.25,
                _ => 1.6,
            });
        assert_eq!(findings.len(), 1);
        // Each alone saves a fifth; both together two fifths, 1.67x, bounded by the factor's 1.6x.
        assert!(
            (findings[0].gain - 1.6).abs() < 1e-9,
            "{}",
            findings[0].gain
        );
        assert!(
            findings[0].message.contains("(read and written)"),
            "{}",
            findings[0].message
        );
        assert_eq!(findings[0].related, []);
    }

    #[test]
    fn accesses_of_one_array_on_one_line_are_one_finding() {
        let mut second = column_walk(5);
        second.site.span.start += 20;
        let mut other_array = second.clone();
        other_array.array = "other".to_owned();
        let findings = Kernel::new()
            .access(column_walk(5))
            .access(second)
            .access(other_array)
            .access(column_walk(6))
            .findings(|removal| match removal {
                Removal::Access(1) => 1.5,
                Removal::Factor(_) => 2.0,
                _ => 1.2,
            });
        assert_eq!(findings.len(), 3);
        let merged = findings
            .iter()
            .find(|f| f.access == Some(1))
            .expect("told of the costliest");
        assert_eq!(merged.related.len(), 2);
        let others = findings.iter().filter(|f| f.access != Some(1));
        assert!(others.clone().all(|f| f.severity == Severity::Hint));
        assert!(
            merged.message.contains("so are 2 more accesses"),
            "{}",
            merged.message
        );
    }

    #[test]
    fn what_rests_on_a_guess_is_a_hint() {
        let mut walk = column_walk(5);
        walk.certainty = Certainty::Assumed;
        let silent = Kernel::new().access(walk.clone()).findings(|_| 3.0);
        assert_eq!(silent[0].severity, Severity::Information);
        let stated = Kernel::new()
            .assume("n", "1024")
            .access(walk)
            .findings(|_| 3.0);
        assert_eq!(stated[0].severity, Severity::Hint);
        assert!(
            stated[0].message.ends_with("\nassumes n = 1024"),
            "{}",
            stated[0].message
        );
    }

    #[test]
    fn scattered_lanes_are_uncoalesced() {
        let mut scattered = access(5);
        scattered.pattern = Pattern::Scattered;
        scattered.stride = None;
        scattered.transactions_per_request = Some(8.0);
        let findings = Kernel::new().access(scattered).findings(|_| 1.4);
        assert_eq!(findings[0].rule, "mem/uncoalesced");
        assert!(
            findings[0].message.contains(
                "8 sectors per request (ideal 4): the lanes of a warp scatter over `in[i]`"
            ),
            "{}",
            findings[0].message
        );
    }

    #[test]
    fn a_narrow_block_is_named_as_the_cause() {
        let mut rows = access(5);
        rows.pattern = Pattern::Scattered;
        rows.transactions_per_request = Some(8.0);
        let findings = Kernel::new()
            .block([4, 64, 1])
            .access(rows)
            .findings(|_| 1.4);
        assert_eq!(findings[0].rule, "mem/uncoalesced");
        assert!(
            findings[0]
                .message
                .contains("the block is 4 threads wide, so a warp takes 8 short rows"),
            "{}",
            findings[0].message
        );
    }
}
