//! Code actions on calls and on copies into shared memory that are not offered: each a way in which they could change what
//! a program means or break its build.

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

// ---- call/not-inlined --------------------------------------------------------------------------

/// A kernel that calls `f` in a loop, behind something.
fn calling(before: &str) -> String {
    format!(
        "{before}\n\
         // warplens: block=256 grid=1728 n=256\n\
         __global__ void k(const float* in, float* out, int n) {{\n\
         \x20 int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
         \x20 float y = in[i];\n\
         \x20 for (int k = 0; k < n; k++) y = f(y);\n\
         \x20 out[i] = y;\n\
         }}\n"
    )
}

#[test]
fn a_function_that_is_kept_apart_is_put_in_place() {
    let text = calling("__device__ __noinline__ float f(float x) { return x * 0.5f + 1.0f; }");
    let fixes = offered(&text, "k.cu", "call/not-inlined");
    assert_eq!(fixes.len(), 1, "{fixes:?}");
    assert!(fixes[0].title.starts_with("Put `f` in place of its calls"));
    let after = edited(&text, &fixes[0]);
    assert!(
        after.contains("__device__ __forceinline__ float f("),
        "{after}"
    );
    assert_eq!(offered(&after, "k.cu", "call/not-inlined"), []);
}

#[test]
fn what_cannot_be_put_in_place_or_is_said_elsewhere_is_left() {
    let refused = [
        // Another declaration would say the opposite.
        "__device__ __noinline__ float f(float x);\n\
         __device__ __noinline__ float f(float x) { return x * 0.5f + 1.0f; }",
        // The word comes from a macro.
        "#define APART __noinline__\n\
         __device__ APART float f(float x) { return x * 0.5f + 1.0f; }",
        // The function does.
        "#define f(x) apart(x)\n\
         __device__ __noinline__ float apart(float x) { return x * 0.5f + 1.0f; }",
        // It calls itself.
        "__device__ float f(float x) { return x < 1.0f ? x : f(x * 0.5f) + 1.0f; }",
        // Two of one name.
        "__device__ __noinline__ float f(float x) { return x * 0.5f + 1.0f; }\n\
         __device__ __noinline__ double f(double x) { return x * 0.5 + 1.0; }",
        // Data choose it.
        "__device__ float a(float x) { return x * 0.5f + 1.0f; }\n\
         __device__ float b(float x) { return x * 0.25f - 1.0f; }\n\
         __device__ float (*table[2])(float) = {a, b};\n\
         __device__ float f(float x) { return table[threadIdx.x & 1](x); }",
    ];
    for before in refused {
        let text = calling(before);
        assert_eq!(offered(&text, "k.cu", "call/not-inlined"), [], "{text}");
    }
}

// ---- mem/async-copy ----------------------------------------------------------------------------

/// A kernel that copies tile after tile: what is before it, instead of the copy, and between it and the barrier.
fn tiles(before: &str, copy: &str, between: &str) -> String {
    format!(
        "{before}\n\
         // warplens: block=256 grid=1728 tiles=64 n=28311552\n\
         __global__ void k(const float* in, float* out, int tiles, int n) {{\n\
         \x20 __shared__ float tile[256];\n\
         \x20 float sum = 0.0f;\n\
         \x20 for (int t = 0; t < tiles; t++) {{\n\
         \x20   int i = (blockIdx.x * tiles + t) * 256 + threadIdx.x;\n\
         \x20   {copy}\n\
         \x20   {between}\n\
         \x20   __syncthreads();\n\
         \x20   sum += tile[255 - threadIdx.x] * tile[threadIdx.x ^ 1];\n\
         \x20   __syncthreads();\n\
         \x20 }}\n\
         \x20 out[blockIdx.x * 256 + threadIdx.x] = sum;\n\
         }}\n"
    )
}

const COPY: &str = "tile[threadIdx.x] = in[i];";

#[test]
fn a_copy_goes_past_the_registers_and_is_waited_for() {
    let text = tiles("#include <cstdio>", COPY, "");
    let fixes = offered(&text, "k.cu", "mem/async-copy");
    assert_eq!(fixes.len(), 1, "{fixes:?}");
    let after = edited(&text, &fixes[0]);
    for part in [
        "#include <cstdio>\n#include <cuda_pipeline.h>\n",
        "__pipeline_memcpy_async(&tile[threadIdx.x], &in[i], sizeof(tile[threadIdx.x]));",
        "    __pipeline_commit();\n    __pipeline_wait_prior(0);\n    __syncthreads();",
    ] {
        assert!(after.contains(part), "{after}");
    }
    assert_eq!(after.matches("__pipeline_commit").count(), 1);
    assert_eq!(offered(&after, "k.cu", "mem/async-copy"), []);
}

#[test]
fn the_header_is_named_once() {
    let text = tiles("#include <cuda_pipeline.h>", COPY, "");
    let fixes = offered(&text, "k.cu", "mem/async-copy");
    assert_eq!(
        edited(&text, &fixes[0]).matches("cuda_pipeline.h").count(),
        1
    );
}

#[test]
fn a_copy_that_something_else_needs_stays() {
    let refused = [
        // Read before the barrier.
        (COPY, "sum += tile[threadIdx.x];"),
        // Another name for the tile, read before the barrier.
        (
            COPY,
            "const float* other = tile; sum += other[threadIdx.x];",
        ),
        // The source may change before it is read.
        (COPY, "out[i] = 1.0f;"),
        // A way past the barrier.
        (COPY, "if (n == t) break;"),
        (COPY, "if (n == t) return;"),
        // A function may do anything.
        (COPY, "helper();"),
        // The barrier that comes next is one side's alone.
        (COPY, "if (n > 5) { __syncthreads(); }"),
        // A zero where the array ends: the value is chosen.
        ("tile[threadIdx.x] = i < n ? in[i] : 0.0f;", ""),
        // Subscripts that change something are written twice.
        ("int j = threadIdx.x; tile[j++] = in[i];", ""),
        // An order of one's own is kept.
        (COPY, "__pipeline_commit();"),
    ];
    for (copy, between) in refused {
        let text = tiles("__device__ void helper() {}", copy, between);
        assert_eq!(offered(&text, "k.cu", "mem/async-copy"), [], "{text}");
    }
}

#[test]
fn an_element_whose_size_the_template_says_stays() {
    let text = tiles("template <class T>", COPY, "")
        .replace("float", "T")
        .replace("0.0f", "T(0)");
    let launched = format!(
        "{text}\nvoid run(float* a, float* b) {{ k<float><<<1728, 256>>>(a, b, 64, 28311552); }}\n"
    );
    let text = launched.replace("// warplens: block=256 grid=1728 tiles=64 n=28311552\n", "");
    assert_eq!(offered(&text, "k.cu", "mem/async-copy"), [], "{text}");
}

#[test]
fn opencl_and_hip_have_no_such_copy() {
    let text = tiles("", COPY, "");
    assert_eq!(offered(&text, "k.hip", "mem/async-copy"), []);
    let text = tiles("#include <hip/hip_runtime.h>", COPY, "");
    assert_eq!(offered(&text, "k.cu", "mem/async-copy"), []);
}
