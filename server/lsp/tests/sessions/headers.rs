//! Headers, host code and launches: what is shown of a kernel follows what other files and lines say.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Client, Setup, at, codes, document, range};

/// Longest a header's edit may take to reach another file's hints, here and on slow machines.
const SLOW: Duration = Duration::from_millis(500);

/// A kernel whose stride a header decides.
const KERNEL: &str = "#include \"stride.h\"\n\
    __global__ void copy(float *out, const float *in) {\n    \
    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    \
    out[i] = in[STRIDE * i];\n}\n";

/// A folder with `copy.cu` and `stride.h`.
struct Project {
    folder: tempfile::TempDir,
}

impl Project {
    fn new() -> Project {
        let project = Project {
            folder: tempfile::tempdir().expect("a folder"),
        };
        project.write("copy.cu", KERNEL);
        project.write("stride.h", &stride(1));
        project
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).expect("a file");
    }

    fn uri(&self, name: &str) -> String {
        format!("file://{}", self.path().join(name).display())
    }

    async fn start(&self, capabilities: Value) -> Client {
        Client::start(Setup {
            folder: Some(format!("file://{}", self.path().display())),
            capabilities,
            ..Setup::default()
        })
        .await
    }
}

fn stride(stride: usize) -> String {
    format!("#pragma once\n#define STRIDE {stride}\n")
}

/// Labels of the hints of a file's first lines, by line.
async fn hints(client: &mut Client, uri: &str) -> Vec<(u64, String)> {
    let asked = json!({"textDocument": {"uri": uri}, "range": range([0, 0, 99, 0])});
    let hints = client.ask("textDocument/inlayHint", asked).await;
    let hints = hints.as_array().expect("a list").iter();
    hints
        .map(|hint| {
            let line = hint["position"]["line"].as_u64().expect("a line");
            (line, hint["label"].as_str().expect("a label").to_owned())
        })
        .collect()
}

async fn titles(client: &mut Client, uri: &str) -> Vec<String> {
    let lenses = client.ask("textDocument/codeLens", document(uri)).await;
    let lenses = lenses.as_array().expect("a list").iter();
    lenses
        .map(|lens| {
            lens["command"]["title"]
                .as_str()
                .expect("a title")
                .to_owned()
        })
        .collect()
}

/// The diagnostics of a file that are pushed next; those of other files are passed over.
async fn pushed(client: &mut Client, uri: &str) -> Vec<String> {
    loop {
        let params = client.notification("textDocument/publishDiagnostics").await;
        if params["uri"] == uri {
            let found = params["diagnostics"].as_array().expect("a list");
            return codes(found).into_iter().map(str::to_owned).collect();
        }
    }
}

/// Replaces a whole text.
async fn replace(client: &mut Client, uri: &str, version: i32, text: &str) {
    client.change(uri, version, json!([{"text": text}])).await;
}

#[tokio::test]
async fn an_edit_of_an_open_header_reaches_the_kernels_that_include_it() {
    let project = Project::new();
    let (kernel, header) = (project.uri("copy.cu"), project.uri("stride.h"));
    let refreshes = json!({"workspace": {"inlayHint": {"refreshSupport": true},
        "codeLens": {"refreshSupport": true}}});
    let mut client = project.start(refreshes).await;
    client.open(&kernel, "cuda-cpp", KERNEL).await;
    assert_eq!(client.published(&kernel, 1).await, Vec::<Value>::new());
    client.open(&header, "cpp", &stride(1)).await;
    assert!(pushed(&mut client, &header).await.is_empty());
    assert!(
        client.asked.is_empty(),
        "opening a header as it is on disk changes nothing: {:?}",
        client.asked
    );

    replace(&mut client, &header, 2, &stride(32)).await;
    assert_eq!(pushed(&mut client, &kernel).await, ["mem/strided"]);
    client.until_asked("workspace/inlayHint/refresh").await;
    client.until_asked("workspace/codeLens/refresh").await;
    let shown = hints(&mut client, &kernel).await;
    assert!(
        shown
            .iter()
            .any(|(line, label)| *line == 3 && label.starts_with("32 sectors, ideal 4")),
        "{shown:?}"
    );

    // What was never saved goes with the header's tab.
    client.close(&header).await;
    assert_eq!(pushed(&mut client, &kernel).await, Vec::<String>::new());
    client.notifications.clear();
    client.finish().await;
}

#[tokio::test]
async fn a_client_that_pulls_is_asked_to_ask_again_when_a_header_changes() {
    let project = Project::new();
    let (kernel, header) = (project.uri("copy.cu"), project.uri("stride.h"));
    let capabilities = json!({"textDocument": {"diagnostic": {}},
        "workspace": {"diagnostics": {"refreshSupport": true}}});
    let mut client = project.start(capabilities).await;
    client.open(&kernel, "cuda-cpp", KERNEL).await;
    let report = client
        .ask("textDocument/diagnostic", document(&kernel))
        .await;
    assert_eq!(report["items"], json!([]));
    client.open(&header, "cpp", &stride(32)).await;
    client.until_asked("workspace/diagnostic/refresh").await;
    let report = client
        .ask("textDocument/diagnostic", document(&kernel))
        .await;
    assert_eq!(
        codes(report["items"].as_array().expect("items")),
        ["mem/strided"]
    );
    client.finish().await;
}

#[tokio::test]
async fn a_header_that_changes_on_disk_counts_once_the_client_says_so() {
    let project = Project::new();
    let kernel = project.uri("copy.cu");
    let mut client = project.start(json!({})).await;
    client.open(&kernel, "cuda-cpp", KERNEL).await;
    assert_eq!(client.published(&kernel, 1).await, Vec::<Value>::new());
    project.write("stride.h", &stride(32));
    let changes = json!({"changes": [{"uri": project.uri("stride.h"), "type": 2}]});
    client
        .notify("workspace/didChangeWatchedFiles", changes)
        .await;
    assert_eq!(pushed(&mut client, &kernel).await, ["mem/strided"]);
    client.finish().await;
}

#[tokio::test]
async fn missing_headers_are_logged_once_for_a_file_and_are_no_diagnostics() {
    let project = Project::new();
    let kernel = project.uri("copy.cu");
    let text = KERNEL.replace("stride.h", "nowhere.h") + "#include \"lost/too.cuh\"\n";
    let mut client = project.start(json!({})).await;
    client.open(&kernel, "cuda-cpp", &text).await;
    let logged = client.notification("window/logMessage").await;
    let message = logged["message"].as_str().expect("a message");
    assert!(
        message.contains("headers not found: lost/too.cuh, nowhere.h"),
        "{message}"
    );
    client.published(&kernel, 1).await;
    client.edit(&kernel, 2, [4, 1, 4, 1], " ").await;
    let found = client.published(&kernel, 2).await;
    assert!(
        found.iter().all(|one| one["range"]["start"]["line"] != 0),
        "{found:?}"
    );
    let argument = json!({"uri": kernel, "kernel": "copy"});
    let page = client.command("warplens.breakdown", argument.clone()).await;
    let page = page["markdown"].as_str().expect("a page");
    assert_eq!(page.matches("nowhere.h").count(), 1, "{page}");
    let estimate = client.command("warplens.estimate", argument).await;
    assert_eq!(
        estimate["missing_includes"],
        json!(["lost/too.cuh", "nowhere.h"])
    );

    // A file that is made and found is no longer missing.
    project.write("nowhere.h", &stride(32));
    let changes = json!({"changes": [{"uri": project.uri("nowhere.h"), "type": 1}]});
    client
        .notify("workspace/didChangeWatchedFiles", changes)
        .await;
    assert_eq!(pushed(&mut client, &kernel).await, ["mem/strided"]);
    // `finish` finds a second message.
    client.finish().await;
}

#[tokio::test]
async fn headers_are_watched() {
    let capabilities =
        json!({"workspace": {"didChangeWatchedFiles": {"dynamicRegistration": true}}});
    let mut client = Client::start(Setup {
        capabilities,
        ..Setup::default()
    })
    .await;
    let params = client.question("client/registerCapability").await;
    let watchers = params["registrations"][0]["registerOptions"]["watchers"].to_string();
    for part in [
        "warplens.toml",
        "compile_commands.json",
        "Makefile",
        "cuh",
        "hpp",
    ] {
        assert!(watchers.contains(part), "`{part}` in {watchers}");
    }
    client.finish().await;
}

#[tokio::test]
async fn a_finding_in_a_called_function_points_into_it() {
    let project = Project::new();
    let kernel = project.uri("copy.cu");
    project.write(
        "stride.h",
        "#pragma once\n__device__ float pick(const float *p, int i) {\n    return p[32 * i];\n}\n\
         __device__ float twice(const float *p, int i) {\n    return pick(p, i) * 2;\n}\n",
    );
    let text = KERNEL.replace("in[STRIDE * i]", "twice(in, i)");
    let mut client = project.start(json!({})).await;
    client.open(&kernel, "cuda-cpp", &text).await;
    let found = client.published(&kernel, 1).await;
    assert_eq!(codes(&found), ["mem/strided"], "{found:#?}");
    assert_eq!(found[0]["range"]["start"]["line"], 3);
    let related = found[0]["relatedInformation"].as_array().expect("places");
    let places: Vec<(Value, Value)> = related
        .iter()
        .map(|one| {
            let location = &one["location"];
            (
                location["uri"].clone(),
                location["range"]["start"]["line"].clone(),
            )
        })
        .collect();
    let header = json!(project.uri("stride.h"));
    assert!(
        places.contains(&(header.clone(), json!(2))),
        "the access: {related:#?}"
    );
    assert!(
        places.contains(&(header, json!(5))),
        "the call between: {related:#?}"
    );
    client.finish().await;
}

#[tokio::test]
async fn what_was_not_understood_stands_in_a_lens_and_in_the_hover() {
    let uri = "file:///code/copy.cu";
    let text = "__global__ void copy(float *out, const float *in) {\n    \
        int i = blockIdx.x * blockDim.x + threadIdx.x;\n    \
        out[i] = in[mystery(i)];\n    \
        out[i] = in[riddle(i)];\n}\n";
    let commands = json!({"experimental": {"commands": {"commands": ["warplens.breakdown"]}}});
    let mut client = Client::start(Setup {
        capabilities: commands,
        ..Setup::default()
    })
    .await;
    client.open(uri, "cuda-cpp", text).await;
    client.published(uri, 1).await;
    let estimate = client
        .command("warplens.estimate", json!({"uri": uri}))
        .await;
    let losses = estimate["results"][0]["not_understood"]
        .as_array()
        .expect("a list");
    assert!(!losses.is_empty(), "{estimate:#}");
    assert_eq!(losses[0]["line"], 3, "{losses:#?}");
    let lenses = client.ask("textDocument/codeLens", document(uri)).await;
    let words = if losses.len() == 1 {
        "1 statement not understood".to_owned()
    } else {
        format!("{} statements not understood", losses.len())
    };
    let mut lens = lenses.as_array().expect("a list").iter();
    let lens = lens.find(|lens| lens["command"]["title"] == words.as_str());
    let lens = lens.unwrap_or_else(|| panic!("{lenses:#}"));
    assert_eq!(lens["command"]["command"], "warplens.breakdown");
    let hover = client.ask("textDocument/hover", at(uri, 0, 18)).await;
    let hover = hover["contents"]["value"].as_str().expect("a hover");
    assert!(hover.contains(&words), "{hover}");
    let reason = losses[0]["reason"].as_str().expect("a reason");
    let listed = hover.lines().find(|line| line.starts_with("- 3: `"));
    assert!(
        listed.is_some_and(|line| line.contains("mystery(i)") && line.ends_with(reason)),
        "{hover}"
    );

    // Once it is understood nothing is said.
    let fine = text.replace("mystery(i)", "i").replace("riddle(i)", "i");
    replace(&mut client, uri, 2, &fine).await;
    client.published(uri, 2).await;
    let titles = titles(&mut client, uri).await;
    let losses = |title: &&String| title.contains("not understood");
    assert_eq!(titles.iter().find(losses), None);
    client.finish().await;
}

const LAUNCHED: &str = "__global__ void fill(float *out) {\n    \
    out[blockIdx.x * blockDim.x + threadIdx.x] = 1;\n}\n\
    void host(float *out) {\n    \
    fill<<<64, 256>>>(out);\n    \
    fill<<<8, 32>>>(out);\n    \
    fill<<<16, 128>>>(out);\n}\n";

#[tokio::test]
async fn the_launches_of_a_kernel_are_shown_one_after_the_other() {
    let uri = "file:///code/fill.cu";
    let commands = json!({"experimental": {"commands": {"commands": ["warplens.nextLaunch"]}}});
    let mut client = Client::start(Setup {
        capabilities: commands,
        ..Setup::default()
    })
    .await;
    client.open(uri, "cuda-cpp", LAUNCHED).await;
    client.published(uri, 1).await;
    let estimate = client
        .command("warplens.estimate", json!({"uri": uri}))
        .await;
    let blocks: Vec<&Value> = estimate["results"]
        .as_array()
        .expect("results")
        .iter()
        .map(|result| &result["launch"]["block"][0])
        .collect();
    assert_eq!(blocks, [256, 32, 128], "one result for each launch");

    let mut seen = Vec::new();
    for _ in 0..4 {
        let lenses = client.ask("textDocument/codeLens", document(uri)).await;
        let lens = &lenses[1]["command"];
        assert_eq!(lens["command"], "warplens.nextLaunch", "{lenses:#}");
        seen.push(lens["title"].as_str().expect("a title").to_owned());
        let hover = client.ask("textDocument/hover", at(uri, 0, 18)).await;
        let hover = hover["contents"]["value"].as_str().expect("a hover");
        for launch in ["<<<64, 256>>>", "<<<8, 32>>>", "<<<16, 128>>>"] {
            assert!(hover.contains(launch), "{hover}");
        }
        assert_eq!(hover.matches("(shown)").count(), 1, "{hover}");
        assert_eq!(hover.matches("## `fill`").count(), 1, "{hover}");
        let shown = client.command("warplens.nextLaunch", lens["arguments"][0].clone());
        let shown = shown.await;
        assert_eq!(shown["of"], 3);
    }
    assert_eq!(
        seen,
        [
            "launch 1 of 3: <<<64, 256>>>",
            "launch 2 of 3: <<<8, 32>>>",
            "launch 3 of 3: <<<16, 128>>>",
            "launch 1 of 3: <<<64, 256>>>",
        ]
    );
    // The page is about the launch that is shown, now the second.
    let argument = json!({"uri": uri, "kernel": "fill"});
    let page = client.command("warplens.breakdown", argument.clone()).await;
    let page = page["markdown"].as_str().expect("a page");
    assert!(page.contains("block (32)"), "{page}");
    // A comparison is of that launch alone.
    let page = client.command("warplens.compareGpus", argument).await;
    let page = page["markdown"].as_str().expect("a page");
    assert_eq!(page.matches("(target)").count(), 1, "{page}");
    let wrong = json!({"command": "warplens.nextLaunch",
        "arguments": [{"uri": uri, "kernel": "none"}]});
    let error = client.ask_wrongly("workspace/executeCommand", wrong).await;
    assert!(error["message"].to_string().contains("none"), "{error}");
    client.notifications.clear();
    client.finish().await;
}

#[tokio::test]
async fn a_program_in_a_string_of_host_code_has_its_hints_at_its_lines() {
    let uri = "file:///code/host.cpp";
    let text = "#include <CL/cl.h>\nstatic const char *program = R\"(\n\
        __kernel void copy(__global float *out, __global const float *in) {\n    \
        int i = get_global_id(0);\n    \
        out[i] = in[32 * i];\n}\n)\";\nint main() { return 0; }\n";
    let mut client = Client::start(Setup::default()).await;
    client.open(uri, "cpp", text).await;
    let found = client.published(uri, 1).await;
    assert_eq!(codes(&found), ["mem/strided"], "{found:#?}");
    assert_eq!(
        found[0]["range"]["start"],
        json!({"line": 4, "character": 13})
    );
    let shown = hints(&mut client, uri).await;
    assert!(
        shown
            .iter()
            .any(|(line, label)| *line == 4 && label.starts_with("32 sectors, ideal 4")),
        "{shown:?}"
    );
    let lenses = client.ask("textDocument/codeLens", document(uri)).await;
    assert_eq!(lenses[0]["range"]["start"]["line"], 2, "{lenses:#}");
    client.finish().await;
}

#[tokio::test]
async fn a_header_with_a_kernel_is_served_under_the_id_of_cpp() {
    let uri = "file:///code/copy.h";
    let text = KERNEL.replace("#include \"stride.h\"\n", "#define STRIDE 32\n");
    let mut client = Client::start(Setup::default()).await;
    client.open(uri, "cpp", &text).await;
    assert_eq!(codes(&client.published(uri, 1).await), ["mem/strided"]);
    let shown = hints(&mut client, uri).await;
    assert!(shown.iter().any(|(line, _)| *line == 3), "{shown:?}");
    client.finish().await;
}

/// Twenty edits of a header, each with a text that was not there before, to the hints of the kernel's file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_headers_edit_shows_at_once() {
    let project = Project::new();
    let (kernel, header) = (project.uri("copy.cu"), project.uri("stride.h"));
    let mut client = project.start(json!({})).await;
    client.open(&kernel, "cuda-cpp", KERNEL).await;
    client.published(&kernel, 1).await;
    client.open(&header, "cpp", &stride(1)).await;
    let mut times = Vec::new();
    for edit in 0..20_i32 {
        // A stride of 2 to 8 floats multiplies 4 sectors by the stride.
        let (from, to) = (
            2 + edit as usize % 3,
            format!("{} + {edit} - {edit}", 3 + edit % 3),
        );
        let started = Instant::now();
        let text = format!("#pragma once\n#define STRIDE ({to})\n");
        replace(&mut client, &header, 2 + edit, &text).await;
        // The kernel's diagnostics tell that it was analysed again; its hints follow.
        pushed(&mut client, &kernel).await;
        let shown = hints(&mut client, &kernel).await;
        times.push(started.elapsed());
        let sectors = format!("{} sectors, ideal 4", 4 * (from + 1));
        assert!(
            shown.iter().any(|(_, label)| label.starts_with(&sectors)),
            "{sectors} after {text}: {shown:?}"
        );
    }
    times.sort_unstable();
    let median = times[times.len() / 2];
    #[allow(clippy::print_stdout, reason = "the figure is what one wants to know")]
    let say = |line: String| println!("{line}");
    say(format!(
        "a header's edit to the hints of the file that includes it: median {median:?}, slowest {:?}",
        times[times.len() - 1]
    ));
    assert!(median < SLOW, "{times:?}");
    client.notifications.clear();
    client.finish().await;
}

/// A workspace beside a header that is none of its business.
fn beside_a_secret(include: &str) -> (tempfile::TempDir, String, String) {
    let outer = tempfile::tempdir().expect("a folder");
    let inner = outer.path().join("workspace");
    std::fs::create_dir(&inner).expect("a folder");
    std::fs::write(outer.path().join("secret.h"), stride(32)).expect("a file");
    let kernel = KERNEL.replace("stride.h", include);
    let kernel = kernel.replacen('\n', "\n#ifndef STRIDE\n#define STRIDE 1\n#endif\n", 1);
    std::fs::write(inner.join("copy.cu"), &kernel).expect("a file");
    let uri = format!("file://{}", inner.display());
    (outer, uri, kernel)
}

/// Rules found in the workspace's kernel, and the headers that are missing.
async fn read_beside(folder: &str, kernel: &str, options: Value) -> (Vec<String>, Vec<String>) {
    let mut client = Client::start(Setup {
        folder: Some(folder.to_owned()),
        options,
        ..Setup::default()
    })
    .await;
    let uri = format!("{folder}/copy.cu");
    client.open(&uri, "cuda-cpp", kernel).await;
    let found = client.published(&uri, 1).await;
    let rules = codes(&found).into_iter().map(str::to_owned).collect();
    let argument = json!({"uri": uri, "kernel": "copy"});
    let estimate = client.command("warplens.estimate", argument).await;
    let missing = estimate["missing_includes"].as_array().expect("a list");
    let missing = missing.iter().map(|one| one.as_str().expect("a name"));
    let missing: Vec<String> = missing.map(str::to_owned).collect();
    if !missing.is_empty() {
        // The log says it as well.
        let said = client.notification("window/logMessage").await;
        assert!(
            said["message"]
                .as_str()
                .is_some_and(|said| said.contains(&missing[0]))
        );
    }
    client.finish().await;
    (rules, missing)
}

#[tokio::test]
async fn an_include_leads_out_of_the_workspace_only_where_its_user_lets_it() {
    let (outer, folder, kernel) = beside_a_secret("../secret.h");
    let (rules, missing) = read_beside(&folder, &kernel, Value::Null).await;
    assert!(!rules.contains(&"mem/strided".to_owned()), "{rules:?}");
    assert_eq!(missing.len(), 1);
    assert!(
        missing[0].starts_with("../secret.h (outside the workspace")
            && missing[0].contains("warplens.includesOutsideWorkspace"),
        "{missing:?}"
    );
    for lets in [
        json!({"includesOutsideWorkspace": true}),
        json!({"includePaths": [outer.path()]}),
    ] {
        let (rules, missing) = read_beside(&folder, &kernel, lets).await;
        assert!(rules.contains(&"mem/strided".to_owned()), "{rules:?}");
        assert_eq!(missing, Vec::<String>::new());
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_or_a_whole_path_leads_out_of_the_workspace_no_more_than_dots_do() {
    let (outer, folder, kernel) = beside_a_secret("link.h");
    let secret = outer.path().join("secret.h");
    std::os::unix::fs::symlink(&secret, outer.path().join("workspace/link.h")).expect("a link");
    let whole = kernel.replace("link.h", &secret.display().to_string());
    for kernel in [kernel, whole] {
        let (rules, missing) = read_beside(&folder, &kernel, Value::Null).await;
        assert!(!rules.contains(&"mem/strided".to_owned()), "{rules:?}");
        assert!(missing[0].contains("outside the workspace"), "{missing:?}");
        let allowed = json!({"includesOutsideWorkspace": true});
        let (rules, _) = read_beside(&folder, &kernel, allowed).await;
        assert!(rules.contains(&"mem/strided".to_owned()), "{rules:?}");
    }
}
