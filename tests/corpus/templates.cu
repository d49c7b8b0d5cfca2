// kernels: fill reduce_block convert tile_sum pick apply_n
// Templates, launched with the arguments they are made for.
#include <cuda_runtime.h>

template <typename T>
__global__ void fill(T* data, T value, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] = value;
}

template <typename T, int BLOCK>
__global__ void reduce_block(const T* in, T* out, int n) {
  __shared__ T partial[BLOCK];
  const int tid = threadIdx.x;
  T sum = T(0);
  for (int i = blockIdx.x * BLOCK + tid; i < n; i += BLOCK * gridDim.x) sum += in[i];
  partial[tid] = sum;
  __syncthreads();
#pragma unroll
  for (int half = BLOCK / 2; half > 0; half /= 2) {
    if (tid < half) partial[tid] += partial[tid + half];
    __syncthreads();
  }
  if (tid == 0) out[blockIdx.x] = partial[0];
}

template <typename To, typename From>
__global__ void convert(To* to, const From* from, size_t n) {
  const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) to[i] = static_cast<To>(from[i]);
}

template <int TILE>
__global__ void tile_sum(const float* in, float* out, int pitch) {
  __shared__ float tile[TILE][TILE + 1];
  const int x = blockIdx.x * TILE + threadIdx.x;
  const int y = blockIdx.y * TILE + threadIdx.y;
  tile[threadIdx.y][threadIdx.x] = in[y * pitch + x];
  __syncthreads();
  if (threadIdx.y == 0) {
    float sum = 0.0f;
    for (int k = 0; k < TILE; ++k) sum += tile[k][threadIdx.x];
    out[blockIdx.y * pitch + x] = sum;
  }
}

enum class Mode { First, Second };

template <Mode MODE>
__global__ void pick(const int* a, const int* b, int* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (MODE == Mode::First)
    out[i] = a[i];
  else
    out[i] = b[i];
}

template <class Op, unsigned REPEAT = 4>
__global__ void apply_n(float* data, Op op) {
  const unsigned first = (blockIdx.x * blockDim.x + threadIdx.x) * REPEAT;
#pragma unroll
  for (unsigned k = 0; k < REPEAT; ++k) data[first + k] = op(data[first + k]);
}

struct Twice {
  __device__ float operator()(float x) const { return 2.0f * x; }
};

void launch_all(float* f, double* d, int* a, int* b, int n) {
  fill<<<n / 256, 256>>>(f, 1.0f, n);
  fill<double><<<n / 128, 128>>>(d, 0.0, n);
  reduce_block<float, 256><<<64, 256>>>(f, f + n, n);
  convert<<<n / 256, 256>>>(d, f, static_cast<size_t>(n));
  tile_sum<16><<<dim3(64, 64), dim3(16, 16)>>>(f, f + n, 1024);
  pick<Mode::First><<<n / 256, 256>>>(a, b, a);
  pick<Mode::Second><<<n / 256, 256>>>(a, b, b);
  apply_n<Twice><<<n / 1024, 256>>>(f, Twice{});
}
