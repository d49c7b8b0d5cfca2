//! Generated kernels as `generated.rs` makes them, of more kinds: wider and narrower types, structures, moving pointers, arrays in
//! several dimensions, atomics, barriers, functions with several returns in expressions and in the tests of loops, on GPUs whose
//! warps are not 32 lanes in one piece.
//!
//! `WARPLENS_ORACLE_CASES` and `WARPLENS_ORACLE_SEED` are those of `generated.rs`, and so is the folder of counter-examples.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::against::{Case, Target};
use crate::drawn::{passed, runner};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use warplens_oracle::{Argument, Dialect, Launch, Run};

/// An expression: a form with its parts at `$0`, `$1` …
#[derive(Debug, Clone)]
enum Expr {
    /// A variable or counter in scope, by number, counted from the innermost.
    Name(usize),
    Const(i64, &'static str),
    Form(&'static str, Vec<Expr>),
}

/// A statement: a form with expressions at `$0`, a new counter at `@`, a variable in scope at `~` and a body at each `|`.
#[derive(Debug, Clone)]
enum Stmt {
    Form(&'static str, usize, Vec<Expr>, Vec<Vec<Stmt>>),
    /// A new variable.
    Declare(&'static str, Expr),
    /// `break` or `continue` on a condition; outside loops nothing.
    Leave(bool, Expr),
}

const STEPS: u64 = 400_000;

/// The functions that kernels call, and what is before every body.
const FUNCTIONS: &str = "\
struct Pair { int a; unsigned b; long long c; short d; };
__device__ int pick(int a, int b) {
  if (a > b) return a - b;
  switch (b & 3) { case 0: return a; case 1: a += 2; default: break; }
  return a * 2;
}
__device__ int first(int a, int b) {
  for (int i = 0; i < 4; i++) {
    if (i * a > b) return i;
  }
  return -1;
}
__device__ bool inside(int a, int b) {
  if (a < 0) return false;
  if (b < 0 || a == 3) return true;
  return a < b;
}
__device__ unsigned long long shrink(unsigned long long a, int b) {
  while (a > 40) {
    if (b & 1) return a;
    a >>= 1;
    b >>= 1;
  }
  return a + 1;
}
__device__ int nested(int a, int b) {
  if (inside(a, b)) return pick(a, b);
  return first(b, a & 7);
}
";

const HEAD: &str = "\
  __shared__ float tile[16][17];
  __shared__ int cube[4][5][6];
  __shared__ double wide[256];
  double sum = 0;
  int m = n;
  bool f = u > 3;
  unsigned long long z = w;
  Pair s = {n, u, w, 2};
  int own[4] = {1, n, (int)threadIdx.x, 0};
  const float* p = in2 + threadIdx.x;
  short* q = out1;
";

const POINTERS: [&str; 12] = [
    "const char* in0",
    "const short* in1",
    "const float* in2",
    "const double* in3",
    "const float4* in4",
    "char* out0",
    "short* out1",
    "float* out2",
    "double* out3",
    "float4* out4",
    "int* total",
    "Pair* items",
];

/// The names in scope and the next one.
struct Writer {
    names: Vec<String>,
    /// Those of them that may be changed.
    variables: Vec<String>,
    next: usize,
    loops: usize,
    out: String,
}

impl Writer {
    fn fresh(&mut self) -> String {
        self.next += 1;
        let name = format!("v{}", self.next);
        self.names.push(name.clone());
        name
    }

    fn expr(&self, expr: &Expr) -> String {
        match expr {
            Expr::Name(which) => {
                let count = self.names.len();
                self.names[count - 1 - which % count].clone()
            }
            Expr::Const(value, suffix) if *value < 0 => format!("({value}{suffix})"),
            Expr::Const(value, suffix) => format!("{value}{suffix}"),
            Expr::Form(form, parts) => self.filled(form, parts, "", ""),
        }
    }

    fn filled(&self, form: &str, parts: &[Expr], counter: &str, variable: &str) -> String {
        let mut out = String::new();
        let mut letters = form.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '$' => {
                    let which = letters.next().and_then(|digit| digit.to_digit(10));
                    out += &self.expr(&parts[which.expect("a number behind `$`") as usize]);
                }
                '@' => out += counter,
                '~' => out += variable,
                letter => out.push(letter),
            }
        }
        out
    }

    fn body(&mut self, statements: &[Stmt]) {
        let (names, variables) = (self.names.len(), self.variables.len());
        for statement in statements {
            self.statement(statement);
        }
        self.names.truncate(names);
        self.variables.truncate(variables);
    }

    fn statement(&mut self, statement: &Stmt) {
        match statement {
            Stmt::Form(form, which, parts, bodies) => {
                let names = self.names.len();
                let variable = self.variables[which % self.variables.len()].clone();
                // The counter is in scope in the bodies and in what is before them, but for where it starts.
                let looping = form.contains('@');
                let before: Vec<Expr> = parts.clone();
                let counter = if looping {
                    self.next += 1;
                    format!("v{}", self.next)
                } else {
                    String::new()
                };
                let pieces: Vec<String> = form
                    .split('|')
                    .map(|piece| self.filled(piece, &before, &counter, &variable))
                    .collect();
                if looping {
                    self.names.push(counter);
                }
                // `break` in a `switch` would mean something else.
                let loops = self.loops;
                if looping {
                    self.loops += 1;
                } else if form.starts_with("switch") {
                    self.loops = 0;
                }
                for (at, piece) in pieces.iter().enumerate() {
                    let _ = writeln!(self.out, "  {piece}");
                    if let Some(body) = bodies.get(at).filter(|_| at + 1 < pieces.len()) {
                        self.body(body);
                    }
                }
                self.loops = loops;
                self.names.truncate(names);
            }
            Stmt::Declare(ty, value) => {
                let value = self.expr(value);
                let name = self.fresh();
                self.variables.push(name.clone());
                let _ = writeln!(self.out, "  {ty} {name} = {value};");
            }
            Stmt::Leave(stop, condition) => {
                let condition = self.expr(condition);
                if self.loops > 0 {
                    let word = if *stop { "break" } else { "continue" };
                    let _ = writeln!(self.out, "  if ({condition}) {word};");
                }
            }
        }
    }
}

fn text_of(body: &[Stmt]) -> String {
    let known = ["m", "f", "z", "s.a", "s.b", "s.c", "s.d"].map(str::to_owned);
    let mut writer = Writer {
        names: known.to_vec(),
        variables: known.to_vec(),
        next: 0,
        loops: 0,
        out: String::new(),
    };
    writer.body(body);
    let parameters = POINTERS.join(", ");
    format!(
        "{FUNCTIONS}__global__ void k({parameters}, int n, unsigned u, long long w) {{\n{HEAD}{}  out3[0] = sum;\n}}\n",
        writer.out
    )
}

/// A form and how many parts it takes.
type Form = (&'static str, usize);

fn form_of(
    forms: Vec<Form>,
    inner: impl Strategy<Value = Expr> + Clone,
) -> impl Strategy<Value = Expr> {
    (prop::sample::select(forms), prop::collection::vec(inner, 3)).prop_map(
        |((form, count), mut parts)| {
            parts.truncate(count);
            Expr::Form(form, parts)
        },
    )
}

fn expr() -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![
        6 => prop::sample::select(vec![
            "(int)threadIdx.x", "threadIdx.x", "(int)threadIdx.x", "threadIdx.y", "threadIdx.z",
            "(int)blockIdx.x", "blockIdx.x", "blockIdx.y", "blockIdx.z", "blockDim.x", "(int)gridDim.x", "(int)blockDim.y",
        ]).prop_map(|text| Expr::Form(text, Vec::new())),
        2 => prop::sample::select(vec!["n", "n", "u", "w", "f", "s.a", "s.d", "m", "true"]).prop_map(|text| Expr::Form(text, Vec::new())),
        3 => (0usize..10).prop_map(Expr::Name),
        3 => (prop_oneof![0i64..9, Just(16), Just(31), Just(32), Just(33), Just(64), Just(100), Just(-1), Just(-5), Just(255), Just(1024)],
              prop::sample::select(vec!["", "", "", "u", "ll", "ull"]))
            .prop_map(|(value, suffix)| Expr::Const(value, if value < 0 && suffix.starts_with('u') { "" } else { suffix })),
    ];
    leaf.prop_recursive(3, 14, 3, |inner| {
        prop_oneof![
            12 => form_of(vec![
                ("($0 + $1)", 2), ("($0 + $1)", 2), ("($0 + $1)", 2), ("($0 - $1)", 2), ("($0 * $1)", 2),
                ("($0 * $1)", 2), ("($0 / $1)", 2), ("($0 % $1)", 2), ("($0 & $1)", 2), ("($0 | $1)", 2),
                ("($0 ^ $1)", 2), ("($0 << $1)", 2), ("($0 >> $1)", 2), ("($0 < $1)", 2), ("($0 <= $1)", 2),
                ("($0 > $1)", 2), ("($0 == $1)", 2), ("($0 != $1)", 2), ("($0 && $1)", 2), ("($0 || $1)", 2),
            ], inner.clone()),
            2 => form_of(vec![
                ("(-$0)", 1), ("(~$0)", 1), ("(!$0)", 1), ("own[$0 & 3]", 1), ("((bool)$0)", 1), ("((int)$0)", 1),
                ("((unsigned)$0)", 1), ("((unsigned long long)$0)", 1), ("((long long)$0)", 1), ("((short)$0)", 1),
                ("((unsigned char)$0)", 1), ("($0 ? $1 : $2)", 3),
            ], inner.clone()),
            2 => form_of(vec![
                ("pick($0, $1)", 2), ("first($0, $1)", 2), ("inside($0, $1)", 2), ("shrink($0, $1)", 2), ("nested($0, $1)", 2),
                ("min((int)$0, (int)$1)", 2), ("max((int)$0, (int)$1)", 2),
            ], inner),
        ]
    })
}

/// Barriers among branches, loops and returns.
fn meetings() -> impl Strategy<Value = Vec<Stmt>> {
    let leaf = prop_oneof![
        5 => Just(Stmt::Form("__syncthreads();", 0, Vec::new(), Vec::new())),
        1 => expr().prop_map(|a| Stmt::Form("if ($0) return;", 0, vec![a], Vec::new())),
        1 => (any::<bool>(), expr()).prop_map(|(stop, a)| Stmt::Leave(stop, a)),
        1 => (0usize..12, expr()).prop_map(|(which, a)| Stmt::Form("~ += $0;", which, vec![a], Vec::new())),
    ];
    let statement = leaf.prop_recursive(3, 8, 2, |inner| {
        let around = prop::sample::select(vec![
            ("if ($0) {|}", 1, 1),
            ("if ($0) {|}", 1, 1),
            ("if ($0) {|} else {|}", 1, 2),
            ("for (int @ = 0; @ < $0; ++@) {|}", 1, 1),
            ("for (int @ = 8; @ > 0; @ >>= 1) {|}", 0, 1),
            ("{ int @ = $0; do {|} while (++@ < $1); }", 2, 1),
            (
                "switch ((int)$0 & 3) { case 1: {|} break; default: {|} }",
                1,
                2,
            ),
        ]);
        let body = prop::collection::vec(inner, 1..3);
        (
            around,
            prop::collection::vec(expr(), 2),
            prop::collection::vec(body, 2),
        )
            .prop_map(|((form, count, of), mut parts, mut bodies)| {
                parts.truncate(count);
                bodies.truncate(of);
                Stmt::Form(form, 0, parts, bodies)
            })
    });
    prop::collection::vec(statement, 1..4)
}

fn statements() -> impl Strategy<Value = Vec<Stmt>> {
    let plain = prop::sample::select(vec![
        ("out0[$0] = in0[$1];", 2),
        ("out1[$0] = in1[$1];", 2),
        ("out2[$0] = in2[$1];", 2),
        ("out3[$0] = in3[$1];", 2),
        ("out4[$0] = in4[$1];", 2),
        ("out2[$0] += 1;", 1),
        ("tile[$0][$1] = 1;", 2),
        ("sum += tile[$0][$1];", 2),
        ("cube[$0][$1][$2] = 1;", 3),
        ("sum += cube[$0][$1][$2];", 3),
        ("wide[$0] = 1;", 1),
        ("sum += wide[$0];", 1),
        ("items[$0].b = 1;", 1),
        ("sum += items[$0].c;", 1),
        ("items[$0].d += 1;", 1),
        ("p += $0;", 1),
        ("p++;", 0),
        ("sum += *p++;", 0),
        ("sum += p[$0];", 1),
        ("*q++ = 1;", 0),
        ("*--q = 1;", 0),
        ("q -= $0;", 1),
        ("q[$0] = 1;", 1),
        ("own[$0 & 3] = $1;", 2),
        ("own[$0 & 3] += $1;", 2),
        ("atomicAdd(&total[$0], 1);", 1),
        ("atomicMax(total + $0, 1);", 1),
        ("atomicAdd(&cube[$0][$1][$2], 1);", 3),
        ("__syncthreads();", 0),
        ("if ($0) return;", 1),
        ("~ = $0;", 1),
        ("~ += $0;", 1),
        ("~ += 1;", 0),
        ("~ -= $0;", 1),
        ("~ *= $0;", 1),
        ("~ ^= $0;", 1),
        ("~ >>= $0;", 1),
        ("~ <<= 1;", 0),
    ]);
    let leaf = prop_oneof![
        16 => (plain, 0usize..12, prop::collection::vec(expr(), 3))
            .prop_map(|((form, count), which, mut parts)| { parts.truncate(count); Stmt::Form(form, which, parts, Vec::new()) }),
        1 => (any::<bool>(), expr()).prop_map(|(stop, a)| Stmt::Leave(stop, a)),
        2 => (prop::sample::select(vec!["int", "unsigned", "long long", "unsigned long long", "short", "unsigned char", "bool"]), expr())
            .prop_map(|(ty, a)| Stmt::Declare(ty, a)),
    ];
    let statement = leaf.prop_recursive(3, 12, 3, |inner| {
        let around = prop::sample::select(vec![
            ("if ($0) {|}", 1, 1),
            ("if ($0) {|} else {|}", 1, 2),
            ("if ($0 && (m += 1) < $1) {|}", 2, 1),
            ("if ($0 || m++ > $1) {|} else {|}", 2, 2),
            ("if (($0 && s.a-- > 3) || $1) {|}", 2, 1),
            ("for (int @ = $0; @ < $1; @ += 3) {|}", 2, 1),
            ("for (int @ = 0; @ < $0; ++@) {|}", 1, 1),
            ("for (unsigned @ = $0; @ <= $1; @ += 2) {|}", 2, 1),
            ("for (int @ = $0; @ > $1; @ -= 2) {|}", 2, 1),
            ("for (unsigned long long @ = $0; @ < $1; @ += 5) {|}", 2, 1),
            ("for (int @ = 1; @ < $0; @ *= 2) {|}", 1, 1),
            (
                "for (unsigned @ = blockDim.x / 2; @ > 0; @ >>= 1) {|}",
                0,
                1,
            ),
            ("for (int @ = $0; @ > 0; @ /= 3) {|}", 1, 1),
            ("for (int @ = $0, j = $1; @ < j; @ += 2, --j) {|}", 2, 1),
            (
                "for (int @ = 0, j = $0; @ < $1 && j > 0; ++@, j >>= 1) {|}",
                2,
                1,
            ),
            ("for (int @ = 0; inside(@, $0); ++@) {|}", 1, 1),
            ("for (int @ = 0; @ < pick($0, $1); @ += 2) {|}", 2, 1),
            (
                "for (int @ = 0; @ < 3; ++@) { for (int j = @; j < nested($0, $1); j += 2) {|} }",
                2,
                1,
            ),
            (
                "for (int @ = 0; @ < $0; @ += 2) { for (int j = 0; inside(j, $1); ++j) {|} }",
                2,
                1,
            ),
            (
                "for (int @ = 0; @ < 4; ++@) { for (int j = 0; j <= @; ++j) {|} }",
                0,
                1,
            ),
            ("{ int @ = $0; while (@ < $1) {|@ += 2; } }", 2, 1),
            ("{ int @ = $0; while (@-- > $1) {|} }", 2, 1),
            ("{ int @ = $0; while (inside(@, $1) && @++ < 9) {|} }", 2, 1),
            ("{ int @ = $0; do {|} while (++@ < $1); }", 2, 1),
            (
                "{ int @ = $0; do {|@ += 2; } while (first(@, $1) > 0); }",
                2,
                1,
            ),
            (
                "{ unsigned long long @ = $0; do {|@ >>= 1; } while (@ != 0 && $1); }",
                2,
                1,
            ),
            (
                "switch ((int)$0) { case 0: {|} case 1: {|} break; case 5: {|} }",
                1,
                3,
            ),
            (
                "switch ((int)$0 & 3) { case 1: case 2: {|} break; default: {|} case 3: {|} }",
                1,
                3,
            ),
        ]);
        let body = prop::collection::vec(inner, 1..4);
        (
            around,
            0usize..12,
            prop::collection::vec(expr(), 2),
            prop::collection::vec(body, 3),
        )
            .prop_map(|((form, count, of), which, mut parts, mut bodies)| {
                parts.truncate(count);
                bodies.truncate(of);
                Stmt::Form(form, which, parts, bodies)
            })
    });
    prop::collection::vec(statement, 1..5)
}

/// A launch, the scalar arguments and the GPU.
type Setting = (Launch, BTreeMap<String, i64>, Target);

fn settings() -> impl Strategy<Value = Setting> {
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
        [1, 1, 40],
        [20, 1, 3],
        [128, 1, 1],
        [16, 16, 1],
    ]);
    let targets = prop::sample::select(vec![
        Target::Usual,
        Target::Usual,
        Target::Wave64,
        Target::HalfWarpSegments,
        Target::HalfWarpStrict,
    ]);
    let grids = (1u32..4, 1u32..3, prop::sample::select(vec![1u32, 1, 2]));
    (blocks, grids, targets, 0i64..70, 0i64..200, -3i64..1000).prop_map(
        |(block, (gx, gy, gz), target, n, u, w)| {
            let launch = Launch {
                grid: [gx, gy, gz],
                block,
                checked: false,
                warp: target.warp(),
                steps: STEPS,
                ..Launch::default()
            };
            let scalars =
                [("n", n), ("u", u), ("w", w)].map(|(name, value)| (name.to_owned(), value));
            (launch, scalars.into(), target)
        },
    )
}

fn case<'a>(text: &'a str, launch: &Launch, scalars: &BTreeMap<String, i64>) -> Case<'a> {
    let mut arguments = vec![Argument::Endless; POINTERS.len()];
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

fn directive(launch: &Launch, scalars: &BTreeMap<String, i64>, target: Target) -> String {
    format!(
        "// {target:?}\n// warplens: block=({},{},{}) grid=({},{},{}) n={} u={} w={}",
        launch.block[0],
        launch.block[1],
        launch.block[2],
        launch.grid[0],
        launch.grid[1],
        launch.grid[2],
        scalars["n"],
        scalars["u"],
        scalars["w"]
    )
}

#[test]
fn threads_that_surely_part_before_a_barrier_do() {
    let (parted, reported) = (Cell::new(0usize), Cell::new(0usize));
    let result = runner(11, 200).run(
        &(meetings(), settings()),
        |(body, (launch, scalars, target))| {
            let text = text_of(&body);
            let case = case(&text, &launch, &scalars);
            let run = case.run().map_err(TestCaseError::reject)?;
            if let Some(what) = run.undefined
                && what.what != Run::MISSED
            {
                return Err(TestCaseError::reject(what.what));
            }
            let partings = case.partings(target);
            parted.set(parted.get() + usize::from(run.parted));
            reported.set(reported.get() + usize::from(run.parted && !partings.is_empty()));
            prop_assert!(
                run.parted || partings.is_empty(),
                "\n{}\n{text}{}",
                directive(&launch, &scalars, target),
                partings.join("\n")
            );
            Ok(())
        },
    );
    let (parted, reported) = (parted.get(), reported.get());
    eprintln!("{reported} of {parted} kernels whose threads part are reported");
    passed(result);
    // Nothing is gained by reporting nothing. Not said is what depends on the result of a function with several returns, and
    // of which threads are in a loop that others left.
    assert!(reported * 2 >= parted, "{reported} of {parted}");
}

#[test]
fn what_is_called_exact_is_what_a_run_counts() {
    let (listed, exact) = (Cell::new(0usize), Cell::new(0usize));
    let mut runner = runner(11, 150);
    let result = runner.run(
        &(statements(), settings()),
        |(body, (launch, scalars, target))| {
            let text = text_of(&body);
            let outcome = case(&text, &launch, &scalars)
                .compare_on(target)
                .map_err(TestCaseError::reject)?;
            listed.set(listed.get() + outcome.listed);
            exact.set(exact.get() + outcome.exact);
            prop_assert!(
                outcome.wrong.is_empty(),
                "\n{}\n{text}{}",
                directive(&launch, &scalars, target),
                outcome.wrong.join("\n")
            );
            Ok(())
        },
    );
    let (listed, exact) = (listed.get(), exact.get());
    eprintln!("{exact} of {listed} accesses and branches are exact");
    passed(result);
    // Nothing is gained by calling nothing exact. What is open depends on what an atomic gave, on a division by 0 of some
    // thread, or takes more steps than are counted.
    assert!(exact * 100 >= listed * 95, "{exact} of {listed} are exact");
}
