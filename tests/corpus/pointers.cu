// kernels: bump sum_columns by_reference vector_copy load_cached swap_halves out_parameters rows_of complex_scale
// Pointers that move, arithmetic instead of subscripts, references, casts to vectors.
#include <cuda_runtime.h>

__global__ void bump(const float* in, float* out, int steps, int stride) {
  const float* p = in + blockIdx.x * blockDim.x + threadIdx.x;
  float* q = out + blockIdx.x * blockDim.x + threadIdx.x;
  for (int s = 0; s < steps; ++s) {
    *q = *p * 2.0f;
    p += stride;
    q += stride;
  }
}

__global__ void sum_columns(const float* matrix, float* out, int rows, int columns) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= columns) return;
  float sum = 0;
  for (int r = 0; r < rows; r++) sum += *(matrix + r * columns + c);
  *(out + c) = sum;
}

__global__ void by_reference(float* data, const float* add) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float& cell = data[i];
  const float& other = add[i];
  cell = cell * 0.5f + other;
}

__global__ void vector_copy(const float* __restrict__ in, float* __restrict__ out, int n4) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n4) {
    const float4 v = reinterpret_cast<const float4*>(in)[i];
    *reinterpret_cast<float4*>(&out[4 * i]) = v;
  }
}

__global__ void load_cached(const float* in, const int2* pairs, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    const int2 pair = __ldg(&pairs[i]);
    out[i] = __ldg(in + pair.x) - __ldg(&in[pair.y]);
  }
}

__global__ void swap_halves(int* data, int half) {
  int* low = &data[blockIdx.x * blockDim.x + threadIdx.x];
  int* high = low + half;
  const int kept = *low;
  *low = *high;
  *high = kept;
}

__device__ void split(int value, int* low, int* high) {
  *low = value & 0xffff;
  *high = value >> 16;
}

__global__ void out_parameters(const int* in, short2* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  int low, high;
  split(in[i], &low, &high);
  out[i] = make_short2(static_cast<short>(low), static_cast<short>(high));
}

__global__ void rows_of(float (*matrix)[64], float** rows, const float* bias) {
  const int c = threadIdx.x;
  const int r = blockIdx.x;
  float* row = matrix[r];
  row[c] += bias[c];
  rows[r][c] = row[63 - c] + matrix[r][c];
}

typedef struct {
  float re, im;
} Complex;

__global__ void complex_scale(Complex* z, float factor, int n) {
  for (Complex *p = z + threadIdx.x, *end = z + n; p < end; p += blockDim.x) {
    p->re *= factor;
    (*p).im *= factor;
  }
}
