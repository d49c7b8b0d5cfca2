//! Orderings of kernels that the papers measured, by their own models on the GPUs that they measured on.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use warplens_db::settings::Settings;
use warplens_db::wire::{Estimate, KernelResult};
use warplens_db::{Engine, LaunchValues, Overrides};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

static ENGINE: LazyLock<Engine> = LazyLock::new(|| Engine::new(Profiles::builtin()));

/// A kernel of `tests/kernels` under a launch.
struct Launched<'a> {
    file: &'a str,
    kernel: &'a str,
    gpu: &'a str,
    launch: LaunchValues,
    contents: BTreeMap<String, Arc<[u8]>>,
    settings: Settings,
    /// Text of the file that is put in place of other text.
    edit: Option<(&'a str, &'a str)>,
}

impl<'a> Launched<'a> {
    fn new(gpu: &'a str, file: &'a str, kernel: &'a str) -> Launched<'a> {
        Launched {
            file,
            kernel,
            gpu,
            launch: LaunchValues::default(),
            contents: BTreeMap::new(),
            settings: Settings::default(),
            edit: None,
        }
    }

    fn blocks(mut self, grid: [u64; 3], block: [u64; 3]) -> Self {
        self.launch.grid = Some(grid);
        self.launch.block = Some(block);
        self
    }

    fn edited(mut self, from: &'a str, to: &'a str) -> Self {
        self.edit = Some((from, to));
        self
    }

    /// With `-D NAME=VALUE`.
    fn defined(mut self, name: &str, value: &str) -> Self {
        let defines = &mut self.settings.defines;
        defines.insert(name.to_owned(), value.to_owned());
        self
    }

    fn shared(mut self, bytes: u64) -> Self {
        self.launch.dynamic_shared_bytes = Some(bytes);
        self
    }

    fn argument(mut self, name: &str, value: i64) -> Self {
        self.launch.args.insert(name.to_owned(), value);
        self
    }

    fn result(self) -> KernelResult {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels");
        let path = path.join(self.file);
        let mut text = std::fs::read_to_string(&path).expect("one of our kernels");
        if let Some((from, to)) = self.edit {
            assert!(text.contains(from), "{} has no `{from}`", self.file);
            text = text.replace(from, to);
        }
        let overrides = Overrides {
            argument: self.launch,
            contents: self.contents,
            ..Overrides::default()
        };
        let mut document = ENGINE
            .estimate(
                &Document::new(&text, Language::Cuda),
                &path,
                &self.settings,
                &overrides,
                &[self.gpu.to_owned()],
                &[],
                &[self.kernel.to_owned()],
            )
            .expect("a known GPU and kernel");
        document.results.remove(0)
    }

    fn estimate(self, model: &str) -> Estimate {
        let kernel = self.kernel.to_owned();
        let mut result = self.result();
        let estimate = result.estimates.remove(model).expect("asked for");
        assert!(estimate.cycles.is_some(), "{kernel}: {:?}", estimate.why);
        estimate
    }

    fn cycles(self, model: &str) -> f64 {
        self.estimate(model).cycles.expect("checked")
    }
}

/// Each takes less time than the one before.
#[track_caller]
fn falls(times: &[(&str, f64)]) {
    for pair in times.windows(2) {
        assert!(pair[0].1 > pair[1].1, "{times:?}");
    }
}

const GTX: &str = "geforce-8800-gtx";

/// The tiled multiplications of Figure 7 (Baghsorkhi et al. 2010), narrow tiles first, under one spelling of how far the
/// loop over k is unrolled.
fn tiles(unrolled: &str) -> Vec<(&'static str, f64)> {
    [
        ("matmul_tile_16", 16),
        ("matmul_tile_32", 32),
        ("matmul_tile_64", 64),
        ("matmul_tile_128", 128),
        ("matmul_tile_192", 192),
    ]
    .map(|(kernel, width)| {
        let cycles = Launched::new(GTX, "matmul_tiles.cu", kernel)
            .edited("WIDTH == TILE ? TILE : 1", unrolled)
            .blocks([768 / width, 48, 1], [16, 16, 1])
            .argument("n", 768)
            .cycles("wfg");
        (kernel, cycles)
    })
    .into()
}

#[test]
fn wider_tiles_are_faster_and_no_tile_is_slowest() {
    let global = Launched::new(GTX, "matmul.cu", "matmul_global")
        .blocks([48, 48, 1], [16, 16, 1])
        .argument("n", 768)
        .cycles("wfg");
    // Loops that are compiled alike, all unrolled or none.
    for unrolled in ["TILE", "1"] {
        let mut times = vec![("matmul_global", global)];
        times.extend(tiles(unrolled));
        falls(&times);
    }
    // With the narrowest alone unrolled, as the file has it, the others still fall and none is like no tile.
    let times = tiles("WIDTH == TILE ? TILE : 1");
    falls(&times[1..]);
    assert!(
        times.iter().all(|(_, cycles)| *cycles < global),
        "{times:?}"
    );
}

#[test]
fn padding_helps_the_scan_whose_warps_agree_and_no_other() {
    // Baghsorkhi et al. 2010, Figure 9. Their GPU has 16 banks.
    for block in [64, 128, 256] {
        let scan = |kernel, words: u64| {
            Launched::new(GTX, "scan.cu", kernel)
                .defined("LOG_BANKS", "4")
                .blocks([(1 << 19) / block, 1, 1], [block, 1, 1])
                .shared(4 * words)
                .cycles("wfg")
        };
        let (plain, padded) = (2 * block, 2 * block + 2 * block / 16);
        let init = scan("scan_init", plain);
        let init_b = scan("scan_init_b", padded);
        let div = scan("scan_div", plain);
        let div_b = scan("scan_div_b", padded);
        let all = format!("{block}: init {init} init_b {init_b} div {div} div_b {div_b}");
        assert!(div_b < init && div_b < init_b && div_b < div, "{all}");
        assert!(init_b > init, "{all}");
    }
}

#[test]
fn half_warps_on_aligned_rows_multiply_sparse_matrices_fastest() {
    // Baghsorkhi et al. 2010, Figure 10: the structure of the matrix comes from its contents.
    let rows = 8192;
    let mut start = vec![0i32];
    for row in 0..rows {
        // Rows of 40 to 85 elements: several half-warps each.
        start.push(start[row as usize] + 40 + row % 1009 * 37 % 46);
    }
    let elements = start[rows as usize];
    let column: Vec<i32> = (0..elements)
        .map(|k| (i64::from(k) * 7919 % i64::from(rows)) as i32)
        .collect();
    let bytes = |numbers: &[i32]| -> Arc<[u8]> {
        numbers
            .iter()
            .flat_map(|number| number.to_le_bytes())
            .collect()
    };
    let contents: BTreeMap<String, Arc<[u8]>> = [
        ("row_start".to_owned(), bytes(&start)),
        ("column".to_owned(), bytes(&column)),
    ]
    .into();
    let multiply = |kernel, threads_a_row: u64| {
        let grid = rows as u64 * threads_a_row / 128;
        let launched = Launched::new(GTX, "spmv.cu", kernel)
            .blocks([grid, 1, 1], [128, 1, 1])
            .argument("rows", i64::from(rows));
        Launched {
            contents: contents.clone(),
            ..launched
        }
        .cycles("wfg")
    };
    let global = multiply("spmv_global", 1);
    let shared = multiply("spmv_shared", 1);
    let consecutive = multiply("spmv_consecutive", 16);
    let coalesced = multiply("spmv_coalesced", 16);
    let all = format!("{global} {shared} {consecutive} {coalesced}");
    let others = [global, shared, consecutive];
    assert!(others.iter().all(|other| coalesced < *other), "{all}");
}

#[test]
fn radix_16_loses_occupancy_and_exposes_latency() {
    // Baghsorkhi et al. 2010, section 4.1 and Figure 8.
    for (kind, launches) in [
        (
            "fft_global",
            [
                ("fft_global_2", 2048, [64, 1, 1]),
                ("fft_global_4", 1024, [64, 1, 1]),
                ("fft_global_16", 256, [64, 1, 1]),
            ],
        ),
        (
            "fft_shared",
            [
                ("fft_shared_2", 1024, [128, 1, 1]),
                ("fft_shared_4", 1024, [64, 1, 1]),
                ("fft_shared_16", 256, [16, 4, 1]),
            ],
        ),
    ] {
        let of = launches.map(|(kernel, blocks, block)| {
            let launched = Launched::new(GTX, "fft.cu", kernel).blocks([blocks, 1, 1], block);
            let launched = if kind == "fft_global" {
                launched.argument("n", 256).argument("ns", 1)
            } else {
                launched
            };
            let detail = launched.estimate("wfg").detail;
            (detail["active_warps"], detail["latency_exposed"])
        });
        let [two, four, sixteen] = of;
        assert!(sixteen.0 < four.0 && sixteen.0 < two.0, "{kind}: {of:?}");
        assert!(sixteen.1 > four.1 && sixteen.1 > two.1, "{kind}: {of:?}");
    }
}

#[test]
fn coalescing_is_what_the_support_vector_machine_needs() {
    // Hong and Kim 2009, section 2.4: over the naive version 1.79 times with constant memory, 24.36 with both.
    let svm = |kernel| {
        Launched::new("quadro-fx-5600", "svm.cu", kernel)
            .blocks([256, 1, 1], [128, 1, 1])
            .argument("n", 32_768)
            .cycles("mwp-cwp")
    };
    let naive = svm("svm_naive");
    let constant = naive / svm("svm_constant");
    let optimised = naive / svm("svm_constant_coalesced");
    assert!(constant > 1.2 && constant < 3.0, "{constant}");
    assert!((12.0..48.0).contains(&optimised), "{optimised}");
}
