// Matrices: products, transposes, factorisations, row and column work.

// warplens: block=(16,16) grid=(64,64) n=256
__global__ void gemm_plain(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, int n) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0.0f;
  for (int k = 0; k < n; k++) {
    float x = a[row * n + k];
    float y = b[k * n + col];
    sum += x * y;
  }
  c[row * n + col] = sum;
}

// Rows and columns are swapped.
// warplens: block=(16,16) grid=(64,64) n=256
__global__ void gemm_swapped(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  int col = blockIdx.y * blockDim.y + threadIdx.y;
  float sum = 0.0f;
  for (int k = 0; k < n; k++) {
    float x = a[row * n + k];
    float y = b[k * n + col];
    sum += x * y;
  }
  c[row * n + col] = sum;
}

// warplens: block=(16,16) grid=(64,64) n=256
__global__ void gemm_tiled(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, int n) {
  __shared__ float as[16][16];
  __shared__ float bs[16][16];
  int tx = threadIdx.x, ty = threadIdx.y;
  int row = blockIdx.y * 16 + ty, col = blockIdx.x * 16 + tx;
  float sum = 0.0f;
  for (int t = 0; t < n / 16; t++) {
    as[ty][tx] = a[row * n + t * 16 + tx];
    bs[ty][tx] = b[(t * 16 + ty) * n + col];
    __syncthreads();
    for (int k = 0; k < 16; k++) {
      float x = as[ty][k];
      float y = bs[k][tx];
      sum += x * y;
    }
    __syncthreads();
  }
  c[row * n + col] = sum;
}

// The second tile is stored turned, and read down its columns.
// warplens: block=(32,8) grid=(32,128) n=256
__global__ void gemm_turned_tile(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, int n) {
  __shared__ float as[8][32];
  __shared__ float bt[32][32];
  int tx = threadIdx.x, ty = threadIdx.y;
  int row = blockIdx.y * 8 + ty, col = blockIdx.x * 32 + tx;
  float sum = 0.0f;
  for (int t = 0; t < n / 32; t++) {
    as[ty][tx] = a[row * n + t * 32 + tx];
    for (int r = ty; r < 32; r += 8) {
      bt[tx][r] = b[(t * 32 + r) * n + col];
    }
    __syncthreads();
    for (int k = 0; k < 32; k++) {
      float x = as[ty][k];
      float y = bt[tx][k];
      sum += x * y;
    }
    __syncthreads();
  }
  c[row * n + col] = sum;
}

// A times the transpose of B, each thread along two rows.
// warplens: block=(16,16) grid=(64,64) n=256
__global__ void gemm_abt(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, int n) {
  int row = blockIdx.y * 16 + threadIdx.y;
  int col = blockIdx.x * 16 + threadIdx.x;
  float sum = 0.0f;
  for (int k = 0; k < n; k++) {
    float x = a[row * n + k];
    float y = b[col * n + k];
    sum += x * y;
  }
  c[row * n + col] = sum;
}

// warplens: block=(32,8) grid=(64,256) n=2048
__global__ void transpose_reads(const float *__restrict__ in, float *__restrict__ out, int n) {
  int x = blockIdx.x * 32 + threadIdx.x;
  int y = blockIdx.y * 8 + threadIdx.y;
  float v = in[x * n + y];
  out[y * n + x] = v;
}

// warplens: block=(32,8) grid=(64,64) n=2048
__global__ void transpose_tile(const float *__restrict__ in, float *__restrict__ out, int n) {
  __shared__ float tile[32][32];
  int x = blockIdx.x * 32 + threadIdx.x;
  int y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) {
    tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
  }
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) {
    float v = tile[threadIdx.x][threadIdx.y + j];
    out[(y + j) * n + x] = v;
  }
}

// warplens: block=(32,8) grid=(64,64) n=2048
__global__ void transpose_padded(const float *__restrict__ in, float *__restrict__ out, int n) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x;
  int y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) {
    tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
  }
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) {
    float v = tile[threadIdx.x][threadIdx.y + j];
    out[(y + j) * n + x] = v;
  }
}

// A swizzle instead of a pad.
// warplens: block=(32,32) grid=(64,64) n=2048
__global__ void transpose_swizzled(const float *__restrict__ in, float *__restrict__ out, int n) {
  __shared__ float tile[32 * 32];
  int tx = threadIdx.x, ty = threadIdx.y;
  int x = blockIdx.x * 32 + tx, y = blockIdx.y * 32 + ty;
  tile[ty * 32 + (tx ^ ty)] = in[y * n + x];
  __syncthreads();
  x = blockIdx.y * 32 + tx;
  y = blockIdx.x * 32 + ty;
  float v = tile[tx * 32 + (ty ^ tx)];
  out[y * n + x] = v;
}

// The pad is an even number: half of it is left.
// warplens: block=(32,32) grid=(64,64) n=2048
__global__ void transpose_even_pad(const float *__restrict__ in, float *__restrict__ out, int n) {
  __shared__ float tile[32][34];
  int tx = threadIdx.x, ty = threadIdx.y;
  int x = blockIdx.x * 32 + tx, y = blockIdx.y * 32 + ty;
  tile[ty][tx] = in[y * n + x];
  __syncthreads();
  x = blockIdx.y * 32 + tx;
  y = blockIdx.x * 32 + ty;
  float v = tile[tx][ty];
  out[y * n + x] = v;
}

// Doubles: a row of the tile is 64 words.
// warplens: block=(32,8) grid=(32,32) n=1024
__global__ void transpose_double(const double *__restrict__ in, double *__restrict__ out, int n) {
  __shared__ double tile[32][32];
  int tx = threadIdx.x, ty = threadIdx.y;
  for (int j = 0; j < 32; j += 8) {
    tile[ty + j][tx] = in[(blockIdx.y * 32 + ty + j) * n + blockIdx.x * 32 + tx];
  }
  __syncthreads();
  for (int j = 0; j < 32; j += 8) {
    double v = tile[tx][ty + j];
    out[(blockIdx.x * 32 + ty + j) * n + blockIdx.y * 32 + tx] = v;
  }
}

// A row for each thread.
// warplens: block=256 grid=64 rows=16384 cols=64
__global__ void row_sums(const float *__restrict__ m, float *__restrict__ sums, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int c = 0; c < cols; c++) sum += m[row * cols + c];
  sums[row] = sum;
}

// A column for each thread.
// warplens: block=256 grid=64 rows=64 cols=16384
__global__ void column_sums(const float *__restrict__ m, float *__restrict__ sums, int rows, int cols) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (col >= cols) return;
  float sum = 0.0f;
  for (int r = 0; r < rows; r++) sum += m[r * cols + col];
  sums[col] = sum;
}

// A row for each warp: its lanes stride along it.
// warplens: block=(32,8) grid=2048 rows=16384 cols=256
__global__ void row_norms(const float *__restrict__ m, float *__restrict__ norms, int rows, int cols) {
  int row = blockIdx.x * 8 + threadIdx.y;
  float sum = 0.0f;
  for (int c = threadIdx.x; c < cols; c += 32) {
    float v = m[row * cols + c];
    sum += v * v;
  }
  for (int s = 16; s > 0; s >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, s);
  if (threadIdx.x == 0) norms[row] = sqrtf(sum);
}

// Gaussian elimination as a well-known suite has it: one thread a row.
// warplens: block=256 grid=128 size=1024 t=100
__global__ void fan1(float *__restrict__ m, const float *__restrict__ a, int size, int t) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= size - 1 - t) return;
  m[size * (i + t + 1) + t] = a[size * (i + t + 1) + t] / a[size * t + t];
}

// warplens: block=(16,16) grid=(64,64) size=1024 t=100
__global__ void fan2(const float *__restrict__ m, float *__restrict__ a, int size, int t) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= size - 1 - t || j >= size - t) return;
  float f = m[size * (i + 1 + t) + t];
  a[size * (i + 1 + t) + (j + t)] -= f * a[size * t + (j + t)];
}

// The same with the roles of the threads turned round.
// warplens: block=(16,16) grid=(64,64) size=1024 t=96
__global__ void fan2_turned(const float *__restrict__ m, float *__restrict__ a, int size, int t) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= size - 1 - t || j >= size - t) return;
  float f = m[size * (i + 1 + t) + t];
  a[size * (i + 1 + t) + (j + t)] -= f * a[size * t + (j + t)];
}

// Blocked factorisation: a triangle of the tile, column by column.
// warplens: block=16 grid=512 n=1024
__global__ void lu_perimeter(float *__restrict__ m, int n) {
  __shared__ float dia[16][16];
  int base = blockIdx.x * 16;
  for (int i = 0; i < 16; i++) dia[i][threadIdx.x] = m[(base + i) % n * n + threadIdx.x];
  __syncthreads();
  for (int i = 0; i < 15; i++) {
    if (threadIdx.x > i) {
      for (int j = 0; j < i; j++) dia[threadIdx.x][i] -= dia[threadIdx.x][j] * dia[j][i];
      dia[threadIdx.x][i] /= dia[i][i];
    }
    __syncthreads();
  }
  for (int i = 0; i < 16; i++) m[(base + i) % n * n + threadIdx.x] = dia[i][threadIdx.x];
}

// Batches of small matrices, one a thread: interleaved as it should be.
// warplens: block=128 grid=256 batch=32768
__global__ void small_interleaved(const float *__restrict__ m, float *__restrict__ det, int batch) {
  int b = blockIdx.x * 128 + threadIdx.x;
  float p = m[0 * batch + b];
  float q = m[1 * batch + b];
  float r = m[2 * batch + b];
  float s = m[3 * batch + b];
  det[b] = p * s - q * r;
}

// Batches of small matrices one after another.
// warplens: block=128 grid=256 batch=32768
__global__ void small_packed(const float *__restrict__ m, float *__restrict__ inverse, int batch) {
  int b = blockIdx.x * 128 + threadIdx.x;
  float a0 = m[b * 9 + 0];
  float a1 = m[b * 9 + 1];
  float a2 = m[b * 9 + 2];
  float a3 = m[b * 9 + 3];
  float a4 = m[b * 9 + 4];
  float a5 = m[b * 9 + 5];
  float a6 = m[b * 9 + 6];
  float a7 = m[b * 9 + 7];
  float a8 = m[b * 9 + 8];
  float det = a0 * (a4 * a8 - a5 * a7) - a1 * (a3 * a8 - a5 * a6) + a2 * (a3 * a7 - a4 * a6);
  inverse[b] = 1.0f / det;
}

// Batches of two by two, loaded whole.
// warplens: block=128 grid=256 batch=32768
__global__ void small_whole(const float4 *__restrict__ m, float *__restrict__ det, int batch) {
  int b = blockIdx.x * 128 + threadIdx.x;
  float4 v = m[b];
  det[b] = v.x * v.w - v.y * v.z;
}
