//! What is not computed again: a comment that changes, a kernel that moves.

use std::path::Path;
use std::sync::Arc;

use warplens_engine::settings::Settings;
use warplens_engine::{Cancel, Engine, FileAnalysis, Overrides};
use warplens_hardware::Profiles;
use warplens_syntax::{Document, Language};

const TEXT: &str = "// A product.\n\
    __global__ void product(float *c, const float *a, int n) {\n\
    \x20 int i = blockIdx.x * blockDim.x + threadIdx.x; // the element\n\
    \x20 if (i < n) c[i] = a[i] * a[i]; /* squared */\n\
    }\n\
    // A copy.\n\
    __global__ void copy(float *c, const float *a) { c[threadIdx.x] = a[threadIdx.x]; }\n";

struct Session {
    engine: Engine,
    document: Document,
}

impl Session {
    fn new() -> Session {
        Session {
            engine: Engine::new(Profiles::builtin()),
            document: Document::new(TEXT, Language::Cuda),
        }
    }

    fn analysis(&self) -> FileAnalysis {
        self.engine
            .analyze(
                &self.document,
                Path::new("k.cu"),
                &Settings::default(),
                &Overrides::default(),
                &Cancel::default(),
            )
            .expect("not cancelled")
    }

    fn replace(&mut self, old: &str, new: &str) {
        let text = self.document.rope().to_string();
        let at = text.find(old).unwrap_or_else(|| panic!("no {old}"));
        self.document.edit(at..at + old.len(), new);
    }

    /// Which kernels are computed again after an edit.
    fn computed_again(&mut self, old: &str, new: &str) -> Vec<String> {
        let before = self.analysis();
        self.replace(old, new);
        let after = self.analysis();
        assert_eq!(before.kernels.len(), after.kernels.len());
        before
            .kernels
            .iter()
            .zip(&after.kernels)
            .filter(|(before, after)| !Arc::ptr_eq(&before.analysis, &after.analysis))
            .map(|(_, after)| after.analysis.facts.name.clone())
            .collect()
    }
}

#[test]
fn a_comment_outside_kernels_computes_nothing_again() {
    for (old, new) in [
        (
            "// A product.",
            "// A product of two numbers,\n// one and the same.",
        ),
        ("// A copy.", ""),
        ("// A copy.\n", "\n\n\n// A copy.\n\n"),
    ] {
        let again = Session::new().computed_again(old, new);
        assert_eq!(again, [""; 0], "{old} -> {new}");
    }
}

#[test]
fn a_comment_inside_a_kernel_leaves_the_others() {
    for (old, new) in [
        ("// the element", "// the element of this thread"),
        ("/* squared */", ""),
    ] {
        let again = Session::new().computed_again(old, new);
        assert_eq!(again, ["product"], "{old} -> {new}");
    }
    // And what it had is there again when the text is.
    let mut session = Session::new();
    let first = session.analysis();
    session.replace("// the element", "// the elements");
    session.analysis();
    session.replace("// the elements", "// the element");
    let last = session.analysis();
    assert!(Arc::ptr_eq(
        &first.kernels[0].analysis,
        &last.kernels[0].analysis
    ));
}
