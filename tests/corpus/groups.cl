// kernels: reduce_local blocked_multiply bitonic_step count_words
// Work-group memory given as an argument and declared inside, attributes, atomics.
#define TILE 16

__kernel void reduce_local(__global const float *in, __global float *out, __local float *scratch,
                           const uint n) {
  const uint lid = get_local_id(0);
  const uint gid = get_global_id(0);
  scratch[lid] = gid < n ? in[gid] : 0.0f;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint half_size = get_local_size(0) / 2; half_size > 0; half_size >>= 1) {
    if (lid < half_size) scratch[lid] += scratch[lid + half_size];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (lid == 0) out[get_group_id(0)] = scratch[0];
}

__kernel __attribute__((reqd_work_group_size(TILE, TILE, 1)))
void blocked_multiply(__global const float *restrict a, __global const float *restrict b,
                      __global float *restrict c, const int n) {
  __local float ta[TILE][TILE];
  __local float tb[TILE][TILE];
  const int x = get_local_id(0), y = get_local_id(1);
  const int column = get_global_id(0), row = get_global_id(1);
  float sum = 0.0f;
  for (int t = 0; t < n / TILE; ++t) {
    ta[y][x] = a[row * n + t * TILE + x];
    tb[y][x] = b[(t * TILE + y) * n + column];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < TILE; ++k) sum = mad(ta[y][k], tb[k][x], sum);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  c[row * n + column] = sum;
}

inline void order(__global uint *low, __global uint *high, const bool up) {
  const uint a = *low;
  const uint b = *high;
  if ((a > b) == up) {
    *low = b;
    *high = a;
  }
}

kernel void bitonic_step(global uint *keys, const uint pass, const uint stage) {
  const uint i = get_global_id(0);
  const uint partner = i ^ (1u << pass);
  if (partner > i) order(&keys[i], &keys[partner], ((i >> stage) & 1u) == 0);
}

__kernel void count_words(__global const char *text, const uint length, volatile __global int *words) {
  const uint i = get_global_id(0);
  if (i >= length) return;
  const bool starts = text[i] != ' ' && (i == 0 || text[i - 1] == ' ');
  if (starts) atomic_inc(words);
  if (starts) atomic_add(&words[1 + text[i] % 26], 1);
}
