// kernels: hip_saxpy hip_reverse hip_sum
// HIP: its launch macro and the triple angle brackets.
#include <hip/hip_runtime.h>

__global__ void hip_saxpy(float a, const float* x, float* y, int n) {
  const int i = hipBlockIdx_x * hipBlockDim_x + hipThreadIdx_x;
  if (i < n) y[i] += a * x[i];
}

__global__ void hip_reverse(int* data, int n) {
  HIP_DYNAMIC_SHARED(int, kept)
  const int t = threadIdx.x;
  kept[t] = data[t];
  __syncthreads();
  data[t] = kept[n - 1 - t];
}

__global__ __launch_bounds__(1024) void hip_sum(const double* in, double* out, int n) {
  __shared__ double partial[1024];
  double sum = 0.0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += in[i];
  partial[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int t = 1; t < blockDim.x; ++t) partial[0] += partial[t];
    *out = partial[0];
  }
}

void run(float* x, float* y, int* keys, double* d, int n) {
  hipLaunchKernelGGL(hip_saxpy, dim3(n / 256), dim3(256), 0, 0, 2.0f, x, y, n);
  hipLaunchKernelGGL(hip_reverse, dim3(1), dim3(64), 64 * sizeof(int), 0, keys, 64);
  hip_sum<<<1, 1024>>>(d, d + n, n);
}
