//! The user's compiler: runs on saved files, its report is shown, failures are quiet, and never the
//! workspace's.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use warplens_codegen::Class;
use warplens_toolchain::{CompileRequest, CompilerReport, Failure, KernelReport};

use crate::client::{Client, Setup, at, document, range, strided};

/// A workspace with a kernel, and a folder of the user's with a compiler.
struct CompilerSetup {
    workspace: tempfile::TempDir,
    own: tempfile::TempDir,
}

impl CompilerSetup {
    fn new() -> CompilerSetup {
        let setup = CompilerSetup {
            workspace: tempfile::tempdir().expect("a folder"),
            own: tempfile::tempdir().expect("a folder"),
        };
        setup.save(&strided(1));
        setup
    }

    fn kernel(&self) -> PathBuf {
        self.workspace.path().join("copy.cu")
    }

    fn uri(&self) -> String {
        format!("file://{}", self.kernel().display())
    }

    fn compiler(&self) -> PathBuf {
        self.own.path().join("nvcc")
    }

    fn save(&self, text: &str) {
        std::fs::write(self.kernel(), text).expect("a file");
    }

    /// What the stand-in does from now on.
    fn behave(&self, how: &str) {
        std::fs::write(self.compiler(), how).expect("a file");
    }

    /// What the stand-in was asked so far.
    fn asked(&self) -> String {
        std::fs::read_to_string(self.own.path().join("nvcc.log")).unwrap_or_default()
    }

    async fn start(&self, options: Value, compile: warplens_lsp::CompileFn) -> Client {
        Client::start(Setup {
            folder: Some(format!("file://{}", self.workspace.path().display())),
            capabilities: json!({"workspace": {"codeLens": {"refreshSupport": true},
                "inlayHint": {"refreshSupport": true}}}),
            options,
            compile,
            ..Setup::default()
        })
        .await
    }

    async fn opened(&self, compile: warplens_lsp::CompileFn) -> Client {
        let hints = json!({"minimumShare": 0});
        let options = json!({"compiler": self.compiler(), "inlayHints": hints});
        let mut client = self.start(options, compile).await;
        client.open(&self.uri(), "cuda-cpp", &strided(1)).await;
        client
    }

    async fn saved(&self, client: &mut Client) {
        client
            .notify("textDocument/didSave", document(&self.uri()))
            .await;
    }
}

/// Follows the instruction in the compiler's file: `say 40`, `fail WHY`, `hang`.
fn fake_compile(
    tool: &Path,
    asked: &CompileRequest,
    cancelled: &AtomicBool,
) -> Result<CompilerReport, Failure> {
    let how = std::fs::read_to_string(tool).map_err(|_| Failure::NotFound(tool.to_owned()))?;
    let mut log = std::fs::File::options()
        .create(true)
        .append(true)
        .open(tool.with_extension("log"))
        .expect("a log");
    writeln!(log, "{how} {} {:?}", asked.architecture, asked.arguments).expect("a line");
    match how.split_once(' ') {
        Some(("say", registers)) => Ok(CompilerReport {
            tool: "nvcc 12.4".to_owned(),
            kernels: vec![KernelReport {
                name: "copy".to_owned(),
                registers: registers.parse().expect("a number"),
                lines: lines_of(asked),
                ..KernelReport::default()
            }],
        }),
        Some(("fail", why)) => Err(Failure::Failed(why.to_owned())),
        _ => {
            let started = Instant::now();
            while started.elapsed() < asked.bound {
                if cancelled.load(Ordering::Relaxed) {
                    writeln!(log, "cancelled").expect("a line");
                    return Err(Failure::Cancelled);
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(Failure::TooLong(asked.bound))
        }
    }
}

/// Where the index is computed, and where the copy is made: a comment above the kernel moves both.
fn lines_of(asked: &CompileRequest) -> Vec<(Arc<str>, u32, BTreeMap<Class, u64>)> {
    let text = std::fs::read_to_string(&asked.file).expect("a file");
    let line = |part: &str| {
        let before = text.lines().take_while(|line| !line.contains(part));
        before.count() as u32 + 1
    };
    let file: Arc<str> = asked.file.display().to_string().into();
    vec![
        (Arc::clone(&file), line("int i"), [(Class::Imad, 3)].into()),
        (
            file,
            line("out[i]"),
            [(Class::Ldg, 2), (Class::Fmul, 12)].into(),
        ),
    ]
}

/// Label and tooltip of each hint, by line.
async fn hints(client: &mut Client, uri: &str, lines: [u32; 2]) -> BTreeMap<u64, (String, String)> {
    let asked = json!({"textDocument": {"uri": uri}, "range": range([lines[0], 0, lines[1], 0])});
    let hints = client.ask("textDocument/inlayHint", asked).await;
    let text = |text: &Value| text.as_str().expect("a text").to_owned();
    let hints = hints.as_array().expect("a list").iter();
    hints
        .map(|hint| {
            let line = hint["position"]["line"].as_u64().expect("a line");
            (
                line,
                (text(&hint["label"]), text(&hint["tooltip"]["value"])),
            )
        })
        .collect()
}

/// The titles of all lenses, a line each.
async fn lens(client: &mut Client, uri: &str) -> String {
    let lenses = client.ask("textDocument/codeLens", document(uri)).await;
    let lenses = lenses.as_array().expect("lenses").iter();
    let titles = lenses.map(|lens| lens["command"]["title"].as_str().expect("a title"));
    titles.collect::<Vec<_>>().join("\n")
}

/// Asks for the lens until it says so.
async fn lens_with(client: &mut Client, uri: &str, part: &str) -> String {
    let mut title = String::new();
    for _ in 0..600 {
        title = lens(client, uri).await;
        if title.contains(part) {
            return title;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{part} is not in {title}");
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..600 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("never: {what}");
}

/// Lines in the client's log that say something of a compiler; and no message box ever does.
async fn logged(client: &mut Client, part: &str) -> String {
    loop {
        let line = client.notification("window/logMessage").await;
        let message = line["message"].as_str().expect("a line");
        if message.contains(part) {
            return message.to_owned();
        }
    }
}

/// Ends the session, in which no message box was shown. What is published when a compiler answers may come late.
async fn finish(mut client: Client) {
    client.ask("shutdown", Value::Null).await;
    let boxes = |message: &&Value| message["method"] == "window/showMessage";
    assert_eq!(client.notifications.iter().find(boxes), None);
    client.notify("exit", Value::Null).await;
    assert_eq!(client.exit_code().await, 0);
}

#[tokio::test]
async fn a_word_is_shown_until_the_kernel_is_edited() {
    let setup = CompilerSetup::new();
    setup.behave("say 40");
    let mut client = setup.opened(fake_compile).await;
    // Open and as it is on disk: asked at once.
    let title = lens_with(&mut client, &setup.uri(), "registers").await;
    assert!(title.contains("40 registers (nvcc)"), "{title}");
    client.until_asked("workspace/codeLens/refresh").await;
    client.until_asked("workspace/inlayHint/refresh").await;
    let hover = |line, character| at(&setup.uri(), line, character);
    let page = client.ask("textDocument/hover", hover(0, 17)).await;
    let page = page["contents"]["value"]
        .as_str()
        .expect("a page")
        .to_owned();
    assert!(
        page.contains("40 registers per thread (nvcc 12.4)"),
        "{page}"
    );
    let line = client.ask("textDocument/hover", hover(2, 6)).await;
    let line = line["contents"]["value"]
        .as_str()
        .expect("a page")
        .to_owned();
    assert!(line.contains("14 instructions (nvcc 12.4)"), "{line}");
    let estimate = client
        .command("warplens.estimate", json!({"uri": setup.uri()}))
        .await;
    let resources = &estimate["results"][0]["resources"];
    assert_eq!(resources["registers_source"], "compiler", "{resources}");
    assert_eq!(resources["registers_per_thread"], 40);

    let all = hints(&mut client, &setup.uri(), [0, 4]).await;
    let (label, tooltip) = &all[&2];
    assert!(label.ends_with(" · 14 instructions"), "{label}");
    assert!(
        tooltip.contains("14 instructions (nvcc 12.4): FMUL 12 · LDG 2"),
        "{tooltip}"
    );
    // Nothing predicted is worth a hint there, but the user asked for every line.
    assert!(all[&1].0.ends_with("3 instructions"), "{:?}", all[&1]);

    // A comment is no edit of the kernel.
    client
        .edit(&setup.uri(), 2, [0, 0, 0, 0], "// note\n")
        .await;
    let title = lens(&mut client, &setup.uri()).await;
    assert!(title.contains("40 registers (nvcc)"), "{title}");
    let (label, _) = &hints(&mut client, &setup.uri(), [0, 5]).await[&3];
    assert!(label.ends_with(" · 14 instructions"), "{label}");
    client.edit(&setup.uri(), 3, [3, 16, 3, 17], "2").await;
    let title = lens(&mut client, &setup.uri()).await;
    assert!(
        title.contains("40 registers (nvcc, before the last edit)"),
        "{title}"
    );
    let estimate = client
        .command("warplens.estimate", json!({"uri": setup.uri()}))
        .await;
    let resources = &estimate["results"][0]["resources"];
    assert_eq!(resources["registers_source"], "estimated", "{resources}");
    assert_eq!(resources["compiler"]["current"], false, "{resources}");

    // Of a line that is as it was, the last word; of the edited one, none.
    let all = hints(&mut client, &setup.uri(), [0, 5]).await;
    let (label, tooltip) = &all[&2];
    assert!(label.ends_with("was 3 instructions"), "{label}");
    assert!(
        tooltip.contains("3 instructions (nvcc 12.4, before the last edit): IMAD 3"),
        "{tooltip}"
    );
    assert!(!all[&3].0.contains("instr"), "{:?}", all[&3]);

    // Saved: asked again, about the new text.
    setup.save(&format!("// note\n{}", strided(2)));
    setup.behave("say 44");
    setup.saved(&mut client).await;
    lens_with(&mut client, &setup.uri(), "44 registers (nvcc)").await;
    let all = hints(&mut client, &setup.uri(), [0, 5]).await;
    assert!(
        all.values()
            .any(|(label, _)| label.ends_with(" 14 instructions"))
    );
    assert!(all.values().all(|(label, _)| !label.contains("was ")));
    finish(client).await;
}

#[tokio::test]
async fn without_hints_no_instructions_are_shown() {
    let setup = CompilerSetup::new();
    setup.behave("say 40");
    let options = json!({"compiler": setup.compiler(), "inlayHints": {"enable": false}});
    let mut client = setup.start(options, fake_compile).await;
    client.open(&setup.uri(), "cuda-cpp", &strided(1)).await;
    lens_with(&mut client, &setup.uri(), "40 registers (nvcc)").await;
    assert_eq!(hints(&mut client, &setup.uri(), [0, 4]).await.len(), 0);
    finish(client).await;
}

#[tokio::test]
async fn without_the_setting_nothing_is_asked() {
    let setup = CompilerSetup::new();
    setup.behave("say 40");
    let toml = format!("compiler = {:?}\n", setup.compiler());
    std::fs::write(setup.workspace.path().join("warplens.toml"), toml).expect("a file");
    std::fs::create_dir(setup.workspace.path().join(".vscode")).expect("a folder");
    let settings = json!({"warplens.compiler": setup.compiler()}).to_string();
    std::fs::write(
        setup.workspace.path().join(".vscode/settings.json"),
        settings,
    )
    .expect("a file");
    let mut client = setup.start(Value::Null, fake_compile).await;
    client.open(&setup.uri(), "cuda-cpp", &strided(1)).await;
    setup.saved(&mut client).await;
    let title = lens(&mut client, &setup.uri()).await;
    assert!(!title.contains("registers ("), "{title}");
    // The file is told that this is no key of its.
    loop {
        let published = client.notification("textDocument/publishDiagnostics").await;
        if published["uri"]
            .as_str()
            .is_some_and(|uri| uri.ends_with("warplens.toml"))
        {
            let message = published["diagnostics"][0]["message"]
                .as_str()
                .expect("one");
            assert!(message.contains("never taken from a project"), "{message}");
            break;
        }
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(setup.asked(), "");
    finish(client).await;
}

#[tokio::test]
async fn a_program_of_the_workspace_is_refused() {
    let setup = CompilerSetup::new();
    let inside = setup.workspace.path().join("nvcc");
    std::fs::write(&inside, "say 40").expect("a file");
    for (path, why) in [
        (json!("nvcc"), "is relative"),
        (json!("./nvcc"), "is relative"),
        (json!(inside), "is inside the workspace"),
        (json!(7), "expected a path"),
    ] {
        let mut client = setup.start(json!({"compiler": path}), fake_compile).await;
        client.open(&setup.uri(), "cuda-cpp", &strided(1)).await;
        setup.saved(&mut client).await;
        let line = logged(&mut client, "warplens.compiler").await;
        assert!(line.contains(why), "{line}");
        let title = lens(&mut client, &setup.uri()).await;
        assert!(!title.contains("registers ("), "{title}");
        client.hang_up();
        client.exit_code().await;
    }
    assert!(!setup.workspace.path().join("nvcc.log").exists());
}

#[tokio::test]
async fn a_failure_is_one_line_in_the_log_and_estimates_stay() {
    let setup = CompilerSetup::new();
    setup.behave("fail copy.cu(3): error: expected a `;`");
    let mut client = setup.opened(fake_compile).await;
    let line = logged(&mut client, "expected a `;`").await;
    assert!(line.contains("copy.cu"), "{line}");
    for times in 2..4 {
        setup.saved(&mut client).await;
        until("asked", || setup.asked().lines().count() >= times).await;
    }
    setup.behave("fail another reason");
    setup.saved(&mut client).await;
    logged(&mut client, "another reason").await;
    let again = client.notifications.iter().any(|message| {
        message["method"] == "window/logMessage"
            && message["params"]["message"]
                .to_string()
                .contains("expected a")
    });
    assert!(!again, "said once");
    let title = lens(&mut client, &setup.uri()).await;
    assert!(!title.contains("registers ("), "{title}");
    finish(client).await;
}

#[tokio::test]
async fn a_compiler_that_hangs_holds_nothing_up_and_gives_way_to_the_next_save() {
    let setup = CompilerSetup::new();
    setup.behave("hang");
    let mut client = setup.opened(fake_compile).await;
    until("asked", || setup.asked().contains("hang")).await;
    // Answered meanwhile.
    let title = lens(&mut client, &setup.uri()).await;
    assert!(title.contains("occupancy"), "{title}");
    setup.behave("say 40");
    setup.saved(&mut client).await;
    lens_with(&mut client, &setup.uri(), "40 registers (nvcc)").await;
    assert!(setup.asked().contains("cancelled"), "{}", setup.asked());

    // A close ends it as well.
    setup.behave("hang");
    setup.saved(&mut client).await;
    until("asked", || setup.asked().matches("hang").count() == 2).await;
    client.close(&setup.uri()).await;
    until("cancelled", || {
        setup.asked().matches("cancelled").count() == 2
    })
    .await;
    // So does the end of the session.
    client.open(&setup.uri(), "cuda-cpp", &strided(1)).await;
    until("asked", || setup.asked().matches("hang").count() == 3).await;
    finish(client).await;
    assert_eq!(setup.asked().matches("cancelled").count(), 3);
}

#[tokio::test]
async fn the_compile_command_gives_flags_and_no_programs() {
    let setup = CompilerSetup::new();
    setup.behave("say 40");
    let command = json!([{"directory": setup.workspace.path(), "file": "copy.cu", "command":
        "./evil -ccbin ./evil -DTILE=32 -Iinclude -Xcompiler -fplugin=./evil.so --expt-relaxed-constexpr \
         -o copy.o -c copy.cu"}]);
    let path = setup.workspace.path().join("compile_commands.json");
    std::fs::write(path, command.to_string()).expect("a file");
    let mut client = setup.opened(fake_compile).await;
    lens_with(&mut client, &setup.uri(), "40 registers (nvcc)").await;
    let asked = setup.asked();
    assert!(asked.contains("sm_80"), "{asked}");
    assert!(asked.contains("\"-DTILE=32\""), "{asked}");
    assert!(asked.contains("/include\""), "{asked}");
    assert!(asked.contains("--expt-relaxed-constexpr"), "{asked}");
    assert!(!asked.contains("evil"), "{asked}");
    // Another GPU: asked for it, once.
    client
        .command("warplens.selectGpu", json!({"gpu": "v100-sxm2-16gb"}))
        .await;
    until("asked", || setup.asked().contains("sm_70")).await;
    lens_with(&mut client, &setup.uri(), "40 registers (nvcc)").await;
    finish(client).await;
    assert_eq!(setup.asked().lines().count(), 2, "{}", setup.asked());
}

#[tokio::test]
async fn a_text_that_is_not_on_disk_is_not_asked_about() {
    let setup = CompilerSetup::new();
    setup.behave("say 40");
    let mut client = setup
        .start(json!({"compiler": setup.compiler()}), fake_compile)
        .await;
    client.open(&setup.uri(), "cuda-cpp", &strided(4)).await;
    lens(&mut client, &setup.uri()).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(setup.asked(), "");
    finish(client).await;
}

/// With the real way to a compiler: programs that are none, or never end.
#[cfg(unix)]
mod programs {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    async fn said_of(setup: &CompilerSetup, part: &str) {
        let compile = warplens_lsp::Options::default().compile;
        let options = json!({"compiler": setup.compiler(), "compilerTimeout": 1});
        let mut client = setup.start(options, compile).await;
        client.open(&setup.uri(), "cuda-cpp", &strided(1)).await;
        logged(&mut client, part).await;
        setup.saved(&mut client).await;
        let title = lens(&mut client, &setup.uri()).await;
        assert!(!title.contains("registers ("), "{title}");
        finish(client).await;
    }

    fn script(setup: &CompilerSetup, text: &str) {
        setup.behave(&format!("#!/bin/sh\n{text}\n"));
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(setup.compiler(), executable).expect("a file");
    }

    #[tokio::test]
    async fn a_missing_one_is_said() {
        said_of(&CompilerSetup::new(), "compiler not found").await;
    }

    #[tokio::test]
    async fn one_that_hangs_is_killed_after_its_time() {
        let setup = CompilerSetup::new();
        script(&setup, "exec sleep 60");
        said_of(&setup, "longer than 1 s").await;
    }

    #[tokio::test]
    async fn one_that_is_none_is_said() {
        let setup = CompilerSetup::new();
        script(&setup, "echo hello; exit 1");
        said_of(&setup, "nvcc").await;
    }
}
