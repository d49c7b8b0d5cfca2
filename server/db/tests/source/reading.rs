//! What is read besides the buffer: macros, conditionals, headers, compile commands, other files' launches.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use warplens_base::{DiskFiles, OpenFiles};
use warplens_db::settings::Settings;
use warplens_db::{
    Cancel, Engine, FileAnalysis, Overrides, Project, Variants, language_by_content,
};
use warplens_facts::facts::Certainty;
use warplens_ir::Reason;
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

/// A folder with files, and an engine that reads it.
struct Folder {
    root: tempfile::TempDir,
    open: Arc<OpenFiles<DiskFiles>>,
    engine: Engine,
}

impl Folder {
    fn new(files: &[(&str, &str)]) -> Folder {
        let root = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().expect("inside the folder")).expect("made");
            fs::write(path, text).expect("written");
        }
        let open = Arc::new(OpenFiles::new(DiskFiles::new()));
        let project = Project::new(open.clone(), vec![root.path().to_path_buf()]);
        let engine = Engine::with_project(Profiles::builtin(), project);
        Folder { root, open, engine }
    }

    fn analyse(&self, name: &str) -> FileAnalysis {
        self.analyse_with(name, &Settings::default(), &Overrides::default())
    }

    /// What the first kernel of a text assumes, with the text open in the editor.
    fn assumes(&self, name: &str, text: &str) -> Vec<String> {
        let path = self.root.path().join(name);
        self.open.set(&path, text);
        let document = Document::new(text, language_by_content(Language::from_path(&path), text));
        let (settings, overrides) = (Settings::default(), Overrides::default());
        let file = self
            .engine
            .analyze(&document, &path, &settings, &overrides, &Cancel::default())
            .expect("not cancelled");
        let assumed = file.kernels[0].analysis.facts.assumptions.iter();
        assumed.map(|one| format!("{one:?}")).collect()
    }

    fn analyse_with(&self, name: &str, settings: &Settings, overrides: &Overrides) -> FileAnalysis {
        let path = self.root.path().join(name);
        let text = fs::read_to_string(&path).expect("there");
        let language = language_by_content(Language::from_path(&path), &text);
        let document = Document::new(&text, language);
        self.engine
            .analyze(&document, &path, settings, overrides, &Cancel::default())
            .expect("not cancelled")
    }
}

fn analyse(text: &str) -> FileAnalysis {
    Folder::new(&[("a.cu", text)]).analyse("a.cu")
}

/// For each access of the first kernel: its text as the analysis shows it, and sectors or passes per request.
fn costs(file: &FileAnalysis) -> Vec<(String, Option<f64>)> {
    let facts = &file.kernels[0].analysis.facts;
    assert_eq!(facts.not_understood, [], "everything is understood");
    facts
        .accesses
        .iter()
        .map(|access| {
            let cost = access
                .transactions_per_request
                .or(access.passes_per_request);
            (access.text.clone(), cost)
        })
        .collect()
}

#[test]
fn a_macro_that_makes_the_kernel_is_expanded_and_points_at_its_use() {
    let file = analyse(
        "#define KERNEL(name, type, ...) \\\n\
         extern \"C\" __global__ void name##_##type(type *out, const type *in) { \\\n\
             int i = blockIdx.x * blockDim.x + threadIdx.x; out[i] = in[i * 32] __VA_ARGS__; }\n\
         \n\
         KERNEL(scale, float, * 2.0f)\n",
    );
    let kernel = &file.kernels[0];
    assert_eq!(kernel.analysis.facts.name, "scale_float");
    assert_eq!(kernel.line, 4, "where the macro is used");
    assert_eq!(
        costs(&file)
            .iter()
            .map(|(_, cost)| *cost)
            .collect::<Vec<_>>(),
        [Some(32.0), Some(4.0)]
    );
    for access in &kernel.analysis.facts.accesses {
        assert_eq!(kernel.place_line(access.site.line), 4);
    }
}

#[test]
fn an_argument_of_a_macro_keeps_its_column() {
    let text = "#define AT(a, i) a[(i) * 32]\n\
                __global__ void k(float *out, const float *in) {\n\
                \x20 out[threadIdx.x] = AT(in, threadIdx.x) + AT(in, 1);\n}\n";
    let file = analyse(text);
    let kernel = &file.kernels[0];
    let facts = &kernel.analysis.facts;
    assert_eq!(facts.not_understood, []);
    let line_start = text.find("  out").expect("there");
    let columns: Vec<u32> = facts
        .accesses
        .iter()
        .map(|access| (kernel.place(access.site.span).start - line_start) as u32)
        .collect();
    let third = text.lines().nth(2).expect("a third line");
    let first_use = third.find("AT(in, threadIdx").expect("there") as u32;
    // `in` was spelled as the macro's argument: the access begins there or at the use.
    assert!(
        columns
            .iter()
            .any(|&at| at == first_use || at == first_use + 3),
        "{columns:?}"
    );
    assert!(columns.iter().all(|&at| (at as usize) < third.len()));
}

#[test]
fn conditionals_follow_the_definitions_and_the_other_branch_is_offered() {
    let text = "__global__ void k(float *a) {\n\
                #ifdef WIDE\n  a[threadIdx.x * 32] = 0;\n\
                #else\n  a[threadIdx.x] = 0;\n#endif\n}\n";
    let folder = Folder::new(&[("a.cu", text)]);
    let file = folder.analyse("a.cu");
    assert_eq!(costs(&file)[0].1, Some(4.0));
    assert_eq!(file.kernels[0].variants.len(), 2);
    assert_eq!(file.kernels[0].variants[1], "with WIDE");
    let assumed = &file.kernels[0].analysis.facts.assumptions;
    assert!(
        assumed
            .iter()
            .any(|a| a.symbol.is_named("WIDE") && a.value == "not defined"),
        "{assumed:?}"
    );

    let all = Overrides {
        variants: Variants::All,
        ..Overrides::default()
    };
    let both = folder.analyse_with("a.cu", &Settings::default(), &all);
    let sectors = |at: usize| both.kernels[at].analysis.facts.accesses[0].transactions_per_request;
    assert_eq!((sectors(0), sectors(1)), (Some(4.0), Some(32.0)));

    let mut defined = Settings::default();
    defined.defines.insert("WIDE".to_owned(), "1".to_owned());
    let file = folder.analyse_with("a.cu", &defined, &Overrides::default());
    assert_eq!(costs(&file)[0].1, Some(32.0));
    assert_eq!(
        file.kernels[0].variants.len(),
        1,
        "nothing is left to decide"
    );
}

#[test]
fn a_kernel_in_a_branch_that_nothing_decided_is_found() {
    let file = analyse(
        "#ifdef FAST\n__global__ void fast(float *a) { a[threadIdx.x] = 0; }\n\
         #else\n__global__ void slow(float *a) { a[threadIdx.x * 2] = 0; }\n#endif\n\
         #if 0\n__global__ void never(float *a) { a[0] = 0; }\n#endif\n",
    );
    let mut names: Vec<&str> = file
        .kernels
        .iter()
        .map(|kernel| kernel.analysis.facts.name.as_str())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["fast", "slow"]);
}

#[test]
fn headers_give_macros_types_and_functions_and_their_edits_count() {
    let folder = Folder::new(&[
        (
            "include/tile.cuh",
            "#pragma once\n#define STRIDE 32\n\
             template <typename T> __device__ T pick(const T *p, int i) { return p[i * STRIDE]; }\n",
        ),
        (
            "src/a.cu",
            "#include \"tile.cuh\"\n#include <cstdio>\n#include \"gone.h\"\n\
             __global__ void k(float *out, const float *in) { out[threadIdx.x] = pick(in, threadIdx.x); }\n",
        ),
    ]);
    let file = folder.analyse("src/a.cu");
    assert_eq!(costs(&file)[0], ("p[i * 32]".to_owned(), Some(32.0)));
    assert_eq!(
        file.missing_includes,
        ["gone.h"],
        "system headers are known, not missed"
    );
    let header = folder.root.path().join("include/tile.cuh");
    assert!(file.reads.contains(&header), "{:?}", file.reads);
    let place = file.kernels[0]
        .callee(file.kernels[0].analysis.facts.accesses[0].site)
        .expect("in the header");
    assert_eq!(
        (place.path.as_deref(), place.line),
        (Some(header.as_path()), 2)
    );
    assert_eq!(place.via, [(None, 3)]);

    let text = fs::read_to_string(&header)
        .expect("there")
        .replace("STRIDE 32", "STRIDE 2");
    folder.open.set(&header, text);
    let file = folder.analyse("src/a.cu");
    assert_eq!(costs(&file)[0].1, Some(8.0));
}

#[test]
fn headers_that_include_each_other_end() {
    let folder = Folder::new(&[
        ("a.h", "#include \"b.h\"\n#define A 1\n"),
        ("b.h", "#include \"a.h\"\n#define B 2\n"),
        (
            "k.cu",
            "#include \"a.h\"\n__global__ void k(float *p) { p[threadIdx.x * A * B] = 0; }\n",
        ),
    ]);
    assert_eq!(costs(&folder.analyse("k.cu"))[0].1, Some(8.0));
}

#[test]
fn a_header_that_leaves_out_what_is_being_read_reads_it_elsewhere() {
    let kernel = |header: &str| {
        format!(
            "#include \"{header}\"\n__global__ void k(float *p) {{ p[threadIdx.x * STEP] = 0; }}\n"
        )
    };
    let folder = Folder::new(&[
        (
            "a.h",
            "#ifndef A_H\n#define A_H\n#include \"b.h\"\n#define WIDE\n#endif\n",
        ),
        (
            "b.h",
            "#ifndef B_H\n#define B_H\n#include \"a.h\"\n#ifdef WIDE\n#define STEP 8\n#else\n\
             #define STEP 1\n#endif\n#endif\n",
        ),
        ("inner.cu", &kernel("a.h")),
        ("outer.cu", &kernel("b.h")),
    ]);
    let sectors = |name: &str| costs(&folder.analyse(name))[0].1;
    // b.h is within a.h, which defines WIDE behind it; else a.h is within b.h.
    for _ in 0..2 {
        assert_eq!(sectors("inner.cu"), Some(4.0));
        assert_eq!(sectors("outer.cu"), Some(32.0));
    }
}

#[test]
fn a_header_that_was_read_in_a_small_file_is_left_out_of_one_that_has_read_enough() {
    let filled = |lines: usize, rest: &str| format!("{rest}\n{}", "// filled ...\n".repeat(lines));
    let kernel = "__global__ void k(float *p) { p[threadIdx.x] = 0; }\n";
    let first = ["first.h", "second.h", "third.h", "fourth.h"];
    let lines = first.map(|name| format!("#include \"{name}\"\n")).concat();
    let mut files: Vec<(&str, String)> = vec![
        (
            "last.h",
            "#include \"more.h\"\ntypedef int last;\n".to_owned(),
        ),
        ("more.h", filled(60_000, "typedef int more;")),
        ("small.cu", format!("#include \"last.h\"\n{kernel}")),
        ("large.cu", format!("{lines}#include \"last.h\"\n{kernel}")),
    ];
    files.extend(first.map(|name| (name, filled(70_000, "typedef int more;"))));
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(name, text)| (*name, text.as_str()))
        .collect();
    let folder = Folder::new(&files);
    let missing = |name: &str| folder.analyse(name).missing_includes.clone();
    for _ in 0..2 {
        assert_eq!(missing("small.cu"), Vec::<String>::new());
        assert_eq!(missing("large.cu"), ["more.h (too many headers)"]);
    }
}

#[test]
fn a_header_that_is_too_large_is_left_out_by_itself_and_said() {
    let folder = Folder::new(&[
        ("table.h", &"0, 1, 2, 3, 4, 5,\n".repeat(70_000)),
        ("types.h", "#include \"table.h\"\ntypedef float value;\n"),
        (
            "k.cu",
            "#include \"types.h\"\n__global__ void k(value *p) { p[threadIdx.x] = 0; }\n",
        ),
    ]);
    let file = folder.analyse("k.cu");
    assert_eq!(file.missing_includes, ["table.h (too large)"]);
    let accesses = &file.kernels[0].analysis.facts.accesses;
    assert_eq!(accesses[0].bytes_per_lane, 4, "what includes it is read");
}

#[test]
fn a_kernel_of_layouts_says_once_that_it_needs_a_compiler() {
    let device = "template <class L> __device__ void tile(float *p, L l) { auto t = make_tensor(make_gmem_ptr(p), l); t(0) = 1; }\n";
    let launch =
        "void run(float *p) { called<<<1, 32>>>(p); own<<<1, 32>>>(p); plain<<<1, 32>>>(p); }\n";
    let folder = Folder::new(&[
        // Not read: what it declares only a compiler evaluates.
        (
            "cute/tensor.hpp",
            "namespace cute { struct Nothing; }\nthis is not C++ {\n",
        ),
        (
            "tile.h",
            &format!("#include <cute/tensor.hpp>\nusing namespace cute;\n{device}"),
        ),
        (
            "k.cu",
            &format!(
                "#include \"tile.h\"\n\
                 __global__ static __launch_bounds__(decltype(size(Layout{{}}))::value)\nvoid\n\
                 called(float *p) {{ tile(p, make_shape(1)); p[threadIdx.x] += 1; unknown(p); }}\n\
                 __global__ void own(float *p) {{ auto g = cute::local_tile(p, 1, 2); copy(g, p); }}\n\
                 __global__ void plain(float *p) {{ p[threadIdx.x] = cute::cast_smem_ptr_to_uint(p); }}\n{launch}"
            ),
        ),
    ]);
    let file = folder.analyse("k.cu");
    assert!(
        file.missing_includes.is_empty(),
        "{:?}",
        file.missing_includes
    );
    let losses = |name: &str| -> Vec<String> {
        let mut kernels = file.kernels.iter();
        let kernel = kernels.find(|one| one.analysis.facts.name == name);
        let lost = &kernel.expect("the kernel").analysis.facts.not_understood;
        lost.iter().map(|one| one.reason.to_string()).collect()
    };
    for name in ["called", "own"] {
        let [one] = &losses(name)[..] else {
            panic!("{name}: {:?}", losses(name));
        };
        assert!(one.starts_with("CuTe layouts need a compiler"), "{one}");
    }
    assert!(losses("plain").iter().all(|one| !one.contains("CuTe")));
    for placed in &file.kernels {
        let of_layouts = placed.analysis.facts.name != "plain";
        assert_eq!(
            placed.analysis.is_opaque(),
            of_layouts,
            "{}",
            placed.analysis.facts.name
        );
        let estimate = placed.analysis.estimate();
        assert_eq!(estimate.cycles.is_none(), of_layouts);
        let why = estimate.why.clone().unwrap_or_default();
        assert_eq!(why.starts_with("CuTe layouts"), of_layouts, "{why}");
    }
}

#[test]
fn a_header_that_includes_one_that_is_read_once_reads_otherwise_behind_it() {
    let kernel = "__global__ void k(value *p) { p[threadIdx.x] = 0; }\n";
    let folder = Folder::new(&[
        (
            "types.h",
            "#pragma once\n#include \"absent.h\"\ntypedef float value;\n",
        ),
        ("x.h", "#include \"types.h\"\n#define X 1\n"),
        ("y.h", "#include \"types.h\"\n#define Y 1\n"),
        ("one.cu", &format!("#include \"y.h\"\n{kernel}")),
        (
            "two.cu",
            &format!("#include \"x.h\"\n#include \"y.h\"\n{kernel}"),
        ),
    ]);
    for name in ["one.cu", "two.cu"] {
        let file = folder.analyse(name);
        assert_eq!(file.missing_includes, ["absent.h"], "{name}");
    }
}

#[test]
fn no_branch_is_taken_for_its_error_or_for_what_it_uses_itself() {
    let text = "#ifdef WIDE\nint wide() { return WIDE; }\n#endif\n\
        #if SIZE % 4 != 0\n#error \"SIZE has to be a multiple of 4\"\n#endif\n\
        #ifdef WIDE\n#define THREADS WIDE\n#else\n#define THREADS 128\n#endif\n\
        __kernel __attribute__((reqd_work_group_size(SIZE, 1, 1)))\n\
        void k(__global float *p) { p[get_global_id(0) * THREADS] = SIZE; }\n";
    let file = Folder::new(&[("k.cl", text)]).analyse("k.cl");
    let facts = &file.kernels[0].analysis.facts;
    let mut values = facts.assumptions.iter().map(|one| one.value.as_str());
    assert!(!values.any(|value| value.starts_with("defined as")));
    assert!(facts.launch.block_source.is_assumption());
    assert!(
        facts.accesses[0].index.contains("128"),
        "{}",
        facts.accesses[0].index
    );
}

#[test]
fn what_a_kernel_assumes_follows_the_text_around_it() {
    let host = "void run() { clBuildProgram(p, 1, &d, \"-D STEP=4\", 0, 0); \
                clCreateKernel(p, \"first\", 0); clCreateKernel(p, \"second\", 0); }\n";
    let cuda = |before: &str, within: &str, after: &str| {
        format!(
            "{before}\n__global__ void first(float *p) {{\n{within}\n p[threadIdx.x] = 0; }}\n\
             __global__ void second(float *p) {{ p[threadIdx.x{after}] = 1; }}\n"
        )
    };
    let opencl = |after: &str| {
        format!(
            "__kernel void first(__global float *p) {{ p[get_global_id(0)] = 0; }}\n\
             __kernel void second(__global float *p) {{ p[get_global_id(0){after}] = 1; }}\n"
        )
    };
    let width = "#if WIDTH == 1\n#define SMALL\n#endif";
    let small = "#ifdef SMALL\n p[0] = 1;\n#endif";
    let branch = "#if WIDE\n p[0] = 1;\n#endif";
    let texts = [
        (
            "k.cu",
            cuda(width, small, " * WIDTH"),
            cuda(width, small, " * 1"),
        ),
        (
            "k.cu",
            cuda("", branch, ""),
            cuda("#define WIDE 0", branch, ""),
        ),
        ("k.cl", opencl(" * STEP"), opencl(" * 4")),
    ];
    for (name, one, other) in &texts {
        let alone = |text: &str| Folder::new(&[("host.c", host)]).assumes(name, text);
        let [expected, otherwise] = [alone(one), alone(other)];
        assert_ne!(expected, otherwise, "{one}");
        let folder = Folder::new(&[("host.c", host)]);
        assert_eq!(folder.assumes(name, one), expected, "{one}");
        assert_eq!(folder.assumes(name, other), otherwise, "{other}");
        assert_eq!(folder.assumes(name, one), expected, "{one}");
    }
}

#[test]
fn compile_commands_define_include_and_choose_the_gpu() {
    let folder = Folder::new(&[
        ("lib/stride.h", "#define STRIDE WIDTH\n"),
        (
            "k.cu",
            "#include <stride.h>\n__global__ void k(float *p) { p[threadIdx.x * STRIDE] = 0; }\n",
        ),
    ]);
    let root = folder.root.path().display();
    let command = format!(
        "nvcc -gencode arch=compute_70,code=sm_70 -rdc=true -Xcompiler -fPIC --unknown-flag -DWIDTH=32 \
         -I{root}/lib -c k.cu -o k.o"
    );
    let entry =
        serde_json::json!([{ "directory": root.to_string(), "file": "k.cu", "command": command }]);
    fs::write(
        folder.root.path().join("compile_commands.json"),
        entry.to_string(),
    )
    .expect("written");
    let file = folder.analyse("k.cu");
    assert_eq!(costs(&file)[0].1, Some(32.0));
    assert_eq!(file.profile.compute_capability, Some((7, 0)));
    let chosen = Settings {
        gpu: Some("a100-sxm4-40gb".to_owned()),
        ..Settings::default()
    };
    let file = folder.analyse_with("k.cu", &chosen, &Overrides::default());
    assert_eq!(file.profile.id, "a100-sxm4-40gb", "the user's choice wins");
}

#[test]
fn a_kernel_macro_of_an_unread_header_can_be_named_in_the_settings() {
    let folder = Folder::new(&[(
        "k.cu",
        "MY_KERNEL void k(float *p) { p[threadIdx.x] = 0; }\n",
    )]);
    assert_eq!(folder.analyse("k.cu").found, 0);
    let settings = Settings {
        kernel_macros: vec!["MY_KERNEL".to_owned()],
        ..Settings::default()
    };
    let file = folder.analyse_with("k.cu", &settings, &Overrides::default());
    assert_eq!(costs(&file)[0].1, Some(4.0));
}

#[test]
fn a_kernel_in_a_header_is_read_as_its_includer_reads_it() {
    let folder = Folder::new(&[
        (
            "kernel.h",
            "__global__ void k(Item *p) { p[threadIdx.x].a = TILE; }\n",
        ),
        (
            "main.cu",
            "struct Item { int a, b; };\n#define TILE 3\n#include \"kernel.h\"\n\
             void run(Item *p) { k<<<8, 64>>>(p); }\n",
        ),
    ]);
    // What includes it is looked for in the folder.
    assert_eq!(costs(&folder.analyse("kernel.h"))[0].1, Some(8.0));
    folder.analyse("main.cu");
    let file = folder.analyse("kernel.h");
    assert_eq!(costs(&file)[0].1, Some(8.0));
    assert_eq!(file.kernels[0].analysis.facts.launch.block, [64, 1, 1]);
}

#[test]
fn an_edited_copy_is_read_where_its_file_is_and_no_other_caller_sees_it() {
    let text = "__global__ void k(Item *p) { p[threadIdx.x].a = TILE; }\n";
    let folder = Folder::new(&[
        ("kernel.h", text),
        (
            "main.cu",
            "struct Item { int a, b; };\n#define TILE 3\n#include \"kernel.h\"\n\
             void run(Item *p) { k<<<8, 64>>>(p); }\n",
        ),
    ]);
    let before = costs(&folder.analyse("kernel.h"));
    let path = folder.root.path().join("kernel.h");
    let edited = text.replace("threadIdx.x", "2 * threadIdx.x");
    let copy = Document::new(&edited, Language::Cuda);
    let (settings, overrides) = (Settings::default(), Overrides::default());
    let never = Cancel::default();
    let analysis = folder
        .engine
        .analyze(&copy, &path, &settings, &overrides, &never);
    let analysis = analysis.expect("not cancelled");
    // The type and the macro stand in the file that includes it.
    assert_eq!(costs(&analysis)[0].1, Some(16.0));
    assert_eq!(analysis.kernels[0].analysis.facts.launch.block, [64, 1, 1]);
    assert_eq!(costs(&folder.analyse("kernel.h")), before);
    let main = folder.analyse("main.cu");
    assert_eq!(main.kernels.len(), 0);
}

#[test]
fn programs_in_string_literals_are_analysed_where_they_stand() {
    let text = "const char *source =\n    \"__kernel void k(__global float *a) {\\n\"\n    \
                \"  a[get_global_id(0) * 32] = 0;\\n\"\n    \"}\\n\";\n\
                const char *raw = R\"(\n__kernel void r(__global float *a) {\n  a[get_global_id(0)] = 0;\n}\n)\";\n";
    let folder = Folder::new(&[("host.cpp", text)]);
    let file = folder.analyse("host.cpp");
    let found: Vec<(&str, u32, Option<f64>)> = file
        .kernels
        .iter()
        .map(|kernel| {
            let facts = &kernel.analysis.facts;
            let access = &facts.accesses[0];
            (
                facts.name.as_str(),
                kernel.place_line(access.site.line),
                access.transactions_per_request,
            )
        })
        .collect();
    assert_eq!(found, [("k", 2, Some(32.0)), ("r", 6, Some(4.0))]);
}

#[test]
fn macros_without_end_are_told_at_their_use() {
    let mut text = String::from("#define X0 threadIdx.x\n");
    for level in 1..40 {
        let _ = writeln!(text, "#define X{level} (X{0} + X{0})", level - 1);
    }
    text.push_str("__global__ void k(float *a) {\n  a[threadIdx.x] = 1;\n  a[X39] = 0;\n}\n");
    let file = analyse(&text);
    let facts = &file.kernels[0].analysis.facts;
    let lost = &facts.not_understood[0];
    assert!(
        matches!(&lost.reason, Reason::Preprocessor(message) if message.contains("X39"))
            || lost.reason == Reason::TooMuch,
        "{lost:?}"
    );
    let line = file.kernels[0].place_line(lost.site.line);
    assert_eq!(line - file.kernels[0].line, 2);
    assert_eq!(
        facts.accesses[0].transactions_per_request,
        Some(4.0),
        "the rest is read"
    );
}

#[test]
fn unbalanced_conditionals_cost_themselves_alone() {
    for broken in [
        "#if 1\n",
        "#endif\n",
        "#else\n",
        "#if\n",
        "#elif 3\n",
        "#include\n",
        "#include <\n",
    ] {
        let file = analyse(&format!(
            "{broken}__global__ void k(float *a) {{ a[threadIdx.x] = 0; }}\n"
        ));
        assert_eq!(file.found, 1, "after {broken:?}");
    }
}

#[test]
fn references_and_several_returns_are_followed() {
    let file = analyse(
        "__device__ void next(int &i) { i += 32; }\n\
         __device__ int clamp(int i, int n) { if (i < 0) return 0; if (i >= n) return n - 1; return i; }\n\
         struct View { float *p; int ld; __device__ float &at(int r, int c) { return p[r * ld + c]; } };\n\
         __global__ void k(float *a, const float *b) {\n\
           int i = threadIdx.x; next(i); a[i * 2] = 0;\n\
           View v{a, 64}; v.at(threadIdx.x, 0) = b[clamp(threadIdx.x, 16)];\n}\n",
    );
    let file = costs(&file);
    let of = |text: &str| {
        let found = file.iter().find(|(of, _)| of == text);
        found.unwrap_or_else(|| panic!("{text} in {file:?}")).1
    };
    assert_eq!(of("a[i * 2]"), Some(8.0));
    assert_eq!(of("p[r * ld + c]"), Some(32.0));
    // Lanes 16 to 31 read b[15]: two sectors in every first warp, one beyond.
    assert!(of("b[clamp(threadIdx.x, 16)]").is_some_and(|sectors| sectors <= 2.0));
}

#[test]
fn fields_change_together_and_shared_arrays_of_functions_are_one() {
    let file = analyse(
        "__device__ float sum(float x) { __shared__ float part[256]; part[threadIdx.x] = x; return part[0]; }\n\
         __global__ void k(float *a) {\n\
           int2 v = make_int2(threadIdx.x, 32); v = make_int2(v.y, v.x);\n\
           a[v.y * v.x] = sum(1.0f) + sum(2.0f);\n}\n",
    );
    assert!(costs(&file).contains(&("a[v.y * v.x]".to_owned(), Some(32.0))));
    assert_eq!(
        file.kernels[0].analysis.input.resources.static_shared_bytes,
        1024
    );
}

#[test]
fn comparisons_that_look_like_templates_are_comparisons() {
    let file = analyse(
        "__global__ void k(float *a, int n, int m) {\n\
           int i = threadIdx.x;\n\
           if (i < n || m > (n + 1)) a[i * 2] = 0;\n\
           for (int j = 0; j < n >> 3; j++) a[j * 32 + i] = 1;\n}\n",
    );
    let found = costs(&file);
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[1].1, Some(4.0));
}

/// The first kernel's block, and where it is from.
fn block(file: &FileAnalysis) -> ([u64; 3], &'static str) {
    let launch = &file.kernels[0].analysis.facts.launch;
    (launch.block, launch.block_source.name())
}

const ADD: &str = "__kernel void add(__global float *a, int n) { a[get_global_id(0)] = n; }\n";

#[test]
fn host_programs_near_a_kernel_give_its_launch() {
    let host = "void run() {\n\
                  cl_kernel k = clCreateKernel(program, \"add\", &error);\n\
                  size_t global[1] = {1024}, local[1] = {128};\n\
                  clEnqueueNDRangeKernel(queue, k, 1, NULL, global, local, 0, NULL, NULL);\n}\n";
    for at in ["main.c", "../host/main.cpp", "../main.cc"] {
        let folder = Folder::new(&[("cl/add.cl", ADD), (&format!("cl/{at}"), host)]);
        let file = folder.analyse("cl/add.cl");
        assert_eq!(block(&file), ([128, 1, 1], "launch-site"), "{at}");
    }
    let ptx = Folder::new(&[
        (
            "k.cu",
            "extern \"C\" __global__ void add(float *a) { a[threadIdx.x] = 1; }\n",
        ),
        (
            "main.cpp",
            "void run() { CUfunction f; cuModuleGetFunction(&f, module, \"add\");\n\
             cuLaunchKernel(f, 8, 1, 1, 64, 2, 1, 0, stream, args, NULL); }\n",
        ),
    ]);
    assert_eq!(block(&ptx.analyse("k.cu")), ([64, 2, 1], "launch-site"));
    // Another kernel's launch, and one outside the workspace, say nothing.
    let other = host.replace("\"add\"", "\"sub\"");
    let folder = Folder::new(&[("cl/add.cl", ADD), ("cl/main.c", &other)]);
    assert_eq!(block(&folder.analyse("cl/add.cl")).1, "assumed");
}

#[test]
fn a_host_program_that_changes_is_read_again() {
    let host = |block: u32| {
        format!(
            "void run() {{ size_t g[1] = {{4096}}, l[1] = {{{block}}};\n\
             clEnqueueNDRangeKernel(q, clCreateKernel(p, \"add\", 0), 1, 0, g, l, 0, 0, 0); }}\n"
        )
    };
    let folder = Folder::new(&[("add.cl", ADD), ("main.c", &host(64))]);
    assert_eq!(block(&folder.analyse("add.cl")).0, [64, 1, 1]);
    let path = folder.root.path().join("main.c");
    fs::write(&path, host(256)).expect("written");
    folder.open.inner().forget(&path);
    assert_eq!(block(&folder.analyse("add.cl")).0, [256, 1, 1]);
}

#[test]
fn what_a_host_program_lists_before_a_file_is_read_before_it() {
    let kernel = "__kernel void k(__global T *a) { a[get_global_id(0) * WIDTH] = one(2); }\n";
    let files = |host: &str| {
        Folder::new(&[
            ("cl/ops.cl", "typedef double T;\n#define WIDTH 4\nT one(T x) { return x; }\n"),
            ("cl/other.cl", "typedef char T;\n#define WIDTH 1\nT one(T x) { return x; }\n__kernel void o() {}\n"),
            ("cl/k.cl", kernel),
            ("host/main.cpp", host),
        ])
        .analyse("cl/k.cl")
    };
    let file = files("void f() { build(\"k\", {{ops_cl_src, k_cl_src}}, options); }\n");
    let facts = &file.kernels[0].analysis.facts;
    assert_eq!(
        costs(&file),
        [("a[get_global_id(0) * WIDTH]".to_owned(), Some(32.0))]
    );
    assert!(
        !facts
            .assumptions
            .iter()
            .any(|assumption| assumption.source.starts_with("-D"))
    );
    // Another file's list.
    let file = files("void f() { build(\"o\", {other_cl_src, o_cl_src}); load(\"k.cl\"); }\n");
    let facts = &file.kernels[0].analysis.facts;
    assert!(
        facts
            .accesses
            .iter()
            .all(|access| access.bytes_per_lane != 1)
    );
}

#[test]
fn names_that_only_the_build_defines_are_assumed() {
    let file = Folder::new(&[(
        "a.cl",
        "__kernel void k(__global inType *in, __global outType *out) {\n\
           local outType part[groupSize];\n\
           outType sum = init;\n\
           int i = get_global_id(0);\n\
           sum = combine(sum, transform(in[i]));\n\
           if (stride == 2) out[i] = sum;\n\
           out[i * width] = sum;\n}\n",
    )])
    .analyse("a.cl");
    let facts = &file.kernels[0].analysis.facts;
    assert_eq!(facts.not_understood, []);
    let assumed: Vec<&str> = facts
        .assumptions
        .iter()
        .filter(|assumption| assumption.source.starts_with("-D "))
        .map(|assumption| assumption.symbol.kind())
        .collect();
    for name in [
        "inType",
        "outType",
        "init",
        "combine",
        "transform",
        "stride",
        "width",
    ] {
        assert!(assumed.contains(&name), "{name} in {assumed:?}");
    }
    assert!(
        facts.accesses.iter().all(|access| !access.exact()),
        "none is exact"
    );
    let strided = facts.accesses.last().expect("the last store");
    assert_eq!(
        strided.transactions_per_request, None,
        "the width is not known"
    );
}

#[test]
fn what_may_be_half_typed_or_does_something_is_no_build_option() {
    let lost = |text: &str| {
        let file = Folder::new(&[("a.cl", text)]).analyse("a.cl");
        file.kernels[0].analysis.facts.not_understood.len()
    };
    let kernel = |body: &str| {
        format!(
            "__kernel void k(__global float *a, int width) {{ int i = get_global_id(0); {body} }}\n"
        )
    };
    assert_eq!(lost(&kernel("a[i] = factor;")), 0);
    assert_eq!(lost(&kernel("a[i] = wid;")), 1, "the beginning of `width`");
    assert_eq!(lost(&kernel("a[get_globa(0)] = 1;")), 1, "no such function");
    assert_eq!(lost(&kernel("a[i] = f(i);")), 0);
    assert_eq!(lost(&kernel("store(i, 1);")), 1, "its value is not used");
    assert_eq!(lost(&kernel("a[i] = f(a, i);")), 1, "it is given memory");
    let cuda = analyse("__global__ void k(float *a) { a[threadIdx.x] = combine(1, factor); }\n");
    assert!(!cuda.kernels[0].analysis.facts.not_understood.is_empty());
}

#[test]
fn files_of_any_bytes_are_answered() {
    for text in [
        "",
        "\0\0\0",
        "\u{feff}__global__",
        "#define A A\nA A(",
        "R\"(",
        "\"__kernel void k(",
    ] {
        analyse(text);
        let language = language_by_content(Language::from_path(Path::new("a.cl")), text);
        Document::new(text, language);
    }
}

#[test]
fn bounds_checks_that_read_like_templates_are_comparisons() {
    let file = analyse(
        "__global__ void pool(const float *in, float *out, int w, int h) {\n\
         \x20 int x = blockIdx.x * 32 + threadIdx.x, y = threadIdx.y;\n\
         \x20 int valid = (y >= 0 && y < h && x >= 0 && x < w);\n\
         \x20 out[y * w + x] = valid ? in[y * w + x] : 0.0f;\n\
         \x20 if (x < w && y > 0) out[x] = in[x];\n\
         }\n\
         void run(float *p) { pool<<<dim3(4), dim3(32, 8)>>>(p, p, 128, 8); }",
    );
    let costs = costs(&file);
    assert_eq!(costs.len(), 4, "{costs:?}");
    assert!(
        costs.iter().all(|(_, cost)| *cost == Some(4.0)),
        "{costs:?}"
    );
}

#[test]
fn an_intrinsic_that_nobody_knows_is_arithmetic_and_said() {
    let file = analyse(
        "__global__ void k(unsigned *out, const unsigned *in) {\n\
         \x20 out[threadIdx.x] = __future_bits(in[threadIdx.x], 4u) + at::native_shift(3u);\n\
         }",
    );
    let kernel = &file.kernels[0].analysis;
    assert_eq!(kernel.facts.not_understood, []);
    for name in ["__future_bits", "at::native_shift"] {
        assert!(
            kernel
                .facts
                .assumptions
                .iter()
                .any(|assumption| assumption.symbol.is_named(name)),
            "{name}: {:?}",
            kernel.facts.assumptions
        );
    }
    // What is not declared and cannot be known stays a loss, and so does what is handed a pointer.
    for call in ["mystery(in[0])", "__future_sum(in)"] {
        let text =
            format!("__global__ void k(unsigned *out, const unsigned *in) {{ out[0] = {call}; }}");
        let file = analyse(&text);
        assert_eq!(
            file.kernels[0].analysis.facts.not_understood.len(),
            1,
            "{call}"
        );
    }
}

#[test]
fn a_header_is_read_once_for_files_whose_other_macros_differ() {
    let common = "#ifndef COMMON_H\n#define COMMON_H\n#define TILE 8\n\
                  #ifdef WIDE\n__device__ float pick(const float *p, int i) { return p[2 * i]; }\n\
                  #else\n__device__ float pick(const float *p, int i) { return p[i]; }\n#endif\n#endif\n";
    let user = |own: &str, index: &str| {
        format!(
            "{own}\n#include \"common.h\"\n__global__ void k(float *out, const float *in) {{ \
             out[threadIdx.x] = pick(in, {index}); }}\n"
        )
    };
    let folder = Folder::new(&[
        ("common.h", common),
        ("a.cu", &user("#define UNRELATED 1", "threadIdx.x")),
        (
            "b.cu",
            &user("#define TIMES(x) * x", "threadIdx.x TIMES(TILE)"),
        ),
        ("c.cu", &user("#define WIDE", "threadIdx.x")),
        (
            "d.cu",
            &user("#define TILE 3\n#define WIDE 1", "threadIdx.x * TILE"),
        ),
    ]);
    let readings = || folder.engine.project().header_readings();
    let sectors = |name: &str| costs(&folder.analyse(name))[0].1;
    assert_eq!(sectors("a.cu"), Some(4.0));
    assert_eq!(readings(), (1, 0));
    assert_eq!(sectors("b.cu"), Some(32.0), "its macros and the header's");
    assert_eq!(readings(), (1, 1));
    assert_eq!(sectors("c.cu"), Some(8.0), "the header reads otherwise");
    assert_eq!(readings(), (2, 1));
    assert_eq!(sectors("d.cu"), Some(32.0), "the header's definition wins");
}

#[test]
fn what_is_kept_of_headers_is_bounded_by_what_their_trees_take() {
    // Few bytes of text and many nodes: each takes some megabytes of tree.
    let body = "x=x+x*x-x;".repeat(12_000);
    let headers = 24;
    let files: Vec<(String, String)> = (0..headers)
        .flat_map(|at| {
            let header = format!("__device__ int f{at}(int x) {{ {body} return x; }}\n");
            let user = format!(
                "#include \"h{at}.h\"\n__global__ void k(int *out) {{ out[threadIdx.x] = 0; }}\n"
            );
            [(format!("h{at}.h"), header), (format!("u{at}.cu"), user)]
        })
        .collect();
    let named: Vec<(&str, &str)> = files
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    let folder = Folder::new(&named);
    let mut most = 0;
    for at in 0..headers {
        assert_eq!(costs(&folder.analyse(&format!("u{at}.cu")))[0].1, Some(4.0));
        most = most.max(folder.engine.project().header_bytes());
    }
    assert_eq!(folder.engine.project().header_readings(), (headers, 0));
    assert!(most > 64 << 20, "enough was read to make room: {most}");
    assert!(most <= 96 << 20, "{most}");
}

#[test]
fn a_header_that_says_once_is_read_once() {
    let folder = Folder::new(&[
        (
            "types.h",
            "#pragma once\n#define STEP 4\ntypedef float value;\n",
        ),
        ("x.h", "#include \"types.h\"\n#define X 1\n"),
        ("y.h", "#include \"types.h\"\n#define Y 1\n"),
        (
            "a.cu",
            "#include \"x.h\"\n#include \"y.h\"\n\
             __global__ void k(value *out) { out[threadIdx.x * STEP] = X + Y; }\n",
        ),
    ]);
    assert_eq!(costs(&folder.analyse("a.cu"))[0].1, Some(16.0));
    assert_eq!(folder.engine.project().header_readings(), (3, 0));
}

#[test]
fn a_width_that_the_code_needs_and_only_the_build_gives_is_assumed() {
    let file = analyse(
        "#define JOIN(a, b) a##b\n#define MAKE(a, b) JOIN(a, b)\n\
         #if WIDTH == 1\ntypedef float float1_t;\n#define float_1 float\n#endif\n\
         #if WIDTH == 2\n#define float_2 float2\n#endif\n\
         typedef MAKE(float_, WIDTH) wide;\n\
         #if VERBOSE == 1\n#define LOUD\n#endif\n\
         #if LANES == 1\ntypedef float lane;\n#else\ntypedef MAKE(float, LANES) lane;\n#endif\n\
         __global__ void k(wide *out, lane *more) { out[threadIdx.x] = 0; more[threadIdx.x] = 0; }\n",
    );
    let sectors: Vec<_> = costs(&file).iter().map(|(_, cost)| *cost).collect();
    assert_eq!(sectors, [Some(4.0), Some(4.0)]);
    let assumed: Vec<&str> = file.kernels[0]
        .analysis
        .facts
        .assumptions
        .iter()
        .map(|assumption| assumption.symbol.kind())
        .collect();
    assert!(!assumed.contains(&"VERBOSE"), "{assumed:?}");
}

#[test]
fn a_file_that_is_included_is_read_as_its_outermost_includer_reads_it() {
    let folder = Folder::new(&[
        ("main.cu", "#define REAL float\n#include \"work.cu\"\n"),
        (
            "work.cu",
            "#include \"kernel.cu\"\nvoid go(REAL *a) { k<<<1, 64>>>(a); }\n",
        ),
        (
            "kernel.cu",
            "__global__ void k(REAL *a) { a[threadIdx.x] = 0; }\n",
        ),
    ]);
    for file in ["main.cu", "work.cu"] {
        folder.analyse(file);
    }
    assert_eq!(
        costs(&folder.analyse("kernel.cu")),
        [("a[threadIdx.x]".to_owned(), Some(4.0))]
    );
}

const CALLER: &str = "__device__ float weight(const float *table, int at);\n\
    __global__ void k(float *a) { a[threadIdx.x] = weight(a, threadIdx.x); }\n\
    void go(float *a) { k<<<1, 64>>>(a); }\n";
const WEIGHT: &str = "__device__ float weight(const float *table, int at) { return table[at * 32]; }\n\
    void max(int) {}\nint main() { weight(0, 0); return 0; }\n";

#[test]
fn a_function_of_another_file_of_the_program_is_read() {
    for other in ["weight.cu", "parts/weight.cu"] {
        let folder = Folder::new(&[("src/k.cu", CALLER), (&format!("src/{other}"), WEIGHT)]);
        let file = folder.analyse("src/k.cu");
        assert_eq!(
            costs(&file),
            [
                ("table[at * 32]".to_owned(), Some(32.0)),
                ("a[threadIdx.x]".to_owned(), Some(4.0)),
            ]
        );
        let assumed = &file.kernels[0].analysis.facts.assumptions;
        assert!(
            assumed
                .iter()
                .any(|a| a.symbol.is_named("weight.cu") && a.value == "linked with this file"),
            "{assumed:?}"
        );
    }
}

#[test]
fn a_file_that_is_included_after_all_is_not_said_to_be_linked() {
    let folder = Folder::new(&[("k.cu", CALLER), ("weight.cuh", WEIGHT)]);
    let linked = |file: &FileAnalysis| {
        let assumed = &file.kernels[0].analysis.facts.assumptions;
        assumed.iter().any(|a| a.symbol.is_named("weight.cuh"))
    };
    assert!(linked(&folder.analyse("k.cu")));
    let includes = format!("#include \"weight.cuh\"\n{CALLER}");
    fs::write(folder.root.path().join("k.cu"), includes).expect("written");
    let file = folder.analyse("k.cu");
    assert_eq!(costs(&file).len(), 2);
    assert!(!linked(&file));
}

#[test]
fn a_function_that_several_files_define_is_not_guessed() {
    let folder = Folder::new(&[("k.cu", CALLER), ("a.cu", WEIGHT), ("b.cu", WEIGHT)]);
    let file = folder.analyse("k.cu");
    let lost = &file.kernels[0].analysis.facts.not_understood;
    assert_eq!(lost.len(), 1);
    assert_eq!(lost[0].reason, Reason::UnreadFunction);
    // The nearest folder decides.
    let folder = Folder::new(&[("src/k.cu", CALLER), ("src/a.cu", WEIGHT), ("b.cu", WEIGHT)]);
    assert_eq!(costs(&folder.analyse("src/k.cu")).len(), 2);
}

#[test]
fn a_file_finds_the_host_program_that_includes_it() {
    let folder = Folder::new(&[
        (
            "host/main.c",
            "#define REAL float\n#include \"../kernels/k.h\"\n",
        ),
        (
            "kernels/k.h",
            "__global__ void k(REAL *a) { a[threadIdx.x] = 0; }\n",
        ),
    ]);
    assert_eq!(
        costs(&folder.analyse("kernels/k.h")),
        [("a[threadIdx.x]".to_owned(), Some(4.0))]
    );
}

#[test]
fn a_guarded_header_that_is_included_again_stays_read() {
    let folder = Folder::new(&[
        (
            "types.h",
            "#ifndef TYPES_H\n#define TYPES_H\ntypedef float value;\n#endif\n",
        ),
        ("other.h", "#include \"types.h\"\n"),
        (
            "a.cu",
            "#include \"types.h\"\n#include \"other.h\"\n\
             __global__ void k(value *out) { out[threadIdx.x * 2] = 1; }\n",
        ),
    ]);
    assert_eq!(costs(&folder.analyse("a.cu"))[0].1, Some(8.0));
}

#[test]
fn a_branch_that_only_includes_is_taken_for_headers_that_are_read() {
    let text = |header: &str, index: &str| {
        format!(
            "#ifdef CHECKED\n#include {header}\n#endif\n\
             __global__ void k(float *a) {{ a[threadIdx.x{index}] = 0; }}\n\
             void run(float *a) {{ k<<<8, 256>>>(a); }}\n"
        )
    };
    let own = text("\"own.h\"", " * OWN");
    let folder = Folder::new(&[("a.cu", own.as_str()), ("own.h", "#define OWN 1\n")]);
    let kernel = &folder.analyse("a.cu").kernels[0].analysis.facts;
    assert!(!kernel.accesses[0].exact(), "CHECKED is assumed");
    // So it is where names are defined beside them, or where only the build says which header it is.
    for (more, index) in [
        ("<random>\n#define WIDTH 4", " * WIDTH"),
        ("NAME(own.h)", ""),
    ] {
        let kernel = &analyse(&text(more, index)).kernels[0].analysis.facts;
        let assumed = kernel
            .assumptions
            .iter()
            .any(|one| one.symbol.is_named("CHECKED"));
        assert!(assumed, "{more}");
    }
    // Of the system's headers nothing is missed: nothing has to be assumed, and the figure is exact.
    let kernel = &analyse(&text("<random>", "")).kernels[0].analysis.facts;
    assert!(kernel.accesses[0].exact());
    assert!(
        kernel
            .assumptions
            .iter()
            .all(|one| !one.symbol.is_named("CHECKED"))
    );
}

#[test]
fn a_definition_that_is_assumed_matters_to_the_kernels_that_it_changes() {
    let header = "#if defined(WITH_JSON)\n#include \"json.h\"\n#elif defined(WITH_YAML)\n#include \"yaml.h\"\n#endif\n\
                  #if defined(WIDE)\n#define STEP 32\n#elif defined(NARROW)\n#define STEP 1\n#endif\n\
                  #if defined(LARGE)\n#define THREADS 256\n#elif defined(SMALL)\n#define THREADS 64\n#endif\n";
    let kernel = "#include \"config.h\"\n\
                  __global__ void apart(float *o, const float *a) { int i = threadIdx.x; o[i] = a[i * STEP]; }\n\
                  __global__ void alike(float *o, const float *a) { int i = threadIdx.x; o[i] = a[i]; }\n\
                  __global__ void launched(float *o, const float *a) { int i = threadIdx.x; o[i] = a[i]; }\n\
                  void run(float *o, float *a) { apart<<<4, 128>>>(o, a); alike<<<4, 128>>>(o, a); launched<<<4, THREADS>>>(o, a); }\n";
    let folder = Folder::new(&[
        ("config.h", header),
        ("json.h", "struct Json { int kind; };\n"),
        ("yaml.h", "struct Yaml { int kind; };\n"),
        ("a.cu", kernel),
    ]);
    let file = folder.analyse("a.cu");
    let exact = |at: usize| {
        let facts = &file.kernels[at].analysis.facts;
        let accesses = facts.accesses.iter();
        accesses
            .map(|access| access.certainty == Certainty::Exact)
            .collect::<Vec<_>>()
    };
    assert_eq!(exact(0), [false, false]);
    assert_eq!(exact(1), [true, true]);
    assert_eq!(exact(2), [false, false]);
    let named = |at: usize, name: &str| {
        let assumptions = &file.kernels[at].analysis.facts.assumptions;
        assumptions
            .iter()
            .any(|one| format!("{one:?}").contains(name))
    };
    assert!(named(0, "WIDE") && !named(1, "WIDE") && !named(1, "WITH_JSON"));
}
