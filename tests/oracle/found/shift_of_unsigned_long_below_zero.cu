// Zeros come from the left.
// warplens: block=(32,1,1) grid=(2,1,1) n=7 u=2 w=-3
__global__ void k(const float* in, float* out, int n, unsigned u, long long w) {
  unsigned long long z = w;
  for (unsigned i = z >> 61; i < 9; i += 1) out[i + threadIdx.x] = in[(z >> 60) * threadIdx.x];
}
