//! A kernel that is called clean has lost nothing: each subscript and each dereference that a simple, separate
//! reading of the text finds in its body is among its accesses.
//!
//! `CLEAN_DIRS="DIR…" cargo test --package warplens --test clean -- --nocapture` looks at other
//! people's code as well and prints what it misses there.

// What a run was worth is printed, for `--nocapture` and for failures.
#![allow(clippy::print_stdout)]

mod demands;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use demands::Demand;
use serde_json::Value;
use text::{LineColumn, Text, Token};

/// What one file's answers are worth.
#[derive(Debug, Default)]
struct Verdict {
    /// Names of the kernels that were answered for.
    kernels: BTreeSet<String>,
    /// Those that nothing was lost of.
    clean: BTreeSet<String>,
    /// `file:line: kernel: reason: text` of each loss.
    losses: Vec<String>,
    /// Clean kernels that the counter could read, and what it asked for there.
    counted: usize,
    demands: usize,
    /// `file:line: kernel: text` of each demand that no access answers.
    misses: Vec<String>,
}

impl Verdict {
    fn add(&mut self, other: Verdict) {
        self.kernels.extend(other.kernels);
        self.clean.extend(other.clean);
        self.losses.extend(other.losses);
        self.counted += other.counted;
        self.demands += other.demands;
        self.misses.extend(other.misses);
    }
}

#[test]
fn our_own_kernels_lose_nothing_silently() {
    let verdict = verdict_of(&files(&[
        root().join("tests/kernels"),
        root().join("tests/fixtures"),
        root().join("server/advice/src/rules"),
    ]));
    println!(
        "{} clean kernels read, {} demands",
        verdict.counted, verdict.demands
    );
    assert!(
        verdict.counted >= 80 && verdict.demands >= 300,
        "{} {}",
        verdict.counted,
        verdict.demands
    );
    assert_none(&verdict.misses);
}

#[test]
fn the_corpus_is_found_and_clean() {
    let files = files(&[root().join("tests/corpus")]);
    let mut verdict = Verdict::default();
    let (mut expected, mut found, mut clean) = (0, 0, 0);
    let mut missing = Vec::new();
    for file in &files {
        let source = std::fs::read_to_string(file).expect("a readable file");
        let line = source.lines().next().unwrap_or_default();
        let names = line
            .strip_prefix("// kernels: ")
            .unwrap_or_else(|| panic!("{} does not list its kernels", file.display()));
        let one = look(file);
        for name in names.split_whitespace() {
            expected += 1;
            found += usize::from(one.kernels.contains(name));
            clean += usize::from(one.clean.contains(name));
            if !one.kernels.contains(name) {
                missing.push(format!("{}: {name}", shown(file)));
            }
        }
        let listed: BTreeSet<&str> = names.split_whitespace().collect();
        let extra: Vec<_> = one
            .kernels
            .iter()
            .filter(|name| !listed.contains(name.as_str()))
            .collect();
        assert!(
            extra.is_empty(),
            "{} has no kernel {extra:?}",
            file.display()
        );
        verdict.add(one);
    }
    println!(
        "{found} of {expected} kernels found, {clean} clean, {} demands",
        verdict.demands
    );
    for loss in &verdict.losses {
        println!("lost {loss}");
    }
    assert!(expected >= 60, "{expected}");
    assert!(
        verdict.counted * 10 >= clean * 9,
        "the counter read only {} of {clean}",
        verdict.counted
    );
    assert_none(&missing);
    assert_none(&verdict.misses);
    assert_eq!(clean, expected, "all of it is understood");
}

/// Our kernels; with `CLEAN_DIRS`, other people's.
#[test]
fn clean_kernels_lose_nothing_silently() {
    let folders = std::env::var("CLEAN_DIRS")
        .unwrap_or_else(|_| format!("{}/../../tests/kernels", env!("CARGO_MANIFEST_DIR")));
    let folders: Vec<PathBuf> = folders.split_whitespace().map(PathBuf::from).collect();
    let verdict = verdict_of(&files(&folders));
    println!(
        "{} clean kernels read, {} demands, {} misses",
        verdict.counted,
        verdict.demands,
        verdict.misses.len()
    );
    assert!(verdict.counted > 0, "no clean kernel was read");
    assert_none(&verdict.misses);
}

/// The counter itself: what it asks for in one body, by the text of each demand.
#[test]
fn the_counter_tells_an_access_from_an_address() {
    let cases: &[(&str, &[&str])] = &[
        ("a[i] = b[i + 1];", &["a[i]", "b[i+1]"]),
        ("a[b[i]] = 0;", &["a[b[i]]", "b[i]"]),
        (
            "float x[4], y[2][2] = {0}; x[0] = y[1][k];",
            &["x[0]", "y[1][k]"],
        ),
        ("float y[2][2]; float *row = y[1];", &[]),
        ("float *p = &a[i]; float *q = a + i;", &[]),
        ("atomicAdd(&a[i], 1);", &["a[i]"]),
        ("*p = 1; if (x) *p = 2; else *q++ = 3;", &["*p", "*p", "*q"]),
        ("int c = a * b; c = (a) * b; c = a[0] * b;", &["a[0]"]),
        (
            "float v = *(p + i) + *(const float *)q;",
            &["*(p+i)", "*(constfloat*)q"],
        ),
        (
            "float *p = &(a[i]); x = (int)(a[i]); n = sizeof(T) * (k + 1);",
            &["a[i]"],
        ),
        ("#define SAY(...)\nSAY(a[i]); f(&(a[i]), a[i]);", &["a[i]"]),
        (
            "if constexpr (N > 1) { a[i] = 1; } else if (x) b[i] = 2; else c[i] = 3; d[i] = 4;",
            &["d[i]"],
        ),
        ("#define NONE(...) do {} while (0)\nNONE(a[i]);", &[]),
        (
            "*reinterpret_cast<float4*>(&a[i]) = v;",
            &["*reinterpret_cast<float4*>(&a[i])"],
        ),
        (
            "float4 v = reinterpret_cast<const float4*>(a)[i];",
            &["reinterpret_cast<constfloat4*>(a)[i]"],
        ),
        ("float **p = q; T *const *r = s;", &[]),
        ("p->x = s[i].y;", &["p->x", "s[i].y"]),
        ("float v; float *p = &v; *p = 1; p[0] = 2; p->x = 3;", &[]),
        ("float &r = a[i]; r = 1;", &[]),
        ("auto f = [=](int k) { return a[k]; };", &["a[k]"]),
        ("auto f = [](float *x) -> float { return *x; };", &["*x"]),
        ("int n = sizeof(a[0]); decltype(a[0]) x = 0;", &[]),
        ("#if 0\na[i] = 1;\n#else\nb[i] = 1;\n#endif\n", &["b[i]"]),
        ("#ifdef __CUDA_ARCH__\na[i] = 1;\n#endif\n", &[]),
        (
            "#define A(k) a[k]\n#define B(k) (A(k) + 1)\nx = B(3);",
            &["B(3)"],
        ),
        ("#define N(k) ((k) + 1)\nx = N(3) + N(a[i]);", &["a[i]"]),
        (
            "(*p).x = 1; (*rows)[i] = 2;",
            &["(*p", "(*rows", "(*rows)[i]"],
        ),
        (
            "T *p = new T[4]; delete[] p; [[maybe_unused]] int k = 0;",
            &[],
        ),
        (
            "for (const float *p = a, *end = a + n; p < end; ++p) s += *p;",
            &["*p"],
        ),
        (
            "case_of: switch (a[i]) { case 1: *p = 2; break; default: f(x ? *p : *q); }",
            &["a[i]", "*p", "*p", "*q"],
        ),
    ];
    for (body, wanted) in cases {
        let source = format!("__global__ void k(float *a) {{\n{body}\n}}\n");
        let texts = text::read(&source);
        let kernels = texts[0].kernels();
        assert_eq!(kernels.len(), 1, "{body}");
        let found = demands::demands(&texts[0], kernels[0].body.clone());
        let found: Vec<&str> = found.iter().map(|demand| demand.text.as_str()).collect();
        let mut found: Vec<&str> = found;
        let mut wanted = wanted.to_vec();
        found.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(found, wanted, "{body}");
    }
}

#[track_caller]
fn assert_none(lines: &[String]) {
    assert!(
        lines.is_empty(),
        "{} missing:\n{}",
        lines.len(),
        lines.join("\n")
    );
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the repository")
}

fn shown(file: &Path) -> String {
    file.strip_prefix(root())
        .unwrap_or(file)
        .display()
        .to_string()
}

/// The sources under some folders, in order.
fn files(folders: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = folders.to_vec();
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            let kinds = ["cu", "cuh", "cl", "hip", "cpp"];
            if path.is_dir() {
                open.push(path);
            } else if path
                .extension()
                .is_some_and(|kind| kinds.iter().any(|known| kind == *known))
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn verdict_of(files: &[PathBuf]) -> Verdict {
    let queue = Mutex::new(files.iter());
    let sum = Mutex::new(Verdict::default());
    let workers = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let Some(file) = queue.lock().expect("no panic").next() else {
                        return;
                    };
                    let one = look(file);
                    sum.lock().expect("no panic").add(one);
                }
            });
        }
    });
    let mut verdict = sum.into_inner().expect("no panic");
    verdict.misses.sort();
    verdict
}

fn warplens(arguments: &[&str], file: &Path) -> Option<Value> {
    let output = Command::new(env!("CARGO_BIN_EXE_warplens"))
        .args(&arguments[..1])
        .arg(file)
        .args(&arguments[1..])
        // A developer's own profiles are no part of a test; Cargo's folder for tests holds none.
        .env("XDG_CONFIG_HOME", env!("CARGO_TARGET_TMPDIR"))
        .env("APPDATA", env!("CARGO_TARGET_TMPDIR"))
        .output()
        .expect("warplens runs");
    serde_json::from_slice(&output.stdout).ok()
}

/// Asks about one file and compares.
fn look(file: &Path) -> Verdict {
    let mut verdict = Verdict::default();
    let source =
        String::from_utf8_lossy(&std::fs::read(file).expect("a readable file")).into_owned();
    let check = warplens(&["check", "--format", "json", "--stats", "--losses"], file);
    let estimate = warplens(&["estimate", "--format", "json"], file);
    let (Some(check), Some(estimate)) = (check, estimate) else {
        return verdict;
    };
    let empty = Vec::new();
    let mut lossy = BTreeSet::new();
    for loss in check["stats"]["losses"].as_array().unwrap_or(&empty) {
        let text = |key: &str| loss[key].as_str().unwrap_or_default().to_owned();
        lossy.insert(text("kernel"));
        verdict.losses.push(format!(
            "{}:{}: {}: {}: {}",
            shown(Path::new(&text("file"))),
            loss["line"],
            text("kernel"),
            text("reason"),
            text("text")
        ));
    }
    // A template has one result for each set of arguments: together they are the kernel.
    let mut answers: BTreeMap<(String, u32), Vec<Answer>> = BTreeMap::new();
    for result in estimate["results"].as_array().unwrap_or(&empty) {
        let name = result["kernel"].as_str().unwrap_or_default().to_owned();
        let line = result["line"].as_u64().unwrap_or(0) as u32;
        verdict.kernels.insert(name.clone());
        if !lossy.contains(&name) {
            verdict.clean.insert(name.clone());
            let places = answers.entry((name, line)).or_default();
            let own = result["file"].as_str().unwrap_or_default();
            places.extend(
                result["accesses"]
                    .as_array()
                    .unwrap_or(&empty)
                    .iter()
                    .filter_map(|access| Answer::of(access, own)),
            );
        }
    }
    let texts = text::read(&source);
    let private = private_arrays(&texts);
    for ((name, line), places) in &answers {
        let Some((demands, text)) = demands_at(&texts, *line) else {
            continue;
        };
        verdict.counted += 1;
        for demand in demands {
            verdict.demands += 1;
            // The compiled kernel keeps it in registers: that is no memory.
            let base = demand.text.split(['[', '.', '-']).next().unwrap_or("");
            let bytes = demand.text.ends_with(')')
                && (demand.text.rsplit_once("(&")).is_some_and(|(_, name)| {
                    let element = name.split('[').next().unwrap_or_default();
                    private.contains(element)
                        || name[..name.len() - 1]
                            .bytes()
                            .all(|b| b.is_ascii_alphanumeric() || b == b'_')
                });
            if bytes || private.contains(base.trim_start_matches(['*', '('])) {
                continue;
            }
            // A class may have its own subscript, here or in a header.
            let operators = text.includes || text.tokens.iter().any(|token| token.is("operator"));
            if !places.iter().any(|place| place.answers(&demand, operators)) {
                verdict.misses.push(format!(
                    "{}:{}: {name}: {}",
                    shown(file),
                    demand.from.0,
                    demand.text
                ));
            }
        }
    }
    verdict
}

/// Names of arrays that are declared as a thread's own, or given to a function as such, somewhere in these texts, and that no
/// kernel is given.
fn private_arrays(texts: &[Text]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for text in texts {
        let tokens = &text.tokens;
        for at in 1..tokens.len().saturating_sub(1) {
            let reference = tokens[at + 1].is(")") && tokens[at - 1].is("&");
            if !(tokens[at + 1].is("[") || reference) || !is_word(&tokens[at].text) {
                continue;
            }
            // Back to the statement's start: a type, and names with their extents before this one.
            let mut words = 0;
            let mut closed = 0;
            let declared = tokens[..at].iter().rev().find_map(|token| {
                let it = token.text.as_str();
                let opens = matches!(it, "[" | "{") && closed > 0;
                closed += i32::from(matches!(it, "]" | "}")) - i32::from(opens);
                match it {
                    _ if closed > 0 || opens => None,
                    ";" | "{" | "}" | "(" | ":" if !(it == "(" && reference && words == 0) => {
                        Some(words > 0)
                    }
                    "__shared__" | "__constant__" | "extern" | "return" | "else" | "case" => {
                        Some(false)
                    }
                    "," | "::" | "<" | ">" | "*" | "&" | "=" | "]" | "(" => None,
                    word if is_word(word) || word.bytes().all(|b| b.is_ascii_digit()) => {
                        words += 1;
                        None
                    }
                    _ => Some(false),
                }
            });
            if declared == Some(true) {
                found.insert(tokens[at].text.clone());
            }
        }
    }
    for text in texts {
        vectors(&text.tokens, &mut found);
    }
    for text in texts {
        let mut given = false;
        for token in &text.tokens {
            given |= token.is("__global__");
            given &= !token.is("{") && !token.is(";");
            if given {
                found.remove(&token.text);
            }
        }
    }
    found
}

/// Adds the names of variables whose type is a vector of the compiler's: `half8 a = …`.
fn vectors(tokens: &[Token], found: &mut BTreeSet<String>) {
    let attributes = tokens
        .windows(3)
        .filter(|three| three[2].is("__attribute__"));
    // `using half8 = __attribute__((…)) …`, or `typedef … half8 __attribute__((…))`.
    let named = attributes.map(|three| &three[usize::from(!three[1].is("="))]);
    let types: BTreeSet<&str> = named.map(|name| name.text.as_str()).collect();
    for three in tokens.windows(3) {
        let [ty, name, behind] = three else { continue };
        if types.contains(ty.text.as_str()) && (behind.is("=") || behind.is(";")) {
            found.insert(name.text.clone());
        }
    }
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// The position of an access in the kernel: its own, or that of the call that leads to it.
struct Answer {
    place: LineColumn,
    called: bool,
}

impl Answer {
    /// None where it does not stand in the file of the kernel.
    fn of(access: &Value, own: &str) -> Option<Answer> {
        let call = access["via"].as_array().and_then(|via| via.first());
        let at = call.unwrap_or(access);
        let number = |key: &str| at[key].as_u64().unwrap_or(0) as u32;
        (at["file"].as_str() == Some(own)).then(|| Answer {
            place: (number("line"), number("column")),
            called: call.is_some(),
        })
    }

    fn answers(&self, demand: &Demand, operators: bool) -> bool {
        if self.called {
            let first = demand
                .call
                .map_or(demand.from.0, |line| line.min(demand.from.0));
            let possible = operators || demand.call.is_some();
            return possible && (first..=demand.to.0).contains(&self.place.0);
        }
        demand.from <= self.place && self.place <= demand.to
    }
}

/// The demands of the kernel whose name is on a line: in its body, or in the macro that makes it.
fn demands_at(texts: &[Text], line: u32) -> Option<(Vec<Demand>, &Text)> {
    for text in texts {
        let kernels = text.kernels();
        if let Some(kernel) = kernels
            .iter()
            .find(|kernel| (kernel.lines.0..=kernel.lines.1).contains(&line))
        {
            return Some((demands::demands(text, kernel.body.clone()), text));
        }
        // A macro's use, outside of every kernel.
        let makes = |at: &usize| {
            let token = &text.tokens[*at];
            token.place.0 == line
                && text.find(&token.text, line).is_some_and(|found| {
                    found.body.iter().any(|token| token.is("__global__"))
                        && found.body.iter().any(|token| token.is("}"))
                })
        };
        if let Some(at) = (0..text.tokens.len()).find(makes) {
            return Some((demands::demands(text, at..text.close(at + 1) + 1), text));
        }
    }
    None
}
