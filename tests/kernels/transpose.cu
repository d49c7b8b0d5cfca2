// Three ways to transpose a square matrix: stores down a column, a tile in shared memory whose
// columns share one bank, and the same tile with a column of padding.
#include "harness.cuh"

// A warp reads 32 neighbours of a row and writes 32 elements that lie n apart.
// warplens: grid=(32,128) n=1024
__global__ void transpose_naive(const float* __restrict__ in, float* __restrict__ out, int n) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < n && y < n) out[x * n + y] = in[y * n + x];
}

// Both sides of global memory are rows now, but a column of the tile lies in one bank.
// warplens: grid=(32,32) n=1024
__global__ void transpose_tiled(const float* __restrict__ in, float* __restrict__ out, int n) {
  __shared__ float tile[32][32];

  int x = blockIdx.x * 32 + threadIdx.x;
  int y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) {
    if (x < n && y + j < n) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
  }
  __syncthreads();

  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) {
    if (x < n && y + j < n) out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
  }
}

// One more column moves each row by a bank: columns are as fast as rows.
// warplens: grid=(32,32) n=1024
__global__ void transpose_padded(const float* __restrict__ in, float* __restrict__ out, int n) {
  __shared__ float tile[32][33];

  int x = blockIdx.x * 32 + threadIdx.x;
  int y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) {
    if (x < n && y + j < n) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
  }
  __syncthreads();

  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) {
    if (x < n && y + j < n) out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
  }
}

int main(int argc, char** argv) {
  harness::Program program(argc, argv, 1024, 256, /*fixed_block=*/true);
  const int n = program.n;
  if (n > 32768) {
    std::fprintf(stderr, "--n at most 32768: the kernels index with int\n");
    return 2;
  }
  const size_t count = static_cast<size_t>(n) * n;

  const std::vector<float> host_in = harness::ramp(count);
  std::vector<float> want(count);
  for (int y = 0; y < n; ++y) {
    for (int x = 0; x < n; ++x) {
      want[static_cast<size_t>(x) * n + y] = host_in[static_cast<size_t>(y) * n + x];
    }
  }
  harness::DeviceBuffer<float> in(host_in), out(count);
  auto prepare = [&] { out.clear(); };
  auto error = [&] { return harness::max_error(out.download(), want); };

  dim3 block(32, 8);
  {
    dim3 grid((n + 31) / 32, (n + 7) / 8);
    program.run(
        "transpose_naive", {grid, block, 0, {{"n", n}}}, prepare,
        [&] { transpose_naive<<<grid, block>>>(in.get(), out.get(), n); }, error, 0.0);
  }
  dim3 grid((n + 31) / 32, (n + 31) / 32);
  program.run(
      "transpose_tiled", {grid, block, 0, {{"n", n}}}, prepare,
      [&] { transpose_tiled<<<grid, block>>>(in.get(), out.get(), n); }, error, 0.0);
  program.run(
      "transpose_padded", {grid, block, 0, {{"n", n}}}, prepare,
      [&] { transpose_padded<<<grid, block>>>(in.get(), out.get(), n); }, error, 0.0);
  return program.exit_status();
}
