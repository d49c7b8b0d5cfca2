//! Query family: the texts that stand before a file and that it does not include itself.
//!
//! In: a path. Out: the files that a host program builds before an OpenCL file, its likely neighbours, the texts of files that it is
//! linked with.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use warplens_base::Bounds;
use warplens_syntax::Expanded;

use crate::database::{Db, File, file};
use crate::kinds::{absolute, is_header, may_hold_kernels};
use crate::look::Look;
use crate::queries::expansion::{Buffer, flatten};
use crate::queries::near::Kinds;
use crate::series::Pieces;
use crate::sources::{SUFFIXES, sources_before};

/// Files of a folder that are looked at as neighbours.
const MOST_NEIGHBOURS: usize = 256;
/// Bytes of neighbours that are read.
const MOST_BESIDE: usize = 256 << 10;

/// The files that a host program near an OpenCL file names before it in the list of its sources.
#[salsa::tracked(returns(clone))]
fn sources(db: &dyn Db, of: File) -> Vec<PathBuf> {
    let look = Look::inside(db);
    let path = of.path(db);
    let (Some(folder), Some(stem), Some(extension)) = (
        path.parent(),
        path.file_stem().and_then(|stem| stem.to_str()),
        path.extension().and_then(|extension| extension.to_str()),
    ) else {
        return Vec::new();
    };
    let variable = format!("{stem}_{extension}");
    let words: Vec<String> = (SUFFIXES.iter())
        .map(|suffix| format!("{variable}{suffix}"))
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut hosts = look.hosts_near(path, &words, Kinds::Hosts);
    if hosts.is_empty() {
        hosts = look.hosts_near(path, &[stem], Kinds::Hosts);
    }
    hosts
        .iter()
        .map(|host| {
            let written = sources_before(&host.text, stem, extension);
            let beside_host = host.path.parent().unwrap_or(folder);
            written
                .iter()
                .filter_map(|file| {
                    let name = Path::new(file).file_name()?;
                    [
                        beside_host.join(file),
                        folder.join(name),
                        folder.parent()?.join(name),
                    ]
                    .into_iter()
                    .map(|file| warplens_base::normalise(&file))
                    .find(|file| look.files.exists(file))
                })
                .collect::<Vec<PathBuf>>()
        })
        .find(|found| !found.is_empty())
        .unwrap_or_default()
}

impl Look<'_> {
    /// The files that a host program near an OpenCL file names before it in the list of its sources.
    pub(crate) fn sources(&self, path: &Path) -> Vec<PathBuf> {
        let path = absolute(path);
        self.ask(|db| sources(db, file(db, &path)))
    }

    /// The texts of the files that a file is linked with, each behind its headers.
    pub(crate) fn linked_texts(
        &self,
        linked: &[PathBuf],
        buffer: Buffer<'_>,
    ) -> Vec<Arc<Expanded>> {
        let mut texts: Vec<Arc<Expanded>> = Vec::new();
        for linked in linked {
            let Some(file) = self.files.read(linked) else {
                continue;
            };
            let text = self.expand(Buffer {
                document: &self.document(&file, buffer.document.language()),
                path: linked,
                neighbours: false,
                ..buffer
            });
            for header in flatten(&text.includes).into_iter().chain([text]) {
                if !texts.iter().any(|known| known.path == header.path) {
                    texts.push(header);
                }
            }
        }
        texts
    }

    /// Files that a host program most likely puts in front of an OpenCL file: without kernels, beside it or one
    /// folder up.
    pub(crate) fn neighbours(&self, path: &Path, bounds: Option<&Bounds>) -> Vec<PathBuf> {
        let path = absolute(path);
        let Some(folder) = path.parent() else {
            return Vec::new();
        };
        let own = path.extension();
        let own_text = self
            .files
            .read(&path)
            .map_or_else(String::new, |file| file.text.to_string());
        let mut found = Vec::new();
        let mut bytes = 0;
        for folder in [folder.parent(), Some(folder)].into_iter().flatten() {
            if bounds.is_some_and(|bounds| !bounds.hold(self.files, folder)) {
                continue;
            }
            let files: Vec<PathBuf> = self
                .files
                .list(folder)
                .iter()
                .map(|entry| &entry.path)
                .filter(|file| **file != path && (file.extension() == own || is_header(file)))
                .take(MOST_NEIGHBOURS)
                .cloned()
                .collect();
            let all = files.iter().map(PathBuf::as_path).chain([path.as_path()]);
            let mut pieces = Pieces::of(all, &own_text);
            found.extend(files.into_iter().filter(|file| {
                self.files.read(file).is_some_and(|file| {
                    let text = &file.text;
                    if bytes + text.len() > MOST_BESIDE {
                        return false;
                    }
                    let plain = !["namespace", "template", "class ", "std::"]
                        .iter()
                        .any(|word| text.contains(word));
                    let taken = plain && (!may_hold_kernels(text) || pieces.take(&file.path, text));
                    bytes += if taken { text.len() } else { 0 };
                    taken
                })
            }));
        }
        found
    }
}
