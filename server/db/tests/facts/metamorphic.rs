//! Two texts that mean the same, or differ in a way that costs nothing: figures that are exact in both agree.

use std::path::Path;
use std::sync::LazyLock;

use proptest::prelude::*;
use warplens_db::settings::Settings;
use warplens_db::{Engine, LaunchValues, Overrides};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

static ENGINE: LazyLock<Engine> = LazyLock::new(|| Engine::new(Profiles::builtin()));

/// What a kernel does at one access over the launch: requests, transactions, lanes.
type Figures = [f64; 3];

/// Each access of a kernel in the order of the text; `None` where one is not exact.
fn figures(text: &str, block: [u64; 3], n: i64) -> Option<Vec<Figures>> {
    let document = Document::new(text, Language::Cuda);
    let overrides = Overrides {
        argument: LaunchValues {
            grid: Some([3, 1, 1]),
            block: Some(block),
            args: [("n".to_owned(), n)].into(),
            ..LaunchValues::default()
        },
        ..Overrides::default()
    };
    let found = ENGINE
        .estimate(
            &document,
            Path::new("k.cu"),
            &Settings::default(),
            &overrides,
            &[],
            &[],
            &[],
        )
        .expect("a known GPU");
    found.results[0]
        .accesses
        .iter()
        .map(|access| {
            let requests = access.requests?;
            let cost = access.transactions_per_request.unwrap_or(0.0);
            let lanes = access.active_lanes_per_request.unwrap_or(0.0);
            access
                .exact
                .then_some([requests, requests * cost, requests * lanes])
        })
        .collect()
}

fn total(figures: &[Figures]) -> Figures {
    figures.iter().fold([0.0; 3], |sum, one| {
        std::array::from_fn(|at| sum[at] + one[at])
    })
}

fn close(a: &Figures, b: &Figures) -> bool {
    a.iter()
        .zip(b)
        .all(|(a, b)| (a - b).abs() <= 1e-9 * a.abs().max(1.0))
}

/// An index of lanes, blocks, two counters and the parameter; never below zero.
fn index() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "(int)threadIdx.x",
        "(int)threadIdx.y",
        "(int)blockIdx.x",
        "i",
        "j",
        "n",
        "1",
        "3",
        "8",
        "32",
    ])
    .prop_map(str::to_owned);
    leaf.prop_recursive(3, 10, 2, |inner| {
        let ops = prop::sample::select(vec!["+", "+", "+", "*", "*", "%", "/", "^", "&", ">"]);
        (ops, inner.clone(), inner).prop_map(|(op, a, b)| match op {
            "%" | "/" => format!("({a} {op} ({b} + 1))"),
            "*" => format!("({a} * ({b} & 31))"),
            _ => format!("({a} {op} {b})"),
        })
    })
}

fn block() -> impl Strategy<Value = [u64; 3]> {
    prop::sample::select(vec![
        [32, 1, 1],
        [16, 4, 1],
        [7, 5, 1],
        [64, 1, 1],
        [33, 2, 1],
    ])
}

/// The text with other names for the counter and the arrays.
fn renamed(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = rest
            .find(|c| letter(c) != letter(first))
            .unwrap_or(rest.len());
        out.push_str(match &rest[..end] {
            "i" => "count",
            "in" => "from",
            "out" => "to",
            other => other,
        });
        rest = &rest[end..];
    }
    out
}

/// A kernel with its body in two loops over `i` and `j`.
fn kernel(outer: &str, inner: &str, body: &str) -> String {
    format!(
        "__global__ void k(const float *in, float *out, int n) {{\n{outer}\n{inner}\n{body}\n}}}}\n"
    )
}

const OVER_I: &str = "for (int i = 0; i < 3; i++) {";
const OVER_J: &str = "for (int j = 0; j < 4; j++) {";

/// Operands and the operators between them, flat as macros leave them, each operand with signs before it.
fn flat() -> impl Strategy<Value = Vec<(&'static str, &'static str, &'static str)>> {
    let operator = prop::sample::select(vec!["+", "-", "*", "&", "<", "<=", "&&", "||", "=="]);
    let prefix = prop::sample::select(vec!["", "", "", "-", "!", "(unsigned)"]);
    let operand = prop::sample::select(vec!["x", "i", "j", "n", "2", "in[x]"]);
    prop::collection::vec((operator, prefix, operand), 2..6)
}

/// That expression's text, each name as `name` writes it.
fn flat_text(
    parts: &[(&'static str, &'static str, &'static str)],
    name: impl Fn(&str) -> String,
) -> String {
    let rest = parts
        .iter()
        .map(|(operator, prefix, operand)| format!(" {operator} {prefix}{}", name(operand)));
    std::iter::once(name("n")).chain(rest).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_base_moved_by_whole_sectors_costs_the_same(at in index(), guard in index(), by in 1i64..6, block in block(), n in 1i64..40) {
        let text = |offset: i64| kernel(OVER_I, OVER_J, &format!("if ({guard} % 3 != 1) out[{at} + {offset}] = in[{offset} + {at} * 2];"));
        if let (Some(one), Some(other)) = (figures(&text(0), block, n), figures(&text(8 * by), block, n)) {
            prop_assert_eq!(one.len(), other.len());
            prop_assert!(one.iter().zip(&other).all(|(a, b)| close(a, b)), "{:?} {:?}\n{}", one, other, text(8 * by));
        }
    }

    #[test]
    fn loops_that_change_places_cost_the_same(at in index(), guard in index(), block in block(), n in 1i64..40) {
        let body = format!("if ({guard} % 3 != 1) out[{at}] = in[{at} + j];");
        let (one, other) = (kernel(OVER_I, OVER_J, &body), kernel(OVER_J, OVER_I, &body));
        if let (Some(a), Some(b)) = (figures(&one, block, n), figures(&other, block, n)) {
            prop_assert!(a.iter().zip(&b).all(|(a, b)| close(a, b)), "{:?} {:?}\n{}", a, b, one);
        }
    }

    #[test]
    fn a_constant_is_as_good_as_a_parameter(at in index(), guard in index(), block in block(), n in 1i64..40) {
        let text = |bound: &str| {
            let body = format!("if ({guard} % 3 != 1) out[{at}] = in[{at} * 3];");
            let outer = "for (int i = 0; i < n; i += 2) {";
            kernel(outer, OVER_J, &body).replacen("int n) {", &format!("int {bound}) {{"), 1)
        };
        let plain = text("n");
        let fixed = text("m").replacen("{\n", &format!("{{\nconst int n = {n};\n"), 1);
        if let (Some(a), Some(b)) = (figures(&plain, block, n), figures(&fixed, block, n)) {
            prop_assert!(a.iter().zip(&b).all(|(a, b)| close(a, b)), "{:?} {:?}\n{}", a, b, fixed);
        }
    }

    #[test]
    fn names_do_not_matter(at in index(), guard in index(), block in block(), n in 1i64..40) {
        let body = format!("if ({guard} % 3 != 1) out[{at}] = in[{at} * 3];");
        let one = kernel(OVER_I, OVER_J, &body);
        let other = renamed(&one);
        let (a, b) = (figures(&one, block, n), figures(&other, block, n));
        prop_assert_eq!(a, b, "{}", other);
    }

    #[test]
    fn a_loop_written_out_costs_the_same(at in index(), guard in index(), block in block(), n in 1i64..40) {
        let body = format!("if ({guard} % 3 != 1) out[{at}] = in[{at} + 5];");
        let looped = kernel(OVER_J, OVER_I, &body);
        let copy = |i| format!("{{ const int i = {i}; {body} }}\n");
        let copies = [copy(0), copy(1), copy(2)].concat();
        let written = kernel(OVER_J, "{", &copies);
        if let (Some(a), Some(b)) = (figures(&looped, block, n), figures(&written, block, n)) {
            prop_assert!(close(&total(&a), &total(&b)), "{:?} {:?}\n{}", a, b, written);
        }
    }

    #[test]
    fn a_name_in_parentheses_is_the_name(parts in flat(), block in block(), n in 1i64..40) {
        let text = |name: &dyn Fn(&str) -> String| {
            let at = flat_text(&parts, name);
            kernel(OVER_I, OVER_J, &format!("int x = threadIdx.x; if ({at}) out[4096 + ({at})] = in[x];"))
        };
        let plain = text(&str::to_owned);
        let bare = text(&|name| format!("({name})"));
        let found = (figures(&plain, block, n), figures(&bare, block, n));
        prop_assert_eq!(&found.0, &found.1, "{}", bare);
    }
}

/// Cases of a switch that are many are found by halving: with gaps, labels that share statements, signs and a default, they run as
/// branches that ask for each label.
#[test]
fn a_switch_of_many_cases_runs_what_branches_on_its_labels_run() {
    let labels: Vec<i64> = (-12..60).filter(|label| label % 7 != 3).collect();
    let cases = labels.chunks(2).map(|pair| {
        let named: Vec<String> = pair.iter().map(|label| format!("case {label}:")).collect();
        format!(
            "{} a[i * {}] = 1.0f; break;\n",
            named.join(" "),
            pair[0].rem_euclid(5)
        )
    });
    let cases: String = cases.collect();
    let branches = labels.chunks(2).map(|pair| {
        let asked: Vec<String> = pair.iter().map(|label| format!("v == {label}")).collect();
        format!(
            "if ({}) a[i * {}] = 1.0f;\n",
            asked.join(" || "),
            pair[0].rem_euclid(5)
        )
    });
    let branches: String = branches.collect();
    let any: Vec<String> = labels.iter().map(|label| format!("v == {label}")).collect();
    let text = |body: &str| {
        format!(
            "__global__ void k(float *a, int n) {{\nint i = blockIdx.x * blockDim.x + threadIdx.x;\n\
             int v = i % 70 - 20;\n{body}}}\n"
        )
    };
    let switch = text(&format!(
        "switch (v) {{\n{cases}default: a[i] = 0.0f;\n}}\n"
    ));
    let asked = text(&format!(
        "{branches}if (!({})) a[i] = 0.0f;\n",
        any.join(" || ")
    ));
    let [found, expected] =
        [switch, asked].map(|text| figures(&text, [96, 1, 1], 4).expect("exact"));
    assert_eq!(found.len(), labels.chunks(2).len() + 1);
    for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert!(
            close(found, expected),
            "access {at}: {found:?}, {expected:?}"
        );
    }
}

/// Loops that a `break` ends in the middle of an iteration, whose condition comes of a choice or of an object that hands out work, run
/// as the plain loop over the same numbers.
#[test]
fn a_loop_that_a_break_ends_runs_as_the_plain_loop() {
    let classes = "struct Tiles { int at, step, end;\n\
         __device__ Tiles(int first, int step, int end) : at(first), step(step), end(end) {}\n\
         __device__ int next() { int v = at; if (v >= end) return -1; at += step; return v; } };\n\
         struct Refs { int at, step, end; __device__ bool next(int &v) {\n\
         if (at >= end) return false; v = at; at += step; return true; } };\n\
         struct Rows { int turn, first, end;\n\
         __device__ int next() { int v = turn * 7 + first; if (v < end) { ++turn; return v; } return -1; } };\n";
    let work = "a[v * 33 + threadIdx.x] = 1.0f;";
    let spelled = |first: &str, step: &str| {
        [
            format!("for (int v = {first}; v < n; v += {step}) {{ {work} }}"),
            format!("int v = {first}; while (true) {{ if (v >= n) break; {work} v += {step}; }}"),
            format!(
                "int w = {first}; while (true) {{ int v = w; if (v >= n) break; {work} w += {step}; }}"
            ),
            format!(
                "int w = {first}; for (;;) {{ int v = w < n ? w : -1; if (v < 0) break; w += {step}; {work} }}"
            ),
            format!(
                "int w = {first}; for (;;) {{ int v; if (w < n) {{ v = w; w += {step}; }} else v = -1; if (v == -1) break; {work} }}"
            ),
            format!(
                "Tiles tiles({first}, {step}, n); for (int v = tiles.next(); v >= 0; v = tiles.next()) {{ {work} }}"
            ),
            format!(
                "Tiles tiles({first}, {step}, n); while (true) {{ int v = tiles.next(); if (v < 0) return; {work} }}"
            ),
            format!(
                "Refs refs{{(int)({first}), (int)({step}), n}}; int v; while (refs.next(v)) {{ {work} }}"
            ),
            format!(
                "Refs refs{{(int)({first}), (int)({step}), n}}; for (int v; refs.next(v);) {{ {work} }}"
            ),
            format!(
                "Tiles tiles({first}, {step}, n); for (int v = tiles.next(); v >= 0; v = tiles.next()) {{ if (v % 3 == 1) continue; {work} }}"
            ),
        ]
    };
    for (first, step) in [
        ("blockIdx.x", "3"),
        ("(int)threadIdx.x / 5 + blockIdx.x", "4"),
        ("threadIdx.x", "blockDim.x"),
    ] {
        for n in [1, 17, 100] {
            let text = |body: &str| {
                format!("{classes}__global__ void k(float *a, int n) {{\n{body}\n}}\n")
            };
            let all = spelled(first, step);
            let some = |text: &str, what: &str| {
                figures(text, [64, 1, 1], n).unwrap_or_else(|| panic!("exact: {what} n = {n}"))
            };
            let plain = some(&text(&all[0]), &all[0]);
            let (skips, others) = all[1..].split_last().expect("some");
            for other in others {
                let found = some(&text(other), other);
                assert!(
                    close(&plain[0], &found[0]),
                    "{other} n = {n}: {plain:?}, {found:?}"
                );
            }
            let skipping = all[0].replace("{ a[", "{ if (v % 3 != 1) a[");
            let (plain, found) = (some(&text(&skipping), &skipping), some(&text(skips), skips));
            assert!(
                close(&plain[0], &found[0]),
                "{skips} n = {n}: {plain:?}, {found:?}"
            );
        }
    }
    let rows = format!(
        "{classes}__global__ void k(float *a, int n) {{\n\
         Rows rows{{0, (int)blockIdx.x, n}}; for (int v = rows.next(); v >= 0; v = rows.next()) {{ {work} }}\n}}\n"
    );
    let plain = format!(
        "__global__ void k(float *a, int n) {{ for (int v = blockIdx.x; v < n; v += 7) {{ {work} }} }}\n"
    );
    let [found, plain] = [rows, plain].map(|text| figures(&text, [64, 1, 1], 50).expect("exact"));
    assert!(close(&plain[0], &found[0]), "{plain:?}, {found:?}");
}
