//! What declarations decide: where members lie, arguments that a call leaves out, which template a launch is of, ranges of threads.

use warplens_facts::facts::{Access, Certainty};

use crate::modern::analyse;
use crate::reads::losses;

fn accesses(text: &str) -> Vec<Access> {
    let file = analyse(text);
    file.kernels[0].analysis.facts.accesses.clone()
}

/// Where each thread stores that is `sizeof` of this apart.
fn size_of(declared: &str, ty: &str) -> String {
    let text = format!(
        "{declared}\n__global__ void k(char *out) {{ out[threadIdx.x * sizeof({ty})] = 1; }}\n"
    );
    accesses(&text)[0].index.clone()
}

/// As gcc and nvcc lay them out on x86-64.
#[test]
fn members_lie_where_the_abi_says() {
    for (declared, ty, size) in [
        (
            "#pragma pack(push, 1)\nstruct T { char a; float b; };\n#pragma pack(pop)",
            "T",
            5,
        ),
        (
            "#pragma pack(push, 1)\nstruct S { char a; float b; };\n#pragma pack(pop)\nstruct T { char a; float b; };",
            "T",
            8,
        ),
        (
            "struct __attribute__((packed)) T { char a; float b; };",
            "T",
            5,
        ),
        (
            "struct A { __device__ A() {} int x; char c; }; struct T : A { char d; };",
            "T",
            8,
        ),
        (
            "struct A { int x; char c; }; struct T : A { char d; };",
            "T",
            12,
        ),
        (
            "class A { public: int x; char c; }; struct T : A { char d; };",
            "T",
            12,
        ),
        (
            "class A { int x; char c; }; struct T : A { char d; };",
            "T",
            8,
        ),
        ("struct A {}; struct T : A { float x; };", "T", 4),
        ("struct T { virtual ~T(); float x; };", "T", 16),
        (
            "struct A { virtual void f() = 0; }; struct T : A { void f() override {} float x; };",
            "T",
            16,
        ),
        ("struct T { int a : 20; int b : 20; char c; };", "T", 8),
        (
            "struct T { unsigned a : 3; unsigned b : 29; unsigned c : 4; };",
            "T",
            8,
        ),
        ("struct T { char a; alignas(16) float b; };", "T", 32),
    ] {
        assert_eq!(
            size_of(declared, ty),
            format!("threadIdx.x * {size}"),
            "{declared}"
        );
    }
}

#[test]
fn an_alignment_that_is_computed_decides_how_an_object_is_moved() {
    let moved = |align: &str| {
        accesses(&format!(
            "template <int N> class {align} Number {{ public: unsigned part[N / 32]; }};\n\
             __global__ void k(Number<256> *a, const Number<256> *b) {{ a[threadIdx.x] = b[threadIdx.x]; }}\n"
        ))[0]
            .bytes_per_lane
    };
    assert_eq!(
        moved("__align__(((N + 127) / 128) & 1 ? (((N + 63) / 64) & 1 ? 8 : 16) : 32)"),
        16
    );
    assert_eq!(moved("__align__((N > 256) ? 16 : 8)"), 8);
    assert_eq!(moved("alignas(N / 16)"), 16);
    assert_eq!(moved(""), 4);
}

#[test]
fn a_call_leaves_out_what_a_declaration_gives() {
    let member = "template <int N> struct Set {\n\
        \x20 int *keys, *more;\n\
        \x20 __device__ Set(int *k, int *m) : keys(k), more(m) {}\n\
        \x20 __device__ void clear(bool few = false);\n\
        };\n\
        template <int N> __device__ void Set<N>::clear(bool few) {\n\
        \x20 keys[threadIdx.x] = -1;\n\
        \x20 if (few) return;\n\
        \x20 more[threadIdx.x + N] = -1;\n\
        }\n";
    let kernel = |call: &str| {
        format!("{member}__global__ void k(int *a, int *b) {{ Set<64> set(a, b); set.{call}; }}\n")
    };
    assert_eq!(losses(&kernel("clear()")), 0);
    let indices = |text: &str| -> Vec<String> {
        accesses(text)
            .into_iter()
            .map(|access| access.index)
            .collect()
    };
    assert_eq!(
        indices(&kernel("clear()")),
        ["threadIdx.x", "threadIdx.x + 64"]
    );
    assert_eq!(
        indices(
            "__device__ float twice(const float *p, int at = 3);\n\
             __global__ void k(float *o, const float *p) { o[threadIdx.x] = twice(p + threadIdx.x); }\n\
             __device__ float twice(const float *p, int at) { return 2.f * p[at]; }\n"
        ),
        ["threadIdx.x + 3", "threadIdx.x"]
    );
}

#[test]
fn an_array_is_a_template_argument_and_a_friend_sees_its_class() {
    let text = "__device__ __constant__ const unsigned P[8] = {1, 2, 3, 4, 5, 6, 7, 8};\n\
        template <int N, const unsigned M[N / 32]> struct Field {\n\
        \x20 static const int n = N / 32;\n\
        \x20 unsigned part[n];\n\
        \x20 __device__ void reduce() { for (int i = 0; i < n; i++) part[i] -= M[i]; }\n\
        \x20 friend __device__ void zero(Field &a, bool set) { for (int i = 0; i < n; i++) a.part[i] = set ? 0 : a.part[i]; }\n\
        };\n\
        __global__ void k(Field<256, P> *a, bool set) { Field<256, P> x = a[threadIdx.x]; x.reduce(); zero(x, set); a[threadIdx.x] = x; }\n";
    assert_eq!(losses(text), 0);
    assert!(accesses(text).iter().any(|access| access.array == "P"));
}

#[test]
fn captures_and_elements_have_names() {
    let text = "__global__ void k(float *d, const float *s, int rank) {\n\
        \x20 struct { int v[2]; } shape{{3, 5}};\n\
        \x20 auto &[rows, columns] = shape.v;\n\
        \x20 int p = [&, i = blockIdx.x + 1] { return i + rank; }();\n\
        \x20 d[p * 32 + threadIdx.x] = s[threadIdx.x];\n\
        }\n";
    assert_eq!(losses(text), 0);
    let store = accesses(text).pop().expect("a store");
    assert!(store.index.contains("blockIdx.x"), "{}", store.index);
}

#[test]
fn a_launch_is_of_the_template_that_takes_its_arguments() {
    let text = "template <int C, int W> __global__ void k(float *p) { p[threadIdx.x * C + W] = 1; }\n\
        template <int R, int C, int W> __global__ void k(float *p) { p[threadIdx.x * R + C + W] = 1; }\n\
        void go(float *p, bool few) { if (few) k<2, 4><<<8, 64>>>(p); else k<8, 16, 32><<<8, 128>>>(p); }\n";
    let file = analyse(text);
    let of: Vec<(usize, String)> = file
        .kernels
        .iter()
        .map(|kernel| {
            (
                kernel.variants.len(),
                kernel.analysis.facts.accesses[0].index.clone(),
            )
        })
        .collect();
    let wanted = [(1, "threadIdx.x * 2 + 4"), (1, "threadIdx.x * 8 + 48")];
    assert_eq!(
        of,
        wanted.map(|(launches, index)| (launches, index.to_owned()))
    );
}

/// `first <= i < last`, as many kernels for atoms or rows have it.
#[test]
fn a_range_of_threads_has_some() {
    for launch in [
        "void go(float *o, const float *p, int first, int last) { k<<<(last - first - 1) / 128 + 1, 128>>>(o, p, first, last); }",
        "void go(float *o, const float *p, int first, int last) { int blocks = count(); k<<<blocks, 128>>>(o, p, first, last); }",
    ] {
        let found = accesses(&format!(
            "__global__ void k(float *o, const float *p, int first, int last) {{\n\
             \x20 int i = blockIdx.x * blockDim.x + threadIdx.x + first;\n\
             \x20 if (i < last) o[i] = p[i];\n\
             }}\n{launch}\n"
        ));
        for access in found {
            assert_eq!(access.transactions_per_request, Some(4.0), "{launch}");
            assert_eq!(access.certainty, Certainty::Exact, "{launch}");
            assert_eq!(
                access.constraints,
                ["first % 32 == 0", "last % 32 == 0"],
                "{launch}"
            );
        }
    }
}

/// A parameter that no launch binds is an integer where its values begin integers.
#[test]
fn offsets_of_rows_are_integers() {
    let taken = |body: &str| {
        let file = analyse(&format!(
            "template <class T> __global__ void k(const T *rows, double *o) {{ {body} o[at] = 1; }}\n"
        ));
        file.kernels[0].analysis.template_args[0].1.clone()
    };
    assert_eq!(taken("int at = rows[threadIdx.x];"), "int");
    assert_eq!(taken("int at = rows[threadIdx.x] * 16;"), "float");
}
