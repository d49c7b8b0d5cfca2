//! Every rule on real sources: `server/advice/src/rules/<category>/<rule>/fixtures/*.cu` (or `.cl`), and the examples of
//! the rules' pages.
//!
//! A fixture's comments say what is expected. Carets mark the range in the line above them:
//!
//! ```text
//!     out[i] = in[2 * i];
//! //           ^^^^^^^^^ mem/strided warning: 8 sectors per request
//! ```
//!
//! The severity may be left out; what follows the colon must be part of the message. A finding that is not
//! expected fails as one that is missing does. Options stand in comments that begin with `// @`:
//!
//! - `@gpu: ID`, `@block: X,Y,Z`, `@grid: X,Y,Z`, `@dynamic-shared: BYTES`, `@arg: name=value,…`: the launch;
//! - `@unknown: yes`: some figures of this file cannot be known, do not insist.
//!
//! `finding*` files expect their folder's rule, `clean*` files nothing at all. `FIXTURE=mem/gather`, or another part of
//! `RULE/FILE`, runs only some; `BLESS=1` rewrites the expectations, to be read before they are kept.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use warplens_db::settings::{RuleLevel, Settings};
use warplens_db::{Cancel, Engine, FileAnalysis, LaunchValues, Overrides, Severity};
use warplens_facts::facts::Pattern;
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

use crate::style;

/// Emitted by what reads files and settings; they have their own tests.
const NOT_RULES: [&str; 3] = ["config/", "input/", "internal/"];

/// One expectation, or one finding in the same shape.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Mark {
    /// 0-based line in the file as it is.
    line: usize,
    /// 0-based byte columns.
    columns: (usize, usize),
    rule: String,
    /// Empty where it does not matter.
    severity: String,
    /// Part of the message, or all of it.
    message: String,
}

impl Mark {
    fn expects(&self, found: &Mark) -> bool {
        self.line == found.line
            && self.columns == found.columns
            && self.rule == found.rule
            && (self.severity.is_empty() || self.severity == found.severity)
            && found.message.contains(&self.message)
    }
}

#[derive(Debug, Default)]
struct Options {
    gpu: Option<String>,
    launch: LaunchValues,
    unknown: bool,
}

/// Every rule's fixtures, each with the id of its rule; below `fixed/` are those of its code actions.
fn fixtures() -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../advice/src/rules");
    let mut found = Vec::new();
    for rule in warplens_advice::catalogue() {
        let folder = root.join(rule.id.replace('-', "_")).join("fixtures");
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        let mut files: Vec<PathBuf> = entries
            .map(|entry| entry.expect("a readable folder").path())
            .filter(|path| path.is_file())
            .collect();
        files.sort();
        found.extend(files.into_iter().map(|file| (rule.id.to_owned(), file)));
    }
    found
}

/// `1`, `32,8`, `8,8,4`.
fn extents(text: &str) -> [u64; 3] {
    let mut all = [1; 3];
    for (slot, part) in all.iter_mut().zip(text.split(',')) {
        *slot = part
            .trim()
            .parse()
            .unwrap_or_else(|_| panic!("`{text}` is no size"));
    }
    all
}

fn options(source: &str) -> Options {
    let mut options = Options::default();
    for line in source.lines().filter_map(|line| line.strip_prefix("// @")) {
        for option in line.split(" @") {
            let (name, value) = option
                .split_once(':')
                .unwrap_or_else(|| panic!("`@{option}` has no value"));
            let value = value.trim();
            match name {
                "gpu" => options.gpu = Some(value.to_owned()),
                "block" => options.launch.block = Some(extents(value)),
                "grid" => options.launch.grid = Some(extents(value)),
                "dynamic-shared" => {
                    options.launch.dynamic_shared_bytes = Some(value.parse().expect("bytes"));
                }
                "arg" => {
                    for pair in value.split(',') {
                        let (name, value) = pair.split_once('=').expect("name=value");
                        let value = value.trim().parse().expect("a whole number");
                        options.launch.args.insert(name.trim().to_owned(), value);
                    }
                }
                "unknown" => options.unknown = value == "yes",
                _ => panic!("`@{name}` is no option"),
            }
        }
    }
    options
}

/// The expectation of one line, `None` where it is no annotation.
fn annotation(line: &str) -> Option<Mark> {
    let start = line.find("//")?;
    if !line[..start].trim().is_empty() {
        return None;
    }
    let carets = start + 2 + line[start + 2..].find(|c: char| c != ' ')?;
    let text = line[carets..].trim_start_matches('^');
    let end = line.len() - text.len();
    if end == carets {
        return None;
    }
    let (head, message) = text.split_once(':').unwrap_or((text, ""));
    let mut words = head.split_whitespace();
    let rule = words.next().unwrap_or_default().to_owned();
    let severity = words.next().unwrap_or_default().to_owned();
    Some(Mark {
        line: 0,
        columns: (carets, end),
        rule,
        severity,
        message: message.trim().to_owned(),
    })
}

/// Expectations, each with the line it is about.
fn expectations(source: &str) -> Vec<Mark> {
    let mut about = 0;
    let mut marks = Vec::new();
    for (number, line) in source.lines().enumerate() {
        match annotation(line) {
            Some(mark) => marks.push(Mark {
                line: about,
                ..mark
            }),
            None => about = number,
        }
    }
    marks
}

/// `rule` is on even where it is one that is tried out.
fn analyze(
    engine: &Engine,
    path: &Path,
    source: &str,
    options: &Options,
    rule: &str,
) -> FileAnalysis {
    let language = Language::from_path(path).expect("a language of ours");
    let document = Document::new(source, language);
    let settings = Settings {
        gpu: options.gpu.clone(),
        rules: BTreeMap::from([(rule.to_owned(), RuleLevel::Warning)]),
        ..Settings::default()
    };
    let overrides = Overrides {
        argument: options.launch.clone(),
        ..Overrides::default()
    };
    engine
        .analyze(&document, path, &settings, &overrides, &Cancel::default())
        .expect("not cancelled")
}

/// What was found, in the shape of expectations.
fn found(analysis: &FileAnalysis, source: &str) -> Vec<Mark> {
    let mut marks: Vec<Mark> = analysis
        .findings
        .iter()
        .map(|finding| {
            let before = &source[..finding.range.start];
            let line_start = before.rfind('\n').map_or(0, |at| at + 1);
            let line_end = source[finding.range.start..]
                .find('\n')
                .map_or(source.len(), |at| finding.range.start + at);
            Mark {
                line: before.matches('\n').count(),
                columns: (
                    finding.range.start - line_start,
                    finding.range.end.min(line_end) - line_start,
                ),
                rule: finding.rule.to_owned(),
                severity: finding.severity.name().to_owned(),
                message: [std::slice::from_ref(&finding.message), &finding.details]
                    .concat()
                    .join("; "),
            }
        })
        .collect();
    marks.sort();
    marks
}

/// Why the analysis of this file proves nothing: a clean result must not come from not understanding it.
fn not_understood(analysis: &FileAnalysis) -> Vec<String> {
    let mut reasons = analysis.problems.clone();
    if analysis.kernels.is_empty() {
        reasons.push("no kernel was found".to_owned());
    }
    for kernel in &analysis.kernels {
        let facts = &kernel.analysis.facts;
        for missing in &facts.not_understood {
            reasons.push(format!("{}: {}", facts.name, missing.reason));
        }
        if facts.accesses.is_empty() {
            reasons.push(format!("{}: no access was found", facts.name));
        }
        for access in &facts.accesses {
            // Where data decides the address, that is what there is to know.
            let by_data = access.pattern == Pattern::DataDependent;
            let none =
                access.transactions_per_request.is_none() && access.passes_per_request.is_none();
            if none && !by_data {
                reasons.push(format!(
                    "{}: nothing is known about `{}`",
                    facts.name, access.text
                ));
            }
        }
    }
    reasons
}

/// Line, carets and text, as in the fixture.
fn show(mark: &Mark, source: &str, sign: char, into: &mut String) {
    let line = source.lines().nth(mark.line).unwrap_or_default();
    let width = mark.columns.1.saturating_sub(mark.columns.0).max(1);
    let _ = writeln!(into, "    {:>4} | {line}", mark.line + 1);
    let _ = writeln!(
        into,
        "  {sign}      | {}{} {} {}: {}",
        " ".repeat(mark.columns.0),
        "^".repeat(width),
        mark.rule,
        mark.severity,
        mark.message
    );
}

/// The difference in words; empty where there is none.
fn difference(expected: &[Mark], found: &[Mark], source: &str) -> String {
    let mut left: Vec<&Mark> = found.iter().collect();
    let mut text = String::new();
    for mark in expected {
        match left.iter().position(|candidate| mark.expects(candidate)) {
            Some(at) => {
                left.remove(at);
            }
            None => show(mark, source, '-', &mut text),
        }
    }
    for mark in left {
        show(mark, source, '+', &mut text);
    }
    text
}

/// The file with its expectations replaced by what was found.
fn blessed(source: &str, found: &[Mark]) -> String {
    let mut text = String::new();
    for (number, line) in source.lines().enumerate() {
        if annotation(line).is_some() {
            continue;
        }
        let _ = writeln!(text, "{line}");
        for mark in found.iter().filter(|mark| mark.line == number) {
            let (start, end) = mark.columns;
            assert!(
                start >= 2,
                "no room for a comment before column {start} of line {}",
                number + 1
            );
            let number_and_cause = mark.message.split(';').next().unwrap_or_default();
            let _ = writeln!(
                text,
                "//{}{} {} {}: {number_and_cause}",
                " ".repeat(start - 2),
                "^".repeat(end.saturating_sub(start).max(1)),
                mark.rule,
                mark.severity,
            );
        }
    }
    text
}

#[test]
fn fixtures_have_the_findings_they_say() {
    let engine = Engine::new(Profiles::builtin());
    let only = std::env::var("FIXTURE").unwrap_or_default();
    let bless = std::env::var_os("BLESS").is_some();
    let mut report = String::new();
    let mut seen: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (rule, path) in &fixtures() {
        let file = path
            .file_name()
            .and_then(|file| file.to_str())
            .unwrap_or_default();
        let name = format!("{rule}/{file}");
        if !name.contains(&only) {
            continue;
        }
        let source = fs::read_to_string(path).expect("a readable fixture");
        let options = options(&source);
        let analysis = analyze(&engine, path, &source, &options, rule);
        let found = found(&analysis, &source);
        if bless {
            fs::write(path, blessed(&source, &found)).expect("a writable fixture");
            continue;
        }
        let expected = expectations(&source);
        let mut wrong = String::new();
        if file.starts_with("finding") {
            seen.entry(rule.clone()).or_default().insert("finding");
            if !expected.iter().any(|mark| mark.rule == *rule) {
                let _ = writeln!(wrong, "  expects no {rule}");
            }
        } else if file.starts_with("clean") {
            seen.entry(rule.clone()).or_default().insert("clean");
            if !expected.is_empty() {
                let _ = writeln!(wrong, "  is called clean and expects findings");
            }
        } else {
            let _ = writeln!(wrong, "  is called neither finding… nor clean…");
        }
        if !options.unknown {
            for reason in not_understood(&analysis) {
                let _ = writeln!(wrong, "  not understood: {reason}");
            }
        }
        wrong.push_str(&difference(&expected, &found, &source));
        if !wrong.is_empty() {
            let _ = writeln!(report, "{name}\n{wrong}");
        }
    }
    assert!(
        report.is_empty(),
        "expected and not found (-), found and not expected (+):\n\n{report}"
    );
    if bless || !only.is_empty() {
        return;
    }
    for rule in warplens_advice::catalogue() {
        if NOT_RULES
            .iter()
            .any(|category| rule.id.starts_with(category))
        {
            continue;
        }
        let twins = seen.get(rule.id).cloned().unwrap_or_default();
        assert!(
            twins.contains("finding") && twins.contains("clean"),
            "{} needs a finding fixture and a clean one",
            rule.id
        );
    }
}

/// The fenced `cuda` blocks of a page: the bad example, then the good one.
fn examples(page: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut block: Option<String> = None;
    for line in page.lines() {
        match &mut block {
            Some(text) if line == "```" => blocks.push(std::mem::take(text)),
            Some(text) => {
                text.push_str(line);
                text.push('\n');
                continue;
            }
            None if line == "```cuda" => {
                block = Some(String::new());
                continue;
            }
            None => {}
        }
        block = None;
    }
    blocks
}

#[test]
fn examples_of_the_pages_are_true() {
    let engine = Engine::new(Profiles::builtin());
    let mut report = String::new();
    for rule in warplens_advice::catalogue() {
        let blocks = examples(rule.explain);
        if blocks.is_empty()
            && NOT_RULES
                .iter()
                .any(|category| rule.id.starts_with(category))
        {
            continue;
        }
        assert_eq!(blocks.len(), 2, "{}: a bad example and a good one", rule.id);
        let path = Path::new("example.cu");
        let bad = found(
            &analyze(&engine, path, &blocks[0], &options(&blocks[0]), rule.id),
            &blocks[0],
        );
        if !bad.iter().any(|mark| mark.rule == rule.id) {
            let _ = writeln!(report, "{}: the bad example has no such finding", rule.id);
        }
        let analysis = analyze(&engine, path, &blocks[1], &options(&blocks[1]), rule.id);
        for reason in not_understood(&analysis) {
            let _ = writeln!(report, "{}: the good example: {reason}", rule.id);
        }
        let good = difference(&[], &found(&analysis, &blocks[1]), &blocks[1]);
        if !good.is_empty() {
            let _ = writeln!(
                report,
                "{}: the good example has findings:\n{good}",
                rule.id
            );
        }
    }
    assert!(report.is_empty(), "{report}");
}

#[test]
fn performance_findings_are_never_errors() {
    let engine = Engine::new(Profiles::builtin());
    let mut errors = 0;
    let mut odd = Vec::new();
    for (_, path) in &fixtures() {
        let source = fs::read_to_string(path).expect("a readable fixture");
        for finding in analyze(&engine, path, &source, &options(&source), "").findings {
            let may =
                ["div/early-exit-before-barrier", "launch/impossible"].contains(&finding.rule);
            assert!(
                may || finding.severity < Severity::Error,
                "{}: {} is an error",
                path.display(),
                finding.rule
            );
            assert!(finding.gain >= 1.0, "{}: a gain below 1", path.display());
            odd.extend(style::problems(&finding));
            errors += usize::from(finding.severity == Severity::Error);
        }
    }
    assert!(errors > 0, "the fixtures have errors to show");
    assert!(odd.is_empty(), "how they speak: {odd:#?}");
}

/// The GPU that a fixture of an action asks for.
fn gpu_of_action(source: &str) -> Option<String> {
    let mut lines = source.lines();
    let gpu = lines.find_map(|line| line.trim().strip_prefix("// @gpu:"))?;
    Some(gpu.trim().to_owned())
}

#[test]
fn titles_of_actions_have_the_form_that_the_style_page_says() {
    let engine = Engine::new(Profiles::builtin());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../advice/src/rules");
    let (mut seen, mut odd) = (0, Vec::new());
    for rule in warplens_advice::catalogue() {
        let folder = root.join(rule.id.replace('-', "_")).join("fixtures/fixed");
        // Not every rule has an action.
        for file in fs::read_dir(&folder).into_iter().flatten() {
            let path = file.expect("a readable folder").path();
            let source = fs::read_to_string(&path).expect("a readable fixture");
            let language = Language::from_path(&path).expect("a language of ours");
            let document = Document::new(&source, language);
            let settings = Settings {
                preview: true,
                gpu: gpu_of_action(&source),
                ..Settings::default()
            };
            let all = 0..document.len();
            let fixes = engine.fixes(&document, &path, &settings, &Overrides::default(), all);
            seen += fixes.len();
            odd.extend(fixes.iter().flat_map(style::problems_of_title));
        }
    }
    assert!(seen > 100, "{seen} titles were looked at");
    assert!(odd.is_empty(), "how they speak: {odd:#?}");
}

#[test]
fn carets_and_options_are_read_as_documented() {
    let source = "// @gpu: x @block: 32,8 @arg: n=5,m=-1\n\
                  a[i] = b[j];\n\
                  //     ^^^^ mem/strided warning: 8 sectors: `b`\n\
                  //     ^ mem/aos\n\
                  // no ^ here\n";
    let marks = expectations(source);
    assert_eq!(marks.len(), 2);
    assert_eq!(
        marks[0],
        Mark {
            line: 1,
            columns: (7, 11),
            rule: "mem/strided".to_owned(),
            severity: "warning".to_owned(),
            message: "8 sectors: `b`".to_owned(),
        }
    );
    assert_eq!((marks[1].line, marks[1].severity.as_str()), (1, ""));
    let options = options(source);
    assert_eq!(options.gpu.as_deref(), Some("x"));
    assert_eq!(options.launch.block, Some([32, 8, 1]));
    assert_eq!(options.launch.args.get("m"), Some(&-1));

    let other = Mark {
        message: "4 sectors".to_owned(),
        ..marks[0].clone()
    };
    assert!(!difference(&marks[..1], std::slice::from_ref(&other), source).is_empty());
    assert!(!difference(&[], std::slice::from_ref(&other), source).is_empty());
    assert!(!difference(&marks[..1], &[], source).is_empty());
    assert!(difference(&marks[..1], &marks[..1], source).is_empty());
}
