// A 7 x 7 convolution over three colour planes, summed into one: the 22 x 22 neighbourhood of a
// 16 x 16 tile staged plane by plane in shared memory, the filter beside it.
#include "harness.cuh"

constexpr int TILE = 16;
constexpr int WIDTH = 7;
constexpr int HALO = TILE + WIDTH - 1;
constexpr int PLANES = 3;

// Planes have a border of three points on each side: rows and columns of n + 6.
// warplens: grid=(64,64) block=(16,16) n=1024
__global__ void __launch_bounds__(TILE * TILE)
    convolution(const float* __restrict__ image, const float* __restrict__ filter,
                float* __restrict__ out, int n) {
  __shared__ float tile[HALO][HALO];
  __shared__ float weights[PLANES * WIDTH * WIDTH];
  const int tx = threadIdx.x;
  const int ty = threadIdx.y;
  const int t = ty * TILE + tx;
  const int side = n + WIDTH - 1;
  const int corner = blockIdx.y * TILE * side + blockIdx.x * TILE;
  if (t < PLANES * WIDTH * WIDTH) weights[t] = filter[t];

  float sum = 0.0f;
  for (int plane = 0; plane < PLANES; ++plane) {
#pragma unroll 1
    for (int i = t; i < HALO * HALO; i += TILE * TILE) {
      tile[i / HALO][i % HALO] = image[plane * side * side + corner + i / HALO * side + i % HALO];
    }
    __syncthreads();
#pragma unroll
    for (int dy = 0; dy < WIDTH; ++dy) {
#pragma unroll
      for (int dx = 0; dx < WIDTH; ++dx) {
        sum += tile[ty + dy][tx + dx] * weights[(plane * WIDTH + dy) * WIDTH + dx];
      }
    }
    __syncthreads();
  }
  out[(blockIdx.y * TILE + ty) * n + blockIdx.x * TILE + tx] = sum;
}

int main(int argc, char** argv) {
  harness::Program program(argc, argv, 1024, TILE * TILE, /*fixed_block=*/true);
  const int n = program.n;
  if (n % TILE != 0 || n > 8192) {
    std::fprintf(stderr, "--n must be a multiple of %d and at most 8192\n", TILE);
    return 2;
  }
  const size_t side = n + WIDTH - 1;
  const std::vector<float> host_image = harness::ramp(PLANES * side * side);
  const std::vector<float> host_filter = harness::ramp(PLANES * WIDTH * WIDTH, 41);
  std::vector<float> want(static_cast<size_t>(n) * n);
  for (int y = 0; y < n; ++y) {
    for (int x = 0; x < n; ++x) {
      double sum = 0.0;
      for (int p = 0; p < PLANES; ++p) {
        for (int dy = 0; dy < WIDTH; ++dy) {
          for (int dx = 0; dx < WIDTH; ++dx) {
            sum += static_cast<double>(host_image[p * side * side + (y + dy) * side + x + dx]) *
                   host_filter[(p * WIDTH + dy) * WIDTH + dx];
          }
        }
      }
      want[static_cast<size_t>(y) * n + x] = static_cast<float>(sum);
    }
  }
  harness::DeviceBuffer<float> image(host_image), filter(host_filter), out(want.size());
  const dim3 block(TILE, TILE);
  const dim3 grid(n / TILE, n / TILE);
  program.run(
      "convolution", {grid, block, 0, {{"n", n}}}, [&] { out.clear(); },
      [&] { convolution<<<grid, block>>>(image.get(), filter.get(), out.get(), n); },
      [&] { return harness::max_error(out.download(), want); }, 1e-4);
  return program.exit_status();
}
