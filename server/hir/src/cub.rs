//! The collectives of CUB and hipCUB, for their headers are seldom beside a program.
//!
//! Declared in C++ as the algorithms are that CUB's documentation names (`BLOCK_REDUCE_WARP_REDUCTIONS`, `BLOCK_SCAN_RAKING`,
//! `BLOCK_LOAD_WARP_TRANSPOSE`): the exchanges between lanes, the shared memory with its padding, the barriers. What a program calls is
//! then read as if it were its own. The algorithms of loads and stores have the same numbers. A count of valid items changes no
//! exchange: only loads and stores follow it. Collectives that are not here are not understood.

use crate::on_demand::Library;

/// Its declarations.
pub(crate) static LIBRARY: Library = Library::new(
    &["cub::", "cub/", "cooperative_groups"],
    |unit| unit.templates.contains_key("BlockReduce"),
    || TEXT.to_owned(),
);

/// The function above that reduces over a tile of a block.
pub(crate) const TILE_REDUCE: &str = "cub_tile_reduce";
/// The one that adds up in front of each lane and itself.
pub(crate) const TILE_INCLUSIVE: &str = "cub_tile_inclusive";
/// The one that adds up in front of each lane.
pub(crate) const TILE_EXCLUSIVE: &str = "cub_tile_exclusive";

const TEXT: &str = "
namespace cub {
enum BlockReduceAlgorithm { BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY, BLOCK_REDUCE_RAKING, BLOCK_REDUCE_WARP_REDUCTIONS };
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };
enum BlockLoadAlgorithm { BLOCK_LOAD_DIRECT, BLOCK_LOAD_STRIPED, BLOCK_LOAD_VECTORIZE, BLOCK_LOAD_TRANSPOSE,
    BLOCK_LOAD_WARP_TRANSPOSE, BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED };
enum BlockStoreAlgorithm { BLOCK_STORE_DIRECT, BLOCK_STORE_STRIPED, BLOCK_STORE_VECTORIZE, BLOCK_STORE_TRANSPOSE,
    BLOCK_STORE_WARP_TRANSPOSE, BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED };
struct cub_add { template <class T> __device__ T operator()(T a, T b) const { return a + b; } };

template <int W, class T, class Op> __device__ T cub_tile_reduce(T v, Op op) {
#pragma unroll
    for (int d = W / 2; d > 0; d >>= 1) { v = op(v, __shfl_xor_sync(0xffffffffu, v, d)); }
    return v;
}
template <int W, class T, class Op> __device__ T cub_lanes_reduce(T v, Op op) {
#pragma unroll
    for (int d = 1; d < W; d <<= 1) { v = op(v, __shfl_down_sync(0xffffffffu, v, d)); }
    return v;
}
template <int W, class T, class Op> __device__ T cub_tile_inclusive(T v, Op op) {
    int lane = threadIdx.x % W;
#pragma unroll
    for (int d = 1; d < W; d <<= 1) {
        T other = __shfl_up_sync(0xffffffffu, v, d);
        T sum = op(other, v);
        v = lane >= d ? sum : v;
    }
    return v;
}
template <int W, class T, class Op> __device__ T cub_tile_exclusive(T v, Op op) {
    T sum = cub_tile_inclusive<W>(v, op);
    return __shfl_up_sync(0xffffffffu, sum, 1);
}

template <int X, int Y, int Z> __device__ int cub_thread() {
    if constexpr (Y * Z == 1) { return threadIdx.x; }
    return (threadIdx.z * Y + threadIdx.y) * X + threadIdx.x;
}

template <class T> struct Uninitialized { T held; __device__ T &Alias() { return held; } };
constexpr int cub_log2(int n) { int k = 0; while ((1 << k) < n) { ++k; } return k; }
template <int N, int C = N, int K = 0> struct Log2 { static constexpr int VALUE = cub_log2(N); };
template <int N> struct PowerOfTwo { static constexpr bool VALUE = (N & (N - 1)) == 0; };
template <int W> __device__ unsigned WarpMask(unsigned warp) { return W == 32 ? 0xffffffffu : ((1u << W) - 1u) << (warp * W); }
__device__ unsigned LaneId() { return threadIdx.x % 32; }
template <int W, class T> __device__ T ShuffleUp(T v, int by, int first, unsigned lanes) { return __shfl_up_sync(lanes, v, by); }
template <int W, class T> __device__ T ShuffleDown(T v, int by, int last, unsigned lanes) { return __shfl_down_sync(lanes, v, by); }
template <int W, class T> __device__ T ShuffleIndex(T v, int lane, unsigned lanes) { return __shfl_sync(lanes, v, lane); }
template <class T, int N> struct BlockRakingLayout {
    static constexpr int SHARED_ELEMENTS = N;
    static constexpr int MAX_RAKING_THREADS = N < 32 ? N : 32;
    static constexpr int SEGMENT_LENGTH = (N + MAX_RAKING_THREADS - 1) / MAX_RAKING_THREADS;
    static constexpr int RAKING_THREADS = (N + SEGMENT_LENGTH - 1) / SEGMENT_LENGTH;
    static constexpr int USE_SEGMENT_PADDING = (SEGMENT_LENGTH % 2 == 0 && SEGMENT_LENGTH > 2) ? 1 : 0;
    static constexpr int GRID_ELEMENTS = RAKING_THREADS * (SEGMENT_LENGTH + USE_SEGMENT_PADDING);
    static constexpr bool UNGUARDED = N % RAKING_THREADS == 0;
    struct TempStorage { T grid[GRID_ELEMENTS]; };
    __device__ static T *PlacementPtr(TempStorage &s, unsigned thread) {
        return s.grid + (USE_SEGMENT_PADDING ? thread + thread / SEGMENT_LENGTH : thread);
    }
    __device__ static T *RakingPtr(TempStorage &s, unsigned thread) {
        return s.grid + thread * (SEGMENT_LENGTH + USE_SEGMENT_PADDING);
    }
};

template <class T, int X, int A = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1, int Z = 1, int P = 0> struct BlockReduce {
    static constexpr int threads = X * Y * Z;
    static constexpr int warps = (threads + 31) / 32;
    struct TempStorage { unsigned char lanes[warps]; T aggregates[warps]; T prefix; };
    TempStorage *storage;
    __device__ BlockReduce(TempStorage &s) { storage = &s; }
    __device__ BlockReduce() { __shared__ TempStorage own; storage = &own; }
    template <class Op> __device__ T cub_reduce(T v, Op op) {
        int thread = cub_thread<X, Y, Z>();
        T sum = cub_lanes_reduce<32>(v, op);
        if constexpr (warps > 1) {
            if (thread % 32 == 0) { storage->aggregates[thread / 32] = sum; }
            __syncthreads();
            if (thread == 0) {
#pragma unroll
                for (int w = 1; w < warps; ++w) { sum = op(sum, storage->aggregates[w]); }
            }
        }
        return sum;
    }
    template <class Op> __device__ T Reduce(T v, Op op) { return cub_reduce(v, op); }
    template <class Op> __device__ T Reduce(T v, Op op, int valid) { return cub_reduce(v, op); }
    template <int N, class Op> __device__ T Reduce(T (&v)[N], Op op) {
        T sum = v[0];
#pragma unroll
        for (int i = 1; i < N; ++i) { sum = op(sum, v[i]); }
        return cub_reduce(sum, op);
    }
    __device__ T Sum(T v) { return cub_reduce(v, cub_add()); }
    __device__ T Sum(T v, int valid) { return cub_reduce(v, cub_add()); }
    template <int N> __device__ T Sum(T (&v)[N]) {
        T sum = v[0];
#pragma unroll
        for (int i = 1; i < N; ++i) { sum = sum + v[i]; }
        return cub_reduce(sum, cub_add());
    }
};

template <class T, int W = 32, int P = 0> struct WarpReduce {
    struct TempStorage { unsigned char lanes; };
    __device__ WarpReduce(TempStorage &s) {}
    template <class Op> __device__ T Reduce(T v, Op op) { return cub_lanes_reduce<W>(v, op); }
    template <class Op> __device__ T Reduce(T v, Op op, int valid) { return cub_lanes_reduce<W>(v, op); }
    __device__ T Sum(T v) { return cub_lanes_reduce<W>(v, cub_add()); }
    __device__ T Sum(T v, int valid) { return cub_lanes_reduce<W>(v, cub_add()); }
};

template <class T, int W = 32, int P = 0> struct WarpScan {
    struct TempStorage { unsigned char lanes; };
    __device__ WarpScan(TempStorage &s) {}
    __device__ void InclusiveSum(T in, T &out) { out = cub_tile_inclusive<W>(in, cub_add()); }
    __device__ void InclusiveSum(T in, T &out, T &all) {
        out = cub_tile_inclusive<W>(in, cub_add());
        all = __shfl_sync(0xffffffffu, out, W - 1);
    }
    __device__ void ExclusiveSum(T in, T &out) { T sum = cub_tile_inclusive<W>(in, cub_add()); out = sum - in; }
    __device__ void ExclusiveSum(T in, T &out, T &all) {
        T sum = cub_tile_inclusive<W>(in, cub_add());
        all = __shfl_sync(0xffffffffu, sum, W - 1);
        out = sum - in;
    }
    template <class Op> __device__ void InclusiveScan(T in, T &out, Op op) { out = cub_tile_inclusive<W>(in, op); }
    template <class Op> __device__ void ExclusiveScan(T in, T &out, Op op) { out = cub_tile_exclusive<W>(in, op); }
    template <class Op> __device__ void ExclusiveScan(T in, T &out, T first, Op op) { out = cub_tile_exclusive<W>(in, op); }
};

template <class T, int X, int A = BLOCK_SCAN_RAKING, int Y = 1, int Z = 1, int P = 0> struct BlockScan {
    static constexpr int threads = X * Y * Z;
    static constexpr int warps = (threads + 31) / 32;
    static constexpr int segment = warps;
    static constexpr int padding = (segment % 2 == 0 && segment > 2) ? 1 : 0;
    static constexpr int words = A == BLOCK_SCAN_WARP_SCANS || warps == 1 ? warps : 32 * (segment + padding);
    struct TempStorage { T grid[words]; T aggregate; T prefix; };
    TempStorage *storage;
    __device__ BlockScan(TempStorage &s) { storage = &s; }
    __device__ BlockScan() { __shared__ TempStorage own; storage = &own; }
    template <class Op> __device__ T cub_before(T v, Op op, T &all) {
        int thread = cub_thread<X, Y, Z>();
        if constexpr (warps == 1) {
            T sum = cub_tile_inclusive<32>(v, op);
            all = __shfl_sync(0xffffffffu, sum, threads - 1);
            return __shfl_up_sync(0xffffffffu, sum, 1);
        } else if constexpr (A == BLOCK_SCAN_WARP_SCANS) {
            T sum = cub_tile_inclusive<32>(v, op);
            if (thread % 32 == 31) { storage->grid[thread / 32] = sum; }
            T before = __shfl_up_sync(0xffffffffu, sum, 1);
            __syncthreads();
            T prefix = storage->grid[0];
            all = prefix;
#pragma unroll
            for (int w = 1; w < warps; ++w) {
                prefix = thread / 32 == w ? all : prefix;
                all = op(all, storage->grid[w]);
            }
            return thread < 32 ? before : op(prefix, before);
        } else {
            int place = padding ? thread + thread / segment : thread;
            storage->grid[place] = v;
            __syncthreads();
            if (thread < 32) {
                T held[segment];
                T *own = storage->grid + thread * (segment + padding);
#pragma unroll
                for (int i = 0; i < segment; ++i) { held[i] = own[i]; }
                T sum = held[0];
#pragma unroll
                for (int i = 1; i < segment; ++i) { sum = op(sum, held[i]); }
                T upto = cub_tile_inclusive<32>(sum, op);
                if (thread == 31) { storage->aggregate = upto; }
                T before = __shfl_up_sync(0xffffffffu, upto, 1);
#pragma unroll
                for (int i = 0; i < segment; ++i) {
                    own[i] = before;
                    before = op(before, held[i]);
                }
            }
            __syncthreads();
            all = storage->aggregate;
            return storage->grid[place];
        }
    }
    __device__ void ExclusiveSum(T in, T &out) { T all; out = cub_before(in, cub_add(), all); }
    __device__ void ExclusiveSum(T in, T &out, T &all) { out = cub_before(in, cub_add(), all); }
    __device__ void InclusiveSum(T in, T &out) { T all; out = cub_before(in, cub_add(), all) + in; }
    __device__ void InclusiveSum(T in, T &out, T &all) { out = cub_before(in, cub_add(), all) + in; }
    template <class Op> __device__ void ExclusiveScan(T in, T &out, Op op) { T all; out = cub_before(in, op, all); }
    template <class Op> __device__ void ExclusiveScan(T in, T &out, T first, Op op) {
        T all;
        out = op(first, cub_before(in, op, all));
    }
    template <class Op> __device__ void ExclusiveScan(T in, T &out, T first, Op op, T &all) {
        out = op(first, cub_before(in, op, all));
    }
    template <class Op> __device__ void InclusiveScan(T in, T &out, Op op) { T all; out = op(cub_before(in, op, all), in); }
    template <class Op> __device__ void InclusiveScan(T in, T &out, Op op, T &all) { out = op(cub_before(in, op, all), in); }
    template <int N, class Op> __device__ void cub_items(T (&in)[N], T (&out)[N], Op op, T &all, bool inclusive) {
        T sum = in[0];
#pragma unroll
        for (int i = 1; i < N; ++i) { sum = op(sum, in[i]); }
        T before = cub_before(sum, op, all);
#pragma unroll
        for (int i = 0; i < N; ++i) {
            T upto = op(before, in[i]);
            out[i] = inclusive ? upto : before;
            before = upto;
        }
    }
    template <int N> __device__ void ExclusiveSum(T (&in)[N], T (&out)[N]) { T all; cub_items(in, out, cub_add(), all, false); }
    template <int N> __device__ void ExclusiveSum(T (&in)[N], T (&out)[N], T &all) { cub_items(in, out, cub_add(), all, false); }
    template <int N> __device__ void InclusiveSum(T (&in)[N], T (&out)[N]) { T all; cub_items(in, out, cub_add(), all, true); }
    template <int N> __device__ void InclusiveSum(T (&in)[N], T (&out)[N], T &all) { cub_items(in, out, cub_add(), all, true); }
    template <int N, class Op> __device__ void InclusiveScan(T (&in)[N], T (&out)[N], Op op) {
        T all;
        cub_items(in, out, op, all, true);
    }
    template <int N, class Op, class F> __device__ void InclusiveScan(T (&in)[N], T (&out)[N], Op op, F &prefix) {
        T all;
        cub_items(in, out, op, all, true);
        if (cub_thread<X, Y, Z>() < 32) {
            T first = prefix(all);
            if (cub_thread<X, Y, Z>() == 0) { storage->prefix = first; }
        }
        __syncthreads();
        T first = storage->prefix;
#pragma unroll
        for (int i = 0; i < N; ++i) { out[i] = op(first, out[i]); }
    }
    template <int N, class Op> __device__ void ExclusiveScan(T (&in)[N], T (&out)[N], T first, Op op) {
        T all;
        cub_items(in, out, op, all, false);
#pragma unroll
        for (int i = 0; i < N; ++i) { out[i] = op(first, out[i]); }
    }
};

template <class T, int X, int N, bool S = false, int Y = 1, int Z = 1, int P = 0> struct BlockExchange {
    static constexpr int threads = X * Y * Z;
    static constexpr int padding = (N > 4 && (N & (N - 1)) == 0) ? 1 : 0;
    struct TempStorage { T items[threads * N + padding * (threads * N / 32)]; };
    TempStorage *storage;
    __device__ BlockExchange(TempStorage &s) { storage = &s; }
    __device__ BlockExchange() { __shared__ TempStorage own; storage = &own; }
    __device__ int cub_at(int i) { return padding ? i + i / 32 : i; }
    __device__ void StripedToBlocked(T (&in)[N], T (&out)[N]) {
        int thread = cub_thread<X, Y, Z>();
#pragma unroll
        for (int i = 0; i < N; ++i) { storage->items[cub_at(i * threads + thread)] = in[i]; }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < N; ++i) { out[i] = storage->items[cub_at(thread * N + i)]; }
    }
    __device__ void StripedToBlocked(T (&items)[N]) { StripedToBlocked(items, items); }
    __device__ void BlockedToStriped(T (&in)[N], T (&out)[N]) {
        int thread = cub_thread<X, Y, Z>();
#pragma unroll
        for (int i = 0; i < N; ++i) { storage->items[cub_at(thread * N + i)] = in[i]; }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < N; ++i) { out[i] = storage->items[cub_at(i * threads + thread)]; }
    }
    __device__ void BlockedToStriped(T (&items)[N]) { BlockedToStriped(items, items); }
    __device__ void WarpStripedToBlocked(T (&in)[N], T (&out)[N]) {
        int thread = cub_thread<X, Y, Z>();
        int first = thread / 32 * (32 * N);
        int lane = thread % 32;
#pragma unroll
        for (int i = 0; i < N; ++i) { storage->items[cub_at(first + i * 32 + lane)] = in[i]; }
        __syncwarp();
#pragma unroll
        for (int i = 0; i < N; ++i) { out[i] = storage->items[cub_at(first + lane * N + i)]; }
    }
    __device__ void WarpStripedToBlocked(T (&items)[N]) { WarpStripedToBlocked(items, items); }
    __device__ void BlockedToWarpStriped(T (&in)[N], T (&out)[N]) {
        int thread = cub_thread<X, Y, Z>();
        int first = thread / 32 * (32 * N);
        int lane = thread % 32;
#pragma unroll
        for (int i = 0; i < N; ++i) { storage->items[cub_at(first + lane * N + i)] = in[i]; }
        __syncwarp();
#pragma unroll
        for (int i = 0; i < N; ++i) { out[i] = storage->items[cub_at(first + i * 32 + lane)]; }
    }
    __device__ void BlockedToWarpStriped(T (&items)[N]) { BlockedToWarpStriped(items, items); }
    template <class R> __device__ void ScatterToBlocked(T (&items)[N], R (&ranks)[N]) {
        int thread = cub_thread<X, Y, Z>();
#pragma unroll
        for (int i = 0; i < N; ++i) { storage->items[cub_at(ranks[i])] = items[i]; }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < N; ++i) { items[i] = storage->items[cub_at(thread * N + i)]; }
    }
    template <class R> __device__ void ScatterToStriped(T (&items)[N], R (&ranks)[N]) {
        int thread = cub_thread<X, Y, Z>();
#pragma unroll
        for (int i = 0; i < N; ++i) { storage->items[cub_at(ranks[i])] = items[i]; }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < N; ++i) { items[i] = storage->items[cub_at(i * threads + thread)]; }
    }
};

template <int A, int X, int N, int Y, int Z> __device__ int cub_place(int i) {
    int thread = cub_thread<X, Y, Z>();
    if constexpr (A == BLOCK_LOAD_DIRECT || A == BLOCK_LOAD_VECTORIZE) { return thread * N + i; }
    if constexpr (A == BLOCK_LOAD_STRIPED || A == BLOCK_LOAD_TRANSPOSE) { return i * (X * Y * Z) + thread; }
    return thread / 32 * (32 * N) + i * 32 + thread % 32;
}

template <class T, int L> struct alignas(sizeof(T) * L) cub_vector { T part[L]; };

template <class T, int X, int N, int A = BLOCK_LOAD_DIRECT, int Y = 1, int Z = 1, int P = 0> struct BlockLoad {
    static constexpr int lanes = N % 4 == 0 ? 4 : N % 2 == 0 ? 2 : 1;
    using Exchange = BlockExchange<T, X, N, false, Y, Z>;
    struct NoStorage { unsigned char none; };
    using TempStorage = typename std::conditional<(A >= BLOCK_LOAD_TRANSPOSE), typename Exchange::TempStorage, NoStorage>::type;
    TempStorage *storage;
    __device__ BlockLoad(TempStorage &s) { storage = &s; }
    __device__ BlockLoad() { __shared__ TempStorage own; storage = &own; }
    __device__ void cub_arrange(T (&items)[N]) {
        if constexpr (A == BLOCK_LOAD_TRANSPOSE) { Exchange(*storage).StripedToBlocked(items, items); }
        if constexpr (A >= BLOCK_LOAD_WARP_TRANSPOSE) { Exchange(*storage).WarpStripedToBlocked(items, items); }
    }
    template <class I> __device__ void Load(I from, T (&items)[N]) {
        if constexpr (A == BLOCK_LOAD_VECTORIZE && lanes > 1) {
            const cub_vector<T, lanes> *wide = reinterpret_cast<const cub_vector<T, lanes> *>(from);
            int thread = cub_thread<X, Y, Z>();
#pragma unroll
            for (int i = 0; i < N / lanes; ++i) {
                cub_vector<T, lanes> v = wide[thread * (N / lanes) + i];
#pragma unroll
                for (int j = 0; j < lanes; ++j) { items[i * lanes + j] = v.part[j]; }
            }
        } else {
#pragma unroll
            for (int i = 0; i < N; ++i) { items[i] = from[cub_place<A, X, N, Y, Z>(i)]; }
            cub_arrange(items);
        }
    }
    template <class I> __device__ void Load(I from, T (&items)[N], int valid) {
#pragma unroll
        for (int i = 0; i < N; ++i) { if (cub_place<A, X, N, Y, Z>(i) < valid) { items[i] = from[cub_place<A, X, N, Y, Z>(i)]; } }
        cub_arrange(items);
    }
    template <class I, class D> __device__ void Load(I from, T (&items)[N], int valid, D other) {
#pragma unroll
        for (int i = 0; i < N; ++i) { items[i] = other; }
#pragma unroll
        for (int i = 0; i < N; ++i) { if (cub_place<A, X, N, Y, Z>(i) < valid) { items[i] = from[cub_place<A, X, N, Y, Z>(i)]; } }
        cub_arrange(items);
    }
};

template <class T, int X, int N, int A = BLOCK_STORE_DIRECT, int Y = 1, int Z = 1, int P = 0> struct BlockStore {
    static constexpr int lanes = N % 4 == 0 ? 4 : N % 2 == 0 ? 2 : 1;
    using Exchange = BlockExchange<T, X, N, false, Y, Z>;
    struct NoStorage { unsigned char none; };
    using TempStorage = typename std::conditional<(A >= BLOCK_STORE_TRANSPOSE), typename Exchange::TempStorage, NoStorage>::type;
    TempStorage *storage;
    __device__ BlockStore(TempStorage &s) { storage = &s; }
    __device__ BlockStore() { __shared__ TempStorage own; storage = &own; }
    __device__ void cub_arrange(T (&items)[N]) {
        if constexpr (A == BLOCK_STORE_TRANSPOSE) { Exchange(*storage).BlockedToStriped(items, items); }
        if constexpr (A >= BLOCK_STORE_WARP_TRANSPOSE) { Exchange(*storage).BlockedToWarpStriped(items, items); }
    }
    template <class I> __device__ void Store(I to, T (&items)[N]) {
        if constexpr (A == BLOCK_STORE_VECTORIZE && lanes > 1) {
            cub_vector<T, lanes> *wide = reinterpret_cast<cub_vector<T, lanes> *>(to);
            int thread = cub_thread<X, Y, Z>();
#pragma unroll
            for (int i = 0; i < N / lanes; ++i) {
                cub_vector<T, lanes> v;
#pragma unroll
                for (int j = 0; j < lanes; ++j) { v.part[j] = items[i * lanes + j]; }
                wide[thread * (N / lanes) + i] = v;
            }
        } else {
            cub_arrange(items);
#pragma unroll
            for (int i = 0; i < N; ++i) { to[cub_place<A, X, N, Y, Z>(i)] = items[i]; }
        }
    }
    template <class I> __device__ void Store(I to, T (&items)[N], int valid) {
        cub_arrange(items);
#pragma unroll
        for (int i = 0; i < N; ++i) { if (cub_place<A, X, N, Y, Z>(i) < valid) { to[cub_place<A, X, N, Y, Z>(i)] = items[i]; } }
    }
};

struct NullType {};

template <class K, int X, int N, class V = NullType, int B = 4, class... P> struct BlockRadixSort {
    static constexpr int digits = 1 << B;
    using Keys = BlockExchange<K, X, N>;
    using Values = BlockExchange<V, X, N>;
    using Scan = BlockScan<unsigned, X, BLOCK_SCAN_WARP_SCANS>;
    struct Ranks { unsigned counters[digits / 2 + 1][X]; typename Scan::TempStorage scan; };
    union TempStorage { Ranks ranks; typename Keys::TempStorage keys; typename Values::TempStorage values; };
    TempStorage *storage;
    __device__ BlockRadixSort(TempStorage &s) { storage = &s; }
    __device__ BlockRadixSort() { __shared__ TempStorage own; storage = &own; }
    __device__ void cub_rank(K (&keys)[N], int (&ranks)[N], int bit) {
        unsigned before[N];
        int at[N];
#pragma unroll
        for (int i = 0; i <= digits / 2; ++i) { storage->ranks.counters[i][threadIdx.x] = 0; }
#pragma unroll
        for (int i = 0; i < N; ++i) {
            at[i] = (int)(((unsigned long long)keys[i] >> bit) & (digits / 2 - 1));
            before[i] = storage->ranks.counters[at[i]][threadIdx.x];
            storage->ranks.counters[at[i]][threadIdx.x] = before[i] + 1;
        }
        __syncthreads();
        unsigned held[digits / 2 + 1];
        unsigned *own = &storage->ranks.counters[0][0] + threadIdx.x * (digits / 2 + 1);
        unsigned sum = 0;
#pragma unroll
        for (int i = 0; i <= digits / 2; ++i) { held[i] = own[i]; sum += held[i]; }
        unsigned all;
        Scan(storage->ranks.scan).ExclusiveSum(sum, sum, all);
#pragma unroll
        for (int i = 0; i <= digits / 2; ++i) { own[i] = sum; sum += held[i]; }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < N; ++i) { ranks[i] = (int)(before[i] + storage->ranks.counters[at[i]][threadIdx.x]); }
    }
    __device__ void cub_sort(K (&keys)[N], int first, int last) {
        for (int bit = first; bit < last; bit += B) {
            int ranks[N];
            cub_rank(keys, ranks, bit);
            __syncthreads();
            Keys(storage->keys).ScatterToBlocked(keys, ranks);
            __syncthreads();
        }
    }
    __device__ void cub_sort_pairs(K (&keys)[N], V (&values)[N], int first, int last) {
        for (int bit = first; bit < last; bit += B) {
            int ranks[N];
            cub_rank(keys, ranks, bit);
            __syncthreads();
            Keys(storage->keys).ScatterToBlocked(keys, ranks);
            __syncthreads();
            Values(storage->values).ScatterToBlocked(values, ranks);
            __syncthreads();
        }
    }
    __device__ void Sort(K (&keys)[N], int first = 0, int last = sizeof(K) * 8) { cub_sort(keys, first, last); }
    __device__ void SortDescending(K (&keys)[N], int first = 0, int last = sizeof(K) * 8) { cub_sort(keys, first, last); }
    __device__ void SortBlockedToStriped(K (&keys)[N], int first = 0, int last = sizeof(K) * 8) { cub_sort(keys, first, last); }
    __device__ void Sort(K (&keys)[N], V (&values)[N], int first = 0, int last = sizeof(K) * 8) {
        cub_sort_pairs(keys, values, first, last);
    }
    __device__ void SortDescending(K (&keys)[N], V (&values)[N], int first = 0, int last = sizeof(K) * 8) {
        cub_sort_pairs(keys, values, first, last);
    }
    __device__ void SortBlockedToStriped(K (&keys)[N], V (&values)[N], int first = 0, int last = sizeof(K) * 8) {
        cub_sort_pairs(keys, values, first, last);
    }
};

template <class K, int W, int N, class V, bool B> struct cub_merge_sort {
    union TempStorage { K keys[W * N + 1]; V values[W * N + 1]; };
    TempStorage *storage;
    __device__ static void cub_wait() { if constexpr (B) { __syncthreads(); } else { __syncwarp(); } }
    template <class Op> __device__ static void cub_network(K (&keys)[N], int (&from)[N], Op op) {
#pragma unroll
        for (int i = 0; i < N; ++i) {
#pragma unroll
            for (int j = 1 & i; j < N - 1; j += 2) {
                if (op(keys[j + 1], keys[j])) {
                    K k = keys[j]; keys[j] = keys[j + 1]; keys[j + 1] = k;
                    int f = from[j]; from[j] = from[j + 1]; from[j + 1] = f;
                }
            }
        }
    }
    template <bool P, class Op> __device__ void cub_sort(K (&keys)[N], V (&values)[N], Op op) {
        int thread = threadIdx.x % W;
        int from[N];
#pragma unroll
        for (int i = 0; i < N; ++i) { from[i] = thread * N + i; }
        cub_network(keys, from, op);
        if constexpr (P) { cub_scatter(values, from); }
#pragma unroll
        for (int merged = 2; merged <= W; merged *= 2) {
            cub_wait();
#pragma unroll
            for (int i = 0; i < N; ++i) { storage->keys[thread * N + i] = keys[i]; }
            cub_wait();
            int size = merged / 2 * N;
            int first = (thread & ~(merged - 1)) * N, second = first + size, end = second + size;
            int diagonal = (thread & (merged - 1)) * N;
            int low = diagonal > size ? diagonal - size : 0, high = diagonal < size ? diagonal : size;
            while (low < high) {
                int middle = (low + high) / 2;
                if (op(storage->keys[second + diagonal - 1 - middle], storage->keys[first + middle])) { high = middle; }
                else { low = middle + 1; }
            }
            int a = first + low, b = second + diagonal - low;
            K one = storage->keys[a], other = storage->keys[b];
#pragma unroll
            for (int i = 0; i < N; ++i) {
                bool takes = b < end && (a >= second || op(other, one));
                keys[i] = takes ? other : one;
                from[i] = takes ? b++ : a++;
                if (takes) { other = storage->keys[b]; } else { one = storage->keys[a]; }
            }
            if constexpr (P) { cub_wait(); cub_scatter(values, from); }
        }
    }
    __device__ void cub_scatter(V (&values)[N], int (&from)[N]) {
        int thread = threadIdx.x % W;
#pragma unroll
        for (int i = 0; i < N; ++i) { storage->values[thread * N + i] = values[i]; }
        cub_wait();
#pragma unroll
        for (int i = 0; i < N; ++i) { values[i] = storage->values[from[i]]; }
    }
    template <class Op> __device__ void Sort(K (&keys)[N], Op op) { V none[N]; cub_sort<false>(keys, none, op); }
    template <class Op> __device__ void Sort(K (&keys)[N], Op op, int valid, K last) {
        V none[N];
        int thread = threadIdx.x % W;
#pragma unroll
        for (int i = 0; i < N; ++i) { if (thread * N + i >= valid) { keys[i] = last; } }
        cub_sort<false>(keys, none, op);
    }
    template <class Op> __device__ void Sort(K (&keys)[N], V (&values)[N], Op op) { cub_sort<true>(keys, values, op); }
    template <class Op> __device__ void StableSort(K (&keys)[N], Op op) { V none[N]; cub_sort<false>(keys, none, op); }
    template <class Op> __device__ void StableSort(K (&keys)[N], V (&values)[N], Op op) { cub_sort<true>(keys, values, op); }
};
template <class K, int X, int N, class V = NullType, int Y = 1, int Z = 1> struct BlockMergeSort : cub_merge_sort<K, X, N, V, true> {
    using TempStorage = typename cub_merge_sort<K, X, N, V, true>::TempStorage;
    __device__ BlockMergeSort(TempStorage &s) { this->storage = &s; }
    __device__ BlockMergeSort() { __shared__ TempStorage own; this->storage = &own; }
};
template <class K, int N, int W = 32, class V = NullType> struct WarpMergeSort : cub_merge_sort<K, W, N, V, false> {
    using TempStorage = typename cub_merge_sort<K, W, N, V, false>::TempStorage;
    __device__ WarpMergeSort(TempStorage &s) { this->storage = &s; }
};

enum BlockHistogramAlgorithm { BLOCK_HISTO_SORT, BLOCK_HISTO_ATOMIC };
enum WarpLoadAlgorithm { WARP_LOAD_DIRECT, WARP_LOAD_STRIPED, WARP_LOAD_VECTORIZE, WARP_LOAD_TRANSPOSE };
enum WarpStoreAlgorithm { WARP_STORE_DIRECT, WARP_STORE_STRIPED, WARP_STORE_VECTORIZE, WARP_STORE_TRANSPOSE };

template <class T, int X, int Y = 1, int Z = 1, int P = 0> struct cub_neighbours {
    struct TempStorage { T first[X * Y * Z]; T last[X * Y * Z]; };
    TempStorage *storage;
    template <int N> __device__ T cub_before(T (&items)[N], T other, bool given) {
        int thread = cub_thread<X, Y, Z>();
        storage->last[thread] = items[N - 1];
        __syncthreads();
        if (thread == 0) { return given ? other : items[0]; }
        return storage->last[thread - 1];
    }
    template <int N> __device__ T cub_behind(T (&items)[N], T other, bool given) {
        int thread = cub_thread<X, Y, Z>();
        storage->first[thread] = items[0];
        __syncthreads();
        if (thread == X * Y * Z - 1) { return given ? other : items[N - 1]; }
        return storage->first[thread + 1];
    }
};

template <class T, int X, int Y = 1, int Z = 1, int P = 0> struct BlockDiscontinuity : cub_neighbours<T, X, Y, Z> {
    using TempStorage = typename cub_neighbours<T, X, Y, Z>::TempStorage;
    __device__ BlockDiscontinuity(TempStorage &s) { this->storage = &s; }
    __device__ BlockDiscontinuity() { __shared__ TempStorage own; this->storage = &own; }
    template <int N, class F, class Op> __device__ void cub_heads(F (&flags)[N], T (&items)[N], Op op, T other, bool given) {
        T before = this->cub_before(items, other, given);
        flags[0] = cub_thread<X, Y, Z>() == 0 && !given ? 1 : op(before, items[0]);
#pragma unroll
        for (int i = 1; i < N; ++i) { flags[i] = op(items[i - 1], items[i]); }
    }
    template <int N, class F, class Op> __device__ void cub_tails(F (&flags)[N], T (&items)[N], Op op, T other, bool given) {
        T behind = this->cub_behind(items, other, given);
        flags[N - 1] = cub_thread<X, Y, Z>() == X * Y * Z - 1 && !given ? 1 : op(items[N - 1], behind);
#pragma unroll
        for (int i = 0; i < N - 1; ++i) { flags[i] = op(items[i], items[i + 1]); }
    }
    template <int N, class F, class Op> __device__ void FlagHeads(F (&flags)[N], T (&items)[N], Op op) { cub_heads(flags, items, op, items[0], false); }
    template <int N, class F, class Op> __device__ void FlagHeads(F (&flags)[N], T (&items)[N], Op op, T before) { cub_heads(flags, items, op, before, true); }
    template <int N, class F, class Op> __device__ void FlagTails(F (&flags)[N], T (&items)[N], Op op) { cub_tails(flags, items, op, items[0], false); }
    template <int N, class F, class Op> __device__ void FlagTails(F (&flags)[N], T (&items)[N], Op op, T behind) { cub_tails(flags, items, op, behind, true); }
    template <int N, class F, class Op> __device__ void FlagHeadsAndTails(F (&heads)[N], F (&tails)[N], T (&items)[N], Op op) {
        cub_heads(heads, items, op, items[0], false);
        cub_tails(tails, items, op, items[0], false);
    }
};

template <class T, int X, int Y = 1, int Z = 1, int P = 0> struct BlockAdjacentDifference : cub_neighbours<T, X, Y, Z> {
    using TempStorage = typename cub_neighbours<T, X, Y, Z>::TempStorage;
    __device__ BlockAdjacentDifference(TempStorage &s) { this->storage = &s; }
    __device__ BlockAdjacentDifference() { __shared__ TempStorage own; this->storage = &own; }
    template <int N, class R, class Op> __device__ void cub_left(T (&items)[N], R (&out)[N], Op op, T other, bool given) {
        T before = this->cub_before(items, other, given);
#pragma unroll
        for (int i = N - 1; i > 0; --i) { out[i] = op(items[i], items[i - 1]); }
        out[0] = cub_thread<X, Y, Z>() == 0 && !given ? items[0] : op(items[0], before);
    }
    template <int N, class R, class Op> __device__ void cub_right(T (&items)[N], R (&out)[N], Op op, T other, bool given) {
        T behind = this->cub_behind(items, other, given);
#pragma unroll
        for (int i = 0; i < N - 1; ++i) { out[i] = op(items[i], items[i + 1]); }
        out[N - 1] = cub_thread<X, Y, Z>() == X * Y * Z - 1 && !given ? items[N - 1] : op(items[N - 1], behind);
    }
    template <int N, class R, class Op> __device__ void SubtractLeft(T (&items)[N], R (&out)[N], Op op) { cub_left(items, out, op, items[0], false); }
    template <int N, class R, class Op> __device__ void SubtractLeft(T (&items)[N], R (&out)[N], Op op, T before) { cub_left(items, out, op, before, true); }
    template <int N, class R, class Op> __device__ void SubtractRight(T (&items)[N], R (&out)[N], Op op) { cub_right(items, out, op, items[0], false); }
    template <int N, class R, class Op> __device__ void SubtractRight(T (&items)[N], R (&out)[N], Op op, T behind) { cub_right(items, out, op, behind, true); }
};

template <class T, int X, int Y = 1, int Z = 1, int P = 0> struct BlockShuffle {
    struct TempStorage { T items[X * Y * Z]; };
    TempStorage *storage;
    __device__ BlockShuffle(TempStorage &s) { storage = &s; }
    __device__ BlockShuffle() { __shared__ TempStorage own; storage = &own; }
    __device__ void Offset(T input, T &output, int distance = 1) {
        int thread = cub_thread<X, Y, Z>();
        storage->items[thread] = input;
        __syncthreads();
        int from = thread + distance;
        if (from >= 0 && from < X * Y * Z) { output = storage->items[from]; }
    }
    __device__ void Rotate(T input, T &output, unsigned distance = 1) {
        unsigned thread = cub_thread<X, Y, Z>();
        storage->items[thread] = input;
        __syncthreads();
        unsigned from = thread + distance;
        output = storage->items[from >= X * Y * Z ? from - X * Y * Z : from];
    }
    template <int N> __device__ void Up(T (&input)[N], T (&previous)[N]) {
        int thread = cub_thread<X, Y, Z>();
        storage->items[thread] = input[N - 1];
        __syncthreads();
#pragma unroll
        for (int i = N - 1; i > 0; --i) { previous[i] = input[i - 1]; }
        if (thread > 0) { previous[0] = storage->items[thread - 1]; }
    }
    template <int N> __device__ void Down(T (&input)[N], T (&next)[N]) {
        int thread = cub_thread<X, Y, Z>();
        storage->items[thread] = input[0];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < N - 1; ++i) { next[i] = input[i + 1]; }
        if (thread < X * Y * Z - 1) { next[N - 1] = storage->items[thread + 1]; }
    }
};

template <class T, int X, int N, int B, int A = BLOCK_HISTO_SORT, int Y = 1, int Z = 1, int P = 0> struct BlockHistogram {
    using Sort = BlockRadixSort<T, X, N>;
    using Ends = BlockDiscontinuity<T, X>;
    struct Sorted { typename Sort::TempStorage sort; typename Ends::TempStorage ends; unsigned begin[B]; unsigned end[B]; };
    union TempStorage { Sorted sorted; unsigned none; };
    TempStorage *storage;
    __device__ BlockHistogram(TempStorage &s) { storage = &s; }
    __device__ BlockHistogram() { __shared__ TempStorage own; storage = &own; }
    template <class C> __device__ void InitHistogram(C *histogram) {
#pragma unroll
        for (int at = cub_thread<X, Y, Z>(); at < B; at += X * Y * Z) { histogram[at] = 0; }
    }
    template <class C> __device__ void Composite(T (&items)[N], C *histogram) {
        if constexpr (A == BLOCK_HISTO_ATOMIC) {
#pragma unroll
            for (int i = 0; i < N; ++i) { atomicAdd(&histogram[items[i]], 1); }
        } else {
            int thread = cub_thread<X, Y, Z>();
            Sort(storage->sorted.sort).Sort(items);
            __syncthreads();
            for (int at = thread; at < B; at += X * Y * Z) { storage->sorted.begin[at] = X * N; storage->sorted.end[at] = X * N; }
            __syncthreads();
            int flags[N];
            Ends(storage->sorted.ends).FlagHeads(flags, items, [](T a, T b) { return a != b; });
#pragma unroll
            for (int i = 0; i < N; ++i) {
                if (flags[i]) {
                    storage->sorted.begin[items[i]] = thread * N + i;
                    if (thread * N + i > 0) { storage->sorted.end[items[i > 0 ? i - 1 : 0]] = thread * N + i; }
                }
            }
            __syncthreads();
            for (int at = thread; at < B; at += X * Y * Z) { histogram[at] += storage->sorted.end[at] - storage->sorted.begin[at]; }
        }
    }
    template <class C> __device__ void Histogram(T (&items)[N], C *histogram) {
        InitHistogram(histogram);
        __syncthreads();
        Composite(items, histogram);
    }
};

template <class T, int N, int W = 32, int A = 0> struct WarpExchange {
    struct TempStorage { T items[N * W]; };
    TempStorage *storage;
    __device__ WarpExchange(TempStorage &s) { storage = &s; }
    __device__ WarpExchange() {}
    template <class R> __device__ void StripedToBlocked(const T (&in)[N], R (&out)[N]) {
        int lane = threadIdx.x % W;
#pragma unroll
        for (int i = 0; i < N; ++i) { storage->items[i * W + lane] = in[i]; }
        __syncwarp();
#pragma unroll
        for (int i = 0; i < N; ++i) { out[i] = storage->items[lane * N + i]; }
    }
    template <class R> __device__ void BlockedToStriped(const T (&in)[N], R (&out)[N]) {
        int lane = threadIdx.x % W;
#pragma unroll
        for (int i = 0; i < N; ++i) { storage->items[lane * N + i] = in[i]; }
        __syncwarp();
#pragma unroll
        for (int i = 0; i < N; ++i) { out[i] = storage->items[i * W + lane]; }
    }
    template <class I> __device__ void ScatterToStriped(T (&items)[N], I (&ranks)[N]) {
        int lane = threadIdx.x % W;
#pragma unroll
        for (int i = 0; i < N; ++i) { storage->items[ranks[i]] = items[i]; }
        __syncwarp();
#pragma unroll
        for (int i = 0; i < N; ++i) { items[i] = storage->items[i * W + lane]; }
    }
};

template <class T, int N, int A = WARP_LOAD_DIRECT, int W = 32, class Q = T> struct WarpLoad {
    using Exchange = WarpExchange<T, N, W>;
    using TempStorage = typename Exchange::TempStorage;
    TempStorage *storage;
    __device__ WarpLoad(TempStorage &s) { storage = &s; }
    __device__ WarpLoad() {}
    __device__ static int cub_place(int i) {
        int lane = threadIdx.x % W;
        if constexpr (A == WARP_LOAD_DIRECT || A == WARP_LOAD_VECTORIZE) { return lane * N + i; }
        return i * W + lane;
    }
    __device__ void cub_arrange(T (&items)[N]) {
        if constexpr (A == WARP_LOAD_TRANSPOSE) { Exchange(*storage).StripedToBlocked(items, items); }
    }
    template <class I> __device__ void Load(I from, T (&items)[N]) {
#pragma unroll
        for (int i = 0; i < N; ++i) { items[i] = from[cub_place(i)]; }
        cub_arrange(items);
    }
    template <class I> __device__ void Load(I from, T (&items)[N], int valid) {
#pragma unroll
        for (int i = 0; i < N; ++i) { if (cub_place(i) < valid) { items[i] = from[cub_place(i)]; } }
        cub_arrange(items);
    }
    template <class I> __device__ void Load(I from, T (&items)[N], int valid, T otherwise) {
#pragma unroll
        for (int i = 0; i < N; ++i) { items[i] = cub_place(i) < valid ? from[cub_place(i)] : otherwise; }
        cub_arrange(items);
    }
};
template <class T, int N, int A = WARP_STORE_DIRECT, int W = 32, class Q = T> struct WarpStore {
    using Exchange = WarpExchange<T, N, W>;
    using TempStorage = typename Exchange::TempStorage;
    TempStorage *storage;
    __device__ WarpStore(TempStorage &s) { storage = &s; }
    __device__ WarpStore() {}
    __device__ static int cub_place(int i) {
        int lane = threadIdx.x % W;
        if constexpr (A == WARP_STORE_DIRECT || A == WARP_STORE_VECTORIZE) { return lane * N + i; }
        return i * W + lane;
    }
    __device__ void cub_arrange(T (&items)[N]) {
        if constexpr (A == WARP_STORE_TRANSPOSE) { Exchange(*storage).BlockedToStriped(items, items); }
    }
    template <class I> __device__ void Store(I to, T (&items)[N]) {
        cub_arrange(items);
#pragma unroll
        for (int i = 0; i < N; ++i) { to[cub_place(i)] = items[i]; }
    }
    template <class I> __device__ void Store(I to, T (&items)[N], int valid) {
        cub_arrange(items);
#pragma unroll
        for (int i = 0; i < N; ++i) { if (cub_place(i) < valid) { to[cub_place(i)] = items[i]; } }
    }
};

template <class T> struct Traits;
template <> struct Traits<float> {
    using UnsignedBits = unsigned int;
    static __device__ unsigned int TwiddleIn(unsigned int k) { return k ^ (k & 0x80000000u ? 0xffffffffu : 0x80000000u); }
    static __device__ unsigned int TwiddleOut(unsigned int k) { return k ^ (k & 0x80000000u ? 0x80000000u : 0xffffffffu); }
};
template <> struct Traits<double> {
    using UnsignedBits = unsigned long long;
    static __device__ unsigned long long TwiddleIn(unsigned long long k) { return k ^ (k >> 63 ? ~0ull : 1ull << 63); }
    static __device__ unsigned long long TwiddleOut(unsigned long long k) { return k ^ (k >> 63 ? 1ull << 63 : ~0ull); }
};
template <> struct Traits<__half> {
    using UnsignedBits = unsigned short;
    static __device__ unsigned short TwiddleIn(unsigned short k) { return k ^ (k & 0x8000 ? 0xffff : 0x8000); }
    static __device__ unsigned short TwiddleOut(unsigned short k) { return k ^ (k & 0x8000 ? 0x8000 : 0xffff); }
};
template <> struct Traits<__nv_bfloat16> : Traits<__half> {};
template <> struct Traits<int> {
    using UnsignedBits = unsigned int;
    static __device__ unsigned int TwiddleIn(unsigned int k) { return k ^ 0x80000000u; }
    static __device__ unsigned int TwiddleOut(unsigned int k) { return k ^ 0x80000000u; }
};
template <> struct Traits<long> {
    using UnsignedBits = unsigned long;
    static __device__ unsigned long TwiddleIn(unsigned long k) { return k ^ (1ul << 63); }
    static __device__ unsigned long TwiddleOut(unsigned long k) { return k ^ (1ul << 63); }
};
template <> struct Traits<unsigned int> {
    using UnsignedBits = unsigned int;
    static __device__ unsigned int TwiddleIn(unsigned int k) { return k; }
    static __device__ unsigned int TwiddleOut(unsigned int k) { return k; }
};
template <> struct Traits<unsigned long> {
    using UnsignedBits = unsigned long;
    static __device__ unsigned long TwiddleIn(unsigned long k) { return k; }
    static __device__ unsigned long TwiddleOut(unsigned long k) { return k; }
};
template <class T> struct NumericTraits : Traits<T> {};
}
namespace hipcub { using namespace cub; }
";
