//! Launches of a program that is run with arguments: its host code decides grid, block and parameters.

use std::fs;
use std::sync::Arc;

use warplens_base::DiskFiles;
use warplens_db::settings::{RunSettings, Settings};
use warplens_db::{
    Cancel, EarlyStart, Engine, FileAnalysis, Overrides, PlacedKernel, Project, Variants,
};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

/// The analysis of the first file, every launch of its kernels, where the program is started with these arguments; `None`: where the
/// files beside it say how.
fn analyse(files: &[(&str, &str)], arguments: Option<&str>) -> FileAnalysis {
    let root = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    }
    let roots = vec![root.path().to_path_buf()];
    let project = Project::new(Arc::new(DiskFiles::new()), roots);
    let engine = Engine::with_project(Profiles::builtin(), project);
    let overrides = Overrides {
        variants: Variants::All,
        ..Overrides::default()
    };
    let document = Document::new(files[0].1, Language::Cuda);
    let path = root.path().join(files[0].0);
    let run = arguments.map(|arguments| RunSettings {
        arguments: arguments.to_owned(),
        ..RunSettings::default()
    });
    let settings = Settings {
        run: run.into_iter().collect(),
        ..Settings::default()
    };
    let file = engine.analyze(&document, &path, &settings, &overrides, &Cancel::default());
    file.expect("not cancelled")
}

/// Grid and block along x of each launch, the value of the kernel's parameter `n`, and how often it is made.
fn launches(file: &FileAnalysis) -> Vec<(u64, u64, Option<i64>, Option<u64>)> {
    let kernels = file.kernels.iter();
    let launches = kernels.map(|kernel| {
        let launch = &kernel.analysis.facts.launch;
        assert_eq!(launch.grid_source.name(), "run", "{launch:?}");
        let run = kernel.run.as_ref().expect("a run's");
        (launch.grid[0], launch.block[0], run.arguments[1], run.count)
    });
    launches.collect()
}

const KERNEL: &str = "#include <cstdlib>\n#include <cstring>\n\
    __global__ void scale(float *x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 2; }\n";

fn program(main: &str) -> String {
    format!("{KERNEL}{main}")
}

#[test]
fn numbers_are_read_from_the_arguments_and_loops_count_launches() {
    let text = program(
        "int main(int argc, char **argv) {\n\
         \x20 if (argc != 3) { printf(\"usage\"); return 1; }\n\
         \x20 int n = atoi(argv[1]), repeat = strtol(argv[2], NULL, 10);\n\
         \x20 float *h = (float *)malloc(n * sizeof(float)), *d;\n\
         \x20 for (int i = 0; i < n; i++) h[i] = rand() / (float)RAND_MAX;\n\
         \x20 cudaMalloc(&d, n * sizeof(float));\n\
         \x20 for (int i = 0; i < repeat; i++) scale<<<(n + 255) / 256, 256>>>(d, n);\n}\n",
    );
    let file = analyse(&[("main.cu", &text)], Some("1000000 1000"));
    assert_eq!(launches(&file), [(3907, 256, Some(1_000_000), Some(1000))]);
}

#[test]
fn options_are_read_as_programs_read_them() {
    let ends = "\n  float *d; scale<<<n / block, block>>>(d, n);\n}\n";
    let starts = "int main(int argc, char **argv) {\n  int n = 1, block = 32;\n";
    let compared = "for (int i = 1; i < argc; ++i) {\n\
        \x20 if (!strcmp(argv[i], \"-n\")) n = atoi(argv[++i]);\n\
        \x20 else if (strcmp(argv[i], \"--block\") == 0 && i + 1 < argc) { block = atoi(argv[i + 1]); i++; }\n  }";
    let getopt = "int c;\n  while ((c = getopt(argc, argv, \"n:b:v\")) != -1) switch (c) {\n\
        \x20 case 'n': n = atoi(optarg); break;\n  case 'b': block = atoi(optarg); break;\n  default: break; }";
    let strings = "std::map<std::string, int> given;\n\
        \x20 for (int i = 1; i + 1 < argc; i += 2) { std::string name = argv[i]; given[name.substr(1)] = std::stoi(argv[i + 1]); }\n\
        \x20 if (given.count(\"n\")) n = given[\"n\"];\n  if (given.find(\"b\") != given.end()) block = given[\"b\"];";
    for (reads, arguments) in [
        (compared, "-n 4096 --block 64"),
        (getopt, "-v -n 4096 -b64"),
        (strings, "-n 4096 -b 64"),
    ] {
        let text = program(&format!("{starts}  {reads}{ends}"));
        let file = analyse(&[("main.cu", &text)], Some(arguments));
        assert_eq!(launches(&file), [(64, 64, Some(4096), Some(1))], "{reads}");
    }
}

#[test]
fn words_that_are_no_options_are_behind_them() {
    let starts = "int main(int argc, char **argv) {\n  int n = 1, block = 32, c;\n\
        \x20 while ((c = getopt(argc, argv, \"n:v\")) != -1) if (c == 'n') n = atoi(optarg);\n";
    let ends = "\n  float *d; scale<<<n / block, block>>>(d, n);\n}\n";
    let positional = "if (optind < argc) block = atoi(argv[optind]);";
    let looped = "for (int i = optind; i < argc; ++i) block = atoi(argv[i]);";
    for (reads, arguments, block) in [
        (positional, "-n 4096 64", 64),
        (positional, "64 -n 4096", 64),
        (positional, "-v 64 128 -n 4096", 64),
        (positional, "-n 4096 -- 64", 64),
        (positional, "-n 4096", 32),
        (looped, "64 -n 4096 -v 128", 128),
    ] {
        let text = program(&format!("{starts}  {reads}{ends}"));
        let file = analyse(&[("main.cu", &text)], Some(arguments));
        let expected = [(4096 / block, block, Some(4096), Some(1))];
        assert_eq!(launches(&file), expected, "{arguments}");
    }
}

#[test]
fn what_threads_and_tasks_launch_is_launched() {
    for starts in [
        "std::thread t([&] { go(d, 4096); }); t.join();",
        "std::thread t(go, d, 4096); t.join();",
        "std::thread t{go, d, 4096}; t.join();",
        "std::vector<std::thread> all; all.emplace_back(go, d, 4096); for (auto &t : all) t.join();",
        "std::vector<std::thread> all; all.push_back(std::thread(go, d, 4096)); for (auto &t : all) t.join();",
        "std::vector<std::thread> all; all.emplace_back([=] { go(d, 4096); }); all[0].join();",
        "auto task = std::async(std::launch::async, go, d, 4096); task.get();",
        "auto task = std::async([&] { go(d, 4096); }); task.wait();",
    ] {
        let text = program(&format!(
            "void go(float *d, int n) {{ scale<<<n / 64, 64>>>(d, n); }}\n\
             int main() {{ float *d; cudaMalloc(&d, 1 << 20); {starts} }}\n"
        ));
        let file = analyse(&[("main.cu", &text)], Some(""));
        assert_eq!(launches(&file), [(64, 64, Some(4096), Some(1))], "{starts}");
    }
}

#[test]
fn classes_of_headers_and_functions_of_other_files_are_followed() {
    let kernel = "#include \"sizes.h\"\n\
        __global__ void scale(float *x, int n) { x[blockIdx.x * blockDim.x + threadIdx.x] *= n; }\n\
        void run(const Sizes &sizes) { float *d; scale<<<sizes.blocks(), 128>>>(d, sizes.n); }\n";
    let header = "struct Base { int threads = 128; };\n\
        struct Sizes : Base { int n; Sizes(int n) : n(n) {} int blocks() const { return (n + threads - 1) / threads; } };\n\
        void run(const Sizes &sizes);\n";
    let main = "#include \"sizes.h\"\n#include <stdlib.h>\nint global;\n\
        typedef void (*step)(const Sizes &);\n\
        int main(int argc, char *argv[]) { global = atoi(argv[1]); Sizes sizes(global); step steps[1] = {run}; steps[0](sizes); }\n";
    let files = [
        ("kernel.cu", kernel),
        ("sizes.h", header),
        ("main.cpp", main),
    ];
    let file = analyse(&files, Some("1000"));
    assert_eq!(launches(&file), [(8, 128, Some(1000), Some(1))]);
}

#[test]
fn what_the_toolkit_says_of_the_gpu_is_the_target_s() {
    let text = program(
        "int main() { cudaDeviceProp p; cudaGetDeviceProperties(&p, 0); int sms;\n\
         \x20 cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0); float *d;\n\
         \x20 scale<<<p.multiProcessorCount * 2, p.warpSize>>>(d, sms); }\n",
    );
    let file = analyse(&[("main.cu", &text)], Some(""));
    // The default target is an A100 with 108 SMs.
    assert_eq!(launches(&file), [(216, 32, Some(108), Some(1))]);
}

#[test]
fn a_file_beside_it_says_how_a_program_is_run() {
    let text = program(
        "int main(int argc, char **argv) { float *d; int n = atoi(argv[1]); scale<<<n, 64>>>(d, n); }\n",
    );
    let makefile = "SIZE = 48\nrun: main\n\t./main $(SIZE)\n";
    let file = analyse(&[("main.cu", &text), ("Makefile", makefile)], None);
    assert_eq!(launches(&file), [(48, 64, Some(48), Some(1))]);
    let run = file.kernels[0].run.as_ref().expect("a run's");
    assert_eq!(&*run.said, "./main 48, Makefile:3");
    // What the user says comes first.
    let file = analyse(&[("main.cu", &text), ("Makefile", makefile)], Some("7"));
    assert_eq!(launches(&file), [(7, 64, Some(7), Some(1))]);
}

#[test]
fn a_launch_under_a_condition_that_is_not_known_is_made_an_unknown_number_of_times() {
    let text = program(
        "int main(int argc, char **argv) { float *d; int n = 640, found = 1;\n\
         \x20 FILE *f = fopen(\"sizes.txt\", \"r\"); if (f) { fscanf(f, \"%d\", &found); }\n\
         \x20 while (found) { scale<<<n / 64, 64>>>(d, n); cudaMemcpy(&found, d, 4, cudaMemcpyDeviceToHost); } }\n",
    );
    let file = analyse(&[("main.cu", &text)], Some(""));
    assert_eq!(launches(&file), [(10, 64, Some(640), None)]);
}

#[test]
fn what_a_later_turn_changes_is_unknown_behind_the_loop() {
    let behind = |each: &str| {
        let text = program(&format!(
            "int main() {{ float *d; int n = 64, next = 64;\n\
             \x20 for (int i = 0; i < 1000; i++) {{ {each} n = next; if (i == 500) next = 128; }}\n\
             \x20 scale<<<4, 64>>>(d, n); }}\n",
        ));
        launches(&analyse(&[("main.cu", &text)], Some("")))
    };
    assert_eq!(behind("usleep(1);"), [(4, 64, None, Some(1))]);
    // A loop that only computes is computed.
    assert_eq!(behind(""), [(4, 64, Some(128), Some(1))]);
}

#[test]
fn what_only_a_run_loses_its_text_still_says() {
    // The run does not come to the launch, whose block is in its text.
    let text = program(
        "int main(int argc, char **argv) { float *d; if (argc > 1) scale<<<8, 64>>>(d, 512); }\n",
    );
    let file = analyse(&[("main.cu", &text)], Some(""));
    let launch = &file.kernels[0].analysis.facts.launch;
    assert_eq!(
        (launch.block[0], launch.block_source.name()),
        (64, "launch-site")
    );
    assert!(file.kernels[0].run.is_none());
}

#[test]
fn programs_that_never_end_or_make_no_sense_are_bounded() {
    let never = "int f(int n) { return f(n + 1); }\n\
        int main() { float *d; int n = 128; for (;;) { n = n ^ 1; f(n); } scale<<<2, 64>>>(d, n); }\n";
    let zero = "int main(int argc, char **argv) { float *d; int n = 8 / (argc - argc); scale<<<n, 64>>>(d, n); }\n";
    let early = "int main(int argc, char **argv) { float *d; if (argc < 9) exit(1); scale<<<2, 64>>>(d, 9); }\n";
    let counted = "int main() { float *d; unsigned long n = 0; while (n < 1ul << 60) n++; scale<<<4, 64>>>(d, 3); }\n";
    for text in [never, zero, early] {
        let file = analyse(&[("main.cu", &program(text))], Some("x"));
        assert_eq!(file.kernels.len(), 1, "{text}");
        assert_eq!(file.problems, [""; 0], "{text}");
    }
    let file = analyse(&[("main.cu", &program(counted))], Some(""));
    assert_eq!(launches(&file), [(4, 64, Some(3), Some(1))]);
}

#[test]
fn members_of_a_structure_that_a_function_fills_are_arguments() {
    let text = "#include <cstdlib>\n\
        struct Shape { int rows; int pitch[2]; float scale; };\n\
        __device__ int rows(Shape s) { return s.rows; }\n\
        __global__ void scale(float *out, const float *in, Shape s) {\n\
        \x20 int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
        \x20 for (int r = 0; r < rows(s); ++r) out[r * s.pitch[0] + i] = in[r * s.pitch[1] + i] * s.scale; }\n\
        void fill(Shape &s, int n) { s.rows = n; s.pitch[0] = 640; s.pitch[1] = 640 + 8; s.scale = 2; }\n\
        int main(int argc, char **argv) { Shape s; float *a, *b; fill(s, atoi(argv[1]));\n\
        \x20 scale<<<10, 64>>>(a, b, s); }\n";
    let file = analyse(&[("main.cu", text)], Some("12"));
    let kernel = &file.kernels[0].analysis;
    assert_eq!(kernel.unknown_sizes(), [""; 0]);
    let requests = |text: &str| {
        let access = kernel
            .facts
            .accesses
            .iter()
            .find(|access| access.text == text);
        let access = access.expect("the access");
        (access.requests, access.certainty)
    };
    // 12 rows by 20 warps.
    let exact = warplens_facts::facts::Certainty::Exact;
    assert_eq!(requests("in[r * s.pitch[1] + i]"), (Some(240.0), exact));
    assert_eq!(requests("out[r * s.pitch[0] + i]"), (Some(240.0), exact));
    // What nothing gives is a size without a value, by its own name.
    let file = analyse(&[("main.cu", text)], None);
    assert_eq!(file.kernels[0].analysis.unknown_sizes(), ["s.rows"]);
}

#[test]
fn an_editor_s_launch_configuration_comes_before_a_makefile() {
    let text = program(
        "#include <cstdlib>\nint main(int argc, char **argv) { float *d; int n = atoi(argv[1]) * atoi(getenv(\"TIMES\"));\n\
         \x20 scale<<<n / 64, 64>>>(d, n); }\n",
    );
    let launch = "{ \"configurations\": [ // how it is debugged\n\
        { \"program\": \"${workspaceFolder}/main\", \"args\": [\"640\"], \"env\": { \"TIMES\": \"2\" }, } ] }";
    let makefile = "run:\n\t./main 64\n";
    let files = [
        ("main.cu", text.as_str()),
        (".vscode/launch.json", launch),
        ("Makefile", makefile),
    ];
    let file = analyse(&files, None);
    assert_eq!(launches(&file), [(20, 64, Some(1280), Some(1))]);
    let run = file.kernels[0].run.as_ref().expect("a run's");
    assert_eq!(&*run.said, "./main 640, .vscode/launch.json:2");
}

#[test]
fn without_arguments_a_program_does_what_it_does_without() {
    let plain = "int main() { int n = 1 << 20; float *d; for (int i = 0; i < 5; i++) scale<<<n / 128, 128>>>(d, n); }\n";
    let file = analyse(&[("main.cu", &program(plain))], None);
    assert_eq!(launches(&file), [(8192, 128, Some(1 << 20), Some(5))]);
    let defaults = "int main(int argc, char **argv) { int n = 4096; if (argc > 1) n = atoi(argv[1]);\n\
        float *d; scale<<<n / 64, 64>>>(d, n); }\n";
    let file = analyse(&[("main.cu", &program(defaults))], None);
    assert_eq!(launches(&file), [(64, 64, Some(4096), Some(1))]);
    // One that asks for some launches nothing.
    let asks = "int main(int argc, char **argv) { if (argc < 2) { printf(\"usage\"); return 1; } int n = atoi(argv[1]);\n\
        float *d; scale<<<n / 64, 64>>>(d, n); }\n";
    let file = analyse(&[("main.cu", &program(asks))], None);
    let launch = &file.kernels[0].analysis.facts.launch;
    assert_ne!(launch.grid_source.name(), "run");
    assert!(file.kernels[0].analysis.has_unknown_sizes());
}

#[test]
fn files_above_a_program_say_how_it_is_built_and_run() {
    let main = program(
        "int main(int argc, char **argv) { int n = atoi(argv[1]); float *d; scale<<<n / 64, 64>>>(d, n); }\n",
    );
    let makefile = "SIZE = 6400\nbin/scaling: src/main.cu\n\tnvcc -o bin/scaling src/main.cu\nrun: bin/scaling\n\t./bin/scaling $(SIZE) 3\n";
    let cmake = "project(scaling)\nset(SIZE 6400)\nadd_executable(${PROJECT_NAME} src/main.cu)\nadd_test(NAME one COMMAND scaling ${SIZE})\n";
    let readme = "    nvcc src/main.cu -o scaling\n    ./scaling 6400\n";
    for (name, text) in [
        ("Makefile", makefile),
        ("CMakeLists.txt", cmake),
        ("README.md", readme),
    ] {
        let file = analyse(&[("src/main.cu", &main), (name, text)], None);
        assert_eq!(launches(&file), [(100, 64, Some(6400), Some(1))], "{name}");
    }
    // What is run there under another name is another program.
    let other = makefile.replace("./bin/scaling $", "./bin/other $");
    let file = analyse(&[("src/main.cu", &main), ("Makefile", &other)], None);
    assert_ne!(
        file.kernels[0].analysis.facts.launch.grid_source.name(),
        "run"
    );
}

#[test]
fn an_argument_that_a_shell_works_out_leaves_the_others() {
    let main = program(
        "int main(int argc, char **argv) { int n = atoi(argv[1]), block = atoi(argv[2]), times = atoi(argv[3]); float *d;\n\
         for (int i = 0; i < times; i++) scale<<<(n + block - 1) / block, block>>>(d, n); }\n",
    );
    let makefile = "run: main\n\t./main $$(wc -l < data.txt) 192 7\n";
    let file = analyse(&[("main.cu", &main), ("Makefile", makefile)], None);
    let kernel = &file.kernels[0];
    assert_eq!(kernel.analysis.facts.launch.block, [192, 1, 1]);
    assert_eq!(kernel.analysis.facts.launch.block_source.name(), "run");
    let run = kernel.run.as_ref().expect("a run's");
    assert_eq!((run.arguments[1], run.count), (None, Some(7)));
    assert_eq!(
        kernel.analysis.grid_formula().as_deref(),
        Some("ceil(n / 192)")
    );
}

#[test]
fn launches_that_the_driver_refuses_are_errors_and_take_no_time() {
    for (launch, why) in [
        ("<<<n / 1000000, 64>>>", "the grid has no blocks"),
        ("<<<4, n / 1000000>>>", "the block has no threads"),
        ("<<<-4, 64>>>", "the grid has 4294967292 blocks in x"),
    ] {
        let main = format!("int main() {{ int n = 1000; float *d; scale{launch}(d, n); }}\n");
        let file = analyse(&[("main.cu", &program(&main))], None);
        let found: Vec<_> = file
            .findings
            .iter()
            .map(|one| (one.rule, one.message.as_str()))
            .collect();
        assert_eq!(
            found,
            [(
                "launch/impossible",
                format!("the launch fails: {why}").as_str()
            )]
        );
        assert_eq!(
            file.kernels[0].analysis.estimate().time_ms,
            None,
            "{launch}"
        );
    }
}

#[test]
fn a_grid_with_an_upper_limit_follows_what_limits_it() {
    let main = program(
        "int main(int argc, char **argv) { int n; scanf(\"%d\", &n); float *d;\n\
         scale<<<std::min((n + 127) / 128, 16), 128>>>(d, n); }\n",
    );
    let file = analyse(&[("main.cu", &main)], None);
    let kernel = &file.kernels[0].analysis;
    assert_eq!(
        kernel.grid_formula().as_deref(),
        Some("min(ceil(n / 128), 16)")
    );
    assert_eq!(kernel.facts.launch.grid, [16, 1, 1]);
}

/// A launch that may begin while the one before it ends: what an attribute says, and up to where the kernel does not wait.
#[test]
fn a_launch_may_begin_while_the_one_before_it_ends() {
    let text = |allowed: &str, waits: &str, config: &str| {
        format!(
            "#include <cuda_runtime.h>\n\
             __device__ __forceinline__ void wait_for_it() {{ asm volatile(\"griddepcontrol.wait;\" ::: \"memory\"); }}\n\
             __global__ void first(float *a) {{ a[blockIdx.x * 256 + threadIdx.x] *= 2; }}\n\
             __global__ void second(float *b, const float *a) {{\n\
               int i = blockIdx.x * 256 + threadIdx.x;\n\
               {waits}\n\
               b[i] = a[i];\n\
             }}\n\
             int main() {{\n\
               float *a, *b; cudaMalloc(&a, 1 << 20); cudaMalloc(&b, 1 << 20);\n\
               first<<<1024, 256>>>(a);\n\
               cudaLaunchConfig_t config = {{}}; config.gridDim = 1024; config.blockDim = 256;\n\
               cudaLaunchAttribute all[2]; all[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;\n\
               all[0].val.programmaticStreamSerializationAllowed = {allowed};\n\
               {config}\n\
               cudaLaunchKernelEx(&config, second, b, (const float *)a);\n\
             }}\n"
        )
    };
    let given = "config.attrs = all; config.numAttrs = 1;";
    let begins = |text: &str| -> Vec<Option<EarlyStart>> {
        let file = analyse(&[("a.cu", text)], Some(""));
        file.kernels.iter().map(PlacedKernel::early_start).collect()
    };
    for (wait, line) in [
        (
            "asm volatile(\"griddepcontrol.wait;\" ::: \"memory\");",
            Some(6),
        ),
        ("cudaGridDependencySynchronize();", Some(6)),
        ("wait_for_it();", Some(6)),
        ("asm volatile(\"griddepcontrol.launch_dependents;\");", None),
        ("", None),
    ] {
        let early = Some(EarlyStart { waits_at: line });
        assert_eq!(begins(&text("1", wait, given)), [None, early], "{wait}");
    }
    // Not allowed, or not given to the launch.
    assert_eq!(begins(&text("0", "", given)), [None, None]);
    assert_eq!(begins(&text("1", "", "")), [None, None]);
}
