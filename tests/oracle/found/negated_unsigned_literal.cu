// -16u is a large number.
// warplens: block=(32,1,1) grid=(1,1,1) n=0 u=0 w=0
__global__ void k(const char* in0, char* out0, int n, unsigned u, long long w) {
  if ((int)threadIdx.x > (-16u)) out0[threadIdx.x] = in0[threadIdx.x];
  if (threadIdx.x < -8u / 2) out0[threadIdx.x * 2] = in0[threadIdx.x];
}
