//! Pages of the book that are derived: every key of `warplens.toml`, and the lists in the book's summary.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context;
use serde_json::Value;

/// Every key of `warplens.toml`, by its JSON Schema.
pub fn settings(schema: &[u8]) -> anyhow::Result<String> {
    let schema: Value = serde_json::from_slice(schema).context("the schema is no JSON")?;
    let mut text = String::from(
        "# Every key of warplens.toml\n\n\
         `cargo xtask generate` writes this page from the code. The [JSON Schema](schemas/config.schema.json) says the same; an \
         editor's\nsettings section `warplens` takes the same keys. [Configuration](configuration.md) explains them together.\n\n\
         | key | type | default | |\n| --- | --- | --- | --- |\n",
    );
    keys(&schema, &schema, "", &mut text);
    let levels = schema["$defs"]["RuleLevel"]["oneOf"].as_array();
    text.push_str("\n## Levels of rules\n\n| level | |\n| --- | --- |\n");
    for level in levels.into_iter().flatten() {
        let name = level["const"].as_str().unwrap_or_default();
        row(
            &mut text,
            &[&format!("`\"{name}\"`"), about(level).as_str()],
        );
    }
    Ok(text)
}

/// The keys of an object, those of objects within behind their own.
fn keys(schema: &Value, object: &Value, before: &str, text: &mut String) {
    for (key, value) in object["properties"].as_object().into_iter().flatten() {
        let key = format!("{before}{key}");
        let meant = resolved(schema, value);
        let default = match &value["default"] {
            Value::Null => String::new(),
            default if default.is_object() => String::new(),
            default => format!("`{default}`"),
        };
        // What an object is about its keys say.
        if meant["properties"].is_object() {
            keys(schema, meant, &format!("{key}."), text);
            continue;
        }
        row(
            text,
            &[
                &format!("`{key}`"),
                &kind(schema, meant),
                &default,
                &about(value),
            ],
        );
        let within = resolved(schema, &meant["additionalProperties"]);
        if within["properties"].is_object() {
            keys(schema, within, &format!("{key}.NAME."), text);
        }
    }
}

/// What is behind a reference, of alternatives the first.
fn resolved<'a>(schema: &'a Value, value: &'a Value) -> &'a Value {
    let value = value["anyOf"].get(0).unwrap_or(value);
    match value["$ref"]
        .as_str()
        .and_then(|name| name.strip_prefix("#/$defs/"))
    {
        Some(name) => &schema["$defs"][name],
        None => value,
    }
}

/// A type in words.
fn kind(schema: &Value, value: &Value) -> String {
    if let Some(values) = value["enum"].as_array() {
        let values = values.iter().filter(|one| !one.is_null());
        let values: Vec<String> = values.map(|one| format!("`{one}`")).collect();
        return values.join(" or ");
    }
    let name = value["type"].as_str().or_else(|| value["type"][0].as_str());
    match name {
        Some("array") => format!(
            "list of {}s",
            kind(schema, resolved(schema, &value["items"]))
        ),
        Some("object") => {
            let of = resolved(schema, &value["additionalProperties"]);
            match of["type"].as_str() {
                Some("object") => "tables by name".to_owned(),
                _ => format!("{} by name", kind(schema, of)),
            }
        }
        Some("integer") => "whole number".to_owned(),
        Some("boolean") => "true or false".to_owned(),
        Some(name) => name.to_owned(),
        None => "level".to_owned(),
    }
}

fn about(value: &Value) -> String {
    value["description"]
        .as_str()
        .unwrap_or_default()
        .replace('\n', " ")
}

pub(super) fn row(text: &mut String, cells: &[&str]) {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    let _ = writeln!(text, "| {} |", cells.join(" | "));
}

/// The extension's `package.json` whose setting of the model offers the schema's models; the first, none, is the extension's own.
pub fn model_setting(package: &str, schema: &[u8]) -> anyhow::Result<String> {
    let schema: Value = serde_json::from_slice(schema)?;
    let model = &schema["properties"]["model"];
    let mut text = package.to_owned();
    for (key, separator) in [("enum", ", "), ("enumDescriptions", ",\n              ")] {
        let values = model[key]
            .as_array()
            .context("the schema lists no models")?;
        let of_models: Vec<String> = values[1..].iter().map(Value::to_string).collect();
        let setting = text
            .find("\"warplens.model\": {")
            .context("no setting of the model")?;
        let list = format!("\"{key}\": [");
        let list = setting + text[setting..].find(&list).context("it has no list")? + list.len();
        let end = list + text[list..].find(']').context("its list has no end")?;
        let listed: Vec<Value> = serde_json::from_str(&format!("[{}]", &text[list..end]))?;
        let first = listed.first().context("its list is empty")?.to_string();
        let first = text[list..end].find(&first).unwrap_or_default() + first.len();
        // What is behind the last value remains: the bracket on the same line, or on the next.
        let tail = text[list..end].trim_end().len();
        let rest = of_models.join(separator);
        text.replace_range(
            list + first..list + tail,
            &format!(",{}{rest}", &separator[1..]),
        );
    }
    Ok(text)
}

/// The summary with the pages of a folder below each entry that lists one.
pub fn summary(summary: &str, docs: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    let mut skipping = false;
    for line in summary.lines() {
        skipping = skipping && line.starts_with("  - ");
        if skipping {
            continue;
        }
        text.push_str(line);
        text.push('\n');
        let listed = [
            ("rules/README.md", "rules"),
            ("models/README.md", "models"),
            ("gpus.md", "gpus"),
            ("decisions/README.md", "decisions"),
        ];
        let folder = listed
            .iter()
            .find(|(page, _)| line.ends_with(&format!("]({page})")));
        if let Some((_, folder)) = folder {
            skipping = true;
            for (title, page) in titles(&docs.join(folder))? {
                let _ = writeln!(text, "  - [{title}]({folder}/{page})");
            }
        }
    }
    Ok(text)
}

/// The pages of a folder but its first one, by name, with their titles.
fn titles(folder: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let page = path.extension().is_some_and(|extension| extension == "md");
        if !page || name == "README.md" {
            continue;
        }
        let text = std::fs::read_to_string(&path)?;
        let title = text.lines().next().unwrap_or_default();
        found.push((name, title.trim_start_matches("# ").to_owned()));
    }
    // Numbers of architectures in the order of their size: sm_90 before sm_100.
    let of_gpus = folder.ends_with("gpus");
    found.sort_by_key(|(name, _)| (if of_gpus { name.len() } else { 0 }, name.clone()));
    Ok(found
        .into_iter()
        .map(|(name, title)| (title, name))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_of_the_model_keeps_what_it_says_of_none() {
        let schema = br#"{"properties": {"model": {"enum": [null, "a", "b"], "enumDescriptions": ["X", "A, one", "B"]}}}"#;
        let package = "\"other\": {\"enum\": [1, 2]},\n\"warplens.model\": {\n\"enum\": [null, \"a\"],\n\"enumDescriptions\": [\n              \"None, as before.\",\n              \"A\"\n            ]\n}";
        let made = model_setting(package, schema).unwrap();
        assert_eq!(
            made,
            package
                .replace("[null, \"a\"]", "[null, \"a\", \"b\"]")
                .replace("\"A\"", "\"A, one\",\n              \"B\"")
        );
        assert_eq!(model_setting(&made, schema).unwrap(), made);
    }

    #[test]
    fn a_key_says_its_type_its_default_and_what_stands_within() {
        let schema = br##"{"properties": {
            "gpu": {"type": ["string", "null"], "description": "A\nGPU.", "default": null},
            "banks": {"anyOf": [{"$ref": "#/$defs/Bank"}, {"type": "null"}], "description": "B."},
            "kernels": {"additionalProperties": {"$ref": "#/$defs/K"}, "type": "object", "description": "C.", "default": {}},
            "hints": {"$ref": "#/$defs/Toggle", "default": {"enable": true}}
        }, "$defs": {
            "Bank": {"type": "integer", "enum": [4, 8]},
            "K": {"type": "object", "properties": {"grid": {"type": ["array", "null"], "items": {"type": "integer"}, "description": "D."}}},
            "Toggle": {"type": "object", "properties": {"enable": {"type": "boolean", "default": true, "description": "E."}}}
        }}"##;
        let page = settings(schema).unwrap();
        for row in [
            "| `gpu` | string |  | A GPU. |",
            "| `banks` | `4` or `8` |  | B. |",
            "| `kernels` | tables by name |  | C. |",
            "| `kernels.NAME.grid` | list of whole numbers |  | D. |",
            "| `hints.enable` | true or false | `true` | E. |",
        ] {
            assert!(page.contains(row), "{row}\n{page}");
        }
    }

    #[test]
    fn a_summary_lists_the_pages_of_its_folders() {
        let folder = tempfile::tempdir().unwrap();
        for (page, text) in [
            ("rules/README.md", "# Rules\n"),
            ("rules/b-c.md", "# b/c\n"),
            ("rules/a-b.md", "# a/b\n"),
            ("gpus/sm_90.md", "# sm_90\n"),
            ("gpus/sm_100.md", "# sm_100\n"),
            ("decisions/0001-x.md", "# 1. X\n"),
        ] {
            let path = folder.path().join(page);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let before = "- [Rules](rules/README.md)\n  - [old](rules/old.md)\n- [GPUs](gpus.md)\n- [Other](o.md)\n  - [Own](p.md)\n";
        let after = summary(before, folder.path()).unwrap();
        assert_eq!(
            after,
            "- [Rules](rules/README.md)\n  - [a/b](rules/a-b.md)\n  - [b/c](rules/b-c.md)\n- [GPUs](gpus.md)\n  \
             - [sm_90](gpus/sm_90.md)\n  - [sm_100](gpus/sm_100.md)\n- [Other](o.md)\n  - [Own](p.md)\n"
        );
        assert_eq!(summary(&after, folder.path()).unwrap(), after);
    }
}
