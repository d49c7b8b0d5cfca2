//! Kernel definitions counted by their words alone: a figure to hold against what the product finds.

use std::collections::BTreeSet;

/// Where a kernel is defined: the 1-based line of the word that introduces it, and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    pub line: usize,
    pub name: String,
}

/// The definitions in a source: functions that are `__global__` or, where `opencl` is set, `__kernel` or
/// `kernel`, or one of the macros in `qualifiers`, and that have a body. Those in comments, string literals,
/// macros and `#if 0` do not count; those in raw string literals do, as OpenCL C.
pub fn kernels(source: &str, opencl: bool, qualifiers: &BTreeSet<String>) -> Vec<Definition> {
    let (code, programs) = blank(source);
    let mut found = definitions(&code, opencl, qualifiers, 1);
    for (line, program) in programs {
        found.extend(definitions(&blank(&program).0, true, qualifiers, line));
    }
    found
}

/// The macros of a source that represent the word that makes a function a kernel: `#define KERNEL __kernel`.
pub fn qualifiers(source: &str) -> BTreeSet<String> {
    let lines = source
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix('#'));
    let defines = lines.filter_map(|line| line.trim_start().strip_prefix("define "));
    defines
        .filter_map(|line| {
            let (name, body) = line.trim_start().split_once(char::is_whitespace)?;
            let kernel = body
                .split_whitespace()
                .any(|word| matches!(word, "__global__" | "__kernel" | "kernel"));
            // A macro that makes the whole kernel is not a qualifier.
            let whole = name.contains('(') || body.contains(['{', '\\']);
            (kernel && !whole).then(|| name.to_owned())
        })
        .collect()
}

/// The text with everything but code replaced by spaces, line by line, and the raw string literals in it.
fn blank(source: &str) -> (Vec<u8>, Vec<(usize, String)>) {
    let bytes = source.as_bytes();
    let mut out: Vec<u8> = bytes
        .iter()
        .map(|&byte| if byte == b'\n' { b'\n' } else { b' ' })
        .collect();
    let mut programs = Vec::new();
    let mut at = 0;
    // Nothing but white space since the line began.
    let mut fresh = true;
    while at < bytes.len() {
        let rest = &bytes[at..];
        if rest.starts_with(b"//") {
            at += line(rest);
        } else if rest.starts_with(b"/*") {
            at += find(&rest[2..], b"*/").map_or(rest.len(), |end| end + 4);
        } else if fresh && rest[0] == b'#' {
            let length = line(rest);
            let words = String::from_utf8_lossy(&rest[1..length]);
            let mut words = words.split_whitespace();
            at += length;
            if (words.next(), words.next()) == (Some("if"), Some("0")) {
                at += dead(&bytes[at..]);
            }
        } else if rest.starts_with(b"R\"") && !word(at.checked_sub(1).map_or(0, |at| bytes[at])) {
            let open = find(rest, b"(").unwrap_or(rest.len() - 1);
            let mut stop = vec![b')'];
            stop.extend(&rest[2..open.max(2)]);
            stop.push(b'"');
            let body = &rest[(open + 1).min(rest.len())..];
            let end = find(body, &stop).unwrap_or(body.len());
            let program = String::from_utf8_lossy(&body[..end]).into_owned();
            programs.push((1 + breaks(&bytes[..at + open]), program));
            at += open + 1 + end + stop.len();
        } else if rest[0] == b'"' || rest[0] == b'\'' && !number(&bytes[..at]) {
            at += quoted(rest);
        } else {
            fresh = match rest[0] {
                b'\n' => true,
                byte => fresh && byte.is_ascii_whitespace(),
            };
            out[at] = rest[0];
            at += 1;
        }
    }
    (out, programs)
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|found| found == what)
}

/// Line breaks.
fn breaks(bytes: &[u8]) -> usize {
    bytes.split(|&byte| byte == b'\n').count() - 1
}

/// Bytes up to the end of the line, continued lines with it.
fn line(bytes: &[u8]) -> usize {
    let mut at = 0;
    while at < bytes.len() && bytes[at] != b'\n' {
        let continued = bytes[at..].starts_with(b"\\\n") || bytes[at..].starts_with(b"\\\r\n");
        at += match (continued, bytes[at]) {
            (true, _) => 2 + usize::from(bytes[at + 1] == b'\r'),
            (false, b'/') if bytes[at..].starts_with(b"/*") => {
                find(&bytes[at + 2..], b"*/").map_or(bytes.len() - at, |end| end + 4)
            }
            _ => 1,
        };
    }
    at.min(bytes.len())
}

/// Bytes up to the directive that ends what `#if 0` leaves out.
fn dead(bytes: &[u8]) -> usize {
    let mut depth = 0;
    let mut at = 0;
    for text in bytes.split_inclusive(|&byte| byte == b'\n') {
        let text = String::from_utf8_lossy(text);
        if let Some(words) = text.trim_start().strip_prefix('#') {
            let name: String = words
                .trim_start()
                .chars()
                .take_while(|letter| letter.is_alphabetic())
                .collect();
            match name.as_str() {
                "if" | "ifdef" | "ifndef" => depth += 1,
                "endif" if depth > 0 => depth -= 1,
                "else" | "elif" | "endif" if depth == 0 => return at,
                _ => {}
            }
        }
        at += text.len();
    }
    bytes.len()
}

fn quoted(bytes: &[u8]) -> usize {
    let mut at = 1;
    while at < bytes.len() && bytes[at] != bytes[0] && bytes[at] != b'\n' {
        at += 1 + usize::from(bytes[at] == b'\\');
    }
    (at + 1).min(bytes.len())
}

fn word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// True where the quote behind `bytes` separates the digits of a number.
fn number(bytes: &[u8]) -> bool {
    let from = bytes
        .iter()
        .rposition(|&byte| !word(byte) && byte != b'\'')
        .map_or(0, |at| at + 1);
    bytes[from..].first().is_some_and(u8::is_ascii_digit)
}

fn definitions(
    code: &[u8],
    opencl: bool,
    qualifiers: &BTreeSet<String>,
    first_line: usize,
) -> Vec<Definition> {
    let mut found = Vec::new();
    let mut at = 0;
    let mut line = first_line;
    while at < code.len() {
        if !word(code[at]) {
            line += usize::from(code[at] == b'\n');
            at += 1;
            continue;
        }
        let length = code[at..].iter().take_while(|&&byte| word(byte)).count();
        let (name, rest) = code[at..].split_at(length);
        at += length;
        let introduces = name == b"__global__"
            || std::str::from_utf8(name).is_ok_and(|name| qualifiers.contains(name))
            || opencl && (name == b"__kernel" || name == b"kernel" && returns(rest));
        if let Some((name, body)) = introduces.then(|| definition(rest)).flatten() {
            found.push(Definition { line, name });
            line += breaks(&rest[..body]);
            at += body;
        }
    }
    found
}

/// True where `kernel` is the qualifier of a function, not a name.
fn returns(rest: &[u8]) -> bool {
    let rest = rest.trim_ascii_start();
    rest.starts_with(b"void") || rest.starts_with(b"__attribute__")
}

/// The name of the function declared in `code` and where its body begins, where it has one.
fn definition(code: &[u8]) -> Option<(String, usize)> {
    let mut depth = 0_usize;
    let mut name = None;
    let mut last = String::new();
    let mut at = 0;
    while at < code.len() {
        if word(code[at]) {
            let length = code[at..].iter().take_while(|&&byte| word(byte)).count();
            last = String::from_utf8_lossy(&code[at..at + length]).into_owned();
            at += length;
            continue;
        }
        match code[at] {
            b'(' => {
                let qualifier = ["__launch_bounds__", "__attribute__", "__declspec"];
                if depth == 0 && !qualifier.contains(&last.as_str()) {
                    name = Some(last.clone());
                }
                depth += 1;
            }
            b')' => depth = depth.checked_sub(1)?,
            b'{' if depth == 0 => return Some((name?, at)),
            b';' | b'}' | b'=' if depth == 0 => return None,
            _ => {}
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(source: &str, opencl: bool) -> Vec<String> {
        kernels(source, opencl, &qualifiers(source))
            .into_iter()
            .map(|kernel| format!("{}:{}", kernel.line, kernel.name))
            .collect()
    }

    #[test]
    fn definitions_are_counted_and_nothing_else() {
        let cuda: [(&str, &[&str]); 12] = [
            (
                "__global__ void a(int *p) { *p = 1; }\n__global__ void b();",
                &["1:a"],
            ),
            (
                "\ntemplate <int N>\n__global__ void\n__launch_bounds__(N) a(int n) {}",
                &["3:a"],
            ),
            ("template __global__ void a<1>(int);", &[]),
            (
                "// __global__ void a() {}\n/* __global__ void b() {} */",
                &[],
            ),
            (
                "const char *s = \"__global__ void a() {}\"; char c = '\"';\n__global__ void b() {}",
                &["2:b"],
            ),
            (
                "#define K __global__ void a() { \\\n }\n__global__ void b() {}",
                &["3:b"],
            ),
            (
                "#if 0\n#if 1\n#endif\n__global__ void a() {}\n#else\n__global__ void b() {}\n#endif",
                &["6:b"],
            ),
            ("int n = 1'000; __global__ void a() {}", &["1:a"]),
            ("__global__ void NAME(a)(int n) {}", &["1:a"]),
            (
                "auto s = R\"x(\n__kernel void a() {}\n)\")x\"; __global__ void b() {}",
                &["2:a", "3:b"],
            ),
            ("__kernel void a() {}", &[]),
            ("__global__", &[]),
        ];
        for (source, wanted) in cuda {
            let mut found = names(source, false);
            found.sort();
            assert_eq!(found, wanted, "{source}");
        }
        let opencl: [(&str, &[&str]); 6] = [
            (
                "kernel void a(global int *kernel) { kernel[0] = 1; }",
                &["1:a"],
            ),
            (
                "#if A\n__kernel\n#else\n__kernel __attribute__((x(1)))\n#endif\nvoid a() {}",
                &["2:a"],
            ),
            ("__kernel void a(void);\n__kernel void b(void) {}", &["2:b"]),
            ("void kernel(int a) {}", &[]),
            (
                "#define FQ kernel\n#define F(x) kernel x\nFQ void a() {}\nF(void) b() {}",
                &["3:a"],
            ),
            (
                "#define FQ extern \"C\" __global__\nFQ void a() {}",
                &["2:a"],
            ),
        ];
        for (source, wanted) in opencl {
            assert_eq!(names(source, true), wanted, "{source}");
        }
    }

    #[test]
    fn half_written_text_ends() {
        for source in [
            "R\"",
            "R\"(",
            "\"",
            "'",
            "/*",
            "#if 0",
            "#",
            "\\",
            "__global__ void f(",
            "#define \\",
        ] {
            assert_eq!(kernels(source, true, &BTreeSet::new()), [], "{source}");
        }
    }
}
