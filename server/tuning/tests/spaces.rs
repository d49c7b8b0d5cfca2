//! Spaces as tuners write them.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use warplens_tuning::{Cache, Configuration, Space, lines};

fn space(edit: impl FnOnce(&mut Value)) -> Result<Space, String> {
    let mut file = json!({
        "General": {"BenchmarkName": "blur"},
        "ConfigurationSpace": {
            "TuningParameters": [
                {"Name": "block_size_x", "Type": "int", "Values": "[16 * i for i in range(1, 5)]", "Default": 16},
                {"Name": "block_size_y", "Type": "int", "Values": [1, 2, 4], "Default": 1},
                {"Name": "tile", "Type": "int", "Values": "[1, 2]", "Default": 1},
                {"Name": "loop_unroll_factor_k", "Type": "int", "Values": "[0, 4]", "Default": 0},
            ],
            "Conditions": [
                {"Expression": "32 <= block_size_x * block_size_y <= 128", "Parameters": ["block_size_x", "block_size_y"]},
                {"Expression": "tile == 1 or block_size_y > 1", "Parameters": ["tile", "block_size_y"]},
            ],
        },
        "KernelSpecification": {
            "Language": "CUDA",
            "KernelName": "blur",
            "KernelFile": "blur.cu",
            "CompilerOptions": ["-std=c++17", "-DRADIUS=3"],
            "LocalSize": {"X": "block_size_x", "Y": "block_size_y", "Z": "1"},
            "GridDivX": ["block_size_x", "tile"],
            "GridDivY": ["block_size_y"],
            "ProblemSize": [1000, 500],
            "SharedMemory": 0,
            "Arguments": [
                {"Name": "n", "Type": "int32", "MemoryType": "Scalar", "FillValue": 1000},
                {"Name": "image", "Type": "float", "MemoryType": "Vector", "FillValue": 1.0},
            ],
        },
    });
    edit(&mut file);
    Space::read(&file.to_string())
}

type Edit = fn(&mut Value);

fn all(space: &Space) -> Vec<Configuration> {
    space
        .configurations()
        .map(|one| one.expect("fits"))
        .collect()
}

#[test]
fn every_configuration_that_fulfils_the_conditions_comes_once() {
    let space = space(|_| {}).unwrap();
    let found = all(&space);
    let mut expected = Vec::new();
    for x in [16, 32, 48, 64] {
        for y in [1, 2, 4] {
            for tile in [1, 2] {
                for unroll in [0, 4] {
                    if (32..=128).contains(&(x * y)) && (tile == 1 || y > 1) {
                        expected.push(json!({"block_size_x": x, "block_size_y": y, "tile": tile, "loop_unroll_factor_k": unroll}));
                    }
                }
            }
        }
    }
    let ids: Vec<Value> = found.iter().map(|one| one.id.clone()).collect();
    assert_eq!(ids, expected);
    assert_eq!(space.cartesian(), 48);
}

#[test]
fn launches_and_macros_are_those_of_the_tuner() {
    let space = space(|_| {}).unwrap();
    let one = all(&space)
        .into_iter()
        .find(|one| one.id["tile"] == 2 && one.id["block_size_x"] == 48)
        .unwrap();
    assert_eq!(one.block.unwrap().0, [48, 2, 1]);
    // 1000 over 96 and 500 over 2, rounded up.
    assert_eq!(one.grid.unwrap().0, [11, 250, 1]);
    for (name, value) in [
        ("tile", "2"),
        ("kernel_tuner", "1"),
        ("block_size_z", "1"),
        ("grid_size_x", "11"),
        ("RADIUS", "3"),
        ("loop_unroll_factor_k", "0"),
    ] {
        assert_eq!(one.defines[name], value, "{name}");
    }
    assert_eq!(one.without_unroll, ["loop_unroll_factor_k"]);
    assert_eq!(one.args, BTreeMap::from([("n".to_owned(), 1000)]));
    assert_eq!(one.dynamic_shared_bytes, Some(0));
}

#[test]
fn a_grid_in_work_items_becomes_blocks() {
    let space = space(|file| {
        let kernel = &mut file["KernelSpecification"];
        kernel["ProblemSize"] = Value::Null;
        kernel["GlobalSizeType"] = json!("OpenCL");
        kernel["GlobalSize"] = json!({"X": "1000 // tile", "Y": "block_size_y * 5"});
    })
    .unwrap();
    let one = all(&space)
        .into_iter()
        .find(|one| one.id["tile"] == 2 && one.id["block_size_x"] == 48)
        .unwrap();
    assert_eq!(one.grid.unwrap().0, [11, 5, 1]);
}

#[test]
fn what_is_wrong_is_said_in_a_line() {
    let edits: [(Edit, &str); 6] = [
        (
            |file| {
                file["ConfigurationSpace"]["Conditions"][0]["Expression"] = json!("wurst(3) > 2");
            },
            "`wurst` is not a known function",
        ),
        (
            |file| {
                file["ConfigurationSpace"]["Conditions"][0]["Expression"] =
                    json!("block_size_w > 2");
            },
            "not a parameter of the space",
        ),
        (
            |file| file["ConfigurationSpace"]["TuningParameters"][0]["Values"] = json!("[1, 2"),
            "parameter `block_size_x`",
        ),
        (
            |file| {
                file["ConfigurationSpace"]["TuningParameters"][1]["Name"] = json!("block_size_x");
            },
            "twice",
        ),
        (
            |file| file["ConfigurationSpace"] = json!({}),
            "TuningParameters",
        ),
        (
            |file| file["KernelSpecification"]["LocalSize"]["X"] = json!("block_size_x +"),
            "ends too early",
        ),
    ];
    for (edit, part) in edits {
        let error = space(edit).expect_err("wrong");
        assert!(error.contains(part), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
    assert!(Space::read("{").is_err());
    assert!(Space::read("[]").is_err());
}

#[test]
fn an_error_in_one_configuration_leaves_the_others() {
    let space = space(|file| {
        file["ConfigurationSpace"]["Conditions"] =
            json!([{"Expression": "8 % (tile - 1) == 0", "Parameters": ["tile"]}]);
    })
    .unwrap();
    let (fit, wrong): (Vec<_>, Vec<_>) = space.configurations().partition(Result::is_ok);
    assert_eq!((fit.len(), wrong.len()), (24, 12));
    assert!(wrong[0].as_ref().unwrap_err().contains("division by zero"));
}

#[test]
fn a_space_of_millions_is_walked_without_being_held() {
    let space = space(|file| {
        let many: Vec<Value> = (0..12)
            .map(|at| json!({"Name": format!("p{at}"), "Values": "list(range(10))"}))
            .collect();
        file["ConfigurationSpace"]["TuningParameters"]
            .as_array_mut()
            .unwrap()
            .extend(many);
        let conditions = file["ConfigurationSpace"]["Conditions"]
            .as_array_mut()
            .unwrap();
        // Cuts the tree early.
        conditions.push(json!({"Expression": "p0 + p1 + p2 == 27"}));
    })
    .unwrap();
    assert_eq!(space.cartesian(), 48_000_000_000_000);
    assert_eq!(space.configurations().take(1000).flatten().count(), 1000);
}

#[test]
fn lines_are_read_one_by_one() {
    let text = "{\"id\": \"a\", \"defines\": {\"N\": 4, \"T\": \"float\", \"F\": true}, \"grid\": [10], \"block\": [32, 4]}\n\n\
                {\"blocks\": [1]}\n{\"args\": {\"n\": 7}}\n{\"grid\": [1, 2, 3, 4]}\nnot json\n";
    let found: Vec<Result<Configuration, String>> = lines(text.as_bytes()).collect();
    assert_eq!(found.len(), 5);
    let first = found[0].as_ref().unwrap();
    assert_eq!(first.id, "a");
    assert_eq!(
        (first.grid.unwrap().0, first.block.unwrap().0),
        ([10, 1, 1], [32, 4, 1])
    );
    let defines = ["F", "N", "T"].map(|name| first.defines[name].as_str());
    assert_eq!(defines, ["1", "4", "float"]);
    assert!(found[1].as_ref().unwrap_err().contains("line 3"));
    assert_eq!(found[2].as_ref().unwrap().id, 4);
    assert_eq!(found[2].as_ref().unwrap().args["n"], 7);
    assert!(
        found[3]
            .as_ref()
            .unwrap_err()
            .contains("one to three numbers")
    );
    assert!(found[4].as_ref().unwrap_err().contains("line 6"));
}

#[test]
fn a_cache_file_has_its_entries_by_their_values() {
    let space = space(|_| {}).unwrap();
    let mut cache = Cache::new(&space, "A100");
    let found = all(&space);
    cache.add(&found[0].id, Some(1.5));
    cache.add(&found[1].id, None);
    let file: Value = serde_json::from_str(&cache.text()).unwrap();
    assert_eq!(
        file["tune_params_keys"],
        json!([
            "block_size_x",
            "block_size_y",
            "tile",
            "loop_unroll_factor_k"
        ])
    );
    assert_eq!(file["tune_params"]["block_size_x"], json!([16, 32, 48, 64]));
    assert_eq!(file["cache"]["16,2,1,0"]["time"], 1.5);
    assert_eq!(file["cache"]["16,2,1,4"]["time"], "InvalidConfig");
    assert_eq!(file["cache"]["16,2,1,4"]["tile"], 1);
}
