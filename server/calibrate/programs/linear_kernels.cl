// The OpenCL twins of linear_kernels.h: kernels whose times tell what a unit of each property of the linear model costs,
// after the measurement kernels of Stevens and Kloeckner. Each work-item has one element.
#define BLOCK 256
#define ROUNDS 64
#define MEASURED kernel __attribute__((reqd_work_group_size(BLOCK, 1, 1)))

#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

MEASURED void lm_empty(int n) {}

MEASURED void lm_store(global float* out, int n) {
  const int i = get_global_id(0);
  out[i] = 1.0f;
}

MEASURED void lm_store_wide(global float2* out, int n) {
  const int i = get_global_id(0);
  out[i] = (float2)(1.0f, 1.0f);
}

MEASURED void lm_store_widest(global float4* out, int n) {
  const int i = get_global_id(0);
  out[i] = (float4)(1.0f, 1.0f, 1.0f, 1.0f);
}

MEASURED void lm_copy(global const float* in, global float* out, int n) {
  const int i = get_global_id(0);
  out[i] = in[i];
}

MEASURED void lm_copy_wide(global const float2* in, global float2* out, int n) {
  const int i = get_global_id(0);
  out[i] = in[i];
}

MEASURED void lm_copy_widest(global const float4* in, global float4* out, int n) {
  const int i = get_global_id(0);
  out[i] = in[i];
}

MEASURED void lm_add_four(global const float* in, global float* out, int n) {
  const int i = get_global_id(0);
  out[i] = in[i] + in[i + n] + in[i + 2 * n] + in[i + 3 * n];
}

// Loads and next to nothing else.
MEASURED void lm_load(global const float* in, global float* out, int n) {
  const int i = get_global_id(0);
  float sum = 0.0f;
  for (int k = 0; k < 8; ++k) sum += in[i + k * n];
  out[i] = sum;
}

MEASURED void lm_stride_two(global const float* in, global float* out, int n) {
  const int i = get_global_id(0);
  out[i] = in[2 * i];
}

MEASURED void lm_stride_two_filled(global const float* in, global float* out, int n) {
  const int i = get_global_id(0);
  out[i] = in[2 * i] + in[2 * i + 1];
}

MEASURED void lm_stride_wide(global const float* in, global float* out, int n) {
  const int i = get_global_id(0);
  out[i] = in[8 * i];
}

MEASURED void lm_f32_add(global const float* in, global float* out, int n) {
  const int i = get_global_id(0);
  const float y = in[i];
  float x = y;
  for (int k = 0; k < ROUNDS; ++k) x = x + y;
  out[i] = x;
}

MEASURED void lm_f32_mul(global const float* in, global float* out, int n) {
  const int i = get_global_id(0);
  const float y = in[i];
  float x = y;
  for (int k = 0; k < ROUNDS; ++k) x = x * y;
  out[i] = x;
}

MEASURED void lm_f32_div(global const float* in, global float* out, int n) {
  const int i = get_global_id(0);
  const float y = in[i];
  float x = y;
  for (int k = 0; k < ROUNDS; ++k) x = x / y;
  out[i] = x;
}

MEASURED void lm_f32_special(global const float* in, global float* out, int n) {
  const int i = get_global_id(0);
  float x = in[i];
  for (int k = 0; k < ROUNDS; ++k) x = exp(x);
  out[i] = x;
}

// Only some devices have double precision.
#ifdef cl_khr_fp64
MEASURED void lm_f64_add(global const double* in, global double* out, int n) {
  const int i = get_global_id(0);
  const double y = in[i];
  double x = y;
  for (int k = 0; k < ROUNDS; ++k) x = x + y;
  out[i] = x;
}

MEASURED void lm_f64_mul(global const double* in, global double* out, int n) {
  const int i = get_global_id(0);
  const double y = in[i];
  double x = y;
  for (int k = 0; k < ROUNDS; ++k) x = x * y;
  out[i] = x;
}
#endif

MEASURED void lm_int_add(global const int* in, global int* out, int n) {
  const int i = get_global_id(0);
  const int y = in[i];
  int x = y;
  for (int k = 0; k < ROUNDS; ++k) x = (x + y) ^ (y >> 1);
  out[i] = x;
}

// A product alone, 64 times over, would be made a power.
MEASURED void lm_int_mul(global const int* in, global int* out, int n) {
  const int i = get_global_id(0);
  const int y = in[i];
  int x = y;
  for (int k = 0; k < ROUNDS; ++k) x = (x * y) ^ i;
  out[i] = x;
}

MEASURED void lm_shared_load(global const float* in, global float* out, int n) {
  local float tile[2 * BLOCK];
  const int i = get_global_id(0);
  const int mine = get_local_id(0);
  tile[mine] = in[i];
  tile[mine + BLOCK] = 0.0f;
  barrier(CLK_LOCAL_MEM_FENCE);
  float sum = 0.0f;
  for (int k = 0; k < ROUNDS; ++k) sum += tile[mine + k];
  out[i] = sum;
}

MEASURED void lm_shared_conflict(global const float* in, global float* out, int n) {
  local float tile[8 * BLOCK + ROUNDS];
  const int i = get_global_id(0);
  const int mine = get_local_id(0);
  tile[8 * mine] = in[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  float sum = 0.0f;
  for (int k = 0; k < ROUNDS; ++k) sum += tile[8 * mine + k];
  out[i] = sum;
}

MEASURED void lm_shared_store(global const float* in, global float* out, int n) {
  local float tile[16][BLOCK];
  const int i = get_global_id(0);
  const int mine = get_local_id(0);
  const float x = in[i];
  for (int k = 0; k < 16; ++k) tile[k][mine] = x;
  barrier(CLK_LOCAL_MEM_FENCE);
  float sum = 0.0f;
  for (int k = 0; k < 16; ++k) sum += tile[k][BLOCK - 1 - mine];
  out[i] = sum;
}

MEASURED void lm_barrier(global float* out, int n) {
  const int i = get_global_id(0);
  for (int k = 0; k < ROUNDS; ++k) barrier(CLK_LOCAL_MEM_FENCE);
  out[i] = 1.0f;
}

MEASURED void lm_atomic(global int* out, int n) {
  const int i = get_global_id(0);
  atomic_add(&out[i], 1);
}

MEASURED void lm_atomic_conflict(global int* out, int n) {
  const int i = get_global_id(0);
  atomic_add(&out[i >> 3], 1);
}
