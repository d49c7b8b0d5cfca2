//! The JSON Schema of profile files, the table of keys in their README and the list of GPUs say what the loader does.
//! `WARPLENS_BLESS=1` writes them anew.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use warplens_machine::{Profile, Profiles, Property};

const SCHEMA: &str = "docs/schemas/profile.schema.json";
const README: &str = "hw-profiles/README.md";
const GPUS: &str = "docs/gpus.md";
const BEGIN: &str = "<!-- keys: generated from the schema in server/machine/src/profile.rs -->\n";
const END: &str = "<!-- end of keys -->\n";

fn schema() -> Value {
    let text = || json!({"type": "string", "minLength": 1});
    let source = json!({
        "type": "string", "minLength": 1,
        "description": "Where it is stated; `estimated: <rule>` where it is unpublished."
    });
    let entry = |value: Value, about: &str| {
        json!({
            "type": "object", "description": about, "additionalProperties": false,
            "required": ["value", "source"], "properties": {"value": value, "source": source}
        })
    };
    let mut properties = Map::new();
    properties.insert(
        "schema".into(),
        json!({"const": 1, "description": "Version of the format."}),
    );
    for (key, about) in [
        ("name", "The name on the box."),
        (
            "architecture",
            "Such as `sm_80`; its file in `architectures/` gives what this file leaves out.",
        ),
    ] {
        let mut value = text();
        value["description"] = about.into();
        properties.insert(key.into(), value);
    }
    properties.insert(
        "id".into(),
        json!({"type": "string", "pattern": "^[a-z0-9-]+$", "description": "The id users write."}),
    );
    properties.insert("vendor".into(), json!({"enum": ["nvidia", "amd", "intel"]}));
    properties.insert(
        "compute_capability".into(),
        json!({
            "type": "string",
            "pattern": "^[0-9]+\\.[0-9]+$",
            "description": "NVIDIA only: major and minor."
        }),
    );
    for rule in Profile::rule_keys() {
        properties.insert(
            rule.name.into(),
            entry(json!({"enum": rule.choices}), rule.about),
        );
    }
    for key in Profile::keys() {
        let kind = if key.whole { "integer" } else { "number" };
        let about = format!("{} Unit: {}.", key.about.trim(), key.unit);
        let value = json!({"type": kind, "minimum": key.min, "maximum": key.max});
        properties.insert(key.name.into(), entry(value, &about));
    }
    let weight = |property| {
        let (min, max) = Profile::weight_range(property);
        let value = json!({"type": "number", "minimum": min, "maximum": max});
        entry(value, "What one unit costs. Unit: ps.")
    };
    let names: Vec<String> = Property::all().map(|known| known.to_string()).collect();
    let overlap = Property::Overlap.to_string();
    properties.insert(
        "linear_weights".into(),
        json!({
            "type": "object",
            "description": "Fitted weights of the linear model (docs/models/linear.md): what one \
                            unit of a property costs the whole device.",
            "propertyNames": {"enum": names},
            "properties": {overlap: weight(Property::Overlap)},
            "additionalProperties": weight(Property::Launch)
        }),
    );
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "warplens hardware profile",
        "description": "One GPU, or what the GPUs of an architecture share.",
        "type": "object",
        "required": ["schema", "architecture"],
        "additionalProperties": false,
        "properties": properties
    })
}

fn table() -> String {
    let mut text = String::from("| key | unit | needed | meaning |\n| --- | --- | --- | --- |\n");
    for key in Profile::keys() {
        let (needed, rule) = match (key.derived_by(), key.required) {
            (Some(rule), _) => ("derived", format!(" Where it is not stated: {rule}.")),
            (None, true) => ("yes", String::new()),
            (None, false) => ("", String::new()),
        };
        writeln!(
            text,
            "| `{}` | {} | {needed} | {}{rule} |",
            key.name,
            key.unit,
            key.about.trim()
        )
        .expect("a string grows");
    }
    text += "\n| key | names | meaning |\n| --- | --- | --- |\n";
    for rule in Profile::rule_keys() {
        let names = rule.choices.join("`, `");
        writeln!(text, "| `{}` | `{names}` | {} |", rule.name, rule.about).expect("a string grows");
    }
    text
}

/// Where the profiles stand on the web: they are no part of the book.
const REPOSITORY: &str = "https://github.com/warplens/warplens/blob/main/hw-profiles";

/// A page an architecture, by its name: every figure of its GPUs with its source.
fn architectures() -> BTreeMap<String, String> {
    let profiles = Profiles::builtin();
    let mut of_architecture: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for profile in profiles.iter() {
        let name = profile.architecture.clone();
        of_architecture.entry(name).or_default().push(profile);
    }
    let page = |(name, gpus): (String, Vec<Arc<Profile>>)| {
        let text = architecture(&name, &gpus);
        (name, text)
    };
    of_architecture.into_iter().map(page).collect()
}

fn architecture(name: &str, gpus: &[Arc<Profile>]) -> String {
    // What each GPU has: value with unit, and source, by key.
    let figures = |gpu: &Profile| -> BTreeMap<String, (String, String)> {
        let figures = gpu.figures().iter();
        let rules = gpu.rules().iter().map(|(key, rule)| {
            (
                key.clone(),
                (format!("`{}`", rule.value), rule.source.clone()),
            )
        });
        figures
            .map(|(key, figure)| {
                let value = format!("{} {}", figure.value, figure.unit);
                (
                    key.clone(),
                    (value.trim().to_owned(), figure.source.clone()),
                )
            })
            .chain(rules)
            .collect()
    };
    let all: Vec<_> = gpus.iter().map(|gpu| figures(gpu)).collect();
    let shared = |key: &String| all.iter().all(|one| one.get(key) == all[0].get(key));
    let mut text = format!(
        "# {name}\n\nEvery figure of the profiles of this architecture with its source; `estimated` says by which rule. \
         [All GPUs](../gpus.md)\n"
    );
    let table = |text: &mut String, rows: &[(&String, &(String, String))]| {
        text.push_str("\n| figure | value | source |\n| --- | --- | --- |\n");
        for (key, (value, source)) in rows {
            let source = source.replace('|', "\\|");
            writeln!(text, "| `{key}` | {value} | {source} |").expect("a string grows");
        }
    };
    if gpus.len() > 1 {
        let rows: Vec<_> = all[0].iter().filter(|(key, _)| shared(key)).collect();
        text.push_str("\n## What they share\n");
        table(&mut text, &rows);
    }
    for (gpu, figures) in gpus.iter().zip(&all) {
        let own = figures
            .iter()
            .filter(|(key, _)| gpus.len() == 1 || !shared(key));
        let rows: Vec<_> = own.collect();
        write!(text, "\n## {}\n\n{}\n", gpu.id, gpu.name).expect("a string grows");
        table(&mut text, &rows);
    }
    text
}

#[test]
fn the_pages_of_the_architectures_have_every_figure() {
    let pages = architectures();
    for (name, page) in &pages {
        let file = format!("docs/gpus/{name}.md");
        let (found, wanted) = published(&file, |_| page.clone());
        assert!(
            found == wanted,
            "{file} is out of date; run with WARPLENS_BLESS=1"
        );
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/gpus");
    for entry in std::fs::read_dir(folder).expect("docs/gpus is there") {
        let file = entry.expect("readable").file_name();
        let file = file.to_string_lossy();
        let known = file
            .strip_suffix(".md")
            .is_some_and(|name| pages.contains_key(name));
        assert!(known, "docs/gpus/{file} is about no architecture");
    }
}

/// The page about the GPUs: how they are called, their size, and where their figures come from.
fn gpus() -> String {
    let mut text = format!(
        "# GPUs\n\n\
         The built-in profiles. Each architecture leads to all figures of its GPUs with their sources, each id to its file.\n\
         *Measured* are figures that someone measured on that GPU or on another of its architecture, *stated* those of data\n\
         sheets, guides and papers, *estimated* unpublished ones, which follow the rule beside them or are\n\
         derived from other figures by one.\n\
         `warplens gpus ID` shows one in full. [Adding a GPU]({REPOSITORY}/README.md#adding-a-gpu) is adding a file. This page is\n\
         generated: `WARPLENS_BLESS=1 cargo test -p warplens-machine`.\n"
    );
    let profiles = Profiles::builtin();
    let mut all: Vec<_> = profiles.iter().collect();
    // Numbers of architectures in the order of their size: sm_90 before sm_100.
    all.sort_by_key(|p| (p.architecture.len(), p.architecture.clone(), p.id.clone()));
    for (vendor, title) in [("nvidia", "NVIDIA"), ("amd", "AMD"), ("intel", "Intel")] {
        write!(
            text,
            "\n## {title}\n\n\
             | id | name | architecture | SMs | MHz | GB/s | measured | stated | estimated |\n\
             | --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        )
        .expect("a string grows");
        for p in all.iter().filter(|p| p.vendor.name() == vendor) {
            let (id, name, architecture) = (&p.id, &p.name, &p.architecture);
            let figures = p.figures().values();
            let estimated = figures
                .clone()
                .filter(|figure| figure.is_estimated())
                .count();
            let measured = figures
                .filter(|figure| !figure.is_estimated() && figure.source.contains("(measured"))
                .count();
            let stated = p.figures().len() - estimated - measured;
            writeln!(
                text,
                "| [{id}]({REPOSITORY}/{id}.toml) | {name} | \
                 [{architecture}](gpus/{architecture}.md) | {} | {} | {} | {measured} | {stated} | \
                 {estimated} |",
                p.sms, p.sm_clock_mhz, p.dram_bandwidth_gb_s,
            )
            .expect("a string grows");
        }
    }
    text
}

/// The file's text, after writing `wanted` into it where the test is asked to.
fn published(file: &str, wanted: impl Fn(&str) -> String) -> (String, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(file);
    let old = std::fs::read_to_string(&path).unwrap_or_default();
    let new = wanted(&old);
    if std::env::var_os("WARPLENS_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
        std::fs::write(&path, &new).expect("writable");
    }
    (std::fs::read_to_string(&path).unwrap_or_default(), new)
}

#[test]
fn the_json_schema_is_the_loaders() {
    let text = serde_json::to_string_pretty(&schema()).expect("plain data") + "\n";
    let (found, wanted) = published(SCHEMA, |_| text.clone());
    assert!(
        found == wanted,
        "{SCHEMA} is out of date; run with WARPLENS_BLESS=1"
    );
}

#[test]
fn the_readme_lists_every_key() {
    let (found, wanted) = published(README, |old| {
        let (head, rest) = old
            .split_once(BEGIN)
            .expect("the README has a place for the keys");
        let (_, tail) = rest.split_once(END).expect("and its end");
        format!("{head}{BEGIN}\n{}\n{END}{tail}", table())
    });
    assert!(
        found == wanted,
        "{README} is out of date; run with WARPLENS_BLESS=1"
    );
}

#[test]
fn the_list_of_gpus_is_that_of_the_profiles() {
    let (found, wanted) = published(GPUS, |_| gpus());
    assert!(
        found == wanted,
        "{GPUS} is out of date; run with WARPLENS_BLESS=1"
    );
}

/// The example a newcomer copies must be accepted.
#[test]
fn the_readmes_example_is_a_profile() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(README);
    let text = std::fs::read_to_string(path).expect("readable");
    let example = text
        .split("```toml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    let profile = Profiles::from_toml(README, example.expect("the README has an example"))
        .unwrap_or_else(|error| panic!("{error}"));
    assert!(profile.max_warps_per_sm > 0);
}
