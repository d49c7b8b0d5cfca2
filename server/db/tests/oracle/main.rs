//! The analysis and the edits of code actions, held against runs of kernels thread by thread.

mod against;
mod drawn;
mod expressions;
mod generated;
mod generated_modern;
mod generated_wide;
mod kernels;
mod problems;
mod same_results;
