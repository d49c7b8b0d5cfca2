// kernels: hgemm_stages attention_forward gemm_warp_roles
// Matrix products and attention in inline PTX: fragments, swizzled tiles, asynchronous copies, roles of warp groups.
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cstdint>

namespace ptx {
__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void ldmatrix_x4(uint32_t (&r)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address));
}

__device__ __forceinline__ void ldmatrix_x4_trans(uint32_t (&r)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address));
}

__device__ __forceinline__ void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void copy_16(uint32_t to, const void* from) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;\n" ::"r"(to), "l"(from));
}

__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;\n" ::); }

template <int Left>
__device__ __forceinline__ void wait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(Left));
}

__device__ __forceinline__ float exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
}  // namespace ptx

// A tile of rows of 64 halves, its pieces of 16 bytes turned with the row.
__device__ __forceinline__ uint32_t turned(uint32_t base, int row, int piece) {
  return base + (row * 64 + ((piece ^ (row & 7)) * 8)) * 2;
}

template <int Stages>
__global__ void __launch_bounds__(128) hgemm_stages(const half* __restrict__ a, const half* __restrict__ b, float* c,
                                                    int m, int n, int k) {
  extern __shared__ __align__(1024) half tiles[];
  const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32;
  const int row_of_warp = warp / 2 * 32, column_of_warp = warp % 2 * 32;
  uint32_t left[Stages], right[Stages];
#pragma unroll
  for (int stage = 0; stage < Stages; ++stage) {
    left[stage] = ptx::shared_address(tiles + stage * 8192);
    right[stage] = left[stage] + 8192;
  }
  float sums[2][4][4] = {};
  auto load = [&](int stage, int step) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = (tid + i * 128) / 8, piece = (tid + i * 128) % 8;
      ptx::copy_16(turned(left[stage], row, piece), a + (blockIdx.y * 64 + row) * k + step * 64 + piece * 8);
      ptx::copy_16(turned(right[stage], row, piece), b + (step * 64 + row) * n + blockIdx.x * 64 + piece * 8);
    }
  };
#pragma unroll
  for (int stage = 0; stage < Stages - 1; ++stage) {
    load(stage, stage);
    ptx::commit();
  }
  int read = 0, write = Stages - 1;
  for (int step = 0; step < k / 64; ++step) {
    ptx::wait<Stages - 2>();
    __syncthreads();
    if (step + Stages - 1 < k / 64) load(write, step + Stages - 1);
    ptx::commit();
#pragma unroll
    for (int depth = 0; depth < 4; ++depth) {
      uint32_t fa[2][4], fb[2][4];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        ptx::ldmatrix_x4(fa[i], turned(left[read], row_of_warp + i * 16 + lane % 16, depth * 2 + lane / 16));
#pragma unroll
      for (int j = 0; j < 2; ++j)
        ptx::ldmatrix_x4_trans(fb[j], turned(right[read], depth * 16 + lane % 16, (column_of_warp + j * 16) / 8 + lane / 16));
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) ptx::mma(sums[i][j], fa[i], fb[j / 2][j % 2 * 2], fb[j / 2][j % 2 * 2 + 1]);
    }
    read = (read + 1) % Stages;
    write = (write + 1) % Stages;
  }
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int row = blockIdx.y * 64 + row_of_warp + i * 16 + lane / 4;
      const int column = blockIdx.x * 64 + column_of_warp + j * 8 + lane % 4 * 2;
      *reinterpret_cast<float2*>(&c[row * n + column]) = make_float2(sums[i][j][0], sums[i][j][1]);
      *reinterpret_cast<float2*>(&c[(row + 8) * n + column]) = make_float2(sums[i][j][2], sums[i][j][3]);
    }
}

void products(const half* a, const half* b, float* c) {
  hgemm_stages<3><<<dim3(64, 64), 128, 3 * 16384>>>(a, b, c, 4096, 4096, 4096);
}

__global__ void __launch_bounds__(128) attention_forward(const half* __restrict__ q, const half* __restrict__ k,
                                                         const half* __restrict__ v, half* out, int length,
                                                         float scale) {
  __shared__ __align__(128) half queries[64 * 64], keys[64 * 64], values[64 * 64];
  const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32;
  const size_t head = static_cast<size_t>(blockIdx.y) * length * 64;
  const uint32_t at_q = ptx::shared_address(queries), at_k = ptx::shared_address(keys);
  const uint32_t at_v = ptx::shared_address(values);
  auto load = [&](uint32_t to, const half* from, int first) {
    for (int i = tid; i < 512; i += 128) ptx::copy_16(turned(to, i / 8, i % 8), from + head + (first + i / 8) * 64 + i % 8 * 8);
    ptx::commit();
  };
  load(at_q, q, blockIdx.x * 64);
  float o[8][4] = {}, most[2] = {-1e30f, -1e30f}, total[2] = {};
  for (int block = 0; block < length / 64; ++block) {
    load(at_k, k, block * 64);
    load(at_v, v, block * 64);
    ptx::wait<1>();
    __syncthreads();
    float s[8][4] = {};
#pragma unroll
    for (int depth = 0; depth < 4; ++depth) {
      uint32_t fq[4];
      ptx::ldmatrix_x4(fq, turned(at_q, warp * 16 + lane % 16, depth * 2 + lane / 16));
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        uint32_t fk[4];
        ptx::ldmatrix_x4(fk, turned(at_k, j * 16 + lane % 8 + lane / 16 * 8, depth * 2 + lane / 8 % 2));
        ptx::mma(s[2 * j], fq, fk[0], fk[1]);
        ptx::mma(s[2 * j + 1], fq, fk[2], fk[3]);
      }
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float now = most[r];
      for (int j = 0; j < 8; ++j) now = fmaxf(now, fmaxf(s[j][2 * r], s[j][2 * r + 1]) * scale);
      now = fmaxf(now, __shfl_xor_sync(0xffffffff, now, 1));
      now = fmaxf(now, __shfl_xor_sync(0xffffffff, now, 2));
      const float smaller = ptx::exp2(most[r] - now);
      most[r] = now;
      total[r] *= smaller;
      for (int j = 0; j < 8; ++j) {
        for (int half_of = 0; half_of < 2; ++half_of) {
          s[j][2 * r + half_of] = ptx::exp2(s[j][2 * r + half_of] * scale - now);
          total[r] += s[j][2 * r + half_of];
          o[j][2 * r + half_of] *= smaller;
        }
      }
    }
    ptx::wait<0>();
    __syncthreads();
#pragma unroll
    for (int depth = 0; depth < 4; ++depth) {
      uint32_t fp[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const half2 pair = __floats2half2_rn(s[2 * depth + i / 2][i % 2 * 2], s[2 * depth + i / 2][i % 2 * 2 + 1]);
        fp[i] = *reinterpret_cast<const uint32_t*>(&pair);
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        uint32_t fv[4];
        ptx::ldmatrix_x4_trans(fv, turned(at_v, depth * 16 + lane % 16, j * 2 + lane / 16));
        ptx::mma(o[2 * j], fp, fv[0], fv[1]);
        ptx::mma(o[2 * j + 1], fp, fv[2], fv[3]);
      }
    }
    __syncthreads();
  }
  for (int j = 0; j < 8; ++j)
    for (int r = 0; r < 2; ++r) {
      const int row = blockIdx.x * 64 + warp * 16 + lane / 4 + r * 8;
      *reinterpret_cast<half2*>(&out[head + row * 64 + j * 8 + lane % 4 * 2]) =
          __floats2half2_rn(o[j][2 * r] / total[r], o[j][2 * r + 1] / total[r]);
    }
}

void attention(const half* q, const half* k, const half* v, half* out) {
  attention_forward<<<dim3(64, 32), 128>>>(q, k, v, out, 4096, 0.18f);
}

namespace hopper {
__device__ __forceinline__ void init(uint32_t barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count));
}

__device__ __forceinline__ void expect(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void wait(uint32_t barrier, uint32_t phase) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra finished;\n"
      "bra again;\n"
      "finished:\n"
      "}\n" ::"r"(barrier),
      "r"(phase)
      : "memory");
}

__device__ __forceinline__ void load(uint32_t to, const CUtensorMap* map, uint32_t barrier, int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(to),
      "l"(map), "r"(barrier), "r"(x), "r"(y)
      : "memory");
}

__device__ __forceinline__ uint64_t descriptor(uint32_t address) {
  uint64_t bits = (address & 0x3FFFF) >> 4;
  bits |= uint64_t{1} << 16;
  bits |= uint64_t{64} << 32;
  return bits | uint64_t{1} << 62;
}

__device__ __forceinline__ void product(float (&d)[16], uint64_t a, uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, %16, %17, 1, 1, 1, 0, 0;\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
        "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
      : "l"(a), "l"(b));
}
}  // namespace hopper

__global__ void __launch_bounds__(256) gemm_warp_roles(const __grid_constant__ CUtensorMap map_a,
                                                       const __grid_constant__ CUtensorMap map_b, __nv_bfloat16* c,
                                                       int n, int k) {
  constexpr int kStages = 4;
  extern __shared__ __align__(1024) __nv_bfloat16 pool[];
  __shared__ __align__(8) uint64_t full[kStages], empty[kStages];
  const int group = threadIdx.x / 128, tid = threadIdx.x % 128;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      hopper::init(ptx::shared_address(&full[stage]), 1);
      hopper::init(ptx::shared_address(&empty[stage]), 1);
    }
  }
  __syncthreads();
  int stage = 0, phase = 0;
  if (group == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;\n");
    if (tid == 0) {
      for (int step = 0; step < k / 64; ++step) {
        hopper::wait(ptx::shared_address(&empty[stage]), phase ^ 1);
        hopper::expect(ptx::shared_address(&full[stage]), (64 + 32) * 64 * 2);
        const uint32_t barrier = ptx::shared_address(&full[stage]);
        hopper::load(ptx::shared_address(pool + stage * 6144), &map_a, barrier, step * 64, blockIdx.y * 64);
        hopper::load(ptx::shared_address(pool + stage * 6144 + 4096), &map_b, barrier, step * 64, blockIdx.x * 32);
        if (++stage == kStages) {
          stage = 0;
          phase ^= 1;
        }
      }
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;\n");
    float d[16] = {};
    for (int step = 0; step < k / 64; ++step) {
      hopper::wait(ptx::shared_address(&full[stage]), phase);
      asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
#pragma unroll
      for (int depth = 0; depth < 4; ++depth)
        hopper::product(d, hopper::descriptor(ptx::shared_address(pool + stage * 6144 + depth * 16)),
                        hopper::descriptor(ptx::shared_address(pool + stage * 6144 + 4096 + depth * 16)));
      asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
      asm volatile("wgmma.wait_group.sync.aligned 0;\n" ::: "memory");
      if (tid == 0) hopper::arrive(ptx::shared_address(&empty[stage]));
      if (++stage == kStages) {
        stage = 0;
        phase ^= 1;
      }
    }
    const int row = blockIdx.y * 64 + tid / 32 * 16 + tid % 32 / 4;
    for (int j = 0; j < 4; ++j) {
      const int column = blockIdx.x * 32 + j * 8 + tid % 4 * 2;
      *reinterpret_cast<__nv_bfloat162*>(&c[row * n + column]) = __floats2bfloat162_rn(d[4 * j], d[4 * j + 1]);
      *reinterpret_cast<__nv_bfloat162*>(&c[(row + 8) * n + column]) = __floats2bfloat162_rn(d[4 * j + 2], d[4 * j + 3]);
    }
  }
}

void roles(CUtensorMap a, CUtensorMap b, __nv_bfloat16* c) {
  gemm_warp_roles<<<dim3(128, 64), 256, 4 * 12288>>>(a, b, c, 4096, 4096);
}
