// warplens: block=(48,1,1) grid=(1,1,1) n=0 u=0 w=0
__global__ void k(const char* in0, char* out0, int n, unsigned u, long long w) {
  for (int v1 = -1; v1 < (int)threadIdx.x + n; v1 += 1) {
    out0[v1] = 1;
    if ((int)threadIdx.x) break;
  }
}
