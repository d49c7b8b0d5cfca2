//! What a kernel or a function takes, by the words of its head.

use warplens_ir::Bound;

/// True for a function to which a caller can give numbers: a template, or one with a parameter that is neither a
/// pointer nor a reference, or that is a `dim3`.
pub(crate) fn may_decide(function: &str) -> bool {
    let head = function.split('{').next().unwrap_or_default();
    let Some((before, parameters)) = head.split_once('(') else {
        return false;
    };
    let handle = |parameter: &str| {
        parameter.contains(['*', '&']) && !parameter.contains("dim3")
            || ["stream", "Stream", "void"]
                .iter()
                .any(|word| parameter.contains(word))
    };
    before.trim_start().starts_with("template")
        || parameters
            .trim_end()
            .trim_end_matches(')')
            .split(',')
            .any(|parameter| !parameter.trim().is_empty() && !handle(parameter))
}

/// The fewest and the most arguments that a kernel takes, by its text from the name on; `None` where it takes any number.
pub(crate) fn arguments_of(kernel: &str, name: &str) -> Option<(usize, usize)> {
    let rest = parameters_behind(&kernel[..kernel.find('{').unwrap_or(kernel.len())], name)?;
    let bytes = rest.as_bytes();
    let (mut depth, mut angles) = (0_usize, 0_usize);
    let (mut fewest, mut most) = (0, 0);
    let (mut some, mut default) = (false, false);
    let mut i = 0;
    while i < bytes.len() {
        match bytes[i] {
            b'/' if bytes.get(i + 1) == Some(&b'*') => {
                i += rest[i + 2..].find("*/").map_or(bytes.len(), |end| end + 3);
            }
            b'/' if bytes.get(i + 1) == Some(&b'/') => {
                i += rest[i..].find('\n').unwrap_or(bytes.len());
            }
            b'(' | b'[' => {
                some |= depth > 0;
                depth += 1;
            }
            b')' | b']' => {
                depth -= 1;
                if depth == 0 {
                    most += usize::from(some);
                    fewest += usize::from(some && !default);
                    let only = rest[1..i].trim() == "void";
                    return Some(if only { (0, 0) } else { (fewest, most) });
                }
            }
            b'<' if depth == 1 && !default => angles += 1,
            b'>' if depth == 1 && !default => angles = angles.saturating_sub(1),
            b'=' if depth == 1 && angles == 0 => default = true,
            b'.' if rest[i..].starts_with("...") => return None,
            b',' if depth == 1 && angles == 0 => {
                most += 1;
                fewest += usize::from(!default);
                (some, default) = (false, false);
            }
            byte => some |= !byte.is_ascii_whitespace(),
        }
        i += 1;
    }
    None
}

/// A head from the parenthesis behind this name on.
fn parameters_behind<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut named = head.rmatch_indices(name);
    named.find_map(|(at, _)| {
        let rest = head[at + name.len()..].trim_start();
        (!head[..at].ends_with(word) && rest.starts_with('(')).then_some(rest)
    })
}

/// What a kernel's template takes between angle brackets: how many arguments a launch must spell and how many it can.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct TemplateHead {
    /// Parameters up to the last that neither a default nor an argument of the call gives.
    fewest: usize,
    most: usize,
}

impl TemplateHead {
    /// The head of this kernel; `None` where it takes any number of arguments or specialises another template.
    pub(crate) fn of(kernel: &str, name: &str) -> Option<TemplateHead> {
        let head = &kernel[..kernel.find('{').unwrap_or(kernel.len())];
        let Some(list) = head.trim_start().strip_prefix("template") else {
            return Some(TemplateHead { fewest: 0, most: 0 });
        };
        let list = list.trim_start().strip_prefix('<')?;
        let mut parts = parameter_list(list)?;
        parts.retain(|part| !part.trim().is_empty());
        if parts.is_empty() || parts.iter().any(|part| part.contains("...")) {
            return None;
        }
        let call = words_of(parameters_behind(head, name)?);
        let mut fewest = 0;
        for (at, part) in parts.iter().enumerate() {
            let said = words_of(part.split('=').next().unwrap_or(part));
            let deduced = said.last().is_some_and(|name| call.contains(name));
            if !part.contains('=') && !deduced {
                fewest = at + 1;
            }
        }
        Some(TemplateHead {
            fewest,
            most: parts.len(),
        })
    }

    /// Whether a launch that spells these arguments can be one of it. One that spells none may have them from elsewhere.
    pub(crate) fn takes(&self, arguments: &[Option<Bound>]) -> bool {
        arguments.is_empty() || (self.fewest..=self.most).contains(&arguments.len())
    }
}

fn words_of(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .collect()
}

/// The parameters of a template from behind its `<` on.
fn parameter_list(text: &str) -> Option<Vec<&str>> {
    let (mut depth, mut within, mut start) = (0_usize, 0_usize, 0);
    let mut parts = Vec::new();
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'[' => within += 1,
            b')' | b']' => within = within.saturating_sub(1),
            // In parentheses these compare and shift.
            _ if within > 0 => {}
            b'<' => depth += 1,
            b'>' if depth == 0 => {
                parts.push(&text[start..at]);
                return Some(parts);
            }
            b'>' => depth -= 1,
            b',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use warplens_ir::{Bound, Type};

    use super::{TemplateHead, arguments_of};

    #[test]
    fn a_launch_belongs_to_the_template_that_takes_its_arguments() {
        let value = |value| Some(Bound::Value(value));
        let ty = || Some(Bound::Type(Type::FLOAT));
        let head = |text: &str| TemplateHead::of(text, "k").expect("it takes a number of them");
        let two = head("template <int C, int W> __global__ void k(int n, float *p) {");
        assert!(two.takes(&[value(128), value(32)]) && two.takes(&[]));
        assert!(!two.takes(&[value(8), value(256), value(32)]));
        assert!(!two.takes(&[value(8)]), "nothing gives `W`");
        let deduced = head("template <int C, class T = int, typename P> __global__ void k(P p) {");
        assert!(deduced.takes(&[value(1)]) && deduced.takes(&[None, None, None]));
        assert!(!deduced.takes(&[value(1), ty(), ty(), ty()]));
        let shift = head("template <int C = (1 << 4), typename T> __global__ void k(T *p) {");
        assert!(shift.takes(&[value(16)]));
        assert!(!head("__global__ void k(int n) {").takes(&[value(1)]));
        for any in [
            "template <int... N> __global__ void k(int n) {",
            "template <> __global__ void k<3>(int n) {",
        ] {
            assert_eq!(TemplateHead::of(any, "k"), None, "{any}");
        }
    }

    #[test]
    fn arguments_are_counted_with_their_defaults() {
        let count = |text: &str| arguments_of(text, "k");
        assert_eq!(count("__global__ void k() {"), Some((0, 0)));
        assert_eq!(count("__global__ void k(void) {"), Some((0, 0)));
        assert_eq!(
            count("__global__ void k(int *a, int n = f(1, 2)) {"),
            Some((1, 2))
        );
        assert_eq!(
            count(
                "template <int N> __global__ void k(Pair<int, N> a /* one, two */, float (*b)[2]) {"
            ),
            Some((2, 2))
        );
        assert_eq!(
            count("template <class... T> __global__ void k(T... all) {"),
            None
        );
        assert_eq!(count("__global__ void other(int a) {"), None);
    }
}
