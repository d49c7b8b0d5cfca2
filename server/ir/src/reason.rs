//! Why something was not understood.

use std::fmt;

/// Why a statement or an expression was not understood. Its text groups well: `check --stats` counts by it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The grammar does not accept it.
    SyntaxError,
    /// Its function is defined in no file that was read.
    UnreadFunction,
    /// The function calls itself in a form that is not followed, or its body cannot be read.
    Recursive,
    /// A lambda that is not followed.
    Lambda,
    /// A pack that is not expanded.
    ParameterPack,
    /// `this` without an object.
    NoThis,
    /// An expression of another kind.
    Expression,
    /// An operator of another kind.
    Operator,
    /// The name is declared in no file that was read.
    Undeclared,
    /// The structure is declared in no file that was read.
    UnknownField,
    /// An access whose size is not known.
    UnreadType,
    /// A statement of another kind.
    Statement,
    /// The condition of a branch.
    Condition,
    /// The condition of a loop.
    LoopCondition,
    /// A `switch` whose cases are not followed.
    Switch,
    /// A range whose length is not known.
    RangeLoop,
    /// A binding to what has no known fields.
    StructuredBinding,
    /// A jump that is neither a branch nor a loop.
    Goto,
    /// An instruction of PTX that is not known, by its mnemonic, or with other operands than it takes.
    Assembly(Box<str>),
    /// The kernel is made of CuTe's layouts.
    Layouts,
    /// A limit of inlining, expressions or steps was met.
    TooMuch,
    /// What the preprocessor found wrong with a directive or a macro, in its words.
    Preprocessor(Box<str>),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::SyntaxError => "syntax error",
            Reason::UnreadFunction => "call to a function that was not read",
            Reason::Recursive => "recursive or unreadable device function",
            Reason::Lambda => "lambda",
            Reason::ParameterPack => "parameter pack",
            Reason::NoThis => "this outside a member function",
            Reason::Expression => "expression not understood",
            Reason::Operator => "operator not understood",
            Reason::Undeclared => "name not declared in what was read",
            Reason::UnknownField => "field of a type not declared in what was read",
            Reason::UnreadType => "access to a type that was not read",
            Reason::Statement => "statement not understood",
            Reason::Condition => "condition not understood",
            Reason::LoopCondition => "loop condition not understood",
            Reason::Switch => "switch not understood",
            Reason::RangeLoop => "range-based for",
            Reason::StructuredBinding => "structured binding",
            Reason::Goto => "goto",
            Reason::Layouts => {
                "CuTe layouts need a compiler: with one (`warplens.compiler`, `--compiler`) its registers are shown"
            }
            Reason::TooMuch => "expands to too much",
            Reason::Assembly(message) | Reason::Preprocessor(message) => message,
        })
    }
}
