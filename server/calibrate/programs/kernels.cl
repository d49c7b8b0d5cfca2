// The micro-benchmarks of calibration as OpenCL kernels. There is no clock on the device: the host times whole kernels.

#define UNROLLED 64

// A chain of loads, each of which gives the index of the next; `state` says where to go on.
kernel void chase(global const uint* ring, global uint* state, uint loads) {
  uint at = *state;
  for (uint i = 0; i < loads; ++i) at = ring[at];
  *state = at;
}

kernel void chase_local(global const uint* ring, global uint* state, uint loads) {
  local uint tile[1024];
  for (uint i = 0; i < 1024; ++i) tile[i] = ring[i];
  uint at = *state & 1023;
  for (uint i = 0; i < loads; ++i) at = tile[at];
  *state = at;
}

kernel void chase_constant(constant uint* ring, global uint* state, uint loads) {
  uint at = *state & 1023;
  for (uint i = 0; i < loads; ++i) at = ring[at];
  *state = at;
}

#define ISSUE(name, type, step)                                                                       \
  kernel void issue_##name##_1(global float* sink, int seed, uint rounds) {                           \
    const type a = (type)(seed + 3);                                                                  \
    const type b = (type)(seed + 5);                                                                  \
    type x = (type)(seed + (int)get_local_id(0));                                                     \
    for (uint r = 0; r < rounds; ++r) {                                                               \
      _Pragma("unroll") for (int k = 0; k < UNROLLED; ++k) { x = step(x); }                           \
    }                                                                                                 \
    if (x == (type)-12345) sink[0] = 1.0f;                                                            \
  }                                                                                                   \
  kernel void issue_##name##_4(global float* sink, int seed, uint rounds) {                           \
    const type a = (type)(seed + 3);                                                                  \
    const type b = (type)(seed + 5);                                                                  \
    type x = (type)(seed + (int)get_local_id(0));                                                     \
    type y = x + (type)1, z = x + (type)2, w = x + (type)3;                                           \
    for (uint r = 0; r < rounds; ++r) {                                                               \
      _Pragma("unroll") for (int k = 0; k < UNROLLED; ++k) {                                          \
        x = step(x);                                                                                  \
        y = step(y);                                                                                  \
        z = step(z);                                                                                  \
        w = step(w);                                                                                  \
      }                                                                                               \
    }                                                                                                 \
    if (x + y + z + w == (type)-12345) sink[0] = 1.0f;                                                \
  }

// The steps are those of instructions.cu.
#define FP32(x) fma(x, a, b)
#define FP32_MULTIPLY(x) ((x) * a)
#define INT(x) ((a - (x)) ^ b)
#define INT_MUL(x) ((x) * (x))
#define SFU(x) native_rsqrt(x)
#define CONVERSION(x) as_float(convert_int(x))
#define TO_FLOAT(x) convert_float_rte(as_int(x))

ISSUE(fp32, float, FP32)
ISSUE(fp32_multiply, float, FP32_MULTIPLY)
ISSUE(int, int, INT)
ISSUE(int_mul, int, INT_MUL)
ISSUE(sfu, float, SFU)
ISSUE(conversion, float, CONVERSION)
ISSUE(to_float, float, TO_FLOAT)
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
ISSUE(fp64, double, FP32)
#endif

kernel void barriers(global float* sink, uint rounds) {
  local float tile[1];
  if (get_local_id(0) == 0) tile[0] = 0.0f;
  for (uint r = 0; r < rounds; ++r) barrier(CLK_LOCAL_MEM_FENCE);
  if (tile[0] == -1.0f) sink[0] = 1.0f;
}

// Neighbouring lanes `degree` items apart, one group. Volatile: each load is made, as often as it is written.
#define WORDS 4096
#define CONFLICTS(name, type, sum)                                                                    \
  kernel void name(global float* sink, uint degree, uint rounds, uint lanes) {                        \
    local type tile[WORDS * sizeof(float) / sizeof(type)];                                            \
    for (uint i = get_local_id(0); i < WORDS * sizeof(float) / sizeof(type); i += get_local_size(0)) { \
      tile[i] = (type)(0.0f);                                                                         \
    }                                                                                                 \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                     \
    const volatile local type* mine = tile + get_local_id(0) % lanes * degree;                        \
    float total[4] = {0.0f, 0.0f, 0.0f, 0.0f};                                                        \
    for (uint r = 0; r < rounds; ++r) {                                                               \
      _Pragma("unroll") for (int k = 0; k < UNROLLED; ++k) {                                          \
        const type wide = mine[k];                                                                    \
        total[k % 4] += sum(wide, k);                                                                 \
      }                                                                                               \
    }                                                                                                 \
    if (total[0] + total[1] + total[2] + total[3] == -1.0f) sink[0] = total[0];                       \
  }
// One of them is enough to wait for all, and the additions stay few.
#define ALONE(wide, k) (wide)
#define ONE_OF_FOUR(wide, k) ((k) % 4 == 0 ? (wide).x : (k) % 4 == 1 ? (wide).y : (k) % 4 == 2 ? (wide).z : (wide).w)
CONFLICTS(conflicts_4, float, ALONE)
CONFLICTS(conflicts_16, float4, ONE_OF_FOUR)

// Each warp accesses a number of distinct addresses; `apart` words lie between those of two warps.
kernel void atomics(global uint* counters, uint addresses, uint apart, uint rounds, uint lanes) {
  const uint warp = (uint)get_global_id(0) / lanes;
  global uint* mine = counters + warp * apart + (uint)get_local_id(0) % lanes % addresses;
  for (uint i = 0; i < rounds; ++i) atomic_add(mine, (uint)get_local_id(0) + i);
}

kernel void nothing(global float* sink) {
  if (get_global_size(0) == 0) sink[0] = 1.0f;
}

#define SUM1(wide) (wide)
#define SUM2(wide) ((wide).x + (wide).y)
#define SUM4(wide) ((wide).x + (wide).y + (wide).z + (wide).w)

// Each group reads the `count` items of its own chunk again and again. `moved` is 0, which the compiler cannot know.
#define READ_OWN(name, type, sum)                                                                     \
  kernel void name(global const type* data, global float* sink, uint count, uint passes, uint moved) { \
    const uint step = (uint)get_local_size(0);                                                        \
    global const type* chunk = data + (uint)get_group_id(0) * count + (uint)get_local_id(0);          \
    float total = 0.0f;                                                                               \
    for (uint pass = 0; pass < passes; ++pass) {                                                      \
      global const type* here = chunk + pass * moved;                                                 \
      for (uint i = 0; i < count; i += 4 * step) {                                                    \
        const type a = here[i], b = here[i + step], c = here[i + 2 * step], d = here[i + 3 * step];   \
        total += sum(a) + sum(b) + sum(c) + sum(d);                                                   \
      }                                                                                               \
    }                                                                                                 \
    if (total == -1.0f) sink[0] = total;                                                              \
  }
READ_OWN(read_own_4, float, SUM1)
READ_OWN(read_own_8, float2, SUM2)
READ_OWN(read_own_16, float4, SUM4)

// `count` items are read `passes` times, each group from its own place on.
#define READ(name, type, sum)                                                                         \
  kernel void name(global const type* data, global float* sink, uint count, uint passes, uint shared) { \
    float total = 0.0f;                                                                               \
    const uint step = shared ? (uint)get_local_size(0) : (uint)get_global_size(0);                    \
    const uint begin = shared ? (uint)get_local_id(0) : (uint)get_global_id(0);                       \
    const uint start = shared ? (count / (uint)get_num_groups(0)) * (uint)get_group_id(0) : 0;        \
    for (uint pass = 0; pass < passes; ++pass) {                                                      \
      uint i = begin;                                                                                 \
      for (; i + 3 * step < count; i += 4 * step) {                                                   \
        type x[4];                                                                                    \
        for (uint k = 0; k < 4; ++k) {                                                                \
          const uint at = start + i + k * step;                                                       \
          x[k] = data[at < count ? at : at - count];                                                  \
        }                                                                                             \
        for (uint k = 0; k < 4; ++k) total += sum(x[k]);                                              \
      }                                                                                               \
      for (; i < count; i += step) {                                                                  \
        const uint at = start + i;                                                                    \
        total += sum(data[at < count ? at : at - count]);                                             \
      }                                                                                               \
    }                                                                                                 \
    if (total == -1.0f) sink[0] = total;                                                              \
  }
READ(read_4, float, SUM1)
READ(read_8, float2, SUM2)
READ(read_16, float4, SUM4)

#define COPY(name, type)                                                                              \
  kernel void name(global const type* from, global type* to, uint count) {                            \
    for (uint i = get_global_id(0); i < count; i += get_global_size(0)) to[i] = from[i];              \
  }
COPY(copy_4, float)
COPY(copy_8, float2)
COPY(copy_16, float4)

kernel void gather(global const float* data, global float* sink, uint count, uint stride, uint offset) {
  float total = 0.0f;
  for (uint i = get_global_id(0); i < count; i += get_global_size(0)) total += data[i * stride + offset];
  if (total == -1.0f) sink[0] = total;
}

// The micro-benchmarks of MWP-CWP (Hong and Kim 2009, section 4.2): iterations with a number of loads from DRAM, each of which waits
// for the one before, and so much computation; lanes lie `apart` words from one another. What is loaded is 0.
#define DEPARTURE(name, count)                                                                        \
  kernel void name(global const int* data, global float* sink, uint mask, uint apart, uint rounds, float seed) { \
    float x = seed;                                                                                   \
    uint at = (uint)get_global_id(0) * apart;                                                         \
    const uint step = (uint)get_global_size(0) * apart;                                               \
    for (uint r = 0; r < rounds; ++r) {                                                               \
      _Pragma("unroll") for (int k = 0; k < count; ++k) at += step + (uint)data[at & mask];           \
      _Pragma("unroll") for (int k = 0; k < COMPUTATIONS; ++k) x = fma(x, seed, seed);                \
    }                                                                                                 \
    if (at == ~0u) x += 1.0f;                                                                         \
    if (x == -1.0f) sink[0] = x;                                                                      \
  }
#define COMPUTATIONS 8
DEPARTURE(departure_1, 1)
DEPARTURE(departure_2, 2)
DEPARTURE(departure_4, 4)
