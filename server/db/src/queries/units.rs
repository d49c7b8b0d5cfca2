//! Query family: the items of a text and what the texts before it declare.
//!
//! In: preprocessed texts. Out: [`Program`]s: items, and the unit in which names of kernels are looked up. What holds: a unit is known
//! by the hashes of the headers before it, each without what it includes, and of the declarations of its own text, so the body of a
//! kernel is no part of it but for the libraries that it mentions.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use rustc_hash::FxHasher;
use warplens_hir::{Item, ItemKind, Mentioned, Unit, outline};
use warplens_host::HeaderNames;
use warplens_syntax::{Expanded, Language};

use crate::contents::Contents;
use crate::kinds::is_header;
use crate::memo::hash;
use crate::program::{Program, is_device};

impl Contents {
    pub(crate) fn program(&self, text: &Arc<Expanded>, headers: &[Arc<Expanded>]) -> Program {
        self.program_with(text, headers, &[])
    }

    /// The same with other source files whose host functions it may call.
    pub(crate) fn program_with(
        &self,
        text: &Arc<Expanded>,
        headers: &[Arc<Expanded>],
        linked: &[Arc<Expanded>],
    ) -> Program {
        let language = text.language;
        let mut key = hash(&[&language]);
        let mut earlier: Option<Arc<Unit>> = None;
        for header in headers {
            key = hash(&[&key, &header.own_hash]);
            let unit = self.units.get_or(key, || {
                let items = self.items(header);
                if language == Language::OpenCl || is_header(&header.path) {
                    return Unit::new(header, &items, earlier.clone(), true);
                }
                // A source file that is included or linked: its host functions are no kernel's affair.
                let device: Vec<Item> = items
                    .iter()
                    .filter(|item| {
                        !matches!(item.kind, ItemKind::Function(_))
                            || is_device(&header.text[item.range.clone()])
                    })
                    .cloned()
                    .collect();
                Unit::new(header, &device, earlier.clone(), true)
            });
            if !unit.is_bare() {
                earlier = Some(unit);
            }
        }
        for linked in linked {
            key = hash(&[&key, &linked.own_hash, &"linked"]);
            let unit = self.units.get_or(key, || {
                Unit::new(linked, &self.items(linked), earlier.clone(), true)
            });
            earlier = Some(unit);
        }
        let items = Vec::clone(&self.items(text));
        let spelled = |item: &Item| &text.text[item.range.clone()];
        // Host functions do not matter to a kernel, only their launches do.
        let declares = |item: &Item| match item.kind {
            ItemKind::Kernel(_) => false,
            ItemKind::Declaration => true,
            ItemKind::Function(_) => language == Language::OpenCl || is_device(spelled(item)),
        };
        let declarations: Vec<Item> = items
            .iter()
            .filter(|item| declares(item))
            .cloned()
            .collect();
        let mut hasher = FxHasher::default();
        // What is no part of the key may be all that mentions a library. Only what was typed in is looked through.
        self.mentioned.make_room(items.len());
        let others = items.iter().filter(|item| !declares(item)).map(spelled);
        let mentioned = others.fold(Mentioned::default(), |all, text| {
            let own = self
                .mentioned
                .get_or(hash(&[&text]), || Mentioned::by(text));
            all | *own
        });
        (key, language, mentioned).hash(&mut hasher);
        for item in &declarations {
            (spelled(item), item.reading, &item.space).hash(&mut hasher);
        }
        // What packs the classes behind it is no item.
        for (at, _) in text.text.match_indices("#pragma pack") {
            let before = declarations.partition_point(|item| item.range.start < at);
            let line = text.text[at..].lines().next();
            (before, line).hash(&mut hasher);
        }
        let unit_key = hasher.finish();
        let unit = self
            .units
            .get_or(unit_key, || Unit::new(text, &declarations, earlier, false));
        Program {
            text: Arc::clone(text),
            items,
            unit,
            unit_key,
            headers_key: key,
            only: None,
            options: None,
            linked: Vec::new(),
            unassumed: None,
            functions: OnceLock::new(),
            launch_words: OnceLock::new(),
            header_names: self.header_names(key, headers),
            build_key: OnceLock::new(),
        }
    }

    /// The kernels of headers, and the functions that launch what they are given.
    fn header_names(&self, key: u64, headers: &[Arc<Expanded>]) -> Arc<HeaderNames> {
        self.header_names.get_or(key, || {
            let mut found = HeaderNames::default();
            for header in headers {
                let key = hash(&[&header.own_hash, &found]);
                let own = self
                    .header_names
                    .get_or(key, || HeaderNames::of(header, &self.items(header), &found));
                found.add(&own);
            }
            found
        })
    }

    /// The items of a text: the same whatever is before it.
    pub(crate) fn items(&self, text: &Arc<Expanded>) -> Arc<Vec<Item>> {
        self.outlines.get_or(text.own_hash, || outline(text))
    }
}
