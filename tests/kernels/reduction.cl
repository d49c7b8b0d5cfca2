// The OpenCL twin of reduction.cu, one partial sum a work-group, without reduce_shuffle: OpenCL C 1.2
// has no exchange between the work-items of a wavefront.

#define BLOCK 256

// Every second, fourth, eighth work-item works: all wavefronts stay busy and all diverge.
// warplens: grid=4096 n=1048576
__kernel __attribute__((reqd_work_group_size(BLOCK, 1, 1))) void reduce_interleaved(
    __global const float *restrict in, __global float *restrict sums, const int n) {
  __local float partial[BLOCK];
  const int t = get_local_id(0);
  const int i = get_global_id(0);

  partial[t] = i < n ? in[i] : 0.0f;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = 1; step < BLOCK; step *= 2) {
    if (t % (2 * step) == 0) partial[t] += partial[t + step];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (t == 0) sums[get_group_id(0)] = partial[0];
}

// The first half works on the second half: whole wavefronts drop out.
// warplens: grid=4096 n=1048576
__kernel __attribute__((reqd_work_group_size(BLOCK, 1, 1))) void reduce_sequential(
    __global const float *restrict in, __global float *restrict sums, const int n) {
  __local float partial[BLOCK];
  const int t = get_local_id(0);
  const int i = get_global_id(0);

  partial[t] = i < n ? in[i] : 0.0f;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = BLOCK / 2; step > 0; step /= 2) {
    if (t < step) partial[t] += partial[t + step];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (t == 0) sums[get_group_id(0)] = partial[0];
}
