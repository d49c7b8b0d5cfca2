//! How well a kernel was understood, under which of its launches, and with which headers.

use serde_json::json;

use crate::Folder;

const PARTIAL: &str = "\
#include \"nowhere.h\"
__global__ void walk(float *out, const float *in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[mystery(i)];
    out[i] = in[riddle(i)];
}
__global__ void fine(float *out) {
    out[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}
";

#[test]
fn losses_are_told_kernel_by_kernel_and_with_their_places_where_asked_for() {
    let folder = Folder::with("k.cu", PARTIAL);
    let document = folder
        .run(&["check", "k.cu", "--format", "json", "--stats", "--losses"])
        .json();
    let stats = &document["stats"];
    assert_eq!(stats["clean"], 1, "{stats:#}");
    assert_eq!(stats["partial"], 1, "{stats:#}");
    assert_eq!(stats["missing_includes"], json!({"nowhere.h": 1}));
    let losses = stats["losses"].as_array().expect("a list");
    let reasons = stats["reasons"].as_object().expect("reasons").values();
    let counted: u64 = reasons.filter_map(serde_json::Value::as_u64).sum();
    assert_eq!(losses.len() as u64, counted, "{stats:#}");
    assert!(losses.len() >= 2, "{stats:#}");
    let first = &losses[0];
    assert_eq!(first["kernel"], "walk");
    assert_eq!(first["line"], 4, "{first:#}");
    let text = first["text"].as_str().expect("the statement's text");
    assert!(text.contains("mystery(i)"), "{first:#}");
    let reason = first["reason"].as_str().expect("a reason");

    let count = format!("walk in k.cu: {} statements not understood\n", losses.len());
    let human = folder.run(&["check", "k.cu", "--stats"]);
    assert!(human.out.contains(&count), "{}", human.out);
    assert!(!human.out.contains("fine in k.cu"), "{}", human.out);
    assert!(!human.out.contains("mystery"), "{}", human.out);
    assert!(human.out.contains("nowhere.h"), "{}", human.out);
    let each = folder.run(&["check", "k.cu", "--stats", "--losses"]);
    let place = format!("k.cu:4:{}: {reason}: ", first["column"]);
    assert!(each.out.contains(&place), "`{place}` in {}", each.out);
    // Without the option they are not listed, but the time is marked as that of the rest.
    let quiet = folder.run(&["check", "k.cu"]);
    assert!(!quiet.out.contains(&count), "{}", quiet.out);
    let time_of = |kernel: &str| {
        let mut lines = quiet.out.lines().map(str::trim_start);
        let line = lines.find(|line| line.starts_with(kernel));
        line.is_some_and(|line| line.contains("`?"))
    };
    assert!(time_of("walk") && !time_of("fine"), "{}", quiet.out);

    let page = folder.run(&["estimate", "k.cu"]);
    let count = format!("{} statements not understood", losses.len());
    assert_eq!(page.out.matches(&count).count(), 1, "{}", page.out);
    assert_eq!(
        page.out.matches("headers not found: nowhere.h").count(),
        1,
        "{}",
        page.out
    );
    let document = folder.estimate(&[]);
    let lost = |at: usize| document["results"][at]["not_understood"].as_array();
    assert_eq!(lost(0), Some(losses));
    assert_eq!(lost(1), Some(&Vec::new()));
    assert_eq!(document["missing_includes"], json!(["nowhere.h"]));
}

#[test]
fn each_launch_of_a_kernel_is_a_result() {
    let folder = Folder::with(
        "k.cu",
        "__global__ void fill(float *out) { out[blockIdx.x * blockDim.x + threadIdx.x] = 1; }\n\
         void host(float *out) {\n    fill<<<64, 256>>>(out);\n    fill<<<8, 32>>>(out);\n    \
         fill<<<64, 256>>>(out);\n}\n",
    );
    let document = folder.estimate(&[]);
    let results = document["results"].as_array().expect("results");
    let launches: Vec<_> = results
        .iter()
        .map(|result| {
            (
                result["launch"]["grid"][0].as_u64(),
                result["launch"]["block"][0].as_u64(),
                result["variant"].clone(),
            )
        })
        .collect();
    let variant = |number, text| json!({"number": number, "of": 2, "text": text});
    assert_eq!(
        launches,
        [
            (Some(64), Some(256), variant(1, "<<<64, 256>>>")),
            (Some(8), Some(32), variant(2, "<<<8, 32>>>")),
        ]
    );
    let page = folder.run(&["estimate", "k.cu"]);
    assert!(
        page.out.contains("launch 2 of 2: <<<8, 32>>>"),
        "{}",
        page.out
    );
}

#[test]
fn an_access_in_a_header_is_told_with_the_headers_name() {
    let folder = Folder::with(
        "k.cu",
        "#include \"pick.cuh\"\n__global__ void copy(float *out, const float *in) {\n    \
         int i = blockIdx.x * blockDim.x + threadIdx.x;\n    out[i] = pick(in, i);\n}\n",
    );
    folder.write(
        "pick.cuh",
        "__device__ float pick(const float *p, int i) {\n    return p[32 * i];\n}\n",
    );
    let page = folder.run(&["estimate", "k.cu"]);
    let row = page.out.lines().find(|line| line.contains("p[32 * i]"));
    assert!(
        row.is_some_and(|row| row.contains("pick.cuh:2")),
        "{}",
        page.out
    );
}

#[test]
fn a_file_is_read_as_a_part_of_its_project() {
    let text = "#include \"sizes.h\"\n__global__ void k(float *a) { a[threadIdx.x] = 0; }\n\
                void run(float *a) { k<<<4, THREADS>>>(a); }\n";
    let folder = Folder::with("app/src/k.cu", text);
    folder.write("app/include/sizes.h", "#define THREADS 192\n");
    let block = |folder: &Folder, arguments: &[&str]| {
        let document = folder.run(arguments).json();
        document["results"][0]["launch"]["block"].clone()
    };
    // From the project's folder.
    let estimate = ["estimate", "app/src/k.cu", "--format", "json"];
    assert_eq!(block(&folder, &estimate), json!([192, 1, 1]));
    // From elsewhere: what marks the folder of a project says where it begins.
    let elsewhere = Folder::new();
    let path = folder.path().join("app/src/k.cu");
    let path = path.to_str().expect("UTF-8");
    let estimate = ["estimate", path, "--format", "json"];
    assert_eq!(block(&elsewhere, &estimate), json!([256, 1, 1]));
    folder.write("app/compile_commands.json", "[]");
    assert_eq!(block(&elsewhere, &estimate), json!([192, 1, 1]));
}
