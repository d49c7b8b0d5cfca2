//! Whatever was typed, pasted and undone on the way: what is shown of a text is what a session shows that opens it.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::client::{Client, Setup, document, range};

/// How often each file is broken and mended, and by how many edits.
const ROUNDS: usize = 3;
const EDITS: usize = 4;

/// Text that is typed or pasted.
const PIECES: [&str; 17] = [
    "",
    "",
    "}",
    "{",
    "(",
    "\n",
    "/*",
    "*/",
    "\"",
    "x",
    "[7 * threadIdx.x]",
    "if (threadIdx.x % 2) {",
    "__syncthreads();",
    "#define n 64\n",
    "#if 0\n",
    "// é🚀\n",
    "__global__ void pasted(float *a, int n) { a[threadIdx.x * n] = 1.0f; }\n",
];

/// Our own kernels, and those in the style of other people's code.
fn files() -> Vec<PathBuf> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let mut files = Vec::new();
    for folder in ["kernels", "corpus"] {
        let entries = std::fs::read_dir(tests.join(folder)).expect("a folder");
        files.extend(
            entries
                .map(|entry| entry.expect("an entry").path())
                .filter(|path| {
                    let extension = path.extension().and_then(|extension| extension.to_str());
                    matches!(extension, Some("cu" | "cuh" | "cl" | "hip"))
                }),
        );
    }
    files.sort();
    files
}

struct Random(u64);

impl Random {
    fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % count.max(1) as u64) as usize
    }

    /// Bytes to be replaced, and by what; a piece of the text itself is pasted as well.
    fn edit(&mut self, text: &str) -> (usize, usize, String) {
        let start = floor(text, self.below(text.len() + 1));
        let most = if self.below(4) == 0 { 200 } else { 3 };
        let end = floor(text, (start + self.below(most)).min(text.len())).max(start);
        let pasted = floor(text, self.below(text.len() + 1));
        let until = floor(text, (pasted + 150).min(text.len())).max(pasted);
        let piece = match self.below(PIECES.len() + 3) {
            chosen if chosen < PIECES.len() => PIECES[chosen],
            _ => &text[pasted..until],
        };
        (start, end, piece.to_owned())
    }
}

/// Not inside a character, and not between CR and LF: no editor has a cursor there.
fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) || (text[..at].ends_with('\r') && text[at..].starts_with('\n'))
    {
        at -= 1;
    }
    at
}

fn position(text: &str, byte: usize) -> [u32; 2] {
    let before = text[..byte].replace("\r\n", "\n").replace('\r', "\n");
    let line = before.matches('\n').count() as u32;
    let last = before.rsplit('\n').next().unwrap_or_default();
    [line, last.encode_utf16().count() as u32]
}

/// Everything that is shown of a document: findings, hints, lenses, and the figures of every kernel.
async fn shown(client: &mut Client, uri: &str) -> [Value; 4] {
    let mut report = client.ask("textDocument/diagnostic", document(uri)).await;
    let whole = json!({"textDocument": {"uri": uri}, "range": range([0, 0, 100_000, 0])});
    let hints = client.ask("textDocument/inlayHint", whole).await;
    let lenses = client.ask("textDocument/codeLens", document(uri)).await;
    let estimate = client
        .command("warplens.estimate", json!({"uri": uri}))
        .await;
    let lenses = without_earlier_times(lenses);
    [report["items"].take(), hints, lenses, estimate]
}

/// Lenses without what kernels took when the text was saved, which only a session that began with another text shows.
fn without_earlier_times(mut lenses: Value) -> Value {
    for lens in lenses.as_array_mut().into_iter().flatten() {
        let title = &mut lens["command"]["title"];
        let now = title.as_str().and_then(|title| title.split_once(" → "));
        if let Some((_, now)) = now {
            *title = now.into();
        }
    }
    lenses
}

async fn started() -> Client {
    // Pulled, so that what was shown between is not in the way.
    let capabilities = json!({"textDocument": {"diagnostic": {}}});
    Client::start(Setup {
        capabilities,
        ..Setup::default()
    })
    .await
}

/// Another figure in place of a random one: nothing is broken by it.
fn other_figure(text: &str, random: &mut Random) -> (usize, usize, String) {
    let figures: Vec<usize> = (0..text.len())
        .filter(|at| matches!(text.as_bytes()[*at], b'2'..=b'8'))
        .collect();
    match figures.get(random.below(figures.len())) {
        Some(at) => (*at, at + 1, (2 + random.below(7)).to_string()),
        None => (0, 0, "\n".to_owned()),
    }
}

/// Broken in every way and mended again, with another figure each time. What is shown of a text that stays broken may
/// depend on its history: where the grammar recovers from an error, the previous tree has a say.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_was_broken_and_mended_shows_what_opening_the_text_shows() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut compared = 0;
    for path in files() {
        let uri = format!("file://{}", path.display());
        let language = match path.extension().and_then(|extension| extension.to_str()) {
            Some("cl") => "opencl",
            Some("hip") => "hip",
            _ => "cuda-cpp",
        };
        let mut text = std::fs::read_to_string(&path).expect("text");
        // What a session knows of other files would show in this one.
        let mut edited = started().await;
        edited.open(&uri, language, &text).await;
        let mut version = 1;
        for _ in 0..ROUNDS {
            let mut undo: Vec<(usize, usize, String)> = Vec::new();
            for step in 0..=2 * EDITS {
                let (start, end, piece) = match step {
                    0 => other_figure(&text, &mut random),
                    step if step <= EDITS => random.edit(&text),
                    _ => undo.pop().expect("an edit"),
                };
                version += 1;
                let ([a, b], [c, d]) = (position(&text, start), position(&text, end));
                edited.edit(&uri, version, [a, b, c, d], &piece).await;
                if (1..=EDITS).contains(&step) {
                    undo.push((start, start + piece.len(), text[start..end].to_owned()));
                }
                text.replace_range(start..end, &piece);
                // Half of what is typed is looked at.
                if step % 2 == 1 {
                    edited.ask("textDocument/codeLens", document(&uri)).await;
                }
            }
            let mut fresh = started().await;
            fresh.open(&uri, language, &text).await;
            let expected = shown(&mut fresh, &uri).await;
            let found = shown(&mut edited, &uri).await;
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(found, expected, "{}:\n{text}", path.display());
            }
            fresh.finish().await;
            compared += 1;
        }
        edited.finish().await;
    }
    assert!(compared > 100, "{compared}");
}

/// A file that was linked for a function which the text no longer calls: its types go with it, as soon as typing pauses.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_text_lacked_once_is_forgotten_in_a_pause() {
    let folder = tempfile::tempdir().expect("a folder");
    let other = "typedef double real;\n__device__ real scaled(real x) { return x / 2; }\n";
    std::fs::write(folder.path().join("scaled.cu"), other).expect("written");
    let calls = "__global__ void k(real *out) {\n  out[threadIdx.x] = scaled(threadIdx.x);\n}\n";
    let without = calls.replace("scaled(threadIdx.x)", "threadIdx.x");
    let uri = format!("file://{}", folder.path().join("k.cu").display());
    let mut fresh = started().await;
    fresh.open(&uri, "cuda-cpp", &without).await;
    let expected = shown(&mut fresh, &uri).await;
    fresh.finish().await;
    let mut edited = started().await;
    edited.open(&uri, "cuda-cpp", calls).await;
    let linked = shown(&mut edited, &uri).await;
    assert!(
        linked[2].to_string().contains("scaled.cu linked"),
        "{linked:?}"
    );
    edited.edit(&uri, 2, [1, 21, 1, 40], "threadIdx.x").await;
    let since = std::time::Instant::now();
    while shown(&mut edited, &uri).await != expected {
        assert!(since.elapsed().as_secs() < 20, "what is shown stays");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    edited.finish().await;
}
