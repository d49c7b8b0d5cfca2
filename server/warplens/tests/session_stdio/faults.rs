//! What goes wrong around the server: it is killed, the disk is full, and a thousand files are open.

use std::fmt::Write as _;
#[cfg(unix)]
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::server::{Server, open};

/// An editor starts the server again and opens its files again; nothing of the first one's end is in the way.
#[test]
fn a_server_that_was_killed_is_followed_by_one_that_says_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (log, record) = (path("log"), path("record"));
    let arguments = ["--log", &log, "--record", &record];
    let mut server = Server::start(&arguments);
    server.initialize();
    let before = open(&mut server);
    // In the middle of its work, with a message half sent.
    let hover = json!({"textDocument": {"uri": "file:///copy.cu"}, "position": {"line": 2, "character": 6}});
    server
        .send(&json!({"jsonrpc": "2.0", "id": 9, "method": "textDocument/hover", "params": hover}));
    server.child.kill().expect("its end");
    assert_eq!(server.end().0, None, "a signal ended it");

    let recorded = std::fs::read_to_string(&record).expect("a record");
    assert!(recorded.lines().count() >= 3, "{recorded}");
    let mut server = Server::start(&arguments);
    server.initialize();
    assert_eq!(open(&mut server), before);
    server.ask(2, "shutdown", &Value::Null);
    server.notify("exit", &Value::Null);
    assert_eq!(server.end().0, Some(0));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_costs_the_log_and_the_record_and_nothing_else() {
    let mut server = Server::start(&["--log", "/dev/full", "--record", "/dev/full"]);
    server.initialize();
    let found = open(&mut server);
    assert_eq!(found["diagnostics"][0]["code"], "mem/strided", "{found:#}");
    for version in 2..200 {
        let start = json!({"line": 0, "character": 0});
        let change = json!([{"range": {"start": start, "end": start}, "text": "\n"}]);
        let document = json!({"uri": "file:///copy.cu", "version": version});
        let params = json!({"textDocument": document, "contentChanges": change});
        server.notify("textDocument/didChange", &params);
    }
    loop {
        let message = server.receive();
        if message["params"]["version"] == 199 {
            assert_eq!(message["params"]["diagnostics"][0]["code"], "mem/strided");
            break;
        }
    }
    server.ask(2, "shutdown", &Value::Null);
    server.notify("exit", &Value::Null);
    assert_eq!(server.end().0, Some(0));
}

/// Memory that the process has, in KiB.
#[cfg(target_os = "linux")]
fn resident(server: &Server) -> u64 {
    kib(server, "VmRSS:")
}

/// A figure of the process, in KiB.
#[cfg(target_os = "linux")]
fn kib(server: &Server, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id()));
    let status = status.expect("a process");
    let line = status.lines().find(|line| line.starts_with(name));
    let words = line.and_then(|line| line.split_whitespace().nth(1));
    words.and_then(|kib| kib.parse().ok()).expect("a figure")
}

/// A file whose kernels are like no other's.
#[cfg(target_os = "linux")]
fn numbered(number: usize) -> String {
    let mut text = String::new();
    for kernel in 0..4 {
        let _ = writeln!(
            text,
            "__global__ void k{number}_{kernel}(float *out, const float *in) {{\n    \
             int i = blockIdx.x * blockDim.x + threadIdx.x;\n    \
             if (i % {}) out[i + {number}] = in[{} * i] * {number}.0f;\n}}",
            number % 31 + 2,
            kernel + 2,
        );
    }
    text
}

/// Opens these files, waits until each has its findings, and closes them. Returns what the server had in memory while they were open,
/// and what of it was its own, in KiB.
#[cfg(target_os = "linux")]
fn open_and_close(server: &mut Server, files: std::ops::Range<usize>) -> [u64; 2] {
    let uri = |number: usize| format!("file:///many/k{number}.cu");
    for number in files.clone() {
        let document = json!({"uri": uri(number), "languageId": "cuda-cpp", "version": 1, "text": numbered(number)});
        server.notify("textDocument/didOpen", &json!({"textDocument": document}));
    }
    let mut waiting: std::collections::BTreeSet<String> = files.clone().map(uri).collect();
    while !waiting.is_empty() {
        let message = server.receive();
        assert_eq!(message["method"], "textDocument/publishDiagnostics");
        let params = &message["params"];
        assert!(!params["diagnostics"].as_array().expect("a list").is_empty());
        waiting.remove(params["uri"].as_str().expect("a file"));
    }
    let open = [resident(server), kib(server, "RssAnon:")];
    for number in files.clone() {
        let document = json!({"uri": uri(number)});
        server.notify("textDocument/didClose", &json!({"textDocument": document}));
    }
    // Each close clears what was shown.
    for _ in files {
        let message = server.receive();
        assert_eq!(message["params"]["diagnostics"], json!([]), "{message}");
    }
    open
}

/// A thousand open files are served, and when they are closed another thousand lives in the memory that they had: what
/// is kept is bounded, whatever was opened before.
#[cfg(target_os = "linux")]
#[test]
fn the_memory_of_a_thousand_closed_files_serves_the_next_thousand() {
    let mut server = Server::start(&[]);
    server.initialize();
    open(&mut server);
    let empty = resident(&server);
    let [opened, _] = open_and_close(&mut server, 0..1000);
    let closed = resident(&server);
    let [again, _] = open_and_close(&mut server, 1000..2000);
    let figures = format!(
        "{empty} KiB empty, {opened} with 1000 files, {closed} after, {again} with 1000 others"
    );
    eprintln!("{figures}");
    assert!(opened < 400 << 10, "{figures}");
    assert!(closed <= opened + opened / 10, "{figures}");
    assert!(again < opened + opened / 4, "{figures}");
    server.ask(2, "shutdown", &Value::Null);
    server.notify("exit", &Value::Null);
    assert_eq!(server.end().0, Some(0));
}

/// Once no file is open, the memory of their analyses returns to the system.
#[cfg(target_os = "linux")]
#[test]
fn what_files_needed_goes_back_to_the_system_when_all_are_closed() {
    let mut server = Server::start(&[]);
    server.initialize();
    let own = |server: &Server| kib(server, "RssAnon:");
    // What every file shares is read with the first.
    open_and_close(&mut server, 500..501);
    let empty = own(&server);
    let [_, open] = open_and_close(&mut server, 0..500);
    let closed = own(&server);
    // Threads end that had nothing to do for a while; the next thing to do finds what they left.
    let mut last = closed;
    for round in 0..20 {
        std::thread::sleep(std::time::Duration::from_secs(2));
        open_and_close(&mut server, round..round + 1);
        last = own(&server);
        if last < empty + (open - empty) / 3 {
            break;
        }
    }
    let figures = format!(
        "{empty} KiB with one file, {open} with 500 files open, {closed} with them just closed, {last} later"
    );
    eprintln!("{figures}");
    assert!(last < empty + (open - empty) / 3, "{figures}");
    server.ask(2, "shutdown", &Value::Null);
    server.notify("exit", &Value::Null);
    assert_eq!(server.end().0, Some(0));
}

/// The system closes a pipe however the server ends: a shell that waits for that ends the compiler and its children.
#[cfg(unix)]
#[test]
fn the_compiler_and_its_folder_go_with_a_server_that_is_killed() {
    use std::os::unix::fs::PermissionsExt as _;

    let own = tempfile::tempdir().expect("a folder");
    let workspace = tempfile::tempdir().expect("a folder");
    let temporary = own.path().join("temporary");
    std::fs::create_dir(&temporary).expect("a folder");
    let compiler = own.path().join("nvcc");
    // The child of the child notes its number and the folder that it works in.
    let script = "#!/bin/sh\n\
        if [ \"$1\" = --version ]; then\n\
        echo 'nvcc: NVIDIA (R) Cuda compiler driver'; echo 'release 13.0, V13.0.88'; exit\nfi\n\
        (sleep 300 & echo $! $PWD > \"$(dirname \"$0\")/noted\"; mv \"$(dirname \"$0\")/noted\" \"$(dirname \"$0\")/child\"; wait) & wait\n";
    std::fs::write(&compiler, script).expect("a file");
    std::fs::set_permissions(&compiler, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    let kernel = workspace.path().join("k.cu");
    let text = "__global__ void k(float *a) { a[threadIdx.x] = 1; }\n";
    std::fs::write(&kernel, text).expect("a file");

    let temporary_name = temporary.display().to_string();
    let mut server = Server::start_with(&[], &[("TMPDIR", &temporary_name)]);
    let folder = json!([{"uri": format!("file://{}", workspace.path().display()), "name": "w"}]);
    let options = json!({"compiler": compiler});
    let params = json!({"processId": null, "capabilities": {}, "workspaceFolders": folder,
        "initializationOptions": options});
    server.ask(1, "initialize", &params);
    server.notify("initialized", &json!({}));
    let uri = format!("file://{}", kernel.display());
    let document = json!({"uri": uri, "languageId": "cuda-cpp", "version": 1, "text": text});
    server.notify("textDocument/didOpen", &json!({"textDocument": document}));
    let noted = own.path().join("child");
    let patience = Duration::from_secs(20);
    assert!(
        within(patience, || noted.exists()),
        "the compiler was not run"
    );
    let noted = std::fs::read_to_string(&noted).expect("what it noted");
    let (child, folder) = noted.trim().split_once(' ').expect("a number and a folder");
    let runs = || {
        let signal = std::process::Command::new("kill")
            .args(["-0", child])
            .output();
        signal.is_ok_and(|output| output.status.success())
    };
    assert!(
        runs() && std::path::Path::new(folder).starts_with(&temporary),
        "{noted}"
    );

    server.child.kill().expect("its end");
    assert!(
        within(patience, || !runs()),
        "a child of the compiler outlives the server"
    );
    let empty = || std::fs::read_dir(&temporary).is_ok_and(|left| left.count() == 0);
    assert!(
        within(patience, empty),
        "the folder of the compiler is left"
    );
    server.end();
}

/// Whether something comes true in time.
#[cfg(unix)]
fn within(patience: Duration, is: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    while !is() {
        if began.elapsed() > patience {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}
