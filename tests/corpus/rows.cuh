// kernels: add_bias softmax_row
// A header with kernels that others include.
#pragma once
#include <cuda_runtime.h>

namespace rows {

constexpr int kWarp = 32;

inline __device__ float warp_max(float x) {
#pragma unroll
  for (int mask = kWarp / 2; mask > 0; mask /= 2) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, mask));
  }
  return x;
}

__global__ static void __launch_bounds__(256) add_bias(float* __restrict__ data,
                                                      const float* __restrict__ bias,
                                                      const int columns) {
  const int row = blockIdx.x;
  for (int c = threadIdx.x; c < columns; c += blockDim.x) data[row * columns + c] += bias[c];
}

template <int COLUMNS>
__global__ void softmax_row(float* data) {
  float* row = data + static_cast<long long>(blockIdx.x) * COLUMNS;
  float values[COLUMNS / kWarp];
  float most = -3.0e38f;
  for (int k = 0; k < COLUMNS / kWarp; ++k) {
    values[k] = row[k * kWarp + threadIdx.x];
    most = fmaxf(most, values[k]);
  }
  most = warp_max(most);
  for (int k = 0; k < COLUMNS / kWarp; ++k) row[k * kWarp + threadIdx.x] = expf(values[k] - most);
}

}  // namespace rows
