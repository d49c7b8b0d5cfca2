// Bandwidth of each level against resident warps and width of access, and what strides and offsets cost.
#include "bench.cuh"

constexpr int BLOCK = 256;
// Bytes that a block keeps in L1.
constexpr size_t CHUNK = 16384;

__device__ inline float sum(float x) { return x; }
__device__ inline float sum(float2 x) { return x.x + x.y; }
__device__ inline float sum(float4 x) { return x.x + x.y + x.z + x.w; }

// Loads that a thread has under way before it uses the first.
constexpr int TOGETHER = 4;

// Calls `load(i)` for i = begin, begin + step, … below `count`, and adds what it gives.
template <class Load>
__device__ inline float add_up(size_t begin, size_t count, size_t step, Load load) {
  float total = 0;
  size_t i = begin;
  for (; i + (TOGETHER - 1) * step < count; i += TOGETHER * step) {
    decltype(load(i)) loaded[TOGETHER];
#pragma unroll
    for (int k = 0; k < TOGETHER; ++k) loaded[k] = load(i + k * step);
#pragma unroll
    for (int k = 0; k < TOGETHER; ++k) total += sum(loaded[k]);
  }
  for (; i < count; i += step) total += sum(load(i));
  return total;
}

// Each block reads its own chunk again and again. `moved` is 0, which the compiler cannot know.
template <class Wide, int THREADS>
__global__ void read_l1(const Wide* data, int passes, int moved, bench::Span* spans, float* sink) {
  constexpr int COUNT = CHUNK / sizeof(Wide);
  constexpr int EACH = COUNT / THREADS;
  const Wide* chunk = data + static_cast<size_t>(blockIdx.x) * COUNT + threadIdx.x;
  float total = 0;
  for (int k = 0; k < EACH; ++k) total += sum(chunk[k * THREADS]);
  __syncthreads();
  const long long from = bench::now();
#pragma unroll 1
  for (int pass = 0; pass < passes; ++pass) {
    const Wide* here = chunk + pass * moved;
#pragma unroll
    for (int k = 0; k < EACH; ++k) total += sum(here[k * THREADS]);
  }
  __syncthreads();
  const long long to = bench::now();
  if (total == -1.0f) *sink = total;
  if (threadIdx.x == 0) spans[blockIdx.x] = {from, to};
}

// All blocks read all of it, each from another place on.
template <class Wide>
__global__ void read_l2(const Wide* data, size_t count, int passes, float* sink) {
  float total = 0;
  const size_t start = count / gridDim.x * blockIdx.x;
  for (int pass = 0; pass < passes; ++pass) {
    total += add_up(threadIdx.x, count, blockDim.x, [=](size_t i) {
      const size_t at = start + i;
      return data[at < count ? at : at - count];
    });
  }
  if (total == -1.0f) *sink = total;
}

template <class Wide>
__global__ void read_dram(const Wide* data, size_t count, float* sink) {
  const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
  const size_t begin = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const float total = add_up(begin, count, step, [=](size_t i) { return data[i]; });
  if (total == -1.0f) *sink = total;
}

template <class Wide>
__global__ void copy_dram(const Wide* __restrict__ from, Wide* __restrict__ to, size_t count) {
  const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
  size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i + (TOGETHER - 1) * step < count; i += TOGETHER * step) {
    Wide loaded[TOGETHER];
#pragma unroll
    for (int k = 0; k < TOGETHER; ++k) loaded[k] = from[i + k * step];
#pragma unroll
    for (int k = 0; k < TOGETHER; ++k) to[i + k * step] = loaded[k];
  }
  for (; i < count; i += step) to[i] = from[i];
}

__global__ void gather(const float* data, size_t count, int stride, int offset, float* sink) {
  const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
  const size_t begin = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const float total = add_up(begin, count, step, [=](size_t i) { return data[i * stride + offset]; });
  if (total == -1.0f) *sink = total;
}

// Resident warps an SM that are tried: `visit(blocks per SM, threads of a block, warps per SM)`.
template <class Visit>
static void residencies(const bench::Run& run, Visit visit) {
  for (int threads = 128; threads <= run.threads_per_sm; threads *= 2) {
    const int block = std::min(threads, BLOCK);
    visit(threads / block, block, threads / run.warp);
  }
}

template <class Wide, int THREADS>
static void l1_with(const bench::Run& run) {
  bench::Buffer<char> data(CHUNK * run.sms);
  bench::Buffer<float> sink(1);
  bench::Buffer<bench::Span> spans(run.sms);
  const int passes = 64;
  // Cycles of the unit in which is measured; of a nanosecond at the clock that the driver reports.
  const double khz = bench::attribute(ATTRIBUTE(ClockRate, ClockRate), run.device);
  const double cycles = std::strcmp(run.unit, "ns") == 0 ? khz / 1e6 : 1;
  auto once = [&] {
    read_l1<Wide, THREADS><<<run.sms, THREADS>>>(reinterpret_cast<const Wide*>(data.data), passes, 0,
                                                 spans.data, sink.data);
    CHECK(GPU(GetLastError)());
    return double(CHUNK) * passes / (bench::longest(run, spans.host()) * cycles);
  };
  bench::print("bandwidth_l1",
               bench::format("\"width\":%zu,\"warps\":%d", sizeof(Wide), THREADS / run.warp),
               "B/clk/SM", bench::repeat(run, once));
}

template <class Wide>
static void l1(const bench::Run& run) {
  l1_with<Wide, 128>(run);
  l1_with<Wide, 256>(run);
  l1_with<Wide, 512>(run);
  l1_with<Wide, 1024>(run);
}

template <class Wide>
static void l2(const bench::Run& run) {
  // Beyond what an SM could keep to itself, and well within L2.
  const size_t bytes = std::max(run.l2 / 4, size_t(1) << 19);
  bench::Buffer<char> data(bytes);
  bench::Buffer<float> sink(1);
  const size_t count = bytes / sizeof(Wide);
  residencies(run, [&](int blocks, int block, int warps) {
    const int grid = run.sms * blocks;
    // About as much traffic whatever the residency.
    const int passes = std::max(1, static_cast<int>((size_t(4) << 30) / (bytes * grid)));
    auto once = [&] {
      const double ms = bench::milliseconds([&] {
        read_l2<Wide><<<grid, block>>>(reinterpret_cast<const Wide*>(data.data), count, passes,
                                       sink.data);
      });
      return double(bytes) * passes * grid / (ms * 1e6);
    };
    bench::print("bandwidth_l2", bench::format("\"width\":%zu,\"warps\":%d", sizeof(Wide), warps),
                 "GB/s", bench::repeat(run, once));
  });
}

// Far beyond L2, and no more than there is.
static size_t large(const bench::Run& run) {
  return std::min(std::max(size_t(512) << 20, run.l2 * 16), run.memory / 4) / 4096 * 4096;
}

template <class Wide>
static void dram(const bench::Run& run, bool copies) {
  const size_t bytes = large(run);
  bench::Buffer<char> data(bytes);
  bench::Buffer<char> target(copies ? bytes : 16);
  bench::Buffer<float> sink(1);
  const size_t count = bytes / sizeof(Wide);
  const Wide* from = reinterpret_cast<const Wide*>(data.data);
  Wide* to = reinterpret_cast<Wide*>(target.data);
  residencies(run, [&](int blocks, int block, int warps) {
    auto once = [&] {
      const double ms = bench::milliseconds([&] {
        if (copies) {
          copy_dram<Wide><<<run.sms * blocks, block>>>(from, to, count);
        } else {
          read_dram<Wide><<<run.sms * blocks, block>>>(from, count, sink.data);
        }
      });
      return double(bytes) * (copies ? 2 : 1) / (ms * 1e6);
    };
    bench::print(copies ? "bandwidth_copy" : "bandwidth_dram",
                 bench::format("\"width\":%zu,\"warps\":%d", sizeof(Wide), warps), "GB/s",
                 bench::repeat(run, once));
  });
}

// GB/s of the bytes requested.
static void coalescing(const bench::Run& run) {
  const size_t bytes = large(run);
  bench::Buffer<float> data(bytes / sizeof(float));
  bench::Buffer<float> sink(1);
  auto measure = [&](int stride, int offset) {
    const size_t count = bytes / sizeof(float) / stride - offset;
    auto once = [&] {
      const double ms = bench::milliseconds([&] {
        gather<<<run.sms * (run.threads_per_sm / BLOCK), BLOCK>>>(data.data, count, stride, offset,
                                                                  sink.data);
      });
      return double(count) * sizeof(float) / (ms * 1e6);
    };
    bench::print("coalescing", bench::format("\"stride\":%d,\"offset\":%d", stride, offset), "GB/s",
                 bench::repeat(run, once));
  };
  for (int stride = 1; stride <= 64; stride *= 2) measure(stride, 0);
  for (const int offset : {1, 4, 8, 16}) measure(1, offset);
}

int main(int argc, char** argv) {
  const bench::Run run = bench::begin(argc, argv);
  const std::string which = argc > 1 ? argv[1] : "";
  if (which == "bandwidth_l1") {
    l1<float>(run);
    l1<float2>(run);
    l1<float4>(run);
  } else if (which == "bandwidth_l2") {
    l2<float>(run);
    l2<float2>(run);
    l2<float4>(run);
  } else if (which == "bandwidth_dram" || which == "bandwidth_copy") {
    const bool copies = which == "bandwidth_copy";
    dram<float>(run, copies);
    dram<float2>(run, copies);
    dram<float4>(run, copies);
  } else if (which == "coalescing") {
    coalescing(run);
  }
  return 0;
}
