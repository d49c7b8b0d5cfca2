//! What surrounds a source file: the command line that compiles it, the other files, and the search for
//! the files it includes.
//!
//! Files, folders and command lines are all this crate knows; what is in a file is no business of its.
//! Nothing is executed, and no answer depends on the environment of the process.

mod bounds;
pub mod build_macros;
mod command;
mod compile_commands;
mod files;
mod include_search;
mod launch_json;
mod makefile;
mod paths;
mod regular;
mod run_lines;
mod system_headers;
mod text;
mod walk;

pub use bounds::Bounds;
pub use command::{Command, CommandLanguage, Define, split_command};
pub use compile_commands::{CompileCommands, DatabaseProblem, DatabaseState, FileCommand};
pub use files::{DiskFiles, Entry, EntryKind, Files, NoFiles, OpenFiles, SourceFile, Stamp};
pub use include_search::{HeaderIndex, IncludeSearch};
pub use launch_json::in_launch_json;
pub use makefile::{Makefile, UNKNOWN};
pub use paths::normalise;
pub use regular::{open_regular, read_regular};
pub use run_lines::{Program, RunLine, built_names, in_cmake, in_makefile, in_script};
pub use system_headers::{is_of_layouts, is_system_header};
pub use text::{NotText, decode};
pub use walk::walk;
