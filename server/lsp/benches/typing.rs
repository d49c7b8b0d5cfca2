//! Measures what a person typing feels: from a change to the new diagnostics, on a file of 1,000 lines with
//! 50 kernels; from a change of a header to the new hints of a file that includes it; from the start of the
//! server to the first diagnostics; and the memory it then takes.
//!
//! `cargo bench -p warplens-lsp --bench typing [-- PATH-OF-WARPLENS]`. With the program's path it measures
//! that program over real pipes, else the server inside this process.

#![allow(
    clippy::print_stdout,
    reason = "a benchmark's report goes to standard output"
)]

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

const URI: &str = "file:///bench/kernels.cu";
const KERNELS: usize = 50;
const LINES: usize = 1000;
const KEYSTROKES: usize = 600;
/// A header and a file whose kernels call its function.
const HEADER: &str = "file:///bench/scale.h";
const DEPENDENT: &str = "file:///bench/scaled.cu";
const DEPENDENT_KERNELS: usize = 5;
const HEADER_KEYSTROKES: usize = 100;
/// What issue 2 asks for.
const MEDIAN: Duration = Duration::from_millis(5);
const P99: Duration = Duration::from_millis(15);
const HEADER_MEDIAN: Duration = Duration::from_millis(50);
const COLD: Duration = Duration::from_millis(100);
const MEMORY_MIB: f64 = 80.0;

fn main() {
    // Cargo passes `--bench`; whatever else is not a flag is the program.
    let program = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'));
    let text = file();
    assert_eq!(text.lines().count(), LINES);
    let started = Instant::now();
    let mut session = Session::start(program.as_deref());
    let found = session.open(&text);
    let cold = started.elapsed();

    let mut times = Vec::with_capacity(KEYSTROKES);
    let mut random = 0x9e37_79b9_u64;
    let mut version = 1;
    while times.len() < KEYSTROKES {
        // A person types a few characters in one kernel, then goes elsewhere. No text comes twice, so that
        // nothing is answered from what was computed before.
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let kernel = (random >> 33) as usize % KERNELS;
        let line = kernel * (LINES / KERNELS) + 8;
        for _ in 0..6 {
            version += 1;
            let change = json!({
                "range": {
                    "start": {"line": line, "character": COLUMN},
                    "end": {"line": line, "character": COLUMN + 5},
                },
                "text": (10_000 + version).to_string(),
            });
            times.push(session.change(version, &change));
            std::thread::sleep(Duration::from_millis(3));
        }
    }
    // Typing a comment between kernels changes nothing: what remains is reading, parsing and writing.
    let mut comments = Vec::with_capacity(KEYSTROKES);
    for keystroke in 0..KEYSTROKES {
        version += 1;
        let line = keystroke % KERNELS * (LINES / KERNELS);
        let place = json!({"line": line, "character": "// ".len()});
        let change = json!({"range": {"start": place, "end": place}, "text": "x"});
        comments.push(session.change(version, &change));
        std::thread::sleep(Duration::from_millis(3));
    }
    let mut headers = session.type_in_header();
    times.sort_unstable();
    comments.sort_unstable();
    headers.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    let memory = session.memory();

    let place = program.as_deref().unwrap_or("in this process");
    println!("warplens lsp ({place}): {LINES} lines, {KERNELS} kernels, {found} findings");
    row("change to diagnostics, median", at(50), MEDIAN);
    row("change to diagnostics, p99", at(99), P99);
    row("change to diagnostics, slowest", at(100), Duration::MAX);
    row(
        "in a comment, median",
        comments[comments.len() / 2],
        Duration::MAX,
    );
    row(
        "header to dependent's hints",
        headers[headers.len() / 2],
        HEADER_MEDIAN,
    );
    row(
        "the same, slowest",
        headers[headers.len() - 1],
        Duration::MAX,
    );
    row("start to first diagnostics", cold, COLD);
    if let Some(memory) = memory {
        let verdict = if memory <= MEMORY_MIB { "ok" } else { "OVER" };
        println!(
            "{:<32} {memory:>9.1} MiB  of {MEMORY_MIB:>5.0} MiB  {verdict}",
            "resident memory"
        );
    }
}

fn row(what: &str, time: Duration, budget: Duration) {
    let time_ms = time.as_secs_f64() * 1e3;
    if budget == Duration::MAX {
        println!("{what:<32} {time_ms:>9.3} ms");
    } else {
        let verdict = if time <= budget { "ok" } else { "OVER" };
        println!(
            "{what:<32} {time_ms:>9.3} ms   of {:>5} ms   {verdict}",
            budget.as_millis()
        );
    }
}

/// Column of the number that is typed over: see [`file`].
const COLUMN: usize = "        float value = in[2 * base + i * n + ".len();

/// A header that says what its function scales by.
fn header(scale: usize) -> String {
    format!(
        "#pragma once\n__device__ float scale(const float *in, int i) {{\n    \
         return in[2 * i] * {scale}.0f;\n}}\n"
    )
}

fn dependent() -> String {
    let mut text = "#include \"scale.h\"\n".to_owned();
    for k in 0..DEPENDENT_KERNELS {
        let _ = write!(
            text,
            "__global__ void scaled_{k}(float *out, const float *in) {{\n    \
             int i = blockIdx.x * blockDim.x + threadIdx.x;\n    \
             out[i] = scale(in, i + {k});\n}}\n"
        );
    }
    text
}

/// Fifty kernels of twenty lines that do what kernels do: index arithmetic, a loop, shared memory, a guard.
fn file() -> String {
    let mut text = String::new();
    for k in 0..KERNELS {
        let kernel = format!(
            "// Kernel {k}: sums tiles of a matrix.
__global__ void kernel_{k}(float *out, const float *in, int n) {{
    __shared__ float tile[32][32];
    int x = blockIdx.x * 32 + threadIdx.x;
    int y = blockIdx.y * 32 + threadIdx.y;
    int base = y * n + x;
    float sum = 0.0f;
    for (int i = 0; i < 16; ++i) {{
        float value = in[2 * base + i * n + 10000];
        tile[threadIdx.y][threadIdx.x] = value;
        __syncthreads();
        sum += tile[threadIdx.x][threadIdx.y] * {k}.5f;
        __syncthreads();
    }}
    if (x < n && y < n) {{
        out[base] = sum;
        out[x * n + y] = sum * 0.5f;
    }}
}}

"
        );
        let _ = write!(text, "{kernel}");
    }
    text
}

/// A session with the server, by whichever way.
struct Session {
    to: Box<dyn Write>,
    from: Box<dyn BufRead>,
    child: Option<Child>,
}

impl Session {
    fn start(program: Option<&str>) -> Session {
        let mut session = match program {
            Some(program) => Session::spawn(program),
            None => Session::inside(),
        };
        session.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": {"processId": null, "capabilities": {}}}));
        while session.receive()["id"] != 1 {}
        session.send(&json!({"jsonrpc": "2.0", "method": "initialized", "params": {}}));
        session
    }

    fn spawn(program: &str) -> Session {
        let mut child = Command::new(program)
            .args(["lsp", "--stdio"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{program}: {error}"));
        let to = child.stdin.take().expect("piped");
        let from = BufReader::new(child.stdout.take().expect("piped"));
        Session {
            to: Box::new(to),
            from: Box::new(from),
            child: Some(child),
        }
    }

    /// The server on threads of its own, joined by operating-system pipes as a process would be.
    fn inside() -> Session {
        let (input, to) = std::io::pipe().expect("a pipe");
        let (from, mut output) = std::io::pipe().expect("a pipe");
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async move {
                let (mut into_server, server_input) = tokio::io::duplex(1 << 20);
                let (server_output, mut from_server) = tokio::io::duplex(1 << 20);
                tokio::spawn(async move {
                    let (sender, mut chunks) = tokio::sync::mpsc::unbounded_channel();
                    std::thread::spawn(move || {
                        let mut input = input;
                        let mut buffer = vec![0; 1 << 16];
                        while let Ok(read @ 1..) = input.read(&mut buffer) {
                            if sender.send(buffer[..read].to_vec()).is_err() {
                                break;
                            }
                        }
                    });
                    while let Some(chunk) = chunks.recv().await {
                        use tokio::io::AsyncWriteExt;
                        if into_server.write_all(&chunk).await.is_err() {
                            break;
                        }
                    }
                });
                tokio::spawn(async move {
                    let mut buffer = vec![0; 1 << 16];
                    while let Ok(read @ 1..) = from_server.read(&mut buffer).await {
                        if output.write_all(&buffer[..read]).is_err() {
                            break;
                        }
                    }
                });
                let options = warplens_lsp::Options::default();
                warplens_lsp::serve(server_input, server_output, &options).await
            })
        });
        Session {
            to: Box::new(to),
            from: Box::new(BufReader::new(from)),
            child: None,
        }
    }

    fn send(&mut self, message: &Value) {
        let body = message.to_string();
        let frame = format!("Content-Length: {}\r\n\r\n{body}", body.len());
        self.to
            .write_all(frame.as_bytes())
            .and_then(|()| self.to.flush())
            .expect("the server reads");
    }

    fn receive(&mut self) -> Value {
        let mut header = String::new();
        self.from.read_line(&mut header).expect("a header");
        let length = header
            .trim()
            .strip_prefix("Content-Length: ")
            .expect("a length");
        let mut body = vec![0; length.parse::<usize>().expect("a number") + 2];
        self.from.read_exact(&mut body).expect("a body");
        serde_json::from_slice(&body[2..]).expect("JSON")
    }

    /// Opens the file and returns how many findings it has.
    fn open(&mut self, text: &str) -> usize {
        let document = json!({"uri": URI, "languageId": "cuda-cpp", "version": 1, "text": text});
        self.send(&json!({"jsonrpc": "2.0", "method": "textDocument/didOpen",
            "params": {"textDocument": document}}));
        self.published(1)
    }

    /// Types in a header that a file with kernels includes: how long until that file's hints are new.
    fn type_in_header(&mut self) -> Vec<Duration> {
        for (uri, text) in [(DEPENDENT, dependent()), (HEADER, header(0))] {
            let document =
                json!({"uri": uri, "languageId": "cuda-cpp", "version": 1, "text": text});
            self.send(&json!({"jsonrpc": "2.0", "method": "textDocument/didOpen",
                "params": {"textDocument": document}}));
            // The second time because of the header, which was not there when the file was first looked at.
            self.published_of(DEPENDENT);
        }
        let mut times = Vec::with_capacity(HEADER_KEYSTROKES);
        for keystroke in 1..=HEADER_KEYSTROKES {
            let change = json!({"text": header(keystroke)});
            let message = json!({"jsonrpc": "2.0", "method": "textDocument/didChange", "params": {
                "textDocument": {"uri": HEADER, "version": keystroke + 1},
                "contentChanges": [change]}});
            let started = Instant::now();
            self.send(&message);
            self.published_of(DEPENDENT);
            self.hints_of(DEPENDENT, 1000 + keystroke);
            times.push(started.elapsed());
            std::thread::sleep(Duration::from_millis(3));
        }
        times
    }

    fn published_of(&mut self, uri: &str) {
        loop {
            let message = self.receive();
            if message["method"] == "textDocument/publishDiagnostics"
                && message["params"]["uri"] == uri
            {
                return;
            }
        }
    }

    fn hints_of(&mut self, uri: &str, id: usize) {
        let range = json!({"start": {"line": 0, "character": 0},
            "end": {"line": LINES, "character": 0}});
        self.send(
            &json!({"jsonrpc": "2.0", "id": id, "method": "textDocument/inlayHint",
            "params": {"textDocument": {"uri": uri}, "range": range}}),
        );
        while self.receive()["id"] != id {}
    }

    fn change(&mut self, version: usize, change: &Value) -> Duration {
        let message = json!({"jsonrpc": "2.0", "method": "textDocument/didChange", "params": {
            "textDocument": {"uri": URI, "version": version}, "contentChanges": [change]}});
        let started = Instant::now();
        self.send(&message);
        self.published(version);
        started.elapsed()
    }

    fn published(&mut self, version: usize) -> usize {
        loop {
            let message = self.receive();
            if message["method"] == "textDocument/publishDiagnostics"
                && message["params"]["version"] == version
            {
                return message["params"]["diagnostics"]
                    .as_array()
                    .map_or(0, Vec::len);
            }
        }
    }

    /// Resident memory in MiB, where the system tells.
    fn memory(&self) -> Option<f64> {
        let process = self
            .child
            .as_ref()
            .map_or_else(|| "self".to_owned(), |c| c.id().to_string());
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))?;
        Some(
            line.trim()
                .strip_suffix(" kB")?
                .trim()
                .parse::<f64>()
                .ok()?
                / 1024.0,
        )
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // The measurements are made; how it ends does not matter.
            drop(child.kill());
            drop(child.wait());
        }
    }
}
