//! `warplens sweep`: many configurations of one kernel.

use serde_json::{Value, json};

use crate::{Folder, Run};

const BLUR: &str = "#ifndef tile
#define tile 1
#endif
#define WIDTH (block_size_x * tile)
extern \"C\" __global__ void blur(const float *in, float *out, int n) {
    __shared__ float row[WIDTH + 2];
    int first = blockIdx.x * WIDTH;
#pragma unroll loop_unroll_factor_t
    for (int t = 0; t < tile; ++t) {
        int at = threadIdx.x + t * block_size_x;
        row[at + 1] = first + at < n ? in[first + at] : 0.0f;
    }
    __syncthreads();
    for (int t = 0; t < tile; ++t) {
        int at = threadIdx.x + t * block_size_x;
        if (first + at < n) out[first + at] = 0.5f * row[at + 1] + 0.25f * (row[at] + row[at + 2]);
    }
}
";

fn space() -> Value {
    json!({
        "ConfigurationSpace": {
            "TuningParameters": [
                {"Name": "block_size_x", "Values": "[32 * 2 ** i for i in range(7)]"},
                {"Name": "tile", "Values": "[1, 2, 4]"},
                {"Name": "loop_unroll_factor_t", "Values": "[0, 1]"},
            ],
            "Conditions": [{"Expression": "block_size_x * tile <= 4096"}],
        },
        "KernelSpecification": {
            "KernelName": "blur",
            "KernelFile": "blur.cu",
            "LocalSize": {"X": "block_size_x"},
            "GridDivX": ["block_size_x", "tile"],
            "ProblemSize": [10_000_000],
            "Arguments": [{"Name": "n", "MemoryType": "Scalar", "FillValue": 10_000_000}],
        },
    })
}

fn lines(run: &Run) -> Vec<Value> {
    let line =
        |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    run.out.lines().map(line).collect()
}

fn folder() -> Folder {
    let folder = Folder::with("blur.cu", BLUR);
    folder.write("blur.json", space().to_string());
    folder
}

#[test]
fn a_space_is_predicted_to_its_last_configuration() {
    let folder = folder();
    let run = folder.run(&["sweep", "--space", "blur.json", "--cache", "cache.json"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{run:?}");
    let lines = lines(&run);
    // Blocks of 32 to 2048; 2048 threads times 4 is beyond the condition.
    assert_eq!(lines.len(), 7 * 3 * 2 - 2);
    for line in &lines {
        let possible = line["id"]["block_size_x"].as_i64() <= Some(1024);
        assert_eq!(line["valid"], possible, "{line}");
        assert_eq!(line["time_ms"].is_f64(), possible, "{line}");
        assert_eq!(line["why_invalid"].is_null(), possible, "{line}");
    }
    let tiled = lines
        .iter()
        .find(|line| line["id"]["tile"] == 4 && line["id"]["block_size_x"] == 64);
    assert_eq!(tiled.expect("there")["shared_bytes"], 4 * (64 * 4 + 2));
    let cache: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.path().join("cache.json")).unwrap())
            .unwrap();
    assert_eq!(cache["cache"].as_object().unwrap().len(), lines.len());
    assert_eq!(cache["cache"]["2048,1,0"]["time"], "InvalidConfig");
    assert_eq!(cache["cache"]["32,1,0"]["time"], lines[0]["time_ms"]);
}

#[test]
fn a_configuration_is_what_estimate_says_of_it() {
    let folder = folder();
    folder.write(
        "k.cu",
        BLUR.replace("#pragma unroll loop_unroll_factor_t\n", "\n"),
    );
    let run = folder.run(&["sweep", "--space", "blur.json"]);
    let lines = lines(&run);
    let line = lines
        .iter()
        .find(|line| {
            line["id"] == json!({"block_size_x": 128, "tile": 2, "loop_unroll_factor_t": 0})
        })
        .expect("there");
    let document = folder.estimate(&[
        "-Dblock_size_x=128",
        "-Dtile=2",
        "--block",
        "128",
        "--grid",
        "39063",
        "--arg",
        "n=10000000",
    ]);
    let result = &document["results"][0];
    assert_eq!(line["time_ms"], result["estimates"]["auto"]["time_ms"]);
    assert_eq!(line["cycles"], result["estimates"]["auto"]["cycles"]);
    assert_eq!(
        line["bottleneck"],
        result["estimates"]["auto"]["bottleneck"]
    );
    assert_eq!(
        line["registers_per_thread"],
        result["resources"]["registers_per_thread"]
    );
    assert_eq!(line["occupancy"], result["occupancy"]["fraction"]);
}

#[test]
fn lines_of_configurations_have_a_line_each_and_wrong_ones_say_why() {
    let folder = folder();
    let configurations = [
        r#"{"id": "small", "defines": {"block_size_x": 64}, "block": [64], "grid": [1000], "args": {"n": 64000}}"#,
        r#"{"id": 2, "defines": {"block_size_x": 2048}, "block": [2048], "grid": [10]}"#,
        r#"{"id": 3, "defines": {"block_size_x": 100000}, "block": [64], "grid": [10]}"#,
        "{half",
        r#"{"defines": {"block_size_x": 64}, "block": [64], "grid": [0]}"#,
    ];
    folder.write("configs.jsonl", configurations.join("\n"));
    let run = folder.run(&[
        "sweep",
        "blur.cu",
        "--kernel",
        "blur",
        "--configs",
        "configs.jsonl",
    ]);
    assert_eq!(run.code, 0, "{run:?}");
    let lines = lines(&run);
    let valid: Vec<bool> = lines
        .iter()
        .filter_map(|line| line["valid"].as_bool())
        .collect();
    assert_eq!(valid, [true, false, false, false, false], "{run:?}");
    let ids: Vec<&Value> = lines.iter().map(|line| &line["id"]).collect();
    assert_eq!(
        ids,
        [
            &json!("small"),
            &json!(2),
            &json!(3),
            &Value::Null,
            &json!(5)
        ]
    );
    // What a configuration leaves open is assumed, and said.
    let assumed = |line: &Value| -> Vec<String> {
        let all = line["assumptions"].as_array().into_iter().flatten();
        all.map(|one| format!("{} {}", one["symbol"], one["value"]))
            .collect()
    };
    assert_eq!(assumed(&lines[0]), Vec::<String>::new());
    assert_eq!(assumed(&lines[1]), [r#""n" "a large multiple of 32""#]);
    for (line, part) in lines[1..]
        .iter()
        .zip(["threads", "shared", "line 4", "grid"])
    {
        let why = line["why_invalid"].as_str().expect("why");
        assert!(why.contains(part), "{part}: {why}");
    }
}

#[test]
fn the_best_are_a_table_and_so_is_the_front() {
    let folder = folder();
    let top = folder.run(&["sweep", "--space", "blur.json", "--top", "3"]);
    assert_eq!(top.code, 0, "{top:?}");
    assert_eq!(top.out.lines().count(), 4, "{}", top.out);
    assert!(top.out.contains("block_size_x="), "{}", top.out);
    let all = lines(&folder.run(&["sweep", "--space", "blur.json"]));
    let best = all
        .iter()
        .filter(|line| line["valid"] == true)
        .min_by(|a, b| {
            a["time_ms"]
                .as_f64()
                .unwrap()
                .total_cmp(&b["time_ms"].as_f64().unwrap())
        })
        .expect("some");
    let first = top.out.lines().nth(1).expect("a row");
    assert!(
        first.contains(&format!("block_size_x={} ", best["id"]["block_size_x"])),
        "{first} {best}"
    );
    let front = folder.run(&["sweep", "--space", "blur.json", "--pareto"]);
    assert!(front.out.lines().count() >= 2, "{}", front.out);
}

#[test]
fn what_cannot_be_swept_is_said_in_a_line() {
    let folder = folder();
    folder.write("none.jsonl", "");
    folder.write("half.json", "{\"ConfigurationSpace\": {");
    let mut wrong = space();
    wrong["ConfigurationSpace"]["Conditions"][0]["Expression"] = json!("frob(tile) > 1");
    folder.write("wrong.json", wrong.to_string());
    wrong["ConfigurationSpace"]["Conditions"][0]["Expression"] = json!("block_size_x > 1024");
    folder.write("impossible.json", wrong.to_string());
    for (arguments, parts) in [
        (&["sweep", "blur.cu"][..], &["--configs"][..]),
        (
            &["sweep", "blur.cu", "--configs", "none.jsonl"],
            &["--kernel"],
        ),
        (
            &[
                "sweep",
                "blur.cu",
                "--kernel",
                "blur",
                "--configs",
                "none.jsonl",
            ],
            &["no configuration"],
        ),
        (
            &[
                "sweep",
                "blur.cu",
                "--kernel",
                "blur",
                "--configs",
                "missing.jsonl",
            ],
            &["missing.jsonl"],
        ),
        (&["sweep", "--space", "half.json"], &["half.json"]),
        (
            &["sweep", "--space", "wrong.json"],
            &["wrong.json", "`frob`"],
        ),
        (
            &["sweep", "--space", "blur.json", "--gpu", "a1000"],
            &["a1000"],
        ),
        (
            &["sweep", "missing.cu", "--space", "blur.json"],
            &["missing.cu"],
        ),
    ] {
        let run = folder.run(arguments);
        run.refused(parts);
    }
    let run = folder.run(&["sweep", "--space", "impossible.json"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.err.contains("none of the"), "{run:?}");
    let run = folder.run(&["sweep", "--space", "blur.json", "--kernel", "blurr"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.out.contains("no kernel named `blurr`"), "{run:?}");
}
