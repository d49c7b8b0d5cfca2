//! What a user can set: `warplens.toml`, the editor's settings section and `initializationOptions` share this shape.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

use toml::Spanned;
use warplens_machine::{Profile, Profiles};
use warplens_models::ModelId;

/// All settings. In `warplens.toml` and in JSON alike the keys are camelCase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Settings {
    /// Target GPU: a profile id.
    pub gpu: Option<String>,
    /// Further GPUs to compare with.
    pub compare: Vec<String>,
    /// The model shown first; `auto` where none is chosen.
    #[schemars(extend("enum" = models(None, ModelId::name), "enumDescriptions" = models("As `auto`", ModelId::summary)))]
    pub model: Option<String>,
    /// Macros, as `-D NAME=VALUE`.
    pub defines: BTreeMap<String, String>,
    /// Folders searched for `#include "…"`.
    pub include_paths: Vec<String>,
    /// Macros that spell `__global__` (`__kernel` in OpenCL) and are defined where nothing is read.
    pub kernel_macros: Vec<String>,
    /// Bytes of a bank of shared memory, 4 or 8, on GPUs with two modes (compute capability 3.x): what the program
    /// asks `cudaDeviceSetSharedMemConfig` for.
    pub shared_bank_bytes: Option<BankBytes>,
    /// SM clock in MHz, where it is not the profile's: locked, or seen under load.
    pub clock: Option<Amount<50, 10_000>>,
    /// Power in W that the GPU's board is limited to. Its clock falls with the cube root, which is assumed.
    pub power_limit: Option<Amount<1, 100_000>>,
    /// Values of integer parameters by name, for every kernel.
    pub assume: BTreeMap<String, i64>,
    /// Launches by kernel name.
    pub kernels: BTreeMap<String, KernelSettings>,
    /// How the programs around the kernels are started: their host code is evaluated with it, never executed.
    pub run: Vec<RunSettings>,
    /// Rule id or category to `"off"`, `"hint"`, `"information"` or `"warning"`.
    pub rules: BTreeMap<String, RuleLevel>,
    /// Also the rules that are still tried out.
    pub preview: bool,
    /// Inlay hints.
    pub inlay_hints: Hints,
    /// Code lenses.
    pub code_lens: Toggle,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            gpu: None,
            compare: Vec::new(),
            model: None,
            defines: BTreeMap::new(),
            include_paths: Vec::new(),
            kernel_macros: Vec::new(),
            shared_bank_bytes: None,
            clock: None,
            power_limit: None,
            assume: BTreeMap::new(),
            kernels: BTreeMap::new(),
            run: Vec::new(),
            rules: BTreeMap::new(),
            preview: false,
            inlay_hints: Hints::default(),
            code_lens: Toggle { enable: true },
        }
    }
}

/// Bytes of a bank of shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "u8", into = "u8")]
#[schemars(with = "u8", extend("enum" = [4, 8]))]
pub enum BankBytes {
    /// The default.
    Four,
    /// Words of 8 bytes without conflicts.
    Eight,
}

impl TryFrom<u8> for BankBytes {
    type Error = String;

    fn try_from(bytes: u8) -> Result<Self, Self::Error> {
        match bytes {
            4 => Ok(Self::Four),
            8 => Ok(Self::Eight),
            _ => Err(format!("a bank has 4 or 8 bytes, not {bytes}")),
        }
    }
}

impl From<BankBytes> for u8 {
    fn from(bytes: BankBytes) -> u8 {
        match bytes {
            BankBytes::Four => 4,
            BankBytes::Eight => 8,
        }
    }
}

/// A number within bounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "f64", into = "f64")]
#[schemars(with = "f64", extend("minimum" = LEAST, "maximum" = MOST))]
pub struct Amount<const LEAST: u32, const MOST: u32>(f64);

impl<const LEAST: u32, const MOST: u32> Amount<LEAST, MOST> {
    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl<const LEAST: u32, const MOST: u32> TryFrom<f64> for Amount<LEAST, MOST> {
    type Error = String;

    fn try_from(number: f64) -> Result<Self, Self::Error> {
        if (f64::from(LEAST)..=f64::from(MOST)).contains(&number) {
            Ok(Self(number))
        } else {
            Err(format!("{number} is not between {LEAST} and {MOST}"))
        }
    }
}

impl<const LEAST: u32, const MOST: u32> From<Amount<LEAST, MOST>> for f64 {
    fn from(amount: Amount<LEAST, MOST>) -> f64 {
        amount.0
    }
}

impl<const LEAST: u32, const MOST: u32> std::str::FromStr for Amount<LEAST, MOST> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number: f64 = text.parse().map_err(|_| format!("`{text}` is no number"))?;
        Self::try_from(number)
    }
}

/// Something that can be switched off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Toggle {
    /// On or off.
    pub enable: bool,
}

impl Default for Toggle {
    fn default() -> Self {
        Toggle { enable: true }
    }
}

/// Inlay hints, all of them and by category.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "switches of a user, each by itself"
)]
pub struct Hints {
    /// Any at all.
    pub enable: bool,
    /// Sectors, lines or segments of device memory: `32 sectors, ideal 4`.
    pub memory: bool,
    /// Passes of shared and constant memory: `32 passes, ideal 1`.
    pub shared: bool,
    /// Warps whose lanes take different sides of a condition: `50 % of warps diverge`.
    pub divergence: bool,
    /// The line's share of the kernel's time: `41 % of time`.
    pub share: bool,
    /// Machine instructions, where a compiler was asked: `14 instructions`.
    pub instructions: bool,
    /// The share of the kernel's time in percent from which on a line without a finding has a hint.
    #[schemars(range(max = 100))]
    pub minimum_share: u8,
}

impl Default for Hints {
    fn default() -> Self {
        Hints {
            enable: true,
            memory: true,
            shared: true,
            divergence: true,
            share: true,
            instructions: true,
            minimum_share: 5,
        }
    }
}

/// The launch of one kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct KernelSettings {
    /// Blocks: one to three numbers.
    pub grid: Option<Vec<u64>>,
    /// Threads of a block: one to three numbers.
    pub block: Option<Vec<u64>>,
    /// Dynamic shared memory in bytes.
    pub dynamic_shared: Option<u64>,
    /// Values of scalar parameters.
    pub args: BTreeMap<String, Scalar>,
}

/// The value of a scalar parameter.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Scalar {
    /// A whole number; true is 1.
    Whole(i64),
    /// One with a fraction.
    Real(f64),
}

// No value is read that is not a number.
impl Eq for Scalar {}

/// Why a text is no scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoScalar {
    /// A whole number that no integer parameter holds.
    TooLarge,
    /// No number.
    NotANumber,
}

impl Scalar {
    /// Reads one as C++ spells it: `1024`, `0x400u`, `1 << 20`, `1e6`, `2.5f`, `true`.
    pub fn parse(text: &str) -> Result<Scalar, NoScalar> {
        let text = text.trim();
        if let Some((value, by)) = text.split_once("<<") {
            if by.contains("<<") {
                return Err(NoScalar::NotANumber);
            }
            let (Scalar::Whole(value), Scalar::Whole(by)) =
                (Scalar::parse(value)?, Scalar::parse(by)?)
            else {
                return Err(NoScalar::NotANumber);
            };
            let by = u32::try_from(by).map_err(|_| NoScalar::NotANumber)?;
            let shifted = i128::from(value).checked_shl(by).filter(|_| by < 64);
            let whole = shifted.and_then(|whole| i64::try_from(whole).ok());
            return whole.map(Scalar::Whole).ok_or(NoScalar::TooLarge);
        }
        let bare = text.trim_end_matches(['u', 'U', 'l', 'L']);
        let (negative, digits) = match bare.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, bare.strip_prefix('+').unwrap_or(bare)),
        };
        let hexadecimal = digits
            .strip_prefix("0x")
            .or_else(|| digits.strip_prefix("0X"));
        let (digits, radix) = hexadecimal.map_or((digits, 10), |digits| (digits, 16));
        let digits = digits.replace('\'', "");
        if !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix)) {
            let whole = i128::from_str_radix(&digits, radix).ok();
            let whole = whole.map(|whole| if negative { -whole } else { whole });
            let whole = whole.and_then(|whole| i64::try_from(whole).ok());
            return whole.map(Scalar::Whole).ok_or(NoScalar::TooLarge);
        }
        match text {
            "true" => return Ok(Scalar::Whole(1)),
            "false" => return Ok(Scalar::Whole(0)),
            _ => {}
        }
        let real = text.trim_end_matches(['f', 'F']).parse::<f64>();
        let real = real.ok().filter(|real| real.is_finite());
        let real = real.ok_or(NoScalar::NotANumber)?;
        Ok(if real == real.trunc() && real.abs() < 9e15 {
            Scalar::Whole(real as i64)
        } else {
            Scalar::Real(real)
        })
    }
}

/// How a program is started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct RunSettings {
    /// The program's main source files, by the ends of their paths; every program where none is named.
    pub files: Vec<String>,
    /// Its arguments, split as a shell splits them.
    pub arguments: String,
    /// Its environment, as far as it reads it.
    pub environment: BTreeMap<String, String>,
    /// Who says so.
    #[serde(skip)]
    #[schemars(skip)]
    pub said_by: RunSource,
}

/// Who says how a program is started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum RunSource {
    /// `warplens.toml`.
    #[default]
    File,
    /// `--run` of the command line.
    CommandLine,
    /// The user of an editor, for this session.
    Session,
}

impl RunSource {
    /// As it is told beside the run.
    pub(crate) fn place(self) -> &'static str {
        match self {
            RunSource::File => "warplens.toml",
            RunSource::CommandLine => "--run",
            RunSource::Session => "set in the editor",
        }
    }
}

/// How loud a rule may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RuleLevel {
    /// Silent.
    Off,
    /// At most a hint.
    Hint,
    /// At most information.
    Information,
    /// As the prediction decides.
    Warning,
}

/// The names in a `warplens.toml` that stand for something of ours, with their places.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Names {
    gpu: Option<Spanned<String>>,
    compare: Vec<Spanned<String>>,
    model: Option<Spanned<String>>,
    rules: BTreeMap<Spanned<String>, toml::Value>,
}

/// Something wrong in `warplens.toml`: where, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsProblem {
    /// Byte range in the file.
    pub range: std::ops::Range<usize>,
    /// One line.
    pub message: String,
}

impl Settings {
    /// Reads `warplens.toml`. Whatever is right is taken; each problem is returned with its place.
    pub fn from_toml(text: &str) -> (Settings, Vec<SettingsProblem>) {
        let table: toml::Table = match text.parse() {
            Ok(table) => table,
            Err(error) => {
                let problem: toml::de::Error = error;
                return (
                    Settings::default(),
                    vec![SettingsProblem {
                        range: problem.span().unwrap_or(0..text.len().min(1)),
                        message: format!("not valid TOML: {}", problem.message()),
                    }],
                );
            }
        };
        match toml::from_str::<Settings>(text) {
            Ok(settings) => (settings, Vec::new()),
            Err(error) => {
                let users = users_own(text);
                // Take every key that is right by itself, so that one typing error does not lose the rest.
                let mut kept = toml::Table::new();
                for (key, value) in table {
                    let one = toml::Table::from_iter([(key.clone(), value.clone())]);
                    if one.try_into::<Settings>().is_ok() {
                        kept.insert(key, value);
                    }
                }
                let problem = SettingsProblem {
                    range: error.span().unwrap_or(0..text.len().min(1)),
                    message: error.message().to_owned(),
                };
                let mut problems = users;
                // That one has been said, and better.
                if !problems.iter().any(|one| one.range == problem.range) {
                    problems.push(problem);
                }
                (kept.try_into().unwrap_or_default(), problems)
            }
        }
    }

    /// Reads `warplens.toml` like [`Settings::from_toml`], and reports well-formed names that stand for nothing:
    /// GPUs, models, rules. The settings lose such a GPU or model, so that the default answers instead.
    pub fn from_toml_with(text: &str, profiles: &Profiles) -> (Settings, Vec<SettingsProblem>) {
        let (mut settings, mut problems) = Settings::from_toml(text);
        // A file of the wrong shape has been reported; what is left of it is checked without places.
        let names: Names = toml::from_str(text).unwrap_or_default();
        for gpu in names.gpu.iter().chain(&names.compare) {
            if let Err(message) = gpu_named(gpu.get_ref(), profiles) {
                problems.push(SettingsProblem {
                    range: gpu.span(),
                    message,
                });
            }
        }
        if let Some(model) = names.model
            && let Some(message) = unknown_model(model.get_ref())
        {
            problems.push(SettingsProblem {
                range: model.span(),
                message,
            });
        }
        for rule in names.rules.into_keys() {
            if let Some(message) = unknown_rule(rule.get_ref()) {
                problems.push(SettingsProblem {
                    range: rule.span(),
                    message,
                });
            }
        }
        settings.resolve_names(profiles);
        problems.sort_by_key(|problem| problem.range.start);
        (settings, problems)
    }

    /// Puts ids in place of GPUs' names, and forgets a GPU or model that represents nothing, so that what ranks below
    /// answers instead.
    pub fn resolve_names(&mut self, profiles: &Profiles) {
        let id = |name: String| Some(profiles.named(&name)?.id.clone());
        self.gpu = self.gpu.take().and_then(id);
        let compare = std::mem::take(&mut self.compare);
        self.compare = compare.into_iter().filter_map(id).collect();
        self.model.take_if(|model| unknown_model(model).is_some());
    }

    /// A line for each well-formed name that represents nothing: the key it is at, and what is wrong.
    pub fn unknown_names(&self, profiles: &Profiles) -> Vec<(&'static str, String)> {
        let gpus = self.gpu.iter().map(|id| ("gpu", id));
        let gpus = gpus.chain(self.compare.iter().map(|id| ("compare", id)));
        let gpus = gpus.filter_map(|(key, name)| Some((key, gpu_named(name, profiles).err()?)));
        let model = self.model.as_deref().and_then(unknown_model);
        let rules = self.rules.keys().filter_map(|rule| unknown_rule(rule));
        gpus.chain(model.map(|message| ("model", message)))
            .chain(rules.map(|message| ("rules", message)))
            .collect()
    }

    /// Reads the editor's settings section; unknown or wrong keys are reported in words and skipped.
    pub fn from_json(value: &serde_json::Value) -> (Settings, Vec<String>) {
        let Some(object) = value.as_object() else {
            return (Settings::default(), Vec::new());
        };
        let mut kept = serde_json::Map::new();
        let mut problems = Vec::new();
        for (key, value) in object {
            if value.is_null() {
                continue;
            }
            let one =
                serde_json::Value::Object([(key.clone(), value.clone())].into_iter().collect());
            match serde_json::from_value::<Settings>(one) {
                Ok(_) => {
                    kept.insert(key.clone(), value.clone());
                }
                Err(error) => problems.push(format!("warplens.{key}: {error}")),
            }
        }
        let settings = serde_json::from_value(serde_json::Value::Object(kept)).unwrap_or_default();
        (settings, problems)
    }
}

/// The setting by which a user lets includes lead out of the workspace.
pub const READS_OUTSIDE: &str = "includesOutsideWorkspace";

/// Keys that a user may set in an editor and a project may not, and what it could do with them: have its own program
/// executed, read what it was not given.
const USERS_OWN: [(&str, &str); 3] = [
    ("compiler", "name any program"),
    ("compilerTimeout", "name any program"),
    (READS_OUTSIDE, "read any file"),
];

/// Where a `warplens.toml` says what only its user may.
fn users_own(text: &str) -> Vec<SettingsProblem> {
    let keys: BTreeMap<Spanned<String>, toml::Value> = toml::from_str(text).unwrap_or_default();
    keys.into_keys()
        .filter_map(|key| {
            let (name, could) = USERS_OWN.iter().find(|(name, _)| name == key.get_ref())?;
            Some(SettingsProblem {
                range: key.span(),
                message: format!(
                    "`{name}` is never taken from a project, which could {could}: set `warplens.{name}` in the \
                     user settings of the editor",
                ),
            })
        })
        .collect()
}

/// Ids that an unknown one may have been meant to be, at most.
const NEAR: usize = 4;

/// The GPU that a person [means](Profiles::named) by a name; `Err` is one line about one that is not known, with the closest
/// that are.
pub fn gpu_named(name: &str, profiles: &Profiles) -> Result<Arc<Profile>, String> {
    profiles
        .named(name)
        .ok_or_else(|| unknown_gpu(name, profiles))
}

fn unknown_gpu(id: &str, profiles: &Profiles) -> String {
    let near = profiles.near(id, NEAR).into_iter();
    let near: Vec<String> = near.map(|near| format!("\"{near}\"")).collect();
    let close = match near.split_last() {
        None => String::new(),
        Some((only, [])) => format!(": did you mean {only}?"),
        Some((last, rest)) => format!(": did you mean {} or {last}?", rest.join(", ")),
    };
    format!("unknown GPU \"{id}\"{close} (`warplens gpus` lists them)")
}

/// What the schema says of every model, after what it says of none.
fn models(
    none: impl Into<Option<&'static str>>,
    of: fn(ModelId) -> &'static str,
) -> Vec<Option<&'static str>> {
    let all = ModelId::ALL.into_iter().map(|model| Some(of(model)));
    [none.into()].into_iter().chain(all).collect()
}

/// One line about a model that is not known; `None` for one that is.
fn unknown_model(name: &str) -> Option<String> {
    let models = ModelId::ALL.map(ModelId::name);
    (!models.contains(&name))
        .then(|| format!("unknown model \"{name}\" (one of {})", models.join(", ")))
}

/// One line about something that is neither a rule nor a category; `None` for one that is.
fn unknown_rule(name: &str) -> Option<String> {
    let known = warplens_advice::catalogue()
        .iter()
        .any(|known| known.id == name || known.category() == name);
    (!known).then(|| format!("unknown rule \"{name}\" (`warplens explain` lists them)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_names_no_compiler_and_opens_no_doors() {
        let text = "gpu = \"gtx-280\"\ncompiler = \"./evil\"\ncompilerTimeout = 5\nincludesOutsideWorkspace = true\n";
        let (settings, problems) = Settings::from_toml_with(text, &Profiles::builtin());
        let places: Vec<&str> = problems
            .iter()
            .map(|one| &text[one.range.clone()])
            .collect();
        let users = ["compiler", "compilerTimeout", READS_OUTSIDE];
        assert_eq!(places, users, "{problems:?}");
        assert!(
            problems[0].message.contains("user settings"),
            "{problems:?}"
        );
        assert_eq!(settings.gpu.as_deref(), Some("gtx-280"));
    }

    #[test]
    fn names_that_stand_for_nothing_are_reported_where_they_stand() {
        let text = "gpu = \"a100-sxm4-40g\"\nmodel = \"best\"\nassume = { n = 4096 }\n\
                    [rules]\nmem = \"hint\"\n\"mem/stride\" = \"off\"\n";
        let (settings, problems) = Settings::from_toml_with(text, &Profiles::builtin());
        let places: Vec<&str> = problems
            .iter()
            .map(|one| &text[one.range.clone()])
            .collect();
        assert_eq!(places, ["\"a100-sxm4-40g\"", "\"best\"", "\"mem/stride\""]);
        assert!(
            problems[0].message.contains("a100-sxm4-40gb"),
            "{problems:?}"
        );
        assert_eq!((settings.gpu, settings.model), (None, None));
        assert_eq!(settings.assume["n"], 4096);
        assert_eq!(settings.rules["mem"], RuleLevel::Hint);
    }
}
