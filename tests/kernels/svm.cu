// A linear support vector machine over windows of an image: each thread scores one window of 24 x 34
// pixels, normalised by the window's mean and spread. Where the weights and the pixels lie makes the
// variants. The loop stays one, or a compiler that knows the table writes all 816 iterations out.
#include "harness.cuh"

constexpr int FEATURES = 24 * 34;

__constant__ float weight_table[FEATURES];

// A window's pixels lie together: lanes side by side read 816 words apart. The weight is the same for
// all lanes and a request of its own each time.
// warplens: grid=256 block=128 n=32768
__global__ void svm_naive(const float* __restrict__ pixels, const float* __restrict__ weights,
                          const float* __restrict__ mean, const float* __restrict__ inverse_spread,
                          float* __restrict__ score, float bias, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float centre = mean[i];
  const float scale = inverse_spread[i];
  float sum = bias;
#pragma unroll 1
  for (int k = 0; k < FEATURES; ++k) {
    sum += (pixels[i * FEATURES + k] - centre) * scale * weights[k];
  }
  score[i] = sum;
}

// The weights from constant memory, one word for a whole warp.
// warplens: grid=256 block=128 n=32768
__global__ void svm_constant(const float* __restrict__ pixels, const float* __restrict__ mean,
                             const float* __restrict__ inverse_spread, float* __restrict__ score,
                             float bias, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float centre = mean[i];
  const float scale = inverse_spread[i];
  float sum = bias;
#pragma unroll 1
  for (int k = 0; k < FEATURES; ++k) {
    sum += (pixels[i * FEATURES + k] - centre) * scale * weight_table[k];
  }
  score[i] = sum;
}

// And pixel k of all windows together: lanes side by side read side by side.
// warplens: grid=256 block=128 n=32768
__global__ void svm_constant_coalesced(const float* __restrict__ pixels,
                                       const float* __restrict__ mean,
                                       const float* __restrict__ inverse_spread,
                                       float* __restrict__ score, float bias, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float centre = mean[i];
  const float scale = inverse_spread[i];
  float sum = bias;
#pragma unroll 1
  for (int k = 0; k < FEATURES; ++k) {
    sum += (pixels[k * n + i] - centre) * scale * weight_table[k];
  }
  score[i] = sum;
}

int main(int argc, char** argv) {
  harness::Program program(argc, argv, 1 << 15, 128);
  const int n = program.n;
  const int block = program.block;
  const int grid = harness::ceil_div(n, block);
  if (n > (1 << 20)) {
    std::fprintf(stderr, "--n at most 2^20 windows\n");
    return 2;
  }
  const float bias = -0.5f;
  const size_t count = static_cast<size_t>(n) * FEATURES;
  const std::vector<float> by_window = harness::ramp(count);
  const std::vector<float> host_weights = harness::ramp(FEATURES, 97);
  const std::vector<float> host_mean = harness::ramp(n, 89);
  std::vector<float> host_inverse(n);
  for (int i = 0; i < n; ++i) host_inverse[i] = 0.5f + (i % 7) * 0.25f;
  std::vector<float> by_pixel(count), want(n);
  for (int i = 0; i < n; ++i) {
    double sum = bias;
    for (int k = 0; k < FEATURES; ++k) {
      const float pixel = by_window[static_cast<size_t>(i) * FEATURES + k];
      by_pixel[static_cast<size_t>(k) * n + i] = pixel;
      sum += static_cast<double>(pixel - host_mean[i]) * host_inverse[i] * host_weights[k];
    }
    want[i] = static_cast<float>(sum);
  }

  CUDA_CHECK(cudaMemcpyToSymbol(weight_table, host_weights.data(), FEATURES * sizeof(float)));
  harness::DeviceBuffer<float> pixels(by_window), weights(host_weights), mean(host_mean);
  harness::DeviceBuffer<float> inverse(host_inverse), score(n);
  auto error = [&] { return harness::max_error(score.download(), want); };
  const harness::Launch with = {grid, block, 0, {{"n", n}}};
  program.run(
      "svm_naive", with, [&] { score.clear(); },
      [&] {
        svm_naive<<<grid, block>>>(pixels.get(), weights.get(), mean.get(), inverse.get(),
                                   score.get(), bias, n);
      },
      error, 1e-4);
  program.run(
      "svm_constant", with, [&] { score.clear(); },
      [&] {
        svm_constant<<<grid, block>>>(pixels.get(), mean.get(), inverse.get(), score.get(), bias, n);
      },
      error, 1e-4);
  pixels.upload(by_pixel);
  program.run(
      "svm_constant_coalesced", with, [&] { score.clear(); },
      [&] {
        svm_constant_coalesced<<<grid, block>>>(pixels.get(), mean.get(), inverse.get(),
                                                score.get(), bias, n);
      },
      error, 1e-4);
  return program.exit_status();
}
