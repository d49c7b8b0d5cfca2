//! The small classes of the standard library that programs compute types and numbers with.
//!
//! System headers are not read. These classes matter to what a kernel does all the same: a user's trait derives
//! from `std::true_type`, a call depends on `std::integral_constant`. They are declared here, in C++, as the
//! standard describes them (ISO C++17, 23.15 and 23.3), and come behind every CUDA and HIP file.

use std::sync::{Arc, OnceLock};

use warplens_ir::Type;
use warplens_syntax::{Expanded, Language};

use crate::definition::Definition;
use crate::types::class_of;
use crate::{Unit, outline};

const TEXT: &str = "
namespace std {
template <class T, T V>
struct integral_constant {
    using value_type = T;
    using type = integral_constant;
    static constexpr T value = V;
    constexpr operator T() const { return V; }
    constexpr T operator()() const { return V; }
};
template <bool B> using bool_constant = integral_constant<bool, B>;
using true_type = integral_constant<bool, true>;
using false_type = integral_constant<bool, false>;
template <class T, T... I>
struct integer_sequence {
    using value_type = T;
    static constexpr unsigned long size() { return sizeof...(I); }
};
template <unsigned long S, unsigned long A> struct aligned_storage {
    struct alignas(A) type { unsigned char data[S]; };
};
template <class T, unsigned long N = 0> struct span {
    T *first_; unsigned long size_;
    T *data() const { return first_; }
    T *begin() const { return first_; }
    T *end() const { return first_ + size_; }
    unsigned long size() const { return size_; }
    unsigned long size_bytes() const { return size_ * sizeof(T); }
    bool empty() const { return size_ == 0; }
    T &operator[](unsigned long i) const { return first_[i]; }
    T &front() const { return first_[0]; }
    T &back() const { return first_[size_ - 1]; }
    span<T> subspan(unsigned long from) const { return span<T>{first_ + from, size_ - from}; }
    span<T> subspan(unsigned long from, unsigned long n) const { return span<T>{first_ + from, n}; }
    span<T> first(unsigned long n) const { return span<T>{first_, n}; }
    span<T> last(unsigned long n) const { return span<T>{first_ + (size_ - n), n}; }
};
template <unsigned long... I> using index_sequence = integer_sequence<unsigned long, I...>;
}
namespace at {
using Half = __half;
using BFloat16 = __nv_bfloat16;
struct ScalarType {
    static constexpr int Byte = 0, Char = 1, Short = 2, Int = 3, Long = 4, Half = 5, Float = 6, Double = 7,
        Bool = 11, BFloat16 = 15, Float8_e5m2 = 23, Float8_e4m3fn = 24;
};
constexpr int kByte = 0, kChar = 1, kShort = 2, kInt = 3, kLong = 4, kHalf = 5, kFloat = 6, kDouble = 7,
    kBool = 11, kBFloat16 = 15, kFloat8_e5m2 = 23, kFloat8_e4m3fn = 24;
template <int S> struct TypeOfScalar;
template <> struct TypeOfScalar<0> { using type = unsigned char; };
template <> struct TypeOfScalar<1> { using type = signed char; };
template <> struct TypeOfScalar<2> { using type = short; };
template <> struct TypeOfScalar<3> { using type = int; };
template <> struct TypeOfScalar<4> { using type = long; };
template <> struct TypeOfScalar<5> { using type = __half; };
template <> struct TypeOfScalar<6> { using type = float; };
template <> struct TypeOfScalar<7> { using type = double; };
template <> struct TypeOfScalar<11> { using type = bool; };
template <> struct TypeOfScalar<15> { using type = __nv_bfloat16; };
template <> struct TypeOfScalar<23> { using type = unsigned char; };
template <> struct TypeOfScalar<24> { using type = unsigned char; };
template <int S> using scalar_of = typename TypeOfScalar<S>::type;
template <class T> struct OpMathType { using type = T; };
template <> struct OpMathType<__half> { using type = float; };
template <> struct OpMathType<__nv_bfloat16> { using type = float; };
template <class T> using opmath_type = typename OpMathType<T>::type;
template <class T, bool C> struct AccumulateType { using type = T; };
template <bool C> struct AccumulateType<__half, C> { using type = float; };
template <bool C> struct AccumulateType<__nv_bfloat16, C> { using type = float; };
template <class T, bool C> using acc_type = typename AccumulateType<T, C>::type;
template <class T, int N, class I> struct TensorAccessor;
template <class T, class I> struct TensorAccessor<T, 1, I> {
    T *data_; I size0;
    T &operator[](I i) const { return data_[i]; }
    I size(int d) const { return size0; }
    I stride(int d) const { return 1; }
    T *data() const { return data_; }
};
template <class T, class I> struct TensorAccessor<T, 2, I> {
    T *data_; I size0; I size1; I stride0;
    TensorAccessor<T, 1, I> operator[](I i) const { return TensorAccessor<T, 1, I>{data_ + i * stride0, size1}; }
    I size(int d) const { return d == 0 ? size0 : size1; }
    I stride(int d) const { return d == 0 ? stride0 : 1; }
    T *data() const { return data_; }
};
template <class T, class I> struct TensorAccessor<T, 3, I> {
    T *data_; I size0; I size1; I size2; I stride0; I stride1;
    TensorAccessor<T, 2, I> operator[](I i) const { return TensorAccessor<T, 2, I>{data_ + i * stride0, size1, size2, stride1}; }
    I size(int d) const { return d == 0 ? size0 : d == 1 ? size1 : size2; }
    I stride(int d) const { return d == 0 ? stride0 : d == 1 ? stride1 : 1; }
    T *data() const { return data_; }
};
template <class T, class I> struct TensorAccessor<T, 4, I> {
    T *data_; I size0; I size1; I size2; I size3; I stride0; I stride1; I stride2;
    TensorAccessor<T, 3, I> operator[](I i) const { return TensorAccessor<T, 3, I>{data_ + i * stride0, size1, size2, size3, stride1, stride2}; }
    I size(int d) const { return d == 0 ? size0 : d == 1 ? size1 : d == 2 ? size2 : size3; }
    I stride(int d) const { return d == 0 ? stride0 : d == 1 ? stride1 : d == 2 ? stride2 : 1; }
    T *data() const { return data_; }
};
template <class T, class I> struct TensorAccessor<T, 5, I> {
    T *data_; I size0; I size1; I size2; I size3; I size4; I stride0; I stride1; I stride2; I stride3;
    TensorAccessor<T, 4, I> operator[](I i) const { return TensorAccessor<T, 4, I>{data_ + i * stride0, size1, size2, size3, size4, stride1, stride2, stride3}; }
    I size(int d) const { return d == 0 ? size0 : d == 1 ? size1 : d == 2 ? size2 : d == 3 ? size3 : size4; }
    I stride(int d) const { return d == 0 ? stride0 : d == 1 ? stride1 : d == 2 ? stride2 : d == 3 ? stride3 : 1; }
    T *data() const { return data_; }
};
template <class T, class I> struct TensorAccessor<T, 6, I> {
    T *data_; I size0; I size1; I size2; I size3; I size4; I size5; I stride0; I stride1; I stride2; I stride3; I stride4;
    TensorAccessor<T, 5, I> operator[](I i) const { return TensorAccessor<T, 5, I>{data_ + i * stride0, size1, size2, size3, size4, size5, stride1, stride2, stride3, stride4}; }
    I size(int d) const { return d == 0 ? size0 : d == 1 ? size1 : d == 2 ? size2 : d == 3 ? size3 : d == 4 ? size4 : size5; }
    I stride(int d) const { return d == 0 ? stride0 : d == 1 ? stride1 : d == 2 ? stride2 : d == 3 ? stride3 : d == 4 ? stride4 : 1; }
    T *data() const { return data_; }
};
namespace cuda { namespace detail {
constexpr int CUDA_NUM_THREADS = 1024;
template <class T, class I> struct TensorInfo { T *data; I sizes[25]; I strides[25]; int dims; };
template <class T, class I, int D> struct IndexToOffset {
    static I get(I linear, const TensorInfo<T, I> &info) { return linear; }
};
} }
namespace native { namespace memory {
template <class T, int N> struct alignas(sizeof(T) * N) aligned_vector { T val[N]; };
template <int N, class T> aligned_vector<T, N> load_vector(const T *from, unsigned at) {
    return reinterpret_cast<const aligned_vector<T, N> *>(from)[at];
}
} }
namespace detail {
template <class T, int N> struct Array {
    T data[N];
    T &operator[](int i) { return data[i]; }
    const T &operator[](int i) const { return data[i]; }
};
}
template <class T, int N, class... P> using PackedTensorAccessor32 = TensorAccessor<T, N, int>;
template <class T, int N, class... P> using PackedTensorAccessor64 = TensorAccessor<T, N, long>;
template <class T, int N, class... P> using PackedTensorAccessor = TensorAccessor<T, N, long>;
template <class T, int N, class... P> using GenericPackedTensorAccessor = TensorAccessor<T, N, long>;
}
namespace torch { using namespace at; }
namespace c10 { using namespace at; }
";

/// The text behind every file of that language.
pub(crate) fn library(language: Language) -> Option<Arc<Unit>> {
    static CUDA: OnceLock<Arc<Unit>> = OnceLock::new();
    static HIP: OnceLock<Arc<Unit>> = OnceLock::new();
    let kept = match language {
        Language::Cuda => &CUDA,
        Language::Hip => &HIP,
        Language::OpenCl => return None,
    };
    let unit = kept.get_or_init(|| {
        let lanes = match language {
            Language::Cuda => "constexpr int C10_WARP_SIZE = 32;\n",
            _ => "",
        };
        let text = format!("{TEXT}{lanes}");
        let parsed = Expanded::fragment(&text, language);
        let items = outline(&parsed);
        Arc::new(Unit::behind(&parsed, &items, None, true))
    });
    Some(Arc::clone(unit))
}

/// True for the function by which a view of the text above says a stride.
pub(crate) fn says_a_stride(of: &Definition) -> bool {
    of.text.path.as_os_str().is_empty() && of.text.text[of.range.clone()].starts_with("I stride(")
}

/// Structures within structures that are looked into.
const DEEPEST: u32 = 4;

/// How a tensor lies that one index goes through.
pub(crate) const CONTIGUOUS: &str = "contiguous";

/// How a tensor is taken to lie in memory that a type is, or holds: the views of the text above have no stride along the last
/// dimension, and `IndexToOffset` none at all, which the library's own have.
pub(crate) fn assumed_layout(ty: &Type, depth: u32) -> Option<&'static str> {
    let Type::Struct(structure) = ty else {
        return None;
    };
    let own = class_of(structure).filter(|class| class.definition.text.path.as_os_str().is_empty());
    match own.as_ref().map(|class| class.name.as_str()) {
        Some("TensorAccessor") => Some("contiguous in the last dimension"),
        Some("TensorInfo") => Some(CONTIGUOUS),
        _ if depth < DEEPEST => {
            let mut fields = structure.fields.iter();
            fields.find_map(|field| assumed_layout(&field.ty, depth + 1))
        }
        _ => None,
    }
}
