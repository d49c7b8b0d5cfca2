//! mem/strided: a constant distance of more than one element between neighbouring threads.

use crate::rule::{Look, Rule, State};
use crate::subjects::access::Costly;

pub(crate) const RULE: Rule = Rule {
    id: "mem/strided",
    title: "neighbouring threads skip elements: part of every transaction is thrown away",
    severity: "by predicted gain: hint, information or warning",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::With("mem/uncoalesced"),
    actions: &[],
};

pub(crate) fn claims(costly: &Costly<'_>) -> bool {
    costly
        .distance()
        .is_some_and(|distance| distance > costly.element())
}

pub(crate) fn cause(costly: &Costly<'_>) -> String {
    let text = &costly.access.text;
    let distance = costly.distance().unwrap_or_default();
    let element = costly.element();
    match &costly.access.stride {
        Some(stride) if stride.symbolic => format!(
            "`{text}` is strided, neighbouring threads are {}",
            costly.apart().unwrap_or_default()
        ),
        _ if element > 0 && distance.is_multiple_of(element) => {
            format!(
                "`{text}` is strided, it uses one element in {}",
                distance / element
            )
        }
        _ => format!("`{text}` is strided, neighbouring threads are {distance} bytes apart"),
    }
}

#[cfg(test)]
mod tests {
    use crate::Severity;
    use crate::testing::{Kernel, strided};

    #[test]
    fn every_second_element_is_half_wasted() {
        let findings = Kernel::new().access(strided(5, 2)).findings(|_| 1.05);
        assert_eq!(findings[0].rule, "mem/strided");
        assert_eq!(findings[0].severity, Severity::Information);
        assert_eq!(
            findings[0].message,
            "1.05x: take elements of `in` that lie side by side (8 sectors per request, ideal 4)\n\
             8 sectors per request (ideal 4): `in[2 * i]` is strided, it uses one element in 2"
        );
    }

    #[test]
    fn backwards_is_strided_too_but_reversed_is_not() {
        let mut backwards = strided(5, 2);
        backwards.stride.as_mut().unwrap().bytes = -8;
        assert_eq!(
            Kernel::new().access(backwards).findings(|_| 1.5)[0].rule,
            "mem/strided"
        );
        let mut reversed = strided(5, 1);
        reversed.stride.as_mut().unwrap().bytes = -4;
        assert_eq!(Kernel::new().access(reversed).findings(|_| 1.5), []);
    }

    #[test]
    fn a_stride_that_hides_behind_something_else_is_a_hint() {
        assert_eq!(
            Kernel::new().access(strided(5, 8)).findings(|_| 1.0)[0].severity,
            Severity::Hint
        );
    }
}
