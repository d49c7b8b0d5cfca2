//! Rows that data picks, and arrays of a thread's own or of parameters that pointers lead into.

use warplens_codegen::Class;
use warplens_facts::facts::{Access, Certainty, Space};

use crate::modern::{accesses, analyse, instructions};

fn last_access(text: &str) -> Access {
    let file = analyse(text);
    let accesses = &file.kernels[0].analysis.facts.accesses;
    accesses.last().expect("an access").clone()
}

fn kernel(parameters: &str, body: &str, launch: &str) -> String {
    format!(
        "__global__ void k({parameters}) {{ {body} }}\n\
         void go({parameters}) {{ {launch} }}\n"
    )
}

#[test]
fn rows_of_a_given_length_cost_the_same_whichever_data_picks() {
    let text = |length: u32| {
        kernel(
            "const int *ix, const float *t, float *o, int d",
            "float x = t[ix[blockIdx.x] * d + threadIdx.x]; if (x == 1.f) o[0] = x;",
            &format!("k<<<10, 64>>>(ix, t, o, {length});"),
        )
    };
    let row = |length: u32| {
        let file = analyse(&text(length));
        file.kernels[0].analysis.facts.accesses[1].clone()
    };
    let aligned = row(64);
    assert_eq!(aligned.certainty, Certainty::Exact);
    assert_eq!(aligned.transactions_per_request, Some(4.0));
    assert_eq!(
        aligned.constraints,
        ["any value of the offset that data decides"]
    );
    // Rows of 33 begin anywhere: four sectors or five.
    let odd = row(33);
    assert_eq!(odd.certainty, Certainty::Unknown);
    let why = odd.why.expect("a reason").to_string();
    assert_eq!(
        why,
        "where it begins, data in memory decides: 4 to 5 transactions per request"
    );
}

#[test]
fn rows_of_an_assumed_length_hold_under_a_constraint() {
    let file = analyse(
        "__global__ void k(const int *ix, const float *t, float *o, int d) {\n\
         \x20 o[blockIdx.x * 64 + threadIdx.x] = t[ix[blockIdx.x] * d + threadIdx.x];\n\
         }\n\
         void go(const int *ix, const float *t, float *o, int d) { k<<<10, 64>>>(ix, t, o, d); }\n",
    );
    let row = &file.kernels[0].analysis.facts.accesses[1];
    assert_eq!(row.certainty, Certainty::Exact);
    assert_eq!(row.transactions_per_request, Some(4.0));
    assert_eq!(
        row.constraints,
        ["d % 8 == 0", "any value of the offset that data decides"]
    );
    assert!(row.other_case.is_some());
}

#[test]
fn lanes_that_are_apart_cost_the_same_wherever_the_first_begins() {
    let store = last_access(&kernel(
        "const int *slot, float *o",
        "int at = slot[blockIdx.x]; o[at + threadIdx.x * 16] = 1;",
        "k<<<10, 64>>>(slot, o);",
    ));
    assert_eq!(store.certainty, Certainty::Exact);
    assert_eq!(store.transactions_per_request, Some(32.0));
    assert_eq!(
        store.constraints,
        ["any value of the offset that data decides"]
    );
}

#[test]
fn what_a_ticket_begins_has_both_cases() {
    let store = last_access(&kernel(
        "int *count, float *o",
        "__shared__ int base;\n\
         if (threadIdx.x == 0) base = atomicAdd(count, blockDim.x);\n\
         __syncthreads();\n\
         o[base + threadIdx.x] = 1;",
        "k<<<10, 256>>>(count, o);",
    ));
    assert_eq!(store.certainty, Certainty::Unknown);
    let why = store.why.expect("a reason").to_string();
    assert!(why.ends_with("4 to 5 transactions per request"), "{why}");
}

#[test]
fn arrays_of_a_local_structure_that_are_read_as_other_types_are_no_memory() {
    let file = analyse(
        "struct alignas(16) Halves {\n\
         \x20 half2 d[4];\n\
         \x20 __device__ half &operator[](int i) { return reinterpret_cast<half *>(d)[i]; }\n\
         };\n\
         __global__ void k(const Halves *p, float *o) {\n\
         \x20 Halves v = p[threadIdx.x];\n\
         \x20 float s = 0;\n\
         \x20 for (int i = 0; i < 8; i++) s += float(v[i]);\n\
         \x20 o[threadIdx.x] = s;\n\
         }\n\
         void go(Halves *p, float *o) { k<<<1, 64>>>(p, o); }\n",
    );
    let spaces: Vec<Space> = (file.kernels[0].analysis.facts.accesses.iter())
        .map(|access| access.space)
        .collect();
    let globals = spaces.iter().filter(|space| **space == Space::Global);
    assert_eq!(globals.count(), 2, "{spaces:?}");
    assert_eq!(accesses(&file).len(), 2);
    assert_eq!(instructions(&file, [Class::Ldg, Class::Stg]), [1, 1]);
}

const INFO: &str = "struct Info { int dims; int sizes[4]; int strides[4]; float *data; };\n";

#[test]
fn arrays_of_a_parameter_that_pointers_lead_into_are_what_the_launch_gives() {
    for (declared, read) in [
        (
            "const int *s = a.strides;",
            "a.data[blockIdx.x * s[0] + threadIdx.x * s[1]]",
        ),
        (
            "const int *s = a.strides + 1;",
            "a.data[blockIdx.x * s[-1] + threadIdx.x * s[0]]",
        ),
        (
            "View v{a.data, a.strides};",
            "v.p[blockIdx.x * v.st[0] + threadIdx.x * v.st[1]]",
        ),
    ] {
        let file = analyse(&format!(
            "{INFO}struct View {{ float *p; const int *st; }};\n\
             __global__ void k(Info a) {{ {declared} {read} += 1; }}\n\
             void go(float *p) {{ Info a{{4, {{2, 4, 8, 16}}, {{512, 1, 16, 1}}, p}}; k<<<4, 64>>>(a); }}\n"
        ));
        let moved: Vec<_> = accesses(&file)
            .into_iter()
            .map(|(_, bytes, cost)| (bytes, cost))
            .collect();
        assert_eq!(moved, [(4, Some(4.0)), (4, Some(4.0))], "{declared}");
        assert_eq!(
            instructions(&file, [Class::Ldg, Class::Stg]),
            [1, 1],
            "{declared}"
        );
    }
}

#[test]
fn pointers_into_local_arrays_are_followed_by_the_compiler() {
    for body in [
        "float w[2] = {1, 2}; const float *p = w + 1; o[threadIdx.x] = p[0];",
        "int st[2] = {64, 1}; Table t{st}; o[blockIdx.x * t.s[0] + threadIdx.x * t.s[1]] = 1;",
    ] {
        let file = analyse(&format!(
            "struct Table {{ const int *s; }};\n{}",
            kernel("float *o", body, "k<<<4, 64>>>(o);")
        ));
        assert_eq!(
            instructions(&file, [Class::Ldg, Class::Stg]),
            [0, 1],
            "{body}"
        );
        assert_eq!(accesses(&file).len(), 1, "{body}");
    }
}

#[test]
fn accessors_that_carry_on_the_strides_of_their_view_read_none_from_memory() {
    let file = analyse(
        "template <class T> struct Accessor {\n\
         \x20 T *p; const long *sz; const long *st;\n\
         \x20 __device__ T &operator[](long i) const { return p[i * st[0]]; }\n\
         };\n\
         template <class T, int N> struct Packed {\n\
         \x20 T *p; long sz[N], st[N];\n\
         \x20 __device__ Accessor<T> operator[](long i) const { return Accessor<T>{p + i * st[0], sz + 1, st + 1}; }\n\
         };\n\
         __global__ void k(Packed<float, 2> a) { a[blockIdx.x][threadIdx.x] += 1.f; }\n\
         void go(float *p) { Packed<float, 2> a{p, {64, 64}, {64, 1}}; k<<<64, 64>>>(a); }\n",
    );
    let moved: Vec<_> = accesses(&file)
        .into_iter()
        .map(|(_, bytes, cost)| (bytes, cost))
        .collect();
    assert_eq!(moved, [(4, Some(4.0)), (4, Some(4.0))]);
    assert_eq!(instructions(&file, [Class::Ldg, Class::Stg]), [1, 1]);
}

#[test]
fn lanes_that_data_takes_apart_share_no_start() {
    for body in [
        // Each lane's own number, taken apart in a loop.
        "int left = threadIdx.x, at = 0;\n\
         for (int d = 0; d < 3; d++) { at += left % row[d]; left /= row[d]; }\n\
         o[at] = 1;",
        // The same chain for all, which lanes leave at different links.
        "int at = 0;\n\
         while (row[at] > threadIdx.x) at = row[at];\n\
         o[at + threadIdx.x] = 1;",
        "int at = row[0];\n\
         if (threadIdx.x < 16) at = row[1];\n\
         o[at + threadIdx.x] = 1;",
        "int at = row[threadIdx.x < 16 ? 0 : 1];\n\
         o[at + threadIdx.x] = 1;",
        "int at = atomicAdd(row, 1);\n\
         o[at + threadIdx.x] = 1;",
    ] {
        let store = last_access(&kernel(
            "int *row, float *o",
            body,
            "k<<<10, 32>>>(row, o);",
        ));
        assert_eq!(store.certainty, Certainty::Unknown, "{body}");
        let why = store.why.expect("a reason").to_string();
        assert_eq!(why, "the index depends on data in memory", "{body}");
    }
}

#[test]
fn a_row_of_a_warps_own_is_one_for_its_lanes() {
    let text = |warp: &str, start: &str, step: u32| {
        kernel(
            "const int *rows, const float *v, float *o, int n",
            &format!(
                "int t = blockIdx.x * blockDim.x + threadIdx.x; int w = {warp}; int lane = threadIdx.x & 31; \
                 if (w < n) {{ float s = 0; for (int j = rows[w]{start}; j < rows[w + 1]; j += {step}) s += v[j]; o[t] = s; }}"
            ),
            "k<<<64, 256>>>(rows, v, o, 512);",
        )
    };
    let row = |warp: &str, start: &str, step: u32| {
        let file = analyse(&text(warp, start, step));
        let accesses = &file.kernels[0].analysis.facts.accesses;
        let mut rows = accesses.iter().filter(|access| access.text == "v[j]");
        rows.next().expect("the row").clone()
    };
    for warp in ["t / 32", "t >> 5"] {
        let broadcast = row(warp, "", 1);
        assert_eq!(broadcast.transactions_per_request, Some(1.0), "{warp}");
        // How many elements the row has, data decides.
        assert_eq!(broadcast.certainty, Certainty::Assumed, "{warp}");
        // Lane by lane it begins anywhere.
        let side_by_side = row(warp, " + lane", 32);
        let why = side_by_side.why.expect("a reason").to_string();
        assert!(why.ends_with("4 to 5 transactions per request"), "{why}");
    }
    // A row of half a warp is not one for all lanes, nor is one of each thread.
    for apart in ["t / 16", "(t + 1) / 32", "t"] {
        assert_eq!(row(apart, "", 1).transactions_per_request, None, "{apart}");
    }
}

#[test]
fn halves_of_a_double_buffer_are_known_through_an_array_of_pointers() {
    let text = |body: &str| {
        format!(
            "__global__ void k(float *o, const float *a, int n) {{\n\
             __shared__ float s[3][64]; int t = threadIdx.x;\n{body}\n}}\n\
             void go(float *o) {{ k<<<1, 64>>>(o, o, 100); }}\n"
        )
    };
    let steps = "for (int i = 0; i < n; i++) { float *w = p[i % COUNT]; w[t * 2 % 64] = a[i * 64 + t];\n\
                 __syncthreads(); o[i * 64 + t] = p[(i + 1) % COUNT][t]; }";
    let steps = |count: &str| steps.replace("COUNT", count);
    for body in [
        "float *p[2] = {s[0], s[1]};".to_owned() + &steps("2"),
        "float *const p[3] = {s[0], s[0] + 64, &s[2][0]};".to_owned() + &steps("3"),
        "float *p[2]; p[0] = s[0]; p[1] = s[1];".to_owned() + &steps("2"),
        "float *p[2] = {s[0], s[1]}; float *q = p[0]; p[0] = p[1]; p[1] = q;".to_owned()
            + &steps("2"),
    ] {
        let file = analyse(&text(&body));
        let facts = &file.kernels[0].analysis.facts;
        assert_eq!(facts.not_understood, [], "{body}");
        let shared = facts.accesses.iter().filter(|of| of.space == Space::Shared);
        let passes: Vec<_> = shared
            .map(|of| (of.passes_per_request, of.certainty))
            .collect();
        let exact = |passes| (Some(passes), Certainty::Exact);
        assert_eq!(passes, [exact(2.0), exact(1.0)], "{body}");
        // They are values, not an array in memory.
        assert!(
            facts.accesses.iter().all(|of| of.space != Space::Local),
            "{body}"
        );
    }
    // One that is handed on, or written where it is not known which, is an array in memory.
    for body in [
        "float *p[2] = {s[0], s[1]}; p[n % 2] = s[2]; p[t % 2][t] = 1;",
        "float *p[2] = {s[0], s[1]}; float **q = p; q[t % 2][t] = 1;",
    ] {
        let file = crate::reads::launched(&text(body));
        let facts = &file.kernels[0].analysis.facts;
        let last = facts.accesses.last().expect("an access");
        assert_ne!(last.certainty, Certainty::Exact, "{body}");
        assert!(
            facts.accesses.iter().any(|of| of.space == Space::Local),
            "{body}"
        );
    }
}
