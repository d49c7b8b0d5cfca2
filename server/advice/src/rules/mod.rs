//! The registry of rules. `cargo xtask generate` writes it from the folders beside it.

use crate::rule::Rule;

pub(crate) mod arith {
    pub(crate) mod double_literal;
    pub(crate) mod fast_math;
    pub(crate) mod fp64_slow_gpu;
    pub(crate) mod half_scalar;
    pub(crate) mod int_div_mod;
    pub(crate) mod narrow_int;
    pub(crate) mod no_fma;
    pub(crate) mod pow;
    pub(crate) mod sincos;
    pub(crate) mod slow_trig_range;
}
pub(crate) mod r#async {
    pub(crate) mod narrow_copy;
    pub(crate) mod shallow_pipeline;
    pub(crate) mod wait_all;
}
pub(crate) mod atomic {
    pub(crate) mod histogram;
    pub(crate) mod hot_address;
    pub(crate) mod in_loop;
}
pub(crate) mod call {
    pub(crate) mod not_inlined;
}
pub(crate) mod cluster {
    pub(crate) mod size;
}
pub(crate) mod config {
    pub(crate) mod invalid;
    pub(crate) mod unused_suppression;
}
pub(crate) mod r#const {
    pub(crate) mod divergent_index;
}
pub(crate) mod div {
    pub(crate) mod early_exit_before_barrier;
    pub(crate) mod loop_trip;
    pub(crate) mod tid_branch;
}
pub(crate) mod host {
    pub(crate) mod allocate_in_loop;
    pub(crate) mod fixed_grid;
    pub(crate) mod launch_loop;
    pub(crate) mod pageable_or_managed;
    pub(crate) mod repeated_copy;
    pub(crate) mod sync_each;
}
pub(crate) mod ilp {
    pub(crate) mod dependent_chain;
}
pub(crate) mod input {
    pub(crate) mod unreadable;
}
pub(crate) mod internal {
    pub(crate) mod lost_kernel;
}
pub(crate) mod launch {
    pub(crate) mod impossible;
    pub(crate) mod missing_instruction;
    pub(crate) mod not_warp_multiple;
    pub(crate) mod one_fat_block;
    pub(crate) mod shared_opt_in;
    pub(crate) mod small_grid;
    pub(crate) mod tail;
    pub(crate) mod tiny_block;
}
pub(crate) mod local {
    pub(crate) mod dynamic_array;
    pub(crate) mod large_frame;
}
pub(crate) mod r#loop {
    pub(crate) mod uniform_branch;
    pub(crate) mod unroll;
    pub(crate) mod unsigned_counter;
}
pub(crate) mod mem {
    pub(crate) mod aos;
    pub(crate) mod async_copy;
    pub(crate) mod column_walk;
    pub(crate) mod gather;
    pub(crate) mod l2_working_set;
    pub(crate) mod loop_invariant_load;
    pub(crate) mod misaligned;
    pub(crate) mod narrow_access;
    pub(crate) mod no_restrict;
    pub(crate) mod redundant_global;
    pub(crate) mod strided;
    pub(crate) mod uncoalesced;
    pub(crate) mod warp_same_address;
}
pub(crate) mod occ {
    pub(crate) mod bounds_spill;
    pub(crate) mod limiter;
    pub(crate) mod no_launch_bounds;
}
pub(crate) mod reg {
    pub(crate) mod pressure;
    pub(crate) mod spill;
}
pub(crate) mod smem {
    pub(crate) mod bank_conflict;
    pub(crate) mod over_budget;
    pub(crate) mod over_pad;
    pub(crate) mod unused_tile;
}
pub(crate) mod sync {
    pub(crate) mod redundant_barrier;
    pub(crate) mod wide_fence;
}
pub(crate) mod tensor {
    pub(crate) mod fragment_shape;
    pub(crate) mod idle;
    pub(crate) mod serialised;
    pub(crate) mod setmaxnreg;
}
pub(crate) mod tma {
    pub(crate) mod alignment;
}

/// Every rule, sorted by id.
pub(crate) static RULES: &[Rule] = &[
    arith::double_literal::RULE,
    arith::fast_math::RULE,
    arith::fp64_slow_gpu::RULE,
    arith::half_scalar::RULE,
    arith::int_div_mod::RULE,
    arith::narrow_int::RULE,
    arith::no_fma::RULE,
    arith::pow::RULE,
    arith::sincos::RULE,
    arith::slow_trig_range::RULE,
    r#async::narrow_copy::RULE,
    r#async::shallow_pipeline::RULE,
    r#async::wait_all::RULE,
    atomic::histogram::RULE,
    atomic::hot_address::RULE,
    atomic::in_loop::RULE,
    call::not_inlined::RULE,
    cluster::size::RULE,
    config::invalid::RULE,
    config::unused_suppression::RULE,
    r#const::divergent_index::RULE,
    div::early_exit_before_barrier::RULE,
    div::loop_trip::RULE,
    div::tid_branch::RULE,
    host::allocate_in_loop::RULE,
    host::fixed_grid::RULE,
    host::launch_loop::RULE,
    host::pageable_or_managed::RULE,
    host::repeated_copy::RULE,
    host::sync_each::RULE,
    ilp::dependent_chain::RULE,
    input::unreadable::RULE,
    internal::lost_kernel::RULE,
    launch::impossible::RULE,
    launch::missing_instruction::RULE,
    launch::not_warp_multiple::RULE,
    launch::one_fat_block::RULE,
    launch::shared_opt_in::RULE,
    launch::small_grid::RULE,
    launch::tail::RULE,
    launch::tiny_block::RULE,
    local::dynamic_array::RULE,
    local::large_frame::RULE,
    r#loop::uniform_branch::RULE,
    r#loop::unroll::RULE,
    r#loop::unsigned_counter::RULE,
    mem::aos::RULE,
    mem::async_copy::RULE,
    mem::column_walk::RULE,
    mem::gather::RULE,
    mem::l2_working_set::RULE,
    mem::loop_invariant_load::RULE,
    mem::misaligned::RULE,
    mem::narrow_access::RULE,
    mem::no_restrict::RULE,
    mem::redundant_global::RULE,
    mem::strided::RULE,
    mem::uncoalesced::RULE,
    mem::warp_same_address::RULE,
    occ::bounds_spill::RULE,
    occ::limiter::RULE,
    occ::no_launch_bounds::RULE,
    reg::pressure::RULE,
    reg::spill::RULE,
    smem::bank_conflict::RULE,
    smem::over_budget::RULE,
    smem::over_pad::RULE,
    smem::unused_tile::RULE,
    sync::redundant_barrier::RULE,
    sync::wide_fence::RULE,
    tensor::fragment_shape::RULE,
    tensor::idle::RULE,
    tensor::serialised::RULE,
    tensor::setmaxnreg::RULE,
    tma::alignment::RULE,
];
