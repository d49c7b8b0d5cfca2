// A loop whose end depends on the block: its doubled counter is more than its first values.
// warplens: block=(5,3,2) grid=(2,1,1) n=3 u=2 w=1
__global__ void k(const float *in, float *out, int n, unsigned u, long long w) {
  for (int v = 1; v < (int)(blockIdx.y + 16); v *= 2) {
    int t = 5 >> threadIdx.y;
    while (t < v) {
      if (threadIdx.x) return;
      t += 1;
    }
  }
  out[threadIdx.x] = in[0];
}
