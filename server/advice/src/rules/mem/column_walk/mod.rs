//! mem/column-walk: `threadIdx.x` multiplies the leading dimension.

pub(crate) mod rows;
pub(crate) mod stage_transpose;
pub(crate) mod swap_axes;

use warplens_facts::facts::{LinearAddress, Space};

use crate::Context;
use crate::rule::{Look, Rule, State};
use crate::subjects::access::Costly;

pub(crate) const RULE: Rule = Rule {
    id: "mem/column-walk",
    title: "threadIdx.x multiplies the leading dimension: the warp walks down a column",
    severity: "by predicted gain: hint, information or warning",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::With("mem/uncoalesced"),
    actions: &[stage_transpose::fixes, swap_axes::fixes],
};

/// A constant distance of this many elements is a row's length, not a stride.
const ROW: u64 = 32;

/// True where the kernel transposes: another array is walked along its rows in the direction in which this one is walked along
/// its columns, so that other roles of the axes would only change places.
pub(crate) fn transposes(ctx: &Context<'_>, index: usize) -> bool {
    let accesses = &ctx.facts.accesses;
    let access = &accesses[index];
    let Some(linear) = &access.linear else {
        return false;
    };
    // Along y of the block, or an iteration of the loop around.
    let down = |linear: &LinearAddress| match linear.thread[1] {
        0 => linear.loops.last().copied().unwrap_or(0),
        step => step,
    };
    let own = i64::from(access.bytes_per_lane);
    down(linear) == own
        && linear.thread[0].abs() > own
        && accesses.iter().any(|other| {
            let element = i64::from(other.bytes_per_lane);
            other.array != access.array
                && other.op != access.op
                && other.space == Space::Global
                && other.loop_depth == access.loop_depth
                && other.linear.as_ref().is_some_and(|linear| {
                    linear.thread[0] == element && down(linear).abs() > element
                })
        })
}

/// True for rows of a parameter's length, or long ones, along which something else moves by one element.
pub(crate) fn claims(costly: &Costly<'_>) -> bool {
    let Some(stride) = &costly.access.stride else {
        return false;
    };
    let distance = stride.bytes.unsigned_abs();
    // An array inside a structure (`p[i].v[k]`) is laid out badly, not walked the wrong way.
    let whole_structure = costly
        .access
        .field
        .as_ref()
        .is_some_and(|field| u64::from(field.size) == distance);
    stride.unit_elsewhere
        && !whole_structure
        && distance > costly.element()
        && (stride.symbolic || distance >= ROW * costly.element())
}

pub(crate) fn cause(costly: &Costly<'_>) -> String {
    let text = &costly.access.text;
    let apart = costly.apart().unwrap_or_default();
    format!("`{text}` walks down a column, neighbouring threads are {apart}")
}

#[cfg(test)]
mod tests {
    use crate::testing::{Kernel, column_walk};
    use crate::{Place, Severity};

    #[test]
    fn a_transposed_store_is_a_warning_with_its_number_first() {
        let walk = column_walk(5);
        let site = walk.site;
        let findings = Kernel::new().access(walk).findings(|_| 2.9);
        assert_eq!(findings.len(), 1);
        let finding = &findings[0];
        assert_eq!(finding.rule, "mem/column-walk");
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.place, Place::Site(site));
        assert_eq!(finding.access, Some(0));
        assert_eq!(
            finding.message,
            "2.90x: let a warp walk along rows of `in` (32 sectors per request, ideal 4)\n\
             32 sectors per request (ideal 4): `in[x * n + y]` walks down a column, neighbouring \
             threads are `n` elements (4096 bytes) apart"
        );
    }

    #[test]
    fn a_distance_is_told_once_and_without_values_that_it_holds_for_any_of() {
        let told = |in_bytes: bool, constraints: &[&str]| {
            let mut walk = column_walk(5);
            let stride = walk.stride.as_mut().unwrap();
            stride.in_bytes = in_bytes;
            if in_bytes {
                stride.text = "4*n".to_owned();
            }
            walk.constraints = constraints.iter().map(|&one| one.to_owned()).collect();
            let findings = Kernel::new().access(walk).findings(|_| 2.9);
            let clause = findings[0].message.lines().nth(1).unwrap_or_default();
            let (_, told) = clause.split_once("threads are ").unwrap_or_default();
            told.to_owned()
        };
        assert_eq!(told(false, &[]), "`n` elements (4096 bytes) apart");
        assert_eq!(told(true, &[]), "`4*n` = 4096 bytes apart");
        assert_eq!(told(false, &["n % 32 == 0"]), "`n` elements apart");
        assert_eq!(told(true, &["n % 32 == 0"]), "`4*n` bytes apart");
    }

    #[test]
    fn a_long_name_leaves_room_for_the_figure() {
        for (gain, told) in [(2.9, "2.90x: "), (1.0, "")] {
            let mut walk = column_walk(5);
            walk.array = "intermediate_gradients".to_owned();
            walk.text = format!("{}[x * n + y]", walk.array);
            let findings = Kernel::new().access(walk).findings(|_| gain);
            let message = &findings[0].message;
            let (headline, rest) = message.split_once('\n').unwrap();
            assert!(headline.starts_with(&format!("{told}let a warp walk along rows of `interm")));
            assert!(
                headline.contains("(32 sectors per request, ideal 4)"),
                "{headline}"
            );
            assert!(headline.chars().count() <= 100, "{headline}");
            assert!(
                rest.starts_with("32 sectors per request (ideal 4): "),
                "{rest}"
            );
        }
    }

    #[test]
    fn without_anything_moving_along_the_row_it_is_a_stride() {
        let mut walk = column_walk(5);
        walk.stride.as_mut().unwrap().unit_elsewhere = false;
        let findings = Kernel::new().access(walk).findings(|_| 2.9);
        assert_eq!(findings[0].rule, "mem/strided");
    }

    #[test]
    fn a_short_constant_distance_is_a_stride_and_a_long_one_a_row() {
        for (elements, rule) in [
            (8, "mem/strided"),
            (31, "mem/strided"),
            (32, "mem/column-walk"),
        ] {
            let mut walk = column_walk(5);
            let stride = walk.stride.as_mut().unwrap();
            stride.symbolic = false;
            stride.bytes = elements * 4;
            stride.text = elements.to_string();
            let findings = Kernel::new().access(walk).findings(|_| 2.9);
            assert_eq!(findings[0].rule, rule, "{elements} elements apart");
        }
    }

    #[test]
    fn a_leading_dimension_of_one_is_no_walk() {
        let mut walk = column_walk(5);
        walk.stride.as_mut().unwrap().bytes = 4;
        walk.transactions_per_request = Some(4.0);
        assert_eq!(Kernel::new().access(walk).findings(|_| 2.9), []);
    }
}
