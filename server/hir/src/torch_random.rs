//! How the kernels of `PyTorch` get the seed and the offset of Philox, for its headers are seldom on disk.
//!
//! `at::PhiloxCudaState` has either the two numbers or, while a graph is captured, pointers to them (ATen/cuda/PhiloxCudaState.h).

use crate::on_demand::Library;

pub(crate) static LIBRARY: Library = Library::new(
    &["philox::unpack", "PhiloxCudaState"],
    |unit| unit.types.contains_key("PhiloxCudaState"),
    || TEXT.to_owned(),
);

const TEXT: &str = "
namespace at {
struct PhiloxCudaState {
    union Payload { unsigned long val; long *ptr; };
    Payload seed_; Payload offset_;
    unsigned int offset_intragraph_;
    bool captured_;
};
namespace cuda { namespace philox {
__device__ inline std::tuple<unsigned long, unsigned long> unpack(PhiloxCudaState state) {
    if (state.captured_) {
        return std::make_tuple((unsigned long)*state.seed_.ptr, (unsigned long)*state.offset_.ptr + state.offset_intragraph_);
    }
    return std::make_tuple(state.seed_.val, state.offset_.val);
}
} }
}
";
