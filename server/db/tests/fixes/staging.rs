//! Actions that stage accesses in shared memory or widen them, where they are not offered: each a way in which they could
//! change what a program means.

use std::path::Path;

use warplens_db::settings::Settings;
use warplens_db::{Engine, Overrides, PlacedFix};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

/// What is offered for a rule anywhere in a text, by a part of its title.
fn offered(text: &str, path: &str, rule: &str, title: &str) -> Vec<PlacedFix> {
    offered_on(None, text, path, rule, title)
}

/// The same on a GPU whose caches do not make up for what the text does.
fn offered_on(
    gpu: Option<&str>,
    text: &str,
    path: &str,
    rule: &str,
    title: &str,
) -> Vec<PlacedFix> {
    let path = Path::new(path);
    let document = Document::new(text, Language::from_path(path).expect("a known extension"));
    let settings = Settings {
        preview: true,
        gpu: gpu.map(str::to_owned),
        ..Settings::default()
    };
    let all = 0..document.len();
    let engine = Engine::new(Profiles::builtin());
    let mut fixes = engine.fixes(&document, path, &settings, &Overrides::default(), all);
    fixes.retain(|fix| fix.rule == rule && fix.title.contains(title));
    fixes
}

const SQUARE: &str =
    "void run(float* a, float* b) { k<<<dim3(128, 128), dim3(32, 32)>>>(a, b, 4096, 4096); }";

/// A transposition; `before` is over it, `body` stores.
fn turn(before: &str, body: &str, launch: &str) -> String {
    format!(
        "{before}\n\
         __global__ void k(const float* in, float* out, int w, int h) {{\n\
         \x20 int x = blockIdx.x * blockDim.x + threadIdx.x;\n\
         \x20 int y = blockIdx.y * blockDim.y + threadIdx.y;\n\
         \x20 {body}\n\
         }}\n\
         {launch}\n"
    )
}

#[test]
fn a_transposition_is_staged_and_nothing_that_other_threads_cannot_do_instead() {
    let staged = |text: &str| offered(text, "k.cu", "mem/column-walk", "Stage");
    let plain = "if (x < w && y < h) out[x * h + y] = in[y * w + x];";
    let fixes = staged(&turn("", plain, SQUARE));
    assert_eq!(fixes.len(), 1);
    assert!(fixes[0].preferred, "{}", fixes[0].title);
    for (before, body, launch) in [
        // Another block.
        (
            "",
            plain,
            "void run(float* a, float* b) { k<<<dim3(128, 128), dim3(32, 32)>>>(a, b, 4096, 4096); \
             k<<<dim3(128, 512), dim3(32, 8)>>>(a, b, 4096, 4096); }",
        ),
        (
            "",
            plain,
            "void run(float* a, float* b) { k<<<dim3(128, 512), dim3(32, 8)>>>(a, b, 4096, 4096); }",
        ),
        // Who launches it is not seen.
        (
            "",
            plain,
            "void run(float* a, float* b) { k<<<dim3(128, 128), dim3(32, 32)>>>(a, b, 4096, 4096); go(k); }",
        ),
        // Coordinates out of a macro.
        (
            "#define X (blockIdx.x * blockDim.x + threadIdx.x)",
            "if (X < w && y < h) out[X * h + y] = in[y * w + X];",
            SQUARE,
        ),
        // The subscript, or what it depends on, is data, comes of a function or changes.
        (
            "",
            "int to = (int)in[x]; if (x < w && y < h) out[x * h + y + to] = in[y * w + x];",
            SQUARE,
        ),
        (
            "__device__ int at(int x, int y, int h) { return x * h + y; }",
            "if (x < w && y < h) out[at(x, y, h)] = in[y * w + x];",
            SQUARE,
        ),
        (
            "",
            "if (x > 9) x = 9; if (x < w && y < h) out[x * h + y] = in[y * w + x];",
            SQUARE,
        ),
        (
            "",
            "if (in[y * w + x] > 0.0f) out[x * h + y] = in[y * w + x];",
            SQUARE,
        ),
        // Something comes behind it, or it is read as well.
        (
            "",
            "out[x * h + y] = in[y * w + x]; if (x == 0) out[y] = 1.0f;",
            SQUARE,
        ),
        ("", "out[x * h + y] += in[y * w + x];", SQUARE),
        // Threads have met already, or do not all come.
        (
            "",
            "__shared__ float s[256]; s[threadIdx.x] = in[y * w + x]; __syncthreads(); out[x * h + y] = s[threadIdx.y];",
            SQUARE,
        ),
        (
            "",
            "if (x < w) { if (y >= h) return; out[x * h + y] = in[y * w + x]; }",
            SQUARE,
        ),
        (
            "",
            "for (int i = 0; i < 2; i++) out[x * h + y] = in[y * w + x];",
            SQUARE,
        ),
        (
            "",
            "if (x < w) out[x * h + y] = in[y * w + x]; else out[0] = 0.0f;",
            SQUARE,
        ),
    ] {
        let text = turn(before, body, launch);
        assert_eq!(staged(&text), [], "{text}");
    }
}

#[test]
fn a_launch_that_is_not_seen_is_named() {
    let text = turn(
        "// warplens: block=(32,32) grid=(128,128) w=4096 h=4096",
        "if (x < w && y < h) out[x * h + y] = in[y * w + x];",
        "",
    );
    let fixes = offered(&text, "k.cu", "mem/column-walk", "Stage");
    assert_eq!(fixes.len(), 1);
    assert!(fixes[0].title.contains("blocks must be 32x32"));
    assert!(!fixes[0].preferred);
}

/// Sums of four neighbours; `a` to `d` are what is loaded.
fn fours(head: &str, body: &str, host: &str) -> String {
    format!(
        "__global__ void k({head} v, float* out, int n, int s) {{\n\
         \x20 int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
         {body}\n\
         }}\n\
         void run(float* v, float* out, int n) {{\n  {host}\n  k<<<4096, 256>>>(v, out, 1048576, 4);\n}}\n"
    )
}

#[test]
fn four_loads_become_one_where_they_begin_on_a_boundary_whatever_the_arguments() {
    let widened =
        |text: &str| offered_on(Some("gtx-280"), text, "k.cu", "mem/narrow-access", "float4");
    let own = "cudaMalloc(&v, n);";
    let plain = "  out[i] = v[4 * i] * v[4 * i + 1] + v[4 * i + 2] * v[4 * i + 3];";
    let fixes = widened(&fours("const float*", plain, own));
    assert_eq!(fixes.len(), 1);
    assert!(fixes[0].preferred, "{}", fixes[0].title);
    // An array that comes from elsewhere may begin anywhere.
    for host in ["", "cudaMalloc(&v, n); v += 1;", "v = pool(n);"] {
        let fixes = widened(&fours("const float*", plain, host));
        assert_eq!(fixes.len(), 1, "{host}");
        assert!(
            fixes[0]
                .title
                .contains("callers must align `v` to 16 bytes"),
            "{}",
            fixes[0].title
        );
        assert!(!fixes[0].preferred);
    }
    for (head, body) in [
        // A boundary for this argument alone.
        (
            "const float*",
            "  out[i] = v[s * i] * v[s * i + 1] + v[s * i + 2] * v[s * i + 3];",
        ),
        // Not evaluated by every thread.
        (
            "const float*",
            "  out[i] = i < n ? v[4 * i] * v[4 * i + 1] + v[4 * i + 2] * v[4 * i + 3] : 0.0f;",
        ),
        (
            "const float*",
            "  float a = v[4 * i] + v[4 * i + 1];\n  if (a > 0.0f) a += v[4 * i + 2] + v[4 * i + 3];\n  out[i] = a;",
        ),
        // A store between them may change them.
        (
            "float*",
            "  float a = v[4 * i] + v[4 * i + 1];\n  out[i] = a;\n  out[i + n] = a + v[4 * i + 2] + v[4 * i + 3];",
        ),
        ("const volatile float*", plain),
        // The index moves between them.
        (
            "const float*",
            "  int at = 4 * i;\n  float a = v[at] * v[at + 1];\n  at = s;\n  out[i] = a + v[at + 2] * v[at + 3];",
        ),
    ] {
        let text = fours(head, body, own);
        assert_eq!(widened(&text), [], "{text}");
    }
}

#[test]
fn stores_become_one_where_nothing_reads_between_them() {
    let widened = |text: &str| offered(text, "k.cu", "mem/narrow-access", "Store");
    let own = "cudaMalloc(&v, n); cudaMalloc(&out, n);";
    let rows = |body: &str| {
        let head =
            "  float a = v[i];\n  for (int r = 0; r < 8; r++) {\n  int at = (8 * i + r) * 4;";
        fours("const float*", &format!("{head}\n  {body}\n  }}"), own)
    };
    let plain =
        "out[at] = a;\n  out[at + 1] = a + 1.0f;\n  out[at + 2] = 2.0f;\n  out[at + 3] = -a;";
    let fixes = widened(&rows(plain));
    assert_eq!(fixes.len(), 1);
    for body in [
        "out[at] = 1.0f;\n  out[at + 1] = v[i];\n  out[at + 2] = 2.0f;\n  out[at + 3] = 3.0f;",
        "out[at] = 1.0f;\n  out[at + 1] = out[at] + 1.0f;\n  out[at + 2] = 2.0f;\n  out[at + 3] = 3.0f;",
        "out[at] = a;\n  out[at + 1] = a;\n  a += v[i + n];\n  out[at + 2] = a;\n  out[at + 3] = a;",
    ] {
        let text = rows(body);
        assert_eq!(widened(&text), [], "{text}");
    }
}

/// A wide blur; `load` is what it adds, `guard` what it asks for.
fn blur(head: &str, guard: &str, load: &str, launch: &str) -> String {
    format!(
        "__global__ void blurred(const float* {head} in, float* out, int w, int h) {{\n\
         \x20 int x = blockIdx.x * blockDim.x + threadIdx.x;\n\
         \x20 int y = blockIdx.y * blockDim.y + threadIdx.y;\n\
         \x20 if ({guard}) return;\n\
         \x20 float sum = 0.0f;\n\
         \x20 for (int j = -4; j <= 4; j++)\n\
         \x20   for (int k = -4; k <= 4; k++) sum += {load};\n\
         \x20 out[y * w + x] = sum;\n\
         }}\n\
         {launch}\n"
    )
}

#[test]
fn a_stencil_is_staged_and_nothing_that_is_not_one() {
    let staged = |text: &str| {
        offered_on(
            Some("gtx-280"),
            text,
            "k.cu",
            "mem/redundant-global",
            "Stage",
        )
    };
    let guard = "x < 4 || y < 4 || x >= w - 4 || y >= h - 4";
    let load = "in[(y + j) * w + x + k]";
    let launch = "void run(float* a, float* b) { blurred<<<dim3(128, 128), dim3(16, 16)>>>(a, b, 2048, 2048); }";
    assert_eq!(staged(&blur("", guard, load, launch)).len(), 1);
    for (guard, load, launch) in [
        // Borders that the loads themselves look at.
        (
            guard,
            "(x + k < w ? in[(y + j) * w + x + k] : 0.0f)",
            launch,
        ),
        // Conditions on data.
        ("in[y * w + x] < 0.0f", load, launch),
        ("(x & 1) || y < 4 || y >= h - 4 || x >= w - 4", load, launch),
        // Steps that are not one.
        (guard, "in[(y + j) * w + 2 * x + k]", launch),
        (guard, "in[(y + j * k) * w + x]", launch),
        // Blocks of another shape, or an unseen launch.
        (
            guard,
            load,
            "void run(float* a, float* b) { blurred<<<dim3(128, 128), dim3(16, 16)>>>(a, b, 2048, 2048); \
             blurred<<<dim3(128, 256), dim3(16, 8)>>>(a, b, 2048, 2048); }",
        ),
        (
            guard,
            load,
            "void run(float* a, float* b) { blurred<<<dim3(128, 128), dim3(16, 16)>>>(a, b, 2048, 2048); go(blurred); }",
        ),
    ] {
        let text = blur("", guard, load, launch);
        assert_eq!(staged(&text), [], "{text}");
    }
}

/// A structure of two words; `before` is over the kernel, `body` takes it.
fn pair(definition: &str, body: &str, host: &str) -> String {
    format!(
        "{definition}\n\
         __global__ void taken(const Pair* p, float* out, int n) {{\n\
         \x20 int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
         \x20 {body}\n\
         }}\n\
         void run(Pair* p, float* out) {{ {host}taken<<<4096, 256>>>(p, out, 1048576); }}\n"
    )
}

#[test]
fn a_structure_is_loaded_whole_where_nothing_hangs_on_its_alignment() {
    let whole = |text: &str| offered_on(Some("geforce-8800-gt"), text, "k.cu", "mem/aos", "whole");
    let own = "struct Pair { float a; float b; };";
    let plain = "out[i] = p[i].a * p[i].b;";
    let fixes = whole(&pair(own, plain, ""));
    assert_eq!(fixes.len(), 1);
    for (definition, body, host) in [
        // Its place in other structures and its size would change.
        (
            "struct Pair { float a; float b; }; struct Two { int first; Pair second; };",
            plain,
            "",
        ),
        ("struct Pair { float a; float b; float c; };", plain, ""),
        ("struct Pair { float a; int b; };", plain, ""),
        (
            "struct __attribute__((packed)) Pair { float a; float b; };",
            plain,
            "",
        ),
        (
            "#pragma pack(4)\nstruct Pair { float a; float b; };",
            plain,
            "",
        ),
        ("#include \"pair.h\"", plain, ""),
        // Bytes that are taken for it may begin anywhere.
        (own, plain, "char* raw = bytes(); p = (Pair*)(raw + 4); "),
        (own, plain, "p = reinterpret_cast<Pair*>(out + 1); "),
        // Not every thread takes it, or it changes in between.
        (own, "out[i] = i < n ? p[i].a * p[i].b : 0.0f;", ""),
        (
            own,
            "float a = p[i].a; out[i] = a; out[i + n] = a * p[i].b;",
            "",
        ),
        (own, "float a = p[i].a; i = n - i; out[i] = a * p[i].b;", ""),
    ] {
        let text = pair(definition, body, host);
        assert_eq!(whole(&text), [], "{text}");
    }
}
