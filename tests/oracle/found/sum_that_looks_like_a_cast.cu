// warplens: block=(64,1,1) grid=(2,1,1) n=100 u=0 w=0
__global__ void k(const char* in0, char* out0, int n, unsigned u, long long w) {
  const int t = threadIdx.x;
  out0[(t) + (t) / 32] = in0[3 + (t) - (n) * 2];
}
