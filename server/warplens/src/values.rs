//! Values as they are written on the command line.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use warplens_db::Project;
use warplens_db::settings::{Amount, NoScalar, RunSettings, RunSource, Scalar, Settings};
use warplens_models::ModelId;

use crate::input;

/// The models that are to answer.
#[derive(Debug, Clone)]
pub struct Models(pub Vec<ModelId>);

/// A model by its name.
pub fn model() -> impl TypedValueParser<Value = ModelId> {
    let unknown = || "no model of that name".to_owned();
    PossibleValuesParser::new(of_models())
        .try_map(move |name| ModelId::named(&name).ok_or_else(unknown))
}

/// A model by its name, or all of them.
pub fn models() -> impl TypedValueParser<Value = Models> {
    let all = PossibleValue::new("all").help("All of them side by side");
    PossibleValuesParser::new(of_models().chain([all])).map(|name| {
        let one = ModelId::named(&name).map(|model| vec![model]);
        Models(one.unwrap_or_else(|| ModelId::ALL.to_vec()))
    })
}

fn of_models() -> impl Iterator<Item = PossibleValue> {
    let models = ModelId::ALL.into_iter();
    models.map(|model| PossibleValue::new(model.name()).help(model.summary()))
}

/// `X[,Y[,Z]]`: one to three integers above zero, separated by commas or `x`.
pub fn extents(text: &str) -> Result<[u64; 3], String> {
    let mut value = [1; 3];
    let parts: Vec<&str> = text.split([',', 'x']).collect();
    if parts.len() > 3 {
        return Err("at most three numbers: X[,Y[,Z]]".to_owned());
    }
    for (slot, part) in value.iter_mut().zip(&parts) {
        *slot = part
            .trim()
            .parse()
            .ok()
            .filter(|number| (1..=u64::from(u32::MAX)).contains(number))
            .ok_or_else(|| format!("\"{part}\" is not a whole number from 1 to {}", u32::MAX))?;
    }
    Ok(value)
}

/// How many of something are printed: none would be no answer.
pub fn count(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("\"{text}\" is not a whole number of 1 or more"))
}

/// Extents as an option takes them, without trailing ones.
pub fn as_given(size: [u64; 3]) -> String {
    match size {
        [x, 1, 1] => x.to_string(),
        [x, y, 1] => format!("{x},{y}"),
        [x, y, z] => format!("{x},{y},{z}"),
    }
}

/// The block nearest to this one that has at most `most` threads: its longest side is halved until it fits.
pub fn fitting(mut block: [u64; 3], most: u64) -> [u64; 3] {
    let most = most.max(1);
    while block
        .iter()
        .fold(1, |product: u64, side| product.saturating_mul(*side))
        > most
    {
        let longest = block.iter_mut().max();
        let Some(longest) = longest else { break };
        // The next power of two below it.
        *longest = match longest.checked_next_power_of_two() {
            Some(up) => up / 2,
            None => 1 << 63,
        };
    }
    block
}

/// `NAME=VALUE` with a name.
pub fn binding(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if is_name(name.trim()) => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

/// True for a member of a structure that is passed by value: `shape.rows`, `params.strides[1]`.
fn is_member(name: &str) -> bool {
    let mut parts = name.split('.');
    parts.all(|part| {
        let (field, index) = match part.split_once('[') {
            Some((field, index)) => (field, index.strip_suffix(']').unwrap_or("?")),
            None => (part, "0"),
        };
        is_name(field) && index.bytes().all(|digit| digit.is_ascii_digit())
    })
}

/// `NAME=VALUE` for a scalar parameter, or a member of one that is a structure.
pub fn argument(text: &str) -> Result<(String, Scalar), String> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) if is_member(name.trim()) => {
            (name.trim().to_owned(), value.trim().to_owned())
        }
        _ => binding(text)?,
    };
    match Scalar::parse(&value) {
        Ok(scalar) => Ok((name, scalar)),
        Err(NoScalar::TooLarge) => Err(format!(
            "\"{value}\" is out of range: a whole number is from {} to {}",
            i64::MIN,
            i64::MAX
        )),
        Err(NoScalar::NotANumber) => Err(format!("\"{value}\" is not a number")),
    }
}

/// `NAME[=VALUE]` of `-D`; without a value it is 1, as a C compiler takes it.
pub fn define(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').unwrap_or((text, "1"));
    if is_name(name) {
        Ok((name.to_owned(), value.to_owned()))
    } else {
        Err("expected NAME or NAME=VALUE".to_owned())
    }
}

fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && chars.all(|c| c.is_alphanumeric() || c == '_')
}

/// How the program is compiled, as a C compiler takes it, and run.
#[derive(Debug, Clone, clap::Args)]
pub struct Preprocessing {
    /// Define a macro, as a C compiler takes it (repeatable)
    #[arg(short = 'D', value_name = "NAME[=VALUE]", value_parser = define)]
    define: Vec<(String, String)>,
    /// Search a folder for `#include "…"` (repeatable)
    #[arg(short = 'I', value_name = "DIR")]
    include: Vec<String>,
    /// Read headers wherever an `#include` leads, also out of the folders that are checked, their project and those named for headers
    #[arg(long)]
    includes_outside_workspace: bool,
    /// The arguments that the program is started with, split as a shell splits them: its host code is evaluated with them, never
    /// executed
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true)]
    run: Option<String>,
}

impl Preprocessing {
    /// The project that these paths lie in, and where its includes may lead.
    pub fn project(&self, paths: &[PathBuf]) -> Project {
        let project = input::project(paths);
        self.confine(&project, paths);
        project
    }

    /// Keeps the includes of a project in its folders and in those of the projects that these paths lie in.
    pub fn confine(&self, project: &Project, paths: &[PathBuf]) {
        let own = || input::project_folders(paths);
        project.confine((!self.includes_outside_workspace).then(own));
    }

    /// Adds what the command line gives to `settings`; it wins over what they had.
    pub fn apply(&self, settings: &mut Settings) {
        settings.defines.extend(self.define.iter().cloned());
        settings
            .include_paths
            .splice(0..0, self.include.iter().cloned());
        if let Some(arguments) = &self.run {
            let run = RunSettings {
                arguments: arguments.clone(),
                said_by: RunSource::CommandLine,
                ..RunSettings::default()
            };
            settings.run.insert(0, run);
        }
    }
}

/// What the GPU runs at.
#[derive(Debug, clap::Args)]
pub struct Clock {
    /// SM clock of the GPU, where it is not its profile's
    #[arg(long, value_name = "MHZ")]
    clock: Option<Amount<50, 10_000>>,
    /// Power that the GPU's board is limited to; its clock falls with the cube root (assumed)
    #[arg(long, value_name = "W", conflicts_with = "clock")]
    power_limit: Option<Amount<1, 100_000>>,
}

impl Clock {
    /// What the command line gives wins over what `settings` had.
    pub fn apply(&self, settings: &mut Settings) {
        if self.clock.is_some() || self.power_limit.is_some() {
            settings.clock = self.clock;
            settings.power_limit = self.power_limit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_are_one_to_three_numbers() {
        assert_eq!(extents("256"), Ok([256, 1, 1]));
        assert_eq!(extents("32,8"), Ok([32, 8, 1]));
        assert_eq!(extents("8x8x4"), Ok([8, 8, 4]));
        for wrong in ["", "0", "-1", "a", "1,2,3,4", "32,", "99999999999"] {
            assert!(extents(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_count_is_one_or_more() {
        assert_eq!(count("3"), Ok(3));
        for wrong in ["0", "-1", "", "two"] {
            assert!(count(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_block_is_halved_until_it_fits() {
        assert_eq!(fitting([2048, 1, 1], 1024), [1024, 1, 1]);
        assert_eq!(fitting([2000, 1, 1], 1024), [1024, 1, 1]);
        assert_eq!(fitting([64, 32, 1], 1024), [32, 32, 1]);
        assert_eq!(fitting([u64::MAX, 3, 1], 1024), [256, 3, 1]);
        assert_eq!(fitting([32, 8, 1], 1024), [32, 8, 1]);
    }

    #[test]
    fn arguments_are_numbers_of_any_spelling() {
        assert_eq!(
            argument("n=1024"),
            Ok(("n".to_owned(), Scalar::Whole(1024)))
        );
        assert_eq!(
            argument("n=1 << 20"),
            Ok(("n".to_owned(), Scalar::Whole(1 << 20)))
        );
        assert!(argument(&format!("n=1{}", "<<1".repeat(100_000))).is_err());
        assert_eq!(argument("n=-3"), Ok(("n".to_owned(), Scalar::Whole(-3))));
        assert_eq!(argument("n=0x40"), Ok(("n".to_owned(), Scalar::Whole(64))));
        assert_eq!(
            argument("n=1e6"),
            Ok(("n".to_owned(), Scalar::Whole(1_000_000)))
        );
        assert_eq!(
            argument("flag=true"),
            Ok(("flag".to_owned(), Scalar::Whole(1)))
        );
        assert_eq!(
            argument("alpha=1.5f"),
            Ok(("alpha".to_owned(), Scalar::Real(1.5)))
        );
        assert_eq!(
            argument("n=-9223372036854775808"),
            Ok(("n".to_owned(), Scalar::Whole(i64::MIN)))
        );
        for wrong in ["n", "=3", "n=", "n=many", "3n=1", "n=0x", "n=-"] {
            assert!(argument(wrong).is_err(), "{wrong}");
        }
        let digits = format!("n={}", "9".repeat(50));
        for large in ["n=9223372036854775808", "n=0xFFFFFFFFFFFFFFFF", &digits] {
            let refused = argument(large).unwrap_err();
            assert!(refused.contains("out of range"), "{refused}");
        }
    }

    #[test]
    fn a_define_without_a_value_is_one() {
        assert_eq!(define("FAST"), Ok(("FAST".to_owned(), "1".to_owned())));
        assert_eq!(
            define("TYPE=float4"),
            Ok(("TYPE".to_owned(), "float4".to_owned()))
        );
        assert_eq!(define("EMPTY="), Ok(("EMPTY".to_owned(), String::new())));
        assert!(define("=1").is_err());
    }
}
