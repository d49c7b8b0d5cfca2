//! Compiled code in place of source: resources, occupancy and instructions, and nothing that only a source says.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use warplens_codegen::assembly::{AssembledKernel, Name};
use warplens_machine::{DEFAULT_GPU, Profile, occupancy};
use warplens_models::ModelId;

use crate::results::by_name;
use crate::settings::{Settings, gpu_named};
use crate::{Engine, Overrides, wire};

/// Why no model answers.
const WHY: &str = "compiled code says neither how often its instructions run nor what they access; give the source";
/// The block where none is given.
const BLOCK: [u64; 3] = [256, 1, 1];
/// Full waves of the grid where none is given: what a source's default is.
const WAVES: u64 = 4;

impl Engine {
    /// The resources, occupancy and instructions of compiled kernels. `Err` is one line about an unknown GPU or kernel.
    #[allow(
        clippy::too_many_arguments,
        reason = "one question, asked in one place"
    )]
    pub fn estimate_assembled(
        &self,
        assembled: &[AssembledKernel],
        path: &Path,
        settings: &Settings,
        overrides: &Overrides,
        gpus: &[String],
        models: &[ModelId],
        kernels: &[String],
    ) -> Result<wire::EstimateDocument, String> {
        let targets = self.assembled_targets(assembled, settings, gpus)?;
        let file = path.display().to_string();
        let analytical = ModelId::analytical();
        let models = if models.is_empty() {
            &analytical[..]
        } else {
            models
        };
        let mut results = Vec::new();
        for profile in &targets {
            for kernel in assembled {
                let name = Name::of_mangled(&kernel.mangled);
                if !kernels.is_empty()
                    && !kernels.contains(&name.plain)
                    && !kernels.contains(&kernel.mangled)
                {
                    continue;
                }
                results.push(result(kernel, &name, &file, profile, overrides, models));
            }
        }
        if results.is_empty() && !kernels.is_empty() {
            return Err(format!(
                "no kernel named `{}` in {file}",
                kernels.join("`, `")
            ));
        }
        Ok(wire::EstimateDocument {
            schema: "warplens.estimate/1",
            results,
            diagnostics: Vec::new(),
            missing_includes: Vec::new(),
        })
    }

    /// The GPUs asked for, else the settings', else one of the architecture that the code is for.
    fn assembled_targets(
        &self,
        assembled: &[AssembledKernel],
        settings: &Settings,
        gpus: &[String],
    ) -> Result<Vec<Arc<Profile>>, String> {
        if gpus == ["all"] {
            return Ok(self.profiles().iter().collect());
        }
        let named: Vec<&String> = if gpus.is_empty() {
            settings.gpu.iter().collect()
        } else {
            gpus.iter().collect()
        };
        if !named.is_empty() {
            return named
                .into_iter()
                .map(|name| gpu_named(name, self.profiles()))
                .collect();
        }
        let of_code = assembled.iter().find_map(|kernel| {
            let wanted = kernel.architecture.trim_end_matches(char::is_alphabetic);
            self.profiles()
                .largest(|profile| profile.architecture == wanted)
        });
        Ok(of_code
            .or_else(|| self.profiles().get(DEFAULT_GPU))
            .into_iter()
            .collect())
    }
}

fn result(
    kernel: &AssembledKernel,
    name: &Name,
    file: &str,
    profile: &Profile,
    overrides: &Overrides,
    models: &[ModelId],
) -> wire::KernelResult {
    let given = &overrides.argument;
    let block = given.block.unwrap_or(BLOCK);
    let threads = block
        .iter()
        .fold(1_u64, |all, &size| all.saturating_mul(size));
    let registers = overrides.registers.or(kernel.registers).unwrap_or(0);
    let shared = kernel.shared_bytes.unwrap_or(0);
    let dynamic = given.dynamic_shared_bytes.unwrap_or(0);
    let residence = |blocks: u64| {
        let bytes = shared.saturating_add(dynamic);
        occupancy(profile, threads, registers, bytes, blocks)
    };
    let global = given.global.map(|global| {
        [0, 1, 2].map(|axis: usize| global[axis].div_ceil(block[axis].max(1)).max(1))
    });
    let assumed = || {
        let resident = u64::from(residence(u64::MAX).active_blocks_per_sm.max(1));
        [WAVES * u64::from(profile.sms) * resident, 1, 1]
    };
    let grid_given = given.grid.or(global);
    let grid = grid_given.unwrap_or_else(assumed);
    let blocks = grid
        .iter()
        .fold(1_u64, |all, &size| all.saturating_mul(size));
    let occupancy = residence(blocks);
    let source = |given: bool| if given { "argument" } else { "assumed" };
    let assumptions = [
        (given.block.is_none(), "block", block),
        (grid_given.is_none(), "grid", grid),
    ];
    let unsaid = kernel.shared_bytes.is_none().then(|| wire::Assumption {
        symbol: "static shared memory".to_owned(),
        value: "0".to_owned(),
        source: "not in the disassembly".to_owned(),
    });
    wire::KernelResult {
        kernel: name.plain.clone(),
        template_args: name
            .template_arguments
            .iter()
            .enumerate()
            .map(|(at, value)| (at.to_string(), value.clone()))
            .collect(),
        file: file.to_owned(),
        line: 1,
        language: "assembly",
        gpu: profile.id.clone(),
        launch: wire::Launch {
            grid: Some(grid),
            grid_formula: None,
            block,
            dynamic_shared_bytes: dynamic,
            block_source: source(given.block.is_some()),
            grid_source: source(grid_given.is_some()),
            count: None,
            run: None,
            begins_early: None,
        },
        variant: wire::Variant {
            number: 1,
            of: 1,
            text: "<<<?, ?>>>".to_owned(),
            at: 0,
        },
        assumptions: assumptions
            .into_iter()
            .filter(|(assumed, ..)| *assumed)
            .map(|(_, symbol, [x, y, z])| wire::Assumption {
                symbol: symbol.to_owned(),
                value: format!("{x},{y},{z}"),
                source: "default".to_owned(),
            })
            .chain(unsaid)
            .collect(),
        constraints: Vec::new(),
        resources: wire::Resources {
            registers_per_thread: registers,
            sgprs_per_wave: None,
            registers_source: match (overrides.registers, kernel.allotted) {
                (Some(_), _) => "user",
                (None, true) => "compiler",
                (None, false) => "estimated",
            },
            static_shared_bytes: shared,
            local_bytes_per_thread: kernel.stack_bytes.unwrap_or(0),
            spill_bytes: None,
            compiler: None,
        },
        occupancy: wire::Occupancy {
            active_blocks_per_sm: occupancy.active_blocks_per_sm,
            active_warps_per_sm: occupancy.active_warps_per_sm,
            fraction: occupancy.fraction,
            limiter: occupancy.limiter.name(),
            next_step: occupancy.next_step,
        },
        accesses: Vec::new(),
        branches: Vec::new(),
        counts: Vec::new(),
        // A cubin's are not read without a disassembler: absent, not 0.
        instructions: if kernel.instructions.is_empty() {
            BTreeMap::new()
        } else {
            by_name(&kernel.instructions)
        },
        warp_instructions: None,
        estimates: models
            .iter()
            .map(|model| (model.name().to_owned(), no_estimate()))
            .collect(),
        lines: Vec::new(),
        what_if: Vec::new(),
        what_would_help: None,
        is_opaque: false,
        not_understood: Vec::new(),
    }
}

fn no_estimate() -> wire::Estimate {
    wire::Estimate {
        cycles: None,
        time_ms: None,
        launch_overhead_ms: 0.0,
        time_formula: None,
        time_formula_from: BTreeMap::new(),
        time_formula_least: None,
        time_range: None,
        unknowns: Vec::new(),
        cycles_function: None,
        bottleneck: None,
        breakdown: wire::Breakdown {
            compute: 0.0,
            tensor: 0.0,
            async_copy: 0.0,
            memory_bandwidth: 0.0,
            memory_latency: 0.0,
            shared: 0.0,
            divergence: 0.0,
            synchronisation: 0.0,
        },
        interval: None,
        detail: BTreeMap::new(),
        why: Some(WHY.to_owned()),
    }
}
