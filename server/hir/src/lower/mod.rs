//! From the syntax tree to the IR.
//!
//! [`lower`] reads one kernel. `kernel` has its head, `types` and `classes` its types, `statements` and
//! `expressions` its body; `calls` decides what a call is, `inline` puts device functions in place of their
//! calls or, where it can, keeps them once (`routines`), `library` knows the toolkit's own functions and objects,
//! `build` what only the build can define, `jumps` turns `goto` into branches and loops, `split` follows the
//! fields of local structures as variables of their own. Below all of these lie what a node says by itself (`forms`), what an
//! expression or a statement is by its shape (`shapes`), and how expressions are put together (`construct`). What a program computes while it is
//! compiled is in `templates`, `packs`, `traits`, `constants` and `interpret`; what is taken for a template
//! parameter that nothing binds in `assumptions`.

mod asm;
mod assumed_classes;
mod assumptions;
mod blocks;
mod build;
mod bulk;
mod calls;
mod candidate;
mod captures;
mod class_values;
mod classes;
mod concepts;
mod constants;
mod construct;
mod cute;
mod deduced;
mod defaults;
mod enqueued;
mod expressions;
mod folds;
mod forms;
mod function_types;
mod heap;
mod host;
mod inline;
mod instances;
mod integers;
mod interpret;
mod jumps;
mod kernel;
mod layout;
mod library;
mod literals;
mod machine_calls;
mod member_defaults;
mod misread;
mod overloads;
mod packs;
mod pipes;
mod pointer_arrays;
mod pointers;
mod pragmas;
mod ranges;
mod recursion;
mod routines;
mod shapes;
mod shared_copies;
mod side_by_side;
mod split;
mod statements;
mod switch;
mod tables;
mod templates;
mod traits;
mod trials;
mod types;
pub(crate) mod typing;
mod uses;
mod virtuals;

use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use warplens_syntax::{Expanded, Kind, Language, Node};

use crate::definition::{Definition, Within};
use crate::names::{Named, Scope};
use crate::namespaces::Space;
use crate::types::Class;
use crate::unit::Unit;
use warplens_ir::Bindings;
use warplens_ir::Reason;
use warplens_ir::{
    Assumption, Expr, ExprKind, MachineCall, Opaque, Routine, RoutineId, Stmt, StmtKind, Storage,
    Unknown, Var, VarId,
};
use warplens_ir::{CalleeLine, NotUnderstood, Site, Span, Type};

pub use classes::default_value;
pub use host::HostName;
pub use kernel::{TemplateArguments, lower};
pub use overloads::Signature;
pub use pragmas::{following, is_cut_off, lacks_body};

/// Device functions nest this deep at most.
const DEEPEST_CALLS: u32 = 40;
/// Expressions and statements nest this deep at most, and types and declarators.
const DEEPEST: u32 = 400;
/// A kernel that expands to more expressions than this is cut off, and says so.
const MOST_EXPRESSIONS: u32 = 200_000;

/// A text being lowered: the kernel's own, or that of a function put in place of a call.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    pub parsed: &'a Arc<Expanded>,
    /// The namespaces around what is read.
    space: &'a str,
    /// In a header.
    header: bool,
    /// Where everything is as the kernel sees it; `None` in the kernel's own text.
    at: Option<Call>,
    /// The one place of everything in a text of our own.
    fixed: Option<Site>,
    /// In a copy of a part of another text, which is parsed again: that text, and where the copy begins in it.
    copied: Option<(&'a Arc<Expanded>, usize)>,
    /// The item that contains it, where that is not what is being lowered.
    of: Option<Within>,
}

impl<'a> Source<'a> {
    /// The expression that begins at that byte, parsed by itself.
    pub fn again(self, parsed: &'a Arc<Expanded>, start: usize) -> Source<'a> {
        let (original, at) = self.copied.unwrap_or((self.parsed, 0));
        let start = (at + start).saturating_sub(crate::misread::BEFORE);
        Source {
            parsed,
            copied: Some((original, start)),
            ..self
        }
    }
}

/// The call that led into a function.
#[derive(Debug, Clone, Copy)]
struct Call {
    /// The place in the kernel.
    site: Site,
    /// Where the function is.
    within: Within,
}

/// A function being read.
struct Frame {
    scopes: Vec<Scope>,
    bindings: Bindings,
    /// In a member function: the object.
    this: Option<Expr>,
    /// Where `return` leaves its value.
    result: Result,
    /// Which function, to notice recursion.
    function: u64,
}

enum Result {
    /// The kernel itself: `return` ends it.
    Kernel,
    /// Nothing is returned.
    None,
    Var(VarId),
    /// Not known yet: the first `return` decides (`auto`, a lambda, a reference).
    Open,
    /// What is returned replaces the call: a reference, a lambda, an object of the toolkit.
    Alias(Box<Expr>),
}

/// What members of classes were found to be.
type Members<T> = FxHashMap<(usize, String), (Arc<Class>, Option<T>)>;

/// A plain function, unless it is none, and the text that it is in.
type PlainInText = (Arc<Expanded>, Option<Arc<candidate::PlainFunction>>);

/// Reads a text for what it means: kernels into the IR, host code for its types and constants.
pub struct Lowering<'u> {
    unit: &'u Unit,
    /// The text that is read first.
    own: Option<(Arc<Expanded>, bool)>,
    /// The namespaces around it.
    space: Space,
    base: usize,
    /// The kernel, or the declaration that is read.
    within: Within,
    frames: Vec<Frame>,
    vars: Vec<Var>,
    not_understood: Vec<NotUnderstood>,
    template_args: Vec<(String, String)>,
    assumed: Vec<Assumption>,
    /// Functions called that nothing defines.
    undefined: Vec<String>,
    /// Calls that stay calls.
    calls: Vec<MachineCall>,
    axes: [bool; 3],
    depth: u32,
    /// The types and declarators that are being read, one within the other.
    types_open: u32,
    /// Reading what an operator works on.
    /// Where what a lambda's captures are given may be kept in variables: what declares those.
    capturing: Option<Vec<Stmt>>,
    in_operation: bool,
    expressions: u32,
    /// Statements that must come before the one being read: values that a reference freezes.
    before: Vec<Stmt>,
    callees: Vec<CalleeLine>,
    /// By function, line, column, caller and the hash of the text.
    callee_index: FxHashMap<(u64, u32, u32, u32, u64), u32>,
    /// Local structures whose fields are variables of their own.
    split: BTreeMap<VarId, split::Leaves>,
    /// What references that are fields of local structures refer to.
    references: FxHashMap<VarId, Expr>,
    /// The elements of constant arrays at file scope.
    tables: FxHashMap<VarId, Arc<[crate::unit::Constant]>>,
    /// Those that stay whole: something reads them as another type.
    whole: FxHashSet<(String, Site)>,
    /// Class templates instantiated so far.
    instances: FxHashMap<String, Type>,
    /// Types declared on the way, for the unit.
    declared: Vec<(String, Type)>,
    /// Functions without template parameters that calls may mean, by their texts and where they end. The text is held so that no
    /// other takes its address.
    plain_functions: FxHashMap<(usize, usize), PlainInText>,
    /// Greater than 0 while something is read that is not executed.
    unevaluated: u32,
    /// Member types and constants looked up so far, by class and name. The class is held so that no other
    /// takes its address.
    member_types: Members<Type>,
    member_constants: Members<(i64, Type)>,
    /// Functions kept once for all their calls.
    routines: Vec<Routine>,
    /// Which of them a function is, by the hash of its text; `None` for one that cannot be kept so.
    routine_of: FxHashMap<u64, Option<RoutineId>>,
    /// Parameters of routines that point into arrays of the calling thread.
    private_pointers: FxHashSet<VarId>,
    /// Shared arrays of called functions, by function and name.
    shared_in_functions: FxHashMap<(u64, String), VarId>,
    /// Labels that a `goto` may name here.
    labels: Vec<jumps::Label>,
    /// What it computes with are CuTe's layouts.
    has_layouts: bool,
    /// A stride of a library's tensor was asked for.
    asks_strides: bool,
    /// Functions that may call themselves, as depths of calls; true where one did.
    looped: Vec<(usize, bool)>,
    /// Members being looked up, by class and name: a lookup inside itself finds nothing.
    looking: Vec<(u64, String)>,
    /// What calls of `constexpr` functions came to, by function, template arguments and arguments; nothing
    /// where they are no numbers.
    constant_calls: FxHashMap<String, Option<Expr>>,
}

impl fmt::Debug for Lowering<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lowering").finish_non_exhaustive()
    }
}

impl<'u> Lowering<'u> {
    fn new(unit: &'u Unit) -> Lowering<'u> {
        Lowering {
            unit,
            own: None,
            space: Space::from(""),
            base: 0,
            within: Within::default(),
            frames: vec![Frame {
                scopes: vec![Scope::new()],
                bindings: Vec::new(),
                this: None,
                result: Result::Kernel,
                function: 0,
            }],
            vars: Vec::new(),
            not_understood: Vec::new(),
            template_args: Vec::new(),
            has_layouts: false,
            asks_strides: false,
            assumed: Vec::new(),
            undefined: Vec::new(),
            calls: Vec::new(),
            axes: [false; 3],
            depth: 0,
            types_open: 0,
            capturing: None,
            in_operation: false,
            expressions: 0,
            before: Vec::new(),
            callees: Vec::new(),
            callee_index: FxHashMap::default(),
            split: BTreeMap::new(),
            references: FxHashMap::default(),
            tables: FxHashMap::default(),
            whole: FxHashSet::default(),
            instances: FxHashMap::default(),
            declared: Vec::new(),
            plain_functions: FxHashMap::default(),
            unevaluated: 0,
            member_types: FxHashMap::default(),
            member_constants: FxHashMap::default(),
            routines: Vec::new(),
            routine_of: FxHashMap::default(),
            private_pointers: FxHashSet::default(),
            shared_in_functions: FxHashMap::default(),
            labels: Vec::new(),
            looped: Vec::new(),
            looking: Vec::new(),
            constant_calls: FxHashMap::default(),
        }
    }

    /// To read a declaration at file scope.
    pub fn for_unit(unit: &'u Unit, parsed: &Arc<Expanded>, header: bool) -> Lowering<'u> {
        Lowering {
            own: Some((Arc::clone(parsed), header)),
            ..Lowering::new(unit)
        }
    }

    /// Reads a part of this item, in these namespaces.
    pub(crate) fn inside(self, within: Within, space: &Space) -> Lowering<'u> {
        Lowering {
            within,
            space: Arc::clone(space),
            ..self
        }
    }

    fn opencl(&self) -> bool {
        self.unit.language == Language::OpenCl
    }

    fn frame(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("the kernel's frame stays")
    }

    fn current(&self) -> &Frame {
        self.frames.last().expect("the kernel's frame stays")
    }

    /// Reads something under these template parameters, in a scope of its own, where `this` is the object.
    fn under<T>(
        &mut self,
        bindings: Bindings,
        this: Option<Expr>,
        read: impl FnOnce(&mut Self) -> T,
    ) -> T {
        self.frames.push(Frame {
            scopes: vec![Scope::new()],
            bindings,
            this,
            result: Result::None,
            function: 0,
        });
        let found = read(self);
        self.frames.pop();
        found
    }

    // ---- places --------------------------------------------------------------------------------

    /// The item that contains what is defined there.
    fn within(&self, source: Source) -> Within {
        let of = source.at.map(|call| call.within).or(source.of);
        of.unwrap_or(self.within)
    }

    fn site(&mut self, node: Node, source: Source) -> Site {
        self.site_of(node.byte_range(), source)
    }

    /// The place of a piece of the text.
    fn site_of(&mut self, piece: std::ops::Range<usize>, source: Source) -> Site {
        if let Some(site) = source.fixed {
            return site;
        }
        let (text, at) = source.copied.unwrap_or((source.parsed, 0));
        let range = piece.start + at..piece.end + at;
        let place = text.place(range.clone());
        let Some(call) = source.at else {
            return Site {
                span: Span {
                    start: place.range.start.saturating_sub(self.base) as u32,
                    end: place.range.end.saturating_sub(self.base) as u32,
                },
                line: place.line.saturating_sub(self.within.line),
                callee: 0,
            };
        };
        let line = CalleeLine {
            path: source.header.then(|| Arc::clone(&source.parsed.path)),
            function: if source.header { 0 } else { call.within.hash },
            base_line: if source.header { 0 } else { call.within.line },
            line: if source.header {
                place.line
            } else {
                place.line.saturating_sub(call.within.line)
            },
            column: place.column,
            text: beginning(text.text.get(range).unwrap_or("")),
            caller: call.site.callee,
        };
        // The function says which file.
        let text = crate::text_hash(&line.text);
        let key = (call.within.hash, line.line, line.column, line.caller, text);
        let callee = match self.callee_index.entry(key) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                self.callees.push(line);
                *new.insert(self.callees.len() as u32)
            }
        };
        Site {
            callee,
            ..call.site
        }
    }

    fn lost(&mut self, site: Site, reason: Reason) {
        if self.unevaluated == 0 {
            self.not_understood.push(NotUnderstood { site, reason });
        }
    }

    // ---- names ---------------------------------------------------------------------------------

    fn fresh(&mut self, name: &str, ty: Type, storage: Storage, site: Site) -> VarId {
        let id = VarId(self.vars.len() as u32);
        self.vars.push(Var {
            name: name.to_owned(),
            ty,
            storage,
            site,
            extent_sites: Vec::new(),
            escapes: false,
            restrict: false,
            volatile: false,
        });
        id
    }

    fn new_var(&mut self, name: &str, ty: Type, storage: Storage, site: Site) -> VarId {
        let id = self.fresh(name, ty, storage, site);
        self.bind(name, Named::Var(id));
        id
    }

    fn bind(&mut self, name: &str, meaning: Named) {
        if let Some(scope) = self.frame().scopes.last_mut() {
            scope.insert(name.to_owned(), meaning);
        }
    }

    fn named(&self, name: &str) -> Option<&Named> {
        self.current()
            .scopes
            .iter()
            .rev()
            .find_map(|scope| scope.get(name))
    }

    fn var(&self, id: VarId, site: Site) -> Expr {
        Expr {
            kind: ExprKind::Var(id),
            ty: self.vars[id.0 as usize].ty.clone(),
            site,
        }
    }

    fn scoped<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        self.frame().scopes.push(Scope::new());
        let result = read(self);
        self.frame().scopes.pop();
        result
    }

    /// Reads something that is not executed: nothing of it is reported or counted.
    fn unevaluated<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        let (vars, before) = (self.vars.len(), std::mem::take(&mut self.before));
        self.unevaluated += 1;
        let result = read(self);
        self.unevaluated -= 1;
        self.before = before;
        self.vars.truncate(vars);
        self.split.split_off(&VarId(vars as u32));
        self.shared_in_functions
            .retain(|_, var| (var.0 as usize) < vars);
        result
    }

    fn opaque(&mut self, site: Site, reason: Reason, parts: Vec<Expr>) -> Expr {
        self.lost(site, reason);
        Expr {
            kind: ExprKind::Opaque(Opaque::Unknown, parts),
            ty: Type::Unknown(String::new()),
            site,
        }
    }

    fn unknown_statement(&mut self, site: Site, reason: Reason) -> Stmt {
        self.lost(site, reason);
        Stmt {
            kind: StmtKind::Unknown(Unknown::Lost),
            site,
        }
    }
}

/// The first characters of a text, white space collapsed.
fn beginning(text: &str) -> Box<str> {
    const MOST: usize = 80;
    let mut short = String::new();
    for word in warplens_ir::in_one_line(text).split(' ') {
        if short.len() + word.len() > MOST {
            break;
        }
        if !short.is_empty() {
            short.push(' ');
        }
        short.push_str(word);
    }
    short.into()
}

/// A node's text.
fn text_of<'t>(node: Node, source: Source<'t>) -> &'t str {
    let range = node.byte_range();
    let (text, range) = match source.copied {
        Some((original, at)) => (original, range.start + at..range.end + at),
        None => (source.parsed, range),
    };
    text.text.get(range).unwrap_or("")
}

/// The named children that are not comments.
fn parts(node: Node<'_>) -> Vec<Node<'_>> {
    node.named_children()
        .filter(|child| child.kind() != Kind::Comment)
        .collect()
}

/// A direct child of that kind.
fn child_of_kind(node: Node<'_>, kind: Kind) -> Option<Node<'_>> {
    node.children().find(|child| child.kind() == kind)
}

impl Definition {
    fn source(&self, at: Call) -> Source<'_> {
        Source {
            parsed: &self.text,
            space: &self.space,
            header: self.header,
            at: Some(at),
            // A text of our own has no place: what it does, the call does.
            fixed: (self.text.path.as_os_str().is_empty()).then_some(at.site),
            copied: None,
            of: None,
        }
    }
}
