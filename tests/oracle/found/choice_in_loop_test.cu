// warplens: block=(32,1,1) grid=(1,1,1) n=0 u=0 w=0
__global__ void k(const char* in0, char* out0, int n, unsigned u, long long w) {
  for (int v1 = (int)threadIdx.x; v1 < ((int)threadIdx.x ? (int)threadIdx.x : 0); v1 += 1) out0[v1] = 1;
}
