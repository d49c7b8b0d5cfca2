//! Times that depend on sizes that nothing gives: formulas that are right when the sizes are filled in, and no number that
//! rests on an invented one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, FileAnalysis, LaunchValues, Overrides, Variants};
use warplens_machine::Profiles;
use warplens_models::OpenTime;
use warplens_syntax::{Document, Language};

/// A formula may be off by this much where its sizes are filled in.
const RIGHT: f64 = 0.02;

fn analysed(engine: &Engine, path: &Path, text: &str, argument: LaunchValues) -> FileAnalysis {
    let language = match path.extension().and_then(|end| end.to_str()) {
        Some("cl") => Language::OpenCl,
        Some("hip") => Language::Hip,
        _ => Language::Cuda,
    };
    let overrides = Overrides {
        argument,
        variants: Variants::All,
        ..Overrides::default()
    };
    let (settings, never) = (Settings::default(), Cancel::default());
    let document = Document::new(text, language);
    let found = engine.analyze(&document, path, &settings, &overrides, &never);
    found.expect("not cancelled")
}

fn of_text(text: &str, argument: LaunchValues) -> FileAnalysis {
    let engine = Engine::new(Profiles::builtin());
    analysed(&engine, Path::new("kernel.cu"), text, argument)
}

fn args(values: &[(&str, i64)]) -> LaunchValues {
    LaunchValues {
        args: values
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect(),
        ..LaunchValues::default()
    }
}

/// The open time of a file's only kernel, the time where it is known, and the name of what bounds it.
fn only(file: &FileAnalysis) -> (Option<OpenTime>, Option<f64>, Option<&'static str>) {
    assert_eq!(file.kernels.len(), 1, "one kernel");
    let estimate = file.kernels[0].analysis.estimate();
    (
        estimate.open.clone(),
        estimate.time_ms,
        estimate.bottleneck.map(warplens_models::Bottleneck::name),
    )
}

/// A formula's value in milliseconds.
fn filled(formula: &str, values: &BTreeMap<String, i64>) -> f64 {
    let unit = |name: &str| match name {
        "fs" => 1e-12,
        "ps" => 1e-9,
        "ns" => 1e-6,
        "µs" => 1e-3,
        "ms" => 1.0,
        other => panic!("no unit: {other} in {formula}"),
    };
    let factor = |factor: &str| {
        if let Some((number, of)) = factor.split_once(' ') {
            return number.parse::<f64>().expect("a number") * unit(of);
        }
        let (name, power) = match factor.strip_suffix('²') {
            Some(name) => (name, 2),
            None => match factor.strip_suffix('³') {
                Some(name) => (name, 3),
                None => (factor, 1),
            },
        };
        (values[name] as f64).powi(power)
    };
    let terms = formula.split(" + ");
    terms
        .map(|term| term.split(" × ").map(factor).product::<f64>())
        .sum()
}

fn sources(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests")
        .join(folder);
    let entries = std::fs::read_dir(folder).expect("our kernels");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("readable").path())
        .filter(|path| {
            let end = path.extension().and_then(|end| end.to_str());
            matches!(end, Some("cu" | "cl" | "hip" | "cuh"))
        })
        .collect();
    files.sort();
    files
}

#[test]
fn formulas_are_right_where_their_sizes_are_filled_in() {
    let engine = Engine::new(Profiles::builtin());
    let mut wrong = Vec::new();
    let mut tried = 0;
    for path in sources("kernels").into_iter().chain(sources("corpus")) {
        let text = std::fs::read_to_string(&path).expect("one of our kernels");
        let open = analysed(&engine, &path, &text, LaunchValues::default());
        for kernel in &open.kernels {
            let estimate = kernel.analysis.estimate();
            let Some(OpenTime {
                unknowns,
                formula: Some(formula),
                from,
                ..
            }) = &estimate.open
            else {
                continue;
            };
            let times: [[i64; 3]; 2] = match unknowns.len() {
                1 => [[3; 3], [20; 3]],
                2 => [[2, 5, 1], [6, 2, 1]],
                _ => [[2, 3, 1], [1, 2, 5]],
            };
            for times in times {
                let values: BTreeMap<String, i64> = from
                    .iter()
                    .zip(times.into_iter().cycle())
                    .map(|((name, least), times)| (name.clone(), least * times))
                    .collect();
                let blocks = ["gridDim.x", "gridDim.y", "gridDim.z"]
                    .map(|axis| values.get(axis).map(|blocks| *blocks as u64));
                let mut given = LaunchValues {
                    args: values
                        .iter()
                        .filter(|(name, _)| !name.contains('.'))
                        .map(|(name, value)| (name.clone(), *value))
                        .collect(),
                    ..LaunchValues::default()
                };
                if blocks.iter().any(Option::is_some) {
                    let follows = kernel.analysis.grid_formula();
                    if follows.is_some_and(|text| text.contains("ceil")) {
                        continue;
                    }
                    given.grid = Some(blocks.map(|blocks| blocks.unwrap_or(1)));
                }
                let file = analysed(&engine, &path, &text, given);
                let mut same = file.kernels.iter();
                let same = same.find(|one| {
                    one.start == kernel.start
                        && one.variant == kernel.variant
                        && one.analysis.template_args == kernel.analysis.template_args
                });
                let numeric = same.and_then(|one| one.analysis.estimate().time_ms);
                let Some(numeric) = numeric else { continue };
                tried += 1;
                let symbolic = filled(formula, &values);
                if (symbolic / numeric - 1.0).abs() > RIGHT {
                    let file = path.file_name().unwrap_or_default().to_string_lossy();
                    wrong.push(format!(
                        "{file} {}: {formula} is {symbolic:.5} ms for {values:?}, predicted {numeric:.5} ms",
                        kernel.analysis.facts.name
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "of {tried}:\n{}", wrong.join("\n"));
    assert!(tried > 100, "only {tried} tried");
}

const SAXPY: &str = "__global__ void saxpy(int n, float a, const float *x, float *y) {\n\
     \x20 int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) y[i] += a * x[i];\n}\n";

#[test]
fn the_first_kernel_that_a_newcomer_types_is_bound_by_memory_and_costs_by_the_element() {
    let file = of_text(SAXPY, LaunchValues::default());
    let (open, time, bottleneck) = only(&file);
    assert_eq!(time, None);
    assert_eq!(bottleneck, Some("memory_bandwidth"));
    let open = open.expect("n is not given");
    assert_eq!(open.unknowns, ["n"]);
    let formula = open.formula.expect("a line");
    let of = |n| filled(&formula, &BTreeMap::from([("n".to_owned(), n)]));
    let given = only(&of_text(SAXPY, args(&[("n", 50_000_000)]))).1;
    let given = given.expect("a time");
    assert!((of(50_000_000) / given - 1.0).abs() < RIGHT, "{formula}");
    let analysis = &file.kernels[0].analysis;
    assert_eq!(analysis.grid_formula().as_deref(), Some("ceil(n / 256)"));
    assert!((analysis.input.occupancy.fraction - 1.0).abs() < 1e-9);
}

#[test]
fn a_grid_follows_the_guard_however_it_is_written() {
    let grid = |guard: &str, parameters: &str| {
        let text = format!(
            "__global__ void k({parameters}, float *a) {{\n  int x = blockIdx.x * blockDim.x + threadIdx.x;\n\
             \x20 int y = blockIdx.y * blockDim.y + threadIdx.y;\n  {guard}\n}}\n"
        );
        of_text(&text, LaunchValues::default()).kernels[0]
            .analysis
            .grid_formula()
    };
    let two = Some("ceil(w / 16), ceil(h / 16)".to_owned());
    assert_eq!(
        grid(
            "if (x >= w || y >= h) return; a[y * w + x] = 0;",
            "int w, int h"
        ),
        two
    );
    assert_eq!(
        grid("if (x < w && y < h) a[y * w + x] = 0;", "int w, int h"),
        two
    );
    assert_eq!(
        grid(
            "if (x < w) { if (y < h) a[y * w + x] = 0; }",
            "int w, int h"
        ),
        two
    );
    assert_eq!(
        grid(
            "if (!(x < w) || !(h > y)) return; a[y * w + x] = 0;",
            "int w, int h"
        ),
        two
    );
    let inner = Some("ceil((w - 1) / 16), ceil((h - 1) / 16)".to_owned());
    assert_eq!(
        grid(
            "if (x > 0 && x < w - 1 && y > 0 && y < h - 1) a[y * w + x] = 0;",
            "int w, int h"
        ),
        inner
    );
    // A bound that data decides, or one that the thread computes, asks for no grid.
    assert_eq!(
        grid("if (x < a[0]) a[y] = 0;", "int w").as_deref(),
        Some("gridDim.x, gridDim.y")
    );
}

/// The grid's formula of the only kernel, and its time's where the grid follows from sizes.
fn grid_and_time(text: &str) -> (String, OpenTime) {
    let file = of_text(text, LaunchValues::default());
    let (open, ..) = only(&file);
    let grid = file.kernels[0].analysis.grid_formula();
    (grid.unwrap_or_default(), open.expect("sizes are not given"))
}

#[test]
fn a_grid_that_is_a_product_of_arguments_is_a_formula_in_these() {
    let tiles = "__global__ void gemm(const float *a, const float *b, float *c, int m, int n, int k) {\n\
         \x20 int across = (n + 127) / 128, row = blockIdx.x / across * 128 + threadIdx.x / 2;\n\
         \x20 int column = blockIdx.x % across * 128 + threadIdx.x % 2;\n  float sum = 0;\n\
         \x20 for (int i = 0; i < k; i++) sum += a[row * k + i] * b[i * n + column];\n\
         \x20 c[row * n + column] = sum;\n}\n";
    let heads = "__global__ void heads(const float *q, float *o, int b, int h, int n, int d) {\n\
         \x20 int row = blockIdx.y * 64 + threadIdx.x;\n  if (row >= n) return;\n\
         \x20 const float *own = q + (size_t)blockIdx.x * n * d;\n  float sum = 0;\n\
         \x20 for (int i = 0; i < d; i++) sum += own[row * d + i];\n\
         \x20 o[(size_t)blockIdx.x * n + row] = sum;\n}\n";
    let cases = [
        (
            tiles,
            "void run(float *a, float *b, float *c, int m, int n, int k) {\n\
             \x20 int tiles = ((m + 127) / 128) * ((n + 127) / 128);\n\
             \x20 gemm<<<tiles, 256>>>(a, b, c, m, n, k);\n}\n",
            "ceil(m / 128) * ceil(n / 128)",
            vec![
                [("m", 8192), ("n", 8192), ("k", 512)].to_vec(),
                [("m", 16384), ("n", 4096), ("k", 2048)].to_vec(),
            ],
        ),
        (
            heads,
            "void run(float *q, float *o, int b, int h, int n, int d) {\n\
             \x20 dim3 grid(b * h, (n + 63) / 64);\n  heads<<<grid, 64>>>(q, o, b, h, n, d);\n}\n",
            "b * h, ceil(n / 64)",
            vec![
                [("b", 32), ("h", 64), ("n", 4096), ("d", 128)].to_vec(),
                [("b", 64), ("h", 16), ("n", 8192), ("d", 256)].to_vec(),
            ],
        ),
    ];
    for (kernel, launch, grid, given) in cases {
        let text = format!("{kernel}{launch}");
        let (follows, open) = grid_and_time(&text);
        assert_eq!(follows, grid);
        let formula = open.formula.expect("a sum of products");
        assert!(!formula.contains("gridDim"), "{formula}");
        for given in given {
            let values: BTreeMap<String, i64> = given
                .iter()
                .map(|(name, value)| ((*name).to_owned(), *value))
                .collect();
            let numeric = only(&of_text(&text, args(&given))).1.expect("a time");
            let symbolic = filled(&formula, &values);
            assert!(
                (symbolic / numeric - 1.0).abs() < RIGHT,
                "{formula} is {symbolic} ms for {given:?}, predicted {numeric} ms"
            );
        }
    }
}

#[test]
fn what_a_grid_divides_by_is_the_block() {
    let launched = |kernel: &str, launch: &str| {
        let text = format!(
            "__global__ void k(float *x, int n, int b) {{\n  int i = blockIdx.x * {kernel} + threadIdx.x;\n\
             \x20 if (i < n) x[i] = 2;\n}}\nvoid run(float *x, int n, int b) {{\n  {launch}\n}}\n"
        );
        let file = of_text(&text, LaunchValues::default());
        let analysis = &file.kernels[0].analysis;
        let estimate = analysis.estimate();
        (
            analysis.grid_formula().unwrap_or_default(),
            estimate.time_ms,
            estimate.open.clone().and_then(|open| open.formula),
        )
    };
    let one_per_thread = launched("blockDim.x", "k<<<(n + 255) / 256, 256>>>(x, n, 1);");
    assert_eq!(one_per_thread.0, "ceil(n / 256)");
    // As many as the assumed block has, in each way that it is written.
    for launch in [
        "k<<<(n + b - 1) / b, b>>>(x, n, b);",
        "dim3 grid((n - 1 + b) / b), block(b); k<<<grid, block>>>(x, n, b);",
    ] {
        assert_eq!(launched("blockDim.x", launch), one_per_thread, "{launch}");
    }
    let (grid, time, formula) = launched("blockDim.x", "k<<<n / b, b>>>(x, n, b);");
    assert_eq!((grid.as_str(), time), ("n / 256", None));
    assert!(formula.is_some());
    // Where the launch says the block, the divisor is another number.
    let (grid, time, _) = launched("b", "k<<<(n + b - 1) / b, 128>>>(x, n, b);");
    assert_eq!((grid.as_str(), time), ("(n + b - 1) / b", None));
}

#[test]
fn what_a_launch_says_of_one_axis_is_known_of_that() {
    let kernel = "__global__ void k(float *a, int n) {\n\
         \x20 int i = blockIdx.y * blockDim.x + threadIdx.x;\n\
         \x20 if (i < n) a[blockIdx.x * n + i] = 0;\n}\n";
    let launched = |launch: &str| {
        let text = format!("{kernel}void run(float *a, int n, int batch) {{\n  {launch}\n}}\n");
        grid_and_time(&text).0
    };
    assert_eq!(
        launched("k<<<dim3(batch, (n + 127) / 128), 128>>>(a, n);"),
        "gridDim.x, ceil(n / 128)"
    );
    assert_eq!(
        launched("k<<<dim3(16, batch), 128>>>(a, n);"),
        "16, ceil(n / 128)"
    );
}

#[test]
fn a_row_of_each_block_and_a_warp_of_each_row_are_counted() {
    let grid = |row: &str| {
        let text = format!(
            "__global__ void k(int rows, int columns, float *a) {{\n  int row = {row};\n  if (row >= rows) return;\n\
             \x20 for (int i = threadIdx.x % 32; i < columns; i += 32) a[row * columns + i] = 0;\n}}\n"
        );
        of_text(&text, LaunchValues::default()).kernels[0]
            .analysis
            .grid_formula()
    };
    assert_eq!(grid("blockIdx.x").as_deref(), Some("rows"));
    assert_eq!(
        grid("(blockIdx.x * blockDim.x + threadIdx.x) / 32").as_deref(),
        Some("ceil(rows / 8)")
    );
}

#[test]
fn sizes_that_change_nothing_are_not_mentioned() {
    let text = "__global__ void k(int n, int unused, int shift, float *a) {\n\
                \x20 int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) a[i + shift] = 1.0f;\n}\n";
    let file = of_text(text, LaunchValues::default());
    let (open, ..) = only(&file);
    assert_eq!(open.expect("n is not given").unknowns, ["n"]);
    let assumed = &file.kernels[0].analysis.facts.assumptions;
    assert!(assumed.iter().all(|one| !one.symbol.is_named("unused")));
    assert!(assumed.iter().all(|one| one.value != "1024"));
}

#[test]
fn a_grid_that_strides_costs_by_the_element() {
    let text = "__global__ void k(int n, float *a) {\n\
                \x20 for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) a[i] += 1.0f;\n}\n";
    let (open, time, bottleneck) = only(&of_text(text, LaunchValues::default()));
    assert_eq!((time, bottleneck), (None, Some("memory_bandwidth")));
    let open = open.expect("n is not given");
    assert_eq!(open.unknowns, ["n"]);
    assert!(open.formula.is_some());
}

#[test]
fn a_time_that_no_short_sum_gives_names_what_it_needs() {
    let text = "__global__ void k(int n, float *a) {\n  float s = 0;\n\
                \x20 for (int i = 1; i < n; i *= 2) s += a[i + threadIdx.x];\n  a[threadIdx.x + blockIdx.x * blockDim.x] = s;\n}\n";
    let argument = LaunchValues {
        grid: Some([4096, 1, 1]),
        ..LaunchValues::default()
    };
    let (open, time, _) = only(&of_text(text, argument));
    assert_eq!(time, None);
    let open = open.expect("n is not given");
    assert_eq!(open.unknowns, ["n"]);
    assert_eq!(open.formula, None);
}

#[test]
fn a_time_is_a_number_where_everything_is_given() {
    let (open, time, _) = only(&of_text(SAXPY, args(&[("n", 1 << 20)])));
    assert_eq!(open, None);
    assert!(time.is_some_and(|time| time > 0.0));
}

#[test]
fn a_flag_that_nothing_gives_makes_a_range_of_times() {
    let text = "// warplens: block=256 grid=4096
        __global__ void scale(float *a, bool twice) {
            int i = blockIdx.x * 256 + threadIdx.x;
            float sum = a[i];
            if (twice) {
                for (int k = 1; k < 8; k++) sum += a[i + k * 1048576];
            }
            a[i] = sum;
        }";
    let (open, time, _) = only(&of_text(text, LaunchValues::default()));
    assert_eq!(time, None, "no number for a flag that is made up");
    let open = open.expect("the time depends on the flag");
    assert_eq!(open.unknowns, ["twice"]);
    let given = |value: i64| {
        let (open, time, _) = only(&of_text(text, args(&[("twice", value)])));
        assert_eq!(open, None);
        time.expect("nothing is unknown")
    };
    let range = open.range.expect("two times");
    assert_eq!(range, [given(0), given(1)]);
    assert!(range[1] > 3.0 * range[0], "{range:?}");
    let shown = open.formula.expect("both as text");
    assert!(shown.contains(" to ") && shown.ends_with("µs"), "{shown}");
}

#[test]
fn a_texture_is_no_size() {
    let text = "// warplens: block=256 grid=4096
        __global__ void fetch(float *out, cudaTextureObject_t from) {
            int i = blockIdx.x * 256 + threadIdx.x;
            out[i] = tex1Dfetch<float>(from, i);
        }";
    let (open, time, _) = only(&of_text(text, LaunchValues::default()));
    assert_eq!(open, None);
    assert!(time.is_some());
}

#[test]
fn a_flag_that_changes_no_time_leaves_it_a_number() {
    let text = "// warplens: block=256 grid=4096
        __global__ void copy(const float *a, float *b, float *c, bool first) {
            int i = blockIdx.x * 256 + threadIdx.x;
            (first ? b : c)[i] = a[i];
        }";
    let (open, time, _) = only(&of_text(text, LaunchValues::default()));
    assert_eq!(open, None);
    assert!(time.is_some());
}
