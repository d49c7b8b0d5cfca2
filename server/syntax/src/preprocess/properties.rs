//! What holds of every text: on generated programs, damaged ones, and ones made to blow up.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::prelude::*;

use super::tests::{check, run, run_after, run_bare, tokens};
use super::{EarlierText, Preprocessed, left_open};

/// Turns a list of numbers into choices; after its end every choice is the first.
struct Choices<'a>(std::slice::Iter<'a, u16>);

impl Choices<'_> {
    fn below(&mut self, count: usize) -> usize {
        usize::from(self.0.next().copied().unwrap_or(0)) % count
    }

    fn pick<'t>(&mut self, list: &[&'t str]) -> &'t str {
        list[self.below(list.len())]
    }
}

const OBJECTS: [&str; 5] = ["A", "B", "C", "D", "E"];
const FUNCTIONS: [(&str, &[&str], bool); 6] = [
    ("F", &["x"], false),
    ("G", &["x", "y"], false),
    ("H", &[], false),
    ("V", &["..."], true),
    ("W", &["x", "..."], true),
    ("N", &["x", "r..."], true),
];
const PLAIN: [&str; 18] = [
    "1", "a", "b", "+", "-", "<", "<<<", ">>>", ">", "\"s\"", "'c'", ".5", "3e", "::", "->", "=",
    "2", "...",
];
const CONDITIONS: [&str; 14] = [
    "1",
    "0",
    "A",
    "defined B",
    "!defined(C)",
    "F(1) == 1",
    "A + B > 2",
    "-1 < 0u",
    "(1 ? 2 : 0) && D",
    "'a' == 97 || E",
    "1 << 3 == 8 && !(2 & 1)",
    "defined(A) || defined F && B",
    "7 % 4 == 3 ? C : D",
    "0x10 / 3 * 3 == 15",
];

/// A list of tokens; with `parameters`, of a macro's body.
fn list(choices: &mut Choices<'_>, text: &mut String, parameters: Option<&[&str]>, depth: usize) {
    for _ in 0..choices.below(6) {
        match choices.below(10) {
            0..=2 => text.push_str(choices.pick(&PLAIN)),
            3 | 4 => text.push_str(choices.pick(&OBJECTS)),
            5 if depth < 3 => {
                let (name, formal, variadic) = FUNCTIONS[choices.below(FUNCTIONS.len())];
                text.push_str(name);
                if choices.below(8) == 0 {
                    text.push(' ');
                    continue;
                }
                text.push_str(choices.pick(&["(", " (", "( "]));
                let least = formal.len() - usize::from(variadic);
                let count = least + if variadic { choices.below(3) } else { 0 };
                for index in 0..count {
                    if index > 0 {
                        text.push_str(choices.pick(&[",", ", "]));
                    }
                    list(choices, text, parameters, depth + 1);
                }
                text.push(')');
            }
            6 if depth < 3 => {
                text.push('(');
                list(choices, text, parameters, depth + 1);
                text.push_str(choices.pick(&[",", ""]));
                list(choices, text, parameters, depth + 1);
                text.push(')');
            }
            _ => {
                let names: Vec<&str> = parameters
                    .unwrap_or_default()
                    .iter()
                    .map(|name| match *name {
                        "..." => "__VA_ARGS__",
                        "r..." => "r",
                        name => name,
                    })
                    .collect();
                if names.is_empty() {
                    text.push_str(choices.pick(&PLAIN));
                    text.push(' ');
                    continue;
                }
                let name = choices.pick(&names);
                match choices.below(8) {
                    0 => {
                        let _ = write!(text, "#{name}");
                    }
                    1 => {
                        let _ = write!(text, "a{}{name}", choices.pick(&["##", " ## "]));
                    }
                    2 => {
                        let _ = write!(text, "{name} ## {}", choices.pick(&["b", "1", "A", "F"]));
                    }
                    3 if parameters.is_some_and(|list| list.last() == Some(&"...")) => {
                        text.push_str(choices.pick(&[
                            "__VA_OPT__(+)",
                            "__VA_OPT__(a, b)",
                            "b, ##__VA_ARGS__",
                        ]));
                    }
                    _ => text.push_str(name),
                }
            }
        }
        text.push_str(choices.pick(&[" ", "", "  ", " /* c */ "]));
        // Without white space what comes next would join.
        text.push(' ');
    }
}

fn program(numbers: &[u16]) -> String {
    let mut choices = Choices(numbers.iter());
    let mut text = String::new();
    let mut open = 0;
    for _ in 0..6 + choices.below(20) {
        match choices.below(12) {
            0..=2 => {
                let _ = write!(text, "#define {} ", choices.pick(&OBJECTS));
                list(&mut choices, &mut text, None, 1);
            }
            3..=5 => {
                let (name, formal, _) = FUNCTIONS[choices.below(FUNCTIONS.len())];
                let _ = write!(text, "# define {name}({}) ", formal.join(", "));
                list(&mut choices, &mut text, Some(formal), 1);
            }
            6 => {
                let _ = write!(text, "#undef {}", choices.pick(&OBJECTS));
            }
            7 => {
                let _ = write!(text, "#if {}", choices.pick(&CONDITIONS));
                open += 1;
            }
            8 if open > 0 => {
                let _ = write!(text, "#elif {}", choices.pick(&CONDITIONS));
            }
            9 if open > 0 => {
                text.push_str("#endif");
                open -= 1;
            }
            _ => {
                text.push_str("; ");
                list(&mut choices, &mut text, None, 0);
            }
        }
        text.push('\n');
    }
    for _ in 0..open {
        text.push_str("#endif\n");
    }
    text
}

/// What `gcc -E` makes of a text; `None` where it is not there or finds the text wrong.
fn gcc(text: &str) -> Option<String> {
    let mut child = Command::new("gcc")
        .args(["-E", "-P", "-undef", "-x", "c++", "-std=gnu++20", "-"])
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    child.stdin.take()?.write_all(text.as_bytes()).ok()?;
    let output = child.wait_with_output().ok()?;
    // Two tokens that cannot be pasted are an error there and stay two tokens, here as well.
    let errors = String::from_utf8_lossy(&output.stderr);
    let wrong = errors
        .lines()
        .any(|line| line.contains("error:") && !line.contains("does not give a valid"));
    (!wrong).then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The tokens of a text; within strings without white space, which may differ where a macro that expands to nothing
/// was made a part of a string.
fn compared_tokens(text: &str) -> Vec<String> {
    let squeezed = |token: &str| token.replace(' ', "");
    tokens(text).into_iter().map(squeezed).collect()
}

fn is_here(program: &str) -> bool {
    let here = Command::new(program).arg("--version").output().is_ok();
    if !here {
        eprintln!("skipped: there is no {program}");
    }
    here
}

#[test]
fn gcc_agrees_on_generated_programs() {
    if !is_here("gcc") {
        return;
    }
    let compared = std::cell::Cell::new(0u32);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let result = runner.run(&vec(any::<u16>(), 0..600), |numbers| {
        let text = program(&numbers);
        let Some(expected) = gcc(&text) else {
            return Ok(());
        };
        compared.set(compared.get() + 1);
        let made = run(&text);
        prop_assert_eq!(
            compared_tokens(&made.text),
            compared_tokens(&expected),
            "{}",
            text
        );
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    assert!(compared.get() > 100, "only {} compared", compared.get());
}

/// Pieces of text that meet in all ways.
const SHARDS: [&str; 52] = [
    "#define ",
    "#undef ",
    "#if ",
    "#ifdef ",
    "#ifndef ",
    "#elif ",
    "#else\n",
    "#endif\n",
    "#include ",
    "#pragma unroll ",
    "#pragma x",
    "A",
    "B",
    "F",
    "(",
    ")",
    ",",
    "F(",
    "F(x)",
    "F(x, ...)",
    "##",
    "#",
    "__VA_ARGS__",
    "__VA_OPT__(",
    "\n",
    "\r\n",
    "\\\n",
    "\\",
    "\r",
    "\"",
    "'",
    "R\"(",
    ")\"",
    "/*",
    "*/",
    "//",
    " ",
    "\t",
    "1",
    "0x",
    "1'0",
    "{",
    "}",
    ";",
    "defined",
    "_Pragma(\"unroll 2\")",
    "__launch_bounds__(",
    "__kernel",
    "ä",
    "\0",
    "<a.h>",
    "__LINE__",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_mixture_is_survived(shards in vec(0..SHARDS.len(), 0..120)) {
        let text: String = shards.iter().map(|&index| SHARDS[index]).collect();
        run(&text);
    }

    #[test]
    fn any_bytes_are_survived(bytes in vec(any::<u8>(), 0..400)) {
        run(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn damaged_programs_are_survived(
        numbers in vec(any::<u16>(), 0..300),
        cuts in vec((any::<u16>(), 0..SHARDS.len()), 0..5),
    ) {
        let mut text = program(&numbers);
        for (at, shard) in cuts {
            let mut at = usize::from(at) % (text.len() + 1);
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            text.insert_str(at, SHARDS[shard]);
        }
        run(&text);
    }

    #[test]
    fn an_earlier_text_makes_no_difference(
        numbers in vec(any::<u16>(), 0..300),
        edits in vec((any::<u16>(), 0..40_u16, 0..SHARDS.len()), 1..8),
    ) {
        let mut text = program(&numbers).replace("; ", ";\nint quiet(x y);\n/* z */ \"s\" 1'0;\n");
        let all = |made: &Preprocessed| {
            let macros = made.macros.fingerprint();
            let Preprocessed { text, map, words, undecided, problems, .. } = made;
            format!("{:?}", (text, map, words, undecided, problems, macros, &made.include_sites))
        };
        let mut made = run_after(&text, None);
        for (at, length, shard) in edits {
            let earlier = text.clone();
            let boundary = |mut at: usize| {
                while !earlier.is_char_boundary(at) {
                    at -= 1;
                }
                at
            };
            let start = boundary(usize::from(at) % (text.len() + 1));
            let end = boundary(text.len().min(start + usize::from(length)));
            text.replace_range(start..end, SHARDS[shard]);
            let quiet = &made.quiet;
            let after = run_after(&text, Some(EarlierText { text: &earlier, quiet }));
            prop_assert_eq!(all(&after), all(&run_after(&text, None)), "{}\nthen\n{}", earlier, text);
            made = after;
        }
    }

    #[test]
    fn a_text_without_directives_and_uses_is_kept(text in "[a-z_(){};,<>+*/\"'\\\\ \n\t0-9äß.:=&|-]{0,300}") {
        let made = run(&text);
        let open = left_open::left_open(&text);
        prop_assert_eq!(made.text.as_str(), left_open::without(&text, &open));
        prop_assert_eq!(made.map.is_verbatim(0..text.len()), open.is_empty());
    }

    #[test]
    fn positions_go_there_and_back(numbers in vec(any::<u16>(), 0..400)) {
        let text = program(&numbers);
        let made = run(&text);
        for output in 0..=made.text.len() {
            let source = made.map.to_source(output);
            prop_assert!(source <= text.len());
            let range = made.map.source_range(output..(output + 1).min(made.text.len()));
            prop_assert!(range.contains(&source) || range.is_empty());
        }
        for source in 0..=text.len() {
            if let Some(output) = made.map.to_output(source) {
                prop_assert!(output <= made.text.len());
                let there = made.map.source_range(output..(output + 1).min(made.text.len()));
                prop_assert!(there.contains(&source) || source == text.len());
            }
        }
    }
}

/// The result, and how long it took; the best of up to four runs if the first takes longer than `bound`.
fn timed(text: &str, bound: Duration) -> (Preprocessed, Duration) {
    let mut best = Duration::MAX;
    let mut made = Preprocessed::default();
    for _ in 0..4 {
        let start = Instant::now();
        made = run_bare(text);
        best = best.min(start.elapsed());
        if best < bound {
            break;
        }
    }
    (made, best)
}

/// Generous: these bounds are met tenfold when optimised.
const A_MOMENT: Duration = Duration::from_millis(if cfg!(debug_assertions) { 1500 } else { 50 });

#[test]
fn macros_that_blow_up_are_bounded() {
    let doubling: String = (0..40).fold("#define M0 x x\n".to_owned(), |text, level| {
        text + &format!("#define M{} M{level} M{level}\n", level + 1)
    });
    let silent = doubling.replace("x x", "");
    let nested = |text: &str, name: &str, count: usize| {
        format!("{text}{}1{}", name.repeat(count), ")".repeat(count))
    };
    let chain: String = (0..5000).fold(String::new(), |text, level| {
        text + &format!("#define M{level} M{}\n", level + 1)
    });
    let bombs = [
        format!("{doubling}int a = M40;"),
        format!("{silent}int a = M40;"),
        nested("#define F(x) x x\n", "F(", 60),
        nested("#define F(x) #x #x\n#define G(x) F(x)\n", "G(", 100),
        nested("#define F(x) x##x\n#define G(x) F(x)\n", "G(", 100),
        nested("#define F(x) x\n", "F(", 30_000),
        format!("{chain}M0"),
        "#define A(x) B(x) B(x)\n#define B(x) A(x) A(x)\n#define L (\nA L A(A(A(A(A(A(A(A(A(1)))))))))))".to_owned(),
        "#define A _Pragma(\"unroll A\")\nA".to_owned(),
        "#define F(x) F\n".to_owned() + &"F(1)(2)".repeat(1000),
        "#define E\n#define D(x) x E\n#define EVAL(x) E1(E1(E1(E1(E1(x)))))\n#define E1(x) E2(E2(E2(E2(E2(x)))))\n#define E2(x) E3(E3(E3(E3(E3(x)))))\n#define E3(x) E4(E4(E4(E4(E4(x)))))\n#define E4(x) E5(E5(E5(E5(E5(x)))))\n#define E5(x) x\n#define R(x) x x D(R2)()(x)\n#define R2() R\nEVAL(R(y))".to_owned(),
    ];
    for bomb in &bombs {
        let (made, time) = timed(bomb, A_MOMENT);
        assert!(
            time < A_MOMENT,
            "{time:?} for {:.80}",
            &bomb[bomb.len().saturating_sub(80)..]
        );
        assert!(made.text.len() < (1 << 20));
        check(bomb, &made);
    }
    let (made, _) = timed(&bombs[0], A_MOMENT);
    assert!(made.text.ends_with("int a = M40;"));
    assert_eq!(made.problems.len(), 1);
    assert_eq!(
        made.problems[0].message,
        "M40 expands to too much and is left as it is"
    );
}

#[test]
fn long_texts_take_time_in_proportion() {
    // Each is a piece that repeated could make every look forwards or backwards go over all the rest.
    for (head, piece) in [
        ("", "(((((((("),
        ("#define F(x) x\n", "F(("),
        ("#define F(x) x\n", "F( "),
        ("#define F(x, y) x\n", "F\n"),
        ("#define F(x) x\n", "F /* */ "),
        ("", "__launch_bounds__("),
        ("#define L __launch_bounds__\n", "L("),
        ("", "# "),
        ("", "/* */ # "),
        ("", "R\"("),
        ("", "R\"x"),
        ("", "\"\\"),
        ("", "/*"),
        ("", "\\\n"),
        ("", "#if X\n"),
        ("", "#if 0\n"),
        ("", "#ifndef X\n#define Y\n"),
        ("#if X == 1\n", "#elif X == 2\n"),
        ("#if X0\n", "#elif defined X && Y > 2\n#include <a>\n"),
        ("", "#define A \\\n"),
        ("", "#define A A A\nA "),
        ("#define A __LINE__\n", "A\n"),
        ("#define A _Pragma(\"unroll 2\")\n", "A\n"),
        ("#define F(x) x\nF(", "\n#define A 1\n A"),
        ("", "#include <x>\n{"),
        (
            "#define F(x) x x x x x x x x x x x x x x x x\n",
            "F(F(F(1)))\n",
        ),
        ("#define F(...) __VA_ARGS__\n", "F(1,"),
        ("", "#endif\n"),
        ("#define F(x) x\n", "F(\n#if 1\n"),
        ("#define F(x) x\n", "#if 1\nF(\n#endif\n"),
    ] {
        let text = head.to_owned() + &piece.repeat((1 << 18) / piece.len());
        // A quarter of a MiB in the time that the bounds on expansion allow.
        let bound = Duration::from_millis(if cfg!(debug_assertions) { 15_000 } else { 600 });
        let (made, time) = timed(&text, bound);
        assert!(time < bound, "{time:?} for {head}{piece}");
        assert!(made.text.len() < (32 << 20));
    }
}
