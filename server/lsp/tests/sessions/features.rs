//! What an editor shows: hints, lenses, hovers, actions, commands.

use serde_json::{Value, json};

use crate::client::{Client, Setup, at, codes, document, range, strided};

const URI: &str = "file:///code/kernel.cu";

pub const TILE: &str = "\
// warplens: block=(32,8) grid=(32,32) n=1024
__global__ void transpose(float *out, const float *in, int n) {
    __shared__ float tile[32][32];
    int x = blockIdx.x * 32 + threadIdx.x;
    int y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}
";

async fn open(capabilities: Value, text: &str) -> (Client, Vec<Value>) {
    let mut client = Client::start(Setup {
        capabilities,
        ..Setup::default()
    })
    .await;
    client.open(URI, "cuda-cpp", text).await;
    let found = client.published(URI, 1).await;
    (client, found)
}

async fn hints(client: &mut Client, lines: [u32; 2]) -> Vec<(u64, String)> {
    let asked = json!({"textDocument": {"uri": URI}, "range": range([lines[0], 0, lines[1], 0])});
    let hints = client.ask("textDocument/inlayHint", asked).await;
    let hints = hints.as_array().expect("a list").iter();
    hints
        .map(|hint| {
            let label = hint["label"].as_str().expect("a label").to_owned();
            assert!(label.chars().count() <= 40, "{label}");
            assert!(
                hint["tooltip"]["value"]
                    .as_str()
                    .is_some_and(|text| text.contains('|'))
            );
            (hint["position"]["line"].as_u64().expect("a line"), label)
        })
        .collect()
}

#[tokio::test]
async fn hints_stand_at_line_ends_with_the_number_that_matters() {
    let (mut client, _) = open(json!({}), &strided(32)).await;
    let all = hints(&mut client, [0, 9]).await;
    let (_, label) = all.iter().find(|(line, _)| *line == 2).expect("a hint");
    assert!(label.starts_with("32 sectors, ideal 4 · "), "{label}");
    assert!(label.ends_with(" % of time"), "{label}");
    assert_eq!(
        hints(&mut client, [0, 2])
            .await
            .iter()
            .filter(|(line, _)| *line == 2)
            .count(),
        0
    );
    client.finish().await;
    let (mut client, _) = open(json!({}), TILE).await;
    let all = hints(&mut client, [0, 99]).await;
    assert!(
        all.iter()
            .any(|(line, label)| *line == 11 && label.contains("32 passes")),
        "{all:?}"
    );
    client.finish().await;
}

#[tokio::test]
async fn a_lens_gives_the_change_since_the_file_was_saved_and_since_a_pin() {
    let kernel = |stride: u32| {
        let strided = strided(stride);
        format!("// warplens: block=(256) grid=(4096)\n{strided}")
    };
    let (mut client, _) = open(json!({}), &kernel(32)).await;
    let mut version = 1;
    let mut edit = async |client: &mut Client, stride: u32| {
        version += 1;
        let text = json!([{"text": kernel(stride)}]);
        client.change(URI, version, text).await;
    };
    let title = async |client: &mut Client| {
        let lenses = client.ask("textDocument/codeLens", document(URI)).await;
        let title = lenses[0]["command"]["title"].as_str().expect("a title");
        title.split(" · ").next().expect("a time").to_owned()
    };
    let slow = title(&mut client).await;
    assert!(!slow.contains('→'), "{slow}");
    edit(&mut client, 1).await;
    let change = title(&mut client).await;
    let (before, fast) = change.split_once(" → ").expect("a change");
    assert_eq!(before, slow);

    // A save makes this the time to compare with, a pin holds one across saves.
    client.notify("textDocument/didSave", document(URI)).await;
    assert_eq!(title(&mut client).await, fast);
    let pin = json!({"uri": URI, "kernel": "copy"});
    let answer = client.command("warplens.pin", pin.clone()).await;
    assert_eq!(
        (&answer["pinned"], &answer["time"]),
        (&json!(true), &json!(fast))
    );
    edit(&mut client, 32).await;
    client.notify("textDocument/didSave", document(URI)).await;
    assert_eq!(title(&mut client).await, format!("{fast} → {slow}"));
    // Pinned at another time, then unpinned.
    assert_eq!(
        client.command("warplens.pin", pin.clone()).await["pinned"],
        true
    );
    assert_eq!(client.command("warplens.pin", pin).await["pinned"], false);
    assert_eq!(title(&mut client).await, slow);
    client.notifications.clear();
    client.finish().await;
}

#[tokio::test]
async fn a_lens_gives_the_change_of_a_formula_too() {
    let (mut client, _) = open(json!({}), &strided(32)).await;
    let title = async |client: &mut Client| {
        let lenses = client.ask("textDocument/codeLens", document(URI)).await;
        let title = lenses[0]["command"]["title"].as_str().expect("a title");
        title.split(" · ").next().expect("a time").to_owned()
    };
    let slow = title(&mut client).await;
    assert!(slow.contains(" × gridDim.x"), "{slow}");
    client.change(URI, 2, json!([{"text": strided(1)}])).await;
    let change = title(&mut client).await;
    let (before, now) = change.split_once(" → ").expect("a change");
    // Two formulas leave room for what depends on sizes alone.
    assert!(slow.starts_with(before), "{before} of {slow}");
    assert!(now.ends_with(" × gridDim.x"), "{now}");
    let pin = json!({"uri": URI, "kernel": "copy"});
    let answer = client.command("warplens.pin", pin).await;
    let time = format!("{now} + 1.60 µs");
    assert_eq!(
        answer,
        json!({"pinned": true, "time_ms": null, "time": time})
    );
    client.notifications.clear();
    client.finish().await;
}

#[tokio::test]
async fn a_hover_says_first_what_was_found() {
    let text = format!("// warplens: block=(256) grid=(4096)\n{}", strided(32));
    let (mut client, _) = open(json!({}), &text).await;
    let line = text
        .lines()
        .position(|line| line.contains("in["))
        .expect("a load");
    let at = json!({"textDocument": {"uri": URI}, "position": {"line": line, "character": 4}});
    let hover = client.ask("textDocument/hover", at).await;
    let hover = hover["contents"]["value"].as_str().expect("a hover");
    let (advice, account) = hover.split_once("---\n").expect("two parts");
    assert!(
        advice.starts_with("**") && advice.contains("(mem/strided)"),
        "{hover}"
    );
    assert!(account.contains(" of the time of `copy` on "), "{hover}");
    client.finish().await;
}

#[tokio::test]
async fn a_hover_does_not_repeat_what_its_client_shows_beside_it() {
    let text = format!("// warplens: block=(256) grid=(4096)\n{}", strided(32));
    let shows = json!({"experimental": {"hoverShowsDiagnostics": true}});
    let (mut client, found) = open(shows, &text).await;
    let found = found
        .iter()
        .find(|one| one["code"] == "mem/strided")
        .expect("it is published");
    let (line, on) = (
        &found["range"]["start"]["line"],
        &found["range"]["start"]["character"],
    );
    for (character, advised) in [(on.clone(), false), (json!(0), true)] {
        let position = json!({"line": line, "character": character});
        let at = json!({"textDocument": {"uri": URI}, "position": position});
        let hover = client.ask("textDocument/hover", at).await;
        let hover = hover["contents"]["value"].as_str().expect("a hover");
        assert_eq!(hover.contains("(mem/strided)"), advised, "{hover}");
        assert!(hover.contains(" of the time of `copy` on "), "{hover}");
    }
    client.finish().await;
}

#[tokio::test]
async fn a_lens_above_each_kernel_says_target_time_bottleneck_and_occupancy() {
    let (mut client, _) = open(json!({}), &strided(32)).await;
    let lenses = client.ask("textDocument/codeLens", document(URI)).await;
    assert_eq!(lenses.as_array().map(Vec::len), Some(2), "{lenses}");
    assert_eq!(lenses[0]["range"]["start"]["line"], 0);
    let title = lenses[0]["command"]["title"].as_str().expect("a title");
    for part in ["occupancy ", " · A100"] {
        assert!(title.contains(part), "`{part}` in {title}");
    }
    // The time is written as it is everywhere else.
    let page = client
        .command("warplens.breakdown", json!({"uri": URI, "kernel": "copy"}))
        .await;
    let page = page["markdown"].as_str().expect("a page");
    assert!(title.chars().count() <= 80, "{title}");
    let time = title.split(" · ").next().expect("a time");
    // Nothing gives the grid: a formula, with its unit.
    assert!(time.ends_with(" ns × gridDim.x + 1.60 µs"), "{title}");
    assert!(page.contains(&format!("**{time}**")), "{time} in {page}");
    assert_eq!(
        lenses[0]["command"]["command"], "",
        "no command that the client lacks"
    );
    client.finish().await;

    let commands = json!({"experimental": {"commands": {"commands": ["warplens.breakdown"]}}});
    let (mut client, _) = open(commands, &strided(32)).await;
    let lenses = client.ask("textDocument/codeLens", document(URI)).await;
    assert_eq!(lenses[0]["command"]["command"], "warplens.breakdown");
    let arguments = &lenses[0]["command"]["arguments"];
    assert_eq!(*arguments, json!([{"uri": URI, "kernel": "copy"}]));
    let page = client
        .command("warplens.breakdown", arguments[0].clone())
        .await;
    assert!(
        page["markdown"]
            .as_str()
            .is_some_and(|text| text.contains("copy")),
        "{page}"
    );
    client.finish().await;
}

#[tokio::test]
async fn a_hover_tells_the_line_or_the_kernel_and_is_silent_elsewhere() {
    let (mut client, _) = open(json!({}), &strided(32)).await;
    let line = client.ask("textDocument/hover", at(URI, 2, 15)).await;
    let text = line["contents"]["value"].as_str().expect("a hover");
    for part in [
        "`in[32 * i]`",
        "`out[i]`",
        "strided",
        "coalesced",
        "| 32 sectors, ideal 4 ",
        "| 4 sectors, ideal 4 ",
        "32 lanes active",
        "assumed",
    ] {
        assert!(text.contains(part), "`{part}` in {text}");
    }
    // The symbolic index is complete where lines wrap.
    let note = text.lines().find(|line| line.starts_with("- `in[32 * i]`"));
    assert!(
        note.is_some_and(|note| note.contains("index `") && note.contains("threadIdx.x")),
        "{text}"
    );
    let widest = text.lines().filter(|line| line.starts_with('|'));
    assert!(
        widest.map(|row| row.chars().count()).max() <= Some(84),
        "{text}"
    );
    assert_eq!(line["range"], range([2, 4, 2, 24]));
    let kernel = client.ask("textDocument/hover", at(URI, 0, 18)).await;
    let text = kernel["contents"]["value"].as_str().expect("a hover");
    for part in [
        "copy",
        "mwp-cwp",
        "wfg",
        "Occupancy",
        "What would help",
        "Assumed",
    ] {
        assert!(text.contains(part), "`{part}` in {text}");
    }
    let widest = text.lines().filter(|line| line.starts_with('|'));
    assert!(
        widest.map(|row| row.chars().count()).max() <= Some(84),
        "{text}"
    );
    assert_eq!(kernel["range"], range([0, 16, 0, 20]));
    assert_eq!(
        client.ask("textDocument/hover", at(URI, 4, 0)).await,
        Value::Null
    );
    client.finish().await;
}

async fn actions(client: &mut Client, line: u32, found: &[Value], only: Value) -> Vec<Value> {
    let context = json!({"diagnostics": found, "only": only});
    let asked = json!({"textDocument": {"uri": URI}, "range": range([line, 0, line, 99]), "context": context});
    let actions = client.ask("textDocument/codeAction", asked).await;
    actions.as_array().expect("a list").clone()
}

#[tokio::test]
async fn the_padding_action_makes_the_conflict_go() {
    let versioned = json!({"workspace": {"workspaceEdit": {"documentChanges": true}}});
    let (mut client, found) = open(versioned, TILE).await;
    assert!(codes(&found).contains(&"smem/bank-conflict"), "{found:?}");
    let offered = actions(&mut client, 11, &found, Value::Null).await;
    let pad = offered
        .iter()
        .find(|action| {
            action["title"]
                .as_str()
                .is_some_and(|title| title.contains("[33]"))
        })
        .unwrap_or_else(|| panic!("no padding in {offered:#?}"));
    assert_eq!(pad["kind"], "quickfix");
    let change = &pad["edit"]["documentChanges"][0];
    assert_eq!(change["textDocument"], json!({"uri": URI, "version": 1}));
    let edits: Vec<Value> = change["edits"].as_array().expect("edits").clone();
    // From the last to the first, so that each range still holds when its turn comes.
    let changes: Vec<Value> = edits
        .iter()
        .rev()
        .map(|edit| json!({"range": edit["range"], "text": edit["newText"]}))
        .collect();
    client.change(URI, 2, json!(changes)).await;
    let after = client.published(URI, 2).await;
    assert!(!codes(&after).contains(&"smem/bank-conflict"), "{after:?}");
    client.finish().await;
}

#[tokio::test]
async fn a_lens_leads_to_where_a_size_that_nothing_gives_is_set() {
    let commands = json!({"experimental": {"commands": {"commands": ["warplens.setLaunch"]}}});
    let text = "__global__ void saxpy(float *y, const float *x, float a, int n) {\n\
        \x20   int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
        \x20   if (i < n) y[i] += a * x[i];\n}\n";
    let (mut client, _) = open(commands, text).await;
    let lenses = client.ask("textDocument/codeLens", document(URI)).await;
    let lenses = lenses.as_array().expect("a list").clone();
    let set = lenses
        .iter()
        .find(|lens| lens["command"]["title"] == "set `n`…");
    let set = set.unwrap_or_else(|| panic!("{lenses:#?}"));
    assert_eq!(set["command"]["command"], "warplens.setLaunch");
    assert_eq!(
        set["command"]["arguments"],
        json!([{"uri": URI, "kernel": "saxpy"}])
    );
    // What is given asks for nothing.
    let given = format!("// warplens: n=1048576\n{text}");
    client.change(URI, 2, json!([{"text": given}])).await;
    client.published(URI, 2).await;
    let lenses = client.ask("textDocument/codeLens", document(URI)).await;
    let mut titles = lenses.as_array().expect("a list").iter();
    let sets = |lens: &Value| lens["command"]["title"].to_string().contains("set `");
    assert!(!titles.any(sets), "{lenses}");
    client.finish().await;
}

#[tokio::test]
async fn a_size_that_nothing_gives_can_be_stated_above_the_kernel() {
    let text = "__global__ void saxpy(float *y, const float *x, float a, int n) {\n\
        \x20   int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
        \x20   if (i < n) y[i] += a * x[i];\n}\n";
    let (mut client, _) = open(json!({}), text).await;
    let offered = actions(&mut client, 0, &[], json!(["quickfix"])).await;
    let state = offered
        .iter()
        .find(|action| {
            let title = action["title"].as_str().expect("a title");
            title.starts_with("Set `n`… of `saxpy`: write `// warplens: n=")
        })
        .unwrap_or_else(|| panic!("{offered:#?}"));
    let edits = &state["edit"]["changes"][URI];
    let edit = edits[0]["newText"].as_str().expect("a text");
    assert!(edit.starts_with("// warplens: n="), "{edit}");
    let change = json!([{"range": edits[0]["range"], "text": edit}]);
    client.change(URI, 2, change).await;
    client.published(URI, 2).await;
    // What is stated is no longer asked for, and the time is a number.
    let lens = client
        .ask(
            "textDocument/codeLens",
            json!({"textDocument": {"uri": URI}}),
        )
        .await;
    let title = lens[0]["command"]["title"].as_str().expect("a title");
    assert!(!title.contains('×'), "{title}");
    let offered = actions(&mut client, 1, &[], json!(["quickfix"])).await;
    let stated = |action: &Value| {
        action["title"]
            .as_str()
            .is_some_and(|it| it.starts_with("Set "))
    };
    assert!(!offered.iter().any(stated), "{offered:#?}");
    client.finish().await;
}

#[tokio::test]
async fn a_finding_can_be_silenced_where_it_stands() {
    let (mut client, found) = open(json!({}), &strided(32)).await;
    let offered = actions(&mut client, 2, &found, json!(["quickfix"])).await;
    let silence = offered
        .iter()
        .find(|action| action["title"] == "Silence mem/strided here")
        .unwrap_or_else(|| panic!("{offered:#?}"));
    assert_eq!(silence["diagnostics"], json!(found));
    let edits = &silence["edit"]["changes"][URI];
    assert_eq!(
        *edits,
        json!([{"range": range([2, 0, 2, 0]), "newText": "    // warplens: allow(mem/strided)\n"}])
    );
    let change = json!([{"range": edits[0]["range"], "text": edits[0]["newText"]}]);
    client.change(URI, 2, change).await;
    assert_eq!(codes(&client.published(URI, 2).await), Vec::<&str>::new());
    assert!(
        actions(&mut client, 3, &[], json!(["source.organizeImports"]))
            .await
            .is_empty()
    );
    client.finish().await;
}

#[tokio::test]
async fn choosing_a_gpu_holds_for_one_document_or_for_all() {
    let (mut client, _) = open(json!({}), &strided(32)).await;
    let other = "file:///code/other.cu";
    client.open(other, "cuda-cpp", &strided(32)).await;
    client.published(other, 1).await;
    let chosen = client
        .command("warplens.selectGpu", json!({"uri": URI, "gpu": "gtx-280"}))
        .await;
    assert_eq!(chosen["gpu"], "gtx-280");
    let lens = client.ask("textDocument/codeLens", document(URI)).await;
    assert!(
        lens[0]["command"]["title"]
            .as_str()
            .is_some_and(|title| title.contains("GTX 280"))
    );
    let lens = client.ask("textDocument/codeLens", document(other)).await;
    assert!(
        lens[0]["command"]["title"]
            .as_str()
            .is_some_and(|title| title.contains("A100"))
    );
    client
        .command("warplens.selectGpu", json!({"gpu": "tesla-k40c"}))
        .await;
    for uri in [URI, other] {
        let lens = client.ask("textDocument/codeLens", document(uri)).await;
        assert!(
            lens[0]["command"]["title"]
                .as_str()
                .is_some_and(|title| title.contains("K40c"))
        );
    }
    let wrong = json!({"command": "warplens.selectGpu", "arguments": [{"gpu": "gtx281"}]});
    let error = client.ask_wrongly("workspace/executeCommand", wrong).await;
    assert!(
        error["message"]
            .as_str()
            .is_some_and(|text| text.contains("\"gtx-280\"")),
        "{error}"
    );
    client.notifications.clear();
    client.finish().await;
}

#[tokio::test]
async fn a_launch_can_be_set_and_taken_back() {
    let (mut client, _) = open(json!({}), &strided(32)).await;
    let launch = |block: Value, grid: Value| json!({"uri": URI, "kernel": "copy", "block": block, "grid": grid, "args": {"n": 64}});
    client
        .command("warplens.setLaunch", launch(json!([64, 2]), json!(10)))
        .await;
    // Not awaited by anything but order: the estimate sees the launch that was set before it.
    let estimate = client
        .command("warplens.estimate", json!({"uri": URI, "kernel": "copy"}))
        .await;
    assert_eq!(estimate["schema"], "warplens.estimate/1");
    let result = &estimate["results"][0];
    assert_eq!(result["launch"]["block"], json!([64, 2, 1]), "{result:#}");
    assert_eq!(result["launch"]["grid"], json!([10, 1, 1]));
    assert_eq!(result["launch"]["block_source"], "set-launch");
    client
        .command("warplens.setLaunch", json!({"uri": URI, "kernel": "copy"}))
        .await;
    let estimate = client
        .command("warplens.estimate", json!({"uri": URI}))
        .await;
    assert_eq!(estimate["results"][0]["launch"]["block_source"], "assumed");
    for wrong in [json!([]), json!([1, 2, 3, 4]), json!(0), json!("big")] {
        let params =
            json!({"command": "warplens.setLaunch", "arguments": [launch(wrong, Value::Null)]});
        client.ask_wrongly("workspace/executeCommand", params).await;
    }
    client.notifications.clear();
    client.finish().await;
}

#[tokio::test]
async fn wrong_commands_say_what_is_wrong() {
    let (mut client, _) = open(json!({}), &strided(32)).await;
    for (command, argument, says) in [
        (
            "warplens.estimate",
            json!({"uri": "file:///not/open.cu"}),
            "not open",
        ),
        (
            "warplens.estimate",
            json!({"uri": URI, "kernel": "none"}),
            "none",
        ),
        (
            "warplens.breakdown",
            json!({"uri": URI, "kernel": "none"}),
            "none",
        ),
        ("warplens.breakdown", json!({}), "uri"),
        (
            "warplens.compareGpus",
            json!({"uri": URI, "kernel": "none"}),
            "none",
        ),
        (
            "warplens.graph",
            json!({"uri": URI, "kernel": "none"}),
            "none",
        ),
        (
            "warplens.whatWouldHelp",
            json!({"uri": URI, "kernel": "none"}),
            "none",
        ),
        (
            "warplens.report",
            json!({"uri": "file:///not/open.cu"}),
            "not open",
        ),
        ("warplens.dance", json!({}), "warplens.dance"),
    ] {
        let params = json!({"command": command, "arguments": [argument]});
        let error = client.ask_wrongly("workspace/executeCommand", params).await;
        assert!(
            error["message"]
                .as_str()
                .is_some_and(|text| text.contains(says)),
            "{error}"
        );
    }
    client.finish().await;
}

#[tokio::test]
async fn a_lens_lists_its_assumptions() {
    let unknown = "__global__ void walk(float *out, const float *in, int n) {\n    \
                   int i = blockIdx.x * blockDim.x + threadIdx.x;\n    \
                   if (i < n) out[i] = in[i * n];\n}\n";
    let (mut client, _) = open(json!({}), unknown).await;
    let lenses = client.ask("textDocument/codeLens", document(URI)).await;
    let title = |lenses: &Value, at: usize| {
        let title = lenses[at]["command"]["title"].as_str();
        title.expect("a title").to_owned()
    };
    assert_eq!(title(&lenses, 1), "assumes block 256");
    // The time is one of `n`, which has no value.
    let title_of_costs = title(&lenses, 0);
    let time = title_of_costs.split(" · ").next().expect("a time");
    assert!(
        time.contains("× n") || time == "needs `n`",
        "{title_of_costs}"
    );
    assert!(!title_of_costs.contains("1024"), "{title_of_costs}");
    // What is told is no longer assumed.
    let told = json!({"uri": URI, "kernel": "walk", "block": 64, "args": {"n": 4096}});
    client.command("warplens.setLaunch", told).await;
    let lenses = client.ask("textDocument/codeLens", document(URI)).await;
    let assumed = title(&lenses, 1);
    assert!(assumed.starts_with("assumes grid "), "{assumed}");
    assert!(
        !assumed.contains("block") && !assumed.contains(" n "),
        "{assumed}"
    );
    client.notifications.clear();
    client.finish().await;
    let (mut client, _) = open(json!({}), TILE).await;
    let lenses = client.ask("textDocument/codeLens", document(URI)).await;
    assert!(!lenses.to_string().contains("assumes"), "{lenses}");
    client.finish().await;
}

/// The GPUs and times of a comparison's rows.
fn rows(page: &Value) -> Vec<(String, String)> {
    let text = page["markdown"].as_str().expect("a page");
    let rows = text.lines().filter(|line| line.starts_with("| ")).skip(2);
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        assert!(cells.len() >= 5, "{row}");
        (cells[0].to_owned(), cells[1].to_owned())
    })
    .collect()
}

/// `12.6 µs` in milliseconds.
fn milliseconds(time: &str) -> f64 {
    let (figure, unit) = time.split_once(' ').expect("a figure and a unit");
    let scale = match unit {
        "µs" => 1e-3,
        "ms" => 1.0,
        "s" => 1e3,
        unit => panic!("no unit: {unit}"),
    };
    figure.parse::<f64>().expect("a figure") * scale
}

#[tokio::test]
async fn a_kernel_is_compared_on_five_gpus_on_those_of_the_settings_or_on_all() {
    let kernel = json!({"uri": URI, "kernel": "transpose"});
    let (mut client, _) = open(json!({}), TILE).await;
    let page = client.command("warplens.compareGpus", kernel).await;
    let five = rows(&page);
    assert_eq!(five.len(), 5, "{five:?}");
    assert!(
        five.iter().any(|(gpu, _)| gpu == "a100-sxm4-40gb (target)"),
        "{five:?}"
    );
    // One model: others are on the kernel's own page.
    assert!(
        !page["markdown"].to_string().contains("by mwp-cwp"),
        "{page}"
    );
    let kernel = json!({"uri": URI, "kernel": "transpose", "all": true});
    let page = client.command("warplens.compareGpus", kernel).await;
    let all = rows(&page);
    assert!(all.len() >= 10, "{all:?}");
    assert!(
        all.iter().any(|(gpu, _)| gpu == "a100-sxm4-40gb (target)"),
        "{all:?}"
    );
    let times = all.iter().filter(|(_, time)| time != "?");
    let times: Vec<f64> = times.map(|(_, time)| milliseconds(time)).collect();
    assert!(times.is_sorted(), "{all:?}");
    let estimate = json!({"uri": URI, "kernel": "transpose"});
    let exact = client.command("warplens.estimate", estimate).await;
    let exact = exact["results"][0]["estimates"]["auto"]["time_ms"].as_f64();
    let target = all.iter().find(|(gpu, _)| gpu.ends_with("(target)"));
    let shown = milliseconds(&target.expect("a row").1);
    assert!(
        exact.is_some_and(|exact| (shown / exact - 1.0).abs() < 0.01),
        "{exact:?} {all:?}"
    );
    client.finish().await;

    let options = json!({"compare": ["tesla-k40c", "gtx-280"], "gpu": "v100-sxm2-16gb"});
    let mut client = Client::start(Setup {
        options,
        ..Setup::default()
    })
    .await;
    client.open(URI, "cuda-cpp", &strided(32)).await;
    client.published(URI, 1).await;
    let kernel = json!({"uri": URI, "kernel": "copy"});
    let page = client.command("warplens.compareGpus", kernel).await;
    let mut gpus: Vec<String> = rows(&page).into_iter().map(|(gpu, _)| gpu).collect();
    gpus.sort();
    assert_eq!(gpus, ["gtx-280", "tesla-k40c", "v100-sxm2-16gb (target)"]);
    // Without a grid each time is one of the blocks.
    let text = page["markdown"].as_str().expect("a page");
    assert!(text.contains("× gridDim.x"), "{text}");
    client.finish().await;
}

#[tokio::test]
async fn the_report_is_a_page_about_all_kernels_of_the_file() {
    let hostile = "// </script><script>alert(1)</script>\n";
    let text = format!(
        "{hostile}{TILE}{}",
        strided(32).replace("in[32 * i]", "in[i<4 ? i : 32 * i]")
    );
    let (mut client, _) = open(json!({}), &text).await;
    let page = client.command("warplens.report", json!({"uri": URI})).await;
    let page = page["html"].as_str().expect("a page");
    assert!(page.starts_with("<!DOCTYPE html>"), "{page}");
    for part in [
        "transpose",
        "copy",
        "tile[threadIdx.x]",
        "smem/bank-conflict",
        "What if",
        "Assumed",
    ] {
        assert!(page.contains(part), "`{part}` in {page}");
    }
    assert!(page.contains("in[i&lt;4 ? i : 32 * i]"), "{page}");
    assert!(!page.contains("<script"), "{page}");
    assert!(page.contains("default-src 'none'"), "{page}");
    client.finish().await;
}

#[tokio::test]
async fn what_would_help_is_listed_by_gain_and_its_edits_can_be_applied() {
    let (mut client, _) = open(json!({}), &format!("{TILE}{}", strided(32))).await;
    let kernel = json!({"uri": URI, "kernel": "transpose"});
    let help = client.command("warplens.whatWouldHelp", kernel).await;
    assert_eq!(help["kernel"], "transpose");
    let entries = help["entries"].as_array().expect("a list");
    let gains: Vec<f64> = entries
        .iter()
        .map(|one| one["gain"].as_f64().expect("a number"))
        .collect();
    assert!(gains.iter().all(|gain| *gain >= 1.0), "{help:#}");
    assert!(gains.is_sorted_by(|a, b| a >= b), "{help:#}");
    let edit = &entries[0];
    assert_eq!(edit["kind"], "edit", "{help:#}");
    assert_eq!(edit["rule"], "smem/bank-conflict", "{help:#}");
    let title = edit["title"].as_str().expect("a title");
    assert!(title.starts_with("Pad `tile`"), "{title}");
    let edits = edit["edit"].to_string();
    assert!(edits.contains("newText") && edits.contains(URI), "{edits}");
    // What an edit cures is not told twice, neither as a finding nor as a cause.
    for other in &entries[1..] {
        assert_ne!(other["kind"], "finding", "{help:#}");
        assert_ne!(other["factor"], "bank-conflicts", "{help:#}");
    }
    client.finish().await;
}

#[tokio::test]
async fn what_would_help_has_the_findings_that_no_action_cures() {
    let few = "// warplens: block=(1024) grid=(8) n=4000000\n\
               __global__ void fill(float *out, int n) {\n    \
               for (int i = blockIdx.x * 1024 + threadIdx.x; i < n; i += gridDim.x * 1024) out[i] = 1.0f;\n}\n";
    let (mut client, found) = open(json!({}), few).await;
    let kernel = json!({"uri": URI, "kernel": "fill"});
    let help = client.command("warplens.whatWouldHelp", kernel).await;
    let small = &help["entries"][0];
    assert_eq!(small["kind"], "finding", "{help:#}");
    assert_eq!(small["rule"], "launch/small-grid");
    assert!(small["gain"].as_f64() > Some(2.0), "{small}");
    let title = small["title"].as_str().expect("a title");
    assert!(title.contains("x: launch more blocks"), "{title}");
    let published = found
        .iter()
        .find(|one| one["code"] == "launch/small-grid")
        .expect("it is published");
    assert_eq!(small["range"], published["range"]);
    client.finish().await;
}

#[tokio::test]
async fn what_would_help_has_the_causes_that_no_finding_says() {
    let gather = "// warplens: block=(256) grid=(65536) n=16777216\n\
                  __global__ void gather(float *out, const float *in, const int *index, int n) {\n    \
                  int i = blockIdx.x * blockDim.x + threadIdx.x;\n    \
                  if (i < n) out[i] = in[index[i]];\n}\n";
    let (mut client, _) = open(json!({}), gather).await;
    let kernel = json!({"uri": URI, "kernel": "gather"});
    let help = client.command("warplens.whatWouldHelp", kernel).await;
    let cause = &help["entries"][0];
    assert_eq!(cause["kind"], "cause", "{help:#}");
    assert_eq!(cause["factor"], "uncoalesced", "{help:#}");
    assert_eq!(cause["range"]["start"]["line"], 3, "{help:#}");
    let title = cause["title"].as_str().expect("a title");
    assert!(
        title.ends_with("x: without uncoalesced accesses, most of it in line 4"),
        "{title}"
    );
    client.finish().await;
}

#[tokio::test]
async fn a_program_has_a_page_and_a_file_without_one_says_so() {
    let kernel = "__global__ void scale(float *a) { a[blockIdx.x * 256 + threadIdx.x] *= 2.0f; }\n";
    let main = "int main() { float *a; cudaMalloc(&a, 1 << 20); \
                for (int i = 0; i < 12; i++) scale<<<1024, 256>>>(a); }\n";
    let (mut client, _) = open(json!({}), &format!("{kernel}{main}")).await;
    let answer = client
        .command("warplens.program", json!({"uri": URI}))
        .await;
    let page = answer["html"].as_str().expect("a page");
    assert!(page.starts_with("<!DOCTYPE html>"), "{page}");
    for part in ["Kernels", "scale", ">12<", "100 %"] {
        assert!(page.contains(part), "`{part}` in {page}");
    }
    assert!(
        !page.contains("<script") && !page.contains("http:"),
        "{page}"
    );
    client.finish().await;
    let (mut client, _) = open(json!({}), kernel).await;
    let params = json!({"command": "warplens.program", "arguments": [{"uri": URI}]});
    let error = client.ask_wrongly("workspace/executeCommand", params).await;
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains("`main`"), "{error}");
    client.finish().await;
}

#[tokio::test]
async fn the_graph_is_a_picture_of_one_kernel() {
    let (mut client, _) = open(json!({}), &format!("{TILE}{}", strided(32))).await;
    let kernel = json!({"uri": URI, "kernel": "transpose"});
    let answer = client.command("warplens.graph", kernel).await;
    let svg = answer["svg"].as_str().expect("a picture");
    assert!(
        svg.starts_with("<svg ") && svg.ends_with("</svg>\n"),
        "{svg}"
    );
    for part in ["Work flow graph of transpose", "entry", "exit"] {
        assert!(svg.contains(part), "`{part}` in {svg}");
    }
    assert!(
        !svg.contains("<script") && !svg.contains("http://example"),
        "{svg}"
    );
    let page = answer["html"].as_str().expect("a page");
    assert!(page.starts_with("<!DOCTYPE html>"), "{page}");
    assert!(page.contains("Work flow graph of transpose"), "{page}");
    assert!(!page.contains("http:"), "{page}");
    client.finish().await;
}

#[tokio::test]
async fn the_heat_of_lines_adds_up_and_follows_the_text() {
    let text = format!("{TILE}{}", strided(32));
    let (mut client, _) = open(json!({}), &text).await;
    let heat = client.command("warplens.heat", json!({"uri": URI})).await;
    let lines = heat["lines"].as_array().expect("a list");
    assert!(lines.len() > 2, "{heat:#}");
    assert!(heat["version"].is_number(), "{heat:#}");
    let mut of = std::collections::BTreeMap::new();
    for line in lines {
        let number = |key: &str| line[key].as_f64().expect("a number");
        assert!((0.0..=1.0).contains(&number("share")), "{heat:#}");
        assert!((0.0..=1.0).contains(&number("heat")), "{heat:#}");
        let kernel = line["kernel"].as_str().expect("a name").to_owned();
        let (sum, hottest) = of.entry(kernel).or_insert((0.0, 0.0_f64));
        *sum += number("share");
        *hottest = hottest.max(number("heat"));
    }
    for (kernel, (sum, hottest)) in of {
        // Lines that weigh next to nothing are left out.
        assert!((0.9..=1.0 + 1e-9).contains(&sum), "{kernel}: {sum}");
        assert!((hottest - 1.0).abs() < 1e-9, "{kernel}: {hottest}");
    }
    let nothing = json!({"uri": "file:///not/open.cu"});
    let heat = client.command("warplens.heat", nothing).await;
    assert_eq!(heat["lines"], json!([]));
    client.finish().await;
}

#[tokio::test]
async fn the_lanes_are_those_of_the_access_under_the_cursor() {
    let text = format!("{TILE}{}", strided(32));
    let (mut client, _) = open(json!({}), &text).await;
    let lines: Vec<&str> = text.lines().collect();
    let at = |part: &str| {
        let line = lines.iter().position(|line| line.contains(part));
        let line = line.expect("a line with that");
        let character = lines[line].find(part).expect("it");
        json!({"uri": URI, "position": {"line": line, "character": character}})
    };
    let answer = client.command("warplens.lanes", at("in[32 * ")).await;
    let page = answer["html"].as_str().expect("a page");
    assert!(
        page.contains("32 lanes touch 32 segments of 32 B"),
        "{page}"
    );
    assert!(
        page.starts_with("<!DOCTYPE html>") && !page.contains("http:"),
        "{page}"
    );
    // In characters: every lane has a piece of its own, an eighth of which it asks for.
    let text = answer["text"].as_str().expect("text");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    for row in [
        "           0  █▌            0",
        "        3968  █▌            31",
    ] {
        assert!(
            text.lines()
                .any(|line| line.trim_end() == format!("    {row}").trim_end()),
            "{row:?} is not in\n{text}"
        );
    }
    assert!(
        text.contains("32 lanes touch 32 segments of 32 B"),
        "{text}"
    );
    let answer = client
        .command("warplens.lanes", at("tile[threadIdx.x]"))
        .await;
    let text = answer["text"].as_str().expect("text");
    assert!(text.contains("bank  words"), "{text}");
    let nowhere = json!({"uri": URI, "position": {"line": 9999, "character": 7}});
    let answer = client.command("warplens.lanes", nowhere).await;
    let text = answer["text"].as_str().expect("text");
    assert!(text.contains("No memory access"), "{text}");
    assert_eq!(answer["accesses"], 0);
    client.finish().await;
}

#[tokio::test]
async fn every_command_that_is_announced_is_there() {
    let (mut client, _) = open(json!({}), &strided(32)).await;
    let announced =
        client.initialized["capabilities"]["executeCommandProvider"]["commands"].clone();
    let announced: Vec<String> = serde_json::from_value(announced).expect("names");
    // It takes nothing.
    let takes = |name: &&String| *name != "warplens.kernels";
    for name in announced.iter().filter(takes) {
        let params = json!({"command": name, "arguments": [{}]});
        let error = client.ask_wrongly("workspace/executeCommand", params).await;
        let message = error["message"].as_str().expect("a message");
        assert!(
            message.starts_with(&format!("{name}: missing field")),
            "{message}"
        );
    }
    client.finish().await;
}

/// Two kernels with the same conflict.
fn two_tiles() -> String {
    format!("{TILE}\n{}", TILE.replace("transpose", "transpose_back"))
}

fn titled<'a>(actions: &'a [Value], title: &str) -> &'a Value {
    actions
        .iter()
        .find(|action| action["title"] == title)
        .unwrap_or_else(|| panic!("no `{title}` in {actions:#?}"))
}

/// The text after an edit of several places in one document.
fn applied(edit: &Value) -> Value {
    let edits = match &edit["documentChanges"] {
        Value::Null => &edit["changes"][URI],
        changes => {
            assert_eq!(
                changes.as_array().map(Vec::len),
                Some(1),
                "one step to undo"
            );
            &changes[0]["edits"]
        }
    };
    let edits = edits.as_array().expect("edits").iter().rev();
    edits
        .map(|edit| json!({"range": edit["range"], "text": edit["newText"]}))
        .collect()
}

#[tokio::test]
async fn one_kind_of_fix_is_made_everywhere_in_one_step() {
    let (mut client, found) = open(json!({}), &two_tiles()).await;
    let conflicts = |codes: &[&str]| {
        codes
            .iter()
            .filter(|code| **code == "smem/bank-conflict")
            .count()
    };
    assert_eq!(conflicts(&codes(&found)), 2);
    let offered = actions(&mut client, 11, &found, Value::Null).await;
    let everywhere = titled(&offered, "Pad everywhere in this file (smem/bank-conflict)");
    assert_eq!(everywhere["kind"], "quickfix");
    assert_eq!(everywhere["isPreferred"], Value::Null);
    client.change(URI, 2, applied(&everywhere["edit"])).await;
    let after = client.published(URI, 2).await;
    assert_eq!(conflicts(&codes(&after)), 0, "{after:?}");
    // One place: nothing to make everywhere.
    client.finish().await;
    let (mut client, found) = open(json!({}), TILE).await;
    let offered = actions(&mut client, 11, &found, Value::Null).await;
    assert!(
        offered.iter().all(|action| !action["title"]
            .as_str()
            .expect("a title")
            .contains("everywhere")),
        "{offered:#?}"
    );
    let preferred = offered
        .iter()
        .filter(|action| action["isPreferred"] == true);
    assert_eq!(preferred.count(), 1, "{offered:#?}");
    client.finish().await;
}

#[tokio::test]
async fn what_takes_long_is_made_when_it_is_chosen() {
    let resolves = json!({
        "textDocument": {"codeAction": {"dataSupport": true, "resolveSupport": {"properties": ["edit"]}}},
        "workspace": {"workspaceEdit": {"documentChanges": true}},
    });
    let (mut client, found) = open(resolves, &two_tiles()).await;
    let offered = actions(&mut client, 11, &found, Value::Null).await;
    let everywhere = titled(&offered, "Pad everywhere in this file (smem/bank-conflict)").clone();
    assert_eq!(everywhere["edit"], Value::Null);
    let resolved = client.ask("codeAction/resolve", everywhere.clone()).await;
    assert_eq!(resolved["title"], everywhere["title"]);
    let change = &resolved["edit"]["documentChanges"][0];
    assert_eq!(change["textDocument"], json!({"uri": URI, "version": 1}));
    assert_eq!(change["edits"].as_array().map(Vec::len), Some(2));
    client.change(URI, 2, applied(&resolved["edit"])).await;
    let after = client.published(URI, 2).await;
    assert!(!codes(&after).contains(&"smem/bank-conflict"), "{after:?}");
    // The text has moved on: what was offered for the old one is not made of the new one.
    let error = client.ask_wrongly("codeAction/resolve", everywhere).await;
    assert_eq!(error["code"], -32801, "{error}");
    client.finish().await;
}

#[tokio::test]
async fn everything_is_fixed_where_an_editor_asks_for_that() {
    let (mut client, found) = open(json!({}), &two_tiles()).await;
    for only in ["source", "source.fixAll", "source.fixAll.warplens"] {
        let offered = actions(&mut client, 0, &found, json!([only])).await;
        assert_eq!(offered.len(), 1, "{offered:#?}");
        assert_eq!(offered[0]["kind"], "source.fixAll.warplens");
    }
    let offered = actions(&mut client, 0, &found, json!(["source.fixAll"])).await;
    client.change(URI, 2, applied(&offered[0]["edit"])).await;
    let after = client.published(URI, 2).await;
    assert!(!codes(&after).contains(&"smem/bank-conflict"), "{after:?}");
    let offered = actions(&mut client, 0, &after, json!(["source.fixAll"])).await;
    assert_eq!(offered, Vec::<Value>::new(), "nothing is left to fix");
    client.finish().await;
}
