//! Files, command lines and the search for headers.

mod command;
mod compile_commands;
mod files;
mod include_search;
