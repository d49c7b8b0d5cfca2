//! What every task of the repository is on, and the laboratory's as well: where things are in the checkout, and programs run
//! within a limit.

pub mod process;
pub mod repository;
