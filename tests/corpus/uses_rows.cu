// kernels: rows_of_one
// Includes a header with kernels, launches them, and uses its functions.
#include "rows.cuh"

__global__ void rows_of_one(const float* in, float* out) {
  const float most = rows::warp_max(in[blockIdx.x * rows::kWarp + threadIdx.x]);
  if (threadIdx.x == 0) out[blockIdx.x] = most;
}

void run(float* data, const float* bias, float* out, int n) {
  rows::add_bias<<<n, 256>>>(data, bias, 512);
  rows::softmax_row<512><<<n, rows::kWarp>>>(data);
  rows_of_one<<<n, rows::kWarp>>>(data, out);
}
