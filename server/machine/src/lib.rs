//! What warplens knows about GPUs: profiles (data, one TOML a GPU), occupancy, and what one
//! warp's memory request costs on each architecture.
//!
//! Everything here is pure. Profiles are the only place where GPUs differ: no code asks for a
//! GPU's name or capability, it asks the profile for the rule or the figure.

mod clock;
mod derived;
mod error;
mod global;
mod launch;
mod load;
mod name;
mod occupancy;
mod pipe;
mod profile;
mod profiles;
mod property;
mod rules;
mod serial;
mod shared;
mod spelling;

pub use clock::CUBE_ROOT;
pub use error::ProfileError;
pub use global::global_unit_bytes_for;
pub use global::{
    Access, GlobalRequest, address_period, global_request, global_unit_bytes, lines_looked_up,
};
pub use launch::launch_problem;
pub use occupancy::{Limiter, Limits, Occupancy, Step, occupancy, registers_for_blocks};
pub use pipe::{Mix, Pipe, Timing};
pub use profile::{Figure, KeySpec, Profile, Vendor};
pub use profiles::{DEFAULT_GPU, Profiles};
pub use property::{Arithmetic, Direction, Memory, Number, Property, Reach};
pub use rules::{BankRule, GlobalRule, KernelArguments, RegisterScope, Rule, RuleSpec};
pub use serial::{atomic_passes, constant_passes};
pub use shared::{
    SharedRequest, bank_of, bank_period, passes_by_width, rows_request, shared_request,
};
