//! What an analysis costs grows with the size of each construct no faster than n log n.
//!
//! A kernel is made with a number of one construct, and with four times that number; the times of both analyses are compared.

use std::path::Path;

use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, Overrides};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

/// The smaller size; the larger is four times it.
const SMALL: usize = 250;
const TIMES: usize = 4;
/// Of n log n, four times 250 take 4 · log 1000 / log 250 = 5.0 times as long. Caches and allocators add to it.
const GROWTH: f64 = 8.0;
/// What a machine that does other things adds, in seconds.
const NOISE: f64 = 0.05;
/// The number of runs, of which the quickest counts.
const RUNS: usize = 3;

/// `make`: the text with a number of the construct.
struct Construct {
    name: &'static str,
    make: fn(usize) -> String,
}

fn kernel(parameters: &str, body: &str) -> String {
    format!(
        "// warplens: block=256 grid=64\n__global__ void k(const float *in, float *out, const int *at{parameters}) {{\n  \
         int i = blockIdx.x * blockDim.x + threadIdx.x;\n{body}}}\n"
    )
}

/// Lines of which each is made of its number.
fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(|number| line(number) + "\n").collect()
}

const CONSTRUCTS: [Construct; 25] = [
    Construct {
        name: "statements",
        make: |n| {
            let body = lines(n, |k| format!("  x = x * 1.5f + {k}.0f;"));
            kernel("", &format!("  float x = in[i];\n{body}  out[i] = x;\n"))
        },
    },
    Construct {
        name: "accesses",
        make: |n| {
            kernel(
                "",
                &lines(n, |k| format!("  out[i + {k} * 16384] = in[i + {k}];")),
            )
        },
    },
    Construct {
        name: "accesses by data",
        make: |n| {
            kernel(
                "",
                &lines(n, |k| format!("  out[at[i] + {k}] = in[at[i + {k}]];")),
            )
        },
    },
    Construct {
        name: "branches on data",
        make: |n| {
            kernel(
                "",
                &lines(n, |k| format!("  if (in[i] > {k}) out[i] = {k};")),
            )
        },
    },
    Construct {
        name: "strided stores",
        make: |n| {
            kernel(
                "",
                &lines(n, |k| format!("  if (in[i] > {k}) out[i * 32] = {k};")),
            )
        },
    },
    Construct {
        name: "strided arrays",
        make: |n| {
            let parameters = lines(n + 1, |k| format!(", float *p{k}"));
            let line = |k: usize| format!("  p{k}[i * 32] = p{}[i];", k + 1);
            kernel(&parameters, &lines(n, line))
        },
    },
    Construct {
        name: "loops that stride",
        make: |n| {
            kernel(
                "",
                &lines(n, |k| {
                    format!(
                        "  for (int j = 0; j < 64; ++j) out[i * 8 + {k}] += in[i * 8 + j + {k}];"
                    )
                }),
            )
        },
    },
    Construct {
        name: "branches on coordinates",
        make: |n| {
            kernel(
                "",
                &lines(n, |k| {
                    format!("  if (i % {} == 0) out[i + {k}] = 1;", k + 2)
                }),
            )
        },
    },
    Construct {
        name: "cases of a coordinate",
        make: |n| {
            let cases = lines(n, |k| format!("  case {k}: out[i] = in[i] * {k}; break;"));
            kernel("", &format!("  switch (i) {{\n{cases}  }}\n"))
        },
    },
    Construct {
        name: "cases of data",
        make: |n| {
            let cases = lines(n, |k| format!("  case {k}: out[i] = in[i] * {k}; break;"));
            kernel(
                "",
                &format!("  switch (at[i]) {{\n{cases}  default: out[i] = 0;\n  }}\n"),
            )
        },
    },
    Construct {
        name: "loops side by side",
        make: |n| {
            kernel(
                "",
                &lines(n, |k| {
                    format!("  for (int j = 0; j < {}; j++) out[i] += in[j];", k + 3)
                }),
            )
        },
    },
    Construct {
        name: "atomics in loops",
        make: |n| {
            kernel(
                "",
                &lines(n, |k| {
                    format!("  for (int j = 0; j < 9; j++) atomicAdd(&out[{k}], in[j + i]);")
                }),
            )
        },
    },
    Construct {
        name: "loops with barriers",
        make: |n| {
            let loops = lines(n / 5, |k| {
                format!(
                    "  for (int j = 0; j < 9; j++) {{ s[threadIdx.x] += s[{k}] + in[{k}]; __syncthreads(); }}"
                )
            });
            kernel("", &format!("  __shared__ float s[256];\n{loops}"))
        },
    },
    Construct {
        name: "bank conflicts",
        make: |n| {
            let used = lines(n, |k| format!("  s[threadIdx.x * 32] = in[i + {k}];"));
            kernel("", &format!("  __shared__ float s[8192];\n{used}"))
        },
    },
    Construct {
        name: "choices by data",
        make: |n| {
            let choices = lines(n, |k| {
                format!("  if (at[i + {k}] > {k}) out[i + {k}] += in[at[i]];")
            });
            kernel("", &choices)
        },
    },
    Construct {
        name: "macros",
        make: |n| {
            let macros = lines(n, |k| format!("#define M{k}(x) ((x) * {k}.0f + 1.0f)"));
            let uses = lines(n, |k| format!("  out[i] = M{k}(in[i]);"));
            format!("{macros}{}", kernel("", &uses))
        },
    },
    Construct {
        name: "parameters",
        make: |n| {
            let parameters: Vec<String> = (0..n).map(|k| format!(", float *p{k}")).collect();
            let parameters = parameters.concat();
            kernel(&parameters, &lines(n, |k| format!("  p{k}[i] = in[i];")))
        },
    },
    Construct {
        name: "shared arrays",
        make: |n| {
            let declared = lines(n, |k| format!("  __shared__ float s{k}[4];"));
            let used = lines(n, |k| format!("  s{k}[threadIdx.x & 3] = in[i];"));
            kernel("", &format!("{declared}{used}"))
        },
    },
    Construct {
        name: "calls",
        make: |n| {
            let functions = lines(n, |k| {
                format!("__device__ float f{k}(float x) {{ return x * {k}.0f; }}")
            });
            let calls = lines(n, |k| format!("  out[i] += f{k}(in[i]);"));
            format!("{functions}{}", kernel("", &calls))
        },
    },
    Construct {
        name: "kernels",
        make: |n| {
            lines(n / 10, |k| {
                format!("__global__ void k{k}(float *a) {{ a[threadIdx.x * {k}] = {k}; }}")
            })
        },
    },
    Construct {
        name: "launches",
        make: |n| {
            let launches = lines(n / 10, |k| format!("  k<<<{}, 256>>>(in, out, at);", k + 1));
            format!(
                "{}void run(float *in, float *out, int *at) {{\n{launches}}}\n",
                kernel("", "  out[i] = in[i];\n")
            )
        },
    },
    Construct {
        name: "nested branches",
        make: |n| {
            let opened = lines(n / 5, |k| format!("  if (i > {k}) {{ out[i] = {k};"));
            kernel("", &format!("{opened}{}\n", "}".repeat(n / 5)))
        },
    },
    Construct {
        name: "chain of calls",
        make: |n| {
            let last = format!("__device__ float f{}(float x) {{ return x; }}\n", n / 10);
            let calls = lines(n / 10, |k| {
                let k = n / 10 - 1 - k;
                format!(
                    "__device__ float f{k}(float x) {{ return f{}(x) * {k}.0f; }}",
                    k + 1
                )
            });
            format!("{last}{calls}{}", kernel("", "  out[i] = f0(in[i]);\n"))
        },
    },
    Construct {
        name: "instances of a template",
        make: |n| {
            let launches = lines(n / 10, |k| format!("  t<{k}><<<64, 256>>>(a);"));
            format!(
                "template <int N> __global__ void t(float *a) {{ a[threadIdx.x * N] = N; }}\nvoid run(float *a) {{\n{launches}}}\n"
            )
        },
    },
    Construct {
        name: "members of a structure",
        make: |n| {
            let members = lines(n, |k| format!("  float m{k};"));
            let sums = lines(n, |k| format!("  x += s[i].m{k};"));
            let body =
                format!("  const S *s = (const S *)in;\n  float x = 0;\n{sums}  out[i] = x;\n");
            format!("struct S {{\n{members}}};\n{}", kernel("", &body))
        },
    },
];

#[test]
fn what_an_analysis_costs_grows_no_faster_than_n_log_n() {
    let mut slow = Vec::new();
    for Construct { name, make } in CONSTRUCTS {
        let [small, large] = [SMALL, SMALL * TIMES].map(|count| seconds(&make(count)));
        if large > small * GROWTH + NOISE {
            slow.push(format!(
                "{name}: {SMALL} take {small:.3} s, {TIMES} times as many {large:.3} s"
            ));
        }
    }
    assert!(slow.is_empty(), "{}", slow.join("\n"));
}

/// The time that an analysis of the text takes.
fn seconds(text: &str) -> f64 {
    let run = || {
        let started = std::time::Instant::now();
        let engine = Engine::new(Profiles::builtin());
        let document = Document::new(text, Language::Cuda);
        let (settings, overrides) = (Settings::default(), Overrides::default());
        let file = engine.analyze(
            &document,
            Path::new("k.cu"),
            &settings,
            &overrides,
            &Cancel::default(),
        );
        let file = file.expect("nothing cancels it");
        assert!(!file.kernels.is_empty(), "{text}");
        started.elapsed().as_secs_f64()
    };
    let run = || {
        let thread = std::thread::Builder::new().stack_size(warplens_db::STACK);
        std::thread::scope(|scope| {
            let thread = thread.spawn_scoped(scope, run).expect("a thread");
            thread.join().expect("no panic")
        })
    };
    (0..RUNS).map(|_| run()).fold(f64::INFINITY, f64::min)
}
