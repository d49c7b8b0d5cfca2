//! The generators of cuRAND's and hipRAND's device API, for the toolkits' headers are not read.
//!
//! XORWOW (Marsaglia, Xorshift RNGs, 2003) and Philox 4x32-10 (Salmon and others, Parallel random numbers: as easy as 1, 2, 3, 2011).
//! The states have the sizes and fields of the toolkit's; what is drawn, and what setting a sequence up costs, follows the papers.

use crate::on_demand::Library;

pub(crate) static LIBRARY: Library = Library::new(
    &["curand_", "curandState", "hiprand_", "hiprandState"],
    |unit| unit.functions.contains_key("curand_init"),
    text,
);

/// What `API`, `curand` or `hiprand`, declares.
///
/// A sequence of XORWOW is reached by steps of 2^67 numbers, each a product of 160 by 160 bits: one to three for each digit in base
/// 4 that the sequence's number has.
const GENERATORS: &str = "
struct APIStateXORWOW {
    unsigned int d; unsigned int v[5];
    int boxmuller_flag; int boxmuller_flag_double; float boxmuller_extra; double boxmuller_extra_double;
};
typedef APIStateXORWOW APIStateXORWOW_t;
typedef APIStateXORWOW APIState_t;
typedef APIStateXORWOW APIState;
struct alignas(16) APIStatePhilox4_32_10 {
    uint4 ctr; uint4 output; uint2 key; unsigned int STATE;
    int boxmuller_flag; int boxmuller_flag_double; float boxmuller_extra; double boxmuller_extra_double;
};
typedef APIStatePhilox4_32_10 APIStatePhilox4_32_10_t;

__device__ unsigned int API_steps[32 * 800];

__device__ inline void API_skip(APIStateXORWOW *s, unsigned long long number, unsigned int from) {
    for (unsigned int at = from; number; number >>= 2, at++) {
        for (unsigned int times = 0; times < (number & 3); times++) {
            unsigned int r[5] = {0, 0, 0, 0, 0};
            #pragma unroll 1
            for (int word = 0; word < 5; word++) {
                #pragma unroll 1
                for (int bit = 0; bit < 32; bit++) {
                    if (s->v[word] & (1u << bit)) {
                        for (int k = 0; k < 5; k++) r[k] ^= API_steps[at * 800 + (word * 32 + bit) * 5 + k];
                    }
                }
            }
            for (int k = 0; k < 5; k++) s->v[k] = r[k];
        }
    }
}
__device__ inline void API_init(unsigned long long seed, unsigned long long subsequence, unsigned long long offset, APIStateXORWOW *s) {
    unsigned int low = 0xaad26b49u ^ (unsigned int)seed;
    unsigned int high = 0xf7dcefddu ^ (unsigned int)(seed >> 32);
    unsigned int t0 = 1099087573u * low;
    unsigned int t1 = 2591861531u * high;
    APIStateXORWOW own;
    own.d = 6615241u + t1 + t0;
    own.v[0] = 123456789u + t0;
    own.v[1] = 362436069u ^ t0;
    own.v[2] = 521288629u + t1;
    own.v[3] = 88675123u ^ t1;
    own.v[4] = 5783321u + t0;
    API_skip(&own, subsequence, 0);
    API_skip(&own, offset, 16);
    own.d += 362437u * (unsigned int)offset;
    own.boxmuller_flag = 0; own.boxmuller_flag_double = 0; own.boxmuller_extra = 0.0f; own.boxmuller_extra_double = 0.0;
    *s = own;
}
__device__ inline unsigned int API(APIStateXORWOW *s) {
    unsigned int t = s->v[0] ^ (s->v[0] >> 2);
    s->v[0] = s->v[1]; s->v[1] = s->v[2]; s->v[2] = s->v[3]; s->v[3] = s->v[4];
    s->v[4] = (s->v[4] ^ (s->v[4] << 4)) ^ (t ^ (t << 1));
    s->d += 362437u;
    return s->v[4] + s->d;
}

__device__ inline uint4 API_rounds(uint4 c, uint2 k) {
    #pragma unroll
    for (int round = 0; round < 10; round++) {
        unsigned long long first = (unsigned long long)c.x * 0xD2511F53u;
        unsigned long long second = (unsigned long long)c.z * 0xCD9E8D57u;
        c.x = (unsigned int)(second >> 32) ^ c.y ^ k.x;
        c.z = (unsigned int)(first >> 32) ^ c.w ^ k.y;
        c.y = (unsigned int)second; c.w = (unsigned int)first;
        k.x += 0x9E3779B9u; k.y += 0xBB67AE85u;
    }
    return c;
}
__device__ inline void API_advance(APIStatePhilox4_32_10 *s, unsigned long long by) {
    unsigned long long low = ((unsigned long long)s->ctr.y << 32 | s->ctr.x) + by;
    s->ctr.x = (unsigned int)low;
    s->ctr.y = (unsigned int)(low >> 32);
    if (low < by) { s->ctr.z += 1; s->ctr.w += s->ctr.z == 0; }
}
__device__ inline void API_init(unsigned long long seed, unsigned long long subsequence, unsigned long long offset, APIStatePhilox4_32_10 *s) {
    s->ctr.z = (unsigned int)subsequence;
    s->ctr.w = (unsigned int)(subsequence >> 32);
    s->ctr.x = 0; s->ctr.y = 0;
    s->key.x = (unsigned int)seed;
    s->key.y = (unsigned int)(seed >> 32);
    s->STATE = (unsigned int)offset & 3u;
    s->boxmuller_flag = 0; s->boxmuller_flag_double = 0; s->boxmuller_extra = 0.0f; s->boxmuller_extra_double = 0.0;
    API_advance(s, offset / 4);
    s->output = API_rounds(s->ctr, s->key);
}
__device__ inline unsigned int API(APIStatePhilox4_32_10 *s) {
    unsigned int at = s->STATE;
    unsigned int drawn = at == 0 ? s->output.x : at == 1 ? s->output.y : at == 2 ? s->output.z : s->output.w;
    s->STATE = (at + 1) & 3u;
    if ((s->STATE & 3u) == 0) {
        API_advance(s, 1);
        s->output = API_rounds(s->ctr, s->key);
    }
    return drawn;
}
__device__ inline uint4 API4(APIStatePhilox4_32_10 *s) {
    uint4 old = s->output;
    API_advance(s, 1);
    s->output = API_rounds(s->ctr, s->key);
    uint4 r = old;
    unsigned int at = s->STATE;
    if (at == 1) { r.x = old.y; r.y = old.z; r.z = old.w; r.w = s->output.x; }
    else if (at == 2) { r.x = old.z; r.y = old.w; r.z = s->output.x; r.w = s->output.y; }
    else if (at == 3) { r.x = old.w; r.y = s->output.x; r.z = s->output.y; r.w = s->output.z; }
    return r;
}

__device__ inline float API_to_uniform(unsigned int x) { return x * 2.3283064e-10f + 1.1641532e-10f; }
__device__ inline double API_to_uniform_double(unsigned int x, unsigned int y) {
    unsigned long long z = (unsigned long long)x ^ ((unsigned long long)y << 21);
    return z * 1.1102230246251565e-16 + 5.5511151231257827e-17;
}
__device__ inline float2 API_pair(unsigned int x, unsigned int y) {
    float u = API_to_uniform(x);
    float v = y * 1.4629180e-9f + 7.3145901e-10f;
    float size = sqrtf(-2.0f * logf(u));
    float2 r;
    __sincosf(v, &r.x, &r.y);
    r.x *= size; r.y *= size;
    return r;
}
__device__ inline double2 API_pair_double(unsigned int x0, unsigned int x1, unsigned int y0, unsigned int y1) {
    double u = API_to_uniform_double(x0, x1);
    double v = API_to_uniform_double(y0, y1) * 2.0;
    double size = sqrt(-2.0 * log(u));
    double2 r;
    sincospi(v, &r.x, &r.y);
    r.x *= size; r.y *= size;
    return r;
}
template <class S> __device__ inline float API_uniform(S *s) { return API_to_uniform(API(s)); }
template <class S> __device__ inline double API_uniform_double(S *s) {
    unsigned int x = API(s); unsigned int y = API(s);
    return API_to_uniform_double(x, y);
}
template <class S> __device__ inline float2 API_normal2(S *s) {
    unsigned int x = API(s); unsigned int y = API(s);
    return API_pair(x, y);
}
template <class S> __device__ inline double2 API_normal2_double(S *s) {
    unsigned int x = API(s); unsigned int y = API(s); unsigned int z = API(s); unsigned int w = API(s);
    return API_pair_double(x, y, z, w);
}
template <class S> __device__ inline float API_normal(S *s) {
    if (s->boxmuller_flag) { s->boxmuller_flag = 0; return s->boxmuller_extra; }
    float2 both = API_normal2(s);
    s->boxmuller_extra = both.y; s->boxmuller_flag = 1;
    return both.x;
}
template <class S> __device__ inline double API_normal_double(S *s) {
    if (s->boxmuller_flag_double) { s->boxmuller_flag_double = 0; return s->boxmuller_extra_double; }
    double2 both = API_normal2_double(s);
    s->boxmuller_extra_double = both.y; s->boxmuller_flag_double = 1;
    return both.x;
}
template <class S> __device__ inline float API_log_normal(S *s, float mean, float deviation) {
    return expf(mean + deviation * API_normal(s));
}
template <class S> __device__ inline double API_log_normal_double(S *s, double mean, double deviation) {
    return exp(mean + deviation * API_normal_double(s));
}
__device__ inline float4 API_uniform4(APIStatePhilox4_32_10 *s) {
    uint4 x = API4(s);
    float4 r;
    r.x = API_to_uniform(x.x); r.y = API_to_uniform(x.y); r.z = API_to_uniform(x.z); r.w = API_to_uniform(x.w);
    return r;
}
__device__ inline double2 API_uniform2_double(APIStatePhilox4_32_10 *s) {
    uint4 x = API4(s);
    double2 r;
    r.x = API_to_uniform_double(x.x, x.y); r.y = API_to_uniform_double(x.z, x.w);
    return r;
}
__device__ inline float4 API_normal4(APIStatePhilox4_32_10 *s) {
    uint4 x = API4(s);
    float2 one = API_pair(x.x, x.y);
    float2 two = API_pair(x.z, x.w);
    float4 r;
    r.x = one.x; r.y = one.y; r.z = two.x; r.w = two.y;
    return r;
}
";

/// [`GENERATORS`] of both toolkits.
fn text() -> String {
    ["curand", "hiprand"]
        .map(|api| GENERATORS.replace("API", api))
        .concat()
}
