// The sum of an array, one partial sum a block: a tree whose active threads are spread over the
// block, a tree whose active threads stay together, and warp shuffles over a grid-stride loop.
#include "harness.cuh"

constexpr int BLOCK = 256;

// Every second, fourth, eighth thread works: all warps stay busy and all diverge.
// warplens: grid=4096 n=1048576
__global__ void reduce_interleaved(const float* __restrict__ in, float* __restrict__ sums, int n) {
  __shared__ float partial[BLOCK];
  const int t = threadIdx.x;
  const int i = blockIdx.x * BLOCK + t;

  partial[t] = i < n ? in[i] : 0.0f;
  __syncthreads();
  for (int step = 1; step < BLOCK; step *= 2) {
    if (t % (2 * step) == 0) partial[t] += partial[t + step];
    __syncthreads();
  }
  if (t == 0) sums[blockIdx.x] = partial[0];
}

// The first half works on the second half: whole warps drop out, neighbours read neighbours.
// warplens: grid=4096 n=1048576
__global__ void reduce_sequential(const float* __restrict__ in, float* __restrict__ sums, int n) {
  __shared__ float partial[BLOCK];
  const int t = threadIdx.x;
  const int i = blockIdx.x * BLOCK + t;

  partial[t] = i < n ? in[i] : 0.0f;
  __syncthreads();
  for (int step = BLOCK / 2; step > 0; step /= 2) {
    if (t < step) partial[t] += partial[t + step];
    __syncthreads();
  }
  if (t == 0) sums[blockIdx.x] = partial[0];
}

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    value += __shfl_down_sync(0xffffffffu, value, offset);
  }
  return value;
}

// Each thread adds up many elements in a register; shared memory holds one word per warp.
// warplens: grid=512 n=1048576
__global__ void __launch_bounds__(BLOCK)
    reduce_shuffle(const float* __restrict__ in, float* __restrict__ sums, size_t n) {
  __shared__ float partial[BLOCK / 32];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;

  float sum = 0.0f;
  for (size_t i = blockIdx.x * (size_t)BLOCK + threadIdx.x; i < n; i += gridDim.x * (size_t)BLOCK) {
    sum += in[i];
  }
  sum = warp_sum(sum);
  if (lane == 0) partial[warp] = sum;
  __syncthreads();

  if (warp == 0) {
    sum = warp_sum(lane < BLOCK / 32 ? partial[lane] : 0.0f);
    if (lane == 0) sums[blockIdx.x] = sum;
  }
}

int main(int argc, char** argv) {
  harness::Program program(argc, argv, 1 << 20, BLOCK, /*fixed_block=*/true);
  const int n = program.n;
  const int grid = (n + BLOCK - 1) / BLOCK;
  const int grid_strided = std::min(grid, 512);

  const std::vector<float> host_in = harness::ramp(n);
  double total = 0.0;
  for (float value : host_in) total += value;

  harness::DeviceBuffer<float> in(host_in), sums(grid);
  auto prepare = [&] { sums.clear(); };
  auto error = [&] {
    double sum = 0.0;
    for (float value : sums.download()) sum += value;
    return std::fabs(sum - total) / std::max(1.0, std::fabs(total));
  };

  program.run(
      "reduce_interleaved", {grid, BLOCK, 0, {{"n", n}}}, prepare,
      [&] { reduce_interleaved<<<grid, BLOCK>>>(in.get(), sums.get(), n); }, error);
  program.run(
      "reduce_sequential", {grid, BLOCK, 0, {{"n", n}}}, prepare,
      [&] { reduce_sequential<<<grid, BLOCK>>>(in.get(), sums.get(), n); }, error);
  program.run(
      "reduce_shuffle", {grid_strided, BLOCK, 0, {{"n", n}}}, prepare,
      [&] { reduce_shuffle<<<grid_strided, BLOCK>>>(in.get(), sums.get(), n); }, error);
  return program.exit_status();
}
