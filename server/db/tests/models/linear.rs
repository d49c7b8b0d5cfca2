//! The linear model end to end: from a source to the statistics of the papers' example, in numbers and in symbols.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, LaunchValues, Overrides, PlacedKernel, wire};
use warplens_machine::{Arithmetic, Number, Profiles};
use warplens_models::{ModelId, Question};
use warplens_syntax::{Document, Language};

fn overrides(grid: [u64; 3], block: [u64; 3], args: &[(&str, i64)]) -> Overrides {
    Overrides {
        argument: LaunchValues {
            grid: Some(grid),
            block: Some(block),
            args: args
                .iter()
                .map(|&(name, value)| (name.to_owned(), value))
                .collect(),
            ..LaunchValues::default()
        },
        ..Overrides::default()
    }
}

/// What the linear model says of the first kernel.
fn estimate(path: &str, text: &str, gpu: &str, overrides: &Overrides) -> wire::Estimate {
    let path = Path::new(path);
    let document = Document::new(text, Language::from_path(path).expect("a known extension"));
    let settings = Settings {
        gpu: Some(gpu.to_owned()),
        ..Settings::default()
    };
    let found = Engine::new(Profiles::builtin()).estimate(
        &document,
        path,
        &settings,
        overrides,
        &[],
        &[ModelId::Linear],
        &[],
    );
    let mut result = found.expect("a known GPU").results.remove(0);
    result.estimates.remove("linear").expect("the model asked")
}

fn kernel(path: &str, text: &str, overrides: &Overrides) -> PlacedKernel {
    let path = Path::new(path);
    let document = Document::new(text, Language::from_path(path).expect("a known extension"));
    let mut file = Engine::new(Profiles::builtin())
        .analyze(
            &document,
            path,
            &Settings::default(),
            overrides,
            &Cancel::default(),
        )
        .expect("not cancelled");
    file.kernels.remove(0)
}

/// out[i, j] = 2 * a[i, j] + b[i, j] over 0 <= i < n, 0 <= j < m, every element once for any n and m.
const CUDA: &str = "
__global__ void example(const float *a, const float *b, float *out, int n, int m) {
  for (int i = blockIdx.y; i < n; i += gridDim.y)
    for (int j = blockIdx.x * blockDim.x + threadIdx.x; j < m; j += gridDim.x * blockDim.x)
      out[i * m + j] = 2.0f * a[i * m + j] + b[i * m + j];
}
";

const OPENCL: &str = "
__kernel void example(__global const float *a, __global const float *b, __global float *out,
                      const int n, const int m) {
  for (int i = get_group_id(1); i < n; i += get_num_groups(1))
    for (int j = get_global_id(0); j < m; j += get_global_size(0))
      out[i * m + j] = 2.0f * a[i * m + j] + b[i * m + j];
}
";

#[test]
fn the_example_of_the_paper_in_numbers() {
    for (path, text) in [("e.cu", CUDA), ("e.cl", OPENCL)] {
        for (n, m) in [(256, 512), (100, 384), (7, 1024)] {
            let launch = overrides([2, 16, 1], [128, 1, 1], &[("n", n), ("m", m)]);
            let found = estimate(path, text, "a100-sxm4-40gb", &launch);
            let nm = (n * m) as f64;
            let wanted = [
                ("global_load_32_stride1", 2.0 * nm),
                ("global_store_32_stride1", nm),
                ("f32_mul", nm),
                ("f32_add", nm),
                ("overlap", 4.0 * nm),
                ("block", 32.0),
                ("launch", 1.0),
            ];
            for (property, count) in wanted {
                let detail = found.detail.get(property);
                assert_eq!(detail, Some(&count), "{path} {n} {m} {property}");
            }
            let others = found.detail.keys().filter(|name| {
                let counted = found.detail.contains_key(&format!("{name}.cycles"));
                counted && !wanted.iter().any(|(known, _)| known == name)
            });
            // What the papers do not count: indices.
            let others: Vec<&String> = others.collect();
            assert_eq!(others, ["int_add", "int_mul"], "{path}");
        }
    }
}

#[test]
fn the_example_of_the_paper_in_symbols() {
    for (path, text) in [("e.cu", CUDA), ("e.cl", OPENCL)] {
        let launch = overrides([2, 16, 1], [128, 1, 1], &[("n", 256), ("m", 512)]);
        let placed = kernel(path, text, &launch);
        let counts = placed.analysis.expressions();
        let of = |arithmetic| {
            let operator = warplens_facts::facts::Operator::Arithmetic(arithmetic);
            let found = counts.operators.iter().find(|(own, _)| *own == operator);
            found.map(|(_, form)| form.text.as_str())
        };
        assert_eq!(
            of(Arithmetic::Product(Number::Single)),
            Some("n*m"),
            "{path}"
        );
        assert_eq!(of(Arithmetic::Sum(Number::Single)), Some("n*m"), "{path}");
        let threads = |access: usize| counts.accesses[access].threads.as_ref();
        let loads = threads(0).expect("a").plus(threads(1).expect("b"));
        assert_eq!(loads.expect("short").text, "2*n*m", "{path}");
        assert_eq!(threads(2).expect("out").text, "n*m", "{path}");
    }
}

/// The number that a formula of sums and products gives: `12 + 0.5 * (2*n*m)`.
fn value(formula: &str, names: &BTreeMap<&str, f64>) -> f64 {
    let mut rest = formula;
    let found = sum(&mut rest, names);
    assert_eq!(rest, "", "{formula}");
    found
}

fn sum(rest: &mut &str, names: &BTreeMap<&str, f64>) -> f64 {
    let mut total = product(rest, names);
    loop {
        *rest = rest.trim_start();
        let sign = match rest.chars().next() {
            Some('+') => 1.0,
            Some('-') => -1.0,
            _ => return total,
        };
        *rest = &rest[1..];
        total += sign * product(rest, names);
    }
}

fn product(rest: &mut &str, names: &BTreeMap<&str, f64>) -> f64 {
    let mut total = factor(rest, names);
    while let Some(after) = rest.trim_start().strip_prefix('*') {
        *rest = after;
        total *= factor(rest, names);
    }
    total
}

fn factor(rest: &mut &str, names: &BTreeMap<&str, f64>) -> f64 {
    *rest = rest.trim_start();
    if let Some(after) = rest.strip_prefix('(') {
        *rest = after;
        let inner = sum(rest, names);
        *rest = rest.strip_prefix(')').expect("a parenthesis");
        return inner;
    }
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '.');
    let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
    *rest = after;
    let known = names.get(word).copied();
    known.unwrap_or_else(|| word.parse().unwrap_or_else(|_| panic!("{word}")))
}

#[test]
fn the_time_is_a_formula_that_gives_the_cycles() {
    for (n, m) in [(256, 512), (64, 4096)] {
        let launch = overrides([2, 16, 1], [128, 1, 1], &[("n", n), ("m", m)]);
        let found = estimate("e.cu", CUDA, "a100-sxm4-40gb", &launch);
        let formula = found.cycles_function.expect("a formula");
        let names = BTreeMap::from([("n", n as f64), ("m", m as f64)]);
        let (cycles, by_formula) = (found.cycles.expect("cycles"), value(&formula, &names));
        // Prices are printed with four figures.
        assert!(
            (by_formula - cycles).abs() < 1e-3 * cycles,
            "{formula}: {by_formula} {cycles}"
        );
        // And it holds for other sizes under the same launch.
        let other = overrides([2, 16, 1], [128, 1, 1], &[("n", 3 * n), ("m", 2 * m)]);
        let other = estimate("e.cu", CUDA, "a100-sxm4-40gb", &other);
        let names = BTreeMap::from([("n", 3.0 * n as f64), ("m", 2.0 * m as f64)]);
        let (cycles, by_formula) = (other.cycles.expect("cycles"), value(&formula, &names));
        assert!(
            (by_formula - cycles).abs() < 1e-3 * cycles,
            "{formula}: {by_formula} {cycles}"
        );
    }
}

#[test]
fn arithmetic_is_counted_by_kind_and_type() {
    let text = "
__global__ void k(float *f, double *d, int *v, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  f[i] = f[i] / 3.0f;
  f[i] = expf(f[i]) - 1.0f;
  f[i] = fmaf(f[i], 2.0f, 1.0f);
  d[i] = d[i] * 2.0;
  d[i] = sqrt(d[i]);
  v[i] = v[i] / n;
  v[i] = v[i] % n;
  v[i] = (v[i] << 2) * n;
  __syncthreads();
}
";
    let found = estimate(
        "k.cu",
        text,
        "a100-sxm4-40gb",
        &overrides([4, 1, 1], [64, 1, 1], &[("n", 7)]),
    );
    let threads = 256.0;
    for (property, times) in [
        ("f32_div", 1.0),
        ("f32_special", 1.0),
        // Of the subtraction and the fused operation.
        ("f32_add", 2.0),
        ("f32_mul", 1.0),
        ("f64_mul", 1.0),
        ("f64_special", 1.0),
        ("int_div", 2.0),
        // The index and the last statement.
        ("int_mul", 2.0),
        ("int_add", 2.0),
        ("barrier", 1.0),
        ("global_load_64_stride1", 2.0),
    ] {
        assert_eq!(
            found.detail.get(property),
            Some(&(times * threads)),
            "{property}"
        );
    }
}

#[test]
fn every_kernel_of_ours_has_an_answer() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels");
    let engine = Engine::new(Profiles::builtin());
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).expect("the folder") {
        let path = entry.expect("an entry").path();
        let Some(language) = Language::from_path(&path) else {
            continue;
        };
        let document = Document::new(&std::fs::read_to_string(&path).expect("text"), language);
        let found = engine.analyze(
            &document,
            &path,
            &Settings::default(),
            &Overrides::default(),
            &Cancel::default(),
        );
        for placed in found.expect("not cancelled").kernels {
            let estimate = &placed.analysis.estimates()[&ModelId::Linear];
            let name = &placed.analysis.facts.name;
            let cycles = estimate
                .cycles
                .unwrap_or_else(|| panic!("{name}: {:?}", estimate.why));
            let lines: f64 = estimate.lines.iter().map(|line| line.1).sum();
            assert!(
                cycles > 0.0 && (lines - cycles).abs() < 1e-9 * cycles,
                "{name}"
            );
            seen += 1;
        }
    }
    assert!(seen > 30, "{seen}");
}

#[test]
fn a_hundred_lines_take_less_than_a_millisecond() {
    let mut body = String::new();
    for line in 0..49 {
        let _ = writeln!(
            body,
            "  float v{line} = a[i + {line}] * 2.0f;\n  b[i * {}] = v{line} / 3.0f;",
            line % 5 + 1
        );
    }
    let text = format!(
        "__global__ void k(const float *a, float *b) {{\n  \
         int i = blockIdx.x * blockDim.x + threadIdx.x;\n{body}}}\n"
    );
    assert_eq!(text.lines().count(), 101);
    let placed = kernel("k.cu", &text, &overrides([64, 1, 1], [256, 1, 1], &[]));
    let question = Question::of(&placed.analysis.input);
    // The machine may be busy with other tests: the fastest of many runs is the model's own time.
    let fastest = (0..200).map(|_| {
        let began = Instant::now();
        let made = warplens_models::estimate(ModelId::Linear, &question);
        assert!(made.cycles.is_some() && made.detail.len() > 16);
        began.elapsed()
    });
    let fastest = fastest.min().expect("runs");
    assert!(fastest < Duration::from_millis(1), "{fastest:?}");
}
