//! Generates files of any length, full of typical kernels: too large to commit, identical in each run.

use std::fmt::Write as _;

/// Lines of each kernel, with the comment before it and the blank line behind.
pub const LINES: usize = 20;

/// `count` kernels of [`LINES`] lines each, numbered from `first`, all with different text.
pub fn text(first: usize, kernels: usize) -> String {
    let mut text = String::new();
    for k in first..first + kernels {
        let before = text.len();
        match k % 5 {
            0 => tiles(&mut text, k),
            1 => stencil(&mut text, k),
            2 => reduction(&mut text, k),
            3 => particles(&mut text, k),
            _ => histogram(&mut text, k),
        }
        debug_assert_eq!(text[before..].lines().count(), LINES);
    }
    text
}

/// A matrix transpose through tiles in shared memory, with bank conflicts.
fn tiles(text: &mut String, k: usize) {
    let _ = write!(
        text,
        "// Kernel {k}: sums tiles of a matrix.
__global__ void tiles_{k}(float *out, const float *in, int n) {{
    __shared__ float tile[32][32];
    int x = blockIdx.x * 32 + threadIdx.x;
    int y = blockIdx.y * 32 + threadIdx.y;
    int base = y * n + x;
    float sum = 0.0f;
    for (int i = 0; i < 16; ++i) {{
        float value = in[2 * base + i * n + {k}];
        tile[threadIdx.y][threadIdx.x] = value;
        __syncthreads();
        sum += tile[threadIdx.x][threadIdx.y] * {k}.5f;
        __syncthreads();
    }}
    if (x < n && y < n) {{
        out[base] = sum;
        out[x * n + y] = sum * 0.5f;
    }}
}}

"
    );
}

/// A guarded stencil.
fn stencil(text: &mut String, k: usize) {
    let _ = write!(
        text,
        "// Kernel {k}: one step of a five-point stencil.
__global__ void stencil_{k}(const float *__restrict__ in,
                            float *__restrict__ out, int nx, int ny) {{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    // The border keeps its values.
    if (x < 1 || x >= nx - 1 || y < 1 || y >= ny - 1) {{
        return;
    }}
    const int at = y * nx + x;
    const float centre = in[at];
    const float west = in[at - 1];
    const float east = in[at + 1];
    const float north = in[at - nx];
    const float south = in[at + nx];
    const float sum = west + east + north + south;
    const float change = 0.25f * sum - centre;
    out[at] = centre + {k}.125f * change;
}}

"
    );
}

/// A tree reduction in shared memory, with divergence.
fn reduction(text: &mut String, k: usize) {
    let _ = write!(
        text,
        "// Kernel {k}: sums a block's part of a vector.
__global__ void reduction_{k}(const float *in, float *out, int n) {{
    __shared__ float part[256];
    int thread = threadIdx.x;
    int at = blockIdx.x * 256 + thread;
    part[thread] = at < n ? in[at] * {k}.0f : 0.0f;
    __syncthreads();

    for (int step = 128; step > 0; step >>= 1) {{
        if (thread < step) {{
            part[thread] += part[thread + step];
        }}
        __syncthreads();
    }}

    if (thread == 0) {{
        out[blockIdx.x] = part[0];
    }}
}}

"
    );
}

/// An array of structures, uncoalesced.
fn particles(text: &mut String, k: usize) {
    let _ = write!(
        text,
        "// Kernel {k}: moves particles.
struct Particle{k} {{
    float x, y, z, mass;
}};

__global__ void move_{k}(Particle{k} *particles, const float *force,
                         float dt, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) {{
        return;
    }}
    float fx = force[3 * i];
    float fy = force[3 * i + 1];
    float fz = force[3 * i + 2];
    float scale = dt * {k}.0f / particles[i].mass;
    particles[i].x += fx * scale;
    particles[i].y += fy * scale;
    particles[i].z += fz * scale;
}}

"
    );
}

/// A histogram: atomic additions at data-dependent addresses.
fn histogram(text: &mut String, k: usize) {
    let _ = write!(
        text,
        "// Kernel {k}: counts values.
__global__ void histogram_{k}(const unsigned char *in, unsigned *bins,
                              int n) {{
    __shared__ unsigned own[256];
    own[threadIdx.x] = 0;
    __syncthreads();

    int stride = gridDim.x * blockDim.x;
    int first = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = first; i < n; i += stride) {{
        unsigned value = in[i];
        if (value != {k} % 256) {{
            atomicAdd(&own[value], 1u);
        }}
    }}
    __syncthreads();
    unsigned count = own[threadIdx.x];
    atomicAdd(&bins[threadIdx.x], count);
}}

"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_lines_that_were_asked_for() {
        let text = text(0, 50);
        assert_eq!(text.lines().count(), 50 * LINES);
        assert_eq!(text.matches("__global__").count(), 50);
    }
}
