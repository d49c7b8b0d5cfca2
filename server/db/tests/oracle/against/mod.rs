//! The analysis of a kernel held against a run of it, access by access, branch by branch, class by class.
#![allow(dead_code, reason = "each test takes a part of it")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::LazyLock;

use warplens_db::settings::Settings;
use warplens_db::wire::{Diagnostic, EstimateDocument, KernelResult};
use warplens_db::{Engine, LaunchValues, Overrides};
use warplens_machine::{Profile, Profiles};
use warplens_oracle::{
    Access, AccessKey, Argument, BranchCounts, BranchKey, BranchKind, Dialect, Launch, Position,
    Program, Run, Space, Tally,
};
use warplens_syntax::{Document, Language};

static ENGINE: LazyLock<Engine> = LazyLock::new(|| {
    let mut profiles = Profiles::builtin();
    profiles.insert(wave64(&profiles));
    Engine::new(profiles)
});

/// Which GPU a kernel is analysed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The default one: warps of 32 lanes, sectors of 32 bytes.
    Usual,
    /// Warps of 64 lanes, lines of 128 bytes; no built-in GPU has them.
    Wave64,
    /// Compute capability 1.3 and 1.0, which serve half a warp at a time. What their requests cost is held against tables in
    /// `hardware`; here it is which requests there are.
    HalfWarpSegments,
    HalfWarpStrict,
}

impl Target {
    /// Lanes of a warp.
    pub fn warp(self) -> usize {
        if self == Target::Wave64 { 64 } else { 32 }
    }

    fn gpu(self) -> Option<String> {
        match self {
            Target::Usual => None,
            Target::Wave64 => Some("wave64".to_owned()),
            Target::HalfWarpSegments => Some("gtx-280".to_owned()),
            Target::HalfWarpStrict => Some("geforce-8800-gtx".to_owned()),
        }
    }
}

/// A built-in GPU with longer warps and other lines.
fn wave64(profiles: &Profiles) -> Profile {
    let base = profiles.get("a100-sxm4-40gb").expect("it is built in");
    let mut text = String::from(
        "schema = 1\nid = \"wave64\"\nname = \"W\"\narchitecture = \"none\"\nvendor = \"amd\"\n",
    );
    for (key, figure) in base.figures() {
        let value = match key.as_str() {
            "warp_size" => 64.0,
            "max_warps_per_sm" => 32.0,
            _ => figure.value,
        };
        let _ = writeln!(text, "{key} = {{ value = {value}, source = \"test\" }}");
    }
    for (key, rule) in base.rules() {
        let value = match key.as_str() {
            "coalescing" => "cache-line-128",
            _ => &rule.value,
        };
        let _ = writeln!(text, "{key} = {{ value = \"{value}\", source = \"test\" }}");
    }
    Profiles::from_toml("wave64.toml", &text).unwrap_or_else(|error| panic!("{error}"))
}

/// One kernel under one launch.
pub struct Case<'a> {
    /// The file's text.
    pub text: &'a str,
    pub dialect: Dialect,
    pub kernel: &'a str,
    pub launch: Launch,
    /// The scalar arguments by name, for the analysis.
    pub scalars: BTreeMap<String, i64>,
    /// All arguments, for the run.
    pub arguments: Vec<Argument>,
}

/// What came of the comparison.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Accesses and branches the analysis listed, and how many of them it called exact.
    pub listed: usize,
    pub exact: usize,
    /// Lines about figures called exact that are not what was counted.
    pub wrong: Vec<String>,
    /// Lines about what was not called exact, or not listed.
    pub open: Vec<String>,
    pub counts_wrong: Vec<String>,
}

impl Case<'_> {
    /// Findings of barriers that threads of a block part at: those that are sure.
    pub fn partings(&self, target: Target) -> Vec<String> {
        let found = self.document_on(target).diagnostics.into_iter();
        let sure = |one: &Diagnostic| one.severity != "hint" && !one.message.contains("may part");
        found
            .filter(|one| one.rule == "div/early-exit-before-barrier" && sure(one))
            .map(|one| format!("{}:{} {}", one.line, one.column, one.message))
            .collect()
    }

    /// What the analysis says.
    pub fn analysis(&self) -> KernelResult {
        self.analysis_on(Target::Usual)
    }

    /// The same of a GPU.
    pub fn analysis_on(&self, target: Target) -> KernelResult {
        self.document_on(target).results.swap_remove(0)
    }

    /// What the analysis says of another text with a kernel of that name, under the first launch that the text makes.
    pub fn analysis_of(&self, text: &str) -> KernelResult {
        let document = Document::new(text, Language::Cuda);
        let mut found = ENGINE
            .estimate(
                &document,
                Path::new("kernel.cu"),
                &Settings::default(),
                &Overrides::default(),
                &[],
                &[],
                &[self.kernel.to_owned()],
            )
            .unwrap_or_else(|error| panic!("{}: {error}", self.kernel));
        found.results.swap_remove(0)
    }

    fn document_on(&self, target: Target) -> EstimateDocument {
        let (language, path) = match self.dialect {
            Dialect::Cuda => (Language::Cuda, "kernel.cu"),
            Dialect::OpenCl => (Language::OpenCl, "kernel.cl"),
        };
        let document = Document::new(self.text, language);
        let overrides = Overrides {
            argument: LaunchValues {
                grid: Some(self.launch.grid.map(u64::from)),
                block: Some(self.launch.block.map(u64::from)),
                dynamic_shared_bytes: Some(self.launch.dynamic_shared_bytes),
                args: self.scalars.clone(),
                ..LaunchValues::default()
            },
            template_args: self.launch.template.clone(),
            ..Overrides::default()
        };
        let settings = Settings {
            gpu: target.gpu(),
            ..Settings::default()
        };
        ENGINE
            .estimate(
                &document,
                Path::new(path),
                &settings,
                &overrides,
                &[],
                &[],
                &[self.kernel.to_owned()],
            )
            .unwrap_or_else(|error| panic!("{}: {error}", self.kernel))
    }

    /// What a run counts.
    pub fn run(&self) -> Result<Run, String> {
        Program::read(self.text, self.dialect)
            .and_then(|program| program.run(self.kernel, &self.launch, &self.arguments))
            .map_err(|error| error.to_string())
    }

    pub fn compare(&self) -> Result<Outcome, String> {
        self.compare_on(Target::Usual)
    }

    /// On a GPU; the launch has its warps.
    pub fn compare_on(&self, target: Target) -> Result<Outcome, String> {
        let run = self.run()?;
        if let Some(what) = run.undefined {
            return Err(format!("undefined: {what}"));
        }
        Ok(compare(&self.analysis_on(target), &run.tally, target))
    }
}

/// Sums over the entries that stand for one access of the source.
#[derive(Debug, Default, Clone)]
struct Sum {
    exact: bool,
    text: String,
    why: String,
    requests: f64,
    lanes: f64,
    cost: f64,
    ideal: f64,
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
}

/// What was counted of a branch. A function that is read once for several calls has one entry, with the way of the first:
/// it represents all the calls that have none of their own.
fn ways_of(key: &BranchKey, found: &KernelResult, tally: &Tally) -> Option<BranchCounts> {
    let fork = |kind: &str| match kind {
        "if" => BranchKind::If,
        "loop" => BranchKind::Loop,
        "switch" => BranchKind::Switch,
        _ => BranchKind::Select,
    };
    let listed = |of: &BranchKey| {
        found.branches.iter().any(|branch| {
            (branch.line, branch.column) == (of.place.line, of.place.column)
                && fork(branch.kind) == of.fork
                && branch
                    .via
                    .iter()
                    .map(|via| via.line)
                    .eq(of.via.iter().copied())
        })
    };
    // Of several such entries it is not said which calls each represents.
    let alike = found
        .branches
        .iter()
        .filter(|branch| (branch.line, branch.column) == (key.place.line, key.place.column));
    let only = alike.count() == 1;
    let mut sum: Option<BranchCounts> = None;
    for (of, ways) in &tally.branches {
        let same = of == key
            || (only
                && !key.via.is_empty()
                && (of.place, of.fork) == (key.place, key.fork)
                && !listed(of));
        if same {
            let sum = sum.get_or_insert_with(BranchCounts::default);
            sum.evaluations += ways.evaluations;
            sum.taken += ways.taken;
            sum.divergent += ways.divergent;
        }
    }
    sum
}

pub fn compare(found: &KernelResult, tally: &Tally, target: Target) -> Outcome {
    let mut outcome = Outcome::default();
    let via = |via: &[warplens_db::wire::Via]| via.iter().map(|v| v.line).collect::<Vec<u32>>();
    let mut sums: BTreeMap<AccessKey, Sum> = BTreeMap::new();
    for access in &found.accesses {
        let space = match access.space {
            "global" | "texture" => Space::Global,
            "shared" => Space::Shared,
            "constant" => Space::Constant,
            // A thread's own arrays may lie in registers.
            _ => continue,
        };
        let key = AccessKey {
            place: Position {
                line: access.line,
                column: access.column,
            },
            via: via(&access.via),
            access: match access.op {
                "load" => Access::Load,
                "store" => Access::Store,
                _ => Access::Atomic,
            },
            space,
        };
        outcome.listed += 1;
        outcome.exact += usize::from(access.exact);
        let sum = sums.entry(key).or_insert_with(|| Sum {
            exact: true,
            text: access.text.clone(),
            ..Sum::default()
        });
        if !access.exact {
            sum.why = access.why.clone().unwrap_or_default();
        }
        let requests = access.requests.unwrap_or(0.0);
        sum.exact &= access.exact;
        sum.requests += requests;
        sum.lanes += requests * access.active_lanes_per_request.unwrap_or(0.0);
        let (cost, ideal) = match space {
            Space::Global => (
                access.transactions_per_request,
                access.ideal_transactions_per_request,
            ),
            _ => (access.passes_per_request, access.ideal_passes_per_request),
        };
        sum.cost += requests * cost.unwrap_or(0.0);
        sum.ideal += requests * ideal.unwrap_or(0.0);
    }
    let keys: BTreeSet<&AccessKey> = sums.keys().chain(tally.accesses.keys()).collect();
    for key in keys {
        let truth = tally.accesses.get(key).cloned().unwrap_or_default();
        let at = format!(
            "{}:{} {:?} {:?}",
            key.place.line, key.place.column, key.space, key.access
        );
        let Some(sum) = sums.get(key) else {
            outcome.open.push(format!("{at}: not listed"));
            outcome.listed += 1;
            continue;
        };
        if !sum.exact {
            outcome
                .open
                .push(format!("{at} `{}`: {}", sum.text, sum.why));
            continue;
        }
        let mut wrong = String::new();
        let half_warp = matches!(target, Target::HalfWarpSegments | Target::HalfWarpStrict);
        let cost = match key.space {
            Space::Global if target == Target::Wave64 => truth.segments,
            Space::Global => truth.sectors,
            Space::Shared => truth.passes,
            Space::Constant => truth.words,
        };
        let mut pairs = vec![
            ("requests", sum.requests, truth.requests),
            ("lanes", sum.lanes, truth.lanes),
        ];
        if !half_warp && (key.access != Access::Atomic || key.space == Space::Global) {
            pairs.push(("cost", sum.cost, cost));
        }
        let sectors = target == Target::Usual;
        if sectors && key.space == Space::Global && key.access != Access::Atomic {
            pairs.push(("ideal", sum.ideal, truth.ideal_sectors));
        }
        for (what, said, counted) in pairs {
            if !close(said, counted as f64) {
                let _ = write!(wrong, " {what} {said} but {counted}");
            }
        }
        if !wrong.is_empty() {
            outcome.wrong.push(format!("{at} `{}`:{wrong}", sum.text));
        }
    }
    for branch in &found.branches {
        let key = BranchKey {
            place: Position {
                line: branch.line,
                column: branch.column,
            },
            via: via(&branch.via),
            fork: match branch.kind {
                "if" => BranchKind::If,
                "loop" => BranchKind::Loop,
                "switch" => BranchKind::Switch,
                _ => BranchKind::Select,
            },
        };
        outcome.listed += 1;
        outcome.exact += usize::from(branch.exact);
        let at = format!("{}:{} {}", branch.line, branch.column, branch.kind);
        if !branch.exact {
            outcome.open.push(at);
            continue;
        }
        // A choice in a choice's condition begins at the same word.
        let same_place = |other: &&warplens_db::wire::Branch| {
            (other.line, other.column, other.kind) == (branch.line, branch.column, branch.kind)
                && via(&other.via) == key.via
        };
        if found.branches.iter().filter(same_place).count() > 1 {
            continue;
        }
        let Some(truth) = ways_of(&key, found, tally) else {
            // Never reached, or a choice that another reading of the text does not have.
            if branch.taken_warp_fraction.is_some() && branch.kind != "select" {
                outcome.wrong.push(format!("{at}: not reached"));
            }
            continue;
        };
        let all = truth.evaluations as f64;
        for (what, said, counted) in [
            ("taken", branch.taken_warp_fraction, truth.taken),
            ("divergent", branch.divergent_warp_fraction, truth.divergent),
        ] {
            if key.fork == BranchKind::Switch && what == "taken" {
                continue;
            }
            if !said.is_some_and(|said| close(said, counted as f64 / all)) {
                outcome
                    .wrong
                    .push(format!("{at}: {what} {said:?} but {counted} of {all}"));
            }
        }
    }
    for key in tally.branches.keys() {
        let listed = found
            .branches
            .iter()
            .any(|branch| (branch.line, branch.column) == (key.place.line, key.place.column));
        if !listed && key.fork != BranchKind::Select {
            outcome.listed += 1;
            outcome.open.push(format!(
                "{}:{} {:?}: not listed",
                key.place.line, key.place.column, key.fork
            ));
        }
    }
    let classes: BTreeSet<&str> = tally
        .counts
        .keys()
        .map(|class| class.name())
        .chain(found.counts.iter().map(|count| count.class))
        // A thread's own arrays may lie in registers.
        .filter(|class| !class.starts_with("local_"))
        .collect();
    for class in classes {
        // A loop's test is evaluated once more than its body runs.
        let counted: u64 = tally
            .counts
            .iter()
            .chain(&tally.exit_tests)
            .filter(|(known, _)| known.name() == class)
            .map(|(_, count)| count)
            .sum();
        let said = found.counts.iter().find(|count| count.class == class);
        let (value, exact) = said.map_or((0.0, true), |count| {
            (count.value.unwrap_or(-1.0), count.exact)
        });
        if !exact {
            outcome.open.push(format!("count of {class}"));
        } else if !close(value, counted as f64) {
            outcome
                .counts_wrong
                .push(format!("{class} {value} but {counted}"));
        }
    }
    outcome
}
