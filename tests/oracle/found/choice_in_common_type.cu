// warplens: block=(32,1,1) grid=(1,1,1) n=0 u=0 w=0
__global__ void k(const char* in0, char* out0, int n, unsigned u, long long w) {
  if (2 * (int)threadIdx.x) out0[2 * (int)threadIdx.x / ((int)threadIdx.x ? -1 : threadIdx.x)] = 1;
}
