// What every program in this folder needs around its kernels: options, device buffers, timing with
// events, and a comparison with the host's answer. No kernels live here.
//
// Usage of each program:  PROGRAM [--n N] [--block THREADS] [--repeat R] [--kernel NAME] [--json yes]
// Output, one line for each kernel that ran:  kernel n block milliseconds ok|WRONG
// With --json yes the line is an object with the whole launch and the spread of the times.
// With --repeat 0 each kernel runs once and nothing is timed: for a profiler that counts.
// Exit status: 0 all right, 1 a result was wrong, 2 bad usage, no device or a CUDA error.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#define CUDA_CHECK(call)                                                                       \
  do {                                                                                         \
    const cudaError_t status_ = (call);                                                        \
    if (status_ != cudaSuccess) {                                                              \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call,                       \
                   cudaGetErrorString(status_));                                               \
      std::exit(2);                                                                            \
    }                                                                                          \
  } while (0)

// Of cuda_profiler_api.h, which the compiler's packages leave to one of its own.
extern "C" cudaError_t cudaProfilerStart(void);
extern "C" cudaError_t cudaProfilerStop(void);

namespace harness {

inline int ceil_div(int a, int b) { return (a + b - 1) / b; }

// A block's shape as it is printed: 256, 32x8, 8x8x4.
inline std::string shape(const dim3& d) {
  std::string text = std::to_string(d.x);
  if (d.y > 1 || d.z > 1) text += "x" + std::to_string(d.y);
  if (d.z > 1) text += "x" + std::to_string(d.z);
  return text;
}

// Device memory that frees itself.
template <typename T>
class DeviceBuffer {
 public:
  explicit DeviceBuffer(size_t count) : count_(count) {
    CUDA_CHECK(cudaMalloc(&data_, count * sizeof(T)));
    CUDA_CHECK(cudaMemset(data_, 0, count * sizeof(T)));
  }
  explicit DeviceBuffer(const std::vector<T>& host) : DeviceBuffer(host.size()) { upload(host); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer() { cudaFree(data_); }

  void upload(const std::vector<T>& host) {
    CUDA_CHECK(cudaMemcpy(data_, host.data(), count_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  std::vector<T> download() const {
    std::vector<T> host(count_);
    CUDA_CHECK(cudaMemcpy(host.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
  }
  void clear() { CUDA_CHECK(cudaMemset(data_, 0, count_ * sizeof(T))); }
  T* get() const { return data_; }
  size_t size() const { return count_; }

 private:
  T* data_ = nullptr;
  size_t count_;
};

// Numbers that repeat with an odd period, so that a permuted result cannot pass for the right one.
inline std::vector<float> ramp(size_t count, int period = 1009) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % period) / period;
  return values;
}

// Largest difference relative to the expected value (absolute below 1).
inline double max_error(const std::vector<float>& got, const std::vector<float>& want) {
  if (got.size() != want.size()) return INFINITY;
  double worst = 0.0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double scale = std::max(1.0, std::fabs(static_cast<double>(want[i])));
    const double error = std::fabs(static_cast<double>(got[i]) - want[i]) / scale;
    if (!(error <= worst)) worst = error;  // also true for NaN
  }
  return worst;
}

// What a kernel is launched with, as the output names it.
struct Launch {
  dim3 grid;
  dim3 block;
  size_t dynamic_shared = 0;
  // Integer arguments by the names of the kernel's parameters: {"n", n}.
  std::vector<std::pair<std::string, long long>> arguments = {};
};

class Program {
 public:
  // `fixed_block`: the kernels are written for one block shape, so --block is refused.
  Program(int argc, char** argv, int default_n, int default_block, bool fixed_block = false)
      : n(default_n), block(default_block) {
    for (int i = 1; i < argc; ++i) {
      const std::string option = argv[i];
      if (i + 1 == argc) usage(argv[0], option + " needs a value");
      const char* value = argv[++i];
      if (option == "--kernel") {
        only_ = value;
      } else if (option == "--n") {
        n = number(argv[0], option, value);
      } else if (option == "--json") {
        json_ = std::strcmp(value, "yes") == 0;
      } else if (option == "--repeat") {
        repeat_ = number(argv[0], option, value, 0);
      } else if (option == "--block" && !fixed_block) {
        block = number(argv[0], option, value);
        if (block > 1024) usage(argv[0], "a block has at most 1024 threads");
      } else if (option == "--block") {
        usage(argv[0], "the block shape of these kernels is fixed in the source");
      } else {
        usage(argv[0], "unknown option " + option);
      }
    }
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
      std::fprintf(stderr, "no CUDA device\n");
      std::exit(2);
    }
    CUDA_CHECK(cudaEventCreate(&start_));
    CUDA_CHECK(cudaEventCreate(&stop_));
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    cudaEventDestroy(start_);
    cudaEventDestroy(stop_);
  }

  // Runs one kernel: once through `prepare` and `launch` for `error` to judge, then `repeat` times
  // for the clock (median), then as often without a pause in between (a launch's share of that time has
  // no launch overhead in it). `launch` must launch one kernel and leave its inputs as they are or not
  // depend on them. A profiler that is asked to wait for it sees the first launch alone.
  template <typename Prepare, typename Start, typename Error>
  void run(const char* kernel, const Launch& with, Prepare prepare, Start launch, Error error,
           double tolerance = 1e-5) {
    if (!only_.empty() && only_ != kernel) return;
    prepare();
    CUDA_CHECK(cudaProfilerStart());
    launch();
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaDeviceSynchronize());
    CUDA_CHECK(cudaProfilerStop());
    const double off = error();
    const bool right = off <= tolerance;

    std::vector<float> times(repeat_);
    for (float& ms : times) {
      CUDA_CHECK(cudaEventRecord(start_));
      launch();
      CUDA_CHECK(cudaEventRecord(stop_));
      CUDA_CHECK(cudaEventSynchronize(stop_));
      CUDA_CHECK(cudaEventElapsedTime(&ms, start_, stop_));
    }
    std::sort(times.begin(), times.end());
    float in_a_row = 0.0f;
    CUDA_CHECK(cudaEventRecord(start_));
    for (int i = 0; i < repeat_; ++i) launch();
    CUDA_CHECK(cudaEventRecord(stop_));
    CUDA_CHECK(cudaEventSynchronize(stop_));
    CUDA_CHECK(cudaEventElapsedTime(&in_a_row, start_, stop_));
    if (json_) {
      print_json(kernel, with, times, in_a_row, right);
    } else {
      std::printf("%s %d %s %.6f %s\n", kernel, n, shape(with.block).c_str(),
                  times.empty() ? 0.0f : times[times.size() / 2], right ? "ok" : "WRONG");
    }
    std::fflush(stdout);
    if (!right) {
      std::fprintf(stderr, "%s: largest relative error %g, allowed %g\n", kernel, off, tolerance);
      failed_ = true;
    }
    ++ran_;
  }

  int exit_status() const {
    if (ran_ == 0) {
      std::fprintf(stderr, "no kernel is called %s\n", only_.c_str());
      return 2;
    }
    return failed_ ? 1 : 0;
  }

  int n;
  int block;

 private:
  // `times` in milliseconds, sorted; low and high leave a tenth of them out on either side.
  void print_json(const char* kernel, const Launch& with, const std::vector<float>& times,
                  float in_a_row, bool right) const {
    const auto at = [&](size_t tenths) { return times[(times.size() - 1) * tenths / 10]; };
    std::printf("{\"kernel\":\"%s\",\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u],"
                "\"dynamic_shared_bytes\":%zu,\"args\":{",
                kernel, with.grid.x, with.grid.y, with.grid.z, with.block.x, with.block.y,
                with.block.z, with.dynamic_shared);
    const char* comma = "";
    for (const auto& argument : with.arguments) {
      std::printf("%s\"%s\":%lld", comma, argument.first.c_str(), argument.second);
      comma = ",";
    }
    std::printf("},");
    if (!times.empty()) {
      std::printf("\"ms\":{\"median\":%.6f,\"low\":%.6f,\"high\":%.6f,\"least\":%.6f,\"in_a_row\":%.6f},",
                  at(5), at(1), at(9), times.front(), in_a_row / static_cast<float>(times.size()));
    }
    std::printf("\"repeat\":%zu,\"right\":%s}\n", times.size(), right ? "true" : "false");
  }
  [[noreturn]] static void usage(const char* program, const std::string& why) {
    std::fprintf(stderr, "%s: %s\nusage: %s [--n N] [--block THREADS] [--repeat R] [--kernel NAME] "
                 "[--json yes]\n",
                 program, why.c_str(), program);
    std::exit(2);
  }
  static int number(const char* program, const std::string& option, const char* text,
                    int least = 1) {
    char* end = nullptr;
    const long value = std::strtol(text, &end, 10);
    if (end == text || *end != '\0' || value < least || value > (1L << 30)) {
      usage(program, option + " takes a whole number from " + std::to_string(least) + " to 2^30");
    }
    return static_cast<int>(value);
  }

  int repeat_ = 20;
  int ran_ = 0;
  bool failed_ = false;
  bool json_ = false;
  std::string only_;
  cudaEvent_t start_;
  cudaEvent_t stop_;
};

}  // namespace harness
