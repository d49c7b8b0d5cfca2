// Batched Fourier transforms by Stockham's method, whose results come out in order: every pass
// combines RADIX transforms of length ns into one of length ns * RADIX. Pass by pass through global
// memory, and all passes in a block with shared memory between them.
#include "harness.cuh"

constexpr int LENGTH = 256;  // of the transforms in shared memory: a power of 2, of 4 and of 16
constexpr float CLOCKWISE = -6.283185307f;

// v (c + i s)
__device__ float2 rotated(float2 v, float c, float s) {
  return make_float2(v.x * c - v.y * s, v.x * s + v.y * c);
}

// Transforms of two, four and sixteen numbers of a thread, in order.
__device__ void transform2(float2& v0, float2& v1) {
  const float2 a = v0;
  v0 = make_float2(a.x + v1.x, a.y + v1.y);
  v1 = make_float2(a.x - v1.x, a.y - v1.y);
}

__device__ void transform4(float2& v0, float2& v1, float2& v2, float2& v3) {
  const float2 a = make_float2(v0.x + v2.x, v0.y + v2.y);
  const float2 b = make_float2(v0.x - v2.x, v0.y - v2.y);
  const float2 c = make_float2(v1.x + v3.x, v1.y + v3.y);
  const float2 d = make_float2(v1.y - v3.y, v3.x - v1.x);  // -i (v1 - v3)
  v0 = make_float2(a.x + c.x, a.y + c.y);
  v1 = make_float2(b.x + d.x, b.y + d.y);
  v2 = make_float2(a.x - c.x, a.y - c.y);
  v3 = make_float2(b.x - d.x, b.y - d.y);
}

// Four of stride 4, sixteenths of a turn between, four of stride 1, and the transposed order undone.
__device__ void transform16(float2 (&v)[16]) {
  constexpr float C1 = 0.9238795325f, S1 = -0.3826834324f, H = 0.7071067812f;
#pragma unroll
  for (int i = 0; i < 4; ++i) transform4(v[i], v[i + 4], v[i + 8], v[i + 12]);
  v[5] = rotated(v[5], C1, S1);
  v[6] = rotated(v[6], H, -H);
  v[7] = rotated(v[7], -S1, -C1);
  v[9] = rotated(v[9], H, -H);
  v[10] = make_float2(v[10].y, -v[10].x);
  v[11] = rotated(v[11], -H, -H);
  v[13] = rotated(v[13], -S1, -C1);
  v[14] = rotated(v[14], -H, -H);
  v[15] = rotated(v[15], -C1, -S1);
#pragma unroll
  for (int i = 0; i < 16; i += 4) transform4(v[i], v[i + 1], v[i + 2], v[i + 3]);
#pragma unroll
  for (int row = 0; row < 4; ++row) {
#pragma unroll
    for (int col = row + 1; col < 4; ++col) {
      const float2 other = v[4 * col + row];
      v[4 * col + row] = v[4 * row + col];
      v[4 * row + col] = other;
    }
  }
}

// Turns v[r] back by r times `part` of a turn, then transforms.
template <int RADIX>
__device__ void combine(float2 (&v)[RADIX], float part) {
#pragma unroll
  for (int r = 1; r < RADIX; ++r) {
    const float angle = CLOCKWISE * part * r;
    v[r] = rotated(v[r], __cosf(angle), __sinf(angle));
  }
  if constexpr (RADIX == 2) {
    transform2(v[0], v[1]);
  } else if constexpr (RADIX == 4) {
    transform4(v[0], v[1], v[2], v[3]);
  } else {
    transform16(v);
  }
}

// One pass over transforms of length n. While ns is small the results scatter: lanes side by side
// store RADIX numbers apart.
template <int RADIX>
__device__ void pass(const float2* in, float2* out, int n, int ns) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int share = n / RADIX;
  const int from = i / share * n + i % share;
  float2 v[RADIX];
#pragma unroll
  for (int r = 0; r < RADIX; ++r) v[r] = in[from + r * share];
  combine<RADIX>(v, static_cast<float>(i % ns) / (ns * RADIX));
  const int to = i / ns * ns * RADIX + i % ns;
#pragma unroll
  for (int r = 0; r < RADIX; ++r) out[to + r * ns] = v[r];
}

// warplens: grid=2048 block=64 n=256 ns=1
__global__ void fft_global_2(const float2* __restrict__ in, float2* __restrict__ out, int n,
                             int ns) {
  pass<2>(in, out, n, ns);
}

// warplens: grid=1024 block=64 n=256 ns=1
__global__ void fft_global_4(const float2* __restrict__ in, float2* __restrict__ out, int n,
                             int ns) {
  pass<4>(in, out, n, ns);
}

// warplens: grid=256 block=64 n=256 ns=1
__global__ void fft_global_16(const float2* __restrict__ in, float2* __restrict__ out, int n,
                              int ns) {
  pass<16>(in, out, n, ns);
}

// BATCH transforms a block, threadIdx.y says which; between two passes the numbers change owners
// through shared memory.
template <int RADIX, int BATCH>
__device__ void passes(const float2* in, float2* out) {
  constexpr int SHARE = LENGTH / RADIX;
  __shared__ float re[BATCH][LENGTH];
  __shared__ float im[BATCH][LENGTH];
  const int t = threadIdx.x;
  const int which = threadIdx.y;
  const int first = (blockIdx.x * BATCH + which) * LENGTH;

  float2 v[RADIX];
#pragma unroll
  for (int r = 0; r < RADIX; ++r) v[r] = in[first + t + r * SHARE];
#pragma unroll 1
  for (int ns = 1; ns < LENGTH; ns *= RADIX) {
    combine<RADIX>(v, static_cast<float>(t % ns) / (ns * RADIX));
    const int to = t / ns * ns * RADIX + t % ns;
    __syncthreads();
#pragma unroll
    for (int r = 0; r < RADIX; ++r) {
      re[which][to + r * ns] = v[r].x;
      im[which][to + r * ns] = v[r].y;
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < RADIX; ++r) {
      v[r] = make_float2(re[which][t + r * SHARE], im[which][t + r * SHARE]);
    }
  }
#pragma unroll
  for (int r = 0; r < RADIX; ++r) out[first + t + r * SHARE] = v[r];
}

// warplens: grid=1024 block=128
__global__ void fft_shared_2(const float2* __restrict__ in, float2* __restrict__ out) {
  passes<2, 1>(in, out);
}

// warplens: grid=1024 block=64
__global__ void fft_shared_4(const float2* __restrict__ in, float2* __restrict__ out) {
  passes<4, 1>(in, out);
}

// Sixteen threads a transform: a block takes four.
// warplens: grid=256 block=(16,4)
__global__ void fft_shared_16(const float2* __restrict__ in, float2* __restrict__ out) {
  passes<16, 4>(in, out);
}

int main(int argc, char** argv) {
  harness::Program program(argc, argv, 1 << 18, 64, /*fixed_block=*/true);
  const int n = program.n;
  if (n % (4 * LENGTH) != 0 || n > (1 << 24)) {
    std::fprintf(stderr, "--n counts the numbers of all transforms: a multiple of %d, at most 2^24\n",
                 4 * LENGTH);
    return 2;
  }
  const std::vector<float> numbers = harness::ramp(2 * static_cast<size_t>(n));
  std::vector<float2> host_in(n);
  for (int i = 0; i < n; ++i) host_in[i] = make_float2(numbers[2 * i], numbers[2 * i + 1]);

  // By the definition, a transform at a time, each relative to the size of its largest number.
  std::vector<double> cosine(LENGTH), sine(LENGTH);
  for (int k = 0; k < LENGTH; ++k) {
    cosine[k] = std::cos(-2.0 * 3.14159265358979323846 * k / LENGTH);
    sine[k] = std::sin(-2.0 * 3.14159265358979323846 * k / LENGTH);
  }
  std::vector<float> want(2 * static_cast<size_t>(n));
  for (int first = 0; first < n; first += LENGTH) {
    for (int k = 0; k < LENGTH; ++k) {
      double re = 0.0, im = 0.0;
      for (int j = 0; j < LENGTH; ++j) {
        const int turn = j * k % LENGTH;
        re += host_in[first + j].x * cosine[turn] - host_in[first + j].y * sine[turn];
        im += host_in[first + j].x * sine[turn] + host_in[first + j].y * cosine[turn];
      }
      want[2 * (first + k)] = static_cast<float>(re / LENGTH);
      want[2 * (first + k) + 1] = static_cast<float>(im / LENGTH);
    }
  }
  harness::DeviceBuffer<float2> in(host_in), one(n), other(n), out(n);
  const auto error_of = [&](const harness::DeviceBuffer<float2>& result) {
    std::vector<float> got;
    for (const float2& number : result.download()) {
      got.push_back(number.x / LENGTH);
      got.push_back(number.y / LENGTH);
    }
    return harness::max_error(got, want);
  };

  using Pass = void (*)(const float2*, float2*, int, int);
  const struct {
    const char* name;
    Pass kernel;
    int radix;
  } by_pass[] = {{"fft_global_2", fft_global_2, 2},
                 {"fft_global_4", fft_global_4, 4},
                 {"fft_global_16", fft_global_16, 16}};
  for (const auto& each : by_pass) {
    const dim3 block(64);
    const dim3 grid(n / each.radix / 64);
    // The passes from ns up to `end`, from one buffer into the other; where the last result lies.
    const auto passes = [&](const harness::DeviceBuffer<float2>* from, int ns, int end) {
      for (; ns < end; ns *= each.radix) {
        const harness::DeviceBuffer<float2>* to = from == &one ? &other : &one;
        each.kernel<<<grid, block>>>(from->get(), to->get(), LENGTH, ns);
        from = to;
      }
      return from;
    };
    // One pass is timed, the first, which scatters, and the last; the others make the result whole.
    for (const int timed : {1, LENGTH / each.radix}) {
      const harness::DeviceBuffer<float2>* from = nullptr;
      program.run(
          each.name, {grid, block, 0, {{"n", LENGTH}, {"ns", timed}}},
          [&] { from = passes(&in, 1, timed); },
          [&] { each.kernel<<<grid, block>>>(from->get(), out.get(), LENGTH, timed); },
          [&] { return error_of(*passes(&out, timed * each.radix, LENGTH)); }, 1e-4);
    }
  }
  const struct {
    const char* name;
    void (*kernel)(const float2*, float2*);
    dim3 block;
  } in_block[] = {{"fft_shared_2", fft_shared_2, dim3(LENGTH / 2)},
                  {"fft_shared_4", fft_shared_4, dim3(LENGTH / 4)},
                  {"fft_shared_16", fft_shared_16, dim3(LENGTH / 16, 4)}};
  for (const auto& each : in_block) {
    const dim3 grid(n / LENGTH / each.block.y);
    program.run(
        each.name, {grid, each.block}, [&] { out.clear(); },
        [&] { each.kernel<<<grid, each.block>>>(in.get(), out.get()); },
        [&] { return error_of(out); }, 1e-4);
  }
  return program.exit_status();
}
