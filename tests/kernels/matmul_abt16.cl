// The OpenCL twin of matmul_abt16.cu: groups of 16 x 16 over a result whose sides are multiples of 16.

#define TILE 16

// Sixteen work-items side by side read one column of tile_b.
// warplens: grid=(6,10) depth=80 columns=96
__kernel __attribute__((reqd_work_group_size(TILE, TILE, 1))) void matmul_abt16_conflict(
    __global const float *restrict a, __global const float *restrict b, __global float *restrict c,
    const int depth, const int columns) {
  __local float tile_a[TILE][TILE];
  __local float tile_b[TILE][TILE];

  const int lx = get_local_id(0);
  const int ly = get_local_id(1);
  const int row_a = get_group_id(1) * TILE + ly;
  const int row_b = get_group_id(0) * TILE + ly;

  float sum = 0.0f;
  for (int k0 = 0; k0 < depth; k0 += TILE) {
    tile_a[ly][lx] = a[row_a * depth + k0 + lx];
    tile_b[ly][lx] = b[row_b * depth + k0 + lx];
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int k = 0; k < TILE; ++k) sum += tile_a[ly][k] * tile_b[lx][k];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  c[row_a * columns + get_group_id(0) * TILE + lx] = sum;
}

// Rows of 17 words.
// warplens: grid=(6,10) depth=80 columns=96
__kernel __attribute__((reqd_work_group_size(TILE, TILE, 1))) void matmul_abt16_padded(
    __global const float *restrict a, __global const float *restrict b, __global float *restrict c,
    const int depth, const int columns) {
  __local float tile_a[TILE][TILE];
  __local float tile_b[TILE][TILE + 1];

  const int lx = get_local_id(0);
  const int ly = get_local_id(1);
  const int row_a = get_group_id(1) * TILE + ly;
  const int row_b = get_group_id(0) * TILE + ly;

  float sum = 0.0f;
  for (int k0 = 0; k0 < depth; k0 += TILE) {
    tile_a[ly][lx] = a[row_a * depth + k0 + lx];
    tile_b[ly][lx] = b[row_b * depth + k0 + lx];
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int k = 0; k < TILE; ++k) sum += tile_a[ly][k] * tile_b[lx][k];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  c[row_a * columns + get_group_id(0) * TILE + lx] = sum;
}
