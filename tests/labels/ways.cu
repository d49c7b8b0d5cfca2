// Branches, loops, barriers, atomics.

// Neighbouring lanes do different things.
// warplens: block=256 grid=512 n=131072
__global__ void odd_and_even(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float v = in[i];
  if (i % 2 == 0) {
    for (int k = 0; k < 16; k++) v = v * 1.01f + sinf(v);
  } else {
    for (int k = 0; k < 16; k++) v = v * 0.99f - cosf(v);
  }
  out[i] = v;
}

// The same by whole warps.
// warplens: block=256 grid=512 n=131072
__global__ void warps_apart(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float v = in[i];
  if ((threadIdx.x / 32) % 2 == 0) {
    for (int k = 0; k < 16; k++) v = v * 1.01f + sinf(v);
  } else {
    for (int k = 0; k < 16; k++) v = v * 0.99f - cosf(v);
  }
  out[i] = v;
}

// By blocks.
// warplens: block=256 grid=512 n=131072
__global__ void blocks_apart(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float v = in[i];
  if (blockIdx.x & 1) {
    for (int k = 0; k < 16; k++) v = v * 1.01f + sinf(v);
  }
  out[i] = v;
}

// One guard, few lanes of the last block.
// warplens: block=256 grid=512 n=131000
__global__ void guarded(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) {
    float v = in[i];
    for (int k = 0; k < 16; k++) v = v * 1.01f + sinf(v);
    out[i] = v;
  }
}

// Every fourth lane works.
// warplens: block=128 grid=512 n=65536
__global__ void every_fourth(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  float v = in[i];
  if ((threadIdx.x & 3) == 0) {
    for (int k = 0; k < 24; k++) v = v * 1.01f + sinf(v);
    out[i / 4] = v;
  }
}

// The tree that keeps lanes apart: modulo of a growing stride.
// warplens: block=256 grid=512
__global__ void reduce_modulo(const float *__restrict__ in, float *__restrict__ out) {
  __shared__ float s[256];
  int t = threadIdx.x;
  s[t] = in[blockIdx.x * 256 + t];
  __syncthreads();
  for (int d = 1; d < 256; d *= 2) {
    if (t % (2 * d) == 0) {
      s[t] += s[t + d];
    }
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}

// A few kinds by the lane.
// warplens: block=128 grid=256
__global__ void kinds(const float *__restrict__ in, float *__restrict__ out) {
  int i = blockIdx.x * 128 + threadIdx.x;
  float v = in[i];
  switch (threadIdx.x % 4) {
    case 0:
      for (int k = 0; k < 8; k++) v = v * v + 0.1f;
      break;
    case 1:
      for (int k = 0; k < 8; k++) v = v * 0.5f - 0.2f;
      break;
    case 2:
      for (int k = 0; k < 8; k++) v = v / 1.5f + 0.3f;
      break;
    default:
      for (int k = 0; k < 8; k++) v = v - 0.4f * v;
  }
  out[i] = v;
}

// Triangles: the lanes of a warp iterate different numbers of times.
// warplens: block=256 grid=64 n=16384
__global__ void triangle(const float *__restrict__ m, float *__restrict__ out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float sum = 0.0f;
  for (int k = 0; k < (threadIdx.x & 31) * 8; k++) {
    sum += m[k * n + i];
  }
  out[i] = sum;
}

// Trips that only warps differ in.
// warplens: block=256 grid=64 n=16384
__global__ void triangle_warps(const float *__restrict__ m, float *__restrict__ out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float sum = 0.0f;
  for (int k = 0; k < (threadIdx.x / 32) * 8; k++) {
    sum += m[k * n + i];
  }
  out[i] = sum;
}

// A strided loop whose last turn is not for all.
// warplens: block=256 grid=256 n=100
__global__ void copy_rows(const float *__restrict__ in, float *__restrict__ out, int n) {
  for (int k = threadIdx.x; k < 1000; k += 256) {
    out[blockIdx.x * 1024 + k] = in[blockIdx.x * 1024 + k];
  }
}

// Barriers: needed ones, and those that nothing crosses.
// warplens: block=128 grid=512
__global__ void three_barriers(const float *__restrict__ in, float *__restrict__ out) {
  __shared__ float s[128];
  int t = threadIdx.x;
  float v = in[blockIdx.x * 128 + t];
  __syncthreads();
  s[t] = v;
  __syncthreads();
  float w = s[127 - t];
  __syncthreads();
  out[blockIdx.x * 128 + t] = w;
}

// Each thread reads back what it wrote.
// warplens: block=128 grid=512
__global__ void own_words(const float *__restrict__ in, float *__restrict__ out) {
  __shared__ float s[128];
  int t = threadIdx.x;
  s[t] = in[blockIdx.x * 128 + t];
  __syncthreads();
  out[blockIdx.x * 128 + t] = 2.0f * s[t];
}

// Only lanes of one warp hand anything on.
// warplens: block=128 grid=512
__global__ void __launch_bounds__(128) within_warps(const float *__restrict__ in, float *__restrict__ out) {
  __shared__ float s[4][32];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  float v = in[blockIdx.x * 128 + threadIdx.x];
  s[warp][lane] = v;
  __syncthreads();
  float w = s[warp][31 - lane];
  __syncthreads();
  s[warp][lane] = w * v;
  __syncthreads();
  out[blockIdx.x * 128 + threadIdx.x] = s[warp][lane ^ 1];
}

// The barrier at the loop's end guards the next turn.
// warplens: block=64 grid=512 n=64
__global__ void turns(const float *__restrict__ in, float *__restrict__ out, int n) {
  __shared__ float s[64];
  int t = threadIdx.x;
  float sum = 0.0f;
  for (int k = 0; k < 4; k++) {
    s[t] = in[(blockIdx.x * 4 + k) * 64 + t];
    __syncthreads();
    sum += s[63 - t] + s[(t + 1) & 63];
    __syncthreads();
  }
  out[blockIdx.x * 64 + t] = sum;
}

// Two buffers in turn: one barrier a turn is enough.
// warplens: block=64 grid=512
__global__ void two_buffers(const float *__restrict__ in, float *__restrict__ out) {
  __shared__ float s[2][64];
  int t = threadIdx.x;
  float sum = 0.0f;
  for (int k = 0; k < 4; k++) {
    s[k & 1][t] = in[(blockIdx.x * 4 + k) * 64 + t];
    __syncthreads();
    sum += s[k & 1][63 - t];
  }
  out[blockIdx.x * 64 + t] = sum;
}

// One warp to the end of the tree.
// warplens: block=32 grid=1024
__global__ void __launch_bounds__(32) one_warp(const float *__restrict__ in, float *__restrict__ out) {
  __shared__ float s[32];
  int t = threadIdx.x;
  s[t] = in[blockIdx.x * 32 + t];
  __syncthreads();
  for (int d = 16; d > 0; d >>= 1) {
    if (t < d) s[t] += s[t + d];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}

// Some threads are gone before the others meet.
// warplens: block=128 grid=512 n=65500
__global__ void gone(const float *__restrict__ in, float *__restrict__ out, int n) {
  __shared__ float s[128];
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i >= n) return;
  s[threadIdx.x] = in[i];
  __syncthreads();
  out[i] = s[127 - threadIdx.x];
}

// All of them are there.
// warplens: block=128 grid=512 n=65500
__global__ void there(const float *__restrict__ in, float *__restrict__ out, int n) {
  __shared__ float s[128];
  int i = blockIdx.x * 128 + threadIdx.x;
  s[threadIdx.x] = i < n ? in[i] : 0.0f;
  __syncthreads();
  if (i < n) out[i] = s[127 - threadIdx.x];
}

// A whole block may leave: none of its threads comes.
// warplens: block=128 grid=512 n=40000
__global__ void whole_blocks_gone(const float *__restrict__ in, float *__restrict__ out, int n) {
  __shared__ float s[128];
  if (blockIdx.x * 128 >= n) return;
  int i = blockIdx.x * 128 + threadIdx.x;
  s[threadIdx.x] = in[i];
  __syncthreads();
  out[i] = s[127 - threadIdx.x];
}

// A barrier in one way of a branch.
// warplens: block=128 grid=512
__global__ void one_way(const float *__restrict__ in, float *__restrict__ out) {
  __shared__ float s[128];
  int t = threadIdx.x;
  s[t] = in[blockIdx.x * 128 + t];
  if (t < 64) {
    __syncthreads();
    out[blockIdx.x * 128 + t] = s[t + 64];
  }
}

// All threads add to one number.
// warplens: block=256 grid=256 n=65536
__global__ void sum_all(const float *__restrict__ in, float *__restrict__ total, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) atomicAdd(total, in[i]);
}

// One thread of a block does.
// warplens: block=256 grid=256 n=65536
__global__ void sum_blocks(const float *__restrict__ in, float *__restrict__ total, int n) {
  __shared__ float s[256];
  int t = threadIdx.x;
  s[t] = in[blockIdx.x * 256 + t];
  __syncthreads();
  for (int d = 128; d > 0; d >>= 1) {
    if (t < d) s[t] += s[t + d];
    __syncthreads();
  }
  if (t == 0) atomicAdd(total, s[0]);
}

// A histogram of many bins: addresses by the data.
// warplens: block=256 grid=256 n=65536
// @with: data=below(4096)[65536]
__global__ void histogram(const int *__restrict__ data, int *__restrict__ bins, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) atomicAdd(&bins[data[i]], 1);
}

// Each its own.
// warplens: block=256 grid=256 n=65536
__global__ void own_counters(float *__restrict__ counter, const float *__restrict__ in, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  atomicAdd(&counter[i], in[i]);
}

// Rows add to one counter each; a warp is one row.
// warplens: block=(32,8) grid=(32,128) w=1024
__global__ void row_totals(const float *__restrict__ in, float *__restrict__ total, int w) {
  int x = blockIdx.x * 32 + threadIdx.x;
  int y = blockIdx.y * 8 + threadIdx.y;
  float v = in[y * w + x];
  atomicAdd(&total[y], v);
}

// In every turn of a loop to the same place.
// warplens: block=128 grid=256 n=64
__global__ void atomics_in_loop(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  for (int k = 0; k < n; k++) {
    atomicAdd(&out[i], in[k * 32768 + i]);
  }
}

// In every turn to another.
// warplens: block=128 grid=256 n=64
__global__ void atomics_along(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  for (int k = 0; k < n; k++) {
    atomicAdd(&out[k * 32768 + i], in[i]);
  }
}

// The sum waits in a register.
// warplens: block=128 grid=256 n=64
__global__ void atomics_behind(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  float sum = 0.0f;
  for (int k = 0; k < n; k++) sum += in[k * 32768 + i];
  atomicAdd(&out[i], sum);
}

__constant__ float table[256];

// A table of constants by the lane.
// warplens: block=256 grid=256
__global__ void constants_by_lane(const float *__restrict__ in, float *__restrict__ out) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float v = in[i];
  out[i] = v * table[threadIdx.x];
}

// By the loop, and by the block.
// warplens: block=256 grid=256
__global__ void constants_by_turn(const float *__restrict__ in, float *__restrict__ out) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float v = in[i];
  for (int k = 0; k < 16; k++) {
    v = v * table[k];
  }
  out[i] = v + table[blockIdx.x];
}

// By the row of a two-dimensional block: one for a warp of 32 columns.
// warplens: block=(32,8) grid=256
__global__ void constants_by_row(const float *__restrict__ in, float *__restrict__ out) {
  int i = blockIdx.x * 256 + threadIdx.y * 32 + threadIdx.x;
  float v = in[i];
  out[i] = v * table[threadIdx.y];
}

// A load that a store may change, in each turn from one place.
// warplens: block=128 grid=256 n=32
__global__ void scaled(float *out, const float *in, const float *scale, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  for (int k = 0; k < n; k++) {
    out[k * 32768 + i] = in[k * 32768 + i] * scale[blockIdx.x];
  }
}

// From another place in each turn.
// warplens: block=128 grid=256 n=32
__global__ void scaled_along(float *out, const float *in, const float *scale, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  for (int k = 0; k < n; k++) {
    out[k * 32768 + i] = in[k * 32768 + i] * scale[k];
  }
}

// The sum lies in memory during the loop.
// warplens: block=128 grid=256 n=32
__global__ void sum_in_memory(float *out, const float *in, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  out[i] = 0.0f;
  for (int k = 0; k < n; k++) {
    out[i] += in[k * 32768 + i];
  }
}
