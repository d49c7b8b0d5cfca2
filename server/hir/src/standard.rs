//! The small classes of the standard library that programs compute types and numbers with.
//!
//! System headers are not read. These classes matter to what a kernel does all the same: a user's trait derives
//! from `std::true_type`, a call depends on `std::integral_constant`. They are declared here, in C++, as the
//! standard describes them (ISO C++17, 23.15 and 23.3), and stand behind every CUDA and HIP file.

use std::sync::{Arc, OnceLock};

use warplens_syntax::{Expanded, Language};

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
template <unsigned long... I> using index_sequence = integer_sequence<unsigned long, I...>;
}
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
        let parsed = Expanded::fragment(TEXT, language);
        let items = outline(&parsed);
        Arc::new(Unit::behind(&parsed, &items, None, true))
    });
    Some(Arc::clone(unit))
}
