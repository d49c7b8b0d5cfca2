//! Query family: what a buffer is analysed as.
//!
//! In: a document, its path, settings, the files it is linked with. Out: [`Translation`]: its preprocessed text and the texts before it.
//! What holds: one that others include is read as the nearest of them reads it, as long as what the editor shows is what was read.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashSet;
use warplens_base::SourceFile;
use warplens_machine::Profile;
use warplens_syntax::{Document, Expanded, Language};

use crate::kinds::absolute;
use crate::look::Look;
use crate::queries::expansion::flatten;
use crate::replaced::Replaced;
use crate::settings::Settings;

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
    pub(crate) fn translate(
        &self,
        document: &Document,
        path: &Path,
        settings: &Settings,
        profile: &Profile,
        neighbours: bool,
        linked: &[PathBuf],
    ) -> Translation {
        if let Some(translation) = self.as_included(path, document, settings, profile) {
            return translation;
        }
        let text = self.expand(document, path, settings, profile, neighbours);
        let own = flatten(&text.includes);
        let mut linked = linked.to_vec();
        let mut headers = self.linked_texts(&linked, document.language(), settings, profile);
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

    fn as_included(
        &self,
        path: &Path,
        document: &Document,
        settings: &Settings,
        profile: &Profile,
    ) -> Option<Translation> {
        if path.as_os_str().is_empty() {
            return None;
        }
        let opencl = document.language() == Language::OpenCl;
        self.includers_of(&absolute(path), opencl, settings)
            .iter()
            .find_map(|includer| self.included_by(includer, path, document, settings, profile))
    }

    fn included_by(
        &self,
        includer: &Path,
        path: &Path,
        document: &Document,
        settings: &Settings,
        profile: &Profile,
    ) -> Option<Translation> {
        let own = absolute(path);
        let said = self.files.read(&own);
        if said.is_none_or(|file| file.text != *document.source()) {
            // An edited copy: its file is read with that text in its place.
            let file = SourceFile::new(&own, Arc::clone(document.source()));
            let file = Arc::new(file);
            let replaced = Replaced {
                files: self.files,
                file,
            };
            return self
                .with(&replaced)
                .part_of(includer, &own, document, settings, profile);
        }
        self.part_of(includer, &own, document, settings, profile)
    }

    fn part_of(
        &self,
        includer: &Path,
        path: &Path,
        document: &Document,
        settings: &Settings,
        profile: &Profile,
    ) -> Option<Translation> {
        let file = self.files.read(includer)?;
        let language = Language::from_path(includer).unwrap_or(document.language());
        let mut outer = self.document(&file, language);
        if self.is_replaced() {
            // A copy: the file's own expansion stays what the next text starts from.
            outer = Arc::new(Document::clone(&outer));
        }
        let text = self.expand(&outer, includer, settings, profile, false);
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
