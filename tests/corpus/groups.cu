// kernels: warp_sum tile_scan grid_sync ballot_count lock_free_max
// Cooperative groups, shuffles, votes and atomics.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

namespace cg = cooperative_groups;

__global__ void warp_sum(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = i < n ? in[i] : 0.0f;
  for (int offset = 16; offset > 0; offset >>= 1) v += __shfl_down_sync(0xffffffffu, v, offset);
  if ((threadIdx.x & 31) == 0) atomicAdd(out, v);
}

__global__ void tile_scan(int* data) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  __shared__ int sums[32];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  int value = data[i];
  for (int d = 1; d < 32; d *= 2) {
    const int other = warp.shfl_up(value, d);
    if (warp.thread_rank() >= d) value += other;
  }
  if (warp.thread_rank() == 31) sums[threadIdx.x / 32] = value;
  block.sync();
  int before = 0;
  for (unsigned w = 0; w < threadIdx.x / 32; ++w) before += sums[w];
  data[i] = value + before;
}

__global__ void grid_sync(float* ping, float* pong, int n, int rounds) {
  cg::grid_group grid = cg::this_grid();
  for (int round = 0; round < rounds; ++round) {
    for (int i = grid.thread_rank(); i < n; i += grid.size()) pong[i] = 0.5f * ping[i];
    grid.sync();
    float* kept = ping;
    ping = pong;
    pong = kept;
  }
}

__global__ void ballot_count(const int* in, int* counts) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned votes = __ballot_sync(0xffffffffu, in[i] > 0);
  if (threadIdx.x % warpSize == 0) counts[i / warpSize] = __popc(votes);
}

__global__ void lock_free_max(const float* in, int* best, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int old = *best;
  int assumed;
  do {
    assumed = old;
    if (__int_as_float(assumed) >= in[i]) break;
    old = atomicCAS(best, assumed, __float_as_int(in[i]));
  } while (assumed != old);
}
