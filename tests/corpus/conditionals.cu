// kernels: blend wide_copy debug_sum choose_path
// Conditional compilation inside kernels.
#include <cuda_runtime.h>

#define USE_WEIGHTS 1
#define VERSION 3
//#define TRACE

__global__ void blend(const float* a, const float* b, const float* weights, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
#if USE_WEIGHTS
  float w = weights[i];
#else
  float w = 0.5f;
#endif
  out[i] = w * a[i] + (1.0f - w) * b[i];
}

__global__ void wide_copy(const int* in, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
#if VERSION >= 3 && defined(USE_WEIGHTS)
  i *= 2;
  if (i + 1 < n) {
    out[i] = in[i];
    out[i + 1] = in[i + 1];
  }
#elif VERSION == 2
  if (i < n) out[i] = in[n - i];
#else
#error "no such version"
#endif
}

__global__ void debug_sum(const float* in, float* out, float* log, int n) {
  float sum = 0.0f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    sum += in[i];
#ifdef TRACE
    log[i] = sum;
#endif
  }
#if 0
  out[threadIdx.x] = log[0] + sum;
#endif
  out[threadIdx.x] = sum;
}

__global__ void choose_path(const float* in,
#ifdef USE_WEIGHTS
                            const float* weights,
#endif
                            float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n
#ifdef USE_WEIGHTS
      && weights[i] > 0.0f
#endif
  ) {
    out[i] = in[i];
  }
}
