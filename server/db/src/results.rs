//! Analyses as the JSON of the contract.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use warplens_codegen::Class;
use warplens_facts::facts::{
    Access, BranchKind, Certainty, OpClass, Site, Space, Span, Uniformity,
};
use warplens_models::{Breakdown, Estimate, ExecutedAccess, ModelId};
use warplens_syntax::Document;

use crate::clock;
use crate::settings::{Settings, gpu_named};
use crate::{
    Cancel, Engine, FileAnalysis, LOST_KERNEL, Overrides, PlacedFinding, PlacedFix, PlacedKernel,
    PlacedReport, Variants, WarpInstructions, wire,
};

/// Letters of source that a loss quotes.
const LONGEST_TEXT: usize = 80;

impl Engine {
    /// The full prediction: every kernel on every GPU asked. No GPU: the settings' or the default. No model: all that
    /// answer within a keystroke, and what others have said before of the kernel. No kernel names: all. `Err` is one line about an unknown GPU or kernel.
    #[allow(
        clippy::too_many_arguments,
        reason = "one question, asked in one place"
    )]
    pub fn estimate(
        &self,
        document: &Document,
        path: &Path,
        settings: &Settings,
        overrides: &Overrides,
        gpus: &[String],
        models: &[ModelId],
        kernels: &[String],
    ) -> Result<wire::EstimateDocument, String> {
        let mut targets: Vec<Option<String>> = gpus.iter().cloned().map(Some).collect();
        if targets.is_empty() {
            targets.push(settings.gpu.clone());
        }
        if gpus == ["all"] {
            targets = self
                .profiles()
                .ids()
                .map(|id| Some(id.to_owned()))
                .collect();
        }
        let mut results = Vec::new();
        let mut diagnostics = Vec::new();
        let mut missing_includes = Vec::new();
        let file = path.display().to_string();
        for gpu in targets {
            if let Some(name) = &gpu {
                gpu_named(name, self.profiles())?;
            }
            let settings = Settings {
                gpu,
                ..settings.clone()
            };
            let set_on = match &overrides.variants {
                Variants::Chosen(chosen) => chosen.clone(),
                Variants::All => BTreeMap::new(),
            };
            let overrides = Overrides {
                variants: Variants::All,
                set_on,
                ..overrides.clone()
            };
            let Some(analysis) =
                self.analyze(document, path, &settings, &overrides, &Cancel::default())
            else {
                continue;
            };
            let mut selected: Vec<&PlacedKernel> = analysis
                .kernels
                .iter()
                .filter(|placed| {
                    kernels.is_empty() || kernels.contains(&placed.analysis.facts.name)
                })
                .collect();
            if !selected.is_empty() {
                refuse_unfit_contents(&selected, &overrides)?;
            }
            // Of each kernel the costliest launch first.
            for launches in selected.chunk_by_mut(|a, b| a.start == b.start) {
                launches.sort_by_key(|placed| placed.number());
            }
            for placed in selected {
                results.push(result(placed, document, &file, models));
            }
            missing_includes = analysis.missing_headers();
            if diagnostics.is_empty() {
                let wanted = |finding: &&PlacedFinding| {
                    kernels.is_empty()
                        || lost_one(finding).is_some_and(|name| kernels.contains(name))
                        || analysis.kernels.iter().any(|placed| {
                            kernels.contains(&placed.analysis.facts.name)
                                && (placed.start..placed.end).contains(&finding.range.start)
                        })
                };
                diagnostics = analysis
                    .findings
                    .iter()
                    .filter(wanted)
                    .map(|finding| diagnostic(finding, &analysis, document, &file))
                    .collect();
            }
        }
        let lost = diagnostics
            .iter()
            .any(|finding| finding.rule == LOST_KERNEL);
        if results.is_empty() && !kernels.is_empty() && !lost {
            return Err(format!(
                "no kernel named `{}` in {file}",
                kernels.join("`, `")
            ));
        }
        Ok(wire::EstimateDocument {
            schema: "warplens.estimate/1",
            results,
            diagnostics,
            missing_includes,
        })
    }

    /// The findings of one file, and how well it was understood.
    pub fn check(
        &self,
        document: &Document,
        path: &Path,
        settings: &Settings,
        overrides: &Overrides,
    ) -> (Vec<wire::Diagnostic>, wire::Stats, Option<FileAnalysis>) {
        let file = path.display().to_string();
        let mut stats = wire::Stats {
            files: 1,
            ..wire::Stats::default()
        };
        let Some(analysis) = self.analyze(document, path, settings, overrides, &Cancel::default())
        else {
            return (Vec::new(), stats, None);
        };
        count(&analysis, document, &file, &mut stats);
        let diagnostics = analysis
            .findings
            .iter()
            .map(|finding| diagnostic(finding, &analysis, document, &file))
            .collect();
        (diagnostics, stats, Some(analysis))
    }
}

/// The kernel whose analysis failed, where the finding says that.
fn lost_one(finding: &PlacedFinding) -> Option<&String> {
    let lost = finding.rule == LOST_KERNEL;
    finding.kernel.as_ref().filter(|_| lost)
}

/// Contents must be of an array parameter of some kernel that is looked at, in whole elements.
fn refuse_unfit_contents(kernels: &[&PlacedKernel], overrides: &Overrides) -> Result<(), String> {
    for (name, bytes) in &overrides.contents {
        let mut found = false;
        for placed in kernels {
            let analysis = &placed.analysis;
            let arrays = analysis.arrays.iter();
            for (_, size) in arrays.filter(|(array, _)| array == name) {
                found = true;
                if !(bytes.len() as u64).is_multiple_of(*size) {
                    return Err(format!(
                        "the contents of `{name}` are {} bytes: no whole number of its elements of {size} bytes in `{}`",
                        bytes.len(),
                        analysis.facts.name,
                    ));
                }
            }
        }
        if !found {
            let mut names: Vec<&str> = kernels
                .iter()
                .flat_map(|placed| &placed.analysis.arrays)
                .map(|(array, _)| array.as_str())
                .collect();
            names.sort_unstable();
            names.dedup();
            let has = if names.is_empty() {
                "there is none".to_owned()
            } else {
                format!("there are `{}`", names.join("`, `"))
            };
            return Err(format!(
                "no array parameter `{name}` to give contents: {has}"
            ));
        }
    }
    Ok(())
}

impl PlacedFinding {
    /// True where another finding says the same of the same kernel: one change mends both.
    pub fn is_cause_of(&self, other: &PlacedFinding) -> bool {
        (self.rule, &self.kernel, &self.message) == (other.rule, &other.kernel, &other.message)
    }
}

impl FileAnalysis {
    /// What was found of a kernel, in it and at its launch, each cause once: of its places the loudest.
    pub fn causes(&self, kernel: &PlacedKernel) -> Vec<&PlacedFinding> {
        let name = Some(kernel.analysis.facts.name.as_str());
        let inside = |kernel: &PlacedKernel, finding: &PlacedFinding| {
            (kernel.start..=kernel.end).contains(&finding.range.start)
        };
        let at_launch = |finding: &PlacedFinding| {
            finding.kernel.as_deref() == name
                && !self.kernels.iter().any(|other| inside(other, finding))
        };
        let mut causes: Vec<&PlacedFinding> = Vec::new();
        for finding in &self.findings {
            if !inside(kernel, finding) && !at_launch(finding) {
                continue;
            }
            match causes.iter_mut().find(|known| known.is_cause_of(finding)) {
                Some(known) if finding.severity > known.severity => *known = finding,
                Some(_) => {}
                None => causes.push(finding),
            }
        }
        causes
    }

    /// Headers that were not found, as spelled, none twice.
    #[must_use]
    pub fn missing_headers(&self) -> Vec<String> {
        let mut missing = self.missing_includes.clone();
        missing.sort_unstable();
        missing.dedup();
        missing
    }
}

fn count(analysis: &FileAnalysis, document: &Document, file: &str, stats: &mut wire::Stats) {
    stats.kernels = analysis.found as u64;
    stats.failed = stats.kernels - (analysis.kernels.len() as u64).min(stats.kernels);
    for placed in &analysis.kernels {
        let facts = &placed.analysis.facts;
        if facts.not_understood.is_empty() {
            stats.clean += 1;
        } else {
            stats.partial += 1;
        }
        for lost in losses(placed, document, file) {
            *stats.reasons.entry(lost.reason.clone()).or_insert(0) += 1;
            stats.losses.push(lost);
        }
        if placed.analysis.launch_known {
            stats.launch_known += 1;
            let moved = |access: &&Access| matches!(access.space, Space::Global | Space::Shared);
            for access in facts.accesses.iter().filter(moved) {
                stats.accesses += 1;
                stats.accesses_exact += u64::from(access.exact());
            }
            for branch in &facts.branches {
                stats.branches += 1;
                stats.branches_exact += u64::from(branch.certainty == Certainty::Exact);
            }
        }
    }
    for header in analysis.missing_headers() {
        stats.missing_includes.insert(header, 1);
    }
}

/// What was not understood of a kernel, with what is there, in source order.
fn losses(placed: &PlacedKernel, document: &Document, file: &str) -> Vec<wire::Loss> {
    let facts = &placed.analysis.facts;
    let at = |span| position(document, placed.place(span).start);
    let mut losses: Vec<(Site, wire::Loss)> = facts
        .not_understood
        .iter()
        .map(|lost| {
            let (file, line, column, _) = place_of(lost.site, placed, file, &at);
            let text = match placed.callee_text(lost.site) {
                Some(text) => text.to_owned(),
                None => source(document, placed.place(lost.site.span)),
            };
            let loss = wire::Loss {
                kernel: facts.name.clone(),
                file,
                line,
                column,
                reason: lost.reason.to_string(),
                text,
            };
            (lost.site, loss)
        })
        .collect();
    losses.sort_by_key(|(site, _)| (site.span.start, site.callee));
    losses.into_iter().map(|(_, loss)| loss).collect()
}

/// The beginning of what is at some bytes, on one line.
fn source(document: &Document, bytes: Range<usize>) -> String {
    let rope = document.rope();
    let length = rope.len_bytes();
    let bytes = bytes.start.min(length)..bytes.end.min(length);
    let text: String = match rope.get_byte_slice(bytes) {
        Some(text) => text.chars().take(LONGEST_TEXT).collect(),
        None => String::new(),
    };
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// 1-based line and byte column.
pub(crate) fn position(document: &Document, byte: usize) -> (u32, u32) {
    let rope = document.rope();
    let byte = byte.min(rope.len_bytes());
    let line = rope.byte_to_line(byte);
    (
        (line + 1) as u32,
        (byte - rope.line_to_byte(line) + 1) as u32,
    )
}

impl PlacedFix {
    /// As JSON, its places in the document that it edits.
    #[must_use]
    pub fn to_wire(&self, document: &Document) -> wire::Fix {
        let replacement = |(range, text): &(Range<usize>, String)| {
            let (line, column) = position(document, range.start);
            let (end_line, end_column) = position(document, range.end);
            wire::Replacement {
                line,
                column,
                end_line,
                end_column,
                new_text: text.clone(),
            }
        };
        wire::Fix {
            title: self.title.clone(),
            gain: self.gain,
            edits: self.edits.iter().map(replacement).collect(),
        }
    }
}

/// A finding as JSON.
fn diagnostic(
    finding: &PlacedFinding,
    analysis: &FileAnalysis,
    document: &Document,
    file: &str,
) -> wire::Diagnostic {
    let (line, column) = position(document, finding.range.start);
    let (end_line, end_column) = position(document, finding.range.end);
    wire::Diagnostic {
        rule: finding.rule.to_owned(),
        severity: finding.severity.name(),
        file: file.to_owned(),
        line,
        column,
        end_line,
        end_column,
        message: finding.message.clone(),
        details: finding.details.clone(),
        gain: finding.gain,
        same_as: None,
        kernel: finding.kernel.clone(),
        time_ms: finding.kernel.as_deref().and_then(|name| {
            let kernels = analysis.kernels.iter();
            let launched = kernels.filter(|placed| placed.analysis.facts.name == name);
            let mut times = launched.map(|placed| placed.analysis.estimate().time_ms);
            let first = times.next()??;
            times.all(|time| time == Some(first)).then_some(first)
        }),
        help: warplens_advice::href(finding.rule),
        fixes: None,
    }
}

fn result(
    placed: &PlacedKernel,
    document: &Document,
    file: &str,
    models: &[ModelId],
) -> wire::KernelResult {
    let analysis = &placed.analysis;
    let facts = &analysis.facts;
    let at = |span| position(document, placed.place(span).start);
    let local = facts
        .accesses
        .iter()
        .any(|access| access.space == Space::Local && analysis.input.is_memory(access));
    let launch = facts.launch;
    let grid_formula = analysis.grid_formula();
    let simulated = |model: &ModelId| !model.simulates() || analysis.simulated(*model).is_some();
    let known: Vec<ModelId> = ModelId::ALL.into_iter().filter(simulated).collect();
    let asked = if models.is_empty() { &known } else { models };
    analysis.find(asked);
    // What is summed over the launch is not known where its size is not.
    let executed = analysis.input.instructions.as_ref();
    let executed = executed.filter(|_| !analysis.depends_on_sizes());
    let said = asked.iter().filter_map(|&model| {
        let estimate = analysis.estimate_by(model, &Cancel::default())?;
        let function = analysis.cycles_function(model, &estimate);
        Some((model.name().to_owned(), self::estimate(&estimate, function)))
    });
    let estimates: BTreeMap<String, wire::Estimate> = said.collect();
    let estimate = analysis.estimate();
    let open = estimate.open.is_some();
    let cycles = estimate.cycles.or((!open).then_some(0.0));
    wire::KernelResult {
        kernel: facts.name.clone(),
        template_args: analysis.template_args.iter().cloned().collect(),
        file: file.to_owned(),
        line: at(analysis.name_site.span).0,
        language: placed.language.name(),
        gpu: analysis.profile.id.clone(),
        launch: wire::Launch {
            grid: grid_formula.is_none().then_some(launch.grid),
            grid_formula,
            block: launch.block,
            dynamic_shared_bytes: launch.dynamic_shared_bytes,
            block_source: launch.block_source.name(),
            grid_source: launch.grid_source.name(),
            count: placed.run.as_ref().and_then(|run| run.count),
            run: placed.run.as_ref().map(|run| run.said.to_string()),
            begins_early: placed.early_start().map(|early| wire::EarlyStart {
                waits_at: early.waits_at,
            }),
        },
        variant: wire::Variant {
            number: placed.number() as u64,
            of: placed.order.len() as u64,
            text: placed.launch_text().to_owned(),
            at: placed.variant,
        },
        assumptions: assumptions(analysis).collect(),
        constraints: facts.constraints.clone(),
        resources: wire::Resources {
            registers_per_thread: analysis.input.resources.registers_per_thread,
            sgprs_per_wave: analysis.input.compiled.scalar_registers,
            registers_source: analysis.registers_source,
            static_shared_bytes: analysis.input.resources.static_shared_bytes,
            local_bytes_per_thread: analysis.input.resources.local_bytes_per_thread,
            spill_bytes: (analysis.registers_source != "user")
                .then_some(analysis.input.compiled.spill_bytes),
            compiler: placed.compiler.as_ref().map(compiler),
        },
        occupancy: wire::Occupancy {
            active_blocks_per_sm: analysis.input.occupancy.active_blocks_per_sm,
            active_warps_per_sm: analysis.input.occupancy.active_warps_per_sm,
            fraction: analysis.input.occupancy.fraction,
            limiter: analysis.input.occupancy.limiter.name(),
            next_step: analysis.input.occupancy.next_step.clone(),
        },
        accesses: facts
            .accesses
            .iter()
            .filter(|access| analysis.input.is_memory(access))
            .map(|access| self::access(access, placed, file, &at))
            .chain(
                analysis
                    .input
                    .compilers_own()
                    .map(|access| compilers_own(access, placed, file, &at)),
            )
            .collect(),
        branches: facts
            .branches
            .iter()
            .map(|branch| {
                let (file, line, column, via) = place_of(branch.site, placed, file, &at);
                wire::Branch {
                    file,
                    line,
                    column,
                    via,
                    kind: match branch.kind {
                        BranchKind::If => "if",
                        BranchKind::Loop => "loop",
                        BranchKind::Switch => "switch",
                        BranchKind::Select => "select",
                    },
                    uniformity: match branch.uniformity {
                        Uniformity::Uniform => "uniform",
                        Uniformity::WarpUniform => "warp-uniform",
                        Uniformity::Divergent => "divergent",
                        Uniformity::DataDependent => "data-dependent",
                    },
                    divergent_warp_fraction: branch.divergent_warp_fraction,
                    taken_warp_fraction: branch.taken_warp_fraction,
                    exact: branch.certainty == Certainty::Exact,
                    certainty: branch.certainty.name(),
                    why: branch.why.as_ref().map(ToString::to_string),
                    constraints: branch.constraints.clone(),
                }
            })
            .collect(),
        counts: facts
            .counts
            .iter()
            .filter(|count| {
                local || !matches!(count.class, OpClass::LocalLoad | OpClass::LocalStore)
            })
            .map(|count| {
                let (expr, value) = match analysis.open_count(count.class) {
                    Some(formula) => (formula, None),
                    None => {
                        let (expr, value) = analysis.counted(count);
                        (expr.map(str::to_owned), value)
                    }
                };
                wire::Count {
                    class: count.class.name(),
                    expr,
                    value,
                    exact: count.exact,
                }
            })
            .collect(),
        instructions: by_name(&analysis.input.compiled.instructions),
        warp_instructions: executed.map(warp_instructions),
        estimates,
        lines: analysis
            .lines()
            .iter()
            .map(|&(line, share)| wire::Line {
                file: file.to_owned(),
                line: placed.place_line(line) + 1,
                cycles: cycles.map(|cycles| cycles * share),
                share,
            })
            .collect(),
        what_if: analysis
            .what_if()
            .iter()
            .map(|(factor, cycles, speedup)| wire::WhatIf {
                factor: factor.name(),
                cycles: (!open).then_some(*cycles),
                speedup: *speedup,
            })
            .collect(),
        what_would_help: None,
        is_opaque: analysis.is_opaque(),
        not_understood: losses(placed, document, file),
    }
}

/// File, 1-based line and column, and the calls that lead there.
fn place_of(
    site: Site,
    placed: &PlacedKernel,
    file: &str,
    at: &dyn Fn(Span) -> (u32, u32),
) -> (String, u32, u32, Vec<wire::Via>) {
    let name = |path: &Option<std::sync::Arc<Path>>| match path {
        Some(path) => path.display().to_string(),
        None => file.to_owned(),
    };
    match placed.callee(site) {
        Some(callee) => {
            let via = callee
                .via
                .iter()
                .map(|(path, line)| wire::Via {
                    file: name(path),
                    line: line + 1,
                })
                .collect();
            (name(&callee.path), callee.line + 1, callee.column + 1, via)
        }
        None => {
            let (line, column) = at(site.span);
            (file.to_owned(), line, column, Vec::new())
        }
    }
}

fn access(
    access: &Access,
    placed: &PlacedKernel,
    file: &str,
    at: &dyn Fn(warplens_facts::facts::Span) -> (u32, u32),
) -> wire::Access {
    let (file, line, column, via) = place_of(access.site, placed, file, at);
    wire::Access {
        file,
        line,
        column,
        via,
        text: access.text.clone(),
        space: access.memory(),
        op: access.op.name(),
        instruction: access.instruction.as_deref().map(str::to_owned),
        bytes_per_lane: access.bytes_per_lane,
        bytes_per_request: access.bytes_per_request(),
        index: access.index.clone(),
        pattern: access.pattern.name(),
        transactions_per_request: access.transactions_per_request,
        ideal_transactions_per_request: access.ideal_transactions_per_request,
        transaction_bytes: (access.transaction_bytes > 0).then_some(access.transaction_bytes),
        passes_per_request: access.passes_per_request,
        ideal_passes_per_request: access.ideal_passes_per_request,
        bank_conflict_degree: access.bank_conflict_degree,
        requests: access
            .requests
            .filter(|_| !placed.analysis.depends_on_sizes()),
        active_lanes_per_request: access.active_lanes_per_request,
        exact: access.exact(),
        certainty: access.certainty.name(),
        why: access.why.as_ref().map(ToString::to_string),
        constraints: access.constraints.clone(),
        other_case: access.other_case.as_ref().map(|other| wire::OtherCase {
            when: other.when.clone(),
            cost: other.cost,
            ideal: other.ideal,
        }),
    }
}

/// An access that only the compiled kernel has.
fn compilers_own(
    access: &ExecutedAccess,
    placed: &PlacedKernel,
    file: &str,
    at: &dyn Fn(Span) -> (u32, u32),
) -> wire::Access {
    let (file, line, column, via) = place_of(access.site, placed, file, at);
    wire::Access {
        file,
        line,
        column,
        via,
        text: access.object.to_string(),
        space: access.space.name(),
        op: access.op.name(),
        instruction: None,
        bytes_per_lane: access.bytes_per_lane,
        bytes_per_request: access
            .active_lanes_per_request
            .map(|lanes| lanes * f64::from(access.bytes_per_lane)),
        index: String::new(),
        pattern: access.pattern.name(),
        transactions_per_request: access.transactions_per_request,
        ideal_transactions_per_request: access.ideal_transactions_per_request,
        transaction_bytes: (access.transaction_bytes > 0).then_some(access.transaction_bytes),
        passes_per_request: access.passes_per_request,
        ideal_passes_per_request: access.ideal_passes_per_request,
        bank_conflict_degree: None,
        requests: access
            .requests
            .filter(|_| !placed.analysis.depends_on_sizes()),
        active_lanes_per_request: access.active_lanes_per_request,
        exact: false,
        certainty: Certainty::Unknown.name(),
        why: access.why().map(str::to_owned),
        constraints: Vec::new(),
        other_case: None,
    }
}

fn estimate(estimate: &Estimate, cycles_function: Option<String>) -> wire::Estimate {
    let Breakdown {
        compute,
        tensor,
        memory_bandwidth,
        memory_latency,
        async_copy,
        shared,
        divergence,
        synchronisation,
    } = estimate.breakdown;
    let open = estimate.open.as_ref();
    wire::Estimate {
        cycles: estimate.cycles,
        time_ms: estimate.time_ms,
        launch_overhead_ms: estimate.launch_overhead_ms,
        time_formula: open
            .filter(|open| open.range.is_none())
            .and_then(|open| open.formula.clone()),
        time_range: open.and_then(|open| open.range),
        time_formula_from: open
            .map(|open| open.from.iter().cloned().collect())
            .unwrap_or_default(),
        time_formula_least: open.and_then(|open| open.least.clone()),
        unknowns: open.map(|open| open.unknowns.clone()).unwrap_or_default(),
        cycles_function,
        bottleneck: estimate.bottleneck.map(warplens_models::Bottleneck::name),
        breakdown: wire::Breakdown {
            compute,
            tensor,
            memory_bandwidth,
            memory_latency,
            async_copy,
            shared,
            divergence,
            synchronisation,
        },
        interval: estimate.interval,
        detail: estimate.detail.clone(),
        why: estimate.why.clone(),
    }
}

/// Static instructions by class, and all of them.
pub(crate) fn by_name(instructions: &BTreeMap<Class, u64>) -> BTreeMap<String, f64> {
    let mut found: BTreeMap<String, f64> = instructions
        .iter()
        .map(|(class, count)| (class.name().to_owned(), *count as f64))
        .collect();
    let total: u64 = instructions.values().sum();
    found.insert("total".to_owned(), total as f64);
    found
}

fn warp_instructions(executed: &WarpInstructions) -> wire::WarpInstructions {
    let mut classes: BTreeMap<String, f64> = executed
        .classes
        .iter()
        .map(|(class, count)| (class.name().to_owned(), *count))
        .collect();
    classes.insert("total".to_owned(), executed.total());
    wire::WarpInstructions {
        classes,
        certainty: if executed.assumed {
            "assumed"
        } else {
            "estimated"
        },
    }
}

fn compiler(said: &PlacedReport) -> wire::Compiler {
    let report = &said.report;
    wire::Compiler {
        tool: report.tool.clone(),
        current: said.current,
        registers_per_thread: report.kernel.registers,
        static_shared_bytes: report.kernel.static_shared_bytes,
        stack_bytes: report.kernel.stack_bytes,
        spill_store_bytes: report.kernel.spill_store_bytes,
        spill_load_bytes: report.kernel.spill_load_bytes,
        instructions: report
            .kernel
            .instructions
            .iter()
            .map(|(class, count)| (class.name().to_owned(), *count))
            .collect(),
    }
}

/// The assumptions that the figures depend on.
pub(crate) fn assumptions(
    analysis: &crate::KernelAnalysis,
) -> impl Iterator<Item = wire::Assumption> {
    let of_facts = analysis.facts.assumptions.iter();
    let of_facts = of_facts.map(|assumption| wire::Assumption {
        symbol: assumption.symbol.to_string(),
        value: assumption.value.clone(),
        source: assumption.source.clone(),
    });
    of_facts.chain(clock::assumed(&analysis.profile))
}
