//! Where the actions about barriers, atomics and fences must not be offered.

use std::path::Path;

use warplens_db::settings::Settings;
use warplens_db::{Engine, Overrides};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

/// The titles offered for a rule anywhere in a text.
fn offered(text: &str, rule: &str) -> Vec<String> {
    let path = Path::new("kernel.cu");
    let document = Document::new(text, Language::from_path(path).expect("a known extension"));
    let all = 0..document.len();
    let settings = Settings {
        preview: true,
        ..Settings::default()
    };
    let fixes = Engine::new(Profiles::builtin()).fixes(
        &document,
        path,
        &settings,
        &Overrides::default(),
        all,
    );
    fixes
        .into_iter()
        .filter(|fix| fix.rule == rule)
        .map(|fix| fix.title)
        .collect()
}

#[track_caller]
fn refused(rule: &str, text: &str) {
    assert_eq!(offered(text, rule), Vec::<String>::new(), "{text}");
}

fn own(declaration: &str, barrier: &str, launch: &str) -> String {
    format!(
        "{declaration}\n\
         __global__ void own(const float* __restrict__ in, float* __restrict__ out) {{\n\
         \x20 __shared__ float tile[64];\n\
         \x20 tile[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];\n\
         \x20 {barrier}\n\
         \x20 out[blockIdx.x * 64 + threadIdx.x] = tile[threadIdx.x] * 2.0f;\n\
         }}\n{launch}"
    )
}

#[test]
fn a_barrier_goes_only_where_the_text_says_the_block_and_shows_the_barrier() {
    const RULE: &str = "sync/redundant-barrier";
    let said = "// warplens: block=(64) grid=(1024)";
    assert_eq!(offered(&own(said, "__syncthreads();", ""), RULE).len(), 1);
    // The block is not given.
    refused(RULE, &own("", "__syncthreads();", ""));
    // Two launches may have two blocks.
    let twice = "void host(float* a) { own<<<9, 64>>>(a, a); own<<<9, dim3(32, 2)>>>(a, a); }\n";
    refused(RULE, &own("", "__syncthreads();", twice));
    // A macro is in between.
    let hidden = format!("#define WAIT __syncthreads();\n{said}");
    refused(RULE, &own(&hidden, "WAIT", ""));
    // Without braces the next statement would take its place.
    refused(RULE, &own(said, "if (blockIdx.x > 3) __syncthreads();", ""));
    // Its value is used.
    refused(
        RULE,
        &own(
            said,
            "int any = __syncthreads_or(threadIdx.x); if (any) tile[0] = 1;",
            "",
        ),
    );
}

fn sum(body: &str) -> String {
    format!(
        "// warplens: block=(64) grid=(1024) n=100\n\
         __global__ void sum(const float* in, float* out, int n) {{\n{body}\n}}\n"
    )
}

#[test]
fn a_sum_waits_for_the_loops_end_only_where_every_way_leads_there() {
    const RULE: &str = "atomic/in-loop";
    let add = "atomicAdd(&out[blockIdx.x], in[k * 64 + threadIdx.x]);";
    let plain = sum(&format!("for (int k = 0; k < n; k++) {add}"));
    assert_eq!(offered(&plain, RULE).len(), 1);
    for body in [
        format!("for (int k = 0; k < n; k++) {{ {add} if (k == 50) return; }}"),
        // A label or a branch without braces has room for one statement.
        format!("if (n > 3) for (int k = 0; k < n; k++) {add}"),
        // The address moves.
        "float* at = out; for (int k = 0; k < n; k++) { atomicAdd(at, in[k]); at++; }".to_owned(),
        // What was there is used.
        "float x = 0; for (int k = 0; k < n; k++) x += atomicAdd(out, in[k]); out[1] = x;"
            .to_owned(),
        // Others look at it in the meantime.
        format!("for (int k = 0; k < n; k++) {{ {add} __syncthreads(); }}"),
        format!("for (int k = 0; k < n; k++) {{ {add} __threadfence(); }}"),
        format!("for (int k = 0; out[5] < n; k++) {add}"),
    ] {
        refused(RULE, &sum(&body));
    }
    let hidden = format!(
        "#define ADD {add}\n{}",
        sum("for (int k = 0; k < n; k++) ADD")
    );
    refused(RULE, &hidden);
}

#[test]
fn lanes_add_up_only_where_all_of_a_warp_are_there() {
    const RULE: &str = "atomic/hot-address";
    let index = "int i = blockIdx.x * 64 + threadIdx.x;";
    let plain = sum(&format!("{index} atomicAdd(out, in[i]);"));
    assert_eq!(offered(&plain, RULE).len(), 1);
    for body in [
        // Lanes that have left do not answer.
        format!("{index} if (i >= n * 600) return; atomicAdd(out, in[i]);"),
        // Those that are in the loop's next turn do not either.
        format!("{index} while (i < 60000) {{ i += n * 600; atomicAdd(&out[i / 70000], in[i]); }}"),
        // The pointer is another one behind the branch.
        format!("{index} if (i < n * 600) {{ float* o = out + 3; atomicAdd(o, in[i]); }}"),
        format!("{index} if (i < n * 600) {{ out += 2; atomicAdd(out, in[i]); }}"),
        format!("{index} float x = atomicAdd(out, in[i]); out[i + 1] = x;"),
    ] {
        refused(RULE, &sum(&body));
    }
    // The last warp of a block is not whole.
    refused(RULE, &plain.replace("block=(64)", "block=(48)"));
    // The block is not given.
    refused(
        RULE,
        &plain.replace("block=(64) grid=(1024)", "grid=(1024)"),
    );
}

#[test]
fn a_fence_for_the_system_stays_where_the_host_or_another_gpu_may_look() {
    const RULE: &str = "sync/wide-fence";
    let text = |allocate: &str, launch: &str| {
        format!(
            "__global__ void flag(int* done) {{ done[0] = 1; __threadfence_system(); done[1] = 2; }}\n\
             void host(int* p) {{ {allocate}; {launch} }}\n"
        )
    };
    let launch = "flag<<<1, 32>>>(p);";
    assert_eq!(offered(&text("cudaMalloc(&p, 8)", launch), RULE).len(), 1);
    for allocate in [
        "cudaMalloc(&p, 8); cudaHostAlloc(&p, 8, 0)",
        "cudaMallocManaged(&p, 8)",
        "cudaMalloc(&p, 8); cudaDeviceEnablePeerAccess(1, 0)",
        "p = get()",
    ] {
        refused(RULE, &text(allocate, launch));
    }
    refused(RULE, &text("cudaMalloc(&p, 8)", ""));
}
