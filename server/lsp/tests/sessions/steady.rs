//! Nothing flickers: what is shown beside untouched lines stays there during typing, key by key, in the
//! recorded sessions.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use serde_json::{Value, json};
use warplens_latency::session::{CHANGED, Session};

use crate::client::{Client, Setup};

/// Lines of the files typed into: kernels stand before and behind the one that is edited.
const LINES: usize = 250;
/// Hints that must be there to begin with, so that something is compared.
const ENOUGH: usize = 20;

/// By line: column and label.
type Hints = BTreeMap<u64, (u64, String)>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hints_of_untouched_kernels_neither_move_nor_blink_while_someone_types() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root.canonicalize().expect("the repository");
    let sessions = Session::read_all(&root.join("tests/sessions")).expect("recordings");
    for (name, session) in sessions {
        let session = session.inside(&root).within(LINES);
        let mut client = Client::start(Setup::default()).await;
        let mut text: Vec<String> = session.text.split('\n').map(str::to_owned).collect();
        client.open(session.uri(), "cuda-cpp", &session.text).await;
        // A first analysis may take longer than a request waits for it.
        client.published(session.uri(), 1).await;
        let mut before = hints(&mut client, session.uri()).await;
        assert!(before.len() > ENOUGH, "{name}: {before:?}");
        for (_, params) in session.said.iter().filter(|(method, _)| method == CHANGED) {
            client.notify(CHANGED, params.clone()).await;
            let mut kept = before;
            for change in params["contentChanges"].as_array().expect("changes") {
                kept = untouched(kept, &mut text, change);
            }
            let after = hints(&mut client, session.uri()).await;
            for (line, hint) in &kept {
                assert_eq!(
                    after.get(line),
                    Some(hint),
                    "{name}: line {line} after {params}"
                );
            }
            before = after;
        }
        client.hang_up();
        client.exit_code().await;
    }
}

/// All hints of a document.
async fn hints(client: &mut Client, uri: &str) -> Hints {
    let everything =
        json!({"start": {"line": 0, "character": 0}, "end": {"line": 100_000, "character": 0}});
    let params = json!({"textDocument": {"uri": uri}, "range": everything});
    let found = client.ask("textDocument/inlayHint", params).await;
    let found = found.as_array().expect("hints").iter();
    found
        .map(|hint| {
            let at = |name: &str| hint["position"][name].as_u64().expect("a number");
            let label = hint["label"].as_str().expect("a label");
            (at("line"), (at("character"), label.to_owned()))
        })
        .collect()
}

/// Makes a change; the hints that it must leave alone, where they have to be then.
fn untouched(hints: Hints, text: &mut Vec<String>, change: &Value) -> Hints {
    let place =
        |end: &str, name: &str| change["range"][end][name].as_u64().expect("a number") as usize;
    let (first, last) = (place("start", "line"), place("end", "line"));
    let new = change["text"].as_str().expect("a text");
    let touched = kernel(text, first).start..kernel(text, last).end;
    let head = text[first][..place("start", "character")].to_owned();
    let tail = &text[last][place("end", "character")..];
    let lines: Vec<String> = format!("{head}{new}{tail}")
        .split('\n')
        .map(str::to_owned)
        .collect();
    let behind = lines.len() as i64 - (last + 1 - first) as i64;
    text.splice(first..=last, lines);
    hints
        .into_iter()
        .filter(|(line, _)| !touched.contains(&(*line as usize)))
        .map(|(line, hint)| {
            let moved = if line as usize > last { behind } else { 0 };
            (line.saturating_add_signed(moved), hint)
        })
        .collect()
}

/// The lines of the function around a line; only the line itself where it is between functions.
fn kernel(text: &[String], line: usize) -> Range<usize> {
    let ends = |line: &String| line.starts_with('}');
    let begins = |line: &String| line.contains("__global__");
    let above = text[..=line].iter().rposition(begins);
    let end = text[line..]
        .iter()
        .position(ends)
        .map_or(text.len(), |at| line + at + 1);
    match above {
        Some(start) if !text[start..line].iter().any(ends) => start..end,
        _ => line..line + 1,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lenses_stay_while_half_a_statement_is_typed_before_a_launch_or_a_kernel() {
    let text = "// The first line.\n\n__global__ void k(float* a) {\n    a[blockIdx.x * blockDim.x + threadIdx.x] = 1;\n}\n\
                int main() {\n    float* a;\n    cudaMalloc(&a, 1 << 20);\n\n    k<<<1024, 256>>>(a);\n}\n";
    let uri = "file:///steady.cu";
    for (line, typed) in [
        (8, "for (int i = 0; i < 4; i++) f(i);"),
        (8, "    printf(\"1\");"),
        (1, "__global__ "),
    ] {
        let mut client = Client::start(Setup::default()).await;
        client.open(uri, "cuda-cpp", text).await;
        client.published(uri, 1).await;
        let lenses = json!({"textDocument": {"uri": uri}});
        let place = |lens: &Value| {
            (
                lens["range"]["start"]["line"].clone(),
                lens["command"]["title"].clone(),
            )
        };
        let first = |found: &Value| place(&found.as_array().expect("lenses")[0]);
        let before = first(&client.ask("textDocument/codeLens", lenses.clone()).await);
        for (at, letter) in typed.char_indices() {
            let here = json!({"line": line, "character": at});
            let change = json!({"range": {"start": here, "end": here}, "text": letter.to_string()});
            client
                .notify(
                    CHANGED,
                    json!({"textDocument": {"uri": uri, "version": at + 2}, "contentChanges": [change]}),
                )
                .await;
            let after = first(&client.ask("textDocument/codeLens", lenses.clone()).await);
            assert_eq!(after, before, "{} of {typed}", &typed[..=at]);
        }
        client.hang_up();
        client.exit_code().await;
    }
}

/// Three kernels, what they call and who launches them; things are typed above each.
const KERNELS: &str = r#"// The first line.

__global__ void k(float* a) {
    a[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}

/* A comment. */
__device__ float f(float x) { return x * 2; }

template <typename T>
__global__ void g(T* a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i * 2] = f(a[i]);
}

// Another "one".
extern "C" __global__ void h(float* a) {
    a[threadIdx.x * 32] = 1; /* strided */
}

int main() {
    float* a;
    cudaMalloc(&a, 1 << 20);
    k<<<1024, 256>>>(a);
    g<float><<<512, 128>>>(a, 1 << 15);
    h<<<100, 64>>>(a);
}
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lenses_stay_while_something_is_typed_between_functions() {
    let uri = "file:///between.cu";
    let mut client = Client::start(Setup::default()).await;
    let mut version = 1;
    client.open(uri, "cuda-cpp", KERNELS).await;
    client.published(uri, 1).await;
    let before = lenses(&mut client, uri).await;
    assert_eq!(before.len(), 3, "{before:?}");
    for typed in [
        "/* one\n two } */\n",
        "const float PI = 3.14f;\n",
        "int t[] = {1, 2,\n 3};\n",
        "struct S { int a; float b[4]; };\n",
        "__device__ float q(float x) {\n  return x * (2);\n}\n",
        "static_assert(sizeof(int) == 4, \"x\");\n",
        "auto l = [](int x) { return x; };\n",
        "namespace n {\nint x;\n}\n",
        "typedef float T;\n",
        "template <typename",
        "const char *s = R\"(x)\";\n",
        "foo bar(1, {2}",
    ] {
        for line in [1, 5, 14] {
            let (mut at, mut added) = ([line, 0], 0);
            for (count, letter) in typed.chars().enumerate() {
                let here = json!({"line": at[0], "character": at[1]});
                let change =
                    json!({"range": {"start": here, "end": here}, "text": letter.to_string()});
                version += 1;
                edit(&mut client, uri, version, &change).await;
                match letter {
                    '\n' => (at, added) = ([at[0] + 1, 0], added + 1),
                    _ => at[1] += 1,
                }
                let moved = |(place, title): &(u64, String)| {
                    let by = if *place > line { added } else { 0 };
                    (place + by, title.clone())
                };
                let wanted: Vec<_> = before.iter().map(moved).collect();
                let after = lenses(&mut client, uri).await;
                let typed: String = typed.chars().take(count + 1).collect();
                for lens in wanted {
                    assert!(
                        after.contains(&lens),
                        "{typed:?} in line {line}: {after:?} lacks {lens:?}"
                    );
                }
            }
            version += 1;
            edit(&mut client, uri, version, &json!({"text": KERNELS})).await;
        }
    }
    client.hang_up();
    client.exit_code().await;
}

async fn edit(client: &mut Client, uri: &str, version: u64, change: &Value) {
    let params =
        json!({"textDocument": {"uri": uri, "version": version}, "contentChanges": [change]});
    client.notify(CHANGED, params).await;
}

/// Lines and titles of all lenses.
async fn lenses(client: &mut Client, uri: &str) -> Vec<(u64, String)> {
    let params = json!({"textDocument": {"uri": uri}});
    let found = client.ask("textDocument/codeLens", params).await;
    let found = found.as_array().expect("lenses").iter();
    found
        .map(|lens| {
            let line = lens["range"]["start"]["line"].as_u64().expect("a line");
            let title = lens["command"]["title"].as_str().expect("a title");
            (line, title.to_owned())
        })
        .collect()
}
