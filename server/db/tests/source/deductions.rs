//! What a program leaves to the compiler to find out: arguments of class templates, the specialisation that is meant, constants.

use warplens_facts::facts::Certainty;

use crate::modern::{accesses, analyse};

/// The indices of the stores of the first kernel, as the analysis writes them.
fn indices(text: &str) -> Vec<String> {
    let file = analyse(text);
    let accesses = &file.kernels[0].analysis.facts.accesses;
    accesses.iter().map(|access| access.index.clone()).collect()
}

#[test]
fn the_arguments_of_a_class_template_follow_from_what_an_object_is_made_of() {
    let classes = "template <class T> struct Box { T v; __device__ Box(T x) : v(x) {} };\n\
         template <class T> struct Pair { T a, b; };\n\
         template <class T, int N> struct Row { T v[N]; };\n\
         template <class T, int N> Row(const T (&)[N]) -> Row<T, N>;\n";
    for made in [
        "Box b(p[threadIdx.x]); o[threadIdx.x] = b.v;",
        "Box b{p[threadIdx.x]}; o[threadIdx.x] = b.v;",
        "Box b = p[threadIdx.x]; o[threadIdx.x] = b.v;",
        "auto b = Box(p[threadIdx.x]); o[threadIdx.x] = b.v;",
        "o[threadIdx.x] = Box{p[threadIdx.x]}.v;",
        "Pair q{p[threadIdx.x], 2.f}; auto [x, y] = q; o[threadIdx.x] = x * y;",
        "std::pair q{p[threadIdx.x], 2}; o[threadIdx.x] = q.first;",
    ] {
        let file = analyse(&format!(
            "{classes}__global__ void k(const float *p, float *o) {{ {made} }}\n\
             void go(float *p, float *o) {{ k<<<1, 32>>>(p, o); }}\n"
        ));
        let moved: Vec<_> = accesses(&file)
            .into_iter()
            .map(|(_, bytes, cost)| (bytes, cost))
            .collect();
        assert_eq!(moved, [(4, Some(4.0)), (4, Some(4.0))], "{made}");
    }
}

#[test]
fn a_deduction_guide_says_what_is_deduced() {
    let text = "template <class T> struct Stride { static constexpr int value = sizeof(T); T v; };\n\
         template <class T> Stride(T) -> Stride<double>;\n\
         __global__ void k(float *o) { Stride s{1.f}; o[threadIdx.x * decltype(s)::value] = 1; }\n\
         void go(float *o) { k<<<1, 32>>>(o); }\n";
    assert_eq!(indices(text), ["threadIdx.x * 8"]);
}

#[test]
fn a_specialisation_that_asks_for_a_member_is_meant_where_it_is_there() {
    let text = |of: &str| {
        format!(
            "template <class T, class = void> struct Has {{ static constexpr int value = 1; }};\n\
             template <class T> struct Has<T, std::void_t<typename T::tag>> {{ static constexpr int value = 2; }};\n\
             template <class T, class = void> struct Wide {{ static constexpr int value = 1; }};\n\
             template <class T> struct Wide<T, std::enable_if_t<(sizeof(T) > 4)>> {{ static constexpr int value = 3; }};\n\
             template <class T, class = void> struct Sized {{ static constexpr int value = 1; }};\n\
             template <class T> struct Sized<T, std::void_t<decltype(std::declval<T>().size())>> {{ static constexpr int value = 4; }};\n\
             struct Tagged {{ using tag = int; }};\n\
             struct Plain {{ double v; __device__ int size() {{ return 1; }} }};\n\
             __global__ void k(float *o) {{ o[threadIdx.x * {of}::value] = 1; }}\n\
             void go(float *o) {{ k<<<1, 32>>>(o); }}\n"
        )
    };
    for (of, times) in [
        ("Has<Tagged>", " * 2"),
        ("Has<Plain>", ""),
        ("Has<int>", ""),
        ("Wide<Plain>", " * 3"),
        ("Wide<int>", ""),
        ("Sized<Plain>", " * 4"),
        ("Sized<Tagged>", ""),
    ] {
        assert_eq!(indices(&text(of)), [format!("threadIdx.x{times}")], "{of}");
    }
}

#[test]
fn constants_of_the_block_and_of_arrays_are_numbers() {
    for (body, index) in [
        (
            "enum class Step { two = 2, four = two * 2 }; constexpr int n = static_cast<int>(Step::four);",
            "threadIdx.x * 4",
        ),
        ("enum { six = 6 }; const int n = six;", "threadIdx.x * 6"),
        ("constexpr int n = flat[2];", "threadIdx.x * 4"),
        ("const int n = of_device[1];", "threadIdx.x * 5"),
        ("const int n = rows[1][0];", "threadIdx.x * 7"),
        (
            "int own[2][3] = {{1, 2, 3}, {4, 5, 6}}; const int n = own[1][1];",
            "threadIdx.x * 5",
        ),
        ("constexpr int n = square(3);", "threadIdx.x * 9"),
    ] {
        let text = format!(
            "constexpr int flat[4] = {{1, 2, 4, 8}};\n\
             __device__ constexpr int of_device[3] = {{3, 5}};\n\
             constexpr int rows[2][2] = {{{{5, 6}}, {{7}}}};\n\
             consteval int square(int x) {{ return x * x; }}\n\
             __global__ void k(float *o) {{ {body} o[threadIdx.x * n] = 1; }}\n\
             void go(float *o) {{ k<<<1, 32>>>(o); }}\n"
        );
        let file = analyse(&text);
        let facts = &file.kernels[0].analysis.facts;
        let store = facts.accesses.last().expect("a store");
        assert_eq!(store.index, index, "{body}");
        assert_eq!(store.certainty, Certainty::Exact, "{body}");
        assert_eq!(accesses(&file).len(), 1, "{body}");
    }
}

#[test]
fn a_scoped_enumerator_hides_no_variable() {
    let text = "__global__ void k(float *o) {\n\
         \x20 int two = 3;\n\
         \x20 enum class Step { two = 2 };\n\
         \x20 o[threadIdx.x * two] = 1;\n\
         }\n\
         void go(float *o) { k<<<1, 32>>>(o); }\n";
    assert_eq!(indices(text), ["threadIdx.x * 3"]);
}

#[test]
fn a_loop_over_a_range_may_declare_something_first() {
    let file = analyse(
        "__global__ void k(float *o) {\n\
         \x20 float a[3] = {1, 2, 3};\n\
         \x20 for (int i = 0; float x : a) o[threadIdx.x + 32 * i++] = x;\n\
         }\n\
         void go(float *o) { k<<<1, 32>>>(o); }\n",
    );
    let store = file.kernels[0]
        .analysis
        .facts
        .accesses
        .last()
        .expect("a store");
    assert_eq!(store.requests, Some(3.0));
    assert_eq!(store.transactions_per_request, Some(4.0));
}

#[test]
fn a_case_may_name_a_range() {
    let text = |n: i32| {
        format!(
            "__global__ void k(float *o, int n) {{\n\
             \x20 switch (n) {{\n\
             \x20 case 1 ... 9: o[threadIdx.x] = 1; break;\n\
             \x20 case 'a'...'z': o[threadIdx.x * 2] = 1; break;\n\
             \x20 default: o[threadIdx.x * 8] = 2;\n\
             \x20 }}\n\
             }}\n\
             void go(float *o) {{ k<<<1, 32>>>(o, {n}); }}\n"
        )
    };
    for (n, taken) in [(1, 0), (9, 0), (98, 1), (0, 2), (10, 2)] {
        let file = analyse(&text(n));
        let accesses = &file.kernels[0].analysis.facts.accesses;
        let requests: Vec<_> = accesses.iter().map(|access| access.requests).collect();
        let mut expected = [Some(0.0); 3];
        expected[taken] = Some(1.0);
        assert_eq!(requests, expected, "{n}");
    }
}
