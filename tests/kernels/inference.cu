// What runs around the products of a transformer: norms, softmax, rotations, products of a vector with packed weights, a step of
// attention over pages, rows that are gathered for experts.
#include <cuda_fp16.h>

#include <cstdint>

#include "harness.cuh"

__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
    for (int d = 16; d > 0; d /= 2) x += __shfl_xor_sync(0xffffffffu, x, d);
    return x;
}

__device__ __forceinline__ float warp_max(float x) {
#pragma unroll
    for (int d = 16; d > 0; d /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, d));
    return x;
}

// A row a block: the residual is added, the sum of squares goes over the block, the row is read once.
// warplens: block=(256) grid=(4096)
// registers 28 LDG 3 STG 1 LDS 2 STS 1 BAR 1
__global__ void add_rms_norm(half* __restrict__ x, const half* __restrict__ residual, const half* __restrict__ scale, float epsilon) {
    __shared__ float part[8];
    const int t = threadIdx.x, at = blockIdx.x * 2048 + t * 8;
    int4 own = *(const int4*)&x[at], more = *(const int4*)&residual[at], weights = *(const int4*)&scale[t * 8];
    half2 *a = (half2*)&own, *b = (half2*)&more, *w = (half2*)&weights;
    float2 v[4];
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float2 p = __half22float2(a[i]), q = __half22float2(b[i]);
        v[i] = make_float2(p.x + q.x, p.y + q.y);
        sum += v[i].x * v[i].x + v[i].y * v[i].y;
    }
    sum = warp_sum(sum);
    if (t % 32 == 0) part[t / 32] = sum;
    __syncthreads();
    sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; i++) sum += part[i];
    const float by = rsqrtf(sum / 2048.0f + epsilon);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float2 s = __half22float2(w[i]);
        a[i] = __floats2half2_rn(v[i].x * by * s.x, v[i].y * by * s.y);
    }
    *(int4*)&x[at] = own;
}

// A row of 1024 a warp, in registers.
// warplens: block=(128) grid=(4096)
// registers 46 LDG 8 STG 8
__global__ void softmax_rows(float* __restrict__ out, const float* __restrict__ in) {
    const int lane = threadIdx.x % 32, row = blockIdx.x * 4 + threadIdx.x / 32;
    const float4* from = (const float4*)(in + row * 1024);
    float4 v[8];
    float most = -INFINITY;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        v[i] = from[i * 32 + lane];
        most = fmaxf(most, fmaxf(fmaxf(v[i].x, v[i].y), fmaxf(v[i].z, v[i].w)));
    }
    most = warp_max(most);
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        v[i].x = __expf(v[i].x - most), v[i].y = __expf(v[i].y - most);
        v[i].z = __expf(v[i].z - most), v[i].w = __expf(v[i].w - most);
        sum += v[i].x + v[i].y + v[i].z + v[i].w;
    }
    sum = 1.0f / warp_sum(sum);
    float4* to = (float4*)(out + row * 1024);
#pragma unroll
    for (int i = 0; i < 8; i++) to[i * 32 + lane] = make_float4(v[i].x * sum, v[i].y * sum, v[i].z * sum, v[i].w * sum);
}

// Pairs of a head of 128 are turned by angles from a table.
// warplens: block=(64) grid=(4096,32)
// registers 14 LDG 5 STG 2
__global__ void rotate(half* __restrict__ q, const float* __restrict__ cosines, const float* __restrict__ sines, const int* __restrict__ positions) {
    const int token = blockIdx.x, head = blockIdx.y, i = threadIdx.x;
    const int position = positions[token];
    half* own = q + (token * 32 + head) * 128;
    const float c = cosines[position * 64 + i], s = sines[position * 64 + i];
    const float x = __half2float(own[i]), y = __half2float(own[i + 64]);
    own[i] = __float2half(x * c - y * s);
    own[i + 64] = __float2half(y * c + x * s);
}

// A row a warp: eight weights of four bits a word, one scale for 128 of them.
// warplens: block=(128) grid=(1024) k=4096
// registers 31 LDG 9 STG 1
__global__ void gemv_int4(half* __restrict__ y, const uint32_t* __restrict__ w, const half* __restrict__ scales, const half* __restrict__ x, int k) {
    const int lane = threadIdx.x % 32, row = blockIdx.x * 4 + threadIdx.x / 32;
    float sum = 0.0f;
    for (int at = lane * 8; at < k; at += 256) {
        const uint32_t packed = w[(row * k + at) / 8];
        const float scale = __half2float(scales[(row * k + at) / 128]);
        const int4 words = *(const int4*)&x[at];
        const half2* v = (const half2*)&words;
        float part = 0.0f;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float2 p = __half22float2(v[i]);
            part += (float)((int)(packed >> (8 * i) & 15) - 8) * p.x + (float)((int)(packed >> (8 * i + 4) & 15) - 8) * p.y;
        }
        sum += part * scale;
    }
    sum = warp_sum(sum);
    if (lane == 0) y[row] = __float2half(sum);
}

// One query a block against keys and values in pages of 16 tokens; a warp takes every fourth token.
// warplens: block=(128) grid=(32,64) tokens=2048 pages_of=128
// registers 31 LDG 4 STG 1 LDS 6 STS 3 BAR 1
__global__ void paged_decode(half* __restrict__ out, const half* __restrict__ q, const half* __restrict__ keys, const half* __restrict__ values,
                             const int* __restrict__ pages, int tokens, int pages_of) {
    __shared__ float sums[4][128], most_of[4], sum_of[4];
    const int head = blockIdx.x, sequence = blockIdx.y, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int2 own = *(const int2*)&q[(sequence * 32 + head) * 128 + lane * 4];
    const float2 q0 = __half22float2(*(const half2*)&own.x), q1 = __half22float2(*(const half2*)&own.y);
    float most = -INFINITY, sum = 0.0f;
    float4 acc = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 1
    for (int token = warp; token < tokens; token += 4) {
        const int page = pages[sequence * pages_of + token / 16];
        const int at = ((page * 16 + token % 16) * 32 + head) * 128 + lane * 4;
        const int2 key = *(const int2*)&keys[at];
        const float2 k0 = __half22float2(*(const half2*)&key.x), k1 = __half22float2(*(const half2*)&key.y);
        const float score = warp_sum(q0.x * k0.x + q0.y * k0.y + q1.x * k1.x + q1.y * k1.y) * 0.088388f;
        const float next = fmaxf(most, score), old = __expf(most - next), p = __expf(score - next);
        const int2 value = *(const int2*)&values[at];
        const float2 v0 = __half22float2(*(const half2*)&value.x), v1 = __half22float2(*(const half2*)&value.y);
        acc.x = acc.x * old + p * v0.x, acc.y = acc.y * old + p * v0.y;
        acc.z = acc.z * old + p * v1.x, acc.w = acc.w * old + p * v1.y;
        sum = sum * old + p;
        most = next;
    }
    *(float4*)&sums[warp][lane * 4] = acc;
    if (lane == 0) most_of[warp] = most, sum_of[warp] = sum;
    __syncthreads();
    const float all = fmaxf(fmaxf(most_of[0], most_of[1]), fmaxf(most_of[2], most_of[3]));
    float total = 0.0f, value = 0.0f;
#pragma unroll
    for (int w = 0; w < 4; w++) {
        const float by = __expf(most_of[w] - all);
        total += sum_of[w] * by;
        value += sums[w][threadIdx.x] * by;
    }
    out[(sequence * 32 + head) * 128 + threadIdx.x] = __float2half(value / total);
}

// Rows of tokens in the order of their experts.
// warplens: block=(256) grid=(8192)
// registers 16 LDG 2 STG 1
__global__ void gather_rows(half* __restrict__ to, const half* __restrict__ from, const int* __restrict__ token_of) {
    const int token = token_of[blockIdx.x];
    ((int4*)to)[blockIdx.x * 256 + threadIdx.x] = ((const int4*)from)[token * 256 + threadIdx.x];
}

// Numbers around 0 with an odd period.
static std::vector<half> halves(size_t count, size_t period) {
    std::vector<half> values(count);
    for (size_t i = 0; i < count; ++i) values[i] = __float2half(static_cast<float>(i % period) / period - 0.5f);
    return values;
}

static std::vector<float> floats(const std::vector<half>& from) {
    std::vector<float> values(from.size());
    for (size_t i = 0; i < from.size(); ++i) values[i] = __half2float(from[i]);
    return values;
}

// `count` different numbers below `count`, out of order.
static std::vector<int> shuffled(int count) {
    std::vector<int> values(count);
    uint32_t state = 12345;
    for (int i = 0; i < count; ++i) values[i] = i;
    for (int i = count - 1; i > 0; --i) {
        state = state * 1664525 + 1013904223;
        std::swap(values[i], values[state % (i + 1u)]);
    }
    return values;
}

static void norms(harness::Program& program, int n) {
    const size_t width = 2048, count = n * width;
    const std::vector<half> x = halves(count, 1009), residual = halves(count, 997), scale = halves(width, 211);
    std::vector<float> want(count);
    for (int row = 0; row < n; ++row) {
        double squares = 0.0;
        auto value = [&](size_t i) { return static_cast<double>(__half2float(x[row * width + i])) + __half2float(residual[row * width + i]); };
        for (size_t i = 0; i < width; ++i) squares += value(i) * value(i);
        const double by = 1.0 / std::sqrt(squares / width + 1e-5);
        for (size_t i = 0; i < width; ++i) want[row * width + i] = static_cast<float>(value(i) * by * __half2float(scale[i]));
    }
    harness::DeviceBuffer<half> own(x), more(residual), weights(scale);
    program.run(
        "add_rms_norm", {dim3(n), dim3(256)}, [&] { own.upload(x); },
        [&] { add_rms_norm<<<n, 256>>>(own.get(), more.get(), weights.get(), 1e-5f); },
        [&] { return harness::max_error(floats(own.download()), want); }, 2e-3);
}

static void softmaxes(harness::Program& program, int n) {
    const size_t width = 1024, count = n * width;
    const std::vector<float> in = harness::ramp(count);
    std::vector<float> want(count);
    for (int row = 0; row < n; ++row) {
        double sum = 0.0;
        for (size_t i = 0; i < width; ++i) sum += std::exp(static_cast<double>(in[row * width + i]));
        for (size_t i = 0; i < width; ++i) want[row * width + i] = static_cast<float>(std::exp(static_cast<double>(in[row * width + i])) / sum);
    }
    harness::DeviceBuffer<float> from(in), to(count);
    program.run(
        "softmax_rows", {dim3(n / 4), dim3(128)}, [&] { to.clear(); }, [&] { softmax_rows<<<n / 4, 128>>>(to.get(), from.get()); },
        [&] { return harness::max_error(to.download(), want); });
}

static void rotations(harness::Program& program, int n) {
    const size_t count = static_cast<size_t>(n) * 32 * 128;
    const std::vector<half> q = halves(count, 1009);
    const std::vector<int> positions = shuffled(n);
    std::vector<float> cosines(n * 64), sines(n * 64), want(count);
    for (int position = 0; position < n; ++position)
        for (int i = 0; i < 64; ++i) {
            const double angle = position * std::pow(10000.0, -i / 64.0);
            cosines[position * 64 + i] = static_cast<float>(std::cos(angle)), sines[position * 64 + i] = static_cast<float>(std::sin(angle));
        }
    for (size_t at = 0; at < count; ++at) {
        const size_t i = at % 128, low = at - i + i % 64, angle = positions[at / 4096] * size_t{64} + i % 64;
        const float x = __half2float(q[low]), y = __half2float(q[low + 64]);
        want[at] = i < 64 ? x * cosines[angle] - y * sines[angle] : y * cosines[angle] + x * sines[angle];
    }
    harness::DeviceBuffer<half> own(q);
    harness::DeviceBuffer<float> c(cosines), s(sines);
    harness::DeviceBuffer<int> p(positions);
    const dim3 grid(n, 32);
    program.run(
        "rotate", {grid, dim3(64)}, [&] { own.upload(q); }, [&] { rotate<<<grid, 64>>>(own.get(), c.get(), s.get(), p.get()); },
        [&] { return harness::max_error(floats(own.download()), want); }, 2e-3);
}

static void products(harness::Program& program, int n) {
    const int k = 4096;
    const std::vector<half> x = halves(k, 1009), scales = halves(static_cast<size_t>(n) * k / 128, 61);
    std::vector<uint32_t> weights(static_cast<size_t>(n) * k / 8);
    uint32_t state = 1;
    for (uint32_t& word : weights) word = state = state * 1664525 + 1013904223;
    std::vector<float> want(n);
    for (int row = 0; row < n; ++row) {
        double sum = 0.0;
        for (int i = 0; i < k; ++i) {
            const size_t at = static_cast<size_t>(row) * k + i;
            const int weight = static_cast<int>(weights[at / 8] >> (4 * (i % 8)) & 15) - 8;
            sum += static_cast<double>(weight) * __half2float(x[i]) * __half2float(scales[at / 128]);
        }
        want[row] = static_cast<float>(sum);
    }
    harness::DeviceBuffer<half> y(n), s(scales), v(x);
    harness::DeviceBuffer<uint32_t> w(weights);
    program.run(
        "gemv_int4", {dim3(n / 4), dim3(128), 0, {{"k", k}}}, [&] { y.clear(); },
        [&] { gemv_int4<<<n / 4, 128>>>(y.get(), w.get(), s.get(), v.get(), k); },
        [&] { return harness::max_error(floats(y.download()), want); }, 1e-2);
}

static void decodes(harness::Program& program, int n) {
    // Sixteen sequences a thousand rows, each of so many tokens.
    const int sequences = std::max(n / 64, 1), tokens = 512, pages_of = tokens / 16, heads = 32;
    const size_t count = static_cast<size_t>(sequences) * tokens * heads * 128;
    const std::vector<half> q = halves(static_cast<size_t>(sequences) * heads * 128, 1009), keys = halves(count, 997), values = halves(count, 1013);
    const std::vector<int> pages = shuffled(sequences * pages_of);
    // One head of every sequence is held against the host.
    std::vector<size_t> sample;
    std::vector<float> want;
    for (int sequence = 0; sequence < sequences; ++sequence) {
        const int head = sequence % heads;
        const size_t own = (static_cast<size_t>(sequence) * heads + head) * 128;
        auto at = [&](int token) {
            const size_t page = pages[sequence * pages_of + token / 16];
            return ((page * 16 + token % 16) * heads + head) * 128;
        };
        std::vector<double> weights(tokens);
        double most = -INFINITY, sum = 0.0;
        for (int token = 0; token < tokens; ++token) {
            for (size_t d = 0; d < 128; ++d) weights[token] += static_cast<double>(__half2float(q[own + d])) * __half2float(keys[at(token) + d]);
            weights[token] *= 0.088388;
            most = std::max(most, weights[token]);
        }
        for (double& weight : weights) sum += weight = std::exp(weight - most);
        for (size_t d = 0; d < 128; ++d) {
            double value = 0.0;
            for (int token = 0; token < tokens; ++token) value += weights[token] * __half2float(values[at(token) + d]);
            sample.push_back(own + d);
            want.push_back(static_cast<float>(value / sum));
        }
    }
    harness::DeviceBuffer<half> query(q), k(keys), v(values), out(q.size());
    harness::DeviceBuffer<int> table(pages);
    const dim3 grid(heads, sequences), block(128);
    program.run(
        "paged_decode", {grid, block, 0, {{"tokens", tokens}, {"pages_of", pages_of}}}, [&] { out.clear(); },
        [&] { paged_decode<<<grid, block>>>(out.get(), query.get(), k.get(), v.get(), table.get(), tokens, pages_of); },
        [&] {
            const std::vector<half> all = out.download();
            std::vector<float> got;
            for (size_t at : sample) got.push_back(__half2float(all[at]));
            return harness::max_error(got, want);
        },
        2e-3);
}

static void gathers(harness::Program& program, int n) {
    const size_t width = 2048, count = n * width;
    const std::vector<half> from = halves(count, 1009);
    const std::vector<int> tokens = shuffled(n);
    std::vector<float> want(count);
    for (size_t i = 0; i < count; ++i) want[i] = __half2float(from[tokens[i / width] * width + i % width]);
    harness::DeviceBuffer<half> source(from), to(count);
    harness::DeviceBuffer<int> order(tokens);
    program.run(
        "gather_rows", {dim3(n), dim3(256)}, [&] { to.clear(); }, [&] { gather_rows<<<n, 256>>>(to.get(), source.get(), order.get()); },
        [&] { return harness::max_error(floats(to.download()), want); });
}

int main(int argc, char** argv) {
    harness::Program program(argc, argv, 1024, 256, /*fixed_block=*/true);
    const int n = program.n;
    if (n > 16384 || n % 4 != 0) {
        std::fprintf(stderr, "--n must be a multiple of 4 and at most 16384\n");
        return 2;
    }
    norms(program, n);
    softmaxes(program, n);
    rotations(program, n);
    products(program, n);
    decodes(program, n);
    gathers(program, n);
    return program.exit_status();
}
