// kernels: sample_object lane_ids multiply_fragments half_axpy
// Textures, inline assembly, matrix instructions, half precision.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

using namespace nvcuda;

__global__ void sample_object(cudaTextureObject_t texture, float* out, int width, float scale) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  out[y * width + x] = tex2D<float>(texture, x * scale + 0.5f, y * scale + 0.5f);
}

__global__ void lane_ids(unsigned* out, const unsigned* in) {
  unsigned lane;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned sum;
  asm("add.u32 %0, %1, %2;" : "=r"(sum) : "r"(lane), "r"(in[i]));
  out[i] = sum;
}

__global__ void multiply_fragments(const half* a, const half* b, float* c, int k) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 0.0f);
  const int row = blockIdx.y * 16;
  const int column = blockIdx.x * 16;
  for (int i = 0; i < k; i += 16) {
    wmma::load_matrix_sync(fa, a + row * k + i, k);
    wmma::load_matrix_sync(fb, &b[column * k + i], k);
    wmma::mma_sync(fc, fa, fb, fc);
  }
  wmma::store_matrix_sync(c + row * gridDim.x * 16 + column, fc, gridDim.x * 16, wmma::mem_row_major);
}

__global__ void half_axpy(const __half* x, __half* y, float a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = __float2half(a * __half2float(x[i]) + __half2float(y[i]));
}
