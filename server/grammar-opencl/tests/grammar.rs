//! The compiled grammar reads every construct of OpenCL C, and keeps kernels in sight while one is being typed.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use tree_sitter::{Node, Parser, Tree};

fn parse(text: &str) -> Tree {
    let mut parser = Parser::new();
    parser
        .set_language(&warplens_grammar_opencl::LANGUAGE.into())
        .expect("the runtime accepts the grammar's version");
    parser.parse(text, None).expect("no time limit is set")
}

/// All nodes in the order of the text. No recursion: junk nests deeply.
fn nodes(tree: &Tree) -> Vec<Node<'_>> {
    let mut cursor = tree.walk();
    let mut found = Vec::new();
    loop {
        found.push(cursor.node());
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return found;
            }
        }
    }
}

/// The ERROR and MISSING nodes, with what they cover.
fn problems(tree: &Tree, text: &str) -> Vec<String> {
    nodes(tree)
        .iter()
        .filter(|node| node.is_error() || node.is_missing())
        .map(|node| format!("{} at `{}`", node.kind(), &text[node.byte_range()]))
        .collect()
}

/// The texts of all nodes of one kind.
fn texts<'t>(text: &'t str, kind: &str) -> Vec<&'t str> {
    let tree = parse(text);
    nodes(&tree)
        .iter()
        .filter(|node| node.kind() == kind && node.is_named())
        .map(|node| &text[node.byte_range()])
        .collect()
}

/// The names of the functions that are defined, in order.
fn functions(text: &str) -> Vec<&str> {
    let tree = parse(text);
    nodes(&tree)
        .iter()
        .filter(|node| node.kind() == "function_definition")
        .filter_map(|definition| {
            let mut node = *definition;
            while let Some(inner) = node.child_by_field_name("declarator") {
                node = inner;
            }
            text.get(node.byte_range())
        })
        .collect()
}

#[track_caller]
fn assert_clean(text: &str) {
    let tree = parse(text);
    let problems = problems(&tree, text);
    assert!(
        problems.is_empty(),
        "{text}\n{problems:?}\n{}",
        tree.root_node().to_sexp()
    );
}

const DECLARATIONS: &[&str] = &[
    "__kernel void k(__global float *a, __local float *b, __constant float *c, __private int d) {}",
    "kernel void k(global const float4 *restrict a, local int *const b, constant uchar *c) {}",
    "void __kernel k(void) {}",
    "static inline float f(const float x) { return x; }",
    "__inline half f(half x);",
    "__attribute__((overloadable)) float4 f(float4 x, uint4 y);",
    "float __attribute__((overloadable, const)) f(float x);",
    "__kernel void __attribute__((reqd_work_group_size(16, 16, 1))) k() {}",
    "__kernel __attribute__((reqd_work_group_size(X * 2, Y, 1))) __attribute__((vec_type_hint(uint2))) void k() {}",
    "__kernel void k(__global int *a) __attribute__((work_group_size_hint(64, 1, 1))) {}",
    "__attribute__((intel_reqd_sub_group_size(16))) kernel void k() {}",
    "__attribute__((max_global_work_dim(0))) __attribute__(()) kernel void k(float x __attribute__((unused))) {}",
    "kernel void k(__read_only image2d_t a, write_only image3d_t b, __read_write image1d_buffer_t c) {}",
    "kernel void k(image2d_array_t a, image1d_array_t b, image2d_depth_t c, image2d_msaa_t d, sampler_t s) {}",
    "kernel void k(pipe int a, read_only pipe float4 b, __write_only pipe struct packet c) {}",
    "void f(queue_t q, ndrange_t n, clk_event_t e, reserve_id_t r, event_t v);",
    "void f(atomic_int *a, volatile global atomic_uint *b, atomic_flag c, global atomic_ulong *d);",
    "void f(size_t a, ptrdiff_t b, intptr_t c, uintptr_t d, bool e, uchar f, ushort g, uint h, ulong i);",
    "void f(double3 a, half8 b, char16 c, ushort2 d, long4 e, ulong3 g);",
    "void f(unsigned a, unsigned char b, long unsigned int c, signed short d, unsigned long long e);",
    "unsigned const int x; long volatile y; unsigned __global int *z;",
    "__global int *__global *p; int __global *__private const q; __generic void *__constant *r;",
    "__global float *f(__global float *p) { return p; }",
    "__constant int table[2][3] = {{1, 2, 3}, {4, 5, 6}};",
    "constant sampler_t s = CLK_NORMALIZED_COORDS_FALSE | CLK_FILTER_NEAREST;",
    "global int counter = 0; local float *shared_row;",
    "typedef struct { float4 position; __global struct node *next; uint flags : 3, more : 5; } node_t;",
    "struct __attribute__((packed)) s { char a; int b __attribute__((aligned(8))); } __attribute__((aligned(16)));",
    "typedef union __attribute__((packed)) { uint i; uchar4 c; struct { ushort lo, hi; }; } bits;",
    "enum e { a, b = 1 << 2, c, }; typedef enum { d } f;",
    "typedef float4 __attribute__((aligned(4))) unaligned4; typedef int four __attribute__((ext_vector_type(4)));",
    "typedef unsigned int uint; typedef unsigned uchar; typedef struct { float x, y; } float2;",
    "typedef __local uint tile_t[16][17]; typedef float (*function_t)(float, int);",
    "typedef void (^block_t)(local void *); void run(block_t b, int (^)(int), int (^named)(void));",
    "const __restrict int x; __const float y; __volatile int z; __volatile__ int w;",
    "uniform float4 tint; float uniform(int pipe) { uniform(pipe); pipe = uniform; return pipe; }",
    "int printf(__constant char *format, ...);",
    "int a[] = { [0] = 1, [2] = 3 }; struct p q = { .x = 1, .y = { 2 } };",
    "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n#pragma OPENCL FP_CONTRACT OFF // why\nint x;",
    ";",
];

const STATEMENTS: &[&str] = &[
    "float4 v = (float4)(1.0f, 2.0f, 3.0f, 4.0f); v = (float4)(0);",
    "float8 w = (float8)((float4)(a.xy, b.zw), (float2)(1), c, d);",
    "float4 v = (real4)(a, b, c, d); int2 i = (const int2)(1, 2); x = (__private float4)(1);",
    "float4 v = (float4){1, 2, 3, 4}; struct s t = (struct s){.a = 1};",
    "float x = ((float4)(1, 2, 3, 4)).x + (float4)(1, 2, 3, 4).y + (float4)(v).z + (float4)(p)[3];",
    "v.xyzw = v.s0123; v.hi.lo = v.even + v.odd; v.sABCDEF = u.sabcdef; p->v.s0++; a[i].xy += 1;",
    "half h = 1.0h; float f = 0x1.0p3f + 1e-3f + .5f + 2.F + 1.e5; ulong u = 0xFFul + 0b101 + 1UL - 010;",
    "char c = 'a' + '\\n' + '\\x41'; printf(\"%v4f %s\\n\" \"more\", v, \"\");",
    "__global int *p = (__global int *)q + (size_t)(n); *(local float *)(r + 4) = *(__constant float *)s;",
    "p = (global const uchar4 *restrict)q; r = (float (*)[4])q; s = (__global void *__private *)q;",
    "n = sizeof(float4) + sizeof(__local float4 *) + sizeof x + sizeof(x) + sizeof(int[4]) + vec_step(half3);",
    "y = convert_uchar4_sat_rte(as_float4(x)) ? select(a, b, c) : fma(a, b, c);",
    "a = (b) ? (c) : (d); a = (b) - c; a = (b) * (c); a = (u32)(b) + (u64) c; (void)a; (void) f(a);",
    "a = b ^ c ^ ~d & !e | f && g || h << 2 >> 1; a <<= 1; a ^= b; a %= c, b = 2;",
    "barrier(CLK_LOCAL_MEM_FENCE); event_t e = async_work_group_copy(l, g, 64, 0); wait_group_events(1, &e);",
    "__local float tile[16][17] __attribute__((aligned(16))), *row = tile[0]; local int n;",
    "__attribute__((aligned(8))) float x; __private float y; float z __attribute__((unused)) = 1, *w;",
    "__attribute__((opencl_unroll_hint(4))) for (int i = 0; i < n; i++) s += a[i];",
    "__attribute__((opencl_unroll_hint)) __attribute__((other)) while (x) --x;",
    "__attribute__((nounroll)) do x--; while (x); __attribute__((fallthrough));",
    "#pragma unroll\nfor (;;) { break; }\nif (a)\n  #pragma unroll 4\n  for (uint i = 0, j = n; i < j; ++i, --j) ;\n",
    "if (a) b; else if (c) { d; } else return; while (a) if (b) continue; else break;",
    "switch (x) { case 1: case 2: y = 1; break; case 'a': { z; } default: int t = 3; y = t; }",
    "goto end; { int scoped; } end: x++; ;",
    "int (^twice)(int) = ^(int a) { return 2 * a; }; x = twice(2); y = ^int(int a) { return a; }(3);",
    "enqueue_kernel(q, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(64), ^{ k(p); });",
    "enqueue_kernel(q, f, nd, 1, &e, &r, ^(local int *a, local float *b) { k(a, b); }, 4, 8);",
    "write_pipe(p, &x); reserve_id_t r = reserve_read_pipe(p, n); if (is_valid_reserve_id(r)) read_pipe(p, r, 0, &x);",
    "atomic_fetch_add_explicit(p, 1, memory_order_relaxed, memory_scope_device); atomic_inc((volatile global int *)p);",
    "asm volatile(\"add %0, %1, %2;\" : \"=r\"(x) : \"r\"(y), \"r\"(z) : \"memory\"); __asm__(\"nop\");",
    "foo *bar; foo(bar); foo(*bar); const foo baz = {0}; __global foo *qux = &a[i]; x = p->q[i].r(j)[k];",
    "float4 (*fp)(float4) = f; int matrix[2][2] = {{1, 2}, {3, 4}}; return;",
    "x = i++ + ++j - k-- - --l; p++->x = 1; *p++ = -+-~!x;",
];

#[test]
fn every_declaration_is_read_whole() {
    for text in DECLARATIONS {
        assert_clean(text);
    }
}

#[test]
fn every_statement_is_read_whole() {
    for text in STATEMENTS {
        assert_clean(&format!("kernel void k() {{\n{text}\n}}\n"));
    }
}

#[test]
fn every_qualifier_has_its_node() {
    for (kind, words) in [
        (
            "address_space_qualifier",
            ["global", "local", "constant", "private", "generic"].as_slice(),
        ),
        (
            "access_qualifier",
            &["read_only", "write_only", "read_write"],
        ),
    ] {
        for word in words
            .iter()
            .flat_map(|word| [(*word).to_owned(), format!("__{word}")])
        {
            let text =
                format!("{word} void f({word} int *{word} a, int {word} b) {{ {word} int c; }}");
            assert_clean(&text);
            assert_eq!(texts(&text, kind), [&*word; 5], "{text}");
        }
    }
    for word in ["kernel", "__kernel"] {
        for text in [format!("{word} void f();"), format!("void {word} f() {{}}")] {
            assert_clean(&text);
            assert_eq!(texts(&text, "function_qualifier"), [word], "{text}");
        }
    }
}

#[test]
fn every_built_in_type_is_a_primitive_type() {
    let mut types: Vec<String> = Vec::new();
    for element in [
        "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "half", "float",
        "double",
    ] {
        types.extend([2, 3, 4, 8, 16].map(|lanes| format!("{element}{lanes}")));
        if element != "short" && element != "long" {
            types.push(element.to_owned());
        }
    }
    types.extend(
        [
            "bool",
            "void",
            "size_t",
            "ptrdiff_t",
            "intptr_t",
            "uintptr_t",
            "image1d_t",
            "image1d_buffer_t",
            "image1d_array_t",
            "image2d_t",
            "image2d_array_t",
            "image2d_depth_t",
            "image2d_array_depth_t",
            "image2d_msaa_t",
            "image2d_msaa_depth_t",
            "image2d_array_msaa_t",
            "image2d_array_msaa_depth_t",
            "image3d_t",
            "sampler_t",
            "event_t",
            "queue_t",
            "ndrange_t",
            "clk_event_t",
            "reserve_id_t",
            "atomic_int",
            "atomic_uint",
            "atomic_long",
            "atomic_ulong",
            "atomic_float",
            "atomic_double",
            "atomic_flag",
            "atomic_size_t",
            "atomic_intptr_t",
            "atomic_uintptr_t",
            "atomic_ptrdiff_t",
        ]
        .map(str::to_owned),
    );
    for name in types {
        let text = format!("{name} *f({name} *x) {{ {name} *y = ({name} *)x; }}");
        assert_clean(&text);
        assert_eq!(texts(&text, "primitive_type"), [&*name; 4], "{text}");
    }
}

#[test]
fn ambiguous_parentheses_have_the_documented_reading() {
    for (expression, kind) in [
        ("(float4)(a, b, c, d)", "vector_literal"),
        ("(float4)(a)", "vector_literal"),
        ("(const uint2)(a)", "vector_literal"),
        ("(T)(a, b)", "vector_literal"),
        ("(float4){a}", "compound_literal_expression"),
        ("(float4)a", "cast_expression"),
        ("(float4)(a).x", "cast_expression"),
        ("(float)(a)", "cast_expression"),
        ("(T)(a)", "cast_expression"),
        ("(T)a", "cast_expression"),
        ("(T *)(a)", "cast_expression"),
        ("(T)(a) * b", "binary_expression"),
        ("(T) - a", "binary_expression"),
        ("(T) + a", "binary_expression"),
        ("(T) * a", "binary_expression"),
        ("(T) & a", "binary_expression"),
        ("(float4)(a) * b", "binary_expression"),
        ("(float4)(a, b).x", "field_expression"),
        ("f(a)", "call_expression"),
        ("f(^{ g(); })", "call_expression"),
        ("sizeof(float4)", "sizeof_expression"),
    ] {
        for text in [
            format!("void f() {{ x = {expression}; }}"),
            format!("void f() {{ int x = {expression}; }}"),
            format!("void f() {{ x[{expression}] = 0; }}"),
        ] {
            assert_clean(&text);
            let tree = parse(&text);
            let read = nodes(&tree)
                .iter()
                .find(|node| &text[node.byte_range()] == expression)
                .map(Node::kind);
            assert_eq!(read, Some(kind), "{text}");
        }
    }
}

#[test]
fn fields_lead_to_the_parts_of_a_vector_literal_and_an_attribute() {
    let text = "__attribute__((reqd_work_group_size(16, N * 2, 1))) void f() { x = (float4)(a, b + 1, c, 0); }";
    let tree = parse(text);
    for (kind, field, parts) in [
        ("attribute", "arguments", vec!["16", "N * 2", "1"]),
        ("vector_literal", "arguments", vec!["a", "b + 1", "c", "0"]),
        ("attribute", "name", vec![]),
        ("vector_literal", "type", vec!["float4"]),
    ] {
        let all = nodes(&tree);
        let node = all.iter().find(|node| node.kind() == kind).expect(kind);
        let part = node.child_by_field_name(field).expect(field);
        let mut cursor = part.walk();
        let found: Vec<&str> = part
            .named_children(&mut cursor)
            .map(|child| &text[child.byte_range()])
            .collect();
        assert_eq!(found, parts, "{kind}.{field}");
    }
}

/// What is at the cursor while a statement is being typed.
const HALF_TYPED: &[&str] = &[
    "a[",
    "a[i",
    "a[]",
    "a[i + ]",
    "float x =",
    "float x = a[i] +",
    "foo(1,",
    "foo(",
    "foo()",
    "foo(a,)",
    "if (",
    "if (x",
    "if (x)",
    "if ()",
    "if () {}",
    "if (a[i] >",
    "while (x",
    "while ()",
    "for ()",
    "for (int i = 0)",
    "for (int i = 0; i < n)",
    "for (;;)",
    "for (int i = 0; i < n; i++)",
    "for (int i = 0; i < ; ++i) {}",
    "x.",
    "b[i].",
    "v = w.",
    "(float4)(",
    "(float4)()",
    "(float4)(1,",
    "float4 v = (float4)(a,",
    "float4 v = (float4)(",
    "__local",
    "__local float",
    "__local float t[",
    "__local float t[];",
    "x = y +",
    "x = y + ;",
    "x +=",
    "x =",
    "x = ;",
    "x",
    "return",
    "return a +",
    "int",
    "int ;",
    "unsigned",
    "const",
    "(",
    "(__global float *",
    "*",
    "a b c",
    "->",
    "1.0e",
    "0x",
    "@",
    "\"abc",
    "'a",
    "else",
    "if (x) {} else",
    "case 1:",
    "case",
    "goto",
    "kernel",
    "switch (x)",
    "switch (x) {}",
    "#pragma",
    "#pragma unroll",
    "__attribute__((",
    "__attribute__((opencl_unroll_hint(4)",
    "__attribute__(())",
    "barrier(CLK_LOCAL_MEM_FENCE",
    "enqueue_kernel(q, f, n, ^{})",
];

/// Two kernels after one whose body has `typed` as its line `line`.
fn with_line(typed: &str, line: usize) -> String {
    let mut body = vec![
        "int i = get_global_id(0);",
        "a[i] = b[i] * 2.0f;",
        "for (int j = 0; j < n; ++j) { acc += a[j]; }",
        "if (i < n) a[i] = acc;",
    ];
    body.insert(line, typed);
    format!(
        "float helper(float x) {{ return x; }}\n\
         __kernel void first(__global float *a, __global const float *b, int n) {{\n  {}\n}}\n\n\
         __kernel __attribute__((reqd_work_group_size(16, 16, 1)))\nvoid second(__global float *a) {{ a[0] = 1; }}\n\
         kernel void third(global int *p) {{ p[0] = 1; }}\n",
        body.join("\n  ")
    )
}

#[test]
fn a_half_typed_statement_leaves_all_functions_standing() {
    let mut lost = String::new();
    for typed in HALF_TYPED {
        for line in [0, 2, 4] {
            let text = with_line(typed, line);
            let found = functions(&text);
            let tree = parse(&text);
            let nested = nodes(&tree).iter().any(|node| {
                node.kind() == "function_definition"
                    && node
                        .parent()
                        .is_some_and(|parent| parent.parent().is_some())
            });
            if nested || found != ["helper", "first", "second", "third"] {
                let _ = writeln!(
                    lost,
                    "`{typed}` in line {line}: {found:?}, nested: {nested}"
                );
            }
        }
    }
    assert!(lost.is_empty(), "{lost}");
}

#[test]
fn a_missing_brace_leaves_the_later_functions_nested() {
    for typed in [
        "{",
        "if (i) {",
        "for (;;) {",
        "while (i) {",
        "do {",
        "switch (i) {",
    ] {
        for line in [0, 2, 4] {
            let text = with_line(typed, line);
            assert_eq!(
                functions(&text),
                ["helper", "first", "second", "third"],
                "`{typed}` in line {line}"
            );
        }
    }
}

#[test]
fn a_half_typed_statement_costs_its_neighbours_nothing() {
    for typed in [
        "x = y +",
        "float x =",
        "a[i] = foo(",
        "if (i >",
        "__local float",
    ] {
        let text = with_line(typed, 2);
        let assignments = texts(&text, "assignment_expression");
        for kept in ["a[i] = b[i] * 2.0f", "acc += a[j]", "a[i] = acc"] {
            assert!(assignments.contains(&kept), "`{typed}`: {assignments:?}");
        }
    }
}

#[test]
fn deep_and_ambiguous_texts_take_linear_time() {
    let deep = 2_000;
    for text in [
        format!(
            "void f() {{ x = {}a{}; }}",
            "(".repeat(deep),
            ")".repeat(deep)
        ),
        format!(
            "void f() {{ x = {}1{}; }}",
            "(float2)(".repeat(deep),
            ", 1)".repeat(deep)
        ),
        format!(
            "void f() {{ x = {}1{}; }}",
            "(T)(".repeat(deep),
            ", 1)".repeat(deep)
        ),
        format!("void f() {{ x = {}; }}", "(a)".repeat(deep)),
        format!(
            "void f() {{ {} }}",
            "a * b; (a) - b; a(b); (f)(x, y);".repeat(deep)
        ),
        "(".repeat(deep * 10),
        "{".repeat(deep * 10),
        format!("void f() {{ x = {}", "(T)(".repeat(deep)),
        "__attribute__((".repeat(deep),
        "^{".repeat(deep),
        "for (".repeat(deep),
        "\u{0}\u{1}\u{7f}é\u{10ffff}".repeat(deep),
    ] {
        let start = Instant::now();
        let tree = parse(&text);
        assert_eq!(tree.root_node().end_byte(), text.len());
        assert!(
            start.elapsed() < Duration::from_secs(10),
            "{} … took {:?}",
            &text.chars().take(40).collect::<String>(),
            start.elapsed()
        );
    }
}

fn token() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "kernel",
        "__global",
        "local",
        "float4",
        "float",
        "unsigned",
        "T",
        "a",
        "1",
        "0x1p3",
        "(",
        ")",
        "{",
        "}",
        "[",
        "]",
        ";",
        ",",
        "*",
        "&",
        "^",
        "=",
        "+",
        "-",
        "++",
        ".",
        "->",
        "?",
        ":",
        "if",
        "else",
        "for",
        "while",
        "switch",
        "case",
        "return",
        "struct",
        "typedef",
        "pipe",
        "uniform",
        "sizeof",
        "__attribute__((",
        "))",
        "\n#pragma x\n",
        "\"",
        "'",
        "/*",
        "*/",
        "//",
        "\\",
        "#",
        "\u{e9}",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any sequence of words is parsed, and a function before it with nothing open is found.
    #[test]
    fn any_words_after_a_kernel_leave_it_standing(words in prop::collection::vec(token(), 0..60)) {
        let text = format!("kernel void first(global int *p) {{ p[0] = 1; }}\n;\n{}", words.join(" "));
        let tree = parse(&text);
        prop_assert!(tree.root_node().end_byte() <= text.len());
        prop_assert_eq!(functions(&text).first().copied(), Some("first"));
    }

    /// Typing a kernel one piece after the other, with the old tree re-used, ends in the tree of a fresh parse.
    #[test]
    fn incremental_parses_end_in_the_same_tree(cut in 0usize..400, length in 0usize..30) {
        let whole = with_line("float4 v = (float4)(a[i], 0, (T)(n), 1);", 2);
        let cut = cut.min(whole.len());
        let end = (cut + length).min(whole.len());
        let without = format!("{}{}", &whole[..cut], &whole[end..]);
        let mut tree = parse(&without);
        let position = |text: &str, at: usize| {
            let before = &text[..at];
            tree_sitter::Point::new(
                before.matches('\n').count(),
                at - before.rfind('\n').map_or(0, |line| line + 1),
            )
        };
        tree.edit(&tree_sitter::InputEdit {
            start_byte: cut,
            old_end_byte: cut,
            new_end_byte: end,
            start_position: position(&whole, cut),
            old_end_position: position(&whole, cut),
            new_end_position: position(&whole, end),
        });
        let mut parser = Parser::new();
        parser.set_language(&warplens_grammar_opencl::LANGUAGE.into()).expect("the version fits");
        let again = parser.parse(&whole, Some(&tree)).expect("no time limit is set");
        prop_assert_eq!(again.root_node().to_sexp(), parse(&whole).root_node().to_sexp());
    }
}
