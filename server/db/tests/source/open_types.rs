//! Template parameters that nothing binds, and constants that are not known: what is taken for them, and what is not invented.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use warplens_base::{NoFiles, OpenFiles};
use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, FileAnalysis, Overrides, Project, Variants};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

use crate::reads::{analysed, launched, losses, sectors};

fn taken(text: &str) -> Vec<(String, String)> {
    let file = analysed(text, &Overrides::default());
    file.kernels[0].analysis.template_args.clone()
}

fn is(of: &[(String, String)], name: &str) -> String {
    let found = of.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.clone()).unwrap_or_default()
}

/// The first of these files, analysed beside the others.
fn first_of(files: &[(&str, &str)]) -> FileAnalysis {
    let open = Arc::new(OpenFiles::new(NoFiles));
    for (name, text) in files {
        open.set(&Path::new("/p").join(name), *text);
    }
    let project = Project::new(open, vec![PathBuf::from("/p")]);
    let engine = Engine::with_project(Profiles::builtin(), project);
    let (name, text) = files[0];
    let overrides = Overrides {
        variants: Variants::All,
        ..Overrides::default()
    };
    let document = Document::new(text, Language::Cuda);
    let file = engine.analyze(
        &document,
        &Path::new("/p").join(name),
        &Settings::default(),
        &overrides,
        &Cancel::default(),
    );
    file.expect("not cancelled")
}

const LOAD: &str = "template <int NT, class It, class T>\n\
     __device__ void load(int n, It data, int t, T *reg) { if (t < n) reg[0] = data[NT * 2 + t]; }\n";

#[test]
fn an_iterator_is_a_pointer_where_a_function_that_it_is_handed_to_subscripts_it() {
    let text = format!(
        "{LOAD}template <class It, class T> __global__ void k(It in, int n, T *out) {{\n\
             T x[1]; load<64>(n, in, threadIdx.x, x); out[threadIdx.x] = x[0];\n}}\n"
    );
    assert_eq!(is(&taken(&text), "It"), "float *");
    assert_eq!(losses(&text), 0);
}

#[test]
fn what_is_called_where_it_is_handed_to_is_a_function_and_none_of_the_host() {
    let text = "struct Host { bool operator()(const std::string &l, const std::string &r) const { return eq(l, r); } };\n\
                struct Device { __device__ float operator()(float a, float b) const { return a + b; } };\n\
                template <class Op, class T> __device__ T go(Op f, T a, T b) { return f(a, b); }\n\
                template <class Op> __global__ void k(float *x, Op op) { x[threadIdx.x] = go(op, x[threadIdx.x], 1.0f); }\n";
    assert_eq!(is(&taken(text), "Op"), "Device");
    assert_eq!(losses(text), 0);
    // Of the host's alone none is taken.
    let text = text.replace("struct Device { __device__ float", "struct Other { float");
    assert_eq!(is(&taken(&text), "Op"), "any functor");
    assert_eq!(losses(&text), 0);
}

const TRAITS: &str = "template <class T_, int H_, int W_> struct Base { enum { H = H_ }; enum { THREADS = W_ * 32 }; using T = T_; };\n\
     template <class T_, int H_, int W_, class B = Base<T_, H_, W_>> struct Traits : public B { enum { N = 16 / sizeof(T_) }; };\n\
     template <class K> __global__ void k(void *p) {\n\
         typename K::T *x = static_cast<typename K::T *>(p);\n\
         x[blockIdx.x * K::THREADS + threadIdx.x] *= 2;\n\
     }\n\
     template <class T, int H, int W> void launch_(void *p) {\n\
         using Traits = Traits<T, H, W>;\n\
         k<Traits><<<10, Traits::THREADS>>>(p);\n\
     }\n";

#[test]
fn who_includes_a_header_says_what_its_launchers_leave_open() {
    let includer = "#include \"k.cuh\"\n#define RUN(T, H, W) void run_##T(void *p) { launch_<T, H, W>(p); }\nRUN(float, 64, 4)\nRUN(double, 64, 8)\n";
    let file = first_of(&[("k.cuh", TRAITS), ("a.cu", includer)]);
    let blocks: Vec<[u64; 3]> = file
        .kernels
        .iter()
        .map(|kernel| kernel.analysis.facts.launch.block)
        .collect();
    assert_eq!(blocks.len(), 2, "{blocks:?}");
    assert!(
        blocks.contains(&[128, 1, 1]) && blocks.contains(&[256, 1, 1]),
        "{blocks:?}"
    );
    for kernel in &file.kernels {
        assert!(kernel.analysis.launch_known);
        assert_eq!(kernel.analysis.facts.not_understood, []);
    }
}

#[test]
fn a_launcher_that_nothing_calls_launches_no_block_of_no_threads() {
    let file = launched(TRAITS);
    let kernel = &file.kernels[0].analysis;
    assert!(!kernel.launch_known, "{:?}", kernel.facts.launch);
    assert_eq!(kernel.facts.not_understood, []);
}

#[test]
fn an_enumerator_whose_value_is_not_known_is_not_the_next_number() {
    let text = "enum { A = unread(3), B, C = 7, D };\n\
                __global__ void k(float *x) { x[threadIdx.x * D] = 1; }\n";
    assert_eq!(sectors(text), [32.0]);
    assert!(losses(&text.replace("* D", "* B")) > 0);
    let of_class = "struct S { enum { A = unread(3), B }; };\n\
                    __global__ void k(float *x) { x[threadIdx.x * S::B] = 1; }\n";
    let file = analysed(of_class, &Overrides::default());
    assert!(!file.kernels[0].analysis.facts.accesses[0].exact());
}

#[test]
fn a_member_that_is_defined_for_one_instance_is_of_that_one() {
    let text = "template <int I> struct Get { template <class T> static __device__ int of(const T &v); };\n\
                template <> template <class T> __device__ int Get<0>::of(const T &v) { return v.x; }\n\
                template <> template <class T> __device__ int Get<1>::of(const T &v) { return v.y; }\n\
                struct P { int x, y; };\n\
                __global__ void k(float *a) { P p{(int)threadIdx.x, 8 * (int)threadIdx.x}; a[Get<I>::of(p)] = 1; }\n";
    assert_eq!(sectors(&text.replace("<I>", "<0>")), [4.0]);
    assert_eq!(sectors(&text.replace("<I>", "<1>")), [32.0]);
}

#[test]
fn a_nested_template_takes_defaults_and_functions_from_the_class_around_it() {
    let text = "template <int W> struct Sort {\n\
                    static __device__ void swap(float *k, int a, int b) { if (k[b] < k[a]) { float t = k[a]; k[a] = k[b]; k[b] = t; } }\n\
                    template <int R, bool More = 2 * R < W> struct Merge {\n\
                        static __device__ void run(float *k) { Merge<2 * R>::run(k); swap(k, 0, R); }\n\
                    };\n\
                    template <int R> struct Merge<R, false> { static __device__ void run(float *k) { swap(k, 0, R); } };\n\
                    static __device__ void run(float *k) { Merge<1>::run(k); }\n\
                };\n\
                __global__ void k(float *a) {\n\
                    float x[8];\n\
                    for (int i = 0; i < 8; i++) x[i] = a[threadIdx.x + 32 * i];\n\
                    Sort<8>::run(x);\n\
                    for (int i = 0; i < 8; i++) a[threadIdx.x + 32 * i] = x[i];\n\
                }\n";
    assert_eq!(losses(text), 0);
}

#[test]
fn names_of_a_class_that_is_a_parameter_may_be_qualified_twice() {
    let text = "struct Config { enum class Mode { A, B = 8 }; };\n\
                template <class C, typename C::Mode M> __global__ void k(float *a) {\n\
                    if constexpr (M == C::Mode::B) a[threadIdx.x * (int)C::Mode::B] = 1; else a[threadIdx.x] = 1;\n\
                }\n\
                void run(float *a) { k<Config, Config::Mode::B><<<1, 32>>>(a); }\n";
    assert_eq!(sectors(text), [32.0]);
}

#[test]
fn an_array_of_the_library_is_taken_apart_by_value() {
    let text = "__global__ void k(const float *a, float *o) {\n\
                    int i = threadIdx.x; std::array<float, 2> y{a[i], a[i + 64]};\n\
                    auto [p, q] = y; std::swap(p, q); o[i] = p * q + y[0];\n\
                }\n";
    assert_eq!(sectors(text), [4.0, 4.0, 4.0]);
}

#[test]
fn layouts_of_fragments_are_types() {
    let text = "template <class L> __global__ void k(float *a) {\n\
                    if (std::is_same<L, nvcuda::wmma::col_major>::value) a[threadIdx.x * 8] = 1; else a[threadIdx.x] = 1;\n\
                }\n\
                void run(float *a) { k<nvcuda::wmma::L><<<1, 32>>>(a); }\n";
    assert_eq!(
        sectors(&text.replace("wmma::L>", "wmma::row_major>")),
        [4.0]
    );
    assert_eq!(
        sectors(&text.replace("wmma::L>", "wmma::col_major>")),
        [32.0]
    );
}

#[test]
fn a_tensor_that_lies_in_one_piece_is_a_condition_and_no_doubt_of_other_accesses() {
    let text = "__global__ void k(at::PackedTensorAccessor32<float, 2> t, float *o) {\n\
                    int i = blockIdx.x * 256 + threadIdx.x; o[i] = t[blockIdx.y][i];\n\
                }\n\
                void run(at::PackedTensorAccessor32<float, 2> t, float *o) { k<<<dim3(4, 5), 256>>>(t, o); }\n";
    let file = analysed(text, &Overrides::default());
    let accesses = &file.kernels[0].analysis.facts.accesses;
    assert!(accesses.iter().all(warplens_facts::facts::Access::exact));
    let of = |array: &str| {
        let mut all = accesses.iter();
        let found = all.find(|access| access.array.starts_with(array));
        found.expect("the access").constraints.clone()
    };
    assert_eq!(of("o"), [] as [&str; 0]);
    let layout = "t is contiguous in the last dimension".to_owned();
    assert!(of("t").contains(&layout), "{:?}", of("t"));
}

#[test]
fn a_block_that_is_at_most_a_number_is_that_for_large_sizes() {
    let text = "__global__ void k(float *a, int n) { a[threadIdx.x] = n; }\n\
                void run(float *a, int n) { k<<<10, std::min(n, 512)>>>(a, n); }\n";
    let file = analysed(text, &Overrides::default());
    let launch = &file.kernels[0].analysis.facts.launch;
    assert_eq!(launch.block, [512, 1, 1]);
    assert!(launch.block_source.is_assumption());
}

#[test]
fn the_type_of_a_tensors_data_says_what_a_template_is_launched_with() {
    let text = "template <class T> __global__ void k(const T *a, T *o) { o[threadIdx.x] = a[threadIdx.x]; }\n\
                void run(torch::Tensor x, Pointer *y) { k<<<1, 32>>>(x.data_ptr<double>(), x.data_ptr<double>()); }\n";
    assert_eq!(is(&taken(text), "T"), "double");
    let through = "struct Mat { double *m; double *data() const { return m; } };\n\
                   template <class T> __global__ void k(T *o) { o[threadIdx.x] = 1; }\n\
                   void run(Mat *y) { k<<<1, 32>>>(y->data()); }\n";
    assert_eq!(is(&taken(through), "T"), "double");
}

#[test]
fn a_type_that_the_function_around_a_lambda_names_is_that() {
    let text = "template <class T, class F> __global__ void k(T *x, F f) { x[threadIdx.x] = f(x[threadIdx.x]); }\n\
                template <class T> struct Opt {\n\
                    using R = double;\n\
                    void step(float *x) { k<<<1, 32>>>(x, [] __device__ (R c) { return R(c) + (R)(0.5 * 0.25); }); }\n\
                };\n";
    assert_eq!(losses(text), 0);
}

#[test]
fn the_macros_of_an_extension_decide_what_its_headers_declare() {
    let header = "#ifdef WITH_CUDA\ntypedef short3 point;\n#endif\n";
    let kernel = "#include \"math.h.inc\"\n__global__ void k(point *p) { p[threadIdx.x].x = 1; }\n";
    let setup = "if torch.cuda.is_available():\n    define_macros += [(\"WITH_CUDA\", None)]\n";
    let files = [
        ("k.cu", kernel),
        ("math.h.inc", header),
        ("setup.py", setup),
    ];
    let with = first_of(&files);
    assert_eq!(with.kernels[0].analysis.facts.not_understood, []);
    let without = first_of(&files[..2]);
    assert_ne!(without.kernels[0].analysis.facts.not_understood, []);
}

#[test]
fn banks_take_turns_whatever_constant_lies_before_an_array() {
    let text = "template <class T> struct Traits { static constexpr int bytes = sizeof(typename other::Block<T>::Storage); };\n\
                template <class K> __global__ void k(float *o) {\n\
                    extern __shared__ char all[];\n\
                    TYPE *part = reinterpret_cast<TYPE *>(all + K::bytes);\n\
                    part[threadIdx.x * STRIDE] = 1; __syncthreads(); o[threadIdx.x] = part[threadIdx.x * STRIDE];\n\
                }\n\
                void run(float *o) { k<Traits<float>><<<1, 32, 65536>>>(o); }\n";
    let passes = |ty: &str, stride: &str| {
        let file = analysed(
            &text.replace("TYPE", ty).replace("STRIDE", stride),
            &Overrides::default(),
        );
        let accesses = &file.kernels[0].analysis.facts.accesses;
        let store = accesses
            .iter()
            .find(|access| access.passes_per_request.is_some());
        store.map(|store| (store.passes_per_request, store.exact()))
    };
    assert_eq!(passes("float", "1"), Some((Some(1.0), true)));
    assert_eq!(passes("float", "2"), Some((Some(2.0), true)));
    assert_eq!(passes("double", "1"), Some((Some(2.0), true)));
    // Bytes of one word may lie in two.
    assert_eq!(passes("char", "1"), None);
}

#[test]
fn who_asks_a_tensor_for_a_stride_depends_on_how_it_lies() {
    let text = "__global__ void k(at::PackedTensorAccessor32<float, 2> t, float *o) {\n\
                    int i = blockIdx.x * 256 + threadIdx.x; o[i * t.stride(1)] = t[blockIdx.y][i];\n\
                }\n\
                void run(at::PackedTensorAccessor32<float, 2> t, float *o) { k<<<dim3(4, 5), 256>>>(t, o); }\n";
    let file = analysed(text, &Overrides::default());
    let accesses = &file.kernels[0].analysis.facts.accesses;
    assert!(!accesses.iter().any(warplens_facts::facts::Access::exact));
}

#[test]
fn a_copy_of_bytes_is_aligned_by_nothing() {
    let text = "__global__ void k(const float *p, const int *at, float4 *o) {\n\
                    float4 x; COPY; o[threadIdx.x] = x;\n\
                }\n\
                void run(const float *p, const int *at, float4 *o) { k<<<1, 32>>>(p, at, o); }\n";
    let exact = |copy: &str| {
        let file = analysed(&text.replace("COPY", copy), &Overrides::default());
        let accesses = &file.kernels[0].analysis.facts.accesses;
        accesses[accesses.len() - 2].exact()
    };
    // One lane of a sector each: in the middle of it or not, but for a start that is no multiple of the vector.
    assert!(exact(
        "x = *(const float4 *)(p + at[blockIdx.x] + threadIdx.x * 8)"
    ));
    assert!(!exact(
        "memcpy(&x, p + at[blockIdx.x] + threadIdx.x * 8, 16)"
    ));
}

#[test]
fn patterns_may_leave_out_what_defaults_give_and_name_each_number() {
    let text = "struct Alloc {};\n\
                template <class T, class A = Alloc> struct Buf {};\n\
                template <class T> struct Step { static constexpr int n = 1; };\n\
                template <class T> struct Step<Buf<T>> { static constexpr int n = 2; };\n\
                template <size_t A, size_t B> struct Step<std::index_sequence<A, B>> { static constexpr int n = A + B; };\n\
                __global__ void k(float *o) { o[threadIdx.x * Step<OF>::n] = 1; }\n";
    assert_eq!(sectors(&text.replace("OF", "int")), [4.0]);
    assert_eq!(sectors(&text.replace("OF", "Buf<int>")), [8.0]);
    assert_eq!(
        sectors(&text.replace("OF", "std::index_sequence<3, 5>")),
        [32.0]
    );
}

#[test]
fn loops_that_lambdas_unroll_within_each_other_are_read() {
    let text = "template <int N, class F> __device__ void unrolled(F &&f) {\n\
                    auto call = [&]<int... I>(std::integer_sequence<int, I...>) { (f.template operator()<I>(), ...); };\n\
                    call(std::make_integer_sequence<int, N>());\n\
                }\n\
                __global__ void k(const float *a, float *o) {\n\
                    unrolled<2>([&]<int i>() { unrolled<2>([&]<int j>() { o[(i * 2 + j) * 32 + threadIdx.x] = a[threadIdx.x * 8]; }); });\n\
                }\n";
    assert_eq!(losses(text), 0);
    assert_eq!(sectors(text).len(), 8);
}

#[test]
fn what_is_an_element_of_an_array_is_an_integer() {
    let text = |index: &str| {
        format!(
            "template <typename T, typename K, typename I>\n\
             __global__ void k(const T *a, const K keys, T *o, I rows, I columns) {{\n\
             I i = (I)blockIdx.x * blockDim.x + threadIdx.x;\n\
             auto key = keys[i]; atomicAdd({index}, a[i] * a[i]); }}\n"
        )
    };
    for index in [
        "o + i * columns + key",
        "&o[key]",
        "o + (key & 7)",
        "o + key % 5",
    ] {
        let text = text(index);
        assert_eq!(losses(&text), 0, "{index}");
        let taken = taken(&text);
        assert_eq!(
            [is(&taken, "T"), is(&taken, "K"), is(&taken, "I")],
            ["float", "int *", "int"],
            "{index}"
        );
    }
}

#[test]
fn a_member_of_an_open_class_is_no_class_of_that_name_elsewhere() {
    // PyTorch has an `at::ScalarType`.
    let text = "template <typename S> __global__ void k(S *d) { d[threadIdx.x] = d[threadIdx.x] + d[1]; }\n\
                template <typename V> void run(const V &x) { typedef typename V::ScalarType Scalar;\n\
                Scalar *d = make<Scalar>(); k<Scalar><<<1, 64>>>(d); }\n";
    assert_eq!(losses(text), 0);
    assert_eq!(is(&taken(text), "S"), "float");
}

#[test]
fn an_object_that_is_a_number_divides_as_one() {
    let text = |class: &str| {
        format!(
            "{class}\n__global__ void k(int *o, D d) {{ int x = threadIdx.x; x /= d; o[x] = x; }}\n\
             void run(int *o, D d) {{ k<<<1, 32>>>(o, d); }}\n"
        )
    };
    let number = "struct D { int d; __device__ operator int() const { return 8; } };";
    assert_eq!(sectors(&text(number)), [1.0]);
    let own = "struct D { int d; };\n__device__ int &operator/=(int &a, const D &d) { a = a * 8; return a; }";
    assert_eq!(sectors(&text(own)), [32.0]);
    assert!(
        losses(&text("struct D { int d; };")) > 0,
        "no operator takes it"
    );
}
