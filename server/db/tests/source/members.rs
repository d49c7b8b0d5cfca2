//! Classes within classes, and members that are defined outside their class.

use std::path::Path;

use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, FileAnalysis, Overrides};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

/// The analysis of a program, all of which must be understood.
fn analyse(text: &str) -> FileAnalysis {
    let file = analyse_in_part(text);
    for kernel in &file.kernels {
        assert_eq!(kernel.analysis.facts.not_understood, [], "{text}");
    }
    file
}

fn analyse_in_part(text: &str) -> FileAnalysis {
    Engine::new(Profiles::builtin())
        .analyze(
            &Document::new(text, Language::Cuda),
            Path::new("a.cu"),
            &Settings::default(),
            &Overrides::default(),
            &Cancel::default(),
        )
        .expect("not cancelled")
}

/// Sectors of the accesses of each kernel.
fn sectors(file: &FileAnalysis) -> Vec<Vec<Option<f64>>> {
    file.kernels
        .iter()
        .map(|kernel| {
            let accesses = &kernel.analysis.facts.accesses;
            accesses
                .iter()
                .map(|access| access.transactions_per_request)
                .collect()
        })
        .collect()
}

#[test]
fn a_specialisation_has_the_members_that_are_defined_for_it() {
    let file = analyse(
        "template <typename T, int N> struct Pack { __device__ void store(T *p); };\n\
         template <> struct Pack<float, 1> { float data; __device__ void store(float *p); };\n\
         __device__ inline void Pack<float, 1>::store(float *p) { *p = data; }\n\
         template <> struct Pack<float, 4> { float4 data; __device__ void store(float *p); };\n\
         __device__ inline void Pack<float, 4>::store(float *p) { *(float4 *)p = data; }\n\
         __global__ void one(float *a) { Pack<float, 1> v; v.store(a + threadIdx.x); }\n\
         __global__ void four(float *a) { Pack<float, 4> v; v.store(a + threadIdx.x * 4); }\n",
    );
    assert_eq!(sectors(&file), [[Some(4.0)], [Some(16.0)]]);
}

#[test]
fn a_class_template_within_a_class_sees_the_classes_around_it() {
    let file = analyse(
        "template <int STRIDE> class Walk {\n\
         \x20 template <bool CHECKED> struct Loader {\n\
         \x20   int first;\n\
         \x20   __device__ int load(const int *p) { return p[first + threadIdx.x * STRIDE]; }\n\
         \x20 };\n\
         \x20 template <bool CHECKED> struct Column { Loader<CHECKED> loader; int offset; };\n\
         \x20 template <bool C> __device__ void start(Column<C> &column) {\n\
         \x20   column.offset = 0; column.loader.first = 0;\n  }\n\
         \x20 template <bool C> __device__ void go(const int *in, int *out) {\n\
         \x20   Column<C> column; start(column);\n\
         \x20   out[threadIdx.x + column.offset] = column.loader.load(in);\n  }\n\
         public:\n\
         \x20 __device__ static void run(const int *in, int *out) { Walk<STRIDE> walk; walk.template go<true>(in, out); }\n\
         };\n\
         __global__ void kernel(const int *in, int *out) { Walk<2>::run(in, out); }\n",
    );
    assert_eq!(sectors(&file), [[Some(8.0), Some(4.0)]]);
}

#[test]
fn a_member_template_is_chosen_by_its_specialisation() {
    let file = analyse(
        "template <int KIND> struct Block {\n\
         \x20 template <int OF, int UNUSED> struct Internal;\n\
         \x20 template <int UNUSED> struct Internal<0, UNUSED> {\n\
         \x20   int lane;\n\
         \x20   __device__ Internal(int lane) : lane(lane) {}\n\
         \x20   __device__ void load(const int *p, int &item) { item = p[lane]; }\n\
         \x20 };\n\
         \x20 template <int UNUSED> struct Internal<1, UNUSED> {\n\
         \x20   int lane;\n\
         \x20   __device__ Internal(int lane) : lane(lane) {}\n\
         \x20   __device__ void load(const int *p, int &item) { item = p[lane * 2]; }\n\
         \x20 };\n\
         \x20 typedef Internal<KIND, 0> Chosen;\n\
         \x20 __device__ void load(const int *p, int &item) { Chosen(threadIdx.x).load(p, item); }\n\
         };\n\
         __global__ void direct(const int *in, int *out) { int item; Block<0>().load(in, item); out[threadIdx.x] = item; }\n\
         __global__ void strided(const int *in, int *out) { int item; Block<1>().load(in, item); out[threadIdx.x] = item; }\n",
    );
    assert_eq!(
        sectors(&file),
        [[Some(4.0), Some(4.0)], [Some(8.0), Some(4.0)]]
    );
}

#[test]
fn a_wrapper_with_the_name_of_a_toolkits_function_calls_the_toolkits() {
    let file = analyse(
        "template <typename T> __device__ T atomicAdd(T *p, T v) {\n\
         \x20 return atomicAdd(reinterpret_cast<unsigned *>(p), (unsigned)v);\n}\n\
         __global__ void kernel(short2 *a, unsigned *b) { atomicAdd(b + threadIdx.x, 1u); }\n",
    );
    assert_eq!(file.kernels[0].analysis.facts.accesses.len(), 1);
}

#[test]
fn what_is_marked_unused_costs_nothing() {
    let file = analyse(
        "#include \"gone.h\"\n\
         __global__ void kernel(float *a, int n) { a[threadIdx.x] = 0; LIB_UNUSED(n); UNUSED_ARGS(n, a); }\n",
    );
    assert_eq!(sectors(&file), [[Some(4.0)]]);
}

#[test]
fn nothing_is_known_of_where_elements_are_that_hold_what_was_not_read() {
    let text = |vector: &str| {
        format!(
            "{vector}
             struct Ray {{ vec3 origin; vec3 direction[2]; float t; }};
             struct Hit {{ Ray ray; int id; }};
             // warplens: block=256 grid=64
             __global__ void by_index(Hit *hits, float *out) {{
                 int i = blockIdx.x * 256 + threadIdx.x;
                 out[i] = hits[i].ray.t;
             }}
             // warplens: block=256 grid=64
             __global__ void by_pointer(Hit *hits, float *out) {{
                 int i = blockIdx.x * 256 + threadIdx.x;
                 out[i] = (hits + i)->ray.t;
             }}
             // warplens: block=256 grid=64
             __global__ void whole(Hit *hits, float *out) {{
                 int i = blockIdx.x * 256 + threadIdx.x;
                 Hit hit = hits[i];
                 out[i] = hit.ray.t;
             }}
             // warplens: block=256 grid=64
             __global__ void behind_a_pointer(Hit **hits, float *out) {{
                 int i = blockIdx.x * 256 + threadIdx.x;
                 if (hits[i] != 0) out[i] = 1.0f;
             }}"
        )
    };
    let read = analyse(&text("struct vec3 { float x, y, z; };"));
    // 44 bytes each: four bytes of as many sectors as 32 lanes reach.
    assert_eq!(sectors(&read)[0], [Some(32.0), Some(4.0)]);
    assert!(
        read.kernels[0]
            .analysis
            .findings
            .iter()
            .any(|one| one.rule == "mem/aos")
    );
    let unread = analyse_in_part(&text(""));
    for kernel in &unread.kernels[..3] {
        let facts = &kernel.analysis.facts;
        assert!(!facts.not_understood.is_empty(), "{}", facts.name);
        let of_hits = facts
            .accesses
            .iter()
            .filter(|access| access.array == "hits");
        for access in of_hits {
            assert_eq!(access.transactions_per_request, None, "{}", facts.name);
        }
        let about_hits = kernel.analysis.findings.iter();
        let about_hits: Vec<_> = about_hits
            .filter(|one| one.message.contains("hits"))
            .collect();
        assert!(about_hits.is_empty(), "{about_hits:?}");
    }
    // Pointers have a size whatever they point to.
    let last = &unread.kernels[3].analysis.facts;
    assert_eq!(last.not_understood, []);
    assert_eq!(last.accesses[0].transactions_per_request, Some(8.0));
}

/// What a member is given where it is declared, it holds from the start: unless a list, or a constructor's, gives it something
/// else. Bases and members have constructors of their own, and one constructor may leave the work to another.
#[test]
fn members_hold_what_their_declarations_give_them() {
    let classes = "struct Plain { int a = 3; int b = 2; };\n\
         struct Made { int a = 5, b = 1; __device__ Made() {} __device__ Made(int x) : a(x) {} };\n\
         struct Left { int a = 4; Left() = default; };\n\
         struct Parts { Plain plain; Made made{6}; Made other; int n = 7; };\n\
         struct Derived : Plain { int c = a + b; };\n\
         struct Handed { int a, b; __device__ Handed(int x, int y) : a(x), b(y) {} __device__ Handed() : Handed(3, 6) {} };\n\
         struct Base { int a; int z = 4; __device__ Base(int x) : a(x) {} };\n\
         struct Child : Base { int b = 1; __device__ Child(int x) : Base(x + 2) {} };\n\
         struct Outside { int a = 2, b; __device__ Outside(int x); };\n\
         __device__ Outside::Outside(int x) : b(x) {}\n\
         template <int N> struct Of { int a = N; };\n";
    for (object, stride, sectors_of_it) in [
        ("Plain p;", "p.a", 12.0),
        ("Plain p{1};", "p.a", 4.0),
        ("Plain p{1};", "p.b", 8.0),
        ("Plain p = {};", "p.a", 12.0),
        ("Plain p = Plain();", "p.b", 8.0),
        ("Made p;", "p.a", 20.0),
        ("Made p(2);", "p.a", 8.0),
        ("Made p(2);", "p.b", 4.0),
        ("Left p;", "p.a", 16.0),
        ("Parts p;", "p.plain.a", 12.0),
        ("Parts p;", "p.made.a", 24.0),
        ("Parts p;", "p.other.a", 20.0),
        ("Parts p;", "p.n", 28.0),
        ("Derived p;", "p.c", 20.0),
        ("Handed p;", "p.b", 24.0),
        ("Child p(1);", "p.a", 12.0),
        ("Child p(1);", "p.z", 16.0),
        ("Child p(1);", "p.b", 4.0),
        ("Outside p(1);", "p.a", 8.0),
        ("Outside p(1);", "p.b", 4.0),
        ("Of<6> p;", "p.a", 24.0),
    ] {
        let file = analyse(&format!(
            "{classes}__global__ void k(float *o) {{ {object} o[threadIdx.x * {stride}] = 1; }}\n"
        ));
        assert_eq!(sectors(&file), [[Some(sectors_of_it)]], "{object} {stride}");
    }
    // A member that nothing gives a value has none that is known.
    let file = analyse_in_part(
        "struct Bare { int a; int b = 2; };\n\
         __global__ void k(float *o) { Bare p; o[threadIdx.x * p.a] = 1; }\n",
    );
    assert_eq!(sectors(&file), [[None]]);
}

/// What the one access at that text costs, and its line.
fn cost_and_line(text: &str) -> (Option<f64>, u32) {
    let estimated = Engine::new(Profiles::builtin())
        .estimate(
            &Document::new(text, Language::Cuda),
            Path::new("a.cu"),
            &Settings::default(),
            &Overrides::default(),
            &[],
            &[],
            &[],
        )
        .expect("a kernel");
    let access = &estimated.results[0].accesses[0];
    (access.transactions_per_request, access.line)
}

#[test]
fn an_access_in_a_class_template_is_on_its_own_line() {
    let text = "template <class T> struct View {\n\
                    T *p;\n\
                    __device__ T read(int i) const { return p[i * 2]; }\n\
                };\n\
                __global__ void k(View<float> v, float *o) {\n\
                    o[threadIdx.x] = v.read(threadIdx.x);\n\
                }\n\
                void run(View<float> v, float *o) { k<<<1, 32>>>(v, o); }\n";
    assert_eq!(cost_and_line(text), (Some(8.0), 3));
}

#[test]
fn a_reference_to_the_object_that_a_function_gives_back_is_the_object() {
    let with = |statements: &str| {
        let text = format!(
            "struct At {{ int v;\n\
                 __device__ At(int v) {{ this->v = v; }}\n\
                 __device__ At &by(int n) {{ v *= n; return *this; }}\n\
                 __device__ At &operator+=(int n) {{ v += n; return *this; }}\n\
                 __device__ At plus(int n) const {{ return At(v + n); }}\n\
             }};\n\
             __device__ void twice(At &a) {{ a.v *= 2; }}\n\
             __global__ void k(float *o) {{ At a(threadIdx.x); {statements} o[a.v] = 1; }}\n\
             void run(float *o) {{ k<<<1, 32>>>(o); }}\n"
        );
        cost_and_line(&text).0
    };
    assert_eq!(with(""), Some(4.0));
    assert_eq!(with("a.by(2).by(2);"), Some(16.0));
    assert_eq!(with("(a += 8).by(2);"), Some(8.0));
    assert_eq!(with("At &b = a.by(2); b.by(2);"), Some(16.0));
    assert_eq!(with("twice(a.by(2));"), Some(16.0));
    assert_eq!(with("++(a += 7).v; a.by(2);"), Some(8.0));
    // An object made in a function of its class is another one.
    assert_eq!(with("At b = a.plus(8); b.by(4);"), Some(4.0));
}

#[test]
fn a_reference_to_a_number_that_a_function_gives_back_is_that_number() {
    let with = |statements: &str| {
        let text = format!(
            "__device__ int &shifted(int &x) {{ x += 8; return x; }}\n\
             __device__ void twice(int &x) {{ x *= 2; }}\n\
             __global__ void k(float *o) {{ int i = threadIdx.x; {statements} o[i] = 1; }}\n\
             void run(float *o) {{ k<<<1, 32>>>(o); }}\n"
        );
        cost_and_line(&text).0
    };
    assert_eq!(with("shifted(i) *= 2;"), Some(8.0));
    assert_eq!(with("twice(shifted(i));"), Some(8.0));
    assert_eq!(with("int &r = shifted(i); r *= 2;"), Some(8.0));
    assert_eq!(with("++shifted(i);"), Some(5.0));
    // A copy of it is another one.
    assert_eq!(with("int j = shifted(i); j *= 2;"), Some(4.0));
}

#[test]
fn classes_are_read_as_libraries_write_them() {
    let base = "struct A { struct P { int r; __device__ P(int v) : r(v) {} }; };\n\
                struct B : A { struct P : A::P { __device__ P(int v) : A::P(v * 2) {} }; };\n\
                struct Mask { int *p; __host__ __device__ operator bool() const { return p; } };\n\
                struct Both { int a, b; };\n\
                __device__ auto both(int x) -> Both { return {x, x * 4}; }\n\
                struct Next { int v; };\n\
                __global__ void k(float *o, Mask m) { int i = threadIdx.x; STATEMENTS o[i] = 1; }\n\
                void run(float *o, Mask m) { k<<<1, 32>>>(o, m); }\n";
    let with = |statements: &str| cost_and_line(&base.replace("STATEMENTS", statements)).0;
    assert_eq!(with("B::P p(i); i = p.r;"), Some(8.0));
    assert_eq!(with("auto [a, b] = both(i); i = b;"), Some(16.0));
    assert_eq!(with("Next n{i}; Next &r{n}; r.v *= 2; i = n.v;"), Some(8.0));
    assert_eq!(
        with("std::array<int, 2> t{i, i * 4}; i = t.at(1) + t.front() * 0;"),
        Some(16.0)
    );
    assert_eq!(with("if (m && i < 8) i = 0;"), Some(4.0));
}
