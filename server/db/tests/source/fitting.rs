//! Blocks of kernels that nothing launches: what a kernel's own numbers fit.

use std::path::Path;

use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, Overrides};
use warplens_facts::facts::Source;
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

/// The block that is assumed for a kernel.
fn assumed(kernel: &str) -> [u64; 3] {
    let file = Engine::new(Profiles::builtin())
        .analyze(
            &Document::new(kernel, Language::Cuda),
            Path::new("kernel.cu"),
            &Settings::default(),
            &Overrides::default(),
            &Cancel::default(),
        )
        .expect("not cancelled");
    let launch = &file.kernels[0].analysis.facts.launch;
    assert_eq!(launch.block_source, Source::Assumed, "{kernel}");
    launch.block
}

#[test]
fn a_tile_of_shared_memory_has_a_thread_an_element() {
    let tiled =
        "#define TILE 32\n__global__ void mm(const float *a, const float *b, float *c, int n) {
        __shared__ float as[TILE][TILE], bs[TILE][TILE];
        int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
        float sum = 0;
        for (int m = 0; m < n / TILE; ++m) {
            as[threadIdx.y][threadIdx.x] = a[row * n + m * TILE + threadIdx.x];
            bs[threadIdx.y][threadIdx.x] = b[(m * TILE + threadIdx.y) * n + col];
            __syncthreads();
            for (int k = 0; k < TILE; ++k) sum += as[threadIdx.y][k] * bs[k][threadIdx.x];
            __syncthreads();
        }
        c[row * n + col] = sum;
    }";
    assert_eq!(assumed(tiled), [32, 32, 1]);
    let small = tiled.replace("TILE 32", "TILE 16");
    assert_eq!(assumed(&small), [16, 16, 1]);
    // By the block's own extents: only the array says how many there are, its columns padded.
    let by_array = "__global__ void t(const float *in, float *out, int n) {
        __shared__ float tile[32][33];
        int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
        tile[threadIdx.y][threadIdx.x] = in[y * n + x];
        __syncthreads();
        out[x * n + y] = tile[threadIdx.x][threadIdx.y];
    }";
    assert_eq!(assumed(by_array), [32, 32, 1]);
    let line = "__global__ void r(const float *in, float *out) {
        __shared__ float s[128];
        s[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
        __syncthreads();
        for (int h = blockDim.x / 2; h > 0; h /= 2) {
            if (threadIdx.x < h) s[threadIdx.x] += s[threadIdx.x + h];
            __syncthreads();
        }
        if (threadIdx.x == 0) out[blockIdx.x] = s[0];
    }";
    assert_eq!(assumed(line), [128, 1, 1]);
    // The neighbours of a stencil have no threads.
    let halo = "__global__ void h(const float *in, float *out) {
        __shared__ float s[258];
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        s[threadIdx.x + 1] = in[i];
        __syncthreads();
        out[i] = s[threadIdx.x] + s[threadIdx.x + 2];
    }";
    assert_eq!(assumed(halo), [256, 1, 1]);
}

#[test]
fn rows_of_a_tile_that_a_thread_takes_in_turn_make_the_block_flat() {
    let transpose = "#define TILE_DIM 32\n#define BLOCK_ROWS 8\n\
        __global__ void t(const float *in, float *out, int n) {
        __shared__ float tile[TILE_DIM][TILE_DIM + 1];
        int x = blockIdx.x * TILE_DIM + threadIdx.x, y = blockIdx.y * TILE_DIM + threadIdx.y;
        for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS)
            tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
        __syncthreads();
        x = blockIdx.y * TILE_DIM + threadIdx.x;
        y = blockIdx.x * TILE_DIM + threadIdx.y;
        for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS)
            out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
    }";
    assert_eq!(assumed(transpose), [32, 8, 1]);
    // The taps of a filter are no rows of their own.
    let filter = "__global__ void f(const float *in, float *out, int n) {
        int x = blockIdx.x * 64 + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y;
        float sum = 0;
        for (int j = 0; j < 5; ++j) sum += in[(y + j) * n + x];
        out[y * n + x] = sum;
    }";
    assert_eq!(assumed(filter), [64, 4, 1]);
}

#[test]
fn numbers_of_elements_leave_no_gaps_between_blocks() {
    let kernel = |index: &str| {
        format!("__global__ void k(const float4 *in, float4 *out, int n) {{ {index} }}")
    };
    for (index, block) in [
        (
            "int i = blockIdx.x * 128 + threadIdx.x; out[i] = in[i];",
            128,
        ),
        (
            "int i = (blockIdx.x << 9) + threadIdx.x; out[i] = in[i];",
            512,
        ),
        // Four elements a thread.
        (
            "int i = (blockIdx.x * 64 + threadIdx.x) * 4; out[i] = in[i + 1];",
            64,
        ),
        (
            "int i = blockIdx.x * 1024 + threadIdx.x * 8; out[i] = in[i + 1];",
            128,
        ),
        // Two, a block's width apart.
        (
            "int i = blockIdx.x * 512 + threadIdx.x; out[i] = in[i]; out[i + 256] = in[i + 256];",
            256,
        ),
        // A loop over the block's elements.
        (
            "for (int i = threadIdx.x; i < n; i += 192) out[i] = in[i];",
            192,
        ),
        // The distance of blocks is no number: as nothing else says it.
        (
            "int i = blockIdx.x * blockDim.x + threadIdx.x; out[i] = in[i];",
            256,
        ),
        ("int i = blockIdx.x * n + threadIdx.x; out[i] = in[i];", 256),
        // More than a block holds.
        (
            "int i = blockIdx.x * 4096 + threadIdx.x; out[i] = in[i];",
            256,
        ),
    ] {
        assert_eq!(assumed(&kernel(index)), [block, 1, 1], "{index}");
    }
}
