//! What kernels execute: nothing of it vanishes, and where data or a bound decides how much, no more is taken than what is known allows.

use warplens_codegen::Class;
use warplens_db::{FileAnalysis, LaunchValues, Overrides, Variants};
use warplens_facts::facts::{Certainty, Op, Space};

use crate::reads::analysed;

/// A kernel with these statements under a launch of 64 blocks of 256 threads with n = 65,536, k = 9 and x = 2.5.
fn of(before: &str, body: &str) -> FileAnalysis {
    let text = format!(
        "{before}\n__global__ void k(float *a, const float *b, int *c, const int *in, const unsigned char *bytes,\n\
         double2 *z, int n, int k, float x) {{\n\
         int i = blockIdx.x * blockDim.x + threadIdx.x;\n{body}\n}}\n\
         void host(float *a, float *b, int *c, int *in, unsigned char *bytes, double2 *z) {{\n\
         k<<<64, 256>>>(a, b, c, in, bytes, z, 65536, 9, 2.5f); }}\n"
    );
    analysed(&text, &Overrides::default())
}

fn executed(body: &str, class: Class) -> u64 {
    let file = of("", body);
    let compiled = &file.kernels[0].analysis.input.compiled;
    compiled.instructions.get(&class).copied().unwrap_or(0)
}

/// Instructions of a class that a warp executes, on average.
fn by_a_warp(file: &FileAnalysis, class: Class) -> f64 {
    let instructions = file.kernels[0].analysis.input.instructions.as_ref();
    let of_class = instructions.and_then(|all| all.classes.get(&class));
    of_class.map_or(0.0, |count| count / 512.0)
}

/// Iterations of each loop.
fn trips(body: &str) -> Vec<f64> {
    let file = of("", body);
    let facts = &file.kernels[0].analysis.facts;
    assert_eq!(facts.not_understood, [], "{body}");
    let loops = facts.branches.iter();
    loops.filter_map(|branch| branch.trips).collect()
}

/// What the model shown first says of the launch.
fn detail(body: &str, name: &str) -> f64 {
    let file = of("", body);
    let estimate = file.kernels[0].analysis.estimate();
    *estimate.detail.get(name).expect("told")
}

#[test]
fn an_array_that_data_subscripts_is_written() {
    let counts = |first: &str| {
        let body = format!(
            "int count[2] = {first}; for (int j = threadIdx.x; j < n; j += 256) count[in[j]]++;\n\
             c[i] = count[0] * 3 + count[1];"
        );
        executed(&body, Class::Ldg)
    };
    assert!(counts("{0, 0}") > 0, "the loads that choose the element");
    assert_eq!(counts("{0, 0}"), counts("{k, k}"));
}

#[test]
fn what_is_written_through_a_member_array_stays_in_its_loop() {
    let cell = "struct Cell { unsigned n[4]; };\n\
                __device__ void scale(unsigned *r, unsigned by) { r[0] *= by; }";
    let body = "Cell cell; for (int j = 0; j < 4; ++j) cell.n[j] = in[j];\n\
                for (int j = 1; j < 512; ++j) scale(cell.n, in[i + j * 16384]);\n\
                c[i] = cell.n[0];";
    let file = of(cell, body);
    let multiplied = by_a_warp(&file, Class::Imad);
    assert!(multiplied >= 511.0, "{multiplied}");
    let loaded = by_a_warp(&file, Class::Ldg);
    assert!(loaded >= 511.0, "{loaded}");
}

#[test]
fn complex_numbers_are_computed_in_their_precision() {
    let sum = executed("z[i] = cuCadd(z[i], z[i + n]);", Class::Dadd);
    assert_eq!(sum, 2);
    let body = "z[i] = cuCmul(z[i], z[i + n]);";
    assert_eq!(executed(body, Class::Dmul) + executed(body, Class::Dfma), 4);
    assert_eq!(executed(body, Class::Ffma), 0);
}

#[test]
fn a_function_whose_body_is_always_called_executes_it() {
    let file = of("", "a[i] = pow((double)b[i], 1.3);");
    assert!(by_a_warp(&file, Class::Dfma) > 30.0);
    // Of a square root it is a slow path.
    let file = of("", "a[i] = sqrt((double)b[i]);");
    assert!(by_a_warp(&file, Class::Dfma) < 10.0);
}

#[test]
fn one_thread_of_a_warp_decides_for_itself() {
    let taken = |guard: &str| {
        let file = of("", &format!("{guard} if (in[i] > k) c[i] = 1;"));
        let branches = &file.kernels[0].analysis.facts.branches;
        let mut of_data = branches
            .iter()
            .filter(|branch| branch.text.contains("in[i]"));
        of_data
            .next_back()
            .and_then(|branch| branch.taken_warp_fraction)
    };
    assert_eq!(taken("if (threadIdx.x == 0)"), Some(0.5));
    let whole = taken("").expect("a fraction");
    assert!(whole > 0.999, "{whole}");
}

#[test]
fn loops_that_data_ends_are_bounded_by_what_is_known() {
    // q is 1 to 8.
    assert_eq!(
        trips("float s = 0; int q = 1; while (s < x && q < k) { s += b[i + q]; ++q; } a[i] = s;"),
        [8.0]
    );
    // 65,536 elements are halved 17 times.
    let search = "int lo = 0, hi = n; while (lo < hi) { int m = (lo + hi) / 2; if (in[m] < i) lo = m + 1; else hi = m; } c[i] = lo;";
    assert_eq!(trips(search), [17.0]);
    // The bits of a number in the middle of 0 to 16,383.
    let bits = trips("int s = 0; for (int j = i; j > 0; j >>= 1) s += in[j]; c[i] = s;");
    assert!((bits[0] - 13.0).abs() < 0.01, "{bits:?}");
}

#[test]
fn numbers_of_floating_point_that_the_launch_gives_are_known() {
    assert_eq!(
        trips(
            "int s = 0, m = (int)sqrtf((float)k); for (int j = 0; j < m; ++j) s += in[i + j]; c[i] = s;"
        ),
        [3.0]
    );
    assert_eq!(
        trips(
            "int s = 0; int m = x * 4 + 0.5f; for (int j = 0; j < m; ++j) s += in[i + j]; c[i] = s;"
        ),
        [10.0]
    );
    // Of several launches by one statement a number is known where it is the same in all.
    let through = |second: &str| {
        let text = format!(
            "__global__ void k(int *c, const int *in, float x) {{ int i = threadIdx.x, s = 0, m = (int)x;\n\
             for (int j = 0; j < m; ++j) s += in[i + j]; c[i] = s; }}\n\
             void launch(int *c, int *in, float x) {{ k<<<1, 32>>>(c, in, x); }}\n\
             void host(int *c, int *in) {{ launch(c, in, 3.5f); launch(c, in, {second}); }}\n"
        );
        let file = analysed(&text, &Overrides::default());
        file.kernels[0].analysis.facts.branches[0].trips
    };
    assert_eq!(through("3.5f"), Some(3.0));
    assert_eq!(through("5.5f"), Some(16.0));
    // What a loop assigns is no longer that number.
    let grows = "float y = x; for (int j = 0; j < 3; ++j) y = y * 2; int s = 0, m = (int)y;\n\
                 for (int j = 0; j < m; ++j) s += in[i + j]; c[i] = s;";
    assert_eq!(trips(grows), [3.0, 16.0]);
    // Nor is what either side of a branch assigns.
    let either = "float y = x; if (in[i]) y = 7; int s = 0, m = (int)y;\n\
                  for (int j = 0; j < m; ++j) s += in[i + j]; c[i] = s;";
    assert_eq!(trips(either), [16.0]);
}

#[test]
fn lanes_meet_in_a_small_table() {
    let drawn = |index: &str| detail(&format!("a[i] = b[{index}];"), "l2_bytes");
    let anywhere = drawn("in[i]");
    assert!(drawn("bytes[i]") < anywhere / 2.0);
    assert!(drawn("in[i] & 7") < anywhere / 4.0);
    assert!(drawn("(unsigned char)in[i]") < anywhere / 2.0);
}

#[test]
fn what_one_index_fetches_the_same_array_s_others_find() {
    let dram = |index: &str| {
        let text = format!(
            "__global__ void k(float *a, const float *b, int n) {{\n\
             int i = blockIdx.x * blockDim.x + threadIdx.x; a[i] = b[i] + b[{index}]; }}\n\
             void host() {{ float *a, *b; cudaMalloc(&a, 134217728); cudaMalloc(&b, 134217728);\n\
             k<<<131072, 256>>>(a, b, 33554432); }}\n"
        );
        let file = analysed(&text, &Overrides::default());
        let estimate = file.kernels[0].analysis.estimate();
        *estimate.detail.get("dram_bytes").expect("told")
    };
    let twice = dram("i");
    for beside in ["(i + 1) % n", "min(i + 1, n - 1)", "i + 1 < n ? i + 1 : 0"] {
        let bytes = dram(beside);
        assert!(
            (bytes / twice - 1.0).abs() < 0.05,
            "{beside}: {bytes}, {twice}"
        );
    }
    // What is walked the other way is another part of the array.
    assert!(dram("n - 1 - i") > 1.3 * twice);
}

#[test]
fn a_sum_that_begins_with_braces_is_zero() {
    let loads = |first: &str| {
        executed(
            &format!(
                "float sum{first}; for (int j = 0; j < k; j++) sum += b[i + j * 256]; a[i] = sum;"
            ),
            Class::Ldg,
        )
    };
    let expected = loads(" = 0.0f");
    assert!(expected > 0);
    for first in ["{}", " = {}", " = float{}", "{0}"] {
        assert_eq!(loads(first), expected, "{first}");
    }
}

#[test]
fn a_choice_between_structures_chooses_each_field() {
    let pair = "struct Pair { float v; int i; };\n\
                __device__ Pair larger(Pair p, Pair q) { return p.v > q.v ? p : q; }";
    let first = "Pair best{b[i], 0}; Pair next{b[i + n], 1};";
    for rest in [
        "Pair it = next.v > best.v ? next : best; a[i] = it.v; c[i] = it.i;",
        "Pair it = larger(next, best); a[i] = it.v; c[i] = it.i;",
        "a[i] = larger(next, best).v; c[i] = larger(next, best).i;",
        "a[i] = (next.v > best.v ? next : best).v; c[i] = 0;",
    ] {
        let file = of(pair, &format!("{first} {rest}"));
        let compiled = &file.kernels[0].analysis.input.compiled;
        let count = |class| compiled.instructions.get(&class).copied().unwrap_or(0);
        assert_eq!(count(Class::Ldg), 2, "{rest}");
        assert!(count(Class::Fsetp) >= 1, "{rest}");
    }
}

#[test]
fn collectives_execute_what_their_algorithm_does() {
    let sum = "using Reduce = cub::BlockReduce<float, 256>; __shared__ typename Reduce::TempStorage room;\n\
               float v[4]; for (int j = 0; j < 4; ++j) v[j] = b[i + j * 256];\n\
               float s = Reduce(room).Sum(v); if (threadIdx.x == 0) a[blockIdx.x] = s;";
    let scan = "typedef cub::BlockScan<int, 256> Scan; __shared__ Scan::TempStorage room; int r;\n\
                Scan(room).ExclusiveSum(in[i], r); c[i] = r;";
    let tile = "auto warp = cooperative_groups::tiled_partition<32>(cooperative_groups::this_thread_block());\n\
                float s = cooperative_groups::reduce(warp, b[i], cooperative_groups::plus<float>());\n\
                if (warp.thread_rank() == 0) a[i / 32] = s;";
    // Shuffles, barriers, bytes of shared memory: lanes, aggregates of eight warps and a prefix; 32 rows of eight words and one
    // more, an aggregate and a prefix.
    let raking = "using Rows = cub::BlockRakingLayout<float, 256>;\n\
                  struct Room : cub::Uninitialized<Rows::TempStorage> {}; __shared__ Room room;\n\
                  *Rows::PlacementPtr(room.Alias(), threadIdx.x) = b[i]; __syncthreads();\n\
                  if (threadIdx.x < Rows::RAKING_THREADS) a[i] = cub::ShuffleDown<32>(*Rows::RakingPtr(room.Alias(), threadIdx.x), 1, 31, ~0u);";
    let all = [
        (sum, 5, 1, 44),
        (scan, 6, 2, 1160),
        (tile, 5, 0, 0),
        (raking, 1, 1, 1152),
    ];
    for (body, shuffles, barriers, bytes) in all {
        let file = of("#include <cub/cub.cuh>", body);
        let analysis = &file.kernels[0].analysis;
        assert_eq!(analysis.facts.not_understood, [], "{body}");
        let count = |class| {
            let compiled = &analysis.input.compiled;
            compiled.instructions.get(&class).copied().unwrap_or(0)
        };
        assert_eq!(
            (count(Class::Shfl), count(Class::Bar)),
            (shuffles, barriers),
            "{body}"
        );
        assert_eq!(analysis.facts.static_shared_bytes, bytes, "{body}");
        let mut accesses = analysis.facts.accesses.iter();
        let open = accesses
            .find(|access| access.space != Space::Local && access.certainty != Certainty::Exact);
        assert_eq!(open, None, "{body}");
    }
}

#[test]
fn one_of_the_threads_that_count_draws_a_number() {
    let body = "__shared__ int all; if (threadIdx.x == 0) all = 0; __syncthreads();\n\
                int mine = atomicAdd(&all, in[i]); if (mine == 0) atomicAdd(&c[0], 1);";
    let file = of("", body);
    let facts = &file.kernels[0].analysis.facts;
    let last = facts
        .accesses
        .iter()
        .rfind(|access| access.op == Op::Atomic);
    let last = last.expect("an atomic");
    // 64 blocks of eight warps: one lane in 256 draws it.
    let requests = last.requests.expect("told");
    assert!((50.0..70.0).contains(&requests), "{requests}");
    assert!(last.passes_per_request.is_some_and(|passes| passes < 1.1));
}

#[test]
fn an_endless_loop_ends_by_its_break() {
    for body in [
        "float s = 0; for (int j = 0;; ++j) { if (j == 7) break; s += b[i + j * 256]; } a[i] = s;",
        "float s = 0; int j = 0; while (true) { s += b[i + j * 256]; if (++j >= 7) break; } a[i] = s;",
    ] {
        assert_eq!(trips(body), [7.0], "{body}");
    }
}

#[test]
fn a_quotient_and_its_remainder_are_one_division() {
    for body in [
        "c[i] = i / k * 3 + i % k;",
        "c[i] = i % k * 3 + i / k;",
        "c[i] = i / k * 3;",
    ] {
        assert_eq!(executed(body, Class::Mufu), 1, "{body}");
    }
}

#[test]
fn the_costliest_of_a_kernels_launches_is_shown() {
    let text = "__global__ void scale(float *x, int n, int s) {\n\
                int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i * s] *= 2.0f; }\n\
                void host(float *x) { scale<<<64, 256>>>(x, 16384, 1); scale<<<4096, 256>>>(x, 1048576, 1);\n\
                scale<<<4096, 256>>>(x, 1048576, 32); scale<<<4096, 256>>>(x, 1048576, 2); }\n";
    let shown = analysed(text, &Overrides::default());
    assert_eq!(shown.kernels.len(), 1);
    let kernel = &shown.kernels[0];
    assert_eq!((kernel.variant, kernel.number()), (2, 1));
    assert_eq!(kernel.order, [2, 3, 0, 1]);
    assert!(
        shown
            .findings
            .iter()
            .any(|finding| finding.rule == "mem/strided")
    );
}

/// Threads that share a fixed amount of work: fewer of them take longer.
const SHARED_OUT: &str = "__global__ void stride(float *out, const float *in, int n) {\n\
    int per = n / (gridDim.x * blockDim.x), t = blockIdx.x * blockDim.x + threadIdx.x;\n\
    float s = 0; for (int j = 0; j < per; j++) s += in[j * gridDim.x * blockDim.x + t]; out[t] = s; }\n\
    void host(float *a, float *b) { stride<<<1024, 256>>>(a, b, 1 << 24); stride<<<16, 64>>>(a, b, 1 << 24); }\n";

#[test]
fn fewer_threads_for_the_same_work_are_the_costliest_launch() {
    let shown = analysed(SHARED_OUT, &Overrides::default());
    let kernel = &shown.kernels[0];
    assert_eq!((kernel.variant, kernel.number()), (1, 1));
    assert_eq!(kernel.launch_text(), "<<<16, 64>>>");
}

#[test]
fn a_launch_that_the_user_sets_is_the_only_one() {
    let set = LaunchValues {
        grid: Some([256, 1, 1]),
        block: Some([128, 1, 1]),
        ..LaunchValues::default()
    };
    let overrides = |variants| Overrides {
        set_launch: [("stride".to_owned(), set.clone())].into(),
        variants,
        ..Overrides::default()
    };
    for variants in [Variants::default(), Variants::All] {
        let shown = analysed(SHARED_OUT, &overrides(variants));
        assert_eq!(shown.kernels.len(), 1);
        let kernel = &shown.kernels[0];
        assert_eq!((kernel.number(), kernel.order.len()), (1, 1));
        assert_eq!(kernel.launch_text(), "<<<256, 128>>>");
        assert_eq!(kernel.set.as_ref(), Some(&set));
        assert_eq!(kernel.analysis.facts.launch.grid, [256, 1, 1]);
    }
    // What the command line says of all launches is in each one's label.
    let argument = Overrides {
        argument: LaunchValues {
            block: Some([32, 1, 1]),
            ..LaunchValues::default()
        },
        variants: Variants::All,
        ..Overrides::default()
    };
    let shown = analysed(SHARED_OUT, &argument);
    let texts: Vec<&str> = shown
        .kernels
        .iter()
        .map(warplens_db::PlacedKernel::launch_text)
        .collect();
    assert_eq!(texts, ["<<<1024, 32>>>", "<<<16, 32>>>"]);
}

#[test]
fn a_list_is_converted_to_the_elements_of_its_array() {
    let file = of(
        "",
        "unsigned char at[4] = {1, 257, 3}; a[at[1] * 32 + threadIdx.x] = b[at[3] * 32 + threadIdx.x];",
    );
    let accesses = file.kernels[0].analysis.facts.accesses.iter();
    let indices: Vec<&str> = accesses
        .filter(|access| access.space == Space::Global)
        .map(|access| access.index.as_str())
        .collect();
    assert_eq!(indices, ["threadIdx.x", "threadIdx.x + 32"]);
}
