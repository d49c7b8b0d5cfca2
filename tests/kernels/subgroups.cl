// What a sub-group exchanges without local memory: a sum (as `reduce_shuffle` of reduction.cu), a product of matrices whose right
// factor goes from lane to lane, a scan.
// language: CL2.0
#pragma OPENCL EXTENSION cl_khr_subgroups : enable

// warplens: block=256 grid=1024 n=16777216
__attribute__((reqd_work_group_size(256, 1, 1)))
__kernel void sum_by_subgroups(__global const float *restrict in, __global float *restrict sums, int n) {
  __local float parts[64];
  const int t = get_local_id(0);
  float sum = 0.0f;
  for (int i = get_global_id(0); i < n; i += get_global_size(0)) sum += in[i];
  sum = sub_group_reduce_add(sum);
  if (get_sub_group_local_id() == 0) parts[get_sub_group_id()] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (get_sub_group_id() == 0) {
    float all = 0.0f;
    for (uint i = get_sub_group_local_id(); i < get_num_sub_groups(); i += get_sub_group_size()) all += parts[i];
    all = sub_group_reduce_add(all);
    if (t == 0) sums[get_group_id(0)] = all;
  }
}

// C = A B: each lane has a column of eight rows; of A a lane holds one number a row and hands it to the others.
// warplens: block=(64,4) grid=(32,64) n=2048
__attribute__((reqd_work_group_size(64, 4, 1)))
__kernel void matmul_by_subgroups(__global const float *restrict a, __global const float *restrict b, __global float *restrict c, int n) {
  const int column = get_global_id(0), row = get_global_id(1) * 8, lane = get_sub_group_local_id(), lanes = get_sub_group_size();
  float sum[8] = {0};
  for (int k = 0; k < n; k += lanes) {
    float own[8];
    for (int r = 0; r < 8; r++) own[r] = a[(row + r) * n + k + lane];
    for (int i = 0; i < lanes; i++) {
      const float right = b[(k + i) * n + column];
      for (int r = 0; r < 8; r++) sum[r] += sub_group_broadcast(own[r], i) * right;
    }
  }
  for (int r = 0; r < 8; r++) c[(row + r) * n + column] = sum[r];
}

// Each sub-group adds up its own part; half precision is read eight at a time.
// warplens: block=256 grid=1024
__attribute__((reqd_work_group_size(256, 1, 1)))
__kernel void scan_by_subgroups(__global float *restrict out, __global const half *restrict in) {
  const size_t i = get_global_id(0);
  const float8 own = vload_half8(i, in);
  float sum = own.s0 + own.s1 + own.s2 + own.s3 + own.s4 + own.s5 + own.s6 + own.s7;
  out[i] = sub_group_scan_inclusive_add(sum);
}
