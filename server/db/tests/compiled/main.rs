//! The compiled kernel as predicted, held against compilers and what they made of kernels.

mod amd;
mod compilers;
mod executed;
mod kernels;
mod sound;
