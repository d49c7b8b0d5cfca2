//! Code actions about loops: where they must not be offered.

use std::path::Path;

use warplens_db::settings::Settings;
use warplens_db::{Engine, Overrides, PlacedFix};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

/// The actions for a rule anywhere in a text.
fn offered(text: &str, rule: &str) -> Vec<PlacedFix> {
    let engine = Engine::new(Profiles::builtin());
    let document = Document::new(text, Language::Cuda);
    let settings = Settings {
        preview: true,
        // Few units for double precision, and results that take long.
        gpu: (rule == "ilp/dependent-chain").then(|| "tesla-k40c".to_owned()),
        ..Settings::default()
    };
    let (path, overrides) = (Path::new("kernel.cu"), Overrides::default());
    let all = 0..document.len();
    let mut found = engine.fixes(&document, path, &settings, &overrides, all);
    found.retain(|fix| fix.rule == rule);
    found
}

/// `first` is offered the action, and none of the others is.
#[track_caller]
fn only_the_first(rule: &str, first: &str, others: &[(&str, String)]) {
    assert_eq!(offered(first, rule).len(), 1, "{first}");
    for (what, text) in others {
        let found = offered(text, rule);
        assert!(found.is_empty(), "{what}: {found:#?}\n{text}");
    }
}

fn scrambled(before: &str, looped: &str) -> String {
    format!(
        "{before}\n// warplens: block=(64) grid=(8192) limit=128\n\
         __global__ void k(unsigned* out, int limit) {{\n\
         \x20   unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n\
         \x20   unsigned seed = i;\n\
         {looped}\n    out[i] = seed;\n}}\n"
    )
}

#[test]
fn loops_are_unrolled_only_where_a_line_of_their_own_says_so() {
    let body = "{ seed ^= seed << 13; seed ^= seed >> 17; }";
    let head = "for (int k = 1; k <= limit; k += 2)";
    only_the_first(
        "loop/unroll",
        &scrambled("", &format!("    {head} {body}")),
        &[
            (
                "it says so already",
                scrambled("", &format!("#pragma unroll 2\n    {head} {body}")),
            ),
            (
                "it says that it is not to be",
                scrambled("", &format!("#pragma nounroll\n    {head} {body}")),
            ),
            (
                "behind something on its line",
                scrambled("", &format!("    if (limit > 0) {head} {body}")),
            ),
            (
                "in a macro",
                scrambled(&format!("#define TURNS {head} {body}"), "    TURNS"),
            ),
            (
                "left in the middle",
                scrambled(
                    "",
                    &format!("    {head} {{ if (seed == 7) break; seed ^= seed << 13; }}"),
                ),
            ),
            (
                "around a barrier",
                scrambled(
                    "",
                    &format!("    {head} {{ __syncthreads(); seed ^= seed << 13; }}"),
                ),
            ),
        ],
    );
}

fn norm(looped: &str) -> String {
    format!(
        "// warplens: block=(64) grid=(108) n=4096\n\
         __global__ void norm(double* out, double h, int n) {{\n\
         \x20   int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
         \x20   double sum = 0.0;\n\
         {looped}\n    out[i] = sum;\n}}\n"
    )
}

#[test]
fn sums_are_split_only_where_nothing_else_sees_it() {
    let head = "    for (int k = 0; k < n; k++)";
    only_the_first(
        "ilp/dependent-chain",
        &norm(&format!("{head}\n        sum += h * k;")),
        &[
            (
                "read on the way",
                norm(&format!("{head} {{ sum += h * k; out[k] = sum; }}")),
            ),
            (
                "left in the middle",
                norm(&format!("{head} {{ sum += h * k; if (k == i) break; }}")),
            ),
            (
                "the counter moves in the body",
                norm(&format!("{head} {{ sum += h * k; k++; }}")),
            ),
            (
                "the bound moves",
                norm(&format!("{head} {{ sum += h * k; n = n - 1; }}")),
            ),
            (
                "the counter is used behind it",
                norm(
                    "    int k;\n    for (k = 0; k < n; k++)\n        sum += h * k;\n    sum += k;",
                ),
            ),
            (
                "another variable has the counter's name",
                norm(&format!(
                    "    double k = h;\n    {{\n{head}\n        sum += h * k;\n    }}\n    sum *= k;"
                )),
            ),
            (
                "it is to be unrolled as it is",
                norm(&format!("#pragma unroll 2\n{head}\n        sum += h * k;")),
            ),
            (
                "the body of something else",
                norm(&format!(
                    "    if (n > 7)\n    {head}\n        sum += h * k;"
                )),
            ),
            (
                "a power, not a sum",
                norm(&format!("{head}\n        sum = sum * h + 1.0;")),
            ),
            (
                "a step that is not known",
                norm("    for (int k = 0; k < n; k += n / 512)\n        sum += h * k;"),
            ),
        ],
    );
}

fn iterate(before: &str, body: &str) -> String {
    format!(
        "// warplens: block=(256) grid=(900) n=230400\n\
         __global__ void k(const float* in, float* out, int n) {{\n{before}\n\
         \x20   int i = blockIdx.x * blockDim.x + threadIdx.x;\n{body}\n}}\n"
    )
}

#[test]
fn a_loop_over_the_grid_is_offered_only_to_threads_that_meet_no_other() {
    let work = "\n        float x = in[i];\n        for (int k = 0; k < 2000; ++k) x = (x * x + 0.125f) * (x - 0.5f) + (x + 0.25f) * x * x;\n        out[i] = x;\n   ";
    only_the_first(
        "launch/tail",
        &iterate("", &format!("    if (i < n) {{ {work} }}")),
        &[
            ("no bound", iterate("", &format!("    {work}"))),
            (
                "a barrier",
                iterate("", &format!("    if (i < n) {{ {work} __syncthreads(); }}")),
            ),
            (
                "shared memory",
                iterate(
                    "    __shared__ float tile[256];",
                    &format!("    tile[threadIdx.x] = 0.0f;\n    if (i < n) {{ {work} }}"),
                ),
            ),
            (
                "its own number",
                iterate(
                    "",
                    &format!("    if (i < n) {{ {work} out[i] += threadIdx.x; }}"),
                ),
            ),
            (
                "another way for those behind the bound",
                iterate(
                    "",
                    &format!("    if (i < n) {{ {work} }} else {{ out[0] = 1.0f; }}"),
                ),
            ),
            (
                "it returns from within",
                iterate(
                    "",
                    &format!("    if (i < n) {{ if (in[i] > 2.0f) return; {work} }}"),
                ),
            ),
            (
                "the index is used before",
                iterate(
                    "",
                    &format!("    int j = i * 2;\n    if (i < n) {{ {work} out[i] += j; }}"),
                ),
            ),
            (
                "the bound moves",
                iterate("", &format!("    if (i < n) {{ {work} n = n - 1; }}")),
            ),
        ],
    );
}

fn sums(head: &str, test: &str, more: &str) -> String {
    format!(
        "// warplens: block=(256) grid=(4096) n=64 mode=1\n\
         __global__ void k(const float* a, const int* modes, float* out, int n, int mode) {{\n\
         \x20   int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
         \x20   float x = a[i], sum = 0.0f;\n\
         {head}    for (int k = 0; k < n; k++) {{\n\
         \x20       if ({test})\n\
         \x20           sum = sum * x + 1.0f;\n\
         \x20       else\n\
         \x20           sum = sum * 0.5f - x;\n{more}\
         \x20   }}\n    out[i] = sum;\n}}\n"
    )
}

#[test]
fn a_condition_moves_out_of_a_loop_only_where_it_stays() {
    only_the_first(
        "loop/uniform-branch",
        &sums("", "mode == 1", ""),
        &[
            ("it moves", sums("", "k == mode", "")),
            (
                "it is assigned",
                sums("", "mode == 1", "        mode ^= 1;\n"),
            ),
            ("lanes differ", sums("", "i == mode", "")),
            ("it is loaded", sums("", "modes[0] == 1", "")),
            (
                "a barrier",
                sums("", "mode == 1", "        __syncthreads();\n"),
            ),
            (
                "its loop has a line that speaks of it",
                sums("#pragma unroll 2\n", "mode == 1", ""),
            ),
            (
                "a long loop",
                sums("", "mode == 1", &"        out[i + k] = sum;\n".repeat(12)),
            ),
        ],
    );
}
