//! Calibration with made-up machines, compilers and benchmarks.

mod machine;
mod runner;
mod synthetic;
