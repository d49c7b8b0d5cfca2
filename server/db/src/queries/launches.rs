//! Query family: the launches of a text.
//!
//! In: a [`Program`]. Out: its launches, with ranges in its source. What holds: device code matters by its names alone
//! ([`Program::launching`]), and launches count from the item that holds them, so that what is typed elsewhere leaves them.

use warplens_host::{LaunchSite, launch_sites};

use crate::contents::Contents;
use crate::program::Program;

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
