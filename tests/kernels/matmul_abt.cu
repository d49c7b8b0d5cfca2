// C = A B^T: row i of A against row j of B. Straight from global memory a warp walks down a column
// of B; staged in shared memory the same walk hits one bank until the tile is padded.
#include "harness.cuh"

#define TILE 32

// threadIdx.x picks the row of B, so the lanes of a warp read n elements apart.
// warplens: grid=(32,32) n=1024
__global__ void matmul_abt_global(const float* __restrict__ a, const float* __restrict__ b,
                                  float* __restrict__ c, int n) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n || col >= n) return;

  float sum = 0.0f;
  for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[col * n + k];
  c[row * n + col] = sum;
}

// Both tiles are loaded by rows; tile_b is then read by columns.
// warplens: grid=(32,32) n=1024
__global__ void matmul_abt_conflict(const float* __restrict__ a, const float* __restrict__ b,
                                    float* __restrict__ c, int n) {
  __shared__ float tile_a[TILE][TILE];
  __shared__ float tile_b[TILE][TILE];

  const int row = blockIdx.y * TILE + threadIdx.y;
  const int col = blockIdx.x * TILE + threadIdx.x;
  const int row_b = blockIdx.x * TILE + threadIdx.y;

  float sum = 0.0f;
  for (int k0 = 0; k0 < n; k0 += TILE) {
    const int k = k0 + threadIdx.x;
    tile_a[threadIdx.y][threadIdx.x] = (row < n && k < n) ? a[row * n + k] : 0.0f;
    tile_b[threadIdx.y][threadIdx.x] = (row_b < n && k < n) ? b[row_b * n + k] : 0.0f;
    __syncthreads();
    for (int i = 0; i < TILE; ++i) sum += tile_a[threadIdx.y][i] * tile_b[threadIdx.x][i];
    __syncthreads();
  }
  if (row < n && col < n) c[row * n + col] = sum;
}

// warplens: grid=(32,32) n=1024
__global__ void matmul_abt_padded(const float* __restrict__ a, const float* __restrict__ b,
                                  float* __restrict__ c, int n) {
  __shared__ float tile_a[TILE][TILE];
  __shared__ float tile_b[TILE][TILE + 1];

  const int row = blockIdx.y * TILE + threadIdx.y;
  const int col = blockIdx.x * TILE + threadIdx.x;
  const int row_b = blockIdx.x * TILE + threadIdx.y;

  float sum = 0.0f;
  for (int k0 = 0; k0 < n; k0 += TILE) {
    const int k = k0 + threadIdx.x;
    tile_a[threadIdx.y][threadIdx.x] = (row < n && k < n) ? a[row * n + k] : 0.0f;
    tile_b[threadIdx.y][threadIdx.x] = (row_b < n && k < n) ? b[row_b * n + k] : 0.0f;
    __syncthreads();
    for (int i = 0; i < TILE; ++i) sum += tile_a[threadIdx.y][i] * tile_b[threadIdx.x][i];
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
  const dim3 grid((n + TILE - 1) / TILE, (n + TILE - 1) / TILE);
  program.run(
      "matmul_abt_global", {grid, block, 0, {{"n", n}}}, prepare,
      [&] { matmul_abt_global<<<grid, block>>>(a.get(), b.get(), c.get(), n); }, error, 1e-4);
  program.run(
      "matmul_abt_conflict", {grid, block, 0, {{"n", n}}}, prepare,
      [&] { matmul_abt_conflict<<<grid, block>>>(a.get(), b.get(), c.get(), n); }, error, 1e-4);
  program.run(
      "matmul_abt_padded", {grid, block, 0, {{"n", n}}}, prepare,
      [&] { matmul_abt_padded<<<grid, block>>>(a.get(), b.get(), c.get(), n); }, error, 1e-4);
  return program.exit_status();
}
