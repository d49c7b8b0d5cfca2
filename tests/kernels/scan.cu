// Inclusive prefix sum of each block's 2 T elements by T threads (T a power of two): partial sums up
// a tree, then down again. The variants do the same additions and differ in who does them and where
// the elements lie in shared memory.
#include "harness.cuh"

// Thread t owns element 2t + 1 throughout. The threads still at work spread over all warps, so
// nearly every warp diverges at every step.
// warplens: block=256 grid=2048 dynamic_shared=2048
__global__ void scan_init(const float* __restrict__ in, float* __restrict__ out) {
  extern __shared__ float sums[];
  const int t = threadIdx.x;
  const int threads = blockDim.x;
  const size_t first = static_cast<size_t>(blockIdx.x) * 2 * threads;

  sums[t] = in[first + t];
  sums[t + threads] = in[first + t + threads];

  const int mine = 2 * t + 1;
  for (int stride = 1; stride <= threads; stride *= 2) {
    __syncthreads();
    if ((t + 1) % stride == 0) sums[mine] += sums[mine - stride];
  }
  for (int stride = threads / 2; stride > 0; stride /= 2) {
    __syncthreads();
    if ((t + 1) % stride == 0 && mine + stride < 2 * threads) sums[mine + stride] += sums[mine];
  }
  __syncthreads();

  out[first + t] = sums[t];
  out[first + t + threads] = sums[t + threads];
}

// The first threads take over what is left, so whole warps retire together; but neighbours now
// touch elements 2 * stride apart, which crowd into fewer and fewer banks.
// warplens: block=256 grid=2048 dynamic_shared=2048
__global__ void scan_div(const float* __restrict__ in, float* __restrict__ out) {
  extern __shared__ float sums[];
  const int t = threadIdx.x;
  const int threads = blockDim.x;
  const size_t first = static_cast<size_t>(blockIdx.x) * 2 * threads;

  sums[t] = in[first + t];
  sums[t + threads] = in[first + t + threads];

  for (int stride = 1; stride <= threads; stride *= 2) {
    __syncthreads();
    const int last = (t + 1) * 2 * stride - 1;
    if (last < 2 * threads) sums[last] += sums[last - stride];
  }
  for (int stride = threads / 2; stride > 0; stride /= 2) {
    __syncthreads();
    const int last = (t + 1) * 2 * stride - 1;
    if (last + stride < 2 * threads) sums[last + stride] += sums[last];
  }
  __syncthreads();

  out[first + t] = sums[t];
  out[first + t + threads] = sums[t + threads];
}

// Leaves one word free after every 32, so that elements a power of two apart fall into different
// banks. LOG_BANKS is for GPUs with another number of banks: 4 before compute capability 2.0.
#ifdef LOG_BANKS
#define PADDED(i) ((i) + ((i) >> LOG_BANKS))
#else
#define PADDED(i) ((i) + (i) / 32)
#endif

// warplens: block=256 grid=2048 dynamic_shared=2112
__global__ void scan_div_b(const float* __restrict__ in, float* __restrict__ out) {
  extern __shared__ float sums[];
  const int t = threadIdx.x;
  const int threads = blockDim.x;
  const size_t first = static_cast<size_t>(blockIdx.x) * 2 * threads;

  sums[PADDED(t)] = in[first + t];
  sums[PADDED(t + threads)] = in[first + t + threads];

  for (int stride = 1; stride <= threads; stride *= 2) {
    __syncthreads();
    const int last = (t + 1) * 2 * stride - 1;
    if (last < 2 * threads) sums[PADDED(last)] += sums[PADDED(last - stride)];
  }
  for (int stride = threads / 2; stride > 0; stride /= 2) {
    __syncthreads();
    const int last = (t + 1) * 2 * stride - 1;
    if (last + stride < 2 * threads) sums[PADDED(last + stride)] += sums[PADDED(last)];
  }
  __syncthreads();

  out[first + t] = sums[PADDED(t)];
  out[first + t + threads] = sums[PADDED(t + threads)];
}

// Thread t owns element 2t + 1 again: few conflicts were there to be removed, every address costs more.
// warplens: block=256 grid=2048 dynamic_shared=2112
__global__ void scan_init_b(const float* __restrict__ in, float* __restrict__ out) {
  extern __shared__ float sums[];
  const int t = threadIdx.x;
  const int threads = blockDim.x;
  const size_t first = static_cast<size_t>(blockIdx.x) * 2 * threads;

  sums[PADDED(t)] = in[first + t];
  sums[PADDED(t + threads)] = in[first + t + threads];

  const int mine = 2 * t + 1;
  for (int stride = 1; stride <= threads; stride *= 2) {
    __syncthreads();
    if ((t + 1) % stride == 0) sums[PADDED(mine)] += sums[PADDED(mine - stride)];
  }
  for (int stride = threads / 2; stride > 0; stride /= 2) {
    __syncthreads();
    if ((t + 1) % stride == 0 && mine + stride < 2 * threads) {
      sums[PADDED(mine + stride)] += sums[PADDED(mine)];
    }
  }
  __syncthreads();

  out[first + t] = sums[PADDED(t)];
  out[first + t + threads] = sums[PADDED(t + threads)];
}

int main(int argc, char** argv) {
  harness::Program program(argc, argv, 1 << 20, 256);
  const int n = program.n;
  const int block = program.block;
  if ((block & (block - 1)) != 0 || n % (2 * block) != 0) {
    std::fprintf(stderr, "--block must be a power of two and --n a multiple of twice the block\n");
    return 2;
  }
  const int grid = n / (2 * block);

  // Small whole numbers: their sums are exact in float, in whatever order they are added.
  std::vector<float> host_in(n);
  for (int i = 0; i < n; ++i) host_in[i] = static_cast<float>(i % 11 - 5);
  std::vector<float> want(n);
  for (int i = 0; i < n; ++i) want[i] = host_in[i] + (i % (2 * block) ? want[i - 1] : 0.0f);

  harness::DeviceBuffer<float> in(host_in), out(n);
  auto prepare = [&] { out.clear(); };
  auto error = [&] { return harness::max_error(out.download(), want); };

  const size_t plain = 2 * block * sizeof(float);
  const size_t padded = PADDED(2 * block) * sizeof(float);
  program.run(
      "scan_init", {grid, block, plain}, prepare, [&] { scan_init<<<grid, block, plain>>>(in.get(), out.get()); },
      error, 0.0);
  program.run(
      "scan_div", {grid, block, plain}, prepare, [&] { scan_div<<<grid, block, plain>>>(in.get(), out.get()); },
      error, 0.0);
  program.run(
      "scan_div_b", {grid, block, padded}, prepare,
      [&] { scan_div_b<<<grid, block, padded>>>(in.get(), out.get()); }, error, 0.0);
  program.run(
      "scan_init_b", {grid, block, padded}, prepare,
      [&] { scan_init_b<<<grid, block, padded>>>(in.get(), out.get()); }, error, 0.0);
  return program.exit_status();
}
