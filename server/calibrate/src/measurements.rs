//! The measurements file: what a device said of itself and the raw figures of each benchmark.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use warplens_base::read_regular;

use crate::Failure;

/// The version of the file.
pub const SCHEMA: &str = "warplens.measurements/1";

/// Most bytes of a file that is read.
const LARGEST: u64 = 64 << 20;

/// A measurements file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measurements {
    /// `warplens.measurements/1`.
    pub schema: String,
    /// The version of warplens that measured.
    pub warplens: String,
    /// The day on which it was begun, as in `2026-01-31` (UTC).
    pub date: String,
    /// What was measured.
    pub device: Device,
    /// Benchmarks that are whole; a rerun leaves them out.
    #[serde(default)]
    pub finished: Vec<String>,
    /// What was odd about them: unsteady figures, benchmarks that failed.
    #[serde(default)]
    pub remarks: Vec<String>,
    /// The raw figures.
    #[serde(default)]
    pub samples: Vec<Sample>,
}

/// A device, as its driver describes it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// `nvidia`, `amd`, `intel`; empty where the driver names another.
    #[serde(default)]
    pub vendor: String,
    /// `sm_90`, `gfx90a`; empty where the driver does not say.
    #[serde(default)]
    pub architecture: String,
    /// The driver's version.
    #[serde(default)]
    pub driver: String,
    /// The runtime's version.
    #[serde(default)]
    pub runtime: String,
    /// `cuda`, `hip` or `opencl`.
    #[serde(default)]
    pub interface: String,
    /// What compiled the benchmarks: the first line that tells its version.
    #[serde(default)]
    pub compiler: String,
    /// Numbers that the driver reports, under names of their own: `sms`, `l2_bytes`, `clock_khz` …; 0 is not known.
    #[serde(default)]
    pub properties: BTreeMap<String, f64>,
}

impl Device {
    /// A number that the driver reports and that is not 0.
    pub fn property(&self, name: &str) -> Option<f64> {
        let value = self.properties.get(name).copied();
        value.filter(|value| value.is_finite() && *value > 0.0)
    }
}

/// One configuration of one benchmark, measured several times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// Which benchmark.
    pub bench: String,
    /// Its configuration: numbers and names.
    #[serde(default)]
    pub parameters: BTreeMap<String, Value>,
    /// The unit of the figures.
    pub unit: String,
    /// The raw figures, in the order in which they were measured.
    pub repetitions: Vec<f64>,
}

impl Sample {
    /// A parameter that is a number.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.parameters.get(name).and_then(Value::as_f64)
    }

    /// A parameter that is a name.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).and_then(Value::as_str)
    }

    /// Whether its figures can be used: there are some, and all are finite and not negative.
    pub fn is_sound(&self) -> bool {
        !self.repetitions.is_empty()
            && self.repetitions.len() <= 10_000
            && self.repetitions.iter().all(|x| x.is_finite() && *x >= 0.0)
    }
}

impl Measurements {
    /// Nothing measured yet.
    pub fn new(device: Device) -> Measurements {
        Measurements {
            schema: SCHEMA.to_owned(),
            warplens: env!("CARGO_PKG_VERSION").to_owned(),
            date: today(),
            device,
            finished: Vec::new(),
            remarks: Vec::new(),
            samples: Vec::new(),
        }
    }

    /// The samples of a benchmark that can be used.
    pub fn of<'a>(&'a self, bench: &'a str) -> impl Iterator<Item = &'a Sample> {
        self.samples
            .iter()
            .filter(move |sample| sample.bench == bench && sample.is_sound())
    }

    /// Whether a benchmark is whole.
    pub fn has(&self, bench: &str) -> bool {
        self.finished.iter().any(|finished| finished == bench)
    }

    /// Reads a file's text.
    ///
    /// # Errors
    ///
    /// Says in words what is wrong with it.
    pub fn parse(text: &str) -> Result<Measurements, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        match value.get("schema").and_then(Value::as_str) {
            Some(SCHEMA) => {}
            Some(other) => return Err(format!("schema must be {SCHEMA}, not {other}")),
            None => return Err(format!("no measurements of ours: no `schema` of {SCHEMA}")),
        }
        // Once more from the text: what is wrong has its line then.
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    /// Reads a file.
    pub fn read(file: &Path) -> Result<Measurements, Failure> {
        let unreadable = |problem: String| Failure::Measurements {
            file: file.to_owned(),
            problem,
        };
        let bytes = read_regular(file, LARGEST).map_err(|error| unreadable(error.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|error| unreadable(error.to_string()))?;
        Measurements::parse(&text).map_err(unreadable)
    }

    /// Writes the file whole, beside and then in place of what is there: whenever this is ended, a whole file stays.
    pub fn write(&self, file: &Path) -> Result<(), Failure> {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        replace(file, &text)
    }
}

/// Writes a file beside the one that it then replaces.
pub fn replace(file: &Path, text: &str) -> Result<(), Failure> {
    let mut part = beside(file)?;
    std::io::Write::write_all(&mut part, text.as_bytes())
        .map_err(|error| unwritable(file, &error))?;
    part.persist(file)
        .map_err(|error| unwritable(file, &error.error))?;
    Ok(())
}

/// Whether [`replace`] will be able to write a file: known before minutes are spent on what goes into it.
pub fn check_writable(file: &Path) -> Result<(), Failure> {
    beside(file).map(drop)
}

fn beside(file: &Path) -> Result<tempfile::NamedTempFile, Failure> {
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut part = tempfile::Builder::new();
    let made = part.prefix(".warplens-").tempfile_in(folder);
    made.map_err(|error| unwritable(file, &error))
}

fn unwritable(file: &Path, error: &std::io::Error) -> Failure {
    Failure::Unwritable {
        file: file.to_owned(),
        problem: error.to_string(),
    }
}

/// The day (UTC) as in `2026-01-31`.
fn today() -> String {
    let seconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let (year, month, day) = civil(seconds / 86_400);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Year, month and day of a day counted from 1970-01-01, in eras of 400 years that begin in March.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + 400 * era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_454), (2026, 1, 1));
        assert_eq!(civil(20_818), (2026, 12, 31));
    }

    #[test]
    fn what_is_written_is_read_and_other_files_are_refused_in_words() {
        let mut kept = Measurements::new(Device {
            name: "A GPU".to_owned(),
            ..Device::default()
        });
        kept.samples.push(Sample {
            bench: "barrier".to_owned(),
            parameters: BTreeMap::from([("warps".to_owned(), Value::from(4))]),
            unit: "cycles".to_owned(),
            repetitions: vec![22.0, 22.5],
        });
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("m.json");
        kept.write(&file).unwrap();
        assert_eq!(Measurements::read(&file).unwrap(), kept);
        assert_eq!(kept.samples[0].number("warps"), Some(4.0));

        for (text, word) in [
            ("", "EOF"),
            ("[]", "schema"),
            ("{\"schema\":\"warplens.measured/1\"}", "must be"),
            ("{\"schema\":\"warplens.measurements/1\"}", "missing field"),
            (
                "{\"schema\":\"warplens.measurements/1\",\n\"warplens\":1}",
                "at line 2",
            ),
        ] {
            let problem = Measurements::parse(text).unwrap_err();
            assert!(problem.contains(word), "{text}: {problem}");
        }
        let missing = folder.path().join("none/m.json");
        assert!(kept.write(&missing).is_err());
        assert!(Measurements::read(&missing).is_err());
    }
}
