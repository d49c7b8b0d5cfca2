//! The same answer whatever came before: files looked at alone, in any order, with others open, by several threads, after
//! edits that were taken back. All facts are compared; `cargo lab history DIR…` compares what is printed and shown of other
//! people's files.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use warplens_base::{DiskFiles, Files, OpenFiles};
use warplens_db::settings::Settings;
use warplens_db::{Cancel, Document, Engine, Language, Overrides, Project, Variants};
use warplens_machine::Profiles;

/// Files, and the folder that they are looked at in.
struct Tree {
    root: PathBuf,
    files: Vec<PathBuf>,
}

impl Tree {
    fn of(root: PathBuf) -> Tree {
        let mut files = Vec::new();
        collect(&root, &mut files);
        files.sort();
        Tree { root, files }
    }

    fn read(&self, path: &Path) -> Document {
        let text = std::fs::read(path).expect("a file");
        let text = warplens_base::decode(text).unwrap_or_default();
        let language = warplens_db::language_by_content(Language::from_path(path), &text);
        Document::new(&text, language)
    }

    fn project(&self, files: Arc<dyn Files + Send + Sync>) -> Project {
        Project::new(files, vec![self.root.clone()])
    }

    fn engine(&self) -> Engine {
        let project = self.project(Arc::new(DiskFiles::new()));
        Engine::with_project(Profiles::builtin(), project)
    }

    fn for_many(&self) -> Engine {
        let project = self.project(Arc::new(DiskFiles::new()));
        Engine::for_many_files(Profiles::builtin(), project)
    }
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            let hidden = entry.file_name().to_string_lossy().starts_with('.');
            if !hidden {
                collect(&path, found);
            }
            continue;
        }
        let holds = || {
            warplens_db::is_header(&path)
                && std::fs::read_to_string(&path)
                    .is_ok_and(|text| warplens_db::may_hold_kernels(&text))
        };
        if Language::from_path(&path).is_some() || holds() {
            found.push(path);
        }
    }
}

fn trees() -> Vec<Tree> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let tests = std::fs::canonicalize(tests).expect("the tests");
    ["corpus", "kernels"]
        .map(|name| Tree::of(tests.join(name)))
        .into()
}

/// All that is said of a text: findings with their places, launches and figures of each kernel.
fn everything(engine: &Engine, document: &Document, path: &Path) -> String {
    let all = Overrides {
        variants: Variants::All,
        ..Overrides::default()
    };
    let settings = Settings::default();
    let file = engine
        .analyze(document, path, &settings, &all, &Cancel::default())
        .expect("not cancelled");
    let mut said = String::new();
    for kernel in &file.kernels {
        let analysis = &kernel.analysis;
        let _ = writeln!(
            said,
            "{}@{} {:?} {:?} {:?}",
            analysis.facts.name, kernel.line, kernel.variants, kernel.launched_at, analysis.facts,
        );
    }
    for finding in &file.findings {
        let _ = writeln!(said, "{finding:?}");
    }
    let _ = writeln!(said, "{:?} {:?}", file.problems, file.missing_includes);
    said
}

/// The lines in which two answers differ, the beginning of them.
fn difference(one: &str, other: &str) -> String {
    let mut said = String::new();
    for (a, b) in one.lines().zip(other.lines()) {
        if a != b {
            let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
            let from = same.saturating_sub(120);
            let cut = |text: &str| -> String { text.chars().skip(from).take(360).collect() };
            let head: String = a.chars().take(60).collect();
            let _ = writeln!(said, "  {head}\n  - {}\n  + {}", cut(a), cut(b));
            break;
        }
    }
    if one.lines().count() != other.lines().count() {
        let _ = writeln!(
            said,
            "  {} lines, {} lines",
            one.lines().count(),
            other.lines().count()
        );
    }
    said
}

/// What is said of each file by an engine that looked at nothing else.
fn alone(tree: &Tree) -> BTreeMap<PathBuf, String> {
    let of_one = |path: &PathBuf| {
        let said = everything(&tree.engine(), &tree.read(path), path);
        (path.clone(), said)
    };
    tree.files.iter().map(of_one).collect()
}

#[track_caller]
fn same(
    tree: &Tree,
    how: &str,
    alone: &BTreeMap<PathBuf, String>,
    said: &BTreeMap<PathBuf, String>,
) {
    let mut differences = String::new();
    for (path, expected) in alone {
        if let Some(said) = said.get(path)
            && said != expected
        {
            let name = path.strip_prefix(&tree.root).unwrap_or(path);
            let _ = writeln!(
                differences,
                "{}\n{}",
                name.display(),
                difference(expected, said)
            );
        }
    }
    assert!(differences.is_empty(), "alone, and {how}:\n{differences}");
}

/// Runs with the stack that the analysis of anybody's source needs.
fn on_a_large_stack(run: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(warplens_db::STACK);
    let ended = thread.spawn(run).expect("a thread").join();
    if let Err(panic) = ended {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn order_and_threads_change_nothing() {
    on_a_large_stack(|| {
        for tree in trees() {
            let alone = alone(&tree);
            let run = |engine: &Engine, files: &[PathBuf]| -> BTreeMap<PathBuf, String> {
                let said =
                    |path: &PathBuf| (path.clone(), everything(engine, &tree.read(path), path));
                files.iter().map(said).collect()
            };
            let mut files = tree.files.clone();
            same(&tree, "in order", &alone, &run(&tree.engine(), &files));
            files.reverse();
            same(&tree, "backwards", &alone, &run(&tree.engine(), &files));
            let mut random = Random(7);
            for at in (1..files.len()).rev() {
                files.swap(at, random.below(at + 1));
            }
            same(
                &tree,
                "in any order, as a check of many files",
                &alone,
                &run(&tree.for_many(), &files),
            );
            let engine = tree.for_many();
            let halves = files.split_at(files.len() / 2);
            std::thread::scope(|scope| {
                let [one, other] = [halves.0, halves.1].map(|half| {
                    std::thread::Builder::new()
                        .stack_size(warplens_db::STACK)
                        .spawn_scoped(scope, || run(&engine, half))
                        .expect("a thread")
                });
                for half in [one, other] {
                    let said = half.join().expect("no panic");
                    same(&tree, "by two threads", &alone, &said);
                }
            });
        }
    });
}

/// Numbers that look random and are the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % end.max(1)
    }
}

/// What a user may type, or take away.
const TYPED: [&str; 12] = [
    "x =",
    ";",
    "{",
    "}",
    "(",
    "\n",
    " ",
    "if (i < n) {\n",
    "/* ",
    "__syncthreads();\n",
    "#if A\n",
    "float y = a[i];\n",
];

/// Does something to a text; gives what undoes it.
fn edit(document: &mut Document, random: &mut Random) -> (std::ops::Range<usize>, String) {
    let source = Arc::clone(document.source());
    let boundary = |at: usize| {
        let mut at = at.min(source.len());
        while !source.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let start = boundary(random.below(source.len() + 1));
    let taken = if random.below(3) == 0 {
        random.below(40)
    } else {
        0
    };
    let end = boundary(start + taken).max(start);
    let typed = if taken == 0 {
        TYPED[random.below(TYPED.len())]
    } else {
        ""
    };
    document.edit(start..end, typed);
    (start..start + typed.len(), source[start..end].to_owned())
}

/// Edits of each file.
const EDITS: usize = 12;

#[test]
fn edits_and_what_else_is_open_change_nothing() {
    on_a_large_stack(|| {
        for tree in trees() {
            let open = Arc::new(OpenFiles::new(DiskFiles::new()));
            for path in &tree.files {
                open.set(path, Arc::clone(tree.read(path).source()));
            }
            let engine = Engine::with_project(Profiles::builtin(), tree.project(open.clone()));
            let mut differences = String::new();
            for (at, path) in tree.files.iter().enumerate() {
                let mut compare = |how: &str, typed: &Document, said: &str| {
                    let fresh = Arc::new(OpenFiles::new(DiskFiles::new()));
                    fresh.set(path, Arc::clone(typed.source()));
                    let fresh = Engine::with_project(Profiles::builtin(), tree.project(fresh));
                    let opened = Document::new(typed.source(), typed.language());
                    let opened = everything(&fresh, &opened, path);
                    if opened != said {
                        let name = path.strip_prefix(&tree.root).unwrap_or(path);
                        let difference = difference(&opened, said);
                        let _ = writeln!(differences, "{} {how}\n{difference}", name.display());
                    }
                };
                let mut random = Random(at as u64 + 1);
                let mut document = tree.read(path);
                let mut undo = Vec::new();
                let say = |document: &Document| {
                    open.set(path, Arc::clone(document.source()));
                    everything(&engine, document, path)
                };
                say(&document);
                for number in 0..EDITS {
                    undo.push(edit(&mut document, &mut random));
                    let said = say(&document);
                    if number % 6 == 5 {
                        compare(&format!("after {} edits", number + 1), &document, &said);
                    }
                }
                while let Some((range, text)) = undo.pop() {
                    document.edit(range, &text);
                    if undo.len() % 3 == 0 {
                        say(&document);
                    }
                }
                let said = say(&document);
                compare("after edits that were taken back", &document, &said);
            }
            assert!(differences.is_empty(), "opened, and typed:\n{differences}");
        }
    });
}
