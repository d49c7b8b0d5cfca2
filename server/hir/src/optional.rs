//! `std::optional`, `cuda::std::optional`: the toolkit's headers are not read.

use crate::on_demand::Library;

/// Its declarations.
pub(crate) static LIBRARY: Library = Library::new(
    &["optional"],
    |unit| unit.templates.contains_key("optional"),
    text,
);

/// The class (C++20 20.6.3). What it holds is there whether it is engaged or not.
const CLASS: &str = "
struct nullopt_t { };
constexpr nullopt_t nullopt{};
template <class T> struct optional {
    T held;
    bool engaged;
    __device__ optional() : engaged(false) { }
    __device__ optional(nullopt_t) : engaged(false) { }
    __device__ optional(const T &v) : held(v), engaged(true) { }
    __device__ bool has_value() const { return engaged; }
    __device__ explicit operator bool() const { return engaged; }
    __device__ T &operator*() { return held; }
    __device__ T *operator->() { return &held; }
    __device__ T &value() { return held; }
    __device__ T value_or(T other) const { return engaged ? held : other; }
    __device__ T &emplace(T v) { held = v; engaged = true; return held; }
    __device__ void reset() { engaged = false; }
};
template <class T> __device__ optional<T> make_optional(T v) { return optional<T>(v); }
";

fn text() -> String {
    format!("namespace std {{{CLASS}}}\nnamespace cuda {{ namespace std {{{CLASS}}} }}\n")
}
