//! What code actions make of kernels that they were not written for: the fixtures of [`actions`].
//!
//! Each edited text leaves the same results, its findings are fewer, it is not predicted slower, and the action is not
//! offered there again. Chains of actions in random order leave the same results as well.

use crate::actions::{Fixture, Opened, Random, Run, fixtures};
use warplens_db::PlacedFix;
use warplens_oracle::{Argument, Dialect, Launch, Program};

/// A kernel that is predicted slower by more than this is.
const SLOWER: f64 = 1.0005;

/// How results are compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    Bytes,
    Float,
    Double,
}

/// What is in an array, by how the kernel declares its parameter.
pub fn number(fixture: &Fixture, text: &str, parameter: &str) -> Number {
    let declared = text.split(['(', ',']).find(|part| {
        let name = part.split(')').next().unwrap_or(part).trim_end();
        name.contains('*') && name.ends_with(parameter)
    });
    let declared = declared.unwrap_or_default();
    let words: Vec<&str> = declared
        .split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .map(|word| fixture.template.get(word).map_or(word, String::as_str))
        .collect();
    if words.iter().any(|word| word.starts_with("double")) {
        Number::Double
    } else if words.iter().any(|word| word.starts_with("float")) {
        Number::Float
    } else {
        Number::Bytes
    }
}

/// What a run leaves.
#[derive(Debug, Default)]
pub struct Left {
    /// Parameter and bytes.
    pub arrays: Vec<(String, Vec<u8>)>,
    /// Threads of a block met in memory with no barrier in between.
    races: bool,
}

/// What a kernel leaves in its arrays.
pub fn results(fixture: &Fixture, text: &str, run: &Run, launch: &Run) -> Result<Left, String> {
    let dialect = if fixture.path.extension().is_some_and(|kind| kind == "cl") {
        Dialect::OpenCl
    } else {
        Dialect::Cuda
    };
    let program = Program::read(text, dialect).map_err(|error| error.to_string())?;
    if let Some(error) = program.unread().first() {
        return Err(format!("unread: {error}"));
    }
    let kernel = fixture.kernel.clone().unwrap_or_else(|| {
        let first = |name: &String| text.find(&format!(" {name}(")).unwrap_or(usize::MAX);
        program
            .kernels()
            .into_iter()
            .min_by_key(first)
            .expect("a kernel")
    });
    let mut random = Random(7);
    let mut names = Vec::new();
    let mut arguments = Vec::new();
    for parameter in program.parameters(&kernel) {
        let value = run
            .values
            .get(&parameter)
            .unwrap_or_else(|| panic!("{}: no value for `{parameter}`", fixture.path.display()));
        arguments.push(if let Some(bytes) = run.contents(&parameter, &mut random) {
            names.push(parameter);
            Argument::Buffer(bytes)
        } else if let Ok(whole) = value.parse() {
            Argument::Int(whole)
        } else {
            Argument::Float(
                value
                    .parse()
                    .unwrap_or_else(|_| panic!("`{value}` is no number")),
            )
        });
    }
    let extents = |name| {
        launch
            .extents(name)
            .or_else(|| run.extents(name))
            .unwrap_or([1; 3])
    };
    let launch = Launch {
        grid: extents("grid"),
        block: extents("block"),
        template: fixture.template.clone(),
        races: true,
        ..Launch::default()
    };
    let ran = program
        .run(&kernel, &launch, &arguments)
        .map_err(|error| error.to_string())?;
    match ran.undefined {
        Some(what) => Err(what.to_string()),
        None => Ok(Left {
            arrays: names.into_iter().zip(ran.buffers).collect(),
            races: ran.race.is_some(),
        }),
    }
}

pub fn close(a: &[u8], b: &[u8], number: Number, tolerance: f64) -> bool {
    let near = |x: f64, y: f64| {
        (x - y).abs() <= tolerance * x.abs().max(y.abs()).max(1.0) || x.to_bits() == y.to_bits()
    };
    let float = |bytes: &[u8]| f64::from(f32::from_le_bytes(bytes.try_into().expect("four")));
    let double = |bytes: &[u8]| f64::from_le_bytes(bytes.try_into().expect("eight"));
    match number {
        Number::Bytes => a == b,
        Number::Float => a
            .chunks(4)
            .zip(b.chunks(4))
            .all(|(x, y)| near(float(x), float(y))),
        Number::Double => a
            .chunks(8)
            .zip(b.chunks(8))
            .all(|(x, y)| near(double(x), double(y))),
    }
}

/// The first difference between what two texts leave, under every run.
fn difference(
    fixture: &Fixture,
    before: &str,
    after: &str,
    tolerance: Option<f64>,
) -> Option<String> {
    for (at, run) in fixture.runs.iter().enumerate() {
        let same = Run::default();
        let relaunched = fixture.after.get(at).unwrap_or(&same);
        let first = match results(fixture, before, run, &same) {
            Ok(first) => first,
            Err(error) => return Some(format!("before: {error}")),
        };
        let second = match results(fixture, after, run, relaunched) {
            Ok(second) => second,
            Err(error) => return Some(format!("after: {error}")),
        };
        if first.arrays.len() != second.arrays.len() {
            return Some("other arrays".to_owned());
        }
        if second.races && !first.races {
            return Some(format!("threads race in run {}", at + 1));
        }
        for ((name, a), (_, b)) in first.arrays.iter().zip(&second.arrays) {
            let number = tolerance.map_or(Number::Bytes, |_| number(fixture, before, name));
            if !close(a, b, number, tolerance.unwrap_or(0.0)) {
                return Some(format!("`{name}` differs in run {}", at + 1));
            }
        }
    }
    None
}

/// Each fixture's runs write something that depends on their input: else equal results would prove nothing.
fn writes(fixture: &Fixture) -> bool {
    fixture.runs.iter().any(|run| {
        let left = results(fixture, &fixture.text, run, &Run::default())
            .unwrap_or_default()
            .arrays;
        let mut random = Random(7);
        let given: Vec<(String, Vec<u8>)> = left
            .iter()
            .map(|(name, _)| {
                (
                    name.clone(),
                    run.contents(name, &mut random).unwrap_or_default(),
                )
            })
            .collect();
        left != given
    })
}

fn cycles(opened: &Opened) -> Vec<f64> {
    let analysis = opened.analysis();
    let threads =
        |launch: &warplens_ir::Launch| (launch.blocks() * launch.threads_per_block()) as f64;
    analysis
        .kernels
        .iter()
        .filter_map(|placed| {
            let cycles = placed.analysis.estimate().cycles?;
            Some(cycles / threads(&placed.analysis.facts.launch).max(1.0))
        })
        .collect()
}

/// What a rule says, in words.
fn findings(opened: &Opened, rule: &str) -> Vec<String> {
    let of_rule = opened.analysis().findings.into_iter();
    let of_rule = of_rule.filter(|finding| finding.rule == rule);
    of_rule.map(|finding| finding.message).collect()
}

/// What is wrong with one action on one fixture.
fn faults(fixture: &Fixture, opened: &Opened, fix: &PlacedFix) -> Vec<String> {
    let after = opened.with(fix);
    let reopened = fixture.open(&after);
    let mut faults = Vec::new();
    faults.extend(difference(
        fixture,
        &fixture.text,
        &after,
        fixture.tolerance,
    ));
    // What is left may be said of less: a conflict of two where one of sixteen was.
    let left = findings(&reopened, fix.rule);
    let said = findings(opened, fix.rule);
    let cured = fixture.findings_stay
        || left.len() < said.len()
        || !said.iter().all(|finding| left.contains(finding));
    if left.len() > said.len() || !cured {
        faults.push(format!("{said:?} before, {left:?} after"));
    }
    for (before, after) in cycles(opened).iter().zip(cycles(&reopened)) {
        if after > before * SLOWER {
            faults.push(format!("{before} cycles per thread before, {after} after"));
        }
    }
    let again = reopened
        .fixes()
        .into_iter()
        .filter(|again| fixture.means(again))
        .count();
    let offered = opened
        .fixes()
        .iter()
        .filter(|fix| fixture.means(fix))
        .count();
    if again >= offered {
        faults.push(format!("offered {offered} times before, {again} after"));
    }
    faults
        .into_iter()
        .map(|fault| {
            format!(
                "{}: `{}`: {fault}\n{after}",
                fixture.path.display(),
                fix.title
            )
        })
        .collect()
}

#[test]
fn what_actions_make_of_kernels_does_the_same_and_does_it_better() {
    let mut faults = Vec::new();
    for fixture in fixtures() {
        let opened = fixture.open(&fixture.text);
        let offered: Vec<PlacedFix> = opened
            .fixes()
            .into_iter()
            .filter(|fix| fixture.means(fix))
            .collect();
        if offered.is_empty() {
            faults.push(format!("{}: nothing is offered", fixture.path.display()));
        }
        if !writes(&fixture) {
            faults.push(format!(
                "{}: the runs change nothing",
                fixture.path.display()
            ));
        }
        for fix in &offered {
            faults.extend(self::faults(&fixture, &opened, fix));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn chains_of_actions_in_random_order_leave_the_results() {
    /// Actions of one chain, at most.
    const LONGEST: usize = 4;
    let mut random = Random(20);
    let mut faults = Vec::new();
    for fixture in fixtures() {
        // Where the launch changes, another order of actions may need another one.
        if !fixture.after.is_empty() {
            continue;
        }
        let (mut text, mut titles) = (fixture.text.clone(), Vec::new());
        for _ in 0..LONGEST {
            let opened = fixture.open(&text);
            let offered = opened.fixes();
            let Some(fix) = offered.get(random.below(offered.len())) else {
                break;
            };
            titles.push(fix.title.clone());
            text = opened.with(fix);
        }
        // Each may round anew.
        let tolerance = titles.len() as f64 * fixture.tolerance.unwrap_or(1e-4);
        if let Some(difference) = difference(&fixture, &fixture.text, &text, Some(tolerance)) {
            faults.push(format!(
                "{}: {titles:?}: {difference}\n{text}",
                fixture.path.display()
            ));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
