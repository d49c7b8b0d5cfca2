// A branch of a function that a function calls is behind both calls, and is counted with several returns too.
// warplens: block=(64,1,1) grid=(2,1,1) n=18 u=81 w=411
__device__ int pick(int a, int b) {
  if (a > b) return a - b;
  switch (b & 3) { case 0: return a; case 1: a += 2; default: break; }
  return a * 2;
}
__device__ bool inside(int a, int b) {
  if (a < 0) return false;
  if (b < 0 || a == 3) return true;
  return a < b;
}
__device__ int nested(int a, int b) {
  if (inside(a, b)) return pick(a, b);
  return b & 7;
}
__global__ void k(const float* in, float* out, int n, unsigned u, long long w) {
  out[threadIdx.x] = in[nested((int)threadIdx.x, n)];
  out[nested(4, 9)] = 1;
  for (int i = 0; i < nested(n, (int)threadIdx.x >> 4); i += 2) out[i] = in[i + threadIdx.x];
}
