//! Where actions about arithmetic must not be offered, or only do a part: each case is one that would change what a
//! program means, or not compile.

use std::path::Path;

use warplens_db::settings::Settings;
use warplens_db::{Engine, Overrides};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

/// Titles of what is offered for a rule anywhere in a kernel of this body, and the text after each.
fn offered(path: &str, rule: &str, text: &str) -> Vec<(String, String)> {
    let path = Path::new(path);
    let document = Document::new(text, Language::from_path(path).expect("a known extension"));
    let settings = Settings {
        preview: true,
        ..Settings::default()
    };
    let engine = Engine::new(Profiles::builtin());
    let all = 0..document.len();
    let fixes = engine.fixes(&document, path, &settings, &Overrides::default(), all);
    let of_rule = fixes.iter().filter(|fix| fix.rule == rule);
    of_rule
        .map(|fix| {
            let mut after = document.clone();
            for (range, text) in fix.edits.iter().rev() {
                after.edit(range.clone(), text);
            }
            (fix.title.clone(), after.rope().to_string())
        })
        .collect()
}

/// A kernel over floats; `body` reads `x`, `y` and `i` and sets `r`.
fn floats(before: &str, body: &str) -> String {
    format!(
        "{before}\n// warplens: block=256 grid=4096 n=64\n\
         __global__ void k(const float *in, float *out, int n) {{\n\
         \x20 int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
         \x20 float x = in[i], y = in[i + 1], r = 0.0f;\n\
         \x20 {body}\n\
         \x20 out[i] = r;\n}}\n"
    )
}

#[track_caller]
fn nothing(rule: &str, before: &str, body: &str) {
    let text = floats(before, body);
    assert_eq!(offered("k.cu", rule, &text), [], "{text}");
}

#[track_caller]
fn becomes(rule: &str, body: &str, expected: &str) {
    let text = floats("", body);
    let all = offered("k.cu", rule, &text);
    let texts: Vec<&String> = all.iter().map(|(_, text)| text).collect();
    assert!(
        texts.len() == 1 && texts[0].contains(expected),
        "{expected} in\n{all:#?}"
    );
}

#[test]
fn a_constant_gets_its_f_only_where_it_is_one() {
    let rule = "arith/double-literal";
    becomes(rule, "r = x * 0.1 + .5;", "r = x * 0.1f + .5f;");
    becomes(rule, "r = x * 1e-3 + 2.;", "r = x * 1e-3f + 2.f;");
    // Another name for it, the definition of a macro, what is too small for a float.
    nothing(rule, "#define TENTH 0.1", "r = x * TENTH + y;");
    nothing(
        rule,
        "#define SCALED(v) ((v) * 0.1 + 0.7)",
        "r = SCALED(x);",
    );
    nothing(rule, "", "r = x * 1e-60 + y;");
    // Handed to a macro of the file.
    nothing(
        rule,
        "#define TWICE(v) ((v) + (v))",
        "r = x * TWICE(0.1) + y;",
    );
    // A long double stays what it is; so does what is double for another reason.
    nothing(rule, "", "double d = x; r = d * 0.1 + 0.7;");
    nothing(rule, "", "r = (double)x * 0.1 + 0.7;");
}

#[test]
fn powers_are_products_where_their_base_can_be_repeated() {
    let rule = "arith/pow";
    becomes(rule, "r = powf(x - y, 2.0f);", "r = (x - y) * (x - y);");
    becomes(rule, "r = y / powf(x, 2.0f);", "r = y / (x * x);");
    becomes(rule, "r = -powf(x, 3.0f);", "r = -(x * x * x);");
    becomes(rule, "r = pow(x, 2);", "r = x * x;");
    becomes(
        rule,
        "double d = pow(x, 2); r = d;",
        "double d = (double)x * (double)x;",
    );
    becomes(rule, "r = powf(2.0f, x);", "r = exp2f(x);");
    becomes(rule, "r = powf(x, 1.0f / 3);", "r = cbrtf(x);");
    nothing(rule, "", "int j = i; r = powf(in[j++], 2.0f) + j;");
    nothing(rule, "", "r = powf(x, 2.5f) + powf(x, 1 / 3);");
    nothing(rule, "#define SQUARE(v) powf(v, 2.0f)", "r = SQUARE(x);");
    nothing(
        rule,
        "__device__ float unseen(float);",
        "r = powf(unseen(x), 2.0f);",
    );
}

#[test]
fn roots_and_divisions_become_one_where_the_quotient_ends_in_a_float() {
    let rule = "arith/fast-math";
    becomes(rule, "r = 1.0f / sqrtf(x);", "r = rsqrtf(x);");
    becomes(
        rule,
        "r = y * (1 / (sqrtf(x + y)));",
        "r = y * (rsqrtf(x + y));",
    );
    becomes(rule, "r = 1.0 / sqrt(x);", "r = rsqrtf(x);");
    nothing(rule, "", "r = 2.0f / sqrtf(x);");
    nothing(rule, "", "double d = 1.0 / sqrtf(x); r = d * d;");
    nothing(rule, "#define ROOT(v) sqrtf(v)", "r = 1.0f / ROOT(x);");
}

#[test]
fn sines_meet_their_cosines_only_in_one_block_of_statements() {
    let rule = "arith/sincos";
    becomes(
        rule,
        "r = sinf(x) * cosf(x);",
        "sincosf(x, &sine_of_x, &cosine_of_x);",
    );
    becomes(
        rule,
        "r = sinf(2.0f * 3.14159265f * x);",
        "r = sinpif(2.0f * x);",
    );
    nothing(rule, "", "r = sinf(x) * cosf(y);");
    nothing(rule, "", "r = sinf(x); x += 1.0f; r += cosf(x);");
    nothing(rule, "", "if (x > 0.0f) r = sinf(x); else r = cosf(x);");
    nothing(rule, "#define WAVE(v) sinf(v)", "r = WAVE(x) * cosf(x);");
    nothing(rule, "", "r = sinf(3.14f * x);");
    // The name is taken: another one.
    becomes(
        rule,
        "float sine_of_x = y; r = sinf(x) * cosf(x) + sine_of_x;",
        "sincosf(x, &sine_of_x_1, &cosine_of_x);",
    );
}

#[test]
fn divisions_become_shifts_only_where_nothing_is_negative() {
    let rule = "arith/int-div-mod";
    let summed =
        |what: &str| format!("int s = 0; for (int k = 0; k < 64; k++) s += {what}; r = s;");
    becomes(rule, &summed("(i + k) / (1 << n)"), "s += ((i + k) >> n);");
    becomes(
        rule,
        &summed("(i + k) % (1 << n)"),
        "s += ((i + k) & ((1 << n) - 1));",
    );
    // It may be negative; it is no power of two; the name changes.
    nothing(rule, "", &summed("(i - k) / (1 << n)"));
    nothing(rule, "", &summed("(n + k) / (1 << (i & 3))"));
    nothing(rule, "", &summed("(i + k) / (3 << n)"));
    nothing(rule, "", &summed("(i + k) / n"));
    nothing(
        rule,
        "",
        &format!("int w = 1 << n; w += 1; {}", summed("(i + k) / w")),
    );
    nothing(
        rule,
        "",
        &format!("int at = i; at -= 5; {}", summed("(at + k) % (1 << n)")),
    );
}
