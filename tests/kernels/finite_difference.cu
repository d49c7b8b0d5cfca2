// A five-point Laplacian with a source term on a square grid, in tiles of 16 x 16 whose 18 x 18
// neighbourhood all threads of the block fetch together.
#include "harness.cuh"

constexpr int TILE = 16;
constexpr int HALO = TILE + 2;

// u has a border of one point on each side: rows of n + 2. Two rounds fetch 324 points by 256 threads.
// warplens: grid=(128,128) block=(16,16) n=2048
__global__ void __launch_bounds__(TILE * TILE)
    finite_difference(const float* __restrict__ u, const float* __restrict__ source,
                      float* __restrict__ out, float scale, int n) {
  __shared__ float tile[HALO][HALO];
  const int tx = threadIdx.x;
  const int ty = threadIdx.y;
  const int corner = blockIdx.y * TILE * (n + 2) + blockIdx.x * TILE;
  for (int i = ty * TILE + tx; i < HALO * HALO; i += TILE * TILE) {
    tile[i / HALO][i % HALO] = u[corner + i / HALO * (n + 2) + i % HALO];
  }
  __syncthreads();

  const int at = (blockIdx.y * TILE + ty) * n + blockIdx.x * TILE + tx;
  const float around =
      tile[ty][tx + 1] + tile[ty + 2][tx + 1] + tile[ty + 1][tx] + tile[ty + 1][tx + 2];
  out[at] = scale * (around - 4.0f * tile[ty + 1][tx + 1]) + source[at];
}

int main(int argc, char** argv) {
  harness::Program program(argc, argv, 2048, TILE * TILE, /*fixed_block=*/true);
  const int n = program.n;
  if (n % TILE != 0 || n > 16384) {
    std::fprintf(stderr, "--n must be a multiple of %d and at most 16384\n", TILE);
    return 2;
  }
  const float scale = 0.25f;
  const size_t row = n + 2;
  const std::vector<float> host_u = harness::ramp(row * row);
  const std::vector<float> host_source = harness::ramp(static_cast<size_t>(n) * n, 997);
  std::vector<float> want(host_source.size());
  for (int y = 0; y < n; ++y) {
    for (int x = 0; x < n; ++x) {
      const size_t centre = (y + 1) * row + x + 1;
      const size_t at = static_cast<size_t>(y) * n + x;
      const float around =
          host_u[centre - row] + host_u[centre + row] + host_u[centre - 1] + host_u[centre + 1];
      want[at] = scale * (around - 4.0f * host_u[centre]) + host_source[at];
    }
  }
  harness::DeviceBuffer<float> u(host_u), source(host_source), out(want.size());
  const dim3 block(TILE, TILE);
  const dim3 grid(n / TILE, n / TILE);
  program.run(
      "finite_difference", {grid, block, 0, {{"n", n}}}, [&] { out.clear(); },
      [&] { finite_difference<<<grid, block>>>(u.get(), source.get(), out.get(), scale, n); },
      [&] { return harness::max_error(out.download(), want); });
  return program.exit_status();
}
