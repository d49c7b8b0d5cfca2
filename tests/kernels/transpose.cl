// The OpenCL twin of transpose.cu: global ids instead of block arithmetic, __local instead of
// __shared__. Enqueue transpose_naive over n x n work-items in groups of 32 x 8, the tiled kernels
// over n x (n / 4) work-items, because each of theirs moves four elements.

#define TILE 32
#define ROWS 8

// warplens: block=(32,8) grid=(32,128) n=1024
__kernel void transpose_naive(__global const float *restrict in, __global float *restrict out,
                              const int n) {
  const int x = get_global_id(0);
  const int y = get_global_id(1);
  if (x < n && y < n) out[x * n + y] = in[y * n + x];
}

// A column of the tile lies in one bank.
// warplens: grid=(32,32) n=1024
__kernel __attribute__((reqd_work_group_size(TILE, ROWS, 1))) void transpose_tiled(
    __global const float *restrict in, __global float *restrict out, const int n) {
  __local float tile[TILE][TILE];
  const int lx = get_local_id(0);
  const int ly = get_local_id(1);

  int x = get_group_id(0) * TILE + lx;
  int y = get_group_id(1) * TILE + ly;
  for (int j = 0; j < TILE; j += ROWS) {
    if (x < n && y + j < n) tile[ly + j][lx] = in[(y + j) * n + x];
  }
  barrier(CLK_LOCAL_MEM_FENCE);

  x = get_group_id(1) * TILE + lx;
  y = get_group_id(0) * TILE + ly;
  for (int j = 0; j < TILE; j += ROWS) {
    if (x < n && y + j < n) out[(y + j) * n + x] = tile[lx][ly + j];
  }
}

// One more column moves each row by a bank.
// warplens: grid=(32,32) n=1024
__kernel __attribute__((reqd_work_group_size(TILE, ROWS, 1))) void transpose_padded(
    __global const float *restrict in, __global float *restrict out, const int n) {
  __local float tile[TILE][TILE + 1];
  const int lx = get_local_id(0);
  const int ly = get_local_id(1);

  int x = get_group_id(0) * TILE + lx;
  int y = get_group_id(1) * TILE + ly;
  for (int j = 0; j < TILE; j += ROWS) {
    if (x < n && y + j < n) tile[ly + j][lx] = in[(y + j) * n + x];
  }
  barrier(CLK_LOCAL_MEM_FENCE);

  x = get_group_id(1) * TILE + lx;
  y = get_group_id(0) * TILE + ly;
  for (int j = 0; j < TILE; j += ROWS) {
    if (x < n && y + j < n) out[(y + j) * n + x] = tile[lx][ly + j];
  }
}
