//! What a real compiler said of the labelled kernels: `tests/labels/compiler.tsv`, which `cargo lab labels` writes.

use std::collections::BTreeMap;
use std::path::Path;

use warplens_oracle::Verdict;

use super::kernels::Kernel;
use super::sites::Family;

/// Instructions of a kernel, and what does not lie in registers.
#[derive(Debug, Clone, Copy, Default)]
struct Code {
    instructions: f64,
    local: f64,
    spilled: f64,
    registers: u64,
}

/// The compiler reports by kernel, and by the edit that is made of it (none: as it is).
#[derive(Debug, Default)]
pub struct Words {
    /// The compiler and its version.
    pub compiler: String,
    code: BTreeMap<(String, String), Code>,
}

/// A thread has that many registers at most.
const MOST_WORDS: u64 = 255;
/// An edit helps where at least that many instructions fewer are left.
const FEWER: f64 = 0.99;

impl Words {
    pub fn read() -> Words {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/labels/compiler.tsv");
        let text = std::fs::read_to_string(path).expect("tests/labels/compiler.tsv");
        let mut words = Words::default();
        for line in text.lines() {
            if let Some(compiler) = line.strip_prefix("# ") {
                compiler.clone_into(&mut words.compiler);
                continue;
            }
            let parts: Vec<&str> = line.split('\t').collect();
            let [file, kernel, edit, instructions, local, spilled, registers] = parts[..] else {
                panic!("`{line}` has other columns");
            };
            let number = |text: &str| text.parse().expect("a number");
            let code = Code {
                instructions: number(instructions),
                local: number(local),
                spilled: number(spilled),
                registers: registers.parse().expect("a number"),
            };
            words
                .code
                .insert((format!("{file} {kernel}"), edit.to_owned()), code);
        }
        words
    }

    /// Registers of a kernel.
    pub fn registers(&self, kernel: &Kernel<'_>) -> Option<u64> {
        Some(self.code.get(&(kernel.id(), "-".to_owned()))?.registers)
    }

    /// Labels what the compiler tells of a kernel.
    pub fn label(&self, kernel: &Kernel<'_>, add: &mut impl FnMut(Family, u32, Verdict)) {
        let id = kernel.id();
        let Some(code) = self.code.get(&(id.clone(), "-".to_owned())) else {
            return;
        };
        let mut say = |rule, holds| {
            add(Family::Compiled(rule), 0, Verdict::of(holds));
        };
        say("reg/spill", code.spilled > 0.0);
        if kernel
            .text()
            .any(|(_, text)| text.contains("__launch_bounds__"))
        {
            say("occ/bounds-spill", code.spilled > 0.0);
        }
        let own: Vec<u64> = kernel
            .text()
            .filter_map(|(_, text)| own_array(text))
            .collect();
        if !own.is_empty() {
            let in_memory = code.local > 0.0 && code.spilled == 0.0;
            let large = own.iter().any(|words| *words > MOST_WORDS);
            say("local/dynamic-array", in_memory && !large);
            say("local/large-frame", in_memory && large);
        }
        for mark in kernel.marks("@instead:") {
            let (rule, _) = mark.split_once(": ").expect("a rule and an edit");
            let edited = self
                .code
                .get(&(id.clone(), mark.clone()))
                .unwrap_or_else(|| {
                    panic!("{id}: nothing was compiled with `{mark}`: cargo lab labels")
                });
            let Some(Family::Compiled(rule)) = warplens_rules_id(rule).and_then(Family::of) else {
                panic!("`{rule}` is not labelled by the compiler");
            };
            say(rule, edited.instructions < code.instructions * FEWER);
        }
    }
}

/// The words of an array of the thread's own that a line declares.
fn own_array(text: &str) -> Option<u64> {
    let code = text.trim_start().trim_start_matches("const ");
    let declared = ["float ", "int "]
        .iter()
        .find_map(|ty| code.strip_prefix(ty))?;
    let (_, rest) = declared.split('=').next()?.split_once('[')?;
    rest.split(']').next()?.parse().ok()
}

/// The rule's id as the catalogue has it.
fn warplens_rules_id(rule: &str) -> Option<&'static str> {
    warplens_advice::find(rule).map(|rule| rule.id)
}
