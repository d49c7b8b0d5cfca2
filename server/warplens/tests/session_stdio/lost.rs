//! A kernel whose analysis fails inside warplens, in an editor.

use serde_json::{Value, json};

use crate::server::Server;

const TWO: &str = "__global__ void sound(float *out, const float *in) {\n    \
                   out[threadIdx.x] = in[32 * threadIdx.x];\n}\n\n\
                   __global__ void broken(float *out) {\n    out[threadIdx.x] = 1.0f;\n}\n\n\
                   void run(float *out, const float *in) {\n    sound<<<64, 256>>>(out, in);\n    \
                   broken<<<64, 256>>>(out);\n}\n";

/// Everything up to the diagnostics of a version.
fn until(server: &mut Server, version: u64) -> (Vec<Value>, Value) {
    let mut before = Vec::new();
    loop {
        let message = server.receive();
        if message["method"] == "textDocument/publishDiagnostics"
            && message["params"]["version"] == version
        {
            return (before, message["params"]["diagnostics"].clone());
        }
        before.push(message);
    }
}

fn of_rule<'a>(diagnostics: &'a Value, rule: &str) -> Vec<&'a Value> {
    let all = diagnostics.as_array().expect("a list").iter();
    all.filter(|found| found["code"] == rule).collect()
}

#[test]
fn a_lost_kernel_is_a_diagnostic_at_its_name_and_a_line_of_the_log() {
    for stage in ["lowering:broken", "analysing:broken"] {
        let mut server = Server::start_with(&[], &[("WARPLENS_TEST_PANIC", stage)]);
        server.initialize();
        let uri = "file:///two.cu";
        let document = json!({"uri": uri, "languageId": "cuda-cpp", "version": 1, "text": TWO});
        server.notify("textDocument/didOpen", &json!({"textDocument": document}));
        let (_, found) = until(&mut server, 1);
        let [lost] = of_rule(&found, "internal/lost-kernel")[..] else {
            panic!("{found:#}");
        };
        let range =
            json!({"start": {"line": 4, "character": 16}, "end": {"line": 4, "character": 22}});
        assert_eq!(lost["range"], range);
        assert_eq!(lost["severity"], 1);
        assert_eq!(of_rule(&found, "mem/strided").len(), 1, "{found:#}");

        // The next edit analyses it again; what is in the log already is not said again.
        let start = json!({"line": 0, "character": 0});
        let change = json!([{"range": {"start": start, "end": start}, "text": "\n"}]);
        let document = json!({"uri": uri, "version": 2});
        let params = json!({"textDocument": document, "contentChanges": change});
        server.notify("textDocument/didChange", &params);
        let (between, found) = until(&mut server, 2);
        assert_eq!(
            of_rule(&found, "internal/lost-kernel").len(),
            1,
            "{found:#}"
        );
        let told: Vec<&Value> = between
            .iter()
            .filter(|message| message["method"] == "window/logMessage")
            .collect();
        let [told] = told[..] else {
            panic!("{between:#?}");
        };
        let words = told["params"]["message"].as_str().expect("words");
        assert!(
            words.contains("two.cu") && words.contains("`broken`"),
            "{words}"
        );

        let position = json!({"line": 2, "character": 24});
        let params = json!({"textDocument": {"uri": uri}, "position": position});
        let hover = server.ask(3, "textDocument/hover", &params);
        assert!(
            hover["contents"].to_string().contains("sectors"),
            "{hover:#}"
        );
        server.ask(4, "shutdown", &Value::Null);
        server.notify("exit", &Value::Null);
        let (code, out, err) = server.end();
        assert_eq!((code, out.as_str()), (Some(0), ""));
        assert!(
            err.lines()
                .any(|line| line.starts_with("warplens: internal error at ")),
            "{err}"
        );
    }
}
