//! Facts worked out by hand: 32 lanes, 4-byte elements, 32-byte sectors, 32 banks of 4 bytes.

use serde_json::Value;

use crate::{Folder, of_rule};

const A100: [&str; 2] = ["--gpu", "a100-sxm4-40gb"];

/// A kernel with `i` the thread's place in a one-dimensional launch.
fn linear(body: &str) -> Folder {
    let text = format!(
        "__global__ void k(float *out, const float *in, int n) {{\n    \
         int i = blockIdx.x * blockDim.x + threadIdx.x;\n    {body}\n}}\n"
    );
    Folder::with("k.cu", text)
}

/// The only result.
#[track_caller]
fn only(document: &Value) -> &Value {
    let results = document["results"].as_array().expect("results");
    assert_eq!(results.len(), 1, "{document:#}");
    &results[0]
}

/// The access written like this that does this.
#[track_caller]
fn access<'a>(result: &'a Value, text: &str, op: &str) -> &'a Value {
    let all = result["accesses"].as_array().expect("accesses");
    let found: Vec<&Value> = all
        .iter()
        .filter(|access| access["text"] == text && access["op"] == op)
        .collect();
    assert_eq!(found.len(), 1, "{op} {text}: {all:#?}");
    found[0]
}

#[track_caller]
fn sectors(access: &Value, moved: f64, ideal: f64) {
    assert_eq!(access["space"], "global", "{access:#}");
    assert_eq!(
        access["transactions_per_request"].as_f64(),
        Some(moved),
        "{access:#}"
    );
    assert_eq!(
        access["ideal_transactions_per_request"].as_f64(),
        Some(ideal),
        "{access:#}"
    );
    assert_eq!(access["exact"], true, "{access:#}");
    assert_eq!(access["certainty"], "exact", "{access:#}");
}

/// Options of a launch in which everything is given.
const GIVEN: [&str; 6] = ["--block", "256", "--grid", "1024", "--arg", "n=262144"];

fn estimate(folder: &Folder, options: &[&str]) -> Value {
    let all: Vec<&str> = A100.iter().chain(options).copied().collect();
    folder.estimate(&all)
}

#[test]
fn neighbours_move_four_sectors_of_four() {
    let document = estimate(&linear("out[i] = in[i];"), &GIVEN);
    let result = only(&document);
    for (text, op) in [("in[i]", "load"), ("out[i]", "store")] {
        let access = access(result, text, op);
        sectors(access, 4.0, 4.0);
        assert_eq!(access["pattern"], "coalesced");
        assert_eq!(access["transaction_bytes"], 32);
        assert_eq!(access["bytes_per_lane"], 4);
        // 1024 blocks of 8 warps.
        assert_eq!(access["requests"].as_f64(), Some(8192.0));
        assert_eq!(access["active_lanes_per_request"].as_f64(), Some(32.0));
    }
    assert_eq!(of_rule(&document, "mem/strided").len(), 0);
    assert_eq!(of_rule(&document, "mem/uncoalesced").len(), 0);
}

#[test]
fn every_second_element_moves_eight_sectors_of_four() {
    let document = estimate(&linear("out[i] = in[2 * i];"), &GIVEN);
    let access = access(only(&document), "in[2 * i]", "load");
    sectors(access, 8.0, 4.0);
    assert_eq!(access["pattern"], "strided");
    assert_eq!(of_rule(&document, "mem/strided").len(), 1, "{document:#}");
}

#[test]
fn every_thirty_second_element_moves_a_sector_a_lane() {
    let document = estimate(&linear("out[i] = in[32 * i];"), &GIVEN);
    sectors(access(only(&document), "in[32 * i]", "load"), 32.0, 4.0);
    let finding = of_rule(&document, "mem/strided");
    assert_eq!(finding.len(), 1, "{document:#}");
    assert_eq!(finding[0]["line"], 3);
    assert!(
        finding[0]["message"]
            .as_str()
            .is_some_and(|text| text.contains("32"))
    );
    assert!(
        finding[0]["gain"].as_f64().is_some_and(|gain| gain > 1.1),
        "{finding:#?}"
    );
}

#[test]
fn one_word_for_all_lanes_is_one_sector() {
    let document = estimate(&linear("out[i] = in[0];"), &GIVEN);
    let access = access(only(&document), "in[0]", "load");
    sectors(access, 1.0, 1.0);
    assert_eq!(access["pattern"], "broadcast");
}

const TRANSPOSE: &str = "\
__global__ void k(float *out, const float *in, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    out[x * n + y] = in[y * n + x];
}
";

#[test]
fn a_column_store_moves_a_sector_for_each_column_of_the_warp() {
    let folder = Folder::with("k.cu", TRANSPOSE);
    for (block, grid, moved, row) in [("32,8", "32,128", 32.0, 4.0), ("16,16", "64,64", 16.0, 4.0)]
    {
        let options = ["--block", block, "--grid", grid, "--arg", "n=1024"];
        let document = estimate(&folder, &options);
        let result = only(&document);
        // A warp of (16,16) holds two rows: 16 columns of two neighbours each, 64-byte row pieces to load.
        sectors(access(result, "out[x * n + y]", "store"), moved, 4.0);
        sectors(access(result, "in[y * n + x]", "load"), row, 4.0);
        assert_eq!(
            of_rule(&document, "mem/column-walk").len(),
            1,
            "{document:#}"
        );
    }
}

fn tile(columns: u32) -> Folder {
    let text = format!(
        "__global__ void k(float *out) {{\n    \
         __shared__ float tile[32][{columns}];\n    \
         tile[threadIdx.x][threadIdx.y] = 1.0f;\n    \
         __syncthreads();\n    \
         out[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.y][threadIdx.x];\n}}\n"
    );
    Folder::with("k.cu", text)
}

#[track_caller]
fn degree(columns: u32, gpu: &str) -> (f64, usize) {
    let options = ["--gpu", gpu, "--block", "32,8", "--grid", "1024"];
    let document = tile(columns).estimate(&options);
    let access = access(only(&document), "tile[threadIdx.x][threadIdx.y]", "store");
    assert_eq!(access["space"], "shared");
    assert_eq!(access["exact"], true, "{access:#}");
    assert_eq!(
        access["passes_per_request"], access["bank_conflict_degree"],
        "{access:#}"
    );
    let degree = access["bank_conflict_degree"].as_f64().expect("known");
    (degree, of_rule(&document, "smem/bank-conflict").len())
}

#[test]
fn a_column_of_a_tile_conflicts_until_it_is_padded() {
    assert_eq!(degree(32, "a100-sxm4-40gb"), (32.0, 1));
    assert_eq!(degree(33, "a100-sxm4-40gb"), (1.0, 0));
    // Kepler's banks answer two words of one 64-word row in one pass.
    assert_eq!(degree(32, "tesla-k40c").0, 16.0);
}

#[test]
fn one_shared_word_for_all_lanes_is_no_conflict() {
    let text = "\
__global__ void k(float *out) {
    __shared__ float s[32];
    s[threadIdx.x] = 1.0f;
    __syncthreads();
    out[blockIdx.x * 32 + threadIdx.x] = s[0];
}
";
    let document = estimate(
        &Folder::with("k.cu", text),
        &["--block", "32", "--grid", "64"],
    );
    let access = access(only(&document), "s[0]", "load");
    assert_eq!(
        access["bank_conflict_degree"].as_f64(),
        Some(1.0),
        "{access:#}"
    );
    assert_eq!(of_rule(&document, "smem/bank-conflict").len(), 0);
}

/// Divergent fraction of the only `if`, and how many findings there are about it.
#[track_caller]
fn divergence(condition: &str, options: &[&str]) -> (f64, usize) {
    let body = format!("if ({condition}) out[i] = sqrtf(in[i]) * 2.0f; else out[i] = expf(in[i]);");
    guarded(&body, options)
}

#[track_caller]
fn guarded(body: &str, options: &[&str]) -> (f64, usize) {
    let document = estimate(&linear(body), options);
    let result = only(&document);
    let branches = result["branches"].as_array().expect("branches");
    let ifs: Vec<&Value> = branches
        .iter()
        .filter(|branch| branch["kind"] == "if")
        .collect();
    assert_eq!(ifs.len(), 1, "{branches:#?}");
    assert_eq!(ifs[0]["line"], 3);
    assert_eq!(ifs[0]["exact"], true, "{branches:#?}");
    let all = document["diagnostics"].as_array().expect("diagnostics");
    let about = |rule: &Value| rule.as_str().is_some_and(|rule| rule.starts_with("div/"));
    let found = all.iter().filter(|finding| about(&finding["rule"])).count();
    (
        ifs[0]["divergent_warp_fraction"].as_f64().expect("known"),
        found,
    )
}

#[test]
fn branches_split_the_warps_they_split() {
    assert_eq!(divergence("threadIdx.x % 2", &GIVEN).0, 1.0);
    assert_eq!(divergence("threadIdx.x / 32 % 2", &GIVEN), (0.0, 0));
    assert_eq!(divergence("blockIdx.x == 0", &GIVEN), (0.0, 0));
}

#[test]
fn a_guard_splits_at_most_one_warp_and_is_no_finding() {
    let body = "if (i < n) out[i] = in[i];";
    let launch = |n: &'static str| ["--block", "256", "--grid", "4", "--arg", n];
    // 32 warps; n = 1000 ends in the middle of the last one, n = 1024 behind it, n = 96 at a warp's end.
    assert_eq!(guarded(body, &launch("n=1000")), (1.0 / 32.0, 0));
    assert_eq!(guarded(body, &launch("n=1024")), (0.0, 0));
    assert_eq!(guarded(body, &launch("n=96")), (0.0, 0));
}

#[test]
fn what_is_assumed_is_listed_and_what_is_given_is_not() {
    let folder = linear("out[i] = in[i * n];");
    let assumed = estimate(&folder, &[]);
    let result = only(&assumed);
    assert_eq!(result["launch"]["block"], serde_json::json!([256, 1, 1]));
    assert_eq!(result["launch"]["block_source"], "assumed");
    assert_eq!(access(result, "in[i * n]", "load")["certainty"], "assumed");
    let n = |result: &Value| {
        let assumptions = result["assumptions"].as_array().expect("assumptions");
        assumptions
            .iter()
            .any(|one| one["symbol"] == "n" && one["value"] == "a large multiple of 32")
    };
    assert!(n(result), "{result:#}");

    let given = estimate(&folder, &GIVEN);
    let result = only(&given);
    assert_eq!(result["launch"]["block_source"], "argument");
    assert_eq!(result["launch"]["grid_source"], "argument");
    assert!(!n(result), "{result:#}");
}

#[test]
fn shares_and_parts_add_up() {
    let folder = linear("for (int j = 0; j < 16; ++j) out[i] += in[i * 32 + j];");
    let document = folder.estimate(&[&GIVEN[..], &["--model", "all"]].concat());
    let result = only(&document);
    let lines = result["lines"].as_array().expect("lines");
    let sum: f64 = lines.iter().filter_map(|line| line["share"].as_f64()).sum();
    assert!((sum - 1.0).abs() < 1e-6, "{lines:#?}");
    let estimates = result["estimates"].as_object().expect("estimates");
    let names: Vec<&str> = estimates.keys().map(String::as_str).collect();
    let all = ["auto", "linear", "mwp-cwp", "timing", "trace", "wfg"];
    assert_eq!(names, all);
    for (name, estimate) in estimates {
        let Some(cycles) = estimate["cycles"].as_f64() else {
            assert!(estimate["why"].is_string(), "{name}: {estimate:#}");
            continue;
        };
        let parts = estimate["breakdown"].as_object().expect("breakdown");
        let sum: f64 = parts
            .iter()
            .filter(|(part, _)| *part != "launch")
            .filter_map(|(_, value)| value.as_f64())
            .sum();
        assert!(
            (sum - cycles).abs() <= 1e-6 * cycles,
            "{name}: {estimate:#}"
        );
        let bottleneck = estimate["bottleneck"].as_str().expect("bottleneck");
        assert!(parts.contains_key(bottleneck), "{name}: {bottleneck}");
    }
}

#[test]
fn the_opencl_twin_has_the_facts_of_the_cuda_kernel() {
    let text = "\
__kernel void k(__global float *out, __global const float *in, int n) {
    int x = get_global_id(0);
    int y = get_global_id(1);
    out[x * n + y] = in[y * n + x];
}
";
    let folder = Folder::with("k.cl", text);
    let options = [
        "--global",
        "1024,1024",
        "--local",
        "32,8",
        "--arg",
        "n=1024",
    ];
    let mut arguments = vec!["estimate", "k.cl", "--format", "json"];
    arguments.extend(A100);
    arguments.extend(options);
    let document = folder.run(&arguments).json();
    let result = only(&document);
    assert_eq!(result["language"], "opencl");
    assert_eq!(result["launch"]["grid"], serde_json::json!([32, 128, 1]));
    sectors(access(result, "out[x * n + y]", "store"), 32.0, 4.0);
    sectors(access(result, "in[y * n + x]", "load"), 4.0, 4.0);
}
