//! `estimate --graph` and `estimate --data`.

use crate::Folder;

const ROWS: &str = "\
__global__ void rows(const int *start, const float *value, float *out) {
    int row = blockIdx.x * 64 + threadIdx.x;
    float sum = 0;
    for (int k = start[row]; k < start[row + 1]; ++k)
        sum += value[k < 9 ? k : k - 1];
    out[row] = sum;
}
__global__ void other(float *out) {
    out[threadIdx.x] = 0;
}
";

fn starts(count: i32, length: i32) -> Vec<u8> {
    (0..count)
        .flat_map(|row| (row * length).to_le_bytes())
        .collect()
}

#[test]
fn a_graph_is_a_picture_that_needs_nothing_else() {
    let folder = Folder::with("k.cu", ROWS);
    folder.estimate(&["--kernel", "rows", "--graph", "rows.svg"]);
    let svg = std::fs::read_to_string(folder.path().join("rows.svg")).expect("written");
    assert!(
        svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"") && svg.ends_with("</svg>\n")
    );
    assert!(svg.contains("prefers-color-scheme:dark") && svg.contains("load start[row]"));
    assert!(svg.contains("value[k &lt; 9 ? k : k - 1]") && svg.contains("line 5"));
    for outside in ["<script", "href", "url(http", "@import", "<image"] {
        assert!(!svg.contains(outside), "{outside}");
    }
    assert_eq!(svg.matches("http").count(), 1);
    let open = svg.matches('<').count() - svg.matches("</").count() - svg.matches("/>").count();
    assert_eq!(open, svg.matches("</").count(), "every element is closed");
}

#[test]
fn a_graph_is_of_one_kernel_on_one_gpu() {
    let folder = Folder::with("k.cu", ROWS);
    folder
        .run(&["estimate", "k.cu", "--graph", "g.svg"])
        .refused(&["choose one of rows, other", "--kernel"]);
    let two = ["--gpu", "gtx-280", "--gpu", "tesla-k40c"];
    let mut arguments = vec!["estimate", "k.cu", "--kernel", "rows", "--graph", "g.svg"];
    arguments.extend(two);
    folder.run(&arguments).refused(&["one GPU"]);
    folder
        .run(&[
            "estimate", "k.cu", "--kernel", "rows", "--graph", "no/g.svg",
        ])
        .refused(&["no/g.svg", "cannot write"]);
}

#[test]
fn contents_decide_how_long_rows_are() {
    let folder = Folder::with("k.cu", ROWS);
    folder.write("start.bin", starts(129, 6));
    let launch = ["--kernel", "rows", "--grid", "2", "--block", "64"];
    let mut given = launch.to_vec();
    given.extend(["--data", "start=start.bin"]);
    let known = folder.estimate(&given);
    let row_loop = &known["results"][0]["branches"][0];
    assert_eq!(row_loop["exact"], true, "{row_loop:#}");
    let loads = known["results"][0]["accesses"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|access| {
            access["text"]
                .as_str()
                .is_some_and(|text| text.starts_with("value"))
        });
    assert_eq!(loads.expect("there")["requests"], 4.0 * 6.0);
    let open = folder.estimate(&launch);
    assert_eq!(open["results"][0]["branches"][0]["exact"], false);
}

#[test]
fn wrong_contents_are_refused_in_words() {
    let folder = Folder::with("k.cu", ROWS);
    folder.write("odd.bin", [0; 6]);
    let refused = |data: &str, words: &[&str]| {
        folder
            .run(&["estimate", "k.cu", "--kernel", "rows", "--data", data])
            .refused(words);
    };
    refused("start=missing.bin", &["missing.bin", "`start`"]);
    refused("start=odd.bin", &["6 bytes", "elements of 4 bytes"]);
    refused("begin=odd.bin", &["`begin`", "`start`, `value`"]);
    refused("start", &["NAME=VALUE"]);
}

#[test]
fn short_contents_are_said() {
    let folder = Folder::with("k.cu", ROWS);
    folder.write("start.bin", starts(100, 6));
    let arguments = [
        "--kernel",
        "rows",
        "--grid",
        "2",
        "--block",
        "64",
        "--data",
        "start=start.bin",
    ];
    let short = folder.estimate(&arguments);
    let assumptions = short["results"][0]["assumptions"]
        .as_array()
        .expect("a list");
    let said = assumptions
        .iter()
        .find(|one| one["symbol"] == "contents(start)")
        .expect("said");
    let value = said["value"].as_str().unwrap_or_default();
    assert!(value.contains("element 100"), "{value}");
}
