// Kernels whose times tell what each property of the linear model costs, after the measurement kernels
// of Stevens and Kloeckner: the empty kernel, accesses by stride with and without gaps, loads beside
// stores, one kernel for each kind of arithmetic, shared memory and barriers. transpose.cu and matmul.cu
// beside this file belong to the same suite. Blocks have 256 threads.
#include "harness.cuh"

constexpr int BLOCK = 256;
// Operations of a thread in the kernels that measure them.
constexpr int ROUNDS = 64;
// Rows of shared memory that a block writes and reads.
constexpr int ROWS = 16;

// What every launch and every block costs.
// warplens: block=256 grid=4096
__global__ void empty() {}

// Stores alone.
// warplens: block=256 grid=4096 n=1048576
__global__ void store(float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 1.0f;
}

// A load beside a store: what overlaps.
// warplens: block=256 grid=4096 n=1048576
__global__ void copy(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i];
}

// Four loads to a store.
// warplens: block=256 grid=4096 n=1048576
__global__ void add_four(const float* a, const float* b, const float* c, const float* d, float* out,
                         int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i] + c[i] + d[i];
}

// Neighbours STRIDE elements apart; what lies between is not touched.
// warplens: block=256 grid=4096 n=1048576
template <int STRIDE>
__global__ void scale_add(const float* a, const float* b, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i * STRIDE] = 2.0f * a[i * STRIDE] + b[i * STRIDE];
}

// The same distance, but every element is used.
// warplens: block=256 grid=4096 n=1048576
__global__ void filled_sum_two(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[2 * i] + in[2 * i + 1];
}

// warplens: block=256 grid=4096 n=1048576
__global__ void filled_sum_three(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[3 * i] + in[3 * i + 1] + in[3 * i + 2];
}

// Additions that wait for one another, hidden by the other warps.
// warplens: block=256 grid=4096 n=1048576
template <typename T>
__global__ void add(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    T x = static_cast<T>(in[i]);
    const T y = x;
    for (int k = 0; k < ROUNDS; ++k) x = x + y;
    out[i] = static_cast<float>(x);
  }
}

// warplens: block=256 grid=4096 n=1048576
template <typename T>
__global__ void multiply(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    const T y = static_cast<T>(in[i]);
    T x = y;
    for (int k = 0; k < ROUNDS; ++k) x = x * y;
    out[i] = static_cast<float>(x);
  }
}

// warplens: block=256 grid=4096 n=1048576
template <typename T>
__global__ void divide(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    const T y = static_cast<T>(in[i]);
    T x = y;
    for (int k = 0; k < ROUNDS; ++k) x = x / y;
    out[i] = static_cast<float>(x);
  }
}

// warplens: block=256 grid=4096 n=1048576
template <typename T>
__global__ void exponential(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    T x = static_cast<T>(in[i]);
    for (int k = 0; k < ROUNDS; ++k) x = exp(-x);
    out[i] = static_cast<float>(x);
  }
}

// Loads from shared memory without conflict.
// warplens: block=256 grid=4096 n=1048576
__global__ void shared_loads(const float* in, float* out, int n) {
  __shared__ float tile[BLOCK];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = i < n ? in[i] : 0.0f;
  __syncthreads();
  float sum = 0.0f;
  for (int k = 0; k < ROUNDS; ++k) sum += tile[(threadIdx.x + k) % BLOCK];
  if (i < n) out[i] = sum;
}

// As many stores as loads.
// warplens: block=256 grid=4096 n=1048576
__global__ void shared_round(const float* in, float* out, int n) {
  __shared__ float tile[ROWS][BLOCK];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float x = i < n ? in[i] : 0.0f;
  for (int k = 0; k < ROWS; ++k) tile[k][threadIdx.x] = x;
  __syncthreads();
  float sum = 0.0f;
  for (int k = 0; k < ROWS; ++k) sum += tile[k][(threadIdx.x + 1) % BLOCK];
  if (i < n) out[i] = sum;
}

// Barriers that all warps reach together.
// warplens: block=256 grid=4096 n=1048576
__global__ void barriers(float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = 0; k < ROUNDS; ++k) __syncthreads();
  if (i < n) out[i] = 1.0f;
}

int main(int argc, char** argv) {
  harness::Program program(argc, argv, 1 << 20, BLOCK, true);
  const int n = program.n;
  const int grid = harness::ceil_div(n, BLOCK);
  constexpr int widest = 3;
  if (n > (1 << 26)) {
    std::fprintf(stderr, "--n at most 2^26: the widest stride takes 3 times that\n");
    return 2;
  }

  // From 1 to 1.001: 64 multiplications or exponentials stay in range.
  std::vector<float> host = harness::ramp(static_cast<size_t>(n) * widest);
  for (float& x : host) x = 1.0f + x / 1024.0f;
  harness::DeviceBuffer<float> in(host), other(host), out(host.size());

  // What element i of the result is; those between the elements of a stride stay untouched.
  auto error = [&](auto element, int stride = 1) {
    std::vector<float> want(host.size(), 0.0f);
    for (int i = 0; i < n; ++i) {
      want[static_cast<size_t>(i) * stride] = static_cast<float>(element(i));
    }
    return harness::max_error(out.download(), want);
  };
  auto rounds = [&](auto start, auto step) {
    auto x = start;
    for (int k = 0; k < ROUNDS; ++k) x = step(x);
    return x;
  };
  // The sum over a block of what the threads behind one loaded, by the host's order.
  auto neighbours = [&](int i, int from, int count) {
    float sum = 0.0f;
    for (int k = from; k < from + count; ++k) {
      const int at = i / BLOCK * BLOCK + (i % BLOCK + k) % BLOCK;
      sum += at < n ? host[at] : 0.0f;
    }
    return sum;
  };
  auto value = [&](int i) { return host[i]; };
  auto wide = [&](int i) { return static_cast<double>(host[i]); };
  auto prepare = [&] { out.clear(); };
  const float* a = in.get();
  const float* b = other.get();
  float* c = out.get();

  program.run(
      "empty", {grid, BLOCK}, prepare, [&] { empty<<<grid, BLOCK>>>(); },
      [&] { return error([](int) { return 0.0f; }); });
  program.run(
      "store", {grid, BLOCK, 0, {{"n", n}}}, prepare, [&] { store<<<grid, BLOCK>>>(c, n); },
      [&] { return error([](int) { return 1.0f; }); });
  program.run(
      "copy", {grid, BLOCK, 0, {{"n", n}}}, prepare, [&] { copy<<<grid, BLOCK>>>(a, c, n); },
      [&] { return error(value); });
  program.run(
      "add_four", {grid, BLOCK, 0, {{"n", n}}}, prepare,
      [&] { add_four<<<grid, BLOCK>>>(a, b, a, b, c, n); },
      [&] { return error([&](int i) { return 4.0f * host[i]; }); });
  program.run(
      "scale_add<1>", {grid, BLOCK, 0, {{"n", n}}}, prepare,
      [&] { scale_add<1><<<grid, BLOCK>>>(a, b, c, n); },
      [&] { return error([&](int i) { return 3.0f * host[i]; }); });
  program.run(
      "scale_add<2>", {grid, BLOCK, 0, {{"n", n}}}, prepare,
      [&] { scale_add<2><<<grid, BLOCK>>>(a, b, c, n); },
      [&] { return error([&](int i) { return 3.0f * host[size_t(2) * i]; }, 2); });
  program.run(
      "filled_sum_two", {grid, BLOCK, 0, {{"n", n}}}, prepare,
      [&] { filled_sum_two<<<grid, BLOCK>>>(a, c, n); },
      [&] { return error([&](int i) { return host[2 * i] + host[2 * i + 1]; }); });
  program.run(
      "filled_sum_three", {grid, BLOCK, 0, {{"n", n}}}, prepare,
      [&] { filled_sum_three<<<grid, BLOCK>>>(a, c, n); },
      [&] { return error([&](int i) { return host[3 * i] + host[3 * i + 1] + host[3 * i + 2]; }); });
  program.run(
      "add<float>", {grid, BLOCK, 0, {{"n", n}}}, prepare,
      [&] { add<float><<<grid, BLOCK>>>(a, c, n); },
      [&] { return error([&](int i) { return (ROUNDS + 1) * wide(i); }); });
  program.run(
      "add<double>", {grid, BLOCK, 0, {{"n", n}}}, prepare,
      [&] { add<double><<<grid, BLOCK>>>(a, c, n); },
      [&] { return error([&](int i) { return (ROUNDS + 1) * wide(i); }); });
  program.run(
      "multiply<float>", {grid, BLOCK, 0, {{"n", n}}}, prepare,
      [&] { multiply<float><<<grid, BLOCK>>>(a, c, n); },
      [&] { return error([&](int i) { return std::pow(wide(i), ROUNDS + 1); }); });
  program.run(
      "multiply<double>", {grid, BLOCK, 0, {{"n", n}}}, prepare,
      [&] { multiply<double><<<grid, BLOCK>>>(a, c, n); },
      [&] { return error([&](int i) { return std::pow(wide(i), ROUNDS + 1); }); });
  program.run(
      "divide<float>", {grid, BLOCK, 0, {{"n", n}}}, prepare,
      [&] { divide<float><<<grid, BLOCK>>>(a, c, n); },
      [&] { return error([&](int i) { return std::pow(wide(i), 1 - ROUNDS); }); });
  program.run(
      "divide<double>", {grid, BLOCK, 0, {{"n", n}}}, prepare,
      [&] { divide<double><<<grid, BLOCK>>>(a, c, n); },
      [&] { return error([&](int i) { return std::pow(wide(i), 1 - ROUNDS); }); });
  program.run(
      "exponential<float>", {grid, BLOCK, 0, {{"n", n}}}, prepare,
      [&] { exponential<float><<<grid, BLOCK>>>(a, c, n); },
      [&] {
        return error([&](int i) { return rounds(wide(i), [](double x) { return std::exp(-x); }); });
      });
  program.run(
      "exponential<double>", {grid, BLOCK, 0, {{"n", n}}}, prepare,
      [&] { exponential<double><<<grid, BLOCK>>>(a, c, n); },
      [&] {
        return error([&](int i) { return rounds(wide(i), [](double x) { return std::exp(-x); }); });
      });
  program.run(
      "shared_loads", {grid, BLOCK, 0, {{"n", n}}}, prepare,
      [&] { shared_loads<<<grid, BLOCK>>>(a, c, n); },
      [&] { return error([&](int i) { return neighbours(i, 0, ROUNDS); }); });
  program.run(
      "shared_round", {grid, BLOCK, 0, {{"n", n}}}, prepare,
      [&] { shared_round<<<grid, BLOCK>>>(a, c, n); },
      [&] { return error([&](int i) { return ROWS * neighbours(i, 1, 1); }); });
  program.run(
      "barriers", {grid, BLOCK, 0, {{"n", n}}}, prepare,
      [&] { barriers<<<grid, BLOCK>>>(c, n); },
      [&] { return error([](int) { return 1.0f; }); });
  return program.exit_status();
}
