//! What a host program puts in front of an OpenCL file: the other files of the list in which it names it.
//!
//! Host programs name a file as `"reduce.cl"`, or as a variable that their build made of it: `reduce_cl` by `xxd -i`, and with
//! one of [`SUFFIXES`] by scripts of their own. What is before it in the same list is read before it:
//! `{ops_cl_src, reduce_cl_src}`.

use std::ops::Range;

/// What builds put behind a file's name where they make a variable with its text of it: nothing or one of these words.
pub(crate) const SUFFIXES: [&str; 6] = ["", "_src", "_source", "_str", "_string", "_code"];
/// Files of one list.
const MOST: usize = 16;
/// Uses of a name that are looked at.
const MOST_USES: usize = 16;
/// Bytes of a list.
const LONGEST: usize = 2_000;

/// The files before the one of that stem, in order, in the first list that has some, as they are written: with
/// folders where the list has them; `extension` is theirs.
pub(crate) fn sources_before(host: &str, stem: &str, extension: &str) -> Vec<String> {
    for at in uses(host, stem, extension) {
        let Some(list) = list_around(host, at) else {
            continue;
        };
        let mut found: Vec<String> = Vec::new();
        for name in host[list.start..at].split(|c: char| !is_word(c) && c != '.' && c != '/') {
            let (folder, name) = match name.rfind('/') {
                Some(slash) => name.split_at(slash + 1),
                None => ("", name),
            };
            if let Some(other) = file_named(name, extension)
                && other != stem
                && found.len() < MOST
            {
                let file = format!("{folder}{other}.{extension}");
                if !found.contains(&file) {
                    found.push(file);
                }
            }
        }
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

/// True for a text with a variable of an OpenCL file's text in it that says so behind the file's name.
pub(crate) fn names_sources(text: &str) -> bool {
    ["_cl", "_opencl"].iter().any(|extension| {
        text.match_indices(extension).any(|(at, _)| {
            let rest = &text[at + extension.len()..];
            let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
            end > 0 && SUFFIXES.contains(&&rest[..end])
        })
    })
}

/// Where the host names the file.
fn uses<'t>(host: &'t str, stem: &'t str, extension: &'t str) -> impl Iterator<Item = usize> + 't {
    host.match_indices(stem)
        .map(|(at, _)| at)
        .filter(move |&at| {
            let whole = !host[..at].ends_with(is_word);
            let rest = &host[at..];
            let end = rest
                .find(|c: char| !is_word(c) && c != '.')
                .unwrap_or(rest.len());
            whole && file_named(&rest[..end], extension) == Some(stem)
        })
        .take(MOST_USES)
}

/// The stem of the file that a word names.
fn file_named<'t>(word: &'t str, extension: &str) -> Option<&'t str> {
    let (stem, rest) = match word.split_once('.') {
        Some((stem, rest)) => (stem, rest),
        None => {
            let at = word.rfind(&format!("_{extension}"))?;
            (&word[..at], &word[at + 1..])
        }
    };
    let rest = rest.strip_prefix(extension)?;
    let of_a_file = SUFFIXES.contains(&rest);
    (of_a_file && !stem.is_empty() && stem.chars().all(is_word)).then_some(stem)
}

/// The innermost braces around a byte: what is in them.
fn list_around(text: &str, at: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let mut depth = 0u32;
    let start = (at.saturating_sub(LONGEST)..at).rev().find(|&before| {
        match bytes[before] {
            b'}' => depth += 1,
            b'{' if depth == 0 => return true,
            b'{' => depth -= 1,
            _ => {}
        }
        false
    })?;
    // A block of statements is no list.
    let list = start + 1..at;
    (!bytes[list.clone()].contains(&b';')).then_some(list)
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::{names_sources, sources_before};

    #[test]
    fn a_variable_of_a_files_text_is_told_by_its_suffix() {
        assert!(names_sources("build({ops_cl_src});"));
        assert!(names_sources("load(gemm_opencl_string)"));
        assert!(!names_sources("cl_mem my_cl_source_buffer, my_cl;"));
    }

    #[test]
    fn what_stands_before_a_file_in_its_list() {
        let before = |host: &str| sources_before(host, "reduce", "cl");
        assert_eq!(
            before("build({{ops_cl_src, reduce_cl_src}}, options);"),
            ["ops.cl"]
        );
        assert_eq!(
            before("const char *files[] = {\"a.cl\", \"b.cl\", \"reduce.cl\", \"after.cl\"};"),
            ["a.cl", "b.cl"]
        );
        assert_eq!(
            before("{\n#include \"../level3/gemm.cl\"\n#include \"reduce.cl\"\n}"),
            ["../level3/gemm.cl"]
        );
        // Another file's list, a block of statements, another name, half a list.
        assert!(before("{ops_cl_src, reduce_all_cl_src}").is_empty());
        assert!(before("void f() { load(\"a.cl\"); load(\"reduce.cl\"); }").is_empty());
        assert!(before("{my_reduce_cl, x}").is_empty());
        assert!(before("{{{\"reduce.cl").is_empty());
        assert!(before("").is_empty());
    }
}
