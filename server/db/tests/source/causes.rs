//! Why an access is not exact: what depends on data is told from what was not understood.

use std::path::Path;

use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, Overrides};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

/// Of the last access of a kernel with these statements, launched by one block of 32 threads: its pattern, whether
/// it is exact, and why not.
fn last(body: &str) -> (String, String, String) {
    let text = format!(
        "struct Cell {{ char row, column; }};\n\
         __device__ int first(const int *in, int x) {{ for (int j = 0; j < 4; ++j) if (in[j] == x) return j; return 9; }}\n\
         __device__ int upto(int x) {{ for (int j = 0; j < 4; ++j) if (j * j == x) return j; return 9; }}\n\
         __global__ void k(float *a, const int *in, const size_t *big, int n) {{\n\
         int i = threadIdx.x;\n{body}\n}}\n\
         void host(float *a, const int *in, const size_t *big) {{ k<<<1, 32>>>(a, in, big, 20); }}\n"
    );
    let document = Document::new(&text, Language::Cuda);
    let file = Engine::new(Profiles::builtin())
        .analyze(
            &document,
            Path::new("a.cu"),
            &Settings::default(),
            &Overrides::default(),
            &Cancel::default(),
        )
        .expect("not cancelled");
    let facts = &file.kernels[0].analysis.facts;
    assert_eq!(facts.not_understood, [], "everything is understood");
    let access = facts.accesses.last().expect("an access");
    (
        format!("{:?}", access.pattern),
        format!("{:?}", access.certainty).to_lowercase(),
        access
            .why
            .as_ref()
            .map_or_else(String::new, ToString::to_string),
    )
}

const INDEX: &str = "the index depends on data in memory";

fn hangs_on_data(body: &str) {
    let (pattern, certainty, why) = last(body);
    assert_eq!(
        (pattern.as_str(), certainty.as_str(), why.as_str()),
        ("DataDependent", "unknown", INDEX),
        "{body}"
    );
}

#[test]
fn a_value_that_a_loop_takes_from_data_is_data() {
    hangs_on_data("int x = i; for (int j = 0; j < 4; ++j) x = x * 3 + in[j]; a[x] = 1;");
    hangs_on_data("int x = in[i]; for (int j = 0; j < 4; ++j) x = x * 3 + 1; a[x] = 1;");
    hangs_on_data("int x = in[i]; for (int j = 0; j < 4; ++j) x /= 2; a[x] = 1;");
    hangs_on_data(
        "int x = 1, y = i; for (int j = 0; j < 4; ++j) { y = y * 3 + in[j]; x = x * 5 + y; } a[x] = 1;",
    );
    hangs_on_data("int top = 0; for (int j = 0; j < 4; ++j) if (in[i + j]) ++top; a[top] = 1;");
}

#[test]
fn one_element_for_all_lanes_is_one_place_whichever_it_is() {
    let (pattern, certainty, _) =
        last("int top = 0; for (int j = 0; j < 4; ++j) if (in[j]) ++top; a[top] = 1;");
    assert_eq!(
        (pattern.as_str(), certainty.as_str()),
        ("Broadcast", "exact")
    );
}

#[test]
fn where_data_ends_a_loop_what_it_counts_is_data() {
    hangs_on_data("int j = 0; while (j < in[i]) ++j; a[j] = 1;");
    hangs_on_data("int j = 0; for (; j < 8; ++j) if (in[j] == 3) break; a[j] = 1;");
    hangs_on_data("int j = 0; while (true) { if (in[j] == 3) break; j += 2; } a[j] = 1;");
    hangs_on_data("int j = 1; while (j < in[i]) j *= 2; a[j] = 1;");
}

#[test]
fn sizes_from_memory_are_data_where_they_are_compared() {
    hangs_on_data("size_t at = big[i]; a[at < 7 ? i : 2 * i] = 1;");
    hangs_on_data("a[__dp4a(in[i], 3, 4)] = 1;");
}

#[test]
fn the_fields_of_a_structure_from_memory_are_data() {
    hangs_on_data("Cell cell = ((const Cell *)in)[i]; a[cell.column] = 1;");
    hangs_on_data("int4 v = *(const int4 *)(in + 4 * i); a[v.y] = 1;");
    hangs_on_data("int2 v; v = ((const int2 *)in)[i]; a[i + v.x] = 1;");
}

#[test]
fn what_a_function_finds_by_data_is_data() {
    hangs_on_data("a[first(in, 3)] = 1;");
}

#[test]
fn a_reason_belongs_to_the_value_that_has_it() {
    let (_, _, why) = last(
        "int j = 0; for (int x = i; x < 4096; x = x * x + 2) ++j; int z = i % (n - n); a[j] = 1;",
    );
    assert!(!why.contains("divided by 0"), "{why}");
    let (_, _, why) = last(
        "int z = i % (n - n); int j = 0; for (int x = i; x < 4096; x = x * x + 2) ++j; a[z] = 1;",
    );
    assert_eq!(why, "the index has no value: it is divided by 0");
}

#[test]
fn the_reason_of_a_loop_is_the_data_that_ends_it() {
    let why = |body: &str| last(body).2;
    assert_eq!(
        why("for (int j = 0; j < in[0]; ++j) a[i + j] = 1;"),
        "the loop's bound depends on data"
    );
    assert_eq!(
        why("int x = 0; for (int j = 0; x < 9; ++j) { x = x * 2 + in[j]; a[i + j] = 1; }"),
        "the loop's bound depends on data"
    );
    assert_eq!(
        why("for (int j = 0; j < n; ++j) { if (in[j] == 3) break; a[i + j] = 1; }"),
        "a break that depends on data may end the loop"
    );
    assert_eq!(
        why("for (int j = 0; ; ++j) { if (in[j] == 3) break; a[i + j] = 1; }"),
        "the loop's bound depends on data"
    );
}

#[test]
fn what_hangs_on_no_data_is_not_called_data() {
    for body in [
        "int x = i; for (int j = 0; j < 4; ++j) x = x * 3 + 1; a[x] = 1;",
        "int j = 0; for (; j < 8; ++j) if (j == i) break; a[j] = 1;",
        "int x = 0; for (int j = 0; j < 8; ++j) { if (j == i) { x = 5; break; } } a[x] = 1;",
        "int x = 0; for (int j = 0; j < 8; ++j) { if (j < i) { x = 5; continue; } } a[x] = 1;",
        "int x = in[i]; for (int j = 0; j < 4; ++j) x = j * j * i; a[x] = 1;",
        "int x = in[i]; a[upto(i)] = 1;",
    ] {
        let (pattern, _, why) = last(body);
        assert_ne!(pattern, "DataDependent", "{body}");
        assert!(!why.contains("data"), "{body}: {why}");
    }
}
