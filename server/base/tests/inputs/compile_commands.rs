//! Compilation databases on the disk.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};
use warplens_base::{CompileCommands, DatabaseState, Define, DiskFiles, OpenFiles};

/// A project's folder; its real path, as temporary folders may lie behind links.
struct Project {
    root: PathBuf,
    commands: CompileCommands,
    _folder: TempDir,
}

impl Project {
    fn new() -> Self {
        let folder = tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        Self {
            root,
            commands: CompileCommands::new(),
            _folder: folder,
        }
    }

    fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// A database with an entry `nvcc -DFROM=<file> <file>` for each file.
    fn database(&self, path: &str, files: &[&str]) -> PathBuf {
        let entries: Vec<Value> = files
            .iter()
            .map(|file| {
                json!({
                    "directory": self.root,
                    "file": file,
                    "arguments": ["nvcc", format!("-DFROM={file}"), "-c", file],
                })
            })
            .collect();
        self.write(path, &serde_json::to_string_pretty(&entries).unwrap())
    }

    /// What `FROM` is in the command of a file, with `~` in front where the command is inferred.
    fn from(&self, file: &str) -> Option<String> {
        let found = self
            .commands
            .command(&self.root.join(file), &DiskFiles::new())?;
        let Some(Define::Set { name, value }) = found.command.defines.first() else {
            panic!("{found:?}")
        };
        assert_eq!(name, "FROM");
        assert!(found.entry.is_absolute());
        Some(format!("{}{value}", if found.inferred { "~" } else { "" }))
    }

    fn only_database(&self) -> DatabaseState {
        let [state] = &self.commands.databases()[..] else {
            panic!("one database")
        };
        state.clone()
    }
}

#[test]
fn a_database_is_found_above_and_in_build_folders() {
    for path in [
        "compile_commands.json",
        "src/compile_commands.json",
        "build/compile_commands.json",
        "build-release/compile_commands.json",
        "src/out/compile_commands.json",
        "out.gn/compile_commands.json",
        "cmake-build-debug/compile_commands.json",
        "build/release/compile_commands.json",
        "out/build/x64-Debug/compile_commands.json",
    ] {
        let project = Project::new();
        assert_eq!(project.from("src/cuda/a.cu"), None);
        let project = Project {
            commands: CompileCommands::new(),
            ..project
        };
        let written = project.database(path, &["src/cuda/a.cu"]);
        assert_eq!(
            project.from("src/cuda/a.cu").as_deref(),
            Some("src/cuda/a.cu"),
            "{path}"
        );
        assert_eq!(project.only_database().path, written);
    }
    let project = Project::new();
    project.database("target/compile_commands.json", &["a.cu"]);
    assert_eq!(project.from("a.cu"), None);
    assert!(project.commands.databases().is_empty());
}

#[test]
fn the_nearest_database_counts_and_of_build_folders_the_newest() {
    let project = Project::new();
    project.database("compile_commands.json", &["lib/a.cu", "b.cu"]);
    project.database("lib/compile_commands.json", &["lib/other.cu"]);
    assert_eq!(project.from("lib/a.cu").as_deref(), Some("~lib/other.cu"));
    assert_eq!(project.from("b.cu").as_deref(), Some("b.cu"));

    let project = Project::new();
    for (name, age) in [("build-a", 30), ("build-b", 10), ("cmake-build-c", 20)] {
        let path = project.database(&format!("{name}/compile_commands.json"), &[name]);
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(age))
            .unwrap();
    }
    assert_eq!(project.from("a.cu").as_deref(), Some("~build-b"));
}

#[test]
fn entries_as_different_tools_write_them() {
    let project = Project::new();
    fs::create_dir_all(project.root.join("build")).unwrap();
    let root = project.root.to_str().unwrap();
    let text = format!(
        "\u{FEFF}[\r\n\
         {{ \"directory\": \"{root}/build\", \"file\": \"../src/rel.cu\", \"command\": \"nvcc -DFROM=rel -I../inc ../src/rel.cu\" }},\r\n\
         {{ \"directory\": \".\", \"file\": \"with space.cu\", \"arguments\": [\"nvcc\", \"-DFROM=space\", \"with space.cu\"], \"output\": \"x.o\" }},\r\n\
         {{ \"file\": \"{root}/no/directory.cu\", \"command\": \"nvcc -DFROM=none\" }},\r\n\
         {{ \"directory\": \"{root}\", \"file\": \"esc\\u0061pe.cu\", \"command\": \"nvcc -DFROM=\\\\\\\"q\\\\\\\" '-DS=a b'\", \"extra\": {{ \"x\": [1, {{}}] }} }},\r\n\
         {{ \"directory\": \"{root}\", \"file\": \"both.cu\", \"command\": \"nvcc -DFROM=text\", \"arguments\": [\"nvcc\", \"-DFROM=list\"] }},\r\n\
         {{ \"directory\": \"{root}\", \"file\": \"./both.cu\", \"command\": \"nvcc -DFROM=second\" }}\r\n\
         ]\r\n"
    );
    project.write("build/compile_commands.json", &text);
    for (file, from) in [
        ("src/rel.cu", "rel"),
        ("build/with space.cu", "space"),
        ("no/directory.cu", "none"),
        ("escape.cu", "\"q\""),
        ("both.cu", "list"),
        ("src/../both.cu", "list"),
    ] {
        assert_eq!(project.from(file).as_deref(), Some(from), "{file}");
    }
    let command = project
        .commands
        .command(&project.root.join("src/rel.cu"), &DiskFiles::new())
        .unwrap();
    assert_eq!(command.command.include_dirs, [project.root.join("inc")]);
    assert_eq!(command.command.sources, [project.root.join("src/rel.cu")]);
    assert_eq!(
        *command.database,
        *project.root.join("build/compile_commands.json")
    );
    let state = project.only_database();
    assert_eq!((state.files, state.skipped, state.problem), (5, 0, None));
}

#[test]
fn a_file_without_an_entry_gets_the_nearest_command() {
    let project = Project::new();
    project.database(
        "compile_commands.json",
        &[
            "main.cpp",
            "src/main.cpp",
            "src/gemm.cu",
            "src/gemm.cpp",
            "src/sort.cu",
            "src/deep/er/x.cu",
            "test/gemm_test.cu",
            "srcs/other.cu",
            "src-old/sort.cu",
            "src.bak/sort.cu",
        ],
    );
    for (file, from) in [
        // An entry of its own.
        ("src/sort.cu", "src/sort.cu"),
        // The same folder: the language first, then the name.
        ("src/sort.cuh", "~src/sort.cu"),
        ("src/gemm.cuh", "~src/gemm.cu"),
        ("src/gemm.hpp", "~src/gemm.cpp"),
        ("src/new.cu", "~src/gemm.cu"),
        ("src/sort.h", "~src/sort.cu"),
        ("src/any.h", "~src/main.cpp"),
        // No entry in the folder: most folders in common.
        ("src/deep/y.cuh", "~src/deep/er/x.cu"),
        ("src/detail/z.cuh", "~src/gemm.cu"),
        ("test/unit/t.cu", "~test/gemm_test.cu"),
        ("include/sort.cuh", "~src/sort.cu"),
        ("include/none.cuh", "~src/gemm.cu"),
        ("srcs/x.cu", "~srcs/other.cu"),
        ("sr/x.cpp", "~main.cpp"),
    ] {
        assert_eq!(project.from(file).as_deref(), Some(from), "{file}");
    }
}

#[test]
fn folders_whose_names_begin_alike_are_told_apart() {
    // A dash and a dot sort before a slash, letters after it.
    let project = Project::new();
    let mut names: Vec<String> = (0..9).map(|at| format!("src-old/{at}.cu")).collect();
    names.extend((0..9).map(|at| format!("src.bak/{at}.cu")));
    names.extend(["src/z.cu".to_owned(), "srcs/a.cu".to_owned()]);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    project.database("compile_commands.json", &names);
    for (file, from) in [
        ("src/q/x.cu", "~src/z.cu"),
        ("src.bak/q/x.cu", "~src.bak/0.cu"),
        ("s/x.cu", "~src-old/0.cu"),
    ] {
        assert_eq!(project.from(file).as_deref(), Some(from), "{file}");
    }
}

#[cfg(unix)]
#[test]
fn links_lead_to_entries() {
    use std::os::unix::fs::symlink;
    let project = Project::new();
    project.write("real/src/a.cu", "");
    project.write("real/src/b.cu", "");
    symlink(project.root.join("real"), project.root.join("link")).unwrap();
    symlink(
        project.root.join("real/src/b.cu"),
        project.root.join("alias.cu"),
    )
    .unwrap();
    // The database spells one thing, the editor another.
    project.database("compile_commands.json", &["real/src/a.cu", "alias.cu"]);
    assert_eq!(
        project.from("link/src/a.cu").as_deref(),
        Some("real/src/a.cu")
    );
    assert_eq!(project.from("real/src/b.cu").as_deref(), Some("alias.cu"));
    assert_eq!(project.from("link/src/b.cu").as_deref(), Some("alias.cu"));
    assert_eq!(
        project.from("link/src/c.cu").as_deref(),
        Some("~real/src/a.cu")
    );

    let project = Project::new();
    project.write("real/src/a.cu", "");
    symlink(project.root.join("real"), project.root.join("link")).unwrap();
    project.database("compile_commands.json", &["link/src/a.cu"]);
    assert_eq!(
        project.from("real/src/a.cu").as_deref(),
        Some("link/src/a.cu")
    );

    // A folder outside of the project that is a link into it.
    let project = Project::new();
    project.write("real/src/a.cu", "");
    project.database("real/compile_commands.json", &["real/src/a.cu"]);
    symlink(
        project.root.join("real/src"),
        project.root.join("elsewhere"),
    )
    .unwrap();
    assert_eq!(
        project.from("elsewhere/a.cu").as_deref(),
        Some("real/src/a.cu")
    );
}

#[test]
fn broken_files_have_one_message_and_no_commands() {
    let entry = r#"{"directory": "/", "file": "a.cu", "command": "nvcc a.cu"}"#;
    for (text, line, message) in [
        ("", 1, "expected `[`"),
        ("{}", 1, "expected `[`"),
        ("\n\nnonsense", 3, "expected `[`"),
        ("[\n", 2, "EOF"),
        (&format!("[\n{entry}\n"), 3, "the file ends"),
        (&format!("[\n{entry},\n"), 3, "EOF"),
        (
            &format!("[\r\n{entry}\r\n{entry}]"),
            3,
            "expected `,` or `]`",
        ),
        (&format!("[\n{entry},\n]"), 3, "expected value"),
        (
            &format!("[{entry},\n{{\"file\":\n\n \"a.cu\" \"x\"}}]"),
            4,
            "expected `,` or `}`",
        ),
        (&format!("[{entry},\n{{\"file\": \"cut"), 2, "EOF"),
        (&format!("[\n{entry}\n]\n]"), 4, "something follows"),
        (&"[".repeat(100_000), 1, "EOF"),
        ("[\u{0}]", 1, "expected value"),
    ] {
        let project = Project::new();
        project.write("compile_commands.json", text);
        assert_eq!(project.from("a.cu"), None, "{text:.80}");
        let state = project.only_database();
        assert_eq!(state.files, 0);
        let problem = state.problem.unwrap_or_else(|| panic!("{text:.80}"));
        assert_eq!(problem.line, line, "{text:.80}: {}", problem.message);
        assert!(
            problem.message.contains(message),
            "{text:.80}: {}",
            problem.message
        );
        assert!(!problem.message.contains(['\n', '\r']));
    }
}

#[test]
fn broken_entries_are_skipped_and_counted() {
    let project = Project::new();
    let root = project.root.to_str().unwrap();
    let text = format!(
        r#"[5, null, "x", [], {{}}, {{"directory": "{root}", "file": "a.cu"}},
        {{"directory": "{root}", "command": "nvcc"}},
        {{"directory": "{root}", "file": 7, "command": "nvcc"}},
        {{"directory": "{root}", "file": "b.cu", "command": ["nvcc"]}},
        {{"directory": "{root}", "file": "c.cu", "arguments": "nvcc"}},
        {{"directory": "{root}", "file": "d.cu", "arguments": []}},
        {{"directory": "{root}", "file": "", "command": "nvcc"}},
        {{"directory": "{root}", "file": "good.cu", "command": "nvcc -DFROM=good"}}]"#
    );
    project.write("compile_commands.json", &text);
    assert_eq!(project.from("good.cu").as_deref(), Some("good"));
    assert_eq!(project.from("a.cu").as_deref(), Some("~good"));
    let state = project.only_database();
    assert_eq!((state.files, state.skipped, state.problem), (1, 12, None));
}

#[test]
fn an_empty_list_is_no_problem() {
    let project = Project::new();
    project.write("compile_commands.json", " [ ] \n");
    assert_eq!(project.from("a.cu"), None);
    assert_eq!(project.only_database().problem, None);
}

#[test]
fn a_database_is_read_again_when_it_changes() {
    let project = Project::new();
    project.database("compile_commands.json", &["a.cu"]);
    assert_eq!(project.from("a.cu").as_deref(), Some("a.cu"));
    assert_eq!(project.from("new.cu").as_deref(), Some("~a.cu"));
    sleep(Duration::from_millis(20));
    project.database("compile_commands.json", &["first.cu", "new.cu"]);
    assert_eq!(project.from("new.cu").as_deref(), Some("new.cu"));
    assert_eq!(project.from("a.cu").as_deref(), Some("~first.cu"));
    // Half written: no commands until it is whole.
    project.write("compile_commands.json", "[\n{\"directory\": \"/");
    assert_eq!(project.from("new.cu"), None);
    assert!(project.only_database().problem.is_some());
    project.database("compile_commands.json", &["new.cu"]);
    assert_eq!(project.from("new.cu").as_deref(), Some("new.cu"));
    assert!(project.only_database().problem.is_none());
    fs::remove_file(project.root.join("compile_commands.json")).unwrap();
    assert_eq!(project.from("new.cu"), None);
}

#[test]
fn commands_follow_their_response_files() {
    let project = Project::new();
    let text =
        r#"[{"directory": ".", "file": "a.cu", "command": "nvcc --options-file inc.rsp a.cu"}]"#;
    project.write("compile_commands.json", text);
    let files = OpenFiles::new(DiskFiles::new());
    let file = project.root.join("a.cu");
    let dirs = || {
        project
            .commands
            .command(&file, &files)
            .unwrap()
            .command
            .include_dirs
            .clone()
    };
    assert!(dirs().is_empty());
    files.set(&project.root.join("inc.rsp"), "-I/one");
    assert_eq!(dirs(), [Path::new("/one")]);
    files.set(&project.root.join("inc.rsp"), "-I/two");
    assert_eq!(dirs(), [Path::new("/two")]);
}

#[test]
fn a_hundred_thousand_entries() {
    let project = Project::new();
    let mut text = String::from("[\n");
    for at in 0..100_000 {
        let comma = if at == 0 { "" } else { ",\n" };
        let folder = at / 20;
        write!(
            text,
            "{comma}{{\n  \"directory\": \"{root}/build\",\n  \"command\": \"/usr/local/cuda/bin/nvcc -forward-unknown-to-host-compiler -DNAME=\\\\\\\"k{at}\\\\\\\" -DNDEBUG -I{root}/include -isystem {root}/third_party/include -O3 -std=c++17 --generate-code=arch=compute_80,code=[compute_80,sm_80] -Xcompiler=-fPIC -x cu -c {root}/src/module{folder}/k{at}.cu -o CMakeFiles/m.dir/k{at}.cu.o\",\n  \"file\": \"{root}/src/module{folder}/k{at}.cu\"\n}}",
            root = project.root.display(),
        )
        .unwrap();
    }
    text.push_str("\n]\n");
    project.write("compile_commands.json", &text);

    let start = Instant::now();
    let found = |file: &str| {
        project
            .commands
            .command(&project.root.join(file), &DiskFiles::new())
            .unwrap()
    };
    let one = found("src/module3333/k66666.cu");
    let loaded = start.elapsed();
    let value = String::from("\"k66666\"");
    assert_eq!(
        one.command.defines[0],
        Define::Set {
            name: "NAME".to_owned(),
            value
        }
    );
    assert!(!one.inferred);
    let header = found("src/module4000/k80007.cuh");
    let inferred = start.elapsed().saturating_sub(loaded);
    assert!(header.entry.ends_with("module4000/k80007.cu") && header.inferred);
    assert!(found("other/x.cu").inferred);
    assert_eq!(project.only_database().files, 100_000);
    eprintln!(
        "{} MB: loaded in {loaded:?}, first header in {inferred:?}",
        text.len() / 1_000_000
    );
    // Optimised it is a fraction of a second; this is a bound for slow machines without optimisation.
    assert!(loaded < Duration::from_secs(10), "{loaded:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_bytes_are_refused_or_read(cut in 0_usize..600, byte in any::<u8>(), at in 0_usize..600) {
        let project = Project::new();
        project.database("compile_commands.json", &["a.cu", "b c.cu", "ä/\"d\".cu"]);
        let path = project.root.join("compile_commands.json");
        let mut bytes = fs::read(&path).unwrap();
        let whole = bytes.len();
        bytes.truncate(whole.saturating_sub(cut));
        if let Some(place) = bytes.get_mut(at) {
            *place = byte;
        }
        fs::write(&path, &bytes).unwrap();
        let found = project.commands.command(&project.root.join("a.cu"), &DiskFiles::new());
        let state = project.only_database();
        prop_assert_eq!(state.problem.is_some() || state.files == 0, found.is_none());
        prop_assert!(state.files + state.skipped <= 3);
    }
}
