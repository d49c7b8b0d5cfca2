//! The profile that comes of a fit: TOML that `warplens_machine` loads.

use std::fmt::Write;

use warplens_machine::{Profile, ProfileError, Profiles};

use crate::fit::ProfileFit;
use crate::measurements::{Device, Measurements};

/// The built-in GPU that is most like a device: of its maker, its architecture or else the nearest version of it, by the
/// words of its name, and by its SMs.
pub fn nearest(device: &Device, profiles: &Profiles) -> Option<std::sync::Arc<Profile>> {
    let of_maker =
        |profile: &Profile| device.vendor.is_empty() || profile.vendor.name() == device.vendor;
    let version = |architecture: &str| -> Option<i64> {
        // 9.0 is as far from 8.0 as 8.0 from 7.0, and revisions are near.
        architecture.strip_prefix("sm_")?.parse::<i64>().ok()
    };
    let words = |name: &str| -> Vec<String> {
        let parts = name.split(|c: char| !c.is_ascii_alphanumeric());
        parts
            .filter(|word| !word.is_empty())
            .map(str::to_ascii_lowercase)
            .collect()
    };
    let own = words(&device.name);
    let distance = |profile: &Profile| {
        let versions = version(&device.architecture).zip(version(&profile.architecture));
        let apart = versions.map_or(i64::MAX, |(a, b)| (a - b).abs());
        let shared = words(&profile.name)
            .iter()
            .filter(|word| own.contains(word))
            .count();
        let sms = device.property("sms").unwrap_or(0.0) - f64::from(profile.sms);
        (
            profile.architecture != device.architecture,
            apart,
            std::cmp::Reverse(shared),
            sms.abs() as u64,
        )
    };
    let all: Vec<_> = profiles.iter().collect();
    let candidates = all.iter().filter(|profile| of_maker(profile));
    let found = candidates.min_by_key(|profile| distance(profile));
    // A maker of whom there is none yet: anything is better than nothing, and says that it is an estimate.
    found
        .or_else(|| all.iter().min_by_key(|profile| distance(profile)))
        .cloned()
}

/// A name as an id: `NVIDIA H200` is `nvidia-h200`.
pub fn slug(name: &str) -> String {
    let words: Vec<String> = name
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    if words.is_empty() {
        "gpu".to_owned()
    } else {
        words.join("-")
    }
}

/// The profile's text, and the profile as it loads. A figure that does not go with the others is given up for the nearest
/// GPU's, and named in `fitted.missing`.
///
/// # Errors
///
/// What the loader says where the nearest GPU's own figures do not load.
pub fn write(
    measurements: &Measurements,
    fitted: &mut ProfileFit,
    nearest: &Profile,
    id: &str,
) -> Result<(String, Profile), ProfileError> {
    loop {
        let text = text(measurements, fitted, nearest, id);
        match Profiles::from_toml(&format!("{id}.toml"), &text) {
            Ok(profile) => return Ok((text, profile)),
            Err(error) => {
                let said = error.to_string();
                let to_blame = fitted.figures.keys().copied().find(|key| {
                    said.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
                        .any(|word| word == *key)
                });
                // Each round gives one up, so that this ends.
                let Some(key) = to_blame else {
                    return Err(error);
                };
                fitted.figures.remove(key);
                fitted
                    .missing
                    .push(format!("{key}: does not go with the other figures: {said}"));
            }
        }
    }
}

fn text(measurements: &Measurements, fitted: &ProfileFit, nearest: &Profile, id: &str) -> String {
    let device = &measurements.device;
    let architecture = if device.architecture.is_empty() {
        &nearest.architecture
    } else {
        &device.architecture
    };
    let mut text = format!(
        "# {}, measured by warplens calibrate on {} ({}, driver {}; {}).\n\
         # What could not be measured is that of {}.\n\
         schema = 1\nid = \"{id}\"\nname = \"{}\"\nvendor = \"{}\"\narchitecture = \"{}\"\n",
        quotable(&device.name),
        quotable(&measurements.date),
        quotable(&device.interface),
        quotable(&device.driver),
        quotable(&device.compiler),
        nearest.id,
        quotable(&device.name),
        nearest.vendor.name(),
        quotable(architecture),
    );
    let own = architecture
        .strip_prefix("sm_")
        .filter(|version| version.len() >= 2 && version.bytes().all(|b| b.is_ascii_digit()));
    if let Some((major, minor)) =
        own.and_then(|version| version.split_at_checked(version.len() - 1))
    {
        let _ = writeln!(text, "compute_capability = \"{major}.{minor}\"");
    }
    let as_there = |source: &str| format!("estimated: as on {}: {source}", nearest.id);
    text.push('\n');
    for (key, rule) in nearest.rules() {
        line(
            &mut text,
            key,
            &format!("\"{}\"", rule.value),
            &as_there(&rule.source),
        );
    }
    text.push('\n');
    for spec in Profile::keys() {
        let found = fitted.figures.get(spec.name);
        let figure = match found {
            Some(found) => Some((found.value, found.source.clone())),
            // What a rule gives follows from this GPU's own figures, not from the other's.
            None => nearest
                .figures()
                .get(spec.name)
                .filter(|figure| !figure.source.starts_with("derived: "))
                .map(|figure| (figure.value, as_there(&figure.source))),
        };
        if let Some((value, source)) = figure {
            line(&mut text, spec.name, &value.to_string(), &source);
        }
    }
    if let Some(weights) = &fitted.weights {
        let date = &measurements.date;
        let source = format!(
            "measured by warplens calibrate {} (linear, {date})",
            measurements.warplens
        );
        text.push('\n');
        text.push_str(&weights.to_toml(&quotable(&source)));
    }
    text
}

fn line(text: &mut String, key: &str, value: &str, source: &str) {
    let _ = writeln!(
        text,
        "{key} = {{ value = {value}, source = \"{}\" }}",
        quotable(source)
    );
}

/// Text between quotes: what would end them or the line is a space.
fn quotable(text: &str) -> String {
    let safe = |c: char| {
        if c.is_control() || matches!(c, '"' | '\\') {
            ' '
        } else {
            c
        }
    };
    let text: String = text.chars().map(safe).take(400).collect();
    if text.trim().is_empty() {
        "unknown".to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(name: &str, architecture: &str, vendor: &str) -> Device {
        Device {
            name: name.to_owned(),
            architecture: architecture.to_owned(),
            vendor: vendor.to_owned(),
            ..Device::default()
        }
    }

    #[test]
    fn the_nearest_gpu_is_of_the_architecture_or_next_to_it() {
        let profiles = Profiles::builtin();
        let of = |name, architecture, vendor| {
            nearest(&device(name, architecture, vendor), &profiles)
                .unwrap()
                .architecture
                .clone()
        };
        assert_eq!(of("NVIDIA H200", "sm_90", "nvidia"), "sm_90");
        assert_eq!(of("NVIDIA A100-SXM4-80GB", "sm_80", "nvidia"), "sm_80");
        assert!(of("AMD Instinct MI250X", "gfx90a", "amd").starts_with("gfx"));
        let name = nearest(
            &device("NVIDIA A100-PCIE-40GB", "sm_80", "nvidia"),
            &profiles,
        )
        .unwrap();
        assert!(name.id.contains("pcie"), "{}", name.id);
        assert!(nearest(&device("", "", ""), &profiles).is_some());
        assert!(nearest(&device("X", "xe", "unknown"), &profiles).is_some());
    }

    #[test]
    fn names_are_ids() {
        assert_eq!(
            slug("NVIDIA GeForce RTX 3080 Ti"),
            "nvidia-geforce-rtx-3080-ti"
        );
        assert_eq!(slug("  (TM) "), "tm");
        assert_eq!(slug("…"), "gpu");
    }
}
