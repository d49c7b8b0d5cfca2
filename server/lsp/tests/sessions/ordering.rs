//! Changes are applied in the order in which they came, and a question is answered for the text it was
//! asked about. The protocol promises it; frameworks that run handlers concurrently do not.

use serde_json::{Value, json};

use crate::client::{Client, Setup, at, document, range, strided};

const URI: &str = "file:///code/copy.cu";
/// Column and line of the stride in `strided`.
const STRIDE: [u32; 2] = [2, 16];

/// A thousand changes, each replacing the one before, with questions between them, none awaited. Only the
/// right order gives the right text; every hover must show the text that stood when it was asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_changes_with_hovers_between_never_show_an_older_text() {
    let mut client = Client::start(Setup::default()).await;
    client.open(URI, "cuda-cpp", &strided(1000)).await;
    let mut hovers = Vec::new();
    for version in 2..=1001_i32 {
        let stride = (version + 1000).to_string();
        let [line, column] = STRIDE;
        client
            .edit(URI, version, [line, column, line, column + 4], &stride)
            .await;
        let id = client.request("textDocument/hover", at(URI, 2, 6)).await;
        hovers.push((id, stride));
    }
    for (id, stride) in hovers {
        let response = client.response(id).await;
        let value = response["result"]["contents"]["value"]
            .as_str()
            .unwrap_or_default();
        assert!(
            value.contains(&format!("in[{stride} * i]")),
            "stride {stride}: {response}"
        );
    }
    client.published(URI, 1001).await;
    client.finish().await;
}

/// Edits that make and break everything below a kernel that stays whole, and others inside it, mixed with
/// every kind of question: the end must be what opening the final text gives.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_changes_end_where_opening_the_final_text_begins() {
    let mut client = Client::start(Setup::default()).await;
    let whole_kernel = strided(2);
    let mut text = format!("{whole_kernel}{}", strided(3).replace("copy", "scratch"));
    client.open(URI, "cuda-cpp", &text).await;
    // A small generator with a fixed seed: failures repeat.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below.max(1) as u64) as usize
    };
    let pieces = [
        "",
        "x",
        "\n",
        "// é🚀\n",
        " ",
        "in[7 * i]",
        "}",
        "if (i % 2) {",
        "\r\n",
        "__syncthreads();",
    ];
    let mut questions = Vec::new();
    for version in 2..=1001_i32 {
        if version % 3 == 0 {
            // Within the kernel that stays whole: its stride, one digit.
            let [line, column] = STRIDE;
            let digit = (2 + version % 8).to_string();
            client
                .edit(URI, version, [line, column, line, column + 1], &digit)
                .await;
            let at = text.find("in[").expect("the access") + 3;
            text.replace_range(at..=at, &digit);
        } else {
            let below = whole_kernel.len();
            let start = floor(&text, below + random(text.len() - below));
            let end = floor(&text, (start + random(6)).min(text.len())).max(start);
            let piece = pieces[random(pieces.len())];
            let change = json!([{"range": utf16_range(&text, start, end), "text": piece}]);
            client.change(URI, version, change).await;
            text.replace_range(start..end, piece);
        }
        let question = match version % 5 {
            0 => client.request("textDocument/inlayHint", whole()).await,
            1 => client.request("textDocument/codeLens", document(URI)).await,
            2 => client.request("textDocument/hover", at(URI, 2, 6)).await,
            _ => continue,
        };
        questions.push(question);
    }
    for question in questions {
        let response = client.response(question).await;
        assert!(response.get("error").is_none(), "{response}");
    }
    let typed = (client.published(URI, 1001).await, shown(&mut client).await);
    client.finish().await;

    let mut fresh = Client::start(Setup::default()).await;
    fresh.open(URI, "cuda-cpp", &text).await;
    let opened = (fresh.published(URI, 1).await, shown(&mut fresh).await);
    fresh.finish().await;
    assert_eq!(typed, opened);
    assert!(!opened.0.is_empty(), "nothing to compare in:\n{text}");
}

fn whole() -> Value {
    json!({"textDocument": {"uri": URI}, "range": range([0, 0, 100_000, 0])})
}

async fn shown(client: &mut Client) -> (Value, Value) {
    let hints = client.ask("textDocument/inlayHint", whole()).await;
    let lenses = client.ask("textDocument/codeLens", document(URI)).await;
    (hints, lenses)
}

fn floor(text: &str, mut at: usize) -> usize {
    // Not inside a character, and not between CR and LF: no editor has a cursor there.
    while !text.is_char_boundary(at) || (text[..at].ends_with('\r') && text[at..].starts_with('\n'))
    {
        at -= 1;
    }
    at
}

fn position(text: &str, byte: usize) -> (u32, u32) {
    let before = text[..byte].replace("\r\n", "\n").replace('\r', "\n");
    let line = before.matches('\n').count() as u32;
    let last = before.rsplit('\n').next().unwrap_or_default();
    (line, last.encode_utf16().count() as u32)
}

fn utf16_range(text: &str, start: usize, end: usize) -> Value {
    let ((a, b), (c, d)) = (position(text, start), position(text, end));
    range([a, b, c, d])
}
