//! Columns in the encoding that was agreed on, behind characters that count differently in each.

use serde_json::{Value, json};

use crate::client::{Client, Setup, range};

const URI: &str = "file:///code/copy.cu";

/// `/*é🚀*/` is 10 bytes, 7 UTF-16 units, 6 characters.
const LINE: &str = "    /*é🚀*/ out[i] = in[32 * i];";

fn text() -> String {
    format!(
        "__global__ void copy(float *out, const float *in) {{\r\n    \
         int i = blockIdx.x * blockDim.x + threadIdx.x; // 🚀\r\n{LINE}\r\n}}\r\n"
    )
}

fn offered(encodings: &Value) -> Setup {
    let capabilities = json!({"general": {"positionEncodings": encodings}});
    Setup {
        capabilities,
        ..Setup::default()
    }
}

async fn check(offer: Value, agreed: &str, columns: fn(&str) -> usize) {
    let mut client = Client::start(offered(&offer)).await;
    assert_eq!(
        client.initialized["capabilities"]["positionEncoding"], agreed,
        "{offer}"
    );
    client.open(URI, "cuda-cpp", &text()).await;
    let column = |piece: &str| columns(LINE.split(piece).next().expect("the line has it")) as u32;

    // Out: the finding is on the access.
    let found = client.published(URI, 1).await;
    let access = "in[32 * i]";
    let start = column(access);
    let expected = range([2, start, 2, start + columns(access) as u32]);
    assert!(
        found.iter().any(|one| one["range"] == expected),
        "{agreed}: {found:#?}"
    );

    // In: an edit behind the odd characters lands where it was meant.
    let stride = column("32");
    client.edit(URI, 2, [2, stride, 2, stride + 5], "").await;
    assert_eq!(
        client.published(URI, 2).await,
        Vec::<Value>::new(),
        "in[i] has nothing wrong"
    );
    let hover = client
        .ask(
            "textDocument/hover",
            crate::client::at(URI, 2, column("out")),
        )
        .await;
    let value = hover["contents"]["value"].as_str().expect("a hover");
    assert!(value.contains("`in[i]`"), "{value}");

    // An inlay hint is at the line's end, before CR LF.
    client
        .edit(URI, 3, [2, stride, 2, stride + 1], "32 * i")
        .await;
    client.published(URI, 3).await;
    let hints = json!({"textDocument": {"uri": URI}, "range": range([0, 0, 9, 0])});
    let hints = client.ask("textDocument/inlayHint", hints).await;
    let end = json!({"line": 2, "character": columns(LINE)});
    let found = hints
        .as_array()
        .expect("hints")
        .iter()
        .any(|hint| hint["position"] == end);
    assert!(found, "{agreed}: {hints:#}");

    // Past the line's end is its end; past the text's end is its end.
    client.edit(URI, 4, [2, 9999, 2, 9999], " /*end*/").await;
    client.edit(URI, 5, [9999, 0, 9999, 9999], "// done").await;
    client.published(URI, 5).await;
    client.finish().await;
}

#[tokio::test]
async fn utf_8() {
    check(json!(["utf-8", "utf-16"]), "utf-8", str::len).await;
}

#[tokio::test]
async fn utf_16() {
    let units = |text: &str| text.encode_utf16().count();
    check(json!(["utf-16", "utf-8"]), "utf-16", units).await;
    check(Value::Null, "utf-16", units).await;
    check(json!(["utf-7"]), "utf-16", units).await;
}

#[tokio::test]
async fn utf_32() {
    check(json!(["utf-7", "utf-32", "utf-8"]), "utf-32", |text| {
        text.chars().count()
    })
    .await;
}
