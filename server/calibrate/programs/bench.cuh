// What every micro-benchmark shares: the names of CUDA and HIP, errors, times, and the JSON lines that are printed.
#pragma once

#if defined(__HIPCC__) || defined(__HIP__)
#include <hip/hip_runtime.h>
#define GPU(name) hip##name
#define SYMBOL(name) HIP_SYMBOL(name)
#define AMD 1
#else
#include <cuda_runtime.h>
#define GPU(name) cuda##name
#define SYMBOL(name) name
#define AMD 0
#endif

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

// Pointers to device and to shared memory. AMD's compiler makes flat accesses, which wait for both, of plain pointers that it
// cannot trace.
#if AMD
#define GLOBAL __attribute__((address_space(1)))
#define SHARED __attribute__((address_space(3)))
#else
#define GLOBAL
#define SHARED
#endif

namespace bench {

// Exit statuses that the caller tells apart.
constexpr int NO_DEVICE = 3;
constexpr int FAILED = 4;

inline void check(GPU(Error_t) error, const char* what) {
  if (error == GPU(Success)) return;
  std::fprintf(stderr, "%s: %s (%s)\n", what, GPU(GetErrorString)(error), GPU(GetErrorName)(error));
  std::exit(FAILED);
}
#define CHECK(call) bench::check((call), #call)

// The device, and how often everything is measured.
struct Run {
  int device = 0;
  int repetitions = 9;
  int sms = 1;
  int warp = 32;
  size_t l2 = 0;
  size_t memory = 0;
  int threads_per_sm = 1024;
  int major = 0;
  int minor = 0;
  // What a tick of `now()` is, and in which unit.
  double tick = 1;
  const char* unit = "cycles";
};

// Cycles of the SM. gfx11 counts them in 20 bits, which are used up within a millisecond: there, ticks of a clock of constant rate.
__device__ inline long long now() {
#if AMD && defined(__GFX11__)
  return wall_clock64();
#else
  return clock64();
#endif
}

// Cycles of the SM since `from`, which was a moment ago.
__device__ inline long long cycles_since(long long from) {
#if AMD && defined(__GFX11__)
  return (clock64() - from) & 0xfffff;
#else
  return clock64() - from;
#endif
}

#if AMD
using Attribute = hipDeviceAttribute_t;
#define ATTRIBUTE(cuda, hip) hipDeviceAttribute##hip
#else
using Attribute = cudaDeviceAttr;
#define ATTRIBUTE(cuda, hip) cudaDevAttr##cuda
#endif

inline int attribute(Attribute which, int device) {
  int value = 0;
  // An attribute that this driver does not know counts as not there.
  if (GPU(DeviceGetAttribute)(&value, which, device) != GPU(Success)) {
    (void)GPU(GetLastError)();
    return 0;
  }
  return value;
}

// Arguments: the benchmark, the device's number, the repetitions.
inline Run begin(int argc, char** argv) {
  Run run;
  if (argc > 2) run.device = std::atoi(argv[2]);
  if (argc > 3) run.repetitions = std::max(1, std::atoi(argv[3]));
  int count = 0;
  const auto error = GPU(GetDeviceCount)(&count);
  if (error != GPU(Success) || run.device >= count) {
    const char* why = error != GPU(Success) ? GPU(GetErrorString)(error) : "no device of that number";
    std::fprintf(stderr, "no GPU: %s\n", why);
    std::exit(NO_DEVICE);
  }
  CHECK(GPU(SetDevice)(run.device));
  run.sms = std::max(1, attribute(ATTRIBUTE(MultiProcessorCount, MultiprocessorCount), run.device));
  run.warp = attribute(ATTRIBUTE(WarpSize, WarpSize), run.device);
  run.l2 = static_cast<size_t>(attribute(ATTRIBUTE(L2CacheSize, L2CacheSize), run.device));
  run.threads_per_sm = attribute(
      ATTRIBUTE(MaxThreadsPerMultiProcessor, MaxThreadsPerMultiProcessor), run.device);
  run.major = attribute(ATTRIBUTE(ComputeCapabilityMajor, ComputeCapabilityMajor), run.device);
  run.minor = attribute(ATTRIBUTE(ComputeCapabilityMinor, ComputeCapabilityMinor), run.device);
  size_t free = 0;
  CHECK(GPU(MemGetInfo)(&free, &run.memory));
  run.memory = std::min(run.memory, free);
#if AMD && HIP_VERSION >= 50400000
  hipDeviceProp_t properties;
  CHECK(hipGetDeviceProperties(&properties, run.device));
  const int khz = attribute(hipDeviceAttributeWallClockRate, run.device);
  if (std::strncmp(properties.gcnArchName, "gfx11", 5) == 0 && khz > 0) {
    run.tick = 1e6 / khz;
    run.unit = "ns";
  }
#endif
  return run;
}

// One sample as a line of JSON; `parameters` is the inside of an object.
inline void print(const char* name, const std::string& parameters, const char* unit,
                  const std::vector<double>& repetitions) {
  std::printf("{\"bench\":\"%s\",\"parameters\":{%s},\"unit\":\"%s\",\"repetitions\":[", name,
              parameters.c_str(), unit);
  for (size_t i = 0; i < repetitions.size(); ++i) {
    std::printf("%s%.9g", i == 0 ? "" : ",", repetitions[i]);
  }
  std::printf("]}\n");
  std::fflush(stdout);
}

inline std::string format(const char* pattern, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof text, pattern, arguments);
  va_end(arguments);
  return text;
}

// Device memory, zero at first.
template <class T>
struct Buffer {
  explicit Buffer(size_t count) : count(count) {
    CHECK(GPU(Malloc)(reinterpret_cast<void**>(&data), count * sizeof(T)));
    CHECK(GPU(Memset)(data, 0, count * sizeof(T)));
  }
  explicit Buffer(const std::vector<T>& host) : Buffer(host.size()) {
    CHECK(GPU(Memcpy)(data, host.data(), count * sizeof(T), GPU(MemcpyHostToDevice)));
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { (void)GPU(Free)(data); }
  std::vector<T> host() const {
    std::vector<T> copy(count);
    CHECK(GPU(Memcpy)(copy.data(), data, count * sizeof(T), GPU(MemcpyDeviceToHost)));
    return copy;
  }
  T* data = nullptr;
  size_t count;
};

// Milliseconds between the events around what `work` launches.
template <class Work>
double milliseconds(Work work) {
  GPU(Event_t) from, to;
  CHECK(GPU(EventCreate)(&from));
  CHECK(GPU(EventCreate)(&to));
  CHECK(GPU(EventRecord)(from, 0));
  work();
  CHECK(GPU(GetLastError)());
  CHECK(GPU(EventRecord)(to, 0));
  CHECK(GPU(EventSynchronize)(to));
  float ms = 0;
  CHECK(GPU(EventElapsedTime)(&ms, from, to));
  CHECK(GPU(EventDestroy)(from));
  CHECK(GPU(EventDestroy)(to));
  return ms;
}

// `once` gives one repetition's figure; two rounds warm up.
template <class Once>
std::vector<double> repeat(const Run& run, Once once) {
  for (int i = 0; i < 2; ++i) (void)once();
  std::vector<double> figures;
  for (int i = 0; i < run.repetitions; ++i) figures.push_back(once());
  return figures;
}

// First start and last end of a launch's blocks or warps, by the clock of one SM (`now()`).
struct Span {
  long long from;
  long long to;
};

// In the run's unit, as the next.
inline double longest(const Run& run, const std::vector<Span>& spans) {
  long long longest = 0;
  for (const Span& span : spans) longest = std::max(longest, span.to - span.from);
  return static_cast<double>(longest) * run.tick;
}

// All warps of one block share a clock.
inline double together(const Run& run, const std::vector<Span>& spans) {
  Span all = spans.at(0);
  for (const Span& span : spans) {
    all.from = std::min(all.from, span.from);
    all.to = std::max(all.to, span.to);
  }
  return static_cast<double>(all.to - all.from) * run.tick;
}

}  // namespace bench
