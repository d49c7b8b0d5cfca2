//! What templates, constant functions and parameter packs compute while a program is compiled, as the accesses
//! that come of it.

use std::fs;
use std::sync::Arc;

use warplens_base::DiskFiles;
use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, FileAnalysis, Overrides, Project};
use warplens_facts::facts::{Op, SourceFacts, Space};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

fn analyse(text: &str) -> FileAnalysis {
    let root = tempfile::tempdir().expect("a folder");
    let path = root.path().join("a.cu");
    fs::write(&path, text).expect("written");
    let project = Project::new(Arc::new(DiskFiles::new()), vec![root.path().to_path_buf()]);
    let engine = Engine::with_project(Profiles::builtin(), project);
    let document = Document::new(text, Language::Cuda);
    let (settings, overrides) = (Settings::default(), Overrides::default());
    engine
        .analyze(&document, &path, &settings, &overrides, &Cancel::default())
        .expect("not cancelled")
}

/// Every access of the first kernel: space, operation, bytes per lane, index, and whether its figures are exact.
fn accesses(facts: &SourceFacts) -> Vec<String> {
    assert_eq!(facts.not_understood, [], "everything is understood");
    facts
        .accesses
        .iter()
        .map(|access| {
            format!(
                "{:?} {:?} {} {}[{}]{}",
                access.space,
                access.op,
                access.bytes_per_lane,
                access.array,
                access.index,
                if access.exact() { "" } else { " assumed" }
            )
        })
        .collect()
}

/// A kernel `k` with `declarations` before it, launched with 2 blocks of 32 threads.
#[track_caller]
fn check(declarations: &str, head: &str, body: &str, launch: &str, expected: &[&str]) {
    let text = format!(
        "{declarations}\n{head} {{ {body} }}\n\
         void host(float *a, float *b) {{ {launch}; }}\n"
    );
    let file = analyse(&text);
    assert_eq!(accesses(&file.kernels[0].analysis.facts), expected);
}

const PLAIN: &str = "__global__ void k(float *out, const float *in)";
const ON_TYPE: &str = "template <typename T> __global__ void k(T *out, const T *in)";

#[test]
fn constant_functions_give_numbers() {
    let functions = "\
        constexpr __host__ __device__ int pow2(int n) { int r = 1; while (r < n) { r *= 2; } return r; }\n\
        constexpr int log2(unsigned v) { return v <= 1 ? 0 : 1 + log2(v >> 1); }\n\
        constexpr int width(int t) { switch (t) { case 1: return 8; case 2: return 16; default: return 32; } }\n\
        struct Shape { int threads; int stages; constexpr Shape(int t, int s) : threads(t), stages(s) {} };\n\
        constexpr __device__ Shape shape(int d) { if (d == 64) { return Shape(128, 2); } return Shape(32, 1); }\n\
        constexpr __device__ int stages(int d) { return shape(d).stages; }";
    check(
        functions,
        PLAIN,
        "constexpr Shape s = shape(64); \
         __shared__ float a[pow2(33)][log2(32)][width(2)][s.threads][stages(64)]; \
         a[0][0][0][0][threadIdx.x % 2] = 1.0f; \
         out[threadIdx.x * pow2(5)] = in[threadIdx.x + s.threads];",
        "k<<<2, 32>>>(a, b)",
        &[
            "Shared Store 4 a[threadIdx.x % 2]",
            "Global Load 4 in[threadIdx.x + 128]",
            "Global Store 4 out[threadIdx.x * 8]",
        ],
    );
    let file = analyse(&format!(
        "{functions}\n{PLAIN} {{ __shared__ float a[pow2(33)][log2(32)][width(2)]; a[0][0][threadIdx.x % 16] = in[0]; \
         out[threadIdx.x] = a[0][0][0]; }}\nvoid host(float *a, float *b) {{ k<<<2, 32>>>(a, b); }}"
    ));
    let arrays = &file.kernels[0].analysis.facts.shared_arrays;
    assert_eq!(arrays[0].bytes, 64 * 5 * 16 * 4);
}

#[test]
fn a_constant_that_has_no_value_ends() {
    let file = analyse(
        "constexpr int forever(int n) { while (true) { n = n + 1; } return n; }\n\
         constexpr int again(int n) { return again(n) + 1; }\n\
         __global__ void k(float *out) { __shared__ float a[forever(1)]; a[0] = 1.0f; out[again(2)] = 2.0f; }",
    );
    // Neither the array's size nor the place of the store is made up.
    let facts = &file.kernels[0].analysis.facts;
    let store = facts.accesses.iter().find(|access| access.array == "out");
    assert!(store.is_some_and(|store| !store.exact()));
    assert!(facts.shared_arrays.iter().all(|array| array.bytes == 0));
}

#[test]
fn specialisations_see_the_defaults_of_the_template() {
    check(
        "enum Layout { ROWS = 0, COLUMNS = 10 };\n\
         constexpr __device__ Layout input() { return ROWS; }\n\
         template <int I_, int J_, typename T, Layout L = ROWS> struct Tile {};\n\
         template <int I_, int J_, typename T> struct Tile<I_, J_, T, ROWS> {\n\
           static constexpr int I = I_; static constexpr int J = J_; static constexpr int ne = I * J / 32; T x[ne];\n\
           static constexpr __device__ bool supported() { if (I == 16 && J == 8) return true; return false; }\n\
           static __device__ int row(int l) { if constexpr (I == 16) { return l * 8 + threadIdx.x / 4; } else { return -1; } }\n\
         };",
        ON_TYPE,
        "using A = Tile<16, 8, T, input()>; typedef Tile<16, 8, T> B; \
         if constexpr (!A::supported() || !B::supported()) { return; } \
         out[threadIdx.x + A::ne] = in[B::row(1) * A::J];",
        "k<float><<<2, 32>>>(a, b)",
        &[
            "Global Load 4 in[threadIdx.x / 4 * 8 + 64]",
            "Global Store 4 out[threadIdx.x + 4]",
        ],
    );
}

#[test]
fn packs_are_expanded_and_folded() {
    check(
        "template <typename... Ts> __device__ float total(Ts... ts) { return (0.0f + ... + ts); }",
        "template <typename... Ps> __global__ void k(float *out, Ps... ps)",
        "int i = threadIdx.x; out[i] = total(ps[i]...);",
        "k<<<2, 32>>>(a, b, b)",
        &[
            "Global Load 4 ps[threadIdx.x]",
            "Global Load 4 ps[threadIdx.x]",
            "Global Store 4 out[threadIdx.x]",
        ],
    );
    check(
        "template <typename T, typename... Ts> __device__ T sum(T first, Ts... rest) {\n\
           if constexpr (sizeof...(rest) == 0) { return first; } else { return first + sum(rest...); } }\n\
         template <int... Is> __device__ float strided(const float *p) { return (p[Is] + ...); }\n\
         template <int... Is> __device__ void clear(float *p, std::integer_sequence<int, Is...>) { ((p[Is] = 0.0f), ...); }",
        PLAIN,
        "out[sum(1, 2, 4)] = strided<0, 8>(in); clear(out, std::make_integer_sequence<int, 2>{});",
        "k<<<2, 32>>>(a, b)",
        &[
            "Global Load 4 in[0]",
            "Global Load 4 in[8]",
            "Global Store 4 out[7]",
            "Global Store 4 out[0]",
            "Global Store 4 out[1]",
        ],
    );
}

#[test]
fn traits_and_tuples_decide() {
    check(
        "template <typename T> struct is_wide : std::false_type {};\n\
         template <> struct is_wide<double> : std::true_type {};",
        ON_TYPE,
        "constexpr int n = std::is_same_v<T, double> && is_wide<T>::value ? 2 : 4; \
         using V = std::conditional_t<sizeof(T) == 8, double2, float4>; \
         const V v = reinterpret_cast<const V *>(in)[threadIdx.x]; \
         auto t = std::make_tuple(v.x, 3); \
         std::integral_constant<int, 7> seven; \
         out[threadIdx.x * n + std::get<1>(t) + seven] = std::get<0>(t);",
        "k<double><<<2, 32>>>((double *)a, (double *)b)",
        &[
            "Global Load 16 in[threadIdx.x]",
            "Global Store 8 out[threadIdx.x * 2 + 10]",
        ],
    );
}

#[test]
fn a_class_reaches_what_derives_from_it() {
    check(
        "template <typename D> struct Base { __device__ float run(const float *p) { return static_cast<D *>(this)->at(p); } };\n\
         struct Shifted : Base<Shifted> { int by; __device__ float at(const float *p) { return p[threadIdx.x + by]; } };",
        PLAIN,
        "Shifted s; s.by = 3; out[threadIdx.x] = s.run(in);",
        "k<<<2, 32>>>(a, b)",
        &[
            "Global Load 4 in[threadIdx.x + 3]",
            "Global Store 4 out[threadIdx.x]",
        ],
    );
}

#[test]
fn bit_fields_share_their_unit() {
    check(
        "struct Packed { unsigned low : 4; unsigned high : 28; float value; };",
        "__global__ void k(float *out, const Packed *in)",
        "out[threadIdx.x] = in[threadIdx.x].value + in[threadIdx.x].high;",
        "k<<<2, 32>>>(a, (const Packed *)b)",
        &[
            "Global Load 4 in[threadIdx.x * 2 + 1]",
            "Global Load 4 in[threadIdx.x * 2]",
            "Global Store 4 out[threadIdx.x]",
        ],
    );
}

#[test]
fn a_wrapper_named_as_what_it_calls_does_not_call_itself() {
    check(
        "namespace lib {\n\
           template <typename T> inline __device__ T min(T a, T b) { return ::min(a, b); }\n\
           template <typename T> inline __device__ T max(T a, T b) { return std::max(a, b); }\n\
           template <typename T, int op> struct Op { static __device__ T init() { return T(5); } };\n\
         }",
        PLAIN,
        "int i = lib::min((int)threadIdx.x, 16); out[lib::max(i, 2) + lib::Op<int, 3>::init()] = in[i];",
        "k<<<2, 32>>>(a, b)",
        &[
            "Global Load 4 in[min(threadIdx.x, 16)]",
            "Global Store 4 out[max(min(threadIdx.x, 16), 2) + 5]",
        ],
    );
}

/// What a kernel without a launch says it assumes of its template parameters, in their order.
fn assumed(text: &str) -> Vec<(String, String)> {
    let file = analyse(text);
    let facts = &file.kernels[0].analysis.facts;
    assert_eq!(facts.not_understood, [], "everything is understood");
    assert!(facts.accesses.iter().all(|access| !access.exact()));
    facts
        .assumptions
        .iter()
        .filter(|assumption| !matches!(assumption.symbol.kind(), "block" | "grid" | "alignment"))
        .map(|assumption| (assumption.symbol.to_string(), assumption.value.clone()))
        .collect()
}

#[test]
fn a_parameter_that_nothing_binds_is_what_the_program_shows() {
    let body = "{ int i = threadIdx.x; out[i] = op(out[i], in[i]); }";
    assert_eq!(
        assumed(&format!(
            "__device__ int count(int a) {{ return a; }}\n\
             __device__ float add(float a, float b) {{ return a + b; }}\n\
             __device__ float mul(float a, float b) {{ return a * b; }}\n\
             template <float (*op)(const float, const float)> __global__ void k(float *out, const float *in) {body}"
        )),
        [("op".to_owned(), "add (the first that fits)".to_owned())]
    );
    assert_eq!(
        assumed(&format!(
            "typedef float (*op_t)(float, float);\n\
             __device__ float first(const float *a, int b) {{ return a[b]; }}\n\
             __device__ float mul(float a, float b) {{ return a * b; }}\n\
             template <op_t op> __global__ void k(float *out, const float *in) {body}"
        )),
        [("op".to_owned(), "mul (the first that fits)".to_owned())]
    );
    assert_eq!(
        assumed(&format!(
            "struct One {{ __device__ float operator()(float a) {{ return a; }} }};\n\
             struct Two {{ __device__ float operator()(float a, float b) {{ return a + b; }} }};\n\
             template <typename Op> __global__ void k(float *out, const float *in, Op op) {body}"
        )),
        [("Op".to_owned(), "Two (the first that fits)".to_owned())]
    );
    assert_eq!(
        assumed(&format!(
            "template <typename Op> __global__ void k(float *out, const float *in, Op op) {body}"
        )),
        [(
            "Op".to_owned(),
            "a function of its arguments, its cost not known".to_owned()
        )]
    );
    assert_eq!(
        assumed(
            "enum Kind { ADD, MAX };\n\
             template <Kind op> struct Of;\n\
             template <> struct Of<MAX> { static __device__ float start() { return 1.0f; } };\n\
             template <Kind op> __global__ void k(float *out) { out[threadIdx.x] = Of<op>::start(); }"
        ),
        [("op".to_owned(), "MAX (the first that fits)".to_owned())]
    );
}

#[test]
fn a_type_whose_values_are_subscripts_is_an_integer() {
    let of = |body: &str| {
        assumed(&format!(
            "template <typename T, typename I> __global__ void k(T *out, const T *in, const I *at, I n) {{ {body} }}"
        ))
    };
    let taken = |ty: &str| {
        [
            ("T".to_owned(), "float".to_owned()),
            ("I".to_owned(), ty.to_owned()),
        ]
    };
    for shows in [
        "out[threadIdx.x] = in[at[threadIdx.x]];",
        "I i = threadIdx.x; out[i + 1] = in[i];",
        "out[threadIdx.x] = in[threadIdx.x * (n - 1)];",
        "if (at[threadIdx.x] & 1) out[threadIdx.x] = in[threadIdx.x];",
        "if (threadIdx.x % n == 0) out[threadIdx.x] = in[threadIdx.x];",
    ] {
        assert!(
            of(shows).starts_with(&taken("int")),
            "{shows}: {:?}",
            of(shows)
        );
    }
    for open in [
        "out[threadIdx.x] = in[threadIdx.x] * at[threadIdx.x];",
        "out[threadIdx.x] = in[int(at[threadIdx.x])] + n;",
    ] {
        assert!(
            of(open).starts_with(&taken("float")),
            "{open}: {:?}",
            of(open)
        );
    }
}

#[test]
fn an_unknown_functor_that_gets_a_pointer_is_a_loss() {
    let file = analyse(
        "template <typename Op> __global__ void k(float *out, Op op) { out[0] = op(out, 1); }",
    );
    assert_eq!(file.kernels[0].analysis.facts.not_understood.len(), 1);
}

#[test]
fn types_of_classes_within_classes_are_read() {
    let file = analyse(
        "template <class T, int N> struct Outer {\n\
         \x20 struct Inner {\n\
         \x20   using type = T;\n\
         \x20   static constexpr int n = N;\n\
         \x20   template <int M> struct Deep { using type = T; T v[M]; };\n\
         \x20 };\n\
         \x20 using Alias = Inner;\n\
         };\n\
         template <class K> __global__ void k(float *o, const float *a) {\n\
         \x20 using t = typename K::Inner::type;\n\
         \x20 using d = typename K::Alias::template Deep<4>::type;\n\
         \x20 int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
         \x20 typename K::Inner::template Deep<4> x;\n\
         \x20 x.v[1] = reinterpret_cast<const t *>(a)[i * K::Inner::n];\n\
         \x20 o[i] = reinterpret_cast<const d *>(a)[i] + x.v[1];\n\
         }\n\
         void run(float *o, const float *a) { k<Outer<float, 2>><<<64, 256>>>(o, a); }\n",
    );
    let facts = &file.kernels[0].analysis.facts;
    assert_eq!(facts.not_understood, []);
    let sectors: Vec<_> = facts
        .accesses
        .iter()
        .filter(|access| access.space == Space::Global)
        .map(|access| access.transactions_per_request)
        .collect();
    assert_eq!(sectors, [Some(8.0), Some(4.0), Some(4.0)]);
}

#[test]
fn a_constant_and_types_of_a_class_may_ask_for_one_another() {
    // The constant asks for a type of the class, and types of the class ask for the constant.
    let file = analyse(
        "using complex = other::complex<float>;\n\
         template <int N, class T> struct Traits {\n\
         \x20 using weight = T;\n\
         \x20 static constexpr bool is_complex = std::is_same_v<weight, complex>;\n\
         \x20 using pair = std::conditional_t<!is_complex, float2, float4>;\n\
         \x20 using weights = other::loader<weight, !is_complex ? N : 2 * N>;\n\
         \x20 using pairs = other::scan<pair, N>;\n\
         };\n\
         template <class K> __global__ void k(float *o, const float *a) {\n\
         \x20 constexpr bool complex_weights = K::is_complex;\n\
         \x20 using pair = typename K::pair;\n\
         \x20 int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
         \x20 pair p = reinterpret_cast<const pair *>(a)[i];\n\
         \x20 o[i] = complex_weights ? 0 : p.x + p.y;\n\
         }\n\
         template <class T> void run(float *o, const float *a) { k<Traits<4, T>><<<64, 256>>>(o, a); }\n",
    );
    let facts = &file.kernels[0].analysis.facts;
    assert_eq!(facts.not_understood, []);
    assert_eq!(facts.accesses[0].bytes_per_lane, 8);
}

#[test]
fn a_class_that_its_base_takes_as_a_parameter_is_known_to_others() {
    let file = analyse(
        "template <class V, class Order> struct Bits {\n\
         \x20 V *data;\n\
         \x20 static constexpr auto size = sizeof(V) * 8;\n\
         \x20 __device__ unsigned word(int at) const { return data[Order::place(at / 32)]; }\n\
         };\n\
         template <class V> struct Doubled : public Bits<V, Doubled<V>> {\n\
         \x20 static constexpr auto step = 2;\n\
         \x20 __device__ static int place(int at) { return at * step; }\n\
         };\n\
         using Words = Bits<unsigned, Doubled<unsigned>>;\n\
         __global__ void k(float *o, Words b) {\n\
         \x20 int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
         \x20 o[i] = b.word(i * 32);\n\
         }\n\
         void run(float *o, Words b) { k<<<64, 256>>>(o, b); }\n",
    );
    let facts = &file.kernels[0].analysis.facts;
    assert_eq!(facts.not_understood, []);
    assert_eq!(facts.accesses[0].transactions_per_request, Some(8.0));
}

#[test]
fn overloads_are_chosen_by_what_enables_them() {
    let scalars = "struct Scalar { float g; __device__ float value() const { return g; } };\n\
                   struct List { float *g; int n; __device__ int size() const { return n; } };\n\
                   template <class T> constexpr bool is_list = std::is_same_v<std::remove_cv_t<T>, List>;\n\
                   template <class T> using for_lists = std::enable_if_t<is_list<T>, int>;\n";
    let ways = [
        (
            "template <class T, for_lists<T> = 0>",
            "template <class T, std::enable_if_t<!is_list<T>, int> = 0>",
            "float",
        ),
        (
            "template <class T, class = std::enable_if_t<is_list<T>>>",
            "template <class T, typename std::enable_if<!is_list<T>, int>::type = 0>",
            "float",
        ),
        (
            "template <class T>",
            "template <class T>",
            "std::enable_if_t<is_list<T>, float>",
        ),
    ];
    for (lists, others, result) in ways {
        let file = analyse(&format!(
            "{scalars}struct Sums {{\n\
             \x20 {lists} __device__ {result} sum(T const &s) const {{ float x = 0; for (int i = 0; i < s.size(); i++) x += s.g[i]; return x; }}\n\
             \x20 {others} __device__ float sum(T const &s) const {{ return s.value() * 2; }}\n\
             }};\n\
             __global__ void k(float *o, const float *a, Sums sums) {{\n\
             \x20 int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
             \x20 o[i] = sums.sum(Scalar{{a[i]}});\n\
             }}\n"
        ));
        let facts = &file.kernels[0].analysis.facts;
        assert_eq!(facts.not_understood, [], "{lists}");
        assert_eq!(facts.accesses.len(), 2, "{lists}");
    }
}

#[test]
fn a_function_with_a_pack_is_less_special_than_one_without() {
    let file = analyse(
        "template <int Dim, class S, class Head, int D>\n\
         __device__ int offset(S (&strides)[D], int n, Head head) { return n + head * strides[Dim]; }\n\
         template <int Dim, class S, int D, class Head, class... Tail>\n\
         __device__ int offset(S (&strides)[D], int n, Head head, Tail &&...rest) {\n\
         \x20 return offset<Dim + 1>(strides, n + head * strides[Dim], std::forward<Tail>(rest)...);\n\
         }\n\
         template <int D> struct View {\n\
         \x20 int strides[D]; float *data;\n\
         \x20 template <class... Index> __device__ float &operator()(Index &&...index) const {\n\
         \x20   return data[offset<0>(strides, 0, std::forward<Index>(index)...)];\n\
         \x20 }\n\
         };\n\
         __global__ void k(View<2> v) { v(blockIdx.x * blockDim.x + threadIdx.x, 0) = 1; }\n",
    );
    let facts = &file.kernels[0].analysis.facts;
    assert_eq!(facts.not_understood, []);
    assert_eq!(facts.accesses.len(), 1);
}

#[test]
fn concepts_make_types_of_parameters_and_choose_overloads() {
    let file = analyse(
        "template <class T> concept tile = requires { typename T::type; } && (T::rows > 0);\n\
         template <class T> concept wide = tile<T> && T::columns > 4;\n\
         template <class T, int R, int C> struct Tile { using type = T; static constexpr int rows = R, columns = C; T v[C]; };\n\
         template <tile A> __device__ void load(A &to, const typename A::type *from) {\n\
         \x20 for (int i = 0; i < A::columns; i++) to.v[i] = from[i * 65536];\n\
         }\n\
         template <class A> requires (!wide<A>) __device__ float first(A &a, const float *b) { return a.v[0]; }\n\
         template <wide A> __device__ float first(A &a, const float *b) { return a.v[0] + b[0]; }\n\
         __global__ void k(float *o, const float *a) {\n\
         \x20 int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
         \x20 Tile<float, 2, 4> narrow;\n\
         \x20 Tile<float, 2, 8> wide;\n\
         \x20 load(narrow, a + i);\n\
         \x20 load(wide, a + i);\n\
         \x20 o[i] = first(narrow, a) + first(wide, a + i);\n\
         }\n\
         void run(float *o, const float *a) { k<<<64, 256>>>(o, a); }\n",
    );
    let facts = &file.kernels[0].analysis.facts;
    assert_eq!(facts.not_understood, []);
    let warps = 64.0 * 8.0;
    let loads: Vec<_> = facts
        .accesses
        .iter()
        .filter(|access| access.space == Space::Global && access.op == Op::Load)
        .map(|access| access.requests.map(|requests| requests / warps))
        .collect();
    assert_eq!(loads, [Some(4.0), Some(8.0), Some(1.0)]);
}

#[test]
fn which_of_two_concepts_that_hold_is_meant_is_not_guessed() {
    let program = |second: &str| {
        format!(
            "template <class T> concept near = T::near;\n\
             template <class T> concept far = {second};\n\
             struct Tile {{ static constexpr bool near = true, far = true; float v; }};\n\
             template <near A> __device__ void load(A &to, const float *from) {{ to.v = from[0]; }}\n\
             template <far A> __device__ void load(A &to, const float *from) {{ to.v = from[threadIdx.x * 32]; }}\n\
             __global__ void k(float *o, const float *a) {{ Tile t; load(t, a); o[threadIdx.x] = t.v; }}\n"
        )
    };
    for untold in [
        "T::far",
        "requires(T t) { t.v; }",
        "requires(T t) { t + t; }",
    ] {
        let file = analyse(&program(untold));
        let facts = &file.kernels[0].analysis.facts;
        assert_eq!(facts.not_understood.len(), 1, "{untold}");
        assert_eq!(facts.accesses.len(), 1, "{untold}: the store alone");
    }
    let file = analyse(&program("!T::far"));
    let facts = &file.kernels[0].analysis.facts;
    assert_eq!(facts.not_understood, []);
    assert_eq!(facts.accesses[0].transactions_per_request, Some(1.0));
}

#[test]
fn a_type_of_a_namespace_is_an_argument_of_a_function() {
    let file = analyse(
        "template <class T, class U, class Extent>\n\
         constexpr __host__ __device__ T load_chunk(U const *const data, Extent index) noexcept {\n\
         \x20 return reinterpret_cast<T const *>(data)[index];\n\
         }\n\
         __global__ void k(unsigned *o, const char *a) {\n\
         \x20 int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
         \x20 o[i] = load_chunk<std::uint32_t>(a, i) + load_chunk<cuda::std::uint32_t>(a, i + 32);\n\
         }\n",
    );
    let facts = &file.kernels[0].analysis.facts;
    assert_eq!(facts.not_understood, []);
    let bytes: Vec<_> = facts.accesses.iter().map(|a| a.bytes_per_lane).collect();
    assert_eq!(bytes, [4, 4, 4]);
}

#[test]
fn a_template_that_is_a_parameter_has_its_default() {
    let program = |given: &str| {
        format!(
            "template <class T> struct Sum {{ static constexpr T zero = T(0); __device__ T operator()(T a, T b) const {{ return a + b; }} }};\n\
             template <class T, template <class> class Op = Sum>\n\
             __global__ void k(const T *a, T *o) {{ T v = Op<T>::zero; v = Op<T>()(v, a[threadIdx.x]); o[threadIdx.x] = v; }}\n\
             void run(float *a) {{ k<{given}><<<1, 32>>>(a, a); }}\n"
        )
    };
    for given in ["float", "float, Sum"] {
        let file = analyse(&program(given));
        let kernel = &file.kernels[0].analysis;
        assert_eq!(kernel.facts.not_understood, [], "{given}");
        assert!(
            kernel
                .template_args
                .contains(&("Op".to_owned(), "Sum".to_owned())),
            "{given}: {:?}",
            kernel.template_args
        );
    }
}

#[test]
fn a_kernel_that_launches_others_shifts_by_nothing() {
    let assumed = |body: &str| {
        let text = format!(
            "template <int N> __global__ void inner(float *a) {{ a[threadIdx.x] = N; }}\n\
             template <int N> __global__ void k(float *a) {{ {body} }}\n"
        );
        let file = analyse(&text);
        let kernel = file
            .kernels
            .iter()
            .find(|one| one.analysis.facts.name == "k");
        let facts = &kernel.expect("the kernel").analysis.facts;
        let found = facts
            .assumptions
            .iter()
            .find(|one| one.symbol.is_named("N"));
        found.expect("assumed").value.clone()
    };
    assert_eq!(assumed("inner<N><<<N, N>>>(a);"), "32");
    assert_eq!(assumed("inner<N><<< N, 32 >>>(a);"), "32");
    assert_eq!(assumed("a[threadIdx.x << N] = 1;"), "5");
}
