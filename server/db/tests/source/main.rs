//! What programs mean: preprocessor, headers, templates, classes, launches, host code and arithmetic, as the accesses that come of them.

mod amd_targets;
mod build_options;
mod causes;
mod contents;
mod control;
mod declared;
mod deductions;
mod executed;
mod findings_told;
mod fitting;
mod idioms;
mod launch_order;
mod launchers;
mod library_objects;
mod members;
mod modern;
mod namespaces;
mod open_types;
mod opencl_two;
mod reading;
mod reads;
mod rows;
mod runs;
mod semantics;
mod templates;
