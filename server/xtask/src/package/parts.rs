//! What is linked into the program: the bill of materials, and the licences that go with it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::{Value, json};

use super::{VERSION, archive};
use xtask::{process, repository};

/// A crate that is linked into the program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    name: String,
    version: String,
    /// An SPDX expression.
    licence: String,
    /// What the registry's archive of it hashes to; none of our own crates.
    sha256: Option<String>,
    folder: PathBuf,
    /// The names of others that it is linked with.
    needs: Vec<String>,
}

impl Part {
    fn url(&self) -> String {
        format!("pkg:cargo/{}@{}", self.name, self.version)
    }
}

/// What a program for that target is made of, by name.
#[derive(Debug)]
pub struct Parts(Vec<Part>);

impl Parts {
    /// Asks cargo.
    pub fn of(target: &str) -> anyhow::Result<Parts> {
        let root = repository::root();
        let mut cargo = Command::new("cargo");
        cargo.args(["metadata", "--locked", "--format-version", "1"]);
        cargo.args(["--filter-platform", target, "--manifest-path"]);
        cargo.arg(root.join("Cargo.toml"));
        let told = process::captured(&mut cargo, Duration::from_mins(5))?;
        if !told.success {
            bail!("cargo metadata: {}", told.errors.trim());
        }
        let lock = std::fs::read_to_string(root.join("Cargo.lock"))?;
        Self::read(&serde_json::from_str(&told.out)?, &toml::from_str(&lock)?)
    }

    fn read(metadata: &Value, lock: &toml::Table) -> anyhow::Result<Parts> {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let packages: BTreeMap<String, Value> = list(&metadata["packages"])
            .into_iter()
            .map(|package| (text(&package["id"]), package))
            .collect();
        let nodes: BTreeMap<String, Value> = list(&metadata["resolve"]["nodes"])
            .into_iter()
            .map(|node| (text(&node["id"]), node))
            .collect();
        // What runs at build time only is not in the program: build dependencies and procedural macros.
        let linked = |id: &str| -> Vec<String> {
            let node = nodes.get(id).unwrap_or(&Value::Null);
            list(&node["deps"])
                .iter()
                .filter(|dep| {
                    list(&dep["dep_kinds"])
                        .iter()
                        .any(|kind| kind["kind"].is_null())
                })
                .map(|dep| text(&dep["pkg"]))
                .filter(|id| !is_macro(packages.get(id)))
                .collect()
        };
        let top = packages
            .iter()
            .find(|(_, package)| package["name"] == "warplens")
            .map(|(id, _)| id.clone())
            .context("the workspace has no crate warplens")?;
        let mut seen = BTreeSet::from([top.clone()]);
        let mut open = vec![top];
        while let Some(id) = open.pop() {
            open.extend(linked(&id).into_iter().filter(|id| seen.insert(id.clone())));
        }
        let url = |id: &String| {
            let package = &packages[id];
            format!(
                "pkg:cargo/{}@{}",
                text(&package["name"]),
                text(&package["version"])
            )
        };
        let mut parts: Vec<Part> = seen
            .iter()
            .filter_map(|id| packages.get(id).map(|package| (id, package)))
            .map(|(id, package)| {
                let (name, version) = (text(&package["name"]), text(&package["version"]));
                let mut needs: Vec<String> = linked(id).iter().map(url).collect();
                needs.sort();
                Part {
                    sha256: checksum(lock, &name, &version),
                    // Older crates put a slash between the licences that one can choose from.
                    licence: text(&package["license"])
                        .replace('/', " OR ")
                        .replace("  ", " "),
                    folder: Path::new(&text(&package["manifest_path"]))
                        .parent()
                        .unwrap_or(Path::new(""))
                        .to_owned(),
                    name,
                    version,
                    needs,
                }
            })
            .collect();
        parts.sort();
        Ok(Parts(parts))
    }

    /// The bill of materials as `CycloneDX` 1.5, without what would differ between two makings of it.
    pub fn bill(&self) -> Value {
        let component = |part: &Part| {
            let own = part.name == "warplens";
            let mut component = json!({
                "type": if own { "application" } else { "library" },
                "bom-ref": part.url(),
                "name": part.name,
                "version": part.version,
                "licenses": [{ "expression": part.licence }],
                "purl": part.url(),
            });
            if let Some(sha256) = &part.sha256 {
                component["hashes"] = json!([{ "alg": "SHA-256", "content": sha256 }]);
            }
            component
        };
        let (own, others): (Vec<&Part>, Vec<&Part>) =
            self.0.iter().partition(|part| part.name == "warplens");
        json!({
            "bomFormat": "CycloneDX",
            "specVersion": "1.5",
            "version": 1,
            "metadata": { "component": own.first().map(|part| component(part)) },
            "components": others.into_iter().map(component).collect::<Vec<_>>(),
            "dependencies": self.0
                .iter()
                .map(|part| json!({ "ref": part.url(), "dependsOn": part.needs }))
                .collect::<Vec<_>>(),
        })
    }

    /// The licence texts of everything linked, each once, with the names of what it covers.
    pub fn notices(&self) -> anyhow::Result<String> {
        let mut covered: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut out = format!(
            "warplens {VERSION} contains the crates below, Rust's standard library (MIT OR Apache-2.0) and, where it is\n\
             linked statically, musl (MIT). Their licences follow.\n\n"
        );
        for part in &self.0 {
            let Part {
                name,
                version,
                licence,
                ..
            } = part;
            writeln!(out, "{name} {version}: {licence}")?;
            for file in archive::files(&part.folder)? {
                if is_licence(file.strip_prefix(&part.folder)?) {
                    let text = String::from_utf8_lossy(&std::fs::read(&file)?).replace('\r', "");
                    let text = text.trim().to_owned();
                    covered.entry(text).or_default().insert(name.clone());
                }
            }
        }
        for (text, names) in covered {
            let names = names.into_iter().collect::<Vec<_>>().join(", ");
            write!(out, "\n{}\n{names}\n\n{text}\n", "-".repeat(78))?;
        }
        Ok(out)
    }
}

fn is_macro(package: Option<&Value>) -> bool {
    let targets = package.and_then(|package| package["targets"].as_array());
    targets.into_iter().flatten().any(|target| {
        let kinds = target["kind"].as_array();
        kinds.into_iter().flatten().any(|kind| kind == "proc-macro")
    })
}

fn checksum(lock: &toml::Table, name: &str, version: &str) -> Option<String> {
    let packages = lock.get("package")?.as_array()?;
    let is = |package: &&toml::Value, key: &str, value: &str| {
        package.get(key).and_then(toml::Value::as_str) == Some(value)
    };
    let package = packages
        .iter()
        .find(|package| is(package, "name", name) && is(package, "version", version))?;
    Some(package.get("checksum")?.as_str()?.to_owned())
}

/// A file with a licence in it, also of C sources within a crate; none of a crate's tests.
fn is_licence(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.to_ascii_uppercase();
    let named = [
        "LICENSE",
        "LICENCE",
        "COPYING",
        "COPYRIGHT",
        "NOTICE",
        "UNLICENSE",
    ];
    let is_text = [".RS", ".H", ".C", ".TOML", ".JSON"]
        .iter()
        .all(|code| !name.ends_with(code));
    named.iter().any(|start| name.starts_with(start))
        && is_text
        && !path.components().any(|part| part.as_os_str() == "tests")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linked_is_what_the_program_needs_when_it_runs() {
        let package = |name: &str, kind: &str| {
            json!({ "id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0",
                    "manifest_path": "/c/Cargo.toml", "targets": [{ "kind": [kind] }] })
        };
        let dep = |name: &str, kind: Value| json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] });
        let metadata = json!({
            "packages": [package("warplens", "bin"), package("linked", "lib"), package("macro", "proc-macro"),
                         package("builds", "lib"), package("tests", "lib"), package("deeper", "lib")],
            "resolve": { "nodes": [
                { "id": "warplens", "deps": [dep("linked", Value::Null), dep("macro", Value::Null),
                    dep("builds", json!("build")), dep("tests", json!("dev"))] },
                { "id": "linked", "deps": [dep("deeper", Value::Null)] },
            ] },
        });
        let lock = toml::from_str(
            "[[package]]\nname = \"deeper\"\nversion = \"1.0.0\"\nchecksum = \"abc\"\n",
        )
        .unwrap();
        let parts = Parts::read(&metadata, &lock).unwrap();
        let bill = parts.bill();
        assert_eq!(bill["metadata"]["component"]["name"], "warplens");
        let names: Vec<&Value> = bill["components"]
            .as_array()
            .unwrap()
            .iter()
            .map(|component| &component["name"])
            .collect();
        assert_eq!(names, ["deeper", "linked"]);
        assert_eq!(bill["components"][0]["hashes"][0]["content"], "abc");
        assert_eq!(
            bill["components"][0]["licenses"][0]["expression"],
            "MIT OR Apache-2.0"
        );
        assert_eq!(
            bill["dependencies"][1],
            json!({ "ref": "pkg:cargo/linked@1.0.0", "dependsOn": ["pkg:cargo/deeper@1.0.0"] })
        );
    }

    #[test]
    fn licences_are_told_from_code_about_licences() {
        for (path, is) in [
            ("LICENSE-MIT", true),
            ("src/unicode/LICENSE", true),
            ("COPYING", true),
            ("src/license.rs", false),
            ("tests/LICENSE", false),
        ] {
            assert_eq!(is_licence(Path::new(path)), is, "{path}");
        }
    }
}
