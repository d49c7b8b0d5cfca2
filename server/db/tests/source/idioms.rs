//! What libraries of kernels write: classes that deduce, refer and wrap, as the accesses that come of them.

use crate::reads::{losses, sectors};

/// A kernel of that body, behind these declarations.
fn kernel(before: &str, body: &str) -> String {
    format!(
        "{before}\n__global__ void k(const float *a, float *o, int n) {{ int i = threadIdx.x; {body} }}\n"
    )
}

#[test]
fn a_specialisation_is_deduced_from_as_its_template_is() {
    let classes = "template <class T, int N> struct Pack { T w[N]; };\n\
                   template <int N> struct Pack<float, N> { float v[N]; __device__ Pack(const float *a) { v[0] = a[0]; } };\n";
    let function = "template <class T, int N> __device__ T first(const Pack<T, N> &of) { return of.v[0] * N; }";
    let text = kernel(
        &format!("{classes}{function}"),
        "Pack<float, 4> p(a + i); o[i] = first(p);",
    );
    assert_eq!(sectors(&text), [4.0, 4.0]);
}

#[test]
fn references_to_arrays_and_pointers_to_rows_are_declarations() {
    let tile = "struct Row { float at[32]; };";
    for declared in [
        "Row (&rows)[4] = tile;",
        "Row (*rows)[4] = &tile;",
        "Row (&rows)[4] = (tile);",
    ] {
        let read = if declared.contains('*') {
            "(*rows)[1].at[i]"
        } else {
            "rows[1].at[i]"
        };
        let text = kernel(
            tile,
            &format!("__shared__ Row tile[4]; {declared} {read} = a[i]; o[i] = {read};"),
        );
        let text = text.replace("(tile);", "tile;");
        assert_eq!(sectors(&text), [4.0, 1.0, 1.0, 4.0], "{declared}");
    }
    // A call whose result is assigned to is none.
    let call =
        "__device__ float *(&at(float *&p))[1]; __device__ float &slot(float *p) { return *p; }";
    assert_eq!(
        sectors(&kernel(call, "float *p = o + i; slot(p) = a[i];")),
        [4.0, 4.0]
    );
}

#[test]
fn members_are_known_in_defaults_of_template_parameters_and_in_lambdas() {
    let class = "template <int N> struct Of {\n\
                 \x20 static constexpr int extent = N; float scale;\n\
                 \x20 template <int M = extent> __device__ int rows() const { return M; }\n\
                 \x20 __device__ float at(const float *a, int i) const {\n\
                 \x20   auto read = [&] { return a[i * extent] * this->scale + scale; };\n\
                 \x20   return read();\n\
                 \x20 }\n\
                 };";
    let body = "Of<1> of{2.0f}; for (int r = 0; r < of.rows(); r++) o[i + r] = of.at(a, i);";
    assert_eq!(sectors(&kernel(class, body)), [4.0, 4.0]);
}

#[test]
fn what_a_reference_in_an_object_refers_to_has_its_members() {
    let class = "struct Args { const float *in; float *out; };\n\
                 struct Op { Args const &args; int id; __device__ Op(Args const &of, int i) : args(of), id(i) {}\n\
                 __device__ void put() { args.out[id] = args.in[id * 2]; } };";
    let body = "Args args{a, o}; Op op(args, i); op.put();";
    assert_eq!(sectors(&kernel(class, body)), [8.0, 4.0]);
    let class = "struct At { int &i; float scale; __device__ At(int &of) : i(of), scale(2) {} __device__ float of(const float *a) { i += 32; return a[i * 2]; } };";
    assert_eq!(
        sectors(&kernel(class, "At at(i); o[i] = at.of(a); o[i] = 1;")),
        [8.0, 4.0, 4.0]
    );
}

#[test]
fn an_array_of_bytes_is_the_object_that_a_reference_says() {
    let class = "struct Storage { float sums[32]; int id; };";
    let body = "extern __shared__ char bytes[]; auto &storage = reinterpret_cast<Storage &>(bytes);\n\
                storage.sums[i] = a[i]; __syncthreads(); o[i] = storage.sums[31 - i];";
    assert_eq!(sectors(&kernel(class, body)), [4.0, 1.0, 1.0, 4.0]);
}

#[test]
fn members_of_a_union_without_a_name_are_names_of_the_block() {
    let body = "union { float value; unsigned char bytes[4]; }; value = a[i]; o[i] = bytes[0];";
    assert_eq!(sectors(&kernel("", body)), [4.0, 4.0]);
}

#[test]
fn a_lambda_with_template_parameters_is_called_with_them() {
    let body = "auto put = [&]<bool Wide>() { if constexpr (Wide) o[i * 2] = a[i]; else o[i] = a[i]; };\n\
                put.template operator()<true>();";
    assert_eq!(sectors(&kernel("", body)), [4.0, 8.0]);
}

#[test]
fn an_object_of_a_dependent_type_is_made_in_an_expression() {
    let class = "template <class T> struct Tile { using type = T; T v[2]; };\n\
                 template <class L> __device__ L zeros() { L r; for (int i = 0; i < 2; ++i) r.v[i] = typename L::type{}; return r; }\n\
                 template <class L> __device__ float one() { return typename L::type(1); }";
    let body = "o[i] = zeros<Tile<float>>().v[1] + one<Tile<float>>();";
    assert_eq!(sectors(&kernel(class, body)), [4.0]);
}

#[test]
fn a_requires_expression_is_false_where_a_member_is_missing() {
    let class = "struct Near { float v; using near = int; }; struct Far { float w; __device__ int far() const; };\n";
    let concepts = [
        (
            "requires { typename T::near; }",
            "requires { typename T::near_by; }",
        ),
        ("requires(T t) { t.v; }", "requires(T t) { t.w; }"),
        (
            "requires(T t) { typename T::near; t.v; }",
            "requires(T t) { t.far(); }",
        ),
        (
            "requires(T t) { { t.v }; }",
            "requires(T t) { { t.w } -> std::convertible_to<float>; }",
        ),
    ];
    for (one, other) in concepts {
        let before = format!(
            "{class}template <class T> concept near = {one};\n\
             template <class T> concept far = {other};\n\
             template <near T> __device__ void load(T &to, const float *a, int i) {{ to.v = a[i]; }}\n\
             template <far T> __device__ void load(T &to, const float *a, int i) {{ to.w = a[i * 32]; }}"
        );
        let text = kernel(&before, "Near t; load(t, a, i); o[i] = t.v;");
        assert_eq!(sectors(&text), [4.0, 4.0], "{one}; {other}");
    }
    let text = kernel(
        &format!(
            "{class}template <class T> __device__ float get(T &t) {{ if constexpr (requires {{ t.w; }}) return t.w; else return t.v; }}"
        ),
        "Near t; t.v = a[i]; o[i] = get(t);",
    );
    assert_eq!(sectors(&text), [4.0, 4.0]);
}

#[test]
fn an_overload_whose_parameters_nothing_tells_is_not_called() {
    let before = "template <class T, class C = int> __device__ T load(const T *p, C i) { return p[i]; }\n\
                  template <int Axis, class T, class C = int> __device__ T load(const T *p, C i) { return p[i * 32 + Axis]; }";
    assert_eq!(sectors(&kernel(before, "o[i] = load(a, i);")), [4.0, 4.0]);
    assert_eq!(
        sectors(&kernel(before, "o[i] = load<1>(a, i);")),
        [32.0, 4.0]
    );
}

#[test]
fn an_operator_of_a_template_may_be_defined_outside_it() {
    let before = "template <class T, int N> struct View { T *data; __device__ T &operator[](int i); };\n\
                  template <class T, int N> __device__ T &View<T, N>::operator[](int i) { return data[i * N]; }";
    assert_eq!(
        sectors(&kernel(before, "View<float, 2> v{o}; v[i] = a[i];")),
        [4.0, 8.0]
    );
}

#[test]
fn the_bits_of_a_small_float_and_a_span_are_what_they_wrap() {
    let body = "__nv_fp8_e4m3 small = __nv_fp8_e4m3(a[i]); o[i] = small.__x;";
    assert_eq!(sectors(&kernel("", body)), [4.0, 4.0]);
    let body = "std::span<float> to(o, n); cuda::std::span<const float> from(a, n); if (i < to.size()) to[i] = from.subspan(32)[i];";
    assert_eq!(sectors(&kernel("", body)), [4.0, 4.0]);
}

#[test]
fn an_iterator_that_no_launch_binds_is_dereferenced_behind_arithmetic() {
    let text = "template <class It> __global__ void k(It first, int n, float *o) {\n\
                \x20 int i = threadIdx.x; if (i < n) { auto const &value = *(first + i); o[i] = value; }\n\
                }\n";
    assert_eq!(sectors(text), [4.0, 4.0]);
}

#[test]
fn a_function_that_only_synchronises_costs_its_kernel_nothing() {
    let before = "__device__ void meet() { __syncthreads(); }";
    assert_eq!(
        sectors(&kernel(before, "o[i] = a[i]; meet(); o[i + 32] = 1;")),
        [4.0, 4.0, 4.0]
    );
}

#[test]
fn a_recursive_template_with_the_name_of_a_builtin_is_itself() {
    let before = "template <int I, int N> __device__ void step(float *a) {\n\
                  \x20 if constexpr (I < N) { a[I * 32 + threadIdx.x] = 1; step<I + 1, N>(a); }\n}";
    assert_eq!(sectors(&kernel(before, "step<0, 3>(o);")), [4.0, 4.0, 4.0]);
}

#[test]
fn a_method_of_what_is_taken_for_a_number_is_not_understood() {
    let text = "template <class Set> __global__ void k(Set set, const float *a) { set.put(a[threadIdx.x]); }";
    assert_eq!(losses(text), 1);
    let text =
        "template <class T> __global__ void k(T *p) { p[threadIdx.x].x = p[threadIdx.x].size(); }";
    assert!(losses(text) > 0);
}

#[test]
fn a_friend_behind_its_specifiers_is_one() {
    for specifiers in [
        "__device__ friend",
        "__host__ __device__ friend",
        "friend __device__",
        "__device__ inline friend",
    ] {
        let class = format!(
            "template <class T> struct alignas(2 * sizeof(T)) Pair {{ T x, y;\n\
             \x20 {specifiers} Pair operator*(Pair p, Pair q) {{ return {{p.x * q.x, p.y * q.y}}; }}\n\
             \x20 {specifiers} T norm(Pair p) {{ return p.x * p.x; }} }};"
        );
        let body = "auto *in = (const Pair<float> *)a; auto *out = (Pair<float> *)o; out[i] = in[i] * in[i]; o[i] = norm(in[i]);";
        let text = kernel(&class, body);
        assert_eq!(losses(&text), 0, "{specifiers}");
        assert_eq!(sectors(&text), [8.0, 8.0, 8.0, 8.0, 4.0], "{specifiers}");
    }
}

#[test]
fn a_lambda_that_returns_a_reference_is_written_through() {
    for ty in ["float &", "auto &"] {
        let body = format!(
            "__shared__ float s[64]; auto at = [&](int j) -> {ty} {{ return s[j]; }}; at(i) = a[i]; __syncthreads(); o[i] = at(63 - i);"
        );
        let text = kernel("", &body);
        assert_eq!(sectors(&text), [4.0, 1.0, 1.0, 4.0], "{ty}");
    }
}

#[test]
fn members_have_the_alignment_that_they_say() {
    let class = "struct Row { char c; alignas(32) float v; };";
    let text = kernel(class, "o[i] = ((const Row *)a)[i].v;");
    assert_eq!(sectors(&text), [32.0, 4.0]);
    let text = kernel(class, "o[i * (sizeof(Row) / 64)] = a[i];");
    assert_eq!(sectors(&text), [4.0, 4.0]);
}

#[test]
fn what_follows_a_return_is_not_a_value() {
    let function = "template <int Y> __device__ int thread() { if constexpr (Y == 1) { return threadIdx.x; } return threadIdx.y * 7 + threadIdx.x; }";
    assert_eq!(
        sectors(&kernel(function, "o[thread<1>()] = a[thread<1>()];")),
        [4.0, 4.0]
    );
}

#[test]
fn a_difference_of_a_value_and_what_divides_it_is_a_remainder() {
    let body = "unsigned long t = threadIdx.x, p = t / 16 / 2; o[t - p * 32] = a[t - p * 32];";
    assert_eq!(sectors(&kernel("", body)), [4.0, 4.0]);
}

/// A pointer that a whole warp chooses goes to one array or the other: what a request takes is the same. Lanes that choose for
/// themselves take parts of both.
#[test]
fn a_pointer_is_chosen_among_arrays() {
    let table = "__device__ float table[1024];\n\
                 __device__ float at(const float *p, int i) { return p[i]; }";
    for chosen in [
        "const float *p = n > 3 ? a : o; o[i] = p[i];",
        "o[i] = at(n > 3 ? a : table, i);",
        "o[i] = at(blockIdx.x & 1 ? a : a + 4096, i);",
        "const bool w = true; o[i] = at(w ? table : a, i);",
    ] {
        assert_eq!(sectors(&kernel(table, chosen)), [4.0, 4.0], "{chosen}");
    }
    let strided = kernel(table, "const float *p = n > 3 ? a : o; o[i] = p[8 * i];");
    assert_eq!(sectors(&strided), [32.0, 4.0]);
    let apart = kernel(table, "const float *p = i & 1 ? a : o; o[i] = p[i];");
    assert_eq!(sectors(&apart), [8.0, 4.0], "four of each array");
}

/// Setting a generator of cuRAND up costs what its steps cost, and numbers come of its state.
#[test]
fn generators_of_random_numbers_are_what_they_do() {
    let text = "#include <curand_kernel.h>\n\
        __global__ void init(curandState *s, unsigned long long seed) { int i = threadIdx.x; curand_init(seed, i, 0, &s[i]); }\n";
    assert_eq!(losses(text), 0);
    let philox = kernel(
        "",
        "curandStatePhilox4_32_10_t s; curand_init(n, i, 0, &s); float4 r = curand_uniform4(&s); o[i] = r.x + r.w;",
    );
    assert_eq!(losses(&philox), 0);
    assert_eq!(sectors(&philox), [4.0]);
}

#[test]
fn an_object_whose_class_converts_to_a_pointer_is_that_pointer() {
    let classes = "template <class T> struct SharedMemory {\n\
                     __device__ operator T *() { extern __shared__ int memory[]; return (T *)memory; }\n\
                     __device__ operator const T *() const { extern __shared__ int memory[]; return (T *)memory; }\n};\n\
                   __device__ void store(float *to, int at, float value) { to[at] = value; }\n";
    for store in [
        "float *s = SharedMemory<float>(); s[i] = a[i];",
        "float *s; s = SharedMemory<float>(); s[i] = a[i];",
        "auto *s = static_cast<float *>(SharedMemory<float>()); s[i] = a[i];",
        "SharedMemory<float> of; float *s = of; of[i] = a[i];",
        "SharedMemory<float> of; float *s = of; *(of + i) = a[i];",
        "SharedMemory<float> of; float *s = of; store(of, i, a[i]);",
    ] {
        let text = kernel(
            classes,
            &format!("{store} __syncthreads(); o[i] = s[255 - i];"),
        );
        // The load and the store of global memory are four sectors each, those of shared memory between them one wavefront each.
        assert_eq!(sectors(&text), [4.0, 1.0, 1.0, 4.0], "{store}");
        assert_eq!(losses(&text), 0, "{store}");
    }
}

#[test]
fn a_number_is_not_made_of_an_objects_pointer() {
    let both = "struct Both { float *p; int n; __device__ operator float *() const { return p; } \
                __device__ operator int() const { return n; } };\n";
    // The offset is the integer, 1: lanes read 32 consecutive elements from the second on, which lie in five sectors.
    let text = kernel(both, "Both v{o, 1}; int m = v; o[i] = a[i + m];");
    assert_eq!(sectors(&text), [5.0, 4.0]);
}

#[test]
fn what_begins_a_line_within_a_kernel_ends_none() {
    let text = "template <class T> __global__ void k(T *o) {\nextern __shared__ float all[];\n\
                all[threadIdx.x] = 1; __syncthreads(); o[threadIdx.x] = all[threadIdx.x];\n}\n\
                void run(float *o) { k<float><<<1, 32, 128>>>(o); }\n";
    assert_eq!(crate::reads::sectors(text), [1.0, 1.0, 4.0]);
}
