//! The IR itself: a structured program with types and places.

use std::sync::Arc;

use warplens_syntax::Language;

use crate::{Function, NotUnderstood, Places, Site, Type};

/// A variable: an index into [`Kernel::vars`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VarId(pub u32);

/// Where a variable lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Storage {
    /// A parameter, by position.
    Param(u32),
    /// A thread's own.
    Local,
    /// `__shared__` with a size.
    Shared,
    /// `extern __shared__` or a local pointer argument: its size is given at launch.
    DynamicShared,
    /// `__constant__` at file scope.
    Constant,
    /// `__device__` at file scope.
    Global,
}

/// A variable.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Var {
    /// Name.
    pub name: String,
    /// Type.
    pub ty: Type,
    /// Where it lives.
    pub storage: Storage,
    /// Its declarator.
    pub site: Site,
    /// For arrays the sites of the extents, outermost first.
    pub extent_sites: Vec<Site>,
    /// True where its address goes somewhere that is not followed: its value is not known then.
    pub escapes: bool,
    /// True for a pointer parameter that is `__restrict__`: what it points to is reached through it alone.
    pub restrict: bool,
    /// True where each read and write through it happens as it is written: `volatile`.
    pub volatile: bool,
}

/// A device function that is kept once for all its calls: an index into [`Kernel::routines`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RoutineId(pub u32);

/// A device function kept once: its parameters are numbers, or pointers into arrays and structures of the calling
/// thread.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct Routine {
    /// Its parameters, in order.
    pub params: Vec<VarId>,
    /// What it does. Its sites name the call that was read first.
    pub body: Vec<Stmt>,
    /// Where it leaves its value.
    pub result: Option<VarId>,
}

/// What the launch gives each thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Builtin {
    /// `threadIdx`, `get_local_id`.
    ThreadIdx(u8),
    /// `blockIdx`, `get_group_id`.
    BlockIdx(u8),
    /// `get_global_id`: computed from the others, but by no operator of the source.
    GlobalIdx(u8),
    /// `blockDim`, `get_local_size`.
    BlockDim(u8),
    /// `gridDim`, `get_num_groups`.
    GridDim(u8),
    /// `warpSize`.
    WarpSize,
    /// Blocks of the cluster along an axis: `%cluster_nctaid`, `cluster_group::dim_blocks()`.
    ClusterDim(u8),
}

/// Operators with one operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `-`.
    Neg,
    /// `!`.
    Not,
    /// `~`.
    BitNot,
}

/// Operators with two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Shl,
    Shr,
    And,
    Or,
    Xor,
    Lt,
    Le,
    Gt,
    Ge,
    Eq,
    Ne,
    LogicalAnd,
    LogicalOr,
}

/// `=`, or `op=`.
pub type AssignOp = Option<BinaryOp>;

/// An expression.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Its type.
    pub ty: Type,
    /// Where it is.
    pub site: Site,
}

/// A floating-point number, equal where its bits are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Real(u64);

impl From<f64> for Real {
    fn from(value: f64) -> Real {
        Real(value.to_bits())
    }
}

impl Real {
    /// The number.
    pub fn value(self) -> f64 {
        f64::from_bits(self.0)
    }
}

/// Kinds of expressions.
#[derive(Debug, Clone, PartialEq, Hash)]
pub enum ExprKind {
    /// An integer known from the source.
    Int(i64),
    /// A floating-point constant, with its value where that was read.
    Float(Option<Real>),
    /// A variable.
    Var(VarId),
    /// A coordinate or an extent of the launch.
    Builtin(Builtin),
    /// One operand.
    Unary(UnaryOp, Box<Expr>),
    /// Two operands.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `a = b`, `a op= b`.
    Assign(AssignOp, Box<Expr>, Box<Expr>),
    /// `++`, `--`: the change, and whether the value is the one before it.
    Step(i64, bool, Box<Expr>),
    /// `c ? a : b`.
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
    /// To the expression's type; `true` where the source wrote it.
    Cast(bool, Box<Expr>),
    /// `base[index]`.
    Index(Box<Expr>, Box<Expr>),
    /// `*pointer`.
    Deref(Box<Expr>),
    /// A field of a structure or a lane of a vector: byte offset.
    Field(Box<Expr>, u64),
    /// `&place`.
    AddressOf(Box<Expr>),
    /// A function that is known.
    Call(Function, Vec<Expr>),
    /// `a, b`, a vector literal, a constructor: all are evaluated.
    List(Vec<Expr>),
    /// A device function in place of its call: its statements, and where it leaves its value. `return` ends
    /// it, not the kernel.
    Inline(Vec<Stmt>, Option<VarId>),
    /// A call of a function that is kept once: its arguments, as many as it has parameters.
    Apply(RoutineId, Vec<Expr>),
    /// A value that is not followed; its understood parts are evaluated.
    Opaque(Opaque, Vec<Expr>),
}

/// Why a value is not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Opaque {
    /// It was not understood, or nothing says what it is.
    Unknown,
    /// The build decides it, by its options or by a type that was not read: one function of its parts for the whole launch.
    Build,
    /// It came with the structure around it, from memory, another lane or a matrix product: it depends on data.
    Loaded,
}

/// What a statement is that the IR has no other kind for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Unknown {
    /// It was not understood.
    Lost,
    /// A jump to a label, while the statements around it are read: branches and loops take its place.
    Jump(Arc<str>),
}

/// Which loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LoopKind {
    /// The test comes first.
    For,
    /// `do … while`.
    Do,
}

/// A statement.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct Stmt {
    /// What it is.
    pub kind: StmtKind,
    /// Where it is.
    pub site: Site,
}

/// Kinds of statements.
#[derive(Debug, Clone, PartialEq, Hash)]
pub enum StmtKind {
    /// A variable comes to life.
    Declare(VarId, Option<Expr>),
    /// An expression for its effects.
    Expr(Expr),
    /// `if`.
    If(Expr, Vec<Stmt>, Vec<Stmt>),
    /// Any loop.
    Loop {
        /// Which.
        kind: LoopKind,
        /// Before it.
        init: Vec<Stmt>,
        /// Goes on while this holds; for ever where there is none.
        condition: Option<Expr>,
        /// After each iteration.
        step: Option<Expr>,
        /// Each iteration.
        body: Vec<Stmt>,
        /// `#pragma unroll N`; 0 without a number: as often as it runs.
        unroll: Option<u64>,
    },
    /// `{ … }`.
    Block(Vec<Stmt>),
    /// `switch`: which of its cases is gone to, counted from 1 (0: none), and the branches that stand for it.
    /// Their conditions are where the value is; they read no memory.
    Switch(Expr, Vec<Stmt>),
    /// `return`.
    Return(Option<Expr>),
    /// `break`.
    Break,
    /// `continue`.
    Continue,
    /// A barrier of the whole block.
    Barrier,
    /// Not understood.
    Unknown(Unknown),
}

/// One kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Kernel {
    /// Plain name.
    pub name: String,
    /// Where the name is.
    pub name_site: Site,
    /// Its language.
    pub language: Language,
    /// Variables, parameters first.
    pub vars: Vec<Var>,
    /// Number of parameters.
    pub params: u32,
    /// What it does.
    pub body: Vec<Stmt>,
    /// `__launch_bounds__`: most threads per block.
    pub max_threads: Option<u64>,
    /// `__launch_bounds__`: blocks that an SM must be able to hold.
    pub min_blocks: Option<u64>,
    /// `__maxnreg__`: most registers of a thread.
    pub max_registers: Option<u64>,
    /// `reqd_work_group_size`.
    pub required_block: Option<[u64; 3]>,
    /// `__cluster_dims__`: blocks of a cluster, on each axis.
    pub cluster: Option<[u64; 3]>,
    /// Template parameters bound: name and value as text.
    pub template_args: Vec<(String, String)>,
    /// Device functions kept once for all their calls.
    pub routines: Vec<Routine>,
    /// Thread axes used: x, y, z.
    pub axes: [bool; 3],
    /// What was not understood.
    pub not_understood: Vec<NotUnderstood>,
    /// Where its sites stand.
    pub places: Arc<Places>,
    /// What was assumed to read it.
    pub assumed: Vec<Assumption>,
    /// Functions that it calls and nothing that was read defines, by name, none twice.
    pub undefined: Vec<String>,
    /// Calls that the machine makes too, as they were met.
    pub calls: Vec<MachineCall>,
}

impl Kernel {
    /// The integers that the launch gives: parameters, and members of those that are structures passed by value.
    pub fn integers(&self) -> impl Iterator<Item = (VarId, &Var)> {
        let vars = self.vars.iter().enumerate();
        vars.filter(|(_, var)| {
            matches!(
                (&var.ty, var.storage),
                (Type::Int { .. }, Storage::Param(_))
            )
        })
        .map(|(at, var)| (VarId(at as u32), var))
    }
}

/// A call that no compiler puts the body in place of: the source says so.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MachineCall {
    /// Where.
    pub site: Site,
    /// The function, or what points to it.
    pub name: String,
    /// Why it stays a call.
    pub why: StaysCall,
    /// The thread's own variables whose addresses it is given: they cannot be registers.
    pub addressed: Vec<VarId>,
}

/// Why a call stays one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StaysCall {
    /// The function is `__noinline__`.
    NoInline,
    /// The function calls itself.
    Recursive,
    /// Data say which of several functions it is.
    Pointer,
    /// The object's class says which of several functions it is.
    Virtual,
}

/// Something that was assumed to read a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Assumption {
    /// What it is about: a template parameter, a macro.
    pub name: String,
    /// What was taken for it.
    pub value: String,
    /// Why it had to be assumed.
    pub kind: AssumptionKind,
}

/// Why something had to be assumed to read a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AssumptionKind {
    /// No launch binds a template parameter.
    Template,
    /// A conditional that nothing decides: its first branch is read where `taken`, none otherwise.
    Conditional {
        /// A value was defined for it.
        taken: bool,
    },
    /// What a pointer to a function points to: the functions that the file stores in such pointers.
    Target,
    /// A function is taken from another file, which nothing says is linked with this one.
    Linked,
    /// A function of the compiler or of a library; what it gives is not known.
    Unread,
    /// How a library's tensor lies in memory.
    Layout {
        /// Offsets are computed with it, too, which other accesses may go by.
        of_all: bool,
    },
    /// Only the build's options can define it.
    Build {
        /// A definite meaning was taken for it; without, what depends on it is not known.
        taken: bool,
    },
    /// A host program defines it in the options of its build.
    Options {
        /// File and line of the build.
        place: std::sync::Arc<str>,
        /// Other builds define something else: the first is taken.
        one_of_several: bool,
    },
}

impl Assumption {
    /// True where a tensor of a library is taken to lie in memory in some way, which matters to the accesses of that tensor alone.
    pub fn is_of_own_layout(&self) -> bool {
        self.kind == AssumptionKind::Layout { of_all: false }
    }

    /// True where something definite was taken, on which figures hang.
    pub fn is_taken(&self) -> bool {
        match self.kind {
            AssumptionKind::Template | AssumptionKind::Linked | AssumptionKind::Layout { .. } => {
                true
            }
            AssumptionKind::Target | AssumptionKind::Unread => false,
            AssumptionKind::Conditional { taken }
            | AssumptionKind::Build { taken }
            | AssumptionKind::Options {
                one_of_several: taken,
                ..
            } => taken,
        }
    }
}

impl Kernel {
    /// The variable.
    pub fn var(&self, id: VarId) -> &Var {
        &self.vars[id.0 as usize]
    }

    /// The routine.
    pub fn routine(&self, id: RoutineId) -> &Routine {
        &self.routines[id.0 as usize]
    }
}
