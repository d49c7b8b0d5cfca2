//! The flags of a compile command that are handed on: those that are understood, written anew.
//!
//! The command is the workspace's. A flag that names a program, a plug-in or a file to write would have the
//! workspace decide what is executed, so that nothing is copied that is not known to be harmless.

use std::path::Path;

use warplens_project::{Command, CommandLanguage, Define};

/// Options that stand alone or with a plain value, without their dashes.
const PLAIN: &[&str] = &[
    "extended-lambda",
    "expt-extended-lambda",
    "expt-relaxed-constexpr",
    "restrict",
    "G",
    "device-debug",
    "O0",
    "O1",
    "O2",
    "O3",
    "ftz=true",
    "ftz=false",
    "prec-div=true",
    "prec-div=false",
    "prec-sqrt=true",
    "prec-sqrt=false",
    "fmad=true",
    "fmad=false",
    "ffp-contract=fast",
    "ffp-contract=on",
    "ffp-contract=off",
];

/// What a shell would take for more than text: nvcc hands its flags to one.
const OF_SHELLS: &[char] = &['$', '`', ';', '|', '&', '<', '>', '\n', '\r', '\0'];

/// The flags for the compiler `tool`.
pub fn of(command: &Command, tool: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let name = tool.file_name().unwrap_or_default().to_string_lossy();
    let of_nvidia = name.contains("nvcc") || name.contains("ptxas");
    if let Some(language) = command.language {
        let language = match (language, of_nvidia) {
            (CommandLanguage::Cuda, true) => Some("cu"),
            (CommandLanguage::Cuda, false) => Some("cuda"),
            (CommandLanguage::Hip, false) => Some("hip"),
            _ => None,
        };
        found.extend(
            language
                .into_iter()
                .flat_map(|language| ["-x".to_owned(), language.to_owned()]),
        );
    }
    if let Some(standard) = &command.cxx_std {
        found.push(format!("-std={standard}"));
    }
    for define in &command.defines {
        found.push(match define {
            Define::Set { name, value } => format!("-D{name}={value}"),
            Define::Unset(name) => format!("-U{name}"),
        });
    }
    for folder in command.quote_dirs.iter().chain(&command.include_dirs) {
        found.push(format!("-I{}", folder.display()));
    }
    for file in &command.forced_includes {
        let file = command.directory.join(file);
        let file = file.display().to_string();
        if !file.contains(OF_SHELLS) {
            found.extend(["-include".to_owned(), file]);
        }
    }
    if command.fast_math {
        let flag = if of_nvidia {
            "-use_fast_math"
        } else {
            "-ffast-math"
        };
        found.push(flag.to_owned());
    }
    if let Some(registers) = command.max_registers.filter(|_| of_nvidia) {
        found.push(format!("-maxrregcount={registers}"));
    }
    if command.relocatable && of_nvidia {
        found.push("-rdc=true".to_owned());
    }
    let plain = |option: &&String| {
        let name = option.strip_prefix('-');
        let name = name.map(|name| name.strip_prefix('-').unwrap_or(name));
        name.is_some_and(|name| PLAIN.contains(&name))
    };
    found.extend(command.options.iter().filter(plain).cloned());
    found.retain(|flag| !flag.contains(OF_SHELLS));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use warplens_project::NoFiles;

    fn given(words: &[&str], tool: &str) -> Vec<String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        of(
            &Command::read(&words, Path::new("/build"), &NoFiles),
            Path::new(tool),
        )
    }

    #[test]
    fn what_changes_device_code_is_handed_on() {
        let words = [
            "/usr/bin/nvcc",
            "-DTILE=32",
            "-UNDEBUG",
            "-I../include",
            "-std=c++17",
            "--use_fast_math",
            "-maxrregcount=64",
            "--expt-relaxed-constexpr",
            "-O3",
            "-c",
            "a.cu",
            "-o",
            "a.o",
        ];
        assert_eq!(
            given(&words, "/opt/cuda/bin/nvcc"),
            [
                "-x",
                "cu",
                "-std=c++17",
                "-DTILE=32",
                "-UNDEBUG",
                "-I/include",
                "-use_fast_math",
                "-maxrregcount=64",
                "--expt-relaxed-constexpr",
                "-O3",
            ]
        );
    }

    #[test]
    fn what_names_programs_or_files_to_write_is_not() {
        let words = [
            "/usr/bin/nvcc",
            "-ccbin",
            "./evil",
            "--compiler-bindir=./evil",
            "-Xcompiler",
            "-fplugin=./evil.so",
            "-fplugin=./evil.so",
            "-B./evil",
            "-o",
            "/home/me/.bashrc",
            "--run",
            "-keep",
            "-odir",
            "/",
            "-DX=$(./evil)",
            "-DY=`./evil`",
            "-DZ=1;./evil",
            "-I/a|./evil",
            "-wrapper",
            "./evil",
            "a.cu",
        ];
        assert_eq!(given(&words, "/opt/cuda/bin/nvcc"), ["-x", "cu"]);
        assert_eq!(given(&words, "/usr/bin/clang++"), ["-x", "cuda"]);
    }
}
