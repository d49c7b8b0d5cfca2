//! Query family: a file taken apart, with what it is linked with and who launches its kernels.
//!
//! In: a document, its settings, the GPU. Out: [`FileParts`] and each kernel's launches. What holds: a file that defines what a kernel
//! calls and its own file does not is looked for by name; it may lack something in turn, and is then looked for as well.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use warplens_hir::{Item, ItemKind, Signature};
use warplens_host::{LaunchSite, builds, may_build};
use warplens_machine::Profile;
use warplens_syntax::{Expanded, Language, directives};

use crate::Engine;
use crate::memo::hash;
use crate::options::{BuildOptions, kernel_names};
use crate::parallel;
use crate::program::{FileParts, Launched, Program, Unassumed, kernel_name, kernels_of};
use crate::queries::arguments::{TemplateHead, arguments_of};
use crate::queries::expansion::{Buffer, flatten};
use crate::queries::hosts::ReadAs;
use crate::queries::launchers::{Called, KernelLaunches};
use crate::queries::variants::{FileQuestion, largest};
use crate::settings::Settings;

/// Times that other files are looked for in which there may be what one lacks.
const MOST_LOOKS: usize = 3;

impl Engine {
    fn parts(
        &self,
        buffer: Buffer<'_>,
        linked: &[PathBuf],
        options: Option<&Arc<BuildOptions>>,
    ) -> FileParts {
        let translation = self.project().look().translate(buffer, linked);
        let mut main = self
            .contents()
            .program(&translation.text, &translation.headers);
        main.options = options.cloned();
        main.linked = translation.linked;
        let mut read_around = BTreeSet::new();
        if translation.is_included || !main.linked.is_empty() {
            // Not of its own text's making: what includes it, what it is linked with, and what these read.
            for text in &translation.headers {
                read_around.insert(text.path.to_path_buf());
                read_around.extend(text.versions.iter().map(|(path, _)| path.clone()));
            }
        }
        let sites = self.contents().launches_in(&main);
        if let Some(text) = &translation.text.unassumed {
            let program = self.contents().program(text, &flatten(&text.includes));
            let others = self.contents().launches_in(&program);
            let differ = |kernel: &&str| {
                let of = |site: &&LaunchSite| site.kernel == *kernel;
                sites.iter().filter(of).ne(others.iter().filter(of))
            };
            let is_kernel = |item: &&Item| matches!(item.kind, ItemKind::Kernel(_));
            let names = main.items.iter().filter(is_kernel).map(kernel_name);
            let launched_otherwise = names.filter(differ).map(str::to_owned).collect();
            main.unassumed = Some(Arc::new(Unassumed {
                program,
                launched_otherwise,
            }));
        }
        let (embedded, built) = self.embedded(&main, buffer);
        let mut programs = vec![main];
        for embedded in &embedded {
            let mut program = self
                .contents()
                .program(embedded, &flatten(&embedded.includes));
            program.options.clone_from(&built);
            programs.push(program);
        }
        for (branch, other) in &translation.text.alternatives {
            let mut program = self.contents().program(other, &flatten(&other.includes));
            program.only = Some(branch.clone());
            program.options = options.cloned();
            programs.push(program);
        }
        FileParts {
            programs,
            sites,
            directives: directives(&translation.text.source),
            read_around,
            is_included: translation.is_included,
        }
    }

    /// The programs in a text's string literals, read with the options that the text builds them with.
    fn embedded(
        &self,
        main: &Program,
        buffer: Buffer<'_>,
    ) -> (Vec<Arc<Expanded>>, Option<Arc<BuildOptions>>) {
        let embedded = main.text.embedded.clone();
        if embedded.is_empty() || !may_build(&main.text.text) {
            return (embedded, None);
        }
        let key = hash(&[&main.unit_key, &main.text.hash]);
        let builds = self
            .contents()
            .builds
            .get_or(key, || builds(&main.text, &main.items, &main.unit));
        let kernels: Vec<String> = embedded
            .iter()
            .flat_map(|program| kernel_names(&program.text))
            .collect();
        let Buffer { path, settings, .. } = buffer;
        let Some(options) = BuildOptions::of(&builds, &kernels, path, &main.text.source, settings)
        else {
            return (embedded, None);
        };
        // A copy: what is defined for the programs means nothing to the text around them.
        let copy = Buffer {
            document: &buffer.document.clone(),
            settings: &options.applied(settings),
            neighbours: false,
            ..buffer
        };
        let translation = self.project().look().translate(copy, &[]);
        (translation.text.embedded.clone(), Some(Arc::new(options)))
    }

    /// A file taken apart, with the files that define what its kernels call and it does not: these may lack something in turn.
    pub(crate) fn linked_parts(
        &self,
        asked: &FileQuestion<'_>,
        around: &Settings,
        profile: &Arc<Profile>,
        neighbours: bool,
        options: Option<&Arc<BuildOptions>>,
    ) -> Option<(FileParts, Vec<Launched>)> {
        let FileQuestion {
            document,
            path,
            settings,
            overrides,
            cancel,
        } = *asked;
        let mut linked: Vec<PathBuf> = Vec::new();
        let mut names: BTreeSet<String> = BTreeSet::new();
        let opencl = document.language() == Language::OpenCl;
        let how = ReadAs::of(around, profile);
        let buffer = Buffer {
            document,
            path,
            settings,
            profile,
            neighbours,
        };
        for look in 0.. {
            let mut parts = self.parts(buffer, &linked, options);
            let by_callers = self.launches_by_callers(path, &parts, &how);
            parts.read_around.extend(by_callers.read.iter().cloned());
            let kernels: Vec<(&Program, &Item)> = kernels_of(&parts)
                .map(|(program, item, _)| (program, item))
                .collect();
            self.contents().kernels.make_room(kernels.len());
            let called = called(&kernels);
            let launches =
                self.launches_of(&called, &parts.sites, &by_callers.sites, path, &how, cancel)?;
            let of_program = overrides.program.as_deref();
            let launches = self.launches_of_run(&called, launches, path, &how, around, of_program);
            let kernels: Vec<_> = kernels.into_iter().zip(launches).collect();
            let launched = |((program, item), launches): &((&Program, &Item), KernelLaunches)| {
                if cancel.is_cancelled() {
                    return None;
                }
                let (lowered, computed) = if opencl {
                    (None, false)
                } else {
                    let unknown = LaunchSite::unknown(kernel_name(item));
                    // The instance that is looked at first.
                    let site = launches.sites.get(largest(&launches.sites));
                    let site = site.map_or(&unknown, |(site, _)| site);
                    let (lowered, computed) = self.lowered(program, item, site, overrides);
                    (Some(lowered), computed)
                };
                let launched = Launched {
                    sites: launches.sites.clone(),
                    near: launches.near.clone(),
                    lowered,
                };
                Some((launched, usize::from(computed)))
            };
            let launched = parallel::as_needed(&kernels, self.shares, launched)?;
            if opencl || parts.is_included || look == MOST_LOOKS || path.as_os_str().is_empty() {
                return Some((parts, launched));
            }
            let known = names.len();
            for one in &launched {
                if let Some(Ok(Some(lowered))) = &one.lowered {
                    names.extend(lowered.kernel.undefined.iter().cloned());
                }
            }
            if names.len() == known {
                return Some((parts, launched));
            }
            let wanted: Vec<String> = names.iter().cloned().collect();
            let found = self.project().look().defining(path, &wanted);
            if found == linked {
                return Some((parts, launched));
            }
            linked = found;
        }
        None
    }

    /// The file read with some definitions in addition, and the same kernel there.
    pub(crate) fn with_branch(
        &self,
        buffer: Buffer<'_>,
        assume: &[(String, String)],
        linked: &[PathBuf],
        kernel: &Item,
    ) -> Option<(Program, Item)> {
        let mut settings = buffer.settings.clone();
        settings.defines.extend(assume.iter().cloned());
        // A copy, so that the buffer's own expansion stays what the next keystroke starts from.
        let copy = Buffer {
            document: &buffer.document.clone(),
            settings: &settings,
            ..buffer
        };
        let translation = self.project().look().translate(copy, linked);
        let mut program = self
            .contents()
            .program(&translation.text, &translation.headers);
        program.linked = translation.linked;
        let item = program
            .items
            .iter()
            .find(|item| item.kind == kernel.kind && item.source.start == kernel.source.start)?
            .clone();
        Some((program, item))
    }
}

/// Kernels as far as they decide who can launch them.
fn called(kernels: &[(&Program, &Item)]) -> Vec<Called> {
    let mut all: Vec<Called> = (kernels.iter())
        .map(|(program, item)| {
            let name = kernel_name(item);
            let text = &program.text.text[item.range.clone()];
            Called {
                name: name.to_owned(),
                space: item.space.clone(),
                language: program.text.language,
                arguments: arguments_of(text, name),
                template: TemplateHead::of(text, name),
                overload: None,
            }
        })
        .collect();
    let mut alike: FxHashMap<(*const Program, &str, &str), Vec<usize>> = FxHashMap::default();
    for (at, (program, item)) in kernels.iter().enumerate() {
        let name = (
            std::ptr::from_ref(*program),
            kernel_name(item),
            &*item.space,
        );
        alike.entry(name).or_default().push(at);
    }
    for places in alike.into_values().filter(|places| places.len() > 1) {
        let program = kernels[places[0]].0;
        let items: Vec<&Item> = places.iter().map(|at| kernels[*at].1).collect();
        let signatures = Signature::of(&program.text, &items, &program.unit);
        let Some(signatures) = signatures.map(Arc::<[Signature]>::from) else {
            continue;
        };
        for (own, at) in places.into_iter().enumerate() {
            all[at].overload = Some((Arc::clone(&signatures), own));
        }
    }
    all
}
