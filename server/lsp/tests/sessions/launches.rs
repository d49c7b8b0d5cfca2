//! Launches: what a hover says of one, what others would take, and how they are written down.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Client, Setup, at, document, range};

const URI: &str = "file:///code/saxpy.cu";

const SAXPY: &str = "\
__global__ void saxpy(float *y, const float *x, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
void run(float *y, const float *x) {
    saxpy<<<4096, 256>>>(y, x, 2.0f, 1048576);
    saxpy<<<64, 128>>>(y, x, 2.0f, 8192);
}
";

async fn open(text: &str) -> Client {
    let mut client = Client::start(Setup::default()).await;
    client.open(URI, "cuda-cpp", text).await;
    client.published(URI, 1).await;
    client
}

async fn hover(client: &mut Client, line: u32, character: u32) -> (String, Value) {
    let hover = client
        .ask("textDocument/hover", at(URI, line, character))
        .await;
    let text = hover["contents"]["value"].as_str().unwrap_or_default();
    (text.to_owned(), hover["range"].clone())
}

async fn lens(client: &mut Client) -> String {
    let lenses = client.ask("textDocument/codeLens", document(URI)).await;
    let title = lenses[0]["command"]["title"].as_str().expect("a title");
    title.split(" · ").next().expect("a time").to_owned()
}

#[tokio::test]
async fn a_hover_on_a_launch_gives_its_time_waves_and_other_blocks() {
    let mut client = open(SAXPY).await;
    let (text, place) = hover(&mut client, 5, 16).await;
    assert_eq!(place, range([5, 4, 5, 24]));
    let time = lens(&mut client).await;
    assert!(text.contains(&format!("**{time}**")), "{time} in {text}");
    for part in [
        "`saxpy` on ",
        "Grid (4096) (launch-site), block (256) (launch-site)",
        "Occupancy 100 %",
        "4.74 waves",
        "| (64) | (16384) |",
        "| (1024) | (1024) |",
    ] {
        let cells = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(cells.contains(part), "`{part}` in {text}");
    }
    let now = text.lines().find(|line| line.contains("(now)"));
    let now = now.unwrap_or_else(|| panic!("no present row in {text}"));
    assert!(now.contains("(256) (now)") && now.contains(&time), "{now}");
    assert!(text.lines().count() <= 20, "one screen: {text}");
    // Each launch is its own.
    let (second, _) = hover(&mut client, 6, 14).await;
    assert!(
        second.contains("Grid (64)") && second.contains("| (128) (now) |"),
        "{second}"
    );
    assert!(second.contains("Less than one wave"), "{second}");
    // Behind the launch nothing is said.
    assert_eq!(hover(&mut client, 5, 30).await.0, "");
    client.finish().await;
}

#[tokio::test]
async fn a_hover_on_a_launch_says_why_there_is_one_block() {
    let text = SAXPY.replace("blockDim.x", "256");
    let mut client = open(&text).await;
    let (text, _) = hover(&mut client, 5, 16).await;
    assert!(
        text.contains("line 2 reads `blockIdx.x` by itself"),
        "{text}"
    );
    assert!(!text.contains('|'), "{text}");
    client.finish().await;
}

#[tokio::test]
async fn a_hover_on_a_launch_is_quick() {
    let mut client = open(SAXPY).await;
    // The second is of another launch: nothing of it was computed before.
    hover(&mut client, 5, 16).await;
    let start = Instant::now();
    hover(&mut client, 6, 14).await;
    let took = start.elapsed();
    // 50 ms as released; a build without optimisation is some ten times slower.
    let most = if cfg!(debug_assertions) { 1000 } else { 50 };
    assert!(took < Duration::from_millis(most), "{took:?}");
    client.finish().await;
}

#[tokio::test]
async fn a_launch_that_is_tried_changes_nothing_until_it_is_written() {
    let mut client = open(SAXPY).await;
    let before = lens(&mut client).await;
    let plain = json!({"uri": URI, "kernel": "saxpy"});
    let now = client.command("warplens.tryLaunch", plain).await;
    assert_eq!(now["time"], before);
    assert_eq!(now["launch"]["block"], json!([256, 1, 1]));
    assert_eq!(
        now["arguments"],
        json!([{"name": "n", "value": 1_048_576, "given": true}])
    );
    let tried =
        json!({"uri": URI, "kernel": "saxpy", "block": [64], "grid": [1024], "args": {"n": 65536}});
    let tried = client.command("warplens.tryLaunch", tried).await;
    let time = tried["time"].as_str().expect("a time").to_owned();
    assert_ne!(time, before);
    let choices = tried["choices"].as_array().expect("a list");
    let present: Vec<&Value> = choices.iter().filter(|one| one["now"] == true).collect();
    assert_eq!(present.len(), 1);
    assert_eq!(present[0]["block"], json!([64, 1, 1]));
    assert_eq!(present[0]["time"], time);
    assert_eq!(lens(&mut client).await, before);

    let comment = "// warplens: block=64 grid=1024 n=65536";
    assert_eq!(tried["directive"], comment);
    let edit = &tried["edit"]["changes"][URI][0];
    assert_eq!(edit["newText"], format!("{comment}\n"));
    let change = json!([{"range": edit["range"], "text": edit["newText"]}]);
    client.change(URI, 2, change).await;
    client.published(URI, 2).await;
    assert_eq!(lens(&mut client).await, format!("{before} → {time}"));
    let lenses = client.ask("textDocument/codeLens", document(URI)).await;
    let lenses = lenses.to_string();
    assert!(lenses.contains("launch 1 of 2: <<<1024, 64>>>"), "{lenses}");
    // Written again, the comment is changed, not added to.
    let other = json!({"uri": URI, "kernel": "saxpy", "block": 128, "args": {"n": 7}});
    let other = client.command("warplens.tryLaunch", other).await;
    let edit = &other["edit"]["changes"][URI][0];
    assert_eq!(edit["newText"], "warplens: block=128 grid=1024 n=7");
    client.finish().await;
}

#[tokio::test]
async fn a_launch_that_cannot_happen_says_why() {
    let mut client = open(SAXPY).await;
    let asked = json!({"uri": URI, "kernel": "saxpy", "block": [2048]});
    let tried = client.command("warplens.tryLaunch", asked).await;
    let why = tried["why_impossible"].as_str().expect("a reason");
    assert!(why.contains("2048") && why.contains("1024"), "{why}");
    assert_eq!(tried["time"], Value::Null);
    assert_eq!(tried["choices"], json!([]));
    let asked =
        json!({"command": "warplens.tryLaunch", "arguments": [{"uri": URI, "kernel": "none"}]});
    let error = client.ask_wrongly("workspace/executeCommand", asked).await;
    assert_eq!(error["message"], "there is no kernel `none` in this file");
    client.finish().await;
}

#[tokio::test]
async fn a_size_that_nothing_gives_stands_in_all_rows() {
    let text: String = SAXPY.split_inclusive('\n').take(4).collect();
    let mut client = open(&text).await;
    let asked = json!({"uri": URI, "kernel": "saxpy"});
    let tried = client.command("warplens.tryLaunch", asked).await;
    assert_eq!(tried["launch"]["grid"], Value::Null);
    assert_eq!(tried["time_ms"], Value::Null);
    let stated = tried["stand_ins"].as_str().expect("what they rest on");
    assert!(stated.starts_with("`n` = "), "{stated}");
    let argument = &tried["arguments"][0];
    assert_eq!(argument["given"], false);
    assert!(stated.ends_with(&argument["value"].to_string()), "{stated}");
    for choice in tried["choices"].as_array().expect("a list") {
        assert!(choice["time_ms"].is_f64(), "{choice}");
    }
    // What nothing gives is not written down as if something did.
    assert_eq!(tried["directive"], "// warplens: block=256");
    client.finish().await;
}

#[tokio::test]
async fn a_hover_in_the_settings_tells_gpus_and_rules() {
    let folder = tempfile::tempdir().expect("a folder");
    let uri = format!("file://{}/warplens.toml", folder.path().display());
    let mut client = Client::start(Setup::default()).await;
    let text = "gpu = \"h100-sxm5\"\ncompare = [\"a100\", \"none\"]\n[rules]\n\"mem/strided\" = \"off\" # mem/gather\n";
    client.open(&uri, "toml", text).await;
    client.published(&uri, 1).await;
    let mut said = async |line: u32, character: u32| {
        let hover = client
            .ask("textDocument/hover", at(&uri, line, character))
            .await;
        let value = hover["contents"]["value"].as_str().unwrap_or_default();
        (value.to_owned(), hover["range"].clone())
    };
    let (gpu, place) = said(0, 9).await;
    assert_eq!(place, range([0, 7, 0, 16]));
    for part in ["`h100-sxm5`", "132 SMs", "GB/s", "sm_90.md"] {
        assert!(gpu.contains(part), "`{part}` in {gpu}");
    }
    let (short, _) = said(1, 13).await;
    assert!(short.contains("A100"), "{short}");
    let (rule, place) = said(3, 4).await;
    assert_eq!(place, range([3, 1, 3, 12]));
    for part in ["**mem/strided**", "mem-strided.md", "Severity"] {
        assert!(rule.contains(part), "`{part}` in {rule}");
    }
    assert!(rule.lines().count() <= 12, "short: {rule}");
    for (line, character) in [(0, 1), (1, 22), (2, 2), (3, 25)] {
        assert_eq!(said(line, character).await.0, "", "{line}:{character}");
    }
    client.finish().await;
}

#[tokio::test]
async fn how_a_program_is_run_can_be_set_and_taken_back() {
    let text = format!(
        "{}int main(int argc, char **argv) {{\n    int n = atoi(argv[1]);\n    float *x, *y;\n    \
         cudaMalloc(&x, n * 4); cudaMalloc(&y, n * 4);\n    \
         saxpy<<<(n + 255) / 256, 256>>>(y, x, 2.0f, n);\n}}\n",
        SAXPY.split("void run").next().expect("the kernel")
    );
    let mut client = open(&text).await;
    let launch = |answer: Value| answer["results"][0]["launch"].clone();
    let estimate = json!({"uri": URI});
    let before = launch(client.command("warplens.estimate", estimate.clone()).await);
    assert_eq!(before["grid"], Value::Null);

    let run = json!({"uri": URI, "arguments": "4096 -v"});
    client.command("warplens.setRun", run).await;
    client.published(URI, 1).await;
    let with = launch(client.command("warplens.estimate", estimate.clone()).await);
    assert_eq!(with["grid"], json!([16, 1, 1]));
    assert_eq!(with["run"], "./saxpy 4096 -v, set in the editor");
    let (text, _) = hover(&mut client, 0, 18).await;
    assert!(
        text.contains("run as ./saxpy 4096 -v, set in the editor"),
        "{text}"
    );

    client.command("warplens.setRun", json!({"uri": URI})).await;
    client.published(URI, 1).await;
    let after = launch(client.command("warplens.estimate", estimate).await);
    assert_eq!(after["grid"], Value::Null);
    client.finish().await;
}

#[tokio::test]
async fn another_launch_is_no_change_of_the_kernel() {
    let mut client = open(SAXPY).await;
    let titles = async |client: &mut Client| -> Vec<String> {
        let lenses = client.ask("textDocument/codeLens", document(URI)).await;
        let lenses = lenses.as_array().expect("lenses").iter();
        let titles = lenses.map(|lens| lens["command"]["title"].as_str().unwrap_or_default());
        titles.map(str::to_owned).collect()
    };
    let told = |titles: &[String], what: &str| titles.iter().any(|title| title == what);
    let first = titles(&mut client).await;
    assert!(told(&first, "launch 1 of 2: <<<4096, 256>>>"), "{first:?}");
    let kernel = json!({"uri": URI, "kernel": "saxpy"});
    client.command("warplens.nextLaunch", kernel.clone()).await;
    client.published(URI, 1).await;
    let second = titles(&mut client).await;
    assert!(told(&second, "launch 2 of 2: <<<64, 128>>>"), "{second:?}");
    assert!(!second[0].contains('→'), "{second:?}");
    // An edit of what is shown is one.
    client.command("warplens.nextLaunch", kernel).await;
    client.published(URI, 1).await;
    assert_eq!(titles(&mut client).await, first);
    let edited = SAXPY.replace("y[i] += a * x[i]", "y[i] += a * x[i * 32]");
    client.change(URI, 2, json!([{"text": edited}])).await;
    client.published(URI, 2).await;
    let changed = titles(&mut client).await;
    assert!(changed[0].contains('→'), "{changed:?}");
    client.change(URI, 3, json!([{"text": SAXPY}])).await;
    client.published(URI, 3).await;
    let set = json!({"uri": URI, "kernel": "saxpy", "grid": [100, 1, 1], "block": [64, 1, 1]});
    client.command("warplens.setLaunch", set).await;
    client.published(URI, 3).await;
    let set = titles(&mut client).await;
    assert!(told(&set, "launch set: <<<100, 64>>>"), "{set:?}");
    let argument = json!({"uri": URI, "kernel": "saxpy"});
    let page = client.command("warplens.compareGpus", argument).await;
    let page = page["markdown"].as_str().expect("a page");
    assert_eq!(page.matches("(target)").count(), 1, "{page}");
    assert!(!set[0].contains('→'), "{set:?}");
    client.finish().await;
}
