//! smem/bank-conflict: lanes of one warp want different words of one bank.

pub(crate) mod pad_shared;
pub(crate) mod swizzle_shared;
pub(crate) mod tile;

use warplens_facts::facts::{Access, Form, Op, Pattern, Space};
use warplens_models::Factor;

use crate::rule::{Look, Rule, State, When};
use crate::subjects::access::{Candidate, Loudness, apart, findings, plural};
use crate::wording::{a_number, array_of, number, on_average};
use crate::{Context, Finding};

pub(crate) const RULE: Rule = Rule {
    id: "smem/bank-conflict",
    title: "lanes of a warp want different words of one shared-memory bank",
    severity: "by predicted gain: hint, information or warning",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::At(When::Cost, check),
    actions: &[pad_shared::fixes, swizzle_shared::fixes, tile::fixes],
};

/// Averages over the launch closer to 1 than this are a stray warp, not a pattern.
const CONFLICT: f64 = 1.05;

/// Banks are this many bytes wide to the program on every GPU.
const WORD: u64 = 4;

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let candidates = ctx
        .facts
        .accesses
        .iter()
        .enumerate()
        .filter(|(_, access)| access.space == Space::Shared && access.requests != Some(0.0))
        // Atomics on one word wait for it, not for its bank: atomic/hot-address.
        // A copy that one thread starts moves whole rows: where it begins beside one, that is tma/alignment's.
        .filter(|(_, access)| !matches!(access.form, Form::Bulk(_)))
        .filter(|(_, access)| access.op != Op::Atomic || access.pattern != Pattern::Broadcast)
        .filter_map(|(index, access)| {
            let conflicts = |degree: &f64| *degree > CONFLICT;
            access.bank_conflict_degree.filter(conflicts)?;
            let served = joined(ctx, index).or_else(|| Served::one_by_one(access))?;
            let degree = Some(served.degree).filter(conflicts)?;
            let array = array_of(access);
            let against = format!("against {}", ways(degree));
            Some(Candidate {
                rule: RULE.id,
                index,
                number: format!(
                    "{} per request{} (ideal {})",
                    plural(served.passes, "pass"),
                    on_average(served.passes),
                    number(served.ideal)
                ),
                cure: if is_within_a_row(ctx, access) {
                    format!(
                        "let neighbouring threads take neighbouring words of `{array}` {against}"
                    )
                } else {
                    format!("pad or swizzle `{array}` {against}")
                },
                cause: cause(ctx, access, &served),
                loudness: Loudness::ByGain,
                gain: None,
            })
        })
        .collect();
    findings(ctx, candidates, Factor::BankConflicts)
}

/// How the requests of an instruction are served.
struct Served {
    passes: f64,
    ideal: f64,
    degree: f64,
    /// Words that each lane gets, where the compiler makes one instruction of several accesses.
    joined: Option<f64>,
}

impl Served {
    /// An access as it is written.
    fn one_by_one(access: &Access) -> Option<Served> {
        Some(Served {
            passes: access.passes_per_request?,
            ideal: access.ideal_passes_per_request?,
            degree: access.bank_conflict_degree?,
            joined: None,
        })
    }
}

/// The instruction that the compiler makes of an access and its neighbours; `None` where each is one of its own.
fn joined(ctx: &Context<'_>, index: usize) -> Option<Served> {
    let mut executed = ctx.input.accesses.iter();
    let executed = executed.find(|one| one.source == Some(index))?;
    let passes = executed.joined_passes()?;
    let words = executed.joined_words();
    let row = f64::from(ctx.profile.banks);
    let ideal = (words * f64::from(ctx.facts.warp_size) / row).max(1.0);
    Some(Served {
        passes,
        ideal,
        degree: passes / ideal,
        joined: Some(words),
    })
}

/// True where neighbouring threads take words of one row of an array with several: another pitch of the rows moves none of them to
/// another bank.
fn is_within_a_row(ctx: &Context<'_>, access: &Access) -> bool {
    let array = access
        .shared_array
        .and_then(|at| ctx.facts.shared_arrays.get(at));
    let Some(array) = array.filter(|array| array.extents.len() > 1) else {
        return false;
    };
    let columns = array.extents.last().map_or(0, |(extent, _)| *extent);
    let row = columns * u64::from(array.element_bytes);
    let apart = access
        .stride
        .as_ref()
        .map(|stride| stride.bytes.unsigned_abs());
    apart.is_some_and(|apart| apart > 0 && apart < row)
}

/// `a 32-way bank conflict`, `bank conflicts of 5.3 ways on average`: requests differ, and none has the average.
fn ways(degree: f64) -> String {
    match on_average(degree) {
        "" => format!("{}-way bank conflict", a_number(degree)),
        average => format!("bank conflicts of {} ways{average}", number(degree)),
    }
}

fn cause(ctx: &Context<'_>, access: &Access, served: &Served) -> String {
    let text = &access.text;
    let conflict = match on_average(served.degree) {
        "" => format!("{}-way bank conflict", number(served.degree)),
        _ => ways(served.degree),
    };
    let banks = ctx.profile.banks;
    let joined = served.joined.map_or_else(String::new, |words| {
        let moves = if access.op == Op::Store {
            "stores"
        } else {
            "loads"
        };
        let bytes = number(words * 4.0);
        format!("; the compiler {moves} {bytes} bytes at a time")
    });
    let stride = access.stride.as_ref();
    let stride = stride.filter(|stride| {
        let bytes = stride.bytes.unsigned_abs();
        bytes > WORD && bytes.is_multiple_of(WORD)
    });
    let apart = stride.map(|stride| {
        // A distance that a parameter gives is told by it: its value may be assumed.
        if stride.symbolic {
            let of_words = u64::from(access.bytes_per_lane) == WORD;
            apart(access, stride, if of_words { "words" } else { "elements" })
        } else {
            format!("{} words apart", stride.bytes.unsigned_abs() / WORD)
        }
    });
    match apart {
        Some(apart) => format!(
            "{conflict} in `{text}`, neighbouring threads are {apart} on {banks} banks\
             {joined}"
        ),
        None => format!("{conflict} in `{text}` on {banks} banks{joined}"),
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Kernel, bank_conflict};
    use crate::{Place, Severity};
    use warplens_facts::facts::{Op, Pattern};

    #[test]
    fn a_column_of_a_square_tile_says_passes_and_words() {
        let conflict = bank_conflict(7);
        let site = conflict.site;
        let findings = Kernel::new().access(conflict).findings(|_| 2.9);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].rule, "smem/bank-conflict");
        assert_eq!(findings[0].severity, Severity::Warning);
        assert_eq!(findings[0].place, Place::Site(site));
        assert_eq!(findings[0].shared_array, Some(0));
        assert_eq!(
            findings[0].message,
            "2.90x: pad or swizzle `tile` against a 32-way bank conflict (32 passes per request, ideal 1)\n\
             32 passes per request (ideal 1): 32-way bank conflict in \
             `tile[threadIdx.x][threadIdx.y]`, neighbouring threads are 32 words apart on 32 banks"
        );
    }

    #[test]
    fn a_distance_that_a_parameter_gives_is_told_by_it() {
        let mut conflict = bank_conflict(7);
        let stride = conflict.stride.as_mut().unwrap();
        stride.symbolic = true;
        stride.text = "d".to_owned();
        conflict.constraints = vec!["d % 32 == 0".to_owned()];
        let findings = Kernel::new().access(conflict).findings(|_| 2.9);
        let message = &findings[0].message;
        assert!(
            message.contains("neighbouring threads are `d` words apart on 32 banks"),
            "{message}"
        );
    }

    #[test]
    fn wide_accesses_in_their_own_passes_are_no_conflict() {
        let mut wide = bank_conflict(7);
        wide.passes_per_request = Some(4.0);
        wide.ideal_passes_per_request = Some(4.0);
        wide.bank_conflict_degree = Some(1.0);
        assert_eq!(Kernel::new().access(wide).findings(|_| 2.0), []);
    }

    #[test]
    fn atomics_on_one_word_conflict_in_no_bank() {
        let mut sum = bank_conflict(7);
        sum.op = Op::Atomic;
        assert_eq!(Kernel::new().access(sum.clone()).findings(|_| 2.0).len(), 1);
        sum.pattern = Pattern::Broadcast;
        let findings = Kernel::new().access(sum).findings(|_| 2.0);
        assert!(
            findings
                .iter()
                .all(|finding| finding.rule != super::RULE.id)
        );
    }

    #[test]
    fn a_stray_warp_is_no_pattern() {
        for (degree, told) in [(1.03, false), (1.5, true)] {
            let mut stray = bank_conflict(7);
            stray.passes_per_request = Some(degree);
            stray.bank_conflict_degree = Some(degree);
            let findings = Kernel::new().access(stray).findings(|_| 2.0);
            assert_eq!(!findings.is_empty(), told, "degree {degree}");
        }
    }

    #[test]
    fn a_conflict_behind_memory_time_is_a_hint() {
        let findings = Kernel::new().access(bank_conflict(7)).findings(|_| 1.003);
        assert_eq!(findings[0].severity, Severity::Hint);
        assert!(
            findings[0].message.contains("; no visible gain\n"),
            "{}",
            findings[0].message
        );
    }

    #[test]
    fn unknown_passes_are_no_finding() {
        let mut unknown = bank_conflict(7);
        unknown.passes_per_request = None;
        unknown.bank_conflict_degree = None;
        assert_eq!(Kernel::new().access(unknown).findings(|_| 2.0), []);
    }
}
