//! Kernel handles that one function makes and another launches: `kernel = clCreateKernel(program, "name", …)`,
//! `cuModuleGetFunction(&function, module, "name")`, `Kernel kernel(program, "name")`.

use rustc_hash::FxHashMap;
use warplens_syntax::is_identifier;

/// Functions that make a handle of a kernel that they name.
const MAKERS: &[&str] = &[
    "clCreateKernel",
    "cuModuleGetFunction",
    "hipModuleGetFunction",
    "cuLibraryGetKernel",
];
/// Handles of one file.
const MOST: usize = 512;

/// The kernels that each handle of a file is made of, by the handle's name; of an array's element with its
/// subscript.
pub(super) fn handles(text: &str) -> FxHashMap<String, Vec<String>> {
    let mut found: FxHashMap<String, Vec<String>> = FxHashMap::default();
    for maker in MAKERS {
        for (at, _) in text.match_indices(maker).take(MOST) {
            let rest = text[at + maker.len()..].trim_start();
            let Some(arguments) = rest.strip_prefix('(').and_then(up_to_closing) else {
                continue;
            };
            let Some(kernel) = arguments.split(',').find_map(literal) else {
                continue;
            };
            let handle = if *maker == "clCreateKernel" {
                text[..at]
                    .trim_end()
                    .strip_suffix('=')
                    .and_then(|before| last_name(before.trim_end()))
            } else {
                arguments
                    .split(',')
                    .next()
                    .and_then(|first| last_name(first.trim().trim_start_matches('&')))
            };
            if let Some(handle) = handle {
                let kernels = found.entry(handle).or_default();
                if !kernels.iter().any(|known| known == kernel) {
                    kernels.push(kernel.to_owned());
                }
            }
        }
    }
    found
}

/// The kernels that a file makes of the program in a variable.
pub(super) fn kernels_of_program(text: &str, program: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let makers = text
        .match_indices("clCreateKernel")
        .chain(text.match_indices("Kernel "))
        .chain(text.match_indices("Kernel("));
    for (at, maker) in makers.take(MOST) {
        let rest = &text[at + maker.trim_end_matches('(').len()..];
        // `cl::Kernel kernel(program, "name")` names a variable first.
        let rest = rest
            .trim_start()
            .trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let Some(arguments) = rest.trim_start().strip_prefix('(').and_then(up_to_closing) else {
            continue;
        };
        let mut arguments = arguments.split(',');
        let of = arguments.next().and_then(last_name);
        if of.as_deref() == Some(program)
            && let Some(kernel) = arguments.next().and_then(literal)
            && !found.iter().any(|known| known == kernel)
        {
            found.push(kernel.to_owned());
        }
    }
    found
}

/// The last part of `object.handle`, `this->handles[2]`, spaces left out.
pub(super) fn last_name(text: &str) -> Option<String> {
    let text = text.trim();
    let (name, subscript) = match text.strip_suffix(']') {
        Some(inner) => {
            let open = inner.rfind('[')?;
            (text[..open].trim_end(), &text[open..])
        }
        None => (text, ""),
    };
    let start = name
        .rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .map_or(0, |at| at + 1);
    let name = &name[start..];
    let subscript: String = subscript.split_whitespace().collect();
    (!name.is_empty()).then(|| format!("{name}{subscript}"))
}

/// The text up to the parenthesis that closes; `None` where none does nearby.
fn up_to_closing(text: &str) -> Option<&str> {
    let mut depth = 0u32;
    for (at, c) in text.char_indices().take(600) {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return Some(&text[..at]),
            ')' => depth -= 1,
            ';' | '{' => return None,
            _ => {}
        }
    }
    None
}

/// What is in a string literal that is one name.
fn literal(text: &str) -> Option<&str> {
    let inner = text.trim().strip_prefix('"')?.strip_suffix('"')?;
    is_identifier(inner).then_some(inner)
}
