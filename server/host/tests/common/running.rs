//! Programs that are run.

use warplens_hir::{Unit, outline};
use warplens_host::{Device, LaunchSite, Run, RunEvents, run};

use super::expanded;

/// What a program does where it is started with these arguments.
pub fn ran(text: &str, arguments: &[&str]) -> RunEvents {
    ran_under(text, arguments, &[])
}

pub fn ran_under(text: &str, arguments: &[&str], environment: &[(&str, &str)]) -> RunEvents {
    ran_on(None, text, arguments, environment)
}

pub fn ran_on(
    device: Option<Device>,
    text: &str,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> RunEvents {
    let parsed = expanded(text);
    let items = outline(&parsed);
    let unit = Unit::new(&parsed, &items, None, false);
    let how = Run {
        name: "main".to_owned(),
        arguments: Some(arguments.iter().map(|word| (*word).to_owned()).collect()),
        environment: environment
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        device,
    };
    run(&[(&parsed, &items)], &unit, &how).expect("a program with `main`")
}

/// The launches of `k(int *data, int n)` by a `main` with that body.
pub fn launches(before: &str, body: &str) -> Vec<LaunchSite> {
    let text = format!(
        "__global__ void k(int *data, int n) {{ if (threadIdx.x < n) n = data[threadIdx.x]; }}\n\
         {before}\nint main(int argc, char **argv) {{\n{body}\nreturn 0; }}\n"
    );
    ran(&text, &["16"]).sites
}

/// The second argument of the only launch.
pub fn n(before: &str, body: &str) -> Option<i64> {
    let sites = launches(before, body);
    assert_eq!(sites.len(), 1, "{body}");
    sites[0].arguments[1]
}

/// The integers in some bytes.
pub fn words(bytes: Option<&[u8]>) -> Option<Vec<i32>> {
    let words = bytes?.chunks_exact(4);
    Some(
        words
            .map(|word| i32::from_le_bytes(word.try_into().expect("four bytes")))
            .collect(),
    )
}

/// What the first argument of the only launch points to.
pub fn data(before: &str, body: &str) -> Option<Vec<i32>> {
    let sites = launches(before, body);
    assert_eq!(sites.len(), 1, "{body}");
    words(sites[0].contents[0].as_deref())
}

/// Launches `k` with an array of `n` integers.
pub const LAUNCH: &str = "int *d; cudaMalloc(&d, n * sizeof(int)); k<<<1, 32>>>(d, n);";

/// Bodies of `main` that leave a value in `n`, with that value; `None`: it must stay unknown.
pub fn come_to(before: &str, cases: &[(&str, Option<i64>)]) {
    for (body, expected) in cases {
        let body = format!("int n = 0; {body} {LAUNCH}");
        assert_eq!(n(before, &body), *expected, "{body}");
    }
}

/// A number that a program reads.
pub const READ: &str = "int u = 0; scanf(\"%d\", &u);";
