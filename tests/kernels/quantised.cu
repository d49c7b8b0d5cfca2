// Products with weights of eight and four bits that are made halves on the way: a row a warp for one token, tiles for many.
// Halves of fp8 (e4m3) are the same bits a place further left, 256 times too small; those of four bits come by a mask that
// leaves a number between 1024 and 1040.
#include <cuda_fp16.h>

#include <cstdint>

#include "harness.cuh"

constexpr int BM = 64, BN = 128, BK = 64, STAGES = 3, PAD = 8, GROUP = 128;

__device__ __forceinline__ uint32_t address_of(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

// Four fp8 as two pairs of halves: bytes 0 and 2 in the one, 1 and 3 in the other.
__device__ __forceinline__ void halves_of_fp8(uint32_t four, half2& even, half2& odd) {
    const uint32_t low = (four & 0x00800080) << 8 | (four & 0x007f007f) << 7, high = (four & 0x80008000) | (four & 0x7f007f00) >> 1;
    const half2 scale = __float2half2_rn(256.0f);
    even = __hmul2(*reinterpret_cast<const half2*>(&low), scale);
    odd = __hmul2(*reinterpret_cast<const half2*>(&high), scale);
}

// Weights 0 and 4 of eight: one instruction of three inputs puts them behind the exponent of 1024.
__device__ __forceinline__ half2 halves_of_int4(uint32_t eight) {
    uint32_t both;
    asm("lop3.b32 %0, %1, 0x000f000f, 0x64006400, 0xea;" : "=r"(both) : "r"(eight));
    return __hsub2(*reinterpret_cast<const half2*>(&both), __float2half2_rn(1032.0f));
}

// A row a warp: sixteen weights of eight bits a load.
// warplens: block=(128) grid=(1024) k=4096
// registers 30 LDG 3 STG 1
__global__ void gemv_fp8(half* __restrict__ y, const uint4* __restrict__ w, const half* __restrict__ x, float scale, int k) {
    const int lane = threadIdx.x % 32, row = blockIdx.x * 4 + threadIdx.x / 32, words = k / 16;
    float sum = 0.0f;
#pragma unroll 1
    for (int i = lane; i < words; i += 32) {
        const uint4 of = w[static_cast<size_t>(row) * words + i];
        const uint4 left = reinterpret_cast<const uint4*>(x)[2 * i], right = reinterpret_cast<const uint4*>(x)[2 * i + 1];
        const uint32_t weights[4] = {of.x, of.y, of.z, of.w}, halves[8] = {left.x, left.y, left.z, left.w, right.x, right.y, right.z, right.w};
        half2 part = __float2half2_rn(0.0f);
#pragma unroll
        for (int j = 0; j < 4; j++) {
            half2 even, odd;
            halves_of_fp8(weights[j], even, odd);
            const half2 a = *reinterpret_cast<const half2*>(&halves[2 * j]), b = *reinterpret_cast<const half2*>(&halves[2 * j + 1]);
            part = __hfma2(even, __lows2half2(a, b), part);
            part = __hfma2(odd, __highs2half2(a, b), part);
        }
        sum += __low2float(part) + __high2float(part);
    }
#pragma unroll
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (lane == 0) y[row] = __float2half(sum * scale);
}

struct Tiles {
    half left[STAGES][BM * (BK + PAD)];
    uint32_t right[STAGES][BN * (BK / 8 + 4)];
};

__device__ __forceinline__ void copy(void* to, const void* from) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(address_of(to)), "l"(__cvta_generic_to_global(from)));
}

// Y = X Wᵀ with weights of four bits, a scale for 128 of a row: the tile of weights stays packed until it is in registers. Weight
// i of a word lies at bits 4 · (i / 2 + i % 2 · 4), so that a pair of neighbours is 16 bits apart.
// warplens: block=(128) grid=(32,2) k=4096 n=4096 dynamic_shared=46080
__launch_bounds__(128)
__global__ void gemm_int4(half* __restrict__ y, const half* __restrict__ x, const uint32_t* __restrict__ w, const half* __restrict__ scales, int n, int k) {
    extern __shared__ __align__(16) unsigned char dynamic[];
    Tiles& tiles = *reinterpret_cast<Tiles*>(dynamic);
    const int t = threadIdx.x, lane = t % 32, warp = t / 32, row = blockIdx.y * BM, column = blockIdx.x * BN, steps = k / BK;
    auto fetch = [&](int step) {
        const int stage = step % STAGES;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int y = t / 8 + i * 16, x8 = t % 8 * 8;
            copy(&tiles.left[stage][y * (BK + PAD) + x8], &x[static_cast<size_t>(row + y) * k + step * BK + x8]);
        }
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int y = t / 2 + i * 64, x4 = t % 2 * 4;
            copy(&tiles.right[stage][y * 12 + x4], &w[(static_cast<size_t>(column + y) * k + step * BK) / 8 + x4]);
        }
        asm volatile("cp.async.commit_group;");
    };
    for (int i = 0; i < STAGES - 1; i++) fetch(i);
    // 64 rows by 32 columns a warp.
    float sum[4][4][4] = {};
    for (int step = 0; step < steps; step++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
        __syncthreads();
        if (step + STAGES - 1 < steps) fetch(step + STAGES - 1);
        else asm volatile("cp.async.commit_group;");
        const half* left = &tiles.left[step % STAGES][0];
        const uint32_t* right = &tiles.right[step % STAGES][0];
        half2 of_group[4];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int of = column + warp * 32 + j * 8 + lane / 4;
            of_group[j] = __half2half2(scales[static_cast<size_t>(of) * (k / GROUP) + step * BK / GROUP]);
        }
#pragma unroll
        for (int i = 0; i < BK; i += 16) {
            uint32_t a[4][4];
#pragma unroll
            for (int j = 0; j < 4; j++)
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(a[j][0]), "=r"(a[j][1]), "=r"(a[j][2]), "=r"(a[j][3])
                             : "r"(address_of(&left[(j * 16 + lane % 16) * (BK + PAD) + i + lane / 16 * 8])));
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const uint32_t* at = &right[(warp * 32 + j * 8 + lane / 4) * 12 + i / 8];
                const int shift = lane % 4 * 4;
                const half2 low = __hmul2(halves_of_int4(at[0] >> shift), of_group[j]), high = __hmul2(halves_of_int4(at[1] >> shift), of_group[j]);
                const uint32_t b0 = *reinterpret_cast<const uint32_t*>(&low), b1 = *reinterpret_cast<const uint32_t*>(&high);
#pragma unroll
                for (int m = 0; m < 4; m++)
                    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                                 : "+f"(sum[m][j][0]), "+f"(sum[m][j][1]), "+f"(sum[m][j][2]), "+f"(sum[m][j][3])
                                 : "r"(a[m][0]), "r"(a[m][1]), "r"(a[m][2]), "r"(a[m][3]), "r"(b0), "r"(b1));
            }
        }
    }
#pragma unroll
    for (int m = 0; m < 4; m++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            half* to = &y[static_cast<size_t>(row + m * 16 + lane / 4) * n + column + warp * 32 + j * 8 + lane % 4 * 2];
            *reinterpret_cast<half2*>(to) = __floats2half2_rn(sum[m][j][0], sum[m][j][1]);
            *reinterpret_cast<half2*>(to + 8 * n) = __floats2half2_rn(sum[m][j][2], sum[m][j][3]);
        }
}

// The number that eight bits are: four of exponent, three of fraction.
static float of_fp8(uint8_t bits) {
    const int exponent = bits >> 3 & 15, fraction = bits & 7;
    const float size = exponent ? std::ldexp(8.0f + fraction, exponent - 10) : std::ldexp(static_cast<float>(fraction), -9);
    return bits & 128 ? -size : size;
}

int main(int argc, char** argv) {
    harness::Program program(argc, argv, 1024, 128, /*fixed_block=*/true);
    const int n = program.n, k = n, tokens = 128;
    if (n > 8192 || n % BN != 0) {
        std::fprintf(stderr, "--n must be a multiple of %d and at most 8192\n", BN);
        return 2;
    }
    const size_t count = static_cast<size_t>(n) * k;
    std::vector<half> host_x(static_cast<size_t>(tokens) * k), host_scales(static_cast<size_t>(n) * (k / GROUP));
    for (size_t i = 0; i < host_x.size(); ++i) host_x[i] = __float2half(static_cast<float>(i % 1009) / 1009 - 0.5f);
    for (size_t i = 0; i < host_scales.size(); ++i) host_scales[i] = __float2half(static_cast<float>(i % 61 + 1) / 512);
    std::vector<uint8_t> bytes(count);
    std::vector<uint32_t> packed(count / 8);
    const auto nibble = [](size_t at) { return static_cast<uint32_t>(at * 2654435761u >> 13 & 15); };
    for (size_t i = 0; i < count; ++i) {
        // Without the two patterns that are no number.
        const auto bits = static_cast<uint8_t>(i * 2654435761u >> 11);
        bytes[i] = (bits & 127) == 127 ? 0 : bits;
        packed[i / 8] |= nibble(i) << 4 * (i % 8 / 2 + i % 2 * 4);
    }
    std::vector<float> of_token(n), of_tokens;
    std::vector<size_t> sample;
    for (int row = 0; row < n; ++row) {
        double sum = 0.0;
        for (int i = 0; i < k; ++i) sum += static_cast<double>(of_fp8(bytes[static_cast<size_t>(row) * k + i])) * __half2float(host_x[i]);
        of_token[row] = static_cast<float>(sum / 4096);
    }
    for (int token = 0; token < tokens; token += 7)
        for (int row = 0; row < n; row += n / 64 - 1 + n / 64 % 2) {
            double sum = 0.0;
            for (int i = 0; i < k; ++i) {
                const size_t at = static_cast<size_t>(row) * k + i;
                sum += (static_cast<int>(nibble(at)) - 8) * static_cast<double>(__half2float(host_scales[at / GROUP])) *
                       __half2float(host_x[static_cast<size_t>(token) * k + i]);
            }
            sample.push_back(static_cast<size_t>(token) * n + row);
            of_tokens.push_back(static_cast<float>(sum));
        }
    harness::DeviceBuffer<half> x(host_x), scales(host_scales), y(static_cast<size_t>(tokens) * n);
    harness::DeviceBuffer<uint8_t> by_bytes(bytes);
    harness::DeviceBuffer<uint32_t> by_words(packed);
    auto prepare = [&] { y.clear(); };
    const harness::Launch one = {n / 4, 128, 0, {{"k", k}}};
    program.run(
        "gemv_fp8", one, prepare,
        [&] { gemv_fp8<<<n / 4, 128>>>(y.get(), reinterpret_cast<const uint4*>(by_bytes.get()), x.get(), 1.0f / 4096, k); },
        [&] {
            const std::vector<half> all = y.download();
            std::vector<float> got;
            for (int row = 0; row < n; ++row) got.push_back(__half2float(all[row]));
            return harness::max_error(got, of_token);
        },
        2e-2);
    constexpr int SHARED = sizeof(Tiles);
    const dim3 grid(n / BN, tokens / BM);
    const harness::Launch many = {grid, 128, SHARED, {{"n", n}, {"k", k}}};
    program.run(
        "gemm_int4", many, prepare,
        [&] { gemm_int4<<<grid, 128, SHARED>>>(y.get(), x.get(), by_words.get(), scales.get(), n, k); },
        [&] {
            const std::vector<half> all = y.download();
            std::vector<float> got;
            for (size_t at : sample) got.push_back(__half2float(all[at]));
            return harness::max_error(got, of_tokens);
        },
        2e-2);
    return program.exit_status();
}
