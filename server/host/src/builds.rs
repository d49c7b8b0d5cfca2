//! How a host program builds its OpenCL programs: `clBuildProgram`, `clCompileProgram`, `program.build(…)`, and
//! what their options define.

use std::ops::Range;
use std::sync::Arc;

use warplens_syntax::{Expanded, Node, is_identifier};

use super::HeaderNames;
use super::arguments::Argument;
use super::nodes::text;
use super::state::Host;
use super::value::GAP;
use warplens_hir::Source;
use warplens_hir::{Item, Unit};

/// One of these is in every function that builds.
pub(super) const WORDS: &[&str] = &["BuildProgram", "CompileProgram", ".build(", "->build("];
/// Builds of one file.
const MOST: usize = 64;

/// One build of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Build {
    /// Names and values of its `-D` options, in order; those that could not be read are left out.
    pub defines: Vec<(String, String)>,
    /// Kernels that are made of the program under the same name; empty where that is not seen.
    pub kernels: Vec<String>,
    /// Bytes of the call in the source.
    pub range: Range<usize>,
}

impl Build {
    /// The same with its place counted from another byte.
    pub fn moved(&self, from: usize, to: usize) -> Build {
        let moved = |byte: usize| (byte + to).saturating_sub(from);
        Build {
            range: moved(self.range.start)..moved(self.range.end),
            ..self.clone()
        }
    }
}

/// True where a text may build a program, by its words.
pub fn may_build(text: &str) -> bool {
    WORDS.iter().any(|word| text.contains(word))
}

/// Every build in a file, in the order in which the program comes to them. Where it comes to none, those that it
/// would come to with other values.
pub fn builds(parsed: &Arc<Expanded>, items: &[Item], unit: &Unit) -> Vec<Build> {
    if !may_build(&parsed.text) {
        return Vec::new();
    }
    let mut host = Host::new(parsed, items, unit, WORDS, &HeaderNames::default());
    host.run();
    different(host.builds)
}

/// Those of some builds that differ, in their order; where the program comes to none, those beside its way.
pub(super) fn different(met: Vec<(Build, bool)>) -> Vec<Build> {
    let live = met.iter().any(|(_, beside)| !beside);
    let mut builds: Vec<Build> = Vec::new();
    for (build, beside) in met {
        if beside != live && !builds.contains(&build) {
            builds.push(build);
        }
    }
    builds
}

impl Host<'_> {
    /// Notes a build with these options.
    pub(super) fn build(
        &mut self,
        call: Node,
        program: Option<Node>,
        options: &Argument,
        source: Source,
    ) {
        let options = match self.text_in(&options.value) {
            Some(options) => options,
            // None at all: a null pointer.
            None if options.value.as_int() == Some(0) => "".into(),
            None => return,
        };
        let own = match self.frames.last().map(|frame| frame.own_call.clone()) {
            Some(Some(call)) => call,
            _ if source.is_header() => return,
            _ => self.parsed.place(call.byte_range()).range,
        };
        let program = program.and_then(|node| super::handles::last_name(text(node, source)));
        let kernels = match program {
            Some(program) => super::handles::kernels_of_program(&self.parsed.text, &program),
            None => Vec::new(),
        };
        if self.builds.len() < MOST {
            let build = Build {
                defines: definitions(&options),
                kernels,
                range: own,
            };
            self.builds.push((build, self.beside > 0));
        }
    }
}

/// The `-D` options of a command line, as far as they can be read.
fn definitions(options: &str) -> Vec<(String, String)> {
    // Literals are kept as they are written.
    let options = options.replace("\\n", " ").replace("\\t", " ");
    let mut found: Vec<(String, String)> = Vec::new();
    let mut words = options.split_whitespace();
    while let Some(word) = words.next() {
        let Some(rest) = word.strip_prefix("-D") else {
            continue;
        };
        let definition = match rest {
            "" => words.next().unwrap_or_default(),
            rest => rest,
        };
        let (name, value) = definition.split_once('=').unwrap_or((definition, "1"));
        if !is_identifier(name) {
            continue;
        }
        found.retain(|(known, _)| known != name);
        if !value.contains([GAP, '\\', '"', '\'']) {
            found.push((name.to_owned(), value.to_owned()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::definitions;

    #[test]
    fn options_that_define_are_told_from_the_others() {
        let read = |options: &str| {
            definitions(options)
                .into_iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            read("-cl-mad-enable -DA -D B=2 -I. -DC=(x+1)\\n-DA=3"),
            ["B=2", "C=(x+1)", "A=3"]
        );
        assert_eq!(read("-D N=\u{1} -DM\u{1}=3 -D OK=1\u{1} \u{1}"), [""; 0]);
        assert_eq!(read("-D"), [""; 0]);
    }
}
