//! Accesses that move more than they need: candidates of rules in, findings out, each said once.

use warplens_facts::facts::{Access, Certainty, Op, Space, Stride};
use warplens_models::Factor;

use crate::evidence;
use crate::wording::{self, number};
use crate::{Context, Finding, MOST_APART, MOST_WALKED, Place, Removal, Severity};

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

    /// How far neighbouring threads are apart, in words.
    pub fn apart(&self) -> Option<String> {
        let stride = self.access.stride.as_ref()?;
        Some(apart(self.access, stride, "elements"))
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
    pub(crate) fn sits_out(&self) -> bool {
        let active = self.access.active_lanes_per_request;
        active.is_some_and(|active| active < 0.9 * self.row_lanes as f64)
    }
}

/// `` `n` elements (4096 bytes) apart ``; without the number where the finding holds for other values of the symbols as well.
pub(crate) fn apart(access: &Access, stride: &Stride, elements: &str) -> String {
    let bytes = stride.bytes.unsigned_abs();
    if !stride.symbolic {
        return format!("{bytes} bytes apart");
    }
    let open = access.certainty == Certainty::Exact && !access.constraints.is_empty();
    let text = &stride.text;
    match (stride.in_bytes, open) {
        (false, false) => format!("`{text}` {elements} ({bytes} bytes) apart"),
        (false, true) => format!("`{text}` {elements} apart"),
        (true, false) => format!("`{text}` = {bytes} bytes apart"),
        (true, true) => format!("`{text}` bytes apart"),
    }
}

/// Iterations of a loop that a copy runs ahead of the wait for it, where it does.
pub(crate) fn ahead(access: &Access) -> Option<u32> {
    let copies = access.op == Op::Load
        && access.space == Space::Global
        && access.loop_depth > 0
        && access.requests != Some(0.0);
    access.ahead.filter(|ahead| copies && *ahead > 0)
}

/// One access on its way to becoming a finding.
pub(crate) struct Candidate {
    /// The rule.
    pub rule: &'static str,
    /// Index into the facts' accesses.
    pub index: usize,
    /// The number: `32 sectors per request (ideal 4)`.
    pub number: String,
    /// What to do.
    pub cure: String,
    /// Why, in words.
    pub cause: String,
    /// How loud it may be.
    pub loudness: Loudness,
    /// What the cure gains as a whole, at all sites of its cause, where it was tried out.
    pub gain: Option<f64>,
}

/// How loud a candidate may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loudness {
    /// By its gain.
    ByGain,
    /// A hint unless all accesses of its cause gain together: a cache holds the rest of what each brings, but each is a request.
    HintAlone,
    /// A hint whatever it gains: a cache catches what it moves too much.
    Hint,
}

/// What the transactions of an access are called where it is a title that counts them.
pub(crate) fn unit(access: &Access) -> (&'static str, &'static str) {
    match access.transaction_bytes {
        32 => ("sector", "sectors"),
        64 | 128 => ("line", "lines"),
        _ => ("segment", "segments"),
    }
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

/// How the gains of a kernel's candidates are found.
enum Gains {
    /// One by one, of this factor.
    Apart(Factor),
    /// All of them together have none worth knowing.
    Nothing,
    /// The time that all save, shared out by the requests' excess; the sum of those.
    Shared(f64, f64),
}

impl Gains {
    fn new(ctx: &Context<'_>, candidates: &[Candidate], factor: Factor) -> Gains {
        if candidates.len() <= MOST_APART {
            return Gains::Apart(factor);
        }
        let together = ctx.gain(Removal::Factor(factor));
        if together < wording::WORTH_KNOWING {
            return Gains::Nothing;
        }
        let accesses = &ctx.facts.accesses;
        if candidates.len() * accesses.len() <= MOST_WALKED {
            return Gains::Apart(factor);
        }
        let all = candidates.iter().map(|of| excess(&accesses[of.index]));
        Gains::Shared(1.0 - together.recip(), all.sum())
    }

    fn of(&self, ctx: &Context<'_>, access: usize) -> f64 {
        match self {
            // What all accesses of a kind would save together bounds each of them.
            Gains::Apart(factor) => {
                let gain = ctx.gain(Removal::Access(access));
                gain.min(ctx.gain(Removal::Factor(*factor)))
            }
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
    let mut groups: Vec<Group> = Vec::new();
    for candidate in candidates {
        let access = &accesses[candidate.index];
        let gain = candidate
            .gain
            .unwrap_or_else(|| gains.of(ctx, candidate.index));
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
    let all = groups.iter().map(|group| excess_of(ctx, group)).sum();
    folded(ctx, groups, factor, all)
}

/// What a group takes beyond the ideal, over the launch.
fn excess_of(ctx: &Context<'_>, group: &Group) -> f64 {
    let accesses = &ctx.facts.accesses;
    let each = group.iter().map(|(of, _)| excess(&accesses[of.index]));
    each.sum()
}

/// Candidates of one line with what each gains.
type Group = Vec<(Candidate, f64)>;

/// Findings of groups: of those with one cause the costliest is told with what all gain together, the others are hints.
fn folded(ctx: &Context<'_>, groups: Vec<Group>, factor: Factor, all_excess: f64) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut causes: Vec<(Cause, Vec<Group>)> = Vec::new();
    for group in groups {
        let cause = Cause::of(ctx, &group);
        // What is wrong with one array on one line is one thing, whatever the rules call it.
        let place = |group: &Group| {
            let access = &ctx.facts.accesses[group[0].0.index];
            (access.site, access.array.clone())
        };
        let beside = |other: &Group| {
            let (site, array) = place(other);
            let (own, own_array) = place(&group);
            array == own_array && (site.line, site.callee) == (own.line, own.callee)
        };
        let known = causes
            .iter_mut()
            .find(|(other, alike)| *other == cause || alike.iter().any(beside));
        match known {
            Some((_, alike)) => alike.push(group),
            None => causes.push((cause, vec![group])),
        }
    }
    for (cause, alike) in causes {
        let apart: Vec<f64> = alike.iter().map(|of| together(ctx, of, factor)).collect();
        let leader = (1..apart.len()).fold(
            0,
            |best, at| {
                if apart[at] > apart[best] { at } else { best }
            },
        );
        // A cause is removed at all its sites before its gain is told: each may save next to nothing by itself.
        let sites = alike.iter().flatten().count();
        let several = sites > 1 && cause.loudness != Loudness::Hint;
        let tried = alike.iter().flatten().find_map(|(of, _)| of.gain);
        let joint = if let Some(tried) = tried {
            tried
        } else if several {
            let of_all = alike.iter().flatten().map(|(_, gain)| *gain);
            let own: f64 = alike.iter().map(|group| excess_of(ctx, group)).sum();
            let share = if all_excess > 0.0 {
                own / all_excess
            } else {
                0.0
            };
            let saved = 1.0 - ctx.gain(Removal::Factor(factor)).recip();
            let by_share = (1.0 - saved * share.min(1.0)).recip();
            saved_together(ctx, of_all, factor).max(by_share)
        } else {
            apart[leader]
        };
        let told = several && joint >= wording::WORTH_KNOWING;
        let joint = if told { joint } else { apart[leader] };
        for (at, group) in alike.iter().enumerate() {
            // All are removed by one change: each says what that gains.
            let (gain, others) = match told {
                true if at == leader => (joint, Some(alike.as_slice())),
                true => (joint, None),
                false => (apart[at], None),
            };
            let mut finding = finding(ctx, group, gain, others);
            if at != leader {
                finding.severity = Severity::Hint;
            }
            findings.push(finding);
        }
    }
    findings
}

/// What candidates have in common that one change of the source would mend.
#[derive(Debug, PartialEq, Eq)]
struct Cause {
    rule: &'static str,
    /// The distance between neighbouring lanes, or the array where they have none or one of their own.
    apart: Result<i64, String>,
    loudness: Loudness,
}

impl Cause {
    fn of(ctx: &Context<'_>, group: &Group) -> Cause {
        let (candidate, _) = &group[0];
        let access = &ctx.facts.accesses[candidate.index];
        let stride = access.stride.as_ref().map(|stride| stride.bytes.abs());
        Cause {
            rule: candidate.rule,
            apart: stride
                .filter(|_| access.shared_array.is_none())
                .ok_or_else(|| access.array.clone()),
            loudness: candidate.loudness,
        }
    }
}

/// What removing several accesses' excess gains: times saved add up, and never to more than removing the whole factor saves.
fn saved_together(
    ctx: &Context<'_>,
    gains: impl Iterator<Item = f64> + Clone,
    factor: Factor,
) -> f64 {
    let most = gains.clone().fold(1.0, f64::max);
    let saved: f64 = gains.map(|gain| 1.0 - gain.recip()).sum();
    let bound = ctx.gain(Removal::Factor(factor)).max(most);
    if saved < 1.0 {
        (1.0 - saved).recip().min(bound)
    } else {
        bound
    }
}

fn together(ctx: &Context<'_>, group: &Group, factor: Factor) -> f64 {
    match group.as_slice() {
        [(_, gain)] => *gain,
        [
            (
                Candidate {
                    gain: Some(gain), ..
                },
                _,
            ),
            ..,
        ] => *gain,
        _ => saved_together(ctx, group.iter().map(|(_, gain)| *gain), factor),
    }
}

/// The finding of one group: told of its costliest access, the others beside it; of `alike`, the groups of one cause that gain
/// together, it says how many there are and where.
fn finding(ctx: &Context<'_>, group: &Group, gain: f64, alike: Option<&[Group]>) -> Finding {
    let accesses = &ctx.facts.accesses;
    let worst = (1..group.len()).fold(
        0,
        |best, i| if group[i].1 > group[best].1 { i } else { best },
    );
    let (candidate, _) = &group[worst];
    let access = &accesses[candidate.index];
    let told: Vec<&(Candidate, f64)> = match alike {
        None => group.iter().collect(),
        Some(alike) => alike.iter().flatten().collect(),
    };
    let mut related: Vec<_> = told
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
    let on_several_lines = alike.is_some_and(|alike| alike.len() > 1);
    let others = match related.len() {
        0 => None,
        1 if on_several_lines => Some("so is one more access".to_owned()),
        n if on_several_lines => Some(format!("so are {n} more accesses")),
        1 => Some(format!(
            "so is one more access to `{}` on this line",
            wording::array_of(access)
        )),
        n => Some(format!(
            "so are {n} more accesses to `{}` on this line",
            wording::array_of(access)
        )),
    };
    let cause = match both {
        Some(words) => format!("{} ({words})", candidate.cause),
        None => candidate.cause.clone(),
    };
    let reservation = wording::reservation(ctx.facts, access);
    let guess = evidence::is_guess(ctx, access);
    let mut severity = wording::severity(gain, access.certainty, guess);
    let is_hint = match candidate.loudness {
        Loudness::ByGain => false,
        Loudness::HintAlone => alike.is_none(),
        Loudness::Hint => true,
    };
    if is_hint {
        severity = Severity::Hint;
    }
    Finding {
        rule: candidate.rule,
        severity,
        place: Place::Site(access.site),
        message: wording::sentence([
            Some(format!(
                "{} ({})",
                candidate.cure,
                candidate.number.replace(" (", ", ").replace(')', "")
            )),
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
