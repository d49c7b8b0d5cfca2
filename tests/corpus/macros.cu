// kernels: scale_checked sum_stencil copy_rows add_f32 add_f64 add_i32 clamp_all axpby_f negate_f
// Macros that represent expressions, statements, loops, parameter lists and whole kernels.
#include <cuda_runtime.h>

#define GLOBAL_ID (blockIdx.x * blockDim.x + threadIdx.x)
#define RETURN_IF_OUTSIDE(i, n) \
  do {                          \
    if ((i) >= (n)) return;     \
  } while (0)

__global__ void scale_checked(float* data, float factor, int n) {
  const int i = GLOBAL_ID;
  RETURN_IF_OUTSIDE(i, n);
  data[i] *= factor;
}

#define AT(array, row, column) array[(row) * width + (column)]
#define SUM4(row, column)                                      \
  (AT(in, (row) - 1, column) + AT(in, (row) + 1, column) +     \
   AT(in, row, (column) - 1) + AT(in, row, (column) + 1))

__global__ void sum_stencil(const float* __restrict__ in, float* __restrict__ out, int width,
                            int height) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row > 0 && column > 0 && row < height - 1 && column < width - 1) {
    AT(out, row, column) = 0.25f * SUM4(row, column);
  }
}

#define FOR_EACH(i, n) \
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += blockDim.x * gridDim.x)
#define ROW_ARGUMENTS const float *src, float *dst, int pitch

__global__ void copy_rows(ROW_ARGUMENTS, int rows) {
  FOR_EACH(row, rows) {
    for (int k = 0; k < 8; ++k) {
      dst[row * pitch + k] = src[row * pitch + k];
    }
  }
}

#define DEFINE_ADD(suffix, type)                                                      \
  __global__ void add_##suffix(const type* a, const type* b, type* out, int n) {      \
    int i = blockIdx.x * blockDim.x + threadIdx.x;                                    \
    if (i < n) out[i] = a[i] + b[i];                                                  \
  }
DEFINE_ADD(f32, float)
DEFINE_ADD(f64, double)
DEFINE_ADD(i32, int)

#define LOAD(x) const float value = x[i]
#define STORE(x, v) x[i] = (v);
#define CLAMP(v, low, high) ((v) < (low) ? (low) : (v) > (high) ? (high) : (v))

__global__ void clamp_all(float* data, float low, float high, int n) {
  int i = GLOBAL_ID;
  if (i < n) {
    LOAD(data);
    STORE(data, CLAMP(value, low, high))
  }
}

#define KERNEL(name) __global__ void name
#define F(name) name##_f

KERNEL(F(axpby))(float a, const float* x, float b, float* y, int n) {
  const int i = GLOBAL_ID;
  if (i < n) y[i] = a * x[i] + b * y[i];
}

#define BEGIN_KERNEL(name, ...) __global__ void name##_f(__VA_ARGS__) { const int tid = GLOBAL_ID;
#define END_KERNEL }

BEGIN_KERNEL(negate, float* data, int n)
  if (tid < n) data[tid] = -data[tid];
END_KERNEL
