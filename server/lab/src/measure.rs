//! `cargo lab measure`: our kernels on this machine's GPU, their times and counters as one JSON file.

pub mod ncu;
pub mod sass;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use serde_json::{Map, Value, json};

use crate::machine_code::needed;
use ncu::number;
use xtask::{process, repository};

/// What the file begins with.
pub const SCHEMA: &str = "warplens.measured/1";

/// Where folders of devices are.
pub const FOLDER: &str = "tests/measured";

/// The file of a device in its folder.
pub const FILE: &str = "kernels.json";

/// What ncu says where it may not read counters.
pub const REFUSED: &str = "ERR_NVGPUCTRPERM";

/// Time every kernel of tests/kernels on this machine's GPU, and read its counters where ncu may
///
/// Writes tests/measured/DEVICE/kernels.json after each step, so that what was measured stays when the
/// machine goes away; what the file has of this device beyond what is measured now stays in it. Results are checked against the host's. Without a GPU use --dry-run: everything is
/// compiled with the nvcc of the package index and the plan is printed.
#[derive(Debug, Args)]
pub struct Measure {
    /// Compile everything, print what would be measured
    #[arg(long)]
    dry_run: bool,
    /// Folder that gets a folder for each device
    #[arg(long, value_name = "DIR", default_value = FOLDER)]
    out: PathBuf,
    /// Stop beginning new steps after this many minutes
    #[arg(long, value_name = "N", default_value_t = 9)]
    minutes: u64,
    /// Only these programs (repeatable)
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Times only
    #[arg(long)]
    no_counters: bool,
    /// Counters only
    #[arg(long, conflicts_with = "no_counters")]
    no_times: bool,
}

/// What one program is run with: every size with every block; 0 is the program's own block.
struct Plan {
    program: &'static str,
    kernels: &'static [&'static str],
    sizes: &'static [u32],
    blocks: &'static [u32],
    /// The size whose counters are read: large enough to fill a GPU, small enough to be replayed.
    counted: u32,
}

const LINEAR: &[u32] = &[1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24];
// The host's own product takes longer than everything else from there on.
const SQUARE: &[u32] = &[256, 512, 1024, 1536];
const BLOCKS: &[u32] = &[32, 64, 128, 256, 512, 1024];

const PLANS: &[Plan] = &[
    Plan {
        program: "hgemm",
        kernels: &[
            "hgemm_naive",
            "hgemm_wmma",
            "hgemm_mma",
            "hgemm_padded",
            "hgemm_async",
            "hgemm_swizzled",
            "hgemm_stages",
        ],
        sizes: &[512, 1024, 2048, 4096],
        blocks: &[0],
        counted: 1024,
    },
    Plan {
        program: "attention",
        kernels: &["attention"],
        sizes: &[512, 1024, 2048, 4096],
        blocks: &[0],
        counted: 512,
    },
    Plan {
        program: "inference",
        kernels: &[
            "add_rms_norm",
            "softmax_rows",
            "rotate",
            "gemv_int4",
            "paged_decode",
            "gather_rows",
        ],
        sizes: &[1024, 4096, 8192],
        blocks: &[0],
        counted: 4096,
    },
    Plan {
        program: "quantised",
        kernels: &["gemv_fp8", "gemm_int4"],
        sizes: &[1024, 2048, 4096, 8192],
        blocks: &[0],
        counted: 2048,
    },
    Plan {
        program: "single_pass",
        kernels: &[
            "histogram",
            "scan_looking_back",
            "place_tokens",
            "gather_tokens",
        ],
        sizes: &[1 << 16, 1 << 18, 1 << 20, 1 << 22],
        blocks: &[0],
        counted: 1 << 20,
    },
    Plan {
        program: "clusters",
        kernels: &["normalise_rows", "sum_rows", "histogram_of_cluster"],
        sizes: &[4096, 16384, 65536],
        blocks: &[0],
        counted: 16384,
    },
    Plan {
        program: "warp_groups",
        kernels: &["warp_groups", "warp_groups_persistent"],
        sizes: &[512, 1024, 2048, 4096],
        blocks: &[0],
        counted: 1024,
    },
    Plan {
        program: "vector_add",
        kernels: &[
            "vector_add",
            "vector_add_strided<1>",
            "vector_add_strided<2>",
            "vector_add_strided<32>",
            "vector_add_by",
        ],
        // Its host keeps 32 times that, for the widest stride.
        sizes: &[1 << 16, 1 << 18, 1 << 20, 1 << 22],
        blocks: BLOCKS,
        counted: 1 << 20,
    },
    Plan {
        program: "particles",
        kernels: &["move_aos", "move_soa"],
        sizes: LINEAR,
        blocks: BLOCKS,
        counted: 1 << 20,
    },
    Plan {
        program: "scan",
        kernels: &["scan_init", "scan_div", "scan_div_b", "scan_init_b"],
        sizes: LINEAR,
        blocks: &[64, 128, 256, 512],
        counted: 1 << 20,
    },
    Plan {
        program: "reduction",
        kernels: &["reduce_interleaved", "reduce_sequential", "reduce_shuffle"],
        sizes: LINEAR,
        blocks: &[0],
        counted: 1 << 20,
    },
    Plan {
        program: "transpose",
        kernels: &["transpose_naive", "transpose_tiled", "transpose_padded"],
        sizes: &[256, 512, 1000, 1024, 2048, 4096],
        blocks: &[0],
        counted: 1024,
    },
    Plan {
        program: "stencil",
        kernels: &["stencil_global", "stencil_tiled"],
        sizes: &[256, 512, 1000, 1024, 2048, 4096],
        blocks: &[0],
        counted: 1024,
    },
    Plan {
        program: "linear_measure",
        kernels: &[
            "empty",
            "store",
            "copy",
            "add_four",
            "scale_add<1>",
            "scale_add<2>",
            "filled_sum_two",
            "filled_sum_three",
            "add<float>",
            "add<double>",
            "multiply<float>",
            "multiply<double>",
            "divide<float>",
            "divide<double>",
            "exponential<float>",
            "exponential<double>",
            "shared_loads",
            "shared_round",
            "barriers",
        ],
        sizes: LINEAR,
        blocks: &[0],
        counted: 1 << 20,
    },
    Plan {
        program: "matmul",
        kernels: &["matmul_global", "matmul_tiled"],
        sizes: SQUARE,
        blocks: &[0],
        counted: 512,
    },
    Plan {
        program: "matmul_abt",
        kernels: &[
            "matmul_abt_global",
            "matmul_abt_conflict",
            "matmul_abt_padded",
        ],
        sizes: SQUARE,
        blocks: &[0],
        counted: 512,
    },
    Plan {
        program: "matmul_abt16",
        kernels: &["matmul_abt16_conflict", "matmul_abt16_padded"],
        sizes: SQUARE,
        blocks: &[0],
        counted: 512,
    },
    Plan {
        program: "matmul_tiles",
        kernels: &[
            "matmul_tile_16",
            "matmul_tile_32",
            "matmul_tile_64",
            "matmul_tile_128",
            "matmul_tile_192",
        ],
        sizes: &[384, 768, 1536],
        blocks: &[0],
        counted: 768,
    },
    Plan {
        program: "hopping",
        kernels: &["hopping_aos", "hopping_soa"],
        // Lengths in time of a lattice of 512 sites each.
        sizes: &[8, 16, 32, 64],
        blocks: &[32, 64, 128],
        counted: 32,
    },
    Plan {
        program: "spmv",
        kernels: &[
            "spmv_global",
            "spmv_shared",
            "spmv_consecutive",
            "spmv_coalesced",
        ],
        sizes: &[1 << 14, 1 << 16, 1 << 18],
        blocks: &[0],
        counted: 1 << 16,
    },
    Plan {
        program: "fft",
        kernels: &[
            "fft_global_2",
            "fft_global_4",
            "fft_global_16",
            "fft_shared_2",
            "fft_shared_4",
            "fft_shared_16",
        ],
        sizes: &[1 << 16, 1 << 18, 1 << 20],
        blocks: &[0],
        counted: 1 << 18,
    },
    Plan {
        program: "svm",
        kernels: &["svm_naive", "svm_constant", "svm_constant_coalesced"],
        sizes: &[1 << 12, 1 << 14, 1 << 16],
        blocks: &[64, 128, 256],
        counted: 1 << 14,
    },
    Plan {
        program: "images",
        kernels: &["sepia", "linear"],
        sizes: &[512, 1000, 2048, 4096],
        blocks: &[0],
        counted: 2048,
    },
    Plan {
        program: "black_scholes",
        kernels: &["black_scholes"],
        sizes: LINEAR,
        blocks: &[64, 128, 256, 512],
        counted: 1 << 20,
    },
    Plan {
        program: "finite_difference",
        kernels: &["finite_difference"],
        sizes: &[256, 512, 1024, 2048, 4096],
        blocks: &[0],
        counted: 1024,
    },
    Plan {
        program: "skinny_matmul",
        kernels: &["skinny_matmul"],
        sizes: &[512, 1024, 2048, 4096],
        blocks: &[0],
        counted: 1024,
    },
    Plan {
        program: "n_body",
        kernels: &["n_body"],
        sizes: &[1 << 12, 1 << 13, 1 << 14],
        blocks: &[0],
        counted: 1 << 13,
    },
    Plan {
        program: "convolution",
        kernels: &["convolution"],
        sizes: &[256, 512, 1024, 2048],
        blocks: &[0],
        counted: 512,
    },
    Plan {
        program: "dg_diff",
        kernels: &["dg_diff", "dg_diff_field", "dg_diff_both"],
        sizes: &[1 << 10, 1 << 12, 1 << 14],
        blocks: &[0],
        counted: 1 << 12,
    },
];

/// Kernel-wide counters beside the per-line ones of ncu's section `SourceCounters`.
const METRICS: &str = "gpu__time_duration.sum,sm__cycles_elapsed.max,sm__warps_active.avg.pct_of_peak_sustained_active,\
smsp__inst_executed.sum,smsp__thread_inst_executed_per_inst_executed.ratio,dram__bytes_read.sum,dram__bytes_write.sum,\
lts__t_bytes.sum,lts__t_sectors_op_read.sum,lts__t_sectors_op_write.sum,\
l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum,l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum,\
l1tex__t_sector_hit_rate.pct,lts__t_sector_hit_rate.pct,l1tex__data_pipe_lsu_wavefronts_mem_shared.sum,\
l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum,launch__registers_per_thread,\
launch__occupancy_limit_registers,launch__occupancy_limit_shared_mem,launch__occupancy_limit_warps,launch__waves_per_multiprocessor";

/// Why there are no counters where everything before took too long.
const OUT_OF_TIME: &str = "the time was over (--minutes gives more)";

/// No single run takes longer; the host's own check of the largest product is most of it.
const RUN_LIMIT: Duration = Duration::from_mins(2);

impl Measure {
    /// Runs it. Exit status 1 where a kernel's result was wrong or nothing could be measured.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        for name in &self.only {
            if !PLANS.iter().any(|plan| plan.program == name) {
                let known: Vec<&str> = PLANS.iter().map(|plan| plan.program).collect();
                bail!(
                    "no program is called {name}; there are {}",
                    known.join(", ")
                );
            }
        }
        let device = device();
        if device.is_none() && !self.dry_run {
            bail!("no NVIDIA GPU (nvidia-smi gives none); --dry-run compiles and shows the plan");
        }
        let programs = repository::target().join("measure");
        std::fs::create_dir_all(&programs)?;
        compile(&programs, device.is_some())?;
        if self.dry_run {
            self.show_plan(&programs)?;
            return Ok(ExitCode::SUCCESS);
        }
        let Some(device) = device else {
            bail!("the GPU went away");
        };
        let capability = device.get("compute_cap").and_then(Value::as_str);
        let capability = capability.unwrap_or("").to_owned();
        let mut record = Record::new(&self.out, device)?;
        let deadline = Instant::now() + Duration::from_mins(self.minutes);
        // Times first: they are the most wanted, and one program's are whole before the next begins.
        let runs = |plan: &&'static Plan| plan.runs_on(&capability);
        let timed = self.plans().filter(runs).filter(|_| !self.no_times);
        for plan in timed {
            record.forget("runs", plan);
            for &n in plan.sizes {
                for &block in plan.blocks {
                    if Instant::now() > deadline {
                        println!("out of time: the rest was not measured");
                        record.without_counters(OUT_OF_TIME)?;
                        return Ok(record.finish());
                    }
                    record.time(&programs, plan, n, block)?;
                }
            }
        }
        if self.no_counters {
            record.without_counters("they were not asked for (--no-counters)")?;
            return Ok(record.finish());
        }
        // What ncu kept of one program is read out while the next is run.
        let mut reading: Option<std::thread::JoinHandle<Vec<Value>>> = None;
        for plan in self.plans().filter(runs) {
            if Instant::now() > deadline {
                record.counted(reading.take())?;
                record.without_counters(OUT_OF_TIME)?;
                return Ok(record.finish());
            }
            let report = match collect(&programs, plan) {
                Ok(report) => report,
                Err(why) => {
                    record.counted(reading.take())?;
                    record.without_counters(&why)?;
                    return Ok(record.finish());
                }
            };
            record.counted(reading.take())?;
            record.forget("counters", plan);
            reading = Some(std::thread::spawn(move || report.read()));
        }
        record.counted(reading)?;
        Ok(record.finish())
    }

    fn plans(&self) -> impl Iterator<Item = &'static Plan> {
        PLANS.iter().filter(|plan| {
            self.only.is_empty() || self.only.iter().any(|name| name == plan.program)
        })
    }

    /// A plan that names a program or a kernel that is not there would only be noticed on a GPU.
    fn show_plan(&self, programs: &Path) -> anyhow::Result<()> {
        let mut launches = 0;
        for plan in self.plans() {
            let compiled =
                std::fs::read_to_string(programs.join(format!("{}.ptxas", plan.program)))
                    .with_context(|| format!("{} was not compiled", plan.program))?;
            for kernel in plan.kernels {
                let base = kernel.split('<').next().unwrap_or(kernel);
                if !compiled.contains(&format!("{}{base}", base.len())) {
                    bail!("{} has no kernel {kernel}", plan.program);
                }
            }
            let configurations = plan.sizes.len() * plan.blocks.len();
            launches += configurations * plan.kernels.len();
            println!(
                "{:<12} {} kernels x {configurations} configurations, counters at n = {}",
                plan.program,
                plan.kernels.len(),
                plan.counted
            );
        }
        println!("{launches} launches would be timed");
        Ok(())
    }
}

impl Plan {
    /// True where the GPU has the architecture that the program says it needs.
    fn runs_on(&self, capability: &str) -> bool {
        let folder = repository::root().join("tests/kernels");
        let needed = needed(&folder.join(self.program).with_extension("cu"));
        let digits = needed.map(|needed| needed.replace(|c: char| !c.is_ascii_digit(), ""));
        digits.is_none_or(|digits| digits == capability.replace('.', ""))
    }
}

/// Builds tests/kernels for the GPU that is there, or for the script's default.
fn compile(into: &Path, native: bool) -> anyhow::Result<()> {
    let mut script = Command::new("bash");
    script
        .arg(repository::root().join("tests/kernels/compile.sh"))
        .arg("--into")
        .arg(into);
    if native {
        script.env("ARCH", "native");
    }
    let outcome = process::run(&mut script, Duration::from_mins(10))?;
    if !outcome.success {
        bail!("the kernels do not compile");
    }
    Ok(())
}

/// What nvidia-smi says of the first GPU; nothing where there is none.
fn device() -> Option<Map<String, Value>> {
    const FIELDS: [&str; 6] = [
        "name",
        "driver_version",
        "compute_cap",
        "clocks.max.sm",
        "clocks.max.mem",
        "power.limit",
    ];
    let values = smi(&FIELDS)?;
    Some(
        FIELDS
            .iter()
            .zip(values)
            .map(|(field, value)| (field.replace('.', "_"), json!(value)))
            .collect(),
    )
}

/// The fields of the first GPU, as nvidia-smi spells them.
fn smi(fields: &[&str]) -> Option<Vec<String>> {
    let output = Command::new("nvidia-smi")
        .arg(format!("--query-gpu={}", fields.join(",")))
        .args(["--format=csv,noheader,nounits", "--id=0"])
        .stdin(Stdio::null())
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let values: Vec<String> = text
        .lines()
        .next()?
        .split(',')
        .map(|value| value.trim().to_owned())
        .collect();
    (values.len() == fields.len()).then_some(values)
}

/// The first line a program prints, e.g. its version or the date.
fn first_line(program: &str, arguments: &[&str], with: &str) -> Option<String> {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .ok()?;
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .find(|line| line.contains(with))
        .map(|line| line.trim().to_owned())
}

/// The file of one device, written after each step.
struct Record {
    file: PathBuf,
    provenance: Map<String, Value>,
    runs: Vec<Value>,
    counters: Vec<Value>,
    /// Why there are no counters, or no further ones.
    refused: Option<String>,
    wrong: usize,
}

impl Record {
    fn new(out: &Path, device: Map<String, Value>) -> anyhow::Result<Record> {
        let name = device.get("name").and_then(Value::as_str).unwrap_or("gpu");
        let folder = repository::root().join(out).join(slug(name));
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
        let mut provenance = Map::new();
        provenance.insert("schema".into(), json!(SCHEMA));
        provenance.insert("device".into(), Value::Object(device));
        provenance.insert(
            "date".into(),
            json!(first_line("date", &["-u", "+%FT%TZ"], "")),
        );
        provenance.insert(
            "nvcc".into(),
            json!(first_line("nvcc", &["--version"], "release")),
        );
        provenance.insert(
            "ncu".into(),
            json!(first_line("ncu", &["--version"], "Version")),
        );
        provenance.insert(
            "commit".into(),
            json!(first_line("git", &["rev-parse", "HEAD"], "")),
        );
        provenance.insert(
            "how".into(),
            json!(
                "ms: CUDA events around one launch, and in_a_row around many, a launch's share; caches as the launch before left \
                 them; counters: first launch under ncu, caches flushed, clocks as they were"
            ),
        );
        let file = folder.join(FILE);
        let kept = std::fs::read_to_string(&file).ok();
        let kept = kept.and_then(|text| serde_json::from_str::<Value>(&text).ok());
        // Another driver or compiler measures something else.
        let same = |of: &Value| {
            ["device", "nvcc"]
                .iter()
                .all(|key| Some(&of[*key]) == provenance.get(*key))
        };
        let kept = kept.filter(same).unwrap_or_default();
        let list = |key: &str| kept[key].as_array().cloned().unwrap_or_default();
        Ok(Record {
            file,
            runs: list("runs"),
            counters: list("counters"),
            provenance,
            refused: None,
            wrong: 0,
        })
    }

    /// What an earlier day measured of a program makes room for what is measured now.
    fn forget(&mut self, what: &str, plan: &Plan) {
        let list = if what == "runs" {
            &mut self.runs
        } else {
            &mut self.counters
        };
        list.retain(|entry| entry["program"] != plan.program);
    }

    /// All kernels of one program in one configuration.
    fn time(&mut self, programs: &Path, plan: &Plan, n: u32, block: u32) -> anyhow::Result<()> {
        let mut command = Command::new(programs.join(plan.program));
        command.args(["--json", "yes", "--repeat", "50", "--n", &n.to_string()]);
        if block != 0 {
            command.args(["--block", &block.to_string()]);
        }
        let outcome = process::run(&mut command, RUN_LIMIT)?;
        let clocks = smi(&["clocks.sm", "clocks.mem", "temperature.gpu", "power.draw"]);
        let mut seen = 0;
        for line in outcome.tail.lines() {
            let Ok(Value::Object(mut run)) = serde_json::from_str::<Value>(line) else {
                continue;
            };
            seen += 1;
            run.insert("program".into(), json!(plan.program));
            if let Some([sm, memory, temperature, power]) = clocks.as_deref() {
                run.insert("sm_clock_mhz_after".into(), number(sm));
                run.insert("memory_clock_mhz_after".into(), number(memory));
                run.insert("temperature_c".into(), number(temperature));
                run.insert("power_w".into(), number(power));
            }
            if run.get("right") != Some(&Value::Bool(true)) {
                self.wrong += 1;
            }
            self.runs.push(Value::Object(run));
        }
        if seen < plan.kernels.len() {
            let name = plan.program;
            println!(
                "{name} --n {n} --block {block}: {seen} of {} kernels answered",
                plan.kernels.len()
            );
        }
        if seen == 0 {
            return Ok(()); // what an earlier day measured stays
        }
        self.save()
    }

    /// Keeps what was read out of a program's report.
    fn counted(
        &mut self,
        reading: Option<std::thread::JoinHandle<Vec<Value>>>,
    ) -> anyhow::Result<()> {
        let Some(reading) = reading else {
            return Ok(());
        };
        match reading.join() {
            Ok(counters) => self.counters.extend(counters),
            Err(_) => println!("a report could not be read"),
        }
        self.save()
    }

    /// Says and keeps why there are no counters: else the file would read as if none were requested.
    fn without_counters(&mut self, why: &str) -> anyhow::Result<()> {
        println!("no counters: {why}");
        self.refused = Some(why.to_owned());
        if self.runs.is_empty() {
            return Ok(()); // what an earlier day measured stays
        }
        self.save()
    }

    /// Written beside and renamed: a machine that goes away in between leaves the last whole file.
    fn save(&self) -> anyhow::Result<()> {
        let mut all = self.provenance.clone();
        all.insert("runs".into(), Value::Array(self.runs.clone()));
        all.insert("counters".into(), Value::Array(self.counters.clone()));
        if let Some(why) = &self.refused {
            all.insert("no_counters".into(), json!(why));
        }
        let half = self.file.with_extension("json.part");
        std::fs::write(&half, one_a_line(&all))?;
        std::fs::rename(&half, &self.file)?;
        Ok(())
    }

    fn finish(self) -> ExitCode {
        println!(
            "{} times and {} kernels' counters in {}, {} wrong results",
            self.runs.len(),
            self.counters.len(),
            self.file.display(),
            self.wrong
        );
        if self.wrong == 0 && !self.runs.is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}

/// What ncu kept of one program's kernels, each run once.
struct Report {
    plan: &'static Plan,
    file: PathBuf,
    /// What the program printed of each launch.
    launches: Vec<Value>,
}

/// Runs a program under ncu, every kernel once. Why no counters can be read on this machine, else.
fn collect(programs: &Path, plan: &'static Plan) -> Result<Report, String> {
    let file = programs.join(format!("{}.ncu-rep", plan.program));
    let run = |metrics: Option<&str>| {
        let mut ncu = Command::new("ncu");
        // The clocks stay as they are: a machine may be lent, and times are wanted as users have them.
        ncu.args(["--force-overwrite", "--clock-control", "none"])
            .args(["--profile-from-start", "off"])
            .args(["--section", "SourceCounters"]);
        if let Some(metrics) = metrics {
            ncu.args(["--metrics", metrics]);
        }
        ncu.arg("--export")
            .arg(&file)
            .arg(programs.join(plan.program))
            .args(["--json", "yes", "--repeat", "0"])
            .args(["--n", &plan.counted.to_string()]);
        process::run(&mut ncu, RUN_LIMIT).map_err(|error| format!("{error:#}"))
    };
    let _ = std::fs::remove_file(&file);
    // A counter that this GPU lacks makes ncu refuse them all: then the lines' own are asked for alone.
    let mut outcome = run(Some(METRICS))?;
    if outcome.tail.contains(REFUSED) {
        return Err(format!("ncu may not read them here: {REFUSED}"));
    }
    if !file.is_file() {
        outcome = run(None)?;
    }
    let lines = outcome.tail.lines();
    let launches: Vec<Value> = lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    println!("{}: {} launches counted", plan.program, launches.len());
    Ok(Report {
        plan,
        file,
        launches,
    })
}

impl Report {
    /// The entries of its launches, each page read by an ncu of its own.
    fn read(&self) -> Vec<Value> {
        if !self.file.is_file() {
            return Vec::new();
        }
        let page = |number: usize, arguments: &[&str]| {
            let text = Command::new("ncu")
                .arg("--import")
                .arg(&self.file)
                .args(["--launch-skip", &number.to_string(), "--launch-count", "1"])
                .args(["--csv", "--page"])
                .args(arguments)
                .output()
                .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
                .unwrap_or_default();
            // Beside the report, for who wonders what was made of it.
            let beside = self
                .file
                .with_extension(format!("{number}.{}.csv", arguments[0]));
            let _ = std::fs::write(beside, &text);
            text
        };
        let entry = |number: usize, launch: &Value| {
            counted(
                self.plan.program,
                &format!("{}.cu", self.plan.program),
                launch,
                &page(number, &["raw"]),
                &page(number, &["source", "--print-source", "cuda,sass"]),
            )
        };
        std::thread::scope(|scope| {
            let each = self.launches.iter().enumerate();
            let reading: Vec<_> = each
                .map(|(number, launch)| scope.spawn(move || entry(number, launch)))
                .collect();
            reading
                .into_iter()
                .filter_map(|one| one.join().ok())
                .collect()
        })
    }
}

/// One kernel's entry of the file: the launch as the program printed it, ncu's pages `raw` and `source` as CSV.
pub fn counted(program: &str, file: &str, launch: &Value, raw: &str, source: &str) -> Value {
    let ncu::Source {
        lines,
        instructions,
    } = ncu::source(source, file);
    json!({
        "program": program,
        "launch": launch,
        "metrics": ncu::raw_metrics(raw, METRICS),
        "lines": lines,
        "instructions": instructions,
    })
}

/// The document with each run, line and instruction on a line of its own: what a day changed is read in a difference.
fn one_a_line(all: &Map<String, Value>) -> String {
    let list = |entries: &[Value], indent: &str| {
        let entries: Vec<String> = entries
            .iter()
            .map(|entry| format!("{indent}{entry}"))
            .collect();
        format!("[\n{}\n{}]", entries.join(",\n"), &indent[1..])
    };
    let fields = |of: &Map<String, Value>, indent: &str, field: &dyn Fn(&Value) -> String| {
        let fields: Vec<String> = of
            .iter()
            .map(|(name, value)| format!("{indent}{}: {}", json!(name), field(value)))
            .collect();
        format!("{{\n{}\n{}}}", fields.join(",\n"), &indent[1..])
    };
    let of_kernel = |value: &Value| match value.as_array() {
        Some(entries) => list(entries, "    "),
        None => value.to_string(),
    };
    let field = |value: &Value| match value.as_array() {
        Some(entries) if entries.iter().any(|entry| entry.get("metrics").is_some()) => {
            let kernels = entries.iter().filter_map(Value::as_object);
            let kernels: Vec<String> = kernels
                .map(|kernel| format!("  {}", fields(kernel, "   ", &of_kernel)))
                .collect();
            format!("[\n{}\n ]", kernels.join(",\n"))
        }
        Some(entries) => list(entries, "  "),
        None => value.to_string(),
    };
    fields(all, " ", &field) + "\n"
}

/// `NVIDIA H200` as a folder: `nvidia-h200`.
pub fn slug(name: &str) -> String {
    let words: Vec<String> = name
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    words.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_of_the_folder_is_in_the_plan_with_its_kernels() {
        let folder = repository::root().join("tests/kernels");
        let mut planned: Vec<&str> = PLANS.iter().map(|plan| plan.program).collect();
        planned.sort_unstable();
        let mut there: Vec<String> = std::fs::read_dir(&folder)
            .unwrap()
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                (path.extension()? == "cu")
                    .then(|| path.file_stem()?.to_str().map(str::to_owned))?
            })
            .collect();
        there.sort_unstable();
        assert_eq!(planned, there);
        for plan in PLANS {
            let text =
                std::fs::read_to_string(folder.join(format!("{}.cu", plan.program))).unwrap();
            // A template may run several.
            let runs = text.matches("program.run(").count();
            assert!((1..=plan.kernels.len()).contains(&runs), "{}", plan.program);
            for kernel in plan.kernels {
                assert!(text.contains(&format!("\"{kernel}\"")), "{kernel}");
            }
        }
    }

    #[test]
    fn what_was_measured_is_on_disk_after_each_step() {
        let folder = std::env::temp_dir().join(format!("warplens-measure-{}", std::process::id()));
        let mut device = Map::new();
        device.insert("name".into(), json!("NVIDIA  Test (80GB)"));
        let mut record = Record::new(&folder, device).unwrap();
        record.runs.push(json!({"kernel": "k"}));
        record.save().unwrap();
        let file = folder.join("nvidia-test-80gb/kernels.json");
        let kept: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!(kept["schema"], SCHEMA);
        assert_eq!(kept.get("no_counters"), None);
        record.without_counters("not permitted").unwrap();
        let kept: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!(kept["no_counters"], "not permitted");
        assert_eq!(kept["runs"][0]["kernel"], "k");
        record.counters.push(
            json!({"program": "p", "metrics": {"m": 1}, "lines": [{"line": 1}, {"line": 2}]}),
        );
        record.save().unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        let kept: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(kept["counters"][0]["lines"][1]["line"], 2);
        assert!(
            text.lines().any(|line| line.trim() == "{\"line\":1},"),
            "{text}"
        );
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
