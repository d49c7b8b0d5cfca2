// Shared memory by degree of conflict and width, barriers against warps, atomics on few addresses and many, launches.
#include "bench.cuh"

#include <chrono>

constexpr int WORDS = 4096;
constexpr int UNROLLED = 64;
constexpr int ROUNDS = 32;

// Neighbouring lanes `degree` words apart. The words at the end are there for the widest accesses.
template <class Wide>
__global__ void conflicts(int degree, bench::Span* spans, float* sink) {
  __shared__ __align__(16) float tile[WORDS];
  for (int i = threadIdx.x; i < WORDS; i += blockDim.x) tile[i] = 0;
  __syncthreads();
  constexpr int WIDTH = sizeof(Wide) / sizeof(float);
  const volatile SHARED float* mine =
      (const volatile SHARED float*)tile + threadIdx.x % warpSize * degree * WIDTH;
  float total[4] = {0, 0, 0, 0};
  const long long from = bench::now();
#pragma unroll 1
  for (int round = 0; round < ROUNDS; ++round) {
#pragma unroll
    for (int k = 0; k < UNROLLED; ++k) {
      if constexpr (WIDTH == 1) {
        total[k % 4] += mine[k];
      } else {
#if AMD
        typedef float Four __attribute__((ext_vector_type(4)));
        const Four x = *(const volatile SHARED Four*)(mine + k * WIDTH);
#else
        float x[4];
        const unsigned at =
            static_cast<unsigned>(__cvta_generic_to_shared(const_cast<float*>(mine) + k * WIDTH));
        asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];"
                     : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3])
                     : "r"(at));
#endif
        // One of them is enough to wait for all, and the additions stay few.
        total[k % 4] += x[k % 4];
      }
    }
  }
  const long long to = bench::now();
  if (total[0] + total[1] + total[2] + total[3] == -1.0f) *sink = total[0];
  spans[threadIdx.x] = {from, to};
}

__global__ void barriers(bench::Span* spans) {
  __syncthreads();
  const long long from = bench::now();
#pragma unroll 16
  for (int i = 0; i < 1024; ++i) __syncthreads();
  spans[threadIdx.x] = {from, bench::now()};
}

// Each warp accesses a number of distinct addresses; `apart` words lie between those of two warps.
__global__ void atomics(unsigned* counters, int addresses, int apart, int rounds) {
  const int warp = (blockIdx.x * blockDim.x + threadIdx.x) / warpSize;
  unsigned* mine = counters + static_cast<size_t>(warp) * apart + threadIdx.x % warpSize % addresses;
  for (int i = 0; i < rounds; ++i) atomicAdd(mine, threadIdx.x + i);
}

__global__ void nothing() {}

template <class Wide>
static void shared(const bench::Run& run, int most) {
  for (int degree = 1; degree <= most; degree *= 2) {
    for (const int warps : {1, 4, 16}) {
      const int threads = warps * run.warp;
      bench::Buffer<bench::Span> spans(threads);
      bench::Buffer<float> sink(1);
      auto once = [&] {
        conflicts<Wide><<<1, threads>>>(degree, spans.data, sink.data);
        CHECK(GPU(GetLastError)());
        return bench::together(run, spans.host()) / (double(ROUNDS) * UNROLLED * warps);
      };
      bench::print("shared_conflict",
                   bench::format("\"degree\":%d,\"width\":%zu,\"warps\":%d", degree, sizeof(Wide), warps),
                   run.unit, bench::repeat(run, once));
    }
  }
}

static void barrier(const bench::Run& run) {
  for (int warps = 1; warps * run.warp <= 1024; warps *= 2) {
    const int threads = warps * run.warp;
    bench::Buffer<bench::Span> spans(threads);
    auto once = [&] {
      barriers<<<1, threads>>>(spans.data);
      CHECK(GPU(GetLastError)());
      return bench::together(run, spans.host()) / 1024;
    };
    bench::print("barrier", bench::format("\"warps\":%d", warps), run.unit,
                 bench::repeat(run, once));
  }
}

static void atomic(const bench::Run& run) {
  const int threads = 256;
  const int grid = run.sms * 4;
  const int rounds = 16;
  const int warps = grid * threads / run.warp;
  bench::Buffer<unsigned> counters(static_cast<size_t>(warps) * run.warp);
  auto measure = [&](int addresses, int apart) {
    auto once = [&] {
      const double ms = bench::milliseconds(
          [&] { atomics<<<grid, threads>>>(counters.data, addresses, apart, rounds); });
      return ms * 1e6 / (double(warps) * rounds);
    };
    bench::print("atomic",
                 bench::format("\"addresses\":%d,\"hot\":%d", addresses, apart == 0 ? 1 : 0), "ns",
                 bench::repeat(run, once));
  };
  for (int addresses = 1; addresses <= run.warp; addresses *= 2) measure(addresses, run.warp);
  measure(1, 0);
}

// One launch of a train, by wall time.
static void launch(const bench::Run& run) {
  for (const int blocks : {1, run.sms, run.sms * 64, run.sms * 256, run.sms * 1024}) {
    const int train = blocks > run.sms * 64 ? 20 : 200;
    auto once = [&] {
      nothing<<<blocks, 256>>>();
      CHECK(GPU(DeviceSynchronize)());
      const auto from = std::chrono::steady_clock::now();
      for (int i = 0; i < train; ++i) nothing<<<blocks, 256>>>();
      CHECK(GPU(DeviceSynchronize)());
      const std::chrono::duration<double, std::micro> spent = std::chrono::steady_clock::now() - from;
      return spent.count() / train;
    };
    bench::print("launch", bench::format("\"blocks\":%d", blocks), "us", bench::repeat(run, once));
  }
}

int main(int argc, char** argv) {
  const bench::Run run = bench::begin(argc, argv);
  const std::string which = argc > 1 ? argv[1] : "";
  if (which == "shared_conflict") {
    shared<float>(run, 32);
    shared<float4>(run, 1);
  }
  if (which == "barrier") barrier(run);
  if (which == "atomic") atomic(run);
  if (which == "launch") launch(run);
  return 0;
}
