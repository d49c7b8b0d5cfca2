// Arrays of a thread's own: which of them the compiler keeps in local memory.

// Filled in order, read once where data says.
// warplens: block=128 grid=1024 n=131072
// @with: which=below(8)[131072]
__global__ void read_4(const float *__restrict__ in, const int *__restrict__ which, float *__restrict__ out, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  float own[4];
  for (int k = 0; k < 4; k++) own[k] = in[k * n + i];
  out[i] = own[which[i] & 3];
}

// warplens: block=128 grid=1024 n=131072
// @with: which=below(8)[131072]
__global__ void read_8(const float *__restrict__ in, const int *__restrict__ which, float *__restrict__ out, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  float own[8];
  for (int k = 0; k < 8; k++) own[k] = in[k * n + i];
  out[i] = own[which[i] & 7];
}

// warplens: block=128 grid=1024 n=131072
// @with: which=below(8)[131072]
__global__ void read_16(const float *__restrict__ in, const int *__restrict__ which, float *__restrict__ out, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  float own[16];
  for (int k = 0; k < 16; k++) own[k] = in[k * n + i];
  out[i] = own[which[i] & 15];
}

// warplens: block=128 grid=1024 n=131072
// @with: which=below(8)[131072]
__global__ void read_32(const float *__restrict__ in, const int *__restrict__ which, float *__restrict__ out, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  float own[32];
  for (int k = 0; k < 32; k++) own[k] = in[k * n + i];
  out[i] = own[which[i] & 31];
}

// Read twice.
// warplens: block=128 grid=1024 n=131072
// @with: which=below(8)[131072]
__global__ void read_twice_4(const float *__restrict__ in, const int *__restrict__ which, float *__restrict__ out, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  float own[4];
  for (int k = 0; k < 4; k++) own[k] = in[k * n + i];
  int at = which[i] & 3;
  out[i] = own[at] + own[3 - at];
}

// warplens: block=128 grid=1024 n=131072
// @with: which=below(8)[131072]
__global__ void read_twice_8(const float *__restrict__ in, const int *__restrict__ which, float *__restrict__ out, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  float own[8];
  for (int k = 0; k < 8; k++) own[k] = in[k * n + i];
  int at = which[i] & 7;
  out[i] = own[at] + own[7 - at];
}

// warplens: block=128 grid=1024 n=131072
// @with: which=below(8)[131072]
__global__ void read_twice_16(const float *__restrict__ in, const int *__restrict__ which, float *__restrict__ out, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  float own[16];
  for (int k = 0; k < 16; k++) own[k] = in[k * n + i];
  int at = which[i] & 15;
  out[i] = own[at] + own[15 - at];
}

// Bins of a thread's own.
// warplens: block=128 grid=1024 n=131072
// @with: which=below(8)[131072]
__global__ void written_4(const float *__restrict__ in, const int *__restrict__ which, float *__restrict__ out, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  float own[4];
  for (int k = 0; k < 4; k++) own[k] = 0.0f;
  for (int k = 0; k < 32; k++) own[which[k * 64 + (i & 63)] & 3] += in[k * n + i];
  float best = own[0];
  for (int k = 1; k < 4; k++) best = fmaxf(best, own[k]);
  out[i] = best;
}

// warplens: block=128 grid=1024 n=131072
// @with: which=below(8)[131072]
__global__ void written_16(const float *__restrict__ in, const int *__restrict__ which, float *__restrict__ out, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  float own[16];
  for (int k = 0; k < 16; k++) own[k] = 0.0f;
  for (int k = 0; k < 32; k++) own[which[k * 64 + (i & 63)] & 15] += in[k * n + i];
  float best = own[0];
  for (int k = 1; k < 16; k++) best = fmaxf(best, own[k]);
  out[i] = best;
}

// A network: all subscripts are known once loops are unrolled.
// warplens: block=128 grid=1024 n=131072
// @with: which=below(8)[131072]
__global__ void sorted(const float *__restrict__ in, const int *__restrict__ which, float *__restrict__ out, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  float own[8];
  for (int k = 0; k < 8; k++) own[k] = in[k * n + i];
  for (int a = 0; a < 7; a++) {
    for (int b = 0; b < 7 - a; b++) {
      float lo = fminf(own[b], own[b + 1]);
      float hi = fmaxf(own[b], own[b + 1]);
      own[b] = lo;
      own[b + 1] = hi;
    }
  }
  out[i] = own[4];
}

// Insertion: where data say.
// warplens: block=128 grid=1024 n=131072
// @with: which=below(8)[131072]
__global__ void insertion(const float *__restrict__ in, const int *__restrict__ which, float *__restrict__ out, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  float own[8];
  int m = which[i] & 7;
  for (int k = 0; k < 8; k++) own[k] = 1e30f;
  for (int k = 0; k < m; k++) {
    float v = in[k * n + i];
    int at = k;
    while (at > 0 && own[at - 1] > v) {
      own[at] = own[at - 1];
      at--;
    }
    own[at] = v;
  }
  out[i] = own[m >> 1];
}

// Too much for registers.
// warplens: block=128 grid=1024 n=131072
// @with: which=below(8)[131072]
__global__ void large(const float *__restrict__ in, const int *__restrict__ which, float *__restrict__ out, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  float own[1024];
  for (int k = 0; k < 1024; k++) own[k] = in[(k & 15) * n + i];
  float sum = 0.0f;
  for (int k = 0; k < 16; k++) sum += own[(which[k * 8 + (i & 7)] * 37) & 1023];
  out[i] = sum;
}

// In order, downwards.
// warplens: block=128 grid=1024 n=131072
// @with: which=below(8)[131072]
__global__ void polynomial(const float *__restrict__ in, const int *__restrict__ which, float *__restrict__ out, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  float own[12];
  for (int k = 0; k < 12; k++) own[k] = in[k * n + i];
  float x = in[i];
  float sum = 0.0f;
  for (int k = 11; k >= 0; k--) sum = sum * x + own[k];
  out[i] = sum;
}

// A table of constants.
// warplens: block=128 grid=1024 n=131072
// @with: which=below(8)[131072]
__global__ void table_of_four(const float *__restrict__ in, const int *__restrict__ which, float *__restrict__ out, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  const float own[4] = {0.5f, 1.5f, 2.5f, 3.5f};
  out[i] = in[i] * own[which[i] & 3];
}

// A ring, of a loop that is unrolled.
// warplens: block=128 grid=1024 n=131072
// @with: which=below(8)[131072]
__global__ void rotating(const float *__restrict__ in, const int *__restrict__ which, float *__restrict__ out, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  float own[4];
  for (int k = 0; k < 4; k++) own[k] = in[k * n + i];
  float sum = 0.0f;
  for (int k = 0; k < 16; k++) {
    sum += own[k & 3] * in[k * n + i];
    own[k & 3] = sum;
  }
  out[i] = sum;
}

// A ring, of a loop of unknown length.
// warplens: block=128 grid=1024 n=131072
// @with: which=below(8)[131072]
__global__ void ring_of_unknown(const float *__restrict__ in, const int *__restrict__ which, float *__restrict__ out, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  float own[4];
  for (int k = 0; k < 4; k++) own[k] = in[k * n + i];
  float sum = 0.0f;
  for (int k = 0; k < which[0]; k++) {
    sum += own[k & 3] * in[k * n + i];
    own[k & 3] = sum;
  }
  out[i] = sum;
}

// A window that moves on: registers.
// warplens: block=128 grid=1024 n=131072
// @with: which=below(8)[131072]
__global__ void window(const float *__restrict__ in, const int *__restrict__ which, float *__restrict__ out, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  float own[5];
  for (int k = 0; k < 5; k++) own[k] = in[k * n + i];
  float sum = 0.0f;
  for (int r = 5; r < 40; r++) {
    for (int k = 0; k < 5; k++) sum += own[k] * 0.2f;
    for (int k = 0; k < 4; k++) own[k] = own[k + 1];
    own[4] = in[(r & 15) * n + i];
  }
  out[i] = sum;
}
