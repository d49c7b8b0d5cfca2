//! Generated kernels: what the analysis calls exact must be what a run counts.
//!
//! `WARPLENS_ORACLE_CASES=20000` runs more of them than the default, `WARPLENS_ORACLE_SEED=1` others; counter-examples that were found stand in
//! `tests/oracle/found` and are run each time.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use crate::against::Case;
use crate::drawn::{passed, runner};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use warplens_oracle::{Argument, Dialect, Launch};

/// An expression of any integer type.
#[derive(Debug, Clone)]
enum Expr {
    /// As it is written.
    Leaf(&'static str),
    /// A variable or a counter in scope, by number, counted from the innermost; a constant where there is none.
    Name(usize),
    Const(i64, &'static str),
    Unary(&'static str, Box<Expr>),
    Cast(&'static str, Box<Expr>),
    Binary(&'static str, Box<Expr>, Box<Expr>),
    /// `min`, `max`, `__mul24` …
    Call(&'static str, Box<Expr>, Box<Expr>),
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
}

#[derive(Debug, Clone)]
enum Stmt {
    /// `out[e] = in[e];` by the number of the element's type.
    Copy(usize, Expr, Expr),
    /// `out[e] += 1;`
    Add(usize, Expr),
    /// Shared memory: written or read.
    Shared(bool, bool, Expr),
    If(Expr, Vec<Stmt>, Vec<Stmt>),
    /// Start, bound, step or factor, shape, body.
    Loop(Expr, Expr, i64, Shape, Vec<Stmt>),
    Return(Expr),
    /// `break` or `continue` on a condition; outside loops nothing.
    Leave(bool, Expr),
    Switch(Expr, Vec<(i64, bool, Vec<Stmt>)>, Vec<Stmt>),
    Declare(&'static str, Expr),
    /// Of a variable in scope, by number.
    Change(usize, &'static str, Expr),
}

#[derive(Debug, Clone, Copy)]
enum Shape {
    /// `for (int i = a; i < b; i += s)`
    Up,
    /// `for (unsigned i = a; i <= b; i += s)`
    UpUnsigned,
    /// `for (int i = a; i > b; i -= s)`
    Down,
    /// `for (int i = s; i < b; i *= 2)`
    Double,
    /// `for (int i = a; i > 0; i >>= 1)`
    Halve,
    /// `int i = a; while (i < b) { …; i += s; }`
    While,
    /// `int i = a; do { … } while ((i += s) < b);`
    Do,
    /// `int i = a; while (i-- > b) { … }`
    Count,
}

/// Bytes 1, 2, 4, 8, 16.
const ELEMENTS: [&str; 5] = ["char", "short", "float", "double", "float4"];
const STEPS: u64 = 400_000;

#[derive(Debug, Clone, Copy, PartialEq)]
enum NameKind {
    Variable,
    Counter,
}

/// The names in scope and the next one.
struct Writer {
    names: Vec<(String, NameKind)>,
    next: usize,
    loops: usize,
    out: String,
}

impl Writer {
    fn fresh(&mut self, kind: NameKind) -> String {
        self.next += 1;
        let name = format!("v{}", self.next);
        self.names.push((name.clone(), kind));
        name
    }

    fn expr(&self, expr: &Expr) -> String {
        match expr {
            Expr::Leaf(text) => (*text).to_owned(),
            Expr::Name(which) => match self.names.len() {
                0 => "3".to_owned(),
                count => self.names[count - 1 - which % count].0.clone(),
            },
            Expr::Const(value, suffix) if *value < 0 => format!("({value}{suffix})"),
            Expr::Const(value, suffix) => format!("{value}{suffix}"),
            Expr::Unary(op, a) => format!("({op}{})", self.expr(a)),
            Expr::Cast(ty, a) => format!("(({ty}){})", self.expr(a)),
            Expr::Binary(op, a, b) => format!("({} {op} {})", self.expr(a), self.expr(b)),
            Expr::Call(name, a, b) => {
                format!("{name}((int){}, (int){})", self.expr(a), self.expr(b))
            }
            Expr::Select(c, a, b) => {
                format!("({} ? {} : {})", self.expr(c), self.expr(a), self.expr(b))
            }
        }
    }

    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "  {text}");
    }

    fn body(&mut self, statements: &[Stmt]) {
        let names = self.names.len();
        for statement in statements {
            self.statement(statement);
        }
        self.names.truncate(names);
    }

    fn statement(&mut self, statement: &Stmt) {
        match statement {
            Stmt::Copy(ty, to, from) => {
                let (to, from) = (self.expr(to), self.expr(from));
                self.line(&format!("out{ty}[{to}] = in{ty}[{from}];"));
            }
            Stmt::Add(ty, at) => {
                // Vectors have no operators.
                let (ty, at) = (ty % 4, self.expr(at));
                self.line(&format!("out{ty}[{at}] += 1;"));
            }
            Stmt::Shared(wide, store, at) => {
                let (name, at) = (if *wide { "wide" } else { "tile" }, self.expr(at));
                self.line(&if *store {
                    format!("{name}[{at}] = 1;")
                } else {
                    format!("sum += {name}[{at}];")
                });
            }
            Stmt::If(condition, then, otherwise) => {
                let condition = self.expr(condition);
                self.line(&format!("if ({condition}) {{"));
                self.body(then);
                if !otherwise.is_empty() {
                    self.line("} else {");
                    self.body(otherwise);
                }
                self.line("}");
            }
            Stmt::Loop(from, to, step, shape, body) => {
                let (from, to) = (self.expr(from), self.expr(to));
                let names = self.names.len();
                let v = self.fresh(NameKind::Counter);
                let mut end = "}".to_owned();
                let head = match shape {
                    Shape::Up => format!("for (int {v} = {from}; {v} < {to}; {v} += {step}) {{"),
                    Shape::UpUnsigned => {
                        format!("for (unsigned {v} = {from}; {v} <= {to}; {v} += {step}) {{")
                    }
                    Shape::Down => format!("for (int {v} = {from}; {v} > {to}; {v} -= {step}) {{"),
                    Shape::Double => format!("for (int {v} = {step}; {v} < {to}; {v} *= 2) {{"),
                    Shape::Halve => format!("for (int {v} = {from}; {v} > 0; {v} >>= 1) {{"),
                    Shape::While => {
                        self.line(&format!("int {v} = {from};"));
                        end = format!("{v} += {step}; }}");
                        format!("while ({v} < {to}) {{")
                    }
                    Shape::Count => {
                        self.line(&format!("int {v} = {from};"));
                        format!("while ({v}-- > {to}) {{")
                    }
                    Shape::Do => {
                        self.line(&format!("int {v} = {from};"));
                        end = format!("}} while (({v} += {step}) < {to});");
                        "do {".to_owned()
                    }
                };
                self.line(&head);
                self.loops += 1;
                self.body(body);
                self.loops -= 1;
                self.line(&end);
                if !matches!(shape, Shape::While | Shape::Do | Shape::Count) {
                    self.names.truncate(names);
                }
            }
            Stmt::Return(condition) => {
                let condition = self.expr(condition);
                self.line(&format!("if ({condition}) return;"));
            }
            Stmt::Leave(stop, condition) => {
                let condition = self.expr(condition);
                if self.loops > 0 {
                    let word = if *stop { "break" } else { "continue" };
                    self.line(&format!("if ({condition}) {word};"));
                }
            }
            Stmt::Switch(value, parts, default) => {
                let value = self.expr(value);
                self.line(&format!("switch ((int){value}) {{"));
                // `break` and `continue` in it would mean something else.
                let loops = std::mem::take(&mut self.loops);
                let mut seen = Vec::new();
                for (label, falls, body) in parts {
                    if !seen.contains(label) {
                        seen.push(*label);
                        self.line(&format!("case {label}: {{"));
                        self.body(body);
                        self.line(if *falls { "}" } else { "} break;" });
                    }
                }
                self.line("default: {");
                self.body(default);
                self.line("} }");
                self.loops = loops;
            }
            Stmt::Declare(ty, value) => {
                let value = self.expr(value);
                let name = self.fresh(NameKind::Variable);
                self.line(&format!("{ty} {name} = {value};"));
            }
            Stmt::Change(which, op, value) => {
                let value = self.expr(value);
                let variables: Vec<&String> = self
                    .names
                    .iter()
                    .filter(|(_, kind)| *kind == NameKind::Variable)
                    .map(|(name, _)| name)
                    .collect();
                if let Some(count) = variables.len().checked_sub(1) {
                    let name = variables[count - which % (count + 1)].clone();
                    self.line(&format!("{name} {op} {value};"));
                }
            }
        }
    }
}

fn text_of(body: &[Stmt]) -> String {
    let mut writer = Writer {
        names: Vec::new(),
        next: 0,
        loops: 0,
        out: String::new(),
    };
    writer.body(body);
    let mut text = String::from("__global__ void k(");
    for (which, ty) in ELEMENTS.iter().enumerate() {
        let _ = write!(text, "const {ty}* in{which}, {ty}* out{which}, ");
    }
    text.push_str("int n, unsigned u, long long w) {\n  __shared__ float tile[1024];\n  __shared__ double wide[512];\n  double sum = 0;\n");
    text + &writer.out + "  out3[0] = sum;\n}\n"
}

fn expr() -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![
        6 => prop::sample::select(vec![
            "(int)threadIdx.x", "threadIdx.x", "(int)threadIdx.x", "threadIdx.y", "threadIdx.z",
            "(int)blockIdx.x", "blockIdx.x", "blockIdx.y", "blockDim.x", "(int)gridDim.x",
        ]).prop_map(Expr::Leaf),
        2 => prop::sample::select(vec!["n", "n", "u", "w"]).prop_map(Expr::Leaf),
        3 => (0usize..4).prop_map(Expr::Name),
        3 => (prop_oneof![0i64..9, Just(16), Just(31), Just(32), Just(33), Just(64), Just(100), Just(-1), Just(-5), Just(255), Just(1024)],
              prop::sample::select(vec!["", "", "", "u", "ll"]))
            .prop_map(|(value, suffix)| Expr::Const(value, if value < 0 && suffix == "u" { "" } else { suffix })),
    ];
    leaf.prop_recursive(3, 14, 2, |inner| {
        let ops = prop::sample::select(vec![
            "+", "+", "+", "+", "-", "-", "*", "*", "*", "/", "%", "%", "&", "|", "^", "<<", ">>", "<", "<=",
            ">", ">=", "==", "!=", "&&", "||",
        ]);
        let calls = prop::sample::select(vec!["min", "max", "__mul24"]);
        let types = prop::sample::select(vec![
            "int", "unsigned", "long long", "unsigned char", "short", "unsigned short", "signed char",
        ]);
        prop_oneof![
            12 => (ops, inner.clone(), inner.clone())
                .prop_map(|(op, a, b)| Expr::Binary(op, Box::new(a), Box::new(b))),
            1 => (calls, inner.clone(), inner.clone()).prop_map(|(name, a, b)| Expr::Call(name, Box::new(a), Box::new(b))),
            1 => (prop::sample::select(vec!["-", "~", "!"]), inner.clone()).prop_map(|(op, a)| Expr::Unary(op, Box::new(a))),
            2 => (types, inner.clone()).prop_map(|(ty, a)| Expr::Cast(ty, Box::new(a))),
            1 => (inner.clone(), inner.clone(), inner)
                .prop_map(|(c, a, b)| Expr::Select(Box::new(c), Box::new(a), Box::new(b))),
        ]
    })
}

fn statements() -> impl Strategy<Value = Vec<Stmt>> {
    let leaf = prop_oneof![
        6 => (0usize..5, expr(), expr()).prop_map(|(ty, a, b)| Stmt::Copy(ty, a, b)),
        2 => (0usize..5, expr()).prop_map(|(ty, a)| Stmt::Add(ty, a)),
        3 => (any::<bool>(), any::<bool>(), expr()).prop_map(|(wide, store, a)| Stmt::Shared(wide, store, a)),
        1 => expr().prop_map(Stmt::Return),
        1 => (any::<bool>(), expr()).prop_map(|(stop, a)| Stmt::Leave(stop, a)),
        2 => (prop::sample::select(vec!["int", "unsigned", "long long", "short", "unsigned char"]), expr())
            .prop_map(|(ty, a)| Stmt::Declare(ty, a)),
        1 => (0usize..3, prop::sample::select(vec!["=", "+=", "+=", "-=", "*=", "^=", "<<=", ">>="]), expr())
            .prop_map(|(which, op, a)| Stmt::Change(which, op, a)),
    ];
    let statement = leaf.prop_recursive(3, 12, 3, |inner| {
        let body = prop::collection::vec(inner, 1..4);
        let shape = prop::sample::select(vec![
            Shape::Up,
            Shape::Up,
            Shape::UpUnsigned,
            Shape::Down,
            Shape::Double,
            Shape::Halve,
            Shape::While,
            Shape::Do,
            Shape::Count,
        ]);
        prop_oneof![
            3 => (expr(), body.clone(), prop_oneof![2 => Just(Vec::new()), 1 => body.clone()])
                .prop_map(|(c, a, b)| Stmt::If(c, a, b)),
            4 => (expr(), expr(), 1i64..5, shape, body.clone())
                .prop_map(|(a, b, step, shape, body)| Stmt::Loop(a, b, step, shape, body)),
            1 => (expr(), prop::collection::vec((0i64..6, any::<bool>(), body.clone()), 1..3), body)
                .prop_map(|(value, parts, default)| Stmt::Switch(value, parts, default)),
        ]
    });
    prop::collection::vec(statement, 1..5)
}

fn launches() -> impl Strategy<Value = (Launch, BTreeMap<String, i64>)> {
    let blocks = prop::sample::select(vec![
        [32u32, 1, 1],
        [64, 1, 1],
        [16, 4, 1],
        [8, 8, 1],
        [48, 1, 1],
        [7, 5, 1],
        [100, 1, 1],
        [4, 4, 4],
        [5, 3, 2],
        [33, 2, 1],
        [1, 32, 1],
        [128, 1, 1],
        [16, 16, 1],
    ]);
    (blocks, 1u32..5, 1u32..3, 0i64..70, 0i64..200, -3i64..1000).prop_map(
        |(block, gx, gy, n, u, w)| {
            let launch = Launch {
                grid: [gx, gy, 1],
                block,
                checked: false,
                steps: STEPS,
                ..Launch::default()
            };
            let scalars =
                [("n", n), ("u", u), ("w", w)].map(|(name, value)| (name.to_owned(), value));
            (launch, scalars.into())
        },
    )
}

/// Three numbers behind a word of a directive.
fn triple(text: &str, word: &str) -> [u32; 3] {
    let from = text.find(word).expect("the directive has it") + word.len();
    let end = from + text[from..].find(')').expect("a closing parenthesis");
    let mut numbers = text[from..end]
        .split(',')
        .map(|part| part.parse().expect("a number"));
    [(); 3].map(|()| numbers.next().expect("three numbers"))
}

#[test]
fn counter_examples_that_were_found_stay_mended() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/oracle/found");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).expect("the folder") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("a text");
        let scalars: BTreeMap<String, i64> = ["n", "u", "w"]
            .into_iter()
            .map(|name| {
                let value = text
                    .split_whitespace()
                    .find_map(|word| word.strip_prefix(&format!("{name}=")));
                let value = value.expect("an argument").parse().expect("a number");
                (name.to_owned(), value)
            })
            .collect();
        let case = Case {
            text: &text,
            dialect: Dialect::Cuda,
            kernel: "k",
            launch: Launch {
                block: triple(&text, "block=("),
                grid: triple(&text, "grid=("),
                checked: false,
                steps: STEPS,
                ..Launch::default()
            },
            arguments: [Argument::Endless, Argument::Endless]
                .into_iter()
                .chain(["n", "u", "w"].map(|name| Argument::Int(scalars[name])))
                .collect(),
            scalars,
        };
        let outcome = case
            .compare()
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(outcome.wrong, Vec::<String>::new(), "{}", path.display());
        seen += 1;
    }
    assert!(seen >= 15, "{seen} counter-examples");
}

fn case<'a>(text: &'a str, launch: &Launch, scalars: &BTreeMap<String, i64>) -> Case<'a> {
    let mut arguments = vec![Argument::Endless; 2 * ELEMENTS.len()];
    arguments.extend(["n", "u", "w"].map(|name| Argument::Int(scalars[name])));
    Case {
        text,
        dialect: Dialect::Cuda,
        kernel: "k",
        launch: launch.clone(),
        scalars: scalars.clone(),
        arguments,
    }
}

#[test]
fn what_is_called_exact_is_what_a_run_counts() {
    let (listed, exact) = (Cell::new(0usize), Cell::new(0usize));
    let mut runner = runner(7, 700);
    let result = runner.run(&(statements(), launches()), |(body, (launch, scalars))| {
        let text = text_of(&body);
        let outcome = case(&text, &launch, &scalars)
            .compare()
            .map_err(TestCaseError::reject)?;
        listed.set(listed.get() + outcome.listed);
        exact.set(exact.get() + outcome.exact);
        prop_assert!(
            outcome.wrong.is_empty(),
            "\n// warplens: block=({},{},{}) grid=({},{},{}) n={} u={} w={}\n{text}{}",
            launch.block[0],
            launch.block[1],
            launch.block[2],
            launch.grid[0],
            launch.grid[1],
            launch.grid[2],
            scalars["n"],
            scalars["u"],
            scalars["w"],
            outcome.wrong.join("\n")
        );
        Ok(())
    });
    let (listed, exact) = (listed.get(), exact.get());
    eprintln!("{exact} of {listed} accesses and branches are exact");
    passed(result);
    // Nothing is gained by calling nothing exact.
    assert!(exact * 100 >= listed * 99, "{exact} of {listed} are exact");
}
