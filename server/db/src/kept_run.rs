//! What a run of a program does, kept while the text around it is edited: places count from the items that hold them.

use std::path::Path;
use std::sync::Arc;

use warplens_host::{Build, Decides, HostEvent, HostPlace, LaunchSite, RunEvents};

use warplens_hir::Item;

use crate::program::Program;

/// First byte and line of each item of the texts that a run is made of, by their files.
pub(crate) type Starts = Vec<(Arc<Path>, Vec<(usize, u32)>)>;

/// The starts of the items of a text.
pub(crate) fn starts<'i>(items: impl IntoIterator<Item = &'i Item>) -> Vec<(usize, u32)> {
    let items = items.into_iter();
    items.map(|item| (item.source.start, item.line)).collect()
}

/// A run as it was walked, and where the items of its texts were then.
#[derive(Debug)]
pub(crate) struct KeptRun {
    sites: Vec<(usize, LaunchSite)>,
    events: Vec<HostEvent>,
    /// Builds, each with the item that holds it; ranges count from that item's first byte.
    builds: Vec<(usize, Build)>,
    is_cut: bool,
    starts: Starts,
}

impl KeptRun {
    /// `starts`: of all texts that the run is made of.
    pub(crate) fn new(run: RunEvents, program: &Program, starts: Starts) -> KeptRun {
        KeptRun {
            sites: program.by_items(run.sites),
            events: run.events,
            builds: run
                .builds
                .into_iter()
                .map(|build| {
                    let (item, start) = program.holder(build.range.start);
                    (item, build.moved(start, 0))
                })
                .collect(),
            is_cut: run.is_cut,
            starts,
        }
    }

    /// The same where the items are now, without what was asked.
    pub(crate) fn placed(&self, program: &Program, now: &Starts) -> RunEvents {
        let moved = Moved {
            before: &self.starts,
            now,
        };
        let events = self.events.iter().cloned();
        RunEvents {
            sites: program.at_items(&self.sites),
            events: if *now == self.starts {
                events.collect()
            } else {
                events.map(|event| moved.event(event)).collect()
            },
            builds: self
                .builds
                .iter()
                .map(|(item, build)| build.moved(0, program.start(*item)))
                .collect(),
            is_cut: self.is_cut,
            asked: Vec::new(),
        }
    }
}

/// Items that moved.
struct Moved<'a> {
    before: &'a Starts,
    now: &'a Starts,
}

impl Moved<'_> {
    fn event(&self, event: HostEvent) -> HostEvent {
        let mut often = event.often;
        for open in &mut often.open {
            let deciding = open.deciding.iter().map(|decides| self.decides(decides));
            open.deciding = deciding.collect();
        }
        HostEvent {
            place: self.place(&event.place),
            around: event.around.as_ref().map(|around| self.decides(around)),
            often,
            ..event
        }
    }

    fn decides(&self, decides: &Arc<Decides>) -> Arc<Decides> {
        Arc::new(Decides {
            place: self.place(&decides.place),
            ..(**decides).clone()
        })
    }

    fn place(&self, place: &HostPlace) -> HostPlace {
        let mut place = place.clone();
        let of = |starts: &'_ Starts| starts.iter().position(|(file, _)| **file == *place.file);
        let (Some(before), Some(now)) = (of(self.before), of(self.now)) else {
            return place;
        };
        let (before, now) = (&self.before[before].1, &self.now[now].1);
        // Items follow each other; a place is in the last that begins before it.
        let holds = |(_, (start, _)): &(usize, &(usize, u32))| *start <= place.range.start;
        let item = before.iter().enumerate().filter(holds);
        let Some((at, (start, line))) = item.max_by_key(|(_, (start, _))| *start) else {
            return place;
        };
        if let Some((start_now, line_now)) = now.get(at) {
            let byte = |byte: usize| byte.saturating_sub(*start) + start_now;
            place.range = byte(place.range.start)..byte(place.range.end);
            place.line = place.line.saturating_sub(*line) + line_now;
        }
        place
    }
}
