//! What a Makefile says: the commands of its targets, with the values of variables put in and conditions decided, as make does where
//! its command line sets no variable.
//!
//! In: the text. Out: [`Makefile`]. What holds: nothing is executed, no other file is read; what only a shell or a function of make
//! can work out is marked as unknown ([`UNKNOWN`]) and never guessed; work and values are bounded.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::split_command;

/// Lines of one file that are read.
const MOST_LINES: usize = 20_000;
/// Bytes of one line with those that continue it, and of one value.
const LONGEST: usize = 16_384;
/// Variables within variables.
const DEEPEST: usize = 8;
/// In a value, or in an argument of a command, in the place of what is not known.
pub const UNKNOWN: char = '\0';

/// The rules of a Makefile.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Makefile {
    rules: Vec<Rule>,
}

/// Targets, what they are made of, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Rule {
    targets: Vec<String>,
    prerequisites: Vec<String>,
    commands: Vec<Recipe>,
}

/// A command of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Recipe {
    /// With the values of variables; what is not known is [`UNKNOWN`].
    command: String,
    /// From 0.
    pub(crate) line: usize,
}

impl Recipe {
    /// The command; what is not known of it is [`UNKNOWN`].
    pub(crate) fn text(&self) -> &str {
        &self.command
    }
}

impl Makefile {
    /// Reads one.
    pub fn read(text: &str) -> Makefile {
        let mut reader = Reader::default();
        for (at, line) in continued(text) {
            reader.line(&line, at);
        }
        Makefile {
            rules: reader.rules,
        }
    }

    /// The commands of a target, in their order.
    pub(crate) fn commands_of(&self, target: &str) -> impl Iterator<Item = &Recipe> {
        let rules = self.rules.iter();
        let wanted = rules.filter(move |rule| rule.targets.iter().any(|of| of == target));
        wanted.flat_map(|rule| &rule.commands)
    }

    /// The names under which rules link a source file's program: what is made of it or of its object, and what their commands call it.
    pub(crate) fn linked_as(&self, source: &str) -> Vec<String> {
        let stem = source.rsplit_once('.').map_or(source, |(stem, _)| stem);
        let is_part = |word: &String| {
            let name = word.rsplit('/').next().unwrap_or(word);
            let object = name.strip_suffix(".o").or(name.strip_suffix(".obj"));
            name == source || object == Some(stem) || object == Some(source)
        };
        let mut names = Vec::new();
        for rule in &self.rules {
            let made_of_it = rule.prerequisites.iter().any(is_part);
            for recipe in &rule.commands {
                let words: Vec<String> = split_command(&recipe.command);
                let links = !words
                    .iter()
                    .any(|word| matches!(word.as_str(), "-c" | "-dc"));
                let Some(at) = words.iter().position(|word| word == "-o").filter(|_| links) else {
                    continue;
                };
                if !made_of_it && !words.iter().any(is_part) {
                    continue;
                }
                match words.get(at + 1) {
                    Some(name) if !name.contains(UNKNOWN) => names.push(name.clone()),
                    // `$@`
                    _ => names.extend(rule.targets.iter().cloned()),
                }
            }
        }
        names.retain(|name| !name.contains([UNKNOWN, '%']));
        names
    }

    /// The words of the command that compiles a source file, of which the path from the Makefile's folder is given; for a file that no
    /// rule names, of the first command that compiles a file at all. Words that are not known are left out. `None` where nothing is
    /// compiled, and for OpenCL, which programs compile while they run.
    pub fn compiler(&self, source: &str) -> Option<Vec<String>> {
        let name = source.rsplit('/').next().unwrap_or(source);
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        if matches!(extension, "cl" | "clh" | "opencl") {
            return None;
        }
        let is_source = |word: &str| word.trim_start_matches("./") == source;
        let mut best: Option<(u32, Vec<String>)> = None;
        for rule in &self.rules {
            let of_extension = |pattern: &String| {
                let pattern = pattern.rsplit('/').next().unwrap_or(pattern);
                pattern.strip_prefix("%.") == Some(extension)
            };
            let suffixes = |target: &String| {
                let mut parts = target.split('.');
                (parts.next(), parts.next()) == (Some(""), Some(extension))
            };
            let named = rule.prerequisites.iter().any(|word| is_source(word));
            let by_pattern =
                rule.prerequisites.iter().any(of_extension) || rule.targets.iter().any(suffixes);
            for recipe in &rule.commands {
                let words: Vec<String> = split_command(&recipe.command)
                    .into_iter()
                    .filter(|word| !word.contains(UNKNOWN))
                    .collect();
                let names_it = words.iter().any(|word| is_source(word));
                let compiles = names_it || words.iter().any(|word| is_compiling(word));
                let nearness = match () {
                    () if !compiles => 0,
                    () if names_it => 4,
                    () if named => 3,
                    () if by_pattern => 2,
                    () => 1,
                };
                if nearness > best.as_ref().map_or(0, |(nearness, _)| *nearness) {
                    best = Some((nearness, words));
                }
            }
        }
        best.map(|(_, words)| words)
    }
}

/// True for a word that only a command has which compiles.
fn is_compiling(word: &str) -> bool {
    let extension = word.rsplit_once('.').map(|(_, extension)| extension);
    let is_source = matches!(extension, Some("cu" | "hip" | "cpp" | "cc" | "cxx" | "c"));
    is_source || matches!(word, "-c" | "-dc" | "--compile" | "--device-c")
}

/// The lines of a Makefile, those that end with `\` with what follows them, each with its number from 0.
fn continued(text: &str) -> Vec<(usize, Cow<'_, str>)> {
    let mut all: Vec<(usize, Cow<str>)> = Vec::new();
    let mut open = false;
    for (at, line) in text.lines().take(MOST_LINES).enumerate() {
        let (whole, goes_on) = match line.trim_end().strip_suffix('\\') {
            Some(before) => (before, true),
            None => (line, false),
        };
        match all.last_mut() {
            Some((_, first)) if open => {
                let first = first.to_mut();
                if first.len() < LONGEST {
                    first.push(' ');
                    first.push_str(whole.trim_start());
                }
            }
            _ => all.push((at, Cow::Borrowed(whole))),
        }
        open = goes_on;
    }
    all
}

/// What was read so far.
#[derive(Debug, Default)]
struct Reader {
    variables: BTreeMap<String, String>,
    conditions: Vec<Condition>,
    rules: Vec<Rule>,
    /// Another file, which is not read, may set variables.
    includes: bool,
}

/// `ifeq` and its like around a line.
#[derive(Debug)]
struct Condition {
    /// What is between this word and the next holds.
    holds: bool,
    /// One of its branches was taken, or it is not known which one is.
    decided: bool,
}

impl Reader {
    fn line(&mut self, line: &str, at: usize) {
        let plain = line.trim();
        if self.condition(plain) || self.conditions.iter().any(|condition| !condition.holds) {
            return;
        }
        if let Some(command) = line.strip_prefix('\t')
            && !self.rules.is_empty()
        {
            self.command(command, at);
        } else if let ("include", files) = first_word(plain) {
            // What a compiler writes of dependencies sets nothing.
            self.includes |= files
                .rsplit_once('.')
                .is_none_or(|(_, ending)| ending != "d");
        } else if !self.assignment(plain) {
            self.rule(plain, at);
        }
    }

    /// Takes a line that begins, changes or ends a condition.
    fn condition(&mut self, line: &str) -> bool {
        let (word, operands) = first_word(line);
        match word {
            "ifeq" | "ifneq" | "ifdef" | "ifndef" => {
                let holds = self.decides(word, operands);
                self.conditions.push(Condition {
                    holds: holds == Some(true),
                    decided: holds != Some(false),
                });
            }
            "else" => {
                let holds = match first_word(operands) {
                    ("", _) => Some(true),
                    (word, operands) => self.decides(word, operands),
                };
                if let Some(condition) = self.conditions.last_mut() {
                    condition.holds = !condition.decided && holds == Some(true);
                    condition.decided |= holds != Some(false);
                }
            }
            "endif" => {
                self.conditions.pop();
            }
            _ => return false,
        }
        true
    }

    /// What a condition says; `None` where that is not known.
    fn decides(&self, word: &str, operands: &str) -> Option<bool> {
        if matches!(word, "ifdef" | "ifndef") {
            let value = self.variables.get(operands);
            let is_set = value.is_some_and(|value| !value.is_empty());
            return Some(is_set == (word == "ifdef"));
        }
        let inner = operands.strip_prefix('(').and_then(|s| s.strip_suffix(')'));
        let (left, right) = match inner {
            Some(inner) => separated(inner)?,
            None => {
                let quote = operands
                    .chars()
                    .next()
                    .filter(|c| matches!(c, '"' | '\''))?;
                let mut parts = operands.split(quote);
                (parts.nth(1)?, parts.nth(1)?)
            }
        };
        let left = self.expanded(left.trim(), 0);
        let right = self.expanded(right.trim(), 0);
        let known = !left.contains(UNKNOWN) && !right.contains(UNKNOWN);
        known.then_some((left == right) == (word == "ifeq"))
    }

    /// Takes `NAME = value` and its like.
    fn assignment(&mut self, line: &str) -> bool {
        let line = ["override ", "export "]
            .iter()
            .fold(line, |line, word| line.strip_prefix(word).unwrap_or(line));
        let Some((name, value)) = line.split_once('=') else {
            return false;
        };
        let how = name.chars().next_back();
        let name = name.trim_end_matches([':', '?', '+', '!']).trim();
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if name.is_empty() || !name.chars().all(plain) {
            return false;
        }
        let value = value.split('#').next().unwrap_or(value).trim();
        let before = self.variables.get(name);
        let value = match (how, before) {
            (Some('?'), Some(_)) => return true,
            (Some('+'), Some(before)) => format!("{before} {value}"),
            // Its value is taken now: its own name in it is what it was.
            (Some(':'), _) => self.expanded(value, 0),
            (Some('!'), _) => UNKNOWN.to_string(),
            _ => value.to_owned(),
        };
        if value.len() <= LONGEST {
            self.variables.insert(name.to_owned(), value);
        }
        true
    }

    /// Takes `targets: prerequisites`, and a command behind `;`.
    fn rule(&mut self, line: &str, at: usize) {
        let line = line.split('#').next().unwrap_or(line);
        let line = self.expanded(line, 0);
        let Some((targets, rest)) = line.split_once(':') else {
            return;
        };
        let (prerequisites, command) = rest.split_once(';').unwrap_or((rest, ""));
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        self.rules.push(Rule {
            targets: words(targets),
            prerequisites: words(prerequisites.trim_start_matches(':')),
            commands: Vec::new(),
        });
        if !command.trim().is_empty() {
            self.command(command, at);
        }
    }

    fn command(&mut self, command: &str, line: usize) {
        let command = command.trim_start_matches(['@', '-', '+', ' ', '\t']);
        let command = self.expanded(command, 0);
        if let Some(rule) = self.rules.last_mut() {
            rule.commands.push(Recipe { command, line });
        }
    }

    /// A text with the values of its variables; those that are not set are empty, as make has it, or not known where another file may
    /// set them.
    fn expanded(&self, text: &str, depth: usize) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            out.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            let Some(inner) = rest.strip_prefix(['(', '{']) else {
                // `$<`, `$@`, `$$`.
                out.push(UNKNOWN);
                let first = rest.chars().next().map_or(0, char::len_utf8);
                rest = &rest[first..];
                continue;
            };
            let Some(end) = closing(inner) else {
                out.push(UNKNOWN);
                return out;
            };
            let name = &inner[..end];
            match self.variables.get(name) {
                Some(_) if depth == DEEPEST || out.len() > LONGEST => out.push(UNKNOWN),
                Some(value) => out.push_str(&self.expanded(value, depth + 1)),
                None if name == "CURDIR" => out.push('.'),
                None if name.contains([' ', '$', ',', ':', '@', '<', '^', '*', '%']) => {
                    out.push(UNKNOWN);
                }
                None if self.includes => out.push(UNKNOWN),
                None => {}
            }
            rest = &inner[end + 1..];
        }
        out.push_str(rest);
        out
    }
}

/// The first word of a line, and what is behind it.
fn first_word(line: &str) -> (&str, &str) {
    let end = line.find([' ', '\t', '(']).unwrap_or(line.len());
    (&line[..end], line[end..].trim())
}

/// `a` and `b` of `a,b`, commas in brackets left aside.
fn separated(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0i32;
    let at = text.find(|c: char| {
        depth += i32::from(matches!(c, '(' | '{')) - i32::from(matches!(c, ')' | '}'));
        c == ',' && depth == 0
    })?;
    Some((&text[..at], &text[at + 1..]))
}

/// Where the bracket closes that was opened before a text.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0i32;
    text.find(|c: char| {
        depth += i32::from(matches!(c, '(' | '{')) - i32::from(matches!(c, ')' | '}'));
        depth < 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str, source: &str) -> String {
        let words = Makefile::read(text).compiler(source);
        words.unwrap_or_default().join(" ")
    }

    #[test]
    fn the_command_that_compiles_a_file_has_its_variables_values() {
        let text = "CC = nvcc\nOPTIMIZE = yes\nDEBUG = no\nsource = main.cu\n\
                    CFLAGS := $(EXTRA) -std=c++14 -I../shared \\\n  -DSIZE=14\n\
                    ifeq ($(DEBUG),yes)\n  CFLAGS += -g -DCHECK\nelse\n  CFLAGS += -DNDEBUG\nendif\n\
                    ifneq ($(OPTIMIZE),no)\n  CFLAGS += -O3\nendif\n\
                    main: main.o\n\t$(CC) $(CFLAGS) main.o -o $@\n\
                    %.o: %.cu Makefile\n\t$(CC) $(CFLAGS) -c $< -o $@\n";
        let command = "nvcc -std=c++14 -I../shared -DSIZE=14 -DNDEBUG -O3 -c -o";
        assert_eq!(words(text, "main.cu"), command);
        // A header gets what a source gets.
        assert_eq!(words(text, "main.h"), command);
    }

    #[test]
    fn a_file_has_the_command_that_names_it_before_that_of_its_extension() {
        let text = "%.o: %.cu\n\tnvcc -DALL -c $<\n.cpp.o:\n\tg++ -DHOST -c $<\n\
                    fast.o: src/fast.cu\n\tnvcc -DFAST -c $<\n\
                    prog:\n\tnvcc -DWHOLE one.cu two.cu -o prog\n";
        assert_eq!(words(text, "a.cu"), "nvcc -DALL -c");
        assert_eq!(words(text, "a.cpp"), "g++ -DHOST -c");
        assert_eq!(words(text, "src/fast.cu"), "nvcc -DFAST -c");
        assert_eq!(words(text, "two.cu"), "nvcc -DWHOLE one.cu two.cu -o prog");
        assert_eq!(words("all:\n\techo hello\n", "a.cu"), "");
        assert_eq!(words(text, "a.cl"), "");
    }

    #[test]
    fn what_only_make_or_a_shell_can_work_out_is_left_out() {
        let text =
            "%.o: %.cu\n\tnvcc -I$(shell pkg-config --cflags x) -D$(subst a,b,c) -DN=4 -c $<\n";
        assert_eq!(words(text, "a.cu"), "nvcc -DN=4 -c");
        // Neither branch of a condition that is not known.
        let text = "ifeq ($(shell uname),Linux)\nF = -DLINUX\nelse\nF = -DOTHER\nendif\n\
                    %.o: %.cu\n\tnvcc $(F) -c $<\n";
        assert_eq!(words(text, "a.cu"), "nvcc -c");
        // One that is, in each of its forms.
        let of = |condition: &str| {
            let text = format!(
                "A = x\n{condition}\nF = -DYES\nelse\nF = -DNO\nendif\na.o: a.cu\n\tnvcc $(F) -c a.cu\n"
            );
            words(&text, "a.cu")
        };
        for holds in [
            "ifeq ($(A),x)",
            "ifeq '$(A)' 'x'",
            "ifneq \"$(A)\" \"y\"",
            "ifdef A",
            "ifndef B",
        ] {
            assert_eq!(of(holds), "nvcc -DYES -c a.cu", "{holds}");
        }
        assert_eq!(of("ifdef B"), "nvcc -DNO -c a.cu");
    }

    #[test]
    fn a_program_is_called_as_it_is_linked() {
        let names = |text: &str| Makefile::read(text).linked_as("main.cu");
        assert_eq!(
            names(
                "OBJS = src/main.o src/launch.o\napp: $(OBJS)\n\tnvcc -o $@ $^\n%.o: %.cu\n\tnvcc -c $< -o $@\n"
            ),
            ["app"]
        );
        assert_eq!(
            names("BIN := bin/prog\n$(BIN): main.cu\n\tnvcc main.cu -o $(BIN)\n"),
            ["bin/prog"]
        );
        assert_eq!(
            names("all: app\nother: other.o\n\tnvcc -o $@ other.o\n"),
            [""; 0]
        );
        assert_eq!(
            names("main.o: main.cu\n\tnvcc -c main.cu -o main.o\n"),
            [""; 0]
        );
    }

    #[test]
    fn what_an_included_file_may_set_is_not_known() {
        let run = |text: &str| {
            let makefile = Makefile::read(text);
            let commands: Vec<String> = makefile
                .commands_of("run")
                .map(|c| c.text().to_owned())
                .collect();
            commands.join(";")
        };
        assert_eq!(
            run("include common.mk\nM = 3\nrun:\n\t./main $(N) $(M)\n"),
            "./main \0 3"
        );
        assert_eq!(run("M = 3\nrun:\n\t./main $(N) $(M)\n"), "./main  3");
        assert_eq!(
            run("-include deps.mk\ninclude main.d\nrun:\n\t./main $(N) 3\n"),
            "./main  3"
        );
    }

    #[test]
    fn what_grows_or_never_ends_is_bounded() {
        let doubled: Vec<String> = (1..40)
            .map(|at| format!("A{at} = $(A{0}) $(A{0})\n", at - 1))
            .collect();
        let mut text = format!("A0 = -DX\n{}", doubled.concat());
        text += "A = $(A)\nB += $(B) x\nC := $(C) $(C)\n%.o: %.cu\n\tnvcc $(A39) $(A) $(B) -DEND -c $<\n";
        assert!(words(&text, "a.cu").contains("-DEND"));
        for odd in [
            "ifeq",
            "else",
            "endif\nendif",
            "ifeq (a",
            ":",
            "=",
            "a: ;",
            "$(",
            "\t$(x",
        ] {
            Makefile::read(odd).compiler("a.cu");
        }
    }
}
