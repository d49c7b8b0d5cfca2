// No thread comes to the inner loop's test, nor to the function that is called there.
// warplens: block=(20,1,3) grid=(2,1,1) n=15 u=0 w=996
__device__ int first(int a, int b) {
  for (int i = 0; i < 4; i++) {
    if (i * a > b) return i;
  }
  return -1;
}
__global__ void k(const float* in, float* out, int n, unsigned u, long long w) {
  for (int i = 0; i < u * threadIdx.x; i += 2) {
    for (int j = 0; j < first(2, n); ++j) out[threadIdx.x] = in[threadIdx.x];
    for (int j = 0; j < first(2, 3); ++j) out[threadIdx.x] = in[threadIdx.x];
    for (int j = 0; j < first(j, i); ++j) out[threadIdx.x] = in[threadIdx.x];
  }
  for (int i = (-(int)threadIdx.x); i < ((threadIdx.z | (int)threadIdx.x) >> (int)threadIdx.x); i += 3) {
    for (int j = i; j < first(0, n); ++j) out[first(0, u) + (int)threadIdx.x] = in[threadIdx.x];
  }
}
