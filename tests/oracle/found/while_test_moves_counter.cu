// warplens: block=(32,1,1) grid=(1,1,1) n=4 u=0 w=0
__global__ void k(const char* in0, char* out0, int n, unsigned u, long long w) {
  int v1 = n;
  while (v1-- > 0) out0[threadIdx.x] = in0[threadIdx.x];
  out0[v1 * (int)threadIdx.x] = 1;
}
