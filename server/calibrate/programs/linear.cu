// Times of the linear model's measurement kernels, one launch each, the launch included.
#include "bench.cuh"
#include "linear_kernels.h"

#include <chrono>

// The most bytes per element that a kernel reads, and the most that it writes.
constexpr size_t WIDEST = 32;

// Ones: no division of theirs takes a way of its own.
__global__ void fill(float* data, size_t count) {
  const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) data[i] = 1.0f;
}

int main(int argc, char** argv) {
  const bench::Run run = bench::begin(argc, argv);
  for (int n = 1 << 16; n <= 1 << 24 && size_t(n) * WIDEST * 2 <= run.memory / 2; n *= 4) {
    bench::Buffer<char> input(size_t(n) * WIDEST);
    bench::Buffer<char> output(size_t(n) * WIDEST);
    const int grid = n / BLOCK;
    fill<<<run.sms * 8, BLOCK>>>(reinterpret_cast<float*>(input.data), input.count / sizeof(float));
    CHECK(GPU(GetLastError)());
    // A train of launches by wall time, as programs see them.
    auto measure = [&](const char* name, auto launch) {
      const int train = n > (1 << 20) ? 4 : 20;
      auto once = [&] {
        launch();
        CHECK(GPU(DeviceSynchronize)());
        const auto from = std::chrono::steady_clock::now();
        for (int i = 0; i < train; ++i) launch();
        CHECK(GPU(GetLastError)());
        CHECK(GPU(DeviceSynchronize)());
        const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - from;
        return spent.count() / train;
      };
      bench::print("linear", bench::format("\"kernel\":\"%s\",\"n\":%d", name, n), "s",
                   bench::repeat(run, once));
    };
#define MEASURE(kernel, type)                                                                    \
  measure(#kernel, [&] {                                                                         \
    kernel<<<grid, BLOCK>>>(reinterpret_cast<const type*>(input.data),                           \
                            reinterpret_cast<type*>(output.data), n);                            \
  })
#define MEASURE_OUTPUT(kernel, type) \
  measure(#kernel, [&] { kernel<<<grid, BLOCK>>>(reinterpret_cast<type*>(output.data), n); })
    measure("lm_empty", [&] { lm_empty<<<grid, BLOCK>>>(n); });
    MEASURE_OUTPUT(lm_store, float);
    MEASURE_OUTPUT(lm_store_wide, double);
    MEASURE_OUTPUT(lm_store_widest, float4);
    MEASURE(lm_copy, float);
    MEASURE(lm_copy_wide, double);
    MEASURE(lm_copy_widest, float4);
    MEASURE(lm_add_four, float);
    MEASURE(lm_load, float);
    MEASURE(lm_stride_two, float);
    MEASURE(lm_stride_two_filled, float);
    MEASURE(lm_stride_wide, float);
    MEASURE(lm_f32_add, float);
    MEASURE(lm_f32_mul, float);
    MEASURE(lm_f32_div, float);
    MEASURE(lm_f32_special, float);
    MEASURE(lm_f64_add, double);
    MEASURE(lm_f64_mul, double);
    MEASURE(lm_int_add, int);
    MEASURE(lm_int_mul, int);
    MEASURE(lm_shared_load, float);
    MEASURE(lm_shared_conflict, float);
    MEASURE(lm_shared_store, float);
    MEASURE_OUTPUT(lm_barrier, float);
    MEASURE_OUTPUT(lm_atomic, int);
    MEASURE_OUTPUT(lm_atomic_conflict, int);
  }
  return 0;
}
