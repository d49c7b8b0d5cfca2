// Latencies: a chain of loads, each of which gives the address of the next, by one thread.
#include "bench.cuh"

#include <cstdint>
#include <random>

constexpr int LOADS = 4096;
constexpr size_t LINE = 128;
constexpr int WORDS = 1024;

// Runs `warm` loads, then times LOADS of them; goes on where the last launch ended.
__global__ void chase(uint64_t* state, int warm, bench::Span* span) {
  // Of the one thread, which the compiler does not know to be alone: else it may take the way of scalar loads.
  uint64_t at = state[threadIdx.x];
  for (int i = 0; i < warm; ++i) at = *(const GLOBAL uint64_t*)at;
  // Not timed before the last of them is there.
  if (at == 0) return;
  const long long from = bench::now();
#pragma unroll 16
  for (int i = 0; i < LOADS; ++i) at = *(const GLOBAL uint64_t*)at;
  if (at == 0) return;
  const long long to = bench::now();
  *state = at;
  *span = {from, to};
}

__constant__ unsigned table[WORDS];

// Byte offsets, so that the load is all that an iteration does.
template <bool CONSTANT>
__global__ void chase_small(const unsigned* ring, unsigned* sink, bench::Span* span) {
  __shared__ unsigned tile[WORDS];
  for (int i = 0; i < WORDS; ++i) tile[i] = ring[i];
  __syncthreads();
  const char* base = CONSTANT ? reinterpret_cast<const char*>(table) : reinterpret_cast<const char*>(tile);
  unsigned at = *sink;
  for (int i = 0; i < WORDS; ++i) at = *reinterpret_cast<const unsigned*>(base + at);
  if (at == ~0u) return;
  const long long from = bench::now();
#pragma unroll 16
  for (int i = 0; i < LOADS; ++i) at = *reinterpret_cast<const unsigned*>(base + at);
  if (at == ~0u) return;
  const long long to = bench::now();
  *sink = at;
  *span = {from, to};
}

// A ring over all lines in an order that nothing can foresee (Sattolo).
static std::vector<size_t> ring(size_t count) {
  std::vector<size_t> order(count);
  for (size_t i = 0; i < count; ++i) order[i] = i;
  std::mt19937_64 random(1);
  for (size_t i = count - 1; i > 0; --i) std::swap(order[i], order[random() % i]);
  return order;
}

static void global(const bench::Run& run) {
  const size_t most = std::min(std::max(size_t(256) << 20, run.l2 * 4), run.memory / 4);
  bench::Buffer<char> memory(most);
  bench::Buffer<uint64_t> state(1);
  bench::Buffer<bench::Span> span(1);
  std::vector<size_t> footprints;
  for (size_t bytes = 4096; bytes <= most; bytes *= 2) {
    footprints.push_back(bytes);
    if (bytes < (1u << 20) && bytes * 3 / 2 <= most) footprints.push_back(bytes * 3 / 2);
  }
  for (const size_t bytes : footprints) {
    const size_t lines = bytes / LINE;
    const std::vector<size_t> next = ring(lines);
    const uint64_t base = reinterpret_cast<uint64_t>(memory.data);
    std::vector<char> host(bytes, 0);
    for (size_t i = 0; i < lines; ++i) {
      const uint64_t to = base + next[i] * LINE;
      std::memcpy(&host[i * LINE], &to, sizeof to);
    }
    CHECK(GPU(Memcpy)(memory.data, host.data(), bytes, GPU(MemcpyHostToDevice)));
    CHECK(GPU(Memcpy)(state.data, &base, sizeof base, GPU(MemcpyHostToDevice)));
    const int warm = static_cast<int>(std::min(lines, size_t(1) << 18));
    auto once = [&] {
      chase<<<1, 1>>>(state.data, warm, span.data);
      CHECK(GPU(GetLastError)());
      return bench::longest(run, span.host()) / LOADS;
    };
    bench::print("latency_global", bench::format("\"bytes\":%zu", bytes), run.unit,
                 bench::repeat(run, once));
  }
}

template <bool CONSTANT>
static void small(const bench::Run& run, const char* name) {
  const std::vector<size_t> next = ring(WORDS);
  std::vector<unsigned> offsets(WORDS);
  for (int i = 0; i < WORDS; ++i) offsets[i] = static_cast<unsigned>(next[i] * sizeof(unsigned));
  CHECK(GPU(MemcpyToSymbol)(SYMBOL(table), offsets.data(), WORDS * sizeof(unsigned)));
  bench::Buffer<unsigned> words(offsets);
  bench::Buffer<unsigned> sink(1);
  bench::Buffer<bench::Span> span(1);
  auto once = [&] {
    chase_small<CONSTANT><<<1, 1>>>(words.data, sink.data, span.data);
    CHECK(GPU(GetLastError)());
    return bench::longest(run, span.host()) / LOADS;
  };
  bench::print(name, "", run.unit, bench::repeat(run, once));
}

int main(int argc, char** argv) {
  const bench::Run run = bench::begin(argc, argv);
  const std::string which = argc > 1 ? argv[1] : "";
  if (which == "latency_global") global(run);
  if (which == "latency_shared") small<false>(run, "latency_shared");
  if (which == "latency_constant") small<true>(run, "latency_constant");
  return 0;
}
