//! What is kept by content, a field a family of queries; see [`crate::memo`] for why.

use warplens_codegen::{CompiledKernel, Options};
use warplens_facts::facts::SourceFacts;
use warplens_hir::{Item, Mentioned, Unit};
use warplens_host::{Build, HeaderNames, LaunchSite};

use crate::estimates::Estimates;
use crate::kept_run::KeptRun;
use crate::linkage::Linkage;
use crate::lowered::Lowered;
use crate::memo::{Kept, Memo};
use crate::{Finding, KernelAnalysis, ModelInput};

/// Analyses, kernels in IR and units for which there is room. Units hold whole texts with their trees.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub(crate) units: usize,
    pub(crate) kernels: usize,
    pub(crate) analyses: usize,
}

impl Room {
    /// For files that are looked at again and again.
    pub(crate) const MUCH: Room = Room {
        units: 128,
        kernels: 512,
        analyses: 1024,
    };
    /// For files of which each is looked at once.
    pub(crate) const LITTLE: Room = Room {
        units: 32,
        kernels: 2,
        analyses: 2,
    };
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Contents {
    /// `queries::units`
    pub(crate) outlines: Memo<u64, Vec<Item>>,
    pub(crate) units: Memo<u64, Unit>,
    /// The libraries that a function or a kernel mentions.
    pub(crate) mentioned: Memo<u64, Mentioned>,
    /// The names of headers that launches depend on: those of one, and of all that a program reads.
    pub(crate) header_names: Memo<u64, HeaderNames>,
    /// `queries::launches`: launches of a text, each with the item that holds it; ranges count from that item's first byte.
    pub(crate) sites: Memo<u64, Vec<(usize, LaunchSite)>>,
    /// The same without classes, and what of a header launches depend on.
    pub(crate) told: Memo<u64, Vec<(usize, LaunchSite)>>,
    pub(crate) launching: Memo<u64, u64>,
    /// `queries::runs`: what a run does, with where the items stood, by what it depends on; and which parameters of kernels it asked about,
    /// by all but that.
    pub(crate) runs: Memo<u64, KeptRun>,
    pub(crate) asked_of_runs: Memo<u64, Vec<(String, usize)>>,
    /// What a text with programs in its literals builds them with.
    pub(crate) builds: Memo<u64, Vec<Build>>,
    /// `queries::linkage`: what a text calls and defines, and what some texts together lack.
    pub(crate) linkages: Memo<u64, Linkage>,
    pub(crate) lacking: Memo<u64, Vec<String>>,
    /// `queries::launchers`: launches by a text's functions as another text calls them.
    pub(crate) called: Memo<u64, Vec<LaunchSite>>,
    /// `queries::kernels`
    pub(crate) kernels: Memo<u64, Lowered>,
    /// `queries::compiled_kernels`, by the kernel's shape and how it is compiled.
    pub(crate) compiled: Memo<(u64, Options), CompiledKernel>,
    /// `queries::facts`
    pub(crate) facts: Memo<u64, SourceFacts>,
    /// `queries::model_inputs`
    pub(crate) inputs: Memo<u64, ModelInput>,
    /// `queries::estimates`
    pub(crate) estimates: Memo<u64, Estimates>,
    /// `queries::findings`
    pub(crate) findings: Memo<u64, Vec<Finding>>,
    /// `queries::analyses`
    pub(crate) analyses: Memo<u64, KernelAnalysis>,
}

impl Default for Contents {
    fn default() -> Contents {
        let Room {
            units,
            kernels,
            analyses,
        } = Room::MUCH;
        Contents {
            outlines: Memo::new(2 * units),
            units: Memo::new(units),
            mentioned: Memo::new(kernels),
            header_names: Memo::new(2 * units),
            sites: Memo::new(kernels),
            told: Memo::new(kernels),
            launching: Memo::new(2 * units),
            runs: Memo::new(units),
            asked_of_runs: Memo::new(units),
            builds: Memo::new(kernels),
            linkages: Memo::new(2 * units),
            lacking: Memo::new(kernels),
            called: Memo::new(kernels),
            kernels: Memo::new(kernels),
            compiled: Memo::new(kernels),
            facts: Memo::new(analyses),
            inputs: Memo::new(analyses),
            estimates: Memo::new(analyses),
            findings: Memo::new(analyses),
            analyses: Memo::new(analyses),
        }
    }
}

impl Contents {
    /// As much room as that from now on.
    pub(crate) fn set_room(&self, room: Room) {
        self.outlines.set_room(2 * room.units);
        self.units.set_room(room.units);
        self.mentioned.set_room(room.kernels);
        self.header_names.set_room(2 * room.units);
        self.sites.set_room(room.kernels);
        self.told.set_room(room.kernels);
        self.launching.set_room(2 * room.units);
        self.runs.set_room(room.units);
        self.asked_of_runs.set_room(room.units);
        self.builds.set_room(room.kernels);
        self.linkages.set_room(2 * room.units);
        self.lacking.set_room(room.kernels);
        self.called.set_room(room.kernels);
        self.kernels.set_room(room.kernels);
        self.compiled.set_room(room.kernels);
        self.facts.set_room(room.analyses);
        self.inputs.set_room(room.analyses);
        self.estimates.set_room(room.analyses);
        self.findings.set_room(room.analyses);
        self.analyses.set_room(room.analyses);
    }

    /// Room for a file with this many kernels, see [`Memo::make_room`].
    pub(crate) fn make_room(&self, kernels: usize) {
        self.kernels.make_room(kernels);
        self.compiled.make_room(kernels);
        self.facts.make_room(kernels);
        self.inputs.make_room(kernels);
        self.estimates.make_room(kernels);
        self.findings.make_room(kernels);
        self.analyses.make_room(kernels);
    }

    /// All of them; what holds others comes first.
    fn all(&self) -> [&dyn Kept; 20] {
        [
            &self.analyses,
            &self.findings,
            &self.estimates,
            &self.inputs,
            &self.facts,
            &self.compiled,
            &self.kernels,
            &self.outlines,
            &self.mentioned,
            &self.units,
            &self.header_names,
            &self.sites,
            &self.told,
            &self.launching,
            &self.runs,
            &self.asked_of_runs,
            &self.builds,
            &self.linkages,
            &self.lacking,
            &self.called,
        ]
    }

    /// A document was closed, see [`Memo::closed`].
    pub(crate) fn closed(&self) {
        self.all().into_iter().for_each(Kept::closed);
    }

    /// Lets go of everything.
    pub(crate) fn clear(&self) {
        self.all().into_iter().for_each(Kept::clear);
    }
}
