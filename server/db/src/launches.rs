//! The launches of a kernel that stand in other files: in the host programs near it, and by who calls the file's own functions.
//!
//! In: the file's path and parts, the files as they are, settings, the GPU. Out: launches, the nearest first. Which files were
//! analysed before is no part of that.

use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use warplens_base::{Files, SourceFile};
use warplens_hir::ItemKind;
use warplens_host::{Build, LaunchSite, builds, launch_sites_through};
use warplens_machine::Profile;
use warplens_syntax::{Expanded, Language};

use crate::engine::{FileParts, Program};
use crate::kinds::{absolute, is_header};
use crate::near::Kinds;
use crate::options::{BuildOptions, kernel_names};
use crate::settings::Settings;
use crate::translation::flatten;
use crate::{Document, Engine, FileAnalysis};

/// Launches of one kernel that are told apart.
const MOST_VARIANTS: usize = 8;
/// Host programs and files with callers that are remembered.
const MOST_HOSTS: usize = 16_384;

/// Values by the file that each is of and a hash of what else decides it.
type ByFile<T> = FxHashMap<(PathBuf, u64), Arc<Traced<T>>>;

/// Launches in the files near one.
#[derive(Debug)]
struct NearLaunches {
    sites: Arc<[LaunchSite]>,
    /// Whether one of those files includes this one, so that its text matters as well.
    by_own_text: bool,
    /// The generation of the files, with this one or without it.
    generation: u64,
}

/// What host programs say, by their path and what else they were read under.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    programs: Mutex<ByFile<HostProgram>>,
    /// Launches by a file's functions as other files call them, by the file and what else decides them.
    called: Mutex<ByFile<Vec<LaunchSite>>>,
    /// Launches near a file of one kernel, by a hash of what decides them: a keystroke asks for those of every kernel in the
    /// file, and seldom changes one.
    near: Mutex<FxHashMap<u64, NearLaunches>>,
}

/// A value, and the files that it was made of.
#[derive(Debug)]
struct Traced<T> {
    value: T,
    versions: Vec<(PathBuf, u64)>,
    /// Which files there were.
    existence: u64,
    /// The generation of the files for which all that was last seen to hold.
    seen: AtomicU64,
}

impl Hosts {
    /// Lets go of everything.
    pub(crate) fn clear(&self) {
        let programs = self.programs.lock();
        programs.unwrap_or_else(PoisonError::into_inner).clear();
        let called = self.called.lock();
        called.unwrap_or_else(PoisonError::into_inner).clear();
        let near = self.near.lock();
        near.unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// True where a file that was read for its launches includes this one.
    fn include(&self, path: &Path) -> bool {
        let included = |of: &Path, versions: &[(PathBuf, u64)]| {
            of != path && versions.iter().any(|(read, _)| read == path)
        };
        let programs = self.programs.lock();
        let programs = programs.unwrap_or_else(PoisonError::into_inner);
        let by_hosts = programs
            .iter()
            .any(|((of, _), host)| included(of, &host.versions));
        let called = self.called.lock();
        let called = called.unwrap_or_else(PoisonError::into_inner);
        by_hosts
            || called
                .iter()
                .any(|((of, _), sites)| included(of, &sites.versions))
    }
}

impl<T> Traced<T> {
    fn holds(&self, files: &dyn Files) -> bool {
        let generation = files.generation();
        if self.seen.load(Ordering::Relaxed) == generation {
            return true;
        }
        let same =
            |(path, hash): &(PathBuf, u64)| files.read(path).is_some_and(|file| file.hash == *hash);
        let holds = self.existence == files.existence() && self.versions.iter().all(same);
        if holds {
            self.seen.store(generation, Ordering::Relaxed);
        }
        holds
    }
}

/// What a host program says.
#[derive(Debug, Default)]
pub(crate) struct HostProgram {
    /// Its launches, without what would hold on to whole texts.
    sites: Vec<LaunchSite>,
    builds: Vec<Build>,
    /// The kernels that it or a header of it defines, and where.
    kernels: Vec<(Arc<Path>, String)>,
    /// The headers that it reads.
    reads: FxHashSet<PathBuf>,
}

impl HostProgram {
    /// The launches of a kernel that stands in the file `own`: where the program, which stands in the file `host`, has the kernel
    /// from there, or has none of that name itself.
    fn of(&self, kernel: Called<'_>, own: &Path, host: &Path) -> Vec<LaunchSite> {
        let other = |(path, name): &(Arc<Path>, String)| name == kernel.name && **path != *own;
        if !self.reads.contains(own) && self.kernels.iter().any(other) {
            return Vec::new();
        }
        let sites = self.sites.iter();
        let sites = sites.filter(|site| kernel.is_by(site) && kernel.is_of(host, site));
        sites.cloned().collect()
    }
}

/// A kernel as far as it decides who can launch it.
#[derive(Debug, Clone, Copy, Hash)]
pub(crate) struct Called<'a> {
    pub(crate) name: &'a str,
    pub(crate) language: Language,
    /// The fewest and the most arguments that it takes; `None` where that is not told.
    pub(crate) arguments: Option<(usize, usize)>,
}

impl Called<'_> {
    /// Whether the launch is one of this kernel.
    pub(crate) fn is_by(&self, site: &LaunchSite) -> bool {
        let given = site.arguments.len();
        site.kernel == self.name
            && (given == 0
                || self.language == Language::OpenCl
                || self
                    .arguments
                    .is_none_or(|(fewest, most)| (fewest..=most).contains(&given)))
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

/// What decides how a file other than the kernel's own is read.
fn reading_key(settings: &Settings, profile: &Profile) -> u64 {
    let mut hasher = FxHasher::default();
    (
        &settings.include_paths,
        &settings.defines,
        &settings.kernel_macros,
        &profile.id,
    )
        .hash(&mut hasher);
    hasher.finish()
}

impl Engine {
    /// Whether what was found in the file `own` may be something else now that the text of the file `changed`, which was
    /// `before`, is `after`. `None` stands for no text. Errs on the side of true.
    pub fn may_change(
        &self,
        file: &FileAnalysis,
        own: &Path,
        changed: &Path,
        [before, after]: [Option<&str>; 2],
    ) -> bool {
        // A document that is no file has nothing near it.
        if !own.is_absolute() {
            return file.surroundings.read(changed);
        }
        let appears = before.is_none() || after.is_none();
        appears && !file.missing_includes.is_empty()
            || file.surroundings.read(changed)
            || file.surroundings.may_read(own, changed)
            || [before, after]
                .into_iter()
                .flatten()
                .any(|text| file.surroundings.named_in(text))
            || self.hosts.include(changed)
    }

    /// What a host program near an OpenCL file defines when it builds it.
    pub(crate) fn build_options(
        &self,
        document: &Document,
        path: &Path,
        settings: &Settings,
        profile: &Profile,
    ) -> Option<BuildOptions> {
        if document.language() != Language::OpenCl {
            return None;
        }
        let kernels = kernel_names(document.source());
        let words: Vec<&str> = kernels.iter().map(String::as_str).collect();
        if words.is_empty() {
            return None;
        }
        self.project()
            .hosts_near(path, &words, Kinds::Hosts)
            .into_iter()
            .find_map(|file| {
                let host = self.host(&file, settings, profile);
                let builds = &host.value.builds;
                BuildOptions::of(builds, &kernels, &file.path, &file.text, settings)
            })
    }

    /// What a host program says.
    fn host(
        &self,
        file: &SourceFile,
        settings: &Settings,
        profile: &Profile,
    ) -> Arc<Traced<HostProgram>> {
        let key = (file.path.to_path_buf(), reading_key(settings, profile));
        let files = self.project().files();
        let programs = || {
            let programs = self.hosts.programs.lock();
            programs.unwrap_or_else(PoisonError::into_inner)
        };
        let known = programs().get(&key).cloned();
        if let Some(known) = known
            && known.holds(files)
        {
            return known;
        }
        let (existence, seen) = (files.existence(), files.generation());
        let found = catch_unwind(AssertUnwindSafe(|| {
            let text = self.project().alone(file, settings, profile);
            let program = self.program(&text, &flatten(&text.includes));
            let sites = self.launches_in(&program);
            let host = HostProgram {
                sites: sites.iter().map(LaunchSite::without_classes).collect(),
                builds: builds(&program.text, &program.items, &program.unit),
                kernels: self.kernels_of(&program),
                reads: text.reads.iter().cloned().collect(),
            };
            (host, versions_of(&text))
        }));
        // One that cannot be read launches nothing.
        let (value, mut versions) = found.unwrap_or_default();
        versions.push((file.path.to_path_buf(), file.hash));
        let host = Arc::new(Traced {
            value,
            versions,
            existence,
            seen: AtomicU64::new(seen),
        });
        let mut programs = programs();
        if programs.len() >= MOST_HOSTS {
            programs.clear();
        }
        programs.insert(key, Arc::clone(&host));
        host
    }

    /// The kernels of a text and of its headers, each with its file.
    fn kernels_of(&self, program: &Program) -> Vec<(Arc<Path>, String)> {
        let mut found = Vec::new();
        let headers = flatten(&program.text.includes);
        let of_headers = headers.iter().map(|text| (&text.path, self.items(text)));
        for (path, items) in of_headers {
            for item in items.iter() {
                if let ItemKind::Kernel(name) = &item.kind {
                    found.push((Arc::clone(path), name.clone()));
                }
            }
        }
        for item in &program.items {
            if let ItemKind::Kernel(name) = &item.kind {
                found.push((Arc::clone(&program.text.path), name.clone()));
            }
        }
        found
    }

    /// The launches of a kernel, different ones, those of its own file first; with whether it is.
    pub(crate) fn launches_of(
        &self,
        kernel: Called<'_>,
        own: &[LaunchSite],
        by_callers: &[LaunchSite],
        path: &Path,
        settings: &Settings,
        profile: &Profile,
    ) -> Vec<(LaunchSite, bool)> {
        let mut found: Vec<(LaunchSite, bool)> = Vec::new();
        for site in own.iter().filter(|site| kernel.is_by(site)) {
            add_variant(&mut found, site, true);
        }
        // What the callers decide stands for what the file left open.
        if by_callers.iter().any(|site| kernel.is_by(site)) {
            found.clear();
            for site in by_callers.iter().filter(|site| kernel.is_by(site)) {
                add_variant(&mut found, site, false);
            }
        }
        if !path.as_os_str().is_empty() && found.iter().all(|(site, _)| site.block.is_none()) {
            for site in self.launches_near(kernel, path, settings, profile).iter() {
                add_variant(&mut found, site, false);
            }
        }
        // What says most comes first.
        found.sort_by_key(|(site, _)| (site.block.is_none(), site.grid.is_none()));
        found
    }

    /// The launches in the files near one, kept while no file changes.
    fn launches_near(
        &self,
        kernel: Called<'_>,
        path: &Path,
        settings: &Settings,
        profile: &Profile,
    ) -> Arc<[LaunchSite]> {
        let mut hasher = FxHasher::default();
        let roots = self.project().roots();
        (kernel, path, roots, reading_key(settings, profile)).hash(&mut hasher);
        let key = hasher.finish();
        let files = self.project().files();
        let own = absolute(path);
        let generations = [files.generation_but_for(&own), files.generation()];
        let near = || {
            let near = self.hosts.near.lock();
            near.unwrap_or_else(PoisonError::into_inner)
        };
        if let Some(known) = near().get(&key)
            && known.generation == generations[usize::from(known.by_own_text)]
        {
            return Arc::clone(&known.sites);
        }
        let mut found = Vec::new();
        self.look_for_launches(kernel, path, settings, profile, &mut found);
        let sites: Arc<[LaunchSite]> = found.into_iter().map(|(site, _)| site).collect();
        let by_own_text = self.hosts.include(&own);
        let mut near = near();
        if near.len() >= MOST_HOSTS {
            near.clear();
        }
        let kept = NearLaunches {
            sites: Arc::clone(&sites),
            by_own_text,
            generation: generations[usize::from(by_own_text)],
        };
        near.insert(key, kept);
        sites
    }

    /// Those of the nearest folder in which one says the block.
    fn look_for_launches(
        &self,
        kernel: Called<'_>,
        path: &Path,
        settings: &Settings,
        profile: &Profile,
        found: &mut Vec<(LaunchSite, bool)>,
    ) {
        let own = absolute(path);
        for up in 0.. {
            let Some(mut hosts) = self.project().hosts_at(path, kernel.name, up) else {
                break;
            };
            hosts.sort_by_key(|host| {
                let shared = host
                    .path
                    .components()
                    .zip(own.components())
                    .take_while(|(a, b)| a == b);
                (usize::MAX - shared.count(), Arc::clone(&host.path))
            });
            for file in hosts {
                // A part of programs launches what it launches in them.
                let mut sites = Vec::new();
                for program in self.project().programs_with(&file.path, settings) {
                    if let Some(program) = self.project().files().read(&program) {
                        let host = self.host(&program, settings, profile);
                        if host.value.reads.contains(&*file.path) {
                            sites.extend(host.value.of(kernel, &own, &program.path));
                        }
                    }
                }
                if sites.is_empty() {
                    let host = self.host(&file, settings, profile);
                    sites = host.value.of(kernel, &own, &file.path);
                }
                for site in &sites {
                    add_variant(found, site, false);
                }
            }
            if found.iter().any(|(site, _)| site.block.is_some()) {
                break;
            }
        }
    }

    /// The launches that come about where other files call this one's functions, which launch blocks that only their callers
    /// decide.
    pub(crate) fn launches_by_callers(
        &self,
        path: &Path,
        parts: &FileParts,
        settings: &Settings,
        profile: &Profile,
    ) -> Vec<LaunchSite> {
        let main = &parts.programs[0];
        let mut launchers: Vec<&str> = Vec::new();
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
                && !launchers.contains(&outermost.as_str())
                && main.items.iter().any(|item| {
                    matches!(&item.kind, ItemKind::Function(name) if name == outermost)
                        && may_decide(&main.text.text[item.range.clone()])
                })
            {
                launchers.push(outermost);
            }
        }
        // Who includes a header launches by it himself.
        if launchers.is_empty() || main.text.language == Language::OpenCl || is_header(path) {
            return Vec::new();
        }
        let callers = self.project().hosts_near(path, &launchers, Kinds::Callers);
        let mut hasher = FxHasher::default();
        (main.launching(), reading_key(settings, profile)).hash(&mut hasher);
        for caller in &callers {
            (&*caller.path, caller.hash).hash(&mut hasher);
        }
        let key = (path.to_path_buf(), hasher.finish());
        let files = self.project().files();
        let known = || {
            let called = self.hosts.called.lock();
            called.unwrap_or_else(PoisonError::into_inner)
        };
        let called = known().get(&key).cloned();
        if let Some(called) = called
            && called.holds(files)
        {
            return called.value.clone();
        }
        let (existence, seen) = (files.existence(), files.generation());
        let mut sites: Vec<LaunchSite> = Vec::new();
        let mut versions = Vec::new();
        for caller in callers {
            let found = catch_unwind(AssertUnwindSafe(|| {
                let text = self.project().alone(&caller, settings, profile);
                let headers = flatten(&text.includes);
                let program = self.program_with(&text, &headers, Some(&main.text));
                let found =
                    launch_sites_through(&program.text, &program.items, &program.unit, &launchers);
                (found, versions_of(&text))
            }));
            let (found, read) = found.unwrap_or_default();
            versions.extend(read);
            sites.extend(found.into_iter().filter(|site| {
                let mut own = parts.sites.iter().filter(open);
                site.block.is_some() && own.any(|own| own.kernel == site.kernel)
            }));
        }
        let value: Vec<LaunchSite> = sites.iter().map(LaunchSite::without_classes).collect();
        let called = Traced {
            value: value.clone(),
            versions,
            existence,
            seen: AtomicU64::new(seen),
        };
        let mut known = known();
        if known.len() >= MOST_HOSTS {
            known.clear();
        }
        known.insert(key, Arc::new(called));
        value
    }
}

/// The files that a text was made of besides its own.
fn versions_of(text: &Expanded) -> Vec<(PathBuf, u64)> {
    text.versions.clone()
}

/// Adds a launch, unless one like it is there.
fn add_variant(found: &mut Vec<(LaunchSite, bool)>, site: &LaunchSite, here: bool) {
    let known = found.iter().any(|(other, _)| other.same_launch(site));
    if found.len() < MOST_VARIANTS && !known {
        found.push((site.clone(), here));
    }
}

/// True for a function to which a caller can give numbers: a template, or one with a parameter that is neither a
/// pointer nor a reference, or that is a `dim3`.
fn may_decide(function: &str) -> bool {
    let head = function.split('{').next().unwrap_or_default();
    let Some((before, parameters)) = head.split_once('(') else {
        return false;
    };
    let handle = |parameter: &str| {
        parameter.contains(['*', '&']) && !parameter.contains("dim3")
            || ["stream", "Stream", "void"]
                .iter()
                .any(|word| parameter.contains(word))
    };
    before.trim_start().starts_with("template")
        || parameters
            .trim_end()
            .trim_end_matches(')')
            .split(',')
            .any(|parameter| !parameter.trim().is_empty() && !handle(parameter))
}

/// The fewest and the most arguments that a kernel takes, by its text from the name on; `None` where it takes any number.
pub(crate) fn arguments_of(kernel: &str, name: &str) -> Option<(usize, usize)> {
    let head = &kernel[..kernel.find('{').unwrap_or(kernel.len())];
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (at, _) = head.rmatch_indices(name).find(|(at, _)| {
        let rest = head[at + name.len()..].trim_start();
        !head[..*at].ends_with(word) && rest.starts_with('(')
    })?;
    let rest = head[at + name.len()..].trim_start();
    let bytes = rest.as_bytes();
    let (mut depth, mut angles) = (0_usize, 0_usize);
    let (mut fewest, mut most) = (0, 0);
    let (mut some, mut default) = (false, false);
    let mut i = 0;
    while i < bytes.len() {
        match bytes[i] {
            b'/' if bytes.get(i + 1) == Some(&b'*') => {
                i += rest[i + 2..].find("*/").map_or(bytes.len(), |end| end + 3);
            }
            b'/' if bytes.get(i + 1) == Some(&b'/') => {
                i += rest[i..].find('\n').unwrap_or(bytes.len());
            }
            b'(' | b'[' => {
                some |= depth > 0;
                depth += 1;
            }
            b')' | b']' => {
                depth -= 1;
                if depth == 0 {
                    most += usize::from(some);
                    fewest += usize::from(some && !default);
                    let only = rest[1..i].trim() == "void";
                    return Some(if only { (0, 0) } else { (fewest, most) });
                }
            }
            b'<' if depth == 1 && !default => angles += 1,
            b'>' if depth == 1 && !default => angles = angles.saturating_sub(1),
            b'=' if depth == 1 && angles == 0 => default = true,
            b'.' if rest[i..].starts_with("...") => return None,
            b',' if depth == 1 && angles == 0 => {
                most += 1;
                fewest += usize::from(!default);
                (some, default) = (false, false);
            }
            byte => some |= !byte.is_ascii_whitespace(),
        }
        i += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::arguments_of;

    #[test]
    fn arguments_are_counted_with_their_defaults() {
        let count = |text: &str| arguments_of(text, "k");
        assert_eq!(count("__global__ void k() {"), Some((0, 0)));
        assert_eq!(count("__global__ void k(void) {"), Some((0, 0)));
        assert_eq!(
            count("__global__ void k(int *a, int n = f(1, 2)) {"),
            Some((1, 2))
        );
        assert_eq!(
            count(
                "template <int N> __global__ void k(Pair<int, N> a /* one, two */, float (*b)[2]) {"
            ),
            Some((2, 2))
        );
        assert_eq!(
            count("template <class... T> __global__ void k(T... all) {"),
            None
        );
        assert_eq!(count("__global__ void other(int a) {"), None);
    }
}
