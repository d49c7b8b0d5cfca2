//! `cargo xtask fuzz`: the targets of `fuzz/` built, given seeds, and run for a while.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};

use xtask::process::{self, Outcome};
use xtask::repository;

/// Run the fuzz targets, each for some seconds, with cargo-fuzz
///
/// Seeds are made of our kernels, profiles and documentation. An input that fails is left in fuzz/artifacts, and how
/// to run it once more is said.
#[derive(Debug, Args)]
pub struct Fuzz {
    /// Only these targets
    #[arg(value_enum, value_name = "TARGET")]
    targets: Vec<Target>,
    /// Seconds of each
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u64,
    /// Only make the seeds
    #[arg(long)]
    seeds: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Target {
    /// Sessions: edits and questions, then what a fresh session shows
    Edits,
    /// Macros, directives and the map back
    Preprocessor,
    /// Files read and their kernels analysed
    Lowering,
    /// Expressions against their evaluation
    Symbolic,
    /// Profiles of GPUs
    Profiles,
    /// warplens.toml and the settings of editors
    Configuration,
    /// Kernel Tuner's T1 files and their expressions
    T1,
    /// Host programs, run with arguments
    Host,
    /// Inline PTX
    Ptx,
}

/// A cold build of the server with coverage, twice.
const BUILD: Duration = Duration::from_mins(40);
/// What loading the seeds and leaving may take besides.
const BESIDES: Duration = Duration::from_mins(2);
/// Memory of one target, in MiB.
const MEMORY: u32 = 2048;
/// Seconds of one input; a slow machine's share in them.
const LONGEST: u32 = 25;
/// Bytes of one input: the longest of our kernels.
const LARGEST: usize = 12_000;
/// Bytes of choices behind a text.
const SCRIPT: usize = 60;

impl Fuzz {
    /// Every target.
    pub fn all(seconds: u64) -> Fuzz {
        Fuzz {
            targets: Vec::new(),
            seconds,
            seeds: false,
        }
    }

    /// Runs it.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        if self.seeds {
            self.make_seeds()?;
            return Ok(ExitCode::SUCCESS);
        }
        let Some(program) = repository::program("cargo-fuzz") else {
            bail!("cargo-fuzz is not installed (`cargo install cargo-fuzz --locked`)");
        };
        let outcome = self.with(&program)?;
        println!("{} passed, {} failed", outcome.passed, outcome.failed);
        Ok(ExitCode::from(u8::from(!outcome.success)))
    }

    fn targets(&self) -> &[Target] {
        match &self.targets[..] {
            [] => Target::value_variants(),
            some => some,
        }
    }

    fn make_seeds(&self) -> anyhow::Result<()> {
        for target in self.targets() {
            println!("{}: {} seeds", target.name(), target.seed()?);
        }
        Ok(())
    }

    /// Runs it by this cargo-fuzz; each target counts as a test.
    pub fn with(&self, program: &Path) -> anyhow::Result<Outcome> {
        self.make_seeds()?;
        let targets = self.targets();
        let mut all = Outcome {
            success: true,
            ..Outcome::default()
        };
        // Without a sanitizer, and so with the stable compiler: our own code has no `unsafe`.
        let mut build = Command::new(program);
        build.args(["build", "--sanitizer", "none", "--fuzz-dir", "fuzz"]);
        if let [only] = targets {
            build.arg(only.name());
        }
        if !process::run(&mut build, BUILD)?.success {
            bail!("the fuzz targets could not be built");
        }
        for target in targets {
            println!("\n{}:", target.name());
            let mut fuzz = Command::new(program);
            fuzz.args(["run", "--sanitizer", "none", "--fuzz-dir", "fuzz"]);
            fuzz.args([&target.name(), "--"]);
            fuzz.arg(format!("-max_total_time={}", self.seconds));
            fuzz.arg(format!("-rss_limit_mb={MEMORY}"));
            fuzz.arg(format!("-timeout={LONGEST}"));
            fuzz.arg(format!("-max_len={}", LARGEST + SCRIPT + 2));
            fuzz.arg("-print_final_stats=1");
            let limit = Duration::from_secs(self.seconds) + BESIDES;
            let outcome = process::run(&mut fuzz, limit)?;
            all.success &= outcome.success;
            all.passed += u64::from(outcome.success);
            all.failed += u64::from(!outcome.success);
            if outcome.timed_out {
                println!("{} did not end", target.name());
            }
        }
        Ok(all)
    }
}

impl Target {
    fn name(self) -> String {
        self.to_possible_value()
            .map(|value| value.get_name().to_owned())
            .unwrap_or_default()
    }

    /// Writes its seeds, and says how many there are.
    fn seed(self) -> anyhow::Result<usize> {
        let seeds = match self {
            Target::Edits | Target::Preprocessor | Target::Lowering => kernels()?,
            Target::Symbolic => Vec::new(),
            Target::Profiles => texts("hw-profiles", &["toml"])?,
            Target::Configuration => examples("docs/configuration.md", &["toml", "json"])?,
            Target::T1 => spaces(),
            Target::Host => programs(),
            Target::Ptx => assembly(),
        };
        // What once failed is tried first in every run.
        let kept = repository::root()
            .join("tests/fixtures/fuzz")
            .join(self.name());
        let kept = match std::fs::read_dir(&kept) {
            Ok(entries) => entries
                .map(|entry| Ok(std::fs::read(entry?.path())?))
                .collect::<anyhow::Result<Vec<_>>>()?,
            Err(_) => Vec::new(),
        };
        let folder = repository::root().join("fuzz/corpus").join(self.name());
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
        let all: Vec<Vec<u8>> = seeds.into_iter().chain(kept).collect();
        for (number, seed) in all.iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{number:03}")), seed)?;
        }
        Ok(all.len())
    }
}

/// The files of a folder with these extensions, in order.
fn files(folder: &str, extensions: &[&str]) -> anyhow::Result<Vec<PathBuf>> {
    let folder = repository::root().join(folder);
    let entries =
        std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        if extension.is_some_and(|extension| extensions.contains(&extension)) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn texts(folder: &str, extensions: &[&str]) -> anyhow::Result<Vec<Vec<u8>>> {
    let files = files(folder, extensions)?;
    files.iter().map(|file| Ok(std::fs::read(file)?)).collect()
}

/// Our kernels, each behind it the number of its language and some choices, as `fuzz/src/lib.rs` reads them.
fn kernels() -> anyhow::Result<Vec<Vec<u8>>> {
    let mut seeds = Vec::new();
    for folder in ["tests/kernels", "tests/corpus"] {
        for file in files(folder, &["cu", "cuh", "cl", "hip"])? {
            let language = match file.extension().and_then(|extension| extension.to_str()) {
                Some("cl") => 1,
                Some("hip") => 2,
                _ => 0,
            };
            let mut seed = std::fs::read(&file)?;
            seed.truncate(LARGEST);
            seed.extend([0, language]);
            // Any choices do, and the same in every run.
            let mut state = seed.len() as u32;
            seed.extend((0..SCRIPT).map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                // A zero would begin another script.
                (state >> 24) as u8 | 1
            }));
            seeds.push(seed);
        }
    }
    Ok(seeds)
}

/// The examples of a page in these languages.
fn examples(page: &str, languages: &[&str]) -> anyhow::Result<Vec<Vec<u8>>> {
    let text = std::fs::read_to_string(repository::root().join(page))?;
    let mut blocks = text.split("\n```");
    let mut found = Vec::new();
    while let (Some(_), Some(block)) = (blocks.next(), blocks.next()) {
        if let Some((language, example)) = block.split_once('\n')
            && languages.contains(&language.trim())
        {
            found.push(example.as_bytes().to_vec());
        }
    }
    Ok(found)
}

/// A space with everything that a T1 file may hold, and expressions.
fn spaces() -> Vec<Vec<u8>> {
    let space = serde_json::json!({
        "ConfigurationSpace": {
            "TuningParameters": [
                {"Name": "block_size_x", "Type": "int", "Values": "[16, 32, 64]", "Default": 16},
                {"Name": "tile", "Type": "int", "Values": [1, 2, 4]},
                {"Name": "layout", "Type": "string", "Values": ["'row'", "'column'"]},
                {"Name": "all", "Type": "int", "Values": "list(range(1, 9, 2))"},
            ],
            "Conditions": [
                {"Parameters": ["block_size_x", "tile"], "Expression": "32 <= block_size_x * tile <= 128"},
                {"Parameters": ["all"], "Expression": "all % 3 != 0 or all in (3, 9) and not all == 5"},
            ],
        },
        "KernelSpecification": {
            "Language": "CUDA", "KernelName": "k", "KernelFile": "k.cu",
            "GlobalSizeType": "CUDA", "CompilerOptions": ["-DWIDE=2"],
            "ProblemSize": [4096, "2048"],
            "LocalSize": {"X": "block_size_x", "Y": "1", "Z": "1"},
            "GlobalSize": {"X": "(ProblemSize[0] + block_size_x - 1) // block_size_x", "Y": "1", "Z": "1"},
            "GridDivX": ["block_size_x", "tile"], "SharedMemory": 0,
            "Arguments": [{"Name": "n", "Type": "int32", "MemoryType": "Scalar", "FillValue": 4096}],
        },
    });
    let expressions = "a * 2 + b\nmin(a, 3) ** 2 // 2\n[x for x in d]\n'c' + c\na if b < 1 else d[0]\n-a % 3 == 2 and not b\n";
    let lines = "{\"id\": 1, \"defines\": {\"n\": 4}, \"args\": {\"m\": 2}, \"grid\": [8, 1, 1], \"block\": [64], \"dynamic_shared_bytes\": 0}\n";
    vec![
        space.to_string().into_bytes(),
        expressions.as_bytes().to_vec(),
        lines.as_bytes().to_vec(),
    ]
}

/// Host programs, each with the arguments that it is run with behind it.
fn programs() -> Vec<Vec<u8>> {
    let programs = [
        (
            "int main(int argc, char **argv) {\n  if (argc != 3) { printf(\"usage\"); return 1; }\n  int n = atoi(argv[1]), times = strtol(argv[2], NULL, 10);\n  float *d;\n  cudaMalloc(&d, n * sizeof(float));\n  for (int i = 0; i < times; i++) scale<float><<<(n + 255) / 256, 256>>>(d, n);\n  cudaFree(d);\n}\n",
            "4096 10",
        ),
        (
            "struct Options { int n = 64; bool twice = false; std::string name; };\nstatic Options parsed(int argc, char **argv) {\n  Options o; int c;\n  while ((c = getopt(argc, argv, \"n:tf:\")) != -1)\n    switch (c) { case 'n': o.n = std::stoi(optarg); break; case 't': o.twice = true; break; default: exit(1); }\n  return o;\n}\nint main(int argc, char **argv) {\n  Options o = parsed(argc, argv);\n  std::vector<double> h(o.n);\n  for (auto &x : h) x = rand() % 7;\n  double *d; cudaMalloc((void **)&d, h.size() * sizeof(double));\n  cudaMemcpy(d, h.data(), h.size() * 8, cudaMemcpyHostToDevice);\n  dim3 block(32, 4), grid((o.n + block.x - 1) / block.x);\n  do { scale<<<grid, block>>>(d, o.n); cudaDeviceSynchronize(); } while (o.twice-- > 0);\n}\n",
            "-n 1000 -t",
        ),
        (
            "int main() {\n  int n = 1 << 10; unsigned seed = 7;\n  float *a = (float *)malloc(n * 4), *b, *c;\n  for (int i = n; i-- > 0;) { seed = seed * 1103515245u + 12345u; a[i] = (seed >> 16) / 3.0f; }\n  cudaMallocManaged(&b, n * 4); cudaMalloc(&c, 64);\n  memset(b, 0, n * 4);\n  while (n >>= 1) { if (n % 3 == 0) continue; sum<<<n / 32 + 1, n < 256 ? n : 256>>>(c, b, n, 0.5f); }\n}\n",
            "",
        ),
    ];
    let seed = |(text, arguments): &(&str, &str)| {
        let language: &[u8] = &[0, 3];
        [text.as_bytes(), language, arguments.as_bytes()].concat()
    };
    programs.iter().map(seed).collect()
}

/// Instructions of several kinds, with operands, labels, predicates and declarations.
fn assembly() -> Vec<Vec<u8>> {
    let texts = [
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];",
        "{ .reg .pred p; setp.ne.s32 p, %6, 0; @p ld.global.nc.v4.f32 {%2, %3, %0, %1}, [%5 + 16]; }",
        "cp.async.cg.shared.global.L2::128B [%4], [%5], %7;\ncp.async.commit_group;\ncp.async.wait_group 0;",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%2, %3, %2, %3}, {%0, %1, %0, %1}, {%0, %1}, {%2, %3, %2, %3};",
        "{ .reg .u64 q; cvta.to.shared.u64 q, %5; cvt.u32.u64 %0, q; }",
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%4], %6;",
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%4], [%5, {%6, %6}], [%4];",
        "L1: add.s32 %0, %0, -1; setp.gt.s32 p, %0, 0; @p bra L1; // until 0",
        "red.global.add.f32 [%5], %2; atom.shared.cas.b32 %0, [%4], %6, %1;",
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%2, %3}, %4, %5, p, 1, 1, 0, 0;",
        "shfl.sync.bfly.b32 %0, %1, 16, 0x1f, 0xffffffff; lop3.b32 %1, %0, %6, 7, 0xe8; bar.sync 1, 64;",
        "st.shared.v2.b32 [%4 + 8], {%0, %1}; /* pairs */ fma.rn.f32 %2, %2, %3, 0f3F800000;",
    ];
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_is_one_of_the_fuzz_crate() {
        let manifest = std::fs::read_to_string(repository::root().join("fuzz/Cargo.toml")).unwrap();
        for target in Target::value_variants() {
            let entry = format!("name = \"{}\"", target.name());
            assert!(manifest.contains(&entry), "{entry}");
        }
        assert_eq!(
            manifest.matches("[[bin]]").count(),
            Target::value_variants().len()
        );
    }

    #[test]
    fn seeds_are_what_the_readers_take() {
        let kernels = kernels().unwrap();
        assert!(kernels.len() > 40, "{}", kernels.len());
        assert!(
            kernels
                .iter()
                .all(|seed| seed.len() <= LARGEST + SCRIPT + 2)
        );
        for example in examples("docs/configuration.md", &["toml"]).unwrap() {
            let text = String::from_utf8(example).unwrap();
            let (_, problems) = warplens_db::settings::Settings::from_toml(&text);
            assert!(problems.is_empty(), "{problems:?} in\n{text}");
        }
        let space = String::from_utf8(spaces().swap_remove(0)).unwrap();
        assert!(
            warplens_tuning::Space::read(&space)
                .is_ok_and(|space| space.configurations().next().is_some())
        );
    }

    #[test]
    fn each_target_has_its_hour_at_night() {
        let workflow = repository::root().join(".github/workflows/nightly.yml");
        let workflow = std::fs::read_to_string(workflow).expect("a workflow");
        let list = workflow.lines().find_map(|line| {
            let line = line.trim().strip_prefix("target: [")?;
            line.strip_suffix(']')
        });
        let listed: Vec<&str> = list.expect("a list").split(", ").collect();
        let targets = Target::value_variants();
        let names: Vec<String> = targets.iter().map(|target| target.name()).collect();
        assert_eq!(listed, names);
    }
}
