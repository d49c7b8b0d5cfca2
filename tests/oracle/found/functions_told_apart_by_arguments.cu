// One body for each set of numbers that it is called with: what is counted of one is not the others'.
// warplens: block=(32,1,1) grid=(3,2,1) n=47 u=35 w=2
__device__ int first(int a, int b) {
  for (int i = 0; i < 4; i++) {
    if (i * a > b) return i;
  }
  return -1;
}
__global__ void k(const float* in, float* out, int n, unsigned u, long long w) {
  for (int i = threadIdx.y + first(-1, 2); i < (int)threadIdx.x; i += 3) {
    out[threadIdx.x] = in[threadIdx.x];
  }
  out[first(3, 1) + threadIdx.x] = in[first(2, n & 7)];
  out[first(3, threadIdx.x & 15)] = 1;
}
