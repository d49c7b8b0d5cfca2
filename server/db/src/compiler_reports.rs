//! Compiler reports: what a compiler is asked about a file, and which of its answers is a kernel's.

use std::path::Path;
use std::time::Duration;

use warplens_base::{Command, CommandLanguage, Define, Files};
use warplens_codegen::CompiledKernel;
use warplens_ir::Kernel;
use warplens_toolchain::{CompileRequest, CompilerReport, KernelReport};

use crate::Engine;
use crate::settings::Settings;

/// Options of a compile command that stand alone or with a plain value and change device code, without their dashes.
const PLAIN: &[&str] = &[
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

impl Engine {
    /// What to ask a compiler about a file: the flags that its compile command and the settings give, for the GPU
    /// that the settings name. Its answer belongs into [`crate::Overrides::said`] or to [`Engine::take_report`].
    pub fn asked(&self, path: &Path, settings: &Settings, bound: Duration) -> CompileRequest {
        let (profile, _) = self.target(settings, path);
        let command = self.project().command(path);
        CompileRequest {
            file: path.to_owned(),
            arguments: arguments(command.as_deref(), settings, self.project().files()),
            architecture: profile.architecture.clone(),
            bound,
        }
    }
}

/// The flags in nvcc's words; the toolchain has them in another compiler's, and refuses those that it does not know.
fn arguments(command: Option<&Command>, settings: &Settings, files: &dyn Files) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut flag = |flag: &str, value: &str| arguments.push(format!("{flag}{value}"));
    if let Some(command) = command {
        if command.language == Some(CommandLanguage::Cuda) {
            flag("-x", "");
            flag("cu", "");
        }
        for define in &command.defines {
            match define {
                Define::Set { name, value } => flag("-D", &format!("{name}={value}")),
                Define::Unset(name) => flag("-U", name),
            }
        }
        for folder in command.quote_dirs.iter().chain(&command.include_dirs) {
            flag("-I", &folder.to_string_lossy());
        }
        for header in &command.forced_includes {
            let beside = command.directory.join(header);
            let header = if files.exists(&beside) {
                &beside
            } else {
                header
            };
            flag("-include=", &header.to_string_lossy());
        }
        if let Some(standard) = &command.cxx_std {
            flag("-std=", standard);
        }
        if command.fast_math {
            flag("-use_fast_math", "");
        }
        if let Some(most) = command.max_registers {
            flag("-maxrregcount=", &most.to_string());
        }
        if command.relocatable {
            flag("-rdc=true", "");
        }
        for option in &command.options {
            if PLAIN.contains(&option.trim_start_matches('-')) {
                flag(option, "");
            }
        }
    }
    for (name, value) in &settings.defines {
        flag("-D", &format!("{name}={value}"));
    }
    for folder in &settings.include_paths {
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.into());
        flag("-I", &folder.to_string_lossy());
    }
    // Without them no compiler takes lambdas and constant functions that most code has; with them it
    // compiles what it compiles without.
    flag("--extended-lambda", "");
    flag("--expt-relaxed-constexpr", "");
    arguments
}

/// What was said of this kernel: of the instance with its template arguments. `None` where several answer to its
/// name and do not agree.
pub(crate) fn of_kernel<'a>(kernel: &Kernel, said: &'a CompilerReport) -> Option<&'a KernelReport> {
    let fits = |said: &KernelReport| {
        let pairs = kernel.template_args.iter().zip(&said.template_arguments);
        pairs
            .filter(|((_, ours), theirs)| spelled(ours) == spelled(theirs))
            .count()
    };
    let named = || said.kernels.iter().filter(|said| said.name == kernel.name);
    let best = named().map(fits).max()?;
    let mut found = named().filter(|said| fits(said) == best);
    let first = found.next()?;
    found
        .all(|other| other.registers == first.registers && other.instructions == first.instructions)
        .then_some(first)
}

/// Types have several spellings.
fn spelled(argument: &str) -> String {
    match argument.trim() {
        "unsigned" => "unsigned int".to_owned(),
        other => other.trim_end_matches(['u', 'U', 'l', 'L']).to_owned(),
    }
}

/// The prediction with what a compiler said in the place of what it is about.
pub(crate) fn in_place_of(predicted: &CompiledKernel, said: &KernelReport) -> CompiledKernel {
    let mut compiled = predicted.clone();
    compiled.registers = said.registers;
    // Of these it said nothing.
    compiled.scalar_registers = None;
    compiled.shared_bytes = None;
    compiled.local_bytes = said.stack_bytes;
    compiled.spill_bytes = said.spill_store_bytes;
    // The stack holds these, too.
    compiled.spill_frame = 0;
    if !said.instructions.is_empty() {
        compiled.instructions.clone_from(&said.instructions);
    }
    compiled
}

#[cfg(test)]
mod tests {
    use super::*;
    use warplens_base::NoFiles;

    fn given(words: &[&str]) -> Vec<String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let command = Command::read(&words, Path::new("/build"), &NoFiles);
        arguments(Some(&command), &Settings::default(), &NoFiles)
    }

    #[test]
    fn what_changes_device_code_is_asked_with() {
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
            "--fmad=false",
            "-c",
            "a.cu",
            "-o",
            "a.o",
        ];
        assert_eq!(
            given(&words),
            [
                "-x",
                "cu",
                "-DTILE=32",
                "-UNDEBUG",
                "-I/include",
                "-std=c++17",
                "-use_fast_math",
                "-maxrregcount=64",
                "-O3",
                "--fmad=false",
                "--extended-lambda",
                "--expt-relaxed-constexpr",
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
            "-wrapper",
            "./evil",
            "a.cu",
        ];
        assert_eq!(
            given(&words),
            ["-x", "cu", "--extended-lambda", "--expt-relaxed-constexpr"]
        );
    }
}
