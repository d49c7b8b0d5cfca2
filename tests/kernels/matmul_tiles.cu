// C = A B for square matrices in row order, a block computing 16 x WIDTH elements of C: every element
// of A is fetched n / WIDTH times, every one of B n / 16 times. The further step from matmul_tiled of
// matmul.cu; matmul_global there is where it starts.
#include "harness.cuh"

constexpr int TILE = 16;

// 16 x 16 threads, each with the WIDTH / 16 elements of a row that lie 16 apart. n is a multiple of
// WIDTH. Both tiles lie in shared memory: 16 KiB hold no wider power of two than 128, but 192.
template <int WIDTH>
__device__ void multiply_tile(const float* a, const float* b, float* c, int n) {
  constexpr int OUTPUTS = WIDTH / TILE;
  // Only the smallest body is unrolled; the others are OUTPUTS times as long.
  constexpr int UNROLLED = WIDTH == TILE ? TILE : 1;
  __shared__ float tile_a[TILE][TILE];
  __shared__ float tile_b[TILE][WIDTH];

  const int tx = threadIdx.x;
  const int ty = threadIdx.y;
  const int row = blockIdx.y * TILE + ty;
  const int col = blockIdx.x * WIDTH + tx;

  float sum[OUTPUTS] = {};
#pragma unroll 1
  for (int k0 = 0; k0 < n; k0 += TILE) {
    tile_a[ty][tx] = a[row * n + k0 + tx];
#pragma unroll
    for (int j = 0; j < OUTPUTS; ++j) {
      tile_b[ty][tx + j * TILE] = b[(k0 + ty) * n + col + j * TILE];
    }
    __syncthreads();
#pragma unroll UNROLLED
    for (int k = 0; k < TILE; ++k) {
      const float left = tile_a[ty][k];
#pragma unroll
      for (int j = 0; j < OUTPUTS; ++j) sum[j] += left * tile_b[k][tx + j * TILE];
    }
    __syncthreads();
  }
#pragma unroll
  for (int j = 0; j < OUTPUTS; ++j) c[row * n + col + j * TILE] = sum[j];
}

// warplens: grid=(48,48) block=(16,16) n=768
__global__ void __launch_bounds__(TILE * TILE)
    matmul_tile_16(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
                   int n) {
  multiply_tile<16>(a, b, c, n);
}

// warplens: grid=(24,48) block=(16,16) n=768
__global__ void __launch_bounds__(TILE * TILE)
    matmul_tile_32(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
                   int n) {
  multiply_tile<32>(a, b, c, n);
}

// warplens: grid=(12,48) block=(16,16) n=768
__global__ void __launch_bounds__(TILE * TILE)
    matmul_tile_64(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
                   int n) {
  multiply_tile<64>(a, b, c, n);
}

// warplens: grid=(6,48) block=(16,16) n=768
__global__ void __launch_bounds__(TILE * TILE)
    matmul_tile_128(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
                    int n) {
  multiply_tile<128>(a, b, c, n);
}

// warplens: grid=(4,48) block=(16,16) n=768
__global__ void __launch_bounds__(TILE * TILE)
    matmul_tile_192(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
                    int n) {
  multiply_tile<192>(a, b, c, n);
}

int main(int argc, char** argv) {
  harness::Program program(argc, argv, 768, TILE * TILE, /*fixed_block=*/true);
  const int n = program.n;
  if (n > 3840 || n % 384 != 0) {
    std::fprintf(stderr, "--n must be a multiple of 384 (of 128 and of 192) and at most 3840\n");
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
  const struct {
    const char* name;
    void (*kernel)(const float*, const float*, float*, int);
    int width;
  } kernels[] = {{"matmul_tile_16", matmul_tile_16, 16},
                 {"matmul_tile_32", matmul_tile_32, 32},
                 {"matmul_tile_64", matmul_tile_64, 64},
                 {"matmul_tile_128", matmul_tile_128, 128},
                 {"matmul_tile_192", matmul_tile_192, 192}};
  const dim3 block(TILE, TILE);
  for (const auto& each : kernels) {
    const dim3 grid(n / each.width, n / TILE);
    program.run(
        each.name, {grid, block, 0, {{"n", n}}}, [&] { c.clear(); },
        [&] { each.kernel<<<grid, block>>>(a.get(), b.get(), c.get(), n); },
        [&] { return harness::max_error(c.download(), want); }, 1e-4);
  }
  return program.exit_status();
}
