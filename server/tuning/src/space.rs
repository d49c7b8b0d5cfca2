//! Spaces in Kernel Tuner's T1 format.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value as Json;

use crate::configuration::{Configuration, Extents};
use crate::{ExprValue, Expression};

/// A space of configurations: the parameters with their values, and the conditions that a configuration fulfils.
#[derive(Debug, Clone)]
pub struct Space {
    /// The kernel's name.
    pub kernel: String,
    /// The file that holds it, as it is written: relative to the space's own.
    pub file: Option<PathBuf>,
    /// Further macros of the compiler, from `-D`.
    pub defines: BTreeMap<String, String>,
    /// The parameters' names, in the order of the file.
    pub names: Vec<String>,
    /// Their values.
    pub values: Vec<Vec<ExprValue>>,
    /// Each condition with the last parameter that it depends on, in binding order.
    conditions: Vec<(usize, Expression)>,
    /// The expressions of the launch's extents.
    launch: Launch,
    /// Values of scalar parameters by name.
    args: Vec<(String, f64)>,
    /// The size of the problem, for expressions and cache files.
    pub problem: Vec<ExprValue>,
}

#[derive(Debug, Clone)]
struct Launch {
    block: [Expression; 3],
    /// Blocks, or work-items where `of_items`.
    global: [Option<Expression>; 3],
    of_items: bool,
    divisors: [Option<Vec<Expression>>; 3],
    dynamic_shared: Expression,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct File {
    configuration_space: ConfigurationSpace,
    kernel_specification: KernelSpecification,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ConfigurationSpace {
    tuning_parameters: Vec<Parameter>,
    #[serde(default)]
    conditions: Vec<Condition>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Parameter {
    name: String,
    values: Json,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Condition {
    expression: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
struct KernelSpecification {
    kernel_name: String,
    kernel_file: Option<PathBuf>,
    compiler_options: Vec<String>,
    global_size_type: Option<String>,
    local_size: BTreeMap<String, Json>,
    global_size: BTreeMap<String, Json>,
    grid_div_x: Option<Vec<Json>>,
    grid_div_y: Option<Vec<Json>>,
    grid_div_z: Option<Vec<Json>>,
    problem_size: Json,
    shared_memory: Json,
    arguments: Vec<ArgumentSpecification>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
struct ArgumentSpecification {
    name: Option<String>,
    memory_type: String,
    fill_value: Json,
}

/// The names by which expressions of launches know the axes.
const AXES: [&str; 3] = ["X", "Y", "Z"];
const BLOCKS: [&str; 3] = ["block_size_x", "block_size_y", "block_size_z"];

impl Space {
    /// Reads a file's text.
    ///
    /// # Errors
    /// One line: what is missing or not understood.
    pub fn read(text: &str) -> Result<Space, String> {
        let file: File = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let kernel = file.kernel_specification;
        let problem = problem(&kernel.problem_size)?;
        let about = BTreeMap::from([("ProblemSize".to_owned(), ExprValue::List(problem.clone()))]);
        let mut names = Vec::new();
        let mut values = Vec::new();
        for parameter in file.configuration_space.tuning_parameters {
            let of = |why| format!("parameter `{}`: {why}", parameter.name);
            let all = match &parameter.values {
                Json::Array(items) => items
                    .iter()
                    .map(value)
                    .collect::<Result<_, _>>()
                    .map_err(of)?,
                Json::String(text) => {
                    match Expression::read(text)
                        .and_then(|all| all.evaluate(&about))
                        .map_err(of)?
                    {
                        ExprValue::List(all) => all,
                        one => vec![one],
                    }
                }
                other => vec![value(other).map_err(of)?],
            };
            if names.contains(&parameter.name) {
                return Err(of("is defined twice".to_owned()));
            }
            names.push(parameter.name);
            values.push(all);
        }
        let known = |name: &&str| names.iter().any(|known| known == name) || *name == "ProblemSize";
        let mut conditions = Vec::new();
        for condition in file.configuration_space.conditions {
            let expression = Expression::read(&condition.expression)
                .map_err(|why| format!("condition {why}"))?;
            let hangs_on = expression.names();
            if let Some(name) = hangs_on.iter().find(|name| !known(name)) {
                return Err(format!(
                    "condition `{}`: `{name}` is not a parameter of the space",
                    condition.expression
                ));
            }
            let last = hangs_on
                .iter()
                .filter_map(|name| names.iter().position(|known| known == name));
            conditions.push((last.max().unwrap_or(0), expression));
        }
        let launch = Launch::read(&kernel)?;
        let scalars = kernel
            .arguments
            .iter()
            .filter(|one| one.memory_type == "Scalar");
        let args = scalars.filter_map(|one| Some((one.name.clone()?, one.fill_value.as_f64()?)));
        let defines = kernel.compiler_options.iter().filter_map(|option| {
            let (name, value) = option
                .strip_prefix("-D")?
                .split_once('=')
                .unwrap_or((&option[2..], "1"));
            Some((name.to_owned(), value.to_owned()))
        });
        Ok(Space {
            args: args.collect(),
            defines: defines.collect(),
            kernel: kernel.kernel_name,
            file: kernel.kernel_file,
            names,
            values,
            conditions,
            launch,
            problem,
        })
    }

    /// The number of configurations before the conditions are applied.
    pub fn cartesian(&self) -> u128 {
        self.values
            .iter()
            .map(|values| values.len() as u128)
            .product()
    }

    /// Every configuration that fulfils the conditions, in the order of the values, the last parameter's the fastest.
    pub fn configurations(&self) -> Configurations<'_> {
        Configurations {
            space: self,
            at: Vec::new(),
            bound: BTreeMap::from([(
                "ProblemSize".to_owned(),
                ExprValue::List(self.problem.clone()),
            )]),
            begun: false,
        }
    }

    /// The configuration of one choice of values.
    fn configuration(&self, bound: &BTreeMap<String, ExprValue>) -> Result<Configuration, String> {
        let chosen: Vec<(&String, &ExprValue)> = self
            .names
            .iter()
            .filter_map(|name| Some((name, bound.get(name)?)))
            .collect();
        let id = chosen.iter().map(|(name, value)| {
            let value = match value {
                ExprValue::Int(value) => Json::from(*value),
                ExprValue::Real(value) => Json::from(*value),
                other => Json::from(other.to_string()),
            };
            ((*name).clone(), value)
        });
        let id: serde_json::Map<String, Json> = id.collect();
        let mut defines = self.defines.clone();
        defines.insert("kernel_tuner".to_owned(), "1".to_owned());
        let block = self.launch.block(bound)?;
        let grid = self.launch.grid(bound, block, &self.problem)?;
        for ((axis, threads), blocks) in ["x", "y", "z"].iter().zip(block).zip(grid) {
            defines.insert(format!("block_size_{axis}"), threads.to_string());
            defines.insert(format!("grid_size_{axis}"), blocks.to_string());
        }
        let mut without_unroll = Vec::new();
        for (name, value) in chosen {
            // The pragma of a factor of 0 is removed, not expanded.
            if name.contains("loop_unroll_factor") && !value.is_true() {
                without_unroll.push(name.clone());
            }
            defines.insert(name.clone(), value.to_string());
        }
        let dynamic = self.launch.dynamic_shared.evaluate(bound)?;
        let mut configuration = Configuration {
            id: Json::Object(id),
            defines,
            grid: Some(Extents(grid)),
            block: Some(Extents(block)),
            dynamic_shared_bytes: Some(extent(&dynamic, 0)?),
            without_unroll,
            ..Configuration::default()
        };
        for (name, value) in &self.args {
            configuration.give(name.clone(), *value);
        }
        Ok(configuration)
    }
}

/// The walk over a space; it holds one configuration at a time.
#[derive(Debug)]
pub struct Configurations<'a> {
    space: &'a Space,
    /// The index of each bound parameter's value.
    at: Vec<usize>,
    bound: BTreeMap<String, ExprValue>,
    begun: bool,
}

impl Configurations<'_> {
    /// Binds the next parameter to its value of that number.
    fn bind(&mut self, value: usize) {
        let depth = self.at.len();
        self.at.push(value);
        let name = self.space.names[depth].clone();
        self.bound
            .insert(name, self.space.values[depth][value].clone());
    }

    /// Backtracks to the next value of the last bound parameter, or of one before it; false at the end of the space.
    fn next_value(&mut self) -> bool {
        while let Some(value) = self.at.pop() {
            let depth = self.at.len();
            if value + 1 < self.space.values[depth].len() {
                self.bind(value + 1);
                return true;
            }
        }
        false
    }

    /// Whether the conditions hold that depend on the parameter bound last and those before it.
    fn holds(&self) -> Result<bool, String> {
        let last = self.at.len() - 1;
        for (_, condition) in self.space.conditions.iter().filter(|(at, _)| *at == last) {
            if !condition.evaluate(&self.bound)?.is_true() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Iterator for Configurations<'_> {
    type Item = Result<Configuration, String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.space.values.is_empty() || self.space.values.iter().any(Vec::is_empty) {
            return None;
        }
        if self.begun {
            if !self.next_value() {
                return None;
            }
        } else {
            self.begun = true;
            self.bind(0);
        }
        loop {
            match self.holds() {
                Ok(true) if self.at.len() == self.space.names.len() => {
                    return Some(self.space.configuration(&self.bound));
                }
                Ok(true) => {
                    self.bind(0);
                    continue;
                }
                Ok(false) => {}
                // An error for this configuration only; the walk continues.
                Err(why) => return Some(Err(why)),
            }
            if !self.next_value() {
                return None;
            }
        }
    }
}

impl Launch {
    fn read(kernel: &KernelSpecification) -> Result<Launch, String> {
        let text = |json: &Json| match json {
            Json::String(text) => Some(text.clone()),
            Json::Number(number) => Some(number.to_string()),
            _ => None,
        };
        let of = |sizes: &BTreeMap<String, Json>, axis: usize| sizes.get(AXES[axis]).and_then(text);
        let block = |axis: usize| {
            let written = of(&kernel.local_size, axis);
            Expression::read(
                written
                    .as_deref()
                    .unwrap_or(if axis == 0 { BLOCKS[0] } else { "1" }),
            )
        };
        let global =
            |axis: usize| of(&kernel.global_size, axis).map(|text| Expression::read(&text));
        let divisors = |given: &Option<Vec<Json>>| {
            let read = |all: &Vec<Json>| {
                all.iter()
                    .filter_map(text)
                    .map(|text| Expression::read(&text))
                    .collect()
            };
            given.as_ref().map(read).transpose()
        };
        let shared = text(&kernel.shared_memory).unwrap_or_else(|| "0".to_owned());
        Ok(Launch {
            block: [block(0)?, block(1)?, block(2)?],
            global: [
                global(0).transpose()?,
                global(1).transpose()?,
                global(2).transpose()?,
            ],
            of_items: kernel.global_size_type.as_deref() == Some("OpenCL"),
            divisors: [
                divisors(&kernel.grid_div_x)?,
                divisors(&kernel.grid_div_y)?,
                divisors(&kernel.grid_div_z)?,
            ],
            dynamic_shared: Expression::read(&shared)?,
        })
    }

    fn block(&self, bound: &BTreeMap<String, ExprValue>) -> Result<[u64; 3], String> {
        let mut block = [1; 3];
        for (axis, threads) in self.block.iter().enumerate() {
            block[axis] = extent(&threads.evaluate(bound)?, 0)?;
        }
        Ok(block)
    }

    /// As in Kernel Tuner: the problem size over the divisors, rounded up; without a problem size, the grid that the file
    /// names.
    fn grid(
        &self,
        bound: &BTreeMap<String, ExprValue>,
        block: [u64; 3],
        problem: &[ExprValue],
    ) -> Result<[u64; 3], String> {
        let mut grid = [1; 3];
        for axis in 0..3 {
            if let Some(size) = problem.get(axis) {
                let mut divisor = 1.0;
                match &self.divisors[axis] {
                    Some(all) => {
                        for one in all {
                            divisor *= number(&one.evaluate(bound)?)?;
                        }
                    }
                    None if bound.contains_key(BLOCKS[axis]) => divisor = block[axis] as f64,
                    None => {}
                }
                if divisor <= 0.0 {
                    return Err(format!(
                        "the grid's divisor along {} is {divisor}",
                        AXES[axis]
                    ));
                }
                grid[axis] = (number(size)? / divisor).ceil() as u64;
            } else if let Some(global) = &self.global[axis]
                && problem.is_empty()
            {
                let size = extent(&global.evaluate(bound)?, 0)?;
                let items = if self.of_items { block[axis].max(1) } else { 1 };
                grid[axis] = size.div_ceil(items);
            }
        }
        Ok(grid)
    }
}

fn problem(json: &Json) -> Result<Vec<ExprValue>, String> {
    match json {
        Json::Null => Ok(Vec::new()),
        Json::Array(sizes) => sizes.iter().map(value).collect(),
        Json::String(text) => match Expression::read(text)?.evaluate(&BTreeMap::new())? {
            ExprValue::List(sizes) => Ok(sizes),
            one => Ok(vec![one]),
        },
        one => Ok(vec![value(one)?]),
    }
}

fn value(json: &Json) -> Result<ExprValue, String> {
    match json {
        Json::Bool(flag) => Ok(ExprValue::Int(i64::from(*flag))),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => Ok(ExprValue::Int(whole)),
            None => number
                .as_f64()
                .map(ExprValue::Real)
                .ok_or_else(|| format!("{number} does not fit")),
        },
        Json::String(text) => Ok(ExprValue::Text(text.clone())),
        other => Err(format!("{other} is neither a number nor a text")),
    }
}

fn number(value: &ExprValue) -> Result<f64, String> {
    match value {
        ExprValue::Int(value) => Ok(*value as f64),
        ExprValue::Real(value) => Ok(*value),
        other => Err(format!("{other} is not a number")),
    }
}

/// A whole number that is no less than that.
fn extent(value: &ExprValue, least: u64) -> Result<u64, String> {
    let number = number(value)?;
    if number.fract() == 0.0 && number >= least as f64 && number < 1e15 {
        Ok(number as u64)
    } else {
        Err(format!("{value} is not a valid size"))
    }
}
