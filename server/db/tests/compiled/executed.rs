//! The instructions that warps execute, held against what can be counted: machine code times known trips, and the
//! requests of accesses that the compiler neither merges nor leaves out.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use warplens_codegen::Class;
use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, KernelAnalysis, Overrides};
use warplens_facts::facts::{Op, OpClass, Space};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

fn analysed(text: &str, name: &str) -> Arc<KernelAnalysis> {
    let file = Engine::new(Profiles::builtin())
        .analyze(
            &Document::new(text, Language::Cuda),
            Path::new("a.cu"),
            &Settings::default(),
            &Overrides::default(),
            &Cancel::default(),
        )
        .expect("not cancelled");
    let mut kernels = file.kernels.iter();
    let found = kernels.find(|found| found.analysis.facts.name == name);
    Arc::clone(&found.unwrap_or_else(|| panic!("no kernel {name}")).analysis)
}

/// By class, for one warp of the launch on average.
fn by_warp(analysis: &KernelAnalysis) -> BTreeMap<Class, f64> {
    let launch = &analysis.facts.launch;
    let warps = launch.blocks() as f64 * launch.warps_per_block(32) as f64;
    let executed = analysis.input.instructions.as_ref().expect("followed");
    let classes = executed.classes.iter();
    classes
        .map(|(class, count)| (*class, count / warps))
        .collect()
}

const MICRO: &str = include_str!("../../../../tests/fixtures/executed/loops.cu");
const COUNTED: &str = include_str!("../../../../tests/fixtures/executed/loops.tsv");

#[test]
fn micro_kernels_execute_what_their_machine_code_does() {
    let mut apart = Vec::new();
    for line in COUNTED.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [name, counts, total] = fields[..] else {
            panic!("{line}")
        };
        let found = by_warp(&analysed(MICRO, name));
        for (class, want) in counts.split(',').filter_map(|part| part.split_once(':')) {
            let class = Class::named(class).expect("a class");
            let want: f64 = want.parse().expect("a number");
            let have = found.get(&class).copied().unwrap_or(0.0);
            assert_eq!(have, want, "{class} of {name}: {found:?}");
        }
        let want: f64 = total.parse().expect("a number");
        let have: f64 = found.values().sum();
        apart.push((have - want).abs() / want);
    }
    apart.sort_by(f64::total_cmp);
    assert_eq!(apart.len(), 9);
    // All instructions depend on how addresses are computed, too.
    assert!(apart[6] <= 0.15 && apart[8] <= 0.4, "{apart:?}");
}

/// Executed accesses are the requests that the analysis counts, where the compiler leaves every access as it is.
#[test]
fn accesses_are_executed_as_often_as_they_are_requested() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels");
    for (file, kernel) in [
        ("vector_add.cu", "vector_add"),
        ("transpose.cu", "transpose_naive"),
        ("transpose.cu", "transpose_tiled"),
        ("transpose.cu", "transpose_padded"),
        ("particles.cu", "move_aos"),
        ("particles.cu", "move_soa"),
        ("matmul.cu", "matmul_global"),
        ("matmul_abt.cu", "matmul_abt_global"),
    ] {
        let text = std::fs::read_to_string(path.join(file)).expect("our own kernel");
        let analysis = analysed(&text, kernel);
        let found = by_warp(&analysis);
        let launch = &analysis.facts.launch;
        let warps = launch.blocks() as f64 * launch.warps_per_block(32) as f64;
        for (class, space, op) in [
            (Class::Ldg, Space::Global, Op::Load),
            (Class::Stg, Space::Global, Op::Store),
            (Class::Lds, Space::Shared, Op::Load),
            (Class::Sts, Space::Shared, Op::Store),
        ] {
            let accesses = analysis.facts.accesses.iter();
            let requests: f64 = accesses
                .filter(|access| access.space == space && access.op == op)
                .map(|access| access.requests.expect("counted"))
                .sum();
            let have = found.get(&class).copied().unwrap_or(0.0);
            let want = requests / warps;
            assert!(
                (have - want).abs() <= 1e-9 * want,
                "{class} of {kernel}: {have}, {want}"
            );
        }
        let barriers = analysis.facts.counts.iter();
        let barriers = barriers.filter(|count| count.class == OpClass::Barrier);
        // Every thread meets them, in whole warps.
        let want: f64 = barriers
            .map(|count| count.value.expect("counted") / 32.0)
            .sum();
        let have = found.get(&Class::Bar).copied().unwrap_or(0.0);
        assert_eq!(have, want / warps, "barriers of {kernel}");
    }
}

/// Sums in an array whose subscripts are known lie in registers, as one in a variable does.
#[test]
fn an_array_in_registers_moves_no_memory() {
    let moved = |declared: &str, sum: &str| {
        let text = format!(
            "// warplens: grid=256 block=256\n\
             __global__ void k(float *__restrict__ o, const float *__restrict__ a) {{\n\
             int i = blockIdx.x * 256 + threadIdx.x;\n{declared}\n\
             for (int j = 0; j < 8; ++j) {sum} += a[i + j * 65536];\no[i] = {sum};\n}}\n"
        );
        let analysis = analysed(&text, "k");
        let estimates = analysis.estimates();
        let auto = estimates.iter().find(|(model, _)| model.name() == "auto");
        auto.expect("always there").1.detail["l2_bytes"]
    };
    let variable = moved("float s = 0.0f;", "s");
    assert_eq!(moved("float s[2] = {0.0f, 0.0f};", "s[1]"), variable);
    // Eight loads and a store of 4 bytes by each of 65536 threads.
    assert_eq!(variable, 9.0 * 4.0 * 65536.0);
}

#[test]
fn what_is_assumed_is_said() {
    let given = "// warplens: grid=4 block=64 n=192\n";
    let kernel = "__global__ void k(float *o, int n) {\n\
                  int i = blockIdx.x * 64 + threadIdx.x;\nif (i < n) o[i] = 1.0f;\n}\n";
    let known = analysed(&format!("{given}{kernel}"), "k");
    assert!(!known.input.instructions.as_ref().expect("followed").assumed);
    let assumed = analysed(kernel, "k");
    assert!(
        assumed
            .input
            .instructions
            .as_ref()
            .expect("followed")
            .assumed
    );
}

/// A loop and its twin that is asked to be unrolled execute the same, but for what the loop itself takes: a counter, its
/// addresses of 64 bits, a test, a jump. Conditions on data, which half of the warps meet by assumption, leave the loop or the
/// iteration: they do not add up over the iterations side by side.
#[test]
fn unrolling_a_loop_that_is_left_early_executes_the_same() {
    const TRIPS: f64 = 32.0;
    const LOOP: f64 = 8.0;
    let executed = |unroll: &str, left: &str| {
        let text = format!(
            "// warplens: grid=256 block=256\n\
             __device__ float f(const float *x, int i) {{\n\
             float s = i;\n#pragma unroll {unroll}\n\
             for (int j = 0; j < 32; ++j) {{\n\
             float v = x[i + j * 65536];\n{left}\ns = s * 1.5f + v * v;\nx += 128;\n}}\n\
             return s;\n}}\n\
             __global__ void k(float *__restrict__ o, const float *__restrict__ x) {{\n\
             int i = blockIdx.x * 256 + threadIdx.x;\no[i] = f(x, i);\n}}\n"
        );
        by_warp(&analysed(&text, "k"))
    };
    for left in [
        "if (x[j] < 0.0f) break;",
        "if (x[j] < 0.0f) continue;",
        "if (x[j] < 0.0f) return s;",
        "s += 1.0f; if (x[j] < 0.0f) break; s *= 3.0f; if (x[j + 1] > 9.0f) continue;",
    ] {
        let rolled = executed("1", left);
        // As far as it goes, in parts that divide the trips, and with some left over.
        for unroll in ["", "4", "6", "32"] {
            let unrolled = executed(unroll, left);
            let of =
                |classes: &BTreeMap<Class, f64>, class| classes.get(&class).copied().unwrap_or(0.0);
            for class in [
                Class::Ldg,
                Class::Ffma,
                Class::Fadd,
                Class::Fmul,
                Class::Fsetp,
            ] {
                let (one, other) = (of(&rolled, class), of(&unrolled, class));
                assert!(
                    (one - other).abs() <= 1e-6 * one,
                    "{class} of `{left}`, unrolled {unroll}: {other}, not {one}"
                );
            }
            let (one, other): (f64, f64) = (rolled.values().sum(), unrolled.values().sum());
            assert!(
                other <= one + LOOP && one - other <= LOOP * TRIPS,
                "`{left}`, unrolled {unroll}: {other}, not {one}"
            );
        }
    }
}

/// What was compiled is used again where only constants of floating point change: what is said must be what compiling
/// anew says.
#[test]
fn another_constant_compiles_to_what_it_compiles_to_alone() {
    let kernel = |line: &str| {
        format!(
            "__global__ void k(float* out, const float* in, double* wide) {{\n  \
             int i = blockIdx.x * blockDim.x + threadIdx.x;\n  {line}\n}}\n"
        )
    };
    let said = |engine: &Engine, line: &str| {
        let document = Document::new(&kernel(line), Language::Cuda);
        let (settings, overrides) = (Settings::default(), Overrides::default());
        let path = Path::new("k.cu");
        let found = engine.estimate(&document, path, &settings, &overrides, &[], &[], &[]);
        let result = found.expect("a known GPU").results.remove(0);
        let registers = result.resources.registers_per_thread;
        (registers, format!("{:?}", result.instructions))
    };
    let engine = Engine::new(Profiles::builtin());
    for line in [
        "out[i] = in[i] * 0.299f + 0.587f;",
        "out[i] = in[i] * 0.114f + 0.587f;",
        "out[i] = in[i] * 0.299f + 0.299f;",
        "out[i] = in[i] * 1.0f + 0.587f;",
        "out[i] = in[i] * 0.299f + 0.0f;",
        "out[i] = in[i] * 0.299 + 0.587f;",
        "out[i] = in[i] / 0.3f;",
        "out[i] = in[i] / 0.25f;",
        "out[i] = pow(in[i], 3.0f);",
        "out[i] = pow(in[i], 3.1f);",
        "wide[i] = wide[i] * 100.25 + wide[i];",
        "wide[i] = wide[i] * 100.1 + wide[i];",
    ] {
        let alone = said(&Engine::new(Profiles::builtin()), line);
        assert_eq!(said(&engine, line), alone, "{line}");
    }
}

/// Registers of a kernel that reads 24 places of a stage of a tile in each iteration.
fn registers_of_places(place: &str) -> u32 {
    let reads = (0..24).map(|at| {
        let factor = 2 * at + 3;
        format!(
            "{{ int row = threadIdx.x * {factor} % 64 * 16, column = (threadIdx.x ^ {at}) % 16 * 3; sum += *({place}); }}\n"
        )
    });
    let reads: String = reads.collect();
    let text = format!(
        "__global__ void k(float *out, int steps) {{ __shared__ float tile[8192]; float sum = 0;\n\
         for (int s = 0; s < steps; s++) {{ int stage = s % 4; __syncthreads();\n{reads} }}\n\
         out[threadIdx.x] = sum; }}\n"
    );
    analysed(&text, "k").input.resources.registers_per_thread
}

#[test]
fn what_a_loop_leaves_alone_of_an_address_is_added_before_it() {
    let together = registers_of_places("tile + (row + column) + stage * 2048");
    // A word for each place, not one for its row and one for its column.
    assert!((24..56).contains(&together), "{together}");
    for place in [
        "tile + stage * 2048 + row + column",
        "tile + row + stage * 2048 + column",
        "&tile[stage * 2048 + row + column]",
    ] {
        let found = registers_of_places(place);
        assert!(
            found.abs_diff(together) <= 4,
            "{place}: {found} for {together}"
        );
    }
}
