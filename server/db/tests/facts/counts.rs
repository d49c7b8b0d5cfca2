//! Operations as functions of the parameters: the formula, and that it gives what is counted thread by thread.

use std::path::Path;

use warplens_db::settings::Settings;
use warplens_db::{Engine, LaunchValues, Overrides, wire};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

/// The counts of a kernel `k` under `grid` blocks of `block` threads with `n`, `m` as given.
fn counts(body: &str, grid: u64, block: [u64; 3], n: i64, m: i64) -> Vec<wire::Count> {
    let text = format!("__global__ void k(int n, int m, unsigned u, float *a) {{\n{body}\n}}\n");
    let document = Document::new(&text, Language::Cuda);
    let overrides = Overrides {
        argument: LaunchValues {
            grid: Some([grid, 1, 1]),
            block: Some(block),
            args: [("n", n), ("m", m), ("u", n)]
                .map(|(name, value)| (name.to_owned(), value))
                .into(),
            ..LaunchValues::default()
        },
        ..Overrides::default()
    };
    let found = Engine::new(Profiles::builtin()).estimate(
        &document,
        Path::new("k.cu"),
        &Settings::default(),
        &overrides,
        &[],
        &[],
        &[],
    );
    found.expect("a known GPU").results.remove(0).counts
}

#[track_caller]
fn of<'a>(counts: &'a [wire::Count], class: &str) -> &'a wire::Count {
    let found = counts.iter().find(|count| count.class == class);
    found.unwrap_or_else(|| panic!("no {class}: {counts:?}"))
}

const INDEX: &str = "int i = blockIdx.x * blockDim.x + threadIdx.x;";

#[test]
fn formulas_are_in_the_parameters_alone() {
    for (body, class, formula) in [
        ("if (i < n) a[i] = 2 * a[i] + 1;", "fp32", "2*min(n, 512)"),
        (
            "if (i < n) for (int j = 0; j < m; j++) a[i] += 1;",
            "global_load",
            "m*min(n, 512)",
        ),
        (
            "for (; i < n; i += gridDim.x * blockDim.x) a[i] = 0;",
            "global_store",
            "n",
        ),
        (
            "for (; i < n; i += gridDim.x * blockDim.x) a[i] = 0;",
            "branch",
            "n + 512",
        ),
        (
            "for (int j = 0; j < n / 16; j++) __syncthreads();",
            "barrier",
            "512*floor(n/16)",
        ),
        (
            "for (int j = 0; j < n; j += 3) a[i] = 0;",
            "global_store",
            "512*ceil(n/3)",
        ),
        (
            "if (i >= n) return; for (int j = 0; j < i; j++) a[j] = 0;",
            "global_store",
            "min(n, 512)*(min(n, 512) - 1)/2",
        ),
        (
            "if (threadIdx.x == 0) for (int j = n; j > 0; j -= 2) a[j] = 0;",
            "global_store",
            "8*ceil(n/2)",
        ),
        (
            "for (int j = 0; j <= n; j++) for (int l = j; l <= n; l++) a[l] = 0;",
            "global_store",
            "256*n*n + 768*n + 512",
        ),
        (
            "for (int s = blockDim.x / 2; s > 0; s >>= 1) if (threadIdx.x < s) a[i] = 0;",
            "global_store",
            "504",
        ),
    ] {
        let found = counts(&format!("{INDEX}\n{body}"), 8, [64, 1, 1], 100, 7);
        let count = of(&found, class);
        assert_eq!(count.expr.as_deref(), Some(formula), "{body}");
    }
}

/// A formula is given only where it agrees with the walk over the launch, so that to be given is to agree.
#[test]
fn formulas_hold_for_other_arguments() {
    for body in [
        "if (i < n) a[i] += 1;",
        "for (; i < n; i += gridDim.x * blockDim.x) a[i] += 1;",
        "if (i >= n) return; for (int j = i + 1; j < n; j++) a[j] += 1;",
        "if (i < n && i % 2 == 0) a[i] += 1;",
        "if (i < n || i == m) a[i] += 1;",
        "for (int j = i; j < n - 3; j++) for (int l = 0; l < m; l += 2) a[l] += 1;",
        "for (unsigned j = i; j < u; j++) a[j] += 1;",
        "int j = 0; do { a[i] += 1; j += 2; } while (j < n);",
        "for (int j = n - 1; j >= 0; j--) if (j < m) a[j] += 1;",
        "for (int j = 0; j < n; j += 16) for (int l = j; l < min(j + 16, n); l++) a[l] += 1;",
    ] {
        for (n, m) in [
            (1, 1),
            (2, 30),
            (31, 5),
            (32, 32),
            (33, 7),
            (40, 90),
            (95, 3),
            (200, 10),
        ] {
            let found = counts(&format!("{INDEX}\n{body}"), 3, [32, 1, 1], n, m);
            let count = of(&found, "global_load");
            assert!(
                count.expr.is_some() && count.exact,
                "{body} n {n} m {m}: {count:?}"
            );
        }
    }
}

#[test]
fn operators_count_as_often_as_they_are_evaluated() {
    // i: 2. The loop, entered by 100 threads: 7 tests more to come in than iterations.
    let found = counts(
        &format!("{INDEX}\nif (i < n) for (int j = 0; j < m; j++) a[i * 2] = 1;"),
        8,
        [64, 1, 1],
        100,
        7,
    );
    let int = of(&found, "int");
    assert_eq!(int.value, Some(512.0 * 3.0 + 100.0 * (8.0 + 7.0 + 7.0)));
    assert_eq!(of(&found, "branch").value, Some(512.0 + 100.0 * 8.0));
    assert!(int.exact);
}

#[test]
fn what_hangs_on_data_has_no_formula() {
    let found = counts(
        &format!("{INDEX}\nif (a[i] > 0) a[i] = 1;"),
        8,
        [64, 1, 1],
        100,
        7,
    );
    let store = of(&found, "global_store");
    assert!(store.expr.is_none() && !store.exact, "{store:?}");
    assert_eq!(of(&found, "global_load").expr.as_deref(), Some("512"));
    let found = counts(
        &format!("{INDEX}\nunheard_of(i); if (i < n) a[i] = 1;"),
        8,
        [64, 1, 1],
        100,
        7,
    );
    let store = of(&found, "global_store");
    assert!(store.expr.is_none() && !store.exact, "{store:?}");
}
