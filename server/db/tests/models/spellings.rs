//! The same work written in two ways has the same traffic; what data decides moves no more than its array and no less than what is
//! asked for.

use std::collections::BTreeMap;
use std::path::Path;

use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, LaunchValues, Overrides};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

/// Bytes that L2 and DRAM move, and the time.
struct Moved {
    l2: f64,
    dram: f64,
    ms: f64,
}

struct Launch<'a> {
    grid: [u64; 3],
    block: [u64; 3],
    args: &'a [(&'a str, i64)],
    arrays: &'a [(&'a str, u64)],
}

fn moved(text: &str, launch: &Launch) -> Moved {
    let named = launch
        .args
        .iter()
        .map(|(name, value)| ((*name).to_owned(), *value));
    let arrays = launch
        .arrays
        .iter()
        .map(|(name, bytes)| ((*name).to_owned(), *bytes));
    let overrides = Overrides {
        argument: LaunchValues {
            grid: Some(launch.grid),
            block: Some(launch.block),
            args: named.collect::<BTreeMap<_, _>>(),
            ..LaunchValues::default()
        },
        array_bytes: arrays.collect(),
        ..Overrides::default()
    };
    let settings = Settings {
        gpu: Some("a100-sxm4-40gb".to_owned()),
        ..Settings::default()
    };
    let file = Engine::new(Profiles::builtin())
        .analyze(
            &Document::new(text, Language::Cuda),
            Path::new("spelling.cu"),
            &settings,
            &overrides,
            &Cancel::default(),
        )
        .expect("not cancelled");
    let estimate = file.kernels[0].analysis.estimate();
    Moved {
        l2: estimate.detail["l2_bytes"],
        dram: estimate.detail["dram_bytes"],
        ms: estimate.time_ms.expect("a time"),
    }
}

fn same(one: &Moved, other: &Moved, what: &str) {
    for (a, b, level) in [(one.l2, other.l2, "L2"), (one.dram, other.dram, "DRAM")] {
        assert!((a / b - 1.0).abs() < 0.05, "{what}: {level} {a} {b}");
    }
    assert!(
        (one.ms / other.ms - 1.0).abs() < 0.15,
        "{what}: {} {}",
        one.ms,
        other.ms
    );
}

#[test]
fn a_tile_is_one_whether_the_block_or_a_division_makes_it_two_dimensional() {
    let two = "__global__ void k(const float* in, float* out, int n) {
        int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
        out[y * n + x] = in[x * n + y];
    }";
    let one = "__global__ void k(const float* in, float* out, int n) {
        int x = blockIdx.x * 32 + threadIdx.x % 32, y = blockIdx.y * 8 + threadIdx.x / 32;
        out[y * n + x] = in[x * n + y];
    }";
    let launch = |block| Launch {
        grid: [128, 512, 1],
        block,
        args: &[("n", 4096)],
        arrays: &[],
    };
    let (two, one) = (
        moved(two, &launch([32, 8, 1])),
        moved(one, &launch([256, 1, 1])),
    );
    same(&two, &one, "a divided id");
}

#[test]
fn warps_of_a_block_that_take_a_row_each_read_rows_of_their_own() {
    let by_y = "__global__ void k(const float* in, float* out, int n) {
        int row = blockIdx.x * 8 + threadIdx.y;
        float sum = 0;
        for (int i = threadIdx.x; i < n; i += 32) sum += in[row * n + i];
        out[row * 32 + threadIdx.x] = sum;
    }";
    let by_warp = "__global__ void k(const float* in, float* out, int n) {
        int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x & 31;
        float sum = 0;
        for (int i = lane; i < n; i += 32) sum += in[row * n + i];
        out[row * 32 + lane] = sum;
    }";
    let launch = |block| Launch {
        grid: [2048, 1, 1],
        block,
        args: &[("n", 8192)],
        arrays: &[],
    };
    let (by_y, by_warp) = (
        moved(by_y, &launch([32, 8, 1])),
        moved(by_warp, &launch([256, 1, 1])),
    );
    same(&by_y, &by_warp, "a warp a row");
    let matrix = 4.0 * 8192.0 * 16384.0;
    assert!(by_warp.dram > 0.99 * matrix, "{} {matrix}", by_warp.dram);
}

#[test]
fn neighbours_around_the_edges_of_a_periodic_grid_are_read_once() {
    let stencil = "__global__ void k(const float* in, float* out, int w, int h) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        int x = i % w, y = i / w;
        float up = in[(y + h - 1) % h * w + x], down = in[(y + 1) % h * w + x];
        float left = in[y * w + (x + w - 1) % w], right = in[y * w + (x + 1) % w];
        out[i] = in[i] + up + down + left + right;
    }";
    let (w, h) = (4096_u32, 16384_u32);
    let launch = Launch {
        grid: [u64::from(w) * u64::from(h) / 256, 1, 1],
        block: [256, 1, 1],
        args: &[("w", w.into()), ("h", h.into())],
        arrays: &[],
    };
    let arrays = 2.0 * 4.0 * f64::from(w) * f64::from(h);
    let dram = moved(stencil, &launch).dram;
    assert!(dram >= arrays, "{dram} {arrays}");
    assert!(dram < 1.1 * arrays, "{dram} {arrays}");
}

/// Groups of eight by eight tiles: handed out as one number and taken apart again, or used as they are.
#[test]
fn a_tile_is_one_whether_its_number_is_handed_on_or_its_row_and_column() {
    let kernel = |tile: &str| {
        format!(
            "__global__ void k(const float* a, const float* b, float* c, int n, int tiles) {{
        int group = blockIdx.x / 64, at = blockIdx.x % 64;
        int y = group / (tiles / 8) * 8 + at / 8, x = group % (tiles / 8) * 8 + at % 8;
        {tile}
        int i = row * 32 + threadIdx.y, j = column * 32 + threadIdx.x;
        float sum = 0;
        for (int k = 0; k < n; k++) sum += a[i * n + k] * b[k * n + j];
        c[i * n + j] = sum;
    }}"
        )
    };
    let launch = Launch {
        grid: [128 * 128, 1, 1],
        block: [32, 32, 1],
        args: &[("n", 4096), ("tiles", 128)],
        arrays: &[],
    };
    let plain = moved(&kernel("int row = y, column = x;"), &launch);
    let handed = kernel("int tile = y * tiles + x; int row = tile / tiles, column = tile % tiles;");
    same(&moved(&handed, &launch), &plain, "a tile's number");
}

#[test]
fn an_id_that_is_split_and_put_together_is_the_id() {
    let split = "__global__ void k(const float* in, float* out, int B, int T, int C) {
        int id = blockIdx.x * blockDim.x + threadIdx.x;
        if (id >= B * T) return;
        int b = id / T, t = id % T;
        const float* row = in + b * T * C + t * C;
        float sum = 0;
        for (int i = 0; i < C; i++) sum += row[i];
        out[b * T + t] = sum;
    }";
    let whole = "__global__ void k(const float* in, float* out, int B, int T, int C) {
        int id = blockIdx.x * blockDim.x + threadIdx.x;
        if (id >= B * T) return;
        float sum = 0;
        for (int i = 0; i < C; i++) sum += in[id * C + i];
        out[id] = sum;
    }";
    for t in [1024, 1000] {
        let args = [("B", 64), ("T", t), ("C", 256)];
        let launch = || Launch {
            grid: [256, 1, 1],
            block: [256, 1, 1],
            args: &args,
            arrays: &[],
        };
        same(
            &moved(split, &launch()),
            &moved(whole, &launch()),
            "a split id",
        );
    }
}

#[test]
fn block_ids_that_are_divided_are_those_of_two_dimensions() {
    let plain = "__global__ void k(const float* in, float* out, int n) {
        int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
        float sum = 0;
        for (int i = 0; i < 8; i++) sum += in[(y + i) * n + x];
        out[y * n + x] = sum;
    }";
    let divided = "__global__ void k(const float* in, float* out, int n) {
        int bx = blockIdx.x % 128, by = blockIdx.x / 128;
        int x = bx * 32 + threadIdx.x, y = by * 8 + threadIdx.y;
        float sum = 0;
        for (int i = 0; i < 8; i++) sum += in[(y + i) * n + x];
        out[y * n + x] = sum;
    }";
    let launch = |grid| Launch {
        grid,
        block: [32, 8, 1],
        args: &[("n", 4096)],
        arrays: &[],
    };
    let (plain, divided) = (
        moved(plain, &launch([128, 511, 1])),
        moved(divided, &launch([128 * 511, 1, 1])),
    );
    same(&plain, &divided, "swizzled blocks");
}

#[test]
fn a_grid_stride_loop_moves_what_a_thread_an_element_does() {
    let plain = "__global__ void k(const float* in, float* out) {
        int i = blockIdx.x * 256 + threadIdx.x;
        out[i] = in[i];
    }";
    let stride = "__global__ void k(const float* in, float* out, int n) {
        for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += 256 * gridDim.x) out[i] = in[i];
    }";
    let launch = |grid, args| Launch {
        grid: [grid, 1, 1],
        block: [256, 1, 1],
        args,
        arrays: &[],
    };
    let plain = moved(plain, &launch(262_144, &[]));
    let stride = moved(stride, &launch(864, &[("n", 67_108_864)]));
    for (a, b) in [(plain.l2, stride.l2), (plain.dram, stride.dram)] {
        assert!((a / b - 1.0).abs() < 0.02, "{a} {b}");
    }
}

#[test]
fn rows_picked_by_data_move_whole_rows_and_no_more_than_their_array() {
    let text = "__global__ void k(const float* in, const int* rows, float* out, int n) {
        int row = rows[blockIdx.x];
        for (int i = threadIdx.x; i < n; i += 256) out[blockIdx.x * n + i] = in[row * n + i];
    }";
    let launch = |bytes| Launch {
        grid: [16_384, 1, 1],
        block: [256, 1, 1],
        args: &[("n", 1024)],
        arrays: bytes,
    };
    let written = 4.0 * 1024.0 * 16_384.0;
    // A table that L2 holds is read from DRAM once, a large one as often as it is asked for.
    let small = moved(text, &launch(&[("in", 4 << 20)]));
    let large = moved(text, &launch(&[("in", 16 << 30)]));
    let read = small.dram - written;
    assert!(read < 1.2 * f64::from(4 << 20), "{read}");
    let read = large.dram / written - 1.0;
    assert!((0.95..1.05).contains(&read), "{read}");
}

#[test]
fn what_is_scaled_by_a_factor_from_memory_stays_side_by_side() {
    let text = "__global__ void k(const float* in, const float* scale, float* out, int n) {
        int x = blockIdx.x * 256 + threadIdx.x, y = blockIdx.y;
        int from = (int)(x * scale[y]);
        out[y * n + x] = in[y * n + from];
    }";
    let bytes = 4 * 4096 * 4096;
    let launch = Launch {
        grid: [16, 4096, 1],
        block: [256, 1, 1],
        args: &[("n", 4096)],
        arrays: &[("in", bytes)],
    };
    let moved = moved(text, &launch);
    let both = 2.0 * bytes as f64;
    assert!(
        (0.9..1.3).contains(&(moved.dram / both)),
        "{}",
        moved.dram / both
    );
    assert!(moved.l2 < 2.0 * both, "{}", moved.l2 / both);
}

#[test]
fn a_launch_takes_as_long_whether_it_is_given_or_assumed() {
    // 3538944 rows of 1024 words pass what an `int` holds: the index has no value in the source, the machine goes somewhere.
    let text = "__global__ void copy_rows(const float *src, float *dst, int pitch, int rows) {
        for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < rows; row += blockDim.x * gridDim.x)
            for (int k = 0; k < 8; ++k) dst[row * pitch + k] = src[row * pitch + k];
    }";
    let given = |launch: LaunchValues| {
        let overrides = Overrides {
            argument: LaunchValues {
                args: BTreeMap::from([("pitch".to_owned(), 1024), ("rows".to_owned(), 3_538_944)]),
                ..launch
            },
            ..Overrides::default()
        };
        let file = Engine::new(Profiles::builtin())
            .analyze(
                &Document::new(text, Language::Cuda),
                Path::new("copy.cu"),
                &Settings::default(),
                &overrides,
                &Cancel::default(),
            )
            .expect("not cancelled");
        let kernel = &file.kernels[0];
        let launch = &kernel.analysis.facts.launch;
        let ms = kernel.analysis.estimate().time_ms.expect("a time");
        (launch.grid, launch.block, ms)
    };
    let (grid, block, assumed) = given(LaunchValues::default());
    let (_, _, said) = given(LaunchValues {
        grid: Some(grid),
        block: Some(block),
        ..LaunchValues::default()
    });
    assert!((assumed / said - 1.0).abs() < 1e-6, "{assumed} {said}");
}

/// `LDGSTS` moves pairs of a sector and a segment of shared memory: see `models/src/input/copies.rs`.
#[test]
fn a_pad_that_splits_segments_makes_copies_ask_for_sectors_twice() {
    let padded = |floats: u32| {
        let text = format!(
            "__global__ void k(const float4* in, float* out, int n) {{
    __shared__ __align__(128) float tile[64][{floats}];
    const int t = threadIdx.x;
    float sum = 0;
    for (int i = 0; i < n; i++) {{
        __pipeline_memcpy_async(&tile[t / 4][t % 4 * 4], &in[(blockIdx.x * n + i) * 256 + t], 16);
        __pipeline_commit();
        __pipeline_wait_prior(0);
        __syncthreads();
        sum += tile[t % 64][t / 64];
        __syncthreads();
    }}
    out[blockIdx.x * 256 + t] = sum;
}}"
        );
        let launch = Launch {
            grid: [864, 1, 1],
            block: [256, 1, 1],
            args: &[("n", 64)],
            arrays: &[],
        };
        moved(&text, &launch)
    };
    let (whole, split) = (padded(24), padded(20));
    let ratio = split.l2 / whole.l2;
    assert!((1.45..1.55).contains(&ratio), "{ratio}");
    assert!((split.dram / whole.dram - 1.0).abs() < 0.01);
}

#[test]
fn a_loop_whose_first_iterations_have_a_loop_of_their_own_moves_what_the_whole_moves() {
    let kernel = |body: &str| {
        format!(
            "__global__ void k(const float4* __restrict__ in, float* out, int n) {{
                int t = threadIdx.x;
                const float4* p = in + (size_t)blockIdx.x * n * 128 + t;
                float acc = 0;
                {body}
                out[blockIdx.x * 128 + t] = acc;
            }}"
        )
    };
    let whole = kernel("for (int k = 0; k < n; k++) acc += p[k * 128].x;");
    let first = "for (int i = 0; i < 3; i++) acc += p[i * 128].x;";
    let launch = Launch {
        grid: [216, 1, 1],
        block: [128, 1, 1],
        args: &[("n", 1024)],
        arrays: &[],
    };
    let expected = moved(&whole, &launch);
    for rest in [
        "for (int k = 3; k < n; k++) acc += p[k * 128].x;",
        "for (int k = 0; k < n - 3; k++) acc += p[(k + 3) * 128].x;",
    ] {
        for parts in [format!("{first} {rest}"), format!("{rest} {first}")] {
            same(&moved(&kernel(&parts), &launch), &expected, &parts);
        }
    }
}

#[test]
fn a_load_that_makes_the_next_one_s_address_is_waited_for() {
    let launch = Launch {
        grid: [1, 1, 1],
        block: [1, 1, 1],
        args: &[("n", 10_000)],
        arrays: &[],
    };
    let per_step = |declared: &str, step: &str| {
        let text = format!(
            "__global__ void k(int* __restrict__ next, int* out, int n) {{
                __shared__ int s[1024];
                s[threadIdx.x] = next[threadIdx.x];
                __syncthreads();
                {declared}
                for (int i = 0; i < n; i++) {{ {step} }}
                out[0] = j;
            }}"
        );
        // Cycles at 1410 MHz.
        moved(&text, &launch).ms * 1.41e6 / 10_000.0
    };
    let computed = per_step("int j = 0;", "j = next[j] + 1;");
    for (declared, step) in [
        ("int j = 0;", "j = next[j];"),
        ("int j = 0;", "int k = next[j]; j = k;"),
        ("int j = 0, k = 0;", "k = j; j = next[k];"),
        ("int j = 0, sum = 0;", "sum += j; j = next[j];"),
        ("unsigned j = 0;", "j = next[j * 2];"),
    ] {
        let cycles = per_step(declared, step);
        let ratio = cycles / computed;
        assert!((0.9..1.2).contains(&ratio), "{step}: {cycles} {computed}");
    }
    let shared = per_step("int j = 0;", "j = s[j];");
    assert!((20.0..60.0).contains(&shared), "{shared}");
    let atomic = per_step("int j = 0;", "j = atomicAdd(next, j);");
    assert!((150.0..2000.0).contains(&atomic), "{atomic}");
    // Loaded one iteration ahead: the other work of an iteration passes meanwhile.
    let ahead = per_step(
        "int j = 0, x = next[0];",
        "int y = next[i + 1]; j += x; x = y;",
    );
    assert!(ahead < 0.9 * computed, "{ahead} {computed}");
}
