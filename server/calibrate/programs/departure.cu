// The micro-benchmarks of MWP-CWP (Hong and Kim 2009, section 4.2): a loop with a trip count of 601 and a number of loads from DRAM,
// each of which waits for the one before, and so much computation; coalesced, or each lane in a line of its own.
#include "bench.cuh"

constexpr int ROUNDS = 601;
constexpr int COMPUTATIONS = 8;

template <int LOADS, int LANE_WORDS>
__global__ void loads(const int* data, unsigned mask, float seed, bench::Span* spans, float* sink) {
  const unsigned lanes = warpSize;
  const unsigned lane = threadIdx.x % lanes;
  const unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / lanes;
  const unsigned warps = gridDim.x * blockDim.x / lanes;
  float x = seed;
  // Every load of every warp has lines of its own, until the memory is used up.
  unsigned at = warp * lanes * LANE_WORDS + lane * LANE_WORDS;
  const unsigned step = warps * lanes * LANE_WORDS;
  __syncthreads();
  const long long from = bench::now();
#pragma unroll 1
  for (int round = 0; round < ROUNDS; ++round) {
#pragma unroll
    for (int k = 0; k < LOADS; ++k) {
      // What is loaded is 0.
      at = (at + step + static_cast<unsigned>(data[at & mask]));
    }
#pragma unroll
    for (int k = 0; k < COMPUTATIONS; ++k) x = fmaf(x, seed, seed);
  }
  if (at == ~0u) x += 1;
  __syncthreads();
  const long long to = bench::now();
  if (x == -1.0f) *sink = x;
  if (threadIdx.x == 0) spans[blockIdx.x] = {from, to};
}

template <int LOADS, int LANE_WORDS>
static void measure(const bench::Run& run) {
  // A power of two of words, far beyond L2.
  size_t words = size_t(1) << 20;
  while (words * 8 <= run.memory / 4 && words * 4 < std::max(size_t(1) << 29, run.l2 * 16)) words *= 2;
  bench::Buffer<int> data(words);
  bench::Buffer<float> sink(1);
  for (int warps = 1; warps * run.warp <= std::min(run.threads_per_sm, 1024); warps *= 2) {
    const int grid = run.sms;
    bench::Buffer<bench::Span> spans(grid);
    auto once = [&] {
      loads<LOADS, LANE_WORDS><<<grid, warps * run.warp>>>(data.data, static_cast<unsigned>(words - 1),
                                                     1.0f, spans.data, sink.data);
      CHECK(GPU(GetLastError)());
      return bench::longest(run, spans.host());
    };
    // An instruction for each computation, two around each load, three for the loop.
    bench::print("departure",
                 bench::format("\"loads\":%d,\"rounds\":%d,\"computations\":%d,\"warps\":%d,"
                               "\"transactions\":%d,\"bytes\":%d",
                               LOADS, ROUNDS, COMPUTATIONS + 2 * LOADS + 3, warps,
                               LANE_WORDS == 1 ? 1 : run.warp, 4 * run.warp),
                 run.unit, bench::repeat(run, once));
  }
}

int main(int argc, char** argv) {
  bench::Run run = bench::begin(argc, argv);
  run.repetitions = std::min(run.repetitions, 5);
  measure<1, 1>(run);
  measure<2, 1>(run);
  measure<4, 1>(run);
  measure<1, 32>(run);
  measure<2, 32>(run);
  measure<4, 32>(run);
  return 0;
}
