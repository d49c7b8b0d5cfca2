//! What a run of a program does, kept while the text around it is edited: places count from the items that hold them.

use std::path::Path;
use std::sync::Arc;

use warplens_host::{Build, Decides, HostEvent, HostPlace, LaunchSite, RunEvents};

use crate::program::Program;

/// A run as it was walked, and where the items of the program's own text stood then.
#[derive(Debug)]
pub(crate) struct KeptRun {
    sites: Vec<(usize, LaunchSite)>,
    events: Vec<HostEvent>,
    /// Builds, each with the item that holds it; ranges count from that item's first byte.
    builds: Vec<(usize, Build)>,
    is_cut: bool,
    /// First byte and line of each item.
    items: Vec<(usize, u32)>,
}

impl KeptRun {
    pub(crate) fn new(run: RunEvents, program: &Program) -> KeptRun {
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
            items: starts(program),
        }
    }

    /// The same where the items are now, without what was asked.
    pub(crate) fn placed(&self, program: &Program) -> RunEvents {
        let now = starts(program);
        let moved = Moved {
            own: &program.text.path,
            before: &self.items,
            now: &now,
        };
        let events = self.events.iter().cloned();
        RunEvents {
            sites: program.at_items(&self.sites),
            events: if now == self.items {
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

fn starts(program: &Program) -> Vec<(usize, u32)> {
    let items = program.items.iter();
    items.map(|item| (item.source.start, item.line)).collect()
}

/// Items that moved.
struct Moved<'a> {
    /// The file that they are in: places in others stay.
    own: &'a Path,
    before: &'a [(usize, u32)],
    now: &'a [(usize, u32)],
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
        if *place.file != *self.own {
            return place;
        }
        // Items follow each other; a place is in the last that begins before it.
        let holds = |(_, (start, _)): &(usize, &(usize, u32))| *start <= place.range.start;
        let item = self.before.iter().enumerate().filter(holds);
        let Some((at, (start, line))) = item.max_by_key(|(_, (start, _))| *start) else {
            return place;
        };
        if let Some((start_now, line_now)) = self.now.get(at) {
            let byte = |byte: usize| byte.saturating_sub(*start) + start_now;
            place.range = byte(place.range.start)..byte(place.range.end);
            place.line = place.line.saturating_sub(*line) + line_now;
        }
        place
    }
}
