//! Code actions about launches, launch bounds, shared and local memory: where they must not be offered.

use std::path::Path;

use warplens_db::settings::Settings;
use warplens_db::{Engine, Overrides, PlacedFix};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

/// The actions for a rule anywhere in a text.
fn offered(text: &str, rule: &str) -> Vec<PlacedFix> {
    let engine = Engine::new(Profiles::builtin());
    let document = Document::new(text, Language::Cuda);
    let settings = Settings {
        preview: true,
        ..Settings::default()
    };
    let (path, overrides) = (Path::new("kernel.cu"), Overrides::default());
    let all = 0..document.len();
    let mut found = engine.fixes(&document, path, &settings, &overrides, all);
    found.retain(|fix| fix.rule == rule);
    found
}

#[track_caller]
fn refused(rule: &str, traps: &[(&str, String)]) {
    for (what, text) in traps {
        let found = offered(text, rule);
        assert!(found.is_empty(), "{what}: {found:#?}\n{text}");
    }
}

/// A guarded kernel and a launch with 100 threads.
fn rounded(body: &str, host: &str) -> String {
    format!(
        "__global__ void k(float* data, int n) {{\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    {body}\n}}\n\
         void host(float* data, int n) {{\n    {host}\n}}\n"
    )
}

const GUARDED: &str = "if (i < n) data[i] = 2.0f * data[i];";
const LAUNCH: &str = "k<<<(n + 99) / 100, 100>>>(data, n);";

#[test]
fn a_block_is_rounded_up_only_where_more_threads_do_no_harm() {
    const RULE: &str = "launch/not-warp-multiple";
    assert_eq!(offered(&rounded(GUARDED, LAUNCH), RULE).len(), 1);
    refused(
        RULE,
        &[
            ("no guard", rounded("data[i] = 2.0f * data[i];", LAUNCH)),
            (
                "the guard is of something else",
                rounded("if (data[i] < n) data[i] = 2.0f;", LAUNCH),
            ),
            (
                "the thread's number is used",
                rounded("if (i < n) data[i] = 2.0f * threadIdx.x;", LAUNCH),
            ),
            (
                "the block's size is used",
                rounded("if (i < n) data[i] = blockDim.x;", LAUNCH),
            ),
            (
                "threads share memory",
                rounded(
                    "__shared__ float s[100]; if (i < n) data[i] = 2.0f * data[i];",
                    LAUNCH,
                ),
            ),
            (
                "lanes talk to each other",
                rounded(
                    "if (i < n) data[i] = __shfl_down_sync(~0u, data[i], 1);",
                    LAUNCH,
                ),
            ),
            (
                "a function is not seen",
                format!(
                    "__device__ float f(float);\n{}",
                    rounded("if (i < n) data[i] = f(data[i]);", LAUNCH)
                ),
            ),
            (
                "memory is read in front of the guard",
                rounded("float x = data[i]; if (i < n) data[i] = 2.0f * x;", LAUNCH),
            ),
            (
                "something is behind the guard",
                rounded("if (i < n) data[i] = 2.0f; data[0] = 1.0f;", LAUNCH),
            ),
            (
                "the grid is not computed from the block",
                rounded(GUARDED, "k<<<64, 100>>>(data, n);"),
            ),
            (
                "the grid covers another number",
                rounded(GUARDED, "k<<<(n + 99) / 100, 100>>>(data, 2 * n);"),
            ),
            (
                "the grid is rounded down",
                rounded(GUARDED, "k<<<n / 100, 100>>>(data, n);"),
            ),
            (
                "the width is used besides",
                rounded(
                    GUARDED,
                    "int b = 100; data += b; k<<<(n + b - 1) / b, b>>>(data, n);",
                ),
            ),
            (
                "a macro that a kernel uses",
                format!(
                    "#define B 100\n{}",
                    rounded(
                        "if (i < n) data[i] = B;",
                        "k<<<(n + B - 1) / B, B>>>(data, n);"
                    )
                ),
            ),
            (
                "a directive is no launch",
                format!(
                    "// warplens: block=(100) grid=(64) n=6400\n{}",
                    rounded(GUARDED, "")
                ),
            ),
        ],
    );
}

/// A kernel of many registers.
fn rotating(head: &str, host: &str) -> String {
    format!(
        "{head}(const float* in, float* out, int n) {{\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    \
         float v[48];\n    for (int k = 0; k < 48; ++k) v[k] = in[i + k * n];\n    \
         for (int k = 0; k < 48; ++k) out[i + k * n] = v[(k * 7 + 5) % 48] * v[47 - k];\n}}\n{host}\n"
    )
}

#[test]
fn a_block_is_promised_only_where_every_launch_is_seen() {
    const RULE: &str = "occ/no-launch-bounds";
    const HEAD: &str = "__global__ void rotate";
    let launch =
        |body: &str| format!("void host(const float* in, float* out, int n, int b) {{ {body} }}");
    let one = launch("rotate<<<64, 1024>>>(in, out, 65536);");
    assert_eq!(offered(&rotating(HEAD, &one), RULE).len(), 1);
    refused(
        RULE,
        &[
            (
                "its address leaves",
                rotating(
                    HEAD,
                    &launch("rotate<<<64, 1024>>>(in, out, 65536); use((void*)rotate);"),
                ),
            ),
            (
                "another launch is not known",
                rotating(
                    HEAD,
                    &launch("rotate<<<64, 1024>>>(in, out, 65536); rotate<<<64, b>>>(in, out, n);"),
                ),
            ),
            (
                "a macro names it",
                format!("#define RUN(b) rotate<<<64, b>>>\n{}", rotating(HEAD, &one)),
            ),
            ("no launch", rotating(HEAD, "")),
        ],
    );
}

/// A tile read by columns.
fn tiled(declaration: &str, write: &str, read: &str) -> String {
    format!(
        "// warplens: block=(32,8) grid=(64,64) n=2048\n\
         __global__ void k(const float* in, float* out, int n) {{\n    __shared__ float {declaration};\n    \
         int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;\n    \
         for (int j = 0; j < 32; j += 8) {write} = in[(y + j) * n + x];\n    __syncthreads();\n    \
         for (int j = 0; j < 32; j += 8) out[(y + j) * n + x] = {read};\n}}\n"
    )
}

#[test]
fn a_tile_is_swizzled_only_where_every_use_is_within_it() {
    let swizzles = |text: &str| {
        let mut found = offered(text, "smem/bank-conflict");
        found.retain(|fix| fix.title.starts_with("Swizzle"));
        found.len()
    };
    let write = "tile[threadIdx.y + j][threadIdx.x]";
    let read = "tile[threadIdx.x][threadIdx.y + j]";
    assert_eq!(swizzles(&tiled("tile[32][32]", write, read)), 1);
    for (what, text) in [
        ("no square", tiled("tile[32][64]", write, read)),
        (
            "no power of two",
            tiled("tile[40][40]", write, read).replace("threadIdx.x]", "threadIdx.x * 8 / 8]"),
        ),
        (
            "an address leaves",
            tiled(
                "tile[32][32]",
                write,
                "*(&tile[threadIdx.x][0] + threadIdx.y + j)",
            ),
        ),
        (
            "a row leaves",
            tiled(
                "tile[32][32]",
                write,
                "*(tile[threadIdx.x] + threadIdx.y + j)",
            ),
        ),
        (
            "beyond the row",
            tiled(
                "tile[32][32]",
                write,
                "tile[threadIdx.x][threadIdx.y + j] + tile[0][40]",
            ),
        ),
    ] {
        assert_eq!(swizzles(&text), 0, "{what}:\n{text}");
    }
}

#[test]
fn a_padding_stays_where_it_is_needed_or_told_elsewhere() {
    const RULE: &str = "smem/over-pad";
    let text = |extra: &str| {
        format!(
            "// warplens: block=(32,8) grid=(64,256) n=2048\n\
             __global__ void k(const float* in, float* out, int n) {{\n    __shared__ float tile[8][33];\n    \
             int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;\n    \
             tile[threadIdx.y][threadIdx.x] = in[y * n + x];\n    __syncthreads();\n    {extra}\n    \
             out[y * n + x] = tile[7 - threadIdx.y][threadIdx.x];\n}}\n"
        )
    };
    assert_eq!(offered(&text(""), RULE).len(), 1);
    refused(
        RULE,
        &[
            ("its last element is read", text("out[0] = tile[0][32];")),
            (
                "a column is read",
                text("out[0] = tile[threadIdx.x % 8][threadIdx.y];"),
            ),
            (
                "its size is told",
                text("if (n == 7) out[0] = sizeof(tile);"),
            ),
            (
                "its address leaves",
                text("float* p = &tile[0][0]; out[0] = p[n];"),
            ),
        ],
    );
}

#[test]
fn a_loop_is_unrolled_only_where_that_leaves_no_local_memory() {
    const RULE: &str = "local/dynamic-array";
    // The subscript depends on data: no loop makes it known.
    refused(
        RULE,
        &[(
            "a subscript of data",
            "// warplens: block=(256) grid=(864) n=64\n\
             __global__ void k(const int* in, int* out, int n) {\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    \
             int bins[8] = {0};\n    for (int k = 0; k < n; ++k) bins[in[i + k * 221184] & 7] += 1;\n    \
             for (int k = 0; k < 8; ++k) out[i + k * 221184] = bins[k];\n}\n"
                .to_owned(),
        )],
    );
}
