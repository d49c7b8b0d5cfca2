// The OpenCL twin of stencil.cu: one Jacobi step of the five-point stencil in groups of 32 x 8.

#define BLOCK_X 32
#define BLOCK_Y 8

// warplens: grid=(32,128) nx=1024 ny=1024
__kernel __attribute__((reqd_work_group_size(BLOCK_X, BLOCK_Y, 1))) void stencil_global(
    __global const float *restrict in, __global float *restrict out, const int nx, const int ny) {
  const int x = get_global_id(0);
  const int y = get_global_id(1);
  if (x < 1 || x >= nx - 1 || y < 1 || y >= ny - 1) return;

  const int at = y * nx + x;
  out[at] = 0.2f * (in[at] + in[at - 1] + in[at + 1] + in[at - nx] + in[at + nx]);
}

// warplens: grid=(32,128) nx=1024 ny=1024
__kernel __attribute__((reqd_work_group_size(BLOCK_X, BLOCK_Y, 1))) void stencil_tiled(
    __global const float *restrict in, __global float *restrict out, const int nx, const int ny) {
  __local float tile[BLOCK_Y + 2][BLOCK_X + 2];

  const int x = get_global_id(0);
  const int y = get_global_id(1);
  const int lx = get_local_id(0);
  const int ly = get_local_id(1);
  const int tx = lx + 1;
  const int ty = ly + 1;
  const int at = y * nx + x;

  if (x < nx && y < ny) {
    tile[ty][tx] = in[at];
    // The edge work-items of the group fetch the halo as well.
    if (lx == 0 && x > 0) tile[ty][0] = in[at - 1];
    if (lx == BLOCK_X - 1 && x < nx - 1) tile[ty][BLOCK_X + 1] = in[at + 1];
    if (ly == 0 && y > 0) tile[0][tx] = in[at - nx];
    if (ly == BLOCK_Y - 1 && y < ny - 1) tile[BLOCK_Y + 1][tx] = in[at + nx];
  }
  barrier(CLK_LOCAL_MEM_FENCE);

  if (x >= 1 && x < nx - 1 && y >= 1 && y < ny - 1) {
    out[at] = 0.2f * (tile[ty][tx] + tile[ty][tx - 1] + tile[ty][tx + 1] + tile[ty - 1][tx] +
                      tile[ty + 1][tx]);
  }
}
