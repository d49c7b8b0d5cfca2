//! Query family: what a buffer is analysed as.
//!
//! In: a document, its path, settings, the files it is linked with. Out: [`Translation`]: its preprocessed text and the texts before it.
//! What holds: one that others include is read as the nearest of them reads it, as long as what the editor shows is what was read.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashSet;
use warplens_base::SourceFile;
use warplens_syntax::{Document, Expanded, Language};

use crate::kinds::absolute;
use crate::look::Look;
use crate::queries::expansion::{Buffer, flatten};
use crate::replaced::Replaced;

/// A file as it is analysed.
pub(crate) struct Translation {
    pub(crate) text: Arc<Expanded>,
    /// Texts before it, in the order they are read, none twice: headers, and for a header the file that
    /// includes it.
    pub(crate) headers: Vec<Arc<Expanded>>,
    /// Those of them that it does not include but is linked with.
    pub(crate) linked: Vec<PathBuf>,
    /// Whether it is read as another file includes it.
    pub(crate) is_included: bool,
}

impl Look<'_> {
    /// What a buffer is analysed as, linked with these files. One that others include is read as the nearest of them reads it.
    pub(crate) fn translate(&self, buffer: Buffer<'_>, linked: &[PathBuf]) -> Translation {
        if let Some(translation) = self.as_included(buffer) {
            return translation;
        }
        let text = self.expand(buffer);
        let own = flatten(&text.includes);
        let mut linked = linked.to_vec();
        let mut headers = self.linked_texts(&linked, buffer);
        if !headers.is_empty() {
            let read: FxHashSet<&Path> = own.iter().map(|header| &*header.path).collect();
            headers.retain(|linked| !read.contains(&*linked.path));
            linked.retain(|linked| !read.contains(&**linked));
        }
        // All readings of one header count: behind its guard the second has nothing left.
        headers.extend(own);
        Translation {
            text,
            headers,
            linked,
            is_included: false,
        }
    }

    fn as_included(&self, buffer: Buffer<'_>) -> Option<Translation> {
        if buffer.path.as_os_str().is_empty() {
            return None;
        }
        let opencl = buffer.document.language() == Language::OpenCl;
        let path = absolute(buffer.path);
        let buffer = Buffer {
            path: &path,
            neighbours: false,
            ..buffer
        };
        self.includers_of(&path, opencl, buffer.settings)
            .iter()
            .find_map(|includer| self.included_by(includer, buffer))
    }

    fn included_by(&self, includer: &Path, buffer: Buffer<'_>) -> Option<Translation> {
        let source = buffer.document.source();
        let said = self.files.read(buffer.path);
        if said.is_none_or(|file| file.text != *source) {
            // An edited copy: its file is read with that text in its place.
            let file = SourceFile::new(buffer.path, Arc::clone(source));
            let file = Arc::new(file);
            let replaced = Replaced {
                files: self.files,
                file,
            };
            return self.with(&replaced).part_of(includer, buffer);
        }
        self.part_of(includer, buffer)
    }

    fn part_of(&self, includer: &Path, buffer: Buffer<'_>) -> Option<Translation> {
        let Buffer { document, path, .. } = buffer;
        let file = self.files.read(includer)?;
        let language = Language::from_path(includer).unwrap_or(document.language());
        let mut outer = self.document(&file, language);
        if self.is_replaced() {
            // A copy: the file's own expansion stays what the next text starts from.
            outer = Arc::new(Document::clone(&outer));
        }
        let text = self.expand(Buffer {
            document: &outer,
            path: includer,
            ..buffer
        });
        let all = flatten(&text.includes);
        let at = all.iter().position(|header| *header.path == *path)?;
        // A header that is read twice may be another one under other macros.
        if all[at].source != *document.source() {
            return None;
        }
        let own = Arc::clone(&all[at]);
        // What the includer declares itself is visible as well: a kernel's header often follows its types.
        let mut headers: Vec<Arc<Expanded>> = all
            .into_iter()
            .filter(|of| !Arc::ptr_eq(of, &own))
            .collect();
        headers.push(text);
        Some(Translation {
            text: own,
            headers,
            linked: Vec::new(),
            is_included: true,
        })
    }
}
