// C = A B with a short inner side: A is tall (rows x depth), B wide (depth x columns), C large. In
// tiles of 16 x 16, as matmul_tiled of matmul.cu, but few of them: what is stored weighs as much as
// what is fetched.
#include "harness.cuh"

constexpr int TILE = 16;

// warplens: grid=(128,128) block=(16,16) columns=2048 depth=64
__global__ void __launch_bounds__(TILE * TILE)
    skinny_matmul(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
                  int columns, int depth) {
  __shared__ float tile_a[TILE][TILE];
  __shared__ float tile_b[TILE][TILE];
  const int tx = threadIdx.x;
  const int ty = threadIdx.y;
  const int row = blockIdx.y * TILE + ty;
  const int col = blockIdx.x * TILE + tx;

  float sum = 0.0f;
  for (int k0 = 0; k0 < depth; k0 += TILE) {
    tile_a[ty][tx] = a[row * depth + k0 + tx];
    tile_b[ty][tx] = b[(k0 + ty) * columns + col];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < TILE; ++k) sum += tile_a[ty][k] * tile_b[k][tx];
    __syncthreads();
  }
  c[row * columns + col] = sum;
}

int main(int argc, char** argv) {
  harness::Program program(argc, argv, 2048, TILE * TILE, /*fixed_block=*/true);
  const int n = program.n;
  constexpr int depth = 64;
  if (n % TILE != 0 || n > 8192) {
    std::fprintf(stderr, "--n must be a multiple of %d and at most 8192\n", TILE);
    return 2;
  }
  const std::vector<float> host_a = harness::ramp(static_cast<size_t>(n) * depth);
  const std::vector<float> host_b = harness::ramp(static_cast<size_t>(n) * depth, 997);
  std::vector<float> want(static_cast<size_t>(n) * n);
  for (int i = 0; i < n; ++i) {
    std::vector<double> row(n, 0.0);
    for (int k = 0; k < depth; ++k) {
      const double scale = host_a[static_cast<size_t>(i) * depth + k];
      for (int j = 0; j < n; ++j) row[j] += scale * host_b[static_cast<size_t>(k) * n + j];
    }
    std::copy(row.begin(), row.end(), want.begin() + static_cast<size_t>(i) * n);
  }
  harness::DeviceBuffer<float> a(host_a), b(host_b), c(want.size());
  const dim3 block(TILE, TILE);
  const dim3 grid(n / TILE, n / TILE);
  program.run(
      "skinny_matmul", {grid, block, 0, {{"columns", n}, {"depth", depth}}}, [&] { c.clear(); },
      [&] { skinny_matmul<<<grid, block>>>(a.get(), b.get(), c.get(), n, depth); },
      [&] { return harness::max_error(c.download(), want); }, 1e-4);
  return program.exit_status();
}
