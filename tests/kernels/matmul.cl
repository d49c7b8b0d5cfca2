// The OpenCL twin of matmul.cu. Enqueue both kernels over the square of work-items next above n x n
// in groups of 16 x 16.

#define TILE 16

// warplens: grid=(64,64) n=1024
__kernel __attribute__((reqd_work_group_size(TILE, TILE, 1))) void matmul_global(
    __global const float *restrict a, __global const float *restrict b, __global float *restrict c,
    const int n) {
  const int row = get_global_id(1);
  const int col = get_global_id(0);
  if (row >= n || col >= n) return;

  float sum = 0.0f;
  for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + col];
  c[row * n + col] = sum;
}

// warplens: grid=(64,64) n=1024
__kernel __attribute__((reqd_work_group_size(TILE, TILE, 1))) void matmul_tiled(
    __global const float *restrict a, __global const float *restrict b, __global float *restrict c,
    const int n) {
  __local float tile_a[TILE][TILE];
  __local float tile_b[TILE][TILE];

  const int lx = get_local_id(0);
  const int ly = get_local_id(1);
  const int row = get_global_id(1);
  const int col = get_global_id(0);

  float sum = 0.0f;
  for (int k0 = 0; k0 < n; k0 += TILE) {
    // Zeros outside the matrix: no work-item may leave before the barriers.
    tile_a[ly][lx] = (row < n && k0 + lx < n) ? a[row * n + k0 + lx] : 0.0f;
    tile_b[ly][lx] = (k0 + ly < n && col < n) ? b[(k0 + ly) * n + col] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);

#pragma unroll
    for (int k = 0; k < TILE; ++k) sum += tile_a[ly][k] * tile_b[k][lx];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (row < n && col < n) c[row * n + col] = sum;
}
