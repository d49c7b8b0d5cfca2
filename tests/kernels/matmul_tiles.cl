// The OpenCL twin of matmul_tiles.cu. Enqueue n / WIDTH x n / 16 groups of 16 x 16; n is a multiple of
// WIDTH.

#define TILE 16

// 16 x WIDTH elements of C by a group, WIDTH / 16 by a work-item. A kernel's local arrays are its own
// in OpenCL C, so it hands them over.
#define MULTIPLY_TILE(WIDTH)                                                                    \
  const int lx = get_local_id(0);                                                               \
  const int ly = get_local_id(1);                                                               \
  const int row = get_group_id(1) * TILE + ly;                                                  \
  const int col = get_group_id(0) * WIDTH + lx;                                                 \
  float sum[WIDTH / TILE];                                                                      \
  for (int j = 0; j < WIDTH / TILE; ++j) sum[j] = 0.0f;                                         \
  for (int k0 = 0; k0 < n; k0 += TILE) {                                                        \
    tile_a[ly][lx] = a[row * n + k0 + lx];                                                      \
    for (int j = 0; j < WIDTH / TILE; ++j)                                                      \
      tile_b[ly][lx + j * TILE] = b[(k0 + ly) * n + col + j * TILE];                            \
    barrier(CLK_LOCAL_MEM_FENCE);                                                               \
    for (int k = 0; k < TILE; ++k) {                                                            \
      const float left = tile_a[ly][k];                                                         \
      for (int j = 0; j < WIDTH / TILE; ++j) sum[j] += left * tile_b[k][lx + j * TILE];         \
    }                                                                                           \
    barrier(CLK_LOCAL_MEM_FENCE);                                                               \
  }                                                                                             \
  for (int j = 0; j < WIDTH / TILE; ++j) c[row * n + col + j * TILE] = sum[j];

// warplens: grid=(48,48) n=768
__kernel __attribute__((reqd_work_group_size(TILE, TILE, 1))) void matmul_tile_16(
    __global const float *restrict a, __global const float *restrict b, __global float *restrict c,
    const int n) {
  __local float tile_a[TILE][TILE];
  __local float tile_b[TILE][16];
  MULTIPLY_TILE(16)
}

// warplens: grid=(24,48) n=768
__kernel __attribute__((reqd_work_group_size(TILE, TILE, 1))) void matmul_tile_32(
    __global const float *restrict a, __global const float *restrict b, __global float *restrict c,
    const int n) {
  __local float tile_a[TILE][TILE];
  __local float tile_b[TILE][32];
  MULTIPLY_TILE(32)
}

// warplens: grid=(12,48) n=768
__kernel __attribute__((reqd_work_group_size(TILE, TILE, 1))) void matmul_tile_64(
    __global const float *restrict a, __global const float *restrict b, __global float *restrict c,
    const int n) {
  __local float tile_a[TILE][TILE];
  __local float tile_b[TILE][64];
  MULTIPLY_TILE(64)
}

// warplens: grid=(6,48) n=768
__kernel __attribute__((reqd_work_group_size(TILE, TILE, 1))) void matmul_tile_128(
    __global const float *restrict a, __global const float *restrict b, __global float *restrict c,
    const int n) {
  __local float tile_a[TILE][TILE];
  __local float tile_b[TILE][128];
  MULTIPLY_TILE(128)
}

// warplens: grid=(4,48) n=768
__kernel __attribute__((reqd_work_group_size(TILE, TILE, 1))) void matmul_tile_192(
    __global const float *restrict a, __global const float *restrict b, __global float *restrict c,
    const int n) {
  __local float tile_a[TILE][TILE];
  __local float tile_b[TILE][192];
  MULTIPLY_TILE(192)
}
