// No thread comes to the call: nothing is taken in it.
// warplens: block=(32,1,1) grid=(1,1,1) n=0 u=0 w=0
__device__ int pick(int a, int b) { if (a > b) return a - b; switch (b & 3) { case 0: return a; case 1: a += 2; default: break; } return a * 2; }
__global__ void k(const float* in, float* out, int n, unsigned u, long long w) {
  for (int i = threadIdx.x; i < (int)threadIdx.x; i++) out[pick(0, n & 0)] = in[pick(0, 0) & 7];
}
