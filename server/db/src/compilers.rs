//! What compilers said of kernels, and which kernels still are what was compiled.
//!
//! The engine runs no compiler: whoever did tells it here. A word is kept with the fingerprint of the kernel that
//! it is about, so that an edit elsewhere leaves it in force, and one in the kernel makes it the last word on
//! another text.

mod lines;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;
use warplens_codegen::Class;
use warplens_ir::Places;
use warplens_syntax::Document;
use warplens_toolchain::{CompilerReport, KernelReport};

use crate::settings::Settings;
use crate::{Cancel, Engine, Overrides, PlacedKernel, Variants};

use lines::Lines;

/// Files whose words are kept.
const MOST_FILES: usize = 256;

/// What a compiler said of one kernel.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct CompilerWord {
    /// The compiler, as it is shown: `nvcc 13.0`.
    pub tool: String,
    /// What it said.
    pub kernel: KernelReport,
}

/// A kernel's word, as it is joined with the kernel's text of the moment.
#[derive(Debug, Clone)]
pub struct Spoken {
    /// The word.
    pub word: Arc<CompilerWord>,
    /// Whether the kernel is still what was compiled.
    pub current: bool,
    /// Instructions of the kernel's lines.
    lines: Arc<Lines>,
}

impl Spoken {
    /// The word with its lines where they stand in the kernel's text as it is now.
    pub(crate) fn placed(self, document: &Document, first: u32, places: &Places) -> Spoken {
        if self.current {
            return self;
        }
        let lines = Arc::new(self.lines.within(lines::texts(document, first, places)));
        Spoken { lines, ..self }
    }
}

/// A word, and the kernel that it is about.
#[derive(Debug)]
struct Heard {
    kernel: String,
    template_args: Vec<(String, String)>,
    architecture: String,
    fingerprint: u64,
    word: Arc<CompilerWord>,
    lines: Arc<Lines>,
}

/// All words, by file.
#[derive(Debug, Default)]
pub(crate) struct Words(Mutex<FxHashMap<PathBuf, Vec<Heard>>>);

impl Words {
    /// What was said of a kernel for GPUs of this architecture.
    pub(crate) fn of(
        &self,
        path: &Path,
        architecture: &str,
        kernel: &str,
        template_args: &[(String, String)],
        fingerprint: u64,
    ) -> Option<Spoken> {
        let words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let about = words.get(path)?.iter().filter(|heard| {
            heard.kernel == kernel
                && heard.architecture == architecture
                && heard.template_args == template_args
        });
        // The text itself counts before another one of the same name: an overload, a branch of a conditional.
        let heard = about.min_by_key(|heard| heard.fingerprint != fingerprint)?;
        Some(Spoken {
            word: Arc::clone(&heard.word),
            current: heard.fingerprint == fingerprint,
            lines: Arc::clone(&heard.lines),
        })
    }

    fn put(&self, path: &Path, architecture: &str, heard: Vec<Heard>) {
        let mut words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if words.len() >= MOST_FILES && !words.contains_key(path) {
            words.clear();
        }
        let of_file = words.entry(path.to_path_buf()).or_default();
        of_file.retain(|old| old.architecture != architecture);
        of_file.extend(heard);
    }
}

impl Engine {
    /// Takes what a compiler said of the kernels of a text that it compiled for the target. Gives how many of its
    /// words are about a kernel of the text; `None` when cancelled.
    pub fn hear(
        &self,
        document: &Document,
        path: &Path,
        settings: &Settings,
        overrides: &Overrides,
        said: CompilerReport,
        cancel: &Cancel,
    ) -> Option<usize> {
        let all = Overrides {
            variants: Variants::All,
            ..overrides.clone()
        };
        let file = self.analyze(document, path, settings, &all, cancel)?;
        let tool = said.tool;
        let word = |kernel: KernelReport| CompilerWord {
            tool: tool.clone(),
            kernel,
        };
        let words: Vec<Arc<CompilerWord>> = said
            .kernels
            .into_iter()
            .map(|kernel| Arc::new(word(kernel)))
            .collect();
        let mut heard: Vec<Heard> = Vec::new();
        let mut used = vec![false; words.len()];
        for placed in &file.kernels {
            let analysis = &placed.analysis;
            let Some(at) = word_of(&words, &analysis.facts.name, &analysis.template_args) else {
                continue;
            };
            used[at] = true;
            if heard.iter().any(|one| {
                one.fingerprint == analysis.fingerprint && one.kernel == analysis.facts.name
            }) {
                continue;
            }
            heard.push(Heard {
                kernel: analysis.facts.name.clone(),
                template_args: analysis.template_args.clone(),
                architecture: file.profile.architecture.clone(),
                fingerprint: analysis.fingerprint,
                word: Arc::clone(&words[at]),
                lines: Arc::new(numbered(&words[at], placed, document, path)),
            });
        }
        self.words.put(path, &file.profile.architecture, heard);
        Some(used.into_iter().filter(|used| *used).count())
    }
}

impl PlacedKernel {
    /// Instructions by class and absolute 0-based line, as a compiler made them: of this text, or, where its word is
    /// [not current](Spoken::current), of the lines before and behind what was edited since.
    pub fn compiled_lines(&self) -> BTreeMap<u32, &BTreeMap<Class, u64>> {
        let lines = self.compiler.iter().flat_map(|said| &said.lines.counts);
        lines
            .map(|(number, counts)| (self.place_line(*number), counts))
            .collect()
    }
}

/// The word about a kernel; `None` where several could be.
fn word_of(
    words: &[Arc<CompilerWord>],
    kernel: &str,
    template_args: &[(String, String)],
) -> Option<usize> {
    let about: Vec<usize> = (0..words.len())
        .filter(|at| words[*at].kernel.name == kernel)
        .collect();
    if let [only] = about[..] {
        return Some(only);
    }
    // Instances of a template: the one with the arguments in force.
    let fits = |word: &CompilerWord| {
        let said = &word.kernel.template_arguments;
        said.len() == template_args.len()
            && said.iter().zip(template_args).all(|(said, (_, wanted))| {
                said.is_empty() || without_space(said) == without_space(wanted)
            })
    };
    let mut fitting = about.into_iter().filter(|at| fits(&words[*at]));
    let fit = fitting.next()?;
    fitting.next().is_none().then_some(fit)
}

fn without_space(argument: &str) -> String {
    argument.chars().filter(|c| !c.is_whitespace()).collect()
}

/// The instructions of the kernel's own lines, by the numbers of the lines: they hold when the kernel moves.
fn numbered(word: &CompilerWord, placed: &PlacedKernel, document: &Document, path: &Path) -> Lines {
    let mut by_line: FxHashMap<u32, BTreeMap<Class, u64>> = FxHashMap::default();
    for (file, line, counts) in &word.kernel.lines {
        // Compilers spell a path as they were given it, or as the system does: the name is what they share.
        if Path::new(&**file).file_name() == path.file_name() {
            let here = by_line.entry(*line).or_default();
            for (class, count) in counts {
                *here.entry(*class).or_default() += count;
            }
        }
    }
    let mut found = Vec::new();
    for number in 0..placed.places.lines().len() as u32 {
        if let Some(counts) = by_line.remove(&(placed.place_line(number) + 1)) {
            found.push((number, counts));
        }
    }
    Lines {
        counts: found,
        texts: lines::texts(document, placed.line, &placed.places),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_are_told_apart_by_their_template_arguments() {
        let word = |name: &str, arguments: &[&str]| {
            Arc::new(CompilerWord {
                tool: String::new(),
                kernel: KernelReport {
                    name: name.to_owned(),
                    template_arguments: arguments.iter().map(|one| (*one).to_owned()).collect(),
                    ..KernelReport::default()
                },
            })
        };
        let words = [
            word("scale", &["float", "4"]),
            word("scale", &["", "8"]),
            word("copy", &[]),
        ];
        let args = |values: &[&str]| -> Vec<(String, String)> {
            let named = values
                .iter()
                .map(|value| ("T".to_owned(), (*value).to_owned()));
            named.collect()
        };
        assert_eq!(word_of(&words, "scale", &args(&["float", "4"])), Some(0));
        assert_eq!(
            word_of(&words, "scale", &args(&["pair<int, int>", "8"])),
            Some(1)
        );
        // Not said of this one: another instance's figures would be wrong.
        assert_eq!(word_of(&words, "scale", &args(&["double", "4"])), None);
        assert_eq!(word_of(&words, "copy", &[]), Some(2));
        assert_eq!(word_of(&words, "cop", &[]), None);
    }
}
