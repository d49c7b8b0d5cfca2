// C = A B for square matrices in row order: every operand from global memory, then 16 x 16 tiles
// staged in shared memory so that each element is fetched n / 16 times instead of n.
#include "harness.cuh"

constexpr int TILE = 16;

// warplens: grid=(64,64) n=1024
__global__ void matmul_global(const float* __restrict__ a, const float* __restrict__ b,
                              float* __restrict__ c, int n) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n || col >= n) return;

  float sum = 0.0f;
  for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + col];
  c[row * n + col] = sum;
}

// warplens: grid=(64,64) n=1024
__global__ void __launch_bounds__(TILE * TILE)
    matmul_tiled(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
                 int n) {
  __shared__ float tile_a[TILE][TILE];
  __shared__ float tile_b[TILE][TILE];

  const int tx = threadIdx.x;
  const int ty = threadIdx.y;
  const int row = blockIdx.y * TILE + ty;
  const int col = blockIdx.x * TILE + tx;

  float sum = 0.0f;
  for (int k0 = 0; k0 < n; k0 += TILE) {
    // Outside the matrix the tiles hold zeros: the product needs no guard and no thread may leave
    // before the barriers.
    tile_a[ty][tx] = (row < n && k0 + tx < n) ? a[row * n + k0 + tx] : 0.0f;
    tile_b[ty][tx] = (k0 + ty < n && col < n) ? b[(k0 + ty) * n + col] : 0.0f;
    __syncthreads();

#pragma unroll
    for (int k = 0; k < TILE; ++k) sum += tile_a[ty][k] * tile_b[k][tx];
    __syncthreads();
  }
  if (row < n && col < n) c[row * n + col] = sum;
}

int main(int argc, char** argv) {
  harness::Program program(argc, argv, 1024, TILE * TILE, /*fixed_block=*/true);
  const int n = program.n;
  if (n > 4096) {
    std::fprintf(stderr, "--n at most 4096: the host checks every element\n");
    return 2;
  }
  const size_t count = static_cast<size_t>(n) * n;
  const std::vector<float> host_a = harness::ramp(count);
  const std::vector<float> host_b = harness::ramp(count, 997);
  std::vector<float> want(count);
  for (int i = 0; i < n; ++i) {
    std::vector<double> row(n, 0.0);
    for (int k = 0; k < n; ++k) {
      const double scale = host_a[static_cast<size_t>(i) * n + k];
      for (int j = 0; j < n; ++j) row[j] += scale * host_b[static_cast<size_t>(k) * n + j];
    }
    std::copy(row.begin(), row.end(), want.begin() + static_cast<size_t>(i) * n);
  }

  harness::DeviceBuffer<float> a(host_a), b(host_b), c(count);
  auto prepare = [&] { c.clear(); };
  auto error = [&] { return harness::max_error(c.download(), want); };

  const dim3 block(TILE, TILE);
  const dim3 grid((n + TILE - 1) / TILE, (n + TILE - 1) / TILE);
  program.run(
      "matmul_global", {grid, block, 0, {{"n", n}}}, prepare,
      [&] { matmul_global<<<grid, block>>>(a.get(), b.get(), c.get(), n); }, error, 1e-4);
  program.run(
      "matmul_tiled", {grid, block, 0, {{"n", n}}}, prepare,
      [&] { matmul_tiled<<<grid, block>>>(a.get(), b.get(), c.get(), n); }, error, 1e-4);
  return program.exit_status();
}
