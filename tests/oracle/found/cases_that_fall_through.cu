// Lanes that fall through and lanes that come by the label are there together.
// warplens: block=(64,1,1) grid=(2,1,1) n=3 u=2 w=1
__global__ void k(const float *in, float *out, int n, unsigned u, long long w) {
  switch (threadIdx.x % 5) {
  case 0:
    out[threadIdx.x] = in[threadIdx.x * 2];
  case 1:
  case 3:
    out[threadIdx.x + 64] = in[threadIdx.x];
    if (threadIdx.x > 40) break;
  default:
    out[threadIdx.x + 128] = in[threadIdx.x * 3];
    break;
  case 2:
    out[threadIdx.x + 256] = 1.0f;
  }
  for (int i = 0; i < n; i++) {
    switch (i) {
    case 0:
      if (threadIdx.x & 1) continue;
    case 1:
      out[i * 64 + threadIdx.x] = 2.0f;
    }
    out[i] = 3.0f;
  }
  switch (u) {
  default:
    out[threadIdx.x] = 4.0f;
  case 1:
    out[threadIdx.x * 2] = 5.0f;
  }
}
