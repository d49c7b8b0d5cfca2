//! Instructions of PTX that access memory, held against bank addresses that are worked out here lane by lane: `ldmatrix`,
//! `stmatrix`, `cp.async`, vectors of shared memory, products of matrices.
//!
//! A kernel is generated as a tile (element size, row length, padding, swizzle, where the tile begins), a way to compute its
//! address, and an instruction. The same tile is a function of a lane here, which shares no code with the analysis.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use warplens_db::settings::Settings;
use warplens_db::wire::{Access, KernelResult};
use warplens_db::{Engine, LaunchValues, Overrides};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

pub(crate) static ENGINE: LazyLock<Engine> = LazyLock::new(|| Engine::new(Profiles::builtin()));

/// How the 16-byte piece of a row is placed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Swizzle {
    None,
    /// piece ^ (row & 7).
    Row,
    /// piece ^ ((row >> 1) & 3).
    HalfRow,
    /// Bits 4 to 6 of the byte address with bits 7 to 9.
    Address,
}

/// How the source gets at the address.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    /// `__cvta_generic_to_shared(&tile[row][col])`.
    Element,
    /// A base as an integer, and bytes.
    Bytes,
    /// A helper that takes the pointer.
    Helper,
    /// `cvta.to.shared` in assembly, and a cast.
    Assembly,
    /// Offsets in the brackets of the instruction.
    Offset,
    /// An array of addresses that a loop before has filled.
    Array,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Asked {
    Load(u32, bool),
    Store(u32),
    Copy(u32),
    Vector(u32),
}

#[derive(Debug, Clone)]
struct Case {
    /// Elements of 16 bits in a row without padding: a multiple of 8.
    row: u32,
    /// Elements of padding.
    pad: u32,
    swizzle: Swizzle,
    way: Way,
    asked: Asked,
    /// Rows between the rows of a matrix.
    stride: u32,
    /// Lanes by which the rows are turned.
    turn: u32,
    warps: u32,
    blocks: u32,
    trips: u32,
}

const ROWS: u32 = 64;

impl Case {
    fn pitch(&self) -> u32 {
        (self.row + self.pad) * 2
    }

    /// Row and 16-byte piece of a lane, as the source computes them too.
    fn at(&self, thread: u32, trip: u32) -> (u32, u32) {
        let lane = thread % 32;
        let pieces = self.row / 8;
        match self.asked {
            Asked::Load(..) | Asked::Store(_) => {
                let row = (lane % 16 + self.turn) % 16 * self.stride % ROWS;
                (row, (lane / 16 + trip) % pieces)
            }
            Asked::Copy(_) | Asked::Vector(_) => {
                let piece = thread % pieces;
                ((thread / pieces * self.stride + trip) % ROWS, piece)
            }
        }
    }

    fn byte(&self, thread: u32, trip: u32) -> u32 {
        let (row, piece) = self.at(thread, trip);
        let piece = match self.swizzle {
            Swizzle::None | Swizzle::Address => piece,
            Swizzle::Row => piece ^ (row & 7),
            Swizzle::HalfRow => piece ^ ((row >> 1) & 3),
        };
        let byte = row * self.pitch() + piece * 16;
        if self.swizzle == Swizzle::Address {
            byte ^ ((byte >> 3) & 0x70)
        } else {
            byte
        }
    }

    /// A swizzle needs rows of this many pieces, or its pieces leave the row.
    fn is_sound(&self) -> bool {
        let pieces = self.row / 8;
        match self.swizzle {
            Swizzle::None => true,
            Swizzle::Row => pieces.is_multiple_of(8) && self.pad == 0,
            Swizzle::HalfRow => pieces.is_multiple_of(4) && self.pad == 0,
            Swizzle::Address => (self.row * 2).is_multiple_of(128) && self.pad == 0,
        }
    }

    fn source(&self) -> String {
        let Case {
            row,
            pad,
            stride,
            turn,
            ..
        } = *self;
        let pieces = row / 8;
        let (rows, piece) = match self.asked {
            Asked::Load(..) | Asked::Store(_) => (
                format!("((lane % 16 + {turn}) % 16) * {stride} % {ROWS}"),
                format!("(lane / 16 + trip) % {pieces}"),
            ),
            Asked::Copy(_) | Asked::Vector(_) => (
                format!("(tid / {pieces} * {stride} + trip) % {ROWS}"),
                format!("tid % {pieces}"),
            ),
        };
        let placed = match self.swizzle {
            Swizzle::None | Swizzle::Address => "piece".to_owned(),
            Swizzle::Row => "(piece ^ (row & 7))".to_owned(),
            Swizzle::HalfRow => "(piece ^ ((row >> 1) & 3))".to_owned(),
        };
        let pitch = self.pitch();
        let address = match self.way {
            Way::Element | Way::Array => format!(
                "uint32_t at = (uint32_t)__cvta_generic_to_shared(&tile[row][{placed} * 8]);"
            ),
            Way::Bytes | Way::Offset => format!(
                "uint32_t base = static_cast<uint32_t>(__cvta_generic_to_shared(tile)); \
                 uint32_t at = base + row * {pitch} + {placed} * 16;"
            ),
            Way::Helper => format!("uint32_t at = shared_address(&tile[row][{placed} * 8]);"),
            Way::Assembly => format!(
                "const void *p = &tile[row][{placed} * 8]; uint32_t at; \
                 asm(\"{{ .reg .u64 q; cvta.to.shared.u64 q, %1; cvt.u32.u64 %0, q; }}\" : \"=r\"(at) : \"l\"(p));"
            ),
        };
        let address = if self.swizzle == Swizzle::Address {
            format!("{address} at ^= (at >> 3) & 0x70;")
        } else {
            address
        };
        let (before, offset) = if self.way == Way::Offset {
            ("at -= 32;", "+32")
        } else {
            ("", "")
        };
        let registers = |count: u32, from: u32| {
            let names: Vec<String> = (from..from + count).map(|at| format!("%{at}")).collect();
            format!("{{{}}}", names.join(", "))
        };
        let bound = |count: u32, constraint: &str| {
            let all: Vec<String> = (0..count)
                .map(|at| format!("\"{constraint}\"(r[{at}])"))
                .collect();
            all.join(", ")
        };
        let asked = match self.asked {
            Asked::Load(matrices, transposed) => format!(
                "asm volatile(\"ldmatrix.sync.aligned.m8n8.x{matrices}{}.shared.b16 {}, [%{matrices}{offset}];\\n\" \
                 : {} : \"r\"(at));",
                if transposed { ".trans" } else { "" },
                registers(matrices, 0),
                bound(matrices, "=r"),
            ),
            Asked::Store(matrices) => format!(
                "asm volatile(\"stmatrix.sync.aligned.m8n8.x{matrices}.shared::cta.b16 [%0{offset}], {};\" \
                 :: \"r\"(at), {});",
                registers(matrices, 1),
                bound(matrices, "r"),
            ),
            Asked::Copy(bytes) => format!(
                "asm volatile(\"cp.async.{}.shared.global [%0{offset}], [%1], %2;\" \
                 :: \"r\"(at), \"l\"(in + (blockIdx.x * blockDim.x + tid) * {} + trip * 4096), \"n\"({bytes}));",
                if bytes == 16 { "cg" } else { "ca" },
                bytes / 2,
            ),
            Asked::Vector(bytes) => {
                let words = bytes / 4;
                let vector = match words {
                    1 => "",
                    2 => ".v2",
                    _ => ".v4",
                };
                let target = if words == 1 {
                    "%0".to_owned()
                } else {
                    registers(words, 0)
                };
                format!(
                    "asm volatile(\"ld.shared{vector}.u32 {target}, [%{words}{offset}];\" : {} : \"r\"(at));",
                    bound(words, "=r"),
                )
            }
        };
        let middle = match self.way {
            Way::Array => format!(
                "kept[trip] = at; }}\nfor (int trip = 0; trip < {}; trip++) {{ uint32_t at = kept[trip];",
                self.trips
            ),
            _ => String::new(),
        };
        format!(
            "#include <cuda_fp16.h>\n#include <cstdint>\n\
             __device__ __forceinline__ uint32_t shared_address(const void *p) {{\n\
               return static_cast<uint32_t>(__cvta_generic_to_shared(p));\n}}\n\
             __global__ void k(const half *in, unsigned *out) {{\n\
               __shared__ __align__(1024) half tile[{ROWS}][{row} + {pad}];\n\
               int tid = threadIdx.x, lane = tid & 31; uint32_t r[4] = {{}}, kept[4];\n\
               for (int trip = 0; trip < {}; trip++) {{\n\
                 int row = {rows}, piece = {piece};\n{address} {before}{middle}\n{asked}\n\
               }}\n\
               out[blockIdx.x * blockDim.x + tid] = r[0] + r[1] + r[2] + r[3];\n}}\n",
            self.trips,
        )
    }

    /// Bytes of a lane, and the lanes of each phase.
    fn phases(&self) -> (u32, Vec<Vec<u32>>) {
        let groups = |size: u32, count: u32| {
            (0..count)
                .map(|phase| (phase * size..(phase + 1) * size).collect())
                .collect()
        };
        match self.asked {
            Asked::Load(matrices, _) | Asked::Store(matrices) => (16, groups(8, matrices)),
            Asked::Copy(bytes) | Asked::Vector(bytes) => {
                let phases = bytes / 4;
                (bytes, groups(32 / phases, phases))
            }
        }
    }

    /// Passes over the banks, and the fewest, summed over the launch; requests.
    fn passes(&self) -> (u64, u64, u64) {
        let (bytes, phases) = self.phases();
        let mut sums = (0, 0, 0);
        for warp in 0..self.warps {
            for trip in 0..self.trips {
                for lanes in &phases {
                    let mut banks: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
                    for lane in lanes {
                        let start = self.byte(warp * 32 + lane, trip);
                        for word in start / 4..(start + bytes).div_ceil(4) {
                            banks.entry(word % 32).or_default().insert(word);
                        }
                    }
                    sums.0 += banks.values().map(BTreeSet::len).max().unwrap_or(0) as u64;
                    sums.1 += 1;
                }
                sums.2 += 1;
            }
        }
        let blocks = u64::from(self.blocks);
        (sums.0 * blocks, sums.1 * blocks, sums.2 * blocks)
    }
}

fn estimate(text: &str, block: u32, grid: u32) -> KernelResult {
    let launch = LaunchValues {
        grid: Some([u64::from(grid), 1, 1]),
        block: Some([u64::from(block), 1, 1]),
        ..LaunchValues::default()
    };
    launched(text, launch)
}

/// The kernel of a text under a launch on an H100.
pub(crate) fn launched(text: &str, launch: LaunchValues) -> KernelResult {
    let document = Document::new(text, Language::Cuda);
    let overrides = Overrides {
        argument: launch,
        ..Overrides::default()
    };
    let (settings, problems) = Settings::from_toml("gpu = 'h100-sxm5'");
    assert_eq!(problems, []);
    let found = ENGINE.estimate(
        &document,
        Path::new("k.cu"),
        &settings,
        &overrides,
        &[],
        &[],
        &[],
    );
    let mut found = found.expect("a known GPU");
    found.results.remove(0)
}

fn cases() -> impl Strategy<Value = Case> {
    let asked = prop_oneof![
        (prop::sample::select(vec![1u32, 2, 4]), any::<bool>())
            .prop_map(|(matrices, transposed)| Asked::Load(matrices, transposed)),
        prop::sample::select(vec![1u32, 2, 4]).prop_map(Asked::Store),
        prop::sample::select(vec![4u32, 8, 16]).prop_map(Asked::Copy),
        prop::sample::select(vec![4u32, 8, 16]).prop_map(Asked::Vector),
    ];
    let swizzle = prop::sample::select(vec![
        Swizzle::None,
        Swizzle::None,
        Swizzle::Row,
        Swizzle::HalfRow,
        Swizzle::Address,
    ]);
    let way = prop::sample::select(vec![
        Way::Element,
        Way::Bytes,
        Way::Helper,
        Way::Assembly,
        Way::Offset,
        Way::Array,
    ]);
    let tile = (
        prop::sample::select(vec![16u32, 24, 32, 64, 128]),
        prop::sample::select(vec![0u32, 8, 16, 24, 32]),
        prop::sample::select(vec![1u32, 2, 3, 4]),
        0..16u32,
    );
    (tile, swizzle, way, asked, 1..4u32, 1..4u32, 1..4u32)
        .prop_map(
            |((row, pad, stride, turn), swizzle, way, asked, warps, blocks, trips)| Case {
                row,
                pad,
                swizzle,
                way,
                asked,
                stride,
                turn,
                warps,
                blocks,
                trips,
            },
        )
        .prop_filter("a swizzle that stays in its row", Case::is_sound)
}

fn check(case: &Case) {
    let text = case.source();
    let found = estimate(&text, case.warps * 32, case.blocks);
    let shared: Vec<&Access> = found
        .accesses
        .iter()
        .filter(|access| access.space == "shared")
        .collect();
    assert_eq!(shared.len(), 1, "{text}");
    let access = shared[0];
    let (passes, ideal, requests) = case.passes();
    assert!(access.exact, "{:?}\n{text}", access.why);
    assert_eq!(access.requests, Some(requests as f64), "{text}");
    let mean = |sum: u64| sum as f64 / requests as f64;
    let near = |a: Option<f64>, b: f64| a.is_some_and(|a| (a - b).abs() < 1e-9);
    assert!(
        near(access.passes_per_request, mean(passes)),
        "{:?} for {}\n{text}",
        access.passes_per_request,
        mean(passes)
    );
    assert!(near(access.ideal_passes_per_request, mean(ideal)), "{text}");
    let degree = passes as f64 / ideal as f64;
    assert!(near(access.bank_conflict_degree, degree), "{text}");
    let (bytes, mnemonic) = match case.asked {
        Asked::Load(matrices, _) => (128 * matrices, "ldmatrix"),
        Asked::Store(matrices) => (128 * matrices, "stmatrix"),
        Asked::Copy(bytes) => (32 * bytes, "cp.async"),
        Asked::Vector(bytes) => (32 * bytes, "ld.shared"),
    };
    assert_eq!(access.bytes_per_request, Some(f64::from(bytes)), "{text}");
    let instruction = access.instruction.as_deref().unwrap_or("");
    assert!(instruction.starts_with(mnemonic), "{instruction}\n{text}");
    if let Asked::Copy(bytes) = case.asked {
        let load = found
            .accesses
            .iter()
            .find(|access| access.space == "global");
        let load = load.expect("what it copies");
        assert!(load.exact, "{text}");
        assert_eq!(load.requests, Some(requests as f64), "{text}");
        // Lanes side by side, from a sector's start on.
        let sectors = Some(f64::from(bytes));
        assert_eq!(load.transactions_per_request, sectors, "{text}");
        assert_eq!(load.ideal_transactions_per_request, sectors, "{text}");
    }
    assert!(found.accesses.iter().all(|access| access.space != "local"));
}

#[test]
fn banks_of_generated_instructions_are_those_worked_out_lane_by_lane() {
    let cases_wanted = std::env::var("WARPLENS_CASES").ok();
    let cases_wanted = cases_wanted
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(300);
    let mut runner = TestRunner::new(Config {
        cases: cases_wanted,
        failure_persistence: None,
        ..Config::default()
    });
    let run = runner.run(&cases(), |case| {
        check(&case);
        Ok(())
    });
    if let Err(failed) = run {
        panic!("{failed}");
    }
}

/// What a file has that is not understood, in words, and its results.
fn losses(body: &str) -> (Vec<String>, KernelResult) {
    let text = format!(
        "#include <cstdint>\n__global__ void k(unsigned *out, const unsigned *in) {{\n\
         __shared__ unsigned tile[256]; unsigned r = 0;\n{body}\n\
         tile[threadIdx.x] = in[threadIdx.x]; out[threadIdx.x] = r;\n}}\n"
    );
    let document = Document::new(&text, Language::Cuda);
    let file = ENGINE
        .analyze(
            &document,
            Path::new("k.cu"),
            &Settings::default(),
            &Overrides::default(),
            &warplens_db::Cancel::default(),
        )
        .expect("not cancelled");
    let lost = &file.kernels[0].analysis.facts.not_understood;
    let lost = lost.iter().map(|lost| lost.reason.to_string()).collect();
    (lost, estimate(&text, 128, 2))
}

#[test]
fn assembly_that_is_not_understood_costs_itself_only() {
    let clean = losses("").1.accesses.len();
    for (body, said) in [
        (
            "asm volatile(\"frobnicate.b32 %0, 1;\" : \"=r\"(r));",
            "frobnicate.b32",
        ),
        (
            "asm volatile(\"ld.global.u32 %0;\" : \"=r\"(r));",
            "ld.global.u32",
        ),
        (
            "asm volatile(\"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0}, [%1];\" : \"=r\"(r) : \"r\"(r));",
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16",
        ),
        (
            "asm volatile(\"cp.async.cg.shared.global [%0], [%1], 12;\" :: \"r\"(r), \"l\"(in));",
            "cp.async.cg.shared.global",
        ),
        (
            "asm volatile(\"mov.u32 %0, {%1;\" : \"=r\"(r) : \"r\"(r));",
            "mov.u32",
        ),
        ("asm volatile(\"add.u32 %0, %7, %9;\" : \"=r\"(r));", ""),
        (
            "asm volatile(\"@ ; : } { [ ] ,\" ::);",
            "PTX not understood",
        ),
    ] {
        let (lost, found) = losses(body);
        assert!(
            said.is_empty() || !lost.is_empty() && lost.iter().all(|one| one.contains(said)),
            "{body}: {lost:?}"
        );
        // The other accesses are what they are without it.
        let others = found.accesses.iter().filter(|access| access.exact).count();
        assert_eq!(others, clean, "{body}");
    }
}

#[test]
fn matrix_products_count_and_what_orders_them_does_not() {
    let (lost, found) = losses(
        "float d[4] = {}; unsigned a[4] = {}, b[2] = {};\n\
         for (int i = 0; i < 5; i++)\n\
           asm volatile(\"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\" \
             : \"+f\"(d[0]), \"+f\"(d[1]), \"+f\"(d[2]), \"+f\"(d[3]) \
             : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"r\"(b[0]), \"r\"(b[1]));\n\
         asm volatile(\"wgmma.fence.sync.aligned;\"); asm volatile(\"wgmma.commit_group.sync.aligned;\");\n\
         asm volatile(\"wgmma.wait_group.sync.aligned 0;\"); r = (unsigned)(d[0] + d[1] + d[2] + d[3]);",
    );
    assert_eq!(lost, Vec::<String>::new());
    let count = |class: &str| {
        let found = found.counts.iter().find(|count| count.class == class);
        found.and_then(|count| count.value)
    };
    assert_eq!(count("tensor"), Some(5.0 * 256.0));
    assert_eq!(count("local_load"), None);
    assert!(found.accesses.iter().all(|access| access.space != "local"));
}

#[test]
fn a_bulk_copy_is_one_request_of_all_its_bytes() {
    let (lost, found) = losses(
        "uint64_t *bar = (uint64_t *)tile; if (threadIdx.x == 0) asm volatile(\"cp.async.bulk.shared::cluster.global\
         .mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];\" \
         :: \"r\"((unsigned)__cvta_generic_to_shared(tile)), \"l\"(in), \"r\"(512), \"r\"((unsigned)__cvta_generic_to_shared(bar)));",
    );
    assert_eq!(lost, Vec::<String>::new());
    let copies = found
        .accesses
        .iter()
        .filter(|access| access.instruction.is_some());
    let copies: Vec<&Access> = copies.collect();
    assert_eq!(copies.len(), 2);
    for access in copies {
        assert!(access.exact);
        assert_eq!(access.bytes_per_request, Some(512.0));
        assert_eq!(access.requests, Some(2.0));
        match access.space {
            "global" => assert_eq!(access.transactions_per_request, Some(16.0)),
            space => {
                assert_eq!(space, "shared");
                assert_eq!(access.passes_per_request, Some(4.0));
            }
        }
    }
}

/// Time of a kernel with a device function that loads rows, and its accesses to shared memory.
fn by_helper(body: &str) -> (f64, Vec<(f64, f64)>) {
    let text = format!(
        "#include <cstdint>\n\
         __device__ void rows(uint32_t *r, uint32_t at) {{\n\
           asm volatile(\"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%0,%1,%2,%3}}, [%4];\" \
             : \"=r\"(r[0]), \"=r\"(r[1]), \"=r\"(r[2]), \"=r\"(r[3]) : \"r\"(at)); }}\n\
         __global__ void k(uint32_t *out) {{\n\
           __shared__ __align__(128) uint32_t a[64][32], b[64][32];\n\
           uint32_t sum = 0, lane = threadIdx.x % 32, r[4];\n\
           for (int turn = 0; turn < 4096; turn++) {{\n{body}\n__syncthreads(); a[turn % 64][lane] = sum; }}\n\
           out[threadIdx.x] = sum;\n}}\n"
    );
    let found = estimate(&text, 128, 1056);
    let shared = found.accesses.iter();
    let shared = shared.filter(|access| access.space == "shared" && access.op == "load");
    let passes = shared
        .map(|access| {
            (
                access.requests.expect("counted"),
                access.passes_per_request.expect("known"),
            )
        })
        .collect();
    let time = found.estimates["auto"].time_ms.expect("a time");
    (time, passes)
}

#[test]
fn each_call_of_a_function_costs_where_it_is() {
    let address = |array: &str| {
        format!("rows(r, (uint32_t)__cvta_generic_to_shared(&{array}[lane][0]));\nsum += r[0];\n")
    };
    let (one, passes) = by_helper(&address("a"));
    assert_eq!(passes.len(), 1);
    let (two, passes) = by_helper(&(address("a") + &address("b")));
    // Rows of 128 bytes are all in the same four banks.
    assert_eq!(passes, [(4096.0 * 4224.0, 32.0); 2]);
    assert!(two > 1.7 * one, "{one} and {two} ms");
}

#[test]
fn what_a_bulk_copy_brings_takes_its_time() {
    let kernel = |copy: &str| {
        format!(
            "#include <cstdint>\n__global__ void k(const float *in, float *out) {{\n\
             __shared__ __align__(128) float tile[2048]; __shared__ uint64_t bar; float sum = 0;\n\
             for (int turn = 0; turn < 64; turn++) {{\n{copy}\n__syncthreads(); }}\n\
             out[blockIdx.x * 128 + threadIdx.x] = sum + tile[threadIdx.x];\n}}\n"
        )
    };
    let bulk = kernel(
        "if (threadIdx.x == 0) asm volatile(\"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 8192, [%2];\" \
         :: \"r\"((uint32_t)__cvta_generic_to_shared(tile)), \"l\"(in + ((size_t)blockIdx.x * 64 + turn) * 2048), \
            \"r\"((uint32_t)__cvta_generic_to_shared(&bar)));",
    );
    let loads = kernel(
        "for (int i = 0; i < 16; i++) sum += in[((size_t)blockIdx.x * 64 + turn) * 2048 + i * 128 + threadIdx.x];",
    );
    let [bulk, loads] = [bulk, loads].map(|text| {
        let found = estimate(&text, 128, 1056);
        found.estimates["auto"].time_ms.expect("a time")
    });
    // 554 MB at 3.35 TB/s.
    assert!(bulk > 0.165, "{bulk} ms");
    assert!(
        (0.7..1.5).contains(&(bulk / loads)),
        "{bulk} and {loads} ms"
    );
}

#[test]
fn shared_memory_of_another_block_is_the_clusters() {
    for body in [
        "auto c = cg::this_cluster(); float *p = c.map_shared_rank(mine, c.block_rank() ^ 1); out[threadIdx.x] = p[threadIdx.x * 2];",
        "auto c = cg::this_cluster(); out[threadIdx.x] = *c.map_shared_rank(&mine[threadIdx.x * 2], 0);",
        "uint32_t far; float v; asm volatile(\"mapa.shared::cluster.u32 %0, %1, %2;\" : \"=r\"(far) \
         : \"r\"((uint32_t)__cvta_generic_to_shared(&mine[threadIdx.x * 2])), \"r\"(1)); \
         asm volatile(\"ld.shared::cluster.f32 %0, [%1];\" : \"=f\"(v) : \"r\"(far)); out[threadIdx.x] = v;",
    ] {
        let text = format!(
            "#include <cooperative_groups.h>\n#include <cstdint>\nnamespace cg = cooperative_groups;\n\
             __global__ void __cluster_dims__(2, 1, 1) k(float *out) {{ __shared__ float mine[256];\n\
             mine[threadIdx.x] = threadIdx.x; __syncthreads();\n{body}\n}}\n"
        );
        let found = estimate(&text, 128, 64);
        assert!(
            found.not_understood.is_empty(),
            "{body}: {:?}",
            found.not_understood
        );
        let far: Vec<&Access> = found
            .accesses
            .iter()
            .filter(|access| access.space == "cluster")
            .collect();
        assert_eq!(far.len(), 1, "{body}");
        assert!(far[0].exact, "{body}");
        assert_eq!(far[0].passes_per_request, Some(2.0), "{body}");
    }
}

#[test]
fn addresses_of_a_lanes_arithmetic_are_known() {
    let passes = |address: &str| {
        let text = format!(
            "#include <cstdint>\n__global__ void k(unsigned *out) {{\n\
             __shared__ __align__(128) unsigned tile[64][32]; unsigned r[4], lane = threadIdx.x % 32;\n\
             {address}\n out[threadIdx.x] = r[0];\n}}\n"
        );
        let found = estimate(&text, 128, 2);
        let rows: Vec<&Access> = found
            .accesses
            .iter()
            .filter(|access| {
                access
                    .instruction
                    .as_deref()
                    .is_some_and(|of| of.starts_with("ldmatrix"))
            })
            .collect();
        assert_eq!(rows.len(), 1, "{address}");
        rows[0].passes_per_request.filter(|_| rows[0].exact)
    };
    let load = |at: &str| {
        format!(
            "asm volatile(\"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%0,%1,%2,%3}}, [{at}];\" \
             : \"=r\"(r[0]), \"=r\"(r[1]), \"=r\"(r[2]), \"=r\"(r[3])"
        )
    };
    let base = "(unsigned)__cvta_generic_to_shared(tile)";
    // The warp as CUTLASS finds it, which is the same in all lanes.
    for warp in [
        "__shfl_sync(~0u, threadIdx.x / 32, 0)",
        "__reduce_max_sync(~0u, threadIdx.x / 32)",
    ] {
        let text = format!(
            "unsigned w = {warp}; {} : \"r\"({base} + (w % 2 * 32 + lane) * 128));",
            load("%4")
        );
        assert_eq!(passes(&text), Some(32.0), "{warp}");
    }
    // A number among the operands.
    let text = format!(
        "{} : \"r\"({base} + lane * 128), \"n\"(64));",
        load("%4 + %5")
    );
    assert_eq!(passes(&text), Some(32.0));
    // lane * 128 ^ ((lane & 7) << 4): no two rows of a matrix in the same banks.
    let text = format!(
        "unsigned at = lane * 128; asm(\"lop3.b32 %0, %1, %2, %3, 0x78;\" : \"=r\"(at) : \"r\"(at), \"r\"(lane << 4), \"r\"(0x70)); \
         {} : \"r\"({base} + at));",
        load("%4")
    );
    assert_eq!(passes(&text), Some(4.0));
    // Addresses that an iteration after the next is back at: two halves of the tile that change places, a stage that begins
    // anew, bits that are turned; one half of the tile is read as the other.
    let rounds = |before: &str, at: &str, after: &str| {
        format!(
            "unsigned (*first)[32] = tile, (*second)[32] = tile + 32; unsigned p = {base}; {before} \
             for (unsigned t = 0; t < gridDim.x * 50; t++) {{ {} : \"r\"({at})); {after} }}",
            load("%4")
        )
    };
    for (before, at, after) in [
        (
            "",
            "(unsigned)__cvta_generic_to_shared(first[lane])",
            "unsigned (*other)[32] = first; first = second; second = other;",
        ),
        (
            "",
            "p + lane * 128",
            "p = t % 4 == 3 ? p - 3 * 1024 : p + 1024;",
        ),
        ("p += lane * 128;", "p", "p ^= 64;"),
        (
            "unsigned stage = 0;",
            "p + stage * 4096 + lane * 128",
            "stage ^= 1;",
        ),
    ] {
        assert_eq!(passes(&rounds(before, at, after)), Some(32.0), "{after}");
    }
    // Rows that never come back.
    assert_eq!(
        passes(&rounds("", "p + lane * 128", "p = p * 5 + t * t;")),
        None
    );
    // What differs between lanes of a warp is another lane's.
    let text = format!(
        "unsigned w = __shfl_xor_sync(~0u, lane, 5); {} : \"r\"({base} + w * 128));",
        load("%4")
    );
    assert_eq!(passes(&text), None);
}

#[test]
fn a_predicate_of_a_copy_says_that_its_source_is_ignored() {
    let text = "#include <cstdint>\n__global__ void k(const float4 *in, float *out) {\n\
         __shared__ __align__(16) float4 tile[128]; int t = threadIdx.x;\n\
         asm volatile(\"{ .reg .pred p; setp.ge.s32 p, %2, 96; cp.async.cg.shared.global [%0], [%1], 16, p; }\" \
           :: \"r\"((uint32_t)__cvta_generic_to_shared(&tile[t])), \"l\"(in + t), \"r\"(t));\n\
         asm volatile(\"cp.async.wait_all;\"); __syncthreads(); out[t] = tile[t].x;\n}\n";
    let found = estimate(text, 128, 1);
    let requests = |space: &str, op: &str| {
        let mut copies = found
            .accesses
            .iter()
            .filter(|access| access.instruction.is_some());
        let copy = copies.find(|access| access.space == space && access.op == op);
        copy.and_then(|access| access.requests)
    };
    assert_eq!(requests("global", "load"), Some(3.0));
    assert_eq!(requests("shared", "store"), Some(4.0));
}

/// 64 blocks that each bring 128 boxes of 64 × 128 elements of 2 bytes, from these places of a matrix of 8192 × 8192.
fn boxes(encode: &str, corner: [&str; 2]) -> KernelResult {
    let [x, y] = corner;
    let text = format!(
        "#include <cuda.h>\n#include <cstdint>\n\
         __device__ void bring(void *to, const CUtensorMap *map, int x, int y, uint64_t *bar) {{\n\
           asm volatile(\"cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {{%2, %3}}], [%4];\" \
             :: \"r\"((uint32_t)__cvta_generic_to_shared(to)), \"l\"(map), \"r\"(x), \"r\"(y), \"r\"((uint32_t)__cvta_generic_to_shared(bar))); }}\n\
         __global__ void k(const __grid_constant__ CUtensorMap a, float *out, int n) {{\n\
           __shared__ __align__(128) unsigned short tile[64 * 128]; __shared__ uint64_t bar;\n\
           for (int i = 0; i < n; i++) {{ if (threadIdx.x == 0) bring(tile, &a, {x}, {y}, &bar); __syncthreads(); }}\n\
           out[threadIdx.x] = tile[threadIdx.x]; }}\n\
         CUtensorMap made(void *p) {{ CUtensorMap m; cuuint64_t all[2] = {{8192, 8192}}; cuuint64_t row[1] = {{16384}};\n\
           cuuint32_t box[2] = {{64, 128}}; cuuint32_t one[2] = {{1, 1}};\n\
           {encode}(&m, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, p, all, row, box, one, CU_TENSOR_MAP_INTERLEAVE_NONE,\n\
             CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE); return m; }}\n\
         int main() {{ void *p; float *out; cudaMalloc(&p, 8192 * 8192 * 2); cudaMalloc(&out, 512);\n\
           k<<<64, 128>>>(made(p), out, 128); }}\n"
    );
    launched(&text, LaunchValues::default())
}

/// The copies among the accesses: the load, the store.
fn copies(found: &KernelResult) -> [&Access; 2] {
    let of = |op: &str| {
        let mut all = found.accesses.iter();
        all.find(|access| access.instruction.is_some() && access.op == op)
            .expect("a copy")
    };
    [of("load"), of("store")]
}

#[test]
fn a_copy_by_a_tensor_map_brings_the_box_that_the_program_encodes() {
    // By its name, unseen, by a pointer that the driver gave, by one that a function gives or an object holds.
    for encode in [
        "cuTensorMapEncodeTiled",
        "encode",
        "auto of_driver = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(found()); of_driver",
        "PFN_cuTensorMapEncodeTiled_v12000 of_driver = nullptr; found((void **)&of_driver); of_driver",
        "found_encode()",
        "driver().encode",
    ] {
        let found = boxes(encode, ["i * 64", "blockIdx.x * 128"]);
        let [load, store] = copies(&found);
        for access in [load, store] {
            assert_eq!(access.bytes_per_request, Some(16384.0), "{encode}");
            assert_eq!(access.requests, Some(64.0 * 128.0));
        }
        assert_eq!(store.passes_per_request, Some(128.0));
        // Each row is 128 bytes from a multiple of them.
        assert_eq!(load.transactions_per_request, Some(512.0));
        assert!(load.exact);
        // 134 MB at 3.35 TB/s.
        let time = found.estimates["auto"].time_ms.expect("a time");
        assert!((0.04..0.08).contains(&time), "{time} ms");
    }
}

#[test]
fn boxes_that_several_blocks_bring_are_read_from_device_memory_once() {
    let dram = |corner| {
        let found = boxes("cuTensorMapEncodeTiled", corner);
        found.estimates["auto"].detail["dram_bytes"]
    };
    let each = dram(["i * 64", "blockIdx.x * 128"]);
    let same = dram(["i * 64", "128"]);
    let pairs = dram(["i * 64", "blockIdx.x / 2 * 128"]);
    let matrix = 8192.0 * 8192.0 * 2.0;
    assert!((each / matrix - 1.0).abs() < 0.02, "{each}");
    assert!((pairs / matrix - 0.5).abs() < 0.02, "{pairs}");
    assert!((same / matrix - 1.0 / 64.0).abs() < 0.01, "{same}");
}

#[test]
fn how_a_box_lies_in_its_sectors_is_told_where_it_is_known() {
    for (corner, exact) in [
        (["i * 64", "0"], true),
        (["i * 16", "blockIdx.x"], true),
        // Rows that begin within a sector, that end behind the matrix, where data says.
        (["i * 8", "0"], false),
        (["i * 64 + 64", "0"], false),
        (["i * 64", "(int)out[0]"], false),
    ] {
        let found = boxes("cuTensorMapEncodeTiled", corner);
        let [load, _] = copies(&found);
        assert_eq!(load.exact, exact, "{corner:?}");
        assert_eq!(load.requests, Some(64.0 * 128.0));
    }
}

/// Instructions of one warp by class.
fn instructions(body: &str, gpu: &str) -> impl Fn(&str) -> f64 + use<> {
    let text = format!(
        "__global__ void k(unsigned *out, const unsigned *in) {{ unsigned r = in[threadIdx.x], s = in[threadIdx.x + 32];\n{body}\nout[threadIdx.x] = r; }}"
    );
    let settings = Settings {
        gpu: Some(gpu.to_owned()),
        ..Settings::default()
    };
    let overrides = Overrides {
        argument: LaunchValues {
            grid: Some([1, 1, 1]),
            block: Some([32, 1, 1]),
            ..LaunchValues::default()
        },
        ..Overrides::default()
    };
    let file = ENGINE
        .analyze(
            &Document::new(&text, Language::Cuda),
            Path::new("k.cu"),
            &settings,
            &overrides,
            &warplens_db::Cancel::default(),
        )
        .expect("not cancelled");
    let kernel = &file.kernels[0].analysis;
    assert_eq!(kernel.facts.not_understood.len(), 0, "{body}");
    let executed = kernel.input.instructions.as_ref().expect("compiled");
    let classes = executed.classes.clone();
    move |name| {
        let class = warplens_codegen::Class::named(name).expect("a class");
        classes.get(&class).copied().unwrap_or(0.0)
    }
}

#[test]
fn registers_hold_what_instructions_make_of_them() {
    // Counted in what nvcc 13 writes for sm_80.
    for (assembly, class, count) in [
        ("sub.f16x2 %0, %0, %1;", "hfma2", 1.0),
        ("mul.f16x2 %0, %0, %1;", "hfma2", 1.0),
        ("fma.rn.bf16x2 %0, %0, %1, %0;", "hfma2", 1.0),
        ("max.f16x2 %0, %0, %1;", "hfma2", 1.0),
        ("neg.f16x2 %0, %1;", "hfma2", 1.0),
        ("abs.f16x2 %0, %1;", "hfma2", 1.0),
        ("ex2.approx.f16x2 %0, %1;", "mufu", 2.0),
        ("ex2.approx.ftz.f32 %0, %1;", "mufu", 1.0),
        ("tanh.approx.f32 %0, %1;", "mufu", 1.0),
        ("add.f32 %0, %0, %1;", "fadd", 1.0),
        ("cvt.rn.bf16x2.f32 %0, %0, %1;", "f2f", 1.0),
        (
            "{ .reg .b16 h; mov.b32 {h, _}, %1; cvt.f32.f16 %0, h; }",
            "f2f",
            1.0,
        ),
        ("mov.b32 %0, %1;", "mov", 0.0),
    ] {
        let plain = instructions("", "a100-sxm4-40gb");
        let body = format!("asm volatile(\"{assembly}\" : \"+r\"(r) : \"r\"(s));");
        let found = instructions(&body, "a100-sxm4-40gb");
        for converted in ["i2f", "f2i"] {
            assert_eq!(found(converted), 0.0, "{assembly}");
        }
        assert_eq!(found(class) - plain(class), count, "{assembly}");
    }
    let found = instructions(
        "asm volatile(\"ex2.approx.f32 %0, %1;\" : \"+r\"(r) : \"r\"(s));",
        "a100-sxm4-40gb",
    );
    assert_eq!(
        [found("mufu"), found("fmul"), found("fsetp"), found("ffma")],
        [1.0, 2.0, 1.0, 0.0]
    );
}

#[test]
fn products_that_an_architecture_lacks_are_what_nvcc_writes() {
    let product = |shape: &str, left: &str, right: &str| {
        format!(
            "asm volatile(\"{{ .reg .b32 a, b; mma.sync.aligned.{shape} {{%0, a, b, a}}, {{{left}}}, {{{right}}}, {{%0, a, b, a}}; }}\" : \"+r\"(r) : \"r\"(s));"
        )
    };
    let small = product("m16n8k32.row.col.f32.e4m3.e4m3.f32", "a, b, %1, a", "b, %1");
    let nibbles = product("m16n8k64.row.col.s32.s4.s4.s32", "a, b, %1, a", "b, %1");
    for (body, gpu, counts) in [
        (&small, "rtx-4090", [("hmma", 1.0), ("f2f", 0.0)]),
        (&small, "h100-sxm5", [("hmma", 2.0), ("f2f", 12.0)]),
        (&nibbles, "a100-sxm4-40gb", [("hmma", 1.0), ("shf", 0.0)]),
        (&nibbles, "h100-sxm5", [("hmma", 2.0), ("shf", 48.0)]),
    ] {
        let found = instructions(body, gpu);
        for (class, count) in counts {
            assert_eq!(found(class), count, "{class} on {gpu}: {body}");
        }
    }
    let quarters = "float c[8] = {}; asm volatile(\"mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%0,%1,%2,%3,%4,%5,%6,%7},{%8,%9},{%8,%9},{%0,%1,%2,%3,%4,%5,%6,%7};\" \
        : \"+f\"(c[0]), \"+f\"(c[1]), \"+f\"(c[2]), \"+f\"(c[3]), \"+f\"(c[4]), \"+f\"(c[5]), \"+f\"(c[6]), \"+f\"(c[7]) : \"r\"(r), \"r\"(s)); r = __float_as_uint(c[0]);";
    let found = instructions(quarters, "a100-sxm4-40gb");
    assert_eq!(
        [found("hmma"), found("shfl"), found("ffma")],
        [0.0, 12.0, 32.0]
    );
    assert_eq!(instructions(quarters, "t4")("hmma"), 4.0);
}

#[test]
fn what_a_thread_keeps_in_its_own_array_is_no_data_in_memory() {
    let loads = |body: &str| {
        let text = format!(
            "__global__ void k(unsigned *out, const uint4 *in, int n) {{\n\
             unsigned r = 0;\n{body}\nout[threadIdx.x] = r;\n}}\n"
        );
        let found = estimate(&text, 128, 2).accesses;
        let loads = found
            .into_iter()
            .filter(|access| access.space == "global" && access.op == "load");
        loads.collect::<Vec<Access>>()
    };
    let pointers = loads(
        "const uint4 *p[2]; for (int i = 0; i < 2; i++) p[i] = in + threadIdx.x + 4096 * i;\n\
         for (int i = 0; i < 2; i++) r += p[i]->x;",
    );
    assert_eq!(pointers.len(), 1);
    assert!(pointers[0].exact);
    assert_eq!(pointers[0].transactions_per_request, Some(16.0));
    let carried = loads(
        "const uint4 *p[2]; p[0] = in; p[1] = in + 4096;\n\
         for (int k = 0; k < n; k++) { r += p[0]->x + p[1]->x; p[0] += 8; p[1] += 8; }",
    );
    let exact = |access: &Access| access.exact && access.transactions_per_request == Some(1.0);
    assert!(carried.len() == 2 && carried.iter().all(exact));
    // What a loop carries in memory is not followed, which is said as it is.
    for body in [
        "int at[2] = {}; for (int k = 0; k < n; k++) for (int i = 0; i < 2; i++) { r += in[at[i]].x; at[i] += 8192; }",
        "const uint4 *p[2]; p[0] = in; p[1] = in + 4096; const uint4 **q = p;\n\
         for (int k = 0; k < n; k++) { r += q[0]->x + q[1]->x; q[0] += 8; q[1] += 8; }",
    ] {
        let found = loads(body);
        assert!(!found.is_empty(), "{body}");
        for access in found {
            let why = access.why.unwrap_or_default();
            assert!(!access.exact && !why.contains("data"), "{body}: {why}");
        }
    }
}
