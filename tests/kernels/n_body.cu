// The potential that n bodies of equal mass make at each of them: all pairs, the sources staged in
// shared memory, block by block. Arithmetic and reciprocal square roots, hardly any memory.
#include "harness.cuh"

constexpr int BLOCK = 256;
constexpr float SOFTENING = 0.01f;

// Coordinates lie by axis: n of x, n of y, n of z. n is a multiple of the block. Every lane reads the
// same body from shared memory.
// warplens: grid=64 block=256 n=16384
__global__ void __launch_bounds__(BLOCK)
    n_body(const float* __restrict__ positions, float* __restrict__ potential, int n) {
  __shared__ float bodies[3][BLOCK];
  const int t = threadIdx.x;
  const int i = blockIdx.x * BLOCK + t;
  const float x = positions[i];
  const float y = positions[n + i];
  const float z = positions[2 * n + i];

  float sum = 0.0f;
  for (int first = 0; first < n; first += BLOCK) {
    bodies[0][t] = positions[first + t];
    bodies[1][t] = positions[n + first + t];
    bodies[2][t] = positions[2 * n + first + t];
    __syncthreads();
    for (int j = 0; j < BLOCK; ++j) {
      const float dx = bodies[0][j] - x;
      const float dy = bodies[1][j] - y;
      const float dz = bodies[2][j] - z;
      sum += rsqrtf(dx * dx + dy * dy + dz * dz + SOFTENING);
    }
    __syncthreads();
  }
  potential[i] = sum;
}

int main(int argc, char** argv) {
  harness::Program program(argc, argv, 1 << 14, BLOCK, /*fixed_block=*/true);
  const int n = program.n;
  if (n % BLOCK != 0 || n > (1 << 16)) {
    std::fprintf(stderr, "--n must be a multiple of %d and at most 2^16\n", BLOCK);
    return 2;
  }
  const std::vector<float> host = harness::ramp(3 * static_cast<size_t>(n));
  std::vector<float> want(n);
  for (int i = 0; i < n; ++i) {
    double sum = 0.0;
    for (int j = 0; j < n; ++j) {
      double squared = SOFTENING;
      for (int axis = 0; axis < 3; ++axis) {
        const size_t from = static_cast<size_t>(axis) * n;
        const double d = static_cast<double>(host[from + j]) - host[from + i];
        squared += d * d;
      }
      sum += 1.0 / std::sqrt(squared);
    }
    want[i] = static_cast<float>(sum);
  }
  harness::DeviceBuffer<float> positions(host), potential(n);
  const int grid = n / BLOCK;
  program.run(
      "n_body", {grid, BLOCK, 0, {{"n", n}}}, [&] { potential.clear(); },
      [&] { n_body<<<grid, BLOCK>>>(positions.get(), potential.get(), n); },
      [&] { return harness::max_error(potential.download(), want); }, 1e-4);
  return program.exit_status();
}
