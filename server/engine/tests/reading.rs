//! What is read besides the buffer: macros, conditionals, headers, compile commands, other files' launches.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use warplens_engine::settings::Settings;
use warplens_engine::{
    Cancel, Engine, FileAnalysis, Overrides, Project, Variants, language_by_content,
};
use warplens_hardware::Profiles;
use warplens_project::{DiskFiles, OpenFiles};
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

/// For each access of the first kernel: its text as the analysis shows it, and sectors or passes a request.
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
    let columns: Vec<u32> = facts
        .accesses
        .iter()
        .map(|access| access.site.column)
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
            .any(|a| a.symbol == "WIDE" && a.value == "not defined"),
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
    let alone = folder.analyse("kernel.h");
    assert!(!alone.kernels[0].analysis.facts.not_understood.is_empty());
    folder.analyse("main.cu");
    let file = folder.analyse("kernel.h");
    assert_eq!(costs(&file)[0].1, Some(8.0));
    assert_eq!(file.kernels[0].analysis.facts.launch.block, [64, 1, 1]);
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
        lost.reason.contains("X39") || lost.reason.contains("too much"),
        "{lost:?}"
    );
    assert_eq!(lost.site.line, 2);
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
    assert_eq!(file.kernels[0].analysis.facts.static_shared_bytes, 1024);
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
