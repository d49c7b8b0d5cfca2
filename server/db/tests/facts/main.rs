//! What the source says of a kernel, held against what is counted thread by thread or worked out by hand.

mod assembly;
mod counts;
mod covers;
mod dependence;
mod limits;
mod matrix_units;
mod memory;
mod metamorphic;
mod separation;
mod structural;
mod tensor;
mod tiles;
mod warp_groups;
