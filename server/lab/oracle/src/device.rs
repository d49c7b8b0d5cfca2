//! A GPU as a host program has it: arrays that stay from one launch to the next.

use std::collections::HashMap;
use std::rc::Rc;

use crate::lexer::Position;
use crate::machine::{Machine, RunResult};
use crate::memory::Memory;
use crate::scalar::Scalar;
use crate::tally::Space;
use crate::tree::Function;
use crate::types::Type;
use crate::{Error, Launch, Program, Run};

/// Elements of an array in a parameter that are told apart.
const MOST_ELEMENTS: u64 = 64;

/// A GPU that runs the kernels of one program.
#[derive(Debug)]
pub struct Device<'p> {
    program: &'p Program,
    memory: Memory,
    variables: HashMap<Rc<str>, u64>,
}

/// A parameter of a kernel as a launch passes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// Its bytes.
    pub size: u64,
    /// The words in it: one, or those of a structure.
    pub words: Vec<Word>,
}

/// A word in a parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Word {
    /// Where in a structure: `shape.rows`, `strides[1]`; empty where the parameter is the word.
    pub path: String,
    /// Bytes before it.
    pub offset: u64,
    /// Its type; `None`: a pointer.
    pub scalar: Option<Scalar>,
    /// Of a pointer: what it points to, where that is a scalar.
    pub element: Option<Scalar>,
}

impl<'p> Device<'p> {
    /// A GPU on which nothing was launched; the variables outside functions have their initial values.
    ///
    /// # Errors
    /// None that a program causes.
    pub fn new(program: &'p Program) -> Result<Device<'p>, Error> {
        let launch = Launch::default();
        let machine = Machine::new(&program.file, program.dialect, &launch)?;
        Ok(Device {
            program,
            variables: machine.variables(),
            memory: machine.memory,
        })
    }

    /// The address of a new array of that size, all 0.
    pub fn allocate(&mut self, bytes: usize) -> u64 {
        self.memory.add(vec![0; bytes], Space::Global)
    }

    /// Gives an array back: an access to it is an error from now on.
    pub fn free(&mut self, address: u64) {
        self.memory.take(address);
    }

    /// The bytes of an array from an address to its end; `None` where there is none.
    pub fn bytes(&mut self, address: u64) -> Option<&mut [u8]> {
        self.memory.from(address)
    }

    /// The address of a variable outside functions.
    pub fn variable(&self, name: &str) -> Option<u64> {
        self.variables.get(name).copied()
    }

    /// What a launch passes to a kernel under these template arguments.
    ///
    /// # Errors
    /// No such kernel, a type that is not known.
    pub fn parameters(&self, kernel: &str, launch: &Launch) -> Result<Vec<Parameter>, Error> {
        let mut machine = Machine::new(&self.program.file, self.program.dialect, launch)?;
        let function = machine.kernel(kernel)?;
        let types = types(&mut machine, function)?;
        let parameter = |(_, ty): &(Rc<str>, Type)| {
            let mut words = Vec::new();
            words_of(ty, "", 0, &mut words);
            Parameter {
                size: ty.size(),
                words,
            }
        };
        Ok(types.iter().map(parameter).collect())
    }

    /// Runs a kernel on the arrays; `arguments`: the bytes of each.
    ///
    /// # Errors
    /// As [`Program::run`]. What the kernel wrote until then stays written.
    pub fn launch(
        &mut self,
        kernel: &str,
        launch: &Launch,
        arguments: &[Vec<u8>],
    ) -> Result<Run, Error> {
        let mut machine = Machine::new(&self.program.file, self.program.dialect, launch)?;
        let function = machine.kernel(kernel)?;
        let types = types(&mut machine, function)?;
        let fits = |(given, (_, ty)): (&Vec<u8>, &(Rc<str>, Type))| given.len() as u64 == ty.size();
        if types.len() != arguments.len() || !arguments.iter().zip(&types).all(fits) {
            let what = "arguments that are not those of the kernel";
            return Err(Error::new(Position::default(), what));
        }
        let parameters = types
            .into_iter()
            .zip(arguments)
            .map(|((name, ty), bytes)| (name, ty, bytes.clone()))
            .collect();
        machine.memory.swap_arrays(&mut self.memory);
        let result = machine.run_blocks(function, parameters, &[]);
        machine.memory.swap_arrays(&mut self.memory);
        result?;
        Ok(machine.finish())
    }
}

/// The names and types of a kernel's parameters.
fn types(machine: &mut Machine, kernel: &Function) -> RunResult<Vec<(Rc<str>, Type)>> {
    let parameters = kernel.parameters.iter();
    parameters
        .map(|parameter| Ok((parameter.name.clone(), machine.resolve(&parameter.ty)?)))
        .collect()
}

fn words_of(ty: &Type, path: &str, offset: u64, words: &mut Vec<Word>) {
    let mut word = |scalar, element| {
        words.push(Word {
            path: path.to_owned(),
            offset,
            scalar,
            element,
        });
    };
    match ty {
        Type::Scalar(scalar) => word(Some(*scalar), None),
        Type::Pointer(to) => match **to {
            Type::Scalar(element) => word(None, Some(element)),
            _ => word(None, None),
        },
        Type::Struct(layout) => {
            for (name, ty, at) in &layout.fields {
                let dot = if path.is_empty() { "" } else { "." };
                words_of(ty, &format!("{path}{dot}{name}"), offset + at, words);
            }
        }
        Type::Array(element, count) => {
            for index in 0..(*count).min(MOST_ELEMENTS) {
                let at = offset + index * element.size();
                words_of(element, &format!("{path}[{index}]"), at, words);
            }
        }
        Type::Vector(scalar, lanes, _) => {
            for (index, name) in ["x", "y", "z", "w"].iter().enumerate() {
                if index < usize::from(*lanes) {
                    let dot = if path.is_empty() { "" } else { "." };
                    words.push(Word {
                        path: format!("{path}{dot}{name}"),
                        offset: offset + index as u64 * scalar.size(),
                        scalar: Some(*scalar),
                        element: None,
                    });
                }
            }
        }
        Type::Void => {}
    }
}
