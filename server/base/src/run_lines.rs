//! How a program is started, as the files around it say: targets of a Makefile, tests of a `CMakeLists.txt`, lines of a README or a
//! script.
//!
//! In: such a file's text, which program is meant. Out: its arguments and the line. What holds: the text is read, nothing is executed; an
//! argument that only a shell can work out is [`UNKNOWN`].

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::makefile::{Makefile, UNKNOWN};
use crate::split_command;

/// Lines of one file that are read.
const MOST_LINES: usize = 20_000;
/// Values of a loop of CMake or a shell that are gone through, and loops in one line.
const MOST_VALUES: usize = 16;
const MOST_NESTED: usize = 4;
/// Tests and programs of one file that are looked at.
const MOST_TESTS: usize = 256;
/// Bytes of a line or a value with those of variables put in.
const LONGEST: usize = 16_384;

/// How a program is started.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RunLine {
    /// `argv[0]`, as the line has it.
    pub program: String,
    /// `argv[1]` and so on; [`UNKNOWN`] in one that is not known.
    pub arguments: Vec<String>,
    /// Variables that are set for it.
    pub environment: Vec<(String, String)>,
    /// 1-based.
    pub line: usize,
}

/// Which program is meant.
#[derive(Debug, Clone, Copy)]
pub struct Program<'a> {
    /// The name of its main source file without the extension.
    pub stem: &'a str,
    /// The name of the folder of the file that is read.
    pub folder: &'a str,
    /// The names under which the files around build it.
    pub built: &'a [String],
    /// The folder has no other program: what its Makefile starts is this one, whatever its name.
    pub only: bool,
}

impl Program<'_> {
    /// Whether a command names it; where a folder has one program, by a name that programs usually have, too. Beside it there may
    /// be scripts, which are other programs.
    pub(crate) fn is(self, word: &str) -> bool {
        let name = word.rsplit('/').next().unwrap_or(word);
        let name = name.strip_suffix(".exe").unwrap_or(name);
        let usual = self.only && [self.folder, "main", "a.out"].contains(&name);
        let built = self.built.iter().any(|built| built == name);
        !name.is_empty() && (name == self.stem || built || usual)
    }
}

/// The names under which a Makefile, a `CMakeLists.txt`, a README or a script builds the program of a source file: `-o saxpy`,
/// `add_executable(saxpy main.cu)`.
pub fn built_names(text: &str, source: &str) -> Vec<String> {
    let is_source = |word: &str| word.rsplit('/').next() == Some(source);
    let mut names: Vec<String> = Vec::new();
    let mut add = |name: &str| {
        let name = name.rsplit('/').next().unwrap_or(name);
        let plain = !name.is_empty() && !name.contains(['$', '<', '@', '%', '*']);
        if plain && !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    };
    for line in text.lines().take(MOST_LINES) {
        if !line.contains(source) || !line.contains("-o") {
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.iter().any(|word| is_source(word)) {
            for pair in words.windows(2).filter(|pair| pair[0] == "-o") {
                add(pair[1]);
            }
        }
    }
    for name in Makefile::read(text).linked_as(source) {
        add(&name);
    }
    let variables = cmake_variables(text);
    for (at, _) in text.match_indices("add_executable").take(MOST_TESTS) {
        let rest = &text[at..];
        let list = rest
            .split_once('(')
            .and_then(|(_, rest)| rest.split_once(')'));
        let Some((list, _)) = list else { continue };
        let list = with_values(list, &variables);
        let mut words = list.split_whitespace();
        let target = words.next();
        if let Some(target) = target.filter(|_| words.any(is_source)) {
            add(target);
        }
    }
    names
}

/// The commands of the target `run`, else those of `test`, that start the program.
pub fn in_makefile(text: &str, program: Program) -> Vec<RunLine> {
    let makefile = Makefile::read(text);
    let of_target = |target: &str| -> Vec<RunLine> {
        let own = |word: &str| program.only && word.starts_with("./");
        let is_program = |word: &str| own(word) || program.is(word);
        let commands = makefile.commands_of(target);
        let found = commands.filter_map(|recipe| started(recipe.text(), recipe.line, is_program));
        found.collect()
    };
    let run = of_target("run");
    if run.is_empty() {
        of_target("test")
    } else {
        run
    }
}

/// What `set` and `project` say.
fn cmake_variables(text: &str) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    for line in text.lines().take(MOST_LINES) {
        let line = line.trim();
        let Some((command, rest)) = line.split_once('(') else {
            continue;
        };
        let list = rest.split(')').next().unwrap_or(rest);
        let mut words = list.split_whitespace();
        match command.trim().to_ascii_lowercase().as_str() {
            "project" => {
                if let Some(name) = words.next() {
                    variables.insert("PROJECT_NAME".to_owned(), name.to_owned());
                    variables.insert("CMAKE_PROJECT_NAME".to_owned(), name.to_owned());
                }
            }
            "set" => {
                if let Some(name) = words.next() {
                    let end = words.clone().position(|word| word == "CACHE");
                    let value: Vec<&str> = words.take(end.unwrap_or(usize::MAX)).collect();
                    let value = with_values(&value.join(" "), &variables).into_owned();
                    variables.insert(name.to_owned(), value.trim_matches('"').to_owned());
                }
            }
            _ => {}
        }
    }
    variables
}

/// A text with the values of `${NAME}`, and targets in the place of `$<TARGET_FILE:name>`.
fn with_values<'t>(text: &'t str, variables: &BTreeMap<String, String>) -> Cow<'t, str> {
    substituted(text, &|rest, out| {
        if let Some(inner) = rest.strip_prefix("<TARGET_FILE:") {
            let (name, behind) = inner.split_once('>')?;
            out.push_str(&with_values(name, variables));
            return Some(behind);
        }
        let (name, behind) = rest.strip_prefix('{')?.split_once('}')?;
        out.push_str(variables.get(name)?);
        Some(behind)
    })
}

/// A command with the values of the script's own variables: `$N`, `${N}`, `${N:-64}`.
fn with_shell_values<'t>(text: &'t str, variables: &BTreeMap<String, String>) -> Cow<'t, str> {
    substituted(text, &|rest, out| {
        let (name, otherwise, behind) = if let Some(inner) = rest.strip_prefix('{') {
            let (inside, behind) = inner.split_once('}')?;
            let parted = inside.split_once(":-").or(inside.split_once('-'));
            let (name, otherwise) = match parted {
                Some((name, otherwise)) => (name, Some(otherwise)),
                None => (inside, None),
            };
            (name, otherwise, behind)
        } else {
            let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let end = rest.find(|c| !word(c)).unwrap_or(rest.len());
            (&rest[..end], None, &rest[end..])
        };
        out.push_str(variables.get(name).map(String::as_str).or(otherwise)?);
        Some(behind)
    })
}

/// A text with a value in the place of each `$` and what belongs to it. `put` gets what is behind the `$`, adds the value and says what is
/// behind what it took; where it knows none, [`UNKNOWN`] is in the place of the `$`. No longer than a line may be.
fn substituted<'t>(
    text: &'t str,
    put: &dyn for<'r> Fn(&'r str, &mut String) -> Option<&'r str>,
) -> Cow<'t, str> {
    if !text.contains('$') {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        match put(rest, &mut out) {
            Some(behind) => rest = behind,
            None => out.push(UNKNOWN),
        }
        if out.len() > LONGEST {
            return Cow::Owned(UNKNOWN.to_string());
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Each `add_test` that starts the program, in a `foreach` once for each of its values.
pub fn in_cmake(text: &str, program: Program) -> Vec<RunLine> {
    let mut variables = cmake_variables(text);
    let mut found = Vec::new();
    for (at, _) in text.match_indices("add_test").take(MOST_TESTS) {
        let (before, rest) = (&text[..at], &text[at..]);
        let Some(list) = rest
            .split_once('(')
            .and_then(|(_, rest)| rest.split_once(')'))
            .map(|(list, _)| list)
        else {
            continue;
        };
        let (test, command) = match list.split_once("COMMAND") {
            Some((test, command)) => (test.trim().strip_prefix("NAME").unwrap_or(test), command),
            // The old form: a name, then the command.
            None => list
                .trim()
                .split_once(char::is_whitespace)
                .unwrap_or_default(),
        };
        let around = before
            .rfind("foreach(")
            .filter(|open| !before[*open..].contains("endforeach"));
        let each = around.and_then(|open| before[open..].split_once('(')?.1.split_once(')'));
        let mut values = each.map_or("", |(list, _)| list).split_whitespace();
        let name = values.next();
        let values: Vec<&str> = values
            .filter(|word| !matches!(*word, "IN" | "ITEMS" | "LISTS" | "RANGE"))
            .take(MOST_VALUES)
            .collect();
        let values: &[&str] = if name.is_some() && !values.is_empty() {
            &values
        } else {
            &[""]
        };
        for value in values {
            if let Some(name) = name {
                variables.insert(name.to_owned(), (*value).to_owned());
            }
            let words = split_command(&with_values(command, &variables));
            let mut environment = environment_of(text, test.trim(), &variables);
            let (set, words) = set_for_command(&words);
            environment.extend(set);
            if let Some((first, arguments)) = words.split_first()
                && program.is(first)
            {
                found.push(RunLine {
                    program: first.clone(),
                    arguments: arguments.iter().map(|word| one_word(word)).collect(),
                    environment,
                    line: before.matches('\n').count() + 1,
                });
            }
        }
    }
    found
}

/// The property `ENVIRONMENT` of a test, by `set_tests_properties` or `set_property`.
fn environment_of(
    text: &str,
    test: &str,
    variables: &BTreeMap<String, String>,
) -> Vec<(String, String)> {
    let mut environment = Vec::new();
    for (at, _) in text.match_indices("ENVIRONMENT").take(MOST_TESTS) {
        let Some(open) = text[..at].rfind('(') else {
            continue;
        };
        let command = text[..open].split_whitespace().next_back();
        let words = split_command(&with_values(&text[open + 1..at], variables));
        let tests = match (command, words.split_first()) {
            (Some("set_tests_properties"), Some(_)) => words.as_slice(),
            (Some("set_property"), Some((kind, rest))) if kind == "TEST" => rest,
            _ => continue,
        };
        let test = with_values(test, variables);
        let named = tests
            .iter()
            .take_while(|word| !word.starts_with("PROPERT"))
            .any(|word| *word == test);
        let values = text[at..].split_once(char::is_whitespace);
        let values = values.map_or("", |(_, rest)| rest.split(')').next().unwrap_or(rest));
        if named {
            let words = split_command(&with_values(values, variables));
            let set = words.iter().flat_map(|word| word.split(';'));
            let set: Vec<String> = set.map(str::to_owned).collect();
            let set = set.into_iter().take_while(|word| word.contains('='));
            environment.extend(set_before(&set.collect::<Vec<_>>()));
        }
    }
    environment
}

/// What `cmake -E env NAME=VALUE … program` and `env NAME=VALUE … program` set, and the command behind.
fn set_for_command(words: &[String]) -> (Vec<(String, String)>, &[String]) {
    let before = match words {
        [_, e, env, ..] if e == "-E" && env == "env" => 3,
        [env, ..] if env == "env" => 1,
        _ => return (Vec::new(), words),
    };
    let behind = &words[before..];
    let set = behind.iter().take_while(|word| word.contains('=')).count();
    let (set, command) = behind.split_at(set);
    (set_before(set), command)
}

/// The lines that start the program: `./main 10000 200`, with or without a prompt before it, behind others, or quoted in a sentence.
pub fn in_script(text: &str, program: Program) -> Vec<RunLine> {
    let found = script_lines(text, &|word| program.is(word));
    if found.is_empty() && program.only {
        // Beside the only program of a folder, what is no script is that program, whatever its name.
        return script_lines(text, &is_no_script);
    }
    found
}

/// Whether a command seems to be built from source: it has no ending, and no name of those that build and test.
fn is_no_script(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    let usual = [
        "configure",
        "build",
        "compile",
        "make",
        "install",
        "setup",
        "bootstrap",
        "run",
        "test",
        "clean",
        "gradlew",
        "waf",
    ];
    !name.is_empty() && !name.contains('.') && !usual.contains(&name)
}

fn script_lines(text: &str, is_program: &dyn Fn(&str) -> bool) -> Vec<RunLine> {
    let mut variables: BTreeMap<String, String> = BTreeMap::new();
    let mut loops = ShellLoops::default();
    let mut found = Vec::new();
    for (at, line) in text.lines().take(MOST_LINES).enumerate() {
        let command = line.trim().trim_start_matches(['$', '>', ' ']);
        let command = loops.met(command, &variables);
        if let Some((name, value)) = command.split_once('=')
            && is_name(name)
            && (!value.trim().contains(' ') || is_quoted(value.trim()))
        {
            let value = with_shell_values(value.trim(), &variables).into_owned();
            let value = value.trim_matches(['"', '\'']).to_owned();
            variables.insert(name.to_owned(), value);
            continue;
        }
        // Of a sentence what is quoted as code.
        let quoted = command.split('`').skip(1).step_by(2);
        let whole = is_command(command).then_some(command);
        for command in whole.into_iter().chain(quoted) {
            // `[options]`, `<file>`: how it can be started, not how it is.
            if is_command(command) && !command.contains(['[', '<']) {
                for turn in loops.turns(command, &variables) {
                    let command = with_shell_values(command, &turn);
                    let own = |word: &str| word.starts_with("./") && is_program(word);
                    found.extend(started(&command, at, own));
                }
            }
        }
        loops.left(line);
    }
    found
}

/// The loops of a script around a line: `for k in 0 1 2; do`, `for k in {0..10}`, `for k in $(seq 1 8)`, `for ((k = 0; k < 4; k++))`.
#[derive(Debug, Default)]
struct ShellLoops {
    /// The variable of each and its values; none where only a shell can work them out.
    around: Vec<(String, Vec<String>)>,
}

impl ShellLoops {
    /// What a line does once the heads of loops in it are read.
    fn met<'t>(&mut self, mut line: &'t str, variables: &BTreeMap<String, String>) -> &'t str {
        for _ in 0..MOST_NESTED {
            let line_rest = line.strip_prefix("do ").unwrap_or(line).trim_start();
            let Some(head) = line_rest.strip_prefix("for ") else {
                return line_rest;
            };
            let (variable, values, rest) = match head.trim_start().strip_prefix("((") {
                Some(counted) => {
                    let (inside, rest) = counted.split_once("))").unwrap_or((counted, ""));
                    let (variable, values) = counted_values(inside, variables).unwrap_or_default();
                    (variable, values, rest.trim_start().trim_start_matches(';'))
                }
                None => {
                    let Some((variable, list)) = head.split_once(" in ") else {
                        return line_rest;
                    };
                    let (list, rest) = list.split_once(';').unwrap_or((list, ""));
                    let values = listed_values(list, variables);
                    (variable.trim().to_owned(), values, rest)
                }
            };
            self.around.push((variable, values));
            line = rest.trim_start();
        }
        line
    }

    /// The values of the variables in each turn of the loops around a command that it reads; the last loop is the innermost.
    fn turns(
        &self,
        command: &str,
        variables: &BTreeMap<String, String>,
    ) -> Vec<BTreeMap<String, String>> {
        let mut turns = vec![variables.clone()];
        for (name, values) in &self.around {
            let is_read =
                command.contains(&format!("${name}")) || command.contains(&format!("${{{name}"));
            if !is_read || values.is_empty() {
                continue;
            }
            let with = |turn: &BTreeMap<String, String>, value: &String| {
                let mut turn = turn.clone();
                turn.insert(name.clone(), value.clone());
                turn
            };
            turns = turns
                .iter()
                .flat_map(|turn| values.iter().map(|value| with(turn, value)))
                .take(MOST_VALUES)
                .collect();
        }
        turns
    }

    /// A line is done: loops that end with it are left.
    fn left(&mut self, line: &str) {
        let line = line.split(" #").next().unwrap_or(line);
        let ends = line
            .split([';', ' ', '\t', '|', '&'])
            .filter(|word| *word == "done");
        for _ in ends {
            self.around.pop();
        }
    }
}

/// The values of a list of words, with those of variables, ranges (`{1..8}`, `{0..64..16}`) and `seq` put in; empty where one of
/// them only a shell can work out.
fn listed_values(list: &str, variables: &BTreeMap<String, String>) -> Vec<String> {
    let list = list.replace("$(seq ", "`seq ");
    let list = list.replace(')', "`");
    let mut values = Vec::new();
    for (at, part) in list.split('`').enumerate() {
        let part = with_shell_values(part, variables);
        if part.contains([UNKNOWN, '*']) {
            return Vec::new();
        }
        let part = part.trim();
        if at % 2 == 1 {
            let Some(printed) = part.strip_prefix("seq ").and_then(sequence) else {
                return Vec::new();
            };
            values.extend(printed);
            continue;
        }
        for word in split_command(part) {
            let inside = word
                .strip_prefix('{')
                .and_then(|word| word.strip_suffix('}'));
            match inside.and_then(|range| range.split_once("..")) {
                Some((first, rest)) => {
                    let (last, step) = rest.split_once("..").unwrap_or((rest, "1"));
                    let [Ok(first), Ok(step), Ok(last)] = [first, step, last].map(str::parse)
                    else {
                        return Vec::new();
                    };
                    // A range counts towards its end, whatever the sign of its step.
                    let step: i64 = if last < first {
                        -i64::abs(step)
                    } else {
                        step.abs()
                    };
                    values.extend(numbers(first, step, last));
                }
                None => values.push(word),
            }
        }
    }
    values.truncate(MOST_VALUES);
    values
}

/// The numbers that `seq` prints: of the last one, the first and the last, or with the step between them.
fn sequence(arguments: &str) -> Option<Vec<String>> {
    let given: Result<Vec<i64>, _> = arguments.split_whitespace().map(str::parse).collect();
    match given.ok()?.as_slice() {
        [last] => Some(numbers(1, 1, *last)),
        [first, last] => Some(numbers(*first, 1, *last)),
        [first, step, last] => Some(numbers(*first, *step, *last)),
        _ => None,
    }
}

/// The numbers from the first to the last by a step, as many as are gone through; none for a step that does not lead there.
fn numbers(first: i64, step: i64, last: i64) -> Vec<String> {
    let values = std::iter::successors(Some(first), |value| value.checked_add(step));
    let within = |value: &i64| match step {
        0 => false,
        1.. => *value <= last,
        _ => *value >= last,
    };
    let values = values.take_while(within).take(MOST_VALUES);
    values.map(|value| value.to_string()).collect()
}

/// The variable of `i = 0; i < 8; i++` and its values.
fn counted_values(
    head: &str,
    variables: &BTreeMap<String, String>,
) -> Option<(String, Vec<String>)> {
    let head = with_shell_values(head, variables);
    let mut parts = head.split(';');
    let (name, first) = parts.next()?.split_once('=')?;
    let (name, first) = (name.trim(), first.trim().parse::<i64>().ok()?);
    let condition = parts.next()?.trim().strip_prefix(name)?.trim_start();
    let bound = condition
        .trim_start_matches(['<', '='])
        .trim()
        .parse::<i64>()
        .ok()?;
    let last = if condition.starts_with("<=") {
        bound
    } else if condition.starts_with('<') {
        bound.checked_sub(1)?
    } else {
        return None;
    };
    let update: String = parts.next()?.split_whitespace().collect();
    let next = |value: i64| match update.strip_prefix(name)? {
        "++" => value.checked_add(1),
        by if by.starts_with("+=") => value.checked_add(by[2..].parse().ok().filter(|by| *by > 0)?),
        by if by.starts_with("*=") => {
            value.checked_mul(by[2..].parse().ok().filter(|by| *by > 1 && value > 0)?)
        }
        _ => None,
    };
    let values = std::iter::successors(Some(first), |value| next(*value));
    let values = values.take_while(|value| *value <= last).take(MOST_VALUES);
    Some((
        name.to_owned(),
        values.map(|value| value.to_string()).collect(),
    ))
}

/// Whether all of a value is in one pair of quotes.
fn is_quoted(value: &str) -> bool {
    ['"', '\''].into_iter().any(|quote| {
        let inside = value
            .strip_prefix(quote)
            .and_then(|rest| rest.strip_suffix(quote));
        inside.is_some_and(|inside| !inside.contains(quote))
    })
}

/// True for a line that begins as commands do that start a program.
fn is_command(line: &str) -> bool {
    let launchers = [
        "mpirun", "mpiexec", "srun", "time", "ncu", "nsys", "nvprof", "rocprof", "sudo", "nvcc",
        "hipcc", "make", "cd",
    ];
    let first = line.split_whitespace().next().unwrap_or_default();
    let sets = first.split_once('=').is_some_and(|(name, _)| is_name(name));
    first.starts_with("./") || sets || launchers.contains(&first)
}

/// A word as an argument: one that a shell has to work out is not known.
fn one_word(word: &str) -> String {
    if word.contains([UNKNOWN, '$', '*']) {
        UNKNOWN.to_string()
    } else {
        word.trim_end_matches(';').to_owned()
    }
}

/// A command with what other commands print in it marked: `$(nproc)`, `` `nproc` ``.
fn without_commands(command: &str) -> String {
    let mut out = String::new();
    let mut rest = command;
    while let Some(at) = rest.find(['`', '(']) {
        let quoted = rest[at..].starts_with('`');
        let before = &rest[..at];
        let opened =
            before.ends_with(['$', UNKNOWN]) || before.is_empty() && out.ends_with(UNKNOWN);
        if !quoted && !opened {
            out.push_str(&rest[..=at]);
            rest = &rest[at + 1..];
            continue;
        }
        out.push_str(rest[..at].trim_end_matches('$'));
        out.push(UNKNOWN);
        let end = if quoted { '`' } else { ')' };
        rest = rest[at + 1..]
            .split_once(end)
            .map_or("", |(_, behind)| behind);
    }
    out.push_str(rest);
    out
}

/// A command that starts the program, on a line counted from 0; `None` for another command.
fn started(command: &str, line: usize, is_program: impl Fn(&str) -> bool) -> Option<RunLine> {
    let words = split_command(&without_commands(command));
    let ends = |word: &String| {
        let sign = matches!(word.as_str(), "|" | "||" | "&&" | "&" | ";" | "<");
        sign || word.contains('>') || word.starts_with('#')
    };
    // `bin/main 64` begins a command; elsewhere it is a file.
    let begins = |at: usize| {
        let before = at.checked_sub(1).and_then(|before| words.get(before));
        let sets = |word: &String| word.split_once('=').is_some_and(|(name, _)| is_name(name));
        before.is_none_or(|word| ends(word) || sets(word) || word == "time")
    };
    let mut all = words.iter().enumerate();
    let (at, _) = all.find(|(at, word)| {
        let path = word.starts_with("./") || word.contains('/') && begins(*at);
        path && !word.contains([UNKNOWN, '$', '*']) && is_program(word)
    })?;
    let rest = &words[at + 1..];
    let end = rest.iter().position(ends).unwrap_or(rest.len());
    let last = rest[..end].iter().position(|word| word.ends_with(';'));
    let end = last.map_or(end, |last| last + 1);
    let arguments = rest[..end].iter();
    let before = words[..at].iter().rposition(ends).map_or(0, |end| end + 1);
    Some(RunLine {
        program: words[at].clone(),
        arguments: arguments.map(|word| one_word(word)).collect(),
        environment: set_before(&words[before..at]),
        line: line + 1,
    })
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The variables that the words before a program set: `NAME=value ./main`, and what a launcher of MPI tells its processes.
fn set_before(words: &[String]) -> Vec<(String, String)> {
    let set = words.iter().filter_map(|word| {
        let (name, value) = word.split_once('=')?;
        is_name(name).then(|| (name.to_owned(), value.to_owned()))
    });
    let mut set: Vec<_> = set.collect();
    let launcher = |word: &String| {
        let name = word.rsplit('/').next();
        matches!(name, Some("mpirun" | "mpiexec" | "srun"))
    };
    if let Some(at) = words.iter().position(launcher) {
        let count = words[at..].windows(2).find_map(|pair| {
            let counts = matches!(pair[0].as_str(), "-n" | "-np" | "--np" | "-c");
            counts.then(|| pair[1].clone())
        });
        set.push((RANKS.to_owned(), count.unwrap_or_default()));
    }
    set
}

/// The variable that says how many processes an MPI program has, as Open MPI sets it.
const RANKS: &str = "OMPI_COMM_WORLD_SIZE";

#[cfg(test)]
mod tests {
    use super::*;

    const ONLY: Program = Program {
        stem: "main",
        folder: "stencil",
        built: &[],
        only: true,
    };

    fn arguments(found: Vec<RunLine>) -> Option<(Vec<String>, usize)> {
        found
            .into_iter()
            .next()
            .map(|found| (found.arguments, found.line))
    }

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn the_target_run_of_a_makefile_says_how_a_program_is_started() {
        let text = "program = stencil\nN := 512\nall: $(program)\n\tnvcc -o $(program) main.cu\n\
                    run: $(program)\n\t@echo go\n\t$(LAUNCHER) ./$(program) -n $(N) \"two words\" > log.txt\n";
        let found = arguments(in_makefile(text, ONLY));
        assert_eq!(found, Some((words(&["-n", "512", "two words"]), 7)));
        let other = Program {
            stem: "other",
            folder: "programs",
            built: &[],
            only: false,
        };
        assert_eq!(in_makefile(text, other), []);
    }

    #[test]
    fn a_program_in_a_folder_is_started_by_its_path() {
        let text = "BIN := bin/prog\n$(BIN): main.cu\n\tnvcc main.cu -o $(BIN)\nrun: $(BIN)\n\tnvcc main.cu -o bin/prog\n\tMODE=2 $(BIN) $(shell nproc) 256\n";
        let built = built_names(text, "main.cu");
        let program = Program {
            built: &built,
            only: false,
            ..ONLY
        };
        let found = in_makefile(text, program).into_iter().next().unwrap();
        assert_eq!((found.program.as_str(), found.line), ("bin/prog", 6));
        assert_eq!(found.arguments, words(&["\0", "256"]));
        assert_eq!(found.environment, [("MODE".to_owned(), "2".to_owned())]);
    }

    #[test]
    fn a_command_over_several_lines_is_one() {
        let text = "SIZES = 64 \\\n  128\nrun:\n\t./main \\\n      -f data.txt \\\n  $(SIZES)\n\t./main 3\n";
        let found = arguments(in_makefile(text, ONLY));
        assert_eq!(found, Some((words(&["-f", "data.txt", "64", "128"]), 4)));
        // What is never ended does not grow without a bound.
        let long = format!("run:\n\t./main {}", "x \\\n".repeat(100_000));
        let found = in_makefile(&long, ONLY);
        assert!(!found.is_empty() && found.iter().all(|found| found.arguments.len() < 100_000));
    }

    #[test]
    fn what_is_before_a_program_sets_variables() {
        let environment = |line: &str| {
            let found = in_makefile(&format!("run:\n\t{line}\n"), ONLY);
            found.into_iter().next().map(|found| found.environment)
        };
        let set = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(environment("./main 3"), Some(Vec::new()));
        assert_eq!(
            environment("N=4 SIZE= ./main"),
            Some(vec![set("N", "4"), set("SIZE", "")])
        );
        assert_eq!(
            environment("mpirun --bind-to core -np 4 ./main"),
            Some(vec![set(RANKS, "4")])
        );
        assert_eq!(environment("mpiexec ./main"), Some(vec![set(RANKS, "")]));
    }

    #[test]
    fn an_argument_that_only_a_shell_can_work_out_is_unknown() {
        let unknown = words(&["\0", "8"]);
        for argument in [
            "$$HOME",
            "$(shell nproc)",
            "`nproc --all`",
            "$$(wc -l < data)",
        ] {
            let text = format!("run:\n\t./main {argument} 8\n");
            let found = arguments(in_makefile(&text, ONLY));
            assert_eq!(found, Some((unknown.clone(), 2)), "{argument}");
        }
        let found = arguments(in_makefile("A = $(A)\nrun:\n\t./main $(A) 8\n", ONLY));
        assert_eq!(found, Some((unknown, 3)));
        assert_eq!(in_makefile("all:\n\t./main 1\n", ONLY), []);
        assert_eq!(in_makefile("run:\n\t$$(./find main) 1\n", ONLY), []);
    }

    #[test]
    fn a_program_has_the_name_that_it_is_built_under() {
        let cmake = "project(saxpy CUDA)\nset(SIZE 3000000)\n\
                     add_executable(${PROJECT_NAME} src/main.cu)\n\
                     foreach(reps 10 20)\nadd_test(NAME t${reps} COMMAND saxpy ${SIZE} ${reps})\nendforeach()\n\
                     add_test(NAME file COMMAND $<TARGET_FILE:saxpy> ${OTHER} 5)\n";
        let built = built_names(cmake, "main.cu");
        assert_eq!(built, ["saxpy"]);
        let program = Program {
            built: &built,
            only: false,
            ..ONLY
        };
        let found = in_cmake(cmake, program).into_iter();
        let found: Vec<_> = found.map(|found| found.arguments).collect();
        let each = [["3000000", "10"], ["3000000", "20"], ["\0", "5"]];
        assert_eq!(found, each.map(|list| words(&list)));
        let readme = "    nvcc -O3 src/main.cu -o bin/daxpy && ./bin/daxpy 64\n";
        let built = built_names(readme, "main.cu");
        let program = Program {
            built: &built,
            only: false,
            ..ONLY
        };
        assert_eq!(
            arguments(in_script(readme, program)),
            Some((words(&["64"]), 1))
        );
        assert_eq!(built_names(readme, "other.cu"), [""; 0]);
    }

    #[test]
    fn values_that_grow_without_end_are_not_known() {
        let cmake = "set(A aaaa)\n".to_owned()
            + &"set(A ${A}${A})\n".repeat(200)
            + "add_test(NAME a COMMAND main ${A} 3)\n";
        assert_eq!(
            arguments(in_cmake(&cmake, ONLY)),
            Some((words(&["\0", "3"]), 202))
        );
        let script = "A=aaaa\n".to_owned() + &"A=$A$A\n".repeat(200) + "./main $A 3\n";
        assert_eq!(
            arguments(in_script(&script, ONLY)),
            Some((words(&["\0", "3"]), 202))
        );
    }

    #[test]
    fn a_script_has_variables() {
        let script = "#!/bin/sh\nN=2000000\nM=\"$N\"\nBLOCK=64 ./main $N ${M} ${K:-7} $J\n";
        let found = in_script(script, ONLY).into_iter().next().unwrap();
        assert_eq!(found.arguments, words(&["2000000", "2000000", "7", "\0"]));
        assert_eq!(found.environment, [("BLOCK".to_owned(), "64".to_owned())]);
        let readme = "Run it as `./main 1000 10`, or better not.\n";
        let found = arguments(in_script(readme, ONLY));
        assert_eq!(found, Some((words(&["1000", "10"]), 1)));
    }

    #[test]
    fn a_loop_of_a_script_starts_a_program_with_each_of_its_values() {
        let given = |script: &str| -> Vec<String> {
            let found = in_script(script, ONLY).into_iter();
            found.map(|found| found.arguments.join(" ")).collect()
        };
        assert_eq!(
            given("for k in {0..2}; do\n  echo $k\n  ./main $k | tee ${k}.txt\ndone\n./main 7"),
            ["0", "1", "2", "7"]
        );
        assert_eq!(given("for n in 64 128\ndo\n./main $n\ndone"), ["64", "128"]);
        assert_eq!(
            given("for n in $(seq 2 2 6); do ./main $n 1; done"),
            ["2 1", "4 1", "6 1"]
        );
        assert_eq!(
            given("for ((i=1; i<=4; i*=2)); do ./main ${i}; done"),
            ["1", "2", "4"]
        );
        assert_eq!(
            given("L=\"3 5\"\nfor a in $L; do\nfor b in `seq 2`; do\n./main $a $b\ndone\ndone"),
            ["3 1", "3 2", "5 1", "5 2"]
        );
        assert_eq!(
            given("for n in {4..1..2} $(seq 5 -2 1) $(seq 5 1); do ./main $n; done"),
            ["4", "2", "5", "3", "1"]
        );
        // What only a shell can work out, and loops without end.
        assert_eq!(given("for f in data/*.txt; do\n./main $f\ndone"), ["\0"]);
        assert_eq!(given("for ((i=1; i<9; i-=1)); do ./main $i; done"), ["1"]);
        assert_eq!(
            given("for n in {1..1000000000}; do ./main $n; done").len(),
            MOST_VALUES
        );
        assert_eq!(given("done\nfor x in\nfor\n./main 3"), ["3"]);
    }

    #[test]
    fn tests_of_cmake_and_lines_of_a_readme_do_too() {
        let cmake = "add_executable(main main.cu)\nadd_test(NAME quick COMMAND main 64 2)\n";
        assert_eq!(
            arguments(in_cmake(cmake, ONLY)),
            Some((words(&["64", "2"]), 2))
        );
        let unknown = in_cmake("add_test(NAME a COMMAND main ${N})", ONLY);
        assert_eq!(arguments(unknown), Some((words(&["\0"]), 1)));
        assert_eq!(in_cmake("add_test(NAME a COMMAND ${EXE} 3)", ONLY), []);
        let environments = "foreach(n 1 2)\nadd_test(NAME t${n} COMMAND main ${n})\nendforeach()\n\
             set_tests_properties(t1 t3 PROPERTIES TIMEOUT 5 ENVIRONMENT \"BLOCK=64;LOG=1\" LABELS gpu)\n\
             set_property(TEST t2 PROPERTY ENVIRONMENT BLOCK=512)\n\
             add_test(last ${CMAKE_COMMAND} -E env BLOCK=32 main 9)\n";
        let found = in_cmake(environments, ONLY).into_iter();
        let found: Vec<_> = found
            .map(|found| {
                let set = found
                    .environment
                    .iter()
                    .map(|(name, value)| format!("{name}={value}"));
                (found.arguments.join(" "), set.collect::<Vec<_>>().join(" "))
            })
            .collect();
        let expected = [
            ("1", "BLOCK=64 LOG=1"),
            ("2", "BLOCK=512"),
            ("9", "BLOCK=32"),
        ];
        assert_eq!(
            found,
            expected.map(|(given, set)| (given.to_owned(), set.to_owned()))
        );
        let readme = "Build it, then\n\n    $ ./main 1000 10\n";
        assert_eq!(
            arguments(in_script(readme, ONLY)),
            Some((words(&["1000", "10"]), 3))
        );
        assert_eq!(in_script("Type ./main 3 to start", ONLY), []);
        let usage = "./main [options] <file>\n./main -n 5 data\n";
        let found = arguments(in_script(usage, ONLY));
        assert_eq!(found, Some((words(&["-n", "5", "data"]), 2)));
        // A script beside the program is another one.
        let scripts = "./configure --prefix=/usr\n./build.sh 8\n./stencil 256\n";
        let found = in_script(scripts, ONLY).into_iter();
        let found: Vec<_> = found
            .map(|found| (found.program, found.arguments))
            .collect();
        assert_eq!(found, [("./stencil".to_owned(), words(&["256"]))]);
        // A program of another name, where nothing else is there.
        let named = "./configure\n./wave -n 100 --steps 5   # five steps\n";
        let found = in_script(named, ONLY).into_iter();
        let found: Vec<_> = found
            .map(|found| (found.program, found.arguments))
            .collect();
        let five = words(&["-n", "100", "--steps", "5"]);
        assert_eq!(found, [("./wave".to_owned(), five)]);
        let among = Program {
            only: false,
            ..ONLY
        };
        assert_eq!(in_script(named, among), []);
        // Several ways to start it.
        let several = in_script("./stencil 256\n./stencil 512 8\n", ONLY);
        let several: Vec<_> = several.into_iter().map(|found| found.arguments).collect();
        assert_eq!(several, [words(&["256"]), words(&["512", "8"])]);
        let make = "test:\n\t./main 1\nrun:\n\t./main 2\n\t./main 3\n";
        let several: Vec<_> = in_makefile(make, ONLY)
            .into_iter()
            .map(|found| found.arguments)
            .collect();
        assert_eq!(several, [words(&["2"]), words(&["3"])]);
    }
}
