//! Query family: the launches of a kernel that stand in other files: in the host programs near it, and by who calls the file's own
//! functions.
//!
//! In: the file's path and parts, the files as they are, how they are read. Out: launches, the nearest first. What holds: which files
//! were analysed before is no part of that, and the file's own text only where a host program includes it.

#![allow(
    clippy::needless_pass_by_value,
    reason = "a query owns what it is asked under"
)]

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use warplens_hir::{ItemKind, Signature, Space};
use warplens_host::{LaunchSite, launch_sites_through};
use warplens_syntax::Language;

use crate::database::{Db, File, file, world};
use crate::kinds::{absolute, is_header};
use crate::memo::hash;
use crate::panics::unless_it_panics;
use crate::program::{FileParts, NearLaunches};
use crate::queries::arguments::{TemplateHead, may_decide};
use crate::queries::expansion::flatten;
use crate::queries::hosts::{HostProgram, ReadAs, host_program};
use crate::queries::includers::programs_with;
use crate::queries::near::{self, Kinds};
use crate::queries::runs::{program_run, runs_near, start_alone};
use crate::settings::Settings;
use crate::{Cancel, Engine};

/// Launches of one kernel that are told apart.
const MOST_VARIANTS: usize = 8;
/// The same for the account of a program: those whose grid is known, from the first to the last, and others.
const MOST_OF_PROGRAM: usize = 16;
const MOST_OPEN_OF_PROGRAM: usize = 2;

/// The launches of one kernel.
#[derive(Debug)]
pub(crate) struct KernelLaunches {
    /// Different ones, and whether each is in the kernel's own file.
    pub(crate) sites: Vec<(LaunchSite, bool)>,
    /// Those near the file, where they were looked for.
    pub(crate) near: Option<Arc<NearLaunches>>,
}

impl KernelLaunches {
    /// Those of its own file, or what callers of the file's functions decide in the place of what the file left open.
    fn of(kernel: &Called, own: &[LaunchSite], by_callers: &[LaunchSite]) -> KernelLaunches {
        let mut sites: Vec<(LaunchSite, bool)> = Vec::new();
        let decided = by_callers.iter().any(|site| kernel.is_by(site));
        let from = if decided { by_callers } else { own };
        for site in from.iter().filter(|site| kernel.is_by(site)) {
            add_variant(&mut sites, site, !decided, MOST_VARIANTS);
        }
        KernelLaunches { sites, near: None }
    }
}

/// The launches by a file's functions as others call them.
#[derive(Debug, Default)]
pub(crate) struct CallerLaunches {
    pub(crate) sites: Vec<LaunchSite>,
    /// The files that the callers read.
    pub(crate) read: BTreeSet<PathBuf>,
}

/// A kernel as far as it decides who can launch it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Called {
    pub(crate) name: String,
    /// The namespaces around it.
    pub(crate) space: Space,
    pub(crate) language: Language,
    /// The fewest and the most arguments that it takes; `None` where that is not told.
    pub(crate) arguments: Option<(usize, usize)>,
    /// What its template takes; `None` where that is not told.
    pub(crate) template: Option<TemplateHead>,
    /// All definitions of its name, and which of them it is; `None` where it is the only one.
    pub(crate) overload: Option<(Arc<[Signature]>, usize)>,
}

impl Called {
    /// Whether the launch is one of this kernel.
    pub(crate) fn is_by(&self, site: &LaunchSite) -> bool {
        let given = site.arguments.len();
        site.kernel == self.name
            && site.space.as_ref().is_none_or(|space| *space == self.space)
            && self
                .template
                .as_ref()
                .is_none_or(|template| template.takes(&site.template_args))
            && self.overload.as_ref().is_none_or(|(all, own)| {
                Signature::takes(all, *own, &site.template_args, &site.argument_types)
            })
            && (given == 0
                || self.language == Language::OpenCl
                || self
                    .arguments
                    .is_none_or(|(fewest, most)| (fewest..=most).contains(&given)))
    }

    /// Which of a program's launches are of this kernel, which is defined in the file `own`: all that can be, where the program
    /// reads that file or has no kernel of that name itself.
    fn launched_by<'s>(
        &'s self,
        program: &'s Path,
        sites: &'s [LaunchSite],
        kernels: &[(Arc<Path>, String)],
        reads: bool,
        own: &Path,
    ) -> impl Iterator<Item = &'s LaunchSite> {
        let other = |(path, name): &(Arc<Path>, String)| *name == self.name && **path != *own;
        let can = reads || !kernels.iter().any(other);
        let launches = sites.iter().filter(move |_| can);
        launches.filter(move |site| self.is_by(site) && self.is_of(program, site))
    }

    /// Whether a host program in this file can launch it: CUDA and HIP launch each other's kernels, and OpenCL's are launched
    /// by C and C++.
    fn is_of(&self, host: &Path, site: &LaunchSite) -> bool {
        match self.language {
            Language::OpenCl => Language::from_path(host).is_none(),
            Language::Cuda | Language::Hip => site.global.is_none(),
        }
    }
}

/// The launches of a kernel in the files near it: those of the nearest folder in which one says the block.
#[salsa::tracked(returns(clone), no_eq, lru = 8192)]
fn near_launches(db: &dyn Db, of: File, kernel: Called, how: ReadAs) -> Arc<NearLaunches> {
    let own = of.path(db);
    let mut found = Vec::new();
    let mut read = BTreeSet::new();
    // Who includes a header may launch its kernels by its functions, and name none of them.
    for program in programs_with(db, own, how.settings()) {
        if found.len() >= MOST_VARIANTS {
            break;
        }
        let said = host_program(db, file(db, &program), how.clone());
        read.extend(said.versions.iter().cloned());
        for site in &by_host(&said, &kernel, own, &program) {
            add_variant(&mut found, site, false, MOST_VARIANTS);
        }
    }
    let by_includers = found.iter().any(|(site, _)| site.block.is_some());
    for up in 0.. {
        if found.iter().any(|(site, _)| site.block.is_some()) {
            break;
        }
        let roots = world(db).roots(db);
        let Some(hosts) = near::hosts_at(db, own, &[&kernel.name], Kinds::Hosts, up, roots) else {
            break;
        };
        let mut hosts: Vec<&PathBuf> = hosts.iter().collect();
        hosts.sort_by_key(|host| {
            let mut shared = 0;
            for (a, b) in host.components().zip(own.components()) {
                if a != b {
                    break;
                }
                shared += 1;
            }
            (usize::MAX - shared, *host)
        });
        for host in hosts {
            // A part of programs launches what it launches in them.
            let mut sites = Vec::new();
            for program in programs_with(db, host, how.settings()) {
                let said = host_program(db, file(db, &program), how.clone());
                read.extend(said.versions.iter().cloned());
                if said.reads.contains(host) {
                    sites.extend(by_host(&said, &kernel, own, &program));
                }
            }
            if sites.is_empty() {
                let said = host_program(db, file(db, host), how.clone());
                read.extend(said.versions.iter().cloned());
                sites = by_host(&said, &kernel, own, host);
            }
            for site in &sites {
                add_variant(&mut found, site, false, MOST_VARIANTS);
            }
        }
    }
    Arc::new(NearLaunches {
        sites: found.into_iter().map(|(site, _)| site).collect(),
        by_includers,
        read,
    })
}

/// A program's launches of a kernel that is defined in the file `own`.
fn by_host(host: &HostProgram, kernel: &Called, own: &Path, path: &Path) -> Vec<LaunchSite> {
    let reads = host.reads.contains(own);
    let launches = kernel.launched_by(path, &host.sites, &host.kernels, reads, own);
    launches.cloned().collect()
}

impl Engine {
    /// The launches of each kernel, different ones, those of its own file first; `None` when cancelled.
    pub(crate) fn launches_of(
        &self,
        kernels: &[Called],
        own: &[LaunchSite],
        by_callers: &[LaunchSite],
        path: &Path,
        how: &ReadAs,
        cancel: &Cancel,
    ) -> Option<Vec<KernelLaunches>> {
        let mut all: Vec<KernelLaunches> = kernels
            .iter()
            .map(|kernel| KernelLaunches::of(kernel, own, by_callers))
            .collect();
        let open =
            |launches: &KernelLaunches| launches.sites.iter().all(|(site, _)| site.block.is_none());
        if !path.as_os_str().is_empty() && all.iter().any(open) {
            let own = absolute(path);
            // All in one question: each of them asks whether files have changed.
            let near = self.project().look().ask(|db| {
                let own = file(db, &own);
                let near = kernels.iter().zip(&all).map(|(kernel, launches)| {
                    let wanted = open(launches) && !cancel.is_cancelled();
                    wanted.then(|| near_launches(db, own, kernel.clone(), how.clone()))
                });
                near.collect::<Vec<_>>()
            });
            for (launches, near) in all.iter_mut().zip(near) {
                // Who includes the file says what its own launches leave open.
                if near.as_ref().is_some_and(|near| near.by_includers) {
                    launches.sites.clear();
                }
                for site in near.iter().flat_map(|near| near.sites.iter()) {
                    add_variant(&mut launches.sites, site, false, MOST_VARIANTS);
                }
                launches.near = near;
            }
        }
        for launches in &mut all {
            // What says most comes first.
            let sites = &mut launches.sites;
            sites.sort_by_key(|(site, _)| (site.block.is_none(), site.grid.is_none()));
        }
        (!cancel.is_cancelled()).then_some(all)
    }

    /// In the place of these, the launches that a run of the program makes, where it is told how it is run.
    pub(crate) fn launches_of_run(
        &self,
        kernels: &[Called],
        mut launches: Vec<KernelLaunches>,
        path: &Path,
        how: &ReadAs,
        settings: &Settings,
        of_program: Option<&Path>,
    ) -> Vec<KernelLaunches> {
        if path.as_os_str().is_empty() || kernels.is_empty() {
            return launches;
        }
        let own = absolute(path);
        let runs = self.project().look().ask(|db| match of_program {
            // A program that is asked for is run.
            Some(main) => {
                let start = start_alone(db, main, how, &settings.run);
                let run = start.and_then(|start| {
                    program_run(db, file(db, main), how.clone(), Arc::new(start))
                });
                run.map(|run| (main.to_owned(), run)).into_iter().collect()
            }
            None => {
                let names: Arc<[String]> =
                    kernels.iter().map(|kernel| kernel.name.clone()).collect();
                runs_near(db, &own, &names, how, &settings.run)
            }
        });
        let most = match of_program {
            Some(_) => usize::MAX,
            None => MOST_VARIANTS,
        };
        for (kernel, launches) in kernels.iter().zip(&mut launches) {
            let mut sites = Vec::new();
            let mut read = BTreeSet::new();
            for (main, run) in &runs {
                let reads = run.read.contains(&own);
                for site in kernel.launched_by(main, &run.sites, &run.kernels, reads, &own) {
                    add_variant(&mut sites, site, *main == own, most);
                }
                read.extend(run.read.iter().cloned());
            }
            if of_program.is_some() {
                sites = thinned(sites);
            }
            // A run whose launch has no known block says less than the text of the launch.
            let known =
                |sites: &[(LaunchSite, bool)]| sites.iter().any(|(site, _)| site.block.is_some());
            if sites.is_empty() || !known(&sites) && known(&launches.sites) {
                continue;
            }
            let near = NearLaunches {
                sites: sites.iter().map(|(site, _)| site.clone()).collect(),
                by_includers: false,
                read,
            };
            launches.sites = sites;
            launches.near = Some(Arc::new(near));
        }
        launches
    }

    /// The launches that come about where other files call this one's functions, which launch blocks that only their callers
    /// decide.
    pub(crate) fn launches_by_callers(
        &self,
        path: &Path,
        parts: &FileParts,
        how: &ReadAs,
    ) -> CallerLaunches {
        let main = &parts.programs[0];
        let mut launchers: BTreeSet<String> = BTreeSet::new();
        let open = |site: &&LaunchSite| {
            let mut others = parts.sites.iter();
            site.block.is_none()
                && !others.any(|other| other.kernel == site.kernel && other.block.is_some())
        };
        for site in parts.sites.iter().filter(open) {
            let outermost = site.through.first().unwrap_or(&site.inside);
            if !outermost.is_empty()
                && !outermost.contains("::")
                && outermost != "main"
                && main.items.iter().any(|item| {
                    matches!(&item.kind, ItemKind::Function(name) if name == outermost)
                        && may_decide(&main.text.text[item.range.clone()])
                })
            {
                launchers.insert(outermost.clone());
            }
        }
        // Who includes a header launches by it himself.
        if launchers.is_empty() || main.text.language == Language::OpenCl || is_header(path) {
            return CallerLaunches::default();
        }
        let look = self.project().look();
        let names: Vec<&str> = launchers.iter().map(String::as_str).collect();
        let callers = look.hosts_near(path, &names, Kinds::Callers);
        let contents = self.contents();
        let mut found = CallerLaunches::default();
        for caller in callers {
            let said = unless_it_panics(|| {
                let text = look.alone(&caller, how.settings(), how.profile());
                let headers = flatten(&text.includes);
                let read: Vec<u64> = headers.iter().map(|header| header.hash).collect();
                let key = hash(&[&main.launching(), &launchers, &text.hash, &read]);
                let sites = contents.called.get_or(key, || {
                    let program =
                        contents.program_with(&text, &headers, std::slice::from_ref(&main.text));
                    let (text, items) = (&program.text, &program.items);
                    let sites = launch_sites_through(text, items, &program.unit, launchers.clone());
                    // A kernel that the caller has itself is another one.
                    let is_own = |site: &&LaunchSite| {
                        let mut own = items.iter();
                        own.any(|item| matches!(&item.kind, ItemKind::Kernel(name) if *name == site.kernel))
                    };
                    let sites = sites.iter().filter(|site| !is_own(site));
                    sites.map(LaunchSite::without_classes).collect()
                });
                let versions = text.versions.iter().map(|(path, _)| path.clone());
                (sites, versions.collect::<Vec<PathBuf>>())
            });
            let Some((sites, read)) = said else {
                continue;
            };
            found.read.extend(read);
            let decided = sites.iter().filter(|site| {
                let mut own = parts.sites.iter().filter(open);
                site.block.is_some() && own.any(|own| own.kernel == site.kernel)
            });
            found.sites.extend(decided.cloned());
        }
        found
    }
}

/// Some of many launches, evenly from the first to the last, and the first and last of each statement.
fn thinned(sites: Vec<(LaunchSite, bool)>) -> Vec<(LaunchSite, bool)> {
    let (known, open): (Vec<_>, Vec<_>) = sites
        .into_iter()
        .partition(|(site, _)| site.grid.is_some() || site.global.is_some());
    let some = |sites: Vec<(LaunchSite, bool)>, most: usize| {
        let last = sites.len().saturating_sub(1);
        let few = sites.len() <= most;
        let mut chosen: BTreeSet<usize> = (0..most).map(|at| at * last / (most - 1)).collect();
        let mut ends: Vec<(&Range<usize>, usize, usize)> = Vec::new();
        for (at, (site, _)) in sites.iter().enumerate() {
            match ends.iter().position(|(range, ..)| **range == site.range) {
                Some(statement) => ends[statement].2 = at,
                None if ends.len() < most => ends.push((&site.range, at, at)),
                None => {}
            }
        }
        chosen.extend(ends.iter().flat_map(|(_, first, last)| [*first, *last]));
        let sites = sites.into_iter().enumerate();
        sites
            .filter(move |(at, _)| few || chosen.contains(at))
            .map(|(_, site)| site)
    };
    some(known, MOST_OF_PROGRAM)
        .chain(some(open, MOST_OPEN_OF_PROGRAM))
        .collect()
}

/// Adds a launch, unless one like it is there.
fn add_variant(found: &mut Vec<(LaunchSite, bool)>, site: &LaunchSite, here: bool, most: usize) {
    let known = found.iter().any(|(other, _)| other.same_launch(site));
    if found.len() < most && !known {
        found.push((site.clone(), here));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use warplens_base::{NoFiles, OpenFiles};
    use warplens_machine::Profiles;

    use super::*;
    use crate::{Document, Overrides, Project};

    const KERNEL: &str = "/p/k.cu";
    const HOST: &str = "/p/host.cu";
    const HEADER: &str = "/p/sizes.h";
    const SCALE: &str = "__global__ void scale(float *p) { p[threadIdx.x] = 1; }\n";
    const LAUNCHES: &str = "#include \"sizes.h\"\n\
                            __global__ void scale(float *p);\n\
                            void run(float *p) { scale<<<4, WIDTH>>>(p); }\n";

    /// Files that are open, an engine, and the names of the queries that were computed.
    struct World {
        files: Arc<OpenFiles<NoFiles>>,
        engine: Engine,
        computed: Arc<Mutex<Vec<String>>>,
    }

    impl World {
        fn new() -> World {
            let files = Arc::new(OpenFiles::new(NoFiles));
            files.set(Path::new(KERNEL), SCALE);
            files.set(Path::new(HOST), LAUNCHES);
            files.set(Path::new(HEADER), "#define WIDTH 64\n");
            let computed = Arc::new(Mutex::new(Vec::new()));
            let told = Arc::clone(&computed);
            let told = Box::new(move |event: salsa::Event| {
                if let salsa::EventKind::WillExecute { database_key } = event.kind {
                    let name = format!("{database_key:?}");
                    let name = name.split('(').next().unwrap_or_default();
                    told.lock().unwrap().push(name.to_owned());
                }
            });
            let project = Project::telling(files.clone(), vec![PathBuf::from("/p")], told);
            World {
                engine: Engine::with_project(Profiles::builtin(), project),
                files,
                computed,
            }
        }

        /// The block of the kernel's launch, in this text of its file.
        fn block(&self, text: &str) -> Option<[u64; 3]> {
            let document = Document::new(text, Language::Cuda);
            let (settings, overrides) = (Settings::default(), Overrides::default());
            let never = Cancel::default();
            let path = Path::new(KERNEL);
            let file = self
                .engine
                .analyze(&document, path, &settings, &overrides, &never);
            let analysis = Arc::clone(&file.expect("not cancelled").kernels[0].analysis);
            analysis.launch_known.then_some(analysis.facts.launch.block)
        }

        fn computed(&self) -> Vec<String> {
            let mut computed = std::mem::take(&mut *self.computed.lock().unwrap());
            computed.sort();
            computed.dedup();
            computed
        }
    }

    #[test]
    fn what_is_typed_in_a_kernel_computes_no_launch_again() {
        let world = World::new();
        assert_eq!(world.block(SCALE), Some([64, 1, 1]));
        let first = world.computed();
        assert!(first.contains(&"host_program".to_owned()), "{first:?}");
        let typed = SCALE.replace("= 1", "= 12");
        world.files.set(Path::new(KERNEL), typed.as_str());
        assert_eq!(world.block(&typed), Some([64, 1, 1]));
        // Whether it includes the host program now, or has a `main` itself.
        assert_eq!(world.computed(), ["includes", "is_program", "text"]);
    }

    #[test]
    fn a_host_program_is_read_again_where_a_header_of_it_changes() {
        let world = World::new();
        assert_eq!(world.block(SCALE), Some([64, 1, 1]));
        world.computed();
        world.files.set(Path::new(HEADER), "#define WIDTH 128\n");
        assert_eq!(world.block(SCALE), Some([128, 1, 1]));
        let computed = world.computed();
        for name in ["host_program", "near_launches"] {
            assert!(computed.contains(&name.to_owned()), "{computed:?}");
        }
        // Who includes whom, and which files have which words, is what it was.
        for name in ["hosts_below", "including", "chain"] {
            assert!(!computed.contains(&name.to_owned()), "{computed:?}");
        }
    }

    #[test]
    fn who_asks_while_a_host_program_changes_gets_an_answer_of_one_moment() {
        let world = World::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for at in 1..=50 {
                    let width = format!("#define WIDTH {}\n", 32 * (1 + at % 4));
                    world.files.set(Path::new(HEADER), width);
                }
            });
            for _ in 0..20 {
                let block = world.block(SCALE).expect("there is a launch");
                assert!([32, 64, 96, 128].contains(&block[0]), "{block:?}");
            }
        });
        assert_eq!(world.block(SCALE), Some([96, 1, 1]));
    }

    #[test]
    fn a_header_that_appears_is_read() {
        let world = World::new();
        world.files.close(Path::new(HEADER));
        assert_eq!(world.block(SCALE), None);
        world.files.set(Path::new(HEADER), "#define WIDTH 32\n");
        assert_eq!(world.block(SCALE), Some([32, 1, 1]));
    }
}
