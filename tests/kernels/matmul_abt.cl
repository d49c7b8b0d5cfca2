// The OpenCL twin of matmul_abt.cu: C = A B^T in work-groups of 32 x 32.

#define TILE 32

// get_global_id(0) picks the row of B, so neighbouring work-items read n elements apart.
// warplens: grid=(32,32) n=1024
__kernel __attribute__((reqd_work_group_size(TILE, TILE, 1))) void matmul_abt_global(
    __global const float *restrict a, __global const float *restrict b, __global float *restrict c,
    const int n) {
  const int row = get_global_id(1);
  const int col = get_global_id(0);
  if (row >= n || col >= n) return;

  float sum = 0.0f;
  for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[col * n + k];
  c[row * n + col] = sum;
}

// Both tiles are loaded by rows; tile_b is then read by columns.
// warplens: grid=(32,32) n=1024
__kernel __attribute__((reqd_work_group_size(TILE, TILE, 1))) void matmul_abt_conflict(
    __global const float *restrict a, __global const float *restrict b, __global float *restrict c,
    const int n) {
  __local float tile_a[TILE][TILE];
  __local float tile_b[TILE][TILE];

  const int lx = get_local_id(0);
  const int ly = get_local_id(1);
  const int row = get_global_id(1);
  const int col = get_global_id(0);
  const int row_b = get_group_id(0) * TILE + ly;

  float sum = 0.0f;
  for (int k0 = 0; k0 < n; k0 += TILE) {
    const int k = k0 + lx;
    tile_a[ly][lx] = (row < n && k < n) ? a[row * n + k] : 0.0f;
    tile_b[ly][lx] = (row_b < n && k < n) ? b[row_b * n + k] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < TILE; ++i) sum += tile_a[ly][i] * tile_b[lx][i];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (row < n && col < n) c[row * n + col] = sum;
}

// One more column in tile_b moves each row by a bank.
// warplens: grid=(32,32) n=1024
__kernel __attribute__((reqd_work_group_size(TILE, TILE, 1))) void matmul_abt_padded(
    __global const float *restrict a, __global const float *restrict b, __global float *restrict c,
    const int n) {
  __local float tile_a[TILE][TILE];
  __local float tile_b[TILE][TILE + 1];

  const int lx = get_local_id(0);
  const int ly = get_local_id(1);
  const int row = get_global_id(1);
  const int col = get_global_id(0);
  const int row_b = get_group_id(0) * TILE + ly;

  float sum = 0.0f;
  for (int k0 = 0; k0 < n; k0 += TILE) {
    const int k = k0 + lx;
    tile_a[ly][lx] = (row < n && k < n) ? a[row * n + k] : 0.0f;
    tile_b[ly][lx] = (row_b < n && k < n) ? b[row_b * n + k] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < TILE; ++i) sum += tile_a[ly][i] * tile_b[lx][i];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (row < n && col < n) c[row * n + col] = sum;
}
