// A negative number compared with an unsigned long is a large one.
// warplens: block=(64,1,1) grid=(1,1,1) n=6 u=3 w=5
__global__ void k(const float *in, float *out, int n, unsigned u, long long w) {
  for (int i = -2; i < sizeof(float) * 4; i++) out[threadIdx.x + i + 2] = in[threadIdx.x];
  for (int i = n; i >= sizeof(float); i -= 3) out[threadIdx.x * 2] = in[i + threadIdx.x];
  for (long long i = (int)threadIdx.x - 8; i < (size_t)u; i++) out[i + 64] = 1.0f;
  if ((int)threadIdx.x - 32 < sizeof(double)) out[threadIdx.x] = 2.0f;
}
