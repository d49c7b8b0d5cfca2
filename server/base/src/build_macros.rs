//! The macros that a build defines for its CUDA files, where no command line is known: what `setup.py` hands to
//! `CUDAExtension` of `PyTorch`, and what `CMakeLists.txt` adds to all targets.
//!
//! In: the text of such a file. Out: options of a compiler, `-DNAME=VALUE`. What holds: nothing is executed. What a condition decides is
//! taken where it asks for CUDA, `if torch.cuda.is_available():`, and left out where it asks for anything else; what is computed is
//! left out.

use crate::split_command;

/// Lines of one file that are read.
const MOST_LINES: usize = 5_000;
/// Options of one file.
const MOST_OPTIONS: usize = 256;

/// The options that a `setup.py` defines macros with.
pub fn in_setup(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    // The conditions around a line, each with its indentation.
    let mut around: Vec<(usize, Condition)> = Vec::new();
    let mut brackets = 0i32;
    let mut defining = false;
    for line in text.lines().take(MOST_LINES) {
        let code = without_comment(line);
        if code.trim().is_empty() {
            continue;
        }
        if brackets == 0 {
            let indent = code.len() - code.trim_start().len();
            let left = around.iter().position(|(of, _)| *of >= indent);
            let ended = left.map(|at| around.split_off(at)).unwrap_or_default();
            let before = ended.first().map(|(_, condition)| *condition);
            if let Some(condition) = condition_of_line(code.trim(), before) {
                around.push((indent, condition));
            }
            defining = false;
        }
        if code.contains("define_macros") {
            defining = true;
        }
        if around
            .iter()
            .all(|(_, condition)| *condition == Condition::Holds)
        {
            for text in strings(code) {
                found.extend(option(text));
            }
            if defining {
                found.extend(pairs(code));
            }
        }
        brackets += depth_of(code);
        brackets = brackets.max(0);
    }
    found.truncate(MOST_OPTIONS);
    found
}

/// The options that a `CMakeLists.txt` defines macros with, for all that it compiles.
pub fn in_cmake(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut around: Vec<Condition> = Vec::new();
    for (name, arguments) in cmake_commands(text) {
        let holds = around
            .iter()
            .all(|condition| *condition == Condition::Holds);
        match name.as_str() {
            "if" => around.push(condition(&arguments)),
            "elseif" => {
                let before = around.pop();
                around.push(match before {
                    Some(Condition::Holds) => Condition::Open,
                    _ => condition(&arguments),
                });
            }
            "else" => {
                let before = around.pop().unwrap_or(Condition::Open);
                around.push(before.otherwise());
            }
            "endif" => {
                around.pop();
            }
            "add_definitions" | "add_compile_options" if holds => {
                let words = split_command(&arguments);
                found.extend(words.iter().filter_map(|word| option(word)));
            }
            "add_compile_definitions" if holds => {
                let words = split_command(&arguments);
                let defined = words.iter().filter_map(|word| {
                    option(&format!("-D{}", word.strip_prefix("-D").unwrap_or(word)))
                });
                found.extend(defined);
            }
            "set" if holds => {
                let mut words = split_command(&arguments).into_iter();
                if words.next().is_some_and(|of| is_device_flags(&of)) {
                    let flags = words.flat_map(|word| split_command(&word));
                    found.extend(flags.filter_map(|word| option(&word)));
                }
            }
            _ => {}
        }
    }
    found.truncate(MOST_OPTIONS);
    found
}

/// Whether what is behind a condition is compiled for CUDA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Condition {
    Holds,
    Fails,
    Open,
}

impl Condition {
    fn otherwise(self) -> Condition {
        match self {
            Condition::Holds => Condition::Fails,
            Condition::Fails => Condition::Holds,
            Condition::Open => Condition::Open,
        }
    }
}

/// What is known of a condition: one that asks for CUDA holds, one for another vendor's GPUs does not.
fn condition(text: &str) -> Condition {
    let text = text.to_ascii_lowercase();
    let words: Vec<&str> = text.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let has = |wanted: &str| words.contains(&wanted);
    if ["rocm", "hip", "musa", "xpu", "sycl", "mps", "npu"]
        .iter()
        .any(|of| has(of))
    {
        return if has("not") {
            Condition::Holds
        } else {
            Condition::Fails
        };
    }
    if has("version") || has("windows") || has("win32") || has("debug") {
        return Condition::Open;
    }
    if !has("cuda") {
        return Condition::Open;
    }
    let negated = text.trim_start().starts_with("not ") && !text.contains(" is not ");
    if negated {
        Condition::Fails
    } else {
        Condition::Holds
    }
}

/// What a line of Python begins; `before`: the condition of the same indentation that ends with it. Functions and the like are entered.
fn condition_of_line(line: &str, before: Option<Condition>) -> Option<Condition> {
    let (word, rest) = line.split_once([' ', ':', '(']).unwrap_or((line, ""));
    Some(match word {
        "if" => condition(rest),
        "elif" => match before {
            Some(Condition::Holds) => Condition::Open,
            _ => condition(rest),
        },
        "else" => before.map_or(Condition::Open, Condition::otherwise),
        _ => return None,
    })
}

/// `-DNAME` and `-DNAME=VALUE`, nothing that is computed.
fn option(text: &str) -> Option<String> {
    let rest = text
        .strip_prefix("-D")
        .or_else(|| text.strip_prefix("-U"))?;
    let (name, value) = rest.split_once('=').unwrap_or((rest, ""));
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_name = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(plain);
    let is_value = value
        .chars()
        .all(|c| plain(c) || matches!(c, '.' | '-' | '+'));
    (is_name && is_value).then(|| text.to_owned())
}

/// `("NAME", None)` and `("NAME", "1")` of a list of macros.
fn pairs(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices('(') {
        let inner = &code[at + 1..];
        let inner = &inner[..inner.find(')').unwrap_or(inner.len())];
        let Some((name, value)) = inner.split_once(',') else {
            continue;
        };
        let &[name] = strings(name).as_slice() else {
            continue;
        };
        let value = value.trim().trim_end_matches(',');
        let written = match (value, strings(value).as_slice()) {
            ("None", _) => format!("-D{name}"),
            (_, [value]) => format!("-D{name}={value}"),
            _ => continue,
        };
        found.extend(option(&written));
    }
    found
}

/// The strings of a line of Python in full: none that is a part of what is computed.
fn strings(code: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(open) = code[at..].find(['"', '\'']).map(|of| at + of) {
        let quote = &code[open..=open];
        let Some(end) = code[open + 1..].find(quote).map(|of| open + 1 + of) else {
            break;
        };
        let before = code[..open].trim_end();
        let behind = code[end + 1..].trim_start();
        let computed = code[..open].ends_with(['f', 'F'])
            || before.ends_with('+')
            || behind.starts_with(['+', '%', '.']);
        if !computed {
            found.push(&code[open + 1..end]);
        }
        at = end + 1;
    }
    found
}

/// A line of Python without its comment.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    for (at, letter) in line.char_indices() {
        match (quote, letter) {
            (None, '#') => return &line[..at],
            (None, '"' | '\'') => quote = Some(letter),
            (Some(of), letter) if of == letter => quote = None,
            _ => {}
        }
    }
    line
}

/// How many more brackets a line opens than it closes.
fn depth_of(code: &str) -> i32 {
    let mut quote = None;
    let mut depth = 0;
    for letter in code.chars() {
        match (quote, letter) {
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth -= 1,
            (None, '"' | '\'') => quote = Some(letter),
            (Some(of), letter) if of == letter => quote = None,
            _ => {}
        }
    }
    depth
}

/// The commands of a CMake file, `name(arguments)`, names in small letters.
fn cmake_commands(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().take(MOST_LINES).map(without_comment);
    let code: String = lines.flat_map(|line| [line, "\n"]).collect();
    let mut found = Vec::new();
    let mut rest = code.as_str();
    while let Some((before, behind)) = rest.split_once('(') {
        let mut depth = 1;
        let end = behind.find(|letter| {
            match letter {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            depth == 0
        });
        let Some(end) = end else { break };
        let name = before.split_whitespace().next_back().unwrap_or("");
        found.push((name.to_ascii_lowercase(), behind[..end].to_owned()));
        rest = &behind[end + 1..];
    }
    found
}

/// True for the variable whose flags all device code is compiled with.
fn is_device_flags(variable: &str) -> bool {
    matches!(
        variable,
        "CMAKE_CUDA_FLAGS" | "CUDA_NVCC_FLAGS" | "CMAKE_HIP_FLAGS"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETUP: &str = r#"
import os
extra = {"cxx": ["-O3"]}  # ("COMMENTED", None)
define_macros = [("ALWAYS", None), ('LEVEL', '3')]
def get_extensions():
    if torch.cuda.is_available() or os.getenv('FORCE_CUDA', '0') == '1':
        define_macros += [("WITH_CUDA", None),
                          ("LIMIT", "4")]
        extra["nvcc"] = ["-O3", '-DFROM_FLAGS', "-DWIDTH=128", "-D__X=" + str(x)]
        if debug:
            define_macros += [("DEBUG_ONLY", None)]
    elif IS_ROCM:
        define_macros += [("WITH_HIP", None)]
    else:
        define_macros += [("CPU_ONLY", None)]
    extra["nvcc"] += [f"-DNAME_{version}", "-UNDEBUG"]
    return [CUDAExtension("x", sources, define_macros=define_macros)]
"#;

    #[test]
    fn macros_of_an_extension_are_those_that_cuda_files_are_compiled_with() {
        assert_eq!(
            in_setup(SETUP),
            [
                "-DALWAYS",
                "-DLEVEL=3",
                "-DWITH_CUDA",
                "-DLIMIT=4",
                "-DFROM_FLAGS",
                "-DWIDTH=128",
                "-UNDEBUG"
            ]
        );
    }

    #[test]
    fn macros_of_cmake_are_those_of_all_targets() {
        let text = "
add_definitions(-DALWAYS -DLEVEL=3) # -DCOMMENTED
if(USE_CUDA)
  add_compile_definitions(WITH_CUDA
      LIMIT=4)
  set(CMAKE_CUDA_FLAGS \"${CMAKE_CUDA_FLAGS} -O3 -DFROM_FLAGS\")
else()
  add_definitions(-DCPU_ONLY)
endif()
if(USE_ROCM)
  add_definitions(-DWITH_HIP)
endif()
if(TESTS)
  add_definitions(-DTESTING)
endif()
target_compile_definitions(one PRIVATE ONE)
";
        assert_eq!(
            in_cmake(text),
            [
                "-DALWAYS",
                "-DLEVEL=3",
                "-DWITH_CUDA",
                "-DLIMIT=4",
                "-DFROM_FLAGS"
            ]
        );
    }

    #[test]
    fn text_that_is_no_such_file_defines_nothing() {
        for text in [
            "",
            "if",
            "if(",
            "(((",
            "'",
            "define_macros = [(\"A",
            "else:\n  \"-DA\"",
        ] {
            assert!(in_setup(text).is_empty(), "{text}");
            assert!(in_cmake(text).is_empty(), "{text}");
        }
    }
}
