//! The models from source to answer, and what they share: clock, GPUs, pictures, the figures of the papers.

mod clock;
mod every_gpu;
mod formulas;
mod functions;
mod hong_kim_table5;
mod linear;
mod papers_orderings;
mod pictures;
mod side_by_side;
mod spellings;
mod strange;
mod timing;
mod trace;
