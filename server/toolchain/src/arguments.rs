//! The allow list of flags: those that change device code, and nothing else. Compile commands come from the workspace,
//! so a flag that names a program, a plug-in or an output file must not pass.

use std::path::Path;

/// Flags without a value, without their dashes: nvcc's.
const ALONE_NVCC: &[&str] = &[
    "use_fast_math",
    "extended-lambda",
    "expt-extended-lambda",
    "expt-relaxed-constexpr",
    "restrict",
    "device-debug",
    "G",
    "m64",
    "O0",
    "O1",
    "O2",
    "O3",
];

/// The same: clang's.
const ALONE_CLANG: &[&str] = &[
    "ffast-math",
    "fgpu-rdc",
    "fno-gpu-rdc",
    "fgpu-flush-denormals-to-zero",
    "munsafe-fp-atomics",
    "mcumode",
    "mno-cumode",
    "mwavefrontsize64",
    "mno-wavefrontsize64",
    "O0",
    "O1",
    "O2",
    "O3",
];

/// Flags with a value of letters, digits and few signs, after `=` or as the next argument: nvcc's.
const VALUED_NVCC: &[&str] = &[
    "std",
    "ftz",
    "prec-div",
    "prec-sqrt",
    "fmad",
    "maxrregcount",
    "rdc",
    "relocatable-device-code",
    "default-stream",
];

/// The same: clang's.
const VALUED_CLANG: &[&str] = &["std", "cl-std", "ffp-contract"];

/// Flags whose value is a path or a definition, the longer names first.
const SPELLED: &[(&str, OptionValue)] = &[
    ("include-path", OptionValue::Path),
    ("define-macro", OptionValue::Define),
    ("undefine-macro", OptionValue::Define),
    ("pre-include", OptionValue::Path),
    ("isystem", OptionValue::Path),
    ("system-include", OptionValue::Path),
    ("include", OptionValue::Path),
    ("iquote", OptionValue::Path),
    ("D", OptionValue::Define),
    ("U", OptionValue::Define),
    ("I", OptionValue::Path),
];

/// Options of the assembler that change code.
const OF_ASSEMBLER: &[&str] = &[
    "-O0", "-O1", "-O2", "-O3", "-dlcm=ca", "-dlcm=cg", "-dscm=wb",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OptionValue {
    Path,
    Define,
}

/// The flags that pass, spelled for nvcc or for clang. Relative paths start at `folder`.
pub fn passed(arguments: &[String], folder: &Path, nvcc: bool) -> Vec<String> {
    let mut kept = Vec::new();
    let (alone, valued) = if nvcc {
        (ALONE_NVCC, VALUED_NVCC)
    } else {
        (ALONE_CLANG, VALUED_CLANG)
    };
    let mut rest = arguments.iter().map(String::as_str).peekable();
    while let Some(argument) = rest.next() {
        // Not flags: sources, values of dropped flags, response files.
        let Some(name) = argument.strip_prefix('-') else {
            continue;
        };
        let long = name.strip_prefix('-');
        let name = long.unwrap_or(name);
        if alone.contains(&name) {
            kept.push(argument.to_owned());
            continue;
        }
        let other = match (name, nvcc) {
            ("dc" | "device-c", true) => Some("-rdc=true"),
            ("dc" | "device-c" | "rdc=true" | "relocatable-device-code=true", false) => {
                Some("-fgpu-rdc")
            }
            ("use_fast_math", false) => Some("-ffast-math"),
            _ => None,
        };
        if let Some(flag) = other {
            kept.push(flag.to_owned());
            continue;
        }
        if name == "x" {
            // The request already sets clang's language.
            if let Some(language @ "cu") = rest.next()
                && nvcc
            {
                kept.extend(["-x".to_owned(), language.to_owned()]);
            }
            continue;
        }
        if matches!(name, "Xptxas" | "ptxas-options") || name.starts_with("ptxas-options=") {
            let value = name
                .split_once('=')
                .map(|(_, value)| value)
                .or_else(|| rest.next());
            if let Some(value) = value.filter(|value| nvcc && OF_ASSEMBLER.contains(value)) {
                kept.extend(["-Xptxas".to_owned(), value.to_owned()]);
            }
            continue;
        }
        if let Some((name, value)) = name.split_once('=')
            && valued.contains(&name)
        {
            if is_word(value) {
                kept.push(argument.to_owned());
            }
            continue;
        }
        if valued.contains(&name) {
            // The value is the next argument; one that is not a valid value is examined as a flag itself.
            if let Some(value) = rest.next_if(|value| is_word(value) && !value.starts_with('-')) {
                kept.push(format!("{argument}={value}"));
            }
            continue;
        }
        let spelled = SPELLED.iter().find_map(|(flag, kind)| {
            // Flags of one letter have one dash, and their value may follow without a space.
            let short = flag.len() == 1;
            let value = name
                .strip_prefix(flag)
                .filter(|_| short != long.is_some() || !short)?;
            let joined = short || value.is_empty() || value.starts_with('=') || *flag == "isystem";
            joined.then_some((*flag, *kind, value))
        });
        let Some((flag, kind, value)) = spelled else {
            continue;
        };
        let value = match value {
            "" => match rest.next() {
                Some(value) => value,
                None => break,
            },
            value => value.strip_prefix('=').unwrap_or(value),
        };
        // The spelling of AMD's and LLVM's compilers.
        let flag = match flag {
            "include-path" => "I",
            "define-macro" => "D",
            "undefine-macro" => "U",
            "pre-include" => "include",
            "system-include" => "isystem",
            flag => flag,
        };
        match kind {
            OptionValue::Define if is_harmless(value) && !value.starts_with('-') => {
                kept.push(format!("-{flag}{value}"));
            }
            OptionValue::Path if is_harmless(value) => {
                let path = folder.join(value).to_string_lossy().into_owned();
                // A folder whose name begins with a dash, or one above with such a character.
                if is_harmless(&path) {
                    let flag = match flag {
                        "iquote" if nvcc => "I",
                        flag => flag,
                    };
                    kept.extend([format!("-{flag}"), path]);
                }
            }
            _ => {}
        }
    }
    kept
}

/// True for text that a shell does not interpret, in double quotes or without. nvcc and hipcc pass their arguments
/// to a shell, some of them unquoted.
pub fn is_harmless(text: &str) -> bool {
    let sign = |c: char| match c {
        '_' | '-' | '+' | '.' | ',' | ':' | '=' | '/' | '@' | '~' => true,
        // A separator there, an escape elsewhere.
        '\\' => cfg!(windows),
        ' ' => true,
        _ => c.is_alphanumeric(),
    };
    !text.is_empty() && text.chars().all(sign)
}

fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed_of(arguments: &[&str]) -> Vec<String> {
        let arguments: Vec<String> = arguments.iter().map(|&a| a.to_owned()).collect();
        passed(&arguments, Path::new("/src"), true)
    }

    #[test]
    fn what_changes_device_code_passes() {
        let given = [
            "-DN=4",
            "-D",
            "M",
            "-UX",
            "-Iinc",
            "-I",
            "/abs",
            "-isystem",
            "/sys",
            "-std=c++17",
            "--std",
            "c++20",
            "-use_fast_math",
            "--extended-lambda",
            "-maxrregcount=32",
            "--maxrregcount",
            "40",
            "-include",
            "pre.h",
            "-x",
            "cu",
            "-dc",
            "-Xptxas",
            "-O1",
            "--define-macro=K=1",
        ];
        let wanted = [
            "-DN=4",
            "-DM",
            "-UX",
            "-I",
            "/src/inc",
            "-I",
            "/abs",
            "-isystem",
            "/sys",
            "-std=c++17",
            "--std=c++20",
            "-use_fast_math",
            "--extended-lambda",
            "-maxrregcount=32",
            "--maxrregcount=40",
            "-include",
            "/src/pre.h",
            "-x",
            "cu",
            "-rdc=true",
            "-Xptxas",
            "-O1",
            "-DK=1",
        ];
        assert_eq!(passed_of(&given), wanted);
    }

    #[test]
    fn what_names_programs_files_or_steps_does_not() {
        let given = [
            "nvcc",
            "-o",
            "out.o",
            "-c",
            "a.cu",
            "-E",
            "--run",
            "-dryrun",
            "@more.rsp",
            "--options-file",
            "more.rsp",
            "-Xcompiler",
            "-fplugin=evil.so",
            "-ccbin",
            "evil",
            "-Xcompiler=-fplugin=evil.so",
            "-fplugin=evil.so",
            "-Xclang",
            "-load",
            "--keep",
            "-Xptxas",
            "-o,/etc/x",
            "-MF",
            "deps",
            "-gencode",
            "arch=compute_80,code=sm_80",
            "-arch=sm_70",
            "-B/evil",
            "-wrapper",
            "evil",
            "--compiler-bindir=evil",
            "-save-temps",
            "-specs=evil",
            "-Ievil$(touch x)",
            "-DX=`touch x`",
            "-DX=1;touch x",
            "-std=$(x)",
            "-idirafter",
            "-include-pch=evil",
            "-use-local-env",
            "-x",
            "c++",
            "-D",
            "-o/x",
        ];
        assert_eq!(passed_of(&given), Vec::<String>::new());
    }
}
