//! Facts called exact against brute force: generated kernels are analysed as CUDA text and run thread by
//! thread by a small interpreter that shares no code with the analysis.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use warplens_db::settings::Settings;
use warplens_db::{Engine, LaunchValues, Overrides};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

/// An integer expression of the generated language; every value is an `int`.
#[derive(Debug, Clone)]
enum Expr {
    Tx,
    Ty,
    Bx,
    N,
    /// The innermost loop variable, 0 outside loops.
    Loop,
    Const(i64),
    Binary(&'static str, Box<Expr>, Box<Expr>),
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
}

#[derive(Debug, Clone)]
enum Stmt {
    /// `out[e] = in[e];` on arrays of 4 or 8 bytes, or on a shared array.
    Copy(bool, Expr, Expr),
    Shared(Expr),
    If(Expr, Vec<Stmt>, Vec<Stmt>),
    /// `for (int v = from; v < to; v += step)`.
    For(Expr, Expr, i64, Vec<Stmt>),
    /// `for (int v = from; v > 0; v /= 2)`.
    Halve(i64, Vec<Stmt>),
    Return(Expr),
}

#[derive(Clone, Copy)]
struct Thread {
    t: [i64; 2],
    bx: i64,
    n: i64,
    var: i64,
}

impl Expr {
    fn text(&self, var: &str) -> String {
        match self {
            Expr::Tx => "(int)threadIdx.x".into(),
            Expr::Ty => "(int)threadIdx.y".into(),
            Expr::Bx => "(int)blockIdx.x".into(),
            Expr::N => "n".into(),
            Expr::Loop => var.into(),
            Expr::Const(value) => format!("({value})"),
            Expr::Binary(op, a, b) => format!("({} {op} {})", a.text(var), b.text(var)),
            Expr::Select(c, a, b) => {
                let (c, a, b) = (c.text(var), a.text(var), b.text(var));
                // The same choice through an operator, a function and a member function.
                match c.len() % 3 {
                    0 => format!("({c} ? {a} : {b})"),
                    1 => format!("pick({c}, {a}, {b})"),
                    _ => format!("Pair{{{a}, {b}}}.of({c})"),
                }
            }
        }
    }

    fn run(&self, thread: Thread) -> Option<i64> {
        let value = match self {
            Expr::Tx => thread.t[0],
            Expr::Ty => thread.t[1],
            Expr::Bx => thread.bx,
            Expr::N => thread.n,
            Expr::Loop => thread.var,
            Expr::Const(value) => *value,
            Expr::Binary(op, a, b) => {
                let (a, b) = (a.run(thread)?, b.run(thread)?);
                match *op {
                    "+" => a + b,
                    "-" => a - b,
                    "*" => a * b,
                    "/" if b != 0 => a / b,
                    "%" if b != 0 => a % b,
                    "&" => a & b,
                    "|" => a | b,
                    "^" => a ^ b,
                    "<<" if (0..8).contains(&b) => a << b,
                    ">>" if (0..31).contains(&b) => a >> b,
                    "<" => i64::from(a < b),
                    ">=" => i64::from(a >= b),
                    "==" => i64::from(a == b),
                    "&&" => i64::from(a != 0 && b != 0),
                    "||" => i64::from(a != 0 || b != 0),
                    // Undefined in C: the kernel is thrown away.
                    _ => return None,
                }
            }
            Expr::Select(c, a, b) => {
                let (a, b) = (a.run(thread)?, b.run(thread)?);
                if c.run(thread)? != 0 { a } else { b }
            }
        };
        i32::try_from(value).ok().map(i64::from)
    }
}

fn source(statements: &[Stmt], depth: usize, var: &str, out: &mut String) {
    let inner = format!("v{depth}");
    for statement in statements {
        match statement {
            Stmt::Copy(wide, to, from) => {
                let kind = if *wide { "d" } else { "f" };
                let (to, from) = (to.text(var), from.text(var));
                let _ = writeln!(out, "{kind}out[{to}] = {kind}in[{from}];");
            }
            Stmt::Shared(index) => {
                let _ = writeln!(out, "tile[{}] = 1.0f;", index.text(var));
            }
            Stmt::If(condition, then, otherwise) => {
                let _ = writeln!(out, "if ({}) {{", condition.text(var));
                source(then, depth, var, out);
                let _ = writeln!(out, "}} else {{");
                source(otherwise, depth, var, out);
                let _ = writeln!(out, "}}");
            }
            Stmt::For(from, to, step, body) => {
                let (from, to) = (from.text(var), to.text(var));
                let _ = writeln!(
                    out,
                    "for (int {inner} = {from}; {inner} < {to}; {inner} += {step}) {{"
                );
                source(body, depth + 1, &inner, out);
                let _ = writeln!(out, "}}");
            }
            Stmt::Halve(from, body) => {
                let _ = writeln!(
                    out,
                    "for (int {inner} = {from}; {inner} > 0; {inner} /= 2) {{"
                );
                source(body, depth + 1, &inner, out);
                let _ = writeln!(out, "}}");
            }
            Stmt::Return(condition) => {
                let _ = writeln!(out, "if ({}) return;", condition.text(var));
            }
        }
    }
}

/// What brute force counts for one access of the text, by its order in it.
#[derive(Debug, Default, Clone, PartialEq)]
struct Count {
    requests: f64,
    lanes: f64,
    cost: f64,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Sectors(i64),
    Banks,
}

/// What brute force counts for one `if` or loop: warps that evaluate it, that take it, that split.
#[derive(Debug, Default, Clone, PartialEq)]
struct Split {
    evaluations: f64,
    taken: f64,
    divergent: f64,
}

/// Numbers accesses and branches in the order of the text.
#[derive(Debug, Default, Clone, Copy)]
struct At {
    access: usize,
    branch: usize,
}

/// A warp running in lock step: lanes as (thread, still here).
struct Machine {
    splits: BTreeMap<usize, Split>,
    counts: BTreeMap<usize, Count>,
    steps: u64,
    defined: bool,
}

const STEPS: u64 = 20_000;

impl Machine {
    /// Runs the whole launch.
    fn launch(body: &[Stmt], block: [u64; 2], grid: u64, n: i64) -> Machine {
        let mut machine = Machine {
            splits: BTreeMap::new(),
            counts: BTreeMap::new(),
            steps: 0,
            defined: true,
        };
        let threads = (block[0] * block[1]) as i64;
        for bx in 0..grid as i64 {
            let mut first = 0;
            while first < threads && machine.defined {
                let lanes = (first..(first + 32).min(threads))
                    .map(|t| Thread {
                        t: [t % block[0] as i64, t / block[0] as i64],
                        bx,
                        n,
                        var: 0,
                    })
                    .collect();
                machine.run(body, lanes, &mut At::default());
                first += 32;
            }
        }
        machine
    }

    fn request(&mut self, at: usize, kind: Kind, addresses: &[i64]) {
        if addresses.is_empty() {
            return;
        }
        let count = self.counts.entry(at).or_default();
        count.requests += 1.0;
        count.lanes += addresses.len() as f64;
        count.cost += match kind {
            Kind::Sectors(bytes) => {
                let touched: BTreeSet<i64> = addresses
                    .iter()
                    .flat_map(|a| [a.div_euclid(32), (a + bytes - 1).div_euclid(32)])
                    .collect();
                touched.len() as f64
            }
            Kind::Banks => {
                let words: BTreeSet<i64> = addresses.iter().map(|a| a.div_euclid(4)).collect();
                let mut banks = BTreeMap::new();
                for word in words {
                    *banks.entry(word.rem_euclid(32)).or_insert(0) += 1;
                }
                f64::from(banks.values().copied().max().unwrap_or(0))
            }
        };
    }

    /// Notes what the lanes of one warp say.
    fn split(&mut self, at: &mut At, values: &[i64]) {
        self.ways(at.branch, values, false);
        at.branch += 1;
    }

    /// Notes truth values, or trip counts.
    fn ways(&mut self, branch: usize, values: &[i64], looping: bool) {
        if !values.is_empty() {
            let split = self.splits.entry(branch).or_default();
            let taken = values.iter().any(|&value| value != 0);
            let differ = if looping {
                values.iter().any(|value| *value != values[0])
            } else {
                taken && values.contains(&0)
            };
            split.evaluations += 1.0;
            split.taken += f64::from(u8::from(taken));
            split.divergent += f64::from(u8::from(differ));
        }
    }

    fn eval(&mut self, expr: &Expr, lanes: &[Thread]) -> Vec<i64> {
        let values: Vec<Option<i64>> = lanes.iter().map(|&lane| expr.run(lane)).collect();
        self.defined &= values.iter().all(Option::is_some);
        values.into_iter().map(|value| value.unwrap_or(0)).collect()
    }

    /// Runs statements for the lanes that are active; which of them did not return. `at` numbers accesses
    /// in the order of the text.
    fn run(&mut self, statements: &[Stmt], mut lanes: Vec<Thread>, at: &mut At) -> Vec<bool> {
        let mut here: Vec<usize> = (0..lanes.len()).collect();
        let mut stays = vec![true; lanes.len()];
        for statement in statements {
            self.steps += 1 + here.len() as u64;
            if self.steps > STEPS {
                self.defined = false;
            }
            let active: Vec<Thread> = here.iter().map(|&lane| lanes[lane]).collect();
            match statement {
                Stmt::Copy(wide, to, from) => {
                    let bytes = if *wide { 8 } else { 4 };
                    for (offset, index) in [(0, from), (1, to)] {
                        let values = self.eval(index, &active);
                        let addresses: Vec<i64> = values.iter().map(|v| v * bytes).collect();
                        self.request(at.access + offset, Kind::Sectors(bytes), &addresses);
                    }
                    at.access += 2;
                }
                Stmt::Shared(index) => {
                    let addresses: Vec<i64> =
                        self.eval(index, &active).iter().map(|v| v * 4).collect();
                    self.request(at.access, Kind::Banks, &addresses);
                    at.access += 1;
                }
                Stmt::If(condition, then, otherwise) => {
                    let truth = self.eval(condition, &active);
                    self.split(at, &truth);
                    let mut left = Vec::new();
                    for (side, body) in [(true, then), (false, otherwise)] {
                        let chosen: Vec<usize> = here
                            .iter()
                            .zip(&truth)
                            .filter(|(_, value)| (**value != 0) == side)
                            .map(|(&lane, _)| lane)
                            .collect();
                        let threads = chosen.iter().map(|&lane| lanes[lane]).collect();
                        let stay = self.run(body, threads, at);
                        left.extend(chosen.iter().zip(stay).filter(|(_, s)| !s).map(|(&l, _)| l));
                    }
                    for lane in &left {
                        stays[*lane] = false;
                    }
                    here.retain(|lane| !left.contains(lane));
                }
                Stmt::For(..) | Stmt::Halve(..) => {
                    self.looping(statement, &mut lanes, &mut here, &mut stays, at);
                }
                Stmt::Return(condition) => {
                    let truth = self.eval(condition, &active);
                    self.split(at, &truth);
                    let left: Vec<usize> = here
                        .iter()
                        .zip(&truth)
                        .filter(|(_, v)| **v != 0)
                        .map(|(&l, _)| l)
                        .collect();
                    for lane in &left {
                        stays[*lane] = false;
                    }
                    here.retain(|lane| !left.contains(lane));
                }
            }
        }
        stays
    }

    fn looping(
        &mut self,
        statement: &Stmt,
        lanes: &mut [Thread],
        here: &mut Vec<usize>,
        stays: &mut [bool],
        at: &mut At,
    ) {
        let active: Vec<Thread> = here.iter().map(|&lane| lanes[lane]).collect();
        let (body, start) = match statement {
            Stmt::For(from, _, _, body) => (body, self.eval(from, &active)),
            Stmt::Halve(from, body) => (body, vec![*from; active.len()]),
            _ => return,
        };
        let outer: Vec<i64> = lanes.iter().map(|lane| lane.var).collect();
        let ends = match statement {
            // The bound may name the outer loop's variable.
            Stmt::For(_, to, _, _) => self.eval(to, &active),
            _ => vec![0; active.len()],
        };
        let mut running: Vec<(usize, i64, i64)> = here
            .iter()
            .zip(start)
            .zip(ends)
            .map(|((&lane, value), end)| (lane, value, end))
            .collect();
        let came: Vec<usize> = here.clone();
        let mut trips = vec![0; lanes.len()];
        let branch = at.branch;
        at.branch += 1;
        let first = *at;
        let mut after = None;
        loop {
            running.retain(|&(_, value, end)| match statement {
                Stmt::For(..) => value < end,
                _ => value > 0,
            });
            *at = first;
            if running.is_empty() || !self.defined {
                // The body's accesses are numbered all the same.
                let mut skip = first;
                self.run(body, Vec::new(), &mut skip);
                *at = after.unwrap_or(skip);
                break;
            }
            for &(lane, value, _) in &running {
                lanes[lane].var = value;
                trips[lane] += 1;
            }
            let threads = running.iter().map(|&(lane, ..)| lanes[lane]).collect();
            let stay = self.run(body, threads, at);
            after = Some(*at);
            let gone: Vec<usize> = running
                .iter()
                .zip(&stay)
                .filter(|(_, s)| !**s)
                .map(|((lane, ..), _)| *lane)
                .collect();
            for lane in &gone {
                stays[*lane] = false;
            }
            here.retain(|lane| !gone.contains(lane));
            running.retain(|(lane, ..)| !gone.contains(lane));
            for (_, value, _) in &mut running {
                match statement {
                    Stmt::For(_, _, step, _) => *value += step,
                    _ => *value /= 2,
                }
            }
        }
        // A lane that returns from an iteration has begun it.
        let trips: Vec<i64> = came.iter().map(|&lane| trips[lane]).collect();
        self.ways(branch, &trips, true);
        for (lane, var) in lanes.iter_mut().zip(outer) {
            lane.var = var;
        }
    }
}

fn binary(op: &'static str, a: Expr, b: Expr) -> Expr {
    Expr::Binary(op, Box::new(a), Box::new(b))
}

/// What kernels do with a size: a row-major or column-major index, with an offset.
fn sized_index() -> impl Strategy<Value = Expr> {
    let row = |y, x| binary("+", binary("*", y, Expr::N), x);
    let global = || binary("+", binary("*", Expr::Bx, Expr::Const(32)), Expr::Tx);
    let index = prop::sample::select(vec![
        row(Expr::Ty, Expr::Tx),
        row(Expr::Bx, Expr::Tx),
        row(Expr::Loop, Expr::Tx),
        row(Expr::Loop, global()),
        row(binary("+", Expr::Ty, Expr::Bx), Expr::Tx),
        row(Expr::Tx, Expr::Ty),
        row(Expr::Tx, Expr::Loop),
        binary("-", binary("-", Expr::N, Expr::Const(1)), Expr::Tx),
        binary("/", row(Expr::Bx, Expr::Tx), Expr::Const(4)),
        binary("%", row(Expr::Bx, Expr::Tx), Expr::Const(16)),
        binary("%", Expr::Tx, Expr::N),
        binary("&", global(), binary("-", Expr::N, Expr::Const(1))),
        global(),
        Expr::Tx,
    ]);
    let scale = prop::sample::select(vec![1, 1, 1, 2, 3, 32]);
    let offset = prop::sample::select(vec![0, 0, 0, 1, 8, -1]);
    (index, scale, offset).prop_map(|(index, scale, offset)| {
        binary(
            "+",
            binary("*", index, Expr::Const(scale)),
            Expr::Const(offset),
        )
    })
}

fn sized_condition() -> impl Strategy<Value = Expr> {
    let global = || binary("+", binary("*", Expr::Bx, Expr::Const(32)), Expr::Tx);
    prop::sample::select(vec![
        binary("<", global(), Expr::N),
        binary("<", Expr::Tx, Expr::N),
        binary("<", Expr::Bx, Expr::N),
        binary("<", Expr::Ty, binary("-", Expr::N, Expr::Const(1))),
        binary("<", Expr::Loop, Expr::N),
        binary(">=", global(), binary("/", Expr::N, Expr::Const(2))),
        binary("==", binary("%", Expr::Tx, Expr::Const(2)), Expr::Const(0)),
        binary("==", binary("%", Expr::N, Expr::Const(3)), Expr::Const(1)),
        binary(
            "&&",
            binary("<", Expr::Tx, Expr::N),
            binary("<", Expr::Ty, Expr::N),
        ),
    ])
}

fn sized_statements() -> impl Strategy<Value = Vec<Stmt>> {
    let leaf = prop_oneof![
        4 => (any::<bool>(), sized_index(), sized_index()).prop_map(|(w, a, b)| Stmt::Copy(w, a, b)),
        2 => sized_index().prop_map(Stmt::Shared),
        1 => sized_condition().prop_map(|condition| {
            Stmt::Return(binary("==", condition, Expr::Const(0)))
        }),
    ];
    let statement = leaf.prop_recursive(2, 6, 2, |inner| {
        let body = prop::collection::vec(inner, 1..3);
        let start = prop::sample::select(vec![Expr::Const(0), Expr::Tx, Expr::Bx]);
        let end = prop::sample::select(vec![Expr::N, Expr::Const(5), Expr::Loop]);
        let step = prop::sample::select(vec![1i64, 2, 32, 64]);
        prop_oneof![
            2 => (sized_condition(), body.clone(), prop_oneof![2 => Just(Vec::new()), 1 => body.clone()])
                .prop_map(|(c, a, b)| Stmt::If(c, a, b)),
            2 => (start, end, step, body).prop_map(|(a, b, s, body)| Stmt::For(a, b, s, body)),
        ]
    });
    prop::collection::vec(statement, 1..4)
}

fn expr() -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![
        3 => Just(Expr::Tx),
        1 => Just(Expr::Ty),
        2 => Just(Expr::Bx),
        1 => Just(Expr::N),
        2 => Just(Expr::Loop),
        3 => prop_oneof![0i64..9, Just(16), Just(31), Just(32), Just(33), Just(64), Just(100)].prop_map(Expr::Const),
    ];
    leaf.prop_recursive(3, 14, 2, |inner| {
        let ops = prop::sample::select(vec![
            "+", "+", "+", "-", "*", "*", "/", "%", "&", "|", "^", "<<", ">>", "<", ">=", "==",
            "&&", "||",
        ]);
        prop_oneof![
            6 => (ops, inner.clone(), inner.clone())
                .prop_map(|(op, a, b)| Expr::Binary(op, Box::new(a), Box::new(b))),
            1 => (inner.clone(), inner.clone(), inner)
                .prop_map(|(c, a, b)| Expr::Select(Box::new(c), Box::new(a), Box::new(b))),
        ]
    })
}

fn statements() -> impl Strategy<Value = Vec<Stmt>> {
    let leaf = prop_oneof![
        4 => (any::<bool>(), expr(), expr()).prop_map(|(w, a, b)| Stmt::Copy(w, a, b)),
        2 => expr().prop_map(Stmt::Shared),
        1 => expr().prop_map(Stmt::Return),
    ];
    let statement = leaf.prop_recursive(3, 10, 3, |inner| {
        let body = prop::collection::vec(inner, 1..3);
        prop_oneof![
            2 => (expr(), body.clone(), prop_oneof![2 => Just(Vec::new()), 1 => body.clone()])
                .prop_map(|(c, a, b)| Stmt::If(c, a, b)),
            2 => (expr(), expr(), 1i64..5, body.clone()).prop_map(|(a, b, s, body)| Stmt::For(a, b, s, body)),
            1 => (1i64..70, body).prop_map(|(a, body)| Stmt::Halve(a, body)),
        ]
    });
    prop::collection::vec(statement, 1..4)
}

/// The kernel as CUDA.
fn kernel(body: &[Stmt]) -> String {
    let mut text = String::from(
        "__device__ int pick(int c, int a, int b) { if (c) return a; return b; }\n\
         struct Pair { int first, second; __device__ int of(int c) const { int r; set(c, r); return r; }\n\
         __device__ void set(int c, int &r) const { if (c) { r = first; } else r = second; } };\n\
         __global__ void k(const float *fin, float *fout, const double *din, double *dout, int n) {\n__shared__ float tile[1024];\n",
    );
    source(body, 0, "0", &mut text);
    text.push_str("}\n");
    text
}

/// True where another value of `n` meets the constraints. One that is a condition of the source is not read:
/// it holds for the value assumed.
fn meets(constraints: &[String], n: i64, assumed: i64) -> bool {
    constraints.iter().all(|constraint| {
        let words: Vec<&str> = constraint.split(' ').collect();
        let number = |word: &str| word.parse::<i64>().ok();
        match words[..] {
            ["n", "%", by, "==", rest] => match (number(by), number(rest)) {
                (Some(by), Some(rest)) => n % by == rest,
                _ => n == assumed,
            },
            ["n", ">=", least] => number(least).map_or(n == assumed, |least| n >= least),
            _ => n == assumed,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, max_global_rejects: 100_000, failure_persistence: None, ..ProptestConfig::default() })]
    fn generated_kernels_of_any_size(
        body in sized_statements(),
        block in prop::sample::select(vec![[32u64, 1], [64, 1], [16, 4], [8, 8], [32, 2], [48, 1]]),
        grid in 1u64..5,
        assumed in prop::sample::select(vec![16i64, 32, 64, 64, 96, 128, 128, 40, 7]),
    ) {
        let text = kernel(&body);
        let document = Document::new(&text, Language::Cuda);
        let overrides = Overrides {
            argument: LaunchValues {
                grid: Some([grid, 1, 1]),
                block: Some([block[0], block[1], 1]),
                ..LaunchValues::default()
            },
            ..Overrides::default()
        };
        let settings = Settings {
            assume: [("n".to_owned(), assumed)].into(),
            ..Settings::default()
        };
        let found = ENGINE
            .estimate(&document, Path::new("k.cu"), &settings, &overrides, &[], &[], &[])
            .expect("a known GPU");
        let result = &found.results[0];
        let branches: Vec<_> = result
            .branches
            .iter()
            .filter(|branch| branch.kind != "select" && branch.via.is_empty())
            .collect();
        let machine = Machine::launch(&body, block, grid, assumed);
        prop_assume!(machine.defined);
        for n in (1..=160).filter(|n| n % 8 == 0 || *n < 20 || *n == assumed || n % 41 == 0) {
            let some = result.accesses.iter().any(|a| a.exact && meets(&a.constraints, n, assumed))
                || branches.iter().any(|b| b.exact && meets(&b.constraints, n, assumed));
            if !some {
                continue;
            }
            let machine = Machine::launch(&body, block, grid, n);
            if !machine.defined {
                continue;
            }
            for (at, access) in result.accesses.iter().enumerate() {
                let truth = machine.counts.get(&at).cloned().unwrap_or_default();
                if !access.exact || !meets(&access.constraints, n, assumed) || truth.requests == 0.0 {
                    continue;
                }
                let cost = access.transactions_per_request.or(access.passes_per_request);
                let lanes = access.active_lanes_per_request;
                // No request at the value assumed: no figure.
                let (Some(cost), Some(lanes)) = (cost, lanes) else { continue };
                prop_assert!(
                    (lanes - truth.lanes / truth.requests).abs() < 1e-9 && (cost - truth.cost / truth.requests).abs() < 1e-9,
                    "`{}` {:?} for n = {n}, {assumed} assumed: {cost} {lanes} {:?} grid {grid} block {block:?} in\n{}", &access.text, &access.constraints, truth, &text
                );
            }
            for (at, branch) in branches.iter().enumerate() {
                let truth = machine.splits.get(&at).cloned().unwrap_or_default();
                if !branch.exact || !meets(&branch.constraints, n, assumed) || truth.evaluations == 0.0 {
                    continue;
                }
                let (Some(taken), Some(split)) = (branch.taken_warp_fraction, branch.divergent_warp_fraction) else { continue };
                prop_assert!(
                    (taken - truth.taken / truth.evaluations).abs() < 1e-9 && (split - truth.divergent / truth.evaluations).abs() < 1e-9,
                    "{} in line {} {:?} for n = {n}, {assumed} assumed: {taken} {split} {truth:?} grid {grid} block {block:?} in\n{}", branch.kind, branch.line, &branch.constraints, &text
                );
            }
        }
        CASES.fetch_add(result.accesses.iter().filter(|a| a.exact && !a.constraints.is_empty()).count(), Ordering::Relaxed);
    }
}

#[test]
fn what_is_exact_under_constraints_is_so_for_all_values_that_meet_them() {
    generated_kernels_of_any_size();
    let constrained = CASES.load(Ordering::Relaxed);
    assert!(
        constrained >= 300,
        "{constrained} accesses with constraints"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, max_global_rejects: 100_000, failure_persistence: None, ..ProptestConfig::default() })]
    fn generated_kernels(
        body in statements(),
        block in prop::sample::select(vec![[32u64, 1], [64, 1], [16, 4], [8, 8], [48, 1], [7, 5], [100, 1]]),
        grid in 1u64..5,
        n in 0i64..70,
    ) {
        let machine = Machine::launch(&body, block, grid, n);
        prop_assume!(machine.defined);

        let text = kernel(&body);
        let document = Document::new(&text, Language::Cuda);
        let overrides = Overrides {
            argument: LaunchValues {
                grid: Some([grid, 1, 1]),
                block: Some([block[0], block[1], 1]),
                args: [("n".to_owned(), n)].into(),
                ..LaunchValues::default()
            },
            ..Overrides::default()
        };
        let found = ENGINE
            .estimate(&document, Path::new("k.cu"), &Settings::default(), &overrides, &[], &[], &[])
            .expect("a known GPU");
        let accesses = &found.results[0].accesses;
        for (at, access) in accesses.iter().enumerate() {
            if !access.exact {
                continue;
            }
            let truth = machine.counts.get(&at).cloned().unwrap_or_default();
            let requests = access.requests.unwrap_or(-1.0);
            prop_assert_eq!(requests, truth.requests, "requests of `{}` in\n{}", &access.text, &text);
            if truth.requests > 0.0 {
                let cost = access.transactions_per_request.or(access.passes_per_request).unwrap_or(-1.0);
                let lanes = access.active_lanes_per_request.unwrap_or(-1.0);
                prop_assert!((lanes - truth.lanes / truth.requests).abs() < 1e-9, "lanes of `{}`: {lanes} {:?} in\n{}", &access.text, truth, &text);
                prop_assert!((cost - truth.cost / truth.requests).abs() < 1e-9, "cost of `{}`: {cost} {:?} in\n{}", &access.text, truth, &text);
            }
        }
        let branches = found.results[0].branches.iter().filter(|branch| branch.kind != "select" && branch.via.is_empty());
        for (at, branch) in branches.enumerate() {
            let truth = machine.splits.get(&at).cloned().unwrap_or_default();
            if !branch.exact || truth.evaluations == 0.0 {
                continue;
            }
            let found = [branch.taken_warp_fraction, branch.divergent_warp_fraction].map(|f| f.unwrap_or(-1.0));
            let wanted = [truth.taken / truth.evaluations, truth.divergent / truth.evaluations];
            prop_assert!(
                found.iter().zip(wanted).all(|(f, w)| (f - w).abs() < 1e-9),
                "{} in line {}: {found:?} {truth:?} in\n{}", branch.kind, branch.line, &text
            );
        }
        EXACT.fetch_add(accesses.iter().filter(|access| access.exact).count(), Ordering::Relaxed);
        ALL.fetch_add(accesses.len(), Ordering::Relaxed);
    }
}

#[test]
fn what_is_called_exact_is_what_brute_force_counts() {
    generated_kernels();
    // Nothing is gained by calling nothing exact. The share is taken over the whole run.
    let (exact, all) = (EXACT.load(Ordering::Relaxed), ALL.load(Ordering::Relaxed));
    assert!(
        exact * 100 >= all * 80,
        "{exact} of {all} accesses are exact"
    );
}

static ENGINE: std::sync::LazyLock<Engine> =
    std::sync::LazyLock::new(|| Engine::new(Profiles::builtin()));
static EXACT: AtomicUsize = AtomicUsize::new(0);
static CASES: AtomicUsize = AtomicUsize::new(0);
static ALL: AtomicUsize = AtomicUsize::new(0);
