//! Views of arrays of several dimensions, C++23's `std::mdspan` (ISO C++23, 24.7.3) and those of CUDA and of the reference
//! implementation, whose headers are seldom on disk: of one to four dimensions.
//!
//! A layout that is not known has strides that are not known.

use crate::on_demand::Library;

pub(crate) static LIBRARY: Library = Library::new(
    &["mdspan"],
    |unit| unit.templates.contains_key("mdspan"),
    || TEXT.to_owned(),
);

const TEXT: &str = "
namespace std {
struct layout_right {};
struct layout_left {};
struct layout_stride {};
template <class T> struct default_accessor { using element_type = T; };
template <class I, unsigned long... E> struct extents { using index_type = I; };
template <class I, int R> struct extents_of;
template <class I> struct extents_of<I, 1> { using type = extents<I, ~0ul>; };
template <class I> struct extents_of<I, 2> { using type = extents<I, ~0ul, ~0ul>; };
template <class I> struct extents_of<I, 3> { using type = extents<I, ~0ul, ~0ul, ~0ul>; };
template <class I> struct extents_of<I, 4> { using type = extents<I, ~0ul, ~0ul, ~0ul, ~0ul>; };
template <class I, int R> using dextents = typename extents_of<I, R>::type;
template <class T, class X, class L = layout_right, class A = default_accessor<T>> struct mdspan;

template <class T, class I, unsigned long E0, class L, class A> struct mdspan<T, extents<I, E0>, L, A> {
    using element_type = T; using value_type = T; using index_type = I; using size_type = I; using reference = T &;
    using extents_type = extents<I, E0>; using layout_type = L; using accessor_type = A;
    T *data_; I e0_; I s0_;
    static constexpr int rank() { return 1; }
    I extent(int) const { if constexpr (E0 != ~0ul) { return E0; } else { return e0_; } }
    I stride(int) const { if constexpr (std::is_same_v<L, layout_right> || std::is_same_v<L, layout_left>) { return 1; } else { return s0_; } }
    I size() const { return extent(0); }
    T *data_handle() const { return data_; }
    T *data() const { return data_; }
    T &operator()(I i) const { return data_[i * stride(0)]; }
    T &operator[](I i) const { return data_[i * stride(0)]; }
};
template <class T, class I, unsigned long E0, unsigned long E1, class L, class A> struct mdspan<T, extents<I, E0, E1>, L, A> {
    using element_type = T; using value_type = T; using index_type = I; using size_type = I; using reference = T &;
    using extents_type = extents<I, E0, E1>; using layout_type = L; using accessor_type = A;
    T *data_; I e0_; I e1_; I s0_; I s1_;
    static constexpr int rank() { return 2; }
    I extent(int d) const {
        if (d == 0) { if constexpr (E0 != ~0ul) { return E0; } else { return e0_; } }
        if constexpr (E1 != ~0ul) { return E1; } else { return e1_; }
    }
    I stride(int d) const {
        if constexpr (std::is_same_v<L, layout_right>) { return d == 0 ? extent(1) : 1; }
        else if constexpr (std::is_same_v<L, layout_left>) { return d == 0 ? 1 : extent(0); }
        else { return d == 0 ? s0_ : s1_; }
    }
    I size() const { return extent(0) * extent(1); }
    T *data_handle() const { return data_; }
    T *data() const { return data_; }
    T &operator()(I i, I j) const { return data_[i * stride(0) + j * stride(1)]; }
    T &operator[](I i, I j) const { return data_[i * stride(0) + j * stride(1)]; }
};
template <class T, class I, unsigned long E0, unsigned long E1, unsigned long E2, class L, class A>
struct mdspan<T, extents<I, E0, E1, E2>, L, A> {
    using element_type = T; using value_type = T; using index_type = I; using size_type = I; using reference = T &;
    using extents_type = extents<I, E0, E1, E2>; using layout_type = L; using accessor_type = A;
    T *data_; I e0_; I e1_; I e2_; I s0_; I s1_; I s2_;
    static constexpr int rank() { return 3; }
    I extent(int d) const {
        if (d == 0) { if constexpr (E0 != ~0ul) { return E0; } else { return e0_; } }
        if (d == 1) { if constexpr (E1 != ~0ul) { return E1; } else { return e1_; } }
        if constexpr (E2 != ~0ul) { return E2; } else { return e2_; }
    }
    I stride(int d) const {
        if constexpr (std::is_same_v<L, layout_right>) { return d == 0 ? extent(1) * extent(2) : d == 1 ? extent(2) : 1; }
        else if constexpr (std::is_same_v<L, layout_left>) { return d == 0 ? 1 : d == 1 ? extent(0) : extent(0) * extent(1); }
        else { return d == 0 ? s0_ : d == 1 ? s1_ : s2_; }
    }
    I size() const { return extent(0) * extent(1) * extent(2); }
    T *data_handle() const { return data_; }
    T *data() const { return data_; }
    T &operator()(I i, I j, I k) const { return data_[i * stride(0) + j * stride(1) + k * stride(2)]; }
    T &operator[](I i, I j, I k) const { return data_[i * stride(0) + j * stride(1) + k * stride(2)]; }
};
template <class T, class I, unsigned long E0, unsigned long E1, unsigned long E2, unsigned long E3, class L, class A>
struct mdspan<T, extents<I, E0, E1, E2, E3>, L, A> {
    using element_type = T; using value_type = T; using index_type = I; using size_type = I; using reference = T &;
    using extents_type = extents<I, E0, E1, E2, E3>; using layout_type = L; using accessor_type = A;
    T *data_; I e0_; I e1_; I e2_; I e3_; I s0_; I s1_; I s2_; I s3_;
    static constexpr int rank() { return 4; }
    I extent(int d) const {
        if (d == 0) { if constexpr (E0 != ~0ul) { return E0; } else { return e0_; } }
        if (d == 1) { if constexpr (E1 != ~0ul) { return E1; } else { return e1_; } }
        if (d == 2) { if constexpr (E2 != ~0ul) { return E2; } else { return e2_; } }
        if constexpr (E3 != ~0ul) { return E3; } else { return e3_; }
    }
    I stride(int d) const {
        if constexpr (std::is_same_v<L, layout_right>) {
            return d == 0 ? extent(1) * extent(2) * extent(3) : d == 1 ? extent(2) * extent(3) : d == 2 ? extent(3) : 1;
        } else if constexpr (std::is_same_v<L, layout_left>) {
            return d == 0 ? 1 : d == 1 ? extent(0) : d == 2 ? extent(0) * extent(1) : extent(0) * extent(1) * extent(2);
        } else { return d == 0 ? s0_ : d == 1 ? s1_ : d == 2 ? s2_ : s3_; }
    }
    I size() const { return extent(0) * extent(1) * extent(2) * extent(3); }
    T *data_handle() const { return data_; }
    T *data() const { return data_; }
    T &operator()(I i, I j, I k, I l) const { return data_[i * stride(0) + j * stride(1) + k * stride(2) + l * stride(3)]; }
    T &operator[](I i, I j, I k, I l) const { return data_[i * stride(0) + j * stride(1) + k * stride(2) + l * stride(3)]; }
};
namespace experimental { using namespace std; }
}
namespace cuda { namespace std { using namespace ::std; } }
";
