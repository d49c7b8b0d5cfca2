// The OpenCL twin of scan.cu. The host gives the last argument its size: 2 floats for each work-item
// of a group, and for scan_div_b and scan_init_b one more for every 32 floats (2^LOG_BANKS where that is given).

// Work-item t owns element 2t + 1 throughout.
// warplens: block=256 grid=2048 dynamic_shared=2048
__kernel void scan_init(__global const float *restrict in, __global float *restrict out,
                        __local float *sums) {
  const int t = get_local_id(0);
  const int threads = get_local_size(0);
  const size_t first = get_group_id(0) * 2 * threads;

  sums[t] = in[first + t];
  sums[t + threads] = in[first + t + threads];

  const int mine = 2 * t + 1;
  for (int stride = 1; stride <= threads; stride *= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if ((t + 1) % stride == 0) sums[mine] += sums[mine - stride];
  }
  for (int stride = threads / 2; stride > 0; stride /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if ((t + 1) % stride == 0 && mine + stride < 2 * threads) sums[mine + stride] += sums[mine];
  }
  barrier(CLK_LOCAL_MEM_FENCE);

  out[first + t] = sums[t];
  out[first + t + threads] = sums[t + threads];
}

// The first work-items take over what is left: whole wavefronts retire together, banks crowd.
// warplens: block=256 grid=2048 dynamic_shared=2048
__kernel void scan_div(__global const float *restrict in, __global float *restrict out,
                       __local float *sums) {
  const int t = get_local_id(0);
  const int threads = get_local_size(0);
  const size_t first = get_group_id(0) * 2 * threads;

  sums[t] = in[first + t];
  sums[t + threads] = in[first + t + threads];

  for (int stride = 1; stride <= threads; stride *= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    const int last = (t + 1) * 2 * stride - 1;
    if (last < 2 * threads) sums[last] += sums[last - stride];
  }
  for (int stride = threads / 2; stride > 0; stride /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    const int last = (t + 1) * 2 * stride - 1;
    if (last + stride < 2 * threads) sums[last + stride] += sums[last];
  }
  barrier(CLK_LOCAL_MEM_FENCE);

  out[first + t] = sums[t];
  out[first + t + threads] = sums[t + threads];
}

// Leaves one word free after every 32, or as many as LOG_BANKS says.
#ifdef LOG_BANKS
#define PADDED(i) ((i) + ((i) >> LOG_BANKS))
#else
#define PADDED(i) ((i) + (i) / 32)
#endif

// warplens: block=256 grid=2048 dynamic_shared=2112
__kernel void scan_div_b(__global const float *restrict in, __global float *restrict out,
                         __local float *sums) {
  const int t = get_local_id(0);
  const int threads = get_local_size(0);
  const size_t first = get_group_id(0) * 2 * threads;

  sums[PADDED(t)] = in[first + t];
  sums[PADDED(t + threads)] = in[first + t + threads];

  for (int stride = 1; stride <= threads; stride *= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    const int last = (t + 1) * 2 * stride - 1;
    if (last < 2 * threads) sums[PADDED(last)] += sums[PADDED(last - stride)];
  }
  for (int stride = threads / 2; stride > 0; stride /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    const int last = (t + 1) * 2 * stride - 1;
    if (last + stride < 2 * threads) sums[PADDED(last + stride)] += sums[PADDED(last)];
  }
  barrier(CLK_LOCAL_MEM_FENCE);

  out[first + t] = sums[PADDED(t)];
  out[first + t + threads] = sums[PADDED(t + threads)];
}

// warplens: block=256 grid=2048 dynamic_shared=2112
__kernel void scan_init_b(__global const float *restrict in, __global float *restrict out,
                          __local float *sums) {
  const int t = get_local_id(0);
  const int threads = get_local_size(0);
  const size_t first = get_group_id(0) * 2 * threads;

  sums[PADDED(t)] = in[first + t];
  sums[PADDED(t + threads)] = in[first + t + threads];

  const int mine = 2 * t + 1;
  for (int stride = 1; stride <= threads; stride *= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if ((t + 1) % stride == 0) sums[PADDED(mine)] += sums[PADDED(mine - stride)];
  }
  for (int stride = threads / 2; stride > 0; stride /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if ((t + 1) % stride == 0 && mine + stride < 2 * threads) {
      sums[PADDED(mine + stride)] += sums[PADDED(mine)];
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);

  out[first + t] = sums[PADDED(t)];
  out[first + t + threads] = sums[PADDED(t + threads)];
}
