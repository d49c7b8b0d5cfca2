//! How a program is started, as the files beside it say: targets of a Makefile, tests of a `CMakeLists.txt`, lines of a README or a script.
//!
//! In: such a file's text, which program is meant. Out: its arguments and the line. What holds: the text is read, nothing is executed; a
//! line that only a shell can work out (substitutions, loops) says nothing.

use crate::makefile::Makefile;
use crate::split_command;

/// Lines of one file that are read.
const MOST_LINES: usize = 20_000;

/// How a program is started.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RunLine {
    /// `argv[0]`, as the line has it.
    pub program: String,
    /// `argv[1]` and so on.
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
    /// The name of its folder.
    pub folder: &'a str,
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
        !name.is_empty() && (name == self.stem || usual)
    }
}

/// The commands of the target `run`, else those of `test`, that start the program.
pub fn in_makefile(text: &str, program: Program) -> Vec<RunLine> {
    let makefile = Makefile::read(text);
    let of_target = |target: &str| -> Vec<RunLine> {
        let is_program = |word: &str| program.only || program.is(word);
        let commands = makefile.commands_of(target);
        let found = commands.filter_map(|recipe| started(recipe.known()?, recipe.line, is_program));
        found.collect()
    };
    let run = of_target("run");
    if run.is_empty() {
        of_target("test")
    } else {
        run
    }
}

/// Each `add_test` that starts the program.
pub fn in_cmake(text: &str, program: Program) -> Vec<RunLine> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("add_test") {
        let rest = &text[at..];
        let Some(list) = rest
            .split_once('(')
            .and_then(|(_, rest)| rest.split_once(')'))
            .map(|(list, _)| list)
        else {
            continue;
        };
        let command = match list.split_once("COMMAND") {
            Some((_, command)) => command,
            // The old form: a name, then the command.
            None => list
                .trim()
                .split_once(char::is_whitespace)
                .map_or("", |(_, rest)| rest),
        };
        if command.contains("${") || command.contains("$<") {
            continue;
        }
        let words = split_command(command);
        if let Some((first, arguments)) = words.split_first()
            && program.is(first)
        {
            found.push(RunLine {
                program: first.clone(),
                arguments: arguments.to_vec(),
                environment: Vec::new(),
                line: text[..at].matches('\n').count() + 1,
            });
        }
    }
    found
}

/// The lines that start the program: `./main 10000 200`, with or without a prompt before it.
pub fn in_script(text: &str, program: Program) -> Vec<RunLine> {
    let lines = text.lines().take(MOST_LINES).enumerate();
    let commands = lines.map(|(at, line)| (at, line.trim().trim_start_matches(['$', '>', ' '])));
    let found = commands.filter_map(|(at, command)| {
        // `[options]`, `<file>`: how it can be started, not how it is.
        let starts = command.starts_with("./") && !command.contains(['[', '<']);
        starts.then(|| started(command, at, |word| program.is(word)))?
    });
    found.collect()
}

/// A command that starts the program, on a line counted from 0; `None` for another command, and for what a shell would have to work out.
fn started(command: &str, line: usize, is_program: impl Fn(&str) -> bool) -> Option<RunLine> {
    if command.contains(['`', '$', '*']) {
        return None;
    }
    let words = split_command(command);
    let at = words
        .iter()
        .position(|word| word.starts_with("./") && is_program(word))?;
    let ends = |word: &String| {
        matches!(word.as_str(), "|" | "||" | "&&" | "&" | ";" | "<") || word.contains('>')
    };
    let rest = &words[at + 1..];
    let end = rest.iter().position(ends).unwrap_or(rest.len());
    let arguments = rest[..end].iter();
    Some(RunLine {
        program: words[at].clone(),
        arguments: arguments
            .map(|word| word.trim_end_matches(';').to_owned())
            .collect(),
        environment: set_before(&words[..at]),
        line: line + 1,
    })
}

/// The variables that the words before a program set: `NAME=value ./main`, and what a launcher of MPI tells its processes.
fn set_before(words: &[String]) -> Vec<(String, String)> {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
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
            only: false,
        };
        assert_eq!(in_makefile(text, other), []);
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
    fn what_only_a_shell_can_work_out_says_nothing() {
        assert_eq!(in_makefile("run:\n\t./main $$HOME\n", ONLY), []);
        assert_eq!(in_makefile("run:\n\t./main $(shell nproc)\n", ONLY), []);
        assert_eq!(in_makefile("run:\n\t./main `nproc`\n", ONLY), []);
        assert_eq!(in_makefile("A = $(A)\nrun:\n\t./main $(A)\n", ONLY), []);
        assert_eq!(in_makefile("all:\n\t./main 1\n", ONLY), []);
    }

    #[test]
    fn tests_of_cmake_and_lines_of_a_readme_do_too() {
        let cmake = "add_executable(main main.cu)\nadd_test(NAME quick COMMAND main 64 2)\n";
        assert_eq!(
            arguments(in_cmake(cmake, ONLY)),
            Some((words(&["64", "2"]), 2))
        );
        assert_eq!(in_cmake("add_test(NAME a COMMAND main ${N})", ONLY), []);
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
