//! mem/column-walk: `threadIdx.x` multiplies the leading dimension.

pub(crate) mod rows;
pub(crate) mod stage_transpose;
pub(crate) mod swap_axes;

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
    match &costly.access.stride {
        Some(stride) if stride.symbolic => format!(
            "`{text}` walks down a column, neighbouring threads are `{}` elements ({} bytes) apart",
            stride.text,
            stride.bytes.unsigned_abs()
        ),
        _ => format!(
            "`{text}` walks down a column, neighbouring threads are {} bytes apart",
            costly.distance().unwrap_or_default()
        ),
    }
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
            "2.90x: let neighbouring threads take neighbouring elements of `in` (32 sectors per request, ideal 4)\n\
             32 sectors per request (ideal 4): `in[x * n + y]` walks down a column, neighbouring \
             threads are `n` elements (4096 bytes) apart"
        );
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
