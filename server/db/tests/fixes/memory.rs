//! Code actions on accesses of memory that are not offered: each a way in which they could change what a program means.

use std::path::Path;

use warplens_db::settings::Settings;
use warplens_db::{Engine, Overrides, PlacedFix};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

/// What is offered for a rule anywhere in a text.
fn offered(text: &str, path: &str, rule: &str) -> Vec<PlacedFix> {
    let path = Path::new(path);
    let document = Document::new(text, Language::from_path(path).expect("a known extension"));
    let settings = Settings {
        preview: true,
        ..Settings::default()
    };
    let all = 0..document.len();
    let engine = Engine::new(Profiles::builtin());
    let mut fixes = engine.fixes(&document, path, &settings, &Overrides::default(), all);
    fixes.retain(|fix| fix.rule == rule);
    fixes
}

fn edited(text: &str, fix: &PlacedFix) -> String {
    let mut edited = text.to_owned();
    for (range, new) in fix.edits.iter().rev() {
        edited.replace_range(range.clone(), new);
    }
    edited
}

/// Two results of the same loads; `before` and `after` stand around the kernel.
fn sums(before: &str, after: &str) -> String {
    format!(
        "{before}\n\
         // warplens: block=128 grid=2048\n\
         __global__ void k(float* a, const float* b, float* plus, float* minus) {{\n\
         \x20 int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
         \x20 plus[i] = a[i] + b[i];\n\
         \x20 minus[i] = a[i] - b[i] + plus[i];\n\
         }}\n\
         {after}\n"
    )
}

#[test]
fn pointers_are_restrict_in_every_declaration_and_const_where_they_are_only_read() {
    let text = sums(
        "__global__ void k(float* a, const float* b, float* plus, float* minus);",
        "void run(float* a, float* b, float* c, float* d) { k<<<2048, 128>>>(a, b, c, d); }",
    );
    let fixes = offered(&text, "k.cu", "mem/no-restrict");
    assert_eq!(fixes.len(), 1);
    let after = edited(&text, &fixes[0]);
    let head = "void k(const float* __restrict__ a, const float* __restrict__ b, \
                float* __restrict__ plus, float* __restrict__ minus)";
    assert_eq!(after.matches(head).count(), 2, "{after}");
    assert_eq!(offered(&after, "k.cu", "mem/no-restrict"), []);
}

#[test]
fn an_own_header_may_declare_the_kernel_so_nothing_becomes_const() {
    let text = sums(
        "#include \"kernels.h\"",
        "void run(float* a, float* b, float* c, float* d) { k<<<2048, 128>>>(a, b, c, d); }",
    );
    let fixes = offered(&text, "k.cu", "mem/no-restrict");
    assert_eq!(fixes.len(), 1);
    assert!(edited(&text, &fixes[0]).contains("void k(float* __restrict__ a, const float*"));
}

#[test]
fn arrays_that_a_launch_passes_twice_are_not_called_apart() {
    for launch in [
        "void run(float* a, float* b) { k<<<2048, 128>>>(a, b, a, b); }",
        "void run(float* a, float* b) { k<<<2048, 128>>>(a, b, a + 4, b + 4); }",
        "void run(float* a, float* b, float* d) { float* c = a; k<<<2048, 128>>>(a, b, c, d); }",
        "void run(float** p, int i) { k<<<2048, 128>>>(p[i], p[1 - i], p[2], p[3]); }",
    ] {
        assert_eq!(
            offered(&sums("", launch), "k.cu", "mem/no-restrict"),
            [],
            "{launch}"
        );
    }
}

#[test]
fn callers_that_are_not_seen_are_named() {
    let fixes = offered(&sums("", ""), "k.cu", "mem/no-restrict");
    assert_eq!(fixes.len(), 1);
    assert!(
        fixes[0].title.contains("callers not seen"),
        "{}",
        fixes[0].title
    );
    assert!(!fixes[0].preferred);
}

/// A loop with a barrier that loads the same word each time.
fn turns(head: &str, inside: &str) -> String {
    format!(
        "// warplens: block=64 grid=4096 n=16\n\
         __global__ void k(const float* __restrict__ in, float* __restrict__ out, int n) {{\n\
         \x20 __shared__ float own[64];\n\
         \x20 __shared__ float tile[64];\n\
         \x20 int lane = threadIdx.x;\n\
         \x20 own[lane] = in[blockIdx.x * 64 + lane];\n\
         \x20 __syncthreads();\n\
         \x20 float sum = 0.0f;\n\
         \x20 {head} {{\n\
         \x20   tile[lane] = in[k * 64 + lane];\n\
         \x20   __syncthreads();\n\
         \x20   {inside}\n\
         \x20   __syncthreads();\n\
         \x20 }}\n\
         \x20 out[blockIdx.x * 64 + lane] = sum;\n\
         }}\n"
    )
}

#[test]
fn a_load_moves_before_a_loop_that_runs_and_only_there() {
    let inside = "sum += own[63 - lane] * tile[lane ^ 1];";
    let text = turns("for (int k = 0; k < 16; k++)", inside);
    let fixes = offered(&text, "k.cu", "mem/loop-invariant-load");
    assert_eq!(fixes.len(), 1);
    let after = edited(&text, &fixes[0]);
    assert!(
        after.contains("const float own_value = own[63 - lane];\n  for (int"),
        "{after}"
    );
    assert!(after.contains("sum += own_value * tile"), "{after}");
    for (head, inside) in [
        ("for (int k = 0; k < n; k++)", inside),
        (
            "for (int k = 0; k < 16; k++)",
            "if (lane < 9) sum += own[63 - lane] * tile[lane ^ 1];",
        ),
        (
            "for (int k = 0; k < 16; k++)",
            "sum += own[63 - lane] * tile[lane ^ 1]; own[lane] = sum;",
        ),
        (
            "for (int k = 0; k < 16; k++)",
            "sum += own[63 - lane] * tile[lane ^ 1]; if (sum > 9) break;",
        ),
    ] {
        let text = turns(head, inside);
        assert_eq!(
            offered(&text, "k.cu", "mem/loop-invariant-load"),
            [],
            "{text}"
        );
    }
}

/// A walk down columns in square blocks; `extra` is in the kernel.
fn walk(extra: &str, launch: &str) -> String {
    format!(
        "// warplens: block=(16,16) grid=(128,128) n=2048\n\
         __global__ void k(const float* in, float* out, int n) {{\n\
         \x20 int row = blockIdx.x * blockDim.x + threadIdx.x;\n\
         \x20 int col = blockIdx.y * blockDim.y + threadIdx.y;\n\
         \x20 {extra}\n\
         \x20 out[row * n + col] = in[row * n + col] * 2.0f;\n\
         }}\n\
         {launch}\n"
    )
}

#[test]
fn axes_are_not_swapped_where_something_else_looks_at_them() {
    let rule = "mem/column-walk";
    let plain = "void run(float* a, float* b) { k<<<dim3(128, 128), dim3(16, 16)>>>(a, b, 2048); }";
    assert!(!offered(&walk("", plain), "k.cu", rule).is_empty());
    for (extra, launch) in [
        ("row += __shfl_sync(~0u, 0, threadIdx.y);", plain),
        ("col += other(row);", plain),
        ("dim3 own = threadIdx; row += own.x - own.x;", plain),
        (
            "",
            "void run(float* a, float* b) { k<<<dim3(9, 9), dim3(16, 16)>>>(a, b, 2048); \
             k<<<dim3(9, 9), dim3(32, 8)>>>(a, b, 2048); }",
        ),
        (
            "",
            "void run(void** args) { cudaLaunchKernel((void*)k, 9, 9, args, 0, 0); }",
        ),
    ] {
        let text = walk(extra, launch);
        assert_eq!(offered(&text, "k.cu", rule), [], "{text}");
    }
    let macros = format!("#define COLUMN threadIdx.y\n{}", walk("", plain));
    assert_eq!(offered(&macros, "k.cu", rule), []);
}
