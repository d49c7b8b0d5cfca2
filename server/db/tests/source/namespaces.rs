//! Names are looked up in the namespaces in which they are written, from the inside out, then where a `using` leads.

use crate::reads::{launched, losses, sectors};

const COALESCED: f64 = 4.0;
const APART: f64 = 32.0;

#[test]
fn a_function_is_that_of_its_namespace() {
    let near = "__device__ float load(const float *p, int i) { return p[i]; }";
    let far = "__device__ float load(const float *p, int i) { return p[i * 32]; }";
    let kernel = |call: &str| {
        format!(
            "__global__ void k(float *o, const float *p) {{ int i = threadIdx.x; o[i] = {call}(p, i); }}"
        )
    };
    let ways = [
        format!(
            "namespace a {{ {near} }} namespace b {{ {far} }} {}",
            kernel("a::load")
        ),
        format!(
            "namespace b {{ {far} }} namespace a {{ {near} }} {}",
            kernel("a::load")
        ),
        format!(
            "namespace a {{ {near} {} }} namespace b {{ {far} }}",
            kernel("load")
        ),
        format!(
            "namespace a {{ {near} namespace c {{ {} }} }} namespace b {{ {far} }}",
            kernel("load")
        ),
        format!("{near} namespace a {{ {far} {} }}", kernel("::load")),
        format!("{far} namespace a {{ {near} {} }}", kernel("load")),
        format!(
            "namespace a::d {{ {near} }} namespace b::d {{ {far} }} namespace a {{ {} }}",
            kernel("d::load")
        ),
        format!(
            "namespace a::d {{ {near} }} namespace b::d {{ {far} }} {}",
            kernel("a::d::load")
        ),
        format!(
            "namespace a {{ inline namespace v1 {{ {near} }} }} namespace b {{ {far} }} {}",
            kernel("a::load")
        ),
        format!(
            "namespace a {{ namespace {{ {near} }} {} }} namespace b {{ {far} }}",
            kernel("load")
        ),
        format!(
            "namespace a {{ {near} }} namespace b {{ {far} }} using namespace a; {}",
            kernel("load")
        ),
        format!(
            "namespace a {{ {near} }} namespace b {{ {far} }} using a::load; {}",
            kernel("load")
        ),
        format!(
            "namespace x::a {{ {near} }} namespace b {{ {far} }} namespace s = x::a; {}",
            kernel("s::load")
        ),
    ];
    for text in ways {
        assert_eq!(sectors(&text), [COALESCED, COALESCED], "{text}");
    }
}

#[test]
fn types_constants_templates_and_variables_are_those_of_their_namespaces() {
    let pairs = [
        (
            "struct P { float v[1]; };",
            "struct P { float v[32]; };",
            "const @P *p",
            "p[i].v[0]",
        ),
        (
            "using P = float;",
            "struct P { float v[32]; operator float() const; };",
            "const @P *p",
            "p[i]",
        ),
        (
            "constexpr int N = 1;",
            "constexpr int N = 32;",
            "const float *p",
            "p[i * @N]",
        ),
        (
            "enum { N = 1 };",
            "enum { N = 32 };",
            "const float *p",
            "p[i * @N]",
        ),
        (
            "template <class T> struct P { T v[1]; };",
            "template <class T> struct P { T v[32]; };",
            "const @P<float> *p",
            "p[i].v[0]",
        ),
        (
            "template <int M> constexpr int N = M;",
            "template <int M> constexpr int N = 32 * M;",
            "const float *p",
            "p[i * @N<1>]",
        ),
        (
            "struct S { static constexpr int N = 1; };",
            "struct S { static constexpr int N = 32; };",
            "const float *p",
            "p[i * @S::N]",
        ),
        (
            "template <class T> __device__ T load(const T *p, int i) { return p[i]; }",
            "template <class T> __device__ T load(const T *p, int i) { return p[i * 32]; }",
            "const float *p",
            "@load<float>(p, i)",
        ),
    ];
    for (near, far, parameter, value) in pairs {
        let kernel = |path: &str| {
            let (parameter, value) = (parameter.replace('@', path), value.replace('@', path));
            format!(
                "__global__ void k(float *o, {parameter}) {{ int i = threadIdx.x; o[i] = {value}; }}"
            )
        };
        let ways = [
            format!(
                "namespace a {{ {near} }} namespace b {{ {far} }} {}",
                kernel("a::")
            ),
            format!(
                "namespace b {{ {far} }} namespace a {{ {near} }} {}",
                kernel("a::")
            ),
            format!(
                "namespace a {{ {near} {} }} namespace b {{ {far} }}",
                kernel("")
            ),
            format!(
                "namespace x::a {{ {near} }} namespace x::b {{ {far} }} namespace x {{ {} }}",
                kernel("a::")
            ),
            format!(
                "namespace x {{ namespace a {{ {near} }} }} namespace b {{ {far} }} {}",
                kernel("x::a::")
            ),
        ];
        for text in ways {
            assert_eq!(sectors(&text), [COALESCED, COALESCED], "{text}");
        }
    }
}

#[test]
fn an_instance_knows_which_class_its_argument_is() {
    let text = "namespace a { struct P { float v[1]; }; }\n\
                namespace b { struct P { float v[32]; }; }\n\
                template <class T> struct Of { T of; };\n\
                __global__ void k(float *o, const Of<a::P> *p, const Of<b::P> *q) {\n\
                \x20 int i = threadIdx.x; o[i] = p[i].of.v[0] + q[i].of.v[0];\n\
                }\n";
    assert_eq!(sectors(text), [COALESCED, APART, COALESCED]);
}

#[test]
fn a_template_that_is_an_argument_keeps_its_namespace() {
    let text = "namespace a { template <class T> struct Op { __device__ int at(int i) { return i; } }; }\n\
                namespace b { template <class T> struct Op { __device__ int at(int i) { return i * 32; } }; }\n\
                template <template <class> class Op> __device__ float load(const float *p, int i) {\n\
                \x20 Op<float> op; return p[op.at(i)];\n\
                }\n\
                __global__ void k(float *o, const float *p) { int i = threadIdx.x; o[i] = load<a::Op>(p, i); }\n";
    assert_eq!(sectors(text), [COALESCED, COALESCED]);
}

#[test]
fn a_function_of_the_standard_library_is_none_of_the_program() {
    let text = "namespace mine { __device__ int min(int a, int b) { return a * 32; } }\n\
                __global__ void k(float *o, const float *p, int n) {\n\
                \x20 int i = threadIdx.x; o[i] = p[std::max(0, i)]; if (i < n) o[i + std::min(0, 0)] = 1;\n\
                }\n";
    assert_eq!(sectors(text), [COALESCED; 3]);
}

#[test]
fn a_launch_and_a_host_function_are_those_of_their_namespaces() {
    let text = "namespace a {\n\
                __global__ void k(float *o) { o[threadIdx.x] = 1; }\n\
                void run(float *o) { k<<<1, 64>>>(o); }\n\
                }\n\
                namespace b {\n\
                __global__ void k(float *o) { o[threadIdx.x] = 1; }\n\
                void launch(float *o, int n) { k<<<1, n>>>(o); }\n\
                void run(float *o) { launch(o, 128); }\n\
                }\n\
                namespace c { void launch(float *o, int n) { b::k<<<1, 2 * n>>>(o); } }\n\
                int main() { float *o; cudaMalloc(&o, 4096); a::k<<<1, 96>>>(o); c::launch(o, 16); }\n";
    let file = launched(text);
    let blocks = |line: u32| {
        let of_line = file.kernels.iter().filter(|kernel| kernel.line == line);
        let mut blocks: Vec<u64> = of_line
            .map(|kernel| kernel.analysis.facts.launch.block[0])
            .collect();
        blocks.sort_unstable();
        blocks
    };
    assert_eq!(blocks(1), [64, 96]);
    assert_eq!(blocks(5), [32, 128]);
}

#[test]
fn a_qualified_name_is_no_local_and_no_template_parameter() {
    let text = "namespace a { constexpr int N = 1; }\n\
                template <int N> __global__ void k(float *o, const float *p) {\n\
                \x20 int i = threadIdx.x; o[i] = p[i * a::N]; { constexpr int N = 32; o[i + N] = p[i * a::N]; }\n\
                }\n\
                void run(float *o, const float *p) { k<32><<<1, 64>>>(o, p); }\n";
    assert_eq!(sectors(text), [COALESCED; 4]);
}

#[test]
fn a_function_that_is_a_value_keeps_its_namespace() {
    let functions = "namespace a { __device__ float load(const float *p, int i) { return p[i]; } }\n\
                     namespace b { __device__ float load(const float *p, int i) { return p[i * 32]; } }\n\
                     template <class F> __device__ float call(F f, const float *p, int i) { return f(p, i); }\n";
    for value in [
        "call(a::load, p, i)",
        "call(&a::load, p, i)",
        "([](auto f, const float *p, int i) { return f(p, i); })(a::load, p, i)",
    ] {
        let text = format!(
            "{functions}__global__ void k(float *o, const float *p) {{ int i = threadIdx.x; o[i] = {value}; }}"
        );
        assert_eq!(sectors(&text), [COALESCED, COALESCED], "{value}");
    }
}

#[test]
fn device_variables_of_one_name_are_several() {
    let text = "namespace a { __device__ float t[64]; }\n\
                namespace b { __device__ double t[64]; }\n\
                __global__ void k(float *o) { int i = threadIdx.x; o[i] = a::t[i] + b::t[i]; }\n";
    assert_eq!(sectors(text), [COALESCED, 2.0 * COALESCED, COALESCED]);
}

#[test]
fn enumerators_are_those_of_their_enumeration() {
    let text = "namespace n { enum class Near { step = 1 }; enum class Far { step = 32 };\n\
                __global__ void k(float *o, const float *p) {\n\
                \x20 int i = threadIdx.x; o[i] = p[i * int(Near::step)] + p[i * int(n::Far::step)];\n\
                } }\n";
    assert_eq!(sectors(text), [COALESCED, APART, COALESCED]);
}

#[test]
fn a_class_says_which_namespace_the_function_for_it_is_in() {
    let text = "namespace a { struct P { const float *p; }; __device__ float load(P of, int i) { return of.p[i]; } }\n\
                namespace b { struct P { const float *p; }; __device__ float load(P of, int i) { return of.p[i * 32]; } }\n\
                __global__ void k(float *o, const float *p) { int i = threadIdx.x; a::P of{p}; o[i] = load(of, i); }\n";
    assert_eq!(sectors(text), [COALESCED, COALESCED]);
}

#[test]
fn of_several_declarations_that_nothing_leads_to_none_is_guessed() {
    let spaces = "namespace a { __device__ float load(const float *p, int i) { return p[i]; } constexpr int N = 1; }\n\
                  namespace b { __device__ float load(const float *p, int i) { return p[i * 32]; } constexpr int N = 32;\n\
                  struct P { float v[32]; }; }\n";
    for (parameters, value) in [
        ("const float *p", "load(p, i)"),
        ("const float *p", "p[i * N]"),
        ("const float *p", "unread::load(p, i)"),
        ("const float *p", "Unread<float>::load(p, i)"),
        ("const float *p", "p[i * Unread<a::x>::N]"),
        ("const unread::P *p", "p[i].v[0]"),
    ] {
        let text = format!(
            "{spaces}__global__ void k(float *o, {parameters}) {{ int i = threadIdx.x; o[i] = {value}; }}"
        );
        assert!(losses(&text) > 0, "{value}");
    }
    for value in ["Traits::load(p, i)", "p[i * Traits::N]"] {
        let text = format!(
            "__device__ float load(const float *p, int i) {{ return p[i]; }} constexpr int N = 1;\n\
             template <class Traits> __global__ void k(float *o, const float *p) {{\n\
             \x20 int i = threadIdx.x; o[i] = {value};\n\
             }}"
        );
        assert!(losses(&text) > 0, "{value}");
    }
}

#[test]
fn no_kernel_is_lost_however_deep_its_namespaces_are() {
    for deep in [20, 100, 2_000] {
        for (open, close) in [("namespace n {\n", "}"), ("extern \"C\" {\n", "}")] {
            let text = format!(
                "{}__device__ float load(const float *p, int i) {{ return p[i * 32]; }}\n\
                 __global__ void k(float *o, const float *p) {{ int i = threadIdx.x; o[i] = load(p, i); }}\n{}\n",
                open.repeat(deep),
                close.repeat(deep)
            );
            assert_eq!(sectors(&text), [APART, COALESCED], "{deep} times {open}");
            assert_eq!(losses(&text), 0, "{deep} times {open}");
        }
    }
}
