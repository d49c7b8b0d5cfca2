//! The host's side of a structure of arrays: allocation, copies, launches.
//!
//! Host code is changed only where all of it is seen: a local `Particle *d` that is allocated, copied, passed
//! to the kernels and freed by plain runtime calls, and nothing else. Anything more is left to its author, and
//! the lines concerned are told.

use std::fmt::Write as _;
use std::ops::Range;

use warplens_hir::semantics::{children, declared_name};
use warplens_hir::{Semantics, function_declarator};
use warplens_syntax::nodes::CallExpression;
use warplens_syntax::{BinaryOperator, Document, Field, Kind, Language, Node, binary, has_word};

use crate::fixes::Edit;
use crate::rules::mem::aos::aos_to_soa::{Converted, Definition, lines, mentions};

/// What becomes of the host code.
pub(crate) enum Host {
    /// All of it is changed.
    Followed {
        /// Functions that allocate, copy and free, to stand behind the structure of arrays.
        helpers: String,
        /// The changes.
        edits: Vec<Edit>,
    },
    /// It remains to be changed: these lines (1-based), where the file has them.
    ByHand(Vec<usize>),
}

pub(crate) fn follow(
    document: &Document,
    definition: &Definition,
    converted: &[Converted],
) -> Host {
    let code = Semantics::new(document);
    let kernels: Vec<Range<usize>> = converted
        .iter()
        .map(|one| one.function.byte_range())
        .collect();
    let mut launches = Vec::new();
    let mut elsewhere = Vec::new();
    for node in code.top_level() {
        // Prototypes and instantiations are changed with the kernel.
        let named = match node.kind() {
            Kind::Declaration | Kind::TemplateInstantiation => function_declarator(node),
            _ => None,
        };
        let named = named.and_then(|declarator| declarator.field(Field::Declarator));
        let named = named.map_or(0..0, |name| name.byte_range());
        if kernels.contains(&node.byte_range()) {
            continue;
        }
        for name in node.descendants() {
            if name.kind() != Kind::Identifier || named.contains(&name.start_byte()) {
                continue;
            }
            let written = code.text(name);
            let Some(one) = converted.iter().find(|one| one.name == written) else {
                continue;
            };
            match launch(name) {
                Some(call) => launches.push(Launch {
                    call,
                    positions: &one.positions,
                }),
                None => elsewhere.push(name.start_byte()),
            }
        }
    }
    elsewhere.extend(
        converted
            .iter()
            .filter_map(|one| code.macro_naming(&one.name)),
    );
    if elsewhere.is_empty()
        && !launches.is_empty()
        && let Some(followed) = Follow::all(document, definition, &launches)
    {
        return followed;
    }
    let mut bytes = elsewhere;
    for launch in &launches {
        bytes.push(launch.call.start_byte());
        for argument in launch.arguments() {
            let root = argument
                .descendants()
                .into_iter()
                .find(|node| node.kind() == Kind::Identifier);
            let Some(root) = root else { continue };
            let name = code.text(root);
            if let Some(scope) = scope_of(code, root, name) {
                bytes.extend(mentions(code, scope, name).iter().map(Node::start_byte));
            }
        }
    }
    Host::ByHand(lines(code, bytes))
}

/// A launch of a kernel that changes.
struct Launch<'t> {
    call: Node<'t>,
    positions: &'t [usize],
}

impl<'t> Launch<'t> {
    /// The arguments that change.
    fn arguments(&self) -> Vec<Node<'t>> {
        let all = self
            .call
            .field(Field::Arguments)
            .map(children)
            .unwrap_or_default();
        self.positions
            .iter()
            .filter_map(|&position| all.get(position).copied())
            .collect()
    }
}

/// The launch that a mention of a kernel's name is.
fn launch(name: Node) -> Option<Node> {
    let mut function = name;
    while matches!(
        function.parent()?.kind(),
        Kind::TemplateFunction | Kind::QualifiedIdentifier
    ) {
        function = function.parent()?;
    }
    let call = CallExpression::cast(function.parent()?)?;
    (call.launch().is_some() && call.function() == Some(function)).then_some(call.node())
}

/// The block or function in which the variable that a name means is declared.
fn scope_of<'t>(code: Semantics, name: Node<'t>, of: &str) -> Option<Node<'t>> {
    let mut at = name;
    while let Some(parent) = at.parent() {
        match parent.kind() {
            Kind::CompoundStatement if declaration_in(code, parent, of).is_some() => {
                return Some(parent);
            }
            Kind::FunctionDefinition => return Some(parent),
            _ => {}
        }
        at = parent;
    }
    None
}

/// The declaration of a variable right in a block.
fn declaration_in<'t>(code: Semantics, block: Node<'t>, name: &str) -> Option<Node<'t>> {
    children(block)
        .into_iter()
        .filter(|child| child.kind() == Kind::Declaration)
        .find(|declaration| {
            declaration
                .fields(Field::Declarator)
                .filter_map(declared_name)
                .any(|declared| code.text(declared) == name)
        })
}

/// Which of the helpers are called.
#[derive(Default)]
struct Needed {
    allocate: bool,
    upload: bool,
    download: bool,
    release: bool,
}

/// Changes to host code as far as they have come.
struct Follow<'a> {
    code: Semantics<'a>,
    definition: &'a Definition<'a>,
    /// `cuda` or `hip`.
    runtime: &'static str,
    needed: Needed,
    edits: Vec<Edit>,
}

impl Follow<'_> {
    /// `None` where some use of some buffer is not one of those that are known.
    fn all(document: &Document, definition: &Definition, launches: &[Launch]) -> Option<Host> {
        let code = Semantics::new(document);
        let runtime = match document.language() {
            Language::Cuda => "cuda",
            Language::Hip => "hip",
            Language::OpenCl => return None,
        };
        let mut follow = Follow {
            code,
            definition,
            runtime,
            needed: Needed::default(),
            edits: Vec::new(),
        };
        let mut arguments: Vec<Node> = launches.iter().flat_map(Launch::arguments).collect();
        let expected: usize = launches.iter().map(|launch| launch.positions.len()).sum();
        if arguments.len() != expected {
            return None;
        }
        let mut declarations: Vec<Node> = Vec::new();
        while let Some(argument) = arguments.first().copied() {
            if argument.kind() != Kind::Identifier {
                return None;
            }
            let name = code.text(argument);
            let block = scope_of(code, argument, name)?;
            let declaration = declaration_in(code, block, name)?;
            if declarations.contains(&declaration) || block.has_error() {
                return None;
            }
            declarations.push(declaration);
            let declared = follow.declaration(declaration, name)?;
            for used in mentions(code, block, name) {
                if used == declared {
                    continue;
                }
                let declared_again = scope_of(code, used, name) != Some(block);
                if let Some(at) = arguments.iter().position(|argument| *argument == used) {
                    arguments.remove(at);
                } else if declared_again {
                    return None;
                } else {
                    follow.call(used)?;
                }
            }
            if arguments.first() == Some(&argument) {
                return None;
            }
        }
        let helpers = follow.helpers();
        Some(Host::Followed {
            helpers,
            edits: follow.edits,
        })
    }

    /// `Particle *d = nullptr;` becomes `ParticleArrays d = {};`. The declared name.
    fn declaration<'t>(&mut self, declaration: Node<'t>, name: &str) -> Option<Node<'t>> {
        let parts = children(declaration);
        let [ty, declarator] = parts[..] else {
            return None;
        };
        let pointer = match declarator.kind() {
            Kind::InitDeclarator => {
                let value = declarator.field(Field::Value)?;
                if !matches!(self.code.text(value), "nullptr" | "NULL" | "0") {
                    return None;
                }
                declarator.field(Field::Declarator)?
            }
            _ => declarator,
        };
        let declared = pointer.field(Field::Declarator)?;
        let plain = pointer.kind() == Kind::PointerDeclarator
            && declared.kind() == Kind::Identifier
            && children(pointer).len() == 1;
        if !plain || self.code.text(ty) != self.definition.name {
            return None;
        }
        let range = ty.start_byte()..declarator.end_byte();
        self.edits.push((
            range,
            format!("{} {name} = {{}}", self.definition.arrays_name),
        ));
        Some(declared)
    }

    /// One call of the runtime that a buffer stands in.
    fn call(&mut self, used: Node) -> Option<()> {
        let mut argument = used;
        let mut in_size = false;
        while argument.parent()?.kind() != Kind::ArgumentList {
            argument = argument.parent()?;
            in_size |= argument.kind() == Kind::SizeofExpression;
        }
        let list = argument.parent()?;
        let call = list
            .parent()
            .filter(|call| call.kind() == Kind::CallExpression)?;
        let function = self.code.text(call.field(Field::Function)?);
        let function = function.strip_prefix(self.runtime)?;
        let arguments = children(list);
        let position = arguments.iter().position(|one| *one == argument)?;
        let name = self.code.text(used);
        if in_size {
            // Rewritten with the call, where the call is about the buffer itself.
            let own = arguments.iter().any(|one| {
                *one != argument && (self.code.text(*one) == name || self.is_address_of(*one, name))
            });
            return own.then_some(());
        }
        let plain = argument == used;
        let written = match (function, position, arguments.len()) {
            ("Malloc", 0, 2) if self.is_address_of(argument, name) => {
                self.needed.allocate = true;
                format!(
                    "allocate_arrays(&{name}, {})",
                    self.count(arguments[1], name)?
                )
            }
            ("Free", 0, 1) if plain => {
                self.needed.release = true;
                format!("release_arrays({name})")
            }
            ("Memcpy", 0 | 1, 4) if plain => {
                let kind = self.code.text(arguments[3]).strip_prefix(self.runtime)?;
                let other = arguments[1 - position];
                if !self.is_host_array(other) {
                    return None;
                }
                let other = self.code.text(other);
                let count = self.count(arguments[2], name)?;
                match (kind, position) {
                    ("MemcpyHostToDevice", 0) => {
                        self.needed.upload = true;
                        format!("upload_arrays({name}, {other}, {count})")
                    }
                    ("MemcpyDeviceToHost", 1) => {
                        self.needed.download = true;
                        format!("download_arrays({other}, {name}, {count})")
                    }
                    _ => return None,
                }
            }
            _ => return None,
        };
        self.edits.push((call.byte_range(), written));
        Some(())
    }

    /// `&d`, or the same behind a cast.
    fn is_address_of(&self, argument: Node, name: &str) -> bool {
        let mut at = argument;
        if at.kind() == Kind::CastExpression {
            let Some(value) = at.field(Field::Value) else {
                return false;
            };
            at = value;
        }
        at.kind() == Kind::PointerExpression
            && self.code.text(at).starts_with('&')
            && at
                .field(Field::Argument)
                .is_some_and(|of| self.code.text(of) == name)
    }

    /// True for an array of the structure on the host: its variable's declaration names the structure.
    fn is_host_array(&self, argument: Node) -> bool {
        let root = argument
            .descendants()
            .into_iter()
            .find(|node| node.kind() == Kind::Identifier);
        let Some(root) = root else { return false };
        let name = self.code.text(root);
        let Some(scope) = scope_of(self.code, root, name) else {
            return false;
        };
        let declaration = declaration_in(self.code, scope, name);
        let written = self.code.text(argument);
        let shape = argument == root
            || written == format!("{name}.data()")
            || written == format!("&{name}[0]");
        shape
            && declaration.is_some_and(|declaration| {
                has_word(self.code.text(declaration), self.definition.name)
            })
    }

    /// The number of structures in so many bytes: `n` of `n * sizeof(Particle)`. `None` where the bytes hang
    /// on the buffer in a way that would not compile any more: it is no pointer from now on.
    fn count(&self, bytes: Node, name: &str) -> Option<String> {
        let one = format!("sizeof({})", self.definition.name);
        let same = [
            format!("sizeof(*{name})"),
            format!("sizeof(struct {})", self.definition.name),
        ];
        let is_size = |node: Node| {
            let written = self.code.text(node);
            written == one || same.iter().any(|size| size == written)
        };
        let product = || {
            let (left, right) = (bytes.field(Field::Left)?, bytes.field(Field::Right)?);
            if binary(bytes) != Some(BinaryOperator::Multiply) {
                return None;
            }
            // What is left is the count as its author computed it.
            match (is_size(left), is_size(right)) {
                (_, true) => Some(self.code.text(left).to_owned()),
                (true, _) => Some(self.code.text(right).to_owned()),
                _ => None,
            }
        };
        let count = if is_size(bytes) {
            "1".to_owned()
        } else {
            product().unwrap_or_else(|| {
                let written = self.code.text(bytes).replace(&same[0], &one);
                format!("({written}) / {one}")
            })
        };
        (!has_word(&count, name)).then_some(count)
    }

    /// The helpers that are called. The host's array keeps its layout: a copy takes every field by a stride.
    fn helpers(&self) -> String {
        let Definition {
            name,
            arrays_name,
            fields,
            newline,
            ..
        } = self.definition;
        let runtime = self.runtime;
        let mut written = String::new();
        let mut function = |comment: &str, signature: String, step: &dyn Fn(&str) -> String| {
            let _ = write!(
                written,
                "{newline}{newline}// {comment}{newline}inline {runtime}Error_t {signature} {{"
            );
            let _ = write!(
                written,
                "{newline}  {runtime}Error_t status = {runtime}Success;"
            );
            for (_, field) in fields {
                let step = step(field);
                let _ = write!(
                    written,
                    "{newline}  if (status == {runtime}Success) status = {step};"
                );
            }
            let _ = write!(written, "{newline}  return status;{newline}}}");
        };
        if self.needed.allocate {
            function(
                "Room on the device for `count` elements of every field.",
                format!("allocate_arrays({arrays_name} *arrays, size_t count)"),
                &|field| {
                    format!("{runtime}Malloc(&arrays->{field}, count * sizeof(*arrays->{field}))")
                },
            );
        }
        if self.needed.upload {
            function(
                "From an array of structures on the host.",
                format!(
                    "upload_arrays(const {arrays_name} &arrays, const {name} *from, size_t count)"
                ),
                &|field| {
                    format!(
                        "{runtime}Memcpy2D(arrays.{field}, sizeof(from->{field}), &from->{field}, sizeof(*from), \
                         sizeof(from->{field}), count, {runtime}MemcpyHostToDevice)"
                    )
                },
            );
        }
        if self.needed.download {
            function(
                "To an array of structures on the host.",
                format!("download_arrays({name} *to, const {arrays_name} &arrays, size_t count)"),
                &|field| {
                    format!(
                        "{runtime}Memcpy2D(&to->{field}, sizeof(*to), arrays.{field}, sizeof(to->{field}), \
                         sizeof(to->{field}), count, {runtime}MemcpyDeviceToHost)"
                    )
                },
            );
        }
        if self.needed.release {
            function(
                "Every field's room on the device.",
                format!("release_arrays(const {arrays_name} &arrays)"),
                &|field| format!("{runtime}Free(arrays.{field})"),
            );
        }
        written
    }
}
