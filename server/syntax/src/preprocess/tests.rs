//! What a user of the preprocessor relies on, rule by rule; then properties on generated programs, among them
//! that `gcc -E` agrees.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::{
    EarlierText, IncludeLine, IncludeResult, Includes, Macros, Options, Piece, Preprocessed,
    SourceMap, WordTable, preprocess,
};
use crate::lexer;

/// Files by path. What ends in `.inc` is put in place, everything else is a header.
#[derive(Default)]
struct Files {
    texts: HashMap<&'static str, &'static str>,
    /// What happened, in order.
    log: Vec<String>,
}

impl Includes for Files {
    fn include(&mut self, line: &IncludeLine<'_>, macros: &Macros, inside: bool) -> IncludeResult {
        let next = if line.next { " next" } else { "" };
        self.log.push(format!(
            "{} system={} inside={inside} at={}{next}",
            line.spelled, line.system, line.at
        ));
        let Some(text) = self.texts.get(line.spelled).copied() else {
            return IncludeResult::Nothing;
        };
        if Path::new(line.spelled).extension() == Some("inc".as_ref()) {
            return IncludeResult::Text {
                text: text.into(),
                path: Arc::from(Path::new(line.spelled)),
            };
        }
        let made = preprocess(text, options(macros.clone(), &WordTable::default()), self);
        IncludeResult::Header {
            macros: made.macros,
            trace: Arc::new(made.trace),
        }
    }

    fn enter(&mut self, path: &Path) {
        self.log.push(format!("enter {}", path.display()));
    }

    fn leave(&mut self) {
        self.log.push("leave".to_owned());
    }

    fn has_include(&mut self, spelled: &str, _system: bool) -> bool {
        self.texts.contains_key(spelled)
    }
}

fn nothing_absent(_: &str) -> bool {
    false
}

fn options(macros: Macros, words: &WordTable) -> Options<'_> {
    Options {
        macros,
        known_absent: &nothing_absent,
        words,
        file: "main.cu",
        traced: true,
        earlier: None,
    }
}

pub(super) fn run(source: &str) -> Preprocessed {
    run_with(source, &[], &[])
}

/// Without looking the result over, which takes longer than to make it.
pub(super) fn run_bare(source: &str) -> Preprocessed {
    let words = words();
    preprocess(
        source,
        options(Macros::default(), &words),
        &mut Files::default(),
    )
}

/// As a buffer is read, with an earlier version of it.
pub(super) fn run_after(source: &str, earlier: Option<EarlierText>) -> Preprocessed {
    let words = words();
    let options = Options {
        traced: false,
        earlier,
        ..options(Macros::default(), &words)
    };
    preprocess(source, options, &mut Files::default())
}

fn run_with(
    source: &str,
    defines: &[(&str, &str)],
    files: &[(&'static str, &'static str)],
) -> Preprocessed {
    run_logged(source, defines, files).0
}

fn run_logged(
    source: &str,
    defines: &[(&str, &str)],
    files: &[(&'static str, &'static str)],
) -> (Preprocessed, Vec<String>) {
    let mut macros = Macros::default();
    for (name, body) in defines {
        macros.define(name, body);
    }
    let mut includes = Files {
        texts: files.iter().copied().collect(),
        log: Vec::new(),
    };
    let words = words();
    let made = preprocess(source, options(macros, &words), &mut includes);
    check(source, &made);
    (made, includes.log)
}

fn words() -> WordTable {
    [
        ("__kernel", ("kernel", false)),
        ("__global", ("global", false)),
        ("__local", ("local", false)),
        ("__launch_bounds__", ("launch_bounds", true)),
        ("__attribute__", ("attribute", true)),
    ]
    .into_iter()
    .collect()
}

/// What holds of every result.
pub(super) fn check(source: &str, made: &Preprocessed) {
    let mut end = 0;
    for piece in made.map.pieces() {
        assert_eq!(piece.output.start, end, "the map has a gap");
        end = piece.output.end;
        assert!(piece.source.end <= source.len() && piece.source.start <= piece.source.end);
        if !piece.verbatim {
            continue;
        }
        let copy = &made.text.as_bytes()[piece.output.clone()];
        let original = &source.as_bytes()[piece.source.clone()];
        for (offset, (&copied, &byte)) in copy.iter().zip(original).enumerate() {
            let at = piece.output.start + offset;
            let blanked = made.map.blanks().iter().any(|blank| blank.contains(&at))
                || made.words.iter().any(|word| word.range.contains(&at));
            assert!(copied == byte || (blanked && copied == b' '), "byte {at}");
        }
    }
    assert_eq!(end, made.text.len(), "the map ends early");
    for word in &made.words {
        assert!(made.text[word.range.clone()].trim().is_empty());
        assert!(!word.range.is_empty());
    }
    for undecided in &made.undecided {
        assert!(undecided.names.iter().all(|name| !name.is_empty()));
    }
}

/// The tokens of a text, without white space and comments.
pub(super) fn tokens(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    loop {
        at = lexer::skip_blank(bytes, at);
        if at >= bytes.len() {
            return found;
        }
        let (_, end) = lexer::token(bytes, at);
        found.push(&text[at..end]);
        at = end;
    }
}

/// Each case: the source and what is left of it, white space apart.
fn expands(cases: &[(&str, &str)]) {
    for (source, expected) in cases {
        let made = run(source);
        assert_eq!(tokens(&made.text), tokens(expected), "{source}");
    }
}

/// Each case: the source and the output, byte for byte.
fn becomes(cases: &[(&str, &str)]) {
    for (source, expected) in cases {
        assert_eq!(run(source).text, *expected, "{source}");
    }
}

fn problems(source: &str) -> Vec<(String, String)> {
    run(source)
        .problems
        .into_iter()
        .map(|problem| (source[problem.range].to_owned(), problem.message))
        .collect()
}

mod layout {
    use super::*;

    #[test]
    fn text_without_directives_and_macros_is_left_as_it_is() {
        for source in [
            "",
            "\n",
            "int a; // it's\n/* # */ 'x' \"#define\" 1'000'000 0x1F\r\n\ta \\\n b\n",
            "k<<<g, b>>>(a); std::vector<std::vector<int>> v; a >>= 2;",
            "R\"x(\n#define A\n)x\" u8R\"(\")\" L\"\\\"\" L'\\'' \"open\nA 'open\n",
            "größe \u{0}\u{1} 漢字 \u{feff}",
            "// # \\\n#define A 1\nA",
            "a # b\n",
        ] {
            let made = run(source);
            assert_eq!(made.text, source);
            assert!(made.map.is_verbatim(0..source.len()));
            assert!(made.map.pieces().count() <= 1);
            for at in 0..=source.len() {
                assert_eq!(made.map.to_source(at), at);
                assert_eq!(made.map.to_output(at), Some(at));
            }
        }
    }

    #[test]
    fn directives_and_inactive_branches_become_spaces_of_the_same_length() {
        becomes(&[
            ("#define A 1\nx", "           \nx"),
            ("#define A \\\r\n 1\r\nx", "           \r\n  \r\nx"),
            (
                "a\n  # define A /* b\n c */ 2\nx",
                "a\n                 \n       \nx",
            ),
            (
                "#if 0\nä\n#else\nb\n#endif\nc",
                "     \n  \n     \nb\n      \nc",
            ),
            (
                "#if 1\na\n#elif 1\nb\n#else\nc\n#endif",
                "     \na\n       \n \n     \n \n      ",
            ),
            ("\u{feff}#define A 1\nA", "\u{feff}           \n1"),
            ("/* c */ #define A 1\nA", "/* c */            \n1"),
            (
                "#\n#!/bin\n# 12 \"f\"\n#error don't\nx",
                " \n      \n        \n            \nx",
            ),
            (
                "#if 0\n/*\n#endif\n*/\n\"/*\"\n#endif\nx",
                "     \n  \n      \n  \n    \n      \nx",
            ),
        ]);
    }

    #[test]
    fn blanked_text_maps_one_to_one_and_is_not_verbatim() {
        let source = "a\n#if 0\nb\n#endif\nc\n";
        let made = run(source);
        assert_eq!(made.map.pieces().count(), 1);
        assert_eq!(made.map.to_source(9), 9);
        assert!(made.map.is_verbatim(0..2));
        assert!(made.map.is_verbatim(17..19));
        assert!(!made.map.is_verbatim(0..3));
        assert!(!made.map.is_verbatim(8..9));
        assert!(!made.map.is_verbatim(0..19));
    }

    #[test]
    fn a_use_is_replaced_on_one_line_and_its_newlines_follow() {
        becomes(&[
            (
                "#define F(a, b) a  +  b\nx = F(1,\n\n2); y",
                "                       \nx = 1 + 2\n\n; y",
            ),
            ("#define N 16\nint a[N];", "            \nint a[16];"),
            (
                "#define EMPTY\n+EMPTY+ a EMPTY b",
                "             \n+ + a  b",
            ),
            ("#define NEG -1\n-NEG-NEG", "              \n- -1- -1"),
            (
                "#define F(a) a\nF(x  +\ty)F(/**/z)1",
                "              \nx  +\ty z 1",
            ),
            (
                "#define F(a) a\nF(a>>b)F(>)F(>)F(=)",
                "              \na>>b > > =",
            ),
        ]);
    }

    #[test]
    fn pragmas_are_kept_and_numbers_of_unroll_expanded() {
        becomes(&[
            (
                "#define T 4\n#pragma unroll T\nfor\n#pragma unroll (T)\n#pragma T unroll\n#pragma GCC unroll T",
                "           \n#pragma unroll 4\nfor\n#pragma unroll (4)\n#pragma T unroll\n#pragma GCC unroll 4",
            ),
            (
                "#define F(x) x\n# pragma unroll F\n(3)",
                "              \n# pragma unroll F\n(3)",
            ),
            (
                "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n",
                "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n",
            ),
            (
                "#define T 4\n#define U _Pragma(\"unroll T\") for\na; U (;;)\n_Pragma ( \"nounroll\" ) x _Pragma",
                "           \n                                 \na; \n#pragma unroll 4\nfor (;;)\n\n#pragma nounroll\n x _Pragma",
            ),
        ]);
        // Among the arguments of a use as well.
        assert_eq!(
            run("#define F(a) a\nF(x\n#pragma unroll 2\ny)").text,
            "              \nx\n#pragma unroll 2\ny"
        );
    }
}

mod expansion {
    use super::*;

    #[test]
    fn object_like_macros() {
        expands(&[
            ("#define A 1\nA AA xA A", "1 AA xA 1"),
            ("#define A B\n#define B A\nA B", "A B"),
            ("#define A A + 1\nA", "A + 1"),
            ("#define A 1\n#undef A\nA", "A"),
            ("#define A 1\n#define A 2\nA", "2"),
            ("#define A 1\nA\n#define A 2\nA", "1 2"),
            ("#define A (x) y\nA(z)", "(x) y(z)"),
            (
                "#define\n#define 1\n#define defined 1\n#undef\nA defined",
                "A defined",
            ),
            (
                "#define A 1 // c\n#define B /* c */ 2 /* d */ 3\nA B",
                "1 2 3",
            ),
            (
                "#define A \"//\" '\"' /* x */ \"/*\"\nA",
                "\"//\" '\"' \"/*\"",
            ),
            ("#define LONG a \\\n  b \\\n  c\nLONG", "a b c"),
            ("#define größe 2\ngröße gr", "2 gr"),
        ]);
    }

    #[test]
    fn literals_numbers_and_comments_are_not_expanded() {
        becomes(&[
            (
                "#define A 1\n#define L 2\n#define e3 4\n\"A\" 'A' L\"A\" L'A' R\"(A)\" /* A */ 0xA 1e3 1'A2 // A\nA",
                "           \n           \n            \n\"A\" 'A' L\"A\" L'A' R\"(A)\" /* A */ 0xA 1e3 1'A2 // A\n1",
            ),
            (
                "#define A 1\n\"A\nA 'A\nA \"\\\nA\" A",
                "           \n\"A\n1 'A\n1 \"\\\nA\" 1",
            ),
        ]);
    }

    #[test]
    fn function_like_macros() {
        expands(&[
            (
                "#define F(x) [x]\nF(1) F (2) F\n(3) F F /* c */ // d\n(4)",
                "[1] [2] [3] F [4]",
            ),
            (
                "#define F(x) [x]\nF((a,b)) F({a;}) F()",
                "[(a,b)] [{a;}] []",
            ),
            ("#define F() f\nF() F( ) F(/* c */)", "f f f"),
            (
                "#define F(x,y) x-y\nF(,) F(1,) F(,2) F((,),[)",
                "- 1- -2 (,)-[",
            ),
            (
                "#define F(x) x\nF(\")\" ')' R\"(\n))\" /*)*/ 1)",
                "\")\" ')' R\"(\n))\" 1",
            ),
            ("#define F(x) G(x)\n#define G(x) x x\nF(F(1))", "1 1 1 1"),
            ("#define F(x) x\nF(F)(1) F(F(F))(1)", "F(1) F(1)"),
            ("#define f(a) a*g\n#define g(a) f(a)\nf(2)(9)", "2*9*g"),
            ("#define f(a) a + f(a)\nf(x)", "x + f(x)"),
            (
                "#define NIL(x) x\n#define G_0(x) NIL(x)\nG_0(G_0)(1)",
                "G_0(1)",
            ),
            ("#define A F\n#define F(x) <x>\nA(1) A (2) A", "<1> <2> F"),
            ("#define LP (\n#define F(x) <x>\nF LP 1)", "F(1)"),
            ("#define F(x) x\n#define LP (\n#define G F LP\nG 1)", "F(1)"),
            (
                "#define EMPTY\n#define F(x) x\n#define D(x) x EMPTY\nD(F)(1) D(D(F)(1))",
                "F(1) 1",
            ),
            ("#define F(a,b) b a\nF(a, b) F(b, a)", "b a a b"),
        ]);
    }

    #[test]
    fn stringising_and_pasting() {
        expands(&[
            (
                "#define S(x) #x\nS( a  +\n b ) S(\"x\\n\" '\"') S() S(/**/)",
                r#""a + b" "\"x\\n\" '\"'" "" """#,
            ),
            (
                "#define S(x) #x\n#define X(x) S(x)\n#define A 1\nS(A) X(A)",
                r#""A" "1""#,
            ),
            ("#define S(x) # x\nS(a \\ b)", r#""a \ b""#),
            (
                "#define C(a,b) a##b\nC(x,1) C(1,2) C(,x) C(x,) C(,) C(<,<) C(L,\"a\")",
                "x1 12 x x << L\"a\"",
            ),
            (
                "#define A 1\n#define C(a,b) a ## b\n#define X(a,b) C(a,b)\nC(A,A) X(A,A) C(A,)",
                "AA 11 1",
            ),
            ("#define C(a,b,c) a##b##c\nC(x,,y) C(,,) C(1,.,2)", "xy 1.2"),
            ("#define C(a,b) a ## b\nC(+,x) C(x y, z w)", "+ x x yz w"),
            ("#define P x ## y\n#define xy 5\nP", "5"),
            (
                "#define hash_hash # ## #\n#define mkstr(a) # a\n#define in_between(a) mkstr(a)\n#define join(c, d) in_between(c hash_hash d)\nchar p[] = join(x, y);",
                "char p[] = \"x ## y\";",
            ),
            ("#define S #x\nS", "#x"),
            ("#define F(x) ## x\nF(a)", "## a"),
            ("#define AB 1\n#define F(x) A##x\nF(B) F(C)", "1 AC"),
            ("#define F(x) x##F\n#define aF(y) [y]\nF(a)(1)", "[1]"),
        ]);
    }

    #[test]
    fn variadic_macros() {
        expands(&[
            (
                "#define V(...) f(__VA_ARGS__)\nV() V(1) V(1, 2)",
                "f() f(1) f(1, 2)",
            ),
            (
                "#define V(a, ...) f(a, ##__VA_ARGS__)\nV(1) V(1,) V(1,2) V(1,2,3)",
                "f(1) f(1,) f(1,2) f(1,2,3)",
            ),
            ("#define V(a...) f(0, ##a)\nV() V(1,2)", "f(0) f(0,1,2)"),
            ("#define V(x, rest...) x rest\nV(1, 2, 3) V(1)", "1 2, 3 1"),
            (
                "#define V(a, ...) f(a __VA_OPT__(,) __VA_ARGS__)\nV(1) V(1,) V(1,2)",
                "f(1) f(1) f(1,2)",
            ),
            (
                "#define E\n#define V(...) x __VA_OPT__(a ## b (__VA_ARGS__)) y\nV() V(E) V(1)",
                "x y x y x ab(1) y",
            ),
            ("#define V(...) a ## __VA_OPT__(b) c\nV() V(1)", "a c ab c"),
            (
                "#define V(...) #__VA_ARGS__\nV(a,  \"b\" , c)",
                "\"a, \\\"b\\\" , c\"",
            ),
            (
                "#define CHECK(c, ...) if (!(c)) fail(__VA_ARGS__)\nCHECK(a == b, \"%d\", x);",
                "if (!(a == b)) fail(\"%d\", x);",
            ),
        ]);
    }

    #[test]
    fn variations_on_the_examples_of_the_standard() {
        let head = "#define x 3\n#define f(a) f(x * (a))\n#undef x\n#define x 2\n#define g f\n#define z z[0]\n#define h g(~\n#define m(a) a(w)\n#define w 0,1\n#define t(a) a\n#define p() int\n#define q(x) x\n#define r(x,y) x ## y\n#define str(x) # x\n";
        for (use_, expected) in [
            (
                "f(y+1) + f(f(z)) % t(t(g)(0) + t)(1);",
                "f(2 * (y+1)) + f(2 * (f(2 * (z[0])))) % f(2 * (0)) + t(1);",
            ),
            (
                "g(x+(3,4)-w) | h 5) & m\n(f)^m(m);",
                "f(2 * (2+(3,4)-0,1)) | f(2 * (~ 5)) & f(2 * (0,1))^m(0,1);",
            ),
            (
                "p() i[q()] = { q(1), r(2,3), r(4,), r(,5), r(,) };",
                "int i[] = { 1, 23, 4, 5, };",
            ),
            (
                "char c[2][6] = { str(hello), str() };",
                "char c[2][6] = { \"hello\", \"\" };",
            ),
        ] {
            expands(&[(&format!("{head}{use_}"), expected)]);
        }
        expands(&[
            (
                "#define str(s) # s\n#define xstr(s) str(s)\n#define debug(s, t) printf(\"x\" # s \"= %d, x\" # t \"= %s\", \\\n x ## s, x ## t)\n#define INCFILE(n) vers ## n\n#define glue(a, b) a ## b\n#define xglue(a, b) glue(a, b)\n#define HIGHLOW \"hello\"\n#define LOW LOW \", world\"\ndebug(1, 2); fputs(str(strncmp(\"abc\\0d\", \"abc\", '\\4') == 0) str(: @\\n), s); xstr(INCFILE(2).h) glue(HIGH, LOW); xglue(HIGH, LOW)",
                "printf(\"x\" \"1\" \"= %d, x\" \"2\" \"= %s\", x1, x2); fputs(\"strncmp(\\\"abc\\\\0d\\\", \\\"abc\\\", '\\\\4') == 0\" \": @\\n\", s); \"vers2.h\" \"hello\"; \"hello\" \", world\"",
            ),
            (
                "#define t(x,y,z) x ## y ## z\nint j[] = { t(1,2,3), t(,4,5), t(6,,7), t(8,9,), t(10,,), t(,11,), t(,,12), t(,,) };",
                "int j[] = { 123, 45, 67, 89, 10, 11, 12, };",
            ),
        ]);
    }

    #[test]
    fn names_that_the_preprocessor_defines() {
        becomes(&[
            (
                "\n__LINE__ __FILE__ __COUNTER__ __COUNTER__",
                "\n2 \"main.cu\" 0 1",
            ),
            (
                "#define L __LINE__\n\nL /*\n*/ L",
                "                  \n\n3 /*\n*/ 4",
            ),
            (
                "#define C(a,b) a##b\n#define X(a,b) C(a,b)\nX(v,__LINE__)",
                "                   \n                     \nv3",
            ),
            (
                "#if defined(__LINE__) && defined __COUNTER__\na\n#endif",
                "                                            \na\n      ",
            ),
        ]);
    }

    #[test]
    fn chevrons_and_template_brackets_keep_their_spelling() {
        becomes(&[
            (
                "#define L(k, ...) k<<<g, b>>>(__VA_ARGS__)\nL(k, a, b);",
                "                                          \nk<<<g, b>>>(a, b);",
            ),
            (
                "#define T(x) x\nT(k<<<1,2>>>);",
                "              \nT(k<<<1,2>>>);",
            ),
            (
                "#define T(...) __VA_ARGS__\nT(A<B<C<int>>>) T(k<<<1, 2>>>(x))",
                "                          \nA<B<C<int>>> k<<<1, 2>>>(x)",
            ),
        ]);
    }

    #[test]
    fn directives_among_arguments_are_obeyed() {
        expands(&[
            (
                "#define F(x) [x]\nF(a\n#define B 2\nB\n#undef B\nB) B",
                "[a B B] B",
            ),
            (
                "#define F(x) [x]\nF(a,\n#if 0\nb)\n#else\nc)\n#endif\nd",
                "F(a, c) d",
            ),
            (
                "#define F(x) [x]\nF(a\n#ifdef F\n+ b\n#else\n- c\n#endif\n) d",
                "[a + b] d",
            ),
            ("#define F(x) [x]\nF\n#define G 1\n(2) G", "F (2) 1"),
        ]);
        let made = run("#if 1\n#define F(x) [x]\nF(a\n#endif\n) b");
        assert_eq!(tokens(&made.text), ["F", "(", "a", ")", "b"]);
    }

    #[test]
    fn half_typed_uses_are_left_as_they_are() {
        let message = |text: &str| text.to_owned();
        let cases = [
            ("F(a", "F(a"),
            (
                "void f() { F(a; }\nint x = N;",
                "void f() { F(a; }\nint x = 7;",
            ),
            ("{ F(g(N) }\nF(1)", "{ F(g(7) }\n1"),
            ("F(a\n#if 1\n#endif\n N", "F(a\n     \n      \n 7"),
        ];
        for (source, expected) in cases {
            let text = format!("#define F(x) x\n#define N 7\n{source}");
            let made = run(&text);
            assert_eq!(&made.text[27..], expected);
            assert_eq!(made.problems.len(), 1, "{source}");
            assert_eq!(
                made.problems[0].message,
                message("the arguments of F have no closing parenthesis")
            );
            assert_eq!(&text[made.problems[0].range.clone()], "F");
        }
        assert_eq!(
            problems("#define F(x, y) x\nF(1) F(1, 2, 3)")[1],
            (
                message("F"),
                message("F is not defined for this many arguments")
            )
        );
        expands(&[(
            "#define F(x, y) x\n#define A 2\nF(A) F(A, A, A) F()",
            "F(2) F(2, 2, 2) F()",
        )]);
        expands(&[(
            "#define F(x, y) x\n#define G(x) F(x)\nG(1) G((1,2))",
            "F(1) F((1,2))",
        )]);
    }

    #[test]
    fn an_unterminated_use_reaches_no_further_than_64_kib() {
        let source = format!("#define F(x) x\nF(a {}) F(b)", "b ".repeat(40_000));
        let made = run(&source);
        assert!(made.text.contains("F(a b"));
        assert!(made.text.ends_with(") b"));
    }
}

mod conditions {
    use super::*;

    fn taken(condition: &str) -> bool {
        run(&format!("#if {condition}\nyes\n#endif"))
            .text
            .contains("yes")
    }

    #[test]
    fn expressions_have_the_values_of_c() {
        for condition in [
            "1",
            "-1",
            "!0",
            "~0",
            "1 + 2 * 3 == 7",
            "(1 + 2) * 3 == 9",
            "7 / 2 == 3",
            "-7 / 2 == -3",
            "-7 % 3 == -1",
            "1 << 4 == 16",
            "-1 >> 1 == -1",
            "1 ? 2 : 0",
            "0 ? 0 : 3",
            "1 ? 0 ? 0 : 1 : 0",
            "-1 > 0u",
            "0xffffffffffffffff == -1",
            "18446744073709551615 > 0",
            "-1 < 0",
            "0x10 == 16 && 010 == 8 && 0b11 == 3",
            "1'000 == 1000",
            "1UL + 1llu == 2",
            "10l == 10",
            "'a' == 97",
            "'\\n' == 10",
            "'\\x41' == 'A'",
            "'\\101' == 65",
            "'\\'' == 39",
            "L'a' == 97",
            "'\\377' < 0",
            "'ab' == 24930",
            "true && !false",
            "2 > 1 > 0",
            "1 || 1/0",
            "!(0 && 1/0)",
            "1, 1",
            "5 & 6 | 1 ^ 0",
            "(2 || 0) == 1",
            "defined A == 0",
            "!defined(A)",
            "A == 0",
            "A(3) == 0",
            "not 0 and 1 or 0",
            "1 \\\n && 1",
            "1 /* c */ && /* d\n */ 1 // e",
            "((((((1))))))",
            "- - 1 == 1",
            "1 - -1 == 2",
            "3 != 4",
            "4 >= 4 && 4 <= 4",
            "0 ? 1 : 2 ? 3 : 0",
            "9223372036854775807 + 0 > 0",
            "(0 ? 0u : -1) > 0",
            "1 << 63 < 0",
            "__has_builtin(x) == 0",
            "!__has_attribute(always_inline)",
            "defined(__has_include)",
        ] {
            assert!(taken(condition), "{condition}");
        }
        for condition in [
            "0",
            "A",
            "defined A",
            "1/0",
            "1 %0",
            "(",
            "1 +",
            "1 2",
            "\"a\"",
            "1.5",
            "",
            "?",
            "1 = 1",
            "09",
        ] {
            assert!(!taken(condition), "{condition}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_a_problem() {
        for (condition, message) in [
            ("1/0", "division by zero in this condition"),
            ("(1", "this condition has a ( without its )"),
            ("", "this condition is incomplete"),
            ("1 ? 2", "this condition has a ? without its :"),
            ("1 2", "this condition has something left over at its end"),
            (
                "1.0",
                "this condition cannot be read as an integer expression",
            ),
            ("defined(1)", "defined needs a name"),
        ] {
            let found = problems(&format!("#if {condition}\n#endif"));
            assert_eq!(found.len(), 1, "{condition}");
            assert_eq!(found[0].1, message);
        }
        let deep = format!(
            "#if {}1{}\n#endif",
            "(".repeat(100_000),
            ")".repeat(100_000)
        );
        assert_eq!(problems(&deep)[0].1, "this condition is nested too deeply");
        let long = format!("#if {}1\nx\n#endif", "!".repeat(100_000));
        assert!(run(&long).text.contains('x'));
        assert_eq!(
            problems("#ifdef\n#endif")[0].1,
            "this condition needs a name"
        );
    }

    #[test]
    fn macros_count_in_conditions() {
        for (head, condition) in [
            ("#define A 3", "A == 3"),
            ("#define F(x) ((x) * 2)", "F(4) == 8"),
            ("#define A", "defined A && defined(A)"),
            ("#define A B\n#define B 1", "A && defined(B)"),
            ("#define HAS defined(HAS)", "HAS"),
            (
                "#define A 1\n#define V(a, b) (a * 100 + b)",
                "V(11, 2) >= V(11, 0) && A",
            ),
            ("#define A x", "defined(A) && !A"),
        ] {
            let text = format!("{head}\n#if {condition}\nyes\n#endif");
            assert!(run(&text).text.contains("yes"), "{condition}");
        }
    }

    #[test]
    fn branches_are_chosen_as_in_c() {
        expands(&[
            ("#ifdef A\na\n#else\nb\n#endif", "b"),
            ("#define A\n#ifdef A\na\n#else\nb\n#endif", "a"),
            (
                "#define A\n#ifndef A\na\n#elif 0\nb\n#elif 1\nc\n#elif 1\nd\n#else\ne\n#endif",
                "c",
            ),
            (
                "#define A\n#ifdef B\na\n#elifdef A\nb\n#else\nc\n#endif",
                "b",
            ),
            ("#ifdef B\na\n#elifndef B\nb\n#else\nc\n#endif", "b"),
            (
                "#if 1\n#if 0\na\n#else\nb\n#endif\n#else\n#if 1\nc\n#endif\n#endif d",
                "b",
            ),
            (
                "#if 0\n#if 1\na\n#elif 1\nb\n#else\nc\n#endif\n#elif 1\nd\n#endif",
                "d",
            ),
            ("#if 0\n#garbage ' \"\n#else\nx\n#endif", "x"),
            ("#if 0\n#elif\n#else\nx\n#endif", "x"),
            ("#if 1\nx\n#elif 1/0\n#endif", "x"),
            ("# /* c */ if 0\nx\n#\\\nelse\ny\n # endif", "y"),
            ("#if 0\nR\"(\n#endif\n)\"\n#endif\nx", "x"),
            ("#if 0\n1'0'\n#endif\nx", "x"),
        ]);
    }

    #[test]
    fn unbalanced_conditionals_are_problems_and_cost_nothing_else() {
        assert_eq!(
            problems("#endif\n#else\n#elif 1\nx\n#if 1\n#else\n#else\n#endif\n#ifdef A"),
            [
                ("#endif", "#endif without #if"),
                ("#else", "#else without #if"),
                ("#elif 1", "#elif without #if"),
                ("#else", "#else after #else"),
                ("#ifdef A", "this conditional has no #endif"),
            ]
            .map(|(range, message)| (range.to_owned(), message.to_owned()))
        );
        expands(&[
            ("#endif\n#else\nx\n#if 1\ny", "x y"),
            ("#if 1\na\n#else\nb\n#else\nc\n#endif\nd", "a d"),
        ]);
        assert!(problems("#if 0\n#error a\n#endif\n#error b\n#warning c").is_empty());
    }

    #[test]
    fn where_only_an_error_is_left_the_first_branch_that_nothing_decides_is_taken() {
        let sizes =
            "#if SIZE == 32\na\n#elif SIZE == 64\nb\n#else\n# error SIZE is 32 or 64\n#endif\nc";
        expands(&[
            (sizes, "a c"),
            (&format!("#define SIZE 64\n{sizes}"), "b c"),
            (&format!("#define SIZE 16\n{sizes}"), "c"),
            // What C takes is taken: another branch, or an `else` that is no error.
            ("#ifdef A\na\n#elif 1\nb\n#else\n#error\n#endif", "b"),
            ("#ifdef A\na\n#else\nb\n#error c\n#endif", "b"),
            (
                "#ifdef A\na\n#if 1\n#else\n#error\n#endif\n#else\nb\n#endif",
                "b",
            ),
            ("#if 0\na\n#elif B\nb\n#else\n#error\n#endif", "b"),
            ("#ifdef A\na\n#else\n#error", "a"),
        ]);
    }

    #[test]
    fn a_conditional_without_its_end_does_not_take_the_rest_away() {
        expands(&[
            ("#ifdef A\nx\n#if 0\ny\n#endif\nz", "x z"),
            ("#ifdef A\nx\n#elif B\ny", "y"),
            ("#ifdef A\nx\n#else\ny", "y"),
            ("#if 1\nx\n#else\ny", "x"),
        ]);
        let made = run("#ifdef A\nx");
        assert!(made.undecided[0].branches[0].taken);
        assert_eq!(made.problems.len(), 1);
    }

    #[test]
    fn has_include_asks_the_includes() {
        let made = run_with(
            "#define H <c.h>\n#define HAS(x) __has_include(x)\n#if __has_include(<a.h>) && __has_include(\"a.h\") && __has_include(H) && HAS(<c.h>) && !__has_include( <b.h> )\nyes\n#endif",
            &[("a", "b")],
            &[("a.h", ""), ("c.h", "")],
        );
        assert!(made.text.contains("yes"));
        assert!(made.problems.is_empty());
    }

    /// Of a branch its text, whether it is taken, and what would make it so.
    type Seen = (String, bool, String);
    /// A source, the names that its conditional depends on, and its branches.
    type Case<'a> = (&'a str, &'a [&'a str], &'a [(&'a str, bool, &'a str)]);

    fn undecided(source: &str) -> Vec<(Vec<String>, Vec<Seen>)> {
        run(source)
            .undecided
            .into_iter()
            .map(|conditional| {
                let branches = conditional
                    .branches
                    .into_iter()
                    .map(|branch| {
                        let assume: Vec<String> = branch
                            .assume
                            .iter()
                            .map(|(name, value)| match value {
                                Some(value) => format!("{name}={value}"),
                                None => format!("-{name}"),
                            })
                            .collect();
                        let text = source[branch.range].trim().to_owned();
                        (text, branch.taken, assume.join(" "))
                    })
                    .collect();
                (conditional.names, branches)
            })
            .collect()
    }

    #[test]
    fn an_undecided_conditional_says_what_would_take_each_branch() {
        let cases: &[Case] = &[
            (
                "#ifdef X\na\n#else\nb\n#endif",
                &["X"],
                &[("a", false, "X=1"), ("b", true, "-X")],
            ),
            ("#ifndef X\na\n#endif", &["X"], &[("a", true, "-X")]),
            (
                "#if defined(X) && defined(Y)\na\n#endif",
                &["X", "Y"],
                &[("a", false, "X=1 Y=1")],
            ),
            (
                "#if X\na\n#else\nb\n#endif",
                &["X"],
                &[("a", false, "X=1"), ("b", true, "-X")],
            ),
            (
                "#if X == 3\na\n#elif X == 4\nb\n#elif X > 10\nc\n#else\nd\n#endif",
                &["X"],
                &[
                    ("a", false, "X=3"),
                    ("b", false, "X=4"),
                    ("c", false, "X=11"),
                    ("d", true, "-X"),
                ],
            ),
            ("#if X >= 700\na\n#endif", &["X"], &[("a", false, "X=700")]),
            (
                "#if X < 700\na\n#else\nb\n#endif",
                &["X"],
                &[("a", true, "-X"), ("b", false, "X=700")],
            ),
            (
                "#if !defined(X)\na\n#else\nb\n#endif",
                &["X"],
                &[("a", true, "-X"), ("b", false, "X=1")],
            ),
            (
                "#if defined(X) || defined(Y)\na\n#elif defined Z\nb\n#endif",
                &["X", "Y", "Z"],
                &[("a", false, "X=1 -Y"), ("b", false, "Z=1 -X -Y")],
            ),
            (
                "#if 0\na\n#elif X\nb\n#elif 1\nc\n#else\nd\n#endif",
                &["X"],
                &[
                    ("a", false, ""),
                    ("b", false, "X=1"),
                    ("c", true, "-X"),
                    ("d", false, ""),
                ],
            ),
            (
                "#if defined X && X >= 2\na\n#endif",
                &["X", "X"],
                &[("a", false, "X=2")],
            ),
            (
                "#define V(x) ((x) >= 11)\n#if V(X)\na\n#endif",
                &["X"],
                &[("a", false, "X=11")],
            ),
            ("#if X && !X\na\n#endif", &["X"], &[("a", false, "")]),
            (
                "#if X ? Y : 0\na\n#endif",
                &["X", "Y"],
                &[("a", false, "X=1 Y=1")],
            ),
        ];
        for (source, names, branches) in cases {
            let found = undecided(source);
            assert_eq!(found.len(), 1, "{source}");
            let mut names = names.to_vec();
            names.dedup();
            assert_eq!(found[0].0, names, "{source}");
            let branches: Vec<_> = branches
                .iter()
                .map(|(text, taken, assume)| ((*text).to_owned(), *taken, (*assume).to_owned()))
                .collect();
            assert_eq!(found[0].1, branches, "{source}");
        }
    }

    #[test]
    fn assuming_what_a_branch_asks_for_takes_it() {
        let source = "#if A == 2 || B > 7\none\n#elif defined(C) && !defined(D)\ntwo\n#elif (E & 4) && E < 6\nthree\n#else\nfour\n#endif\n";
        for branch in &run(source).undecided[0].branches {
            let mut macros = Macros::default();
            for (name, value) in &branch.assume {
                if let Some(value) = value {
                    macros.define(name, value);
                }
            }
            let words = WordTable::default();
            let made = preprocess(source, options(macros, &words), &mut Files::default());
            assert_eq!(made.text.trim(), source[branch.range.clone()].trim());
        }
    }

    #[test]
    fn what_is_decided_is_not_undecided() {
        for source in [
            "#if 0 && X\n#endif",
            "#if 1 || X\n#endif",
            "#if X && 0\n#endif",
            "#if (X || 1) && 1\n#endif",
            "#if 1 ? 1 : X\n#endif",
            "#if X ? 1 : 1\n#endif",
            "#ifndef GUARD\n#define GUARD\nint a;\n#endif",
            "#ifndef GUARD\n#define GUARD\nint a;\n",
            "#if !defined(GUARD)\n#define GUARD 1\n#endif",
            "#if ! defined GUARD\n// comment\n# define GUARD 1\n#endif",
            "#ifndef TILE\n#ifdef __LINE__\n#define TILE 16\n#else\n#define TILE 8\n#endif\n#endif",
            "#ifdef __has_include\n#endif",
            "#if __has_builtin(__shfl)\n#endif",
            "#if 1\n#elif X\n#endif",
            "#define X\n#ifdef X\n#undef X\n#endif",
            "#if 0\n#ifdef X\n#endif\n#endif",
        ] {
            assert!(undecided(source).is_empty(), "{source}");
        }
        let words = WordTable::default();
        let absent = |name: &str| name == "_WIN32";
        let made = preprocess(
            "#ifdef _WIN32\na\n#elif defined(X) && defined(_WIN32)\nb\n#endif",
            Options {
                known_absent: &absent,
                ..options(Macros::default(), &words)
            },
            &mut Files::default(),
        );
        assert!(made.undecided.is_empty());
    }
}

mod words_that_the_grammar_lacks {
    use super::*;

    fn blanked(source: &str) -> (String, Vec<(&'static str, String)>) {
        let made = run(source);
        let words = made
            .words
            .into_iter()
            .map(|word| (word.name, word.argument))
            .collect();
        (made.text, words)
    }

    #[test]
    fn they_become_spaces_where_they_stand() {
        let (text, words) =
            blanked("__kernel void k(__global float *a) { \"__local\"; /*__local*/ }");
        assert_eq!(
            text,
            "         void k(         float *a) { \"__local\"; /*__local*/ }"
        );
        assert_eq!(
            words,
            [("kernel", String::new()), ("global", String::new())]
        );
        let (text, words) = blanked("void __launch_bounds__ (256,\n 2, g(1)) k() {}");
        assert_eq!(text, "void                        \n          k() {}");
        assert_eq!(words, [("launch_bounds", "256,\n 2, g(1)".to_owned())]);
    }

    #[test]
    fn out_of_a_macro_they_come_beside_characters_of_several_bytes() {
        // Where the word is in the macro says nothing about the file.
        for before in ["// ", "//"] {
            let line = format!("{before}{}\n", "é".repeat(40));
            let made = run_with(
                &format!("{line}#define OWN x __global\nf(OWN float *a);\n"),
                &[("GIVEN", "y __kernel __global")],
                &[],
            );
            assert!(made.text.contains("f(x"), "{}", made.text);
            let made = run_with(
                &format!("{line}GIVEN float *a;\n"),
                &[("GIVEN", "y __kernel __global")],
                &[],
            );
            assert_eq!(made.words.len(), 2);
        }
    }

    #[test]
    fn their_arguments_are_expanded_without_moving_anything() {
        let source = "#define B 128\n#define F(x) (x*2)\nvoid __launch_bounds__(B, F(1)) k() {}";
        let (text, words) = blanked(source);
        assert_eq!(text.len(), source.len());
        assert_eq!(words, [("launch_bounds", "128, (1*2)".to_owned())]);
    }

    #[test]
    fn half_typed_arguments_are_left_alone() {
        for source in [
            "void __launch_bounds__(256 k() {}",
            "__attribute__((aligned(",
            "__attribute__ x",
            "__launch_bounds__(1; )",
        ] {
            assert_eq!(blanked(source), (source.to_owned(), Vec::new()));
        }
    }

    #[test]
    fn they_are_found_in_expansions() {
        let (text, words) = blanked(
            "#define K __kernel void\n#define Q(x) __global x\nK k(Q(float) *a, Q(__local) b)",
        );
        let line = text.lines().last().unwrap_or("");
        assert_eq!(line, "        void k(        float *a,                 b)");
        let names: Vec<_> = words.iter().map(|word| word.0).collect();
        assert_eq!(names, ["kernel", "global", "global", "local"]);
        let (text, words) = blanked(
            "#define LB __launch_bounds__\n#define N 64\n#define LBN(n) LB(n, N)\nvoid LB(N) f(); void LBN(3) g();",
        );
        let line = text.lines().last().unwrap_or("");
        assert_eq!(
            line.split_whitespace().collect::<Vec<_>>(),
            ["void", "f();", "void", "g();"]
        );
        assert_eq!(
            words,
            [
                ("launch_bounds", "64".to_owned()),
                ("launch_bounds", "3, 64".to_owned())
            ]
        );
        let (text, words) = blanked("#define LB __launch_bounds__\nvoid LB(N; f");
        assert!(text.ends_with("void __launch_bounds__(N; f"));
        assert!(words.is_empty());
    }

    #[test]
    fn a_macro_of_that_name_comes_first() {
        assert_eq!(
            blanked("#define __kernel extern\n__kernel x").0.trim(),
            "extern x"
        );
    }
}

mod includes {
    use super::*;

    #[test]
    fn braces_of_a_use_that_is_taken_back_do_not_count() {
        let (_, log) = run_logged(
            "#define F(a) a\n#define OPEN {{ \u{fffd}\u{fffd}\u{fffd} F\nOPEN (\n#include \"a.h\"\nx \u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\n#include \"b.h\"\n",
            &[],
            &[("a.h", "#define A 5\n"), ("b.h", "#define A 5\n")],
        );
        let last: Vec<&str> = log.iter().rev().take(2).map(|line| &line[..25]).collect();
        assert_eq!(
            last,
            ["b.h system=false inside=f", "a.h system=false inside=f"]
        );
    }

    #[test]
    fn headers_change_the_macros_only() {
        let (made, log) = run_logged(
            "#include \"a.h\"\n# include <b.h> // c\n#define C <c/d.h>\n#include C\n#include_next <b.h>\n#include\n#include x\nA\n",
            &[],
            &[("a.h", "#define A 5\nint x;\n")],
        );
        assert!(made.text.ends_with("\n5\n"));
        assert_eq!(
            log,
            [
                "a.h system=false inside=false at=0",
                "b.h system=true inside=false at=15",
                "c/d.h system=true inside=false at=54",
                "b.h system=true inside=false at=65 next",
            ]
        );
        let sites: Vec<_> = made
            .include_sites
            .iter()
            .map(|site| (site.spelled.as_str(), site.source, site.output))
            .collect();
        assert_eq!(
            sites,
            [
                ("a.h", 0, 0),
                ("b.h", 15, 15),
                ("c/d.h", 54, 54),
                ("b.h", 65, 65)
            ]
        );
    }

    #[test]
    fn text_in_place_maps_to_its_line() {
        let source = "int a[] = {\n#include \"t.inc\"\n};\nN\n";
        let (made, log) = run_logged(
            source,
            &[],
            &[
                ("t.inc", "#define N 3\n1, N, F(2)\n#include \"u.inc\""),
                ("u.inc", "4 // x"),
            ],
        );
        assert_eq!(
            made.text,
            "int a[] = {\n           \n1, 3, F(2)\n4 // x\n};\n3\n"
        );
        assert_eq!(
            log,
            [
                "t.inc system=false inside=true at=12",
                "enter t.inc",
                "u.inc system=false inside=true at=12",
                "enter u.inc",
                "leave",
                "leave"
            ]
        );
        let at = made.text.find("3, F").unwrap_or(0);
        assert_eq!(made.map.to_source(at), 12);
        assert_eq!(made.map.source_range(at..at + 1), 12..28);
        assert!(!made.map.is_verbatim(at..at + 1));
        let after = made.text.find("};").unwrap_or(0);
        assert_eq!(made.map.to_source(after), 29);
        assert_eq!(made.map.to_output(29), Some(after));
        assert_eq!(made.map.to_output(14), Some(12));
    }

    #[test]
    fn problems_in_text_in_place_are_told_at_its_line() {
        let made = run_with(
            "a\n#include \"t.inc\"\nb",
            &[],
            &[("t.inc", "#if 1\n#ifdef X\n#endif\n")],
        );
        assert_eq!(made.problems.len(), 1);
        assert_eq!(made.problems[0].range, 2..18);
        assert_eq!(made.undecided[0].branches[0].range, 2..18);
    }

    #[test]
    fn text_that_includes_itself_ends() {
        let (made, log) = run_logged(
            "#include \"t.inc\"\n",
            &[],
            &[("t.inc", "x\n#include \"t.inc\"\ny")],
        );
        assert!(log.len() < 300);
        assert!(made.text.len() < 10_000);
    }

    #[test]
    fn braces_of_namespaces_and_linkage_blocks_do_not_count() {
        for (head, inside) in [
            ("", false),
            ("extern \"C\" {", false),
            ("namespace a { namespace b::c {", false),
            ("inline namespace [[x]] v {", false),
            ("namespace {", false),
            ("namespace a = b; struct s {", true),
            ("using namespace std; void f() {", true),
            ("extern \"C\" void f() {", true),
            ("namespace a { void f() {", true),
            ("namespace a { void f() { } ", false),
            ("int a[] = {", true),
            ("}}}", false),
            ("\"{\" '{' // {\n/* { */", false),
            ("#if 0\n{\n#endif", false),
            ("#define B {\nB", true),
        ] {
            let (_, log) = run_logged(&format!("{head}\n#include <x>\n"), &[], &[]);
            assert!(log[0].contains(&format!("inside={inside}")), "{head}");
        }
    }
}

mod maps {
    use super::*;

    /// The source of each place where `needle` is in the output.
    fn origins(made: &Preprocessed, needle: &str) -> Vec<usize> {
        made.text
            .match_indices(needle)
            .map(|(at, _)| made.map.to_source(at))
            .collect()
    }

    #[test]
    fn arguments_map_to_where_they_are_spelled_and_bodies_to_the_use() {
        let source =
            "#define G(p) [p]\n#define F(x, y) y + G(x) + x##z + #y\nq = F(alpha, beta + 1);\nend";
        let made = run(source);
        let place = |needle: &str| source.rfind(needle).unwrap_or(0);
        let line = made.text.lines().nth(2).unwrap_or("");
        assert_eq!(line, "q = beta + 1 + [alpha] + alphaz + \"beta + 1\";");
        assert_eq!(origins(&made, "beta")[0], place("beta"));
        assert_eq!(origins(&made, "alpha"), [place("alpha"), place("F(alpha")]);
        assert_eq!(origins(&made, "["), [place("F(alpha")]);
        assert_eq!(origins(&made, "\"beta"), [place("F(alpha")]);
        assert_eq!(origins(&made, "end"), [place("end")]);
        let use_ = place("F(alpha")..place(";\nend");
        let start = made.text.find("beta").unwrap_or(0);
        assert_eq!(
            made.map.source_range(start..start + 8),
            place("beta")..place("beta") + 8
        );
        assert!(made.map.is_verbatim(start..start + 8));
        assert_eq!(made.map.source_range(start..start + 12), use_);
        assert!(!made.map.is_verbatim(start..start + 12));
        assert_eq!(
            made.map.source_range(start - 4..start + 1),
            place("q =")..place("beta") + 1
        );
        assert_eq!(made.map.to_output(place("beta")), Some(start));
        assert_eq!(made.map.to_output(place("alpha")), made.text.find("alpha"));
        assert_eq!(made.map.to_output(place("F(alpha")), Some(start + 8));
        assert_eq!(made.map.to_output(source.len()), Some(made.text.len()));
        assert_eq!(made.map.to_output(source.len() + 1), None);
        assert_eq!(made.map.to_source(made.text.len() + 9), source.len());
    }

    #[test]
    fn a_use_that_expands_to_nothing_goes_nowhere() {
        let source = "#define E\na E b";
        let made = run(source);
        assert_eq!(made.map.to_output(12), None);
        assert_eq!(made.map.to_output(13), Some(12));
        assert_eq!(made.map.to_source(12), 13);
    }

    #[test]
    fn every_copied_byte_is_found_again() {
        let source = "#define F(a, b) b, a, b\nx F(one,\n two) y F(F(1, 2), 3) z";
        let made = run(source);
        for piece in made.map.pieces().filter(|piece| piece.verbatim) {
            for source_at in piece.source {
                let output = made.map.to_output(source_at);
                assert!(output.is_some_and(|at| made.map.to_source(at) == source_at));
            }
        }
    }

    #[test]
    fn maps_compose() {
        let source = "#define P \"ab\"\ns = \"int \" P \"x;\"";
        let made = run(source);
        // A program made of the literals in the preprocessed text.
        let at = |needle: &str| made.text.find(needle).unwrap_or(0);
        let pieces = [
            Piece {
                output: 0..4,
                source: at("int")..at("int") + 4,
                verbatim: true,
            },
            Piece {
                output: 4..6,
                source: at("ab")..at("ab") + 2,
                verbatim: true,
            },
            Piece {
                output: 6..8,
                source: at("x;")..at("x;") + 2,
                verbatim: true,
            },
            Piece {
                output: 8..9,
                source: at("x;")..at("x;") + 2,
                verbatim: false,
            },
        ];
        let inner = SourceMap::from_pieces(&pieces, made.text.len());
        let map = inner.compose(&made.map);
        let spelled = |needle: &str| source.rfind(needle).unwrap_or(0);
        assert_eq!(map.to_source(2), spelled("int") + 2);
        assert_eq!(map.source_range(4..6), spelled("P")..spelled("P") + 1);
        assert_eq!(map.source_range(6..8), spelled("x;")..spelled("x;") + 2);
        assert_eq!(map.to_source(8), spelled("x;"));
        assert!(map.is_verbatim(0..4) && map.is_verbatim(6..8));
        assert!(!map.is_verbatim(4..6) && !map.is_verbatim(3..5) && !map.is_verbatim(8..9));
        assert_eq!(map.to_output(spelled("x;")), Some(6));
        assert_eq!(map.to_output(0), None);
        let same = SourceMap::identity(made.text.len()).compose(&made.map);
        for at in 0..=made.text.len() {
            assert_eq!(same.to_source(at), made.map.to_source(at));
        }
        let blank = run("#if 0\n#endif\nabc");
        let cut = SourceMap::from_pieces(
            &[Piece {
                output: 0..6,
                source: 10..16,
                verbatim: true,
            }],
            16,
        );
        let cut = cut.compose(&blank.map);
        assert!(!cut.is_verbatim(0..3));
        assert!(cut.is_verbatim(3..6));
    }
}

mod sets_of_macros {
    use super::*;

    #[test]
    fn the_fingerprint_is_that_of_the_content() {
        let make = |lines: &[(&str, &str)]| {
            let mut macros = Macros::default();
            for (name, body) in lines {
                macros.define(name, body);
            }
            macros
        };
        let first = make(&[("A", "1"), ("F(x, y)", "x"), ("B", "")]);
        let second = make(&[("B", ""), ("A", "2"), ("F(x,y)", "x"), ("A", "1")]);
        assert_eq!(first.fingerprint(), second.fingerprint());
        let mut third = second.clone();
        third.undefine("A");
        assert!(second.is_defined("A") && !third.is_defined("A"));
        assert_ne!(second.fingerprint(), third.fingerprint());
        third.undefine("A");
        third.define("A", "1");
        assert_eq!(second.fingerprint(), third.fingerprint());
        for other in [
            make(&[("A", "1"), ("F(x, y)", "y"), ("B", "")]),
            make(&[("A", "1"), ("F(y, x)", "x"), ("B", "")]),
            make(&[("A", "1"), ("F", "x"), ("B", "")]),
            make(&[("A", ""), ("F(x, y)", "x"), ("B", "1")]),
            Macros::default(),
        ] {
            assert_ne!(first.fingerprint(), other.fingerprint());
        }
    }

    #[test]
    fn many_names_are_kept_apart() {
        let mut macros = Macros::default();
        for index in 0..5000 {
            macros.define(&format!("N{index}"), &index.to_string());
        }
        let before = macros.clone();
        for index in (0..5000).step_by(2) {
            macros.undefine(&format!("N{index}"));
        }
        for index in 0..5000 {
            let name = format!("N{index}");
            assert_eq!(macros.is_defined(&name), index % 2 == 1);
            assert!(before.is_defined(&name));
        }
        let words = WordTable::default();
        let made = preprocess(
            "N4321 N4320",
            options(macros, &words),
            &mut Files::default(),
        );
        assert_eq!(made.text, "4321 N4320");
    }

    #[test]
    fn what_is_no_name_defines_nothing() {
        let mut macros = Macros::default();
        for name in [
            "",
            "1",
            "F(",
            "F(1)",
            "F(x",
            "F(x,)",
            "F(..., x)",
            "defined",
            "+",
        ] {
            macros.define(name, "1");
        }
        assert_eq!(macros.fingerprint(), 0);
    }
}
