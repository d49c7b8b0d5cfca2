// N-body, molecular dynamics, sparse matrices, graphs: structures and gathers.

struct Particle {
  float x, y, z;
  float vx, vy, vz;
  float mass, charge;
};

struct Pair {
  int first;
  int second;
};

// warplens: block=256 grid=256 n=65536
// @with: dt=0.01
__global__ void drift(Particle *__restrict__ p, int n, float dt) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    p[i].x += p[i].vx * dt;
    p[i].y += p[i].vy * dt;
    p[i].z += p[i].vz * dt;
  }
}

// The same by arrays of fields.
// warplens: block=256 grid=256 n=65536
// @with: dt=0.01
__global__ void drift_fields(float *__restrict__ x, float *__restrict__ y, const float *__restrict__ vx,
                             const float *__restrict__ vy, int n, float dt) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    x[i] += vx[i] * dt;
    y[i] += vy[i] * dt;
  }
}

// Positions in fours: whole structures, loaded whole.
// warplens: block=256 grid=64 n=16384
__global__ void gravity(const float4 *__restrict__ pos, float4 *__restrict__ acc, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float4 me = pos[i];
  float ax = 0.0f, ay = 0.0f, az = 0.0f;
  for (int j = 0; j < 128; j++) {
    float4 other = pos[j];
    float dx = other.x - me.x, dy = other.y - me.y, dz = other.z - me.z;
    float r = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
    float s = other.w * r * r * r;
    ax += s * dx;
    ay += s * dy;
    az += s * dz;
  }
  acc[i] = make_float4(ax, ay, az, 0.0f);
}

// Three coordinates one after another.
// warplens: block=128 grid=256 n=32768
__global__ void distances(const float *__restrict__ xyz, float *__restrict__ r, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i >= n) return;
  float x = xyz[3 * i];
  float y = xyz[3 * i + 1];
  float z = xyz[3 * i + 2];
  r[i] = sqrtf(x * x + y * y + z * z);
}

// A list of neighbours: entries interleaved, positions gathered.
// warplens: block=128 grid=128 n=16384 most=32
// @with: list=below(16384)[524288]
__global__ void lennard_jones(const float4 *__restrict__ pos, const int *__restrict__ list, float *__restrict__ force,
                              int n, int most) {
  int i = blockIdx.x * 128 + threadIdx.x;
  float4 me = pos[i];
  float f = 0.0f;
  for (int k = 0; k < most; k++) {
    int j = list[k * n + i];
    float4 other = pos[j];
    float dx = me.x - other.x, dy = me.y - other.y, dz = me.z - other.z;
    float r2 = dx * dx + dy * dy + dz * dz + 0.1f;
    f += 1.0f / (r2 * r2 * r2);
  }
  force[i] = f;
}

// The same with each atom's list in a row of its own.
// warplens: block=128 grid=128 n=16384 most=32
// @with: list=below(16384)[524288]
__global__ void lennard_jones_rows(const float4 *__restrict__ pos, const int *__restrict__ list,
                                   float *__restrict__ force, int n, int most) {
  int i = blockIdx.x * 128 + threadIdx.x;
  float4 me = pos[i];
  float f = 0.0f;
  for (int k = 0; k < most; k++) {
    int j = list[i * most + k];
    float4 other = pos[j];
    float dx = me.x - other.x, dy = me.y - other.y, dz = me.z - other.z;
    float r2 = dx * dx + dy * dy + dz * dz + 0.1f;
    f += 1.0f / (r2 * r2 * r2);
  }
  force[i] = f;
}

// Compressed rows, a thread each.
// warplens: block=128 grid=128 rows=16384
// @with: start=rows(16)[16385] col=below(16384)[600000]
__global__ void csr_scalar(const int *__restrict__ start, const int *__restrict__ col, const float *__restrict__ val,
                           const float *__restrict__ x, float *__restrict__ y, int rows) {
  int row = blockIdx.x * 128 + threadIdx.x;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int k = start[row]; k < start[row + 1]; k++) {
    float v = val[k];
    int c = col[k];
    sum += v * x[c];
  }
  y[row] = sum;
}

// ELLPACK: columns of entries.
// warplens: block=128 grid=128 rows=16384 width=16
// @with: col=below(16384)[262144]
__global__ void ell(const int *__restrict__ col, const float *__restrict__ val, const float *__restrict__ x,
                    float *__restrict__ y, int rows, int width) {
  int row = blockIdx.x * 128 + threadIdx.x;
  float sum = 0.0f;
  for (int k = 0; k < width; k++) {
    float v = val[k * rows + row];
    int c = col[k * rows + row];
    sum += v * x[c];
  }
  y[row] = sum;
}

// ELLPACK by rows.
// warplens: block=128 grid=128 rows=16384 width=16
// @with: col=below(16384)[262144]
__global__ void ell_rows(const int *__restrict__ col, const float *__restrict__ val, const float *__restrict__ x,
                         float *__restrict__ y, int rows, int width) {
  int row = blockIdx.x * 128 + threadIdx.x;
  float sum = 0.0f;
  for (int k = 0; k < width; k++) {
    float v = val[row * width + k];
    int c = col[row * width + k];
    sum += v * x[c];
  }
  y[row] = sum;
}

// Pairs of indices, read by their fields and whole.
// warplens: block=256 grid=128 n=32768
__global__ void pairs_by_field(const Pair *__restrict__ p, int *__restrict__ out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  int a = p[i].first;
  out[i] = a;
}

// warplens: block=256 grid=128 n=32768
__global__ void pairs_whole(const int2 *__restrict__ p, int *__restrict__ out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  int2 v = p[i];
  out[i] = v.x ^ v.y;
}

// k-means: points by features, the way round that suits, and the other.
// warplens: block=256 grid=128 n=32768 features=16
__global__ void assign_rows(const float *__restrict__ points, const float *__restrict__ centre, int *__restrict__ member,
                            int n, int features) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float best = 1e30f;
  int which = 0;
  for (int c = 0; c < 4; c++) {
    float d = 0.0f;
    for (int f = 0; f < features; f++) {
      float delta = points[i * features + f] - centre[c * features + f];
      d += delta * delta;
    }
    if (d < best) {
      best = d;
      which = c;
    }
  }
  member[i] = which;
}

// warplens: block=256 grid=128 n=32768 features=16
__global__ void assign_columns(const float *__restrict__ points, const float *__restrict__ centre,
                               int *__restrict__ member, int n, int features) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float best = 1e30f;
  int which = 0;
  for (int c = 0; c < 4; c++) {
    float d = 0.0f;
    for (int f = 0; f < features; f++) {
      float delta = points[f * n + i] - centre[c * features + f];
      d += delta * delta;
    }
    best = fminf(best, d);
    which += best == d ? c : 0;
  }
  member[i] = which;
}

// Lattice Boltzmann: nine distributions of a cell together.
// warplens: block=128 grid=512 cells=65536
__global__ void collide_cells(float *__restrict__ f, float *__restrict__ rho, int cells) {
  int i = blockIdx.x * 128 + threadIdx.x;
  float f0 = f[i * 9];
  float f1 = f[i * 9 + 1];
  float f2 = f[i * 9 + 2];
  float f3 = f[i * 9 + 3];
  float f4 = f[i * 9 + 4];
  float sum = f0 + f1 + f2 + f3 + f4;
  f[i * 9] = 0.8f * f0 + 0.04f * sum;
  f[i * 9 + 1] = 0.8f * f1 + 0.04f * sum;
  f[i * 9 + 2] = 0.8f * f2 + 0.04f * sum;
  f[i * 9 + 3] = 0.8f * f3 + 0.04f * sum;
  f[i * 9 + 4] = 0.8f * f4 + 0.04f * sum;
  rho[i] = sum;
}

// The same by directions.
// warplens: block=128 grid=512 cells=65536
__global__ void collide_directions(float *__restrict__ f, float *__restrict__ rho, int cells) {
  int i = blockIdx.x * 128 + threadIdx.x;
  float f0 = f[i];
  float f1 = f[cells + i];
  float f2 = f[2 * cells + i];
  float sum = f0 + f1 + f2;
  f[i] = 0.8f * f0 + 0.04f * sum;
  f[cells + i] = 0.8f * f1 + 0.04f * sum;
  f[2 * cells + i] = 0.8f * f2 + 0.04f * sum;
  rho[i] = sum;
}

// Doubles at a distance.
// warplens: block=128 grid=128 n=16384
__global__ void every_third_double(const double *__restrict__ in, double *__restrict__ out, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  double a = in[3 * i];
  out[i] = a;
}

// Each thread a stretch of its own, and each thread every n-th.
// warplens: block=128 grid=64 n=262144
__global__ void chunks(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  int each = n / 8192;
  float sum = 0.0f;
  for (int k = 0; k < each; k++) sum += in[i * each + k];
  out[i] = sum;
}

// warplens: block=128 grid=64 n=262144
__global__ void grid_stride(const float *__restrict__ in, float *__restrict__ out, int n) {
  float sum = 0.0f;
  int i = blockIdx.x * 128 + threadIdx.x;
  for (int k = i; k < n; k += 8192) sum += in[k];
  out[i] = sum;
}

// Offsets: a warp's start in the midst of a sector.
// warplens: block=256 grid=256 n=65536
__global__ void offset_by_one(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float v = in[i + 1];
  out[i] = v;
}

// warplens: block=256 grid=256 n=65536
__global__ void offset_by_sector(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float v = in[i + 8];
  out[i] = v;
}

// Integer tricks with the index that keep neighbours neighbours, and one that does not.
// warplens: block=256 grid=256
__global__ void index_tricks(const int *__restrict__ in, int *__restrict__ out) {
  int i = blockIdx.x * 256 + threadIdx.x;
  int a = in[i ^ 1];
  int b = in[(i & ~31) + (31 - (i & 31))];
  int c = in[i >> 1];
  int d = in[(i << 1) + 1];
  int e = in[(i * 5) & 65535];
  int f = in[__brev(i) >> 16];
  out[i] = a + b + c + d + e + f;
}

// Bit-reversed stores of a transform.
// warplens: block=256 grid=256
__global__ void bit_reverse(const float2 *__restrict__ in, float2 *__restrict__ out) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float2 v = in[i];
  out[__brev(i) >> 16] = v;
}

// Radices: digits of the index swapped.
// warplens: block=256 grid=64
__global__ void digits(const float *__restrict__ in, float *__restrict__ out) {
  int i = blockIdx.x * 256 + threadIdx.x;
  int high = i / 64;
  int low = i % 64;
  float v = in[low * 256 + high];
  out[high * 64 + low] = v;
}
