//! The program as a child process, spoken to over its standard input and output.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

pub struct Server {
    pub child: Child,
    pub to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Server {
    pub fn start(arguments: &[&str]) -> Server {
        Server::start_with(arguments, &[])
    }

    /// The same with variables of the environment.
    pub fn start_with(arguments: &[&str], variables: &[(&str, &str)]) -> Server {
        let mut child = Command::new(env!("CARGO_BIN_EXE_warplens"))
            .arg("lsp")
            .args(arguments)
            // A developer's own profiles are no part of a test; Cargo's folder for tests holds none.
            .env("XDG_CONFIG_HOME", env!("CARGO_TARGET_TMPDIR"))
            .env("APPDATA", env!("CARGO_TARGET_TMPDIR"))
            .env_remove("RUST_BACKTRACE")
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let to = child.stdin.take();
        let from = BufReader::new(child.stdout.take().expect("piped"));
        Server { child, to, from }
    }

    pub fn send(&mut self, message: &Value) {
        let body = message.to_string();
        let to = self.to.as_mut().expect("open");
        write!(to, "Content-Length: {}\r\n\r\n{body}", body.len()).expect("the server reads");
        to.flush().expect("the server reads");
    }

    /// The next message. Anything on standard output that is not a message fails the test.
    pub fn receive(&mut self) -> Value {
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

    pub fn ask(&mut self, id: i64, method: &str, params: &Value) -> Value {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let mut message = self.receive();
        assert_eq!(message["id"], id, "{message}");
        message["result"].take()
    }

    pub fn notify(&mut self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    pub fn initialize(&mut self) {
        let params = json!({"processId": std::process::id(), "capabilities": {}});
        let initialized = self.ask(1, "initialize", &params);
        assert_eq!(initialized["serverInfo"]["name"], "warplens");
        self.notify("initialized", &json!({}));
    }

    /// Waits for the end; returns the exit code, what was still on standard output, and standard error.
    pub fn end(mut self) -> (Option<i32>, String, String) {
        let (mut out, mut error) = (String::new(), String::new());
        self.from.read_to_string(&mut out).expect("text");
        let mut stderr = self.child.stderr.take().expect("piped");
        stderr.read_to_string(&mut error).expect("text");
        (self.child.wait().expect("its end").code(), out, error)
    }
}

pub fn open(server: &mut Server) -> Value {
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
