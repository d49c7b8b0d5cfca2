// kernels: distances sort_pairs classify gather_rows butterfly
// Device functions: overloads, several returns, references and pointers as parameters.
#include <cuda_runtime.h>

__device__ float length_of(float2 v) { return sqrtf(v.x * v.x + v.y * v.y); }
__device__ float length_of(float3 v) { return sqrtf(v.x * v.x + v.y * v.y + v.z * v.z); }

__global__ void distances(const float2* flat, const float3* deep, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = length_of(flat[i]) + length_of(deep[i]);
}

template <typename T>
__device__ __forceinline__ void exchange(T& a, T& b) {
  T kept = a;
  a = b;
  b = kept;
}

__global__ void sort_pairs(int* keys, int pairs) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= pairs) return;
  if (keys[2 * i] > keys[2 * i + 1]) exchange(keys[2 * i], keys[2 * i + 1]);
}

__device__ int bucket(float x) {
  if (x < 0.0f) return 0;
  if (x < 1.0f) return 1;
  for (int k = 2; k < 8; ++k) {
    if (x < static_cast<float>(1 << k)) return k;
  }
  return 8;
}

__global__ void classify(const float* in, unsigned char* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  while (i < n) {
    out[i] = static_cast<unsigned char>(bucket(in[i]));
    i += blockDim.x * gridDim.x;
  }
}

static __device__ inline float row_sum(const float* row, int columns) {
  float sum = 0.0f;
  for (int c = 0; c < columns; ++c) sum += row[c];
  return sum;
}

__global__ void gather_rows(const float* table, const int* rows, float* out, int columns, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = row_sum(table + rows[i] * columns, columns);
}

__device__ void step(float& real, float& imaginary, const float2 w) {
  const float r = real * w.x - imaginary * w.y;
  imaginary = real * w.y + imaginary * w.x;
  real = r;
}

__global__ void butterfly(float2* data, const float2* roots, int half) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float2 top = data[i];
  float2 bottom = data[i + half];
  step(bottom.x, bottom.y, roots[i]);
  data[i] = make_float2(top.x + bottom.x, top.y + bottom.y);
  data[i + half] = make_float2(top.x - bottom.x, top.y - bottom.y);
}
