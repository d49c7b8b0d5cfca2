//! Query family: the preprocessed text of a file under its compile command.
//!
//! In: a document, its path, settings, the GPU. Out: [`Expanded`]: the text without directives, its tree, the headers before it, the
//! programs in its string literals. What holds: the text of an edited document is made from that of the text before, item by item,
//! and is what a fresh one would be; a document keeps its last one, so that it is made once for a revision and its surroundings.

use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::{FxHashSet, FxHasher};
use warplens_base::{Define, SourceFile};
use warplens_machine::Profile;
use warplens_syntax::preprocess::{Piece, SourceMap};
use warplens_syntax::{Document, Expanded, Language, embedded_programs};

use crate::kinds::absolute;
use crate::look::Look;
use crate::macros::predefined;
use crate::queries::branches::{first_of_several, kernels_left_out};
use crate::queries::headers::{Reader, unwrapped};
use crate::settings::Settings;

/// Files that others depend on whose documents are kept.
const MOST_DOCUMENTS: usize = 32;
/// Programs in strings of one file that are read.
const MOST_PROGRAMS: usize = 256;

/// A document and what it is read under.
#[derive(Clone, Copy)]
pub(crate) struct Buffer<'a> {
    pub(crate) document: &'a Document,
    pub(crate) path: &'a Path,
    pub(crate) settings: &'a Settings,
    pub(crate) profile: &'a Profile,
    /// Whether it is read behind files that its host program most likely puts in front of it.
    pub(crate) neighbours: bool,
}

impl Look<'_> {
    pub(crate) fn expand(&self, buffer: Buffer<'_>) -> Arc<Expanded> {
        let Buffer {
            document,
            path,
            settings,
            profile,
            neighbours,
        } = buffer;
        let language = document.language();
        let command = self.command(path);
        let bounds = self.bounds(path);
        let (search, search_key) = self.search(settings, command.as_deref(), bounds.as_ref());
        let generation = self.generation();
        let mut hasher = FxHasher::default();
        (
            path,
            self.files.existence(),
            search_key,
            language,
            profile.compute_capability,
            &profile.architecture,
            profile.warp_size,
        )
            .hash(&mut hasher);
        let mut beside = if language == Language::OpenCl {
            self.sources(path)
        } else {
            Vec::new()
        };
        if neighbours {
            let more = self.neighbours(path, bounds.as_ref());
            for file in more {
                if !beside.contains(&file) {
                    beside.push(file);
                }
            }
        }
        if let Some(bounds) = &bounds {
            beside.retain(|file| bounds.hold(self.files, file));
        }
        beside.hash(&mut hasher);
        settings.defines.hash(&mut hasher);
        settings.kernel_macros.hash(&mut hasher);
        if let Some(command) = &command {
            Arc::as_ptr(command).hash(&mut hasher);
        }
        let holds = |last: &Expanded| {
            let same = |(path, hash): &(PathBuf, u64)| {
                self.files.read(path).is_some_and(|file| file.hash == *hash)
            };
            last.versions.iter().all(same)
        };
        document.expanded(hasher.finish(), holds, |source, previous| {
            let mut macros = predefined(language, profile);
            let marker = if language == Language::OpenCl {
                "__kernel"
            } else {
                "__global__"
            };
            for name in &settings.kernel_macros {
                macros.define(name, marker);
            }
            if let Some(command) = &command {
                for define in &command.defines {
                    match define {
                        Define::Set { name, value } => macros.define(name, value),
                        Define::Unset(name) => macros.undefine(name),
                    }
                }
            }
            for (name, value) in &settings.defines {
                macros.define(name, value);
            }
            let mut reader = Reader {
                look: self,
                search: &search,
                search_key,
                language,
                generation,
                stack: vec![absolute(path)],
                includes: Vec::new(),
                reads: Vec::new(),
                missing: Vec::new(),
                absent: Vec::new(),
                within: Vec::new(),
                bytes: 0,
                peak: 0,
                assumes: true,
                assumed: Vec::new(),
                withheld: false,
                once: Vec::new(),
            };
            let forced = command
                .as_ref()
                .map_or(&[][..], |command| &command.forced_includes);
            let unwrapped = (language == Language::OpenCl)
                .then(|| unwrapped(&source))
                .flatten();
            let read = unwrapped.as_deref().unwrap_or(&source);
            let start = reader.before(forced, &beside, macros.clone());
            let earlier =
                previous.filter(|previous| unwrapped.is_none() && previous.language == language);
            let earlier = earlier.map(Expanded::as_earlier);
            let mut done = reader.preprocess(read, start, false, earlier);
            // `#if A … #elif B …` with neither: the build defines one of them. The first is as good as any.
            let assumed = first_of_several(&source, &done.undecided, &|spelled, system| {
                reader.finds(spelled, system)
            });
            let plain = macros.clone();
            if !assumed.is_empty() {
                for (name, value) in &assumed {
                    macros.define(name, value);
                }
                reader.start_again();
                let start = reader.before(forced, &beside, macros.clone());
                done = reader.preprocess(read, start, false, earlier);
            }
            if unwrapped.is_some() {
                // Not of the text that the next one is compared with.
                done.quiet.clear();
            }
            let includes = std::mem::take(&mut reader.includes);
            let alternatives = kernels_left_out(&source, &done.undecided);
            let expanded = |done, includes, previous: Option<&Expanded>| {
                let (path, source) = (absolute(path).into(), Arc::clone(&source));
                Expanded::new(path, language, source, done, includes, previous)
            };
            let mut text = expanded(done, includes, previous);
            text.assumed = assumed;
            text.assumed.append(&mut reader.assumed);
            text.assumed.sort();
            text.assumed.dedup();
            // What only a branch that is not taken reads is nothing that the file depends on, but what is made of it does.
            let mut tried = Vec::new();
            for (range, assume) in alternatives {
                let mut macros = macros.clone();
                for (name, value) in &assume {
                    match value {
                        Some(value) => macros.define(name, value),
                        None => macros.undefine(name),
                    }
                }
                let missing = reader.missing.len();
                let own = reader.reads.len();
                let start = reader.before(forced, &beside, macros);
                let done = reader.run(read, start);
                let includes = std::mem::take(&mut reader.includes);
                reader.missing.truncate(missing);
                tried.extend(reader.reads.drain(own..));
                let other = expanded(done, includes, None);
                text.alternatives.push((range, Arc::new(other)));
            }
            // Who has no kernels need not know.
            if !text.assumed.is_empty() && source.contains(marker) {
                let (missing, own) = (reader.missing.len(), reader.reads.len());
                let previous = previous.and_then(|previous| previous.unassumed.as_deref());
                let earlier = previous
                    .filter(|_| unwrapped.is_none())
                    .map(Expanded::as_earlier);
                reader.assumes = false;
                let start = reader.before(forced, &beside, plain);
                let mut done = reader.preprocess(read, start, false, earlier);
                if unwrapped.is_some() {
                    done.quiet.clear();
                }
                let includes = std::mem::take(&mut reader.includes);
                let others = reader.missing.split_off(missing);
                tried.extend(reader.reads.drain(own..));
                reader.assumes = true;
                // What a header that was not read would change is not known.
                let all_read = reader.missing.iter().all(|name| others.contains(name));
                text.unassumed = all_read.then(|| Arc::new(expanded(done, includes, previous)));
            }
            text.missing = std::mem::take(&mut reader.missing);
            text.lacks_a_library = reader.absent.iter().any(|absent| absent.system);
            text.reads = reader.reads.iter().map(|(path, _)| path.clone()).collect();
            if language != Language::OpenCl {
                text.embedded = self.embedded(buffer, &source, &mut reader);
            }
            tried.append(&mut reader.reads);
            tried.sort_unstable();
            tried.dedup();
            text.versions = tried;
            text
        })
    }

    /// The OpenCL programs in the string literals of host code.
    fn embedded(
        &self,
        buffer: Buffer<'_>,
        source: &Arc<str>,
        reader: &mut Reader,
    ) -> Vec<Arc<Expanded>> {
        embedded_programs(source)
            .into_iter()
            .take(MOST_PROGRAMS)
            .map(|program| {
                let mut macros = predefined(Language::OpenCl, buffer.profile);
                for (name, value) in &buffer.settings.defines {
                    macros.define(name, value);
                }
                let pieces: Vec<Piece> = program
                    .pieces
                    .iter()
                    .map(|piece| {
                        let source_length = if piece.verbatim { piece.len } else { 1 };
                        Piece {
                            output: piece.at..piece.at + piece.len,
                            source: piece.source..(piece.source + source_length).min(source.len()),
                            verbatim: piece.verbatim,
                        }
                    })
                    .collect();
                let outer = SourceMap::from_pieces(&pieces, source.len());
                reader.language = Language::OpenCl;
                let mut done = reader.run(&program.text, macros);
                let includes = std::mem::take(&mut reader.includes);
                done.map = done.map.compose(&outer);
                Arc::new(Expanded::new(
                    absolute(buffer.path).into(),
                    Language::OpenCl,
                    Arc::clone(source),
                    done,
                    includes,
                    None,
                ))
            })
            .collect()
    }

    /// A file on its own, as a host program is read for what it launches.
    pub(crate) fn alone(
        &self,
        file: &SourceFile,
        settings: &Settings,
        profile: &Profile,
    ) -> Arc<Expanded> {
        let language = Language::from_path(&file.path).unwrap_or(Language::Cuda);
        let document = self.document(file, language);
        self.expand(Buffer {
            document: &document,
            path: &file.path,
            settings,
            profile,
            neighbours: false,
        })
    }

    /// A file's document. It keeps its expansion, from which that of a later text starts.
    pub(crate) fn document(&self, file: &SourceFile, language: Language) -> Arc<Document> {
        let mut documents = self.documents();
        let known = documents.get(&*file.path);
        let known = known.filter(|(_, document)| document.language() == language);
        let document = match known {
            Some((hash, document)) if *hash == file.hash => return Arc::clone(document),
            Some((_, document)) => {
                let mut document = Document::clone(document);
                document.edit(0..document.len(), &file.text);
                Arc::new(document)
            }
            None => Arc::new(Document::new(&file.text, language)),
        };
        if documents.len() >= MOST_DOCUMENTS {
            documents.clear();
        }
        let known = (file.hash, Arc::clone(&document));
        documents.insert(file.path.to_path_buf(), known);
        document
    }
}

/// Headers in the order in which they are read, none twice.
pub(crate) fn flatten(includes: &[Arc<Expanded>]) -> Vec<Arc<Expanded>> {
    fn walk(
        includes: &[Arc<Expanded>],
        seen: &mut FxHashSet<*const Expanded>,
        out: &mut Vec<Arc<Expanded>>,
    ) {
        for include in includes {
            if !seen.insert(Arc::as_ptr(include)) {
                continue;
            }
            walk(&include.includes, seen, out);
            out.push(Arc::clone(include));
        }
    }
    let mut out = Vec::new();
    walk(includes, &mut FxHashSet::default(), &mut out);
    out
}
