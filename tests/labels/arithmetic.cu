// Arithmetic: each advice compiled both ways (see compiler.tsv), those that the compiler follows by itself among them.

// @instead: arith/double-literal: 0.5 => 0.5f
// warplens: block=256 grid=4096 n=1048576
__global__ void half_of(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float v = in[i];
  out[i] = v * 0.3 + v * v * 0.5;
}

// A power of two: the product is exact either way, and the compiler knows.
// @instead: arith/double-literal: 2.0 => 2.0f
// warplens: block=256 grid=4096 n=1048576
__global__ void twice(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float v = in[i];
  out[i] = v > 2.0 ? v : 0.0f;
}

// An initial value.
// @instead: arith/double-literal: 0.0 => 0.0f
// warplens: block=256 grid=4096 n=1048576
__global__ void from_zero(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float sum = 0.0;
  for (int k = 0; k < 4; k++) sum += in[k * 1048576 + i];
  out[i] = sum;
}

// @instead: arith/double-literal: 0.299 => 0.299f
// warplens: block=256 grid=4096 n=1048576
__global__ void luma(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float v = in[i];
  out[i] = 0.299 * v + 1.0f;
}

// Doubles stay doubles.
// @instead: arith/double-literal: 0.299 => 0.299f
// warplens: block=256 grid=4096 n=1048576
__global__ void luma_double(const double *__restrict__ in, double *__restrict__ out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  double v = in[i];
  out[i] = 0.299 * v + 1.0;
}

// @instead: arith/double-literal: 1e-3 => 1e-3f
// warplens: block=256 grid=4096 n=1048576
__global__ void near(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float v = in[i];
  if (fabsf(v) < 1e-3) v = 0.0f;
  out[i] = v;
}

// @instead: arith/double-literal: 1.0 / => 1.0f /
// warplens: block=256 grid=4096 n=1048576
__global__ void reciprocal(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float v = in[i];
  out[i] = 1.0 / (v + 3.0f);
}

// @instead: arith/pow: powf(v, 2.0f) => v * v
// warplens: block=256 grid=4096 n=1048576
__global__ void square(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float v = in[i];
  out[i] = powf(v, 2.0f);
}

// @instead: arith/pow: powf(v, 3.0f) => v * v * v
// warplens: block=256 grid=4096 n=1048576
__global__ void cube(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float v = in[i];
  out[i] = powf(v, 3.0f);
}

// @instead: arith/pow: powf(v, 0.5f) => sqrtf(v)
// warplens: block=256 grid=4096 n=1048576
__global__ void root(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float v = in[i];
  out[i] = powf(v, 0.5f);
}

// @instead: arith/pow: pow(v, 2) => v * v
// warplens: block=256 grid=4096 n=1048576
__global__ void square_int(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float v = in[i];
  out[i] = pow(v, 2);
}

// @instead: arith/pow: powf(2.0f, v) => exp2f(v)
// warplens: block=256 grid=4096 n=1048576
__global__ void two_to(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float v = in[i];
  out[i] = powf(2.0f, v);
}

// An unknown exponent.
// @instead: arith/pow: powf(v, e) => powf(v, e)
// warplens: block=256 grid=4096 n=1048576
__global__ void any_power(const float *__restrict__ in, float *__restrict__ out, float e, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float v = in[i];
  out[i] = powf(v, e);
}

// @instead: arith/sincos: out[i] = sinf(v) * 2.0f + cosf(v); => float s, c; sincosf(v, &s, &c); out[i] = s * 2.0f + c;
// warplens: block=256 grid=4096 n=1048576
__global__ void both(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float v = in[i];
  out[i] = sinf(v) * 2.0f + cosf(v);
}

// @instead: arith/sincos: sinf(3.14159265f * v) => sinpif(v)
// warplens: block=256 grid=4096 n=1048576
__global__ void of_pi(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float v = in[i];
  out[i] = sinf(3.14159265f * v);
}

// Of other angles.
// @instead: arith/sincos: sinf(v) + cosf(w) => sinf(v) + cosf(w)
// warplens: block=256 grid=4096 n=1048576
__global__ void two_angles(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float v = in[i];
  float w = in[i + 1048576];
  out[i] = sinf(v) + cosf(w);
}

// @instead: arith/fast-math: 1.0f / sqrtf(v) => rsqrtf(v)
// warplens: block=256 grid=4096 n=1048576
__global__ void inverse_root(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float v = in[i];
  out[i] = 1.0f / sqrtf(v);
}

// @instead: arith/fast-math: v / sqrtf(w) => v * rsqrtf(w)
// warplens: block=256 grid=4096 n=1048576
__global__ void over_root(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float v = in[i];
  float w = v * v + 1.0f;
  out[i] = v / sqrtf(w);
}

// @instead: arith/fast-math: rsqrtf(v) => rsqrtf(v)
// warplens: block=256 grid=4096 n=1048576
__global__ void inverse_root_already(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float v = in[i];
  out[i] = rsqrtf(v);
}

// @instead: arith/int-div-mod: i / w => i >> 6
// warplens: block=256 grid=4096 w=64
__global__ void divided(const float *__restrict__ in, float *__restrict__ out, int w) {
  int i = blockIdx.x * 256 + threadIdx.x;
  int row = i / w;
  out[i] = in[row * 64 + (i & 63)];
}

// @instead: arith/int-div-mod: i / 64u => i >> 6
// warplens: block=256 grid=4096 n=1048576
__global__ void divided_by_literal(const float *__restrict__ in, float *__restrict__ out, int n) {
  unsigned i = blockIdx.x * 256 + threadIdx.x;
  unsigned row = i / 64u;
  out[i] = in[row * 64 + (i & 63)];
}

// @instead: arith/no-fma: __fadd_rn(__fmul_rn(v, 1.5f), 2.0f) => v * 1.5f + 2.0f
// warplens: block=256 grid=4096 n=1048576
__global__ void two_roundings(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float v = in[i];
  out[i] = __fadd_rn(__fmul_rn(v, 1.5f), 2.0f);
}

// @instead: arith/no-fma: v * 1.5f + 2.0f => fmaf(v, 1.5f, 2.0f)
// warplens: block=256 grid=4096 n=1048576
__global__ void one_rounding(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float v = in[i];
  out[i] = v * 1.5f + 2.0f;
}

// Arrays of a thread's own: found by what it reads, and by loops that are unrolled.
// warplens: block=128 grid=1024 n=131072
// @with: which=below(8)[131072]
__global__ void looked_up(const float *__restrict__ in, const int *__restrict__ which, float *__restrict__ out, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  float own[8];
  for (int k = 0; k < 8; k++) own[k] = in[k * 131072 + i];
  out[i] = own[which[i] & 7];
}

// warplens: block=128 grid=1024 n=131072
__global__ void written_out(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  float own[8];
  for (int k = 0; k < 8; k++) own[k] = in[k * 131072 + i];
  float sum = 0.0f;
  for (int k = 0; k < 8; k++) sum += own[k] * own[7 - k];
  out[i] = sum;
}

// warplens: block=128 grid=1024 n=16
__global__ void unknown_length(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  float own[16];
  for (int k = 0; k < n; k++) own[k & 15] = in[k * 131072 + i];
  float sum = 0.0f;
  for (int k = 0; k < n; k++) sum += own[(n - 1 - k) & 15];
  out[i] = sum;
}

// A stack of a walk.
// warplens: block=128 grid=1024 n=131072
// @with: tree=below(64)[131072]
__global__ void stacked(const int *__restrict__ tree, int *__restrict__ out, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  int stack[16];
  int top = 0;
  stack[top++] = i & 63;
  int sum = 0;
  for (int turn = 0; turn < 40; turn++) {
    if (top == 0) break;
    int node = stack[--top];
    sum += node;
    int child = tree[node];
    if (child > node && top < 15) stack[top++] = child;
    if (child & 1 && top < 15) stack[top++] = child >> 1;
  }
  out[i] = sum;
}

// Qualifiers that let loads stand before stores, and such that change nothing.
// @instead: mem/no-restrict: float *out, const float *in => float *__restrict__ out, const float *__restrict__ in
// warplens: block=128 grid=1024 n=131072
__global__ void behind_stores(float *out, const float *in, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  out[i] = in[i] + in[i + n];
  out[i + n] = in[i] - in[i + n];
  out[i + 2 * n] = in[i] * in[i + n];
}

// @instead: mem/no-restrict: float *out, const float *in => float *__restrict__ out, const float *__restrict__ in
// warplens: block=128 grid=1024 n=131072
__global__ void before_stores(float *out, const float *in, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  out[i] = in[i] + in[i + n];
}

// Bounds that leave too few registers, and such that do not.
// warplens: block=1024 grid=1024 n=1048576
__global__ void __launch_bounds__(1024, 2) too_few_registers(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * 1024 + threadIdx.x;
  float a[48];
  for (int k = 0; k < 48; k++) a[k] = in[k * n + i];
  __syncthreads();
  float sum = 0.0f;
  for (int k = 0; k < 48; k++) sum += a[k] * a[47 - k] + a[(k + 7) % 48];
  for (int k = 0; k < 48; k++) sum = sum * a[k] + a[(k * 5) % 48];
  out[i] = sum;
}

// warplens: block=256 grid=4096 n=1048576
__global__ void __launch_bounds__(256, 2) enough_registers(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float a[48];
  for (int k = 0; k < 48; k++) a[k] = in[k * n + i];
  __syncthreads();
  float sum = 0.0f;
  for (int k = 0; k < 48; k++) sum += a[k] * a[47 - k] + a[(k + 7) % 48];
  for (int k = 0; k < 48; k++) sum = sum * a[k] + a[(k * 5) % 48];
  out[i] = sum;
}
