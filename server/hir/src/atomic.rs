//! The atomic objects of libcu++, for the toolkit's headers are not read.
//!
//! `cuda::atomic` holds its value, `cuda::atomic_ref` refers to one. Both are declared in C++ by what their members do to memory: a
//! load, a store, or an atomic operation of the element's width at the object's address. Orders and scopes change no access.

use crate::on_demand::Library;

/// Its declarations.
pub(crate) static LIBRARY: Library = Library::new(
    &["atomic_ref", "cuda::atomic", "std::atomic"],
    |unit| unit.templates.contains_key("atomic_ref"),
    text,
);

/// The members of both, on the value `HELD` by its address. Each load and store happens as it is written. Hardware has no maximum of
/// floats: theirs are exchanged until nothing came between.
const MEMBERS: &str = "
    static constexpr bool is_always_lock_free = true;
    using value_type = T;
    __device__ bool is_lock_free() const { return true; }
    __device__ T load(int order = 0) const { volatile const T *at = &HELD; return *at; }
    __device__ operator T() const { return load(); }
    __device__ void store(T v, int order = 0) { volatile T *at = &HELD; *at = v; }
    __device__ T operator=(T v) { store(v); return v; }
    __device__ T exchange(T v, int order = 0) { return atomicExch(&HELD, v); }
    __device__ bool compare_exchange_strong(T &expected, T v, int order = 0, int failed = 0) {
        T old = atomicCAS(&HELD, expected, v);
        bool same = old == expected;
        expected = old;
        return same;
    }
    __device__ bool compare_exchange_weak(T &expected, T v, int order = 0, int failed = 0) {
        return compare_exchange_strong(expected, v);
    }
    __device__ T fetch_add(T v, int order = 0) { return atomicAdd(&HELD, v); }
    __device__ T fetch_sub(T v, int order = 0) { return atomicAdd(&HELD, -v); }
    __device__ T fetch_and(T v, int order = 0) { return atomicAnd(&HELD, v); }
    __device__ T fetch_or(T v, int order = 0) { return atomicOr(&HELD, v); }
    __device__ T fetch_xor(T v, int order = 0) { return atomicXor(&HELD, v); }
    __device__ T fetch_max(T v, int order = 0) {
        if constexpr (std::is_floating_point_v<T>) {
            T old = load();
            while (old < v && !compare_exchange_strong(old, v)) { }
            return old;
        } else {
            return atomicMax(&HELD, v);
        }
    }
    __device__ T fetch_min(T v, int order = 0) {
        if constexpr (std::is_floating_point_v<T>) {
            T old = load();
            while (v < old && !compare_exchange_strong(old, v)) { }
            return old;
        } else {
            return atomicMin(&HELD, v);
        }
    }
    __device__ T operator++() { return fetch_add(1) + 1; }
    __device__ T operator--() { return fetch_sub(1) - 1; }
    __device__ T operator++(int) { return fetch_add(1); }
    __device__ T operator--(int) { return fetch_sub(1); }
    __device__ T operator+=(T v) { return fetch_add(v) + v; }
    __device__ T operator-=(T v) { return fetch_sub(v) - v; }
    __device__ T operator&=(T v) { return fetch_and(v) & v; }
    __device__ T operator|=(T v) { return fetch_or(v) | v; }
    __device__ T operator^=(T v) { return fetch_xor(v) ^ v; }
    __device__ void wait(T old, int order = 0) const { while (load() == old) { } }
    __device__ void notify_one() { }
    __device__ void notify_all() { }
";

/// Both classes.
fn text() -> String {
    format!(
        "namespace cuda {{\n\
         template <class T, int S = 0> struct atomic {{\n\
         T held;\n\
         __device__ atomic() {{ }}\n\
         __device__ atomic(T v) {{ held = v; }}\n\
         {}}};\n\
         template <class T, int S = 0> struct atomic_ref {{\n\
         T *to;\n\
         __device__ atomic_ref(T &v) {{ to = &v; }}\n\
         {}}};\n\
         }}\n\
         namespace std {{\n\
         template <class T> using atomic = cuda::atomic<T>;\n\
         template <class T> using atomic_ref = cuda::atomic_ref<T>;\n\
         }}\n",
        MEMBERS.replace("HELD", "held"),
        MEMBERS.replace("&HELD", "to"),
    )
}
