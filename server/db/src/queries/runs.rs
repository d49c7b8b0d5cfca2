//! Query family: what a program launches where it is started with some arguments.
//!
//! In: the file with `main`, the arguments, how files are read, the GPU. Out: [`ProgramRun`]: launches in the order in which the program
//! makes them. What holds: the files that it is linked with are those near it that define what it calls; nothing is executed.

#![allow(
    clippy::needless_pass_by_value,
    reason = "a query owns what it is asked under"
)]

use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashSet;
use warplens_base::{
    Program, RunLine, SourceFile, UNKNOWN, built_names, in_cmake, in_launch_json, in_makefile,
    in_script, split_command,
};
use warplens_hir::ItemKind;
use warplens_host::{
    Build, Device, HostEvent, LaunchSite, Run, UNKNOWN_ARGUMENT, may_write_to, run,
};
use warplens_machine::Profile;
use warplens_syntax::{Expanded, has_word};

use crate::contents::Contents;
use crate::database::{Db, File, file, text, world};
use crate::kept_run::{KeptRun, starts};
use crate::kinds::is_header;
use crate::look::Look;
use crate::memo::hash;
use crate::panics::unless_it_panics;
use crate::queries::expansion::flatten;
use crate::queries::hosts::{ReadAs, kernels_of};
use crate::queries::near::{self, Kinds};
use crate::settings::RunSettings;

/// Files with `main` near a kernel's own that are looked at.
const MOST_PROGRAMS: usize = 8;
/// Times that files are looked for which define what those before call.
const MOST_LOOKS: usize = 3;
/// Ways of starting a program that are followed.
const MOST_STARTS: usize = 3;
/// Bytes of a file that may say how a program is started.
const LARGEST: usize = 1 << 20;
/// Files that one program is linked with.
const MOST_LINKED: usize = 16;

// What a line leaves open is so in the run.
const _: () = assert!(UNKNOWN == UNKNOWN_ARGUMENT);

/// How a program is started.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Start {
    program: String,
    /// `None` where nothing says them.
    arguments: Option<Vec<String>>,
    environment: Vec<(String, String)>,
    /// In words, with where that is said: `./main 10000 200, Makefile:55`.
    said: Arc<str>,
    /// The file beside the program that says so.
    pub(crate) file: Option<PathBuf>,
    /// Nothing says it: the program takes arguments and may do without.
    is_supposed: bool,
}

impl Start {
    /// In words, with where that is said.
    pub(crate) fn said(&self) -> Arc<str> {
        Arc::clone(&self.said)
    }

    fn new(program: &str, arguments: Vec<String>, place: &str) -> Start {
        let words = [program].into_iter();
        let line: Vec<&str> = words.chain(arguments.iter().map(String::as_str)).collect();
        let said = format!("{}, {place}", line.join(" ")).replace(UNKNOWN, "…");
        Start {
            program: program.to_owned(),
            arguments: Some(arguments),
            environment: Vec::new(),
            said: said.into(),
            file: None,
            is_supposed: false,
        }
    }

    /// Without arguments: as `main` has it that takes none, else as what it does where there are none.
    fn without_arguments(stem: &str, takes_some: bool) -> Start {
        let program = format!("./{stem}");
        let said = if takes_some {
            format!("{program}, without arguments")
        } else {
            program.clone()
        };
        Start {
            said: said.into(),
            is_supposed: takes_some,
            ..Start::new(&program, Vec::new(), "")
        }
    }
}

/// How it is started; where nothing says that, without arguments, and where it launches nothing then, with arguments that are not
/// known.
pub(crate) fn start_alone(
    db: &dyn Db,
    main: &Path,
    how: &ReadAs,
    settings: &[RunSettings],
) -> Option<Start> {
    let only = programs_near(db, main).len() == 1;
    let start = starts_of(db, main, only, settings).into_iter().next()?;
    if !start.is_supposed {
        return Some(start);
    }
    let run = program_run(db, file(db, main), how.clone(), Arc::new(start.clone()));
    if run.is_some_and(|run| !run.sites.is_empty()) {
        return Some(start);
    }
    Some(Start {
        said: format!("{}, its arguments are not known", start.program).into(),
        arguments: None,
        ..start
    })
}

/// Whether the file's `main` has parameters; `None` where it has no `main`. What is typed elsewhere in it changes nothing.
#[salsa::tracked]
fn main_takes_arguments(db: &dyn Db, of: File) -> Option<bool> {
    let source = text(db, of)?;
    has_main(&source.text).then(|| takes_arguments(&source.text))
}

/// Whether `main` has parameters.
fn takes_arguments(text: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices("main").any(|(at, name)| {
        let behind = text[at + name.len()..].trim_start();
        let list = behind
            .strip_prefix('(')
            .and_then(|rest| rest.split_once(')'));
        !text[..at].ends_with(word)
            && list.is_some_and(|(list, _)| !matches!(list.trim(), "" | "void"))
    })
}

/// Reads a file of one form.
type Reader = fn(&str, Program) -> Vec<RunLine>;

/// An editor's launch configurations.
const LAUNCH_JSON: &str = ".vscode/launch.json";
/// Folders above a program in which an editor may have been opened.
const MOST_FOLDERS: usize = 8;
/// Folders, its own among them, in which files may say how a program is built and started.
const MOST_ABOVE: usize = 3;

/// The files that may say how the program beside or below them is started, in the order in which they are asked.
const READERS: [(&str, Reader); 10] = [
    ("Makefile", in_makefile),
    ("makefile", in_makefile),
    ("GNUmakefile", in_makefile),
    ("CMakeLists.txt", in_cmake),
    ("run.sh", in_script),
    ("bench.sh", in_script),
    ("test.sh", in_script),
    ("README.md", in_script),
    ("README", in_script),
    ("README.txt", in_script),
];

/// How the program with that main file is started: as the command line says, as the settings do, as a file beside it does, which
/// may say several ways. `only`: there is no other program beside it.
pub(crate) fn starts_of(
    db: &dyn Db,
    main: &Path,
    only: bool,
    settings: &[RunSettings],
) -> Vec<Start> {
    let Some(stem) = main.file_stem().and_then(|stem| stem.to_str()) else {
        return Vec::new();
    };
    let of = |run: &&RunSettings| {
        run.files.is_empty() || run.files.iter().any(|file| main.ends_with(file))
    };
    if let Some(run) = settings.iter().find(of) {
        let place = run.said_by.place();
        let arguments = split_command(&run.arguments);
        return vec![Start {
            environment: run.environment.clone().into_iter().collect(),
            ..Start::new(&format!("./{stem}"), arguments, place)
        }];
    }
    started_by_files(db, file(db, main), only).to_vec()
}

/// How files say that a program is started, and where none does, without arguments.
#[salsa::tracked(returns(clone))]
fn started_by_files(db: &dyn Db, of: File, only: bool) -> Arc<[Start]> {
    let main: &Path = of.path(db);
    let stem = main.file_stem().and_then(|stem| stem.to_str());
    let (Some(stem), Some(beside)) = (stem, main.parent()) else {
        return Arc::default();
    };
    let roots = world(db).roots(db);
    // What builds and starts a program may be in a folder above it.
    let within = |folder: &&Path| roots.iter().any(|root| folder.starts_with(root));
    let above: Vec<&Path> = beside
        .ancestors()
        .take_while(within)
        .take(MOST_ABOVE)
        .collect();
    let above = if above.is_empty() {
        vec![beside]
    } else {
        above
    };
    let source = main.file_name().and_then(|name| name.to_str());
    let mut built: Vec<String> = Vec::new();
    for folder in &above {
        for (name, _) in READERS {
            let Some(text) = text(db, file(db, &folder.join(name))) else {
                continue;
            };
            if text.text.len() <= LARGEST {
                built.extend(built_names(&text.text, source.unwrap_or_default()));
            }
        }
    }
    let beside_it = Program {
        stem,
        folder: name_of(beside),
        built: &built,
        only,
    };
    // The ways that one file says; `None` where it says none.
    let said = |folder: &Path, name: &str, read: Reader, program: Program| {
        let path = folder.join(name);
        let text = text(db, file(db, &path))?;
        if text.text.len() > LARGEST {
            return None;
        }
        let mut starts: Vec<Start> = Vec::new();
        for found in read(&text.text, program) {
            let place = format!("{name}:{}", found.line);
            let start = Start {
                file: Some(path.clone()),
                environment: found.environment,
                ..Start::new(&found.program, found.arguments, &place)
            };
            let same = |known: &Start| {
                known.arguments == start.arguments && known.environment == start.environment
            };
            if starts.len() < MOST_STARTS && !starts.iter().any(same) {
                starts.push(start);
            }
        }
        (!starts.is_empty()).then_some(starts)
    };
    // The editor's file is that of the workspace, where a program is meant by its name.
    let folders = beside.ancestors().take_while(within).take(MOST_FOLDERS);
    let mut editor = folders.filter_map(|folder| {
        let program = Program {
            only: only && above.contains(&folder),
            ..beside_it
        };
        said(folder, LAUNCH_JSON, in_launch_json, program)
    });
    let found = editor.next().or_else(|| {
        let mut all = above.iter().flat_map(|folder| {
            // Above its own folder there are other programs: it is meant by name.
            let program = Program {
                folder: name_of(folder),
                only: only && *folder == beside,
                ..beside_it
            };
            READERS.map(|(name, read)| (*folder, name, read, program))
        });
        all.find_map(|(folder, name, read, program)| said(folder, name, read, program))
    });
    let found = found.unwrap_or_else(|| {
        let start = main_takes_arguments(db, of).map(|some| Start::without_arguments(stem, some));
        start.into_iter().collect()
    });
    found.into()
}

fn name_of(folder: &Path) -> &str {
    let name = folder.file_name().and_then(|name| name.to_str());
    name.unwrap_or_default()
}

/// What one run of a program launches.
#[derive(Debug, Default)]
pub(crate) struct ProgramRun {
    /// In the order in which the program makes them.
    pub(crate) sites: Vec<LaunchSite>,
    /// All that it does with the GPU, in order; launches by their number among `sites`.
    pub(crate) events: Vec<HostEvent>,
    /// Its builds of OpenCL programs.
    pub(crate) builds: Vec<Build>,
    /// It does more than was followed.
    pub(crate) is_cut: bool,
    /// The kernels that the program defines, and where.
    pub(crate) kernels: Vec<(Arc<Path>, String)>,
    /// All files that it was made of.
    pub(crate) read: BTreeSet<PathBuf>,
}

/// The texts that a program is made of.
struct ProgramTexts {
    program: crate::program::Program,
    /// The file with `main`.
    main: Arc<Expanded>,
    /// All that it and what it is linked with include.
    headers: Vec<Arc<Expanded>>,
    linked: Vec<Arc<Expanded>>,
    /// The kernels that it defines, and where.
    kernels: Vec<(Arc<Path>, String)>,
    /// All files that it is made of.
    read: BTreeSet<PathBuf>,
}

#[salsa::tracked(returns(clone), no_eq, lru = 32)]
fn program_texts(db: &dyn Db, of: File, how: ReadAs) -> Option<Arc<ProgramTexts>> {
    let source = text(db, of)?;
    unless_it_panics(|| {
        let look = Look::inside(db);
        let contents = &look.stores.contents;
        let main = look.alone(&source, how.settings(), how.profile());
        let linked = linked_with(&look, contents, &main, &how);
        let mut headers: Vec<Arc<Expanded>> = Vec::new();
        for text in linked.iter().chain([&main]) {
            for header in flatten(&text.includes) {
                if !headers.iter().any(|known| known.path == header.path) {
                    headers.push(header);
                }
            }
        }
        let program = contents.program_with(&main, &headers, &linked);
        let mut kernels = kernels_of(contents, &program);
        for text in headers.iter().chain(&linked) {
            for item in contents.items(text).iter() {
                if let ItemKind::Kernel(name) = &item.kind {
                    let defined = (Arc::clone(&text.path), name.clone());
                    if !kernels.contains(&defined) {
                        kernels.push(defined);
                    }
                }
            }
        }
        let mut read = BTreeSet::from([of.path(db).clone()]);
        for text in linked.iter().chain([&main]) {
            read.insert(text.path.to_path_buf());
            read.extend(text.versions.iter().map(|(path, _)| path.clone()));
        }
        Arc::new(ProgramTexts {
            program,
            main,
            headers,
            linked,
            kernels,
            read,
        })
    })
}

/// What is in the text of every program that launches: `k<<<…>>>`, `cudaLaunchKernel`, `kernel.launch(…)`, `clEnqueueNDRangeKernel`,
/// `queue.enqueueNDRangeKernel(…)`.
const LAUNCHING: [&str; 3] = ["<<<", "aunch", "nqueue"];

/// Whether a program may launch one of the kernels of that file: it is made of that file, or names a kernel that it does not define
/// itself, or a module of the file's name.
#[salsa::tracked]
pub(crate) fn may_launch(
    db: &dyn Db,
    of: File,
    how: ReadAs,
    own: PathBuf,
    kernels: Arc<[String]>,
) -> bool {
    let file_name = own.file_name().and_then(|name| name.to_str());
    // Two programs are not linked: one may include the other.
    if *is_program(db, file(db, &own)) {
        let includes =
            |source: Arc<SourceFile>| file_name.is_some_and(|name| source.text.contains(name));
        if !text(db, of).is_some_and(includes) {
            return false;
        }
    }
    let Some(texts) = program_texts(db, of, how) else {
        return false;
    };
    let all = || {
        let own = std::iter::once(&texts.main);
        own.chain(&texts.linked).chain(&texts.headers)
    };
    // A program of the processor alone may have functions that are called like the kernels, and takes as long to run as it may.
    let launches = |text: &Arc<Expanded>| LAUNCHING.iter().any(|word| text.text.contains(word));
    if !all().any(launches) {
        return false;
    }
    if texts.read.contains(&own) {
        return true;
    }
    let elsewhere = |name: &String| texts.kernels.iter().any(|(_, known)| known == name);
    let mut open = kernels.iter().filter(|name| !elsewhere(name));
    let mut names = |name: &str| all().any(|text| has_word(&text.text, name));
    // Names that a program puts together it looks up in a module of the file's name: `add.ptx`, `add.cl`.
    let module = own.file_stem().and_then(|stem| stem.to_str());
    open.clone().next().is_some() && module.is_some_and(&mut names) || open.any(|name| names(name))
}

/// What a program launches; nothing where the file has no `main`.
#[salsa::tracked(returns(clone), no_eq, lru = 256)]
pub(crate) fn program_run(
    db: &dyn Db,
    of: File,
    how: ReadAs,
    start: Arc<Start>,
) -> Option<Arc<ProgramRun>> {
    let texts = program_texts(db, of, how.clone())?;
    unless_it_panics(|| {
        let look = Look::inside(db);
        let contents = &look.stores.contents;
        let program = &texts.program;
        let started = Run {
            name: start.program.clone(),
            arguments: start.arguments.clone(),
            environment: start.environment.clone(),
            device: Some(device(how.profile())),
        };
        // Only where it is run, or where its kernels' text matters.
        let others = LazyCell::new(|| {
            let texts = texts.headers.iter().chain(&texts.linked);
            texts
                .map(|text| (text, contents.items(text)))
                .collect::<Vec<_>>()
        });
        let all = LazyCell::new(|| {
            let others = others.iter().map(|(text, items)| (*text, items.as_slice()));
            std::iter::once((&program.text, program.items.as_slice()))
                .chain(others)
                .collect::<Vec<_>>()
        });
        // What is typed in a kernel leaves the run as it is, but for what the kernel writes: also in a header or in what is linked.
        let behind = || texts.headers.iter().chain(&texts.linked);
        let key = hash(&[
            &program.launching_behind(contents.launching_in(program, behind())),
            &*start,
            &how.profile().id,
        ]);
        let mut places = vec![(Arc::clone(&program.text.path), starts(&program.items))];
        places
            .extend(behind().map(|text| (Arc::clone(&text.path), starts(&*contents.items(text)))));
        let with = |asked: &[(String, usize)]| {
            let writes: Vec<bool> = asked
                .iter()
                .map(|(kernel, at)| may_write_to(&all, kernel, *at))
                .collect();
            hash(&[&key, &writes])
        };
        let known = contents.asked_of_runs.get(key);
        let kept = known.and_then(|asked| contents.runs.get(with(&asked)));
        let kept = kept.unwrap_or_else(|| {
            let mut found = run(&all, &program.unit, &started).unwrap_or_default();
            for site in &mut found.sites {
                *site = site.without_classes();
            }
            let asked = contents.asked_of_runs.put(key, found.asked.clone());
            contents
                .runs
                .put(with(&asked), KeptRun::new(found, program, places.clone()))
        });
        let done = kept.placed(program, &places);
        let mut read = texts.read.clone();
        read.extend(start.file.clone());
        Arc::new(ProgramRun {
            events: done.events,
            builds: done.builds,
            is_cut: done.is_cut,
            sites: done
                .sites
                .iter()
                .map(|site| LaunchSite {
                    of_run: Some(Arc::clone(&start.said)),
                    ..site.clone()
                })
                .collect(),
            kernels: texts.kernels.clone(),
            read,
        })
    })
}

/// How the programs near a file run that may launch one of these kernels of it, each with its file.
pub(crate) fn runs_near(
    db: &dyn Db,
    own: &Path,
    names: &Arc<[String]>,
    how: &ReadAs,
    settings: &[RunSettings],
) -> Vec<(PathBuf, Arc<ProgramRun>)> {
    let programs = programs_near(db, own);
    let only = programs.len() == 1;
    // A program that is near is run only where it can come to a launch of these kernels.
    let can = |main: &&PathBuf| {
        **main == *own
            || *may_launch(
                db,
                file(db, main),
                how.clone(),
                own.to_owned(),
                Arc::clone(names),
            )
    };
    let runs = programs.iter().filter(can).flat_map(|main| {
        let starts = starts_of(db, main, only, settings).into_iter();
        starts.filter_map(|start| {
            let run = program_run(db, file(db, main), how.clone(), Arc::new(start))?;
            Some((main.clone(), run))
        })
    });
    runs.collect()
}

/// The source files near a program's that define what it calls and does not define.
fn linked_with(
    look: &Look,
    contents: &Contents,
    main: &Arc<Expanded>,
    how: &ReadAs,
) -> Vec<Arc<Expanded>> {
    let mut linked: Vec<Arc<Expanded>> = Vec::new();
    let mut open = vec![Arc::clone(main)];
    let mut seen: FxHashSet<String> = FxHashSet::default();
    let included = flatten(&main.includes);
    for _ in 0..MOST_LOOKS {
        let mut names: BTreeSet<String> = BTreeSet::new();
        for text in &open {
            let headers = flatten(&text.includes);
            let lacking = contents.lacking(headers.iter().chain([text]));
            names.extend(lacking.iter().filter(|name| !seen.contains(*name)).cloned());
        }
        let names: Vec<String> = names.into_iter().collect();
        seen.extend(names.iter().cloned());
        let found = look.defining(&main.path, &names);
        open.clear();
        for path in found {
            let has = |all: &[Arc<Expanded>]| all.iter().any(|text| *text.path == *path);
            let known = has(&included) || has(&linked) || *main.path == *path;
            // Headers are included.
            if known || is_header(&path) || linked.len() >= MOST_LINKED {
                continue;
            }
            let Some(source) = look.files.read(&path) else {
                continue;
            };
            // Another program.
            if has_main(&source.text) {
                continue;
            }
            let text = look.alone(&source, how.settings(), how.profile());
            open.push(Arc::clone(&text));
            linked.push(text);
        }
        if open.is_empty() {
            break;
        }
    }
    linked
}

fn has_main(text: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices("main").any(|(at, name)| {
        !text[..at].ends_with(word) && text[at + name.len()..].trim_start().starts_with('(')
    })
}

/// Whether a file may define `main`.
#[salsa::tracked]
pub(crate) fn is_program(db: &dyn Db, of: File) -> bool {
    text(db, of).is_some_and(|source| has_main(&source.text))
}

/// The programs that may launch the kernels of a file: its own, else those of its folder, else those of the nearer of two folders above
/// that has one.
pub(crate) fn programs_near(db: &dyn Db, own: &Path) -> Vec<PathBuf> {
    let is_program = |path: &Path| *is_program(db, file(db, path));
    let mut found: Vec<PathBuf> = Vec::new();
    if is_program(own) {
        found.push(own.to_owned());
    }
    let roots = world(db).roots(db);
    for up in 0.. {
        let Some(hosts) = near::hosts_at(db, own, &["main"], Kinds::Callers, up, roots) else {
            break;
        };
        for host in hosts.iter() {
            if found.len() < MOST_PROGRAMS && !found.contains(host) && is_program(host) {
                found.push(host.clone());
            }
        }
        if !found.is_empty() {
            break;
        }
    }
    found
}

/// What the toolkit says of a GPU.
fn device(profile: &Profile) -> Device {
    let (major, minor) = profile.compute_capability.unwrap_or((9, 0));
    let number = |value: u32| i64::from(value);
    let threads_per_sm = profile.max_warps_per_sm.saturating_mul(profile.warp_size);
    let opt_in = profile.shared_per_block_max();
    let khz = |mhz: f64| (mhz * 1e3) as i64;
    Device {
        name: profile.name.clone(),
        properties: vec![
            ("multiProcessorCount", number(profile.sms)),
            ("warpSize", number(profile.warp_size)),
            ("maxThreadsPerBlock", number(profile.max_threads_per_block)),
            ("maxThreadsPerMultiProcessor", number(threads_per_sm)),
            (
                "maxBlocksPerMultiProcessor",
                number(profile.max_blocks_per_sm),
            ),
            ("sharedMemPerBlock", number(profile.shared_per_block)),
            ("sharedMemPerBlockOptin", number(opt_in)),
            ("sharedMemPerMultiprocessor", number(profile.shared_per_sm)),
            ("regsPerBlock", number(profile.registers_per_sm)),
            ("regsPerMultiprocessor", number(profile.registers_per_sm)),
            ("major", i64::from(major)),
            ("minor", i64::from(minor)),
            ("clockRate", khz(profile.sm_clock_mhz)),
            ("totalConstMem", 65_536),
            ("concurrentKernels", 1),
            ("cooperativeLaunch", i64::from(major >= 6)),
            ("managedMemory", i64::from(major >= 3)),
            ("canMapHostMemory", 1),
            ("unifiedAddressing", 1),
        ],
    }
}
