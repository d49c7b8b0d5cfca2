// 5ull % -1 is 5 and -1 is not below 0ull: constants of 64 bits have no sign.
// warplens: block=(32,1,1) grid=(2,1,1) n=7 u=2 w=9
__global__ void k(const float* in, float* out, int n, unsigned u, long long w) {
  for (int i = (int)threadIdx.x * (int)threadIdx.x; i < (5ull % (-1)); i += 3) out[i] = in[i];
  if ((-1) < 0ull) out[threadIdx.x] = 1;
  out[((unsigned long long)(-8) >> 60) + threadIdx.x] = in[(5u - 6) >> 28];
}
