// Shared memory: what conflicts and what only looks as if.

// warplens: block=256 grid=256
__global__ void stride_two(const float *__restrict__ in, float *__restrict__ out) {
  __shared__ float s[512];
  int t = threadIdx.x;
  s[t] = in[blockIdx.x * 512 + t];
  s[t + 256] = in[blockIdx.x * 512 + t + 256];
  __syncthreads();
  float a = s[2 * t];
  float b = s[2 * t + 1];
  out[blockIdx.x * 256 + t] = a + b;
}

// warplens: block=256 grid=256
__global__ void strides(const float *__restrict__ in, float *__restrict__ out) {
  __shared__ float s[8448];
  int t = threadIdx.x;
  for (int i = t; i < 8448; i += 256) s[i] = in[i];
  __syncthreads();
  float sum = s[3 * t];
  sum += s[4 * t];
  sum += s[5 * t];
  sum += s[6 * t];
  sum += s[7 * t];
  sum += s[8 * t];
  sum += s[9 * t];
  sum += s[12 * t];
  sum += s[16 * t];
  sum += s[17 * t];
  sum += s[24 * t];
  sum += s[31 * t];
  sum += s[32 * t];
  sum += s[33 * t];
  out[blockIdx.x * 256 + t] = sum;
}

// The classic tree with growing strides.
// warplens: block=256 grid=1024
__global__ void reduce_interleaved(const float *__restrict__ in, float *__restrict__ out) {
  __shared__ float s[256];
  int t = threadIdx.x;
  s[t] = in[blockIdx.x * 256 + t];
  __syncthreads();
  for (int d = 1; d < 256; d *= 2) {
    int i = 2 * d * t;
    if (i < 256) {
      s[i] += s[i + d];
    }
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}

// The tree as it should be.
// warplens: block=256 grid=1024
__global__ void reduce_halves(const float *__restrict__ in, float *__restrict__ out) {
  __shared__ float s[256];
  int t = threadIdx.x;
  s[t] = in[blockIdx.x * 256 + t];
  __syncthreads();
  for (int d = 128; d > 0; d >>= 1) {
    if (t < d) s[t] += s[t + d];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}

// Work-efficient scan without padding.
// warplens: block=256 grid=512
__global__ void scan_plain(const float *__restrict__ in, float *__restrict__ out) {
  __shared__ float s[512];
  int t = threadIdx.x;
  int offset = 1;
  s[2 * t] = in[blockIdx.x * 512 + 2 * t];
  s[2 * t + 1] = in[blockIdx.x * 512 + 2 * t + 1];
  for (int d = 256; d > 0; d >>= 1) {
    __syncthreads();
    if (t < d) {
      int ai = offset * (2 * t + 1) - 1;
      int bi = offset * (2 * t + 2) - 1;
      s[bi] += s[ai];
    }
    offset *= 2;
  }
  if (t == 0) s[511] = 0.0f;
  for (int d = 1; d < 512; d *= 2) {
    offset >>= 1;
    __syncthreads();
    if (t < d) {
      int ai = offset * (2 * t + 1) - 1;
      int bi = offset * (2 * t + 2) - 1;
      float v = s[ai];
      s[ai] = s[bi];
      s[bi] += v;
    }
  }
  __syncthreads();
  out[blockIdx.x * 512 + 2 * t] = s[2 * t];
  out[blockIdx.x * 512 + 2 * t + 1] = s[2 * t + 1];
}

// Hillis and Steele: neighbours stay neighbours.
// warplens: block=256 grid=512
__global__ void scan_steps(const float *__restrict__ in, float *__restrict__ out) {
  __shared__ float s[2][256];
  int t = threadIdx.x;
  int from = 0;
  s[0][t] = in[blockIdx.x * 256 + t];
  __syncthreads();
  for (int d = 1; d < 256; d *= 2) {
    float v = s[from][t];
    if (t >= d) v += s[from][t - d];
    s[1 - from][t] = v;
    from = 1 - from;
    __syncthreads();
  }
  out[blockIdx.x * 256 + t] = s[from][t];
}

// A histogram of one column per thread.
// warplens: block=64 grid=512 n=1048576
__global__ void bins_columns(const unsigned char *__restrict__ data, unsigned *__restrict__ out, int n) {
  __shared__ unsigned char bins[64 * 64];
  int t = threadIdx.x;
  for (int i = 0; i < 64; i++) bins[i * 64 + t] = 0;
  __syncthreads();
  for (int i = blockIdx.x * 64 + t; i < n; i += 32768) {
    int b = data[i] >> 2;
    bins[b * 64 + t]++;
  }
  __syncthreads();
  unsigned sum = 0;
  for (int i = 0; i < 64; i++) sum += bins[t * 64 + i];
  out[blockIdx.x * 64 + t] = sum;
}

// Each thread has a row of its own; a pad makes it harmless, its absence does not.
// warplens: block=128 grid=256
__global__ void own_rows(const float *__restrict__ in, float *__restrict__ out) {
  __shared__ float rows[128][16];
  __shared__ float padded[128][17];
  int t = threadIdx.x;
  for (int i = 0; i < 16; i++) {
    rows[t][i] = in[i * 32768 + blockIdx.x * 128 + t];
    padded[t][i] = in[i * 32768 + blockIdx.x * 128 + t] * 2.0f;
  }
  float best = -1e30f;
  for (int i = 0; i < 16; i++) {
    float v = rows[t][i];
    float w = padded[t][i];
    best = fmaxf(best, v + w);
  }
  out[blockIdx.x * 128 + t] = best;
}

// Broadcasts: all lanes, or those of a row, want one word.
// warplens: block=(16,16) grid=(64,64)
__global__ void broadcasts(const float *__restrict__ in, float *__restrict__ out) {
  __shared__ float s[16][16];
  int tx = threadIdx.x, ty = threadIdx.y;
  s[ty][tx] = in[(blockIdx.y * 16 + ty) * 1024 + blockIdx.x * 16 + tx];
  __syncthreads();
  float a = s[0][0];
  float b = s[ty][3];
  float c = s[5][tx];
  float d = s[tx][ty];
  float e = s[tx][0];
  out[(blockIdx.y * 16 + ty) * 1024 + blockIdx.x * 16 + tx] = a + b + c + d + e;
}

// Structures in shared memory.
struct Body {
  float x, y, z, m;
};

// warplens: block=256 grid=128 n=32768
__global__ void bodies_of_four(const float4 *__restrict__ in, float *__restrict__ out, int n) {
  __shared__ float4 tile[256];
  int i = blockIdx.x * 256 + threadIdx.x;
  float4 me = in[i];
  float sum = 0.0f;
  for (int t = 0; t < 4; t++) {
    tile[threadIdx.x] = in[t * 256 + threadIdx.x];
    __syncthreads();
    for (int k = 0; k < 64; k++) {
      float4 other = tile[k];
      float dx = other.x - me.x;
      float dy = other.y - me.y;
      sum += other.w / (dx * dx + dy * dy + 0.1f);
    }
    __syncthreads();
  }
  out[i] = sum;
}

// warplens: block=256 grid=128
__global__ void bodies_by_field(const float *__restrict__ in, float *__restrict__ out) {
  __shared__ Body tile[256];
  int t = threadIdx.x;
  tile[t].x = in[t];
  tile[t].y = in[t + 256];
  tile[t].z = in[t + 512];
  tile[t].m = in[t + 768];
  __syncthreads();
  int u = (t + 7) & 255;
  float x = tile[u].x;
  float m = tile[u].m;
  out[blockIdx.x * 256 + t] = x * m;
}

// Threads that hold two or four neighbours.
// warplens: block=128 grid=128
__global__ void pairs_and_fours(const float *__restrict__ in, float *__restrict__ out) {
  __shared__ float s[512];
  int t = threadIdx.x;
  for (int i = 0; i < 4; i++) s[4 * t + i] = in[blockIdx.x * 512 + i * 128 + t];
  __syncthreads();
  float2 v = *(float2 *)&s[2 * t];
  float4 w = *(float4 *)&s[4 * t];
  float u = s[4 * t + 3];
  out[blockIdx.x * 128 + t] = v.x + v.y + w.x + w.w + u;
}

// A two-dimensional block of eight columns: a warp has four rows of the tile.
// warplens: block=(8,32) grid=(128,32)
__global__ void narrow_rows(const float *__restrict__ in, float *__restrict__ out) {
  __shared__ float wide[32][32];
  __shared__ float exact[32][8];
  int tx = threadIdx.x, ty = threadIdx.y;
  wide[ty][tx] = in[ty * 1024 + blockIdx.x * 8 + tx];
  exact[ty][tx] = in[ty * 1024 + blockIdx.x * 8 + tx];
  __syncthreads();
  float a = wide[ty][tx ^ 1];
  float b = exact[ty][tx ^ 1];
  float c = exact[31 - ty][tx];
  out[ty * 1024 + blockIdx.x * 8 + tx] = a + b + c;
}

// Half-precision and bytes: neighbours share words.
// warplens: block=256 grid=256
__global__ void small_elements(const short *__restrict__ in, short *__restrict__ out) {
  __shared__ short s[256];
  __shared__ unsigned char c[1024];
  int t = threadIdx.x;
  s[t] = in[blockIdx.x * 256 + t];
  c[4 * t] = (unsigned char)t;
  c[4 * t + 1] = (unsigned char)(t >> 1);
  __syncthreads();
  short a = s[t ^ 1];
  short b = s[(2 * t) & 255];
  int d = c[t];
  int e = c[(t * 64) & 1023];
  out[blockIdx.x * 256 + t] = (short)(a + b + d + e);
}

// A dynamic array carved by hand.
// warplens: block=(32,4) grid=(32,256) n=1024 dynamic_shared=16384
__global__ void carved(const float *__restrict__ in, float *__restrict__ out, int n) {
  extern __shared__ float carved_memory[];
  float *rows = carved_memory;
  float *columns = carved_memory + 2048;
  int tx = threadIdx.x, ty = threadIdx.y;
  float v = in[(blockIdx.y * 4 + ty) * n + blockIdx.x * 32 + tx];
  rows[ty * 32 + tx] = v;
  columns[tx * 32 + ty] = v;
  __syncthreads();
  float a = rows[(ty ^ 1) * 32 + tx];
  float b = columns[tx * 32 + (ty ^ 1)];
  out[(blockIdx.y * 4 + ty) * n + blockIdx.x * 32 + tx] = a * b;
}

// Sequence alignment along the anti-diagonals of a tile.
// warplens: block=32 grid=256 penalty=10
__global__ void diagonals(const int *__restrict__ score, int *__restrict__ out, int penalty) {
  __shared__ int temp[33][33];
  __shared__ int ref[32][32];
  int t = threadIdx.x;
  for (int i = 0; i < 32; i++) ref[i][t] = score[blockIdx.x * 1024 + i * 32 + t];
  temp[t + 1][0] = t;
  temp[0][t + 1] = t;
  if (t == 0) temp[0][0] = 0;
  __syncwarp();
  for (int m = 0; m < 32; m++) {
    if (t <= m) {
      int x = t + 1;
      int y = m - t + 1;
      int best = temp[y - 1][x - 1] + ref[y - 1][x - 1];
      best = max(best, temp[y][x - 1] - penalty);
      best = max(best, temp[y - 1][x] - penalty);
      temp[y][x] = best;
    }
    __syncwarp();
  }
  for (int i = 0; i < 32; i++) out[blockIdx.x * 1024 + i * 32 + t] = temp[i + 1][t + 1];
}

// A radix-4 butterfly in shared memory.
// warplens: block=64 grid=1024
__global__ void butterfly(const float2 *__restrict__ in, float2 *__restrict__ out) {
  __shared__ float re[256];
  __shared__ float im[256];
  int t = threadIdx.x;
  for (int k = 0; k < 4; k++) {
    float2 v = in[blockIdx.x * 256 + k * 64 + t];
    re[4 * t + k] = v.x;
    im[4 * t + k] = v.y;
  }
  __syncthreads();
  float a = re[t] + re[t + 64];
  float b = im[t + 128] - im[t + 192];
  float c = re[4 * t];
  float d = im[4 * t + 2];
  out[blockIdx.x * 64 + t] = make_float2(a + c, b + d);
}

// The same column twice over, for all strides of a reduction across rows.
// warplens: block=(32,16) grid=64 n=65536
__global__ void column_reduce(const float *__restrict__ in, float *__restrict__ out, int n) {
  __shared__ float part[32][16];
  int tx = threadIdx.x, ty = threadIdx.y;
  float sum = 0.0f;
  for (int i = ty; i < 128; i += 16) sum += in[i * 2048 + blockIdx.x * 32 + tx];
  part[tx][ty] = sum;
  __syncthreads();
  if (ty == 0) {
    float all = 0.0f;
    for (int k = 0; k < 16; k++) all += part[tx][k];
    out[blockIdx.x * 32 + tx] = all;
  }
}

// Complex numbers apart and together.
// warplens: block=256 grid=64
__global__ void complex_tiles(const float2 *__restrict__ in, float2 *__restrict__ out) {
  __shared__ float2 together[256];
  __shared__ float apart[512];
  int t = threadIdx.x;
  float2 v = in[blockIdx.x * 256 + t];
  together[t] = v;
  apart[t] = v.x;
  apart[t + 256] = v.y;
  __syncthreads();
  float2 w = together[255 - t];
  float x = together[t ^ 1].x;
  float y = apart[255 - t];
  float2 z = together[(t * 16) & 255];
  out[blockIdx.x * 256 + t] = make_float2(w.x + x + z.x, w.y + y + z.y);
}
