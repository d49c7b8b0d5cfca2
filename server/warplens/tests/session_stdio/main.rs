//! The language server as editors start it: the program itself, over its standard input and output.

mod faults;
#[cfg(debug_assertions)]
mod lost;
mod server;

use std::path::Path;

use serde_json::Value;

use server::{Server, open};

#[test]
fn a_whole_session_over_standard_input_and_output() {
    for arguments in [&[][..], &["--stdio"][..]] {
        let mut server = Server::start(arguments);
        server.initialize();
        let found = open(&mut server);
        assert_eq!(found["version"], 1);
        assert_eq!(found["diagnostics"][0]["code"], "mem/strided", "{found:#}");
        assert_eq!(server.ask(2, "shutdown", &Value::Null), Value::Null);
        server.notify("exit", &Value::Null);
        // Standard input stays open, as some clients leave it: the server ends all the same.
        assert_eq!(server.end(), (Some(0), String::new(), String::new()));
    }
}

#[test]
fn the_end_of_standard_input_is_the_end() {
    let mut server = Server::start(&[]);
    server.initialize();
    server.to = None;
    let (code, out, _) = server.end();
    assert_eq!((code, out.as_str()), (Some(1), ""));
}

#[test]
fn log_and_record_go_to_their_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (log, record) = (path("log"), path("record"));
    let mut server = Server::start(&["--log", &log, "--record", &record]);
    server.initialize();
    open(&mut server);
    // What is published is logged after it is sent: the log is asked for until it says so.
    let said = || std::fs::read_to_string(&log).is_ok_and(|log| log.contains("file:///copy.cu"));
    let began = std::time::Instant::now();
    while !said() && began.elapsed() < std::time::Duration::from_secs(20) {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    server.ask(2, "shutdown", &Value::Null);
    server.notify("exit", &Value::Null);
    assert_eq!(server.end().0, Some(0));
    let recorded = std::fs::read_to_string(&record).expect("a record");
    let methods: Vec<Value> = recorded
        .lines()
        .map(|line| {
            let mut line: Value = serde_json::from_str(line).expect("a line of JSON");
            assert!(line["ms"].is_number());
            line["message"]["method"].take()
        })
        .collect();
    let expected = [
        "initialize",
        "initialized",
        "textDocument/didOpen",
        "shutdown",
        "exit",
    ];
    assert_eq!(methods, expected);
    let logged = std::fs::read_to_string(&log).expect("a log");
    assert!(logged.contains("file:///copy.cu"), "{logged}");
    assert!(
        !logged.contains("blockIdx"),
        "the log has no source in it:\n{logged}"
    );
}

#[test]
fn a_file_that_cannot_be_written_is_said_and_ends_the_program() {
    for option in ["--log", "--record"] {
        let nowhere = Path::new("no such folder")
            .join("file")
            .display()
            .to_string();
        let server = Server::start(&[option, &nowhere]);
        let (code, out, error) = server.end();
        assert_eq!((code, out.as_str()), (Some(2), ""));
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(error.contains(&nowhere), "{error}");
    }
}
