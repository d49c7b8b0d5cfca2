// C = A B^T in 16 x 16 tiles for GPUs whose shared memory has 16 banks and serves half a warp at a
// time: with the tile of B as it comes, and with its rows padded by a word.
#include "harness.cuh"

constexpr int TILE = 16;

// A half-warp reads tile_b[0..15][k]: sixteen words of one bank on 16 banks (2 of 16 x 2 on 32).
// Eight warps per block; fewer or more at a time on an SM is what --warps-per-sm asks for.
// warplens: grid=(6,10) block=(16,16) depth=80 columns=96
__global__ void __launch_bounds__(TILE * TILE)
    matmul_abt16_conflict(const float* __restrict__ a, const float* __restrict__ b,
                          float* __restrict__ c, int depth, int columns) {
  __shared__ float tile_a[TILE][TILE];
  __shared__ float tile_b[TILE][TILE];

  const int tx = threadIdx.x;
  const int ty = threadIdx.y;
  const int row_a = blockIdx.y * TILE + ty;
  const int row_b = blockIdx.x * TILE + ty;

  float sum = 0.0f;
  for (int k0 = 0; k0 < depth; k0 += TILE) {
    tile_a[ty][tx] = a[row_a * depth + k0 + tx];
    tile_b[ty][tx] = b[row_b * depth + k0 + tx];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < TILE; ++k) sum += tile_a[ty][k] * tile_b[tx][k];
    __syncthreads();
  }
  c[row_a * columns + blockIdx.x * TILE + tx] = sum;
}

// The same with rows of 17 words: the walk down a column meets every bank once.
// warplens: grid=(6,10) block=(16,16) depth=80 columns=96
__global__ void __launch_bounds__(TILE * TILE)
    matmul_abt16_padded(const float* __restrict__ a, const float* __restrict__ b,
                        float* __restrict__ c, int depth, int columns) {
  __shared__ float tile_a[TILE][TILE];
  __shared__ float tile_b[TILE][TILE + 1];

  const int tx = threadIdx.x;
  const int ty = threadIdx.y;
  const int row_a = blockIdx.y * TILE + ty;
  const int row_b = blockIdx.x * TILE + ty;

  float sum = 0.0f;
  for (int k0 = 0; k0 < depth; k0 += TILE) {
    tile_a[ty][tx] = a[row_a * depth + k0 + tx];
    tile_b[ty][tx] = b[row_b * depth + k0 + tx];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < TILE; ++k) sum += tile_a[ty][k] * tile_b[tx][k];
    __syncthreads();
  }
  c[row_a * columns + blockIdx.x * TILE + tx] = sum;
}

int main(int argc, char** argv) {
  harness::Program program(argc, argv, 1024, TILE * TILE, /*fixed_block=*/true);
  const int n = program.n;
  if (n > 4096 || n % TILE != 0) {
    std::fprintf(stderr, "--n must be a multiple of %d and at most 4096\n", TILE);
    return 2;
  }
  const size_t count = static_cast<size_t>(n) * n;
  const std::vector<float> host_a = harness::ramp(count);
  const std::vector<float> host_b = harness::ramp(count, 997);
  std::vector<float> want(count);
  for (int i = 0; i < n; ++i) {
    const float* row_a = &host_a[static_cast<size_t>(i) * n];
    for (int j = 0; j < n; ++j) {
      const float* row_b = &host_b[static_cast<size_t>(j) * n];
      double sum = 0.0;
      for (int k = 0; k < n; ++k) sum += static_cast<double>(row_a[k]) * row_b[k];
      want[static_cast<size_t>(i) * n + j] = static_cast<float>(sum);
    }
  }

  harness::DeviceBuffer<float> a(host_a), b(host_b), c(count);
  auto prepare = [&] { c.clear(); };
  auto error = [&] { return harness::max_error(c.download(), want); };

  const dim3 block(TILE, TILE);
  const dim3 grid(n / TILE, n / TILE);
  const harness::Launch with = {grid, block, 0, {{"depth", n}, {"columns", n}}};
  program.run(
      "matmul_abt16_conflict", with, prepare,
      [&] { matmul_abt16_conflict<<<grid, block>>>(a.get(), b.get(), c.get(), n, n); }, error, 1e-4);
  program.run(
      "matmul_abt16_padded", with, prepare,
      [&] { matmul_abt16_padded<<<grid, block>>>(a.get(), b.get(), c.get(), n, n); }, error, 1e-4);
  return program.exit_status();
}
