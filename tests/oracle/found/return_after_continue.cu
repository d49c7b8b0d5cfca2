// warplens: block=(16,4,1) grid=(1,1,1) n=4 u=0 w=0
__global__ void k(const char* in0, char* out0, int n, unsigned u, long long w) {
  for (int v1 = 3; v1 < (int)blockIdx.x + n; v1 += 1) {
    if (threadIdx.y) continue;
    return;
  }
  out0[threadIdx.x] = in0[threadIdx.y];
}
