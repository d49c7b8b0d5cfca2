//! Runs CUDA and OpenCL kernels thread by thread on concrete values and counts, by brute force, what their
//! warps do: the truth that the analysis is held against. Nothing here is shared with the analysis: the words,
//! the grammar, the types, the arithmetic and the counting are this crate's own.
//!
//! The threads of a block run in lock step, statement by statement, each statement for those threads that are
//! there (structured divergence with reconvergence at the post-dominator); blocks run one after another. That is
//! one of the orders a GPU may choose: a kernel whose result depends on another order is a race.
//!
//! What is counted follows the public interface of warplens: requests of the accesses as written, warps at
//! branches, operations by class. What C leaves undefined is noted in [`Run::undefined`].

mod calls;
mod device;
mod execute;
mod expressions;
mod lexer;
mod machine;
mod memory;
mod parse;
mod races;
mod scalar;
mod splits;
mod tally;
mod tree;
mod types;
mod verdict;

use std::collections::BTreeMap;
use std::fmt;

pub use device::{Device, Parameter, Word};
pub use lexer::Position;
pub use scalar::Scalar;
pub use tally::{
    Access, AccessKey, BranchCounts, BranchKey, BranchKind, Class, Requests, Space, Tally,
};
pub use verdict::Verdict;

/// The language of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// CUDA C++, or HIP.
    Cuda,
    /// OpenCL C.
    OpenCl,
}

/// Why a text was not read or a kernel not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// Where.
    pub place: Position,
    /// What.
    pub what: String,
}

impl Error {
    pub(crate) fn new(place: Position, what: &str) -> Error {
        Error {
            place,
            what: what.to_owned(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}: {}",
            self.place.line, self.place.column, self.what
        )
    }
}

impl std::error::Error for Error {}

/// An argument of a kernel.
#[derive(Debug, Clone, PartialEq)]
pub enum Argument {
    /// An integer, converted to the parameter's type.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// An array in device memory with these bytes; [`Run::buffers`] gives it back.
    Buffer(Vec<u8>),
    /// An array without end or contents, for kernels of which only the addresses matter.
    Endless,
    /// OpenCL's `__local` pointer: its bytes.
    Shared(u64),
    /// A structure, field by field.
    Fields(Vec<Argument>),
}

/// What a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterKind {
    /// An array.
    Array,
    /// An integer.
    Whole,
    /// A floating-point number.
    Real,
    /// Something else.
    Other,
}

/// How a kernel is launched.
#[derive(Debug, Clone, PartialEq)]
pub struct Launch {
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Bytes of CUDA's dynamic shared memory.
    pub dynamic_shared_bytes: u64,
    /// Lanes of a warp.
    pub warp: usize,
    /// The kernel's template arguments by name: a number, or a type as it is written.
    pub template: BTreeMap<String, String>,
    /// True: an access outside its array is an error. False: it is counted and has no effect.
    pub checked: bool,
    /// The most statements and expressions evaluated per lane.
    pub steps: u64,
    /// Whether [`Run::race`] is looked for.
    pub races: bool,
    /// For [`Run::race`], the barriers of this line hold the lanes of each warp together, and no more.
    pub narrowed: Option<u32>,
    /// Another number, other contents of the arrays without end.
    pub contents: u64,
    /// The most blocks to run, spread over the grid.
    pub blocks: u64,
}

impl Default for Launch {
    fn default() -> Launch {
        Launch {
            grid: [1; 3],
            block: [32, 1, 1],
            dynamic_shared_bytes: 0,
            warp: 32,
            template: BTreeMap::new(),
            checked: true,
            steps: 2_000_000_000,
            races: false,
            narrowed: None,
            contents: 0,
            blocks: u64::MAX,
        }
    }
}

/// What came of a run.
#[derive(Debug, Clone)]
pub struct Run {
    /// What was counted.
    pub tally: Tally,
    /// The contents of the [`Argument::Buffer`]s afterwards, in the order of the arguments.
    pub buffers: Vec<Vec<u8>>,
    /// The first thing that C does not define: an overflow, a shift past the width; else a barrier that some
    /// threads of the block do not come to.
    pub undefined: Option<Error>,
    /// Some thread of a block came to a barrier that another does not come to, one that has returned among them.
    pub parted: bool,
    /// Two threads of a block, by their numbers, that touch the same byte, one of them to write, with no barrier in
    /// between: of the block, or of their warp. Atomics do not meet.
    pub race: Option<(usize, usize)>,
}

impl Run {
    /// What [`Run::undefined`] says of a barrier.
    pub const MISSED: &str = "a barrier that some threads do not come to";
}

/// A text that was read.
#[derive(Debug)]
pub struct Program {
    file: parse::File,
    dialect: Dialect,
}

impl Program {
    /// Reads a text. Host code is passed over.
    ///
    /// # Errors
    /// The text cannot be lexed.
    pub fn read(text: &str, dialect: Dialect) -> Result<Program, Error> {
        Ok(Program {
            file: parse::file(text, dialect)?,
            dialect,
        })
    }

    /// Kernels and device functions that were not read, and why.
    pub fn unread(&self) -> &[Error] {
        &self.file.unread
    }

    /// The names of the kernels that were read, sorted.
    pub fn kernels(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .file
            .functions
            .values()
            .flatten()
            .filter(|function| function.kernel)
            .map(|function| function.name.to_string())
            .collect();
        names.sort();
        names
    }

    /// The names of a kernel's parameters; empty where there is no such kernel.
    pub fn parameters(&self, kernel: &str) -> Vec<String> {
        self.file
            .functions
            .get(kernel)
            .and_then(|all| all.first())
            .map(|function| {
                function
                    .parameters
                    .iter()
                    .map(|p| p.name.to_string())
                    .collect()
            })
            .unwrap_or_default()
    }

    /// The parameters of a kernel and what may be given for each; empty where there is no such kernel.
    pub fn signature(&self, kernel: &str) -> Vec<(String, ParameterKind)> {
        let all = self.file.functions.get(kernel);
        let function = all.and_then(|all| all.iter().find(|function| function.kernel));
        let takes = |ty: &tree::TypeName| self.takes(ty, 0);
        function.map_or_else(Vec::new, |function| {
            let parameters = function.parameters.iter();
            parameters
                .map(|one| (one.name.to_string(), takes(&one.ty)))
                .collect()
        })
    }

    fn takes(&self, ty: &tree::TypeName, depth: usize) -> ParameterKind {
        match ty {
            tree::TypeName::Pointer(_) => ParameterKind::Array,
            tree::TypeName::Scalar(scalar) if scalar.is_float() => ParameterKind::Real,
            tree::TypeName::Scalar(_) => ParameterKind::Whole,
            tree::TypeName::Named(name) if depth < 8 => match self.file.aliases.get(name) {
                Some(alias) => self.takes(alias, depth + 1),
                None => ParameterKind::Other,
            },
            _ => ParameterKind::Other,
        }
    }

    /// The names of a kernel's template parameters.
    pub fn template(&self, kernel: &str) -> Vec<String> {
        let all = self.file.functions.get(kernel).into_iter().flatten();
        let template = all
            .filter(|function| function.kernel)
            .flat_map(|one| &one.template);
        template
            .map(|parameter| parameter.name.to_string())
            .collect()
    }

    /// Runs a kernel.
    ///
    /// # Errors
    /// No such kernel, arguments that do not fit, a construct that is not run, an access outside its array, more
    /// steps than allowed.
    pub fn run(&self, kernel: &str, launch: &Launch, arguments: &[Argument]) -> Result<Run, Error> {
        machine::Machine::new(&self.file, self.dialect, launch)?.run(kernel, arguments)
    }
}

/// Whether two kernels leave the same bytes in the same arrays under one launch.
///
/// # Errors
/// A kernel cannot be run, or the first difference: which array, which byte.
pub fn same_result(
    a: (&Program, &str),
    b: (&Program, &str),
    launch: &Launch,
    arguments: &[Argument],
) -> Result<(), String> {
    let run = |(program, kernel): (&Program, &str)| {
        let run = program
            .run(kernel, launch, arguments)
            .map_err(|error| format!("{kernel}: {error}"))?;
        match run.undefined {
            Some(what) => Err(format!("{kernel}: {what}")),
            None => Ok(run.buffers),
        }
    };
    let (first, second) = (run(a)?, run(b)?);
    for (which, (x, y)) in first.iter().zip(&second).enumerate() {
        if let Some(at) = x.iter().zip(y).position(|(x, y)| x != y) {
            return Err(format!("array {which} differs at byte {at}"));
        }
    }
    Ok(())
}
