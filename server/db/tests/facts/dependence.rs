//! Which operations wait for which, against examples worked out by hand.

use std::path::Path;

use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, Overrides};
use warplens_facts::facts::{Alias, SourceFacts};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

fn facts(text: &str) -> SourceFacts {
    let document = Document::new(text, Language::Cuda);
    let file = Engine::new(Profiles::builtin())
        .analyze(
            &document,
            Path::new("a.cu"),
            &Settings::default(),
            &Overrides::default(),
            &Cancel::default(),
        )
        .expect("not cancelled");
    let facts = file.kernels[0].analysis.facts.as_ref().clone();
    assert_eq!(facts.not_understood, [], "everything is understood");
    facts
}

fn kernel(body: &str) -> SourceFacts {
    facts(&format!(
        "__global__ void k(float *a, const float *b, float4 *v, int n) {{\n\
         __shared__ float s[64];\nint t = threadIdx.x;\n{body}\n}}\n\
         void host(float *a, float4 *v) {{ k<<<1, 32>>>(a, a, v, 64); }}\n"
    ))
}

/// What loops carry: `through: 1 fma + 2 add`.
fn carried(facts: &SourceFacts) -> Vec<String> {
    assert!(facts.dependence.complete);
    facts
        .dependence
        .carried
        .iter()
        .map(|carried| {
            let links: Vec<String> = carried
                .chain
                .links()
                .map(|(link, count)| format!("{count} {}", link.name()))
                .collect();
            format!("{}: {}", carried.through, links.join(" + "))
        })
        .collect()
}

/// Stretches: `operations/critical path`.
fn regions(facts: &SourceFacts) -> Vec<String> {
    facts
        .dependence
        .regions
        .iter()
        .map(|region| format!("{}/{}", region.operations, region.critical_path))
        .collect()
}

/// Loads with the operations up to their first use.
fn first_uses(facts: &SourceFacts) -> Vec<String> {
    facts
        .accesses
        .iter()
        .filter_map(|access| {
            let at = access.first_use?;
            let how = match (at.straight, at.next_iteration) {
                (true, _) => "",
                (_, true) => " next iteration",
                _ => " elsewhere",
            };
            Some(format!("{}: {}{how}", access.text, at.operations))
        })
        .collect()
}

#[test]
fn a_load_waits_for_its_first_use() {
    // The second load (its index and itself) and the product of the others lie between.
    let facts = kernel("float x = b[t]; float y = b[t + 32]; a[t] = x * x + y;");
    assert_eq!(first_uses(&facts), ["b[t]: 2", "b[t + 32]: 0"]);
    // Behind a barrier the distance is not that of straight code.
    let facts = kernel("float x = b[t]; __syncthreads(); a[t] = x * 2.0f;");
    assert_eq!(first_uses(&facts), ["b[t]: 0 elsewhere"]);
    // An address is a use; a value that nothing needs has none.
    let facts = kernel("int at = (int)b[t]; s[0] = b[t + 1]; a[at] = 1.0f; float idle = b[t + 2];");
    assert_eq!(first_uses(&facts), ["b[t]: 0", "b[t + 1]: 0"]);
    // A value that is fetched one iteration ahead: the rest of this one (product, address, store, step, jump)
    // and the beginning of the next (test, index, index, address, load).
    let facts = kernel(
        "float next = b[t]; for (int i = 0; i < n; i++) {\n\
         float now = next; next = b[t + i * 32]; a[i * 32 + t] = now * 2.0f; }",
    );
    assert_eq!(
        first_uses(&facts),
        ["b[t]: 5 elsewhere", "b[t + i * 32]: 10 next iteration"]
    );
}

#[test]
fn straight_code_has_the_parallelism_of_its_longest_chain() {
    // Address, load, index, load, two products of which one takes the sum, address, store; the longest chain is
    // address or index, load, product, sum, store.
    let facts = kernel("float x = b[t]; float y = b[t + 32]; a[t] = x * x + y * y;");
    assert_eq!(regions(&facts), ["8/5"]);
    assert!((facts.dependence.regions[0].ilp() - 1.6).abs() < 1e-9);
    // A barrier ends a stretch: address, load, store; index, load, addition, address, store.
    let facts = kernel("s[t] = b[t]; __syncthreads(); a[t] = s[63 - t] + 1.0f;");
    assert_eq!(regions(&facts), ["3/3", "5/4"]);
    // Four loads as a tree, and a division: 8 operations and a reciprocal in a row.
    let facts = kernel("a[t] = ((b[t] + b[t + 1]) + (b[t + 2] + b[t + 3])) / 3.0f;");
    assert_eq!(regions(&facts), ["20/14"]);
    // The lanes of a vector do not wait for one another: address, load, 4 products, store.
    let facts = kernel("float4 x = v[t]; x *= 2.0f; v[t] = x;");
    assert_eq!(regions(&facts), ["7/4"]);
}

#[test]
fn loops_carry_what_the_next_iteration_waits_for() {
    for (body, expected) in [
        // A sum, as additions and as fused products.
        (
            "float sum = 0; for (int i = 0; i < n; i++) sum += b[i * 32 + t]; a[t] = sum;",
            &["sum: 1 add", "i: 1 int"][..],
        ),
        (
            "float sum = 0; for (int i = 0; i < n; i++) sum += b[i] * b[i + 64]; a[t] = sum;",
            &["sum: 1 fma"],
        ),
        // Two sums side by side, in a vector and in an array in registers: each waits for itself alone.
        (
            "float4 sum; sum.x = sum.y = 0; for (int i = 0; i < n; i++) { float4 x = v[i];\n\
             sum.x += x.x * x.y; sum.y += x.z * x.w; } a[t] = sum.x + sum.y;",
            &["sum: 1 fma", "i: 1 int"],
        ),
        (
            "float acc[2]; acc[0] = acc[1] = 0; for (int i = 0; i < n; i++) {\n\
             acc[0] += b[i]; acc[1] += b[i + 1]; } a[t] = acc[0] + acc[1];",
            &["acc: 1 add", "acc: 1 add"],
        ),
        // Through memory: what the iteration before wrote beside it, and what it wrote in place.
        (
            "for (int i = 1; i < n; i++) a[i] = a[i - 1] * 2.0f;",
            &["a: 1 mul + 1 global load + 1 store"],
        ),
        (
            "for (int i = 1; i < n; i++) s[t] += b[i * 32 + t] * 2.0f;",
            &["s: 1 fma + 1 shared load + 1 store", "i: 1 int"],
        ),
        // Another element in each iteration: nothing is carried but the counter.
        (
            "for (int i = 0; i < n; i++) a[i * 32 + t] = a[i * 32 + t] * 2.0f;",
            &["i: 1 int"],
        ),
        // An outer loop waits for all iterations of the inner one.
        (
            "float x = 1; for (int j = 0; j < 4; j++) for (int i = 0; i < 8; i++) x = x * 0.5f; a[t] = x;",
            &["x: 1 mul", "i: 1 int", "x: 8 mul", "j: 1 int"],
        ),
        // A comparison decides which value goes on.
        (
            "float best = 0; for (int i = 0; i < n; i++) { float x = b[i]; if (x > best) best = x; } a[t] = best;",
            &["best: 1 add", "i: 1 int"],
        ),
        // A list: each load has the address of the next.
        (
            "int at = t; for (int i = 0; i < n; i++) at = (int)b[at]; a[t] = at;",
            &["at: 1 int + 1 conversion + 1 global load", "i: 1 int"],
        ),
    ] {
        assert_eq!(carried(&kernel(body)), expected, "{body}");
    }
}

#[test]
fn pointers_are_told_apart_by_what_else_may_reach_them() {
    let facts = facts(
        "__constant__ float table[4];\n\
         __global__ void k(float *__restrict__ out, const float *in, float *const __restrict rest, float **all) {\n\
         __shared__ float s[32]; int t = threadIdx.x; float own[2]; own[t & 1] = in[t];\n\
         s[t] = rest[t] + table[t & 3] + all[0][t]; out[t] = s[t] + own[0]; }\n\
         void host(float *p, float **all) { k<<<1, 32>>>(p, p, p, all); }",
    );
    let alias = |text: &str| {
        let access = facts.accesses.iter().find(|access| access.text == text);
        access.map(|access| access.alias)
    };
    assert_eq!(alias("out[t]"), Some(Alias::Restrict));
    assert_eq!(alias("rest[t]"), Some(Alias::Restrict));
    assert_eq!(alias("in[t]"), Some(Alias::Parameter));
    assert_eq!(alias("s[t]"), Some(Alias::Own));
    assert_eq!(alias("own[t & 1]"), Some(Alias::Own));
    assert_eq!(alias("table[t & 3]"), Some(Alias::ReadOnly));
    assert_eq!(alias("all[0][t]"), Some(Alias::Unknown));
}
