//! Lines of device code: the bodies of kernels and device functions, without comments and empty lines.

use std::path::{Path, PathBuf};

const KINDS: [&str; 9] = ["cu", "cuh", "cl", "hip", "h", "hpp", "cpp", "cc", "inl"];
const WORDS: [&str; 3] = ["__global__", "__device__", "__kernel"];

/// The files of a folder that hold device code, by name.
pub fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)?.flatten() {
            let path = entry.path();
            let kind = path.extension().unwrap_or_default().to_string_lossy();
            if path.is_symlink() {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if KINDS.contains(&&*kind) && of_text(&read(&path)) > 0 {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// All of a folder.
pub fn of_folder(folder: &Path) -> anyhow::Result<usize> {
    let files = files(folder)?;
    Ok(files.iter().map(|path| of_text(&read(path))).sum())
}

/// A text, whatever its encoding.
pub fn read(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn of_text(text: &str) -> usize {
    let code = without_comments(text);
    let (mut lines, mut from) = (0, 0);
    while let Some(begin) = WORDS
        .iter()
        .filter_map(|word| code[from..].find(word))
        .min()
    {
        let begin = from + begin;
        from = begin + WORDS[0].len().min(code.len() - begin);
        while !code.is_char_boundary(from) {
            from += 1;
        }
        let Some((open, close)) = body(&code, begin) else {
            continue;
        };
        debug_assert!(begin <= open);
        lines += code[begin..close]
            .lines()
            .filter(|line| !line.trim().is_empty())
            .count();
        from = close;
    }
    lines
}

/// The brackets of a function's body; `None` of a declaration or a variable.
fn body(code: &str, begin: usize) -> Option<(usize, usize)> {
    let (mut round, mut open, mut depth) = (0, None, 0);
    for (at, byte) in code.bytes().enumerate().skip(begin) {
        match (byte, open) {
            (b'(', None) => round += 1,
            (b')', None) => round -= 1,
            (b';' | b'=', None) if round == 0 => return None,
            (b'{', None) => {
                open = Some(at);
                depth = 1;
            }
            (b'{', Some(_)) => depth += 1,
            (b'}', Some(open)) => {
                depth -= 1;
                if depth == 0 {
                    return Some((open, at + 1));
                }
            }
            _ => {}
        }
    }
    None
}

/// Comments become blanks, lines stay.
fn without_comments(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("//").into_iter().chain(rest.find("/*")).min() {
        code.push_str(&rest[..at]);
        let end = if rest[at..].starts_with("//") {
            rest[at..].find('\n').map_or(rest.len(), |to| at + to)
        } else {
            rest[at..].find("*/").map_or(rest.len(), |to| at + to + 2)
        };
        code.extend(rest[at..end].chars().filter(|&letter| letter == '\n'));
        rest = &rest[end..];
    }
    code.push_str(rest);
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_count_without_comments_and_empty_lines() {
        let text = "int host() {\n  return 1;\n}\n__device__ int d;\n__device__ float f(float x);\n\
            /* __global__ void no() {} */\n\
            __global__ void k(float *x) {\n\n  // nothing\n  if (x) {\n    *x = 1;\n  }\n}\n";
        assert_eq!(of_text(text), 5);
    }
}
