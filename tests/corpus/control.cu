// kernels: decode collatz search_sorted early_out ternaries nested_loops
// Switches that fall through, loops of every kind, early exits.
#include <cuda_runtime.h>

__global__ void decode(const unsigned char* codes, const int* operands, int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int value = operands[i];
  switch (codes[i]) {
    case 0:
      value = -value;
      // fall through
    case 1:
      value += operands[i + n];
      break;
    case 2: {
      const int other = operands[i + 2 * n];
      value = value > other ? value : other;
      break;
    }
    default:
      value = 0;
  }
  out[i] = value;
}

__global__ void collatz(const unsigned* in, unsigned* steps, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned x = in[i];
  unsigned count = 0;
  do {
    x = (x & 1u) ? 3u * x + 1u : x / 2u;
    ++count;
  } while (x != 1u && count < 1000u);
  steps[i] = count;
}

__global__ void search_sorted(const float* edges, int edge_count, const float* in, int* out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const float x = in[i];
    int low = 0;
    int high = edge_count;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (edges[middle] <= x)
        low = middle + 1;
      else
        high = middle;
    }
    out[i] = low;
  }
}

__global__ void early_out(const int* in, int* found, int n, int wanted) {
  for (int i = threadIdx.x;; i += blockDim.x) {
    if (i >= n) break;
    if (in[i] == 0) continue;
    if (in[i] == wanted) {
      *found = i;
      return;
    }
  }
}

__global__ void ternaries(const float* a, const float* b, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const bool inside = i < n;
  const float x = inside ? a[i] : 0.0f;
  const float y = inside && b[i] > 0.0f ? b[i] : 1.0f;
  if (inside) out[i] = x / y;
}

__global__ void nested_loops(const float* __restrict__ a, const float* __restrict__ b,
                             float* __restrict__ c, int m, int n, int k) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= m || column >= n) return;
  float sum[2] = {0.0f, 0.0f};
  for (int i = 0, end = k / 2; i < end; ++i) {
    for (int j = 0; j < 2; ++j) {
      sum[j] += a[row * k + 2 * i + j] *
                b[(2 * i + j) * n + column];
    }
  }
  c[row * n + column] = sum[0] + sum[1];
}
