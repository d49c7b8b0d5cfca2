//! The compiler's word: what it is asked about a file, and which of its answers is a kernel's.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use warplens_compile::{Class, Compiled};
use warplens_ir::Kernel;
use warplens_project::Define;
use warplens_toolchain::{Asked, Said, SaidKernel};

use crate::Engine;
use crate::compilers::CompilerWord;
use crate::settings::Settings;

impl Engine {
    /// What to ask a compiler about a file: the flags that its compile command and the settings give, for the GPU
    /// that the settings name. Its answer belongs into [`crate::Overrides::said`].
    pub fn asked(&self, path: &Path, settings: &Settings, bound: Duration) -> Asked {
        let (profile, _) = self.target(settings, path);
        let mut arguments = Vec::new();
        let mut flag = |flag: &str, value: &str| arguments.push(format!("{flag}{value}"));
        if let Some(command) = self.project().command(path) {
            for define in &command.defines {
                match define {
                    Define::Set { name, value } => flag("-D", &format!("{name}={value}")),
                    Define::Unset(name) => flag("-U", name),
                }
            }
            for folder in &command.include_dirs {
                flag("-I", &folder.to_string_lossy());
            }
            for folder in &command.quote_dirs {
                flag("-I", &folder.to_string_lossy());
            }
            for header in &command.forced_includes {
                let beside = command.directory.join(header);
                let header = if beside.is_file() { &beside } else { header };
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
        Asked {
            file: path.to_owned(),
            arguments,
            architecture: profile.architecture.clone(),
            bound,
        }
    }
}

/// What was said of this kernel: of the instance with its template arguments. `None` where several answer to its
/// name and do not agree.
pub(crate) fn of_kernel<'a>(kernel: &Kernel, said: &'a Said) -> Option<&'a SaidKernel> {
    let fits = |said: &SaidKernel| {
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

/// What a compiler's word puts in place of estimates.
pub(crate) struct Figures<'a> {
    registers: u32,
    pub(crate) static_shared_bytes: u64,
    stack_bytes: u64,
    spill_bytes: u64,
    instructions: &'a BTreeMap<Class, u64>,
}

impl<'a> From<&'a SaidKernel> for Figures<'a> {
    fn from(said: &'a SaidKernel) -> Self {
        Figures {
            registers: said.registers,
            static_shared_bytes: said.static_shared_bytes,
            stack_bytes: said.stack_bytes,
            spill_bytes: said.spill_store_bytes,
            instructions: &said.instructions,
        }
    }
}

impl<'a> From<&'a CompilerWord> for Figures<'a> {
    fn from(word: &'a CompilerWord) -> Self {
        Figures {
            registers: word.registers,
            static_shared_bytes: word.static_shared_bytes,
            stack_bytes: word.stack_bytes,
            spill_bytes: word.spill_store_bytes,
            instructions: &word.instructions,
        }
    }
}

impl Figures<'_> {
    /// The prediction with these figures in it.
    pub(crate) fn in_place_of(&self, predicted: &Compiled) -> Compiled {
        let mut compiled = predicted.clone();
        compiled.registers = self.registers;
        // Of these it said nothing.
        compiled.scalar_registers = None;
        compiled.shared_bytes = None;
        compiled.local_bytes = self.stack_bytes;
        compiled.spill_bytes = self.spill_bytes;
        if !self.instructions.is_empty() {
            compiled.instructions.clone_from(self.instructions);
        }
        compiled
    }
}
