// c = a + b with the threads of a warp 1, 2 and 32 elements apart: what stride does to a memory
// request. At 4 bytes per element a warp needs 4, 8 and 32 sectors of 32 bytes for the same 128 bytes.
#include "harness.cuh"

// The reference point: every request is as small as it can be.
// warplens: block=256 grid=4096 n=1048576
__global__ void vector_add(const float* __restrict__ a, const float* __restrict__ b,
                           float* __restrict__ c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

// The stride known when compiling; instantiated for 1, 2 and 32 below.
// warplens: block=256 grid=4096 n=1048576
template <int STRIDE>
__global__ void vector_add_strided(const float* __restrict__ a, const float* __restrict__ b,
                                   float* __restrict__ c, size_t n) {
  const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) c[i * STRIDE] = a[i * STRIDE] + b[i * STRIDE];
}

// The stride as an argument: the source alone does not say what a request costs.
// warplens: block=256 grid=4096 n=1048576 stride=2
__global__ void vector_add_by(const float* a, const float* b, float* c, int n, int stride) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    const int at = i * stride;
    c[at] = a[at] + b[at];
  }
}

int main(int argc, char** argv) {
  harness::Program program(argc, argv, 1 << 20, 256);
  const int n = program.n;
  const int block = program.block;
  const int grid = harness::ceil_div(n, block);
  constexpr int widest = 32;
  if (n > (1 << 25)) {
    std::fprintf(stderr, "--n at most 2^25: the widest stride takes 32 times that\n");
    return 2;
  }

  std::vector<float> host_a = harness::ramp(static_cast<size_t>(n) * widest);
  std::vector<float> host_b = harness::ramp(static_cast<size_t>(n) * widest, 997);
  harness::DeviceBuffer<float> a(host_a), b(host_b), c(host_a.size());

  // Every stride-th element is the sum, the ones between stay untouched.
  auto error = [&](int stride) {
    std::vector<float> want(host_a.size(), 0.0f);
    for (int i = 0; i < n; ++i) {
      const size_t at = static_cast<size_t>(i) * stride;
      want[at] = host_a[at] + host_b[at];
    }
    return harness::max_error(c.download(), want);
  };
  auto prepare = [&] { c.clear(); };

  program.run(
      "vector_add", {grid, block, 0, {{"n", n}}}, prepare,
      [&] { vector_add<<<grid, block>>>(a.get(), b.get(), c.get(), n); }, [&] { return error(1); });
  program.run(
      "vector_add_strided<1>", {grid, block, 0, {{"n", n}}}, prepare,
      [&] { vector_add_strided<1><<<grid, block>>>(a.get(), b.get(), c.get(), n); },
      [&] { return error(1); });
  program.run(
      "vector_add_strided<2>", {grid, block, 0, {{"n", n}}}, prepare,
      [&] { vector_add_strided<2><<<grid, block>>>(a.get(), b.get(), c.get(), n); },
      [&] { return error(2); });
  program.run(
      "vector_add_strided<32>", {grid, block, 0, {{"n", n}}}, prepare,
      [&] { vector_add_strided<32><<<grid, block>>>(a.get(), b.get(), c.get(), n); },
      [&] { return error(32); });
  program.run(
      "vector_add_by", {grid, block, 0, {{"n", n}, {"stride", 2}}}, prepare,
      [&] { vector_add_by<<<grid, block>>>(a.get(), b.get(), c.get(), n, 2); },
      [&] { return error(2); });
  return program.exit_status();
}
