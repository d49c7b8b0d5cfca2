//! What to look at first: what saves most of the program's time, by the findings and the predicted gains of its kernels.

use warplens_advice::{Finding, Place};
use warplens_host::MemoryKind;
use warplens_models::Factor;

use super::Making;
use super::formula::milliseconds;
use super::kernels::Launched;
use crate::wire::{LookFirst, ProgramKernel, Totals, Transfer};

/// Places that are named.
const MOST: usize = 5;
/// Less than this part of the GPU time is not worth a look.
const LEAST: f64 = 0.01;
/// Gains below this are beyond what a model can tell.
const GAINS: f64 = 1.02;
/// The same of a cause that no finding has: no edit is known that removes all of it.
const CAUSES: f64 = 1.1;

impl Making<'_> {
    /// The places that would save most, first.
    pub(super) fn look_first(
        &self,
        launches: &[Launched<'_>],
        totals: &Totals,
        kernels: &[ProgramKernel],
    ) -> Vec<LookFirst> {
        let whole: f64 = launches
            .iter()
            .map(|launch| launch.time().once_at_least())
            .sum();
        let known = launches.iter().all(|launch| launch.time().once().is_some());
        let mut found: Vec<(f64, LookFirst)> = Vec::new();
        for kernel in kernels {
            let of_kernel = launches.iter().filter(|launch| {
                launch.site.kernel == kernel.kernel
                    && launch
                        .key
                        .1
                        .iter()
                        .cloned()
                        .collect::<std::collections::BTreeMap<_, _>>()
                        == kernel.template_args
            });
            if let Some(one) = self.of_kernel(&of_kernel.collect::<Vec<_>>(), whole, known, kernel)
            {
                found.push(one);
            }
        }
        found.extend(self.of_launching(totals, launches));
        found.extend(self.of_copies(totals));
        found.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        found.truncate(MOST);
        found.into_iter().map(|(_, one)| one).collect()
    }

    /// The change that gains most of one kernel.
    fn of_kernel(
        &self,
        launches: &[&Launched<'_>],
        whole: f64,
        known: bool,
        kernel: &ProgramKernel,
    ) -> Option<(f64, LookFirst)> {
        let time = |launch: &Launched<'_>| launch.time().once_at_least();
        let longest = launches.iter().max_by(|a, b| time(a).total_cmp(&time(b)))?;
        let (file, placed) = longest.found?;
        let mut best: Option<(f64, String, Option<&Finding>)> = None;
        for finding in placed.analysis.findings.iter() {
            if finding.gain >= GAINS && best.as_ref().is_none_or(|(gain, ..)| finding.gain > *gain)
            {
                best = Some((finding.gain, finding.headline().to_owned(), Some(finding)));
            }
        }
        if best.is_none() {
            for (factor, _, speedup) in placed.analysis.what_if() {
                if *speedup >= CAUSES && best.as_ref().is_none_or(|(gain, ..)| speedup > gain) {
                    let message = format!(
                        "`{}` is {speedup:.2}x as fast {}",
                        kernel.kernel,
                        without(*factor)
                    );
                    best = Some((*speedup, message, None));
                }
            }
        }
        let (gain, message, finding) = best?;
        let part = 1.0 - 1.0 / gain;
        let once: f64 = launches.iter().map(|launch| time(launch)).sum();
        let share = if whole > 0.0 {
            once / whole * part
        } else {
            0.0
        };
        if known && share < LEAST {
            return None;
        }
        let line = match finding.map(|finding| finding.place) {
            Some(Place::Site(site)) => {
                let start = placed.place(site.span).start;
                file.document
                    .rope()
                    .byte_to_line(start.min(file.document.rope().len_bytes()))
                    as u32
                    + 1
            }
            _ => kernel.line,
        };
        let first = LookFirst {
            message,
            kernel: Some(kernel.kernel.clone()),
            rule: finding.map(|finding| finding.rule.to_owned()),
            file: kernel.file.clone(),
            line,
            gain,
            saves_ms: kernel.total_ms.map(|total| total * part),
            saves_share: known.then_some(share),
        };
        Some((share, first))
    }

    /// The copies between host and device, where they take longer than the kernels: at the copy that takes longest.
    fn of_copies(&self, totals: &Totals) -> Option<(f64, LookFirst)> {
        let (gpu, copies) = (totals.gpu_ms?, totals.transfers_at_least_ms?);
        let all = self.transfers().into_iter();
        let time = |copy: &Transfer| copy.total_at_least_ms.unwrap_or(0.0);
        let longest = all.rev().max_by(|a, b| time(a).total_cmp(&time(b)))?;
        if copies <= gpu {
            return None;
        }
        let pageable = longest.host_memory == Some(MemoryKind::Pageable.name());
        let advice = if pageable {
            "keep the data on the device, or copy from pinned memory"
        } else {
            "keep the data on the device"
        };
        let message = format!(
            "copies between host and device take at least {}, longer than the {} that the kernels run: {advice}",
            milliseconds(copies),
            milliseconds(gpu)
        );
        let first = LookFirst {
            message,
            kernel: None,
            rule: None,
            file: longest.file.clone(),
            line: longest.line,
            gain: 1.0,
            saves_ms: None,
            saves_share: None,
        };
        Some((1.0, first))
    }

    /// Launching, where it takes longer than the kernels.
    fn of_launching(&self, totals: &Totals, launches: &[Launched<'_>]) -> Option<(f64, LookFirst)> {
        let (gpu, overhead) = (totals.gpu_ms?, totals.launch_overhead_ms?);
        let most = launches.iter().max_by_key(|launch| launch.often.known)?;
        if overhead <= gpu || most.often.known < 2 {
            return None;
        }
        let message = format!(
            "{} launches take the host {overhead:.2} ms to start, longer than the {gpu:.2} ms that the kernels run",
            totals.launches.at_least
        );
        let first = LookFirst {
            message,
            kernel: None,
            rule: None,
            file: (self.name)(&most.event.place.file),
            line: most.event.place.line + 1,
            gain: 1.0,
            saves_ms: Some(overhead - gpu),
            saves_share: None,
        };
        Some((1.0, first))
    }
}

/// What a kernel would be without a factor, in words.
fn without(factor: Factor) -> &'static str {
    match factor {
        Factor::BankConflicts => "without bank conflicts",
        Factor::Uncoalesced => "where all accesses coalesce",
        Factor::Divergence => "without divergence",
        Factor::Latency => "where no warp waits for memory",
        Factor::Synchronisation => "without waiting at barriers",
        Factor::Occupancy => "at full occupancy",
    }
}
