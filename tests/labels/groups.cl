// The same in OpenCL: local memory, work-items, images of bytes.

// warplens: block=(32,8) grid=(32,128) n=1024
__kernel void turn(__global const float *in, __global float *out, int n) {
  int x = get_global_id(0);
  int y = get_global_id(1);
  float v = in[y * n + x];
  out[x * n + y] = v;
}

// warplens: block=(32,8) grid=(32,32) n=1024
__kernel void turn_tile(__global const float *restrict in, __global float *restrict out, int n) {
  __local float tile[32][32];
  int u = get_local_id(0), v = get_local_id(1);
  int x = get_group_id(0) * 32 + u, y = get_group_id(1) * 32 + v;
  for (int j = 0; j < 32; j += 8) {
    tile[v + j][u] = in[(y + j) * n + x];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  x = get_group_id(1) * 32 + u;
  y = get_group_id(0) * 32 + v;
  for (int j = 0; j < 32; j += 8) {
    float w = tile[u][v + j];
    out[(y + j) * n + x] = w;
  }
}

// warplens: block=256 grid=128 n=32768
__kernel void saxpy(__global const float *restrict x, __global float *restrict y, float a, int n) {
  int i = get_global_id(0);
  if (i < n) {
    float v = x[i];
    y[i] += a * v;
  }
}

// warplens: block=256 grid=128 n=32768
__kernel void interleaved_sum(__global const float *restrict x, __global float *restrict y, int n) {
  int i = get_global_id(0);
  float a = x[4 * i];
  float b = x[4 * i + 1];
  float c = x[4 * i + 2];
  float d = x[4 * i + 3];
  y[i] = a + b + c + d;
}

// warplens: block=256 grid=128 n=32768
__kernel void whole_vectors(__global const float4 *restrict x, __global float *restrict y, int n) {
  int i = get_global_id(0);
  float4 v = x[i];
  y[i] = v.x + v.y + v.z + v.w;
}

// warplens: block=64 grid=256
__kernel void local_columns(__global const float *restrict in, __global float *restrict out) {
  __local float s[64 * 16];
  __local float p[64 * 17];
  int t = get_local_id(0);
  for (int k = 0; k < 16; k++) {
    s[t * 16 + k] = in[k * 16384 + get_global_id(0)];
    p[t * 17 + k] = in[k * 16384 + get_global_id(0)];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  float sum = 0.0f;
  for (int k = 0; k < 16; k++) {
    sum += s[((t + 1) & 63) * 16 + k];
    sum += p[((t + 1) & 63) * 17 + k];
  }
  out[get_global_id(0)] = sum;
}

// warplens: block=128 grid=256
__kernel void odd_items(__global const float *restrict in, __global float *restrict out) {
  int i = get_global_id(0);
  float v = in[i];
  if (i & 1) {
    for (int k = 0; k < 16; k++) v = v * 1.5f + sqrt(v);
  } else {
    for (int k = 0; k < 16; k++) v = v * 0.5f - sqrt(v);
  }
  out[i] = v;
}

// warplens: block=128 grid=256
__kernel void nothing_crosses(__global const float *restrict in, __global float *restrict out) {
  __local float s[128];
  int t = get_local_id(0);
  float v = in[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  s[t] = v;
  barrier(CLK_LOCAL_MEM_FENCE);
  out[get_global_id(0)] = s[127 - t];
}

// warplens: block=256 grid=64
__kernel void count_all(__global const int *restrict in, __global int *restrict total) {
  int i = get_global_id(0);
  atomic_add(total, in[i]);
}
