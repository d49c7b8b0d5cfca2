//! The comparison on files as `cargo lab measure` writes them, with what the interpreter counts in the place of a GPU.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::json;
use warplens_db::settings::Settings;
use warplens_db::{Engine, LaunchValues, Overrides};
use warplens_oracle::{Access, Argument, Dialect, Program, Space};
use warplens_syntax::{Document, Language};

use super::*;

/// A kernel on a small problem.
struct Case {
    program: &'static str,
    /// As the program names it, with template arguments.
    kernel: &'static str,
    template: &'static [(&'static str, &'static str)],
    grid: [u32; 3],
    block: [u32; 3],
    dynamic_shared: u64,
    arguments: Vec<(&'static str, Argument)>,
}

fn zeros(bytes: usize) -> Argument {
    Argument::Buffer(vec![0; bytes])
}

/// Coalesced and strided accesses, a last warp that is not full, conflicts, loops, dynamic shared memory, and accesses in
/// functions that are put in place.
fn cases() -> Vec<Case> {
    let add = |kernel, template, stride: usize| Case {
        program: "vector_add",
        kernel,
        template,
        grid: [4, 1, 1],
        block: [256, 1, 1],
        dynamic_shared: 0,
        arguments: vec![
            ("a", zeros(4000 * stride)),
            ("b", zeros(4000 * stride)),
            ("c", zeros(4000 * stride)),
            ("n", Argument::Int(1000)),
        ],
    };
    let square = |program, kernel, grid, sides: &[&'static str]| Case {
        program,
        kernel,
        template: &[],
        grid,
        block: [32, 8, 1],
        dynamic_shared: 0,
        arguments: ["in", "out"]
            .map(|name| (name, zeros(64 * 64 * 4)))
            .into_iter()
            .chain(sides.iter().map(|side| (*side, Argument::Int(64))))
            .collect(),
    };
    vec![
        add("vector_add", &[], 1),
        add("vector_add_strided<2>", &[("STRIDE", "2")], 2),
        square("transpose", "transpose_naive", [2, 8, 1], &["n"]),
        square("transpose", "transpose_tiled", [2, 2, 1], &["n"]),
        square("stencil", "stencil_tiled", [2, 8, 1], &["nx", "ny"]),
        Case {
            program: "scan",
            kernel: "scan_init",
            template: &[],
            grid: [2, 1, 1],
            block: [128, 1, 1],
            dynamic_shared: 1024,
            arguments: vec![("in", zeros(2048)), ("out", zeros(2048))],
        },
        Case {
            program: "fft",
            kernel: "fft_global_2",
            template: &[],
            grid: [8, 1, 1],
            block: [64, 1, 1],
            dynamic_shared: 0,
            arguments: vec![
                ("in", zeros(8192)),
                ("out", zeros(8192)),
                ("n", Argument::Int(256)),
                ("ns", Argument::Int(1)),
            ],
        },
    ]
}

impl Case {
    fn text(&self) -> String {
        let folder = repository::root().join("tests/kernels");
        std::fs::read_to_string(folder.join(format!("{}.cu", self.program))).unwrap()
    }

    fn entry(&self) -> Value {
        let integers = self
            .arguments
            .iter()
            .filter_map(|(name, value)| match value {
                Argument::Int(value) => Some((*name, json!(value))),
                _ => None,
            });
        let launch = json!({
            "kernel": self.kernel, "grid": self.grid, "block": self.block,
            "dynamic_shared_bytes": self.dynamic_shared,
            "args": integers.collect::<BTreeMap<_, _>>(),
            "ms": {"median": 0.1, "low": 0.1, "high": 0.1, "least": 0.1}, "repeat": 1, "right": true,
        });
        let file = format!("{}.cu", self.program);
        measure::counted(self.program, &file, &launch, "", &self.source_page())
    }

    /// What ncu's page `source` would be: an instruction an access, below its line and that of each call.
    fn source_page(&self) -> String {
        let text = self.text();
        let program = Program::read(&text, Dialect::Cuda).unwrap();
        let launch = warplens_oracle::Launch {
            grid: self.grid,
            block: self.block,
            dynamic_shared_bytes: self.dynamic_shared,
            template: self
                .template
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            ..warplens_oracle::Launch::default()
        };
        let arguments: Vec<Argument> = self
            .arguments
            .iter()
            .map(|(_, value)| value.clone())
            .collect();
        let kernel = self.kernel.split('<').next().unwrap();
        let run = program.run(kernel, &launch, &arguments).unwrap();
        assert_eq!(run.undefined, None, "{kernel}");
        // By line: the instructions that stand below it.
        let mut lines: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for (at, (key, counted)) in run.tally.accesses.iter().enumerate() {
            let (opcode, sectors, wavefronts) = match (key.space, key.access) {
                (Space::Global, Access::Load) => ("LDG.E", counted.sectors, 0),
                (Space::Global, _) => ("STG.E", counted.sectors, 0),
                (Space::Shared, Access::Load) => ("LDS", 0, counted.passes),
                (Space::Shared, _) => ("STS", 0, counted.passes),
                (Space::Constant, _) => continue,
            };
            // The kernels' only numbers of more than four bytes are the transforms'.
            let width = if self.program == "fft" { ".64" } else { "" };
            let row = format!(
                "\"\",\"\",\"{:#x}\",\"@P0 {opcode}{width} R2, [R4]\",\"{}\",\"{wavefronts}\",\"{sectors}\"",
                16 * (at + 1),
                counted.requests
            );
            for line in key.via.iter().chain([&key.place.line]) {
                lines.entry(*line).or_default().push(row.clone());
            }
        }
        let mut page = format!(
            "\"File Path\",\"/home/user/{}.cu\"\n\"Function Name\",\"{kernel}\"\n\"Line No\",\"Source\",\"Address\",\
             \"Source\",\"Instructions Executed\",\"L1 Wavefronts Shared\",\"L2 Theoretical Sectors Global\"\n",
            self.program
        );
        for (number, instructions) in lines {
            let written = text
                .lines()
                .nth(number as usize - 1)
                .unwrap()
                .replace('"', "\"\"");
            let _ = writeln!(
                page,
                "\"{number}\",\"{written}\",\"\",\"\",\"1\",\"0\",\"0\""
            );
            for row in instructions {
                let _ = writeln!(page, "{row}");
            }
        }
        page
    }
}

/// What the analysis says, as the command line prints it.
fn predict(file: &Path, launch: &Launch, gpu: &str) -> anyhow::Result<Value> {
    let text = std::fs::read_to_string(file)?;
    let overrides = Overrides {
        argument: LaunchValues {
            grid: Some(launch.grid),
            block: Some(launch.block),
            dynamic_shared_bytes: Some(launch.dynamic_shared),
            args: launch.arguments.iter().cloned().collect(),
            ..LaunchValues::default()
        },
        ..Overrides::default()
    };
    let document = Engine::new(Profiles::builtin())
        .estimate(
            &Document::new(&text, Language::Cuda),
            file,
            &Settings::default(),
            &overrides,
            &[gpu.to_owned()],
            &[],
            std::slice::from_ref(&launch.kernel),
        )
        .map_err(anyhow::Error::msg)?;
    Ok(serde_json::to_value(document)?)
}

fn file(entries: &[Value]) -> Value {
    json!({
        "schema": measure::SCHEMA,
        "device": {"name": "NVIDIA A100-SXM4-40GB", "compute_cap": "8.0", "driver_version": "580.1"},
        "date": "2026-01-31T00:00:00Z", "nvcc": "release 13.0", "ncu": "Version 2025.3", "commit": "0",
        "runs": [], "counters": entries,
    })
}

/// Runs the command on such a file in a folder of its own: its exit status is 0 (`Ok`) or what it is; and the page.
fn run(text: &str) -> (ExitCode, Option<String>) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(measure::FILE), text).unwrap();
    let out = folder.path().join("counters.md");
    let counters = Counters {
        folders: vec![folder.path().to_owned()],
        gpu: None,
        bin: None,
        out: out.clone(),
    };
    let status = counters.compare(&predict).unwrap();
    (status, std::fs::read_to_string(out).ok())
}

fn read(value: &Value) -> anyhow::Result<Device> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(measure::FILE);
    std::fs::write(&path, value.to_string()).unwrap();
    device(&path, None, &predict)
}

#[test]
fn what_was_counted_is_what_was_said() {
    let entries: Vec<Value> = cases().iter().map(Case::entry).collect();
    let device = read(&file(&entries)).unwrap();
    assert_eq!(device.problems, Vec::<String>::new());
    assert_eq!(
        (device.gpu.as_str(), device.kernels.len()),
        ("a100-sxm4-40gb", entries.len())
    );
    let wrong: Vec<&Row> = device
        .rows()
        .filter(|row| row.verdict != Verdict::Equal)
        .collect();
    assert_eq!(wrong, Vec::<&Row>::new());
    assert!(device.rows().count() >= 30, "{}", device.rows().count());
    // Requests are the same ones, of all kinds of costs.
    assert!(device.rows().all(|row| row.requests[0] == row.requests[1]));
    for figure in [4.0, 8.0, 32.0] {
        assert!(
            device.rows().any(|row| row.measured == Some(figure)),
            "{figure}"
        );
    }

    let (status, page) = run(&file(&entries).to_string());
    assert_eq!(status, ExitCode::SUCCESS);
    let page = page.unwrap();
    let all = device.rows().count();
    assert!(page.contains(&format!(
        "- {all} of {all} exact facts equal, 100.0 % (target: 98 %, met)"
    )));
    assert!(
        page.contains("| `vector_add_strided<2> <<<4, 256>>>` | vector_add.cu:"),
        "{page}"
    );
    assert!(!page.contains("What differs"));
}

#[test]
fn one_wrong_row_is_found_and_fails() {
    let mut entries: Vec<Value> = cases().iter().map(Case::entry).collect();
    let tiled = &mut entries[3]["instructions"];
    let loads = tiled.as_array_mut().unwrap().iter_mut();
    let load = loads
        .into_iter()
        .find(|one| one["sass"].as_str().unwrap().contains("LDS"))
        .unwrap();
    load["L1 Wavefronts Shared"] = json!(load["L1 Wavefronts Shared"].as_f64().unwrap() / 2.0);
    let value = file(&entries);
    let device = read(&value).unwrap();
    let differing: Vec<&Row> = device
        .rows()
        .filter(|row| row.verdict == Verdict::Differs)
        .collect();
    let [row] = differing[..] else {
        panic!("{differing:?}");
    };
    assert_eq!(
        (row.predicted, row.measured, row.difference()),
        (Some(32.0), Some(16.0), Some(-16.0))
    );

    let (status, page) = run(&value.to_string());
    assert_eq!(status, ExitCode::FAILURE);
    let page = page.unwrap();
    let (_, differs) = page.split_once("### What differs").unwrap();
    let first = differs
        .lines()
        .find(|line| line.contains("transpose_tiled"))
        .unwrap();
    assert!(
        first.contains("| wavefronts | 32 | 16 | -16 |") && first.contains("**differs**"),
        "{first}"
    );
    let all = device.rows().count();
    assert!(page.contains(&format!("- {} of {all} exact facts equal, ", all - 1)));
    assert!(
        page::terminal(&device).contains("target: 98 %, missed"),
        "one of some thirty"
    );
}

#[test]
fn what_cannot_be_compared_is_said_and_the_rest_is() {
    let good = cases()[0].entry();
    let but = |change: &dyn Fn(&mut Value)| {
        let mut entry = good.clone();
        change(&mut entry);
        entry
    };
    let bad = [
        (
            but(&|entry| entry["launch"]["kernel"] = json!("vector_sum")),
            "no kernel named `vector_sum`",
        ),
        (
            but(&|entry| entry["launch"]["kernel"] = json!("vector_add_strided<7>")),
            "no such kernel",
        ),
        (
            but(&|entry| entry["program"] = json!("vectors")),
            "no program `vectors`",
        ),
        (
            but(&|entry| entry["program"] = json!("../kernels/scan")),
            "no program",
        ),
        (
            but(&|entry| entry["launch"] = Value::Null),
            "says no launch",
        ),
        (
            but(&|entry| entry["launch"]["grid"] = json!([1, 2])),
            "says no launch",
        ),
        (
            but(&|entry| entry["instructions"] = json!([])),
            "measure again",
        ),
        (
            but(&|entry| entry["lines"][0]["source"] = json!("int other;")),
            "is not what was measured (line",
        ),
        (json!(3), "says no launch"),
    ];
    for (entry, why) in &bad {
        let device = read(&file(&[entry.clone(), good.clone()])).unwrap();
        assert!(
            device.problems[0].contains(why),
            "{why}: {:?}",
            device.problems
        );
        assert_eq!((device.problems.len(), device.kernels.len()), (1, 1));
        assert!(page::terminal(&device).contains(why));
    }
    let (status, page) = run(&file(&[bad[0].0.clone(), good]).to_string());
    assert_eq!(status, ExitCode::from(2));
    assert!(page.is_some());
}

#[test]
fn half_a_file_or_another_one_is_refused() {
    let text = file(&[cases()[0].entry()]).to_string();
    let (status, page) = run(&text[..text.len() / 2]);
    assert_eq!((status, page), (ExitCode::from(2), None));
    for (text, why) in [
        (&text[..text.len() / 2], "was it cut off?"),
        ("", "was it cut off?"),
        ("{\"schema\": \"warplens.measurements/1\"}", "schema"),
        ("[]", "schema"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(measure::FILE);
        std::fs::write(&path, text).unwrap();
        let error = format!("{:#}", device(&path, None, &predict).unwrap_err());
        assert!(error.contains(why), "{why}: {error}");
    }
    let mut unknown = file(&[]);
    unknown["device"] = json!({"name": "NVIDIA Next", "compute_cap": "99.0"});
    let error = format!("{:#}", read(&unknown).unwrap_err());
    assert!(
        error.contains("sm_990") && error.contains("--gpu"),
        "{error}"
    );
}

#[test]
fn counters_that_were_refused_are_said_to_be() {
    let mut value = file(&[]);
    value["no_counters"] = json!(format!("ncu may not read them here: {}", measure::REFUSED));
    let device = read(&value).unwrap();
    let said = page::terminal(&device);
    for word in [
        "no counters were measured",
        measure::REFUSED,
        "NVreg_RestrictProfilingToAdminUsers=0",
    ] {
        assert!(said.contains(word), "{word}: {said}");
    }
    // Nothing was compared and nothing is wrong; no page says otherwise.
    assert_eq!(run(&value.to_string()), (ExitCode::SUCCESS, None));
    value["counters"] = json!([cases()[0].entry()]);
    assert!(page::terminal(&read(&value).unwrap()).contains("no further counters"));
}

#[test]
fn nothing_is_predicted_before_there_is_something_to_compare() {
    let asked = Cell::new(0);
    let counting = |_: &Path, _: &Launch, _: &str| -> anyhow::Result<Value> {
        asked.set(asked.get() + 1);
        bail!("no warplens")
    };
    let counters = |folders: Vec<PathBuf>| Counters {
        folders,
        gpu: None,
        bin: None,
        out: PathBuf::from("no/such/folder/counters.md"),
    };
    let folder = tempfile::tempdir().unwrap();
    let error = counters(vec![folder.path().to_owned()])
        .compare(&counting)
        .unwrap_err();
    assert!(error.to_string().contains("there is no"), "{error}");
    std::fs::write(folder.path().join(measure::FILE), file(&[]).to_string()).unwrap();
    let status = counters(vec![folder.path().to_owned()])
        .compare(&counting)
        .unwrap();
    assert_eq!((status, asked.get()), (ExitCode::SUCCESS, 0));
}
