//! Global accesses that move more than they need: which rule each belongs to, and what is said once.

use warplens_facts::facts::{Access, Op, Pattern, Space};
use warplens_machine::GlobalRule;
use warplens_models::Factor;

use crate::wording::{self, number};
use crate::{
    Context, Finding, Place, Removal, Severity, mem_aos, mem_column_walk, mem_misaligned,
    mem_strided, mem_uncoalesced,
};

/// Transactions above this multiple of the ideal are worth a finding.
const EXCESS: f64 = 1.25;
/// The same of what only begins in the wrong place: one sector more than four.
const SHIFTED: f64 = 1.2;
/// An access with less than this part of the kernel's transactions cannot matter.
const NEGLIGIBLE: f64 = 0.001;

/// A global access that touches more units than its bytes need.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Costly<'a> {
    /// The access.
    pub access: &'a Access,
    /// Threads of a block along x.
    pub block_width: u64,
    /// Rows of the block that one warp spans.
    pub rows: u64,
    /// Lanes of the warp in one row.
    pub row_lanes: u64,
    /// Each row touches at most one unit more than if it began on a boundary.
    pub only_misaligned: bool,
}

impl Costly<'_> {
    /// Distance between x-neighbours in bytes, where it is one number.
    pub fn distance(&self) -> Option<u64> {
        self.access.stride.as_ref().map(|s| s.bytes.unsigned_abs())
    }

    /// Size of the element in bytes.
    pub fn element(&self) -> u64 {
        u64::from(self.access.bytes_per_lane)
    }

    /// Neighbouring lanes have neighbouring elements of one row.
    pub fn is_row(&self) -> bool {
        self.distance() == Some(self.element()) && self.rows == 1
    }

    /// More lanes sit out than a last warp explains.
    fn sits_out(&self) -> bool {
        let active = self.access.active_lanes_per_request;
        active.is_some_and(|active| active < 0.9 * self.row_lanes as f64)
    }
}

/// A rule about one global access: whether the access is its case, and the cause in words.
struct MemoryRule {
    id: &'static str,
    claims: fn(&Costly<'_>) -> bool,
    cause: fn(&Costly<'_>) -> String,
}

/// The most specific first: one access, one rule.
const RULES: [MemoryRule; 5] = [
    MemoryRule {
        id: mem_column_walk::INFO.id,
        claims: mem_column_walk::claims,
        cause: mem_column_walk::cause,
    },
    MemoryRule {
        id: mem_aos::INFO.id,
        claims: mem_aos::claims,
        cause: mem_aos::cause,
    },
    MemoryRule {
        id: mem_strided::INFO.id,
        claims: mem_strided::claims,
        cause: mem_strided::cause,
    },
    MemoryRule {
        id: mem_misaligned::INFO.id,
        claims: mem_misaligned::claims,
        cause: mem_misaligned::cause,
    },
    MemoryRule {
        id: mem_uncoalesced::INFO.id,
        claims: mem_uncoalesced::claims,
        cause: mem_uncoalesced::cause,
    },
];

/// One access on its way to becoming a finding.
pub(crate) struct Candidate {
    /// The rule.
    pub rule: &'static str,
    /// Index into the facts' accesses.
    pub index: usize,
    /// The number: `32 sectors per request, 4 would do`.
    pub number: String,
    /// Why, in words.
    pub cause: String,
}

/// The findings of the global-memory rules.
pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let moved: f64 = ctx
        .facts
        .accesses
        .iter()
        .filter_map(|a| Some(a.transactions_per_request? * a.requests.unwrap_or(1.0)))
        .sum();
    let candidates = ctx
        .facts
        .accesses
        .iter()
        .enumerate()
        .filter_map(|(index, access)| {
            let costly = costly(ctx, access, moved)?;
            let rule = RULES.iter().find(|rule| (rule.claims)(&costly))?;
            Some(Candidate {
                rule: rule.id,
                index,
                number: format!(
                    "{} per request, {} would do",
                    units(ctx, access, access.transactions_per_request?),
                    number(access.ideal_transactions_per_request?)
                ),
                cause: (rule.cause)(&costly),
            })
        })
        .collect();
    findings(ctx, candidates, Factor::Uncoalesced)
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
        mem_misaligned::claims(&costly) && mem_misaligned::matters(ctx, access)
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
    plural(count, word)
}

/// `1 pass`, `32 passes`.
pub(crate) fn plural(count: f64, word: &str) -> String {
    let figure = number(count);
    match (figure.as_str(), word.ends_with('s')) {
        ("1", _) => format!("{figure} {word}"),
        (_, false) => format!("{figure} {word}s"),
        (_, true) => format!("{figure} {word}es"),
    }
}

/// Candidates of one kernel whose gains are always worked out one by one: a model walks the whole kernel for each.
const MOST_APART: usize = 16;
/// Accesses walked for the gains of all candidates; beyond, what all save together is shared out.
const MOST_WALKED: usize = 16_000;

/// How the gains of a kernel's candidates are found.
enum Gains {
    /// One by one.
    Apart,
    /// All of them together have none worth knowing.
    Nothing,
    /// The time that all save, shared out by the requests' excess; the sum of those.
    Shared(f64, f64),
}

impl Gains {
    fn new(ctx: &Context<'_>, candidates: &[Candidate], factor: Factor) -> Gains {
        if candidates.len() <= MOST_APART {
            return Gains::Apart;
        }
        let together = ctx.gain(Removal::Factor(factor));
        if together < wording::WORTH_KNOWING {
            return Gains::Nothing;
        }
        let accesses = &ctx.facts.accesses;
        if candidates.len() * accesses.len() <= MOST_WALKED {
            return Gains::Apart;
        }
        let all = candidates.iter().map(|of| excess(&accesses[of.index]));
        Gains::Shared(1.0 - together.recip(), all.sum())
    }

    fn of(&self, ctx: &Context<'_>, access: usize) -> f64 {
        match self {
            Gains::Apart => ctx.gain(Removal::Access(access)),
            Gains::Nothing => 1.0,
            Gains::Shared(saved, all) if *all > 0.0 => {
                let share = excess(&ctx.facts.accesses[access]) / all;
                (1.0 - saved * share).recip()
            }
            Gains::Shared(..) => 1.0,
        }
    }
}

/// What an access takes beyond the ideal, over the launch.
fn excess(access: &Access) -> f64 {
    let (takes, ideal) = match access.transactions_per_request {
        Some(takes) => (Some(takes), access.ideal_transactions_per_request),
        None => (access.passes_per_request, access.ideal_passes_per_request),
    };
    let each = takes.unwrap_or(0.0) - ideal.unwrap_or(0.0);
    each.max(0.0) * access.requests.unwrap_or(1.0)
}

/// Makes findings of candidates: those of one rule, one array and one line become one. `factor` bounds what
/// removing several of them together can gain.
pub(crate) fn findings(
    ctx: &Context<'_>,
    candidates: Vec<Candidate>,
    factor: Factor,
) -> Vec<Finding> {
    if candidates.is_empty() {
        return Vec::new();
    }
    let accesses = &ctx.facts.accesses;
    let gains = Gains::new(ctx, &candidates, factor);
    let mut groups: Vec<Vec<(Candidate, f64)>> = Vec::new();
    for candidate in candidates {
        let access = &accesses[candidate.index];
        let gain = gains.of(ctx, candidate.index);
        let group = groups.iter_mut().find(|group| {
            let (first, _) = &group[0];
            let other = &accesses[first.index];
            first.rule == candidate.rule
                && other.array == access.array
                && other.site.line == access.site.line
        });
        match group {
            Some(group) => group.push((candidate, gain)),
            None => groups.push(vec![(candidate, gain)]),
        }
    }
    groups
        .into_iter()
        .map(|group| finding(ctx, &group, factor))
        .collect()
}

/// The finding of one group: told of its costliest access, the others beside it.
fn finding(ctx: &Context<'_>, group: &[(Candidate, f64)], factor: Factor) -> Finding {
    let accesses = &ctx.facts.accesses;
    let worst = (1..group.len()).fold(
        0,
        |best, i| if group[i].1 > group[best].1 { i } else { best },
    );
    let (candidate, worst_gain) = &group[worst];
    let access = &accesses[candidate.index];
    let gain = if group.len() == 1 {
        *worst_gain
    } else {
        // Times saved add up, and never to more than removing the whole factor saves.
        let saved: f64 = group.iter().map(|(_, gain)| 1.0 - gain.recip()).sum();
        let bound = ctx.gain(Removal::Factor(factor)).max(*worst_gain);
        if saved < 1.0 {
            (1.0 - saved).recip().min(bound)
        } else {
            bound
        }
    };

    let mut related: Vec<_> = group
        .iter()
        .map(|(other, _)| (accesses[other.index].site, other))
        .filter(|(site, _)| *site != access.site)
        .map(|(site, other)| {
            (
                site,
                format!("`{}`: {}", accesses[other.index].text, other.number),
            )
        })
        .collect();
    related.dedup_by_key(|(site, _)| *site);
    let same_place = |op: Op| {
        group.iter().any(|(other, _)| {
            let other = &accesses[other.index];
            other.site == access.site && other.op == op
        })
    };
    let both = (same_place(Op::Load) && same_place(Op::Store)).then_some("read and written");
    let others = match related.len() {
        0 => None,
        1 => Some(format!(
            "so is one more access to `{}` on this line",
            access.array
        )),
        n => Some(format!(
            "so are {n} more accesses to `{}` on this line",
            access.array
        )),
    };
    let cause = match both {
        Some(words) => format!("{} ({words})", candidate.cause),
        None => candidate.cause.clone(),
    };
    let reservation = wording::reservation(ctx.facts, access);
    let mut severity = wording::severity(gain, access.certainty, reservation.is_some());
    if candidate.rule == mem_misaligned::INFO.id && mem_misaligned::is_caught(ctx) {
        severity = Severity::Hint;
    }
    Finding {
        rule: candidate.rule,
        severity,
        place: Place::Site(access.site),
        message: wording::sentence([
            Some(format!("{}: {cause}", candidate.number)),
            others,
            Some(wording::gain(gain)),
            reservation,
        ]),
        gain,
        related,
        access: Some(candidate.index),
        shared_array: access.shared_array,
        cure: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Severity;
    use crate::testing::{Kernel, access, column_walk};
    use warplens_facts::facts::{Certainty, LinearAddress, Stride};

    fn stride(bytes: i64, text: &str) -> Stride {
        Stride {
            bytes,
            text: text.to_owned(),
            symbolic: false,
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

        // One byte a lane: two sectors where one would do, still only a shifted start.
        shifted.bytes_per_lane = 1;
        shifted.stride = Some(stride(1, "1"));
        shifted.transactions_per_request = Some(2.0);
        shifted.ideal_transactions_per_request = Some(1.0);
        assert_eq!(rules(Kernel::new().access(shifted)), ["mem/misaligned"]);

        // Rows of 16 floats, each shifted: six sectors where four would do.
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
            .findings(|removal| {
                if removal == Removal::Access(1) {
                    1.5
                } else {
                    1.2
                }
            });
        assert_eq!(findings.len(), 3);
        let merged = findings
            .iter()
            .find(|f| f.access == Some(1))
            .expect("told of the costliest");
        assert_eq!(merged.related.len(), 1);
        assert!(
            merged
                .message
                .contains("so is one more access to `in` on this line"),
            "{}",
            merged.message
        );
    }

    #[test]
    fn assumed_without_a_stated_assumption_is_no_warning() {
        let mut walk = column_walk(5);
        walk.certainty = Certainty::Assumed;
        let silent = Kernel::new().access(walk.clone()).findings(|_| 3.0);
        assert_eq!(silent[0].severity, Severity::Information);
        let stated = Kernel::new()
            .assume("n", "1024")
            .access(walk)
            .findings(|_| 3.0);
        assert_eq!(stated[0].severity, Severity::Warning);
        assert!(
            stated[0].message.ends_with("; assumes n = 1024"),
            "{}",
            stated[0].message
        );
    }
}
