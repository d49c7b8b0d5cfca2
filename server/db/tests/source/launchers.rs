//! Launches by functions that another file calls: what it gives them decides the block.

use std::fs;

use warplens_base::DiskFiles;
use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, FileAnalysis, Overrides, Project, Variants};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

/// The analysis of the first file, every launch of its kernels, with the others beside it.
fn analyse(files: &[(&str, &str)]) -> FileAnalysis {
    let root = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().expect("inside the folder")).expect("made");
        fs::write(path, text).expect("written");
    }
    let project = Project::new(
        std::sync::Arc::new(DiskFiles::new()),
        vec![root.path().to_path_buf()],
    );
    let engine = Engine::with_project(Profiles::builtin(), project);
    let all = Overrides {
        variants: Variants::All,
        ..Overrides::default()
    };
    engine
        .analyze(
            &Document::new(files[0].1, Language::Cuda),
            &root.path().join(files[0].0),
            &Settings::default(),
            &all,
            &Cancel::default(),
        )
        .expect("not cancelled")
}

/// Grid and block of each launch, where the source says them.
fn launches(file: &FileAnalysis) -> Vec<(Option<u64>, Option<u64>)> {
    file.kernels
        .iter()
        .map(|kernel| {
            let launch = &kernel.analysis.facts.launch;
            let known = |source: warplens_facts::facts::Source, extent: [u64; 3]| {
                (!source.is_assumption()).then_some(extent[0])
            };
            (
                known(launch.grid_source, launch.grid),
                known(launch.block_source, launch.block),
            )
        })
        .collect()
}

const LAUNCHER: &str = "__global__ void scale(float *a, int n) { a[threadIdx.x + blockIdx.x * blockDim.x] *= n; }\n\
                        void run_scale(float *a, int n, int threads) {\n\
                        \x20 dim3 block(threads);\n\
                        \x20 scale<<<(n + threads - 1) / threads, block>>>(a, n);\n}\n";

#[test]
fn the_caller_in_another_file_decides_the_block() {
    let caller = "void run_scale(float *a, int n, int threads);\n\
                  int main() { const int n = 1 << 16; float *a = make(n); run_scale(a, n, 64); }\n";
    let file = analyse(&[("kernels/scale.cu", LAUNCHER), ("main.cpp", caller)]);
    assert_eq!(launches(&file), [(Some(1024), Some(64))]);
    let facts = &file.kernels[0].analysis.facts;
    assert!(
        !facts
            .assumptions
            .iter()
            .any(|assumed| assumed.symbol.is_named("n")),
        "{:?}",
        facts.assumptions
    );
}

#[test]
fn callers_that_differ_are_different_launches() {
    let caller = "void run_scale(float *a, int n, int threads);\n\
                  void first(float *a) { run_scale(a, 4096, 64); }\n\
                  void second(float *a, int n) { run_scale(a, n, 128); }\n";
    let file = analyse(&[("scale.cu", LAUNCHER), ("main.cpp", caller)]);
    let mut found = launches(&file);
    found.sort_unstable();
    assert_eq!(found, [(None, Some(128)), (Some(64), Some(64))]);
}

#[test]
fn template_arguments_of_the_call_are_constants() {
    let launcher = "template <int THREADS>\n__global__ void fill(float *a) { a[threadIdx.x * THREADS] = 0; }\n\
                    template <int THREADS> void launch(float *a, int blocks) {\n\
                    \x20 fill<THREADS><<<blocks, THREADS>>>(a);\n}\n";
    let caller = "#include \"fill.h\"\nvoid go(float *a) { launch<128>(a, 8); }\n";
    let file = analyse(&[("fill.cu", launcher), ("main.cu", caller)]);
    assert_eq!(launches(&file), [(Some(8), Some(128))]);
}

#[test]
fn what_no_caller_decides_stays_unknown() {
    let unknown = "void run_scale(float *a, int n, int threads);\n\
                   int main(int argc, char **argv) { run_scale(a, 64, atoi(argv[1])); }\n";
    let own = "static void run_scale(float *a, int n, int threads) { }\n\
               int main() { run_scale(a, 64, 64); }\n";
    for caller in [unknown, own, "int run_scale_not(int n);\n"] {
        let file = analyse(&[("scale.cu", LAUNCHER), ("main.cpp", caller)]);
        assert_eq!(launches(&file), [(None, None)], "{caller}");
    }
}

#[test]
fn a_grid_of_names_in_parentheses_is_what_c_makes_of_it() {
    let text = "#define TWICE(a, b) (a) + (b) * 2\n#define MINUS(a, b) -(a) * (b) + (a) * 9\n\
                __global__ void k(float *a) { a[threadIdx.x] = 0; }\n\
                void go(float *p) { int n = 40, b = 3; k<<<TWICE(n, b), MINUS(n, b)>>>(p); }\n";
    assert_eq!(
        launches(&analyse(&[("k.cu", text)])),
        [(Some(46), Some(240))]
    );
}

#[test]
fn constants_of_a_traits_class_that_the_launcher_names_are_read() {
    let launcher = |name: &str, block: &str| {
        format!(
            "struct P {{ float *x; int n; }};\n\
             template <int Threads, int Items, class T> struct Traits {{\n\
             \x20 static constexpr int threads = Threads, items = Items;\n\
             \x20 using type = T;\n\
             }};\n\
             template <class K> __global__ void k(P p) {{\n\
             \x20 typename K::type *x = reinterpret_cast<typename K::type *>(p.x);\n\
             \x20 int i = blockIdx.x * K::threads + threadIdx.x;\n\
             \x20 for (int j = 0; j < K::items; j++) x[i * K::items + j] = 0;\n\
             }}\n\
             template <int Threads, int Items, class T> void launch(P &p, cudaStream_t s) {{\n\
             \x20 using K = Traits<Threads, Items, T>;\n\
             \x20 auto kernel = &k<K>;\n\
             \x20 {name}<<<64, {block}, 0, s>>>(p);\n\
             }}\n\
             template <class T> void run(P &p, cudaStream_t s) {{\n\
             \x20 if (p.n <= 128) launch<32, 4, T>(p, s);\n\
             \x20 else launch<128, 8, T>(p, s);\n\
             }}\n\
             template void run<float>(P &, cudaStream_t);\n"
        )
    };
    for (name, block) in [
        ("kernel", "K::threads"),
        ("k<K>", "K::threads"),
        ("kernel", "Threads"),
    ] {
        let file = analyse(&[("k.cu", &launcher(name, block))]);
        assert_eq!(
            launches(&file),
            [(Some(64), Some(32)), (Some(64), Some(128))],
            "{name} {block}"
        );
        for (kernel, items) in file.kernels.iter().zip([4.0, 8.0]) {
            let facts = &kernel.analysis.facts;
            assert_eq!(facts.not_understood, [], "{name} {block}");
            let store = &facts.accesses[0];
            assert_eq!(store.bytes_per_lane, 4);
            assert_eq!(
                store.transactions_per_request,
                Some(4.0 * items),
                "{name} {block}"
            );
        }
    }
}

const LAUNCHING_HEADER: &str = "#pragma once\ntemplate <typename T, typename... Args>\n\
                                void start(T *kernel, int blocks, int threads, Args... args) {\n\
                                \x20 kernel<<<blocks, threads>>>(args...);\n}\n\
                                template <typename T, typename... Args>\n\
                                void start_few(T *kernel, Args... args) { start(kernel, 4, 96, args...); }\n";
const STARTED: &str =
    "template <int STEP>\n__global__ void fill(float *a) { a[threadIdx.x * STEP] = 0; }\n";

#[test]
fn a_function_of_a_header_launches_what_it_is_given() {
    for (call, expected) in [
        ("start(kernel, 8, 128, a);", (Some(8), Some(128))),
        ("start_few(kernel, a);", (Some(4), Some(96))),
        // A name that only begins like it.
        ("start_nothing(kernel, 8, 128, a);", (None, None)),
    ] {
        let own = format!(
            "#include \"start.h\"\n{STARTED}void go(float *a) {{ auto kernel = fill<2>; {call} }}\n"
        );
        let file = analyse(&[("fill.cu", &own), ("start.h", LAUNCHING_HEADER)]);
        assert_eq!(launches(&file), [expected], "{call}");
    }
}

#[test]
fn a_program_launches_the_kernels_of_another_file_by_a_header() {
    let host = "#include \"../common/start.h\"\n#include \"fill.cuh\"\n\
                void go(float *a) { start(fill<2>, 8, 128, a); }\n";
    let files = |host| {
        analyse(&[
            ("kernels/fill.cuh", STARTED),
            ("kernels/go.cu", host),
            ("common/start.h", LAUNCHING_HEADER),
        ])
    };
    assert_eq!(launches(&files(host)), [(Some(8), Some(128))]);
    // Without the header nothing launches.
    let alone = &host.replace("#include \"../common/start.h\"", "");
    assert_eq!(launches(&files(alone)), [(None, None)]);
}

/// The block, the template arguments and the sectors of the last access of each kernel and launch.
fn launched_kernels(text: &str) -> Vec<(u64, String, Option<f64>)> {
    let file = crate::reads::launched(text);
    let of = |kernel: &warplens_db::PlacedKernel| {
        let analysis = &kernel.analysis;
        let arguments: Vec<&str> = (analysis.template_args.iter())
            .map(|(_, value)| value.as_str())
            .collect();
        let last = analysis.facts.accesses.last();
        let sectors = last.and_then(|access| access.transactions_per_request);
        (analysis.facts.launch.block[0], arguments.join(","), sectors)
    };
    file.kernels.iter().map(of).collect()
}

#[test]
fn a_launch_is_of_the_overload_that_its_arguments_choose() {
    let text = "\
struct Four { unsigned short x, y, z, w; };
template <typename T> __global__ void k(T *o, const T *a, int n) { int i = threadIdx.x; o[i * 8] = a[i]; }
template <> __global__ void k(Four *o, const Four *a, int n) { int i = threadIdx.x; o[i].x = a[i].x; }
template <> __global__ void k<double>(double *o, const double *a, int n) { int i = threadIdx.x; o[i] = a[i]; }
void run(float *f, double *d, Four *h) {
  k<<<1, 32>>>(f, f, 1); k<<<1, 64>>>(d, d, 1); k<<<1, 128>>>(h, h, 1); k<double><<<1, 256>>>(d, d, 1);
}
";
    assert_eq!(
        launched_kernels(text),
        [
            (32, "float".to_owned(), Some(32.0)),
            (128, String::new(), Some(8.0)),
            (64, String::new(), Some(8.0)),
            (256, String::new(), Some(8.0)),
        ]
    );
    let overloads = "\
__global__ void k(float *o, int n) { o[threadIdx.x] = n; }
__global__ void k(double *o, int n) { o[threadIdx.x * 2] = n; }
__global__ void k(double *o, float n) { o[threadIdx.x * 4] = n; }
void run(float *f, double *d) { k<<<1, 32>>>(f, 1); k<<<1, 64>>>(d, 1); k<<<1, 128>>>(d, 1.f); }
";
    assert_eq!(
        launched_kernels(overloads),
        [
            (32, String::new(), Some(4.0)),
            (64, String::new(), Some(16.0)),
            (128, String::new(), Some(32.0)),
        ]
    );
    // Where the types are not told a launch may be of each.
    let untold = "\
__global__ void k(float *o) { o[threadIdx.x] = 1; }
__global__ void k(double *o) { o[threadIdx.x] = 1; }
void run() { k<<<1, 32>>>(somewhere()); }
";
    let blocks: Vec<u64> = (launched_kernels(untold).iter()).map(|of| of.0).collect();
    assert_eq!(blocks, [32, 32]);
}
