//! What is told of findings: a cause once, what is found at a launch with its kernel, and whether a launch matters to its program.

use warplens_db::{FileAnalysis, Overrides, Severity};

use crate::reads::analysed;

const STRIDE: &str = "__global__ void stride(float *out, const float *in, int n) {\n\
    int per = n / (gridDim.x * blockDim.x), t = blockIdx.x * blockDim.x + threadIdx.x;\n\
    float s = 0; for (int j = 0; j < per; j++) s += in[j * gridDim.x * blockDim.x + t]; out[t] = s; }\n\
    __global__ void heavy(float *x, int n) {\n\
    int i = blockIdx.x * blockDim.x + threadIdx.x; float v = x[i];\n\
    for (int k = 0; k < n; k++) v = v * v + 1.0f; x[i] = v; }\n";

fn severities(file: &FileAnalysis, rule: &str) -> Vec<Severity> {
    let of_rule = file.findings.iter().filter(|finding| finding.rule == rule);
    of_rule.map(|finding| finding.severity).collect()
}

#[test]
fn a_small_grid_is_told_where_it_takes_a_part_of_the_programs_time_however_it_is_known() {
    let told = |host: &str| {
        let file = analysed(&format!("{STRIDE}{host}"), &Overrides::default());
        severities(&file, "launch/small-grid")
    };
    let launch = "stride<<<16, 64>>>(a, b, 1 << 24);";
    let in_function = format!("void host(float *a, float *b) {{ {launch} }}\n");
    assert_eq!(told(&in_function), [Severity::Warning]);
    let memory = "float *a, *b; cudaMalloc(&a, 1 << 28); cudaMalloc(&b, 1 << 28);";
    let in_run = format!("int main() {{ {memory} {launch} }}\n");
    assert_eq!(told(&in_run), [Severity::Warning]);
    // Behind a kernel that takes nearly all of the time.
    let heavy = "heavy<<<65536, 256>>>(a, 20000);";
    let behind = format!("int main() {{ {memory} {launch} {heavy} }}\n");
    assert_eq!(told(&behind), [Severity::Hint]);
}

#[test]
fn what_is_found_at_a_launch_counts_with_its_kernel() {
    let host = "void host(float *a, float *b) { stride<<<16, 64>>>(a, b, 1 << 24); heavy<<<4096, 256>>>(a, 9); }\n";
    let file = analysed(&format!("{STRIDE}{host}"), &Overrides::default());
    let rules = |at: usize| -> Vec<&str> {
        let causes = file.causes(&file.kernels[at]);
        causes.iter().map(|finding| finding.rule).collect()
    };
    assert!(rules(0).contains(&"launch/small-grid"), "{:?}", rules(0));
    assert!(!rules(1).contains(&"launch/small-grid"), "{:?}", rules(1));
}

#[test]
fn a_cause_counts_once_however_often_it_is_met() {
    let text = "__global__ void rows(float *m, int rows, int cols) {\n\
        int r = blockIdx.x * blockDim.x + threadIdx.x; if (r >= rows) return;\n\
        float mx = 0; for (int c = 0; c < cols; c++) mx = fmaxf(mx, m[r * cols + c]);\n\
        float s = 0; for (int c = 0; c < cols; c++) s += expf(m[r * cols + c] - mx);\n\
        for (int c = 0; c < cols; c++) m[r * cols + c] = expf(m[r * cols + c] - mx) / s; }\n\
        void host(float *m) { rows<<<256, 128>>>(m, 32768, 1024); }\n";
    let file = analysed(text, &Overrides::default());
    let places = severities(&file, "mem/column-walk");
    assert!(places.len() > 1, "{:#?}", file.findings);
    let causes = file.causes(&file.kernels[0]);
    let walks: Vec<Severity> = causes
        .iter()
        .filter(|finding| finding.rule == "mem/column-walk")
        .map(|finding| finding.severity)
        .collect();
    assert_eq!(walks, [Severity::Warning], "the loudest of its places");
}

/// How a library lays out the states of its generators is not the program's to change; its own structures are.
#[test]
fn states_of_a_librarys_generators_are_no_arrays_of_structures() {
    let text = "#include <curand_kernel.h>\n\
        __global__ void drawn(unsigned *out, curandState *states) {\n\
        int i = blockIdx.x * blockDim.x + threadIdx.x; out[i] = curand(&states[i]); }\n\
        struct Own { unsigned a[6]; unsigned b[6]; };\n\
        __device__ unsigned next(Own *own) { own->a[0] = own->a[0] * 5u + own->a[1]; return own->a[0]; }\n\
        __global__ void own(unsigned *out, Own *states) {\n\
        int i = blockIdx.x * blockDim.x + threadIdx.x; out[i] = next(&states[i]); }\n\
        void host(unsigned *a, curandState *s, Own *o) { drawn<<<4096, 256>>>(a, s); own<<<4096, 256>>>(a, o); }\n";
    let file = analysed(text, &Overrides::default());
    let apart = |kernel: &str| {
        let of_kernel = file.findings.iter().filter(|finding| {
            finding.kernel.as_deref() == Some(kernel)
                && ["mem/aos", "mem/strided"].contains(&finding.rule)
        });
        of_kernel.count()
    };
    assert_eq!(file.kernels[0].analysis.facts.accesses.len(), 18);
    assert_eq!(apart("drawn"), 0, "{:#?}", file.findings);
    assert!(apart("own") > 0, "{:#?}", file.findings);
}

#[test]
fn exits_before_barriers_are_told_once_a_file() {
    let kernel = |name: &str| {
        format!(
            "__global__ void {name}(float *out, const float *in, int n) {{ __shared__ float t[256];\n\
             int i = blockIdx.x * 256 + threadIdx.x; if (i >= n) return;\n\
             t[threadIdx.x] = in[i]; __syncthreads(); out[i] = t[255 - threadIdx.x]; }}\n"
        )
    };
    let text = format!(
        "{}{}void host(float *a, float *b) {{ a1<<<4, 256>>>(a, b, 1000); a2<<<4, 256>>>(a, b, 1000); }}\n",
        kernel("a1"),
        kernel("a2")
    );
    let file = analysed(&text, &Overrides::default());
    let rule = "div/early-exit-before-barrier";
    assert_eq!(severities(&file, rule), [Severity::Information]);
    let told = file.findings.iter().find(|finding| finding.rule == rule);
    let places = told.expect("a finding").related.iter();
    let places: Vec<&str> = places.map(|(_, text)| text.as_str()).collect();
    assert_eq!(places, ["the barrier", "the same in `a2`"]);
}
