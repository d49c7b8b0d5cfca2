// The OpenCL twin of spmv.cu: y = A x for a sparse matrix in compressed rows.

#define BLOCK 128
#define TEAM 16  // work-items that share a row

// A row per work-item: lanes run as long as the longest of their rows, and each walks elsewhere.
// warplens: grid=512 rows=65536
__kernel __attribute__((reqd_work_group_size(BLOCK, 1, 1))) void spmv_global(
    __global const int *restrict row_start, __global const int *restrict column,
    __global const float *restrict value, __global const float *restrict x,
    __global float *restrict y, const int rows) {
  const int row = get_global_id(0);
  if (row >= rows) return;
  const int end = row_start[row + 1];
  float sum = 0.0f;
  for (int k = row_start[row]; k < end; ++k) sum += value[k] * x[column[k]];
  y[row] = sum;
}

// Neighbours share the bounds of their rows: each is fetched once.
// warplens: grid=512 rows=65536
__kernel __attribute__((reqd_work_group_size(BLOCK, 1, 1))) void spmv_shared(
    __global const int *restrict row_start, __global const int *restrict column,
    __global const float *restrict value, __global const float *restrict x,
    __global float *restrict y, const int rows) {
  __local int start[BLOCK + 1];
  const int t = get_local_id(0);
  const int row = get_global_id(0);
  if (row <= rows) start[t] = row_start[row];
  if (t == 0 && row + BLOCK <= rows) start[BLOCK] = row_start[row + BLOCK];
  barrier(CLK_LOCAL_MEM_FENCE);

  if (row < rows) {
    const int end = start[t + 1];
    float sum = 0.0f;
    for (int k = start[t]; k < end; ++k) sum += value[k] * x[column[k]];
    y[row] = sum;
  }
}

// A row a team of 16: its work-items take neighbouring elements, then add up what they have.
// warplens: grid=8192 rows=65536
__kernel __attribute__((reqd_work_group_size(BLOCK, 1, 1))) void spmv_consecutive(
    __global const int *restrict row_start, __global const int *restrict column,
    __global const float *restrict value, __global const float *restrict x,
    __global float *restrict y, const int rows) {
  __local float sums[BLOCK];
  const int t = get_local_id(0);
  const int member = t % TEAM;
  const int row = get_global_id(0) / TEAM;

  float sum = 0.0f;
  if (row < rows) {
    const int end = row_start[row + 1];
    for (int k = row_start[row] + member; k < end; k += TEAM) sum += value[k] * x[column[k]];
  }
  sums[t] = sum;
  for (int step = TEAM / 2; step > 0; step /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (member < step) sums[t] += sums[t + step];
  }
  if (member == 0 && row < rows) y[row] = sums[t];
}

// The same, but the elements before the first multiple of the team's size are taken first: all the
// other requests begin on a boundary.
// warplens: grid=8192 rows=65536
__kernel __attribute__((reqd_work_group_size(BLOCK, 1, 1))) void spmv_coalesced(
    __global const int *restrict row_start, __global const int *restrict column,
    __global const float *restrict value, __global const float *restrict x,
    __global float *restrict y, const int rows) {
  __local float sums[BLOCK];
  const int t = get_local_id(0);
  const int member = t % TEAM;
  const int row = get_global_id(0) / TEAM;

  float sum = 0.0f;
  if (row < rows) {
    const int begin = row_start[row];
    const int end = row_start[row + 1];
    const int aligned = (begin + TEAM - 1) / TEAM * TEAM;
    const int unaligned = begin + member;
    if (unaligned < aligned && unaligned < end) sum = value[unaligned] * x[column[unaligned]];
    for (int k = aligned + member; k < end; k += TEAM) sum += value[k] * x[column[k]];
  }
  sums[t] = sum;
  for (int step = TEAM / 2; step > 0; step /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (member < step) sums[t] += sums[t + step];
  }
  if (member == 0 && row < rows) y[row] = sums[t];
}
