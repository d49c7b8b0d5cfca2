//! The language server as editors start it: the program itself, over its standard input and output.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

struct Server {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Server {
    fn start(arguments: &[&str]) -> Server {
        let mut child = Command::new(env!("CARGO_BIN_EXE_warplens"))
            .arg("lsp")
            .args(arguments)
            // A developer's own profiles are no part of a test; Cargo's folder for tests holds none.
            .env("XDG_CONFIG_HOME", env!("CARGO_TARGET_TMPDIR"))
            .env("APPDATA", env!("CARGO_TARGET_TMPDIR"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let to = child.stdin.take();
        let from = BufReader::new(child.stdout.take().expect("piped"));
        Server { child, to, from }
    }

    fn send(&mut self, message: &Value) {
        let body = message.to_string();
        let to = self.to.as_mut().expect("open");
        write!(to, "Content-Length: {}\r\n\r\n{body}", body.len()).expect("the server reads");
        to.flush().expect("the server reads");
    }

    /// The next message. Anything on standard output that is not a message fails the test.
    fn receive(&mut self) -> Value {
        let mut header = String::new();
        self.from.read_line(&mut header).expect("a header");
        let length = header
            .trim()
            .strip_prefix("Content-Length: ")
            .expect("nothing but messages");
        let mut body = vec![0; length.parse::<usize>().expect("a number") + 2];
        self.from.read_exact(&mut body).expect("a body");
        serde_json::from_slice(&body[2..]).expect("JSON")
    }

    fn ask(&mut self, id: i64, method: &str, params: &Value) -> Value {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let mut message = self.receive();
        assert_eq!(message["id"], id, "{message}");
        message["result"].take()
    }

    fn notify(&mut self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn initialize(&mut self) {
        let params = json!({"processId": std::process::id(), "capabilities": {}});
        let initialized = self.ask(1, "initialize", &params);
        assert_eq!(initialized["serverInfo"]["name"], "warplens");
        self.notify("initialized", &json!({}));
    }

    /// Waits for the end; returns the exit code, what was still on standard output, and standard error.
    fn end(mut self) -> (Option<i32>, String, String) {
        let (mut out, mut error) = (String::new(), String::new());
        self.from.read_to_string(&mut out).expect("text");
        let mut stderr = self.child.stderr.take().expect("piped");
        stderr.read_to_string(&mut error).expect("text");
        (self.child.wait().expect("its end").code(), out, error)
    }
}

fn open(server: &mut Server) -> Value {
    let text = "__global__ void copy(float *out, const float *in) {\n    \
                int i = blockIdx.x * blockDim.x + threadIdx.x;\n    \
                out[i] = in[32 * i];\n}\n";
    let document =
        json!({"uri": "file:///copy.cu", "languageId": "cuda-cpp", "version": 1, "text": text});
    server.notify("textDocument/didOpen", &json!({"textDocument": document}));
    let mut message = server.receive();
    assert_eq!(
        message["method"], "textDocument/publishDiagnostics",
        "{message}"
    );
    message["params"].take()
}

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
