//! What of other files a file's analysis depends on: in go its parts, out comes whether another file's text matters to it.
//!
//! An editor asks this at each keystroke in another open file, so it is told by paths and words, not by analysing again; where
//! it cannot be told so, the answer is that it matters.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use warplens_hir::ItemKind;
use warplens_syntax::Language;

use crate::program::{FileParts, Launched, NearLaunches};
use crate::{Engine, FileAnalysis};

/// What an analysis took from other files, and what it would take from a file that had it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Surroundings {
    /// Files that were read to make its text and what is linked with it.
    read: BTreeSet<PathBuf>,
    /// Files that were read for launches near it, one set a kernel.
    near: Vec<Arc<NearLaunches>>,
    /// Names that other files are searched for: its kernels, which they launch; its functions with launches, which they call;
    /// what it calls and does not define; and its own file name, which they include or build.
    names: BTreeSet<String>,
    language: Option<Language>,
}

impl Surroundings {
    pub(crate) fn of(path: &Path, parts: &FileParts, launched: &[Launched]) -> Surroundings {
        let texts = parts.programs.iter().map(|program| &program.text);
        let read = texts.flat_map(|text| text.versions.iter().map(|(path, _)| path.clone()));
        let read = read.chain(parts.read_around.iter().cloned());
        let mut names: BTreeSet<String> = BTreeSet::new();
        for program in &parts.programs {
            names.extend(program.items.iter().filter_map(|item| match &item.kind {
                ItemKind::Kernel(name) => Some(name.clone()),
                _ => None,
            }));
        }
        for site in &parts.sites {
            names.insert(site.through.first().unwrap_or(&site.inside).clone());
        }
        let mut near: Vec<Arc<NearLaunches>> = Vec::new();
        for one in launched {
            near.extend(one.near.clone());
            if let Some(Ok(Some(lowered))) = &one.lowered {
                names.extend(lowered.kernel.undefined.iter().cloned());
            }
        }
        // Builds name a file by a variable as well: `reduce_cl`.
        names.extend(
            path.file_stem()
                .map(|stem| stem.to_string_lossy().into_owned()),
        );
        names.remove("");
        names.remove("main");
        Surroundings {
            read: read.collect(),
            near,
            names,
            language: parts.programs.first().map(|program| program.text.language),
        }
    }

    /// True where this file was read.
    pub(crate) fn read(&self, changed: &Path) -> bool {
        self.read.contains(changed) || self.near.iter().any(|near| near.read.contains(changed))
    }

    /// True where the file may be read for lying beside: OpenCL lacks what its host puts in front, and its neighbours may have it.
    pub(crate) fn may_read(&self, own: &Path, changed: &Path) -> bool {
        let folder = own.parent();
        let beside =
            changed.parent() == folder || changed.parent() == folder.and_then(Path::parent);
        self.language == Some(Language::OpenCl) && beside
    }

    /// True where the text has one of the names in it.
    pub(crate) fn named_in(&self, text: &str) -> bool {
        let mut names = self.names.iter();
        names.any(|name| memchr::memmem::find(text.as_bytes(), name.as_bytes()).is_some())
    }
}

impl Engine {
    /// Whether what was found in the file `own` may be something else now that the text of the file `changed`, which was
    /// `before`, is `after`. `None` represents no text. Errs on the side of true.
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
    }
}

#[cfg(test)]
mod tests {
    use warplens_base::{NoFiles, OpenFiles};
    use warplens_machine::Profiles;
    use warplens_syntax::Document;

    use super::*;
    use crate::settings::Settings;
    use crate::{Cancel, Overrides, Project};

    /// Whether what was found in the first of these files may change with the other one's text.
    fn may_change(files: &[(&str, &str)], changed: &str) -> bool {
        let open = Arc::new(OpenFiles::new(NoFiles));
        for (path, text) in files {
            open.set(Path::new(path), *text);
        }
        let project = Project::new(open, vec![PathBuf::from("/p")]);
        let engine = Engine::with_project(Profiles::builtin(), project);
        let (path, text) = files[0];
        let document = Document::new(text, Language::Cuda);
        let (settings, overrides) = (Settings::default(), Overrides::default());
        let never = Cancel::default();
        let file = engine.analyze(&document, Path::new(path), &settings, &overrides, &never);
        let file = file.expect("not cancelled");
        let texts = [Some("#define SIZE 1"), Some("#define SIZE 2")];
        engine.may_change(&file, Path::new(path), Path::new(changed), texts)
    }

    const SIZE: (&str, &str) = ("/p/size.h", "#define SIZE 1\n");
    const KERNEL: &str = "__global__ void k(float *p) { p[threadIdx.x] = help(); }\n\
                          void run(float *p) { k<<<1, 64>>>(p); }\n";

    #[test]
    fn what_a_linked_file_reads_may_change_a_kernel() {
        let help = "#include \"size.h\"\n__device__ float help() { return SIZE; }\n";
        let files = [("/p/k.cu", KERNEL), ("/p/help.cu", help), SIZE];
        assert!(may_change(&files, "/p/size.h"));
        assert!(!may_change(&files, "/p/other.h"));
    }

    #[test]
    fn what_stands_before_a_header_where_it_is_included_may_change_its_kernels() {
        let main = "#include \"size.h\"\n__device__ float help() { return SIZE; }\n\
                    #include \"k.cuh\"\n";
        let files = [("/p/k.cuh", KERNEL), ("/p/main.cu", main), SIZE];
        assert!(may_change(&files, "/p/size.h"));
        assert!(!may_change(&files, "/p/other.h"));
    }

    #[test]
    fn what_a_host_program_reads_may_change_a_launch() {
        let host = "#include \"size.h\"\nvoid run(float *p) { k<<<1, SIZE>>>(p); }\n";
        let kernel = "__global__ void k(float *p) { p[threadIdx.x] = 1; }\n";
        let files = [("/p/k.cu", kernel), ("/p/host.cu", host), SIZE];
        assert!(may_change(&files, "/p/size.h"));
        assert!(!may_change(&files, "/p/other.h"));
    }
}
