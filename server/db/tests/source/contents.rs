//! Given contents of arrays: what depends on them is what a plain loop over the matrix counts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, LazyLock};

use warplens_db::settings::Settings;
use warplens_db::wire::{Access, EstimateDocument, KernelResult};
use warplens_db::{Engine, LaunchValues, Overrides};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

static ENGINE: LazyLock<Engine> = LazyLock::new(|| Engine::new(Profiles::builtin()));

const GLOBAL: &str = "__global__ void spmv(const int *rowptr, const int *col, const float *val, \
     const float *x, float *y, int rows) {\n\
     int row = blockIdx.x * blockDim.x + threadIdx.x;\n\
     if (row < rows) {\n\
     float sum = 0;\n\
     for (int k = rowptr[row]; k < rowptr[row + 1]; ++k)\n\
     sum += val[k] * x[col[k]];\n\
     y[row] = sum;\n\
     }\n}\n";

/// The row bounds pass through shared memory.
const SHARED: &str = "__global__ void spmv(const int *rowptr, const int *col, const float *val, \
     const float *x, float *y, int rows) {\n\
     __shared__ int bounds[65];\n\
     int row = blockIdx.x * 64 + threadIdx.x;\n\
     bounds[threadIdx.x] = rowptr[row];\n\
     if (threadIdx.x == 0) bounds[64] = rowptr[blockIdx.x * 64 + 64];\n\
     __syncthreads();\n\
     float sum = 0;\n\
     for (int k = bounds[threadIdx.x]; k < bounds[threadIdx.x + 1]; ++k)\n\
     sum += val[k] * x[col[k]];\n\
     y[row] = sum;\n}\n";

/// A square matrix with rows of several lengths.
struct Matrix {
    rowptr: Vec<i32>,
    col: Vec<i32>,
}

impl Matrix {
    fn new(rows: i32, length: impl Fn(i32) -> i32) -> Matrix {
        let (mut rowptr, mut col) = (vec![0], Vec::new());
        for row in 0..rows {
            for k in 0..length(row) {
                col.push((row * 7 + k * k * 5) % rows);
            }
            rowptr.push(col.len() as i32);
        }
        Matrix { rowptr, col }
    }

    fn uneven() -> Matrix {
        Matrix::new(256, |row| {
            3 + row * 13 % 29 + if row % 50 == 7 { 40 } else { 0 }
        })
    }

    fn length(&self, row: usize) -> i32 {
        self.rowptr[row + 1] - self.rowptr[row]
    }

    /// Iterations of warps.
    fn iterations(&self) -> i32 {
        let rows: Vec<usize> = (0..self.rowptr.len() - 1).collect();
        let longest = |warp: &[usize]| warp.iter().map(|row| self.length(*row)).max();
        rows.chunks(32).filter_map(longest).sum()
    }

    /// Sectors of 32 bytes that the loads of x touch.
    fn sectors(&self) -> usize {
        let rows: Vec<usize> = (0..self.rowptr.len() - 1).collect();
        let mut sectors = 0;
        for warp in rows.chunks(32) {
            let longest = warp.iter().map(|row| self.length(*row)).max();
            for turn in 0..longest.unwrap_or(0) {
                let lanes = warp.iter().filter(|row| turn < self.length(**row));
                let touched: BTreeSet<i32> = lanes
                    .map(|row| self.col[(self.rowptr[*row] + turn) as usize] / 8)
                    .collect();
                sectors += touched.len();
            }
        }
        sectors
    }

    fn contents(&self) -> BTreeMap<String, Arc<[u8]>> {
        [
            ("rowptr".to_owned(), bytes(&self.rowptr)),
            ("col".to_owned(), bytes(&self.col)),
        ]
        .into()
    }
}

fn bytes(numbers: &[i32]) -> Arc<[u8]> {
    numbers
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect()
}

fn estimate(
    text: &str,
    rows: u64,
    contents: BTreeMap<String, Arc<[u8]>>,
) -> Result<EstimateDocument, String> {
    let overrides = Overrides {
        argument: LaunchValues {
            grid: Some([rows.div_ceil(64), 1, 1]),
            block: Some([64, 1, 1]),
            args: [("rows".to_owned(), rows as i64)].into(),
            ..LaunchValues::default()
        },
        contents,
        ..Overrides::default()
    };
    ENGINE.estimate(
        &Document::new(text, Language::Cuda),
        Path::new("spmv.cu"),
        &Settings::default(),
        &overrides,
        &[],
        &[],
        &[],
    )
}

fn result(text: &str, rows: u64, contents: BTreeMap<String, Arc<[u8]>>) -> KernelResult {
    let mut document = estimate(text, rows, contents).expect("fit");
    document.results.remove(0)
}

fn access<'a>(result: &'a KernelResult, text: &str) -> &'a Access {
    let found = result.accesses.iter().find(|access| access.text == text);
    found.expect("is in the kernel")
}

fn assumption<'a>(result: &'a KernelResult, symbol: &str) -> Option<&'a str> {
    let mut found = result.assumptions.iter();
    let found = found.find(|assumption| assumption.symbol == symbol);
    found.map(|assumption| assumption.value.as_str())
}

#[test]
fn loops_and_addresses_are_those_of_the_matrix() {
    let matrix = Matrix::uneven();
    for text in [GLOBAL, SHARED] {
        let known = result(text, 256, matrix.contents());
        let x = access(&known, "x[col[k]]");
        assert!(x.exact, "{x:?}");
        assert_eq!(x.requests, Some(f64::from(matrix.iterations())));
        let sectors = x.transactions_per_request.unwrap_or(0.0) * x.requests.unwrap_or(0.0);
        assert!(
            (sectors - matrix.sectors() as f64).abs() < 1e-6,
            "{sectors}"
        );
        let lanes = x.active_lanes_per_request.unwrap_or(0.0) * x.requests.unwrap_or(0.0);
        assert!((lanes - matrix.col.len() as f64).abs() < 1e-6, "{lanes}");
        let row_loop = known.branches.iter().find(|branch| branch.kind == "loop");
        assert!(row_loop.is_some_and(|branch| branch.exact), "{row_loop:?}");
        let loads = known.counts.iter().find(|count| count.class == "fp32");
        assert_eq!(
            loads.and_then(|count| count.value),
            Some(2.0 * matrix.col.len() as f64)
        );
        assert!(
            known
                .assumptions
                .iter()
                .all(|one| !one.symbol.starts_with("trips(")),
            "{:?}",
            known.assumptions
        );
    }
}

#[test]
fn without_contents_nothing_of_it_is_known() {
    let open = result(GLOBAL, 256, BTreeMap::new());
    assert!(!access(&open, "x[col[k]]").exact);
    let wfg = &open.estimates["wfg"];
    let function = wfg.cycles_function.as_deref().unwrap_or_default();
    assert!(function.contains("trips(loop 1)"), "{function}");
}

#[test]
fn contents_specialise_the_estimate() {
    let cycles = |matrix: &Matrix| {
        let known = result(GLOBAL, 256, matrix.contents());
        let wfg = &known.estimates["wfg"];
        assert_eq!(wfg.cycles_function, None);
        wfg.cycles.expect("applies")
    };
    let (short, long) = (Matrix::new(256, |_| 4), Matrix::new(256, |_| 64));
    // Rows of 64 take about 16 times those of 4, launch and prologue aside.
    let ratio = cycles(&long) / cycles(&short);
    assert!((6.0..20.0).contains(&ratio), "{ratio}");
    // A warp waits for its longest row.
    let spiky = Matrix::new(256, |row| if row % 32 == 0 { 64 } else { 4 });
    assert!(cycles(&spiky) > 3.0 * cycles(&short));
}

#[test]
fn a_large_launch_is_a_sample_and_says_so() {
    let text = "__global__ void k(const int *rowptr, float *y) {\n\
         int row = blockIdx.x * 64 + threadIdx.x;\n\
         for (int k = rowptr[row]; k < rowptr[row + 1]; ++k) y[k] = 0;\n}\n";
    let rows = 12_800;
    let rowptr: Vec<i32> = (0..=rows).map(|row| 2000 * row).collect();
    let contents = [("rowptr".to_owned(), bytes(&rowptr))].into();
    let known = result(text, rows as u64, contents);
    let y = access(&known, "y[k]");
    assert_eq!(y.certainty, "assumed");
    let said = assumption(&known, "sample").expect("said");
    assert!(
        said.ends_with("of 200 blocks run on the given contents"),
        "{said}"
    );
    // All blocks are alike: the sample represents them.
    assert_eq!(y.requests, Some(f64::from(rows / 32 * 2000)));
}

#[test]
fn contents_that_end_too_early_are_named() {
    let matrix = Matrix::uneven();
    let mut contents = matrix.contents();
    contents.insert("rowptr".to_owned(), bytes(&matrix.rowptr[..200]));
    let short = result(GLOBAL, 256, contents);
    assert!(!access(&short, "x[col[k]]").exact);
    let said = assumption(&short, "contents(rowptr)").expect("said");
    assert!(said.contains("too short: element 200 is read"), "{said}");
}

#[test]
fn an_array_that_the_kernel_writes_has_no_known_contents() {
    let text = "__global__ void k(int *a, float *y) {\n\
         int i = blockIdx.x * 64 + threadIdx.x;\n\
         for (int k = 0; k < a[i]; ++k) y[k * 64 + i] = 0;\n\
         a[i] = 0;\n}\n";
    let contents = [("a".to_owned(), bytes(&[3; 256]))].into();
    let known = result(text, 256, contents);
    assert!(!access(&known, "y[k * 64 + i]").exact);
    let said = assumption(&known, "contents(a)").expect("said");
    assert!(said.contains("the kernel writes to the array"), "{said}");
}

#[test]
fn unfit_contents_are_refused_in_words() {
    let refused = |name: &str, bytes: &[u8]| {
        let contents = [(name.to_owned(), bytes.into())].into();
        estimate(GLOBAL, 256, contents).expect_err("unfit")
    };
    let unknown = refused("rows", &[0; 4]);
    assert!(unknown.contains("`rowptr`, `val`, `x`, `y`"), "{unknown}");
    let part = refused("rowptr", &[0; 7]);
    assert!(
        part.contains("7 bytes") && part.contains("4 bytes"),
        "{part}"
    );
}

#[test]
fn conditions_on_given_flags_are_counted() {
    let text = "__global__ void k(const unsigned char *flag, float *y) {\n\
         int i = blockIdx.x * 64 + threadIdx.x;\n\
         if (flag[i]) y[i] = y[i] + 1;\n}\n";
    let flags: Arc<[u8]> = (0..256u32).map(|i| u8::from(i < 32 || i == 100)).collect();
    let known = result(text, 256, [("flag".to_owned(), flags)].into());
    let branch = &known.branches[0];
    assert!(branch.exact, "{branch:?}");
    // Of 8 warps the first takes it whole and the fourth with one lane.
    assert_eq!(branch.taken_warp_fraction, Some(0.25));
    assert_eq!(branch.divergent_warp_fraction, Some(0.125));
    let store = known.accesses.iter().find(|access| access.op == "store");
    assert_eq!(store.and_then(|store| store.requests), Some(2.0));
}

#[test]
fn what_is_still_unknown_is_counted_as_often_as_it_runs() {
    let matrix = Matrix::uneven();
    let mut contents = matrix.contents();
    contents.remove("col");
    let known = result(GLOBAL, 256, contents);
    let x = access(&known, "x[col[k]]");
    assert_eq!(x.certainty, "unknown");
    assert_eq!(x.requests, Some(f64::from(matrix.iterations())));
    let lanes = x.active_lanes_per_request.unwrap_or(0.0) * x.requests.unwrap_or(0.0);
    assert!((lanes - matrix.col.len() as f64).abs() < 1e-6, "{lanes}");
    assert!(access(&known, "col[k]").exact);
}
