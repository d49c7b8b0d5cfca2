//! C++ as kernels are written in it today: vectors read as other types, aligned templates, captured pointers, accessors.

use std::path::Path;

use warplens_codegen::Class;
use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, FileAnalysis, Overrides, Variants};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

/// The analysis of a program, all of which must be understood, without a defect.
pub(crate) fn analyse(text: &str) -> FileAnalysis {
    let engine = Engine::new(Profiles::builtin());
    let overrides = Overrides {
        variants: Variants::All,
        ..Overrides::default()
    };
    let file = engine
        .analyze(
            &Document::new(text, Language::Cuda),
            Path::new("a.cu"),
            &Settings::default(),
            &overrides,
            &Cancel::default(),
        )
        .expect("not cancelled");
    assert!(!file.kernels.is_empty(), "{text}");
    for kernel in &file.kernels {
        let (facts, input) = (&kernel.analysis.facts, &kernel.analysis.input);
        assert_eq!(facts.not_understood, [], "{text}");
        assert_eq!(
            input.defects(kernel.analysis.estimate().cycles),
            [],
            "{text}"
        );
        assert_eq!(input.compiled.unwritten, [], "{text}");
    }
    file
}

/// Instructions of these classes in the first kernel.
pub(crate) fn instructions<const N: usize>(file: &FileAnalysis, classes: [Class; N]) -> [u64; N] {
    let compiled = &file.kernels[0].analysis.input.compiled;
    classes.map(|class| compiled.instructions.get(&class).copied().unwrap_or(0))
}

/// What each kernel accesses in memory: the text, bytes per lane, transactions or passes per request.
pub(crate) fn accesses(file: &FileAnalysis) -> Vec<(String, u32, Option<f64>)> {
    let mut all = Vec::new();
    for kernel in &file.kernels {
        let input = &kernel.analysis.input;
        for access in &kernel.analysis.facts.accesses {
            if input.is_memory(access) {
                let cost = access
                    .transactions_per_request
                    .or(access.passes_per_request);
                all.push((access.text.clone(), access.bytes_per_lane, cost));
            }
        }
    }
    all
}

/// `o[i] = …` of the eight halves of `a[i]`, with `read` between the load and the loop.
fn halves(read: &str, half: &str) -> String {
    format!(
        "__global__ __launch_bounds__(256) void k(const uint4 *a, float *o) {{\n\
         \x20 int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
         \x20 {read}\n\
         \x20 float s = 0;\n\
         \x20 for (int j = 0; j < 4; ++j) {{ float2 f = __half22float2({half}); s += f.x * f.y; }}\n\
         \x20 o[i] = s;\n\
         }}\n"
    )
}

#[test]
fn a_vector_that_is_read_as_halves_keeps_its_load_and_its_arithmetic() {
    for (read, half) in [
        (
            "uint4 v = a[i]; const half2 *h = reinterpret_cast<const half2 *>(&v);",
            "h[j]",
        ),
        ("uint4 v = a[i]; half2 h[4]; memcpy(h, &v, 16);", "h[j]"),
        ("union { uint4 u; half2 h[4]; } v; v.u = a[i];", "v.h[j]"),
        (
            "auto h = std::bit_cast<std::array<half2, 4>>(a[i]);",
            "h[j]",
        ),
    ] {
        let file = analyse(&halves(read, half));
        let made = instructions(&file, [Class::Ldg, Class::F2f, Class::Ffma, Class::Stg]);
        assert_eq!(made, [1, 8, 4, 1], "{read}");
        let moved = accesses(&file);
        assert_eq!(moved.len(), 2, "{read}: {moved:?}");
    }
}

#[test]
fn what_is_written_as_another_type_is_what_is_stored() {
    let file = analyse(
        "__global__ void k(const __nv_bfloat16 *a, __nv_bfloat16 *o) {\n\
         \x20 int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
         \x20 int4 v = reinterpret_cast<const int4 *>(a)[i];\n\
         \x20 __nv_bfloat16 *h = (__nv_bfloat16 *)&v;\n\
         \x20 for (int j = 0; j < 8; ++j) h[j] = __float2bfloat16(__bfloat162float(h[j]) * 2.f);\n\
         \x20 reinterpret_cast<int4 *>(o)[i] = v;\n\
         }\n",
    );
    let made = instructions(&file, [Class::Ldg, Class::F2f, Class::Fmul, Class::Stg]);
    assert_eq!(made, [1, 16, 8, 1]);
}

#[test]
fn accumulators_in_registers_are_no_memory() {
    let file = analyse(
        "__global__ __launch_bounds__(256) void k(const float *A, const float *B, float *C, int K) {\n\
         \x20 uint32_t r[32];\n\
         \x20 for (int j = 0; j < 32; ++j) r[j] = 0;\n\
         \x20 for (int k = 0; k < K; ++k) {\n\
         \x20   float a = A[k * 256 + threadIdx.x], b = B[k * 256 + threadIdx.x];\n\
         \x20   for (int j = 0; j < 32; ++j) r[j] = __float_as_uint(__uint_as_float(r[j]) + a * b);\n\
         \x20 }\n\
         \x20 for (int j = 0; j < 8; ++j) for (int k = 0; k < 4; ++k)\n\
         \x20   C[(j * 4 + k) * 256 + threadIdx.x] = reinterpret_cast<const float *>(&r[4 * j])[k];\n\
         }\n",
    );
    assert_eq!(instructions(&file, [Class::Fadd, Class::Stg]), [32, 32]);
    let moved = accesses(&file);
    let texts: Vec<&str> = moved.iter().map(|(text, ..)| text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "A[k * 256 + threadIdx.x]",
            "B[k * 256 + threadIdx.x]",
            "C[(j * 4 + k) * 256 + threadIdx.x]"
        ]
    );
    // One that is subscripted with data is memory.
    let kept = analyse(
        "__global__ void k(const int *at, float *o, int n) {\n\
         \x20 float r[256];\n\
         \x20 for (int j = 0; j < n; ++j) r[j & 255] = o[j * 32 + threadIdx.x];\n\
         \x20 o[threadIdx.x] = r[at[threadIdx.x] & 255];\n\
         }\n",
    );
    assert!(
        accesses(&kept)
            .iter()
            .any(|(text, ..)| text.starts_with("r["))
    );
}

#[test]
fn an_alignment_that_depends_on_a_template_makes_one_access() {
    for align in [
        "alignas(sizeof(T) * N)",
        "__align__(sizeof(T) * N)",
        "alignas(16)",
    ] {
        let file = analyse(&format!(
            "template <class T, int N> struct {align} Vec {{ T v[N]; }};\n\
             __global__ void k(const float *a, float *o) {{\n\
             \x20 int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
             \x20 Vec<float, 4> x = reinterpret_cast<const Vec<float, 4> *>(a)[i];\n\
             \x20 for (int j = 0; j < 4; ++j) x.v[j] *= 2.f;\n\
             \x20 reinterpret_cast<Vec<float, 4> *>(o)[i] = x;\n\
             }}\n"
        ));
        let costs: Vec<_> = accesses(&file)
            .into_iter()
            .map(|(_, bytes, cost)| (bytes, cost))
            .collect();
        assert_eq!(costs, [(16, Some(16.0)), (16, Some(16.0))], "{align}");
    }
}

#[test]
fn a_returned_reference_is_not_read_again() {
    let file = analyse(
        "struct v3 { float x, y, z;\n\
         \x20 __device__ v3 &operator+=(const v3 &o) { x += o.x; y += o.y; z += o.z; return *this; } };\n\
         struct P { v3 o; float w; };\n\
         __global__ void k(P *p, const v3 *q) { int i = threadIdx.x; p[i].o += q[i]; }\n",
    );
    assert_eq!(accesses(&file).len(), 9);
}

#[test]
fn each_name_of_a_declaration_has_its_own_value() {
    let file = analyse(
        "struct Traits { static constexpr int kThreads = 128, kItems = 4, kBytes{kThreads * 4}; };\n\
         template <class C> __global__ void k(float *o) {\n\
         \x20 __shared__ float s[C::kBytes];\n\
         \x20 s[threadIdx.x * C::kItems] = o[threadIdx.x + C::kThreads];\n\
         }\n\
         void go(float *o) { k<Traits><<<1, Traits::kThreads>>>(o); }\n",
    );
    let facts = &file.kernels[0].analysis.facts;
    assert_eq!(facts.static_shared_bytes, 4 * 512);
    assert_eq!(facts.launch.block, [128, 1, 1]);
    assert_eq!(accesses(&file)[1].2, Some(4.0));
}

#[test]
fn functions_of_numbers_are_worked_out() {
    let file = analyse(
        "__global__ void k(float *o) {\n\
         \x20 constexpr int levels = log2(16.0);\n\
         \x20 o[threadIdx.x * (int)log2f(16.f)] = o[threadIdx.x * levels];\n\
         }\n",
    );
    let costs: Vec<_> = accesses(&file).into_iter().map(|(.., cost)| cost).collect();
    assert_eq!(costs, [Some(16.0), Some(16.0)]);
}

#[test]
fn pointers_that_a_lambda_captures_are_parameters() {
    let file = analyse(
        "template <typename F> __global__ void for_each(int n, F f) {\n\
         \x20 int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) f(i); }\n\
         void go(float *a, const float *b, int n) {\n\
         \x20 for_each<<<(n + 255) / 256, 256>>>(n, [=] __device__ (int i) { a[i] = b[i] * 2.f; }); }\n",
    );
    let costs: Vec<_> = accesses(&file)
        .into_iter()
        .map(|(_, bytes, cost)| (bytes, cost))
        .collect();
    assert_eq!(costs, [(4, Some(4.0)), (4, Some(4.0))]);
}

#[test]
fn an_accessor_of_a_tensor_is_a_pointer_with_strides() {
    let file = analyse(
        "template <class T> __global__ void k(torch::PackedTensorAccessor32<T, 3, torch::RestrictPtrTraits> a,\n\
         \x20   torch::PackedTensorAccessor32<T, 3, torch::RestrictPtrTraits> o) {\n\
         \x20 int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
         \x20 if (i < a.size(2)) o[blockIdx.z][blockIdx.y][i] = a[blockIdx.z][blockIdx.y][i] * 2;\n\
         }\n",
    );
    let costs: Vec<_> = accesses(&file)
        .into_iter()
        .map(|(_, bytes, cost)| (bytes, cost))
        .collect();
    assert_eq!(costs, [(4, Some(4.0)), (4, Some(4.0))]);
    assert_eq!(
        instructions(&file, [Class::Ldg, Class::Stg, Class::Fmul]),
        [1, 1, 1]
    );
}

#[test]
fn a_binding_by_reference_is_the_place_itself() {
    let file = analyse(
        "struct pair { int a; float b; };\n\
         __global__ void k(pair *p, float *o) {\n\
         \x20 auto &[i, f] = p[threadIdx.x];\n\
         \x20 f = o[threadIdx.x];\n\
         }\n",
    );
    assert_eq!(instructions(&file, [Class::Ldg, Class::Stg]), [1, 1]);
}

#[test]
fn vectors_of_the_compiler_s_own_have_lanes() {
    let file = analyse(
        "typedef float v4 __attribute__((ext_vector_type(4)));\n\
         __global__ void k(float *o, const float *q) {\n\
         \x20 int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
         \x20 v4 a = *(const v4 *)(q + 4 * i);\n\
         \x20 o[i] = a.x + a.y + a[2] + a.w;\n\
         }\n",
    );
    assert_eq!(
        accesses(&file)[0],
        ("*(const v4 *)(q + 4 * i)".to_owned(), 16, Some(16.0))
    );
}

#[test]
fn brackets_of_a_launch_may_be_taken_apart() {
    let file = analyse(
        "__global__ void k(float *o) { o[threadIdx.x] = 1; }\n\
         void go(float *o) { k << <4, 64 >> >(o); }\n",
    );
    assert_eq!(file.kernels[0].analysis.facts.launch.block, [64, 1, 1]);
}

#[test]
fn an_atomic_on_an_element_of_an_accessor_is_one() {
    let file = analyse(
        "__global__ void k(torch::PackedTensorAccessor64<float, 2> o) {\n\
         \x20 atomicAdd(&o[blockIdx.x][threadIdx.x], 1.f);\n\
         \x20 o[blockIdx.y][threadIdx.x] += 2.f;\n\
         }\n",
    );
    assert_eq!(
        instructions(&file, [Class::Red, Class::Ldg, Class::Stg]),
        [1, 1, 1]
    );
}

#[test]
fn a_dispatch_over_types_launches_a_kernel_for_each() {
    for lambda in ["[&] { BODY }", "([&] { BODY })"] {
        let body = "k<scalar_t><<<(n + 255) / 256, 256>>>(a.data_ptr<scalar_t>(), n);";
        let lambda = lambda.replace("BODY", body);
        let file = analyse(&format!(
            "template <typename scalar_t> __global__ void k(scalar_t *a, int n) {{\n\
             \x20 int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] = 1; }}\n\
             void go(torch::Tensor a) {{\n\
             \x20 int n = a.numel();\n\
             \x20 AT_DISPATCH_FLOATING_TYPES_AND_HALF(a.scalar_type(), \"k\", {lambda});\n\
             }}\n"
        ));
        let stored: Vec<_> = (accesses(&file).into_iter())
            .map(|(_, bytes, cost)| (bytes, cost))
            .collect();
        assert_eq!(
            stored,
            [(4, Some(4.0)), (8, Some(8.0)), (2, Some(2.0))],
            "{lambda}"
        );
    }
}

#[test]
fn what_some_ways_give_a_variable_is_not_lost() {
    let file = analyse(
        "__global__ void k(const float *a, float *o, int which) {\n\
         \x20 float x; int2 at;\n\
         \x20 switch (which) {\n\
         \x20   case 0: x = a[threadIdx.x] * 2.f; at.x = 1; break;\n\
         \x20   case 1: x = a[threadIdx.x + 32] + 3.f; at.x = 2; break;\n\
         \x20 }\n\
         \x20 o[threadIdx.x + at.x * 32] = x;\n\
         }\n",
    );
    let made = instructions(&file, [Class::Ldg, Class::Fadd, Class::Fmul, Class::Stg]);
    assert_eq!(made, [2, 1, 1, 1]);
}

#[test]
fn a_block_that_nothing_gives_has_a_warp_in_each_row_where_rows_are_warps() {
    let block = |text: &str| analyse(text).kernels[0].analysis.facts.launch.block;
    let kernel = |bounds: &str, name: &str| {
        format!(
            "__global__ void {bounds} k(float *o) {{ int {name} = threadIdx.y; o[{name} * 64 + threadIdx.x] = 1; }}"
        )
    };
    assert_eq!(block(&kernel("", "warp_id")), [32, 8, 1]);
    assert_eq!(
        block(&kernel("__launch_bounds__(128)", "warp_id")),
        [32, 4, 1]
    );
    assert_eq!(block(&kernel("", "row")), [16, 16, 1]);
    // An image is warped.
    assert_eq!(block(&kernel("", "warped_y")), [16, 16, 1]);
}

#[test]
fn scalars_of_unequal_size_are_read_as_one_and_taken_apart_again() {
    let file = analyse(
        "struct S { char a; char b; short c; int d; };\n\
         __global__ __launch_bounds__(256) void k(const int *q, int *o, int n) {\n\
         \x20 S s; s.a = n; s.b = n + 1; s.c = n + 2; s.d = q[threadIdx.x];\n\
         \x20 unsigned long long t = *(unsigned long long *)&s;\n\
         \x20 o[threadIdx.x] = ((int *)&t)[1]; }\n",
    );
    assert_eq!(instructions(&file, [Class::Ldg, Class::Stg]), [1, 1]);
}

/// Every kernel has an analysis, whatever of it is understood.
fn survives(text: &str) -> FileAnalysis {
    let engine = Engine::new(Profiles::builtin());
    let file = engine.analyze(
        &Document::new(text, Language::Cuda),
        Path::new("a.cu"),
        &Settings::default(),
        &Overrides::default(),
        &Cancel::default(),
    );
    let file = file.expect("not cancelled");
    assert_eq!(file.problems, [""; 0], "{text}");
    assert_eq!(file.kernels.len(), file.found, "{text}");
    file
}

#[test]
fn odd_layouts_and_half_typed_calls_cost_themselves_only() {
    for text in [
        // Padding between the parts, parts that no size divides, a union as long as no memory.
        "struct S { char a, b; int c; };\n\
         __global__ void k(unsigned long long *o, int *q, int n) { S s; s.a = n; s.b = n; s.c = q[threadIdx.x];\n\
         \x20 unsigned long long t = *(unsigned long long *)&s; o[threadIdx.x] = ((int *)&t)[1]; }\n",
        "union U { char pad[0x7fffffffffffffffull]; int x; };\n\
         __global__ void k(U *u, int *o) { U v = *u; o[threadIdx.x] = v.x; }\n",
        "__global__ void k(int *a) { cuda::atomic_ref<int, cuda::thread_scope_device> r(a[0]); r.fetch_add(); }\n",
    ] {
        assert_eq!(survives(text).found, 1, "{text}");
    }
}

#[test]
fn a_part_that_is_overwritten_is_no_longer_what_was_stored_as_a_whole() {
    let file = survives(
        "__global__ __launch_bounds__(256) void k(int *o) {\n\
         \x20 int b[4]; long long *w = (long long *)b;\n\
         \x20 w[0] = threadIdx.x; b[1] = 3; long long v = w[0];\n\
         \x20 o[v * 64] = 1; }\n",
    );
    let accesses = &file.kernels[0].analysis.facts.accesses;
    let store = accesses.iter().find(|access| access.text == "o[v * 64]");
    assert!(!store.expect("the store").exact());
}

#[test]
fn a_bulk_copy_of_an_assumed_size_has_no_exact_figure() {
    let file = survives(
        "__global__ __launch_bounds__(256) void k(const char *x, float *o, int n) {\n\
         \x20 extern __shared__ char t[]; unsigned s = __cvta_generic_to_shared(t);\n\
         \x20 if (threadIdx.x == 0)\n\
         \x20   asm volatile(\"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];\"\n\
         \x20     :: \"r\"(s), \"l\"(x), \"r\"(n), \"r\"(s));\n\
         \x20 o[threadIdx.x] = 1; }\n\
         void f(int n) { k<<<1, 256, 4096>>>(0, 0, n); }\n",
    );
    let accesses = &file.kernels[0].analysis.facts.accesses;
    let mut copies = accesses
        .iter()
        .filter(|access| access.instruction.is_some());
    assert!(copies.all(|access| !access.exact()));
    assert!(accesses.iter().any(|access| access.instruction.is_some()));
}

#[test]
fn class_templates_that_are_arguments_of_templates_are_called() {
    let file = analyse(
        "template <class T> struct Add { __device__ T operator()(T a, T b) const { return a + b; } };\n\
         template <class T, template <class> class Op> __device__ T named(T a, T b) { Op<T> op; return op(a, b); }\n\
         template <template <typename> class Op, class T> __device__ T made(T a, T b) { return Op<T>()(a, b); }\n\
         __global__ __launch_bounds__(256) void k(const float *a, float *o) {\n\
         \x20 int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
         \x20 o[i] = named<float, Add>(a[i], 2.f) + made<Add>(a[i], 3.f);\n\
         }\n",
    );
    assert_eq!(instructions(&file, [Class::Fadd]), [3]);
}

/// Traits, a function that uses an object of a type that they declare, and a kernel on them.
const TRAITS: &str = "\
    template <int T_, int I_, class In> struct Traits {\n\
    \x20 using input_t = In; static constexpr int kThreads = T_; static constexpr int kItems = I_;\n\
    \x20 using BlockLoad = cub::BlockLoad<In, kThreads, kItems, cub::BLOCK_LOAD_WARP_TRANSPOSE>;\n\
    \x20 static constexpr int kBytes = sizeof(typename BlockLoad::TempStorage);\n\
    };\n\
    template <class K> __device__ void load(typename K::input_t *p, typename K::input_t (&v)[K::kItems], char *s) {\n\
    \x20 typename K::BlockLoad(reinterpret_cast<typename K::BlockLoad::TempStorage &>(*s)).Load(p, v);\n\
    }\n\
    template <class Traits> __global__ __launch_bounds__(Traits::kThreads) void k(typename Traits::input_t *p, float *o) {\n\
    \x20 extern __shared__ char memory[];\n\
    \x20 typename Traits::input_t v[Traits::kItems];\n\
    \x20 load<Traits>(p + blockIdx.x * Traits::kThreads * Traits::kItems, v, memory);\n\
    \x20 for (int i = 0; i < Traits::kItems; i++) o[threadIdx.x + i * Traits::kThreads] = float(p[threadIdx.x + i * Traits::kThreads]);\n\
    }\n";

#[test]
fn traits_come_from_the_launch_and_their_open_types_are_assumed() {
    let file = analyse(&format!(
        "{TRAITS}template <int N, class In> void launch(In *p, float *o) {{ using T = Traits<64, N, In>; k<T><<<8, T::kThreads, T::kBytes>>>(p, o); }}\n\
         template <class In> void run(In *p, float *o) {{ launch<4, In>(p, o); }}\n"
    ));
    let facts = &file.kernels[0].analysis.facts;
    assert_eq!(facts.launch.block, [64, 1, 1]);
    let named = |name: &str| facts.accesses.iter().find(|access| access.array == name);
    let load = named("p").expect("the load of the collective");
    assert_eq!(load.bytes_per_lane, 4);
    let assumed = &file.kernels[0].analysis.facts.assumptions;
    assert!(format!("{assumed:?}").contains("In"), "{assumed:?}");
}

#[test]
fn traits_of_which_nothing_says_the_argument_are_the_class_with_those_members() {
    let file = analyse(TRAITS);
    let args = &file.kernels[0].analysis.template_args;
    assert!(args[0].1.starts_with("Traits<32, 32"), "{args:?}");
}

#[test]
fn what_is_assumed_of_a_template_is_what_its_program_has_specialisations_for() {
    let file = analyse(
        "template <int B> struct Bytes {};\n\
         template <> struct Bytes<16> { using Type = uint4; };\n\
         template <> struct Bytes<2> { using Type = unsigned short; };\n\
         template <class E, int N> struct Vec { using V = typename Bytes<N * sizeof(E)>::Type; union { V vec; E elt[N]; } data;\n\
         \x20 __device__ void load(const void *b, size_t i) { data.vec = static_cast<const V *>(b)[i]; }\n\
         \x20 __device__ void store(void *b, size_t i) { static_cast<V *>(b)[i] = data.vec; } };\n\
         template <class T, int N> __global__ __launch_bounds__(256) void k(const T *p, T *o) {\n\
         \x20 int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
         \x20 Vec<T, N> v; v.load(p, i);\n\
         \x20 for (int j = 0; j < N; j++) v.data.elt[j] = v.data.elt[j] + T(2.f);\n\
         \x20 v.store(o, i);\n\
         }\n",
    );
    let bytes: Vec<u32> = accesses(&file).iter().map(|(_, bytes, _)| *bytes).collect();
    assert_eq!(bytes, [16, 16]);
    assert_eq!(
        instructions(&file, [Class::Ldg, Class::Fadd, Class::Stg]),
        [1, 4, 1]
    );
    let copies = analyse(
        "template <class T, int N> __device__ void copy(T *d, const T *s);\n\
         template <> __device__ void copy<__half, 4>(__half *d, const __half *s) { *(float2 *)d = *(const float2 *)s; }\n\
         template <class T> __global__ __launch_bounds__(256) void k(const T *p, T *o) {\n\
         \x20 int i = blockIdx.x * blockDim.x + threadIdx.x; copy<T, 4>(o + i * 4, p + i * 4);\n\
         }\n",
    );
    assert_eq!(copies.kernels[0].analysis.template_args[0].1, "half");
}

#[test]
fn the_vectors_of_glm_are_known_without_its_headers() {
    let file = analyse(
        "#include <glm/glm.hpp>\n\
         using vec3 = glm::vec<3, float>;\n\
         __global__ __launch_bounds__(256) void k(const glm::vec4 *a, const vec3 *b, const float *m, float *o) {\n\
         \x20 int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
         \x20 glm::vec4 v = a[i];\n\
         \x20 glm::mat3 M = glm::make_mat3(m);\n\
         \x20 vec3 w = glm::transpose(M) * b[i];\n\
         \x20 for (int j = 0; j < 3; j++) w[j] *= 2.f;\n\
         \x20 o[i] = glm::dot(w, vec3(v)) + v.w;\n\
         }\n",
    );
    // No vector is aligned beyond its element: four loads and three.
    let loads = accesses(&file);
    let of = |text: &str| loads.iter().filter(|(of, ..)| of == text).count();
    assert_eq!((of("a[i]"), loads.len()), (4, 4 + 3 + 9 + 1), "{loads:?}");
    assert!(loads.iter().all(|(_, bytes, _)| *bytes == 4), "{loads:?}");
    // Nine products and a dot of three, two of each of which start a sum; three that double.
    let [multiplied, fused] = instructions(&file, [Class::Fmul, Class::Ffma]);
    assert_eq!(multiplied + fused, 9 + 3 + 3);
}

#[test]
fn constants_of_traits_may_be_of_floating_point() {
    let file = analyse(
        "template <class T> struct Limit {};\n\
         template <> struct Limit<float> { static constexpr float value = 1e-7f; };\n\
         template <class T> __global__ __launch_bounds__(256) void k(T *o) { int i = threadIdx.x; o[i] = o[i] + Limit<T>::value; }\n",
    );
    assert_eq!(
        instructions(&file, [Class::Ldg, Class::Fadd, Class::Stg]),
        [1, 1, 1]
    );
}

#[test]
fn a_loop_over_a_range_is_the_loop_over_its_iterators() {
    let range = "struct Strides {\n\
        \x20 struct Iterator {\n\
        \x20   int at, step;\n\
        \x20   __device__ int operator*() const { return at; }\n\
        \x20   __device__ Iterator &operator++() { at += step; return *this; }\n\
        \x20   __device__ bool operator!=(const Iterator &other) const { return at < other.at; }\n\
        \x20 };\n\
        \x20 Iterator first, last;\n\
        \x20 __device__ Strides(int begin, int end, int step) : first{begin, step}, last{end, step} {}\n\
        \x20 __device__ Iterator begin() const { return first; }\n\
        \x20 __device__ Iterator end() const { return last; }\n\
        };\n\
        __device__ Strides grid_strides(int n) {\n\
        \x20 return Strides(blockIdx.x * blockDim.x + threadIdx.x, n, gridDim.x * blockDim.x);\n\
        }\n\
        template <class T> struct View {\n\
        \x20 T *data; int length;\n\
        \x20 __device__ T *begin() const { return data; }\n\
        \x20 __device__ T *end() const { return data + length; }\n\
        };\n";
    let kernel = |body: &str| {
        format!(
            "{range}// warplens: block=(256) grid=(64) n=65536\n\
             __global__ void k(float *o, const float *a, int n) {{\n{body}\n}}\n"
        )
    };
    let pairs = [
        (
            "for (auto i : grid_strides(n)) o[i] = a[i] * 2.0f;",
            "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) o[i] = a[i] * 2.0f;",
        ),
        (
            "View<const float> v{a + blockIdx.x * 64, 64};\nfloat s = 0;\nfor (const float &x : v) s += x;\n\
             o[blockIdx.x * 256 + threadIdx.x] = s;",
            "const float *v = a + blockIdx.x * 64;\nfloat s = 0;\nfor (int j = 0; j < 64; ++j) s += v[j];\n\
             o[blockIdx.x * 256 + threadIdx.x] = s;",
        ),
    ];
    for (over, plain) in pairs {
        let [over, plain] = [over, plain].map(|body| {
            let file = analyse(&kernel(body));
            let facts = &file.kernels[0].analysis.facts;
            let all = facts.accesses.iter();
            all.map(|one| (one.op, one.transactions_per_request, one.requests))
                .collect::<Vec<_>>()
        });
        assert_eq!(over, plain);
        assert_eq!(over.len(), 2);
    }
}

#[test]
fn an_aligned_vector_of_torch_is_one_access() {
    let file = analyse(
        "template <class T> __global__ void k(const T *a, T *o) {\n\
         \x20 using V = at::native::memory::aligned_vector<T, 8>;\n\
         \x20 V v = reinterpret_cast<const V *>(a)[blockIdx.x * blockDim.x + threadIdx.x];\n\
         \x20 for (int i = 0; i < 8; ++i) v.val[i] = v.val[i] + v.val[i];\n\
         \x20 *reinterpret_cast<V *>(&o[(blockIdx.x * blockDim.x + threadIdx.x) * 8]) = v;\n\
         }\n\
         void host(at::Half *a) { k<at::Half><<<64, 128>>>(a, a); }\n",
    );
    let costs: Vec<_> = accesses(&file)
        .into_iter()
        .map(|(_, bytes, cost)| (bytes, cost))
        .collect();
    assert_eq!(costs, [(16, Some(16.0)), (16, Some(16.0))]);
    assert_eq!(instructions(&file, [Class::Ldg, Class::Stg]), [1, 1]);
}

#[test]
fn blocks_of_torch_have_as_many_threads_as_it_says() {
    let file = analyse(
        "__global__ void k(float *o, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) o[i] = 1; }\n\
         void host(float *o) {\n\
         \x20 k<<<at::cuda::detail::GET_BLOCKS(5000), at::cuda::detail::CUDA_NUM_THREADS>>>(o, 5000); }\n",
    );
    let launch = file.kernels[0].analysis.facts.launch;
    assert_eq!((launch.grid, launch.block), ([5, 1, 1], [1024, 1, 1]));
}
