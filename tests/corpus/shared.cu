// kernels: transpose_tile carve histogram private_histogram convolve
// Shared memory with static and dynamic sizes, local arrays, constant memory.
#include <cuda_runtime.h>

__global__ void transpose_tile(const float* in, float* out, int width, int height) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x;
  int y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) {
    if (x < width && y + j < height) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
  }
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) {
    if (x < height && y + j < width) out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
  }
}

__global__ void carve(const float* in, const int* keys, float* out, int per_block) {
  extern __shared__ unsigned char raw[];
  float* values = reinterpret_cast<float*>(raw);
  int* order = reinterpret_cast<int*>(raw + per_block * sizeof(float));
  float* const scratch = (float*)&order[per_block];
  const int t = threadIdx.x;
  values[t] = in[blockIdx.x * per_block + t];
  order[t] = keys[blockIdx.x * per_block + t];
  __syncthreads();
  scratch[t] = values[order[t]];
  __syncthreads();
  out[blockIdx.x * per_block + t] = scratch[per_block - 1 - t];
}

__global__ void histogram(const unsigned char* in, unsigned int* bins, int n) {
  __shared__ unsigned int local_bins[256];
  for (int b = threadIdx.x; b < 256; b += blockDim.x) local_bins[b] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    atomicAdd(&local_bins[in[i]], 1u);
  }
  __syncthreads();
  for (int b = threadIdx.x; b < 256; b += blockDim.x) atomicAdd(bins + b, local_bins[b]);
}

__global__ void private_histogram(const int* in, int* out, int per_thread) {
  int bins[16] = {0};
  const int first = (blockIdx.x * blockDim.x + threadIdx.x) * per_thread;
  for (int k = 0; k < per_thread; ++k) ++bins[in[first + k] & 15];
#pragma unroll
  for (int b = 0; b < 16; ++b) {
    out[(blockIdx.x * blockDim.x + threadIdx.x) * 16 + b] = bins[b];
  }
}

__constant__ float weights[9];
__constant__ int offsets[3][3];

__global__ void convolve(const float* in, float* out, int width) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x + 1;
  const int y = blockIdx.y * blockDim.y + threadIdx.y + 1;
  float sum = 0.0f;
  for (int dy = -1; dy <= 1; ++dy) {
    for (int dx = -1; dx <= 1; ++dx) {
      sum += weights[(dy + 1) * 3 + dx + 1] * in[(y + dy) * width + x + dx + offsets[dy + 1][dx + 1]];
    }
  }
  out[y * width + x] = sum;
}
