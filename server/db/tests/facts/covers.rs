//! What a launch's own expression for its grid says of arguments that are not given.

use std::collections::BTreeMap;
use std::path::Path;

use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, LaunchValues, Overrides};
use warplens_facts::facts::{Certainty, Source, SourceFacts, Uniformity};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

const SAXPY: &str = "\
__global__ void saxpy(int n, float a, const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
";
const PLANE: &str = "\
__global__ void plane(float *out, const float *in, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h) return;
  out[y * w + x] = in[y * w + x];
}
";

fn analyse(text: &str, arguments: &[(&str, i64)]) -> SourceFacts {
    let arguments: BTreeMap<String, i64> = arguments
        .iter()
        .map(|&(name, value)| (name.to_owned(), value))
        .collect();
    let overrides = Overrides {
        argument: LaunchValues {
            args: arguments,
            ..LaunchValues::default()
        },
        ..Overrides::default()
    };
    let file = Engine::new(Profiles::builtin())
        .analyze(
            &Document::new(text, Language::Cuda),
            Path::new("a.cu"),
            &Settings::default(),
            &overrides,
            &Cancel::default(),
        )
        .expect("not cancelled");
    file.kernels[0].analysis.facts.as_ref().clone()
}

fn saxpy(launch: &str, arguments: &[(&str, i64)]) -> SourceFacts {
    let host = "static int up(int a, int b) { return (a % b != 0) ? (a / b + 1) : (a / b); }\n";
    let text = format!(
        "{SAXPY}{host}void run(int n, float *x, float *y) {{\n  {launch}(n, 2.0f, x, y);\n}}\n"
    );
    analyse(&text, arguments)
}

fn assumed(facts: &SourceFacts, symbol: &str) -> Option<(String, String)> {
    facts
        .assumptions
        .iter()
        .find(|assumption| assumption.symbol.kind() == symbol)
        .map(|assumption| (assumption.value.clone(), assumption.source.clone()))
}

#[test]
fn an_argument_nobody_gave_is_what_the_default_grid_covers() {
    for launch in [
        "saxpy<<<(n + 255) / 256, 256>>>",
        "saxpy<<<(n - 1) / 256 + 1, 256>>>",
        "saxpy<<<n / 256, 256>>>",
        "saxpy<<<n >> 8, 256>>>",
        "saxpy<<<up(n, 256), 256>>>",
        "saxpy<<<(int)ceil((float)n / 256), 256>>>",
        "saxpy<<<ceil(n / 256.0), 256>>>",
        "dim3 block(256); dim3 grid((n + block.x - 1) / block.x); saxpy<<<grid, block>>>",
        "int m = n; int blocks = (m + 255) / 256; saxpy<<<blocks, 256>>>",
    ] {
        let facts = saxpy(launch, &[]);
        assert_eq!(facts.launch.grid_source, Source::Assumed, "{launch}");
        assert!(facts.launch.grid[0] > 400, "{launch}: four full waves");
        assert_eq!(
            assumed(&facts, "n"),
            Some(("a large multiple of 32".to_owned(), "unknown".to_owned())),
            "{launch}"
        );
        let guard = &facts.branches[0];
        assert_eq!(guard.certainty, Certainty::Exact, "{launch}");
        assert_eq!(guard.constraints, ["n % 256 == 0"], "{launch}");
        assert_eq!(guard.taken_warp_fraction, Some(1.0), "{launch}");
        assert_eq!(guard.uniformity, Uniformity::Uniform, "{launch}");
    }
}

#[test]
fn what_the_constraint_says_holds_for_other_arguments() {
    for n in [256, 512, 2560, 1 << 20] {
        let facts = saxpy("saxpy<<<(n + 255) / 256, 256>>>", &[("n", n)]);
        assert_eq!(facts.launch.grid, [n as u64 / 256, 1, 1]);
        assert_eq!(facts.launch.grid_source, Source::LaunchSite);
        let guard = &facts.branches[0];
        assert_eq!(guard.certainty, Certainty::Exact);
        assert_eq!(guard.taken_warp_fraction, Some(1.0));
        assert_eq!(guard.divergent_warp_fraction, Some(0.0));
    }
    // Where the constraint fails, so do the figures.
    let facts = saxpy("saxpy<<<(n + 255) / 256, 256>>>", &[("n", 1000)]);
    assert_eq!(facts.launch.grid, [4, 1, 1]);
    assert_eq!(facts.branches[0].divergent_warp_fraction, Some(1.0 / 32.0));
}

#[test]
fn a_grid_along_two_axes_gives_two_arguments() {
    let text = format!(
        "{PLANE}void run(int w, int h, float *a, float *b) {{\n  dim3 block(16, 16);\n  \
         dim3 grid((w + 15) / 16, (h + 15) / 16);\n  plane<<<grid, block>>>(a, b, w, h);\n}}\n"
    );
    let facts = analyse(&text, &[]);
    let [x, y, _] = facts.launch.grid;
    assert!(x > 16 && y > 16 && x * y > 400, "{x} by {y}");
    for symbol in ["w", "h"] {
        let source = assumed(&facts, symbol).map(|(_, source)| source);
        assert_eq!(source.as_deref(), Some("unknown"));
    }
    assert_eq!(facts.branches[0].certainty, Certainty::Exact);
    assert_eq!(
        facts.branches[0].constraints,
        ["w % 16 == 0", "h % 16 == 0"]
    );
    // One of them given: the other has the rest of the grid.
    let facts = analyse(&text, &[("w", 160)]);
    assert_eq!(facts.launch.grid[0], 10);
    assert!(facts.launch.grid[1] > 20);
}

#[test]
fn what_does_not_follow_from_an_argument_stays_as_it_was() {
    for launch in [
        // A number that only the program knows, beside the argument.
        "int blocks = count(); saxpy<<<blocks, 256>>>",
        // Changed on the way.
        "int blocks = (n + 255) / 256; n = count(); saxpy<<<blocks, 256>>>",
        "saxpy<<<min((n + 255) / 256, 1024), 256>>>",
    ] {
        let facts = saxpy(launch, &[]);
        assert_eq!(
            assumed(&facts, "n"),
            Some(("a large multiple of 32".to_owned(), "unknown".to_owned())),
            "{launch}"
        );
    }
    // One block too many: the guard is not proved, whatever is assumed.
    let facts = saxpy("saxpy<<<n / 256 + 1, 256>>>", &[]);
    assert_eq!(facts.branches[0].certainty, Certainty::Assumed);
}
