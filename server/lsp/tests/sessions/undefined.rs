//! What C gives no value, and what has no end: the hover says so, or to what a figure is bound.

use serde_json::json;

use crate::client::{Client, Setup, at};

const URI: &str = "file:///code/kernel.cu";

/// The hover of the line with `here` in it.
async fn hover(text: &str) -> String {
    let mut client = Client::start(Setup {
        capabilities: json!({}),
        ..Setup::default()
    })
    .await;
    client.open(URI, "cuda-cpp", text).await;
    client.published(URI, 1).await;
    let line = text.lines().position(|line| line.contains("here"));
    let line = line.expect("a line to look at") as u32;
    let hover = client.ask("textDocument/hover", at(URI, line, 8)).await;
    let told = hover["contents"]["value"]
        .as_str()
        .expect("a hover")
        .to_owned();
    client.finish().await;
    told
}

fn kernel(directive: &str, body: &str) -> String {
    format!(
        "{directive}\n__global__ void k(float *a, int n) {{\n    int t = blockIdx.x * blockDim.x + threadIdx.x;\n{body}\n}}\n"
    )
}

const GIVEN: &str = "// warplens: block=64 grid=4 n=1024";

/// Holds what the hover says of the last line of a kernel under a launch that is given.
async fn says(body: &str, expected: &[&str]) {
    let told = hover(&kernel(GIVEN, body)).await;
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in expected {
        assert!(told.contains(words), "no `{words}` for `{body}` in\n{told}");
    }
    if expected.iter().any(|words| words.contains("no value")) {
        assert!(!told.contains(", exact"), "`{body}`\n{told}");
    }
}

#[tokio::test]
async fn a_division_by_zero_has_no_value() {
    let why = "unknown (the index has no value: it is divided by 0)";
    says("    int zero = 0;\n    a[n / zero] = 1; // here", &[why]).await;
    says("    a[n % 0 + t] = 1; // here", &[why]).await;
    says(
        "    if (n / 0 > t) a[t] = 1; // here",
        &["`n / 0 > t`: unknown (no value: it is divided by 0)"],
    )
    .await;
    // Thread 0 divides by itself; where a guard keeps it out all is well.
    says(
        "    a[1024 / t] = 1; // here",
        &["unknown (the index has no value: some thread divides by 0)"],
    )
    .await;
    says(
        "    if (t > 0) a[1024 / t] = 1; // here",
        &["31.88 lanes active", ", exact"],
    )
    .await;
}

#[tokio::test]
async fn an_overflow_has_no_value() {
    let why = "unknown (the index has no value: it overflows `int` in some thread)";
    says("    a[t * 2000000000] = 1; // here", &[why]).await;
    says("    a[(t + 1) * 2147483647 * 2] = 1; // here", &[why]).await;
    says(
        "    int far = t * 2000000000;\n    a[far] = 1; // here",
        &[why],
    )
    .await;
    // Wide enough, unsigned, or kept small by a guard: it has one.
    says("    a[t * 2000000000L] = 1; // here", &[", exact"]).await;
    says("    a[t * 2000000000u % 64u] = 1; // here", &[", exact"]).await;
    says(
        "    if (t < 2) a[t * 2000000000] = 1; // here",
        &[", exact"],
    )
    .await;
    // So has an index that only an assumed size takes out of its range, and one beside a value that overflows.
    let assumed = "// warplens: block=64 grid=4";
    let told = hover(&kernel(assumed, "    a[t + n * n * n * n] = 1; // here")).await;
    assert!(!told.contains("no value"), "{told}");
    says("    a[t] = t * 2000000000; // here", &[", exact"]).await;
    says(
        "    atomicAdd((int *)a + t, t * 2000000000); // here",
        &[", exact"],
    )
    .await;
}

#[tokio::test]
async fn a_shift_past_the_width_has_no_value() {
    says(
        "    a[1 << 40] = 1; // here",
        &["unknown (the index has no value: it is shifted by 40 of 32 bits)"],
    )
    .await;
    says(
        "    a[t << 33] = 1; // here",
        &["unknown (the index has no value: it is shifted by 33 of 32 bits)"],
    )
    .await;
    says(
        "    a[64 >> t] = 1; // here",
        &["unknown (the index has no value: some thread shifts past 32 bits)"],
    )
    .await;
    says("    a[64 >> t % 32] = 1; // here", &[", exact"]).await;
    says(
        "    a[(1L << 33) / 1000000000 + t] = 1; // here",
        &[", exact"],
    )
    .await;
}

#[tokio::test]
async fn a_negative_index_is_shown_as_it_is() {
    // Where the array begins is the host's affair: five elements before its pointer a sector begins earlier.
    says(
        "    a[t - 5] = 1; // here",
        &["5 sectors, ideal 4", "threadIdx.x - 5`", ", exact"],
    )
    .await;
}

#[tokio::test]
async fn a_loop_without_an_end_says_so() {
    let endless = "(nothing ends the loop: its condition always holds)";
    for head in [
        "for (;;)",
        "while (true)",
        "for (int i = 0; i < n; i--)",
        "for (int i = 0; i <= 1024; i += 0)",
    ] {
        says(
            &format!("    {head} a[t] += 1; // here"),
            &["unknown ", endless],
        )
        .await;
    }
    says(
        "    for (unsigned i = 8; i >= 0; i--) a[t] += 1; // here",
        &["unknown (an unsigned counter goes below 0 and begins again at the top)"],
    )
    .await;
    // A way out of it, and a counter that stops in time.
    says(
        "    while (true) { if (a[t] > 1) break; a[t] += 1; } // here",
        &["unknown (the loop's bound depends on data)"],
    )
    .await;
    says(
        "    for (unsigned i = 8; i > 0; i--) a[t] += 1; // here",
        &["| 8 |", ", exact"],
    )
    .await;
}

#[tokio::test]
async fn a_block_that_is_not_known_is_an_assumption() {
    let body = "    a[threadIdx.x * blockDim.x] = 1; // here";
    for launch in [
        "// no launch",
        "void host(float *a, int n, int threads); // k<<<n / threads, threads>>>(a, n)",
    ] {
        let told = hover(&kernel(launch, body)).await;
        let words = "assumed (depends on the assumed blockDim.x)";
        assert!(told.contains(words), "{told}");
        assert!(!told.contains(", exact"), "{told}");
    }
    let launched = format!(
        "{}void host(float *a, int n, int threads) {{ k<<<n / threads, threads>>>(a, n); }}\n",
        kernel("", body)
    );
    let told = hover(&launched).await;
    assert!(
        told.contains("assumed (depends on the assumed blockDim.x)"),
        "{told}"
    );
}
