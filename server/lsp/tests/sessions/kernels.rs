//! Kernels beside each other: of all open files, before and after an edit, two side by side, and what would help in a file.

use serde_json::{Value, json};

use crate::client::{Client, Setup, document, range, strided};
use crate::features::TILE;

const URI: &str = "file:///code/copies.cu";

fn given(text: &str) -> String {
    format!("// warplens: block=(256) grid=(4096)\n{text}")
}

async fn open(text: &str) -> Client {
    let mut client = Client::start(Setup::default()).await;
    client.open(URI, "cuda-cpp", text).await;
    client.published(URI, 1).await;
    client
}

#[tokio::test]
async fn the_kernels_of_all_open_files_are_listed_the_slowest_first() {
    let fast = strided(1).replace("copy", "fast");
    let mut client = open(&format!("{}{}", given(&fast), given(&strided(32)))).await;
    let other = "file:///code/other.cu";
    client
        .open(other, "cuda-cpp", &strided(1).replace("copy", "open"))
        .await;
    client.published(other, 1).await;
    let answer = client.command("warplens.kernels", json!({})).await;
    let kernels = answer["kernels"].as_array().expect("a list");
    let names: Vec<&str> = kernels
        .iter()
        .filter_map(|one| one["kernel"].as_str())
        .collect();
    assert_eq!(names, ["copy", "fast", "open"]);
    let times: Vec<Option<f64>> = kernels.iter().map(|one| one["time_ms"].as_f64()).collect();
    assert!(
        times[0] > times[1] && times[1].is_some() && times[2].is_none(),
        "{times:?}"
    );
    // The one whose time depends on its grid says so.
    let formula = kernels[2]["time"].as_str().expect("a formula");
    assert!(formula.contains("gridDim.x"), "{formula}");
    assert_eq!(kernels[2]["uri"], other);
    assert_eq!(kernels[0]["uri"], URI);
    assert_eq!(kernels[0]["range"], range([6, 16, 6, 20]));
    assert_eq!(kernels[0]["best"]["rule"], "mem/strided");
    assert!(kernels[0]["best"]["gain"].as_f64() > Some(1.05));
    assert_eq!(kernels[1]["best"], Value::Null);
    assert_eq!(kernels[0]["gpu"], "a100-sxm4-40gb");
    // A closed file is left out.
    client.close(other).await;
    let answer = client.command("warplens.kernels", json!({})).await;
    assert_eq!(answer["kernels"].as_array().map(Vec::len), Some(2));
    client.notifications.clear();
    client.finish().await;
}

async fn labels(client: &mut Client) -> Vec<String> {
    let asked = json!({"textDocument": {"uri": URI}, "range": range([0, 0, 99, 0])});
    let hints = client.ask("textDocument/inlayHint", asked).await;
    let hints = hints.as_array().expect("a list").iter();
    let label = |hint: &Value| hint["label"].as_str().expect("a label").to_owned();
    hints.map(label).collect()
}

#[tokio::test]
async fn lines_of_a_pinned_kernel_tell_what_they_took() {
    let text = |index: &str| {
        given(&format!(
            "__global__ void two(float *out, const float *a, const float *b) {{\n\
             \x20   int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
             \x20   float x = a[{index}];\n\
             \x20   float y = b[32 * i];\n\
             \x20   out[i] = x + y;\n}}\n"
        ))
    };
    let mut client = open(&text("32 * i")).await;
    let before = labels(&mut client).await;
    assert!(
        !before.iter().any(|label| label.contains("was")),
        "{before:?}"
    );
    let pin = json!({"uri": URI, "kernel": "two"});
    client.command("warplens.pin", pin.clone()).await;
    assert_eq!(labels(&mut client).await, before, "nothing has changed yet");
    // A line above moves the others, and one access gets cheaper.
    let edited = text("i").replace("    float y", "\n    float y");
    client.change(URI, 2, json!([{"text": edited}])).await;
    client.published(URI, 2).await;
    let after = labels(&mut client).await;
    let told: Vec<&String> = after
        .iter()
        .filter(|label| label.contains("(was "))
        .collect();
    assert_eq!(told.len(), 3, "{after:?}");
    let share = |label: &str| {
        let of = label.split(" % of time").next().expect("a share");
        of.rsplit(' ').next().and_then(|of| of.parse::<u32>().ok())
    };
    let was = |label: &str| {
        label
            .split("(was ")
            .nth(1)
            .and_then(|of| of.split(' ').next()?.parse::<u32>().ok())
    };
    assert!(
        share(told[0]) < was(told[0]) && share(told[1]) > was(told[1]),
        "{told:?}"
    );
    // Unpinned: back at what was pinned, and then not told any more.
    client
        .change(URI, 3, json!([{"text": text("32 * i")}]))
        .await;
    client.published(URI, 3).await;
    assert_eq!(labels(&mut client).await, before);
    assert_eq!(client.command("warplens.pin", pin).await["pinned"], false);
    client.finish().await;
}

#[tokio::test]
async fn two_kernels_stand_side_by_side() {
    let fast = strided(1).replace("copy", "fast");
    let mut client = open(&format!("{}{}", given(&strided(32)), given(&fast))).await;
    let asked = json!({"uri": URI, "kernel": "copy", "with": {"kernel": "fast"}});
    let page = client.command("warplens.compareKernels", asked).await;
    let page = page["markdown"].as_str().expect("a page");
    let lenses = client.ask("textDocument/codeLens", document(URI)).await;
    let lenses = lenses.as_array().expect("a list").iter();
    let titles = lenses.filter_map(|lens| lens["command"]["title"].as_str());
    let times: Vec<&str> = titles
        .filter(|title| title.contains("occupancy"))
        .filter_map(|title| title.split(" · ").next())
        .collect();
    assert_eq!(times.len(), 2);
    assert!(
        page.contains(&format!("| time | {} | {} |", times[0], times[1])),
        "{page}"
    );
    let verdict = page.lines().find(|line| line.contains("faster than"));
    assert!(
        verdict.is_some_and(|line| line.starts_with("`fast` is ")),
        "{page}"
    );
    let asked = json!({"command": "warplens.compareKernels",
        "arguments": [{"uri": URI, "kernel": "copy", "with": {"kernel": "none"}}]});
    let error = client.ask_wrongly("workspace/executeCommand", asked).await;
    assert!(error["message"].to_string().contains("none"), "{error}");
    client.finish().await;
}

#[tokio::test]
async fn the_fixes_of_a_file_come_with_the_best_gain_first() {
    let tile = TILE;
    // The same on few blocks, where less is gained.
    let small = tile
        .replace("transpose", "small")
        .replace("(32,32) n", "(2,2) n");
    let mut client = open(&format!("{small}{tile}")).await;
    let answer = client.command("warplens.fixes", json!({"uri": URI})).await;
    let entries = answer["entries"].as_array().expect("a list");
    let gains: Vec<f64> = entries
        .iter()
        .filter_map(|one| one["gain"].as_f64())
        .collect();
    assert!(
        gains.len() >= 2 && gains.is_sorted_by(|a, b| a >= b),
        "{entries:#?}"
    );
    let rules: Vec<&str> = entries
        .iter()
        .filter_map(|one| one["rule"].as_str())
        .collect();
    assert!(rules.contains(&"smem/bank-conflict"), "{rules:?}");
    assert!(
        entries
            .iter()
            .all(|one| one["edit"].is_object() && one["range"].is_object())
    );
    client.finish().await;
}

#[tokio::test]
async fn the_target_says_who_chose_it() {
    let mut client = open(&strided(1)).await;
    let asked = json!({"uri": URI});
    let target = client.command("warplens.target", asked.clone()).await;
    assert_eq!(target["gpu"], "a100-sxm4-40gb");
    assert_eq!(target["source"], "default");
    let pick = json!({"gpu": "h100-sxm5"});
    client.command("warplens.selectGpu", pick).await;
    let target = client.command("warplens.target", asked.clone()).await;
    assert_eq!(target["gpu"], "h100-sxm5");
    assert_eq!(target["source"], "session");
    client.notifications.clear();
    client.finish().await;

    let options = json!({"gpu": "tesla-k40c"});
    let mut client = Client::start(Setup {
        options,
        ..Setup::default()
    })
    .await;
    client.open(URI, "cuda-cpp", &strided(1)).await;
    client.published(URI, 1).await;
    let target = client.command("warplens.target", asked).await;
    assert_eq!(
        (&target["gpu"], &target["source"]),
        (&json!("tesla-k40c"), &json!("settings"))
    );
    client.finish().await;
}
