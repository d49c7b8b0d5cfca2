// Stencils, image filters and FDTD: two- and three-dimensional grids as they are met.

// warplens: block=(32,8) grid=(64,256) n=2048
__global__ void jacobi(const float *__restrict__ in, float *__restrict__ out, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1) return;
  float up = in[(y - 1) * n + x];
  float down = in[(y + 1) * n + x];
  float left = in[y * n + x - 1];
  float right = in[y * n + x + 1];
  out[y * n + x] = 0.25f * (up + down + left + right);
}

// The roles of x and y are swapped.
// warplens: block=(16,16) grid=(128,128) n=2048
__global__ void jacobi_swapped(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i < 1 || j < 1 || i >= n - 1 || j >= n - 1) return;
  float up = in[(i - 1) * n + j];
  float down = in[(i + 1) * n + j];
  float left = in[i * n + j - 1];
  float right = in[i * n + j + 1];
  out[i * n + j] = 0.25f * (up + down + left + right);
}

// Z-major walk over a volume: each thread a column of it.
// warplens: block=(32,8) grid=(8,32) nx=256 ny=256 nz=64
__global__ void heat_columns(const float *__restrict__ t, float *__restrict__ out, int nx, int ny, int nz) {
  int x = blockIdx.x * 32 + threadIdx.x;
  int y = blockIdx.y * 8 + threadIdx.y;
  int layer = nx * ny;
  float below = t[y * nx + x];
  float here = t[layer + y * nx + x];
  for (int z = 1; z < nz - 1; z++) {
    float above = t[(z + 1) * layer + y * nx + x];
    out[z * layer + y * nx + x] = here + 0.1f * (above + below - 2.0f * here);
    below = here;
    here = above;
  }
}

// The volume lies with z innermost, threads run along x.
// warplens: block=(32,8) grid=(8,32) nx=256 ny=256 nz=64
__global__ void heat_z_inner(const float *__restrict__ t, float *__restrict__ out, int nx, int ny, int nz) {
  int x = blockIdx.x * 32 + threadIdx.x;
  int y = blockIdx.y * 8 + threadIdx.y;
  int base = (y * nx + x) * nz;
  for (int z = 1; z < nz - 1; z++) {
    float sum = t[base + z - 1] + t[base + z + 1];
    out[base + z] = 0.5f * sum;
  }
}

// warplens: block=(32,8) grid=(64,256) nx=2048 ny=2048 dt=0
// @with: dt=0.25
__global__ void fdtd_e(float *__restrict__ ez, const float *__restrict__ hx, const float *__restrict__ hy, int nx,
                       int ny, float dt) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i == 0 || j == 0 || i >= nx || j >= ny) return;
  float curl = hy[j * nx + i] - hy[j * nx + i - 1];
  curl -= hx[j * nx + i] - hx[(j - 1) * nx + i];
  ez[j * nx + i] += dt * curl;
}

// The same with the fields interleaved: six floats a cell.
// warplens: block=(32,8) grid=(64,256) nx=2048 ny=2048
// @with: dt=0.25
__global__ void fdtd_cells(float *__restrict__ f, int nx, int ny, float dt) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i == 0 || j == 0 || i >= nx || j >= ny) return;
  float right = f[(j * nx + i) * 6 + 4];
  float left = f[(j * nx + i - 1) * 6 + 4];
  float low = f[((j - 1) * nx + i) * 6 + 3];
  float high = f[(j * nx + i) * 6 + 3];
  f[(j * nx + i) * 6 + 2] += dt * (right - left - high + low);
}

// A tile with its halo, clamped at the borders.
// warplens: block=(16,16) grid=(64,64) w=1024 h=1024
__global__ void blur_tile(const float *__restrict__ in, float *__restrict__ out, int w, int h) {
  __shared__ float tile[18][18];
  int x = blockIdx.x * 16 + threadIdx.x;
  int y = blockIdx.y * 16 + threadIdx.y;
  for (int dy = threadIdx.y; dy < 18; dy += 16) {
    for (int dx = threadIdx.x; dx < 18; dx += 16) {
      int gx = min(max((int)(blockIdx.x * 16) + dx - 1, 0), w - 1);
      int gy = min(max((int)(blockIdx.y * 16) + dy - 1, 0), h - 1);
      tile[dy][dx] = in[gy * w + gx];
    }
  }
  __syncthreads();
  float sum = 0.0f;
  for (int dy = 0; dy < 3; dy++)
    for (int dx = 0; dx < 3; dx++) sum += tile[threadIdx.y + dy][threadIdx.x + dx];
  if (x < w && y < h) out[y * w + x] = sum / 9.0f;
}

// A column filter: the tile's columns share one bank.
// warplens: block=(32,8) grid=(32,128) w=1024 h=1024
__global__ void blur_columns(const float *__restrict__ in, float *__restrict__ out, int w, int h) {
  __shared__ float tile[32][32];
  int x0 = blockIdx.x * 32;
  int y0 = blockIdx.y * 8;
  for (int r = threadIdx.y; r < 32; r += 8) {
    int y = min(y0 + r, h - 1);
    tile[threadIdx.x][r] = in[y * w + x0 + threadIdx.x];
  }
  __syncthreads();
  float sum = 0.0f;
  for (int k = 0; k < 16; k++) {
    sum += tile[threadIdx.x][threadIdx.y + k];
  }
  out[(y0 + threadIdx.y) * w + x0 + threadIdx.x] = sum;
}

// Packed pixels of three bytes.
// warplens: block=(32,8) grid=(64,256) w=2048 h=2048
__global__ void grey(const unsigned char *__restrict__ rgb, unsigned char *__restrict__ out, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < w && y < h) {
    int at = y * w + x;
    int r = rgb[3 * at];
    int g = rgb[3 * at + 1];
    int b = rgb[3 * at + 2];
    out[at] = (unsigned char)((r * 77 + g * 151 + b * 28) >> 8);
  }
}

// Whole pixels of four bytes: what grey should have been.
// warplens: block=(32,8) grid=(64,256) w=2048 h=2048
__global__ void grey4(const uchar4 *__restrict__ rgba, unsigned char *__restrict__ out, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < w && y < h) {
    uchar4 p = rgba[y * w + x];
    out[y * w + x] = (unsigned char)((p.x * 77 + p.y * 151 + p.z * 28) >> 8);
  }
}

// A quarter of an image: every other pixel of every other row.
// warplens: block=(32,8) grid=(32,128) w=2048 h=2048
__global__ void halve(const float *__restrict__ in, float *__restrict__ out, int w, int h) {
  int x = blockIdx.x * 32 + threadIdx.x;
  int y = blockIdx.y * 8 + threadIdx.y;
  float a = in[2 * y * w + 2 * x];
  float b = in[2 * y * w + 2 * x + 1];
  float c = in[(2 * y + 1) * w + 2 * x];
  float d = in[(2 * y + 1) * w + 2 * x + 1];
  out[y * (w / 2) + x] = 0.25f * (a + b + c + d);
}

// Rotated by a quarter: reads along rows, writes down columns.
// warplens: block=(32,8) grid=(64,256) w=2048 h=2048
__global__ void rotate90(const float *__restrict__ in, float *__restrict__ out, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < w && y < h) {
    float v = in[y * w + x];
    out[x * h + (h - 1 - y)] = v;
  }
}

// Mirrored: lanes run backwards, which costs nothing.
// warplens: block=(32,8) grid=(64,256) w=2048 h=2048
__global__ void mirror(const float *__restrict__ in, float *__restrict__ out, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < w && y < h) {
    float v = in[y * w + (w - 1 - x)];
    out[y * w + x] = v;
  }
}

// A red-black sweep: half of the lanes' neighbours.
// warplens: block=(32,8) grid=(32,256) n=2048
__global__ void red(float *__restrict__ p, const float *__restrict__ rhs, int n) {
  int y = blockIdx.y * 8 + threadIdx.y;
  int x = 2 * (blockIdx.x * 32 + threadIdx.x) + (y & 1);
  if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1) return;
  float sum = p[y * n + x - 1];
  sum += p[y * n + x + 1];
  sum += p[(y - 1) * n + x];
  sum += p[(y + 1) * n + x];
  p[y * n + x] = 0.25f * (sum - rhs[y * n + x]);
}

// Rows of an odd pitch: they begin anywhere.
// warplens: block=(32,8) grid=(32,128) w=1021 h=1024
__global__ void odd_pitch(const float *__restrict__ in, float *__restrict__ out, int w, int h) {
  int x = blockIdx.x * 32 + threadIdx.x;
  int y = blockIdx.y * 8 + threadIdx.y;
  if (x < w && y < h) {
    float v = in[y * w + x];
    out[y * w + x] = v + 1.0f;
  }
}
