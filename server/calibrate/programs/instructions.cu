// Latency and issue rate of each class of instructions: chains of one operation in one block, with few warps and many,
// one chain a thread and several.
#include "bench.cuh"

constexpr int UNROLLED = 64;
constexpr int ROUNDS = 16;

// Each class: the type of a chain, its instructions per step, and the step.
struct Fp32 {
  using Value = float;
  static constexpr int COUNT = 1;
  static __device__ Value step(Value x, Value a, Value b) { return fmaf(x, a, b); }
};
struct Fp32Multiply {
  using Value = float;
  static constexpr int COUNT = 1;
  static __device__ Value step(Value x, Value a, Value) { return x * a; }
};
struct Fp64 {
  using Value = double;
  static constexpr int COUNT = 1;
  static __device__ Value step(Value x, Value a, Value b) { return fma(x, a, b); }
};
// A subtraction and a logical operation: of one alone two would be made one, and AMD has an instruction that adds and makes
// the exclusive or.
struct Int {
  using Value = unsigned;
  static constexpr int COUNT = 2;
  static __device__ Value step(Value x, Value a, Value b) { return (a - x) ^ b; }
};
// Squares: products of one factor would be made a power, and not every GPU has an instruction that also adds.
struct IntMul {
  using Value = unsigned;
  static constexpr int COUNT = 1;
  static __device__ Value step(Value x, Value, Value) { return x * x; }
};
// No reciprocals: two of them would be made none.
struct Sfu {
  using Value = float;
  static constexpr int COUNT = 1;
  static __device__ Value step(Value x, Value, Value) {
#if AMD
    return __builtin_amdgcn_rsqf(x);
#else
    asm volatile("rsqrt.approx.ftz.f32 %0, %0;" : "+f"(x));
    return x;
#endif
  }
};
// The result's bits are the next one's operand. Towards zero: rounding otherwise takes AMD a second instruction.
struct FromFloat {
  using Value = float;
  static constexpr int COUNT = 1;
  static __device__ Value step(Value x, Value, Value) { return __int_as_float(static_cast<int>(x)); }
};
struct ToFloat {
  using Value = float;
  static constexpr int COUNT = 1;
  static __device__ Value step(Value x, Value, Value) { return __int2float_rn(__float_as_int(x)); }
};
struct Shuffle {
  using Value = unsigned;
  static constexpr int COUNT = 1;
  static __device__ Value step(Value x, Value, Value) {
#if AMD
    // What __shfl ends in, without its arithmetic: four bytes per lane.
    return static_cast<Value>(__builtin_amdgcn_ds_bpermute(static_cast<int>(x), static_cast<int>(x)));
#else
    return __shfl_sync(0xffffffffu, x, static_cast<int>(x));
#endif
  }
};
// Two results an instruction; the bits of a pair.
struct Fp16 {
  using Value = unsigned;
  static constexpr int COUNT = 1;
  static __device__ Value step(Value x, Value a, Value b) {
#if AMD
    typedef _Float16 Pair __attribute__((ext_vector_type(2)));
    Pair p, q, r;
    __builtin_memcpy(&p, &x, sizeof x);
    __builtin_memcpy(&q, &a, sizeof a);
    __builtin_memcpy(&r, &b, sizeof b);
    p = p * q + r;
    __builtin_memcpy(&x, &p, sizeof x);
    return x;
#elif __CUDA_ARCH__ >= 530
    asm volatile("fma.rn.f16x2 %0, %0, %1, %2;" : "+r"(x) : "r"(a), "r"(b));
    return x;
#else
    return x;
#endif
  }
};
#if !AMD
// A product of 16 x 8 x 16 in half precision, accumulated in single precision.
struct Tensor {
  struct Value {
    float of[4];
    __device__ explicit Value(int i = 0) : of{float(i), float(i), float(i), float(i)} {}
    __device__ bool operator==(const Value& other) const { return of[0] == other.of[0]; }
  };
  static constexpr int COUNT = 1;
  static __device__ Value step(Value x, const Value& a, const Value&) {
#if __CUDA_ARCH__ >= 800
    const unsigned bits = __float_as_uint(a.of[0]);
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%4,%4}, "
        "{%0,%1,%2,%3};"
        : "+f"(x.of[0]), "+f"(x.of[1]), "+f"(x.of[2]), "+f"(x.of[3])
        : "r"(bits));
#endif
    return x;
  }
};
#endif

template <class Class, int CHAINS>
__global__ void issue(int seed, bench::Span* spans, typename Class::Value* sink) {
  using Value = typename Class::Value;
  // Unknown to the compiler.
  const Value a = Value(seed + 3);
  const Value b = Value(seed + 5);
  Value chains[CHAINS];
  for (int c = 0; c < CHAINS; ++c) chains[c] = Value(seed + c + static_cast<int>(threadIdx.x));
  __syncthreads();
  const long long from = bench::now();
#pragma unroll 1
  for (int round = 0; round < ROUNDS; ++round) {
#pragma unroll
    for (int step = 0; step < UNROLLED; ++step) {
#pragma unroll
      for (int c = 0; c < CHAINS; ++c) chains[c] = Class::step(chains[c], a, b);
    }
  }
  const long long to = bench::now();
  bool hit = false;
  for (int c = 0; c < CHAINS; ++c) hit = hit || chains[c] == Value(seed - 7);
  if (hit) sink[threadIdx.x] = chains[0];
  spans[threadIdx.x] = {from, to};
}

template <class Class, int CHAINS>
static void measure(const bench::Run& run, const char* name, int warps) {
  const int threads = warps * run.warp;
  bench::Buffer<bench::Span> spans(threads);
  bench::Buffer<typename Class::Value> sink(threads);
  auto once = [&] {
    issue<Class, CHAINS><<<1, threads>>>(1, spans.data, sink.data);
    CHECK(GPU(GetLastError)());
    return bench::together(run, spans.host()) / (double(ROUNDS) * UNROLLED * CHAINS * Class::COUNT);
  };
  bench::print("instruction",
               bench::format("\"class\":\"%s\",\"warps\":%d,\"chains\":%d", name, warps, CHAINS),
               run.unit, bench::repeat(run, once));
}

template <class Class>
static void sweep(const bench::Run& run, const char* name) {
  for (int warps = 1; warps * run.warp <= 1024; warps *= 2) {
    measure<Class, 1>(run, name, warps);
    measure<Class, 4>(run, name, warps);
  }
}

int main(int argc, char** argv) {
  const bench::Run run = bench::begin(argc, argv);
  sweep<Fp32>(run, "fp32");
  sweep<Fp32Multiply>(run, "fp32_multiply");
  sweep<Fp64>(run, "fp64");
  sweep<Int>(run, "int");
  sweep<IntMul>(run, "int_mul");
  sweep<Sfu>(run, "sfu");
  sweep<FromFloat>(run, "conversion");
  sweep<ToFloat>(run, "to_float");
  sweep<Shuffle>(run, "shuffle");
#if AMD
  sweep<Fp16>(run, "fp16");
#else
  if (run.major * 10 + run.minor >= 53) sweep<Fp16>(run, "fp16");
  if (run.major >= 8) sweep<Tensor>(run, "tensor");
#endif
  return 0;
}
