//! Query family: the launches of a text.
//!
//! In: a [`Program`]. Out: its launches, with ranges in its source. What holds: device code matters by its names alone
//! ([`Program::launching`]), and launches count from the item that holds them, so that what is typed elsewhere leaves them. The same
//! is so of headers where classes are kept by their names: those hold on to the text that they are in.

use std::sync::Arc;

use warplens_host::{LaunchSite, LaunchWords, launch_sites};
use warplens_syntax::Expanded;

use crate::contents::Contents;
use crate::memo::hash;
use crate::program::{Program, launching};

impl Contents {
    /// The launches in a text; ranges in its source.
    pub(crate) fn launches_in(&self, program: &Program) -> Vec<LaunchSite> {
        let text = &program.text.text;
        if !program.launch_words().within(&(0..text.len())) {
            return Vec::new();
        }
        // Kept relative to the item that holds them, so that they survive edits elsewhere.
        let found = self.sites.get_or(program.launching(), || {
            let (text, items, unit) = (&program.text, &program.items, &program.unit);
            program.by_items(launch_sites(text, items, unit, &program.header_names))
        });
        program.at_items(&found)
    }

    /// The same with classes by their names, behind these headers: what is typed in a kernel of theirs leaves them.
    pub(crate) fn launches_told(
        &self,
        program: &Program,
        headers: &[Arc<Expanded>],
    ) -> Vec<LaunchSite> {
        let text = &program.text.text;
        if !program.launch_words().within(&(0..text.len())) {
            return Vec::new();
        }
        let key = program.launching_behind(self.launching_in(program, headers));
        let told = self.told.get_or(key, || {
            let sites = self.launches_in(program);
            program.by_items(sites.iter().map(LaunchSite::without_classes).collect())
        });
        program.at_items(&told)
    }

    /// A hash of what launches depend on in headers, and in what is linked.
    pub(crate) fn launching_in<'t>(
        &self,
        program: &Program,
        headers: impl IntoIterator<Item = &'t Arc<Expanded>>,
    ) -> u64 {
        let names = hash(&[&*program.header_names]);
        headers.into_iter().fold(names, |before, header| {
            let key = hash(&[&header.own_hash, &names]);
            let own = self.launching.get_or(key, || {
                let words = LaunchWords::of(&header.text, &program.header_names);
                launching(header, &self.items(header), &words)
            });
            hash(&[&before, &header.path, &*own])
        })
    }
}

impl Program {
    /// Launches, each with the item that holds it, and where in that.
    pub(crate) fn by_items(&self, sites: Vec<LaunchSite>) -> Vec<(usize, LaunchSite)> {
        let placed = sites.into_iter().map(|site| {
            let (item, start) = self.holder(site.range.start);
            (item, site.moved(start, 0))
        });
        placed.collect()
    }

    /// The item that holds a byte of the source, and the item's first byte.
    pub(crate) fn holder(&self, byte: usize) -> (usize, usize) {
        let items = self.items.iter().enumerate();
        items
            .map(|(at, item)| (at, item.source.start))
            .filter(|(_, start)| *start <= byte)
            .max_by_key(|(_, start)| *start)
            .unwrap_or((0, 0))
    }

    /// Where an item begins now.
    pub(crate) fn start(&self, item: usize) -> usize {
        self.items.get(item).map_or(0, |item| item.source.start)
    }

    /// The same launches where the items are now.
    pub(crate) fn at_items(&self, sites: &[(usize, LaunchSite)]) -> Vec<LaunchSite> {
        let placed = sites
            .iter()
            .map(|(item, site)| site.moved(0, self.start(*item)));
        placed.collect()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use warplens_syntax::Language;
    use warplens_syntax::preprocess::{Preprocessed, SourceMap};

    use super::*;

    const HEADER: &str = "struct Wide { static constexpr int threads = 64; };\n\
        template <int N>\n__global__ void k(float *p) { p[threadIdx.x] = N; }\n\
        __device__ float twice(float x) { return 2 * x; }\n\
        inline void run(float *p) { k<3><<<1, Wide::threads>>>(p); }\n";

    fn text(path: &str, source: &str) -> Arc<Expanded> {
        let done = Preprocessed {
            text: source.to_owned(),
            map: SourceMap::identity(source.len()),
            ..Preprocessed::default()
        };
        let (path, source) = (Path::new(path).into(), source.into());
        let text = Expanded::new(path, Language::Cuda, source, done, Vec::new(), None);
        Arc::new(text)
    }

    fn program(contents: &Contents, source: &str, headers: &[Arc<Expanded>]) -> Program {
        contents.program(&text("k.cu", source), headers)
    }

    #[test]
    fn the_body_of_a_kernel_is_nothing_that_launches_depend_on() {
        let contents = Contents::default();
        let key = |source: &str| program(&contents, source, &[]).launching();
        let before = key(HEADER);
        assert_eq!(before, key(&HEADER.replace("= N;", "= N + 1;\n\n")));
        assert_eq!(before, key(&HEADER.replace("return 2 * x", "return x")));
        for (old, new) in [
            ("template <int N>", "template <unsigned N>"),
            ("k<3>", "k<4>"),
            ("threads = 64", "threads = 32"),
        ] {
            assert_ne!(before, key(&HEADER.replace(old, new)), "{new}");
        }
    }

    #[test]
    fn what_is_typed_in_a_kernel_of_a_header_leaves_the_launches_behind_it() {
        let contents = Contents::default();
        let told = |header: &str| {
            let headers = [text("k.cuh", header)];
            let program = program(&contents, "void all(float *p) { run(p); }\n", &headers);
            (
                contents.launching_in(&program, &headers),
                contents.launches_told(&program, &headers),
            )
        };
        let (before, sites) = told(HEADER);
        assert_eq!(sites.len(), 1);
        assert_eq!(sites[0].block, Some([64, 1, 1]));
        let (typed, same) = told(&HEADER.replace("= N;", "= N + 1;"));
        assert_eq!((before, &sites), (typed, &same));
        let (changed, others) = told(&HEADER.replace("threads = 64", "threads = 32"));
        assert_ne!(before, changed);
        assert_eq!(others[0].block, Some([32, 1, 1]));
    }
}
