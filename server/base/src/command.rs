//! One compiler command line, read into what matters to a reader of the source.

mod driver;
mod options;
mod response;
mod words;

use std::path::{Path, PathBuf};

use crate::files::Files;
use crate::paths::absolute;
use driver::Driver;
use options::Reader;

pub use words::split_command;

/// What one compiler command line says about the sources it compiles.
///
/// Folders and sources are absolute and normalised. Flags that are not understood are ignored; the last of
/// several contradicting ones counts, as it does for the compilers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// The folder that the command runs in.
    pub directory: PathBuf,
    /// `-D` and `-U`, in the order in which the preprocessor of the device code sees them.
    ///
    /// nvcc hands what `-Xcompiler` carries to the host compiler, which preprocesses the device code as well,
    /// and puts it before its own: so do we.
    pub defines: Vec<Define>,
    /// Folders for both spellings of an include: those of `-I`, then of `-isystem`, then of `-idirafter`.
    /// No folder is twice.
    pub include_dirs: Vec<PathBuf>,
    /// Folders of `-iquote`: for `"…"` only.
    pub quote_dirs: Vec<PathBuf>,
    /// Files of `-include` and `--pre-include`, as spelled. Compilers look for them in `directory` and then
    /// as for `#include "…"`.
    pub forced_includes: Vec<PathBuf>,
    /// From `-x`, or from the name of a compiler that has one language. None: the file's extension decides.
    pub language: Option<CommandLanguage>,
    /// The GPUs compiled for, as `sm_80` or `gfx90a`, in order, none twice. A virtual architecture
    /// (`compute_80`) is listed as the GPU of the same number, features (`gfx90a:xnack-`) are left out.
    /// Empty where the command leaves the choice to the machine (`native`) or takes them all.
    pub architectures: Vec<String>,
    /// Whether device code may use the fast approximations of the mathematical functions.
    pub fast_math: bool,
    /// The bound on registers per thread.
    pub max_registers: Option<u32>,
    /// Whether device code is linked later (`-rdc=true`), so that calls may leave the file.
    pub relocatable: bool,
    /// `-cl-std=`, in capitals: `CL2.0`, `CLC++2021`.
    pub opencl_std: Option<String>,
    /// `-std=` of C or C++, as spelled: `c++17`, `gnu11`.
    pub cxx_std: Option<String>,
    /// The options as they are spelled, response files read.
    pub options: Vec<String>,
    /// The sources named; objects and libraries are left out.
    pub sources: Vec<PathBuf>,
    /// Response files that were read: the rest of the command changes when one of them does.
    pub response_files: Vec<PathBuf>,
    /// Response files that were not read: absent, unreadable, part of themselves or too many.
    pub unread_response_files: Vec<PathBuf>,
}

/// What a command does to one macro.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Define {
    /// `-D`. The name may have parameters, `F(x)`; without a value the value is `1`.
    Set {
        /// The macro, with its parameters.
        name: String,
        /// What it means.
        value: String,
    },
    /// `-U`.
    Unset(String),
}

/// The language that a command compiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CommandLanguage {
    /// CUDA C++.
    Cuda,
    /// HIP C++.
    Hip,
    /// OpenCL C or C++ for OpenCL.
    OpenCl,
    /// C, C++ or another language without device code.
    Host,
}

impl Command {
    /// Reads the words of a command line. The first is the compiler (or a launcher such as `ccache` in front
    /// of it), unless it starts with `-`: then all are options, as OpenCL's run-time compilers take them.
    ///
    /// Relative paths count from `directory`. `files` is asked for response files only.
    pub fn read(arguments: &[String], directory: &Path, files: &dyn Files) -> Self {
        let (driver, options) = Driver::find(arguments);
        let mut command = Self {
            directory: absolute(directory, Path::new("")),
            ..Self::default()
        };
        let options = response::expand(options, driver, files, &mut command);
        let mut reader = Reader::new(&command.directory);
        reader.read(&options, driver);
        reader.finish(driver, &mut command);
        command.options = options;
        command
    }
}
