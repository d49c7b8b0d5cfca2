//! SARIF as a code-scanning service takes it: the form of every part that we write, and fixes that cure.
//!
//! The form below is ours, of what the specification asks of these parts, and closed: a property that it does not name is a
//! failure. The published schema itself is asked by `cargo xtask test --group integrations`.

use serde_json::{Value, json};

use crate::Folder;

/// A transposition whose tile conflicts, with letters of two bytes before what is edited.
const CONFLICT: &str = "\
// warplens: block=(32,8) grid=(32,32) n=1024
__global__ void transpose(float* __restrict__ out, const float* __restrict__ in, int n) {
    /* größe */ __shared__ float tile[32][32];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}
";

fn form() -> Value {
    let closed = |required: Value, properties: Value| {
        json!({
            "type": "object",
            "required": required,
            "additionalProperties": false,
            "properties": properties,
        })
    };
    let text = json!({"type": "string", "minLength": 1});
    let one = json!({"type": "integer", "minimum": 1});
    let uri = json!({"type": "string", "pattern": "^[^\\s\\\\]+$"});
    let region = closed(
        json!(["startLine", "startColumn", "endLine", "endColumn"]),
        json!({"startLine": one, "startColumn": one, "endLine": one, "endColumn": one}),
    );
    let artifact = closed(json!(["uri"]), json!({"uri": uri}));
    let message = closed(json!(["text"]), json!({"text": text}));
    let gain = closed(
        json!(["gain"]),
        json!({"gain": {"type": "number", "minimum": 1}}),
    );
    let replacement = closed(
        json!(["deletedRegion", "insertedContent"]),
        json!({
            "deletedRegion": region,
            "insertedContent": closed(json!(["text"]), json!({"text": {"type": "string"}})),
        }),
    );
    let change = closed(
        json!(["artifactLocation", "replacements"]),
        json!({
            "artifactLocation": artifact,
            "replacements": {"type": "array", "minItems": 1, "items": replacement},
        }),
    );
    let fix = closed(
        json!(["description", "artifactChanges", "properties"]),
        json!({
            "description": message,
            "artifactChanges": {"type": "array", "minItems": 1, "maxItems": 1, "items": change},
            "properties": gain,
        }),
    );
    let place = closed(
        json!(["physicalLocation"]),
        json!({"physicalLocation": closed(
            json!(["artifactLocation", "region"]),
            json!({"artifactLocation": artifact, "region": region}),
        )}),
    );
    let result = closed(
        json!([
            "ruleId",
            "level",
            "message",
            "locations",
            "partialFingerprints"
        ]),
        json!({
            "ruleId": text,
            "ruleIndex": {"type": "integer", "minimum": 0},
            "level": {"enum": ["none", "note", "warning", "error"]},
            "message": message,
            "locations": {"type": "array", "minItems": 1, "items": place},
            "partialFingerprints": {"type": "object", "minProperties": 1, "additionalProperties": text},
            "fixes": {"type": "array", "minItems": 1, "uniqueItems": true, "items": fix},
            "properties": gain,
        }),
    );
    let rule = closed(
        json!(["id", "shortDescription", "help", "helpUri"]),
        json!({
            "id": text,
            "shortDescription": message,
            "help": closed(json!(["text", "markdown"]), json!({"text": text, "markdown": text})),
            "helpUri": {"type": "string", "format": "uri", "pattern": "^https://"},
            "properties": closed(
                json!(["tags"]),
                json!({"tags": {"type": "array", "uniqueItems": true, "items": text}}),
            ),
        }),
    );
    let driver = closed(
        json!(["name", "semanticVersion", "informationUri", "rules"]),
        json!({
            "name": {"const": "warplens"},
            "semanticVersion": {"type": "string", "pattern": "^\\d+\\.\\d+\\.\\d+$"},
            "informationUri": {"type": "string", "pattern": "^https://"},
            "rules": {"type": "array", "uniqueItems": true, "items": rule},
        }),
    );
    let run = closed(
        json!(["tool", "columnKind", "results"]),
        json!({
            "tool": closed(json!(["driver"]), json!({"driver": driver})),
            "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
            "results": {"type": "array", "items": result},
        }),
    );
    closed(
        json!(["$schema", "version", "runs"]),
        json!({
            "$schema": uri,
            "version": {"const": "2.1.0"},
            "runs": {"type": "array", "minItems": 1, "maxItems": 1, "items": run},
        }),
    )
}

#[track_caller]
fn well_formed(log: &Value) {
    let form = jsonschema::validator_for(&form()).expect("a schema");
    let wrong: Vec<String> = form
        .iter_errors(log)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert_eq!(wrong, [] as [String; 0]);
    let run = &log["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().expect("rules");
    for result in run["results"].as_array().expect("results") {
        let id = &result["ruleId"];
        let index = result["ruleIndex"].as_u64().expect("a rule of ours");
        assert_eq!(rules[index as usize]["id"], *id);
    }
}

/// The bytes of a text that a region spans, columns counted in characters.
fn bytes(text: &str, region: &Value) -> std::ops::Range<usize> {
    let at = |line: &str, column: &str| {
        let figure = |name: &str| region[name].as_u64().expect("a number") as usize;
        let start: usize = text
            .split_inclusive('\n')
            .take(figure(line) - 1)
            .map(str::len)
            .sum();
        let inside = text[start..].char_indices().nth(figure(column) - 1);
        inside.map_or(text.len(), |(bytes, _)| start + bytes)
    };
    at("startLine", "startColumn")..at("endLine", "endColumn")
}

fn applied(text: &str, fix: &Value) -> String {
    let replacements = fix["artifactChanges"][0]["replacements"].as_array();
    let mut edits: Vec<_> = replacements
        .expect("replacements")
        .iter()
        .map(|one| {
            (
                bytes(text, &one["deletedRegion"]),
                &one["insertedContent"]["text"],
            )
        })
        .collect();
    edits.sort_by_key(|(range, _)| range.start);
    let mut copy = text.to_owned();
    for (range, inserted) in edits.into_iter().rev() {
        copy.replace_range(range, inserted.as_str().expect("text"));
    }
    copy
}

#[test]
fn every_part_has_the_form_that_the_format_asks_for() {
    let folder = Folder::with("k.cu", CONFLICT);
    folder.write("broken.cu", "__global__ void k(int* p) { p[0] = ; }\n");
    folder.write("binary.cu", [0_u8, 159, 146, 150]);
    folder.write("warplens.toml", "gpu = \"no-such-gpu\"\n");
    well_formed(&folder.run(&["check", ".", "--format", "sarif"]).json());
    let nothing = Folder::with("host.cpp", "int main() { return 0; }\n");
    well_formed(&nothing.run(&["check", ".", "--format", "sarif"]).json());
}

#[test]
fn what_our_own_kernels_give_has_the_form() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/corpus");
    let tiles = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/kernels/transpose.cu"
    );
    let folder = Folder::new();
    let check = ["check", corpus, tiles, "--format", "sarif"];
    let log = folder.run(&check).json();
    well_formed(&log);
    let results = log["runs"][0]["results"].as_array().expect("results");
    assert!(results.iter().any(|result| result["fixes"].is_array()));
}

#[test]
fn a_fix_applied_cures_its_finding_and_gains_what_it_says() {
    let folder = Folder::with("k.cu", CONFLICT);
    let check = ["check", "k.cu", "--format", "sarif"];
    let findings = |rule: &str| {
        let log = folder.run(&check).json();
        let results = log["runs"][0]["results"]
            .as_array()
            .expect("results")
            .clone();
        let of_rule = results.into_iter().filter(|one| one["ruleId"] == rule);
        of_rule.collect::<Vec<_>>()
    };
    // Without what launching takes, which no edit changes.
    let cycles = || {
        let estimate = folder.estimate(&[]);
        estimate["results"][0]["estimates"]["auto"]["cycles"]
            .as_f64()
            .expect("a prediction")
    };
    let before = cycles();
    let found = findings("smem/bank-conflict");
    let fixes = found[0]["fixes"].as_array().expect("fixes");
    assert!(!fixes.is_empty());
    for fix in fixes {
        folder.write("k.cu", applied(CONFLICT, fix));
        assert_eq!(findings("smem/bank-conflict"), [] as [Value; 0], "{fix}");
        let said = fix["properties"]["gain"].as_f64().expect("a gain");
        let gained = before / cycles();
        assert!(
            said > 1.0 && (gained / said - 1.0).abs() < 0.02,
            "{gained} {fix}"
        );
        let title = fix["description"]["text"].as_str().expect("a title");
        assert!(title.contains("x faster"), "{title}");
    }
}

#[test]
fn edits_are_left_out_on_request() {
    let folder = Folder::with("k.cu", CONFLICT);
    let log = folder.run(&["check", "k.cu", "--format", "sarif", "--no-fixes"]);
    let log = log.json();
    well_formed(&log);
    let results = log["runs"][0]["results"].as_array().expect("results");
    assert!(!results.is_empty());
    assert!(results.iter().all(|result| result.get("fixes").is_none()));
}

#[test]
fn gitlab_gets_the_same_findings_under_the_same_names() {
    let folder = Folder::with("k.cu", CONFLICT);
    let log = folder.run(&["check", "k.cu", "--format", "sarif", "--no-fixes"]);
    let log = log.json();
    let results = log["runs"][0]["results"].as_array().expect("results");
    let report = folder.run(&["check", "k.cu", "--format", "gitlab"]).json();
    let report = report.as_array().expect("a list");
    assert_eq!(report.len(), results.len());
    for (finding, result) in report.iter().zip(results) {
        assert_eq!(finding["check_name"], result["ruleId"]);
        assert_eq!(
            finding["fingerprint"],
            result["partialFingerprints"]["warplensLine/v1"]
        );
        assert_eq!(finding["location"]["path"], "k.cu");
    }
}
