// The last test calls the function once more.
// warplens: block=(64,1,1) grid=(2,1,1) n=18 u=81 w=411
__device__ int pick(int a, int b) { if (a > b) return a - b; switch (b & 3) { case 0: return a; case 1: a += 2; default: break; } return a * 2; }
__global__ void k(const float* in, float* out, int n, unsigned u, long long w) {
  for (int i = 1; i < ((threadIdx.x / -3) * min(pick((int)threadIdx.x, (int)threadIdx.x), (int)threadIdx.x)); i *= 2) out[i] = in[i];
}
