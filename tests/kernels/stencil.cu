// One Jacobi step of the two-dimensional five-point stencil: neighbours from global memory (where
// the caches catch most of the reuse), and from a tile with a halo in shared memory.
#include "harness.cuh"

#define BLOCK_X 32
#define BLOCK_Y 8

// warplens: grid=(32,128) nx=1024 ny=1024
__global__ void stencil_global(const float* __restrict__ in, float* __restrict__ out, int nx,
                               int ny) {
  const int x = blockIdx.x * BLOCK_X + threadIdx.x;
  const int y = blockIdx.y * BLOCK_Y + threadIdx.y;
  if (x < 1 || x >= nx - 1 || y < 1 || y >= ny - 1) return;

  const int at = y * nx + x;
  out[at] = 0.2f * (in[at] + in[at - 1] + in[at + 1] + in[at - nx] + in[at + nx]);
}

// warplens: grid=(32,128) nx=1024 ny=1024
__global__ void stencil_tiled(const float* __restrict__ in, float* __restrict__ out, int nx,
                              int ny) {
  __shared__ float tile[BLOCK_Y + 2][BLOCK_X + 2];

  const int x = blockIdx.x * BLOCK_X + threadIdx.x;
  const int y = blockIdx.y * BLOCK_Y + threadIdx.y;
  const int tx = threadIdx.x + 1;
  const int ty = threadIdx.y + 1;
  const int at = y * nx + x;

  if (x < nx && y < ny) {
    tile[ty][tx] = in[at];
    // The edge threads of the block fetch the halo as well.
    if (threadIdx.x == 0 && x > 0) tile[ty][0] = in[at - 1];
    if (threadIdx.x == BLOCK_X - 1 && x < nx - 1) tile[ty][BLOCK_X + 1] = in[at + 1];
    if (threadIdx.y == 0 && y > 0) tile[0][tx] = in[at - nx];
    if (threadIdx.y == BLOCK_Y - 1 && y < ny - 1) tile[BLOCK_Y + 1][tx] = in[at + nx];
  }
  __syncthreads();

  if (x >= 1 && x < nx - 1 && y >= 1 && y < ny - 1) {
    out[at] = 0.2f * (tile[ty][tx] + tile[ty][tx - 1] + tile[ty][tx + 1] + tile[ty - 1][tx] +
                      tile[ty + 1][tx]);
  }
}

int main(int argc, char** argv) {
  harness::Program program(argc, argv, 1024, BLOCK_X * BLOCK_Y, /*fixed_block=*/true);
  const int n = program.n;
  if (n > 32768) {
    std::fprintf(stderr, "--n at most 32768: the kernels index with int\n");
    return 2;
  }
  const size_t count = static_cast<size_t>(n) * n;

  const std::vector<float> host_in = harness::ramp(count);
  std::vector<float> want(count, 0.0f);
  for (int y = 1; y < n - 1; ++y) {
    for (int x = 1; x < n - 1; ++x) {
      const size_t at = static_cast<size_t>(y) * n + x;
      want[at] = 0.2f * (host_in[at] + host_in[at - 1] + host_in[at + 1] + host_in[at - n] +
                         host_in[at + n]);
    }
  }
  harness::DeviceBuffer<float> in(host_in), out(count);
  auto prepare = [&] { out.clear(); };
  auto error = [&] { return harness::max_error(out.download(), want); };

  const dim3 block(BLOCK_X, BLOCK_Y);
  const dim3 grid((n + BLOCK_X - 1) / BLOCK_X, (n + BLOCK_Y - 1) / BLOCK_Y);
  program.run(
      "stencil_global", {grid, block, 0, {{"nx", n}, {"ny", n}}}, prepare,
      [&] { stencil_global<<<grid, block>>>(in.get(), out.get(), n, n); }, error);
  program.run(
      "stencil_tiled", {grid, block, 0, {{"nx", n}, {"ny", n}}}, prepare,
      [&] { stencil_tiled<<<grid, block>>>(in.get(), out.get(), n, n); }, error);
  return program.exit_status();
}
