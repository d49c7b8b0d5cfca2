//! What a kernel or a function takes, by the words of its head.

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
    let head = &kernel[..kernel.find('{').unwrap_or(kernel.len())];
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (at, _) = head.rmatch_indices(name).find(|(at, _)| {
        let rest = head[at + name.len()..].trim_start();
        !head[..*at].ends_with(word) && rest.starts_with('(')
    })?;
    let rest = head[at + name.len()..].trim_start();
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

#[cfg(test)]
mod tests {
    use super::arguments_of;

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
