//! `warplens program`: accounts of whole programs.

use serde_json::Value;

use crate::Folder;

const HEAT: &str = r"#include <cstdlib>
#include <cstdio>
__global__ void step(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] * 0.5f;
}
__global__ void clear(float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 0.0f;
}
int main(int argc, char **argv) {
    int n = atoi(argv[1]), steps = atoi(argv[2]);
    size_t bytes = n * sizeof(float);
    float *host = (float *)malloc(bytes);
    float *pinned;
    cudaMallocHost(&pinned, bytes);
    float *a, *b;
    cudaMalloc(&a, bytes);
    cudaMalloc(&b, bytes);
    cudaMemcpy(a, host, bytes, cudaMemcpyHostToDevice);
    clear<<<(n + 255) / 256, 256>>>(b, n);
    for (int s = 0; s < steps; s++) {
        step<<<(n + 255) / 256, 256>>>(a, b, n);
        float *t = a; a = b; b = t;
    }
    cudaDeviceSynchronize();
    cudaMemcpyAsync(pinned, a, bytes / 2, cudaMemcpyDeviceToHost);
    cudaFree(a);
    return 0;
}
";

/// A program of two kernels, and a Makefile that runs it.
pub fn write_heat(folder: &Folder) {
    folder.write("heat.cu", HEAT);
    folder.write("Makefile", "run: heat\n\t./heat 1048576 500\n");
}

fn account(folder: &Folder, options: &[&str]) -> Value {
    let mut arguments = vec!["program", ".", "--format", "json"];
    arguments.extend(options);
    let document = folder.run(&arguments).json();
    let programs = document["programs"].as_array().expect("programs");
    assert_eq!(programs.len(), 1, "{document}");
    programs[0].clone()
}

fn near(value: &Value, expected: f64) -> bool {
    value
        .as_f64()
        .is_some_and(|value| (value / expected - 1.0).abs() < 1e-6)
}

#[test]
fn kernels_stand_in_order_of_launches_times_time() {
    let folder = Folder::new();
    write_heat(&folder);
    let program = account(&folder, &[]);
    assert_eq!(program["run"], "./heat 1048576 500, Makefile:2");
    let kernels = program["kernels"].as_array().expect("kernels");
    let names: Vec<&Value> = kernels.iter().map(|kernel| &kernel["kernel"]).collect();
    assert_eq!(names, ["step", "clear"]);
    let (step, clear) = (&kernels[0], &kernels[1]);
    assert_eq!(
        (&step["launches"]["number"], &clear["launches"]["number"]),
        (&500.into(), &1.into())
    );
    // What the account sums is what `estimate` says of one launch.
    let run = folder
        .run(&[
            "estimate", "heat.cu", "--kernel", "step", "--format", "json",
        ])
        .json();
    let cycles = run["results"][0]["estimates"]["auto"]["cycles"]
        .as_f64()
        .expect("cycles");
    let one = cycles / 1410.0 / 1000.0;
    assert!(near(&step["made"][0]["time_ms"], one), "{step}");
    assert!(near(&step["total_ms"], 500.0 * one), "{step}");
    let total = step["total_ms"].as_f64().unwrap() + clear["total_ms"].as_f64().unwrap();
    assert!(near(&program["totals"]["gpu_ms"], total), "{program}");
    assert!(near(
        &step["share"],
        step["total_ms"].as_f64().unwrap() / total
    ));
    assert_eq!(program["totals"]["launches"]["number"], 501);
    assert_eq!(program["unknowns"], serde_json::json!([]));
}

#[test]
fn copies_have_bytes_direction_and_the_hosts_memory() {
    let folder = Folder::new();
    write_heat(&folder);
    let program = account(&folder, &["--gpu", "rtx-3080"]);
    let copies = program["transfers"].as_array().expect("copies");
    let fact = |copy: &Value| {
        let of = |key: &str| copy[key].clone();
        (
            of("direction"),
            of("bytes"),
            of("host_memory"),
            of("asynchronous"),
            of("line"),
        )
    };
    let expected = [
        ("host-to-device", 4 << 20, "pageable", false, 20),
        ("device-to-host", 2 << 20, "pinned", true, 27),
    ];
    assert_eq!(copies.len(), expected.len(), "{copies:?}");
    for (copy, (direction, bytes, memory, asynchronous, line)) in copies.iter().zip(expected) {
        let expected: (Value, Value, Value, Value, Value) = (
            direction.into(),
            bytes.into(),
            memory.into(),
            asynchronous.into(),
            line.into(),
        );
        assert_eq!(fact(copy), expected);
    }
    // 16 lanes of PCIe 4.0 carry 31.51 GB/s.
    assert!(
        near(&copies[0]["at_least_ms"], f64::from(4 << 20) / 31.51e6),
        "{}",
        copies[0]
    );
    assert_eq!(program["totals"]["to_device_bytes"], 4 << 20);
    let waits = program["waits"].as_array().expect("waits");
    assert_eq!(
        (waits.len(), &waits[0]["call"]),
        (1, &"cudaDeviceSynchronize".into())
    );
    // A GPU whose link nothing says has bytes and no time.
    let program = account(&folder, &["--gpu", "jetson-orin"]);
    assert_eq!(program["transfers"][0]["bytes"], 4 << 20);
    assert_eq!(program["transfers"][0]["at_least_ms"], Value::Null);
}

#[test]
fn what_the_host_cannot_know_is_named_and_is_no_number() {
    let folder = Folder::with(
        "solve.cu",
        r"__global__ void sweep(float *x, float *error) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] *= 0.5f;
    if (i == 0) *error = x[0];
}
int main() {
    float *x, *error, e = 1.0f;
    cudaMalloc(&x, 1 << 24);
    cudaMalloc(&error, 4);
    do {
        sweep<<<16384, 256>>>(x, error);
        cudaMemcpy(&e, error, sizeof(float), cudaMemcpyDeviceToHost);
    } while (e > 1e-6f);
}
",
    );
    let program = account(&folder, &[]);
    assert_eq!(program["run"], "./solve");
    let totals = &program["totals"];
    assert_eq!(
        (&totals["gpu_ms"], &totals["certainty"]),
        (&Value::Null, &"open".into())
    );
    assert_eq!(
        program["unknowns"].as_array().map(Vec::len),
        Some(1),
        "{program}"
    );
    let unknown = &program["unknowns"][0];
    assert_eq!(unknown["text"], "e > 1e-6f");
    assert_eq!(
        (&unknown["line"], &unknown["at_least"]),
        (&13.into(), &1.into())
    );
    let kernel = &program["kernels"][0];
    assert_eq!(kernel["launches"]["number"], Value::Null);
    assert_eq!(
        (
            &kernel["launches"]["at_least"],
            &kernel["launches"]["formula"]
        ),
        (&1.into(), &"iterations(solve.cu:13)".into())
    );
    assert_eq!(
        (&kernel["total_ms"], &kernel["share"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(kernel["share_of_one_iteration"], 1.0);
    assert_eq!(
        program["totals"]["to_host_formula"],
        "4 B × iterations(solve.cu:13)"
    );
    let human = folder.run(&["program", "."]);
    assert!(
        human.out.contains("× loop1") && human.out.contains("e > 1e-6f"),
        "{}",
        human.out
    );
}

#[test]
fn every_program_of_a_folder_has_its_account() {
    let folder = Folder::new();
    write_heat(&folder);
    folder.write("Makefile", "");
    folder.write(
        "other/other.cu",
        HEAT.replace("steps = atoi(argv[2])", "steps = 7"),
    );
    folder.write("tool.cpp", "int main() { return 0; }\n");
    let run = folder.run(&["program", ".", "--run", "4096 3", "--format", "json"]);
    let document = run.json();
    let programs = document["programs"].as_array().expect("programs");
    let counts: Vec<(&Value, &Value)> = programs
        .iter()
        .map(|one| (&one["file"], &one["totals"]["launches"]["number"]))
        .collect();
    let expected = [
        ("heat.cu".into(), 4.into()),
        ("other/other.cu".into(), 8.into()),
    ];
    assert_eq!(
        counts,
        expected
            .iter()
            .map(|(file, count)| (file, count))
            .collect::<Vec<_>>()
    );
    assert_eq!(
        document["without_launches"],
        serde_json::json!(["tool.cpp"])
    );
}

#[test]
fn a_program_in_a_folder_of_sources_is_run_as_the_makefile_above_says() {
    let folder = Folder::new();
    folder.write("heat/src/main.cu", HEAT);
    folder.write("other/a.txt", "");
    folder.write(
        "heat/Makefile",
        "OBJS = src/main.o\napp: $(OBJS)\n\tnvcc -o $@ $^\nrun: app\n\t./app 4096 3\n",
    );
    // Also by way of another folder.
    for path in ["heat", "other/../heat"] {
        let document = folder.run(&["program", path, "--format", "json"]).json();
        assert_eq!(
            document["programs"][0]["run"], "./app 4096 3, Makefile:5",
            "{path}"
        );
        let file = format!("{path}/src/main.cu");
        assert_eq!(document["programs"][0]["file"], file.as_str());
    }
}

#[test]
fn a_folder_without_a_program_says_so() {
    let folder = Folder::with(
        "k.cu",
        "__global__ void k(float *a) { a[threadIdx.x] = 1; }\n",
    );
    let run = folder.run(&["program", "."]);
    assert_eq!((run.code, run.out.as_str()), (2, ""));
    assert!(
        run.err.contains("no file with a `main`") && run.err.lines().count() == 1,
        "{}",
        run.err
    );
    let folder = Folder::with("tool.cpp", "int main() { return 0; }\n");
    let run = folder.run(&["program", "."]);
    assert_eq!(run.code, 2);
    assert!(
        run.err.contains("`main` of tool.cpp launches no kernel"),
        "{}",
        run.err
    );
    let run = folder.run(&["program", "missing"]);
    assert_eq!((run.code, run.err.lines().count()), (2, 1), "{}", run.err);
}

#[test]
fn the_page_needs_nothing_but_itself() {
    let folder = Folder::new();
    write_heat(&folder);
    let run = folder.run(&["program", ".", "-o", "heat.html"]);
    assert_eq!((run.code, run.out.as_str()), (0, ""), "{}", run.err);
    let page = std::fs::read_to_string(folder.path().join("heat.html")).expect("a page");
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    for part in [
        "heat.cu",
        "step",
        "clear",
        "cudaMemcpyAsync",
        "./heat 1048576 500, Makefile:2",
    ] {
        assert!(page.contains(part), "{part}");
    }
    for bad in ["<script", "http://", "src="] {
        assert!(!page.contains(bad), "{bad}");
    }
}

#[test]
fn a_diff_names_the_programs_whose_account_changed() {
    let folder = Folder::new();
    for (version, copies) in [("old", 1), ("new", 2)] {
        let copy = "cudaMemcpy(a, host, bytes, cudaMemcpyHostToDevice);\n";
        folder.write(
            &format!("{version}/heat/heat.cu"),
            HEAT.replace(copy, &copy.repeat(copies)),
        );
        folder.write(
            &format!("{version}/heat/Makefile"),
            "run: heat\n\t./heat 1048576 500\n",
        );
        folder.write(&format!("{version}/same/same.cu"), HEAT);
    }
    let document = folder
        .run(&["diff", "old", "new", "--format", "json"])
        .json();
    let programs = document["programs"].as_array().expect("programs");
    assert_eq!(programs.len(), 1, "{document}");
    let change = &programs[0];
    assert_eq!(
        (&change["file"], &change["slowdown"]),
        (&"heat/heat.cu".into(), &1.0.into())
    );
    let bytes = |side: &str| change[side]["to_device_bytes"].clone();
    assert_eq!(
        (bytes("before"), bytes("after")),
        ((4 << 20).into(), (8 << 20).into())
    );
    let human = folder.run(&["diff", "old", "new"]);
    assert!(
        human.out.contains("4,096 KiB -> 8,192 KiB"),
        "{}",
        human.out
    );
    let same = folder
        .run(&["diff", "old", "old", "--format", "json"])
        .json();
    assert_eq!(same["programs"], serde_json::json!([]));
}

#[test]
fn of_many_different_launches_some_are_analysed_and_the_others_lie_between() {
    let folder = Folder::with(
        "steps.cu",
        r"__global__ void fill(float *x) { x[blockIdx.x * blockDim.x + threadIdx.x] = 1.0f; }
int main() {
    float *x;
    cudaMalloc(&x, 1 << 28);
    for (int k = 1; k <= 50; k++) fill<<<k * 1024, 256>>>(x);
}
",
    );
    let program = account(&folder, &[]);
    let kernel = &program["kernels"][0];
    assert_eq!(kernel["launches"]["number"], 50);
    let made = kernel["made"].as_array().expect("launches");
    let times: Vec<f64> = made
        .iter()
        .map(|one| one["time_ms"].as_f64().expect("a time"))
        .collect();
    assert!(times.len() == 50 && times.is_sorted(), "{times:?}");
    let between = made
        .iter()
        .filter(|one| one["interpolated"] == true)
        .count();
    assert_eq!(between, 34);
    // Each is what `estimate` says of it, within what a line between its neighbours can tell.
    for (at, one) in made
        .iter()
        .enumerate()
        .filter(|(_, one)| one["interpolated"] == true)
    {
        let grid = ((at + 1) * 1024).to_string();
        let run = folder.run(&[
            "estimate", "steps.cu", "--grid", &grid, "--block", "256", "--format", "json",
        ]);
        let cycles = run.json()["results"][0]["estimates"]["auto"]["cycles"]
            .as_f64()
            .expect("cycles");
        let error = one["time_ms"].as_f64().unwrap() / (cycles / 1410.0 / 1000.0) - 1.0;
        assert!(error.abs() < 0.1, "{grid} blocks: {error}");
        if at > 12 {
            break;
        }
    }
}

#[test]
fn options_are_read_once() {
    let folder = Folder::with(
        "options.cu",
        r#"__global__ void fill(float *x) { x[blockIdx.x * blockDim.x + threadIdx.x] = 1.0f; }
int main(int argc, char **argv) {
    int opt, blocks = 1;
    while ((opt = getopt(argc, argv, "n:")) != -1) {
        switch (opt) {
            case 'n': blocks = atoi(optarg); break;
            default: exit(1);
        }
    }
    float *x;
    cudaMalloc(&x, 1 << 20);
    fill<<<blocks, 256>>>(x);
}
"#,
    );
    let program = account(&folder, &["--run", "-n 77"]);
    assert_eq!(
        program["kernels"][0]["made"][0]["grid"],
        serde_json::json!([77, 1, 1])
    );
}

#[test]
fn a_program_that_is_cut_has_no_total() {
    let launches = "fill<<<1, 256>>>(x);\n".repeat(40);
    let calls: Vec<String> = (0..200).map(|at| format!("step{at}(x);\n")).collect();
    let calls = calls.concat();
    let steps: Vec<String> = (0..200)
        .map(|at| format!("void step{at}(float *x) {{\n{launches}}}\n"))
        .collect();
    let steps = steps.concat();
    let text = format!(
        "__global__ void fill(float *x) {{ x[threadIdx.x] = 1.0f; }}\n{steps}\
         int main() {{ float *x; cudaMalloc(&x, 1024);\n{calls}{calls}{calls}}}\n"
    );
    let program = account(&Folder::with("many.cu", text), &[]);
    assert_eq!(
        program["notes"].as_array().map(Vec::len),
        Some(1),
        "{}",
        program["totals"]
    );
    let totals = &program["totals"];
    assert_eq!(
        (&totals["gpu_ms"], &totals["certainty"]),
        (&Value::Null, &"open".into())
    );
    assert_eq!(totals["launches"]["number"], Value::Null);
    assert!(
        totals["launches"]["at_least"].as_u64() > Some(100),
        "{totals}"
    );
}

#[test]
fn launches_of_one_grid_lie_between_those_before_and_after_them() {
    let folder = Folder::with(
        "rows.cu",
        r"__global__ void rows(float *x, int from) {
    for (int i = from + threadIdx.x; i < 4096; i += 256) x[blockIdx.x * 4096 + i] += 1.0f;
}
int main() {
    float *x;
    cudaMalloc(&x, 1 << 28);
    for (int k = 0; k < 4096; k += 64) rows<<<4096, 256>>>(x, k);
}
",
    );
    let program = account(&folder, &[]);
    let made = program["kernels"][0]["made"].as_array().expect("launches");
    let times: Vec<f64> = made
        .iter()
        .map(|one| one["time_ms"].as_f64().expect("a time"))
        .collect();
    assert_eq!(times.len(), 64);
    assert!(times.iter().rev().is_sorted(), "{times:?}");
    assert!(times[0] > 3.0 * times[60], "{times:?}");
}

#[test]
fn a_sweep_over_blocks_has_each_its_block_and_a_time() {
    let folder = Folder::with(
        "sweep.cu",
        r"__global__ void fill(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = 1.0f;
}
int main() {
    int n = 1 << 24;
    float *x;
    cudaMalloc(&x, n * sizeof(float));
    for (int block = 32; block <= 1024; block += 32) fill<<<(n + block - 1) / block, block>>>(x, n);
}
",
    );
    let program = account(&folder, &[]);
    assert!(
        program["totals"]["gpu_ms"].is_number(),
        "{}",
        program["totals"]
    );
    let made = program["kernels"][0]["made"].as_array().expect("launches");
    let blocks: Vec<u64> = made
        .iter()
        .map(|one| one["block"][0].as_u64().expect("a block"))
        .collect();
    let expected: Vec<u64> = (1..=32).map(|at| at * 32).collect();
    assert_eq!(blocks, expected);
}

#[test]
fn a_long_loop_that_hands_its_counter_on_is_counted_whole() {
    let folder = Folder::with(
        "wave.cu",
        r"__global__ void wave(float *to, const float *from, int n, int t) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[i] * t;
}
int main() {
    int n = 1 << 22;
    float *a, *b;
    cudaMalloc(&a, n * sizeof(float));
    cudaMalloc(&b, n * sizeof(float));
    for (int t = 0; t < 1000000; ++t) wave<<<n / 256, 256>>>(a, b, n, t);
}
",
    );
    let program = account(&folder, &[]);
    let kernel = &program["kernels"][0];
    assert_eq!(kernel["launches"]["number"], 1_000_000);
    let one = folder.run(&[
        "estimate",
        "wave.cu",
        "--arg",
        "n=4194304",
        "--grid",
        "16384",
        "--block",
        "256",
        "--format",
        "json",
    ]);
    let one = one.json()["results"][0]["estimates"]["auto"]["time_ms"].clone();
    let total = one.as_f64().expect("a time") * 1e6;
    let found = kernel["total_ms"].as_f64().expect("a time");
    assert!((found / total - 1.0).abs() < 0.01, "{found} {total}");
}

#[test]
fn the_source_of_a_module_is_looked_for_beside_the_program() {
    let folder = Folder::with(
        "host.cpp",
        r#"#include <cuda.h>
int main() {
    CUmodule module; CUfunction scale; CUdeviceptr x; float a = 2; int n = 1 << 20;
    cuInit(0);
    cuModuleLoad(&module, "scale.ptx");
    cuModuleGetFunction(&scale, module, "scale");
    cuMemAlloc(&x, n * sizeof(float));
    void *given[] = {&x, &a, &n};
    for (int i = 0; i < 20; i++) cuLaunchKernel(scale, n / 256, 1, 1, 256, 1, 1, 0, 0, given, 0);
}
"#,
    );
    folder.write(
        "scale.cu",
        r#"extern "C" __global__ void scale(float *x, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= a;
}
"#,
    );
    let program = account(&folder, &[]);
    let kernel = &program["kernels"][0];
    assert_eq!(kernel["file"], "scale.cu");
    assert_eq!(kernel["launches"]["number"], 20);
    assert!(kernel["total_ms"].as_f64() > Some(0.0), "{kernel}");
}

#[test]
fn what_a_library_that_is_not_there_reads_into_variables_is_unknown() {
    let program = |option: &str, include: &str| {
        let text = format!(
            "#include <{include}>\n__global__ void fill(float *x, int n) {{\n\
             \x20 int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) x[i] = 1.0f;\n}}\n\
             int main(int argc, char **argv) {{\n  int n = 1 << 20; float *x;\n  {option}\n\
             \x20 cudaMalloc(&x, n * sizeof(float));\n  fill<<<(n + 255) / 256, 256>>>(x, n);\n}}\n"
        );
        let folder = Folder::with("fill.cu", text);
        let run = ["--run", "-n 5000"];
        account(&folder, &run)["totals"]["gpu_ms"].is_number()
    };
    let option = "CLI::App app; app.add_option(\"-n\", n, \"elements\"); app.parse(argc, argv);";
    assert!(!program(option, "CLI/CLI.hpp"));
    assert!(!program(
        "auto cli = lyra::opt(n, \"n\")[\"-n\"]; cli.parse({argc, argv});",
        "lyra/lyra.hpp"
    ));
    // Those that print or compute read nothing.
    assert!(program(
        "fmt::print(\"{}\", n); auto m = Eigen::MatrixXf::Random(n, n);",
        "fmt/core.h"
    ));
    assert!(program("std::cout << n; printf(\"%d\", n);", "CLI/CLI.hpp"));
}
