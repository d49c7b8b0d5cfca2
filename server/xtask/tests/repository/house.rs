//! The house keeps its shape: arrows between rooms point down, files of a room form no circle, and nothing below the
//! database's inputs reads a file or a clock.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The crates of `server/`, by the name of their package without `warplens-`, from the top of the house down. A crate may
/// depend on those behind it. `warplens` is the binary.
const ROOMS: &[&str] = &[
    "lab",
    "xtask",
    "warplens",
    "python",
    "calibrate",
    "lsp",
    "report",
    "db",
    "tuning",
    "advice",
    "models",
    "toolchain",
    "facts",
    "codegen",
    "machine",
    "host",
    "hir",
    "ir",
    "syntax",
    "grammar-opencl",
    "base",
    "symbolic",
    "oracle",
    "latency",
];

/// Crates that compute answers: text in, data out. What they need of files they are given, or ask of `base::Files`.
const PURE: &[&str] = &[
    "db", "advice", "models", "facts", "codegen", "machine", "host", "hir", "ir", "syntax", "base",
    "symbolic",
];

/// The modules of these that read: the reader of regular files, the walk over folders, and what keeps both.
const READS: [(&str, &str); 3] = [("base", "files"), ("base", "regular"), ("base", "walk")];

/// What reads a file or a clock.
const IMPURE: &[&str] = &[
    "fs::",
    "File::open",
    "Instant::now",
    "SystemTime::now",
    "read_dir",
    "canonicalize",
    "WalkBuilder",
    ".is_file()",
    ".is_dir()",
];

/// Crates that are never shipped: they read the repository, and what they are told to.
const NEVER_SHIPPED: [&str; 4] = ["lab", "xtask", "oracle", "latency"];

/// What opens a file to be read, past the reader of regular files.
const OPENS: [&str; 4] = [
    "fs::read(",
    "fs::read_to_string",
    "File::open",
    "OpenOptions",
];

/// A module by its path in the crate: `build/loops`; the root is empty.
type Module = Vec<String>;

/// Folders of crates below `server/`, by the crate's short name.
fn crates() -> BTreeMap<String, PathBuf> {
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = BTreeMap::new();
    let mut folders = vec![server];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the repository") {
            let path = entry.expect("readable").path();
            let Ok(manifest) = fs::read_to_string(path.join("Cargo.toml")) else {
                continue;
            };
            let manifest: toml::Table = manifest.parse().expect("a manifest");
            let name = manifest["package"]["name"].as_str().expect("a name");
            let name = name.strip_prefix("warplens-").unwrap_or(name).to_owned();
            found.insert(name, path.clone());
            folders.push(path);
        }
    }
    found
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The modules of a crate with what is compiled of each outside of tests, without comments.
fn modules(crate_folder: &Path) -> BTreeMap<Module, String> {
    let root = crate_folder.join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let mut found = BTreeMap::new();
    for file in files {
        let path = file.strip_prefix(&root).expect("inside").with_extension("");
        let mut module: Module = path
            .components()
            .map(|part| part.as_os_str().to_string_lossy().into_owned())
            .collect();
        if module
            .last()
            .is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str()))
        {
            module.pop();
        }
        let tests = module
            .iter()
            .any(|part| part == "tests" || part == "properties");
        if !tests {
            found.insert(
                module,
                compiled(&fs::read_to_string(&file).expect("a source")),
            );
        }
    }
    found
}

/// A source up to its tests, without comments.
fn compiled(text: &str) -> String {
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    let code = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default());
    code.collect::<Vec<_>>().join("\n")
}

/// `a::{b, c::{d}}` as `a::b`, `a::c::d`.
fn paths_of(tree: &str, found: &mut Vec<String>) {
    let tree = tree.trim();
    let Some((before, list)) = tree.split_once('{') else {
        found.push(tree.to_owned());
        return;
    };
    let list = list.strip_suffix('}').unwrap_or(list);
    let (mut depth, mut start) = (0, 0);
    let mut part = |part: &str| {
        if !part.trim().is_empty() {
            paths_of(&format!("{before}{}", part.trim()), found);
        }
    };
    for (at, character) in list.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                part(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    part(&list[start..]);
}

/// Paths within the crate that a source names.
fn named(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = String::new();
    let mut parts = source.split("use ");
    rest.push_str(parts.next().unwrap_or_default());
    for part in parts {
        if let Some((tree, after)) = part.split_once(';') {
            paths_of(tree, &mut found);
            rest.push_str(after);
        }
    }
    for word in rest.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')) {
        if ["crate::", "super::", "self::"]
            .iter()
            .any(|head| word.starts_with(head))
        {
            found.push(word.to_owned());
        }
    }
    found
}

/// The modules that a module uses.
fn uses(module: &Module, source: &str, all: &BTreeMap<Module, String>) -> BTreeSet<Module> {
    let mut used = BTreeSet::new();
    for path in named(source) {
        let mut parts: Vec<&str> = path.split("::").map(str::trim).collect();
        let mut at = module.clone();
        match parts[0] {
            "crate" => at.clear(),
            "self" => {}
            "super" => {
                at.pop();
            }
            _ => continue,
        }
        parts.remove(0);
        // What is named last that is a module: the rest is an item of it.
        let mut deepest = at.clone();
        for part in parts {
            if part == "super" {
                at.pop();
            } else {
                at.push(part.to_owned());
            }
            if at.is_empty() || all.contains_key(&at) {
                deepest.clone_from(&at);
            } else if !all.keys().any(|other| other.starts_with(&at)) {
                // Not even a folder of modules.
                break;
            }
        }
        // A crate's root names its rooms and is named by all: it is no room itself.
        if deepest != *module && !deepest.is_empty() {
            used.insert(deepest);
        }
    }
    used
}

/// Everything that can be reached.
fn reached<'a>(
    from: &'a Module,
    graph: &'a BTreeMap<Module, BTreeSet<Module>>,
) -> BTreeSet<&'a Module> {
    let mut found = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        for next in graph.get(module).into_iter().flatten() {
            if found.insert(next) {
                open.push(next);
            }
        }
    }
    found
}

/// The circles of a crate: each the files of it, by name.
fn circles(crate_folder: &Path) -> Vec<Vec<String>> {
    let all = modules(crate_folder);
    let graph: BTreeMap<Module, BTreeSet<Module>> = all
        .iter()
        .filter(|(module, _)| !module.is_empty())
        .map(|(module, source)| (module.clone(), uses(module, source, &all)))
        .collect();
    let mut found: BTreeSet<Vec<String>> = BTreeSet::new();
    for module in graph.keys() {
        let ahead = reached(module, &graph);
        if ahead.contains(module) {
            let circle = ahead
                .into_iter()
                .filter(|other| reached(other, &graph).contains(module));
            found.insert(circle.map(|module| module.join("/")).collect());
        }
    }
    found.into_iter().collect()
}

#[test]
fn arrows_between_rooms_point_down() {
    let rank = |name: &str| ROOMS.iter().position(|room| *room == name);
    let mut wrong = Vec::new();
    for (name, folder) in crates() {
        let own =
            rank(&name).unwrap_or_else(|| panic!("`{name}` has no place in the list of rooms"));
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
        let manifest: toml::Table = manifest.parse().expect("a manifest");
        let Some(dependencies) = manifest.get("dependencies").and_then(toml::Value::as_table)
        else {
            continue;
        };
        for dependency in dependencies.keys() {
            let Some(other) = rank(dependency.strip_prefix("warplens-").unwrap_or(dependency))
            else {
                continue;
            };
            if other <= own {
                wrong.push(format!("{name} depends on {dependency}, which is above it"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_of_a_room_form_no_circle() {
    let mut wrong = Vec::new();
    for (name, folder) in crates() {
        let found = circles(&folder).into_iter();
        wrong.extend(found.map(|circle| format!("{name}: a circle of {}", circle.join(", "))));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_computes_answers_reads_no_file_and_no_clock() {
    let mut wrong = Vec::new();
    for (name, folder) in crates() {
        if !PURE.contains(&name.as_str()) {
            continue;
        }
        for (module, source) in modules(&folder) {
            if READS.contains(&(name.as_str(), module.join("/").as_str())) {
                continue;
            }
            for word in IMPURE.iter().filter(|word| source.contains(**word)) {
                wrong.push(format!("{name}, {}: `{word}`", module.join("/")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Files are hostile: they are opened in one way, which ends, takes no more memory than allowed and leaves devices alone.
#[test]
fn one_module_opens_files() {
    let mut wrong = Vec::new();
    for (name, folder) in crates() {
        if NEVER_SHIPPED.contains(&name.as_str()) {
            continue;
        }
        for (module, source) in modules(&folder) {
            let module = module.join("/");
            if (name.as_str(), module.as_str()) == ("base", "regular") {
                continue;
            }
            for word in OPENS.iter().filter(|word| source.contains(**word)) {
                wrong.push(format!("{name}, {module}: `{word}`"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `syntax` hands out nodes whose kinds and fields are enumerations and nothing that gives their names as strings: who does
/// not see the parser cannot compare a string with a kind.
#[test]
fn only_syntax_and_what_it_is_measured_with_see_the_parser() {
    let mut seen = BTreeSet::new();
    for (name, folder) in crates() {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
        if manifest.contains("tree-sitter") {
            seen.insert(name);
        }
    }
    // The recorded typing sessions are timed against the parser alone.
    let expected = ["grammar-opencl", "latency", "syntax"].map(str::to_owned);
    assert_eq!(seen, BTreeSet::from(expected));
}

/// A new kind of statement is defined in `ir/kernel.rs`, made in `hir/lower/statements.rs`, and has an arm where each kind
/// has one: what it consists of, and what it means.
#[test]
fn a_new_kind_of_statement_is_eight_files() {
    let folders = crates();
    let kernel = fs::read_to_string(folders["ir"].join("src/kernel.rs")).expect("the IR");
    let (_, list) = kernel.split_once("pub enum StmtKind {").expect("its kinds");
    let variant = |line: &str| {
        let name = line.strip_prefix("    ")?;
        let length = name.find(|letter: char| !letter.is_alphanumeric())?;
        (length > 0).then(|| name[..length].to_owned())
    };
    let kinds: Vec<String> = list
        .lines()
        .take_while(|line| *line != "}")
        .filter_map(variant)
        .collect();
    assert!(
        kinds.contains(&"Barrier".to_owned()) && kinds.len() > 9,
        "{kinds:?}"
    );
    let names_all = |source: &String| {
        kinds
            .iter()
            .all(|kind| source.contains(&format!("StmtKind::{kind}")))
    };
    let mut arms = Vec::new();
    for (name, folder) in folders {
        let sources = modules(&folder).into_iter();
        let found = sources.filter(|(_, source)| names_all(source));
        arms.extend(found.map(|(module, _)| format!("{name}/{}", module.join("/"))));
    }
    let expected = [
        "advice/subjects/exchange",
        "codegen/build/control",
        "codegen/build/touched",
        "facts/execute",
        "facts/lockstep/execute",
        "ir/walk",
    ];
    assert_eq!(arms, expected);
}

#[test]
fn a_circle_is_seen() {
    let sources = BTreeMap::from([
        (
            vec!["a".to_owned()],
            "use crate::b::{self, c::D};".to_owned(),
        ),
        (vec!["b".to_owned()], "fn f() {}".to_owned()),
        (
            vec!["b".to_owned(), "c".to_owned()],
            "fn g() { super::super::a::h() }".to_owned(),
        ),
    ]);
    let graph: BTreeMap<Module, BTreeSet<Module>> = sources
        .iter()
        .map(|(module, source)| (module.clone(), uses(module, source, &sources)))
        .collect();
    let a = vec!["a".to_owned()];
    assert!(reached(&a, &graph).contains(&a));
    assert!(!reached(&vec!["b".to_owned()], &graph).contains(&a));
}
