//! Reads profile files. Every error names the file, the key and what would be right.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::derived;
use crate::error::ProfileError;
use crate::profile::{Figure, Header, KEYS, KeySpec, Profile, Vendor};
use crate::property::Property;
use crate::rules::{BankRule, GlobalRule, KernelArguments, RULES, RegisterScope, Rule, RuleSpec};

/// The version of the file format.
pub(crate) const SCHEMA: i64 = 1;

/// The table of the linear model's weights.
const WEIGHTS: &str = "linear_weights";

/// The unit of a weight.
const WEIGHT_UNIT: &str = "ps";

/// Header keys of every file.
const TEXTS: [&str; 5] = ["id", "name", "vendor", "architecture", "compute_capability"];

/// Keys of which only a few values exist.
const CHOICES: [(&str, &[f64], &str); 2] = [
    ("warp_size", &[16.0, 32.0, 64.0], "16, 32 or 64"),
    ("banks", &[16.0, 32.0], "16 or 32"),
];

/// The first figure of each pair is no larger than the second.
const AT_MOST: [(&str, &str); 22] = [
    ("shared_per_block", "shared_per_sm"),
    ("shared_per_block_opt_in", "shared_per_sm"),
    ("shared_per_block", "shared_per_block_opt_in"),
    ("shared_reserved_per_block", "shared_per_sm"),
    ("register_unit", "registers_per_sm"),
    ("max_registers_per_thread", "registers_per_sm"),
    ("sub_partitions", "max_warps_per_sm"),
    ("warp_granularity", "max_warps_per_sm"),
    // A block has a warp at least.
    ("max_blocks_per_sm", "max_warps_per_sm"),
    ("barriers_per_sm", "max_blocks_per_sm"),
    ("max_block_x", "max_threads_per_block"),
    ("max_block_y", "max_threads_per_block"),
    ("max_block_z", "max_threads_per_block"),
    // What is further away is larger and slower.
    ("l1_bytes", "l2_bytes"),
    ("shared_latency", "dram_latency"),
    ("l1_latency", "l2_latency"),
    ("l1_latency", "dram_latency"),
    ("l2_latency", "dram_latency"),
    ("dram_bandwidth_gb_s", "l2_bandwidth_gb_s"),
    // The wider or rarer the operation, the fewer units.
    ("fp64_lanes", "fp32_lanes"),
    ("sfu_lanes", "fp32_lanes"),
    ("int_mul_lanes", "int_lanes"),
];

/// The first figure of each pair is a multiple of the second.
const MULTIPLES: [(&str, &str); 4] = [
    ("registers_per_sm", "register_unit"),
    ("registers_per_sm", "sub_partitions"),
    ("shared_per_sm", "shared_unit"),
    ("shared_per_sm", "banks"),
];

/// Bytes that a bank gives in a clock cycle at most: those of 3.x.
const WIDEST_BANK: f64 = 8.0;

/// A value and where it is: which file (index) and which bytes of it.
#[derive(Debug, Clone)]
struct At<T> {
    value: T,
    file: usize,
    span: Range<usize>,
}

/// What a device file and the architecture it builds on say, the device's word first.
#[derive(Debug, Default)]
struct Draft {
    /// Name and text of the files read, the device's first.
    files: Vec<(String, String)>,
    texts: BTreeMap<&'static str, At<String>>,
    rules: BTreeMap<&'static str, At<Rule>>,
    figures: BTreeMap<&'static str, At<Figure>>,
    weights: BTreeMap<Property, Figure>,
}

/// The profile in `text`, completed from the architecture of its name among `architectures`
/// (name and text of each).
pub(crate) fn profile(
    file_name: &str,
    text: &str,
    architectures: &[(&str, &str)],
) -> Result<Profile, ProfileError> {
    let mut draft = Draft::default();
    draft.read(file_name, text)?;
    let architecture = draft.need_text("architecture", "such as \"sm_80\"")?;
    let shared = architectures.iter().find(|(name, _)| *name == architecture);
    if let Some((name, text)) = shared {
        draft.read(&format!("architectures/{name}.toml"), text)?;
    }
    draft.finish(&architecture, shared.is_some())
}

impl Draft {
    fn error(
        &self,
        file: usize,
        key: &str,
        span: Option<Range<usize>>,
        problem: String,
    ) -> ProfileError {
        let (name, text) = self
            .files
            .get(file)
            .map_or(("", ""), |(n, t)| (n.as_str(), t.as_str()));
        ProfileError::new(name, text, Some(key), span, problem)
    }

    /// Takes in one file; what an earlier file said is.
    fn read(&mut self, file_name: &str, text: &str) -> Result<(), ProfileError> {
        let file = self.files.len();
        self.files.push((file_name.to_owned(), text.to_owned()));
        let root = DeTable::parse(text).map_err(|error| {
            let problem = error.message().to_owned();
            ProfileError::new(file_name, text, None, error.span(), problem)
        })?;
        let root = root.get_ref();
        let Some(schema) = root.get("schema") else {
            let problem = format!("is missing; add `schema = {SCHEMA}`");
            return Err(self.error(file, "schema", None, problem));
        };
        let supported = schema
            .get_ref()
            .as_integer()
            .is_some_and(|n| i64::from_str_radix(n.as_str(), n.radix()) == Ok(SCHEMA));
        if !supported {
            let problem = format!("must be {SCHEMA}, the version this warplens reads");
            return Err(self.error(file, "schema", Some(schema.span()), problem));
        }
        for (key, value) in root {
            let name: &str = key.get_ref();
            if name == "schema" {
            } else if let Some(known) = TEXTS.into_iter().find(|known| *known == name) {
                let text = self.text(file, known, value)?;
                self.texts.entry(known).or_insert(text);
            } else if let Some(known) = RULES.iter().find(|known| known.name == name) {
                let rule = self.rule(file, known, value)?;
                self.rules.entry(known.name).or_insert(rule);
            } else if let Some(known) = KEYS.iter().find(|known| known.name == name) {
                let figure = self.figure(file, known, value)?;
                self.figures.entry(known.name).or_insert(figure);
            } else if name == WEIGHTS {
                self.weights(file, value)?;
            } else {
                return Err(self.error(file, name, Some(key.span()), unknown_key(name)));
            }
        }
        Ok(())
    }

    fn text(
        &self,
        file: usize,
        key: &str,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<At<String>, ProfileError> {
        let text = value.get_ref().as_str().map(str::trim).unwrap_or_default();
        if text.is_empty() {
            let problem = format!("must be a text that is not empty, as in `{key} = \"…\"`");
            return Err(self.error(file, key, Some(value.span()), problem));
        }
        Ok(At {
            value: text.to_owned(),
            file,
            span: value.span(),
        })
    }

    /// The two members of `key = { value = …, source = "…" }`.
    fn members<'v, 't>(
        &self,
        file: usize,
        key: &str,
        entry: &'v Spanned<DeValue<'t>>,
        example: &str,
    ) -> Result<(&'v Spanned<DeValue<'t>>, String), ProfileError> {
        let shape = || format!("must be written `{key} = {{ value = {example}, source = \"…\" }}`");
        let Some(table) = entry.get_ref().as_table() else {
            return Err(self.error(file, key, Some(entry.span()), shape()));
        };
        for (member, _) in table {
            let name: &str = member.get_ref();
            if name != "value" && name != "source" {
                let path = format!("{key}.{name}");
                let why = if name == "unit" {
                    "the key fixes the unit; "
                } else {
                    ""
                };
                let problem = format!("is not known here; {why}`{key}` {}", shape());
                return Err(self.error(file, &path, Some(member.span()), problem));
            }
        }
        let Some(value) = table.get("value") else {
            return Err(self.error(file, key, Some(entry.span()), shape()));
        };
        let source = table.get("source");
        let text = source
            .and_then(|s| s.get_ref().as_str())
            .map(str::trim)
            .unwrap_or_default();
        if text.is_empty() {
            let problem = "must say where the figure comes from; \
                `estimated: <rule>` where it is not published";
            let span = source.map_or_else(|| entry.span(), Spanned::span);
            return Err(self.error(
                file,
                &format!("{key}.source"),
                Some(span),
                problem.to_owned(),
            ));
        }
        Ok((value, text.to_owned()))
    }

    fn rule(
        &self,
        file: usize,
        key: &'static RuleSpec,
        entry: &Spanned<DeValue<'_>>,
    ) -> Result<At<Rule>, ProfileError> {
        let (value, source) = self.members(file, key.name, entry, "\"…\"")?;
        let name = value
            .get_ref()
            .as_str()
            .filter(|name| key.choices.contains(name));
        let Some(name) = name else {
            let problem = format!("must be {}", one_of(key.choices));
            return Err(self.error(file, key.name, Some(value.span()), problem));
        };
        let rule = Rule {
            value: name.to_owned(),
            source,
        };
        Ok(At {
            value: rule,
            file,
            span: value.span(),
        })
    }

    fn figure(
        &self,
        file: usize,
        key: &'static KeySpec,
        entry: &Spanned<DeValue<'_>>,
    ) -> Result<At<Figure>, ProfileError> {
        let (value, source) = self.members(file, key.name, entry, &format!("<{}>", key.unit))?;
        let number = number(value.get_ref())
            .filter(|n| (key.min..=key.max).contains(n) && (!key.whole || n.fract() == 0.0));
        let Some(number) = number else {
            let kind = if key.whole {
                "a whole number"
            } else {
                "a number"
            };
            let (min, max, unit) = (key.min, key.max, key.unit);
            let problem = format!("must be {kind} from {min} to {max} ({unit})");
            return Err(self.error(file, key.name, Some(value.span()), problem));
        };
        let figure = Figure {
            value: number,
            unit: key.unit,
            source,
        };
        Ok(At {
            value: figure,
            file,
            span: value.span(),
        })
    }

    /// The table `[linear_weights]`: a figure a property, the device's own before the architecture's.
    fn weights(&mut self, file: usize, table: &Spanned<DeValue<'_>>) -> Result<(), ProfileError> {
        let Some(entries) = table.get_ref().as_table() else {
            let problem = format!("must be a table of properties, as in `[{WEIGHTS}]`");
            return Err(self.error(file, WEIGHTS, Some(table.span()), problem));
        };
        for (key, entry) in entries {
            let name: &str = key.get_ref();
            let path = format!("{WEIGHTS}.{name}");
            let Some(property) = Property::named(name) else {
                let problem = match nearest(name, Property::all().map(|known| known.to_string())) {
                    Some(near) => format!("is not a property of the linear model; `{near}` is"),
                    None => "is not a property of the linear model; docs/models/linear.md lists \
                             them"
                        .to_owned(),
                };
                return Err(self.error(file, &path, Some(key.span()), problem));
            };
            let (value, source) = self.members(file, &path, entry, &format!("<{WEIGHT_UNIT}>"))?;
            let (min, max) = Profile::weight_range(property);
            let Some(number) = number(value.get_ref()).filter(|n| (min..=max).contains(n)) else {
                let problem = format!("must be a number from {min} to {max} ({WEIGHT_UNIT})");
                return Err(self.error(file, &path, Some(value.span()), problem));
            };
            self.weights.entry(property).or_insert(Figure {
                value: number,
                unit: WEIGHT_UNIT,
                source,
            });
        }
        Ok(())
    }

    fn need_text(&self, key: &'static str, hint: &str) -> Result<String, ProfileError> {
        self.texts
            .get(key)
            .map(|at| at.value.clone())
            .ok_or_else(|| {
                self.error(
                    0,
                    key,
                    None,
                    format!("is missing; add `{key} = \"…\"`, {hint}"),
                )
            })
    }

    fn bad_text(&self, key: &'static str, problem: String) -> ProfileError {
        let at = self.texts.get(key);
        self.error(
            at.map_or(0, |at| at.file),
            key,
            at.map(|at| at.span.clone()),
            problem,
        )
    }

    fn choice<T>(&self, key: &str, parse: impl Fn(&str) -> Option<T>) -> Result<T, ProfileError> {
        self.rules
            .get(key)
            .and_then(|at| parse(&at.value.value))
            .ok_or_else(|| {
                let choices = RULES
                    .iter()
                    .find(|rule| rule.name == key)
                    .map_or(&[][..], |r| r.choices);
                let choices = one_of(choices);
                let problem = format!(
                    "is missing; add `{key} = {{ value = …, source = \"…\" }}` with {choices}"
                );
                self.error(0, key, None, problem)
            })
    }

    fn finish(self, architecture: &str, inherits: bool) -> Result<Profile, ProfileError> {
        let id = self.need_text("id", "the name users write")?;
        if !id
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        {
            let problem = "must be of lower-case letters, digits and hyphens".to_owned();
            return Err(self.bad_text("id", problem));
        }
        let vendors = "`nvidia`, `amd` or `intel`";
        let vendor = Vendor::parse(&self.need_text("vendor", vendors)?)
            .ok_or_else(|| self.bad_text("vendor", format!("must be {vendors}")))?;
        let compute_capability = match self.texts.get("compute_capability") {
            None => None,
            Some(at) => Some(capability(&at.value).ok_or_else(|| {
                let problem = "must be major and minor, as in \"8.0\"".to_owned();
                self.bad_text("compute_capability", problem)
            })?),
        };
        let banks = self
            .figures
            .get("banks")
            .map_or(0, |at| at.value.value as u32);
        let header = Header {
            id,
            name: self.need_text("name", "the name on the box")?,
            vendor,
            compute_capability,
            global_rule: self.choice("coalescing", GlobalRule::parse)?,
            bank_rule: self.choice("bank_mode", |text| BankRule::parse(text, banks))?,
            register_scope: self.choice("register_scope", RegisterScope::parse)?,
            kernel_arguments: self.choice("kernel_arguments", KernelArguments::parse)?,
            architecture: architecture.to_owned(),
        };
        self.check()?;
        let value = |key: &str| self.value(key);
        let stated = (self.figures.iter()).map(|(key, at)| (*key, at.value.clone()));
        let figures = stated
            .chain(derived::figures(&value))
            .map(|(key, figure)| (key.to_owned(), figure));
        let rules = self
            .rules
            .iter()
            .map(|(key, at)| ((*key).to_owned(), at.value.clone()));
        let (figures, rules) = (figures.collect(), rules.collect());
        Profile::assemble(header, figures, rules, self.weights.clone()).map_err(|key| {
            let (name, unit) = (key.name, key.unit);
            let inherited = if inherits {
                String::new()
            } else {
                format!(
                    "; no embedded architecture is called `{architecture}`, so nothing is inherited"
                )
            };
            let problem = format!(
                "is missing; add `{name} = {{ value = <{unit}>, source = \"…\" }}`{inherited}"
            );
            self.error(0, name, None, problem)
        })
    }

    /// What the range of a single key cannot say.
    fn check(&self) -> Result<(), ProfileError> {
        for (key, choices, words) in CHOICES {
            if self.value(key).is_some_and(|n| !choices.contains(&n)) {
                return Err(self.bad_figure(key, format!("must be {words}")));
            }
        }
        for (small, large) in AT_MOST {
            self.at_most(small, large)?;
        }
        for (whole, part) in MULTIPLES {
            if let (Some(a), Some(b)) = (self.value(whole), self.value(part))
                && a % b != 0.0
            {
                let own = |key| self.figures.get(key).is_some_and(|at| at.file == 0);
                return Err(if own(part) && !own(whole) {
                    self.bad_figure(part, format!("must divide `{whole}`, which is {a}"))
                } else {
                    let problem = format!("must be a multiple of `{part}`, which is {b}");
                    self.bad_figure(whole, problem)
                });
            }
        }
        self.check_threads()?;
        self.check_registers()?;
        self.check_requests()
    }

    fn value(&self, key: &str) -> Option<f64> {
        self.figures.get(key).map(|at| at.value.value)
    }

    fn at_most(&self, small: &str, large: &str) -> Result<(), ProfileError> {
        if let (Some(a), Some(b)) = (self.value(small), self.value(large))
            && a > b
        {
            // The device's own figure is the one to doubt, not the architecture's.
            let own = |key| self.figures.get(key).is_some_and(|at| at.file == 0);
            return Err(if own(large) && !own(small) {
                self.bad_figure(large, format!("must be at least `{small}`, which is {a}"))
            } else {
                self.bad_figure(small, format!("must be at most `{large}`, which is {b}"))
            });
        }
        Ok(())
    }

    /// A block must fit an SM.
    fn check_threads(&self) -> Result<(), ProfileError> {
        if let (Some(threads), Some(warps), Some(lanes)) = (
            self.value("max_threads_per_block"),
            self.value("max_warps_per_sm"),
            self.value("warp_size"),
        ) && threads > warps * lanes
        {
            let most = warps * lanes;
            let problem = format!("must be at most the {most} threads that fit on an SM");
            return Err(self.bad_figure("max_threads_per_block", problem));
        }
        Ok(())
    }

    /// A warp of threads with the most registers must fit the registers that it is given its own from.
    fn check_registers(&self) -> Result<(), ProfileError> {
        let of_warps = self
            .rules
            .get("register_scope")
            .is_some_and(|at| at.value.value == "warp");
        if let (Some(most), Some(lanes), Some(all), Some(parts)) = (
            self.value("max_registers_per_thread"),
            self.value("warp_size"),
            self.value("registers_per_sm"),
            self.value("sub_partitions"),
        ) && of_warps
            && most * lanes > all / parts
        {
            let fit = (all / parts / lanes).floor();
            let problem = format!(
                "must be at most {fit}: a warp of {lanes} lanes then has all registers of a sub-partition"
            );
            return Err(self.bad_figure("max_registers_per_thread", problem));
        }
        Ok(())
    }

    /// A request's unit is a part of a line, and the banks do not give more than they hold.
    fn check_requests(&self) -> Result<(), ProfileError> {
        let unit = self
            .rules
            .get("coalescing")
            .and_then(|at| GlobalRule::parse(&at.value.value))
            .and_then(GlobalRule::largest_unit);
        if let (Some(unit), Some(line)) = (unit, self.value("cache_line_bytes"))
            && f64::from(unit) > line
        {
            let problem =
                format!("must be at least {unit}: `coalescing` moves {unit} bytes at a time");
            return Err(self.bad_figure("cache_line_bytes", problem));
        }
        if let (Some(bandwidth), Some(banks)) =
            (self.value("shared_bandwidth_b_clk"), self.value("banks"))
            && bandwidth > banks * WIDEST_BANK
        {
            let most = banks * WIDEST_BANK;
            let problem = format!("must be at most {most}: {banks} banks of {WIDEST_BANK} bytes");
            return Err(self.bad_figure("shared_bandwidth_b_clk", problem));
        }
        Ok(())
    }

    fn bad_figure(&self, key: &str, problem: String) -> ProfileError {
        let at = self.figures.get(key);
        self.error(
            at.map_or(0, |at| at.file),
            key,
            at.map(|at| at.span.clone()),
            problem,
        )
    }
}

fn number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Integer(n) => i64::from_str_radix(n.as_str(), n.radix())
            .ok()
            .map(|number| number as f64),
        DeValue::Float(n) => n.as_str().parse().ok(),
        _ => None,
    }
}

fn capability(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// "`a`, `b` or `c`".
fn one_of(choices: &[&str]) -> String {
    let quoted: Vec<String> = choices.iter().map(|choice| format!("`{choice}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}

fn unknown_key(name: &str) -> String {
    let known = TEXTS
        .into_iter()
        .chain([WEIGHTS])
        .chain(RULES.iter().map(|rule| rule.name))
        .chain(KEYS.iter().map(|key| key.name));
    match nearest(name, known) {
        Some(key) => format!("is not a key of a profile; `{key}` is"),
        None => "is not a key of a profile; hw-profiles/README.md lists them".to_owned(),
    }
}

/// The name that was probably meant.
fn nearest<T: AsRef<str>>(name: &str, known: impl Iterator<Item = T>) -> Option<String> {
    let squeezed = |text: &str| text.replace('_', "");
    let known: Vec<T> = known.collect();
    if let Some(same) = known
        .iter()
        .find(|key| squeezed(key.as_ref()) == squeezed(name))
    {
        return Some(same.as_ref().to_owned());
    }
    known
        .iter()
        .map(|key| (crate::spelling::edits(name, key.as_ref()), key.as_ref()))
        .min()
        .filter(|(edits, _)| *edits <= name.len().max(3) / 3)
        .map(|(_, key)| key.to_owned())
}
