//! Host code with the launches that must be read from it.
//!
//! Each case is host code and the expected sites, one a line: `kernel<template>[grid][block] shared (arguments)`.
//! `?` represents what must not be known.

mod common;

use std::sync::Arc;

use common::expanded;
use warplens_hir::{Unit, outline};
use warplens_host::{HeaderNames, LaunchSite, launch_sites};
use warplens_ir::Type;

fn sites(text: &str) -> Vec<LaunchSite> {
    let parsed = expanded(text);
    let items = outline(&parsed);
    let unit = Unit::new(&parsed, &items, None, false);
    launch_sites(&parsed, &items, &unit, &HeaderNames::default())
}

fn spelled(site: &LaunchSite) -> String {
    let extents = |extents: Option<[u64; 3]>| match extents {
        None => "?".to_owned(),
        Some([x, 1, 1]) => x.to_string(),
        Some([x, y, 1]) => format!("{x},{y}"),
        Some([x, y, z]) => format!("{x},{y},{z}"),
    };
    let mut text = site.kernel.clone();
    if !site.template_args.is_empty() {
        let all: Vec<String> = site
            .template_args
            .iter()
            .map(|bound| {
                bound
                    .as_ref()
                    .map_or("?".to_owned(), warplens_ir::Bound::spelled)
            })
            .collect();
        text.push_str(&["<", &all.join(","), ">"].concat());
    }
    text.push_str(&["[", &extents(site.grid), "][", &extents(site.block), "]"].concat());
    match site.dynamic_shared_bytes {
        Some(0) => {}
        Some(bytes) => text.push_str(&[" ", &bytes.to_string(), "B"].concat()),
        None => text.push_str(" ?B"),
    }
    if !site.arguments.is_empty() {
        let all: Vec<String> = site
            .arguments
            .iter()
            .map(|value| value.map_or("?".to_owned(), |value| value.to_string()))
            .collect();
        text.push_str(&["(", &all.join(","), ")"].concat());
    }
    text
}

/// Checks every case of a table and tells all that differ.
fn check(cases: &[(&str, &[&str])]) {
    let mut wrong = Vec::new();
    for (host, expected) in cases {
        let found: Vec<String> = sites(host).iter().map(spelled).collect();
        if found != *expected {
            wrong.push(format!(
                "{host}\n  expected {expected:?}\n  found    {found:?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn configurations() {
    check(&[
        ("void f() { k<<<4, 256>>>(); }", &["k[4][256]"]),
        ("void f() { k<<<4, 256, 1024>>>(); }", &["k[4][256] 1024B"]),
        ("void f(int s) { k<<<4, 256, s>>>(); }", &["k[4][256] ?B"]),
        ("void f(int b) { k<<<4, b>>>(b, 7); }", &["k[4][?](?,7)"]),
        (
            "void f() { dim3 g(2, 3), b(8, 8, 4); k<<<g, b>>>(); }",
            &["k[2,3][8,8,4]"],
        ),
        (
            "void f() { dim3 b; b.x = 32; b.y = 4; k<<<1, b>>>(); }",
            &["k[1][32,4]"],
        ),
        (
            "void f(int n) { dim3 b(32); b.y = n; k<<<1, b>>>(); }",
            &["k[1][?]"],
        ),
        (
            "void f() { dim3 b = {16, 16}, g{3}; k<<<g, b>>>(); }",
            &["k[3][16,16]"],
        ),
        (
            "void f() { dim3 b = 64; k<<<dim3(2, 2), b>>>(); }",
            &["k[2,2][64]"],
        ),
        (
            "void f() { k<<<dim3{5}, dim3{4, 2, 1}>>>(); }",
            &["k[5][4,2]"],
        ),
        (
            "void f() { auto b = dim3(4, 4); k<<<1, b>>>(); }",
            &["k[1][4,4]"],
        ),
        (
            "enum { TILE = 16 }; void f() { dim3 b(TILE, TILE); k<<<1, b>>>(); }",
            &["k[1][16,16]"],
        ),
        (
            "void f() { const int T = 8; dim3 b(T, T); k<<<1, b>>>(); }",
            &["k[1][8,8]"],
        ),
        (
            "void f() { dim3 b(8, 8); dim3 c = b; c.y = 2; k<<<b, c>>>(); }",
            &["k[8,8][8,2]"],
        ),
        (
            "void f() { int n = 1000, b = 256; k<<<(n + b - 1) / b, b>>>(n); }",
            &["k[4][256](1000)"],
        ),
        (
            "void f() { int n = 1000; k<<<(int)ceil(n / 256.0), 256>>>(); }",
            &["k[4][256]"],
        ),
        (
            "void f() { int n = 1000, B = 128; k<<<ceil((float)n / (float)B), B>>>(); }",
            &["k[8][128]"],
        ),
        (
            "void f() { int n = 1000; k<<<n / 256 + (n % 256 != 0), 256>>>(); }",
            &["k[4][256]"],
        ),
        (
            "void f() { int n = 100; k<<<1, n > 64 ? 64 : n>>>(); }",
            &["k[1][64]"],
        ),
        (
            "void f() { int n = 100; k<<<std::max(n / 256, 1), std::min(n, 64)>>>(); }",
            &["k[1][64]"],
        ),
        (
            "void f(int n) { k<<<1, std::min(n, 64)>>>(); }",
            &["k[1][?]"],
        ),
        (
            "void f() { k<<<1, 1 << 7, 32 * sizeof(float)>>>(); }",
            &["k[1][128] 128B"],
        ),
        (
            "void f() { unsigned a = 3; k<<<1, a - 5 > 0u ? 32 : 64>>>(); }",
            &["k[1][32]"],
        ),
        (
            "#define B 192\nvoid f() { k<<<2 * B, B>>>(); }",
            &["k[384][192]"],
        ),
        ("void f() { ns::k<<<1, 2>>>(); }", &["k[1][2]"]),
        (
            "void f() { size_t s[2]; s[0] = 8; s[1] = 4; dim3 b(s[0], s[1]); k<<<1, b>>>(); }",
            &["k[1][8,4]"],
        ),
    ]);
}

#[test]
fn constants_and_globals() {
    check(&[
        (
            "const int B = 128; void f() { k<<<1, B>>>(); }",
            &["k[1][128]"],
        ),
        (
            "static int B = 128; void f() { k<<<1, B>>>(); }",
            &["k[1][128]"],
        ),
        ("int B = 128; void f() { k<<<1, B>>>(); }", &["k[1][128]"]),
        (
            "int B = 128; void g() { B = 4; } void f() { k<<<1, B>>>(); }",
            &["k[1][?]"],
        ),
        (
            "int B = 128; void g() { scanf(\"%d\", &B); } void f() { k<<<1, B>>>(); }",
            &["k[1][?]"],
        ),
        (
            "int B; int main() { B = 64; k<<<1, B>>>(); }",
            &["k[1][64]"],
        ),
        ("extern int B; void f() { k<<<1, B>>>(); }", &["k[1][?]"]),
        ("dim3 b(8, 4); void f() { k<<<1, b>>>(); }", &["k[1][8,4]"]),
        (
            "struct C { static const int B = 96; }; void f() { k<<<1, C::B>>>(); }",
            &["k[1][96]"],
        ),
        (
            "namespace n { constexpr int B = 2 * 48; } void f() { k<<<1, n::B>>>(); }",
            &["k[1][96]"],
        ),
        (
            "void f() { static const int B = 32; k<<<1, B>>>(); }",
            &["k[1][32]"],
        ),
    ]);
}

#[test]
fn control_flow() {
    check(&[
        (
            "void f(int n) { int b = 64; if (n) b = 128; k<<<1, b>>>(); }",
            &["k[1][?]"],
        ),
        (
            "void f(int n) { int b; if (n) b = 128; else b = 128; k<<<1, b>>>(); }",
            &["k[1][128]"],
        ),
        (
            "void f(int n) { int b = 64; if (n) { b = 128; k<<<1, b>>>(); } else j<<<1, b>>>(); }",
            &["k[1][128]", "j[1][64]"],
        ),
        (
            "void f(int n) { int b = 64; if (n < 0) { b = 1; return; } k<<<1, b>>>(); }",
            &["k[1][64]"],
        ),
        (
            "void f(int n) { int b = 64; if (n < 0) { b = 1; exit(1); } k<<<1, b>>>(); }",
            &["k[1][64]"],
        ),
        (
            "void f() { for (int b = 32; b < 999; b *= 2) k<<<1, b>>>(); }",
            &["k[1][32]"],
        ),
        (
            "void f() { int b = 32; for (int i = 0; i < 9; i++) b += 32; k<<<1, b>>>(); }",
            &["k[1][?]"],
        ),
        (
            "void f(int n) { int b = 32; while (n--) { k<<<1, b>>>(); b = 64; } }",
            &["k[1][32]"],
        ),
        (
            "void f() { int b = 1; do { b = 64; } while (0); k<<<1, b>>>(); }",
            &["k[1][64]"],
        ),
        (
            "void f() { for (int b : {64, 128}) k<<<1, b>>>(); }",
            &["k[1][64]"],
        ),
        (
            "void f() { for (int i = 0; i < 9; i++) { if (i > 0) k<<<1, 64>>>(i); } }",
            &["k[1][64](?)"],
        ),
        (
            "void f(int t) { switch (t) { case 64: k<64><<<1, t>>>(); break; case 32: k<32><<<1, t>>>(); } }",
            &["k<64>[1][64]", "k<32>[1][32]"],
        ),
        (
            "void f() { int t = 64; switch (t) { case 64: k<64><<<1, t>>>(); break; case 32: k<32><<<1, t>>>(); } }",
            &["k<64>[1][64]"],
        ),
        (
            "void f(int t) { switch (t) { case 64:\n#pragma omp parallel\n { k<64><<<1, t>>>(); }\n break; case 32: k<32><<<1, t>>>(); } }",
            &["k<64>[1][64]", "k<32>[1][32]"],
        ),
        (
            "void f(int m) { int b; switch (m) { case 0: b = 32; break; default: b = 64; } k<<<1, b>>>(); }",
            &["k[1][?]"],
        ),
        (
            "void f(int b) { if (b == 256) k<<<1, b>>>(); else j<<<1, b>>>(); }",
            &["k[1][256]", "j[1][?]"],
        ),
        (
            "void f() { bool d = false; if (d) k<<<9, 32>>>(); }",
            &["k[?][32]"],
        ),
        (
            "void f() { bool d = false; if (d) k<<<9, 32>>>(); k<<<1, 64>>>(); }",
            &["k[1][64]"],
        ),
        (
            "void f(int n) { int b = 64; scanf(\"%d\", &b); k<<<1, b>>>(); }",
            &["k[1][?]"],
        ),
        (
            "void f() { int b = 64; std::cin >> b; k<<<1, b>>>(); }",
            &["k[1][?]"],
        ),
        (
            "void get(int &b); void f() { int b = 64; get(b); k<<<1, b>>>(); }",
            &["k[1][?]"],
        ),
        (
            "void get(int b); void f() { int b = 64; get(b); k<<<1, b>>>(); }",
            &["k[1][64]"],
        ),
        (
            "void f() { int b = 64; again: k<<<1, b>>>(); b = 32; goto again; }",
            &["k[1][?]"],
        ),
        (
            "void f(int argc) { int b = argc > 1 ? 32 : 64; k<<<1, b>>>(); }",
            &["k[1][?]"],
        ),
        (
            "void f() { int b = 0; b = 64; b /= 2; k<<<1, b>>>(b++); }",
            &["k[1][32](32)"],
        ),
    ]);
}

#[test]
fn calls() {
    check(&[
        (
            "int divUp(int a, int b) { return (a + b - 1) / b; }
             void f() { k<<<divUp(1000, 256), 256>>>(); }",
            &["k[4][256]"],
        ),
        (
            "int up(int a, int b) { if (a % b == 0) return a / b; return a / b + 1; }
             void f() { k<<<up(1000, 256), 256>>>(); }",
            &["k[4][256]"],
        ),
        (
            "template <typename T> T up(T a, T b) { return (a + b - 1) / b; }
             void f() { k<<<up(1000, 256), 256>>>(); }",
            &["k[4][256]"],
        ),
        (
            "void run(float *d, int n, int b) { k<<<n / b, b>>>(d, n); }
             int main() { run(0, 1024, 128); run(0, 1024, 256); }",
            &["k[8][128](0,1024)", "k[4][256](0,1024)"],
        ),
        ("void run(int b = 96) { k<<<1, b>>>(); } int main() { run(); }", &["k[1][96]"]),
        ("void run(int b = 96) { k<<<1, b>>>(); }", &["k[1][?]"]),
        (
            "template <int B> void run(int n) { k<B><<<n / B, B>>>(); } int main() { run<128>(256); }",
            &["k<128>[2][128]"],
        ),
        (
            "template <int B> void run(int n) { k<B><<<n / B, B>>>(); } template void run<64>(int);",
            &["k<64>[?][64]"],
        ),
        (
            "void size(int n, dim3 &g, dim3 *b) { g = n / 64; b->x = 64; }
             void f() { dim3 g, b; size(640, g, &b); k<<<g, b>>>(); }",
            &["k[10][64]"],
        ),
        ("void f(int b) { if (b) f(b - 1); k<<<1, b>>>(); } int main() { f(32); }", &["k[1][32]"]),
        (
            "void c(int b) { k<<<1, b>>>(); } void b(int x) { c(2 * x); } int main() { b(32); }",
            &["k[1][64]"],
        ),
        ("void f() { auto g = [](int b) { k<<<1, b>>>(); }; g(32); g(64); }", &["k[1][32]", "k[1][64]"]),
        ("void f() { int b = 32; [&] { k<<<1, b>>>(); }(); }", &["k[1][32]"]),
        (
            "template <class F> void timed(F f) { f(); } void g() { int b = 32; timed([&] { k<<<1, b>>>(); }); }",
            &["k[1][32]"],
        ),
        (
            "struct R { int b = 64; dim3 g{2, 2}; void run() { k<<<g, b>>>(); } };",
            &["k[2,2][64]"],
        ),
        ("struct R { int b; R() : b(64) {} void run() { k<<<1, b>>>(); } };", &["k[1][64]"]),
        (
            "struct R { int b; R() { b = 64; } void set(int n) { b = n; } void run() { k<<<1, b>>>(); } };",
            &["k[1][?]"],
        ),
        // All functions of the class write the same.
        (
            "#define SIDE 32\nclass R { dim3 b, g; int n; void init(); void run(); };
             void R::init() { b.x = SIDE; this->b.y = 8; b.z = 1; g.x = (n - 1) / SIDE + 1; }
             void R::run() { k<<<g, b>>>(); }",
            &["k[?][32,8]"],
        ),
        (
            "template <class T> class M { void config() { b.x = X; b.y = Y; } void fill() { k<<<1, b>>>(); }
             static const int X = 16, Y = 4; dim3 b; };",
            &["k[1][16,4]"],
        ),
        (
            "struct R { int b; void init() { b = 64; } void run() { k<<<1, b>>>(); } };",
            &["k[1][64]"],
        ),
        // Its class is in a header.
        (
            "void R::init() { block_ = dim3(32, 4); n_ = 7; } void R::run() { k<<<1, block_>>>(n_); }",
            &["k[1][32,4](7)"],
        ),
        ("dim3 b; void init() { b.x = 96; } void run() { k<<<1, b>>>(); }", &["k[1][96]"]),
        // What differs, depends on a local variable or is changed otherwise.
        (
            "struct R { dim3 b; void init(bool w) { b.x = 64; if (w) b.x = 32; b.y = 2; } void run() { k<<<1, b>>>(); } };",
            &["k[1][?]"],
        ),
        (
            "const int n = 8; struct R { int b; void init(int n) { b = n; } void run() { k<<<1, b>>>(); } };",
            &["k[1][?]"],
        ),
        (
            "struct R { int b; void init() { b = 64; read(&b); } void run() { k<<<1, b>>>(); } };",
            &["k[1][?]"],
        ),
        (
            "void R::init() { b_ = 64; } void R::set(int n) { this->b_ = n; } void R::run() { k<<<1, b_>>>(); }",
            &["k[1][?]"],
        ),
        (
            "class R { int b; public: R(int n) : b(n) {} void run(); };
             void R::run() { k<<<1, b>>>(); } int main() { R r(96); r.run(); R *p = new R(32); p->run(); }",
            &["k[1][96]", "k[1][32]"],
        ),
        (
            "struct P { int n; int b; }; void run(const P &p) { k<<<p.n, p.b>>>(); }
             int main() { P p = {4, 64}; run(p); p.b = 32; run(p); }",
            &["k[4][64]", "k[4][32]"],
        ),
        (
            "template <typename K, typename... A> void go(K kernel, int b, A... a) { kernel<<<1, b>>>(a...); }
             __global__ void k(int n) {} int main() { go(k, 64, 5); }",
            &["k[1][64](5)"],
        ),
    ]);
}

#[test]
fn functions_that_launch() {
    check(&[
        (
            "__global__ void k(float *d, int n); void f(float *d) { int n = 9; void *args[] = {&d, &n};
             cudaLaunchKernel((const void *)k, dim3(4), dim3(64), args, 128, 0); }",
            &["k[4][64] 128B(?,9)"],
        ),
        (
            "__global__ void k(int n); void f() { int n = 9; void *args[] = {&n};
             cudaLaunchCooperativeKernel((void *)k, 4, 64, args); }",
            &["k[4][64](9)"],
        ),
        (
            "template <int N> __global__ void k(int n); void f() {
             cudaLaunchKernel(reinterpret_cast<const void *>(&k<3>), 4, 64, nullptr, 0, 0); }",
            &["k<3>[4][64](?)"],
        ),
        (
            "__global__ void k(int n); void f() { cudaLaunchConfig_t c; c.gridDim = 4; c.blockDim = dim3(8, 8);
             c.dynamicSmemBytes = 64; cudaLaunchKernelEx(&c, k, 5); }",
            &["k[4][8,8] 64B(5)"],
        ),
        (
            "__global__ void k(int n); void f() { cudaLaunchConfig_t c = {0}; c.gridDim = 4; c.blockDim.x = 32;
             cudaLaunchKernelEx(&c, k, 5); }",
            &["k[4][32](5)"],
        ),
        (
            "__global__ void k(int n); void f() { cudaLaunchConfig_t c = {.gridDim = 2, .blockDim = {8, 4}};
             int n = 7; void *a[] = {&n}; cudaLaunchKernelExC(&c, (void *)k, a); }",
            &["k[2][8,4](7)"],
        ),
        (
            "void f(CUmodule m) { CUfunction g; cuModuleGetFunction(&g, m, \"saxpy\"); int n = 3;
             void *a[] = {&n}; cuLaunchKernel(g, 2, 1, 1, 64, 2, 1, 256, 0, a, 0); }",
            &["saxpy[2][64,2] 256B(3)"],
        ),
        ("void f() { hipLaunchKernelGGL(k, dim3(2), dim3(64), 0, 0, 5); }", &["k[2][64](5)"]),
        ("void f() { hipLaunchKernelGGL((k<float, 3>), 2, 64, 16, 0, 5); }", &["k<float,3>[2][64] 16B(5)"]),
        (
            "template <typename T> __global__ void k(T *d); void f() { auto kernel = k<float>; kernel<<<1, 64>>>(0); }",
            &["k<float>[1][64](0)"],
        ),
        (
            "__global__ void k(int n); void f() { void (*p)(int) = k; p<<<1, 64>>>(1); (*p)<<<1, 32>>>(2); }",
            &["k[1][64](1)", "k[1][32](2)"],
        ),
        (
            "__global__ void a(); __global__ void b(); void f(int n) { void (*p)() = n ? a : b; p<<<1, 64>>>(); }",
            &["a[1][64]", "b[1][64]"],
        ),
        (
            "__global__ void a(); __global__ void b(); void f() { void (*p)(); for (int i = 0; i < 2; i++) {
             switch (i) { case 0: p = &a; break; case 1: p = &b; break; } p<<<1, 64>>>(); } }",
            &["a[1][64]", "b[1][64]"],
        ),
        ("void f(void (*kernel)(int)) { kernel<<<1, 64>>>(1); }", &[]),
        (
            "template <typename T, int N> __global__ void k(T *d, int n) {}
             template __global__ void k<float, 16>(float *, int);",
            &["k<float,16>[?][?] ?B"],
        ),
        (
            "template <typename T, int N> __global__ void k(T *d) {}
             template <typename T> void f(T *d) { const int N = 4; k<T, 2 * N><<<1, N>>>(d); }
             int main() { double *d; f(d); }",
            &["k<double,8>[1][4](?)"],
        ),
        (
            "__global__ void k(int n); void f() { cudaKernelNodeParams p = {0}; p.func = (void *)k; p.gridDim = dim3(2);
             p.blockDim = dim3(64); p.sharedMemBytes = 0; int n = 6; void *a[] = {&n}; p.kernelParams = a;
             cudaGraphAddKernelNode(&node, graph, 0, 0, &p); }",
            &["k[2][64](6)"],
        ),
        (
            "__global__ void k(); void f() { cudaGraphNodeParams p = {cudaGraphNodeTypeKernel};
             p.kernel.func = (void *)k; p.kernel.gridDim.x = p.kernel.gridDim.y = p.kernel.gridDim.z = 1;
             p.kernel.blockDim.x = 32; p.kernel.blockDim.y = p.kernel.blockDim.z = 1;
             cudaGraphAddNode(&node, graph, 0, 0, &p); }",
            &["k[1][32] ?B(?)"],
        ),
    ]);
}

#[test]
fn opencl_hosts() {
    check(&[
        (
            "void f() { cl_kernel q = clCreateKernel(program, \"add\", &err); int n = 100;
             clSetKernelArg(q, 0, sizeof(cl_mem), &buffer); clSetKernelArg(q, 1, sizeof(int), &n);
             size_t global = 1024, local = 64;
             clEnqueueNDRangeKernel(queue, q, 1, NULL, &global, &local, 0, NULL, NULL); }",
            &["add[16][64](?,100)"],
        ),
        (
            "void f() { cl_kernel q = clCreateKernel(program, \"add\", 0); size_t global[2] = {100, 64};
             size_t local[2]; local[0] = 16; local[1] = 8;
             clEnqueueNDRangeKernel(queue, q, 2, NULL, global, local, 0, NULL, NULL); }",
            &["add[7,8][16,8]"],
        ),
        (
            "void f() { cl_kernel q = clCreateKernel(program, \"add\", 0); size_t global = 100;
             clEnqueueNDRangeKernel(queue, q, 1, NULL, &global, NULL, 0, NULL, NULL); }",
            &["add[?][?]"],
        ),
        (
            "void f() { cl_kernel q = clCreateKernel(program, \"add\", 0); size_t g[1] = {64}, l[1] = {32};
             clSetKernelArg(q, 0, 32 * sizeof(float), NULL);
             clEnqueueNDRangeKernel(queue, q, 1, 0, g, l, 0, 0, 0); }",
            &["add[2][32] 128B(?)"],
        ),
        (
            "cl_kernel q; void init() { q = clCreateKernel(program, \"add\", 0); }
             int main() { init(); size_t g[1] = {64}, l[1] = {32};
             clEnqueueNDRangeKernel(queue, q, 1, 0, g, l, 0, 0, 0); }",
            &["add[2][32]"],
        ),
        (
            "void f() { cl::Kernel q(program, \"add\"); q.setArg(0, buffer); q.setArg(1, 9);
             queue.enqueueNDRangeKernel(q, cl::NullRange, cl::NDRange(1000), cl::NDRange(256)); }",
            &["add[4][256](?,9)"],
        ),
        (
            "void f() { auto q = cl::Kernel(program, \"add\");
             queue.enqueueNDRangeKernel(q, cl::NullRange, cl::NDRange(64, 64), cl::NDRange(8, 4)); }",
            &["add[8,16][8,4]"],
        ),
        (
            "void f() { cl::KernelFunctor<cl::Buffer, int> add(program, \"add\");
             add(cl::EnqueueArgs(queue, cl::NDRange(1024), cl::NDRange(128)), buffer, 7); }",
            &["add[8][128](?,7)"],
        ),
        (
            "void f() { auto add = cl::make_kernel<cl::Buffer>(program, \"add\");
             cl::NDRange local(16, 4); cl::EnqueueArgs how(queue, cl::NDRange(64, 64), local);
             add(how, buffer); }",
            &["add[4,16][16,4](?)"],
        ),
        (
            "void f() { auto add = findKernel(\"add\", sources, options);
             add(cl::EnqueueArgs(queue, cl::NDRange(n), cl::NDRange(64)), *buffer); }",
            &["add[?][64](?)"],
        ),
        // Whatever the function is called that is handed the name.
        (
            "void f() { auto op = cache.program(sources).fetch(\"add\", options);
             auto entry = lookup(\"add\", options);
             entry(cl::EnqueueArgs(queue, cl::NDRange(256), cl::NDRange(64)), *buffer); }",
            &["add[4][64](?)"],
        ),
        // One of two names, or none that is launched.
        (
            "void f() { auto entry = lookup(\"add\", \"mul\"); auto path = root(\"here\");
             entry(cl::EnqueueArgs(queue, cl::NDRange(256), cl::NDRange(64)), *buffer); }",
            &[],
        ),
        // Without a block the driver chooses.
        (
            "void f() { auto add = findKernel(\"add\", sources, options);
             add(cl::EnqueueArgs(queue, cl::NDRange(256)), *buffer); }",
            &["add[?][?](?)"],
        ),
        // Made in one function, launched in another.
        (
            "static cl_kernel k; void init() { k = clCreateKernel(program, \"add\", &error); }
             void f() { size_t g[1] = {256}, l[1] = {32}; clEnqueueNDRangeKernel(q, k, 1, NULL, g, l, 0, 0, 0); }",
            &["add[8][32] ?B"],
        ),
        (
            "void init(State *s) { cuModuleGetFunction(&s->f, module, \"add\"); }
             void f(State *s) { cuLaunchKernel(s->f, 4, 1, 1, 96, 1, 1, 0, 0, args, 0); }",
            &["add[4][96](?)"],
        ),
        (
            "void f() { clEnqueueTask(queue, clCreateKernel(program, \"add\", &error), 0, 0, 0); }",
            &["add[1][1]"],
        ),
    ]);
}

#[test]
fn types_of_arguments() {
    let first = |host: &str| {
        sites(host)
            .first()
            .and_then(|site| site.argument_types.first().cloned())
    };
    let float = |host: &str| {
        let found = first(host).flatten();
        assert!(
            matches!(&found, Some(Type::Pointer(to, _)) if **to == Type::FLOAT),
            "{host}: {found:?}"
        );
    };
    float("void f() { float *d; cudaMalloc(&d, 4); k<<<1, 2>>>(d); }");
    float(
        "void f() { thrust::device_vector<float> v(9); k<<<1, 2>>>(thrust::raw_pointer_cast(v.data())); }",
    );
    float(
        "void f() { thrust::device_vector<float> v(9); k<<<1, 2>>>(thrust::raw_pointer_cast(&v[0])); }",
    );
    float("template <typename T> void f(T *d) { k<<<1, 2>>>(d); } int main() { float *x; f(x); }");
    float("void f() { void *p; k<<<1, 2>>>((float *)p); }");
    let found = first("struct P { int a; }; void f() { P p; k<<<1, 2>>>(p); }").flatten();
    assert!(matches!(found, Some(Type::Struct(s)) if s.name == "P"));
    let found =
        first("void f() { int n = 4; k<<<1, 2>>>([=] __device__ (int i) { return i + n; }, 3); }");
    assert!(matches!(found.flatten(), Some(Type::Callable(_))));
}

#[test]
fn what_a_missing_header_declares_is_not_trusted() {
    let blocks = |host: &str| {
        let mut parsed = Arc::into_inner(expanded(host)).expect("no other owner");
        parsed.missing = vec!["options.h".to_owned()];
        let parsed = Arc::new(parsed);
        let items = outline(&parsed);
        let unit = Unit::new(&parsed, &items, None, false);
        let found: Vec<_> = launch_sites(&parsed, &items, &unit, &HeaderNames::default())
            .iter()
            .map(|site| site.block)
            .collect();
        found
    };
    assert_eq!(
        blocks("void f() { int b = 64; parse(b); k<<<1, b>>>(); }"),
        [None]
    );
    assert_eq!(
        blocks("void f() { dim3 b; configure(9, b); k<<<1, b>>>(); }"),
        [None]
    );
    assert_eq!(
        blocks("void f() { const int b = 64; parse(b); k<<<1, b>>>(); }"),
        [Some([64, 1, 1])]
    );
    assert_eq!(
        blocks("void f() { dim3 b(8, 4); run(b, [&] { k<<<1, b>>>(); }); }"),
        [Some([8, 4, 1])]
    );
}

#[test]
fn places() {
    let host = "void run(int b) {\n  k<<<1, b>>>(0);\n}\nint main() { run(32); }\n";
    let found = sites(host);
    assert_eq!(found.len(), 1);
    assert_eq!(&host[found[0].range.clone()], "k<<<1, b>>>");
    assert_eq!(found[0].inside, "run");
    assert_eq!(found[0].through, ["main"]);
    let host = "void f() { hipLaunchKernelGGL(k, 1, 2, 0, 0); }";
    assert_eq!(
        &host[sites(host)[0].range.clone()],
        "hipLaunchKernelGGL(k, 1, 2, 0, 0)"
    );
}

/// Half-typed and hostile host code ends, soon, and without a panic.
#[test]
fn any_text_ends() {
    let deep = format!(
        "void f() {{ int b = {}1{}; k<<<1, b>>>(); }}",
        "(".repeat(3000),
        ")".repeat(3000)
    );
    let chain = format!(
        "void f() {{ int b = 1{}; k<<<1, b>>>(); }}",
        " + 1".repeat(5000)
    );
    let nested = format!(
        "void f() {{ {} k<<<1, 2>>>(); {} }}",
        "if (a) {".repeat(1500),
        "}".repeat(1500)
    );
    let loops = format!(
        "void f() {{ {} k<<<1, 2>>>(); {} }}",
        "for (;;) { if (0) j<<<1, 2>>>();".repeat(30),
        "}".repeat(30)
    );
    let fan: Vec<String> = (0..30)
        .map(|at| format!("void f{}() {{ f{at}(); f{at}(); f{at}(); }}", at + 1))
        .collect();
    let fan = fan.join("\n");
    let fan = format!("void f0() {{ k<<<1, 2>>>(); }}\n{fan}");
    let elses = format!(
        "void f(int a) {{ {} k<<<1, 2>>>(); }}",
        "if (a) k<<<1, 4>>>(); else ".repeat(2000)
    );
    // Read more than once, each time with a shared array of its own.
    let shared = "__device__ int size(int n) { __shared__ int t[4]; t[n] = n; return 32; }
        constexpr int A = size(1) + 1, B = size(2) + 1; template <int N> struct S {};
        void f() { k<<<A, B>>>(size(1), size(2)); k<<<size(3), size(4)>>>(); k<size(5)><<<1, sizeof(S<size(6)>)>>>(); }";
    let shared = shared.to_owned();
    for text in [&deep, &chain, &nested, &loops, &fan, &elses, &shared] {
        let started = std::time::Instant::now();
        sites(text);
        let spent = started.elapsed();
        assert!(spent.as_secs_f64() < 20.0, "{spent:?} for {}…", &text[..60]);
    }
    let whole = "template <int B> void f(float *d) { dim3 b{B, 2}; auto g = [&](int n) { k<B, 3><<<n / B, b>>>(d); }; \
                 switch (B) { case 4: g(3); default: for (int i = 0; i < 9; i++) { cudaLaunchKernelEx(&c, k, i); } } }";
    for end in 0..whole.len() {
        sites(&whole[..end]);
        sites(&whole[end..]);
    }
}

#[test]
fn what_a_pointer_of_one_function_may_lead_to_is_nothing_to_the_next() {
    let text = "void first(int u) { int a = 1, b = 2, c = 3, d = 4; int *p = u ? &c : &d; *p = 5; k<<<a, b>>>(); }
                void second(int *q, int u) { *q = 7; int a = 64; int *p; *p = 1; k<<<2, a>>>(); }";
    let found: Vec<String> = sites(text).iter().map(spelled).collect();
    assert_eq!(found, ["k[1][2]", "k[2][64]"]);
}
