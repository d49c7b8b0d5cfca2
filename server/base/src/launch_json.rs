//! How a program is started, as the launch configurations of an editor say: `.vscode/launch.json`, which Neovim's DAP client reads too.
//!
//! In: the file's text, which program is meant. Out: arguments and environment of each configuration that starts it. What holds:
//! a configuration that asks its user, or a command, for an argument says nothing.

use serde_json::Value;

use crate::run_lines::{Program, RunLine};
use crate::split_command;

/// The configurations that start the program.
pub fn in_launch_json(text: &str, program: Program) -> Vec<RunLine> {
    let plain = without_comments(text);
    let document: Value = serde_json::from_str(&plain).unwrap_or_default();
    let configurations = document.get("configurations").and_then(Value::as_array);
    let configurations = configurations.into_iter().flatten();
    let of = |program: Program| -> Vec<RunLine> {
        let all = configurations.clone();
        all.filter_map(|one| of_configuration(one, text, program))
            .collect()
    };
    let named = of(Program {
        only: false,
        ..program
    });
    // Where there is no other program, a configuration under any name is for this one.
    if named.is_empty() && program.only {
        of(program)
    } else {
        named
    }
}

fn of_configuration(one: &Value, text: &str, program: Program) -> Option<RunLine> {
    let path = one.get("program")?.as_str()?;
    let name = path.rsplit(['/', '\\']).next()?;
    let script = name
        .rsplit_once('.')
        .is_some_and(|(_, extension)| extension != "exe");
    if !program.is(name) && (!program.only || script) {
        return None;
    }
    let arguments = match one.get("args") {
        None => Vec::new(),
        Some(Value::String(line)) => split_command(line),
        Some(Value::Array(words)) => {
            let words = words.iter().map(|word| word.as_str().map(str::to_owned));
            words.collect::<Option<Vec<String>>>()?
        }
        Some(_) => return None,
    };
    if arguments.iter().any(|argument| argument.contains("${")) {
        return None;
    }
    let named = one.get("environment").and_then(Value::as_array);
    let named = named.into_iter().flatten().filter_map(|variable| {
        let part = |name: &str| Some(variable.get(name)?.as_str()?.to_owned());
        Some((part("name")?, part("value")?))
    });
    let mapped = one.get("env").and_then(Value::as_object);
    let mapped = mapped.into_iter().flatten();
    let mapped =
        mapped.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
    let line = text.lines().position(|line| line.contains(path));
    Some(RunLine {
        program: format!(
            "./{}",
            if name.contains('$') {
                program.stem
            } else {
                name
            }
        ),
        arguments,
        environment: named.chain(mapped).collect(),
        line: line.unwrap_or(0) + 1,
    })
}

/// The same without comments and without commas before a closing bracket, which editors allow in it.
fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    let mut in_string = false;
    while let Some(letter) = letters.next() {
        if in_string {
            out.push(letter);
            match letter {
                '\\' => out.extend(letters.next()),
                '"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match (letter, letters.peek()) {
            ('/', Some('/')) => {
                while letters.peek().is_some_and(|next| *next != '\n') {
                    letters.next();
                }
            }
            ('/', Some('*')) => {
                letters.next();
                let mut before = ' ';
                for next in letters.by_ref() {
                    if before == '*' && next == '/' {
                        break;
                    }
                    before = next;
                }
            }
            (']' | '}', _) => {
                let kept = out.trim_end().len();
                if out[..kept].ends_with(',') {
                    out.truncate(kept - 1);
                }
                out.push(letter);
            }
            _ => {
                in_string = letter == '"';
                out.push(letter);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAXPY: Program = Program {
        stem: "saxpy",
        folder: "code",
        built: &[],
        only: false,
    };

    const TEXT: &str = r#"{
  // Two ways to start it.
  "version": "0.2.0",
  "configurations": [
    { "name": "tests", "program": "${workspaceFolder}/build/tests", "args": ["all"] },
    {
      "name": "saxpy", "type": "cuda-gdb", /* under the debugger */
      "program": "${workspaceFolder}/build/saxpy",
      "args": ["1048576", "a \"b\" // c"],
      "environment": [{ "name": "REPEAT", "value": "3" }],
    },
  ],
}"#;

    #[test]
    fn a_configuration_of_the_program_has_its_arguments() {
        let found = in_launch_json(TEXT, SAXPY)
            .into_iter()
            .next()
            .expect("the second");
        assert_eq!(found.program, "./saxpy");
        assert_eq!(found.arguments, ["1048576", "a \"b\" // c"]);
        assert_eq!(found.environment, [("REPEAT".to_owned(), "3".to_owned())]);
        assert_eq!(found.line, 8);
        assert_eq!(
            in_launch_json(
                TEXT,
                Program {
                    stem: "gemm",
                    ..SAXPY
                }
            ),
            []
        );
    }

    #[test]
    fn in_a_workspace_of_one_program_any_name_is_its() {
        let only = Program {
            stem: "main",
            only: true,
            ..SAXPY
        };
        let found = in_launch_json(TEXT, only).into_iter();
        let found: Vec<_> = found.map(|found| found.program).collect();
        assert_eq!(found, ["./tests", "./saxpy"]);
    }

    #[test]
    fn what_its_user_is_asked_for_says_nothing() {
        let asks = TEXT.replace("1048576", "${input:size}");
        assert_eq!(in_launch_json(&asks, SAXPY), []);
        for broken in ["", "{", "[]", "{\"configurations\": 3}", "/*", "\"", "//"] {
            assert_eq!(in_launch_json(broken, SAXPY), [], "{broken}");
        }
    }
}
