// HIP, for the default GPU.
#include <hip/hip_runtime.h>

// warplens: block=256 grid=256 n=65536
__global__ void copy_structs(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float a = in[5 * i];
  float b = in[5 * i + 4];
  out[i] = a * b;
}

// warplens: block=(64,4) grid=(16,256) n=1024
__global__ void turned(const float *__restrict__ in, float *__restrict__ out, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  float v = in[x * n + y];
  out[y * n + x] = v;
}

// warplens: block=256 grid=256
__global__ void rows_in_lds(const float *__restrict__ in, float *__restrict__ out) {
  __shared__ float s[256 * 8];
  int t = threadIdx.x;
  for (int k = 0; k < 8; k++) {
    s[t * 8 + k] = in[k * 65536 + blockIdx.x * 256 + t];
  }
  __syncthreads();
  float sum = 0.0f;
  for (int k = 0; k < 8; k++) {
    sum += s[(255 - t) * 8 + k];
  }
  out[blockIdx.x * 256 + t] = sum;
}
