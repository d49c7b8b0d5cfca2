// The product of hgemm.cu on AMD's matrix units: `v_mfma_f32_32x32x8f16`, blocks of 128 by 128, steps of 32, four waves of 64 by
// 64 each. The right factor is turned about on its way into the LDS, so that a lane reads four halves side by side.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define HIP_CHECK(call)                                                                    \
    do {                                                                                   \
        const hipError_t status_ = (call);                                                 \
        if (status_ != hipSuccess) {                                                       \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, hipGetErrorString(status_)); \
            std::exit(2);                                                                  \
        }                                                                                  \
    } while (0)

constexpr int BM = 128, BN = 128, BK = 32, PAD = 4;

using half4 = __attribute__((ext_vector_type(4))) _Float16;
using half8 = __attribute__((ext_vector_type(8))) _Float16;
using float16 = __attribute__((ext_vector_type(16))) float;

// Rows of 72 bytes: lanes of a wave that read 8 bytes each meet all banks alike.
// warplens: block=(256) grid=(32,32) n=4096
__global__ void __launch_bounds__(256) hgemm_mfma(const _Float16* __restrict__ a, const _Float16* __restrict__ b, _Float16* __restrict__ c, int n) {
    __shared__ _Float16 left[BM][BK + PAD], right[BN][BK + PAD];
    const int t = threadIdx.x, lane = t % 64, wave = t / 64;
    const int row = wave / 2 * 64, column = wave % 2 * 64, of = lane % 32, k4 = lane / 32 * 4;
    float16 sum[2][2] = {};
    for (int k = 0; k < n; k += BK) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int y = t / 4 + i * 64, x = t % 4 * 8, v = t / 16 + i * 16, u = t % 16 * 8;
            const half8 of_a = *(const half8*)&a[(blockIdx.y * BM + y) * n + k + x];
            const half8 of_b = *(const half8*)&b[(k + v) * n + blockIdx.x * BN + u];
            *(half4*)&left[y][x] = of_a.lo;
            *(half4*)&left[y][x + 4] = of_a.hi;
#pragma unroll
            for (int j = 0; j < 8; j++) right[u + j][v] = of_b[j];
        }
        __syncthreads();
#pragma unroll
        for (int s = 0; s < BK; s += 8) {
            half4 x[2], y[2];
#pragma unroll
            for (int i = 0; i < 2; i++) {
                x[i] = *(const half4*)&left[row + i * 32 + of][s + k4];
                y[i] = *(const half4*)&right[column + i * 32 + of][s + k4];
            }
#pragma unroll
            for (int i = 0; i < 2; i++)
#pragma unroll
                for (int j = 0; j < 2; j++) sum[i][j] = __builtin_amdgcn_mfma_f32_32x32x8f16(x[i], y[j], sum[i][j], 0, 0, 0);
        }
        __syncthreads();
    }
    // Lane l has column l % 32, and of rows four side by side out of eight.
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 2; j++)
#pragma unroll
            for (int e = 0; e < 16; e++) {
                const int y = blockIdx.y * BM + row + i * 32 + e / 4 * 8 + k4 + e % 4;
                c[y * n + blockIdx.x * BN + column + j * 32 + of] = (_Float16)sum[i][j][e];
            }
}

int main(int argc, char** argv) {
    const int n = argc > 1 ? std::atoi(argv[1]) : 1024;
    if (n < BM || n > 8192 || n % BM != 0) {
        std::fprintf(stderr, "usage: hgemm [N], a multiple of %d up to 8192\n", BM);
        return 2;
    }
    const size_t count = static_cast<size_t>(n) * n;
    std::vector<_Float16> host_a(count), host_b(count), host_c(count);
    for (size_t i = 0; i < count; ++i) {
        host_a[i] = static_cast<_Float16>(static_cast<float>(i % 1009) / 1009 - 0.5f);
        host_b[i] = static_cast<_Float16>(static_cast<float>(i % 997) / 997 - 0.5f);
    }
    _Float16 *a, *b, *c;
    HIP_CHECK(hipMalloc(&a, count * sizeof(_Float16)));
    HIP_CHECK(hipMalloc(&b, count * sizeof(_Float16)));
    HIP_CHECK(hipMalloc(&c, count * sizeof(_Float16)));
    HIP_CHECK(hipMemcpy(a, host_a.data(), count * sizeof(_Float16), hipMemcpyHostToDevice));
    HIP_CHECK(hipMemcpy(b, host_b.data(), count * sizeof(_Float16), hipMemcpyHostToDevice));
    hgemm_mfma<<<dim3(n / BN, n / BM), 256>>>(a, b, c, n);
    HIP_CHECK(hipGetLastError());
    HIP_CHECK(hipMemcpy(host_c.data(), c, count * sizeof(_Float16), hipMemcpyDeviceToHost));
    // Rows and columns with odd distances meet every tile.
    const int distance = n / 64 - 1 + n / 64 % 2;
    double worst = 0.0;
    for (int row = 0; row < n; row += distance)
        for (int column = 0; column < n; column += distance) {
            double sum = 0.0;
            for (int k = 0; k < n; ++k)
                sum += static_cast<double>(host_a[static_cast<size_t>(row) * n + k]) * static_cast<double>(host_b[static_cast<size_t>(k) * n + column]);
            const double got = static_cast<double>(host_c[static_cast<size_t>(row) * n + column]);
            worst = std::fmax(worst, std::fabs(got - sum) / std::fmax(1.0, std::fabs(sum)));
        }
    std::printf("hgemm_mfma %d 256 %s\n", n, worst <= 5e-3 ? "ok" : "WRONG");
    HIP_CHECK(hipFree(a));
    HIP_CHECK(hipFree(b));
    HIP_CHECK(hipFree(c));
    return worst <= 5e-3 ? 0 : 1;
}
