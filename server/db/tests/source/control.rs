//! Control flow and calls that need more than one look: the accesses of a kernel, one line each.

use std::path::Path;

use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, FileAnalysis, Overrides};
use warplens_ir::Reason;
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

fn analyse(text: &str) -> FileAnalysis {
    let document = Document::new(text, Language::Cuda);
    Engine::new(Profiles::builtin())
        .analyze(
            &document,
            Path::new("a.cu"),
            &Settings::default(),
            &Overrides::default(),
            &Cancel::default(),
        )
        .expect("not cancelled")
}

fn lower(word: impl std::fmt::Debug) -> String {
    format!("{word:?}").to_lowercase()
}

/// The accesses of the first kernel: `text: space op [index] certainty`. Nothing may be lost.
fn accesses(text: &str) -> Vec<String> {
    let file = analyse(text);
    let facts = &file.kernels[0].analysis.facts;
    assert_eq!(facts.not_understood, [], "everything is understood");
    facts
        .accesses
        .iter()
        .map(|access| {
            format!(
                "{}: {} {} [{}] {}",
                access.text,
                lower(access.space),
                lower(access.op),
                access.index,
                lower(access.certainty)
            )
        })
        .collect()
}

/// A kernel of one block of 32 threads with these statements.
fn kernel(body: &str) -> String {
    format!(
        "__global__ void k(float *a, const int *in, int n) {{\n\
         int i = threadIdx.x;\n{body}\n}}\n\
         void host(float *a, const int *in) {{ k<<<1, 32>>>(a, in, 20); }}\n"
    )
}

#[test]
fn a_jump_forward_leaves_out_what_lies_between() {
    assert_eq!(
        accesses(&kernel(
            "if (i >= 20) goto done;\n a[i] = 1;\n done: a[i + 64] = 2;"
        )),
        [
            "a[i]: global store [threadIdx.x] exact",
            "a[i + 64]: global store [threadIdx.x + 64] exact",
        ]
    );
}

#[test]
fn what_a_jump_leaves_out_is_not_requested() {
    let file = analyse(&kernel(
        "if (i >= 0) goto done;\n a[i] = 1;\n done: a[i + 64] = 2;",
    ));
    let requests: Vec<_> = file.kernels[0]
        .analysis
        .facts
        .accesses
        .iter()
        .map(|access| access.requests)
        .collect();
    assert_eq!(requests, [Some(0.0), Some(1.0)]);
}

#[test]
fn a_jump_out_of_loops_leaves_them_all() {
    assert_eq!(
        accesses(&kernel(
            "for (int j = 0; j < 4; ++j)\n\
             for (int l = 0; l < 4; ++l) { if (in[i + l] > j) goto found; a[l] = 0; }\n\
             a[i] = 1;\n\
             found: a[i + 64] = 2;"
        )),
        [
            "in[i + l]: global load [threadIdx.x + l] assumed",
            "a[l]: global store [l] assumed",
            "a[i]: global store [threadIdx.x] assumed",
            "a[i + 64]: global store [threadIdx.x + 64] exact",
        ]
    );
}

#[test]
fn a_jump_back_is_a_loop() {
    assert_eq!(
        accesses(&kernel(
            "int j = 0;\n again: a[i + j * 32] = 1; ++j; if (j < 8) goto again;"
        )),
        ["a[i + j * 32]: global store [threadIdx.x + iteration * 32] exact"]
    );
    let file = analyse(&kernel(
        "int j = 0;\n again: a[i + j * 32] = 1; ++j; if (j < 8) goto again;",
    ));
    let store = &file.kernels[0].analysis.facts.accesses[0];
    assert_eq!(store.requests, Some(8.0));
}

#[test]
fn a_loop_of_jumps_with_a_way_out_is_left_by_it() {
    assert_eq!(
        accesses(&kernel(
            "int j = 0;\n\
             again: if (in[j] == 0) goto done; a[i + j] = 1; ++j; goto again;\n\
             done: a[i] = 2;"
        )),
        [
            "in[j]: global load [iteration] assumed",
            "a[i + j]: global store [threadIdx.x + iteration] assumed",
            "a[i]: global store [threadIdx.x] exact",
        ]
    );
}

#[test]
fn a_jump_into_a_block_is_said_to_be_lost() {
    let file = analyse(&kernel("goto inside;\n if (i > 3) { inside: a[i] = 1; }"));
    let lost = &file.kernels[0].analysis.facts.not_understood;
    assert_eq!(lost.len(), 1);
    assert_eq!(lost[0].reason, Reason::Goto);
}

#[test]
fn what_follows_a_pragma_within_a_case_is_of_that_case() {
    // The grammar ends the node of a case at a directive.
    let loops = "switch (n) {\n case 20:\n#pragma unroll\n for (int j = 0; j < 2; j++) a[i + 32 * j] = 0;\n break;\n\
                 case 1:\n a[i] = 1;\n#pragma unroll 1\n for (int j = 0; j < 9; j++) a[i] = in[j];\n break;\n\
                 default:\n#pragma unroll\n for (int j = 0; j < 3; j++) a[i + 1] = 3;\n}";
    let file = analyse(&kernel(loops));
    let facts = &file.kernels[0].analysis.facts;
    assert_eq!(facts.not_understood, []);
    let done: Vec<(&str, Option<f64>)> = (facts.accesses.iter())
        .map(|access| (access.text.as_str(), access.requests))
        .collect();
    assert_eq!(
        done,
        [
            ("a[i + 32 * j]", Some(2.0)),
            ("a[i]", Some(0.0)),
            ("in[j]", Some(0.0)),
            ("a[i]", Some(0.0)),
            ("a[i + 1]", Some(0.0)),
        ]
    );
}

#[test]
fn a_break_in_the_middle_of_a_case_leaves_the_switch_beside_a_continue() {
    assert_eq!(
        accesses(&kernel(
            "for (int j = 0; j < 4; ++j) {\n\
             switch (j) { case 0: if (i > 3) break; a[i] = 0; continue; default: a[i + 32] = 0; }\n\
             a[i + 64] = 1; }"
        )),
        [
            "a[i]: global store [threadIdx.x] exact",
            "a[i + 32]: global store [threadIdx.x + 32] exact",
            "a[i + 64]: global store [threadIdx.x + 64] exact",
        ]
    );
}

#[test]
fn statements_where_a_value_is_expected_give_their_last_value() {
    assert_eq!(
        accesses(&format!(
            "#define least(x, y) ({{ __typeof__ (x) _x = (x); __typeof__ (y) _y = (y); _x < _y ? _x : _y; }})\n{}",
            kernel("for (int j = 0; j <= least(7, n); ++j) a[least(i, 16) + j * 32] = in[i];")
        )),
        [
            "in[i]: global load [threadIdx.x] exact",
            "a[least(i, 16) + j * 32]: global store [(threadIdx.x < 16 ? threadIdx.x : 16) + j * 32] exact",
        ]
    );
}

#[test]
fn a_list_is_gone_through_by_value() {
    assert_eq!(
        accesses(&kernel("for (int s : {32, 16, 1}) a[i * s] = in[i];")),
        [
            "in[i]: global load [threadIdx.x] exact",
            "a[i * s]: global store [threadIdx.x * (index == 0 ? 32 : index == 1 ? 16 : 1)] exact",
        ]
    );
}

#[test]
fn a_lambda_may_name_its_execution_space() {
    assert_eq!(
        accesses(&kernel(
            "auto put = [&] __device__ (auto at) { a[at + i] = 1; };\n put(32); put(64);"
        )),
        [
            "a[at + i]: global store [threadIdx.x + 32] exact",
            "a[at + i]: global store [threadIdx.x + 64] exact",
        ]
    );
}

#[test]
fn comparisons_that_read_as_template_arguments_are_comparisons() {
    assert_eq!(
        accesses(&kernel("a[i + (i < 4 || i >= n)] = 1;")),
        [
            "a[i + (i < 4 || i >= n)]: global store [threadIdx.x + (threadIdx.x < 4 || n <= threadIdx.x)] exact"
        ]
    );
}

#[test]
fn a_cast_of_a_subscript_reads_the_element() {
    assert_eq!(
        accesses(&format!(
            "typedef unsigned char byte_t;\n{}",
            kernel("float4 v = make_float4(1, 2, 3, 4); a[i] = (byte_t)(&in[i])[2];")
        )),
        [
            "(byte_t)(&in[i])[2]: global load [threadIdx.x + 2] exact",
            "a[i]: global store [threadIdx.x] exact",
        ]
    );
}

/// The last access of the first kernel: its index, and how sure it is.
fn last(body: &str) -> (String, String) {
    let file = analyse(&kernel(body));
    let facts = &file.kernels[0].analysis.facts;
    assert_eq!(facts.not_understood, [], "everything is understood");
    let access = facts.accesses.last().expect("an access");
    (access.index.clone(), lower(access.certainty))
}

#[test]
fn what_is_assigned_before_a_break_or_a_continue_is_not_taken_for_unchanged() {
    for leave in ["break", "continue"] {
        let body = format!(
            "int f = 0;\n\
             for (int j = 0; j < 4; ++j) {{ if (in[i] > j) {{ f = 7; {leave}; }} a[j] = 0; }}\n\
             a[f * 32] = 1;"
        );
        let (_, certainty) = last(&body);
        assert_ne!(certainty, "exact", "{leave}");
        let condition = body.replace("a[f * 32] = 1;", "if (f == 0) a[i] = 1;");
        let (_, certainty) = last(&condition);
        assert_eq!(certainty, "assumed", "{leave}");
    }
    let search = format!(
        "__device__ bool find(const int *in, int &at) {{\n\
         for (int j = 0; j < 4; ++j) if (in[j] > 0) {{ at = 7; return true; }}\n\
         return false; }}\n{}",
        kernel("int f = 0; find(in, f); a[f * 32] = 1;")
    );
    let file = analyse(&search);
    let access = file.kernels[0].analysis.facts.accesses.last();
    assert_ne!(access.map(warplens_facts::facts::Access::exact), Some(true));
    // Nothing is assigned on the way out.
    let body = "int f = 0;\n\
                for (int j = 0; j < 4; ++j) { f = 3; if (in[i] > j) break; a[j] = 0; }\n\
                a[i] = 1;";
    assert_eq!(last(body), ("threadIdx.x".to_owned(), "exact".to_owned()));
}

// ---- calls -------------------------------------------------------------------------------------

const OPERATIONS: &str = "__device__ float twice(const float *p, int at) { return p[at] * 2; }\n\
    __device__ float next(const float *p, int at) { return p[at + 32]; }\n\
    typedef float (*operation_t)(const float *, int);\n";

#[test]
fn a_pointer_to_one_function_is_that_function() {
    for body in [
        "operation_t f = next; a[i] = f(a, i);",
        "float (*f)(const float *, int) = &next; a[i] = (*f)(a, i);",
        "const operation_t f = true ? next : twice; a[i] = f(a, i);",
        "a[i] = apply(next, a, i);",
    ] {
        let text = format!(
            "{OPERATIONS}__device__ float apply(operation_t f, const float *p, int at) {{ return f(p, at); }}\n{}",
            kernel(body)
        );
        assert_eq!(
            accesses(&text),
            [
                "p[at + 32]: global load [threadIdx.x + 32] exact",
                "a[i]: global store [threadIdx.x] exact",
            ],
            "{body}"
        );
    }
}

#[test]
fn a_pointer_to_several_functions_may_be_any_of_them() {
    for body in [
        "operation_t f = n > 3 ? next : twice; a[i] = f(a, i);",
        "operation_t f = next; if (n > 3) f = twice; a[i] = f(a, i);",
    ] {
        let text = format!("{OPERATIONS}{}", kernel(body));
        let mut found = accesses(&text);
        found.sort();
        assert_eq!(
            found,
            [
                "a[i]: global store [threadIdx.x] exact",
                "p[at + 32]: global load [threadIdx.x + 32] assumed",
                "p[at]: global load [threadIdx.x] assumed",
            ],
            "{body}"
        );
    }
}

#[test]
fn a_table_of_functions_is_read_and_its_functions_called() {
    let text = format!(
        "{OPERATIONS}__device__ operation_t table[] = {{twice, next}};\n{}",
        kernel("a[i] = table[n](a, i);")
    );
    let mut found = accesses(&text);
    found.sort();
    assert_eq!(
        found,
        [
            "a[i]: global store [threadIdx.x] exact",
            "p[at + 32]: global load [threadIdx.x + 32] assumed",
            "p[at]: global load [threadIdx.x] assumed",
            "table[n]: global load [n] exact",
        ]
    );
}

#[test]
fn a_pointer_that_nothing_is_known_of_is_assumed_to_be_one_that_the_file_keeps() {
    let text = format!(
        "{OPERATIONS}__device__ float other(float x) {{ return x; }}\n\
         __device__ operation_t kept = twice;\n__device__ float (*unlike)(float) = other;\n\
         __global__ void k(float *a, operation_t f) {{ a[threadIdx.x] = f(a, threadIdx.x); }}\n"
    );
    let file = analyse(&text);
    let facts = &file.kernels[0].analysis.facts;
    assert_eq!(facts.not_understood, []);
    let texts: Vec<_> = facts.accesses.iter().map(|a| a.text.as_str()).collect();
    assert_eq!(texts, ["p[at]", "a[threadIdx.x]"]);
    assert!(
        facts
            .assumptions
            .iter()
            .any(|a| a.symbol.is_named("f") && a.value == "points to twice"),
        "{:?}",
        facts.assumptions
    );
}

#[test]
fn a_pointer_that_may_point_anywhere_is_lost_once_a_call() {
    let file = analyse(
        "__global__ void k(float *a, float (*f)(float)) { a[threadIdx.x] = f(a[threadIdx.x + 32]); }\n",
    );
    let facts = &file.kernels[0].analysis.facts;
    let reasons: Vec<_> = facts
        .not_understood
        .iter()
        .map(|lost| &lost.reason)
        .collect();
    assert_eq!(reasons, [&Reason::UnreadFunction]);
    assert_eq!(facts.accesses.len(), 2);
}

#[test]
fn a_function_that_calls_itself_is_a_loop_of_unknown_length() {
    let text = format!(
        "__device__ int depth(const int *in, int at, int level) {{\n\
         if (level == 0) return at;\n return depth(in, in[at], level - 1); }}\n{}",
        kernel("a[i + 96] = 1; a[depth(in, i, n)] = 2;")
    );
    assert_eq!(
        accesses(&text),
        [
            "a[i + 96]: global store [threadIdx.x + 96] exact",
            "in[at]: global load [(data) bytes] unknown",
            "a[depth(in, i, n)]: global store [?] unknown",
        ]
    );
}

#[test]
fn a_function_that_calls_itself_with_another_object_is_lost() {
    let text = format!(
        "__device__ void fill(float &to, float &other, int level) {{\n\
         to = level; if (level > 0) fill(other, to, level - 1); }}\n{}",
        kernel("fill(a[i], a[i + 32], 3);")
    );
    let file = analyse(&text);
    let lost = &file.kernels[0].analysis.facts.not_understood;
    assert_eq!(lost.len(), 1);
    assert_eq!(lost[0].reason, Reason::Recursive);
}

#[test]
fn what_a_recursive_function_only_reads_may_be_another_object_each_time() {
    let text = format!(
        "struct Span {{ int from, to; }};\n\
         __device__ void halve(float *to, const Span &span) {{\n\
         to[span.from] = span.to;\n\
         if (span.to > span.from) {{ Span left; left.from = span.from; left.to = span.to / 2; halve(to, left); }} }}\n{}",
        kernel("Span all; all.from = i; all.to = n; halve(a, all);")
    );
    assert_eq!(
        accesses(&text),
        ["to[span.from]: global store [(data + ? * 4) bytes] unknown"]
    );
}

#[test]
fn memory_of_the_heap_is_somewhere() {
    assert_eq!(
        accesses(&kernel(
            "int *own = new int[n]; own[i] = in[i]; a[i] = own[0]; delete[] own;\n\
             int *taken = (int *)malloc(n * sizeof(int)); taken[3] = 0; free(taken);"
        )),
        [
            "in[i]: global load [threadIdx.x] exact",
            "own[i]: global store [(data) bytes] unknown",
            "own[0]: global load [(data) bytes] unknown",
            "a[i]: global store [threadIdx.x] exact",
            "taken[3]: global store [(data) bytes] unknown",
        ]
    );
}

#[test]
fn an_object_is_constructed_where_it_is_placed() {
    let text = format!(
        "struct Pair {{ int first, second;\n\
         __device__ Pair(int a, int b) : first(a) {{ second = b; }} }};\n{}",
        kernel("Pair *p = new (a + 2 * i) Pair(1, 2); a[i] = p->second;")
    );
    assert_eq!(
        accesses(&text),
        [
            "first(a): global store [threadIdx.x * 2] exact",
            "second: global store [threadIdx.x * 2 + 1] exact",
            "p->second: global load [threadIdx.x * 2 + 1] exact",
            "a[i]: global store [threadIdx.x] exact",
        ]
    );
}

const SHAPES: &str = "template <class T> struct Shape { __device__ virtual void put(T *to, int at) = 0; };\n\
    template <class T> struct Line : public Shape<T> { __device__ void put(T *to, int at) { to[at] = 1; } };\n\
    template <class T> struct Plane : Shape<T> { __device__ void put(T *to, int at) { to[at * 32] = 1; } };\n";

#[test]
fn what_a_class_leaves_to_others_is_what_one_of_them_does() {
    let text = format!(
        "{SHAPES}__global__ void k(float *a, Shape<float> **shapes) {{ shapes[0]->put(a, threadIdx.x); }}\n\
         void host(float *a, Shape<float> **s) {{ k<<<1, 32>>>(a, s); }}"
    );
    assert_eq!(
        accesses(&text),
        [
            "shapes[0]: global load [0] exact",
            "to[at]: global store [threadIdx.x] assumed",
            "to[at * 32]: global store [threadIdx.x * 32] assumed",
        ]
    );
}

#[test]
fn a_derived_class_finds_its_own_fields() {
    let text = "struct Base { __device__ virtual void put(float *to) = 0; };\n\
                struct Derived : Base { int at; __device__ void put(float *to) { to[this->at] = 1; } };\n\
                __global__ void k(float *a, Base **all) { all[0]->put(a + threadIdx.x); }\n\
                void host(float *a, Base **all) { k<<<1, 32>>>(a, all); }";
    let texts: Vec<String> = accesses(text)
        .iter()
        .filter_map(|line| line.split(':').next().map(str::to_owned))
        .collect();
    assert_eq!(texts, ["all[0]", "this->at", "to[this->at]"]);
}

#[test]
fn an_object_of_a_known_class_does_what_that_class_does() {
    let text = format!(
        "{SHAPES}{}",
        kernel(
            "Plane<float> plane; plane.put(a, i); Plane<float> *to = &plane; to->put(a, i + 1);"
        )
    );
    assert_eq!(
        accesses(&text),
        [
            "to[at * 32]: global store [threadIdx.x * 32] exact",
            "to[at * 32]: global store [threadIdx.x * 32 + 32] exact",
        ]
    );
}

#[test]
fn friends_are_found_by_their_arguments() {
    let text = format!(
        "template <class T> struct Complex {{ T re, im;\n\
         __device__ Complex(T r, T i) : re(r), im(i) {{}}\n\
         friend __device__ T norm(const Complex<T> &of, const float *table, int at) {{ return of.re * table[at]; }}\n\
         friend __device__ Complex operator+(const Complex &x, const Complex &y) {{ return Complex(x.re + y.re, x.im); }} }};\n{}",
        kernel("Complex<float> c(1, 2); a[i] = norm(c + c, a, i + 32);")
    );
    assert_eq!(
        accesses(&text),
        [
            "table[at]: global load [threadIdx.x + 32] exact",
            "a[i]: global store [threadIdx.x] exact",
        ]
    );
}

#[test]
fn a_specialisation_of_a_function_is_for_its_arguments() {
    let text = format!(
        "template <class T> __device__ float get(const float *p, int at) {{ return p[at]; }}\n\
         template <> __device__ float get<double>(const float *p, int at) {{ return get<int>(p, at * 2); }}\n{}",
        kernel("a[i] = get<double>(a, i) + get<float>(a, i);")
    );
    assert_eq!(
        accesses(&text),
        [
            "p[at]: global load [threadIdx.x * 2] exact",
            "p[at]: global load [threadIdx.x] exact",
            "a[i]: global store [threadIdx.x] exact",
        ]
    );
}

// ---- the toolkit -------------------------------------------------------------------------------

#[test]
fn a_barrier_object_is_set_up_and_waited_for() {
    assert_eq!(
        accesses(&kernel(
            "__shared__ cuda::barrier<cuda::thread_scope_block> ready;\n\
             if (i == 0) init(&ready, blockDim.x);\n\
             __syncthreads();\n\
             const auto role = i < 4 ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;\n\
             a[i] = in[i]; ready.arrive_and_wait();"
        )),
        [
            "in[i]: global load [threadIdx.x] exact",
            "a[i]: global store [threadIdx.x] exact",
        ]
    );
}

#[test]
fn the_runtimes_structures_have_their_members() {
    assert_eq!(
        accesses(
            "__global__ void k(cudaPitchedPtr of, cudaExtent extent) {\n\
             char *slice = (char *)of.ptr + blockIdx.x * of.pitch;\n\
             if (threadIdx.x < extent.width) ((float *)slice)[threadIdx.x] = 1; }"
        ),
        [
            "((float *)slice)[threadIdx.x]: global store [(blockIdx.x * of.pitch + threadIdx.x * 4) bytes] assumed"
        ]
    );
}

#[test]
fn pointers_and_operators_of_the_libraries_are_what_they_wrap() {
    let text = "__global__ void k(thrust::device_ptr<const int> in, float *a) {\n\
                const int i = threadIdx.x;\n\
                cub::KeyValuePair<int, float> best{0, 0.f}, other{i, 1.f};\n\
                cub::ArgMax pick;\n\
                best = pick(other, best);\n\
                cub::ThreadStore<cub::STORE_WT>(a + i, best.value);\n\
                a[i + 32] = in[i] + cub::ThreadLoad<cub::LOAD_LDG>(a + i + 64) + cub::Max()(i, 3);\n\
                const int *plain = thrust::raw_pointer_cast(in);\n\
                a[i + 96] = plain[2 * i]; }\n\
                void host(thrust::device_ptr<const int> in, float *a) { k<<<1, 32>>>(in, a); }\n";
    assert_eq!(
        accesses(text),
        [
            "cub::ThreadStore<cub::STORE_WT>(a + i, best.value): global store [threadIdx.x] exact",
            "in[i]: global load [threadIdx.x] exact",
            "cub::ThreadLoad<cub::LOAD_LDG>(a + i + 64): global load [threadIdx.x + 64] exact",
            "a[i + 32]: global store [threadIdx.x + 32] exact",
            "plain[2 * i]: global load [threadIdx.x * 2] exact",
            "a[i + 96]: global store [threadIdx.x + 96] exact",
        ]
    );
}

#[test]
fn small_floats_are_converted_into_their_storage() {
    assert_eq!(
        accesses(&kernel(
            "__nv_fp8_storage_t *to = (__nv_fp8_storage_t *)a;\n\
             to[i] = __nv_cvt_float_to_fp8(a[i], __NV_SATFINITE, __NV_E4M3);\n\
             __nv_fp4x2_storage_t two = __nv_cvt_float2_to_fp4x2(make_float2(1, 2), __NV_E2M1, cudaRoundNearest);\n\
             to[i + 32] = two;"
        )),
        [
            "a[i]: global load [threadIdx.x] exact",
            "to[i]: global store [threadIdx.x] exact",
            "to[i + 32]: global store [threadIdx.x + 32] exact",
        ]
    );
}

/// The requests of the accesses of `g`, and whether they are exact.
fn staged(body: &str) -> Vec<(Option<f64>, bool)> {
    let file = analyse(&format!(
        "__global__ void k(const float *g, float *o, int n, const int *flag) {{\n\
         __shared__ float s[4][128]; float sum = 0; int fetch = 0;\n{body}\n o[threadIdx.x] = sum;\n}}\n\
         void host(float *a, const int *flag) {{ k<<<10, 128>>>(a, a, 64, flag); }}\n"
    ));
    let facts = &file.kernels[0].analysis.facts;
    let of_g = facts.accesses.iter().filter(|access| access.array == "g");
    of_g.map(|access| (access.requests, access.exact()))
        .collect()
}

#[test]
fn what_is_fetched_ahead_of_a_loop_is_fetched_once() {
    const USE: &str = "sum += s[k % 4][threadIdx.x ^ 1]; __syncthreads();";
    const FETCH: &str = "s[fetch % 4][threadIdx.x] = g[fetch * 128 + threadIdx.x];";
    let all = |requests: f64| vec![(Some(requests), true)];
    // Four warps of ten blocks.
    assert_eq!(
        staged(&format!(
            "for (int k = 0; k < n; ++k) {{ for (; fetch < n && fetch < k + 4; ++fetch) {{ {FETCH} }} {USE} }}"
        )),
        all(40.0 * 64.0)
    );
    assert_eq!(
        staged(&format!(
            "fetch = 3; for (int k = 0; k < n; ++k) {{ if (fetch < n) {{ {FETCH} ++fetch; }} {USE} }}"
        )),
        all(40.0 * 61.0)
    );
    // One warp of four.
    assert_eq!(
        staged(&format!(
            "fetch = 3; for (int k = 0; k < n; ++k) {{ if (threadIdx.x < 32 && fetch < n) {{ {FETCH} ++fetch; }} {USE} }}"
        )),
        all(10.0 * 61.0)
    );
}

#[test]
fn what_moves_on_where_data_says_is_not_counted() {
    for body in [
        "for (int k = 0; k < n; ++k) { if (flag[k] && fetch < n) { sum += g[fetch * 128 + threadIdx.x]; ++fetch; } }",
        // It goes on again.
        "for (int k = 0; k < n; ++k) { if (fetch < k / 8) { sum += g[fetch * 128 + threadIdx.x]; ++fetch; } fetch ^= flag[k]; }",
    ] {
        for (requests, exact) in staged(body) {
            assert!(!exact, "{requests:?} of {body}");
        }
    }
}
