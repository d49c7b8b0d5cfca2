//! Predictions as a cache file that Kernel Tuner opens.

use serde_json::{Map, Value as Json, json};

use crate::Space;

/// A cache file as it grows.
#[derive(Debug)]
pub struct Cache {
    head: Map<String, Json>,
    names: Vec<String>,
    entries: Map<String, Json>,
}

impl Cache {
    /// An empty one for a space on a device.
    pub fn new(space: &Space, device: &str) -> Cache {
        let values =
            |values: &Vec<crate::ExprValue>| values.iter().map(plain).collect::<Vec<Json>>();
        let parameters = space
            .names
            .iter()
            .cloned()
            .zip(space.values.iter().map(values).map(Json::from));
        let head = json!({
            "device_name": device,
            "kernel_name": space.kernel,
            "problem_size": space.problem.iter().map(plain).collect::<Vec<Json>>(),
            "tune_params_keys": space.names,
            "tune_params": parameters.collect::<Map<_, _>>(),
            "objective": "time",
        });
        let Json::Object(head) = head else {
            unreachable!("an object was written")
        };
        Cache {
            head,
            names: space.names.clone(),
            entries: Map::new(),
        }
    }

    /// Adds a prediction: the configuration's id as [`Space::configurations`] gives it, and milliseconds; `None` where it cannot
    /// be launched.
    pub fn add(&mut self, id: &Json, milliseconds: Option<f64>) {
        let Json::Object(chosen) = id else { return };
        let key: Vec<String> = self
            .names
            .iter()
            .filter_map(|name| chosen.get(name))
            .map(|value| match value {
                Json::String(text) => text.clone(),
                other => other.to_string(),
            })
            .collect();
        let mut entry = chosen.clone();
        let time = milliseconds.map_or_else(|| Json::from("InvalidConfig"), Json::from);
        entry.insert("time".to_owned(), time);
        self.entries.insert(key.join(","), Json::Object(entry));
    }

    /// The file's text.
    pub fn text(mut self) -> String {
        self.head
            .insert("cache".to_owned(), Json::Object(self.entries));
        let mut text = serde_json::to_string_pretty(&Json::Object(self.head)).unwrap_or_default();
        text.push('\n');
        text
    }
}

fn plain(value: &crate::ExprValue) -> Json {
    match value {
        crate::ExprValue::Int(value) => Json::from(*value),
        crate::ExprValue::Real(value) => Json::from(*value),
        other => Json::from(other.to_string()),
    }
}
