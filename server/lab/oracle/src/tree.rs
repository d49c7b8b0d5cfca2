//! What a kernel's text says, before any type is known.

use std::rc::Rc;

use crate::lexer::Position;
use crate::scalar::Scalar;

#[derive(Debug, Clone)]
pub(crate) struct Expr {
    pub(crate) kind: Kind,
    /// Its first token, without parentheses around it.
    pub(crate) place: Position,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    And,
    Or,
    Xor,
    Shl,
    Shr,
    Lt,
    Le,
    Gt,
    Ge,
    Eq,
    Ne,
}

impl Op {
    pub(crate) fn compares(self) -> bool {
        matches!(self, Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::Eq | Op::Ne)
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Int(u64, Scalar),
    Float(f64, Scalar),
    Name(Rc<str>),
    Negate(Box<Expr>),
    Plus(Box<Expr>),
    Not(Box<Expr>),
    Invert(Box<Expr>),
    Deref(Box<Expr>),
    AddressOf(Box<Expr>),
    Binary(Op, Box<Expr>, Box<Expr>),
    /// `&&` (true) or `||`.
    Logic(bool, Box<Expr>, Box<Expr>),
    Comma(Box<Expr>, Box<Expr>),
    Assign(Option<Op>, Box<Expr>, Box<Expr>),
    /// By how much, whether the old value is the result.
    Step(i64, bool, Box<Expr>),
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
    Cast(TypeName, Box<Expr>),
    /// `T{…}`, `(float4)(…)`, `make_float4(…)` by its type; no type: `{…}`.
    List(Option<TypeName>, Vec<Expr>),
    Call(Rc<str>, Vec<TemplateArgument>, Vec<Expr>),
    Method(Box<Expr>, Rc<str>, Vec<Expr>),
    Index(Box<Expr>, Box<Expr>),
    /// `a.b`
    Field(Box<Expr>, Rc<str>),
    SizeOfType(TypeName),
    SizeOf(Box<Expr>),
}

#[derive(Debug, Clone)]
pub(crate) enum TemplateArgument {
    Type(TypeName),
    ThreadValues(Expr),
}

#[derive(Debug, Clone)]
pub(crate) enum TypeName {
    Void,
    Auto,
    Scalar(Scalar),
    Vector(Scalar, u8),
    /// A structure, another name for a type, a template's parameter.
    Named(Rc<str>),
    Pointer(Box<TypeName>),
    Reference(Box<TypeName>),
    Array(Box<TypeName>, Option<Box<Expr>>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Storage {
    /// A thread's own.
    Own,
    Shared,
    /// `extern __shared__`
    DynamicShared,
    /// In device memory, for the whole program.
    Global,
    Constant,
}

#[derive(Debug, Clone)]
pub(crate) struct Declaration {
    pub(crate) storage: Storage,
    pub(crate) ty: TypeName,
    pub(crate) name: Rc<str>,
    pub(crate) init: Option<Expr>,
    pub(crate) place: Position,
}

#[derive(Debug, Clone)]
pub(crate) enum Stmt {
    Declare(Rc<Declaration>),
    Expr(Expr),
    If(Expr, Box<Stmt>, Option<Box<Stmt>>),
    /// `if constexpr`: one side is there, nothing is tested.
    Chosen(Expr, Box<Stmt>, Option<Box<Stmt>>),
    Loop(Box<Loop>),
    Switch(Expr, Vec<(Vec<Option<Expr>>, Vec<Stmt>)>),
    Break,
    Continue,
    Return(Option<Expr>, Position),
    /// With a scope of its own, or (several declarations of one statement) without.
    Block(Vec<Stmt>, bool),
}

#[derive(Debug, Clone)]
pub(crate) struct Loop {
    pub(crate) init: Option<Stmt>,
    pub(crate) condition: Option<Expr>,
    pub(crate) step: Option<Expr>,
    pub(crate) body: Stmt,
    /// `do … while`
    pub(crate) body_first: bool,
    pub(crate) place: Position,
}

#[derive(Debug, Clone)]
pub(crate) struct Parameter {
    pub(crate) name: Rc<str>,
    pub(crate) ty: TypeName,
}

#[derive(Debug, Clone)]
pub(crate) struct TemplateParameter {
    pub(crate) name: Rc<str>,
    /// `typename T`, not `int N`.
    pub(crate) is_type: bool,
    pub(crate) default: Option<TemplateArgument>,
}

#[derive(Debug, Clone)]
pub(crate) struct Function {
    pub(crate) name: Rc<str>,
    pub(crate) template: Vec<TemplateParameter>,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) result: TypeName,
    pub(crate) body: Vec<Stmt>,
    pub(crate) kernel: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Structure {
    pub(crate) name: Rc<str>,
    pub(crate) fields: Vec<(Rc<str>, TypeName)>,
    pub(crate) methods: Vec<Rc<Function>>,
    /// A union's fields lie over each other.
    pub(crate) union: bool,
    /// `__align__(16)`: at least this.
    pub(crate) align: u64,
}
