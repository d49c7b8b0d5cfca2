//! Query family: a header as it reads under macros.
//!
//! In: an `#include` line, the macros before it. Out: the header's text, and the macros after it. What holds: a reading that is kept
//! serves where the macros that differ do not matter to it and none of its files has changed; the files are looked at through
//! [`Look`], so that a query that includes a header depends on all that the header reads.

use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustc_hash::FxHasher;
use warplens_base::{IncludeSearch, SourceFile};
use warplens_syntax::preprocess::{
    self, IncludeLine, IncludeResult, Includes, Macros, Options, Trace,
};
use warplens_syntax::{Expanded, Kind, Language, words};

use crate::look::Look;
use crate::macros::{AMD_TARGET, known_absent};
use crate::queries::branches::first_of_several;
use crate::readings::{Absent, Header};
use crate::settings::READS_OUTSIDE;

/// Headers include headers this deep at most.
const DEEPEST: usize = 100;
/// Bytes that a node of a tree takes, about.
const NODE_BYTES: usize = 56;
/// Bytes of headers read for one file; further ones are left out, and said to be.
const MOST_READ: usize = 4 << 20;

/// Bytes of one header that is read; a larger one is a table that a program wrote. Left out wherever it is included, it makes no
/// difference between readings of what includes it, so that these are kept.
const MOST_OF_ONE: usize = 1 << 20;

/// Reads what `#include` lines name, while a text is preprocessed.
pub(crate) struct Reader<'a> {
    pub(crate) look: &'a Look<'a>,
    pub(crate) search: &'a IncludeSearch,
    pub(crate) search_key: u64,
    pub(crate) language: Language,
    /// The generation of the files for which readings that were seen to hold need not be looked at again; none inside of a query,
    /// which depends on what it looks at.
    pub(crate) generation: Option<u64>,
    /// The files being read, outermost first.
    pub(crate) stack: Vec<PathBuf>,
    pub(crate) includes: Vec<Arc<Expanded>>,
    pub(crate) reads: Vec<(PathBuf, u64)>,
    pub(crate) missing: Vec<String>,
    /// What was looked for and is not there.
    pub(crate) absent: Vec<Absent>,
    /// Included files that were left out because they were being read.
    pub(crate) within: Vec<PathBuf>,
    /// Bytes of headers read so far.
    pub(crate) bytes: usize,
    /// The most of them that were held against the limit at one time; without end where one did not fit.
    pub(crate) peak: usize,
    /// Whether anything is assumed where no branch of a conditional would be taken.
    pub(crate) assumes: bool,
    /// Definitions assumed in headers.
    pub(crate) assumed: Vec<(String, String)>,
    /// Something would have been assumed in them.
    pub(crate) withheld: bool,
    /// Markers of `#pragma once` that were looked up.
    pub(crate) once: Vec<String>,
}

impl Reader<'_> {
    pub(crate) fn run(&mut self, source: &str, macros: Macros) -> preprocess::Preprocessed {
        self.preprocess(source, macros, false, None)
    }

    pub(crate) fn preprocess(
        &mut self,
        source: &str,
        macros: Macros,
        traced: bool,
        earlier: Option<preprocess::EarlierText>,
    ) -> preprocess::Preprocessed {
        let language = self.language;
        let file = self.stack.last().map(|path| path.display().to_string());
        let for_amd = macros.is_defined(AMD_TARGET);
        let options = Options {
            macros,
            known_absent: &|name| known_absent(language, for_amd, name),
            words: words(language),
            file: file.as_deref().unwrap_or(""),
            traced,
            earlier,
        };
        preprocess::preprocess(source, options, self)
    }

    /// A header under these macros, and the macros after it. A reading under others serves as well where those
    /// that differ do not matter to it.
    fn header(&mut self, path: &Path, file: &SourceFile, macros: &Macros) -> (Arc<Header>, Macros) {
        let mut hasher = FxHasher::default();
        (path, file.hash, self.search_key, self.language).hash(&mut hasher);
        let key = hasher.finish();
        if let Some(known) = self.known_header(key, macros) {
            let after = if known.start.fingerprint() == macros.fingerprint() {
                known.end.clone()
            } else {
                macros.after(&known.trace, &known.end)
            };
            return (known, after);
        }
        let mut inner = Reader {
            look: self.look,
            search: self.search,
            search_key: self.search_key,
            language: self.language,
            generation: self.generation,
            stack: self.stack.clone(),
            includes: Vec::new(),
            reads: vec![(path.to_path_buf(), file.hash)],
            missing: Vec::new(),
            absent: Vec::new(),
            within: Vec::new(),
            bytes: self.bytes + file.text.len(),
            peak: self.bytes + file.text.len(),
            assumes: self.assumes,
            assumed: Vec::new(),
            withheld: false,
            once: Vec::new(),
        };
        inner.stack.push(path.to_path_buf());
        let mut start = macros.clone();
        let marker = once(&file.text).then(|| once_marker(path));
        if let Some(marker) = &marker {
            start.define(marker, "1");
        }
        let unwrapped = (self.language == Language::OpenCl)
            .then(|| unwrapped(&file.text))
            .flatten();
        let read = unwrapped.as_deref().unwrap_or(&file.text);
        let mut done = inner.preprocess(read, start.clone(), true, None);
        let mut assumed = first_of_several(read, &done.undecided, &|spelled, system| {
            inner.finds(spelled, system)
        });
        if !self.assumes {
            inner.withheld |= !assumed.is_empty();
            assumed.clear();
        }
        // What decided that is looked up again in the second reading, or before what is assumed.
        let mut first = None;
        if !assumed.is_empty() {
            for (name, value) in &assumed {
                start.define(name, value);
            }
            inner.start_again();
            inner.bytes = self.bytes + file.text.len();
            inner.reads.push((path.to_path_buf(), file.hash));
            let again = inner.preprocess(read, start, true, None);
            first = Some(std::mem::replace(&mut done, again).trace);
        }
        let mut trace = std::mem::take(&mut done.trace);
        // What includes it depends on whether it was read before.
        if let Some(marker) = &marker {
            trace.look_up(marker);
        }
        for marker in &inner.once {
            trace.look_up(marker);
        }
        if let Some(first) = &first {
            trace.read_before(first);
        }
        for name in marker.iter().chain(assumed.iter().map(|(name, _)| name)) {
            trace.change(name);
        }
        trace.finish(macros, &done.macros);
        inner.assumed.extend(assumed);
        // That it leaves itself out is so wherever it is included.
        inner.within.retain(|path| self.stack.contains(path));
        let end = done.macros.clone();
        let latest = self.look.headers().latest(path);
        let text = Expanded::new(
            path.into(),
            self.language,
            Arc::clone(&file.text),
            done,
            inner.includes,
            latest.as_deref(),
        );
        // What its guard leaves empty was read before.
        let root = text.tree.root_node();
        let empty = root.children().all(|child| child.kind() == Kind::Comment);
        if empty {
            inner.bytes -= file.text.len();
        }
        let weight = text.text.len() + NODE_BYTES * text.tree.root_node().descendant_count();
        inner.absent.sort_unstable();
        inner.absent.dedup();
        let header = Arc::new(Header {
            weight,
            text: Arc::new(text),
            start: macros.clone(),
            end: end.clone(),
            trace: Arc::new(trace),
            used: AtomicU64::new(0),
            reads: inner.reads,
            missing: inner.missing,
            absent: inner.absent,
            within: inner.within,
            bytes: inner.bytes - self.bytes,
            peak: inner.peak.saturating_sub(self.bytes),
            assumed: inner.assumed,
            withheld: inner.withheld,
            seen: AtomicU64::new(self.generation.unwrap_or(u64::MAX)),
        });
        let mut headers = self.look.headers();
        if header.peak <= MOST_READ {
            headers.keep(key, &header);
        } else {
            headers.keep_cut(&header);
        }
        drop(headers);
        (header, end)
    }

    /// A kept reading that holds under these macros.
    fn known_header(&self, key: u64, macros: &Macros) -> Option<Arc<Header>> {
        let readings = {
            let headers = self.look.headers();
            headers.by_key.get(&key).cloned()?
        };
        let known = readings.into_iter().rev().find(|reading| {
            (if self.assumes {
                !reading.withheld
            } else {
                reading.assumed.is_empty()
            }) && reading.start.reads_alike(macros, &reading.trace)
                && self.reads_as_much(reading)
                && self.still_holds(reading)
        })?;
        let mut headers = self.look.headers();
        headers.clock += 1;
        headers.shared += 1;
        known.used.store(headers.clock, Ordering::Relaxed);
        Some(known)
    }

    /// True where what a reading left out because it was being read is being read here as well and nothing else is, and where
    /// all that it read fits.
    fn reads_as_much(&self, header: &Header) -> bool {
        let is_open = |path: &Path| {
            let mut open = self.stack.iter();
            open.any(|open| open.as_os_str() == path.as_os_str())
        };
        self.bytes.saturating_add(header.peak) <= MOST_READ
            && header.within.iter().all(|path| is_open(path))
            && !header.reads.iter().any(|(path, _)| is_open(path))
    }

    /// True where no file that a header depends on has changed, and what it did not find is still not there.
    fn still_holds(&self, header: &Header) -> bool {
        if self.generation == Some(header.seen.load(Ordering::Relaxed)) {
            return true;
        }
        let reads = |(path, hash): &(PathBuf, u64)| {
            let file = self.look.files.read(path);
            file.is_some_and(|file| file.hash == *hash)
        };
        let is_absent = |absent: &Absent| {
            let Absent {
                spelled,
                system,
                from,
                outside,
            } = absent;
            self.resolve(spelled, *system, from).is_none()
                && self.is_outside(spelled, *system, from) == *outside
        };
        let holds = header.reads.iter().all(reads) && header.absent.iter().all(is_absent);
        if holds && let Some(generation) = self.generation {
            header.seen.store(generation, Ordering::Relaxed);
        }
        holds
    }

    /// What is read before the first line: forced includes and neighbours. Gives the macros after them.
    pub(crate) fn before(
        &mut self,
        forced: &[PathBuf],
        beside: &[PathBuf],
        mut macros: Macros,
    ) -> Macros {
        for forced in forced {
            let spelled = forced.to_string_lossy();
            let line = IncludeLine {
                spelled: &spelled,
                system: false,
                next: false,
                at: 0,
            };
            if let IncludeResult::Header { macros: after, .. } = self.include(&line, &macros, false)
            {
                macros = after;
            }
        }
        for path in beside {
            if let Some(file) = self.look.files.read(path) {
                let (header, after) = self.header(path, &file, &macros);
                macros = after;
                self.reads.extend(header.reads.iter().cloned());
                self.missing.extend(header.missing.iter().cloned());
                self.absent.extend(header.absent.iter().cloned());
                self.within.extend(header.within.iter().cloned());
                self.includes.push(Arc::clone(&header.text));
            }
        }
        macros
    }

    pub(crate) fn start_again(&mut self) {
        self.includes.clear();
        self.bytes = 0;
        self.reads.clear();
        self.missing.clear();
    }

    /// Where a header is.
    fn resolve(&self, spelled: &str, system: bool, from: &Path) -> Option<PathBuf> {
        let files = self.look.files;
        let found = self.search.resolve(files, spelled, system, from);
        found.or_else(|| {
            // A folder that only the build names: `INCLUDE_PATH/types.h`.
            let (folder, rest) = spelled.split_once('/')?;
            let is_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
            let named = !folder.is_empty() && folder.chars().all(is_name);
            named
                .then(|| self.search.resolve(files, rest, system, from))
                .flatten()
        })
    }

    fn is_outside(&self, spelled: &str, system: bool, from: &Path) -> bool {
        let files = self.look.files;
        self.search.is_outside(files, spelled, system, from)
    }

    fn from(&self) -> PathBuf {
        self.stack.last().cloned().unwrap_or_default()
    }

    /// True for a header that is there to be read.
    pub(crate) fn finds(&self, spelled: &str, system: bool) -> bool {
        !warplens_base::is_system_header(spelled)
            && self
                .search
                .resolve(self.look.files, spelled, system, &self.from())
                .is_some()
    }
}

impl Includes for Reader<'_> {
    fn include(
        &mut self,
        line: &IncludeLine<'_>,
        macros: &Macros,
        inside_braces: bool,
    ) -> IncludeResult {
        let files = self.look.files;
        let from = self.from();
        // The toolkit's own headers are known, wherever a command finds them.
        if line.system && warplens_base::is_system_header(line.spelled) {
            let hip = self.language == Language::Cuda && line.spelled.starts_with("hip/");
            return if hip && !macros.is_defined("__HIPCC__") {
                hip_over_cuda(macros)
            } else {
                IncludeResult::Nothing
            };
        }
        if warplens_base::is_of_layouts(line.spelled) {
            return IncludeResult::Nothing;
        }
        let found = self.resolve(line.spelled, line.system, &from);
        let Some(path) = found else {
            let outside = self.is_outside(line.spelled, line.system, &from);
            self.absent.push(Absent {
                spelled: line.spelled.to_owned(),
                system: line.system,
                from,
                outside,
            });
            if outside {
                self.missing.push(format!(
                    "{} (outside the workspace: not read without `warplens.{READS_OUTSIDE}`, on the command line \
                     `--includes-outside-workspace`)",
                    line.spelled
                ));
            } else if !line.system && !warplens_base::is_system_header(line.spelled) {
                self.missing.push(line.spelled.to_owned());
            }
            return IncludeResult::Nothing;
        };
        if self.stack.contains(&path) {
            self.within.push(path);
            return IncludeResult::Nothing;
        }
        if self.stack.len() > DEEPEST {
            return IncludeResult::Nothing;
        }
        let Some(file) = files.read(&path) else {
            self.missing.push(line.spelled.to_owned());
            // It is there and cannot be read: another reading looks again.
            self.peak = usize::MAX;
            return IncludeResult::Nothing;
        };
        let marker = once_marker(&path);
        let was_read = macros.is_defined(&marker);
        self.once.push(marker);
        if was_read {
            return IncludeResult::Nothing;
        }
        if inside_braces {
            self.reads.push((path.clone(), file.hash));
            return IncludeResult::Text {
                text: Arc::clone(&file.text),
                path: path.into(),
            };
        }
        if file.text.len() > MOST_OF_ONE {
            self.reads.push((path, file.hash));
            self.missing.push(format!("{} (too large)", line.spelled));
            return IncludeResult::Nothing;
        }
        if self.bytes + file.text.len() > MOST_READ {
            self.missing
                .push(format!("{} (too many headers)", line.spelled));
            // What leaves something out for that is not what others read.
            self.peak = usize::MAX;
            return IncludeResult::Nothing;
        }
        let (header, after) = self.header(&path, &file, macros);
        let peak = self.bytes.saturating_add(header.peak);
        self.peak = self.peak.max(peak);
        self.bytes += header.bytes;
        self.assumed.extend(header.assumed.iter().cloned());
        self.withheld |= header.withheld;
        self.reads.extend(header.reads.iter().cloned());
        self.missing.extend(header.missing.iter().cloned());
        self.absent.extend(header.absent.iter().cloned());
        self.within.extend(header.within.iter().cloned());
        self.includes.push(Arc::clone(&header.text));
        IncludeResult::Header {
            macros: after,
            trace: Arc::clone(&header.trace),
        }
    }

    fn enter(&mut self, path: &Path) {
        self.stack.push(path.to_path_buf());
    }

    fn leave(&mut self) {
        if self.stack.len() > 1 {
            self.stack.pop();
        }
    }

    fn has_include(&mut self, spelled: &str, system: bool) -> bool {
        let found = warplens_base::is_system_header(spelled) || self.finds(spelled, system);
        if !found {
            let from = self.from();
            self.absent.push(Absent {
                outside: self.is_outside(spelled, system, &from),
                spelled: spelled.to_owned(),
                system,
                from,
            });
        }
        found
    }
}

/// OpenCL C in raw strings, as host programs include it: the quotes blank, everything else in its place.
pub(crate) fn unwrapped(text: &str) -> Option<String> {
    text.contains("R\"(")
        .then(|| text.replace("R\"(", "   ").replace(")\"", "  "))
}

/// `#pragma once`, remembered as a macro so that it holds for one translation and not for the next.
fn once_marker(path: &Path) -> String {
    let mut hasher = FxHasher::default();
    path.hash(&mut hasher);
    format!("__pragma_once_{:016x}", hasher.finish())
}

fn once(text: &str) -> bool {
    text.lines().take(400).any(|line| {
        let line = line.trim_start();
        line.starts_with('#')
            && line[1..]
                .trim_start()
                .strip_prefix("pragma")
                .is_some_and(|rest| rest.trim() == "once")
    })
}

/// What HIP's headers say where CUDA's compiler reads them (`hip/hip_common.h`): it is HIP's compiler, on NVIDIA's platform.
fn hip_over_cuda(macros: &Macros) -> IncludeResult {
    let (mut after, mut trace) = (macros.clone(), Trace::default());
    for name in [
        "__HIPCC__",
        "__HIP_PLATFORM_NVIDIA__",
        "__HIP_PLATFORM_NVCC__",
    ] {
        after.define(name, "1");
        trace.change(name);
    }
    IncludeResult::Header {
        macros: after,
        trace: Arc::new(trace),
    }
}
