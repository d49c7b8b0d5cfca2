// Launches: blocks that are no whole warps, few blocks, small ones, fat ones.

// warplens: block=100 grid=1000 n=100000
__global__ void odd_block(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] * 2.0f;
}

// warplens: block=(10,10) grid=(100,100) n=1000
__global__ void odd_square(const float *__restrict__ in, float *__restrict__ out, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < n && y < n) out[y * n + x] = in[y * n + x] * 2.0f;
}

// Twelve by eight are three warps.
// warplens: block=(12,8) grid=(100,100) n=1200
__global__ void whole_rectangle(const float *__restrict__ in, float *__restrict__ out, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < n && y < n) out[y * n + x] = in[y * n + x] * 2.0f;
}

// warplens: block=16 grid=65536 n=1048576
__global__ void tiny(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] * 2.0f;
}

// warplens: block=32 grid=32768 n=1048576
__global__ void one_warp_blocks(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] * 2.0f;
}

// warplens: block=64 grid=16384 n=1048576
__global__ void two_warp_blocks(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] * 2.0f;
}

// warplens: block=256 grid=16 n=1048576
__global__ void few_blocks(const float *__restrict__ in, float *__restrict__ out, int n) {
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += 4096) out[i] = in[i] * 2.0f;
}

// warplens: block=256 grid=1 n=1048576
__global__ void one_block(const float *__restrict__ in, float *__restrict__ out, int n) {
  for (int i = threadIdx.x; i < n / 64; i += 256) out[i] = in[i] * 2.0f;
}

// warplens: block=1024 grid=864 n=884736
__global__ void fat(const float *__restrict__ in, float *__restrict__ out, int n) {
  __shared__ float s[1024];
  int i = blockIdx.x * 1024 + threadIdx.x;
  s[threadIdx.x] = in[i];
  __syncthreads();
  out[i] = s[1023 - threadIdx.x];
}

// Too many threads.
// warplens: block=(64,32) grid=100 n=100000
__global__ void impossible(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * 2048 + threadIdx.y * 64 + threadIdx.x;
  if (i < n) out[i] = in[i];
}

// Shared memory for one block an SM.
// warplens: block=1024 grid=4096 dynamic_shared=102400
__global__ void one_resident(const float *__restrict__ in, float *__restrict__ out) {
  extern __shared__ float tile[];
  int i = blockIdx.x * 1024 + threadIdx.x;
  float own = in[i];
  float sum = 0.0f;
  for (int k = 0; k < 16; k++) {
    tile[threadIdx.x] = own + sum;
    __syncthreads();
    sum += tile[threadIdx.x ^ 32];
    __syncthreads();
  }
  out[i] = sum;
}

// A little more than one wave, of work that takes its time.
// warplens: block=256 grid=1000 n=256000
__global__ void second_wave(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float v = in[i];
  for (int k = 0; k < 500; k++) v = v * 1.0001f + 0.5f;
  out[i] = v;
}

// Two whole waves.
// warplens: block=256 grid=1728 n=442368
__global__ void two_waves(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float v = in[i];
  for (int k = 0; k < 500; k++) v = v * 1.0001f + 0.5f;
  out[i] = v;
}
