//! Measures what the code actions at a position take, and the one that makes a fix everywhere in a file (what an editor
//! resolves): over the fixtures of code actions, at each finding, each edited copy analysed for the first time.
//!
//! `cargo bench -p warplens-db --bench actions`

#![allow(
    clippy::print_stdout,
    reason = "a benchmark's report goes to standard output"
)]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, Overrides, first_word};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

/// Each place is measured so often, with nothing kept from the time before.
const ROUNDS: usize = 5;
/// What issue 7 asks for.
const OFFERED: Duration = Duration::from_millis(30);
const RESOLVED: Duration = Duration::from_millis(100);

/// Times by place, the median of the rounds each.
#[derive(Default)]
struct Times {
    offered: Vec<(Duration, String)>,
    resolved: Vec<(Duration, String)>,
}

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../advice/src/rules");
    let mut times = Times::default();
    for path in fixtures(&root) {
        measure(&path, &mut times);
    }
    let mut slow = report("actions at a position", &mut times.offered, OFFERED);
    slow |= report("one resolved", &mut times.resolved, RESOLVED);
    if slow {
        std::process::exit(1);
    }
}

fn fixtures(root: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = warplens_advice::catalogue()
        .iter()
        .map(|rule| root.join(rule.id.replace('-', "_")).join("fixtures/fixed"))
        // Not every rule has an action.
        .flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten())
        .map(|file| file.expect("readable").path())
        .collect();
    assert!(!paths.is_empty(), "no fixture below {}", root.display());
    paths.sort();
    paths
}

fn measure(path: &Path, times: &mut Times) {
    let text = std::fs::read_to_string(path).expect("readable");
    let language = Language::from_path(path).expect("a language of ours");
    let (settings, overrides) = (Settings::default(), Overrides::default());
    let document = Document::new(&text, language);
    // An editor has shown the file before it asks for actions.
    let shown = || {
        let engine = Engine::new(Profiles::builtin());
        let analysis = engine
            .analyze(&document, path, &settings, &overrides, &Cancel::default())
            .expect("not cancelled");
        (engine, analysis)
    };
    let (_, analysis) = shown();
    for finding in &analysis.findings {
        let at = finding.range.start;
        let (mut offered, mut resolved) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let (engine, _) = shown();
            let started = Instant::now();
            let fixes = engine.fixes(&document, path, &settings, &overrides, at..at);
            offered.push(started.elapsed());
            let Some(fix) = fixes.first() else {
                continue;
            };
            let kind = (fix.rule, first_word(&fix.title));
            let (engine, _) = shown();
            let started = Instant::now();
            engine.fix_all(&document, path, &settings, &overrides, Some(kind));
            resolved.push(started.elapsed());
        }
        let name = format!("{} {}", path.display(), finding.rule);
        times
            .offered
            .extend(middle(offered).map(|took| (took, name.clone())));
        times
            .resolved
            .extend(middle(resolved).map(|took| (took, name)));
    }
}

fn middle(mut times: Vec<Duration>) -> Option<Duration> {
    times.sort_unstable();
    times.get(times.len() / 2).copied()
}

/// Prints the middle, the slow end and the slowest, and what is too slow; true where something is.
fn report(what: &str, times: &mut [(Duration, String)], asked: Duration) -> bool {
    times.sort();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].0;
    let (slowest, place) = times.last().expect("something is offered");
    println!(
        "{what}: {} places, median {:?}, 95 % within {:?}, at most {slowest:?} ({place}); asked for {asked:?}",
        times.len(),
        at(50),
        at(95),
    );
    let slow = times.iter().filter(|(took, _)| *took > asked);
    for (took, place) in slow.rev() {
        println!("  {took:?} {place}");
    }
    *slowest > asked
}
