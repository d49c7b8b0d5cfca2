// Kernels whose times tell what a unit of each property of the linear model costs, after the measurement kernels of
// Stevens and Kloeckner. Each thread has one element; blocks have 256 threads.
#define BLOCK 256
#define ROUNDS 64

__global__ void lm_empty(int n) {}

__global__ void lm_store(float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = 1.0f;
}

__global__ void lm_store_wide(double* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = 1.0;
}

__global__ void lm_store_widest(float4* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = make_float4(1.0f, 1.0f, 1.0f, 1.0f);
}

__global__ void lm_copy(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i];
}

__global__ void lm_copy_wide(const double* in, double* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i];
}

__global__ void lm_copy_widest(const float4* in, float4* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i];
}

__global__ void lm_add_four(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i] + in[i + n] + in[i + 2 * n] + in[i + 3 * n];
}

// Loads and next to nothing else.
__global__ void lm_load(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0.0f;
  for (int k = 0; k < 8; ++k) sum += in[i + k * n];
  out[i] = sum;
}

__global__ void lm_stride_two(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[2 * i];
}

__global__ void lm_stride_two_filled(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[2 * i] + in[2 * i + 1];
}

__global__ void lm_stride_wide(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[8 * i];
}

__global__ void lm_f32_add(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float y = in[i];
  float x = y;
  for (int k = 0; k < ROUNDS; ++k) x = x + y;
  out[i] = x;
}

__global__ void lm_f32_mul(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float y = in[i];
  float x = y;
  for (int k = 0; k < ROUNDS; ++k) x = x * y;
  out[i] = x;
}

__global__ void lm_f32_div(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float y = in[i];
  float x = y;
  for (int k = 0; k < ROUNDS; ++k) x = x / y;
  out[i] = x;
}

__global__ void lm_f32_special(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float x = in[i];
  for (int k = 0; k < ROUNDS; ++k) x = expf(x);
  out[i] = x;
}

__global__ void lm_f64_add(const double* in, double* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const double y = in[i];
  double x = y;
  for (int k = 0; k < ROUNDS; ++k) x = x + y;
  out[i] = x;
}

__global__ void lm_f64_mul(const double* in, double* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const double y = in[i];
  double x = y;
  for (int k = 0; k < ROUNDS; ++k) x = x * y;
  out[i] = x;
}

__global__ void lm_int_add(const int* in, int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = in[i];
  int x = y;
  for (int k = 0; k < ROUNDS; ++k) x = (x + y) ^ (y >> 1);
  out[i] = x;
}

// A product alone, 64 times over, would be made a power.
__global__ void lm_int_mul(const int* in, int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = in[i];
  int x = y;
  for (int k = 0; k < ROUNDS; ++k) x = (x * y) ^ i;
  out[i] = x;
}

__global__ void lm_shared_load(const float* in, float* out, int n) {
  __shared__ float tile[2 * BLOCK];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = in[i];
  tile[threadIdx.x + BLOCK] = 0.0f;
  __syncthreads();
  float sum = 0.0f;
  for (int k = 0; k < ROUNDS; ++k) sum += tile[threadIdx.x + k];
  out[i] = sum;
}

__global__ void lm_shared_conflict(const float* in, float* out, int n) {
  __shared__ float tile[8 * BLOCK + ROUNDS];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[8 * threadIdx.x] = in[i];
  __syncthreads();
  float sum = 0.0f;
  for (int k = 0; k < ROUNDS; ++k) sum += tile[8 * threadIdx.x + k];
  out[i] = sum;
}

__global__ void lm_shared_store(const float* in, float* out, int n) {
  __shared__ float tile[16][BLOCK];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float x = in[i];
  for (int k = 0; k < 16; ++k) tile[k][threadIdx.x] = x;
  __syncthreads();
  float sum = 0.0f;
  for (int k = 0; k < 16; ++k) sum += tile[k][BLOCK - 1 - threadIdx.x];
  out[i] = sum;
}

__global__ void lm_barrier(float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = 0; k < ROUNDS; ++k) __syncthreads();
  out[i] = 1.0f;
}

__global__ void lm_atomic(int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&out[i], 1);
}

__global__ void lm_atomic_conflict(int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&out[i >> 3], 1);
}
