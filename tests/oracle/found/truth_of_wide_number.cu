// A bool is whether a number is one at all, not its lowest bits.
// warplens: block=(64,1,1) grid=(2,1,1) n=256 u=512 w=768
__global__ void k(const float *in, float *out, int n, unsigned u, long long w) {
  out[(bool)n + threadIdx.x * 2] = in[threadIdx.x << (bool)(threadIdx.x & 32)];
  bool some = threadIdx.x * 256;
  out[some * 64] = 1.0f;
  some |= blockIdx.x << 9;
  out[some * 64 + threadIdx.x * 3] = 2.0f;
  bool all = true;
  all &= (bool)u;
  if (all) out[threadIdx.x * 4] = 3.0f;
  out[sizeof(bool) * threadIdx.x] = 4.0f;
}
